"""API keys: created, shown once, kept as digests, limited, rotated and revoked, over REST and by the command."""

from __future__ import annotations

import contextlib
import json
import sqlite3
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from key_requests import ADMIN, AUDIT, bearer, listed, new_key
from lent_callers import Caller
from sqlalchemy.dialects import postgresql
from sqlalchemy.schema import CreateTable

import teletape as tf
from serving import KEYS, Server, ok, problem, until
from teletape_server import cli
from teletape_server.app import create_app
from teletape_server.connections import lending
from teletape_server.hosts import loans
from teletape_server.identity import store as tables
from teletape_server.identity.entries import Entry
from teletape_server.identity.key_texts import digest, new_text
from teletape_server.identity.keys import Key, Keys, StoreError, environment_keys
from teletape_server.identity.principals import SCOPES, scope_of
from teletape_server.identity.store import FILE, Store
from teletape_server.identity.wrong_keys import WrongKeys
from teletape_server.settings import Settings, SettingsError


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = str(tmp_path_factory.mktemp("data"))
    settings = Settings(data_dir=folder, api_keys=KEYS, admins=frozenset({"ann"}), shutdown_grace=0.1)
    with Server(settings).running() as server:
        yield server


@pytest.fixture
def admin(server: Server) -> Iterator[httpx.Client]:
    with server.client("ann") as http:
        yield http


@pytest.fixture
def anybody(server: Server) -> Iterator[httpx.Client]:
    with server.client(None) as http:
        yield http


# ------------------------------------------------------------------------------------------------------------ in memory
def test_a_key_is_valid_until_it_expires_or_is_revoked_and_each_change_has_a_number() -> None:
    now = [100.0]
    keys, changes = Keys(clock=lambda: now[0]), list[int]()
    keys.on_change(lambda: changes.append(keys.generation))
    (id, text), (other, other_text) = new_text(), new_text()
    rows = [
        Key(id, digest(text), "", "ann", created=1.0, expires=105.0),
        Key(other, digest(other_text), "", "bob", created=2.0),
    ]
    keys.replace(rows)
    keys.replace(rows)  # changes nothing
    assert changes == [1]
    assert keys.owners == 2
    first = keys.principal(text)
    assert first is not None
    assert (first.owner, first.key) == ("ann", id)
    assert keys.is_valid(first)
    assert keys.used == {id}
    now[0] = 105.0
    keys.end_expired()
    assert keys.principal(text) is None
    assert not keys.is_valid(first)
    keys.replace([Key(other, digest(other_text), "", "bob", created=2.0, revoked=105.0)])
    assert keys.principal(other_text) is None
    assert keys.principal(None) is None
    assert keys, "a server whose last key has ended is not open to everybody"
    assert changes == [1, 2, 3]


@pytest.mark.parametrize(
    ("method", "path", "scope"),
    [
        ("POST", "/v1/sessions", "sessions"),
        ("GET", "/v1/sessions/a/tapes", "sessions"),
        ("POST", "/v1/run", "sessions"),
        ("GET", "/v1/requests/x", "sessions"),
        ("POST", "/v1/published/line/gradient", "call"),
        ("GET", "/v1/published", "call"),
        ("PUT", "/v1/published/line", "publish"),
        ("DELETE", "/v1/published/line", "publish"),
        ("GET", "/v1/admin/audit", "keys"),
        ("POST", "/v2/models/line/infer", "call"),
        ("GET", "/v1/info", None),
        ("GET", "/metrics", None),
        ("GET", "/v1/sessionsx", None),
    ],
)
def test_what_a_key_must_be_for(method: str, path: str, scope: str | None) -> None:
    assert scope_of(method, path) == scope


