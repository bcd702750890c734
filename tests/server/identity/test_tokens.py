"""Bearer tokens of an OpenID Connect issuer, which is a web server of the test's with keys of its own."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx
import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from jwt.algorithms import ECAlgorithm
from key_requests import ADMIN, LIMITS, bearer, me

import teletape as tf
from serving import Server, ok, problem, until
from teletape_server import cli
from teletape_server.identity import tokens
from teletape_server.identity.key_texts import new_text
from teletape_server.identity.keys import Keys
from teletape_server.identity.principals import Principal
from teletape_server.identity.store import Store
from teletape_server.identity.token_rules import TokenRules, is_token
from teletape_server.settings import Settings, SettingsError
from teletape_wire import timestamp

AUDIENCE = "teletape"


class Issuer:
    """An issuer of tokens, at a port of this machine.

    Attributes:
        url: Its own.
        keys: Private ones, by id.
        names: What its description says of itself, in place of the truth.
        visits: The paths of the requests to it.
    """

    def __init__(self) -> None:
        self.keys = {"first": ec.generate_private_key(ec.SECP256R1())}
        self.names: dict[str, str] = {}
        self.visits: list[str] = []
        issuer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                issuer.visits.append(self.path)
                body = json.dumps(issuer.page(self.path)).encode()
                self.send_response(200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: Any) -> None:
                pass

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_port}/realm"

    def page(self, path: str) -> dict[str, Any]:
        if path.endswith("openid-configuration"):
            return {"issuer": self.url, "jwks_uri": f"{self.url}/keys", **self.names}
        return {
            "keys": [
                {**json.loads(ECAlgorithm.to_jwk(key.public_key())), "kid": id, "use": "sig", "alg": "ES256"}
                for id, key in self.keys.items()
            ]
        }

    def token(self, owner: str = "ann", *, key: Any = None, id: str = "first", **claims: Any) -> str:
        """A token; claims that are None are left out."""
        all_claims = {"iss": self.url, "aud": AUDIENCE, "sub": owner, "exp": time.time() + 600, **claims}
        known = {name: value for name, value in all_claims.items() if value is not None}
        return jwt.encode(known, key or self.keys[id], "ES256", headers={"kid": id})


@pytest.fixture(scope="module")
def issuer() -> Iterator[Issuer]:
    issuer = Issuer()
    thread = threading.Thread(target=issuer.http.serve_forever)
    thread.start()
    yield issuer
    issuer.http.shutdown()
    issuer.http.server_close()
    thread.join()


@pytest.fixture(scope="module")
def server(issuer: Issuer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    rules = TokenRules(issuer.url, AUDIENCE, admins="operators")
    settings = Settings(data_dir=str(tmp_path_factory.mktemp("data")), oidc=rules, shutdown_grace=0.1)
    with Server(settings).running() as server:
        yield server


@pytest.fixture
def http(server: Server, monkeypatch: pytest.MonkeyPatch) -> Iterator[httpx.Client]:
    monkeypatch.setattr(tokens, "_PAUSE_SECONDS", 0.0)
    server.app.state.identity.wrong_keys._tries.clear()
    with server.client(None) as http:
        yield http


def test_an_admin_ends_the_tokens_of_an_owner_also_on_open_connections(
    server: Server, http: httpx.Client, issuer: Issuer
) -> None:
    operator = bearer(issuer.token("root", groups=["operators"]))
    now = time.time()
    mine, undated = bearer(issuer.token("eve", iat=now - 60)), bearer(issuer.token("eve", jti="undated"))
    other = bearer(issuer.token("bob", iat=now - 60))
    with server.client(None) as open_one:
        open_one.headers.update(mine)
        ok(open_one.post("/v1/sessions", json={"id": "mine"}))
        run = {"commands": [{"do": "op", "op": "fill", "inputs": [1.0], "outputs": ["y"], "attrs": {"shape": [2]}}]}
        ok(open_one.post("/v1/sessions/mine/run", json=run | {"replace": True}))
        ok(open_one.post("/v1/sessions/mine/run", json=run | {"replace": True}))  # the session's process may read it
        ok(http.get("/v1/me", headers=undated))
        refused = problem(http.delete("/v1/admin/tokens/eve", headers=other), 403, "forbidden")
        assert "needs one for keys" in refused["detail"]
        ok(http.delete("/v1/admin/tokens/eve", headers=operator))
        began = time.monotonic()
        until(lambda: open_one.post("/v1/sessions/mine/run", json=run | {"replace": True}).status_code == 401)
        assert time.monotonic() - began < 1.0
        refused = problem(open_one.get("/v1/me"), 401, "unauthenticated")
        assert "an admin has ended the tokens that eve had" in refused["detail"]
    problem(http.get("/v1/me", headers=undated), 401, "unauthenticated")
    problem(http.get("/v1/me", headers=bearer(issuer.token("eve", iat=time.time() - 1))), 401, "unauthenticated")
    ok(http.get("/v1/me", headers=other))
    ends = server.app.state.identity.keys._token_ends["eve"]
    assert now + 5 <= ends <= time.time() + 5
    new = Keys(has_issuer=True)
    new.replace([], {"eve": ends})
    eve = Principal("eve", "oidc-1", "user")
    assert not new.add_token("old", eve, now + 600, ends - 1)
    assert new.add_token("new", eve, now + 600, ends)
    assert new.principal("old") is None
    assert new.principal("new") == eve
    entries = ok(http.get("/v1/admin/audit", params={"action": "tokens.revoked"}, headers=operator)).json()["entries"]
    assert [(entry["owner"], entry["subject"]) for entry in entries] == [("root", "eve")]


def test_the_command_ends_tokens_with_a_server_and_without_one(
    server: Server, http: httpx.Client, issuer: Issuer, tmp_path: Path
) -> None:
    operator, mine = issuer.token("root", groups=["operators"]), bearer(issuer.token("dan", iat=time.time() - 60))
    ok(http.get("/v1/me", headers=mine))
    address = ["--url", server.url, "--api-key", operator]
    assert cli.main(["keys", "revoke-tokens", "dan", *address]) == 0
    problem(http.get("/v1/me", headers=mine), 401, "unauthenticated")
    assert cli.main(["keys", "revoke-tokens", "dan", "--data-dir", str(tmp_path)]) == 0
    store = Store.in_folder(str(tmp_path))
    assert store.known().token_ends["dan"] == pytest.approx(time.time() + 5, abs=10)
    store.close()


def test_a_token_is_an_owner_with_a_group_and_its_limits(http: httpx.Client, issuer: Issuer) -> None:
    operator = bearer(issuer.token("root", groups=["operators"]))
    ok(http.put(f"{LIMITS}/@lab", json={"sessions": 1}, headers=operator))
    mine = bearer(issuer.token("ann", groups=["everybody", "lab", "no name!"]))
    facts = me(http, **mine)
    assert (facts["owner"], facts["role"], facts["group"]) == ("ann", "user", "lab"), "the group that has limits"
    assert facts["key"].startswith("oidc-")
    assert timestamp(time.time() + 500) < facts["expires_at"] < timestamp(time.time() + 700)
    ok(http.post("/v1/sessions", json={"id": "s"}, headers=mine))
    full = problem(http.post("/v1/sessions", json={}, headers=mine), 409, "too_many_sessions")
    assert full["details"]["account"] == "@lab"
    another = bearer(issuer.token("ann", groups="lab", jti="2"))
    assert ok(http.get("/v1/sessions/s", headers=another)).json()["owner"] == "ann", "sessions are the owner's"
    problem(http.get("/v1/sessions/s", headers=bearer(issuer.token("bob"))), 404, "unknown_session")
    problem(http.get(ADMIN, headers=mine), 403, "forbidden")
    problem(http.post(ADMIN, json={}, headers=mine), 403, "forbidden")
    assert ok(http.get("/v1/admin/keys", headers=operator)).json()["keys"] == []
    ok(http.delete("/v1/sessions/ann:s", headers=operator))
    entry = ok(http.get("/v1/admin/audit", headers=operator)).json()["entries"][0]
    assert (entry["owner"], entry["subject"]) == ("root", "ann:s")
    assert entry["key"].startswith("oidc-")


@pytest.mark.parametrize(
    ("reason", "claims"),
    [
        ("expired", {"exp": 1_700_000_000}),
        ("audience", {"aud": "another service"}),
        ('"aud" claim', {"aud": None}),
        ("issuer", {"iss": "http://127.0.0.1:1/realm"}),
        ("exp", {"exp": None}),
        ("not yet valid", {"nbf": 4_000_000_000}),
        ("its claim 'sub', the owner, has to be", {"sub": "auth0|7"}),
        ("its claim 'sub', the owner, has to be", {"sub": None}),
        ("Signature verification failed", {"key": ec.generate_private_key(ec.SECP256R1())}),
    ],
)
def test_what_is_not_for_this_server_is_refused(
    http: httpx.Client, issuer: Issuer, reason: str, claims: dict[str, Any]
) -> None:
    answer = http.get("/v1/sessions", headers=bearer(issuer.token(**claims)))
    assert reason.lower() in problem(answer, 401, "unauthenticated")["detail"].lower()
    assert 'error="invalid_token"' in answer.headers["WWW-Authenticate"]


def test_a_token_without_a_signature_or_with_a_public_key_s_own_is_refused(http: httpx.Client, issuer: Issuer) -> None:
    claims = {"iss": issuer.url, "aud": AUDIENCE, "sub": "ann", "exp": time.time() + 600}
    for token in (
        jwt.encode(claims, None, "none", headers={"kid": "first"}),
        jwt.encode(claims, "a secret that everybody may know, since it is long", "HS256", headers={"kid": "first"}),
    ):
        problem(http.get("/v1/sessions", headers=bearer(token)), 401, "unauthenticated")
    problem(http.get("/v1/sessions"), 401, "unauthenticated")
    problem(http.get("/v1/sessions", headers=bearer("eyJ.no.token")), 401, "unauthenticated")


def test_a_known_token_asks_no_issuer_and_a_new_key_of_the_issuer_is_read(http: httpx.Client, issuer: Issuer) -> None:
    mine = bearer(issuer.token())
    ok(http.get("/v1/sessions", headers=mine))
    before = len(issuer.visits)
    for _ in range(3):
        ok(http.get("/v1/sessions", headers=mine))
    ok(http.get("/v1/sessions", headers=bearer(issuer.token("bob", jti="new"))))
    assert len(issuer.visits) == before
    issuer.keys["second"] = ec.generate_private_key(ec.SECP256R1())
    ok(http.get("/v1/sessions", headers=bearer(issuer.token(id="second"))))
    assert len(issuer.visits) == before + 2
    former = issuer.keys.pop("first")
    issuer.keys["third"] = ec.generate_private_key(ec.SECP256R1())
    ok(http.get("/v1/sessions", headers=bearer(issuer.token(id="third"))))
    answer = http.get("/v1/sessions", headers=bearer(issuer.token(key=former, jti="late")))
    assert "is none of the issuer's" in problem(answer, 401, "unauthenticated")["detail"]
    issuer.keys["first"] = former


def test_a_token_ends_at_its_time(http: httpx.Client, issuer: Issuer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokens, "LEEWAY", 0.0)
    mine = bearer(issuer.token(exp=time.time() + 3.0))
    ok(http.get("/v1/sessions", headers=mine))
    until(lambda: http.get("/v1/sessions", headers=mine).status_code == 401)


def test_wrong_tokens_are_slowed_by_address(http: httpx.Client, issuer: Issuer) -> None:
    for number in range(20):
        problem(
            http.get("/v1/sessions", headers=bearer(issuer.token(aud="x", jti=str(number)))), 401, "unauthenticated"
        )
    before = len(issuer.visits)
    problem(http.get("/v1/sessions", headers=bearer(issuer.token(jti="new"))), 429, "busy")
    assert len(issuer.visits) == before


def test_a_program_takes_a_token_and_keys_are_taken_too(server: Server, http: httpx.Client, issuer: Issuer) -> None:
    operator = bearer(issuer.token("root", groups=["operators"]))
    key = ok(http.post(ADMIN, json={"owner": "ann"}, headers=operator)).json()["key"]
    for credential in (issuer.token(), key):
        with tf.connect(server.url, api_key=credential):
            assert (tf.constant([1.0, 2.0]) * 2.0).numpy().tolist() == [2.0, 4.0]


@pytest.mark.parametrize("names", [None, {"issuer": "https://another.example"}, {"jwks_uri": "file:///etc/passwd"}])
def test_an_issuer_that_gives_no_keys_is_no_fault_of_the_token(names: dict[str, str] | None) -> None:
    issuer = Issuer()
    thread = threading.Thread(target=issuer.http.serve_forever)
    thread.start()
    try:
        issuer.names = names or {}
        if names is None:
            issuer.http.shutdown()
            issuer.http.server_close()
        settings = Settings(oidc=TokenRules(issuer.url, AUDIENCE), shutdown_grace=0.1)
        with Server(settings).running() as server, server.client(None) as http:
            answer = http.get("/v1/sessions", headers=bearer(issuer.token()))
            text = problem(answer, 503, "overloaded")["detail"]
            assert f"the token cannot be checked: the issuer {issuer.url} gives no keys" in text
            assert answer.headers["Retry-After"] == "1"
            ok(http.get("/v1/health"))
            before = len(issuer.visits)
            problem(http.get("/v1/sessions", headers=bearer(issuer.token())), 503, "overloaded")
            assert len(issuer.visits) == before, "it is not asked at once again"
    finally:
        issuer.http.shutdown()
        issuer.http.server_close()
        thread.join()


def test_known_keys_of_an_issuer_outlive_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokens, "_PAUSE_SECONDS", 0.0)
    monkeypatch.setattr(tokens, "_LIFETIME", 0.0)  # they are read again with each token
    issuer = Issuer()
    thread = threading.Thread(target=issuer.http.serve_forever)
    thread.start()
    settings = Settings(oidc=TokenRules(issuer.url, AUDIENCE), shutdown_grace=0.1)
    with Server(settings).running() as server, server.client(None) as http:
        ok(http.get("/v1/sessions", headers=bearer(issuer.token())))
        issuer.http.shutdown()
        issuer.http.server_close()
        thread.join()
        ok(http.get("/v1/sessions", headers=bearer(issuer.token("bob"))))
        issuer.keys["new"] = ec.generate_private_key(ec.SECP256R1())
        problem(http.get("/v1/sessions", headers=bearer(issuer.token(id="new"))), 503, "overloaded")


# ------------------------------------------------------------------------------------------------------------ in memory
def test_as_many_tokens_are_known_as_may_be_and_the_last_token_names_the_group(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("teletape_server.identity.keys._MOST_TOKENS", 2)
    now, changes = [100.0], list[int]()
    keys = Keys(clock=lambda: now[0], has_issuer=True)
    keys.on_change(lambda: changes.append(keys.generation))
    assert keys, "it requires a token"
    assert keys.principal(None) is None
    principals = [Principal("ann", f"oidc-{number}", group="lab", account="ann") for number in range(3)]
    for number, principal in enumerate(principals):
        keys.add_token(f"token {number}", principal, 110.0 + number, 100.0)
    assert keys.principal("token 1") == principals[1]
    assert keys.groups == {"ann": "lab"}
    assert changes == [2], "a second token of an owner changes nothing that was decided"
    now[0] = 111.0
    keys.end_expired()
    assert (keys.principal("token 1"), keys.principal("token 2")) == (None, principals[2])
    assert not keys.is_valid(principals[1])
    assert keys.groups == {"ann": "lab"}, "its sessions count on"


def test_keys_do_not_look_like_tokens() -> None:
    assert not is_token(new_text()[1])
    assert is_token(jwt.encode({"sub": "ann"}, "a secret of the test that is long enough", "HS256"))
    assert not is_token(None)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "issuer=https://login.example",
        "audience=teletape",
        "issuer=http://login.example,audience=teletape",
        "issuer=https://login.example,audience=a,audience=b",
        "issuer=https://login.example,audience=a,scope=b",
        "issuer=https://login.example,audience=a,groups=",
    ],
)
def test_rules_that_do_not_fit_are_refused(text: str) -> None:
    with pytest.raises(SettingsError, match="--oidc must be issuer=URL and audience=NAME"):
        Settings.load(["--oidc", text], {})


def test_rules_are_read() -> None:
    text = "issuer=https://login.example/r,audience=teletape,owner=preferred_username,groups=roles,admins=ops"
    rules = Settings.load(["--host", "0.0.0.0", "--oidc", text], {}).oidc
    assert rules == TokenRules("https://login.example/r", "teletape", "preferred_username", "roles", "ops")
