"""`tf.sessions`: your live sessions on a server, of this program and of others: cancels, parks and ends them."""

from __future__ import annotations

import contextlib
import html
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, overload

from teletape.core import environment
from teletape.core.errors import InvalidArgumentError
from teletape.core.network.options import ConnectOptions
from teletape.core.profiling.tables import html_table, text_table
from teletape.core.sessions.current import join, opened
from teletape.core.sessions.session import Session
from teletape_engine.suggestions import did_you_mean

if TYPE_CHECKING:  # it imports HTTP
    from teletape.core.network.http import Connection  # HTTP takes 0.1 s to import

__all__ = ["sessions"]

_COLUMNS: Final = ("session", "owner", "device", "memory", "disk", "state", "created", "when idle", "work")


class SessionFacts:
    """A live session on a server.

    Attributes:
        id: Its name or id; OWNER:ID if it is another key's, which an admin sees.
        owner: The name of the key that it belongs to.
        device: The device that it computes on.
        bytes_in_use: The bytes of its arrays.
        memory_limit: The largest number of these bytes.
        disk_bytes: The bytes of its files on the server; 0: it has none, and ends with its process.
        state: As in the answers of `GET /v1/sessions`: live, parked, recovering, damaged, and states between them.
        why: Why it recovers or is damaged; empty: it does neither.
        log_to_run: Whether its server was killed, and its log was not run since: another version cannot do that.
        created_at: The time of its creation.
        expires_at: The time at which it ends, or, with files, is parked, if no further request comes.
        running: The number of requests that it has not answered.
        is_mine: Whether this program has made or joined it.
    """

    def __init__(self, facts: dict[str, Any], listing: SessionList, *, is_mine: bool) -> None:
        self.id = _name(facts, listing.owner)
        self.owner: str = facts["owner"]
        self.device: str = facts["device"]
        self.bytes_in_use: int = facts["bytes_in_use"]
        self.memory_limit: int = facts["memory_limit"]
        self.disk_bytes: int = facts["disk_bytes"]
        self.state: str = facts["state"]
        self.why: str = facts["why"] or ""
        self.log_to_run: bool = facts.get("log_to_run", False)
        self._lasts = facts["durability"] != "none"
        self.created_at = _time(facts["created_at"])
        self.expires_at = _time(facts["expires_at"])
        self.running: int = facts["running"]["requests"]
        self.is_mine = is_mine
        self._listing = listing

    def end(self) -> None:
        """Ends the session: its values are lost, also to a program that uses it."""
        self._listing.end(self.id)

    def cancel(self) -> None:
        """Stops the session's computation before its next step; its values stay."""
        self._listing.cancel(self.id)

    def park(self) -> None:
        """Ends the session's process; the next request starts another one, which has everything."""
        self._listing.park(self.id)

    def connect(self) -> Session:
        """Joins the session and makes it the program's; `variables()` returns the variables in it."""
        return join(self._listing.options, self.id)

    def row(self) -> tuple[str, ...]:
        """Returns its row of a table, in the order of the columns."""
        return (
            self.id + (" (this program)" if self.is_mine else ""),
            self.owner,
            self.device,
            f"{self.bytes_in_use / 2**20:,.1f} of {self.memory_limit / 2**20:,.0f} MiB",
            f"{self.disk_bytes / 2**20:,.1f} MiB" if self.disk_bytes else "",
            self.state + (", log to run" if self.log_to_run else ""),
            _ago(self.created_at),
            f"{'parked' if self._lasts else 'ends'} {_ahead(self.expires_at)}" if self.state == "live" else "",
            f"{self.running} request{'s' if self.running > 1 else ''}" if self.running else "",
        )

    def __repr__(self) -> str:
        name, _, *others = self.row()
        return f"<session {', '.join(filter(None, (name, *others)))}>"


