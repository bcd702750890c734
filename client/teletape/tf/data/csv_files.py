"""`tf.data.experimental.make_csv_dataset`: CSV files as batches of named columns."""

from __future__ import annotations

import csv
import glob
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import numpy as np

from teletape.core.calls.dispatch import convert_to_tensor
from teletape.core.errors import InvalidArgumentError
from teletape.core.functions.tensor_spec import TensorSpec
from teletape.core.tensors import dtypes
from teletape.core.tensors.dtypes import DType
from teletape.core.tensors.tensor import TensorLike
from teletape.tf.data.dataset import UNKNOWN_CARDINALITY, Dataset
from teletape.tf.data.elements import structure
from teletape.tf.data.elements.leaves import host_of
from teletape.tf.data.elements.mapped import Element
from teletape.tf.data.traits import Traits

_AHEAD: Final = 1
_Parser = tuple[DType, Any]  # a column's dtype, and the value of an empty field; None: it must not be empty


def make_csv_dataset(
    file_pattern: Any,
    batch_size: int,
    column_names: Sequence[str] | None = None,
    column_defaults: Sequence[Any] | None = None,
    label_name: str | None = None,
    select_columns: Sequence[Any] | None = None,
    field_delim: str = ",",
    use_quote_delim: bool = True,
    na_value: str = "",
    header: bool = True,
    num_epochs: int | None = None,
    shuffle: bool = True,
    shuffle_buffer_size: int = 10000,
    shuffle_seed: int | None = None,
    prefetch_buffer_size: int | None = None,
    num_parallel_reads: int | None = None,
    sloppy: bool = False,
    num_rows_for_inference: int | None = 100,
    compression_type: str | None = None,
    ignore_errors: bool = False,
    encoding: str = "utf-8",
) -> Dataset:
    """Returns batches of the rows of CSV files: an OrderedDict of columns, or a pair of that and the label's column.

    Args:
        file_pattern: A pattern of the shell, or a list of them.
        batch_size: Rows in a batch.
        column_names: The names of all columns; None: the first line has them.
        column_defaults: For each column that is used its dtype, if it must have a value, or the value of an empty field
            (alone or in a list); None: the dtypes are those of the first rows.
        label_name: The column that is the label.
        select_columns: Names or numbers of the columns that are used; None: all.
        field_delim: The separator of fields.
        use_quote_delim: Whether a field may be quoted.
        na_value: A field that counts as empty.
        header: Whether the first line of a file has names.
        num_epochs: How often the files are read; None: without end.
        shuffle: Whether files and rows are shuffled.
        shuffle_buffer_size: As in `Dataset.shuffle`.
        shuffle_seed: As in `Dataset.shuffle`.
        prefetch_buffer_size: As in `Dataset.prefetch`.
        num_parallel_reads: Without effect.
        sloppy: Without effect.
        num_rows_for_inference: Rows that decide about dtypes; None: all.
        compression_type: Must be None.
        ignore_errors: Whether rows that cannot be read are left out.
        encoding: Of the files.

    Raises:
        ValueError: No file, an unknown column, or other numbers of names and defaults.
    """
    if compression_type:
        raise ValueError("make_csv_dataset reads files that are not compressed: compression_type must be None")
    paths = _files(file_pattern)
    dialect: dict[str, Any] = {
        "delimiter": field_delim,
        "quoting": csv.QUOTE_MINIMAL if use_quote_delim else csv.QUOTE_NONE,
    }

    def rows_of(path: str) -> Iterator[list[str]]:
        with open(path, newline="", encoding=encoding) as file:
            reader = csv.reader(file, **dialect)
            if header:
                next(reader, None)
            yield from (row for row in reader if row)

    if column_names is None:
        if not header:
            raise ValueError("Cannot infer column names without a header line.")
        with open(paths[0], newline="", encoding=encoding) as file:
            column_names = next(csv.reader(file, **dialect), [])
    names = list(column_names)
    if len(set(names)) != len(names):
        raise ValueError("Cannot have duplicate column names.")
    at = _selected(names, select_columns)
    columns = [names[i] for i in at]
    if label_name is not None and label_name not in columns:
        raise ValueError(f"`label_name` provided must be one of the columns: {columns}. Received: {label_name}.")
    if column_defaults is None:
        parsers = _inferred(paths, rows_of, at, na_value, num_rows_for_inference)
    else:
        if len(column_defaults) != len(at):
            raise ValueError(f"there are {len(at)} columns and {len(column_defaults)} column_defaults")
        parsers = [_parser(default) for default in column_defaults]

    def start(ahead: int) -> Iterator[Element]:
        for path in paths:
            for row in rows_of(path):
                try:
                    yield [_value(row, i, parser, na_value, len(names)) for i, parser in zip(at, parsers, strict=True)]
                except InvalidArgumentError:
                    if not ignore_errors:
                        raise

    specs = [TensorSpec([], dtype) for dtype, _ in parsers]
    # The leaves of a dict are in the order of its sorted keys, those of a row in the order of the columns.
    rows = Dataset(start, tuple(specs), UNKNOWN_CARDINALITY, "CsvDatasetV2", traits=Traits(slow=True))
    if shuffle:
        rows = rows.shuffle(shuffle_buffer_size, shuffle_seed)
    batches = rows.repeat(num_epochs).batch(batch_size, drop_remainder=num_epochs is None)
    named = _named(batches, columns, label_name)
    return named.prefetch(_AHEAD if prefetch_buffer_size is None else prefetch_buffer_size)


