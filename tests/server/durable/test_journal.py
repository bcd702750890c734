"""Logs on a disk that fails: what was synced is read again, in order and whole; and nothing that was never written."""

import random
from functools import partial
from itertools import count
from typing import cast

import pytest
from disks import SimulatedFile

from serving import until
from teletape_server.durable import records
from teletape_server.durable.journal import Journal
from teletape_server.durable.open_logs import OpenLog
from teletape_server.durable.records import DamagedError, Kind, Log
from teletape_server.durable.syncer import Syncer

SEEDS = range(60)
FACTS = {"uid": "u", "epoch": 1, "first": 1}


def payload(rng: random.Random, number: int) -> bytes:
    return records.packed([number, rng.randbytes(rng.choice([0, 10, 700, 3000]))])


class Writer:
    """Writes records, and knows which of them are surely on the disk."""

    def __init__(self, rng: random.Random, file: SimulatedFile) -> None:
        self.rng, self.file, self.synced = rng, file, 0
        self.written: dict[int, bytes] = {}
        log = records.read(file.read())
        if log is None:
            self.journal = Journal.begin(file, dict(FACTS))
        else:
            self.written = {record.number: bytes(record.payload) for record in log.records}
            if log.cut:
                file.write(log.end, bytes(log.cut))
                file.sync()
            self.synced = len(log.records)
            self.journal = Journal(file, log.end, len(log.records) + 1, reserved=log.end)

    def work(self, most: int) -> None:
        for _ in range(self.rng.randint(0, most)):
            data = payload(self.rng, self.journal.number)
            self.written[self.journal.append(Kind.REQUEST, data, self.synced)] = data
            if self.rng.random() < 0.3:
                number = self.journal.number - 1
                self.journal.sync()
                self.synced = number


def read(file: SimulatedFile) -> Log:
    log = records.read(file.read())
    assert log is not None
    assert [record.number for record in log.records] == list(range(1, len(log.records) + 1))
    return log


@pytest.mark.parametrize("seed", SEEDS)
def test_what_was_synced_survives_power_cuts_and_what_was_written_the_end_of_processes(seed: int) -> None:
    rng = random.Random(seed)
    writer = Writer(rng, SimulatedFile(rng))
    for _ in range(4):
        writer.work(8)
        is_power_cut = rng.random() < 0.5
        file = writer.file.after_power_cut() if is_power_cut else writer.file.after_kill()
        log = read(file)
        assert len(log.records) >= (writer.synced if is_power_cut else len(writer.written))
        for record in log.records:
            assert bytes(record.payload) == writer.written[record.number]
        writer = Writer(rng, file)


def test_a_torn_tail_is_cut_and_counted() -> None:
    rng = random.Random(1)
    writer = Writer(rng, SimulatedFile(rng))
    for number in count(1):
        writer.journal.append(Kind.REQUEST, payload(rng, number), 0)
        if number == 5:
            break
    whole = writer.file.read()
    end = read(SimulatedFile(rng, whole)).end
    log = records.read(whole[: end - 12].ljust(len(whole), b"\0"))
    assert log is not None
    assert len(log.records) == 4
    assert 0 < log.cut < end - log.end
    assert read(SimulatedFile(rng, whole)).cut == 0


@pytest.mark.parametrize("record", range(3))
@pytest.mark.parametrize("more", [0, 12])
def test_a_file_that_was_cut_short_is_damaged(record: int, more: int) -> None:
    rng = random.Random(1)
    writer = Writer(rng, SimulatedFile(rng))
    for number in range(1, 4):
        writer.journal.append(Kind.REQUEST, payload(rng, number), 0)
    data = writer.file.read()
    whole = read(SimulatedFile(rng, data))
    end = [*(each.begin for each in whole.records[1:]), whole.end][record] - more
    with pytest.raises(DamagedError, match=f"ends at byte {end}, .* cut short after record {record + (not more)}"):
        records.read(data[:end])
    log = records.read(data[:end], to_damage=True)
    assert log is not None
    assert len(log.records) == record + (not more)
    assert records.read(data[: whole.end + 4096]) == whole, "nothing of it is missing"


@pytest.mark.parametrize("seed", range(50))
def test_a_change_of_what_was_on_the_disk_is_found(seed: int) -> None:
    """A bit changes before the last record: the log is damaged, unless nothing depends on that bit."""
    rng = random.Random(seed)
    writer = Writer(rng, SimulatedFile(rng))
    for _ in range(6):
        writer.journal.append(Kind.REQUEST, payload(rng, writer.journal.number), writer.synced)
        writer.journal.sync()
        writer.synced = writer.journal.number - 1
    data = bytearray(writer.file.read())
    before = read(SimulatedFile(rng, bytes(data)))
    end, last = before.end, before.records[-1]
    at = rng.randrange(0, end - records.length_of(len(last.payload)))
    data[at] ^= 1 << rng.randrange(8)
    try:
        log = records.read(bytes(data))
    except DamagedError:
        return
    assert log is not None
    assert [bytes(record.payload) for record in log.records] == [bytes(record.payload) for record in before.records]


def test_a_full_disk_refuses_before_anything_is_written() -> None:
    rng = random.Random(1)
    file = SimulatedFile(rng, space=(1 << 20) + 4096)
    journal = Journal.begin(file, dict(FACTS))
    with pytest.raises(OSError, match="no space"):
        journal.reserve(4 << 20)
    journal.append(Kind.REQUEST, records.packed("it goes on"), 0)
    assert len(read(file).records) == 1


def test_after_a_failed_write_nothing_is_written() -> None:
    rng = random.Random(1)
    file = SimulatedFile(rng)
    journal = Journal.begin(file, dict(FACTS))
    journal.append(Kind.REQUEST, records.packed("one"), 0)
    file.fails = True
    with pytest.raises(OSError, match="has failed"):
        journal.append(Kind.REQUEST, records.packed("two"), 0)
    file.fails = False
    with pytest.raises(OSError, match="could not be written"):
        journal.append(Kind.REQUEST, records.packed("three"), 0)
    assert len(read(file).records) == 1


def test_a_log_whose_head_was_never_written_has_nothing() -> None:
    assert records.read(b"") is None
    assert records.read(bytes(4096)) is None


class CountedLog:
    """A log that counts how often it was brought to the disk."""

    def __init__(self) -> None:
        self.syncs, self.closed = 0, False

    def sync(self) -> None:
        self.syncs += 1

    def has_more_than(self, syncs: int) -> bool:
        return self.syncs > syncs

    def close(self) -> None:
        self.closed = True


def test_a_log_that_was_dropped_is_not_brought_to_the_disk_any_more() -> None:
    syncer = Syncer(lambda log, error: None, seconds=0.001)
    dropped, other = CountedLog(), CountedLog()
    for log in (dropped, other):
        syncer.add(cast("OpenLog", log))
    until(partial(dropped.has_more_than, 0))
    syncer.drop(cast("OpenLog", dropped))
    assert dropped.closed
    for _ in range(2):  # a round that had begun goes on with it
        syncs, rounds = dropped.syncs, other.syncs
        until(partial(other.has_more_than, rounds + 2))
    assert dropped.syncs == syncs
    syncer.stop()
    assert other.closed
