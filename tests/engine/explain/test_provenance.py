"""Provenance logs: they are bounded, reads are recognized by their numbers, and explanations walk through them."""

import numpy as np
import pytest
from driving import run, state_of

from teletape_engine.commands import (
    Assign,
    Call,
    Constant,
    Explain,
    Fetch,
    Gradient,
    MakeVariable,
    TapeOpen,
    TapePause,
    TapeReset,
    TapeResume,
    TapeWatch,
)
from teletape_engine.recording import provenance
from teletape_engine.recording.context import Context
from teletape_engine.recording.provenance import Event, ValueReads
from teletape_engine.recording.tape import Tape
from teletape_engine.recording.values import Literal, Value, Variable, new_uid
from teletape_engine.session.session import Session
from teletape_engine.spec import DTYPES, Spec

F32 = np.float32


def explained(session, target="y", source="x", tape="t"):
    (result,) = run(session, Explain(tape, (target,), (source,)))
    (explanation,) = result.facts["explanations"]
    return explanation


def test_a_session_explains_with_the_lines_that_the_caller_sent(session):
    run(
        session,
        MakeVariable("x", np.array([1.5, 2.5], F32)),
        TapeOpen("t"),
        Call("clip_by_value", ("x", Literal(5.0), Literal(9.0)), ("c",), where="a.py:1"),
        Call("reduce_sum", ("c",), ("y",), where="a.py:2"),
        Call("round", ("y",), ("z",), where="a.py:3"),
    )
    explanation = explained(session)
    # An op that is made of others: all of them have its call site.
    assert (explanation["code"], explanation["where"]) == ("saturated", "a.py:1")
    explanation = explained(session, "z")
    assert (explanation["code"], explanation["op"], explanation["where"]) == (
        "non_differentiable_op",
        "round",
        "a.py:3",
    )
    assert state_of(session).find("t", object).tape.consumed is False


def test_a_question_in_another_batch_and_after_the_answer(session):
    run(session, MakeVariable("x", np.array(2.0, F32)), TapeOpen("t"), Call("floor", ("x",), ("y",), where="a.py:1"))
    run(session, Gradient("t", ("y",), ("x",), (None,)))
    assert explained(session)["where"] == "a.py:1"


def test_what_was_computed_between_two_requests(session):
    run(session, MakeVariable("x", np.array(2.0, F32)), TapeOpen("t"), TapePause("t"))
    run(session, Call("mul", ("x", Literal(3.0)), ("a",), where="a.py:1"), TapeResume("t"))
    run(session, Call("mul", ("a", Literal(3.0)), ("y",)))
    explanation = explained(session)
    assert (explanation["code"], explanation["where"]) == ("computed_while_stopped", "a.py:1")


def test_a_reset_keeps_what_it_forgets_for_explanations(session):
    run(
        session,
        Constant("x", np.array(2.0, F32)),
        TapeOpen("t"),
        TapeWatch("t", ("x",)),
        Call("mul", ("x", "x"), ("y",), where="a.py:1"),
        TapeReset("t"),
    )
    explanation = explained(session)
    assert (explanation["code"], explanation["where"]) == ("computed_before_reset", "a.py:1")


def test_an_assignment_of_another_value_later_is_not_blamed(session):
    run(
        session,
        MakeVariable("x", np.array(2.0, F32)),
        MakeVariable("z", np.array(2.0, F32)),
        MakeVariable("v", np.array(1.0, F32)),
        TapeOpen("t"),
        Assign("v", "z"),
        Call("mul", ("v", "v"), ("y",)),
        Assign("v", "x"),
    )
    assert explained(session, "y", "z")["code"] == "assigned"
    assert explained(session)["code"] == "unconnected"


def test_bytes_that_were_fetched_and_put_again(session):
    run(session, MakeVariable("x", np.array([1.5, 2.5], F32)), TapeOpen("t"), Call("neg", ("x",), ("a",)))
    (fetched,) = run(session, Fetch("a"))
    run(session, Constant("b", np.array(fetched.array, np.float64)), Call("reduce_sum", ("b",), ("y",)))
    explanation = explained(session)
    assert (explanation["code"], explanation["certain"]) == ("left_and_returned", True)


def test_only_the_latest_are_remembered(session, monkeypatch):
    monkeypatch.setattr(provenance, "LENGTH", 8)
    small = Session()
    run(small, MakeVariable("x", np.array(2.0, F32)), Call("mul", ("x", Literal(3.0)), ("a",)))
    run(small, *(Call("neg", ("a",), (f"n{i}",)) for i in range(20)), TapeOpen("t"), Call("neg", ("a",), ("y",)))
    explanation = explained(small)
    assert len(state_of(small).current.provenance.records) == 8
    assert (explanation["code"], explanation["certain"]) == ("unconnected", False)
    assert "only the latest ops outside tapes are remembered" in " ".join(explanation["notes"])


