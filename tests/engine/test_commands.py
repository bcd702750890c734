"""The vocabulary: each command's own check, what it names and what it makes."""

import dataclasses

import numpy as np
import pytest

from teletape_engine.commands import COMMANDS, Call, Command, mentions, outputs
from teletape_engine.errors import BadCommandError
from teletape_engine.fields import fields, make
from teletape_engine.graph import Literal

TENSOR = np.ones(2, np.float32)

#: For each command all its fields, as a wire would hand them over.
WHOLE = {
    "put": {"id": "a", "value": TENSOR},
    "variable": {"id": "v", "value": "a", "trainable": False, "name": "weights"},
    "assign": {"variable": "v", "value": Literal(1.0), "mode": "add"},
    "op": {
        "op": "add",
        "inputs": ["a", Literal(1), TENSOR],
        "outputs": [7],
        "attrs": {"axis": 0},
        "where": "train.py:3",
    },
    "tape.open": {"id": "t", "persistent": True, "watch_accessed": False},
    "tape.watch": {"tape": "t", "values": ["a", 7]},
    "tape.pause": {"tape": "t"},
    "tape.resume": {"tape": "t"},
    "tape.reset": {"tape": "t"},
    "context.switch": {"context": "request"},
    "gradient": {
        "tape": "t",
        "targets": ["y"],
        "sources": ["x", 7],
        "outputs": ["g", None],
        "seeds": [None],
        "unconnected": "zero",
        "predicted": ["dense", "none"],
    },
    "declare": {"no_gradient": "MatMul"},
    "program": {"id": "f", "inputs": ["in"], "calls": [Call("neg", ("in",), ("out",))], "outputs": ["out"]},
    "call": {"program": "f", "inputs": ["a", Literal(2)], "outputs": ["r"]},
    "part": {"id": "s", "part": "values", "output": "p"},
    "fetch": {"id": "a", "elements": 3},
}
NAMED = {
    "put": ["a"],
    "variable": ["v", "a"],
    "assign": ["v"],
    "op": ["a", 7],
    "tape.open": ["t"],
    "tape.watch": ["t", "a", 7],
    "tape.pause": ["t"],
    "tape.resume": ["t"],
    "tape.reset": ["t"],
    "context.switch": ["request"],
    "gradient": ["t", "y", "x", 7, "g"],
    "declare": [],
    "program": ["f"],
    "call": ["f", "a", "r"],
    "part": ["s", "p"],
    "fetch": ["a"],
}
MADE = {
    "put": ("a",),
    "variable": ("v",),
    "op": (7,),
    "tape.open": ("t",),
    "gradient": ("g",),
    "program": ("f",),
    "call": ("r",),
    "part": ("p",),
}
STRUCTURAL = {"tape.open", "tape.watch", "tape.pause", "tape.resume", "tape.reset", "context.switch", "declare"}


def test_the_tables_here_cover_the_vocabulary():
    assert set(WHOLE) == set(NAMED) == set(COMMANDS)


@pytest.mark.parametrize("verb", COMMANDS)
def test_a_command_from_its_fields(verb):
    made = make(verb, WHOLE[verb])
    assert isinstance(made, COMMANDS[verb])
    assert fields(verb) == tuple(WHOLE[verb])
    for name, given in WHOLE[verb].items():
        found = getattr(made, name)
        assert found is given or found == (tuple(given) if isinstance(given, list) else given)
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(made, next(iter(WHOLE[verb])), None)


@pytest.mark.parametrize("verb", COMMANDS)
def test_what_it_names_and_makes(verb):
    made = make(verb, WHOLE[verb])
    assert list(mentions(made)) == NAMED[verb]
    assert outputs(made) == MADE.get(verb, ())
    assert set(outputs(made)) <= set(mentions(made))
    assert made.structural == (verb in STRUCTURAL)


@pytest.mark.parametrize("verb", COMMANDS)
def test_a_field_too_many_or_too_few(verb):
    with pytest.raises(BadCommandError, match=f"command '{verb}' has no field 'colour'; it takes: "):
        make(verb, {**WHOLE[verb], "colour": 1})
    for field in dataclasses.fields(COMMANDS[verb]):
        rest = {name: value for name, value in WHOLE[verb].items() if name != field.name}
        if field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING:
            with pytest.raises(BadCommandError, match=f"command '{verb}' needs the field '{field.name}'"):
                make(verb, rest)
        else:
            make(verb, rest)


@pytest.mark.parametrize(("verb", "name"), [(verb, name) for verb, given in WHOLE.items() for name in given])
def test_a_field_of_the_wrong_kind(verb, name):
    class Strange:
        pass

    with pytest.raises(BadCommandError, match=rf"command '{verb}', field '{name}' must be .*; found Strange"):
        make(verb, {**WHOLE[verb], name: Strange()})


@pytest.mark.parametrize(
    ("verb", "name", "given", "wanted"),
    [
        ("put", "id", -1, "an id: a name, or an integer from 0 up"),
        ("put", "id", True, "an id"),
        ("put", "id", "", "an id"),
        ("put", "id", 1.0, "an id"),
        ("put", "value", "a", "a number or a tensor"),
        ("tape.open", "persistent", 1, "true or false"),
        ("op", "op", "", "a name"),
        ("op", "inputs", "ab", "a list, each an id, a number or a tensor"),
        ("op", "inputs", [None], "an id, a number or a tensor"),
        ("op", "outputs", [None], "an id"),
        ("op", "attrs", {1: 2}, "an object of attributes"),
        ("fetch", "elements", -1, "a count"),
        ("fetch", "elements", True, "a count"),
        ("gradient", "seeds", [1.5], "an id, a number or a tensor"),
        ("program", "calls", [{"op": "neg"}], "an op call"),
    ],
)
def test_values_that_are_almost_right(verb, name, given, wanted):
    with pytest.raises(BadCommandError, match=wanted):
        make(verb, {**WHOLE[verb], name: given})


def test_an_unknown_command_lists_those_there_are():
    with pytest.raises(
        BadCommandError, match=r"unknown command 'exec': the commands are put, variable, assign, op, "
    ) as e:
        make("exec", {})
    assert e.value.code == "bad_command"


def test_every_command_is_in_the_vocabulary_under_its_verb():
    assert {cls.verb for cls in Command.__subclasses__()} == set(COMMANDS)
