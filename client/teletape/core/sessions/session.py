"""The abstract session: it owns the SDK's values, variables and tapes.

`LocalSession` (local.py) computes in this process, `RemoteSession` (remote.py) on a server, and `TracingSession`
(functions/tracing_session.py) records a function's steps. Each gives every thread a recorder; the code above a session
is the same for all three. current.py has the program's session. Long because it has a method for each kind of
command.
"""

from __future__ import annotations

import contextvars
import importlib
import threading
import weakref
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple, Self, TypeAlias, TypeVar

import teletape_engine.ops  # noqa: F401  # fills the catalogue
from teletape.core.network.options import ConnectOptions, check_timeout
from teletape.core.program.call_site import CallSite, shown_call_site
from teletape.core.sessions.draws import PROGRAM, Draws, seeds_of
from teletape.core.sessions.sending.strands import running_task
from teletape_engine import commands
from teletape_engine.arrays import HostArray
from teletape_engine.catalogue.slices import SlicesValue
from teletape_engine.commands import Command, schema
from teletape_engine.derivatives.finite_differences import Settings
from teletape_engine.derivatives.gradient import gradient
from teletape_engine.derivatives.query import Declarations, GradientFunction, GradientQuery, InputCotangents
from teletape_engine.derivatives.reports.check_report import Report
from teletape_engine.derivatives.reports.estimate import CostEstimate, estimate
from teletape_engine.derivatives.reports.statistics import Statistics
from teletape_engine.derivatives.sparsity.sparse import SparseMatrix
from teletape_engine.diagram.facts import Size, diagram
from teletape_engine.errors import UnimplementedError
from teletape_engine.explain.explain import explain
from teletape_engine.explain.explanation import Explanation
from teletape_engine.functions.function import Function
from teletape_engine.recording.accumulators import Accumulator
from teletape_engine.recording.custom import CallerGradient, FunctionGradient, VariableReadLog, record_custom
from teletape_engine.recording.memory import Footprint
from teletape_engine.recording.provenance import Records, ValueReads
from teletape_engine.recording.recorder import Recorder
from teletape_engine.recording.tape import Tape
from teletape_engine.recording.values import Literal, Variable
from teletape_engine.spec import Spec

if TYPE_CHECKING:  # it is imported when it is used
    from teletape.core.profiling.pending import Pending
    from teletape.core.profiling.profile import Profile

_LOGS: Final = 32  #: The number of latest threads whose provenance logs are stored.

T = TypeVar("T")

Recorded: TypeAlias = Any  # a Value of the engine, a Handle of a remote session, a Symbol of a trace


class PerThread(threading.local):
    """A session's state for each thread; a thread's recorder is made when it is first used.

    An async task in which a tape or accumulator is open has its own recorder until it is closed: the tasks of a thread
    take turns, and would otherwise record on each other's tapes. While there is such a task, `recorder` is not an
    attribute of this object, so `__getattr__` looks for the task; otherwise it is an attribute, which costs nothing.

    Args:
        new_recorder: Makes a recorder.
        by_task: Whether tasks have their own recorders; a trace needs none, because it runs in one turn.

    Attributes:
        recorder: The thread's or task's current recorder.
        spare: Recorders of finished `outside` blocks and tasks, for reuse.
    """

    recorder: Any
    spare: list[Any]

    def __init__(self, new_recorder: Callable[[], Any], by_task: bool) -> None:
        self._new_recorder, self._by_task = new_recorder, by_task
        self.spare = []
        self._base: Any = None  # the thread's recorder, while there are tasks with recorders
        self._tasks: weakref.WeakKeyDictionary[Any, Any] = weakref.WeakKeyDictionary()

    def __getattr__(self, name: str) -> Any:
        if name != "recorder":
            raise AttributeError(name)
        if self._base is None:
            self.recorder = recorder = self._new_recorder()
            return recorder
        task = running_task()
        return self._base if task is None else self._tasks.get(task, self._base)

    def fresh(self) -> Any:
        """Returns a recorder in which nothing is active."""
        return self.spare.pop() if self.spare else self._new_recorder()

    def enter_task(self) -> None:
        """Gives the running task, if there is one, its own recorder, because it opens a tape or an accumulator."""
        task = running_task() if self._by_task else None
        if task is not None and task not in self._tasks:
            base, self._tasks[task] = self.recorder, self.fresh()
            if self._base is None:
                self._base = base
                del self.recorder

    def leave_task(self) -> None:
        """Takes back the recorder of the running task if nothing is active in it any more."""
        if self._base is not None:
            task = running_task()
            recorder = None if task is None else self._tasks.get(task)
            if recorder is not None and not recorder.recorded:
                del self._tasks[task]
                self.spare.append(recorder)
            if not self._tasks:
                self.recorder, self._base = self._base, None

    def running_on(self, recorder: Any, function: Callable[[], T]) -> T:
        """Runs a function with another recorder."""
        thread_wide = self._base is None
        before = self.recorder
        try:
            self.recorder = recorder
            return function()
        finally:
            if thread_wide:
                self.recorder = before
            else:
                del self.recorder


