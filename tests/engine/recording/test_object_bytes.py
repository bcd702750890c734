"""The objects of a session: what each takes in truth, that they count as memory in use, and that the limit holds."""

import gc
import random
import tracemalloc

import numpy as np
import pytest
from driving import attach, failing, run, state_of, value

from counting import calls
from teletape_engine import object_bytes
from teletape_engine.commands import (
    AccumulatorClose,
    AccumulatorOpen,
    Batch,
    Call,
    CallFunction,
    ClientAttach,
    Constant,
    ContextEnd,
    ContextSwitch,
    Declare,
    DefineFunction,
    Explain,
    Fetch,
    Gradient,
    Jacobian,
    MakeVariable,
    OnFailure,
    TapeOpen,
    TapePause,
    TapeWatch,
    While,
)
from teletape_engine.recording import provenance
from teletape_engine.recording.values import Literal
from teletape_engine.session import state
from teletape_engine.session.objects import LogCounts, every_log
from teletape_engine.session.session import Session

X = np.ones(1, np.float32)
MIB = 1 << 20
COUNTER = 1 << 40  # ids of a client: those that were released need not be remembered one by one


def session_with_x(**limits):
    """A session with x, whose provenance log is full: what an op adds to it goes at once."""
    session = Session(**limits)
    run(session, Constant("x", X), MakeVariable("v", X))
    return session


def op(i, name="neg", *inputs, **fields):
    return Call(name, inputs or ("x",), (COUNTER + i,), **fields)


def fill_log(session):
    run(session, *[op(i) for i in range(9000)], releases=[COUNTER + i for i in range(9000)])


STEPS = tuple(Call("neg", (f"r{k}",), (f"r{k + 1}",)) for k in range(40))
ITEM = object_bytes.NAMED + object_bytes.ARRAY + 4

#: Commands that create the i-th thing of a kind, and the bytes that each counts with.
KINDS = {
    "tensor": (lambda i: [op(i)], ITEM),
    "node": (lambda i: [op(i, "tanh")], ITEM + object_bytes.NODE),
    "variable": (lambda i: [MakeVariable(COUNTER + i, X, name="v")], object_bytes.VARIABLE + ITEM),
    "tape": (lambda i: [TapeOpen(COUNTER + i), TapePause(COUNTER + i)], object_bytes.TAPE + object_bytes.NAMED),
    "context": (lambda i: [ContextSwitch(i), TapeOpen(COUNTER + i)], object_bytes.CONTEXT + object_bytes.TAPE),
    "client": (lambda i: [ClientAttach()], object_bytes.CLIENT),
    "accumulator": (
        lambda i: [AccumulatorOpen(COUNTER + i, ("x",), (X,)), AccumulatorClose(COUNTER + i)],
        object_bytes.TAPE + object_bytes.NAMED + object_bytes.WATCHED,
    ),
    "function": (
        lambda i: [DefineFunction(COUNTER + i, ("r0",), STEPS, ("r40",))],
        object_bytes.FUNCTION + len(STEPS) * object_bytes.STEP,
    ),
}


def created(what, n):
    session = session_with_x()
    fill_log(session)
    if what == "node":
        run(session, TapeOpen("t", True), TapeWatch("t", ("x",)))
    make, _ = KINDS[what]
    for i in range(3):
        run(session, *make(10_000 + i))
    session.bytes_in_use()  # which remembers what it has counted
    gc.collect()
    tracemalloc.start()
    try:
        before, counted = tracemalloc.get_traced_memory()[0], session.bytes_in_use()
        for i in range(n):
            run(session, *make(20_000 + i))
        gc.collect()
        return session, tracemalloc.get_traced_memory()[0] - before, session.bytes_in_use() - counted
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("what", KINDS)
def test_a_thing_counts_with_what_it_takes(what, monkeypatch):
    monkeypatch.setattr(object_bytes, "FREE", 0)
    n = 30 if what == "function" else 500
    for _ in range(3):  # threads of other tests may allocate meanwhile, which adds to what is traced
        _, taken, counted = created(what, n)
        if taken <= counted * 1.1:
            break
    if what == "function":  # here the steps' commands are shared, and a batch brings its own
        taken += n * len(STEPS) * 300
    assert taken <= counted * 1.1, f"{taken / n:.0f} bytes each"
    assert counted < taken * 2.5, f"{taken / n:.0f} bytes each"


def test_a_small_session_counts_its_arrays_alone():
    session = session_with_x()
    run(session, TapeOpen("t", True), TapeWatch("t", ("x",)), *[op(i, "tanh") for i in range(100)])
    assert session.bytes_in_use() == 101 * 4


