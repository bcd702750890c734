"""Control flow as functions: while_loop, cond, case, switch_case, with the meaning of TensorFlow's eager ones.

A condition is read. Only the branch or iteration that Python would run is run and recorded.
Long because all of them check their arguments with TensorFlow's messages.
"""

from __future__ import annotations

import functools
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any

from teletape.core.calls.dispatch import as_tensor, call, constant, convert_to_tensor, known_elements
from teletape.core.errors import InvalidArgumentError
from teletape.core.functions.tensor_spec import spec_of
from teletape.core.functions.trace import NotTraceable, control, runs_through
from teletape.core.program import logs
from teletape.core.sessions.current import current
from teletape.core.tensors import dtypes, nest
from teletape.core.tensors.composite import Composite
from teletape.core.tensors.tensor import EagerTensor, Tensor
from teletape.core.tensors.variable_wrapper import VariableWrapper
from teletape.core.variables.variable import Variable
from teletape.tf import debugging
from teletape.tf.control_flow import loop_commands
from teletape.tf.control_flow.growth import Unbounded, ask_for, unrolled
from teletape.tf.control_flow.loop_commands import as_one_command
from teletape.tf.control_flow.packing import Packing, Whole, tensors_of, with_known_elements, with_room
from teletape.tf.control_flow.tensor_array import TensorArray
from teletape.tf.control_flow.untaken import unused
from teletape_engine.catalogue.namespace import ops
from teletape_engine.recording.provenance import Event
from teletape_engine.spec import INTEGER

__all__ = ["case", "cond", "switch_case", "while_loop"]


@control
def while_loop(
    cond: Callable[..., Any],
    body: Callable[..., Any],
    loop_vars: Any,
    shape_invariants: Any = None,
    parallel_iterations: int = 10,
    back_prop: bool = True,
    swap_memory: bool = False,
    maximum_iterations: Any = None,
    name: str | None = None,
) -> Any:
    """Calls `body` on the loop variables again and again while `cond` of them is true.

    Args:
        cond: From the loop variables to a scalar bool.
        body: From the loop variables to a list or tuple of the next ones, of the same structure. Shapes may change.
        loop_vars: A list or tuple of tensors, or of nested structures of them.
        shape_invariants: Accepted, without effect.
        parallel_iterations: At least 1; without effect.
        back_prop: Accepted, without effect.
        swap_memory: Accepted, without effect.
        maximum_iterations: A bound on the iterations, an integer scalar; None: none.
        name: Accepted, without effect.

    Returns:
        The last loop variables as tensors, in the structure that `body` returned.

    Raises:
        TypeError: `cond` or `body` cannot be called; parallel_iterations below 1.
        ValueError: No loop variables; `body` returns another structure.

    Example:
        tf.while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, 2.0 * x), (0, tf.constant(1.0)))
    """
    if not callable(cond):
        raise TypeError("'cond' must be callable.")
    if not callable(body):
        raise TypeError("'body' must be callable.")
    if parallel_iterations < 1:
        raise TypeError("'parallel_iterations' must be a positive integer.")
    warn_of_back_prop(back_prop, "while_loop")
    values = read_variables(loop_vars)
    if not values:
        raise ValueError("'loop_vars' must be provided.")
    most = None if maximum_iterations is None else _scalar(maximum_iterations)
    if not current().tracing:
        return nest.map_structure(as_result, _loop(cond, body, values, None if most is None else int(most.numpy())))
    try:
        if most is not None and known_elements(most) is None:
            return _counted_loop_step(cond, body, values, most)
        return _loop_step(cond, body, values, None if most is None else max(int(most.numpy()), 0))
    except Unbounded as error:
        return _unrolled_loop(cond, body, values, most, error)


def _scalar(maximum_iterations: Any) -> Tensor:
    """Returns the largest number of iterations as a tensor."""
    most = convert_to_tensor(maximum_iterations)
    if most.ndim != 0:
        raise ValueError(f"'maximum_iterations' must be a scalar. Received shape: {most.shape}")
    return most


