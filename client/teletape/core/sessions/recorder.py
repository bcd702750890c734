"""A remote session's recorder: one context on the server. It infers the specs of ops and emits them as commands."""

from __future__ import annotations

import contextvars
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, TypeVar
from weakref import ref

import numpy as np

from teletape.core.program.call_site import Where
from teletape.core.sessions.read_ahead import REMEMBERED, ReadAhead, used
from teletape.core.sessions.sending.batch_buffer import ContextName, Name
from teletape.core.sessions.sending.continuations import key_of
from teletape.core.sessions.sending.strands import Place, acting, running_task, strand_of
from teletape_engine import commands
from teletape_engine.arrays import HostArray
from teletape_engine.catalogue.attributes import NO_ATTRS, Attrs
from teletape_engine.catalogue.binding import Bound, bind
from teletape_engine.catalogue.namespace import ops
from teletape_engine.catalogue.op import Op, Trait
from teletape_engine.commands import Command
from teletape_engine.commands.results import Result, Specs
from teletape_engine.derivatives.query import GradientQuery
from teletape_engine.errors import TeletapeError
from teletape_engine.recording.context import Context
from teletape_engine.recording.executor import evaluate
from teletape_engine.recording.provenance import ProvenanceLog
from teletape_engine.recording.recorder import Mode
from teletape_engine.recording.spec_recorder import SpecRecorder
from teletape_engine.recording.values import Literal, SpecValue, Variable, new_uid
from teletape_engine.spec import BOOL, INTEGER, STRING, Spec, dtype_of

if TYPE_CHECKING:  # it imports HTTP, which a program without a server does not load
    from teletape.core.sessions.sending.channel import Channel

_EXACT: Final = frozenset((BOOL, *INTEGER))  #: Dtypes whose results are the same on this machine and on the server.
_CAST: Final = ops.cast
_SMALL: Final = 16  #: The largest number of elements of a result that is also computed here.
_CHECKED: Final = 1 << 20  #: The largest number of bytes of an op that runs here to check its values.

T = TypeVar("T")

_silenced: Final = contextvars.ContextVar("silenced", default=False)


class Handle(SpecValue):
    """A value on the server.

    Attributes:
        spec: Its shape and dtype.
        name: Its id there; all versions of a variable share one. None: no command has needed one yet.
        host: Its elements, if they are known here.
        uid: Identifies the value to tapes.
        siblings: References to the values of the same call, and its index among them; None: there are none.
        ahead: Called when the program reads it, because a line's read could bring it along; None: there is none.
    """

    __slots__ = ("ahead", "host", "name", "siblings")
    ahead: Callable[[], Any] | None
    siblings: tuple[list[ref[Handle]], int] | None

    def __init__(self, spec: Spec, name: Name | None = None, host: HostArray | None = None) -> None:
        # Not by `super().__init__`, which would add 3 % to the recording of each op.
        self.spec, self.uid, self.name, self.host = spec, new_uid(), name, host
        self.siblings = self.ahead = None

    def copy(self) -> Handle:
        """Returns the same value under a new uid."""
        return Handle(self.spec, self.name, self.host)


class SilentRecorder(SpecRecorder):
    """Records ops on a context's tapes by their specs, computes nothing, and sends nothing.

    It follows the steps that the server runs by itself: those of a rule, of a composite op, of a function. It is a
    separate object from the context's `RemoteRecorder`, so an interrupt leaves no state to restore.

    Args:
        context: The context.
        provenance: Its log.
        mode: The treatment of loops, conditions and gradients.
        decisions: The decisions of the server's loops and conditions.
    """

    def __init__(
        self,
        context: Context,
        provenance: ProvenanceLog,
        mode: Mode = Mode.CONNECTS,
        decisions: Iterator[int] | None = None,
    ) -> None:
        # Not by `super().__init__`, which would make a context and a log.
        self.context, self.provenance, self.mode, self.price = context, provenance, mode, 0
        self._decisions = decisions
        self._may_not_run = False

    def new_value(self, spec: Spec) -> Handle:
        return Handle(spec)

    def run(self, bound: Bound, inputs: Sequence[Any]) -> Any:
        if bound.op.refuses and not self._may_not_run:
            _check_values(bound, inputs)
        return self.new_values(bound) if bound.selects else Handle(bound.spec)

    @contextmanager
    def uncertain(self) -> Iterator[None]:
        """A block of steps that the server may not run: values are not checked in it."""
        before, self._may_not_run = self._may_not_run, True
        try:
            yield
        finally:
            self._may_not_run = before

    def constant(self, array: HostArray) -> Handle:
        """Returns a constant of a function; the server has it already."""
        return Handle(Spec.of(array.shape, array.dtype), None, array)

    def assign(self, variable: Variable, value: Any, mode: str = "set", *rest: Any) -> None:
        """Assigns inside a function; the variable's elements are not known afterwards."""
        before: Handle = variable.value
        super().assign(variable, value, mode, *rest)
        variable.value = Handle(variable.spec, before.name)

    def decide(self, value: Any) -> int:
        """Returns the server's decision."""
        assert self._decisions is not None
        return next(self._decisions)


