"""Contexts and clients end: what they kept goes, what records stops, and nothing grows with their number."""

import gc
import weakref

import numpy as np
import pytest
from driving import attach, failing, run, state_of, value

from teletape_engine.commands import (
    AccumulatorOpen,
    Batch,
    Call,
    ClientDetach,
    Constant,
    ContextEnd,
    ContextSwitch,
    Explain,
    Fetch,
    Gradient,
    TapeOpen,
    TapeResume,
    TapeWatch,
)
from teletape_engine.errors import AnswerDroppedError, UnknownIdError
from teletape_engine.session import clients
from teletape_engine.session.session import Session
from teletape_engine.session.state import MOST_CONTEXTS

X = np.array([1.0, 2.0, 3.0], np.float32)
BIG = np.zeros(1000, np.float32)


@pytest.fixture
def session():
    return Session()


def contexts(session):
    return state_of(session)._contexts


# ------------------------------------------------------------------------------------------------------------- contexts
def test_an_ended_context_is_gone_with_its_log(session):
    run(session, Constant("x", X), ContextSwitch("thread"), Call("neg", ("x",), ("y",)))
    log = weakref.ref(contexts(session)["thread"].provenance)
    run(session, ContextEnd("thread"))
    gc.collect()
    assert list(contexts(session)) == [0]
    assert log() is None
    assert value(session, "y").tolist() == [-1.0, -2.0, -3.0]


def test_an_ended_context_stops_its_tapes_and_accumulators_and_they_still_answer(session):
    run(
        session,
        Constant("x", X),
        ContextSwitch("thread"),
        AccumulatorOpen("a", ("x",), (X,)),
        TapeOpen("t", True),
        TapeWatch("t", ("x",)),
        Call("square", ("x",), ("y",)),
        ContextEnd("thread"),
        Call("square", ("y",), ("z",)),  # in context 0, where nothing records
    )
    assert session.describe("t")["recording"] is False
    assert session.describe("t")["ops"] == 1
    run(session, Gradient("t", ("y",), ("x",), ("g",)), TapeResume("t"), Call("square", ("x",), ("w",)))
    assert value(session, "g").tolist() == [2.0, 4.0, 6.0]
    assert session.describe("t")["ops"] == 2


def test_ending_is_structural_and_may_be_repeated(session):
    run(session, ContextSwitch("thread"))
    failure = session.execute(Batch((Call("neg", ("nothing",), ("y",)), ContextEnd("thread")))).failure
    assert failure.index == 0
    assert list(contexts(session)) == [0]
    run(session, ContextEnd("thread"), ContextEnd("never"))


def test_context_zero_cannot_end(session):
    assert "context 0 cannot end" in failing(session, ContextEnd(0)).message


def test_contexts_that_nothing_uses_are_bounded_and_active_ones_stay(session):
    run(session, Constant("x", X), ContextSwitch("first"), TapeOpen("t", True), TapeWatch("t", ("x",)))
    for name in range(1, 20 * MOST_CONTEXTS):
        run(session, ContextSwitch(name), Call("neg", ("x",), (f"y{name}",)), releases=(f"y{name}",))
        assert len(contexts(session)) <= MOST_CONTEXTS
    assert {0, "first", name} <= contexts(session).keys()
    run(session, ContextSwitch("first"), Call("square", ("x",), ("y",)), Gradient("t", ("y",), ("x",), ("g",)))
    assert value(session, "g").tolist() == [2.0, 4.0, 6.0]


def test_an_explanation_works_after_the_context_has_ended(session):
    run(session, Constant("x", X), ContextSwitch("thread"), TapeOpen("t", True), TapeWatch("t", ("x",)))
    run(session, ContextSwitch("thread"), Call("square", ("x",), ("y",)), ContextEnd("thread"))
    (result,) = run(session, Explain("t", ("y",), ("x",)))
    assert result.facts["explanations"][0]["outcome"] == "gradient"


# -------------------------------------------------------------------------------------------------------------- clients
def fetching(session, client, seq):
    """A batch of that client, whose answer pins 4000 bytes that nothing else holds."""
    name = f"{client}.{seq}"
    batch = Batch((Constant(name, BIG + client), Fetch(name)), (name,), client, seq, b"%16d" % seq)
    session.execute(batch)
    return batch


def test_a_detached_client_leaves_nothing_and_its_number_is_not_used_again(session):
    first, second = attach(session)["client"], attach(session)["client"]
    batch = fetching(session, second, 1)
    assert session.bytes_in_use() == 4000
    run(session, ClientDetach(second), ClientDetach(second))
    assert session.bytes_in_use() == 0
    assert attach(session)["client"] == second + 2
    with pytest.raises(UnknownIdError, match="was detached"):
        session.execute(batch)
    assert "no client 9" in failing(session, ClientDetach(9)).message
    fetching(session, first, 1)


def test_a_client_may_detach_itself(session):
    client = attach(session)["client"]
    assert session.execute(Batch((ClientDetach(client),), (), client, 1, b"1" * 16)).failure is None
    with pytest.raises(UnknownIdError):
        fetching(session, client, 2)


def test_old_answers_go_and_a_late_retry_is_reported_so(session):
    client = attach(session)["client"]
    batch = fetching(session, client, 1)
    session.forget_old_answers()
    assert session.execute(batch).results  # between two calls it is kept
    session.forget_old_answers()
    assert session.bytes_in_use() == 0
    with pytest.raises(AnswerDroppedError, match="was executed, and its answer is no longer stored") as error:
        session.execute(batch)
    assert error.value.details["expected"] == 2
    fetching(session, client, 2)


def test_a_new_answer_is_not_old(session):
    client = attach(session)["client"]
    fetching(session, client, 1)
    session.forget_old_answers()
    batch = fetching(session, client, 2)
    session.forget_old_answers()
    assert session.execute(batch).results


def test_beyond_their_limit_the_oldest_answers_go_first(session, monkeypatch):
    monkeypatch.setattr(clients, "KEPT_BYTES", 8000)
    batches = [fetching(session, attach(session)["client"], 1) for _ in range(4)]
    assert session.bytes_in_use() == 8000
    with pytest.raises(AnswerDroppedError):
        session.execute(batches[1])
    assert session.execute(batches[2]).results
    monkeypatch.setattr(clients, "KEPT_BYTES", 10)
    batch = fetching(session, attach(session)["client"], 1)
    assert session.execute(batch).results  # the latest stays whatever it has
    assert session.bytes_in_use() == 4000
