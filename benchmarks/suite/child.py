"""The process of one system: reads requests as lines of JSON, measures, and answers each with a line.

    python -m suite.child BINDING THREADS CLOCK

load    builds a program; `calls` first calls of it are timed one after the other
run     repeats it; the seconds of all
memory  how far the peak of the process's memory rises in three calls, the program built before
leave   forgets the program
"""

import gc
import importlib
import json
import os
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np

from suite import bindings
from suite.callers import seconds


class Child:
    """A binding, the clock of its measurements, and the program that is loaded."""

    def __init__(self, binding: bindings.Binding, clock: Callable[[], float]) -> None:
        self.binding, self.clock = binding, clock
        self.call: Callable[[], Sequence[Any]] | None = None

    def load(self, program: str, size: dict[str, Any], calls: int = 10) -> dict[str, Any]:
        """Builds a program; the seconds until the first call and until the last of `calls` have answered."""
        self.leave()
        call = self.call = self._call(program, size)
        begin = self.clock()
        results = call()
        first = self.clock() - begin
        summary = [_summary(array) for array in self.binding.arrays(results)]
        del results
        begin = self.clock()
        for _ in range(calls - 1):
            call()
        return {"first": first, "last": first + self.clock() - begin, "summary": summary}

    def _call(self, program: str, size: dict[str, Any]) -> Callable[[], Sequence[Any]]:
        module = importlib.import_module(f"suite.programs.{program}")
        return self.binding.load(module, {**module.inputs(**size), "size": size})

    def run(self, repeats: int, callers: int = 1, *, in_threads: bool = True) -> dict[str, float]:
        """Repeats the program for each of `callers` at the same time, in threads or over connections of one thread."""
        gc.collect()
        if callers > 1:
            return (self._run_threads if in_threads else self._run_connections)(repeats, callers)
        call = self.call
        begin = self.clock()
        for _ in range(repeats):
            call()
        return {"seconds": self.clock() - begin}

    def _run_connections(self, repeats: int, callers: int) -> dict[str, float]:
        self.call()
        request = self.binding.sent
        with ExitStack() as stack:
            connections = [stack.enter_context(bindings.connected()) for _ in range(callers)]
            seconds(connections, request, 10, self.clock)
            return {"seconds": seconds(connections, request, repeats, self.clock)}

    def _run_threads(self, repeats: int, callers: int) -> dict[str, float]:
        barrier, call = threading.Barrier(callers + 1), self.call

        def work() -> None:
            call()  # connects
            barrier.wait()
            for _ in range(repeats):
                call()

        threads = [threading.Thread(target=work) for _ in range(callers)]
        for thread in threads:
            thread.start()
        barrier.wait()
        begin = self.clock()
        for thread in threads:
            thread.join()
        return {"seconds": self.clock() - begin}

    def memory(self, program: str, size: dict[str, Any]) -> dict[str, float]:
        """The MB by which three calls raise the peak; libraries are warm from a small size of the same program."""
        self.load(program, {**size, **importlib.import_module(f"suite.programs.{program}").SMALL}, calls=3)
        self.leave()
        call = self._call(program, size)
        gc.collect()
        Path("/proc/self/clear_refs").write_text("5")
        before = _status("VmRSS")
        for _ in range(3):
            call()
        return {"mb": (_status("VmHWM") - before) / 1e3}

    def leave(self) -> dict[str, Any]:
        """Forgets the program."""
        self.call = None
        gc.collect()
        return {}


def _summary(array: np.ndarray) -> list[float]:
    exact = np.asarray(array, "f8")
    return [float(exact.sum()), float(np.sqrt(np.square(exact).sum()))]


def _status(name: str) -> float:
    """A line of /proc/self/status, kB."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(float(line.split()[1]) for line in lines if line.startswith(f"{name}:"))


def main() -> None:
    """Answers requests until the input ends."""
    replies = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # nothing that a program prints is taken for a reply
    threads = int(sys.argv[2])
    if threads:
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:threads])
    module, _, name = sys.argv[1].rpartition(".")
    binding = getattr(importlib.import_module(module) if module else bindings, name)
    child = Child(binding(threads or 1), getattr(time, sys.argv[3]))
    print("{}", file=replies, flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        try:
            reply = getattr(child, request.pop("do"))(**request)
        except Exception as error:
            child.leave()
            reply = {"error": f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"}
        print(json.dumps(reply), file=replies, flush=True)


if __name__ == "__main__":
    main()
