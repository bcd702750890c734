"""Settings from flags and the environment, and `teletape serve` as a process of its own."""

import contextlib
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest
from server_processes import children

from prepared import Prepared
from serving import ok
from teletape_server import cli
from teletape_server.budgets.limits import Limits
from teletape_server.ipc.confinement import User, machine_memory, scrub
from teletape_server.settings import Settings, SettingsError, unknown_variables

TELETAPE = [sys.executable, "-P", "-m", "teletape_server.cli"]


def load(*arguments: str, **environment: str) -> Settings:
    return Settings.load(arguments, environment)


def test_defaults_serve_this_machine_alone() -> None:
    settings = load()
    assert (settings.host, settings.port, settings.device, settings.api_keys) == ("127.0.0.1", 8470, "cpu", {})


def test_a_flag_comes_before_the_environment_and_that_before_the_default() -> None:
    assert load("--port", "1", TELETAPE_PORT="2").port == 1
    assert load(TELETAPE_PORT="2").port == 2
    assert load(TELETAPE_PORT="").port == 8470


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("port", "0", 0),
        ("device", "gpu", "gpu"),
        ("device", "auto", "auto"),
        ("device", "gpu:3", "gpu:3"),
        ("host", "[::1]", "::1"),
        ("memory_limit", "1024", 1024),
        ("memory_limit", "1.5GiB", 3 << 29),
        ("max_body", "10MB", 10_000_000),
        ("max_body", "1K", 1024),
        ("idle_limit", "90", 90.0),
        ("idle_limit", "15m", 900.0),
        ("max_age", "2d", 172_800.0),
        ("patience", "0.5s", 0.5),
        ("log_level", "INFO", "info"),
        ("sessions", "7", 7),
        ("worker_user", "nobody", User(65534, 65534)),
        ("worker_user", "0", User(0, 0)),
    ],
)
def test_values_are_read_from_flags_and_from_the_environment(name: str, text: str, value: Any) -> None:
    assert getattr(load("--" + name.replace("_", "-"), text), name) == value
    assert getattr(load(**{"TELETAPE_" + name.upper(): text}), name) == value


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("port", "65536", "a whole number from 0 to 65535; found '65536'"),
        ("port", "-1", "whole number"),
        ("port", "http", "whole number"),
        ("device", "tpu", "cpu, gpu, gpu:N or auto"),
        ("host", "a b", "an address or a name"),
        ("memory_limit", "lots", "bytes from 1 up"),
        ("memory_limit", "0", "bytes from 1 up"),
        ("memory_limit", "3parsecs", "bytes from 1 up"),
        ("idle_limit", "-3", "a time above 0"),
        ("idle_limit", "3 weeks", "a time above 0"),
        ("log_level", "loud", "one of debug"),
        ("worker_user", "no-such-user", "a user of this machine"),
        ("worker_user", "4000000000", "a user of this machine"),
        ("api_keys", "ann:long-enough-1,nocolon", "pair 2 has no such name"),
        ("api_keys", "bob:long-enough-1,ann:short", "that of ann has 5"),
        ("api_keys", "ann:long enough", "that of ann has a space in it"),
        ("api_keys", "ann:lång-enough", "that of ann has other characters"),
        ("trusted_proxies", "proxy.example", "addresses and networks"),
        ("api_keys", "ann:long-enough-1,ann:long-enough-2", "ann occurs twice"),
        ("api_keys", "ann:long-enough-1,bob:long-enough-1", "that of bob is another name's too"),
    ],
)
def test_a_wrong_value_is_named_with_what_it_may_be(name: str, text: str, expected: str) -> None:
    with pytest.raises(SettingsError) as caught:
        load(**{"TELETAPE_" + name.upper(): text})
    assert f"TELETAPE_{name.upper()} must be" in str(caught.value)
    assert expected in str(caught.value)
    if name == "api_keys":
        assert text not in str(caught.value)
    else:
        with pytest.raises(SettingsError, match="--" + name.replace("_", "-")):
            load(f"--{name.replace('_', '-')}={text}")


def test_keys_come_from_the_environment_alone() -> None:
    assert load(TELETAPE_API_KEYS="ann:long-enough-1, bob:a:b:c:d:e").api_keys == {
        "ann": "long-enough-1",
        "bob": "a:b:c:d:e",
    }
    with pytest.raises(SystemExit):
        load("--api-keys", "ann:long-enough-1")


def test_without_keys_other_machines_are_not_served() -> None:
    with pytest.raises(SettingsError, match=r"0\.0\.0\.0 .* TELETAPE_API_KEYS"):
        load("--host", "0.0.0.0")
    assert load("--host", "0.0.0.0", TELETAPE_API_KEYS="ann:long-enough-1").host == "0.0.0.0"


