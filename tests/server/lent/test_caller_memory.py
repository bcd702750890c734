"""Frames and answers in memory of a caller on the same machine: what is used, what is not, and what cannot do harm."""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import mmap
import os
import socket
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import teletape_wire as wire
from serving import Program, needs_exchange, ok
from teletape_engine.commands import Constant, Fetch
from teletape_server.connections.caller_memory import CallerMemory, MemoryRefusedError
from unix_server import UnixServer

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="other systems have no files in memory")

MIB = 1 << 20
SIZE = 2 * MIB
FRAME, ANSWER = "Teletape-Frame-Memory", "Teletape-Answer-Memory"


class File:
    """A file in memory."""

    def __init__(self, content: bytes, *, seals: int = fcntl.F_SEAL_SHRINK) -> None:
        self.number = os.memfd_create("test", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        os.write(self.number, content)
        if seals:
            fcntl.fcntl(self.number, fcntl.F_ADD_SEALS, seals)
        self.inode = os.fstat(self.number).st_ino
        _opened.append(self)

    def part(self, position: int, nbytes: int, offset: int = 0) -> str:
        return f"{self.number}:{self.inode}:{offset}:{position}:{nbytes}"

    def room(self, nbytes: int) -> str:
        return f"{self.number}:{self.inode}:{nbytes}"

    def content(self) -> bytes:
        return os.pread(self.number, os.fstat(self.number).st_size, 0)


_opened: list[File] = []


@pytest.fixture(autouse=True)
def files() -> Iterator[None]:
    """Closes the files of a test."""
    yield
    while _opened:
        os.close(_opened.pop().number)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[UnixServer]:
    path = tmp_path_factory.mktemp("unix") / "s"
    with UnixServer(path, max_body=16 * MIB).running() as running:
        yield running  # type: ignore[misc]


@pytest.fixture
def program(server: UnixServer) -> Iterator[Program]:
    with server.client() as http:
        session = ok(http.post("/v1/sessions", json={})).json()["id"]
        yield Program(http, session)
        http.delete(f"/v1/sessions/{session}")


ARRAY = np.random.default_rng(0).random(SIZE // 4, dtype=np.float32)


class Split:
    """A batch that makes ARRAY the value 1 and fetches its first element's batch, with the array's bytes apart."""

    def __init__(self, program: Program) -> None:
        batch = program.batch(Constant(1, ARRAY), Constant(2, ARRAY[:7]))
        self.program = program
        self.frame = b"".join(wire.encode_batch(batch).buffers)
        self.at = self.frame.index(ARRAY.tobytes())
        self.rest = self.frame[: self.at] + self.frame[self.at + SIZE :]

    def post(self, parts: str, body: bytes | None = None, **headers: str) -> Any:
        headers |= {"Content-Type": wire.FRAME_TYPE, "Accept": wire.FRAME_TYPE, FRAME: parts}
        return self.program.http.post(self.program.path, content=self.rest if body is None else body, headers=headers)


def value(program: Program, id: int = 1) -> Any:
    (fetched,) = program.run(Fetch(id)).results
    return fetched.array  # type: ignore[union-attr]


# ------------------------------------------------------------------------------------------------------------- frames
@needs_exchange
def test_a_part_of_a_frame_is_in_memory(program: Program) -> None:
    split, file = Split(program), File(ARRAY.tobytes())
    wire.decode_answer(ok(split.post(file.part(split.at, SIZE))).content)
    assert np.array_equal(value(program), ARRAY)
    assert np.array_equal(value(program, 2), ARRAY[:7])


@needs_exchange
def test_parts_of_parts(program: Program) -> None:
    """Any cut of a frame after its prefix, from several files."""
    split = Split(program)
    cuts = [(64, 80), (80, split.at + 5), (split.at + 1000, split.at + SIZE // 2), (len(split.frame) - 3, 0)]
    cuts[-1] = (cuts[-1][0], len(split.frame))
    first, second = File(b"12345" + split.frame), File(split.frame)
    parts = [(first.part(a, b - a, 5 + a) if i % 2 else second.part(a, b - a, a)) for i, (a, b) in enumerate(cuts)]
    body, end = b"", 0
    for a, b in cuts:
        body, end = body + split.frame[end:a], b
    ok(split.post(", ".join(parts), body))
    assert np.array_equal(value(program), ARRAY)


@needs_exchange
def test_what_the_caller_writes_later_changes_nothing(program: Program) -> None:
    split, file = Split(program), File(ARRAY.tobytes())
    ok(split.post(file.part(split.at, SIZE)))
    os.pwrite(file.number, bytes(SIZE), 0)
    assert np.array_equal(value(program), ARRAY)


@needs_exchange
def test_bytes_that_are_not_those_of_the_checksum_are_refused(program: Program) -> None:
    split, file = Split(program), File(bytes(SIZE))
    assert split.post(file.part(split.at, SIZE)).json()["code"] == "corrupt_frame"
    ok(split.post(File(ARRAY.tobytes()).part(split.at, SIZE)))  # the same batch, which has not run
    assert np.array_equal(value(program), ARRAY)


def _plain(tmp_path: Path) -> int:
    path = tmp_path / "plain"
    path.write_bytes(ARRAY.tobytes())
    return os.open(path, os.O_RDWR)


def _fifo(tmp_path: Path) -> int:
    os.mkfifo(tmp_path / "fifo")
    return os.open(tmp_path / "fifo", os.O_RDONLY | os.O_NONBLOCK)


def _deleted(tmp_path: Path) -> int:
    path = tmp_path / "memfd:test"
    path.write_bytes(ARRAY.tobytes())
    file = os.open(path, os.O_RDWR)
    path.unlink()
    return file


OTHERS: dict[str, Callable[[Path], int]] = {
    "a file on a disk": _plain,
    "a deleted file": _deleted,
    "a named pipe": _fifo,
    "a pipe": lambda _: os.pipe()[0],
    "a directory": lambda path: os.open(path, os.O_RDONLY),
    "a device": lambda _: os.open("/dev/zero", os.O_RDONLY),
    "a socket": lambda _: socket.socket().detach(),
    "an eventfd": lambda _: os.eventfd(0),
    "nothing": lambda _: 999,
}


@needs_exchange
@pytest.mark.parametrize("kind", OTHERS)
def test_only_files_in_memory_are_opened(program: Program, tmp_path: Path, kind: str) -> None:
    number = OTHERS[kind](tmp_path)
    split = Split(program)
    try:
        inode = os.fstat(number).st_ino
    except OSError:
        inode = 1
    assert split.post(f"{number}:{inode}:0:{split.at}:{SIZE}").status_code == 400
    ok(split.post(File(ARRAY.tobytes()).part(split.at, SIZE)))
    with contextlib.suppress(OSError):
        os.close(number)


WRONG: dict[str, Callable[[Split, File], str]] = {
    "another inode": lambda split, file: f"{file.number}:{file.inode + 1}:0:{split.at}:{SIZE}",
    "beyond its end": lambda split, file: file.part(split.at, SIZE, 1),
    "far beyond its end": lambda split, file: file.part(split.at, SIZE, 10**17),
    "longer than the frame": lambda split, file: file.part(len(split.rest) + 10, SIZE),
    "twice": lambda split, file: f"{file.part(split.at, SIZE)},{file.part(split.at, SIZE)}",
    "before the prefix's end": lambda split, file: file.part(63, SIZE),
    "empty": lambda split, file: file.part(split.at, 0),
    "negative": lambda split, file: f"{file.number}:{file.inode}:0:-1:{SIZE}",
    "no number": lambda split, file: "a:b:c:d:e",
    "no part": lambda split, file: "",
    "a very large number": lambda split, file: f"{file.number}:{'9' * 400}:0:{split.at}:{SIZE}",
    "too many": lambda split, file: ",".join([file.part(split.at + i, 1) for i in range(65)]),
    "more than a body": lambda split, file: file.part(split.at, 10**15),
}


@needs_exchange
@pytest.mark.parametrize("fault", WRONG)
def test_what_is_named_wrongly_is_refused(program: Program, fault: str) -> None:
    split, file = Split(program), File(ARRAY.tobytes())
    assert split.post(WRONG[fault](split, file)).status_code in (400, 413)
    ok(split.post(file.part(split.at, SIZE)))
    assert np.array_equal(value(program), ARRAY)


@pytest.mark.parametrize("seals", [0, fcntl.F_SEAL_GROW])
def test_a_file_that_may_shrink_is_not_used(program: Program, seals: int) -> None:
    split = Split(program)
    assert split.post(File(ARRAY.tobytes(), seals=seals).part(split.at, SIZE)).status_code == 400


@needs_exchange
def test_a_hole_in_the_file_is_zeros(program: Program) -> None:
    split, file = Split(program), File(ARRAY.tobytes())
    libc, keep_size, punch = ctypes.CDLL(None), 1, 2
    assert not libc.fallocate(file.number, keep_size | punch, ctypes.c_long(0), ctypes.c_long(SIZE))
    assert split.post(file.part(split.at, SIZE)).json()["code"] == "corrupt_frame"


@needs_exchange
def test_a_frame_must_begin_in_the_body(program: Program) -> None:
    split = Split(program)
    file = File(split.frame)
    assert split.post(file.part(0, len(split.frame)), b"").status_code == 400
    assert split.post(file.part(64, len(split.frame) - 64, 64), split.frame[:63]).status_code == 400
    ok(split.post(file.part(64, len(split.frame) - 64, 64), split.frame[:64]))


def test_memory_counts_as_a_body(program: Program) -> None:
    split, file = Split(program), File(bytes(16 * MIB))
    assert split.post(file.part(split.at, 16 * MIB)).status_code in (400, 413)


@pytest.mark.parametrize("name", ["X-Forwarded-For", "Via", "Forwarded", "X-Real-IP"])
def test_a_proxys_memory_is_not_its_callers(program: Program, name: str) -> None:
    split, file = Split(program), File(ARRAY.tobytes())
    assert split.post(file.part(split.at, SIZE), **{name: "1.2.3.4"}).status_code == 400


def test_a_caller_that_leaves_harms_no_other(server: UnixServer, program: Program) -> None:
    for _ in range(5):
        split, file = Split(program), File(ARRAY.tobytes())
        head = (
            f"POST {program.path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: {wire.FRAME_TYPE}\r\n"
            f"Accept: {wire.FRAME_TYPE}\r\nContent-Length: {len(split.rest)}\r\n"
            f"{FRAME}: {file.part(split.at, SIZE)}\r\n\r\n"
        )
        with socket.socket(socket.AF_UNIX) as sock:
            sock.connect(server.settings.unix)  # type: ignore[arg-type]
            sock.sendall(head.encode() + split.rest)
    assert ok(program.http.get("/v1/health"))


# ------------------------------------------------------------------------------------------------------------ answers
def fetch(program: Program, room: str) -> Any:
    frame = b"".join(wire.encode_batch(program.batch(Fetch(1))).buffers)
    headers = {"Content-Type": wire.FRAME_TYPE, "Accept": wire.FRAME_TYPE, ANSWER: room}
    return ok(program.http.post(program.path, content=frame, headers=headers))


@needs_exchange
def test_a_large_answer_is_put_into_memory(program: Program) -> None:
    program.run(Constant(1, ARRAY))
    file = File(bytes(SIZE + MIB))
    response = fetch(program, file.room(SIZE + MIB))
    assert response.content == b""
    answer, _ = wire.decode_answer(file.content()[: int(response.headers[ANSWER])])
    assert np.array_equal(answer.results[0].array, ARRAY)  # type: ignore[union-attr, arg-type]


SEALED = 0x0002 | 0x0008  # F_SEAL_SHRINK, F_SEAL_WRITE
ROOMS: dict[str, Callable[[], str]] = {
    "too small": lambda: File(bytes(SIZE + MIB)).room(SIZE),
    "larger than the file": lambda: File(bytes(SIZE + MIB)).room(10 * MIB),
    "no number": lambda: "room",
    "another file": lambda: File(bytes(SIZE + MIB)).room(SIZE + MIB).replace(":", ":1", 1),
    "sealed": lambda: File(bytes(SIZE + MIB), seals=SEALED).room(SIZE + MIB),
    "may shrink": lambda: File(bytes(SIZE + MIB), seals=0).room(SIZE + MIB),
}


@pytest.mark.parametrize("kind", ROOMS)
def test_without_room_the_answer_is_in_the_body(program: Program, kind: str) -> None:
    program.run(Constant(1, ARRAY))
    response = fetch(program, ROOMS[kind]())
    assert ANSWER not in response.headers
    answer, _ = wire.decode_answer(response.content)
    assert np.array_equal(answer.results[0].array, ARRAY)  # type: ignore[union-attr, arg-type]
    assert not any(any(file.content()[:64]) for file in _opened)


def test_a_small_answer_is_in_the_body(program: Program) -> None:
    program.run(Constant(1, ARRAY[:100]))
    assert ANSWER not in fetch(program, File(bytes(SIZE)).room(SIZE)).headers


# ------------------------------------------------------------------------------------------------------------- callers
class Transport:
    """A transport of a socket."""

    def __init__(self, sock: socket.socket) -> None:
        self._socket = sock

    def get_extra_info(self, name: str) -> Any:
        return self._socket


def test_only_processes_of_the_same_user_are_looked_into(monkeypatch: pytest.MonkeyPatch) -> None:
    ours, theirs = socket.socketpair(socket.AF_UNIX)
    with ours, theirs, socket.socket() as tcp:
        assert CallerMemory.of(Transport(ours), MIB) is not None  # type: ignore[arg-type]
        assert CallerMemory.of(Transport(tcp), MIB) is None  # type: ignore[arg-type]
        uid = os.geteuid()
        monkeypatch.setattr(os, "geteuid", lambda: uid + 1)
        assert CallerMemory.of(Transport(ours), MIB) is None  # type: ignore[arg-type]


def test_a_connection_keeps_few_files_mapped() -> None:
    memory = CallerMemory(os.getpid(), MIB)
    files = [File(bytes([i]) * 4096) for i in range(40)]
    for _ in range(2):
        for i, file in enumerate(files):
            header = [(FRAME.lower().encode(), file.part(64, 4096).encode())]
            assert bytes(memory.named(header, 64).parts[0].memory[:1]) == bytes([i])
    assert len(memory._maps) <= 16
    assert all(isinstance(mapped, mmap.mmap) for mapped in memory._maps.values())
    with pytest.raises(MemoryRefusedError):
        memory.named([(FRAME.lower().encode(), File(bytes(2 * MIB)).part(64, 4096).encode())], 64)
