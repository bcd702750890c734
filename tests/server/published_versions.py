"""Versions of published functions, and a store with some."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from teletape_server.models.published.contract import Declared, Name, Published, hash_of
from teletape_server.published.store import Catalogue, FileStore

COMMANDS = ({"do": "function", "id": "published", "inputs": ["x"], "steps": [], "outputs": ["x"]},)


def version(**changes: Any) -> Published:
    """A version with its own identity."""
    inputs = {"x": Declared("float32", ("n", 2))}
    published = Published("", COMMANDS, inputs, inputs, **changes)
    return replace(published, version=published.identity)


WEIGHTS = memoryview(b"weights" * 100)


def filled(folder: Path) -> tuple[Catalogue, Name]:
    """A catalogue with a name of two versions, one with weights."""
    catalogue = Catalogue(FileStore(str(folder)))
    heavy = version(weights_hash=hash_of(WEIGHTS), weights_bytes=len(WEIGHTS))
    catalogue.put_weights(heavy.weights_hash, WEIGHTS)
    name = Name("line", "ann", "group", ("bob",), "a line").with_version(version()).with_version(heavy)
    catalogue.put(name)
    return catalogue, name
