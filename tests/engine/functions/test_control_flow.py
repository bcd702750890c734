"""while, cond and scan: what they compute, what the tapes see of it, and what they refuse."""

import re
from typing import Any

import numpy as np
import pytest

from teletape_engine import commands
from teletape_engine.commands import Batch, Call, Command, Constant, Fetch, OnFailure
from teletape_engine.commands.results import Facts, Fetched
from teletape_engine.errors import InvalidArgumentError
from teletape_engine.functions.compile import compile_function
from teletape_engine.plans.policy import POLICY
from teletape_engine.recording.values import Literal, untyped
from teletape_engine.session.session import Session
from teletape_engine.spec import DTYPES, Spec

F32 = Spec.of((), DTYPES["float32"])


def call(op: str, *inputs: Any, to: str) -> Call:
    return Call(op, inputs, (to,))


def function(name: str, inputs: str, *calls: Command, outputs: str) -> commands.DefineFunction:
    return commands.DefineFunction(name, tuple(inputs.split()), calls, tuple(outputs.split()))


BELOW = function("below", "x w", call("less", "x", Literal(100.0), to="more"), outputs="more")
TIMES = function("times", "x w", call("mul", "x", "w", to="y"), outputs="y")
SUMS = function("sums", "s e", call("add", "s", "e", to="t"), call("mul", "t", "e", to="q"), outputs="t q")


MATVEC = function(
    "matvec",
    "x w",
    Call("expand_dims", ("x",), ("c",), {"axis": 1}),
    call("matmul", "w", "c", to="p"),
    call("tanh", "p", to="y"),
    outputs="y",
)
BELOW_ZERO = function(
    "below_zero", "x", Call("reduce_sum", ("x",), ("s",), {}), call("less", "s", Literal(0.0), to="b"), outputs="b"
)
MINUS = function("minus", "x w", call("neg", "x", to="y"), outputs="y")
PLUS = function("plus", "x w", call("mul", "x", "x", to="y"), outputs="y")
CHOICE = function(
    "choice",
    "x w",
    commands.CallFunction("below_zero", ("x",), ("b",)),
    commands.Cond(("minus", "plus"), ("b", "x", "w"), ("y",)),
    Call("reduce_sum", ("w",), ("t",), {}),
    call("mul", "y", "t", to="z"),
    outputs="z",
)


@pytest.fixture
def session() -> Session:
    result = Session(memory_limit=64 << 20, max_iterations=5000)
    run(result, BELOW, TIMES, SUMS, Constant("x", np.float32(3.0) * np.ones((), np.float32)))
    return result


def run(session: Session, *todo: Command) -> list[Any]:
    answer = session.execute(Batch(todo, on_failure=OnFailure.FREE))
    assert answer.failure is None, answer.failure
    return [result.array.tolist() if isinstance(result, Fetched) else result for result in answer.results]


def failed(session: Session, *todo: Command) -> Any:
    failure = session.execute(Batch(todo, on_failure=OnFailure.FREE)).failure
    assert failure is not None
    return failure


def test_a_loop_runs_while_its_condition_is_true(session: Session) -> None:
    loop = commands.While("below", "times", ("x", Literal(2.0)), ("y", "iterations"), captured=1, report_decisions=True)
    answer, y, iterations = run(session, loop, Fetch("y"), Fetch("iterations"))
    assert (y, iterations) == (192.0, 6)
    assert isinstance(answer, Facts)
    assert answer.facts == {"decisions": [[1, 6], [0, 1]]}


def gradient(session: Session, command: Command, target: str, *sources: str) -> list[Any]:
    """The derivatives of what a command makes, None for an unconnected source."""
    watched = [commands.TapeOpen("t"), commands.TapeWatch("t", sources), command]
    outputs = tuple(f"d{name}" for name in sources)
    question = commands.Gradient("t", (target,), sources, outputs)
    answer = session.execute(Batch((*watched, question), on_failure=OnFailure.FREE))
    assert answer.failure is None, answer.failure
    kinds = answer.results[-1].kinds  # type: ignore[union-attr]
    results = [
        run(session, Fetch(name))[0] if kind != "none" else None for name, kind in zip(outputs, kinds, strict=True)
    ]
    run_releases = Batch((), ("t", *[name for name, kind in zip(outputs, kinds, strict=True) if kind != "none"]))
    assert session.execute(run_releases).failure is None
    return results


