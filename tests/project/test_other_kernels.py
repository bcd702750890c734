"""scripts/other_kernels.py: the command computes with other kernels than this processor gets."""

import os
import subprocess
import sys

import pytest

from programs import ROOT, load_script

other_kernels = load_script("other_kernels")

LOOK = """
import sys
from numpy._core._multiarray_umath import __cpu_dispatch__, __cpu_features__
from teletape_engine.arrays import kernels
print([name for name in __cpu_dispatch__ if __cpu_features__.get(name)])
print(kernels.LIBRARY_LOADED.teletape_level() if kernels.LIBRARY_LOADED else 0)
sys.exit(7)
"""


def look(*before: str) -> tuple[str, int]:
    """The features that NumPy chooses its kernels by, and the level of Teletape's."""
    environment = {name: value for name, value in os.environ.items() if name != "NPY_DISABLE_CPU_FEATURES"}
    command = [sys.executable, *before, "-c", LOOK]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 7, done.stderr
    features, level = done.stdout.splitlines()
    return features, int(level)


def test_the_command_gets_other_kernels_and_its_status_comes_back() -> None:
    features, level = look()
    others, lower = look(str(ROOT / "scripts" / "other_kernels.py"), sys.executable)
    if features == "[]":
        pytest.skip("NumPy has no kernels to choose from on this processor")
    assert others != features
    assert lower < level or level <= 2


@pytest.mark.parametrize(
    ("machine", "features", "disabled", "blas"),
    [
        ("x86_64", ["X86_V3", "X86_V4", "AVX512_ICL"], "X86_V4 AVX512_ICL", "Haswell"),
        ("x86_64", ["AVX2", "FMA3"], "AVX2 FMA3", "Nehalem"),
        ("aarch64", ["ASIMDHP", "SVE"], "ASIMDHP SVE", "ARMV8"),
        ("riscv64", [], "", None),
    ],
)
def test_settings(machine: str, features: list[str], disabled: str, blas: str | None) -> None:
    settings = other_kernels.settings(machine, features)
    assert (settings["NPY_DISABLE_CPU_FEATURES"], settings.get("OPENBLAS_CORETYPE")) == (disabled, blas)
