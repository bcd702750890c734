"""Gradients of the program's own: `tf.custom_gradient`, `recompute_grad`, `grad_pass_through`, `RegisterGradient`.

The functions run here, on tensors, when a gradient is asked; a server never sees them.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any

from teletape.derivatives.arguments import UnconnectedGradients
from teletape.derivatives.custom_jvp import push
from teletape.derivatives.tape import GradientTape
from teletape.ops import dispatch
from teletape.sessions import session
from teletape.tensors import dtypes, nest
from teletape.tensors.indexed_slices import IndexedSlices, wrap
from teletape.tensors.tensor import EagerTensor, TensorLike
from teletape.variables.variable import Variable
from teletape_engine.catalogue.op import CATALOGUE
from teletape_engine.catalogue.slices import SlicesValue
from teletape_engine.derivatives.backward import Stop
from teletape_engine.errors import InternalError, InvalidArgumentError, TeletapeError
from teletape_engine.recording.custom import Watcher
from teletape_engine.recording.values import Literal
from teletape_engine.spec import Spec


def custom_gradient(f: Callable[..., Any] | None = None) -> Any:
    """A decorator: `f` computes a result and returns with it the function that makes its gradient.

    Args:
        f: A function, lambda or method `f(*args, **kwargs) -> (result, grad_fn)`. Its positional arguments and its
            result are tensors (or what becomes one), or nested structures of them; keyword arguments are as the program
            likes, and get no gradient. `grad_fn(*upstream)` takes the cotangent of each tensor of the result (zeros for
            one that was not used) and returns a cotangent, or None, for each tensor among the arguments. Where `f`
            reads variables that are no arguments of it, `grad_fn(*upstream, variables)` gets them, in the order in
            which they were made, and returns (cotangents of the arguments, [cotangent of each variable]).

    Returns:
        The function; what it gives has the structure of the result. `grad_fn` is called whenever a gradient passes it,
        with the real cotangents, which it may read; what it computes is recorded by the tapes active then.

    Raises:
        TypeError: From a call: `grad_fn` cannot be called, or takes no `variables` where there are some.
        ValueError: From `gradient`: another count of cotangents than of arguments or variables.
    """
    return custom_gradient if f is None else _Custom(f)


class _Custom:
    """What the decorator gives. A function, and bound to its object where it is got from one."""

    def __init__(self, f: Callable[..., Any], shown: Callable[..., Any] | None = None) -> None:
        functools.update_wrapper(self, f if shown is None else shown)
        self._f = f

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self if instance is None else _Custom(self._f.__get__(instance, owner))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return _call(self._f, args, kwargs)


def _call(f: Callable[..., Any], args: Sequence[Any], kwargs: Any) -> Any:
    owner = session.current()
    if owner.tracing:  # TensorFlow's graph mode hands the function the variables' values
        args = nest.map_structure(lambda one: dispatch.as_tensor(one) if isinstance(one, Variable) else one, list(args))
    recorder, watcher = owner.recorder(), Watcher()
    recorder.open(watcher)
    try:
        result, grad_fn = f(*args, **kwargs)
    finally:
        recorder.pause(watcher)
    flat = nest.flatten(list(args))
    given = [*flat, *nest.flatten(kwargs)]
    slots = sorted(watcher.variables.values(), key=lambda slot: slot.uid)
    variables = [one for one in map(Variable.of, slots) if not any(one is other for other in given)]
    _check(grad_fn, variables)
    made = [_own(one) for one in nest.flatten(result)]
    inputs = [dispatch.convert_to_tensor(one) for one in (*flat, *variables)]
    followed = [i for i, one in enumerate(inputs) if one.recorded.spec.differentiable]
    function = _gradient_function(grad_fn, len(flat), variables, [inputs[i].recorded.spec for i in followed], followed)
    label = getattr(f, "__name__", type(f).__name__)
    sources = [inputs[i].operand() for i in followed]
    found = owner.custom(sources, [one.operand() for one in made], label, function)
    if recorder.accumulators and not owner.tracing:  # in a trace it is a step, which follows by itself
        push(owner, sources, found, function)
    return nest.pack_sequence_as(result, [EagerTensor(one, owner) for one in found])


def _own(one: Any) -> EagerTensor:
    """A tensor that is nobody else's."""
    return dispatch.call(CATALOGUE["identity"], (dispatch.convert_to_tensor(one),))


