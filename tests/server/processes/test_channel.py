"""The channel between the server and a worker process: messages, and bodies in shared memory."""

import contextlib
import gc
import socket
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import teletape_wire as wire
from serving import open_files
from teletape_server.hosts.protocols import Start
from teletape_server.ipc.channel import INLINE, Channel
from teletape_server.ipc.shared_memory import MAX_IDLE, IdleMemory

START = Start("cpu", 64 << 20, 16 << 20)
BATCH = {"accept": wire.FRAME_TYPE, "full": False, "encoding": "", "now": 0.0, "terms": (60.0, 600.0, 0.0)}


@pytest.fixture
def ends() -> Iterator[tuple[Channel, Channel]]:
    near, far = (Channel(sock) for sock in socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET))
    yield near, far
    near.close()
    far.close()


def send(channel: Channel, head: Any, content: bytes | None = None) -> int:
    """Sends a message; returns the id of the segment that its body lies in, 0 for none."""
    body = None
    if content is not None:
        body = channel.body(len(content))
        body.view[:] = content
    segment = body.segment.id if body is not None and body.segment is not None else 0
    channel.transmit(*channel.encode(head, body))
    return segment


def test_small_bodies_travel_in_their_message(ends: tuple[Channel, Channel]) -> None:
    near, far = ends
    assert send(near, ["head", 1], b"x" * INLINE) == 0
    head, body = far.receive() or (None, None)
    assert head == ("head", 1)
    assert body == b"x" * INLINE
    assert send(near, ["no body"]) == 0
    assert far.receive() == (("no body",), None)


def test_a_message_can_be_waited_for_and_those_before_it_are_received_later(ends: tuple[Channel, Channel]) -> None:
    near, far = ends
    far.wait_at_most(0.05)
    for head, content in ((["do", 1], b"x" * (INLINE + 1)), (["do", 2], None), (["files", 3], None), (["do", 4], None)):
        send(near, head, content)
    assert far.receive_next("files") == (("files", 3), None)
    assert far.has_early
    assert far.receive() == (("do", 1), b"x" * (INLINE + 1))
    assert far.receive_next("files") is None  # in so long a time
    assert [far.receive(), far.receive()] == [(("do", 2), None), (("do", 4), None)]
    assert not far.has_early


def test_large_bodies_lie_in_memory_that_is_used_again_once_nobody_looks(ends: tuple[Channel, Channel]) -> None:
    near, far = ends
    size = INLINE + 1
    first = send(near, 1, b"a" * size)
    _, body = far.receive() or (None, None)
    assert body is not None
    assert body.readonly
    array = np.frombuffer(body[100:200], np.uint8)
    del body
    second = send(near, 2, b"b" * size)
    far.receive()
    send(far, "what is free")
    near.receive()
    assert second != first
    third = send(near, 3, b"c" * size)
    far.receive()
    assert third == second
    assert (array == ord("a")).all()
    del array
    gc.collect()
    send(far, "what is free")
    near.receive()
    assert {send(near, 4, b"d" * size), send(near, 5, b"e" * size)} == {first, second}


def test_files_of_a_message_that_is_never_sent_are_closed(ends: tuple[Channel, Channel]) -> None:
    """Of one for which the other end has no room they stay open: it is sent again."""
    near, far = ends
    near.sock.setblocking(False)
    before = open_files()
    with contextlib.suppress(BlockingIOError):
        while True:
            near.transmit(*near.encode("fills the socket"))
    waiting = near.encode("waits", near.body(INLINE + 1))
    with pytest.raises(BlockingIOError):
        near.transmit(*waiting)
    assert open_files() == before + len(near.pool.segments) + 1  # a mapped segment has a file of its own
    far.close()
    with pytest.raises(OSError, match=r"Broken pipe|reset"):
        near.transmit(*waiting)
    with pytest.raises(ValueError, match="a message of"):
        near.encode("long" * (64 << 10), near.body(INLINE + 1))
    assert open_files() == before + len(near.pool.segments) - 1  # the other end's


def test_a_room_that_is_given_back_is_used_again(ends: tuple[Channel, Channel]) -> None:
    near, _ = ends
    body = near.body(INLINE + 1)
    assert body.segment is not None
    number = body.segment.id
    body.discard()
    again = near.body(INLINE + 1)
    assert again.segment is not None
    assert again.segment.id == number


def test_idle_memory_is_bounded_and_the_other_end_lets_go_of_it(ends: tuple[Channel, Channel]) -> None:
    """Bodies of ever new sizes: what is kept for reuse stays under the bound, on both ends."""
    near, far = ends
    for n in range(40):
        body = near.body((10 << 20) + (n << 20))
        near.transmit(*near.encode(n, body))
        far.receive()
        send(far, "what is free")
        near.receive()
    near.body(0)
    send(near, "what is forgotten")
    far.receive()
    assert sum(segment.size for segment in near.pool.idle) <= MAX_IDLE
    assert len(far.maps) == len(near.pool.segments) < 20


