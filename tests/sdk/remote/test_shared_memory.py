"""Large tensors that a server on the same machine reads and writes in this process's memory; and what is used again."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from teletape.errors import TeletapeError

import teletape as tf
from serving import needs_exchange
from teletape.core.network import frame_memory, shared_memory
from teletape.core.network.frame_socket import Response
from teletape.core.program import host_memory
from teletape.core.sessions.current import use
from teletape.core.sessions.local import LocalSession
from teletape_server.connections.caller_memory import CallerMemory
from unix_server import UnixServer

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="other systems have no files in memory")

SIZE = 3 << 20


@pytest.fixture(autouse=True)
def idle(monkeypatch: pytest.MonkeyPatch) -> dict[int, list[Any]]:
    """No files are kept at first, and each size gets one at once."""
    files: dict[int, list[Any]] = {}
    monkeypatch.setattr(shared_memory, "_idle", files)
    monkeypatch.setattr(shared_memory, "_WANTED", 0)
    return files


class User:
    """Something that can send such memory."""


@pytest.fixture
def user() -> Iterator[User]:
    user = User()
    shared_memory.use(user)
    yield user
    shared_memory.end_use(user)


def file(size: int = SIZE) -> Any:
    array = shared_memory.empty(size)
    return None if array is None else shared_memory.file_of(array)


# --------------------------------------------------------------------------------------------------------------- files
def test_a_file_is_used_again_after_its_array_is_gone(user: User, idle: dict[int, list[Any]]) -> None:
    array = shared_memory.empty(SIZE)
    assert array is not None
    first = shared_memory.file_of(array)
    assert file() is not first
    view = array.view(np.float32)[5:]
    del array
    assert first not in [each for files in idle.values() for each in files]
    del view
    assert first in [each for files in idle.values() for each in files]


def test_there_are_no_files_without_a_user() -> None:
    assert shared_memory.empty(SIZE) is None
    assert shared_memory.file_at(shared_memory.copy(np.zeros(SIZE, np.uint8)).data) is None


def test_a_size_gets_a_file_when_it_is_wanted_again(user: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_memory, "_WANTED", 2)
    monkeypatch.setattr(shared_memory, "_wanted", shared_memory.Counter())
    monkeypatch.setattr(host_memory, "_idle", {})
    copies = [shared_memory.copy(np.zeros(SIZE, np.uint8)) for _ in range(2)]
    assert [shared_memory.file_at(copied.data) for copied in copies] == [None, None]
    copies.clear()
    assert any(host_memory._idle.values())
    assert [file() is None for _ in range(2)] == [False, False]
    assert not any(host_memory._idle.values())  # the files take the place of ordinary memory


def test_without_descriptors_memory_is_ordinary(user: User, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(size: int) -> Any:
        raise OSError("too many open files")

    monkeypatch.setattr(shared_memory, "File", fails)
    array = np.arange(SIZE, dtype=np.uint8)
    copied = shared_memory.copy(array)
    assert np.array_equal(copied, array)
    assert shared_memory.file_at(copied.data) is None


def test_files_are_kept_within_a_bound(user: User, monkeypatch: pytest.MonkeyPatch, idle: dict[int, list[Any]]) -> None:
    monkeypatch.setattr(shared_memory, "_MOST_IDLE", 10 << 20)
    arrays = [shared_memory.empty(SIZE) for _ in range(8)]
    arrays.clear()
    assert 0 < sum(size * len(files) for size, files in idle.items()) <= 10 << 20


def test_a_file_that_two_processes_have_is_not_used_again(user: User, idle: dict[int, list[Any]]) -> None:
    """After a fork both have its arrays."""
    array = shared_memory.empty(SIZE)
    file()
    assert any(idle.values())
    shared_memory._after_fork()
    assert not any(idle.values())
    del array
    assert not any(idle.values())
    file()
    assert any(idle.values())


def test_only_whole_files_are_named(user: User) -> None:
    array = shared_memory.empty(SIZE)
    assert array is not None
    ordinary = np.zeros(SIZE, np.uint8)
    short = frame_memory.without_shared([b"head", array.data, b"gap", ordinary.data, array.data[1:]], 3 * SIZE + 6)
    assert short is not None
    assert (short.length, len(short.buffers)) == (2 * SIZE + 6, 4)
    memfd = shared_memory.file_of(array)
    assert short.line == b"\r\nTeletape-Frame-Memory: %d:%d:0:4:%d" % (memfd.number, memfd.inode, SIZE)
    assert frame_memory.without_shared([b"head", ordinary.data], SIZE + 4) is None


def test_room_that_a_server_may_still_write_into_is_not_used_again(user: User, idle: dict[int, list[Any]]) -> None:
    room = frame_memory.room_for(SIZE)
    assert room is not None
    del room  # without an answer: an interrupt, or silence
    gc.collect()
    assert not any(idle.values())
    room = frame_memory.room_for(SIZE)
    assert room is not None
    assert room.answered(Response(202, "1", b"{}")).body == b"{}"
    del room
    assert any(idle.values())
    room = frame_memory.room_for(SIZE)
    assert room is not None
    with pytest.raises(frame_memory.httpx.RemoteProtocolError, match="an answer of"):
        room.answered(Response(200, None, b"", memory=1 << 40))


# ------------------------------------------------------------------------------------------------------------- sessions
@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[UnixServer]:
    with UnixServer(tmp_path_factory.mktemp("unix") / "s").running() as running:
        yield running  # type: ignore[misc]


@pytest.fixture
def session(server: UnixServer) -> Iterator[Any]:
    with tf.connect(server.url) as session:
        yield session
    use(LocalSession())


class Named:
    """Counts the parts of frames, and the rooms, that a server has used."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.parts = self.rooms = 0
        named = CallerMemory.named

        def counted(memory: CallerMemory, headers: Any, length: int) -> Any:
            result = named(memory, headers, length)
            self.parts += len(result.parts)
            self.rooms += bool(result.room.nbytes)
            return result

        monkeypatch.setattr(CallerMemory, "named", counted)


