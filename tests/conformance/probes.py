"""What the programs look with: derivatives of a function, the message of an error, the lines that were logged."""

from __future__ import annotations

import contextlib
import logging
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

# Where an error came from, as TensorFlow's kernels add it; the message is between them.
_KERNEL = re.compile(r"^\{\{function_node .*?\}\} ")
# What Teletape adds to TensorFlow's message about a word that is almost an allowed one.
_QUESTION = re.compile(r": did you mean '[^\n]*'\?$")
_OP = re.compile(r"(\n\t; NodeDef: .*)? \[Op:\w+\]( name: \S*)?$", re.DOTALL)


def message(call: Callable[[], Any]) -> dict[str, str]:
    """The type name and the text of the error that ``call`` raises, without a question about another word."""
    try:
        value = call()
    except Exception as error:
        return {"error": type(error).__name__, "text": _QUESTION.sub("", _OP.sub("", _KERNEL.sub("", str(error))))}
    return {"returned": type(value).__name__}


def op_named(call: Callable[[], Any]) -> str:
    """The op type in the message of the error that ``call`` raises, as in ``… [Op:MatMul]``; "none" without one."""
    try:
        call()
    except Exception as error:
        named = re.search(r" \[Op:(\w+)\]", str(error))
        return named[1] if named else "none"
    return "nothing was raised"


def raises(call: Callable[[], Any], containing: str = "") -> str:
    """The type name of the error that ``call`` raises, where its text is not part of the contract.

    ``containing`` is the piece of the text that programs rely on; a text without it is given back whole.
    """
    answer = message(call)
    if "error" not in answer:
        return f"nothing was raised, it returned {answer['returned']}"
    if containing not in answer["text"]:
        return f"{answer['error']} without {containing!r}: {answer['text']}"
    return f"{answer['error']}: … {containing} …" if containing else answer["error"]


@contextlib.contextmanager
def logged(tf: Any) -> Iterator[list[str]]:
    """The messages that ``tf``'s logger was given inside the block."""
    lines: list[str] = []

    class Keep(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            lines.append(f"{record.levelname}: {record.getMessage()}")

    keep = Keep()
    tf.get_logger().addHandler(keep)
    try:
        yield lines
    finally:
        tf.get_logger().removeHandler(keep)


def derivatives(tf: Any, function: Callable[..., Any], *points: Any) -> dict[str, Any]:
    """``y`` = function(*points), the gradient ``g`` of a weighted sum of y, and ``h``, that of a weighted sum of g.

    The weights differ from element to element, so that a gradient put in the wrong place, or summed over the wrong
    axis, shows. ``h`` is missing where no ``g`` exists. The points are watched; lists and floats become constants.
    """
    sources = [tf.constant(point) if isinstance(point, (np.ndarray, list, float)) else point for point in points]
    with tf.GradientTape() as outer:
        outer.watch(sources)
        with tf.GradientTape() as inner:
            inner.watch(sources)
            y = function(*sources)
            total = weighted_sum(tf, [y])
        g = inner.gradient(total, sources)
        curvature = weighted_sum(tf, [part for part in g if part is not None])
    result = {"y": y, "g": g}
    if curvature is not None:
        result["h"] = outer.gradient(curvature, sources)
    return result


def gradients(tf: Any, function: Callable[..., Any], *points: Any) -> list[Any]:
    """``function(*points)``, and the gradient of its weighted sum by each point; lists and floats become constants."""
    sources = [tf.constant(point) if isinstance(point, (np.ndarray, list, float)) else point for point in points]
    with tf.GradientTape() as tape:
        tape.watch(sources)
        y = function(*sources)
        total = weighted_sum(tf, [y])
    return [y, tape.gradient(total, sources)]


def weighted_sum(tf: Any, values: Sequence[Any]) -> Any:
    """A real scalar: every element of every value, also in lists, times a weight of its own; None of no values."""
    total = None
    for value in values:
        if isinstance(value, (list, tuple)):
            part = weighted_sum(tf, value)
        else:
            value = tf.convert_to_tensor(value)
            count = int(np.prod(value.shape.as_list(), dtype=np.int64))
            weights = np.cos(1.3 * np.arange(count) + 0.6).reshape(value.shape.as_list()) + 0.4
            if value.dtype.is_complex:
                real, imaginary = tf.math.real(value), tf.math.imag(value)
                part = tf.reduce_sum(real * weights) + tf.reduce_sum(imaginary * (0.3 - weights))
            else:
                part = tf.reduce_sum(value * weights)
        total = part if total is None else total + part
    return total


def elements(dataset: Any) -> list[Any]:
    """The elements of a dataset as arrays, strings as texts."""
    return [_listed(element) for element in dataset.as_numpy_iterator()]


def _listed(element: Any) -> Any:
    if isinstance(element, bytes):
        return repr(element)
    if getattr(element, "dtype", None) == "O":
        return repr(element.tolist())
    if isinstance(element, dict):
        return {key: _listed(element[key]) for key in element}
    if isinstance(element, tuple):
        return [_listed(part) for part in element]
    return element
