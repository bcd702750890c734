"""How often an address has sent wrong keys: beyond some tries a minute, a key that is new there is not looked at."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from typing import Final

_MOST: Final = 20  # wrong keys of an address in the time below
_SECONDS: Final = 60.0
_MOST_ADDRESSES: Final = 10_000  # that are remembered, of wrong keys and of right ones


class WrongKeys:
    """The wrong keys of each address, and the right ones, which still work there.

    Args:
        clock: Returns seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._tries: dict[str, deque[float]] = {}
        self._right: set[tuple[str, str]] = set()

    def note_right(self, address: str, key: str) -> None:
        """Notes that a right key, of which this is the id, came from an address."""
        if len(self._right) >= _MOST_ADDRESSES:
            self._right.clear()
        self._right.add((address, key))

    def note_wrong(self, address: str) -> None:
        """Notes that a wrong key came from an address."""
        if address not in self._tries and len(self._tries) >= _MOST_ADDRESSES:
            del self._tries[next(iter(self._tries))]
        self._tries.setdefault(address, deque(maxlen=_MOST)).append(self._clock())

    def seconds(self, address: str) -> float:
        """Returns for how long no key that is new at an address is looked at; 0: it is looked at now."""
        tries = self._tries.get(address)
        if tries is None or len(tries) < _MOST:
            return 0.0
        left = tries[0] + _SECONDS - self._clock()
        if left <= 0:
            del self._tries[address]
        return max(left, 0.0)

    def is_known(self, address: str, key: str) -> bool:
        """Returns whether a right key of that id came from an address before."""
        return (address, key) in self._right
