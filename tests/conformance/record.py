"""Records what real TensorFlow gives for every program, into results/*.json, and how far it moves, into spreads.json.

A result moves where kernels and inputs round otherwise: programs run again with oneDNN's kernels, and with inputs that
are neighbours of theirs (`on_other_inputs`). `--spreads` records this alone, around the results that are there:
`--spreads keras_layers keras_dense` for the programs of two files.

It needs TensorFlow 2.21 in an environment of its own, one that does not hold Teletape: the project neither installs nor
imports TensorFlow. Make one anywhere outside the project and run this file with its Python:

    python3.11 -m venv ~/tensorflow && ~/tensorflow/bin/pip install tensorflow-cpu==2.21.*
    ~/tensorflow/bin/python tests/conformance/record.py
"""

from __future__ import annotations

import argparse
import importlib.metadata
import importlib.util
import json
import platform
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from conformance import compare
from conformance.program import load
from conformance.worker import ProgramFailed, Worker

RESULTS = Path(__file__).resolve().parent / "results"
SPREADS = RESULTS.with_name("spreads.json")
VERSION = "2.21"
# oneDNN changes the order of sums from one processor to another; the rest keeps TensorFlow quiet and on the CPU.
ENVIRONMENT = {"TF_ENABLE_ONEDNN_OPTS": "0", "TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": "-1"}
SECONDS = 600.0  #: The most that a program may take; the first of a process waits for TensorFlow's import.
#: A module, and variables of its process, that round otherwise than a recording does.
OTHER_ROUNDINGS: list[tuple[str, dict[str, str]]] = [
    ("tensorflow", ENVIRONMENT | {"TF_ENABLE_ONEDNN_OPTS": "1"}),
    *(("conformance.on_other_inputs", ENVIRONMENT | {"CONFORMANCE_SEED": str(seed)}) for seed in (1, 2)),
]


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
                results.setdefault(file, {})[name] = (own or shared).run(program.id, timeout=SECONDS)
            except ProgramFailed as failure:
                failures.append(str(failure))
            finally:
                if own:
                    own.close()
    return results, failures


def record_spreads(results: dict[str, dict[str, Any]], files: list[str]) -> dict[str, dict[str, float]]:
    """How far the results of the files' programs move, by program and place; failures are printed."""
    recorded = {f"{file}.{name}": result for file, programs in results.items() for name, result in programs.items()}
    programs = [
        program.id
        for program in load().values()
        if not program.fresh and program.id.split(".")[0] in files and compare.moves(recorded[program.id])
    ]

    def run(module: str, environment: dict[str, str]) -> dict[str, Any]:
        others: dict[str, Any] = {}
        worker = Worker(module, environment=environment)
        for program in programs:
            try:
                others[program] = worker.run(program, timeout=SECONDS)
            except ProgramFailed as failure:
                sys.stderr.write(f"{failure}\n")
                if not worker.alive:  # a kernel of oneDNN's ends the process where Eigen's refuses
                    worker.close()
                    worker = Worker(module, environment=environment)
        worker.close()
        return others

    with ThreadPoolExecutor() as pool:
        runs = list(pool.map(run, *zip(*OTHER_ROUNDINGS, strict=True)))
    spreads = {
        program: compare.spreads(recorded[program], [others[program] for others in runs if program in others])
        for program in sorted(programs)
    }
    return {program: by_place for program, by_place in spreads.items() if by_place}


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


def read() -> dict[str, dict[str, Any]]:
    """The recorded results, by file and name."""
    paths = (path for path in sorted(RESULTS.glob("*.json")) if path.stem != "about")
    return {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in paths}


def main() -> int:
    """Records everything anew, or the spreads alone; 1 where it may not, or where a program fails."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--spreads", nargs="*", metavar="FILE", help="record spreads alone, of these files or of all")
    files = parser.parse_args().spreads
    why = refusal()
    if why:
        sys.stderr.write(f"record.py: {why}")
        return 1
    if files is None:
        results, failures = record()
        if failures:
            text = "\n".join([*failures, f"record.py: {len(failures)} programs failed, nothing was written\n"])
            sys.stderr.write(text)
            return 1
        write(results)
    results = read()
    files = files or list(results)
    spreads = json.loads(SPREADS.read_text(encoding="utf-8")) if SPREADS.exists() else {}
    spreads = {program: by_place for program, by_place in spreads.items() if program.split(".")[0] not in files}
    spreads = dict(sorted((spreads | record_spreads(results, files)).items()))
    lines = (f"{json.dumps(program)}: {json.dumps(spreads[program])}" for program in spreads)
    SPREADS.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
    sys.stdout.write(
        f"{sum(map(len, results.values()))} programs under TensorFlow {tensorflow_version()} in {RESULTS}; "
        f"results of {len(spreads)} of them move\n"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
