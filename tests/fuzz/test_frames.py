"""A mutated frame is refused or executed in documented ways, and the session goes on."""

import pytest

from fuzz import sessions
from fuzz.frames import FRAMES, Frames
from fuzz.sessions import PROGRAM, encoded, execute, new_session, run_program
from fuzz.target import Finding, bounded, corpus, in_time, run
from teletape_engine.commands import COMMANDS, Batch, Constant
from teletape_engine.recording.values import Literal
from teletape_engine.session.session import Session


def test_the_program_uses_every_command_and_all_succeed(monkeypatch):
    monkeypatch.setattr(sessions, "_SECONDS", float("inf"))  # a busy machine
    assert {command.verb for batch in PROGRAM for command in batch.commands} == set(COMMANDS)
    assert [answer.failure for answer in run_program(new_session())] == [None] * len(PROGRAM)


def test_mutated_frames_are_refused_or_executed():
    report = run(Frames(), 20261122, iter(range(50)))
    assert not report.findings, "\n".join(text for _, _, text in report.findings.values())
    assert sum(report.outcomes.values()) == 50 * FRAMES
    assert report.outcomes["executed"] > 15
    assert report.outcomes["failed"] > 100
    assert report.outcomes["malformed_frame"] > 100


def test_frames_that_once_did_something_else():
    cases = corpus(Frames())
    assert cases
    with bounded():
        for case in cases:
            in_time(Frames().check, case)


def test_the_target_notices_what_no_document_names(monkeypatch):
    case = {"program": 1, "frames": [encoded(Batch((Constant("new", Literal(1)),))).hex()]}
    target = Frames()
    assert target.check(case) == ["executed"]
    with monkeypatch.context() as patch:
        patch.setattr(sessions, "DOCUMENTED", frozenset())
        with pytest.raises(Finding, match="constant: id_in_use"):
            execute(run_twice(), Batch((Constant("x", Literal(1)),)))
    with monkeypatch.context() as patch:
        patch.setattr(Session, "bytes_in_use", lambda self: -1)
        with pytest.raises(Finding, match="bytes_in_use"):
            target.check(case)


def run_twice():
    """A session in which the program's first names are taken."""
    session = new_session()
    run_program(session, 1)
    return session
