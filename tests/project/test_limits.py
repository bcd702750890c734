"""docs/limits.md: every setting, constant and code that is a limit is there, with the value that the code has."""

from __future__ import annotations

import ast
import dataclasses
import importlib
import re
from pathlib import Path
from typing import Any

import pytest

from teletape_server.http.schemas import Limits
from teletape_server.ipc.leases import Reason
from teletape_server.problems import PROBLEMS
from teletape_server.settings import Settings

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("engine/teletape_engine", "wire/teletape_wire", "client/teletape", "server/teletape_server")
ROWS = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in (ROOT / "docs" / "limits.md").read_text(encoding="utf-8").splitlines()
    if line.startswith("| ") and not line.startswith(("| limit", "| ---"))
]
#: Settings that limit nothing.
NOT_LIMITS = {
    "access_log",
    "log_format",
    "admins",
    "shares",
    "weights",
    "key_limits",
    "allow_origins",
    "host",
    "port",
    "unix",
    "tls_certificate",
    "tls_key",
    "unix_mode",
    "device",
    "direct",
    "frames",
    "api_keys",
    "key_database",
    "audit_age",
    "oidc",
    "log_level",
    "worker_user",
    "data_dir",
    "durability",
    "trusted_proxies",
}
#: Statuses of problems that name a limit, and codes of other statuses that do.
LIMIT_STATUSES = {408, 413, 429, 431, 507}
LIMIT_CODES = {"overloaded", "too_many_sessions", "deadline_exceeded", "answer_dropped", "session_ended"}
#: Constants that look like limits and are none, each with its reason.
NO_LIMIT = {
    "teletape_engine.arrays.checks.MOST_READ": "above it, a check waits for the device",
    "teletape_engine.catalogue.attributes._MAX_INTERNED": "a cache: beyond it things are computed again",
    "teletape_engine.catalogue.binding._MAX_BOUND": "a cache: beyond it things are computed again",
    "teletape_engine.plans.lower.templates._MOST_TEMPLATES": "a cache: beyond it things are computed again",
    "teletape_engine.plans.gpu.launches._MOST_BLOCKS": "how elements are dealt out to threads, without a limit",
    "teletape_engine.plans.gpu.launches._MOST_PARTS": "how elements are dealt out to blocks, without a limit",
    "teletape_engine.plans.gpu.launches._MOST_LINES": "beyond it a thread computes one element at a time",
    "teletape_engine.plans.gpu.launches._MOST_LOADS": "beyond it a thread computes one element at a time",
    "teletape_engine.plans.gpu.plan._LARGE_BYTES": "above it, arguments and results are not copied",
    "teletape_engine.plans.run.c.native._MOST_LOOPS": "a cache: beyond it things are computed again",
    "teletape_engine.spec._MAX_BYTES": "what 63 bits can count: the page has it in words",
    "teletape.keras_mount.optimizers._MOST": "how many reasons a message shows",
    "teletape_server.middleware.templates._MOST_NEAR": "how many paths a message shows",
    "teletape.core.variables.none_gradients._MOST": "a cache: beyond it a message has no reason",
    "teletape_server.handlers.forms.forms._MOST_FORMS": "a cache: beyond it things are computed again",
    "teletape_server.handlers.forms.skeletons._MOST_TEXT": "above it, a body is read as a whole",
    "teletape_server.handlers.forms.skeletons._MOST_SKELETON": "above it, a body is read as a whole",
    "teletape_server.handlers.forms.skeletons._MOST_SLOTS": "above it, a body is read as a whole",
    "teletape_server.handlers.published.planned._MOST_FORMS": "a cache: others are answered without a plan",
    "teletape_server.handlers.published.planned._MOST_FUNCTIONS": "a cache: others are answered without a plan",
    "teletape.adapters.wrapping.N_MAX": "the default of a parameter, which docs/adapters.md names",
    "teletape.conformity.checks._PATIENCE": "the wait for an answer in a check of another server",
    "teletape_server.handlers.functions.gradients.numeric._CHUNK_BYTES": "how evaluations are dealt out to chunks",
    "teletape_engine.derivatives.examples._CHUNK_BYTES": "how examples are dealt out to chunks",
    "teletape_server.administration.running_server._SECONDS": "the wait of a command for its server",
    "teletape_server.identity.identity._LOOK_SECONDS": "how soon changes are noticed: docs/operate.md has it in words",
    "teletape_server.identity.identity._USE_SECONDS": "how exactly last uses are kept: docs/operate.md has it",
    "teletape_server.identity.identity._OLD_SECONDS": "how exactly entries of the audit are removed at their age",
    "teletape_server.identity.key_texts._SECRET_BYTES": "the length of a secret",
    "teletape_server.identity.copies._SECONDS": "the wait of a copy for the server that writes",
    "teletape_server.identity.keys._MOST_TOKENS": "a cache: a token beyond it is checked again",
    "teletape_server.identity.store._SECONDS": "the wait of a statement for another program",
    "teletape_server.durable.disk._MOST_PARTS": "how bytes are dealt out to calls of the system",
    "teletape_wire.frame.PREFIX_LENGTH": "the format of a frame",
}
LIMIT_NAME = re.compile(r"(?:^|_)(?:MAX|MOST|LIMIT|SECONDS|PATIENCE|BYTES|KEPT)(?:_|$)")
UNITS = {
    "": 1.0,
    "KiB": 1 << 10,
    "MiB": 1 << 20,
    "GiB": 1 << 30,
    "EiB": 1 << 60,
    "s": 1,
    "min": 60,
    "h": 3600,
    "d": 86400,
}


