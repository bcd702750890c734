"""Attributes of ops: what a forward function's keyword-only parameters say, as a schema that checks and canonicalises.

The annotation is the kind. Canonical attributes are hashable, and interned per op, so that they can be part of a key.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np

from teletape_engine.errors import BadAttributeError, InvalidArgumentError
from teletape_engine.spec import DType as DType
from teletape_engine.spec import Number as Number
from teletape_engine.spec import Shape as Shape
from teletape_engine.spec import dtype_of

Axis: TypeAlias = int
Axes: TypeAlias = int | tuple[int, ...] | None
Ints: TypeAlias = tuple[int, ...]
Pairs: TypeAlias = tuple[tuple[int, int], ...]
Slices: TypeAlias = tuple[int | tuple[int | None, int | None, int | None] | str | None, ...]

_WRITTEN: Final = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}  # what JSON has no numbers for
_KEPT: Final = 1024  # interned attribute sets an op; past that the table starts anew


class Attrs(dict[str, Any]):
    """Canonical attributes of one op. Interned, so identity is equality."""

    __slots__ = ()
    __hash__ = object.__hash__  # type: ignore[assignment]  # interned: a dict by content, a key by identity


NO_ATTRS: Final = Attrs()
REQUIRED: Final = inspect.Parameter.empty


def _bool(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    raise TypeError("true or false")


def _int(value: Any) -> int:
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    raise TypeError("an integer")


def _float(value: Any) -> float:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
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
        return tuple(_int(one) for one in value)
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
    if isinstance(value, list | tuple) and all(isinstance(one, list | tuple) and len(one) == 2 for one in value):
        return tuple((_int(before), _int(after)) for before, after in value)
    raise TypeError("a list of [before, after] pairs")


def _slices(value: Any) -> Slices:
    expected = 'a list of integers, [start, stop, step] triples (each or null), "..." and null'
    if not isinstance(value, list | tuple):
        raise TypeError(expected)
    out: list[Any] = []
    for one in value:
        if one is None or (isinstance(one, str) and one == "..."):
            out.append(one)
        elif isinstance(one, list | tuple) and len(one) == 3:
            out.append(tuple(None if part is None else _int(part) for part in one))
        elif isinstance(one, int) and not isinstance(one, bool):
            out.append(one)
        else:
            raise TypeError(expected)
    if out.count("...") > 1:
        raise TypeError(expected + ', with "..." at most once')
    return tuple(out)


class Kind(NamedTuple):
    """One kind of attribute: how to read a value of it, and its JSON schema."""

    read: Callable[[Any], Any]
    schema: dict[str, Any]


_INTS: Final = {"type": "array", "items": {"type": "integer"}}
_TRIPLE: Final = {"type": "array", "items": {"type": ["integer", "null"]}, "minItems": 3, "maxItems": 3}
_WORD: Final = {"enum": ["...", None]}
KINDS: Final[dict[str, Kind]] = {
    "bool": Kind(_bool, {"type": "boolean"}),
    "int": Kind(_int, {"type": "integer"}),
    "Axis": Kind(_int, {"type": "integer"}),
    "float": Kind(_float, {"type": ["number", "string"]}),
    "Number": Kind(_number, {"type": ["number", "boolean", "string", "array"]}),
    "str": Kind(_str, {"type": "string"}),
    "DType": Kind(dtype_of, {"type": "string"}),
    "Ints": Kind(_ints, _INTS),
    "Shape": Kind(_shape, {"type": "array", "items": {"type": "integer", "minimum": 0}}),
    "Axes": Kind(_axes, {"anyOf": [{"type": "integer"}, _INTS, {"type": "null"}]}),
    "Pairs": Kind(_pairs, {"type": "array", "items": {**_INTS, "minItems": 2, "maxItems": 2}}),
    "Slices": Kind(_slices, {"type": "array", "items": {"anyOf": [{"type": "integer"}, _TRIPLE, _WORD]}}),
}


class Attr(NamedTuple):
    """One attribute of an op: name, kind (a key of KINDS), default (REQUIRED: none), whether it may be null."""

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
        return [plain(one) for one in value]
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
        """Reads the keyword-only parameters of `forward`; an annotation that is no kind is a TypeError at import."""
        attrs = []
        for parameter in inspect.signature(forward).parameters.values():
            if parameter.kind is parameter.KEYWORD_ONLY:
                kind = str(parameter.annotation).removesuffix(" | None")
                if kind not in KINDS:
                    raise TypeError(f"{op}: attribute {parameter.name!r} is annotated {kind!r}, which is no kind")
                optional = kind == "Axes" or kind != parameter.annotation
                attrs.append(Attr(parameter.name, kind, parameter.default, optional))
        return cls(op, attrs)

    def canonical(self, given: Mapping[str, Any]) -> Attrs:
        """The interned attributes for what a caller gave.

        Raises:
            BadAttributeError: A name the op has not, a value of the wrong kind, a required one missing.
        """
        if not given and not self.attrs:
            return NO_ATTRS
        if type(given) is Attrs:
            return given
        try:
            key = tuple([(name, _exact(value)) for name, value in given.items()])
            found = self._seen.get(key)
        except TypeError:  # lists, as JSON has them, are no keys
            return self._read(given)
        if found is None:
            if len(self._seen) >= _KEPT:
                self._seen.clear()
            found = self._seen[key] = self._read(given)
        return found

    def _read(self, given: Mapping[str, Any]) -> Attrs:
        unknown = [name for name in given if name not in self._by_name]
        if unknown:
            known = ", ".join(self._by_name) or "none"
            raise BadAttributeError(f"op {self.op!r} has no attribute {unknown[0]!r}; it takes: {known}", op=self.op)
        values: dict[str, Any] = {}
        for name, kind, default, optional in self.attrs:
            value = given.get(name, default)
            if value is REQUIRED:
                raise BadAttributeError(f"op {self.op!r} needs the attribute {name!r}", op=self.op, attribute=name)
            if value is None and optional:
                values[name] = None
                continue
            try:
                values[name] = KINDS[kind].read(value)
            except (TypeError, InvalidArgumentError) as error:
                wanted = f"must be {error}, found {value!r}" if isinstance(error, TypeError) else f"is an {error}"
                text = f"attribute {name!r} of op {self.op!r} {wanted}"
                raise BadAttributeError(text, op=self.op, attribute=name) from None
        key = tuple([(name, _exact(value)) for name, value in values.items()])
        if len(self._interned) >= _KEPT:
            self._interned.clear()
        return self._interned.setdefault(key, Attrs(values))

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
