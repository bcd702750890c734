"""Lets pytest run Keras's own tests: on Teletape, or on the TensorFlow of another environment.

The installed wheel of Keras holds its tests, and not the `conftest.py` that they were written for: this plugin stands
in for it. `run.py` starts pytest with it, and reads the outcomes that it writes.

    KERAS_SUITE_OUTCOMES   the file to write: a JSON object of node id to [outcome, last line of the error]
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import sys
from collections.abc import Generator
from types import ModuleType
from typing import Any
from unittest import mock

import pytest

OUTCOMES = "KERAS_SUITE_OUTCOMES"
#: Its tests need IndexedSlices, which Teletape has, and skip themselves without tf.SparseTensor, which it has not.
SPARSE_GRADIENTS = "optimizer_sparse_test.py"
#: It makes a tf.SparseTensor when it is imported, for tests that are skipped.
OPS_OF_NUMPY = "ops/numpy_test.py"
#: Outcomes that replace an earlier one of the same test: a failure while it is torn down undoes its success.
WORSE = ("failed", "error")


def pytest_configure(config: pytest.Config) -> None:
    for marker in ("requires_trainable_backend", "multi_device"):
        config.addinivalue_line("markers", f"{marker}: Keras's own marker")
    os.environ.setdefault("KERAS_BACKEND", "tensorflow")
    if importlib.util.find_spec("teletape") is not None:
        import teletape

        teletape.keras.backend  # noqa: B018  # mounts Keras before a test imports it
    conftest = ModuleType("conftest")
    conftest.skip_if_backend = _skip_if_backend  # type: ignore[attr-defined]  # of a module made here
    sys.modules["conftest"] = conftest
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Outcomes(), "keras-suite-outcomes")


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Imports two modules of tests with what they need for it."""
    with contextlib.ExitStack() as changes:
        if collector.nodeid.endswith(SPARSE_GRADIENTS):
            from keras.src import backend

            changes.enter_context(mock.patch.object(backend, "SUPPORTS_SPARSE_TENSORS", True))
        if collector.nodeid.endswith(OPS_OF_NUMPY) and importlib.util.find_spec("teletape") is not None:
            from teletape.keras_mount.inert import INERT

            changes.enter_context(mock.patch.object(INERT["SparseTensor"], "__init__", _sparse))
        return (yield)


def _sparse(self: Any, indices: Any, values: Any, dense_shape: Any) -> None:
    self.indices, self.values, self.dense_shape = indices, values, dense_shape


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.get_closest_marker("multi_device"):
            item.add_marker(pytest.mark.skip(reason="needs several devices"))


def _skip_if_backend(backend: str, reason: str) -> pytest.MarkDecorator:
    """Keras's own helper: skips a test on one backend."""
    return pytest.mark.skipif(backend == os.environ["KERAS_BACKEND"], reason=reason)


class Outcomes:
    """Writes how each test ended."""

    def __init__(self) -> None:
        self.outcomes: dict[str, tuple[str, str]] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        outcome = report.outcome if report.when == "call" or report.outcome != "failed" else "error"
        if report.when == "call" or outcome != "passed":
            before, _ = self.outcomes.get(report.nodeid, ("", ""))
            if before not in WORSE:
                self.outcomes[report.nodeid] = (outcome, _last_line(report))

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self.outcomes[report.nodeid] = ("error", str(report.longrepr).strip().splitlines()[-1][:300])

    def pytest_sessionfinish(self) -> None:
        with open(os.environ[OUTCOMES], "w", encoding="utf-8") as file:
            json.dump(dict(sorted(self.outcomes.items())), file, indent=0)


def _last_line(report: pytest.TestReport) -> str:
    """The error of a failed test in a line; "" for the others."""
    if report.outcome != "failed":
        return ""
    crash = getattr(report.longrepr, "reprcrash", None)
    text = crash.message if crash is not None else str(report.longrepr)
    return " ".join(text.split())[:300]
