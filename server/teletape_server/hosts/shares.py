"""Keys share the CPU by weight: the kernel gives the processes of each key their part, however many they are.

Left alone it is fair to processes, and a key with a hundred sessions gets a hundred times what a key with one gets. So
the processes of each key are a control group, whose weight is the key's, and the server and all else is in one that
comes first. What a key does not use the others do. No request costs anything: the kernel alone decides, also among
processes that answer their callers themselves.

The kernel shares each core by itself, so that a key with one busy process would get two thirds of a core where a whole
one of two is its part. A key with no more busy processes than its part has cores comes before the others therefore.

Groups need a part of the system's tree that the server may change, as systemd gives to a unit with `Delegate=cpu`.
"""

from __future__ import annotations

import contextlib
import itertools
import logging
import os
from collections import Counter, deque
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import quote

_SERVER_WEIGHT: Final = 20.0  # of the server and its forkserver: all keys wait for what they do
_FIRST: Final = 10.0  # times its weight has a key that cannot take more than its part
_LOOKS: Final = 3  # of `balance`, the most of which count
_LARGEST: Final = 100.0  # what a group's weight may be in both versions
_MEMBERS: Final = "cgroup.procs"  # the file with the ids of a group's processes
_DELEGATED: Final = "user.delegate"  # the attribute by which systemd marks a group that is the unit's own
_OWN: Final = Path("/proc/self")

log = logging.getLogger("teletape")


class SharesError(Exception):
    """There can be no groups; the text says why."""


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


class Shares:
    """The groups of a server's keys.

    Args:
        tree: Where they are made; None: there are none.
        weights: Of keys, by name; those that are not named have 1.
    """

    def __init__(self, tree: Tree | None, weights: Mapping[str, float]) -> None:
        self._tree, self._weights = tree, weights
        self._members: Counter[str] = Counter()
        self._busy: deque[Mapping[str, int]] = deque(maxlen=_LOOKS)
        self._written: dict[str, float] = {}  # weights of the groups of keys
        if tree is not None:
            self._begin(tree)

    def _begin(self, tree: Tree) -> None:
        """Makes the server's group.

        Raises:
            SharesError: The server may not.
        """
        try:
            server = self._group(tree, "server", _SERVER_WEIGHT)
            for pid in _read(tree.folder / _MEMBERS).split() if tree.is_second else map(str, _family()):
                with contextlib.suppress(ProcessLookupError):
                    (server / _MEMBERS).write_text(pid)
            if tree.is_second:
                (tree.folder / "cgroup.subtree_control").write_text("+cpu")
                self._group(tree, "server", _SERVER_WEIGHT)  # its weight can be written from now on
            else:
                self._group(tree, ".", _SERVER_WEIGHT)  # among the system's other processes
        except OSError as error:
            raise SharesError(f"{tree.folder} cannot be changed ({error.strerror})") from error

    def enter(self, pid: int, owner: str) -> None:
        """Puts a process into the group of a key; if that fails, it shares as the system lets it.

        Args:
            pid: The process.
            owner: The key's name.
        """
        if self._tree is None:
            return
        self._members[owner] += 1
        try:
            self._written[owner] = weight = self.weight(owner)
            group = self._group(self._tree, _name(owner), weight)
            (group / _MEMBERS).write_text(str(pid))
        except OSError as error:
            log.warning("process %d has no part of the CPU of its own: %s", pid, error)

    def balance(self, busy: Mapping[str, int]) -> None:
        """Sets the weights anew; called at regular times.

        Args:
            busy: How many processes of each key compute now.
        """
        if self._tree is None:
            return
        self._busy.append(busy)
        most = {owner: max(look.get(owner, 0) for look in self._busy) for owner in self._written}
        cores = len(os.sched_getaffinity(0)) / (sum(self.weight(owner) for owner in most if most[owner]) or 1.0)
        for owner, count in most.items():
            own = self.weight(owner)
            weight = min(own * _FIRST, _LARGEST) if count <= cores * own else own
            if weight != self._written[owner]:
                self._written[owner] = weight
                with contextlib.suppress(OSError):
                    self._group(self._tree, _name(owner), weight)

    def parts(self, busy: Mapping[str, int]) -> dict[str, float]:
        """Returns the part of the processors that each key gets if all of its busy processes compute on.

        Args:
            busy: How many processes of each key compute.

        Returns:
            The parts, which sum up to 1: by weight, or without groups by the number of processes.
        """
        rights = {owner: count if self._tree is None else self.weight(owner) for owner, count in busy.items() if count}
        whole = sum(rights.values())
        return {owner: right / whole for owner, right in rights.items()}

    def weight(self, owner: str) -> float:
        """The part that a key gets, relative to those of others."""
        return self._weights.get(owner, 1.0)

    def leave(self, owner: str) -> None:
        """Notes that a process of a key has ended; the group ends with the last one."""
        if self._tree is None:
            return
        self._members[owner] -= 1
        if not self._members[owner]:
            del self._members[owner], self._written[owner]
            with contextlib.suppress(OSError):
                (self._tree.folder / _name(owner)).rmdir()

    def close(self) -> None:
        """Removes the groups, which are empty but for the server's; version 2 leaves that to systemd."""
        if self._tree is None or self._tree.is_second:
            return
        with contextlib.suppress(OSError):
            for pid in _family():
                (self._tree.folder.parent / _MEMBERS).write_text(str(pid))
        _remove(self._tree.folder)
        self._tree = None

    @staticmethod
    def _group(tree: Tree, name: str, weight: float) -> Path:
        """Returns a group with a weight, which is made if there is none."""
        group = tree.folder / name
        group.mkdir(parents=True, exist_ok=True)
        if not tree.is_second or (group / tree.file).exists():
            (group / tree.file).write_text(str(round(weight * tree.unit)))
        return group


def opened(choice: str, weights: Mapping[str, float]) -> Shares:
    """Returns the groups of a server that begins.

    Args:
        choice: on; off; auto: where systemd has given the server a part of the tree.
        weights: See `Shares`.

    Raises:
        SharesError: They are wanted, and cannot be made.
    """
    if choice == "off":
        return Shares(None, weights)
    try:
        tree = own_tree()
        if choice == "auto" and not (tree.is_second and is_delegated(tree.folder)):
            raise SharesError("systemd has not given the server control groups (Delegate=cpu)")
        if not tree.is_second:
            for left in tree.folder.parent.glob("teletape-*"):  # of servers that were killed
                _remove(left)
        return Shares(tree, weights)
    except SharesError as error:
        if choice == "on":
            raise
        log.info("keys share the CPU as their processes do: %s", error)
        return Shares(None, weights)


def _name(owner: str) -> str:
    return f"key-{quote(owner, safe='')}"


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
    """Removes groups that are empty."""
    with contextlib.suppress(OSError):
        for group in [*folder.iterdir()]:
            if group.is_dir():
                with contextlib.suppress(OSError):
                    group.rmdir()
        folder.rmdir()


def _read(file: Path) -> str:
    try:
        return file.read_text()
    except OSError:
        return ""