class SessionList(Sequence[SessionFacts]):
    """Your live sessions on a server at the time of the list, oldest first; an admin's list has all sessions.

    Attributes:
        options: The options of the connection.
        url: The server's address.
        owner: The name of the key that they were listed with.
    """

    def __init__(self, options: ConnectOptions) -> None:
        from teletape.core.sessions.sending import (
            sender,  # HTTP takes 0.1 s to import, which programs without a server save
        )

        self.options = options
        with contextlib.closing(_connection(options)) as connection:
            self.url = connection.url
            connection.info()
            listed = connection.get("/v1/sessions")
        self.owner: str = listed["owner"]
        mine = sender.sessions_at(self.url)
        self._sessions = [
            SessionFacts(facts, self, is_mine=_name(facts, self.owner) in mine) for facts in listed["sessions"]
        ]

    def end(self, *ids: str) -> None:
        """Ends the sessions with these ids; without any, all that this program does not use.

        Raises:
            InvalidArgumentError: There is no session of that id, or it is a later one than that of the list.
            SessionEndedError: It has ended.
        """
        self._check_known(ids)
        with contextlib.closing(_connection(self.options)) as connection:
            for id in ids or [session.id for session in self if not session.is_mine]:
                self._check_current(connection, id)
                connection.control("DELETE", f"/v1/sessions/{id}")
                self._sessions = [session for session in self._sessions if session.id != id]

    def cancel(self, *ids: str) -> None:
        """Stops the computations of the sessions with these ids before their next step; their values stay.

        Whoever waits for the work gets `CancelledError`.

        Raises:
            InvalidArgumentError: There is no session of that id, or it is a later one than that of the list.
            SessionEndedError: It has ended.
        """
        self._post(ids, "cancel")

    def park(self, *ids: str) -> None:
        """Ends the processes of the sessions with these ids, which stay: the next request to each starts another one.

        A session of which nothing outlives its process stays as it is. This list shows the states from before.

        Raises:
            InvalidArgumentError: There is no session of that id, or it is a later one than that of the list.
            SessionEndedError: It has ended.
            RequestError: It still computes.
        """
        self._post(ids, "park")

    def _post(self, ids: Sequence[str], what: str) -> None:
        self._check_known(ids)
        with contextlib.closing(_connection(self.options)) as connection:
            for id in ids:
                self._check_current(connection, id)
                connection.control("POST", f"/v1/sessions/{id}/{what}")

    def _check_known(self, ids: Sequence[str]) -> None:
        known = [session.id for session in self]
        for id in ids:
            if id not in known:
                live = ", ".join(known) or "no session"
                raise InvalidArgumentError(
                    f"there is no session {id!r} at {self.url}, which has {live} {did_you_mean(id, known)}".rstrip()
                )

    def _check_current(self, connection: Connection, id: str) -> None:
        """Checks that the session of an id is still the one of the list, because a newer one may have the same id.

        Raises:
            InvalidArgumentError: It is another one.
            SessionEndedError: There is none.
        """
        [listed] = [session for session in self if session.id == id]
        began = _time(connection.get(f"/v1/sessions/{id}")["created_at"])
        if began != listed.created_at:
            raise InvalidArgumentError(
                f"the session {id!r} of this list, which began at {listed.created_at:%H:%M:%S}, has ended, and another "
                f"of that id began at {began:%H:%M:%S}: make a new list with tf.sessions()"
            )

    def __len__(self) -> int:
        return len(self._sessions)

    def __iter__(self) -> Iterator[SessionFacts]:
        return iter(self._sessions[:])

    @overload
    def __getitem__(self, key: int | str) -> SessionFacts: ...
    @overload
    def __getitem__(self, key: slice) -> Sequence[SessionFacts]: ...
    def __getitem__(self, key: int | str | slice) -> SessionFacts | Sequence[SessionFacts]:
        if isinstance(key, str):
            for session in self._sessions:
                if session.id == key:
                    return session
            raise KeyError(key)
        return self._sessions[key]

    def __repr__(self) -> str:
        if not self:
            return f"no sessions at {self.url}"
        return "\n".join([self._head(), *text_table(self._rows()), *self._notes()])

    def _rows(self) -> list[tuple[str, ...]]:
        """Returns the table; without the owners if all sessions are this key's."""
        rows = [_COLUMNS, *[session.row() for session in self]]
        if all(session.owner == self.owner for session in self):
            rows = [(name, *others) for name, _, *others in rows]
        return rows

    def _notes(self) -> list[str]:
        """Returns a line for each session that has to be explained."""
        return [f"{session.id} is {session.state}: {session.why}" for session in self if session.why]

    def _head(self) -> str:
        return f"{len(self)} {'session' if len(self) == 1 else 'sessions'} at {self.url}"

    def _repr_html_(self) -> str:
        notes = "".join(f"<p>{html.escape(note)}</p>" for note in self._notes())
        return f"<p>{html.escape(self._head())}</p>{html_table(self._rows())}{notes}"


def sessions(url: str | int | None = None, api_key: str | None = None) -> SessionList:
    """Your live sessions on a server: a sequence that prints as a table, with `end` for those of killed programs.

    Args:
        url: The server's address, as `tf.connect` takes it. None: that of the program's session, and in a program
            without one TELETAPE_URL.
        api_key: Your key for the server. None: that of the program's session if `url` is None too, or TELETAPE_API_KEY.

    Raises:
        teletape.errors.InvalidArgumentError: There is no address, or it is none.
        teletape.errors.ConnectionFailed: No server answers at that address.
        teletape.errors.AuthenticationError: The key is missing or wrong.
    """
    if url is None:
        session = opened()
        if session is not None and session.url is not None:
            assert session.options is not None
            return SessionList(session.options if api_key is None else session.options.but(api_key=api_key))
        url = environment.url()
    if url is None:
        raise InvalidArgumentError(
            "tf.sessions lists sessions on a server, and this program computes in its own process: pass the server's "
            "address, or set TELETAPE_URL"
        )
    return SessionList(ConnectOptions.of(url, api_key=api_key))


def _connection(options: ConnectOptions) -> Connection:
    from teletape.core.network.http import Connection  # HTTP takes 0.1 s to import

    return Connection(options)


def _name(facts: Mapping[str, Any], owner: str) -> str:
    """Returns a session's name for the owner of a key."""
    return facts["id"] if facts["owner"] == owner else f"{facts['owner']}:{facts['id']}"


def _time(text: str) -> datetime:
    return datetime.fromisoformat(text)


def _ago(time: datetime) -> str:
    return f"{_duration((datetime.now(UTC) - time).total_seconds())} ago"


def _ahead(time: datetime) -> str:
    return f"in {_duration((time - datetime.now(UTC)).total_seconds())}"


def _duration(seconds: float) -> str:
    for name, length in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= length:
            return f"{seconds / length:.0f} {name}"
    return f"{max(seconds, 0.0):.0f} s"
