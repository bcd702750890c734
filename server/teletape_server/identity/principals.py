"""Who sends a request, and what the key of the request allows."""

from __future__ import annotations

from typing import Final, Literal, NamedTuple, TypeAlias

Role: TypeAlias = Literal["user", "admin"]
Scope: TypeAlias = Literal["sessions", "call", "publish", "keys"]
#: What a key may be for. `sessions`: sessions, runs, requests and expressions; `call`: published functions, as they
#: are; `publish`: to publish and to withdraw them; `keys`: to see, create, rotate and revoke the owner's keys.
SCOPES: Final[tuple[Scope, ...]] = ("sessions", "call", "publish", "keys")
ALL: Final[frozenset[Scope]] = frozenset(SCOPES)

#: By the beginning of a path, the faces of published functions too; any key may ask what none of them begins.
_SCOPES_OF_PATHS: Final[tuple[tuple[str, Scope], ...]] = (
    ("/v1/sessions", "sessions"),
    ("/v1/run", "sessions"),
    ("/v1/price", "sessions"),
    ("/v1/requests", "sessions"),
    ("/v1/usage", "sessions"),
    ("/v1/expressions", "sessions"),
    ("/v1/published", "call"),
    ("/v1/admin", "keys"),
    ("/v2", "call"),
    ("/tesseract", "call"),
    ("/umbridge", "call"),
)
_READING: Final = ("GET", "HEAD", "POST")  # of published functions: a question is a POST


class Principal(NamedTuple):
    """Who sends a request.

    Attributes:
        owner: Whose sessions and published functions it sees: several keys may have the same.
        key: The id of the key; empty: the server requires none.
        role: An admin sees and ends what all owners have.
        group: Of owners, as the operator has named it.
        scopes: What the key is for.
        account: Which it counts for; see `budgets`. Empty: none.
    """

    owner: str
    key: str
    role: Role = "user"
    group: str = ""
    scopes: frozenset[Scope] = ALL
    account: str = ""

    @property
    def is_admin(self) -> bool:
        """Whether it sees and ends what all owners have."""
        return self.role == "admin"


#: Whoever uses a server without keys.
LOCAL: Final = Principal("local", "", "admin", account="local")


def scope_of(method: str, path: str) -> Scope | None:
    """Returns what a key must be for to send a request; None: any key will do.

    Args:
        method: Of HTTP.
        path: Of the URL.
    """
    for beginning, scope in _SCOPES_OF_PATHS:
        if path == beginning or path.startswith(beginning + "/"):
            return "publish" if scope == "call" and method not in _READING else scope
    return None
