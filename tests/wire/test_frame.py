"""Frames: what goes in comes out, and whatever lies is refused with a WireError before memory is taken for it."""

import contextlib
import gc
import random
import struct
import tracemalloc
import weakref
import zlib
from typing import Any

import msgpack
import numpy as np
import pytest
from batches import answers, batches, ids, same
from hypothesis import given, settings
from hypothesis import strategies as st

import teletape_wire as wire
from teletape_engine.commands import COMMANDS, Batch, Call, Constant, Fetch
from teletape_engine.commands.results import Answer, Fetched
from teletape_engine.errors import BadCommandError, InvalidArgumentError
from teletape_engine.recording.values import Literal
from teletape_engine.spec import Spec
from teletape_wire.frame import CODES

ZEROS = np.zeros(40, np.float32)


def encoded(batch: Batch) -> bytes:
    frame = wire.encode_batch(batch)
    data = b"".join(frame.buffers)
    assert len(data) == frame.length
    return data


def with_header(header: Any, tensors: bytes = b"", /, **prefix: int) -> bytes:
    """A frame of a hand-made header; `prefix` overrides what the prefix declares."""
    packed = header if isinstance(header, bytes) else msgpack.packb(header)
    gap = bytes(-len(packed) % 64) if tensors else b""
    declared = {
        "version": 1,
        "kind": 1,
        "crc": zlib.crc32(packed),
        "header": len(packed),
        "total": 64 + len(packed) + len(gap) + len(tensors),
    } | prefix
    head = struct.pack(
        "<8sHHIQQ16sQQ",
        b"\x89TAPE\r\n\x1a",
        declared["version"],
        declared["kind"],
        declared["crc"],
        0,
        0,
        bytes(16),
        declared["header"],
        declared["total"],
    )
    return head + packed + gap + tensors


@given(batches)
def test_a_batch_comes_back_as_it_was(batch: Batch) -> None:
    assert same(wire.decode_batch(encoded(batch)), batch)


@given(answers, st.integers(0, 2**60))
def test_an_answer_comes_back_as_it_was(answer: Any, seq: int) -> None:
    served = wire.Served(1e9, 0.25, 0.5)
    frame = wire.encode_answer(answer, served, client=3, seq=seq, nonce=b"n" * 16)
    data = b"".join(frame.buffers)
    result, facts = wire.decode_answer(data)
    assert same(result, answer)
    assert facts == served
    prefix = wire.decode_prefix(data)
    assert (prefix.kind, prefix.client, prefix.seq, prefix.nonce) == (wire.FrameKind.ANSWER, 3, seq, b"n" * 16)
    assert prefix.total_length == frame.length


def test_every_command_has_a_code_of_its_own() -> None:
    assert CODES.keys() == COMMANDS.keys()
    assert len(set(CODES.values())) == len(CODES)


def test_big_tensors_are_neither_copied_out_nor_in() -> None:
    array = np.arange(100_000, dtype=np.float32)
    frame = wire.encode_batch(Batch((Constant("x", array),)))
    assert any(np.shares_memory(np.frombuffer(buffer, np.uint8), array) for buffer in frame.buffers)
    data = np.frombuffer(b"".join(frame.buffers), np.uint8).copy()
    (put,) = wire.decode_batch(data.data).commands
    assert np.shares_memory(put.value, data)
    assert not put.value.flags.writeable
    (put,) = wire.decode_batch(data.data, copy_below=1 << 20).commands
    assert not np.shares_memory(put.value, data)


def test_nothing_waits_for_the_garbage_collector() -> None:
    """A frame's memory is free the moment its batch is: in a worker it is the next body's."""
    gc.disable()
    try:
        array = np.arange(10_000, dtype=np.float32)
        frame = wire.encode_batch(Batch((Constant("x", array),)))
        data = np.frombuffer(b"".join(frame.buffers), np.uint8)
        batch = wire.decode_batch(data.data)
        with pytest.raises(wire.WireError):
            wire.decode_batch(data[:-1].data)
        gone = [weakref.ref(array), weakref.ref(data)]
        del array, frame, data, batch
        assert [item() for item in gone] == [None, None]
    finally:
        gc.enable()


