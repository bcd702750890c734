"""`tf.io`: whole files as strings, and strings that hold numbers, base64 or comma-separated fields.

Each reads the values of its tensors: over HTTP a round trip, and in a tf.function the function runs op by op.
"""

from __future__ import annotations

import base64
import binascii
import csv
import gzip
import os
import zlib
from typing import Any, Final

import numpy as np

from teletape.core.calls import arguments as to
from teletape.core.calls.dispatch import convert_to_tensor
from teletape.core.errors import DataLossError, InvalidArgumentError
from teletape.core.tensors import dtypes
from teletape.core.tensors.tensor import Tensor
from teletape.tf.files import gfile
from teletape.tf.files.host import bytes_of, each_string, errors_of, strings_of


def read_file(filename: Any, name: str | None = None) -> Tensor:
    """Returns the contents of a file of this machine as a string.

    Raises:
        NotFoundError: There is no such file.
        InvalidArgumentError: Several names.
    """
    path = os.fspath(filename) if isinstance(filename, os.PathLike) else filename
    array = strings_of(path, "filename")
    if array.shape:
        raise InvalidArgumentError(f"Input filename tensor must be scalar, but had shape: {list(array.shape)}")
    with errors_of(array.item()), open(array.item(), "rb") as file:
        return convert_to_tensor(file.read())


def write_file(filename: Any, contents: Any, name: str | None = None) -> None:
    """Writes a string to a file of this machine; makes the folders in its path."""
    path = bytes_of(os.fspath(filename) if isinstance(filename, os.PathLike) else filename, "filename")
    folder = os.path.dirname(path)
    if folder:
        gfile.makedirs(folder)
    with errors_of(path), open(path, "wb") as file:
        file.write(bytes_of(contents, "contents"))


def matching_files(pattern: Any, name: str | None = None) -> Tensor:
    """Returns the paths that match a pattern, sorted."""
    patterns = strings_of(pattern, "pattern").reshape(-1).tolist()
    paths = sorted({path for each in patterns for path in gfile.glob(each)})
    return convert_to_tensor(np.array([path.encode() for path in paths], object))


