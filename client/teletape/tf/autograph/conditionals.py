"""`if`, `and`, `or`, `not`, conditional expressions and `assert` of converted code."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

from teletape.core.calls.dispatch import as_tensor, call, convert_to_tensor
from teletape.core.functions.trace import NotTraceable, trace
from teletape.core.sessions.current import current
from teletape.core.tensors import dtypes, nest
from teletape.core.tensors.tensor import EagerTensor, Tensor, TensorLike
from teletape.tf import debugging
from teletape.tf.autograph.state import Undefined, UndefinedReturnValue
from teletape.tf.control_flow import loop_commands
from teletape.tf.control_flow.packing import Packing, is_dynamic, tensor_of, tensors_of
from teletape_engine import commands
from teletape_engine.catalogue.namespace import ops

#: Cheap ops that refuse no values. If the right side of `and` has only such ops, it is computed in any case.
_TOTAL: Final = frozenset(
    """
    abs add cast equal greater greater_equal identity isfinite isinf isnan less less_equal logical_and logical_not
    logical_or maximum minimum mul neg not_equal reduce_all reduce_any reduce_max reduce_min reduce_sum reshape sub
    """.split()
)
_TOTAL_STEPS: Final = 12  #: The largest number of such ops.
_HINT: Final = "to check for None, use `is not None`"


def staged(condition: Any) -> bool:
    """Whether a condition is a tensor of a function that is traced."""
    return isinstance(condition, TensorLike) and current().tracing


def condition_of(value: Any, what: str) -> Tensor:
    """Returns a condition as a scalar bool.

    Raises:
        ValueError: Another dtype, or several elements.
    """
    tensor = as_tensor(value) if isinstance(value, TensorLike) else convert_to_tensor(value)
    if tensor.dtype is not dtypes.bool:
        raise ValueError(
            f"condition of {what} expected to be `tf.bool` scalar, got {tensor!s}; to use as boolean Tensor, use "
            f"`tf.cast`; {_HINT}"
        )
    if tensor.ndim:
        if tensor.recorded.spec.size > 1:
            raise ValueError(f"condition of {what} expected to be `tf.bool` scalar, got {tensor!s}; {_HINT}")
        tensor = call(ops.reshape, (tensor,), shape=())
    return tensor


def known(condition: Any) -> bool | None:
    """Returns the value of a condition; None: it is not known while the function is traced."""
    if not isinstance(condition, EagerTensor):
        return bool(condition)
    host = getattr(condition.operand(), "host", None)
    return None if host is None else bool(host)


# ----------------------------------------------------------------------------------------------------------------- if
def if_stmt(
    cond: Any,
    body: Callable[[], Any],
    orelse: Callable[[], Any],
    get_state: Callable[[], tuple[Any, ...]],
    set_state: Callable[[Sequence[Any]], None],
    symbol_names: Sequence[str],
    nouts: int,
) -> None:
    """Runs an `if`: on a tensor both branches are traced, as one command.

    Args:
        cond: The condition.
        body: Runs the main branch.
        orelse: Runs the other branch.
        get_state: Returns the variables of both.
        set_state: Sets them.
        symbol_names: Their names.
        nouts: The number of variables, the first ones, that are used afterwards.

    Raises:
        ValueError, TypeError: The branches do not agree on a variable.
    """
    if not staged(cond):
        if cond:
            body()
        else:
            orelse()
        return
    condition = condition_of(cond, "if statement")
    before = get_state()
    names = symbol_names[:nouts]

    def taken(branch: Callable[[], Any]) -> tuple[Any, ...]:
        set_state(before)
        branch()
        return tuple(get_state()[:nouts])

    try:
        after = _chosen(condition, [partial(taken, body), partial(taken, orelse)], names)
    except NotTraceable as error:
        value = known(condition)
        if value is None:
            raise
        error.withdraw()
        set_state(before)
        (body if value else orelse)()
        return
    set_state((*after, *before[nouts:]))


def _chosen(condition: Tensor, branches: Sequence[Callable[[], tuple[Any, ...]]], names: Sequence[str]) -> Any:
    """Returns the state after the branch that the condition chooses: one command."""
    states: list[tuple[Any, ...]] = []
    packings: list[Packing] = []

    def traced(branch: Callable[[], tuple[Any, ...]], which: str) -> list[Tensor]:
        state = branch()
        for name, value in zip(names, state, strict=True):
            if isinstance(value, Undefined):
                raise ValueError(f"'{name}' must also be initialized in the {which} branch")
            if isinstance(value, UndefinedReturnValue):
                raise ValueError(f"the {which} branch must also have a return statement.")
        states.append(state)
        if len(states) == 2:
            for name, first, second in zip(names, *states, strict=True):
                _check_alike(name, first, second)
        tensors, packing = tensors_of(state)
        packings.append(packing)
        return tensors

    results = loop_commands.chosen(
        condition, [partial(traced, branches[0], "main"), partial(traced, branches[1], "else")]
    )
    return packings[0].state(results)


def _check_alike(name: str, first: Any, second: Any) -> None:
    """Raises unless the two branches give a variable values of one structure and of the same dtypes."""
    try:
        nest.assert_same_structure(first, second)
    except (TypeError, ValueError) as error:
        raise TypeError(
            f"'{name}' must have the same nested structure in the main and else branches:\n\n{error}"
        ) from error
    for value, other in zip(nest.flatten(first), nest.flatten(second), strict=True):
        check_branch_values(name, value, other)


def check_branch_values(name: str, first: Any, second: Any) -> None:
    """Raises unless the same leaf of both branches has the same kind.

    Raises:
        ValueError: One of them is None.
        TypeError: Other dtypes, or an object that is not the same in both.
    """
    for value, which in ((first, "main"), (second, "else")):
        if value is None:
            raise ValueError(f"'{name}' is None at the end of the {which} branch.")
    if is_dynamic(first) and is_dynamic(second):
        dtype, other = tensor_of(first).dtype, tensor_of(second).dtype
        if dtype is not other:
            raise TypeError(
                f"'{name}' has dtype {dtype.name} in the main branch, but dtype {other.name} in the else branch"
            )
    elif type(first) is not type(second) or (is_dynamic(first) != is_dynamic(second)):
        raise TypeError(
            f"'{name}' is a {type(first).__name__} at the end of the main branch, and a {type(second).__name__} at the "
            "end of the else branch"
        )


# -------------------------------------------------------------------------------------------------------- expressions
def if_exp(cond: Any, if_true: Callable[[], Any], if_false: Callable[[], Any], expr_repr: str) -> Any:
    """Returns the value of `a if cond else b`."""
    if not staged(cond):
        return if_true() if cond else if_false()
    condition = condition_of(cond, "conditional expression")
    try:
        return _chosen(condition, [lambda: (if_true(),), lambda: (if_false(),)], [expr_repr])[0]
    except NotTraceable as error:
        value = known(condition)
        if value is None:
            raise
        error.withdraw()
        return if_true() if value else if_false()


def and_(a: Callable[[], Any], b: Callable[[], Any]) -> Any:
    """Returns `a and b`; on a tensor `b` is computed if `a` is true."""
    left = a()
    if not staged(left):
        return left and b()
    return lazily(left, b, stops=False)


def or_(a: Callable[[], Any], b: Callable[[], Any]) -> Any:
    """Returns `a or b`; on a tensor `b` is computed if `a` is false."""
    left = a()
    if not staged(left):
        return left or b()
    return lazily(left, b, stops=True)


def lazily(left: Any, right: Callable[[], Any], *, stops: bool) -> Any:
    """Returns `left and right()`, or with `stops` `left or right()`; one op if `right` is cheap."""
    condition = condition_of(left, "`or`" if stops else "`and`")
    value = known(condition)
    if value is not None:
        return condition if value is stops else right()
    traced = trace(lambda: _bool(right()), ())
    steps = traced.function.commands
    total = all(isinstance(step, commands.Call) and step.op in _TOTAL for step in steps)
    if total and len(steps) <= _TOTAL_STEPS:
        return call(ops.logical_or if stops else ops.logical_and, (condition, _bool(right())))
    branches = [lambda: [condition], lambda: [_bool(right())]]
    return loop_commands.chosen(condition, branches if stops else branches[::-1])[0]


def _bool(value: Any) -> Tensor:
    return condition_of(value, "a logical expression")


def not_(a: Any) -> Any:
    """Returns `not a`."""
    return call(ops.logical_not, (as_tensor(a),)) if staged(a) else not a


def eq(a: Any, b: Any) -> Any:
    """Returns `a == b`."""
    return a == b


def not_eq(a: Any, b: Any) -> Any:
    """Returns `a != b`."""
    return not_(eq(a, b))


def assert_stmt(condition: Any, message: Callable[[], Any]) -> None:
    """Runs `assert condition, message`; a tensor is checked at each call of the function."""
    if staged(condition):
        text = message()
        debugging.Assert(condition_of(condition, "assert"), text if isinstance(text, list) else [text])
    else:
        assert condition, message()
