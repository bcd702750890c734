"""Reads the texts of settings: a function returns the value, or raises ValueError with the values that are accepted."""

from __future__ import annotations

import dataclasses
import ipaddress
import pwd
import re
from collections.abc import Callable, Mapping
from typing import Any, Final
from urllib.parse import urlsplit

from teletape_server.budgets.limits import GROUP, NO_LIMITS, Limits
from teletape_server.identity.addresses import Network, is_loopback
from teletape_server.identity.token_rules import TokenRules
from teletape_server.ipc.confinement import User

#: Bytes by unit.
UNITS: Final = {"": 1, "B": 1} | {
    prefix + suffix: base**power
    for power, prefix in enumerate("KMGT", 1)
    for suffix, base in (("B", 1000), ("iB", 1024), ("", 1024))
}
_SHORTEST_KEY: Final = 8  # characters
_DAY: Final = 86400
_LEAST_DAYS: Final = 30  # for which the database of keys refuses to remove entries of the audit
_DURATIONS: Final = {"": 1, "s": 1, "m": 60, "h": 3600, "d": _DAY}
#: What a device may be called: gpu is any GPU, auto any GPU or else the CPU.
DEVICE_PATTERN: Final = r"^(auto|cpu|gpu|gpu:[0-9]{1,3})$"
#: The same in words.
DEVICES: Final = "cpu, gpu, gpu:N or auto"


def _measure(text: str, pattern: str, units: Mapping[str, int], expected: str) -> float:
    match = re.fullmatch(rf"([0-9]+(?:\.[0-9]+)?)\s*({pattern})", text.strip())
    if match is None or match[2] not in units:
        raise ValueError(expected)
    return float(match[1]) * units[match[2]]


def size(text: str) -> int:
    """Reads a number of bytes, with or without a unit."""
    expected = "bytes from 1 up, such as 268435456 or 256MiB"
    value = int(_measure(text, "[A-Za-z]*", UNITS, expected))
    if value < 1:
        raise ValueError(expected)
    return value


def seconds(text: str) -> float:
    """Reads a time, with or without a unit."""
    expected = "a time above 0, such as 90, 90s, 15m, 2h or 1d"
    value = _measure(text, "[a-z]*", _DURATIONS, expected)
    if value <= 0:
        raise ValueError(expected)
    return value


def days(text: str) -> float:
    """Reads a time of many days."""
    value = _measure(text, "[a-z]*", _DURATIONS, expected := f"a time from {_LEAST_DAYS}d up, such as 400d")
    if value < _LEAST_DAYS * _DAY:
        raise ValueError(expected)
    return value


def whole(low: int, high: int) -> Callable[[str], int]:
    """Returns a reader of whole numbers within these bounds."""

    def read(text: str) -> int:
        if not text.strip().isdecimal() or not low <= int(text) <= high:
            raise ValueError(f"a whole number from {low} to {high}")
        return int(text)

    return read


def device(text: str) -> str:
    """Reads a device."""
    if not re.fullmatch(DEVICE_PATTERN, text):
        raise ValueError(DEVICES)
    return text


def host(text: str) -> str:
    """Reads an address or a name."""
    if not text.strip() or re.search(r"[\s/]", text):
        raise ValueError("an address or a name, such as 127.0.0.1")
    return text.strip("[]")


def path(text: str) -> str:
    """Reads the path of a file."""
    if not text.strip():
        raise ValueError("the path of a file")
    return text


def mode(text: str) -> int:
    """Reads a file's permissions."""
    if not re.fullmatch(r"0?[0-7]{3}", text.strip()):
        raise ValueError("three octal digits, such as 600 or 660")
    return int(text, 8)


def choice(*choices: str) -> Callable[[str], str]:
    """Returns a reader of one of these words."""

    def read(text: str) -> str:
        if text.lower() not in choices:
            raise ValueError("one of " + ", ".join(choices))
        return text.lower()

    return read


#: Reads auto, on or off.
ON_OFF: Final = choice("auto", "on", "off")


def user(text: str) -> User:
    """Reads a user of this machine."""
    try:
        entry = pwd.getpwuid(int(text)) if text.isdecimal() else pwd.getpwnam(text)
    except (KeyError, OverflowError):
        raise ValueError("a user of this machine, by name or number") from None
    return User(entry.pw_uid, entry.pw_gid)


def weights(text: str) -> dict[str, float]:
    """Reads weights of keys, by name, and parts of groups, from 0 to 1, by @name."""
    expected = (
        "names of keys with weights from 0.01 to 100, and of groups with percents from 1% to 99%, all together at most "
        "99%, such as ann=3,bob=0.5,@lab=40%"
    )
    weights: dict[str, float] = {}
    for entry in filter(None, (part.strip() for part in text.split(","))):
        match = re.fullmatch(r"(@?)([^@=%\s]+)=([0-9]{1,3}(?:\.[0-9]+)?)(%?)", entry)
        if match is None or bool(match[1]) != bool(match[4]):
            raise ValueError(expected)
        number = float(match[3])
        if not (1 <= number <= 99 if match[1] else 0.01 <= number <= 100):
            raise ValueError(expected)
        weights[match[1] + match[2]] = number / 100 if match[1] else number
    if not weights or sum(part for name, part in weights.items() if name.startswith(GROUP)) > 0.99 + 1e-9:
        raise ValueError(expected)
    return weights