# --------------------------------------------------------------------------------------------------------- over REST
def test_a_new_key_opens_the_server_and_is_shown_once(server: Server, admin: httpx.Client) -> None:
    facts = new_key(admin, owner="carl", name="laptop", group="lab", expires_in=3600)
    assert facts["key"].startswith(f"tt_{facts['id']}_")
    carl = bearer(facts["key"])
    ok(admin.post("/v1/sessions", json={"id": "his"}, headers=carl))
    assert ok(admin.get("/v1/sessions", headers=carl)).json()["owner"] == "carl"
    seen = listed(admin)[facts["id"]]
    assert "key" not in seen
    assert (seen["name"], seen["owner"], seen["group"], seen["state"]) == ("laptop", "carl", "lab", "valid")
    assert seen["scopes"] == list(SCOPES)
    assert [*listed(admin, **carl)] == [facts["id"]], "others see their own"
    assert {key["source"] for key in listed(admin).values()} == {"store", "environment"}
    folder = Path(server.settings.data_dir or "")
    assert (folder / FILE).stat().st_mode & 0o777 == 0o600
    secret = facts["key"].removeprefix(f"tt_{facts['id']}_").encode()
    assert all(secret not in file.read_bytes() for file in folder.rglob("*") if file.is_file())


def test_a_revoked_key_is_refused_and_its_sessions_stay(admin: httpx.Client) -> None:
    first, second = new_key(admin, owner="dora"), new_key(admin, owner="dora")
    ok(admin.post("/v1/sessions", json={"id": "hers"}, headers=bearer(first["key"])))
    assert admin.delete(f"{ADMIN}/{first['id']}").status_code == 204
    assert admin.delete(f"{ADMIN}/{first['id']}").status_code == 204  # again
    problem(admin.get("/v1/sessions", headers=bearer(first["key"])), 401, "unauthenticated")
    ok(admin.get("/v1/sessions/hers", headers=bearer(second["key"])))
    assert listed(admin)[first["id"]]["state"] == "revoked"
    missing = problem(admin.delete(f"{ADMIN}/{second['id'][:-1]}?"), 404, "unknown_id")
    assert second["id"] in missing["detail"]


def test_a_rotated_key_has_a_successor_and_ends_at_once_or_later(admin: httpx.Client) -> None:
    first = new_key(admin, owner="emil", role="admin", scopes=["sessions", "keys"], name="job")
    second = ok(admin.post(f"{ADMIN}/{first['id']}/rotate", json={"overlap": 3600})).json()
    for key in (first, second):
        ok(admin.get("/v1/sessions", headers=bearer(key["key"])))
    same = ("owner", "role", "scopes", "name", "group")
    assert [first[name] for name in same] == [second[name] for name in same]
    third = ok(admin.post(f"{ADMIN}/{second['id']}/rotate", json={})).json()
    problem(admin.get("/v1/sessions", headers=bearer(second["key"])), 401, "unauthenticated")
    ok(admin.get("/v1/sessions", headers=bearer(third["key"])))
    assert listed(admin)[first["id"]]["expires_at"] is not None
    problem(admin.post(f"{ADMIN}/{second['id']}/rotate", json={}), 422, "invalid_request")


def test_an_owner_stays_in_the_group_that_an_admin_has_named(admin: httpx.Client, anybody: httpx.Client) -> None:
    def group(key: dict[str, Any]) -> tuple[str, str]:
        facts = ok(anybody.get("/v1/me", headers=bearer(key["key"]))).json()
        return facts["group"], facts["use"]["group"]

    before = new_key(admin, owner="hugo")
    assert group(before) == ("", "")
    new_key(admin, owner="hugo", group="lab")
    assert group(before) == ("lab", "@lab"), "of all keys of an owner"
    for more in ({}, {"name": "job", "scopes": ["sessions"]}):
        assert group(new_key(admin, owner="hugo", **more)) == ("lab", "@lab"), "a key that names none changes nothing"
    limited = new_key(admin, owner="hugo", limits={"sessions": 2})
    assert group(limited) == ("lab", "@lab"), "also one that counts by itself"
    hugo = bearer(before["key"])
    problem(anybody.post(ADMIN, json={"group": ""}, headers=hugo), 403, "forbidden")
    for id in {*listed(admin, **hugo)} - {before["id"]}:
        assert anybody.delete(f"{ADMIN}/{id}", headers=hugo).status_code == 204
    assert group(before) == ("lab", "@lab"), "also after the owner has ended the others"
    rotated = ok(anybody.post(f"{ADMIN}/{before['id']}/rotate", json={}, headers=hugo)).json()
    assert (rotated["group"], group(rotated)) == ("lab", ("lab", "@lab"))
    assert group(new_key(admin, owner="hugo", group="")) == ("", ""), "an admin takes the owner out of it"


