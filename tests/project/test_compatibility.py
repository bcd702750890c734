"""The compatibility page is true: what it calls supported resolves and takes TensorFlow's arguments."""

from __future__ import annotations

import inspect
import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import teletape as tf
from teletape.core.program.remedies import REMEDIES, remedy

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "compatibility.md").read_text(encoding="utf-8")
TENSORFLOW: dict[str, Any] = json.loads((ROOT / "scripts" / "tensorflow_names.json").read_text(encoding="utf-8"))


def listed() -> dict[str, list[str]]:
    """The names of the page by their standing, from its text."""
    names: dict[str, list[str]] = {"supported": [], "partly": [], "not": []}
    for section in re.split(r"^## ", PAGE, flags=re.MULTILINE)[1:]:
        heading, _, text = section.partition("\n")
        if not heading.startswith("tf") or heading == "tf.compat.v1":
            continue
        path = heading.removeprefix("tf").lstrip(".")
        for paragraph in text.strip().split("\n\n"):
            if paragraph == "Partly:":
                continue
            if paragraph.startswith("* "):
                kind, members = "partly", re.findall(r"^\* `(\w+)`", paragraph, flags=re.MULTILINE)
            elif paragraph.startswith("Not"):
                kind, members = "not", re.findall(r"`(\w+)`", paragraph.rpartition("):")[2] or paragraph)
            else:
                kind, members = "supported", re.findall(r"`(\w+)`", paragraph)
            names[kind] += [f"{path}.{member}".lstrip(".") for member in members]
    return names


LISTED = listed()


def at(path: str) -> Any:
    value: Any = tf
    for part in path.split("."):
        value = getattr(value, part)
    return value


def test_every_name_of_tensorflow_is_on_the_page_once() -> None:
    counts = Counter(name for names in LISTED.values() for name in names)
    assert counts == Counter(TENSORFLOW["names"].keys())
    assert len(LISTED["supported"]) > 400


def test_supported_names_take_tensorflows_arguments() -> None:
    others = {}
    for name in LISTED["supported"]:
        value, theirs = at(name), TENSORFLOW["names"][name]
        expected = [argument for argument in theirs.get("function") or theirs.get("class") or () if "*" not in argument]
        if not expected or (inspect.isclass(value) and issubclass(value, Exception)):
            continue
        parameters = inspect.signature(value).parameters
        if not any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in parameters.values()):
            ours = [argument for argument in parameters if argument in expected]
            if ours != expected:
                others[name] = (ours, expected)
    assert not others


def test_names_that_are_there_in_part_resolve() -> None:
    for name in LISTED["partly"]:
        at(name)


def test_missing_names_say_what_to_use_instead_and_where_all_names_are() -> None:
    for name in LISTED["not"]:
        with pytest.raises((AttributeError, NotImplementedError)) as caught:
            at(name)
        assert "is not in Teletape" in str(caught.value), name
        instead = remedy(name)
        if instead is not None and isinstance(caught.value, AttributeError):
            module = str(caught.value).partition(" is not in")[0].removeprefix("tf.")
            assert remedy(module) is not None, f"tf.{module} is missing too, and has no remedy"
            assert str(caught.value).endswith(f"Instead: {remedy(module)}. docs/compatibility.md has every name")


def test_remedies_are_of_names_that_tensorflow_has_or_had() -> None:
    known = {*TENSORFLOW["names"], *TENSORFLOW["v1"]}
    modules = {path for name in known for path in [name.rpartition(".")[0]]}
    modules |= {path.partition(".")[0] for path in modules}
    first_version = {"app", "contrib", "dtensor", "estimator", "flags", "to_double", "to_float", "to_int32", "to_int64"}
    in_train = {name for name in REMEDIES if name.startswith("train.")}  # of tf.compat.v1.train
    assert not REMEDIES.keys() - known - modules - first_version - in_train
