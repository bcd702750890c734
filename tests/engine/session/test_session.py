"""`Session.execute`: every command of the vocabulary, right and wrong."""

import numpy as np
import pytest
from driving import X, failing, run, value, watched

from teletape_engine.commands import (
    COMMANDS,
    Assign,
    Call,
    CallFunction,
    Constant,
    ContextSwitch,
    Declare,
    DefineFunction,
    Fetch,
    Gradient,
    MakeVariable,
    SlicesComponent,
    TapeOpen,
    TapePause,
    TapeReset,
    TapeResume,
    TapeWatch,
)
from teletape_engine.commands.results import Fetched, SlicesArrays, Specs
from teletape_engine.recording.values import Literal
from teletape_engine.session.handlers import HANDLERS


# ------------------------------------------------------------------------------------------------ every command, right
def test_every_command_of_the_vocabulary_is_executed():
    assert set(HANDLERS) == set(COMMANDS.values())


def test_put_and_fetch_give_the_same_bytes(session):
    for i, dtype in enumerate(("float16", "float32", "int64", "bool", "complex64")):
        array = np.arange(6).reshape(2, 3).astype(dtype)
        run(session, Constant(f"v{i}", array))
        result = value(session, f"v{i}")
        assert (result.dtype, result.shape) == (array.dtype, (2, 3))
        assert result.tobytes() == array.tobytes()


def test_a_number_takes_tensorflows_dtype(session):
    run(
        session,
        Constant("b", Literal(True)),
        Constant("i", Literal(3)),
        Constant("f", Literal(0.5)),
        Constant("c", Literal(1j)),
    )
    assert [value(session, name).dtype.name for name in "bifc"] == ["bool", "int32", "float32", "complex128"]


def test_a_fetch_reports_all_or_a_preview(session):
    (head,) = run(session, Constant("x", X), Fetch("x", 2))
    assert head == Fetched(1, "x", head.array, head.spec, complete=False)
    assert (head.array.tolist(), head.spec.shape) == ([1.0, 2.0], (3,))
    for elements in (None, 3, 4):
        (whole,) = run(session, Fetch("x", elements))
        assert whole.complete
    (none,) = run(session, Fetch("x", 0))
    assert none.array.size == 0


@pytest.mark.parametrize("elements", [None, 2])
def test_what_is_fetched_cannot_be_written_into(session, elements):
    (result,) = run(session, Constant("x", X.copy()), Fetch("x", elements))
    with pytest.raises(ValueError, match="read-only"):
        result.array[0] = 9


def test_an_op_runs_on_values_numbers_tensors_and_variables(session):
    run(
        session,
        Constant("x", X),
        MakeVariable("v", np.float32(10)),
        Call("add", ("x", np.ones(3, np.float32)), ("a",)),
        Call("mul", ("a", Literal(2)), ("b",)),
        Call("sub", ("b", "v"), ("c",)),
    )
    assert value(session, "c").tolist() == [-6.0, -4.0, -2.0]


def test_assignments(session):
    run(
        session,
        MakeVariable("v", X, name="weights"),
        Assign("v", np.ones(3, np.float32)),
        Assign("v", X, "add"),
        Assign("v", np.full(3, 0.5, np.float32), "sub"),
    )
    assert value(session, "v").tolist() == [1.5, 2.5, 3.5]
    assert session.describe("v") == {
        "id": "v",
        "kind": "variable",
        "dtype": "float32",
        "shape": [3],
        "bytes": 12,
        "trainable": True,
        "version": 3,
        "name": "weights",
    }


def test_a_variable_may_start_from_a_value_and_neither_changes_the_other(session):
    run(session, Constant("x", X), MakeVariable("v", "x"), MakeVariable("w", "v"), Assign("v", X, "add"))
    assert [value(session, name).tolist() for name in "xvw"] == [[1, 2, 3], [2, 4, 6], [1, 2, 3]]


def test_a_number_assigned_takes_the_variables_dtype(session):
    run(session, MakeVariable("v", np.float64(0)), Assign("v", Literal(3)), MakeVariable("n", np.int32(1)))
    assert value(session, "v").dtype == np.float64
    run(session, Assign("n", Literal(4), "add"))
    assert value(session, "n") == 5


def test_gradient_with_seeds_zeros_and_sources_not_wanted(session):
    results = run(
        session,
        *watched(Call("mul", ("x", "x"), ("y",)), persistent=True),
        Constant("u", np.ones(2, np.float64)),
        Gradient("t", ("y",), ("x",), ("g",), output_gradients=(np.array([1, 10, 100], np.float32),)),
        Gradient("t", ("y",), ("x", "u"), ("h", "z"), unconnected="zero", predicted=("dense", "dense")),
        Gradient("t", ("y",), ("x", "u"), (None, "nothing"), predicted=("dense", "none")),
    )
    assert [result.kinds for result in results] == [("dense",), ("dense", "dense"), ("dense", "none")]
    assert value(session, "g").tolist() == [2.0, 40.0, 600.0]
    assert value(session, "h").tolist() == [2.0, 4.0, 6.0]
    assert (value(session, "z").tolist(), value(session, "z").dtype) == ([0.0, 0.0], np.float64)
    assert failing(session, Fetch("nothing")).code == "unknown_id"


