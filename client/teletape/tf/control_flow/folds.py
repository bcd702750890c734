"""`scan`, `foldl` and `foldr`: an accumulator over the elements along axis 0, with TensorFlow's eager rules."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from teletape.core.calls.dispatch import constant, convert_to_tensor
from teletape.core.functions.tensor_spec import spec_of
from teletape.core.sessions.current import current
from teletape.core.tensors import nest
from teletape.core.tensors.tensor import EagerTensor, Tensor
from teletape.tf.control_flow import loop_commands
from teletape.tf.control_flow.eager import as_result, read_variables, warn_of_back_prop
from teletape.tf.control_flow.elements import (
    Results,
    check_callable,
    common_length,
    elements_of,
    no_elements,
    row_at,
    tensors_of,
)
from teletape.tf.control_flow.loop_commands import as_one_command
from teletape.tf.ops.arrays.rearrange import concat


def scan(
    fn: Callable[[Any, Any], Any],
    elems: Any,
    initializer: Any = None,
    parallel_iterations: int = 10,
    back_prop: bool = True,
    swap_memory: bool = False,
    infer_shape: bool = True,
    reverse: bool = False,
    name: str | None = None,
) -> Any:
    """Stacks the values of an accumulator that a function updates with each element along axis 0.

    Args:
        fn: From (accumulator, element) to the next accumulator, of the same structure.
        elems: A tensor [n, ...], or a nested structure of such.
        initializer: The accumulator before the first element; None: the first element, with which `fn` is not called.
        parallel_iterations: Accepted, without effect.
        back_prop: Accepted, without effect.
        swap_memory: Accepted, without effect.
        infer_shape: Whether all accumulators must have the shape of the first one.
        reverse: Whether the last element comes first; each result has the index of its element.
        name: Accepted, without effect.

    Returns:
        Tensors [n, ...] in the structure of the accumulator.

    Raises:
        ValueError: An accumulator of another structure or shape.
        teletape.errors.InvalidArgumentError: One of another dtype.
        teletape.errors.OutOfRangeError: No initializer and no elements.

    Example:
        tf.scan(lambda total, x: total + x, tf.constant([1.0, 2.0, 3.0]))
    """
    check_callable(fn)
    warn_of_back_prop(back_prop, "scan")
    pattern = elems if initializer is None else initializer
    command = partial(_scan_command, fn, elems, initializer, reverse)
    if current().tracing:
        return command(True)
    tensors = tensors_of(elems)
    length = int(tensors[0].shape[0])
    scanned = as_one_command([fn], length, command)
    if scanned is not None:
        return scanned
    columns, order, first = _rows(tensors, length, reverse, initializer is None)
    state = first or [convert_to_tensor(leaf) for leaf in nest.flatten(initializer)]
    results = [Results(tensor.dtype, tensor.shape if infer_shape else None, infer_shape) for tensor in state]
    for index in order:
        if not (first and index == order[0]):
            value = fn(nest.pack_sequence_as(pattern, state), nest.pack_sequence_as(elems, row_at(columns, index)))
            nest.assert_same_structure(pattern, value)
            state = nest.flatten(value)
        for result, leaf in zip(results, state, strict=True):
            result.write(leaf)
    return nest.pack_sequence_as(pattern, [result.stack(reverse=reverse) for result in results])


def foldl(
    fn: Callable[[Any, Any], Any],
    elems: Any,
    initializer: Any = None,
    parallel_iterations: int = 10,
    back_prop: bool = True,
    swap_memory: bool = False,
    name: str | None = None,
) -> Any:
    """Returns the last value of an accumulator that a function updates with each element, from the first to the last.

    Args:
        fn: From (accumulator, element) to the next accumulator, of the same structure. Shapes may change.
        elems: A tensor [n, ...], or a nested structure of such.
        initializer: The accumulator before the first element; None: the first element, with which `fn` is not called.
        parallel_iterations: Accepted, without effect.
        back_prop: Accepted, without effect.
        swap_memory: Accepted, without effect.
        name: Accepted, without effect.

    Raises:
        ValueError: An accumulator of another structure.
        teletape.errors.OutOfRangeError: No initializer and no elements.

    Example:
        tf.foldl(lambda total, x: 2.0 * total + x, tf.constant([1.0, 2.0, 3.0]))
    """
    return _fold("foldl", fn, elems, initializer, back_prop, reverse=False)


def foldr(
    fn: Callable[[Any, Any], Any],
    elems: Any,
    initializer: Any = None,
    parallel_iterations: int = 10,
    back_prop: bool = True,
    swap_memory: bool = False,
    name: str | None = None,
) -> Any:
    """Like `foldl`, from the last element to the first.

    Example:
        tf.foldr(lambda total, x: 2.0 * total + x, tf.constant([1.0, 2.0, 3.0]))
    """
    return _fold("foldr", fn, elems, initializer, back_prop, reverse=True)


def _fold(
    name: str, fn: Callable[[Any, Any], Any], elems: Any, initializer: Any, back_prop: bool, *, reverse: bool
) -> Any:
    check_callable(fn)
    warn_of_back_prop(back_prop, name)
    command = partial(_fold_command, fn, elems, initializer, reverse)
    if current().tracing:
        return command(True)
    tensors = tensors_of(elems)
    length = int(tensors[0].shape[0])
    if initializer is None or all(isinstance(leaf, EagerTensor) for leaf in nest.flatten(initializer)):
        folded = as_one_command([fn], length, command)
        if folded is not None:
            return folded
    columns, order, first = _rows(tensors, length, reverse, initializer is None)
    if first:
        state, order = nest.pack_sequence_as(elems, first), order[1:]
    else:
        state = read_variables(initializer)
    pattern = nest.map_structure(spec_of, state)
    for iteration, index in enumerate(order, 1):
        state = fn(state, nest.pack_sequence_as(elems, row_at(columns, index)))
        try:
            nest.assert_same_structure(pattern, state)
        except (TypeError, ValueError):  # in the words of TensorFlow's loop, which has two counters as well
            counter = index if reverse else constant(index + 1)
            nest.assert_same_structure([spec_of(0), [spec_of(0), pattern]], [iteration, [counter, state]])
    return nest.map_structure(as_result, state)


def _rows(
    tensors: Sequence[Tensor], length: int, reverse: bool, starts_with_element: bool
) -> tuple[list[list[Tensor]], list[int], list[Tensor]]:
    """Returns the elements of each tensor, the order of the indices, and the first row if the loop starts with it."""
    columns = [elements_of(tensor) for tensor in tensors]
    order = list(range(length))[:: -1 if reverse else 1]
    if starts_with_element and not order:
        raise no_elements(reverse)
    return columns, order, row_at(columns, order[0]) if starts_with_element else []


# --------------------------------------------------------------------------------------------------------- as commands
def _scan_command(fn: Callable[[Any, Any], Any], elems: Any, initializer: Any, reverse: bool, nested: bool) -> Any:
    """Returns the scan as one command, or one step of the function that is traced."""
    pattern = elems if initializer is None else initializer

    def step(carry: Sequence[Any], row: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        state = _next_state(fn, pattern, elems, carry, row)
        return state, state

    first, carry, rest = _split(elems, initializer, reverse)
    _, columns = loop_commands.scanned(step, carry, rest, reverse=reverse, choices=nested)
    if first:  # the element that the loop starts with is its own result
        parts = [[tensor[None], column] for tensor, column in zip(first, columns, strict=True)]
        columns = [concat(part[::-1] if reverse else part, 0) for part in parts]
    return nest.pack_sequence_as(pattern, columns)


def _fold_command(fn: Callable[[Any, Any], Any], elems: Any, initializer: Any, reverse: bool, nested: bool) -> Any:
    """Returns the fold as one command, or one step of the function that is traced."""
    pattern = elems if initializer is None else initializer

    def step(carry: Sequence[Any], row: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        return _next_state(fn, pattern, elems, carry, row), []

    _, carry, rest = _split(elems, initializer, reverse)
    state, _ = loop_commands.scanned(step, carry, rest, reverse=reverse, choices=nested)
    return nest.pack_sequence_as(pattern, state)


def _next_state(
    fn: Callable[[Any, Any], Any], pattern: Any, elems: Any, carry: Sequence[Any], row: Sequence[Any]
) -> list[Any]:
    """Returns the leaves of the next accumulator, in the dtypes of the last one."""
    value = fn(nest.pack_sequence_as(pattern, carry), nest.pack_sequence_as(elems, row))
    nest.assert_same_structure(pattern, value)
    leaves = zip(nest.flatten(value), carry, strict=True)
    return [convert_to_tensor(leaf, dtype_hint=before.dtype) for leaf, before in leaves]


def _split(elems: Any, initializer: Any, reverse: bool) -> tuple[list[Any], list[Any], list[Any]]:
    """Returns the element that the loop starts with if there is no initializer, the first carry, and the elements."""
    tensors = [convert_to_tensor(leaf) for leaf in nest.flatten(elems)]
    common_length(tensors)
    if initializer is not None:
        return [], [convert_to_tensor(leaf) for leaf in nest.flatten(initializer)], tensors
    if not tensors[0].shape[0]:
        raise no_elements(reverse)
    first = [tensor[-1 if reverse else 0] for tensor in tensors]
    return first, first, [tensor[:-1] if reverse else tensor[1:] for tensor in tensors]
