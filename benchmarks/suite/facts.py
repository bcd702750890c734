"""What a result must say of the run: versions, commit, machine, load."""

import json
import os
import platform
import subprocess
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from suite.servers import ROOT

PRODUCT = ("engine", "wire", "client", "server")
PACKAGES = "import importlib.metadata as m, json, sys; print(json.dumps({p: m.version(p) for p in sys.argv[1:]}))"


def of_run(own: Path) -> dict[str, Any]:
    """Commit, date, processor, cores, load, and how plans run in a checkout's Python."""
    program = "from teletape_engine.plans.run.c import loaded; print('C' if loaded.LIBRARY_LOADED else 'Python')"
    walk = subprocess.run([own, "-P", "-c", program], capture_output=True, text=True, check=False).stdout.strip()
    changed = _git("status", "--porcelain", "--", *PRODUCT)
    return {
        "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "commit": _git("log", "-1", "--format=%h", "--", *PRODUCT),  # that changed what is measured
        "changed": bool(changed),
        "processor": processor(),
        "cores": len(os.sched_getaffinity(0)),
        "python": platform.python_version(),
        "plans": walk or "none",
        "load": load(),
    }


def load() -> list[float]:
    """The machine's load averages."""
    return [round(number, 2) for number in os.getloadavg()]


def processor() -> str:
    """The processor's name, as Linux has it, and its widest vectors, where they are of x86-64."""
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    name = next((line.partition(": ")[2] for line in lines if line.startswith("model name")), platform.machine())
    flags = next((line.split() for line in lines if line.startswith("flags")), [])
    widest = next((vectors for vectors in ("avx512f", "avx2") if vectors in flags), "")
    return f"{name} with {widest.rstrip('f').upper()}" if widest else name


def versions(python: Path, packages: tuple[str, ...]) -> dict[str, str] | str:
    """The versions of packages in an environment, or why there are none."""
    if not python.exists():
        return "its environment is absent: make bench-peers"
    command = [python, "-P", "-c", PACKAGES, *packages]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    if result.returncode:
        return (result.stderr.strip().splitlines() or ["absent"])[-1]
    numbers: dict[str, str] = json.loads(result.stdout)
    return numbers


def _git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False).stdout.strip()
