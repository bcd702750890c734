"""What every test module shares: which marked tests can run on this machine, and why the others are skipped.

A fixture goes here when two test modules or more use it; before that it lives beside its tests.
"""

import importlib.util
import shutil
from collections.abc import Callable

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--require",
        action="append",
        default=[],
        choices=sorted(OBSTACLES),
        metavar="MARKER",
        help="fail, rather than skip, when the tests with this marker cannot run here",
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for marker, obstacle in OBSTACLES.items():
        marked = [item for item in items if item.get_closest_marker(marker)]
        if marked and (reason := obstacle()):
            if marker in config.getoption("--require"):
                raise pytest.UsageError(f"--require={marker}: {reason}")
            for item in marked:
                item.add_marker(pytest.mark.skip(reason=reason))


def without_browser() -> str | None:
    """Why no browser test can run here, or None."""
    if importlib.util.find_spec("playwright") is None:
        return "Playwright is not installed (make browser)"
    if shutil.which("chromium") is None:
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


OBSTACLES: dict[str, Callable[[], str | None]] = {"browser": without_browser, "gpu": without_gpu}
