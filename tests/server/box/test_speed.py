"""The measured speed of the CPU: for each kind of work, in the right order, and never too low to be true."""

import time

import numpy as np

from teletape_engine.catalogue.op import Work, WorkKind
from teletape_server.worker.speed import SPEED, Budget


def test_every_kind_of_work_is_measured() -> None:
    assert SPEED.keys() == set(WorkKind)
    assert SPEED[WorkKind.PRODUCTS] > SPEED[WorkKind.LOOPS] > 1e6


def test_an_estimate_is_not_above_what_the_work_takes() -> None:
    n = 300
    a = np.ones((n, n), np.int32)
    began = time.thread_time()
    a @ a
    assert Budget(10.0, 0.0).seconds(Work(WorkKind.LOOPS, n**3)) < time.thread_time() - began


def test_a_budget_counts_down_on_the_monotonic_clock() -> None:
    budget = Budget(10.0, time.monotonic() + 5.0)
    assert 0.0 < budget.left() <= 5.0
    assert budget.limit == 10.0
