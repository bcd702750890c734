"""Statistics and histograms of every dtype, with NaN, infinities and nothing, compared with NumPy's."""

import json

import numpy as np
import pytest

from teletape_engine.diagram.histogram import histogram
from teletape_engine.errors import InvalidArgumentError
from teletape_engine.spec import DTYPES, Spec


def counted(array, bins=10):
    facts = histogram(array, Spec.of(array.shape, array.dtype), bins)
    json.dumps(facts, allow_nan=False)
    assert sum(facts["counts"]) == facts["finite"]
    assert len(facts["edges"]) == len(facts["counts"]) + bool(facts["counts"])
    assert facts["elements"] == facts["finite"] + facts["nan"] + facts["positive_infinity"] + facts["negative_infinity"]
    return facts


@pytest.mark.parametrize("dtype", sorted(DTYPES))
def test_every_dtype_is_counted_as_numpy_counts_it(dtype):
    values = np.arange(300).reshape(3, 100) % 101
    array = values.astype(DTYPES[dtype])
    facts = counted(array, bins=7)
    wide = np.abs(array.astype(np.complex128)) if "complex" in dtype else array.astype(np.float64)
    assert facts["of"] == ("magnitude" if "complex" in dtype else "value")
    assert (facts["minimum"], facts["maximum"]) == (wide.min(), wide.max())
    assert facts["mean"] == pytest.approx(wide.mean())
    assert facts["std"] == pytest.approx(wide.std())
    assert facts["zeros"] == (wide == 0).sum()
    if dtype != "bool":
        assert facts["counts"] == np.histogram(wide, bins=facts["edges"])[0].tolist()


def test_what_is_not_finite_is_counted_apart():
    facts = counted(np.array([np.nan, np.inf, np.inf, -np.inf, 0.0, -0.0, 1.0]))
    assert [facts[name] for name in ("nan", "positive_infinity", "negative_infinity", "zeros")] == [1, 2, 1, 2]
    assert (facts["minimum"], facts["maximum"]) == (0.0, 1.0)
    facts = counted(np.array([np.nan, np.inf], np.float32))
    assert (facts["mean"], facts["edges"], facts["counts"]) == (None, [], [])


def test_no_element_one_value_and_the_whole_range_of_float64():
    assert counted(np.zeros((0, 3)))["counts"] == []
    assert counted(np.full((2, 2), 3.5))["edges"] == [3.5, 3.5]
    assert counted(np.array(7))["counts"] == [1]
    facts = counted(np.array([-1.7e308, 0.0, 1.7e308]), bins=2)
    assert facts["counts"] == [1, 2]
    assert facts["std"] is None


def test_integers_of_a_narrow_range_have_a_bin_each():
    facts = counted(np.array([2, 2, 3, 5], np.int8))
    assert (facts["edges"], facts["counts"]) == ([1.5, 2.5, 3.5, 4.5, 5.5], [2, 1, 0, 1])
    assert counted(np.array([True, False, True]))["counts"] == [1, 2]


def test_a_view_is_read_in_pieces():
    pieces = []
    wide = np.broadcast_to(np.arange(4, dtype=np.float32), (100_000, 4))  # 16 bytes that show as 1.6 MB
    facts = histogram(wide, Spec.of(wide.shape, wide.dtype), 4, check_cancelled=lambda: pieces.append(1))
    assert facts["counts"] == [100_000] * 4
    assert len(pieces) >= 6
    strided = np.arange(24.0).reshape(2, 3, 4)[::-1, :, ::2].T
    assert counted(strided)["mean"] == strided.mean()


@pytest.mark.parametrize("bins", [0, -1, 513])
def test_another_number_of_bins_is_refused(bins):
    with pytest.raises(InvalidArgumentError, match=f"bins: from 1 to 512, found {bins}"):
        counted(np.ones(2), bins)
