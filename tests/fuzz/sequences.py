"""Random sequences of batches that are mostly valid, on small arrays, and the laws that hold for every sequence.

codes       a batch fails with documented codes alone
forms       a batch is the same after its way through JSON
rollback    a batch that fails, and is to roll back, leaves the names and the numbers that were there
replay      the same batches in another session give the same answers: results, codes, messages
released    once every name is released and every context ended, no bytes are in use
file, log   another session goes on bit for bit from what is written down; see `written_down`
"""

import random
from collections.abc import Iterator, Sequence
from itertools import cycle
from typing import Any, Final

import numpy as np

import teletape_wire as wire
from fuzz import written_down
from fuzz.sessions import check_alive, encoded, execute, new_session
from fuzz.target import Finding
from teletape_engine import commands
from teletape_engine.commands import Batch, Call, Command, OnFailure, outputs
from teletape_engine.commands.results import Answer
from teletape_engine.errors import ReleasedIdError, TeletapeError
from teletape_engine.recording.values import Literal
from teletape_engine.session.session import Session

#: After how many looks the batches of a log are stopped; 0: never.
_STOPS: Final = (0, 1, 0, 2, 5)
_KINDS: Final = ("tensor", "slices", "variable", "function", "tape")
_UNARY: Final = ("neg", "tanh", "exp", "square", "softmax", "identity", "stop_gradient", "zeros_like", "cumsum")
_BINARY: Final = ("add", "sub", "mul", "div", "maximum", "squared_difference", "less")
_FUNCTIONS: Final = (
    commands.DefineFunction("square", ("a",), (Call("mul", ("a", "a"), ("b",)),), ("b",)),
    commands.DefineFunction("more", ("i", "a"), (Call("less", ("i", Literal(3)), ("c",)),), ("c",)),
    commands.DefineFunction(
        "step",
        ("i", "a"),
        (Call("add", ("i", Literal(1)), ("j",)), Call("mul", ("a", Literal(0.5)), ("b",))),
        ("j", "b"),
    ),
    commands.DefineFunction("each", ("a",), (Call("tanh", ("a",), ("b",)),), ("b",)),
)


