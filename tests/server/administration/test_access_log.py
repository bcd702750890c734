"""The log of requests: a line for each, whoever answers it, and none that a caller can forge."""

import json
import logging
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from datetime import datetime, timedelta

import httpx
import pytest

from prepared import Prepared
from serving import KEYS, Program, Server, ok, problem, unread_post, until
from teletape_engine.commands import Constant, Fetch
from teletape_server.identity.addresses import caller_address
from teletape_server.logs import JsonFormatter, log_request
from teletape_server.settings import Settings, SettingsError

LINE = re.compile(r"(\S+) (\S+) (\S+) (\d+) (\d+) (\d+\.\d{4}) (\S+) (\S+) (\S+)")


@pytest.fixture
def logged(caplog: pytest.LogCaptureFixture) -> Iterator[Server]:
    caplog.set_level(logging.INFO)
    with Server(Settings(access_log="on", api_keys=KEYS, shutdown_grace=0.1)).running() as server:
        yield server


def lines(caplog: pytest.LogCaptureFixture, count: int, path: str = "") -> list[tuple[str, ...]]:
    """The fields of the lines about a path, of which there must be that many: a line comes after its answer."""

    def matches() -> list[tuple[str, ...]]:
        messages = [record.getMessage() for record in [*caplog.records] if record.name == "teletape.access"]
        fields = [LINE.fullmatch(message) for message in messages]
        assert all(fields), messages
        return [match.groups() for match in fields if match and match[3].startswith(path) and match[3] != "/v1/health"]

    until(lambda: len(matches()) >= count)
    found_lines = matches()
    caplog.clear()
    assert len(found_lines) == count
    return found_lines


def test_a_line_has_what_was_asked_and_what_was_answered(logged: Server, caplog: pytest.LogCaptureFixture) -> None:
    with logged.client() as http:
        created = http.post("/v1/sessions", json={"id": "demo"}, headers={"X-Request-Id": "mine-1"})
        [(time, *fields, seconds, owner, request_id, caller)] = lines(caplog, 1)
        assert datetime.fromisoformat(time).utcoffset() is not None
        assert fields == ["POST", "/v1/sessions", "201", str(len(created.content))]
        assert (float(seconds) > 0, owner, request_id, caller) == (True, "ann", "mine-1", "127.0.0.1")
        for method, path, status, key in (
            ("GET", "/v1/sessions/demo?x=secret", 422, "ann"),
            ("GET", "/v1/nothing", 404, "-"),
            ("OPTIONS", "/v1/run", 204, "-"),
            ("GET", "/docs", 200, "-"),
            ("PATCH", "/v1/run", 405, "-"),
        ):
            answer = http.request(method, path)
            [(_, *fields, _, owner, request_id, _)] = lines(caplog, 1)
            assert fields[:3] == [method, path.partition("?")[0], str(status)], "the query may hold what is secret"
            assert (owner, request_id) == (key, answer.headers["x-request-id"])
        http.head("/v1/info")
        assert lines(caplog, 1)[0][1:5] == ("HEAD", "/v1/info", "200", "0")
    with logged.client(None) as stranger:
        problem(stranger.get("/v1/sessions", headers={"X-API-Key": "wrong-key"}), 401, "unauthenticated")
        assert lines(caplog, 1)[0][6:9:2] == ("-", "127.0.0.1"), "refused keys can be counted by address"


