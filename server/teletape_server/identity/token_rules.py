"""Which bearer tokens of an OpenID Connect issuer a server takes; no package for tokens is needed for that."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

#: Of a token, and of no key of the store.
_SHAPE: Final = re.compile(r"eyJ[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+")
OWNER: Final = re.compile(r"[A-Za-z0-9._-]{1,64}")  #: Names of owners, and of groups.
LEEWAY: Final = 5.0  #: Seconds that the issuer's clock may be off.


class TokenRules(NamedTuple):
    """Which tokens are valid, and what their claims mean.

    Attributes:
        issuer: The URL that `iss` has to be; its description is at /.well-known/openid-configuration below it.
        audience: What `aud` has to be, or to contain.
        owner: The claim whose value is the owner.
        groups: The claim with the owner's groups: a list of names, or one name.
        admins: The group whose members are admins; empty: no token is an admin's.
    """

    issuer: str
    audience: str
    owner: str = "sub"
    groups: str = "groups"
    admins: str = ""


def is_token(presented: str | None) -> bool:
    """Returns whether what a request presents looks like a token."""
    return presented is not None and _SHAPE.fullmatch(presented) is not None
