"""The server's settings: each from a flag, else from TELETAPE_* in the environment, else its default."""

from __future__ import annotations

import argparse
import dataclasses
import ipaddress
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from teletape_engine.suggestions import with_nearest
from teletape_server import setting_values as values
from teletape_server.budgets.limits import NO_LIMITS, Limits
from teletape_server.identity.addresses import Network, is_loopback
from teletape_server.identity.token_rules import TokenRules
from teletape_server.ipc.confinement import User
from teletape_server.sessions.record import Durability


class SettingsError(ValueError):
    """Raised for a setting with a wrong value; the message names the setting and the values it accepts."""


_PREFIX: Final = "TELETAPE_"
#: Variables of this prefix that the engine and the SDK read, and those that Compose and the images' build take.
_OF_OTHERS: Final = frozenset(
    _PREFIX + name
    for name in (
        "ALLOW_INSECURE API_KEY DATASET_BYTES GPU_PUBLISH LAZY MEMORY OFFLOAD_LOOPS PLANS PROGRESS PUBLISH URL WHERE"
    ).split()
)


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
        key_database: As SQLAlchemy has it. The same holds: it may have a password.
    """

    host: str = field(default="127.0.0.1", metadata=_setting(values.host, "address to listen on", "ADDRESS"))
    port: int = field(
        default=8470, metadata=_setting(values.whole(0, 65535), "port to listen on; 0: any free port", "PORT")
    )
    unix: str | None = field(
        default=None, metadata=_setting(values.path, "Unix socket to listen on, in place of address and port", "PATH")
    )
    unix_mode: int = field(default=0o600, metadata=_setting(values.mode, "permissions of the socket's file", "MODE"))
    tls_certificate: str | None = field(
        default=None, metadata=_setting(values.path, "file of a certificate in PEM: connections are encrypted", "PATH")
    )
    tls_key: str | None = field(
        default=None,
        metadata=_setting(values.path, "file of its key, if the certificate's own does not have it", "PATH"),
    )
    data_dir: str | None = field(
        default=None,
        metadata=_setting(values.path, "folder for what outlives the server: sessions, published functions", "PATH"),
    )
    durability: str = field(
        default="auto",
        metadata=_setting(
            values.choice("auto", "none", "journal", "journal-sync"),
            "what of sessions outlives their processes: none, journal, journal-sync; auto: journal with a data folder",
            "LEVEL",
        ),
    )
    device: str = field(default="cpu", metadata=_setting(values.device, "device of sessions that name none", "DEVICE"))
    api_keys: Mapping[str, str] = field(default_factory=dict, metadata=_setting(values.keys, "name:key,…", flag=None))
    key_database: str | None = field(
        default=None, metadata=_setting(values.path, "URL of a database for keys and audit", flag=None)
    )
    audit_age: float = field(
        default=400 * 86400.0,
        metadata=_setting(values.days, "entries of the audit are removed at this age, at least 30d", "TIME"),
    )
    oidc: TokenRules | None = field(
        default=None,
        metadata=_setting(
            values.token_rules,
            "bearer tokens that are taken: issuer=URL,audience=NAME,owner=CLAIM,groups=CLAIM,admins=GROUP",
            "RULES",
        ),
    )
    admins: frozenset[str] = field(
        default=frozenset(),
        metadata=_setting(
            values.names, "names of API keys, with commas, that see and end the sessions of all", "NAMES"
        ),
    )
    allow_origins: frozenset[str] = field(
        default=frozenset(),
        metadata=_setting(
            values.origins,
            "origin whose pages may use the server; several times, or with commas",
            "ORIGIN",
            flag="--allow-origin",
            action="append",
        ),
    )
    memory_limit: int = field(
        default=2 << 30, metadata=_setting(values.size, "memory of one session: its arrays and objects", "BYTES")
    )
    disk_limit: int = field(default=16 << 30, metadata=_setting(values.size, "files of one session", "BYTES"))
    disk_per_key: int = field(
        default=64 << 30, metadata=_setting(values.size, "files of all sessions of one key", "BYTES")
    )
    max_body: int = field(default=1 << 30, metadata=_setting(values.size, "largest request", "BYTES"))
    bodies_per_key: int = field(
        default=2 << 30,
        metadata=_setting(values.size, "one key's request bodies under way, until their answers", "BYTES"),
    )
    bodies: int = field(
        default=4 << 30,
        metadata=_setting(values.size, "request bodies of all keys under way, until their answers", "BYTES"),
    )
    max_header: int = field(
        default=64 << 20, metadata=_setting(values.size, "largest header of a binary frame", "BYTES")
    )
    connections: int = field(
        default=1024, metadata=_setting(values.whole(1, 1_000_000), "open connections of all clients")
    )
    stall_limit: float = field(
        default=30.0, metadata=_setting(values.seconds, "a request or answer that stands still longer is ended", "TIME")
    )
    min_rate: int = field(
        default=4 << 10,
        metadata=_setting(values.size, "bytes of a body or answer that have to pass each second", "BYTES"),
    )
    sessions_per_key: int = field(default=16, metadata=_setting(values.whole(1, 100_000), "live sessions of one key"))
    sessions: int = field(default=64, metadata=_setting(values.whole(1, 100_000), "live sessions of all keys"))
    lasting_per_key: int = field(
        default=1000,
        metadata=_setting(values.whole(1, 100_000), "sessions of one key that have files, live or parked"),
    )
    key_limits: Limits = field(
        default=NO_LIMITS,
        metadata=_setting(
            values.limits,
            "further limits of keys that have none of their own: compute_seconds_1d=2h,memory_bytes=8GiB,…",
            "LIMITS",
        ),
    )
    runs: int = field(
        default=8,
        metadata=_setting(values.whole(1, 100_000), "requests of POST /v1/run, which have no session, at a time"),
    )
    published_processes: int = field(
        default=8,
        metadata=_setting(values.whole(1, 1024), "processes of published functions, at most one for each CPU"),
    )
    idle_limit: float = field(
        default=1800.0,
        metadata=_setting(
            values.seconds, "a session ends, or with files is parked, after this time without a request", "TIME"
        ),
    )
    max_age: float = field(
        default=86400.0, metadata=_setting(values.seconds, "a session without files ends at this age", "TIME")
    )
    patience: float = field(
        default=20.0,
        metadata=_setting(
            values.seconds, "a batch that runs longer is answered 202, with an address to wait at", "TIME"
        ),
    )
    time_limit: float = field(
        default=3600.0, metadata=_setting(values.seconds, "a request that computes longer fails", "TIME")
    )
    grace: float = field(
        default=10.0,
        metadata=_setting(values.seconds, "a request that runs this much past the time limit ends its session", "TIME"),
    )
    stuck_after: float = field(
        default=60.0,
        metadata=_setting(values.seconds, "a session ends if its process shows no sign of life for this time", "TIME"),
    )
    shutdown_grace: float = field(
        default=5.0,
        metadata=_setting(
            values.seconds, "running requests get this time to finish when the server is stopped", "TIME"
        ),
    )
    idempotency_window: float = field(
        default=3600.0,
        metadata=_setting(
            values.seconds, "a retry with the same Idempotency-Key gets the first answer for this time", "TIME"
        ),
    )
    max_iterations: int = field(
        default=10_000_000,
        metadata=_setting(values.whole(1, 1 << 62), "iterations that the loops of one command may take"),
    )
    shares: str = field(
        default="auto",
        metadata=_setting(
            values.choice("auto", "groups", "slices", "off"),
            "how keys share the CPU: groups, slices, off; auto: control groups where systemd delegates them",
            "CHOICE",
        ),
    )
    weights: Mapping[str, float] = field(
        default_factory=dict,
        metadata=_setting(
            values.weights, "name=weight,@group=percent,…: parts of the processors when all want them", "WEIGHTS"
        ),
    )
    worker_user: User | None = field(
        default=None,
        metadata=_setting(values.user, "user that sessions' processes run as; needs a server of root", "USER"),
    )
    frames: str = field(
        default="on",
        metadata=_setting(values.choice("on", "off"), "answer plain frames before the framework: on, off", "CHOICE"),
    )
    direct: str = field(
        default="auto",
        metadata=_setting(
            values.ON_OFF,
            "processes that compute answer small requests: on, off; auto: unless there are keys and a worker user",
            "CHOICE",
        ),
    )
    log_level: str = field(
        default="warning",
        metadata=_setting(values.choice("debug", "info", "warning", "error"), "debug, info, warning or error", "LEVEL"),
    )
    log_format: str = field(
        default="text",
        metadata=_setting(values.choice("text", "json"), "lines of the log: text, or json, an object each", "FORMAT"),
    )
    slow_log: float = field(
        default=60.0, metadata=_setting(values.seconds, "a request that runs longer gets a line in the log", "TIME")
    )
    access_log: str = field(
        default="auto",
        metadata=_setting(
            values.ON_OFF,
            "a line on stderr for each request: on, off; auto: if the log level is info or debug",
            "CHOICE",
            nargs="?",
            const="on",
        ),
    )
    trusted_proxies: tuple[Network, ...] = field(
        default=(ipaddress.ip_network("127.0.0.0/8"), ipaddress.ip_network("::1")),
        metadata=_setting(
            values.networks,
            "proxies whose X-Forwarded-For names the caller: addresses and networks, with commas",
            "NETWORKS",
        ),
    )

    def __post_init__(self) -> None:
        if not self.has_key_store:
            self.check_reach(has_keys=bool(self.api_keys) or self.oidc is not None)
        if self.data_dir is None and self.durability in ("journal", "journal-sync"):
            raise SettingsError(f"--durability {self.durability} needs a folder for the logs: name it, --data-dir")
        if self.tls_key is not None and self.tls_certificate is None:
            raise SettingsError("--tls-key is the key of a certificate, and there is none: name it, --tls-certificate")
        if self.tls_certificate is not None and self.unix is not None:
            raise SettingsError("a Unix socket needs no encryption: leave --tls-certificate or --unix out")
        unknown = sorted(self.admins - self.api_keys.keys())
        if unknown:
            raise SettingsError(f"an admin is the name of an API key, and there is none called {', '.join(unknown)}")

    def check_reach(self, *, has_keys: bool) -> None:
        """Checks that a server that requires no key is reachable from its own machine alone.

        Raises:
            SettingsError: It is not.
        """
        if not has_keys and self.unix is None and not is_loopback(self.host):
            create = "create one (teletape keys create)" if self.has_key_store else "set TELETAPE_API_KEYS to name:key"
            raise SettingsError(
                f"host {self.host} is reachable from other machines, and there is no API key: {create}, or listen on "
                "127.0.0.1"
            )

    @property
    def default_limits(self) -> Limits:
        """The limits of keys that have none of their own."""
        return self.key_limits.or_else(Limits(sessions=self.sessions_per_key, disk_bytes=self.disk_per_key))

    @property
    def has_key_store(self) -> bool:
        """Whether there is a place for keys besides the environment."""
        return self.data_dir is not None or self.key_database is not None

    @property
    def logs_requests(self) -> bool:
        """Whether each request gets a line; then no session's process serves connections: it writes none."""
        return self.access_log == "on" or (self.access_log == "auto" and self.log_level in ("debug", "info"))

    def is_direct(self, *, has_keys: bool) -> bool:
        """Returns whether sessions' processes may serve connections: they can read what comes over them, keys too."""
        may_see_keys = not has_keys or self.worker_user is None
        is_wanted = self.direct == "on" or (self.direct == "auto" and may_see_keys)
        return is_wanted and self.frames == "on" and not self.logs_requests

    @property
    def default_durability(self) -> Durability:
        """What of a session outlives its process, if it names nothing."""
        if self.durability == "journal" or (self.durability == "auto" and self.data_dir is not None):
            return "journal"
        return "journal-sync" if self.durability == "journal-sync" else "none"

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
                shown = f" (default {values.shown(setting.default, setting.metadata['read'])})"
                parser.add_argument(
                    _flag(setting),
                    dest=setting.name,
                    metavar=setting.metadata["metavar"],
                    help=f"{setting.metadata['about']}{shown}; {_variable(setting.name)}",
                    **setting.metadata["argument"],
                )
        parser.epilog = (
            "`teletape keys` creates API keys in the folder for data, or in the database of TELETAPE_KEY_DATABASE; "
            "TELETAPE_API_KEYS holds others, name:key separated by commas. Without keys the server answers requests of "
            "this machine only."
        )
        flags = vars(parser.parse_args(arguments))
        chosen: dict[str, Any] = {}
        for setting in dataclasses.fields(cls):
            text, origin = flags.get(setting.name), _flag(setting)
            if isinstance(text, list):
                text = ",".join(text)
            if text is None:
                text, origin = environment.get(_variable(setting.name)), _variable(setting.name)
                if not text:  # an empty variable counts as not set
                    continue
            try:
                chosen[setting.name] = setting.metadata["read"](text)
            except ValueError as error:
                is_secret = setting.name in ("api_keys", "key_database")  # which are shown nowhere
                shown = "" if is_secret else f"; found {text!r}"
                raise SettingsError(f"{origin} must be {error}{shown}") from None
        return cls(**chosen)


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
