"""Values for other libraries: DLPack capsules, and waiting in the event loop of asyncio or trio."""

from __future__ import annotations

import contextvars
import sys
from collections.abc import Callable, Generator
from typing import Any, Final, TypeVar

import numpy as np

from teletape.sessions.sending.strands import acting, running_task
from teletape_engine.arrays import HostArray
from teletape_engine.errors import InvalidArgumentError

T = TypeVar("T")

CPU: Final = (1, 0)  #: The device of exported values: DLPack's number of the kind, and the device.


def dlpack_of(values: Any, **options: Any) -> Any:
    """Returns the capsule of a host array or NumPy scalar.

    Raises:
        InvalidArgumentError: DLPack has no such dtype, or NumPy's part of it.
    """
    array: HostArray = np.array(values)  # a writable copy: old consumers refuse a read-only capsule
    try:
        return array.__dlpack__(**options)
    except (BufferError, TypeError) as error:
        raise InvalidArgumentError(f"a tensor of {array.dtype.name} has no DLPack form here: {error}") from None


def waited_for(function: Callable[[], T]) -> Generator[Any, Any, T]:
    """Returns an iterator for `await`: the function runs in a thread, and the event loop goes on meanwhile.

    Raises:
        RuntimeError: There is no event loop of asyncio or trio.
    """
    context = contextvars.copy_context()
    context.run(acting.set, running_task())
    call = context.run
    asyncio = sys.modules.get("asyncio")  # a library that is not imported runs no loop
    if asyncio is not None and asyncio._get_running_loop() is not None:
        result: T = yield from asyncio.get_running_loop().run_in_executor(None, call, function).__await__()
        return result
    trio = sys.modules.get("trio")
    if trio is not None:
        result = yield from trio.to_thread.run_sync(call, function).__await__()
        return result
    raise RuntimeError("await needs the event loop of asyncio or trio")


class Awaitable:
    """The awaitable that `tf.sync_async()` returns; it can be awaited once.

    Args:
        function: The function that runs in a thread.
    """

    def __init__(self, function: Callable[[], Any]) -> None:
        self._function = function

    def __await__(self) -> Generator[Any, Any, Any]:
        return waited_for(self._function)
