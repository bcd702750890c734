"""The catalogue's ops, one family a file. Importing this package fills and freezes the catalogue."""

from __future__ import annotations

from teletape_engine.catalogue.op import CATALOGUE
from teletape_engine.ops import assertions, counting, cumulative, fourier, reduce, segment, sorting
from teletape_engine.ops.convolution import conv, forms, fractional, morphology, pool
from teletape_engine.ops.elementwise import arithmetic, bessel, complex, integrals, logic, math, special
from teletape_engine.ops.images import (
    boxes,
    color,
    crop,
    projective,
    quality,
    random_boxes,
    resize,
    suppression,
    suppression_many,
)
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
    attention,
    blocks,
    ctc,
    gelu,
    isotonic,
    loss,
    normalization,
    weighted_products,
)
from teletape_engine.ops.random import candidates, distributions, gamma, index_shuffle, philox, seeded, sobol
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
    random_boxes,
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
    weighted_products,
    attention,
    gelu,
    pad,
    nd,
    pool,
    forms,
    normalization,
    blocks,
    morphology,
    fractional,
    seeded,
    philox,
    distributions,
    gamma,
    candidates,
    index_shuffle,
    reduce,
    cumulative,
    counting,
    segment,
    isotonic,
    shape,
    rearrange,
    solve,
    decompositions,
    bands,
    eigen,
    svd,
    matrix_functions,
    fourier,
    sobol,
    sorting,
)

__all__ = ["FAMILIES"]
