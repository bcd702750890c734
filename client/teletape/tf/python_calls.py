"""`tf.numpy_function` and `tf.py_function`: Python functions as ops, run here and never on a server."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from teletape.core.calls import dispatch
from teletape.core.derivatives.custom_gradient import custom_gradient
from teletape.core.derivatives.custom_jvp import paused
from teletape.core.derivatives.tape import GradientTape
from teletape.core.errors import (
    InvalidArgumentError,
    OutOfRangeError,
    ResourceExhaustedError,
    TeletapeError,
    UnimplementedError,
    UnknownError,
)
from teletape.core.functions.not_traceable import NotTraceable
from teletape.core.program.tracebacks import text_in_program
from teletape.core.sessions.current import current
from teletape.core.sessions.session import Session
from teletape.core.tensors import dtypes, nest
from teletape.core.tensors.tensor import Tensor, TensorLike
from teletape.core.variables.variable import Variable
from teletape.tf.print_op import values
from teletape_engine.recording.provenance import Event
from teletape_engine.recording.tape import Tape


def numpy_function(
    func: Callable[..., Any] | None = None,
    inp: Any = None,
    Tout: Any = None,
    stateful: bool = True,
    name: str | None = None,
) -> Any:
    """Calls `func` on NumPy arrays; its results become tensors. No gradient passes through it.

    Args:
        func: Takes copies of the arrays; returns an array, a number, or a structure of them. Without it: a decorator.
        inp: A list of tensors or of values that become arrays.
        Tout: Required, and without effect if ops run at once, as in TensorFlow: the results keep their own dtypes.
        stateful: Without effect.
        name: Without effect.

    Returns:
        A tensor; a list of them if `func` returned several (nested ones in one list); None if it returned None.

    Raises:
        TypeError: `Tout` or `inp` is missing.
    """
    if Tout is None or func is None or inp is None:
        return _decorator(numpy_function, "tf.numpy_function", func, inp, Tout, stateful=stateful, name=name)
    _refuse_trace("tf.numpy_function")
    arguments = list(inp)
    tensors = [argument for argument in arguments if isinstance(argument, TensorLike)]
    arrays = dict(zip(map(id, tensors), values(tensors), strict=True))  # in one round trip
    returned = func(*[np.array(arrays.get(id(argument), argument)) for argument in arguments])
    results = [None if leaf is None else dispatch.convert_to_tensor(leaf) for leaf in nest.flatten(returned)]
    recorder = current().recorder()
    for result in results:
        if result is not None:
            recorder.provenance.note(Event.LEFT, [tensor.recorded.uid for tensor in tensors], result.recorded.uid)
    return results[0] if len(results) == 1 else results


def py_function(
    func: Callable[..., Any] | None = None, inp: Any = None, Tout: Any = None, name: str | None = None
) -> Any:
    """Calls `func` on tensors. First derivatives pass through it to `inp`, but not to its closure; second ones do not.

    Args:
        func: Takes tensors (for a variable its value); returns a tensor, a value that becomes one, a list of these, or
            None. Without it: a decorator.
        inp: A list of tensors.
        Tout: The dtype of the result, or a list of them; [] if `func` returns None.
        name: Without effect.

    Returns:
        A tensor, or a list of them if `Tout` is one.

    Raises:
        TypeError: `Tout` or `inp` is missing.
        ValueError: `func` is not callable.
        teletape.errors.OpError: `func` raised, or returned too few results: InvalidArgumentError for a ValueError or
            TypeError, OutOfRangeError for a StopIteration, UnimplementedError for a NotImplementedError,
            ResourceExhaustedError for a MemoryError, else UnknownError. The cause is attached.
    """
    if Tout is None or func is None or inp is None:
        return _decorator(py_function, "tf.py_function", func, inp, Tout, name=name)
    if not callable(func):
        raise ValueError(f"Expected func to be callable. Received func={func} of type {type(func)}.")
    _refuse_trace("tf.py_function")
    args = [dispatch.convert_to_tensor(argument) for argument in inp]
    results = _differentiable(func, args, [_dtype(spec) for spec in nest.flatten(Tout)])
    return results if isinstance(Tout, list | tuple) else results[0]


def timestamp(name: str | None = None) -> Tensor:
    """Returns the seconds since 1970 by the clock of this machine, a float64 scalar.

    Args:
        name: Without effect.
    """
    _refuse_trace("tf.timestamp")
    return dispatch.constant(time.time(), dtypes.float64)


def _refuse_trace(label: str) -> None:
    """Raises NotTraceable while a function is traced: Python has to run at each call of it."""
    if current().tracing:
        raise NotTraceable(f"calls Python with {label}", "ops, so that it is one command")


def _decorator(op: Callable[..., Any], label: str, func: Any, inp: Any, Tout: Any, **kwargs: Any) -> Any:
    if Tout is None:
        raise TypeError(
            f"Missing required argument: 'Tout'\n  If using {label} as a decorator, set `Tout`\n"
            f"  **by name** above the function:\n  `@{label}(Tout=tout)`"
        )
    if func is not None:
        raise TypeError(
            "Missing argument `inp`:\n  You must set the `inp` argument (the list of arguments to the\n"
            f"  function), unless you use `{label}` as a decorator(`func=None`)."
        )
    if inp is not None:
        raise TypeError(f"Don't set the `inp` argument when using {label} as a decorator (`func=None`).")

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def wrapped(*args: Any) -> Any:
            return op(function, inp=args, Tout=Tout, **kwargs)

        return wrapped

    return decorate


def _dtype(spec: Any) -> dtypes.DType:
    return dtypes.as_dtype(getattr(spec, "dtype", spec))


def _differentiable(func: Callable[..., Any], args: list[Tensor], result_dtypes: Sequence[dtypes.DType]) -> list[Any]:
    """Calls the function; a custom gradient connects the results that have gradients with the arguments."""
    owner = current()
    if not owner.recorder().recorded:
        return _call(func, args, result_dtypes)
    tape = GradientTape(persistent=True)
    results: list[Any] = []
    sources = [i for i, argument in enumerate(args) if _has_gradient(argument)]

    def run(*copies: Tensor) -> Any:
        for i, copy in zip(sources, copies, strict=True):
            args[i] = copy
        with paused(owner, _tapes(owner)), tape:
            for copy in copies:
                tape.watch(copy)
            results.extend(_call(func, args, result_dtypes))
        targets = [result for result in results if _has_gradient(result)]

        def grad(*upstream: Any) -> Any:
            with paused(owner, _tapes(owner)):
                gradients = tape.gradient(
                    targets, list(copies), output_gradients=list(upstream), unconnected_gradients="zero"
                )
            return gradients[0] if len(gradients) == 1 else gradients

        return targets, grad

    if sources and any(dtype.is_floating or dtype.is_complex for dtype in result_dtypes):
        connected = iter(custom_gradient(run)(*[args[i] for i in sources]))
        return [next(connected) if _has_gradient(result) else result for result in results]
    return _call(func, args, result_dtypes)


def _has_gradient(tensor: Tensor) -> bool:
    return tensor.dtype.is_floating or tensor.dtype.is_complex


def _call(func: Callable[..., Any], args: Sequence[Tensor], result_dtypes: Sequence[dtypes.DType]) -> list[Any]:
    """Calls the function and converts its results; its exceptions become TensorFlow's errors."""
    try:
        returned = func(*args)
        values = [] if returned is None else list(returned) if isinstance(returned, list | tuple) else [returned]
        results = [_converted(value, dtype) for value, dtype in zip(values, result_dtypes, strict=False)]
    except TeletapeError:
        raise
    except Exception as error:
        kind = next((ours for theirs, ours in _ERRORS.items() if isinstance(error, theirs)), UnknownError)
        raise kind(text_in_program(error)) from error
    if len(results) < len(result_dtypes):
        label = getattr(func, "__name__", "func")
        raise InvalidArgumentError(
            f"{label} returns {len(results)} values, but expects to see {len(result_dtypes)} values."
        )
    return results


_ERRORS: Final[dict[type[Exception], type[TeletapeError]]] = {
    TypeError: InvalidArgumentError,
    ValueError: InvalidArgumentError,
    StopIteration: OutOfRangeError,
    MemoryError: ResourceExhaustedError,
    NotImplementedError: UnimplementedError,
}


def _converted(value: Any, dtype: dtypes.DType) -> Tensor:
    if isinstance(value, Variable):
        raise RuntimeError(
            "Attempting to return a variable from an eagerly executed py_func. Only numeric data structures like "
            "Tensors or NumPy arrays should be returned; to return the value of a variable, make sure to obtain the "
            f"Tensor backing it by calling `.read_value()` on the variable in question: {value}"
        )
    return dispatch.convert_to_tensor(value, dtype)


def _tapes(owner: Session) -> list[Any]:
    """The active tapes of this thread."""
    return [context for context in owner.recorder().context.opened() if isinstance(context, Tape)]
