"""Questions to tapes and accumulators: derivatives, and why they are what they are."""

from __future__ import annotations

from teletape_engine.commands.base import Command, Id, Input, NewId
from teletape_engine.records import record


@record(frozen=True, slots=True)
class Gradient(Command):
    """Computes the gradients of the targets' sum; an id in `outputs` for each source (null: the result is not kept).

    `output_gradients`: a weight for each target, null for ones. `unconnected`: none or zero. `predicted`: the kinds
    (none, dense, slices) that the caller expects; a difference is a StructureMismatchError. `retain_tape`: another
    question to the tape follows, so that a tape that is not persistent is not consumed yet.
    """

    verb = "gradient"
    tape: Id
    targets: tuple[Id, ...]
    sources: tuple[Id, ...]
    outputs: tuple[NewId | None, ...]
    output_gradients: tuple[Input | None, ...] | None = None
    unconnected: str = "none"
    predicted: tuple[str, ...] | None = None
    retain_tape: bool = False


@record(frozen=True, slots=True)
class Jacobian(Command):
    """Computes the derivatives of each element of the one target: [*target, *source] for each source, dense.

    `max_bytes` bounds the memory of the cotangents in use, and `chunk_size` how many are computed at once.
    `custom_gradients`: what custom.function created for the custom calls on the path. `examples`: axis 0 of the target
    [n, *y] and of each source [n, *x] numbers examples, which do not depend on each other: [n, *y, *x]. Other fields as
    in gradient.
    """

    verb = "jacobian"
    tape: Id
    targets: tuple[Id, ...]
    sources: tuple[Id, ...]
    outputs: tuple[NewId | None, ...]
    unconnected: str = "none"
    max_bytes: int | None = None
    chunk_size: int | None = None
    predicted: tuple[str, ...] | None = None
    retain_tape: bool = False
    custom_gradients: tuple[Id, ...] = ()
    examples: bool = False


@record(frozen=True, slots=True)
class BatchJacobian(Command):
    """Computes each example's Jacobian: [b, *y, *x] for one target [b, *y] and one source [b, *x].

    If they are not connected, the result is zeros of the target's dtype (`unconnected` none) or the source's (zero).
    Other fields as in jacobian.
    """

    verb = "batch_jacobian"
    tape: Id
    targets: tuple[Id, ...]
    sources: tuple[Id, ...]
    outputs: tuple[NewId | None, ...]
    unconnected: str = "none"
    max_bytes: int | None = None
    chunk_size: int | None = None
    retain_tape: bool = False
    custom_gradients: tuple[Id, ...] = ()


@record(frozen=True, slots=True)
class Vjps(Command):
    """Computes the gradients for k weights of the targets at once: [k, *source] for each source, dense.

    `output_gradients`: for each target a stack [k, *target], null for ones. Other fields as in jacobian.
    """

    verb = "vjps"
    tape: Id
    targets: tuple[Id, ...]
    sources: tuple[Id, ...]
    outputs: tuple[NewId | None, ...]
    output_gradients: tuple[Input | None, ...]
    unconnected: str = "none"
    max_bytes: int | None = None
    chunk_size: int | None = None
    predicted: tuple[str, ...] | None = None
    retain_tape: bool = False
    custom_gradients: tuple[Id, ...] = ()


@record(frozen=True, slots=True)
class Hessian(Command):
    """Computes the second derivatives of the targets' sum: a block [*source i, *source j] for each pair of sources.

    `outputs` and `predicted` list the pairs row by row: j changes fastest. With `examples` a block is [n, *x i, *x j].
    Other fields as in jacobian.
    """

    verb = "hessian"
    tape: Id
    targets: tuple[Id, ...]
    sources: tuple[Id, ...]
    outputs: tuple[NewId | None, ...]
    unconnected: str = "none"
    max_bytes: int | None = None
    chunk_size: int | None = None
    predicted: tuple[str, ...] | None = None
    retain_tape: bool = False
    custom_gradients: tuple[Id, ...] = ()
    examples: bool = False