LIMIT = MIB
#: Commands that a client may send again and again, until the session is full.
ATTACKS = {
    "nodes whose results are released": lambda i: [op(i, "add", "x", Literal(1.0))],
    "tensors of one number": lambda i: [Call("neg", ("x",), (f"n{i}",))],
    "long call sites": lambda i: [op(i, where=f"{i:060000}")],
    "long ids": lambda i: [Call("neg", ("x",), (f"{i:060000}",))],
    "variables with long names": lambda i: [MakeVariable(COUNTER + i, Literal(1.0), name=f"{i:060000}")],
    "many inputs": lambda i: [op(i, "concat", *["x"] * 4000, attrs={"axis": 0})],
    "tapes": lambda i: [TapeOpen(COUNTER + i), TapePause(COUNTER + i)],
    "contexts with an active tape": lambda i: [ContextSwitch(i), TapeOpen(COUNTER + i)],
    "clients": lambda i: [ClientAttach()],
    "functions": lambda i: [DefineFunction(COUNTER + i, ("r0",), STEPS, ("r40",))],
    "declarations": lambda i: [Declare(f"{i:060000}")],
}


@pytest.mark.parametrize("attack", ATTACKS)
def test_what_a_client_keeps_on_making_is_refused_at_the_limit(attack):
    session = session_with_x(memory_limit=LIMIT)
    run(session, TapeOpen("t", True), TapeWatch("t", ("x",)))
    make = ATTACKS[attack]
    gc.collect()
    tracemalloc.start()
    failure = None
    try:
        before = tracemalloc.get_traced_memory()[0]
        for n in range(4000):
            todo = [command for i in range(20) for command in make(20 * n + i)]
            releases = [COUNTER + 20 * n + i for i in range(20)] if "released" in attack or "inputs" in attack else []
            failure = session.execute(Batch(tuple(todo), tuple(releases))).failure
            if failure is not None:
                break
        taken = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert failure is not None
    assert failure.code == "resource_exhausted", failure
    assert failure.details["limit"] == LIMIT
    assert failure.details["used"] > LIMIT // 2
    # Alone "many inputs" takes 4.4 MiB. After other tests in one process 7.4 MiB were seen; the reason is not known.
    assert taken < 8 * LIMIT
    assert value(session, "x").tolist() == [1.0]  # nothing is lost, and what is there can be read


def test_attributes_of_a_call_that_is_refused_do_not_stay():
    session = session_with_x()
    gc.collect()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        for i in range(6):
            failing(session, op(i, "transpose", "x", attrs={"perm": tuple(range(i, 16_000 + i))}))
        assert tracemalloc.get_traced_memory()[0] - before < MIB
    finally:
        tracemalloc.stop()


def test_after_a_release_work_goes_on():
    session = session_with_x(memory_limit=LIMIT)
    run(session, TapeOpen("t", True), TapeWatch("t", ("x",)))
    n, failure = 0, None
    while failure is None:
        n += 1
        failure = session.execute(Batch(tuple(op(100 * n + i, "tanh") for i in range(100)), ())).failure
    assert failure.code == "resource_exhausted"
    assert failing(session, op(1)).code == "resource_exhausted"
    names = [name for name in state_of(session).entries if name not in ("x", "v")]
    run(session, *[op(100 * (n + 1) + i, "tanh") for i in range(100)], releases=names)


def test_many_active_tapes_have_a_node_each():
    session = session_with_x(memory_limit=LIMIT)
    for i in range(100):
        run(session, TapeOpen(i, True), TapeWatch(i, ("x",)))
    n, failure = 0, None
    while failure is None:
        n += 1
        names = [COUNTER + 20 * n + i for i in range(20)]
        failure = session.execute(Batch(tuple(op(20 * n + i) for i in range(20)), tuple(names))).failure
    assert failure.code == "resource_exhausted"
    assert session.bytes_in_use() < 2 * LIMIT


def test_a_loop_that_is_recorded_is_stopped_at_the_limit():
    session = session_with_x(memory_limit=LIMIT)
    run(
        session,
        DefineFunction("more", ("i", "y"), (Call("less", ("i", Literal(10**6)), ("c",)),), ("c",)),
        DefineFunction(
            "step",
            ("i", "y"),
            (Call("add", ("i", Literal(1)), ("j",)), Call("tanh", ("y",), ("z",))),
            ("j", "z"),
        ),
        TapeOpen("t", True),
        TapeWatch("t", ("x",)),
    )
    failure = failing(session, While("more", "step", (Literal(0), "x"), ("n", "end")))
    assert failure.code == "resource_exhausted"
    assert session.describe("t")["ops"] < 2 * LIMIT / object_bytes.NODE + 10_000


