"""Sessions that last: what was answered is there after the end of their process, of the server, and of both at once."""

import asyncio
import logging
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any
from zlib import crc32

import httpx
import numpy as np
import pytest
from lasting import PATH, Lasting, X, fetched

from prepared import Prepared
from serving import Program, Server, ok, problem, until
from teletape_engine.commands import Assign, Call, Fetch, MakeVariable
from teletape_engine.commands.results import Answer
from teletape_server.administration.stored_sessions import stored_sessions
from teletape_server.durable import records
from teletape_server.durable.folders import FOLDER, Folder
from teletape_server.durable.open_logs import OpenLog
from teletape_server.durable.records import Kind
from teletape_server.hosts.running import Running, StoredQuestion, left_by
from teletape_server.ipc.leases import Terms
from teletape_server.sessions import store
from teletape_server.sessions.lifecycle import Phase, State
from teletape_server.sessions.record import SessionLimits, SessionRecord
from teletape_server.settings import Settings

LOOP = {
    "commands": [
        {
            "do": "function",
            "id": "step",
            "inputs": ["x"],
            "outputs": ["y"],
            "steps": [{"op": "sin", "inputs": ["x"], "outputs": ["y"]}],
        },
        {"do": "scan", "body": "step", "inputs": [2.5], "carried": 1, "length": 1_000_000_000, "outputs": ["last"]},
    ]
}


KEY = {"Idempotency-Key": "once"}


@pytest.fixture
def threads() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(8) as executor:
        yield executor


@pytest.fixture
def lasting(tmp_path: Path) -> Iterator[Lasting]:
    with Lasting(tmp_path).running() as lasting:
        yield lasting


def retried(program: Program, *commands: Any) -> Answer:
    """Sends the last batch again, as a client whose answer was lost."""
    program.seq -= 1
    return program.run(*commands)


# ----------------------------------------------------------------------------------------- the end of the process alone
def test_a_session_goes_on_when_its_process_dies(lasting: Lasting) -> None:
    program = lasting.create()
    step = (Assign("w", X, "add"), Fetch("w"))
    assert fetched(program.run(*step)) == [2.0, 4.0]
    etag = ok(lasting.http.get(f"{PATH}/variables/w")).headers["etag"]
    lasting.kill()
    assert fetched(retried(program, *step)) == [2.0, 4.0]
    assert fetched(program.run(*step)) == [3.0, 6.0]
    described = lasting.described()
    assert (described["state"], described["durability"], described["recovered"]["cut_bytes"]) == ("live", "journal", 0)
    assert described["disk_bytes"] > 0
    assert described["bytes_in_use"] > 0
    refused = lasting.http.put(f"{PATH}/variables/w", json={"value": [0, 0]}, headers={"If-Match": etag})
    problem(refused, 412, "precondition_failed")


def test_etags_survive(lasting: Lasting) -> None:
    lasting.create()
    etag = ok(lasting.http.get(f"{PATH}/variables/w")).headers["etag"]
    lasting.kill()
    assert ok(lasting.http.get(f"{PATH}/variables/w")).headers["etag"] == etag
    ok(lasting.http.put(f"{PATH}/variables/w", json={"value": [0, 0]}, headers={"If-Match": etag}))


def test_a_client_that_joins_later_has_a_number_of_its_own(lasting: Lasting) -> None:
    first = lasting.create()
    lasting.kill()
    second = Program(lasting.http, "demo")
    assert second.client > first.client
    second.run(Assign("w", X, "add"))
    first.run(Assign("w", X, "add"))


def test_a_client_that_joins_while_its_session_s_process_dies_keeps_its_number(lasting: Lasting) -> None:
    first = lasting.create()
    pid = lasting.entry.host.pid
    os.kill(pid, signal.SIGSTOP)
    second = Program(lasting.http, "demo")  # answered by the server, before the process has read it
    os.kill(pid, signal.SIGKILL)
    third = Program(lasting.http, "demo")
    assert first.client < second.client < third.client
    for program in (first, second, third):
        program.run(Assign("w", X, "add"))
    assert fetched(first.run(Fetch("w"))) == (4 * X).tolist()


