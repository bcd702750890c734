"""/health, /info, /devices: facts about the server."""

from __future__ import annotations

from fastapi import APIRouter, Request

from teletape_server.http.access import Owner, settings_of
from teletape_server.http.declarations import refusals
from teletape_server.http.schemas import Devices, Health, Info
from teletape_server.problems import overloaded

router = APIRouter(tags=["server"])


@router.get("/health", summary="Check that the server answers")
async def health() -> Health:
    """Needs no key and reaches no session."""
    return Health(status="ok")


@router.get("/info", summary="Get versions, limits and features", responses=refusals("unauthenticated"))
async def info(request: Request, _: Owner) -> Info:
    """Returns what this server supports. A client compares the catalogue's digest with that of its own ops."""
    facts: Info = request.app.state.info
    return facts


@router.get("/devices", summary="List the devices", responses=refusals("unauthenticated", "overloaded"))
async def devices(request: Request, _: Owner) -> Devices:
    """Lists the devices on which sessions can compute, and the default one."""
    try:
        names = await request.app.state.hosts.devices()
    except OSError as error:  # too many files or processes: a process of its own reads them
        raise overloaded(f"the devices could not be read ({error})") from error
    return Devices(devices=names, default=settings_of(request).device)
