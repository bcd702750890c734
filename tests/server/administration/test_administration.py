"""What an operator does: looks at sessions, parks and ends them; backs up, also while programs train, and restores."""

import json
import shutil
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from lasting import PATH, Lasting, X, fetched
from published_versions import filled

from serving import KEYS, Program, Server, ok, problem, until
from teletape_engine.commands import Assign, Fetch, MakeVariable
from teletape_server import cli
from teletape_server.administration.running_server import note_address
from teletape_server.durable import records
from teletape_server.settings import Settings

Run = Callable[..., str]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs a command that must end with a status; returns what it printed."""

    def run(*arguments: Any, status: int = 0) -> str:
        done, printed = cli.main([*map(str, arguments)]), capsys.readouterr()
        assert done == status, printed.err
        return printed.out + printed.err

    return run


def with_values(folder: Path, **values: Any) -> None:
    """Leaves sessions with a variable `w` each in a folder for data."""
    with Lasting(folder).running() as lasting:
        for name, value in values.items():
            ok(lasting.http.post("/v1/sessions", json={"id": name}))
            Program(lasting.http, name).run(MakeVariable("w", value))


def value(lasting: Lasting, session: str) -> list[float]:
    return fetched(Program(lasting.http, session).run(Fetch("w")))


# ----------------------------------------------------------------------------------------------------------- sessions
def test_the_command_finds_the_server_that_has_the_folder(tmp_path: Path, run: Run) -> None:
    where = ("--data-dir", tmp_path)
    with Lasting(tmp_path).running() as lasting:
        lasting.create()
        ok(lasting.http.post("/v1/sessions", json={"id": "forgetful", "durability": "none"}))
        assert "is starting or stopping" in run("sessions", "list", *where, status=1)
        note_address(str(tmp_path), lasting.server.url)
        live, forgetful = run("sessions", "list", *where).splitlines()
        assert live.startswith("local:demo  live  journal  ")
        assert forgetful.startswith("local:forgetful  live  none  ")
        for _ in range(2):
            assert run("sessions", "park", "demo", *where) == ""
        assert json.loads(run("sessions", "show", "demo", *where))["state"] == "parked"
        assert "local:forgetful is live, of durability none" in run("sessions", "park", "forgetful", *where, status=1)
        assert "name one session: local:demo" in run("sessions", "park", "dmeo", *where, status=1)
        run("sessions", "rescue", "demo", *where, "--out", tmp_path / "out")
        assert (tmp_path / "out" / "values.safetensors").exists()
        run("sessions", "end", "local:forgetful", *where)
        assert len(ok(lasting.http.get("/v1/sessions")).json()["sessions"]) == 1
    assert "local:demo  parked  journal" in run("sessions", "list", *where)
    assert run("sessions", "park", "demo", *where) == ""
    run("sessions", "end", "demo", *where)
    assert run("sessions", "list", *where) == ""


def test_what_is_no_session_s_folder_stays_and_hinders_no_other_one(
    tmp_path: Path, run: Run, caplog: pytest.LogCaptureFixture
) -> None:
    with_values(tmp_path, good=X, later=X, bad=X)
    sessions = tmp_path / "sessions"
    folders = {json.loads(path.read_bytes())["id"]: path.parent for path in sessions.glob("*/manifest.json")}
    manifest = json.loads((folders["later"] / "manifest.json").read_bytes())
    (folders["later"] / "manifest.json").write_text(json.dumps({**manifest, "of_a_later_version": 1}))
    (folders["bad"] / "manifest.json").write_text('{"owner": "local", "id": "bad"}')
    shutil.copytree(folders["good"], sessions / "copy")
    shutil.copytree(folders["good"], sessions / "0.gone")  # the server was killed while it removed that
    (sessions / "0" / "backups").mkdir(parents=True)
    (sessions / "notes.txt").write_text("a file of the operator's")
    listed = run("sessions", "list", "--data-dir", tmp_path)
    assert "local:bad  damaged  unknown" in listed
    assert "its manifest is none that this version reads (uid: Field required)" in listed
    assert "unknown:copy  damaged  unknown" in listed
    with Lasting(tmp_path).running() as lasting:
        assert [value(lasting, name) for name in ("good", "later")] == [X.tolist()] * 2
        problem(lasting.http.get("/v1/sessions/bad"), 404, "unknown_session")
    left = [record.getMessage() for record in caplog.records if "is left as it is" in record.getMessage()]
    assert [line.split(" ")[0] for line in left] == [
        *map(str, sorted([sessions / "0", folders["bad"], sessions / "copy", sessions / "notes.txt"]))
    ]
    assert not (sessions / "0.gone").exists()
    assert f"is that of the session in the folder {folders['good'].name}" in caplog.text
    run("sessions", "rescue", "bad", "--data-dir", tmp_path, "--out", tmp_path / "out")
    assert "bad is damaged: its manifest is none" in run(
        "backup", tmp_path / "backup", "--data-dir", tmp_path, status=1
    )
    assert "bad  would not go on: its" in run("upgrade", "--check", tmp_path / "backup", status=1)


def test_an_admin_s_key_sees_the_sessions_of_all(tmp_path: Path, run: Run) -> None:
    settings = Settings(data_dir=str(tmp_path), api_keys=KEYS, admins=frozenset({"ann"}), shutdown_grace=0.1)
    with Server(settings).running() as server, server.client("bob") as bob:
        ok(bob.post("/v1/sessions", json={"id": "his"}))
        assert "(--api-key, or TELETAPE_API_KEY)" in run("sessions", "list", "--url", server.url, status=1)
        where = ("--url", server.url, "--api-key", KEYS["ann"])
        assert "bob:his  live" in run("sessions", "list", *where)
        run("sessions", "park", "bob:his", *where)
        run("sessions", "end", "bob:his", *where)
        assert ok(bob.get("/v1/sessions")).json()["sessions"] == []
    assert "does not answer" in run("sessions", "list", *where, status=1)
    assert "--data-dir" in run("sessions", "list", status=1)


# ------------------------------------------------------------------------------------------------ backing up, restoring
def test_a_backup_while_a_program_trains_has_the_values_of_one_of_its_steps(tmp_path: Path, run: Run) -> None:
    data, backup, other = (tmp_path / name for name in ("data", "backup", "other"))
    with Lasting(data).running() as lasting:
        program = lasting.create()
        filled(data)  # as if it had been published
        done, stop = [0], threading.Event()

        def train() -> None:
            while not stop.is_set():
                program.run(Assign("w", X, "add"))
                done[0] += 1
                if done[0] % 50 == 0:
                    ok(lasting.http.post(f"{PATH}/park"))  # other files from then on

        thread = threading.Thread(target=train)
        thread.start()
        try:
            until(lambda: done[0] >= 20)
            before = done[0]
            run("backup", backup, "--data-dir", data)
            after = done[0] + 1  # one may be written and not answered
        finally:
            stop.set()
            thread.join()
        assert "local:demo  parked" in run("sessions", "list", "--data-dir", backup)
        assert "a server has" in run("restore", backup, "--data-dir", data, status=1)
    printed = run("restore", backup, "--data-dir", other)
    assert printed.startswith("1 session, 1 published function and 0 keys, ")
    with Lasting(other).running() as lasting:
        assert lasting.described()["state"] == "parked"
        steps = [(X + X * np.float32(step)).tolist() for step in range(before, after + 1)]
        assert value(lasting, "demo") in steps
        assert lasting.described()["recovered"]["cut_bytes"] == 0
        assert ok(lasting.http.get("/v1/published/line")).json()["name"] == "line"


def test_what_is_damaged_in_a_backup_is_not_restored_and_named(tmp_path: Path, run: Run) -> None:
    data, backup, other = (tmp_path / name for name in ("data", "backup", "other"))
    with_values(data, good=X, bad=X)
    printed = run("backup", backup, "--data-dir", data)
    assert printed.startswith("2 sessions, 0 published functions and 0 keys, ")
    assert int(printed.split(" ")[8].replace(",", "")) < 1 << 20, "the space that logs have reserved counts"
    assert "is there already" in run("backup", backup, "--data-dir", data, status=1)
    [bad] = [path.parent for path in (backup / "sessions").glob("*/manifest.json") if b'"bad"' in path.read_bytes()]
    [log] = bad.glob("log-*")
    log.write_bytes(log.read_bytes() + b"\1")
    printed = run("restore", backup, "--data-dir", other, status=1)
    assert f"local:bad is damaged: sessions/{bad.name}/{log.name} has changed since the backup" in printed
    assert "local:bad" not in run("sessions", "list", "--data-dir", other)
    assert "other is not empty" in run("restore", backup, "--data-dir", other, status=1)
    assert "has local:good already" in run("restore", backup, "good", "--data-dir", other, status=1)
    assert "none names 0 sessions" in run("restore", backup, "none", "--data-dir", other, status=1)
    run("sessions", "end", "good", "--data-dir", other)
    run("restore", backup, "local:good", "--data-dir", other)
    with Lasting(other).running() as lasting:
        assert value(lasting, "good") == X.tolist()


@pytest.mark.parametrize(
    ("bad", "files", "why"),
    [(X, "base-*", "base 2 has"), (np.ones(1 << 16, np.float32), "blobs", "of the file of blobs, is not as it was")],
    ids=["base", "blob"],
)
def test_a_damaged_session_is_backed_up_as_it_is_and_named(
    tmp_path: Path, run: Run, bad: np.ndarray, files: str, why: str
) -> None:
    data, backup = tmp_path / "data", tmp_path / "backup"
    with_values(data, good=X, bad=bad)
    [folder] = [path.parent for path in (data / "sessions").glob("*/manifest.json") if b'"bad"' in path.read_bytes()]
    [base] = [path for path in folder.glob(files) if path.stat().st_size]
    changed = bytearray(base.read_bytes())
    changed[-1] ^= 1
    base.write_bytes(changed)
    printed = run("backup", backup, "--data-dir", data, status=1)
    assert "local:bad is damaged: " in printed
    assert why in printed
    assert (backup / base.relative_to(data)).read_bytes() == changed
    assert why in run("restore", backup, "--data-dir", tmp_path / "other", status=1)


def test_what_is_no_whole_backup_is_refused(tmp_path: Path, run: Run) -> None:
    with_values(tmp_path, good=X)
    assert "is no whole backup" in run("restore", tmp_path, "--data-dir", tmp_path / "other", status=1)
    assert "there is no folder" in run("backup", tmp_path / "backup", "--data-dir", tmp_path / "nothing", status=1)


def test_keys_budgets_and_audit_of_a_running_server_come_back(tmp_path: Path, run: Run) -> None:
    data, backup, other = (tmp_path / name for name in ("data", "backup", "other"))
    more = ("--role", "admin", "--data-dir", data)
    keys = {name: run("keys", "create", name, *more).split()[0] for name in ("ann", "eve")}
    settings = Settings(data_dir=str(data), shutdown_grace=0.1)
    with Server(settings).running() as server:
        bearer = {"Authorization": f"Bearer {keys['ann']}"}
        with server.client(None, **bearer) as http:
            ok(http.put("/v1/admin/limits/eve", json={"compute_seconds_7d": 3600}))
            before = ok(http.get("/v1/admin/audit")).json()["entries"]
            stop = threading.Event()

            def change() -> None:
                while not stop.is_set():  # the file is being written
                    ok(http.post("/v1/admin/keys", json={"owner": "bob"}))

            thread = threading.Thread(target=change)
            thread.start()
            try:
                printed = run("backup", backup, "--data-dir", data)
            finally:
                stop.set()
                thread.join()
    count = int(printed.split(" and ")[1].split()[0])
    assert count >= 2
    assert (backup / "identity.sqlite").stat().st_mode & 0o777 == 0o600
    assert f" and {count} keys, " in run("restore", backup, "--data-dir", other)
    assert "other is not empty" in run("restore", backup, "--data-dir", other, status=1)
    with Server(Settings(data_dir=str(other), shutdown_grace=0.1)).running() as server:
        with server.client(None, **bearer) as http:
            assert len(ok(http.get("/v1/admin/keys")).json()["keys"]) == count
            after = ok(http.get("/v1/admin/audit?limit=1000")).json()["entries"]
            assert after[-len(before) :] == before
        with server.client(None, Authorization=f"Bearer {keys['eve']}") as http:
            limits = ok(http.get("/v1/me")).json()
            assert "3600" in json.dumps(limits)
        with server.client(None) as http:
            problem(http.get("/v1/sessions"), 401, "unauthenticated")


def test_damaged_keys_are_named_and_the_sessions_are_backed_up(tmp_path: Path, run: Run) -> None:
    data, backup, other = (tmp_path / name for name in ("data", "backup", "other"))
    with_values(data, good=X)
    run("backup", backup, "--data-dir", data)
    file = backup / "identity.sqlite"
    file.write_bytes(file.read_bytes()[:-1] + b"\1")
    printed = run("restore", backup, "--data-dir", other, status=1)
    assert "1 session and 0 published functions, " in printed
    assert "keys, limits, use and audit is damaged: identity.sqlite has changed since the backup" in printed
    (data / "identity.sqlite").write_bytes(b"no database" * 1000)
    printed = run("backup", tmp_path / "again", "--data-dir", data, status=1)
    assert "1 session and 0 published functions, " in printed
    assert "identity.sqlite cannot be read: file is not a database" in printed


# ------------------------------------------------------------------------------------------------------------ upgrading
def test_an_upgrade_is_checked_on_copies(tmp_path: Path, run: Run) -> None:
    data = tmp_path / "data"
    with Lasting(data).running() as lasting:
        program = lasting.create()
        for _ in range(300):
            program.run(Assign("w", X, "add"))
        before = {path: path.read_bytes() for path in data.rglob("log-*") if path.stat().st_size}
        assert "local:demo  goes on" in run("upgrade", "--check", data)
        assert before == {path: path.read_bytes() for path in before}
        run("backup", tmp_path / "backup", "--data-dir", data)
        run("backup", tmp_path / "torn", "--data-dir", data)
    [log] = [path for path in (tmp_path / "torn").rglob("log-*") if path.stat().st_size]
    read = records.read(log.read_bytes())
    assert read is not None
    with log.open("rb+") as file:
        file.seek(read.end)
        file.write(b"\x99\0\0\0torn")
    assert "goes on, without 8 bytes of a write that was not finished" in run("upgrade", "--check", tmp_path / "torn")
    [log] = [path for path in (tmp_path / "backup").rglob("log-*") if path.stat().st_size]
    read = records.read(log.read_bytes())
    assert read is not None
    head = {**read.head, "versions": {**read.head["versions"], "numpy": "1.0"}}
    written = [records.written_record(each.number, 0, each.kind, bytes(each.payload)) for each in read.records]
    log.write_bytes(b"".join([records.written_head(head), *written]).ljust(log.stat().st_size, b"\0"))
    printed = run("upgrade", "--check", tmp_path / "backup", status=1)
    assert "local:demo  would not go on: record 1 was written with numpy '1.0' (now" in printed
    assert "gives the same 1 checksums of variables" in printed
    log.unlink()
    assert "local:demo  would not go on: its log is lost" in run("upgrade", "--check", tmp_path / "backup", status=1)
    assert "its log is lost" in run("backup", tmp_path / "again", "--data-dir", tmp_path / "backup", status=1)
    assert [*(tmp_path / "again").rglob("manifest.json")]
