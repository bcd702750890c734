"""`tf.function`: a Python function that is traced once a signature into a program; a call of it is one command.

What cannot be traced runs as it is, op by op, and says so once.
"""

from __future__ import annotations

import functools
import inspect
import threading
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Concatenate, Final, Generic, ParamSpec, TypeVar, overload

from teletape import logs
from teletape.functions.retracing import Retracing
from teletape.functions.signature import (
    array_as_tensor,
    as_result,
    as_spec,
    cast_to,
    key_of,
    spec_of_leaf,
    specs_of,
)
from teletape.functions.trace import NotTraceable, Traced, running_through, trace, values_of
from teletape.ops.dispatch import convert_to_tensor
from teletape.sessions.current import current, inside
from teletape.sessions.session import Session
from teletape.tensors import nest
from teletape.tensors.indexed_slices import IndexedSlices
from teletape.tensors.tensor import EagerTensor, TensorLike
from teletape.variables.variable import Variable
from teletape_engine.errors import InvalidArgumentError
from teletape_engine.spec import KERNEL_NAMES

__all__ = ["ConcreteFunction", "Function", "function", "functions_run_eagerly", "init_scope", "run_functions_eagerly"]

P = ParamSpec("P")
Q = ParamSpec("Q")
R = TypeVar("R")
T = TypeVar("T")

_OPTIONS: Final = frozenset(
    {
        "autograph",
        "jit_compile",
        "reduce_retracing",
        "experimental_implements",
        "experimental_autograph_options",
        "experimental_attributes",
        "experimental_relax_shapes",
        "experimental_compile",
        "experimental_follow_type_hints",
    }
)
_SINGLETON: Final = (
    "tf.function only supports singleton tf.Variables created on the first call. Make sure the tf.Variable is only "
    "created once or created outside tf.function. See https://www.tensorflow.org/guide/function#creating_tfvariables "
    "for more information."
)
_eagerly = False


def run_functions_eagerly(run_eagerly: bool) -> None:
    """Whether every `tf.function` runs as the Python function that it was made of."""
    global _eagerly
    _eagerly = bool(run_eagerly)


def functions_run_eagerly() -> bool:
    """What `run_functions_eagerly` was last told."""
    return _eagerly


@contextmanager
def init_scope() -> Iterator[None]:
    """A block that runs at once, also where a function is being traced."""
    with inside(None):
        yield


@overload
def function(func: Callable[P, R], input_signature: Any = ..., **options: Any) -> Function[P, R]: ...
@overload
def function(
    func: None = None, input_signature: Any = ..., **options: Any
) -> Callable[[Callable[P, R]], Function[P, R]]: ...
def function(func: Callable[..., Any] | None = None, input_signature: Any = None, **options: Any) -> Any:
    """A decorator, with or without arguments: calls become one command each, whatever the function does.

    Args:
        func: The function. It may use tapes, assign to variables, and call other such functions.
        input_signature: TensorSpecs of its arguments: others are refused, and Python values become tensors.
        **options: TensorFlow's others (autograph, jit_compile, reduce_retracing, …): accepted, without effect.

    Raises:
        TypeError: Another option, or a signature that is no sequence.
    """
    unknown = options.keys() - _OPTIONS
    if unknown:
        raise TypeError(f"function() got an unexpected keyword argument {min(unknown)!r}")
    if input_signature is not None and not isinstance(input_signature, list | tuple):
        raise TypeError("input_signature must be either a tuple or a list, got " + type(input_signature).__name__ + ".")
    if func is None:
        return functools.partial(function, input_signature=input_signature, **options)
    return Function(func, input_signature)


