"""Control groups: the kernel gives the processes of each key their part of the CPU, however many they are.

The processes of each key are a control group, whose weight is the key's. That is in the control group of the key's own
group, if that has a part of its own, and else in the one of the rest; the server and all else is in one that comes
first. No request costs anything: the kernel alone decides, also among processes that answer their callers themselves.

The kernel shares each core by itself, so that a key with one busy process would get two thirds of a core where a whole
one of two is its part. A key whose busy processes get all that they want by right comes before the others therefore,
and so does a group of which that is true. Among the others, the weights of keys that compute without a pause are
corrected by what each has had of late.

All this needs a part of the system's tree that the server may change, as systemd gives to a unit with `Delegate=cpu`.
"""

from __future__ import annotations

import contextlib
import itertools
import logging
import os
from collections import Counter, deque
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import quote

from teletape_server.hosts.shares import Shares, SharesError, cores
from teletape_server.ipc.processes import CpuClock
from teletape_server.ipc.rights import Right, Rights

_SERVER_WEIGHT: Final = 20.0  # of the server and its forkserver: all keys wait for what they do
_FIRST: Final = 10.0  # times its weight has a key that gets all that it wants by right
_LOOKS: Final = 3  # of `balance`: a key wants the most of them, and computes without a pause if it is in all
_MOST_CORRECTED: Final = 10.0  # times its weight that a key with too little may get, and the part of it with too much
_AT_ONCE: Final = 1.5  # times what it was that a correction may become in one look, or the part of it
_FADES: Final = 0.8  # the part that what a key has had before a look still counts
_LARGEST: Final = 100.0  # what a control group's weight may be in both versions
_LEAST: Final = 2  # what is written for the smallest weight, in both versions
_REST: Final = "keys"  # the control group with those of keys that are in no group with a part of its own
_MEMBERS: Final = "cgroup.procs"  # the file with the ids of a group's processes
_DELEGATED: Final = "user.delegate"  # the attribute by which systemd marks a group that is the unit's own
_OWN: Final = Path("/proc/self")

log = logging.getLogger("teletape")


class Tree(NamedTuple):
    """A part of the system's tree of control groups.

    Attributes:
        folder: Its root, whose groups the server makes.
        file: In which a group's weight is written.
        unit: What is written for the weight 1.
        is_second: Whether it is of version 2, where a group with groups may have no processes itself.
    """

    folder: Path
    file: str
    unit: int
    is_second: bool


def own_tree(facts: Path = _OWN) -> Tree:
    """Returns the part of the tree that this process is in, in version 2 if that has the CPU, else in version 1.

    Args:
        facts: The folder with what the kernel says of this process.

    Raises:
        SharesError: Neither has it.
    """
    places = [line.split(":", 2) for line in (facts / "cgroup").read_text().splitlines()]
    for line in (facts / "mountinfo").read_text().splitlines():
        before, _, after = line.partition(" - ")
        kind, _, options = after.split(" ", 2)
        root, mounted = before.split(" ")[3:5]
        for _, controllers, place in places:
            folder = Path(mounted) / os.path.relpath(place, root)
            if kind == "cgroup2" and not controllers and "cpu" in _read(folder / "cgroup.controllers").split():
                return Tree(folder, "cpu.weight", 100, is_second=True)
            if kind == "cgroup" and "cpu" in controllers.split(",") and "cpu" in options.split(","):
                return Tree(folder / f"teletape-{os.getpid()}", "cpu.shares", 1024, is_second=False)
    raise SharesError("no tree of control groups that is mounted here has the CPU")