def _counted_loop_step(cond: Callable[..., Any], body: Callable[..., Any], values: Any, most: Tensor) -> Any:
    """Returns the loop as one step that counts its iterations; their limit is not known in the trace."""

    def goes_on(count: Tensor, loop_values: Any) -> Tensor:
        return call(ops.logical_and, (count < most, convert_to_tensor(cond(*loop_values))))

    def counted(count: Tensor, loop_values: Any) -> tuple[Tensor, Any]:
        return count + 1, nest.pack_sequence_as(values, nest.flatten(_following(body, loop_values)))

    return _loop_step(goes_on, counted, (constant(0, most.dtype), values), None)[1]


def _unrolled_loop(
    cond: Callable[..., Any], body: Callable[..., Any], values: Any, most: Tensor | None, error: Unbounded
) -> Any:
    """Returns the loop unrolled into its iterations, because it cannot be one step."""
    if most is not None and known_elements(most) is None:
        ask_for(most, error.why)
        raise error
    state = nest.map_structure(_as_loop_value, values)

    def iteration() -> None:
        nonlocal state
        state = nest.map_structure(_as_loop_value, nest.pack_sequence_as(values, nest.flatten(_following(body, state))))

    unrolled(lambda: cond(*state), iteration, None if most is None else max(int(most.numpy()), 0), error)
    return state


def _as_loop_value(leaf: Any) -> Any:
    return leaf if isinstance(leaf, TensorArray | Composite) else convert_to_tensor(leaf)


def _following(body: Callable[..., Any], values: Any) -> Any:
    """Returns the loop variables after an iteration in a trace, where a single one may be bare."""
    result = body(*values)
    if len(values) == 1 and not isinstance(result, list | tuple):
        result = (result,)
    nest.assert_same_structure(list(values), list(result))
    return result


def _loop_step(cond: Callable[..., Any], body: Callable[..., Any], values: Any, limit: int | None) -> Any:
    """Returns the loop as one step of the function that is traced."""
    following = functools.partial(_following, body)
    values = with_known_elements(with_room(values, following, limit), following)
    leaves, packing = tensors_of(values)

    def step(*loop_values: Any) -> list[Tensor]:
        result = nest.flatten(following(packing.state(loop_values)))
        hints = nest.flatten(packing.state(leaves))
        typed = [
            leaf if isinstance(leaf, TensorArray | Composite) else convert_to_tensor(leaf, dtype_hint=before.dtype)
            for leaf, before in zip(result, hints, strict=True)
        ]
        return tensors_of(typed)[0]

    def condition(*loop_values: Any) -> Any:
        return cond(*packing.state(loop_values))

    return packing.state(loop_commands.repeated(condition, step, leaves, limit))


def _loop_command(cond: Callable[..., Any], body: Callable[..., Any], values: Any, limit: int | None) -> Any:
    """Runs the loop as one command if each iteration would otherwise ask the server; None: it cannot be one.

    It can be one if its functions only compute, shapes stay, and no tensor is read: then the result is the same.
    """

    def step(*loop_values: Any) -> list[Tensor]:
        result = body(*nest.pack_sequence_as(values, loop_values))
        nest.assert_same_structure(values, result)
        return [convert_to_tensor(leaf) for leaf in nest.flatten(result)]

    def command(nested: bool) -> Any:
        leaves = [convert_to_tensor(leaf) for leaf in nest.flatten(values)]
        results = loop_commands.repeated(_unpacked(cond, values), step, leaves, limit, choices=nested)
        return nest.pack_sequence_as(values, results)

    tensors_or_counters = all(isinstance(leaf, EagerTensor) or leaf.__class__ is int for leaf in nest.flatten(values))
    return as_one_command([cond, body], None, command) if tensors_or_counters else None


def _unpacked(cond: Callable[..., Any], values: Any) -> Callable[..., Any]:
    """Returns `cond` as a function of the leaves of the loop variables."""
    return lambda *loop_values: cond(*nest.pack_sequence_as(values, loop_values))


