"""Why a request waits, and what the keys of a server have meanwhile, as answers say it."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, Field


class AheadOf(BaseModel):
    """A request that is ahead of another one."""

    owner: Annotated[str, Field(description="The name of the key whose request it is")]
    session: Annotated[str | None, Field(description="Its session's id; null: it has none")]
    running_seconds: Annotated[float | None, Field(description="That it has run; null: it waits too")]
    seconds_left: Annotated[float | None, Field(description="That it will still run, estimated; null: not known")]


class KeyShare(BaseModel):
    """A key's use of the server now."""

    owner: Annotated[str, Field(description="The name of the key")]
    sessions: Annotated[int, Field(description="Its sessions that have a process")]
    bytes_in_use: Annotated[int, Field(description="By its sessions, as of their last answers")]
    bytes_reserved: Annotated[
        int, Field(description="Of the machine's memory, for its sessions: those in use, and those that may be soon")
    ]
    computing: Annotated[int, Field(description="Processes that compute for it now")]
    waiting: Annotated[int, Field(description="Its requests that wait")]
    share: Annotated[
        float,
        Field(description="The part of the processors that is its own while these compute, from 0 to 1; more is free"),
    ]


class LongestIdle(BaseModel):
    """The session that is idle for longest: the first one that would make room."""

    owner: Annotated[str, Field(description="The name of the key whose session it is")]
    session: Annotated[str, Field(description="Its id")]
    idle_seconds: Annotated[float, Field(description="Since its last work")]
    bytes_in_use: Annotated[int, Field(description="By it, as of its last answer")]


class Place(BaseModel):
    """A request's place, and why it waits."""

    position: Annotated[int, Field(description="Requests ahead of it; 0: it runs, or waits for no other request")]
    ahead: Annotated[list[AheadOf], Field(description="The first ten of these")]
    starts_in_seconds: Annotated[float | None, Field(description="Estimated; 0: it runs; null: not known")]
    reason: Annotated[str, Field(description="One sentence, for people")]


class Wait(Place):
    """Why a request waits, and who holds what it waits for."""

    keys: Annotated[list[KeyShare], Field(description="The ten keys that have most of the server now")]
    longest_idle: Annotated[LongestIdle | None, Field(description="null: no session is idle")]


class Unanswered(BaseModel):
    """A request of yours that is not answered yet."""

    session: Annotated[str | None, Field(description="Its session's id; null: it has none")]
    seconds: Annotated[float | None, Field(description="Since it came; null: not known")]
    wait: Annotated[Place, Field(description="Why it waits")]


class AccountTime(BaseModel):
    """An account's computing, step by step."""

    account: Annotated[
        str, Field(description="OWNER, or OWNER:KEY; empty: all others together, whom an admin alone sees by name")
    ]
    seconds: Annotated[list[float], Field(description="Of computing in each step, the present one last")]


class Timeline(BaseModel):
    """The computing of accounts over time."""

    began_at: Annotated[str, Field(description="RFC 3339: when the first step began")]
    step_seconds: Annotated[float, Field(description="The length of a step")]
    accounts: Annotated[list[AccountTime], Field(description="Those that have computed, the most first")]


class BoxUse(BaseModel):
    """The use of the server by all keys now, and why your requests wait."""

    owner: Annotated[str, Field(description="The name of your key; local without keys")]
    keys: Annotated[list[KeyShare], Field(description="All keys that have something, those with most first")]
    longest_idle: Annotated[LongestIdle | None, Field(description="null: no session is idle")]
    runs: Annotated[int, Field(description="Requests without a session that run")]
    waiting_runs: Annotated[int, Field(description="Those that wait for a place")]
    places: Annotated[int, Field(description="Requests without a session that may run at a time")]
    requests: Annotated[list[Unanswered], Field(description="The 100 oldest of yours that are not answered")]
    memory_free: Annotated[int, Field(description="Bytes of the machine's memory that processes can still take")]
    memory_promised: Annotated[int, Field(description="Bytes of these that sessions have reserved and do not use yet")]
    processors: Annotated[int, Field(description="On which the server and all sessions run")]
    timeline: Annotated[Timeline | None, Field(description="Who computed when; null: it was not asked for")] = None
