"""Special functions: SciPy's on the CPU, CuPy's on a GPU. Loaded when first called, since NumPy alone must suffice."""

from __future__ import annotations

from typing import Any

import numpy as np

from teletape_engine.errors import UnimplementedError


def erf(xp: Any, x: Any) -> Any:
    """The error function of a float32 or float64 array.

    Raises:
        UnimplementedError: SciPy is missing; the message names the extra that brings it.
    """
    return _module(xp, "erf").erf(x)


def _module(xp: Any, function: str) -> Any:
    if xp is not np:
        import cupyx.scipy.special

        return cupyx.scipy.special
    try:
        import scipy.special
    except ImportError as error:
        raise UnimplementedError(
            f"{function}: SciPy is not installed here ({error}); install the extra teletape[local]"
        ) from None
    return scipy.special
