"""Folding: every item is in one segment, repetitions are together, and there are at most max_segments segments."""

import random

import pytest

from teletape_engine.diagram.folding import Run, fold, runs

LSTM = "m a s m a s m a s m a t f g h r".split()


def covered(segments):
    return [i for segment in segments for i in range(segment.start, segment.stop)]


def test_up_to_as_many_as_asked_for_each_stands_alone():
    assert [(item.start, item.stop) for item in fold("abc", 3)] == [(0, 1), (1, 2), (2, 3)]
    assert fold("", 3) == []


def test_the_outer_loop_is_found_before_the_repetitions_inside_it():
    assert runs(["init", *LSTM * 50, "loss"]) == [Run(0, 1, 1), Run(1, 801, 16), Run(801, 802, 1)]


def test_a_long_iteration_is_one_run_although_its_parts_repeat():
    assert runs(([1] * 50 + [2] * 50) * 40) == [Run(0, 4000, 100)]


def test_iterations_are_folded_whole():
    segments = fold([*LSTM * 1000], 100)
    assert len(segments) <= 100
    assert all(
        segment.start % 16 == 0 and segment.iterations == (segment.stop - segment.start) // 16 for segment in segments
    )
    assert covered(segments) == list(range(16_000))


def test_what_does_not_repeat_is_cut_into_neighbours():
    segments = fold(range(1000), 10)
    assert len(segments) <= 10
    assert covered(segments) == list(range(1000))
    assert not any(segment.iterations for segment in segments)


@pytest.mark.parametrize("kinds", [1, 2, 3, 9])
def test_any_sequence_is_covered_in_order_by_no_more_segments_than_asked_for(kinds):
    draw = random.Random(kinds)
    for _ in range(300):
        keys = [draw.randrange(kinds) for _ in range(draw.randrange(1, 80))]
        most = draw.randrange(1, 40)
        segments = fold(keys, most)
        assert len(segments) <= most
        assert covered(segments) == list(range(len(keys)))
        for segment in segments:
            if segment.iterations > 1:  # iterations are equal, but for the last segment of a run they are also whole
                iteration = keys[segment.start : segment.start + segment.period]
                assert (
                    keys[segment.start : segment.start + segment.iterations * segment.period]
                    == iteration * segment.iterations
                )
