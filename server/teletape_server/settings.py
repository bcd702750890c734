"""The server's settings: each from a flag, else from TELETAPE_* in the environment, else its default.

Long because every setting has its reader, its checks and its help here.
"""

from __future__ import annotations

import argparse
import dataclasses
import ipaddress
import pwd
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from teletape_engine.suggestions import with_nearest
from teletape_server.auth import Network, is_loopback
from teletape_server.ipc.confinement import User


class SettingsError(ValueError):
    """Raised for a setting with a wrong value; the message names the setting and the values it accepts."""


_UNITS: Final = {"": 1, "B": 1} | {
    prefix + suffix: base**power
    for power, prefix in enumerate("KMGT", 1)
    for suffix, base in (("B", 1000), ("iB", 1024), ("", 1024))
}
_PREFIX: Final = "TELETAPE_"
#: Variables of this prefix that the engine and the SDK read, and those that Compose and the images' build take.
_OF_OTHERS: Final = frozenset(
    _PREFIX + name
    for name in (
        "ALLOW_INSECURE API_KEY DATASET_BYTES GPU_PUBLISH LAZY MEMORY OFFLOAD_LOOPS PLANS PROGRESS PUBLISH URL WHERE"
    ).split()
)
_SHORTEST_KEY: Final = 8  # characters
_DURATIONS: Final = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400}


def _measure(text: str, pattern: str, units: Mapping[str, int], expected: str) -> float:
    match = re.fullmatch(rf"([0-9]+(?:\.[0-9]+)?)\s*({pattern})", text.strip())
    if match is None or match[2] not in units:
        raise ValueError(expected)
    return float(match[1]) * units[match[2]]


def _bytes(text: str) -> int:
    expected = "bytes from 1 up, such as 268435456 or 256MiB"
    value = int(_measure(text, "[A-Za-z]*", _UNITS, expected))
    if value < 1:
        raise ValueError(expected)
    return value


def _seconds(text: str) -> float:
    expected = "a time above 0, such as 90, 90s, 15m, 2h or 1d"
    value = _measure(text, "[a-z]*", _DURATIONS, expected)
    if value <= 0:
        raise ValueError(expected)
    return value


def _whole(low: int, high: int) -> Callable[[str], int]:
    def read(text: str) -> int:
        if not text.strip().isdecimal() or not low <= int(text) <= high:
            raise ValueError(f"a whole number from {low} to {high}")
        return int(text)

    return read


#: What a device may be called: gpu is any GPU, auto any GPU or else the CPU.
DEVICE_PATTERN: Final = r"^(auto|cpu|gpu|gpu:[0-9]{1,3})$"


#: The same in words.
DEVICES: Final = "cpu, gpu, gpu:N or auto"


def _device(text: str) -> str:
    if not re.fullmatch(DEVICE_PATTERN, text):
        raise ValueError(DEVICES)
    return text


def _host(text: str) -> str:
    if not text.strip() or re.search(r"[\s/]", text):
        raise ValueError("an address or a name, such as 127.0.0.1")
    return text.strip("[]")


def _path(text: str) -> str:
    if not text.strip():
        raise ValueError("the path of a file")
    return text


def _mode(text: str) -> int:
    if not re.fullmatch(r"0?[0-7]{3}", text.strip()):
        raise ValueError("three octal digits, such as 600 or 660")
    return int(text, 8)


def _choice(*choices: str) -> Callable[[str], str]:
    def read(text: str) -> str:
        if text.lower() not in choices:
            raise ValueError("one of " + ", ".join(choices))
        return text.lower()

    return read


_ON_OFF: Final = _choice("auto", "on", "off")


def _user(text: str) -> User:
    try:
        entry = pwd.getpwuid(int(text)) if text.isdecimal() else pwd.getpwnam(text)
    except (KeyError, OverflowError):
        raise ValueError("a user of this machine, by name or number") from None
    return User(entry.pw_uid, entry.pw_gid)


