"""A server whose sessions outlive it, for tests: with a folder for data, and a client of one session."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import numpy as np

from serving import Program, Server, ok, until
from teletape_engine.commands import MakeVariable
from teletape_engine.commands.results import Answer
from teletape_server.settings import Settings

PATH = "/v1/sessions/demo"
X = np.array([1.0, 2.0], np.float32)


class Lasting:
    """A server with a folder for data, and a client of it."""

    def __init__(self, folder: Path, **settings: Any) -> None:
        self.server = Server(Settings(data_dir=str(folder), shutdown_grace=0.5, **settings))
        self.http: httpx.Client

    @contextmanager
    def running(self) -> Iterator["Lasting"]:
        with self.server.running(), self.server.client() as self.http:
            yield self

    @property
    def entry(self) -> Any:
        return self.server.app.state.registry.find_live("local", "demo")

    def create(self, **of: Any) -> Program:
        """A session with a variable, and a client of it."""
        ok(self.http.post("/v1/sessions", json={"id": "demo", **of}))
        program = Program(self.http, "demo")
        program.run(MakeVariable("w", X))
        return program

    def kill(self) -> None:
        """Ends the session's process, as the system does when memory is short."""
        host = self.entry.host
        os.kill(host.pid, signal.SIGKILL)
        until(lambda: self.entry is None or self.entry.host is not host)

    def described(self) -> dict[str, Any]:
        facts: dict[str, Any] = ok(self.http.get(PATH)).json()
        return facts


def fetched(answer: Answer) -> list[float]:
    [result] = answer.results
    return np.asarray(result.array).tolist()  # type: ignore[union-attr,no-any-return]  # a Fetched
