"""What `tf.math.special` holds. Written by `make reference` from scripts/public_surface.py."""

from teletape._generated.elementwise.bessel import bessel_i0 as bessel_i0
from teletape._generated.elementwise.bessel import bessel_i0e as bessel_i0e
from teletape._generated.elementwise.bessel import bessel_i1 as bessel_i1
from teletape._generated.elementwise.bessel import bessel_i1e as bessel_i1e
from teletape._generated.elementwise.bessel import bessel_j0 as bessel_j0
from teletape._generated.elementwise.bessel import bessel_j1 as bessel_j1
from teletape._generated.elementwise.bessel import bessel_k0 as bessel_k0
from teletape._generated.elementwise.bessel import bessel_k0e as bessel_k0e
from teletape._generated.elementwise.bessel import bessel_k1 as bessel_k1
from teletape._generated.elementwise.bessel import bessel_k1e as bessel_k1e
from teletape._generated.elementwise.bessel import bessel_y0 as bessel_y0
from teletape._generated.elementwise.bessel import bessel_y1 as bessel_y1
from teletape._generated.elementwise.integrals import dawsn as dawsn
from teletape._generated.elementwise.integrals import expint as expint
from teletape._generated.elementwise.integrals import fresnel_cos as fresnel_cos
from teletape._generated.elementwise.integrals import fresnel_sin as fresnel_sin
from teletape._generated.elementwise.integrals import spence as spence

__all__ = [
    "bessel_i0",
    "bessel_i0e",
    "bessel_i1",
    "bessel_i1e",
    "bessel_j0",
    "bessel_j1",
    "bessel_k0",
    "bessel_k0e",
    "bessel_k1",
    "bessel_k1e",
    "bessel_y0",
    "bessel_y1",
    "dawsn",
    "expint",
    "fresnel_cos",
    "fresnel_sin",
    "spence",
]
