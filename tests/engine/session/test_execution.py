"""How a batch runs: ids and their ends, failures, retries, cancelling, contexts, purity."""

import gc
import weakref

import numpy as np
import pytest
from driving import X, attach, failing, run, state_of, value, watched

from teletape_engine.commands import (
    Assign,
    Batch,
    Call,
    ClientAttach,
    Constant,
    ContextSwitch,
    Declare,
    Fetch,
    Gradient,
    MakeVariable,
    OnFailure,
    SlicesComponent,
    TapeOpen,
    TapePause,
    TapeWatch,
)
from teletape_engine.commands.results import Fetched, Kinds
from teletape_engine.errors import (
    OutOfTurnError,
    PoisonedError,
    ReleasedIdError,
    SequenceConflictError,
    UnknownIdError,
)
from teletape_engine.recording.values import Literal
from teletape_engine.session.clients import CLIENT_BITS
from teletape_engine.session.handlers import HANDLERS
from teletape_engine.session.session import Session


# ---------------------------------------------------------------------------------------------------------------- ids
def test_integer_and_typed_ids_do_not_meet(session):
    run(session, Constant("1", X), Constant(1, X + 1))
    assert (value(session, "1")[0], value(session, 1)[0]) == (1.0, 2.0)


@pytest.mark.parametrize("name", ["name", 7])
def test_an_id_never_means_another_thing_later(session, name):
    run(session, Constant(name, X), releases=(name,))
    assert failing(session, Constant(name, X)).code == "id_in_use"
    assert failing(session, Fetch(name)).code == "released_id"
    assert failing(session, Call("neg", (X,), (name,))).code == "id_in_use"


def test_small_integers_may_come_in_any_order(session):
    run(session, Constant(9, X), Constant(3, X))
    assert failing(session, Fetch(5)).code == "unknown_id"
    run(session, Constant(5, X))


def test_a_clients_own_ids_are_known_to_be_released_without_being_kept(session):
    client = attach(session)
    first = client["first_id"]
    assert first == client["client"] << CLIENT_BITS
    batch = Batch((Constant(first, X), Constant(first + 1, X)), (first,), client["client"], 1, b"1")
    assert session.execute(batch).failure is None
    assert failing(session, Fetch(first)).code == "released_id"
    assert failing(session, Fetch(first + 2)).code == "unknown_id"
    assert not state_of(session).released


def test_releases_die_at_their_last_mention(session):
    """Two arrays at once would not fit: the first has to go before the third is made."""
    session = Session(memory_limit=9 * 1024)
    big = np.zeros(1024, np.float32)
    run(
        session,
        Constant("a", big),
        Call("add", ("a", Literal(1.0)), ("b",)),
        Call("add", ("b", Literal(1.0)), ("c",)),
        Call("add", ("c", Literal(1.0)), ("d",)),
        Call("reduce_sum", ("d",), ("s",)),
        Fetch("s"),
        releases=("c", "b", "a"),
    )
    assert failing(session, Fetch("c")).code == "released_id"
    assert value(session, "d")[0] == 3.0


def test_without_the_release_the_same_does_not_fit():
    session = Session(memory_limit=9 * 1024)
    todo = [Constant("a", np.zeros(1024, np.float32)), *(Call("add", (a, Literal(1.0)), (b,)) for a, b in ("ab", "bc"))]
    assert failing(session, *todo).code == "resource_exhausted"


def test_an_id_only_released_goes_at_once_and_an_unknown_one_is_no_matter(session):
    run(session, Constant("a", X))
    run(session, releases=("a", "never was", 12345))
    assert failing(session, Fetch("a")).code == "released_id"
    assert failing(session, Fetch("never was")).code == "unknown_id"


def test_an_id_made_and_released_in_one_batch_and_a_failed_one(session):
    failing(
        session, Constant("a", X), Call("nope", ("a",), ("b",)), Call("neg", ("b",), ("c",)), releases=("a", "b", "c")
    )
    assert failing(session, Fetch("a")).code == "released_id"
    assert failing(session, Fetch("b")).code == "released_id"  # the poison was released
    assert session.listing("tensor") == []


