"""The index of a provenance log: kept with the log, it is what an index made anew says."""

import gc
import random
import tracemalloc

from teletape_engine.explain.log_index import LogIndex
from teletape_engine.recording.provenance import LENGTH, CallRecords, Event, PlannedCall, Records
from teletape_engine.session.objects import LogCounts

VARIABLES = (-1, -2, -3)
TEMPLATE = CallRecords(
    ((Event.READ, (-1,), 1, "v1"), (Event.UPDATE, (1, -1), 2, None)), values=(1,), variables=(-1,), new=(2,), first=0
)


def record(uid: int, chance: random.Random) -> tuple:
    """A record of one of the kinds: of values, of variables, and of a planned call."""
    variable = chance.choice(VARIABLES)
    match chance.randrange(6):
        case 0:
            return Event.READ, (-2,), chance.choice((-10, -20)), "v2"  # of values that are often read
        case 1:
            return chance.choice((Event.ASSIGN, Event.UPDATE)), (uid - 1, variable), uid, None
        case 2:
            return Event.READ, (variable,), uid, f"v{-variable}"
        case 3:
            return PlannedCall(TEMPLATE, (-100 - uid,), ((variable, f"v{-variable}"),), (uid,)), (), uid, None
        case _:
            return chance.choice((Event.PUT, Event.GRADIENT)), (uid - 1, uid - 2), uid, "line 1"


def test_an_index_that_follows_its_log_is_that_of_the_whole_log() -> None:
    chance = random.Random(3)
    log = Records(maxlen=LENGTH)
    uid = 0
    for length in (0, 1, 5, 100, LENGTH // 2, LENGTH // 2, 10, LENGTH - 1, LENGTH, LENGTH + 7, 300):
        for _ in range(length):
            uid += 1
            log.append(record(uid, chance))
        index, anew = LogIndex.of(log), LogIndex.of(Records(log, maxlen=LENGTH))
        assert index is LogIndex.of(log)
        for field in ("records", "names", "versions", "truncated", "count"):
            assert getattr(index, field) == getattr(anew, field), (length, field)
        assert index.truncated == (index.count >= LENGTH)
        assert index.count < LENGTH + 2


def test_a_log_that_was_emptied_has_an_empty_index() -> None:
    log = Records(maxlen=LENGTH)
    log.append((Event.READ, (-1,), 1, "v"))
    assert LogIndex.of(log).is_variable(-1)
    log.clear()
    assert not LogIndex.of(log).is_variable(-1)
    assert LogIndex.of(log).records == {}


def test_an_index_counts_with_what_it_takes() -> None:
    log = Records(maxlen=LENGTH)
    for uid in range(1 << 20, (1 << 20) + LENGTH):
        log.append((Event.UPDATE, (uid - 1, -1), uid, None))
    counts = LogCounts()
    counted = counts.total([log])
    gc.collect()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        LogIndex.of(log)
        grown = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert grown <= (counts.total([log]) - counted) * 1.1
    assert counts.total([log]) - counted < grown * 1.5
    log.clear()
    assert counts.total([log]) == 0


def test_each_record_is_looked_at_once(monkeypatch) -> None:
    log = Records(maxlen=LENGTH)
    seen: list[int] = []
    monkeypatch.setattr(LogIndex, "_add", lambda self, record: seen.append(record[2]))
    for uid in range(50):
        log.append((Event.PUT, (), uid, None))
        LogIndex.of(log)
    assert seen == list(range(50))
