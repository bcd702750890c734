"""What `tf.summary` holds. Written by `make reference` from scripts/public_surface.py."""

from teletape.summary import experimental as experimental

from teletape.tf.summary.conditions import record_if as record_if
from teletape.tf.summary.data import audio as audio
from teletape.tf.summary.data import histogram as histogram
from teletape.tf.summary.data import image as image
from teletape.tf.summary.data import scalar as scalar
from teletape.tf.summary.data import text as text
from teletape.tf.summary.data import write as write
from teletape.tf.summary.traces import graph as graph
from teletape.tf.summary.traces import trace_export as trace_export
from teletape.tf.summary.traces import trace_off as trace_off
from teletape.tf.summary.traces import trace_on as trace_on
from teletape.tf.summary.writer import SummaryWriter as SummaryWriter
from teletape.tf.summary.writer import create_file_writer as create_file_writer
from teletape.tf.summary.writer import create_noop_writer as create_noop_writer
from teletape.tf.summary.writer import flush as flush
from teletape.tf.summary.writer import should_record_summaries as should_record_summaries

__all__ = [
    "SummaryWriter",
    "audio",
    "create_file_writer",
    "create_noop_writer",
    "experimental",
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
