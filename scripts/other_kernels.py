"""Runs a command with other kernels of NumPy's, OpenBLAS' and Teletape's than this processor gets.

`python scripts/other_kernels.py COMMAND [ARGUMENT ...]`. Kernels with wider registers and fused multiply-adds round
otherwise, so the command sees what another processor computes: on one with AVX-512 the kernels of AVX2, on another
x86-64 those of SSE4.2, on arm64 the ones that every arm64 has. Exits with the status of the command.
"""

import os
import platform
import subprocess
import sys

from numpy._core._multiarray_umath import __cpu_dispatch__, __cpu_features__


def settings(machine: str, features: list[str]) -> dict[str, str]:
    """The variables that choose other kernels.

    Args:
        machine: The architecture, as `platform.machine` says it.
        features: What NumPy chooses its kernels by and the processor has, by NumPy's names.
    """
    widest = [name for name in features if name.startswith("AVX512") or name == "X86_V4"]
    intel = "Haswell" if widest else "Nehalem"
    blas = {"x86_64": intel, "amd64": intel, "aarch64": "ARMV8", "arm64": "ARMV8"}.get(machine.lower())
    numpy = " ".join(widest or features)
    return {"NPY_DISABLE_CPU_FEATURES": numpy} | ({"OPENBLAS_CORETYPE": blas} if blas else {})


def environment() -> dict[str, str]:
    """The variables that choose other kernels than this processor gets."""
    present = [name for name in __cpu_dispatch__ if __cpu_features__.get(name)]
    return settings(platform.machine(), present)


def main() -> int:
    """Runs the command of the command line and returns its exit status."""
    if not sys.argv[1:]:
        raise SystemExit(__doc__)
    chosen = environment()
    print("other kernels:", *(f"{name}={value!r}" for name, value in chosen.items()), file=sys.stderr)
    return subprocess.call(sys.argv[1:], env=os.environ | chosen)


if __name__ == "__main__":
    sys.exit(main())
