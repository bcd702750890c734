"""Which calls of published functions are computed together, and when: functions of times and counts that callers pass.

Calls with the same key may go together. A process that is free takes what waits, up to as many as the measured model of
a batch's seconds allows: a · n + b for n calls. It waits for more only where that saves more than it costs, and so
never for a single caller: within the time b that a batch costs in itself, fewer than one further call would come.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, Generic, NamedTuple, TypeVar

from teletape_server.handlers.methods import TIME_LIMIT

MOST_CALLS: Final = 256  #: In a batch.
MOST_BYTES: Final = 64 << 20  #: Of the bodies in a batch, if it has several.
MOST_WAIT: Final = 0.002  #: Seconds that a call waits for others while a process is free.
_MOST_SECONDS: Final = 0.1  # that a batch of several calls takes
_SAMPLES: Final = 64  # of the last batches
_LOOK_SECONDS: Final = 0.0003  # after which a free process looks again whether waiting pays
_FIRST_CALLS: Final = 16  # that a batch may have in any case, if it does not take too long
_PROBE_EVERY: Final = 50  # batches: then one is larger than the model allows
_SMOOTHING: Final = 0.1  # of the time between two calls

Item = TypeVar("Item")


class CostModel:
    """Seconds of a batch by its size: a · n + b by least squares over the last batches, neither of them below 0.

    Attributes:
        slope: a: seconds of a call in a batch.
        intercept: b: seconds of a batch in itself.
        largest: The size of the largest of the last batches.
    """

    def __init__(self) -> None:
        self._samples: deque[tuple[int, float]] = deque(maxlen=_SAMPLES)
        self._batches = 0
        self.slope = self.intercept = 0.0
        self.largest = 0

    def note(self, size: int, seconds: float) -> None:
        """Notes what a batch took."""
        self._samples.append((size, seconds))
        self._batches += 1
        count = len(self._samples)
        mean_size = sum(size for size, _ in self._samples) / count
        mean_seconds = sum(seconds for _, seconds in self._samples) / count
        spread = sum((size - mean_size) ** 2 for size, _ in self._samples)
        slope = sum((size - mean_size) * (seconds - mean_seconds) for size, seconds in self._samples)
        slope = max(slope / spread, 0.0) if spread else 0.0
        intercept = mean_seconds - slope * mean_size
        if intercept < 0:  # the line through the origin that fits best
            intercept = 0.0
            squares = sum(size * size for size, _ in self._samples)
            slope = sum(size * seconds for size, seconds in self._samples) / squares
        self.slope, self.intercept = slope, intercept
        self.largest = max(size for size, _ in self._samples)

    def affordable(self) -> int:
        """Returns how many calls a batch may have so that it does not take too long."""
        if not self.slope:
            return MOST_CALLS
        return min(max(int((_MOST_SECONDS - self.intercept) / self.slope), 1), MOST_CALLS)

    def most(self) -> int:
        """Returns how many calls the next batch may have: not too many more than one had; at times beyond the model."""
        is_probe = self._batches % _PROBE_EVERY == _PROBE_EVERY - 1
        affordable = self.affordable() * (2 if is_probe else 1)
        return min(max(2 * self.largest, _FIRST_CALLS), affordable, MOST_CALLS)


class Waiting(NamedTuple, Generic[Item]):
    """A call that waits.

    Attributes:
        item: The call.
        owner: Whose it is.
        length: Bytes of its body.
        since: When it came.
    """

    item: Item
    owner: str
    length: int
    since: float


@dataclass
class _Key(Generic[Item]):
    """The calls with one key.

    Attributes:
        most: How many may go together, whatever the model says.
        owners: What waits of each owner, the oldest first; the owner whose turn it is comes first.
        model: What batches of them take.
        gap: Seconds between two calls, a mean in which the last ones count most.
        came: When the last one came.
    """

    most: int
    owners: OrderedDict[str, deque[Waiting[Item]]] = field(default_factory=OrderedDict)
    model: CostModel = field(default_factory=CostModel)
    gap: float = float("inf")
    came: float = float("-inf")

    @property
    def waiting(self) -> int:
        return sum(map(len, self.owners.values()))

    def oldest(self) -> float:
        return min(calls[0].since for calls in self.owners.values())

    def limit(self) -> int:
        return min(self.most, self.model.most())

    def patience(self, now: float) -> float:
        """Returns seconds after which to look again, since waiting pays; 0: it does not.

        In a further time d come d / gap calls, and each saves the b that a batch of its own would cost; the calls that
        wait lose d each. So it pays while b / gap is more than they are.
        """
        waiting, age = self.waiting, now - self.oldest()
        if waiting >= self.limit() or age >= MOST_WAIT:
            return 0.0
        gap = max(self.gap, now - self.came)
        pays = self.model.intercept > waiting * gap
        return min(_LOOK_SECONDS, MOST_WAIT - age) if pays else 0.0

    def take(self) -> Iterator[Waiting[Item]]:
        """Yields the calls of the next batch: the owners in turn, of each the oldest first."""
        limit, nbytes = self.limit(), 0
        for count in range(limit):
            if not self.owners:
                return
            owner, calls = next(iter(self.owners.items()))
            nbytes += calls[0].length
            if count and nbytes > MOST_BYTES:
                return
            yield calls.popleft()
            self.owners.move_to_end(owner)
            if not calls:
                del self.owners[owner]


class Calls(Generic[Item]):
    """The calls that wait for a process.

    Args:
        most_keys: Keys whose model is kept; the one that came longest ago is forgotten.
    """

    def __init__(self, most_keys: int = 1024) -> None:
        self._keys: OrderedDict[Hashable, _Key[Item]] = OrderedDict()  # the key whose turn it is comes first
        self._of_owner: dict[str, int] = {}
        self._most_keys = most_keys

    def __len__(self) -> int:
        return sum(self._of_owner.values())

    def of(self, owner: str) -> int:
        """Returns how many calls of an owner wait."""
        return self._of_owner.get(owner, 0)

    def add(self, key: Hashable, call: Waiting[Item], *, most: int = MOST_CALLS) -> None:
        """Adds a call.

        Args:
            key: Equal for calls that may go together.
            call: The call.
            most: How many with this key may go together.
        """
        of_key = self._keys.get(key)
        if of_key is None:
            of_key = self._keys[key] = _Key(most)
            self._forget()
        if of_key.came > float("-inf"):
            gap = call.since - of_key.came
            of_key.gap = gap if of_key.gap == float("inf") else of_key.gap + _SMOOTHING * (gap - of_key.gap)
        of_key.came = call.since
        of_key.owners.setdefault(call.owner, deque()).append(call)
        self._of_owner[call.owner] = self.of(call.owner) + 1

    def remove(self, key: Hashable, call: Waiting[Item]) -> bool:
        """Removes a call whose caller has left; returns whether it waited."""
        of_key = self._keys.get(key)
        calls = None if of_key is None else of_key.owners.get(call.owner)
        if of_key is None or calls is None or call not in calls:
            return False
        calls.remove(call)
        if not calls:
            del of_key.owners[call.owner]
        self._left(call.owner)
        return True

    def next(self, now: float) -> tuple[Hashable, list[Waiting[Item]]] | float | None:
        """Returns the next batch for a free process, with its key; or seconds after which to look again; None: nothing.

        The keys take turns; one for which waiting pays lets the others go first.
        """
        pause: float | None = None
        for key, of_key in self._keys.items():
            if not of_key.owners:
                continue
            patience = of_key.patience(now)
            if patience:
                pause = patience if pause is None else min(pause, patience)
                continue
            batch = [*of_key.take()]
            self._keys.move_to_end(key)
            for call in batch:
                self._left(call.owner)
            return key, batch
        return pause

    def note(self, key: Hashable, size: int, seconds: float) -> None:
        """Notes what a batch has taken."""
        of_key = self._keys.get(key)
        if of_key is not None:
            of_key.model.note(size, seconds)

    def batches(self) -> int:
        """Returns how many batches the calls that wait are, if each is as large as the model affords."""
        keys = [of_key for of_key in self._keys.values() if of_key.owners]
        return sum([-(-of_key.waiting // min(of_key.most, of_key.model.affordable())) for of_key in keys])

    def oldest(self) -> float | None:
        """Returns when the call came that waits longest; None: none waits."""
        return min([of_key.oldest() for of_key in self._keys.values() if of_key.owners], default=None)

    def take_all(self) -> list[Waiting[Item]]:
        """Returns all that wait; they do not any longer."""
        calls = [call for of_key in self._keys.values() for of_owner in of_key.owners.values() for call in of_owner]
        self._keys.clear()
        self._of_owner.clear()
        return calls

    def _left(self, owner: str) -> None:
        self._of_owner[owner] -= 1
        if not self._of_owner[owner]:
            del self._of_owner[owner]

    def _forget(self) -> None:
        while len(self._keys) > self._most_keys:
            key = min(
                (key for key in self._keys if not self._keys[key].owners),
                key=lambda key: self._keys[key].came,
                default=None,
            )
            if key is None:
                return
            del self._keys[key]


def late(waited: float, limit: float | None) -> str | None:
    """Returns why a call is not begun any more; None: it is.

    Args:
        waited: Seconds since it came.
        limit: Seconds that its caller gives it; None: it does not say.
    """
    if limit is None or waited <= limit:
        return None
    return f"not begun within {limit:g} s, the time that its caller gives it"


def batch_limit(calls: Sequence[tuple[float, float | None]]) -> dict[str, float]:
    """Returns the time limit of a batch: that of the caller who gives most, if all give one.

    Args:
        calls: Of each the seconds since it came, and those that its caller gives it.
    """
    left = [limit - waited for waited, limit in calls if limit is not None]
    return {TIME_LIMIT: max(max(left), 0.001)} if len(left) == len(calls) else {}