def test_the_array_itself_is_freed_at_the_release(session):
    array = np.ones(1000, np.float32)
    alive = weakref.ref(array)
    run(session, Constant("a", array), MakeVariable("v", "a"))
    del array
    run(session, releases=("a",))
    gc.collect()
    assert alive() is not None  # the variable's
    run(session, Assign("v", np.zeros(1000, np.float32)))
    gc.collect()
    assert alive() is None


def test_a_tape_keeps_what_its_gradient_needs_after_the_names_are_gone(session):
    array = np.full(3, 2, np.float32)
    alive = weakref.ref(array)
    run(
        session,
        Constant("x", array),
        TapeOpen("t"),
        TapeWatch("t", ("x",)),
        Call("mul", ("x", "x"), ("y",)),
        Call("exp", ("y",), ("z",)),
        releases=("y",),
    )
    del array
    (_,) = run(session, Gradient("t", ("z",), ("x",), ("g",)))
    np.testing.assert_allclose(value(session, "g"), np.full(3, 2 * 2 * np.exp(4.0)), rtol=1e-6)
    run(session, releases=("x",))
    gc.collect()
    assert alive() is None  # the tape has answered: nothing holds it any more


def test_releasing_a_tape_ends_its_recording(session):
    run(session, *watched(), releases=())
    assert len(state_of(session).context(0).context.tapes) == 1
    run(session, releases=("t",))
    assert state_of(session).context(0).context.tapes == []


# ------------------------------------------------------------------------------------------------------ after failures
def test_after_a_failure_no_value_is_made_but_structure_still_happens(session):
    run(session, MakeVariable("v", np.float32(1)), TapeOpen("t"))
    failure = failing(
        session,
        Constant("a", X),
        Assign("v", np.float32(2)),
        Call("nope", ("a",), ("b",)),  # the first cause
        Assign("v", np.float32(3)),
        Constant("c", X),
        TapePause("t"),
        TapeOpen("u"),
        TapeWatch("u", ("c", "b")),
        Call("other", ("b",), ("d",)),
        Gradient("t", ("b",), ("v",), ("g",)),
        Declare("Whatever"),
    )
    assert (failure.index, failure.code) == (2, "unknown_op")
    assert value(session, "v") == 2
    assert value(session, "a").tolist() == X.tolist()
    for name in "bcdg":
        later = failing(session, Fetch(name))
        assert (later.code, later.message) == ("poisoned", failure.message)
    assert not session.describe("t")["recording"]
    assert not session.describe("t")["consumed"]
    assert session.describe("u")["recording"]
    assert "Whatever" in state_of(session).declarations.no_gradient


def test_a_failure_does_not_poison_what_its_id_names_already(session):
    run(session, Constant("a", X))
    failing(session, Constant("a", X + 1))
    assert value(session, "a").tolist() == X.tolist()


def test_without_poison_the_ids_stay_free(session):
    batch = Batch((Call("nope", (), ("a",)), Constant("b", X)), on_failure=OnFailure.FREE)
    assert session.execute(batch).failure is not None
    run(session, Constant("a", X), Constant("b", X))


def test_a_defect_inside_an_op_ends_the_batch_and_not_the_session(session, monkeypatch):
    def broken(state, command):
        raise RuntimeError("a defect")

    monkeypatch.setitem(HANDLERS, SlicesComponent, broken)
    failure = failing(session, SlicesComponent("a", "values", "b"))
    assert (failure.code, "RuntimeError: a defect" in failure.message) == ("internal", True)
    run(session, Constant("x", X))


def test_memory_that_the_machine_does_not_have(session, monkeypatch):
    def exhausted(state, command):
        raise MemoryError("Unable to allocate 8 EiB")

    monkeypatch.setitem(HANDLERS, Gradient, exhausted)
    failure = failing(session, Gradient("t", (), (), ()))
    assert (failure.code, "8 EiB" in failure.message) == ("resource_exhausted", True)


# -------------------------------------------------------------------------------------------------------- exactly once
def sent(session, client, seq, *todo, nonce=None):
    return session.execute(Batch(todo, (), client, seq, nonce or bytes([seq])))


