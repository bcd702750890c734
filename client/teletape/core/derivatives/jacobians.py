"""The derivatives of a tape in addition to the gradient: Jacobians, stacks of gradients, second derivatives.

`jacobian` and `batch_jacobian` are TensorFlow's; the others are Teletape's own. `GradientTape` inherits them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any

from teletape.core.derivatives.arguments import (
    UnconnectedGradients,
    Vectorization,
    as_source,
    as_target,
    checked_bound,
    cotangents_for,
    is_text,
    operands_like,
    recorded_values,
    sources_of,
    targets_of,
    wants_zeros,
)
from teletape.core.derivatives.questions import BATCH_JACOBIAN, HESSIAN, HVP, JACOBIAN, VJPS, Question, ask
from teletape.core.program.tracebacks import reports
from teletape.core.sessions.session import Session
from teletape.core.tensors import nest
from teletape.core.tensors.indexed_slices import wrap
from teletape_engine.derivatives import jacobian
from teletape_engine.derivatives.query import GradientQuery
from teletape_engine.derivatives.reports.estimate import CostEstimate
from teletape_engine.errors import InvalidArgumentError
from teletape_engine.recording.tape import Tape

NONE = UnconnectedGradients.NONE


class Jacobians:
    """The methods of `GradientTape` that compute them."""

    _persistent: bool

    def _begin(self, *, jacobian: bool = False) -> tuple[Session, Tape]:
        """Returns the tape's session and the tape, at the beginning of a question; see `GradientTape`."""
        raise NotImplementedError  # pragma: no cover - abstract

    def _computing(self, *, retain_tape: bool = False) -> AbstractContextManager[None]:
        """The block in which the tape computes; see `GradientTape`."""
        raise NotImplementedError  # pragma: no cover - abstract

    def _gradient(
        self, target: Any, sources: Any, output_gradients: Any, unconnected_gradients: Any, *, retain_tape: bool = False
    ) -> Any:
        """Returns one gradient; see `GradientTape`."""
        raise NotImplementedError  # pragma: no cover - abstract

    @reports
    def gradients(self, questions: Sequence[Any], unconnected_gradients: Any = NONE) -> list[Any]:
        """Returns several gradients; a tape that is not persistent answers all of them. Teletape's own.

        Args:
            questions: For each gradient its arguments in their order: (target, sources), or (target, sources,
                output_gradients).
            unconnected_gradients: As for `gradient`, for all of them.

        Returns:
            The result of `gradient` for each question.

        Raises:
            RuntimeError: As for `gradient`.
            TypeError: As for `gradient`.
            ValueError: A question that has neither two nor three parts; as for `gradient`.
            LookupError: As for `gradient`.
        """
        for question in questions:
            if not isinstance(question, Sequence) or len(question) not in (2, 3):
                raise ValueError(
                    f"a question is (target, sources) or (target, sources, output_gradients), found {question!r}"
                )
        results = []
        for number, question in enumerate(questions, 1):
            target, sources, output_gradients = (*question, None)[:3]
            retain_tape = number < len(questions)
            results.append(
                self._gradient(target, sources, output_gradients, unconnected_gradients, retain_tape=retain_tape)
            )
        return results

    @reports
    def gradient_statistics(self, target: Any, sources: Any, output_gradients: Any = None) -> Any:
        """Returns a few numbers about each gradient in place of its elements. Teletape's own.

        Norm, largest magnitude, mean, and the shares of elements that are not finite and that are zero. Through a
        server it is one request, and no gradient is sent, except for those that pass a gradient function of the
        program. The tape is not used up: `gradient` may follow.

        Args:
            target: As for `gradient`.
            sources: As for `gradient`; the answer has their structure.
            output_gradients: As for `gradient`.

        Returns:
            For each source a `Statistics`, or None where the gradient is None.

        Raises:
            RuntimeError: As for `gradient`.
            TypeError: As for `gradient`.
            ValueError: As for `gradient`.
            LookupError: As for `gradient`.
            teletape.errors.UnimplementedError: Inside a traced function, where there are no values.
        """
        owner, tape = self._begin()
        targets, flat = _numeric_targets(target), _numeric_sources(sources)
        cotangents = None if output_gradients is None else cotangents_for(targets, output_gradients)
        query = _query(owner, tape, targets, flat, output_gradients=cotangents, retain_tape=True)
        with self._computing(retain_tape=True):
            return nest.pack_sequence_as(sources, owner.gradient_statistics(query))

    @reports
    def estimate(
        self, target: Any, sources: Any, question: str = "gradient", *, max_bytes: int | None = None
    ) -> CostEstimate:
        """Estimates the cost of a derivative without computing it: bytes, ops, seconds. Teletape's own.

        The backward passes run on shapes, without values; through a server that is one request. The tape is not used
        up: `gradient` may follow.

        Args:
            target: The target of the derivative.
            sources: The sources of the derivative.
            question: "gradient", "jacobian", "batch_jacobian", "hessian" or "hvp".
            max_bytes: As for `jacobian`.

        Returns:
            A `CostEstimate`; its `seconds` are None inside a traced function, and on a GPU.

        Raises:
            RuntimeError: As for `gradient`.
            TypeError: As for `gradient`.
            ValueError: As for `gradient`.
            LookupError: As for `gradient`.
            teletape.errors.InvalidArgumentError: An unknown question; targets or sources that the question does not
                take.
        """
        owner, tape = self._begin()
        targets, flat = _numeric_targets(target), _numeric_sources(sources)
        query = _query(owner, tape, targets, flat, max_bytes=checked_bound(max_bytes), retain_tape=True)
        with self._computing(retain_tape=True):
            return owner.estimate(query, question)

    @reports
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
        """Returns the derivative of each element of `target` with respect to each element of each source.

        One backward pass goes over a stack of cotangents, in chunks that bound the memory.

        Args:
            target: A tensor or variable.
            sources: A tensor or variable, or a nested structure of them; the answer has its structure.
            unconnected_gradients: The result for a source on which the target does not depend: NONE or ZERO.
            parallel_iterations: How many rows go at once, 2 or more; None: as many as `max_bytes` allows.
            experimental_use_pfor: False: one row at a time, or `parallel_iterations`; for a persistent tape.
            max_bytes: The bytes that the cotangents of a chunk may take; None: 64 MiB, or the rest of the session's
                memory.

        Returns:
            For each source a tensor [*target.shape, *source.shape], or None.

        Raises:
            RuntimeError: The tape was used up by an earlier question, was never entered, or is not persistent and
                `experimental_use_pfor` is False.
            AttributeError: A target without a shape, such as a list.
            TypeError: What is no tensor among the sources.
            ValueError: A bad `unconnected_gradients` or `parallel_iterations`.
            LookupError: An op without a gradient lies between the target and what the tape watched.
            teletape.errors.ResourceExhaustedError: A single row takes more than `max_bytes`, or the answer does not fit
                into the memory.
        """
        owner, tape = self._begin(jacobian=True)
        rows = target.shape.num_elements() if hasattr(target.shape, "num_elements") else 1
        flat, checked = sources_of(sources), as_target(target)
        fields = Vectorization(
            "jacobian", unconnected_gradients, parallel_iterations, experimental_use_pfor, max_bytes
        ).fields(rows, persistent=self._persistent)
        query = _query(owner, tape, [checked], [source for source in flat if not is_text(source)], **fields)
        with self._computing():
            if is_text(checked):
                owner.gradient(replace(query, targets=[], sources=[]))  # it counts as an answer all the same
                derivatives = iter([None] * len(query.sources))
            else:
                derivatives = iter(ask(owner, JACOBIAN, query, vectorize=experimental_use_pfor))
        return nest.pack_sequence_as(
            sources, [None if is_text(source) else wrap(next(derivatives), owner) for source in flat]
        )

    @reports
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
        """Returns the Jacobian of each example, where target[i] depends on source[i] alone.

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
            ValueError: A rank below 2, or different first dimensions; a bad argument as for `jacobian`.
            RuntimeError: As for `jacobian`; also fewer `parallel_iterations` than rows on a non-persistent tape.
            AttributeError: As for `jacobian`.
            TypeError: As for `jacobian`.
            LookupError: As for `jacobian`.
            teletape.errors.ResourceExhaustedError: As for `jacobian`.
        """
        owner, tape = self._begin(jacobian=True)
        shape = tuple(target.shape)
        try:
            jacobian.check_rank(shape)
            jacobian.check_examples(shape, tuple(source.shape))
        except InvalidArgumentError as error:
            raise ValueError(error.message) from None
        fields = Vectorization(
            "batch_jacobian", unconnected_gradients, parallel_iterations, experimental_use_pfor, max_bytes
        ).fields(math.prod(shape[1:]), persistent=self._persistent)
        query = _query(owner, tape, [as_target(target)], [as_source(source)], **fields)
        with self._computing():
            [derivative] = ask(owner, BATCH_JACOBIAN, query, vectorize=experimental_use_pfor)
        return wrap(derivative, owner)

    @reports
    def vjps(
        self,
        target: Any,
        sources: Any,
        output_gradients: Any,
        unconnected_gradients: Any = NONE,
        *,
        max_bytes: int | None = None,
    ) -> Any:
        """Returns the gradients for several output gradients, computed in one backward pass. Teletape's own.

        Args:
            target: A tensor or variable, or a nested structure of them, which are summed.
            sources: The same; the answer has its structure.
            output_gradients: For each target a stack [k, *target.shape]; None: ones. At least one of them is a stack.
            unconnected_gradients: The result for a source on which the target does not depend: NONE or ZERO.
            max_bytes: As for `jacobian`.

        Returns:
            For each source a tensor [k, *source.shape], row i the gradient for the i-th of each stack; or None.

        Raises:
            RuntimeError: The tape was used up by an earlier question, or was never entered.
            TypeError: What is no tensor among targets or sources.
            ValueError: A bad `unconnected_gradients`; another count of stacks than of targets.
            LookupError: As for `jacobian`.
            teletape.errors.InvalidArgumentError: Stacks of another shape or dtype, or of different lengths.
            teletape.errors.ResourceExhaustedError: As for `jacobian`.
        """
        owner, tape = self._begin()
        targets, flat = _numeric_targets(target), _numeric_sources(sources)
        zeros = wants_zeros(unconnected_gradients)
        stacks = operands_like(output_gradients, targets, target, "output_gradients")
        query = _query(
            owner, tape, targets, flat, output_gradients=stacks, zeros=zeros, max_bytes=checked_bound(max_bytes)
        )
        return nest.pack_sequence_as(sources, self._ask(VJPS, owner, query))

    @reports
    def hessian(
        self, target: Any, sources: Any, unconnected_gradients: Any = NONE, *, max_bytes: int | None = None
    ) -> Any:
        """Returns the second derivatives of `target`, summed over all its parts, without an outer tape. Teletape's own.

        Args:
            target: A tensor or variable, or a nested structure of them.
            sources: The same.
            unconnected_gradients: The block of two sources that are not connected: NONE or ZERO.
            max_bytes: As for `jacobian`.

        Returns:
            For a single source a tensor [*source.shape, *source.shape]. For a structure of sources that structure, with
            the same structure for each source in it: block [i][j] is [*source i, *source j], or None.

        Raises:
            RuntimeError: The tape was used up by an earlier question, or was never entered.
            TypeError: As for `jacobian`.
            ValueError: A bad `unconnected_gradients`.
            LookupError: As for `jacobian`.
            teletape.errors.ResourceExhaustedError: As for `jacobian`.
        """
        owner, tape = self._begin()
        targets, flat = _numeric_targets(target), _numeric_sources(sources)
        query = _query(
            owner, tape, targets, flat, zeros=wants_zeros(unconnected_gradients), max_bytes=checked_bound(max_bytes)
        )
        blocks, n = self._ask(HESSIAN, owner, query), len(flat)
        rows = [nest.pack_sequence_as(sources, blocks[i * n : (i + 1) * n]) for i in range(n)]
        return nest.pack_sequence_as(sources, rows)

    @reports
    def hvp(
        self,
        target: Any,
        sources: Any,
        vectors: Any,
        unconnected_gradients: Any = NONE,
        *,
        output_gradients: Any = None,
    ) -> Any:
        """Returns the Hessian of `target`, summed over all its parts, times a vector. Teletape's own.

        It costs about two gradients.

        Args:
            target: A tensor or variable, or a nested structure of them.
            sources: The same; the answer has its structure.
            vectors: The vector: for each source a tensor of its shape.
            unconnected_gradients: The result for a source that is not connected: NONE or ZERO.
            output_gradients: A weight for each target, of its shape, None for ones: the sum is that of the targets
                times their weights.

        Returns:
            For each source a tensor of its shape and dtype, or None.

        Raises:
            RuntimeError: The tape was used up by an earlier question, or was never entered.
            TypeError: As for `jacobian`.
            ValueError: A bad `unconnected_gradients`; another count of vectors than of sources, or of output gradients
                than of targets.
            LookupError: As for `jacobian`.
            teletape.errors.InvalidArgumentError: A vector of another shape or dtype than its source, or an output
                gradient than its target.
        """
        owner, tape = self._begin()
        targets, flat = _numeric_targets(target), _numeric_sources(sources)
        operands = operands_like(vectors, flat, sources, "vectors")
        weights = output_gradients
        if weights is not None:
            weights = operands_like(weights, targets, target, "output_gradients")
        zeros = wants_zeros(unconnected_gradients)
        query = _query(owner, tape, targets, flat, vectors=operands, output_gradients=weights, zeros=zeros)
        return nest.pack_sequence_as(sources, self._ask(HVP, owner, query))

    def _ask(self, question: Question, owner: Session, query: GradientQuery) -> list[Any]:
        """Returns the derivatives as the program's tensors, flat."""
        with self._computing():
            derivatives = ask(owner, question, query)
        return [wrap(derivative, owner) for derivative in derivatives]


def _query(owner: Session, tape: Tape, targets: Sequence[Any], sources: Sequence[Any], **fields: Any) -> GradientQuery:
    """Returns the question about these tensors and variables."""
    return GradientQuery(
        tape,
        recorded_values(targets, owner),
        recorded_values(sources, owner),
        declarations=owner.declarations,
        **fields,
    )


def _numeric_targets(target: Any) -> list[Any]:
    """Returns the targets that are not strings."""
    return [value for value in targets_of(target) if not is_text(value)]


def _numeric_sources(sources: Any) -> list[Any]:
    """Returns the sources; TypeError for strings, which have no derivatives here."""
    flat = sources_of(sources)
    for source in flat:
        if is_text(source):
            raise TypeError(f"a source must be numeric, found a tensor of {source.dtype!r}: {source!r}")
    return flat
