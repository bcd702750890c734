"""`tf.nest`: flattens structures of lists, tuples, named tuples and dicts into leaves, and packs them again.

Everything else is a leaf: tensors, arrays, strings, None, sets, dataclasses without TensorFlow's `__tf_flatten__`.
Dicts are walked by sorted key.
`expand_composites` takes ragged tensors apart, into their flat values and row splits; an IndexedSlices and a
SparseTensor always stay one leaf.
"""

from __future__ import annotations

import itertools
import logging
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, MappingView, MutableMapping, Sequence
from dataclasses import is_dataclass
from typing import Any, Final

from teletape.core.program.logs import log_first_n
from teletape.core.tensors.composite import RaggedValue

# issubclass of abstract base classes takes ten times longer than this look-up, and flatten needs it once per leaf. The
# table is bounded, because it keeps classes alive, which a program may make by the thousand.
_nested_types: Final[dict[type, bool]] = {}
_NESTED_BOUND: Final = 4096
_END: Final = object()


class _Dot:
    """A leaf, in the outline of a structure that an error shows."""

    def __repr__(self) -> str:
        return "."


_DOT: Final = _Dot()


def is_nested(seq: object) -> bool:
    """Whether `seq` is a list, tuple, dict or the like, and not a leaf."""
    kind = type(seq)
    nested = _nested_types.get(kind)
    if nested is None:
        nested = issubclass(kind, Sequence | Mapping | MappingView) and not issubclass(kind, str | bytes)
        nested = nested or _is_dataclass(kind)
        if len(_nested_types) >= _NESTED_BOUND:
            _nested_types.clear()
        _nested_types[kind] = nested
    return nested


def flatten(structure: Any, expand_composites: bool = False) -> list[Any]:
    """The leaves of `structure`, from left to right, those of dicts by sorted key; a leaf gives `[leaf]`.

    Raises:
        TypeError: The keys of a dict cannot be sorted.
    """
    leaves: list[Any] = []
    if is_nested(structure):
        _gather(structure, leaves)
    else:
        leaves.append(structure)
    return [part for leaf in leaves for part in _parts(leaf)] if expand_composites else leaves


def _parts(leaf: Any) -> Sequence[Any]:
    """The tensors of a ragged tensor; any other leaf."""
    return leaf.parts() if isinstance(leaf, RaggedValue) else (leaf,)


def pack_sequence_as(structure: Any, flat_sequence: Any, expand_composites: bool = False) -> Any:
    """Packs the leaves `flat_sequence` into the structure `structure`: the reverse of `flatten`.

    Containers keep their type, dicts the order of their keys; views and ranges become lists.

    Args:
        structure: The pattern; its leaves do not matter.
        flat_sequence: As many leaves as it has, in the order of `flatten`; they may be structures themselves.
        expand_composites: See the module.

    Raises:
        TypeError: `flat_sequence` is not a sequence, or the keys of a dict cannot be sorted.
        ValueError: The numbers of leaves differ.
    """
    if not is_nested(flat_sequence) or isinstance(flat_sequence, Mapping):
        raise TypeError(
            f"Attempted to pack value:\n  {_cut(flat_sequence)}\ninto a structure, but found "
            f"incompatible type `{type(flat_sequence)}` instead."
        )
    if expand_composites:
        flat_sequence = _put_together(flatten(structure), list(flat_sequence))
    if not is_nested(structure):
        if len(flat_sequence) != 1:
            raise ValueError(
                f"The target structure is of type `{type(structure)}`\n  {_cut(structure)}\nHowever the input is a "
                f"sequence ({type(flat_sequence)}) of length {len(flat_sequence)}.\n  {_cut(flat_sequence)}\n"
                "nest cannot guarantee that it is safe to map one to the other."
            )
        return next(iter(flat_sequence))
    leaves = iter(flat_sequence)
    try:
        packed = _pack(structure, leaves)
        complete = next(leaves, _END) is _END
    except StopIteration:
        complete = False
    if not complete:
        raise ValueError(
            f"Could not pack sequence. Structure had {len(flatten(structure))} atoms, but flat_sequence had "
            f"{len(flat_sequence)} items.  Structure: {structure}, flat_sequence: {flat_sequence}."
        )
    return packed