class SparseQuestion(NamedTuple):
    """A question for a sparse derivative.

    Attributes:
        compute: Computes it on a recorder with arrays.
        connected: Returns whether there is one, on a recorder without arrays.
        command: Returns the command that computes it on a server, from the ids of the parts.
        source: The spec of the source.
        format: As for the command.
    """

    compute: Callable[[Recorder], SparseMatrix | None]
    connected: Callable[[Recorder], bool]
    command: Callable[[Sequence[Any]], Command]
    source: Spec
    format: str


class Session(ABC):
    """Values, variables and tapes of one program.

    Attributes:
        local: Whether it computes in this process, each op at once.
        tracing: Whether ops only become steps of a function.
        not_traceable: In a trace: the reason why the function cannot be traced, or None.
        declarations: The program's declarations about op types without a gradient.
        value_reads: Reads of values, for explanations.
        logs: The provenance logs of the latest threads.
        traces: The traces of each `tf.function` for this session.
        offload_loops: Whether a long loop runs as one command on the server: False: never; True: always; None: if its
            functions only compute.
    """

    #: Called with a session that a `with` statement has closed; current.py sets it.
    left: ClassVar[Callable[[Session], None]]
    #: Return the program's object for a recorded variable or value of a session; variables/ and tensors/ set them.
    as_variable: ClassVar[Callable[[Any, Session], Any]] = staticmethod(
        lambda recorded, owner: _loaded("teletape.core.variables.variable").as_variable(recorded, owner)
    )
    as_tensor: ClassVar[Callable[[Any, Session], Any]] = staticmethod(
        lambda recorded, owner: _loaded("teletape.core.tensors.tensor").as_tensor(recorded, owner)
    )

    local: bool
    tracing: bool = False
    not_traceable: Exception | None = None
    offload_loops: bool | None = None

    def __init__(self) -> None:
        self.declarations = Declarations()
        self._scopes: list[Scope] = []  # the scopes of its `with` statements
        new_recorder = weakref.WeakMethod(self._new_recorder)  # no cycle: an unused session ends at once
        self._thread = PerThread(lambda: _alive(new_recorder)(), by_task=not self.tracing)
        self.value_reads = ValueReads()
        self.numbers = self.value_reads.numbers
        self.logs: deque[Records] = deque(maxlen=_LOGS)
        self.traces: weakref.WeakKeyDictionary[Any, Any] = weakref.WeakKeyDictionary()

    @property
    def home(self) -> Session:
        """The session that the program is connected to: this one, or for a trace the session of the trace."""
        return self

    def recorder(self) -> Recorder:
        """Returns the recorder of the calling thread or task; each has its own context."""
        return self._thread.recorder  # type: ignore[no-any-return]  # thread locals are untyped

    @abstractmethod
    def _new_recorder(self) -> Any:
        """Returns a recorder, and with it a context, in which nothing is active."""

    # --------------------------------------------------------------------------------------------------------- values
    def adopt(self, value: Recorded, owner: Session) -> Recorded | None:
        """Returns another session's value as a value of this session, or None if that is not possible."""
        return None

    @abstractmethod
    def constant(self, array: HostArray) -> Recorded:
        """Returns a host array as a value. The caller must not write into the array afterwards."""

    def sent_ahead(self, arrays: Sequence[HostArray]) -> list[Any]:
        """Sends arrays to the server while earlier commands run, and returns their names there; from any thread."""
        raise NotImplementedError  # pragma: no cover - of a session on a server alone

    def constant_ahead(self, array: HostArray, name: Any) -> Recorded:
        """Returns the value of an array that the server has under this name."""
        raise NotImplementedError  # pragma: no cover - of a session on a server alone

    @abstractmethod
    def variable(self, value: Recorded, *, trainable: bool, name: str) -> Variable:
        """Returns a new variable with this value."""

    def check_fixed_shape(self) -> None:  # noqa: B027  # outside of a trace every shape is known
        """Raises in a trace for a variable whose assignments may change its shape."""

    @abstractmethod
    def assign(self, variable: Variable, value: Recorded | Literal, mode: str, indices: Recorded | None = None) -> None:
        """Makes the variable's next version; `mode` and `indices` as in the command.

        The caller checks shapes and dtypes.
        """

    @abstractmethod
    def fetch(self, value: Recorded) -> HostArray:
        """Returns the value's elements on the host, read only."""

    def fetch_all(self, values: Sequence[Recorded]) -> list[HostArray]:
        """Returns the elements of several values, in one round trip."""
        return [self.fetch(value) for value in values]

    async def fetch_later(self, values: Sequence[Recorded]) -> list[HostArray]:
        """Returns elements like `fetch_all`, for a task: the event loop goes on meanwhile."""
        return self.fetch_all(values)

    def made_together(self, values: Sequence[Recorded]) -> None:  # noqa: B027  # in this process a read costs nothing
        """Notes that these values are of one call: a program that reads one of them will read the others."""

    def row_counts(self, where: CallSite) -> tuple[int, Callable[[int], None]]:
        """Returns the number of rows that a line took of the last tensor, and a function that notes the next number."""
        raise NotImplementedError  # pragma: no cover - of a session on a server alone

    def slices_component(self, slices: SlicesValue, which: str) -> Recorded:
        """Returns the `values` or `indices` of slices that a tape returned."""
        return slices.values if which == "values" else slices.indices

    # ------------------------------------------------------------------------------------------------- random numbers
    def random_seed(self) -> int | None:
        """Returns the seed of the program, or of the trace, from which the seeds of random ops follow."""
        return PROGRAM.seed

    def set_random_seed(self, seed: int | None) -> None:
        """Sets the seed of the program; in a trace that of the function."""
        PROGRAM.set_seed(seed)

    def next_op_seed(self) -> int:
        """Returns the seed of the next random op without a seed."""
        return PROGRAM.next_op_seed()

    def draws(self, kernel: Hashable, seed: Any) -> Draws:
        """Returns the draws of a random op, of these attributes and with this seed or None.

        An op without a seed gets a unique one from the program's.
        """
        seeds = seeds_of(self.random_seed(), self.next_op_seed, seed)
        return PROGRAM.draws(kernel, seeds) if seed is not None or seeds is None else Draws(seeds)

    def draw(self, draws: Draws, blocks: int) -> Recorded:
        """Returns the state for a random op's draw; a traced function takes a new one at each call."""
        return self.constant(draws.state(blocks))

    @abstractmethod
    def run_command(
        self, command: type[Command], functions: Sequence[Function], inputs: Sequence[Any], **fields: Any
    ) -> list[Recorded]:
        """Runs a command that takes functions, and returns its results.

        Args:
            command: The command's class, as `commands.CallFunction`.
            functions: The functions, in the order of the command's fields; a field for several functions takes the
                rest.
            inputs: Recorded values, Literals and variables.
            **fields: The command's other fields, except `outputs`.
        """

    def call_function(self, function: Function, inputs: Sequence[Any]) -> list[Recorded]:
        """Calls a function as one command, and returns its results.

        Args:
            function: The function.
            inputs: Recorded values, Literals and variables.
        """
        return self.run_command(commands.CallFunction, [function], inputs)

    def publish(
        self,
        name: str,
        function: Function,
        inputs: Sequence[str],
        weights: Mapping[str, Any],
        outputs: Mapping[str, int],
        facts: Mapping[str, Any],
    ) -> dict[str, Any]:
        """Publishes a function on the server; see `tf.publish`.

        Args:
            name: Its name.
            function: Its inputs are the callers', and then the weights.
            inputs: The names of the callers' inputs.
            weights: The recorded values and variables whose values it takes along, by name.
            outputs: The positions of the function's results that are outputs, by name.
            facts: The rest of the request.

        Returns:
            The server's answer.
        """
        raise NotImplementedError  # pragma: no cover - there is no server

    # ---------------------------------------------------------------------------------------------------------- tapes
    def open_tape(self, tape: Tape) -> None:
        """Makes a tape active in this thread, or in this async task: a new one, or one that was paused."""
        self._thread.enter_task()
        self.recorder().context.open(tape)

    def watch(self, tape: Tape, values: Sequence[Any]) -> None:
        """Makes the tape track recorded values and variables."""
        self.recorder().context.watch(tape, values)

    def pause_tape(self, tape: Tape) -> None:
        """Stops the tape's recording; its record stays."""
        self.recorder().context.pause(tape)
        self._thread.leave_task()

    def reset_tape(self, tape: Tape) -> None:
        """Removes everything that the tape has recorded and tracks."""
        self.recorder().context.reset(tape)

    def gradient(self, query: GradientQuery) -> list[Any]:
        """See `teletape_engine.derivatives.gradient`."""
        return gradient(self.recorder(), query)

    def gradient_statistics(self, query: GradientQuery) -> list[Statistics | None]:
        """See `teletape_engine.derivatives.reports.statistics`; None for a gradient that does not exist."""
        raise UnimplementedError("gradient_statistics: a tape inside a traced function has no values")

    def estimate(self, query: GradientQuery, question: str) -> CostEstimate:
        """See `teletape_engine.derivatives.reports.estimate`; without seconds if the host is not known."""
        return estimate(query, question)

    def run_question(
        self,
        tape: Tape,
        compute: Callable[[Recorder], list[Any]],
        command: Callable[[tuple[Any, ...], tuple[str, ...] | None], Command],
    ) -> list[Any]:
        """Returns the answers of a tape: computed here, or predicted here and computed by a server.

        Args:
            tape: The tape.
            compute: Computes the answers on a recorder; on a remote session's recorder only their specs.
            command: Returns the command that computes the answers on a server, from their ids and kinds.
        """
        return compute(self.recorder())

    def sparse_derivative(self, question: SparseQuestion) -> tuple[list[Any], dict[str, Any]]:
        """Returns the three parts of a sparse derivative, or no parts if there is none, and its facts."""
        raise NotImplementedError  # pragma: no cover - not of a trace

    # --------------------------------------------------------------------------------------------------- accumulators
    def open_accumulator(self, accumulator: Accumulator, pairs: Sequence[tuple[Any, Any]] = ()) -> None:
        """Makes an accumulator active in this thread or task: a new one, or one that was closed.

        Args:
            accumulator: The accumulator.
            pairs: The (primal, tangent) that it got since it was closed, or before it was opened.
        """
        self._thread.enter_task()
        self.recorder().context.open_accumulator(accumulator)

    def close_accumulator(self, accumulator: Accumulator) -> None:
        """Stops the accumulator's recording."""
        self.recorder().context.close_accumulator(accumulator)
        self._thread.leave_task()

    def jvp(self, accumulator: Accumulator, targets: Sequence[Any]) -> list[Any]:
        """Returns the tangents of recorded values and variables, None for a target without one."""
        return [accumulator.tangent(target) for target in targets]

    # --------------------------------------------------------------------------------------------------- explanations
    def explain(self, tape: Tape, targets: Sequence[Any], sources: Sequence[Any]) -> list[Explanation]:
        """See `teletape_engine.explain.explain`. The tape may already have answered."""
        explanations = self._structural(tape, targets, sources)
        return [
            each.with_call_sites(shown_call_site) for each in self._with_numbers(tape, targets, sources, explanations)
        ]

    def _structural(self, tape: Tape, targets: Sequence[Any], sources: Sequence[Any]) -> list[Explanation]:
        """Returns the explanations that follow from the tape's structure alone."""
        return explain(
            tape,
            targets,
            sources,
            logs=list(self.logs),
            value_reads=self.value_reads,
            declarations=self.declarations,
            format_where=shown_call_site,
        )

    def _with_numbers(
        self, tape: Tape, targets: Sequence[Any], sources: Sequence[Any], explanations: list[Explanation]
    ) -> list[Explanation]:
        """Returns the explanations, completed by reasons that need elements; a trace has no elements."""
        return explanations

    def diagram(self, tape: Tape, targets: Sequence[Any], sources: Sequence[Any], most: int) -> dict[str, Any]:
        """See `teletape_engine.diagram.facts`."""
        return diagram(
            tape,
            targets=targets,
            sources=sources,
            explanations=self._structural(tape, targets, sources) if targets else [],
            size=self._size(),
            format_where=shown_call_site,
            max_nodes=most,
        )

    def _size(self) -> Size | None:
        """Returns the function from a kept value to its buffer; None: this session has no arrays."""
        return None

    def drawer(self, tape: Tape, targets: Sequence[Any], sources: Sequence[Any], most: int) -> Callable[[], str] | None:
        """Returns a function that draws the diagram on a host with Graphviz; None: there is no such host."""
        return None

    def footprint(self, tape: Tape) -> Footprint:
        """Returns the bytes that the tape keeps, and those that its end would free."""
        return Footprint(0, 0)

    def check_tape(self, tape: Tape, targets: Sequence[Any], sources: Sequence[Any], settings: Settings) -> Report:
        """See `teletape_engine.checking.tape_check.check_tape`."""
        raise UnimplementedError("check_gradients: a tape inside a traced function has no values to compare")

    # ----------------------------------------------------------------------------------------------- custom gradients
    def declare_no_gradient(self, op_type: str) -> None:
        """Declares that ops of this type have no gradient, for all later questions to tapes."""
        self.declarations.declare_no_gradient(op_type)

    def register_gradient(self, op_type: str, function: GradientFunction) -> None:
        """Registers the gradient of an op type without one, for all later questions to tapes."""
        self.declarations.register(op_type, function)

    def record_custom_call(
        self,
        inputs: Sequence[Recorded],
        outputs: Sequence[Recorded],
        label: str,
        function: Callable[..., InputCotangents],
    ) -> Sequence[Recorded]:
        """Records a call from `inputs` to `outputs`, new copies of its results, whose gradient is `function`.

        Args:
            inputs: Recorded values of differentiable dtypes.
            outputs: Recorded values.
            label: The call's name in messages.
            function: From the cotangent of each output to one, or None, for each input.

        Returns:
            The values that replace the call's results.
        """
        recorder = self.recorder()
        record_custom(
            recorder.context.tapes,
            inputs,
            outputs,
            tag=None,
            label=label,
            gradient=[CallerGradient(function)],
            where=recorder.provenance.here(),
        )
        return outputs

    def replace_gradient(self, tag: Any, gradient: FunctionGradient, others: Sequence[Recorded]) -> Any:
        """Replaces a custom call's gradient by a function in vectorized passes, until the result is dropped.

        Args:
            tag: The call's tag.
            gradient: The function.
            others: Its inputs after the cotangents.
        """
        return None

    def outside(self, function: Callable[[], T]) -> T:
        """Runs a function in a new context, which the tapes and accumulators of this thread do not record.

        A `VariableReadLog` records it nevertheless.
        """
        thread = self._thread
        inner = thread.fresh()
        watchers = [tape for tape in self.recorder().context.tapes if isinstance(tape, VariableReadLog)]
        for watcher in watchers:
            inner.context.open(watcher)
        try:
            return thread.running_on(inner, function)
        finally:
            for watcher in watchers:
                inner.context.pause(watcher)
            if not inner.recorded:
                thread.spare.append(inner)

    # ------------------------------------------------------------------------------------------------------- lifetime
    @property
    def closed(self) -> str | None:
        """Why the session can no longer be used, or None."""
        return None

    @property
    def requests(self) -> int:
        """The number of answers received from a server so far."""
        return 0

    def summary(self) -> str:
        """Returns the number of requests to a server, and of reads by the program's lines."""
        return "a session inside this process: no requests"

    @property
    def waits(self) -> bool:
        """Whether a command that may fail is not executed yet; never in this process."""
        return False

    def pending(self, *values: Any) -> Pending:
        """Returns the commands that are recorded and not sent, as a table; no request is sent.

        Args:
            *values: Tensors and variables; the table also has what reading them would fetch: those that are not known
                here, and the values that would come along ([laziness.md](laziness.md#reading-ahead)).

        Example:
            print(tf.session().pending())  # nothing waits to be sent
        """
        from teletape.core.profiling.pending import Pending  # when it is first used

        return Pending()

    def is_alive(self) -> bool:
        """Whether it can be used. Over HTTP this is one request; False without an answer."""
        return self.closed is None

    @abstractmethod
    def profile(self) -> AbstractContextManager[Profile]:
        """A block whose time is measured: by op, by line, and split into network, queue and computation.

        Its value is displayed as tables, in a notebook too, and has `plot()`. On a server batches of the block run
        command by command, not as plans. On a GPU a command's time is that of its launch; reads wait for the
        computation.
        """

    def sync(self) -> None:  # noqa: B027  # in this process there is nothing to wait for
        """Waits until all recorded commands are executed; raises the error of a failed command."""

    async def sync_later(self) -> None:
        """Waits like `sync`, for a task: the event loop goes on meanwhile."""
        self.sync()

    def cancel(self) -> None:  # noqa: B027  # in this process an interrupt does it
        """Stops the server's work for this session."""

    def close(self, timeout: float | None = None) -> None:  # noqa: B027  # nothing to release in this process
        """Ends the session.

        Args:
            timeout: The time limit, in seconds, for waiting commands; then they are stopped. None: the timeout of a
                read.
        """

    async def aclose(self, timeout: float | None = None) -> None:  # noqa: ASYNC109  # also of trio, and as of `close`
        """Ends the session like `close`, for a task of asyncio or trio: the event loop goes on meanwhile."""
        self.close(timeout)

    @contextmanager
    def with_options(self, *, timeout: float | None) -> Iterator[Self]:
        """A block of this thread or async task in which the session's reads have another timeout.

        Args:
            timeout: Seconds that a read may take until it raises DeadlineExceededError, and the server stops its work;
                None: any time. In this process nothing is waited for.

        Example:
            with tf.session().with_options(timeout=2.0):
                print(tf.constant(3.0).numpy())  # 3.0
        """
        options = self.options
        check_timeout("timeout", timeout)
        with nullcontext() if options is None else options.with_timeout(timeout):
            yield self

    def abandon(self) -> None:
        """Ends the session at once after an error of the program, and drops waiting commands."""
        self.close()

    async def _abandon_later(self) -> None:
        """Ends the session like `abandon`, for a task."""
        self.abandon()

    @contextmanager
    def as_default(self) -> Iterator[Self]:
        """A block in which this thread or task computes in this session. The session stays open after it."""
        scope = Scope(self)
        try:
            scope.enter()
            yield self
        finally:
            scope.leave()

    def __enter__(self) -> Self:
        scope = Scope(self)
        self._scopes.append(scope)
        scope.enter()
        return self

    def __exit__(self, *error: object) -> None:
        try:
            self._scopes.pop().leave()
        finally:
            try:
                if error and error[0] is not None:
                    self.abandon()
                else:
                    self.close()
            finally:
                Session.left(self)

    async def __aenter__(self) -> Self:
        return self.__enter__()

    async def __aexit__(self, *error: object) -> None:
        try:
            self._scopes.pop().leave()
        finally:
            try:
                if error and error[0] is not None:
                    await self._abandon_later()
                else:
                    await self.aclose()
            finally:
                Session.left(self)

    @property
    def url(self) -> str | None:
        """The server's address; None: it computes in this process."""
        return None

    @property
    def options(self) -> ConnectOptions | None:
        """The options of its connection; None: it computes in this process."""
        return None

    @property
    def place(self) -> str:
        """The address or device of the session, for messages."""
        return "this process"

    @property
    def device_name(self) -> str:
        """The device that it computes on, in TensorFlow's form, with the server's address as the job."""
        return "/job:localhost/replica:0/task:0/device:CPU:0"


