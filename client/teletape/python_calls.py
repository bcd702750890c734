"""`tf.numpy_function` and `tf.py_function`: Python in the middle of a program, run here and never on a server."""

from __future__ import annotations

import functools
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

import numpy as np

from teletape.derivatives.custom_gradient import custom_gradient
from teletape.derivatives.tape import GradientTape
from teletape.errors import (
    InvalidArgumentError,
    OutOfRangeError,
    ResourceExhaustedError,
    TeletapeError,
    UnimplementedError,
    UnknownError,
)
from teletape.ops import dispatch
from teletape.print_op import values
from teletape.sessions.current import current
from teletape.sessions.session import Session
from teletape.tensors import dtypes, nest
from teletape.tensors.tensor import Tensor, TensorLike
from teletape.variables.variable import Variable
from teletape_engine.recording.custom import VariableReadLog
from teletape_engine.recording.provenance import Event
from teletape_engine.recording.tape import Tape

__all__ = ["numpy_function", "py_function"]


def numpy_function(
    func: Callable[..., Any] | None = None,
    inp: Any = None,
    Tout: Any = None,
    stateful: bool = True,
    name: str | None = None,
) -> Any:
    """Calls `func` on NumPy arrays; what it returns becomes tensors again. There is no gradient through it.

    Args:
        func: Takes arrays of its own; returns an array, a number, or a structure of them. Without it: a decorator.
        inp: A list of tensors or of what becomes an array.
        Tout: Required, and without effect where ops run at once, as in TensorFlow: the result's own dtypes count.
        stateful: Without effect.
        name: Without effect.

    Returns:
        A tensor; a list of them if `func` returned several (nested ones in one list); None where it returned None.

    Raises:
        TypeError: `Tout` or `inp` is missing.
    """
    if Tout is None or func is None or inp is None:
        return _decorator(numpy_function, "tf.numpy_function", func, inp, Tout, stateful=stateful, name=name)
    given = list(inp)
    tensors = [one for one in given if isinstance(one, TensorLike)]
    read = dict(zip(map(id, tensors), values(tensors), strict=True))  # in one round trip
    found = func(*[np.array(read.get(id(one), one)) for one in given])
    results = [None if one is None else dispatch.convert_to_tensor(one) for one in nest.flatten(found)]
    recorder = current().recorder()
    for one in results:
        if one is not None:
            recorder.note(Event.LEFT, [_followed(tensor) for tensor in tensors], one.recorded.uid)
    return results[0] if len(results) == 1 else results


def _followed(one: Any) -> int:
    return one.recorded.uid  # type: ignore[no-any-return]  # a recorded value's


def py_function(
    func: Callable[..., Any] | None = None, inp: Any = None, Tout: Any = None, name: str | None = None
) -> Any:
    """Calls `func` on tensors. Gradients go through it to `inp`, once: not to what it closes over, nor a second time.

    Args:
        func: Takes tensors (of a variable its value); returns a tensor or what becomes one, a list of these, or None.
            Without it: a decorator.
        inp: A list of tensors.
        Tout: The dtype of the result, or a list of them; [] where `func` returns None.
        name: Without effect.

    Returns:
        A tensor, or a list of them where `Tout` is one.

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
    args = [dispatch.convert_to_tensor(one) for one in inp]
    wanted = [_dtype(one) for one in nest.flatten(Tout)]
    made = _linked(func, args, wanted)
    return made if isinstance(Tout, list | tuple) else made[0]


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


def _dtype(one: Any) -> dtypes.DType:
    return dtypes.as_dtype(getattr(one, "dtype", one))


def _linked(func: Callable[..., Any], args: list[Tensor], wanted: Sequence[dtypes.DType]) -> list[Any]:
    """The results; those that have gradients are bound to the arguments by a gradient of their own."""
    owner = current()
    if not owner.recorder().recorded:
        return _called(func, args, wanted)
    tape = GradientTape(persistent=True)
    made: list[Any] = []
    trained = [i for i, one in enumerate(args) if _has_gradient(one)]

    def run(*given: Tensor) -> Any:
        for i, one in zip(trained, given, strict=True):
            args[i] = one
        with _unseen(owner), tape:
            for one in given:
                tape.watch(one)
            made.extend(_called(func, args, wanted))
        outputs = [one for one in made if _has_gradient(one)]

        def grad(*dys: Any) -> Any:
            with _unseen(owner):
                found = tape.gradient(outputs, list(given), output_gradients=list(dys), unconnected_gradients="zero")
            return found[0] if len(found) == 1 else found

        return outputs, grad

    if trained and any(one.is_floating or one.is_complex for one in wanted):
        linked = iter(custom_gradient(run)(*[args[i] for i in trained]))
        return [next(linked) if _has_gradient(one) else one for one in made]
    return _called(func, args, wanted)


def _has_gradient(one: Tensor) -> bool:
    return one.dtype.is_floating or one.dtype.is_complex


def _called(func: Callable[..., Any], args: Sequence[Tensor], wanted: Sequence[dtypes.DType]) -> list[Any]:
    try:
        found = func(*args)
        results = [] if found is None else list(found) if isinstance(found, list | tuple) else [found]
        made = [_converted(one, dtype) for one, dtype in zip(results, wanted, strict=False)]
    except TeletapeError:
        raise
    except Exception as error:
        kind = next((ours for theirs, ours in _ERRORS.items() if isinstance(error, theirs)), UnknownError)
        own = error.__traceback__.tb_next if error.__traceback__ is not None else None  # from the function on
        text = "".join(traceback.format_exception(type(error), error, own))
        raise kind(f"{type(error).__name__}: {error}\n{text}") from error
    if len(made) < len(wanted):
        label = getattr(func, "__name__", "func")
        raise InvalidArgumentError(f"{label} returns {len(made)} values, but expects to see {len(wanted)} values.")
    return made


_ERRORS: Final[dict[type[Exception], type[TeletapeError]]] = {
    TypeError: InvalidArgumentError,
    ValueError: InvalidArgumentError,
    StopIteration: OutOfRangeError,
    MemoryError: ResourceExhaustedError,
    NotImplementedError: UnimplementedError,
}


def _converted(one: Any, dtype: dtypes.DType) -> Tensor:
    if isinstance(one, Variable):
        raise RuntimeError(
            "Attempting to return a variable from an eagerly executed py_func. Only numeric data structures like "
            "Tensors or NumPy arrays should be returned; to return the value of a variable, make sure to obtain the "
            f"Tensor backing it by calling `.read_value()` on the variable in question: {one}"
        )
    return dispatch.convert_to_tensor(one, dtype)


@contextmanager
def _unseen(owner: Session) -> Iterator[None]:
    """A block that no tape sees that is active before it; accumulators do. Behind it all are in their order again."""
    recorder = owner.recorder()
    opened = recorder.opened()
    tapes = [one for one in opened if isinstance(one, Tape)]
    for tape in tapes:
        if isinstance(tape, VariableReadLog):  # the session's own, which a server knows nothing of
            recorder.pause(tape)
        else:
            owner.pause_tape(tape)
    try:
        yield
    finally:
        for one in opened if tapes else ():
            if isinstance(one, VariableReadLog):
                recorder.open(one)
            elif isinstance(one, Tape):
                owner.resume_tape(one)
            else:
                owner.close_accumulator(one)
                owner.resume_accumulator(one)
