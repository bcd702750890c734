"""Numbers without a dtype take that of what they meet: every op gives with them what it gives with typed arrays."""

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from counting import calls
from teletape_engine.catalogue.op import CATALOGUE, Op, Sample
from teletape_engine.commands import (
    Assign,
    Batch,
    Call,
    CallFunction,
    Command,
    Cond,
    Constant,
    DefineFunction,
    Fetch,
    Gradient,
    Hvp,
    MakeVariable,
    Scan,
    TapeDescribe,
    TapeOpen,
    TapeWatch,
    ValueAndGradient,
    While,
)
from teletape_engine.commands.results import Answer, Fetched
from teletape_engine.errors import TeletapeError
from teletape_engine.recording.values import Literal, untyped
from teletape_engine.session.session import Session
from teletape_engine.spec import DTYPES, WEAK, Spec, Weak

F16, F32, F64, I32, I64 = (DTYPES[name] for name in ("float16", "float32", "float64", "int32", "int64"))


def bare(numbers: Any) -> Literal:
    """Numbers as JSON without a dtype has them."""
    array = np.array(numbers)
    return untyped(array.astype(np.int64) if array.dtype.kind in "iu" else array.astype(np.float64))


def run(*commands: Command, session: Session | None = None) -> Answer:
    return (session or Session()).execute(Batch(commands))


def fetched(*commands: Command, session: Session | None = None) -> list[Any]:
    """What the fetches of the commands return."""
    answer = run(*commands, session=session)
    assert answer.failure is None, answer.failure
    return [result.array for result in answer.results if isinstance(result, Fetched)]


def same(a: Any, b: Any) -> bool:
    return a.dtype == b.dtype and np.array_equal(a, b, equal_nan=a.dtype.kind in "fc")


# ------------------------------------------------------------------------------------------------------- the catalogue
def whole(op: Op, sample: Sample, dtype: Any) -> list[Any]:
    """A sample's inputs with whole numbers of that dtype; where only integers fit, int32."""
    arrays = []
    for i, value in enumerate(map(np.asarray, sample.inputs)):
        if value.dtype.kind == "f" or (value.dtype.kind == "i" and i not in op.integers):
            arrays.append((np.rint(value * 2) + 0.0).astype(dtype))  # no -0: JSON has it as 0
        else:
            arrays.append(value.astype(I32) if value.dtype.kind == "i" and np.all(np.abs(value) < 2**31) else value)
    return arrays


def as_untyped(array: Any) -> Any:
    """The array as JSON without a dtype has it, if it has it so."""
    if array.dtype.kind in "fiu":
        return bare(array.astype(np.int64) if np.isfinite(array).all() else array)
    return array


#: The samples that have inputs, by the name of their op.
SAMPLES = {name: [sample for sample in op.samples() if sample.inputs] for name, op in CATALOGUE.items()}


def result(op: Op, sample: Sample, inputs: Sequence[Any]) -> Any:
    """The result, or the code of the failure."""
    answer = run(Call(op.name, tuple(inputs), ("y",), sample.attrs), Fetch("y"))
    if answer.failure is not None:
        return answer.failure.code
    return next(each.array for each in answer.results if isinstance(each, Fetched))


@pytest.mark.parametrize("name", [name for name, samples in SAMPLES.items() if samples])
def test_an_op_of_untyped_numbers_is_that_of_float32(name: str) -> None:
    for number, sample in enumerate(SAMPLES[name]):
        arrays = whole(CATALOGUE[name], sample, F32)
        expected = result(CATALOGUE[name], sample, arrays)
        actual = result(CATALOGUE[name], sample, [as_untyped(array) for array in arrays])
        assert actual == expected if isinstance(expected, str) else same(actual, expected), f"sample {number}"


