"""TFRecord files: records with their lengths and checksums, in a file that may be compressed.

A record is its length (8 bytes, little-endian), the checksum of that, its bytes, and the checksum of those. A checksum
is CRC32C, rotated and moved by a constant. Source: tensorflow/core/lib/io/record_writer.h.
"""

from __future__ import annotations

import gzip
import struct
import zlib
from collections.abc import Iterator
from types import TracebackType
from typing import IO, Any, Final, Self

from teletape.core.errors import DataLossError, InvalidArgumentError, NotFoundError, OpError
from teletape.tf.files.extra import needed

__all__ = ["TFRecordOptions", "TFRecordWriter"]

_LENGTH: Final = struct.Struct("<QI")
_CHECKSUM: Final = struct.Struct("<I")
_MASK: Final = 0xA282EAD8
_CHUNK: Final = 1 << 20  #: Bytes that are read and decompressed at a time.


def _masked(data: bytes) -> int:
    crc: int = needed("google_crc32c", "TFRecord files").value(data)
    return (((crc >> 15) | (crc << 17)) + _MASK) & 0xFFFFFFFF


class _Inflated:
    """The contents of a file that zlib has compressed."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file, self._inflater, self._ready = file, zlib.decompressobj(), b""

    def read(self, size: int | None = None) -> bytes:
        """Returns the next bytes, fewer at the end; None: all."""
        while (size is None or len(self._ready) < size) and (chunk := self._file.read(_CHUNK)):
            self._ready += self._inflater.decompress(chunk)
        data, self._ready = self._ready[:size], self._ready[size:]
        return data

    def close(self) -> None:
        """Closes the file."""
        self._file.close()


def opened(path: str, compression: str | None) -> Any:
    """Opens a file for reading.

    Args:
        path: The path.
        compression: "", "GZIP" or "ZLIB".

    Raises:
        NotFoundError: There is no such file.
        InvalidArgumentError: Another compression.
    """
    if compression not in (None, "", "GZIP", "ZLIB"):
        raise InvalidArgumentError(f"Unsupported compression_type {compression!r}: use '', 'GZIP' or 'ZLIB'.")
    try:
        file = open(path, "rb")  # noqa: SIM115  # the caller closes it
    except FileNotFoundError:
        raise NotFoundError(f"{path}; No such file or directory") from None
    except OSError as error:
        raise OpError(f"{path}; {error.strerror}") from error
    if compression == "GZIP":
        file.close()
        return gzip.open(path)
    return _Inflated(file) if compression == "ZLIB" else file


def records(path: str, compression: str | None = None) -> Iterator[bytes]:
    """The records of a file.

    Raises:
        NotFoundError: There is no such file.
        DataLossError: A checksum is wrong, or the file ends within a record.
    """
    file = opened(path, compression)
    at = 0
    try:
        while head := file.read(_LENGTH.size):
            if len(head) < _LENGTH.size:
                raise DataLossError(f"truncated record at {at}")
            length, checksum = _LENGTH.unpack(head)
            if _masked(head[:8]) != checksum:
                raise DataLossError(f"corrupted record at {at}")
            data = file.read(length + _CHECKSUM.size)
            if len(data) < length + _CHECKSUM.size:
                raise DataLossError(f"truncated record at {at}")
            record = data[:length]
            if _masked(record) != _CHECKSUM.unpack(data[length:])[0]:
                raise DataLossError(f"corrupted record at {at + _LENGTH.size}")
            at += _LENGTH.size + length + _CHECKSUM.size
            yield record
    finally:
        file.close()


class TFRecordOptions:
    """Options of a TFRecordWriter.

    Args:
        compression_type: "", "GZIP" or "ZLIB".
        options: TensorFlow's others, without effect.
    """

    def __init__(self, compression_type: str | None = None, **options: Any) -> None:
        self.compression_type = compression_type


class TFRecordWriter:
    """Writes records to a file. A `with` statement closes it.

    Args:
        path: The path; a file there is replaced.
        options: "", "GZIP" or "ZLIB", or TFRecordOptions.

    Raises:
        NotFoundError: The folder does not exist.
        InvalidArgumentError: Another compression.
    """

    def __init__(self, path: Any, options: Any = None) -> None:
        compression = options.compression_type if isinstance(options, TFRecordOptions) else options
        if compression not in (None, "", "GZIP", "ZLIB"):
            raise InvalidArgumentError(f"Unsupported compression_type {compression!r}: use '', 'GZIP' or 'ZLIB'.")
        needed("google_crc32c", "TFRecord files")
        try:
            self._file: IO[bytes] | None = open(path, "wb")  # noqa: SIM115  # `close` closes it
        except FileNotFoundError:
            raise NotFoundError(f"{path}; No such file or directory") from None
        windows = {"GZIP": 31, "ZLIB": 15}
        self._deflater = zlib.compressobj(wbits=windows[compression]) if compression else None

    def write(self, record: bytes | str) -> None:
        """Writes one record.

        Raises:
            ValueError: The writer is closed.
        """
        if self._file is None:
            raise ValueError("the writer is closed")
        data = record.encode() if isinstance(record, str) else bytes(record)
        length = struct.pack("<Q", len(data))
        parts = length + _CHECKSUM.pack(_masked(length)) + data + _CHECKSUM.pack(_masked(data))
        self._file.write(parts if self._deflater is None else self._deflater.compress(parts))

    def flush(self) -> None:
        """Writes buffered records to the file."""
        if self._file is not None:
            if self._deflater is not None:
                self._file.write(self._deflater.flush(zlib.Z_SYNC_FLUSH))
            self._file.flush()

    def close(self) -> None:
        """Completes and closes the file."""
        if self._file is not None:
            if self._deflater is not None:
                self._file.write(self._deflater.flush())
            self._file.close()
            self._file = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