def token_rules(text: str) -> TokenRules:
    """Reads which tokens of an issuer are taken."""
    expected = (
        "issuer=URL and audience=NAME, with commas, and if need be owner=CLAIM, groups=CLAIM and admins=GROUP; the URL "
        "begins with https://, or with http:// on this machine"
    )
    parts = [part.strip().partition("=") for part in text.split(",")]
    rules = {name.strip(): value.strip() for name, _, value in parts}
    if len(rules) < len(parts) or not rules.keys() <= {*TokenRules._fields} or not all(rules.values()):
        raise ValueError(expected)
    url = urlsplit(rules.get("issuer", ""))
    is_safe = url.scheme == "https" or (url.scheme == "http" and is_loopback(url.hostname or ""))
    if not (is_safe and url.hostname and "audience" in rules):
        raise ValueError(expected)
    return TokenRules(**rules)


def limits(text: str) -> Limits:
    """Reads limits of an account, by name; an empty text has none."""
    limits: dict[str, float] = {}
    for entry in filter(None, (part.strip() for part in text.split(","))):
        name, _, value = (part.strip() for part in entry.partition("="))
        if name not in Limits._fields or name in limits:
            raise ValueError(f"limits once each, as name=value,…, with names of {', '.join(Limits._fields)}")
        try:
            limits[name] = _limit_reader(name)(value)
        except ValueError as error:
            raise ValueError(f"limits, where {name} is {error}") from None
    return Limits.of(limits)


def _limit_reader(name: str) -> Callable[[str], float]:
    if name == "sessions":
        return whole(0, 100_000)
    if name.endswith("_bytes"):
        return size
    return seconds if name.startswith("compute_seconds") else _positive


def _positive(text: str) -> float:
    expected = "a number above 0"
    value = _measure(text, "", {"": 1}, expected)
    if value <= 0:
        raise ValueError(expected)
    return value


def keys(text: str) -> dict[str, str]:
    """Reads API keys, and returns them by name."""
    keys: dict[str, str] = {}
    for entry in filter(None, (part.strip() for part in text.split(","))):
        name, colon, key = entry.partition(":")
        if not colon or not re.fullmatch(r"[A-Za-z0-9._-]+", name):
            position = len(keys) + 1
            raise ValueError(
                "name:key pairs separated by commas, each name of letters, digits, dots, underscores and hyphens; pair "
                f"{position} has no such name before a colon"
            )
        if len(key) < _SHORTEST_KEY or not key.isascii() or " " in key:
            raise ValueError(
                f"name:key pairs separated by commas, each key of at least {_SHORTEST_KEY} characters of ASCII without "
                f"spaces; that of {name} has {_wrong_key(key)}"
            )
        if name in keys:
            raise ValueError(f"name:key pairs with different names; {name} occurs twice")
        if key in keys.values():
            raise ValueError(f"name:key pairs with different keys; that of {name} is another name's too")
        keys[name] = key
    return keys


def _wrong_key(key: str) -> str:
    """Returns what is wrong with a key, without showing it."""
    if len(key) < _SHORTEST_KEY:
        return f"{len(key)}"
    return "a space in it" if " " in key else "other characters"


def networks(text: str) -> tuple[Network, ...]:
    """Reads addresses and networks."""
    try:
        return tuple(ipaddress.ip_network(part.strip()) for part in text.split(",") if part.strip())
    except ValueError:
        raise ValueError("addresses and networks separated by commas, such as 127.0.0.1 or 172.16.0.0/12") from None


def names(text: str) -> frozenset[str]:
    """Reads names of API keys."""
    names = frozenset(filter(None, (part.strip() for part in text.split(","))))
    if not all(re.fullmatch(r"[A-Za-z0-9._-]+", name) for name in names):
        raise ValueError("names of API keys separated by commas")
    return names


def origins(text: str) -> frozenset[str]:
    """Reads origins, and returns them as browsers send them: lower case, and without the scheme's own port."""
    origins = set()
    for entry in filter(None, (part.strip().lower() for part in text.split(","))):
        match = re.fullmatch(r"([a-z][a-z0-9+.-]*)://([a-z0-9_.-]+|\[[0-9a-f:.]+\])(?::([0-9]{1,5}))?", entry)
        if match is None:
            raise ValueError(
                "origins as a browser sends them, such as https://app.example or http://localhost:3000, separated by "
                "commas: scheme, host and port, without a path and without *"
            )
        scheme, host, port = match.groups()
        is_default = port is None or {"http": "80", "https": "443"}.get(scheme) == port
        origins.add(f"{scheme}://{host}" if is_default else f"{scheme}://{host}:{port}")
    return frozenset(origins)


def shown(default: Any, read: Callable[[str], Any]) -> str:
    """Returns the default of a setting as one writes it.

    Args:
        default: The default.
        read: What reads the setting.
    """
    if default == NO_LIMITS:
        return "none"
    if isinstance(default, tuple):
        return ",".join(map(str, default))
    if read is size:
        for unit in ("GiB", "MiB", "KiB"):
            if default % UNITS[unit] == 0:
                return f"{default // UNITS[unit]}{unit}"
    if read is mode:
        return f"{default:o}"
    if read is days:
        return f"{default / _DAY:g}d"
    if default in (None, frozenset(), dataclasses.MISSING):
        return "none"
    return f"{default:g}s" if isinstance(default, float) else str(default)
