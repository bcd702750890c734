"""Where the SDK's values live: the seam between the TensorFlow-shaped surface and the engine, and its in-process side.

A session gives each thread a recorder: the engine's own (`Executor`) when it is in this process, one without arrays
(`teletape.sessions.remote.Follower`) when it is on a server. Everything above is the same for both.
"""

from __future__ import annotations

import os
import threading
import warnings
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final, Self, TypeAlias

from teletape import call_site
from teletape.call_site import placed
from teletape_engine import commands
from teletape_engine.arrays import HostArray
from teletape_engine.catalogue.op import CATALOGUE
from teletape_engine.checking.gradient_check import check_tape
from teletape_engine.commands import Command
from teletape_engine.derivatives.backward import Stop, declare
from teletape_engine.derivatives.finite_differences import Report, Settings
from teletape_engine.derivatives.gradient import Answers, gradient
from teletape_engine.diagram.facts import Size, diagram
from teletape_engine.errors import UnimplementedError
from teletape_engine.explain.explain import explain, numbers
from teletape_engine.explain.explanation import Explanation
from teletape_engine.programs.program import FLOWS, Program
from teletape_engine.recording.accumulators import Accumulator
from teletape_engine.recording.custom import Custom, ProgramGradient, Watcher, record_custom
from teletape_engine.recording.executor import Executor
from teletape_engine.recording.memory import Footprint, footprint
from teletape_engine.recording.provenance import Departures, Trail
from teletape_engine.recording.recorder import Recorder
from teletape_engine.recording.tape import Tape
from teletape_engine.recording.values import Literal, SlicesValue, Value, Variable, new_uid
from teletape_engine.session.session import Session as EngineSession
from teletape_engine.spec import Spec, weak_dtype

_TRAILS: Final = 32  #: Threads, the latest, of which it is remembered what no tape followed.

Recorded: TypeAlias = Any  # engine Value, remote Handle


