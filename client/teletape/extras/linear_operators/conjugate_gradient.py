"""`tf.linalg.experimental.conjugate_gradient`: systems of positive definite operators, by products alone."""

from __future__ import annotations

from typing import Any, NamedTuple

from teletape._generated.elementwise.complex import conj, real
from teletape._generated.elementwise.logic import greater
from teletape._generated.reduce import reduce_any, reduce_sum
from teletape._generated.shapes.shape import broadcast_to, expand_dims
from teletape.core.calls.dispatch import constant, convert_to_tensor
from teletape.core.tensors.tensor import Tensor
from teletape.extras.linear_operators.arguments import common_batch
from teletape.extras.linear_operators.operator import LinearOperator
from teletape.tf.control_flow.eager import while_loop
from teletape.tf.ops.arrays.create import zeros
from teletape.tf.ops.linalg.norms import norm


class CGState(NamedTuple):
    """The result of conjugate_gradient: iterations, solution, residual, direction, the product of the residuals."""

    i: Tensor
    x: Tensor
    r: Tensor
    p: Tensor
    gamma: Tensor


def _dot(x: Tensor, y: Tensor) -> Any:
    return reduce_sum(conj(x) * y, axis=-1)


def conjugate_gradient(
    operator: LinearOperator,
    rhs: Any,
    preconditioner: LinearOperator | None = None,
    x: Any = None,
    tol: float = 1e-5,
    max_iter: int = 20,
    name: str = "conjugate_gradient",
) -> CGState:
    """Solves A x = rhs for vectors [..., N], for a self-adjoint positive definite operator; gradients pass the steps.

    Args:
        operator: A, with the hints that it is self-adjoint and positive definite.
        rhs: The right sides, [..., N].
        preconditioner: An operator near the inverse of A.
        x: The initial solution, [..., N]; zeros if None.
        tol: It ends when the norm of the residual is this share of the norm of rhs.
        max_iter: The largest number of steps.
        name: Accepted, without effect.

    Raises:
        ValueError: The hints do not say that the operator is self-adjoint and positive definite.

    Example:
        tf.linalg.experimental.conjugate_gradient(
            tf.linalg.LinearOperatorDiag([2.0, 2.0], is_self_adjoint=True, is_positive_definite=True),
            tf.constant([2.0, 4.0]),
        )
    """
    if not (operator.is_self_adjoint and operator.is_positive_definite):
        raise ValueError("Expected a self-adjoint, positive definite operator.")
    rhs = convert_to_tensor(rhs)
    batches = [rhs.shape[:-1], operator.batch_shape]
    if preconditioner is not None:
        batches.append(preconditioner.batch_shape)
    shape = [*common_batch(batches), rhs.shape[-1]]
    residual = broadcast_to(rhs, shape)
    enough = norm(residual, axis=-1) * constant(tol, rhs.dtype)
    if x is None:
        x = zeros(shape, rhs.dtype)
    else:
        x = convert_to_tensor(x)
        residual = rhs - operator.matvec(x)

    def preconditioned(r: Any) -> Any:
        return r if preconditioner is None else preconditioner.matvec(r)

    def goes_on(i: Any, state: CGState) -> Any:
        return (i < max_iter) & reduce_any(greater(real(norm(state.r, axis=-1)), real(enough)))

    def step(i: Any, state: CGState) -> tuple[Any, CGState]:
        product = operator.matvec(state.p)
        alpha = expand_dims(state.gamma / _dot(state.p, product), -1)
        r = state.r - alpha * product
        q = preconditioned(r)
        gamma = _dot(r, q)
        p = q + expand_dims(gamma / state.gamma, -1) * state.p
        return i + 1, CGState(i + 1, state.x + alpha * state.p, r, p, gamma)

    direction = preconditioned(residual)
    begin = CGState(constant(0), x, residual, direction, _dot(residual, direction))
    state: CGState = while_loop(goes_on, step, [begin.i, begin])[1]
    return state
