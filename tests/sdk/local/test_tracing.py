"""Functions that cannot be traced: they run op by op, whatever their `except` clauses catch."""

from typing import Any

import numpy as np
import pytest

import teletape as tf
from teletape.core.functions.trace import NotTraceable, trace
from teletape.core.sessions.current import current
from teletape_engine.spec import Spec


def test_an_except_clause_of_the_program_cannot_hide_that_a_value_was_read() -> None:
    reached: list[str] = []

    @tf.function
    def careful(x: Any) -> Any:
        try:
            number = x.numpy()
        except Exception:
            reached.append("except")
            return x * 0.0
        finally:
            reached.append("finally")
        return x * number

    assert careful(tf.constant(3.0)).numpy() == 9.0
    assert reached == ["except", "finally", "finally"]  # the trace, and then the run op by op
    assert careful(tf.constant(4.0)).numpy() == 16.0


def test_an_except_clause_around_a_loop_cannot_hide_it_either() -> None:
    @tf.function
    def careful(x: Any) -> Any:
        try:
            return tf.while_loop(lambda y: float(y) < 10.0, lambda y: (y * 2.0,), [x])[0]
        except Exception:
            return x * 0.0

    assert careful(tf.constant(3.0)).numpy() == 12.0


def test_a_value_that_is_read_in_vain_stops_an_inner_function_too() -> None:
    @tf.function
    def inner(x: Any) -> Any:
        try:
            return x * float(x)
        except Exception:
            return x

    @tf.function
    def outer(x: Any) -> Any:
        return inner(x) + 1.0

    assert outer(tf.constant(3.0)).numpy() == 10.0


def test_what_is_not_traceable_is_an_exception_and_says_why() -> None:
    with pytest.raises(NotTraceable, match=r"reads a value; use tf\.cond") as caught:
        trace(lambda x: float(x), [Spec.of((), np.dtype(np.float32))])
    assert isinstance(caught.value, Exception)
    assert current().not_traceable is None


def test_a_jacobian_row_by_row_inside_a_function_is_no_failure_of_the_function() -> None:
    """The SDK itself handles that a gradient function reads values: the trace around it goes on or falls back."""

    @tf.custom_gradient
    def cube(x: Any) -> Any:
        def grad(upstream: Any) -> Any:
            return upstream * 3.0 * x.numpy() ** 2

        return x**3, grad

    @tf.function
    def jacobian(x: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = cube(x)
        return tape.jacobian(y, x)

    assert np.allclose(jacobian(tf.constant([1.0, 2.0])), np.diag([3.0, 12.0]))


def test_a_not_implemented_error_of_numpy_stays_one() -> None:
    def unheard_of(x: Any) -> Any:
        raise NotImplementedError("of a library")

    @tf.function
    def body(x: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.while_loop(lambda y: y < 1.0, lambda y: (unheard_of(y),), [x])[0]
        return tape.gradient(y, x)

    with pytest.raises(NotImplementedError, match="of a library"):
        body(tf.constant(0.5))


def lines_of(error: BaseException) -> str:
    """What a message says after `in user code:`."""
    return str(error).partition("\n\nin user code:\n\n")[2]


def test_a_variable_of_a_later_trace_is_refused_with_its_line() -> None:
    def layer(x: Any) -> Any:
        return tf.Variable(1.0) * x

    @tf.function
    def model(x: Any) -> Any:
        return layer(layer(x))

    with pytest.raises(ValueError, match=r"tf\.function only supports singleton tf\.Variables") as caught:
        model(tf.constant(1.0))
    assert [line.strip() for line in lines_of(caught.value).splitlines()[1::2]] == [
        "return layer(layer(x))",
        "return tf.Variable(1.0) * x",
    ]


class Own(Exception):
    pass


@pytest.mark.parametrize("kind", [ValueError, ZeroDivisionError, NotImplementedError, Own])
def test_an_exception_of_a_traced_function_lists_the_lines_that_lead_to_it(kind: type[Exception]) -> None:
    def inner(x: Any) -> Any:
        raise kind("of mine")

    @tf.function
    def outer(x: Any) -> Any:
        return tf.function(inner)(x)

    with pytest.raises(kind, match="of mine") as caught:
        outer(tf.constant(1.0))
    assert str(caught.value).count("in user code") == 1
    assert [line.strip() for line in lines_of(caught.value).splitlines()[1::2]] == [
        "return tf.function(inner)(x)",
        'raise kind("of mine")',
    ]


NAMES = {
    "of Python": (NameError, lambda x: x + undefined),  # type: ignore[name-defined]  # noqa: F821
    "of a module": (AttributeError, lambda x: tf.nn.reluu(x)),  # type: ignore[attr-defined]
    "of an object": (AttributeError, lambda x: x.reluu),
}


@pytest.mark.parametrize("wrong", NAMES)
def test_a_name_that_there_is_not_is_refused_with_its_line_in_functions_and_datasets(wrong: str) -> None:
    kind, function = NAMES[wrong]
    dataset = tf.data.Dataset.from_tensors(1.0)
    for call in (lambda: tf.function(function)(tf.constant(1.0)), lambda: dataset.map(function)):
        with pytest.raises(kind) as caught:
            call()
        assert len(lines_of(caught.value).splitlines()) == 2
        assert "lambda x: x" in lines_of(caught.value) or "lambda x: tf" in lines_of(caught.value)


def test_a_variable_without_a_value_in_a_branch_is_refused_with_the_line_of_the_condition() -> None:
    @tf.function
    def choose(x: Any) -> Any:
        if x > 0.0:
            y = x
        return y

    with pytest.raises(ValueError, match="'y' must also be initialized in the else branch") as caught:
        choose(tf.constant(1.0))
    assert lines_of(caught.value).splitlines()[-1].strip() == "if x > 0.0:"


def test_an_exception_with_a_text_of_its_own_keeps_it() -> None:
    def missing(x: Any) -> Any:
        return {}["no such key"]

    with pytest.raises(KeyError) as caught:
        tf.function(missing)(tf.constant(1.0))
    assert caught.value.args == ("no such key",)
