"""Blocks of memory fit into few bytes, and none lies in another that is needed at the same time."""

import numpy as np
import pytest

from teletape_engine.plans.ir import fitting
from teletape_engine.plans.ir.fitting import ALIGNMENT, Block, fit


def random_blocks(seed, count, most):
    random = np.random.default_rng(seed)
    starts = np.sort(random.integers(-1, count, count))
    sizes = ALIGNMENT * random.integers(1, most, count)
    lengths = random.integers(0, 9, count)
    return [
        Block(int(size), int(start), None if length == 8 else int(start + length))
        for size, start, length in zip(sizes, starts, lengths, strict=True)
    ]


@pytest.mark.parametrize("most", [20, 200, 5000])
@pytest.mark.parametrize("seed", range(5))
def test_blocks_that_are_needed_at_the_same_time_are_apart(seed, most):
    blocks = random_blocks(seed, 120, most)
    total = fit(blocks, 200)
    for number, a in enumerate(blocks):
        assert 0 <= a.offset <= a.offset + a.size <= total
        assert a.offset % ALIGNMENT == 0
        for b in blocks[:number]:
            apart_in_time = a.end < b.start or b.end < a.start
            assert apart_in_time or a.offset + a.size <= b.offset or b.offset + b.size <= a.offset


def test_little_more_than_what_is_needed_at_one_time():
    for seed in range(5):
        blocks = random_blocks(seed, 150, 5000)
        assert fit(blocks, 200) <= 1.15 * fitting._most(blocks)


def test_many_blocks_are_fitted_in_order(monkeypatch):
    monkeypatch.setattr(fitting, "_FEW", 0)
    blocks = random_blocks(3, 150, 5000)
    assert fit(blocks, 200) <= 1.4 * fitting._most(blocks)


def test_a_place_is_used_again_by_blocks_of_other_sizes():
    sizes = [8192, 65536, 4096, 32768, 16384]
    assert fit([Block(size, number, number) for number, size in enumerate(sizes)], 5) == 65536
