"""Sparse derivatives: matrices with the entries that may differ from zero, and the methods that ask tapes for them."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np

from teletape.core.calls.dispatch import call, convert_to_tensor
from teletape.core.derivatives.arguments import (
    UnconnectedGradients,
    checked_bound,
    is_text,
    recorded_values,
    sources_of,
    targets_of,
    wants_zeros,
)
from teletape.core.derivatives.traced_gradients import NotBatchable, TracedGradients
from teletape.core.functions.not_traceable import NotTraceable
from teletape.core.program.tracebacks import reports
from teletape.core.sessions.current import current
from teletape.core.sessions.recorder import id_of
from teletape.core.sessions.session import Session, SparseQuestion
from teletape.core.tensors.indexed_slices import wrap
from teletape.core.tensors.tensor import Tensor
from teletape_engine import commands
from teletape_engine.catalogue.namespace import ops
from teletape_engine.derivatives import jacobian, second_order
from teletape_engine.derivatives.query import GradientQuery
from teletape_engine.derivatives.sparsity import sparse
from teletape_engine.errors import InvalidArgumentError, UnimplementedError
from teletape_engine.recording.recorder import Recorder
from teletape_engine.recording.tape import Tape

NONE = UnconnectedGradients.NONE


class CooMatrix(NamedTuple):
    """A sparse matrix by coordinates, sorted by row and then by column; no coordinates occur twice.

    Attributes:
        rows: [n], the row of each entry; int32, or int64 for more than 2³¹ elements.
        cols: [n], its column.
        values: [n], of the source's dtype; some may be zero.
        shape: (rows, columns).
        vector_products: The number of products with vectors that were computed.
    """

    rows: Tensor
    cols: Tensor
    values: Tensor
    shape: tuple[int, int]
    vector_products: int

    def to_dense(self) -> Tensor:
        """The whole matrix."""
        return _dense(self.rows, self.cols, self.values, self.shape)

    def scipy(self) -> Any:
        """The matrix as a `scipy.sparse.coo_array`.

        Raises:
            ImportError: SciPy is not installed.
        """
        from scipy.sparse import coo_array

        return coo_array((self.values.numpy(), (self.rows.numpy(), self.cols.numpy())), shape=self.shape)


class CsrMatrix(NamedTuple):
    """A sparse matrix by rows.

    Attributes:
        indptr: [rows + 1]: the entries of row i are those from indptr[i] to indptr[i + 1]; dtype as `CooMatrix.rows`.
        indices: [n], the column of each entry, ascending within a row.
        values: As those of `CooMatrix`.
        shape: (rows, columns).
        vector_products: The number of products with vectors that were computed.
    """

    indptr: Tensor
    indices: Tensor
    values: Tensor
    shape: tuple[int, int]
    vector_products: int

    def to_dense(self) -> Tensor:
        """The whole matrix."""
        counts = np.diff(self.indptr.numpy())
        rows = convert_to_tensor(np.repeat(np.arange(len(counts), dtype=self.indices.numpy().dtype), counts))
        return _dense(rows, self.indices, self.values, self.shape)

    def scipy(self) -> Any:
        """The matrix as a `scipy.sparse.csr_array`.

        Raises:
            ImportError: SciPy is not installed.
        """
        from scipy.sparse import csr_array

        return csr_array((self.values.numpy(), self.indices.numpy(), self.indptr.numpy()), shape=self.shape)


SparseMatrix: TypeAlias = CooMatrix | CsrMatrix


def _dense(rows: Tensor, cols: Tensor, values: Tensor, shape: tuple[int, int]) -> Tensor:
    places = call(ops.stack, (rows, cols), axis=1)
    return call(ops.scatter_nd, (places, values), shape=shape)


class _Question(NamedTuple):
    """One kind of question.

    Attributes:
        name: Of the method.
        compute: The engine's function.
        dense: That of the dense derivative: on a recorder without arrays it says whether there is one.
        command: The command for a server.
    """

    name: str
    compute: Callable[[Recorder, GradientQuery], sparse.SparseMatrix | None]
    dense: Callable[[Recorder, GradientQuery], Any]
    command: type[commands.SparseJacobian | commands.SparseHessian]


_JACOBIAN: Final = _Question("sparse_jacobian", sparse.sparse_jacobian, jacobian.jacobian, commands.SparseJacobian)
_HESSIAN: Final = _Question("sparse_hessian", sparse.sparse_hessian, second_order.hessian, commands.SparseHessian)


class SparseDerivatives:
    """The part of `GradientTape` with these methods."""

    def _begin(self, *, jacobian: bool = False) -> tuple[Session, Tape]:
        """The tape's session and the tape, at the beginning of a question; see `GradientTape`."""
        raise NotImplementedError  # pragma: no cover - abstract

    def _computing(self, *, retain_tape: bool = False) -> AbstractContextManager[None]:
        """The block in which the tape computes; see `GradientTape`."""
        raise NotImplementedError  # pragma: no cover - abstract

    @reports
    def sparse_jacobian(
        self,
        target: Any,
        source: Any,
        unconnected_gradients: Any = NONE,
        *,
        format: str = "coo",
        max_bytes: int | None = None,
    ) -> SparseMatrix | None:
        """The Jacobian of `target` by `source`, where it may differ from zero. Teletape's own.

        Where that is, is read off the recorded ops, not off numbers. Rows of the Jacobian that share no column share a
        backward pass, or columns that share no row a forward one, whichever takes fewer.

        Args:
            target: A tensor or variable; of a stack of axes the elements in row-major order are the rows.
            source: A tensor or variable; its elements are the columns.
            unconnected_gradients: NONE: None if the target does not depend on the source; ZERO: a matrix without
                entries.
            format: "coo" or "csr".
            max_bytes: The bytes of products that are computed together; None: 16 MiB. A single one may take more.

        Returns:
            A `CooMatrix` or `CsrMatrix` [target.size, source.size], or None. No tape records how it was computed.

        Raises:
            RuntimeError: The tape was used up by an earlier question, or was never entered.
            TypeError: What is no tensor.
            ValueError: A bad `unconnected_gradients`.
            LookupError: An op without a gradient lies between the target and what the tape watched.
            teletape.errors.InvalidArgumentError: Several targets or sources; another format; a bound below 1.
            teletape.errors.UnimplementedError: Another tape or an accumulator follows the target.
            teletape.errors.ResourceExhaustedError: There are too many entries.
        """
        return self._sparse(_JACOBIAN, target, source, unconnected_gradients, format, max_bytes)

    @reports
    def sparse_hessian(
        self,
        target: Any,
        source: Any,
        unconnected_gradients: Any = NONE,
        *,
        format: str = "coo",
        max_bytes: int | None = None,
    ) -> SparseMatrix | None:
        """The second derivatives of `target`, summed over all its parts, where they may differ from zero.

        Teletape's own. Rows that share no column share a Hessian-vector product: three of them give a tridiagonal
        Hessian of any size.

        Args:
            target: A tensor or variable, or a nested structure of them.
            source: A tensor or variable.
            unconnected_gradients: As for `sparse_jacobian`.
            format: "coo" or "csr".
            max_bytes: As for `sparse_jacobian`.

        Returns:
            A `CooMatrix` or `CsrMatrix` [source.size, source.size], or None. No tape records how it was computed.

        Raises:
            RuntimeError: As for `sparse_jacobian`.
            TypeError: As for `sparse_jacobian`.
            ValueError: As for `sparse_jacobian`.
            LookupError: As for `sparse_jacobian`.
            teletape.errors.InvalidArgumentError: Several sources; another format; a bound below 1.
            teletape.errors.UnimplementedError: As for `sparse_jacobian`.
            teletape.errors.ResourceExhaustedError: As for `sparse_jacobian`.
        """
        return self._sparse(_HESSIAN, target, source, unconnected_gradients, format, max_bytes)

    def _sparse(
        self,
        question: _Question,
        target: Any,
        source: Any,
        unconnected_gradients: Any,
        format: str,
        max_bytes: int | None,
    ) -> SparseMatrix | None:
        owner, tape = self._begin()
        targets, sources = targets_of(target), sources_of(source)
        zeros, max_bytes = wants_zeros(unconnected_gradients), checked_bound(max_bytes)
        with self._computing():
            sparse.check_format(format)
            if current().tracing:
                raise NotTraceable(
                    f"asks for {question.name}, whose size the tape decides", "a call outside the function"
                )
            for value in (*targets, *sources):
                if is_text(value):
                    raise InvalidArgumentError(f"{question.name} takes numeric tensors, found {value!r}")
            query = GradientQuery(
                tape,
                recorded_values(targets, owner),
                recorded_values(sources, owner),
                zeros=zeros,
                max_bytes=max_bytes,
                declarations=owner.declarations,
            )
            names: tuple[Any, ...] = ()
            if not owner.local:
                query, names = _traced(owner, question, query)
            if question is _JACOBIAN:
                sparse.single_target(query)
            to_session = SparseQuestion(
                lambda recorder: question.compute(recorder, query),
                lambda recorder: sparse.connected(recorder, query, question.dense),
                lambda outputs: question.command(
                    tape.name.id,
                    tuple([id_of(value) for value in query.targets]),
                    tuple([id_of(value) for value in query.sources]),
                    tuple(outputs),
                    format,
                    "zero" if zeros else "none",
                    max_bytes,
                    custom_gradients=names,
                ),
                query.sources[0].spec,
                format,
            )
            parts, facts = owner.sparse_derivative(to_session)
        if not parts:
            return None
        first, second, values = [wrap(part, owner) for part in parts]
        shape = (facts["shape"][0], facts["shape"][1])
        return _FORMATS[format](first, second, values, shape, facts["vector_products"])


_FORMATS: Final[dict[str, type[CooMatrix] | type[CsrMatrix]]] = {"coo": CooMatrix, "csr": CsrMatrix}


def _traced(owner: Session, question: _Question, query: GradientQuery) -> tuple[GradientQuery, tuple[Any, ...]]:
    """The question with the program's own gradient functions traced, and their ids on the server."""
    try:
        traced = TracedGradients(owner, query)
    except NotBatchable as reason:
        raise UnimplementedError(f"{question.name}: {reason}; or ask in this process") from None
    if traced.any:
        query = replace(query, at_stacked_stop=traced.over_rows, at_stop=traced.over_values)
    return query, traced.names
