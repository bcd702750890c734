"""`tf.GradientTape`: TensorFlow's interface on a session's tapes, with its rules and its texts."""

from __future__ import annotations

import contextlib
import enum
import logging
from collections.abc import Iterator, Sequence
from types import TracebackType
from typing import Any

from teletape import calling, dtypes, logs, nest, session, shapes
from teletape.dtypes import DType
from teletape.slices import IndexedSlices, wrap
from teletape.tensor import EagerTensor, TensorLike
from teletape.variable import Variable
from teletape_engine import graph
from teletape_engine.errors import TeletapeError


class UnconnectedGradients(enum.Enum):
    """What `gradient` gives for a source that the target does not depend on."""

    NONE = "none"
    ZERO = "zero"


_CONSUMED = "A non-persistent GradientTape can only be used to compute one set of gradients (or jacobians)"
_INSIDE = (
    "Calling GradientTape.gradient on a persistent tape inside its context is significantly less efficient than "
    "calling it outside the context (it causes the gradient ops to be recorded on the tape, leading to increased CPU "
    "and memory usage). Only call GradientTape.gradient inside the context if you actually want to trace the gradient "
    "in order to compute higher order derivatives."
)


class GradientTape:
    """Records ops for automatic differentiation.

    Args:
        persistent: Whether `gradient` may be called more than once.
        watch_accessed_variables: Whether trainable variables are watched as they are read.
    """

    def __init__(self, persistent: bool = False, watch_accessed_variables: bool = True) -> None:
        self._persistent = persistent
        self._watch_accessed_variables = watch_accessed_variables
        self._tape: graph.Tape | None = None
        self._session: session.Session | None = None
        self._recording = False
        self._watched: tuple[Variable, ...] = ()

    def __enter__(self) -> GradientTape:
        self._push()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._recording:
            self._pop()

    def _push(self) -> None:
        if self._recording:
            raise ValueError("Tape is still recording, This can happen if you try to re-enter an already-active tape.")
        if self._tape is None:
            self._session = session.current()
            self._tape = graph.Tape(
                persistent=bool(self._persistent), watch_accessed=bool(self._watch_accessed_variables)
            )
            self._session.open_tape(self._tape)
        else:
            self._of_session().tape_event("resume", self._tape)
        self._recording = True

    def _pop(self) -> None:
        if not self._recording:
            raise ValueError("Tape is not recording.")
        assert self._tape is not None
        self._recording = False
        self._of_session().tape_event("pause", self._tape)

    def _of_session(self) -> session.Session:
        assert self._session is not None
        return self._session

    def watch(self, tensor: Any) -> None:
        """Follows `tensor` (a tensor, a variable, or a nested structure of them) from now on.

        Raises:
            ValueError: Something else in it.
            AttributeError: The tape was never entered (TensorFlow's own text).
        """
        for one in nest.flatten(tensor):
            if not isinstance(one, EagerTensor | Variable | IndexedSlices):
                raise ValueError(
                    f"Passed in object {one} of type {type(one).__name__!r}, not tf.Tensor or tf.Variable or "
                    "ExtensionType."
                )
            for part in (one.values,) if isinstance(one, IndexedSlices) else (one,):
                self._watch(part)

    def _watch(self, one: EagerTensor | Variable) -> None:
        if not (one.dtype.is_floating or one.dtype.is_complex):
            logs.log_first_n(
                logging.WARNING,
                f"The dtype of the watched tensor must be floating (e.g. tf.float32), got {one.dtype!r}",
                5,
                "watch",
            )
        if self._tape is None:
            raise AttributeError("'NoneType' object has no attribute '_tape'")
        self._of_session().tape_event("watch", self._tape, (_followed(one),))

    @contextlib.contextmanager
    def stop_recording(self) -> Iterator[None]:
        """A `with` block in which this tape does not record.

        Raises:
            RuntimeError: The tape was never entered.
            ValueError: It is not recording.
        """
        if self._tape is None:
            raise RuntimeError("Trying to stop recording a tape which is not recording.")
        self._pop()
        try:
            yield
        finally:
            self._push()

    def reset(self) -> None:
        """Forgets all that was recorded and watched, and goes on recording.

        Raises:
            ValueError: The tape is not recording.
        """
        if not self._recording:
            raise ValueError("Tape is not recording.")
        assert self._tape is not None
        self._of_session().tape_event("reset", self._tape)

    def watched_variables(self) -> tuple[Variable, ...]:
        """The variables watched so far, those made first first."""
        if self._tape is not None:
            slots = sorted(self._tape.variables.values(), key=lambda slot: slot.uid)
            self._watched = tuple(Variable.of(slot) for slot in slots)
        return self._watched

    def gradient(
        self,
        target: Any,
        sources: Any,
        output_gradients: Any = None,
        unconnected_gradients: Any = UnconnectedGradients.NONE,
    ) -> Any:
        """The gradient of `target`, summed over all its parts, with respect to each of `sources`.

        Args:
            target: A tensor or variable, or a nested structure of them.
            sources: The same; the answer has its structure.
            output_gradients: For each target the cotangent to start from; None: ones.
            unconnected_gradients: What a source gets that the target does not depend on: NONE or ZERO.

        Returns:
            For each source a tensor of its shape and dtype, IndexedSlices, or None.

        Raises:
            RuntimeError: A non-persistent tape asked again, or a tape never entered.
            TypeError: None, or what is no tensor, among targets or sources.
            ValueError: A bad `unconnected_gradients`; another count of output_gradients than of targets.
            LookupError: An op without a gradient lies between a target and what the tape watched.
            teletape.errors.InvalidArgumentError: An output gradient of the wrong shape or dtype.
        """
        if self._tape is None:
            raise RuntimeError(_CONSUMED)
        if self._recording:
            if self._persistent:
                logs.get_logger().warning(_INSIDE)
            else:
                self._pop()
        if target is None:
            raise TypeError(
                "Argument `target` should be a list or nested structure of Tensors, Variables or CompositeTensors to "
                "be differentiated, but received None."
            )
        targets = _parts([_differentiated(one, "target") for one in nest.flatten(target)])
        flat_sources = [_differentiated(one, "source") for one in nest.flatten(sources)]
        zeros = _zeros(unconnected_gradients)
        owner, tape = self._of_session(), self._tape
        seeds = None if output_gradients is None else _seeds(targets, output_gradients)
        found: list[Any] = [None] * len(flat_sources)
        asked = [(i, _followed(one)) for i, one in enumerate(flat_sources) if one.dtype is not dtypes.string]
        try:
            answers = owner.gradient(tape, [_followed(one) for one in targets], [one for _, one in asked], seeds, zeros)
        except TeletapeError as error:
            raise error.surfaced() from None
        finally:
            if not self._persistent:
                self.watched_variables()
                self._tape = None
        for (i, _), answer in zip(asked, answers, strict=True):
            found[i] = wrap(answer, owner)
        return nest.pack_sequence_as(sources, found)


