"""Training: a step is a function of the session for the time of a request, which `scan` repeats in blocks.

Between two blocks the loss is reported. A block takes about a fifth of a second; in it a plan repeats the step.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from teletape_engine.commands import Call, Command, Constant, ContextSwitch, Fetch, Id, Scan
from teletape_engine.commands import outputs as created_ids
from teletape_engine.commands.results import Fetched
from teletape_engine.errors import TeletapeError
from teletape_engine.session.session import Session
from teletape_server.handlers.answers import tensor_values
from teletape_server.handlers.bodies import new_id, path_id
from teletape_server.handlers.endpoints import WORK, endpoint
from teletape_server.handlers.execution import execute
from teletape_server.handlers.functions.training_loop import TrainingLoop, training_loop
from teletape_server.handlers.methods import Reporter, Request, Result, json_result
from teletape_server.handlers.recording import CONTEXT
from teletape_server.models.functions.training import Training, TrainingAnswer
from teletape_server.models.parameters import Elements

_BLOCK_SECONDS: Final = 0.2  # a block takes about this long, so that progress and cancels come in time
_BLOCK_BYTES: Final = 16 << 20  # of the batches of a block
_FIRST_BLOCK: Final = 16  # steps


@endpoint(
    "POST",
    "/functions/{function}/train",
    TrainingAnswer,
    "Train variables",
    problems=("id_in_use", "no_gradient_registered", *WORK),
    query=Elements,
)
def train(session: Session, request: Request, body: Training) -> Result:
    """Minimizes one of the function's outputs: each step computes the gradients and changes the variables.

    Send `Accept: text/event-stream` to watch steps and loss. POST /cancel stops it between two steps: the variables
    keep what whole steps have assigned.
    """
    for id in body.fetch:
        session.describe(id)
    loop = training_loop(session, path_id(request.params["id"]), body)
    temporary = [id for command in loop.setup for id in created_ids(command) if id not in loop.lasting]
    losses: list[np.ndarray[Any, Any]] = []
    try:
        execute(session, request, loop.setup, rollback=True)
        _run(session, request, loop, losses)
        losses_id = new_id()
        temporary.append(losses_id)
        every_loss = np.concatenate(losses)
        execute(session, request, [Constant(losses_id, every_loss), Constant(f"{losses_id}.last", every_loss[-1])])
        temporary.append(f"{losses_id}.last")
        written, last, *values = tensor_values(session, request, [losses_id, f"{losses_id}.last", *body.fetch])
    finally:
        leftover_ids = [] if losses else loop.lasting  # nothing of a training that never made a block
        execute(session, request, (), temporaries=[*temporary, *leftover_ids])
    not_finite = np.flatnonzero(~np.isfinite(every_loss.astype(np.float64)))
    bytes_in_use = session.estimated_bytes()
    answer = {
        "steps": loop.steps,
        "loss": last,
        "losses": written,
        "first_not_finite": int(not_finite[0]) if not_finite.size else None,
        "values": dict(zip(map(str, body.fetch), values, strict=True)),
        "bytes_in_use": bytes_in_use,
    }
    return json_result(answer, bytes_in_use=bytes_in_use)


# ------------------------------------------------------------------------------------------------------------ execution
def _run(session: Session, request: Request, loop: TrainingLoop, losses: list[np.ndarray[Any, Any]]) -> None:
    """Makes all steps, and appends the losses of each block.

    Raises:
        TeletapeError: A step failed, or the request was cancelled; `steps` in the details says how many were made.
    """
    done, block = 0, min(_FIRST_BLOCK, loop.steps)
    counter = loop.captured[0]
    [first] = _fetched(session, request, [counter])
    last_loss: float | None = None
    while done < loop.steps:
        commands, starts = _block(loop, block, done)
        started = time.monotonic()
        try:
            answer = execute(
                session,
                dataclasses.replace(request, progress=_reporter(request, starts, loop.steps, last_loss)),
                commands,
                temporaries=[id for command in commands for id in created_ids(command)],
                rollback=True,
            )
        except TeletapeError as error:
            [count] = _fetched(session, request, [counter])
            raise type(error)(error.message, **error.details, steps=int(count) - int(first)) from None
        seconds = time.monotonic() - started
        losses += [np.asarray(result.array) for result in answer.results if isinstance(result, Fetched)]
        done += block
        last_loss = float(losses[-1][-1])
        request.progress(0, 1, done, loop.steps, loss=last_loss)
        fitting = int(block * _BLOCK_SECONDS / max(seconds, 1e-6))
        most = max(_BLOCK_BYTES // max(loop.bytes_of_step, 1), 1)
        block = min(max(fitting, 1), 8 * block, most, loop.steps - done)


def _reporter(request: Request, starts: Sequence[int], steps: int, last_loss: float | None) -> Reporter:
    """Returns what reports the iterations of a block's loops as steps of the training.

    Args:
        request: Receives the progress.
        starts: For each command of the block how many steps were made before it.
        steps: The number of steps.
        last_loss: That of the block before.
    """

    def report(
        done: int, total: int, iteration: int = 0, iterations: int = 0, *, loss: float | None = last_loss
    ) -> None:
        request.progress(0, 1, starts[min(done, len(starts) - 1)] + iteration, steps, loss=loss)

    return report


def _block(loop: TrainingLoop, steps: int, done: int) -> tuple[list[Command], list[int]]:
    """Returns the commands of the next steps, and for each command how many steps were made before it."""
    commands: list[Command] = [ContextSwitch(CONTEXT)]
    starts = [done]
    for rows in [None] if loop.order is None else loop.order.take(steps):
        losses = new_id()
        elements: list[Id] = [new_id() for _ in loop.batched]
        if rows is not None:
            numbers = new_id()
            commands.append(Constant(numbers, rows))
            commands += [
                Call("gather", (tensor, numbers), (element,))
                for tensor, element in zip(loop.batched, elements, strict=True)
            ]
        length = steps if rows is None else len(rows)
        inputs = (*elements, *loop.captured)
        commands.append(Scan(loop.step, inputs, (losses,), captured=len(loop.captured), length=length))
        starts += [done] * (len(commands) - len(starts))
        commands.append(Fetch(losses))
        done += length
        starts.append(done)
    return commands, starts


def _fetched(session: Session, request: Request, ids: Sequence[Id]) -> list[Any]:
    """Returns the elements of tensors; the request may be cancelled."""
    unstoppable = dataclasses.replace(request, cancelled=lambda: False)
    answer = execute(session, unstoppable, [Fetch(id) for id in ids])
    return [result.array for result in answer.results if isinstance(result, Fetched)]
