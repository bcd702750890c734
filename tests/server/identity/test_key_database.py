"""The tables of keys in SQLite and in PostgreSQL, and two servers that have a database in common.

TELETAPE_TEST_POSTGRESQL is the URL of an empty database of PostgreSQL, as SQLAlchemy has it, whose tables the tests may
remove: `postgresql+psycopg://me@/keys`; `pip install psycopg[binary]`.
"""

from __future__ import annotations

import asyncio
import os
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from key_requests import ADMIN, AUDIT, bearer, listed, new_key
from sqlalchemy import create_engine
from sqlalchemy.engine import make_url
from sqlalchemy.exc import SQLAlchemyError

from serving import KEYS, Server, ok, problem, until
from teletape_server.budgets.limits import Limits, Use
from teletape_server.identity import store as store_module
from teletape_server.identity import store_turns
from teletape_server.identity.entries import Entry
from teletape_server.identity.key_texts import digest, new_text
from teletape_server.identity.keys import Key, StoreError
from teletape_server.identity.store import TABLES, Store
from teletape_server.identity.store_turns import StoreTurns
from teletape_server.problems import Problem
from teletape_server.settings import Settings

POSTGRESQL = os.environ.get("TELETAPE_TEST_POSTGRESQL", "")
needs_postgresql = pytest.mark.skipif(not POSTGRESQL, reason="TELETAPE_TEST_POSTGRESQL names no database")
DAY = 86400.0


@pytest.fixture
def postgresql() -> str:
    """The URL of a database of PostgreSQL without tables."""
    engine = create_engine(POSTGRESQL)
    with engine.begin() as connection:
        TABLES.drop_all(connection)
        connection.exec_driver_sql("DROP FUNCTION IF EXISTS teletape_audit_guard")
    engine.dispose()
    return POSTGRESQL


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=needs_postgresql)])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'keys.sqlite'}"
    return str(request.getfixturevalue("postgresql"))


@pytest.fixture
def store(url: str) -> Iterator[Store]:
    store = Store(url)
    yield store
    store.close()


def entry(age: float, owner: str) -> Entry:
    return Entry(time.time() - age, "key.created", owner, "", "", "x", "")


# ---------------------------------------------------------------------------------------------------------- the tables
def test_keys_and_limits_are_read_as_they_were_written(store: Store) -> None:
    id, text = new_text()
    key = Key(id, digest(text), "night job", "ann", "user", "lab", frozenset({"call"}), 1.5, 2.5e9, own_account="a:b")
    store.add(key)
    assert store.keys() == [key]
    store.note_used([id], 7.25)
    store.end(id, revoked=8.5)
    [ended] = store.keys()
    assert (ended.used, ended.revoked, ended.expires) == (7.25, 8.5, 2.5e9)
    limits = Limits.of({"sessions": 3, "memory_bytes": 1 << 40, "gib_hours_7d": 0.5})
    store.set_limits("ann", limits)
    store.set_limits("bob", Limits.of({"sessions": 1}))
    store.set_limits("bob", Limits.of({}))
    assert store.limits() == {"ann": limits}
    with pytest.raises(StoreError, match="refuses"):
        store.add(key)
    assert len(store.keys()) == 1


def test_what_two_servers_write_about_use_adds_up(url: str, store: Store) -> None:
    accounts = [(f"owner-{number}", 7) for number in range(10)]

    def write(*, backwards: bool) -> None:
        other = Store(url)
        for _ in range(20):
            other.add_use({account: Use(0.5, 0.25, 1) for account in accounts[:: -1 if backwards else 1]}, 3)
        other.close()

    store.add_use({("ann", 2): Use(1.0, 1.0, 1)}, 0)
    with ThreadPoolExecutor() as threads:
        for writing in [threads.submit(write, backwards=bool(number)) for number in range(2)]:
            writing.result()
    assert store.use(0) == {account: {7: Use(20.0, 10.0, 40)} for account, _ in accounts}


def test_servers_that_start_at_once_make_the_tables_once(url: str) -> None:
    ready = threading.Barrier(6)

    def start(number: int) -> None:
        ready.wait()
        store = Store(url)
        store.append([entry(0, str(number))])
        store.close()

    with ThreadPoolExecutor(6) as threads:
        list(threads.map(start, range(6)))
    store = Store(url)
    entries = store.entries(before=None, limit=9, subject=None, action=None)
    assert {entry.owner for entry in entries} == set("012345")
    store.close()