def test_a_batch_sent_again_is_answered_again_and_not_executed_again(session):
    client = attach(session)["client"]
    sent(session, client, 1, MakeVariable("v", np.float32(0)))
    first = sent(session, client, 2, Assign("v", np.float32(1), "add"), Fetch("v"))
    again = sent(session, client, 2, Assign("v", np.float32(1), "add"), Fetch("v"))
    assert again is first
    assert value(session, "v") == 1


def test_a_failed_batch_is_not_executed_again_either(session):
    client = attach(session)["client"]
    sent(session, client, 1, MakeVariable("v", np.float32(0)))
    todo = (Assign("v", np.float32(1), "add"), Call("nope", (), ("y",)))
    assert sent(session, client, 2, *todo) is sent(session, client, 2, *todo)
    assert value(session, "v") == 1


def test_another_batch_of_the_same_number_is_a_conflict(session):
    client = attach(session)["client"]
    sent(session, client, 1, Constant("a", X))
    with pytest.raises(SequenceConflictError) as caught:
        sent(session, client, 1, Constant("b", X), nonce=b"other")
    assert caught.value.details == {"expected": 2}
    assert failing(session, Fetch("b")).code == "unknown_id"


@pytest.mark.parametrize("seq", [0, 1, 4, 100])
def test_out_of_turn_is_refused_at_once(session, seq):
    client = attach(session)["client"]
    sent(session, client, 1)
    sent(session, client, 2)
    with pytest.raises(OutOfTurnError) as caught:
        sent(session, client, seq, Constant("a", X))
    assert caught.value.details == {"expected": 3}
    assert session.listing("tensor") == []


def test_the_first_batch_has_no_answer_to_repeat(session):
    client = attach(session)["client"]
    with pytest.raises(OutOfTurnError):
        sent(session, client, 0)


def test_clients_count_for_themselves(session):
    a, b = attach(session), attach(session)
    assert (a["client"], b["client"], a["seq"], b["seq"]) == (1, 3, 1, 1)
    sent(session, a["client"], 1)
    sent(session, b["client"], 1)
    sent(session, a["client"], 2)
    with pytest.raises(UnknownIdError, match="attach first"):
        sent(session, 5, 1)


def test_a_caller_names_a_client_that_it_cannot_wait_for(session):
    assert [attach(session, client)["client"] for client in (2, 0, 8, 0)] == [2, 1, 8, 3]
    assert attach(session, 10) == {"client": 10, "seq": 1, "first_id": 10 << 40}
    for taken in (10, 4, 5):
        assert "even number greater than 10" in failing(session, ClientAttach(taken)).message
    sent(session, 8, 1)


# -------------------------------------------------------------------------------------------------- cancel and progress
def test_cancelled_between_two_commands(session):
    question = iter([False, False, True])
    run(session, TapeOpen("t"))
    todo = (Constant("a", X), Call("neg", ("a",), ("b",)), TapePause("t"), Call("neg", ("b",), ("c",)))
    answer = session.execute(Batch(todo), cancelled=lambda: next(question))
    assert (answer.failure.index, answer.failure.code) == (2, "cancelled")
    assert value(session, "b").tolist() == [-1.0, -2.0, -3.0]
    assert not session.describe("t")["recording"]  # the command where it was noticed is structural, and happens
    assert failing(session, Fetch("c")).code == "poisoned"


def test_progress_is_reported_now_and_then(session):
    results = []
    todo = [Constant("x", X), *(Call("neg", ("x",), (i,)) for i in range(2500))]
    run(session, *todo, progress=lambda done, total: results.append((done, total)))
    assert {total for _, total in results} == {2501}
    assert [done for done, _ in results] == list(range(0, 2501, 16))


def test_each_long_command_is_reported_as_it_begins(session):
    results = []
    todo = [Constant("x", np.ones((700, 700))), *(Call("matmul", ("x", "x"), (i,)) for i in range(3))]
    run(session, *todo, progress=lambda done, total: results.append((done, total)))
    assert results == [(0, 4), (1, 4), (2, 4), (3, 4)]