def test_slices_are_one_id_with_parts(session):
    results = run(
        session,
        MakeVariable("table", np.arange(8, dtype=np.float32).reshape(4, 2)),
        TapeOpen("t"),
        Call("gather", ("table", np.array([3, 0, 3], np.int32)), ("rows",), {}),
        Gradient("t", ("rows",), ("table",), ("g",), predicted=("slices",)),
        SlicesComponent("g", "values", "gv"),
        SlicesComponent("g", "indices", "gi"),
        Fetch("g"),
    )
    result = results[-1].array
    assert isinstance(result, SlicesArrays)
    assert (result.indices.tolist(), result.values.shape, result.dense.shape) == ([3, 0, 3], (3, 2), (4, 2))
    assert value(session, "gi").tolist() == [3, 0, 3]
    assert value(session, "gv").tolist() == [[1, 1]] * 3
    assert session.describe("g") == {
        "id": "g",
        "kind": "slices",
        "dtype": "float32",
        "shape": [4, 2],
        "bytes": 3 * 2 * 4 + 3 * 4,
        "rows": 3,
    }
    run(session, Call("identity", ("g",), ("dense",)))
    assert value(session, "dense").tolist() == [[1, 1], [0, 0], [0, 0], [2, 2]]


def test_an_op_whose_shape_depends_on_values_reports_it(session):
    (result,) = run(session, Call("nonzero", (np.array([0, 5, 0, 7]),), ("where",)))
    assert isinstance(result, Specs)
    assert result.specs[0].shape == (2, 1)
    assert value(session, "where").tolist() == [[1], [3]]


def test_a_function_is_defined_once_and_run_on_values_recorded_as_if_it_stood_there(session):
    calls = (Call("mul", ("a", "a"), ("s",)), Call("add", ("s", Literal(1.0)), ("t",)))
    run(session, DefineFunction("f", ("a",), calls, ("t", "a")))
    run(session, *watched(CallFunction("f", ("x",), ("y", "same"))))
    assert value(session, "y").tolist() == [2.0, 5.0, 10.0]
    assert value(session, "same").tolist() == X.tolist()
    run(session, Gradient("t", ("y",), ("x",), ("g",)))
    assert value(session, "g").tolist() == [2.0, 4.0, 6.0]
    assert [step["op"] for step in session.describe("f")["steps"]] == ["mul", "add"]


def test_a_function_that_gives_a_number_back_gives_a_value(session):
    run(session, DefineFunction("same", ("a",), (), ("a",)), CallFunction("same", (Literal(2.5),), ("y",)))
    assert value(session, "y") == np.float32(2.5)


def test_a_declaration_counts_whenever_it_is_made_before_the_question(session):
    contrast = Call("adjust_contrast", ("x", Literal(2.0)), ("y",))
    todo = (Constant("x", np.ones((2, 2, 3), np.float32)), TapeOpen("t", True), TapeWatch("t", ("x",)), contrast)
    run(session, *todo)
    failure = failing(session, Gradient("t", ("y",), ("x",), ("g",)))
    assert (failure.code, failure.op) == ("no_gradient_registered", "adjust_contrast")
    (kinds,) = run(session, Declare("AdjustContrastv2"), Gradient("t", ("y",), ("x",), ("h",)))
    assert kinds.kinds == ("none",)


def test_listing_and_describing(session):
    run(session, *watched(Call("neg", ("x",), ("y",))), DefineFunction("f", (), (), ()), MakeVariable("v", X))
    assert [entry["id"] for entry in session.listing("tensor")] == ["x", "y"]
    assert [entry["id"] for entry in session.listing("variable")] == ["v"]
    assert [entry["id"] for entry in session.listing("function")] == ["f"]
    (tape,) = session.listing("tape")
    assert (tape["ops"], tape["recording"], tape["consumed"]) == (1, True, False)