def test_provenance_logs_give_way_to_what_the_program_keeps():
    session = session_with_x(memory_limit=LIMIT)
    for n in range(80):  # far more text than the limit, none of which an id or a tape keeps
        todo = [op(10 * n + i, where=f"{n:30000}") for i in range(10)]
        run(session, *todo, releases=[COUNTER + 10 * n + i for i in range(10)])
    assert session.bytes_in_use() <= LIMIT


def test_kept_answers_count_with_their_facts():
    session = session_with_x(memory_limit=LIMIT)
    client = attach(session)["client"]
    run(session, TapeOpen("t", True), TapeWatch("t", ("x",)), Call("neg", ("x",), ("y",)))
    before = session.bytes_in_use()
    explain = tuple(Explain("t", ("y",), ("x",)) for _ in range(2000))
    session.execute(Batch(explain, (), client, 1, b"1" * 16))
    assert session.bytes_in_use() > before + MIB
    session.execute(Batch((), (), client, 2, b"2" * 16))
    assert session.bytes_in_use() == before


def test_a_consumed_tape_counts_less_and_an_ended_one_nothing():
    session = session_with_x()
    run(session, TapeOpen("t"), TapeWatch("t", ("x",)), *[op(i, "tanh") for i in range(10_000)])
    run(session, releases=[COUNTER + i for i in range(9999)])
    recorded = session.bytes_in_use()
    run(session, Gradient("t", (COUNTER + 9999,), ("x",), ("g",)))
    consumed = session.bytes_in_use()
    run(session, releases=("t",))
    assert recorded > 2 * consumed > 2 * session.bytes_in_use()


def test_released_names_are_bounded():
    session = Session()
    for n in range(30):
        names = [f"{n}.{i}" for i in range(1000)]
        run(session, *[Constant(name, X) for name in names], releases=names)
    assert len(state_of(session).released) < 10_000
    assert failing(session, Fetch("29.999")).code == "released_id"
    assert failing(session, Fetch("0.0")).code == "unknown_id"
    long = "x" * 60_000
    run(session, Constant(long, X), releases=(long,))
    assert long not in state_of(session).released


def test_ids_of_any_client_leave_no_trace_of_it():
    session = Session()
    for client in range(1, 20_000, 2):
        failing(session, Fetch(client << 40))
    assert len(state_of(session)._highest) < 10


def test_contexts_end():
    session = session_with_x(memory_limit=LIMIT)
    for i in range(1, 2000):
        run(session, ContextSwitch(i), TapeOpen(COUNTER + i), ContextEnd(i), releases=(COUNTER + i,))


def call_with_every_shape(session, shapes):
    """Calls a function of 40 steps three times for each shape: it then has a plan for each."""
    for n in range(1, shapes + 1):
        x = f"x{len(state_of(session).entries)}"
        run(session, Constant(x, np.ones(n, np.float32)))
        for k in range(3):
            run(session, CallFunction("f", (x,), (f"{x}.{k}",)), releases=(f"{x}.{k}",))


def test_the_plans_of_a_function_count(monkeypatch):
    monkeypatch.setattr(object_bytes, "FREE", 0)
    session = session_with_x()
    run(session, DefineFunction("f", ("r0",), STEPS, ("r40",)))
    call_with_every_shape(session, 2)
    gc.collect()
    tracemalloc.start()
    try:
        before, counted = tracemalloc.get_traced_memory()[0], session.bytes_in_use()
        call_with_every_shape(session, 10)
        gc.collect()
        taken, counted = tracemalloc.get_traced_memory()[0] - before, session.bytes_in_use() - counted
    finally:
        tracemalloc.stop()
    assert state_of(session).entries["f"].plans.instructions > 300
    assert taken <= counted * 1.1
    assert counted < taken * 2.5