# ------------------------------------------------------------------------------------------------------------ contexts
def test_two_interleaved_contexts_do_not_record_each_other(session):
    run(
        session,
        Constant("x", X),
        ContextSwitch("a"),
        TapeOpen("ta"),
        TapeWatch("ta", ("x",)),
        ContextSwitch("b"),
        TapeOpen("tb"),
        TapeWatch("tb", ("x",)),
        Call("mul", ("x", Literal(3.0)), ("in_b",)),
        ContextSwitch("a"),
        Call("mul", ("x", Literal(2.0)), ("in_a",)),
    )
    assert [session.describe(t)["ops"] for t in ("ta", "tb")] == [1, 1]
    question = (Gradient(t, (y,), ("x",), (f"{t}{y}",)) for t in ("ta", "tb") for y in ("in_a", "in_b"))
    results = [session.execute(Batch((item,))).results for item in question]
    kinds = [item[0].kinds[0] if item else "consumed" for item in results]
    assert kinds == ["dense", "consumed", "none", "consumed"]


def test_a_batch_begins_in_the_main_context(session):
    run(session, ContextSwitch("a"), TapeOpen("t"), Constant("x", X), TapeWatch("t", ("x",)))
    run(session, Call("neg", ("x",), ("y",)))
    assert session.describe("t")["ops"] == 0
    run(session, ContextSwitch("a"), Call("neg", ("x",), ("z",)))
    assert session.describe("t")["ops"] == 1


def test_a_gradient_is_recorded_where_it_is_asked(session):
    run(
        session,
        Constant("x", X),
        TapeOpen("outer"),
        TapeWatch("outer", ("x",)),
        TapeOpen("inner", True),
        TapeWatch("inner", ("x",)),
        Call("pow", ("x", Literal(3.0)), ("y",)),
        Gradient("inner", ("y",), ("x",), ("g",)),
        ContextSwitch("elsewhere"),
        Gradient("inner", ("y",), ("x",), ("unseen",)),
        ContextSwitch(0),
        TapePause("outer"),
        TapePause("inner"),
    )
    (kinds,) = run(session, Gradient("outer", ("g",), ("x",), ("h",)))
    assert kinds.kinds == ("dense",)
    np.testing.assert_allclose(value(session, "h"), 6 * X)


# -------------------------------------------------------------------------------------------------------------- purity
def test_the_same_batch_gives_the_same_bytes_anywhere():
    todo = (
        Constant("x", np.linspace(-2, 2, 101, dtype=np.float32)),
        TapeOpen("t"),
        TapeWatch("t", ("x",)),
        Call("softmax", ("x",), ("p",)),
        Call("random_normal", (Literal(5), Literal(7)), ("noise",), {"shape": (101,), "dtype": "float32"}),
        Call("mul", ("p", "noise"), ("y",)),
        Gradient("t", ("y",), ("x",), ("g",)),
        *(Fetch(name) for name in ("p", "noise", "g")),
    )
    answers = [run(Session(), *todo) for _ in range(2)]
    arrays = [[item.array.tobytes() for item in answer if isinstance(item, Fetched)] for answer in answers]
    assert arrays[0] == arrays[1]
    assert len(arrays[0]) == 3


def test_looking_at_what_is_not_there(session):
    run(session, Constant("a", X), releases=("a",))
    with pytest.raises(ReleasedIdError):
        session.describe("a")
    failing(session, Call("nope", (), ("b",)))
    with pytest.raises(PoisonedError, match="unknown op 'nope'"):
        session.describe("b")


def test_kinds_come_with_every_gradient(session):
    results = run(session, *watched(Call("floor", ("x",), ("y",))), Gradient("t", ("y",), ("x",), ("g",)))
    assert results == (Kinds(4, ("none",)),)


# --------------------------------------------------------------------------------------------- what ids name afterwards
def test_temporaries_end_with_their_batch_and_are_free_again(session):
    batch = Batch((Constant("a", X), Call("neg", ("a",), ("b",)), TapeOpen("t")), temporaries=("a", "t"))
    assert session.execute(batch).failure is None
    assert failing(session, Fetch("a")).code == "unknown_id"
    assert state_of(session).context(0).context.tapes == []
    run(session, Constant("a", X + 1))
    assert value(session, "b").tolist() == (-X).tolist()


