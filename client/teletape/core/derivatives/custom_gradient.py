"""Gradients that the program defines: `tf.custom_gradient`, `tf.recompute_grad`, `tf.grad_pass_through`.

The functions run here, on tensors, when a gradient is computed; a server never sees them.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any, ParamSpec, TypeVar, overload

from teletape.core.calls import dispatch
from teletape.core.derivatives.arguments import UnconnectedGradients
from teletape.core.derivatives.custom_jvp import set_tangents
from teletape.core.derivatives.tape import GradientTape
from teletape.core.program.tracebacks import report
from teletape.core.sessions.current import current
from teletape.core.tensors import dtypes, nest
from teletape.core.tensors.indexed_slices import IndexedSlices, wrap
from teletape.core.tensors.tensor import EagerTensor, Tensor, TensorLike
from teletape.core.tensors.variable_wrapper import unwrapped
from teletape.core.variables.variable import Variable
from teletape_engine.catalogue.namespace import ops
from teletape_engine.catalogue.slices import SlicesValue
from teletape_engine.recording.custom import VariableReadLog
from teletape_engine.spec import KERNEL_NAMES, Spec

P = ParamSpec("P")
R = TypeVar("R")


@overload
def custom_gradient(f: Callable[P, tuple[R, Callable[..., Any]]]) -> Callable[P, R]: ...
@overload
def custom_gradient(
    f: None = None,
) -> Callable[[Callable[P, tuple[R, Callable[..., Any]]]], Callable[P, R]]: ...
def custom_gradient(f: Callable[..., Any] | None = None) -> Any:
    """Decorates a function `f` that returns its result, and a function that computes the result's gradient.

    Args:
        f: A function, lambda or method `f(*args, **kwargs) -> (result, grad_fn)`. Its positional arguments and its
            result are tensors (or what becomes one), or nested structures of them; keyword arguments can be anything,
            and get no gradient. `grad_fn(*upstream)` takes the cotangent of each tensor of the result (zeros for one
            that was not used) and returns a cotangent, or None, for each tensor among the arguments. If `f` reads
            variables that are not among its arguments, `grad_fn(*upstream, variables)` gets them, in the order in
            which they were made, and returns (cotangents of the arguments, [cotangent of each variable]).

    Returns:
        The function; it returns the structure of the result. `grad_fn` is called in each backward pass that comes to
        this call, with the real cotangents, which it may read; the tapes active then record what it computes.

    Raises:
        TypeError: From a call: `grad_fn` cannot be called, or takes no `variables` and there are some.
        ValueError: From `gradient`: another count of cotangents than of arguments or variables.

    Example:
        tf.custom_gradient(lambda x: (x * x, lambda dy: 10.0 * dy))(tf.constant(3.0))
    """
    return custom_gradient if f is None else _Custom(f)


class _Custom:
    """The decorated function; as an attribute of a class it is bound to the object, as a method is."""

    def __init__(self, f: Callable[..., Any], shown: Callable[..., Any] | None = None) -> None:
        functools.update_wrapper(self, f if shown is None else shown)
        self._f = f

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self if instance is None else _Custom(self._f.__get__(instance, owner))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        try:
            return _call(self._f, args, kwargs)
        except BaseException as error:
            report(error)
            raise


def _call(f: Callable[..., Any], args: Sequence[Any], kwargs: Any) -> Any:
    owner = current()
    if owner.tracing:  # TensorFlow's graph mode hands the function the variables' values
        args = nest.map_structure(lambda leaf: leaf.read_value() if isinstance(leaf, Variable) else leaf, list(args))
    recorder, reads = owner.recorder(), VariableReadLog()
    recorder.context.open(reads)
    try:
        result, grad_fn = f(*args, **kwargs)
    finally:
        recorder.context.pause(reads)
    flat = nest.flatten(list(args))
    passed = list(map(unwrapped, (*flat, *nest.flatten(kwargs))))
    in_order = sorted(reads.variables.values(), key=lambda variable: variable.uid)
    variables = [variable for variable in map(Variable.of, in_order) if not any(variable is leaf for leaf in passed)]
    _check_grad_fn(grad_fn, variables)
    copies = [_copy(leaf) for leaf in nest.flatten(result)]
    inputs = [dispatch.convert_to_tensor(value) for value in (*flat, *variables)]
    differentiable = [i for i, tensor in enumerate(inputs) if tensor.recorded.spec.differentiable]
    specs = [inputs[i].recorded.spec for i in differentiable]
    function = _gradient_function(grad_fn, len(flat), variables, specs, differentiable)
    label = getattr(f, "__name__", type(f).__name__)
    sources = [inputs[i].operand() for i in differentiable]
    results = owner.record_custom_call(sources, [copy.operand() for copy in copies], label, function)
    if (
        recorder.context.accumulators and not owner.tracing
    ):  # in a trace the call is a step, which has tangents by itself
        set_tangents(owner, sources, results, function)
    return nest.pack_sequence_as(result, [EagerTensor(value, owner) for value in results])


def _copy(value: Any) -> Tensor:
    """Returns a new tensor with the same value, to which the program has no other reference."""
    return dispatch.call(ops.identity, (dispatch.convert_to_tensor(value),))


def _check_grad_fn(grad_fn: Any, variables: Sequence[Variable]) -> None:
    """Raises TypeError if `grad_fn` cannot be called, or takes no `variables` although there are some."""
    if not callable(grad_fn):
        raise TypeError(f"unsupported callable: the second value that the function returns, {grad_fn!r}")
    if not variables:
        return
    try:
        parameters = inspect.signature(grad_fn).parameters
    except ValueError:  # written in C: the call will show it
        return
    if "variables" not in parameters and not any(p.kind is p.VAR_KEYWORD for p in parameters.values()):
        raise TypeError(
            "@tf.custom_gradient grad_fn must accept keyword argument 'variables', since function uses variables: "
            f"{list(variables)}"
        )


def _gradient_function(
    grad_fn: Callable[..., Any],
    count: int,
    variables: list[Variable],
    specs: Sequence[Spec],
    differentiable: Sequence[int],
) -> Callable[[Sequence[Any]], list[Any]]:
    """Returns `grad_fn` as the engine calls it: from recorded cotangents to those of the differentiable inputs.

    It holds no argument of the call: a backward pass needs only what `grad_fn` closes over.
    """

    def function(cts: Sequence[Any]) -> list[Any]:
        owner = current()
        upstream = [wrap(ct, owner) for ct in cts]
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
        return [as_cotangent(grads[i], spec) for i, spec in zip(differentiable, specs, strict=True)]

    return function


def as_cotangent(gradient: Any, spec: Spec) -> Any:
    """Returns a gradient of the program's function, for an input of this spec, as a recorded value; None stays None.

    Raises:
        TypeError: It is neither a tensor nor a number or array that the input's dtype can hold.
    """
    if gradient is None:
        return None
    if isinstance(gradient, IndexedSlices):
        if gradient.recorded is not None:
            return gradient.recorded
        rows, indices = dispatch.convert_to_tensor(gradient.values), dispatch.convert_to_tensor(gradient.indices)
        dense = spec if gradient.dense_shape is None else spec.with_shape(tuple(gradient.shape.as_list()))
        return SlicesValue(rows.operand(), indices.operand(), dense)
    if isinstance(gradient, TensorLike):
        return gradient.operand()
    dtype = dtypes.as_dtype(spec.dtype)
    try:
        return dispatch.convert_to_tensor(gradient, dtype).operand()
    except (TypeError, ValueError) as error:
        kind = KERNEL_NAMES[dtype.np]
        raise TypeError(f"Cannot convert {gradient!r} to EagerTensor of dtype {kind}") from error


def recompute_grad(f: Callable[P, R]) -> Callable[P, R]:
    """Returns `f` without its intermediate results on the tape: it runs again when a gradient is computed.

    Args:
        f: A function of tensors, or nested structures of them, that returns a tensor or a sequence of them. Keyword
            arguments are passed on, and get no gradient; variables that it reads get theirs.

    Returns:
        The function. `__wrapped__` is `f`.

    Raises:
        NotImplementedError: From a call whose argument has a tangent in an active ForwardAccumulator.

    Example:
        tf.recompute_grad(lambda x: x * x)(tf.constant(3.0))
    """

    def inner(*args: Any, **kwargs: Any) -> Any:
        _refuse_forward(f, args)
        result = current().outside(lambda: f(*args, **kwargs))

        def grad(*upstream: Any, variables: Sequence[Variable] | None = None) -> Any:
            used = [] if variables is None else list(variables)
            with GradientTape() as tape:
                copies = nest.map_structure(_copy, list(args))
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
    accumulators = current().recorder().context.accumulators
    if not accumulators:
        return
    tensors = [leaf.recorded for leaf in nest.flatten(list(args)) if isinstance(leaf, TensorLike)]
    for value in tensors:
        if any(accumulator.tangent(value) is not None for accumulator in accumulators):
            name = getattr(f, "__name__", type(f).__name__)
            raise NotImplementedError(
                f"recompute_grad tried to transpose grad of {name}. Consider not using recompute_grad in forward mode "
                "autodiff"
            )


def grad_pass_through(f: Callable[P, R]) -> Callable[P, R]:
    """Returns `f` with the gradient of an identity: the cotangents of its result become those of its arguments.

    Args:
        f: A function with as many tensors in its result as among its positional arguments.

    Returns:
        The function. Variables that `f` reads get no gradient.

    Example:
        tf.grad_pass_through(tf.round)(tf.constant(2.7))
    """

    def inner(*args: Any, **kwargs: Any) -> Any:
        def grad(*upstream: Any, variables: Sequence[Variable] | None = None) -> Any:
            return upstream if variables is None else (upstream, [None] * len(variables))

        return f(*args, **kwargs), grad

    return _Custom(functools.update_wrapper(inner, f), shown=f)