@pytest.mark.parametrize("dtype", [F32, F64], ids=["float32", "float64"])
@pytest.mark.parametrize(
    "name",
    [
        name
        for name, samples in SAMPLES.items()
        if CATALOGUE[name].registered and any(len(sample.inputs) > 1 for sample in samples)
    ],
)
def test_untyped_numbers_next_to_a_variable_are_of_its_dtype(name: str, dtype: Any) -> None:
    for number, sample in enumerate(SAMPLES[name]):
        arrays = whole(CATALOGUE[name], sample, dtype)
        for source, array in enumerate(arrays):
            if len(arrays) > 1 and array.dtype == dtype:
                untyped_next_to_a_variable(name, sample, arrays, source, f"sample {number}, variable {source}")


def untyped_next_to_a_variable(name: str, sample: Sample, arrays: list[Any], source: int, case: str) -> None:
    others = [i for i, other in enumerate(arrays) if i != source and other.dtype.kind in "fiu"]
    answers = []
    for inputs in (arrays, [as_untyped(other) if i in others else other for i, other in enumerate(arrays)]):
        operands = tuple(["x" if i == source else value for i, value in enumerate(inputs)])
        answer = run(
            MakeVariable("x", arrays[source]),
            TapeOpen("t"),
            Call(name, operands, ("y",), sample.attrs),
            Gradient("t", ("y",), ("x",), ("dx",)),
            Fetch("y"),
            Fetch("dx", optional=True),
        )
        numbers = [each.array for each in answer.results if isinstance(each, Fetched)]
        answers.append((None if answer.failure is None else answer.failure.code, numbers))
    (code, expected), (actual_code, actual) = answers
    assert actual_code == code, case
    for a, b in zip(actual, expected, strict=True):
        assert same(a, b) if isinstance(b, np.ndarray) else same(a.values, b.values), case


def infers(op: Op, specs: list[Spec], attrs: dict[str, Any]) -> bool:
    """Whether the op takes inputs of these specs."""
    try:
        op.infer(*specs, **attrs)
    except TeletapeError:
        return False
    return True


def test_an_op_says_which_of_its_inputs_are_integers() -> None:
    checked = set()
    for op in CATALOGUE.values():
        for sample in op.samples():
            attrs = op.attrs(sample.attrs)
            specs = [Spec.of(array.shape, array.dtype) for array in whole(op, sample, F32)]
            for i in [i for i, value in enumerate(sample.inputs) if np.asarray(value).dtype.kind == "i"]:
                group = [j for j in range(len(specs)) if op.variadic or op.like[j] == op.like[i]]
                takes_floats = any(
                    infers(op, [spec.with_dtype(dtype) if j in group else spec for j, spec in enumerate(specs)], attrs)
                    for dtype in (F16, F32, F64)  # an op may take only one size, as bitcast
                )
                assert takes_floats != (i in op.integers), (op.name, i)
                checked.add((op.name, i))
    assert checked >= {(op.name, i) for op in CATALOGUE.values() for i in op.integers}


# ------------------------------------------------------------------------------------------------------------ the rule
@pytest.mark.parametrize(
    ("specs", "dtypes"),
    [
        ((Spec.of((2,), F64), bare(2)), [None, "float64"]),
        ((Spec.of((2,), I64), bare([1, 2])), [None, "int64"]),
        ((bare(2), bare(3)), ["float32", "float32"]),
        ((bare(2), bare(2.5)), ["float32", "float32"]),
        ((Literal(2), bare(2)), ["float32", "float32"]),
        ((Literal(2), Literal(2)), ["int32", "int32"]),
        ((Spec.of((), DTYPES["complex64"]), bare(2)), [None, "complex64"]),
    ],
)
def test_the_dtype_of_a_number(specs: Any, dtypes: list[str | None]) -> None:
    specs = [each if isinstance(each, Spec) else each.spec for each in specs]
    taken = [
        None if isinstance(spec, Spec) else CATALOGUE["mul"].number_dtypes(specs)[i].name
        for i, spec in enumerate(specs)
    ]
    assert taken == dtypes


