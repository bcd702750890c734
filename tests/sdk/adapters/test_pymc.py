"""PyMC's sampler on a density whose gradient Teletape computes."""

from __future__ import annotations

import numpy as np
import pytest
from ways import Formula, Way

import teletape as tf

pymc = pytest.importorskip("pymc", reason="PyMC is not installed (make adapters)")

from teletape.adapters.pytensor import Function  # noqa: E402  # PyTensor may be absent

#: ArviZ's, of its next version, and PyTensor's, that it finds no BLAS for its C code.
pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::UserWarning")
A = np.stack([np.ones(20), np.linspace(-1.0, 1.0, 20)], 1)
Y = A @ [0.5, -1.5] + 0.3 * np.random.default_rng(3).normal(size=20)
LIKELIHOOD = Formula(
    lambda theta, a, y: -0.5 * tf.reduce_sum((y - tf.linalg.matvec(a, theta)) ** 2) / 0.09,
    "density = -0.5 * sum((y - a @ theta)**2) / 0.09",
    {"theta": [2], "a": [20, 2], "y": [20]},
)


@pytest.mark.timeout(600)
def test_the_sampler_finds_the_posterior_of_a_line(way: Way) -> None:
    density = Function(way.function(LIKELIHOOD))
    with pymc.Model():
        theta = pymc.Normal("theta", sigma=10.0, shape=2)
        pymc.Potential("likelihood", density(theta, A, Y))
        trace = pymc.sample(500, tune=300, chains=2, cores=1, random_seed=1, progressbar=False)
    covariance = np.linalg.inv(A.T @ A / 0.09 + np.eye(2) / 100)
    draws = trace.posterior["theta"].values.reshape(-1, 2)
    np.testing.assert_allclose(draws.mean(0), covariance @ (A.T @ Y / 0.09), atol=0.02)
    np.testing.assert_allclose(np.cov(draws.T), covariance, atol=0.004)
