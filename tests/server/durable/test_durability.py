"""A session's process writes down what requests do: whoever opens its files goes on, wherever the first one ended."""

import errno
import itertools
import json
import os
import random
import threading
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import teletape_wire as wire
from fuzz.sequences import Sequences
from fuzz.written_down import numbers
from serving import until
from teletape_engine.commands import (
    AccumulatorOpen,
    Assign,
    Batch,
    Call,
    CallFunction,
    Constant,
    Contents,
    DefineFunction,
    Fetch,
    Gradient,
    Jacobian,
    Jvp,
    MakeVariable,
    TapeOpen,
    TapePause,
    TapeWatch,
)
from teletape_engine.errors import CancelledError, ResourceExhaustedError, TeletapeError
from teletape_engine.session.session import Session
from teletape_server import (
    cli,
    handlers,  # noqa: F401  # it registers the methods
)
from teletape_server.durable import records
from teletape_server.durable.batches import Executed
from teletape_server.durable.disk import RealFile
from teletape_server.durable.folders import Folder
from teletape_server.durable.journal import Journal
from teletape_server.durable.open_logs import OpenLog
from teletape_server.durable.records import DamagedError, SessionDamagedError
from teletape_server.durable.rescue import rescue
from teletape_server.handlers.idempotency import Once, Refusal
from teletape_server.handlers.methods import METHODS, Request, Result
from teletape_server.ipc.leases import Terms
from teletape_server.ipc.page import Page
from teletape_server.sessions.lifecycle import Phase
from teletape_server.sessions.record import SessionLimits, SessionRecord
from teletape_server.worker import durability
from teletape_server.worker.durability import Durability
from teletape_wire.safetensors.reader import read_file

DEFAULTS = {"accept": wire.JSON_TYPE, "encoding": None, "full": True, "now": 1000.0, "terms": (10.0, 2000.0, 0.0)}


class Process:
    """What a session's process does with its log, and what the server does."""

    def __init__(
        self, folder: Path, epoch: int = 1, level: str = "journal", synced: int | None = None, last_client: int = 0
    ) -> None:
        self.folder = Folder(str(folder))
        self.folder.create()
        self.log = OpenLog(self.folder, {"uid": "u", "epoch": epoch, "level": level, "synced": synced})
        facts = {**self.log.facts, "last_client": last_client}
        self.page, page = Page.new()
        for file in self.log.files(page):  # of a process that dies before it begins
            os.close(file)
        self.files = files = self.log.files(page)
        os.close(page)
        self.session, self.once = Session(memory_limit=16 << 20, max_iterations=1000), Once(100.0)
        self.messages: list[Any] = []
        self.failures: list[str] = []
        self.takes_files = True
        try:
            self.durability = Durability(
                self.session,
                self.once,
                facts,
                files,
                self.page,
                self.messages.append,
                self.take_files,
                self.failures.append,
            )
        except (SessionDamagedError, OSError):
            self.log.close()
            raise
        self.log.note_begun()

    def request(self, method: str, params: dict[str, Any], body: bytes = b"", content_type: str = "") -> Any:
        """Runs a request as the process does; returns its result or its refusal."""
        how = {"content_type": content_type, "body": memoryview(body), "copy_below": 1 << 40}
        quiet = {"cancelled": params.pop("cancelled", lambda: False), "progress": lambda *_, **__: None}
        request = Request({**DEFAULTS, **params}, **how, **quiet, received=0.0)
        self.durability.begin(method, request)
        try:
            return self.once.run(
                params.get("idempotency_key"), method, request, lambda name, known: METHODS[name](self.session, known)
            )
        except TeletapeError as error:
            return Refusal(type(error), error.message, error.details)
        finally:
            self.durability.commit(request, is_frame=content_type == wire.FRAME_TYPE)
            if self.takes_files:
                self.take_files()

    def take_files(self) -> None:
        """Passes the files of the next log, if the process has begun a new one."""
        for _, number in self.messages:
            self.files += (new := self.log.advance(number))
            self.durability.add_files(number + 1, new)
        self.messages.clear()

    def frame(self, *commands: Any, **of: Any) -> Any:
        body = b"".join(wire.encode_batch(Batch(commands, **of)).buffers)
        return self.request("batch", {"accept": wire.FRAME_TYPE}, body, wire.FRAME_TYPE)

    def leave(self, send: Callable[[], None]) -> None:
        """Sends an answer when it may leave."""
        assert self.durability.gate is not None
        self.durability.gate.pass_on(send)
        self.durability.gate.settle()

    def die(self) -> None:
        """Ends without a word: what was written is what there is."""
        self.log.close()
        self.durability.close()


