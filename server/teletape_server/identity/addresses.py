"""Where requests come from: addresses, host names and origins, and the rules for a server without keys."""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from typing import TypeAlias

Network: TypeAlias = ipaddress.IPv4Network | ipaddress.IPv6Network


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
