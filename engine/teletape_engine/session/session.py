"""A session: the interface through which callers change and read the tensors, variables and tapes of one owner.

All changes are batches given to `execute`, so that a record of the batches is a record of the session. Long because the
interface is whole: each of its methods is short, and leads to the module that does the work.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

import numpy as np

from teletape_engine.arrays import HostArray
from teletape_engine.catalogue.slices import SlicesValue
from teletape_engine.commands import Batch, DefineFunction, Id, Input, Repetition
from teletape_engine.commands.results import Answer, Failure
from teletape_engine.errors import UnimplementedError
from teletape_engine.explain.calls import explain_call
from teletape_engine.explain.reasons import Outcome
from teletape_engine.functions.batched import check_vectorizes
from teletape_engine.functions.compile import definitions
from teletape_engine.functions.function import Function
from teletape_engine.recording.progress import Progress, TimeBudget, no_progress
from teletape_engine.recording.values import Literal, Value, Variable
from teletape_engine.session.batches import broken_off, run_batch
from teletape_engine.session.entries import Entry, Poison, facts
from teletape_engine.session.repeats.repetitions import Repetitions
from teletape_engine.session.snapshot import moved, plain, putting, taking
from teletape_engine.session.snapshot.moved import Moved
from teletape_engine.session.snapshot.plain import Snapshot
from teletape_engine.session.state import State, sent_call_site
from teletape_engine.spec import Spec, weak_dtype

T = TypeVar("T")


class Session:
    """Executes batches on one device, and reports what it has.

    Args:
        device: cpu, gpu, gpu:N or auto.
        memory_limit: Bytes that the arrays may take; None for no limit.
        max_iterations: Iterations that the loops of one command may run; None for no limit.
        clock: Returns seconds, for the command `profile`; None: it is refused.
        host_memory: Allocates bytes of the host, as uint8, for large arrays that come from a GPU; None: NumPy does.

    Attributes:
        noted: Called with each batch that was executed, its answer, and whether that says why derivatives are none;
            None: nothing is.
        on_like: Called with each session of `like`, whose attribute it is then, too; None: nothing is.

    Raises:
        UnimplementedError: There is no such device here.
    """

    on_like: Callable[[Session], None] | None = None

    def __init__(
        self,
        device: str = "cpu",
        *,
        memory_limit: int | None = None,
        max_iterations: int | None = None,
        clock: Callable[[], float] | None = None,
        host_memory: Callable[[int], HostArray] | None = None,
    ) -> None:
        self._state = State(device, memory_limit=memory_limit, max_iterations=max_iterations, clock=clock)
        self._host_memory = host_memory
        if host_memory is not None:
            self._state.backend.use_host_memory(host_memory)
        self._repetitions = Repetitions(self._state)
        self.noted: Callable[[Batch | Repetition, Answer, bool], None] | None = None

    def __repr__(self) -> str:
        return f"<Session on {self._state.backend.device}, {len(self._state.entries)} ids>"

    def broken_device(self) -> str:
        """Why nothing can be computed any more, after an error of the device that lasts; empty: it can."""
        return self._state.backend.broken()

    # -------------------------------------------------------------------------------------------------------- changes
    def execute(
        self,
        batch: Batch | Repetition,
        *,
        cancelled: Callable[[], bool] = lambda: False,
        progress: Progress = no_progress,
        budget: TimeBudget | None = None,
        explain: bool = False,
        recorded: Sequence[Failure] = (),
    ) -> Answer:
        """Runs a batch. A batch that repeats its client's last one is not run again: the kept answer is returned.

        Whatever goes wrong once the batch runs is a failure in its answer.

        Args:
            batch: Commands, releases, and what happens to ids after a failure; or the structure of an earlier batch
                with other contents, which were checked.
            cancelled: Called between the steps of the batch: commands, iterations, some ops of a function or gradient.
                Once it returns true, the rest of the batch fails with CancelledError. What it raises is a failure of
                the batch too.
            progress: Called from time to time; see `progress.Progress`.
            budget: The batch's time: an op that would take longer than what is left fails before it begins. None: there
                is no limit.
            explain: Whether the answer says why derivatives are none, from structure (`Kinds.why`).
            recorded: Failures of the batch when it ran before: these commands fail so again, and do not run.

        Raises:
            UnknownIdError: The batch's client is not attached.
            SequenceConflictError: The client's last batch had this seq, and was another batch.
            AnswerDroppedError: It repeats the client's last batch, whose answer is not kept any more.
            OutOfTurnError: The seq is not the client's next.
        """
        state = self._state
        if batch.client:
            earlier = state.clients.answer_to_retry(batch)
            if earlier is not None:
                return earlier
        state.batches += 1
        with state.backend.quiet():
            commands = batch.structure.commands if isinstance(batch, Repetition) else batch.commands
            state.monitor.begin(cancelled, progress, len(commands), budget)
            state.explains, state.index, state.results, state.failures = explain, 0, [], {}
            try:
                answer = None if recorded else self._repetitions.run(batch, cancelled)
                if answer is None:
                    whole = batch.batch() if isinstance(batch, Repetition) else batch
                    answer = run_batch(state, whole, cancelled, {failure.index: failure for failure in recorded})
            except Exception as error:  # the batch may have changed something: a retry must not run it again
                answer = broken_off(state, batch.batch() if isinstance(batch, Repetition) else batch, error)
        if batch.client:
            state.clients.keep_answer(batch, answer)
        if self.noted is not None:
            self.noted(batch, answer, explain)
        return answer

    def values(
        self,
        batch: Repetition,
        *,
        cancelled: Callable[[], bool] = lambda: False,
        progress: Progress = no_progress,
        budget: TimeBudget | None = None,
    ) -> Answer | None:
        """The answer to a batch that takes no value of the session and leaves none, if it has run as a plan before.

        It may call the session's functions, which have no values of their own. The session is as it was: nothing of the
        batch is noted. Answers say why derivatives are none.

        Args:
            batch: The batch.
            cancelled: As for `execute`.
            progress: As for `execute`.
            budget: As for `execute`.

        Returns:
            The answer; None: it is to be executed, which also says what is wrong with it.
        """
        state = self._state
        with state.backend.quiet():
            state.monitor.begin(cancelled, progress, len(batch.structure.commands), budget)
            state.explains, state.index = True, 0
            return self._repetitions.values(batch, cancelled)

    # ---------------------------------------------------------------------------------------------------------- reads
    def last_answer(self, client: int, seq: int, nonce: bytes) -> Answer | None:
        """The answer to a client's last batch if it had this number and nonce: a retry needs no decoding."""
        return self._state.clients.last_answer(client, seq, nonce)

    def forget_old_answers(self) -> None:
        """Ends the keeping of clients' answers that were kept at the last call already: call it from time to time."""
        self._state.clients.forget_old_answers()

    # --------------------------------------------------------------------------------------------------- written down
    def obstacle(self) -> str:
        """Why `snapshot` cannot be called now: what is alive in the session; empty: it can."""
        return plain.obstacle(self._state)

    def snapshot(self) -> Snapshot:
        """What the session has, as plain data; there is no `obstacle`."""
        return taking.take(self._state)

    def restore(self, snapshot: Snapshot) -> None:
        """Gives this session, which has nothing, what a snapshot has: it goes on as the one that it was taken of.

        The arrays of the snapshot become the session's: whoever calls this gives them up.
        """
        putting.put(self._state, snapshot)

    def moved(self, batch: Batch | Repetition, failures: Sequence[Failure]) -> list[Moved]:
        """What commands of the last batch may have changed before they failed; see `moved.moved`."""
        return moved.moved(self._state, batch.batch() if isinstance(batch, Repetition) else batch, failures)

    def patch(self, rows: Sequence[Moved]) -> None:
        """Makes variables and tapes what they are in `moved`."""
        moved.patch(self._state, rows)

    def digest(self, most: int) -> int | None:
        """A checksum of the variables' values, in the order of their ids; None: they have more bytes than `most`."""
        return plain.digest(self._state, most)

    @contextmanager
    def without_limit(self) -> Iterator[None]:
        """A block without the memory limit: what fitted once is done again. What is reserved counts further."""
        memory = self._state.memory
        limit, memory.limit = memory.limit, None
        try:
            yield
        finally:
            memory.limit = limit
            memory.count()

    @property
    def last_client(self) -> int:
        """The highest client number that a caller has chosen."""
        return self._state.clients.last_named

    def note_clients(self, last: int) -> None:
        """Notes that callers may have chosen numbers of clients up to this one, of which it knows nothing."""
        self._state.clients.note_named(last)

    # ----------------------------------------------------------------------------------------------------- facts
    def describe(self, name: Id) -> dict[str, Any]:
        """What an id names, as JSON-able facts with `id` and `kind`.

        Raises:
            UnknownIdError, ReleasedIdError: It names nothing.
            PoisonedError: It names a value that was never made.
        """
        return facts(name, self._state.find(name, (Value, Variable, SlicesValue, Entry, Function)))

    def kind(self, name: Id) -> Hashable:
        """What commands depend on of what an id names: a function itself, else its kind and its spec.

        Raises:
            UnknownIdError, ReleasedIdError, PoisonedError: The id names no function and no value.
        """
        entry = self._state.find(name, (Value, Variable, SlicesValue, Function))
        if isinstance(entry, Function):
            return entry
        return entry.__class__, entry.dense if isinstance(entry, SlicesValue) else entry.spec

    def version_of(self, name: Id) -> tuple[int, int]:
        """A variable's number, which no other variable of the session has ever had, and its version.

        Raises:
            UnknownIdError, ReleasedIdError, PoisonedError: The id names nothing.
            InvalidArgumentError: It names no variable.
        """
        variable = self._state.find(name, Variable)
        return variable.serial, variable.version

    def typed_inputs(self, function: Id, inputs: Sequence[Input]) -> list[int | str | np.ndarray[Any, Any]]:
        """The inputs of a function, numbers and untyped lists as arrays of the dtypes that they take in it.

        Raises:
            UnknownIdError, ReleasedIdError, PoisonedError: An id names no function, or no value.
            InvalidArgumentError: A number that does not fit its dtype.
        """
        return self._state.typed_inputs(self._state.find(function, Function), inputs)

    def knows(self, name: Id) -> bool:
        """Whether the id names something, or did."""
        return self._state.knows(name)

    def names(self, name: Id) -> bool:
        """Whether the id names something that was made."""
        entry = self._state.entries.get(name)
        return entry is not None and not isinstance(entry, Poison)

    def listing(self, *kinds: str) -> list[dict[str, Any]]:
        """The facts of everything of these kinds, oldest first: tensor, slices, variable, function, tape."""
        entries = self._state.entries.items()
        described = [facts(name, entry) for name, entry in entries if not isinstance(entry, Poison)]
        return [each for each in described if each["kind"] in kinds]

    def explain_call(
        self, function: Id, inputs: Sequence[Input | Spec], targets: Sequence[str], sources: Sequence[int]
    ) -> list[dict[str, Any] | None]:
        """Why a function's gradients are what they are, from its steps and the specs of its inputs: nothing runs.

        Args:
            function: The function's id.
            inputs: Ids, numbers, arrays and specs.
            targets: Names of its outputs.
            sources: Numbers of its inputs.

        Returns:
            For each source why it has no gradient, as `Explanation.brief`; None if it has one.

        Raises:
            UnknownIdError, ReleasedIdError, PoisonedError: An id names nothing.
            InvalidArgumentError: The function does not take such inputs.
        """
        state = self._state
        called = state.find(function, Function)
        specs = [_spec(state, value, is_source=number in sources) for number, value in enumerate(inputs)]
        positions = [called.outputs.index(name) for name in targets]
        explanations = explain_call(called, specs, positions, sources, state.declarations)
        return [
            explanation.with_call_sites(sent_call_site).brief() if explanation.outcome is Outcome.NONE else None
            for explanation in explanations
        ]

    def result_specs(self, function: Id, inputs: Sequence[Input | Spec]) -> tuple[Spec, ...]:
        """The specs of a function's results for inputs as `explain_call` takes them; a number has its own dtype.

        Raises:
            UnknownIdError, ReleasedIdError, PoisonedError: An id names nothing.
            InvalidArgumentError: The function does not take such inputs, or its shapes depend on values.
        """
        state = self._state
        specs = [_spec(state, value, is_source=False) for value in inputs]
        results: Sequence[Any] = state.find(function, Function).infer(specs).specs
        return tuple([spec if isinstance(spec, Spec) else Spec.of((), weak_dtype(spec, None)) for spec in results])

    def definitions(self, function: Id) -> tuple[DefineFunction, ...]:
        """The commands that define a function, and those that it calls, in a session that has nothing.

        The last one defines it. The ids are f0, f1, …, and the inputs, outputs and constants as they are here.

        Raises:
            UnknownIdError, ReleasedIdError, PoisonedError: The id names no function.
        """
        return definitions(self._state.find(function, Function))

    def vectorizes(self, function: Id) -> str:
        """Why a function cannot run on a stack of rows at once by the batch rules of its ops; empty: it can.

        Raises:
            UnknownIdError, ReleasedIdError, PoisonedError: The id names no function.
        """
        called = self._state.find(function, Function)
        if called.assigns:
            return "it assigns to variables"
        try:
            check_vectorizes(called, recorded=True)
        except UnimplementedError as error:
            return error.message
        return ""

    def renew(self) -> None:
        """Ends all that the session has: it goes on as a new one with the same limits.

        Structures of batches are known further on the CPU; a GPU's plans end with its arrays.
        """
        old = self._state
        if not old.batches:  # it has nothing yet
            return
        self._state = state = State(
            old.backend.device,
            memory_limit=old.memory.limit,
            max_iterations=old.monitor.most_iterations,
            clock=old.clock,
        )
        state.memory.reserve(*old.memory.reservation)
        if self._host_memory is not None:
            state.backend.use_host_memory(self._host_memory)
        if state.backend is old.backend:
            state.memory.caches, state.memory.plans = old.memory.caches, old.memory.plans
            self._repetitions.move(state)
        else:
            self._repetitions = Repetitions(state)

    def like(self) -> Session:
        """A new session that has nothing, on the same device and with the same limits."""
        state = self._state
        session = Session(
            state.backend.device,
            memory_limit=state.memory.limit,
            max_iterations=state.monitor.most_iterations,
            clock=state.clock,
            host_memory=self._host_memory,
        )
        if self.on_like is not None:
            session.on_like = self.on_like
            self.on_like(session)
        return session

    def call_price(self, function: Id, inputs: Sequence[Input | Spec]) -> int:
        """Bytes that all steps of a function together allocate for inputs as `explain_call` takes them.

        Raises:
            UnknownIdError, ReleasedIdError, PoisonedError: An id names nothing.
            InvalidArgumentError: The function does not take such inputs, or its shapes depend on values.
        """
        specs = [_spec(self._state, value, is_source=False) for value in inputs]
        return self._state.find(function, Function).price(specs)

    def room(self) -> float:
        """Bytes left below the memory limit."""
        return self._state.memory.room()

    def write_down(self, noted: Callable[[Batch | Repetition, Answer, bool], None]) -> None:
        """Has batches noted (`noted`) to be run again, and then give the same bits; before anything is executed."""
        self.noted, self._state.memory.has_log = noted, True

    def fits(self, nbytes: int) -> bool:
        """Whether that many bytes more are admitted; see `Memory.fits`."""
        return self._state.memory.fits(nbytes)

    def reserve(self, reserved: int, extend: Callable[[float], int] | None = None) -> None:
        """Admits no more memory than is reserved, without a further reservation; see `Memory.reserve`."""
        self._state.memory.reserve(reserved, extend)

    @property
    def max_iterations(self) -> int | None:
        """Iterations that the loops of one command may take; None: no limit."""
        return self._state.monitor.most_iterations

    def inspect(
        self,
        look: Callable[[State], T],
        *,
        cancelled: Callable[[], bool] = lambda: False,
        progress: Progress = no_progress,
        budget: TimeBudget | None = None,
    ) -> T:
        """Returns what a function of `session.handlers.nodes` finds in the session, and changes nothing.

        Args:
            look: The function.
            cancelled: As for `execute`.
            progress: As for `execute`.
            budget: As for `execute`.

        Raises:
            TeletapeError: What the function raises.
        """
        with self._state.backend.quiet():
            self._state.monitor.begin(cancelled, progress, 1, budget)
            return look(self._state)

    def bytes_in_use(self) -> int:
        """Bytes of all arrays that ids, tapes and kept answers keep alive, each buffer once."""
        return self._state.bytes_in_use()

    def estimated_bytes(self, *, nothing_stays: bool = False) -> int:
        """As `bytes_in_use`, for an answer: exact in a small session; in a large one it costs no more than there.

        Args:
            nothing_stays: Whether the last batch has left nothing under an id.
        """
        return self._state.estimated_bytes(nothing_stays=nothing_stays)


def _spec(state: State, value: Input | Spec, *, is_source: bool) -> Any:
    """The spec of a function's input; a number that is no source stays weak."""
    if isinstance(value, Spec):
        return value
    if isinstance(value, Literal):
        return Spec.of(value.spec.shape, weak_dtype(value.spec, None)) if is_source else value.spec
    if isinstance(value, np.ndarray):
        return Spec.of(value.shape, value.dtype)
    return state.find(value, (Value, Variable)).spec
