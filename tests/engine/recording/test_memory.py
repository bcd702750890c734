"""Bytes: what counts and how often, what is refused before it is allocated, what a release gives back."""

import functools
import sys
import tracemalloc

import numpy as np
import pytest
import substitute
from driving import attach

import teletape_engine.ops  # noqa: F401  # fills the catalogue
from counting import calls
from teletape_engine.arrays.gpu import Gpu
from teletape_engine.commands import (
    Assign,
    Batch,
    Call,
    Constant,
    ContextSwitch,
    Fetch,
    Gradient,
    Jacobian,
    MakeVariable,
    SlicesComponent,
    TapeOpen,
    TapePause,
    TapeWatch,
)
from teletape_engine.errors import ResourceExhaustedError
from teletape_engine.recording.memory import Memory
from teletape_engine.recording.values import Literal
from teletape_engine.session.handlers import questions
from teletape_engine.session.session import Session


@pytest.fixture(autouse=True, params=["cpu", "gpu"])
def device(request, monkeypatch):
    """Each session of a test is on that device; the GPU is the substitute's, with memory in blocks of one byte."""
    if request.param == "gpu":
        substitute.installed(monkeypatch)
        monkeypatch.setattr(substitute, "BLOCK", 1)
        monkeypatch.setattr(Gpu, "block", 1)
    monkeypatch.setattr(sys.modules[__name__], "Session", functools.partial(Session, request.param))
    return request.param


def in_use(session):
    return session.bytes_in_use()


def run(session, *todo, releases=()):
    answer = session.execute(Batch(todo, releases))
    assert answer.failure is None, answer.failure
    return answer


def refused(session, *todo):
    failure = session.execute(Batch(todo)).failure
    assert failure is not None
    assert failure.code == "resource_exhausted", failure
    return failure


MIB = 1 << 20
BIG = np.zeros(1000, np.float32)


def test_every_buffer_counts_once(device):
    session = Session()
    assert device in repr(session)
    run(session, Constant("a", BIG), MakeVariable("v", "a"), MakeVariable("w", "v"), Call("identity", ("a",), ("b",)))
    assert in_use(session) == 4000
    run(session, Call("reshape", ("a",), ("c",), {"shape": (10, 100)}))
    assert in_use(session) == 4000
    run(session, Assign("w", np.ones(1000, np.float32)))
    assert in_use(session) == 8000


def test_a_view_counts_as_its_base_and_one_of_less_than_an_eighth_is_a_copy():
    session = Session()
    big = np.zeros((16, 1000), np.float32)
    run(session, Constant("a", big), *(Call("strided_slice", ("a",), (k,), {"index": [[0, int(k), 1]]}) for k in "12"))
    assert in_use(session) == 64_000 + 4000  # two rows are an eighth, and a view; one row is a copy
    run(session, releases=("a", "1"))
    assert in_use(session) == 64_000
    run(session, Call("strided_slice", ("2",), ("one",), {"index": [[0, 1, 1]]}), releases=("2",))
    assert in_use(session) == 4000


def test_a_view_of_a_view_counts_as_the_array_below():
    session = Session()
    run(session, Constant("a", np.zeros((16, 1000), np.float32)), Call("reshape", ("a",), ("b",), {"shape": (4, 4000)}))
    run(session, Call("reshape", ("b",), ("c",), {"shape": (16_000,)}), releases=("a", "b"))
    assert in_use(session) == 64_000


def test_residuals_count_and_names_do_not():
    session = Session()
    run(
        session,
        Constant("x", BIG),
        TapeOpen("t"),
        TapeWatch("t", ("x",)),
        *(Call("tanh", (a,), (b,)) for a, b in (("x", "a"), ("a", "b"), ("b", "c"))),
        *(Call("add", (a, Literal(1.0)), (b,)) for a, b in (("c", "d"), ("d", "e"))),
        releases=("a", "b", "c", "d"),
    )
    assert in_use(session) == 5 * 4000  # x, e, and what the three tanh keep
    run(session, Gradient("t", ("e",), ("x",), (None,)))
    assert in_use(session) == 2 * 4000


def test_an_active_tape_counts_although_its_name_is_elsewhere():
    session = Session()
    run(
        session,
        ContextSwitch("a"),
        Constant("x", BIG),
        TapeOpen("t"),
        TapeWatch("t", ("x",)),
        Call("tanh", ("x",), ("y",)),
    )
    run(session, releases=("x", "y"))
    assert in_use(session) == 4000


