"""Records of TensorFlow's functions: what fits an op, what does not, and the names that mean an op."""

import pytest

import teletape_engine.ops  # noqa: F401  # fills the catalogue
from teletape_engine.catalogue.attributes import Schema
from teletape_engine.catalogue.op import CATALOGUE
from teletape_engine.catalogue.signature import (
    BY_KIND,
    INPUTS,
    Conversion,
    by_hand,
    filled,
    function,
    functions_of,
    synonyms,
)


def forward(xp, x, y, *, axis: "Axis", keep: "bool" = False):  # noqa: F821  # kinds, as catalogue.attributes reads them
    """Never called."""


SCHEMA = Schema.of("example", forward)


def records(tf, names=(), inputs=("x", "y"), variadic=False):
    return functions_of(tf, names, inputs, variadic, SCHEMA)


def test_names_alone_are_a_function_with_the_ops_own_arguments():
    (record,) = records("example math.example", ["a", "b", "axis", "keepdims"])
    assert record.names == ("example", "math.example")
    assert [argument.name for argument in record.arguments] == ["a", "b", "axis", "keepdims", "name"]
    assert filled(record, ("x", "y")) == {"a": "x", "b": "y", "axis": "axis", "keepdims": "keep"}
    conversions = [argument.conversion for argument in record.arguments]
    assert conversions == [Conversion.OPERAND, Conversion.OPERAND, Conversion.INT, Conversion.FLAG, Conversion.IGNORED]


def test_a_record_may_order_name_and_default_its_arguments():
    record = function(
        "f", Conversion.AXES("dim", None, to="axis"), Conversion.TENSOR("b", to="y"), "a", check="matrices"
    )
    assert records([record]) == (record,)
    assert filled(record, ("x", "y")) == {"dim": "axis", "b": "y", "a": "x"}


@pytest.mark.parametrize(
    "record",
    [
        function("f", "a", Conversion.INT("axis")),  # y is not filled
        function("f", "a", "b"),  # axis, which is required, is not filled
        function("f", "a", "b", Conversion.INT("axis"), Conversion.INT("other")),
        function("f", Conversion.TENSORS("all"), Conversion.INT("axis")),  # the op takes two
    ],
)
def test_a_record_that_does_not_fit_its_op_is_a_defect(record):
    with pytest.raises(TypeError, match=r"tf\.f: "):
        records([record])


def test_a_function_written_by_hand_says_why():
    assert records([by_hand("f", "two ops")])[0].by_hand == "two ops"
    for op in CATALOGUE.values():
        for entry in op.functions:
            assert bool(entry.by_hand) is not bool(entry.arguments)


def test_every_conversion_is_used_or_comes_from_a_kind():
    used = {argument.conversion for op in CATALOGUE.values() for entry in op.functions for argument in entry.arguments}
    assert used | set(BY_KIND.values()) == set(Conversion)
    assert Conversion.OPERAND in INPUTS
    assert Conversion.FLAG not in INPUTS


def test_a_synonym_means_one_op():
    table = synonyms([("add", "AddV2", ("math.add",)), ("sum", "Sum", ("math.total",)), ("total", "Sum", ())])
    assert table == {
        **dict.fromkeys(["AddV2", "raw_ops.AddV2", "tf.raw_ops.AddV2", "math.add", "tf.math.add"], "add"),
        **dict.fromkeys(["math.total", "tf.math.total"], "sum"),
    }