class ControlGroups(Shares):
    """The control groups of a server's keys.

    Args:
        tree: Where they are made.
        rights: Of the keys.

    Raises:
        SharesError: The server may not.
    """

    by_right = True
    way = "by control groups"

    def __init__(self, tree: Tree, rights: Rights) -> None:
        super().__init__(rights)
        self._tree = tree
        self._members: Counter[str] = Counter()
        self._busy: deque[Mapping[str, int]] = deque(maxlen=_LOOKS)
        self._places: dict[str, str] = {}  # the control group of each key, below the tree
        self._written: dict[str, float] = {}  # weights of control groups
        self._clocks: dict[int, tuple[str, CpuClock]] = {}  # the keys of processes, and what they compute
        self._corrections: dict[str, float] = {}  # of the weights of keys that get less than they want
        self._had: dict[str, float] = {}  # what these have had, which fades
        try:
            self._begin()
        except OSError as error:
            raise SharesError(f"{tree.folder} cannot be changed ({error.strerror})") from error

    def _begin(self) -> None:
        """Makes the server's control group."""
        tree = self._tree
        server = self._group("server", _SERVER_WEIGHT)
        for pid in _read(tree.folder / _MEMBERS).split() if tree.is_second else map(str, _family()):
            with contextlib.suppress(ProcessLookupError):
                (server / _MEMBERS).write_text(pid)
        if tree.is_second:
            self._delegate(tree.folder)
            self._group("server", _SERVER_WEIGHT)  # its weight can be written from now on
        else:
            self._group(".", _SERVER_WEIGHT)  # among the system's other processes

    def enter(self, pid: int, owner: str) -> None:
        """Puts a process into the control group of a key; if that fails, it shares as the system lets it."""
        self._members[owner] += 1
        self._clocks[pid] = owner, (clock := CpuClock(pid))
        clock.begin()
        try:
            (self._place(owner) / _MEMBERS).write_text(str(pid))
        except OSError as error:
            log.warning("process %d has no part of the CPU of its own: %s", pid, error)

    def _place(self, owner: str) -> Path:
        """Returns the control group of a key, which is made if there is none."""
        right = self.rights.of(owner)
        outer = _outer(right)
        place = self._places[owner] = f"{outer}/key-{quote(owner, safe='')}"
        if outer not in self._written:
            folder = self._weigh(outer, right.part)
            if self._tree.is_second:
                self._delegate(folder)
        return self._tree.folder / place if place in self._written else self._weigh(place, right.weight)

    def balance(self, busy: Mapping[str, int]) -> None:
        """Moves keys whose group is another one now, and sets the weights anew; see `Shares`."""
        for owner in [*self._places]:
            self._move(owner)
        self._busy.append(busy)
        counts = {owner: [look.get(owner, 0) for look in self._busy] for owner in self._places}
        most = {owner: max(count) for owner, count in counts.items()}
        shares = self.rights.shared(most, cores())
        rights = {owner: self.rights.of(owner) for owner in self._places}
        lacking = {owner for owner in rights if shares[owner] < most[owner]}
        groups = {_outer(rights[owner]) for owner in lacking}
        self._correct({owner: rights[owner] for owner in lacking}, {owner for owner in lacking if min(counts[owner])})
        with contextlib.suppress(OSError):
            for owner, right in rights.items():
                weight = right.weight * self._corrections.get(owner, 1.0)
                self._weigh(self._places[owner], weight, is_first=owner not in lacking)
                self._weigh(_outer(right), right.part, is_first=_outer(right) not in groups)

    def _correct(self, lacking: Mapping[str, Right], steady: Collection[str]) -> None:
        """Corrects the weights of keys by what each has had of late; in each group they keep their sum.

        A key that computes now and then has had little because it wanted little. If its weight were corrected too, it
        would grow until all other weights are the least there are, which corrects nothing.

        Args:
            lacking: The keys that get less than they want.
            steady: Those of them that compute without a pause, whose weights are corrected.
        """
        self._had = {owner: self._had.get(owner, 0.0) * _FADES for owner in lacking}
        self._corrections = {owner: self._corrections.get(owner, 1.0) for owner in lacking}
        for owner, clock in self._clocks.values():
            if owner in lacking:
                self._had[owner] += clock.seconds()
            clock.begin()
        for outer in {_outer(lacking[owner]) for owner in steady}:
            weights = {owner: lacking[owner].weight for owner in steady if _outer(lacking[owner]) == outer}
            whole = sum(weights.values())
            seconds = sum(self._had[owner] for owner in weights) / whole  # for each weight of 1
            corrected = {
                owner: weight * self._corrections[owner] * _within(_AT_ONCE, seconds * weight, self._had[owner])
                for owner, weight in weights.items()
            }
            growth = sum(corrected.values()) / whole
            for owner, weight in weights.items():
                self._corrections[owner] = _within(_MOST_CORRECTED, corrected[owner] / growth, weight)

    def _move(self, owner: str) -> None:
        before = self._places[owner]
        if before.startswith(f"{_outer(self.rights.of(owner))}/"):
            return
        try:
            after = self._place(owner)
            for pid in _read(self._tree.folder / before / _MEMBERS).split():
                with contextlib.suppress(ProcessLookupError):
                    (after / _MEMBERS).write_text(pid)
        except OSError as error:
            log.warning("the processes of %s share as they did before its group changed: %s", owner, error)
        self._remove(before)

    def leave(self, pid: int, owner: str) -> None:
        """Notes that a process of a key has ended; the control group ends with the last one."""
        self._members[owner] -= 1
        self._clocks.pop(pid, None)
        if not self._members[owner]:
            del self._members[owner]
            self._remove(self._places.pop(owner))

    def _remove(self, place: str) -> None:
        """Removes a key's control group, and that of its group with the last key."""
        for name in (place, place.partition("/")[0]):
            with contextlib.suppress(OSError):  # it has others
                (self._tree.folder / name).rmdir()
                self._written.pop(name, None)

    def close(self) -> None:
        """Removes the control groups, which are empty but for the server's; version 2 leaves that to systemd."""
        if self._tree.is_second:
            return
        with contextlib.suppress(OSError):
            for pid in _family():
                (self._tree.folder.parent / _MEMBERS).write_text(str(pid))
        _remove(self._tree.folder)

    def _weigh(self, place: str, weight: float, *, is_first: bool = False) -> Path:
        """Sees that a control group is there, and that it has a weight, which counts more if it comes first."""
        weight = min(weight * _FIRST, _LARGEST) if is_first else weight
        if weight != self._written.get(place):
            group = self._group(place, weight)
            self._written[place] = weight
            return group
        return self._tree.folder / place

    def _group(self, place: str, weight: float) -> Path:
        group = self._tree.folder / place
        group.mkdir(parents=True, exist_ok=True)
        if not self._tree.is_second or (group / self._tree.file).exists():
            (group / self._tree.file).write_text(str(max(round(weight * self._tree.unit), _LEAST)))
        return group

    @staticmethod
    def _delegate(folder: Path) -> None:
        """Lets the control groups below this one have weights."""
        (folder / "cgroup.subtree_control").write_text("+cpu")