def _put_together(leaves: Sequence[Any], flat: list[Any]) -> list[Any]:
    """A flat sequence in which the parts of each ragged tensor among the leaves are one again."""
    packed, rest = [], iter(flat)
    for leaf in leaves:
        parts = list(itertools.islice(rest, len(_parts(leaf))))
        whole = isinstance(leaf, RaggedValue) and len(parts) == len(leaf.parts())
        packed += [leaf.structure().of(parts)] if whole else parts
    return [*packed, *rest]


def map_structure(func: Callable[..., Any], *structure: Any, **kwargs: bool) -> Any:
    """The structure of `func(a, b, …)` over the leaves a, b, … at the same position of each structure.

    Args:
        func: Called with one leaf of each structure, in the order of `flatten`.
        structure: One or more structures that are nested alike; the result has the first one's types.
        kwargs: `check_types` (True) as in `assert_same_structure`; `expand_composites`.

    Raises:
        TypeError: `func` is not callable; container types differ.
        ValueError: No structure, another keyword, or structures nested in different ways.
    """
    if not callable(func):
        raise TypeError(f"func must be callable, got: {func}")
    if not structure:
        raise ValueError("Must provide at least one structure")
    check_types = kwargs.pop("check_types", True)
    expand = kwargs.pop("expand_composites", False)
    if kwargs:
        raise ValueError(
            f"Only valid keyword arguments are `check_types` and `expand_composites`, not: `{'`, `'.join(kwargs)}`"
        )
    for other in structure[1:]:
        assert_same_structure(structure[0], other, check_types=check_types)
    columns = zip(*(flatten(each, expand) for each in structure), strict=True)
    return pack_sequence_as(structure[0], [func(*column) for column in columns], expand)


def assert_same_structure(nest1: Any, nest2: Any, check_types: bool = True, expand_composites: bool = False) -> None:
    """Raise unless both are nested in the same way. Leaves are not compared.

    Args:
        nest1: A structure or a leaf.
        nest2: Another.
        check_types: Whether container types and the keys of dicts must agree too. All lists count as one type, and
            so do all mappings, and named tuples of the same name and fields.
        expand_composites: See the module.

    Raises:
        ValueError: Lengths, keys or nesting differ.
        TypeError: Container types differ.
    """
    difference = _difference(nest1, nest2, check_types)
    if difference is None:
        return
    error, specifically = difference
    first, second = (map_structure(lambda _: _DOT, each) for each in (nest1, nest2))
    raise error(
        "The two structures don't have the same nested structure.\n\n"
        f"First structure: {_described(nest1)}\n\nSecond structure: {_described(nest2)}\n\n"
        f"More specifically: {specifically}\n"
        f"Entire first structure:\n{first}\nEntire second structure:\n{second}"
    )


def _is_dataclass(kind: type) -> bool:
    """Whether a value is a dataclass that defines its leaves by TensorFlow's protocol `__tf_flatten__`."""
    return is_dataclass(kind) and hasattr(kind, "__tf_flatten__") and hasattr(kind, "__tf_unflatten__")


def _children(structure: Any) -> Iterable[Any]:
    if _is_dataclass(type(structure)):
        _, components = structure.__tf_flatten__()
        return components  # type: ignore[no-any-return]  # a tuple, by the protocol
    return [structure[key] for key in sorted(structure)] if isinstance(structure, Mapping) else structure


def _gather(structure: Any, leaves: list[Any]) -> None:
    for child in structure if type(structure) is list else _children(structure):
        if is_nested(child):
            _gather(child, leaves)
        else:
            leaves.append(child)