def test_an_expired_key_is_refused(admin: httpx.Client) -> None:
    key = new_key(admin, owner="emil", expires_in=0.5)
    ends = time.monotonic() + 0.5

    def is_refused() -> bool:
        return admin.get("/v1/sessions", headers=bearer(key["key"])).status_code == 401

    until(is_refused)
    assert time.monotonic() >= ends - 0.1
    assert listed(admin)[key["id"]]["state"] == "expired"


def test_a_key_is_for_its_scopes_alone(admin: httpx.Client, anybody: httpx.Client) -> None:
    """Also over connections that know its head: a frame that is refused is answered as any other request."""
    calls = bearer(new_key(admin, owner="fred", scopes=["call"])["key"])
    sessions = bearer(new_key(admin, owner="fred", scopes=["sessions"])["key"])
    ok(anybody.post("/v1/sessions", json={"id": "f"}, headers=sessions))
    for method, path, headers, scope in (
        ("GET", "/v1/sessions/f", calls, "sessions"),
        ("POST", "/v1/sessions/f/ops", calls, "sessions"),
        ("POST", "/v1/sessions/f/batch", calls, "sessions"),
        ("POST", "/v1/run", calls, "sessions"),
        ("GET", "/v1/published", sessions, "call"),
        ("PUT", "/v1/published/line", calls, "publish"),
        ("GET", ADMIN, calls, "keys"),
        ("GET", AUDIT, sessions, "keys"),
    ):
        content = None if method == "GET" else b"{}"
        sent = {**headers, "Content-Type": "application/json"}
        refused = problem(anybody.request(method, path, headers=sent, content=content), 403, "forbidden")
        assert refused["details"]["scope"] == scope
    ok(anybody.get("/v1/published", headers=calls))
    ok(anybody.get("/v1/info", headers=calls))


def test_a_key_creates_none_that_allows_more(server: Server, admin: httpx.Client, anybody: httpx.Client) -> None:
    limited = new_key(admin, owner="gina", scopes=["sessions", "keys"], group="lab", expires_in=3600)
    gina = bearer(limited["key"])
    for wanted in ({"owner": "ann"}, {"role": "admin"}, {"group": "other"}, {"scopes": ["publish"]}):
        problem(anybody.post(ADMIN, json={"scopes": ["sessions"], **wanted}, headers=gina), 403, "forbidden")
    own = ok(anybody.post(ADMIN, json={"scopes": ["sessions"]}, headers=gina)).json()
    assert (own["owner"], own["role"], own["group"]) == ("gina", "user", "lab")
    assert own["expires_at"] == limited["expires_at"], "it ends no later"
    strong = new_key(admin, owner="gina", role="admin")
    problem(anybody.post(f"{ADMIN}/{strong['id']}/rotate", json={}, headers=gina), 403, "forbidden")
    problem(anybody.delete(f"{ADMIN}/env-ann", headers=gina), 404, "unknown_id")
    problem(admin.delete(f"{ADMIN}/env-ann"), 422, "invalid_request")
    problem(anybody.get(AUDIT, headers=gina), 403, "forbidden")
    with server.client("bob") as bob:
        assert [*listed(bob)] == ["env-bob"]


def test_without_a_place_for_keys_none_is_created() -> None:
    with Server(Settings(api_keys=KEYS, admins=frozenset({"ann"}))).running() as server, server.client() as http:
        refused = problem(http.post(ADMIN, json={}), 422, "invalid_request")
        assert "--data-dir" in refused["detail"]
        assert [*listed(http)] == ["env-ann", "env-bob"]


# -------------------------------------------------------------------------------------------------------- wrong keys
def test_an_address_with_many_wrong_keys_has_new_keys_looked_at_later_and_its_right_ones_now() -> None:
    """Also for frames and runs, which the framework does not see otherwise; other addresses are not concerned."""
    now = [100.0]
    with Server(Settings(api_keys=KEYS, shutdown_grace=0.1)).running() as server:
        server.app.state.identity.wrong_keys = WrongKeys(lambda: now[0])
        stranger = httpx.HTTPTransport(local_address="127.0.0.2")
        with server.client("ann") as ann, httpx.Client(base_url=server.url, transport=stranger, timeout=60) as http:
            run: dict[str, Any] = {"json": {"commands": [], "fetch": []}}
            ok(http.get("/v1/info", headers=bearer(KEYS["ann"])))
            for number in range(20):
                problem(http.post("/v1/run", headers=bearer(f"guess-{number}"), **run), 401, "unauthenticated")
            for key in ("another-guess", KEYS["bob"]):
                refused = http.post("/v1/run", headers=bearer(key), **run)
                problem(refused, 429, "busy")
                assert refused.headers["Retry-After"] == "60"
            ok(http.post("/v1/run", headers=bearer(KEYS["ann"]), **run))
            problem(http.get("/v1/info"), 401, "unauthenticated")  # without any
            with server.client("bob") as bob:
                ok(bob.post("/v1/run", **run))
            ok(ann.get("/v1/info"))
            now[0] += 60.0
            ok(http.post("/v1/run", headers=bearer(KEYS["bob"]), **run))


