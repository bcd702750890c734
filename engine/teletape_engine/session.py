"""The engine's front door: one tenant's values, variables, tapes and programs, and the execution of batches on them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, TypeAlias, TypeVar, overload

import numpy as np

import teletape_engine.ops  # noqa: F401  # fills the catalogue
from teletape_engine import arrays, commands
from teletape_engine.arrays.cpu import CPU
from teletape_engine.attrs import NO_ATTRS
from teletape_engine.backward import declare_no_gradient
from teletape_engine.commands import Batch, Command, Id
from teletape_engine.errors import (
    CancelledError,
    IdInUseError,
    InternalError,
    InvalidArgumentError,
    OutOfTurnError,
    PoisonedError,
    ReleasedIdError,
    ResourceExhaustedError,
    SequenceConflictError,
    StructureMismatchError,
    TapeStateError,
    TeletapeError,
    UnknownIdError,
)
from teletape_engine.graph import Literal, Tape, Variable, new_uid
from teletape_engine.op import CATALOGUE
from teletape_engine.program import Program
from teletape_engine.spec import Spec, weak_dtype
from teletape_engine.tape import Executor, Memory, SlicesValue, Value, kind_of

CLIENT_BITS: Final = 40  #: An SDK's id is client << 40 | counter.
_OWN: Final = 1 << CLIENT_BITS  #: From here on ids are the clients' own. Below they are people's, in any order.
_REPORTED: Final = 1024  #: Commands between two reports of progress.
_MAIN: Final = 0  #: The context in which every batch begins.

T = TypeVar("T")


class Poison(NamedTuple):
    """Stands under the id of a value that was never made."""

    cause: str


class SlicesArrays(NamedTuple):
    """A fetched sparse gradient: values [n, ...], indices [n], and the spec of the array they stand for."""

    values: np.ndarray[Any, Any]
    indices: np.ndarray[Any, Any]
    dense: Spec


@dataclass(frozen=True, slots=True)
class Fetched:
    """A value's numbers. `complete` False: only the first elements, flat."""

    index: int
    id: Id
    array: np.ndarray[Any, Any] | SlicesArrays
    spec: Spec
    complete: bool


@dataclass(frozen=True, slots=True)
class Kinds:
    """The structure of a gradient command's answer: none, dense or slices for each source."""

    index: int
    kinds: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Made:
    """Specs of an op's outputs that only the values could tell."""

    index: int
    specs: tuple[Spec, ...]


Result: TypeAlias = Fetched | Kinds | Made


@dataclass(frozen=True, slots=True)
class Failure:
    """The first command of a batch that failed. What stood before it stands; values after it were not made.

    `versions` tells the version of every variable, so that the caller knows which assignments happened.
    """

    index: int
    code: str
    message: str
    op: str | None
    where: str | None
    details: dict[str, Any]
    versions: dict[Id, int]


@dataclass(frozen=True, slots=True)
class Answer:
    """What a batch gave."""

    results: tuple[Result, ...]
    failure: Failure | None
    bytes_in_use: int


class Attached(NamedTuple):
    """A client's place in a session: its number, its next sequence number, its first free id."""

    client: int
    seq: int
    first_id: int


@dataclass(slots=True)
class _Client:
    seq: int = 1
    nonce: bytes = b""
    answer: Answer | None = None


@dataclass(slots=True)
class _Tape:
    """A tape under its id, and the context where it was last active."""

    tape: Tape
    context: Executor