def decode_raw(
    input_bytes: Any,
    out_type: to.DTypeInput,
    little_endian: bool = True,
    fixed_length: int | None = None,
    name: str | None = None,
) -> Tensor:
    """Reads the bytes of strings as numbers.

    Args:
        input_bytes: Strings of one length.
        out_type: The dtype of the numbers.
        little_endian: Whether the first byte of a number is its lowest.
        fixed_length: The number of bytes to which strings are cut or filled with zeros; None: they stay.
        name: Without effect.

    Returns:
        A tensor of the shape of the strings, with one more axis.

    Raises:
        InvalidArgumentError: The bytes are no whole number of elements, or the strings have several lengths.
    """
    strings, dtype = strings_of(input_bytes, "input_bytes"), dtypes.as_dtype(out_type)
    size = dtype.np.itemsize
    parts = list(strings.reshape(-1))
    if fixed_length is not None:
        parts = [part[:fixed_length].ljust(fixed_length, b"\0") for part in parts]
    lengths = {len(part) for part in parts}
    if len(lengths) > 1:
        raise InvalidArgumentError(
            f"DecodeRaw requires input strings to all be the same size, and they have {sorted(lengths)} bytes"
        )
    length = lengths.pop() if lengths else 0
    if length % size:
        raise InvalidArgumentError(
            f"Input to DecodeRaw has length {length} that is not a multiple of {size}, the size of {dtype.name}"
        )
    numbers = np.frombuffer(b"".join(parts), dtype.np)
    if not little_endian:
        numbers = numbers.byteswap()
    return convert_to_tensor(numbers.reshape(*strings.shape, length // size))


def encode_base64(input: Any, pad: bool = False, name: str | None = None) -> Tensor:
    """Encodes strings in the base64 of URLs; `pad`: with `=` at the end."""

    def encoded(text: bytes) -> bytes:
        result = base64.urlsafe_b64encode(text)
        return result if pad else result.rstrip(b"=")

    return each_string(encoded, strings_of(input, "input"))


def decode_base64(input: Any, name: str | None = None) -> Tensor:
    """Decodes strings in the base64 of URLs, padded or not.

    Raises:
        InvalidArgumentError: Another character.
    """

    def decoded(text: bytes) -> bytes:
        try:
            return base64.b64decode(text + b"=" * (-len(text) % 4), altchars=b"-_", validate=True)
        except binascii.Error:
            raise InvalidArgumentError("Invalid character found in base64.") from None

    return each_string(decoded, strings_of(input, "input"))


def decode_compressed(bytes: Any, compression_type: str = "", name: str | None = None) -> Tensor:
    """Decompresses strings.

    Args:
        bytes: The strings.
        compression_type: "ZLIB", "GZIP" or "": not compressed.
        name: Without effect.

    Raises:
        InvalidArgumentError: Another kind of compression.
        DataLossError: A string is not compressed in this way.
    """
    kinds = {"": lambda text: text, "GZIP": gzip.decompress, "ZLIB": zlib.decompress}
    if compression_type not in kinds:
        raise InvalidArgumentError(f"Only ZLIB, GZIP or NONE are supported compressions, not {compression_type!r}")
    try:
        return each_string(kinds[compression_type], strings_of(bytes, "bytes"))
    except (OSError, EOFError, zlib.error) as error:
        raise DataLossError(f"The string is not {compression_type}: {error}") from error


_PARSED: Final = {"float16": float, "bfloat16": float, "float32": float, "float64": float, "int32": int, "int64": int}


def decode_csv(
    records: Any,
    record_defaults: Any,
    field_delim: str = ",",
    use_quote_delim: bool = True,
    na_value: str = "",
    select_cols: Any = None,
    name: str | None = None,
) -> list[Tensor]:
    """Divides lines into columns.

    Args:
        records: Strings, each one line.
        record_defaults: For each column a list of its default, whose dtype is that of the column; an empty tensor: the
            column is required.
        field_delim: The separator of fields.
        use_quote_delim: Whether double quotes enclose fields.
        na_value: Another text for a field without value.
        select_cols: Numbers of the columns to return, ascending; None: all.
        name: Without effect.

    Returns:
        A tensor for each column, of the shape of `records`.

    Raises:
        InvalidArgumentError: A line with another number of fields, a field without value that is required, or one that
            is no number.
    """
    lines = strings_of(records, "records")
    defaults = [convert_to_tensor(default) for default in record_defaults]
    values = [np.reshape(default.__array__(), -1) for default in defaults]
    chosen = range(len(defaults)) if select_cols is None else list(select_cols)
    columns = [np.empty(lines.size, default.dtype.np) for default in defaults]
    quoting: Any = csv.QUOTE_MINIMAL if use_quote_delim else csv.QUOTE_NONE
    for number, line in enumerate(lines.reshape(-1)):
        fields = next(csv.reader([line.decode()], delimiter=field_delim, quoting=quoting), [""])
        if select_cols is None and len(fields) != len(defaults):
            raise InvalidArgumentError(f"Expect {len(defaults)} fields but have {len(fields)} in record {number}")
        for place, column in enumerate(chosen):
            field = fields[column]
            if field in ("", na_value):
                if not values[place].size:
                    raise InvalidArgumentError(f"Field {column} is required but missing in record {number}!")
                columns[place][number] = values[place][0]
                continue
            columns[place][number] = _field(field, defaults[place].dtype, column, number)
    return [convert_to_tensor(column.reshape(lines.shape)) for column in columns]


def _field(field: str, dtype: dtypes.DType, column: int, number: int) -> Any:
    if dtype is dtypes.string:
        return field.encode()
    try:
        return _PARSED[dtype.name](field)
    except ValueError:
        raise InvalidArgumentError(f"Field {column} in record {number} is not a valid {dtype.name}: {field}") from None
