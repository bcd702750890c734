"""Batches of commands: `attach` adds a client to the session, `batch` executes a frame or its JSON form."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import teletape_wire as wire
from teletape_engine.commands import Batch, ClientAttach
from teletape_engine.commands.results import Facts
from teletape_engine.commands.structure import Repetition
from teletape_engine.session.session import Session
from teletape_server.handlers.idempotency import REPLAYED, STORED, not_found
from teletape_server.handlers.methods import Request, Result, json_result, method
from teletape_server.ipc.leases import Terms
from teletape_server.models.faults import located


@method("attach")
def attach(session: Session, request: Request) -> Result:
    """Adds a client, whose number the front may have chosen; returns it, its sequence number and its first free id."""
    [result] = session.execute(Batch((ClientAttach(request.params.get("client", 0)),))).results
    assert isinstance(result, Facts)
    return json_result(result.facts)


@method("batch")
def batch(session: Session, request: Request) -> Result:
    """Decodes a batch, executes it, and encodes the answer in the type that `accept` names.

    Parameters: accept; full and encoding (of JSON answers); now and terms (of the lease, for expires_at);
        stored, of a request for the answer to a frame that was executed.
    """
    answer = None
    sent: Batch | Repetition
    if request.content_type == wire.FRAME_TYPE:
        prefix = request.prefix or wire.decode_prefix(request.body[: wire.PREFIX_LENGTH])
        answer = session.last_answer(prefix.client, prefix.seq, prefix.nonce)  # a retry is not decoded
        if answer is None and STORED in request.params:
            raise not_found()
        if answer is None:
            sent = wire.decode_request(request.body, request.structures, copy_below=request.copy_below, prefix=prefix)
        else:
            sent = Batch((), (), prefix.client, prefix.seq, prefix.nonce)
    else:
        sent = wire.batch_from_json(request.json())
    replayed = answer is not None and STORED not in request.params
    if answer is None:
        request.batch = sent
        answer = session.execute(
            sent,
            cancelled=request.cancelled,
            progress=request.progress,
            budget=request.budget,
            explain=request.params["accept"] != wire.FRAME_TYPE,
        )
    done = time.monotonic()
    served = wire.Served(
        Terms(*request.params["terms"]).expires_at(request.params["now"] + done - request.received),
        max(request.started - request.received, 0.0),
        done - request.started,
    )
    facts: dict[str, Any] = {"bytes_in_use": answer.bytes_in_use}
    if replayed:
        facts["headers"] = REPLAYED
    if request.params["accept"] == wire.FRAME_TYPE:
        frame = wire.encode_answer(answer, served, client=sent.client, seq=sent.seq, nonce=sent.nonce)
        return Result(wire.FRAME_TYPE, frame.buffers, frame.length, facts)
    if answer.failure is not None:
        first, *further = [
            replace(each, message=located(each.message, {**each.details, "op": each.op, "where": each.where}))
            for each in answer.failures
        ]
        answer = replace(answer, failure=first, further_failures=tuple(further))
    encoding = request.params["encoding"] or None
    body = wire.answer_to_json(answer, served, full=request.params["full"], encoding=encoding, unwritten=True)
    return json_result(body, **facts)
