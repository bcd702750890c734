"""What is public is documented, and every name of TensorFlow's stands for one thing."""

from __future__ import annotations

import inspect
from collections import Counter
from typing import Any

import pytest

import teletape as tf
from teletape.namespace import by_hand, surface
from teletape.ops.derived import DERIVED
from teletape_engine.catalogue.op import CATALOGUE

MODULES = (
    "data",
    "debugging",
    "dtypes",
    "errors",
    "keras.activations",
    "keras.initializers",
    "keras.layers",
    "nest",
    "random",
)


SURFACE = surface()


def at(path: str) -> Any:
    result: Any = tf
    for part in path.split("."):
        result = getattr(result, part)
    return result


def public() -> dict[str, Any]:
    names = {name: getattr(tf, name) for name in tf.__all__}
    for module in MODULES:
        listed = getattr(at(module), "__all__", ())
        names |= {f"{module}.{name}": getattr(at(module), name) for name in listed}
    return names | surface()


@pytest.mark.parametrize("name", sorted(name for name, subject in public().items() if callable(subject)))
def test_what_is_public_is_documented(name: str) -> None:
    subject = public()[name]
    assert inspect.getdoc(subject), f"tf.{name} has no docstring"
    if inspect.isclass(subject) and not issubclass(subject, Exception):
        undocumented = [
            member
            for member, value in vars(subject).items()
            if not member.startswith("_") and (inspect.isfunction(value) or isinstance(value, property))
            if not inspect.getdoc(getattr(subject, member) if inspect.isfunction(value) else value)
        ]
        assert not undocumented


@pytest.mark.parametrize("name", sorted(name for op in CATALOGUE.values() for name in op.tf))
def test_every_tensorflow_name_of_the_catalogue_resolves(name: str) -> None:
    assert at(name) is SURFACE[name]


def test_no_name_is_claimed_by_two_ops() -> None:
    claims = Counter(name for op in CATALOGUE.values() for name in op.tf)
    assert not {name: count for name, count in claims.items() if count > 1}


def test_what_is_written_by_hand_is_not_derived_too() -> None:
    assert not by_hand().keys() & DERIVED.keys()
    assert surface() == by_hand() | DERIVED
    for name, function in surface().items():
        assert at(name) is function, f"tf.{name} is not the function that was written for it"


def test_most_functions_are_derived_from_the_catalogue() -> None:
    assert len(DERIVED) >= 200
    reasons = {
        name: entry.by_hand
        for op in CATALOGUE.values()
        for entry in op.functions
        if entry.by_hand
        for name in entry.names
    }
    assert reasons.keys() <= by_hand().keys()


def test_the_namespace_lists_what_it_offers() -> None:
    assert len(set(tf.__all__)) == len(tf.__all__)
    assert all(hasattr(tf, name) for name in tf.__all__)
