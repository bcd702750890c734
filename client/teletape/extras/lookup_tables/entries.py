"""Initializers of the tables of `tf.lookup`: two tensors, or the lines of a file."""

from __future__ import annotations

import os
from typing import Any, Final

import numpy as np

from teletape.core.calls.dispatch import convert_to_tensor
from teletape.core.errors import InvalidArgumentError
from teletape.core.tensors import dtypes
from teletape.core.tensors.dtypes import DType
from teletape.tf.files.host import array_of, errors_of, text_of
from teletape_engine.spec import shape_text

__all__ = ["KeyValueTensorInitializer", "TextFileIndex", "TextFileInitializer"]

#: The dtypes of keys.
KEYS: Final = (dtypes.string, dtypes.int32, dtypes.int64)


class Typed:
    """The base class of tables and of their initial entries: the dtypes of keys and of values."""

    def __init__(self, key_dtype: DType, value_dtype: DType) -> None:
        self._key_dtype, self._value_dtype = key_dtype, value_dtype

    @property
    def key_dtype(self) -> DType:
        """The dtype of the keys."""
        return self._key_dtype

    @property
    def value_dtype(self) -> DType:
        """The dtype of the values."""
        return self._value_dtype


class Initializer(Typed):
    """The initial keys and values of a table, read when the table is made."""

    def arrays(self) -> tuple[Any, Any]:
        """The keys [n] and the values [n]."""
        raise NotImplementedError  # pragma: no cover - abstract

    def initialize(self, table: Any) -> None:
        """Fills a table; a program's subclass, such as Keras's for an empty table, may fill it otherwise."""
        table.fill(*self.arrays())


class KeyValueTensorInitializer(Initializer):
    """Keys and their values from two tensors.

    Args:
        keys: [n] strings or whole numbers.
        values: [n] of any dtype.
        key_dtype: Of the keys; None: their own.
        value_dtype: Of the values; None: their own.
        name: Without effect.
    """

    def __init__(
        self, keys: Any, values: Any, key_dtype: Any = None, value_dtype: Any = None, name: str | None = None
    ) -> None:
        self._keys = convert_to_tensor(keys, key_dtype)
        self._values = convert_to_tensor(values, value_dtype)
        super().__init__(self._keys.dtype, self._values.dtype)

    def arrays(self) -> tuple[Any, Any]:
        """The keys and the values; InvalidArgumentError unless there is one value for each key."""
        keys, values = array_of(self._keys), array_of(self._values)
        if keys.shape != values.shape:
            raise InvalidArgumentError(
                f"Expected shape {shape_text(keys.shape)} for value, got {shape_text(values.shape)}"
            )
        return keys.reshape(-1), values.reshape(-1)


class TextFileIndex:
    """Keys or values that are no columns: the whole line, or its number."""

    WHOLE_LINE = -2
    LINE_NUMBER = -1


class TextFileInitializer(Initializer):
    """Keys and their values from the lines of a file of this machine.

    Args:
        filename: The file.
        key_dtype: string, int32 or int64.
        key_index: The column of the keys, TextFileIndex.WHOLE_LINE or TextFileIndex.LINE_NUMBER.
        value_dtype: Of the values: string, a float or int32 or int64.
        value_index: The column of the values, or a TextFileIndex as for `key_index`.
        vocab_size: The number of lines to read; None: all.
        delimiter: The separator of columns.
        name: Without effect.
        value_index_offset: Added to the number of a line, if that is the value.

    Raises:
        ValueError: No file, an index below -2, or a dtype that does not fit an index.
    """

    def __init__(
        self,
        filename: Any,
        key_dtype: Any,
        key_index: int,
        value_dtype: Any,
        value_index: int,
        vocab_size: int | None = None,
        delimiter: str = "\t",
        name: str | None = None,
        value_index_offset: int = 0,
    ) -> None:
        path = text_of(os.fspath(filename) if isinstance(filename, os.PathLike) else filename)
        if not path:
            raise ValueError("`filename` argument required for tf.lookup.TextFileInitializer")
        super().__init__(dtypes.as_dtype(key_dtype), dtypes.as_dtype(value_dtype))
        for what, index, dtype in (("key", key_index, self.key_dtype), ("value", value_index, self.value_dtype)):
            if index < TextFileIndex.WHOLE_LINE:
                raise ValueError(f"`{what}_index` should be >= -2, received: {index}.")
            if index == TextFileIndex.LINE_NUMBER and dtype is not dtypes.int64:
                raise ValueError(
                    f"`{what}_dtype` must be int64 if `{what}_index` is {TextFileIndex.LINE_NUMBER}, received: {dtype}"
                )
            if index == TextFileIndex.WHOLE_LINE and not dtype.is_integer and dtype is not dtypes.string:
                raise ValueError(
                    f"`{what}_dtype` should be either integer or string for `{what}_index` "
                    f"{TextFileIndex.WHOLE_LINE}, received: {dtype}"
                )
        self._path, self._size, self._delimiter = path, vocab_size, delimiter.encode()
        self._indices, self._offset = (key_index, value_index), value_index_offset

    def arrays(self) -> tuple[Any, Any]:
        """The keys and the values.

        Raises:
            NotFoundError: There is no such file.
            InvalidArgumentError: Fewer lines than `vocab_size`, or a line without such a column or number.
        """
        with errors_of(self._path), open(self._path, "rb") as file:
            lines = file.read().replace(b"\r", b"").split(b"\n")
        if not lines[-1]:
            lines.pop()
        if self._size is not None and self._size > len(lines):
            raise InvalidArgumentError(
                f"Invalid vocab_size in {self._path}: expected {self._size} but got {len(lines)}"
            )
        lines = lines[: self._size]
        keys = [self._part(line, number, self._indices[0]) for number, line in enumerate(lines)]
        values = [self._part(line, number + self._offset, self._indices[1]) for number, line in enumerate(lines)]
        return self._as(keys, self.key_dtype), self._as(values, self.value_dtype)

    def _part(self, line: bytes, number: int, index: int) -> Any:
        if index == TextFileIndex.WHOLE_LINE:
            return line
        if index == TextFileIndex.LINE_NUMBER:
            return number
        columns = line.split(self._delimiter)
        if index >= len(columns):
            raise InvalidArgumentError(
                f"Invalid number of columns in {self._path} line {number} ({line.decode(errors='replace')}) : "
                f"expected at least {index + 1} got {len(columns)}"
            )
        return columns[index]

    def _as(self, parts: list[Any], dtype: DType) -> Any:
        array = np.empty(len(parts), object)
        array[:] = parts
        if dtype is dtypes.string:
            return array
        try:
            return np.array([int(part) if dtype.is_integer else float(part) for part in parts], dtype.np)
        except (ValueError, OverflowError) as error:
            raise InvalidArgumentError(f"{self._path}: {error}: no {dtype.name}") from None