@pytest.mark.parametrize(
    "statement", ["DELETE FROM {} WHERE owner = 'young'", "UPDATE {} SET owner = 'x'", "TRUNCATE {}"]
)
def test_no_program_changes_the_audit_or_removes_what_is_young(url: str, store: Store, statement: str) -> None:
    store.append([entry(31 * DAY, "old"), entry(29 * DAY, "young")])
    engine = create_engine(url)
    with engine.connect() as connection, pytest.raises(SQLAlchemyError, match=r"only added to|syntax error"):
        connection.exec_driver_sql(statement.format("teletape_audit"))
    engine.dispose()
    with pytest.raises(StoreError, match="only added to"):
        store.remove_entries(time.time())
    assert store.remove_entries(time.time() - 30 * DAY - 60) == 1
    assert [entry.owner for entry in store.entries(before=None, limit=9, subject=None, action=None)] == ["young"]


@needs_postgresql
def test_guards_of_an_earlier_version_are_replaced(postgresql: str) -> None:
    Store(postgresql).close()
    engine = create_engine(postgresql)
    with engine.begin() as connection:
        connection.exec_driver_sql("DROP FUNCTION teletape_audit_guard CASCADE")
        rule = "CREATE RULE teletape_audit_update AS ON UPDATE TO teletape_audit DO INSTEAD NOTHING"
        connection.exec_driver_sql(rule)
    store = Store(postgresql)
    store.append([entry(0, "ann")])
    with engine.connect() as connection, pytest.raises(SQLAlchemyError, match="only added to"):
        connection.exec_driver_sql("UPDATE teletape_audit SET owner = 'bob'")
    engine.dispose()
    store.close()


def test_another_kind_of_database_is_refused() -> None:
    with pytest.raises(StoreError, match="use PostgreSQL or SQLite"):
        Store("mysql://ann:hidden-password@host/keys")


# ---------------------------------------------------------------------------------------------------------- two servers
def settings(url: str, **more: Any) -> Settings:
    return Settings(key_database=url, api_keys=KEYS, admins=frozenset({"ann"}), shutdown_grace=0.1, **more)


@needs_postgresql
def test_two_servers_have_the_same_keys_limits_use_and_audit(postgresql: str) -> None:
    with (
        Server(settings(postgresql)).running() as first,
        Server(settings(postgresql)).running() as second,
        first.client("ann") as here,
        second.client("ann") as there,
    ):
        key = new_key(here, owner="carl", group="lab")
        carl = bearer(key["key"])
        soon(lambda: there.get("/v1/sessions", headers=carl).status_code == 200)
        ok(here.put("/v1/admin/limits/carl", json={"sessions": 1, "compute_seconds_1d": 5000}))
        until(lambda: _limits(there, carl) == {"sessions": 1, "compute_seconds_1d": 5000})
        for http in (here, there):
            ok(http.post("/v1/sessions", json={"id": "his"}, headers=carl))
            run = {"commands": [{"do": "op", "op": "reduce_sum", "inputs": [[1.0] * 100_000], "outputs": ["y"]}]}
            ok(http.post("/v1/sessions/his/run", json=run, headers=carl))
        until(lambda: all(_requests(http, carl) == 2 for http in (here, there)))
        rotated = ok(there.post(f"{ADMIN}/{key['id']}/rotate", json={"overlap": 0})).json()
        soon(lambda: here.get("/v1/sessions", headers=carl).status_code == 401)
        new = bearer(rotated["key"])
        soon(lambda: here.get("/v1/sessions", headers=new).status_code == 200)
        ok(here.delete(f"{ADMIN}/{rotated['id']}"))
        soon(lambda: there.get("/v1/sessions", headers=new).status_code == 401)
        done = Counter(["key.created", "key.rotated", "key.revoked", "limits.changed", *["session.created"] * 2])
        for http in (here, there):
            until(lambda http=http: done <= Counter(_actions(http)))
        assert listed(here) == listed(there)


def soon(holds: Callable[[], bool]) -> None:
    """Waits some seconds for another server; with few tries, since an address that sends wrong keys is slowed."""
    for _ in range(6):
        if holds():
            return
        time.sleep(0.5)
    raise AssertionError("the other server does not know it")


def _limits(http: Any, headers: dict[str, str]) -> dict[str, float]:
    own: dict[str, float] = ok(http.get("/v1/me", headers=headers)).json()["use"]["own_limits"]
    return own


def _requests(http: Any, headers: dict[str, str]) -> int:
    return sum(hour["requests"] for hour in ok(http.get("/v1/me", headers=headers)).json()["hours"])


def _actions(http: Any) -> list[str]:
    return [entry["action"] for entry in ok(http.get(AUDIT)).json()["entries"]]


