"""What `tf.linalg` holds. Written by `make reference` from scripts/public_surface.py."""

from teletape.linalg import experimental as experimental

from teletape._generated.linalg.bands import banded_triangular_solve as banded_triangular_solve
from teletape._generated.linalg.composites import adjoint as adjoint
from teletape._generated.linalg.composites import cross as cross
from teletape._generated.linalg.composites import logdet as logdet
from teletape._generated.linalg.composites import matrix_transpose as matrix_transpose
from teletape._generated.linalg.composites import matvec as matvec
from teletape._generated.linalg.composites import tensor_diag as tensor_diag
from teletape._generated.linalg.composites import tensor_diag_part as tensor_diag_part
from teletape._generated.linalg.composites import trace as trace
from teletape._generated.linalg.decompositions import lu as lu
from teletape._generated.linalg.diagonal import band_part as band_part
from teletape._generated.linalg.eigen import eig as eig
from teletape._generated.linalg.eigen import eigh as eigh
from teletape._generated.linalg.eigen import eigvalsh as eigvalsh
from teletape._generated.linalg.einsum import einsum as einsum
from teletape._generated.linalg.matrix import cholesky as cholesky
from teletape._generated.linalg.matrix import cholesky_solve as cholesky_solve
from teletape._generated.linalg.matrix import triangular_solve as triangular_solve
from teletape._generated.linalg.matrix_functions import logm as logm
from teletape._generated.linalg.matrix_functions import sqrtm as sqrtm
from teletape._generated.linalg.products import matmul as matmul
from teletape._generated.linalg.solve import det as det
from teletape._generated.linalg.solve import inv as inv
from teletape._generated.linalg.solve import solve as solve
from teletape._generated.nn.normalization import l2_normalize as l2_normalize
from teletape._generated.shapes.create import eye as eye
from teletape.extras.linear_operators.blocks import LinearOperatorBlockDiag as LinearOperatorBlockDiag
from teletape.extras.linear_operators.blocks import (
    LinearOperatorBlockLowerTriangular as LinearOperatorBlockLowerTriangular,
)
from teletape.extras.linear_operators.blocks import LinearOperatorKronecker as LinearOperatorKronecker
from teletape.extras.linear_operators.circulant import LinearOperatorCirculant as LinearOperatorCirculant
from teletape.extras.linear_operators.circulant import LinearOperatorCirculant2D as LinearOperatorCirculant2D
from teletape.extras.linear_operators.circulant import LinearOperatorCirculant3D as LinearOperatorCirculant3D
from teletape.extras.linear_operators.circulant import LinearOperatorToeplitz as LinearOperatorToeplitz
from teletape.extras.linear_operators.composition import LinearOperatorAdjoint as LinearOperatorAdjoint
from teletape.extras.linear_operators.composition import LinearOperatorComposition as LinearOperatorComposition
from teletape.extras.linear_operators.composition import LinearOperatorInversion as LinearOperatorInversion
from teletape.extras.linear_operators.dense import LinearOperatorFullMatrix as LinearOperatorFullMatrix
from teletape.extras.linear_operators.dense import LinearOperatorLowerTriangular as LinearOperatorLowerTriangular
from teletape.extras.linear_operators.diagonals import LinearOperatorDiag as LinearOperatorDiag
from teletape.extras.linear_operators.diagonals import LinearOperatorIdentity as LinearOperatorIdentity
from teletape.extras.linear_operators.diagonals import LinearOperatorScaledIdentity as LinearOperatorScaledIdentity
from teletape.extras.linear_operators.diagonals import LinearOperatorZeros as LinearOperatorZeros
from teletape.extras.linear_operators.low_rank import LinearOperatorHouseholder as LinearOperatorHouseholder
from teletape.extras.linear_operators.low_rank import LinearOperatorLowRankUpdate as LinearOperatorLowRankUpdate
from teletape.extras.linear_operators.operator import LinearOperator as LinearOperator
from teletape.extras.linear_operators.sparse import LinearOperatorPermutation as LinearOperatorPermutation
from teletape.extras.linear_operators.sparse import LinearOperatorTridiag as LinearOperatorTridiag
from teletape.tf.ops.linalg.bands import eigh_tridiagonal as eigh_tridiagonal
from teletape.tf.ops.linalg.bands import tridiagonal_matmul as tridiagonal_matmul
from teletape.tf.ops.linalg.bands import tridiagonal_solve as tridiagonal_solve
from teletape.tf.ops.linalg.clip import global_norm as global_norm
from teletape.tf.ops.linalg.decompositions import eigvals as eigvals
from teletape.tf.ops.linalg.decompositions import expm as expm
from teletape.tf.ops.linalg.decompositions import lstsq as lstsq
from teletape.tf.ops.linalg.decompositions import lu_matrix_inverse as lu_matrix_inverse
from teletape.tf.ops.linalg.decompositions import lu_reconstruct as lu_reconstruct
from teletape.tf.ops.linalg.decompositions import lu_solve as lu_solve
from teletape.tf.ops.linalg.decompositions import matrix_rank as matrix_rank
from teletape.tf.ops.linalg.decompositions import pinv as pinv
from teletape.tf.ops.linalg.decompositions import qr as qr
from teletape.tf.ops.linalg.decompositions import svd as svd
from teletape.tf.ops.linalg.diagonals import diag as diag
from teletape.tf.ops.linalg.diagonals import diag_part as diag_part
from teletape.tf.ops.linalg.diagonals import set_diag as set_diag
from teletape.tf.ops.linalg.norms import norm as norm
from teletape.tf.ops.linalg.norms import normalize as normalize
from teletape.tf.ops.linalg.norms import slogdet as slogdet
from teletape.tf.ops.linalg.norms import tensordot as tensordot

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
    "adjoint",
    "band_part",
    "banded_triangular_solve",
    "cholesky",
    "cholesky_solve",
    "cross",
    "det",
    "diag",
    "diag_part",
    "eig",
    "eigh",
    "eigh_tridiagonal",
    "eigvals",
    "eigvalsh",
    "einsum",
    "experimental",
    "expm",
    "eye",
    "global_norm",
    "inv",
    "l2_normalize",
    "logdet",
    "logm",
    "lstsq",
    "lu",
    "lu_matrix_inverse",
    "lu_reconstruct",
    "lu_solve",
    "matmul",
    "matrix_rank",
    "matrix_transpose",
    "matvec",
    "norm",
    "normalize",
    "pinv",
    "qr",
    "set_diag",
    "slogdet",
    "solve",
    "sqrtm",
    "svd",
    "tensor_diag",
    "tensor_diag_part",
    "tensordot",
    "trace",
    "triangular_solve",
    "tridiagonal_matmul",
    "tridiagonal_solve",
]
