"""Runs plans and kernels with their C libraries compiled for gcc's sanitizers, which end it at a wrong access or race.

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
from collections.abc import Sequence
from pathlib import Path

from teletape_engine.c_library import sources_of

ROOT = Path(__file__).parents[1]
TESTS = (
    "tests/engine/plans",
    "tests/engine/functions/test_control_flow.py",
    "tests/engine/functions/test_functions.py",
    "tests/engine/arrays/test_kernels.py",
    "tests/engine/ops/test_sliding_windows.py",
)
THREADED_TESTS = ("tests/engine/plans/test_tiles.py", "tests/engine/plans/test_plans.py")
#: Copies an argument of 64 bytes to a place of 8: the address sanitizer must see it.
OUTSIDE = """
import ctypes, numpy as np
from teletape_engine.plans.run.c.loaded import LIBRARY_LOADED
from teletape_engine.plans.run.c.records import HEAD, PROGRAM, STAGE
from teletape_engine.plans.ir.buffers import address
argument, target = np.ones(8), np.ones(1)
stage, program = np.zeros(1, STAGE), np.zeros(1, PROGRAM)
stage[0] = 0, 0, 64, address(target)
program[0] = 0, 0, 1, 0, HEAD, address(stage), 0
LIBRARY_LOADED.begin(address(program), (ctypes.c_void_p * 1)(id(argument)))
"""
#: Copies to one place in two threads: the thread sanitizer must see it.
RACE = """
import ctypes, threading, numpy as np
from teletape_engine.plans.run.c.loaded import LIBRARY_LOADED
from teletape_engine.plans.run.c.records import HEAD, PROGRAM, STAGE
from teletape_engine.plans.ir.buffers import address
argument, target = np.ones(1 << 16), np.ones(1 << 16)
stage, program = np.zeros(1, STAGE), np.zeros(1, PROGRAM)
stage[0] = 0, 0, argument.nbytes, address(target)
program[0] = 0, 0, 1, 0, HEAD, address(stage), 0
def copy():
    for _ in range(2000):
        LIBRARY_LOADED.begin(address(program), (ctypes.c_void_p * 1)(id(argument)))
threads = [threading.Thread(target=copy) for _ in range(2)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
"""
#: OpenBLAS hands matrices to its threads by ways that the thread sanitizer does not see.
SUPPRESSED = "race:libscipy_openblas*\nrace:libopenblas*\n"
SUPPRESSIONS = "suppressions"
FLAGS = ("-O1", "-g", "-fno-omit-frame-pointer", "-shared", "-fPIC", "-pthread")


def build(engine: Path, kind: str) -> None:
    """Compiles the libraries of a copy of the engine for a sanitizer."""
    libraries = {"plans/run/c/rows.c": "plans/run/c/librows.so.1", "arrays/kernels.c": "arrays/libkernels.so.1"}
    for source, library in libraries.items():
        folder = engine / "teletape_engine"
        flags = [*FLAGS, f"-fsanitize={kind}", f"-DSOURCES={sources_of((folder / source).parent)}u"]
        subprocess.run(["gcc", *flags, "-o", str(folder / library), str(folder / source)], check=True)


def environment(engine: Path, kind: str) -> dict[str, str]:
    """Of a run with that copy."""
    name = f"-print-file-name=lib{kind[0]}san.so"
    library = subprocess.run(["gcc", name], check=True, capture_output=True, text=True)
    return {
        **os.environ,
        "LD_PRELOAD": library.stdout.strip(),
        "ASAN_OPTIONS": "detect_leaks=0:abort_on_error=1",
        "TSAN_OPTIONS": f"halt_on_error=1:exitcode=66:suppressions={engine / SUPPRESSIONS}",
        "PYTHONMALLOC": "malloc",
        "PYTHONPATH": str(engine),
        "TELETAPE_PLANS": "on",
    }


def run(kind: str, wrong: str, report: str, tests: Sequence[str], cases: int) -> int:
    """Runs tests, then random functions, with one sanitizer."""
    with tempfile.TemporaryDirectory() as folder:
        engine = Path(folder)
        shutil.copytree(ROOT / "engine" / "teletape_engine", engine / "teletape_engine")
        (engine / SUPPRESSIONS).write_text(SUPPRESSED)
        build(engine, kind)
        where = environment(engine, kind)
        check = (
            "import teletape_engine.arrays.kernels as k, teletape_engine.plans.run.c.loaded as n; print(n.LIBRARY); "
            "assert n.LIBRARY_LOADED is not None and k.LIBRARY_LOADED is not None"
        )
        python = [sys.executable, "-P"]
        subprocess.run([*python, "-c", check], env=where, check=True)
        seen = subprocess.run([*python, "-c", wrong], env=where, capture_output=True, text=True)
        if report not in seen.stderr:
            raise SystemExit(f"the {kind} sanitizer does not see a {report}")
        status = subprocess.run([*python, "-m", "pytest", "-q", "-p", "no:cacheprovider", *tests], env=where, cwd=ROOT)
        where["PYTHONPATH"] += os.pathsep.join(["", str(ROOT / "tests"), str(ROOT / "tests" / "server")])
        fuzz = subprocess.run([*python, "-m", "fuzz", "--only", "plans", "--count", str(cases)], env=where, cwd=ROOT)
    return status.returncode or fuzz.returncode


def main() -> int:
    """Runs both sanitizers."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", type=int, default=500, help="random functions")
    cases = parser.parse_args().cases
    address = run("address", OUTSIDE, "heap-buffer-overflow", TESTS, cases)
    thread = run("thread", RACE, "data race", THREADED_TESTS, cases // 10)
    return address or thread


if __name__ == "__main__":
    sys.exit(main())
