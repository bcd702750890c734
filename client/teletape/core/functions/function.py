"""`tf.function`: traces a Python function once for each signature; a call of it is then one command.

A function that needs the values of integers among its arguments is traced for each of them; one that cannot be traced
runs op by op, with one warning. Long because binding, tracing and methods share its
options and caches.
"""

from __future__ import annotations

import functools
import inspect
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Concatenate, Final, Generic, ParamSpec, TypeVar, overload

from teletape.core.functions.concrete import ConcreteFunction, printed_signature
from teletape.core.functions.methods import BoundFunction, converted, identity, without_self
from teletape.core.functions.not_traceable import NeedsValues
from teletape.core.functions.retracing import Retracing, TracingCount, without_shapes
from teletape.core.functions.signature import (
    ForValues,
    array_as_tensor,
    as_result,
    as_spec,
    cast_to,
    in_parts,
    key_of,
    leaves_like,
    shapes_of,
    spec_of_leaf,
)
from teletape.core.functions.tensor_spec import TensorSpec
from teletape.core.functions.trace import NotTraceable, Traced, running_through, trace, values_of
from teletape.core.functions.tracing_session import TracingSession
from teletape.core.program import logs
from teletape.core.program.tracebacks import report, reports
from teletape.core.program.user_code import add_user_code
from teletape.core.sessions.current import current, outside_traces
from teletape.core.sessions.session import Session
from teletape.core.tensors import nest
from teletape.core.tensors.tensor import EagerTensor
from teletape_engine.locks import ReentrantLock

__all__ = ["ConcreteFunction", "Function", "function", "functions_run_eagerly", "init_scope", "run_functions_eagerly"]

P = ParamSpec("P")
Q = ParamSpec("Q")
R = TypeVar("R")
T = TypeVar("T")

MOST_TRACED: Final = 1024  #: The largest number of signatures for which a function stays traced.
MOST_VALUES: Final = 16  #: The largest number of values of its integer arguments for which it is traced.

_SINGLETON: Final = (
    "tf.function only supports singleton tf.Variables created on the first call. Make sure the tf.Variable is only "
    "created once or created outside tf.function. See https://www.tensorflow.org/guide/function#creating_tfvariables "
    "for more information."
)


def refuse_variables(traced: Traced) -> None:
    """Raises ValueError if a trace has made variables, which only the first trace may do."""
    if traced.variables_made:
        raise ValueError(_SINGLETON + traced.variables_made[-1])


_run_eagerly = False


def run_functions_eagerly(run_eagerly: bool) -> None:
    """Sets whether every `tf.function` runs as the Python function that it was made from."""
    global _run_eagerly
    _run_eagerly = bool(run_eagerly)


def functions_run_eagerly() -> bool:
    """Whether functions run eagerly, as set by `run_functions_eagerly`."""
    return _run_eagerly


@contextmanager
def init_scope() -> Iterator[None]:
    """Runs a block at once, even while a function is traced."""
    with outside_traces():
        yield


@overload
def function(func: Callable[P, R], input_signature: Any = ..., *options: Any, **named: Any) -> Function[P, R]: ...
@overload
def function(
    func: None = None, input_signature: Any = ..., *options: Any, **named: Any
) -> Callable[[Callable[P, R]], Function[P, R]]: ...
def function(
    func: Callable[..., Any] | None = None,
    input_signature: Any = None,
    autograph: bool = True,
    jit_compile: bool | None = None,
    reduce_retracing: bool = False,
    experimental_implements: str | None = None,
    experimental_autograph_options: Any = None,
    experimental_attributes: Any = None,
    experimental_relax_shapes: bool | None = None,
    experimental_compile: bool | None = None,
    experimental_follow_type_hints: bool | None = None,
) -> Any:
    """Decorates a function, with or without arguments, so that each call of it is one command.

    Args:
        func: The function. It may use tapes, assign to variables, and call other such functions.
        input_signature: Specs of its arguments: other arguments are refused, and Python values become tensors.
        autograph: False: Python's control flow is not converted.
        jit_compile: Without effect.
        reduce_retracing: Whether sizes that differ between calls become unknown ones, instead of a trace for each.
        experimental_implements: Without effect.
        experimental_autograph_options: `tf.autograph.experimental.Feature`s.
        experimental_attributes: Without effect.
        experimental_relax_shapes: The old name of reduce_retracing.
        experimental_compile: Without effect.
        experimental_follow_type_hints: Without effect.

    Raises:
        TypeError: An unknown option, or a signature that is no sequence.
    """
    if input_signature is not None and not isinstance(input_signature, list | tuple):
        raise TypeError("input_signature must be either a tuple or a list, got " + type(input_signature).__name__ + ".")
    if func is None:
        return functools.partial(
            function,
            input_signature=input_signature,
            autograph=autograph,
            reduce_retracing=reduce_retracing,
            experimental_autograph_options=experimental_autograph_options,
            experimental_relax_shapes=experimental_relax_shapes,
        )
    return Function(
        func,
        input_signature,
        converts=bool(autograph),
        features=experimental_autograph_options,
        relaxes=bool(reduce_retracing or experimental_relax_shapes),
    )


