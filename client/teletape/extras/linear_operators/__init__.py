"""`tf.linalg.LinearOperator…`: matrices with a structure, by which they multiply and solve."""

from teletape.extras.linear_operators.algebra import product, quotient
from teletape.extras.linear_operators.blocks import (
    LinearOperatorBlockDiag,
    LinearOperatorBlockLowerTriangular,
    LinearOperatorKronecker,
)
from teletape.extras.linear_operators.circulant import (
    LinearOperatorCirculant,
    LinearOperatorCirculant2D,
    LinearOperatorCirculant3D,
    LinearOperatorToeplitz,
)
from teletape.extras.linear_operators.composition import (
    LinearOperatorAdjoint,
    LinearOperatorComposition,
    LinearOperatorInversion,
)
from teletape.extras.linear_operators.dense import LinearOperatorFullMatrix, LinearOperatorLowerTriangular
from teletape.extras.linear_operators.diagonals import (
    LinearOperatorDiag,
    LinearOperatorIdentity,
    LinearOperatorScaledIdentity,
    LinearOperatorZeros,
)
from teletape.extras.linear_operators.low_rank import LinearOperatorHouseholder, LinearOperatorLowRankUpdate
from teletape.extras.linear_operators.operator import CLASSES, LinearOperator
from teletape.extras.linear_operators.sparse import LinearOperatorPermutation, LinearOperatorTridiag

__all__ = [
    "LinearOperator",
    "LinearOperatorAdjoint",
    "LinearOperatorBlockDiag",
    "LinearOperatorBlockLowerTriangular",
    "LinearOperatorCirculant",
    "LinearOperatorCirculant2D",
    "LinearOperatorCirculant3D",
    "LinearOperatorComposition",
    "LinearOperatorDiag",
    "LinearOperatorFullMatrix",
    "LinearOperatorHouseholder",
    "LinearOperatorIdentity",
    "LinearOperatorInversion",
    "LinearOperatorKronecker",
    "LinearOperatorLowRankUpdate",
    "LinearOperatorLowerTriangular",
    "LinearOperatorPermutation",
    "LinearOperatorScaledIdentity",
    "LinearOperatorToeplitz",
    "LinearOperatorTridiag",
    "LinearOperatorZeros",
]

CLASSES.update(
    adjoint=LinearOperatorAdjoint,
    inverse=LinearOperatorInversion,
    triangular=LinearOperatorLowerTriangular,
    dense=LinearOperatorFullMatrix,
    product=product,
    quotient=quotient,
)
