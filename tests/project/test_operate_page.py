"""docs/operate.md: each of its commands is run, in its order, and the unit for systemd fits the server."""

import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
from configparser import RawConfigParser
from pathlib import Path

import httpx
import numpy as np
import pytest

from prepared import Prepared
from serving import KEYS, Program, ok
from teletape_engine.commands import MakeVariable
from teletape_server import cli
from teletape_server import setting_values as values

ROOT = Path(__file__).resolve().parents[2]
TELETAPE = [sys.executable, "-P", "-m", "teletape_server.cli"]
PAGE = (ROOT / "docs" / "operate.md").read_text(encoding="utf-8")
UNIT_FILE = ROOT / "examples" / "teletape.service"
COMMANDS = re.findall(r"^    (?:teletape|systemctl (?:stop|start)) .*$", PAGE, re.M)


class Service:
    """`teletape serve` as systemd runs it: it says when it answers, and SIGTERM ends it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        with socket.socket() as unused:
            unused.bind(("127.0.0.1", 0))
            self._port = unused.getsockname()[1]
        self.http = httpx.Client(
            base_url=f"http://127.0.0.1:{self._port}",
            headers={"Authorization": f"Bearer {KEYS['ann']}"},
            trust_env=False,
            timeout=60,
        )
        self._process: Prepared | None = None

    def start(self) -> None:
        notified = self._folder / "notify"
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as supervisor:
            supervisor.bind(str(notified))
            supervisor.settimeout(60)
            environment = os.environ | {
                "NOTIFY_SOCKET": str(notified),
                "TELETAPE_API_KEYS": ",".join(f"{name}:{key}" for name, key in KEYS.items()),
                "TELETAPE_ADMINS": "bob",
                "TELETAPE_DATA_DIR": str(self._folder / "var/lib/teletape"),
            }
            self._process = Prepared(
                [*TELETAPE, "serve", "--port", str(self._port), "--shutdown-grace", "0.5s"],
                env=environment,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
            assert supervisor.recv(100) == b"READY=1"
        notified.unlink()

    def stop(self) -> None:
        if self._process is not None:
            self._process.terminate()
            assert self._process.wait(60) == -signal.SIGTERM  # which systemd takes for a good end
        self._process = None


@pytest.mark.long
def test_each_command_of_the_page_does_what_the_page_says(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TELETAPE_DATA_DIR", str(tmp_path / "var/lib/teletape"))
    monkeypatch.setenv("TELETAPE_API_KEY", KEYS["bob"])
    service = Service(tmp_path)
    service.start()
    try:
        for name in ("night", "old", "test"):
            ok(service.http.post("/v1/sessions", json={"id": name}))
            Program(service.http, name).run(MakeVariable("w", np.float32(1.5)))
        (tmp_path / "backups").mkdir()
        printed = {}
        for command in map(str.strip, COMMANDS):
            if command.startswith("systemctl"):
                if command.endswith("stop teletape"):
                    ok(service.http.delete("/v1/sessions/old"))  # by mistake
                getattr(service, command.split()[1])()
                continue
            placed = re.sub(r" /(var|backups|srv|root)", f" {tmp_path}/\\1", command)
            if " k3x9p2ab" in command:
                placed = placed.replace("k3x9p2ab", printed["teletape keys create ann --name laptop"].split("_")[1])
            status = cli.main(shlex.split(placed)[1:])
            output = capsys.readouterr()
            assert status == 0, (command, output.err)
            printed[command] = output.out
        assert [line.split()[1:5] for line in printed["teletape keys list"].splitlines()] == [
            ["ann", "-", "user", "sessions,call,publish,keys"],
            ["bob", "-", "admin", "sessions,call,publish,keys"],
            ["ann", "-", "user", "sessions,call,publish,keys"],
            ["ann", "-", "user", "sessions"],
        ]
        assert [line.split()[:2] for line in printed["teletape sessions list"].splitlines()] == [
            ["ann:night", "live"],
            ["ann:old", "live"],
            ["ann:test", "live"],
        ]
        assert printed["teletape restore /backups/monday --data-dir /srv/teletape"].startswith("2 sessions, ")
        assert (tmp_path / "root/night/values.safetensors").exists()
        assert [session["id"] for session in ok(service.http.get("/v1/sessions")).json()["sessions"]] == ["old"]
    finally:
        service.stop()
        service.http.close()


def unit() -> RawConfigParser:
    parser = RawConfigParser(strict=False)
    parser.optionxform = str  # type: ignore[assignment,method-assign]  # names keep their case
    parser.read(UNIT_FILE)
    return parser


def test_the_unit_gives_the_server_the_time_that_it_takes_to_end_and_lets_it_end_its_processes() -> None:
    service = unit()["Service"]
    environment = dict(setting.split("=") for setting in service["Environment"].split())
    grace = values.seconds(environment.pop("TELETAPE_SHUTDOWN_GRACE"))
    assert float(service["TimeoutStopSec"]) > grace + cli._END_SECONDS
    assert (service["KillMode"], service["Type"], service["OOMPolicy"]) == ("mixed", "notify", "continue")
    assert environment == {"TELETAPE_DATA_DIR": f"%S/{service['StateDirectory']}"}


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not installed")
def test_systemd_takes_the_unit_and_finds_it_confined(tmp_path: Path) -> None:
    copy = tmp_path / UNIT_FILE.name
    text = UNIT_FILE.read_text()
    [program] = re.findall(r"^ExecStart=(\S+) serve$", text, re.M)
    copy.write_text(text.replace(program, str(Path(sys.executable).with_name("teletape"))))
    for verb in (["verify"], ["security", "--offline=yes", "--threshold=20"]):
        done = subprocess.run(["systemd-analyze", *verb, str(copy)], capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
