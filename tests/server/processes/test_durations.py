"""Durations in buckets: as Prometheus counts them, and in the page that a session's process shares with the server."""

import contextlib
import os
from collections.abc import Iterator

import pytest

from teletape_server.ipc.durations import BOUNDS, BUCKETS, Durations
from teletape_server.ipc.heads import MOST
from teletape_server.ipc.page import SLOTS, Page


@pytest.fixture
def page() -> Iterator[Page]:
    new, file = Page.new()
    os.close(file)
    with contextlib.closing(new):
        yield new


def test_a_duration_is_in_the_first_bucket_whose_end_it_does_not_exceed() -> None:
    for index, bound in enumerate(BOUNDS):
        durations = Durations()
        durations.note(bound)
        durations.note(bound * 1.0001)
        assert durations.counts.index(1) == index
        assert durations.counts[index : index + 2] == [1, 1]
        assert durations.seconds == pytest.approx(2.0001 * bound)


def test_quantiles_are_between_the_ends_of_their_bucket() -> None:
    durations = Durations()
    assert durations.quantile(0.5) is None
    for _ in range(98):
        durations.note(0.0007)
    for seconds in (0.3, 4000.0):
        durations.note(seconds)
    median, most = durations.quantile(0.5), durations.quantile(0.99)
    assert median is not None
    assert 0.0005 < median < 0.001
    assert most == 0.5
    assert durations.quantile(1.0) == BOUNDS[-1], "of what took longer than all buckets, only that is known"


def test_the_page_counts_as_an_object_does(page: Page) -> None:
    expected = Durations(), Durations()
    seconds = [*BOUNDS, 0.0, 1e-3, 100.0]
    for number, took in enumerate(seconds):
        page.begin_request()
        page.end_request(took / 2, 1.0 + number, took, is_frame=number % 2 == 0)
        expected[0].note(took)
        if number % 3:
            page.slot(2).note_lent(took)
            expected[1].note(took)
    for durations, other in zip((page.durations, page.slot(2).served.durations), expected, strict=True):
        assert durations.counts == other.counts
        assert durations.seconds == pytest.approx(other.seconds)
    assert page.durations.total == len(seconds)
    assert page.frames == len(seconds) // 2 + 1
    assert page.compute_seconds == pytest.approx(sum(seconds) / 2)
    assert page.cpu_seconds == len(seconds)
    assert not page.is_running


def test_what_the_page_has_of_the_session_and_of_each_slot_is_apart(page: Page) -> None:
    page.begin_request()
    page.end_request(1.0, 1.0, 1000.0, is_frame=True)
    page.slot(4).note_lent(1000.0)
    facts = page.durations.counts, page.slot(4).served.durations.counts
    assert facts[0][-1] == facts[1][-1] == 1
    assert len(facts[0]) == BUCKETS
    for slot in range(SLOTS):
        assert (page.slot(slot).number, page.slot(slot).count, page.slot(slot).worked) == (0, 0, 0.0)
        page.slot(slot).begin(slot + 1, 0.5 + slot, bytes([slot + 1]) * 64)
    page.slot(3).clear()
    for slot in range(SLOTS):
        running = page.slot(slot).running
        if slot == 3:
            assert running is None
        else:
            assert running == (slot + 1, bytes([slot + 1]) * 64, b"")
            assert page.slot(slot).worked == 0.5 + slot
            page.slot(slot).begin_call(slot + 2, 0.0, memoryview(bytes([slot]) * (MOST - slot)))
    for slot in {*range(SLOTS)} - {3}:
        running = page.slot(slot).running
        assert running is not None
        assert (running.number, running.body) == (slot + 2, bytes([slot]) * (MOST - slot))
    assert (page.durations.counts, page.slot(4).served.durations.counts) == facts
    page.slot(4).clear()
    assert page.slot(4).served.durations.total == 0