# ------------------------------------------------------------------------------------------- connections that are open
@pytest.fixture
def key(admin: httpx.Client) -> dict[str, Any]:
    """A key whose owner has a session."""
    key = new_key(admin, owner="ines")
    ok(admin.post("/v1/sessions", json={"id": "demo"}, headers=bearer(key["key"])))
    return key


def end_of(server: Server, key: dict[str, Any]) -> float:
    """Revokes a key over another connection; returns when that was answered, on the monotonic clock."""
    with server.client("ann") as http:
        assert http.delete(f"{ADMIN}/{key['id']}").status_code == 204
    return time.monotonic()


def test_a_connection_that_stays_open_is_refused_with_its_next_request(server: Server, key: dict[str, Any]) -> None:
    with server.client(None, **bearer(key["key"])) as http:
        ok(http.get("/v1/sessions"))
        end_of(server, key)
        problem(http.get("/v1/sessions"), 401, "unauthenticated")


def test_frames_whose_head_is_known_are_refused(server: Server, key: dict[str, Any]) -> None:
    with (
        server.client(None, **bearer(key["key"])) as http,
        Caller(server, http, lends=False, **bearer(key["key"])) as caller,
    ):
        for _ in range(2):
            caller.run()
        end_of(server, key)
        caller.send()
        assert caller.answer().status == 401


@pytest.fixture
def lends(monkeypatch: pytest.MonkeyPatch) -> None:
    """However busy the machine is, connections are lent, and are not taken back for another reason."""
    monkeypatch.setattr(lending, "_QUICK", 600.0)
    for seconds in ("_IDLE_SECONDS", "_LONG_SECONDS"):
        monkeypatch.setattr(loans, seconds, 600.0)


@pytest.mark.usefixtures("lends")
def test_a_lent_connection_comes_back_and_is_refused(server: Server, key: dict[str, Any]) -> None:
    other = {"owner": "ines", "role": "user"}
    with server.client("ann") as http:
        second = new_key(http, **other)
    with (
        server.client(None, **bearer(key["key"])) as http,
        Caller(server, http, **bearer(key["key"])) as caller,
        Caller(server, http, **bearer(second["key"])) as stays,
    ):
        assert caller.is_lent
        ended = end_of(server, key)
        until(lambda: not caller.is_lent)
        assert time.monotonic() - ended < 1.0
        caller.send()
        assert caller.answer().status == 401
        stays.run()  # with a key that is valid
        stays.lend()


def test_a_stream_of_events_to_a_key_that_has_ended_is_cut(server: Server, key: dict[str, Any]) -> None:
    events = {"Accept": "text/event-stream"}
    with (
        server.client(None, **events, **bearer(key["key"])) as http,
        server.client("bob", **events) as bob,
        http.stream("GET", "/v1/sessions") as stream,
        bob.stream("GET", "/v1/sessions") as other,
        server.client("bob") as client,
    ):
        lines, others = stream.iter_lines(), other.iter_lines()
        assert next(lines) == next(others) == "event: sessions"
        end_of(server, key)
        with pytest.raises(httpx.RemoteProtocolError):
            list(lines)
        ok(client.post("/v1/sessions", json={"id": "new"}))
        until(lambda: next(others) == "event: session")  # of a key that is valid


def test_a_program_of_the_sdk_gets_the_refusal(server: Server, key: dict[str, Any]) -> None:
    refused = tf.errors.UnauthenticatedError
    with contextlib.suppress(refused), tf.connect(server.url, api_key=key["key"]):  # its end is refused too
        x = tf.constant([1.0, 2.0])
        assert float(tf.reduce_sum(x * x).numpy()) == 5.0
        end_of(server, key)
        with pytest.raises(refused, match="not one of its keys"):
            tf.reduce_sum(x).numpy()


