"""Complex numbers and their parts; size, sign and angle. A gradient is dL/dRe + i dL/dIm, TensorFlow's convention."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from teletape_engine.arrays import Array, ArrayModule
from teletape_engine.catalogue.binding import by_name
from teletape_engine.catalogue.define import check_dtypes, op, sample
from teletape_engine.catalogue.elementwise import batch_elementwise, sum_to
from teletape_engine.catalogue.families import linear
from teletape_engine.catalogue.namespace import ops
from teletape_engine.catalogue.op import Reach, Sample
from teletape_engine.catalogue.operand import Operand
from teletape_engine.catalogue.signature import Conversion, function
from teletape_engine.errors import InvalidArgumentError
from teletape_engine.ops.elementwise.logic import where
from teletape_engine.ops.shapes.cast import cast
from teletape_engine.ops.shapes.create import ones_like, zeros_like
from teletape_engine.spec import COMPLEX, COMPLEX_OF, FLOATING, REAL_OF, SIGNED, Spec, broadcast

_Z = ((0.7 + 0.4j), (-1.1 + 0.3j), (0.2 - 1.3j))


def _complex_samples() -> list[Sample]:
    return [sample(np.array(_Z)), sample(np.array([_Z, _Z[::-1]])), sample(np.array(_Z[0]))]


def _part_spec(op_type: str) -> Callable[[Spec], Spec]:
    def infer(x: Spec) -> Spec:
        check_dtypes(op_type, (x,), COMPLEX)
        return x.with_dtype(REAL_OF[x.dtype])

    return infer


@linear(
    infer=_part_spec("Real"),
    vjp=lambda ct, x_spec: cast(ct, dtype=x_spec.dtype),
    batch=batch_elementwise,
    samples=_complex_samples,
    args="input",
    tf=(function("math.real", Conversion.TENSOR("input"), shortcut="itself_if_real"),),
    views=True,
    reach=Reach.ELEMENTS,
)
def real(xp: ArrayModule, x: Array) -> Array:
    """The real part of a complex array, as its real dtype."""
    return x.real


@linear(
    infer=_part_spec("Imag"),
    vjp=lambda ct: ops.complex(zeros_like(ct), ct),
    batch=batch_elementwise,
    samples=_complex_samples,
    args="input",
    tf=(function("math.imag", Conversion.TENSOR("input"), shortcut="zeros_if_real"),),
    views=True,
    reach=Reach.ELEMENTS,
)
def imag(xp: ArrayModule, x: Array) -> Array:
    """The imaginary part of a complex array, as its real dtype."""
    return x.imag


def _conj_spec(x: Spec) -> Spec:
    check_dtypes("Conj", (x,), COMPLEX)
    return x


@linear(
    infer=_conj_spec,
    vjp=lambda ct: ops.conj(ct),
    batch=batch_elementwise,
    samples=_complex_samples,
    tf=(function("math.conj", Conversion.TENSOR("x"), shortcut="itself_if_real"),),
    reach=Reach.ELEMENTS,
)
def conj(xp: ArrayModule, x: Array) -> Array:
    """The complex conjugate, elementwise."""
    return xp.conj(x)


def _complex_spec(a: Spec, b: Spec) -> Spec:
    if a.dtype is not b.dtype or a.dtype not in COMPLEX_OF:
        raise InvalidArgumentError(
            f"The `real` and `imag` components have incorrect types: {a.dtype.name} {b.dtype.name}. They must be "
            "consistent, and one of [tf.float32, tf.float64]"
        )
    return Spec.of(broadcast(a.shape, b.shape), COMPLEX_OF[a.dtype])


@op(
    infer=_complex_spec,
    vjp=[lambda ct, a_spec: sum_to(real(ct), a_spec.shape), lambda ct, b_spec: sum_to(imag(ct), b_spec.shape)],
    jvp=[
        lambda t, b_spec, y_spec: ops.complex(t, _zeros(t, y_spec)),
        lambda t, a_spec, y_spec: ops.complex(_zeros(t, y_spec), t),
    ],
    batch=batch_elementwise,
    samples=[sample((2, 3), (2, 3)), sample((2, 1, 3), (4, 1), seed=1), sample((), (), seed=2)],
    args="real imag",
    tf=(function("complex dtypes.complex", Conversion.VALUE("real"), Conversion.VALUE("imag"), check="complex_parts"),),
    name="complex",
    reach=Reach.ELEMENTS,
)
def complex_(xp: ArrayModule, a: Array, b: Array) -> Array:
    """a + ib from two real arrays (float32 or float64), elementwise; shapes broadcast."""
    out = xp.empty(xp.broadcast(a, b).shape, COMPLEX_OF[a.dtype])
    out.real, out.imag = a, b
    return out


def _zeros(t: Operand, y_spec: Spec) -> Operand:
    return ops.broadcast_to(zeros_like(t), shape=y_spec.shape)


# -------------------------------------------------------------------------------------------------- size and angle
def _abs_spec(x: Spec) -> Spec:
    check_dtypes("Abs", (x,), FLOATING | SIGNED | COMPLEX)
    return x.with_dtype(REAL_OF.get(x.dtype, x.dtype))


def _over(ct: Operand, size: Any) -> Operand:
    """ct / size, and 0 if size is 0, elementwise."""
    return where(size > 0, ct / where(size > 0, size, 1.0), 0.0)


def _abs_vjp(ct: Operand, x: Operand, x_spec: Spec) -> Operand:
    if x_spec.dtype in COMPLEX:
        return cast(_over(ct, abs_(x)), dtype=x_spec.dtype) * x
    return ct * sign(x)


def _abs_jvp(t: Operand, x: Operand, x_spec: Spec) -> Operand:
    if x_spec.dtype in COMPLEX:
        return _over(real(conj(x) * t), abs_(x))
    return t * sign(x)


@op(
    infer=_abs_spec,
    vjp=_abs_vjp,
    jvp=_abs_jvp,
    batch=batch_elementwise,
    samples=lambda: [*_complex_samples(), sample((2, 3)), sample((), seed=1)],
    tf="abs math.abs",
    name="abs",
    reach=Reach.ELEMENTS,
)
def abs_(xp: ArrayModule, x: Array) -> Array:
    """|x|, elementwise; of a complex array as its real dtype. The gradient at 0 is 0."""
    return xp.abs(x)


def _sign_spec(x: Spec) -> Spec:
    check_dtypes("Sign", (x,), FLOATING | SIGNED | COMPLEX)
    return x


def _turned(t: Operand, x: Operand, x_spec: Spec) -> Operand:
    """The symmetric Jacobian of the sign times t: 0 for a real x; for a complex x the part of t across x, over |x|."""
    if x_spec.dtype not in COMPLEX:
        return zeros_like(t)
    y = sign(x)
    along = cast(real(conj(y) * t), dtype=x_spec.dtype) * y
    return (t - along) * cast(_over(ones_like(real(x)), abs_(x)), dtype=x_spec.dtype)


def _is_real(spec: Spec) -> bool:
    return spec.dtype not in COMPLEX


@op(
    infer=_sign_spec,
    vjp=by_name(_turned, zero=_is_real),
    jvp=by_name(_turned, vanishes=_is_real),
    batch=batch_elementwise,
    samples=lambda: [*_complex_samples(), sample((2, 3)), sample((), seed=1)],
    tf="sign math.sign",
    reach=Reach.ELEMENTS,
)
def sign(xp: ArrayModule, x: Array) -> Array:
    """-1, 0 or 1 as x is below, at or above zero, elementwise; x/|x| of a complex x.

    The gradient of a real x is zero, not None. In TensorFlow that of a complex x is zero too, unlike the
    derivative.
    """
    if x.dtype not in COMPLEX:
        return xp.sign(x)
    size = xp.abs(x)
    return xp.where(size == 0, x, x / xp.where(size == 0, size.dtype.type(1), size))


@op(
    infer=_part_spec("Angle"),
    vjp=lambda ct, x, x_spec: cast(_over(ct, _norm(x)), dtype=x_spec.dtype) * x * 1j,
    jvp=lambda t, x: _over(imag(conj(x) * t), _norm(x)),
    batch=batch_elementwise,
    samples=_complex_samples,
    args="input",
    tf=(function("math.angle", Conversion.TENSOR("input"), shortcut="angle_if_real"),),
    reach=Reach.ELEMENTS,
)
def angle(xp: ArrayModule, x: Array) -> Array:
    """The angle of a complex x in (-π, π], elementwise, in radians, as its real dtype."""
    return xp.angle(x)


def _norm(x: Operand) -> Operand:
    return real(x) * real(x) + imag(x) * imag(x)
