"""The client as a distribution of its own: what its wheel holds, what its import loads, and other systems."""

import subprocess
import sys
import tomllib
import venv
import zipfile
from pathlib import Path

import pytest

import teletape.service
import teletape_client
from programs import run
from teletape_client.client import VERSION

ROOT = Path(__file__).resolve().parents[2]
CLIENT = ROOT / "client"
PROJECT = tomllib.loads((CLIENT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
WHOLE = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]

#: A program of a service; the first argument is the server's address.
PROGRAM = """
import sys
import numpy as np
from teletape_client import Client

with Client(sys.argv[1]) as client, client.sessions.create() as session:
    square = session.functions.create(text="y = sum(x ** 2)")
    print(square.value_and_gradient(x=np.float32([1, 2]), wrt=["x"])["x"].tolist())
loaded = {name.partition(".")[0] for name in sys.modules}
print(sorted(loaded & {"teletape", "teletape_engine", "teletape_wire", "teletape_server", "msgpack", "ml_dtypes"}))
"""

OTHER_SYSTEM = """
import os, select, signal, socket, sys

for module, names in [
    (os, "fork forkpty register_at_fork memfd_create sched_getaffinity getuid geteuid getpgid killpg"),
    (socket, "AF_UNIX CMSG_LEN SCM_RIGHTS"),
    (select, "poll epoll"),
    (signal, "SIGALRM SIGKILL SIGHUP setitimer alarm pthread_sigmask"),
]:
    for name in names.split():
        if hasattr(module, name):
            delattr(module, name)
for name in ("fcntl", "grp", "pwd", "resource", "termios", "trio"):
    sys.modules[name] = None  # its import fails; that of trio, which httpx looks for, needs what is not there
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built with the build backend in a process of its own."""
    folder = tmp_path_factory.mktemp("wheel")
    build = "import sys; from hatchling.build import build_wheel; build_wheel(sys.argv[1])"
    done = subprocess.run([sys.executable, "-c", build, str(folder)], cwd=CLIENT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    (path,) = folder.glob("*.whl")
    return path


def test_its_wheel_holds_the_client_alone(wheel: Path) -> None:
    assert wheel.name == f"teletape_client-{VERSION}-py3-none-any.whl"
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}
        licenses = [name for name in archive.namelist() if name.endswith("licenses/LICENSE")]
    package = CLIENT / "teletape_client"
    expected = {path.relative_to(CLIENT).as_posix() for path in package.rglob("*") if path.is_file()}
    assert names == {name for name in expected if "__pycache__" not in name}
    assert "teletape_client/py.typed" in names
    assert licenses


def test_its_version_and_what_it_needs_are_those_of_the_whole() -> None:
    assert PROJECT["version"] == VERSION == WHOLE["version"] == teletape_client.__version__
    assert set(PROJECT["dependencies"]) <= set(WHOLE["dependencies"])
    assert PROJECT["requires-python"] == WHOLE["requires-python"]


def test_teletape_has_it_as_a_module() -> None:
    assert teletape.service.Client is teletape_client.Client
    assert set(teletape.service.__all__) == set(teletape_client.__all__)


def test_it_works_in_an_environment_with_httpx_and_numpy_alone(wheel: Path, tmp_path: Path, server_url: str) -> None:
    """The packages are those of this environment: nothing is downloaded."""
    venv.create(tmp_path / "venv", symlinks=True)
    (library,) = (tmp_path / "venv").glob("lib/python*/site-packages")
    installed = Path(sys.modules["httpx"].__file__ or "").parents[1]
    needed = ["anyio", "certifi", "h11", "httpcore", "httpx", "idna", "numpy", "numpy.libs", "typing_extensions.py"]
    for name in needed:
        if (installed / name).exists():
            (library / name).symlink_to(installed / name)
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(library)
    printed = run([str(tmp_path / "venv/bin/python"), "-I", "-c", PROGRAM, server_url])
    assert printed == "[2.0, 4.0]\n[]\n"


def test_it_works_on_a_system_without_what_only_unix_has(server_url: str) -> None:
    assert run([sys.executable, "-P", "-c", OTHER_SYSTEM + PROGRAM, server_url]) == "[2.0, 4.0]\n[]\n"


def test_its_import_loads_httpx_and_neither_numpy_nor_an_event_loop() -> None:
    loaded = "import sys, teletape_client; print(*sorted({name.partition('.')[0] for name in sys.modules}))"
    names = set(run([sys.executable, "-P", "-c", loaded]).split())
    assert "httpx" in names
    assert not names & {"numpy", "asyncio", "anyio", "multiprocessing", "subprocess", "teletape"}


def test_its_import_takes_little_more_than_that_of_httpx() -> None:
    """CPU time in one process, one import after the other: the goal is 150 ms together."""
    program = (
        "import time; start = time.process_time(); import httpx; middle = time.process_time(); import teletape_client; "
        "print((time.process_time() - middle) / (middle - start))"
    )
    assert min(float(run([sys.executable, "-P", "-c", program])) for _ in range(3)) < 0.5
