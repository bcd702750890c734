"""Traces a Python function into an engine function, and turns that function's results into the Python function's.

Captures of the function (tensors, variables, random numbers) are bound again at each call.
"""

from __future__ import annotations

import functools
import itertools
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, partial
from types import MappingProxyType
from typing import Any, Final, TypeVar

import numpy as np

from teletape.core.calls.dispatch import as_tensor, call, constant
from teletape.core.functions.function_builder import Stages
from teletape.core.functions.not_traceable import NotTraceable
from teletape.core.functions.step_log import Capture, Symbol, bind_captures
from teletape.core.functions.tensor_spec import TensorSpec
from teletape.core.functions.tracing_session import TracingSession
from teletape.core.sessions.current import current, inside
from teletape.core.sessions.session import Session
from teletape.core.tensors import dtypes, nest
from teletape.core.tensors.composite import Composite, Structure, TypeSpec
from teletape.core.tensors.indexed_slices import wrap
from teletape.core.tensors.tensor import EagerTensor, Tensor, TensorLike
from teletape.core.tensors.tensor_shape import TensorShape
from teletape.core.variables.variable import Variable
from teletape_engine.catalogue.namespace import ops
from teletape_engine.functions.compile import compile_function
from teletape_engine.functions.function import Function
from teletape_engine.spec import Spec

__all__ = [
    "NotTraceable",
    "Traced",
    "control",
    "running_through",
    "runs_through",
    "trace",
    "trace_gradient",
    "values_of",
]

F = TypeVar("F", bound=Callable[..., Any])

_NONE: Final = compile_function([], [], [])  #: Replaces the engine function of a function in stages.


@dataclass(frozen=True, eq=False)
class Traced:
    """A traced function.

    Attributes:
        function: Its inputs are the tensors and variables among the arguments, and then the captures.
        captures: Values from outside that it uses.
        structure: The Python function's result with a `_Leaf` in place of each tensor.
        specs: The specs of the engine function's results.
        variables_made: The lines of the program that lead to each variable that the function made.
        deferred: The functions to run after each call, with the structures of their arguments: the function's prints.
        deferred_specs: The specs of the engine function's further results, which `deferred` needs.
        stages: The function in several stages, if it goes over a dataset; `function` is then a placeholder.
        known: The positions of integer arguments; the trace is valid only for their values.
    """

    function: Function
    captures: tuple[Capture, ...]
    structure: Any
    specs: tuple[Spec, ...]
    variables_made: tuple[str, ...]
    deferred: tuple[tuple[Callable[[Any], None], Any], ...] = ()
    deferred_specs: tuple[Spec, ...] = ()
    stages: Stages | None = None
    known: tuple[int, ...] = ()

    def bound(self) -> list[Any]:
        """Returns the captures as the current session's values: the engine function's last inputs."""
        return bind_captures(self.captures)

    def call(self, arguments: Sequence[Any]) -> Any:
        """Runs the function as one command.

        Args:
            arguments: Recorded values and variables.

        Returns:
            The Python function's result.
        """
        owner = current()
        results = self.results([*arguments, *bind_captures(self.captures)] if self.captures else arguments)
        single = self.single
        if single is not None:
            return EagerTensor(results[single], owner)
        row = self.row
        if row is not None:
            return self.structure.__class__([EagerTensor(results[index], owner) for index in row])
        return _filled(self.structure, results, owner)

    def results(self, inputs: Sequence[Any]) -> list[Any]:
        """Runs the function on its arguments and captures, and returns the engine function's results."""
        owner = current()
        if self.stages is None:
            results = owner.call_function(self.function, inputs)
        else:
            results = self.stages.run(owner, inputs)
        self.run_deferred(results, owner)
        return results

    def run_deferred(self, results: Sequence[Any], owner: Session) -> None:
        """Runs the function's prints, with the engine function's further results."""
        for action, structure in self.deferred:
            action(_filled(structure, results, owner))

    @cached_property
    def single(self) -> int | None:
        """The position of the result among the engine function's results, if the Python function returns one tensor."""
        return _position(self.structure)

    @cached_property
    def row(self) -> tuple[int, ...] | None:
        """The positions of the results among the engine function's, if it returns a tuple or list of tensors."""
        if self.structure.__class__ not in (tuple, list):
            return None
        positions = tuple([_position(leaf) for leaf in self.structure])
        return None if None in positions else positions  # type: ignore[return-value]  # narrowed

    def packed_specs(self) -> Any:
        """Returns the Python function's result with a TensorSpec in place of each tensor."""
        return nest.map_structure(lambda leaf: leaf.tensor_spec(self.specs), self.structure)