def test_tensors_lie_at_multiples_of_64() -> None:
    data = encoded(Batch(tuple(Constant(i, np.full(n, 7, np.uint8)) for i, n in enumerate((1, 64, 0, 65, 20_000, 3)))))
    base = np.frombuffer(data, np.uint8)
    for put in wire.decode_batch(data).commands:
        if put.value.size:
            offset = put.value.ctypes.data - base.ctypes.data
            assert offset % 64 == 0
            assert (put.value == 7).all()


def test_any_layout_of_an_array_may_be_sent() -> None:
    array = np.arange(24).reshape(2, 3, 4)
    for view in (array.T, array[:, ::-1], array[..., 1], array.astype(">i8"), np.array(5)):
        (put,) = wire.decode_batch(encoded(Batch((Constant("x", view),)))).commands
        assert np.array_equal(put.value, view)


def test_a_batch_of_many_commands_passes() -> None:
    batch = Batch(tuple(Call("neg", (i,), (i + 1,)) for i in range(40_000)), tuple(range(40_000)))
    assert wire.decode_batch(encoded(batch)) == batch


@pytest.mark.parametrize(
    ("command", "text"),
    [
        (Constant("x", np.array(["text"])), "dtype"),
        (Call("f", (Literal(1 << 5000),), ("y",)), "integer of 5001 bits"),
        (Call("f", ("x",), ("y",), {"a": object()}), "object"),
    ],
)
def test_what_cannot_travel_is_refused_by_the_sender(command: Any, text: str) -> None:
    with pytest.raises((wire.WireError, InvalidArgumentError), match=text):
        wire.encode_batch(Batch((command,)))


GOOD = encoded(Batch((Constant("x", ZEROS), Call("neg", ("x",), ("y",)), Fetch("y")), ("x",), 1, 2, bytes(range(16))))
ROW = ["float32", [40], 0, 160, zlib.crc32(ZEROS)]
PUT = [1, "x", msgpack.ExtType(1, struct.pack("<I", 0))]
RAW = ZEROS.tobytes()


def tampered(at: int, byte: int) -> bytes:
    return GOOD[:at] + bytes([GOOD[at] ^ byte]) + GOOD[at + 1 :]


