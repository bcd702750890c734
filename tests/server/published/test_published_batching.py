"""Which calls go together, and when: laws of the queue and of the model of a batch's seconds."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from teletape_server.handlers.published.batching import MOST_BYTES, MOST_CALLS, MOST_WAIT, Calls, CostModel, Waiting

arrivals = st.lists(
    st.tuples(st.sampled_from("fgh"), st.sampled_from(["ann", "bob", "eve"]), st.integers(1, 1 << 20)), max_size=80
)


def filled(calls: list[tuple[str, str, int]], most: int = MOST_CALLS) -> Calls[int]:
    """A queue to which calls came, one each millisecond; their numbers are the items."""
    queue = Calls[int]()
    for number, (key, owner, length) in enumerate(calls):
        queue.add(key, Waiting(number, owner, length, number * 0.001), most=most)
    return queue


def batches(queue: Calls[int], now: float = 1.0) -> list[tuple[str, list[Waiting[int]]]]:
    """All batches, one after the other; the model learns that each took 1 ms and 0.1 ms a call."""
    taken = []
    while isinstance(batch := queue.next(now), tuple):
        key, calls = batch
        queue.note(key, len(calls), 0.001 + 0.0001 * len(calls))
        taken.append((str(key), calls))
    assert batch is None
    return taken


@given(arrivals)
def test_each_call_is_taken_once_and_with_calls_of_its_key_alone(calls: list[tuple[str, str, int]]) -> None:
    taken = batches(filled(calls))
    assert sorted(call.item for _, batch in taken for call in batch) == list(range(len(calls)))
    for key, batch in taken:
        assert {calls[call.item][0] for call in batch} == {key}


@given(arrivals)
def test_of_an_owner_the_oldest_call_of_a_key_comes_first(calls: list[tuple[str, str, int]]) -> None:
    last: dict[tuple[str, str], int] = {}
    for key, batch in batches(filled(calls)):
        for call in batch:
            assert call.item > last.get((key, call.owner), -1)
            last[key, call.owner] = call.item


@given(arrivals, st.integers(1, 5))
def test_a_batch_has_at_most_as_many_calls_as_it_may(calls: list[tuple[str, str, int]], most: int) -> None:
    assert all(len(batch) <= most for _, batch in batches(filled(calls, most)))


def test_owners_take_turns_in_a_batch() -> None:
    queue = filled([("f", "ann", 1)] * 50 + [("f", "bob", 1)] * 2)
    for _ in range(8):
        queue.note("f", 8, 0.001)
    _, batch = queue.next(1.0)  # type: ignore[misc]  # it waits for nothing
    assert [call.owner for call in batch[:4]] == ["ann", "bob", "ann", "bob"]
    assert len(batch) == 16, "twice as many as a batch had"


def test_keys_take_turns() -> None:
    taken = batches(filled([("f", "ann", 1)] * 40 + [("g", "ann", 1)]))
    assert [key for key, _ in taken[:2]] == ["f", "g"]


def test_large_bodies_do_not_go_together() -> None:
    queue = filled([("f", "ann", MOST_BYTES // 2 + 1)] * 3)
    queue.note("f", 8, 0.001)
    assert [len(batch) for _, batch in batches(queue)] == [1, 1, 1]


def test_how_many_batches_wait() -> None:
    """That is how many more processes could work."""
    queue = filled([("f", "ann", 1)] * 60 + [("g", "bob", 1)])
    assert queue.batches() == 1 + 1
    queue.note("f", 1, 0.004)
    queue.note("f", 2, 0.008)
    assert queue.batches() == 3 + 1, "25 calls of f take 0.1 s"
    assert filled([("f", "ann", 1)] * 9, most=1).batches() == 9
    assert filled([]).batches() == 0


def test_a_call_whose_caller_has_left_is_not_taken() -> None:
    queue = Calls[str]()
    gone, other = Waiting("gone", "ann", 1, 0.0), Waiting("other", "ann", 1, 0.0)
    queue.add("f", gone)
    queue.add("f", other)
    assert queue.of("ann") == 2
    assert queue.remove("f", gone)
    assert not queue.remove("f", gone)
    assert queue.next(1.0) == ("f", [other])
    assert (len(queue), queue.of("ann"), queue.next(1.0)) == (0, 0, None)


@given(st.floats(1e-4, 1e-2), st.floats(1e-5, 1e-3), st.floats(1e-6, 1.0))
def test_a_single_caller_never_waits(intercept: float, slope: float, between: float) -> None:
    """It sends its next call after the answer to the last one."""
    queue, now = Calls[int](), 0.0
    for number in range(20):
        now += between
        queue.add("f", Waiting(number, "ann", 1, now))
        batch = queue.next(now)
        assert isinstance(batch, tuple)
        now += intercept + slope
        queue.note("f", 1, intercept + slope)


def test_waiting_pays_where_calls_come_quickly_and_a_batch_costs_much_in_itself() -> None:
    queue = Calls[int]()
    for size in (1, 2, 32, 64):
        queue.note("f", size, 0.005 + size * 1e-5)
    queue.add("f", Waiting(0, "ann", 1, 0.0))
    for size in (1, 2, 32, 64):
        queue.note("f", size, 0.005 + size * 1e-5)
    queue.add("f", Waiting(1, "bob", 1, 0.0001))
    pause = queue.next(0.0001)
    assert isinstance(pause, float)
    assert 0 < pause <= MOST_WAIT
    key, batch = queue.next(MOST_WAIT)  # type: ignore[misc]  # it has waited for long enough
    assert (key, len(batch)) == ("f", 2)


def test_waiting_ends_when_no_more_calls_come() -> None:
    queue = Calls[int]()
    queue.add("f", Waiting(0, "ann", 1, 0.0))
    queue.note("f", 1, 0.0004)
    queue.note("f", 8, 0.0004)
    queue.add("f", Waiting(1, "bob", 1, 0.0001))
    assert isinstance(queue.next(0.0001), float)
    assert isinstance(queue.next(0.0009), tuple), "0.8 ms without a call: in a further one, no call would come"


@given(st.lists(st.tuples(st.integers(1, 256), st.floats(0, 1)), min_size=1, max_size=100))
def test_the_model_is_never_negative(samples: list[tuple[int, float]]) -> None:
    model = CostModel()
    for size, seconds in samples:
        model.note(size, seconds)
        assert model.slope >= 0
        assert model.intercept >= 0
        assert 1 <= model.most() <= MOST_CALLS


def test_the_model_finds_a_line() -> None:
    model = CostModel()
    for size in (1, 4, 16, 64):
        model.note(size, 0.002 + 0.0003 * size)
    assert (model.intercept, model.slope) == pytest.approx((0.002, 0.0003))


def test_a_batch_is_at_times_larger_than_the_model_allows() -> None:
    model, sizes = CostModel(), Counter[int]()
    for _ in range(100):
        for size in (4, 8):
            model.note(size, 0.01 * size)
            sizes[model.most()] += 1
    allowed, largest = 10, 8  # in 0.1 s
    assert sizes[2 * largest] == pytest.approx(4, abs=1)
    assert sum(count for size, count in sizes.items() if size <= allowed) > 150