def swept(tree: Tree) -> Tree:
    """Returns a tree, from which the control groups of servers that were killed are removed."""
    if not tree.is_second:
        for left in tree.folder.parent.glob("teletape-*"):
            _remove(left)
    return tree


def _within(most: float, number: float, divisor: float = 1.0) -> float:
    """Returns number / divisor, limited to 1 / most to most; of nothing by nothing it is 1."""
    if not divisor:
        return most if number else 1.0
    return min(max(number / divisor, 1 / most), most)


def _outer(right: Right) -> str:
    """Returns the control group in which that of a key is."""
    return f"group-{right.group.removeprefix('@')}" if right.group else _REST


def is_delegated(folder: Path) -> bool:
    """Returns whether systemd has given a group to the unit itself."""
    try:
        return os.getxattr(folder, _DELEGATED) == b"1"
    except OSError:
        return False


def _family() -> Iterator[int]:
    """Yields this process and all that descend from it."""
    waiting = [os.getpid()]
    while waiting:
        pid = waiting.pop()
        yield pid
        with contextlib.suppress(OSError):
            tasks = [*Path(f"/proc/{pid}/task").iterdir()]
            waiting += map(int, itertools.chain(*[_read(task / "children").split() for task in tasks]))


def _remove(folder: Path) -> None:
    """Removes a control group with those in it, if they are empty."""
    with contextlib.suppress(OSError):
        for inner in [*folder.iterdir()]:
            if inner.is_dir():
                _remove(inner)
        folder.rmdir()


def _read(file: Path) -> str:
    try:
        return file.read_text()
    except OSError:
        return ""