class RemoteRecorder(SilentRecorder):
    """A context on the server: records ops on tapes by their specs, and emits a command for each op.

    Args:
        channel: The session's way to its server.
        read_ahead: The read-ahead of the session's reads.

    Attributes:
        id: The context's id on the server.
        silent: Records in the same context, and emits no commands.
        read_ahead: As passed.
    """

    def __init__(self, channel: Channel, read_ahead: ReadAhead) -> None:
        provenance = ProvenanceLog()
        super().__init__(Context(provenance), provenance)
        self.silent = SilentRecorder(self.context, provenance)
        self.channel, self.read_ahead = channel, read_ahead
        self.id = channel.next_id()
        self._expected = read_ahead.continuations.expected
        strand = channel.strands.of_thread(self.id).id
        self._place, self._recent = self._with(strand), read_ahead.recent(strand)
        self._name = ContextName(self.id, channel.buffer.recordings)  # ends with the recorder, and so with its thread

    # ------------------------------------------------------------------------------------------------------- commands
    @property
    def place(self) -> Place:
        """The context, and the strand of the thread or of the task that runs in it."""
        task = running_task()
        return self._place if task is None else self._with(self.channel.strands.of_task(task).id)

    def _with(self, strand: int) -> Place:
        return self.id if strand == self.id else (self.id, strand)

    @property
    def reading(self) -> Place:
        """The `place`; in a thread that acts for a task, that of the task."""
        task = running_task() or acting.get()
        return self._place if task is None else self._with(self.channel.strands.of_task(task).id)

    def emit(self, command: Command, nbytes: int = 0, where: Where = None) -> None:
        """See `Channel.emit`."""
        self.channel.emit(self.place, command, nbytes, where)

    def ask(self, question: Command) -> Result:
        """Sends everything recorded and then the question, and returns its result."""
        (result,) = self.channel.ask(self.place, (question,))
        return result

    def note_together(self, values: Sequence[Handle]) -> None:
        """Notes the values of one call; see `ReadAhead.note_together`."""
        self.read_ahead.note_together(values, strand_of(self.place))

    def new_name(self) -> Name:
        """See `Channel.new_name`."""
        return self.channel.new_name()

    def apply(self, op: Op, inputs: Sequence[Any], attrs: Attrs = NO_ATTRS, where: Any = None) -> Any:
        if _silenced.get():
            return self.silent.apply(op, inputs, attrs, where)
        where = self.provenance.here() if where is None else where
        result = self.silent.apply(op, inputs, attrs, where)
        if result.__class__ is tuple:
            return self._apply_several(op, inputs, attrs, where, result)
        spec = result.spec
        if (spec.dtype in _EXACT or op is _CAST) and spec.size <= _SMALL and result.host is None:
            result.host = _computed(op, inputs, attrs)  # as on the server: IEEE 754 says how a cast rounds
        channel = self.channel
        try:
            ids = tuple([value if value.__class__ is Literal else value.name.id for value in inputs])
        except AttributeError:  # a string has no name: it is not on the server
            return self._apply_here(op, inputs, attrs, result)
        if running_task() is None:
            place, recent = self._place, self._recent
        else:
            place = self.place
            recent = self.read_ahead.recent(strand_of(place))
        expected = self._expected
        if expected and (here := expected.get(place)) and not self.recorded:
            foreseen = here.pop(key_of(op.name, attrs, ids), None)
            if foreseen is not None:
                result.name, result.host = foreseen.name, foreseen.host if result.host is None else result.host
                result.ahead = foreseen.ahead
                return result
        result.name = name = Name(channel.next_id(), channel.buffer.released)
        if op.dynamic:
            (answer,) = channel.ask(place, (commands.Call(op.name, ids, (name.id,), attrs),))
            assert isinstance(answer, Specs)
            (result.spec,) = answer.specs
        else:
            channel.emit_call(place, where, op.name, attrs, ids, name.id)
        recent.append(ref(result))  # as `ReadAhead.note`, whose call would take longer
        if len(recent) >= REMEMBERED:
            self.read_ahead.shorten(recent)
        return result

    def _apply_several(
        self, op: Op, inputs: Sequence[Any], attrs: Attrs, where: Any, results: tuple[Handle, ...]
    ) -> tuple[Handle, ...]:
        """Emits the command of an op of several results, and returns them."""
        ids = tuple([value if value.__class__ is Literal else value.name.id for value in inputs])
        for result in results:
            result.name = self.new_name()
        command = commands.Call(op.name, ids, tuple([result.name.id for result in results]), attrs)
        if op.dynamic:
            answer = self.ask(command)
            assert isinstance(answer, Specs)
            for result, spec in zip(results, answer.specs, strict=True):
                result.spec = spec
        else:
            self.emit(command, where=where)
        self.note_together(results)
        return results

    def _apply_here(self, op: Op, inputs: Sequence[Any], attrs: Attrs, result: Handle) -> Handle:
        """Runs an op on strings in this process; a result that is no string becomes a constant on the server."""
        unknown = [value for value in inputs if value.__class__ is not Literal and value.host is None]
        if unknown:
            fetched = self.channel.ask(self.place, [commands.Fetch(value.name.id) for value in unknown])
            for value, answer in zip(unknown, fetched, strict=True):
                value.host = answer.array  # type: ignore[union-attr]  # what a Fetch answers
        arrays = [value.array if value.__class__ is Literal else value.host for value in inputs]
        result.host = evaluate(bind(op, tuple([value.spec for value in inputs]), attrs), arrays)
        result.spec = Spec.of(result.host.shape, result.host.dtype)
        if result.spec.dtype != STRING:
            result.name = self.new_name()
            self.emit(commands.Constant(result.name.id, result.host), result.host.nbytes)
        return result

    # ----------------------------------------------------------------------------------- what the server runs by itself
    def replaying(self, decisions: Sequence[tuple[int, int]] | None) -> SilentRecorder:
        """Returns a recorder for the steps of a command that takes functions.

        Args:
            decisions: The decisions of the server's loops and conditions, as (value, times in a row). None: not known;
                then, if nothing records, a loop is followed by its specs only, and not iteration by iteration.
        """
        undecided = Mode.UNROLLS if self.recorded else Mode.CONNECTS
        mode = undecided if decisions is None else Mode.REPLAYS
        values = (value for value, times in decisions or () for _ in range(times))
        return SilentRecorder(self.context, self.provenance, mode, values)

    def silently(self, compute: Callable[[SilentRecorder], T]) -> T:
        """Runs a function that asks a tape; ops of the program's gradient functions in it are not emitted."""
        # Python itself leaves the context at the end of `run`, whatever interrupts it.
        return contextvars.copy_context().run(self._silenced, compute)

    def _silenced(self, compute: Callable[[SilentRecorder], T]) -> T:
        _silenced.set(True)
        return compute(self.silent)

    def follows(self, inputs: Sequence[Any]) -> bool:
        """Whether an active tape or accumulator tracks an input, or would track it when it is read."""
        if self.context.accumulators:
            return True
        return any(
            value.uid in tape.tracked
            or (
                isinstance(value, Variable)
                and (value.uid in tape.variables or (tape.watch_accessed and value.trainable))
            )
            for tape in self.context.tapes
            for value in inputs
        )