def again(process: Process, **how: Any) -> Process:
    process.die()
    return Process(Path(process.folder.path), **how)


X = np.array([1.0, 2.0], np.float32)


@pytest.fixture
def process(tmp_path: Path) -> Process:
    process = Process(tmp_path / "session")
    process.frame(MakeVariable("w", X))
    return process


def variable(process: Process, name: str = "w") -> list[float]:
    [result] = process.session.execute(Batch((Fetch(name),))).results
    process.durability._executed.clear()
    return np.asarray(result.array).tolist()


# ------------------------------------------------------------------------------------------------------------ sequences
@pytest.mark.parametrize("seed", range(12))
def test_random_batches_go_on_after_each_death(tmp_path: Path, seed: int) -> None:
    """Processes die after any request, some have written a base before; names and numbers are those of one session."""
    rng = random.Random(seed)
    batches = [wire.batch_from_json(batch) for batch in Sequences().draw(rng)["batches"]]
    undisturbed = Session(memory_limit=16 << 20, max_iterations=1000)
    process = Process(tmp_path / "session")
    for epoch, batch in enumerate(batches, 2):
        process.frame(*batch.commands, **_of(batch))
        undisturbed.execute(wire.decode_batch(b"".join(wire.encode_batch(batch).buffers)))
        if rng.random() < 0.3:
            process.durability.checkpoint()
        if rng.random() < 0.5:
            process = again(process, epoch=epoch)
        assert repr(numbers(process.session)) == repr(numbers(undisturbed))
        process.durability._executed.clear()


def _of(batch: Batch) -> dict[str, Any]:
    names = ("releases", "temporaries", "on_failure", "replace")
    return {name: getattr(batch, name) for name in names}


# ----------------------------------------------------------------------------------------------------------- one by one
def test_a_retry_after_a_death_gets_the_first_answer(process: Process) -> None:
    process.frame(Assign("w", X, "add"))
    place = process.request("attach", {"client": 2})
    assert place.buffers
    batch = {"client": 2, "seq": 1, "nonce": b"n" * 16}
    first = process.frame(Assign("w", X, "add"), Fetch("w"), **batch)
    process = again(process)
    retried = process.frame(Assign("w", X, "add"), Fetch("w"), **batch)
    assert [_results(first), variable(process)] == [_results(retried), [3.0, 6.0]]
    assert process.session.last_client == 2 + 2 * durability._LOST_CLIENTS, "some may have joined in vain"
    process = again(process)
    assert process.session.last_client == 2 + 4 * durability._LOST_CLIENTS, "and some since then"
    process = again(process, last_client=600)
    assert process.session.last_client == 2 + 4 * durability._LOST_CLIENTS, "the server knows all that have joined"


def _results(result: Result) -> Any:
    answer, _ = wire.decode_answer(b"".join(result.buffers))
    return [np.asarray(fetched.array).tolist() for fetched in answer.results]


@pytest.mark.parametrize("has_base", [False, True])
def test_answers_under_a_key_survive(process: Process, has_base: bool) -> None:
    body = b'{"id": "v", "value": [1, 2.5]}'

    def create(process: Process, key: str = "k") -> Any:
        return process.request("variables-create", {"id": None, "idempotency_key": key, "collection": "/v1"}, body)

    def bad(process: Process) -> Any:
        return create(process, "another")

    first, refused = create(process), bad(process)
    assert isinstance(refused, Refusal)
    if has_base:
        assert process.durability.checkpoint()
    process = again(process)
    assert b"".join(create(process).buffers) == b"".join(first.buffers)
    assert bad(process) == refused
    assert variable(process, "v") == [1.0, 2.5]


def test_a_batch_that_was_stopped_is_stopped_there_again(process: Process) -> None:
    looks = iter([False, False, False])

    def stops() -> bool:
        return next(looks, True)

    body = b"".join(wire.encode_batch(Batch(tuple([Assign("w", X, "add")] * 10))).buffers)
    refusal = process.request("batch", {"accept": wire.FRAME_TYPE, "cancelled": stops}, body, wire.FRAME_TYPE)
    answer, _ = wire.decode_answer(b"".join(refusal.buffers))
    assert answer.failure is not None
    assert answer.failure.code == CancelledError.code
    moved = variable(process)
    assert moved != [1.0, 2.0]
    assert variable(again(process)) == moved