def _pack(structure: Any, leaves: Iterator[Any]) -> Any:
    kind = type(structure)
    if isinstance(structure, Mapping):
        try:
            keys = sorted(structure)
        except TypeError:
            raise TypeError("nest only supports dicts with sortable keys.") from None
        return _mapping_like(structure, {key: _pack_child(structure[key], leaves) for key in keys})
    if _is_dataclass(kind):
        metadata, components = structure.__tf_flatten__()
        return kind.__tf_unflatten__(metadata, tuple([_pack_child(child, leaves) for child in components]))
    children = [_pack_child(child, leaves) for child in structure]
    if kind is list or isinstance(structure, MappingView | range):
        return children
    return kind(*children) if _is_namedtuple(structure) else kind(children)


def _pack_child(child: Any, leaves: Iterator[Any]) -> Any:
    return _pack(child, leaves) if is_nested(child) else next(leaves)


def _mapping_like(pattern: Mapping[Any, Any], values: dict[Any, Any]) -> Any:
    kind: Any = type(pattern)
    if isinstance(pattern, MutableMapping):
        mapping = defaultdict(pattern.default_factory) if isinstance(pattern, defaultdict) else kind()
        for key in pattern:
            mapping[key] = values[key]
        return mapping
    log_first_n(
        logging.WARNING,
        f"Mapping types may not work well with tf.nest. Prefer using MutableMapping for {kind}",
        1,
        "nest.mapping",
    )
    try:
        return kind((key, values[key]) for key in pattern)
    except TypeError as error:
        raise TypeError(
            f"Error creating an object of type {kind} like {pattern}. Note that it must accept a single positional "
            f"argument representing an iterable of key-value pairs, in addition to self. Cause: {error}"
        ) from error


def _is_namedtuple(structure: Any) -> bool:
    return isinstance(structure, tuple) and hasattr(structure, "_fields")


def _difference(a: Any, b: Any, check_types: bool) -> tuple[type[Exception], str] | None:
    """Returns the first difference in nesting between `a` and `b`: the exception to raise and its message."""
    nested = is_nested(a)
    if nested is not is_nested(b):
        sequence, leaf = (a, b) if nested else (b, a)
        return ValueError, (
            f'Substructure "{_described(sequence)}" is a sequence, while substructure "{_described(leaf)}" is not'
        )
    if not nested:
        return None
    if check_types and not _same_type(a, b):
        return TypeError, (  # TensorFlow's words: it calls every container a named tuple here
            "The two namedtuples don't have the same sequence type. "
            f"First structure {_described(a)} has type {type(a).__name__}, "
            f"while second structure {_described(b)} has type {type(b).__name__}"
        )
    if check_types and isinstance(a, Mapping) and a.keys() != b.keys():
        return ValueError, (
            "The two dictionaries don't have the same set of keys. "
            f"First structure has keys {_described(list(a))}, while second structure has keys {_described(list(b))}"
        )
    left, right = iter(_children(a)), iter(_children(b))
    while True:
        first, second = next(left, _END), next(right, _END)
        if first is _END and second is _END:
            return None
        if first is _END or second is _END:
            return ValueError, (
                "The two structures don't have the same number of elements. "
                f"First structure: {_described(a)}. Second structure: {_described(b)}"
            )
        difference = _difference(first, second, check_types)
        if difference:
            return difference


def _same_type(a: Any, b: Any) -> bool:
    if type(a) is type(b):
        return True
    if _is_namedtuple(a) and _is_namedtuple(b):
        return type(a).__name__ == type(b).__name__ and a._fields == b._fields
    return any(isinstance(a, kind) and isinstance(b, kind) for kind in (list, Mapping))


def _described(structure: Any) -> str:
    return f"type={type(structure).__name__} str={structure!s}"


def _cut(value: Any) -> str:
    text = str(value)
    return text if len(text) <= 100 else text[:100] + "..."
