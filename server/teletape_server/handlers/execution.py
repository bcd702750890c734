"""Runs a request's commands on the session, and looks up what an id names."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Final

from teletape_engine.catalogue.op import CATALOGUE
from teletape_engine.commands import Assign, Batch, Call, Command, Id, OnFailure, Repetition, schema
from teletape_engine.commands.results import Answer, Failure
from teletape_engine.errors import TeletapeError, UnknownIdError, tree
from teletape_engine.session.session import Session
from teletape_engine.session.state import State
from teletape_engine.spec import DIFFERENTIABLE, dtype_of
from teletape_server.handlers.methods import Request
from teletape_server.models.faults import located

_MOST_OPS: Final = 16  # that a line of the log names
#: The REST collection of each kind of thing that an id can name.
COLLECTIONS: Final = {
    "tensor": "tensors",
    "slices": "tensors",
    "variable": "variables",
    "tape": "tapes",
    "function": "functions",
}


def command(verb: str, /, **fields: Any) -> Command:
    """Returns the command with these fields; a field that is None keeps its default.

    Raises:
        BadCommandError: A field is of the wrong kind.
    """
    return schema.make(verb, {name: value for name, value in fields.items() if value is not None})


def constants(tensors: Mapping[str, Any]) -> list[Command]:
    """Returns the commands that create tensors, by id."""
    return [command("constant", id=id, value=value) for id, value in tensors.items()]


def execute(
    session: Session,
    request: Request,
    commands: Sequence[Command],
    *,
    before: Sequence[Command] = (),
    after: Sequence[Command] = (),
    releases: Sequence[Id] = (),
    temporaries: Sequence[Id] = (),
    rollback: bool = False,
    replace: bool = False,
    name_command: bool = False,
) -> Answer:
    """Runs commands as one batch; ids that a failure leaves without a value stay free.

    Args:
        session: The session.
        request: The request, whose caller may cancel.
        commands: The caller's commands.
        before: The server's own commands that run before them.
        after: The server's own commands that run after them.
        releases: Ids to release after their last use.
        temporaries: Ids that end with the batch.
        rollback: Whether a failure also frees the ids that earlier commands created.
        replace: Whether new ids may be in use or released.
        name_command: Whether an error has to say which of the caller's commands failed.

    Raises:
        TeletapeError: The first command that failed; those before it stay done.
    """
    batch = Batch(
        (*before, *commands, *after),
        tuple(releases),
        temporaries=tuple(temporaries),
        on_failure=OnFailure.ROLLBACK if rollback else OnFailure.FREE,
        replace=replace,
    )
    answer = executed(session, request, batch)
    if answer.failure is not None:
        raise error_of(session, answer.failure, commands, first=len(before), name_command=name_command)
    return answer


def executed(session: Session, request: Request, batch: Batch | Repetition) -> Answer:
    """Returns the answer to a batch, or its failure, under the request's time limit and cancel."""
    request.batch = batch
    return session.execute(
        batch, cancelled=request.cancelled, progress=request.progress, budget=request.budget, explain=True
    )


def computed(session: Session, request: Request, batch: Repetition) -> Answer | None:
    """Returns the answer to a batch that takes no value of the session and leaves none; None: it is to be executed.

    See `Session.values`.
    """
    request.batch = batch
    return session.values(batch, cancelled=request.cancelled, progress=request.progress, budget=request.budget)


def ops_of(batch: Batch | Repetition | None) -> dict[str, int]:
    """Returns how often a batch names each op, and each other command by its verb: the most frequent ones first."""
    if batch is None:
        return {}
    commands = batch.structure.commands if isinstance(batch, Repetition) else batch.commands
    return dict(Counter(item.op if isinstance(item, Call) else item.verb for item in commands).most_common(_MOST_OPS))


def error_of(
    session: Session, failure: Failure, commands: Sequence[Command], *, first: int = 0, name_command: bool = False
) -> TeletapeError:
    """Returns the error of a batch that has failed.

    Args:
        session: The session.
        failure: Of the batch.
        commands: The caller's commands.
        first: The number of the server's own commands before them.
        name_command: Whether the error has to say which of the caller's commands failed.
    """
    details = {**failure.details, "op": failure.op, "where": failure.where}
    position = failure.index - first
    failed = commands[position] if 0 <= position < len(commands) else None
    if isinstance(failed, Call):
        details["inputs"] = [operand if isinstance(operand, int | str) else None for operand in failed.inputs]
    advice = "" if failed is None else _advice_on_integers(session, failed)
    if name_command and failed is not None:
        details["command"] = position
    message = located(failure.message + advice, details, verb=None if failed is None else failed.verb)
    errors = tree()
    error = errors.get(failure.code, errors["internal"])
    return error(message, **{name: value for name, value in details.items() if value is not None})


@contextmanager
def located_in(function: Id) -> Iterator[None]:
    """Within the block, what a function's steps refuse before any command runs is said as `execute` says it."""
    try:
        yield
    except TeletapeError as error:
        details = {"function": function, **error.details}
        raise type(error)(located(error.message, details), **details) from None


def _advice_on_integers(session: Session, command: Command) -> str:
    """Returns what to do about floats under an id where a failed command needs integers; numbers in JSON become those.

    The engine's own message is TensorFlow's, and says neither which input it is nor how a caller in JSON names a dtype.
    """
    chosen: dict[str, Any] = {}
    if isinstance(command, Assign):
        chosen["indices"] = command.indices
    elif isinstance(command, Call):
        with suppress(TeletapeError):
            op = CATALOGUE.named(command.op)
            chosen = {op.input_name(i): command.inputs[i] for i in op.integers if i < len(command.inputs)}
    for name, operand in chosen.items():
        if not isinstance(operand, int | str):
            continue
        with suppress(TeletapeError):
            dtype = session.describe(operand).get("dtype")
            if dtype is not None and dtype_of(dtype) in DIFFERENTIABLE:
                return (
                    f"; {name} is {operand!r} of dtype {dtype}: send the numbers in its place, or create it with "
                    '{"dtype": "int32", "data": …}'
                )
    return ""


def described(session: Session, id: Id, collection: str) -> dict[str, Any]:
    """Returns the facts about what an id names.

    Raises:
        UnknownIdError, ReleasedIdError, PoisonedError: The id names nothing.
        UnknownIdError: It names something of another collection.
    """
    facts = session.describe(id)
    actual = COLLECTIONS.get(facts["kind"])
    if actual is None:
        raise UnknownIdError(
            f"the id {id!r} is not in {collection}: it is of kind {facts['kind']}, without a URL", id=id
        )
    if actual != collection:
        raise UnknownIdError(f"the id {id!r} is not in {collection}: it is at {actual}/{id}", id=id)
    return facts


def inspected(session: Session, request: Request, look: Callable[[State], Any]) -> Any:
    """Returns the result of a function that reads the session's state, under the request's time limit and cancel."""
    return session.inspect(look, cancelled=request.cancelled, progress=request.progress, budget=request.budget)
