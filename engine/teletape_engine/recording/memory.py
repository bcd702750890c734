"""Bytes: how many a session's arrays may take, how many a tape keeps, and how many of those its end would free.

Whether somebody else holds an array is read off reference counts, which know every holder: a name, a variable, another
tape, a kept answer, a tensor in the caller's own program.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from teletape_engine.catalogue.op import Op
from teletape_engine.errors import ResourceExhaustedError
from teletape_engine.recording.tape import Tape
from teletape_engine.recording.values import Unrecorded, Value, Variable


class Memory:
    """Bytes that arrays may take. Counted by an upper bound, which is made exact only when it would pass the limit.

    Attributes:
        limit: Bytes, or None for no limit.
        spent: At least the bytes in use. The hot path adds to it, and calls `recount` past the ceiling.
        ceiling: The limit as a number.
    """

    def __init__(self, limit: int | None, count: Callable[[], int]) -> None:
        self.limit = limit
        self.ceiling = float("inf") if limit is None else limit
        self.spent = 0
        self._exact = 0
        self._count = count

    def spend(self, nbytes: int, what: str) -> None:
        """Admits an allocation, before it is made.

        Raises:
            ResourceExhaustedError: It would pass the limit.
        """
        self.spent += nbytes
        if self.spent > self.ceiling:
            self.recount(nbytes, what)

    def recount(self, nbytes: int, what: Op | str) -> None:
        """Makes `spent` exact, the last `nbytes` of it not allocated yet, and refuses them if they pass the limit.

        Raises:
            ResourceExhaustedError: With the numbers.
        """
        used = self._count()
        self.spent = self._exact = used
        if used + nbytes > self.ceiling:
            name = what if isinstance(what, str) else f"op {what.name!r}"
            raise ResourceExhaustedError(
                f"{name} needs {nbytes:,} bytes; {used:,} of the session's {self.limit:,} are in use: release values "
                "or tapes, or ask for less",
                needed=nbytes,
                used=used,
                limit=self.limit,
            )
        self.spent += nbytes

    def room(self) -> float:
        """Bytes left below the limit, exactly."""
        return self.ceiling - self._count() if self.limit is not None else self.ceiling

    def estimate(self) -> int:
        """Bytes in use, at most about twice too high: an exact count walks everything, so it is made seldom."""
        if self.spent > 2 * self._exact + (1 << 20):
            self.spent = self._exact = self._count()
        return self.spent


class Footprint(NamedTuple):
    """The bytes behind a tape, each buffer once.

    Attributes:
        kept: Of the arrays that it keeps to answer.
        freed: What dies with it: of those, and of watched variables, what nobody else holds.
    """

    kept: int
    freed: int


def footprint(tape: Tape, base: Callable[[Any], tuple[int, int]], also_released: Iterable[int] = ()) -> Footprint:
    """What the tape keeps, and what its end would free.

    Args:
        tape: Which.
        base: The backend's: identity and bytes of the buffer that an array keeps alive.
        also_released: `id()` of values that have one more holder each, which ends with the tape: a client's names for
            what only its side of the tape holds.
    """
    kept = dict(base(value.array) for value in _kept(tape))
    owners = [(base(thing), held) for thing, held in ends(tape, also_released=also_released)]
    lent = {buffer for (buffer, _), held in owners if held}
    freed = dict(found for found, _ in owners if found[0] not in lent)
    return Footprint(sum(kept.values()), sum(freed.values()))


def _array(thing: Any) -> Any:
    """What a thing keeps alive: a variable its value, a value its array, a view the array that it is a view of."""
    if thing.__class__ is Value:
        return thing.array
    if thing.__class__ is Variable:
        return thing.value
    found = getattr(thing, "base", None)
    return found if found is not None and hasattr(found, "dtype") else None  # another kind of buffer is the end


def ends(
    tape: Tape, below: Callable[[Any], Any] = _array, *, also_released: Iterable[int] = ()
) -> list[tuple[Any, bool]]:
    """What stands at the end of each chain of references behind a tape, and whether somebody else holds it.

    Args:
        tape: Which: the chains begin at the values that it keeps, and at the variables that it has watched.
        below: From a thing to that which it keeps alive, None at the end. By default the end is an array.
        also_released: See `footprint`.
    """
    inside, things, links = _collected(tape, below)
    inside.update(also_released)
    held = _held(inside, things, links)
    return [(thing, key in held) for key, thing in things.items() if key not in links]


def _kept(tape: Tape) -> Iterator[Any]:
    for node in tape.nodes:
        for value in node[3]:
            if not isinstance(value, Unrecorded):
                yield value


def _collected(tape: Tape, below: Callable[[Any], Any]) -> tuple[Counter[int], dict[int, Any], dict[int, int]]:
    """References that come from the tape, by object; the objects behind it; what each of them keeps alive."""
    inside = Counter(map(id, _kept(tape)))
    inside.update(map(id, tape.variables.values()))
    things: dict[int, Any] = {id(value): value for value in _kept(tape)}
    things |= {id(variable): variable for variable in tape.variables.values()}
    links: dict[int, int] = {}
    todo = list(things)
    for key in todo:  # which grows
        found = below(things[key])
        if found is not None:
            links[key] = id(found)
            inside[id(found)] += 1
            if id(found) not in things:
                things[id(found)] = found
                todo.append(id(found))
    return inside, things, links


def _held(inside: Counter[int], things: dict[int, Any], links: dict[int, int]) -> set[int]:
    """The things that somebody else holds, directly or through a view."""
    objects = [*things.values(), object()]
    # The last is held by the list alone; the others by `things` too. Whatever else counting adds, it adds to each.
    *counts, own = map(sys.getrefcount, objects)
    held = {key for key, count in zip(things, counts, strict=True) if count - own - 1 > inside[key]}
    for key in list(held):
        at = links.get(key)
        while at is not None and at not in held:
            held.add(at)
            at = links.get(at)
    return held