@dataclass(frozen=True)
class _Leaf:
    """One leaf of a function's result.

    Attributes:
        index: The position of a tensor among the engine function's results.
        structure: The structure of a composite.
        parts: A leaf for each tensor of a composite.
        host: The elements of strings, which an engine function cannot have. If all are None, the leaf is None.
    """

    index: int | None = None
    structure: Structure | None = None
    parts: tuple[_Leaf, ...] = ()
    host: Any = None

    def filled(self, results: Sequence[Any], owner: Session) -> Any:
        """Returns the leaf for the results of one call."""
        if self.structure is not None:
            return self.structure.of([part.filled(results, owner) for part in self.parts])
        if self.index is not None:
            return EagerTensor(results[self.index], owner)
        return None if self.host is None else constant(self.host)

    def tensor_spec(self, specs: Sequence[Spec]) -> TypeSpec | None:
        """Returns the leaf's spec; for slices and sparse tensors the spec of the dense array."""
        if self.index is not None:
            return TensorSpec(specs[self.index].shape, specs[self.index].dtype)
        if self.structure is None:
            return None if self.host is None else TensorSpec(self.host.shape, dtypes.string)
        of_parts = [Spec.of(p.host.shape, p.host.dtype) if p.index is None else specs[p.index] for p in self.parts]
        spec = self.structure.spec(of_parts)
        return spec if isinstance(spec, TypeSpec) else TensorSpec(spec.shape, spec.dtype)


def _position(leaf: Any) -> int | None:
    """Returns the position of a leaf that is a tensor among the engine function's results."""
    return leaf.index if leaf.__class__ is _Leaf else None


def _filled(structure: Any, results: Sequence[Any], owner: Session) -> Any:
    """Returns a structure with the values of one call in place of its leaves."""
    if structure.__class__ is _Leaf:
        return structure.filled(results, owner)
    return nest.map_structure(lambda leaf: leaf.filled(results, owner) if isinstance(leaf, _Leaf) else leaf, structure)


def trace(
    function: Callable[..., Any],
    specs: Sequence[Any],
    keywords: Mapping[str, Any] = MappingProxyType({}),
    names: Sequence[str] = (),
    *,
    defers: bool = False,
    stages: bool = False,
    known: Mapping[int, int] | None = None,
) -> Traced:
    """Calls a Python function once with symbolic tensors, and returns its ops as an engine function.

    Args:
        function: The Python function.
        specs: Its arguments: (nested structures of) engine Specs, which become symbolic tensors, composites of
            Specs, and variables, which it may assign to; everything else is passed unchanged.
        keywords: Its keyword arguments.
        names: The names of its arguments.
        defers: Whether it may print: the engine function then has further results, which `Traced.call` prints.
        stages: Whether it may go over a dataset; the result is then no engine function and can only be called.
        known: The values of integers among the inputs, by position; None: it cannot be traced again for such values.

    Returns:
        The function, whose inputs are the specs and variables from left to right, then the captures.

    Raises:
        NotTraceable: It needs a value, even if it has caught this exception itself.
        NeedsValues: The value follows from integers among the inputs that are not in `known`.
        TypeError: It returns a value that is no tensor.
    """
    tracing = TracingSession(current(), trace_gradient)
    tracing.deferred = [] if defers else None
    tracing.may_have_stages = stages
    tracing.known = known

    def body() -> Traced:
        symbolic = partial(_symbolic, tracing)
        args = [
            nest.map_structure(partial(symbolic, name=name), spec)
            for spec, name in itertools.zip_longest(specs, names[: len(specs)], fillvalue="args")
        ]
        kwargs = {name: nest.map_structure(partial(symbolic, name=name), keywords[name]) for name in sorted(keywords)}
        result = function(*args, **kwargs)
        if tracing.not_traceable is not None:
            raise tracing.not_traceable
        return _traced(function, result, tracing)

    try:
        return inside(tracing, body)
    except NotTraceable as error:
        error.note()  # on the outer trace: its body must not swallow the exception either
        raise


def _symbolic(tracing: TracingSession, leaf: Any, name: str) -> Any:
    """Returns the symbolic tensor, variable or composite for a leaf of the arguments; other leaves unchanged."""
    if isinstance(leaf, Spec):
        return EagerTensor(tracing.argument(leaf, name), tracing)
    if isinstance(leaf, Variable):
        local, symbol = tracing.recorder().argument_variable(leaf.recorded)
        tracing.arguments.append(symbol)
        return leaf.standing_for(local)
    if isinstance(leaf, Composite):
        return leaf.structure().of([_symbolic(tracing, part, name) for part in leaf.parts()])
    return leaf


def _traced(function: Any, result: Any, tracing: TracingSession) -> Traced:
    """Returns the traced function from its result."""
    symbols: list[Symbol] = []
    structure = nest.map_structure(lambda leaf: _leaf(leaf, symbols, function), result)
    specs = tuple([symbol.spec for symbol in symbols])
    deferred = tuple(
        [
            (action, nest.map_structure(lambda leaf: _deferred_leaf(leaf, symbols, function), values))
            for action, values in tracing.deferred or ()
        ]
    )
    deferred_specs = tuple([symbol.spec for symbol in symbols[len(specs) :]])
    stages = tracing.stages(symbols)
    traced = tracing.function(symbols) if stages is None else _NONE
    captures, variables, known = tuple(tracing.log.captures), tuple(tracing.variables_made), tuple(tracing.known or ())
    return Traced(traced, captures, structure, specs, variables, deferred, deferred_specs, stages, known)


