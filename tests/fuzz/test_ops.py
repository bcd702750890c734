"""No op does anything undocumented on any input: at the edges, on random calls, on all that once did."""

import warnings
from dataclasses import replace

import numpy as np
import pytest

from fuzz.ops import WAYS, Ops, edges
from fuzz.target import Finding, bounded, corpus, in_time, run
from teletape_engine.catalogue.op import CATALOGUE


@pytest.mark.laws
@pytest.mark.parametrize("name", sorted(CATALOGUE))
def test_an_op_computes_or_refuses_whatever_it_is_given(name):
    target = Ops(in_turn=True)
    with bounded():
        for case in edges(CATALOGUE[name]):
            in_time(target.check, case)


@pytest.mark.more
@pytest.mark.timeout(1200)
def test_every_op_does_so_in_every_way():
    target, findings = Ops(), []
    with bounded():
        for op in CATALOGUE.values():
            for case in edges(op):
                try:
                    in_time(target.check, case)
                except Finding as finding:
                    findings.append(f"{finding} of {case}")
    assert not findings, "\n".join(findings)


def test_ways_in_turn_are_all_of_them(monkeypatch):
    seen = []
    for way in WAYS:
        monkeypatch.setitem(WAYS, way, lambda *inputs, way=way: seen.append(way) or [])
    target = Ops(in_turn=True)
    case = {"op": "tanh", "inputs": [{"dtype": "float32", "shape": [2], "contents": "ones"}], "attrs": {}}
    with bounded():
        target.check(case)
        assert {*seen} == {"alone", "gradient", "in a function"}
        for _ in range(len(WAYS) - 3):
            target.check(case)
    assert {*seen} == {*WAYS}


def test_random_calls_compute_or_are_refused():
    report = run(Ops(), 20261122, iter(range(300)))
    assert not report.findings, "\n".join(text for _, _, text in report.findings.values())
    assert report.outcomes["computed"] > 90
    assert report.outcomes["invalid_argument"] > 60


def test_calls_that_once_did_something_else():
    cases = corpus(Ops())
    assert cases
    with bounded():
        for case in cases:
            in_time(Ops().check, case)


def _raising(error):
    def forward(xp, x):
        raise error

    return forward


def _warning(xp, x):
    warnings.warn("about to fail", RuntimeWarning, stacklevel=1)
    return xp.tanh(x)


def _hungry(xp, x):
    xp.zeros(10**7).sum()
    return xp.tanh(x)


@pytest.mark.parametrize(
    ("forward", "kind"),
    [
        (_raising(IndexError("tuple index out of range")), "tanh, alone: internal"),
        (_raising(ValueError("maximum supported dimension")), "tanh, alone: accepted by specs"),
        (_raising(MemoryError("no memory")), "tanh, alone: price"),
        (_warning, "tanh, alone: internal"),
        (_hungry, "tanh: price"),
        (lambda xp, x: xp.tanh(x).astype(np.float64), "tanh, alone, spec of a value"),
    ],
)
def test_the_target_notices(monkeypatch, forward, kind):
    monkeypatch.setitem(CATALOGUE, "tanh", replace(CATALOGUE["tanh"], forward=forward, bound={}))
    case = {"op": "tanh", "inputs": [{"dtype": "float32", "shape": [2], "contents": "ones"}], "attrs": {}}
    with bounded(), pytest.raises(Finding) as caught:
        in_time(Ops().check, case)
    assert caught.value.kind == kind