def test_a_batch_of_a_client_that_a_power_cut_took_is_no_other_client_s(tmp_path: Path) -> None:
    """Nothing is left of the client, and what it sent comes late: its number is not given again."""
    with Lasting(tmp_path / "before").running() as lasting:
        lasting.create()
        shutil.copytree(tmp_path / "before" / FOLDER, tmp_path / "after" / FOLDER)
        lost = Program(lasting.http, "demo")
    with Lasting(tmp_path / "after").running() as lasting:
        other = Program(lasting.http, "demo")
        assert other.client > lost.client
        lost.http = lasting.http
        assert b"attach first" in lost.outcome(lost.batch(Assign("w", X, "add"))).content
        assert fetched(other.run(Fetch("w"))) == X.tolist()
        ok(lasting.http.post(f"{PATH}/park"))
        assert Program(lasting.http, "demo").client == other.client + 2, "nothing can be lost after an orderly end"


def test_without_a_log_a_session_ends_with_its_process(tmp_path: Path) -> None:
    with Lasting(tmp_path, durability="none").running() as lasting:
        lasting.create()
        lasting.kill()
        problem(lasting.http.get(PATH), 410, "session_ended")
        assert [path.name for path in (tmp_path / "sessions").iterdir()] == ["lock"]


def test_a_session_names_its_own_level(tmp_path: Path) -> None:
    with Lasting(tmp_path, durability="none").running() as lasting:
        program = lasting.create(durability="journal-sync")
        assert lasting.described()["durability"] == "journal-sync"
        program.run(Assign("w", X, "add"))
        lasting.kill()
        assert fetched(program.run(Fetch("w"))) == [2.0, 4.0]


def test_a_disk_that_fails_is_seen_and_another_log_begun(lasting: Lasting, monkeypatch: pytest.MonkeyPatch) -> None:
    program = lasting.create()

    def failing(file: int) -> None:
        raise OSError(5, "the disk has failed")

    with monkeypatch.context() as disk:
        disk.setattr(os, "fdatasync", failing)  # in the server's process
        program.run(Assign("w", X, "add"))
        until(lambda: "the disk has failed" in (lasting.described()["why"] or ""))
    assert lasting.described()["state"] == "live"

    def is_assigned() -> bool:  # another log is tried once a second
        answer = program.post(program.batch(Assign("w", X, "add")))
        program.seq -= not answer.is_success
        return answer.is_success

    until(is_assigned)
    assert fetched(program.run(Fetch("w"))) == [3.0, 6.0]
    until(lambda: lasting.described()["why"] is None)
    lasting.kill()
    assert fetched(program.run(Fetch("w"))) == [3.0, 6.0]


def test_two_servers_do_not_share_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "_LOCK_SECONDS", 0.0)
    with Lasting(tmp_path).running(), pytest.raises(OSError, match="another server has the folder"):
        store.DiskStore(str(tmp_path), 0.0)
    disk = store.DiskStore(str(tmp_path), 0.0)
    disk.close()
    with open(os.devnull) as another:  # it has the descriptor that the lock had
        disk.close()
        os.fstat(another.fileno())


def test_records_are_written_in_order_and_not_by_the_event_loop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk, written, turns = store.DiskStore(str(tmp_path), 0.0), list[int](), threading.Event()

    def slow(folder: Folder, facts: dict[str, Any]) -> None:
        assert turns.wait(60)
        written.append(facts["epoch"])

    monkeypatch.setattr(Folder, "write_manifest", slow)
    live = State(Phase.LIVE)
    record = SessionRecord("u", "local", "demo", "cpu", SessionLimits(1), 0.0, Terms(1.0, 2.0), "journal", state=live)
    for epoch in (1, 2, 3):
        disk.put(replace(record, epoch=epoch))
        disk.put(replace(record, epoch=epoch, state=live.then(Phase.PARKING)))  # the next server takes it for parked
    assert written == []
    turns.set()
    asyncio.run(disk.settled(record))
    assert written == [1, 2, 3]
    disk.close()


