"""Who may ask: keys, whose session it is, and a server without keys that serves its own machine alone."""

import socket

import httpx
import pytest

from serving import KEYS, Server, ok, problem
from teletape_server.http.access import KEYLESS
from teletape_server.identity.addresses import host_name, is_loopback, same_origin
from teletape_server.identity.key_texts import presented_key
from teletape_server.identity.keys import Keys, environment_keys
from teletape_server.identity.principals import LOCAL, Principal


def test_a_key_belongs_to_its_owner() -> None:
    keys = Keys(environment_keys(KEYS, {"bob"}))
    assert keys
    assert keys.principal(KEYS["ann"]) == Principal("ann", "env-ann", account="ann")
    assert keys.principal(KEYS["bob"]) == Principal("bob", "env-bob", "admin", account="bob")
    for wrong in (None, "", "ann", KEYS["ann"] + "x", KEYS["ann"].upper(), "ключ", "\udcff"):
        assert keys.principal(wrong) is None


def test_without_keys_everyone_is_local() -> None:
    keys = Keys()
    assert not keys
    assert keys.principal(None) is keys.principal("anything") is LOCAL


@pytest.mark.parametrize(
    ("authorization", "x_api_key", "key"),
    [
        ("Bearer abc", None, "abc"),
        ("bearer  abc ", None, "abc"),
        ("Bearer abc", "other", "abc"),
        ("Basic abc", "other", "other"),  # a proxy's own
        ("Basic abc", None, None),
        ("Bearer", "other", "other"),
        ("Bearer", None, None),
        ("Bearer ", None, None),
        (None, "abc", "abc"),
        (None, "", None),
        (None, None, None),
    ],
)
def test_where_a_key_may_stand(authorization: str | None, x_api_key: str | None, key: str | None) -> None:
    assert presented_key(authorization, x_api_key) == key


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST.", "a.localhost", "127.0.0.1", "127.9.9.9", "[::1]", "::1"])
def test_loopback_names(host: str) -> None:
    assert is_loopback(host)


@pytest.mark.parametrize(
    "host", ["", "0.0.0.0", "example.com", "127.0.0.1.example.com", "localhost.com", "10.0.0.1", "::"]
)
def test_names_that_are_not_loopback(host: str) -> None:
    assert not is_loopback(host)


def test_the_name_in_a_host_header() -> None:
    assert [host_name(header) for header in ("a:80", "a", "[::1]:80", "[::1]", "")] == ["a", "a", "[::1]", "[::1]", ""]


@pytest.mark.parametrize(
    ("origin", "same"),
    [
        ("http://localhost:8470", True),
        ("http://LOCALHOST:8470", True),
        ("http://localhost:3000", False),
        ("http://127.0.0.1:8470", False),
        ("null", False),
        ("file://", False),
        ("https://evil.example", False),
    ],
)
def test_origins(origin: str, same: bool) -> None:
    assert same_origin(origin, "localhost:8470") is same


def test_a_missing_or_wrong_key_is_401(server: Server) -> None:
    with server.client(None) as http:
        for headers in ({}, {"Authorization": "Bearer wrong-key"}, {"X-API-Key": "wrong-key"}):
            response = http.get("/v1/sessions", headers=headers)
            problem(response, 401, "unauthenticated")
            assert response.headers["WWW-Authenticate"].startswith("Bearer")
            assert "wrong-key" not in response.text
        ok(http.get("/v1/sessions", headers={"X-API-Key": KEYS["ann"]}))
        ok(http.get("/v1/health"))


def test_every_route_but_health_and_the_index_asks_for_a_key(server: Server) -> None:
    with server.client(None) as http:
        for path, item in server.app.openapi()["paths"].items():
            for method in item:
                response = http.request(method, path.replace("{session}", "x"), json={})
                if path in KEYLESS:
                    ok(response)
                else:
                    problem(response, 401, "unauthenticated")


def test_keys_are_checked_before_a_body_is_received(server: Server) -> None:
    """Each request declares a body and sends none of it, and gets its answer."""
    for path, item in server.app.openapi()["paths"].items():
        for method in item:
            with socket.create_connection(("127.0.0.1", server.port), timeout=60) as sock:
                line = f"{method.upper()} {path.replace('{session}', 'x')} HTTP/1.1"
                sock.sendall(f"{line}\r\nHost: x\r\nContent-Length: 10\r\n\r\n".encode())
                assert sock.recv(12) == (b"HTTP/1.1 200" if path in KEYLESS else b"HTTP/1.1 401"), line


def test_a_body_without_a_key_is_not_read(server: Server) -> None:
    with server.client(None) as http:
        for path in ("/v1/sessions", "/v1/sessions/x/extend", "/v1/sessions/x/batch", "/v1/run"):
            response = http.post(path, content=b"{", headers={"Content-Type": "application/json"})
            problem(response, 401, "unauthenticated")


def test_a_session_is_its_owners_alone(server: Server) -> None:
    with server.client("ann") as ann, server.client("bob") as bob:
        ok(ann.post("/v1/sessions", json={"id": "mine"}))
        for response in (
            bob.get("/v1/sessions/mine"),
            bob.delete("/v1/sessions/mine"),
            bob.post("/v1/sessions/mine/attach"),
            bob.post("/v1/sessions/mine/cancel"),
            bob.post("/v1/sessions/mine/extend", json={"seconds": 1}),
            bob.post("/v1/sessions/mine/batch", json={"commands": []}),
        ):
            problem(response, 404, "unknown_session")
        assert ok(bob.get("/v1/sessions")).json()["sessions"] == []
        assert ok(bob.post("/v1/sessions", json={"id": "mine"})).status_code == 201
        ok(bob.delete("/v1/sessions/mine"))
        problem(bob.get("/v1/sessions/mine"), 410, "session_ended")
        ok(ann.get("/v1/sessions/mine"))


def test_without_keys_foreign_names_and_origins_are_refused(server_url: str) -> None:
    own = server_url.removeprefix("http://")
    with httpx.Client(base_url=server_url, trust_env=False) as http:
        ok(http.get("/v1/sessions"))
        ok(http.get("/v1/sessions", headers={"Origin": server_url}))
        ok(http.get("/v1/sessions", headers={"Host": "localhost"}))
        for host in ("evil.example", "evil.example:80", "10.0.0.7", ""):
            problem(http.get("/v1/health", headers={"Host": host}), 403, "foreign_host")
        for origin in ("https://evil.example", "http://localhost:1", "null", f"http://evil.{own}"):
            problem(http.post("/v1/sessions", json={}, headers={"Origin": origin}), 403, "foreign_origin")


def test_with_keys_names_and_origins_are_free(server: Server) -> None:
    with server.client() as http:
        ok(http.get("/v1/sessions", headers={"Host": "gpu-box.example", "Origin": "https://notebook.example"}))


def test_every_answer_carries_a_request_id(server: Server) -> None:
    with server.client() as http:
        assert http.get("/v1/health", headers={"X-Request-Id": "mine-1"}).headers["X-Request-Id"] == "mine-1"
        ids = {
            http.get("/v1/health", headers={"X-Request-Id": bad}).headers["X-Request-Id"]
            for bad in ("", "a b", "x" * 65)
        }
        assert len(ids) == 3
        assert not ids & {"", "a b", "x" * 65}
        problem(http.get("/v1/nothing", headers={"X-Request-Id": "mine-2"}), 404, "not_found")