def test_temporaries_end_with_a_batch_that_fails_too(session):
    batch = Batch((Constant("a", X), Call("nope", ("a",), ("b",))), temporaries=("a", "b"))
    assert session.execute(batch).failure.index == 1
    run(session, Constant("a", X), Constant("b", X))


@pytest.mark.parametrize(
    ("on_failure", "free"), [("poison", []), ("strand", []), ("free", ["b"]), ("rollback", ["a", "b", "v"])]
)
def test_what_a_failure_leaves_under_the_ids(session, on_failure, free):
    run(session, Constant("before", X))
    todo = Constant("a", X), MakeVariable("v", X), Call("nope", ("a",), ("b",)), TapeOpen("t")
    assert session.execute(Batch(todo, on_failure=OnFailure(on_failure))).failure.index == 2
    taken = [name for name in ("a", "b", "v") if name in state_of(session).entries]
    assert [name for name in ("a", "b", "v") if name not in taken] == free
    assert ("t" in state_of(session).entries) == (on_failure != "rollback")
    assert value(session, "before").tolist() == X.tolist()


STRANDS = (
    Constant("a", X),
    ContextSwitch("c1"),
    Call("nope", ("a",), ("b",)),
    Call("neg", ("a",), ("b2",)),
    ContextSwitch("c2", "s2"),
    Call("neg", ("a",), ("c",)),
    ContextSwitch("c3", "c1"),  # another context of the strand that has failed
    TapeOpen("t"),
    Call("neg", ("a",), ("d",)),
    ContextSwitch("c2", "s3"),
    Call("neg", ("d",), ("e",)),
    ContextSwitch("c4", "s2"),
    Fetch("c"),
)


def test_a_failure_skips_the_rest_of_its_strand_and_what_uses_it(session):
    answer = session.execute(Batch(STRANDS, on_failure=OnFailure.STRAND))
    assert [(failure.index, failure.code) for failure in answer.failures] == [(2, "unknown_op"), (10, "poisoned")]
    assert [result.index for result in answer.results] == [12]
    entries = state_of(session).entries
    assert [name for name in ("a", "b", "b2", "c", "d", "e", "t") if session.names(name)] == ["a", "c", "t"]
    assert all(name in entries for name in ("b", "b2", "d", "e"))
    assert answer.failures[0].message in failing(session, Fetch("d")).message
    assert session.execute(Batch((Fetch("c"),), on_failure=OnFailure.STRAND)).failures == ()


def test_without_strands_the_whole_batch_stops(session):
    answer = session.execute(Batch(STRANDS))
    assert [failure.index for failure in answer.failures] == [2]
    assert not answer.results
    assert failing(session, Fetch("c")).code == "poisoned"


def test_a_cancelled_batch_fails_in_each_strand(session):
    stops = iter([False, False])
    batch = Batch(STRANDS[4:], on_failure=OnFailure.STRAND)
    run(session, Constant("a", X))
    answer = session.execute(batch, cancelled=lambda: next(stops, True))
    assert [failure.code for failure in answer.failures] == ["cancelled"] * len(answer.failures)
    assert session.names("c")
    assert session.names("t")
    assert not session.names("e")


def test_an_optional_fetch_of_an_id_that_names_nothing_has_no_result(session):
    run(session, Constant("a", X))
    results = run(session, Fetch("nothing", optional=True), Fetch("a", optional=True))
    assert [result.id for result in results] == ["a"]
    run(session, releases=("a",))
    assert run(session, Fetch("a", optional=True)) == ()
    assert failing(session, Fetch("a")).code == "released_id"


def test_a_tape_remembers_its_parents(session):
    run(session, TapeOpen("outer"), TapeOpen("inner", parents=("outer",)))
    assert session.describe("inner")["parents"] == ["outer"]
    assert session.describe("outer")["parents"] == []
    assert failing(session, TapeOpen("t", parents=("nothing",))).code == "unknown_id"
