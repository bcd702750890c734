"""Functions over the leading axis: map_fn, scan, foldl, foldr, vectorized_map, with TensorFlow's eager rules."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

from teletape import logs
from teletape.control_flow import loop_commands
from teletape.control_flow.eager import as_result, read_variables, warn_of_back_prop
from teletape.control_flow.tensor_array import (
    NOTHING_FIRST,
    NOTHING_LAST,
    Results,
    check_callable,
    common_length,
    first_row,
    row_at,
    rows_of,
    tensors_of,
)
from teletape.errors import InvalidArgumentError, OutOfRangeError
from teletape.functions.purity import pure
from teletape.functions.tensor_spec import TensorSpec, spec_of
from teletape.functions.trace import NotTraceable
from teletape.ops.arrays import concat
from teletape.ops.dispatch import call, constant, convert_to_tensor
from teletape.sessions.current import current
from teletape.tensors import nest
from teletape.tensors.tensor import EagerTensor
from teletape_engine.catalogue.namespace import ops

__all__ = ["foldl", "foldr", "map_fn", "scan", "vectorized_map"]


def map_fn(
    fn: Callable[[Any], Any],
    elems: Any,
    dtype: Any = None,
    parallel_iterations: int | None = None,
    back_prop: bool = True,
    swap_memory: bool = False,
    infer_shape: bool = True,
    name: str | None = None,
    fn_output_signature: Any = None,
) -> Any:
    """`fn` of each element along axis 0, the results stacked.

    Args:
        fn: From one element (of each of `elems`, in its structure) to a tensor or a structure of tensors.
        elems: A tensor [n, ...], or a nested structure of such.
        dtype: The older name of fn_output_signature.
        parallel_iterations: Accepted, without effect; more than 1 is said to have none.
        back_prop: Accepted, without effect.
        swap_memory: The same.
        infer_shape: Whether results of different shapes are refused where the first differs.
        name: Accepted, without effect.
        fn_output_signature: The structure of dtypes or TensorSpecs of the results, where it is not that of `elems`.

    Returns:
        Tensors [n, ...] in the structure of the results.

    Raises:
        ValueError: No elements, a scalar among them, other lengths, or a result of another structure or shape.
        teletape.errors.InvalidArgumentError: A result of another dtype.
    """
    check_callable(fn, "The provided function {} is not callable.fn must be callable.")
    warn_of_back_prop(back_prop, "map_fn")
    signature = dtype if fn_output_signature is None else fn_output_signature
    if parallel_iterations is not None and parallel_iterations > 1:
        logs.log_first_n(
            logging.WARNING,
            "Setting parallel_iterations > 1 has no effect when executing eagerly. Consider calling map_fn with "
            "tf.function to execute fn in parallel.",
            1,
            "map_fn.parallel_iterations",
        )
    elems = read_variables(elems)
    given = nest.flatten(elems)
    if not given:
        raise ValueError(
            f"elems must be a Tensor or (possibly nested) sequence of Tensors. Got {elems}, which does not contain any "
            "Tensors."
        )
    if signature is None:
        specs = [TensorSpec(None, spec_of(one).dtype) for one in given]
    else:
        specs = [one if isinstance(one, TensorSpec) else TensorSpec(None, one) for one in nest.flatten(signature)]
    tensors = [convert_to_tensor(one) for one in given]
    if tensors[0].ndim < 1:
        raise ValueError("Elements in elems must be 1+ dimensional Tensors, not scalars")
    length = common_length(tensors)
    results = [Results(spec.dtype, spec.shape, infer_shape) for spec in specs]
    pattern = elems if signature is None else signature

    def written(choices: bool) -> Any:
        def step(carry: Sequence[Any], row: Sequence[Any]) -> tuple[list[Any], list[Any]]:
            made = fn(nest.pack_sequence_as(elems, row))
            nest.assert_same_structure(pattern, made)
            return [], [one.check(value) for one, value in zip(results, nest.flatten(made), strict=True)]

        return nest.pack_sequence_as(pattern, loop_commands.scanned(step, [], tensors, choices=choices)[1])

    found = _as_command(fn, length, written)
    if found is not None:
        return found
    columns = [rows_of(one) for one in tensors]
    for row in zip(*columns, strict=True) if length else ():
        made = fn(nest.pack_sequence_as(elems, row))
        nest.assert_same_structure(pattern, made)
        for result, value in zip(results, nest.flatten(made), strict=True):
            result.write(value)
    return nest.pack_sequence_as(pattern, [one.stack() for one in results])


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
    """All the values of an accumulator that takes in the elements along axis 0 one after the other.

    Args:
        fn: From (accumulator, element) to the next accumulator, of the same structure.
        elems: A tensor [n, ...], or a nested structure of such.
        initializer: The accumulator before the first element; None: the first element, with which `fn` is not called.
        parallel_iterations: Accepted, without effect.
        back_prop: The same.
        swap_memory: The same.
        infer_shape: Whether accumulators of another shape than the first are refused.
        reverse: Whether the last element comes first; results stay beside their elements.
        name: Accepted, without effect.

    Returns:
        Tensors [n, ...] in the structure of the accumulator.

    Raises:
        ValueError: An accumulator of another structure or shape.
        teletape.errors.InvalidArgumentError: One of another dtype.
        teletape.errors.OutOfRangeError: No element to begin with.
    """
    check_callable(fn)
    warn_of_back_prop(back_prop, "scan")
    pattern = elems if initializer is None else initializer
    written = partial(_written_scan, fn, elems, initializer, pattern, reverse)
    if current().tracing:
        return written(True)
    tensors = tensors_of(elems)
    length = int(tensors[0].shape[0])
    found = _as_command(fn, length, written)
    if found is not None:
        return found
    columns = [rows_of(one) for one in tensors]
    order = list(range(length))[:: -1 if reverse else 1]
    if initializer is None:
        state = first_row(columns, order, reverse)
    else:
        state = [convert_to_tensor(one) for one in nest.flatten(initializer)]
    results = [Results(one.dtype, one.shape if infer_shape else None, infer_shape) for one in state]
    for at in order:
        if initializer is not None or at != order[0]:
            made = fn(nest.pack_sequence_as(pattern, state), nest.pack_sequence_as(elems, row_at(columns, at)))
            nest.assert_same_structure(pattern, made)
            state = nest.flatten(made)
        for result, value in zip(results, state, strict=True):
            result.write(value)
    return nest.pack_sequence_as(pattern, [one.stack(reverse=reverse) for one in results])


def _written_scan(
    fn: Callable[[Any, Any], Any], elems: Any, initializer: Any, pattern: Any, reverse: bool, choices: bool
) -> Any:
    """The scan as one command, or one step of the function that is being traced."""

    def step(carry: Sequence[Any], row: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        made = fn(nest.pack_sequence_as(pattern, carry), nest.pack_sequence_as(elems, row))
        nest.assert_same_structure(pattern, made)
        state = [
            convert_to_tensor(one, dtype_hint=old.dtype) for one, old in zip(nest.flatten(made), carry, strict=True)
        ]
        return state, state

    first, carry, rest = _split(elems, initializer, reverse)
    _, found = loop_commands.scanned(step, carry, rest, reverse=reverse, choices=choices)
    if initializer is None:  # the element that it began with is its own result
        parts = [[one[None], others] for one, others in zip(first, found, strict=True)]
        found = [concat(one[::-1] if reverse else one, 0) for one in parts]
    return nest.pack_sequence_as(pattern, found)


def _split(elems: Any, initializer: Any, reverse: bool) -> tuple[list[Any], list[Any], list[Any]]:
    """The first element where there is no initializer, what is carried at the beginning, and the elements to come."""
    tensors = [convert_to_tensor(one) for one in nest.flatten(elems)]
    common_length(tensors)
    if initializer is not None:
        return [], [convert_to_tensor(one) for one in nest.flatten(initializer)], tensors
    if not tensors[0].shape[0]:
        raise OutOfRangeError(NOTHING_LAST if reverse else NOTHING_FIRST)
    first = [one[-1 if reverse else 0] for one in tensors]
    return first, first, [one[:-1] if reverse else one[1:] for one in tensors]


def foldl(
    fn: Callable[[Any, Any], Any],
    elems: Any,
    initializer: Any = None,
    parallel_iterations: int = 10,
    back_prop: bool = True,
    swap_memory: bool = False,
    name: str | None = None,
) -> Any:
    """The last value of an accumulator that takes in the elements along axis 0 from the first to the last.

    Args:
        fn: From (accumulator, element) to the next accumulator, of the same structure. Shapes may change.
        elems: A tensor [n, ...], or a nested structure of such.
        initializer: The accumulator before the first element; None: the first element, with which `fn` is not called.
        parallel_iterations: Accepted, without effect.
        back_prop: The same.
        swap_memory: The same.
        name: Accepted, without effect.

    Raises:
        ValueError: An accumulator of another structure.
        teletape.errors.OutOfRangeError: No element to begin with.
    """
    return _folded("foldl", fn, elems, initializer, back_prop, reverse=False)


def foldr(
    fn: Callable[[Any, Any], Any],
    elems: Any,
    initializer: Any = None,
    parallel_iterations: int = 10,
    back_prop: bool = True,
    swap_memory: bool = False,
    name: str | None = None,
) -> Any:
    """As `foldl`, from the last element to the first."""
    return _folded("foldr", fn, elems, initializer, back_prop, reverse=True)


def _folded(
    name: str, fn: Callable[[Any, Any], Any], elems: Any, initializer: Any, back_prop: bool, *, reverse: bool
) -> Any:
    check_callable(fn)
    warn_of_back_prop(back_prop, name)
    written = partial(_written_fold, fn, elems, initializer, reverse)
    if current().tracing:
        return written(True)
    tensors = tensors_of(elems)
    length = int(tensors[0].shape[0])
    if all(isinstance(one, EagerTensor) for one in nest.flatten(initializer)) or initializer is None:
        found = _as_command(fn, length, written)
        if found is not None:
            return found
    columns = [rows_of(one) for one in tensors]
    order = list(range(length))[:: -1 if reverse else 1]
    if initializer is None:
        state = nest.pack_sequence_as(elems, first_row(columns, order, reverse))
        order = order[1:]
    else:
        state = read_variables(initializer)
    outline = nest.map_structure(spec_of, state)
    for iteration, at in enumerate(order, 1):
        state = fn(state, nest.pack_sequence_as(elems, row_at(columns, at)))
        try:
            nest.assert_same_structure(outline, state)
        except (TypeError, ValueError):  # told as TensorFlow's loop does, which counts twice beside the accumulator
            index = constant(at if reverse else at + 1)
            nest.assert_same_structure(
                [spec_of(0), [spec_of(0), outline]], [iteration, [at if reverse else index, state]]
            )
    return nest.map_structure(as_result, state)


def _written_fold(fn: Callable[[Any, Any], Any], elems: Any, initializer: Any, reverse: bool, choices: bool) -> Any:
    """The fold as one command, or one step of the function that is being traced."""
    pattern = elems if initializer is None else initializer

    def step(carry: Sequence[Any], row: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        made = fn(nest.pack_sequence_as(pattern, carry), nest.pack_sequence_as(elems, row))
        nest.assert_same_structure(pattern, made)
        return [
            convert_to_tensor(one, dtype_hint=old.dtype) for one, old in zip(nest.flatten(made), carry, strict=True)
        ], []

    _, carry, rest = _split(elems, initializer, reverse)
    return nest.pack_sequence_as(pattern, loop_commands.scanned(step, carry, rest, reverse=reverse, choices=choices)[0])


def vectorized_map(fn: Callable[[Any], Any], elems: Any, fallback_to_while_loop: bool = True, warn: bool = True) -> Any:
    """`fn` of each element along axis 0, the results stacked; a leading axis of length 1 goes with every element.

    Args:
        fn: From one element (of each of `elems`, in its structure) to a tensor or a structure of tensors. What it
            gives where it gives no tensor becomes one; None stays.
        elems: A tensor [n, ...], or a nested structure of such.
        fallback_to_while_loop: Accepted, without effect: `fn` is traced once, and what cannot be traced (it reads a
            value, draws random numbers, assigns) is called for each element instead.
        warn: Accepted, without effect.

    Raises:
        ValueError: No elements.
        IndexError: A scalar among them.
    """
    tensors = nest.map_structure(convert_to_tensor, read_variables(elems))
    flat = nest.flatten(tensors)
    length = max(one.shape.as_list()[0] for one in flat)
    lengths = [one.shape.as_list()[0] for one in flat]
    for one in lengths:
        if one not in (1, length):
            raise InvalidArgumentError(
                f"indices[{one}] = {one} is not in [0, {one}): the elements have the lengths {lengths} along axis 0, "
                "which must be equal, or 1"
            )
    whole = [one == length for one in lengths]
    shared = [None if here else one[0] for one, here in zip(flat, whole, strict=True)]
    patterns: list[Any] = []

    def step(carry: Sequence[Any], row: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        rows = iter(row)
        made = fn(nest.pack_sequence_as(tensors, [next(rows) if one is None else one for one in shared]))
        patterns.append(nest.map_structure(lambda leaf: leaf is None, made))
        return [], [convert_to_tensor(one) for one in nest.flatten(made) if one is not None]

    stacked = [one for one, here in zip(flat, whole, strict=True) if here]
    try:
        found = loop_commands.scanned(step, [], stacked, vectorize=True)[1]
    except NotTraceable:
        if current().tracing:
            raise
        made = [step([], row)[1] for row in zip(*[rows_of(one) for one in stacked], strict=True)]
        found = [call(ops.stack, column) for column in zip(*made, strict=True)]
    results = iter(found)
    return nest.map_structure(lambda none: None if none else next(results), patterns[-1])


_WORTH: Final = 16  #: Elements from which one command is worth tracing for.


def _as_command(fn: Callable[..., Any], length: int, written: Callable[[bool], Any]) -> Any:
    """What `written` makes one command of; None: where it is to be done element by element.

    Inside a traced function always; on a server where it is long, and nobody can tell the difference (`control`).
    """
    owner = current()
    if owner.tracing:
        return written(True) if length else None
    if owner.local or length < _WORTH or not pure(fn):
        return None
    try:
        return written(False)
    except loop_commands.TELLING:
        return None
