"""Where a client sends its requests, with which key, and what it refuses before it sends any."""

from pathlib import Path

import httpx
import pytest

from teletape_client import AuthenticationError, Client, NoAnswerError
from unix_server import UnixServer


def sent(client: Client) -> httpx.Request:
    """The request that a client sends for the server's health."""
    requests: list[httpx.Request] = []

    def handle(request: httpx.Request) -> httpx.Response:
        requests.append(request)
        return httpx.Response(200, json={"status": "ok"})

    with httpx.Client(transport=httpx.MockTransport(handle)) as http:
        client._connection = client._connection._replace(http=http)
        client.health()
    client.close()
    return requests[0]


@pytest.mark.parametrize("url", ["http://localhost:8470", "http://localhost:8470/", "http://localhost:8470/v1/"])
def test_an_address_has_any_end_that_people_copy(url: str) -> None:
    assert sent(Client(url)).url == "http://localhost:8470/v1/health"


@pytest.mark.parametrize("url", ["", "gpu-box", "ftp://gpu-box", "http://ann:secret@gpu-box"])
def test_what_is_no_address_is_refused_without_its_secrets(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TELETAPE_URL", raising=False)
    with pytest.raises(ValueError, match="is no address of a server") as raised:
        Client(url)
    assert "secret" not in str(raised.value)


def test_address_and_key_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TELETAPE_URL", "https://gpu-box")
    monkeypatch.setenv("TELETAPE_API_KEY", "k1")
    request = sent(Client())
    assert (str(request.url), request.headers["Authorization"]) == ("https://gpu-box/v1/health", "Bearer k1")
    assert sent(Client(api_key="k2")).headers["Authorization"] == "Bearer k2"


@pytest.mark.parametrize("url", ["http://gpu-box:8470", "http://10.0.0.7"])
def test_a_key_is_not_sent_unencrypted_to_another_machine(url: str) -> None:
    with pytest.raises(ValueError, match="would be sent there unencrypted"):
        Client(url, api_key="k")
    assert sent(Client(url, api_key="k", allow_insecure=True)).headers["Authorization"] == "Bearer k"


@pytest.mark.parametrize("url", ["http://127.0.0.1", "http://[::1]:8470", "http://box.localhost", "https://gpu-box"])
def test_a_key_is_sent_to_this_machine_and_encrypted(url: str) -> None:
    assert sent(Client(url, api_key="k")).headers["Authorization"] == "Bearer k"


def test_a_unix_socket_is_an_address(tmp_path: Path) -> None:
    with UnixServer(tmp_path / "s").running() as server, Client(server.url) as client:
        assert client.run([], tensors={"x": 1.5}, fetch=["x"])["x"] == 1.5


def test_a_wrong_key_and_a_closed_port_are_different_errors(server: object) -> None:
    with Client(server.url, api_key="wrong") as client, pytest.raises(AuthenticationError) as raised:  # type: ignore[attr-defined]
        client.sessions.list()
    assert (raised.value.code, raised.value.status) == ("unauthenticated", 401)
    assert isinstance(raised.value, PermissionError)
    with Client("http://127.0.0.1:1", max_retries=0) as client, pytest.raises(NoAnswerError, match="ConnectError"):
        client.health()
