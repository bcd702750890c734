"""Candidates by their weights: how often they come, and weights that cannot be drawn from."""

import numpy as np
import pytest

import teletape_engine.ops  # noqa: F401  # fills the catalogue
from teletape_engine.catalogue.op import CATALOGUE
from teletape_engine.errors import InvalidArgumentError
from teletape_engine.ops.random import candidates

STATE = np.array([0, 0, 7])


def drawn(weights, count, **attrs):
    return CATALOGUE["philox_unigrams"](STATE, np.array(weights, np.float32), num_sampled=count, **attrs)


def test_classes_come_as_often_as_their_weights_say():
    weights = np.array([0, 1, 2, 3.5, 0.5])
    classes = drawn(weights, 20_000, unique=False)[:-1]
    share = np.bincount(classes, minlength=5) / len(classes)
    np.testing.assert_allclose(share, weights / weights.sum(), atol=0.01)


def test_classes_without_a_weight_are_not_drawn():
    assert sorted(drawn([0, 1, 0, 1, 1], 3, unique=True)[:-1]) == [1, 3, 4]
    with pytest.raises(InvalidArgumentError, match="3 different classes are wanted, and 2 have a weight above zero"):
        drawn([1, 0, 1], 3, unique=True)


@pytest.mark.parametrize("weights", [[0, 0], [1, -1], [1, np.nan], [np.inf, 1]])
def test_weights_that_are_none_are_refused(weights):
    with pytest.raises(InvalidArgumentError, match="finite, none negative"):
        drawn(weights, 1, unique=False)


def test_a_class_that_hardly_ever_comes_is_not_waited_for(monkeypatch):
    monkeypatch.setattr(candidates, "_MOST_DRAWS", 1000)
    with pytest.raises(InvalidArgumentError, match="1000 draws gave 1 different classes of 2"):
        drawn([1, 1e-30], 2, unique=True)
