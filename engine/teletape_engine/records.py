"""Records of which each request makes some: to type checkers frozen dataclasses, and made as quickly as others.

A frozen dataclass sets each of its fields by a call of `object.__setattr__`, so that making one takes three times as
long as one that anybody may change. Here only type checkers keep a program from changing a record.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

Class = TypeVar("Class", bound=type[Any])

if TYPE_CHECKING:
    from dataclasses import dataclass as record
else:

    def record(*, frozen: bool, slots: bool, eq: bool = True) -> Callable[[Class], Class]:
        """Returns a decorator: `dataclasses.dataclass` without a check at run time that nothing sets a field."""
        assert frozen, "a record does not change"
        return dataclasses.dataclass(slots=slots, eq=eq, unsafe_hash=eq)


__all__ = ["record"]
