"""Tiles: long elementwise instructions run within the cache, and give the bytes of whole arrays, sums included."""

import os
import subprocess
import sys
import warnings
from dataclasses import asdict

import numpy as np
import pytest

from teletape_engine.arrays import backend
from teletape_engine.commands import Call
from teletape_engine.errors import CancelledError
from teletape_engine.functions.compile import compile_function
from teletape_engine.plans.policy import POLICY, Policy
from teletape_engine.plans.run.c import loaded
from teletape_engine.plans.run.c.records import MOST_THREADS
from teletape_engine.plans.run.plan import Plan
from teletape_engine.plans.run.tiles import groups as tiles
from teletape_engine.plans.run.tiles import threads, workers
from teletape_engine.recording.executor import Executor
from teletape_engine.recording.memory import Memory
from teletape_engine.recording.progress import Monitor, no_progress
from teletape_engine.recording.values import Literal

pytestmark = pytest.mark.skipif(loaded.LIBRARY_LOADED is None, reason="librows.so.1 is not built: no C compiler")

#: A loss and its gradient: a sum in the middle, whose result is divided.
LOSS = (
    Call("mul", ("x", Literal(1.1)), ("a",)),
    Call("tanh", ("a",), ("b",)),
    Call("square", ("b",), ("c",)),
    Call("reduce_sum", ("c",), ("s",)),
    Call("mul", ("s", Literal(0.125)), ("loss",)),
    Call("mul", ("b", Literal(2.0)), ("d",)),
    Call("sub", (Literal(1.0), "c"), ("e",)),
    Call("mul", ("d", "e"), ("g",)),
)
#: Two groups: the second needs a sum of the first; a scalar argument, another dtype, a choice.
SHARES = (
    Call("exp", ("x",), ("e",)),
    Call("reduce_sum", ("e",), ("s",), {"axis": None, "keepdims": True}),
    Call("div", ("e", "s"), ("p",)),
    Call("mul", ("p", "k"), ("q",)),
    Call("greater", ("q", Literal(0.0001)), ("m",)),
    Call("where", ("m", "q", "x"), ("r",)),
    Call("cast", ("r",), ("w",), {"dtype": "float64"}),
    Call("reduce_sum", ("w",), ("t",)),
    Call("neg", ("r",), ("n",)),
    Call("sqrt", ("n",), ("v",)),
)


@pytest.fixture(params=[1, 3], ids=["one thread", "three threads"])
def policy(request, monkeypatch):
    """Plans from the first call on, compared; arrays from 1000 elements on have tiles of 256 at the most."""
    monkeypatch.setattr(threads, "count", lambda: request.param)
    monkeypatch.setattr(workers, "ELEMENTS", 1 << 11)
    monkeypatch.setattr(workers, "_STRETCHES", 2)
    for name, setting in asdict(Policy.of("force")).items():
        monkeypatch.setattr(POLICY, name, setting)
    monkeypatch.setattr(tiles, "_LEAST", 1000)
    monkeypatch.setattr(tiles, "TILE", 256)
    return POLICY


def quiet():
    """A recorder whose ops give no warnings."""
    return Executor(backend("cpu"), Memory(None, lambda: 0), selects=True)


def plan_of(function):
    """A function's only plan."""
    (plan,) = [plan for plan in function.plans._plans.values() if isinstance(plan, Plan)]
    return plan


def bytes_of(values):
    return [(np.asarray(value.array).tobytes(), value.spec, value.array.strides) for value in values]


@pytest.mark.parametrize("shape", [(1000,), (1001,), (4096,), (5003,), (50, 41), (3, 20, 40)])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize(("steps", "results"), [(LOSS, ("loss", "g")), (SHARES, ("t", "v", "s")), (SHARES, ("p", "v"))])
def test_tiles_give_the_bytes_of_whole_arrays(policy, shape, dtype, steps, results):
    x = np.random.default_rng(0).standard_normal(shape).astype(dtype)
    k = np.asarray(np.random.default_rng(1).random(), dtype)
    function, context = compile_function(("x", "k"), steps, results), quiet()

    def run():
        return bytes_of(function.run(context, [context.constant(x.copy()), context.constant(k)]))

    answers = [run() for _ in range(3)]
    plan = plan_of(function)
    policy.enabled = False
    assert all(answer == run() for answer in answers)
    assert plan._groups
    assert all(sum(group.leaves) == group.length == x.size for group in plan._groups)


def test_what_lies_between_two_instructions_is_as_large_as_a_tile(policy):
    function, context = compile_function(("x",), LOSS, ("loss", "g")), quiet()
    x = np.ones(100_000, np.float32)
    for _ in range(2):
        function.run(context, [context.constant(x)])
    assert plan_of(function)._places.nbytes < 20_000


