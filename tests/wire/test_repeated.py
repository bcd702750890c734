"""Repeated batches: a structure that is kept under a number, and frames with the number and the contents alone."""

import itertools
import random
import struct
import zlib
from contextlib import suppress
from typing import Any

import msgpack
import numpy as np
import pytest
from batches import batches, same
from hypothesis import given
from hypothesis import strategies as st

import teletape_wire as wire
from teletape_engine import commands
from teletape_engine.commands import Batch, Call, DefineFunction
from teletape_engine.commands.structure import Contents, Repetition, structure_of
from teletape_engine.errors import BadCommandError, UnknownStructureError
from teletape_engine.recording.values import Literal
from teletape_wire import structures

NONCE = bytes(range(16))
X = np.arange(3, dtype=np.float32)


def step(first: int, rate: Any = 0.5) -> Batch:
    """A step of client 1; the variable is 7."""
    return Batch(
        (
            commands.Constant(first, X + first),
            Call("mul", (first, 7), (first + 1,)),
            Call("mul", (first + 1, Literal(rate)), (first + 2,)),
            commands.Fetch(first + 2),
        ),
        (first, first + 1),
        1,
        4,
        NONCE,
    )


def joined(frame: wire.Frame) -> bytes:
    return b"".join(frame.buffers)


def contents(batch: Batch) -> Contents:
    both = structure_of(batch)
    assert both is not None
    return both[1]


def repeated(batch: Batch, number: int = 3) -> bytes:
    frame = wire.encode_repeated(number, contents(batch), client=batch.client, seq=batch.seq, nonce=batch.nonce)
    assert len(joined(frame)) == frame.length
    return joined(frame)


def keeping(batch: Batch, number: int = 3) -> wire.Structures:
    store = wire.Structures()
    wire.decode_request(joined(wire.encode_batch(batch, keep=number)), store)
    return store


@given(batches, st.integers(0, 2**63 - 1))
def test_a_repeated_batch_is_the_whole_one(batch: Batch, number: int) -> None:
    if batch.replace or any(isinstance(command, DefineFunction) for command in batch.commands) or not batch.client:
        return
    store = wire.Structures()
    whole = wire.decode_request(joined(wire.encode_batch(batch, keep=number)), store)
    assert same(whole, wire.decode_batch(joined(wire.encode_batch(batch))))
    repetition = wire.decode_request(repeated(batch, number), store)
    assert isinstance(repetition, Repetition)
    assert same(repetition.batch(), whole)


def test_other_ids_numbers_and_tensors_travel_alone() -> None:
    store = keeping(step(100))
    later = step((1 << 40) + 5, rate=-0.0)
    frame = repeated(later)
    assert len(frame) < len(joined(wire.encode_batch(later)))
    arrived = wire.decode_request(frame, store)
    assert isinstance(arrived, Repetition)
    assert same(arrived.batch(), later)
    assert not arrived.contents.tensors[0].flags.writeable


def test_an_unmarked_batch_is_not_kept() -> None:
    store = wire.Structures()
    wire.decode_request(joined(wire.encode_batch(step(100))), store)
    assert len(store) == 0
    with pytest.raises(UnknownStructureError, match="client 1: no structure 3 is kept") as caught:
        wire.decode_request(repeated(step(100)), store)
    assert caught.value.details == {"structure": 3}


def test_structures_belong_to_their_client() -> None:
    store = keeping(step(100))
    frame = wire.encode_repeated(3, contents(step(100)), client=2, seq=1, nonce=NONCE)
    with pytest.raises(UnknownStructureError):
        wire.decode_request(joined(frame), store)


def test_a_number_can_be_given_again() -> None:
    store = keeping(step(100))
    other = Batch((commands.Fetch(7),), (), 1, 5, NONCE)
    wire.decode_request(joined(wire.encode_batch(other, keep=3)), store)
    assert len(store) == 1
    arrived = wire.decode_request(repeated(other), store)
    assert isinstance(arrived, Repetition)
    assert same(arrived.batch(), other)


