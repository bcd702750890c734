"""The error function in float32 and 16 bits, which needs NumPy alone."""

import math

import numpy as np
import pytest

import teletape_engine.ops  # noqa: F401  # fills the catalogue
from teletape_engine.arrays import special
from teletape_engine.catalogue.op import CATALOGUE
from teletape_engine.spec import DTYPES

ERF = CATALOGUE["erf"]
GRID = np.concatenate([np.linspace(-5, 5, 4001), np.geomspace(1e-30, 4, 1001)]).astype(np.float32)


def test_within_six_units_in_the_last_place():
    exact = np.array([math.erf(x) for x in GRID.tolist()])
    units = np.abs(ERF(GRID).astype(float) - exact) / np.spacing(np.abs(exact).astype(np.float32))
    assert units.max() <= 6


def test_special_numbers():
    result = ERF(np.array([np.inf, -np.inf, np.nan, 0.0, -0.0, 20.0], np.float32))
    np.testing.assert_array_equal(result, [1, -1, np.nan, 0, 0, 1])
    assert np.signbit(result[4])


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_sixteen_bits_are_rounded_once(dtype):
    x = GRID.astype(DTYPES[dtype])
    np.testing.assert_array_equal(ERF(x), ERF(x.astype(np.float32)).astype(x.dtype))


def test_tiles_give_what_is_given_at_once(monkeypatch):
    whole = ERF(GRID)
    monkeypatch.setattr(special, "_TILE", 64)
    np.testing.assert_array_equal(ERF(GRID), whole)
    np.testing.assert_array_equal(ERF(np.stack([GRID, GRID]).T), np.stack([whole, whole]).T)
    assert ERF(np.float32(0.5)) == ERF(np.array([0.5], np.float32))[0]
