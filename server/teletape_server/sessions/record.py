"""What is known of a session without its host: what a store keeps, and what another host would start from."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from pydantic import TypeAdapter, ValidationError

from teletape_server.hosts.placement import is_of
from teletape_server.ipc.leases import Terms
from teletape_server.problems import Problem
from teletape_server.sessions.lifecycle import BEGINNING, State

Key: TypeAlias = tuple[str, str]  #: Owner and id of a session.


Durability: TypeAlias = Literal["none", "journal", "journal-sync"]


class SessionLimits(NamedTuple):
    """What a session was created with, and keeps.

    Attributes:
        memory: Bytes that its arrays may take.
        dtype: Of numbers without one that meet no tensor.
        dedicated: Whether it gets a process of its own on a GPU; on the CPU it has one.
    """

    memory: int
    dtype: str = "float32"
    dedicated: bool = False


@dataclass(frozen=True)
class SessionRecord:
    """One session.

    Attributes:
        uid: Differs from that of every other session, also of those with the same owner and id before and after it.
        owner, id: Whose it is, and its name.
        device: Where it computes; before its first host has started, where it may.
        limits: What it may use.
        created: Unix seconds.
        terms: When it ends.
        durability: What outlives its host: nothing; every request that was answered, short of a power cut; every one.
        epoch: How many hosts it has had.
        state: Where it is in its life.
        is_run: Whether it is for requests without a session: no listing shows it, and nothing of a request stays in it.
        own_account: What it counts for, if that is not the account of its owner; see `budgets`.
    """

    uid: str
    owner: str
    id: str
    device: str
    limits: SessionLimits
    created: float
    terms: Terms
    durability: Durability = "none"
    epoch: int = 0
    state: State = BEGINNING
    is_run: bool = False
    own_account: str = ""

    @property
    def account(self) -> str:
        """Which account it counts for."""
        return self.own_account or self.owner

    @property
    def key(self) -> Key:
        """Its owner and id."""
        return self.owner, self.id

    def check_is(self, device: str, limits: SessionLimits) -> None:
        """Checks that this is the session that a request would create, apart from having a process of its own.

        Raises:
            Problem: id_in_use.
        """
        if not is_of(self.device, device) or self.limits[:2] != limits[:2]:
            raise Problem(
                "id_in_use",
                f"the session {self.id!r} exists with device {self.device}, memory_limit {self.limits.memory} and "
                f"dtype {self.limits.dtype}; the request has {device}, {limits.memory} and {limits.dtype}. End it "
                "first, ask for `replace`, or choose another id",
            )


_RECORDS: Final = TypeAdapter(SessionRecord)


def record_of(manifest: Mapping[str, Any] | None, uid: str) -> SessionRecord:
    """Returns the record that a manifest has; members of which this version does not know are left out.

    Args:
        manifest: The manifest; None: it is no JSON object.
        uid: The uid of the session in whose folder it is.

    Raises:
        ValueError: It has none, or that of another session.
    """
    if manifest is None:
        raise ValueError("its manifest cannot be read")
    try:
        record = _RECORDS.validate_python(manifest)
    except ValidationError as error:
        first = error.errors()[0]
        at = ".".join(map(str, first["loc"]))
        raise ValueError(f"its manifest is none that this version reads ({at}: {first['msg']})") from None
    if record.uid != uid:
        raise ValueError(f"its manifest is that of the session in the folder {record.uid}")
    return record


def new_uid() -> str:
    """Returns a uid that no session has had: 128 random bits."""
    return secrets.token_hex(16)