# -------------------------------------------------------------------------------------------------------------- audit
def test_the_audit_has_creations_ends_key_changes_and_looks_of_admins(server: Server, admin: httpx.Client) -> None:
    with server.client("bob") as bob:
        ok(bob.post("/v1/sessions", json={"id": "watched"}))
        ok(bob.get("/v1/sessions/watched"))
        ok(admin.get("/v1/sessions/bob:watched"))
        assert cli.main(["sessions", "show", "watched", "--url", server.url, "--api-key", KEYS["ann"]]) == 0
        ok(admin.delete("/v1/sessions/bob:watched"))
        ended = problem(bob.get("/v1/sessions/watched"), 410, "session_ended")
        assert "the admin ann deleted it" in ended["detail"]
    entries = ok(admin.get(AUDIT, params={"subject": "bob:watched"})).json()["entries"]
    assert [(entry["action"], entry["owner"], entry["key"]) for entry in reversed(entries)] == [
        ("session.created", "bob", "env-bob"),
        *[("session.seen", "ann", "env-ann")] * 3,
        ("session.ended", "ann", "env-ann"),
    ]
    assert entries[-2]["detail"] == "GET /v1/sessions/bob:watched"
    assert {entry["address"] for entry in entries} == {"127.0.0.1"}
    key = new_key(admin, owner="hugo")
    ok(admin.post(f"{ADMIN}/{key['id']}/rotate", json={}))
    page = ok(admin.get(AUDIT, params={"limit": 1, "subject": key["id"]}))
    assert page.json()["entries"][0]["action"] == "key.rotated"
    assert page.json()["next"] is not None
    following = ok(admin.get(page.links["next"]["url"])).json()
    assert [entry["action"] for entry in following["entries"]] == ["key.created"]
    assert following["next"] is None
    assert key["key"] not in ok(admin.get(AUDIT)).text


def test_the_audit_has_what_is_published_renamed_and_deleted(server: Server, admin: httpx.Client) -> None:
    body = {"function": {"text": "y = x**2"}, "inputs": {"x": {"shape": [2]}}, "visibility": "everybody"}
    with server.client("bob") as bob:
        version = ok(bob.put("/v1/published/curve", json=body)).json()["version"]["version"]
        ok(bob.put("/v1/published/curve/aliases/stable", json={"version": version}))
        ok(bob.delete("/v1/published/curve"))
    entries = ok(admin.get(AUDIT, params={"subject": "curve"})).json()["entries"]
    assert [(entry["action"], entry["owner"], entry["detail"]) for entry in reversed(entries)] == [
        ("function.published", "bob", f"version {version}, everybody"),
        ("function.aliased", "bob", f"stable is version {version}"),
        ("function.deleted", "bob", "all versions"),
    ]


def test_nothing_changes_what_is_in_the_audit_or_removes_what_is_young(tmp_path: Path) -> None:
    store, day = Store.in_folder(str(tmp_path)), 86400.0
    ages = {"old": 31 * day, "young": 29 * day}
    store.append([Entry(time.time() - age, "key.created", name, "", "", "x", "") for name, age in ages.items()])
    with sqlite3.connect(tmp_path / FILE) as connection:
        for statement in (
            "DELETE FROM teletape_audit WHERE owner = 'young'",
            "UPDATE teletape_audit SET owner = 'bob'",
        ):
            with pytest.raises(sqlite3.IntegrityError, match="only added to"):
                connection.execute(statement)
        # As an earlier version has made it: nothing was ever removed.
        connection.execute("DROP TRIGGER teletape_audit_delete")
        connection.execute(
            "CREATE TRIGGER teletape_audit_delete BEFORE DELETE ON teletape_audit "
            "BEGIN SELECT RAISE(ABORT, 'the audit is only added to'); END"
        )
    connection.close()
    store.close()
    store = Store.in_folder(str(tmp_path))
    with pytest.raises(StoreError, match="only added to"):
        store.remove_entries(time.time())
    assert store.remove_entries(time.time() - 30 * day - 60) == 1
    assert [entry.owner for entry in store.entries(before=None, limit=9, subject=None, action=None)] == ["young"]
    store.close()


