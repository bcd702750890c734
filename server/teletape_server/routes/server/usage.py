"""/usage: who uses the server now, and why the caller's requests wait. No admin's key is needed."""

from __future__ import annotations

import time
from typing import Annotated

from fastapi import APIRouter, Query, Request

from teletape_server.http.access import Authenticated, identity_of, waits_of
from teletape_server.http.declarations import refusals
from teletape_server.http.progress import use_of
from teletape_server.models.budgets import timeline
from teletape_server.models.parameters import TimelineSteps
from teletape_server.models.waiting import BoxUse

router = APIRouter(tags=["server"])


@router.get("/usage", summary="See who uses the server, and why you wait", responses=refusals("unauthenticated"))
async def usage(request: Request, principal: Authenticated, query: Annotated[TimelineSteps, Query()]) -> BoxUse:
    """Lists what each key has now: sessions, memory, processes that compute, requests that wait, and its share.

    Your own unanswered requests are listed with what each waits for: who is ahead, when it will start as far as that
    can be estimated, and the reason in one sentence. Other keys are named, and of their sessions only the one that is
    idle for longest: its owner may park or end it. All of it is as of half a second ago at most.

    With `timeline`, who computed when: an admin sees all accounts, others their own and the rest as a sum.
    """
    use = use_of(waits_of(request), principal.owner)
    if query.timeline is not None:
        use.timeline = timeline(identity_of(request).budgets, principal, query.timeline, time.time())
    return use
