"""`tf.linalg.LinearOperator…`: matrices with a structure, by which they multiply and solve."""

from teletape.extras.linear_operators.algebra import product, quotient
from teletape.extras.linear_operators.composition import LinearOperatorAdjoint, LinearOperatorInversion
from teletape.extras.linear_operators.dense import LinearOperatorFullMatrix, LinearOperatorLowerTriangular
from teletape.extras.linear_operators.operator import CLASSES

CLASSES.update(
    adjoint=LinearOperatorAdjoint,
    inverse=LinearOperatorInversion,
    triangular=LinearOperatorLowerTriangular,
    dense=LinearOperatorFullMatrix,
    product=product,
    quotient=quotient,
)