@record(frozen=True, slots=True)
class Hvp(Command):
    """Computes the Hessian of the targets' sum times a vector: [*source] for each source, dense.

    `vectors`: the vector's part for each source. With `output_gradients` the sum is that of the targets times these
    weights. Other fields as in gradient and jacobian.
    """

    verb = "hvp"
    tape: Id
    targets: tuple[Id, ...]
    sources: tuple[Id, ...]
    vectors: tuple[Input, ...]
    outputs: tuple[NewId | None, ...]
    unconnected: str = "none"
    predicted: tuple[str, ...] | None = None
    retain_tape: bool = False
    custom_gradients: tuple[Id, ...] = ()
    output_gradients: tuple[Input | None, ...] | None = None


@record(frozen=True, slots=True)
class SparseJacobian(Command):
    """Computes the Jacobian of the one target by the one source where it may differ from zero, as a sparse matrix.

    It has target-size rows and source-size columns. `outputs` has three ids (null: not kept): with `format` coo for the
    rows [n], the columns [n] and the values [n] of the entries, row by row; with csr for where each row begins
    [rows + 1], the columns and the values. The answer has `kind` (none or sparse), `format`, `shape`, `entries` (n),
    `index_dtype`, and `vector_products`: how many products with vectors it took. No tape records how. Other fields as
    in jacobian.
    """

    verb = "sparse_jacobian"
    tape: Id
    targets: tuple[Id, ...]
    sources: tuple[Id, ...]
    outputs: tuple[NewId | None, ...]
    format: str = "coo"
    unconnected: str = "none"
    max_bytes: int | None = None
    chunk_size: int | None = None
    retain_tape: bool = False
    custom_gradients: tuple[Id, ...] = ()


@record(frozen=True, slots=True)
class SparseHessian(Command):
    """Computes the second derivatives of the targets' sum by the one source where they may differ from zero.

    A sparse matrix of source-size rows and columns; answer and fields as in sparse_jacobian.
    """

    verb = "sparse_hessian"
    tape: Id
    targets: tuple[Id, ...]
    sources: tuple[Id, ...]
    outputs: tuple[NewId | None, ...]
    format: str = "coo"
    unconnected: str = "none"
    max_bytes: int | None = None
    chunk_size: int | None = None
    retain_tape: bool = False
    custom_gradients: tuple[Id, ...] = ()


@record(frozen=True, slots=True)
class Jvp(Command):
    """Names the tangents of `targets`: an id in `outputs` for each (null: the tangent is not kept).

    `unconnected` and `predicted` as in gradient.
    """

    verb = "jvp"
    accumulator: Id
    targets: tuple[Id, ...]
    outputs: tuple[NewId | None, ...]
    unconnected: str = "none"
    predicted: tuple[str, ...] | None = None


@record(frozen=True, slots=True)
class Explain(Command):
    """Answers for each source why the gradient of the targets' sum is what it is; the tape is unchanged."""

    verb = "explain"
    tape: Id
    targets: tuple[Id, ...]
    sources: tuple[Id, ...]


@record(frozen=True, slots=True)
class GradientStatistics(Command):
    """Answers a few numbers about each gradient of the targets' sum in place of its elements; the tape is not consumed.

    Other fields as in gradient.
    """

    verb = "gradient_statistics"
    tape: Id
    targets: tuple[Id, ...]
    sources: tuple[Id, ...]
    output_gradients: tuple[Input | None, ...] | None = None


@record(frozen=True, slots=True)
class Estimate(Command):
    """Answers what a derivative would take: bytes, ops, multiply-adds, about how many seconds. Nothing is computed.

    `question` is gradient, jacobian, batch_jacobian, hessian or hvp; the other fields are as in it. An hvp is estimated
    without its vectors.
    """

    verb = "estimate"
    tape: Id
    targets: tuple[Id, ...]
    sources: tuple[Id, ...]
    question: str = "gradient"
    max_bytes: int | None = None
    chunk_size: int | None = None
