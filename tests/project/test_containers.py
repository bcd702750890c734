"""The image and the compose file: linted, safe by default, and with a health check that fails if the server does."""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from ruamel.yaml import YAML

from serving import Server, make_certificate
from teletape_server import cli
from teletape_server import setting_values as values
from teletape_server.settings import Settings

ROOT = Path(__file__).resolve().parents[2]
BIN = Path(sys.executable).parent
DOCKERFILE = (ROOT / "Dockerfile").read_text()
COMPOSE = (ROOT / "docker-compose.yml").read_text()


@pytest.fixture(scope="module")
def services() -> dict[str, Any]:
    loaded: dict[str, Any] = YAML(typ="safe").load(COMPOSE)["services"]
    return loaded


def test_dockerfile_lints() -> None:
    done = subprocess.run([BIN / "hadolint", ROOT / "Dockerfile"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_compose_file_fits_its_schema() -> None:
    """The schema is the one vendored in check-jsonschema: nothing is fetched."""
    command = [BIN / "check-jsonschema", "--builtin-schema", "vendor.compose-spec", ROOT / "docker-compose.yml"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_first_instruction_chooses_the_base() -> None:
    first = next(line for line in DOCKERFILE.splitlines() if line and not line.startswith("#"))
    assert first.startswith("ARG BASE=")
    assert set(re.findall(r"^FROM (\S+)", DOCKERFILE, re.MULTILINE)) == {"${BASE}"}


def test_the_server_does_not_run_as_root() -> None:
    users = re.findall(r"^USER (\S+)", DOCKERFILE, re.MULTILINE)
    assert users
    assert users[-1] not in {"0", "root"}


@pytest.mark.parametrize("path", ["Dockerfile", "docker-compose.yml", "constraints.txt", "pyproject.toml", "Makefile"])
def test_no_package_index_is_named(path: str) -> None:
    assert not re.search(r"index-url|find-links|trusted-host|pypi|https?://(?!127\.0\.0\.1)", (ROOT / path).read_text())


def test_everything_the_image_copies_reaches_the_build() -> None:
    copied = {
        name.rstrip("/")
        for line in re.findall(r"^COPY (?!--from)(.+) \S+$", DOCKERFILE, re.MULTILINE)
        for name in line.split()
    }
    ignore = (ROOT / ".dockerignore").read_text().splitlines()
    assert copied == {line[2:].rstrip("/") for line in ignore if line.startswith("!/")}
    assert all((ROOT / name).exists() for name in copied)


def test_compose_demands_a_key_and_prints_the_line_to_write(services: dict[str, Any]) -> None:
    for service in services.values():
        value = service["environment"]["TELETAPE_API_KEYS"]
        demand = re.fullmatch(r"\$\{TELETAPE_API_KEYS:\?(.+)\}", value)
        assert demand, value
        line = demand[1].partition(": ")[2]
        assert re.fullmatch(r"echo TELETAPE_API_KEYS=me:`openssl rand -hex \d+` >> \.env", line)
        # Compose would take a dollar or a brace in the message for a variable of its own.
        assert not set(demand[1]) & set("${}")


def test_compose_bounds_memory_and_promises_no_more(services: dict[str, Any]) -> None:
    for service in services.values():
        memory = default(service["deploy"]["resources"]["limits"]["memory"])
        values = {name: default(value) for name, value in service["environment"].items() if ":-" in value}
        settings = Settings.load([], values)
        temporary = sum(int(size) << 20 for entry in service["tmpfs"] for size in re.findall(r"size=(\d+)m", entry))
        own = 200 << 20  # of the server, and of the interpreters of so few sessions
        assert settings.most_memory + temporary + own <= int(memory.removesuffix("g")) << 30
        assert temporary
        assert service["pids_limit"]


def default(text: str) -> str:
    """The value of a variable in the compose file that nothing sets."""
    match = re.fullmatch(r"\$\{\w+:-(.*)\}", text)
    assert match, text
    return match[1]


def test_compose_waits_for_the_orderly_end(services: dict[str, Any]) -> None:
    for service in services.values():
        grace = values.seconds(service["environment"]["TELETAPE_SHUTDOWN_GRACE"])
        assert int(service["stop_grace_period"].removesuffix("s")) > grace + cli._END_SECONDS


def test_no_other_process_of_a_container_has_the_keys(services: dict[str, Any]) -> None:
    """An init process would: sessions' processes are of the same user, and could read its environment."""
    assert not [name for name, service in services.items() if service.get("init")]


def test_compose_publishes_on_loopback_unless_configured_otherwise(services: dict[str, Any]) -> None:
    ports = [port for service in services.values() for port in service["ports"]]
    defaults = [re.fullmatch(r"\$\{TELETAPE_\w+:-127\.0\.0\.1:(\d+)\}:8470", port) for port in ports]
    assert all(defaults), ports
    assert len({default[1] for default in defaults if default}) == len(services)


def test_only_the_gpu_service_asks_for_a_gpu_and_only_by_profile(services: dict[str, Any]) -> None:
    asks = {name for name, service in services.items() if "reservations" in service["deploy"]["resources"]}
    profiled = {name for name, service in services.items() if "gpu" in service.get("profiles", [])}
    extras = {name for name, service in services.items() if "gpu" in service["build"]["args"]["EXTRAS"].split(",")}
    assert asks == profiled == extras == {"gpu"}


class Health(BaseHTTPRequestHandler):
    """Answers /v1/health with the server's `status`; 404 elsewhere."""

    def do_GET(self) -> None:
        self.send_response(self.server.status if self.path == "/v1/health" else 404)  # type: ignore[attr-defined]
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:
        """Keeps quiet."""


@pytest.fixture
def health() -> Iterator[HTTPServer]:
    with HTTPServer(("127.0.0.1", 0), Health) as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def health_check(port: int, **variables: str) -> int:
    """The exit status of the image's HEALTHCHECK with the server on `port`, and these variables."""
    match = re.search(r"^HEALTHCHECK (?:.|\n)+?CMD (\[.+\])$", DOCKERFILE, re.MULTILINE)
    assert match
    interpreter, *arguments = json.loads(match[1])
    assert interpreter == "python"
    proxies = dict.fromkeys(("http_proxy", "https_proxy"), "http://127.0.0.1:9")
    environment = {"TELETAPE_PORT": str(port), **proxies, **variables}
    return subprocess.run([sys.executable, *arguments], env=environment, stderr=subprocess.DEVNULL).returncode


@pytest.mark.parametrize(("status", "well"), [(200, True), (503, False), (404, False)])
def test_health_check_follows_the_answer(health: HTTPServer, status: int, well: bool) -> None:
    health.status = status  # type: ignore[attr-defined]
    assert (health_check(health.server_port) == 0) is well


def test_health_check_uses_tls_where_the_server_does(tmp_path: Path) -> None:
    certificate, key = map(str, make_certificate(tmp_path))
    with Server(Settings(tls_certificate=certificate, tls_key=key, shutdown_grace=0.1)).running() as server:
        assert health_check(server.port, TELETAPE_TLS_CERTIFICATE=certificate) == 0
        assert health_check(server.port) != 0


def test_health_check_fails_when_nobody_listens(health: HTTPServer) -> None:
    port = health.server_port
    health.shutdown()
    health.server_close()
    assert health_check(port) != 0
