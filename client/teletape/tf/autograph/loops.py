"""`for` and `while` of converted code: on tensors one command, on Python values a Python loop."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from teletape.core.calls.dispatch import as_tensor, call, constant, convert_to_tensor
from teletape.core.calls.operators import element_at
from teletape.core.functions.not_traceable import GOES_OVER_A_DATASET
from teletape.core.functions.trace import NotTraceable
from teletape.core.sessions.current import current
from teletape.core.tensors import nest
from teletape.core.tensors.tensor import Tensor
from teletape.tf.autograph import dataset_loops
from teletape.tf.autograph.conditionals import condition_of, known, lazily, staged
from teletape.tf.autograph.loop_state import GetState, Loop, SetState
from teletape.tf.autograph.ranges import Numbers, Range, numbers_of
from teletape.tf.autograph.state import Undefined
from teletape.tf.control_flow import loop_commands
from teletape.tf.control_flow.elements import elements_of
from teletape.tf.control_flow.growth import MOST_UNROLLED, Unbounded, ask_for, unrolled
from teletape.tf.control_flow.loop_commands import ASSIGNS_IN_SCAN
from teletape.tf.control_flow.tensor_array import TensorArray
from teletape_engine.catalogue.namespace import ops

_DATA: Final = "teletape.tf.data"  #: The package of datasets, which is above this one.
_LIMITS: Final = (
    "https://github.com/tensorflow/tensorflow/blob/master/tensorflow/python/autograph/g3doc/reference/limitations.md"
    "#consistency-of-control-flow-types for more info."
)


# -------------------------------------------------------------------------------------------------------------- while
def while_stmt(
    test: Callable[[], Any],
    body: Callable[[], None],
    get_state: GetState,
    set_state: SetState,
    symbol_names: Sequence[str],
    opts: dict[str, Any],
) -> None:
    """Runs a `while`: one command if its condition is a tensor.

    Args:
        test: Returns the condition.
        body: Runs an iteration.
        get_state: Returns the loop variables.
        set_state: Sets them.
        symbol_names: Their names.
        opts: The options of `set_loop_options`.
    """
    condition = test()
    if staged(condition):
        before = get_state()
        try:
            _staged_while(test, body, get_state, set_state, symbol_names, opts)
        except Unbounded as error:
            set_state(before)
            unrolled(test, body, _limit(opts, None), error)
        return
    while _truth(condition, "The condition of while loop started as non-Tensor, then changed to Tensor."):
        body()
        condition = test()


def _truth(condition: Any, what: str) -> bool:
    """Returns a condition of a Python loop.

    Raises:
        NotImplementedError: It is a tensor without a value.
    """
    if staged(condition) and known(condition) is None:
        raise NotImplementedError(
            f"{what} This may happen either because variables changed type, or when a break or return statement inside "
            "the loop depends on a Tensor condition. In both cases, changing to a TF loop should remove the error.\n"
            f"See {_LIMITS}"
        )
    return bool(condition)


def _staged_while(
    test: Callable[[], Any],
    body: Callable[[], None],
    get_state: GetState,
    set_state: SetState,
    names: Sequence[str],
    opts: dict[str, Any],
    most: int | None = None,
) -> None:
    """Runs a loop as one command; raises as `Loop`."""
    loop, limit = Loop(body, get_state, set_state, names, opts), _limit(opts, most)
    loop.begin(limit)

    def cond(*values: Tensor) -> Tensor:
        loop.set(values)
        return condition_of(test(), "while loop")

    loop.end(loop_commands.repeated(cond, loop.step, loop.tensors, limit))


def _limit(opts: dict[str, Any], most: int | None) -> int | None:
    limit = opts.get("maximum_iterations")
    if limit is None:
        return most
    number = int(convert_to_tensor(limit).numpy())
    return number if most is None else min(most, number)


# ---------------------------------------------------------------------------------------------------------------- for
def for_stmt(
    iter_: Any,
    extra_test: Callable[[], Any] | None,
    body: Callable[[Any], None],
    get_state: GetState,
    set_state: SetState,
    symbol_names: Sequence[str],
    opts: dict[str, Any],
) -> None:
    """Runs a `for`: one command over a tensor or `tf.range`, a Python loop over everything else.

    Args:
        iter_: The object to iterate over.
        extra_test: Returns whether it goes on, if there is a `break` or `return` inside.
        body: Runs an iteration on an element.
        get_state: Returns the loop variables.
        set_state: Sets them.
        symbol_names: Their names.
        opts: The options of `set_loop_options`, and the name of the element.
    """
    if current().tracing and (is_dataset(iter_) or is_iterator(iter_)):
        dataset_loops.over_dataset(iter_, extra_test, body, get_state, set_state, symbol_names, opts)
        return
    if isinstance(iter_, Range):
        _for_range(iter_, extra_test, body, get_state, set_state, symbol_names, opts)
    elif staged(iter_):
        _for_elements(as_tensor(iter_), extra_test, body, get_state, set_state, symbol_names, opts)
    elif extra_test is None:
        for element in iter_:
            body(element)
    else:
        what = "break and return statements which depend on a TF condition are not supported in Python for loops."
        if _truth(extra_test(), what):
            for element in iter_:
                body(element)
                if not _truth(extra_test(), what):
                    break


def is_dataset(value: Any) -> bool:
    """Whether a value is a `tf.data.Dataset`."""
    return _is_of_data(value) and hasattr(value, "as_numpy_iterator")


def is_iterator(value: Any) -> bool:
    """Whether a value is an iterator over a dataset."""
    return _is_of_data(value) and hasattr(value, "__next__")


def _is_of_data(value: Any) -> bool:
    return any(kind.__module__.startswith(_DATA) for kind in type(value).__mro__)


def _must_be_unrolled(count: int, state: Sequence[Any], opts: dict[str, Any]) -> bool:
    """Whether a loop of known length cannot be one command: a TensorArray grows in it, or a shape changes."""
    grows = any(isinstance(leaf, TensorArray) and leaf.dynamic_size for leaf in nest.flatten(list(state)))
    return count <= MOST_UNROLLED and (grows or "shape_invariants" in opts)


def _for_range(
    over: Range,
    extra_test: Callable[[], Any] | None,
    body: Callable[[Any], None],
    get_state: GetState,
    set_state: SetState,
    names: Sequence[str],
    opts: dict[str, Any],
) -> None:
    start, limit, delta = over.start, over.limit, over.delta
    count = over.count()
    if count is not None and extra_test is None and _must_be_unrolled(count, get_state(), opts):
        for number in numbers_of(over):
            body(constant(number, over.start.dtype))
        return
    before = get_state()
    at: Any = start

    def state() -> tuple[Any, ...]:
        own = [
            at if name == opts.get("iterate_names") and isinstance(value, Undefined) else value
            for name, value in zip(names, get_state(), strict=True)
        ]
        return (at, *own)

    def assign(values: Sequence[Any]) -> None:
        nonlocal at
        at = values[0]
        set_state(values[1:])

    def iteration() -> None:
        nonlocal at
        body(at)
        at = at + delta

    def test() -> Any:
        step = known_number(delta)
        if step is None:
            upward = call(ops.logical_and, (delta >= 0, at < limit))
            goes_on = call(ops.logical_or, (upward, call(ops.logical_and, (delta < 0, at > limit))))
        else:
            goes_on = at < limit if step >= 0 else at > limit
        return goes_on if extra_test is None else lazily(goes_on, extra_test, stops=False)

    try:
        _staged_while(test, iteration, state, assign, ("<internal iterate>", *names), opts, count)
    except NotTraceable as error:
        if count is None and isinstance(error, Unbounded) and (extra_test is None or not error.unrolled):
            for part in (start, limit, delta):
                ask_for(part, error.why)
        owner: Any = current()
        if error.why != GOES_OVER_A_DATASET or count is None or not owner.may_have_stages:
            raise
        error.withdraw()
        set_state(before)
        dataset_loops.over_dataset(Numbers(over), extra_test, body, get_state, set_state, names, opts)


def known_number(tensor: Tensor) -> Any:
    """Returns the value of a scalar; None: it is not known while the function is traced."""
    host = getattr(tensor.operand(), "host", None)
    return None if host is None else np.asarray(host).item()


def _for_all(
    elements: Tensor,
    body: Callable[[Any], None],
    get_state: GetState,
    set_state: SetState,
    names: Sequence[str],
    opts: dict[str, Any],
) -> None:
    """Runs a loop over all elements as one scan, whose gradient by the elements takes time n log n.

    Raises:
        NotTraceable: The body assigns to a variable.
    """
    loop = Loop(lambda: body(element), get_state, set_state, names, opts)
    element: Any = call(ops.strided_slice, (elements,), index=(0,))
    loop.begin()

    def step(carry: Sequence[Tensor], row: Sequence[Tensor]) -> tuple[list[Tensor], list[Tensor]]:
        nonlocal element
        element = row[0]
        return loop.step(*carry), []

    loop.end(loop_commands.scanned(step, loop.tensors, [elements])[0])


def _for_elements(
    elements: Tensor,
    extra_test: Callable[[], Any] | None,
    body: Callable[[Any], None],
    get_state: GetState,
    set_state: SetState,
    names: Sequence[str],
    opts: dict[str, Any],
) -> None:
    if not elements.ndim:
        raise ValueError(f"len requires a non-scalar tensor, got one of shape {elements.shape}")
    length = elements.shape.as_list()[0]
    if extra_test is None and _must_be_unrolled(length, get_state(), opts):
        for element in elements_of(elements) if length else ():
            body(element)
        return
    if extra_test is None and length and _limit(opts, None) is None:
        before = get_state()
        try:
            _for_all(elements, body, get_state, set_state, names, opts)
        except NotTraceable as error:
            if error.why != ASSIGNS_IN_SCAN:
                raise
            error.withdraw()
            set_state(before)
        else:
            return
    at: Any = constant(0)

    def state() -> tuple[Any, ...]:
        return (at, *get_state())

    def assign(values: Sequence[Any]) -> None:
        nonlocal at
        at = values[0]
        set_state(values[1:])

    def iteration() -> None:
        nonlocal at
        body(element_at(elements, at))
        at = at + 1

    def test() -> Any:
        goes_on = at < length
        return goes_on if extra_test is None else lazily(goes_on, extra_test, stops=False)

    _staged_while(test, iteration, state, assign, ("<internal iterate>", *names), opts, length)