# ------------------------------------------------------------------------------------------------ every command, wrong
OF_A_KIND = {
    "fetch": Fetch,
    "assign": lambda name: Assign(name, X),
    "assigned": lambda name: Assign("v", name),
    "op": lambda name: Call("neg", (name,), ("new",)),
    "variable": lambda name: MakeVariable("new", name),
    "watch": lambda name: TapeWatch("t", (name,)),
    "watching": lambda name: TapeWatch(name, ("x",)),
    "pause": TapePause,
    "resume": TapeResume,
    "reset": TapeReset,
    "asked": lambda name: Gradient(name, ("x",), ("x",), (None,)),
    "target": lambda name: Gradient("t", (name,), ("x",), (None,)),
    "source": lambda name: Gradient("t", ("x",), (name,), (None,)),
    "seed": lambda name: Gradient("t", ("x",), ("x",), (None,), (name,)),
    "call": lambda name: CallFunction(name, (), ()),
    "argument": lambda name: CallFunction("f", (name,), ("new",)),
    "slices.component": lambda name: SlicesComponent(name, "values", "new"),
}


def one_of_each(session):
    run(
        session,
        *watched(persistent=True),
        MakeVariable("v", X),
        MakeVariable("table", np.ones((2, 2), np.float32)),
        Call("gather", ("table", np.array([0])), ("row",)),
        Gradient("t", ("row",), ("table",), ("slices",)),
        DefineFunction("f", ("a",), (), ("a",)),
        Constant("gone", X),
        releases=("gone",),
    )
    failing(session, Call("add", ("x", np.ones(7, np.float32)), ("poison",)))


@pytest.mark.parametrize("use", OF_A_KIND)
def test_an_id_that_names_nothing_is_distinguished_from_one_that_named_something(session, use):
    one_of_each(session)
    make = OF_A_KIND[use]
    unknown = failing(session, make("nobody"))
    assert (unknown.code, unknown.details["id"]) == ("unknown_id", "nobody")
    released = failing(session, make("gone"))
    assert (released.code, released.details["id"]) == ("released_id", "gone")


VALUES = {"op", "variable", "argument", "seed", "assigned"}


@pytest.mark.parametrize("use", OF_A_KIND)
def test_a_value_never_made_reports_the_first_cause(session, use):
    one_of_each(session)
    if use == "watch":
        run(session, OF_A_KIND[use]("poison"))  # structural: it has to happen, for the others that it names
    else:
        failure = failing(session, OF_A_KIND[use]("poison"))
        assert failure.code == "poisoned"
        assert "Incompatible shapes: [3] vs. [7]" in failure.message


@pytest.mark.parametrize(
    ("use", "name", "words"),
    [
        *(
            (use, "t", "is a tape, expected a tensor or a variable")
            for use in ("op", "variable", "target", "source", "watch")
        ),
        *((use, "x", "is a tensor, expected a tape") for use in ("pause", "resume", "reset", "asked", "watching")),
        ("assign", "x", "is a tensor, expected a variable"),
        ("assign", "f", "is a function, expected a variable"),
        ("fetch", "f", "is a function, expected a tensor or a variable or a sparse gradient"),
        ("call", "v", "is a variable, expected a function"),
        ("slices.component", "x", "is a tensor, expected a sparse gradient"),
        ("source", "slices", "is a sparse gradient, expected a tensor or a variable"),
    ],
)
def test_an_id_of_another_kind(session, use, name, words):
    one_of_each(session)
    failure = failing(session, OF_A_KIND[use](name))
    assert failure.code == "invalid_argument"
    assert words in failure.message


