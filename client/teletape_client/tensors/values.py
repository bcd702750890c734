"""The types of tensors in arguments of callers and in answers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias

if TYPE_CHECKING:  # NumPy is loaded with the first tensor
    import numpy as np

    Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]
    Number: TypeAlias = bool | int | float | complex | np.generic
    #: Numbers in nested lists, all lists of a level of one length.
    Nested: TypeAlias = "Sequence[Number | Array | Nested]"
    #: A tensor to send: an array, which keeps its dtype, or numbers without one, which take that of what they meet.
    TensorInput: TypeAlias = Array | Number | Nested
    #: A tensor, or the id of one that the session has.
    Input: TypeAlias = "TensorInput | str | Named"
    #: The id of something in a session, or what `session.variables[id]` and the like return.
    Id: TypeAlias = "str | Named"
    #: A tensor of an answer.
    Value: TypeAlias = "Array | SparseGradient"


class Named(Protocol):
    """Something of a session that has an id."""

    @property
    def id(self) -> str:
        """The id."""
        ...


class SparseGradient(NamedTuple):
    """The gradient of a table of which only some rows were used.

    Attributes:
        values: The rows, shape [rows, …].
        indices: Which row of the table each is, shape [rows]; an index may come twice, and its rows are then added.
        shape: Of the table.
    """

    values: Array
    indices: Array
    shape: tuple[int, ...]

    def to_dense(self) -> Array:
        """Returns the whole gradient, with zeros in the rows that were not used."""
        import numpy as np

        dense = np.zeros(self.shape, self.values.dtype)
        np.add.at(dense, self.indices, self.values)
        return dense