def test_every_setting_is_explained(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        load("--help")
    text = capsys.readouterr().out
    for name in Settings.__dataclass_fields__:
        assert f"TELETAPE_{name.upper()}" in text


@pytest.mark.parametrize("arguments", [[], ["dance"], ["serve", "--port", "x"], ["serve", "--host", "0.0.0.0"]])
def test_a_wrong_command_line_ends_with_2_and_says_why(
    arguments: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in os.environ if name.startswith("TELETAPE_")]:
        monkeypatch.delenv(name)
    assert cli.main(arguments) == 2
    output = capsys.readouterr()
    assert "teletape" in output.err
    assert output.out == ""


def test_help_lists_the_commands(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["--help"]) == 0
    assert "serve" in capsys.readouterr().out


def test_a_port_that_is_taken_is_said_so(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        assert cli.serve(Settings(port=taken.getsockname()[1])) == 1
    assert "cannot listen on 127.0.0.1" in capsys.readouterr().err


def test_workers_run_functions_as_the_environment_says(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    program = "from teletape_server.hosts.processes import inherited; print(inherited.POLICY)"
    command = [sys.executable, "-P", "-c", program]
    variables = {"TELETAPE_PLANS": "python", "SECRET": "open-sesame"}
    scrub(variables)
    environment = {name: value for name, value in os.environ.items() if name != "TELETAPE_PLANS"} | variables
    result = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "Policy(enabled=True, compiled=False, first=2, compared=False, threads=1)"
    monkeypatch.setenv("TELETAPE_PLANS", "fast")
    assert cli.main(["serve", "--port", "0"]) == 2
    assert "TELETAPE_PLANS is 'fast': it must be one of on, off, python, force" in capsys.readouterr().err


def test_a_device_that_is_not_there_is_said_so(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.serve(Settings(port=0, device="gpu:99")) == 2
    assert "teletape: no device gpu:99: " in capsys.readouterr().err


def serving(*arguments: str, code: str = "", **environment: str) -> subprocess.Popen[str]:
    """A server's process, which has printed its address; `code` runs in it before."""
    whole = f"import sys; from teletape_server import cli; {code}\nsys.exit(cli.main())"
    process = Prepared(
        [sys.executable, "-P", "-c", whole, "serve", "--port", "0", *arguments],
        env={name: value for name, value in os.environ.items() if not name.startswith("TELETAPE_")} | environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None
    assert process.stdout.readline().startswith("Teletape serves at "), process.communicate()
    return process


def test_a_terminal_that_closes_ends_the_server_in_order_however_often_it_says_so() -> None:
    code = "import signal; signal.signal(signal.SIGHUP, signal.SIG_DFL)"  # also where the tests themselves run by nohup
    with serving("--log-level", "error", code=code) as process:
        started = children(process.pid)
        for _ in range(3):
            process.send_signal(signal.SIGHUP)
        _, errors = process.communicate(timeout=60)
        assert (process.returncode, errors) == (0, "")
    gone(started)


def test_a_server_that_ignores_the_end_of_its_terminal_goes_on() -> None:
    """As `nohup` starts it."""
    with serving(code="import signal; signal.signal(signal.SIGHUP, signal.SIG_IGN)") as process:
        process.send_signal(signal.SIGHUP)
        process.terminate()
        process.communicate(timeout=60)
        assert process.returncode in {-signal.SIGTERM, 0}


def test_the_orderly_end_has_one_limit_whatever_it_waits_for() -> None:
    endless = """
import asyncio
from teletape_server.sessions.registry import Registry
async def drain(self, grace): await asyncio.Event().wait()
Registry.drain, cli._END_SECONDS = drain, 0.1
"""
    with serving("--shutdown-grace", "0.1", code=endless) as process:
        started = children(process.pid)
        process.terminate()
        _, errors = process.communicate(timeout=60)
        assert process.returncode == 70
        assert "the server has not ended" in errors
    gone(started)


def test_the_orderly_end_fits_into_the_time_that_docker_gives() -> None:
    assert Settings().shutdown_grace + cli._END_SECONDS < 10


def test_a_server_whose_settings_promise_more_memory_than_there_is_says_so() -> None:
    settings = Settings(sessions=10, runs=3, memory_limit=1 << 30, bodies=2 << 30)
    assert cli.overcommitment(settings, 15 << 30) == ""
    sentence = cli.overcommitment(settings, 14 << 30)
    assert (
        "10 sessions and 3 requests without one, of 1 GiB each, and request bodies of 2 GiB may take 15 GiB" in sentence
    )
    assert "and there are 14 GiB" in sentence
    with serving("--sessions", "100000", TELETAPE_API_KEYS="ann:12345678") as process:
        process.terminate()
        assert "100000 sessions and 8 requests without one, of 2 GiB each" in process.communicate(timeout=60)[1]


def test_settings_that_cannot_hold_together_are_named_and_the_start_says_what_is_allowed() -> None:
    assert cli.contradictions(Settings()) == []
    assert cli.contradictions(Settings(sessions=4)) == [], "the number of a key is the usual one"
    wrong = Settings(sessions=4, sessions_per_key=8, memory_limit=3 << 30, key_limits=Limits(memory_bytes=1 << 30))
    named = cli.contradictions(wrong)
    assert [sentence.partition(" allows ")[0] for sentence in named] == [
        "--sessions-per-key",
        "--memory-limit",
    ]
    assert "--sessions-per-key allows 8, and --sessions only 4" in named[0]
    table = "\n".join(
        cli.allowances(Settings(weights={"ann": 3.0}, key_limits=Limits(sessions=5)), 24 << 30, "by hand")
    )
    assert "64 in all, 5 of a key, 8 requests without one" in table
    assert "24 GiB, 2 of a session, 0.25 free" in table
    assert "auto: by hand, weights ann 3" in table
    with serving("--sessions", "4", "--sessions-per-key", "8", "--log-level", "info") as process:
        process.terminate()
        lines = process.communicate(timeout=60)[1]
        assert "--sessions-per-key allows 8, and --sessions only 4" in lines
        assert "this server allows" in lines
        assert "4 in all, 8 of a key" in lines


def test_a_mistyped_variable_is_warned_of_and_the_sdk_s_own_are_not() -> None:
    with serving(TELETAPE_SESSION="3", TELETAPE_URL="http://127.0.0.1:1", TELETAPE_SESSIONS_PER_KEY="2") as process:
        process.terminate()
        lines = [line for line in process.communicate(timeout=60)[1].splitlines() if "TELETAPE_" in line]
    [line] = [line for line in lines if "TELETAPE_API_KEYS" not in line]
    assert "the variable TELETAPE_SESSION is no setting of the server, and is ignored" in line
    assert "did you mean 'TELETAPE_SESSIONS'" in line


def test_each_variable_that_the_sdk_reads_is_known_to_the_server() -> None:
    root = Path(__file__).parents[3]
    files = [root / "client/teletape/core/environment.py"]
    names = {
        name
        for file in [*files, root / "docker-compose.yml"]
        for name in re.findall(r"TELETAPE_[A-Z_]+", file.read_text())
    }
    assert len(names) > 15
    assert unknown_variables(dict.fromkeys(names, "")) == []


@pytest.mark.parametrize(
    ("groups", "file", "limit"),
    [
        ("0::/a/b\n", "a/memory.max", 1 << 20),
        ("0::/\n", "memory.max", 1 << 20),
        ("0::/a/b\n", "a/b/c/memory.max", None),
        ("3:cpu:/a\n2:memory:/a\n", "memory/a/memory.limit_in_bytes", 1 << 20),
        ("3:cpu:/a\n2:memory:/b\n", "memory/a/memory.limit_in_bytes", None),
        ("", "memory.max", None),
    ],
)
def test_the_memory_of_a_container_is_that_of_its_control_groups(
    tmp_path: Path, groups: str, file: str, limit: int | None
) -> None:
    (tmp_path / "groups").write_text(groups)
    (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / file).write_text("1048576\n")
    machine = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    assert machine_memory(str(tmp_path / "groups"), str(tmp_path)) == (limit or machine)
    (tmp_path / file).write_text("max\n")
    assert machine_memory(str(tmp_path / "groups"), str(tmp_path)) == machine


def gone(pids: set[int]) -> None:
    """Waits until the processes have ended, which the forkserver does a moment after its parent."""
    deadline = time.monotonic() + 20
    while any(Path(f"/proc/{pid}").exists() for pid in pids):
        assert time.monotonic() < deadline, f"still there: {pids}"


@pytest.mark.parametrize(
    ("start", "number", "statuses"),
    [
        (partial(subprocess.Popen, text=True), signal.SIGTERM, {-signal.SIGTERM, 0}),
        (Prepared, signal.SIGTERM, {-signal.SIGTERM, 0}),
        (Prepared, signal.SIGINT, {130}),
    ],
    ids=["SIGTERM", "prepared-SIGTERM", "prepared-SIGINT"],
)
def test_serve_says_where_it_is_and_ends_with_its_workers(
    start: Callable[..., subprocess.Popen[str]], number: int, statuses: set[int]
) -> None:
    """A prepared process, as other tests start servers, behaves as one that starts in the usual way."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("TELETAPE_")}
    with start(
        [*TELETAPE, "serve", "--port", "0"], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        try:
            lines = [process.stdout.readline()]
            url = re.search(r"http://127\.0\.0\.1:\d+", lines[0])
            assert url, lines
            while "tf." not in lines[-1] or "print" not in lines[-1]:
                lines.append(process.stdout.readline())
            greeting = "".join(lines)
            assert f"{url[0]}/docs" in greeting
            assert f'tf.connect("{url[0]}")' in greeting
            with httpx.Client(base_url=url[0], trust_env=False, timeout=30) as http:
                ok(http.post("/v1/sessions", json={"id": "demo"}))
                started = children(process.pid)
                assert started
        finally:
            process.send_signal(number)
            out, err = process.communicate(timeout=30)
    assert process.returncode in statuses
    assert out.strip() == ""
    assert "every user of this machine" in err
    assert "Traceback" not in err
    gone(started)


SECRETS = {"TELETAPE_API_KEYS": "ann:open-sesame-1", "TELETAPE_API_KEY": "open-sesame-2", "A_TOKEN": "open-sesame-3"}


def test_no_other_process_of_the_server_has_its_keys() -> None:
    with subprocess.Popen(
        [*TELETAPE, "serve", "--port", "0"],
        env=os.environ | SECRETS,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        assert process.stdout is not None
        url = process.stdout.readline().split()[3]
        with httpx.Client(base_url=url, trust_env=False, timeout=30) as http:
            http.headers["Authorization"] = "Bearer open-sesame-1"
            ok(http.post("/v1/sessions", json={"id": "demo"}))
        environments = {pid: Path(f"/proc/{pid}/environ").read_bytes() for pid in children(process.pid)}
        process.terminate()
    assert len(environments) >= 3  # the forkserver, the session's process, a spare one
    assert all(b"PATH=" in environment for environment in environments.values())
    assert not [
        pid for pid, environment in environments.items() if b"sesame" in environment or b"TELETAPE" in environment
    ]


def test_a_session_s_process_reads_nothing_of_the_server_and_of_other_sessions() -> None:
    """Another process of the same user shows that it could; root's processes can read all, and so have no rights here.

    If memory runs out, the system ends one of them, and not the server.
    """
    bare = ["setpriv", "--bounding-set", "-all", "--inh-caps", "-all"] if os.geteuid() == 0 else []
    environment = os.environ | SECRETS
    with contextlib.ExitStack() as stack:

        def started(*command: str) -> subprocess.Popen[str]:
            command = (*bare, *command)
            process = subprocess.Popen(
                command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
            )
            stack.enter_context(process)
            stack.callback(process.terminate)
            return process

        other = started("sleep", "1000")
        server = started(sys.executable, str(Path(__file__).parents[1] / "looking.py"))
        assert server.stdout is not None
        url = server.stdout.readline().split()[3]
        headers = {"Authorization": "Bearer open-sesame-1"}
        http = stack.enter_context(httpx.Client(base_url=url, headers=headers, trust_env=False, timeout=90))
        for id in ("mine", "other"):
            ok(http.post("/v1/sessions", json={"id": id}))
        seen = ok(http.post("/v1/sessions/mine/attach")).json()
        assert "\nprocess_open_fds " in ok(http.get("/metrics")).text  # the server can look into itself
        [forkserver] = [pid for pid in children(server.pid) if seen["pid"] in children(pid)]
        sessions = children(forkserver)
        priorities = {pid: int(Path(f"/proc/{pid}/oom_score_adj").read_text()) for pid in (server.pid, *sessions)}
    readable = {int(pid): names for pid, names in seen["readable"].items()}
    assert {"environ", "maps", "fd"} <= {*readable[other.pid]}
    others = {server.pid, forkserver} | sessions - {seen["pid"]}
    assert len(others) >= 3
    assert {pid: names for pid, names in readable.items() if pid in others and names} == {}
    assert min(priorities[pid] for pid in sessions) > priorities[server.pid]


def test_another_user_for_workers_needs_root(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert cli.serve(Settings(port=0, worker_user=User(65534, 65534))) == 2
    assert "--worker-user 65534 needs a server that root has started: it runs as user 1000" in capsys.readouterr().err


def test_a_killed_server_leaves_no_worker() -> None:
    process = Prepared([*TELETAPE, "serve", "--port", "0"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    assert process.stdout is not None
    with process.stdout:
        url = process.stdout.readline().split()[3]
        with httpx.Client(base_url=url, trust_env=False, timeout=30) as http:
            ok(http.post("/v1/sessions", json={"id": "demo"}))
        started = children(process.pid)
        process.kill()
        process.wait()
    gone(started)
