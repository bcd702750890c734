"""The measured processes, seen from the one that asks them: their environment, start, requests and end."""

import contextlib
import json
import os
import select
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from suite.servers import ROOT, running
from suite.systems import SYSTEMS

PEERS = ROOT / ".venv" / "peers"
ANSWER_SECONDS = 180.0


class Failed(Exception):
    """A system could not do what it was to do; the message says why."""


def clean_environment(threads: int) -> dict[str, str]:
    """This process's, without settings that change what is measured, and with a number of BLAS threads.

    OPENBLAS_CORETYPE, where it is set, slows NumPy; settings of Teletape's are not those of the measured server.
    """
    names = ("OPENBLAS_CORETYPE", "PYTHONPATH")
    environment = {n: v for n, v in os.environ.items() if n not in names and not n.startswith("TELETAPE_")}
    count = str(threads)
    blas = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "NPROC"), count)
    return {
        **environment,
        **blas,
        "TF_CPP_MIN_LOG_LEVEL": "3",
        "TF_NUM_INTRAOP_THREADS": count,
        "TF_NUM_INTEROP_THREADS": count,
        "CUDA_VISIBLE_DEVICES": "",
        "JAX_PLATFORMS": "cpu",
        "no_proxy": "127.0.0.1,localhost",
    }


class Process:
    """The process of one system, and its server.

    Args:
        system: A name of SYSTEMS.
        threads: Cores and BLAS threads.
        own: The Python of the checkout that is measured.
        peers: The folder of the peers' environment.
        busy: Whether the machine does other work too: seconds are then those of CPU time, unless there is a server or a
            second thread.

    Raises:
        Failed: It did not start.
    """

    def __init__(
        self,
        system: str,
        threads: int = 1,
        own: Path = Path(sys.executable),
        peers: Path = PEERS,
        *,
        busy: bool = False,
    ) -> None:
        self.system = SYSTEMS[system]
        python = peers / "bin" / "python" if self.system.peer else own
        if not python.exists():
            raise Failed(f"no {python}: run `make bench-peers`")
        environment = clean_environment(threads)
        if self.system.on_gpu:
            for name in ("CUDA_VISIBLE_DEVICES", "JAX_PLATFORMS"):
                environment.pop(name)
                if name in os.environ:
                    environment[name] = os.environ[name]
        paths = [str(ROOT / "benchmarks")]
        if self.system.on_gpu and os.environ.get("PYTHONPATH"):
            paths.append(os.environ["PYTHONPATH"])  # a machine with a GPU may have no installation of the checkout
        environment["PYTHONPATH"] = os.pathsep.join(paths)
        self.ended = False  #: Whether it has been closed, also because it failed.
        self._stack = contextlib.ExitStack()
        self._folder = Path(self._stack.enter_context(tempfile.TemporaryDirectory(prefix="benchmark-")))
        if self.system.server is not None:
            try:
                address = self._stack.enter_context(running(self.system.server, python, environment, self._folder))
            except (RuntimeError, SystemExit) as error:
                self._stack.close()
                raise Failed(str(error)) from None
            environment["BENCHMARK_ADDRESS"] = address
            if (certificate := self._folder / "cert.pem").exists():
                environment["SSL_CERT_FILE"] = str(certificate)
            threads = 0  # client and server share the cores
        clock = "process_time" if busy and threads == 1 else "perf_counter"
        self._log = (self._folder / "log").open("w+")
        self._process = subprocess.Popen(
            [python, "-P", "-m", "suite.child", self.system.binding, str(threads), clock],
            env={**environment, **self.system.settings},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
        )
        self._reply()

    def ask(self, do: str, **fields: Any) -> dict[str, Any]:
        """The answer to a request.

        Raises:
            Failed: The process raised, ended, or did not answer.
        """
        assert self._process.stdin is not None
        if self.ended:
            raise Failed("its process has ended")
        with contextlib.suppress(OSError):  # it died between two requests: what follows says why
            print(json.dumps({"do": do, **fields}), file=self._process.stdin, flush=True)
        reply = self._reply()
        if "error" in reply:
            raise Failed(reply["error"])
        return reply

    def _reply(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = ""
        if select.select([self._process.stdout], [], [], ANSWER_SECONDS)[0]:
            line = self._process.stdout.readline()
        if not line:
            self._log.seek(0)
            tail = self._log.read().strip().splitlines()[-1:] or ["no answer"]
            self.close()
            raise Failed(tail[0])
        reply: dict[str, Any] = json.loads(line)
        return reply

    def close(self) -> None:
        """Ends the process and its server."""
        if self.ended:
            return
        self.ended = True
        self._process.kill()
        self._process.communicate()
        self._log.close()
        self._stack.close()
