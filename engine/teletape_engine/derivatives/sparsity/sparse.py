"""Sparse Jacobians and Hessians: the structure from the tape, a few products with vectors, and each entry read off.

A product from the left is a backward pass with a cotangent; one from the right is a backward pass over the recorded
backward pass, which is linear in its cotangent. Of a Hessian, which is symmetric, either is a Hessian-vector product.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np

from teletape_engine.catalogue.slices import densify
from teletape_engine.derivatives.gradient import answering, gradient
from teletape_engine.derivatives.jacobian import vjps
from teletape_engine.derivatives.query import GradientQuery
from teletape_engine.derivatives.sparsity.colouring import Colouring, coloured
from teletape_engine.derivatives.sparsity.detection import jacobian_pattern
from teletape_engine.derivatives.sparsity.pattern import Ints, Pattern, index_dtype
from teletape_engine.derivatives.walks import has_stops, peak_bytes
from teletape_engine.errors import InvalidArgumentError, UnimplementedError
from teletape_engine.recording.recorder import Recorder
from teletape_engine.recording.tape import Tape
from teletape_engine.recording.values import Recorded, Variable
from teletape_engine.spec import COMPLEX, Spec

BOUND: Final = 16 << 20  #: Bytes of cotangents that products computed together may take, by default.

FORMATS: Final = ("coo", "csr")

#: From the lines of a stack of vectors, as a host array [k, n], to their products [k, m].
Products: TypeAlias = Callable[[Ints], Any]


class SparseMatrix(NamedTuple):
    """A matrix of target elements by source elements, both in row-major order.

    Attributes:
        starts: [rows + 1]: where each row begins in `columns` and `values`, and their end.
        columns: [n], sorted within a row; as `starts` int32, or int64 if that is too small.
        values: [n], recorded, of the source's dtype; zeros among them where the derivative happens to be zero.
        shape: (rows, columns).
        vector_products: How many products with vectors it took.
    """

    starts: Ints
    columns: Ints
    values: Recorded
    shape: tuple[int, int]
    vector_products: int

    def numbers(self, format: str) -> tuple[Ints, Ints]:
        """Where the entries are.

        Args:
            format: `coo`: for each entry its row and its column. `csr`: `starts` and `columns`.

        Raises:
            InvalidArgumentError: Another format.
        """
        check_format(format)
        return (_rows(self.starts) if format == "coo" else self.starts), self.columns

    def facts(self, format: str) -> dict[str, Any]:
        """What it is like, JSON-able; members as in the command `sparse_jacobian`."""
        return {
            "kind": "sparse",
            "format": format,
            "shape": list(self.shape),
            "entries": len(self.columns),
            "index_dtype": self.columns.dtype.name,
            "vector_products": self.vector_products,
        }


def check_format(format: str) -> None:
    """InvalidArgumentError unless it is the name of a format."""
    if format not in FORMATS:
        raise InvalidArgumentError(f"format: coo or csr, found {format!r}")


def sparse_jacobian(recorder: Recorder, query: GradientQuery) -> SparseMatrix | None:
    """The Jacobian of the one target by the one source, where it may differ from zero.

    Args:
        recorder: The context of the question; it records nothing of the answer.
        query: The question. `max_bytes` and `chunk_size` bound how many products are computed together.

    Returns:
        A matrix [target.size, source.size]. Not connected: None, or with `query.zeros` a matrix without entries.

    Raises:
        InvalidArgumentError: Other than one target and one source.
        UnimplementedError: Another tape or an accumulator follows the target.
        TapeConsumedError: A non-persistent tape has answered before.
        NoGradientRegisteredError: As `backward_pass`.
        ResourceExhaustedError: The structure has too many entries, or the answer does not fit into the session.
        CancelledError: Its caller wants it stopped.
    """
    target, source = single_target(query), _source(query)
    with _asking(recorder, query):
        matrix = _derivative(recorder, query, target, source, symmetric=False)
    return _answer(recorder, query, matrix, (target.spec.size, source.spec.size))


def sparse_hessian(recorder: Recorder, query: GradientQuery) -> SparseMatrix | None:
    """The second derivatives of the targets' sum by the one source, where they may differ from zero.

    Returns:
        A matrix [source.size, source.size]. No second derivative: None, or with `query.zeros` one without entries.

    Args and errors as `sparse_jacobian`; there may be several targets.
    """
    source = _source(query)
    with _asking(recorder, query), query.tape.aside():
        with recorder.context.only([query.tape], []):
            [first] = gradient(recorder, query.gradient_of(query.targets, retain_tape=True))
            derivative = densify(first, recorder)
        matrix = None if derivative is None else _derivative(recorder, query, derivative, source, symmetric=True)
        if query.observer is not None:
            query.observer([derivative], [None if matrix is None else matrix.values])
    return _answer(recorder, query, matrix, (source.spec.size, source.spec.size))


def single_target(query: GradientQuery) -> Any:
    """The target of a Jacobian; InvalidArgumentError if there are several."""
    if len(query.targets) != 1:
        raise InvalidArgumentError(f"a sparse Jacobian has one target, found {len(query.targets)}")
    return query.targets[0]


def connected(
    recorder: Recorder, query: GradientQuery, dense: Callable[[Recorder, GradientQuery], Sequence[Any]]
) -> bool:
    """Whether there is a sparse derivative: for a recorder without arrays, which cannot know more.

    Args:
        recorder: The context of the question.
        query: The question.
        dense: Computes the dense derivative: `jacobian`, or `second_order.hessian`.

    Raises:
        InvalidArgumentError, UnimplementedError, TapeConsumedError, NoGradientRegisteredError: As `sparse_jacobian`.
    """
    _source(query)
    with _asking(recorder, query):
        [derivative] = dense(recorder, query)
        return (derivative[0] if isinstance(derivative, list) else derivative) is not None


def _source(query: GradientQuery) -> Any:
    if len(query.sources) != 1:
        raise InvalidArgumentError(
            f"a sparse derivative has one source, found {len(query.sources)}: ask for each by itself, on a persistent "
            "tape"
        )
    return query.sources[0]


@contextmanager
def _asking(recorder: Recorder, query: GradientQuery) -> Iterator[None]:
    """A block in which the tape answers several questions, and nothing records how.

    Raises:
        UnimplementedError: Something would have to record it.
    """
    tape, context = query.tape, recorder.context
    for target in query.targets:
        outer = [other for other in context.tapes if other is not tape and target.uid in other.tracked]
        if outer or any(accumulator.tangent(target) is not None for accumulator in context.accumulators):
            raise UnimplementedError(
                f"{'another tape' if outer else 'an accumulator'} records what this target depends on, and a sparse "
                "derivative has no derivative of its own: ask outside its context or in `stop_recording`, or use "
                "jacobian or hessian"
            )
    with answering(recorder, query.gradient_of(query.targets, retain_tape=True)):
        persistent, tape.persistent = tape.persistent, True
        try:
            with context.only([], []):
                yield
        finally:
            tape.persistent = persistent
            if not persistent and not query.retain_tape:
                tape.consume()
                tape.free()


def _answer(
    recorder: Recorder, query: GradientQuery, matrix: SparseMatrix | None, shape: tuple[int, int]
) -> SparseMatrix | None:
    if matrix is not None or not query.zeros:
        return matrix
    dtype = index_dtype(*shape)
    values = recorder.full(query.sources[0].spec.with_shape((0,)), 0)
    return SparseMatrix(np.zeros(shape[0] + 1, dtype), np.zeros(0, dtype), values, shape, 0)


# ------------------------------------------------------------------------------------------------------------ products
def _derivative(
    recorder: Recorder, query: GradientQuery, target: Any, source: Any, *, symmetric: bool
) -> SparseMatrix | None:
    tape = query.tape
    if not (tape.watches(target) if isinstance(target, Variable) else target.uid in tape.tracked):
        return None
    pattern = jacobian_pattern(
        tape,
        target.uid,
        source.uid,
        source.spec.size,
        on_host=recorder.backend.get,
        check_cancelled=recorder.check_cancelled,
    )
    if pattern is None:
        return None
    # A gradient of the caller's own need not be symmetric, and the transpose of a complex one is not its adjoint.
    stops = has_stops(tape, query.declarations)
    plain = not stops and {target.spec.dtype, source.spec.dtype}.isdisjoint(COMPLEX)
    colouring = coloured(
        pattern,
        columns=plain and not symmetric,
        hubs=plain,
        symmetric=symmetric,
        check_cancelled=recorder.check_cancelled,
    )

    def from_left(stack: Ints) -> Any:
        return _products(recorder, query, target, stack)

    if symmetric or (colouring.by_rows and not len(colouring.hubs)):
        products = from_left, from_left
        return _read(recorder, query, pattern, colouring, target, source, *products, symmetric=symmetric)
    # The backward pass as a function of its cotangent: a Jacobian's product from the right is one of its from the left.
    cotangent, linear = recorder.full(target.spec, 0), Tape(persistent=True)
    linear.watch(cotangent)
    with recorder.context.only([linear], []):
        [share] = gradient(recorder, query.gradient_of([target], [cotangent], retain_tape=True))
        share = densify(share, recorder)
    back = GradientQuery(linear, [share], [cotangent], declarations=query.declarations, zeros=True)

    def from_right(stack: Ints) -> Any:
        return _products(recorder, back, share, stack)

    return _read(recorder, query, pattern, colouring, target, source, from_left, from_right)


def _products(recorder: Recorder, query: GradientQuery, target: Any, stack: Ints) -> Any:
    """For each vector of a stack [k, target.size] the gradient of its product with the target: [k, source.size]."""
    k, spec = len(stack), target.spec
    if k == 1:
        vector = recorder.constant(stack.reshape(spec.shape))
        [product] = gradient(recorder, query.gradient_of([target], [vector], zeros=True, retain_tape=True))
        product = densify(product, recorder)
    else:
        vectors = recorder.constant(stack.reshape((k, *spec.shape)))
        [product] = vjps(recorder, query.gradient_of([target], [vectors], zeros=True, retain_tape=True))
    assert product is not None
    return product.array.reshape(k, -1)


def _read(
    recorder: Recorder,
    query: GradientQuery,
    pattern: Pattern,
    colouring: Colouring,
    target: Any,
    source: Any,
    from_left: Products,
    from_right: Products,
    *,
    symmetric: bool = False,
) -> SparseMatrix:
    """The entries, from the products that the colouring says."""
    starts, columns = pattern.in_rows()
    by_rows, hubs = colouring.by_rows, colouring.hubs
    shape = len(starts) - 1, pattern.width
    starts, columns = [numbers.astype(index_dtype(*shape, len(columns)), copy=False) for numbers in (starts, columns)]
    recorder.admit(starts.nbytes + columns.nbytes, "the structure of a sparse derivative")
    values = recorder.full(source.spec.with_shape((len(columns),)), 0)
    rows = columns if by_rows and not len(hubs) else _rows(starts)  # which nothing reads then
    lines, crossing = (rows, columns) if by_rows else (columns, rows)
    group = np.repeat(colouring.colours, np.diff(starts)) if by_rows else colouring.colours[columns]
    row_bytes = max(peak_bytes(query.tape, [target.uid], query.source_uids), 1)
    bound = BOUND if query.max_bytes is None else query.max_bytes
    together = max(min(bound // row_bytes, query.chunk_size or colouring.products), 1)
    if query.at_stacked_stop is None and has_stops(query.tape, query.declarations):
        together = 1  # a function of the caller's takes one cotangent
    done = 0

    def read(products: Products, group: Ints, at: Ints, count: int, members: Callable[[int], Any], spec: Spec) -> None:
        nonlocal done
        for first in range(0, count, together):
            if colouring.products > together:
                recorder.iteration(done, colouring.products)
            last = min(first + together, count)
            done += last - first
            vectors = np.zeros((last - first, spec.size), spec.dtype)
            for k in range(first, last):
                vectors[k - first, members(k)] = 1
            result = products(vectors)
            chosen = np.flatnonzero((group >= first) & (group < last))
            put = recorder.backend.put
            values.array[put(chosen)] = result[put(group[chosen] - first), put(at[chosen])]
            del vectors, result, chosen  # before the next ones are made

    left, right = target.spec, source.spec
    if len(hubs):
        number = np.full(shape[1 if by_rows else 0], -1, np.int32)
        number[hubs] = np.arange(len(hubs), dtype=np.int32)
        hub, across = number[crossing], lines
        if symmetric:  # row i is column i
            turned = hub < 0
            hub, across = np.where(turned, number[lines], hub), np.where(turned, crossing, lines)
        group[hub >= 0] = -1
        read(
            from_right if by_rows else from_left,
            hub,
            across,
            len(hubs),
            lambda k: hubs[k],
            right if by_rows else left,
        )
    read(
        from_left if by_rows else from_right,
        group,
        crossing,
        colouring.groups,
        lambda k: colouring.colours == k,
        left if by_rows else right,
    )
    return SparseMatrix(starts, columns, values, shape, colouring.products)


def _rows(starts: Ints) -> Ints:
    rows = len(starts) - 1
    return np.repeat(np.arange(rows, dtype=starts.dtype), np.diff(starts))
