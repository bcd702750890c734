"""Calls with a gradient of the caller's own: on tapes, and passes that stop at them, command by command."""

import re
import weakref

import numpy as np
import pytest
from driving import X, executor, failing, run, value, watched

from teletape_engine.catalogue.op import CATALOGUE
from teletape_engine.catalogue.slices import GradientKind
from teletape_engine.commands import (
    BackwardBegin,
    BackwardCotangents,
    BackwardEnd,
    BackwardResume,
    Call,
    Constant,
    Custom,
    CustomCall,
    CustomFunction,
    Declare,
    DefineFunction,
    Fetch,
    Gradient,
    Jacobian,
    MakeSlices,
    TapeOpen,
    TapeWatch,
)
from teletape_engine.derivatives.backward import backward, backward_pass
from teletape_engine.errors import UnimplementedError
from teletape_engine.recording.cotangents import Presence
from teletape_engine.recording.custom import CallerGradient, VariableReadLog, record_custom
from teletape_engine.recording.executor import Executor
from teletape_engine.recording.tape import Tape
from teletape_engine.recording.values import Literal, Variable

#: y = x·x as a custom call whose tag is f, and z = 3 y after it.
CALLED = (
    Call("mul", ("x", "x"), ("r",)),
    Call("identity", ("r",), ("y",)),
    Custom(("x",), ("y",), "f", "square"),
    Call("mul", ("y", Literal(3.0)), ("z",)),
)


def through(pass_="b", inputs=("dx",), outputs=("g",)):
    """The commands of a pass of one stop, whose function gives 10 dy."""
    return (
        BackwardBegin(pass_, "t", ("z",), ("x",)),
        BackwardCotangents(pass_, ("dy",), "f"),
        Call("mul", ("dy", Literal(10.0)), ("dx",)),
        BackwardResume(pass_, inputs),
        BackwardEnd(pass_, outputs),
    )


# --------------------------------------------------------------------------------------------------------- the passes
def test_a_pass_stops_hands_out_and_goes_on(session):
    begin, give, kinds = run(session, *watched(*CALLED), *through())
    assert begin.facts == {"through": False, "tag": "f", "function": "square", "cotangents": ["dense"]}
    assert give.facts == {"through": True}
    assert kinds.kinds == ("dense",)
    assert value(session, "dy").tolist() == [3.0, 3.0, 3.0]
    assert value(session, "g").tolist() == [30.0, 30.0, 30.0]
    assert session.describe("b") == {"id": "b", "kind": "backward", "through": True}


def test_null_for_an_input_is_no_gradient(session):
    *_, kinds = run(session, *watched(*CALLED), *through(inputs=(None,), outputs=(None,)))
    assert kinds.kinds == ("none",)


def test_a_number_or_tensor_given_takes_the_inputs_dtype(session):
    run(session, *watched(*CALLED, persistent=True))
    run(session, *through("b1", inputs=(Literal(2.0),), outputs=("g1",))[:2])
    run(session, BackwardResume("b1", (np.array([1, 2, 3], np.float32),)), BackwardEnd("b1", ("g1",)))
    assert value(session, "g1").tolist() == [1.0, 2.0, 3.0]
    run(
        session,
        BackwardBegin("b2", "t", ("z",), ("x",)),
        BackwardResume("b2", (Literal(2),)),
        BackwardEnd("b2", ("g2",)),
    )
    assert value(session, "g2").tolist() == 2.0


def test_zeros_where_nothing_came(session):
    two = (
        Call("identity", ("x",), ("a",)),
        Call("sin", ("x",), ("s",)),
        Call("identity", ("s",), ("b",)),
        Custom(("x",), ("a", "b"), "f"),
        Call("mul", ("b", Literal(2.0)), ("z",)),
    )
    begin, *_ = run(
        session, *watched(*two), BackwardBegin("p", "t", ("z",), ("x",)), BackwardCotangents("p", ("da", "db"))
    )
    assert begin.facts["cotangents"] == ["dense", "dense"]
    assert value(session, "da").tolist() == [0.0, 0.0, 0.0]
    assert value(session, "db").tolist() == [2.0, 2.0, 2.0]


def test_the_call_overrules_the_identity_but_not_where_its_inputs_are_not_followed(session):
    closure = (
        Constant("c", X),
        Call("mul", ("x", "c"), ("r",)),
        Call("identity", ("r",), ("y",)),
        Custom(("c",), ("y",), "f"),
        Gradient("t", ("y",), ("x",), ("g",)),
    )
    run(session, *watched(*closure))
    assert value(session, "g").tolist() == X.tolist()


