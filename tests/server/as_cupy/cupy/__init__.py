"""The substitute for CuPy under CuPy's name, for processes whose PYTHONPATH has the folder around this package.

CUPY_SUBSTITUTE_GPUS says how many GPUs it has. While the file that CUPY_SUBSTITUTE_BROKEN names exists, CUDA refuses
everything, as after an illegal address.
"""

import os
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[3] / "engine"))
import substitute


class CUDARuntimeError(RuntimeError):
    """As CuPy's: no error that the engine knows."""


refuse, broken = substitute.State.refuse, os.environ.get("CUPY_SUBSTITUTE_BROKEN", "")


def refuse_if_broken(state: substitute.State, what: str) -> None:
    """As `State.refuse`, which everything calls that a device does."""
    if broken and os.path.exists(broken):
        raise CUDARuntimeError("cudaErrorIllegalAddress: an illegal memory access was encountered")
    refuse(state, what)


substitute.State.refuse = refuse_if_broken
sys.modules.update(substitute.modules())