@pytest.mark.parametrize(
    ("dtype", "numbers", "text"),
    [
        (I32, 2.5, "a floating-point number cannot take the dtype int32"),
        (I32, [1, 2.5], "a floating-point number cannot take the dtype int32"),
        (DTYPES["bool"], [1, 0], "an integer cannot take the dtype bool"),
        (DTYPES["uint8"], [300, 1], "the number 300 does not fit dtype uint8"),
        (DTYPES["uint8"], [1, -1], "the number -1 does not fit dtype uint8"),
        (DTYPES["float16"], [70000, 1], "the number 70000 does not fit dtype float16"),
        (F32, [1e39, 1], "the number 1e\\+39 does not fit dtype float32"),
    ],
)
def test_what_does_not_fit_is_refused(dtype: Any, numbers: Any, text: str) -> None:
    zeros = np.zeros(np.shape(numbers), dtype)
    for command in (Assign("x", bare(numbers)), Call("maximum", ("x", bare(numbers)), ("y",))):
        answer = run(MakeVariable("x", zeros), command)
        assert answer.failure is not None
        assert re.search(text, answer.failure.message)


def test_what_is_kept_has_a_dtype() -> None:
    integers = bare([1, 2])
    a, b, c = fetched(
        Constant("a", integers),
        MakeVariable("b", integers),
        Call("square", (integers,), ("c",)),
        Fetch("a"),
        Fetch("b"),
        Fetch("c"),
    )
    assert [each.dtype for each in (a, b, c)] == [F32, F32, F32]
    assert c.tolist() == [1, 4]
    (scalar,) = fetched(MakeVariable("x", bare(3)), Fetch("x"))
    assert scalar.dtype == F32


def test_large_integers_are_not_cut_off_where_integers_fit() -> None:
    rows, wide = np.arange(3.0), bare([2, 2**40])
    assert wide.spec.integer == I64
    (taken,) = fetched(Call("bitwise_and", (wide, bare([3, 2**40])), ("y",)), Fetch("y"))
    assert taken.dtype == I64
    assert taken.tolist() == [2, 2**40]
    (row,) = fetched(Constant("r", rows), Call("gather", ("r", bare([2])), ("y",)), Fetch("y"))
    assert row.tolist() == [2.0]


def test_an_assignment_takes_the_dtype_of_the_variable_and_indices_are_integers() -> None:
    values = fetched(
        MakeVariable("x", np.zeros(3)),
        Assign("x", bare([1, 2, 3])),
        Fetch("x"),
        Assign("x", bare([0.1]), "scatter_add", bare([2])),
        Fetch("x"),
    )
    assert [value.dtype for value in values] == [F64, F64]
    assert values[1].tolist() == [1, 2, 3.1]  # 0.1 as float64


def test_a_vector_takes_the_dtype_of_its_source() -> None:
    hvp, gradient = fetched(
        MakeVariable("x", np.array([1.0, 2.0])),
        TapeOpen("t", persistent=True),
        Call("square", ("x",), ("y",)),
        Hvp("t", ("y",), ("x",), (bare([1, 0]),), ("h",)),
        Gradient("t", ("y",), ("x",), ("g",), (bare([1, 10]),)),
        Fetch("h"),
        Fetch("g"),
    )
    assert (hvp.dtype, hvp.tolist()) == (F64, [2, 0])
    assert (gradient.dtype, gradient.tolist()) == (F64, [2, 40])


def test_ids_in_a_list_are_integers() -> None:
    commands = (Constant(7, np.zeros(1000)), TapeOpen("t"), TapeWatch("t", (7,)), Call("exp", (7,), (8,)))
    frees = []
    for ids in (None, bare([8]), np.array([8])):
        answer = run(*commands, TapeDescribe("t", ids))
        assert answer.failure is None
        frees.append(answer.results[-1].facts["frees"])  # type: ignore[union-attr]
    assert frees[0] < frees[1] == frees[2]
    refused = run(*commands, TapeDescribe("t", bare([7.5])))
    assert refused.failure is not None
    assert "a list of integer ids, found float32[1]" in refused.failure.message


def test_untyped_specs_are_interned() -> None:
    assert bare([1, 2]).spec is bare([3, 4]).spec
    assert bare([1, 2]).spec is not bare([1.5, 4]).spec
    assert bare(2).spec is Weak.of_untyped(int, (), I32, F32)
    assert bare(2) == bare(2) != Literal(2)
    assert hash(bare([1, 2])) == hash(bare([1, 2]))
    assert bare([1, 2]) != bare([1, 3])
    assert Literal(2).spec is WEAK[int]
    assert repr(bare([1, 2]).spec) == "untyped int[2]"