def test_a_pass_stops_though_the_sources_lie_elsewhere(session):
    other = (Constant("w", X), *watched()[1:], Call("mul", ("x", "w"), ("unrelated",)))
    run(session, Constant("x", X), *other[:1], *watched(*CALLED)[1:])
    (begin,) = run(session, BackwardBegin("b", "t", ("z",), ("w",)))
    assert begin.facts["tag"] == "f"


def test_what_runs_in_between_is_recorded_by_the_tapes_active_then(session):
    outer = watched(tape="outer")[1:]
    run(session, Constant("x", X), *outer, *watched(*CALLED)[1:])
    run(
        session,
        BackwardBegin("b", "t", ("z",), ("x",)),
        BackwardCotangents("b", ("dy",)),
        Call("mul", ("dy", "x"), ("dx",)),
        BackwardResume("b", ("dx",)),
        BackwardEnd("b", ("g",)),
        Gradient("outer", ("g",), ("x",), ("gg",)),
    )
    assert value(session, "g").tolist() == [3.0, 6.0, 9.0]
    assert value(session, "gg").tolist() == [3.0, 3.0, 3.0]


def test_a_sparse_cotangent_handed_out_and_given(session):
    rows = (
        Call("identity", ("x",), ("y",)),
        Custom(("x",), ("y",), "f"),
        Constant("i", np.array([0, 0, 2], np.int32)),
        Call("gather", ("y", "i"), ("z",)),
    )
    begin, _, kinds = run(
        session,
        *watched(*rows),
        BackwardBegin("b", "t", ("z",), ("x",)),
        BackwardCotangents("b", ("dy",)),
        Constant("v", np.array([5.0], np.float32)),
        Constant("at", np.array([1], np.int32)),
        MakeSlices("s", "v", "at", 3),
        BackwardResume("b", ("s",)),
        BackwardEnd("b", ("g",)),
    )
    assert begin.facts["cotangents"] == ["slices"]
    assert kinds.kinds == ("slices",)
    (fetched,) = run(session, Fetch("g"))
    assert (fetched.array.values.tolist(), fetched.array.indices.tolist()) == ([5.0], [1])
    (upstream,) = run(session, Fetch("dy"))
    assert upstream.array.indices.tolist() == [0, 0, 2]


# ------------------------------------------------------------------------------------------------------ what is wrong
@pytest.mark.parametrize(
    ("command", "text"),
    [
        (
            BackwardCotangents("b", ("dy",), "g"),
            r"stopped at 'square' \(tag 'f'\), and the caller expects it at 'g'",
        ),
        (BackwardCotangents("b", ("dy", "more"), "f"), "'square' has 1 results, found 2 ids"),
        (BackwardResume("b", ()), "'square' has 1 inputs, found 0 cotangents"),
        (BackwardResume("b", (np.ones(2, np.float64),)), "has dtype float64, the input float32: cast it"),
        (BackwardEnd("b", ("g",)), "the pass 'b' has not ended: it has stopped at 'square'"),
    ],
)
def test_commands_that_do_not_fit(session, command, text):
    _, own, _, scaled = CALLED
    inner = (Call("mul", ("x", Literal(2.0)), ("x1",)), Call("mul", ("x1", "x1"), ("r",)), own)
    run(
        session,
        *watched(*inner, Custom(("x1",), ("y",), "f", "square"), scaled),
        BackwardBegin("b", "t", ("z",), ("x",)),
    )
    failure = failing(session, command)
    assert re.search(text, failure.message)


def test_a_pass_that_has_ended_is_at_no_stop(session):
    run(session, *watched(*CALLED), *through())
    for command in (BackwardResume("b", ("dx",)), BackwardCotangents("b", ("again",))):
        assert "is at no stop" in failing(session, command).message


def test_a_cotangent_that_does_not_fit_ends_the_pass(session):
    chain = (Call("mul", ("x", Literal(2.0)), ("x1",)), Call("identity", ("x1",), ("y",)), Custom(("x1",), ("y",), "f"))
    run(session, *watched(*chain), BackwardBegin("b", "t", ("y",), ("x",)))
    assert "does not broadcast" in failing(session, BackwardResume("b", (np.ones((2,), np.float32),))).message
    assert "has failed" in failing(session, BackwardEnd("b", ("g",))).message


def test_the_gradient_command_says_what_to_do_instead(session):
    run(session, *watched(*CALLED))
    failure = failing(session, Gradient("t", ("z",), ("x",), ("g",)))
    assert failure.code == "unimplemented"
    assert "backward.begin, .cotangents, .resume and .end" in failure.message


