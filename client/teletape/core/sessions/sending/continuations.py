"""Continuations: ops and reads that directly follow a read are repeated with that read in the next step."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias, cast
from weakref import ref

from teletape.core.program.call_site import CallSite
from teletape.core.program.read_counts import ReadSite
from teletape.core.sessions.sending.sealed_batch import Recording, Reply
from teletape.core.sessions.sending.strands import Place
from teletape_engine.catalogue.attributes import Attrs, keep
from teletape_engine.catalogue.binding import Bound, bind
from teletape_engine.catalogue.op import CATALOGUE, Reach, Trait
from teletape_engine.commands import Id
from teletape_engine.errors import TeletapeError
from teletape_engine.recording.values import Literal, Variable
from teletape_engine.spec import Spec

if TYPE_CHECKING:  # it imports HTTP, which a program without a server does not load
    from teletape.core.sessions.sending.channel import Channel

_MOST_STEPS: Final = 8  #: The largest number of ops between two foreseen reads.
_MOST_READS: Final = 64  #: The largest number of reads that are foreseen at a time.
_MOST_BYTES: Final = 16 << 20  #: The largest number of bytes that their ops compute.
_SMALL: Final = 16 << 10  #: The largest number of bytes of a value that is read.
_MOST_CONTINUATIONS: Final = 1024  #: The largest number of reads whose continuations are stored.
_FORESEEN: Final = frozenset((Reach.ELEMENTS, Reach.MOVES, Reach.SUMS, Reach.LINES, Reach.PRODUCTS))


#: An op of a continuation: its name, its attributes, and the origin of each input: ("output", the index of the
#: continuation's op that makes it), ("input", its index), or ("number", the number).
_Step: TypeAlias = tuple[str, Attrs, tuple[tuple[str, Any], ...]]
#: A line that reads, as `ReadSite.line`, and its index among consecutive reads.
_Point: TypeAlias = tuple[tuple[int, int], int]


class _Read(NamedTuple):
    """A read.

    Attributes:
        point: Its point.
        inputs: References to the inputs of the ops there.
        ops: The ops, and the ids of their inputs; None: it was foreseen.
    """

    point: _Point
    inputs: list[ref[Any]]
    ops: tuple[list[_Step], list[int]] | None = None


class _Continuation(NamedTuple):
    """The ops and the read that directly followed a read.

    Attributes:
        point: The read.
        steps: The ops; the last one made the value that was read.
        roles: Of each input: ("variable", a reference to it), or ("sibling", the number of an input of the read before
            that one call made together with it, and how many places it is behind that).
        before: The ops that had made the value of the read before.
    """

    point: _Point
    steps: Sequence[_Step]
    roles: Sequence[tuple[Any, ...]]
    before: Sequence[_Step]


class _Reader:
    """The consecutive reads of one strand.

    Attributes:
        last: The latest one; None: other commands came after it.
        run: The reads that were foreseen after it.
        unread: The numbers of the foreseen reads that the program has not made.
    """

    __slots__ = ("_op", "_steps", "last", "run", "unread")

    def __init__(self) -> None:
        self.last: _Read | None = None
        self.run: list[_Read] = []
        self.unread: dict[int, int] = {}
        self._op: Any = None  # of the latest read, if it was one
        self._steps: tuple[list[_Step], list[int]] = [], []

    def steps(self, before: Sequence[Any]) -> tuple[list[_Step], list[int]]:
        """Returns the steps of ops, as `_steps`; those of one op again and again are the same."""
        op = before[0][3:6] if len(before) == 1 else None
        if op is None or op != self._op:
            self._op, self._steps = op, _steps(before)
        return self._steps


class Continuations:
    """Foresees the ops and reads after a read: those of the step before, on the next inputs.

    `[float(tf.norm(g)) for g in gradients]` computes a norm, reads it, computes the next norm, reads it, and so on.
    When it comes again, its first read has all norms computed, and brings them; the calls that follow find them. Only
    what was read the last time is foreseen, outside tapes, and only ops that cannot fail for their values.

    Attributes:
        expected: By place: the values that calls may find, by the ops and inputs that made them.
        recorded: Those that are expected when the read is answered.
    """

    def __init__(self) -> None:
        self.expected: dict[Place, dict[Any, Any]] = {}
        self.recorded: dict[Place, dict[Any, Any]] = {}
        self._known: dict[Id, ref[Any]] = {}  # variables, and values made together
        self._most_known = _MOST_CONTINUATIONS
        self._next: dict[_Point, _Continuation] = {}
        self._readers: dict[int, _Reader] = {}

    def note(self, id: Id, value: ref[Any]) -> None:
        """Notes a reference to a variable, or to a value of a call."""
        known = self._known
        known[id] = value
        if len(known) > self._most_known:
            self._known = known = {id: value for id, value in list(known.items()) if value() is not None}
            self._most_known = max(_MOST_CONTINUATIONS, 2 * len(known))

    def forget(self) -> None:
        """Notes that variables change: values that were computed from them are no longer valid for later calls."""
        if self.expected or self.recorded:
            self.expected.clear()
            self.recorded.clear()

    def arrived(self, place: Place) -> None:
        """Notes that the latest read of a place was answered."""
        recorded = self.recorded.pop(place, None)
        if recorded:
            self.expected[place] = recorded

    def leave(self, strand: int) -> None:
        """Forgets the reads of a strand."""
        self._readers.pop(strand, None)

    def foreseen(
        self,
        value: Any,
        site: ReadSite,
        place: Place,
        strand: int,
        channel: Channel,
        new_value: Callable[[Spec], Any],
    ) -> list[Any]:
        """Records the ops that are likely to follow a read, and returns those results that are likely to be read.

        Args:
            value: The value that is read.
            site: The line that reads.
            place: The context and the strand that read.
            strand: The strand.
            channel: The session's way to its server.
            new_value: Makes a handle.
        """
        if self.expected or self.recorded:
            self.expected.pop(place, None)
            self.recorded.pop(place, None)
        reader = self._readers.get(strand)
        if reader is None:
            reader = self._readers[strand] = _Reader()
        last, reader.last = self._latest(reader) if reader.run else reader.last, None
        before, is_all = _ops_before(channel.buffer.recordings, place, value.name.id)
        if not before:
            return []
        ops = reader.steps(before)
        if last is not None and is_all and ops == last.ops:
            read = last  # the same once more, which needs no second prediction
        else:
            inputs = []
            for id in ops[1]:
                reference = self._known.get(id)
                if reference is None or reference() is None:
                    return []
                inputs.append(reference)
            if last is None or not is_all:
                read = _Read((site.line, 0), inputs, ops)
            else:
                read = _Read((site.line, last.point[1] + 1), inputs, ops)
                self._learn(last, read, ops[0])
        reader.last = read
        if read.point not in self._next or not channel.lazy:
            return []
        record = partial(_recorded, place=place, where=site.where, channel=channel, new_value=new_value)
        values, self.recorded[place] = self._foreseen(reader, read, record)
        return values

    def _learn(self, last: _Read, read: _Read, steps: Sequence[_Step]) -> None:
        """Notes that a read directly followed the last one. More in a row than can be stored are not noted."""
        roles = [role for reference in read.inputs if (role := _role(reference, last.inputs)) is not None]
        self._next.pop(last.point, None)
        if len(roles) == len(read.inputs) and read.point[1] < _MOST_CONTINUATIONS:
            before = () if last.ops is None else last.ops[0]
            keep(self._next, last.point, _Continuation(read.point, steps, roles, before), _MOST_CONTINUATIONS)

    def _latest(self, reader: _Reader) -> _Read | None:
        """Returns the latest read of a strand, foreseen or not, and drops the reads that were foreseen after it."""
        count = min(reader.unread, default=len(reader.run))
        latest = reader.run[count - 1] if count else reader.last
        if count < len(reader.run) and latest is not None:
            for read in (latest, *reader.run[count:]):
                self._next.pop(read.point, None)
        reader.run, reader.unread = [], {}
        return latest

    def _foreseen(
        self, reader: _Reader, latest: _Read, record: Callable[..., list[tuple[Any, Any]]]
    ) -> tuple[list[Any], dict[Any, Any]]:
        values: list[Any] = []
        by_key: dict[Any, Any] = {}
        for following, inputs, bounds in self._following(latest):
            outputs = record(following.steps, inputs, bounds)
            outputs[-1][1].ahead = partial(reader.unread.pop, len(reader.run), None)
            reader.unread[len(reader.run)] = 1
            reader.run.append(_Read(following.point, list(map(ref, inputs))))
            values.append(outputs[-1][1])
            by_key |= dict(outputs)
        return values, by_key

    def _following(self, read: _Read) -> Iterator[tuple[_Continuation, list[Any], list[Bound]]]:
        """Yields the reads that are likely to follow one, with the inputs of their ops, and the ops bound to these."""
        (point, before, _), room = read, _MOST_BYTES
        for _ in range(_MOST_READS):
            following = self._next.get(point)
            inputs = [] if following is None else [_resolved(role, before) for role in following.roles]
            if following is None or None in inputs:
                return
            bounds = _bound(following.steps, inputs)
            room -= sum([bound.spec.nbytes for bound in bounds])
            if not bounds or bounds[-1].spec.nbytes > _SMALL or room < 0:
                return
            yield following, inputs, bounds
            point, before = following.point, list(map(ref, inputs))

    def would_follow(self, value: Any, place: Place, channel: Channel) -> list[Spec]:
        """Returns the specs of the values that would be computed and come along with a read; changes nothing.

        Args:
            value: The value that is read, by the line that has last read one that was computed like it.
            place: The context and the strand that read.
            channel: The session's way to its server.
        """
        before, _ = _ops_before(channel.buffer.recordings, place, value.name.id)
        steps, ids = _steps(before)
        inputs = [self._known.get(id) for id in ids]
        points = [point for point, following in self._next.items() if not point[1] and following.before == steps]
        if not (steps and points and channel.lazy) or None in inputs:
            return []
        read = _Read(points[-1], cast("list[ref[Any]]", inputs))
        return [bounds[-1].spec for _, _, bounds in self._following(read)]


def _recorded(
    steps: Sequence[_Step],
    inputs: Sequence[Any],
    bounds: Sequence[Bound],
    *,
    place: Place,
    where: CallSite,
    channel: Channel,
    new_value: Callable[[Spec], Any],
) -> list[tuple[Any, Any]]:
    """Records the ops of a continuation, and returns the key and the value of each."""
    keys: list[Any] = []
    outputs: list[Any] = []
    for (name, attrs, sources), bound in zip(steps, bounds, strict=True):
        ids = tuple([_id_of(_source(source, inputs, outputs)) for source in sources])
        output = new_value(bound.spec)
        output.name = channel.new_name()
        channel.emit_call(place, where, name, attrs, ids, output.name.id)
        outputs.append(output)
        keys.append(key_of(name, attrs, ids))
    return list(zip(keys, outputs, strict=True))


def key_of(name: str, attrs: Attrs, ids: Sequence[Any]) -> Any:
    """Returns the key of an op's result; 0.0 and -0.0 have different keys, although they are equal."""
    return name, attrs, tuple([id if id.__class__ is not Literal else (repr(id.array),) for id in ids])


