"""Hollow arrays: shape, dtype and bytes as arrays have them, and no elements; with the backend and the ledger of them.

A `Value` holds a hollow array in place of an array. What the engine does with arrays then happens to specs: handlers,
tapes and the count of memory are the same code. Elements are known of small arrays that the caller has given.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any, Final

import numpy as np

from teletape_engine.arrays.cpu import CPU
from teletape_engine.catalogue.operand import Operand
from teletape_engine.derivatives.reports.counting import Counted, Counter
from teletape_engine.errors import UnimplementedError
from teletape_engine.recording.values import Uid, spec_array
from teletape_engine.spec import Spec

MOST_KNOWN: Final = 256  #: Elements of an array, at the most, whose elements are followed.


class Unpriced(UnimplementedError):
    """What a command takes cannot be known without computing it: the failure says nothing of the batch itself."""

    def __init__(self, message: str) -> None:
        super().__init__(message, priced=False)


class _Flags:
    """Those of an array of its own."""

    c_contiguous = owndata = writeable = True


class Hollow(Operand):
    """An array of which the spec is known.

    Attributes:
        known: Its elements, if they are; the array is not written into.
        exact: Whether the shape is certain; else it is an upper bound.
    """

    __slots__ = ("exact", "known")
    runtime: Ledger
    flags = _Flags
    base = None

    def __init__(self, runtime: Ledger, counted: Counted, known: Any = None, *, exact: bool = True) -> None:
        super().__init__(runtime, counted)
        self.known, self.exact = known, exact

    @property
    def nbytes(self) -> int:
        """Bytes of its elements."""
        return self.value.spec.nbytes  # type: ignore[no-any-return]  # a Counted

    @property
    def size(self) -> int:
        """Its elements."""
        return self.value.spec.size  # type: ignore[no-any-return]  # a Counted

    @property
    def ndim(self) -> int:
        """Its axes."""
        return len(self.shape)

    def copy(self) -> Hollow:
        """The same in memory of its own."""
        return self.runtime.new(self.value.spec, self.known, exact=self.exact)

    def __setitem__(self, index: Any, part: Any) -> None:
        """Takes the place of an assignment to elements: they are not there."""
        self.known = None


class Ledger(Counter):
    """Counts what a batch would take; its operands are hollow arrays.

    Attributes:
        doubts: What depends on values: the value's uid, and what depends on it.
    """

    def __init__(self) -> None:
        super().__init__()
        self.doubts: list[tuple[Uid, str]] = []

    def counts(self) -> list[int]:
        """What was counted so far."""
        return [self.ops, self.written, *self.work.values()]

    def count_again(self, more: Sequence[int]) -> None:
        """Adds to the `counts`."""
        ops, written, *work = more
        self.ops += ops
        self.written += written
        for kernel, amount in zip(self.work, work, strict=True):
            self.work[kernel] += amount

    def operand(self, counted: Counted) -> Hollow:
        """A value as a hollow array."""
        return Hollow(self, counted)

    def new(self, spec: Spec, known: Any = None, *, exact: bool = True) -> Hollow:
        """A hollow array in memory of its own."""
        counted = Counted(self, spec)
        self.peak = max(self.peak, self.live)
        return Hollow(self, counted, known if spec.size <= MOST_KNOWN else None, exact=exact)


class Hollows:
    """The backend of hollow arrays; see `arrays.Backend`."""

    name = "cpu"
    device = "cpu"
    xp: Any = np
    refused: frozenset[str] = frozenset()
    block = 1

    def put(self, array: Any) -> Any:
        """The array itself."""
        return array

    def get(self, array: Any) -> Any:
        """A hollow array as a `SpecArray`, or its elements if they are known."""
        if not isinstance(array, Hollow):
            return np.asarray(array)
        return spec_array(array.shape, array.dtype) if array.known is None else array.known

    def quiet(self) -> AbstractContextManager[Any]:
        """Small arrays are computed: without warnings."""
        return np.errstate(all="ignore")

    def kernel_call(self) -> Callable[..., Any]:
        """Calls a function as it is."""
        return lambda function, *args: function(*args)

    def limit_memory(self, nbytes: int) -> None:
        """Does nothing: there are no arrays."""

    def use_host_memory(self, allocate: Callable[[int], Any]) -> None:
        """Does nothing."""

    def broken(self) -> str:
        """Returns nothing: it works."""
        return ""

    def base(self, array: Any) -> tuple[int, int]:
        """The memory of a hollow array, or of an array of the host."""
        if isinstance(array, Hollow):
            buffer = array.value.buffer
            return id(buffer), buffer.nbytes
        return CPU.base(array)
