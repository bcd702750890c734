"""What `tf.data.experimental` holds. Written by `make reference` from scripts/public_surface.py."""

from teletape.tf.data.csv_files import make_csv_dataset as make_csv_dataset
from teletape.tf.data.elements.optional import Optional as Optional
from teletape.tf.data.experimental import Counter as Counter
from teletape.tf.data.experimental import RandomDataset as RandomDataset
from teletape.tf.data.experimental import assert_cardinality as assert_cardinality
from teletape.tf.data.experimental import bucket_by_sequence_length as bucket_by_sequence_length
from teletape.tf.data.experimental import cardinality as cardinality
from teletape.tf.data.experimental import choose_from_datasets as choose_from_datasets
from teletape.tf.data.experimental import copy_to_device as copy_to_device
from teletape.tf.data.experimental import enumerate_dataset as enumerate_dataset
from teletape.tf.data.experimental import from_list as from_list
from teletape.tf.data.experimental import get_next_as_optional as get_next_as_optional
from teletape.tf.data.experimental import get_single_element as get_single_element
from teletape.tf.data.experimental import get_structure as get_structure
from teletape.tf.data.experimental import group_by_window as group_by_window
from teletape.tf.data.experimental import ignore_errors as ignore_errors
from teletape.tf.data.experimental import map_and_batch as map_and_batch
from teletape.tf.data.experimental import parallel_interleave as parallel_interleave
from teletape.tf.data.experimental import prefetch_to_device as prefetch_to_device
from teletape.tf.data.experimental import rejection_resample as rejection_resample
from teletape.tf.data.experimental import sample_from_datasets as sample_from_datasets
from teletape.tf.data.experimental import scan as scan
from teletape.tf.data.experimental import shuffle_and_repeat as shuffle_and_repeat
from teletape.tf.data.experimental import take_while as take_while
from teletape.tf.data.experimental import unbatch as unbatch
from teletape.tf.data.experimental import unique as unique
from teletape.tf.data.options import AutoShardPolicy as AutoShardPolicy
from teletape.tf.data.options import AutotuneAlgorithm as AutotuneAlgorithm
from teletape.tf.data.options import AutotuneOptions as AutotuneOptions
from teletape.tf.data.options import DistributeOptions as DistributeOptions
from teletape.tf.data.options import ExternalStatePolicy as ExternalStatePolicy
from teletape.tf.data.options import OptimizationOptions as OptimizationOptions
from teletape.tf.data.options import ThreadingOptions as ThreadingOptions

AUTOTUNE: int
INFINITE_CARDINALITY: int
UNKNOWN_CARDINALITY: int
__all__ = [
    "AUTOTUNE",
    "INFINITE_CARDINALITY",
    "UNKNOWN_CARDINALITY",
    "AutoShardPolicy",
    "AutotuneAlgorithm",
    "AutotuneOptions",
    "Counter",
    "DistributeOptions",
    "ExternalStatePolicy",
    "OptimizationOptions",
    "Optional",
    "RandomDataset",
    "ThreadingOptions",
    "assert_cardinality",
    "bucket_by_sequence_length",
    "cardinality",
    "choose_from_datasets",
    "copy_to_device",
    "enumerate_dataset",
    "from_list",
    "get_next_as_optional",
    "get_single_element",
    "get_structure",
    "group_by_window",
    "ignore_errors",
    "make_csv_dataset",
    "map_and_batch",
    "parallel_interleave",
    "prefetch_to_device",
    "rejection_resample",
    "sample_from_datasets",
    "scan",
    "shuffle_and_repeat",
    "take_while",
    "unbatch",
    "unique",
]