LIES = {
    "nothing": (b"", "prefix of 64 bytes, found 0"),
    "half a prefix": (GOOD[:40], "prefix of 64 bytes, found 40"),
    "another magic": (b"GIF89a" + GOOD[6:], "not a frame"),
    "mended line ends": (GOOD.replace(b"\r\n", b"\n", 1), "not a frame"),
    "another version": (with_header([[], [], []], version=9), "version 9"),
    "an answer": (with_header([[], [], []], kind=2), "expected a frame of kind batch"),
    "another kind": (with_header([[], [], []], kind=7), "found 7"),
    "a header over the limit": (with_header([[], [], []], header=1 << 40, total=1 << 41), "the limit is"),
    "a header longer than the frame": (with_header([[], [], []], header=999), "prefix and header alone"),
    "cut in the middle": (GOOD[:-1], "cut or padded"),
    "padded": (GOOD + b"\0", "cut or padded"),
    "a header that changed": (tampered(70, 1), "header's CRC32"),
    "a tensor that changed": (tampered(len(GOOD) - 1, 1), "tensor 0 of 1: CRC32"),
    "no msgpack": (with_header(b"\xc1\xc1"), "no valid msgpack"),
    "a header cut": (with_header(b"\x93\x90"), "no valid msgpack"),
    "two parts": (with_header([[], []]), "list of 3 parts"),
    "bytes behind the header": (with_header(msgpack.packb([[], [], []]) + b"\x90"), "ends at byte"),
    "tensors without a table": (with_header([[], [], []], RAW), "declared tensors end at byte 0"),
    "a table that is no list": (with_header([{}, [], []]), "no valid msgpack"),
    "a row too short": (with_header([[ROW[:4]], [PUT], []], RAW), "its row must be"),
    "an unknown dtype": (with_header([[["float31", *ROW[1:]]], [PUT], []], RAW), "unknown dtype 'float31'"),
    "a negative length": (with_header([[["float32", [-40], 0, 160, 0]], [PUT], []], RAW), "none negative"),
    "too many axes": (with_header([[["float32", [1] * 33 + [40], *ROW[2:]]], [PUT], []], RAW), "34 axes"),
    "a shape that overflows": (with_header([[["float32", [0, 2**63], 0, 0, 0]], [PUT], []]), "no array of float32"),
    "a length that does not fit": (with_header([[["float32", [41], *ROW[2:]]], [PUT], []], RAW), "takes 164 bytes"),
    "a terabyte": (with_header([[["float32", [10**12], 0, 4 * 10**12, 0]], [PUT], []], RAW), "the frame holds 160"),
    "an offset outside": (with_header([[["float32", [40], 1 << 40, 160, 0]], [PUT], []], RAW), "declared at offset"),
    "an offset unaligned": (with_header([[["float32", [40], 4, 160, 0]], [PUT], []], RAW), "declared at offset 4"),
    "overlapping": (with_header([[ROW, ROW], [PUT], []], RAW), "declared at offset 0 of the tensors, expected 192"),
    "a bool of 2": (
        with_header([[["bool", [1], 0, 1, zlib.crc32(b"\2")]], [PUT], []], b"\2"),
        "dtype bool has only the bytes 0 and 1, found 2",
    ),
    "a tensor that is not there": (with_header([[], [PUT], []]), "names tensor 0, the frame has 0"),
    "an unknown extension": (with_header([[], [[1, "x", msgpack.ExtType(9, b"")]], []]), "extension 9"),
    "a list longer than the header": (with_header(b"\x93\x90\x91\xdd\xff\xff\xff\xff"), "no valid msgpack"),
    "lists without end": (with_header(b"\x93\x90\x91" + b"\xdd\x00\x00\x40\x00" * 20_000), "no valid msgpack"),
}


@pytest.mark.parametrize("lie", LIES)
def test_a_lying_frame_is_refused_and_costs_nothing(lie: str) -> None:
    data, text = LIES[lie]
    tracemalloc.start()
    try:
        with pytest.raises(wire.WireError, match=text):
            wire.decode_batch(data)
        assert tracemalloc.get_traced_memory()[1] < len(data) + (150 << 20)
    finally:
        tracemalloc.stop()


BAD_COMMANDS = {
    "no array": (5, "must be an array"),
    "empty": ([], "must be an array"),
    "an unknown code": ([99, "x"], "unknown command code 99; the codes are 1 constant"),
    "a code that is a word": (["op", "neg", ["x"], ["y"]], "unknown command code 'op'"),
    "a field left over": ([15, "x", 3, True, 4], "has 3 fields"),
    "a field missing": ([4, "neg"], "needs the field 'inputs'"),
    "a field of the wrong kind": ([4, "neg", "x", ["y"]], "field 'inputs' must be a list"),
    "a negative id": ([4, "neg", [-1], ["y"]], "an id, a number or a tensor"),
    "an output that is a number": ([4, "neg", ["x"], [1.5]], "field 'outputs'"),
    "attributes that are a list": ([4, "neg", ["x"], ["y"], []], "field 'attrs'"),
    "three numbers": ([4, "neg", [[1, 2, 3]], ["y"]], "[number] or [re, im]"),
    "a value that is an id": ([1, "x", "y"], "field 'value' must be a number or a tensor"),
    "a program of fetches": ([13, "p", ["a"], [[15, "a"]], ["a"]], "a step of a function (assign, op, "),
}


@pytest.mark.parametrize("case", BAD_COMMANDS)
def test_a_bad_command_is_named_by_its_place(case: str) -> None:
    command, text = BAD_COMMANDS[case]
    with pytest.raises(BadCommandError) as caught:
        wire.decode_batch(with_header([[], [[15, "x"], command], []]))
    assert text in caught.value.message
    assert caught.value.message.startswith("command 1: ")
    assert caught.value.details["command"] == 1


