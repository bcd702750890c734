"""A mutated safetensors body is refused or executed in documented ways, and the session goes on."""

import pytest

from fuzz.target import Finding, bounded, corpus, in_time, run
from fuzz.tensor_files import BODIES, TensorFiles
from teletape_server.handlers.methods import METHODS


def test_mutated_bodies_are_refused_or_executed():
    report = run(TensorFiles(), 20261122, iter(range(40)))
    assert not report.findings, "\n".join(text for _, _, text in report.findings.values())
    assert sum(report.outcomes.values()) == 40 * BODIES
    assert report.outcomes["executed"] > 50
    assert report.outcomes["malformed_safetensors"] > 50
    assert report.outcomes["invalid_request"] > 50


def test_bodies_that_once_did_something_else():
    cases = corpus(TensorFiles())
    assert cases
    with bounded():
        for case in cases:
            in_time(TensorFiles().check, case)


def test_the_target_notices_what_no_document_names(monkeypatch):
    [part, *_] = corpus(TensorFiles())[0]

    def broken(session, request):
        raise IndexError("out of range")

    monkeypatch.setitem(METHODS, part["method"], broken)
    with pytest.raises(Finding, match="raises IndexError: out of range"):
        TensorFiles().check([part])
