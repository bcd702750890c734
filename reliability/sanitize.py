"""Runs plans and kernels with their C libraries compiled for the address sanitizer: it ends a run at a wrong access.

    make sanitize

It copies the engine to a temporary folder, builds the libraries there with gcc, and runs the tests of both, and random
functions, with the sanitizer's library loaded first and every object of Python allocated on its own.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
TESTS = (
    "tests/engine/plans",
    "tests/engine/test_control_flow.py",
    "tests/engine/test_functions.py",
    "tests/engine/test_kernels.py",
    "tests/engine/test_sliding_windows.py",
)
#: Copies an argument of 64 bytes to a place of 8: the sanitizer must see it.
WRONG = """
import ctypes, numpy as np
from teletape_engine.plans.native import HEAD, LIBRARY_LOADED, PROGRAM, STAGE
from teletape_engine.plans.instructions import address
argument, target = np.ones(8), np.ones(1)
stage, program = np.zeros(1, STAGE), np.zeros(1, PROGRAM)
stage[0] = 0, 0, 64, address(target)
program[0] = 0, 0, 1, 0, HEAD, address(stage), 0
LIBRARY_LOADED.begin(address(program), (ctypes.c_void_p * 1)(id(argument)))
"""
FLAGS = ("-O1", "-g", "-fsanitize=address", "-fno-omit-frame-pointer", "-shared", "-fPIC")


def build(engine: Path) -> None:
    """Compiles the libraries of a copy of the engine for the sanitizer."""
    for source, library in (("plans/rows.c", "plans/librows.so.1"), ("arrays/kernels.c", "arrays/libkernels.so.1")):
        folder = engine / "teletape_engine"
        subprocess.run(["gcc", *FLAGS, "-o", str(folder / library), str(folder / source)], check=True)


def environment(engine: Path) -> dict[str, str]:
    """Of a run with that copy."""
    library = subprocess.run(["gcc", "-print-file-name=libasan.so"], check=True, capture_output=True, text=True)
    return {
        **os.environ,
        "LD_PRELOAD": library.stdout.strip(),
        "ASAN_OPTIONS": "detect_leaks=0:abort_on_error=1",
        "PYTHONMALLOC": "malloc",
        "PYTHONPATH": str(engine),
        "TELETAPE_PLANS": "on",
    }


def main() -> int:
    """Runs the tests, then the random functions."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", type=int, default=500, help="random functions")
    cases = parser.parse_args().cases
    with tempfile.TemporaryDirectory() as folder:
        engine = Path(folder)
        shutil.copytree(ROOT / "engine" / "teletape_engine", engine / "teletape_engine")
        build(engine)
        where = environment(engine)
        check = (
            "import teletape_engine.arrays.kernels as k, teletape_engine.plans.native as n; print(n.LIBRARY); "
            "assert n.LIBRARY_LOADED is not None and k.LIBRARY_LOADED is not None"
        )
        python = [sys.executable, "-P"]
        subprocess.run([*python, "-c", check], env=where, check=True)
        wrong = subprocess.run([*python, "-c", WRONG], env=where, capture_output=True, text=True)
        if "heap-buffer-overflow" not in wrong.stderr:
            raise SystemExit("the sanitizer does not see a wrong access")
        tests = subprocess.run([*python, "-m", "pytest", "-q", "-p", "no:cacheprovider", *TESTS], env=where, cwd=ROOT)
        where["PYTHONPATH"] += os.pathsep.join(["", str(ROOT / "tests"), str(ROOT / "tests" / "server")])
        fuzz = subprocess.run([*python, "-m", "fuzz", "--only", "plans", "--count", str(cases)], env=where, cwd=ROOT)
    return tests.returncode or fuzz.returncode


if __name__ == "__main__":
    sys.exit(main())
