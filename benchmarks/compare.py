"""Compares the speed of two checkouts in one run: the cases of chain.py and jacobian.py, in-process and over HTTP.

    .venv/bin/python benchmarks/compare.py OLD_CHECKOUT NEW_CHECKOUT

Each checkout runs its own benchmarks with the Python of its own .venv (make install), in processes of their own. A pair
is one run of each, the first alternating, and the ratio is that of a pair: so other work of the machine disturbs both
alike. Below 1 the new checkout is faster. Read the median of the ratios, or on a busy machine the ratio of the best
runs. With --limit the exit status says whether any median is above it.
"""

import argparse
import contextlib
import gc
import importlib
import importlib.util
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "scripts"))
from with_server import clean_environment, server  # a script, not a package

#: (label, module, function): a name that both checkouts have.
IN_PROCESS = [
    ("engine: chain", "chain", "engine"),
    ("SDK: chain", "chain", "sdk"),
    ("SDK: jacobian", "jacobian", "at_once"),
    ("SDK: 64 gradients", "jacobian", "loop"),
    ("SDK: gradient", "jacobian", "gradient"),
    ("SDK: hvp", "jacobian", "product"),
]
OVER_HTTP = [
    ("HTTP: chain", "chain", "sdk"),
    ("HTTP: jacobian", "jacobian", "at_once"),
    ("HTTP: 64 gradients", "jacobian", "loop"),
    ("HTTP: gradient", "jacobian", "gradient"),
    ("HTTP: round trip", "round_trip", ""),
]
SECONDS = 0.03  #: One run repeats its case until it takes this long.


# ------------------------------------------------------------------------------- the process that runs one checkout
def work(checkout: Path) -> None:
    """Reads lines [module, function, repeats], runs them, and writes the seconds of each run.

    In-process these are seconds of CPU time, which other programs disturb less; over HTTP they are seconds that passed.
    """
    clock = time.perf_counter if "TELETAPE_URL" in os.environ else time.process_time
    replies = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # nothing that a program prints is taken for a reply
    sys.path.insert(0, str(checkout / "benchmarks"))
    for package in ("teletape", "teletape_engine"):
        specification = importlib.util.find_spec(package)
        folders = (specification and specification.submodule_search_locations) or []
        if not any(folder.startswith(f"{checkout}{os.sep}") for folder in folders):
            raise SystemExit(f"{package} is not imported from {checkout}: run `make install` there")
    cases: dict[tuple[str, str], Callable[[], Any]] = {}
    for line in sys.stdin:
        module, function, repeats = json.loads(line)
        case = cases.get((module, function))
        if case is None:
            case = cases[module, function] = find(module, function)
        gc.collect()
        begin = clock()
        for _ in range(repeats):
            case()
        print(clock() - begin, file=replies, flush=True)


def find(module: str, function: str) -> Callable[[], Any]:
    """The function of a benchmark, or one empty round trip."""
    if module == "round_trip":
        tf = importlib.import_module("teletape")
        session = tf.session()
        trip: Callable[[], Any] = getattr(session, "channel", session).round_trip  # an older one has it itself
        return trip
    case: Callable[[], Any] = getattr(importlib.import_module(module), function)
    return case


# ------------------------------------------------------------------------------------------- the process that compares
class Worker:
    """A process that runs the benchmarks of one checkout.

    Args:
        checkout: Its root.
        url: A server of the same checkout; None: in-process.
    """

    def __init__(self, checkout: Path, url: str | None = None) -> None:
        environment = one_thread() | ({"TELETAPE_URL": url} if url else {})
        command = [python(checkout), "-P", Path(__file__).resolve(), "--worker", checkout]
        self._process = subprocess.Popen(
            command, env=environment, cwd=checkout, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def run(self, module: str, function: str, repeats: int = 1) -> float:
        """The seconds of one run."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(json.dumps([module, function, repeats]), file=self._process.stdin, flush=True)
        reply = self._process.stdout.readline()
        if not reply:
            raise SystemExit(f"the worker failed: {module}.{function}; see above")
        return float(reply)

    def close(self) -> None:
        """Ends the process."""
        self._process.communicate()


def python(checkout: Path) -> Path:
    """The interpreter of a checkout."""
    path = checkout / ".venv" / "bin" / "python"
    if not path.exists():
        raise SystemExit(f"no {path}: run `make install` in {checkout}")
    return path


def one_thread() -> dict[str, str]:
    """The environment without settings of Teletape's, with one BLAS thread; see one_thread.py."""
    environment = {name: value for name, value in clean_environment().items() if name != "OPENBLAS_CORETYPE"}
    return {**environment, "OPENBLAS_NUM_THREADS": "1"}


@contextlib.contextmanager
def workers(checkouts: list[Path], *, http: bool) -> Iterator[list[Worker]]:
    """A worker for each checkout, with a server of its own if `http`."""
    with contextlib.ExitStack() as stack:
        started = []
        for checkout in checkouts:
            url = None
            if http:
                folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="teletape-")))
                url = stack.enter_context(server([python(checkout).with_name("teletape")], folder, one_thread()))
            started.append(Worker(checkout, url))
            stack.callback(started[-1].close)
        yield started


def measure(old: Worker, new: Worker, module: str, function: str, pairs: int) -> list[tuple[float, float]]:
    """The seconds (old, new) of each pair, for one repeat."""
    once = max(worker.run(module, function) for worker in (old, new) for _ in range(3))
    repeats = max(1, round(SECONDS / once))
    seconds = []
    for i in range(pairs):
        if i % 2:
            after = new.run(module, function, repeats)
            before = old.run(module, function, repeats)
        else:
            before = old.run(module, function, repeats)
            after = new.run(module, function, repeats)
        seconds.append((before / repeats, after / repeats))
    return seconds


def main() -> None:
    """Measures and prints a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("old", type=Path, help="the root of a checkout")
    parser.add_argument("new", type=Path, help="the root of another")
    parser.add_argument("--pairs", type=int, default=60, help="pairs of each case (60)")
    parser.add_argument("--only", default="", help="only cases whose label has this in it")
    parser.add_argument("--limit", type=float, help="exit with status 1 if a median ratio is above this, as 1.03")
    arguments = parser.parse_args()
    checkouts = [arguments.old.resolve(), arguments.new.resolve()]
    print(f"{'medians of ' + str(arguments.pairs) + ' pairs':22}{'old µs':>10}{'new µs':>10}{'new / old':>11}", end="")
    print("   middle half      best / best")
    slower = []
    for http, cases in ((False, IN_PROCESS), (True, OVER_HTTP)):
        cases = [case for case in cases if arguments.only in case[0]]
        if not cases:
            continue
        with workers(checkouts, http=http) as (old, new):
            for label, module, function in cases:
                seconds = measure(old, new, module, function, arguments.pairs)
                before, after = (statistics.median(side) * 1e6 for side in zip(*seconds, strict=True))
                low, ratio, high = statistics.quantiles([b / a for a, b in seconds], n=4)
                best = min(after for _, after in seconds) / min(before for before, _ in seconds)
                print(f"{label:22}{before:10.0f}{after:10.0f}{ratio:11.3f}", end="")
                print(f"   {low:.3f} to {high:.3f}   {best:.3f}", flush=True)
                if arguments.limit is not None and ratio > arguments.limit:
                    slower.append(label)
    if slower:
        sys.exit(f"above {arguments.limit}: {', '.join(slower)}")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--worker"]:
        work(Path(sys.argv[2]))
    else:
        main()