def _is_unknown(condition: Any) -> bool:
    """Whether reading a condition asks the server."""
    return isinstance(condition, EagerTensor) and not condition.ndim and condition.recorded.host is None


def _spec_of(leaf: Any) -> Any:
    return leaf if isinstance(leaf, TensorArray) else spec_of(leaf)


def _loop(cond: Callable[..., Any], body: Callable[..., Any], values: Any, limit: int | None) -> Any:
    counts = limit is not None and not runs_through()  # as in TensorFlow's eager loop, which compares with a count
    pattern = nest.map_structure(_spec_of, [0, values] if counts else list(values))
    iteration, tried = 0, current().local
    while True:
        condition = cond(*values)  # called even if the count has decided, as in TensorFlow's eager loop
        if not tried and _is_unknown(condition) and (limit is None or condition.dtype is dtypes.bool):
            tried = True
            results = _loop_command(cond, body, values, None if limit is None else max(limit - iteration, 0))
            if results is not None:
                return results
        if limit is not None and not isinstance(condition, bool):
            condition = call(ops.logical_and, (iteration < limit, condition))
        if (limit is not None and iteration >= limit) or not condition:
            return values if iteration else unused(Event.NO_ITERATION, body, values)
        values = body(*values)
        iteration += 1
        nest.assert_same_structure(pattern, [iteration, values] if counts else list(values))


@control
def cond(
    pred: Any, true_fn: Callable[[], Any] | None = None, false_fn: Callable[[], Any] | None = None, name: Any = None
) -> Any:
    """Calls `true_fn` or `false_fn`, and returns its unchanged result. The other function is not called.

    Raises:
        TypeError: One of them is missing, or cannot be called.
        ValueError: `pred` has several elements.

    Example:
        tf.cond(tf.constant(2.0) > 1.0, lambda: 10.0, lambda: 20.0)
    """
    if true_fn is None:
        raise TypeError("cond(): 'true_fn' argument required")
    if false_fn is None:
        raise TypeError("cond(): 'false_fn' argument required")
    if not callable(true_fn):
        raise TypeError("'true_fn' must be callable.")
    if not callable(false_fn):
        raise TypeError("'false_fn' must be callable.")
    if current().tracing and not isinstance(pred, bool):
        return _branch_step(convert_to_tensor(pred), [true_fn, false_fn])
    taken, other = (true_fn, false_fn) if _truth(pred) else (false_fn, true_fn)
    return unused(Event.UNTAKEN, other, taken())


def _branch_step(selector: Tensor, branches: Sequence[Callable[[], Any]]) -> Any:
    """Returns the branch as one step of the function that is traced: every branch is traced."""
    patterns: list[Any] = []
    packings: list[Packing] = []

    def flat(branch: Callable[[], Any]) -> list[Tensor]:
        result = branch()
        if patterns:
            try:
                nest.assert_same_structure(patterns[0], result)
            except (TypeError, ValueError) as error:
                raise TypeError(
                    "true_fn and false_fn arguments to tf.cond must have the same number, type, and overall structure "
                    f"of return values.\n\n{error}"
                ) from None
        tensors, packing = tensors_of(result)
        patterns.append(packing.structure)
        packings.append(packing)
        return tensors

    if selector.ndim:
        raise ValueError("pred must be a scalar")
    if selector.dtype is not dtypes.bool and selector.dtype.np not in INTEGER:
        selector = call(ops.not_equal, (selector, 0))
    results = loop_commands.chosen(selector, [functools.partial(flat, branch) for branch in branches])
    leaves = packings[0].leaves
    if results and any(leaf is None for leaf in leaves):
        raise NotTraceable("has a branch that returns None and tensors", "tensors alone, or None alone")
    if any(_wholes(packing) != _wholes(packings[0]) for packing in packings):
        raise NotTraceable("has branches that return composites of several structures", "composites of one structure")
    for leaf in leaves:
        if isinstance(leaf, str | bytes):
            raise NotTraceable("has a branch that returns text", "numbers")
    return packings[0].state(results)


def _wholes(packing: Packing) -> list[Whole]:
    return [leaf for leaf in packing.leaves if isinstance(leaf, Whole)]


