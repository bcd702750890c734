"""Answers: the base class of the models, and the readers that replace JSON by arrays and models."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias, cast

from teletape_client.tensors import safetensors
from teletape_client.tensors.values import SparseGradient

if TYPE_CHECKING:
    from typing import Self

    from teletape_client.tensors.values import Array, Value

#: Reads a part of an answer: its JSON, and the tensors that came with it in safetensors, by name.
Reader: TypeAlias = "Callable[[Any, Mapping[str, Array]], Any]"


class Model:
    """A part of an answer; its members are attributes, also those that this client does not know."""

    _readers: ClassVar[Mapping[str, Reader]] = {}
    _renamed: ClassVar[Mapping[str, str]] = {}  #: Members whose names are words of Python's: from_ is `from`.

    @classmethod
    def read(cls, facts: Mapping[str, Any], tensors: Mapping[str, Array]) -> Self:
        """Returns the model with these members."""
        model = cls.__new__(cls)
        members = model.__dict__
        members.update(facts)
        for name, reader in cls._readers.items():
            member = members.get(name)
            if member is not None:
                members[name] = reader(member, tensors)
        for attribute, name in cls._renamed.items():
            members[attribute] = members.pop(name)
        return model

    def __repr__(self) -> str:
        members = ", ".join(f"{name}={value!r}" for name, value in vars(self).items())
        return f"{type(self).__name__}({members})"


class BySource(Model):
    """An answer with a derivative for each source, or for each output: `answer["w"]` is that of w."""

    derivatives: Any

    def __getitem__(self, name: str) -> Array:
        """Returns a derivative, a sparse one or a part as the whole array with zeros for the rest.

        Raises:
            KeyError: The answer has no derivative of this name.
            ValueError: It does not exist; the message says why, and what to do.
        """
        named = {str(getattr(part, "source", None) or part.name): part for part in self.derivatives}
        return _of_part(named, name)


class ByName(Model):
    """An answer with values by id: `answer["y"]` is that of y."""

    values: Any
    why: Any = None

    def __getitem__(self, name: str) -> Array:
        """Returns a value, a sparse gradient as the whole array.

        Raises:
            KeyError: The answer has no value of this name.
            ValueError: It is a derivative that does not exist; the message says why, and what to do.
        """
        if name not in self.values:
            raise KeyError(_missing("value of", name, self.values))
        reasons: Mapping[str, Any] = self.why or {}
        return _dense(name, self.values[name], reasons.get(name))


class ByPair(Model):
    """An answer with second derivatives: `answer["w", "b"]` is that of w and b."""

    derivatives: Any

    def __getitem__(self, names: tuple[str, str]) -> Array:
        """Returns the derivative by two sources, a sparse one as the whole array.

        Raises:
            KeyError: The answer has no such pair.
            ValueError: It does not exist; the message says why, and what to do.
        """
        pairs = {(str(block.source), str(block.second_source)): block for row in self.derivatives for block in row}
        return _of_part(pairs, names)


def _of_part(parts: Mapping[Any, Any], name: Any) -> Array:
    if name not in parts:
        raise KeyError(_missing("derivative by", name, parts))
    chosen = parts[name]
    if (some := getattr(chosen, "part", None)) is not None:
        shape = tuple(some.shape) if some.values.ndim > 1 else (math.prod(some.shape),)
        return SparseGradient(some.values, some.indices, shape).to_dense().reshape(some.shape)
    return _dense(name, chosen.value, chosen.why)


def _missing(kind: str, name: Any, present: Iterable[Any]) -> str:
    return f"the answer has no {kind} {name!r}; it has {', '.join(map(repr, present)) or 'none'}"


def _dense(name: Any, value: Any, why: Any) -> Array:
    if value is None:
        reason = "" if why is None else f": {'; '.join(filter(None, (why.message, why.advice)))}"
        raise ValueError(f"there is no derivative by {name!r}{reason}")
    return value.to_dense() if isinstance(value, SparseGradient) else value


def list_of(reader: Reader) -> Reader:
    """Returns the reader of a list of such parts."""
    return lambda members, tensors: [reader(member, tensors) for member in members]


def map_of(reader: Reader) -> Reader:
    """Returns the reader of an object of such parts, of which some may be null."""
    return lambda members, tensors: {
        name: None if member is None else reader(member, tensors) for name, member in members.items()
    }


def rows_or(item: Reader, block: Reader) -> Reader:
    """Returns the reader of a list of items, or of a list of rows of blocks."""
    row = list_of(block)
    return lambda members, tensors: [
        row(member, tensors) if isinstance(member, list) else item(member, tensors) for member in members
    ]


def number(value: float | str, tensors: Mapping[str, Array]) -> float:
    """Reads a number that may be a word, as JSON writes NaN and the infinities."""
    return float(value)


def tensor(facts: Mapping[str, Any], tensors: Mapping[str, Array]) -> Value:
    """Reads a tensor, or a sparse gradient."""
    if "tensor" in facts:
        return tensors[facts["tensor"]]
    if "values" in facts:
        values, indices = facts["values"], facts["indices"]
        return SparseGradient(array(values, tensors), array(indices, tensors), tuple(facts["shape"]))
    return _from_json(facts)


def array(facts: Mapping[str, Any], tensors: Mapping[str, Array]) -> Array:
    """Reads a tensor that is no sparse gradient."""
    return tensors[facts["tensor"]] if "tensor" in facts else _from_json(facts)


def anything(value: Any, tensors: Mapping[str, Array]) -> Any:
    """Reads a part of any JSON, and replaces tensors by arrays."""
    if isinstance(value, list):
        return list_of(anything)(value, tensors)
    if not isinstance(value, Mapping):
        return value
    if "dtype" in value and "shape" in value and not value.keys().isdisjoint(("data", "tensor", "values")):
        return tensor(cast("Mapping[str, Any]", value), tensors)
    return map_of(anything)(value, tensors)


def _from_json(facts: Mapping[str, Any]) -> Array:
    """Returns the array of numbers in JSON: nested or flat, with words for NaN and the infinities."""
    import numpy as np

    shape = facts["shape"]
    dtype, is_bits = safetensors.dtype_of(facts["dtype"])
    if is_bits:
        dtype = np.dtype(np.float32)
    if dtype.kind == "c":
        parts: Array = np.array(facts["data"], "f8" if dtype.itemsize == 16 else "f4").reshape(-1, 2)
        return parts.view(dtype).reshape(shape)
    if facts.get("complete", True) is False and math.prod(shape) > len(facts["data"]):
        raise ValueError(f"the answer shows the first {len(facts['data'])} elements only, of the shape {shape}")
    return np.array(facts["data"], dtype).reshape(shape)


def answer_of(content: bytes, content_type: str) -> tuple[Any, dict[str, Array]]:
    """Returns the JSON of an answer, and the tensors that came with it.

    Raises:
        ValueError: It is neither JSON nor safetensors.
    """
    if not content_type.startswith(safetensors.SAFETENSORS):
        return json.loads(content), {}
    tensors, texts = safetensors.read(content)
    return json.loads(texts["answer"]), tensors
