"""`teletape doctor --server`: looks at whether this box can run a server with these settings, and says what to change.

Nothing is changed, but for a file in the folder for data that is written, synced and removed.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, Literal, NamedTuple

from teletape_engine import arrays
from teletape_engine.plans.run.c.loaded import WHY_NOT
from teletape_server.administration.box import days_left, most_files, synchronised
from teletape_server.hosts.control_groups import is_delegated, own_tree
from teletape_server.hosts.shares import SharesError
from teletape_server.hosts.time_slices import obstacle
from teletape_server.ipc.confinement import LEAST_FREE, free_memory, machine_memory
from teletape_server.settings import Settings, SettingsError
from teletape_server.tls import check

#: Measured: descriptors of the server's process for a session, with the files of its log.
FILES_OF_SESSION: Final = 11
_OWN_FILES: Final = 64  # of the server's process without sessions and connections
_SYNCS: Final = 20  # that are measured
_SLOW_SYNC: Final = 0.02  # seconds, from which on journal-sync is slow for programs
_RENEWAL_DAYS: Final = 21.0  # before its end a certificate should have been renewed
_SLICES: Final = "keys share the CPU by time slices, which costs a little where many of their processes compute"
_WRONG_CLOCK: Final = 1.0  # of a clock, from which on it is worth a note

Grade = Literal["ok", "note", "fail"]


class Check(NamedTuple):
    """A line of the report.

    Attributes:
        grade: ok; note: it works, with less than it could; fail: it does not, or not for long.
        subject: What was looked at.
        text: What was seen, and what to do.
    """

    grade: Grade
    subject: str
    text: str

    def __str__(self) -> str:
        return f"{self.grade:<5} {self.subject:<12} {self.text}"


def main(arguments: Sequence[str], environment: Mapping[str, str]) -> int:
    """Prints the report; returns the exit status (1: something fails; 2: wrong arguments or settings).

    Args:
        arguments: Those after `teletape doctor`: `--server`, `--pid`, and the flags of `teletape serve`.
        environment: Has the settings that no flag names.
    """
    parser = argparse.ArgumentParser(
        "teletape doctor",
        description="Looks at whether this box can run a server; `python -m teletape doctor` is for programs.",
        epilog="All flags of `teletape serve` are taken too.",
        allow_abbrev=False,
    )
    parser.add_argument("--server", action="store_true", required=True, help="look at this box")
    parser.add_argument("--pid", type=int, help="of a server that runs: look at its limits and control groups")
    own, rest = parser.parse_known_args(arguments)
    try:
        settings = Settings.load(rest, environment, prog="teletape doctor --server")
    except SettingsError as error:
        sys.stderr.write(f"teletape: {error}\n")
        return 2
    failures = 0
    for line in checks(settings, own.pid):
        sys.stdout.write(f"{line}\n")
        sys.stdout.flush()
        failures += line.grade == "fail"
    return 1 if failures else 0


def checks(settings: Settings, pid: int | None = None) -> Iterator[Check]:
    """Yields the lines of the report.

    Args:
        settings: Of the server.
        pid: Of its process; None: it would be started as this one was.
    """
    process = Path("/proc") / ("self" if pid is None else str(pid))
    yield _descriptors(settings, process)
    yield _groups(settings, process)
    yield from _disk(settings)
    yield _memory(settings)
    yield _clock()
    yield from _certificate(settings)
    yield from _devices(settings)
    yield _plans()


def _descriptors(settings: Settings, process: Path) -> Check:
    try:
        most = most_files(process)
    except OSError as error:
        return Check("fail", "descriptors", f"{process} cannot be read ({error.strerror}): does that process run?")
    sessions = settings.sessions + settings.runs
    needed = settings.connections + FILES_OF_SESSION * sessions + _OWN_FILES
    text = f"the server may open {most:,} files; {settings.connections:,} connections and {sessions} processes"
    if most >= 2 * settings.connections and most >= needed:
        return Check("ok", "descriptors", f"{text} take {needed:,} at most")
    least = max(needed, 2 * settings.connections)
    return Check(
        "fail", "descriptors", f"{text} need {least:,}: set LimitNOFILE={least} in the unit, or ulimit -n {least}"
    )


def _groups(settings: Settings, process: Path) -> Check:
    if settings.shares == "off":
        return Check("note", "shares", "--shares off: a key with many sessions gets more of the CPU than one with few")
    why = obstacle(settings.worker_user, process)
    if why and settings.shares == "slices":
        return Check("fail", "shares", f"--shares slices is not possible: {why}")
    otherwise = f"a key with many sessions gets more of the CPU than one with few, since {why}" if why else _SLICES
    advice = "run the server by examples/teletape.service, or with Delegate=cpu in a unit of your own"
    try:
        tree = own_tree(process)
    except (OSError, SharesError) as error:
        return Check(_without_groups(settings), "shares", f"no control groups ({error}): {otherwise}; or {advice}")
    if tree.is_second and is_delegated(tree.folder):
        return Check("ok", "shares", f"systemd has given the server its own control groups, {tree.folder}")
    folder = tree.folder if tree.is_second else tree.folder.parent
    if os.access(folder, os.W_OK):
        if settings.shares == "groups":
            return Check("ok", "shares", f"control groups are made in {folder}")
        way = f"control groups can be made in {folder}, by --shares groups"
        return Check("note", "shares", f"{otherwise}; {way}, or {advice}")
    text = f"no control groups can be made in {folder}: {otherwise}; or {advice}"
    return Check(_without_groups(settings), "shares", text)


def _without_groups(settings: Settings) -> Grade:
    return "fail" if settings.shares == "groups" else "note"


def _disk(settings: Settings) -> Iterator[Check]:
    if settings.data_dir is None:
        yield Check("note", "disk", "there is no folder for data (--data-dir): sessions end with the server")
        return
    try:
        seconds = _sync_seconds(settings.data_dir)
        usage = shutil.disk_usage(settings.data_dir)
    except OSError as error:
        yield Check("fail", "disk", f"nothing can be written to {settings.data_dir}: {error.strerror or error}")
        return
    median, worst = statistics.median(seconds), max(seconds)
    text = f"a record is on the disk in {1e3 * median:.1f} ms, at worst {1e3 * worst:.0f} ms ({_SYNCS} times fdatasync)"
    if median < _SLOW_SYNC:
        yield Check("ok", "disk", text)
    else:
        grade: Grade = "fail" if settings.default_durability == "journal-sync" else "note"
        yield Check(grade, "disk", f"{text}: each answer of journal-sync waits for that; take another disk, or journal")
    free, needed = usage.free, 2 * settings.memory_limit
    text = f"{_gib(free)} of {_gib(usage.total)} are free in {settings.data_dir}"
    if free < needed:
        text += f": the base of the largest session takes {_gib(settings.memory_limit)} twice for a moment; free some"
    yield Check("ok" if free >= needed else "fail", "disk space", text)


def _sync_seconds(folder: str) -> list[float]:
    """Returns how long each of some small writes took to be on the disk.

    Raises:
        OSError: The folder is not there, or cannot be written to.
    """
    seconds, record = [], os.urandom(4096)
    with tempfile.TemporaryFile(dir=folder, buffering=0) as file:
        for _ in range(_SYNCS):
            began = time.perf_counter()
            file.write(record)
            os.fdatasync(file.fileno())
            seconds.append(time.perf_counter() - began)
    return seconds


def _memory(settings: Settings) -> Check:
    there, free = machine_memory(), free_memory()
    count = settings.sessions + settings.runs
    text = (
        f"{_gib(there)}, of which {_gib(free)} are free; {count} processes of {_gib(settings.memory_limit)} each and "
        f"bodies of {_gib(settings.bodies)} may take {_gib(settings.most_memory)}"
    )
    if settings.memory_limit + settings.bodies + LEAST_FREE > there:
        return Check("fail", "memory", f"{text}: not even one full session fits; lower --memory-limit or --bodies")
    if settings.most_memory > there:
        return Check("note", "memory", f"{text}: if many are full at once, some are parked, and others get no more")
    return Check("ok", "memory", text)


def _clock() -> Check:
    state = synchronised()
    if state is None:
        return Check("note", "clock", "the kernel does not say whether the clock is set by a time server")
    is_set, error = state
    if not is_set:
        text = (
            "no time server sets the clock: certificates, ends of keys and budgets go wrong with it; start chrony or "
        )
        return Check("note", "clock", f"{text}systemd-timesyncd")
    text = f"a time server sets the clock, which is wrong by {error:.3f} s at most"
    return Check("ok" if error < _WRONG_CLOCK else "note", "clock", text)


def _certificate(settings: Settings) -> Iterator[Check]:
    if settings.tls_certificate is None:
        if settings.host not in ("127.0.0.1", "::1", "localhost") and settings.unix is None:
            text = f"connections to {settings.host} are not encrypted: name a certificate, or let a proxy do it"
            yield Check("note", "tls", text)
        return
    try:
        check(settings)
        days = days_left(settings.tls_certificate, settings.tls_key)
    except (SettingsError, OSError) as error:
        yield Check("fail", "tls", str(error))
        return
    if days <= 0:
        yield Check(
            "fail", "tls", f"the certificate {settings.tls_certificate} has ended, or is not valid yet: renew it"
        )
    else:
        grade: Grade = "ok" if days > _RENEWAL_DAYS else "note"
        late = "" if days > _RENEWAL_DAYS else ": renew it, or look at why that has not happened"
        yield Check(grade, "tls", f"the certificate {settings.tls_certificate} ends in {days:.0f} days{late}")


def _devices(settings: Settings) -> Iterator[Check]:
    gpus = [facts for facts in arrays.devices() if facts.device != "cpu"]
    usable = [facts for facts in gpus if not facts.unusable]
    for facts in usable:
        memory = "" if facts.memory_bytes is None else f", {_gib(facts.memory_bytes)}"
        yield Check("ok", facts.device, f"{facts.name}{memory}, driver {facts.driver}, CUDA {facts.cuda}")
    wants = settings.device.startswith("gpu")
    if wants and not any(settings.device in ("gpu", facts.device) for facts in usable):
        why = next((facts.unusable for facts in gpus if facts.unusable), "this machine has none of that name")
        yield Check("fail", "gpu", f"--device {settings.device}: {why}")
    elif not usable:
        why = next((facts.unusable for facts in gpus if facts.unusable), "there is none")
        yield Check("note", "gpu", f"sessions compute on the CPU alone: {why}")


def _plans() -> Check:
    if WHY_NOT:
        return Check("note", "plans", f"functions run step by step, several times slower: {WHY_NOT}")
    return Check("ok", "plans", "functions are compiled")


def _gib(count: float) -> str:
    return f"{count / (1 << 30):.3g} GiB"
