"""The vocabulary: each command's own check, what it names and what it makes."""

import dataclasses

import numpy as np
import pytest

from teletape_engine.commands import (
    COMMANDS,
    Assign,
    Call,
    CallFunction,
    Command,
    TapePause,
    mentions,
    outputs,
)
from teletape_engine.commands.schema import fields, make
from teletape_engine.errors import BadCommandError
from teletape_engine.recording.values import Literal

TENSOR = np.ones(2, np.float32)

#: For each command all its fields, as a wire would hand them over.
WHOLE = {
    "constant": {"id": "a", "value": TENSOR},
    "variable": {"id": "v", "value": "a", "trainable": False, "name": "weights"},
    "assign": {"variable": "v", "value": Literal(1.0), "mode": "scatter_add", "indices": "i"},
    "op": {
        "op": "add",
        "inputs": ["a", Literal(1), TENSOR],
        "outputs": [7],
        "attrs": {"axis": 0},
        "where": "train.py:3",
    },
    "tape.open": {"id": "t", "persistent": True, "watch_accessed": False, "replayable": True, "parents": ["s"]},
    "tape.describe": {"tape": "t", "also_released": TENSOR},
    "tape.graph": {"tape": "t", "targets": ["y"], "sources": ["x", 7], "nodes": 50},
    "tape.check_gradients": {"tape": "t", "targets": ["y"], "sources": ["x"], "settings": {"entries": 3}},
    "check_gradients": {"function": "f", "inputs": ["a", Literal(1), TENSOR], "settings": {"step": 0.1}},
    "tape.watch": {"tape": "t", "tensors": ["a", 7]},
    "tape.pause": {"tape": "t"},
    "tape.resume": {"tape": "t"},
    "tape.own": {"tape": "t", "tensors": ["a", 7]},
    "tape.reset": {"tape": "t", "release_outputs": True},
    "context.switch": {"context": "request", "strand": "task"},
    "context.end": {"context": "request"},
    "client.attach": {"client": 2},
    "client.detach": {"client": 3},
    "profile": {},
    "custom": {"inputs": ["x"], "outputs": ["y", 8], "tag": "f1", "label": "f", "where": "train.py:3"},
    "custom.call": {
        "function": "df",
        "inputs": ["x", "r", Literal(1)],
        "outputs": ["y"],
        "has_gradient": [True],
        "results": 1,
        "label": "f",
    },
    "custom.function": {"id": "c", "tag": "f1", "function": "df", "inputs": ["x"], "has_gradient": [True, False]},
    "backward.begin": {
        "id": "b",
        "tape": "t",
        "targets": ["y"],
        "sources": ["x", 7],
        "output_gradients": [None],
        "unconnected": "zero",
        "retain_tape": True,
    },
    "backward.cotangents": {"id": "b", "outputs": ["dy", None], "tag": "f1", "op_values": [None, "k"]},
    "backward.resume": {"id": "b", "cotangents": ["dx", None, Literal(1)]},
    "backward.end": {"id": "b", "outputs": ["g", None], "predicted": ["dense", "none"]},
    "slices": {"id": "s", "values": "v", "indices": "i", "rows": 3},
    "gradient": {
        "tape": "t",
        "targets": ["y"],
        "sources": ["x", 7],
        "outputs": ["g", None],
        "output_gradients": [None],
        "unconnected": "zero",
        "predicted": ["dense", "none"],
        "retain_tape": True,
    },
    "jacobian": {
        "tape": "t",
        "targets": ["y"],
        "sources": ["x", 7],
        "outputs": ["g", None],
        "unconnected": "zero",
        "max_bytes": 1000,
        "chunk_size": 2,
        "predicted": ["dense", "none"],
        "retain_tape": True,
        "custom_gradients": ["c"],
        "examples": True,
    },
    "batch_jacobian": {
        "tape": "t",
        "targets": ["y"],
        "sources": ["x"],
        "outputs": ["g"],
        "unconnected": "zero",
        "max_bytes": 1000,
        "chunk_size": 2,
        "retain_tape": True,
        "custom_gradients": ["c"],
    },
    "vjps": {
        "tape": "t",
        "targets": ["y", 7],
        "sources": ["x"],
        "outputs": ["g"],
        "output_gradients": [TENSOR, None],
        "unconnected": "zero",
        "max_bytes": 1000,
        "chunk_size": 2,
        "predicted": ["dense"],
        "retain_tape": True,
        "custom_gradients": ["c"],
    },
    "hessian": {
        "tape": "t",
        "targets": ["y"],
        "sources": ["x"],
        "outputs": ["g"],
        "unconnected": "zero",
        "max_bytes": 1000,
        "chunk_size": 2,
        "predicted": ["dense"],
        "retain_tape": True,
        "custom_gradients": ["c"],
        "examples": True,
    },
    "hvp": {
        "tape": "t",
        "targets": ["y"],
        "sources": ["x"],
        "vectors": ["v"],
        "outputs": ["g"],
        "unconnected": "zero",
        "predicted": ["dense"],
        "retain_tape": True,
        "custom_gradients": ["c"],
        "output_gradients": [TENSOR],
    },
    "sparse_jacobian": {
        "tape": "t",
        "targets": ["y"],
        "sources": ["x"],
        "outputs": ["i", "j", "g"],
        "format": "csr",
        "unconnected": "zero",
        "max_bytes": 1000,
        "chunk_size": 2,
        "retain_tape": True,
        "custom_gradients": ["c"],
    },
    "sparse_hessian": {
        "tape": "t",
        "targets": ["y"],
        "sources": ["x"],
        "outputs": ["i", "j", "g"],
        "format": "csr",
        "unconnected": "zero",
        "max_bytes": 1000,
        "chunk_size": 2,
        "retain_tape": True,
        "custom_gradients": ["c"],
    },
    "accumulator.open": {"id": "f", "primals": ["x", 7], "tangents": ["t", TENSOR]},
    "accumulator.close": {"accumulator": "f"},
    "accumulator.resume": {"accumulator": "f", "primals": ["x"], "tangents": ["t"]},
    "jvp": {
        "accumulator": "f",
        "targets": ["y"],
        "outputs": ["dy"],
        "unconnected": "zero",
        "predicted": ["dense"],
    },
    "declare": {"no_gradient": "MatMul", "registered": "AdjustContrastv2"},
    "function": {
        "id": "f",
        "inputs": ["in", "v"],
        "steps": [Call("neg", ("in",), ("out",)), Assign("v", "out"), CallFunction("g", ("in",), ("r",))],
        "outputs": ["out"],
        "dtype": "float64",
    },
    "call": {"function": "f", "inputs": ["a", Literal(2)], "outputs": ["r"], "report_decisions": True},
    "while": {
        "cond": "more",
        "body": "step",
        "inputs": ["a", Literal(2), 7],
        "outputs": ["r", 8, "iterations"],
        "captured": 1,
        "maximum_iterations": 5,
        "report_decisions": True,
    },
    "cond": {"branches": ["f", "g"], "inputs": ["a", TENSOR], "outputs": ["r"], "report_decisions": True},
    "value_and_gradient": {
        "function": "f",
        "inputs": ["a", Literal(2.0)],
        "targets": ["loss"],
        "sources": ["w"],
        "outputs": ["r", 8],
        "unconnected": "zero",
    },
    "scan": {
        "body": "step",
        "inputs": ["a", "xs", 7],
        "outputs": ["r", "all"],
        "carried": 1,
        "captured": 1,
        "reverse": True,
        "length": 4,
        "report_decisions": True,
        "vectorize": True,
    },
    "map": {"function": "f", "inputs": ["xs", Literal(2.0)], "mapped": [True, False], "outputs": ["all"]},
    "slices.component": {"id": "s", "component": "values", "output": "p"},
    "explain": {"tape": "t", "targets": ["y"], "sources": ["x", 7]},
    "estimate": {
        "tape": "t",
        "targets": ["y"],
        "sources": ["x", 7],
        "question": "jacobian",
        "max_bytes": 1 << 20,
        "chunk_size": 4,
    },
    "gradient_statistics": {"tape": "t", "targets": ["y"], "sources": ["x", 7], "output_gradients": ["a"]},
    "fetch": {"id": "a", "elements": 3, "optional": True},
}
NAMED = {
    "constant": ["a"],
    "variable": ["v", "a"],
    "assign": ["v", "i"],
    "accumulator.open": ["f", "x", 7, "t"],
    "accumulator.close": ["f"],
    "accumulator.resume": ["f", "x", "t"],
    "jvp": ["f", "y", "dy"],
    "op": ["a", 7],
    "tape.open": ["t", "s"],
    "tape.watch": ["t", "a", 7],
    "tape.pause": ["t"],
    "tape.resume": ["t"],
    "tape.own": ["t", "a", 7],
    "tape.reset": ["t"],
    "tape.describe": ["t"],
    "tape.graph": ["t", "y", "x", 7],
    "tape.check_gradients": ["t", "y", "x"],
    "check_gradients": ["f", "a"],
    "context.switch": ["request", "task"],
    "context.end": ["request"],
    "client.attach": [],
    "client.detach": [],
    "profile": [],
    "gradient": ["t", "y", "x", 7, "g"],
    "jacobian": ["t", "y", "x", 7, "g", "c"],
    "batch_jacobian": ["t", "y", "x", "g", "c"],
    "vjps": ["t", "y", 7, "x", "g", "c"],
    "hessian": ["t", "y", "x", "g", "c"],
    "hvp": ["t", "y", "x", "v", "g", "c"],
    "sparse_jacobian": ["t", "y", "x", "i", "j", "g", "c"],
    "sparse_hessian": ["t", "y", "x", "i", "j", "g", "c"],
    "declare": [],
    "custom": ["x", "y", 8, "f1"],
    "custom.call": ["df", "x", "r", "y"],
    "custom.function": ["c", "f1", "df", "x"],
    "backward.begin": ["b", "t", "y", "x", 7],
    "backward.cotangents": ["b", "dy", "f1", "k"],
    "backward.resume": ["b", "dx"],
    "backward.end": ["b", "g"],
    "slices": ["s", "v", "i"],
    "function": ["g", "f"],
    "call": ["f", "a", "r"],
    "while": ["more", "step", "a", 7, "r", 8, "iterations"],
    "cond": ["f", "g", "a", "r"],
    "scan": ["step", "a", "xs", 7, "r", "all"],
    "map": ["f", "xs", "all"],
    "value_and_gradient": ["f", "a", "r", 8],
    "slices.component": ["s", "p"],
    "explain": ["t", "y", "x", 7],
    "estimate": ["t", "y", "x", 7],
    "gradient_statistics": ["t", "y", "x", 7, "a"],
    "fetch": ["a"],
}
SPECS = {
    "constant": ("a",),
    "variable": ("v",),
    "op": (7,),
    "tape.open": ("t",),
    "accumulator.open": ("f",),
    "jvp": ("dy",),
    "gradient": ("g",),
    "jacobian": ("g",),
    "batch_jacobian": ("g",),
    "vjps": ("g",),
    "hessian": ("g",),
    "hvp": ("g",),
    "sparse_jacobian": ("i", "j", "g"),
    "sparse_hessian": ("i", "j", "g"),
    "function": ("f",),
    "call": ("r",),
    "while": ("r", 8, "iterations"),
    "cond": ("r",),
    "scan": ("r", "all"),
    "map": ("all",),
    "value_and_gradient": ("r", 8),
    "custom.call": ("y",),
    "custom.function": ("c",),
    "backward.begin": ("b",),
    "backward.cotangents": ("dy", "k"),
    "backward.end": ("g",),
    "slices": ("s",),
    "slices.component": ("p",),
}
STRUCTURAL = {
    *("tape.open", "tape.watch", "tape.pause", "tape.resume", "tape.own", "tape.reset", "context.switch", "declare"),
    "context.end",
    *("accumulator.open", "accumulator.close", "accumulator.resume"),
}


