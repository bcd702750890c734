"""Attributes are checked, made canonical and interned; what a caller gave wrong is said in words."""

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import teletape_engine.ops  # noqa: F401  # fills the catalogue
from teletape_engine.catalogue.attributes import KINDS, NO_ATTRS, Attrs, Schema, plain
from teletape_engine.catalogue.op import CATALOGUE
from teletape_engine.errors import BadAttributeError
from teletape_engine.spec import DTYPES


def forward(
    xp,
    x,
    *,
    flag: "bool" = False,
    count: "int" = 1,
    ratio: "float" = 0.5,
    number: "Number" = 0,  # noqa: F821  # annotations are kinds
    dtype: "DType | None" = None,  # noqa: F821
    axis: "Axes" = None,  # noqa: F821
    shape: "Shape" = (),  # noqa: F821
    index: "Slices" = (),  # noqa: F821
    pairs: "Pairs" = (),  # noqa: F821
):
    """All kinds."""


SCHEMA = Schema.of("all", forward)


def test_equal_attributes_are_one_object():
    schema = CATALOGUE["reduce_sum"].schema
    first = schema.canonical({"axis": [0, 1]})
    assert first is schema.canonical({"axis": (0, 1), "keepdims": False})
    assert first is schema.canonical(first)
    assert first == {"axis": (0, 1), "keepdims": False}
    assert isinstance(first, Attrs)


def test_an_op_without_attributes_takes_none():
    assert CATALOGUE["add"].attrs({}) is NO_ATTRS
    with pytest.raises(BadAttributeError, match="op 'add' has no attribute 'axis'; it takes: none"):
        CATALOGUE["add"].attrs({"axis": 0})


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ({"number": 1}, {"number": 1.0}),
        ({"number": 1}, {"number": True}),
        ({"number": 0.0}, {"number": -0.0}),
        ({"number": 1}, {"number": 1 + 0j}),
        ({"ratio": 0.0}, {"ratio": -0.0}),
        ({"axis": 0}, {"axis": (0,)}),
    ],
)
def test_equal_numbers_of_another_kind_are_other_attributes(a, b):
    assert SCHEMA.canonical(a) is not SCHEMA.canonical(b)
    assert SCHEMA.canonical(a) is SCHEMA.canonical(dict(a))
    assert str(SCHEMA.canonical(b)[next(iter(b))]) == str(next(iter(b.values())))


def test_a_wrong_value_is_refused_also_after_an_equal_right_one():
    SCHEMA.canonical({"shape": (2, 3)})
    for shape in [(2.0, 3), (True, 3)]:
        with pytest.raises(BadAttributeError):
            SCHEMA.canonical({"shape": (1, 3)}) and SCHEMA.canonical({"shape": shape})


def test_nan_is_one_attribute():
    assert SCHEMA.canonical({"ratio": math.nan}) is SCHEMA.canonical({"ratio": float("nan")})


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("flag", 1, "must be true or false, found 1"),
        ("count", 1.5, "must be an integer, found 1.5"),
        ("count", True, "must be an integer, found True"),
        ("count", 2**63, "must be an integer of 64 bits, found 9223372036854775808"),
        ("pairs", [[0, -(2**63) - 1]], "must be an integer of 64 bits"),
        ("ratio", "x", "must be a number, found 'x'"),
        ("number", None, "must be a number, found None"),
        ("number", [1, 2, 3], "must be a number"),
        ("dtype", "float31", "is an unknown dtype 'float31': the dtypes are bfloat16, bool, complex128"),
        ("dtype", 7, "is an unknown dtype 7"),
        ("axis", "0", "must be an integer, found '0'"),
        ("axis", [0.0], "must be an integer, found"),
        ("shape", [-1], "must be a list of lengths, none negative"),
        ("shape", 3, "must be a list of integers, found 3"),
        ("shape", None, "must be a list of integers, found None"),
        ("index", 0, r"must be a list of integers, \[start, stop, step\] triples"),
        ("index", [[1, 2]], "triples"),
        ("index", ["..", 1], "triples"),
        ("index", ["...", "..."], r"at most once"),
        ("pairs", [[1, 2, 3]], r"must be a list of \[before, after\] pairs"),
        ("pairs", [[1, 2.5]], "must be an integer"),
    ],
)
def test_a_wrong_value_is_named(name, value, text):
    with pytest.raises(BadAttributeError, match=f"attribute '{name}' of op 'all' {text}|{text}") as caught:
        SCHEMA.canonical({name: value})
    assert caught.value.details == {"op": "all", "attribute": name}
    assert caught.match(f"attribute '{name}' of op 'all'")