class Function(Generic[P, R]):
    """A Python function that is traced at its first call with each signature.

    Attributes:
        python_function: The Python function.
        input_signature: TensorSpecs of its arguments, or None.
    """

    def __init__(
        self,
        python_function: Callable[P, R],
        input_signature: Any = None,
        *,
        converts: bool = True,
        features: Any = None,
        relaxes: bool = False,
    ) -> None:
        functools.update_wrapper(self, python_function)
        self.python_function = python_function
        self._converts, self._features, self._relaxes = converts, features, relaxes
        self.input_signature = None if input_signature is None else tuple(input_signature)
        self._signature = inspect.signature(python_function)
        self._names = tuple(self._signature.parameters)
        self._latest: Callable[[], _Traces | None] = weakref.ref(_NO_TRACES)  # those of the session of the latest call
        self._free: dict[tuple[bool, Any], Traced] = {}  # traces that use nothing of a session, by its kind and key
        self._count = TracingCount(relaxes=relaxes)
        self._arguments: dict[Any, Any] = {}  # the arguments of each trace, with TensorSpecs
        self._in_progress: set[Any] = set()
        self._needed: dict[Any, _Needed] = {}  # by signature
        self._warned = False
        self._made_variables = False
        self._lock = ReentrantLock()
        self._retracing = Retracing.of(python_function)
        self._instances: dict[int, tuple[Any, Function[..., Any]]] = {}

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        try:
            if _run_eagerly:
                return self.python_function(*args, **kwargs)
            owner = current()
            latest = self._latest() or _NO_TRACES
            if not kwargs and latest.home() is owner and self.input_signature is None:
                inputs = []
                for tensor in args:
                    if tensor.__class__ is not EagerTensor or tensor.session is not owner:
                        break
                    inputs.append(tensor.recorded)
                else:
                    quick = latest.quick.get(tuple([value.spec for value in inputs]))
                    if quick is not None:
                        self._retracing.reused()
                        return quick.call(inputs)  # type: ignore[no-any-return]  # what the function returns
            arguments = self._bind(args, kwargs, self.input_signature)
            traced, leaves = self._traced_for(arguments, owner)
            if traced is None:
                with running_through():
                    result = self.python_function(*arguments[0], **arguments[1])
                    return nest.map_structure(as_result, result)  # type: ignore[no-any-return]
            values = values_of(leaves)
            by_specs = not kwargs and not owner.tracing and not traced.known
            only_tensors = by_specs and len(leaves) == len(args) == len(arguments[0])
            if only_tensors and all(arg.__class__ is EagerTensor for arg in args):
                self._traces_in(owner).quick[tuple([value.spec for value in values])] = traced
            return traced.call(values)  # type: ignore[no-any-return]
        except BaseException as error:
            report(error)
            raise

    # ------------------------------------------------------------------------------------------------------ arguments
    def _bind(
        self, args: Sequence[Any], kwargs: Mapping[str, Any], signature: tuple[Any, ...] | None
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Returns all arguments, with defaults, as positional and keyword arguments; arrays become tensors.

        Arguments in the input signature become tensors of its specs.
        """
        try:
            bound = self._signature.bind(*args, **kwargs)
            bound.apply_defaults()
            if signature is None:
                arguments = bound.args, bound.kwargs
                return nest.map_structure(array_as_tensor, arguments)  # type: ignore[no-any-return]  # same structure
            return _as_signed(bound, signature), bound.kwargs
        except TypeError as error:
            raise TypeError(
                f"Binding inputs to tf.function failed due to `{error}`. Received args: {tuple(args)} and kwargs: "
                f"{dict(kwargs)} for signature: {self._signature_text()}."
            ) from None

    def _signature_text(self) -> str:
        texts = []
        empty = inspect.Parameter.empty
        for i, parameter in enumerate(self._signature.parameters.values()):
            if self.input_signature is not None and i < len(self.input_signature):
                texts.append(f"{parameter.name}: {self.input_signature[i]!r}")
            else:
                default = "" if parameter.default is empty else "=<captured_default_value>"
                texts.append(str(parameter.replace(default=empty, annotation=empty)) + default)
        return f"({', '.join(texts)})"

    # -------------------------------------------------------------------------------------------------------- tracing
    def _traced_for(self, arguments: Any, owner: Session) -> tuple[Traced | None, list[Any]]:
        """Returns the function traced for these arguments, and the tensors and variables among them.

        It traces a new signature. None: the function runs op by op.
        """
        leaves: list[Any] = []
        key = key_of(arguments, leaves, {})
        if self._needed and key in self._needed:
            key = self._for_values(key, leaves, owner)
        traces = self._traces_in(owner)
        traced = self._known(key, traces, owner)
        if traced is _NEW:
            with self._lock:
                traced = self._known(key, traces, owner)  # another thread may have traced it meanwhile
                if traced is _NEW:
                    return self._new(key, arguments, leaves, traces, owner), leaves
        self._retracing.reused()
        return traced, leaves

    def _traces_in(self, owner: Session) -> _Traces:
        """Returns the traces for a session, or for the session that a trace belongs to."""
        home, traces = owner.home, self._latest()
        if traces is None or traces.home() is not home:
            traces = home.traces.get(self)
            if traces is None:
                traces = home.traces.setdefault(self, _Traces(home))
            self._latest = weakref.ref(traces)
        return traces

    def _known(self, key: Any, traces: _Traces, owner: Session) -> Any:
        """Returns the traced function for these arguments; None: it runs op by op; _NEW: it is not traced yet."""
        if key is None:
            return None
        traced: Any = traces.by_key.get(key, _NEW)
        if traced is _NEW and isinstance(owner, TracingSession):
            traced = owner.inner.get((self, key), _NEW)
        if traced is _NEW and self._free and not owner.declarations:
            traced = self._free.get((owner.home.local, key), _NEW)
            if traced is not _NEW:
                traces.by_key[key] = traced
        return traced

    def _for_values(self, signature: Any, leaves: Sequence[Any], owner: Session) -> ForValues | None:
        """Returns the key of a signature with the values of the integers that the function needs.

        None, after one warning: it was traced for too many values, and runs op by op.

        Raises:
            TypeError: The integers are specs.
            NotTraceable: It was traced for too many values, and is called by a function that is traced.
        """
        needed = self._needed[signature]
        if any(isinstance(part, TensorSpec) for leaf in leaves for part in nest.flatten(leaf, expand_composites=True)):
            raise self._has_no_concrete()
        arguments = values_of(leaves)
        integers = [arguments[position] for position in needed.positions]
        if isinstance(owner, TracingSession):
            hosts: list[Any] = [owner.elements(value, needed.why, needed.advice) for value in integers]
        else:
            hosts = [getattr(value, "host", None) for value in integers]
            hosts = owner.fetch_all(integers) if any(host is None for host in hosts) else hosts
        values = tuple([int(host) for host in hosts])
        if values not in needed.values and len(needed.values) >= MOST_VALUES:
            error = NotTraceable(f"{needed.why}, for more than {MOST_VALUES} values of its arguments", needed.advice)
            if owner.tracing:
                raise error
            error.where = needed.where
            self._warn(error)
            return None
        needed.values.add(values)
        return ForValues(signature, tuple(zip(needed.positions, values, strict=True)))

    def _new(self, key: Any, arguments: Any, leaves: Sequence[Any], traces: _Traces, owner: Session) -> Traced | None:
        """Traces the function for new arguments and stores the trace; None: it runs op by op."""
        signature = key.signature if isinstance(key, ForValues) else key
        while True:
            try:
                traced = self._trace(key, arguments, traces, owner)
                break
            except NeedsValues as error:
                if error.owner is not owner:
                    raise
                error.withdraw()
                before = self._needed[signature].positions if signature in self._needed else ()
                self._needed[signature] = _Needed(error, before)
            key = self._for_values(signature, leaves, owner)
            known = self._known(key, traces, owner)
            if known is not _NEW:
                return known  # type: ignore[no-any-return]  # a Traced, or None
        if traced is None and not self._warned:
            self._count.number += 1  # the next call traces again
        elif self._count.add(signature, self._general_shapes()):
            self._retracing.traced(self.python_function)
            self._arguments[key] = nest.map_structure(as_spec, arguments)
        if traced is not None and any(
            capture.kind == "tensor" and capture.value.session.tracing for capture in traced.captures
        ):
            assert isinstance(owner, TracingSession)
            owner.inner[self, key] = traced  # it has tensors of the outer trace
        elif traced is not None or self._warned:
            self._keep(key, traces, traced, owner)
        return traced

    def _general_shapes(self) -> list[Any] | None:
        """Returns the shapes of the input signature; None: there is none."""
        if self.input_signature is None:
            return None
        shapes: list[Any] = []
        without_shapes(key_of(nest.map_structure(in_parts, self.input_signature), [], {}, general=True), shapes)
        return shapes

    def _keep(self, key: Any, traces: _Traces, traced: Traced | None, owner: Session) -> None:
        """Stores a traced function for further calls; beyond the limit the oldest is dropped, with its program.

        A trace that uses nothing of a session serves all sessions of this kind.
        """
        traces.by_key[key] = traced
        while len(traces.by_key) > MOST_TRACED:
            oldest = next(iter(traces.by_key))
            traces.by_key.pop(oldest, None)
            self._arguments.pop(oldest, None)
            self._free.pop((owner.home.local, oldest), None)
            traces.quick.clear()
        if traced is not None and not (traced.captures or traced.stages or owner.declarations):
            self._free[owner.home.local, key] = traced
            while len(self._free) > MOST_TRACED:
                self._free.pop(next(iter(self._free)), None)

    def _trace(self, key: Any, arguments: Any, traces: _Traces, owner: Session) -> Traced | None:
        """Traces the function; None, after one warning: it cannot be traced.

        Raises:
            RecursionError: It is called with arguments of this kind while it is traced for them.
            NeedsValues: It can be traced for the values of integers among the arguments.
        """
        if key in self._in_progress:
            raise RecursionError(
                f"{getattr(self.python_function, '__qualname__', self.python_function)} calls itself with arguments of "
                "the same kind while it is traced, which would never end: both branches of an `if` on a tensor are "
                "traced. Recur on Python numbers, or write a loop"
            )
        self._in_progress.add(key)
        try:
            return self._trace_once(arguments, dict(key.known) if isinstance(key, ForValues) else {}, traces, owner)
        finally:
            self._in_progress.discard(key)

    def _trace_once(self, arguments: Any, known: Mapping[int, int], traces: _Traces, owner: Session) -> Traced | None:
        args, kwargs = nest.map_structure(spec_of_leaf, arguments)
        body: Callable[..., Any] = self.python_function
        if self._converts:
            body = converted(body, self._features)
        tracing = functools.partial(trace, body, args, kwargs, self._names, defers=True, stages=True, known=known)
        try:
            traced = tracing()
            if traced.variables_made:
                if self._made_variables or traces.by_key:
                    refuse_variables(traced)
                self._made_variables = True
                traced = tracing()
                refuse_variables(traced)
                self._count.number += 1
        except NotTraceable as error:
            if owner.tracing or isinstance(error, NeedsValues):
                raise
            if not (error.once and not traces.by_key):
                self._warn(error)
            return None
        except Exception as error:
            if not owner.tracing:
                add_user_code(error)
            raise
        return traced

    def _warn(self, error: NotTraceable) -> None:
        """Warns once that the function runs op by op, with the reason."""
        if not self._warned:
            self._warned = True
            logs.get_logger().warning(
                "%s runs op by op, as if it were no tf.function: it %s at %s, and while it is traced no values are "
                "known. Use %s.",
                getattr(self.python_function, "__qualname__", self.python_function),
                error.why,
                error.where,
                error.advice,
            )

    @reports
    def get_concrete_function(self, *args: Any, **kwargs: Any) -> ConcreteFunction:
        """Returns the function traced for arguments of this kind; a spec, such as tf.TensorSpec, replaces a tensor.

        If sizes of a spec are unknown, as in every ragged one, it is traced at the first call with each shape.

        Raises:
            TypeError: It needs values while it is traced.
        """
        if not args and not kwargs and self.input_signature is not None:
            args = self.input_signature
        arguments = self._bind(args, kwargs, None)
        leaves: list[Any] = []
        tensors = nest.map_structure(in_parts, arguments)
        key = key_of(tensors, leaves, {}, general=True)
        shapes = [shape for leaf in leaves for shape in shapes_of(leaf)]
        if not all(shape.is_fully_defined() for shape in shapes):
            self._count.add(key, shapes)
            self._arguments[key] = nest.map_structure(as_spec, arguments)
            return ConcreteFunction(self, None, arguments)
        traced = self.traced_for(tensors)
        if traced.known:
            raise self._has_no_concrete()
        return ConcreteFunction(self, traced, arguments)

    def traced_for(self, arguments: Any) -> Traced:
        """Returns the function traced for arguments, (args, kwargs) with specs or tensors.

        Raises:
            TypeError: It needs values while it is traced.
        """
        traced, _ = self._traced_for(arguments, current())
        if traced is None:
            raise self._has_no_concrete()
        return traced

    @property
    def parameter_names(self) -> tuple[str, ...]:
        """The names of the Python function's parameters."""
        return self._names

    def _has_no_concrete(self) -> TypeError:
        return TypeError(
            f"{self.python_function} needs values while it is traced, so that it has no concrete function: call it"
        )

    def pretty_printed_concrete_signatures(self, verbose: bool = True) -> str:
        """Returns the signatures that the function was traced for, as text."""
        texts, by_key = [], self._traces_in(current()).by_key
        for key, arguments in list(self._arguments.items()):
            is_by_op = key in by_key and by_key[key] is None
            results = None if is_by_op else ConcreteFunction(self, by_key.get(key), arguments).structured_outputs
            texts.append(printed_signature(self._signature, arguments, results, verbose=verbose))
        return ("\n\n" if verbose else "\n").join(texts)

    def experimental_get_tracing_count(self) -> int:
        """Returns the number of times the function was traced."""
        return self._count.number

    # -------------------------------------------------------------------------------------------------------- methods
    @overload
    def __get__(self, instance: None, owner: Any = ...) -> Function[P, R]: ...
    @overload
    def __get__(self: Function[Concatenate[T, Q], R], instance: T, owner: Any = ...) -> Function[Q, R]: ...
    def __get__(self, instance: Any, owner: Any = None) -> Any:
        if instance is None:
            return self
        entry = self._instances.get(id(instance))
        if entry is None:
            key = id(instance)
            instances = self._instances
            try:
                reference: Any = weakref.ref(instance, lambda _: instances.pop(key, None))
            except TypeError:
                reference = functools.partial(identity, instance)  # a type without weak references
            method = without_self(self.python_function, reference)
            entry = self._instances[key] = (reference, self._alike(method))
        return BoundFunction(entry[1], instance)

    def _alike(self, python_function: Callable[..., Any]) -> Function[..., Any]:
        """Returns another function with the same options."""
        return Function(
            python_function,
            self.input_signature,
            converts=self._converts,
            features=self._features,
            relaxes=self._relaxes,
        )

    def __repr__(self) -> str:
        name = getattr(self.python_function, "__qualname__", repr(self.python_function))
        return f"<tf.function {name}{self._signature_text()}, traced {self._count.number} times>"


class _Traces:
    """The traces of one function in one session, which owns them.

    Attributes:
        home: Returns the session; None: it is gone.
        by_key: The traced functions by the signature of their arguments; None: it runs op by op.
        quick: The functions whose arguments are all tensors, by the tensors' specs.
    """

    __slots__ = ("__weakref__", "by_key", "home", "quick")

    def __init__(self, home: Session | None) -> None:
        self.home: Callable[[], Session | None] = (lambda: None) if home is None else weakref.ref(home)
        self.by_key: dict[Any, Traced | None] = {}
        self.quick: dict[Any, Traced] = {}


class _Needed:
    """The integers among a function's arguments whose values a trace needs.

    Args:
        error: The error of the trace.
        before: The positions that earlier traces needed.

    Attributes:
        positions: Their positions among the function's inputs.
        values: The values for which it was traced.
    """

    __slots__ = ("advice", "positions", "values", "where", "why")

    def __init__(self, error: NeedsValues, before: tuple[int, ...]) -> None:
        self.why, self.advice, self.where = error.why, error.advice, error.where
        self.positions = tuple(sorted({*before, *error.positions}))
        self.values: set[tuple[int, ...]] = set()


def _as_signed(bound: inspect.BoundArguments, signature: tuple[Any, ...]) -> tuple[Any, ...]:
    """Returns the positional arguments, with those in the input signature as tensors of its specs."""
    args = list(bound.args)
    if len(args) < len(signature):
        raise TypeError(f"input_signature has {len(signature)} specs, the function takes {len(args)} arguments")
    for i, spec in enumerate(signature):
        try:
            values = leaves_like(spec, args[i])
        except ValueError:
            raise TypeError(f"Can not cast {args[i]!r} to {spec!r}") from None
        args[i] = nest.pack_sequence_as(spec, list(map(cast_to, values, nest.flatten(spec))))
    return tuple(args)


_NEW: Final = object()
_NO_TRACES: Final = _Traces(None)
