"""Requests a second: a second's worth may come at once, and then each has to wait for its part of a second."""

from __future__ import annotations


class Rate:
    """How many requests an account has left now.

    Args:
        now: Seconds of a clock that is never set.
    """

    def __init__(self, now: float) -> None:
        self._left, self._at = float("inf"), now

    def take(self, limit: float, now: float) -> float:
        """Takes a request; returns the seconds until there is one, if there is none now, or 0.

        Args:
            limit: Requests a second.
            now: Seconds of the same clock.
        """
        most = max(limit, 1.0)
        self._left, self._at = min(self._left + (now - self._at) * limit, most), now
        if self._left < 1.0:
            return (1.0 - self._left) / limit
        self._left -= 1.0
        return 0.0
