"""`tf.io.gfile`: files and folders of this machine."""

from __future__ import annotations

import glob as globs
import io
import os
import shutil
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Any, Final, NamedTuple

from teletape.core.errors import (
    AlreadyExistsError,
    FailedPreconditionError,
    InvalidArgumentError,
    NotFoundError,
    PermissionDeniedError,
)
from teletape.tf.files.host import errors_of, text_of

_MODES: Final = ("r", "w", "a", "r+", "w+", "a+")


class GFile:
    """A file, opened when it is first read or written. A context manager, and an iterator over lines.

    Args:
        name: The path.
        mode: "r", "w", "a", "r+", "w+" or "a+"; with "b" contents are bytes, else text in UTF-8.

    Raises:
        InvalidArgumentError: Another mode.
    """

    def __init__(self, name: Any, mode: str = "r") -> None:
        if mode.replace("b", "") not in _MODES:
            raise InvalidArgumentError("mode is not 'r' or 'w' or 'a' or 'r+' or 'w+' or 'a+'")
        self._name, self._mode = name, mode
        self._file: Any = None

    @property
    def name(self) -> Any:
        """The path."""
        return self._name

    @property
    def mode(self) -> str:
        """The mode in which it is opened."""
        return self._mode

    def _opened(self) -> Any:
        if self._file is None:
            with errors_of(self._name):
                encoding = None if "b" in self._mode else "utf-8"
                self._file = open(text_of(self._name), self._mode, encoding=encoding)  # noqa: SIM115  # closed by close
        return self._file

    def read(self, n: int = -1) -> Any:
        """Returns the next `n` bytes, or characters of text; -1: the rest.

        Raises:
            NotFoundError: There is no such file.
            PermissionDeniedError: It is not open for reading.
        """
        return self._used("reading", lambda file: file.read(n))

    def readline(self) -> Any:
        """Returns the next line with its end; empty at the end of the file."""
        return self._used("reading", lambda file: file.readline())

    def readlines(self) -> list[Any]:
        """Returns the remaining lines."""
        lines: list[Any] = self._used("reading", lambda file: file.readlines())
        return lines

    def write(self, file_content: Any) -> None:
        """Writes text or bytes.

        Raises:
            PermissionDeniedError: It is not open for writing.
        """
        self._used("writing", lambda file: file.write(file_content))

    def _used(self, purpose: str, use: Callable[[Any], Any]) -> Any:
        try:
            return use(self._opened())
        except io.UnsupportedOperation:
            raise PermissionDeniedError(f"File isn't open for {purpose}") from None

    def seek(self, offset: int | None = None, whence: int = 0, position: int | None = None) -> None:
        """Moves to an offset; `position` is the older name of `offset`."""
        place = position if offset is None else offset
        if place is None:
            raise TypeError("seek(): offset argument required")
        self._opened().seek(place, whence)

    def seekable(self) -> bool:
        """Whether `seek` works: yes."""
        return True

    def tell(self) -> int:
        """Returns the offset in the file."""
        place: int = self._opened().tell()
        return place

    def size(self) -> int:
        """Returns the length in bytes."""
        return stat(self._name).length

    def flush(self) -> None:
        """Writes buffered contents to the file."""
        if self._file is not None:
            self._file.flush()

    def close(self) -> None:
        """Closes the file."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def next(self) -> Any:
        """Returns the next line.

        Raises:
            StopIteration: The end of the file.
        """
        return self.__next__()

    def __iter__(self) -> GFile:
        return self

    def __next__(self) -> Any:
        line = self.readline()
        if not line:
            raise StopIteration
        return line

    def __enter__(self) -> GFile:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class Stat(NamedTuple):
    """The length of a file in bytes, its time in nanoseconds, and whether it is a folder."""

    length: int
    mtime_nsec: int
    is_directory: bool


def stat(path: Any) -> Stat:
    """Returns the length, the time and the kind of a file or folder.

    Raises:
        NotFoundError: There is none.
    """
    with errors_of(path):
        entry = os.stat(text_of(path))
    return Stat(entry.st_size, entry.st_mtime_ns, isdir(path))


def exists(path: Any) -> bool:
    """Whether there is a file or folder."""
    return os.path.exists(text_of(path))


def isdir(path: Any) -> bool:
    """Whether there is a folder."""
    return os.path.isdir(text_of(path))


def listdir(path: Any) -> list[str]:
    """Returns the names in a folder.

    Raises:
        NotFoundError: There is no such folder.
    """
    if not isdir(path):
        raise NotFoundError(f"Could not find directory {text_of(path)}")
    return os.listdir(text_of(path))


def glob(pattern: Any) -> list[str]:
    """Returns the paths that match a pattern, or any of a list of patterns."""
    patterns = pattern if isinstance(pattern, list | tuple) else [pattern]
    return [path for each in patterns for path in sorted(globs.glob(text_of(each)))]


def join(path: Any, *paths: Any) -> Any:
    """Joins the parts of a path."""
    return os.path.join(path, *paths)


def mkdir(path: Any) -> None:
    """Makes a folder; nothing happens if it exists.

    Raises:
        NotFoundError: Its parent does not exist.
    """
    if not isdir(path):
        with errors_of(path):
            os.mkdir(text_of(path))


def makedirs(path: Any) -> None:
    """Makes a folder and its parents."""
    with errors_of(path):
        os.makedirs(text_of(path), exist_ok=True)


def copy(src: Any, dst: Any, overwrite: bool = False) -> None:
    """Copies a file.

    Raises:
        AlreadyExistsError: `dst` exists, and `overwrite` is false.
        NotFoundError: There is no `src`.
    """
    _check_free(dst, overwrite)
    with errors_of(src):
        shutil.copyfile(text_of(src), text_of(dst))


def rename(src: Any, dst: Any, overwrite: bool = False) -> None:
    """Renames a file or folder.

    Raises:
        AlreadyExistsError: `dst` exists, and `overwrite` is false.
        NotFoundError: There is no `src`.
    """
    _check_free(dst, overwrite)
    with errors_of(src):
        os.replace(text_of(src), text_of(dst))


def _check_free(path: Any, overwrite: bool) -> None:
    if not overwrite and exists(path):
        raise AlreadyExistsError("file already exists")


def remove(path: Any) -> None:
    """Removes a file.

    Raises:
        NotFoundError: There is none.
        FailedPreconditionError: It is a folder.
    """
    if isdir(path):
        raise FailedPreconditionError(f"{text_of(path)}; Is a directory")
    with errors_of(path):
        os.remove(text_of(path))


def rmtree(path: Any) -> None:
    """Removes a folder and everything in it.

    Raises:
        NotFoundError: There is none.
    """
    if not exists(path):
        raise NotFoundError(f"{text_of(path)} not found")
    with errors_of(path):
        shutil.rmtree(text_of(path))


def walk(
    top: Any, topdown: bool = True, onerror: Callable[[OSError], None] | None = None
) -> Iterator[tuple[str, list[str], list[str]]]:
    """Returns an iterator over a folder and those in it: the path, the names of folders, the names of files."""
    return os.walk(text_of(top), topdown, onerror)


def get_registered_schemes() -> list[str]:
    """Returns the schemes that paths may have: only local ones."""
    return [""]