def test_the_structures_used_longest_ago_are_forgotten() -> None:
    store = keeping(step(100), 0)
    for number in range(1, structures.MOST_STRUCTURES):
        wire.decode_request(joined(wire.encode_batch(step(100), keep=number)), store)
    wire.decode_request(repeated(step(100), 0), store)
    wire.decode_request(joined(wire.encode_batch(step(100), keep=1000)), store)
    assert len(store) == structures.MOST_STRUCTURES
    wire.decode_request(repeated(step(100), 0), store)
    with pytest.raises(UnknownStructureError):
        wire.decode_request(repeated(step(100), 1), store)


def test_their_bytes_are_bounded() -> None:
    store = wire.Structures()
    for number in range(5):
        store.keep(step(100), number, structures.MOST_BYTES // 2)
    assert len(store) == 2
    store.keep(step(100), 4, structures.MOST_BYTES + 1)
    assert len(store) == 1, "what is larger than the limit is not kept, nor what had its number"
    store.keep(step(100), 9, structures.MOST_BYTES)
    assert len(store) == 1
    store.find(1, 9)


# --------------------------------------------------------------------------------------------------------- malformed
def with_header(content: Any, *, kind: int = 3, client: int = 1, tensors: bytes = b"") -> bytes:
    header = content if isinstance(content, bytes) else msgpack.packb(content)
    gap = bytes(-(64 + len(header)) % 64) if tensors else b""
    total = 64 + len(header) + len(gap) + len(tensors)
    prefix = struct.pack(
        "<8sHHIQQ16sQQ", b"\x89TAPE\r\n\x1a", 1, kind, zlib.crc32(header), client, 4, NONCE, len(header), total
    )
    return prefix + header + gap + tensors


RAW = X.tobytes()
ROW = ["float32", [3], 0, 12, zlib.crc32(RAW)]
GOOD = [[ROW], 3, [7], [[100, 3]], [0.5]]


def changed(part: int, value: Any) -> bytes:
    return with_header([value if i == part else each for i, each in enumerate(GOOD)], tensors=RAW)


BAD = {
    "four parts": (with_header(GOOD[:4], tensors=RAW), "a list of 5 parts, found 4"),
    "six parts": (with_header([*GOOD, []], tensors=RAW), "a list of 5 parts, found 6"),
    "a part of a whole batch": (with_header([*GOOD[:4]], kind=1, tensors=RAW), "array|list"),
    "no number": (changed(1, None), "the number of a structure is an integer"),
    "a negative number": (changed(1, -1), "the number of a structure"),
    "a number that is true": (changed(1, True), "the number of a structure"),
    "a number of 64 bits": (changed(1, 1 << 63), "the number of a structure"),
    "no client": (with_header(GOOD, client=0, tensors=RAW), "only attached clients have structures"),
    "ids that are a number": (changed(2, 7), "a list is needed"),
    "an id that is a number": (changed(2, [1.5]), "an id from before must be an id"),
    "a negative id": (changed(2, [-1]), "an id from before must be an id"),
    "too many ids": (changed(2, [7, 8]), "1 ids from before, 3 new ids.*found 2 ids"),
    "too few new ids": (changed(3, [100, 101]), "found 1 ids from before, 2 new ids"),
    "an id twice": (changed(3, [100, 101, 7]), "an id occurs twice"),
    "a run that is too long": (changed(3, [[100, 1 << 60]]), "3 places for a new id; found 1152921504606846976"),
    "a run of negative ids": (changed(3, [[-3, 3]]), "a pair"),
    "a run of three": (changed(3, [[100, 3, 1]]), "a pair"),
    "a run among ids": (changed(3, [100, [101, 2]]), "a new id must be an id"),
    "no numbers": (changed(4, []), "1 numbers; found 1 ids from before, 3 new ids, 1 tensors, 0 numbers"),
    "a number of another type": (changed(4, [1]), "number 0 of the batch's structure is of type float; found int"),
    "a number that is a text": (changed(4, ["x"]), "a list of numbers is needed"),
    "a number that is a tensor": (changed(4, [msgpack.ExtType(1, bytes(4))]), "a list of numbers is needed"),
    "no tensor": (with_header([[], *GOOD[1:]]), "1 tensors, 1 numbers; found"),
    "a tensor of another dtype": (changed(0, [["int32", *ROW[1:]]]), "is float32.3.; found int32"),
    "a tensor of another shape": (changed(0, [["float32", [1, 3], *ROW[2:]]]), "found float32.1, 3."),
    "something after it": (with_header(msgpack.packb(GOOD) + b"\0", tensors=RAW), "its content ends at byte"),
    "a structure of a function": (
        with_header([[], [[13, "p", ["a"], [], ["a"]]], [], [[], "poison", 3]], kind=1),
        "a batch that defines a function or replaces ids cannot be kept",
    ),
    "a mark without a client": (with_header([[], [], [], [[], "poison", 3]], kind=1, client=0), "structure 3 has no"),
    "a mark that is no number": (with_header([[], [], [], [[], "poison", "x"]], kind=1), "the number of a structure"),
    "options of five": (with_header([[], [], [], [[], "poison", 3, False, 5]], kind=1), "part 4 must be"),
    "replace that is no flag": (with_header([[], [], [], [[], "poison", None, 4]], kind=1), "replace is true or false"),
    "replace with a structure": (with_header([[], [], [], [[], "poison", 3, True]], kind=1), "has no structure"),
    "options with a list": (with_header([[], [], [], [[], [], 3]], kind=1), "on_failure is"),
    "an answer": (with_header(GOOD, kind=2, tensors=RAW), "expected a frame of kind batch, found answer"),
    "another kind": (with_header(GOOD, kind=4, tensors=RAW), "found 4"),
}


def test_the_good_frame_is_good() -> None:
    arrived = wire.decode_request(with_header(GOOD, tensors=RAW), keeping(step(100)))
    assert isinstance(arrived, Repetition)
    assert arrived.contents.created == (100, 101, 102)


@pytest.mark.parametrize("case", BAD)
def test_a_frame_that_does_not_fit_is_refused(case: str) -> None:
    data, text = BAD[case]
    store = keeping(step(100))
    with pytest.raises((wire.WireError, BadCommandError), match=text):
        wire.decode_request(data, store)
    wire.decode_request(repeated(step(100)), store)
    assert len(store) == 1


def test_who_keeps_nothing_reads_no_repeated_batch() -> None:
    with pytest.raises(wire.WireError, match="expected a frame of kind batch, found repeated"):
        wire.decode_batch(repeated(step(100)))


def test_a_mutated_frame_gives_a_clear_error_or_a_batch() -> None:
    """Mutations with correct checksums too."""
    store = keeping(step(100))
    chance, good = random.Random(5), repeated(step(300))
    outcomes = set()
    for _ in range(2000):
        frame = bytearray(good)
        for _ in range(chance.randint(1, 3)):
            frame[chance.randrange(len(frame))] = chance.randrange(256)
        length = struct.unpack_from("<Q", frame, 48)[0]
        if len(frame) >= 64 + length:
            struct.pack_into("<I", frame, 12, zlib.crc32(frame[64 : 64 + length]))
        with suppress(wire.WireError, BadCommandError, UnknownStructureError):
            outcomes.add(type(wire.decode_request(bytes(frame), store)))
    assert Repetition in outcomes


def test_any_parts_give_a_clear_error_or_a_batch() -> None:
    store = keeping(step(100))
    leaves = [0, -1, 7, 1 << 63, 2.5, True, None, "x", "", b"x", [], [[]], [[1, 3]], {}, msgpack.ExtType(9, b"x")]
    for part, value, wrapped in itertools.product(range(5), leaves, (False, True)):
        with suppress(wire.WireError, BadCommandError, UnknownStructureError):
            wire.decode_request(changed(part, [value] if wrapped else value), store)
