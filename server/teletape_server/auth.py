"""API keys, compared in constant time, and the rules for a server without keys."""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
from collections.abc import Mapping, Sequence
from typing import Final, TypeAlias

Network: TypeAlias = ipaddress.IPv4Network | ipaddress.IPv6Network

#: The owner of all sessions on a server without keys.
LOCAL: Final = "local"


class Keys:
    """The API keys of a server by owner; it stores only their digests.

    Args:
        keys: Owner to key; empty for a server that requires none.
        generation: Another number for each set of keys of a run: what was decided with other keys does not count.
    """

    def __init__(self, keys: Mapping[str, str], generation: int = 0) -> None:
        self.generation = generation
        self._digests = {name: _digest(key) for name, key in keys.items()}

    def __bool__(self) -> bool:
        return bool(self._digests)

    def owner(self, presented: str | None) -> str | None:
        """Returns the owner of a key; None for a wrong or missing key.

        All keys are compared, each in constant time, so that the time reveals nothing about them.
        """
        if not self._digests:
            return LOCAL
        digest = _digest(presented or "")
        owner = None
        for name, own_digest in self._digests.items():
            if hmac.compare_digest(digest, own_digest):
                owner = name
        return owner if presented else None


def _digest(key: str) -> bytes:
    return hashlib.sha256(key.encode("utf-8", "surrogateescape")).digest()


def presented_key(authorization: str | None, x_api_key: str | None) -> str | None:
    """Returns the key in the headers `Authorization: Bearer …` or `X-API-Key`, or None.

    Another scheme of Authorization is a proxy's own, and does not hide the second header.
    """
    scheme, _, key = (authorization or "").partition(" ")
    bearer = key.strip() if scheme.lower() == "bearer" else ""
    return bearer or x_api_key or None


def is_loopback(host: str) -> bool:
    """Returns whether a host name or address always means this machine, whatever a name server answers."""
    name = host.strip("[]").rstrip(".").lower()
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


def caller_address(peer: str | None, forwarded: str | None, proxies: Sequence[Network]) -> str | None:
    """Returns the address of a request's caller; None: it came over a Unix socket, and without a proxy.

    Args:
        peer: The address of the connection's other end; None: it is a Unix socket's.
        forwarded: The header X-Forwarded-For. Each proxy adds the address of its own caller at the end.
        proxies: Those that are believed; whoever connects to a Unix socket is.
    """
    address = peer
    for added in reversed((forwarded or "").split(",")):
        if (address is not None and not _is_in(address, proxies)) or not added.strip():
            break
        address = added.strip()
    return address


def _is_in(address: str, networks: Sequence[Network]) -> bool:
    try:
        number = ipaddress.ip_address(address)
    except ValueError:
        return False
    return any(number in network for network in networks)


def host_name(header: str) -> str:
    """Returns the name in a Host header, without the port."""
    if header.startswith("["):
        return header.partition("]")[0] + "]"
    return header.rpartition(":")[0] if ":" in header else header


def same_origin(origin: str, host: str) -> bool:
    """Returns whether an Origin header names this server, given the Host header of the same request."""
    scheme, _, rest = origin.partition("://")
    return scheme in ("http", "https") and rest.lower() == host.lower()
