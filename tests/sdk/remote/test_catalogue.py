"""Every op in every dtype gives through a server the bits, the None and the error that it gives in this process."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import teletape as tf
import teletape_engine.ops  # noqa: F401  # fills the catalogue
from op_laws.harness import Case
from teletape.core.calls.dispatch import call
from teletape.core.sessions.current import use
from teletape.core.sessions.local import LocalSession
from teletape_engine.catalogue.op import CATALOGUE, Op
from teletape_engine.spec import DTYPES, DType

#: Have gradients.
DIFFERENTIABLE = (tf.float16, tf.bfloat16, tf.float32, tf.float64, tf.complex64, tf.complex128)
#: What arrays of numbers in the samples are converted to, one after the other. Strings and truth values stay.
NUMBERS = [dtype for name, dtype in DTYPES.items() if name not in ("string", "bool")]


def observed(op: Op, dtype: DType) -> list[Any]:
    """The results and gradients of the op's first sample in this dtype, as bytes; an error as its class and text."""
    case = Case(op, op.samples()[0], dtype)
    with np.errstate(all="ignore"):
        try:
            inputs = [tf.constant(value) if isinstance(value, np.ndarray) else value for value in case.inputs]
            sources = [value for value in inputs if isinstance(value, tf.Tensor)]
            with tf.GradientTape() as tape:
                tape.watch([source for source in sources if source.dtype in DIFFERENTIABLE])
                result = call(op, inputs, **case.attrs)
            results = result if isinstance(result, tuple) else (result,)
            targets = [each for each in results if each.dtype in DIFFERENTIABLE]
            return [*map(_bits, results), *(_gradients(tape, targets, sources) if targets else [])]
        except (ValueError, TypeError, ArithmeticError, RuntimeError) as error:
            return [type(error).__name__, str(error)]


def _gradients(tape: tf.GradientTape, targets: list[tf.Tensor], sources: list[tf.Tensor]) -> list[Any]:
    try:
        return [_bits(value) for value in tape.gradient(targets, sources)]
    except LookupError as error:
        return [str(error)]


def _bits(value: Any) -> tuple[Any, ...] | None:
    if isinstance(value, tf.IndexedSlices):
        value = tf.convert_to_tensor(value)
    if value is None:
        return None
    array = value.numpy()
    data = array.tolist() if value.dtype is tf.string else np.ascontiguousarray(array).tobytes()
    return value.dtype.name, value.shape.as_list(), data


@pytest.mark.parametrize("name", sorted(CATALOGUE))
def test_an_op_over_http_gives_what_it_gives_in_this_process(name: str, request: pytest.FixtureRequest) -> None:
    op = CATALOGUE[name]
    request.getfixturevalue("remote")
    through_a_server = {dtype.name: observed(op, dtype) for dtype in NUMBERS}
    use(LocalSession())
    in_this_process = {dtype.name: observed(op, dtype) for dtype in NUMBERS}
    for dtype in NUMBERS:
        assert through_a_server[dtype.name] == in_this_process[dtype.name], dtype.name
    assert any(isinstance(row[0], tuple) for row in in_this_process.values()), "refused in every dtype"
