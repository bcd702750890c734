"""python -m teletape: what the commands print, and their exit status."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

import teletape as tf
from teletape.extras.terminal import doctor, ping
from teletape.extras.terminal.commands import main
from teletape_server.cli import main as serve_main


def test_the_command_runs_as_a_module() -> None:
    done = subprocess.run(
        [sys.executable, "-P", "-m", "teletape", "--version"], capture_output=True, text=True, check=True
    )
    assert done.stdout == f"teletape {doctor.version()}\n"


def test_the_commands_server_prints_its_version_too(capsys: pytest.CaptureFixture[str]) -> None:
    assert serve_main(["--version"]) == 0
    assert re.fullmatch(r"teletape \S+\n", capsys.readouterr().out)


def test_a_command_of_the_other_program_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert serve_main(["ping"]) == 2
    assert "no such command: ping (`python -m teletape` has doctor, ping and sessions)" in capsys.readouterr().err


def test_the_servers_command_is_named_in_this_one(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["serve", "--port", "1"])
    assert capsys.readouterr().err.endswith("error: a server is started with `teletape serve`\n")


def test_a_healthy_environment_and_server(server_url: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", server_url]) == 0
    lines = capsys.readouterr().out.splitlines()
    subjects = [line.split()[1] for line in lines]
    assert {"python", "numpy", "keras", "compute", "server", "key", "ops", "clock", "device", "sessions"} <= {*subjects}
    assert {line.split()[0] for line in lines} <= {"ok", "note"}
    assert any(line.startswith(f"ok    server     {server_url} answers in ") for line in lines)
    assert "the gradient of x² at 3 inside this process is 6" in lines[subjects.index("compute")]


def test_what_is_wrong_is_said_with_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "install the same version on both sides" in doctor._catalogue("0", "9.9").text
    assert "let NTP set the clocks" in doctor._clock("Sat, 01 Jan 2000 00:00:00 GMT").text
    assert "pip install 'teletape[gpu]'" in doctor._extra("gpu", "no_such_module", "a GPU").text
    monkeypatch.setenv("TELETAPE_API_KEY", "secret")
    assert "TELETAPE_API_KEY=(set)" in doctor._settings().text


def test_without_a_server_the_exit_status_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "1"]) == 1
    assert "fail  server     http://127.0.0.1:1: nothing answers there" in capsys.readouterr().out
    assert main(["sessions", "1"]) == 1
    assert capsys.readouterr().err.startswith("teletape: http://127.0.0.1:1: nothing answers there")
    with pytest.raises(SystemExit, match="2"):
        main(["ping"])
    assert "set TELETAPE_URL" in capsys.readouterr().err


def test_ping(server_url: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(ping, "_ROUND_TRIPS", 5)
    monkeypatch.setattr(ping, "_TENSOR", 1 << 20)
    monkeypatch.setattr(ping, "_FAR", 0.0)
    assert main(["ping", server_url]) == 0
    text = capsys.readouterr().out
    assert re.search(r"round trip of a batch: median [\d.]+ ms, 90 % .* \(5 batches\)", text)
    assert re.search(r"tensors of 1 MiB: [\d,]+ MiB/s to the server, [\d,]+ MiB/s back", text)
    assert "read seldom" in text


@pytest.mark.parametrize(("running", "words"), [(0, ""), (1, "1 request"), (2, "2 requests")])
def test_the_requests_of_a_listed_session_are_counted_in_words(server_url: str, running: int, words: str) -> None:
    session = tf.connect(server_url, session="counted-in-words", default=False)
    [facts] = [facts for facts in tf.sessions(server_url) if facts.id == "counted-in-words"]
    facts.running = running
    assert facts.row()[-1] == words
    session.close()


def test_sessions_are_listed_and_ended(server_url: str, capsys: pytest.CaptureFixture[str]) -> None:
    session = tf.connect(server_url, session="listed-by-the-command", default=False)
    assert main(["sessions", server_url]) == 0
    assert "listed-by-the-command" in capsys.readouterr().out
    assert main(["sessions", server_url, "--end", "listed-by-the-command"]) == 0
    text = capsys.readouterr().out
    assert text.startswith("ended: listed-by-the-command\n")
    assert "listed-by-the-command" not in text.partition("\n")[2]
    with session.as_default(), pytest.raises(tf.errors.SessionEndedError):
        tf.ones(3).numpy()
