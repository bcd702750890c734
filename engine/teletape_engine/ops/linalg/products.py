"""The matrix product over the last two axes; leading axes broadcast."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

from teletape_engine.arrays import Array, ArrayModule
from teletape_engine.catalogue.attributes import Attrs
from teletape_engine.catalogue.define import check_dtypes, op, sample
from teletape_engine.catalogue.elementwise import align, sum_to
from teletape_engine.catalogue.op import Cut, Op, Reach, Trait
from teletape_engine.catalogue.operand import Operand
from teletape_engine.catalogue.signature import Conversion, function
from teletape_engine.errors import InvalidArgumentError
from teletape_engine.ops.elementwise.complex import conj
from teletape_engine.ops.shapes.shape import reshape
from teletape_engine.spec import COMPLEX, HALF, NUMERIC, Spec, broadcast, half_bytes, shape_text, wide

_MANY: Final = 16  # matrices in a stack
_VECTORS: Final = ". matvec multiplies a matrix and a vector, dot also two vectors"


def _matmul_spec(a: Spec, b: Spec, *, transpose_a: bool, transpose_b: bool, adjoint_a: bool, adjoint_b: bool) -> Spec:
    op_type = "MatMul" if a.ndim == b.ndim == 2 else "BatchMatMulV2"
    check_dtypes(op_type, (a, b), NUMERIC)
    for flag, transpose, adjoint in (("a", transpose_a, adjoint_a), ("b", transpose_b, adjoint_b)):
        if transpose and adjoint:
            raise InvalidArgumentError(f"Only one of `transpose_{flag}` and `adjoint_{flag}` can be True.")
    if min(a.ndim, b.ndim) < 2:
        if a.ndim != b.ndim:
            raise InvalidArgumentError(
                f"In[0] and In[1] has different ndims: {shape_text(a.shape)} vs. {shape_text(b.shape)}{_VECTORS}"
            )
        raise InvalidArgumentError(f"In[0] and In[1] ndims must be == 2: {a.ndim}{_VECTORS}")
    shapes = f"In[0]: {shape_text(a.shape)}, In[1]: {shape_text(b.shape)}"
    m, k = a.shape[-2:][:: -1 if transpose_a or adjoint_a else 1]
    l, n = b.shape[-2:][:: -1 if transpose_b or adjoint_b else 1]  # noqa: E741  # the textbook's letter
    try:
        lead = broadcast(a.shape[:-2], b.shape[:-2])
    except InvalidArgumentError:
        raise InvalidArgumentError(
            f"In[0] and In[1] must have compatible batch dimensions: {shape_text(a.shape)} vs. {shape_text(b.shape)}"
        ) from None
    if k != l:
        raise InvalidArgumentError(f"Matrix size-incompatible: {shapes}")
    return a.with_shape((*lead, m, n))


# With C = A B:  dL/dA = ct Bᴴ  and  dL/dB = Aᴴ ct. If A is aᵀ or aᴴ, `gradient` is dL/dAᵀ, and its conjugate is the
# result for aᴴ. Conjugates are left out for real arrays.
def _vjp_a(
    ct: Operand, b: Operand, a_spec: Spec, transpose_a: bool, transpose_b: bool, adjoint_a: bool, adjoint_b: bool
) -> Operand:
    is_complex = a_spec.dtype in COMPLEX
    b = conj(b) if is_complex and not adjoint_b else b
    turned_b = transpose_b or adjoint_b
    if transpose_a or adjoint_a:
        gradient = matmul(b, ct, transpose_a=turned_b, transpose_b=True)
    else:
        gradient = matmul(ct, b, transpose_b=not turned_b)
    return sum_to(conj(gradient) if is_complex and adjoint_a else gradient, a_spec.shape)


def _vjp_b(
    ct: Operand, a: Operand, b_spec: Spec, transpose_a: bool, transpose_b: bool, adjoint_a: bool, adjoint_b: bool
) -> Operand:
    is_complex = b_spec.dtype in COMPLEX
    a = conj(a) if is_complex and not adjoint_a else a
    turned_a = transpose_a or adjoint_a
    if b_spec.ndim == 2 and len(ct.shape) > 2 and not turned_a:  # one product, and no sum over a stack of them
        a, ct = _rows(a), _rows(ct)
    if transpose_b or adjoint_b:
        gradient = matmul(ct, a, transpose_a=True, transpose_b=turned_a)
    else:
        gradient = matmul(a, ct, transpose_a=not turned_a)
    return sum_to(conj(gradient) if is_complex and adjoint_b else gradient, b_spec.shape)


def _rows(x: Operand) -> Operand:
    """A stack of matrices as one matrix of all their rows."""
    return reshape(x, shape=(math.prod(x.shape[:-1]), x.shape[-1]))


def _jvp_a(t: Operand, b: Operand, transpose_a: bool, transpose_b: bool, adjoint_a: bool, adjoint_b: bool) -> Operand:
    return matmul(t, b, transpose_a=transpose_a, transpose_b=transpose_b, adjoint_a=adjoint_a, adjoint_b=adjoint_b)


def _jvp_b(t: Operand, a: Operand, transpose_a: bool, transpose_b: bool, adjoint_a: bool, adjoint_b: bool) -> Operand:
    return matmul(a, t, transpose_a=transpose_a, transpose_b=transpose_b, adjoint_a=adjoint_a, adjoint_b=adjoint_b)


def _workspace(a: Spec, b: Spec, **attrs: Any) -> int:
    conjugates = a.nbytes + b.nbytes if a.dtype in COMPLEX else 0
    return conjugates + half_bytes(a) + half_bytes(b) + half_bytes(_matmul_spec(a, b, **attrs))


def _work(a: Spec, b: Spec, *, transpose_a: bool, adjoint_a: bool, **attrs: Any) -> int:
    result = _matmul_spec(a, b, transpose_a=transpose_a, adjoint_a=adjoint_a, **attrs)
    return result.size * a.shape[-2 if transpose_a or adjoint_a else -1]


def _cut(a: Spec, b: Spec, *, transpose_a: bool, adjoint_a: bool, **attrs: Any) -> Cut:
    """By matrices if there are many, else by rows."""
    result = _matmul_spec(a, b, transpose_a=transpose_a, adjoint_a=adjoint_a, **attrs)
    if result.ndim > 2 and result.shape[0] >= _MANY:
        whole = result.shape[0], result.ndim
        return Cut(0, {i: 0 for i, x in enumerate((a, b)) if (x.shape[0], x.ndim) == whole})
    return Cut(-2, {0: -1 if transpose_a or adjoint_a else -2})


def _batch_matmul(record: Op, args: Sequence[Operand], batched: Sequence[bool], attrs: Attrs) -> Operand:
    """One large product for a matrix and a stack of rows or of columns, instead of a small one for each."""
    a, b = args
    turned_a, turned_b = attrs["transpose_a"], attrs["transpose_b"]
    if not (attrs["adjoint_a"] or attrs["adjoint_b"]):
        if not batched[1] and len(b.shape) == 2 and not turned_a:
            product = record(_rows(a), b, transpose_b=turned_b)
            return reshape(product, shape=(*a.shape[:-1], product.shape[-1]))
        if not batched[0] and len(a.shape) == 2 and len(b.shape) == 3 and b.shape[1 if turned_b else 2] == 1:
            product = record(reshape(b, shape=(b.shape[0], math.prod(b.shape[1:]))), a, transpose_b=not turned_a)
            return reshape(product, shape=(*product.shape, 1))
    return record(*align(args, batched), **attrs)


def _transposed(xp: ArrayModule, x: Array) -> Array:
    return xp.swapaxes(x, -1, -2)


@op(
    infer=_matmul_spec,
    vjp=[_vjp_a, _vjp_b],
    jvp=[_jvp_a, _jvp_b],
    batch=_batch_matmul,
    samples=[
        sample((2, 3), (3, 4)),
        sample((2, 3), (3, 1)),
        sample((3, 2), (1, 3), transpose_a=True, transpose_b=True),
        sample((3, 2), (3, 4), transpose_a=True),
        sample((2, 3), (4, 3), transpose_b=True, seed=1),
        sample((3, 2), (4, 3), transpose_a=True, transpose_b=True),
        sample((3, 2), (3, 4), adjoint_a=True),
        sample((2, 3), (4, 3), adjoint_b=True),
        sample((3, 2), (4, 3), adjoint_a=True, transpose_b=True),
        sample((2, 3, 4), (4, 2)),
        sample((3, 4), (2, 4, 1), seed=2),
        sample((2, 1, 2, 3), (4, 3, 2)),
        sample((0, 3), (3, 2)),
    ],
    op_type="MatMul",
    tf=(
        function(
            "matmul linalg.matmul",
            Conversion.VALUE("a"),
            Conversion.HINTED("b", of="a"),
            Conversion.FLAG("transpose_a", False),
            Conversion.FLAG("transpose_b", False),
            Conversion.FLAG("adjoint_a", False),
            Conversion.FLAG("adjoint_b", False),
            Conversion.IGNORED("a_is_sparse", False),
            Conversion.IGNORED("b_is_sparse", False),
            Conversion.PRODUCT_DTYPE("output_type", None),
            Conversion.IGNORED("grad_a", False),
            Conversion.IGNORED("grad_b", False),
        ),
    ),
    workspace=_workspace,
    work=_work,
    cut=_cut,
    traits=[Trait.MULTIPLIES],
    reach=Reach.PRODUCTS,
)
def matmul(
    xp: ArrayModule,
    a: Array,
    b: Array,
    *,
    transpose_a: bool = False,
    transpose_b: bool = False,
    adjoint_a: bool = False,
    adjoint_b: bool = False,
) -> Array:
    """The matrix product over the last two axes: [..., m, k] and [..., k, n] give [..., m, n]; leading axes broadcast.

    `transpose_*` swaps the last two axes of an input first; `adjoint_*` conjugates it too. Both need two axes or more.
    """
    dtype = a.dtype
    if dtype in HALF:
        a, b = a.astype(wide(dtype)), b.astype(wide(dtype))
    if transpose_a or adjoint_a:
        a = _transposed(xp, xp.conj(a) if adjoint_a and dtype in COMPLEX else a)
    if transpose_b or adjoint_b:
        b = _transposed(xp, xp.conj(b) if adjoint_b and dtype in COMPLEX else b)
    if b.ndim == 2 and a.ndim > 2 and a.flags.c_contiguous:  # one product, not one for each matrix of the stack
        rows = math.prod(a.shape[:-1])
        product = xp.matmul(a.reshape((rows, a.shape[-1])), b).reshape((*a.shape[:-1], b.shape[-1]))
    else:
        product = xp.matmul(a, b)
    return product.astype(dtype, copy=False)