def test_the_value_read_in_this_epoch_counts():
    session = Session()
    run(session, MakeVariable("v", BIG), TapeOpen("t"), Call("add", ("v", Literal(1.0)), ("y",)), releases=("y",))
    run(session, Assign("v", BIG + 1))
    assert in_use(session) == 8000


def test_slices_count():
    session = Session()
    run(
        session,
        MakeVariable("v", np.zeros((10, 100), np.float32)),
        TapeOpen("t"),
        Call("gather", ("v", np.array([1, 2], np.int64)), ("rows",)),
        Gradient("t", ("rows",), ("v",), ("g",)),
        SlicesComponent("g", "indices", "i"),
        releases=("rows",),
    )
    assert in_use(session) == 4000 + 800 + 16


def test_what_an_answer_pins_counts_until_the_next():
    session = Session()
    client = attach(session)["client"]
    session.execute(Batch((Constant("a", BIG), Fetch("a")), ("a",), client, 1, b"1"))
    assert in_use(session) == 4000
    session.execute(Batch((), (), client, 2, b"2"))
    assert in_use(session) == 0


def test_a_small_part_of_a_gradient_does_not_keep_the_whole():
    session = Session()
    run(
        session,
        *(Constant(name, np.zeros(n, np.float32)) for name, n in (("small", 10), ("large", 10_000))),
        TapeOpen("t"),
        TapeWatch("t", ("small",)),
        Call("concat", ("small", "large"), ("y",), {"axis": 0}),
        Call("mul", ("y", Literal(2.0)), ("z",)),
        Gradient("t", ("z",), ("small",), ("g",)),
        releases=("small", "large", "y", "z"),
    )
    assert in_use(session) == 40


def test_a_trillion_numbers_are_refused_before_anything_is_allocated():
    session = Session(memory_limit=1 << 30)
    failure = refused(session, Constant("a", BIG), Call("fill", (Literal(1.0),), ("x",), {"shape": (10**12,)}))
    assert failure.op is None or failure.op == "fill"
    assert "'fill' needs 4,000,000,000,000 bytes; 4,000 of the session's 1,073,741,824 are in use" in failure.message
    assert failure.details == {"needed": 4 * 10**12, "used": 4000, "limit": 1 << 30}
    assert in_use(session) == 4000


def test_an_allocation_beyond_the_machine_is_the_same_error_without_a_limit():
    failure = refused(Session(), Call("fill", (Literal(1.0),), ("x",), {"shape": (10**14,)}))
    assert "no memory left for 400,000,000,000,000 bytes" in failure.message


@pytest.mark.parametrize(
    "last",
    [
        Constant("b", BIG),
        MakeVariable("b", BIG),
        Call("neg", ("a",), ("b",)),
        Call("add", ("a", Literal(1.0)), ("b",)),
        Call("where", ("yes", "a", "a"), ("b",)),
        Assign("v", np.zeros(900, np.float32), "add"),
        Gradient("t", ("s",), ("a",), ("b",)),
    ],
)
def test_the_limit_holds_for_every_command_that_makes_an_array(last):
    session = Session(memory_limit=10_000)
    run(
        session,
        *(Constant("a", BIG), Constant("yes", np.ones(1000, bool)), Constant("loose", np.zeros(1, np.float32))),
        TapeOpen("t", True),
        TapeWatch("t", ("a",)),
        Call("reduce_sum", ("a",), ("s",)),
        MakeVariable("v", np.zeros(900, np.float32)),
    )
    failure = refused(session, last)
    assert failure.details["used"] == 4000 + 1000 + 4 + 4 + 3600
    assert failure.details["needed"] in (3600, 4000)
    run(session, Gradient("t", ("s",), ("loose",), ("zero",), unconnected="zero"))  # four bytes still fit


def test_a_limit_is_reached_by_what_a_tape_keeps_and_left_when_it_has_answered():
    session = Session(memory_limit=50_000)
    run(session, Constant("x", BIG), TapeOpen("t"), TapeWatch("t", ("x",)))
    result = 0
    name = "x"
    while True:
        batch = Batch((Call("tanh", (name,), (f"y{result}",)),), () if name == "x" else (name,))
        failure = session.execute(batch).failure
        if failure:
            break
        name, result = f"y{result}", result + 1
    assert failure.code == "resource_exhausted"
    assert result == 11  # x and eleven residuals take 48,000
    run(session, releases=("t",))
    run(session, Call("tanh", ("x",), ("z",)))