def _truth(pred: Any) -> bool:
    if isinstance(pred, bool):
        return pred
    tensor = convert_to_tensor(pred)
    if tensor.shape.num_elements() == 0:
        raise ValueError(
            "The truth value of an empty array is ambiguous. Use `array.size > 0` to check that an array is not empty."
        )
    return bool(tensor)


def case(
    pred_fn_pairs: Any,
    default: Callable[[], Any] | None = None,
    exclusive: bool = False,
    strict: bool = False,
    name: str = "case",
) -> Any:
    """Calls the function of the first true predicate, or `default`, and returns its result.

    Args:
        pred_fn_pairs: (scalar bool tensor, function) pairs, in order.
        default: Called if no predicate is true.
        exclusive: Whether several true predicates are an error.
        strict: Whether a list of one result stays a list.
        name: Accepted, without effect.

    Raises:
        TypeError: No pairs, a predicate that is no tensor, a function that cannot be called.
        ValueError: No pairs.
        teletape.errors.InvalidArgumentError: No predicate is true without a default; several exclusive ones are.

    Example:
        tf.case([(tf.constant(False), lambda: 1.0), (tf.constant(True), lambda: 2.0)], default=lambda: 3.0)
    """
    pairs = _pairs(pred_fn_pairs, exclusive)
    if default is None:
        default = _last_resort([predicate for predicate, _ in pairs], pairs.pop()[1])
    if exclusive and pairs:
        _at_most(1, [predicate for predicate, _ in pairs], "Input error: exclusive=True")
    chosen: Callable[[], Any] = default
    for predicate, action in reversed(pairs):
        chosen = functools.partial(_chosen, predicate, action, chosen, strict)
    return chosen()


def _last_resort(predicates: Sequence[Any], action: Callable[[], Any]) -> Callable[[], Any]:
    """Returns the default of `case` without one: the last function, if its predicate is the only true one."""

    def act() -> Any:
        *others, last = predicates
        if others:
            _at_most(
                0,
                others,
                f"Implementation error: selected default action #{len(others)} was called, but some of other "
                "predicates are True: ",
            )
        debugging.Assert(last, ["Input error: None of conditions evaluated as True:", call(ops.stack, predicates)])
        return action()

    return act


def _chosen(predicate: Any, action: Callable[[], Any], otherwise: Callable[[], Any], strict: bool) -> Any:
    result = cond(predicate, action, otherwise)
    return result[0] if not strict and isinstance(result, list | tuple) and len(result) == 1 else result


def _pairs(pred_fn_pairs: Any, exclusive: bool) -> list[tuple[Any, Any]]:
    """Returns the checked (predicate, function) pairs of `case`."""
    if not isinstance(pred_fn_pairs, list | tuple | dict):
        raise TypeError(f"'pred_fn_pairs' must be a list, tuple, or dict. Received: {type(pred_fn_pairs)}")
    if isinstance(pred_fn_pairs, dict):
        if not exclusive and not isinstance(pred_fn_pairs, OrderedDict):
            raise ValueError(
                "Unordered dictionaries are not supported for the 'pred_fn_pairs' argument when `exclusive=False` and "
                "eager mode is enabled."
            )
        pred_fn_pairs = list(pred_fn_pairs.items())
    for pair in pred_fn_pairs:
        if not isinstance(pair, tuple) or len(pair) != 2:
            raise TypeError(f"Each entry in 'pred_fn_pairs' must be a 2-tuple. Received {pair}.")
        predicate, action = pair
        if not isinstance(predicate, EagerTensor):
            raise TypeError(f"pred must be a Tensor, got: {predicate}")
        if predicate.dtype is not dtypes.bool:
            raise TypeError(f"pred must be Tensor of type bool: {predicate.name}")  # TensorFlow's own AttributeError
        if not callable(action):
            raise TypeError(f"fn for pred {predicate.name} must be callable.")
    if not pred_fn_pairs:
        raise ValueError("not enough values to unpack (expected 2, got 0)")
    return list(pred_fn_pairs)


