"""The catalogue's ops, one family a file. Importing this package fills and freezes the catalogue."""

from __future__ import annotations

from teletape_engine.catalogue.op import CATALOGUE
from teletape_engine.ops import (
    assertions,
    candidates,
    counting,
    cumulative,
    distributions,
    fourier,
    gamma,
    index_shuffle,
    philox,
    random,
    reduce,
    segment,
    sorting,
)
from teletape_engine.ops.elementwise import arithmetic, bessel, complex, integrals, logic, math, special
from teletape_engine.ops.images import boxes, color, crop, projective, quality, resize, suppression, suppression_many
from teletape_engine.ops.linalg import (
    bands,
    composites,
    decompositions,
    diagonal,
    eigen,
    einsum,
    matrix,
    matrix_functions,
    products,
    solve,
    svd,
)
from teletape_engine.ops.nn import (
    activations,
    blocks,
    conv,
    ctc,
    forms,
    fractional,
    gelu,
    loss,
    morphology,
    normalization,
    pool,
)
from teletape_engine.ops.shapes import cast, create, index, nd, pad, rearrange, shape

CATALOGUE.freeze()

#: The modules that define ops, in the order of the reference page.
FAMILIES = (
    arithmetic,
    cast,
    assertions,
    complex,
    conv,
    create,
    einsum,
    color,
    resize,
    quality,
    projective,
    crop,
    suppression,
    suppression_many,
    boxes,
    index,
    products,
    logic,
    loss,
    ctc,
    math,
    special,
    bessel,
    integrals,
    diagonal,
    matrix,
    composites,
    activations,
    gelu,
    pad,
    nd,
    pool,
    forms,
    normalization,
    blocks,
    morphology,
    fractional,
    random,
    philox,
    distributions,
    gamma,
    candidates,
    index_shuffle,
    reduce,
    cumulative,
    counting,
    segment,
    shape,
    rearrange,
    solve,
    decompositions,
    bands,
    eigen,
    svd,
    matrix_functions,
    fourier,
    sorting,
)

__all__ = ["FAMILIES"]
