"""What a program gives to a question about derivatives, checked, and as a tape or an accumulator knows it."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import Any

from teletape.ops import arrays, dispatch
from teletape.sessions import session
from teletape.tensors import dtypes, nest
from teletape.tensors.dtypes import DType
from teletape.tensors.indexed_slices import IndexedSlices
from teletape.tensors.tensor import EagerTensor, TensorLike
from teletape.variables.variable import Variable
from teletape_engine.derivatives.jacobian import Options
from teletape_engine.errors import InvalidArgumentError


class UnconnectedGradients(enum.Enum):
    """What `gradient` gives for a source that the target does not depend on."""

    NONE = "none"
    ZERO = "zero"


def zeros_wanted(unconnected: Any) -> bool:
    """Whether an unconnected source is to get zeros; ValueError for what is no `UnconnectedGradients`."""
    try:
        return UnconnectedGradients(unconnected) is UnconnectedGradients.ZERO
    except ValueError:
        raise ValueError(f"Unknown value for unconnected_gradients: {unconnected!r}") from None


def differentiated(one: Any, what: str) -> Any:
    """A target or source that is a tensor, a variable or slices.

    Raises:
        TypeError: Anything else; None and strings with TensorFlow's text.
    """
    if isinstance(one, EagerTensor | Variable | IndexedSlices):
        return one
    if one is None or isinstance(one, str):
        dtypes.as_dtype(one)
    if one is None or isinstance(one, str | DType):
        raise TypeError(f"Cannot convert the argument `type_value`: {one!r} to a TensorFlow DType.")
    advice = (
        "tf.constant makes a tensor of it" if what == "target" else "pass the tensor or variable it was computed from"
    )
    raise TypeError(
        f"a {what} must be a Tensor, a Variable or IndexedSlices, found {one!r} of type {type(one).__name__}: it has "
        f"left the program, so the tape cannot know how it was computed; {advice}"
    )


def parts(targets: Sequence[Any]) -> list[Any]:
    """Slices among the targets are differentiated through their values."""
    return [one.values if isinstance(one, IndexedSlices) else one for one in targets]


def followed(one: TensorLike | IndexedSlices, owner: session.Session | None = None) -> Any:
    """What the tape knows a tensor or variable by.

    Raises:
        InvalidArgumentError: It is of another session than `owner`, the tape's.
    """
    tensor: Any = one.values if isinstance(one, IndexedSlices) else one
    tracing = session.current().tracing
    if owner is not None and not tracing and tensor.session is not owner:
        what = f"variable {one.name!r}" if isinstance(one, Variable) else f"a tensor of shape {one.shape}"
        raise InvalidArgumentError(
            f"{what} belongs to another session than the tape (tf.connect was called between them): a tape follows "
            "what is made in its own session; make both in one"
        )
    if isinstance(one, Variable):
        return one.recorded
    return tensor.operand() if tracing else tensor.recorded  # a trace has symbols of its own


def seeds_for(targets: Sequence[Any], output_gradients: Any) -> list[Any]:
    """The cotangent of each target, None for ones; ValueError for another count."""
    given = nest.flatten(output_gradients)
    if len(given) != len(targets):
        raise ValueError(
            f"output_gradients: {len(targets)} targets need as many gradients, found {len(given)}; give a tensor for "
            "each target (tf.constant makes one of a list), None for ones"
        )
    return [None if seed is None else seed_for(seed, one) for seed, one in zip(given, targets, strict=True)]


def seed_for(given: Any, target: TensorLike) -> Any:
    """One cotangent, of the target's dtype where it has none of its own."""
    seed = dispatch.convert_to_tensor(given, dtype_hint=target.dtype)
    extra = seed.ndim - len(target.shape)
    if extra > 0 and seed.shape.as_list()[:extra] == [1] * extra:  # TensorFlow's ops sum such axes away
        seed = arrays.reshape(seed, seed.shape[extra:])
    return seed.operand()


def stacking(
    owner: session.Session,
    name: str,
    rows: int,
    persistent: bool,
    unconnected: Any,
    parallel: Any,
    pfor: bool,
    max_bytes: int | None,
) -> Options:
    """TensorFlow's arguments, with its errors: what fails while it vectorises is a ValueError with the cause behind."""
    if not pfor:
        if not persistent:
            where = "and with  experimental" if name == "jacobian" else "and  with experimental"
            raise RuntimeError(
                f"GradientTape must be created with persistent=True to compute the {name} with eager execution enabled "
                f"{where}_use_pfor set to False."
            )
        if parallel is not None and parallel < 1:
            raise TypeError("'parallel_iterations' must be a positive integer.")
        zeros, most = zeros_wanted(unconnected), parallel or 1
    else:
        try:
            zeros, most = zeros_wanted(unconnected), _at_once(parallel)
            if most is not None and most > rows:
                most = None
            if most is not None and not persistent and name == "jacobian":
                raise ValueError(
                    f"parallel_iterations={parallel} asks {rows} rows in several passes: GradientTape must be created "
                    "with persistent=True for more than one"
                )
        except ValueError as error:
            raise ValueError(
                f"Encountered an exception while vectorizing the {name} computation. Vectorization can be disabled by "
                "setting experimental_use_pfor to False."
            ) from error
        if most is not None and not persistent:
            raise RuntimeError(
                f"GradientTape must be created with persistent=True to compute the {name} with parallel_iterations."
            )
    no_gradient = frozenset(owner.no_gradient)
    return Options(zeros=zeros, no_gradient=no_gradient, max_bytes=max_bytes, chunk_size=most)


def _at_once(parallel: Any) -> int | None:
    if parallel is None:
        return None
    if parallel < 1:
        raise ValueError(f"Argument `parallel_iterations` must be None or a positive integer. Received: {parallel}.")
    if parallel == 1:
        raise ValueError("Found `parallel_iterations == 1`. Use `for_loop` instead.")
    return int(parallel)
