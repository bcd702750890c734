"""The reset of a tape: it can record again. In the order of the API page, what it ends comes before it."""

from __future__ import annotations

from teletape_engine.commands import TapeReset
from teletape_engine.session.session import Session
from teletape_server.handlers.bodies import path_id
from teletape_server.handlers.endpoints import STATE, endpoint
from teletape_server.handlers.execution import execute
from teletape_server.handlers.methods import Request, Result, json_result
from teletape_server.handlers.recording import active, check_not_consumed, check_paused, tape_facts
from teletape_server.models.tapes.tapes import ResetTape, Tape


@endpoint("POST", "/tapes/{tape}/reset", Tape, "Reset a tape", problems=STATE, needs_body=False)
def reset(session: Session, request: Request, body: ResetTape) -> Result:
    """Removes everything that the tape recorded and watched; it can record again.

    With `release_outputs` the next step of a loop can begin with the same ids.
    """
    tape = path_id(request.params["id"])
    facts = tape_facts(session, tape)
    check_paused(facts)
    check_not_consumed(facts)
    before, after = active([tape])
    execute(session, request, [TapeReset(tape, body.release_outputs)], before=before, after=after)
    return json_result(tape_facts(session, tape), bytes_in_use=session.estimated_bytes())
