"""AutoGraph: what a converted function costs on a server, and what a program sees of the conversion."""

import tempfile
import traceback
from collections.abc import Callable
from pathlib import Path
from types import FunctionType
from typing import Any

import pytest

import teletape as tf
from teletape.core.program import logs
from teletape.core.sessions.current import use
from teletape.core.sessions.local import LocalSession


@pytest.fixture
def warnings(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What is logged as a warning."""
    results: list[str] = []
    monkeypatch.setattr(logs.get_logger(), "warning", lambda text, *args: results.append(text % args if args else text))
    return results


@tf.function
def root(a: Any) -> Any:
    """The square root by Newton's method."""
    x = a
    for _ in tf.range(50):
        following = 0.5 * (x + a / x)
        if tf.abs(following - x) < 1e-6:
            break
        x = following
    return x


@tf.function
def step(w: tf.Variable, rate: Any) -> Any:
    """A step of gradient descent with a loop and a condition under its tape."""
    with tf.GradientTape() as tape:
        y = w * 1.0
        while y < 10.0:
            y = y * y
        loss = y if y > 20.0 else 2.0 * y
    w.assign_sub(rate * tape.gradient(loss, w))
    return loss


def test_a_loop_under_a_tape_is_one_command_that_answers_its_decisions(remote: Any, warnings: list[str]) -> None:
    a = tf.Variable(2.0)
    with tf.GradientTape() as tape:
        y = root(a)
    gradient = tape.gradient(y, a)
    tf.sync()
    before = remote.requests
    for number in range(2, 12):
        a.assign(float(number))
        with tf.GradientTape() as tape:
            y = root(a)
        gradient = tape.gradient(y, a)
        assert float(y) == pytest.approx(number**0.5, rel=1e-5)
        assert float(gradient) == pytest.approx(0.5 / number**0.5, rel=1e-3)
    assert remote.requests - before <= 30  # a round: what the loop decided, and two reads
    assert warnings == []


def test_steps_with_a_tape_around_a_loop_are_sent_together(remote: Any, warnings: list[str]) -> None:
    w = tf.Variable(1.5)
    losses = [step(w, tf.constant(0.00001)) for _ in range(10)]
    tf.sync()
    before = remote.requests
    over_http = [float(loss) for loss in losses]
    assert remote.requests - before <= len(losses)
    use(LocalSession())
    w = tf.Variable(1.5)
    assert over_http == pytest.approx([float(step(w, tf.constant(0.00001))) for _ in range(10)])
    assert warnings == []


# ------------------------------------------------------------------------------------------------------ what is shown
@tf.function
def multiplied(x: Any) -> Any:
    if tf.reduce_sum(x) > 0.0:
        for _ in tf.range(3):
            x = tf.matmul(x, tf.ones([5, 5]))  # the line that fails
    return x


def entries_of(call: Callable[[], Any]) -> list[traceback.FrameSummary]:
    with pytest.raises((ValueError, TypeError)) as caught:
        call()
    return list(traceback.extract_tb(caught.value.__traceback__))


def test_a_traceback_shows_the_lines_of_the_source() -> None:
    before = set(Path(tempfile.gettempdir()).glob("*autograph*"))
    entries = entries_of(lambda: multiplied(tf.ones([2, 2])))
    own = [entry for entry in entries if entry.filename == __file__]
    assert own[-1].line is not None
    assert "# the line that fails" in own[-1].line
    assert {entry.name for entry in own if entry.line and "tf.range" in entry.line} == {"multiplied"}
    assert set(Path(tempfile.gettempdir()).glob("*autograph*")) == before


def test_the_call_site_of_a_converted_op_is_its_line() -> None:
    @tf.function
    def checked(x: Any) -> Any:
        while x < 10.0:
            x = x * 2.0
            tf.debugging.assert_less(x, 9.0)
        return x

    with pytest.raises(tf.errors.InvalidArgumentError) as caught:
        checked(tf.constant(1.0)).numpy()
    assert "ag__" not in str(caught.value)
    assert "test_autograph.py" in "".join(traceback.format_exception(caught.value))


def test_code_without_a_source_runs_op_by_op(warnings: list[str]) -> None:
    space: dict[str, Any] = {"tf": tf}
    code = compile("def f(x):\n    if x > 0.0:\n        return x\n    return -x\n", "<string>", "exec")
    FunctionType(code, space)()
    f = tf.function(space["f"])
    assert [float(f(tf.constant(value))) for value in (2.0, -3.0)] == [2.0, 3.0]
    (text,) = warnings
    assert "runs op by op" in text
    with pytest.raises(ValueError, match="converting"):
        tf.autograph.to_code(space["f"])


def test_the_converted_code_can_be_read() -> None:
    code = tf.autograph.to_code(root.python_function)
    assert code.startswith("def tf__root(a")
    assert "ag__.for_stmt" in code
    assert "ag__.if_stmt" in code


def test_functions_of_one_code_with_other_closures_are_converted_apart() -> None:
    def clipped_at(limit: float) -> Any:
        @tf.function
        def clipped(x: Any) -> Any:
            if x > limit:
                return tf.constant(limit)
            return x

        return clipped

    assert [float(clipped_at(limit)(tf.constant(5.0))) for limit in (1.0, 3.0, 9.0)] == [1.0, 3.0, 5.0]
