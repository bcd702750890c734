"""A function as the commands that define it if there is nothing; sessions like another one; functions over rows."""

import numpy as np

from teletape_engine.commands import (
    Batch,
    Call,
    CallFunction,
    Cond,
    Constant,
    DefineFunction,
    Fetch,
    MakeVariable,
    Scan,
    While,
)
from teletape_engine.recording.values import Literal
from teletape_engine.session.session import Session

X = np.array([1.5, -2.5, 0.5], np.float32)
W = np.array([2.0, 0.5, 1.0], np.float32)
#: A function with a loop, a branch, a scan, a constant, and one that it calls twice.
COMMANDS = (
    DefineFunction("scale", ("a",), (Call("mul", ("a", W), ("b",), where="program.py:7"),), ("b",)),
    DefineFunction(
        "less", ("a",), (Call("reduce_sum", ("a",), ("s",)), Call("less", ("s", Literal(9.0)), ("l",))), ("l",)
    ),
    DefineFunction("grow", ("a",), (Call("add", ("a", Literal(1.0)), ("b",)),), ("b",)),
    DefineFunction(
        "whole",
        ("x",),
        (
            CallFunction("scale", ("x",), ("y",)),
            While("less", "grow", ("y",), ("z",)),
            Call("less", ("x", "z"), ("p",)),
            Call("reduce_all", ("p",), ("q",)),
            Cond(("grow", "scale"), ("q", "z"), ("c",)),
            Scan("grow", ("c",), ("d",)),
            CallFunction("scale", ("d",), ("e",)),
        ),
        ("e", "z"),
    ),
)


def answers(session: Session, function: str) -> list[list[float]]:
    """What a function computes."""
    call = CallFunction(function, ("x",), ("e", "z"))
    answer = session.execute(Batch((Constant("x", X), call, Fetch("e"), Fetch("z"))))
    assert answer.failure is None, answer.failure
    return [result.array.tolist() for result in answer.results]  # type: ignore[union-attr]  # both are fetched


def test_definitions_give_the_same_function_where_there_is_nothing() -> None:
    session = Session()
    session.execute(Batch(COMMANDS))
    definitions = session.definitions("whole")
    assert [command.id for command in definitions] == ["f0", "f1", "f2", "f3"], "each once, before those that call it"
    assert not any(getattr(step, "where", None) for command in definitions for step in command.steps)
    other = session.like()
    other.execute(Batch(definitions))
    assert answers(other, "f3") == answers(session, "whole")


def test_definitions_are_those_of_functions_whose_ids_have_gone() -> None:
    session = Session()
    session.execute(Batch(COMMANDS))
    expected = answers(session, "whole")
    session.execute(Batch((), ("scale", "less", "grow", "x", "e", "z")))
    other = Session()
    other.execute(Batch(session.definitions("whole")))
    assert answers(other, "f3") == expected


def test_a_session_like_another_one_has_its_limits_and_nothing_of_it() -> None:
    session = Session(memory_limit=1 << 20, max_iterations=5)
    session.execute(Batch((MakeVariable("v", X),)))
    other = session.like()
    assert not other.knows("v")
    assert other.max_iterations == 5
    failure = other.execute(Batch((Constant("x", np.zeros(1 << 20)),))).failure
    assert failure is not None
    assert failure.code == "resource_exhausted"


def test_why_a_function_cannot_run_over_rows() -> None:
    session = Session()
    session.execute(Batch(COMMANDS))
    assert session.vectorizes("scale") == ""
    assert "'while' step" in session.vectorizes("whole")