def _ops_before(recordings: list[Recording | Reply], place: Place, output: int) -> tuple[list[Any], bool]:
    """Returns the ops directly before a read that make its value, latest first, and whether they are all the ops.

    The first list is empty if the value was not made since the last batch, or by an op that may fail or draws numbers.
    """
    ops: list[Any] = []
    needed, is_all = [output], True
    latest: list[Any] = recordings[-2 * _MOST_STEPS :]
    for entry in reversed(latest):
        if entry.__class__ is Reply or entry[0] != place:
            continue
        is_all = entry[1] is None and entry[6] in needed
        if not is_all or len(ops) == _MOST_STEPS or not _may_be_foreseen[entry[3]]:
            is_all = False
            break
        ops.append(entry)
        needed += entry[5]
    return ops, is_all


def _steps(ops: Sequence[Any]) -> tuple[list[_Step], list[int]]:
    """Returns ops, latest first, as steps of a continuation, and the ids of their inputs."""
    steps: list[_Step] = []
    sources_of: dict[int, tuple[str, int]] = {}
    ids: list[int] = []
    for _, _, _, name, attrs, inputs, output in reversed(ops):
        sources: list[tuple[str, Any]] = []
        for input in inputs:
            if input.__class__ is Literal:
                sources.append(("number", input))
                continue
            source = sources_of.get(input)
            if source is None:
                source = sources_of[input] = "input", len(ids)
                ids.append(input)
            sources.append(source)
        sources_of[output] = "output", len(steps)
        steps.append((name, attrs, tuple(sources)))
    return steps, ids


