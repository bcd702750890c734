"""Elements that are sent to a session on a server before the program uses them."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from teletape.core.calls.dispatch import constant
from teletape.core.errors import TeletapeError
from teletape.core.sessions.current import current
from teletape.core.sessions.session import Session
from teletape.core.tensors import dtypes
from teletape.core.tensors.tensor import EagerTensor, Tensor
from teletape.tf.data.elements.leaves import Lazy, Rows
from teletape.tf.data.elements.mapped import Element, Mapped
from teletape_engine.arrays import HostArray

if TYPE_CHECKING:  # a program without a server loads none of it
    from teletape.core.sessions.sending.batch_buffer import Name

_LEAST: Final = 256 << 10  #: Bytes of an element that are worth a request of their own.


class Sent(Lazy):
    """A leaf whose values a session on a server has already.

    Args:
        values: Its values.
        home: The session.
        name: The tensor's name there.
    """

    __slots__ = ("_home", "_name", "_values")
    known = True

    def __init__(self, values: HostArray, home: weakref.ref[Session], name: Name) -> None:
        self._values, self._home, self._name = values, home, name

    def tensor(self) -> Tensor:
        """Returns it as a tensor; another session than the one that has it gets it again."""
        owner = current()
        if owner is self._home():
            return EagerTensor(owner.constant_ahead(self._values, self._name), owner)
        return constant(self._values)

    def host(self) -> HostArray:
        """Returns its values on the host."""
        return self._values

    @property
    def shape(self) -> tuple[int, ...]:
        """Its shape."""
        return self._values.shape  # type: ignore[no-any-return]  # a host array's

    @property
    def dtype(self) -> dtypes.DType:
        """Its dtype."""
        return dtypes.as_dtype(self._values.dtype)


def sent(element: Element, home: weakref.ref[Session]) -> Element:
    """Returns an element whose arrays the session has, if they are large; otherwise the element itself.

    A session that does not answer is left to the program, which sends the element with its own commands.
    """
    if isinstance(element, Mapped):  # a function's result is computed when the program uses it
        return element
    leaves = element
    places = [i for i, leaf in enumerate(leaves) if _is_sendable(leaf)]
    arrays = [_values(leaves[i]) for i in places]
    session = home()
    if session is None or sum(array.nbytes for array in arrays) < _LEAST:
        return element
    try:
        names = session.sent_ahead(arrays)
    except TeletapeError:
        return element
    results = list(leaves)
    for i, array, name in zip(places, arrays, names, strict=True):
        results[i] = Sent(array, home, name)
    return results


def _is_sendable(leaf: Any) -> bool:
    if isinstance(leaf, Rows):
        return leaf.array.is_sent_in_parts
    return isinstance(leaf, np.ndarray) and leaf.dtype != object


def _values(leaf: Any) -> HostArray:
    return np.ascontiguousarray(leaf.host() if isinstance(leaf, Rows) else leaf)
