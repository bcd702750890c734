"""Who is calling: API keys, compared in constant time, and the rules for a server that has none."""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
from collections.abc import Mapping
from typing import Final

#: Owner of everything on a server without keys.
LOCAL: Final = "local"


class Keys:
    """The API keys of a server, by the name of their owner. Only digests are kept.

    Args:
        keys: Name to key; empty for a server that asks for none.
    """

    def __init__(self, keys: Mapping[str, str]) -> None:
        self._digests = {name: _digest(key) for name, key in keys.items()}

    def __bool__(self) -> bool:
        return bool(self._digests)

    def owner(self, presented: str | None) -> str | None:
        """The name that the presented key belongs to; None for a wrong or missing one.

        Every key is compared, and in constant time, so that the time taken tells nothing.
        """
        if not self._digests:
            return LOCAL
        digest = _digest(presented or "")
        found = None
        for name, known in self._digests.items():
            if hmac.compare_digest(digest, known):
                found = name
        return found if presented else None


def _digest(key: str) -> bytes:
    return hashlib.sha256(key.encode("utf-8", "surrogateescape")).digest()


def presented_key(authorization: str | None, x_api_key: str | None) -> str | None:
    """The key in the headers `Authorization: Bearer …` or `X-API-Key`, if there is one."""
    if authorization:
        scheme, _, key = authorization.partition(" ")
        return key.strip() or None if scheme.lower() == "bearer" else None
    return x_api_key or None


def is_loopback(host: str) -> bool:
    """Whether a name or address means this machine alone, whatever a name server says."""
    name = host.strip("[]").rstrip(".").lower()
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


def host_name(header: str) -> str:
    """The name in a Host header, without the port."""
    if header.startswith("["):
        return header.partition("]")[0] + "]"
    return header.rpartition(":")[0] if ":" in header else header


def same_origin(origin: str, host: str) -> bool:
    """Whether a page of that Origin came from this server, which was asked as `host`."""
    scheme, _, rest = origin.partition("://")
    return scheme in ("http", "https") and rest.lower() == host.lower()