class Session(ABC):
    """Values, variables and tapes of one program.

    Attributes:
        local: Whether it is in this process, where every op runs at once.
        tracing: Whether ops are only written down here, as steps of a program.
        closed: Why it can no longer be used, or None.
    """

    local: bool
    tracing: bool = False
    closed: str | None = None

    def __init__(self) -> None:
        self.no_gradient: set[str] = set()
        self.gradients: dict[str, Callable[[Stop], Answers]] = {}
        self._thread = threading.local()
        self.departures = Departures()
        self.numbers = self.departures.numbers
        self.trails: deque[Trail] = deque(maxlen=_TRAILS)

    @property
    def home(self) -> Session:
        """The session that the program is connected to: this one, or behind a trace the one that it is made for."""
        return self

    def adopt(self, value: Recorded, owner: Session) -> Recorded | None:
        """Another session's value as one of this session's; None: it cannot be one."""
        return None

    @abstractmethod
    def flow(
        self, command: type[Command], programs: Sequence[Program], inputs: Sequence[Any], **fields: Any
    ) -> list[Recorded]:
        """Runs a command that takes programs, and gives its results.

        Args:
            command: Its class, as `commands.CallProgram`.
            programs: Those that it takes, in the order of its fields; a last field of several takes what is left.
            inputs: Recorded values, Literals and variables.
            **fields: Its other fields, `outputs` apart.
        """

    @abstractmethod
    def recorder(self) -> Recorder:
        """The calling thread's recorder: each thread is a context of its own."""

    @abstractmethod
    def constant(self, array: HostArray) -> Recorded:
        """A host array, given up by the caller, as a value."""

    @abstractmethod
    def variable(self, value: Recorded, *, trainable: bool, name: str) -> Variable:
        """A variable that holds `value`."""

    @abstractmethod
    def assign(self, variable: Variable, value: Recorded | Literal, mode: str, indices: Recorded | None = None) -> None:
        """Its next version; `mode` and `indices` as in the command. Shapes and dtypes are checked by the caller."""

    @abstractmethod
    def fetch(self, value: Recorded) -> HostArray:
        """The numbers, not to be written into."""

    def fetch_all(self, values: Sequence[Recorded]) -> list[HostArray]:
        """The numbers of several values, in one round trip."""
        return [self.fetch(value) for value in values]

    def part(self, slices: SlicesValue, which: str) -> Recorded:
        """The `values` or `indices` of slices that a tape answered with."""
        return slices.values if which == "values" else slices.indices

    @abstractmethod
    def open_tape(self, tape: Tape) -> None:
        """Makes a new tape active in this thread."""

    @abstractmethod
    def tape_event(self, event: str, tape: Tape, values: Sequence[Any] = ()) -> None:
        """`watch`, `pause`, `resume` or `reset`."""

    def gradient(
        self,
        tape: Tape,
        targets: Sequence[Any],
        sources: Sequence[Any],
        seeds: Sequence[Any] | None,
        zeros: bool,
        more: bool = False,
    ) -> list[Any]:
        """See `teletape_engine.derivatives.gradient`."""
        return gradient(
            self.recorder(),
            tape,
            targets,
            sources,
            seeds=seeds,
            zeros=zeros,
            no_gradient=frozenset(self.no_gradient),
            registered=frozenset(self.gradients),
            custom=self.answers,
            more=more,
        )

    def question(
        self,
        compute: Callable[[Recorder], list[Any]],
        command: Callable[[Sequence[Any], Sequence[str]], Command],
    ) -> list[Any]:
        """What a tape answers: computed here, or foreseen here and asked of a server.

        Args:
            compute: Asks the tape on a recorder, with arrays or without.
            command: The command that asks a server, for these ids and kinds of the answers.
        """
        return compute(self.recorder())

    @abstractmethod
    def open_accumulator(self, accumulator: Accumulator, pairs: Sequence[tuple[Any, Any]]) -> None:
        """Makes a new accumulator active in this thread; it has been given these (primal, tangent)."""

    @abstractmethod
    def accumulator_event(self, event: str, accumulator: Accumulator, pairs: Sequence[tuple[Any, Any]] = ()) -> None:
        """`close` or `resume`, where it has been given these (primal, tangent) too."""

    def jvp(self, accumulator: Accumulator, targets: Sequence[Any]) -> list[Any]:
        """The tangents of recorded values and variables, None where there is none."""
        return [accumulator.tangent(target) for target in targets]

    def explain(self, tape: Tape, targets: Sequence[Any], sources: Sequence[Any]) -> list[Explanation]:
        """See `teletape_engine.explain.explain`. The tape may have answered already."""
        found = self._structural(tape, targets, sources)
        return [one.placed(placed) for one in self._with_numbers(tape, targets, sources, found)]

    def _structural(self, tape: Tape, targets: Sequence[Any], sources: Sequence[Any]) -> list[Explanation]:
        """What structure alone tells."""
        return explain(
            tape,
            targets,
            sources,
            trails=list(self.trails),
            departures=self.departures,
            no_gradient=self.no_gradient,
            registered=self.gradients,
            place=placed,
        )

    def _with_numbers(
        self, tape: Tape, targets: Sequence[Any], sources: Sequence[Any], found: list[Explanation]
    ) -> list[Explanation]:
        """What structure tells, and the reasons that only numbers tell, where there are numbers."""
        return found

    def diagram(self, tape: Tape, targets: Sequence[Any], sources: Sequence[Any], most: int) -> dict[str, Any]:
        """See `teletape_engine.diagram.facts`."""
        found = self._structural(tape, targets, sources) if targets else []
        reasons = {source.uid: one for source, one in zip(sources, found, strict=False)}
        return diagram(
            tape,
            targets=targets,
            sources=sources,
            explanations=reasons,
            size=self._size(),
            place=placed,
            most=most,
        )

    def _size(self) -> Size | None:
        """Tells the buffer that a kept value keeps alive; None: there are no arrays here."""
        return None

    def drawer(self, tape: Tape, targets: Sequence[Any], sources: Sequence[Any], most: int) -> Callable[[], str] | None:
        """Has somebody else draw the diagram, where Graphviz is not installed here; None: there is nobody."""
        return None

    def footprint(self, tape: Tape) -> Footprint:
        """The bytes that the tape keeps, and those that its end would free."""
        return Footprint(0, 0)

    def check_tape(self, tape: Tape, targets: Sequence[Any], sources: Sequence[Any], settings: Settings) -> Report:
        """See `teletape_engine.checking.gradient_check`."""
        raise UnimplementedError("check_gradients: a tape inside a traced function has no values to compare")

    def declare_no_gradient(self, op_type: str) -> None:
        """Ops of that type have no gradient from now on, for every tape asked from now on."""
        declare(self.no_gradient, op_type, self.gradients, CATALOGUE)

    def register_gradient(self, op_type: str, function: Callable[[Stop], Answers]) -> None:
        """Ops of that type, which have no gradient of their own, have this one, for every tape asked from now on."""
        declare(registered := set(self.gradients), op_type, self.no_gradient, CATALOGUE)
        self.gradients |= dict.fromkeys(registered - self.gradients.keys(), function)

    def custom(
        self, inputs: Sequence[Recorded], outputs: Sequence[Recorded], label: str, function: Callable[..., Answers]
    ) -> Sequence[Recorded]:
        """`outputs`, each just made by an identity, come from `inputs` by a call whose gradient is `function`.

        Args:
            inputs: Recorded values of differentiable dtypes.
            outputs: Recorded values.
            label: The call's name, for people.
            function: From the cotangent of each output to one, or None, for each input.

        Returns:
            What is to be known as the results from now on.
        """
        recorder = self.recorder()
        record_custom(recorder.tapes, inputs, outputs, tag=None, label=label, function=function, where=recorder.here())
        return outputs

    def stand_in(self, tag: Any, gradient: ProgramGradient, others: Sequence[Recorded]) -> Any:
        """Until what it gives is dropped, passes over rows do with a program what a custom call's function does.

        Args:
            tag: The call's.
            gradient: The program.
            others: What it takes behind the cotangents.
        """
        return None

    def answers(self, stop: Stop) -> Answers:
        """What the program's own function makes of the cotangents where a backward pass stops."""
        if isinstance(stop.bound, Custom):
            (function,) = stop.kept
            return function.array(stop.cts)  # type: ignore[no-any-return]  # the program's
        return self.gradients[stop.bound.op.op_type](stop)

    def draw(self, next_draw: Callable[[], tuple[Any, Any]]) -> tuple[Any, Any]:
        """The key and counter of a random op inside a traced function: two tensors, other ones at each call."""
        raise NotImplementedError  # pragma: no cover - a trace's alone

    @contextmanager
    def outside(self) -> Iterator[None]:
        """A block of this thread in which what has been recording so far sees nothing, but for `Watcher`s."""
        outer = self.recorder()
        spare: list[Any] = self._thread.__dict__.setdefault("spare", [])
        self._thread.recorder = inner = spare.pop() if spare else self._new_recorder()
        watchers = [one for one in outer.tapes if isinstance(one, Watcher)]
        for one in watchers:
            inner.open(one)
        try:
            yield
        finally:
            for one in watchers:
                inner.pause(one)
            self._thread.recorder = outer
            if not inner.recorded:
                spare.append(inner)

    def _new_recorder(self) -> Any:
        """A recorder, and with it a context, where nothing is active."""
        raise NotImplementedError  # pragma: no cover - abstract

    @property
    def requests(self) -> int:
        """Answers had from a server so far."""
        return 0

    def summary(self) -> str:
        """What this session has asked of a server, and which lines read values."""
        return "a session inside this process: no requests"

    def sync(self) -> None:  # noqa: B027  # inside this process there is nothing to wait for
        """Returns when everything recorded so far has happened; raises what failed meanwhile."""

    def cancel(self) -> None:  # noqa: B027  # inside this process an interrupt does it
        """Stops what a server computes for this session."""

    def close(self) -> None:  # noqa: B027  # nor anything to end
        """Ends the session."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


class LocalSession(Session):
    """A session inside this process: the engine's own recorders and arrays."""

    local = True

    def __init__(self, device: str | None = None) -> None:
        super().__init__()
        self._engine = EngineSession(device or "cpu")
        # TensorFlow says nothing of 1 / 0. Asking NumPy for silence at each op (errstate) costs 1.7 µs an op; a filter
        # costs nothing where nothing overflows.
        warnings.filterwarnings("ignore", category=RuntimeWarning, module=r"teletape_engine\.")

    def recorder(self) -> Recorder:
        try:
            return self._thread.recorder  # type: ignore[no-any-return]  # thread locals are untyped
        except AttributeError:
            self._thread.recorder = made = self._new_recorder()
            return made

    def _new_recorder(self) -> Executor:
        recorder = Executor(self._engine.backend, self._engine.memory)
        recorder.locate, recorder.departures = call_site.caller if call_site.told() else None, self.departures
        self.trails.append(recorder.trail)
        return recorder

    def _size(self) -> Size:
        base = self._engine.backend.base
        return lambda value: base(value.array)

    def footprint(self, tape: Tape) -> Footprint:
        return footprint(tape, self._engine.backend.base)

    def check_tape(self, tape: Tape, targets: Sequence[Any], sources: Sequence[Any], settings: Settings) -> Report:
        aside = Executor(self._engine.backend, self._engine.memory)
        declared = {"no_gradient": self.no_gradient, "registered": self.gradients}
        return check_tape(aside, tape, targets, sources, settings, **declared)

    def constant(self, array: HostArray) -> Value:
        if array.dtype == object:  # strings are no arrays of the engine; they only pass through
            return Value(array, Spec.of(array.shape, array.dtype), new_uid())
        value = self._engine.context(0).constant(array)
        self.recorder().arrived(value, array)
        return value

    def variable(self, value: Recorded, *, trainable: bool, name: str) -> Variable:
        made = Variable(value.alias(new_uid()), trainable=trainable, name=name)
        self.recorder().assigned(made, value.uid, "set")
        return made

    def assign(self, variable: Variable, value: Recorded | Literal, mode: str, indices: Recorded | None = None) -> None:
        self.recorder().assign(variable, value, mode, indices)

    def flow(
        self, command: type[Command], programs: Sequence[Program], inputs: Sequence[Any], **fields: Any
    ) -> list[Recorded]:
        recorder = self.recorder()
        made = FLOWS[command](recorder, taking(command, programs, **fields), programs, inputs)
        return [_own(recorder, one) for one in made]

    def fetch(self, value: Recorded) -> HostArray:
        if value.spec.dtype == object:
            return value.array  # type: ignore[no-any-return]  # strings stay on the host
        array = self._engine.backend.get(value.array)
        self.departures.note(value.uid, array, self.recorder().here())
        return array

    def _with_numbers(
        self, tape: Tape, targets: Sequence[Any], sources: Sequence[Any], found: list[Explanation]
    ) -> list[Explanation]:
        return numbers(self.recorder(), tape, targets, sources, found, registered=self.gradients)

    def open_tape(self, tape: Tape) -> None:
        self.recorder().open(tape)

    def tape_event(self, event: str, tape: Tape, values: Sequence[Any] = ()) -> None:
        recorder = self.recorder()
        if event == "watch":
            recorder.watch(tape, values)
        else:
            {"pause": recorder.pause, "resume": recorder.open, "reset": recorder.reset}[event](tape)

    def open_accumulator(self, accumulator: Accumulator, pairs: Sequence[tuple[Any, Any]]) -> None:
        self.recorder().accumulate(accumulator)

    def accumulator_event(self, event: str, accumulator: Accumulator, pairs: Sequence[tuple[Any, Any]] = ()) -> None:
        recorder = self.recorder()
        {"close": recorder.leave, "resume": recorder.accumulate}[event](accumulator)


