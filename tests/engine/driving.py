"""What the engine's tests share: running ops on an executor, and driving a session by batches."""

import numpy as np

from teletape_engine.arrays import backend
from teletape_engine.catalogue.op import CATALOGUE
from teletape_engine.commands import Batch, ClientAttach, Constant, Fetch, TapeOpen, TapeWatch
from teletape_engine.recording.executor import Executor
from teletape_engine.recording.memory import Memory
from teletape_engine.recording.values import Literal

X = np.array([1.0, 2.0, 3.0], np.float32)


def executor():
    """A recorder on NumPy arrays, without a memory limit."""
    return Executor(backend("cpu"), Memory(None, lambda: 0))


def apply(context, name, *inputs, **attrs):
    """Runs an op by its name; Python numbers among the inputs are literals."""
    op = CATALOGUE[name]
    operands = [Literal(value) if isinstance(value, int | float) else value for value in inputs]
    return context.apply(op, operands, op.attrs(attrs))


def run(session, *todo, releases=(), **how):
    """The results of commands that all happen."""
    answer = session.execute(Batch(todo, releases), **how)
    assert answer.failure is None, answer.failure
    return answer.results


def failing(session, *todo, releases=()):
    """The failure of commands of which one fails."""
    failure = session.execute(Batch(todo, releases)).failure
    assert failure is not None
    return failure


def value(session, name):
    """A value's numbers."""
    (result,) = run(session, Fetch(name))
    return result.array


def watched(*todo, tape="t", persistent=False):
    """`todo` under a tape that watches x."""
    return Constant("x", X), TapeOpen(tape, persistent), TapeWatch(tape, ("x",)), *todo


def attach(session, client=0):
    """The facts of a new client: client, seq, first_id."""
    (result,) = run(session, ClientAttach(client))
    return result.facts


def state_of(session):
    """The state of a session, for tests of what handlers leave there."""
    return session._state