def roundtrips() -> None:
    draw = np.random.default_rng(0)
    v = tf.Variable(np.zeros(SIZE // 4, np.float32))
    for i in range(4):
        x, row = draw.random(SIZE // 4, np.float32), draw.random(10)
        v.assign(x)
        total = tf.constant(row) * 2.0
        x_before = x.copy()
        x[:] = 0  # the tensor is a copy
        y = v * 2.0
        assert np.array_equal(y.numpy(), x_before * 2)
        first = y.numpy()
        first[:] = i  # and so is what a read returns
        assert np.array_equal(y.numpy(), x_before * 2)
        assert np.array_equal(total.numpy(), row * 2)


@needs_exchange
def test_large_tensors_go_through_memory(session: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    named = Named(monkeypatch)
    roundtrips()
    assert named.parts >= 4
    assert named.rooms == 4


def test_a_server_that_uses_no_memory_gets_bodies(session: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CallerMemory, "of", lambda transport, most: None)
    roundtrips()
    assert not session.channel.http._shares
    named = Named(monkeypatch)
    roundtrips()
    assert (named.parts, named.rooms) == (0, 0)


def test_what_is_too_large_in_memory_is_so_in_a_body(server: UnixServer, session: Any) -> None:
    settings = vars(server.app.state.settings)
    settings["max_body"], before = SIZE // 2, settings["max_body"]
    try:
        x = tf.constant(np.zeros(SIZE, np.uint8))
        with pytest.raises(TeletapeError, match=str(SIZE // 2)):
            tf.sync()
    finally:
        settings["max_body"] = before
    assert x.shape == (SIZE,)
    assert (tf.constant(2.0) * 3.0).numpy() == 6.0
