"""Keras's `rnn`, which runs a recurrent layer's cell over time steps, as one command: a scan."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

from teletape._generated.shapes.cast import cast
from teletape._generated.shapes.shape import expand_dims, transpose
from teletape.core.calls.dispatch import convert_to_tensor
from teletape.core.functions.not_traceable import NotTraceable
from teletape.core.functions.trace import trace
from teletape.core.tensors.dtypes import as_dtype
from teletape.core.tensors.tensor import Tensor, TensorLike
from teletape.tf.control_flow import loop_commands
from teletape.tf.ops.arrays.create import range as integers
from teletape.tf.ops.arrays.create import zeros, zeros_like
from teletape.tf.ops.arrays.rearrange import where


def rnn(module: ModuleType) -> Callable[..., Any]:
    """Returns `rnn` for Keras's backend; Keras's own runs a cell that cannot be traced, one step after another."""
    original = module.__dict__["rnn"]
    tree = module.__dict__["tree"]

    @functools.wraps(original)
    def run(
        step_function: Callable[..., Any],
        inputs: Any,
        initial_states: Any,
        go_backwards: bool = False,
        mask: Any = None,
        constants: Any = None,
        unroll: bool = False,
        input_length: Any = None,
        time_major: bool = False,
        zero_output_for_mask: bool = False,
        return_all_outputs: bool = True,
    ) -> Any:
        options = {
            "mask": mask,
            "constants": constants,
            "time_major": time_major,
            "zero_output_for_mask": zero_output_for_mask,
            "return_all_outputs": return_all_outputs,
            "go_backwards": go_backwards,
        }
        if unroll:
            return original(step_function, inputs, initial_states, unroll=True, input_length=input_length, **options)
        loop = _Loop(tree, step_function, initial_states, tuple(constants or ()), zero_output_for_mask)
        rows = tree.map_structure(lambda leaf: _time_first(leaf, time_major), inputs)
        masks = _masks(mask, time_major)
        if masks is None and isinstance(input_length, TensorLike):
            steps = integers(tree.flatten(rows)[0].shape[0])[:, None]
            masks = expand_dims(steps < cast(input_length, steps.dtype), -1)
            if go_backwards:
                masks = masks[::-1]
        elif go_backwards and masks is not None:
            masks = masks[::-1]
        if go_backwards:
            rows = tree.map_structure(lambda leaf: leaf[::-1], rows)
        try:
            outputs, states = loop.run(rows, masks)
        except NotTraceable:
            return original(step_function, inputs, initial_states, unroll=True, **options)
        last = tree.map_structure(lambda leaf: leaf[-1], outputs)
        if not return_all_outputs:
            outputs = tree.map_structure(lambda leaf: leaf[-1:], outputs)
        return last, tree.map_structure(lambda leaf: _time_first(leaf, time_major), outputs), states

    return run


class _Loop:
    """One run of a cell.

    Args:
        tree: Keras's module tree.
        step_function: Takes an input, and the states and constants; returns the output and the states.
        states: The first states.
        constants: The arguments of each step after the states.
        zeros_where_masked: Whether the output of a masked step is zero, rather than the output before.
    """

    def __init__(
        self, tree: Any, step_function: Callable[..., Any], states: Any, constants: Any, zeros_where_masked: bool
    ) -> None:
        self._tree, self._step_function, self._constants = tree, step_function, constants
        self._states = tuple(states)
        self._zeros_where_masked = zeros_where_masked
        self._output: Any = None  # the structure of a step's output

    def run(self, rows: Any, masks: Tensor | None) -> tuple[Any, Any]:
        """Returns the stacked outputs and the last states.

        Args:
            rows: The inputs with time along axis 0, possibly nested.
            masks: False where a step is skipped, [time, batch, 1], or None.

        Raises:
            NotTraceable: The cell needs values, draws random numbers or assigns to variables.
        """
        states = [convert_to_tensor(leaf) for leaf in self._tree.flatten(self._states)]
        elements = self._tree.flatten(rows)
        if masks is None:

            def plain(carry: Sequence[Any], row: Sequence[Any]) -> tuple[list[Any], list[Any]]:
                output, after = self._step(rows, carry, row)
                return after, output

            last, outputs = loop_commands.scanned(plain, states, elements)
            return self._packed(outputs), self._packed_states(last)

        before = self._first_outputs(rows, states, elements)

        def masked(carry: Sequence[Any], row: Sequence[Any]) -> tuple[list[Any], list[Any]]:
            previous, earlier = carry[: len(before)], carry[len(before) :]
            output, after = self._step(rows, earlier, row[1:])
            others = [zeros_like(leaf) for leaf in output] if self._zeros_where_masked else previous
            output = [_selected(row[0], *pair) for pair in zip(output, others, strict=True)]
            after = [_selected(row[0], *pair) for pair in zip(after, earlier, strict=True)]
            return [*output, *after], output

        last, outputs = loop_commands.scanned(masked, [*before, *states], [masks, *elements])
        return self._packed(outputs), self._packed_states(last[len(before) :])

    def _step(self, rows: Any, states: Sequence[Any], row: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        inputs = self._tree.pack_sequence_as(rows, list(row))
        before = self._tree.pack_sequence_as(self._states, list(states))
        output, after = self._step_function(inputs, (*before, *self._constants))
        self._output = output
        flat = self._tree.flatten(after)
        return self._tree.flatten(output), [cast(leaf, old.dtype) for leaf, old in zip(flat, states, strict=True)]

    def _first_outputs(self, rows: Any, states: Sequence[Any], elements: Sequence[Any]) -> list[Tensor]:
        """Returns zeros with the shapes and dtypes of a step's outputs, as the outputs before the first step."""
        specs = [leaf.recorded.spec for leaf in states]
        inputs = [leaf.recorded.spec for leaf in elements]
        traced = trace(
            lambda *leaves: self._step(rows, leaves[: len(specs)], leaves[len(specs) :])[0],
            [*specs, *(spec.with_shape(spec.shape[1:]) for spec in inputs)],
        )
        return [zeros(spec.shape, as_dtype(spec.dtype)) for spec in traced.specs]

    def _packed(self, outputs: Sequence[Any]) -> Any:
        return self._tree.pack_sequence_as(self._output, list(outputs))

    def _packed_states(self, states: Sequence[Any]) -> Any:
        return self._tree.pack_sequence_as(self._states, list(states))


def _time_first(leaf: Any, time_major: bool) -> Any:
    """Returns a tensor with time as its first axis: the first two axes are swapped unless it is."""
    tensor = convert_to_tensor(leaf)
    return tensor if time_major else transpose(tensor, [1, 0, *range(2, tensor.ndim)])


def _masks(mask: Any, time_major: bool) -> Tensor | None:
    if mask is None:
        return None
    tensor = cast(convert_to_tensor(mask), as_dtype("bool"))
    if tensor.ndim == 2:
        tensor = expand_dims(tensor, -1)
    rows: Tensor = _time_first(tensor, time_major)
    return rows


def _selected(mask: Any, value: Any, other: Any) -> Any:
    """Returns `value` where the mask [batch, 1] is true, else `other`."""
    for _ in range(len(value.shape) - len(mask.shape)):
        mask = expand_dims(mask, -1)
    return where(mask, value, other)
