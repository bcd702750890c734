"""What a session must have: each client's own account of what was acknowledged, and what a power cut may have taken."""

from collections.abc import Sequence
from typing import Final

_FACTOR: Final = 31
_MODULUS: Final = (1 << 31) - 1


class Violation(AssertionError):
    """Raised when something acknowledged is lost, done twice, or not as it was."""


def fold(values: Sequence[int]) -> int:
    """Returns a number that depends on all values and their order."""
    total = 0
    for value in values:
        total = (total * _FACTOR + value) % _MODULUS
    return total


FACTOR, MODULUS = _FACTOR, _MODULUS


class Account:
    """The additions of one client to a variable that nothing else changes.

    Args:
        name: Of whom and of what, for messages.
        is_synced: Whether a power cut takes nothing of it.

    Attributes:
        values: What was added and acknowledged, in order.
        times: When each was acknowledged.
        is_doubtful: Whether a power cut may have taken some of them.
        cuts: How many power cuts may have taken some.
        seen: So many additions somebody has seen since the last of these.
    """

    def __init__(self, name: str, *, is_synced: bool) -> None:
        self.name, self.is_synced = name, is_synced
        self.values: list[int] = []
        self.times: list[float] = []
        self.is_doubtful, self.cuts, self.seen = False, 0, 0
        self._floor = 0  # the least number of those before the power cut that are there
        self._after = 0  # how many were acknowledged after it

    @property
    def least(self) -> int:
        """The least number of additions that there are."""
        return self._floor + self._after if self.is_doubtful else len(self.values)

    def begin_doubt(self, before: float) -> None:
        """Notes a power cut.

        Args:
            before: What was acknowledged before that time is on the disk.
        """
        if self.is_synced:
            return
        safe = sum(time < before for time in self.times)
        if self.is_doubtful:
            later = sum(time < before for time in self.times[len(self.times) - self._after :])
            safe = min(self._floor + later, safe)
        self._floor, self._after = safe, 0
        self.is_doubtful, self.seen = True, 0
        self.cuts += 1

    def acknowledge(self, value: int, now: float, cuts: int, state: tuple[int, int | None] | None = None) -> None:
        """Notes that an addition was answered.

        Args:
            value: What was added.
            now: Seconds.
            cuts: So many power cuts there had been when it was first sent.
            state: The number of additions, and what `fold` gives, right after it.
        """
        is_certain = cuts == self.cuts  # else the answer may be from before the power cut
        if state is not None and is_certain:
            self._settle((state[0] - 1, None), f"the answer to addition {value} says that it was number {state[0]}")
        self.values.append(value)
        self.times.append(now)
        self._after += self.is_doubtful and is_certain
        if state is not None and is_certain:
            self.see(state, may_be_more=False)

    def find(self, state: tuple[int, int | None], cuts: int) -> None:
        """Compares with what is there, when nothing is under way; `cuts`: as of `acknowledge`."""
        if cuts == self.cuts:
            self._settle(state, f"there are {state[0]} additions")
            self.see(state, may_be_more=False)

    def see(self, state: tuple[int, int | None], *, may_be_more: bool, least: int | None = None) -> None:
        """Compares with what a client has read, perhaps while an addition is under way.

        Args:
            state: The number of additions, and what `fold` gives; None: it was not read.
            may_be_more: Whether an addition may be there that is not acknowledged.
            least: So many had been acknowledged or seen when the reading began; None: it began and ended now.
        """
        number, folded = state
        least = self.seen if least is None else least
        if number < least:
            raise Violation(f"{self.name}: {number} additions are there, after {least} were acknowledged or seen")
        if number > len(self.values) + may_be_more:
            raise Violation(f"{self.name}: {number} additions are there, {len(self.values)} were acknowledged")
        self.seen = max(self.seen, number)
        if folded is not None and number <= len(self.values) and folded != fold(self.values[:number]):
            raise Violation(f"{self.name}: other additions than the first {number} that were acknowledged")

    def _settle(self, state: tuple[int, int | None], what: str) -> None:
        number, folded = state
        if not self.least <= number <= len(self.values):
            doubt = f", {self.least} of them surely on the disk" if self.is_doubtful else ""
            raise Violation(f"{self.name}: {what}, and {len(self.values)} were acknowledged before{doubt}")
        if self.is_doubtful:
            before, after = number - self._after, len(self.values) - self._after
            if 0 < before < after and folded is not None and folded != fold(self.values[:before]):
                before -= 1  # the last one before the power cut was sent again after it
                after -= 1
            self.values[before:after], self.times[before:after] = [], []
        self.is_doubtful, self._after = False, 0
