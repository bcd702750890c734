"""From a Python function and the specs of its arguments to a program, and from the program's results to the function's.

What the function takes from outside (tensors, variables, random numbers) is bound anew at each call.
"""

from __future__ import annotations

import functools
import itertools
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Any, TypeVar

import numpy as np

from teletape.functions.tensor_spec import TensorSpec
from teletape.functions.tracing_session import Capture, NotTraceable, Symbol, TracingSession, bound
from teletape.ops.dispatch import as_tensor, call, constant
from teletape.sessions.current import current, inside
from teletape.sessions.session import Session
from teletape.tensors import dtypes, nest
from teletape.tensors.indexed_slices import IndexedSlices, wrap
from teletape.tensors.tensor import EagerTensor, Tensor, TensorLike
from teletape.variables.variable import Variable
from teletape_engine import commands
from teletape_engine.catalogue.namespace import ops
from teletape_engine.programs.program import Program
from teletape_engine.spec import Spec

__all__ = ["NotTraceable", "Traced", "control", "gradient_program", "running_through", "trace", "values_of"]

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True, eq=False)
class Traced:
    """A function as a program.

    Attributes:
        program: Its inputs are the arguments that are tensors or variables, and behind them the captures.
        captures: What it takes from outside.
        results: The function's result with a `_Leaf` in the place of each tensor.
        specs: Of the program's results.
        variables_made: How many variables the function made.
        deferred: What is done with values after each call, and which: what the function prints.
    """

    program: Program
    captures: tuple[Capture, ...]
    results: Any
    specs: tuple[Spec, ...]
    variables_made: int
    deferred: tuple[tuple[Callable[[Any], None], Any], ...] = ()

    def bound(self) -> list[Any]:
        """The captures as the current session's values: the program's last inputs."""
        return bound(self.captures)

    def call(self, arguments: Sequence[Any]) -> Any:
        """The function's result for these arguments (recorded values and graph variables), as one command."""
        owner = current()
        made = owner.flow(commands.CallFunction, [self.program], [*arguments, *self.bound()])
        for action, structure in self.deferred:
            action(
                nest.map_structure(lambda leaf: leaf.of(made, owner) if isinstance(leaf, _Leaf) else leaf, structure)
            )
        return self.packed(made, owner)

    def packed_specs(self) -> Any:
        """The function's result with a TensorSpec in the place of each tensor."""

        def spec(leaf: _Leaf) -> Any:
            if leaf.at:
                found = leaf.dense or self.specs[leaf.at[0]]
                return TensorSpec(found.shape, found.dtype)
            return None if leaf.host is None else TensorSpec(leaf.host.shape, dtypes.string)

        return spec(self.results) if self.results.__class__ is _Leaf else nest.map_structure(spec, self.results)

    def packed(self, made: Sequence[Any], owner: Session) -> Any:
        """The function's result from the program's."""
        if self.results.__class__ is _Leaf:
            return self.results.of(made, owner)
        return nest.map_structure(lambda leaf: leaf.of(made, owner), self.results)


@dataclass(frozen=True)
class _Leaf:
    """What stands in one place of a function's result: results of the program, or what no program holds."""

    at: tuple[int, ...] = ()
    dense: Spec | None = None
    host: Any = None

    def of(self, made: Sequence[Any], owner: Session) -> Any:
        if self.dense is not None:
            values, indices = (EagerTensor(made[i], owner) for i in self.at)
            return IndexedSlices(values, indices, constant(np.array(self.dense.shape, np.int32)))
        if self.at:
            return EagerTensor(made[self.at[0]], owner)
        return None if self.host is None else constant(self.host)


def trace(
    function: Callable[..., Any],
    specs: Sequence[Any],
    keywords: Mapping[str, Any] = MappingProxyType({}),
    names: Sequence[str] = (),
    *,
    defers: bool = False,
) -> Traced:
    """`function` as a program.

    Args:
        function: Called once, with symbolic tensors in the places of specs.
        specs: Its arguments: (nested structures of) engine Specs, which become symbolic tensors, slices of Specs, and
            variables, which it may assign to; everything else is handed to it as it is.
        keywords: The same by name.
        names: What the arguments are called.
        defers: Whether it may print: the program then has results behind the function's, which `Traced.call` prints.

    Returns:
        The program, whose inputs are the specs and variables from left to right, then the captures.

    Raises:
        NotTraceable: It needs a value to go on. It is no Exception.
        TypeError: It gives what is no tensor.
    """
    tracing = TracingSession(current(), gradient_program)
    tracing.deferred = [] if defers else None
    arguments: list[Symbol] = []

    def stand_in(leaf: Any, name: str) -> Any:
        if isinstance(leaf, Spec):
            arguments.append(tracing.recorder().symbol(leaf, f"{name}:0"))
            return EagerTensor(arguments[-1], tracing)
        if isinstance(leaf, Variable):
            slot, symbol = tracing.recorder().stand_in(leaf.recorded)
            arguments.append(symbol)
            return leaf.standing_for(slot)
        if isinstance(leaf, IndexedSlices) and isinstance(leaf.values, Spec):
            values, indices = (stand_in(one, name) for one in (leaf.values, leaf.indices))
            return IndexedSlices(values, indices, leaf.dense_shape)
        return leaf

    with inside(tracing):
        args = [
            nest.map_structure(partial(stand_in, name=name), one)
            for one, name in itertools.zip_longest(specs, names[: len(specs)], fillvalue="args")
        ]
        named = {name: nest.map_structure(partial(stand_in, name=name), keywords[name]) for name in sorted(keywords)}
        found = function(*args, **named)
        results: list[Symbol] = []
        structure = nest.map_structure(lambda leaf: _leaf(leaf, tracing, results, function), found)
        specs_found = tuple([one.spec for one in results])
        deferred = tuple(
            [
                (action, nest.map_structure(lambda leaf: _needed(leaf, tracing, results, function), given))
                for action, given in tracing.deferred or ()
            ]
        )
        program = tracing.program(arguments, results)
    return Traced(program, tuple(tracing.captures), structure, specs_found, tracing.variables_made, deferred)