def test_what_a_stopped_command_had_assigned_is_there_again(process: Process) -> None:
    """A function is stopped between its steps: running it again would assign all of them."""
    steps = tuple([Assign("a", X, "add")] * 500)
    process.frame(DefineFunction("f", ("a",), (*steps, Call("identity", ("a",), ("b",))), ("b",)))
    looks = iter([False] * 3)
    body = b"".join(wire.encode_batch(Batch((CallFunction("f", ("w",), ("y",)),))).buffers)
    params = {"accept": wire.FRAME_TYPE, "cancelled": lambda: next(looks, True)}
    answer, _ = wire.decode_answer(b"".join(process.request("batch", params, body, wire.FRAME_TYPE).buffers))
    assert answer.failure is not None
    assert answer.failure.code == CancelledError.code
    moved = variable(process)
    assert 1.0 < moved[0] < 501.0
    version = process.session.version_of("w")
    process = again(process)
    assert (variable(process), process.session.version_of("w")) == (moved, version)


def test_repeated_batches_are_written_with_their_structure_once(process: Process) -> None:
    commands = (Call("mul", ("w", "w"), ("y",)), *[Call("tanh", ("y",), (f"y{n}",)) for n in range(20)])
    batch = Batch((*commands, Assign("w", "y19", "add")), ("y", *[f"y{n}" for n in range(20)]), 2, 1, b"a" * 16)
    process.request("attach", {"client": 2})
    marked = b"".join(wire.encode_batch(batch, keep=5).buffers)
    process.request("batch", {"accept": wire.FRAME_TYPE}, marked, wire.FRAME_TYPE)
    structures = wire.Structures()
    wire.decode_request(marked, structures)
    assert structures.find(2, 5).counts[1] == 21
    for seq in range(2, 6):
        contents = Contents(("w",), tuple([f"z{seq}.{n}" for n in range(21)]), (), ())
        frame = wire.encode_repeated(5, contents, client=2, seq=seq, nonce=bytes([seq]) * 16)
        _repeated(process, structures, b"".join(frame.buffers))
    before = variable(process)
    assert variable(again(process)) == before


def _repeated(process: Process, structures: wire.Structures, body: bytes) -> None:
    request = Request(
        {**DEFAULTS, "accept": wire.FRAME_TYPE},
        wire.FRAME_TYPE,
        memoryview(body),
        1 << 40,
        lambda: False,
        lambda *_, **__: None,
        0.0,
        structures=structures,
    )
    process.durability.begin("batch", request)
    METHODS["batch"](process.session, request)
    process.durability.commit(request, is_frame=True)


def test_what_only_reads_is_not_written(process: Process) -> None:
    number = process.page.written
    process.request("variables-get", {"id": "w", "accept": wire.JSON_TYPE, "full": False, "if_none_match": None})
    assert process.page.written == number
    process.frame(Assign("w", X))
    assert process.page.written == number + 1


def test_an_unfinished_write_is_cut_and_said(process: Process) -> None:
    process.frame(Assign("w", X, "add"))
    process.die()
    path = Path(process.folder.path) / "log-1.ttj"
    data = path.read_bytes()
    whole = len(data.rstrip(b"\0"))
    path.write_bytes(data[: whole - 20].ljust(len(data), b"\0"))
    assert process.folder.cut_bytes() > 0
    recovered = Process(Path(process.folder.path))
    assert variable(recovered) == [1.0, 2.0]
    assert recovered.durability.recovered is not None
    assert recovered.durability.recovered["cut_bytes"] > 0


def test_damage_before_the_end_is_an_error_and_changes_nothing(process: Process) -> None:
    for _ in range(3):
        process.frame(Assign("w", X, "add"))
        process.log.sync()
    process.die()
    path = Path(process.folder.path) / "log-1.ttj"
    data = bytearray(path.read_bytes())
    at = data.index(b"\x89TAPE\r\n\x1a", data.index(b"\x89TAPE\r\n\x1a") + 1)
    data[at + 70] ^= 1
    path.write_bytes(data)
    with pytest.raises(SessionDamagedError, match="cannot be read"):
        Process(Path(process.folder.path))
    assert path.read_bytes() == data


