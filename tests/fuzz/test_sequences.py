"""Random sequences of batches keep the laws of sessions; and the laws notice sessions that break them."""

import random
from itertools import count

import pytest

from fuzz import sessions, written_down
from fuzz.sequences import Sequences
from fuzz.sessions import PROGRAM
from fuzz.target import Finding, bounded, corpus, in_time, run
from teletape_engine.recording.tape import Tape
from teletape_engine.session.state import State


def test_random_sequences_keep_the_laws():
    report = run(Sequences(), 20261122, iter(range(30)))
    assert not report.findings, "\n".join(text for _, _, text in report.findings.values())
    assert report.outcomes["executed"] > 100
    assert report.outcomes["failed"] > 10


def test_sequences_that_once_broke_a_law():
    cases = corpus(Sequences())
    assert cases
    with bounded():
        for case in cases:
            in_time(Sequences().check, case)


@pytest.mark.parametrize("position", range(1, len(PROGRAM)))
def test_the_program_of_every_command_goes_on_from_a_file(monkeypatch, position):
    monkeypatch.setattr(sessions, "_SECONDS", float("inf"))
    written_down.check_file(PROGRAM, position)


def _no_rollback(patch):
    patch.setattr(State, "forget", lambda self, names: None)


def _other_answers(patch):
    numbers = count()
    patch.setattr(Tape, "length", property(lambda self: next(numbers)))


def _lost_bytes(patch):
    counted = State.bytes_in_use
    patch.setattr(State, "bytes_in_use", lambda self: counted(self) + 1)


def _names_stay(patch):
    release = State.release
    patch.setattr(State, "release", lambda self, name: release(self, name) if random.random() < 0.5 else None)


@pytest.mark.parametrize(
    ("broken", "kind"),
    [
        (_no_rollback, "rollback: a name stays"),
        (_other_answers, "replay: another answer"),
        (_lost_bytes, "released: bytes in use"),
        (_names_stay, "released: |replay: |file: "),
    ],
)
def test_the_laws_notice(monkeypatch, broken, kind):
    target = Sequences()
    cases = [target.draw(random.Random(number)) for number in range(20)]
    broken(monkeypatch)
    with pytest.raises(Finding, match=kind):
        _check_all(target, cases)


def _check_all(target, cases):
    for case in cases:
        target.check(case)
