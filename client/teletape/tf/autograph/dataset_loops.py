"""`for` over a dataset in converted code: a stage of the function, which calls the loop's body for each element.

As in TensorFlow, what the body reads must have a value before the loop, and no gradient passes through the loop.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final, NamedTuple

from teletape.core.calls.dispatch import convert_to_tensor
from teletape.core.functions import methods
from teletape.core.functions.function import MOST_TRACED, refuse_variables
from teletape.core.functions.step_log import Capture, bind_captures
from teletape.core.functions.trace import NotTraceable, Traced, trace
from teletape.core.sessions.current import current, inside
from teletape.core.sessions.session import Session
from teletape.core.tensors import dtypes, nest
from teletape.core.tensors.tensor import EagerTensor, Tensor
from teletape.tf.autograph.conditionals import condition_of
from teletape.tf.autograph.loop_state import Loop, Variables, check_before
from teletape.tf.ops.arrays.create import zeros
from teletape_engine.errors import InvalidArgumentError
from teletape_engine.recording.tape import Tape
from teletape_engine.spec import Spec

_BREAK: Final = "a loop with `break`"


class Element(NamedTuple):
    """The structure of a dataset's element and the specs of its tensors.

    Attributes:
        structure: The structure; its leaves do not matter.
        specs: The specs of the element's tensors.
    """

    structure: Any
    specs: tuple[Spec, ...]

    @classmethod
    def of(cls, structure: Any) -> Element:
        """Returns the structure and the specs of an element."""
        return cls(structure, tuple([tensor.recorded.spec for tensor in nest.flatten(structure)]))


def over_dataset(
    dataset: Any, extra_test: Callable[[], Any] | None, body: Callable[[Any], None], variables: Variables
) -> None:
    """Runs a `for` over a dataset while a function is traced; the arguments are `loops.for_stmt`'s.

    Raises:
        ValueError: A loop variable has no value before the loop, or changes its shape.
        TypeError: A loop variable changes its dtype or structure.
        NotImplementedError: There is a `return` in the loop.
        NotTraceable: The trace is of another loop or a branch; or the body cannot be traced.
    """
    check_before(variables.get(), variables.names)
    owner: Any = current()
    if not owner.may_have_stages:
        owner.add_host_step(None, [], [])  # raises
    first = first_element(dataset)
    if first is None:
        return
    element: Any = nest.pack_sequence_as(first.structure, [zeros(spec.shape, spec.dtype.name) for spec in first.specs])
    loop = Loop(lambda: body(element), variables)
    loop.begin()

    def step(*values: Tensor) -> list[Tensor]:
        nonlocal element
        count = len(loop.tensors)
        element = nest.pack_sequence_as(first.structure, values[count:])
        results = loop.step(*values[:count])
        return results if extra_test is None else [*results, condition_of(extra_test(), _BREAK)]

    state = [tensor.operand() for tensor in loop.tensors]
    goes_on = [] if extra_test is None else [condition_of(extra_test(), _BREAK).operand()]
    operation = _DatasetLoop(dataset, step, [value.spec for value in state], owner, stops=bool(goes_on))
    inputs = operation.prepare(first)
    results = owner.add_host_step(operation, [*state, *goes_on, *inputs], [value.spec for value in state])
    loop.end([EagerTensor(result, owner) for result in results])


def reduced(dataset: Any, initial_state: Any, function: Callable[..., Any]) -> Any:
    """Returns the last state of `dataset.reduce` while a function is traced.

    Raises:
        NotTraceable, TypeError, ValueError: As `over_dataset`.
    """
    state = nest.map_structure(convert_to_tensor, initial_state)
    converted = methods.converted(function)

    def body(element: Any) -> None:
        nonlocal state
        state = converted(state, element)

    def set_state(values: Sequence[Any]) -> None:
        nonlocal state
        (state,) = values

    over_dataset(dataset, None, body, Variables(lambda: (state,), set_state, ("state",), {}))
    return state


def first_element(source: Any) -> Element | None:
    """Returns the structure and the specs of the first element, which is not taken; None: there is none."""
    specs = nest.flatten(source.element_spec)
    if not all(hasattr(spec, "dtype") and hasattr(spec, "shape") for spec in specs):
        raise NotTraceable("goes over a dataset whose elements are no tensors", "the loop outside the function")
    if any(spec.dtype is dtypes.string for spec in specs):
        raise NotTraceable("goes over a dataset of strings", "the loop outside the function")
    if all(spec.shape.is_fully_defined() for spec in specs):
        return Element(source.element_spec, tuple([Spec.of(tuple(spec.shape), spec.dtype.np) for spec in specs]))
    try:
        iterator = inside(None, lambda: iter(source))
        return Element.of(inside(None, iterator.peek))
    except StopIteration:
        return None


class _DatasetLoop:
    """A loop over a dataset, as this process runs it.

    Args:
        source: The dataset, or what else is gone over.
        step: Takes the tensors of the loop variables and of the element, and returns the loop variables' next tensors
            and, if it stops, whether it goes on.
        state: The specs of the loop variables.
        outer: The trace that it is in.
        stops: Whether it may stop before the last element.
    """

    def __init__(
        self, source: Any, step: Callable[..., list[Tensor]], state: Sequence[Spec], outer: Any, *, stops: bool
    ) -> None:
        self._source, self._step, self._state, self._outer, self._stops = source, step, list(state), outer, stops
        self._bodies: dict[tuple[Spec, ...], Traced] = {}
        self._captured: dict[int, int] = {}  # from the uid of a capture to its index among the inputs

    def prepare(self, element: Element) -> list[Any]:
        """Traces the body for an element, and returns its captures: symbols and variables."""
        traced = self._traced(element.specs)
        inputs: list[Any] = []
        for kind, value, _ in traced.captures:
            operand = value.recorded if kind == "tensor" else value
            if kind != "state" and operand.uid not in self._captured:
                self._captured[operand.uid] = len(inputs)
                inputs.append(operand)
        return inputs

    def _traced(self, specs: tuple[Spec, ...]) -> Traced:
        """Returns the body traced for elements of these specs.

        A body that makes variables is traced twice, and the function around it once.

        Raises:
            ValueError: It makes variables each time.
        """
        traced = self._bodies.get(specs)
        if traced is None:
            if len(self._bodies) >= MOST_TRACED:
                self._bodies.pop(next(iter(self._bodies)))
            traced = self._trace(specs)
            if traced.variables_made:  # as an optimizer does in its first step
                traced = self._trace(specs)
                refuse_variables(traced)
            self._bodies[specs] = traced
        return traced

    def _trace(self, specs: tuple[Spec, ...]) -> Traced:
        """Traces the body for elements of these specs."""
        return inside(self._outer, lambda: trace(self._step, [*self._state, *specs], defers=True, stages=True))

    # -------------------------------------------------------------------------------------------------------- running
    def run(self, owner: Any, inputs: Sequence[Any]) -> list[Any]:
        """Runs the loop on the loop variables and its captures, and returns the loop variables."""
        if owner.tracing:
            return owner.add_host_step(self, inputs, self._state)  # type: ignore[no-any-return]  # symbols
        count = len(self._state)
        state, outside = list(inputs[:count]), inputs[count + self._stops :]
        if self._stops and not owner.fetch(inputs[count]):
            return state
        with _not_recorded(owner):
            for element in iter(self._source):
                operands = [tensor.operand() for tensor in nest.flatten(element)]
                traced = self._traced(tuple([operand.spec for operand in operands]))
                results = traced.results([*state, *operands, *self._bound(traced, outside)])
                state = results[:count]
                if self._stops and not owner.fetch(results[count]):
                    break
        return state

    def _bound(self, traced: Traced, outside: Sequence[Any]) -> list[Any]:
        """Returns the body's captures for one element, which has its own random numbers."""
        drawn = iter(bind_captures([capture for capture in traced.captures if capture.kind == "state"]))
        return [next(drawn) if capture.kind == "state" else self._of(capture, outside) for capture in traced.captures]

    def _of(self, capture: Capture, outside: Sequence[Any]) -> Any:
        """Returns a capture of the body: an input of the loop, or one that only a later trace of the body has."""
        value = capture.value.recorded if capture.kind == "tensor" else capture.value
        at = self._captured.get(value.uid)
        if at is not None:
            return outside[at]
        if capture.kind == "variable":
            return value
        for outer in self._outer.log.captures:
            if outer.symbol is value:
                return bind_captures([outer])[0]
        raise InvalidArgumentError(
            "the body of a loop over a dataset uses, for an element of another shape than the first, a value that the "
            "function computes before the loop and that the first did not use: use elements of one shape"
        )


@contextmanager
def _not_recorded(owner: Session) -> Iterator[None]:
    """A block in which no tape of the program records: a loop over a dataset has no gradient."""
    tapes = [tape for tape in owner.recorder().context.tapes if type(tape) is Tape]
    for tape in reversed(tapes):
        owner.pause_tape(tape)
    try:
        yield
    finally:
        for tape in tapes:
            owner.open_tape(tape)
