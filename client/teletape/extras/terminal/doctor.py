"""`python -m teletape doctor`: reports installed and missing packages, and whether a server can be used."""

from __future__ import annotations

import contextlib
import importlib.metadata
import importlib.util
import os
import platform
import shutil
import sys
import time
from collections.abc import Iterator
from email.utils import parsedate_to_datetime
from typing import Final, NamedTuple

import numpy as np

from teletape.core import environment
from teletape.core.calls.dispatch import constant
from teletape.core.errors import TeletapeError
from teletape.core.network.options import ConnectOptions
from teletape.core.sessions.local import LocalSession
from teletape_engine.catalogue import describe

_CLOCK: Final = 5.0  #: Seconds by which the clocks of this machine and a server may differ.

#: Optional packages: the extra, a module of it, and its purpose.
_EXTRAS: Final = (
    ("keras", "keras", "tf.keras"),
    ("local", "scipy", "sessions inside this process"),
    ("fast", "zlib_ng", "checking the bytes of large tensors faster"),
    ("graph", "pygraphviz", "pictures of tapes"),
    ("server", "fastapi", "teletape serve"),
    ("gpu", "cupy", "computing on a GPU of this machine"),
)


class Finding(NamedTuple):
    """A line of the report.

    Attributes:
        grade: ok, note (a part is missing that a program may not need), or fail.
        subject: The thing that was checked.
        text: The result, and what to do.
    """

    grade: str
    subject: str
    text: str

    def __str__(self) -> str:
        return f"{self.grade:<5} {self.subject:<10} {self.text}"


def version() -> str:
    """Returns the version of the installed distribution; "0" in a checkout that is not installed."""
    try:
        return importlib.metadata.version("teletape")
    except importlib.metadata.PackageNotFoundError:
        return "0"


def run(url: str | None, api_key: str | None) -> int:
    """Prints the report; returns 1 if anything in it fails, else 0."""
    failures = 0
    for finding in findings(url, api_key):
        print(finding, flush=True)
        failures += finding.grade == "fail"
    return 1 if failures else 0


def findings(url: str | None, api_key: str | None) -> Iterator[Finding]:
    """Yields the lines: about this environment, then about the server if there is an address."""
    yield Finding("ok", "python", f"{platform.python_version()} on {platform.platform()} ({sys.executable})")
    yield Finding("ok", "teletape", f"{version()}, catalogue {describe.digest()}, in {os.path.dirname(__file__)}")
    yield _numpy()
    for extra, module, purpose in _EXTRAS:
        yield _extra(extra, module, purpose)
    yield _settings()
    yield _gradient()
    if url is None:
        yield Finding("note", "server", "no address: pass one, or set TELETAPE_URL, to check a server too")
    else:
        yield from _server(url, api_key)


def _numpy() -> Finding:
    facts = np.show_config(mode="dicts")
    blas = facts.get("Build Dependencies", {}).get("blas", {})
    name, number = blas.get("name", "none"), blas.get("version", "")
    threads = environment.blas_threads() or os.cpu_count()
    text = f"{np.__version__}, BLAS {name} {number}, {threads} threads"
    if name in ("none", "", "blas", "netlib"):
        return Finding("note", "numpy", f"{text}: matrices multiply slowly; pip install numpy brings OpenBLAS")
    return Finding("ok", "numpy", text)


def _extra(extra: str, module: str, purpose: str) -> Finding:
    if importlib.util.find_spec(module) is not None:
        return Finding("ok", extra, f"{module} is installed: {purpose}")
    if extra == "graph" and shutil.which("dot") is not None:
        return Finding("ok", extra, f"dot is installed: {purpose}")
    return Finding("note", extra, f"no {module}, for {purpose}: pip install 'teletape[{extra}]'")


def _settings() -> Finding:
    shown = [f"{name}={'(set)' if 'KEY' in name else value}" for name, value in environment.everything().items()]
    return Finding("ok", "settings", ", ".join(shown) or "no TELETAPE_… variables: the defaults")


def _gradient() -> Finding:
    from teletape.core.derivatives.tape import GradientTape  # only this report imports it

    try:
        with LocalSession(environment.device()).as_default(), GradientTape() as tape:
            x = constant(3.0)
            tape.watch(x)
            y = x * x
        gradient = float(tape.gradient(y, x))
    except (TeletapeError, ImportError, OSError) as error:
        return Finding("fail", "compute", f"no gradient inside this process: {error}")
    return Finding("ok", "compute", f"the gradient of x² at 3 inside this process is {gradient:g}")


def _server(url: str, api_key: str | None) -> Iterator[Finding]:
    from teletape.core.network.http import Connection  # HTTP takes 0.1 s to import

    try:
        with contextlib.closing(Connection(ConnectOptions.of(url, api_key=api_key))) as connection:
            began = time.perf_counter()
            facts = connection.info()
            took = time.perf_counter() - began
            yield Finding(
                "ok", "server", f"{connection.url} answers in {took * 1e3:.0f} ms, teletape {facts['version']}"
            )
            if connection.url.startswith("http:") and api_key:
                yield Finding("note", "key", "is sent unencrypted: use https:// outside of this machine")
            else:
                yield Finding("ok", "key", "is accepted" if api_key else "none is needed")
            yield _catalogue(facts["catalogue"], facts["version"])
            yield _clock(connection.server_date)
            listed = connection.get("/v1/devices")
            names = ", ".join(facts["device"] for facts in listed["devices"] if facts["usable"])
            yield Finding("ok", "device", f"{listed['default']} by default; there are {names}")
            live = connection.get("/v1/sessions")["sessions"]
            yield Finding("ok", "sessions", f"you have {len(live)}: python -m teletape sessions lists, cancels, ends")
    except TeletapeError as error:
        yield Finding("fail", "server", str(error))


def _catalogue(digest: str, number: str) -> Finding:
    if digest == describe.digest():
        return Finding("ok", "ops", "are the same here and on the server")
    return Finding(
        "note", "ops", f"differ from the server's (version {number}): install the same version on both sides"
    )


def _clock(date: str | None) -> Finding:
    if date is None:
        return Finding("note", "clock", "the server sends no time")
    ahead = parsedate_to_datetime(date).timestamp() - time.time()
    if abs(ahead) <= _CLOCK:
        return Finding("ok", "clock", "as the server's")
    return Finding(
        "note",
        "clock",
        f"the server's is {abs(ahead):.0f} s {'ahead' if ahead > 0 else 'late'}: the ends of sessions are shown "
        "wrongly; let NTP set the clocks of both",
    )
