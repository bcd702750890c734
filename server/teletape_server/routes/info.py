"""What the server is: health, versions and limits, devices."""

from __future__ import annotations

from fastapi import APIRouter, Request

from teletape_server.http.admission import Caller, settings_of
from teletape_server.http.openapi import refusals
from teletape_server.http.schemas import Devices, Health, Info

router = APIRouter(tags=["server"])


@router.get("/health", summary="Whether the server answers")
async def health() -> Health:
    """Needs no key, and asks nothing of any session."""
    return Health()


@router.get("/info", summary="Versions, limits and features", responses=refusals("unauthenticated"))
async def info(request: Request, _: Caller) -> Info:
    """What this server speaks and allows. A client whose catalogue has another digest treats ops as unknown to it."""
    found: Info = request.app.state.info
    return found


@router.get("/devices", summary="Where sessions can compute", responses=refusals("unauthenticated"))
async def devices(request: Request, _: Caller) -> Devices:
    """The devices of this machine, and the one that a session gets when it names none."""
    return Devices(devices=await request.app.state.hosts.devices(), default=settings_of(request).device)
