"""Driving a session by batches: what the tests of commands and of their execution share."""

import numpy as np

from teletape_engine.commands import Batch, Constant, Fetch, TapeOpen, TapeWatch

X = np.array([1.0, 2.0, 3.0], np.float32)


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
