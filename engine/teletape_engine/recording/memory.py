"""Bytes: how many a session's arrays may take, how many a tape keeps, and how many of those its end would free.

Whether something else refers to an array is read from reference counts, which include every reference: an id, a
variable, another tape, a kept answer, a tensor in the caller's own program.
"""

from __future__ import annotations

import sys
import weakref
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple, Protocol

import numpy as np

from teletape_engine import object_bytes
from teletape_engine.catalogue.op import Op
from teletape_engine.errors import ResourceExhaustedError
from teletape_engine.recording.tape import Tape
from teletape_engine.recording.values import Unrecorded, Value, Variable, new_uid


def counts_every_reference(count: Callable[[Any], int]) -> bool:
    """Returns whether each holder of an object adds one to its count, and takes one away when it goes.

    A Python that counts otherwise, as one that defers or splits counts or makes objects immortal, is found here and not
    by a wrong value.

    Args:
        count: `sys.getrefcount`, or what a test has in its place.
    """

    class Target:
        __slots__ = ("target",)

    def closure(target: Any) -> Any:
        return lambda: target

    def generator(target: Any) -> Iterator[Any]:
        yield None
        yield target

    def slot(target: Any) -> Any:
        holder = Target()
        holder.target = target  # type: ignore[attr-defined]  # in __slots__
        return holder

    def started(target: Any) -> Any:
        waiting = generator(target)
        next(waiting)
        return waiting

    holds: list[Callable[[Any], Any]] = [lambda x: [x], lambda x: (x, 0), lambda x: {0: x}, closure, started, slot]
    for target in (Target(), np.zeros(1)):
        before = count(target)
        for hold in holds:
            holder = hold(target)
            during = count(target)
            del holder
            if (during, count(target)) != (before + 1, before):
                return False
        name = target
        if not before <= count(name) <= before + 1:  # one more name may count, or be borrowed
            return False
    return True


#: Whether `sys.getrefcount` counts every reference. Builds of Python without the GIL defer and split their counts, also
#: while their GIL is switched on. If it does not, everything counts as referred to by something else.
EXACT_COUNTS: Final = "free-threading" not in sys.version and counts_every_reference(sys.getrefcount)


_NO_LIMIT: Final = float("inf")
_LOOK_BYTES: Final = 1 << 20  #: Bytes of objects after which everything is counted, at the earliest.
_FORGET_BYTES: Final = 4 << 20  #: Likewise, after which what has gone since is no longer taken for in use.
_SLACK_BYTES: Final = 16 << 20  #: Of a reservation: with fewer left a further one is tried, or each op would count.


class Cache(Protocol):
    """Memory that is kept for later, and that can be given back."""

    @property
    def nbytes(self) -> int:
        """Bytes that it takes."""

    def release(self) -> None:
        """Gives it back."""


