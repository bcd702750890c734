"""docs/reference.md is what the catalogue says, and the digest changes when an op's structure does."""

import dataclasses
import importlib.util
from pathlib import Path

import pytest

import teletape_engine.ops  # noqa: F401  # fills the catalogue
from teletape_engine.catalogue import describe
from teletape_engine.catalogue.op import CATALOGUE

ROOT = Path(__file__).resolve().parents[2]


def test_the_reference_page_is_current() -> None:
    spec = importlib.util.spec_from_file_location("reference", ROOT / "scripts" / "reference.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert module.PAGE.read_text(encoding="utf-8") == module.page(), "run make reference"


def test_an_op_says_what_its_gradients_are_and_what_they_keep() -> None:
    mul = describe.describe(CATALOGUE["mul"])
    assert mul["gradients"] == {"a": {"kind": "dense", "keeps": ["b"]}, "b": {"kind": "dense", "keeps": ["a"]}}
    assert describe.describe(CATALOGUE["relu"])["gradients"]["x"]["keeps"] == ["y"]
    assert describe.describe(CATALOGUE["gather"])["gradients"]["params"]["kind"] == "slices"
    assert describe.describe(CATALOGUE["floor"])["gradients"]["x"]["kind"] == "none"
    assert describe.describe(CATALOGUE["adjust_contrast"])["gradients"]["images"]["kind"] == "not_registered"


def test_the_digest_is_of_structure_not_of_prose(monkeypatch: pytest.MonkeyPatch) -> None:
    before = describe.digest()
    monkeypatch.setitem(CATALOGUE, "tanh", dataclasses.replace(CATALOGUE["tanh"], doc="other words"))
    assert describe.digest() == before
    monkeypatch.setitem(CATALOGUE, "tanh", dataclasses.replace(CATALOGUE["tanh"], backends=frozenset(("cpu",))))
    assert describe.digest() != before
