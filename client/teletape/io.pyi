"""What `tf.io` holds. Written by `make reference` from teletape.namespace."""

from teletape.records.features import FixedLenFeature as FixedLenFeature
from teletape.records.features import FixedLenSequenceFeature as FixedLenSequenceFeature
from teletape.records.features import VarLenFeature as VarLenFeature
from teletape.records.features import parse_example as parse_example
from teletape.records.features import parse_single_example as parse_single_example
from teletape.records.frames import TFRecordOptions as TFRecordOptions
from teletape.records.frames import TFRecordWriter as TFRecordWriter

__all__ = [
    "FixedLenFeature",
    "FixedLenSequenceFeature",
    "TFRecordOptions",
    "TFRecordWriter",
    "VarLenFeature",
    "parse_example",
    "parse_single_example",
]
