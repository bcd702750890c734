"""`teletape doctor --server`: plain sentences about a box, and the status."""

import os
import subprocess
from pathlib import Path

import pytest

from serving import Server, make_certificate, ok, open_files, until
from teletape_server.administration import box, command_line, doctor
from teletape_server.administration.doctor import FILES_OF_SESSION, Check, checks
from teletape_server.hosts.control_groups import Tree
from teletape_server.hosts.shares import SharesError
from teletape_server.ipc.confinement import User
from teletape_server.settings import Settings

GIB = 1 << 30


def looked(settings: Settings, pid: int | None = None) -> dict[str, Check]:
    return {line.subject: line for line in checks(settings, pid)}


def test_a_box_that_serves_passes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    flags = ["--data-dir", str(tmp_path), "--memory-limit", "64MiB", "--bodies", "64MiB", "--connections", "100"]
    status = command_line.main(["doctor", "--server", "--pid", str(os.getpid()), *flags], {"TELETAPE_SESSIONS": "3"})
    lines = capsys.readouterr().out.splitlines()
    assert status == 0, lines
    subjects = [line[6:18].strip() for line in lines]
    assert subjects[:6] == ["descriptors", "shares", "disk", "disk space", "memory", "clock"]
    assert subjects[-1] == "plans"
    assert "11 processes of 0.0625 GiB each" in lines[4], "--runs has its default of 8"
    assert [*tmp_path.iterdir()] == [], "what was written is removed"


def test_settings_that_cannot_be_are_status_2(capsys: pytest.CaptureFixture[str]) -> None:
    assert command_line.main(["doctor", "--server", "--sessions", "many"], {}) == 2
    assert "--sessions must be" in capsys.readouterr().err
    for wrong in ([], ["--server", "--nothing"]):
        with pytest.raises(SystemExit) as error:
            command_line.main(["doctor", *wrong], {})
        assert error.value.code == 2


def test_what_fails_says_what_to_do(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    settings = Settings(
        data_dir=str(tmp_path / "missing"), connections=1_000_000, memory_limit=1 << 50, device="gpu:7", shares="groups"
    )
    monkeypatch.setattr(doctor, "own_tree", no_groups)
    lines = looked(settings)
    assert {subject for subject, line in lines.items() if line.grade == "fail"} >= {
        "descriptors",
        "disk",
        "memory",
        "gpu",
    }
    least = max(2_000_000, 1_000_000 + FILES_OF_SESSION * 72 + 64)
    assert f"LimitNOFILE={least}" in lines["descriptors"].text
    assert "lower --memory-limit" in lines["memory"].text
    assert "Delegate=cpu" in lines["shares"].text
    assert looked(settings, pid=1 << 30)["descriptors"].grade == "fail"


def test_a_server_that_may_not_stop_the_processes_of_its_sessions_shares_by_no_right(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(doctor, "own_tree", no_groups)
    monkeypatch.setattr(doctor, "obstacle", lambda user, process: "it has no right to" if user else "")
    assert "(/proc/self has none): keys share the CPU by time slices" in looked(Settings())["shares"].text
    line = looked(Settings(worker_user=User(65534, 65534)))["shares"]
    assert line.grade == "note"
    assert "a key with many sessions gets more of the CPU than one with few, since it has no right to; or" in line.text
    line = looked(Settings(worker_user=User(65534, 65534), shares="slices"))["shares"]
    assert (line.grade, line.text) == ("fail", "--shares slices is not possible: it has no right to")


def no_groups(process: Path) -> Tree:
    raise SharesError(f"{process} has none")


def test_a_slow_disk_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(doctor, "_sync_seconds", lambda _: [0.03, 0.04, 0.5])
    for durability, grade in (("journal", "note"), ("journal-sync", "fail")):
        line = looked(Settings(data_dir=str(tmp_path), durability=durability))["disk"]
        assert (line.grade, line.text[:58]) == (grade, "a record is on the disk in 40.0 ms, at worst 500 ms (20 ti")
    monkeypatch.undo()
    seconds = doctor._sync_seconds(str(tmp_path))
    assert len(seconds) == 20
    assert min(seconds) > 0


def test_the_end_of_a_certificate(tmp_path: Path) -> None:
    certificate, key = map(str, make_certificate(tmp_path))
    assert box.days_left(certificate, key) == pytest.approx(2, abs=0.1)
    line = looked(Settings(tls_certificate=certificate, tls_key=key))["tls"]
    assert (line.grade, "ends in 2 days: renew it" in line.text) == ("note", True)
    ended, request = str(tmp_path / "ended.pem"), str(tmp_path / "request.pem")
    for arguments in (
        ["req", "-new", "-key", key, "-subj", "/CN=localhost", "-out", request],
        ["x509", "-req", "-in", request, "-signkey", key, "-days", "-1", "-out", ended],
    ):
        subprocess.run(["openssl", *arguments], check=True, capture_output=True)
    line = looked(Settings(tls_certificate=ended, tls_key=key))["tls"]
    assert (line.grade, "has ended" in line.text) == ("fail", True)
    (tmp_path / "cert.pem").write_text("nothing")
    assert looked(Settings(tls_certificate=certificate, tls_key=key))["tls"].grade == "fail"


def test_a_session_takes_as_many_files_as_the_doctor_counts(tmp_path: Path) -> None:
    with Server(Settings(data_dir=str(tmp_path), shutdown_grace=0.1)).running() as server, server.client() as http:
        ok(http.post("/v1/sessions", json={"id": "first"}))
        until(lambda: server.app.state.hosts.spare.done())
        before = open_files()
        for number in range(4):
            ok(http.post("/v1/sessions", json={"id": f"s{number}"}))
        until(lambda: server.app.state.hosts.spare.done())
        assert (open_files() - before) / 4 <= FILES_OF_SESSION