def taking(command: type[Command], programs: Sequence[Any], **fields: Any) -> Command:
    """The command with these programs (or their ids) in its fields for them, and no inputs and outputs yet."""
    given, rest = {"inputs": (), "outputs": ()} | fields, list(programs)
    for name in commands.TAKES[command.verb]:
        many = str(command.__dataclass_fields__[name].type).startswith("tuple")  # type: ignore[attr-defined]
        given[name] = tuple(rest) if many else rest.pop(0)
    return command(**given)


def _own(recorder: Recorder, one: Any) -> Recorded:
    return recorder.number(one, weak_dtype(one.spec, None)) if isinstance(one, Literal) else one


_current: Session | None = None
_lock = threading.Lock()
_traces = 0  # threads that are tracing: where none is, nobody looks for them
_thread = threading.local()


def current() -> Session:
    """The program's session; the first use makes it from the environment: TELETAPE_URL, or this process."""
    if _traces:
        tracing: Session | None = getattr(_thread, "session", None)
        if tracing is not None:
            return tracing
    session = _current
    return session if session is not None else _first()


@contextmanager
def inside(session: Session | None) -> Iterator[None]:
    """A block in which `session` is this thread's current one; None: the program's again."""
    global _traces
    before, depth = getattr(_thread, "session", None), within()
    with _lock:
        _traces += 1
    _thread.session, _thread.depth = session, depth + (session is not None)
    try:
        yield
    finally:
        _thread.session, _thread.depth = before, depth
        with _lock:
            _traces -= 1


