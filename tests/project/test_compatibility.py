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
from teletape.program.remedies import REMEDIES, remedy

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


@pytest.mark.parametrize("name", LISTED["supported"])
def test_a_supported_name_takes_tensorflows_arguments(name: str) -> None:
    value, theirs = at(name), TENSORFLOW["names"][name]
    wanted = [argument for argument in theirs.get("function") or theirs.get("class") or () if "*" not in argument]
    if not wanted or (inspect.isclass(value) and issubclass(value, Exception)):
        return
    parameters = inspect.signature(value).parameters
    if not any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in parameters.values()):
        assert [argument for argument in parameters if argument in wanted] == wanted


@pytest.mark.parametrize("name", LISTED["partly"])
def test_a_name_that_is_there_in_part_resolves(name: str) -> None:
    at(name)


@pytest.mark.parametrize("name", LISTED["not"])
def test_a_missing_name_says_what_to_use_instead_and_where_all_names_are(name: str) -> None:
    with pytest.raises((AttributeError, NotImplementedError)) as caught:
        at(name)
    assert "is not in Teletape" in str(caught.value)
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