def test_an_integer_input_is_refused(session):
    run(session, *watched(Constant("n", np.array([1], np.int32)), *CALLED[:2]))
    assert "dtype int32 has no gradient" in failing(session, Custom(("n",), ("y",), "f")).message


@pytest.mark.parametrize(
    ("values", "indices", "text"),
    [
        (np.ones((2, 3)), np.array([1.0, 2.0]), "list of integers"),
        (np.ones((2, 3)), np.array([1]), "one row of values"),
    ],
)
def test_slices_that_are_none(session, values, indices, text):
    run(session, Constant("v", values), Constant("i", indices))
    assert text in failing(session, MakeSlices("s", "v", "i", 3)).message


# ------------------------------------------------------------------------------------------------------------ lifetime
def test_a_pass_given_up_has_used_its_tape_and_keeps_nothing(session):
    run(session, *watched(*CALLED), releases=("r", "y"))
    before = session.bytes_in_use()
    run(session, BackwardBegin("b", "t", ("z",), ("x",)))
    run(session, releases=("b",))
    assert session.bytes_in_use() <= before
    assert failing(session, Gradient("t", ("z",), ("x",), ("g",))).code == "tape_consumed"


def test_a_persistent_tape_survives_a_pass_given_up(session):
    run(session, *watched(*CALLED, persistent=True), BackwardBegin("b", "t", ("z",), ("x",)), releases=("b",))
    run(session, *through("again"))
    assert value(session, "g").tolist() == [30.0, 30.0, 30.0]


def test_a_tape_released_in_the_middle_goes_on(session):
    run(session, *watched(*CALLED), BackwardBegin("b", "t", ("z",), ("x",)), releases=("t",))
    run(session, *through()[1:])
    assert value(session, "g").tolist() == [30.0, 30.0, 30.0]


def test_a_standing_pass_counts_its_cotangents(session):
    big = np.ones(10_000, np.float32)
    deep = (
        Call("mul", ("x", Literal(2.0)), ("r",)),
        Call("identity", ("r",), ("y",)),
        Custom(("x",), ("y",), "f"),
        Call("mul", ("y", Literal(3.0)), ("z",)),
    )
    run(session, Constant("x", big), *watched(*deep)[1:], BackwardBegin("b", "t", ("z",), ("x",)))
    run(session, releases=("r", "y", "z", "t"))
    assert session.bytes_in_use() == 2 * big.nbytes


# --------------------------------------------------------------------------------------------------- declared gradients
ADJUSTED = (
    Constant("c", np.array(2.0, np.float32)),
    Call("adjust_contrast", ("image", "c"), ("y",)),
)


def test_a_registered_op_hands_out_its_inputs_and_result(session):
    image = np.arange(12, dtype=np.float32).reshape(1, 2, 2, 3)
    run(session, Constant("image", image), TapeOpen("t"), TapeWatch("t", ("image",)), *ADJUSTED, releases=("c",))
    run(session, Declare(registered="AdjustContrastv2"))
    begin, *_ = run(
        session,
        BackwardBegin("b", "t", ("y",), ("image",)),
        BackwardCotangents("b", ("dy",), None, ("images", "factor", "result")),
        BackwardResume("b", ("dy", None)),
        BackwardEnd("b", ("g",)),
    )
    assert begin.facts == {"through": False, "op": "AdjustContrastv2", "cotangents": ["dense"]}
    assert value(session, "images").tolist() == image.tolist()
    assert value(session, "factor") == 2.0
    assert value(session, "result").tolist() == value(session, "y").tolist()
    assert value(session, "g").tolist() == np.ones_like(image).tolist()


@pytest.mark.parametrize("first", ["no_gradient", "registered"])
@pytest.mark.parametrize("second", ["no_gradient", "registered"])
def test_declared_twice_either_way(session, first, second):
    run(session, Declare(**{first: "AdjustContrastv2"}))
    assert failing(session, Declare(**{second: "AdjustContrastv2"})).code == "gradient_registered"


def test_declared_for_an_op_that_has_one_or_for_nothing(session):
    assert failing(session, Declare(registered="Mul")).code == "gradient_registered"
    assert "one op type" in failing(session, Declare()).message
    assert "one op type" in failing(session, Declare("A", "B")).message


# ----------------------------------------------------------------------------------------------------------- functions
TEN_TIMES = DefineFunction("ten", ("dy", "w"), (Call("mul", ("dy", "w"), ("dx",)),), ("dx",))