def number(text: str) -> float:
    """The value of a row in bytes, seconds or units."""
    amount, _, unit = text.replace(",", "").partition(" ")
    return float(amount) * UNITS[unit]


def value(place: str) -> Any:
    """The value of a setting or constant."""
    if place.startswith("--"):
        return getattr(Settings(), place[2:].replace("-", "_"))
    modules = place.split(".")
    for length in range(len(modules) - 1, 0, -1):
        try:
            holder: Any = importlib.import_module(".".join(modules[:length]))
        except ModuleNotFoundError:
            continue
        for name in modules[length:]:
            holder = getattr(holder, name)
        return holder
    raise AssertionError(f"there is no {place}")


@pytest.mark.parametrize(("place", "shown"), [(row[1].strip("`"), row[2]) for row in ROWS])
def test_the_page_has_the_value_of_the_code(place: str, shown: str) -> None:
    assert number(shown) == value(place)


def test_every_setting_that_is_a_limit_is_on_the_page() -> None:
    flags = {"--" + item.name.replace("_", "-") for item in dataclasses.fields(Settings) if item.name not in NOT_LIMITS}
    listed = [row[1].strip("`") for row in ROWS if row[1].startswith("`--")]
    assert sorted(listed) == sorted(flags)


def test_info_answers_every_setting_of_the_page_that_is_a_number() -> None:
    settings = [row[1].strip("`")[2:].replace("-", "_") for row in ROWS if row[1].startswith("`--")]
    assert {name for name in settings if isinstance(getattr(Settings(), name), int | float)} == {*Limits.model_fields}


def test_every_constant_that_looks_like_a_limit_is_on_the_page() -> None:
    listed = {row[1].strip("`") for row in ROWS}
    constants = {name for package in PACKAGES for name in numbers(ROOT / package)}
    limits = {name for name in constants if LIMIT_NAME.search(name.rpartition(".")[2])}
    assert len(limits) > 20
    missing = limits - listed - NO_LIMIT.keys()
    assert not missing, "add a row to docs/limits.md, or a reason to NO_LIMIT"
    assert NO_LIMIT.keys() <= constants


def test_every_code_of_a_limit_is_on_the_page_and_no_other() -> None:
    named = {code for row in ROWS for code in re.findall(r"`(\w+)`", row[3]) if code in PROBLEMS}
    limits = {code for code, kind in PROBLEMS.items() if kind.status in LIMIT_STATUSES} | LIMIT_CODES
    assert limits <= named
    others = {word for row in ROWS for word in re.findall(r"`([a-z_]+)`", row[3])} - PROBLEMS.keys()
    assert others <= {*Reason, "max_bytes", "max_nodes"}


def numbers(package: Path) -> set[str]:
    """The module-level constants of a package that are assigned a number, as dotted names."""
    names = set()
    for path in package.rglob("*.py"):
        module = ".".join(path.relative_to(package.parent).with_suffix("").parts)
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            target = node.target if isinstance(node, ast.AnnAssign) else None
            if isinstance(node, ast.Assign):
                target = node.targets[0]
            if isinstance(target, ast.Name) and target.id.strip("_").isupper() and is_number(node.value):  # type: ignore[attr-defined]
                names.add(f"{module}.{target.id}")
    return names


def is_number(node: ast.expr | None) -> bool:
    """Whether an expression is made of numbers alone."""
    if isinstance(node, ast.BinOp):
        return is_number(node.left) and is_number(node.right)
    return isinstance(node, ast.Constant) and isinstance(node.value, int | float)
