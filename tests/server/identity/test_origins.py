"""Pages of other origins: which requests a server answers, and what its answers allow browsers to show."""

from collections.abc import Iterator

import httpx
import pytest

from serving import KEYS, Program, Server, ok, problem
from teletape_engine.commands import Constant
from teletape_server.settings import Settings, SettingsError

ALLOWED = "https://app.example"


@pytest.fixture(params=["without keys", "with keys"])
def http(request: pytest.FixtureRequest) -> Iterator[httpx.Client]:
    """A client of a server that allows one origin."""
    keys = KEYS if request.param == "with keys" else {}
    settings = Settings(allow_origins=frozenset({ALLOWED}), api_keys=keys, shutdown_grace=0.1)
    with Server(settings).running() as server, server.client() as client:
        yield client


def preflight(http: httpx.Client, path: str, origin: str, method: str = "POST", **headers: str) -> httpx.Response:
    """What a browser sends before a request that a form could not send; it sends no key."""
    headers = {"Origin": origin, "Access-Control-Request-Method": method} | headers
    return httpx.options(f"{http.base_url}".rstrip("/") + path, headers=headers, trust_env=False)


def test_an_allowed_origin_may_send_everything_and_read_everything(http: httpx.Client) -> None:
    wanted = {"Access-Control-Request-Headers": "authorization,content-type,idempotency-key,if-match,tensor-shape"}
    for method, path in (("POST", "/v1/run"), ("PUT", "/v1/sessions/s/variables/w"), ("DELETE", "/v1/sessions/s")):
        answer = preflight(http, path, ALLOWED, method, **wanted)
        assert (answer.status_code, answer.content) == (204, b"")
        assert answer.headers["access-control-allow-origin"] == ALLOWED
        assert method in answer.headers["access-control-allow-methods"].split(", ")
        assert answer.headers["access-control-allow-headers"] == wanted["Access-Control-Request-Headers"]
        assert "origin" in answer.headers["vary"].lower()
        assert len(answer.headers["x-request-id"]) == 16
        assert "access-control-allow-credentials" not in answer.headers
    http.headers["Origin"] = ALLOWED
    ok(http.post("/v1/sessions", json={"id": "s"}))
    created = ok(http.post("/v1/sessions/s/variables", json={"id": "w", "value": [1.5, 2.5]}))
    assert created.headers["access-control-allow-origin"] == ALLOWED
    exposed = created.headers["access-control-expose-headers"].split(", ")
    assert {"location", "teletape-boot-id", "x-request-id"} <= {*exposed}
    raw = ok(http.get("/v1/sessions/s/variables/w", headers={"Accept": "application/octet-stream"}))
    assert {"tensor-dtype", "tensor-shape"} <= {*raw.headers["access-control-expose-headers"].split(", ")}


def test_an_allowed_page_can_read_refusals_too(http: httpx.Client) -> None:
    http.headers["Origin"] = ALLOWED
    for answer in (http.get("/v1/nothing"), http.post("/v1/run", json={"comands": []}), http.patch("/v1/run")):
        assert answer.headers["content-type"] == "application/problem+json"
        assert answer.headers["access-control-allow-origin"] == ALLOWED
    del http.headers["Origin"]
    assert "access-control-allow-origin" not in ok(http.get("/v1/health")).headers


def test_a_page_of_a_network_may_use_a_server_on_loopback(http: httpx.Client) -> None:
    """Chromium asks for this when a public page wants something of a private address."""
    answer = preflight(http, "/v1/run", ALLOWED, **{"Access-Control-Request-Private-Network": "true"})
    assert answer.headers["access-control-allow-private-network"] == "true"


@pytest.mark.parametrize(
    "origin", ["https://app.example.evil", "http://app.example", "https://app.example:444", "null"]
)
def test_the_preflight_of_another_origin_is_refused_with_what_to_do(http: httpx.Client, origin: str) -> None:
    answer = preflight(http, "/v1/run", origin)
    refusal = problem(answer, 403, "foreign_origin")
    assert "access-control-allow-origin" not in answer.headers
    assert repr(origin) in refusal["detail"]
    assert "--allow-origin" in refusal["detail"]


