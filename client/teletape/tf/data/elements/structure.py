"""The structures of elements: tuples, named tuples and dicts. Lists are leaves here, unlike in `tf.nest`."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any


def flatten(structure: Any) -> list[Any]:
    """Returns the leaves from left to right, those of dicts by sorted key; a leaf gives `[leaf]`."""
    leaves: list[Any] = []
    _gather(structure, leaves)
    return leaves


def _gather(structure: Any, leaves: list[Any]) -> None:
    if isinstance(structure, tuple):
        for part in structure:
            _gather(part, leaves)
    elif isinstance(structure, Mapping):
        for key in sorted(structure):
            _gather(structure[key], leaves)
    else:
        leaves.append(structure)


def pack(pattern: Any, leaves: Sequence[Any]) -> Any:
    """Returns leaves in the structure of a pattern: the reverse of `flatten`. Containers keep their types."""
    if pattern.__class__ is tuple and len(pattern) == len(leaves):
        for part in pattern:
            if isinstance(part, tuple | Mapping):
                break
        else:
            return tuple(leaves)
    return _pack(pattern, iter(leaves))


def _pack(pattern: Any, leaves: Iterator[Any]) -> Any:
    if isinstance(pattern, tuple):
        parts = [_pack(part, leaves) for part in pattern]
        return type(pattern)(*parts) if hasattr(pattern, "_fields") else tuple(parts)
    if isinstance(pattern, Mapping):
        packed = {key: _pack(pattern[key], leaves) for key in sorted(pattern)}
        mapping: Any = copy.copy(pattern)  # keeps the type, and the factory of a defaultdict
        for key in pattern:
            mapping[key] = packed[key]
        return mapping
    return next(leaves)


def map_leaves(function: Callable[[Any], Any], structure: Any) -> Any:
    """Returns `function` of each leaf, in the structure."""
    return pack(structure, [function(leaf) for leaf in flatten(structure)])


def same(first: Any, second: Any) -> bool:
    """Whether two structures are nested alike: the same types of containers, lengths and keys."""
    if isinstance(first, tuple):
        return (
            isinstance(second, tuple)
            and len(first) == len(second)
            and getattr(first, "_fields", None) == getattr(second, "_fields", None)
            and all(map(same, first, second))
        )
    if isinstance(first, Mapping):
        return (
            isinstance(second, Mapping)
            and first.keys() == second.keys()
            and all(same(first[key], second[key]) for key in first)
        )
    return not isinstance(second, tuple | Mapping)