# ----------------------------------------------------------------------------------------------------------- functions
SCALED = DefineFunction(
    "scaled",
    ("x", "w"),
    (
        Call("square", ("x",), ("a",)),
        Call("mul", ("a", bare([1, 10])), ("b",)),
        Call("mul", ("b", "w"), ("y",)),
    ),
    ("y",),
)
W = Constant("w", np.array([0.5, 2.0]))


def test_an_input_of_a_function_takes_the_dtype_that_it_meets_later() -> None:
    session = Session()
    double, single, alone = fetched(
        SCALED,
        W,
        CallFunction("scaled", (bare([1, 2]), "w"), ("a",)),
        Constant("v", np.array([1, 2], F32)),
        CallFunction("scaled", (bare([1, 2]), "v"), ("b",)),
        CallFunction("scaled", (bare([1, 2]), bare([1, 2])), ("c",)),
        Fetch("a"),
        Fetch("b"),
        Fetch("c"),
        session=session,
    )
    assert (double.dtype, double.tolist()) == (F64, [0.5, 80])
    assert (single.dtype, single.tolist()) == (F32, [1, 80])
    assert (alone.dtype, alone.tolist()) == (F32, [1, 80])
    typed = session.typed_inputs("scaled", [bare([1, 2]), "w"])
    assert typed[1] == "w"
    assert same(typed[0], np.array([1.0, 2.0]))
    assert [each.dtype for each in session.typed_inputs("scaled", [bare(2), bare([1, 2])])] == [F32, F32]  # type: ignore[union-attr]


def test_an_input_that_is_used_as_indices_is_of_integers() -> None:
    session = Session()
    steps = (Call("add", ("i", bare(1)), ("j",)), Call("gather", ("x", "j"), ("y",)))
    (rows,) = fetched(
        DefineFunction("rows", ("x", "i"), steps, ("y",)),
        CallFunction("rows", (bare([5, 6, 7]), bare([0, 1])), ("y",)),
        Fetch("y"),
        session=session,
    )
    assert (rows.dtype, rows.tolist()) == (F32, [6, 7])
    assert [each.dtype for each in session.typed_inputs("rows", [bare([5, 6]), bare([0])])] == [F32, I32]  # type: ignore[union-attr]


@pytest.mark.parametrize("number", [bare(1e39), bare([1e39, 1.0])])
def test_a_number_that_is_too_large_for_the_dtype_is_refused(number: Any) -> None:
    """JSON has infinity as a string: a number that became it would be a silent error."""
    answer = run(MakeVariable("v", number))
    assert answer.failure is not None
    assert "1e+39 does not fit dtype float32" in answer.failure.message
    assert run(MakeVariable("v", number.with_alone(F64))).failure is None


def test_many_numbers_in_one_call_cost_each_the_same() -> None:
    def cost(count: int) -> int:
        specs = [bare(1.5).spec] * count
        return calls(lambda: CATALOGUE["add_n"].number_dtypes(specs))

    assert cost(800) < 2.5 * cost(400)


def test_a_function_runs_alike_step_by_step_and_as_a_plan() -> None:
    session = Session()
    run(SCALED, W, session=session)
    answers = [
        fetched(CallFunction("scaled", (inputs, "w"), (f"y{n}",)), Fetch(f"y{n}"), session=session)[0]
        for n, inputs in enumerate([bare([1, 2]), np.array([1.0, 2.0])] * 4)
    ]
    for answer in answers:
        assert same(answer, answers[0])


def test_a_plan_of_a_number_of_a_program_is_not_that_of_an_untyped_one() -> None:
    session = Session()
    run(DefineFunction("twice", ("x",), (Call("add", ("x", "x"), ("y",)),), ("y",)), session=session)
    for n, (number, dtype) in enumerate([(Literal(3), I32), (bare(3), F32)] * 3):
        (twice,) = fetched(CallFunction("twice", (number,), (f"y{n}",)), Fetch(f"y{n}"), session=session)
        assert (twice.dtype, twice.item()) == (dtype, 6)


