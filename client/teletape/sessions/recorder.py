"""A thread's recorder on this side of the wire: follows ops by their specs, and writes them down as commands."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from teletape_engine import commands
from teletape_engine.arrays import HostArray
from teletape_engine.catalogue.attributes import NO_ATTRS, Attrs
from teletape_engine.catalogue.binding import Bound, bind
from teletape_engine.catalogue.op import Op
from teletape_engine.catalogue.slices import GradientKind, SlicesValue, SparseGradient
from teletape_engine.catalogue.trait import Trait
from teletape_engine.commands.results import Made
from teletape_engine.derivatives.query import GradientQuery
from teletape_engine.recording.cotangents import Presence
from teletape_engine.recording.executor import translated
from teletape_engine.recording.recorder import Recorder, Share
from teletape_engine.recording.values import Literal, Variable, new_uid
from teletape_engine.spec import BOOL, INTEGER, DType, Spec

if TYPE_CHECKING:
    from teletape.sessions.remote import RemoteSession

_EXACT: Final = frozenset((BOOL, *INTEGER))  #: Dtypes in which this machine and the server cannot differ.
_SMALL: Final = 16  #: Results of at most so many elements are computed here too.
_JUDGED: Final = 1 << 20  #: Ops of a price up to so many bytes are tried here for values that they refuse.


class Name:
    """An id on the server, alive for as long as anything here holds this: then it joins the next batch's releases."""

    __slots__ = ("_released", "id")

    def __init__(self, id: int, released: deque[int]) -> None:
        self.id, self._released = id, released

    def __del__(self) -> None:
        self._released.append(self.id)


class Handle:
    """A value on the server: its spec, and its name there (None while nothing outside a rule has needed one).

    Attributes:
        uid: Which value it is to this side's tapes.
        name: What the server knows it by; a variable's is that of all its versions.
        host: The numbers, if they are known here.
    """

    __slots__ = ("__weakref__", "host", "name", "spec", "uid")

    def __init__(self, spec: Spec, name: Name | None = None, host: HostArray | None = None) -> None:
        self.spec, self.name, self.host = spec, name, host
        self.uid = new_uid()

    def alias(self, uid: int) -> Handle:
        """The same value under another uid."""
        made = Handle(self.spec, self.name, self.host)
        made.uid = uid
        return made