class Function(Generic[P, R]):
    """What `tf.function` makes of a Python function.

    Attributes:
        python_function: The function that it was made of.
        input_signature: As given.
    """

    def __init__(self, python_function: Callable[P, R], input_signature: Any = None) -> None:
        functools.update_wrapper(self, python_function)
        self.python_function = python_function
        self.input_signature = None if input_signature is None else tuple(input_signature)
        self._signature = inspect.signature(python_function)
        self._names = tuple(self._signature.parameters)
        self._traced: dict[Any, Traced | None] = {}  # None: it runs eagerly
        self._quick: dict[Any, Traced] = {}
        self._home: Session | None = None
        self._count = 0
        self._told = False
        self._made_variables = False
        self._lock = threading.RLock()
        self._retracing = Retracing.of(python_function)
        self._instances: dict[int, tuple[Any, Function[..., Any]]] = {}

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        if _eagerly:
            return self.python_function(*args, **kwargs)
        owner = current()
        if not kwargs and self._home is owner and self.input_signature is None:
            inputs = []
            for one in args:
                if one.__class__ is not EagerTensor or one.session is not owner:
                    break
                inputs.append(one.recorded)
            else:
                quick = self._quick.get(tuple([one.spec for one in inputs]))
                if quick is not None:
                    self._retracing.reused()
                    return quick.call(inputs)  # type: ignore[no-any-return]  # what the function returns
        given = self._bind(args, kwargs)
        known, leaves = self._found(given, owner)
        if known is None:
            with running_through():
                result = self.python_function(*given[0], **given[1])
                return nest.map_structure(as_result, result)  # type: ignore[no-any-return]
        arguments = values_of(leaves)
        plain = not kwargs and not owner.tracing and len(leaves) == len(args) == len(given[0])
        if plain and all(one.__class__ is EagerTensor for one in args):
            self._quick[tuple([one.spec for one in arguments])] = known
        return known.call(arguments)  # type: ignore[no-any-return]

    # ------------------------------------------------------------------------------------------------------ arguments
    def _bind(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        try:
            bound = self._signature.bind(*args, **kwargs)
            bound.apply_defaults()
            if self.input_signature is None:
                given = bound.args, bound.kwargs
                return nest.map_structure(array_as_tensor, given)  # type: ignore[no-any-return]  # the same structure
            return self._as_signed(bound), bound.kwargs
        except TypeError as error:
            raise TypeError(
                f"Binding inputs to tf.function failed due to `{error}`. Received args: {tuple(args)} and kwargs: "
                f"{dict(kwargs)} for signature: {self._signature_text()}."
            ) from None

    def _signature_text(self) -> str:
        shown = []
        for i, one in enumerate(self._signature.parameters.values()):
            if self.input_signature is not None and i < len(self.input_signature):
                shown.append(f"{one.name}: {self.input_signature[i]!r}")
            else:
                default = "" if one.default is inspect.Parameter.empty else "=<captured_default_value>"
                shown.append(
                    str(one.replace(default=inspect.Parameter.empty, annotation=inspect.Parameter.empty)) + default
                )
        return f"({', '.join(shown)})"

    def _as_signed(self, bound: inspect.BoundArguments) -> tuple[Any, ...]:
        """The positional arguments, those in the signature as tensors of its specs."""
        signature = self.input_signature
        assert signature is not None
        args = list(bound.args)
        if len(args) < len(signature):
            raise TypeError(f"input_signature has {len(signature)} specs, the function takes {len(args)} arguments")
        for i, wanted in enumerate(signature):
            flat = nest.flatten(wanted)
            given = nest.flatten(args[i]) if nest.is_nested(wanted) else [args[i]]
            if len(flat) != len(given):
                raise TypeError(f"Can not cast {args[i]!r} to {wanted!r}")
            args[i] = nest.pack_sequence_as(wanted, [cast_to(one, spec) for one, spec in zip(given, flat, strict=True)])
        return tuple(args)

    # -------------------------------------------------------------------------------------------------------- tracing
    def _found(self, given: Any, owner: Session) -> tuple[Traced | None, list[Any]]:
        """The program for these arguments, traced if they are new, and the tensors and variables among them."""
        if self._home is not owner.home:
            self._traced, self._quick, self._home = {}, {}, owner.home
        leaves: list[Any] = []
        key = key_of(given, leaves, {})
        inner = owner.kept if owner.tracing else {}  # type: ignore[attr-defined]  # a TracingSession
        known = self._traced.get(key, _NOTHING)
        if known is _NOTHING:
            known = inner.get((self, key), _NOTHING)
        if known is not _NOTHING:
            self._retracing.reused()
            return known, leaves  # type: ignore[return-value]  # narrowed
        with self._lock:
            made = self._trace(given, owner)
        self._count += 1
        self._retracing.traced(self.python_function)
        if made is not None and any(one.kind == "tensor" and one.thing.session.tracing for one in made.captures):
            inner[self, key] = made  # it holds tensors of the trace around it
        elif made is not None or self._told:
            self._traced[key] = made
        return made, leaves

    def _trace(self, given: Any, owner: Session) -> Traced | None:
        args, kwargs = nest.map_structure(spec_of_leaf, given)
        try:
            made = trace(self.python_function, args, kwargs, self._names, defers=True)
            if made.variables_made:
                if self._made_variables or self._traced:
                    raise ValueError(_SINGLETON)
                self._made_variables = True
                made = trace(self.python_function, args, kwargs, self._names, defers=True)
                if made.variables_made:
                    raise ValueError(_SINGLETON)
        except NotTraceable as stop:
            if owner.tracing:
                raise
            if stop.once and not self._traced:
                return None
            if not self._told:
                self._told = True
                logs.get_logger().warning(
                    "%s runs op by op, as if it were no tf.function: it %s at %s, and while it is traced no values "
                    "are known. Use %s.",
                    getattr(self.python_function, "__qualname__", self.python_function),
                    stop.why,
                    stop.where,
                    stop.advice,
                )
            return None
        return made

    def get_concrete_function(self, *args: Any, **kwargs: Any) -> ConcreteFunction:
        """The function traced for arguments like these; TensorSpecs stand for tensors.

        Raises:
            TypeError: It needs values while it is traced, so that there is no program.
            ValueError: A spec whose shape is not known.
        """
        if not args and not kwargs and self.input_signature is not None:
            args = self.input_signature
        signature, self.input_signature = self.input_signature, None
        try:
            given = self._bind(args, kwargs)
        finally:
            self.input_signature = signature
        known, _ = self._found(given, current())
        if known is None:
            raise TypeError(
                f"{self.python_function} needs values while it is traced, so that it has no concrete function: call it"
            )
        return ConcreteFunction(self, known, given)

    def experimental_get_tracing_count(self) -> int:
        """How many times the function was traced."""
        return self._count

    # -------------------------------------------------------------------------------------------------------- methods
    @overload
    def __get__(self, instance: None, owner: Any = ...) -> Function[P, R]: ...
    @overload
    def __get__(self: Function[Concatenate[T, Q], R], instance: T, owner: Any = ...) -> Function[Q, R]: ...
    def __get__(self, instance: Any, owner: Any = None) -> Any:
        if instance is None:
            return self
        known = self._instances.get(id(instance))
        if known is None:
            place = id(instance)
            instances = self._instances
            try:
                weak: Any = weakref.ref(instance, lambda _: instances.pop(place, None))
            except TypeError:
                weak = functools.partial(_itself, instance)  # an object that nothing refers to weakly
            known = self._instances[place] = (weak, Function(_method(self.python_function, weak), self.input_signature))
        return _Bound(known[1], instance)

    def __repr__(self) -> str:
        return f"<{type(self).__module__}.{type(self).__qualname__} object at {id(self):#x}>"


_NOTHING: Final = object()


def _itself(thing: Any) -> Any:
    return thing


def _method(python_function: Callable[..., Any], weak: Callable[[], Any]) -> Callable[..., Any]:
    """The function with its first argument given, without keeping that alive."""

    @functools.wraps(python_function)
    def method(*args: Any, **kwargs: Any) -> Any:
        return python_function(weak(), *args, **kwargs)

    parameters = list(inspect.signature(python_function).parameters.values())[1:]
    method.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]  # read by inspect
    return method


