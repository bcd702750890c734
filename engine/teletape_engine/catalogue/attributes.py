"""Attributes of ops: the keyword-only parameters of a forward function, as a schema that checks values.

A parameter's annotation is the kind of the attribute. Canonical attributes are hashable, and interned per op, so that
they can be part of a key.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterable, Mapping
from sys import getsizeof
from types import MappingProxyType
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np

from teletape_engine.errors import BadAttributeError, InvalidArgumentError
from teletape_engine.spec import Number, dtype_of
from teletape_engine.suggestions import with_nearest

Axis: TypeAlias = int
Axes: TypeAlias = int | tuple[int, ...] | None
Ints: TypeAlias = tuple[int, ...]
Pairs: TypeAlias = tuple[tuple[int, int], ...]
Slices: TypeAlias = tuple[int | tuple[int | None, int | None, int | None] | str | None, ...]

_WRITTEN: Final = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}  # JSON has no numbers for these
_MAX_INTERNED: Final = 1024  # attribute sets of one op; past that a part of its table is emptied
_SMALL: Final = 2048  # bytes of attributes that are interned; larger ones belong to their call alone


class Attrs(dict[str, Any]):
    """Canonical attributes of an op. Interned, so identity is equality; large ones are objects of their own.

    Attributes:
        nbytes: What they take beyond what a few numbers and short texts do.
    """

    __slots__ = ("nbytes",)
    __hash__ = object.__hash__  # type: ignore[assignment]  # interned: a dict by content, a key by identity

    def __init__(self, values: Mapping[str, Any] = MappingProxyType({})) -> None:
        super().__init__(values)
        self.nbytes = max(0, sum(map(_nbytes, values.values())) - _SMALL)


def keep(table: dict[Any, Any], key: Any, value: Any, most: int) -> None:
    """Puts an entry into a table of at most `most`. A full one first loses every eighth entry.

    Not those used longest ago: to note each use would cost a hit as much as the look-up itself.
    """
    if len(table) >= most:
        for old in list(table)[::8]:
            table.pop(old, None)  # another thread may have removed it
    table[key] = value


def _nbytes(value: Any) -> int:
    return getsizeof(value) + (sum(map(_nbytes, value)) if isinstance(value, tuple) else 0)


NO_ATTRS: Final = Attrs()
REQUIRED: Final = inspect.Parameter.empty


def _bool(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    raise TypeError("true or false")


def _int(value: Any) -> int:
    if isinstance(value, int) and not isinstance(value, bool):
        if -(2**63) <= value < 2**63:
            return value
        raise TypeError("an integer of 64 bits")
    raise TypeError("an integer")


def _float(value: Any) -> float:
    if isinstance(value, int | float) and not isinstance(value, bool):
        try:
            return float(value)
        except OverflowError:
            raise TypeError("a number that float64 holds") from None
    if isinstance(value, str) and value in _WRITTEN:
        return _WRITTEN[value]
    raise TypeError("a number")


def _number(value: Any) -> Number:
    if isinstance(value, bool | int | float | complex):
        return value
    if isinstance(value, list | tuple) and len(value) == 2:
        return complex(*map(_float, value))
    return _float(value)


def _str(value: Any) -> str:
    if isinstance(value, str):
        return value
    raise TypeError("a string")


def _ints(value: Any) -> Ints:
    if isinstance(value, list | tuple):
        return tuple(_int(item) for item in value)
    raise TypeError("a list of integers")


def _shape(value: Any) -> Ints:
    shape = _ints(value)
    if any(n < 0 for n in shape):
        raise TypeError("a list of lengths, none negative")
    return shape


def _axes(value: Any) -> Axes:
    if value is None or isinstance(value, list | tuple):
        return None if value is None else _ints(value)
    return _int(value)


def _pairs(value: Any) -> Pairs:
    if isinstance(value, list | tuple) and all(isinstance(pair, list | tuple) and len(pair) == 2 for pair in value):
        return tuple((_int(before), _int(after)) for before, after in value)
    raise TypeError("a list of [before, after] pairs")


def _slices(value: Any) -> Slices:
    expected = 'a list of integers, [start, stop, step] triples (each or null), "..." and null'
    if not isinstance(value, list | tuple):
        raise TypeError(expected)
    out: list[Any] = []
    for part in value:
        if part is None or (isinstance(part, str) and part == "..."):
            out.append(part)
        elif isinstance(part, list | tuple) and len(part) == 3:
            out.append(tuple(None if bound is None else _int(bound) for bound in part))
        elif isinstance(part, int) and not isinstance(part, bool):
            out.append(part)
        else:
            raise TypeError(expected)
    if out.count("...") > 1:
        raise TypeError(expected + ', with "..." at most once')
    return tuple(out)


class AttributeKind(NamedTuple):
    """A kind of attribute: how a value of it is read, and its JSON schema."""

    read: Callable[[Any], Any]
    schema: dict[str, Any]


_INTS: Final = {"type": "array", "items": {"type": "integer"}}
_TRIPLE: Final = {"type": "array", "items": {"type": ["integer", "null"]}, "minItems": 3, "maxItems": 3}
_WORD: Final = {"enum": ["...", None]}
KINDS: Final[dict[str, AttributeKind]] = {
    "bool": AttributeKind(_bool, {"type": "boolean"}),
    "int": AttributeKind(_int, {"type": "integer"}),
    "Axis": AttributeKind(_int, {"type": "integer"}),
    "float": AttributeKind(_float, {"type": ["number", "string"]}),
    "Number": AttributeKind(_number, {"type": ["number", "boolean", "string", "array"]}),
    "str": AttributeKind(_str, {"type": "string"}),
    "DType": AttributeKind(dtype_of, {"type": "string"}),
    "Ints": AttributeKind(_ints, _INTS),
    "Shape": AttributeKind(_shape, {"type": "array", "items": {"type": "integer", "minimum": 0}}),
    "Axes": AttributeKind(_axes, {"anyOf": [{"type": "integer"}, _INTS, {"type": "null"}]}),
    "Pairs": AttributeKind(_pairs, {"type": "array", "items": {**_INTS, "minItems": 2, "maxItems": 2}}),
    "Slices": AttributeKind(_slices, {"type": "array", "items": {"anyOf": [{"type": "integer"}, _TRIPLE, _WORD]}}),
}


class Attr(NamedTuple):
    """An attribute of an op: name, kind (a key of KINDS), default (REQUIRED: none), whether it may be null."""

    name: str
    kind: str
    default: Any
    optional: bool


def _exact(value: Any) -> Any:
    """A key under which equal means identical: 1, 1.0 and True are equal, as are 0.0 and -0.0, and are different."""
    kind = value.__class__
    if kind is tuple:
        return (kind, *map(_exact, value))
    return (kind, repr(value)) if kind is float or kind is complex else (kind, value)


def plain(value: Any) -> Any:
    """A canonical attribute as JSON and msgpack have it: lists for tuples, names for dtypes, pairs for complex."""
    if isinstance(value, tuple):
        return [plain(item) for item in value]
    if isinstance(value, np.dtype):
        return value.name
    if isinstance(value, complex):
        return [plain(value.real), plain(value.imag)]
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return value


class Schema:
    """The attributes an op takes, in order, and the canonical sets seen so far."""

    def __init__(self, op: str, attrs: Iterable[Attr]) -> None:
        self.op = op
        self.attrs = tuple(attrs)
        self._by_name = {attr.name: attr for attr in self.attrs}
        self._interned: dict[Any, Attrs] = {}
        self._seen: dict[Any, Attrs] = {}

    @classmethod
    def of(cls, op: str, forward: Callable[..., Any]) -> Schema:
        """Reads the keyword-only parameters of `forward`; TypeError for an annotation that is no kind."""
        attrs = []
        for parameter in inspect.signature(forward).parameters.values():
            if parameter.kind is parameter.KEYWORD_ONLY:
                kind = str(parameter.annotation).removesuffix(" | None")
                if kind not in KINDS:
                    raise TypeError(f"{op}: attribute {parameter.name!r} is annotated {kind!r}, which is no kind")
                optional = kind == "Axes" or kind != parameter.annotation
                attrs.append(Attr(parameter.name, kind, parameter.default, optional))
        return cls(op, attrs)

    def canonical(self, values: Mapping[str, Any]) -> Attrs:
        """The interned attributes for a caller's values.

        Raises:
            BadAttributeError: A name that the op does not have, a value of the wrong kind, or a required one missing.
        """
        if not values and not self.attrs:
            return NO_ATTRS
        if type(values) is Attrs:
            return values
        try:
            key = tuple([(name, _exact(value)) for name, value in values.items()])
            attrs = self._seen.get(key)
        except TypeError:  # lists, as JSON has them, are no keys
            return self._read(values)
        if attrs is None:
            attrs = self._read(values)
            if not attrs.nbytes:
                keep(self._seen, key, attrs, _MAX_INTERNED)
        return attrs

    def _read(self, values: Mapping[str, Any]) -> Attrs:
        unknown = [name for name in values if name not in self._by_name]
        if unknown:
            names = ", ".join(self._by_name) or "none"
            text = f"op {self.op!r} has no attribute {unknown[0]!r}; it takes: {names}"
            raise BadAttributeError(with_nearest(text, unknown[0], self._by_name), op=self.op)
        read: dict[str, Any] = {}
        for name, kind, default, optional in self.attrs:
            value = values.get(name, default)
            if value is REQUIRED:
                raise BadAttributeError(f"op {self.op!r} needs the attribute {name!r}", op=self.op, attribute=name)
            if value is None and optional:
                read[name] = None
                continue
            try:
                read[name] = KINDS[kind].read(value)
            except (TypeError, InvalidArgumentError) as error:
                problem = f"must be {error}, found {value!r}" if isinstance(error, TypeError) else f"is an {error}"
                text = f"attribute {name!r} of op {self.op!r} {problem}"
                raise BadAttributeError(text, op=self.op, attribute=name) from None
        key = tuple([(name, _exact(value)) for name, value in read.items()])
        attrs = self._interned.get(key)
        if attrs is None:
            attrs = Attrs(read)
            if not attrs.nbytes:
                if len(self._interned) >= _MAX_INTERNED:
                    self._seen.clear()  # it would give objects that the other table is about to lose
                keep(self._interned, key, attrs, _MAX_INTERNED)
        return attrs

    def json(self) -> dict[str, Any]:
        """The schema as JSON Schema, for the reference and `GET /v1/ops`."""
        properties = {}
        for name, kind, default, optional in self.attrs:
            schema = dict(KINDS[kind].schema)
            if optional and kind != "Axes":
                schema = {"anyOf": [schema, {"type": "null"}]}
            if default is not REQUIRED:
                schema["default"] = plain(default)
            properties[name] = schema
        required = [attr.name for attr in self.attrs if attr.default is REQUIRED]
        return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}
