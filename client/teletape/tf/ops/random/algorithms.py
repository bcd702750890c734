"""The algorithms of random numbers, with TensorFlow's names and numbers for them."""

from __future__ import annotations

import enum
from typing import Any, Final


class Algorithm(enum.Enum):
    """An algorithm of random numbers. Philox is available; AUTO_SELECT chooses it."""

    PHILOX = 1
    THREEFRY = 2
    AUTO_SELECT = 3


SIZES: Final = {Algorithm.PHILOX.value: 3, Algorithm.THREEFRY.value: 2, Algorithm.AUTO_SELECT.value: 3}


def number_of(alg: Any) -> int:
    """The number of an algorithm, from a number, a member of Algorithm, or a name."""
    if isinstance(alg, int):
        number = alg
    elif isinstance(alg, Algorithm):
        number = alg.value
    elif isinstance(alg, str):
        name = alg.strip().lower().replace("-", "").replace("_", "")
        number = {"philox": 1, "threefry": 2, "autoselect": 3}.get(name, 0)
    else:
        raise TypeError(f"Can't convert argument `alg` (of value {alg} and type {type(alg)}) to int.")
    if number not in SIZES:
        raise ValueError(
            f"Argument `alg` got unsupported value {alg}. Supported values are philox for the Philox algorithm, "
            "threefry for the ThreeFry algorithm, and auto_select for auto-selection."
        )
    return number


def draws(alg: Any) -> bool:
    """Whether an algorithm is available; ThreeFry, which TensorFlow has on a TPU only, is not.

    Raises:
        TypeError: No name, number or member of Algorithm.
        ValueError: Another algorithm.
    """
    return number_of(alg) != Algorithm.THREEFRY.value