def _zeros(unconnected: Any) -> bool:
    try:
        return UnconnectedGradients(unconnected) is UnconnectedGradients.ZERO
    except ValueError:
        raise ValueError(f"Unknown value for unconnected_gradients: {unconnected!r}") from None


def _differentiated(one: Any, what: str) -> Any:
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


def _parts(targets: Sequence[Any]) -> list[Any]:
    """Slices among the targets are differentiated through their values."""
    return [one.values if isinstance(one, IndexedSlices) else one for one in targets]


def _followed(one: TensorLike | IndexedSlices) -> Any:
    """What the tape knows a tensor or variable by."""
    if isinstance(one, Variable):
        return one._slot
    return one.values._v if isinstance(one, IndexedSlices) else one._v  # type: ignore[attr-defined]  # an EagerTensor


def _seeds(targets: Sequence[Any], output_gradients: Any) -> list[Any]:
    given = nest.flatten(output_gradients)
    if len(given) != len(targets):
        raise ValueError(
            f"output_gradients: {len(targets)} targets need as many gradients, found {len(given)}; give a tensor for "
            "each target (tf.constant makes one of a list), None for ones"
        )
    return [None if seed is None else _seed(seed, one) for seed, one in zip(given, targets, strict=True)]


def _seed(given: Any, target: TensorLike) -> Any:
    seed = calling.convert_to_tensor(given, dtype_hint=target.dtype)
    extra = seed.ndim - len(target.shape)
    if extra > 0 and seed.shape.as_list()[:extra] == [1] * extra:  # TensorFlow's ops sum such axes away
        seed = shapes.reshape(seed, seed.shape[extra:])
    return seed._operand()