def within() -> int:
    """How many traces this thread is in, those that a block of `inside(None)` has left counted too."""
    return getattr(_thread, "depth", 0)


def _first() -> Session:
    with _lock:
        if _current is None:
            url = os.environ.get("TELETAPE_URL")
            if url:
                connect(url)
            else:
                use(LocalSession(os.environ.get("TELETAPE_DEVICE")))
    assert _current is not None
    return _current


def use(session: Session) -> Session:
    """Makes `session` the program's."""
    global _current
    _current = session
    return session


def connect(
    url: str | None = None,
    api_key: str | None = None,
    device: str | None = None,
    lazy: bool | None = None,
    local: bool = False,
) -> Session:
    """Chooses where the program's tensors live from now on. Tensors made before stay with their session.

    Args:
        url: A server's address, as `https://gpu-box:8470`. None: TELETAPE_URL, and without it this process.
        api_key: The server's key for you. None: TELETAPE_API_KEY.
        device: cpu, gpu or gpu:N; None: the server's default. Within this process: cpu or gpu.
        lazy: Whether commands wait until a value is read. None: yes, unless TELETAPE_LAZY is 0. Within this process
            every op runs at once.
        local: Within this process, whatever TELETAPE_URL says.

    Returns:
        The session, which `with` closes.

    Raises:
        teletape.errors.ConnectionFailed: No server answers there.
        teletape.errors.AuthenticationError: The key is missing or wrong.
    """
    url = None if local else url or os.environ.get("TELETAPE_URL")
    if not url:
        return use(LocalSession(device))
    from teletape.sessions.remote import RemoteSession

    if lazy is None:
        lazy = os.environ.get("TELETAPE_LAZY", "1") not in ("0", "false", "no")
    return use(RemoteSession(url, api_key or os.environ.get("TELETAPE_API_KEY"), device=device, lazy=lazy))
