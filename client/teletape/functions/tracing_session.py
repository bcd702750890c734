"""Writing a Python function down as a program: a session without values, in which an op becomes a step.

The tapes, rules and drivers are those of every session, on symbols: a whole training step, its tape and its
assignments, becomes one program.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from teletape import call_site, environment
from teletape.functions.program_builder import TracedStep, ordered, written_down
from teletape.sessions.current import current, inside
from teletape.sessions.session import Session, taking
from teletape.tensors.tensor import EagerTensor
from teletape_engine import commands
from teletape_engine.arrays import HostArray
from teletape_engine.catalogue.attributes import Attrs
from teletape_engine.catalogue.binding import Bound, bind
from teletape_engine.catalogue.namespace import ops
from teletape_engine.catalogue.op import Op
from teletape_engine.catalogue.operand import Operand
from teletape_engine.catalogue.slices import SlicesValue, SparseGradient
from teletape_engine.commands import Command
from teletape_engine.errors import InvalidArgumentError
from teletape_engine.programs.program import FLOWS, Program, written
from teletape_engine.recording.cotangents import Algebra, Operands
from teletape_engine.recording.custom import ProgramGradient, record_custom
from teletape_engine.recording.executor import translated
from teletape_engine.recording.recorder import Mode, Share
from teletape_engine.recording.spec_recorder import SpecRecorder
from teletape_engine.recording.values import Literal, SpecValue, Variable, new_uid
from teletape_engine.spec import DType, Spec, weak_dtype

_FOLDED: Final = 1 << 16  #: What is computed from constants alone, and takes at most so many bytes, is one.
_FULL: Final = 1 << 10  #: Zeros and ones of at most so many elements are constants.
MOST_STEPS: Final = 16_384  #: A list in a frame has no more members.


#: A line as text, once: a body that is unrolled records the same ones again and again.
_placed: Final = functools.lru_cache(4096)(call_site.shown_call_site)


class NotTraceable(BaseException):
    """What was traced needs a value that a trace does not have. No Exception: programs must not catch it.

    Attributes:
        why: What the function does, as "reads the value of a tensor".
        advice: What to use instead.
        where: The program's line that does it.
        once: Whether it does so the first time alone.
    """

    def __init__(self, why: str, advice: str, *, once: bool = False) -> None:
        super().__init__(why, advice)
        self.why, self.advice, self.once = why, advice, once
        self.where = call_site.call_site_text(call_site.caller() if environment.call_sites() else None)


class Symbol(SpecValue):
    """A value of a trace: its spec, and its number there; its elements where they are known.

    Attributes:
        uid: Which value it is to tapes.
        at: Its place among the trace's values; None for a constant.
        name: What `print` calls it.
        host: A constant's elements.
    """

    __slots__ = ("at", "host", "name")

    def __init__(self, spec: Spec, at: int | None, name: str, host: HostArray | None = None) -> None:
        super().__init__(spec)
        self.at, self.name, self.host = at, name, host

    def copy(self) -> Symbol:
        """The same under a uid of its own."""
        return Symbol(self.spec, self.at, self.name, self.host)


class Capture(NamedTuple):
    """What a program takes beside its arguments, bound anew at each call.

    Attributes:
        kind: tensor, variable, or number (a draw's key and counter).
        thing: An EagerTensor, a graph.Variable, or (a function that draws, which of its two numbers).
        symbol: What stands for it in the trace.
    """

    kind: str
    thing: Any
    symbol: Any


def bound(captures: Sequence[Capture]) -> list[Any]:
    """The captures as the current session's values."""
    draws: dict[int, Any] = {}
    found: list[Any] = []
    for kind, thing, _ in captures:
        if kind == "tensor":
            found.append(thing.operand())
        elif kind == "variable":
            found.append(thing)
        else:
            draw, which = thing
            drawn = draws.get(id(draw)) or draws.setdefault(id(draw), current().draw(draw))
            found.append(Literal(drawn[which]) if isinstance(drawn[which], int) else drawn[which].operand())
    return found


class Tracer(SpecRecorder):
    """A recorder that writes each op down as a step."""

    mode = Mode.WRITES

    def __init__(self, session: TracingSession) -> None:
        super().__init__()
        self.session = session
        self.locate = call_site.caller if environment.call_sites() else None

    @property
    def bare(self) -> Algebra:  # type: ignore[override]  # here nothing is computed, recorded or not
        return Operands(self)

    @property
    def recorded(self) -> bool:
        """Always: what a question to a tape computes are steps, too."""
        return True

    def symbol(self, spec: Spec, name: str) -> Symbol:
        """A new value of the program."""
        self.session.count += 1
        return Symbol(spec, self.session.count - 1, name)

    def write(
        self, command: Command | None, inputs: Sequence[Any], outputs: Sequence[Symbol], writes: Any = ()
    ) -> None:
        """Notes a step.

        Raises:
            NotTraceable: There are too many.
        """
        if len(self.session.steps) >= MOST_STEPS:
            raise NotTraceable(
                f"has more than {MOST_STEPS:,} steps", "a loop of Teletape's (tf.while_loop, tf.scan, tf.map_fn)"
            )
        taken = tuple([_taken(one) for one in inputs])
        self.session.steps.append(TracedStep(command, taken, tuple([one.at for one in outputs]), tuple(writes)))  # type: ignore[misc]

    def _bind(self, op: Op, inputs: Sequence[Any], attrs: Attrs) -> tuple[Sequence[Any], Bound]:
        """As outside, but what does not fit is the error that TensorFlow raises while it builds a graph.

        Raises:
            TypeError: Dtypes that do not fit.
            ValueError: Shapes that do not.
        """
        try:
            return super()._bind(op, inputs, attrs)
        except InvalidArgumentError as error:
            dtypes = {one.spec.dtype for one in inputs if isinstance(one, Symbol)}
            raise (TypeError if len(dtypes) > 1 and "cannot compute" in error.message else ValueError)(
                f"{error.message} (op {op.name!r}, while a function is traced)"
            ) from None

    def run(self, bound: Bound, inputs: Sequence[Any]) -> Symbol:
        op = bound.op
        hosts = [one.array if isinstance(one, Literal) else one.host for one in inputs]
        known = not any(one is None for one in hosts)
        if known and bound.price <= _FOLDED:
            return self.constant(_computed(bound, hosts), op.name)
        if op.dynamic:
            raise NotTraceable(
                f"uses {op.name!r}, whose result's shape depends on values",
                "tf.where with three arguments, or a mask that multiplies",
            )
        result = self.symbol(bound.spec, f"{op.name}:0")
        where = _placed(self.here())
        self.write(commands.Call(op.name, (), (), bound.attrs, where), inputs, (result,))
        return result

    def constant(self, array: HostArray, name: str = "Const") -> Symbol:
        """A constant of the program."""
        return Symbol(Spec.of(array.shape, array.dtype), None, f"{name}:0", array)

    def number(self, number: Literal, dtype: DType) -> Symbol:
        return self.constant(np.asarray(number.array, dtype))

    def full(self, spec: Spec, number: int) -> Symbol:
        if spec.size <= _FULL:
            return self.constant(np.full(spec.shape, number, spec.dtype))
        op, scalar = ops.fill, self.constant(np.asarray(number, spec.dtype))
        attrs = op.attrs({"shape": spec.shape})
        return self.run(bind(op, (scalar.spec,), attrs), (scalar,))

    def ct(self, value: Any) -> Any:
        if isinstance(value, SlicesValue):
            return SparseGradient(Operand(self, value.values), Operand(self, value.indices), value.dense)
        return Operand(self, value)

    def answer(self, ct: Any, spec: Spec) -> Any:
        if isinstance(ct, SparseGradient):
            return SlicesValue(ct.values.value, ct.indices.value, ct.dense)
        return ct.value.alias(new_uid())

    def bare_tangent(self, bound: Bound, shares: Sequence[Share], inputs: Sequence[Any], result: Any) -> Any:
        inside = self.tapes, self.accumulators
        self.tapes, self.accumulators = [], []  # nothing lies outside: but here it is steps all the same
        try:
            kept = [one.array if isinstance(one, Literal) else Operand(self, one) for one in (*inputs, result)]
            total: Any = None
            for rule, t in shares:
                share = rule(Operand(self, t), kept)
                total = share if total is None else total + share
            return total.value
        finally:
            self.tapes, self.accumulators = inside

    def decide(self, value: Any) -> int:
        """Raises: what runs in a trace decides nothing.

        Raises:
            NotTraceable: Always.
        """
        raise NotTraceable("differentiates a loop or a condition inside the function", "the tape outside the function")

    def same(self, before: Any, after: Any) -> None:
        """Tells what is active in the trace that `after` is what `before` was: an identity, without a step."""
        plan = bind(ops.identity, (before.spec,)).plan(1)
        for tape in self.tapes:
            if before.uid in tape.tracked:
                tape.nodes.append((plan, (before.uid,), after.uid, (), self.here()))
                tape.tracked[after.uid] = None
        for accumulator in self.accumulators:
            if (tangent := accumulator.tangent(before)) is not None:
                accumulator.follow(after, tangent)

    # ----------------------------------------------------------------------------------------------------- variables
    def slot(self, variable: Variable) -> Variable:
        """What stands for a variable here: the same one to tapes, with a symbol for what it holds."""
        known = self.session.variables.get(variable.uid)
        if known is None:
            symbol = self.session.capture("variable", variable, variable.spec, variable.name or "Variable:0")
            known = Variable(symbol, trainable=variable.trainable, name=variable.name, uid=variable.uid)
            known.owner = variable.owner
            self.session.variables[variable.uid] = known
            self.session.stale.add(variable.uid)
        return known

    def stand_in(self, variable: Variable) -> tuple[Variable, Symbol]:
        """A variable of the trace's own for one among the arguments, and the argument."""
        symbol = self.symbol(variable.spec, variable.name or "Variable:0")
        made = Variable(symbol, trainable=variable.trainable, name=variable.name)
        self.session.variables[made.uid] = made
        self.session.stale.add(made.uid)
        self.session.note(made.uid, symbol)
        return made, symbol

    def place(self, variable: Variable) -> int:
        """The number of the program's input that stands for a variable."""
        self.slot(variable)
        at = self.session.captured(variable.uid).at
        assert at is not None
        return at

    def read(self, variable: Variable) -> Any:
        slot = self.slot(variable)
        if variable.uid in self.session.stale:
            self.session.stale.discard(variable.uid)
            slot.value = self.symbol(slot.spec, slot.value.name)
            self.write(None, (self.place(variable),), (slot.value,))
        return super().read(slot)

    def assign(self, variable: Variable, value: Any, mode: str = "set", *indices: Any) -> None:
        if isinstance(value, Literal):
            value = self.number(value, weak_dtype(value.spec, variable.spec.dtype))
        slot, at = self.slot(variable), self.place(variable)
        command = commands.Assign("", value, mode, *[None] * len(indices))
        self.write(command, (at, value, *indices), (), (at,))
        self.written(slot)

    def written(self, slot: Variable) -> None:
        """From now on the variable holds what is not known before it is read."""
        slot.version += 1
        self.session.stale.add(slot.uid)


def _taken(one: Any) -> Any:
    """An input as a step keeps it: a place, a Literal, or a constant's elements."""
    if isinstance(one, Symbol):
        return one.host if one.at is None else one.at
    return one


def _computed(bound: Bound, arrays: Sequence[Any]) -> HostArray:
    try:
        with np.errstate(all="ignore"):
            return np.asarray(bound.forward(np, *arrays))
    except Exception as error:
        raise translated(error, bound) from None


class TracingSession(Session):
    """What a thread's session is while it traces: its values are symbols.

    Args:
        outer: The session that the program is for: the program's own, or that of another trace around this one.
        gradient_program: Traces the gradient function of a custom gradient; see `trace.gradient_program`.

    Attributes:
        captures: What was taken from outside, in order.
        variables_made: How many variables were made meanwhile; they live in the program's session.
        steps: What was written down.
        count: Values so far.
        variables: What stands for each variable here, by uid.
        stale: Those that have to be read anew before they are used.
        kept: Traces that hold good only inside this one.
        deferred: What each call does with values once it has them, and the structures of symbols that it needs; None:
            nothing may be.
    """

    local = False
    tracing = True

    def __init__(self, outer: Session, gradient_program: Callable[..., tuple[Any, list[bool]]]) -> None:
        super().__init__()
        self.outer = outer
        self._gradient_program = gradient_program
        self.declarations = outer.declarations
        self.captures: list[Capture] = []
        self.variables_made = 0
        self.kept: dict[Any, Any] = {}
        self.deferred: list[tuple[Callable[[Any], None], Any]] | None = None
        self.steps: list[TracedStep] = []
        self.count = 0
        self.variables: dict[int, Variable] = {}
        self.stale: set[int] = set()
        self._captured: dict[Any, Symbol] = {}
        self.departures = outer.departures

    @property
    def home(self) -> Session:
        return self.outer.home

    def recorder(self) -> Tracer:
        return self._thread.recorder  # type: ignore[no-any-return]  # thread locals are untyped

    def _new_recorder(self) -> Tracer:
        return Tracer(self)

    # ------------------------------------------------------------------------------------------------ what is outside
    def adopt(self, value: Any, owner: Session) -> Any | None:
        if owner is not self.outer:
            value = self.outer.adopt(value, owner)
            if value is None:
                return None
        if value.spec.dtype == object:
            return self.constant(self.outer.fetch(value))
        known = self._captured.get(value.uid)
        return known or self.capture("tensor", value, value.spec, "captured:0")

    def capture(self, kind: str, thing: Any, spec: Spec, name: str) -> Symbol:
        """A symbol for what is bound at each call."""
        symbol = self.recorder().symbol(spec, name)
        if kind == "tensor":
            self._captured[thing.uid] = symbol
            thing = EagerTensor(thing, self.outer)
        elif kind == "variable":
            self._captured[thing.uid] = symbol
        self.captures.append(Capture(kind, thing, symbol))
        return symbol

    def note(self, uid: int, symbol: Symbol) -> None:
        """Lets `symbol` stand for what has that uid."""
        self._captured[uid] = symbol

    def captured(self, uid: int) -> Symbol:
        """The symbol of something captured."""
        return self._captured[uid]

    def draw(self, next_draw: Callable[[], tuple[Any, Any]]) -> tuple[EagerTensor, EagerTensor]:
        """The key and counter of a random op: other ones at each call."""
        spec = Spec.of((), np.dtype(np.int32))
        first, second = (self.capture("number", (next_draw, i), spec, "seed:0") for i in (0, 1))
        return EagerTensor(first, self), EagerTensor(second, self)

    def custom(
        self, inputs: Sequence[Any], outputs: Sequence[Any], label: str, function: Callable[..., Any]
    ) -> Sequence[Any]:
        if not inputs or not outputs:
            return outputs
        traced, has_gradient = self._gradient_program(
            function, [one.spec for one in outputs], [one.spec for one in inputs]
        )
        others, tracer = traced.bound(), self.recorder()
        fields = {"has_gradient": tuple(has_gradient), "results": len(outputs), "label": label}
        self._thread.recorder = self._new_recorder()  # a step of the program, whatever tapes of the trace are active
        try:
            made = self.flow(commands.CustomCall, [traced.program], [*inputs, *outputs, *others], **fields)
        finally:
            self._thread.recorder = tracer
        for before, after in zip(outputs, made, strict=True):
            tracer.same(before, after)
        values = [tracer.read(one) if isinstance(one, Variable) else one for one in others]
        program = ProgramGradient(traced.program, has_gradient), values
        record_custom(tracer.tapes, inputs, made, tag=None, label=label, program=program, where=tracer.here())
        return made

    def later(self, action: Callable[[Any], None], structure: Any) -> None:
        """Has each call do this with the values of a structure of tensors."""
        if self.deferred is None:
            raise NotTraceable("prints in a loop, a branch or a gradient", "it where its values have left those")
        self.deferred.append((action, structure))

    # ---------------------------------------------------------------------------------------------------- the session
    def constant(self, array: HostArray) -> Symbol:
        return self.recorder().constant(array)

    def variable(self, value: Any, *, trainable: bool, name: str) -> Variable:
        self.variables_made += 1
        home = self.home
        initial = self._at_once(value) if value.host is None else home.constant(np.array(value.host))
        return home.variable(initial, trainable=trainable, name=name)

    def _at_once(self, symbol: Symbol) -> Any:
        """What a symbol stands for, computed now: it may depend on nothing that only a call has."""
        needed: set[Any] = {symbol.at}
        kept: list[TracedStep] = []
        for step in reversed(self.steps):
            if not needed.isdisjoint(step.outputs):
                kept.insert(0, step)
                needed.update([one for one in step.inputs if one.__class__ is int])
        used = [one for one in self.captures if one.symbol.at in needed]
        known = {one.symbol.at for one in used}.union(*[step.outputs for step in kept])
        written_to = {place for step in self.steps for place in step.writes}
        outer = any(one.kind == "tensor" and one.thing.session.tracing for one in used)
        if needed - known or needed & written_to or outer:
            raise NotTraceable(
                "makes a variable of what is computed from an argument",
                "a variable made before, or of plain numbers",
                once=True,
            )
        program = written_down(ordered(kept, [symbol.at]), [one.symbol for one in used], [symbol])
        with inside(None):
            [found] = self.home.flow(commands.CallFunction, [program], bound(used))
        return found

    def assign(self, variable: Variable, value: Any, mode: str, *rest: Any) -> None:
        self.recorder().assign(variable, value, mode, *rest)

    def fetch(self, value: Any) -> HostArray:
        if isinstance(value, Symbol) and value.host is not None:
            return value.host
        raise NotTraceable(
            "reads a value",
            "tf.cond or tf.where for `if`, tf.while_loop for `while`, tf.print for print; or return the tensor and "
            "read it outside",
        )

    def flow(
        self, command: type[Command], programs: Sequence[Program], inputs: Sequence[Any], **fields: Any
    ) -> list[Any]:
        tracer, made = self.recorder(), taking(command, programs, **fields)
        slots = [tracer.slot(one) if isinstance(one, Variable) else one for one in inputs]
        if (
            tracer.tapes or tracer.accumulators
        ):  # a tape of this trace follows it: its steps become steps of this program
            return [tracer.as_value(result) for result in FLOWS[command](tracer, made, programs, slots)]
        recorder = SpecRecorder()
        given = [Variable(one.value, trainable=False) if isinstance(one, Variable) else one for one in slots]
        specs = [_strong(one.spec) for one in FLOWS[command](recorder, made, programs, given)]
        results = [tracer.symbol(spec, f"{made.verb}:0") for spec in specs]
        taken = [tracer.place(one) if isinstance(one, Variable) else one for one in slots]
        changed = sorted(written(made, programs))
        tracer.write(made, taken, results, [taken[i] for i in changed])
        for i in changed:
            tracer.written(slots[i])
        return results

    # ------------------------------------------------------------------------------------------------------ the result
    def program(self, arguments: Sequence[Symbol], results: Sequence[Symbol]) -> Program:
        """What was traced, from these arguments and the captures to these results; what leads nowhere is left out."""
        steps = ordered(self.steps, [one.at for one in results])
        return written_down(steps, [*arguments, *(one.symbol for one in self.captures)], results)


def _strong(spec: Any) -> Spec:
    return spec if isinstance(spec, Spec) else Spec.of((), weak_dtype(spec, None))
