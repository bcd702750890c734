"""Answers that wait for the disk, on every way on which one leaves a session's process; what runs does not wait."""

import contextlib
import os
import select
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import pytest

import teletape_wire as wire
from serving import until
from teletape_engine.commands import Assign, Batch, Fetch, MakeVariable
from teletape_server.durable.folders import JOURNAL_SYNC, Folder
from teletape_server.durable.journal import Journal
from teletape_server.durable.open_logs import OpenLog
from teletape_server.handlers.methods import METHODS, Request, Result
from teletape_server.hosts.protocols import Start
from teletape_server.ipc.channel import Channel
from teletape_server.ipc.control import Watcher, socket_pairs
from teletape_server.ipc.heads import FRAME, Approval
from teletape_server.ipc.leases import Times
from teletape_server.ipc.page import Page
from teletape_server.ipc.token import Token
from teletape_server.worker import main
from teletape_server.worker.gate import Gate

X = np.array([1.0, 2.0], np.float32)
PARAMS = {"accept": wire.FRAME_TYPE, "encoding": None, "full": True, "now": 1000.0, "terms": (10.0, 2000.0, 0.0)}
APPROVAL = Approval(
    b"POST /batch HTTP/1.1\r\nContent-Length: ", b"\r\n\r\n", "batch", wire.FRAME_TYPE, {"accept": wire.FRAME_TYPE},
    b"HTTP/1.1 200 OK\r\nContent-Length: %(content-length)b\r\n\r\n", None, 4096, 4096, 4096, FRAME, wire.FRAME_TYPE
)  # fmt: skip


class Over(BaseException):
    """The server has ended the session."""


class Process(main.Process):
    """A process that goes on without its session."""

    def leave(self) -> NoReturn:
        raise Over


class Disk:
    """How logs come to the disk: when it may be, and whether that succeeds."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.turns = threading.Event()
        self.syncs, self.fails = 0, False
        self.threads: list[str] = []
        sync = Journal.sync

        def wait_and_sync(journal: Journal) -> None:
            self.syncs += 1
            self.threads.append(threading.current_thread().name)
            assert self.turns.wait(60)
            if self.fails:
                raise OSError(5, "the disk has failed")
            sync(journal)

        monkeypatch.setattr(Journal, "sync", wait_and_sync)


class Served:
    """A session's process, as a thread of this one; and the server's side of it."""

    def __init__(self, folder: Folder) -> None:
        ours, theirs = socket_pairs()
        self.control, self.channel = ours.control, Channel(ours.requests)
        self.log = OpenLog(folder, {"uid": "u", "epoch": 1, "level": JOURNAL_SYNC, "synced": None})
        self.page, page = Page.new()
        self.worker = worker = main.Worker(
            Channel(theirs.requests, takes_files=True), Watcher(theirs.control), Process()
        )

        def serve() -> None:
            with theirs.requests, theirs.control, contextlib.suppress(Over):
                worker.serve()
            worker.close()

        self.thread = threading.Thread(target=serve)
        self.thread.start()
        self.send(("open", Start("cpu", 1 << 24, 1 << 20, log=self.log).facts()), page, *self.log.files(page))
        assert self.reply()[0] == "ready"
        self.number = 0

    def send(self, head: Any, *files: int, body: bytes | None = None) -> None:
        content = None if body is None else self.channel.written([body])
        data, _ = self.channel.encode(head, content)
        self.channel.transmit(data, [*files])

    def do(self, method: str, params: dict[str, Any], body: bytes = b"", content_type: str = wire.FRAME_TYPE) -> None:
        self.number += 1
        self.send(("do", self.number, method, {**PARAMS, **params}, content_type, True, None), body=body)

    def frame(self, *commands: Any) -> None:
        self.do("batch", {}, b"".join(wire.encode_batch(Batch(commands)).buffers))

    def reply(self) -> Any:
        message = self.channel.receive()
        return None if message is None else message[0]

    @property
    def has_answered(self) -> bool:
        return bool(select.select([self.channel.sock], [], [], 0)[0])

    def ran(self) -> int:
        return self.page.durations.total

    def close(self) -> None:
        self.channel.sock.close()
        self.thread.join()
        self.log.close()
        self.control.close()


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Disk:
    monkeypatch.setattr(main, "limit_memory", lambda *_: None)
    return Disk(monkeypatch)


@pytest.fixture
def served(disk: Disk, tmp_path: Path) -> Iterator[Served]:
    folder = Folder(str(tmp_path / "session"))
    folder.create()
    served = Served(folder)
    try:
        yield served
    finally:
        disk.turns.set()
        served.close()


def test_requests_run_while_answers_wait_and_share_a_sync(served: Served, disk: Disk) -> None:
    served.frame(MakeVariable("w", X))
    until(lambda: disk.syncs == 1)  # of the first alone: the others come while it lasts
    for _ in range(4):
        served.frame(Assign("w", X, "add"))
    served.frame(Fetch("missing"))  # refused
    served.do("variables-get", {"id": "w", "accept": wire.JSON_TYPE, "if_none_match": None})
    until(lambda: served.ran() == 7)
    assert not served.has_answered
    disk.turns.set()
    assert [served.reply()[1] for _ in range(7)] == [1, 2, 3, 4, 5, 6, 7]
    assert disk.syncs == 2
    served.do("variables-get", {"id": "w", "accept": wire.JSON_TYPE, "if_none_match": None})
    assert served.reply()[1] == 8
    assert disk.syncs == 2


def test_a_lone_caller_waits_for_no_other_thread_unless_the_disk_is_slow(served: Served, disk: Disk) -> None:
    disk.turns.set()
    for seconds, thread in ((0.0, served.thread.name), (1.0, "gate")):
        gate = served.worker.answers.gate
        assert gate is not None
        served.frame(MakeVariable("w", X))
        served.reply()
        until(lambda gate=gate: not gate._is_awake)
        gate._seconds = seconds
        served.frame(MakeVariable("w", X))
        served.reply()
        assert disk.threads[-1] == thread


def test_an_answer_leaves_while_a_long_request_runs(
    served: Served, disk: Disk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As if it had come before the one before it was settled."""
    disk.turns.set()
    over = threading.Event()

    def run(session: Any, request: Request) -> Result:
        assert over.wait(60)
        return Result(wire.JSON_TYPE, [b"{}"], 2)

    monkeypatch.setitem(METHODS, "long", run)
    monkeypatch.setattr(Gate, "settle", lambda gate: None)
    served.frame(MakeVariable("w", X))
    served.do("long", {"accept": wire.JSON_TYPE})
    assert served.reply()[:2] == ("reply", 1)
    monkeypatch.undo()
    over.set()
    assert served.reply()[1] == 2


