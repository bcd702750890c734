"""Bodies about API keys, and about the audit."""

from __future__ import annotations

import time
from typing import Annotated, Final, Literal

from pydantic import ConfigDict, Field

from teletape_server.budgets.limits import Limits
from teletape_server.identity.entries import Action, Entry
from teletape_server.identity.keys import Key
from teletape_server.identity.principals import SCOPES, Role, Scope
from teletape_server.models.base import Answer, Body
from teletape_server.models.listings import Listing
from teletape_server.models.parameters import Parameters
from teletape_wire import timestamp

_LONGEST: Final = 366 * 86400.0 * 10
MOST_ENTRIES: Final = 1000  #: Of the audit, in one answer.

_PRINTED: Final = r"^[^\x00-\x1f\x7f]*$"  # what a terminal and a database take

Name = Annotated[str, Field(max_length=100, pattern=_PRINTED, description="For people: where the key is used")]
Owner = Annotated[
    str,
    Field(
        pattern=r"^[A-Za-z0-9._-]{1,64}$",
        description="Whose sessions and published functions it sees; several keys may have the same",
    ),
]
Group = Annotated[str, Field(pattern=r"^[A-Za-z0-9._-]{0,64}$", description="A name for several owners; empty: none")]
Scopes = Annotated[
    list[Scope],
    Field(
        description="What it is for. sessions: sessions and runs; call: published functions; publish: to publish and "
        "withdraw them; keys: to see, create, rotate and revoke keys"
    ),
]


class LimitsBody(Body):
    """The limits that an account has of its own."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={"x-examples": {"example": {"sessions": 4, "compute_seconds_7d": 36000}}},
    )

    sessions: Annotated[int | None, Field(ge=0, le=100_000, description="With a place at a time")] = None
    memory_bytes: Annotated[int | None, Field(ge=1, description="Of the arrays of all its sessions")] = None
    disk_bytes: Annotated[int | None, Field(ge=1, description="Of the files of all its sessions")] = None
    requests_per_second: Annotated[
        float | None, Field(gt=0, description="As many may come at once; its connections are not handed to processes")
    ] = None
    compute_seconds_1d: Annotated[float | None, Field(gt=0, description="That its sessions compute in a day")] = None
    compute_seconds_7d: Annotated[float | None, Field(gt=0, description="The same in 7 days")] = None
    compute_seconds_30d: Annotated[float | None, Field(gt=0, description="The same in 30 days")] = None
    gib_hours_1d: Annotated[float | None, Field(gt=0, description="GiB of memory times hours, in a day")] = None
    gib_hours_7d: Annotated[float | None, Field(gt=0, description="The same in 7 days")] = None
    gib_hours_30d: Annotated[float | None, Field(gt=0, description="The same in 30 days")] = None

    @property
    def limits(self) -> Limits:
        """The limits."""
        return Limits.of(self.model_dump())


class NewKey(Body):
    """An API key to create."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "x-examples": {"example": {"name": "training", "owner": "ann", "scopes": ["sessions"], "expires_in": 86400}}
        },
    )

    name: Name = ""
    owner: Annotated[Owner | None, Field(description="Without it: your own")] = None
    role: Annotated[Role, Field(description="admin: it sees and ends what all owners have")] = "user"
    group: Annotated[Group | None, Field(description="Only an admin chooses; without it that of the owner")] = None
    scopes: Scopes = Field(default_factory=lambda: list(SCOPES))
    expires_in: Annotated[
        float | None, Field(gt=0, le=_LONGEST, description="Seconds after which it ends by itself; without it never")
    ] = None
    limits: Annotated[
        LimitsBody | None,
        Field(description="Its own, which an admin sets: it counts by itself then, else with the others of its owner"),
    ] = None


