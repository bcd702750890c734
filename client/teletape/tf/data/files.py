"""Datasets of files: lines, TFRecords, records of a fixed length. They are read as they are needed."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from teletape.core.calls.dispatch import convert_to_tensor
from teletape.core.errors import InvalidArgumentError
from teletape.core.functions.tensor_spec import TensorSpec
from teletape.core.tensors import dtypes
from teletape.tf.data.dataset import UNKNOWN_CARDINALITY, Dataset
from teletape.tf.data.elements.leaves import host_of
from teletape.tf.data.elements.mapped import Element, leaves_of
from teletape.tf.data.traits import Traits
from teletape.tf.data.transforms import interleaved
from teletape.tf.files.record_files import opened, records


def _paths(filenames: Any) -> Callable[[], Iterator[str]]:
    """Returns a function that returns the paths of files, from a string, a list or tensor of strings, or a dataset.

    Raises:
        TypeError: Something else.
    """
    if isinstance(filenames, Dataset):
        spec = filenames.element_spec
        if not isinstance(spec, TensorSpec) or spec.dtype is not dtypes.string:
            raise TypeError(f"The `filenames` argument must contain `tf.string` elements. Got {spec!r} elements.")
        return lambda: itertools.chain.from_iterable(
            _decoded(host_of(leaves_of(element)[0])) for element in filenames._start(0)
        )
    if hasattr(filenames, "__fspath__"):
        filenames = str(filenames)
    elif isinstance(filenames, list | tuple):
        filenames = [str(name) if hasattr(name, "__fspath__") else name for name in filenames]
    tensor = convert_to_tensor(filenames)
    if tensor.dtype is not dtypes.string:
        raise TypeError(f"The `filenames` argument must contain `tf.string` elements. Got `{tensor.dtype!r}` elements.")
    paths = _decoded(tensor.numpy())
    return lambda: iter(paths)


def _decoded(value: Any) -> list[str]:
    return [path.decode() for path in np.asarray(value, object).reshape(-1).tolist()]


class _Files(Dataset):
    """The strings in files: one file after the other, or from several files in turn."""

    def __init__(
        self, filenames: Any, strings: Callable[[str], Iterator[bytes]], kind: str, num_parallel_reads: Any
    ) -> None:
        paths = _paths(filenames)
        cycle = 1 if num_parallel_reads is None else max(int(num_parallel_reads), 1)

        def elements_of(path: Any) -> Iterator[Element]:
            return ([_scalar(text)] for text in strings(path))

        def start(ahead: int) -> Iterator[Element]:
            return interleaved(paths(), elements_of, cycle, 1)  # type: ignore[arg-type]  # of paths, not of elements

        super().__init__(start, TensorSpec([], dtypes.string), UNKNOWN_CARDINALITY, kind, traits=Traits(slow=True))


def _scalar(text: bytes) -> Any:
    array = np.empty((), object)
    array[()] = text
    return array


class TextLineDataset(_Files):
    """The lines of text files, without their ends.

    Args:
        filenames: A path, a list or tensor of paths, or a dataset of them.
        compression_type: "", "GZIP" or "ZLIB".
        buffer_size: Without effect.
        num_parallel_reads: The number of files whose lines come in turn; None: one file after the other.
        name: Without effect.

    Raises:
        TypeError: No paths.
    """

    def __init__(
        self,
        filenames: Any,
        compression_type: str | None = None,
        buffer_size: Any = None,
        num_parallel_reads: Any = None,
        name: str | None = None,
    ) -> None:
        def lines(path: str) -> Iterator[bytes]:
            file = opened(path, compression_type)
            if compression_type == "ZLIB":
                file = file.read().splitlines(keepends=True)
            for line in file:
                yield line.removesuffix(b"\n").removesuffix(b"\r")

        super().__init__(filenames, lines, "TextLineDatasetV2", num_parallel_reads)


class TFRecordDataset(_Files):
    """The records of TFRecord files.

    Args:
        filenames: A path, a list or tensor of paths, or a dataset of them.
        compression_type: "", "GZIP" or "ZLIB".
        buffer_size: Without effect.
        num_parallel_reads: The number of files whose records come in turn; None: one file after the other.
        name: Without effect.

    Raises:
        TypeError: No paths.
    """

    def __init__(
        self,
        filenames: Any,
        compression_type: str | None = None,
        buffer_size: Any = None,
        num_parallel_reads: Any = None,
        name: str | None = None,
    ) -> None:
        super().__init__(
            filenames, lambda path: records(path, compression_type), "TFRecordDatasetV2", num_parallel_reads
        )


class FixedLengthRecordDataset(_Files):
    """Records of one length.

    Args:
        filenames: A path, a list or tensor of paths, or a dataset of them.
        record_bytes: The bytes of a record.
        header_bytes: The bytes before the first.
        footer_bytes: The bytes after the last.
        buffer_size: Without effect.
        compression_type: "", "GZIP" or "ZLIB".
        num_parallel_reads: The number of files whose records come in turn; None: one file after the other.
        name: Without effect.

    Raises:
        TypeError: No paths.
    """

    def __init__(
        self,
        filenames: Any,
        record_bytes: Any,
        header_bytes: Any = None,
        footer_bytes: Any = None,
        buffer_size: Any = None,
        compression_type: str | None = None,
        num_parallel_reads: Any = None,
        name: str | None = None,
    ) -> None:
        size, before, after = int(record_bytes), int(header_bytes or 0), int(footer_bytes or 0)

        def pieces(path: str) -> Iterator[bytes]:
            body = opened(path, compression_type).read()
            body = body[before : len(body) - after]
            if len(body) % size:
                raise InvalidArgumentError(
                    f"Excluding the header ({before} bytes) and footer ({after} bytes), input file {path!r} has body "
                    f"length {len(body)} bytes, which is not an exact multiple of the record length ({size} bytes)."
                )
            return (body[at : at + size] for at in range(0, len(body), size))

        super().__init__(filenames, pieces, "FixedLengthRecordDatasetV2", num_parallel_reads)