def test_an_op_that_a_tape_follows_leaves_nothing_else(session):
    run(session, MakeVariable("x", np.array(2.0, F32)), TapeOpen("t"), Call("neg", ("x",), ("a",)))
    before = len(state_of(session).current.provenance.records)
    run(session, *(Call("neg", ("a",), (f"b{i}",)) for i in range(5)))
    assert len(state_of(session).current.provenance.records) == before
    run(session, Call("less", ("a", "a"), ("c",)), Call("stop_gradient", ("a",), ("d",)), Call("neg", ("d",), ("e",)))
    assert [note[0].op.name for note in list(state_of(session).current.provenance.records)[before:]] == [
        "less",
        "stop_gradient",
        "neg",
    ]


# ------------------------------------------------------------------------------------------------------------- reads
@pytest.fixture
def value_reads():
    return ValueReads()


@pytest.mark.parametrize("size", [2, 1000, 100_000])
def test_numbers_are_known_again_in_another_dtype_and_shape(value_reads, size):
    array = np.linspace(0, 7, size, dtype=F32).reshape(2, -1)
    value_reads.note(5, array, "a.py:1")
    again = array.astype(np.float64).reshape(-1)
    result = value_reads.find(again)
    assert (result.uid, result.where) == (5, "a.py:1")
    again[-1] += 1e-3
    assert value_reads.find(again) is None


def test_one_number_is_known_in_any_form(value_reads):
    value_reads.note(5, np.array(0.1, F32), None)
    number = float(np.float32(0.1))
    assert value_reads.find(np.array([[number]])).uid == 5
    assert value_reads.numbers[number].uid == 5
    assert value_reads.find(np.array(0.1)) is None


def test_the_latest_read_counts_and_what_has_no_numbers_is_none(value_reads):
    value_reads.note(5, np.array([1.0, 2.0]), "first")
    value_reads.note(6, np.array([1.0, 2.0]), "second")
    value_reads.note(7, np.array([b"a"], object), None)
    value_reads.note(8, np.zeros((0, 2)), None)
    assert value_reads.find(np.array([1.0, 2.0])).where == "second"
    assert value_reads.find(np.array([b"a"], object)) is value_reads.find(np.zeros((0, 2))) is None
    assert [item.uid for item in value_reads.log] == [5, 6]


def test_reads_are_forgotten_in_their_order(value_reads):
    for i in range(1500):
        value_reads.note(i, np.array([i, i + 0.5]), None)
        value_reads.note(i, np.array(i), None)
    assert value_reads.find(np.array([100, 100.5])) is None
    assert 100 not in value_reads.numbers
    assert value_reads.find(np.array([1400, 1400.5])).uid == 1400
    assert 900 < len(value_reads.numbers) <= len(value_reads.log) == 1024


def test_a_short_number_may_be_an_accident(session):
    context = state_of(session).current
    for i, (number, common) in enumerate([(2.0, True), (0.5, True), (-10, True), (1.2345, False), (1 + 2j, True)]):
        context.provenance.value_reads.note(i, np.array(number), None)
        context.provenance.note_numbers((Literal(number),), 100 + i)
        event, inputs, output, where = context.provenance.records[-1]
        assert (event, inputs, output, where.common) == (Event.RETURNED, (i,), 100 + i, common)


# ------------------------------------------------------------------------------------------------------------- turns
def test_very_many_turns_of_a_tape_keep_the_first_and_the_latest():
    context, tape = Context(), Tape()
    for _ in range(10_000):
        context.open(tape)
        context.pause(tape)
    assert len(tape.turns) <= 4096
    assert [how for how, _ in tape.turns[:3]] == ["open", "pause", "open"]
    assert [how for how, _ in tape.turns] == ["open", "pause"] * (len(tape.turns) // 2)
    assert tape.logs == [context.provenance.records]


def test_a_variables_version_is_linked_with_what_it_was_given():
    context = Context()
    value = Value(np.ones(2, F32), Spec.of((2,), DTYPES["float32"]), new_uid())
    variable = Variable(value.alias(new_uid()), trainable=True, name="v")
    context.provenance.note_assignment(variable, value.uid, "add")
    assert context.provenance.records[-1] == (Event.UPDATE, (value.uid, variable.uid), variable.value.uid, None)