def test_the_tape_sees_the_iterations_that_were_made(session: Session) -> None:
    run(session, Constant("w", np.array(2.0, np.float32)))
    loop = commands.While("below", "times", ("x", "w"), ("y",), captured=1)
    assert gradient(session, loop, "y", "x", "w") == [64.0, 6 * 192.0 / 2]


def test_a_loop_without_a_iteration_is_its_first_value(session: Session) -> None:
    run(session, Constant("w", np.array(2.0, np.float32)), Constant("big", np.array(300.0, np.float32)))
    loop = commands.While("below", "times", ("big", "w"), ("y",), captured=1)
    assert gradient(session, loop, "y", "big", "w") == [1.0, None]


def test_a_function_with_the_same_loop_gives_zeros_instead(session: Session) -> None:
    inner = commands.While("below", "times", ("x", "w"), ("y",), captured=1)
    run(
        session,
        function("f", "x w", inner, outputs="y"),
        Constant("w", np.array(2.0, np.float32)),
        Constant("big", np.array(300.0, np.float32)),
    )
    assert gradient(session, commands.CallFunction("f", ("big", "w"), ("y",)), "y", "big", "w") == [1.0, 0.0]


@pytest.mark.parametrize(
    ("selector", "chosen"), [(True, 9.0), (False, -3.0), (0, 9.0), (1, -3.0), (7, -3.0), (-1, -3.0)]
)
def test_a_choice(session: Session, selector: Any, chosen: float) -> None:
    square = function("square", "x", call("mul", "x", "x", to="y"), outputs="y")
    minus = function("minus", "x", call("neg", "x", to="y"), outputs="y")
    run(session, square, minus)
    choice = commands.Cond(("square", "minus"), (Literal(selector), "x"), ("y",))
    assert run(session, choice, Fetch("y")) == [chosen]
    dtype = np.bool_ if isinstance(selector, bool) else np.int64
    choice = commands.Cond(("square", "minus"), (np.array(selector, dtype), "x"), ("z",))
    assert run(session, choice, Fetch("z")) == [chosen]


def numbers(*values: float) -> np.ndarray[Any, Any]:
    return np.array(values, np.float32)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("length", [1, 3, 4, 5, 11])
def test_a_scan_and_its_gradient(session: Session, length: int, reverse: bool) -> None:
    elements = np.linspace(0.5, 2.0, length).astype(np.float32)
    run(session, Constant("xs", elements), Constant("s", np.array(0.25, np.float32)))
    scan = commands.Scan("sums", ("s", "xs"), ("last", "all"), carried=1, reverse=reverse)
    tape = [commands.TapeOpen("t"), commands.TapeWatch("t", ("xs", "s")), scan]
    question = commands.Gradient("t", ("last", "all"), ("xs", "s"), ("dxs", "ds"))
    *_, last, rows, dxs, ds = run(session, *tape, question, *[Fetch(item) for item in ("last", "all", "dxs", "ds")])

    def value(inputs: np.ndarray[Any, Any]) -> tuple[float, list[float]]:
        total, result = float(inputs[0]), [0.0] * length
        for at in range(length)[:: -1 if reverse else 1]:
            total += float(inputs[1 + at])
            result[at] = total * float(inputs[1 + at])
        return total, result

    point = np.array([0.25, *elements], np.float64)
    assert last == pytest.approx(value(point)[0])
    assert rows == pytest.approx(value(point)[1])
    slopes = []
    for i in range(length + 1):
        step = np.zeros(length + 1)
        step[i] = 1e-6
        above, below = (value(point + step * sign) for sign in (1, -1))
        slopes.append((above[0] + sum(above[1]) - below[0] - sum(below[1])) / 2e-6)
    assert [ds, *dxs] == pytest.approx(slopes, rel=1e-4)


def test_a_scan_over_nothing(session: Session) -> None:
    run(session, Constant("none", np.zeros((0,), np.float32)))
    scan = commands.Scan("sums", (Literal(5.0), "none"), ("last", "all"), carried=1)
    assert run(session, scan, Fetch("last"), Fetch("all")) == [5.0, []]


