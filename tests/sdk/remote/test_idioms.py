"""The table of docs/laziness.md: how many requests a step takes, from the third on, by what the program reads in it."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from loopback import Loopback, session_on

import teletape as tf
from teletape.core.sessions.current import use
from teletape.core.sessions.local import LocalSession

PAGE = (Path(__file__).resolve().parents[3] / "docs/laziness.md").read_text()
ROWS = {idiom: int(requests) for idiom, requests in re.findall(r"^\| (`.+`.*) \| (\d+) \|$", PAGE, re.M)}


class Step:
    """A training step of a network with six variables, and what programs read in it."""

    def __init__(self) -> None:
        shapes = ((3, 16), (16,), (16, 16), (16,), (16, 1), (1,))
        self.variables = [tf.Variable(tf.random.stateless_normal(shape, (1, i))) for i, shape in enumerate(shapes)]
        self.x = tf.random.stateless_normal((8, 3), (2, 0))
        self.rate, self.number = tf.Variable(0.01), tf.Variable(0)
        self.metrics = [tf.keras.metrics.Mean(name=name) for name in ("loss", "norm", "error")]
        self.best = 1e9
        self.history: dict[str, list[float]] = {"loss": [], "norm": [], "error": []}

    def run(self) -> None:
        w0, b0, w1, b1, w2, b2 = self.variables
        with tf.GradientTape() as tape:
            h = tf.tanh(tf.tanh(self.x @ w0 + b0) @ w1 + b1)
            self.errors = h @ w2 + b2 - 1.0
            self.loss = tf.reduce_mean(self.errors**2)
        self.gradients = tape.gradient(self.loss, self.variables)
        for variable, gradient in zip(self.variables, self.gradients, strict=True):
            variable.assign_sub(self.rate * gradient)
        self.number.assign_add(1)
        self.norm, self.error = tf.linalg.global_norm(self.gradients), tf.reduce_mean(tf.abs(self.errors))
        self.values = {"loss": self.loss, "norm": self.norm, "error": self.error}

    def print_loss(self) -> Any:
        return f"{self.loss.numpy():.3f}"

    def gradients_one_by_one(self) -> Any:
        return [gradient.numpy() for gradient in self.gradients]

    def gradients_and_loss(self) -> Any:
        return np.concatenate([gradient.numpy().ravel() for gradient in self.gradients]), float(self.loss)

    def joined_gradients_and_loss(self) -> Any:
        joined = tf.concat([tf.reshape(gradient, [-1]) for gradient in self.gradients], 0)
        return joined.numpy(), float(self.loss)

    def norms(self) -> Any:
        return [float(tf.norm(gradient)) for gradient in self.gradients]

    def variables_one_by_one(self) -> Any:
        return [variable.numpy() for variable in self.variables]

    def best_loss(self) -> Any:
        if self.loss < self.best:
            self.best = float(self.loss)
        return self.best

    def checks(self) -> Any:
        if tf.math.is_nan(self.loss) or self.norm > 100.0:
            return None
        return float(self.loss)

    def history_of_three(self) -> Any:
        for name in self.history:
            self.history[name].append(float(self.values[name]))
        return [numbers[-1] for numbers in self.history.values()]

    def text_of_three(self) -> Any:
        return f"{self.loss:.3f} {self.norm:.3f} {self.error:.3f}"

    def printed_dict(self) -> Any:
        return str(self.values)

    def array_of_three(self) -> Any:
        return np.array([self.loss, self.norm, self.error])

    def nested(self) -> Any:
        return tf.nest.map_structure(lambda tensor: tensor.numpy(), self.values)

    def results_of_metrics(self) -> Any:
        for metric, value in zip(self.metrics, self.values.values(), strict=True):
            metric.update_state(value)
        return [float(metric.result()) for metric in self.metrics]

    def rate_and_number(self) -> Any:
        return float(self.rate), int(self.number), float(self.loss)

    def both_results(self) -> Any:
        w = self.variables[2]
        return [result.numpy() for result in tf.linalg.eigh(w + tf.transpose(w))]

    def rows(self) -> Any:
        return [float(row) for row in self.errors[:, 0]]

    def fetched(self) -> Any:
        return tf.fetch(self.loss, self.gradients)


IDIOMS: dict[str, Callable[[Step], Any]] = {
    "`print(loss.numpy())`, `float(loss)`": Step.print_loss,
    "`[g.numpy() for g in gradients]`": Step.gradients_one_by_one,
    "`np.concatenate([g.numpy().ravel() for g in gradients])`, and the loss": Step.gradients_and_loss,
    "`tf.concat([tf.reshape(g, [-1]) for g in gradients], 0).numpy()`, and the loss": Step.joined_gradients_and_loss,
    "`[float(tf.norm(g)) for g in gradients]`": Step.norms,
    "`[v.numpy() for v in model.variables]`": Step.variables_one_by_one,
    "`if loss < best: best = float(loss)`": Step.best_loss,
    "`if tf.math.is_nan(loss)`, `if norm > 100`, `float(loss)`": Step.checks,
    "`history[name].append(float(values[name]))` of three": Step.history_of_three,
    '`f"{loss:.3f} {norm:.3f} {error:.3f}"`': Step.text_of_three,
    '`print({"loss": loss, "norm": norm, "error": error})`': Step.printed_dict,
    "`np.array([loss, norm, error])`": Step.array_of_three,
    "`tf.nest.map_structure(lambda t: t.numpy(), values)`": Step.nested,
    "`[float(m.result()) for m in metrics]` of Keras": Step.results_of_metrics,
    "`float(optimizer.learning_rate)`, `int(optimizer.iterations)`, the loss": Step.rate_and_number,
    "`values, vectors = tf.linalg.eigh(m)`, both read": Step.both_results,
    "`for row in tensor: float(row)`": Step.rows,
    "`tf.fetch(loss, gradients)`": Step.fetched,
}


def test_the_table_has_every_idiom() -> None:
    assert list(ROWS) == list(IDIOMS)


@pytest.mark.parametrize("idiom", IDIOMS)
def test_an_idiom_takes_what_the_table_says(idiom: str) -> None:
    session = use(session_on(Loopback()))
    step, requests, values = Step(), [], []
    for _ in range(6):
        step.run()
        before = session.requests
        values.append(IDIOMS[idiom](step))
        requests.append(session.requests - before)
    use(LocalSession())
    session.close()
    assert max(requests[2:]) == ROWS[idiom]
    local = Step()
    for value in values:
        local.run()
        tf.nest.map_structure(_agree, value, IDIOMS[idiom](local))


def _agree(value: Any, expected: Any) -> None:
    if isinstance(value, str):
        assert value == expected
    else:
        np.testing.assert_allclose(value, expected, rtol=1e-3, atol=1e-5)