class _Bound:
    """A Function on one object: it keeps the object alive, which the traces must not."""

    def __init__(self, function: Function[..., Any], instance: Any) -> None:
        self._function, self.__self__ = function, instance
        functools.update_wrapper(self, function)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._function(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__["_function"], name)


class ConcreteFunction:
    """A function traced for one signature.

    Attributes:
        structured_input_signature: (args, kwargs) with TensorSpecs in the places of tensors.
        structured_outputs: The result's structure with TensorSpecs.
    """

    def __init__(self, polymorphic: Function[..., Any], traced: Traced, given: Any) -> None:
        self._function, self._traced = polymorphic, traced
        names = iter(polymorphic._names)
        args = tuple([nest.map_structure(functools.partial(as_spec, name=next(names, None)), one) for one in given[0]])
        self.structured_input_signature = (args, nest.map_structure(as_spec, dict(given[1])))
        self.structured_outputs = traced.packed_specs()
        self.name = f"__inference_{getattr(polymorphic.python_function, '__name__', 'function')}"
        leaves: list[Any] = []
        key_of(given, leaves, {})
        self._wanted = [one for leaf in leaves for one in specs_of(leaf)]

    @property
    def captured_inputs(self) -> list[Any]:
        """The tensors and variables that it takes from outside."""
        found = self._traced.captures
        return [
            Variable.of(one.thing) if one.kind == "variable" else one.thing for one in found if one.kind != "number"
        ]

    @property
    def variables(self) -> tuple[Variable, ...]:
        """The variables among them."""
        return tuple(Variable.of(one.thing) for one in self._traced.captures if one.kind == "variable")

    @property
    def trainable_variables(self) -> tuple[Variable, ...]:
        """The trainable ones."""
        return tuple(one for one in self.variables if one.trainable)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The result for tensors alone, in order, or for all arguments of the Python function."""
        if kwargs or len(args) != len(self._wanted):
            given = self._function._bind(args, kwargs)
            leaves: list[Any] = []
            key_of(given, leaves, {})
        else:
            leaves = [one if isinstance(one, TensorLike | IndexedSlices) else convert_to_tensor(one) for one in args]
        arguments = values_of(leaves)
        if len(arguments) != len(self._wanted):
            raise TypeError(f"{self.name} takes {len(self._wanted)} tensors, found {len(arguments)}")
        for i, (one, wanted) in enumerate(zip(arguments, self._wanted, strict=True)):
            if one.spec.dtype is not wanted.dtype:
                raise InvalidArgumentError(
                    f"cannot compute {self.name} as input #{i}(zero-based) was expected to be a "
                    f"{KERNEL_NAMES[wanted.dtype]} tensor but is a {KERNEL_NAMES[one.spec.dtype]} tensor "
                    f"[Op:{self.name}]"
                )
        return self._traced.call(arguments)
