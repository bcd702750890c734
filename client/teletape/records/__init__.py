"""TFRecord files and the examples in them: `tf.io.TFRecordWriter`, `tf.train.Example`, `tf.io.parse_example`."""

from typing import Final

from teletape.records.features import (
    FixedLenFeature,
    FixedLenSequenceFeature,
    VarLenFeature,
    parse_example,
    parse_single_example,
)
from teletape.records.frames import TFRecordOptions, TFRecordWriter
from teletape.records.messages import MESSAGES

__all__ = [
    "IO",
    "MESSAGES",
    "FixedLenFeature",
    "FixedLenSequenceFeature",
    "TFRecordOptions",
    "TFRecordWriter",
    "VarLenFeature",
    "parse_example",
    "parse_single_example",
]

#: The names that are public in `tf.io`.
IO: Final = tuple(name for name in __all__ if not name.isupper())
