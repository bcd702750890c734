"""What a tape answers beside the gradient: Jacobians, stacks of gradients, second derivatives, many questions at once.

`jacobian` and `batch_jacobian` are TensorFlow's; the others are Teletape's own. `GradientTape` has them all.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import AbstractContextManager
from functools import partial
from typing import Any

from teletape.derivatives import per_row, traced_gradients
from teletape.derivatives.arguments import (
    UnconnectedGradients,
    differentiated,
    followed,
    parts,
    stacking,
    zeros_wanted,
)
from teletape.ops import dispatch
from teletape.sessions import session
from teletape.sessions.recorder import id_of
from teletape.tensors import dtypes, nest
from teletape.tensors.indexed_slices import wrap
from teletape_engine import commands
from teletape_engine.derivatives import jacobian, second_order
from teletape_engine.derivatives.jacobian import Options
from teletape_engine.errors import InvalidArgumentError
from teletape_engine.recording.recorder import Recorder
from teletape_engine.recording.tape import Tape

NONE = UnconnectedGradients.NONE


class Questions:
    """The part of a tape that answers."""

    _persistent: bool

    def _asked(self, *, rows: bool = False) -> tuple[session.Session, Tape]:
        """The tape that is to answer, and whose it is; see `GradientTape`."""
        raise NotImplementedError  # pragma: no cover - abstract

    def _answering(self, *, retain_tape: bool = False) -> AbstractContextManager[None]:
        """A block in which it answers; see `GradientTape`."""
        raise NotImplementedError  # pragma: no cover - abstract

    def _gradient(
        self, target: Any, sources: Any, output_gradients: Any, unconnected_gradients: Any, *, retain_tape: bool = False
    ) -> Any:
        """One gradient; see `GradientTape`."""
        raise NotImplementedError  # pragma: no cover - abstract

    def gradients(self, questions: Sequence[Any], unconnected_gradients: Any = NONE) -> list[Any]:
        """Several gradients, one after the other; a tape that is not persistent answers all of them. Teletape's own.

        Args:
            questions: For each the arguments of `gradient` in their order: (target, sources), or (target, sources,
                output_gradients).
            unconnected_gradients: As for `gradient`, for all of them.

        Returns:
            What `gradient` gives for each.

        Raises:
            RuntimeError: As for `gradient`.
            TypeError: As for `gradient`.
            ValueError: A question with other parts than two or three; as for `gradient`.
            LookupError: As for `gradient`.
        """
        for question in questions:
            if not isinstance(question, Sequence) or len(question) not in (2, 3):
                raise ValueError(
                    f"a question is (target, sources) or (target, sources, output_gradients), found {question!r}"
                )
        found = []
        for at, question in enumerate(questions, 1):
            target, sources, seeds = (*question, None)[:3]
            found.append(self._gradient(target, sources, seeds, unconnected_gradients, retain_tape=at < len(questions)))
        return found

    def jacobian(
        self,
        target: Any,
        sources: Any,
        unconnected_gradients: Any = NONE,
        parallel_iterations: int | None = None,
        experimental_use_pfor: bool = True,
        *,
        max_bytes: int | None = None,
    ) -> Any:
        """The derivative of each element of `target` with respect to each element of each source.

        One backward pass goes over a stack of cotangents, in chunks that bound the memory.

        Args:
            target: A tensor or variable.
            sources: A tensor or variable, or a nested structure of them; the answer has its structure.
            unconnected_gradients: What a source gets that the target does not depend on: NONE or ZERO.
            parallel_iterations: How many rows go at once, 2 or more; None: as many as `max_bytes` allows.
            experimental_use_pfor: False: one row at a time, or `parallel_iterations`; for a persistent tape.
            max_bytes: What the cotangents of a chunk may take; None: 64 MiB, or what is left of the session's memory.

        Returns:
            For each source a tensor [*target.shape, *source.shape], or None.

        Raises:
            RuntimeError: A non-persistent tape asked again, a tape never entered, or one that is not persistent with
                `experimental_use_pfor` False.
            AttributeError: A target without a shape, such as a list.
            TypeError: What is no tensor among the sources.
            ValueError: A bad `unconnected_gradients` or `parallel_iterations`.
            LookupError: An op without a gradient lies between the target and what the tape watched.
            teletape.errors.ResourceExhaustedError: One row does not fit under the bound, or the answer nowhere.
        """
        owner, tape = self._asked(rows=True)
        rows = target.shape.num_elements() if hasattr(target.shape, "num_elements") else 1
        flat = [differentiated(one, "source") for one in nest.flatten(sources)]
        [part] = parts([differentiated(target, "target")])
        options = stacking(
            owner,
            "jacobian",
            rows,
            self._persistent,
            unconnected_gradients,
            parallel_iterations,
            experimental_use_pfor,
            max_bytes,
        )
        numeric = [one for one in flat if one.dtype is not dtypes.string]
        what, into = followed(part, owner), [followed(one, owner) for one in numeric]

        def command(outputs: Sequence[int | None], kinds: Sequence[str]) -> commands.Command:
            return commands.Jacobian(
                tape.name.id, (id_of(what),), _ids(into), tuple(outputs), **_told(options), predicted=tuple(kinds)
            )

        with self._answering():
            if part.dtype is dtypes.string:  # it never leaves the program
                owner.gradient(tape, [], [], None, False)
                found = [None] * len(into)
            else:
                found = traced_gradients.ask(
                    owner,
                    tape,
                    [what],
                    into,
                    options,
                    lambda recorder, options: jacobian.jacobian(recorder, tape, what, into, options),
                    command,
                    lambda why: per_row.by_element(owner, tape, what, into, options.zeros, why),
                    vectorize=experimental_use_pfor,
                )
        answers = iter(found)
        return nest.pack_sequence_as(
            sources, [None if one.dtype is dtypes.string else wrap(next(answers), owner) for one in flat]
        )

    def batch_jacobian(
        self,
        target: Any,
        source: Any,
        unconnected_gradients: Any = NONE,
        parallel_iterations: int | None = None,
        experimental_use_pfor: bool = True,
        *,
        max_bytes: int | None = None,
    ) -> Any:
        """The Jacobian of each example, where target[i] depends on source[i] alone.

        Args:
            target: A tensor or variable [b, *y].
            source: A tensor or variable [b, *x].
            unconnected_gradients: NONE or ZERO; zeros in any case, of the target's dtype or of the source's.
            parallel_iterations: As for `jacobian`.
            experimental_use_pfor: As for `jacobian`.
            max_bytes: As for `jacobian`.

        Returns:
            A tensor [b, *y, *x].

        Raises:
            ValueError: Not both of rank 2 or more with one first dimension; a bad argument as for `jacobian`.
            RuntimeError: As for `jacobian`; also fewer `parallel_iterations` than rows on a non-persistent tape.
            AttributeError: As for `jacobian`.
            TypeError: As for `jacobian`.
            LookupError: As for `jacobian`.
            teletape.errors.ResourceExhaustedError: As for `jacobian`.
        """
        owner, tape = self._asked(rows=True)
        shape = tuple(target.shape)
        try:
            jacobian.check_rank(shape)
            jacobian.check_examples(shape, tuple(source.shape))
        except InvalidArgumentError as error:
            raise ValueError(error.message) from None
        [what, by] = [
            followed(differentiated(one, name), owner) for one, name in ((target, "target"), (source, "source"))
        ]
        rows = math.prod(shape[1:])
        options = stacking(
            owner,
            "batch_jacobian",
            rows,
            self._persistent,
            unconnected_gradients,
            parallel_iterations,
            experimental_use_pfor,
            max_bytes,
        )

        def command(outputs: Sequence[int | None], kinds: Sequence[str]) -> commands.Command:
            [output] = outputs
            assert output is not None
            return commands.BatchJacobian(tape.name.id, (id_of(what),), (id_of(by),), (output,), **_told(options))

        with self._answering():
            [found] = traced_gradients.ask(
                owner,
                tape,
                [what],
                [by],
                options,
                lambda recorder, options: [jacobian.batch_jacobian(recorder, tape, what, by, options)],
                command,
                lambda why: [per_row.by_example(owner, tape, what, by, options.zeros, why)],
                vectorize=experimental_use_pfor,
            )
        return wrap(found, owner)

    def vjps(
        self,
        target: Any,
        sources: Any,
        output_gradients: Any,
        unconnected_gradients: Any = NONE,
        *,
        max_bytes: int | None = None,
    ) -> Any:
        """The gradients for several output gradients at once, in one backward pass. Teletape's own.

        Args:
            target: A tensor or variable, or a nested structure of them, which are summed.
            sources: The same; the answer has its structure.
            output_gradients: For each target a stack [k, *target.shape]; None: ones. One at least is given.
            unconnected_gradients: What a source gets that the target does not depend on: NONE or ZERO.
            max_bytes: As for `jacobian`.

        Returns:
            For each source a tensor [k, *source.shape], row i the gradient for the i-th of each stack; or None.

        Raises:
            RuntimeError: A non-persistent tape asked again, or a tape never entered.
            TypeError: What is no tensor among targets or sources.
            ValueError: A bad `unconnected_gradients`; another count of stacks than of targets.
            LookupError: As for `jacobian`.
            teletape.errors.InvalidArgumentError: Stacks of another shape or dtype, or of different lengths.
            teletape.errors.ResourceExhaustedError: As for `jacobian`.
        """
        owner, tape = self._asked()
        given, flat = _targets(target), _sources(sources)
        options = Options(
            zeros=zeros_wanted(unconnected_gradients), no_gradient=frozenset(owner.no_gradient), max_bytes=max_bytes
        )
        stacks = [_vector(one, like) for one, like in _paired(output_gradients, given, target, "output_gradients")]
        what, into = [followed(one, owner) for one in given], [followed(one, owner) for one in flat]

        def command(outputs: Sequence[int | None], kinds: Sequence[str]) -> commands.Command:
            seeds = tuple([None if one is None else id_of(one) for one in stacks])
            told = _told(options)
            return commands.Vjps(
                tape.name.id, _ids(what), _ids(into), tuple(outputs), seeds, **told, predicted=tuple(kinds)
            )

        with self._answering():
            found = traced_gradients.ask(
                owner,
                tape,
                what,
                into,
                options,
                lambda recorder, options: jacobian.vjps(recorder, tape, what, into, stacks, options),
                command,
                lambda why: per_row.by_seed(owner, tape, what, into, stacks, options.zeros, why),
            )
        return nest.pack_sequence_as(sources, [wrap(one, owner) for one in found])

    def hessian(
        self, target: Any, sources: Any, unconnected_gradients: Any = NONE, *, max_bytes: int | None = None
    ) -> Any:
        """The second derivatives of `target`, summed over all its parts, without an outer tape. Teletape's own.

        Args:
            target: A tensor or variable, or a nested structure of them.
            sources: The same.
            unconnected_gradients: What a pair of sources gets that is not connected: NONE or ZERO.
            max_bytes: As for `jacobian`.

        Returns:
            For a single source a tensor [*source.shape, *source.shape]. For a structure of sources that structure, with
            the same structure for each source in it: block [i][j] is [*source i, *source j], or None.

        Raises:
            RuntimeError: A non-persistent tape asked again, or a tape never entered.
            TypeError: As for `jacobian`.
            ValueError: A bad `unconnected_gradients`.
            LookupError: As for `jacobian`.
            teletape.errors.ResourceExhaustedError: As for `jacobian`.
        """
        owner, tape = self._asked()
        what, flat = [followed(one, owner) for one in _targets(target)], _sources(sources)
        into, n = [followed(one, owner) for one in flat], len(flat)
        options = Options(
            zeros=zeros_wanted(unconnected_gradients), no_gradient=frozenset(owner.no_gradient), max_bytes=max_bytes
        )

        def compute(recorder: Recorder, options: Options) -> list[Any]:
            return [one for row in second_order.hessian(recorder, tape, what, into, options) for one in row]

        def command(outputs: Sequence[int | None], kinds: Sequence[str]) -> commands.Command:
            told = _told(options)
            return commands.Hessian(
                tape.name.id, _ids(what), _ids(into), tuple(outputs), **told, predicted=tuple(kinds)
            )

        with self._answering():
            answers = traced_gradients.ask(
                owner, tape, what, into, options, compute, command, partial(per_row.refused, "hessian")
            )
        found = [wrap(one, owner) for one in answers]
        rows = [nest.pack_sequence_as(sources, found[i * n : (i + 1) * n]) for i in range(n)]
        return nest.pack_sequence_as(sources, rows)

    def hvp(self, target: Any, sources: Any, vectors: Any, unconnected_gradients: Any = NONE) -> Any:
        """The Hessian of `target`, summed over all its parts, times a vector: about two gradients. Teletape's own.

        Args:
            target: A tensor or variable, or a nested structure of them.
            sources: The same; the answer has its structure.
            vectors: The vector: for each source a tensor of its shape.
            unconnected_gradients: What a source gets that is not connected: NONE or ZERO.

        Returns:
            For each source a tensor of its shape and dtype, or None.

        Raises:
            RuntimeError: A non-persistent tape asked again, or a tape never entered.
            TypeError: As for `jacobian`.
            ValueError: A bad `unconnected_gradients`; another count of vectors than of sources.
            LookupError: As for `jacobian`.
            teletape.errors.InvalidArgumentError: A vector of another shape or dtype than its source.
        """
        owner, tape = self._asked()
        what, flat = [followed(one, owner) for one in _targets(target)], _sources(sources)
        into = [followed(one, owner) for one in flat]
        given = [_vector(one, like) for one, like in _paired(vectors, flat, sources, "vectors")]
        options = Options(zeros=zeros_wanted(unconnected_gradients), no_gradient=frozenset(owner.no_gradient))

        def command(outputs: Sequence[int | None], kinds: Sequence[str]) -> commands.Command:
            unconnected = "zero" if options.zeros else "none"
            return commands.Hvp(
                tape.name.id, _ids(what), _ids(into), _ids(given), tuple(outputs), unconnected, tuple(kinds)
            )

        with self._answering():
            found = traced_gradients.ask(
                owner,
                tape,
                what,
                into,
                options,
                lambda recorder, options: second_order.hvp(recorder, tape, what, into, given, options),
                command,
                partial(per_row.refused, "hvp"),
            )
        return nest.pack_sequence_as(sources, [wrap(one, owner) for one in found])


# ------------------------------------------------------------------------------------------------- arguments, checked
def _targets(target: Any) -> list[Any]:
    """The numeric parts of a nested target."""
    flat = parts([differentiated(one, "target") for one in nest.flatten(target)])
    return [one for one in flat if one.dtype is not dtypes.string]


def _sources(sources: Any) -> list[Any]:
    """The parts of nested sources; strings have no derivatives here."""
    flat = [differentiated(one, "source") for one in nest.flatten(sources)]
    for one in flat:
        if one.dtype is dtypes.string:
            raise TypeError(f"a source must be numeric, found a tensor of {one.dtype!r}: {one!r}")
    return flat


def _paired(given: Any, beside: Sequence[Any], structure: Any, name: str) -> list[tuple[Any, Any]]:
    """What is given for each target or source; for a single one it may be a list of numbers."""
    flat = nest.flatten(given) if nest.is_nested(structure) else [given]
    if len(flat) != len(beside):
        raise ValueError(
            f"{name}: found {len(flat)}, and {len(beside)} are needed: a tensor for each (tf.constant makes one of a "
            "list)"
        )
    return list(zip(flat, beside, strict=True))


def _vector(given: Any, like: Any) -> Any:
    return None if given is None else dispatch.convert_to_tensor(given, dtype_hint=like.dtype).operand()


# --------------------------------------------------------------------------------------------------- onto the wire
def _ids(values: Sequence[Any]) -> tuple[int, ...]:
    return tuple([id_of(one) for one in values])


def _told(options: Options) -> dict[str, Any]:
    return {
        "unconnected": "zero" if options.zeros else "none",
        "max_bytes": options.max_bytes,
        "chunk_size": options.chunk_size,
    }
