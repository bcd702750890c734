"""The recorded vectors of tests/wire/vectors: bytes that a client in any language can be held to."""

import json
from pathlib import Path
from typing import Any

import pytest

import teletape_wire as wire
from teletape_engine.commands import Batch
from teletape_engine.commands.structure import Repetition, structure_of

FILES = sorted((Path(__file__).parent / "vectors").glob("*.json"))
VECTORS: dict[str, Any] = {path.stem: json.loads(path.read_text()) for path in FILES}


def named(kind: str) -> list[str]:
    return [name for name, vector in VECTORS.items() if kind in vector]


@pytest.mark.parametrize("name", named("batch"))
def test_a_batch_and_its_frame_say_the_same(name: str) -> None:
    frame, written = bytes.fromhex(VECTORS[name]["frame"]), VECTORS[name]["batch"]
    assert wire.batch_to_json(wire.decode_batch(frame)) == written
    assert b"".join(wire.encode_batch(wire.batch_from_json(written)).buffers) == frame


@pytest.mark.parametrize("name", named("repeated"))
def test_a_repeated_batch_and_the_whole_one_say_the_same(name: str) -> None:
    vector, structures = VECTORS[name], wire.Structures()
    first = wire.decode_request(bytes.fromhex(vector["first_frame"]), structures)
    assert isinstance(first, Batch)
    assert wire.batch_to_json(first) == vector["first"]
    later = wire.decode_request(bytes.fromhex(vector["frame"]), structures)
    assert isinstance(later, Repetition)
    assert wire.batch_to_json(later.batch()) == vector["repeated"]
    both = structure_of(wire.batch_from_json(vector["repeated"]))
    assert both is not None
    prefix = wire.decode_prefix(bytes.fromhex(vector["frame"]))
    again = wire.encode_repeated(5, both[1], client=prefix.client, seq=prefix.seq, nonce=prefix.nonce)
    assert b"".join(again.buffers).hex() == vector["frame"]


@pytest.mark.parametrize("name", named("answer"))
def test_an_answer_and_its_frame_say_the_same(name: str) -> None:
    frame = bytes.fromhex(VECTORS[name]["frame"])
    answer, served = wire.decode_answer(frame)
    text = json.loads(json.dumps(wire.answer_to_json(answer, served, full=True)))
    assert text == VECTORS[name]["answer"]
    prefix = wire.decode_prefix(frame)
    again = wire.encode_answer(answer, served, client=prefix.client, seq=prefix.seq, nonce=prefix.nonce)
    assert b"".join(again.buffers) == frame


@pytest.mark.parametrize("name", named("refused"))
def test_a_frame_that_must_be_refused(name: str) -> None:
    with pytest.raises(wire.WireError) as caught:
        wire.decode_batch(bytes.fromhex(VECTORS[name]["frame"]))
    assert caught.value.code == VECTORS[name]["refused"]


def test_the_vectors_show_every_command() -> None:
    from teletape_engine.commands import COMMANDS

    shown = {command["do"] for name in named("batch") for command in VECTORS[name]["batch"]["commands"]}
    assert shown == COMMANDS.keys()