def foreign_handle(fact: Mapping[str, Any]) -> Handle:
    """Returns the handle of a value of another client of the session; nothing here releases it.

    Args:
        fact: The server's facts about it.
    """
    return Handle(Spec.of(tuple(fact["shape"]), dtype_of(fact["dtype"])), Name(fact["id"], []))


def id_of(value: Any) -> int:
    """Returns the server's id of a handle, slices or a variable."""
    return (value.value if isinstance(value, Variable) else value).name.id  # type: ignore[no-any-return]  # a Name's


def without_strings(query: GradientQuery) -> GradientQuery:
    """Returns the question without targets that are strings, which are not on the server."""
    numeric = [i for i, target in enumerate(query.targets) if target.spec.dtype != object]
    if len(numeric) == len(query.targets):
        return query
    cotangents = query.output_gradients
    return replace(
        query,
        targets=[query.targets[i] for i in numeric],
        output_gradients=None if cotangents is None else [cotangents[i] for i in numeric],
    )


def query_fields(query: GradientQuery) -> tuple[Any, ...]:
    """Returns the common fields of gradient commands, which follow the command's own id, in order."""
    cotangents = query.output_gradients
    return (
        query.tape.name.id,
        tuple([id_of(target) for target in query.targets]),
        tuple([id_of(source) for source in query.sources]),
        None if cotangents is None else tuple([None if ct is None else id_of(ct) for ct in cotangents]),
        "zero" if query.zeros else "none",
        query.retain_tape,
    )


def _computed(op: Op, inputs: Sequence[Any], attrs: Attrs) -> HostArray | None:
    """Returns the result that the server will compute, if all inputs are known here, so that counters send nothing."""
    arrays = [value.array if value.__class__ is Literal else value.host for value in inputs]
    random = Trait.RANDOM in op.traits
    if not arrays or any(array is None for array in arrays) or op.expand is not None or op.dynamic or random:
        return None
    try:
        result = evaluate(bind(op, tuple([value.spec for value in inputs]), attrs), arrays)
    except TeletapeError:  # the server will report it
        return None
    for value in inputs:
        used(value)
    return result


def _check_values(bound: Bound, inputs: Sequence[Any]) -> None:
    """Raises the server's error for values that are known here, so that the program's own line raises it.

    The op's forward function checks them, with zeros that take no memory in place of unknown inputs.
    """
    arrays = [value.array if isinstance(value, Literal) else value.host for value in inputs]
    integers = [i for i in bound.op.refuses if bound.specs[i].dtype in INTEGER]
    if not integers or bound.price > _CHECKED or any(arrays[i] is None for i in integers):
        return
    for i, spec in enumerate(bound.specs):
        if arrays[i] is None:
            arrays[i] = np.broadcast_to(np.zeros((), spec.dtype), spec.shape)
    evaluate(bound, arrays)
