"""The ledger of the machine's memory: whatever sessions do, they never have reserved more than the box has."""

import random
from collections.abc import Callable

import pytest

from teletape_server.ipc.page import IDLE_BYTES
from teletape_server.sessions.hosting.ledger import Ledger, Reservation

MIB = 1 << 20
LEAST = 256 * MIB


class Process:
    """A session's process: it uses no more than it knows to be reserved, and says at its answers what it uses."""

    def __init__(self, reservation: Reservation) -> None:
        self.reservation = reservation
        self.used = self.shown = 0
        self.known = reservation.reserved
        reservation.look = lambda: (min(self.shown, self.used), self.known)
        reservation.give_back = self.give_back

    def give_back(self) -> bool:
        """It is idle, and counts what it uses."""
        self.shown, before = self.used, self.known
        self.known = min(self.known, self.used + IDLE_BYTES)
        return before - self.known > IDLE_BYTES


class Box:
    """A machine with processes, and with what else takes memory on it."""

    def __init__(self, nbytes: int) -> None:
        self.nbytes = nbytes
        self.processes: list[Process] = []
        self.ledger = Ledger(self.free, LEAST)

    def free(self) -> int:
        return self.nbytes - sum(process.used for process in self.processes)

    def start(self, nbytes: int = IDLE_BYTES, start_bytes: int = 64 * MIB) -> Process | None:
        reservation = self.ledger.reserve("ann", nbytes, start_bytes)
        if reservation is None:
            return None
        reservation.start_bytes = 0
        self.processes.append(Process(reservation))
        return self.processes[-1]

    def ask(self, process: Process, needed: int, limit: int = 2048 * MIB) -> bool:
        granted = self.ledger.extend(process.reservation, needed, limit)
        process.known = process.reservation.reserved
        return granted

    def end(self, process: Process) -> None:
        self.processes.remove(process)
        self.ledger.release(process.reservation)

    def worst(self) -> int:
        """Bytes if each process takes all that it may, before anything else is decided."""
        return sum(max(process.used, process.known) for process in self.processes)


@pytest.mark.parametrize("seed", range(40))
def test_all_that_sessions_may_take_together_fits_into_the_box(seed: int) -> None:
    rng = random.Random(seed)
    box = Box(rng.choice([600, 1500, 4000, 24_000]) * MIB)
    granted = refused = 0

    def ask(process: Process) -> None:
        nonlocal granted, refused
        needed = process.known + rng.randrange(1, 900) * MIB
        if needed > 2048 * MIB:
            return
        if box.ask(process, needed):
            granted += 1
            assert process.known >= needed
            process.used = needed
        else:
            refused += 1
            assert process.known < needed

    steps: list[Callable[[Process], object]] = [
        ask,
        lambda process: setattr(
            process, "used", rng.randrange(process.known + 1)
        ),  # inside a request: nothing is shown
        lambda process: setattr(process, "shown", process.used),
        lambda process: process.give_back(),
        box.end,
    ]
    for _ in range(2000):
        if not box.processes or rng.random() < 0.1:
            box.start(IDLE_BYTES + rng.choice([0, 0, 300 * MIB]))
        if box.processes:
            rng.choices(steps, (4, 4, 4, 2, 0.4))[0](rng.choice(box.processes))
        assert box.worst() <= box.nbytes - LEAST
        assert box.ledger.promised() >= box.worst() - sum(process.used for process in box.processes)
    assert granted > 20
    assert refused > 20 or box.nbytes > 20_000 * MIB


def test_what_is_free_is_given_and_what_is_given_back_is_free_again() -> None:
    box = Box(LEAST + 64 * MIB + 1000 * MIB)
    first, second = box.start(), box.start()
    assert first is not None
    assert second is not None
    assert box.ask(first, 700 * MIB)
    first.used = 700 * MIB
    assert not box.ask(second, 300 * MIB)
    assert box.ledger.extend(second.reservation, IDLE_BYTES, 2048 * MIB), "it has that"
    first.used = 0
    assert not box.ask(second, 400 * MIB), "the first may take it again"
    assert box.ledger.reclaim()
    assert box.ask(second, 400 * MIB)
    second.used = second.known
    assert not box.ledger.reclaim(), "there is nothing more to give back"
    box.end(first)
    assert box.ask(second, 900 * MIB)


def test_an_extension_has_some_to_spare_within_the_limit_and_the_room() -> None:
    box = Box(LEAST + 64 * MIB + 1000 * MIB)
    process = box.start()
    assert process is not None
    assert box.ask(process, 10 * MIB, 50 * MIB)
    assert process.known == 50 * MIB
    assert box.ask(process, 100 * MIB)
    assert process.known == 164 * MIB
    assert box.ask(process, 400 * MIB)
    assert process.known == 500 * MIB
    assert box.ask(process, 1000 * MIB)
    assert process.known == 1000 * MIB, "there is no room for more"


def test_an_ended_reservation_is_not_extended() -> None:
    box = Box(4000 * MIB)
    process = box.start()
    assert process is not None
    box.end(process)
    box.ledger.release(process.reservation)
    assert not box.ask(process, 100 * MIB)
    assert box.ledger.promised() == 0


def test_a_start_counts_what_its_process_takes_until_it_has_started() -> None:
    box = Box(LEAST + 150 * MIB)
    assert box.ledger.reserve("ann", IDLE_BYTES, 64 * MIB) is not None
    assert box.ledger.reserve("bob", IDLE_BYTES, 64 * MIB) is not None
    assert box.ledger.reserve("bob", IDLE_BYTES, 64 * MIB) is None
    assert box.ledger.reserved_by() == {"ann": 72 * MIB, "bob": 72 * MIB}


def test_processes_are_looked_at_only_if_it_is_tight() -> None:
    box = Box(1 << 40)
    process = box.start()
    assert process is not None
    looks = []
    process.reservation.look = lambda: looks.append(1) or (0, IDLE_BYTES)  # type: ignore[func-returns-value]
    assert box.ledger.fits(MIB)
    assert not looks
    assert not box.ledger.fits(1 << 40)
    assert looks


def test_bodies_that_come_count() -> None:
    box = Box(LEAST + 100 * MIB)
    box.ledger.coming = 60 * MIB
    assert box.ledger.fits(40 * MIB)
    assert not box.ledger.fits(41 * MIB)
    assert box.ledger.left() == 40 * MIB