class Memory:
    """Bytes that arrays and Python objects may take.

    Arrays are counted by an upper bound, which is made exact only when it would pass the limit. Objects are not priced
    one by one: `look` estimates from time to time how many were made, and has everything counted before they can pass
    the limit by much.

    Args:
        limit: Bytes, or None for no limit.
        count: Returns the bytes in use, exactly.
        shed: Frees that many bytes of what the session can do without; returns whether it could.
        count_arrays: Returns the bytes in use, those of objects as `count` last counted them: much cheaper.

    Attributes:
        spent: At least the bytes in use. The hot path adds to it, and calls `recount` past the ceiling.
        ceiling: Bytes that are admitted: the limit, or what is reserved so far (`reserve`) if that is less.
        noted: Bytes of objects that may have been made since the last count, as far as they are known.
        caches: What is kept for later; it is given back before anything is refused.
        plans: The plans of the session's functions; see `plans.session_plans`.
        has_log: Whether the session's batches are written down, to be run again.
    """

    def __init__(
        self,
        limit: int | None,
        count: Callable[[], int],
        shed: Callable[[float], bool] = lambda nbytes: False,
        count_arrays: Callable[[], int] | None = None,
    ) -> None:
        self._limit = limit
        self._most = self.ceiling = _NO_LIMIT if limit is None else limit
        self._reserved: float = _NO_LIMIT
        self._extend: Callable[[float], int] | None = None
        self._lack: tuple[str, Mapping[str, Any]] = "no more is reserved for the session", {}
        self.spent = 0
        self._exact = 0  # as of the last count of arrays
        self._counted = 0  # as of the last count of arrays and objects
        self._count, self._shed = count, shed
        self._count_arrays = count if count_arrays is None else count_arrays
        self.noted = 0
        self._noted_until: float = _LOOK_BYTES
        self._uid = new_uid()
        self.caches: weakref.WeakSet[Cache] = weakref.WeakSet()
        self.plans: Any = None
        self.has_log = False

    @property
    def limit(self) -> int | None:
        """Bytes, or None for no limit."""
        return self._limit

    @limit.setter
    def limit(self, limit: int | None) -> None:
        self._limit, self._most = limit, _NO_LIMIT if limit is None else limit
        self.ceiling = min(self._most, self._reserved)

    def reserve(self, reserved: float, extend: Callable[[float], int] | None = None) -> None:
        """Admits no more than is reserved, without a further reservation.

        Args:
            reserved: Bytes, also below those in use.
            extend: Called with the bytes that are needed, if they are within the limit; returns the bytes that are
                reserved from then on. It raises ResourceExhaustedError if there is no room for them. None: as before.
        """
        self._reserved, self._extend = reserved, extend or self._extend
        self.ceiling = min(self._most, reserved)

    @property
    def reservation(self) -> tuple[float, Callable[[float], int] | None]:
        """The bytes that are reserved, and what extends that; infinity and None: the limit alone counts."""
        return self._reserved, self._extend

    def spend(self, nbytes: int, what: str) -> None:
        """Admits an allocation, before it is made.

        Raises:
            ResourceExhaustedError: It would pass the limit, or no more can be reserved.
        """
        self.spent += nbytes
        if self.spent > self.ceiling:
            self.recount(nbytes, what)

    def fits(self, nbytes: int) -> bool:
        """Whether that many bytes more are admitted."""
        return self.spent + nbytes <= self.ceiling or self._fits(self.count() + nbytes)

    def recount(self, nbytes: int, what: Op | str) -> None:
        """Makes `spent` exact, the last `nbytes` of it not allocated yet, and refuses them if they pass the ceiling.

        Raises:
            ResourceExhaustedError: With the numbers.
        """
        used = self.count()
        fits = self._fits(used + nbytes)
        if not fits and self.caches:
            self.release_caches()
            used = self.count()
            fits = self._fits(used + nbytes)
        if not fits and self._shed(used + nbytes - self.ceiling):
            used = self.count()
            fits = self._fits(used + nbytes)
        if not fits:
            raise self._refusal(used, nbytes, what)
        self.spent += nbytes

    def _fits(self, needed: int) -> bool:
        """Whether that many bytes in all are admitted, if need be by a further reservation."""
        is_close = self.ceiling - _SLACK_BYTES < needed <= self._most
        if self._extend is not None and self.ceiling < self._most and is_close:
            try:
                self.reserve(self._extend(needed))
            except ResourceExhaustedError as error:
                self._lack = error.message, error.details
        return needed <= self.ceiling

    def _refusal(self, used: int, nbytes: int, what: Op | str) -> ResourceExhaustedError:
        """Why that many bytes more do not fit."""
        name = what if isinstance(what, str) else f"op {what.name!r}"
        facts = {"needed": nbytes, "used": used, "limit": self.limit}
        if used + nbytes <= self._most:
            lack, details = self._lack
            return ResourceExhaustedError(f"{name} needs {nbytes:,} bytes, and {lack}", **{**facts, **details})
        return ResourceExhaustedError(
            f"{name} needs {nbytes:,} bytes; {used:,} of the session's {self.limit:,} are in use: release values or "
            "tapes, or ask for less",
            **facts,
        )

    def look(self, tapes: int) -> None:
        """Counts everything if many objects may have been made since the last count; cheap otherwise.

        Args:
            tapes: The number of tapes that are active: each has a node for each op.
        """
        if self.ceiling == _NO_LIMIT:
            return
        uid = new_uid()  # what an op leaves belongs to a value, and so to a uid
        self.noted += (uid - self._uid) * (object_bytes.OP + tapes * object_bytes.NODE)
        self._uid = uid
        if self.noted > self._noted_until:
            self.count()

    def note(self, nbytes: int, what: str) -> None:
        """Admits objects of about that many bytes, which `look` cannot know of.

        Raises:
            ResourceExhaustedError: The session is full.
        """
        self.noted += nbytes
        if self.noted > self._noted_until:
            self.count()
        if self.spent > self.ceiling:
            self.recount(nbytes, what)

    def count(self) -> int:
        """The bytes in use, exactly, which `spent` then is."""
        self.spent = self._exact = self._counted = used = self._count()
        self.noted, self._uid = 0, new_uid()
        # Close to the limit the next count comes after an eighth of what this one counted: counting takes time.
        self._noted_until = max(_LOOK_BYTES, used // 8, 0 if self.ceiling == _NO_LIMIT else self.ceiling - used)
        return used

    @property
    def exact(self) -> int:
        """The bytes in use at the last count."""
        return self._exact

    @property
    def scarce(self) -> bool:
        """Whether a quarter of the limit, or more, may be in use."""
        return 4 * self.spent > self._most

    @property
    def full(self) -> bool:
        """Whether more is in use than the limit: objects are counted only after they were made."""
        return self.spent > self._most

    def cached(self) -> int:
        """Bytes that caches take."""
        return sum([cache.nbytes for cache in tuple(self.caches)])

    def release_caches(self) -> None:
        """Gives back what is kept for later."""
        for cache in tuple(self.caches):
            cache.release()
        self.caches.clear()

    def room(self) -> float:
        """Bytes left below the limit: arrays are counted exactly, objects made since the last count are estimated."""
        return self._most if self.limit is None else self._most - self._count_arrays() - self.noted

    def estimate(self) -> int:
        """Bytes in use, at most about twice too high: a count walks every object, so it is made seldom."""
        if self.noted > self._counted + _FORGET_BYTES:  # most objects since then have probably gone
            return self.count()
        if self.spent > 2 * self._exact + (1 << 20):
            self.spent = self._exact = self._count_arrays() + self.noted
        return self.spent


class Footprint(NamedTuple):
    """The bytes of a tape, each buffer once.

    Attributes:
        residuals: Of the arrays that it keeps to answer.
        freed: What its end frees: of those, and of watched variables, what nothing else refers to. 0 in builds of
            Python without the GIL, which do not count references exactly.
    """

    residuals: int
    freed: int


def footprint(tape: Tape, base: Callable[[Any], tuple[int, int]], also_released: Iterable[int] = ()) -> Footprint:
    """What the tape keeps, and what its end would free.

    Args:
        tape: Which.
        base: The backend's: identity and bytes of the buffer that an array keeps alive.
        also_released: `id()` of values that have one more holder each, which ends with the tape: a client's names for
            what only its side of the tape holds.
    """
    buffers = dict(base(value.array) for value in _kept(tape))
    owners = [(base(item), shared) for item, shared in ends(tape, also_released=also_released)]
    lent = {buffer for (buffer, _), shared in owners if shared}
    freed = dict(buffer for buffer, _ in owners if buffer[0] not in lent)
    return Footprint(sum(buffers.values()), sum(freed.values()))


def _array(item: Any) -> Any:
    """What an object keeps alive: a variable its value, a value its array, a view the array that it is a view of."""
    if item.__class__ is Value:
        return item.array
    if item.__class__ is Variable:
        return item.value
    base = getattr(item, "base", None)
    return base if base is not None and hasattr(base, "dtype") else None  # another kind of buffer is the end


def ends(
    tape: Tape, below: Callable[[Any], Any] = _array, *, also_released: Iterable[int] = ()
) -> list[tuple[Any, bool]]:
    """The end of each chain of references from a tape, and whether something else refers to it.

    Args:
        tape: Which: the chains begin at the values that it keeps, and at the variables that it has watched.
        below: From an object to that which it keeps alive, None at the end. By default the end is an array.
        also_released: See `footprint`.
    """
    inside, items, links = _collected(tape, below)
    inside.update(also_released)
    shared = _shared(inside, items, links)
    return [(item, key in shared) for key, item in items.items() if key not in links]


def _kept(tape: Tape) -> Iterator[Any]:
    for node in tape.nodes:
        for value in node[3]:
            if not isinstance(value, Unrecorded):
                yield value


def _collected(tape: Tape, below: Callable[[Any], Any]) -> tuple[Counter[int], dict[int, Any], dict[int, int]]:
    """References that come from the tape, by object; the objects that it keeps alive; what each of them keeps alive."""
    inside = Counter(map(id, _kept(tape)))
    inside.update(map(id, tape.variables.values()))
    items: dict[int, Any] = {id(value): value for value in _kept(tape)}
    items |= {id(variable): variable for variable in tape.variables.values()}
    links: dict[int, int] = {}
    todo = list(items)
    for key in todo:  # which grows
        target = below(items[key])
        if target is not None:
            links[key] = id(target)
            inside[id(target)] += 1
            if id(target) not in items:
                items[id(target)] = target
                todo.append(id(target))
    return inside, items, links


def _shared(inside: Counter[int], items: dict[int, Any], links: dict[int, int]) -> set[int]:
    """The objects that something else refers to, directly or through a view."""
    if not EXACT_COUNTS:
        return set(items)
    objects = [*items.values(), object()]
    # The last is referred to by the list alone; the others by `items` too. Counting adds the same to each.
    *counts, own = map(sys.getrefcount, objects)
    shared = {key for key, count in zip(items, counts, strict=True) if count - own - 1 > inside[key]}
    for key in list(shared):
        at = links.get(key)
        while at is not None and at not in shared:
            shared.add(at)
            at = links.get(at)
    return shared
