"""Records what real TensorFlow gives for every program, into results/*.json.

It needs TensorFlow 2.21 in an environment of its own, one that does not hold Teletape: the project neither installs nor
imports TensorFlow. Make one anywhere outside the project and run this file with its Python:

    python3.11 -m venv ~/tensorflow && ~/tensorflow/bin/pip install tensorflow-cpu==2.21.*
    ~/tensorflow/bin/python tests/conformance/record.py
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import platform
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from conformance.program import load
from conformance.worker import ProgramFailed, Worker

RESULTS = Path(__file__).resolve().parent / "results"
VERSION = "2.21"
# oneDNN changes the order of sums from one processor to another; the rest keeps TensorFlow quiet and on the CPU.
ENVIRONMENT = {"TF_ENABLE_ONEDNN_OPTS": "0", "TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": "-1"}


def refusal() -> str:
    """Why this interpreter must not record; empty where it may."""
    if importlib.util.find_spec("tensorflow") is None:
        return f"{sys.executable} has no TensorFlow.\n\n{__doc__}"
    if importlib.util.find_spec("teletape") is not None:
        return (
            f"{sys.executable} has Teletape beside TensorFlow: a recording must not be able to mix them.\n\n{__doc__}"
        )
    if not tensorflow_version().startswith(f"{VERSION}."):
        return f"{sys.executable} has TensorFlow {tensorflow_version()}, the results are of {VERSION}.\n\n{__doc__}"
    return ""


def tensorflow_version() -> str:
    """The installed version, whichever distribution brought it."""
    names = importlib.metadata.packages_distributions()["tensorflow"]
    return next(importlib.metadata.version(name) for name in names if name.startswith("tensorflow"))


def record() -> tuple[dict[str, dict[str, Any]], list[str]]:
    """Every program's encoded result, by file and name, and what went wrong with those that have none."""
    results: dict[str, dict[str, Any]] = {}
    failures: list[str] = []
    with Worker("tensorflow", environment=ENVIRONMENT) as shared:
        for program in load().values():
            file, name = program.id.split(".")
            own = Worker("tensorflow", environment=ENVIRONMENT) if program.fresh else None
            try:
                results.setdefault(file, {})[name] = (own or shared).run(program.id)
            except ProgramFailed as failure:
                failures.append(str(failure))
            finally:
                if own:
                    own.close()
    return results, failures


def write(results: dict[str, dict[str, Any]]) -> None:
    """One file of results a file of programs, one line a program, sorted; files without programs go."""
    RESULTS.mkdir(exist_ok=True)
    for stale in RESULTS.glob("*.json"):
        stale.unlink()
    for file, programs in results.items():
        lines = (f"{json.dumps(name)}: {json.dumps(programs[name])}" for name in sorted(programs))
        (RESULTS / f"{file}.json").write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
    versions = {name: importlib.metadata.version(name) for name in ("keras", "ml_dtypes", "numpy")}
    about = {"python": platform.python_version(), "tensorflow": tensorflow_version(), **versions}
    (RESULTS / "about.json").write_text(json.dumps(about, indent=1, sort_keys=True) + "\n", encoding="utf-8")


def main() -> int:
    """Records everything anew; 1 where it may not, or where a program fails."""
    why = refusal()
    if why:
        sys.stderr.write(f"record.py: {why}")
        return 1
    results, failures = record()
    if failures:
        sys.stderr.write("\n".join([*failures, f"record.py: {len(failures)} programs failed, nothing was written\n"]))
        return 1
    write(results)
    sys.stdout.write(
        f"{sum(map(len, results.values()))} programs recorded under TensorFlow {tensorflow_version()} in {RESULTS}\n"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
