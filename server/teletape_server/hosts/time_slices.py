"""Time slices: keys share the CPU by their rights where the server may make no control groups, as in most containers.

The kernel says of each process for how long it has computed, and for how long it could have and did not get a
processor. While keys want more than there is, as many processes go on as there are processors for: first of the keys
that have had least for their rights. The others are stopped (SIGSTOP) for some hundredths of a second, in turn. A key
that is alone may have twice as many processes ready as there are processors: another one that comes finds no queue of
a hundred then. Nothing is stopped as long as there is enough for all, so that sharing costs nothing then.

If the server ends first, the kernel sends SIGCONT to the processes that are stopped: see `confine`.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import re
import signal
import time
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Final, NamedTuple

from teletape_server.hosts.shares import Shares, SharesError, cores
from teletape_server.ipc.confinement import User
from teletape_server.ipc.rights import Rights

_SLICE_SECONDS: Final = 0.02  # for which a process computes, or is stopped
_LOOK_SECONDS: Final = 0.0002  # between two slices, for each process that computes
_FEW: Final = 0.001  # seconds in one: who had no more, and waited for no more, does not compute
_WAITED: Final = 0.05  # seconds for which processes have waited in one, from which on there is too little for all
_IDLE_SLICES: Final = 100  # in which nothing was stopped, after which slices end
_ALONE: Final = 2.0  # times the processors, which a key that is alone may fill
_ALL: Final = 0.8  # of its right: a key that wants that wants all of it, since what processes wait is seen late
_SMOOTH: Final = 0.5  # the part of the last look in what a process is taken to want
_MOST_AHEAD: Final = 4.0  # slices of a processor that a key has to wait for, since it has had more than another
_FAR: Final = 2.0  # of these, from which on it has no more than its part, even if there is room
_CONTENTION: Final = 0.5  # processes that wait at any time: more of them do only if there is too little for all
_MORE: Final = 2.0  # times what was used may be filled then: programs outside would get more and more otherwise
_LEARNS: Final = 0.2  # the part of the last look in what is known of the processors

_MAY_SIGNAL: Final = 5  # the number of the capability CAP_KILL
_OWN: Final = Path("/proc/self")

log = logging.getLogger("teletape")


class Look(NamedTuple):
    """What the kernel says of a process.

    Attributes:
        used: Seconds that it has computed.
        waited: Seconds for which it could have, and got no processor.
    """

    used: float
    waited: float


class Slices:
    """Chooses the processes that are stopped; a pure function of what was seen, and of what it chose before.

    Args:
        rights: Of the keys.
        cores: How many processors there are.

    Attributes:
        stopped: The processes that are stopped until the next choice.
    """

    def __init__(self, rights: Rights, cores: int) -> None:
        self._rights, self._cores = rights, cores
        self.stopped: frozenset[int] = frozenset()
        self._wants: dict[int, float] = {}  # processors that each process would use
        self._ran: dict[int, int] = {}  # the slice that each process had last
        self._ahead: dict[str, float] = {}  # seconds of a processor that keys had more, for their rights, than the last
        self._room = float(cores)
        self._slice = 0

    def choose(self, owners: Mapping[int, str], looks: Mapping[int, Look], seconds: float) -> None:
        """Chooses what is stopped in the next slice.

        Args:
            owners: The key of each process that computes.
            looks: What each process has had since the last choice.
            seconds: Since then.
        """
        self._slice += 1
        self._ran = {pid: ran for pid, ran in self._ran.items() if pid in owners}
        self._wants = {pid: wants for pid, wants in self._wants.items() if pid in owners}
        for pid in owners.keys() - self.stopped:
            now = min((looks[pid].used + looks[pid].waited) / seconds, 1.0)
            self._wants[pid] = now * _SMOOTH + self._wants.get(pid, 1.0) * (1 - _SMOOTH)
        used, wanted = dict.fromkeys(owners.values(), 0.0), dict.fromkeys(owners.values(), 0.0)
        for pid, owner in owners.items():
            used[owner] += looks[pid].used
            wanted[owner] += self._wants.get(pid, 1.0)
        self._note_room(sum(used.values()) / seconds, sum(look.waited for look in looks.values()) / seconds)
        room = self._room * (_ALONE if len(wanted) == 1 else 1.0)
        shares = self._rights.shared(wanted, room)
        rights = self._rights.shared(dict.fromkeys(wanted, float("inf")), room)
        lacking = [owner for owner in wanted if wanted[owner] > min(shares[owner], _ALL * rights[owner])]
        fair = self._rights.shared(wanted, sum(used.values()) / seconds)  # of what all keys had together
        more = {owner: self._ahead.get(owner, 0.0) + used[owner] - fair[owner] * seconds for owner in lacking}
        least = min(more.values(), default=0.0)
        self._ahead = {owner: min(had - least, _MOST_AHEAD * seconds) for owner, had in more.items()}
        ahead = {owner: had / seconds for owner, had in self._ahead.items()}
        parts = {owner: shares[owner] - had for owner, had in ahead.items()}
        room -= sum(share for owner, share in shares.items() if owner not in parts)
        pids = {pid: owner for pid, owner in owners.items() if owner in parts}
        self.stopped = frozenset(pids.keys() - self._fitting(pids, parts, ahead, room))
        for pid in owners.keys() - self.stopped:
            self._ran[pid] = self._slice

    def _fitting(
        self, owners: Mapping[int, str], parts: dict[str, float], ahead: Mapping[str, float], room: float
    ) -> set[int]:
        """Returns which processes fit into the room: in turn, and of the key of whose part most is left.

        A key that is far ahead of another has its part only, even if there is room.
        """
        waiting: dict[str, list[int]] = {}
        for pid in sorted(owners, key=lambda pid: self._ran.get(pid, 0), reverse=True):
            waiting.setdefault(owners[pid], []).append(pid)
        fitting: set[int] = set()
        while waiting:
            owner = max(waiting, key=parts.__getitem__)
            pid = waiting[owner].pop()
            wants = self._wants.get(pid, 1.0)
            if fitting and wants / 2 > room:  # one has a turn in any case
                break
            if ahead[owner] <= _FAR or wants / 2 <= parts[owner]:
                fitting.add(pid)
                room -= wants
                parts[owner] -= wants
            else:
                waiting[owner] = []
            if not waiting[owner]:
                del waiting[owner]
        return fitting

    def _note_room(self, used: float, waited: float) -> None:
        """Notes how many processors there are for all: what was used if processes waited, since others compute too."""
        room = used * _MORE if waited > _CONTENTION else self._cores
        self._room += _LEARNS * (min(room, self._cores) - self._room)


def obstacle(user: User | None, facts: Path = _OWN) -> str:
    """Returns why a server may not stop the processes of its sessions; empty: it may.

    Args:
        user: That they run as; None: as the server does.
        facts: The folder with what the kernel says of the server's process.
    """
    if user is None:
        return ""
    with contextlib.suppress(OSError):
        match = re.search(r"^CapEff:\s+([0-9a-f]+)$", (facts / "status").read_text(), re.M)
        if match and not int(match[1], 16) >> _MAY_SIGNAL & 1:
            return f"the server may not stop processes of user {user.uid} (--worker-user) without CAP_KILL"
    return ""


class TimeSlices(Shares):
    """Stops processes of keys that would use more than they have a right to.

    Args:
        rights: Of the keys.
        user: That the processes run as; None: as this one does.

    Raises:
        SharesError: The server may not stop them, or the kernel does not say for how long processes wait.
    """

    by_right = True
    way = "by time slices"

    def __init__(self, rights: Rights, user: User | None = None) -> None:
        super().__init__(rights)
        if why := obstacle(user):
            raise SharesError(why)
        self._slices = Slices(rights, cores())
        self._processes: dict[int, _Process] = {}
        self._busy: dict[int, str] = {}  # the keys of the processes that have computed in the last second
        self._task: asyncio.Task[None] | None = None
        try:
            _Process(os.getpid(), "").close()
        except OSError as error:
            raise SharesError(f"the kernel does not say how long processes wait ({error.strerror})") from error

    def enter(self, pid: int, owner: str) -> None:
        """Notes that a process computes for a key from now on."""
        with contextlib.suppress(OSError):  # it has ended, or there are too many open files: it is never stopped
            self._processes[pid] = _Process(pid, owner)

    def leave(self, pid: int, owner: str) -> None:
        """Notes that a process of a key has ended."""
        if (process := self._processes.pop(pid, None)) is not None:
            process.close()
        self._busy.pop(pid, None)

    def balance(self, busy: Mapping[str, int]) -> None:
        """Sees which processes compute, and begins to choose if there is too little for all; see `Shares`."""
        waited = 0.0
        for pid, process in self._processes.items():
            look = process.since()
            if look.used + look.waited > _FEW or pid in self._slices.stopped:
                self._busy[pid] = process.owner
                waited += look.waited
            else:
                self._busy.pop(pid, None)
        if self._task is None and waited > _WAITED:
            self._task = asyncio.get_running_loop().create_task(self._share())

    async def _share(self) -> None:
        """Stops processes, others in each slice, until nothing had to be stopped for a while."""
        idle = 0
        began = time.monotonic()
        before = {pid: process.look() for pid, process in self._processes.items()}
        try:
            while idle < _IDLE_SLICES:
                await asyncio.sleep(max(_SLICE_SECONDS, len(self._busy) * _LOOK_SECONDS))
                owners = {pid: owner for pid, owner in self._busy.items() if pid in self._processes}
                looks = {pid: self._processes[pid].look() for pid in owners}
                since = {pid: _difference(look, before.get(pid, look)) for pid, look in looks.items()}
                now = time.monotonic()
                stopped = self._slices.stopped
                self._slices.choose(owners, since, now - began)
                before, began = looks, now
                self._send(signal.SIGCONT, stopped - self._slices.stopped)
                self._send(signal.SIGSTOP, self._slices.stopped - stopped)
                idle = 0 if self._slices.stopped else idle + 1
        finally:
            self._task = None
            self._send(signal.SIGCONT, self._slices.stopped)
            self._slices = Slices(self.rights, cores())

    def _send(self, number: signal.Signals, pids: Collection[int]) -> None:
        for pid in pids:
            if (process := self._processes.get(pid)) is not None:
                process.send(number)

    def release(self) -> None:
        """Lets all processes compute; see `Shares`."""
        if self._task is not None:
            self._task.cancel()


class _Process:
    """A process, for as long as it is open also after its end: its number is not used again meanwhile.

    Args:
        pid: Its number.
        owner: Its key.

    Raises:
        OSError: It has ended, there are too many open files, or the kernel has no such facts.
    """

    def __init__(self, pid: int, owner: str) -> None:
        self.owner = owner
        self._file = os.open(f"/proc/{pid}/schedstat", os.O_RDONLY | os.O_CLOEXEC)
        try:
            self._process = os.pidfd_open(pid)
        except OSError:
            os.close(self._file)
            raise
        self._before = self.look()

    def look(self) -> Look:
        """Returns what its thread that computes has had since its start."""
        try:
            used, waited, _ = os.pread(self._file, 64, 0).split()
        except (OSError, ValueError):  # it has ended
            return Look(0.0, 0.0)
        return Look(int(used) / 1e9, int(waited) / 1e9)

    def since(self) -> Look:
        """Returns what it has had since the last call."""
        before, self._before = self._before, self.look()
        return _difference(self._before, before)

    def send(self, number: signal.Signals) -> None:
        """Sends a signal; nothing happens if it has ended."""
        with contextlib.suppress(OSError):
            signal.pidfd_send_signal(self._process, number)

    def close(self) -> None:
        """Frees what it takes."""
        os.close(self._file)
        os.close(self._process)


def _difference(now: Look, before: Look) -> Look:
    return Look(max(now.used - before.used, 0.0), max(now.waited - before.waited, 0.0))
