"""The weights of a published function are mapped: a process that loads them has no copy of them."""

import os

import numpy as np
import pytest

from teletape_engine.commands import Batch, Fetch
from teletape_engine.session.session import Session
from teletape_server.handlers.published.versions import WEIGHT, Version, keep_file, read_weights, taken_file
from teletape_server.models.published.contract import Declared, Published
from teletape_wire.safetensors.writer import write_file

STEP = {"do": "op", "op": "mul", "inputs": ["x", "w"], "outputs": ["y"]}
COMMANDS = ({"do": "function", "id": "published", "inputs": ["x", "w"], "steps": [STEP], "outputs": ["y"]},)


def test_a_loaded_weight_lies_in_the_file() -> None:
    weight = np.arange(100_000, dtype=np.float64)
    file = os.memfd_create("weights")
    os.write(file, b"".join(write_file({"w": weight}, {})))
    keep_file("version", [file])
    weights = read_weights(taken_file("version"))
    declared = {"w": Declared("float64", weight.shape)}
    published = Published("version", COMMANDS, {"x": Declared("float64", ())}, {}, declared)
    version = Version.loaded(Session(), published, weights)
    [fetched] = version.session.execute(Batch((Fetch(WEIGHT + "w"),))).results
    array = fetched.array  # type: ignore[union-attr]  # a fetched tensor
    assert np.array_equal(array, weight)
    assert np.shares_memory(array, weights["w"])
    assert not array.flags.writeable


def test_a_file_is_taken_once_and_one_that_has_not_come_is_said() -> None:
    file = os.memfd_create("weights")
    os.write(file, b"content")
    keep_file("other", [file])
    assert bytes(taken_file("other")) == b"content"
    keep_file("none", [])
    for name in ("other", "none"):
        with pytest.raises(Exception, match="could not be mapped"):
            taken_file(name)
