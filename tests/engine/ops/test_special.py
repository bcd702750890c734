"""The error function in float32 and 16 bits, which needs NumPy alone; GELU, of which a tape keeps the input alone."""

import math

import numpy as np
import pytest

import teletape_engine.ops  # noqa: F401  # fills the catalogue
from teletape_engine.arrays import tiles
from teletape_engine.catalogue.binding import bind
from teletape_engine.catalogue.op import CATALOGUE
from teletape_engine.spec import DTYPES, Spec

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
    monkeypatch.setattr(tiles, "TILE", 64)
    np.testing.assert_array_equal(ERF(GRID), whole)
    np.testing.assert_array_equal(ERF(np.stack([GRID, GRID]).T), np.stack([whole, whole]).T)
    assert ERF(np.float32(0.5)) == ERF(np.array([0.5], np.float32))[0]


def gelu_by_hand(x, approximate):
    """The value, and the slope by central differences."""

    def value(x):
        if approximate:
            return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))
        return 0.5 * x * (1 + np.array([math.erf(each / math.sqrt(2)) for each in x]))

    return value(x), (value(x + 1e-5) - value(x - 1e-5)) / 2e-5


@pytest.mark.parametrize("approximate", [True, False])
@pytest.mark.parametrize(("dtype", "near"), [("float64", 1e-8), ("float32", 2e-6), ("float16", 4e-3)])
def test_gelu_and_its_gradient(approximate, dtype, near):
    x = np.linspace(-9, 9, 601).astype(dtype)
    value, slope = gelu_by_hand(x.astype(float), approximate)
    np.testing.assert_allclose(CATALOGUE["gelu"](x, approximate=approximate), value, rtol=near, atol=near)
    grad = CATALOGUE["gelu_grad"](np.full_like(x, 2), x, approximate=approximate)
    assert grad.dtype == x.dtype
    np.testing.assert_allclose(grad, 2 * slope, rtol=near, atol=2 * near)


def test_a_tape_keeps_the_input_of_gelu_alone():
    op = CATALOGUE["gelu"]
    assert bind(op, (Spec.of((2, 3), DTYPES["float32"]),), op.attrs({"approximate": True})).plan(1).picks == (0,)


def test_gelu_in_tiles(monkeypatch):
    grad = GRID[::-1].copy()
    whole = [CATALOGUE["gelu"](GRID), CATALOGUE["gelu_grad"](grad, GRID), CATALOGUE["gelu_grad"](grad, 0.5)]
    monkeypatch.setattr(tiles, "TILE", 64)
    again = [CATALOGUE["gelu"](GRID), CATALOGUE["gelu_grad"](grad, GRID), CATALOGUE["gelu_grad"](grad, 0.5)]
    for a, b in zip(whole, again, strict=True):
        np.testing.assert_array_equal(a, b)
    column = GRID[:, None]
    np.testing.assert_array_equal(CATALOGUE["gelu_grad"](column, np.float32([1, 2])).shape, (len(GRID), 2))


def test_the_incomplete_beta_function_of_32_bits_is_rounded_once():
    random = np.random.default_rng(0)
    a, b, x = (random.uniform(low, high, 5000).astype(np.float32) for low, high in ((0.1, 5), (0.1, 5), (0, 1)))
    betainc = CATALOGUE["betainc"]
    exact = betainc(a.astype(float), b.astype(float), x.astype(float))
    np.testing.assert_array_equal(betainc(a, b, x), exact.astype(np.float32))
