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
from teletape.tf.autograph.loop_state import GetState, Loop, SetState, Variables
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
            _staged_while(test, body, Variables(get_state, set_state, symbol_names, opts))
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
    test: Callable[[], Any], body: Callable[[], None], variables: Variables, most: int | None = None
) -> None:
    """Runs a loop as one command; raises as `Loop`."""
    loop, limit = Loop(body, variables), _limit(variables.opts, most)
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
    variables = Variables(get_state, set_state, symbol_names, opts)
    if current().tracing and (is_dataset(iter_) or is_iterator(iter_)):
        dataset_loops.over_dataset(iter_, extra_test, body, variables)
        return
    if isinstance(iter_, Range):
        _for_range(iter_, extra_test, body, variables)
    elif staged(iter_):
        _for_elements(as_tensor(iter_), extra_test, body, variables)
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


def _must_be_unrolled(count: int, variables: Variables) -> bool:
    """Whether a loop of known length cannot be one command: a TensorArray grows in it, or a shape changes."""
    grows = any(isinstance(leaf, TensorArray) and leaf.dynamic_size for leaf in nest.flatten(list(variables.get())))
    return count <= MOST_UNROLLED and (grows or "shape_invariants" in variables.opts)


def _for_range(
    over: Range, extra_test: Callable[[], Any] | None, body: Callable[[Any], None], variables: Variables
) -> None:
    start, limit, delta = over.start, over.limit, over.delta
    count = over.count()
    if count is not None and extra_test is None and _must_be_unrolled(count, variables):
        for number in numbers_of(over):
            body(constant(number, over.start.dtype))
        return
    before = variables.get()

    def goes_on(at: Any) -> Any:
        step = known_number(delta)
        if step is not None:
            return at < limit if step >= 0 else at > limit
        upward = call(ops.logical_and, (delta >= 0, at < limit))
        return call(ops.logical_or, (upward, call(ops.logical_and, (delta < 0, at > limit))))

    def advance(at: Any) -> Any:
        body(at)
        return at + delta

    try:
        _counted(start, goes_on, advance, extra_test, variables, count, element=variables.opts.get("iterate_names"))
    except NotTraceable as error:
        if count is None and isinstance(error, Unbounded) and (extra_test is None or not error.unrolled):
            for part in (start, limit, delta):
                ask_for(part, error.why)
        owner: Any = current()
        if error.why != GOES_OVER_A_DATASET or count is None or not owner.may_have_stages:
            raise
        error.withdraw()
        variables.set(before)
        dataset_loops.over_dataset(Numbers(over), extra_test, body, variables)


def _counted(
    at: Any,
    goes_on: Callable[[Any], Any],
    advance: Callable[[Any], Any],
    extra_test: Callable[[], Any] | None,
    variables: Variables,
    most: int | None,
    element: str | None = None,
) -> None:
    """Runs a loop that has a position before its other variables; raises as `Loop`.

    Args:
        at: The first position.
        goes_on: Returns whether there is an iteration at a position.
        advance: Runs the iteration at a position, and returns the next position.
        extra_test: Returns whether it goes on, if there is a `break` or `return` inside.
        variables: The other variables.
        most: The largest number of iterations; None: not known.
        element: The name of the variable that is the position, if it has no value before the loop.
    """

    def state() -> tuple[Any, ...]:
        pairs = zip(variables.names, variables.get(), strict=True)
        return (at, *[at if name == element and isinstance(value, Undefined) else value for name, value in pairs])

    def assign(values: Sequence[Any]) -> None:
        nonlocal at
        at = values[0]
        variables.set(values[1:])

    def iteration() -> None:
        nonlocal at
        at = advance(at)

    def test() -> Any:
        within = goes_on(at)
        return within if extra_test is None else lazily(within, extra_test, stops=False)

    names = ("<internal iterate>", *variables.names)
    _staged_while(test, iteration, Variables(state, assign, names, variables.opts), most)


def known_number(tensor: Tensor) -> Any:
    """Returns the value of a scalar; None: it is not known while the function is traced."""
    host = getattr(tensor.operand(), "host", None)
    return None if host is None else np.asarray(host).item()


def _for_all(elements: Tensor, body: Callable[[Any], None], variables: Variables) -> None:
    """Runs a loop over all elements as one scan, whose gradient by the elements takes time n log n.

    Raises:
        NotTraceable: The body assigns to a variable.
    """
    loop = Loop(lambda: body(element), variables)
    element: Any = call(ops.strided_slice, (elements,), index=(0,))
    loop.begin()

    def step(carry: Sequence[Tensor], row: Sequence[Tensor]) -> tuple[list[Tensor], list[Tensor]]:
        nonlocal element
        element = row[0]
        return loop.step(*carry), []

    loop.end(loop_commands.scanned(step, loop.tensors, [elements])[0])


def _for_elements(
    elements: Tensor, extra_test: Callable[[], Any] | None, body: Callable[[Any], None], variables: Variables
) -> None:
    if not elements.ndim:
        raise ValueError(f"len requires a non-scalar tensor, got one of shape {elements.shape}")
    length = elements.shape.as_list()[0]
    if extra_test is None and _must_be_unrolled(length, variables):
        for element in elements_of(elements) if length else ():
            body(element)
        return
    if extra_test is None and length and _limit(variables.opts, None) is None:
        before = variables.get()
        try:
            _for_all(elements, body, variables)
        except NotTraceable as error:
            if error.why != ASSIGNS_IN_SCAN:
                raise
            error.withdraw()
            variables.set(before)
        else:
            return

    def advance(at: Any) -> Any:
        body(element_at(elements, at))
        return at + 1

    _counted(constant(0), lambda at: at < length, advance, extra_test, variables, length)