def test_a_frame_of_an_allowed_page_is_answered_as_any_request(http: httpx.Client) -> None:
    ok(http.post("/v1/sessions", json={"id": "s"}))
    program = Program(http, "s")
    for origin in (ALLOWED, None):
        response = ok(program.post(program.batch(Constant(program.seq, 1.5)), **({"Origin": origin} if origin else {})))
        assert response.headers.get("access-control-allow-origin") == origin


def test_without_keys_what_another_origin_sends_is_refused(server_url: str) -> None:
    """The advice in the refusal is the setting that allows it."""
    with httpx.Client(base_url=server_url, trust_env=False) as plain:
        refusal = problem(plain.get("/v1/info", headers={"Origin": ALLOWED}), 403, "foreign_origin")
        assert f"--allow-origin {ALLOWED} (TELETAPE_ALLOW_ORIGINS)" in refusal["detail"]
    allowed = Settings.load(["--allow-origin", ALLOWED], {})
    with Server(allowed).running() as server, server.client() as client:
        ok(client.get("/v1/info", headers={"Origin": ALLOWED}))
        problem(client.get("/v1/info", headers={"Origin": "https://b.example"}), 403, "foreign_origin")


def test_with_keys_a_page_of_another_origin_can_read_nothing(server: Server) -> None:
    """It may send what a form may send, and has no key; the key of a proxy's page is let through."""
    with server.client() as client:
        answer = ok(client.get("/v1/info", headers={"Origin": ALLOWED}))
        assert not [name for name in answer.headers if name.startswith("access-control")]


def test_an_allowed_origin_does_not_replace_a_key() -> None:
    settings = Settings(allow_origins=frozenset({ALLOWED}), api_keys=KEYS, shutdown_grace=0.1)
    with Server(settings).running() as server, server.client(None) as client:
        answer = client.get("/v1/sessions", headers={"Origin": ALLOWED})
        problem(answer, 401, "unauthenticated")
        assert answer.headers["access-control-allow-origin"] == ALLOWED
        assert "www-authenticate" in answer.headers["access-control-expose-headers"]


def test_an_allowed_origin_does_not_allow_another_host(server_url: str) -> None:
    settings = Settings(allow_origins=frozenset({ALLOWED}), shutdown_grace=0.1)
    with Server(settings).running() as server, server.client() as client:
        answer = client.get("/v1/info", headers={"Origin": ALLOWED, "Host": "evil.example"})
        problem(answer, 403, "foreign_host")


@pytest.mark.parametrize(
    ("arguments", "variable", "origins"),
    [
        ([], "", set()),
        ([], "https://a.example, http://localhost:3000", {"https://a.example", "http://localhost:3000"}),
        (["--allow-origin", "https://a.example", "--allow-origin", "http://b"], "", {"https://a.example", "http://b"}),
        (["--allow-origin", "HTTPS://A.example:443"], "https://b.example", {"https://a.example"}),
        ([], "http://[::1]:80,capacitor://localhost", {"http://[::1]", "capacitor://localhost"}),
    ],
)
def test_origins_are_read_as_browsers_send_them(arguments: list[str], variable: str, origins: set[str]) -> None:
    assert Settings.load(arguments, {"TELETAPE_ALLOW_ORIGINS": variable}).allow_origins == origins


@pytest.mark.parametrize(
    "text",
    [
        *("*", "https://*.example", "app.example", "https://app.example/", "https://a.example/path", "null"),
        *("https://", "https://a b", "https://user@a.example", "https://a.example:port", "https://bücher.example"),
    ],
)
def test_what_is_no_origin_is_refused(text: str) -> None:
    with pytest.raises(SettingsError, match=r"--allow-origin must be origins as a browser sends them.*found") as caught:
        Settings.load(["--allow-origin", text], {})
    assert repr(text) in str(caught.value)
    with pytest.raises(SettingsError, match="TELETAPE_ALLOW_ORIGINS must be"):
        Settings.load([], {"TELETAPE_ALLOW_ORIGINS": text})
