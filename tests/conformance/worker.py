"""A process that runs programs one after another under one module, and the handle that drives it.

The recorder and the tests share it, so that TensorFlow and Teletape meet the programs in the same way. Programs that
need a process of their own get one: the recorder starts it anew, since TensorFlow cannot be forked, and the tests fork
it from a process that has imported everything and run nothing.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import json
import os
import queue
import signal
import subprocess
import sys
import threading
import traceback
from pathlib import Path
from typing import Any, TextIO

TESTS = Path(__file__).resolve().parent.parent
_FORK_SECONDS = 60


class ProgramFailed(Exception):
    """A program ended in an error of its own, or its process did; the text holds the traceback."""


class Worker:
    """Starts the process at once; ``run`` gives a program's encoded result. Close it, or use it in a ``with``.

    Args:
        module: The module under which programs run.
        url: The server for programs that run remotely.
        environment: Variables of the process besides those of this one.
        forks: Whether each program runs in a fork of the process, which itself runs none.
    """

    def __init__(
        self, module: str, url: str | None = None, environment: dict[str, str] | None = None, *, forks: bool = False
    ) -> None:
        command = [sys.executable, "-P", "-m", "conformance.worker", "--module", module]
        command += ["--url", url] if url else []
        command += ["--forks"] if forks else []
        inherited = {key: value for key, value in os.environ.items() if not key.startswith("TELETAPE_")}
        paths = [str(TESTS), *filter(None, [os.environ.get("PYTHONPATH")])]
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=inherited | {"PYTHONPATH": os.pathsep.join(paths)} | (environment or {}),
        )
        self._answers: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def run(self, program: str, timeout: float = 60.0, *, remote: bool = False) -> Any:
        """The encoded result of the program with this id; ProgramFailed where none comes in ``timeout`` seconds.

        `remote`: on the server rather than in the process.
        """
        assert self._process.stdin
        with contextlib.suppress(BrokenPipeError):  # a dead process: the empty answer below says so
            self._process.stdin.write(json.dumps([program, remote]) + "\n")
            self._process.stdin.flush()
        try:
            line = self._answers.get(timeout=timeout)
        except queue.Empty:
            self._process.kill()
            raise ProgramFailed(f"{program}: no result within {timeout:g} s") from None
        if not line:
            raise ProgramFailed(
                f"{program}: the process ended, exit status {self._process.wait()}; its stderr says why"
            )
        answer = json.loads(line)
        if "failure" in answer:
            raise ProgramFailed(f"{program}:\n{answer['failure']}")
        return answer["result"]

    @property
    def alive(self) -> bool:
        """False once the process has ended, by itself or killed after a timeout."""
        return self._process.poll() is None

    def close(self) -> None:
        """Ends the process: politely, and by force after five seconds."""
        assert self._process.stdin
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()
        try:
            self._process.wait(5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._reader.join()
        assert self._process.stdout
        self._process.stdout.close()

    def _read(self) -> None:
        """Moves answers into the queue; an empty one marks the end."""
        assert self._process.stdout
        for line in self._process.stdout:
            self._answers.put(line)
        self._answers.put("")


def serve(module: str, url: str | None, forks: bool, requests: TextIO, answers: TextIO) -> None:
    """Answers each request, a program's id and whether it runs remotely, with a line of JSON: result or failure."""
    import numpy as np

    from conformance.compare import encode
    from conformance.program import load

    tf = importlib.import_module(module)
    programs = load()
    if forks:
        for name in dir(tf):  # names are imported when first used: each fork would import them again
            getattr(tf, name)
    sessions: dict[bool, Any] = {}

    def switch(remote: bool) -> None:
        if url is None:
            return
        from teletape.core.sessions.current import use

        if remote not in sessions:
            sessions[remote] = tf.connect(url if remote else None, local=not remote)
        use(sessions[remote])

    def answer(program: str) -> None:
        try:
            result = encode(programs[program].function(tf, np), tf)
            answer = {"result": result}
        except Exception:
            answer = {"failure": traceback.format_exc()}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()

    for line in requests:
        program, remote = json.loads(line)
        if not forks:
            switch(remote)
            answer(program)
        elif child := os.fork():
            _, status = os.waitpid(child, 0)
            if status:
                failure = {"failure": f"the fork ended, exit status {os.waitstatus_to_exitcode(status)}"}
                answers.write(json.dumps(failure) + "\n")
                answers.flush()
        else:
            signal.alarm(_FORK_SECONDS)  # if the process that forked it is killed, nothing else ends it
            switch(remote)
            answer(program)
            return


def main() -> None:
    """The child's side: ids come on standard input, answers leave on what was standard output; prints go to stderr."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--module", required=True)
    parser.add_argument("--url")
    parser.add_argument("--forks", action="store_true")
    arguments = parser.parse_args()
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    serve(arguments.module, arguments.url, arguments.forks, sys.stdin, answers)


if __name__ == "__main__":
    main()
