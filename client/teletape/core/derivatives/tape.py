"""`tf.GradientTape` and `tf.gradients`: TensorFlow's interface on a session's tapes, with its rules and its texts.

Long because the signatures of `gradient` are spelled out for type checkers.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator
from types import TracebackType
from typing import Any, TypeAlias, TypeVar, overload

from teletape.core.calls.dispatch import as_tensor, call, convert_to_tensor
from teletape.core.derivatives.arguments import (
    UnconnectedGradients,
    as_source,
    cotangents_for,
    in_rows,
    recorded_values,
    sources_of,
    targets_of,
    wants_zeros,
)
from teletape.core.derivatives.inspection import TapeInspection
from teletape.core.derivatives.jacobians import Jacobians
from teletape.core.derivatives.sparse_matrix import SparseDerivatives
from teletape.core.functions.not_traceable import NotTraceable
from teletape.core.program import logs
from teletape.core.program.call_site import call_site_text, caller
from teletape.core.program.tracebacks import report, reports
from teletape.core.sessions.current import current
from teletape.core.sessions.session import Session
from teletape.core.tensors import nest
from teletape.core.tensors.composite import Composite
from teletape.core.tensors.indexed_slices import IndexedSlices, wrap
from teletape.core.tensors.tensor import EagerTensor, Tensor, TensorLike
from teletape.core.tensors.variable_wrapper import unwrapped
from teletape.core.variables import none_gradients
from teletape.core.variables.variable import Variable
from teletape_engine.catalogue.namespace import ops
from teletape_engine.derivatives.query import GradientQuery
from teletape_engine.errors import TapeConsumedError, TeletapeError
from teletape_engine.recording.tape import Tape

_INSIDE = (
    "Calling GradientTape.gradient on a persistent tape inside its context is significantly less efficient than "
    "calling it outside the context (it causes the gradient ops to be recorded on the tape, leading to increased CPU "
    "and memory usage). Only call GradientTape.gradient inside the context if you actually want to trace the gradient "
    "in order to compute higher order derivatives."
)


#: The gradient of one source: a tensor, or IndexedSlices, or None. `| Any` lets `tape.gradient(loss, x).numpy()` pass a
#: type checker, which cannot know that a program's gradient is never None.
Gradient: TypeAlias = Tensor | Any
K = TypeVar("K")


class GradientTape(Jacobians, SparseDerivatives, TapeInspection):
    """Records ops for automatic differentiation.

    Args:
        persistent: Whether `gradient` may be called more than once.
        watch_accessed_variables: Whether trainable variables are watched as they are read.
        replayable: Whether every input is kept, so that `check_gradients` can run again what was recorded.
    """

    def __init__(
        self, persistent: bool = False, watch_accessed_variables: bool = True, *, replayable: bool = False
    ) -> None:
        self._persistent = persistent
        self._replayable = replayable
        self._watch_accessed_variables = watch_accessed_variables
        self._tape: Tape | None = None
        self._past: Tape | None = None  # the structure that remains of a tape that has answered
        self._session: Session | None = None
        self._recording = False
        self._watched: tuple[Variable, ...] = ()

    def __repr__(self) -> str:
        tape = self._tape if self._tape is not None else self._past
        kind = "persistent, " if self._persistent else ""
        if tape is None:
            return f"<GradientTape {kind}not entered>"
        state = "has answered" if self._tape is None else "recording" if self._recording else "paused"
        return f"<GradientTape {kind}{state}, {tape.length} ops, watching {len(tape.leaves)}>"

    def __enter__(self) -> GradientTape:
        self._push()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._recording:
            self._pop()

    @reports
    def _push(self) -> None:
        if self._recording:
            raise ValueError("Tape is still recording, This can happen if you try to re-enter an already-active tape.")
        if self._tape is None:
            self._session = current()
            self._tape = Tape(
                persistent=bool(self._persistent),
                watch_accessed=bool(self._watch_accessed_variables),
                replayable=bool(self._replayable),
            )
        self._of_session().open_tape(self._tape)
        self._recording = True

    def _pop(self) -> None:
        if not self._recording:
            raise ValueError("Tape is not recording.")
        assert self._tape is not None
        self._recording = False
        self._of_session().pause_tape(self._tape)

    def _of_session(self) -> Session:
        assert self._session is not None
        return self._session

    @reports
    def watch(self, tensor: Any) -> None:
        """Watches `tensor` (a tensor, a variable, a composite, or a nested structure of them) from now on.

        Raises:
            ValueError: The structure has something else in it.
            AttributeError: The tape was never entered (TensorFlow's own text).
        """
        for leaf in map(unwrapped, nest.flatten(tensor)):
            if not isinstance(leaf, EagerTensor | Variable | Composite):
                raise ValueError(
                    f"Passed in object {leaf} of type {type(leaf).__name__!r}, not tf.Tensor or tf.Variable or "
                    "ExtensionType."
                )
            self._watch(leaf.elements if isinstance(leaf, Composite) else leaf)

    def _watch(self, tensor: Tensor | Variable) -> None:
        if not (tensor.dtype.is_floating or tensor.dtype.is_complex):
            logs.log_first_n(
                logging.WARNING,
                f"The dtype of the watched tensor must be floating (e.g. tf.float32), got {tensor.dtype!r}",
                5,
                f"watch {call_site_text(caller())}",
            )
        if self._tape is None:
            raise AttributeError("'NoneType' object has no attribute '_tape'")
        owner = self._of_session()
        if owner is current() or not current().tracing:  # a symbol means nothing to a tape outside
            owner.watch(self._tape, recorded_values([tensor], owner))

    @contextlib.contextmanager
    def stop_recording(self) -> Iterator[None]:
        """Returns a `with` block in which this tape does not record.

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
        self._of_session().reset_tape(self._tape)

    def watched_variables(self) -> tuple[Variable, ...]:
        """Returns the variables watched so far, in the order in which they were made."""
        if self._tape is not None:
            slots = sorted(self._tape.variables.values(), key=lambda slot: slot.uid)
            self._watched = tuple(Variable.of(slot) for slot in slots)
        return self._watched

    def _begin(self, *, jacobian: bool = False) -> tuple[Session, Tape]:
        """Returns the session and the tape of a question. A tape that is not persistent stops recording.

        Args:
            jacobian: Whether the question is a Jacobian. Inside the tape's context a question warns, as in TensorFlow:
                all Jacobians together once, gradients once for each line of the program.

        Raises:
            RuntimeError: It has answered, or was never entered.
        """
        if self._tape is None:
            raise RuntimeError(TapeConsumedError().message)
        if self._recording:
            if self._persistent:
                key = "jacobian inside" if jacobian else f"inside {call_site_text(caller())}"
                logs.log_first_n(logging.WARNING, _INSIDE, 1, key)
            else:
                self._pop()
        owner = self._of_session()
        if current().tracing and owner is not current():
            raise NotTraceable("asks a tape that was opened outside the function", "a tape opened inside it")
        return owner, self._tape

    @contextlib.contextmanager
    def _computing(self, *, retain_tape: bool = False) -> Iterator[None]:
        """A block that computes an answer; after it a tape that is not persistent is used up.

        Args:
            retain_tape: Whether another question follows, for which the tape stays.
        """
        try:
            yield
        except TeletapeError as error:
            raise error.surfaced() from None
        finally:
            self._answered(retain_tape)

    def _answered(self, retain_tape: bool) -> None:
        """Ends a tape that is not persistent, unless another question follows; its watched variables stay known."""
        if not self._persistent and not retain_tape:
            self.watched_variables()
            self._past, self._tape = self._tape, None

    @reports
    def explain(self, target: Any, sources: Any) -> Any:
        """Explains the gradient of `target` with respect to each of `sources`: why it is None, zero or not finite.

        For a None, an exact zero, a NaN or an infinity: a reason code, the op to blame, the line of the program, and
        what to do; docs/explain.md lists them. It can be called before `gradient` and after it. A tape that is not
        persistent forgets its numbers when it answers: then it explains a None, but no zero or NaN. Over HTTP a None is
        explained without a round trip.

        Args:
            target: A tensor or variable, or a nested structure of them: their sum, as in `gradient`.
            sources: The same; the answer has its structure.

        Returns:
            An `Explanation` for each source.

        Raises:
            RuntimeError: The tape was never entered.
            TypeError: None, or what is no tensor, among targets or sources.
            teletape.errors.InvalidArgumentError: A tensor or variable of another session.
        """
        tape = self._tape if self._tape is not None else self._past
        if tape is None:
            raise RuntimeError("this tape was never entered, so it has nothing to explain: use it with `with` first")
        owner = self._of_session()
        targets = targets_of(target)
        recorded = recorded_values(sources_of(sources), owner)
        explanations = owner.explain(tape, recorded_values(targets, owner), recorded)
        return nest.pack_sequence_as(sources, explanations)

    @overload
    def gradient(
        self,
        target: Any,
        sources: TensorLike | IndexedSlices,
        output_gradients: Any = ...,
        unconnected_gradients: Any = ...,
    ) -> Gradient: ...
    @overload
    def gradient(
        self, target: Any, sources: list[Any], output_gradients: Any = ..., unconnected_gradients: Any = ...
    ) -> list[Gradient]: ...
    @overload
    def gradient(
        self, target: Any, sources: tuple[Any, ...], output_gradients: Any = ..., unconnected_gradients: Any = ...
    ) -> tuple[Gradient, ...]: ...
    @overload
    def gradient(
        self, target: Any, sources: dict[K, Any], output_gradients: Any = ..., unconnected_gradients: Any = ...
    ) -> dict[K, Gradient]: ...
    @overload
    def gradient(
        self, target: Any, sources: Any, output_gradients: Any = ..., unconnected_gradients: Any = ...
    ) -> Any: ...
    def gradient(
        self,
        target: Any,
        sources: Any,
        output_gradients: Any = None,
        unconnected_gradients: Any = UnconnectedGradients.NONE,
    ) -> Any:
        """Returns the gradient of `target`, summed over all its parts, with respect to each of `sources`.

        Args:
            target: A tensor or variable, or a nested structure of them.
            sources: The same; the answer has its structure.
            output_gradients: For each target the cotangent to start from; None: ones.
            unconnected_gradients: The result for a source on which the target does not depend: NONE or ZERO.

        Returns:
            For each source a tensor of its shape and dtype, IndexedSlices, or None; for a ragged tensor one with its
            rows.

        Raises:
            RuntimeError: The tape was used up by an earlier question, or was never entered.
            TypeError: None, or what is no tensor, among targets or sources.
            ValueError: A bad `unconnected_gradients`; another count of output_gradients than of targets.
            LookupError: An op without a gradient lies between a target and what the tape watched.
            teletape.errors.InvalidArgumentError: An output gradient of the wrong shape or dtype.
        """
        try:
            return self._gradient(target, sources, output_gradients, unconnected_gradients)
        except BaseException as error:
            report(error)
            raise

    def _gradient(
        self, target: Any, sources: Any, output_gradients: Any, unconnected_gradients: Any, *, retain_tape: bool = False
    ) -> Any:
        owner, tape = self._begin()
        if target is None:
            raise TypeError(
                "Argument `target` should be a list or nested structure of Tensors, Variables or CompositeTensors to "
                "be differentiated, but received None."
            )
        targets, leaves = targets_of(target), nest.flatten(sources)
        flat = list(map(as_source, leaves))
        zeros = wants_zeros(unconnected_gradients)
        cotangents = None if output_gradients is None else cotangents_for(targets, output_gradients)
        recorded = recorded_values(flat, owner)
        query = GradientQuery(
            tape,
            recorded_values(targets, owner),
            [source for source in recorded if not source.spec.dtype.hasobject],
            output_gradients=cotangents,
            zeros=zeros,
            retain_tape=retain_tape,
            declarations=owner.declarations,
        )
        try:  # as `_computing`, whose generator would be a twentieth of a small gradient
            gradients = iter(owner.gradient(query))
        except TeletapeError as error:
            raise error.surfaced() from None
        finally:
            self._answered(retain_tape)
        if len(recorded) == 1 and not nest.is_nested(sources):
            result = None if recorded[0].spec.dtype.hasobject else wrap(next(gradients), owner)
            if result is None:
                none_gradients.remember(self, targets, flat, [result])
            return in_rows(sources, result)
        results = [None if source.spec.dtype.hasobject else wrap(next(gradients), owner) for source in recorded]
        if any(result is None for result in results):
            none_gradients.remember(self, targets, flat, results)
        return nest.pack_sequence_as(sources, list(map(in_rows, leaves, results)))


def gradients(
    ys: Any,
    xs: Any,
    grad_ys: Any = None,
    name: str = "gradients",
    gate_gradients: Any = False,
    aggregation_method: Any = None,
    stop_gradients: Any = None,
    unconnected_gradients: Any = UnconnectedGradients.NONE,
) -> list[Any]:
    """Returns the sum of the derivatives of all `ys` by each of `xs`, inside a `tf.function`, without a tape.

    The steps from `xs` to `ys` are recorded once more, for a tape. By hand: no op.

    Args:
        ys: A tensor, or a list of them.
        xs: A tensor or variable, or a list of them.
        grad_ys: The cotangent of each of `ys`; None: ones.
        name: Accepted, without effect.
        gate_gradients: Accepted, without effect.
        aggregation_method: Accepted, without effect.
        stop_gradients: Tensors that count as constants.
        unconnected_gradients: The result for an `x` on which no `y` depends: None or zeros.

    Returns:
        For each of `xs` a tensor, IndexedSlices, or None.

    Raises:
        RuntimeError: It is called outside of a function.
        ValueError: `grad_ys` of another length than `ys`.

    Example:
        tf.function(lambda x: tf.gradients(x**3, x))(tf.constant(2.0))
    """
    owner: Any = current()
    if not owner.tracing:
        raise RuntimeError(
            "tf.gradients is not supported when eager execution is enabled. Use tf.GradientTape instead."
        )
    targets, sources, stops = (_listed(argument) for argument in (ys, xs, stop_gradients))
    seeds = list(grad_ys) if isinstance(grad_ys, list | tuple) else [grad_ys] * len(targets)
    if len(seeds) != len(targets):
        raise ValueError(f"Length mismatch. Passed {len(seeds)} grad_ys for {len(targets)} ys")
    results = [as_tensor(target).operand() for target in targets]
    origins = [source.recorded if isinstance(source, Variable) else source.operand() for source in sources]
    watched, again = owner.run_again(results, origins, [as_tensor(stop).operand() for stop in stops])
    with GradientTape(watch_accessed_variables=False) as tape:
        followed = [EagerTensor(value, owner) for value in watched]
        for tensor in followed:
            if tensor.dtype.is_floating or tensor.dtype.is_complex:
                tape.watch(tensor)
        repeated = again()
    pairs = [
        (EagerTensor(value, owner), seed)
        for value, seed in zip(repeated, seeds, strict=True)
        if value is not None and value.spec.differentiable
    ]
    tensors = [tensor for tensor, _ in pairs]
    flowing = [call(ops.ones_like, (tensor,)) if seed is None else seed for tensor, seed in pairs]
    if not pairs:
        return _unconnected(followed, unconnected_gradients)
    return list(tape.gradient(tensors, followed, flowing, unconnected_gradients))


def _unconnected(sources: list[EagerTensor], unconnected: Any) -> list[Any]:
    zeros = wants_zeros(unconnected)
    return [call(ops.zeros_like, (source,)) if zeros else None for source in sources]


def _listed(argument: Any) -> list[Any]:
    """Returns a list or tuple of tensors, or a single one, as a list; None becomes an empty list."""
    if argument is None:
        return []
    entries = list(argument) if isinstance(argument, list | tuple) else [argument]
    return [unwrapped(entry) if isinstance(entry, TensorLike) else convert_to_tensor(entry) for entry in entries]