def test_a_session_that_cannot_be_kept_is_not_created(lasting: Lasting, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(folder: Folder, facts: dict[str, Any]) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(Folder, "write_manifest", full)
        detail = problem(lasting.http.post("/v1/sessions", json={"id": "new"}), 503, "overloaded")["detail"]
        assert "could not be written down" in detail
        assert ok(lasting.http.get("/v1/sessions")).json()["sessions"] == []
    ok(lasting.http.post("/v1/sessions", json={"id": "new"}))


def test_while_its_folder_is_away_a_session_is_not_damaged(lasting: Lasting) -> None:
    """As if its disk had to be mounted."""
    program = lasting.create()
    ok(lasting.http.post(f"{PATH}/park"))
    folder = Path(lasting.server.settings.data_dir) / "sessions"
    folder.rename(folder.with_name("away"))
    assert "No such file" in problem(lasting.http.get(f"{PATH}/variables"), 503, "overloaded")["detail"]
    assert not folder.exists()
    folder.with_name("away").rename(folder)
    assert fetched(program.run(Fetch("w"))) == X.tolist()


def test_a_session_is_found_only_once_it_is_written_down(lasting: Lasting, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else another caller could work in a session that then ends, since it cannot be written down."""
    is_reached, is_released, write = threading.Event(), threading.Event(), Folder.write_manifest

    def slow(folder: Folder, facts: dict[str, Any]) -> None:
        is_reached.set()
        assert is_released.wait(60)
        write(folder, facts)

    with monkeypatch.context() as patched, ThreadPoolExecutor(2) as threads:
        patched.setattr(Folder, "write_manifest", slow)
        creations = [threads.submit(lasting.http.post, "/v1/sessions", json={"id": "new"}) for _ in range(2)]
        try:
            assert is_reached.wait(60)
            problem(lasting.http.get("/v1/sessions/new"), 404, "unknown_session")
            assert not any(creation.done() for creation in creations)
        finally:
            is_released.set()
        assert sorted(creation.result().status_code for creation in creations) == [200, 201]
    ok(lasting.http.get("/v1/sessions/new"))


def test_a_server_without_a_folder_offers_none() -> None:
    server = Server(Settings())
    with server.running(), server.client() as http:
        refused = http.post("/v1/sessions", json={"id": "demo", "durability": "journal"})
        assert "--data-dir" in problem(refused, 422, "invalid_request")["detail"]
        assert ok(http.post("/v1/sessions", json={"id": "demo"})).json()["durability"] == "none"


def test_a_process_that_dies_twice_at_one_record_leaves_a_damaged_session(tmp_path: Path) -> None:
    """As one that a request kills, each time that it is sent: its files stay."""
    with Lasting(tmp_path, max_iterations=1 << 40).running() as lasting:
        lasting.create()
        for _ in range(2):
            until(lambda: lasting.entry.host is not None)
            ok(lasting.http.post(f"{PATH}/run", json=LOOP, headers={"Prefer": "respond-async"}))
            until(lambda: lasting.entry.host.facts().running == 1)
            lasting.kill()
        described = lasting.described()
        assert described["state"] == "damaged"
        assert "died 2 times" in described["why"]
        problem(lasting.http.get(f"{PATH}/variables/w"), 409, "session_damaged")
        assert described["disk_bytes"] > 0
        ok(lasting.http.post("/v1/sessions", json={"id": "another"}))


def test_what_waits_when_the_process_dies_is_done_by_the_next_one_and_once(
    tmp_path: Path, threads: ThreadPoolExecutor
) -> None:
    """With or without a key, and with a body in shared memory; what ran is for its caller to send again."""
    with Lasting(tmp_path, max_iterations=1 << 40).running() as lasting:
        program, http = lasting.create(), lasting.http
        large = np.arange(1 << 16, dtype=np.float32)
        running = threads.submit(http.post, f"{PATH}/run", json=LOOP)
        until(lambda: lasting.entry.host.facts().running == 1)
        requests: list[Callable[[], Any]] = [
            lambda: http.put(f"{PATH}/variables/w", json={"mode": "add", "value": [1, 1]}),
            lambda: http.get(f"{PATH}/variables/w"),
            lambda: http.put(f"{PATH}/variables/w", json={"mode": "add", "value": [1, 1]}, headers=KEY),
            lambda: program.run(MakeVariable("large", large)),
            lambda: http.post(f"{PATH}/run", json=LOOP),
        ]
        waiting: list[Future[Any]] = []
        for request in requests:
            waiting.append(threads.submit(request))
            until(lambda: lasting.entry.host.facts().waiting == len(waiting))
        lasting.kill()
        assert len(lasting.entry.running) == len(waiting)
        problem(running.result(), 503, "recovering")
        added, read, added_too = (ok(future.result()).json() for future in waiting[:3])
        assert (added["version"], read["value"]["data"], added_too["version"]) == (1, [2.0, 3.0], 2)
        waiting[3].result()
        until(lambda: lasting.entry.host.facts().running == 1)
        ok(http.post(f"{PATH}/cancel"))
        problem(waiting[4].result(), 409, "cancelled")
        assert fetched(program.run(Fetch("w"))) == [3.0, 4.0]
        assert fetched(program.run(Fetch("large"))) == large.tolist()


def test_what_waits_for_a_session_that_does_not_come_back_learns_why(
    tmp_path: Path, threads: ThreadPoolExecutor
) -> None:
    with Lasting(tmp_path, max_iterations=1 << 40).running() as lasting:
        lasting.create()
        for code in ("recovering", "session_damaged"):
            until(lambda: lasting.entry.host is not None)
            running = threads.submit(lasting.http.post, f"{PATH}/run", json=LOOP)
            until(lambda: lasting.entry.host.facts().running == 1)
            waiting = threads.submit(lasting.http.get, f"{PATH}/variables/w")
            until(lambda: lasting.entry.host.facts().waiting == 1)
            lasting.kill()
            problem(running.result(), 409 if code == "session_damaged" else 503, code)
            if code == "session_damaged":
                problem(waiting.result(), 409, code)
            else:
                ok(waiting.result())


@pytest.mark.parametrize(("is_running", "known", "left"), [(True, {1}, {1, 3}), (False, {1, 2}, {1, 2, 3})])
def test_the_request_at_which_a_process_ends_is_not_left(is_running: bool, known: set[int], left: set[int]) -> None:
    """One that has run is, if it is known again; one that the process has read itself cannot be."""

    async def numbers() -> set[int]:
        loop = asyncio.get_running_loop()
        requests = {number: Running(loop.create_future()) for number in (-5, 1, 2, 3)}
        for number in (-5, *known, 2):
            requests[number].question = lambda: StoredQuestion("run", {})
        others = left_by(requests, 2, is_running=is_running)
        return {number for number, running in requests.items() if running in others}

    assert asyncio.run(numbers()) == left


def test_a_process_that_is_killed_while_it_is_idle_is_started_again_each_time(lasting: Lasting) -> None:
    """No request is to blame, so the session is not damaged."""
    program = lasting.create()
    for _ in range(4):
        until(lambda: lasting.entry.host is not None)
        lasting.kill()
    until(lambda: lasting.entry.host is not None)
    assert fetched(program.run(Fetch("w"))) == X.tolist()


def test_a_session_whose_log_gives_other_values_has_diverged(lasting: Lasting, tmp_path: Path) -> None:
    """Another checksum of its variables is in the log than they have."""
    program = lasting.create()
    for _ in range(255):
        program.run(Assign("w", X, "add"))
    [path] = tmp_path.rglob("log-1.ttj")
    log = records.read(path.read_bytes())
    assert log is not None
    [record] = [record for record in log.records if record.kind is Kind.DIGEST]
    checksum = records.unpacked(record.payload)
    before, after = [
        records.written_record(record.number, record.synced, record.kind, records.packed(each))
        for each in (checksum, checksum ^ 1)
    ]
    with path.open("r+b") as file:
        file.seek(path.read_bytes().index(before))
        file.write(after)
    lasting.kill()
    until(lambda: lasting.described()["state"] == "diverged")
    assert f"at record {record.number}" in lasting.described()["why"]
    problem(lasting.http.get(f"{PATH}/variables/w"), 409, "session_damaged")


def test_a_process_that_dies_at_one_record_after_another_is_started_again(lasting: Lasting) -> None:
    program = lasting.create()
    for number in range(1, 4):
        program.run(Assign("w", X, "add"))
        lasting.kill()
        until(lambda: lasting.entry.host is not None)
        assert lasting.described()["state"] == "live", number
    assert fetched(program.run(Fetch("w"))) == [4.0, 8.0]


# ------------------------------------------------------------------------------------------------------ limits of disks
MIB = np.arange(1 << 18, dtype=np.float32)


@pytest.mark.parametrize("slow", [0.0, 0.3])
def test_a_log_that_is_as_long_as_it_may_be_is_replaced_by_what_the_session_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, slow: float
) -> None:
    """Also if the server takes long to open the files of the next log: requests wait for them."""
    advance = OpenLog.advance

    def opened(log: OpenLog, number: int) -> list[int]:
        time.sleep(slow)
        return advance(log, number)

    monkeypatch.setattr(OpenLog, "advance", opened)
    with Lasting(tmp_path, disk_limit=6 << 20).running() as lasting:
        program = lasting.create()
        program.run(MakeVariable("v", MIB))
        assert lasting.described()["disk_limit"] == 6 << 20
        for step in range(12):
            program.run(Assign("v", MIB + step))
        until(lambda: lasting.described()["disk_bytes"] < 9 << 20)  # with what is reserved


@pytest.mark.parametrize("limit", ["disk_limit", "disk_per_key"])
def test_the_files_of_a_session_and_of_a_key_are_limited_and_reads_go_on(tmp_path: Path, limit: str) -> None:
    with Lasting(tmp_path, **{limit: 6 << 20}).running() as lasting:
        program = lasting.create()
        ok(lasting.http.post("/v1/sessions", json={"id": "another"}))
        other = Program(lasting.http, "another")
        count = 0
        for count in range(20):
            answer = program.post(program.batch(MakeVariable(f"v{count}", MIB + count)))
            if not answer.is_success:
                break
        refusal = problem(answer, 507, "resource_exhausted")
        assert "disk_limit or by what the other sessions leave of disk_per_key" in refusal["detail"]
        details = refusal["details"]
        assert details["used"] + details["asked"] > details["limit"] > details["used"]
        assert count in range(1, 7)
        program.seq -= 1  # it was not executed
        assert ok(lasting.http.get(f"{PATH}/variables")).json()
        ok(lasting.http.get("/v1/sessions"))  # else it may take a second
        refused = other.post(other.batch(MakeVariable("w", MIB)))
        assert refused.is_success is (limit == "disk_limit")
        ok(lasting.http.delete(PATH))
        ok(lasting.http.get("/v1/sessions"))
        other.seq -= not refused.is_success
        other.run(MakeVariable("x", MIB))


def test_a_limit_of_the_files_counts_json_as_what_it_becomes(tmp_path: Path) -> None:
    with Lasting(tmp_path, disk_limit=6 << 20).running() as lasting:
        lasting.create()
        value = {"dtype": "float64", "shape": [1_200_000], "data": [1] * 1_200_000}  # 2.4 MB, then 9.6 MB
        answer = lasting.http.post(f"{PATH}/variables", json={"id": "v", "value": value})
        assert problem(answer, 507, "resource_exhausted")["title"] == "Out of memory or disk space"
        assert "quota" in lasting.described()["why"]
        assert lasting.described()["disk_bytes"] < 6 << 20


# ------------------------------------------------------------------------------------------------ the end of the server
def test_sessions_go_on_after_an_orderly_restart(tmp_path: Path) -> None:
    key = {"Idempotency-Key": "k"}
    with Lasting(tmp_path).running() as lasting:
        program = lasting.create()
        ok(lasting.http.post(f"{PATH}/extend", json={"seconds": 5000}))
        function = {"id": "f", "inputs": ["a"], "outputs": ["b"], "steps": [
            {"op": "mul", "inputs": ["a", 2], "outputs": ["b"]}
        ]}  # fmt: skip
        ok(lasting.http.post(f"{PATH}/functions", json=function))
        first = ok(lasting.http.post(f"{PATH}/variables", json={"id": "v", "value": 1}, headers=key))
        ends = lasting.described()["expires_at"]
    with Lasting(tmp_path).running() as lasting:
        [listed] = ok(lasting.http.get("/v1/sessions")).json()["sessions"]
        assert listed["state"] == "parked"
        assert listed["expires_at"] >= ends
        assert listed["ends_at"] == "9999-12-31T23:59:59.000Z"
        program.http = lasting.http
        assert fetched(program.run(Fetch("w"))) == X.tolist()
        again = ok(lasting.http.post(f"{PATH}/variables", json={"id": "v", "value": 1}, headers=key))
        assert (again.content, again.headers["idempotent-replayed"]) == (first.content, "true")
        assert ok(lasting.http.get(f"{PATH}/functions/f")).json()["inputs"] == ["a"]
        ok(lasting.http.delete(PATH))
    with Lasting(tmp_path).running() as lasting:
        assert ok(lasting.http.get("/v1/sessions")).json()["sessions"] == []


def test_a_parked_session_has_no_process_and_wakes(lasting: Lasting) -> None:
    program = lasting.create()
    entry = lasting.entry
    host = entry.host
    lasting.server.clock.ahead += 2000  # longer than it may be idle
    ok(lasting.http.get(PATH))
    until(lambda: entry.record.state.phase is Phase.PARKED)
    assert host.ended.done()
    assert lasting.described()["state"] == "parked"
    assert fetched(program.run(Fetch("w"))) == X.tolist()
    assert lasting.described()["state"] == "live"


def test_a_session_is_parked_by_request_as_often_as_one_likes(lasting: Lasting) -> None:
    program = lasting.create()
    host = lasting.entry.host
    for _ in range(2):
        parked = ok(lasting.http.post(f"{PATH}/park")).json()
        assert (parked["state"], parked["bytes_in_use"]) == ("parked", 0)
        assert parked["disk_bytes"] > 0
    assert host.ended.done()
    assert fetched(program.run(Fetch("w"))) == X.tolist()
    ok(lasting.http.post("/v1/sessions", json={"id": "forgetful", "durability": "none"}))
    assert ok(lasting.http.post("/v1/sessions/forgetful/park")).json()["state"] == "live"


def test_a_session_that_computes_is_parked_when_it_has_done_so(tmp_path: Path) -> None:
    with Lasting(tmp_path, patience=0.2, max_iterations=1 << 40).running() as lasting:
        program = lasting.create()
        ok(lasting.http.post(f"{PATH}/run", json=LOOP, headers={"Prefer": "respond-async"}))
        problem(lasting.http.post(f"{PATH}/park"), 429, "busy")
        assert lasting.described()["state"] == "live"
        ok(lasting.http.post(f"{PATH}/cancel"))
        until(lambda: lasting.http.post(f"{PATH}/park").is_success)
        assert lasting.described()["state"] == "parked"
        assert fetched(program.run(Fetch("w"))) == X.tolist()


def test_a_write_that_was_not_finished_is_cut_and_the_log_says_it(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with Lasting(tmp_path).running() as lasting:
        lasting.create()
        ok(lasting.http.post(f"{PATH}/park"))
    [log] = [path for path in tmp_path.rglob("log-2.ttj") if path.stat().st_size]
    data = log.read_bytes().rstrip(b"\0")
    log.write_bytes((data + b"\x99\0\0\0torn").ljust(log.stat().st_size, b"\0"))
    with Lasting(tmp_path).running() as lasting:
        ok(lasting.http.get(f"{PATH}/variables"))
        cut = lasting.described()["recovered"]["cut_bytes"]
    assert cut > 0
    assert f"{cut} bytes of a write that was not finished are cut" in caplog.text


def test_damaged_files_are_said_and_stay(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with Lasting(tmp_path).running() as lasting:
        lasting.create()
    [base] = [path for path in tmp_path.rglob("base-*.safetensors") if path.stat().st_size]
    data = bytearray(base.read_bytes())
    data[-1] ^= 1
    base.write_bytes(data)
    with Lasting(tmp_path).running() as lasting:
        ok(lasting.http.post("/v1/sessions", json={"id": "another"}))
        for _ in range(2):
            detail = problem(lasting.http.get(f"{PATH}/variables"), 409, "session_damaged")["detail"]
            assert f"base of the log has the CRC32 {crc32(data):08x}" in detail
        assert lasting.described()["state"] == "damaged"
    assert "is damaged: the base of the log has" in caplog.text
    assert base.read_bytes() == data
    data[-1] ^= 1
    base.write_bytes(data)
    with Lasting(tmp_path).running() as lasting:
        described = lasting.described()
        assert described["state"] == "damaged", "until it is tried again"
        assert "base of the log" in described["why"]
        ok(lasting.http.get(f"{PATH}/variables"))
        assert lasting.described()["state"] == "live"


def test_a_session_whose_log_is_gone_is_damaged_and_what_is_left_stays(tmp_path: Path) -> None:
    with Lasting(tmp_path).running() as lasting:
        lasting.create()
    [base] = [path for path in tmp_path.rglob("base-*.safetensors") if path.stat().st_size]
    data = base.read_bytes()
    for log in tmp_path.rglob("log-*.ttj"):
        log.unlink()
    with Lasting(tmp_path).running() as lasting:
        for _ in range(2):
            detail = problem(lasting.http.get(f"{PATH}/variables"), 409, "session_damaged")["detail"]
            assert "is lost" in detail
        assert lasting.described()["state"] == "damaged"
    assert base.read_bytes() == data


# ------------------------------------------------------------------------------------------------- logs that were left
@pytest.fixture
def left(tmp_path: Path) -> Path:
    """A folder for data as a server has left it that was killed: with a log, which no base replaces."""
    with Lasting(tmp_path / "before").running() as lasting:
        lasting.create()
        shutil.copytree(tmp_path / "before" / FOLDER, tmp_path / "left" / FOLDER)
    return tmp_path / "left"


def logs_to_run(folder: Path) -> list[bool]:
    return [session.folder.has_log_to_run() for session in stored_sessions(str(folder))]


def within(lasting: Lasting, work: Coroutine[Any, Any, None]) -> None:
    """Does something in the server's event loop."""
    asyncio.run_coroutine_threadsafe(work, lasting.server.loop()).result(60)


def wait_before_logs(monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    monkeypatch.setattr("teletape_server.sessions.hosting.backlog._PAUSE_SECONDS", seconds)


def test_a_log_that_was_left_is_run_after_the_start_and_a_base_written(
    left: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wait_before_logs(monkeypatch, 0.01)
    assert logs_to_run(left) == [True]
    with Lasting(left).running() as lasting:
        until(lambda: not lasting.described()["log_to_run"])
        assert lasting.described()["state"] == "parked"
        assert logs_to_run(left) == [False]
        assert ok(lasting.http.get(f"{PATH}/variables/w")).json()["value"]["data"] == X.tolist()


def test_parking_a_session_runs_a_log_that_was_left(
    left: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    wait_before_logs(monkeypatch, 600)
    [path] = [path for path in left.rglob("log-1.ttj") if path.stat().st_size]
    log = records.read(path.read_bytes())
    assert log is not None
    with path.open("rb+") as file:
        file.seek(log.end)
        file.write(b"\x99\0\0\0torn")
    with Lasting(left).running() as lasting:
        assert (lasting.described()["state"], lasting.described()["log_to_run"]) == ("parked", True)
        parked = ok(lasting.http.post(f"{PATH}/park")).json()
        assert (parked["state"], parked["log_to_run"]) == ("parked", False)
        assert "session demo of local: 8 bytes of a write that was not finished are cut" in caplog.text
        assert logs_to_run(left) == [False]
        assert ok(lasting.http.get(f"{PATH}/variables/w")).json()["value"]["data"] == X.tolist()
        assert not lasting.described()["log_to_run"]


def test_a_stop_runs_a_log_that_was_left(left: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wait_before_logs(monkeypatch, 600)
    with Lasting(left).running() as lasting:
        assert lasting.entry.host is None
    assert logs_to_run(left) == [False]


def test_a_stop_during_a_request_leaves_no_log(tmp_path: Path) -> None:
    with Lasting(tmp_path, patience=0.2, max_iterations=1 << 40).running() as lasting:
        lasting.create()
        ok(lasting.http.post(f"{PATH}/run", json=LOOP, headers={"Prefer": "respond-async"}))
        assert logs_to_run(tmp_path) == [True]
    assert logs_to_run(tmp_path) == [False]
    with Lasting(tmp_path).running() as lasting:
        assert ok(lasting.http.get(f"{PATH}/variables/w")).json()["value"]["data"] == X.tolist()


def test_a_session_that_was_deleted_before_its_log_is_run_leaves_nothing(
    left: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    wait_before_logs(monkeypatch, 0.5)
    with Lasting(left).running() as lasting:
        entry = lasting.entry
        ok(lasting.http.delete(PATH))
        within(lasting, lasting.server.app.state.registry.backlog.run(entry))
    assert [path.name for path in (left / FOLDER).iterdir() if path.is_dir()] == []
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING]


@pytest.mark.parametrize("is_there", [True, False])
def test_a_log_that_is_lost_is_found_before_a_request_comes(
    left: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, *, is_there: bool
) -> None:
    wait_before_logs(monkeypatch, 0.01)
    for path in left.rglob("log-*.ttj"):
        if is_there:
            os.truncate(path, 50)
        else:
            path.unlink()
    with Lasting(left).running() as lasting:
        until(lambda: lasting.described()["state"] == "damaged")
        assert not lasting.described()["log_to_run"]
    assert "keep logs" not in caplog.text, "no version can run it"


def test_a_stop_that_has_no_time_names_the_sessions_that_keep_their_logs_once(
    left: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    wait_before_logs(monkeypatch, 600)
    monkeypatch.setattr("teletape_server.sessions.registry._LOGS_SECONDS", 0.0)
    with Lasting(left).running() as lasting:
        within(lasting, lasting.server.app.state.registry.drain(0.0))
    assert caplog.text.count("1 sessions keep logs, which this version of the server alone can run: local:demo") == 1
    assert "exception was never retrieved" not in caplog.text
    assert logs_to_run(left) == [True]


def write_with_another_version(left: Path) -> tuple[Path, bytes]:
    """Changes the version that a log was written with; returns its file, and what was in it."""
    [path] = [path for path in left.rglob("log-1.ttj") if path.stat().st_size]
    data = path.read_bytes()
    log = records.read(data)
    assert log is not None
    head = records.written_head({**log.head, "versions": {**log.head["versions"], "teletape": "0.1"}})
    path.write_bytes((head + data[log.records[0].begin :]).ljust(len(data), b"\0")[: len(data)])
    return path, data


def test_a_stop_ends_the_try_of_a_log_of_another_version(left: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wait_before_logs(monkeypatch, 0.01)
    write_with_another_version(left)
    with Lasting(left).running() as lasting:
        until(lambda: lasting.described()["state"] == "damaged")

    async def begin_forever(*_: object) -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr("teletape_server.sessions.hosting.starts.Starts.host", begin_forever)
    with Lasting(left).running() as lasting:
        [entry] = lasting.server.app.state.registry.live.by_key.values()
        until(lambda: entry.parking is not None)
        trial = entry.parking
    assert trial.cancelled()
    assert logs_to_run(left) == [True]


def test_a_log_of_another_version_is_said_before_a_request_comes(
    left: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    wait_before_logs(monkeypatch, 0.01)
    path, data = write_with_another_version(left)
    with Lasting(left).running() as lasting:
        until(lambda: lasting.described()["state"] == "damaged")
        problem(lasting.http.get(f"{PATH}/variables"), 409, "session_damaged")
    assert "of local is damaged: record 1 was written with teletape '0.1' (now" in caplog.text
    path.write_bytes(data)
    with Lasting(left).running() as lasting:
        until(lambda: lasting.described()["state"] == "parked")
        assert lasting.described()["why"] is None


# ------------------------------------------------------------------------------------------------ the end of everything
class Command:
    """`teletape serve` in a process of its own."""

    def __init__(self, folder: Path) -> None:
        command = [sys.executable, "-P", "-m", "teletape_server.cli", "serve", "--port", "0", "--data-dir", str(folder)]
        self.process = Prepared(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        assert self.process.stdout is not None
        match = re.search(r"at (http://\S+)", self.process.stdout.readline())
        assert match is not None
        self.http = httpx.Client(base_url=match[1], timeout=60, trust_env=False)

    def kill(self) -> None:
        """Ends the server, and with it all processes of sessions, at once."""
        self.process.kill()
        self.process.communicate()
        self.http.close()


@pytest.mark.long
def test_a_training_ends_with_the_same_weights_however_often_everything_is_killed(tmp_path: Path) -> None:
    """Steps over REST and frames; before some of them the server and all processes of sessions end at once."""
    command = Command(tmp_path)
    try:
        ok(command.http.post("/v1/sessions", json={"id": "demo"}))
        program = Program(command.http, "demo")
        program.run(MakeVariable("w", X))
        for step in range(8):
            if step in (3, 4):
                command.kill()
                command = Command(tmp_path)
                program.http = command.http
            ok(command.http.post(f"{PATH}/tapes", json={"id": f"t{step}"}))
            ops = [{"op": "square", "inputs": ["w"], "outputs": [f"y{step}"]}]
            ok(command.http.post(f"{PATH}/tapes/t{step}/ops", json={"ops": ops}))
            question = {"targets": [f"y{step}"], "sources": ["w"], "outputs": [f"g{step}"]}
            ok(command.http.post(f"{PATH}/tapes/t{step}/gradient", json=question))
            program.run(Call("mul", (f"g{step}", RATE), (f"d{step}",)), Assign("w", f"d{step}", "sub"))
        assert fetched(program.run(Fetch("w"))) == _undisturbed(8)
    finally:
        command.kill()


RATE = np.array([0.3, 0.7], np.float32)


def _undisturbed(steps: int) -> list[float]:
    weights = X
    for _ in range(steps):
        weights = weights - (weights * np.float32(2)) * RATE
    numbers: list[float] = weights.tolist()
    return numbers