class _MayBeForeseen(dict[str, bool]):
    """Whether an op has the same result each time it runs, and cannot fail because of its values; by its name."""

    def __missing__(self, name: str) -> bool:
        op = CATALOGUE[name]
        safe = not (op.dynamic or op.refuses or op.expand) and not {Trait.ASSERTS, Trait.RANDOM} & op.traits
        self[name] = may = op.reach in _FORESEEN and safe
        return may


_may_be_foreseen: Final = _MayBeForeseen()


def _role(input: ref[Any], before: Sequence[ref[Any]]) -> tuple[Any, ...] | None:
    """Returns the role of an input of a continuation, by the inputs of the read before; None: it has none."""
    value: Any = input()
    if value.__class__ is Variable:
        return "variable", input
    for number, reference in enumerate(before):
        other: Any = reference()
        if value is not None and other.__class__ is value.__class__ and other.siblings[0] is value.siblings[0]:
            return "sibling", number, value.siblings[1] - other.siblings[1]
    return None


def _resolved(role: tuple[Any, ...], before: Sequence[ref[Any]]) -> Any:
    """Returns the input with a role after a read with these inputs; None: there is none, or it is gone."""
    if role[0] == "variable":
        return role[1]()
    other = before[role[1]]()
    references, place = ((), 0) if other is None else other.siblings
    place += role[2]
    value = references[place]() if 0 <= place < len(references) else None
    return None if value is None or value.name is None else value


def _bound(steps: Sequence[_Step], inputs: Sequence[Any]) -> list[Bound]:
    """Returns the ops, bound to the specs of these inputs; none if they do not take them."""
    bounds: list[Bound] = []
    try:
        for name, attrs, sources in steps:
            specs = [_source(source, inputs, bounds).spec for source in sources]
            bounds.append(bind(CATALOGUE[name], tuple(specs), attrs))
    except TeletapeError:
        return []
    return bounds


def _source(source: tuple[str, Any], inputs: Sequence[Any], outputs: Sequence[Any]) -> Any:
    kind, which = source
    return which if kind == "number" else (inputs if kind == "input" else outputs)[which]


def _id_of(value: Any) -> Any:
    """Returns the recorded form of an input: the id of a value or a variable, or the number."""
    if value.__class__ is Literal:
        return value
    return (value.value if value.__class__ is Variable else value).name.id
