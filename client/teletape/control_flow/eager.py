"""Control flow as functions: while_loop, cond, case, switch_case. They mean what TensorFlow's eager ones mean.

A condition is a value that is read; what runs is what Python would run, and the tapes see nothing else.
"""

from __future__ import annotations

import functools
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any

from teletape import debugging, logs
from teletape.control_flow import loop_commands
from teletape.control_flow.untaken import unused
from teletape.errors import InvalidArgumentError
from teletape.functions.purity import pure
from teletape.functions.tensor_spec import spec_of
from teletape.functions.trace import NotTraceable, control
from teletape.ops.dispatch import as_tensor, call, convert_to_tensor
from teletape.sessions.current import current
from teletape.tensors import dtypes, nest
from teletape.tensors.indexed_slices import IndexedSlices
from teletape.tensors.tensor import EagerTensor, Tensor
from teletape.variables.variable import Variable
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
    """Calls `body` on the loop variables again and again, as long as `cond` of them is true.

    Args:
        cond: From the loop variables to a scalar bool.
        body: From the loop variables to a list or tuple of the next ones, of the same structure. Shapes may change.
        loop_vars: A list or tuple of tensors, or of nested structures of them.
        shape_invariants: Accepted, without effect.
        parallel_iterations: The same; from 1 up.
        back_prop: The same.
        swap_memory: The same.
        maximum_iterations: A bound on the iterations, an integer scalar; None: none.
        name: Accepted, without effect.

    Returns:
        The loop variables at the end, as tensors, in the structure that `body` gave them.

    Raises:
        TypeError: `cond` or `body` cannot be called; parallel_iterations below 1.
        ValueError: No loop variables; `body` gives another structure.
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
    limit = None if maximum_iterations is None else _count(maximum_iterations)
    if current().tracing:
        return _written_loop(cond, body, values, limit)
    return nest.map_structure(as_result, _looped(cond, body, values, limit))


def _count(maximum_iterations: Any) -> int:
    most = convert_to_tensor(maximum_iterations)
    if most.ndim != 0:
        raise ValueError(f"'maximum_iterations' must be a scalar. Received shape: {most.shape}")
    return int(most.numpy())


def _written_loop(cond: Callable[..., Any], body: Callable[..., Any], values: Any, limit: int | None) -> Any:
    """The loop as one step of the function that is being traced."""
    leaves = [convert_to_tensor(one) for one in nest.flatten(values)]

    def goes_on(*given: Any) -> Any:
        return cond(*nest.pack_sequence_as(values, given))

    def step(*given: Any) -> list[Tensor]:
        made = body(*nest.pack_sequence_as(values, given))
        if len(values) == 1 and not isinstance(made, list | tuple):  # inside functions a single value may stand alone
            made = (made,)
        nest.assert_same_structure(list(values), list(made))
        return [
            convert_to_tensor(one, dtype_hint=leaf.dtype) for one, leaf in zip(nest.flatten(made), leaves, strict=True)
        ]

    return nest.pack_sequence_as(
        values, loop_commands.repeated(goes_on, step, leaves, None if limit is None else max(limit, 0))
    )


def _sent_loop(cond: Callable[..., Any], body: Callable[..., Any], values: Any, limit: int | None) -> Any:
    """The loop as one command, where each iteration would otherwise ask the server; None: where it cannot be one.

    It is one where its functions can be seen to have no other effect, their shapes stay, and no tensor is read in them:
    then nobody can tell the difference.
    """
    if not all(_stays_in_kind(one) for one in nest.flatten(values)) or not (pure(cond) and pure(body)):
        return None

    def step(*given: Any) -> list[Tensor]:
        made = body(*nest.pack_sequence_as(values, given))
        nest.assert_same_structure(values, made)
        return [convert_to_tensor(one) for one in nest.flatten(made)]

    try:
        leaves = [convert_to_tensor(one) for one in nest.flatten(values)]
        found = loop_commands.repeated(
            lambda *given: cond(*nest.pack_sequence_as(values, given)),
            step,
            leaves,
            None if limit is None else max(limit, 0),
            choices=False,
        )
    except loop_commands.TELLING:
        return None  # iteration by iteration it may go well, or fails in its place
    return nest.pack_sequence_as(values, found)


def _stays_in_kind(leaf: Any) -> bool:
    return isinstance(leaf, EagerTensor) or leaf.__class__ is int


def _is_unknown(found: Any) -> bool:
    """Whether telling its truth asks the server."""
    return isinstance(found, EagerTensor) and not found.ndim and found.recorded.host is None


def _looped(cond: Callable[..., Any], body: Callable[..., Any], values: Any, limit: int | None) -> Any:
    outline = nest.map_structure(spec_of, list(values) if limit is None else [0, values])
    iteration, fresh = 0, not current().local
    while True:
        found = cond(*values)  # called even where the count has decided, as TensorFlow's eager loop does
        if fresh and _is_unknown(found) and (limit is None or found.dtype is dtypes.bool):
            fresh = False
            sent = _sent_loop(cond, body, values, None if limit is None else max(limit - iteration, 0))
            if sent is not None:
                return sent
        if limit is not None and not isinstance(found, bool):
            found = call(ops.logical_and, (iteration < limit, found))
        if (limit is not None and iteration >= limit) or not found:
            return values if iteration else unused(Event.NO_ITERATION, body, values)
        values = body(*values)
        iteration += 1
        nest.assert_same_structure(outline, list(values) if limit is None else [iteration, values])


@control
def cond(
    pred: Any, true_fn: Callable[[], Any] | None = None, false_fn: Callable[[], Any] | None = None, name: Any = None
) -> Any:
    """What `true_fn()` or `false_fn()` gives, as it is. The other one is not called.

    Raises:
        TypeError: One of them is missing, or cannot be called.
        ValueError: `pred` has several elements.
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
        return _written_choice(convert_to_tensor(pred), [true_fn, false_fn])
    taken, other = (true_fn, false_fn) if _truth(pred) else (false_fn, true_fn)
    return unused(Event.UNTAKEN, other, taken())


