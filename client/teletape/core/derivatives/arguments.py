"""Arguments of questions about derivatives: checked, with TensorFlow's errors, and turned into recorded values."""

from __future__ import annotations

import enum
import operator
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from teletape.core.calls import dispatch
from teletape.core.sessions.current import current
from teletape.core.sessions.session import Session
from teletape.core.tensors import dtypes, nest
from teletape.core.tensors.composite import RaggedValue
from teletape.core.tensors.dtypes import DType
from teletape.core.tensors.indexed_slices import IndexedSlices, SparseValue
from teletape.core.tensors.tensor import EagerTensor, TensorLike
from teletape.core.tensors.variable_wrapper import unwrapped
from teletape.core.variables.variable import Variable
from teletape_engine.catalogue.namespace import ops
from teletape_engine.errors import InvalidArgumentError
from teletape_engine.suggestions import with_nearest


class UnconnectedGradients(enum.Enum):
    """The value that `gradient` returns for a source on which the target does not depend."""

    NONE = "none"
    ZERO = "zero"


class AggregationMethod:
    """Ways to add gradients in TensorFlow's graphs; accepted, without effect."""

    ADD_N = 0
    DEFAULT = 0
    EXPERIMENTAL_TREE = 1
    EXPERIMENTAL_ACCUMULATE_N = 2


def wants_zeros(unconnected: Any) -> bool:
    """Returns whether an unconnected source gets zeros; ValueError unless it is an `UnconnectedGradients`."""
    try:
        return UnconnectedGradients(unconnected) is UnconnectedGradients.ZERO
    except ValueError:
        refusal = f"Unknown value for unconnected_gradients: {unconnected!r}"
        words = [option.value for option in UnconnectedGradients]
        raise ValueError(with_nearest(refusal, unconnected, words)) from None


# ------------------------------------------------------------------------------------------------ targets and sources
def as_target(value: Any) -> Any:
    """Returns a target: a tensor or variable, or the values of IndexedSlices or of a ragged tensor.

    Raises:
        TypeError: Anything else; None and strings with TensorFlow's text.
    """
    checked = _checked(value, "target", "tf.constant makes a tensor of it")
    return checked.values if isinstance(checked, IndexedSlices) else checked


def as_source(value: Any) -> Any:
    """Returns a source: a tensor, a variable or IndexedSlices, or the flat values of a ragged tensor.

    Raises:
        TypeError: Anything else; None and strings with TensorFlow's text.
    """
    return _checked(value, "source", "pass the tensor or variable it was computed from")


def _checked(value: Any, role: str, advice: str) -> Any:
    value = unwrapped(value)
    if isinstance(value, EagerTensor | Variable | IndexedSlices):
        return value
    if isinstance(value, RaggedValue):
        return value.flat_values
    if isinstance(value, SparseValue):
        raise ValueError(
            f"Type {type(value).__name__} is not supported as a gradient source or gradient target. Pass its `values`."
        )
    if value is None or isinstance(value, str):
        dtypes.as_dtype(value)
    if value is None or isinstance(value, str | DType):
        raise TypeError(f"Cannot convert the argument `type_value`: {value!r} to a TensorFlow DType.")
    raise TypeError(
        f"a {role} must be a Tensor, a Variable or IndexedSlices, found {value!r} of type {type(value).__name__}: it "
        f"has left the program, so the tape cannot know how it was computed; {advice}"
    )


def targets_of(structure: Any) -> list[Any]:
    """The targets in a nested structure; see `as_target`."""
    return [as_target(leaf) for leaf in nest.flatten(structure)]


def sources_of(structure: Any) -> list[Any]:
    """The sources in a nested structure; see `as_source`."""
    return [as_source(leaf) for leaf in nest.flatten(structure)]


def in_rows(source: Any, gradient: Any) -> Any:
    """Returns the gradient of a source in the source's form: that of a ragged tensor has the same rows."""
    if gradient is None or not isinstance(source, RaggedValue):
        return gradient
    return source.with_flat_values(dispatch.as_tensor(gradient))


def is_text(value: Any) -> bool:
    """Whether a target or source has strings, which have no derivatives and are never sent to a server."""
    return value.dtype is dtypes.string


def recorded_values(values: Sequence[TensorLike | IndexedSlices], owner: Session) -> list[Any]:
    """Returns the engine's values of targets or sources: recorded values, or engine variables.

    Raises:
        InvalidArgumentError: One belongs to another session than `owner`, the tape's.
    """
    tracing = current().tracing
    recorded = []
    for value in values:
        tensor: Any = value.values if isinstance(value, IndexedSlices) else value
        if not tracing and tensor.session is not owner:
            subject = f"variable {value.name!r}" if isinstance(value, Variable) else f"a tensor of shape {value.shape}"
            raise InvalidArgumentError(
                f"{subject} belongs to another session than the tape (tf.connect was called between them): a tape "
                "follows what is made in its own session; make both in one"
            )
        if tracing and not isinstance(tensor, Variable):
            recorded.append(tensor.operand())  # a trace has symbols of its own
        else:
            recorded.append(tensor.recorded)
    return recorded


# ---------------------------------------------------------------------------------------------------------- cotangents
def cotangents_for(targets: Sequence[Any], output_gradients: Any) -> list[Any]:
    """Returns the cotangent of each target, None for ones; ValueError unless there is one for each target."""
    gradients = nest.flatten(output_gradients)
    if len(gradients) != len(targets):
        raise ValueError(
            f"output_gradients: {len(targets)} targets need as many gradients, found {len(gradients)}; give a tensor "
            "for each target (tf.constant makes one of a list), None for ones"
        )
    return [
        None if gradient is None else _cotangent(gradient, target)
        for gradient, target in zip(gradients, targets, strict=True)
    ]


