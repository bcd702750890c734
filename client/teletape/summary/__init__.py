"""`tf.summary`: event files for TensorBoard, written through the tensorboardX package where the program runs."""

from teletape.summary import events as events
from teletape.summary import experimental as experimental
from teletape.summary.conditions import record_if
from teletape.summary.data import audio, histogram, image, scalar, text, write
from teletape.summary.traces import graph, trace_export, trace_off, trace_on
from teletape.summary.writer import (
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