def _written_choice(selector: Tensor, branches: Sequence[Callable[[], Any]]) -> Any:
    """The choice as one step of the function that is being traced: every branch is traced."""
    patterns: list[Any] = []

    def flat(branch: Callable[[], Any]) -> list[Tensor]:
        made = branch()
        if patterns:
            try:
                nest.assert_same_structure(patterns[0], made)
            except (TypeError, ValueError) as error:
                raise TypeError(
                    "true_fn and false_fn arguments to tf.cond must have the same number, type, and overall structure "
                    f"of return values.\n\n{error}"
                ) from None
        patterns.append(nest.map_structure(lambda _: None, made))
        return [convert_to_tensor(one) for one in nest.flatten(made) if one is not None]

    if selector.ndim:
        raise ValueError("pred must be a scalar")
    if selector.dtype is not dtypes.bool and selector.dtype.np not in INTEGER:
        selector = call(ops.not_equal, (selector, 0))
    found = loop_commands.chosen(selector, [functools.partial(flat, one) for one in branches])
    if len(found) != len(nest.flatten(patterns[0])):
        raise NotTraceable("has a branch that returns None beside tensors", "tensors alone, or None alone")
    return nest.pack_sequence_as(patterns[0], found) if found else patterns[0]


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
    """What the function beside the first true predicate gives, or `default()`.

    Args:
        pred_fn_pairs: (scalar bool tensor, function) pairs, in order.
        default: Called where none is true.
        exclusive: Whether several true ones are an error.
        strict: Whether a list of one result stays a list.
        name: Accepted, without effect.

    Raises:
        TypeError: No pairs, a predicate that is no tensor, a function that cannot be called.
        ValueError: No pairs.
        teletape.errors.InvalidArgumentError: None is true and there is no default; several are, of exclusive ones.
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
    """Where there is no default: the last pair's function, if its predicate is true and no other is."""

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
    found = cond(predicate, action, otherwise)
    return found[0] if not strict and isinstance(found, list | tuple) and len(found) == 1 else found


def _pairs(given: Any, exclusive: bool) -> list[tuple[Any, Any]]:
    if not isinstance(given, list | tuple | dict):
        raise TypeError(f"'pred_fn_pairs' must be a list, tuple, or dict. Received: {type(given)}")
    if isinstance(given, dict):
        if not exclusive and not isinstance(given, OrderedDict):
            raise ValueError(
                "Unordered dictionaries are not supported for the 'pred_fn_pairs' argument when `exclusive=False` and "
                "eager mode is enabled."
            )
        given = list(given.items())
    for pair in given:
        if not isinstance(pair, tuple) or len(pair) != 2:
            raise TypeError(f"Each entry in 'pred_fn_pairs' must be a 2-tuple. Received {pair}.")
        predicate, action = pair
        if not isinstance(predicate, EagerTensor):
            raise TypeError(f"pred must be a Tensor, got: {predicate}")
        if predicate.dtype is not dtypes.bool:
            raise TypeError(f"pred must be Tensor of type bool: {predicate.name}")  # TensorFlow's own AttributeError
        if not callable(action):
            raise TypeError(f"fn for pred {predicate.name} must be callable.")
    if not given:
        raise ValueError("not enough values to unpack (expected 2, got 0)")
    return list(given)


def _at_most(count: int, predicates: Sequence[Any], what: str) -> None:
    known = call(ops.stack, predicates)
    true = call(ops.reduce_sum, (call(ops.cast, (known,), dtype="int32"),))
    unnamed = ", ".join("?" * len(predicates))
    told = f"{what}: more than {count} conditions ({unnamed}) evaluated as True:"
    debugging.Assert(true <= count, [told, known], summarize=len(predicates))


@control
def switch_case(
    branch_index: Any, branch_fns: Any, default: Callable[[], Any] | None = None, name: str = "switch_case"
) -> Any:
    """What the function of that number gives; where there is none, `default()`, and without it the last one.

    Args:
        branch_index: A scalar integer tensor.
        branch_fns: A list of functions, (number, function) pairs, or a dict; the numbers count from 0.
        default: Called for a number that has no function.
        name: Accepted, without effect.

    Raises:
        TypeError: Arguments of other kinds.
        ValueError: No functions, or numbers with a gap.
        teletape.errors.InvalidArgumentError: `branch_index` is no scalar.
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
    if all(callable(one) for one in numbered):
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
        return _written_choice(branch_index, actions)
    at = int(branch_index)
    return actions[at if 0 <= at < len(actions) else -1]()


# ------------------------------------------------------------------------------------------------------------- shared
def read_variables(structure: Any) -> Any:
    """The structure with its variables read, once each."""
    return nest.map_structure(lambda one: as_tensor(one) if isinstance(one, Variable) else one, structure)


def as_result(leaf: Any) -> Any:
    """A leaf as a loop gives it back: a tensor; slices stay slices."""
    return leaf if isinstance(leaf, IndexedSlices) else convert_to_tensor(leaf)


def warn_of_back_prop(back_prop: bool, name: str) -> None:
    """TensorFlow's deprecation, said once a function."""
    if not back_prop:
        logs.log_first_n(
            30,
            f"tf.{name}: back_prop=False is deprecated, and has no effect. Consider using tf.stop_gradient instead:\n"
            f"results = tf.nest.map_structure(tf.stop_gradient, tf.{name}(...))",
            1,
            f"back_prop.{name}",
        )