class Sequences:
    """The target: a case is {batches}, each as JSON."""

    name = "sequences"

    def close(self) -> None:
        """Nothing has been started."""

    def draw(self, rng: random.Random) -> Any:
        """Batches of one session: what they name exists, most of the time."""
        author = _Author(rng)
        return {
            "batches": [wire.batch_to_json(author.batch(first=number == 0)) for number in range(rng.randint(3, 12))]
        }

    def check(self, case: Any) -> list[str]:
        """Executes the batches under every law."""
        batches = [_read(written) for written in case["batches"]]
        session, again = new_session(), new_session()
        outcomes = []
        for batch in batches:
            before = _inventory(session)
            _inventory(again)  # explanations know what has been read
            answer = execute(session, batch)
            rolls_back = batch.on_failure is OnFailure.ROLLBACK
            if rolls_back and isinstance(answer, Answer) and answer.failure is not None:
                _check_rollback(session, batch, before)
            _check_replay(batch, answer, execute(again, batch))
            outcomes.append(answer if isinstance(answer, str) else "failed" if answer.failure else "executed")
        check_alive(session)
        _check_released(session, batches)
        written_down.check_file(batches, len(batches) // 2)
        written_down.check_log(batches, cycle(_STOPS))
        return outcomes

    def smaller(self, case: Any) -> Iterator[Any]:
        """Without a batch; without a command."""
        batches = case["batches"]
        for index in reversed(range(len(batches))):
            yield {"batches": batches[:index] + batches[index + 1 :]}
        for index, batch in enumerate(batches):
            written = batch["commands"]
            for at in range(len(written)):
                shorter = batch | {"commands": written[:at] + written[at + 1 :]}
                yield {"batches": [*batches[:index], shorter, *batches[index + 1 :]]}


# ---------------------------------------------------------------------------------------------------------------- laws
def _read(written: Any) -> Batch:
    """The batch, which is the same after another way through JSON."""
    batch = wire.batch_from_json(written)
    if encoded(wire.batch_from_json(wire.batch_to_json(batch))) != encoded(batch):
        raise Finding("forms", "a batch changes on its way through JSON")
    return batch


def _inventory(session: Session) -> dict[str, Any]:
    """What every name means: its numbers, or its facts."""
    names: dict[str, Any] = {}
    for kind in _KINDS:
        names |= dict.fromkeys(_listed(session, kind), kind)
    wanted = [name for name, kind in names.items() if kind in ("tensor", "variable")]
    answer = session.execute(Batch(tuple(commands.Fetch(name) for name in wanted)))
    for result in answer.results:
        names[result.id] = (names[result.id], np.asarray(result.array).tobytes())
    return names


def _listed(session: Session, kind: str) -> list[Any]:
    """The ids of everything of one kind."""
    try:
        return [facts["id"] for facts in session.listing(kind)]
    except Exception as error:
        raise Finding(f"a listing of {kind} raises {type(error).__name__}", str(error)) from error


def _check_rollback(session: Session, batch: Batch, before: dict[str, Any]) -> None:
    after = _inventory(session)
    assigned = {command.variable for command in batch.commands if isinstance(command, commands.Assign)}
    released = {*batch.releases, *batch.temporaries}
    for name, was in before.items():
        if name in released:
            continue
        if name not in after:
            raise Finding("rollback: a name is gone", f"{name!r}")
        if after[name] != was and name not in assigned:
            raise Finding("rollback: numbers changed", f"{name!r}")
    if extra := after.keys() - before.keys():
        raise Finding("rollback: a name stays", f"{sorted(extra)}")


def _check_replay(batch: Batch, first: Answer | str, second: Answer | str) -> None:
    if isinstance(first, str) or isinstance(second, str):
        same = first == second
    else:
        served = wire.Served(0.0, 0.0, 0.0)
        answers = [
            wire.answer_to_json(Answer(answer.results, answer.failure, 0), served, full=True)
            for answer in (first, second)
        ]
        same = repr(answers[0]) == repr(answers[1])  # NaN is unequal to itself, and its text is not
    if not same:
        raise Finding("replay: another answer", f"first {first!r:.600}, then {second!r:.600}")


def _check_released(session: Session, batches: Sequence[Batch]) -> None:
    """Nothing is in use once all names are released, all contexts ended and a new tape has begun an epoch."""
    created = dict.fromkeys(name for batch in batches for command in batch.commands for name in outputs(command))
    contexts = {command.context for batch in batches for command in batch.commands if _switches(command)} - {0}
    last = Batch(
        (
            *(commands.ContextEnd(context) for context in contexts),
            commands.ContextSwitch(0),
            commands.TapeOpen("the last tape"),
            commands.TapePause("the last tape"),
        ),
        (*created, "the last tape"),
    )
    execute(session, last)
    if left := session.bytes_in_use():
        raise Finding("released: bytes in use", f"{left} bytes")
    for name in created:
        try:
            session.describe(name)
        except ReleasedIdError:
            continue
        except TeletapeError as error:
            if error.code not in ("unknown_id",):
                raise Finding(f"released: {error.code}", error.message) from error
            continue
        raise Finding("released: a name stays", f"{name!r}")


def _switches(command: Command) -> bool:
    return isinstance(command, commands.ContextSwitch)


# ------------------------------------------------------------------------------------------------------------- drawing
class _Author:
    """Writes batches. It runs each command in a session of its own, and leaves out most failures."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.tensors: list[Any] = []
        self.variables: list[Any] = []
        self.tapes: list[Any] = []
        self.slices: list[Any] = []
        self.accumulators: list[Any] = []
        self.count = 0
        self.session = new_session()
        self.context: Any = 0
        self.replace = False

    def batch(self, *, first: bool) -> Batch:
        """The next batch."""
        rng = self.rng
        todo: list[Command] = []
        self.context = 0
        self.replace = not first and rng.random() < 0.25
        for command in (*_FUNCTIONS, self.constant(), self.variable()) if first else ():
            self.run(command)
            todo.append(command)
        for _ in range(rng.randint(1, 8)):
            command = rng.choice(self.choices())()
            if self.run(command) or rng.random() < 0.05:
                todo.append(command)
        created = [name for command in todo for name in outputs(command)]
        known = [*self.tensors, *self.variables, *self.tapes, *self.slices]
        releases = tuple(dict.fromkeys(rng.choice(known) for _ in range(rng.choice([0, 0, 0, 1, 2])) if known))
        temporaries = tuple(rng.sample(created, 1)) if created and rng.random() < 0.1 else ()
        self.session.execute(Batch((), (*releases, *temporaries)))
        self.look_around()
        on_failure = rng.choice(list(OnFailure))
        return Batch(tuple(todo), releases, temporaries=temporaries, on_failure=on_failure, replace=self.replace)

    def run(self, command: Command) -> bool:
        """Whether the command succeeds."""
        answer = execute(
            self.session,
            Batch((commands.ContextSwitch(self.context), command), on_failure=OnFailure.FREE, replace=self.replace),
        )
        if isinstance(answer, str) or answer.failure is not None:
            return False
        if isinstance(command, commands.ContextSwitch):
            self.context = command.context
        return True

    def look_around(self) -> None:
        """Forgets what does not exist."""
        for kind, names in (("tensor", self.tensors), ("variable", self.variables), ("tape", self.tapes)):
            there = set(_listed(self.session, kind))
            names[:] = [name for name in names if name in there]
        self.slices = _listed(self.session, "slices")

    def choices(self) -> list[Any]:
        """What may come next, what is common more than once."""
        return [
            *(self.constant, self.variable, self.assign, self.unary, self.unary, self.binary, self.binary, self.binary),
            *(self.gather, self.reduce, self.open_tape, self.open_tape, self.watch, self.turn, self.turn),
            *(self.gradient, self.gradient, self.question, self.question, self.fetch, self.call, self.loop),
            *(self.accumulate, self.tangent, self.switch, self.component, self.inspect, self.broken),
        ]

    # -------------------------------------------------------------------------------------------------------- names
    def new(self, of: list[Any] | None = None) -> Any:
        """A new name, remembered as of that kind; seldom one that is taken."""
        self.count += 1
        name = f"v{self.count}" if self.rng.random() < 0.7 else self.count
        if self.tensors and self.rng.random() < (0.4 if self.replace else 0.02):
            name = self.rng.choice(self.tapes if of is self.tapes and self.tapes else self.tensors)
        if of is not None:
            of.append(name)
        return name

    def some(self, of: list[Any]) -> Any:
        """A name of that kind; seldom another."""
        if of and self.rng.random() < 0.95:
            return self.rng.choice(of[-6:])
        return self.rng.choice([*self.tensors, *self.variables, *self.tapes, "nobody", 999])

    def value(self) -> Any:
        """A tensor or a variable."""
        return self.some(self.tensors if self.rng.random() < 0.7 else self.variables)

    def values(self) -> tuple[Any, ...]:
        """One to three of them."""
        return tuple(self.value() for _ in range(self.rng.choice([1, 1, 2, 3])))

    def array(self) -> Any:
        """Three numbers, most of the time."""
        shape = self.rng.choice([(3,), (3,), (3,), (3,), (), (2, 3), (0,), (1,)])
        dtype = self.rng.choice(["float32"] * 6 + ["float64", "int32", "bool"])
        return np.full(shape, self.rng.choice([0.5, 1.0, -2.0, 0.0]), dtype)

    # ------------------------------------------------------------------------------------------------------ commands
    def constant(self) -> Command:
        return commands.Constant(self.new(self.tensors), self.array())

    def variable(self) -> Command:
        value = self.array() if self.rng.random() < 0.7 else self.value()
        return commands.MakeVariable(self.new(self.variables), value, self.rng.random() < 0.9)

    def assign(self) -> Command:
        if self.rng.random() < 0.3:
            at = np.array([self.rng.choice([0, 1, 2, 5])])
            return commands.Assign(self.some(self.variables), np.ones(1, np.float32), "scatter_add", at)
        value = self.array() if self.rng.random() < 0.5 else self.value()
        return commands.Assign(self.some(self.variables), value, self.rng.choice(["set", "add", "sub"]))

    def unary(self) -> Command:
        return Call(self.rng.choice(_UNARY), (self.value(),), (self.new(self.tensors),))

    def binary(self) -> Command:
        other = Literal(self.rng.choice([0.5, 2, -1.0])) if self.rng.random() < 0.3 else self.value()
        return Call(self.rng.choice(_BINARY), (self.value(), other), (self.new(self.tensors),), where="a.py:1")

    def gather(self) -> Command:
        at = np.array([self.rng.choice([0, 1, 2, 2, 7]), 0], np.int32)
        return Call("gather", (self.value(), at), (self.new(self.tensors),))

    def reduce(self) -> Command:
        return Call(
            self.rng.choice(["reduce_sum", "reduce_max", "nonzero"]), (self.value(),), (self.new(self.tensors),)
        )

    def open_tape(self) -> Command:
        rng = self.rng
        return commands.TapeOpen(self.new(self.tapes), rng.random() < 0.7, rng.random() < 0.8, rng.random() < 0.3)

    def watch(self) -> Command:
        return commands.TapeWatch(self.some(self.tapes), self.values())

    def turn(self) -> Command:
        kind = self.rng.choice([commands.TapePause, commands.TapePause, commands.TapeResume, commands.TapeReset])
        return kind(self.some(self.tapes))

    def gradient(self) -> Command:
        sources = self.values()
        names = tuple(self.new(self.tensors) if self.rng.random() < 0.8 else None for _ in sources)
        unconnected = self.rng.choice(["none", "zero", "zero"])
        retain = self.rng.random() < 0.2
        return commands.Gradient(
            self.some(self.tapes), self.values(), sources, names, None, unconnected, retain_tape=retain
        )

    def question(self) -> Command:
        rng, tape, target, source = self.rng, self.some(self.tapes), self.value(), self.value()
        name, kind = self.new(self.tensors), rng.randrange(7)
        if kind == 0:
            return commands.Jacobian(tape, (target,), (source,), (name,), "zero", chunk_size=rng.choice([None, 1, 2]))
        if kind == 1:
            return commands.Hessian(tape, (target,), (source,), (name,), "zero")
        if kind == 2:
            return commands.Hvp(tape, (target,), (source,), (np.ones(3, np.float32),), (name,), "zero")
        if kind == 3:
            return commands.Vjps(tape, (target,), (source,), (name,), (np.ones((2, 3), np.float32),), "zero")
        if kind == 4:
            return commands.SparseJacobian(tape, (target,), (source,), (None, None, name), "csr", "zero")
        if kind == 5:
            return commands.SparseHessian(tape, (target,), (source,), (name, None, None), "coo", "zero")
        return commands.BatchJacobian(tape, (target,), (source,), (name,), "zero")

    def fetch(self) -> Command:
        return commands.Fetch(self.value(), self.rng.choice([None, 1, 0]), self.rng.random() < 0.2)

    def call(self) -> Command:
        if self.rng.random() < 0.5:
            return commands.CallFunction("square", (self.value(),), (self.new(self.tensors),))
        result = self.new(self.tensors)
        return commands.Scan("each", (self.value(),), (result,), vectorize=self.rng.random() < 0.5)

    def loop(self) -> Command:
        most = self.rng.choice([None, 0, 2])
        names = (self.new(), self.new(self.tensors))
        return commands.While("more", "step", (Literal(0), self.value()), names, 0, most)

    def accumulate(self) -> Command:
        if self.accumulators and self.rng.random() < 0.5:
            kind = self.rng.choice([commands.AccumulatorClose, commands.AccumulatorResume])
            return kind(self.some(self.accumulators))
        tangent = np.ones(3, np.float32)
        return commands.AccumulatorOpen(self.new(self.accumulators), (self.value(),), (tangent,))

    def tangent(self) -> Command:
        return commands.Jvp(self.some(self.accumulators), (self.value(),), (self.new(self.tensors),), "zero")

    def switch(self) -> Command:
        context = self.rng.choice([0, 0, "thread", "task"])
        return commands.ContextEnd(context) if self.rng.random() < 0.2 else commands.ContextSwitch(context)

    def component(self) -> Command:
        part = self.rng.choice(["values", "indices"])
        return commands.SlicesComponent(self.some(self.slices), part, self.new(self.tensors))

    def inspect(self) -> Command:
        tape, target, source = self.some(self.tapes), self.value(), self.value()
        return self.rng.choice(
            [
                commands.Explain(tape, (target,), (source,)),
                commands.TapeDescribe(tape),
                commands.TapeGraph(tape, (target,), (source,), 20),
                commands.TapeCheckGradients(tape, (target,), (source,), {"entries": 2}),
            ]
        )

    def broken(self) -> Command:
        """What cannot succeed."""
        return self.rng.choice(
            [
                Call("no such op", (self.value(),), (self.new(),)),
                Call("matmul", (self.value(), self.value()), (self.new(),)),
                Call("fill", (Literal(1.0),), (self.new(),), {"shape": (10**6, 10**3)}),
                commands.Constant(self.new(), Literal(1)),
                commands.Fetch("nobody"),
            ]
        )