def test_a_server_removes_entries_of_the_audit_at_their_age(tmp_path: Path) -> None:
    store, day = Store.in_folder(str(tmp_path)), 86400.0
    ages = {"old": 51 * day, "young": 49 * day}
    store.append([Entry(time.time() - age, "key.created", name, "", "", "x", "") for name, age in ages.items()])
    store.close()
    settings = Settings(data_dir=str(tmp_path), api_keys=KEYS, admins=frozenset({"ann"}), audit_age=50 * day)
    with Server(settings).running() as server, server.client() as admin:
        until(lambda: [entry["owner"] for entry in ok(admin.get(AUDIT)).json()["entries"]] == ["young"])


def test_the_tables_are_those_of_postgresql_too() -> None:
    texts = [str(CreateTable(table).compile(dialect=postgresql.dialect())) for table in tables.TABLES.sorted_tables]  # type: ignore[no-untyped-call]
    assert any("digest BYTEA NOT NULL" in text for text in texts)
    assert any("number BIGSERIAL NOT NULL" in text for text in texts)


def test_a_database_that_cannot_be_used_is_named_without_its_password(tmp_path: Path) -> None:
    (tmp_path / FILE).write_bytes(b"this is no database" * 100)
    with pytest.raises(StoreError, match="not a database"):
        Store.in_folder(str(tmp_path))
    with pytest.raises(StoreError) as failure:
        Store("nosuchdatabase://ann:hidden-password@host/keys")
    assert "hidden-password" not in str(failure.value)


# ---------------------------------------------------------------------------------------------------------- the command
Run = Callable[..., str]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    def run(*arguments: object, status: int = 0) -> str:
        assert cli.main(["keys", *map(str, arguments)]) == status
        printed = capsys.readouterr()
        return printed.out if status == 0 else printed.err

    return run


def test_the_first_key_comes_before_the_first_start(tmp_path: Path, run: Run) -> None:
    where = ("--data-dir", tmp_path)
    root = run("create", "root", "--role", "admin", *where).strip()
    other = run("create", "ann", "--name", "job", "--scopes", "sessions", "--expires", "90d", *where).strip()
    assert "root  -  admin  sessions,call,publish,keys  valid  used never" in run("list", *where)
    with Server(Settings(data_dir=str(tmp_path), host="127.0.0.1", shutdown_grace=0.1)).running() as server:
        with server.client(None) as http:
            problem(http.get("/v1/sessions"), 401, "unauthenticated")
            ok(http.post("/v1/sessions", json={"id": "a"}, headers=bearer(other)))
            assert "a server has" in run("list", *where, status=1), "its store is not changed behind its back"
        there = ("--url", server.url, "--api-key", root)
        id = other.split("_")[1]
        assert f"{id}  ann  -  user  sessions  valid, ends " in run("list", *there)
        second = run("rotate", id, *there).strip()
        assert "no key with the id" in run("revoke", "nothing", *there, status=1)
        run("revoke", second.split("_")[1], *there)
        third = run("create", "ann", *there).strip()
        with server.client(None) as http:
            for key, status in ((other, 401), (second, 401), (third, 200)):
                assert http.get("/v1/sessions", headers=bearer(key)).status_code == status
    states = {line.split()[0]: line.split()[5].strip(",") for line in run("list", *where).splitlines()}
    assert states[id] == states[second.split("_")[1]] == "revoked"
    assert states[third.split("_")[1]] == "valid"
    assert "used 20" in run("list", *where), "the last uses are written when the server ends"
    assert "has ended" in run("rotate", id, *where, status=1)
    assert "scopes" in run("create", "ann", "--scopes", "everything", *where, status=1)
    assert "--data-dir" in run("list", status=1)


def test_a_server_that_others_reach_needs_a_key_in_one_of_its_places(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="set TELETAPE_API_KEYS"):
        Settings(host="0.0.0.0")
    settings = Settings(host="0.0.0.0", data_dir=str(tmp_path))
    with pytest.raises(SettingsError, match="teletape keys create"):
        settings.check_reach(has_keys=False)
    settings.check_reach(has_keys=True)
    app = create_app(settings)
    assert not app.state.keys
    assert json.dumps([key.id for key in environment_keys(KEYS, ())]) == '["env-ann", "env-bob"]'
