"""Ids that are written again when a batch asks for it (`replace`), and what stays as it was without that."""

import re

import numpy as np
import pytest
from driving import X, attach, failing, run, state_of, value
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from teletape_engine.commands import (
    AccumulatorOpen,
    Batch,
    Call,
    Constant,
    DefineFunction,
    Fetch,
    Gradient,
    MakeVariable,
    OnFailure,
    TapeOpen,
    TapePause,
    TapeWatch,
)
from teletape_engine.errors import TeletapeError
from teletape_engine.recording.values import Literal
from teletape_engine.session.session import Session


def replacing(session, *todo, **how):
    """The answer to a batch that replaces ids."""
    return session.execute(Batch(todo, replace=True, **how))


def number(name, of):
    return Constant(name, np.float32(of))


# ------------------------------------------------------------------------------------------------------------- examples
def test_a_result_takes_the_place_of_the_tensor_from_which_it_was_computed(session):
    run(session, number("z", 2))
    for _ in range(3):
        assert replacing(session, Call("mul", ("z", "z"), ("z",))).failure is None
    assert value(session, "z") == 256
    assert [each["id"] for each in session.listing("tensor")] == ["z"]


def test_a_released_id_names_something_new_when_asked(session):
    run(session, number("z", 2), releases=("z",))
    assert failing(session, number("z", 3)).code == "id_in_use"
    assert replacing(session, number("z", 3)).failure is None
    assert value(session, "z") == 3
    run(session, releases=("z",))
    assert failing(session, Fetch("z")).code == "released_id"


def test_a_loop_over_one_id_leaves_no_trace(session):
    run(session, number("z", 0))
    for _ in range(3):
        replacing(session, Call("add", ("z", Literal(1.0)), ("z",)))
        run(session, releases=("z",))
        replacing(session, number("z", 0))
    before = session.bytes_in_use(), len(state_of(session).released)
    for _ in range(100):
        replacing(session, Call("add", ("z", Literal(1.0)), ("z",)))
        run(session, releases=("z",))
        replacing(session, number("z", 0))
    assert (session.bytes_in_use(), len(state_of(session).released)) == before


def test_the_memory_of_what_is_replaced_is_free_for_what_follows():
    session = Session(memory_limit=2_500_000)
    large = np.ones(250_000, np.float32)
    for _ in range(4):
        assert replacing(session, Constant("x", large), Call("neg", ("x",), ("x",))).failure is None


@pytest.mark.parametrize(
    ("earlier", "later", "text"),
    [
        (MakeVariable("w", X), Call("neg", (Literal(1.0),), ("w",)), "a variable, .* or assign to it"),
        (TapeOpen("w"), Constant("w", X), "a tape, .* or release it first"),
        (Constant("w", X), MakeVariable("w", X), "a tensor, which only its own kind"),
        (AccumulatorOpen("w", (), ()), TapeOpen("w"), "an accumulator"),
    ],
)
def test_only_a_thing_of_the_same_kind_is_replaced(session, earlier, later, text):
    run(session, earlier)
    failure = replacing(session, later).failure
    assert failure.code == "id_in_use"
    assert re.search(text, failure.message)


def test_a_command_gets_all_of_its_new_ids_or_none(session):
    run(session, MakeVariable("w", X), Constant("x", X), TapeOpen("t", True))
    run(session, Call("mul", ("x", "w"), ("y",)), number("dx", 1))
    failure = replacing(session, Gradient("t", ("y",), ("x", "w"), ("dx", "w")), on_failure=OnFailure.FREE).failure
    assert failure.code == "id_in_use"
    assert value(session, "dx") == 1
    failure = replacing(session, Gradient("t", ("y",), ("x", "w"), ("dx", "dx")), on_failure=OnFailure.FREE).failure
    assert "two results of one command" in failure.message


def test_a_derivative_that_is_none_ends_the_one_of_the_step_before(session):
    run(session, Constant("x", X), TapeOpen("t", True), TapeWatch("t", ("x",)))
    run(session, Call("square", ("x",), ("y",)), Call("round", ("x",), ("z",)))
    assert replacing(session, Gradient("t", ("y",), ("x",), ("dx",))).failure is None
    assert value(session, "dx").tolist() == [2, 4, 6]
    assert replacing(session, Gradient("t", ("z",), ("x",), ("dx",))).failure is None
    assert failing(session, Fetch("dx")).code == "released_id"