@pytest.mark.parametrize("op", ["matvec", "choice"])
def test_all_elements_together_are_the_same_as_one_by_one(session: Session, op: str) -> None:
    rng = np.random.default_rng(3)
    run(
        session,
        Constant("w", rng.normal(size=(4, 3))),
        Constant("xs", rng.normal(size=(5, 3))),
        BELOW_ZERO,
        MINUS,
        PLUS,
        MATVEC,
    )
    run(session, CHOICE)
    results = []
    for at, vectorize in enumerate((False, True)):
        scan = commands.Scan(op, ("xs", "w"), (f"y{at}",), captured=1, vectorize=vectorize)
        tape = [commands.TapeOpen(f"t{at}"), commands.TapeWatch(f"t{at}", ("xs", "w")), scan]
        question = commands.Gradient(f"t{at}", (f"y{at}",), ("xs", "w"), (f"dx{at}", f"dw{at}"))
        *_, y, dx, dw = run(session, *tape, question, *[Fetch(f"{name}{at}") for name in ("y", "dx", "dw")])
        results.append((y, dx, dw, session.describe(f"t{at}")["ops"]))
    for item, other in zip(results[0][:3], results[1][:3], strict=True):
        np.testing.assert_allclose(item, other, rtol=1e-12)


def test_together_the_steps_are_recorded_once_and_not_once_an_element(session: Session) -> None:
    run(session, Constant("w", np.ones((4, 3))), Constant("xs", np.ones((50, 3))), MATVEC)
    counts = []
    for at, vectorize in enumerate((False, True)):
        scan = commands.Scan("matvec", ("xs", "w"), (f"y{at}",), captured=1, vectorize=vectorize)
        name = f"t{at}"
        run(session, commands.TapeOpen(name, persistent=True), commands.TapeWatch(name, ("xs", "w")), scan)
        counts.append(session.describe(name)["ops"])
    assert counts[0] > 100
    assert counts[1] < 10


@pytest.mark.parametrize("name", ["matvec", "choice"])
def test_a_map_calls_the_function_for_each_entry(session: Session, name: str) -> None:
    rng = np.random.default_rng(3)
    xs, w = rng.normal(size=(5, 3)), rng.normal(size=(4, 3))
    run(session, Constant("w", w), Constant("xs", xs), BELOW_ZERO, MINUS, PLUS, MATVEC)
    run(session, CHOICE)
    results = []
    for at, row in enumerate(xs):
        call_one = commands.CallFunction(name, (f"x{at}", "w"), (f"y{at}",))
        tape = [Constant(f"x{at}", row), commands.TapeOpen(f"t{at}"), commands.TapeWatch(f"t{at}", (f"x{at}",))]
        question = commands.Jacobian(f"t{at}", (f"y{at}",), (f"x{at}",), (f"J{at}",))
        results.append(run(session, *tape, call_one, question, Fetch(f"y{at}"), Fetch(f"J{at}"))[-2:])
    mapped = commands.Map(name, ("xs", "w"), (True, False), ("ys",))
    question = commands.Jacobian("t", ("ys",), ("xs",), ("J",), examples=True)
    whole = run(
        session,
        commands.TapeOpen("t"),
        commands.TapeWatch("t", ("xs",)),
        mapped,
        question,
        Fetch("ys"),
        Fetch("J"),
    )
    for stack, *rows in zip(whole[-2:], *results, strict=True):
        np.testing.assert_allclose(stack, np.stack(rows), rtol=1e-12)


def test_a_list_without_a_dtype_takes_that_of_what_its_entries_meet(session: Session) -> None:
    run(session, Constant("scale", np.array([2.0, 3.0])))
    rows = untyped(np.array([[1, 2], [3, 4], [5, 6]]))
    mapped = commands.Map("times", (rows, "scale"), (True, False), ("y",))
    assert run(session, mapped, Fetch("y")) == [[[2, 6], [6, 12], [10, 18]]]
    assert session.describe("y")["dtype"] == "float64"


