"""/v1, /health, /info, /devices: facts about the server, and where everything is."""

from __future__ import annotations

from typing import Final

from fastapi import APIRouter, Request, Response

from teletape_server.http.access import Authenticated, registry_of, settings_of, starts_of
from teletape_server.http.declarations import refusals
from teletape_server.http.schemas import Devices, DeviceState, Health, Index, Info, Ready
from teletape_server.problems import overloaded

router = APIRouter(tags=["server"])


#: What the index links to, by relation.
_LINKS: Final = {
    "self": "/v1",
    "run": "/v1/run",
    "ops": "/v1/ops",
    "sessions": "/v1/sessions",
    "health": "/v1/health",
    "ready": "/v1/ready",
    "info": "/v1/info",
    "me": "/v1/me",
    "devices": "/v1/devices",
    "service-desc": "/openapi.json",
    "service-desc-yaml": "/openapi.yaml",
    "service-doc": "/docs",
    "guide": "/guide",
    "usage": "/v1/usage",
    "metrics": "/metrics",
}


@router.get("", summary="List where everything is")
async def index(response: Response) -> Index:
    """Needs no key. `service-desc` describes all operations for programs, `service-doc` for people (RFC 8631)."""
    response.headers["Link"] = ", ".join(
        f'<{_LINKS[relation]}>; rel="{relation}"' for relation in ("service-desc", "service-doc")
    )
    return Index(name="teletape", api_version="v1", links=_LINKS)


@router.get("/health", summary="Check that the server lives")
async def health() -> Health:
    """Needs no key and reaches no session. A server that is stopping lives until its running requests are answered."""
    return Health(status="ok")


@router.get(
    "/ready", summary="Check that the server takes new requests", responses=refusals("overloaded", "shutting_down")
)
async def ready(request: Request) -> Ready:
    """Needs no key. 503 while the server is stopping, and while it cannot start the process of a new session."""
    if lack := starts_of(request).lack():
        raise overloaded(f"no session can start now: {lack}")
    return Ready(status="ready")


@router.get("/info", summary="Get versions, limits and features", responses=refusals("unauthenticated"))
async def info(request: Request, _: Authenticated) -> Info:
    """Returns what this server supports. A client compares the catalogue's digest with that of its own ops."""
    facts: Info = request.app.state.info
    return facts


@router.get("/devices", summary="List the devices", responses=refusals("unauthenticated", "overloaded"))
async def devices(request: Request, _: Authenticated) -> Devices:
    """Lists the devices on which sessions can compute, with their memory, and why a GPU cannot be used; the default."""
    sessions = registry_of(request).live.devices_in_use()
    states = [
        DeviceState(
            device=facts.device,
            usable=not facts.unusable,
            reason=facts.unusable,
            interpreted=facts.interpreted,
            name=facts.name,
            memory_bytes=facts.memory_bytes,
            free_bytes=facts.free_bytes,
            driver=facts.driver,
            cuda=facts.cuda,
            compute_capability=facts.compute_capability,
            sessions=sessions[facts.device],
        )
        for facts in await starts_of(request).devices()
    ]
    return Devices(devices=states, default=settings_of(request).device)
