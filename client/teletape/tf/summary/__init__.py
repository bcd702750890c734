"""`tf.summary`: event files for TensorBoard, written through the tensorboardX package where the program runs."""

from teletape.tf.summary import events as events
from teletape.tf.summary import experimental as experimental
from teletape.tf.summary.conditions import record_if
from teletape.tf.summary.data import audio, histogram, image, scalar, text, write
from teletape.tf.summary.traces import graph, trace_export, trace_off, trace_on
from teletape.tf.summary.writer import (
    SummaryWriter,
    create_file_writer,
    create_noop_writer,
    flush,
    should_record_summaries,
)

__all__ = [
    "SummaryWriter",
    "audio",
    "create_file_writer",
    "create_noop_writer",
    "flush",
    "graph",
    "histogram",
    "image",
    "record_if",
    "scalar",
    "should_record_summaries",
    "text",
    "trace_export",
    "trace_off",
    "trace_on",
    "write",
]
