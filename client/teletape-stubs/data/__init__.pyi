"""What `tf.data` holds. Written by `make reference` from scripts/public_surface.py."""

from teletape.data import experimental as experimental

from teletape.tf.data.dataset import Dataset as Dataset
from teletape.tf.data.dataset import DatasetSpec as DatasetSpec
from teletape.tf.data.files import FixedLengthRecordDataset as FixedLengthRecordDataset
from teletape.tf.data.files import TextLineDataset as TextLineDataset
from teletape.tf.data.files import TFRecordDataset as TFRecordDataset
from teletape.tf.data.iterator import Iterator as Iterator
from teletape.tf.data.iterator import NumpyIterator as NumpyIterator
from teletape.tf.data.options import Options as Options
from teletape.tf.data.options import ThreadingOptions as ThreadingOptions

AUTOTUNE: int
INFINITE_CARDINALITY: int
UNKNOWN_CARDINALITY: int
__all__ = [
    "AUTOTUNE",
    "INFINITE_CARDINALITY",
    "UNKNOWN_CARDINALITY",
    "Dataset",
    "DatasetSpec",
    "FixedLengthRecordDataset",
    "Iterator",
    "NumpyIterator",
    "Options",
    "TFRecordDataset",
    "TextLineDataset",
    "ThreadingOptions",
    "experimental",
]
