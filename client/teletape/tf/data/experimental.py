"""`tf.data.experimental`: older names of methods of datasets, as transformations for `Dataset.apply`, and CSV files."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from teletape.core.errors import FailedPreconditionError
from teletape.tf.data.dataset import AUTOTUNE, Dataset
from teletape.tf.data.elements.optional import Optional
from teletape.tf.data.iterator import Iterator

Transformation = Callable[[Dataset], Dataset]


def _transformation(method: Callable[..., Dataset]) -> Callable[..., Transformation]:
    """Returns a function of the arguments of a method of Dataset that returns a function for `Dataset.apply`."""

    @functools.wraps(method)
    def transformation(*args: Any, **kwargs: Any) -> Transformation:
        return lambda dataset: method(dataset, *args, **kwargs)

    return transformation


bucket_by_sequence_length = _transformation(Dataset.bucket_by_sequence_length)
enumerate_dataset = _transformation(Dataset.enumerate)
group_by_window = _transformation(Dataset.group_by_window)
rejection_resample = _transformation(Dataset.rejection_resample)
scan = _transformation(Dataset.scan)
take_while = _transformation(Dataset.take_while)
unbatch = _transformation(Dataset.unbatch)
ignore_errors = _transformation(Dataset.ignore_errors)
unique = _transformation(Dataset.unique)
choose_from_datasets = Dataset.choose_from_datasets
sample_from_datasets = Dataset.sample_from_datasets
get_single_element = Dataset.get_single_element
RandomDataset = Dataset.random


def Counter(start: int = 0, step: int = 1, dtype: Any = "int64") -> Dataset:  # TensorFlow's name
    """Returns the numbers from `start` on, `step` apart, without end."""
    return Dataset.counter(start, step, dtype)


def cardinality(dataset: Dataset) -> Any:
    """Returns the number of elements, a scalar int64 tensor, or INFINITE_CARDINALITY or UNKNOWN_CARDINALITY."""
    return dataset.cardinality()


def assert_cardinality(expected_cardinality: Any) -> Transformation:
    """Returns a transformation that states the number of elements; an iteration over another number raises.

    Raises:
        FailedPreconditionError: In an iteration.
    """
    expected = int(expected_cardinality)

    def asserted(elements: Any) -> Any:
        count = 0
        for count, element in enumerate(elements, 1):
            if count > expected >= 0:
                raise FailedPreconditionError(
                    f"Input dataset was expected to contain {expected} elements but contained at least {count} "
                    "elements."
                )
            yield element
        if count < expected:
            raise FailedPreconditionError(
                f"Input dataset was expected to contain {expected} elements but contained only {count} elements."
            )

    return lambda dataset: dataset._derived(asserted, "_AssertCardinalityDataset", expected)


def from_list(elements: Any, name: str | None = None) -> Dataset:
    """Returns the elements of a list, each a tensor or a structure of them.

    Raises:
        ValueError: It is empty.
    """
    if not elements:
        raise ValueError("Invalid `elements`. `elements` should not be empty.")
    parts = [Dataset.from_tensors(element) for element in elements]
    return functools.reduce(Dataset.concatenate, parts)


def get_structure(dataset_or_iterator: Any) -> Any:
    """Returns the spec of the elements."""
    return dataset_or_iterator.element_spec


def get_next_as_optional(iterator: Iterator) -> Optional:
    """Returns the next element as an Optional, which is empty at the end."""
    return iterator.get_next_as_optional()


def map_and_batch(
    map_func: Callable[..., Any],
    batch_size: Any,
    num_parallel_batches: Any = None,
    drop_remainder: bool = False,
    num_parallel_calls: Any = None,
) -> Transformation:
    """Returns a transformation: `map`, then `batch`."""
    return lambda dataset: dataset.map(map_func).batch(batch_size, drop_remainder)


def parallel_interleave(
    map_func: Callable[..., Any],
    cycle_length: Any,
    block_length: Any = 1,
    sloppy: bool | None = False,
    buffer_output_elements: Any = None,
    prefetch_input_elements: Any = None,
) -> Transformation:
    """Returns a transformation: `interleave`."""
    return lambda dataset: dataset.interleave(map_func, cycle_length, block_length)


def shuffle_and_repeat(buffer_size: Any, count: Any = None, seed: int | None = None) -> Transformation:
    """Returns a transformation: `shuffle`, then `repeat`."""
    return lambda dataset: dataset.shuffle(buffer_size, seed).repeat(count)


def prefetch_to_device(device: str, buffer_size: Any = None) -> Transformation:
    """Returns a transformation: `prefetch`. The elements are on the session's device in any case."""
    return lambda dataset: dataset.prefetch(AUTOTUNE if buffer_size is None else buffer_size)


def copy_to_device(target_device: str, source_device: str = "/cpu:0") -> Transformation:
    """Returns a transformation that changes nothing: the elements are on the session's device in any case."""
    return lambda dataset: dataset