class Rotation(Body):
    """A replacement of a key by a new one."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"x-examples": {"example": {"overlap": 3600}}})

    overlap: Annotated[
        float, Field(ge=0, le=366 * 86400, description="Seconds for which the former one stays valid")
    ] = 0


class ApiKey(Answer):
    """An API key, without its secret."""

    id: Annotated[str, Field(description="The part of it that is no secret")]
    name: Name
    owner: Owner
    role: Role
    group: Group
    scopes: Scopes
    account: Annotated[str, Field(description="Which it counts for: OWNER, or OWNER:KEY with limits of its own")]
    source: Annotated[
        Literal["store", "environment"],
        Field(description="environment: only the server's start reads it, so it cannot be rotated or revoked here"),
    ]
    state: Literal["valid", "expired", "revoked"]
    created_at: Annotated[str | None, Field(description="RFC 3339; null: it is of the environment")] = None
    expires_at: Annotated[str | None, Field(description="RFC 3339; null: never")] = None
    revoked_at: Annotated[str | None, Field(description="RFC 3339; null: it was not")] = None
    used_at: Annotated[
        str | None, Field(description="RFC 3339, to half a minute: when it was last used; null: never, or not known")
    ] = None


class NewApiKey(ApiKey):
    """A new API key. This is the only time that its secret is shown."""

    key: Annotated[str, Field(description="For Authorization: Bearer KEY, or X-API-Key: KEY")]


class ApiKeyList(Answer):
    """API keys: yours, or those of all owners for an admin."""

    keys: list[ApiKey]


class AuditEntry(Answer):
    """An entry of the audit: what was done, and by whom."""

    number: Annotated[int, Field(description="Its place, from 1 on")]
    at: Annotated[str, Field(description="RFC 3339")]
    action: Annotated[
        Action, Field(description="session.seen: an admin has looked into another owner's session or request")
    ]
    owner: Annotated[str, Field(description="Who did it; empty: the server itself")]
    key: Annotated[str, Field(description="The id of the key; empty: there was none")]
    address: Annotated[str, Field(description="From where; empty: over a Unix socket, or by the server itself")]
    subject: Annotated[str, Field(description="OWNER:ID of a session, the id of a key, or an account")]
    detail: Annotated[str, Field(description="How, or why")]


class Audit(Listing):
    """The audit: what was done on this server, the newest first."""

    entries: list[AuditEntry]


class AuditPage(Parameters):
    """Which entries of the audit are wanted."""

    limit: Annotated[int, Field(ge=1, le=MOST_ENTRIES, description="Most entries")] = 100
    after: Annotated[int | None, Field(ge=1, description="Continue after this one: `next` of the page before")] = None
    subject: Annotated[
        str | None,
        Field(pattern=_PRINTED, description="Those of one subject alone: OWNER:ID, the id of a key, an account"),
    ] = None
    action: Annotated[Action | None, Field(description="Those of one action alone")] = None


def described(key: Key, now: float) -> ApiKey:
    """Returns what is known of a key at a time, in Unix seconds."""
    state: Literal["valid", "expired", "revoked"] = "valid" if key.is_valid(now) else "expired"
    return ApiKey(
        id=key.id,
        name=key.name,
        owner=key.owner,
        role=key.role,
        group=key.group,
        scopes=[scope for scope in SCOPES if scope in key.scopes],
        account=key.account,
        source="environment" if key.created is None else "store",
        state=state if key.revoked is None else "revoked",
        created_at=_time(key.created),
        expires_at=_time(key.expires),
        revoked_at=_time(key.revoked),
        used_at=_time(key.used),
    )


def described_new(key: Key, text: str) -> NewApiKey:
    """Returns the same of a new key, with its text."""
    return NewApiKey(**described(key, time.time()).model_dump(), key=text)


def described_entry(entry: Entry) -> AuditEntry:
    """Returns an entry as the answer has it."""
    return AuditEntry(**entry._asdict() | {"at": timestamp(entry.at)})


def _time(seconds: float | None) -> str | None:
    return None if seconds is None else timestamp(seconds)
