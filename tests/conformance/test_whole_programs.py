"""The examples run to their end, inside the process and over HTTP: what they learn, what it costs, their gradients.

results.json holds what the same files gave under TensorFlow; tests/whole_programs/run.py says how it was recorded.
"""

import functools
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import teletape as tf
from conformance.whole_programs.run import EXAMPLES, NAMES, RESULTS

RECORDED: dict[str, dict[str, float]] = json.loads(RESULTS.read_text(encoding="utf-8"))
RUN = Path(__file__).parent / "whole_programs" / "run.py"
SECONDS = 90.0  # the longest takes two; a machine with others at work may be forty times slower


class Run(NamedTuple):
    results: dict[str, float]
    requests: int
    seconds: float


@functools.cache
def run(name: str, url: str | None) -> Run:
    """The example in a process of its own."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith("TELETAPE_")}
    environment["OPENBLAS_NUM_THREADS"] = "1"  # so small matrices gain nothing from threads that wait for each other
    done = subprocess.run(
        [sys.executable, "-P", "-W", "error::RuntimeWarning", str(RUN), name],
        env=environment | ({"TELETAPE_URL": url, "no_proxy": "127.0.0.1"} if url else {}),
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return Run(**json.loads(done.stdout.splitlines()[-1]))


each_example = pytest.mark.parametrize("name", NAMES)


def test_every_example_in_python_is_run_here_or_by_the_demo():
    assert sorted(NAMES) == sorted({path.stem for path in EXAMPLES.glob("*.py")} - {"digits"}) == sorted(RECORDED)
    page = (EXAMPLES.parent / "docs" / "examples.md").read_text(encoding="utf-8")
    assert [path.name for path in EXAMPLES.iterdir() if path.is_file() and f"`{path.name}`" not in page] == []


# -------------------------------------------------------------------------------------------- what they learn, and cost
LEARNT: dict[str, dict[str, tuple[float, float]]] = {
    "regression": {
        "linear loss": (0.0, 0.0105),  # the noise's variance is 0.01
        "largest distance from the exact solution": (0.0, 1e-9),
        "accuracy": (0.94, 1.0),
    },
    "convnet": {"accuracy": (0.95, 1.0), "last loss": (0.0, 0.3)},
    "lstm": {"test error": (0.0, 0.02)},
    "transformer": {"right digits": (0.97, 1.0)},
    "pinn": {"distance from sin": (0.0, 0.1), "last loss": (0.0, 0.03)},
    "wgan_gp": {"distance after": (0.0, 0.55)},
    "maml": {"error after a step from the learnt weights": (0.0, 0.5)},
    "newton_cg": {
        "rosenbrock distance": (0.0, 1e-7),
        "rosenbrock gradient": (0.0, 1e-8),
        "rosenbrock iterations": (1, 99),
        "regression gradient": (0.0, 1e-8),
        "regression iterations": (1, 12),
        "difference of the two products": (0.0, 1e-12),
    },
    "gaussian_process": {
        "distance of the gradient from the closed form": (0.0, 1e-10),
        "likelihood after": (5.0, 20.0),
        "learnt noise": (0.07, 0.15),
        "largest error of the mean": (0.0, 0.3),
    },
}


@each_example
def test_it_learns(name):
    results = run(name, None).results
    for what, (least, most) in LEARNT[name].items():
        assert least <= results[what] <= most, f"{what}: {results[what]:g}, expected {least:g} to {most:g}"


@each_example
def test_it_gives_what_it_gave_under_tensorflow(name):
    results = run(name, None).results
    assert list(results) == list(RECORDED[name])
    for what, expected in RECORDED[name].items():
        # Before training the two agree; training in float32 drifts apart by what sums in another order amount to.
        close = {"rel": 1e-5} if what.startswith("first") else {"rel": 0.05, "abs": 0.01}
        assert results[what] == pytest.approx(expected, **close), what


# Requests in addition to one a step: attaching, reading the results, and what the last batches carry.
ONCE = 20
#: Newton's method reads every product with the Hessian, since NumPy decides what comes next.
READS = {"newton_cg": 1500}


@each_example
def test_over_http_it_gives_the_same_in_about_one_request_a_step(name, server_url):
    here, there = run(name, None), run(name, server_url)
    assert there.results == pytest.approx(here.results, rel=0.02, abs=1e-3)
    assert there.requests <= READS.get(name, here.results.get("steps", 0) + ONCE)
    assert here.requests == 0


@pytest.mark.parametrize("name", ["lstm", "maml"])  # a function's steps, and tapes within tapes
def test_a_session_of_four_mebibytes_is_enough_for_hundreds_of_steps(name):
    from serving import Server
    from teletape_server.settings import Settings

    with Server(Settings(memory_limit=4 << 20)).running() as server:
        assert run(name, server.url).results == pytest.approx(run(name, None).results, rel=0.02, abs=1e-3)


# ------------------------------------------------------------------------------------------------------------ gradients
def example(name: str) -> Any:
    """The example's module."""
    import importlib.util

    spec = importlib.util.spec_from_file_location(f"example_{name}", EXAMPLES / f"{name}.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


Case = tuple[Callable[[], Any], list[Any]]  # a loss and the variables that it hangs on


def of_regression(module: Any, random: np.random.Generator) -> Case:
    w, b = tf.Variable(random.normal(size=3)), tf.Variable(0.3, dtype=tf.float64)
    x, y = tf.constant(random.normal(size=(8, 3))), tf.constant(random.uniform(size=8))
    return lambda: module.linear_loss(w, b, x, y) + module.logistic_loss(w, b, x, y), [w, b]


def of_convnet(module: Any, random: np.random.Generator) -> Case:
    network = module.Network(random, channels=(2, 3), dtype=np.float64)
    images, labels = tf.constant(random.normal(size=(3, 8, 8, 1))), tf.constant([1, 0, 9])
    return lambda: module.loss(network, images, labels), network.trainable_variables


def of_lstm(module: Any, random: np.random.Generator) -> Case:
    model = module.LSTM(random, hidden=3, dtype=np.float64)
    x, y = (tf.constant(sequence.astype(np.float64)) for sequence in module.sequences(random, 4))
    return lambda: module.loss(model, x, y), model.trainable_variables


def of_transformer(module: Any, random: np.random.Generator) -> Case:
    model = module.Block(random, width=8, dtype=np.float64)
    tokens, answers = module.lists(random, 3)
    return lambda: module.loss(model, tokens, answers), model.trainable_variables


def of_pinn(module: Any, random: np.random.Generator) -> Case:
    u = module.Network(random)
    x, ends = tf.constant(random.uniform(0, 3, size=(5, 1))), tf.constant([[0.0], [1.5]], tf.float64)
    values = tf.constant([[0.0], [1.0]], tf.float64)
    return lambda: module.loss(u, x, ends, values), u.trainable_variables


def of_wgan_gp(module: Any, random: np.random.Generator) -> Case:
    critic = module.Perceptron(random, 2, 1, hidden=5, dtype=np.float64)
    real, fake = (tf.constant(random.normal(size=(6, 2))) for _ in range(2))
    mix = tf.constant(random.uniform(size=(6, 1)))
    # The bias after the last layer cancels.
    return lambda: module.critic_loss(critic, real, fake, mix), [*critic.weights, *critic.biases[:-1]]


def of_maml(module: Any, random: np.random.Generator) -> Case:
    weights = module.weights(random, np.float64)
    tasks = [module.task(random, np.float64) for _ in range(2)]
    return lambda: module.meta_loss(tasks, weights), weights


def of_newton_cg(module: Any, random: np.random.Generator) -> Case:
    w = tf.Variable(random.normal(size=(2, 3)))
    loss = module.regression(random)
    return lambda: loss(w), [w]


def of_gaussian_process(module: Any, random: np.random.Generator) -> Case:
    x, y = (tf.constant(random.normal(size=6)) for _ in range(2))
    theta = [tf.Variable(item, dtype=tf.float64) for item in (0.2, -0.3, -1.0)]
    return lambda: module.log_likelihood(x, y, theta), theta


@each_example
def test_its_gradient_is_the_slope_of_its_loss(name):
    random = np.random.default_rng(1)
    loss, variables = globals()[f"of_{name}"](example(name), random)
    with tf.GradientTape() as tape:
        value = loss()
    gradients = [tf.convert_to_tensor(gradient).numpy() for gradient in tape.gradient(value, variables)]
    here, step = [variable.numpy() for variable in variables], 1e-5
    assert any(np.abs(gradient).max() > 1e-3 for gradient in gradients)
    for _ in range(4):
        along = [random.normal(size=item.shape) for item in here]
        values = []
        for sign in (1, -1):
            for variable, at, way in zip(variables, here, along, strict=True):
                variable.assign(at + sign * step * way)
            values.append(float(loss()))
        slope = sum(np.vdot(gradient, way) for gradient, way in zip(gradients, along, strict=True))
        assert slope == pytest.approx((values[0] - values[1]) / (2 * step), rel=1e-5, abs=1e-7)


@pytest.mark.parametrize("product", ["reverse_over_reverse", "forward_over_reverse"])
def test_a_product_with_the_hessian_is_the_slope_of_the_gradient(product):
    module, random = example("newton_cg"), np.random.default_rng(1)
    x, way, step = tf.Variable(random.normal(size=6)), random.normal(size=6), 1e-6
    here, result = x.numpy(), getattr(module, product)(module.rosenbrock, x, way)
    slopes = []
    for sign in (1, -1):
        x.assign(here + sign * step * way)
        slopes.append(module.value_and_gradient(module.rosenbrock, x)[1])
    np.testing.assert_allclose(result, (slopes[0] - slopes[1]) / (2 * step), rtol=1e-6, atol=1e-5)
