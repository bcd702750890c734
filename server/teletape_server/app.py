"""The application: settings in, FastAPI out. Wiring only."""

from __future__ import annotations

import asyncio
import importlib.metadata
import logging
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Any, Final

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response

import teletape_engine.ops  # noqa: F401  # fills the catalogue, whose digest /v1/info tells
import teletape_wire as wire
from teletape_engine.catalogue import describe
from teletape_engine.errors import TeletapeError
from teletape_server.auth import Keys
from teletape_server.guard import Guard
from teletape_server.hosts import Hosts
from teletape_server.hosts.processes import Workers
from teletape_server.http import openapi
from teletape_server.http.schemas import Info, ProblemBody
from teletape_server.problems import PROBLEMS, Problem, problem_response
from teletape_server.quotas import Quota
from teletape_server.registry import Sessions
from teletape_server.routes import batch, functions, info, loops, ops, page, run, sessions, tapes, tensors, variables
from teletape_server.settings import Settings

ROUTERS: Final = tuple(
    module.router for module in (info, ops, run, sessions, variables, tensors, tapes, functions, loops, batch)
)
FEATURES: Final = ("rest", "run", "batch", "frames", "json", "idempotency-key", "cancel", "extend", "events", "loops")

log = logging.getLogger("teletape")


def create_app(
    settings: Settings, *, clock: Callable[[], float] = time.time, hosts: Callable[[], Hosts] = Workers
) -> FastAPI:
    """The server's application.

    Args:
        settings: Its knobs.
        clock: Unix seconds now.
        hosts: Makes what sessions run in.
    """

    @asynccontextmanager
    async def life(app: FastAPI) -> AsyncIterator[None]:
        app.state.hosts = made = hosts()
        app.state.sessions = found = Sessions(
            made,
            Quota(settings.sessions_per_key, settings.sessions, settings.memory_limit),
            idle=settings.idle_limit,
            max_age=settings.max_age,
            max_body=settings.max_body,
            max_iterations=settings.max_iterations,
            time_limit=settings.time_limit,
            clock=clock,
        )
        made.prepare()
        sweep = asyncio.create_task(found.sweep())
        try:
            yield
        finally:
            sweep.cancel()
            with suppress(asyncio.CancelledError):
                await sweep
            await found.close()
            await made.close()

    app = FastAPI(
        title="Teletape",
        version=version(),
        summary="Gradients as a service: tapes, values and variables live on the server.",
        docs_url=None,
        redoc_url=None,
        generate_unique_id_function=openapi.operation_id,
        lifespan=life,
        responses={"default": {"model": ProblemBody, "description": "A problem (RFC 9457)"}},
    )
    app.state.settings = settings
    app.state.keys = Keys(settings.api_keys)
    app.state.info = _info(settings)
    app.add_middleware(Guard, loopback_only=not settings.api_keys)
    for router in ROUTERS:
        app.include_router(router, prefix="/v1")
    app.include_router(page.router)
    app.mount("/docs/static", page.static)
    app.openapi = partial(openapi.document, app)  # type: ignore[method-assign]  # FastAPI's documented seam
    app.add_exception_handler(Problem, _problem)
    app.add_exception_handler(TeletapeError, _engine)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _http)
    app.add_exception_handler(Exception, _defect)
    return app


def version() -> str:
    """The distribution's version; "0" where it runs from a checkout that is not installed."""
    try:
        return importlib.metadata.version("teletape")
    except importlib.metadata.PackageNotFoundError:
        return "0"


def _info(settings: Settings) -> Info:
    limits = (
        "memory_limit",
        "max_body",
        "max_header",
        "sessions_per_key",
        "sessions",
        "idle_limit",
        "max_age",
        "patience",
        "time_limit",
        "max_iterations",
    )
    return Info(
        version=version(),
        frame_versions=[wire.VERSION],
        content_types=list(batch.TYPES),
        features=list(FEATURES),
        catalogue=describe.digest(),
        limits={name: getattr(settings, name) for name in limits},
    )


# ------------------------------------------------------------------------------------------------------------ problems
def _request_id(request: Request) -> str:
    return str(getattr(request.state, "request_id", "unknown"))


async def _problem(request: Request, error: Any) -> Response:
    return problem_response(
        error.code, error.detail, request_id=_request_id(request), details=error.details, headers=error.headers
    )


async def _engine(request: Request, error: Any) -> Response:
    return problem_response(error.code, error.message, request_id=_request_id(request), details=error.details)


async def _invalid(request: Request, error: Any) -> Response:
    fields = [
        {"where": ".".join(str(part) for part in one["loc"]), "what": one["msg"], "kind": one["type"]}
        for one in error.errors()
    ]
    code = "malformed_json" if any(one["kind"] == "json_invalid" for one in fields) else "invalid_request"
    detail = "; ".join(f"{one['where']}: {one['what']}" for one in fields)
    return problem_response(code, detail, request_id=_request_id(request), details={"fields": fields})


async def _http(request: Request, error: Any) -> Response:
    if error.status_code == 404:
        code, detail = "not_found", f"there is nothing at {request.url.path}: /openapi.json lists what there is"
    elif error.status_code == 405:
        allowed = (error.headers or {}).get("Allow", "another method")
        code, detail = "method_not_allowed", f"{request.method} is not for {request.url.path}: it takes {allowed}"
    else:
        code = next((code for code, kind in PROBLEMS.items() if kind.status == error.status_code), "internal")
        detail = str(error.detail)
    return problem_response(code, detail, request_id=_request_id(request), headers=error.headers)


async def _defect(request: Request, error: Exception) -> Response:
    log.error("request %s failed", _request_id(request), exc_info=error)
    return problem_response(
        "internal",
        "the server failed at this request; its log has the reason under the request's id",
        request_id=_request_id(request),
    )