def test_a_cancel_takes_effect_between_tiles(policy, monkeypatch):
    monitor = Monitor()
    context = Executor(backend("cpu"), Memory(None, lambda: 0), monitor)
    function = compile_function(("x",), LOSS, ("loss", "g"))
    x = context.constant(np.ones(20_000, np.float32))
    function.run(context, [x])
    blocks = plan_of(function)._idle[0].blocks
    assert len(blocks) > 5
    looks = []
    monitor.begin(lambda: bool(looks.append(1)) or len(looks) > 3, no_progress, 1)
    with pytest.raises(CancelledError):
        function.run(context, [x])
    assert len(looks) == 4


def test_threads_share_the_stretches(policy, monkeypatch):
    """Each of them takes some, none is taken twice, and the sums are those of one thread."""
    function, context = compile_function(("x",), LOSS, ("loss", "g")), quiet()
    x = context.constant(np.random.default_rng(3).standard_normal(1 << 16).astype("f4"))
    answer = bytes_of(function.run(context, [x]))
    (rows_of,) = plan_of(function)._idle[0]._tiles
    assert rows_of._context["worker_count"] == threads.count()
    for count in (1, 2, 3, 16):
        monkeypatch.setattr(threads, "count", lambda count=count: count)
        for _ in range(3):
            assert bytes_of(function.run(context, [x])) == answer
        assert rows_of._context["worker_count"] == min(count, rows_of._threads)


@pytest.mark.parametrize("length", [1000, 5003, 65536, 100_003, 999_999])
def test_stretches_begin_and_end_with_leaves(policy, length):
    group = tiles.Group(0, 1, (), (), length, 256, tiles._leaves(length), frozenset())
    for shared in (True, False):
        stretches = workers.stretches_of(group, 2048, shared=shared)
        if stretches is None:
            continue
        assert [start for start, _, _ in stretches] == [0, *[stop for _, stop, _ in stretches[:-1]]]
        assert stretches[-1][1] == length
        for start, _, leaf in stretches:
            assert start % 64 == 0
            if shared:
                assert sum(group.leaves[:leaf]) == start


def test_no_stretches_for_threads_if_leaves_begin_elsewhere(policy):
    leaves = (*[248] * 63, 1000)
    group = tiles.Group(0, 1, (), (), sum(leaves), 256, leaves, frozenset())
    assert workers.stretches_of(group, 256, shared=True) is None


def test_the_number_of_threads_is_that_of_blas():
    for text in ("1", "2"):
        code = "from teletape_engine.plans.run.tiles import threads; print(threads.count())"
        environment = {**os.environ, "OPENBLAS_NUM_THREADS": text}
        process = subprocess.run(
            [sys.executable, "-P", "-c", code], env=environment, capture_output=True, text=True, timeout=100, check=True
        )
        assert int(process.stdout) in {1, int(text)}  # no more than there are cores


def test_with_another_blas_the_number_of_threads_is_that_of_the_policy(monkeypatch):
    monkeypatch.setattr(threads, "_openblas", lambda: None)
    monkeypatch.setattr(POLICY, "threads", None)
    assert threads.count() == min(threads._cores(), MOST_THREADS)
    monkeypatch.setattr(POLICY, "threads", 3)
    assert threads.count() == 3


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_process_forked_after_threads_ran_computes_the_same(policy):
    function, context = compile_function(("x",), LOSS, ("loss", "g")), quiet()
    x = context.constant(np.random.default_rng(3).standard_normal(1 << 16).astype("f4"))
    answer = bytes_of(function.run(context, [x]))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if not child:
        os._exit(0 if bytes_of(function.run(context, [x])) == answer else 1)
    assert os.waitpid(child, 0)[1] == 0


def test_random_chains(policy):
    random = np.random.default_rng(7)
    unary = ["tanh", "exp", "neg", "square", "sigmoid", "abs", "sin", "relu", "sqrt"]
    for case in range(60):
        names, steps = ["x", "y"], []
        for number in range(int(random.integers(3, 14))):
            a, b = random.choice(names[-4:], 2)
            kind = random.integers(0, 5)
            if kind < 2:
                steps.append(Call(str(random.choice(unary)), (str(a),), (f"v{number}",)))
            elif kind < 4:
                op = str(random.choice(["add", "mul", "sub", "maximum"]))
                steps.append(Call(op, (str(a), str(b)), (f"v{number}",)))
            else:
                steps.append(Call("reduce_mean", (str(a),), (f"v{number}",), {"axis": None, "keepdims": True}))
            names.append(f"v{number}")
        results = tuple({str(name) for name in (*random.choice(names[2:], 2), names[-1])})
        function, context = compile_function(("x", "y"), tuple(steps), results), quiet()
        length = int(random.integers(1000, 3000))
        x, y = (context.constant(random.standard_normal(length).astype("f4")) for _ in range(2))
        answers = [bytes_of(function.run(context, [x, y])) for _ in range(2)]
        policy.enabled = False
        assert answers[0] == answers[1] == bytes_of(function.run(context, [x, y])), (case, steps)
        policy.enabled = True