def test_a_jacobian_runs_a_function_where_it_would_stop(session):
    run(session, TEN_TIMES, Constant("w", np.array(10.0, np.float32)), *watched(*CALLED, persistent=True))
    assert failing(session, Jacobian("t", ("z",), ("x",), ("J",))).code == "unimplemented"
    run(
        session,
        CustomFunction("c", "f", "ten", ("w",), (True,)),
        Jacobian("t", ("z",), ("x",), ("J2",), custom_gradients=("c",)),
    )
    assert value(session, "J2").tolist() == (30 * np.eye(3)).tolist()
    assert session.describe("c") == {"id": "c", "kind": "gradient", "tag": "f"}


def test_a_function_that_has_no_form_over_rows_is_refused(session):
    run(session, DefineFunction("u", ("dy",), (Call("nonzero", ("dy",), ("a",)),), ("a",)))
    assert "has no form over rows" in failing(session, CustomFunction("c", "f", "u", (), (True,))).message


def test_a_custom_call_by_function_never_stops(session):
    run(
        session,
        TEN_TIMES,
        Constant("w", np.array(10.0, np.float32)),
        *watched(Call("mul", ("x", "x"), ("r",)), CustomCall("ten", ("x", "r", "w"), ("y",), (True,)), persistent=True),
        Gradient("t", ("y",), ("x",), ("g",)),
        Jacobian("t", ("y",), ("x",), ("J",)),
    )
    assert value(session, "g").tolist() == [10.0, 10.0, 10.0]
    assert value(session, "J").tolist() == (10 * np.eye(3)).tolist()
    assert "found 1 inputs" in failing(session, CustomCall("ten", ("x",), ("q",), (True,))).message


# ---------------------------------------------------------------------------------------------------------- on tapes
def recorded(persistent=False):
    """A recorder, its tape, x and z = 3 f(x)."""
    recorder, tape = executor(), Tape(persistent=persistent)
    assert isinstance(recorder, Executor)
    recorder.context.open(tape)
    x = recorder.constant(X.copy())
    recorder.context.watch(tape, [x])
    y = recorder.apply(CATALOGUE["identity"], (recorder.apply(CATALOGUE["mul"], (x, x)),))
    assert record_custom(recorder.context.tapes, [x], [y], tag=1, label="f", gradient=[CallerGradient(lambda cts: cts)])
    return recorder, tape, x, recorder.apply(CATALOGUE["mul"], (y, Literal(3.0)))


def test_presence_stops_where_arrays_do():
    _, tape, x, z = recorded(persistent=True)
    seen = []

    def answer(stop):
        seen.append((stop.bound.label, stop.cts, stop.inputs, [residual.function([5]) for residual in stop.residuals]))
        return [GradientKind.DENSE]

    assert backward(tape, [(z.uid, GradientKind.DENSE)], {x.uid}, Presence(), at_stop=answer) == {
        x.uid: GradientKind.DENSE
    }
    assert seen == [("f", [GradientKind.DENSE], (x.uid,), [[5]])]


def test_nobody_answers():
    _, tape, x, z = recorded()
    with pytest.raises(UnimplementedError, match="custom call"):
        backward(tape, [(z.uid, GradientKind.DENSE)], {x.uid}, Presence())


def test_a_stop_has_the_cotangents_that_are_pending():
    _, tape, x, z = recorded(persistent=True)
    walk = backward_pass(tape, [(z.uid, GradientKind.DENSE), (x.uid, GradientKind.DENSE)], {x.uid}, Presence())
    assert list(next(walk).pending) == [x.uid]
    walk.close()


def test_a_released_function_is_freed_with_its_node():
    class Function:
        def __call__(self, cts):
            return cts

    recorder, tape = executor(), Tape()
    recorder.context.open(tape)
    x = recorder.constant(X.copy())
    recorder.context.watch(tape, [x])
    y = recorder.apply(CATALOGUE["identity"], (x,))
    function = Function()
    reference = weakref.ref(function)
    record_custom(recorder.context.tapes, [x], [y], tag=1, label="f", gradient=[CallerGradient(function)])
    del function
    assert reference() is not None
    tape.consume()
    tape.free()
    assert reference() is None


def test_a_watcher_notes_trainable_variables_and_follows_nothing():
    recorder, watcher = executor(), VariableReadLog()
    value = recorder.constant(X.copy())
    w, frozen = Variable(value, trainable=True), Variable(value, trainable=False)
    recorder.context.open(watcher)
    for item in (w, frozen, w):
        recorder.apply(CATALOGUE["mul"], (recorder.read(item), Literal(2.0)))
    recorder.context.pause(watcher)
    assert list(watcher.variables.values()) == [w]
    assert not watcher.nodes
    assert not watcher.tracked
