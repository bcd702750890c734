"""Batches and answers of every shape, as Hypothesis strategies, and what it means that two are the same."""

import dataclasses
import math
from typing import Any

import numpy as np
from hypothesis import strategies as st

from teletape_engine import commands
from teletape_engine.commands import COMMANDS, Batch, FieldKind, OnFailure
from teletape_engine.commands.fields import Field, fields_of
from teletape_engine.commands.results import Answer, Failure, Fetched, Kinds, SlicesArrays, Specs
from teletape_engine.recording.values import Literal
from teletape_engine.spec import DTYPES, Spec

words = st.text(min_size=1, max_size=8)
ids = st.one_of(st.integers(0, 2**63), words)
numbers = st.one_of(
    st.booleans(), st.integers(-(2**100), 2**100), st.floats(), st.complex_numbers(allow_nan=True, allow_infinity=True)
)
literals = st.builds(Literal, numbers)


@st.composite
def tensors(draw: st.DrawFn) -> np.ndarray[Any, Any]:
    dtype = DTYPES[draw(st.sampled_from(sorted(DTYPES)))]
    shape = tuple(draw(st.lists(st.integers(0, 3), max_size=4)))
    size = math.prod(shape)
    if dtype.kind == "b":
        return np.array(draw(st.lists(st.booleans(), min_size=size, max_size=size)), dtype).reshape(shape)
    data = draw(st.binary(min_size=size * dtype.itemsize, max_size=size * dtype.itemsize))
    return np.frombuffer(data, np.uint8).view(dtype).reshape(shape)


inputs = st.one_of(ids, literals, tensors())
scalars = st.one_of(st.none(), st.booleans(), st.integers(-(2**70), 2**70), st.floats(), st.complex_numbers(), words)
attrs = st.dictionaries(words, st.one_of(scalars, st.lists(scalars, max_size=3).map(tuple)), max_size=3)


def several(item: st.SearchStrategy[Any]) -> st.SearchStrategy[tuple[Any, ...]]:
    return st.lists(item, max_size=3).map(tuple)


calls = st.builds(commands.Call, words, several(inputs), several(ids), attrs, st.none() | words)
steps = st.one_of(
    calls,
    st.builds(commands.Assign, words, inputs, words),
    st.builds(commands.CallFunction, ids, several(inputs), several(ids), st.booleans()),
)
KINDS = {
    FieldKind.ID: ids,
    FieldKind.FUNCTION_ID: ids,
    FieldKind.NAME: words,
    FieldKind.FLAG: st.booleans(),
    FieldKind.COUNT: st.integers(0, 2**40),
    FieldKind.INPUT: inputs,
    FieldKind.TENSOR: st.one_of(literals, tensors()),
    FieldKind.ATTRIBUTES: attrs,
    FieldKind.STEP: steps,
}


def values_of(field: Field) -> st.SearchStrategy[Any]:
    values = KINDS[field.kind]
    if field.is_list:
        values = several(st.none() | values if field.null_members else values)
    return st.none() | values if field.nullable else values


def every(cls: Any) -> st.SearchStrategy[Any]:
    return st.builds(cls, **{field.name: values_of(field) for field in fields_of(cls)})


batches = st.builds(
    Batch,
    several(st.one_of([every(cls) for cls in COMMANDS.values()])),
    several(ids),
    st.integers(0, 2**23),
    st.integers(0, 2**40),
    st.sampled_from([b"", bytes(range(16))]),
    several(ids),
    st.sampled_from(OnFailure),
    st.booleans(),
)


@st.composite
def fetched(draw: st.DrawFn) -> Fetched:
    array: Any = draw(tensors())
    spec = Spec.of(array.shape, array.dtype)
    if draw(st.booleans()):
        rows = np.arange(array.shape[0] if array.ndim else 0, dtype=np.int32)
        return Fetched(3, draw(ids), SlicesArrays(array, rows, spec), spec, True)
    if draw(st.booleans()) and array.size:
        return Fetched(0, draw(ids), array.reshape(-1)[:1], spec, False)
    return Fetched(2, draw(ids), array, spec, True)


specs = tensors().map(lambda array: Spec.of(array.shape, array.dtype))
kinds = st.sampled_from(["none", "dense", "slices"])
details = st.dictionaries(words, st.one_of(st.integers(-9, 2**40), words, st.lists(words).map(tuple)), max_size=2)
failures = st.builds(
    Failure,
    st.integers(0, 99),
    words,
    words,
    st.none() | words,
    st.none() | words,
    details,
)
answers = st.builds(
    Answer,
    several(
        st.one_of(
            fetched(), st.builds(Kinds, st.integers(0, 9), several(kinds)), st.builds(Specs, st.just(1), several(specs))
        )
    ),
    st.none() | failures,
    st.integers(0, 2**50),
)


def same(a: Any, b: Any) -> bool:
    """Equal to the bit: types, dtypes, NaN payloads' being NaN, the sign of zero."""
    if isinstance(a, np.ndarray):
        if not isinstance(b, np.ndarray) or (a.dtype, a.shape) != (b.dtype, b.shape):
            return False
        return a.tobytes() == b.tobytes() or same_numbers(a, b)
    if type(a) is not type(b):
        return False
    if isinstance(a, Literal):
        return same(a.array, b.array)
    if isinstance(a, float):
        return repr(a) == repr(b)
    if isinstance(a, complex):
        return repr(a.real) == repr(b.real) and repr(a.imag) == repr(b.imag)
    if dataclasses.is_dataclass(a):
        return all(same(getattr(a, f.name), getattr(b, f.name)) for f in dataclasses.fields(a))
    if isinstance(a, tuple):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict):
        return [*a] == [*b] and all(same(a[key], b[key]) for key in a)
    return bool(a == b)


def same_numbers(a: Any, b: Any) -> bool:
    """JSON has one NaN: arrays that differ in nothing but the payloads of their NaNs are the same."""
    if a.dtype.kind == "c":
        part = np.dtype(f"f{a.dtype.itemsize // 2}")
        a, b = (np.ascontiguousarray(item).reshape(-1).view(part) for item in (a, b))
    with np.errstate(invalid="ignore"):  # a NaN with a payload
        a, b = (item.reshape(-1).astype(np.float64) for item in (a, b))
    return bool(np.array_equal(a, b, equal_nan=True) and np.array_equal(np.signbit(a[a == 0]), np.signbit(b[b == 0])))