def test_each_frame_has_a_line_also_of_a_connection_that_a_process_would_serve(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    settings = Settings(access_log="on", direct="on", api_keys=KEYS, shutdown_grace=0.1)
    with Server(settings).running() as server, server.client("bob") as http:
        ok(http.post("/v1/sessions", json={"id": "demo"}))
        program = Program(http, "demo")
        for _ in range(20):
            answer = ok(program.post(program.batch(Constant(program.seq, 1.5), Fetch(program.seq))))
        fields = lines(caplog, 20, "/v1/sessions/demo/batch")
        assert {line[1:4] for line in fields} == {("POST", "/v1/sessions/demo/batch", "200")}
        assert fields[-1][4] == str(len(answer.content))
        assert {line[6] for line in fields} == {"bob"}
        assert fields[-1][7] == answer.headers["x-request-id"]
        assert {line[8] for line in fields} == {"127.0.0.1"}
        ok(program.post(program.batch(), **{"X-Forwarded-For": "203.0.113.1, 192.0.2.7"}))
        assert lines(caplog, 1, "/v1/sessions/demo/batch")[0][8] == "192.0.2.7"
        http.get("/v1/info", headers={"X-Forwarded-For": "no address"})
        assert lines(caplog, 1, "/v1/info")[0][8] == "no%20address"


@pytest.mark.parametrize(
    ("peer", "forwarded", "caller"),
    [
        ("192.0.2.1", None, "192.0.2.1"),
        ("192.0.2.1", "198.51.100.1", "192.0.2.1"),
        ("127.0.0.1", "198.51.100.1", "198.51.100.1"),
        ("::1", "2001:db8::1", "2001:db8::1"),
        ("127.0.0.1", "203.0.113.1, 198.51.100.1, 10.1.2.3", "198.51.100.1"),
        ("127.0.0.1", "", "127.0.0.1"),
        ("127.0.0.1", "not an address", "not an address"),
        (None, None, None),
        (None, "198.51.100.1", "198.51.100.1"),
    ],
)
def test_the_caller_is_whom_the_last_trusted_proxy_names(
    peer: str | None, forwarded: str | None, caller: str | None
) -> None:
    proxies = Settings.load(["--trusted-proxies", "127.0.0.1, ::1, 10.0.0.0/8"], {}).trusted_proxies
    assert caller_address(peer, forwarded, proxies) == caller


def test_a_caller_that_leaves_has_a_line_too(logged: Server, caplog: pytest.LogCaptureFixture) -> None:
    with logged.client() as http:
        with unread_post(http, "/v1/sessions", b"{", length=100):
            until(lambda: logged.answering() > 0)
        [(_, method, path, _, _, _, owner, *_)] = lines(caplog, 1)
        assert (method, path, owner) == ("POST", "/v1/sessions", "ann")


@pytest.mark.parametrize(
    ("path", "shown"),
    [
        ("/a b", "/a%20b"),
        ("/x\n2026-01-01T00:00:00.000Z GET /forged", "/x%0A2026-01-01T00:00:00.000Z%20GET%20/forged"),
        ("/\x1b[31m", "/%1B[31m"),
        ("/é\x85", "/%C3%A9%C2%85"),
        ("/" + "x" * 1000, "/" + "x" * 499),
    ],
)
def test_no_path_breaks_a_line(path: str, shown: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    log_request("GET", path, 404, 0, 0.5, owner=None, request_id="r", caller=None)
    assert caplog.messages[0].split(" ")[1:] == ["GET", shown, "404", "0", "0.5000", "-", "r", "-"]


def test_by_default_there_is_no_line(server_url: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    ok(httpx.get(f"{server_url}/v1/health", trust_env=False))
    assert not [record for record in caplog.records if record.name == "teletape.access"]


@pytest.mark.parametrize(
    ("arguments", "environment", "is_on"),
    [
        ([], {}, False),
        (["--access-log"], {}, True),
        (["--access-log", "on"], {}, True),
        (["--access-log", "--port", "1"], {}, True),
        (["--log-level", "info"], {}, True),
        (["--log-level", "debug"], {}, True),
        (["--log-level", "info", "--access-log", "off"], {}, False),
        ([], {"TELETAPE_ACCESS_LOG": "on"}, True),
        (["--access-log", "auto"], {"TELETAPE_ACCESS_LOG": "on"}, False),
    ],
)
def test_when_requests_are_logged(arguments: list[str], environment: dict[str, str], is_on: bool) -> None:
    assert Settings.load(arguments, environment).logs_requests is is_on


@pytest.mark.parametrize("text", ["yes", "1", "file.log"])
def test_another_choice_is_refused(text: str) -> None:
    with pytest.raises(SettingsError, match=f"--access-log must be one of auto, on, off; found '{text}'"):
        Settings.load(["--access-log", text], {})


def errors_of_a_server(*arguments: str) -> list[str]:
    """The lines on stderr of a server that makes a session and ends it."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("TELETAPE_")}
    command = [sys.executable, "-P", "-m", "teletape_server.cli", "serve", "--port", "0", *arguments]
    with Prepared(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        url = process.stdout.readline().split()[3]
        ok(httpx.post(f"{url}/v1/sessions", json={"id": "demo"}, trust_env=False, timeout=60))
        ok(httpx.delete(f"{url}/v1/sessions/demo", trust_env=False, timeout=60))
        process.terminate()
        return process.communicate(timeout=60)[1].splitlines()


def test_lines_go_to_stderr_as_they_are() -> None:
    errors = errors_of_a_server("--log-level", "info")
    assert [LINE.fullmatch(line)[2] for line in errors if LINE.fullmatch(line)] == ["POST", "DELETE"]  # type: ignore[index]  # it matches
    events = [line for line in errors if "INFO teletape: session demo of local" in line]
    assert ["created on cpu by request " in events[0], "ended: it was deleted" in events[1]] == [True, True]
    assert all(datetime.fromisoformat(line.split(" ")[0]).utcoffset() == timedelta() for line in errors)


def test_each_line_can_be_an_object() -> None:
    errors = [json.loads(line) for line in errors_of_a_server("--log-level", "info", "--log-format", "json")]
    assert all(datetime.fromisoformat(line["time"]).utcoffset() == timedelta() for line in errors)
    requests = [line for line in errors if line["logger"] == "teletape.access"]
    assert [(line["method"], line["path"], line["status"]) for line in requests] == [
        ("POST", "/v1/sessions", 201),
        ("DELETE", "/v1/sessions/demo", 204),
    ]
    assert {(line["owner"], line["caller"], line["level"]) for line in requests} == {("local", "127.0.0.1", "info")}
    created, ended = [line for line in errors if line.get("session")]
    assert (created["session"], created["owner"]) == (ended["session"], ended["owner"]) == ("demo", "local")
    assert [created["request_id"], ended["request_id"]] == [line["request_id"] for line in requests]
    assert "message" not in requests[0]
    assert created["message"].startswith("session demo of local created on cpu")


def test_an_object_has_the_traceback_of_its_error() -> None:
    try:
        raise ValueError("two\nlines")
    except ValueError:
        record = logging.LogRecord("teletape", logging.ERROR, __file__, 1, "request %s failed", ("r",), sys.exc_info())
    record.request_id = "r"
    line = JsonFormatter().format(record)
    assert "\n" not in line
    fields = json.loads(line)
    assert (fields["level"], fields["message"], fields["request_id"]) == ("error", "request r failed", "r")
    assert fields["traceback"].endswith("ValueError: two\nlines")


def test_the_command_says_its_version(capsys: pytest.CaptureFixture[str]) -> None:
    from teletape_server import cli, version

    for flag in ("--version", "-V"):
        assert cli.main([flag]) == 0
        assert capsys.readouterr().out == f"teletape {version()}\n"
