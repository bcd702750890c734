"""How keys share the CPU: as the kernel lets their processes, or by their rights, with control groups or time slices.

Left alone the kernel is fair to processes, and a key with a hundred sessions gets a hundred times what a key with one
gets.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import ClassVar

from teletape_server.ipc.rights import Rights


def cores() -> int:
    """Returns how many processors there are for this process and its children."""
    return len(os.sched_getaffinity(0))


class SharesError(Exception):
    """Keys cannot share in this way; the text says why."""


class Shares:
    """Keys share the CPU as their processes do.

    Args:
        rights: Of the keys.
    """

    by_right: ClassVar = False  #: Whether it is by their rights.
    way: ClassVar = "as their processes do"  #: In words.

    def __init__(self, rights: Rights | None = None) -> None:
        self.rights = rights or Rights()

    def enter(self, pid: int, owner: str) -> None:
        """Notes that a process computes for a key from now on."""

    def leave(self, pid: int, owner: str) -> None:
        """Notes that a process of a key has ended."""

    def balance(self, busy: Mapping[str, int]) -> None:
        """Looks at what the keys do; called once a second.

        Args:
            busy: How many processes of each key compute now.
        """

    def parts(self, busy: Mapping[str, int]) -> dict[str, float]:
        """Returns the part of the processors that each key gets if all of its busy processes compute on.

        Args:
            busy: How many processes of each key compute.

        Returns:
            The parts, which sum up to 1.
        """
        whole = sum(busy.values())
        if self.by_right:
            whole = min(whole, cores())
            return {owner: share / whole for owner, share in self.rights.shared(busy, whole).items() if share}
        return {owner: count / whole for owner, count in busy.items() if count}

    def release(self) -> None:
        """Lets all processes compute, since they are about to end."""

    def close(self) -> None:
        """Ends it with the server."""