def _check(grad_fn: Any, variables: Sequence[Variable]) -> None:
    if not callable(grad_fn):
        raise TypeError(f"unsupported callable: the second value that the function returns, {grad_fn!r}")
    if not variables:
        return
    try:
        parameters = inspect.signature(grad_fn).parameters
    except ValueError:  # written in C: it is for the call to find out
        return
    if "variables" not in parameters and all(one.kind is not one.VAR_KEYWORD for one in parameters.values()):
        raise TypeError(
            "@tf.custom_gradient grad_fn must accept keyword argument 'variables', since function uses variables: "
            f"{list(variables)}"
        )


def _gradient_function(
    grad_fn: Callable[..., Any],
    count: int,
    variables: list[Variable],
    specs: Sequence[Spec],
    followed: Sequence[int],
) -> Callable[[Sequence[Any]], list[Any]]:
    """`grad_fn` as the engine calls it: on recorded values, one cotangent for each input that tapes follow.

    It holds no argument of the call: what a backward pass needs is what `grad_fn` closes over.
    """

    def function(cts: Sequence[Any]) -> list[Any]:
        owner = session.current()
        upstream = [wrap(one, owner) for one in cts]
        if variables:
            input_grads, variable_grads = grad_fn(*upstream, variables=variables)
            if len(variable_grads) != len(variables):
                raise ValueError("Must return gradient for each variable from @custom_gradient grad_fn.")
        else:
            input_grads, variable_grads = grad_fn(*upstream), []
        flat = nest.flatten(input_grads)
        if len(flat) != count:
            raise ValueError(
                f"custom_gradient function expected to return {count} gradients, but returned {len(flat)} instead."
            )
        grads = [*flat, *variable_grads]
        return [_cotangent(grads[i], spec) for i, spec in zip(followed, specs, strict=True)]

    return function


def _cotangent(given: Any, spec: Spec) -> Any:
    """What a gradient function returned for an input of that spec, as a recorded value.

    Raises:
        TypeError: It is neither a tensor nor a number or array that the input's dtype can hold.
    """
    if given is None:
        return None
    if isinstance(given, IndexedSlices):
        held = getattr(given, "_slices", None)
        if isinstance(held, SlicesValue):
            return held
        rows, indices = dispatch.convert_to_tensor(given.values), dispatch.convert_to_tensor(given.indices)
        dense = spec if given.dense_shape is None else spec.with_shape(tuple(given.shape.as_list()))
        return SlicesValue(rows.operand(), indices.operand(), dense)
    if isinstance(given, TensorLike):
        return given.operand()
    wanted = dtypes.as_dtype(spec.dtype)
    try:
        return dispatch.convert_to_tensor(given, wanted).operand()
    except (TypeError, ValueError) as error:
        kind = {"float32": "float", "float64": "double"}.get(wanted.name, wanted.name)
        raise TypeError(f"Cannot convert {given!r} to EagerTensor of dtype {kind}") from error


def recompute_grad(f: Callable[..., Any]) -> Any:
    """`f`, whose intermediate results are not kept for the backward pass: it runs again when a gradient is asked.

    Args:
        f: A function of tensors, or nested structures of them, that gives a tensor or a sequence of tensors. Keyword
            arguments are passed on, and get no gradient; variables that it reads get theirs.

    Returns:
        The function. `__wrapped__` is `f`.

    Raises:
        NotImplementedError: From a call whose argument a ForwardAccumulator follows: there is nothing to follow inside.
    """

    def inner(*args: Any, **kwargs: Any) -> Any:
        _refuse_forward(f, args)
        with session.current().outside():
            result = f(*args, **kwargs)

        def grad(*upstream: Any, variables: Sequence[Variable] | None = None) -> Any:
            used = [] if variables is None else list(variables)
            with GradientTape() as tape:
                copies = nest.map_structure(lambda one: dispatch.call(CATALOGUE["identity"], (one,)), list(args))
                tape.watch(copies)
                tape.watch(used)
                again = f(*copies, **kwargs)
            grads = tape.gradient(
                again, copies + used, output_gradients=upstream, unconnected_gradients=UnconnectedGradients.ZERO
            )
            grads = nest.map_structure(dispatch.as_tensor, grads)  # dense, as TensorFlow's
            return (grads[: len(copies)], grads[len(copies) :]) if used else grads

        return result, grad

    return _Custom(functools.update_wrapper(inner, f), shown=f)