def test_the_tables_here_cover_the_vocabulary():
    assert set(WHOLE) == set(NAMED) == set(COMMANDS)


@pytest.mark.parametrize("verb", COMMANDS)
def test_a_command_from_its_fields(verb):
    result = make(verb, WHOLE[verb])
    assert isinstance(result, COMMANDS[verb])
    assert fields(verb) == tuple(WHOLE[verb])
    for name, inputs in WHOLE[verb].items():
        outcome = getattr(result, name)
        assert outcome is inputs or outcome == (tuple(inputs) if isinstance(inputs, list) else inputs)
    with pytest.raises(AttributeError):
        result.comment = "a command has only its fields"


@pytest.mark.parametrize("verb", COMMANDS)
def test_what_it_names_and_makes(verb):
    result = make(verb, WHOLE[verb])
    assert list(mentions(result)) == NAMED[verb]
    assert outputs(result) == SPECS.get(verb, ())
    assert set(outputs(result)) <= set(mentions(result))
    assert result.structural == (verb in STRUCTURAL)


@pytest.mark.parametrize("verb", COMMANDS)
def test_a_field_too_many_or_too_few(verb):
    with pytest.raises(BadCommandError, match=f"command '{verb}' has no field 'colour'; it takes"):
        make(verb, {**WHOLE[verb], "colour": 1})
    for field in dataclasses.fields(COMMANDS[verb]):
        rest = {name: value for name, value in WHOLE[verb].items() if name != field.name}
        if field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING:
            with pytest.raises(BadCommandError, match=f"command '{verb}' needs the field '{field.name}'"):
                make(verb, rest)
        else:
            make(verb, rest)