def test_the_last_good_values_can_be_saved(
    process: Process, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """From a base and a log that is damaged in the middle."""
    record = SessionRecord("u", "local", "demo", "cpu", SessionLimits(1 << 30), 0.0, Terms(1.0, 2.0), "journal")
    process.folder.write_manifest(asdict(record))
    process.frame(Assign("w", X, "add"))
    assert process.durability.checkpoint()
    process.take_files()
    for _ in range(3):
        process.frame(Assign("w", X, "add"))
        process.log.sync()
    process.die()
    path = Path(process.folder.path) / f"log-{process.folder.newest()}.ttj"
    data = bytearray(path.read_bytes())
    at = data.index(b"\x89TAPE\r\n\x1a", data.index(b"\x89TAPE\r\n\x1a") + 1)
    data[at + 70] ^= 1
    path.write_bytes(data)
    os.renames(process.folder.path, tmp_path / "data" / "sessions" / "u")
    where, out = ["--data-dir", str(tmp_path / "data")], tmp_path / "out"
    assert cli.main(["sessions", "list", *where]) == 0
    assert "local:demo  parked, log to run  journal" in capsys.readouterr().out
    assert cli.main(["sessions", "park", "demo", *where]) == 1
    assert "has a log to run, which a server does" in capsys.readouterr().err
    assert cli.main(["sessions", "rescue", "demo", *where, "--out", str(out)]) == 1
    assert "not all is there, or it is doubtful: record " in capsys.readouterr().err
    assert json.loads((out / "facts.json").read_text())["why"].startswith("record ")
    assert cli.main(["sessions", "rescue", "demo", *where, "--out", str(out)]) == 1
    assert "is not empty" in capsys.readouterr().err
    saved = read_file(memoryview((out / "values.safetensors").read_bytes()), copy_below=0).tensors
    assert saved["w"].tolist() == [3.0, 6.0]
    assert cli.main(["sessions", "end", "demo", *where]) == 0
    assert cli.main(["sessions", "show", "demo", *where]) == 1


def test_a_log_that_gives_other_values_has_diverged_and_both_can_be_saved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As if a sum were rounded otherwise with the same versions, after the first checksum."""
    monkeypatch.setattr(durability, "_DIGESTS", 2)
    process = Process(tmp_path / "session")
    process.frame(MakeVariable("w", X))
    for _ in range(5):
        process.frame(Assign("w", X, "add"))
    process.die()
    run_again, left = Executed.run_again, itertools.count()

    def otherwise(executed: Executed, session: Session) -> Any:
        answer = run_again(executed, session)
        if next(left) % 6 == 4:
            session.execute(Batch((Assign("w", X * np.float32(1e-6), "add"),)))
        return answer

    monkeypatch.setattr(Executed, "run_again", otherwise)
    with pytest.raises(SessionDamagedError, match="same versions") as raised:
        Process(Path(process.folder.path))
    assert raised.value.details["state"] == Phase.DIVERGED
    left = itertools.count()
    rescued = rescue(process.folder, str(tmp_path / "out"))
    assert "other values than the session had at record 9" in rescued.why

    def saved(name: str) -> list[float]:
        data = memoryview((tmp_path / "out" / name).read_bytes())
        return read_file(data, copy_below=0).tensors["w"].tolist()

    assert saved("values.safetensors") == [4.0, 8.0]
    ends = saved("diverged-values.safetensors")
    assert ends != [6.0, 12.0]
    assert ends == pytest.approx([6.0, 12.0])


def test_a_log_of_other_versions_is_not_run_again_but_its_base_is_read(
    process: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    process.frame(Assign("w", X, "add"))
    process.die()
    own = records.versions()
    monkeypatch.setattr(records, "versions", lambda: {**own, "numpy": "9.9"})
    with pytest.raises(SessionDamagedError, match=r"numpy '2\..*now '9.9'"):
        Process(Path(process.folder.path))
    monkeypatch.setattr(records, "versions", lambda: own)
    process = Process(Path(process.folder.path))
    assert process.durability.checkpoint()
    process.die()
    monkeypatch.setattr(records, "versions", lambda: {**own, "numpy": "9.9"})
    assert variable(Process(Path(process.folder.path))) == [2.0, 4.0]


def test_no_other_process_opens_a_log_while_one_has_it(process: Process) -> None:
    """As the next server does, while a process of the one before still computes."""
    process.log.close()  # the server has ended
    with pytest.raises(BlockingIOError):
        Process(Path(process.folder.path))
    process.frame(Assign("w", X, "add"))
    assert variable(again(process)) == [2.0, 4.0]


def test_a_base_has_live_tapes_and_a_tangent(process: Process) -> None:
    """A tape that recorded under another one answers after the death as it would have, and once more by a Jacobian."""
    process.frame(
        Constant("x", X),
        TapeOpen("outer", persistent=True),
        TapeOpen("t", persistent=True),
        TapeWatch("t", ("x",)),
        AccumulatorOpen("acc", ("x",), (X,)),
        Call("mul", ("x", "w"), ("y",)),
    )
    assert process.durability.checkpoint()
    process = again(process, epoch=2)
    process.frame(
        Gradient("t", ("y",), ("x", "w"), ("dx", "dw")),
        TapePause("t"),
        Gradient("outer", ("dx",), ("w",), ("dxdw",)),
        Jacobian("t", ("y",), ("w",), ("J",)),
        Jvp("acc", ("y",), ("dy",)),
    )
    assert [variable(process, name) for name in ("dx", "dw", "dxdw", "dy")] == [[1, 2], [1, 2], [1, 1], [1, 4]]
    assert variable(process, "J") == [[1, 0], [0, 2]]


def test_a_base_is_written_when_the_log_is_long(process: Process, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(durability, "_LEAST_LOG", 3000)
    process = again(process)
    for _ in range(50):
        process.frame(Assign("w", X, "add"))
    assert process.folder.newest() > 1
    files = [name for name in os.listdir(process.folder.path) if "-" in name]
    numbers_there = {int(name.partition("-")[2].partition(".")[0]) for name in files}
    assert numbers_there == {process.folder.newest(), process.folder.newest() + 1}
    assert variable(again(process)) == [51.0, 102.0]


# ---------------------------------------------------------------------------------------------------------------- blobs
LARGE = np.arange(1 << 18, dtype=np.float32)  # 1 MiB


def lengths(process: Process) -> tuple[int, int]:
    """Where the log ends, and the blobs."""
    return process.durability._journal.end, process.durability._blobs._places[-1].end


def test_a_large_tensor_is_written_once_whatever_refers_to_it(process: Process) -> None:
    """What is sent again adds a reference to the log, and a base of it refers to the same bytes."""
    process.frame(MakeVariable("large", LARGE))
    log, blobs = lengths(process)
    for _ in range(20):
        process.frame(Assign("large", LARGE, "set"))
    assert lengths(process)[0] - log < 20 * 500
    assert lengths(process)[1] == blobs == LARGE.nbytes
    assert process.durability.checkpoint()
    process.take_files()
    assert os.stat(process.folder.at("base-2.safetensors")).st_size < 20_000
    assert lengths(process)[1] == blobs
    process.frame(Assign("large", LARGE + 1, "set"), Assign("large", LARGE, "add"))
    process = again(process, epoch=2)
    assert variable(process, "large") == (LARGE + 1 + LARGE).tolist()


def test_what_neither_the_base_nor_the_log_refers_to_is_written_over(process: Process) -> None:
    for step in range(4):
        process.frame(Constant(f"x{step}", LARGE + step), releases=(f"x{step - 1}",) if step else ())
    assert lengths(process)[1] == 4 * LARGE.nbytes
    assert process.durability.checkpoint()
    process.take_files()
    for step in range(3):
        process.frame(Constant(f"y{step}", LARGE - step))
    assert lengths(process)[1] == 4 * LARGE.nbytes
    process.frame(releases=("x3", "y0", "y1"))
    process = again(process, epoch=2)
    assert variable(process, "y2") == (LARGE - 2).tolist()
    assert process.durability.checkpoint()
    assert lengths(process)[1] < 4 * LARGE.nbytes


def change_blob(process: Process) -> None:
    with open(process.folder.at("blobs"), "r+b") as file:
        file.write(b"changed")


@pytest.mark.parametrize("in_base", [False, True])
def test_a_changed_blob_is_damage_and_what_it_is_not_part_of_is_saved(
    process: Process, tmp_path: Path, in_base: bool
) -> None:
    process.frame(MakeVariable("small", X))
    process.frame(MakeVariable("large", LARGE))
    if in_base:
        assert process.durability.checkpoint()
        process.take_files()
    process.page.synced = process.page.written
    process.frame(Assign("small", X, "add"))  # its record says that the one before was on the disk
    process.die()
    change_blob(process)
    with pytest.raises(SessionDamagedError, match=r"blob [0-9a-f]{8} of 1048576 bytes, at byte 0 .* is not as it was"):
        Process(Path(process.folder.path), epoch=3)
    out = tmp_path / "out"
    rescued = rescue(process.folder, str(out))
    assert "blob" in rescued.why
    saved = read_file(memoryview((out / "values.safetensors").read_bytes()), copy_below=0).tensors
    assert saved["small"].tolist() == ([2.0, 4.0] if in_base else [1.0, 2.0])


def test_without_its_log_what_the_newest_base_has_is_saved(process: Process, tmp_path: Path) -> None:
    for _ in range(2):
        process.frame(Assign("w", X, "add"))
        assert process.durability.checkpoint()
        process.take_files()
    process.frame(Assign("w", X, "add"))
    process.die()
    log = Path(process.folder.at("log-3.ttj"))
    data = log.read_bytes()
    for damage in (lambda: log.write_bytes(b"?" + data[1:8]), log.unlink):
        damage()
        rescued = rescue(process.folder, str(tmp_path / "out"))
        assert rescued.why == "its log is lost, or the beginning of it: what requests did after the base is not there"
        saved = read_file(memoryview((tmp_path / "out" / "values.safetensors").read_bytes()), copy_below=0).tensors
        assert saved["w"].tolist() == [3.0, 6.0]
    for base in tmp_path.glob("session/base-*"):
        base.write_bytes(b"{}")
    with pytest.raises(DamagedError, match="neither a log with a head nor a base"):
        rescue(process.folder, str(tmp_path / "out"))
    log.write_bytes(data)
    Path(process.folder.at("base-3.safetensors")).unlink()
    with pytest.raises(DamagedError, match=r"base-3\.safetensors, from which its log goes on, is not there"):
        rescue(process.folder, str(tmp_path / "out"))


def test_a_record_whose_blob_was_lost_in_a_power_cut_is_cut_like_a_torn_one(process: Process) -> None:
    process.frame(Assign("w", X, "add"))
    process.frame(MakeVariable("large", LARGE))
    process.die()
    change_blob(process)
    process = Process(Path(process.folder.path), epoch=2)
    assert process.durability.recovered is not None
    assert process.durability.recovered["cut_bytes"] > 0
    assert variable(process) == [2.0, 4.0]
    process.frame(MakeVariable("large", LARGE))
    assert variable(again(process, epoch=3), "large") == LARGE.tolist()


def test_without_space_nothing_runs_and_reading_goes_on(process: Process, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(self: Journal, payload: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Journal, "reserve", full)
    with pytest.raises(ResourceExhaustedError, match="No space left"):
        process.frame(MakeVariable("large", LARGE))
    assert variable(process) == [1.0, 2.0]
    assert not process.session.knows("large")
    process.request("variables-get", {"id": "w", "accept": wire.JSON_TYPE, "full": False, "if_none_match": None})
    monkeypatch.undo()
    process.frame(Assign("w", X, "add"))
    assert variable(again(process)) == [2.0, 4.0]


def test_on_a_full_disk_clients_join_and_read_by_frames_as_far_as_space_is_reserved(
    process: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(self: RealFile, end: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(RealFile, "allocate", full)
    process.durability._journal.end = process.durability._journal.reserved - (60 << 10)
    process.durability._calm_until = 0
    client = {"client": 2, "nonce": b"n" * 16}
    assert process.request("attach", {"client": 2}).buffers
    assert process.page.refuses
    for seq in (1, 2):
        answer, _ = wire.decode_answer(b"".join(process.frame(Fetch("w"), seq=seq, **client).buffers))
        assert np.asarray(answer.results[0].array).tolist() == [1.0, 2.0]
        with pytest.raises(ResourceExhaustedError, match="No space left"):
            process.frame(Assign("w", X, "add"), Fetch("w"), seq=seq + 1, **client)
    process.durability._journal.end = process.durability._journal.reserved - 2000
    with pytest.raises(ResourceExhaustedError, match="No space left"):
        process.frame(Fetch("w"), seq=3, **client)
    monkeypatch.undo()
    assert process.frame(Assign("w", X, "add"), seq=3, **client)
    assert not process.page.refuses


def test_a_base_that_does_not_fit_gives_its_space_back(process: Process, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else each try would take more of what others need; also if what is there is doubtful and written elsewhere."""
    process.frame(MakeVariable("large", LARGE))
    process.frame(Assign("large", LARGE, "add"))
    blobs = Path(process.folder.at("blobs"))

    def full(self: RealFile, offset: int, parts: Any) -> None:
        self.write(offset, b"some of it")
        raise OSError(28, "No space left on device")

    for broken in ("", "the disk has failed"):
        process.durability._journal.broken = broken
        monkeypatch.setattr(RealFile, "write_parts", full)
        for _ in range(2):
            assert not process.durability.checkpoint()
            assert blobs.stat().st_size == LARGE.nbytes  # of the log's record
            assert not Path(process.folder.at("base-2.safetensors")).stat().st_size
        monkeypatch.undo()
    assert process.durability.checkpoint()
    process.take_files()
    assert variable(again(process), "large") == (LARGE + LARGE).tolist()


def test_on_a_full_disk_a_session_is_brought_back_with_what_its_log_has_reserved(
    process: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    while process.durability._journal.end < 600 << 10:  # a log that is written would reserve more
        process.frame(MakeVariable("most", np.zeros(60_000, np.float32)))
    process.die()

    def full(self: RealFile, end: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(RealFile, "allocate", full)
    process = Process(Path(process.folder.path), epoch=2)
    assert not process.page.refuses
    process.frame(Assign("w", X, "add"))
    assert variable(process) == [2.0, 4.0]


class Disk:
    """A disk of which a sync fails, or a write to a log, or both; the system then forgets what it could not write."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.fails, self.refuses = True, True
        sync, fdatasync, append = RealFile.sync, os.fdatasync, Journal.append

        def failing_sync(file: RealFile) -> None:
            self.check(is_sync=True)
            sync(file)

        def failing_fdatasync(file: int) -> None:
            self.check(is_sync=True)
            fdatasync(file)

        def failing_append(journal: Journal, *record: Any) -> int:
            self.check(is_sync=False)
            return append(journal, *record)

        monkeypatch.setattr(RealFile, "sync", failing_sync)
        monkeypatch.setattr(os, "fdatasync", failing_fdatasync)
        monkeypatch.setattr(Journal, "append", failing_append)
        monkeypatch.setattr(durability, "_TRY_SECONDS", 0.0)

    def check(self, *, is_sync: bool) -> None:
        if self.fails if is_sync else self.refuses:
            raise OSError(errno.EIO, "the disk has failed")


def test_after_a_failed_sync_nothing_is_changed_until_another_log_is_there(
    process: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    """That the next sync of the same log succeeds says nothing: what it could not write is forgotten."""
    disk = Disk(monkeypatch)
    disk.refuses = False
    process.frame(Assign("w", X, "add"))
    with pytest.raises(OSError, match="has failed"):
        process.log.sync()
    assert "has failed" in process.log.trouble
    with pytest.raises(ResourceExhaustedError, match="takes nothing more"):
        process.frame(Assign("w", X, "add"))
    assert process.request("variables-get", {"id": "w", "accept": wire.JSON_TYPE, "if_none_match": None}).buffers
    assert variable(process) == [2.0, 4.0]
    disk.fails = False
    process.log.sync()
    assert process.page.synced < process.page.written
    process.frame(Assign("w", X, "add"))
    assert process.folder.newest() == 2
    assert process.log.trouble == ""
    assert variable(again(process)) == [3.0, 6.0]


def test_after_a_failed_sync_of_blobs_the_log_is_lost_too(process: Process, monkeypatch: pytest.MonkeyPatch) -> None:
    process.frame(MakeVariable("large", np.ones(1 << 17, np.float32)))
    disk = Disk(monkeypatch)
    disk.refuses = False
    assert not process.durability.checkpoint()
    with pytest.raises(ResourceExhaustedError, match="blobs of the session"):
        process.frame(Assign("w", X, "add"))
    disk.fails = False
    process.frame(Assign("w", X, "add"))
    assert process.folder.newest() == 2
    assert variable(again(process)) == [2.0, 4.0]


def test_a_log_that_cannot_be_written_is_replaced(process: Process, monkeypatch: pytest.MonkeyPatch) -> None:
    disk = Disk(monkeypatch)
    disk.fails = False
    process.frame(Assign("w", X, "add"))  # its record could not be written: what the session has is
    assert process.folder.newest() == 2
    disk.fails = True
    with pytest.raises(OSError, match="has failed"):
        process.frame(Assign("w", X, "add"))
    monkeypatch.undo()
    assert variable(again(process)) == [2.0, 4.0]


def test_a_session_whose_disk_fails_is_brought_back_to_be_read(
    process: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    process.frame(Assign("w", X, "add"))
    disk = Disk(monkeypatch)
    process = again(process)
    assert variable(process) == [2.0, 4.0]
    assert process.log.trouble
    with pytest.raises(ResourceExhaustedError, match="takes nothing more"):
        process.frame(Assign("w", X, "add"))
    disk.fails = disk.refuses = False
    process.frame(Assign("w", X, "add"))
    assert not process.log.trouble
    assert variable(again(process)) == [3.0, 6.0]


def test_what_may_not_be_on_the_disk_is_not_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A session whose answers wait goes on from the last record whose answer may have left."""
    process = Process(tmp_path / "session", level="journal-sync")
    left = threading.Event()
    process.frame(MakeVariable("w", X))
    process.leave(left.set)
    assert left.wait(60)
    synced = process.log.synced
    disk = Disk(monkeypatch)
    disk.refuses = False
    process.frame(Assign("w", X, "add"))
    process.leave(lambda: pytest.fail("an answer left"))
    until(lambda: bool(process.failures))
    with pytest.raises(OSError, match="has failed"):
        again(process, level="journal-sync")
    process = Process(tmp_path / "session", level="journal-sync", synced=synced)
    assert variable(process) == X.tolist()
    assert process.durability.gate is not None
    assert process.durability.gate.is_open
    with pytest.raises(ResourceExhaustedError, match="takes nothing more"):
        process.frame(Assign("w", X, "add"))
    disk.fails = disk.refuses = False
    process.frame(Assign("w", X, "add"))
    left.clear()
    process.leave(left.set)
    assert left.wait(60)
    assert variable(again(process, level="journal-sync")) == [2.0, 4.0]


def test_a_head_that_may_be_on_the_disk_ends_the_log_before_it(
    process: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A base is there and its log cannot be begun: whoever comes next would go on from there."""
    begin = Journal.begin

    def failing(file: RealFile, *how: Any) -> Journal:
        begin(file, *how)
        disk.fails = True
        raise OSError(errno.EIO, "the disk has failed")

    monkeypatch.setattr(Journal, "begin", failing)
    disk = Disk(monkeypatch)
    disk.fails = disk.refuses = False
    assert not process.durability.checkpoint()
    with pytest.raises(ResourceExhaustedError, match="could not be begun"):
        process.frame(Assign("w", X, "add"))
    monkeypatch.undo()
    assert variable(again(process)) == [1.0, 2.0]


def test_the_log_that_a_process_goes_on_with_is_synced_before_the_server_knows(process: Process) -> None:
    """Records of it are not taken for synced because the log before it is."""
    assert process.durability.checkpoint()
    synced: list[str] = []
    process.takes_files = False  # the server has not heard of it
    process.frame(Assign("w", X, "add"))
    fdatasync = os.fdatasync

    def noted(file: int) -> None:
        synced.append(os.path.basename(os.readlink(f"/proc/self/fd/{file}")))
        fdatasync(file)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fdatasync", noted)
        process.log.sync()
    assert synced == ["blobs", "log-2.ttj"]
    assert process.page.synced == process.page.written


def test_a_long_request_is_written_in_parts(process: Process, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(durability, "_PART_SECONDS", 0.0)
    before = process.page.written
    how = {"content_type": "", "body": memoryview(b""), "copy_below": 0, "cancelled": bool, "progress": bool}
    process.durability.begin("train", Request({}, **how, received=0.0))
    for _ in range(4):
        process.session.execute(Batch((Assign("w", X, "add"),)))
    assert process.page.written == before + 2
    assert variable(again(process)) == [5.0, 10.0]


def test_files_of_a_log_that_is_closed_are_not_opened_any_more(process: Process) -> None:
    """They are the next one's, which may have written to them."""
    process.takes_files = False
    process.durability.checkpoint()
    process.die()
    names = sorted(os.listdir(process.folder.path))
    assert process.log.advance(2) == []
    assert sorted(os.listdir(process.folder.path)) == names


def test_files_that_cannot_be_opened_do_not_keep_the_log_from_the_next_process(
    process: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    process.die()
    opened, facts = os.open, {"uid": "u", "epoch": 2, "level": "journal"}
    for name in ("base-2", "log-2"):

        def full(path: str, *arguments: Any, name: str = name) -> int:
            if name in path:
                raise OSError(errno.ENOSPC, "no space")
            return opened(path, *arguments)

        with monkeypatch.context() as patch:
            patch.setattr(os, "open", full)
            with pytest.raises(OSError, match="no space"):
                OpenLog(process.folder, facts)
    assert variable(Process(Path(process.folder.path), epoch=2)) == X.tolist()
