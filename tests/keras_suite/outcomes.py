"""How Keras's tests ended on TensorFlow, and which of them fail on Teletape for a known reason."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from fnmatch import fnmatchcase
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
#: The outcome and the error of each test, by its node id.
Outcomes = Mapping[str, tuple[str, str]]


def not_passed_on_tensorflow(version: str) -> set[str] | None:
    """The tests that TensorFlow skips or fails with this version of Keras, by node id; None if none were recorded."""
    path = _results(version)
    if not path.exists():
        return None
    files: dict[str, list[str]] = json.loads(path.read_text(encoding="utf-8"))
    return {f"{file}::{name}" for file, names in files.items() for name in names}


def record(version: str, outcomes: Outcomes) -> None:
    """Adds the tests that TensorFlow did not pass to the recorded ones of this version of Keras."""
    nodes = {node for node in not_passed_on_tensorflow(version) or () if node not in outcomes}
    nodes |= {node for node, (outcome, _) in outcomes.items() if outcome != "passed"}
    files: dict[str, list[str]] = {}
    for node in sorted(nodes):
        file, _, name = node.partition("::")
        files.setdefault(file, []).append(name)
    _results(version).parent.mkdir(exist_ok=True)
    _results(version).write_text(json.dumps(files, indent=0) + "\n", encoding="utf-8")


def _results(version: str) -> Path:
    return FOLDER / "results" / f"tensorflow-{version}.json"


class ExpectedFailures:
    """The tests that may fail on Teletape, or be skipped, each with its reason: expected_failures.toml.

    An entry holds `reason`, `tests` (node ids, or patterns with `*`) and, if it is not for every version, `versions`
    (the first two parts of Keras's version); with `http = true` it is for runs through a server alone.

    Args:
        version: Keras's.
        http: Whether the tests run through a server.
    """

    def __init__(self, version: str, *, http: bool) -> None:
        minor = ".".join(version.split(".")[:2])
        entries = tomllib.loads((FOLDER / "expected_failures.toml").read_text(encoding="utf-8"))["expected"]
        self.patterns: dict[str, str] = {
            pattern: entry["reason"]
            for entry in entries
            if minor in entry.get("versions", [minor]) and (http or not entry.get("http", False))
            for pattern in entry["tests"]
        }

    def reason(self, node: str) -> str:
        """Why this test may fail or be skipped; "" if it must pass."""
        if node in self.patterns:
            return self.patterns[node]
        return next((reason for pattern, reason in self.patterns.items() if fnmatchcase(node, pattern)), "")

    def passing(self, outcomes: Outcomes) -> list[str]:
        """The tests that may fail or be skipped, and passed."""
        return [node for node, (outcome, _) in outcomes.items() if outcome == "passed" and self.reason(node)]
