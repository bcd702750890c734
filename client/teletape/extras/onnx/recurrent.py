"""ONNX's recurrent operators: LSTM, GRU, RNN. A scan over the steps, for each direction."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from teletape._generated.elementwise.math import sigmoid, tanh
from teletape._generated.linalg.products import matmul
from teletape._generated.nn.activations import relu
from teletape.extras.onnx.operators import operator
from teletape.tf.control_flow.folds import scan
from teletape.tf.ops.arrays.create import zeros_like
from teletape.tf.ops.arrays.rearrange import split, stack

_ACTIVATIONS: Final = {"Sigmoid": sigmoid, "Tanh": tanh, "Relu": relu}
_LIMITS: Final = {"activations": tuple(_ACTIVATIONS), "layout": (0,)}
Names = tuple[str, ...]


def _directions(
    x: Any,
    weights: Any,
    recurrence: Any,
    bias: Any,
    states: list[Any],
    direction: str,
    activations: Names,
    functions: int,
    step: Callable[..., Any],
) -> Any:
    """Returns the outputs [steps, directions, batch, hidden], and the last states [directions, batch, hidden].

    Args:
        x: [steps, batch, input].
        weights: [directions, gates · hidden, input].
        recurrence: [directions, gates · hidden, hidden].
        bias: [directions, 2 · gates · hidden], or None.
        states: The first states, [directions, batch, hidden], or None.
        direction: `forward`, `reverse` or `bidirectional`.
        activations: Their names, for one direction after the other.
        functions: The number of activations of one direction.
        step: Computes the next states of the states, a step's input to the gates, the matrix and bias of the
            recurrence, and the activations; the first state is the output.
    """
    numbers = range(2 if direction == "bidirectional" else 1)
    outputs, last = [], []
    for number in numbers:
        matrix, width = recurrence[number], recurrence.shape[-1]
        inputs = matmul(x, weights[number], transpose_b=True)
        of_inputs, of_states = (None, None) if bias is None else split(bias[number], 2)
        inputs = inputs if of_inputs is None else inputs + of_inputs
        nothing = zeros_like(inputs[0][..., :width])
        first = tuple([nothing if state is None else state[number] for state in states])
        own = [_ACTIVATIONS[name] for name in activations[number * functions : (number + 1) * functions]]
        backwards = direction == "reverse" or number == 1

        def body(before: Any, entry: Any, matrix: Any = matrix, of_states: Any = of_states, own: Any = own) -> Any:
            return step(before, entry, matrix, of_states, own)

        rows = scan(body, inputs, first, reverse=backwards)
        outputs.append(rows[0])
        last.append([row[0 if backwards else -1] for row in rows])
    return [stack(outputs, 1), *[stack(list(state)) for state in zip(*last, strict=True)]]


@operator("LSTM", results=3, absent=("lengths", "peepholes"), values={**_LIMITS, "input_forget": (0,)})
def _lstm(
    x: Any,
    weights: Any,
    recurrence: Any,
    bias: Any = None,
    lengths: Any = None,
    hidden: Any = None,
    cell: Any = None,
    peepholes: Any = None,
    *,
    hidden_size: int = 0,
    direction: str = "forward",
    activations: Names = ("Sigmoid", "Tanh", "Tanh") * 2,
    input_forget: int = 0,
    layout: int = 0,
) -> Any:
    def step(before: Any, entry: Any, matrix: Any, of_states: Any, functions: Any) -> Any:
        gate, inner, outer = functions
        h, c = before
        total = entry + matmul(h, matrix, transpose_b=True)
        into, out, forget, fresh = split(total if of_states is None else total + of_states, 4, -1)
        c = gate(forget) * c + gate(into) * inner(fresh)
        return gate(out) * outer(c), c

    return _directions(x, weights, recurrence, bias, [hidden, cell], direction, activations, 3, step)


@operator("GRU", results=2, absent=("lengths",), values=_LIMITS)
def _gru(
    x: Any,
    weights: Any,
    recurrence: Any,
    bias: Any = None,
    lengths: Any = None,
    hidden: Any = None,
    *,
    hidden_size: int = 0,
    direction: str = "forward",
    activations: Names = ("Sigmoid", "Tanh") * 2,
    linear_before_reset: int = 0,
    layout: int = 0,
) -> Any:
    def step(before: Any, entry: Any, matrix: Any, of_states: Any, functions: Any) -> Any:
        gate, inner = functions
        (h,) = before
        width = h.shape[-1]
        parts = split(entry, 3, -1)
        offsets = [0, 0, 0] if of_states is None else split(of_states, 3)
        rows = split(matrix, [width] * 3)
        update, reset = (gate(parts[i] + matmul(h, rows[i], transpose_b=True) + offsets[i]) for i in (0, 1))
        if linear_before_reset:
            fresh = inner(parts[2] + reset * (matmul(h, rows[2], transpose_b=True) + offsets[2]))
        else:
            fresh = inner(parts[2] + matmul(reset * h, rows[2], transpose_b=True) + offsets[2])
        return ((1 - update) * fresh + update * h,)

    return _directions(x, weights, recurrence, bias, [hidden], direction, activations, 2, step)


@operator("RNN", results=2, absent=("lengths",), values=_LIMITS)
def _rnn(
    x: Any,
    weights: Any,
    recurrence: Any,
    bias: Any = None,
    lengths: Any = None,
    hidden: Any = None,
    *,
    hidden_size: int = 0,
    direction: str = "forward",
    activations: Names = ("Tanh", "Tanh"),
    layout: int = 0,
) -> Any:
    def step(before: Any, entry: Any, matrix: Any, of_states: Any, functions: Any) -> Any:
        (h,) = before
        total = entry + matmul(h, matrix, transpose_b=True)
        return (functions[0](total if of_states is None else total + of_states),)

    return _directions(x, weights, recurrence, bias, [hidden], direction, activations, 1, step)
