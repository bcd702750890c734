"""The command `profile`: the times of the commands after it, by the host's clock."""

import itertools

import numpy as np
import pytest

from teletape_engine.commands import Batch, Call, CallFunction, Constant, DefineFunction, Fetch, Profile, TapeOpen
from teletape_engine.commands.results import Facts
from teletape_engine.session.session import Session


def seconds(answer):
    [times] = [result.facts["seconds"] for result in answer.results if isinstance(result, Facts)]
    return times


def test_the_times_of_the_commands_after_it() -> None:
    ticks = iter([0.0, 1.0, 3.0, 7.0])
    session = Session(clock=lambda: next(ticks))
    commands = (
        Constant("x", np.float32(2.0).reshape(())),
        Profile(),
        Call("square", ("x",), ("y",)),
        Call("square", ("y",), ("z",)),
        Fetch("z"),
    )
    answer = session.execute(Batch(commands))
    assert answer.failure is None
    assert [result.index for result in answer.results] == [1, 4]
    assert seconds(answer) == [1.0, 2.0, 4.0]


def test_a_batch_without_it_reads_no_clock_and_a_repeated_one_with_it_runs_command_by_command() -> None:
    reads = itertools.count()
    session = Session(clock=lambda: float(next(reads)))
    session.execute(Batch((Constant("x", np.float32(2.0).reshape(())), Call("square", ("x",), ("w",)))))
    assert next(reads) == 0
    for i in range(6):
        commands = (Profile(), Call("square", ("x",), (f"y{i}",)), Call("exp", (f"y{i}",), (f"z{i}",)))
        assert seconds(session.execute(Batch(commands, (f"y{i}",)))) == [1.0, 1.0]


def test_after_a_failure_the_rest_is_timed_too() -> None:
    session = Session(clock=float)
    answer = session.execute(Batch((Profile(), Fetch("nothing"), TapeOpen("t"))))
    assert answer.failure.index == 1
    assert seconds(answer) == [0.0, 0.0]


def test_a_session_without_a_clock_refuses() -> None:
    answer = Session().execute(Batch((Profile(),)))
    assert (answer.failure.code, answer.failure.index) == ("unimplemented", 0)


@pytest.mark.parametrize("batch", [Batch((Profile(),)), Batch((Profile(), Profile()))])
def test_the_last_one_counts(batch: Batch) -> None:
    answer = Session(clock=float).execute(batch)
    assert [result.facts["seconds"] for result in answer.results][-1] == []


def test_steps_of_functions_have_their_own_times() -> None:
    session = Session(clock=itertools.count().__next__)
    commands = (
        DefineFunction("inner", ("a",), (Call("square", ("a",), ("b",)), Call("exp", ("b",), ("c",))), ("c",)),
        DefineFunction("outer", ("a",), (CallFunction("inner", ("a",), ("b",)), Call("neg", ("b",), ("c",))), ("c",)),
        Constant("x", np.float32(2.0).reshape(())),
        Profile(),
        CallFunction("outer", ("x",), ("y",)),
        CallFunction("inner", ("y",), ("z",)),
    )
    answer = session.execute(Batch(commands))
    [times] = [result.facts for result in answer.results if isinstance(result, Facts)]
    rows = {(row["function"], row["step"], row["op"]): (row["calls"], row["seconds"]) for row in times["steps"]}
    assert rows == {  # each reading of the clock takes a second: a step has one, and a call those around its steps
        ("inner", 0, "square"): (2, 2),
        ("inner", 1, "exp"): (2, 2),
        ("outer", 0, "call"): (1, 3),
        ("outer", 1, "neg"): (1, 1),
    }
    assert (times["in_steps"], times["seconds"]) == ([6, 2], [9, 5])
    later = session.execute(Batch((CallFunction("outer", ("x",), ("w",)),)))
    assert later.failure is None
    assert len(times["steps"]) == 4
    assert rows == {key: (row["calls"], row["seconds"]) for key, row in zip(rows, times["steps"], strict=True)}