def test_a_full_session_forgets_plans_first():
    session = session_with_x(memory_limit=LIMIT)
    run(session, DefineFunction("f", ("r0",), STEPS, ("r40",)))
    call_with_every_shape(session, 10)
    assert state_of(session).entries["f"].plans.instructions > 0
    run(session, Constant("y", np.zeros((LIMIT - 200_000) // 4, np.float32)))
    run(session, *[TapeOpen(f"t{i}") for i in range(600)])  # about 1 MB, and 200 kB are left beyond the first MiB
    assert state_of(session).entries["f"].plans.instructions == 0


def test_a_jacobian_and_its_answer_count_no_objects(monkeypatch):
    """Counting walks thousands of calls: it must not be the price of every batch."""
    session = session_with_x(memory_limit=1 << 30)
    run(session, Constant("wide", np.ones(600)))
    counts = []
    monkeypatch.setattr("teletape_engine.session.state.object_count", lambda **parts: counts.append(parts) or 0)
    for turn in range(10):
        tape, y, rows = f"t{turn}", f"y{turn}", f"j{turn}"
        watch = [TapeOpen(tape), TapeWatch(tape, ("wide",)), Call("sin", ("wide",), (y,))]
        run(session, *watch, Jacobian(tape, (y,), ("wide",), (rows,)))  # of 2.9 MB
    assert counts == []
    assert state_of(session).memory.estimate() >= 10 * 600 * 600 * 8


# ------------------------------------------------------------------------------------------------ counting has a bound
def _change_logs(session, choose, i):
    """One of the ways in which records come into logs, and go."""
    way = choose.randrange(8)
    if way == 0:
        run(session, op(i, "concat", *["x"] * choose.randint(5, 9), attrs={"axis": 0}))
    elif way == 1:
        where = f"line {choose.randrange(4)}" + "." * 100
        run(session, *[op(i + k, where=where) for k in range(choose.randint(1, 20))])
    elif way == 2:
        run(session, CallFunction("f", ("x",), (COUNTER + i,)))
    elif way == 3:
        run(session, ContextSwitch(choose.randrange(1, 4)), op(i))
    elif way == 4:
        run(session, ContextSwitch(choose.randrange(1, 4)), TapeOpen(COUNTER + i), op(i + 1), TapePause(COUNTER + i))
    elif way == 5 and not choose.randrange(4):
        run(session, ContextEnd(choose.randrange(1, 4)))
    elif way == 6 and not choose.randrange(8):
        state_of(session).provenance_logs()[0].clear()
    else:
        run(session, *[op(i + k) for k in range(choose.choice((1, 3, 90)))])


@pytest.mark.parametrize("seed", range(5))
def test_records_that_are_counted_once_count_as_if_they_were_counted_anew(seed, monkeypatch):
    monkeypatch.setattr(provenance, "LENGTH", 64)
    session, choose = session_with_x(memory_limit=1 << 30), random.Random(seed)
    run(session, DefineFunction("f", ("r0",), STEPS[:5], ("r5",)))
    session_state, counts = state_of(session), LogCounts()
    for turn in range(300):
        _change_logs(session, choose, 100 * turn)
        if choose.randrange(3):
            logs = every_log(session_state.tapes(), session_state.provenance_logs())
            assert counts.total(logs) == LogCounts().total(logs)


def test_counting_looks_at_each_record_once():
    session = session_with_x()
    fill_log(session)
    logs, counts = state_of(session).provenance_logs(), LogCounts()
    assert calls(lambda: counts.total(logs)) > provenance.LENGTH
    run(session, op(10_000))
    assert calls(lambda: counts.total(logs)) < 50


def test_an_answer_counts_a_small_session_exactly():
    session = session_with_x(memory_limit=1 << 30)
    fill_log(session)
    for i in range(20):
        run(session, Constant(f"big{i}", np.ones(MIB, np.uint8)))
        assert session.estimated_bytes() == session.bytes_in_use() >= (i + 1) * MIB
    run(session, releases=[f"big{i}" for i in range(20)])
    assert session.estimated_bytes() == session.bytes_in_use() < MIB + 200 * 9000


@pytest.mark.parametrize("many", ["ids", "nodes"])
def test_answers_of_a_large_session_count_seldom(many, monkeypatch):
    session = session_with_x(memory_limit=1 << 30)
    if many == "nodes":
        run(session, TapeOpen("t", True), TapeWatch("t", ("x",)))
    ops = [op(i, "tanh") for i in range(4000)]
    run(session, *ops, releases=[COUNTER + i for i in range(4000)] if many == "nodes" else ())
    exact = []
    counted = state.object_count
    monkeypatch.setattr(state, "object_count", lambda **parts: exact.append(1) or counted(**parts))
    for _ in range(200):
        session.estimated_bytes()
    looked = 200 * state._LOOKED_AT / 4000
    assert looked / 2 < len(exact) <= looked + 1
    run(session, releases=[COUNTER + i for i in range(4000)])
    run(session, releases=["t"])
    assert session.estimated_bytes() == session.bytes_in_use()


def test_a_batch_that_undoes_its_commands_looks_at_its_own_ids_alone():
    session = session_with_x()
    small = Batch((Call("neg", ("x",), ("y",)),), (), temporaries=("y",), on_failure=OnFailure.ROLLBACK)
    failing_batch = Batch(
        (Call("neg", ("x",), ("y",)), Call("neg", ("x",), ("x",)), Call("neg", ("x",), ("z",))),
        (),
        on_failure=OnFailure.ROLLBACK,
    )
    assert session.execute(small).failure is None
    before = calls(lambda: session.execute(small))
    run(session, *[op(i) for i in range(3000)])
    assert calls(lambda: session.execute(small)) == before
    names = list(state_of(session).entries)
    assert session.execute(failing_batch).failure.code == "id_in_use"
    assert list(state_of(session).entries) == names  # y has gone, x has stayed
