"""Read-ahead: the values that a read brings along, because the program is likely to read them next.

A read is a round trip, so it also brings values that are not known here yet and that earlier commands have made: the
following values of the same call (the parts of `tf.split`, the gradients of one `tape.gradient`, the outputs of one
function), and the latest small values and variables of the same strand (sending/strands.py). Values of another strand
are left out, because its failures do not concern this read. Each value costs its bytes in the answer and some
microseconds. After a line of the program has brought a value twice in vain, it does not bring it again until the
program reads that value. What the program has read the last time comes also if it is large.

What the program has not computed yet comes too, if it computed and read it next the last time (`Continuations`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Final
from weakref import ref

from teletape.core.program.read_counts import InVain
from teletape.core.sessions.sending.continuations import Continuations
from teletape_engine.commands import Id
from teletape_engine.recording.values import Variable

SMALL: Final = 16 << 10  #: The largest number of bytes of a value of another call.
_TOGETHER: Final = 1 << 20  #: The largest number of bytes of a read with all values that it brings along.
_KNOWN_TOGETHER: Final = 64 << 20  #: The same if the program has read the value in question the last time.
_MOST_SIBLINGS: Final = 4096  #: The largest number of values of the same call in a read.
_MOST_RECENT: Final = 64  #: The largest number of other values.
REMEMBERED: Final = 2048  #: The largest number of references to a strand's latest values; most are gone soon.
_MOST_STRANDS: Final = 64  #: If there are more strands, those that have ended are dropped.
_IN_VAIN: Final = 2  #: How often a line brings a value that is not read.


class ReadAhead:
    """The read-ahead of a session: the values that its reads bring along.

    Any thread calls it, without a lock: a value that is missed is fetched when it is read.

    Args:
        failed: Whether the command that was to make an id has failed.
        ended: Whether a strand has ended.

    Attributes:
        continuations: What the program computes and reads after a read.
    """

    def __init__(self, failed: Callable[[Id], bool], ended: Callable[[int], bool]) -> None:
        self._failed, self._ended = failed, ended
        self.continuations = Continuations()
        self._recent: dict[int, list[ref[Any]]] = {}  # by strand

    def note(self, value: Any, strand: int) -> None:
        """Notes a value, or the variable that was assigned to, after the command that makes it was recorded."""
        self._note((ref(value),), strand)

    def _note(self, references: Iterable[ref[Any]], strand: int) -> None:
        recent = self.recent(strand)
        recent += references
        if len(recent) >= REMEMBERED:
            self.shorten(recent)

    def shorten(self, recent: list[ref[Any]]) -> None:
        """Drops references to values that are gone or known from a list of `recent`, and the first of many others."""
        live = [reference for reference in recent if reference() is not None]
        if len(live) > REMEMBERED // 2:
            live = [reference for reference in live if _unread(reference)][-REMEMBERED // 2 :]
        recent[:] = live

    def recent(self, strand: int) -> list[ref[Any]]:
        """Returns the list of references to a strand's latest values."""
        recent = self._recent.get(strand)
        if recent is not None:
            return recent
        if len(self._recent) >= _MOST_STRANDS:
            for other in [*self._recent]:
                if self._ended(other):
                    self._recent.pop(other, None)
                    self.continuations.leave(other)
        return self._recent.setdefault(strand, [])

    def note_together(self, values: Sequence[Any], strand: int) -> None:
        """Notes the values that one call has made: a program that reads one of them is likely to read the others."""
        references = list(map(ref, values))
        for i, value in enumerate(values):
            value.siblings = references, i
            if value.name is not None:
                self.continuations.note(value.name.id, references[i])
        self._note(references, strand)

    def chosen(self, values: Sequence[Any], in_vain: InVain, strand: int) -> list[Any]:
        """Returns the values that come along with a read.

        Args:
            values: The values that are read.
            in_vain: Of the line that reads.
            strand: The one that reads.
        """
        chosen: list[Any] = []
        recent = self._recent.get(strand)
        if recent and len(values) == 1:
            with suppress(IndexError):  # a signal handler that reads has taken it
                last = recent.pop()
                if last() is not values[0]:  # that one needs not be brought
                    recent.append(last)
        if not recent and len(values) == 1 and values[0].siblings is None:
            return chosen
        candidates = self._candidates(values, strand)
        if candidates:
            count = sum([value.spec.nbytes for value in values])
            siblings = values[0].siblings
            for i, value in enumerate(candidates):
                value.ahead = partial(in_vain.__setitem__, i, 0)
                times, nbytes = in_vain.get(i), value.spec.nbytes
                if times == 0:  # it was read the last time
                    fits = count + nbytes <= _KNOWN_TOGETHER
                else:
                    is_close = nbytes <= SMALL or (siblings and value.siblings and value.siblings[0] is siblings[0])
                    fits = count + nbytes <= _TOGETHER and is_close and (times or 0) < _IN_VAIN
                if fits and not self._failed(value.name.id):
                    in_vain[i] = (times or 0) + 1  # `used` takes it back
                    count += nbytes
                    chosen.append(value)
        return chosen

    def would_come(self, values: Sequence[Any], strand: int) -> list[Any]:
        """Returns the values that come along with a read by a line that has read nothing in vain; changes nothing."""
        coming, room = [], _TOGETHER - sum([value.spec.nbytes for value in values])
        for value in self._candidates(values, strand):
            if value.spec.nbytes <= room and not self._failed(value.name.id):
                room -= value.spec.nbytes
                coming.append(value)
        return coming

    def _candidates(self, values: Sequence[Any], strand: int) -> list[Any]:
        """Returns values that are not known here: first those made together with the one that is read, then others."""
        candidates: dict[int, Any] = {}
        siblings = values[0].siblings if len(values) == 1 else None
        if siblings is not None:
            references, i = siblings
            for reference in references[i + 1 : i + _MOST_SIBLINGS]:
                value = reference()
                if value is not None and value.host is None and value.name is not None:
                    candidates[id(value)] = value
        unread: dict[int, tuple[ref[Any], Any]] = {}
        recent = self._recent.get(strand) or []
        while recent and len(unread) < _MOST_RECENT:
            latest = recent[-_MOST_RECENT:]
            del recent[-_MOST_RECENT:]
            live = [(reference, value) for reference in latest if (value := reference()) is not None]
            for reference, value in reversed(live):
                handle = value.value if value.__class__ is Variable else value
                if handle.host is None and (handle.spec.nbytes <= SMALL or handle.siblings is not None):
                    unread[id(handle)] = reference, handle
        if unread:
            recent += [reference for reference, _ in reversed(unread.values())]
            for number, (_, value) in [*unread.items()][:_MOST_RECENT]:
                candidates[number] = value
        for value in values:
            candidates.pop(id(value), None)
        return list(candidates.values())


def _unread(reference: ref[Any]) -> Any:
    """Returns the value, or the variable's present value, if the program can read it and it is not known here."""
    referent = reference()
    value = referent.value if referent.__class__ is Variable else referent
    return None if value is None or value.host is not None else value


def used(value: Any) -> None:
    """Notes that the program reads a value: the line whose read could bring it along brings it the next time."""
    ahead = getattr(value, "ahead", None)  # a number has none
    if ahead is not None:
        ahead()
        value.ahead = None
