"""Call sites: the nearest frame outside Teletape, with a path relative to the working directory."""

import importlib
import sys
import threading
from functools import partial
from pathlib import Path

import pytest

import teletape as tf
from teletape.core.program import call_site
from teletape.core.sessions.current import use
from teletape.core.sessions.local import LocalSession


@pytest.fixture(autouse=True)
def session():
    return use(LocalSession())


def here(up=0):
    """The line that calls this."""
    return sys._getframe(1).f_lineno + up


def test_inside_a_layer_the_line_is_that_of_the_call():
    layer = tf.keras.layers.Dense(2, activation="relu")
    x = tf.constant([[1.0, 2.0]])
    with tf.GradientTape(persistent=True) as tape:
        y, line = layer(x), here()
    explanation = tape.explain(y, layer.trainable_variables[0])
    assert {step.where for step in explanation.path} == {
        f"tests/sdk/local/test_call_site.py:{line}, in test_inside_a_layer_the_line_is_that_of_the_call"
    }


INSTALLED = """
import teletape as tf

def half(x):
    return tf.round(x)

explained = []

def main():
    x = tf.Variable(2.0)
    with tf.GradientTape() as tape:
        y = half(x)
    explained.append(tape.explain(y, x).where)
"""


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """A module of a package as an installer leaves it."""
    folder = tmp_path / "site-packages"
    folder.mkdir()
    (folder / "installed_for_this.py").write_text(INSTALLED)
    monkeypatch.syspath_prepend(str(folder))
    yield importlib.import_module("installed_for_this")
    del sys.modules["installed_for_this"]


def test_inside_an_installed_package_the_line_is_that_of_the_call(installed):
    x = tf.Variable(2.0)
    with tf.GradientTape() as tape:
        y, line = installed.half(x), here()
    assert tape.explain(y, x).where.startswith(f"tests/sdk/local/test_call_site.py:{line}, ")


def test_of_an_installed_program_it_is_its_own_line(installed):
    thread = threading.Thread(target=installed.main)  # no frame of this file is on its stack
    thread.start()
    thread.join()
    assert installed.explained[0].endswith("installed_for_this.py:5, in half")


def test_of_an_expression_of_several_lines_the_ops_own():
    x = tf.Variable(2.0)
    with tf.GradientTape() as tape:
        first = here(2)
        y = (
            tf.round(x)
            + 1.0
        )  # fmt: skip
    explanation = tape.explain(y, x)
    assert explanation.where.startswith(f"tests/sdk/local/test_call_site.py:{first}, ")


def test_a_lambda_and_a_comprehension():
    x = tf.Variable(2.0)
    with tf.GradientTape() as tape:
        f, line = (lambda v: tf.floor(v)), here()
        y = [f(item) for item in [x, x]]
    assert tape.explain(y[1], x).where == f"tests/sdk/local/test_call_site.py:{line}, in <lambda>"


def test_other_places(tmp_path):
    code = compile("\n\ny = tf.round(x)", tmp_path / "elsewhere.py", "exec")
    x = tf.Variable(2.0)
    names = {"tf": tf, "x": x}
    with tf.GradientTape() as tape:
        exec(code, names)  # noqa: S102  # a file that is not below the working directory
    assert tape.explain(names["y"], x).where == f"{tmp_path / 'elsewhere.py'}:3, in <module>"
    assert call_site.shown_call_site("train.js:7") == "train.js:7"
    assert call_site.shown_call_site(None) is None
    assert call_site.call_site_text(None) == "an unknown line (TELETAPE_WHERE=0)"
    assert Path(call_site.call_site_text(call_site.caller()).split(":")[0]).name  # whatever calls a test


# ------------------------------------------------------------------------------------------------ what was not called
W = tf.Variable(3.0)


class Model:
    def __init__(self, weight):
        self.weights = {"kernel": [weight]}

    def __call__(self):
        return self.weights["kernel"][0] * 2.0

    def apply(self):
        return self()


def with_default(value=W):
    return value * 2.0


def with_argument(value):
    return value * 2.0


def with_global():
    return W * 2.0


@pytest.mark.parametrize(
    "branch", [with_default, partial(with_argument, W), partial(with_argument, value=W), with_global]
)
def test_a_branch_that_was_not_taken_is_known_by_what_it_holds(branch):
    use(W.session)
    z = tf.Variable(1.0)
    with tf.GradientTape() as tape:
        y = tf.cond(tf.constant(True), lambda: z * 1.0, branch)
    assert tape.explain(y, W).code == "untaken_branch"
    assert tape.explain(y, z).code == "connected"


def test_the_method_of_an_object():
    x, z = tf.Variable(3.0), tf.Variable(1.0)
    with tf.GradientTape() as tape:
        y = tf.cond(tf.constant(False), Model(x).apply, lambda: z * 1.0)
    assert tape.explain(y, x).code == "untaken_branch"


def test_the_body_of_a_loop_without_a_iteration():
    x, z = tf.Variable(3.0), tf.Variable(1.0)

    def body(i, v):
        return i + 1, v * x

    with tf.GradientTape() as tape:
        _, y = tf.while_loop(lambda i, v: i < 0, body, [tf.constant(0), z * 1.0])
    assert tape.explain(y, x).code == "no_iteration"
    assert tape.explain(y, z).code == "connected"