def _keys(text: str) -> dict[str, str]:
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


def _networks(text: str) -> tuple[Network, ...]:
    try:
        return tuple(ipaddress.ip_network(part.strip()) for part in text.split(",") if part.strip())
    except ValueError:
        raise ValueError("addresses and networks separated by commas, such as 127.0.0.1 or 172.16.0.0/12") from None


def _names(text: str) -> frozenset[str]:
    names = frozenset(filter(None, (part.strip() for part in text.split(","))))
    if not all(re.fullmatch(r"[A-Za-z0-9._-]+", name) for name in names):
        raise ValueError("names of API keys separated by commas")
    return names


def _origins(text: str) -> frozenset[str]:
    """Returns origins as browsers send them: lower case, and without the scheme's own port."""
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


def _setting(
    read: Callable[[str], Any], about: str, metavar: str = "N", *, flag: str | None = "", **argument: Any
) -> dict[str, Any]:
    """Returns what is known of a setting.

    Args:
        read: Returns the value of a text, or raises ValueError with the values that it may have.
        about: For --help.
        metavar: The same.
        flag: The flag, if it is not the setting's name; None: there is none.
        **argument: More of argparse's arguments for the flag.
    """
    return {"read": read, "about": about, "metavar": metavar, "flag": flag, "argument": argument}


