"""What every test module shares: which marked tests can run on this machine, and why the others are skipped.

A fixture goes here when two test modules or more use it; before that it lives beside its tests.
"""

import gc
import importlib.util
import os
import shutil
import signal
import sys
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from serving import Server

# Test processes share the cores. With a thread for each core, the linear algebra of each waited for that of the others:
# small matrices took milliseconds rather than microseconds. NumPy reads this when it is imported.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# Hypothesis would import trio in each test process, where that is installed.
os.environ.setdefault("HYPOTHESIS_NO_PLUGINS", "1")

#: Where programs are; Debian's nginx is where a user's PATH does not lead.
PROGRAMS = f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin"


def pytest_addoption(parser: pytest.Parser, pluginmanager: pytest.PytestPluginManager) -> None:
    if not pluginmanager.hasplugin("timeout"):  # the tests of a GPU run with pytest alone: see benchmarks/gpu
        parser.addini("timeout", "seconds after which pytest-timeout, where it is installed, ends a test")
    parser.addoption(
        "--require",
        action="append",
        default=[],
        choices=sorted(OBSTACLES),
        metavar="MARKER",
        help="fail, rather than skip, when the tests with this marker cannot run here",
    )


def pytest_configure(config: pytest.Config) -> None:
    # A shell that starts pytest in the background lets it ignore Ctrl-C, and with it every process that tests start.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if importlib.util.find_spec("hypothesis"):  # the tests of a GPU run without it: see benchmarks/gpu
        from hypothesis import HealthCheck, settings

        # Test processes share the cores, so that an example of a millisecond may wait for half a second.
        settings.register_profile("shared cores", deadline=None, suppress_health_check=[HealthCheck.too_slow])
        settings.load_profile("shared cores")
    for plugin in config.pluginmanager.get_plugins():
        if type(plugin).__name__ == "WorkerInteractor":  # pytest-xdist's, in a test process
            plugin.sendevent = without_uneventful(plugin.sendevent)
    for marker in config.getoption("--require"):
        if reason := OBSTACLES[marker]():
            raise pytest.UsageError(f"--require={marker}: {reason}")


def without_uneventful(send: Callable[..., None]) -> Callable[..., None]:
    """Sends the messages of a test process to the one that prints, without those that it would not print.

    Of six messages for each test three remain: a test's outcome, its end, and that the process takes the next one. With
    all of them tests that do nothing took a quarter longer.
    """

    def sent(name: str, **contents: Any) -> None:
        report = contents.get("data")
        quick = name == "testreport" and report["outcome"] == "passed" and report["duration"] < 0.5
        if name != "logstart" and not (quick and report["when"] != "call"):
            send(name, **contents)

    return sent


@pytest.hookimpl(trylast=True)  # what is not selected has no place in the order
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    groups: dict[tuple[str, str], list[pytest.Item]] = {}
    for item in items:
        for marker in item.iter_markers():
            if marker.name in OBSTACLES:
                groups.setdefault((marker.name, item.nodeid.partition("[")[0]), []).append(item)
    reasons = {marker: OBSTACLES[marker]() for marker in {marker for marker, _ in groups}}
    left_out: set[pytest.Item] = set()
    for (marker, _), cases in groups.items():
        if reason := reasons[marker]:
            # One skip stands for all cases of a function: there are thousands for a GPU, and each takes milliseconds.
            cases[0].add_marker(pytest.mark.skip(reason=f"{reason}; number of cases: {len(cases)}"))
            left_out.update(cases[1:])
    items[:] = [item for item in items if item not in left_out]
    items[:] = long_ones_first(items, int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1")))


def long_ones_first(items: list[pytest.Item], processes: int) -> list[pytest.Item]:
    """An order in which each process begins with its share of the tests that are marked as long.

    With --dist=worksteal each process gets an equal part of the list. With all of them in front, the first process
    would have them all, and none of them could be taken from it: only the end of a part is.
    """
    long = [item for item in items if item.get_closest_marker("long")]
    others = iter([item for item in items if not item.get_closest_marker("long")])
    ordered: list[pytest.Item] = []
    for number in range(processes):
        first = long[number::processes]
        size = (len(items) - len(ordered)) // (processes - number)
        ordered += [*first, *islice(others, max(0, size - len(first)))]
    return [*ordered, *others]


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Tests and their modules live to the end: looking through them for garbage is a waste.

    Doing so took a quarter of the collection, and most of the time of tests that collect garbage themselves.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.collect()
        gc.freeze()
        gc.enable()


def without_browser() -> str | None:
    """Why no browser test can run here, or None."""
    if importlib.util.find_spec("playwright") is None:
        return "Playwright is not installed (make browser)"
    from programs import chromium_path

    if chromium_path() is None:
        return "Chromium is not installed (make browser)"
    return None


def without_gpu() -> str | None:
    """Why no GPU test can run here, or None."""
    if importlib.util.find_spec("cupy") is None:
        return "CuPy is not installed (pip install 'teletape[gpu]')"
    import cupy

    try:
        devices = cupy.cuda.runtime.getDeviceCount()
    except cupy.cuda.runtime.CUDARuntimeError as error:
        return f"CuPy finds no usable CUDA device: {error}"
    return None if devices else "CuPy finds no CUDA device"


def without_cupy() -> str | None:
    """Why no test of CuPy without a device can run here, or None."""
    if importlib.util.find_spec("cupy") is None:
        return "CuPy is not installed (make kernels)"
    return None


def without_clients() -> str | None:
    """Why no client can be generated here, or None."""
    root = Path(__file__).parents[1]
    generators = ("tests/server/clients/node_modules/.bin/tsc", ".venv/clients/bin/openapi-python-client")
    missing = [name for name in generators if not (root / name).exists()]
    return f"{' and '.join(missing)} not installed (make clients)" if missing else None


def without_nginx() -> str | None:
    """Why nginx cannot run here, or None."""
    missing = [name for name in ("nginx", "openssl") if shutil.which(name, path=PROGRAMS) is None]
    return f"{' and '.join(missing)} not installed (apt-get install nginx-light openssl)" if missing else None


OBSTACLES: dict[str, Callable[[], str | None]] = {
    "browser": without_browser,
    "clients": without_clients,
    "cupy": without_cupy,
    "gpu": without_gpu,
    "nginx": without_nginx,
}


@pytest.fixture(autouse=True)
def program_session() -> Iterator[None]:
    """Each test leaves the program connected as it found it: tensors that a module made at import stay usable."""
    current = sys.modules.get("teletape.core.sessions.current")
    before = current._current if current else None
    yield
    if current := sys.modules.get("teletape.core.sessions.current"):
        current._current = before


@pytest.fixture(scope="session")
def server_url() -> Iterator[str]:
    """The address of a server without keys, with the settings that a user gets; tests share it."""
    from serving import Server
    from teletape_server.settings import Settings

    with Server(Settings(sessions_per_key=1000, sessions=1000, shutdown_grace=0.1)).running() as server:
        yield server.url


@pytest.fixture
def server() -> "Iterator[Server]":
    """A server of the test's own, with keys and small limits."""
    from serving import KEYS, Server
    from teletape_server.settings import Settings

    settings = Settings(
        api_keys=KEYS,
        memory_limit=64 << 20,
        max_body=16 << 20,
        sessions_per_key=3,
        sessions=5,
        idle_limit=60.0,
        max_age=600.0,
        patience=0.05,
        shutdown_grace=0.1,
    )
    with Server(settings).running() as item:
        yield item