def _at_most(count: int, predicates: Sequence[Any], what: str) -> None:
    """Asserts that at most `count` predicates are true."""
    stacked = call(ops.stack, predicates)
    true = call(ops.reduce_sum, (call(ops.cast, (stacked,), dtype="int32"),))
    unnamed = ", ".join("?" * len(predicates))
    message = f"{what}: more than {count} conditions ({unnamed}) evaluated as True:"
    debugging.Assert(true <= count, [message, stacked], summarize=len(predicates))


@control
def switch_case(
    branch_index: Any, branch_fns: Any, default: Callable[[], Any] | None = None, name: str = "switch_case"
) -> Any:
    """Calls the function with this number; if there is none, `default`, and without a default the last function.

    Args:
        branch_index: A scalar integer tensor.
        branch_fns: A list of functions, (number, function) pairs, or a dict; the numbers count from 0.
        default: Called for a number without a function.
        name: Accepted, without effect.

    Raises:
        TypeError: Arguments of other kinds.
        ValueError: No functions, or numbers with a gap.
        teletape.errors.InvalidArgumentError: `branch_index` is no scalar.

    Example:
        tf.switch_case(tf.constant(1), [lambda: 10.0, lambda: 20.0])
    """
    if not isinstance(branch_index, EagerTensor):
        raise TypeError(f"'branch_index' must be a Tensor, got {type(branch_index)}")
    if branch_index.dtype.np not in INTEGER:
        raise TypeError(f"'branch_index' must be an integer Tensor, got {branch_index.dtype!s}")
    if not branch_fns:
        raise ValueError("Must provide at least one item in 'branch_fns'")
    if not isinstance(branch_fns, list | tuple | dict):
        raise TypeError("'branch_fns' must be a list, tuple, or dict")
    numbered = list(branch_fns.items() if isinstance(branch_fns, dict) else branch_fns)
    if all(callable(entry) for entry in numbered):
        numbered = list(enumerate(numbered))
    for pair in numbered:
        if not isinstance(pair, tuple) or len(pair) != 2:
            raise TypeError(f"Each entry in 'branch_fns' must be a 2-tuple. Received {pair}.")
        key, action = pair
        if not isinstance(key, int):
            raise TypeError(f"key must be a Python `int`, got {type(key)}")
        if not callable(action):
            raise TypeError(f"fn for key {key} must be callable.")
    keys = sorted(key for key, _ in numbered)
    if keys != list(range(len(keys))):
        raise ValueError(
            f"branch indices (keys) must form contiguous range of [0 to {len(keys)}) but found "
            f"{{{','.join(map(str, keys))}}}"
        )
    actions = [action for _, action in sorted(numbered, key=lambda pair: pair[0])]
    if default is not None:
        actions.append(default)
    if branch_index.ndim:
        raise InvalidArgumentError("'then' must be at least a vector, but saw shape: []")
    if current().tracing:
        return _branch_step(branch_index, actions)
    number = int(branch_index)
    return actions[number if 0 <= number < len(actions) else -1]()


# ------------------------------------------------------------------------------------------------------------- shared
def read_variables(structure: Any) -> Any:
    """Returns the structure with its variables read, once each."""
    return nest.map_structure(
        lambda leaf: as_tensor(leaf) if isinstance(leaf, Variable | VariableWrapper) else leaf, structure
    )


def as_result(leaf: Any) -> Any:
    """Returns a leaf of a loop's result as a tensor; composites and TensorArrays stay."""
    return leaf if isinstance(leaf, Composite | TensorArray) else convert_to_tensor(leaf)


def warn_of_back_prop(back_prop: bool, name: str) -> None:
    """Logs TensorFlow's deprecation of `back_prop=False`, once for each function."""
    if not back_prop:
        logs.log_first_n(
            30,
            f"tf.{name}: back_prop=False is deprecated, and has no effect. Consider using tf.stop_gradient instead:\n"
            f"results = tf.nest.map_structure(tf.stop_gradient, tf.{name}(...))",
            1,
            f"back_prop.{name}",
        )