@dataclass(frozen=True)
class Settings:
    """The settings of `teletape serve`.

    Attributes:
        api_keys: Name to key. There is no flag for it: every user of the machine can read a command line.
    """

    host: str = field(default="127.0.0.1", metadata=_setting(_host, "address to listen on", "ADDRESS"))
    port: int = field(default=8470, metadata=_setting(_whole(0, 65535), "port to listen on; 0: any free port", "PORT"))
    unix: str | None = field(
        default=None, metadata=_setting(_path, "Unix socket to listen on, in place of address and port", "PATH")
    )
    unix_mode: int = field(
        default=0o600, metadata=_setting(_mode, "permissions of its file: who can write to it can connect", "MODE")
    )
    tls_certificate: str | None = field(
        default=None, metadata=_setting(_path, "file of a certificate in PEM: connections are encrypted", "PATH")
    )
    tls_key: str | None = field(
        default=None, metadata=_setting(_path, "file of its key, if the certificate's own does not have it", "PATH")
    )
    device: str = field(default="cpu", metadata=_setting(_device, "device of sessions that name none", "DEVICE"))
    api_keys: Mapping[str, str] = field(default_factory=dict, metadata=_setting(_keys, "name:key,…", flag=None))
    admins: frozenset[str] = field(
        default=frozenset(),
        metadata=_setting(_names, "names of API keys, with commas, that see and end the sessions of all", "NAMES"),
    )
    allow_origins: frozenset[str] = field(
        default=frozenset(),
        metadata=_setting(
            _origins,
            "origin whose pages may use the server; several times, or with commas",
            "ORIGIN",
            flag="--allow-origin",
            action="append",
        ),
    )
    memory_limit: int = field(
        default=2 << 30, metadata=_setting(_bytes, "memory of one session: its arrays and objects", "BYTES")
    )
    max_body: int = field(default=1 << 30, metadata=_setting(_bytes, "largest request", "BYTES"))
    bodies_per_key: int = field(
        default=2 << 30, metadata=_setting(_bytes, "one key's request bodies under way, until their answers", "BYTES")
    )
    bodies: int = field(
        default=4 << 30, metadata=_setting(_bytes, "request bodies of all keys under way, until their answers", "BYTES")
    )
    max_header: int = field(default=64 << 20, metadata=_setting(_bytes, "largest header of a binary frame", "BYTES"))
    connections: int = field(default=1024, metadata=_setting(_whole(1, 1_000_000), "open connections of all clients"))
    stall_limit: float = field(
        default=30.0, metadata=_setting(_seconds, "a request or answer that stands still longer is ended", "TIME")
    )
    min_rate: int = field(
        default=4 << 10, metadata=_setting(_bytes, "bytes of a body or answer that have to pass each second", "BYTES")
    )
    sessions_per_key: int = field(default=16, metadata=_setting(_whole(1, 100_000), "live sessions of one key"))
    sessions: int = field(default=64, metadata=_setting(_whole(1, 100_000), "live sessions of all keys"))
    runs: int = field(
        default=8, metadata=_setting(_whole(1, 100_000), "requests of POST /v1/run, which have no session, at a time")
    )
    idle_limit: float = field(
        default=1800.0, metadata=_setting(_seconds, "a session ends after this time without a request", "TIME")
    )
    max_age: float = field(
        default=86400.0, metadata=_setting(_seconds, "a session ends at this age in any case", "TIME")
    )
    patience: float = field(
        default=20.0,
        metadata=_setting(_seconds, "a batch that runs longer is answered 202, with an address to wait at", "TIME"),
    )
    time_limit: float = field(
        default=3600.0, metadata=_setting(_seconds, "a request that computes longer fails", "TIME")
    )
    grace: float = field(
        default=10.0,
        metadata=_setting(_seconds, "a request that runs this much past the time limit ends its session", "TIME"),
    )
    stuck_after: float = field(
        default=60.0,
        metadata=_setting(_seconds, "a session ends if its process shows no sign of life for this time", "TIME"),
    )
    shutdown_grace: float = field(
        default=5.0,
        metadata=_setting(_seconds, "running requests get this time to finish when the server is stopped", "TIME"),
    )
    idempotency_window: float = field(
        default=3600.0,
        metadata=_setting(
            _seconds, "a retry with the same Idempotency-Key gets the first answer for this time", "TIME"
        ),
    )
    max_iterations: int = field(
        default=10_000_000, metadata=_setting(_whole(1, 1 << 62), "iterations that the loops of one command may take")
    )
    worker_user: User | None = field(
        default=None, metadata=_setting(_user, "user that sessions' processes run as; needs a server of root", "USER")
    )
    frames: str = field(
        default="on",
        metadata=_setting(_choice("on", "off"), "answer plain frames before the framework: on, off", "CHOICE"),
    )
    direct: str = field(
        default="auto",
        metadata=_setting(
            _ON_OFF, "sessions' processes serve connections of small requests: on, off; auto: if no keys", "CHOICE"
        ),
    )
    log_level: str = field(
        default="warning",
        metadata=_setting(_choice("debug", "info", "warning", "error"), "debug, info, warning or error", "LEVEL"),
    )
    log_format: str = field(
        default="text",
        metadata=_setting(_choice("text", "json"), "lines of the log: text, or json, an object each", "FORMAT"),
    )
    access_log: str = field(
        default="auto",
        metadata=_setting(
            _ON_OFF,
            "a line on stderr for each request: on, off; auto: if the log level is info or debug",
            "CHOICE",
            nargs="?",
            const="on",
        ),
    )
    trusted_proxies: tuple[Network, ...] = field(
        default=(ipaddress.ip_network("127.0.0.0/8"), ipaddress.ip_network("::1")),
        metadata=_setting(
            _networks, "proxies whose X-Forwarded-For names the caller: addresses and networks, with commas", "NETWORKS"
        ),
    )

    def __post_init__(self) -> None:
        if not self.api_keys and self.unix is None and not is_loopback(self.host):
            raise SettingsError(
                f"host {self.host} is reachable from other machines, and there is no API key: set TELETAPE_API_KEYS to "
                "name:key (several separated by commas), or listen on 127.0.0.1"
            )

        if self.tls_key is not None and self.tls_certificate is None:
            raise SettingsError("--tls-key is the key of a certificate, and there is none: name it, --tls-certificate")
        if self.tls_certificate is not None and self.unix is not None:
            raise SettingsError("a Unix socket needs no encryption: leave --tls-certificate or --unix out")
        unknown = sorted(self.admins - self.api_keys.keys())
        if unknown:
            raise SettingsError(f"an admin is the name of an API key, and there is none called {', '.join(unknown)}")

    @property
    def logs_requests(self) -> bool:
        """Whether each request gets a line; then no session's process serves connections: it writes none."""
        return self.access_log == "on" or (self.access_log == "auto" and self.log_level in ("debug", "info"))

    @property
    def is_direct(self) -> bool:
        """Whether sessions' processes may serve connections: they can read what comes over them, keys too."""
        is_wanted = self.direct == "on" or (self.direct == "auto" and not self.api_keys)
        return is_wanted and self.frames == "on" and not self.logs_requests

    @property
    def most_memory(self) -> int:
        """Bytes that sessions, requests without a session, and bodies may take together."""
        return (self.sessions + self.runs) * self.memory_limit + self.bodies

    @classmethod
    def load(
        cls, arguments: Sequence[str], environment: Mapping[str, str], *, prog: str = "teletape serve"
    ) -> Settings:
        """Returns the settings of a command line and an environment.

        Raises:
            SettingsError: A wrong value.
            SystemExit: An unknown flag (status 2), or --help.
        """
        parser = argparse.ArgumentParser(prog, description="Serve sessions of the tape engine over HTTP.")
        for setting in dataclasses.fields(cls):
            if setting.metadata["flag"] is not None:
                shown = f" (default {_shown(setting)})"
                parser.add_argument(
                    _flag(setting),
                    dest=setting.name,
                    metavar=setting.metadata["metavar"],
                    help=f"{setting.metadata['about']}{shown}; {_variable(setting.name)}",
                    **setting.metadata["argument"],
                )
        parser.epilog = (
            "TELETAPE_API_KEYS holds the API keys, name:key separated by commas; without keys the server answers "
            "requests of this machine only."
        )
        flags = vars(parser.parse_args(arguments))
        values: dict[str, Any] = {}
        for setting in dataclasses.fields(cls):
            text, origin = flags.get(setting.name), _flag(setting)
            if isinstance(text, list):
                text = ",".join(text)
            if text is None:
                text, origin = environment.get(_variable(setting.name)), _variable(setting.name)
                if not text:  # an empty variable counts as not set
                    continue
            try:
                values[setting.name] = setting.metadata["read"](text)
            except ValueError as error:
                shown = "" if setting.name == "api_keys" else f"; found {text!r}"  # keys are shown nowhere
                raise SettingsError(f"{origin} must be {error}{shown}") from None
        return cls(**values)


