"""Values of tensors for functions that run in this process, and errors of the operating system as TensorFlow's."""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Callable, Iterator
from typing import Any, Final

import numpy as np

from teletape.core.calls.dispatch import convert_to_tensor
from teletape.core.errors import (
    AlreadyExistsError,
    FailedPreconditionError,
    InvalidArgumentError,
    NotFoundError,
    PermissionDeniedError,
    TeletapeError,
    UnknownError,
)
from teletape.core.functions.not_traceable import NotTraceable
from teletape.core.sessions.current import current
from teletape.core.tensors import dtypes
from teletape.core.tensors.tensor import Tensor
from teletape.tf.print_op import values

_ERRORS: Final[dict[int, type[TeletapeError]]] = {
    errno.EACCES: PermissionDeniedError,
    errno.EEXIST: AlreadyExistsError,
    errno.EISDIR: FailedPreconditionError,
    errno.ENOENT: NotFoundError,
    errno.ENOTDIR: FailedPreconditionError,
    errno.ENOTEMPTY: FailedPreconditionError,
    errno.EPERM: PermissionDeniedError,
}


@contextlib.contextmanager
def errors_of(path: Any) -> Iterator[None]:
    """A context manager in which an OSError becomes TensorFlow's error of a file.

    Raises:
        teletape.errors.OpError: NotFoundError, AlreadyExistsError, FailedPreconditionError, PermissionDeniedError or
            UnknownError, with the path and the system's words.
    """
    try:
        yield
    except OSError as error:
        kind = _ERRORS.get(error.errno or 0, UnknownError)
        raise kind(f"{text_of(path)}; {os.strerror(error.errno or 0)}") from error


def text_of(path: Any) -> str:
    """Returns a path as text, from a string, bytes, a path or a tensor of one string."""
    if hasattr(path, "numpy"):
        path = path.numpy()
    return os.fsdecode(path)


def bytes_of(value: Any, name: str) -> bytes:
    """Returns the bytes of one string.

    Raises:
        InvalidArgumentError: Several strings; as `strings_of`.
        TypeError: As `strings_of`.
    """
    array = strings_of(value, name)
    if array.shape:
        raise InvalidArgumentError(f"`{name}` must be scalar but got shape{list(array.shape)}")
    contents: bytes = array.item()
    return contents


def array_of(tensor: Tensor) -> Any:
    """Returns the value of a tensor as an array. A function that is traced then runs op by op.

    Raises:
        NotTraceable: In a trace, also if the value is known there: a file may have changed at the next call.
    """
    if current().tracing:
        raise NotTraceable("reads a file, or bytes of one", "tf.data.Dataset.map before the function")
    return np.asarray(values([tensor])[0])


def strings_of(value: Any, name: str) -> Any:
    """Returns an array of the bytes of strings.

    Raises:
        InvalidArgumentError: A tensor of another dtype, outside a trace.
        TypeError: Other values that are no strings.
    """
    tensor = convert_to_tensor(value)
    if tensor.dtype is not dtypes.string:
        refusal = InvalidArgumentError if isinstance(value, Tensor) and not current().tracing else TypeError
        raise refusal(f"`{name}` must be strings, got a tensor of {tensor.dtype.name}")
    return array_of(tensor).astype(object)


def each_string(function: Callable[[bytes], bytes], strings: Any) -> Tensor:
    """Returns a tensor of a function's result for each string."""
    results = np.empty(strings.shape, object)
    for place in np.ndindex(strings.shape):
        results[place] = function(strings[place])
    return convert_to_tensor(results)