def test_loops_carry_the_dtype_that_the_body_gives() -> None:
    step = DefineFunction(
        "step",
        ("i", "x", "w"),
        (Call("add", ("i", bare(1)), ("i2",)), Call("mul", ("x", "w"), ("x2",))),
        ("i2", "x2"),
    )
    more = DefineFunction("more", ("i", "x", "w"), (Call("less", ("i", bare(3)), ("m",)),), ("m",))
    total = DefineFunction(
        "total", ("s", "x", "w"), (Call("mul", ("x", "w"), ("p",)), Call("add", ("s", "p"), ("t",))), ("t", "p")
    )
    n, last, sums, parts = fetched(
        step,
        more,
        total,
        W,
        While("more", "step", (bare(0), bare([1, 1]), "w"), ("n", "last"), 1),
        Constant("c", np.array(2.0)),
        Scan("total", (bare(0), bare([1, 2, 3]), "c"), ("sum", "parts"), 1, 1),
        Fetch("n"),
        Fetch("last"),
        Fetch("sum"),
        Fetch("parts"),
    )
    assert (n.dtype, n.item()) == (F32, 3)
    assert (last.dtype, last.tolist()) == (F64, [0.125, 8])
    assert (sums.dtype, sums.item()) == (F64, 12)
    assert (parts.dtype, parts.tolist()) == (F64, [2, 4, 6])


def test_what_a_step_differentiates_by_has_the_dtype_that_it_meets() -> None:
    outer = DefineFunction(
        "outer",
        ("x", "w"),
        (ValueAndGradient("scaled", ("x", "w"), ("y",), ("x",), ("y", "dx")),),
        ("dx",),
    )
    direct, inside, alone = fetched(
        SCALED,
        W,
        outer,
        ValueAndGradient("scaled", (bare(3), "w"), ("y",), ("x",), ("y1", "a")),
        CallFunction("outer", (bare(3), "w"), ("b",)),
        ValueAndGradient("scaled", (bare(3), bare(2)), ("y",), ("x",), ("y2", "c")),
        Fetch("a"),
        Fetch("b"),
        Fetch("c"),
    )
    assert (direct.dtype, direct.item()) == (F64, 123)
    assert same(inside, direct)
    assert (alone.dtype, alone.item()) == (F32, 132)


def test_branches_take_untyped_inputs_and_an_untyped_choice() -> None:
    add = DefineFunction("add", ("x",), (Call("add", ("x", "x"), ("y",)),), ("y",))
    scale = DefineFunction("scale", ("x",), (Call("mul", ("x", np.array([3.0, 5.0])), ("y",)),), ("y",))
    first, second = fetched(
        add,
        scale,
        Cond(("add", "scale"), (bare(0), bare([1, 2])), ("a",)),
        Cond(("add", "scale"), (bare(1), bare([1, 2])), ("b",)),
        Fetch("a"),
        Fetch("b"),
    )
    assert (first.dtype, first.tolist()) == (F64, [2, 4])
    assert (second.dtype, second.tolist()) == (F64, [3, 10])


def test_a_function_of_untyped_lists_has_a_form_over_rows() -> None:
    body = DefineFunction(
        "body", ("x",), (Call("mul", ("x", bare([1, 10])), ("a",)), Call("add", ("a", bare(1)), ("y",))), ("y",)
    )
    (rows,) = fetched(
        body,
        Constant("xs", np.array([[1.0, 2.0], [3.0, 4.0]])),
        Scan("body", ("xs",), ("ys",), vectorize=True),
        Fetch("ys"),
    )
    assert (rows.dtype, rows.tolist()) == (F64, [[2, 21], [4, 41]])


def test_the_lists_of_a_function_are_counted_as_memory() -> None:
    session = Session()
    run(DefineFunction("big", ("x",), (Call("add", ("x", bare(np.zeros(100_000))), ("y",)),), ("y",)), session=session)
    assert session.describe("big")["bytes"] == 800_000
    assert session.describe("big")["steps"][0]["inputs"] == ["x", {"shape": [100_000]}]
