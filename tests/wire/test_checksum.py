"""The checksum of frames: the same value from every library, and zlib where the other is absent or wrong."""

import sys
import zlib
from collections.abc import Callable

import numpy as np
import pytest
from zlib_ng import zlib_ng

import teletape_wire as wire
from teletape_engine.commands import Batch, Constant
from teletape_wire import checksum, decode, encode, tensors
from teletape_wire.checksum import Buffer

LIBRARIES = [zlib.crc32, zlib_ng.crc32]
BYTES = np.random.default_rng(3).integers(0, 256, 1 << 20, dtype=np.uint8)


def use(monkeypatch: pytest.MonkeyPatch, crc32: Callable[[Buffer], int]) -> None:
    """Lets the wire use this function."""
    for module in (tensors, encode, decode):
        monkeypatch.setattr(module, "crc32", crc32)


def test_both_libraries_agree_on_every_length_and_alignment() -> None:
    view = memoryview(BYTES)
    for start in (0, 1, 3, 8, 15, 31, 63):
        for length in (*range(300), 1023, 4097, 65_535, len(BYTES) - 63):
            part = view[start : start + length]
            assert zlib_ng.crc32(part) == zlib.crc32(part), (start, length)


def test_the_installed_library_is_used_if_it_is_right(monkeypatch: pytest.MonkeyPatch) -> None:
    assert checksum.crc32 is zlib_ng.crc32
    assert checksum.checked(zlib.crc32)
    monkeypatch.setattr(zlib_ng, "crc32", lambda data, before=0: zlib.crc32(data, before) if len(data) < 500 else 0)
    assert checksum.fastest() is zlib.crc32
    monkeypatch.setattr(zlib_ng, "crc32", lambda data, before=0: zlib.crc32(data))
    assert checksum.fastest() is zlib.crc32


def test_without_the_library_zlib_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "zlib_ng", None)
    assert checksum.fastest() is zlib.crc32


@pytest.mark.parametrize("sender", LIBRARIES)
@pytest.mark.parametrize("receiver", LIBRARIES)
def test_a_frame_of_either_library_is_read_with_either(
    monkeypatch: pytest.MonkeyPatch, sender: Callable[[Buffer], int], receiver: Callable[[Buffer], int]
) -> None:
    use(monkeypatch, sender)
    frame = bytearray(b"".join(wire.encode_batch(Batch((Constant("x", BYTES),))).buffers))
    use(monkeypatch, receiver)
    [constant] = wire.decode_batch(bytes(frame)).commands
    assert isinstance(constant, Constant)
    np.testing.assert_array_equal(constant.value, BYTES)
    for position in (len(frame) - 1, 70):  # in the tensor, and in the header
        damaged = frame.copy()
        damaged[position] ^= 1
        with pytest.raises(wire.CorruptFrameError):
            wire.decode_batch(bytes(damaged))
