"""What of a machine's memory is promised to sessions: never more than it has.

A session has a reservation, below which it allocates without asking. What it uses of that is missing from the free
memory already; what it does not use yet is promised. Free memory less all promises is what can be reserved further.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Final

_STEP_BYTES: Final = 64 << 20  # that a reservation is extended by at the least, if there is room: so it is seldom
_STEP_PART: Final = 4  # likewise, the part of what is reserved already


class Reservation:
    """What a session may use.

    Args:
        account: For which it counts.
        reserved: Bytes.
        start_bytes: Bytes that its process takes besides, until it has started.

    Attributes:
        account, reserved, start_bytes: See above.
        look: Looks at its process: returns the bytes that it uses of its reservation, those that are missing from the
            machine's free memory; and the bytes that it may use as far as it knows, since it gives back what it does
            not need.
        give_back: Has its process give that back soon, if it runs nothing; returns whether there is much of it.
    """

    def __init__(self, account: str, reserved: int, start_bytes: int = 0) -> None:
        self.account, self.reserved, self.start_bytes = account, reserved, start_bytes
        self.look: Callable[[], tuple[int, int]] = lambda: (0, self.reserved)
        self.give_back: Callable[[], bool] = lambda: False

    @property
    def promised(self) -> int:
        """Bytes that it does not use yet, at the most."""
        return self.start_bytes + self.reserved

    def unused(self) -> int:
        """Returns the bytes that it does not use yet, after what its process has given back."""
        in_use, reserved = self.look()
        self.reserved = min(self.reserved, reserved)
        return self.start_bytes + max(self.reserved - in_use, 0)


class Ledger:
    """The reservations of all sessions.

    Args:
        free: Returns the bytes of memory that processes can still take.
        least: Bytes of them that are never promised.

    Attributes:
        coming: Bytes of request bodies that are admitted, and of which nothing may have come yet.
    """

    def __init__(self, free: Callable[[], int], least: int) -> None:
        self.free, self._least = free, least
        self._reservations: set[Reservation] = set()
        self.coming = 0

    def fits(self, nbytes: int) -> bool:
        """Returns whether that many bytes more can be promised."""
        left = self.free() - self._least - self.coming - nbytes
        # To look at processes takes time, and is not needed while there is plenty.
        most = sum([reservation.promised for reservation in self._reservations])
        return left >= most or left >= self.promised()

    def promised(self) -> int:
        """Returns the bytes that sessions have reserved and do not use yet."""
        return sum([reservation.unused() for reservation in self._reservations])

    def left(self) -> int:
        """Returns the bytes that can be promised now; below 0: something else has taken what was promised."""
        return self.free() - self._least - self.coming - self.promised()

    def reserve(self, account: str, nbytes: int, start_bytes: int) -> Reservation | None:
        """Returns a new reservation, which counts until `release`; None: there is no room. See `Reservation`."""
        if not self.fits(nbytes + start_bytes):
            return None
        reservation = Reservation(account, nbytes, start_bytes)
        self._reservations.add(reservation)
        return reservation

    def extend(self, reservation: Reservation, needed: int, limit: int) -> bool:
        """Has a reservation cover the bytes that a session needs, with some to spare; returns whether it does.

        Args:
            reservation: Of the session.
            needed: Bytes in all.
            limit: Bytes that the session may have, of which nothing beyond is spared.
        """
        if reservation not in self._reservations:
            return False
        reservation.unused()  # what its process has given back is no longer its own
        most = max(needed, reservation.reserved)
        spare = most + max(_STEP_BYTES, most // _STEP_PART)
        for nbytes in (max(min(spare, limit), most), most):
            if self.fits(nbytes - reservation.reserved):
                reservation.reserved = nbytes
                break
        return needed <= reservation.reserved

    def release(self, reservation: Reservation) -> None:
        """Ends a reservation; the second time it does nothing."""
        self._reservations.discard(reservation)

    def reclaim(self) -> bool:
        """Has those give back what they do not use that run nothing; returns whether any begins to."""
        return sum([reservation.give_back() for reservation in self._reservations]) > 0

    def reserved_by(self) -> Counter[str]:
        """Returns the bytes that each account has reserved."""
        total: Counter[str] = Counter()
        for reservation in self._reservations:
            total[reservation.account] += reservation.promised
        return total