def unknown_variables(environment: Mapping[str, str]) -> list[str]:
    """Returns a sentence for each variable TELETAPE_* that nothing reads, with the nearest setting's.

    The SDK's own are known: a program and its server may have the same environment.
    """
    known = {_variable(setting.name) for setting in dataclasses.fields(Settings)}
    unknown = sorted(name for name in environment if name.startswith(_PREFIX) and name not in known | _OF_OTHERS)
    return [
        with_nearest(f"the variable {name} is no setting of the server, and is ignored", name, known)
        for name in unknown
    ]


def _flag(setting: dataclasses.Field[Any]) -> str:
    return setting.metadata["flag"] or "--" + setting.name.replace("_", "-")


def _variable(name: str) -> str:
    return _PREFIX + name.upper()


def _shown(setting: dataclasses.Field[Any]) -> str:
    if isinstance(setting.default, tuple):
        return ",".join(map(str, setting.default))
    if setting.metadata["read"] is _bytes:
        for unit in ("GiB", "MiB", "KiB"):
            if setting.default % _UNITS[unit] == 0:
                return f"{setting.default // _UNITS[unit]}{unit}"
    if setting.metadata["read"] is _mode:
        return f"{setting.default:o}"
    if setting.default is None or setting.default == frozenset():
        return "none"
    return f"{setting.default:g}s" if isinstance(setting.default, float) else str(setting.default)