WRONG = {
    "unknown op": (Call("matmull", ("x", "x"), ("n",)), "unknown_op", "did you mean 'matmul'"),
    "TensorFlow's name": (Call("tf.math.tanhh", ("x",), ("n",)), "unknown_op", "'tanh'"),
    "no op like it": (Call("qqqqqq", ("x",), ("n",)), "unknown_op", "GET /v1/ops lists"),
    "unknown attribute": (Call("reduce_sum", ("x",), ("n",), {"axes": 0}), "bad_attribute", "axes"),
    "attribute of a wrong kind": (Call("reduce_sum", ("x",), ("n",), {"axis": "first"}), "bad_attribute", "axis"),
    "axis out of range": (Call("reduce_sum", ("x",), ("n",), {"axis": 4}), "invalid_argument", "4"),
    "too few inputs": (Call("add", ("x",), ("n",)), "invalid_argument", "takes 2 inputs"),
    "no inputs": (Call("concat", (), ("n",), {"axis": 0}), "invalid_argument", "one or more inputs, found none"),
    "two outputs": (Call("neg", ("x",), ("n", "m")), "invalid_argument", "has 1 output, found 2 ids"),
    "no output": (Call("neg", ("x",), ()), "invalid_argument", "has 1 output, found 0 ids"),
    "shapes": (
        Call("add", ("x", np.ones(2, np.float32)), ("n",)),
        "invalid_argument",
        "Incompatible shapes: [3] vs. [2]",
    ),
    "dtypes": (Call("add", ("x", np.ones(3)), ("n",)), "invalid_argument", "AddV2"),
    "a number that does not fit": (
        Call("add", (np.ones(2, np.int32), Literal(0.5)), ("n",)),
        "invalid_argument",
        "float",
    ),
    "mode": (Assign("v", X, "multiply"), "invalid_argument", "it must be one of set, add, sub"),
    "assigned shape": (Assign("v", np.ones(2, np.float32)), "invalid_argument", "float32[3]"),
    "assigned dtype": (Assign("v", np.ones(3)), "invalid_argument", "both shape and dtype"),
    "assigned fraction": (Assign("n", Literal(1.5)), "invalid_argument", "float cannot take the dtype int32"),
    "added fraction": (Assign("n", Literal(1.5), "add"), "invalid_argument", "float cannot take the dtype int32"),
    "too large a number": (Assign("n8", Literal(300)), "invalid_argument", "does not fit dtype uint8"),
    "open again": (TapeOpen("t"), "id_in_use", "'t' is in use: a tape"),
    "resume while active": (TapeResume("t"), "tape_state", "Tape is still recording"),
    "unconnected": (Gradient("t", ("x",), ("x",), ("n",), unconnected="x"), "invalid_argument", "'x'"),
    "outputs of a gradient": (Gradient("t", ("x",), ("x",), ()), "invalid_argument", "1 sources, but 0 output ids"),
    "output_gradients": (
        Gradient("t", ("x", "x"), ("x",), ("n",), (X,)),
        "invalid_argument",
        "2 targets, but 1 output gradients",
    ),
    "seed's shape": (
        Gradient("t", ("x",), ("x",), ("n",), (np.ones(2, np.float32),)),
        "invalid_argument",
        "[2] vs. [3]",
    ),
    "seed's dtype": (Gradient("t", ("x",), ("x",), ("n",), (np.ones(3),)), "invalid_argument", "float64"),
    "prediction": (Gradient("t", ("x",), ("x",), ("n",), predicted=("none",)), "structure_mismatch", "['dense']"),
    "declared, but registered": (Declare("MatMul"), "gradient_registered", "'MatMul'!"),
    "slices.component": (
        SlicesComponent("slices", "rows", "n"),
        "invalid_argument",
        "values and indices, found 'rows'",
    ),
    "arguments": (CallFunction("f", (), ("n",)), "invalid_argument", "takes 1 inputs (a), found 0"),
    "results": (CallFunction("f", ("x",), ()), "invalid_argument", "there are 1 results, found 0 ids"),
    "an id twice": (Constant("x", X), "id_in_use", "'x' is in use: a tensor"),
    "a variable's id": (MakeVariable("t", X), "id_in_use", "'t' is in use: a tape"),
    "an op's output in use": (Call("neg", ("x",), ("v",)), "id_in_use", "a variable"),
    "a released id": (Constant("gone", X), "id_in_use", "used before and released"),
    "an op's output released": (Call("neg", ("x",), ("gone",)), "id_in_use", "used before and released"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_is_wrong_is_reported(session, case):
    command, code, words = WRONG[case]
    one_of_each(session)
    run(session, MakeVariable("n", np.int32(1)) if "fraction" in case else MakeVariable("n8", np.uint8(1)))
    failure = failing(session, command, Fetch("x"))
    assert failure.index == 0
    assert (failure.code, words in failure.message) == (code, True), failure
    assert value(session, "x").tolist() == X.tolist()  # the session goes on


def test_an_op_that_fails_is_named_with_the_callers_line(session):
    failure = failing(session, Constant("x", X), Call("add", ("x", np.ones(2, np.float32)), ("y",), {}, "train.py:7"))
    assert (failure.index, failure.op, failure.where) == (1, "add", "train.py:7")


def test_a_consumed_tape(session):
    run(session, *watched(Call("neg", ("x",), ("y",))), Gradient("t", ("y",), ("x",), ("g",)))
    failure = failing(session, Gradient("t", ("y",), ("x",), ("h",)))
    assert (failure.code, "can only be used to compute one set" in failure.message) == ("tape_consumed", True)
    assert session.describe("t")["consumed"]


def test_a_tape_that_is_not_active(session):
    run(session, TapeOpen("t"), TapePause("t"))
    for command in (TapePause("t"), TapeReset("t")):
        failure = failing(session, command)
        assert (failure.code, failure.message) == ("tape_state", "Tape is not recording.")


def test_a_tape_active_in_another_context_cannot_be_taken_over(session):
    run(session, ContextSwitch("a"), TapeOpen("t"))
    failure = failing(session, ContextSwitch("b"), TapeResume("t"))
    assert (failure.code, "in another context" in failure.message) == ("tape_state", True)
    run(session, ContextSwitch("b"), TapePause("t"), TapeResume("t"))
