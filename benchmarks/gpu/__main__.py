"""Verifies a GPU: the tests that need one, then benchmarks; writes JSON, and the dated part of docs/gpu.md.

    make gpu
    make gpu ARGS='--only mlp --no-tests'

Where nothing can be installed, a Python that has CuPy, SciPy, ml_dtypes, msgpack, httpx and pytest does it; sessions of
a server are tested where FastAPI is installed too, and in several processes with pytest-xdist:

    PYTHONPATH=engine:wire:client:server:benchmarks python3 -P -m gpu

Without a GPU it says why there is none, and ends with status 2.
"""

import argparse
import contextlib
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from suite import facts, page, sampling, systems
from suite.processes import PEERS, Failed, Process
from suite.servers import ROOT
from suite.units import amount, digits, median, ratio

from gpu.rows import ROWS, SMALL, SYSTEMS

PAGE = ROOT / "docs" / "gpu.md"
RESULT = ROOT / "benchmarks" / "results" / "gpu.json"
WORKERS = 16  #: Test processes, each of which takes some hundred MiB of the GPU.
#: What is tested in the first minute, and the rest: the names of the tests.
GROUPS = {"sessions of a server, plans": "sharing or plan", "ops, laws, programs": "not sharing and not plan"}
PART = re.compile(r"(?<=<!-- run -->\n).*?(?=<!-- end of run -->)", re.S)


def tested() -> list[dict[str, Any]]:
    """The counts of the tests that need a GPU, by group, and the names of the failed ones; shows pytest's output."""
    # By name: other files import packages that a machine with a GPU may lack.
    files = [path for path in sorted((ROOT / "tests").rglob("test_*.py")) if "mark.gpu" in path.read_text("utf-8")]
    if find_spec("fastapi") is None:
        files = [path for path in files if "server" not in path.parts]
        print("without the tests of a server: FastAPI is not installed", flush=True)
    workers = ["--numprocesses", str(min(os.cpu_count() or 1, WORKERS))] if find_spec("xdist") else ["-p", "no:xdist"]
    options = ["-q", "-m", "gpu", "--require=gpu", "-rfE", "--tb=short", "-p", "no:benchmark", *workers]
    return [_group(group, [*options, "-k", names, *map(str, files)]) for group, names in GROUPS.items()]


def _group(group: str, arguments: list[str]) -> dict[str, Any]:
    command, lines = [sys.executable, "-P", "-m", "pytest", *arguments], []
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            print(line, end="", flush=True)
            lines.append(line.strip())
    failed = [line.split()[1] for line in lines if line.startswith(("FAILED ", "ERROR "))]
    if process.returncode and not failed:
        failed = [f"pytest ended with status {process.returncode}"]
    return {"group": group, "summary": lines[-1] if lines else "", "failed": failed}


def measured(names: list[str], seconds: float, peers: Path, *, small: bool) -> Iterator[tuple[str, dict[str, Any]]]:
    """The samples of one row after another, by system."""
    with contextlib.ExitStack() as stack:
        processes: dict[str, Process] = {}

        def process_of(system: str) -> Process:
            if system not in processes or processes[system].ended:
                processes[system] = Process(system, 4, peers=peers)
                stack.callback(processes[system].close)
            return processes[system]

        for name in names:
            row = replace(ROWS[name], size=SMALL[name]) if small else ROWS[name]
            samples = sampling.measure(row, process_of, seconds)
            print(page.line(name, row, samples), flush=True)
            yield name, samples


def save(result: dict[str, Any]) -> None:
    """Writes the JSON and the part of the page."""
    RESULT.write_text(json.dumps(result, indent=1) + "\n")
    text = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(PART.sub(lambda _: written(result), text), encoding="utf-8")


def written(result: dict[str, Any]) -> str:
    """The part of the page about a run."""
    run, device = result["run"], result["device"]
    lines = [
        f"{device['name']}, CUDA {device['cuda']}, commit {run['commit']}, {run['date']}. Milliseconds of a call, the",
        "median; of a chain microseconds of an op. In brackets the goal and what was reached.",
        "",
        "| program | " + " | ".join(SYSTEMS[name].label for name in SYSTEMS) + " | goals |",
        "| --- |" + " --- |" * (len(SYSTEMS) + 1),
    ]
    for name, samples in result["rows"].items():
        row = ROWS[name]
        cells = [_cell(row, samples, system) for system in SYSTEMS]
        goals = [f"{_ratio(samples, goal)} (≤ {goal.ratio:g})" for goal in row.goals]
        lines.append(f"| {row.label} | {' | '.join(cells)} | {', '.join(goals)} |")
    lines += ["", "| tests | result |", "| --- | --- |"] if result["tests"] else []
    lines += [f"| {tests['group']} | {tests['summary']} |" for tests in result["tests"]]
    lines += ["", *[f"* failed: `{name}`" for tests in result["tests"] for name in tests["failed"]]]
    return "\n".join(lines) + "\n"


def _cell(row: Any, samples: dict[str, Any], system: str) -> str:
    seconds = median(samples, system)
    return "" if seconds is None else digits(amount(row, seconds))


def _ratio(samples: dict[str, Any], goal: Any) -> str:
    reached = ratio(samples, goal)
    return "not measured" if reached is None else f"{reached[0]:.2f}"


def main() -> int:
    """Verifies the GPU; returns the status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="rows whose name has this in it; several: separated by commas")
    parser.add_argument("--seconds", type=float, default=5.0, help="of the rounds of a row")
    parser.add_argument("--no-tests", action="store_true", help="only measure")
    parser.add_argument("--small", action="store_true", help="small sizes, to try the command; writes nothing")
    parser.add_argument("--peers", type=Path, default=PEERS if PEERS.exists() else Path(sys.prefix))
    options = parser.parse_args()
    from teletape_engine.arrays import devices

    gpus = [device for device in devices() if device.device != "cpu"]
    usable = [device for device in gpus if not device.unusable]
    if not usable:
        print(f"make gpu: there is no GPU here that can be used: {gpus[0].unusable}", file=sys.stderr)
        return 2
    systems.SYSTEMS.update(SYSTEMS)
    tests = [] if options.no_tests else tested()
    names = [name for name in ROWS if any(part in name for part in options.only.split(","))]
    rows: dict[str, Any] = {}
    result = {"run": facts.of_run(Path(sys.executable)), "device": usable[0]._asdict(), "tests": tests, "rows": rows}
    try:
        for name, samples in measured(names, options.seconds, options.peers.absolute(), small=options.small):
            rows[name] = samples
            if not options.small:
                save(result)  # after each row: the machine may be lent for minutes
    except Failed as error:
        print(f"make gpu: {error}", file=sys.stderr)
        return 1
    if options.small:
        print(written(result))
    return 1 if any(group["failed"] for group in tests) else 0


if __name__ == "__main__":
    sys.exit(main())