@pytest.mark.parametrize(
    ("inputs", "mapped", "says"),
    [
        (("xs", "xs"), (False, False), "one is at least"),
        (("xs", "xs"), (True,), "for each of 2 inputs"),
        (("xs", "ys"), (True, True), r"lengths \[3, 2\]"),
        (("xs", "x"), (True, True), "is a scalar"),
        (("none", "x"), (True, False), "there is no entry"),
    ],
)
def test_a_map_that_is_refused(session: Session, inputs: Any, mapped: Any, says: str) -> None:
    run(session, *[Constant(name, np.ones(size)) for name, size in (("xs", 3), ("ys", 2), ("none", 0))])
    failure = failed(session, commands.Map("times", inputs, mapped, ("y",)))
    assert failure.code == "invalid_argument"
    assert re.search(says, failure.message)


def test_a_fixed_number_of_iterations(session: Session) -> None:
    scan = commands.Scan("times", ("x", Literal(2.0)), ("y",), carried=1, captured=1, length=10)
    assert run(session, scan, Fetch("y")) == [3072.0]


@pytest.mark.parametrize("command", ["while", "scan"])
def test_loops_stop_when_they_are_cancelled_between_iterations(
    session: Session, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(POLICY, "enabled", False)  # a plan makes many iterations between two looks
    seen: list[tuple[int, ...]] = []

    def progress(*far: int) -> None:
        seen.append(far)

    loops: dict[str, Command] = {
        "while": commands.While("below", "times", ("x", Literal(1.0)), ("y",), captured=1),
        "scan": commands.Scan("times", ("x", Literal(1.0)), ("y",), carried=1, captured=1, length=4000),
    }
    todo = Fetch("x"), loops[command], Constant("later", np.zeros(3))
    batch = Batch(todo, on_failure=OnFailure.FREE)
    answer = session.execute(batch, cancelled=lambda: len(seen) > 100, progress=progress)
    assert answer.failure is not None
    assert (answer.failure.code, answer.failure.index) == ("cancelled", 1)
    assert seen[-1][2] in (98, 99)
    assert {far[3] for far in seen[2:]} == ({0} if command == "while" else {4000})
    assert run(session, Constant("later", np.zeros(3)), Fetch("x")) == [3.0]


def test_a_long_command_after_a_loop_is_reported_without_the_iterations(session: Session) -> None:
    reports: list[tuple[int, ...]] = []
    loop = commands.Scan("times", ("x", Literal(1.0)), ("y",), carried=1, captured=1, length=4)
    todo = Fetch("x"), Constant("large", np.ones((700, 700))), loop, call("matmul", "large", "large", to="product")
    answer = session.execute(Batch(todo), progress=lambda *numbers: reports.append(numbers))
    assert answer.failure is None
    assert {numbers[0] for numbers in reports if len(numbers) > 2} == {2}, "iterations are of the loop"
    assert reports[-1] == (3, 4)


def test_a_loop_without_end_is_refused_with_the_numbers(session: Session) -> None:
    failure = failed(session, commands.While("below", "times", ("x", Literal(1.0)), ("y",), captured=1))
    assert failure.code == "resource_exhausted"
    assert failure.details == {"iterations": 5001, "limit": 5000}


def test_loops_within_loops_count_together() -> None:
    session = Session(max_iterations=50)
    inner = commands.Scan("inc", ("x",), ("y",), carried=1, length=10)
    run(
        session,
        function("inc", "x", call("add", "x", Literal(1.0), to="y"), outputs="y"),
        function("tens", "x", inner, outputs="y"),
    )
    assert run(session, commands.Scan("tens", (Literal(0.0),), ("a",), carried=1, length=4), Fetch("a")) == [40.0]
    failure = failed(session, commands.Scan("tens", (Literal(0.0),), ("b",), carried=1, length=5))
    assert failure.code == "resource_exhausted"
    assert failure.details == {"iterations": 55, "limit": 50, "step": 0, "inputs": ["x"], "function": "tens"}
    assert "would take 10 after 45 of others" in failure.message


def test_more_elements_than_iterations_are_refused_before_the_first(session: Session) -> None:
    results: list[int] = []
    run(session, function("inc", "x", call("add", "x", Literal(1.0), to="y"), outputs="y"))
    batch = Batch((commands.Scan("inc", (Literal(0.0),), ("y",), carried=1, length=10**9),))
    answer = session.execute(batch, progress=lambda done, total, iteration=0, iterations=0: results.append(iterations))
    assert answer.failure is not None
    assert (answer.failure.code, answer.failure.details) == ("resource_exhausted", {"iterations": 10**9, "limit": 5000})
    assert set(results) == {0}


def test_what_a_tape_keeps_of_a_loop_is_priced() -> None:
    session = Session(memory_limit=1 << 20)
    run(session, TIMES, function("on", "x w", call("less", Literal(0.0), Literal(1.0), to="y"), outputs="y"))
    run(session, Constant("m", np.ones((64, 64), np.float32)), Constant("w", np.ones((64, 64), np.float32)))
    loop = commands.While("on", "times", ("m", "w"), ("y",), captured=1, maximum_iterations=1000)
    assert run(session, loop, Fetch("y", 1)) == [[1.0]], "without a tape each iteration's memory is the next one's"
    failure = failed(
        session,
        commands.TapeOpen("t"),
        commands.TapeWatch("t", ("m", "w")),
        commands.While("on", "times", ("m", "w"), ("z",), captured=1, maximum_iterations=1000),
    )
    assert failure.code == "resource_exhausted"
    assert failure.details["limit"] == 1 << 20
    assert run(session, Fetch("y", 1)) == [[1.0]], "nothing is lost"


@pytest.mark.parametrize(
    ("command", "text"),
    [
        (commands.While("times", "times", ("x", Literal(2.0)), ("y",), 1), "must be a scalar bool or integer"),
        (commands.While("sums", "times", ("x", Literal(2.0)), ("y",), 1), "is one result; its function returns 2"),
        (
            commands.While("below", "sums", ("x", Literal(2.0)), ("y",), 1),
            "returns the next 1 values of the loop; found 2",
        ),
        (commands.While("below", "times", ("x", numbers(1, 2)), ("y",), 1), "float32[2], loop value 0 is float32"),
        (commands.While("below", "times", ("x",), ("y",), 4), "4 inputs are captured, found 1"),
        (commands.While("below", "times", ("x", Literal(2.0)), ("y", "a", "b"), 1), "there are 1 results, found 3"),
        (commands.While("below", "nobody", ("x",), ("y",)), "nobody"),
        (commands.Cond((), (Literal(True),), ("y",)), "one branch or more"),
        (commands.Cond(("times",), (Literal(1.5), "x", "x"), ("y",)), "scalar bool or integer"),
        (commands.Cond(("times",), (numbers(1, 2), "x", "x"), ("y",)), "scalar bool or integer"),
        (commands.Scan("sums", ("x",), ("y", "z"), 1), "one must be given"),
        (commands.Scan("sums", ("x", "x"), ("y", "z"), 1), "takes its elements along axis 0"),
        (commands.Scan("sums", ("x", numbers(1, 2)), ("y", "z"), 1, length=3), "lengths [2] along axis 0"),
        (commands.Scan("times", (numbers(1, 2), Literal(1.0)), ("y",), 3), "3 carried"),
    ],
)
def test_loops_that_are_wrong(session: Session, command: Command, text: str) -> None:
    assert text in failed(session, command).message


def test_a_function_with_a_loop_reports_its_specs_before_it_runs() -> None:
    below, times = (compile_function(item.inputs, item.steps, item.outputs) for item in (BELOW, TIMES))
    loop = commands.While(below, times, ("x", "w"), ("y", "n"), captured=1)  # type: ignore[arg-type]  # not by their ids
    f = compile_function(("x", "w"), (loop,), ("y", "n"))
    assert f.infer((F32, F32)).specs == (F32, Spec.of((), DTYPES["int64"]))
    assert f.decides
    vector = Spec.of((2,), DTYPES["float32"])
    with pytest.raises(InvalidArgumentError, match="shapes and dtypes must stay"):
        f.infer((F32, vector))


def test_branches_of_different_shapes_are_refused_before_they_run() -> None:
    function = compile_function(("x",), (call("neg", "x", to="y"),), ("y",))
    two = compile_function(("x",), (call("stack", "x", "x", to="y"),), ("y",))
    f = compile_function(("p", "x"), (commands.Cond((function, two), ("p", "x"), ("y",)),), ("y",))  # type: ignore[arg-type]
    with pytest.raises(InvalidArgumentError, match="branch 1 0 is float32"):
        f.infer((Spec.of((), DTYPES["bool"]), F32))