def _leaf(leaf: Any, symbols: list[Symbol], function: Any) -> _Leaf:
    """Returns a leaf of the result, and appends its values to the engine function's results."""
    if leaf is None:
        return _Leaf()
    if isinstance(leaf, Composite):
        parts = tuple([_leaf(part, symbols, function) for part in leaf.parts()])
        return _Leaf(structure=leaf.structure(), parts=parts)
    if isinstance(leaf, bool | int | float | complex | str | bytes | np.ndarray | np.generic):
        leaf = constant(leaf)
    if isinstance(leaf, TensorShape) and leaf.is_fully_defined():
        leaf = constant(leaf.as_list(), dtypes.int32)
    if not isinstance(leaf, TensorLike):
        raise TypeError(
            "To be compatible with tf.function, Python functions must return zero or more Tensors or ExtensionTypes or "
            f"None values; in compilation of {function}, found return value of type {type(leaf).__name__}, which is "
            "not a Tensor or ExtensionType."
        )
    symbol = as_tensor(leaf).operand()
    if symbol.spec.dtype == object:
        return _Leaf(host=symbol.host)
    symbols.append(symbol)
    return _Leaf(len(symbols) - 1)


def _deferred_leaf(leaf: Any, symbols: list[Symbol], function: Any) -> Any:
    """Returns a leaf of a print's argument: a result of the engine function for a tensor, else the leaf itself."""
    return _leaf(leaf, symbols, function) if isinstance(leaf, TensorLike | Composite) else leaf


def trace_gradient(
    function: Callable[[Sequence[Any]], Sequence[Any]], results: Sequence[Spec], inputs: Sequence[Spec]
) -> tuple[Traced, list[bool]]:
    """Traces the gradient function of a custom gradient.

    Args:
        function: From recorded cotangents to a recorded cotangent, or None, for each input.
        results: Specs of the cotangents.
        inputs: Specs of the inputs.

    Returns:
        The function, whose results are dense and have their inputs' shapes, and for each input whether there is one.

    Raises:
        NotTraceable: It needs a value.
    """
    has_gradient: list[bool] = []
    failure: Exception | None = None

    def body(*cts: Tensor) -> list[Tensor]:
        if failure is not None:
            gradients: Sequence[Any] = _refused(failure, cts, inputs)
        else:
            gradients = function([ct.operand() for ct in cts])
        has_gradient[:] = [gradient is not None for gradient in gradients]
        return [
            _dense(gradient, spec) for gradient, spec in zip(gradients, inputs, strict=True) if gradient is not None
        ]

    try:
        return trace(body, list(results)), has_gradient
    except NotTraceable:
        raise
    except Exception as error:  # only a caller of the gradient needs it
        failure = error
        return trace(body, list(results)), has_gradient


def _refused(failure: Exception, cts: Sequence[Tensor], inputs: Sequence[Spec]) -> list[Any]:
    """Returns gradients of zero whose computation fails, because the gradient function has raised this exception."""
    never = abs(cts[0]) < 0
    condition = call(ops.reduce_any, (never,))
    call(ops.ensure, (condition,), message=f"the gradient function raised {type(failure).__name__}: {failure}")
    return [constant(np.zeros((), spec.dtype)).operand() for spec in inputs]


def _dense(gradient: Any, spec: Spec) -> Tensor:
    tensor = as_tensor(wrap(gradient, current()))
    if tensor.recorded.spec is spec:
        return tensor
    return call(ops.broadcast_to, (tensor,), shape=spec.shape)


_run_through = threading.local()


@contextmanager
def running_through() -> Iterator[None]:
    """A block that runs the body of a `tf.function` op by op, because it cannot be traced."""
    before = getattr(_run_through, "active", False)
    _run_through.active = True
    try:
        yield
    finally:
        _run_through.active = before


def runs_through() -> bool:
    """Whether the body of a `tf.function` that cannot be traced runs here."""
    return getattr(_run_through, "active", False)


def control(function: F) -> F:
    """Makes a function of control flow trace itself inside a `tf.function` that runs op by op.

    The gradients are then as in TensorFlow's functions: zeros from a branch that was not taken.
    """

    @functools.wraps(function)
    def controlled(*args: Any, **kwargs: Any) -> Any:
        if runs_through() and not current().tracing:
            try:
                return trace(lambda: function(*args, **kwargs), (), defers=True).call([])
            except (NotTraceable, TypeError, ValueError):
                pass  # it runs op by op, and raises its own errors
        return function(*args, **kwargs)

    return controlled  # type: ignore[return-value]  # the same signature


def values_of(leaves: Sequence[Any]) -> list[Any]:
    """Returns tensors, variables and composites among `leaves` as recorded values: a function's arguments."""
    values: list[Any] = []
    for leaf in leaves:
        if isinstance(leaf, Variable):
            leaf.check_session()
            values.append(leaf.recorded)
        elif isinstance(leaf, Composite):
            values += [part.operand() for part in leaf.parts() if part.dtype is not dtypes.string]
        elif isinstance(leaf, TensorLike):
            values.append(leaf.operand())
    return values