def test_repeated_gradients_cannot_slip_past_the_limit():
    session = Session(memory_limit=40_000)
    run(session, Constant("x", BIG), TapeOpen("t", True), TapeWatch("t", ("x",)), Call("mul", ("x", "x"), ("y",)))
    for i in range(100):
        failure = session.execute(Batch((Gradient("t", ("y",), ("x",), (f"g{i}",)),))).failure
        if failure:
            break
    assert failure.code == "resource_exhausted"
    assert "the gradient needs 4,000 bytes" in failure.message
    assert in_use(session) <= 40_000


def test_released_memory_can_be_used_again():
    session = Session(memory_limit=10_000)
    for i in range(20):
        run(session, Constant(f"a{i}", BIG), Call("neg", (f"a{i}",), (f"b{i}",)), releases=(f"a{i}", f"b{i}"))
    assert in_use(session) == 0


def test_the_estimate_never_falls_below_what_is_in_use():
    session = Session()
    for i in range(30):
        answer = run(session, Constant(i, np.zeros(100_000)), Call("neg", (i,), (100 + i,)), releases=(100 + i,))
        assert in_use(session) <= answer.bytes_in_use <= 2 * in_use(session) + (1 << 20) + 800_000


def test_the_estimate_forgets_objects_that_are_gone():
    """A tenth of a MiB of objects is made at a time, with an array, and all of it goes."""
    memory = Memory(1 << 30, lambda: 1000)
    for _ in range(1000):
        memory.note(MIB // 10, "objects")
        memory.spend(10_000, "an array")
        assert memory.estimate() <= 10 * MIB


def test_memory_refuses_with_the_numbers_and_goes_on():
    memory = Memory(100, lambda: 70)
    memory.spend(90, "a tensor")
    with pytest.raises(
        ResourceExhaustedError, match="a tensor needs 40 bytes; 70 of the session's 100 are in use"
    ) as caught:
        memory.spend(40, "a tensor")
    assert caught.value.details == {"needed": 40, "used": 70, "limit": 100}
    memory.spend(30, "a tensor")
    assert memory.spent == 100


@pytest.mark.parametrize("persistent", [True, False])
def test_a_gradient_is_priced_before_it_runs(persistent):
    """Its cotangents, 11 MiB in truth, take what 13 of 20 MiB leave; a tape that ends frees its residuals meanwhile."""
    session = Session(memory_limit=20 * MIB)
    outputs = tuple(f"y{k}" for k in range(6))
    run(session, Constant("x", np.ones(MIB // 4, np.float32)), TapeOpen("t", persistent), TapeWatch("t", ("x",)))
    run(session, *[Call("tanh", ("x",), (name,)) for name in outputs], Call("concat", outputs, ("z",), {"axis": 0}))
    if persistent:
        run(session, TapePause("t"))
    gradient = Gradient("t", ("z",), ("x",), ("g",))
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        failure = refused(session, gradient)
        assert tracemalloc.get_traced_memory()[1] - before < MIB
    finally:
        tracemalloc.stop()
    assert failure.message.startswith("the gradient needs ")
    assert failure.details["needed"] >= 11 * MIB
    if persistent:
        run(session, releases=outputs)
        refused(session, gradient)  # the tape keeps them
    else:
        run(session, releases=outputs)
        run(session, Gradient("t", ("z",), ("x",), ("g2",)))  # they are freed on the way


def test_a_gradient_with_plenty_of_memory_is_not_followed_twice(monkeypatch):
    monkeypatch.setattr(questions, "peak_bytes", None)
    session = Session(memory_limit=64 * MIB)
    run(session, Constant("x", BIG), TapeOpen("t"), TapeWatch("t", ("x",)), Call("tanh", ("x",), ("y",)))
    run(session, Gradient("t", ("y",), ("x",), ("g",)))


class Reservations:
    """What extends a reservation: up to `most` bytes, in steps of a MiB."""

    def __init__(self, most):
        self.most, self.questions = most, []

    def __call__(self, needed):
        self.questions.append(needed)
        if needed > self.most:
            raise ResourceExhaustedError("the machine is full", free=0)
        return min(needed + MIB, self.most)


def filled(name, nbytes):
    return Call("fill", (Literal(1.0),), (name,), {"shape": [nbytes // 4]})


def test_what_passes_the_reservation_is_reserved_first_and_what_does_not_asks_nothing():
    extend = Reservations(100 * MIB)
    session = Session(memory_limit=50 * MIB)
    session.reserve(20 * MIB, extend)
    run(session, filled("a", 2 * MIB))
    assert extend.questions == []
    run(session, filled("b", 30 * MIB))
    assert len(extend.questions) == 1
    assert 32 * MIB <= extend.questions[0] < 33 * MIB
    failure = refused(session, filled("c", 30 * MIB))
    assert "of the session's 52,428,800 are in use" in failure.message, (
        "its own limit comes first, and nothing is asked"
    )
    assert len(extend.questions) == 1


def test_a_reservation_that_is_not_extended_refuses_with_its_reason_and_the_session_goes_on():
    session = Session(memory_limit=50 * MIB)
    session.reserve(20 * MIB, Reservations(25 * MIB))
    run(session, filled("a", 15 * MIB))
    failure = refused(session, filled("b", 20 * MIB))
    assert failure.message == "op 'fill' needs 20,971,520 bytes, and the machine is full"
    assert failure.details["free"] == 0
    assert failure.details["limit"] == 50 * MIB
    run(session, filled("c", 5 * MIB), releases=["a", "c"])
    run(session, filled("d", 20 * MIB))


def test_work_that_makes_much_and_keeps_little_gets_some_to_spare_once():
    extend = Reservations(1000 * MIB)
    session = Session(memory_limit=1000 * MIB)
    session.reserve(4 * MIB, lambda needed: extend(needed) + 40 * MIB)
    run(session, *[filled(f"a{i}", 2 * MIB) for i in range(60)], releases=[f"a{i}" for i in range(60)])
    assert len(extend.questions) == 1, "not at each of the 120 MiB"


def test_a_session_that_begins_anew_has_the_same_reservation_and_one_without_limit_has_it_too():
    extend = Reservations(30 * MIB)
    session = Session(memory_limit=20 * MIB)
    session.reserve(8 * MIB, extend)
    run(session, filled("a", 4 * MIB))
    session.renew()
    run(session, filled("a", 15 * MIB))
    assert len(extend.questions) == 1
    with session.without_limit():
        run(session, filled("b", 10 * MIB))  # beyond the limit, and what is reserved is extended for it
        assert len(extend.questions) == 2
        refused(session, filled("c", 10 * MIB))
    refused(session, filled("d", MIB))


def test_what_stays_within_the_reservation_costs_no_call_more():
    def work(session):
        run(session, Constant("x", BIG), MakeVariable("v", "x"))
        commands = [Call("multiply", ("x", "v"), (f"y{i}",)) for i in range(200)]
        run(session, *commands)  # binds
        commands = [Call("add", (f"y{i}", "x"), (f"z{i}",)) for i in range(200)]
        return calls(lambda: session.execute(Batch(tuple(commands))))

    plain, reserved = Session(memory_limit=1 << 30), Session(memory_limit=1 << 30)
    extend = Reservations(0)
    reserved.reserve(8 * MIB, extend)
    work(Session(memory_limit=1 << 30))  # what the first time costs
    assert work(reserved) == work(plain)
    assert extend.questions == []


WIDE = np.ones((16, 1 << 16), np.float32)  # 4 MiB


def with_rows(session):
    """A tape of 16 results, each row of whose Jacobian takes 4 MiB."""
    run(session, Constant("x", WIDE), TapeOpen("t"), TapeWatch("t", ("x",)), Call("tanh", ("x",), ("y",)))
    run(session, Call("reduce_mean", ("y",), ("z",), {"axis": 1}))


def test_a_jacobian_takes_fewer_rows_at_once_when_the_machine_has_little_left():
    jacobian = Jacobian("t", ("z",), ("x",), ("J",))
    plain, session, logged = (Session(memory_limit=1 << 30) for _ in range(3))
    for each in (plain, session, logged):
        with_rows(each)
        used = each.bytes_in_use()
    extend = Reservations(used + 64 * MIB + 20 * MIB)  # the Jacobian, and some rows of it
    session.reserve(used, extend)
    run(plain, jacobian)
    run(session, jacobian)
    assert 1 < len(extend.questions) < 6, "it halves the chunk"
    answers = [each.execute(Batch((Fetch("J"),))).results[0].array for each in (session, plain)]
    np.testing.assert_allclose(*answers, rtol=1e-6)
    logged.write_down(lambda *_: None)
    logged.reserve(used, Reservations(extend.most))
    refused(logged, jacobian)  # running its log again must give the same bits
    none = Session(memory_limit=1 << 30)
    with_rows(none)
    none.reserve(used, Reservations(used + 64 * MIB))
    assert "the machine is full" in refused(none, jacobian).message, "not even a row"