def _loaded(module: str) -> type[Session]:
    """Loads a module that sets functions of sessions: nothing of the program may have used it before."""
    importlib.import_module(module)
    return Session


def _alive(method: weakref.WeakMethod[Callable[[], T]]) -> Callable[[], T]:
    bound = method()
    assert bound is not None, "the session's own methods ask for it"
    return bound


def with_functions(command: type[Command], functions: Sequence[Any], **fields: Any) -> Command:
    """Returns the command with these functions (or their ids) in its fields, and without inputs and outputs."""
    values, rest = {"inputs": (), "outputs": ()} | fields, list(functions)
    for name in commands.FUNCTION_FIELDS[command.verb]:
        is_list = schema.FIELDS[command.verb][name].is_list
        values[name] = tuple(rest) if is_list else rest.pop(0)
    return command(**values)


#: An entry for each trace and `with` block that is running; while it is empty, `current` looks for neither.
entered: Final[set[object]] = set()
#: The session of the innermost `with` block.
block: Final[contextvars.ContextVar[Session | None]] = contextvars.ContextVar("block", default=None)


class Scope:
    """A block in which ops run in a session.

    Args:
        session: The session.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self._before: Session | None = None

    def enter(self) -> None:
        """Begins the block."""
        self._before = block.get()
        entered.add(self)
        block.set(self._session)

    def leave(self) -> None:
        """Ends the block, also if it was not entered."""
        if self in entered:
            block.set(self._before)
            entered.discard(self)  # after an interrupt before this line the entry stays, which only costs time