class Session:
    """Executes batches on one device.

    Args:
        device: cpu, gpu or gpu:N.
        memory_limit: Bytes that the session's arrays may take; None for no limit.

    Raises:
        UnimplementedError: No such device here.
    """

    def __init__(self, device: str = "cpu", *, memory_limit: int | None = None) -> None:
        self.backend = arrays.backend(device)
        self.memory = Memory(memory_limit, self.bytes_in_use)
        self.no_gradient: set[str] = set()
        self._names: dict[Id, Any] = {}
        self._released: set[Id] = set()
        self._highest: dict[int, int] = defaultdict(int)
        self._latest = 0  # the highest integer id of this batch so far
        self._clients: dict[int, _Client] = {}
        self._contexts: dict[Id, Executor] = {}
        self._context = self.context(_MAIN)
        self._results: list[Result] = []
        self._index = 0
        self._do: dict[type[Command], Callable[[Any], None]] = {
            commands.Put: self._put,
            commands.MakeVariable: self._variable,
            commands.Assign: self._assign,
            commands.Call: self._call,
            commands.TapeOpen: self._tape_open,
            commands.TapeWatch: self._tape_watch,
            commands.TapePause: self._tape_pause,
            commands.TapeResume: self._tape_resume,
            commands.TapeReset: self._tape_reset,
            commands.ContextSwitch: self._switch,
            commands.Gradient: self._gradient,
            commands.Declare: self._declare,
            commands.DefineProgram: self._define,
            commands.CallProgram: self._call_program,
            commands.Part: self._part,
            commands.Fetch: self._fetch,
        }

    # -------------------------------------------------------------------------------------------------------- clients
    def attach(self) -> Attached:
        """A new client of this session."""
        client = len(self._clients) + 1
        self._clients[client] = _Client()
        return Attached(client, 1, client << CLIENT_BITS)

    def context(self, key: Id) -> Executor:
        """The context of that name, made when it is first asked for."""
        found = self._contexts.get(key)
        if found is None:
            found = self._contexts[key] = Executor(self.backend, self.memory)
        return found

    # ------------------------------------------------------------------------------------------------------ execution
    def execute(
        self,
        batch: Batch,
        *,
        cancelled: Callable[[], bool] = lambda: False,
        progress: Callable[[int, int], None] = lambda done, total: None,
        poison: bool = True,
    ) -> Answer:
        """Runs a batch. A batch seen before (same client, seq and nonce) is not run again: its answer is given again.

        Args:
            batch: Commands and releases.
            cancelled: Asked between commands; once true, the rest of the batch fails with CancelledError.
            progress: Told (commands done, commands in all) from time to time.
            poison: After a failure the ids of values that were not made stand for it. Without, they stay free: for
                callers who name nothing before they have seen the answer.

        Raises:
            SequenceConflictError: Another batch had this seq.
            OutOfTurnError: The seq is not the client's next.
        """
        client = self._clients.get(batch.client) if batch.client else None
        if batch.client:
            if client is None:
                raise UnknownIdError(f"client {batch.client} is not attached to this session: attach first")
            known = self._replay(client, batch)
            if known is not None:
                return known
        with self.backend.quiet():
            answer = self._run(batch, cancelled, progress, poison)
        if client is not None:
            client.answer, client.nonce = answer, batch.nonce
            client.seq = batch.seq + 1
        return answer

    def kept(self, client: int, seq: int, nonce: bytes) -> Answer | None:
        """The answer of a client's last batch, if that was this one: what a retry gets again."""
        known = self._clients.get(client)
        return known.answer if known is not None and (seq, nonce) == (known.seq - 1, known.nonce) else None

    @staticmethod
    def _replay(client: _Client, batch: Batch) -> Answer | None:
        if batch.seq == client.seq:
            return None
        if batch.seq == client.seq - 1 and client.answer is not None:
            if batch.nonce == client.nonce:
                return client.answer
            raise SequenceConflictError(
                f"client {batch.client} has sent another batch as seq {batch.seq}: two programs share one client id; "
                "attach again for one of its own",
                expected=client.seq,
            )
        raise OutOfTurnError(
            f"client {batch.client}: expected seq {client.seq}, found {batch.seq}", expected=client.seq
        )

    def _run(
        self, batch: Batch, cancelled: Callable[[], bool], progress: Callable[[int, int], None], poison: bool
    ) -> Answer:
        todo = batch.commands
        due = _last_mentions(batch)
        self._results = []
        self._context = self.context(_MAIN)
        failure: Failure | None = None
        do = self._do
        for index, command in enumerate(todo):
            self._index = index
            if not index % _REPORTED and index:
                progress(index, len(todo))
            if failure is None and cancelled():
                failure = self._failed(index, command, CancelledError("the batch was cancelled by its caller"))
            if failure is None or command.structural:
                try:
                    do[command.__class__](command)
                except Exception as error:
                    failure = failure or self._failed(index, command, error)
            if failure is not None and poison:
                self._poison(command, failure)
            if due and index in due:
                for name in due[index]:
                    self.release(name)
        for name in due.get(-1, ()):
            self.release(name)
        self._note_highest()
        return Answer(tuple(self._results), failure, self.memory.estimate())

    def _failed(self, index: int, command: Command, error: Exception) -> Failure:
        if isinstance(error, MemoryError) and not isinstance(error, TeletapeError):
            error = ResourceExhaustedError(f"command {command.verb!r}: the device has no memory left: {error}")
        elif not isinstance(error, TeletapeError):  # a defect here must not end the session's other work
            error = InternalError(f"command {command.verb!r} failed inside the engine: {type(error).__name__}: {error}")
        op = command.op if isinstance(command, commands.Call) else error.details.get("op")
        where = command.where if isinstance(command, commands.Call) else error.details.get("where")
        details = {k: v for k, v in error.details.items() if k not in ("op", "where")}
        versions = {name: one.version for name, one in self._names.items() if isinstance(one, Variable)}
        return Failure(index, error.code, error.message, op, where, details, versions)

    def _poison(self, command: Command, failure: Failure) -> None:
        for name in commands.outputs(command):
            if name not in self._released:
                self._names.setdefault(name, Poison(failure.message))

    def release(self, name: Id) -> None:
        """Forgets a name. A tape stops recording; arrays that tapes or other values share stay."""
        thing = self._names.pop(name, None)
        if thing is None:
            return
        if isinstance(name, str) or name < _OWN:
            self._released.add(name)
        if isinstance(thing, _Tape) and thing.tape in thing.context.tapes:
            thing.context.pause(thing.tape)

    # ---------------------------------------------------------------------------------------------------------- names
    def _name(self, name: Id, thing: Any) -> None:
        if name in self._names:
            raise IdInUseError(f"the id {name!r} is in use: {_WORDS[type(self._names[name])]}; choose another", id=name)
        if name in self._released:
            raise IdInUseError(f"the id {name!r} was used before and released; choose another", id=name)
        if isinstance(name, int) and name > self._latest:
            self._latest = name
        self._names[name] = thing

    def _note_highest(self) -> None:
        """An id of a client's own, up to the highest that it has used, that names nothing was released."""
        client = self._latest >> CLIENT_BITS
        self._highest[client] = max(self._highest[client], self._latest)
        self._latest = 0

    @overload
    def find(self, name: Id, kind: type[T]) -> T: ...
    @overload
    def find(self, name: Id, kind: tuple[type[Any], ...]) -> Any: ...
    def find(self, name: Id, kind: type[Any] | tuple[type[Any], ...]) -> Any:
        """What is under `name`.

        Raises:
            UnknownIdError, ReleasedIdError: Nothing is.
            PoisonedError: A value that was never made; with the first cause.
            InvalidArgumentError: Something of another kind.
        """
        thing = self._names.get(name)
        if isinstance(thing, kind):
            return thing
        if thing is None:
            self._note_highest()
            if name in self._released or (isinstance(name, int) and _OWN <= name <= self._highest[name >> CLIENT_BITS]):
                raise ReleasedIdError(f"the id {name!r} was released: its value is gone", id=name)
            raise UnknownIdError(f"unknown id {name!r}: nothing in this session has it", id=name)
        if isinstance(thing, Poison):
            raise PoisonedError(thing.cause, id=name)
        kinds = kind if isinstance(kind, tuple) else (kind,)
        wanted = " or ".join(dict.fromkeys(_WORDS[one] for one in kinds))
        raise InvalidArgumentError(f"the id {name!r} is {_WORDS[type(thing)]}, and {wanted} is needed", id=name)

    def _input(self, given: commands.Input) -> Any:
        """A command's input as a recorded value: an id is looked up, a variable read, slices made dense."""
        if given.__class__ is int or given.__class__ is str:
            thing = self._names.get(given)
            if thing.__class__ is Value:
                return thing
            thing = self.find(given, (Value, Variable, SlicesValue))
            if isinstance(thing, Variable):
                return self._context.read(thing)
            return self._dense(thing) if isinstance(thing, SlicesValue) else thing
        return given if isinstance(given, Literal) else self._context.constant(given)  # type: ignore[arg-type]  # no id

    def _dense(self, slices: SlicesValue) -> Value:
        op = CATALOGUE["unsorted_segment_sum"]
        attrs = op.attrs({"num_segments": slices.dense.shape[0]})
        return self._context.apply(op, (slices.values, slices.indices), attrs)

    # ------------------------------------------------------------------------------------------------------- commands
    def _value(self, given: Any, like: Spec | None = None) -> Value:
        """An input as a value: a literal becomes an array, of the dtype of `like` if that is given."""
        found = self._input(given)
        if isinstance(found, Literal):
            return self._context.number(found, weak_dtype(found.spec, None if like is None else like.dtype))
        return found  # type: ignore[no-any-return]  # narrowed: a Value

    def _put(self, command: commands.Put) -> None:
        self._name(command.id, self._value(command.value))

    def _variable(self, command: commands.MakeVariable) -> None:
        value = self._value(command.value)
        name = command.name if command.name is not None else str(command.id)
        self._name(command.id, Variable(value.alias(new_uid()), trainable=command.trainable, name=name))

    def _assign(self, command: commands.Assign) -> None:
        variable = self.find(command.variable, Variable)
        value = self._value(command.value, like=variable.spec)
        if value.spec is not variable.spec:
            raise InvalidArgumentError(
                f"variable {variable.name!r} holds {variable.spec!r}, found {value.spec!r}: an assignment keeps both "
                "shape and dtype"
            )
        if command.mode == "set":
            variable.assign(value.alias(new_uid()))
        elif command.mode in ("add", "sub"):
            # Outside every tape, as in TensorFlow: an update is no step of the function that is differentiated.
            bound = CATALOGUE[command.mode].call((variable.spec, value.spec))
            variable.assign(self._context.run(bound, (variable.value, value)))
        else:
            raise InvalidArgumentError(f"assign: unknown mode {command.mode!r}; it must be set, add or sub")

    def _call(self, command: commands.Call) -> None:
        op = CATALOGUE.get(command.op) or CATALOGUE.named(command.op)
        names = self._names
        inputs: list[Any] = []
        for one in command.inputs:
            thing: Any = one
            if one.__class__ is int:
                thing = names.get(one)
            if thing.__class__ is Value or thing.__class__ is Literal:
                inputs.append(thing)
            else:
                inputs.append(self._input(one))
        if len(command.outputs) != 1:
            raise InvalidArgumentError(f"op {op.name!r} has 1 output, found {len(command.outputs)} ids")
        attrs = op.attrs(command.attrs) if command.attrs or op.schema.attrs else NO_ATTRS
        result = self._context.apply(op, inputs, attrs, command.where)
        (name,) = command.outputs
        if name.__class__ is int and name not in names and name not in self._released:
            names[name] = result
            if name > self._latest:
                self._latest = name
        else:
            self._name(name, result)
        if op.dynamic:
            self._results.append(Made(self._index, (result.spec,)))

    def _tape_open(self, command: commands.TapeOpen) -> None:
        tape = Tape(persistent=command.persistent, watch_accessed=command.watch_accessed)
        self._name(command.id, _Tape(tape, self._context))
        self._context.open(tape)

    def _tape_watch(self, command: commands.TapeWatch) -> None:
        held = self.find(command.tape, _Tape)
        for name in command.values:
            if not isinstance(self._names.get(name), Poison):
                held.context.watch(held.tape, [self.find(name, (Value, Variable))])

    def _tape_pause(self, command: commands.TapePause) -> None:
        held = self.find(command.tape, _Tape)
        held.context.pause(held.tape)

    def _tape_resume(self, command: commands.TapeResume) -> None:
        held = self.find(command.tape, _Tape)
        if held.tape in held.context.tapes and held.context is not self._context:
            raise TapeStateError(f"tape {command.tape!r} is recording in another context: pause it there first")
        held.context = self._context
        self._context.open(held.tape)

    def _tape_reset(self, command: commands.TapeReset) -> None:
        held = self.find(command.tape, _Tape)
        held.context.reset(held.tape)

    def _switch(self, command: commands.ContextSwitch) -> None:
        self._context = self.context(command.context)

    def _gradient(self, command: commands.Gradient) -> None:
        held = self.find(command.tape, _Tape)
        if command.unconnected not in ("none", "zero"):
            raise InvalidArgumentError(f"Unknown value for unconnected_gradients: {command.unconnected!r}")
        if len(command.outputs) != len(command.sources):
            raise InvalidArgumentError(f"{len(command.sources)} sources, but {len(command.outputs)} output ids")
        targets = [self._question(one) for one in command.targets]
        sources = [self._question(one) for one in command.sources]
        seeds: list[Value | None] | None = None
        if command.seeds is not None:
            if len(command.seeds) != len(targets):
                raise InvalidArgumentError(
                    f"{len(targets)} targets, but {len(command.seeds)} seeds: one for each, null for ones"
                )
            seeds = [
                None if seed is None else self._value(seed, like=target.spec)
                for seed, target in zip(command.seeds, targets, strict=True)
            ]
        self.memory.spend(sum([one.spec.nbytes for one in sources]), "the gradient")
        found = self._context.gradient(
            held.tape,
            targets,
            sources,
            seeds=seeds,
            zeros=command.unconnected == "zero",
            no_gradient=self.no_gradient,
        )
        kinds = tuple([kind_of(one).value for one in found])
        if command.predicted is not None and kinds != command.predicted:
            raise StructureMismatchError(
                f"the gradient of {list(command.targets)} has the structure {list(kinds)}, predicted was "
                f"{list(command.predicted)}: the caller's catalogue or tape differs from the server's",
                kinds=list(kinds),
            )
        for name, value in zip(command.outputs, found, strict=True):
            if name is not None and value is not None:
                self._name(name, value)
        self._results.append(Kinds(self._index, kinds))

    def _question(self, name: Id) -> Any:
        """A target or a source: a variable stays itself."""
        return self.find(name, (Value, Variable))

    def _declare(self, command: commands.Declare) -> None:
        declare_no_gradient(self.no_gradient, command.no_gradient, CATALOGUE)

    def _define(self, command: commands.DefineProgram) -> None:
        self._name(command.id, Program(command.inputs, command.calls, command.outputs))

    def _call_program(self, command: commands.CallProgram) -> None:
        program = self.find(command.program, Program)
        if len(command.outputs) != len(program.outputs):
            raise InvalidArgumentError(
                f"the program has {len(program.outputs)} outputs, found {len(command.outputs)} ids"
            )
        made = program.run(self._context, [self._input(one) for one in command.inputs])
        for name, value in zip(command.outputs, made, strict=True):
            self._name(name, self._value(value) if isinstance(value, Literal) else value)

    def _part(self, command: commands.Part) -> None:
        slices = self.find(command.id, SlicesValue)
        if command.part not in ("values", "indices"):
            raise InvalidArgumentError(f"slices have the parts values and indices, found {command.part!r}")
        self._name(command.output, slices.values if command.part == "values" else slices.indices)

    def _fetch(self, command: commands.Fetch) -> None:
        thing = self.find(command.id, (Value, Variable, SlicesValue))
        self._results.append(self._fetched(command.id, thing, command.elements))

    def _fetched(self, name: Id, thing: Any, elements: int | None) -> Fetched:
        if isinstance(thing, SlicesValue):
            parts = SlicesArrays(self.host(thing.values), self.host(thing.indices), thing.dense)
            return Fetched(self._index, name, parts, thing.dense, True)
        value: Value = thing.value if isinstance(thing, Variable) else thing
        if elements is None or elements >= value.spec.size:
            return Fetched(self._index, name, self.host(value), value.spec, True)
        head = value.array.reshape(-1)[:elements]
        return Fetched(self._index, name, _read_only(self.backend.get(head)), value.spec, False)

    def host(self, value: Value) -> np.ndarray[Any, Any]:
        """The value's numbers on the host, row-major, read only."""
        return _read_only(np.ascontiguousarray(self.backend.get(value.array)).reshape(value.spec.shape))

    # -------------------------------------------------------------------------------------------------------- looking
    def describe(self, name: Id) -> dict[str, Any]:
        """What is under an id, as JSON-able facts.

        Raises:
            UnknownIdError, ReleasedIdError, PoisonedError: Nothing is.
        """
        thing = self.find(name, (Value, Variable, SlicesValue, _Tape, Program))
        return self._facts(name, thing)

    def _facts(self, name: Id, thing: Any) -> dict[str, Any]:
        if isinstance(thing, _Tape):
            return {
                "id": name,
                "kind": "tape",
                "persistent": thing.tape.persistent,
                "watch_accessed": thing.tape.watch_accessed,
                "recording": thing.tape in thing.context.tapes,
                "consumed": thing.tape.consumed,
                "ops": len(thing.tape.nodes),
                "watched_variables": [one.name for one in thing.tape.variables.values()],
            }
        if isinstance(thing, Program):
            steps = [{"op": step.op.name, "output": step.output} for step in thing.steps]
            return {"id": name, "kind": "program", "inputs": thing.inputs, "outputs": thing.outputs, "steps": steps}
        spec: Spec = thing.spec
        facts: dict[str, Any] = {
            "id": name,
            "kind": "value",
            "dtype": spec.dtype.name,
            "shape": list(spec.shape),
            "bytes": spec.nbytes,
        }
        if isinstance(thing, Variable):
            facts |= {"kind": "variable", "trainable": thing.trainable, "version": thing.version, "name": thing.name}
        elif isinstance(thing, SlicesValue):
            facts |= {"kind": "slices", "rows": thing.indices.spec.shape[0]}
        return facts

    def listing(self, kind: str) -> list[dict[str, Any]]:
        """Everything named, of one kind: value, slices, variable, tape or program."""
        facts = [self._facts(name, one) for name, one in self._names.items() if not isinstance(one, Poison)]
        return [one for one in facts if one["kind"] == kind]

    def bytes_in_use(self) -> int:
        """Bytes of all arrays that names, tapes and kept answers hold alive, each buffer once."""
        base = self.backend.base
        buffers = dict(base(value.array) for value in self._alive() if not isinstance(value, Literal))
        buffers.update(CPU.base(array) for array in self._kept())
        return sum(buffers.values())

    def _kept(self) -> Iterator[np.ndarray[Any, Any]]:
        """Numbers on the host that a client may ask for again."""
        for client in self._clients.values():
            for result in client.answer.results if client.answer is not None else ():
                if isinstance(result, Fetched):
                    yield from result.array[:2] if isinstance(result.array, SlicesArrays) else (result.array,)

    def _alive(self) -> Iterator[Any]:
        tapes = []
        for context in self._contexts.values():
            tapes += context.tapes
            yield from context.reads()
        for thing in self._names.values():
            if isinstance(thing, Value):
                yield thing
            elif isinstance(thing, Variable):
                yield thing.value
            elif isinstance(thing, SlicesValue):
                yield thing.values
                yield thing.indices
            elif isinstance(thing, _Tape):
                tapes.append(thing.tape)
        for tape in {id(one): one for one in tapes}.values():
            for node in tape.nodes:
                yield from node[3]
            for variable in tape.variables.values():
                yield variable.value


#: What messages call each kind of thing.
_WORDS: Final = {
    Value: "a value",
    SlicesValue: "slices",
    Poison: "a value that failed",
    Variable: "a variable",
    _Tape: "a tape",
    Program: "a program",
}


def _read_only(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    array = array.view()
    array.flags.writeable = False
    return array


def _last_mentions(batch: Batch) -> dict[int, list[Id]]:
    """For each command index the released ids that it is the last to mention; -1: mentioned by none."""
    if not batch.releases:
        return {}
    pending = dict.fromkeys(batch.releases)
    due: dict[int, list[Id]] = {}
    for index in range(len(batch.commands) - 1, -1, -1):
        for name in commands.mentions(batch.commands[index]):
            if name in pending:
                del pending[name]
                due.setdefault(index, []).append(name)
        if not pending:
            break
    if pending:
        due[-1] = list(pending)
    return due