def test_a_rollback_gives_ids_back_what_they_named(session):
    run(session, number("z", 2), number("gone", 1), TapeOpen("t"), releases=("gone",))
    todo = (number("z", 3), number("z", 4), number("gone", 5), TapeOpen("t"), number("new", 6), Fetch("nobody"))
    assert replacing(session, *todo, on_failure=OnFailure.ROLLBACK).failure.code == "unknown_id"
    assert value(session, "z") == 2
    assert failing(session, Fetch("gone")).code == "released_id"
    assert failing(session, Fetch("new")).code == "unknown_id"
    assert session.describe("t")["recording"]
    assert len(state_of(session).tapes()) == 1


def test_ids_of_what_a_failure_skipped_name_the_failure_and_can_be_written_again(session):
    run(session, number("z", 2), TapeOpen("t"), MakeVariable("w", X))
    skipped = (number("z", 3), TapeOpen("t"), MakeVariable("w", X), DefineFunction("f", ("x",), (), ("x",)))
    assert replacing(session, Fetch("nobody"), *skipped).failure is not None
    assert {failing(session, Fetch(name)).code for name in "zw"} == {"poisoned"}
    assert session.describe("t")["recording"]  # a tape is opened even after a failure
    assert replacing(session, number("z", 4)).failure is None
    assert replacing(session, number("f", 5)).failure is None
    assert [value(session, name) for name in "zf"] == [4, 5]


def test_ids_that_a_client_counts_are_never_replaced(session):
    first = attach(session)["first_id"]
    run(session, number(first, 1))
    failure = replacing(session, number(first, 2)).failure
    assert (failure.code, value(session, first)) == ("id_in_use", 1)
    run(session, releases=(first,))
    assert replacing(session, number(first, 2)).failure.code == "id_in_use"
    assert replacing(session, number(first + 1, 2)).failure is None


def test_another_tape_under_an_id_is_no_parent_of_the_tapes_of_the_first(session):
    run(session, TapeOpen("outer"), TapeOpen("inner", parents=("outer",)), TapePause("inner"), TapePause("outer"))
    todo = (TapeOpen("outer", parents=("inner",)), TapeOpen("third", parents=("outer",)))
    assert replacing(session, *todo).failure is None
    parents = {name: session.describe(name)["parents"] for name in ("outer", "inner", "third")}
    assert parents == {"outer": ["inner"], "inner": [], "third": ["outer"]}
    undone = (TapeOpen("outer"), Fetch("nobody"))
    assert replacing(session, *undone, on_failure=OnFailure.ROLLBACK).failure is not None
    assert session.describe("third")["parents"] == ["outer"]


def test_a_batch_that_replaces_never_runs_as_a_plan_of_one_that_does_not(session):
    for step in range(1, 9):
        todo = (Call("add", ("x", Literal(1.0)), ("y",)), Call("add", ("y", Literal(1.0)), ("x",)), Fetch("x"))
        if step == 1:
            run(session, number("x", 0))
        answer = replacing(session, *todo)
        assert answer.failure is None
        assert answer.results[-1].array == 2 * step


# ---------------------------------------------------------------------------------------------------------------- model
NAMES = ("a", "b", "c", 5)
KINDS = {"tensor": Constant, "variable": MakeVariable, "tape": TapeOpen, "function": DefineFunction}


class Refused(Exception):
    """A command that the model refuses."""