def gradient_program(
    function: Callable[[Sequence[Any]], Sequence[Any]], results: Sequence[Spec], inputs: Sequence[Spec]
) -> tuple[Traced, list[bool]]:
    """The gradient function of a custom gradient as a program.

    Args:
        function: From recorded cotangents to a recorded cotangent, or None, for each input.
        results: Specs of the cotangents.
        inputs: Specs of the inputs.

    Returns:
        The program, whose results are dense and of their inputs' shapes, and for each input whether there is one.

    Raises:
        NotTraceable: It needs a value to go on.
    """
    has_gradient: list[bool] = []

    def body(*cts: Tensor) -> list[Tensor]:
        gradients = function([ct.operand() for ct in cts])
        has_gradient[:] = [gradient is not None for gradient in gradients]
        return [
            _dense(gradient, spec) for gradient, spec in zip(gradients, inputs, strict=True) if gradient is not None
        ]

    return trace(body, list(results)), has_gradient


def _dense(gradient: Any, spec: Spec) -> Tensor:
    tensor = as_tensor(wrap(gradient, current()))
    if tensor.recorded.spec is spec:
        return tensor
    return call(ops.broadcast_to, (tensor,), shape=spec.shape)


_through = threading.local()


@contextmanager
def running_through() -> Iterator[None]:
    """A block that is the body of a `tf.function` which cannot be traced."""
    before = getattr(_through, "running", False)
    _through.running = True
    try:
        yield
    finally:
        _through.running = before


def control(function: F) -> F:
    """Makes a function of control flow a program of its own where a `tf.function` is run through.

    What is connected to what is then as in TensorFlow's functions: zeros from a branch that was not taken.
    """

    @functools.wraps(function)
    def controlled(*args: Any, **kwargs: Any) -> Any:
        if getattr(_through, "running", False) and not current().tracing:
            try:
                return trace(lambda: function(*args, **kwargs), (), defers=True).call([])
            except (NotTraceable, TypeError, ValueError):
                pass  # it runs as it is, and raises what is to be raised
        return function(*args, **kwargs)

    return controlled  # type: ignore[return-value]  # the same signature


def _leaf(leaf: Any, tracing: TracingSession, results: list[Symbol], function: Any) -> _Leaf:
    if leaf is None:
        return _Leaf()
    if isinstance(leaf, IndexedSlices):
        results += [leaf.values.operand(), leaf.indices.operand()]
        shape = tuple(leaf.shape.as_list())
        return _Leaf((len(results) - 2, len(results) - 1), results[-2].spec.with_shape(shape))
    if isinstance(leaf, bool | int | float | complex | str | bytes | np.ndarray | np.generic):
        leaf = constant(leaf)
    if not isinstance(leaf, TensorLike):
        raise TypeError(
            "To be compatible with tf.function, Python functions must return zero or more Tensors or ExtensionTypes or "
            f"None values; in compilation of {function}, found return value of type {type(leaf).__name__}, which is "
            "not a Tensor or ExtensionType."
        )
    symbol = as_tensor(leaf).operand()
    if symbol.spec.dtype == object:
        return _Leaf(host=symbol.host)
    results.append(symbol)
    return _Leaf((len(results) - 1,))


def _needed(leaf: Any, tracing: TracingSession, results: list[Symbol], function: Any) -> Any:
    """A leaf of what is printed: a result of the program where it is a tensor."""
    return _leaf(leaf, tracing, results, function) if isinstance(leaf, TensorLike | IndexedSlices) else leaf


def values_of(leaves: Sequence[Any]) -> list[Any]:
    """Tensors, variables and slices among `leaves` as a program's arguments."""
    found: list[Any] = []
    for leaf in leaves:
        if isinstance(leaf, Variable):
            leaf.check_session()
            found.append(leaf.recorded)
        elif isinstance(leaf, IndexedSlices):
            found += [leaf.values.operand(), leaf.indices.operand()]
        elif isinstance(leaf, TensorLike):
            found.append(leaf.operand())
    return found