def test_a_release_is_an_id() -> None:
    with pytest.raises(BadCommandError, match="a release must be an id"):
        wire.decode_batch(with_header([[], [], [1.5]]))


@given(st.data(), batches)
@settings(max_examples=200)
def test_a_mutated_frame_gives_a_clear_error_or_a_batch(data: st.DataObject, batch: Batch) -> None:
    """Mutations with correct checksums too."""
    frame = bytearray(encoded(batch))
    chance = random.Random(data.draw(st.integers(0, 2**32)))
    for _ in range(chance.randint(1, 4)):
        frame[chance.randrange(len(frame))] = chance.randrange(256)
    if chance.random() < 0.3:
        del frame[chance.randrange(len(frame)) :]
    length = struct.unpack_from("<Q", frame, 48)[0] if len(frame) >= 64 else 0
    if len(frame) >= 64 + length:
        struct.pack_into("<I", frame, 12, zlib.crc32(frame[64 : 64 + length]))
    with contextlib.suppress(wire.WireError, BadCommandError):
        wire.decode_batch(bytes(frame))


@given(st.binary(max_size=200))
@settings(max_examples=300)
def test_any_header_gives_a_clear_error_or_a_batch(header: bytes) -> None:
    for data in (with_header(header), with_header(b"\x93\x90" + header)):
        with contextlib.suppress(wire.WireError, BadCommandError):
            wire.decode_batch(data)


@given(answers, st.data())
def test_a_mutated_answer_gives_a_clear_error_or_an_answer(answer: Any, data: st.DataObject) -> None:
    frame = bytearray(b"".join(wire.encode_answer(answer).buffers))
    length = struct.unpack_from("<Q", frame, 48)[0]
    at = data.draw(st.integers(64, 63 + length))
    frame[at] = data.draw(st.integers(0, 255))
    struct.pack_into("<I", frame, 12, zlib.crc32(frame[64 : 64 + length]))
    with contextlib.suppress(wire.WireError):
        wire.decode_answer(bytes(frame))


@pytest.mark.parametrize("count", [1, 20_000])  # the second has a header that is not unpacked at once
def test_an_answer_of_many_tensors_passes(count: int) -> None:
    spec = Spec.of((), np.dtype("float32"))
    results = tuple([Fetched(i, i, np.array(i, np.float32), spec, True) for i in range(count)])
    answer, _ = wire.decode_answer(b"".join(wire.encode_answer(Answer(results, None, 0)).buffers))
    assert [(each.index, float(each.array)) for each in answer.results] == [(i, i) for i in range(count)]


@pytest.mark.parametrize(
    ("array", "text"),
    [(b"\xc7\x04\x01\x07\0\0\0", "names tensor 7, the frame has 0"), (b"\x07", "needs a tensor, found 7")],
)
def test_a_result_without_its_tensor_is_refused(array: bytes, text: str) -> None:
    row = b"\x96\x01\x00\x01" + array + msgpack.packb(["float32", []]) + b"\xc3"
    header = b"\x93\x90\x91" + row + msgpack.packb([None, 0, None, 0.0, 0.0])
    with pytest.raises(wire.WireError, match=text):
        wire.decode_answer(with_header(header, kind=2))


@given(ids)
def test_ids_keep_their_type(name: Any) -> None:
    (fetch,) = wire.decode_batch(encoded(Batch((Fetch(name),)))).commands
    assert type(fetch.id) is type(name)
    assert fetch.id == name


def test_the_prefix_is_checked_against_the_receivers_limits() -> None:
    with pytest.raises(wire.FrameTooLargeError) as caught:
        wire.decode_prefix(GOOD, max_total=100)
    assert caught.value.details == {"found": len(GOOD), "limit": 100}
    with pytest.raises(wire.FrameTooLargeError, match="smaller batches"):
        wire.decode_prefix(GOOD, max_header=3)
