"""Simulated seeds lose nothing that was acknowledged, and do nothing twice; and servers that would are found."""

import os
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from simulation.ledger import Violation
from simulation.simulation import Simulator, simulator
from teletape_engine.session.clients import Clients
from teletape_server.durable import disk, folders
from teletape_server.durable.journal import Journal
from teletape_server.durable.records import Kind
from teletape_server.handlers.idempotency import ReplyStore
from teletape_server.sessions import store

SEEDS = range(6)


@pytest.fixture(scope="module")
def simulations() -> Iterator[Simulator]:
    with simulator() as running:
        yield running


@pytest.mark.parametrize("seed", SEEDS)
def test_nothing_acknowledged_is_lost_or_done_twice(simulations: Simulator, seed: int) -> None:
    """`make simulate` runs thousands of them."""
    assert simulations.run(seed).acknowledged > 0


# --------------------------------------------------------------------------------- what the simulation would have found
def _no_sync(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(os, "fdatasync", lambda fd: None)
    patch.setattr(disk.RealFile, "sync", lambda self: None)


def _names_not_synced(patch: pytest.MonkeyPatch) -> None:
    for module in (disk, folders):
        patch.setattr(module, "sync_folder", lambda path: None)


def _folder_not_synced(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(store, "sync_folder", lambda path: None)


def _logs_not_synced_at_start(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(folders.Folder, "sync", lambda self: None)


def _answered_before_it_is_written(patch: pytest.MonkeyPatch) -> None:
    append, waiting = Journal.append, dict[Journal, tuple[Kind, bytes, int]]()

    def later(self: Journal, *record: Any) -> int:
        if self in waiting:
            append(self, *waiting.pop(self))
        waiting[self] = record
        return self.number

    patch.setattr(Journal, "append", later)


def _keys_not_known(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ReplyStore, "find", lambda *_: None)


def _numbers_not_known(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Clients, "answer_to_retry", lambda *_: None)
    patch.setattr(Clients, "last_answer", lambda *_: None)


MUTATIONS: list[tuple[Callable[[pytest.MonkeyPatch], None], int]] = [
    (_no_sync, 2),
    (_names_not_synced, 2),
    (_folder_not_synced, 0),
    (_logs_not_synced_at_start, 288),
    (_answered_before_it_is_written, 8),
    (_keys_not_known, 22),
    (_numbers_not_known, 0),
]


@pytest.mark.parametrize(("mutate", "seed"), MUTATIONS)
def test_the_simulation_finds(
    simulations: Simulator, monkeypatch: pytest.MonkeyPatch, mutate: Callable[[Any], None], seed: int
) -> None:
    mutate(monkeypatch)
    with pytest.raises(Violation):
        simulations.run(seed)
