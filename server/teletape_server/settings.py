"""The server's knobs: each a field, from a flag, else from TELETAPE_* in the environment, else its default."""

from __future__ import annotations

import argparse
import dataclasses
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from teletape_server.auth import is_loopback


class SettingsError(ValueError):
    """A setting with a wrong value; the message names it and says what it may be."""


_UNITS: Final = {"": 1, "B": 1} | {
    prefix + suffix: base**power
    for power, prefix in enumerate("KMGT", 1)
    for suffix, base in (("B", 1000), ("iB", 1024), ("", 1024))
}
_DURATIONS: Final = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400}


def _measure(text: str, pattern: str, units: Mapping[str, int], expected: str) -> float:
    found = re.fullmatch(rf"([0-9]+(?:\.[0-9]+)?)\s*({pattern})", text.strip())
    if found is None or found[2] not in units:
        raise ValueError(expected)
    return float(found[1]) * units[found[2]]


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


def _device(text: str) -> str:
    if text == "gpu":
        return "gpu:0"
    if text != "cpu" and not re.fullmatch(r"gpu:[0-9]+", text):
        raise ValueError("cpu, gpu or gpu:N")
    return text


def _host(text: str) -> str:
    if not text.strip() or re.search(r"[\s/]", text):
        raise ValueError("an address or a name, such as 127.0.0.1")
    return text.strip("[]")


def _level(text: str) -> str:
    levels = ("debug", "info", "warning", "error")
    if text.lower() not in levels:
        raise ValueError("one of " + ", ".join(levels))
    return text.lower()


def _folder(text: str) -> Path:
    path = Path(text).expanduser()
    if not text or (path.exists() and not path.is_dir()):
        raise ValueError("a folder, which need not exist yet")
    return path


def _keys(text: str) -> dict[str, str]:
    keys: dict[str, str] = {}
    for entry in filter(None, (part.strip() for part in text.split(","))):
        name, colon, key = entry.partition(":")
        if not colon or not re.fullmatch(r"[A-Za-z0-9._-]+", name) or len(key) < 8 or not key.isascii() or " " in key:
            raise ValueError(
                "name:key pairs with commas between them, each key of 8 characters or more, without spaces"
            )
        if name in keys:
            raise ValueError(f"name:key pairs, each name once; {name} comes twice")
        keys[name] = key
    return keys


def _knob(read: Callable[[str], Any], about: str, metavar: str = "N", *, flag: bool = True) -> dict[str, Any]:
    return {"read": read, "about": about, "metavar": metavar, "flag": flag}


@dataclass(frozen=True)
class Settings:
    """What `teletape serve` is told.

    Attributes:
        api_keys: Name to key. Never a flag: a command line is there for every user of the machine to read.
    """

    host: str = field(default="127.0.0.1", metadata=_knob(_host, "address to listen on", "ADDRESS"))
    port: int = field(default=8470, metadata=_knob(_whole(0, 65535), "port to listen on; 0 takes a free one", "PORT"))
    device: str = field(
        default="cpu", metadata=_knob(_device, "where sessions compute unless they ask otherwise", "DEVICE")
    )
    data_dir: Path = field(
        default=Path("data"), metadata=_knob(_folder, "folder for what outlives the server", "FOLDER")
    )
    api_keys: Mapping[str, str] = field(default_factory=dict, metadata=_knob(_keys, "name:key,…", flag=False))
    memory_limit: int = field(default=2 << 30, metadata=_knob(_bytes, "memory of one session's arrays", "BYTES"))
    max_body: int = field(default=1 << 30, metadata=_knob(_bytes, "largest request", "BYTES"))
    max_header: int = field(default=64 << 20, metadata=_knob(_bytes, "largest header of a binary frame", "BYTES"))
    sessions_per_key: int = field(default=16, metadata=_knob(_whole(1, 100_000), "live sessions of one key"))
    sessions: int = field(default=64, metadata=_knob(_whole(1, 100_000), "live sessions in all"))
    idle_limit: float = field(
        default=1800.0, metadata=_knob(_seconds, "a session ends after so long without work", "TIME")
    )
    max_age: float = field(
        default=86400.0, metadata=_knob(_seconds, "a session ends at this age whatever happens", "TIME")
    )
    patience: float = field(
        default=20.0,
        metadata=_knob(_seconds, "a batch that runs longer is answered 202, to be asked for again", "TIME"),
    )
    time_limit: float = field(
        default=3600.0, metadata=_knob(_seconds, "a request that computes longer is stopped", "TIME")
    )
    max_iterations: int = field(
        default=10_000_000, metadata=_knob(_whole(1, 1 << 62), "iterations that the loops of one command may take")
    )
    log_level: str = field(default="warning", metadata=_knob(_level, "debug, info, warning or error", "LEVEL"))

    def __post_init__(self) -> None:
        if not self.api_keys and not is_loopback(self.host):
            raise SettingsError(
                f"host {self.host} can be reached from other machines, and there is no API key: set TELETAPE_API_KEYS "
                "to name:key (several with commas between them), or listen on 127.0.0.1"
            )

    @classmethod
    def load(
        cls, arguments: Sequence[str], environment: Mapping[str, str], *, prog: str = "teletape serve"
    ) -> Settings:
        """The settings that a command line and an environment give.

        Raises:
            SettingsError: A wrong value.
            SystemExit: An unknown flag (status 2), or --help.
        """
        parser = argparse.ArgumentParser(prog, description="Serve sessions of the tape engine over HTTP.")
        for knob in dataclasses.fields(cls):
            if knob.metadata["flag"]:
                shown = f" (default {_shown(knob)})"
                parser.add_argument(
                    "--" + knob.name.replace("_", "-"),
                    dest=knob.name,
                    metavar=knob.metadata["metavar"],
                    help=f"{knob.metadata['about']}{shown}; {_variable(knob.name)}",
                )
        parser.epilog = (
            "TELETAPE_API_KEYS holds the API keys, name:key with commas between them; without any, only this "
        )
        parser.epilog += "machine is served."
        given = vars(parser.parse_args(arguments))
        values: dict[str, Any] = {}
        for knob in dataclasses.fields(cls):
            text, where = given.get(knob.name), "--" + knob.name.replace("_", "-")
            if text is None:
                text, where = environment.get(_variable(knob.name)), _variable(knob.name)
                if not text:  # a variable set to nothing is one that is not set
                    continue
            try:
                values[knob.name] = knob.metadata["read"](text)
            except ValueError as error:
                found = "something else" if knob.name == "api_keys" else repr(text)
                raise SettingsError(f"{where} must be {error}; found {found}") from None
        return cls(**values)


def _variable(name: str) -> str:
    return "TELETAPE_" + name.upper()


def _shown(knob: dataclasses.Field[Any]) -> str:
    if knob.metadata["read"] is _bytes:
        for unit in ("GiB", "MiB", "KiB"):
            if knob.default % _UNITS[unit] == 0:
                return f"{knob.default // _UNITS[unit]}{unit}"
    return f"{knob.default:g}s" if isinstance(knob.default, float) else str(knob.default)