def test_a_stored_answer_waits_for_its_record(served: Served, disk: Disk) -> None:
    """A retry comes under its key while the first request waits."""
    body, create = b'{"id": "v", "value": 1}', {"id": None, "idempotency_key": "k", "collection": "/v1"}
    for _ in range(2):
        served.do("variables-create", {**create, "accept": wire.JSON_TYPE}, body, wire.JSON_TYPE)
    until(lambda: served.ran() == 2)
    assert not served.has_answered
    disk.turns.set()
    first, second = served.reply(), served.reply()
    assert (first[2], second[4]["headers"]) == (None, {**first[4]["headers"], "Idempotent-Replayed": "true"})


@pytest.mark.parametrize("is_reclaimed", [False, True])
def test_an_answer_over_a_lent_connection_waits(served: Served, disk: Disk, is_reclaimed: bool) -> None:
    """The server may take the connection back meanwhile: then the answer is its."""
    served.do("attach", {"client": 2, "accept": wire.JSON_TYPE})
    caller, connection = socket.socketpair()
    token = Token.new()
    with caller, connection:
        served.send(("lend", 1, 0, APPROVAL, Times(0.0, 0.0, 0.0, 0.0)), os.dup(connection.fileno()), token.duplicate())
        batch = Batch((MakeVariable("w", X), Fetch("w")), client=2, seq=1, nonce=b"n" * 16)
        body = b"".join(wire.encode_batch(batch).buffers)
        caller.sendall(APPROVAL.before + b"%d" % len(body) + APPROVAL.after + body)
        until(lambda: served.ran() == 2)
        assert served.page.slot(0).number == 1
        assert not served.has_answered
        assert not select.select([caller], [], [], 0)[0]
        if is_reclaimed:
            assert token.take()
            served.send(("reclaimed", 1))
        disk.turns.set()
        assert served.reply()[1] == 1
        if is_reclaimed:
            messages = {served.reply()[:2] for _ in range(2)}
            assert messages == {("reclaimed", 1), ("reply", -1)}
            return
        answer = caller.recv(4096)
        assert answer.startswith(b"HTTP/1.1 200 OK")
        assert wire.decode_answer(answer.partition(b"\r\n\r\n")[2])[0].failure is None
        again = body.replace(b"n" * 16, b"m" * 16)
        assert wire.decode_prefix(again[: wire.PREFIX_LENGTH], max_header=4096).nonce == b"m" * 16
        caller.sendall(APPROVAL.before + b"%d" % len(again) + APPROVAL.after + again)  # served here again
        assert served.reply()[:2] == ("reply", -2)


def test_no_answer_leaves_when_the_disk_fails(served: Served, disk: Disk) -> None:
    served.frame(MakeVariable("w", X))
    served.do("variables-get", {"id": "w", "accept": wire.JSON_TYPE, "if_none_match": None})
    until(lambda: served.ran() == 2)
    disk.fails = True
    disk.turns.set()
    kind, why, may_be_by_request = served.reply()
    assert (kind, "the disk has failed" in why, may_be_by_request) == ("broken", True, False)
    assert served.reply() is None