def test_idle_memory_of_all_channels_of_a_process_has_one_bound() -> None:
    idle_memory = IdleMemory(10 << 20)
    pairs = [socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET) for _ in range(3)]
    channels = [(Channel(near, idle_memory), Channel(far)) for near, far in pairs]
    for near, far in channels:
        for content in (b"a" * (4 << 20), b"b" * (3 << 20)):
            send(near, 1, content)
            far.receive()
        send(far, "what is free")
        near.receive()
        near.body(0)
    assert idle_memory.nbytes == sum(segment.size for near, _ in channels for segment in near.pool.idle) <= 10 << 20
    assert channels[2][0].pool.idle, "the oldest ones went"
    assert not channels[0][0].pool.idle
    for near, far in channels:
        near.close()
        far.close()
    assert idle_memory.nbytes == 0


def test_trimming_frees_what_is_idle_on_both_ends_and_nothing_else(ends: tuple[Channel, Channel]) -> None:
    near, far = ends
    send(near, 1, b"a" * (1 << 20))
    send(near, 2, b"b" * (2 << 20))
    far.receive()
    _, body = far.receive() or (None, None)
    send(far, "what is free")
    near.receive()
    near.trim()
    send(near, "what is forgotten")
    far.receive()
    assert [segment.size for segment in near.pool.segments.values()] == [2 << 20]
    assert len(far.maps) == 1
    assert body == b"b" * (2 << 20)
    body.release()


def test_an_array_of_the_channel_is_sent_from_where_it_lies(ends: tuple[Channel, Channel]) -> None:
    near, far = ends
    array = near.array(1 << 20).view(np.float32)
    array[:] = np.arange(1 << 18)
    near.transmit(*near.encode(1, near.written([b"head", b"er", memoryview(array).cast("B"), b"end"])))
    array[5] = -1.0  # the receiver looks at the same memory
    _, body = far.receive() or (None, None)
    assert body is not None
    assert (bytes(body[:6]), bytes(body[-3:])) == (b"header", b"end")
    numbers = np.frombuffer(body, np.float32, count=1 << 18, offset=6)
    assert (numbers[:7] == [0, 1, 2, 3, 4, -1, 6]).all()
    assert (numbers[7:] == np.arange(7, 1 << 18)).all()
    assert len(near.pool.segments) == 1


def test_memory_of_an_array_is_used_again_when_neither_end_looks(ends: tuple[Channel, Channel]) -> None:
    near, far = ends

    def sent(array: np.ndarray[Any, Any]) -> memoryview:
        near.transmit(*near.encode(1, near.written([b"head", array.data])))
        _, body = far.receive() or (None, None)
        assert body is not None
        assert bytes(body[:4]) == b"head"
        assert body[4:] == array.data
        return body

    array = near.array(1 << 20)
    array[:] = 3
    bodies = [sent(array), sent(array)]
    assert len(near.pool.segments) == 2, "a body that is on its way keeps its beginning: the second is a copy"
    bodies.clear()
    send(far, "what is free")
    near.receive()
    sent(array)
    assert len(near.pool.segments) == 2
    send(far, "what is free")
    near.receive()
    near.body(0)
    assert len(near.pool.idle) == 1, "the array is still there"
    assert (array == 3).all()
    del array
    near.body(0)
    assert len(near.pool.idle) == 2
    near.array(1 << 20)
    assert len(near.pool.segments) == 2


def test_more_than_the_room_around_an_array_is_copied(ends: tuple[Channel, Channel]) -> None:
    near, far = ends
    arrays = [near.array(1 << 20) for _ in range(2)]
    for number, array in enumerate(arrays):
        array[:] = number
    for buffers in ([b"x" * (17 << 10), arrays[0].data], [arrays[0].data, arrays[1].data], [arrays[1][64:].data]):
        near.transmit(*near.encode(1, near.written(buffers)))
        _, body = far.receive() or (None, None)
        assert body == b"".join(buffers)
        body = None


def test_an_array_without_shared_memory_is_an_array_all_the_same(
    ends: tuple[Channel, Channel], monkeypatch: pytest.MonkeyPatch
) -> None:
    near, far = ends

    def refuse(length: int) -> None:
        raise OSError("no memory")

    with monkeypatch.context() as patches:
        patches.setattr(near.pool, "take", refuse)
        array = near.array(1 << 20)
    array[:] = 5
    near.transmit(*near.encode(1, near.written([array.data])))
    _, body = far.receive() or (None, None)
    assert body == array.data


def test_the_end_of_one_end_is_seen_by_the_other(ends: tuple[Channel, Channel]) -> None:
    near, far = ends
    near.close()
    assert far.receive() is None
    with pytest.raises(OSError, match="closed"):
        near.body(INLINE + 1)