def _named(batches: Dataset, columns: Sequence[str], label_name: str | None) -> Dataset:
    """Returns the batches with a name for each column."""

    def packed(leaves: Sequence[Any]) -> Any:
        features = OrderedDict(zip(columns, leaves, strict=True))
        if label_name is None:
            return features
        label = features.pop(label_name)
        return features, label

    spec = packed(batches.element_spec)
    return batches._derived(
        lambda elements: (structure.flatten(packed(element)) for element in elements),  # type: ignore[arg-type]
        "_MapDataset",
        batches._cardinality,
        spec=lambda: spec,
    )


def _files(pattern: Any) -> list[str]:
    patterns = [pattern] if isinstance(pattern, str | bytes) or hasattr(pattern, "__fspath__") else list(pattern)
    texts = [each.decode() if isinstance(each, bytes) else str(each) for each in patterns]
    paths = sorted({path for text in texts for path in glob.glob(text)})
    if not paths:
        raise ValueError(f"No files match `file_pattern` {pattern}.")
    return paths


def _selected(names: Sequence[str], select_columns: Sequence[Any] | None) -> list[int]:
    if select_columns is None:
        return list(range(len(names)))
    unknown = [column for column in select_columns if isinstance(column, str) and column not in names]
    if unknown:
        raise ValueError(f"`select_columns` has {unknown[0]!r}; the columns are {list(names)}.")
    return sorted(names.index(column) if isinstance(column, str) else int(column) for column in select_columns)


def _parser(default: Any) -> _Parser:
    """Returns the parser of a column, from its entry in `column_defaults`."""
    if isinstance(default, DType | type):
        return dtypes.as_dtype(default), None
    if isinstance(default, list | tuple):
        [default] = default
    tensor = default if isinstance(default, TensorLike) else convert_to_tensor(default)
    return tensor.dtype, np.asarray(host_of(tensor)).reshape(-1)[0]


def _inferred(
    paths: Sequence[str],
    rows_of: Callable[[str], Iterator[list[str]]],
    at: Sequence[int],
    na_value: str,
    limit: int | None,
) -> list[_Parser]:
    """Returns the parsers of columns: each for the first dtype that all first values of the column fit."""
    order = (dtypes.int32, dtypes.int64, dtypes.float32, dtypes.float64, dtypes.string)
    ranks: list[int] = [-1] * len(at)
    count = 0
    for path in paths:
        for row in rows_of(path):
            if limit is not None and count >= limit:
                break
            count += 1
            for j, i in enumerate(at):
                if row[i] not in ("", na_value):
                    ranks[j] = max(ranks[j], _rank(row[i]))
    kinds = [order[rank] if rank >= 0 else dtypes.float32 for rank in ranks]
    return [(kind, b"" if kind is dtypes.string else kind.np.type(0)) for kind in kinds]


def _rank(text: str) -> int:
    """Returns the place of a value's dtype among int32, int64, float32, float64, string."""
    try:
        number = int(text)
    except ValueError:
        pass
    else:
        if -(1 << 63) <= number < 1 << 63:
            return 0 if -(1 << 31) <= number < 1 << 31 else 1
    try:
        value = float(text)
    except ValueError:
        return 4
    return 3 if np.isfinite(value) and abs(value) > float(np.finfo(np.float32).max) else 2


def _value(row: Sequence[str], i: int, parser: _Parser, na_value: str, width: int) -> Any:
    dtype, default = parser
    if len(row) != width:
        raise InvalidArgumentError(f"Expect {width} fields but have {len(row)} in record")
    text: Any = row[i]
    if text in ("", na_value):
        if default is None:
            raise InvalidArgumentError(f"Field {i} is required but missing in record!")
        text = default
    if dtype is dtypes.string:
        array = np.empty((), object)
        array[()] = text.encode() if isinstance(text, str) else text
        return array
    try:
        return dtype.np.type(text)
    except (ValueError, OverflowError):
        raise InvalidArgumentError(f"Field {i} in record is not a valid {dtype.name}: {text}") from None
