"""Points of Sobol's sequence are those that SciPy gives by its public interface."""

import numpy as np
import pytest

import teletape_engine.ops  # noqa: F401  # fills the catalogue
from teletape_engine.catalogue.binding import bind
from teletape_engine.catalogue.op import CATALOGUE
from teletape_engine.errors import InvalidArgumentError


def checked(**attrs):
    op = CATALOGUE["sobol_sample"]
    return bind(op, (), op.attrs({"dim": 3, "num_results": 1, **attrs}))


@pytest.mark.parametrize(("dim", "skip"), [(1, 0), (7, 0), (300, 5), (2, 4095)])
def test_points_are_those_of_scipy(dim, skip):
    from scipy.stats import qmc  # here, because every test process reads this file: it takes a second

    expected = qmc.Sobol(dim, scramble=False, bits=32).fast_forward(skip + 1).random(20)
    points = CATALOGUE["sobol_sample"](dim=dim, num_results=20, skip=skip, dtype=np.dtype(np.float64))
    np.testing.assert_array_equal(points, expected)


def test_the_last_points_are_as_quick_as_the_first():
    points = CATALOGUE["sobol_sample"](dim=3, num_results=4, skip=2**31 - 10)
    assert ((points > 0) & (points < 1)).all()
    assert len(np.unique(points[:, 0])) == 4
    with pytest.raises(InvalidArgumentError, match="must be less than"):
        checked(num_results=4, skip=2**31 - 5)


def test_axes_without_direction_numbers_are_refused():
    with pytest.raises(InvalidArgumentError, match="dim must be at most 21201, found 21202"):
        checked(dim=21202)