def test_a_missing_attribute_is_named():
    with pytest.raises(BadAttributeError, match="op 'cast' needs the attribute 'dtype'"):
        CATALOGUE["cast"].attrs({})


def test_an_annotation_that_is_no_kind_is_a_defect():
    def bad(xp, x, *, size: "Size"):  # noqa: F821
        """No such kind."""

    with pytest.raises(TypeError, match="attribute 'size' is annotated 'Size', which is no kind"):
        Schema.of("bad", bad)


words = st.integers(-(2**63), 2**63 - 1)
numbers = st.integers(-5, 5) | st.floats(allow_nan=True) | st.booleans() | st.complex_numbers(allow_nan=False)
triples = st.tuples(*[st.none() | st.integers(-5, 5)] * 3)
GIVEN = st.fixed_dictionaries(
    {},
    optional={
        "flag": st.booleans(),
        "count": words,
        "ratio": st.floats(),
        "number": numbers,
        "dtype": st.sampled_from([None, *DTYPES, *DTYPES.values()]),
        "axis": st.none() | st.integers(-3, 3) | st.lists(st.integers(-3, 3)),
        "shape": st.lists(st.integers(0, 2**40), max_size=4),
        "index": st.lists(st.none() | st.integers(-5, 5) | triples, max_size=4),
        "pairs": st.lists(st.tuples(words, words), max_size=3),
    },
)


@given(GIVEN)
def test_attributes_survive_json(given_attrs):
    attrs = SCHEMA.canonical(given_attrs)
    written = json.dumps({name: plain(value) for name, value in attrs.items()}, allow_nan=False)
    again = SCHEMA.canonical(json.loads(written))
    assert again is attrs or (attrs.nbytes and plain_text(again) == plain_text(attrs))  # large ones are not interned


def test_attributes_read_again_after_others_filled_the_table_are_those_that_a_caller_gets():
    schema = CATALOGUE["reshape"].schema
    first = {"shape": (7, 7)}
    schema.canonical(first)
    for size in range(3000):  # as words, which come as lists: only one of the two tables fills
        schema.canonical({"shape": [size, 1]})
    assert schema.canonical(first) is schema.canonical({"shape": [7, 7]})


def plain_text(attrs):
    return repr(sorted(attrs.items(), key=lambda item: item[0]))


def test_the_schema_in_json_names_kinds_defaults_and_what_is_required():
    written = CATALOGUE["fill"].schema.json()
    assert written["required"] == ["shape"]
    assert written["properties"]["dtype"] == {"anyOf": [{"type": "string"}, {"type": "null"}], "default": None}
    assert written["additionalProperties"] is False
    assert CATALOGUE["one_hot"].schema.json()["properties"]["dtype"]["default"] == "float32"
    json.dumps({name: op.schema.json() for name, op in CATALOGUE.items()}, allow_nan=False)


def test_every_kind_is_in_use():
    assert {attr.kind for op in CATALOGUE.values() for attr in op.schema.attrs} == set(KINDS)


def test_numpy_dtypes_are_names_in_json():
    assert plain((np.dtype("int8"), (1, 2.5), -math.inf, 1 - 2j)) == ["int8", [1, 2.5], "-Infinity", [1.0, -2.0]]