def _cotangent(gradient: Any, target: TensorLike) -> Any:
    """Returns a cotangent as a recorded value; Python numbers take the target's dtype."""
    if isinstance(gradient, RaggedValue):
        gradient = gradient.flat_values
    tensor = dispatch.convert_to_tensor(gradient, dtype_hint=target.dtype)
    extra = tensor.ndim - len(target.shape)
    if extra > 0 and tensor.shape.as_list()[:extra] == [1] * extra:  # TensorFlow's ops sum such axes away
        tensor = dispatch.call(ops.reshape, (tensor,), shape=tuple(tensor.shape.as_list()[extra:]))
    return tensor.operand()


def operands_like(values: Any, likes: Sequence[Any], structure: Any, name: str) -> list[Any]:
    """Returns a recorded value, or None, for each target or source.

    Args:
        values: The program's values, in the structure of the targets or sources; for one target also a list of numbers.
        likes: The targets or sources, whose dtypes Python numbers take.
        structure: The same, as the program gave them.
        name: The argument's name, for the error.

    Raises:
        ValueError: Another number of values than of targets or sources.
    """
    flat = nest.flatten(values) if nest.is_nested(structure) else [values]
    if len(flat) != len(likes):
        raise ValueError(
            f"{name}: found {len(flat)}, and {len(likes)} are needed: a tensor for each (tf.constant makes one of a "
            "list)"
        )
    return [
        None if value is None else dispatch.convert_to_tensor(value, dtype_hint=like.dtype).operand()
        for value, like in zip(flat, likes, strict=True)
    ]


def checked_bound(max_bytes: Any) -> int | None:
    """Returns the largest number of bytes for rows of cotangents, or None for no limit.

    Raises:
        TypeError: No integer.
        InvalidArgumentError: An integer below 1.
    """
    if max_bytes is None:
        return None
    bound = operator.index(max_bytes)
    if bound < 1:
        raise InvalidArgumentError(f"max_bytes must be 1 or more, or None; found {bound}")
    return bound


# ------------------------------------------------------------------------------------------- TensorFlow's vectorization
@dataclass(frozen=True, slots=True)
class Vectorization:
    """The arguments of `jacobian` and `batch_jacobian` that say how many rows of cotangents go back at once.

    Attributes:
        method: "jacobian" or "batch_jacobian".
        unconnected_gradients: The program's argument, as are the next three.
        parallel_iterations: The number of rows in one pass; None: as many as fit.
        experimental_use_pfor: Whether one pass may take several rows.
        max_bytes: Bytes of the cotangents of a chunk.
    """

    method: str
    unconnected_gradients: Any
    parallel_iterations: Any
    experimental_use_pfor: bool
    max_bytes: int | None

    def fields(self, rows: int, *, persistent: bool) -> dict[str, Any]:
        """Returns the fields of a `GradientQuery`.

        Args:
            rows: How many rows there are.
            persistent: Whether the tape is.

        Raises:
            ValueError: A bad argument; as in TensorFlow its cause is the one that was raised while vectorizing.
            TypeError: `parallel_iterations` below 1 without vectorization.
            RuntimeError: A tape that is not persistent, and more than one backward pass.
        """
        zeros, chunk = self._vectorized(rows, persistent) if self.experimental_use_pfor else self._looped(persistent)
        return {"zeros": zeros, "max_bytes": checked_bound(self.max_bytes), "chunk_size": chunk}

    def _looped(self, persistent: bool) -> tuple[bool, int]:
        if not persistent:
            place = "and with  experimental" if self.method == "jacobian" else "and  with experimental"
            raise RuntimeError(
                f"GradientTape must be created with persistent=True to compute the {self.method} with eager execution "
                f"enabled {place}_use_pfor set to False."
            )
        if self.parallel_iterations is not None and self.parallel_iterations < 1:
            raise TypeError("'parallel_iterations' must be a positive integer.")
        return wants_zeros(self.unconnected_gradients), self.parallel_iterations or 1

    def _vectorized(self, rows: int, persistent: bool) -> tuple[bool, int | None]:
        try:
            zeros, chunk = wants_zeros(self.unconnected_gradients), self._chunk()
            if chunk is not None and chunk > rows:
                chunk = None
            if chunk is not None and not persistent and self.method == "jacobian":
                raise ValueError(
                    f"parallel_iterations={self.parallel_iterations} asks {rows} rows in several passes: GradientTape "
                    "must be created with persistent=True for more than one"
                )
        except ValueError as error:
            raise ValueError(
                f"Encountered an exception while vectorizing the {self.method} computation. Vectorization can be "
                "disabled by setting experimental_use_pfor to False."
            ) from error
        if chunk is not None and not persistent:
            raise RuntimeError(
                f"GradientTape must be created with persistent=True to compute the {self.method} with "
                "parallel_iterations."
            )
        return zeros, chunk

    def _chunk(self) -> int | None:
        chunk = self.parallel_iterations
        if chunk is None:
            return None
        if chunk < 1:
            raise ValueError(f"Argument `parallel_iterations` must be None or a positive integer. Received: {chunk}.")
        if chunk == 1:
            raise ValueError("Found `parallel_iterations == 1`. Use `for_loop` instead.")
        return int(chunk)