class Model:
    """A session as dictionaries: by id a kind and a number."""

    def __init__(self):
        self.entries, self.released = {}, set()

    def put(self, name, kind, content, replace):
        self.check(name, kind, replace)
        self.released.discard(name)
        self.entries[name] = (kind, content)

    def check(self, name, kind, replace):
        old = self.entries.get(name, (None,))[0]
        if not replace and (old is not None or name in self.released):
            raise Refused
        if old not in (None, "poison", kind):
            raise Refused

    def end(self, name):
        if self.entries.pop(name, None) is not None:
            self.released.add(name)

    def apply(self, command, replace):
        verb, name, content = command
        if verb == "sum":
            self.check(name, "tensor", replace)
            kind, amount = self.entries.get(content, ("missing", 0))
            if kind not in ("tensor", "variable"):
                raise Refused
            verb, content = "tensor", amount + 1
        elif verb == "fetch":
            if self.entries.get(name, ("missing",))[0] not in ("tensor", "variable"):
                raise Refused
            return
        self.put(name, verb, 0 if verb == "tape" else content, replace)

    def execute(self, todo, releases, on_failure, replace):
        entries, released = dict(self.entries), set(self.released)
        mentioned = {
            name: at for at, (verb, name, content) in enumerate(todo) for name in self.ids(verb, name, content)
        }
        failed = False
        for name in releases:
            if name not in mentioned:
                self.end(name)
        for at, (verb, name, content) in enumerate(todo):
            if not failed or verb == "tape":
                try:
                    self.apply((verb, name, content), replace)
                except Refused:
                    failed = True
            if failed and on_failure in (OnFailure.POISON, OnFailure.STRAND) and verb != "fetch":
                self.poison(verb, name, replace)
            for each in releases:
                if mentioned.get(each) == at:
                    self.end(each)
        if failed and on_failure is OnFailure.ROLLBACK:
            self.released = released | {name for name in releases if name in entries or name in self.released}
            self.entries = {name: entry for name, entry in entries.items() if name not in releases}
        return failed

    @staticmethod
    def ids(verb, name, content):
        return (name, content) if verb == "sum" else (name,)

    def poison(self, verb, name, replace):
        kind = "tensor" if verb == "sum" else verb
        if replace and kind != "tape":
            try:
                self.put(name, kind, None, replace)
                self.entries[name] = ("poison", None)
            except Refused:
                pass
        elif name not in self.released:
            self.entries.setdefault(name, ("poison", None))


def commands_of(todo):
    for verb, name, content in todo:
        if verb == "sum":
            yield Call("add", (content, Literal(1.0)), (name,))
        elif verb == "fetch":
            yield Fetch(name)
        elif verb == "function":
            yield DefineFunction(name, ("x",), tuple(Call("neg", ("x",), (f"y{i}",)) for i in range(content)), ("x",))
        elif verb == "tape":
            yield TapeOpen(name)
        else:
            yield KINDS[verb](name, np.float32(content))


names = st.sampled_from(NAMES)
any_command = st.one_of(
    st.tuples(st.sampled_from(list(KINDS)), names, st.integers(0, 3)),
    st.tuples(st.just("sum"), names, names),
    st.tuples(st.just("fetch"), names, st.none()),
)


class SessionIsItsModel(RuleBasedStateMachine):
    """Batches with and without `replace`, which fail or do not, change a session as they change the model."""

    def __init__(self):
        super().__init__()
        self.session, self.model = Session(), Model()

    @rule(
        todo=st.lists(any_command, max_size=5),
        releases=st.lists(names, max_size=2, unique=True),
        on_failure=st.sampled_from(OnFailure),
        replace=st.booleans(),
    )
    def execute(self, todo, releases, on_failure, replace):
        """Executes a batch."""
        batch = Batch(tuple(commands_of(todo)), tuple(releases), on_failure=on_failure, replace=replace)
        failure = self.session.execute(batch).failure
        assert (failure is not None) == self.model.execute(todo, releases, on_failure, replace), failure

    @invariant()
    def every_id_names_what_the_model_says(self):
        """Kinds, numbers, and what was released."""
        for name in NAMES:
            kind, content = self.model.entries.get(name, (None, None))
            if kind is None or kind == "poison":
                expected = "poisoned" if kind else "released_id" if name in self.model.released else "unknown_id"
                with pytest.raises(TeletapeError) as error:
                    self.session.describe(name)
                assert error.value.code == expected
                continue
            facts = self.session.describe(name)
            assert facts["kind"] == kind
            if kind in ("tensor", "variable"):
                assert value(self.session, name) == content
            elif kind == "function":
                assert facts["size"] == content
        live = [name for name, (kind, _) in self.model.entries.items() if kind == "tape"]
        assert len(state_of(self.session).tapes()) == len(live)


TestSessionIsItsModel = SessionIsItsModel.TestCase
TestSessionIsItsModel.settings = settings(max_examples=100, stateful_step_count=15, derandomize=True)