class Relay:
    """Passes connections on to a database, as long as it is there.

    Args:
        url: Of the database.
    """

    def __init__(self, url: str) -> None:
        target = make_url(url)
        self._target = (target.host or "127.0.0.1", target.port or 5432)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._open: list[socket.socket] = []
        self.is_there = True
        port = self._listener.getsockname()[1]
        self.url = target.set(host="127.0.0.1", port=port).render_as_string(hide_password=False)
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            if not self.is_there:
                client.close()
                continue
            database = socket.create_connection(self._target)
            self._open += [client, database]
            for source, sink in ((client, database), (database, client)):
                threading.Thread(target=self._pass, args=(source, sink), daemon=True).start()

    @staticmethod
    def _pass(source: socket.socket, sink: socket.socket) -> None:
        try:
            while content := source.recv(65536):
                sink.sendall(content)
        except OSError:
            pass
        for end in (source, sink):
            end.close()

    def cut(self) -> None:
        """Ends all connections, and refuses new ones."""
        self.is_there = False
        for end in self._open:
            end.close()

    def close(self) -> None:
        """Ends it."""
        self.cut()
        self._listener.close()


@contextmanager
def hanging(url: str) -> Iterator[None]:
    """Another program that has all tables, and does not end."""
    is_sqlite = url.startswith("sqlite")
    engine = create_engine(url, connect_args={"check_same_thread": False} if is_sqlite else {})
    with engine.connect() as connection:
        if is_sqlite:
            connection.exec_driver_sql("BEGIN EXCLUSIVE")
        else:
            connection.exec_driver_sql(f"LOCK {', '.join(TABLES.tables)} IN ACCESS EXCLUSIVE MODE")
        yield
        connection.rollback()
    engine.dispose()


def test_a_server_goes_on_and_answers_while_another_program_has_its_tables(
    url: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store_module, "_SECONDS", 0.5)
    monkeypatch.setattr(store_module, "_OPTIONS", store_module._OPTIONS.replace("=5000", "=500"))
    with Server(settings(url)).running() as server, server.client("ann") as admin:
        key = new_key(admin, owner="carl")
        carl = bearer(key["key"])
        with hanging(url):
            ok(admin.post("/v1/sessions", json={"id": "his"}, headers=carl))
            for method, path in (("DELETE", f"{ADMIN}/{key['id']}"), ("GET", AUDIT)):
                began = time.monotonic()
                refused = problem(admin.request(method, path), 503, "overloaded")
                assert "the database of keys does not answer" in refused["detail"]
                assert time.monotonic() - began < 5
            ok(admin.get("/v1/sessions", headers=carl))
        until(lambda: "answers again" in caplog.text)
        ok(admin.delete(f"{ADMIN}/{key['id']}"))
        problem(admin.get("/v1/sessions", headers=carl), 401, "unauthenticated")
        assert "session.created" in _actions(admin), "what was done meanwhile is in the audit"


def test_who_waits_for_a_database_that_never_answers_is_refused_and_what_it_does_in_the_end_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store_turns, "_SECONDS", 0.1)
    may_answer, begun, taken = threading.Event(), threading.Event(), list[str]()

    def work(store: Store) -> str:
        begun.set()
        assert may_answer.wait(60)
        return "done"

    async def ask() -> None:
        store = Store.in_folder(str(tmp_path))
        turns = StoreTurns(store)
        with pytest.raises(Problem, match="may still be done"):
            await turns.do(work, taken.append)
        assert begun.is_set()
        with pytest.raises(Problem, match="nothing was changed"):
            await turns.do(lambda store: taken.append("never"))
        patient = asyncio.ensure_future(turns.do(lambda store: store.keys(), is_patient=True))
        may_answer.set()
        assert await patient == []
        assert taken == ["done"]
        store.close()

    asyncio.run(ask())


@needs_postgresql
def test_a_server_goes_on_without_its_database(postgresql: str, caplog: pytest.LogCaptureFixture) -> None:
    relay = Relay(postgresql)
    with Server(settings(relay.url)).running() as server, server.client("ann") as admin:
        key = new_key(admin, owner="carl")
        carl = bearer(key["key"])
        relay.cut()
        ok(admin.post("/v1/sessions", json={"id": "his"}, headers=carl))
        until(lambda: "keys and limits are those that are known" in caplog.text)
        ok(admin.get("/v1/sessions", headers=carl))
        for method, path in (("POST", ADMIN), ("DELETE", f"{ADMIN}/{key['id']}"), ("GET", AUDIT)):
            body = {"json": {"owner": "dora"}} if method == "POST" else {}
            response = admin.request(method, path, **body)
            problem(response, 503, "overloaded")
            assert "Retry-After" in response.headers
        assert caplog.text.count("keys and limits are those that are known") == 1
        ok(admin.get("/v1/sessions", headers=carl))
        relay.is_there = True
        until(lambda: "answers again" in caplog.text)
        ok(admin.delete(f"{ADMIN}/{key['id']}"))
        problem(admin.get("/v1/sessions", headers=carl), 401, "unauthenticated")
        assert "session.created" in _actions(admin), "what was done meanwhile is in the audit"
    relay.close()