class Follower(Recorder):
    """A thread's recorder on this side: runs nothing, follows specs, and writes commands."""

    bare = Presence()

    def __init__(self, session: RemoteSession) -> None:
        super().__init__()
        self.session = session
        self.id = session.next_id()
        self._inside = False  # inside a rule or a composite: the server does the same by itself
        self._decided: Iterator[int] | None = None
        self.decides, self.outlines = False, True

    def run(self, bound: Bound, inputs: Sequence[Any]) -> Handle:
        if bound.op.refuses:
            _judge(bound, inputs)
        return Handle(bound.spec)

    def constant(self, array: HostArray) -> Handle:
        """A constant of a program: the server has it."""
        return Handle(Spec.of(array.shape, array.dtype), None, array)

    def assign(self, variable: Variable, value: Any, mode: str = "set", *rest: Any) -> None:
        """Inside a program: from here on its numbers are not known."""
        before: Handle = variable.value
        super().assign(variable, value, mode, *rest)
        variable.value = Handle(variable.spec, before.name)

    def number(self, number: Literal, dtype: DType) -> Handle:
        return Handle(Spec.of((), dtype))

    def full(self, spec: Spec, number: int) -> Handle:
        return Handle(spec)

    def ct(self, value: Any) -> GradientKind | SparseGradient:
        return (
            SparseGradient(value.values.spec, value.indices.spec, value.dense)
            if isinstance(value, SlicesValue)
            else GradientKind.DENSE
        )

    def answer(self, ct: Any, spec: Spec) -> Any:
        if isinstance(ct, SparseGradient):
            return SlicesValue(Handle(ct.values), Handle(ct.indices), ct.dense)
        return Handle(spec)

    def bare_tangent(self, bound: Bound, shares: Sequence[Share], inputs: Sequence[Any], result: Handle) -> Handle:
        return Handle(bound.spec)

    @contextmanager
    def replaying(self, decisions: Sequence[tuple[int, int]] | None) -> Iterator[None]:
        """As `inside`, of a flow: what the server decided, as (value, times in a row); None: not known.

        Without, and where nothing records, a loop is an outline; else it is followed iteration by iteration.
        """
        self.decides, self.outlines = decisions is not None, not self.recorded
        self._decided = (value for value, times in decisions or () for _ in range(times))
        try:
            with self.inside():
                yield
        finally:
            self.decides, self.outlines, self._decided = False, True, None

    def decide(self, value: Any) -> int:
        """As the server did."""
        assert self._decided is not None
        return next(self._decided)

    def follows(self, inputs: Sequence[Any]) -> bool:
        """Whether anything that records here follows one of them, or would once it is read."""
        if self.accumulators:
            return True
        return any(
            one.uid in tape.tracked
            or (isinstance(one, Variable) and (one.uid in tape.variables or (tape.watch_accessed and one.trainable)))
            for tape in self.tapes
            for one in inputs
        )

    @contextmanager
    def inside(self) -> Iterator[None]:
        """A block whose ops the server does by itself: they are followed, and no command is written."""
        before, self._inside = self._inside, True
        try:
            yield
        finally:
            self._inside = before

    def apply(self, op: Op, inputs: Sequence[Any], attrs: Attrs = NO_ATTRS, where: Any = None) -> Any:
        if self._inside:
            return super().apply(op, inputs, attrs, where)
        where = self.here() if where is None else where
        self._inside = True
        try:
            result = super().apply(op, inputs, attrs, where)
        finally:
            self._inside = False
        if result.spec.dtype in _EXACT and result.spec.size <= _SMALL and result.host is None:
            result.host = _computed(op, inputs, attrs)
        result.name = name = self.session.new_name()
        names = tuple([one if one.__class__ is Literal else one.name.id for one in inputs])
        call = commands.Call(op.name, names, (name.id,), attrs)
        if op.dynamic:
            made = self.session.ask(self, call)
            assert isinstance(made, Made)
            (result.spec,) = made.specs
        else:
            self.session.emit(self, call, where=where)
        return result


def _computed(op: Op, inputs: Sequence[Any], attrs: Attrs) -> HostArray | None:
    """What the server will compute too, of integers and truth values known here: counting a loop asks nobody."""
    arrays = [one.array if one.__class__ is Literal else one.host for one in inputs]
    if not arrays or any(one is None for one in arrays) or op.expand is not None or op.dynamic:
        return None
    if Trait.RANDOM in op.traits:
        return None
    try:
        with np.errstate(all="ignore"):
            return np.asarray(bind(op, tuple([one.spec for one in inputs]), attrs).forward(np, *arrays))
    except Exception:  # the server will say why
        return None


def _judge(bound: Bound, inputs: Sequence[Any]) -> None:
    """Raises what the server would raise for values that are known here, on the program's own line.

    The forward itself judges, with zeros of no memory for the inputs that are not known.
    """
    arrays = [one.array if isinstance(one, Literal) else one.host for one in inputs]
    integers = [i for i in bound.op.refuses if bound.specs[i].dtype in INTEGER]
    if not integers or bound.price > _JUDGED or any(arrays[i] is None for i in integers):
        return
    for i, spec in enumerate(bound.specs):
        if arrays[i] is None:
            arrays[i] = np.broadcast_to(np.zeros((), spec.dtype), spec.shape)
    try:
        with np.errstate(all="ignore"):
            bound.forward(np, *arrays)
    except Exception as error:
        raise translated(error, bound) from None


def id_of(one: Any) -> int:
    """The id that the server knows a handle, slices or a variable by."""
    return (one.value if isinstance(one, Variable) else one).name.id  # type: ignore[no-any-return]  # a Name's


def query_fields(query: GradientQuery) -> tuple[Any, ...]:
    """The fields that every gradient command has after its own id, in their order."""
    weights = query.output_gradients
    return (
        query.tape.name.id,
        tuple([id_of(target) for target in query.targets]),
        tuple([id_of(source) for source in query.sources]),
        None if weights is None else tuple([None if weight is None else id_of(weight) for weight in weights]),
        "zero" if query.zeros else "none",
        query.retain_tape,
    )
