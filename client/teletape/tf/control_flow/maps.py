"""`map_fn` and `vectorized_map`: a function of each element along axis 0, with TensorFlow's eager rules."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any

from teletape.core.calls.dispatch import call, convert_to_tensor, tensor_or_ragged
from teletape.core.errors import InvalidArgumentError
from teletape.core.functions.tensor_spec import TensorSpec, spec_of
from teletape.core.functions.trace import NotTraceable, trace
from teletape.core.program import logs
from teletape.core.sessions.current import current
from teletape.core.tensors import nest
from teletape.core.tensors.composite import RaggedValue, TypeSpec
from teletape.core.tensors.tensor import Tensor
from teletape.tf.control_flow import loop_commands
from teletape.tf.control_flow.eager import read_variables, warn_of_back_prop
from teletape.tf.control_flow.elements import Results, check_callable, common_length, elements_of
from teletape.tf.control_flow.loop_commands import as_one_command
from teletape_engine.catalogue.namespace import ops


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
    """Stacks `fn` of each element along axis 0.

    Args:
        fn: From one element (of each of `elems`, in its structure) to a tensor or a structure of tensors.
        elems: A tensor or ragged tensor [n, ...], or a nested structure of such; an element of a ragged one is a row.
        dtype: The older name of fn_output_signature.
        parallel_iterations: Accepted, without effect; more than 1 logs a warning.
        back_prop: Accepted, without effect.
        swap_memory: Accepted, without effect.
        infer_shape: Whether results must have the shape of the first one.
        name: Accepted, without effect.
        fn_output_signature: The structure of dtypes, TensorSpecs or RaggedTensorSpecs of the results, if it is not that
            of `elems`.

    Returns:
        Tensors [n, ...] in the structure of the results; ragged ones where `elems` is ragged or the signature says so.

    Raises:
        ValueError: No elements, a scalar among them, other lengths, or a result of another structure or shape.
        teletape.errors.InvalidArgumentError: A result of another dtype.

    Example:
        tf.map_fn(lambda x: x * x, tf.constant([1.0, 2.0, 3.0]))
    """
    check_callable(fn, "The provided function {} is not callable.fn must be callable.")
    warn_of_back_prop(back_prop, "map_fn")
    if parallel_iterations is not None and parallel_iterations > 1:
        logs.log_first_n(
            logging.WARNING,
            "Setting parallel_iterations > 1 has no effect when executing eagerly. Consider calling map_fn with "
            "tf.function to execute fn in parallel.",
            1,
            "map_fn.parallel_iterations",
        )
    signature = dtype if fn_output_signature is None else fn_output_signature
    elems = read_variables(elems)
    pattern = elems if signature is None else signature
    specs = [_result_spec(leaf, of_element=signature is None) for leaf in nest.flatten(pattern)]
    tensors = _elements(elems)
    length = common_length(tensors)
    results = [
        Results(spec.dtype, spec.shape, infer_shape) if isinstance(spec, TensorSpec) else spec.rows() for spec in specs
    ]

    def element_result(row: Sequence[Any]) -> list[Any]:
        result = fn(nest.pack_sequence_as(elems, row))
        nest.assert_same_structure(pattern, result)
        return nest.flatten(result)

    def step(carry: Sequence[Any], row: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        leaves = element_result(row)
        return [], [column.check(leaf) for column, leaf in zip(results, leaves, strict=True)]

    def command(nested: bool) -> Any:
        return nest.pack_sequence_as(pattern, loop_commands.scanned(step, [], tensors, choices=nested)[1])

    dense = all(isinstance(spec, TensorSpec) for spec in specs) and not any(
        isinstance(tensor, RaggedValue) for tensor in tensors
    )
    mapped = as_one_command([fn], length, command) if dense else None
    if mapped is not None:
        return mapped
    for row in zip(*map(elements_of, tensors), strict=True) if length else ():
        for column, leaf in zip(results, element_result(row), strict=True):
            column.write(leaf)
    return nest.pack_sequence_as(pattern, [column.stack() for column in results])


def _elements(elems: Any) -> list[Any]:
    """Returns the tensors whose elements `map_fn` maps."""
    leaves = nest.flatten(elems)
    if not leaves:
        raise ValueError(
            f"elems must be a Tensor or (possibly nested) sequence of Tensors. Got {elems}, which does not contain any "
            "Tensors."
        )
    tensors = [tensor_or_ragged(leaf) for leaf in leaves]
    if not len(tensors[0].shape):
        raise ValueError("Elements in elems must be 1+ dimensional Tensors, not scalars")
    return tensors


def _result_spec(leaf: Any, *, of_element: bool) -> TypeSpec:
    """Returns the spec of a result, from a leaf of the elements or of the signature."""
    if isinstance(leaf, RaggedValue):
        return leaf.row_spec()
    if isinstance(leaf, TypeSpec):
        return leaf
    if of_element:
        return TensorSpec(None, spec_of(leaf).dtype)
    return TensorSpec(None, leaf)


def vectorized_map(fn: Callable[[Any], Any], elems: Any, fallback_to_while_loop: bool = True, warn: bool = True) -> Any:
    """Stacks `fn` of each element along axis 0; a leading axis of length 1 is used for every element.

    Args:
        fn: From one element (of each of `elems`, in its structure) to a tensor or a structure of tensors. Results that
            are no tensors become tensors; None stays.
        elems: A tensor [n, ...], or a nested structure of such.
        fallback_to_while_loop: Accepted, without effect: `fn` is traced once; if it cannot be traced (it reads a
            value, assigns), it is called for each element instead.
        warn: Accepted, without effect.

    Raises:
        ValueError: No elements.
        IndexError: A scalar among them.

    Example:
        tf.vectorized_map(lambda x: x * x, tf.constant([1.0, 2.0, 3.0]))
    """
    tensors = nest.map_structure(convert_to_tensor, read_variables(elems))
    columns = nest.flatten(tensors)
    lengths = [column.shape.as_list()[0] for column in columns]
    longest = max(lengths)
    for length in lengths:
        if length not in (1, longest):
            raise InvalidArgumentError(
                f"indices[{length}] = {length} is not in [0, {length}): the elements have the lengths {lengths} along "
                "axis 0, which must be equal, or 1"
            )
    stacked = [column for column, length in zip(columns, lengths, strict=True) if length == longest]
    shared = [None if length == longest else column[0] for column, length in zip(columns, lengths, strict=True)]
    patterns: list[Any] = []

    def step(carry: Sequence[Any], row: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        elements = iter(row)
        arguments = [next(elements) if element is None else element for element in shared]
        result = fn(nest.pack_sequence_as(tensors, arguments))
        patterns.append(nest.map_structure(lambda leaf: leaf is None, result))
        return [], [convert_to_tensor(leaf) for leaf in nest.flatten(result) if leaf is not None]

    try:
        mapped = _at_once(step, stacked)
    except NotTraceable:
        if current().tracing:
            raise
        rows = [step([], row)[1] for row in zip(*map(elements_of, stacked), strict=True)]
        mapped = [call(ops.stack, column) for column in zip(*rows, strict=True)]
    results = iter(mapped)
    return nest.map_structure(lambda is_none: None if is_none else next(results), patterns[-1])


def _at_once(step: Callable[..., Any], columns: Sequence[Tensor]) -> Sequence[Tensor]:
    """Returns the results of all rows, computed together. Outside of a function, a step with random draws becomes one.

    Raises:
        NotTraceable: The step cannot be traced.
    """

    def mapped(*tensors: Tensor) -> list[Tensor]:
        return loop_commands.scanned(step, [], tensors, vectorize=True)[1]

    try:
        return mapped(*columns)
    except NotTraceable as error:
        if current().tracing or error.why != loop_commands.DRAWS_IN_A_LOOP:
            raise
        error.withdraw()
        operands = [column.operand() for column in columns]
        return trace(mapped, [operand.spec for operand in operands]).call(operands)  # type: ignore[no-any-return]
