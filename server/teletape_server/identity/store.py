"""The tables of keys, limits, use and audit: a file of SQLite in the folder for data, or the database of a URL."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Final

from sqlalchemy import (
    DDL,
    BigInteger,
    Column,
    Connection,
    Float,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
    create_engine,
    delete,
    insert,
    inspect,
    select,
    update,
)
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.pool import StaticPool

from teletape_server.budgets.budgets import Unwritten
from teletape_server.budgets.limits import Limits, Use
from teletape_server.identity.entries import Entry
from teletape_server.identity.keys import Key, Known, StoreError

FILE: Final = "identity.sqlite"  #: In a server's folder for data.
_NEW_COLUMN: Final = "ALTER TABLE teletape_keys ADD COLUMN account TEXT NOT NULL DEFAULT ''"  # of earlier tables
_WHOLE: Final = ("sessions", "memory_bytes", "disk_bytes")  # limits that are whole numbers
_SECONDS: Final = 5  # that a statement waits for another program that writes into the same file

#: Of a store.
TABLES: Final = MetaData()
_keys: Final = Table(
    "teletape_keys",
    TABLES,
    Column("id", String(64), primary_key=True),
    Column("digest", LargeBinary(32), nullable=False, unique=True),
    Column("name", Text, nullable=False),
    Column("owner", Text, nullable=False),
    Column("role", String(16), nullable=False),
    Column("group_name", Text, nullable=False),
    Column("scopes", Text, nullable=False),
    Column("created", Float(53), nullable=False),
    Column("expires", Float(53)),
    Column("revoked", Float(53)),
    Column("used", Float(53)),
    Column("account", Text, nullable=False, server_default=""),
)
_limits: Final = Table(
    "teletape_limits",
    TABLES,
    Column("account", String(200), primary_key=True),
    Column("name", String(64), primary_key=True),
    Column("value", Float(53), nullable=False),
)
_token_ends: Final = Table(
    "teletape_token_ends",
    TABLES,
    Column("owner", String(64), primary_key=True),
    Column("before", Float(53), nullable=False),
)
_use: Final = Table(
    "teletape_use",
    TABLES,
    Column("account", String(200), primary_key=True),
    Column("hour", Integer, primary_key=True),  # of Unix time
    Column("compute_seconds", Float(53), nullable=False),
    Column("gib_hours", Float(53), nullable=False),
    Column("requests", BigInteger, nullable=False),
)
_audit: Final = Table(
    "teletape_audit",
    TABLES,
    Column("number", BigInteger().with_variant(Integer, "sqlite"), primary_key=True, autoincrement=True),
    Column("at", Float(53), nullable=False),
    Column("action", String(32), nullable=False),
    Column("owner", Text, nullable=False),
    Column("key", String(64), nullable=False),
    Column("address", Text, nullable=False),
    Column("subject", Text, nullable=False),
    Column("detail", Text, nullable=False),
)
_YOUNG: Final = 30 * 86400  # seconds for which no program that has this database removes an entry of the audit
_REFUSAL: Final = "the audit is only added to"
# Nothing is changed in the audit, and nothing young is removed: also not by another program.
_SQLITE_GUARDS: Final = (
    "CREATE TRIGGER teletape_audit_update BEFORE UPDATE ON teletape_audit "
    f"BEGIN SELECT RAISE(ABORT, '{_REFUSAL}'); END",
    "CREATE TRIGGER teletape_audit_delete BEFORE DELETE ON teletape_audit "
    f"WHEN OLD.at > (julianday('now') - 2440587.5) * 86400 - {_YOUNG} "
    f"BEGIN SELECT RAISE(ABORT, '{_REFUSAL}'); END",
)
_POSTGRESQL_GUARDS: Final = (
    "CREATE OR REPLACE FUNCTION teletape_audit_guard() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
    "IF TG_OP = 'DELETE' THEN "
    f"IF OLD.at <= extract(epoch FROM now()) - {_YOUNG} THEN RETURN OLD; END IF; "
    f"END IF; RAISE EXCEPTION '{_REFUSAL}'; END $$",
    "CREATE TRIGGER teletape_audit_rows BEFORE UPDATE OR DELETE ON teletape_audit "
    "FOR EACH ROW EXECUTE FUNCTION teletape_audit_guard()",
    "CREATE TRIGGER teletape_audit_all BEFORE TRUNCATE ON teletape_audit "
    "FOR EACH STATEMENT EXECUTE FUNCTION teletape_audit_guard()",
)
# Of servers that start at the same time one after the other makes the tables.
_POSTGRESQL_FIRST: Final = ("SELECT pg_advisory_xact_lock(8470)",)
_SQLITE_FIRST: Final = ("PRAGMA synchronous=FULL", "BEGIN IMMEDIATE")
#: libpq's: without them a server waits for minutes for a database whose machine has gone.
_TIMES: Final = {"connect_timeout": 5, "tcp_user_timeout": 10_000}
_OPTIONS: Final = "-c statement_timeout=5000 -c idle_in_transaction_session_timeout=15000"  # PostgreSQL's: milliseconds


class Store:
    """The keys and the audit of a server.

    Args:
        url: Of the database, as SQLAlchemy has it. Its tables are created if there are none.

    Attributes:
        is_shared: Whether other servers may change what is in it.

    Raises:
        StoreError: It cannot be opened.
    """

    def __init__(self, url: str | URL) -> None:
        try:
            parsed = make_url(url)
            self._shown = parsed.render_as_string(hide_password=True)
            self.is_shared = parsed.get_backend_name() != "sqlite"
            if parsed.get_backend_name() not in ("sqlite", "postgresql"):
                raise StoreError(f"the key database {self._shown} is none that is known: use PostgreSQL or SQLite")
            if self.is_shared:
                times: dict[str, Any] = {name: value for name, value in _TIMES.items() if name not in parsed.query}
                if "options" not in parsed.query:
                    times["options"] = _OPTIONS
                arguments = times if parsed.get_driver_name().startswith("psycopg") else {}
                self._engine = create_engine(parsed, pool_pre_ping=True, connect_args=arguments)
            else:  # one connection for all threads: each statement has it alone
                arguments = {"check_same_thread": False, "timeout": _SECONDS}
                self._engine = create_engine(parsed, poolclass=StaticPool, connect_args=arguments)
        except (SQLAlchemyError, ImportError) as error:
            raise StoreError(f"the key database cannot be used: {error}") from None
        with self._begun() as connection:
            for statement in _POSTGRESQL_FIRST if self.is_shared else _SQLITE_FIRST:
                connection.exec_driver_sql(statement)
            TABLES.create_all(connection)
            (_guard_postgresql if self.is_shared else _guard_sqlite)(connection)
            if "account" not in {column["name"] for column in inspect(connection).get_columns(_keys.name)}:
                connection.execute(DDL(_NEW_COLUMN))  # type: ignore[no-untyped-call]  # SQLAlchemy's

    @classmethod
    def in_folder(cls, data_dir: str) -> Store:
        """Returns that of a server's folder for data; only its user may read the file.

        Raises:
            StoreError: It cannot be opened.
        """
        path = os.path.join(data_dir, FILE)
        try:
            os.makedirs(data_dir, mode=0o700, exist_ok=True)
            file = os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
            try:
                if os.geteuid() == 0:  # the server that has the folder may be another user's
                    folder = os.stat(data_dir)
                    os.fchown(file, folder.st_uid, folder.st_gid)
            finally:
                os.close(file)
        except OSError as error:
            raise StoreError(f"the keys in {path} cannot be read and written: {error.strerror or error}") from None
        return cls(URL.create("sqlite", database=path))

    @contextmanager
    def _begun(self) -> Iterator[Connection]:
        """A transaction."""
        try:
            with self._engine.begin() as connection:
                yield connection
        except SQLAlchemyError as error:
            cause = getattr(error, "orig", None) or error
            raise StoreError(f"the key database {self._shown} refuses: {cause}") from None

    # ----------------------------------------------------------------------------------------------------------- keys
    def known(self) -> Known:
        """Returns who may do what; see `Known`."""
        with self._begun() as connection:
            ends = {row.owner: row.before for row in connection.execute(select(_token_ends))}
        return Known(self.keys(), self.limits(), ends)

    def end_tokens(self, owner: str, before: float) -> None:
        """Ends the tokens that an issuer has given an owner before a time in Unix seconds."""
        with self._begun() as connection:
            connection.execute(delete(_token_ends).where(_token_ends.c.owner == owner))
            connection.execute(insert(_token_ends).values(owner=owner, before=before))

    def keys(self) -> list[Key]:
        """Returns all keys in the order of their creation, also those that have ended."""
        with self._begun() as connection:
            return [_key(row._mapping) for row in connection.execute(select(_keys).order_by(_keys.c.created))]

    def add(self, key: Key) -> None:
        """Adds a key."""
        row = {name: getattr(key, name) for name in ("id", "digest", "name", "owner", "role", "created", "expires")}
        with self._begun() as connection:
            more = {"group_name": key.group, "scopes": " ".join(sorted(key.scopes)), "account": key.own_account}
            connection.execute(insert(_keys).values(**row, **more))

    def end(self, id: str, *, revoked: float | None = None, expires: float | None = None) -> None:
        """Ends a key now, or lets it end at a time; in Unix seconds."""
        values = {"revoked": revoked} if revoked is not None else {"expires": expires}
        with self._begun() as connection:
            connection.execute(update(_keys).where(_keys.c.id == id).values(**values))

    def note_used(self, ids: Collection[str], at: float) -> None:
        """Notes when keys were last used."""
        with self._begun() as connection:
            connection.execute(update(_keys).where(_keys.c.id.in_(ids)).values(used=at))

    # -------------------------------------------------------------------------------------------------------- budgets
    def limits(self) -> dict[str, Limits]:
        """Returns the limits that accounts have of their own."""
        named: dict[str, dict[str, float]] = {}
        with self._begun() as connection:
            for account, name, value in connection.execute(select(_limits)):
                named.setdefault(account, {})[name] = int(value) if name in _WHOLE else value
        return {account: Limits.of(values) for account, values in named.items()}

    def set_limits(self, account: str, limits: Limits) -> None:
        """Replaces the limits of an account."""
        rows = [{"account": account, "name": name, "value": float(value)} for name, value in limits.named.items()]
        with self._begun() as connection:
            connection.execute(delete(_limits).where(_limits.c.account == account))
            if rows:
                connection.execute(insert(_limits), rows)

    def add_use(self, use: Unwritten, before: int) -> None:
        """Adds what accounts have used.

        Args:
            use: By account and hour.
            before: An hour: what is older than that is removed.
        """
        dialect: Any = postgresql if self.is_shared else sqlite
        with self._begun() as connection:
            for (account, hour), more in sorted(use.items()):  # in one order: servers do not wait for each other's rows
                new = dialect.insert(_use).values(account=account, hour=hour, **more._asdict())
                sums = {name: _use.c[name] + new.excluded[name] for name in more._fields}
                connection.execute(new.on_conflict_do_update(index_elements=[_use.c.account, _use.c.hour], set_=sums))
            connection.execute(delete(_use).where(_use.c.hour < before))

    def use(self, since: int) -> dict[str, dict[int, Use]]:
        """Returns what accounts have used from an hour on, by account and hour."""
        use: dict[str, dict[int, Use]] = {}
        with self._begun() as connection:
            for account, hour, *values in connection.execute(select(_use).where(_use.c.hour >= since)):
                use.setdefault(account, {})[hour] = Use(*values)
        return use

    # ---------------------------------------------------------------------------------------------------------- audit
    def append(self, entries: Iterable[Entry]) -> None:
        """Adds to the audit."""
        rows = [{name: value for name, value in entry._asdict().items() if name != "number"} for entry in entries]
        with self._begun() as connection:
            connection.execute(insert(_audit), rows)

    def entries(self, *, before: int | None, limit: int, subject: str | None, action: str | None) -> list[Entry]:
        """Returns entries of the audit, the newest first.

        Args:
            before: The number above all of them; None: begin with the newest.
            limit: How many at most.
            subject: Those of one subject alone; None: of all.
            action: Likewise.
        """
        query = select(_audit).order_by(_audit.c.number.desc()).limit(limit)
        if before is not None:
            query = query.where(_audit.c.number < before)
        if subject is not None:
            query = query.where(_audit.c.subject == subject)
        if action is not None:
            query = query.where(_audit.c.action == action)
        with self._begun() as connection:
            return [Entry(**row._mapping) for row in connection.execute(query)]

    def remove_entries(self, before: float) -> int:
        """Removes the entries of the audit that are older than a time in Unix seconds; returns how many.

        The database refuses to remove those of the last 30 days.
        """
        with self._begun() as connection:
            return connection.execute(delete(_audit).where(_audit.c.at < before)).rowcount

    def close(self) -> None:
        """Closes the connections."""
        self._engine.dispose()


def _guard_sqlite(connection: Connection) -> None:
    """Puts the guards of this version in the place of an earlier one's, which kept entries for ever."""
    known = {*connection.exec_driver_sql("SELECT sql FROM sqlite_master WHERE type = 'trigger'").scalars()}
    for text in _SQLITE_GUARDS:
        if text not in known:
            connection.exec_driver_sql(f"DROP TRIGGER IF EXISTS {text.split()[2]}")
            connection.exec_driver_sql(text)


def _guard_postgresql(connection: Connection) -> None:
    """Makes the guards if there are none, in the place of an earlier version's, which were silent."""
    query = "SELECT 1 FROM pg_trigger WHERE tgname = 'teletape_audit_all' AND tgrelid = 'teletape_audit'::regclass"
    if connection.exec_driver_sql(query).first() is None:
        for name in ("update", "delete"):
            connection.exec_driver_sql(f"DROP RULE IF EXISTS teletape_audit_{name} ON teletape_audit")
        for text in _POSTGRESQL_GUARDS:
            connection.exec_driver_sql(text)


def _key(row: Any) -> Key:
    names = ("id", "name", "owner", "role", "created", "expires", "revoked", "used")
    scopes: Any = frozenset(row["scopes"].split())
    return Key(
        digest=bytes(row["digest"]),
        group=row["group_name"],
        scopes=scopes,
        own_account=row["account"],
        **{name: row[name] for name in names},
    )