def _refuse_forward(f: Callable[..., Any], args: Sequence[Any]) -> None:
    accumulators = session.current().recorder().accumulators
    if not accumulators:
        return
    for one in nest.flatten(list(args)):
        value = one.recorded if isinstance(one, TensorLike) else None
        if value is not None and any(held.tangent(value) is not None for held in accumulators):
            name = getattr(f, "__name__", type(f).__name__)
            raise NotImplementedError(
                f"recompute_grad tried to transpose grad of {name}. Consider not using recompute_grad in forward mode "
                "autodiff"
            )


def grad_pass_through(f: Callable[..., Any]) -> Any:
    """`f`, with the gradient of an identity: what comes from behind goes to its arguments untouched.

    Args:
        f: A function with as many tensors in its result as among its positional arguments.

    Returns:
        The function. Variables that `f` reads get no gradient.
    """

    def inner(*args: Any, **kwargs: Any) -> Any:
        def grad(*upstream: Any, variables: Sequence[Variable] | None = None) -> Any:
            return upstream if variables is None else (upstream, [None] * len(variables))

        return f(*args, **kwargs), grad

    return _Custom(functools.update_wrapper(inner, f), shown=f)


class RegisterGradient:
    """A decorator: the function is the gradient of ops of a type that has none, from now on, in the current session.

    The function takes `(op, *upstream)` and returns a cotangent, or None, for each input of the op (a single one as it
    is). `op` has `type`, `inputs`, `outputs` (tuples of tensors) and `get_attr(name)`. It is called whenever a gradient
    passes such an op, also one that ran before the registration.

    Args:
        op_type: TensorFlow's op type, as `gradient registry has no entry for: …` names it.

    Raises:
        TypeError: `op_type` is no string.
        KeyError: The type is registered, or declared to have no gradient.
    """

    def __init__(self, op_type: str) -> None:
        if not isinstance(op_type, str):
            raise TypeError("op_type must be a string")
        self._op_type = op_type

    def __call__(self, f: Callable[..., Any]) -> Callable[..., Any]:
        """Registers `f`, and gives it back."""
        owner = session.current()
        try:
            owner.register_gradient(self._op_type, functools.partial(_answer, f))
        except TeletapeError as error:
            raise error.surfaced() from None
        return f


class _Op:
    """What a registered function sees of the op.

    Attributes:
        type: TensorFlow's op type.
        inputs: Its inputs.
        outputs: Its result, alone in a tuple.
    """

    def __init__(self, owner: session.Session, stop: Stop) -> None:
        self.type = stop.bound.op_type
        *inputs, result = stop.kept
        self.inputs = tuple(
            dispatch.constant(one.array, dtypes.as_dtype(spec.dtype)) if isinstance(one, Literal) else wrap(one, owner)
            for one, spec in zip(inputs, stop.bound.specs, strict=True)
        )
        self.outputs = (wrap(result, owner),)
        self._bound = stop.bound

    def get_attr(self, name: str) -> Any:
        """The op's attribute; `T` is the dtype of its first input.

        Raises:
            InvalidArgumentError: It has none of that name.
        """
        if name in self._bound.attrs:
            return self._bound.attrs[name]
        if name == "T":
            return self.inputs[0].dtype
        raise InvalidArgumentError(f"Attribute '{name}' does not exist for this operation")


def _answer(f: Callable[..., Any], stop: Stop) -> list[Any]:
    owner = session.current()
    given = f(_Op(owner, stop), *[wrap(one, owner) for one in stop.cts])
    grads = list(given) if isinstance(given, list | tuple) else [given]
    specs = stop.bound.specs
    if len(grads) != len(specs):
        raise InternalError(
            f"Recorded operation '{stop.bound.op_type}' returned too few gradients. Expected {len(specs)} but "
            f"received {len(grads)}"
        )
    return [_cotangent(one, spec) for one, spec in zip(grads, specs, strict=True)]
