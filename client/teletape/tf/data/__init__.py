"""`tf.data`: datasets over arrays, generators and files.

Elements of arrays are shuffled and batched by their indices; a server gets the arrays once, and gathers each batch
there. As in TensorFlow, no gradient passes through a dataset: its elements are constants.
"""

from teletape.tf.data import experimental
from teletape.tf.data.dataset import AUTOTUNE, INFINITE_CARDINALITY, UNKNOWN_CARDINALITY, Dataset, DatasetSpec
from teletape.tf.data.files import FixedLengthRecordDataset, TextLineDataset, TFRecordDataset
from teletape.tf.data.iterator import Iterator, NumpyIterator
from teletape.tf.data.options import Options, ThreadingOptions

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
