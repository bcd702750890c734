"""The answer to "why do I wait?": a request's place, who is ahead of it, when it will start, and one sentence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from teletape_server.hosts.protocols import HostFacts, Running
from teletape_server.sessions.entry import SessionEntry
from teletape_server.sessions.lifecycle import Phase
from teletape_server.waiting.estimates import (
    seconds_left,
    seconds_until,
    seconds_until_place,
    total_seconds,
    typical_seconds,
)
from teletape_server.waiting.keys import Box

MOST_SHOWN: Final = 10  #: Requests ahead, and keys, that an answer lists.
_NAMED: Final = 3  # owners that a sentence names
_STARTING: Final = "its session starts: a process is prepared for it"
_PHASES: Final[Mapping[Phase, str]] = {
    Phase.PARKING: "its session is being written down, and a process starts for it after that",
    Phase.PARKED: "its session was parked, and a process starts for it",
    Phase.WAKING: "its session was parked, and a process brings it back",
    Phase.RECOVERING: "the process of its session has ended, and another one brings it back",
}


class Ahead(NamedTuple):
    """A request that is ahead of another one.

    Attributes:
        owner: Whose it is.
        session: Its session's id; None: it has none, or that is not known.
        running_seconds: That it has run; None: it waits too.
        seconds_left: That it will still run, as far as can be estimated; None: not known.
    """

    owner: str
    session: str | None = None
    running_seconds: float | None = None
    seconds_left: float | None = None


class Waiting(NamedTuple):
    """Why a request waits.

    Attributes:
        position: How many are ahead of it; 0: it runs, or its session's process is about to.
        ahead: The first `MOST_SHOWN` of these.
        starts_in: Estimated seconds until it starts; 0: it runs; None: not known.
        reason: One sentence, in which no number changes by itself.
    """

    position: int
    ahead: Sequence[Ahead]
    starts_in: float | None
    reason: str


def of_run(owners: Sequence[str], running: Sequence[Ahead], places: int, typical: float | None) -> Waiting:
    """Returns why a request without a session waits for its turn.

    Args:
        owners: Of the requests that get a place before it, in that order.
        running: The requests that have a place.
        places: How many there are.
        typical: Seconds for which one is taken on average; None: not known.
    """
    position = len(owners) + 1
    ahead = [*running, *map(Ahead, owners)]
    holders = _names([item.owner for item in ahead])
    full = "the one place of POST /v1/run is" if places == 1 else f"all {places} places of POST /v1/run are"
    before = "one more waits" if position == 2 else f"{position - 1} more wait"
    text = f"{full} taken: {before} before it, of {holders}"
    if position == 1:
        text = f"{full} taken, by {holders}: it is the next"
    return Waiting(position, ahead[:MOST_SHOWN], seconds_until_place(position, places, typical), text)


def of_start(entry: SessionEntry | None) -> Waiting:
    """Returns why a session has no process yet; None: it is not known which session starts."""
    if entry is None:
        return Waiting(0, (), None, _STARTING)
    if entry.room is not None:
        return Waiting(1, (), None, "its session gets the place of another one, which is being parked")
    return Waiting(0, (), None, _PHASES.get(entry.record.state.phase, _STARTING))


def of_request(entry: SessionEntry, running: Running, box: Box) -> Waiting:
    """Returns why a request to a session waits, or what it shares while it runs.

    Args:
        entry: The session.
        running: The request.
        box: What the keys have.
    """
    if entry.host is None:
        return of_start(entry)
    facts = entry.note_facts()
    before = sorted((other for other in entry.running if other.began < running.began), key=_began)
    if before:
        return _in_session(entry, before, facts)
    if not facts.running and entry.takes_turns:
        return _on_gpu(entry, running, box)
    return of_turn(entry.owner, entry.device, box)


def of_turn(owner: str, device: str, box: Box) -> Waiting:
    """Returns what a request of an owner shares while it runs on a device."""
    others = box.others(owner)
    if device != "cpu" or not others:
        return Waiting(0, (), 0.0, "it runs")
    mine = box.keys.get(owner)
    part = "" if mine is None or not mine.share else f": {mine.share:.0%} of them are your key's"
    return Waiting(0, (), 0.0, f"it runs, and shares the processors with {_names(others)}{part}")


def _in_session(entry: SessionEntry, before: Sequence[Running], facts: HostFacts) -> Waiting:
    """Returns why a request waits for others of its session; `before`: these, the oldest first."""
    left, typical = seconds_left(before[0], facts), typical_seconds(facts)
    first = Ahead(entry.owner, entry.id, facts.running_seconds, left)
    if not facts.running:
        first, left = Ahead(entry.owner, entry.id, None, typical), typical
    rest = [Ahead(entry.owner, entry.id, None, typical) for _ in before[1:MOST_SHOWN]]
    count = len(before)
    requests = "another request" if count == 1 else f"{count} other requests"
    text = f"a session runs one request at a time, and {requests} of the session {entry.id} came before it"
    return Waiting(count, (first, *rest), seconds_until(left, count - 1, typical), text)


def _on_gpu(entry: SessionEntry, running: Running, box: Box) -> Waiting:
    """Returns why the oldest request of a session waits for its turn on a GPU that sessions share.

    The order is that of arrival: one of a key that has had less of the GPU gets its turn earlier.
    """
    ahead: list[Ahead] = []
    for other, facts in box.facts.items():
        if other is entry or other.device != entry.device or not other.takes_turns:
            continue
        oldest = min(other.running, key=_began, default=None)
        if facts.running and oldest is not None:
            ahead.insert(0, Ahead(other.owner, other.id, facts.running_seconds, seconds_left(oldest, facts)))
        elif oldest is not None and oldest.began < running.began:
            ahead.append(Ahead(other.owner, other.id, None, typical_seconds(facts)))
    if not ahead:
        return Waiting(0, (), 0.0, "it runs")
    holders = _names([item.owner for item in ahead])
    count = "one request" if len(ahead) == 1 else f"{len(ahead)} requests"
    text = f"sessions take turns on {entry.device}, and {count} of {holders} came before it"
    return Waiting(len(ahead), ahead[:MOST_SHOWN], total_seconds([item.seconds_left for item in ahead]), text)


def _began(running: Running) -> float:
    return running.began


def _names(owners: Sequence[str]) -> str:
    """Returns the names of owners as text, each once."""
    names = [*dict.fromkeys(owners)] or ["others"]  # a place may just change hands
    if len(names) > _NAMED:
        names = [*names[:_NAMED], f"{len(names) - _NAMED} more"]
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