@pytest.mark.parametrize(("verb", "name"), [(verb, name) for verb, inputs in WHOLE.items() for name in inputs])
def test_a_field_of_the_wrong_kind(verb, name):
    class Strange:
        pass

    with pytest.raises(BadCommandError, match=rf"command '{verb}', field '{name}' must be .*; found Strange"):
        make(verb, {**WHOLE[verb], name: Strange()})


@pytest.mark.parametrize(
    ("verb", "name", "inputs", "wanted"),
    [
        ("constant", "id", -1, "an id: a name, or an integer from 0 up"),
        ("constant", "id", True, "an id"),
        ("constant", "id", "", "an id"),
        ("constant", "id", 1.0, "an id"),
        ("constant", "value", "a", "a number or a tensor"),
        ("tape.open", "persistent", 1, "true or false"),
        ("op", "op", "", "a name"),
        ("op", "inputs", "ab", "a list, each an id, a number or a tensor"),
        ("op", "inputs", [None], "an id, a number or a tensor"),
        ("op", "outputs", [None], "an id"),
        ("op", "attrs", {1: 2}, "an object of attributes"),
        ("fetch", "elements", -1, "a count"),
        ("fetch", "elements", True, "a count"),
        ("gradient", "output_gradients", [1.5], "an id, a number or a tensor"),
        ("function", "steps", [{"op": "neg"}], r"a step of a function \(assign, op, call"),
        ("function", "steps", [TapePause("t")], "a step of a function"),
    ],
)
def test_values_that_are_almost_right(verb, name, inputs, wanted):
    with pytest.raises(BadCommandError, match=wanted):
        make(verb, {**WHOLE[verb], name: inputs})


def test_an_unknown_command_lists_those_there_are():
    with pytest.raises(
        BadCommandError, match=r"unknown command 'exec': the commands are constant, variable, assign, op, "
    ) as e:
        make("exec", {})
    assert e.value.code == "bad_command"


def test_every_command_is_in_the_vocabulary_under_its_verb():
    assert {cls.verb for cls in Command.__subclasses__()} == set(COMMANDS)
