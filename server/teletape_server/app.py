"""Builds the FastAPI application from the settings: routes, middleware, the registry of sessions, error handlers."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from anyio import create_task_group
from fastapi import Depends, FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.routing import Match

import teletape_engine.ops  # noqa: F401  # fills the catalogue, whose digest /v1/info returns
import teletape_wire as wire
from teletape_engine.catalogue import describe
from teletape_engine.errors import TeletapeError
from teletape_server import version
from teletape_server.expressions.parse_queue import ParseQueue
from teletape_server.faces import kserve, tesseract, um_bridge
from teletape_server.guard import Guard
from teletape_server.hosts.processes.worker_pool import WorkerPool
from teletape_server.hosts.protocols import Hosts
from teletape_server.hosts.shares import Shares
from teletape_server.http.bodies import invalid_request
from teletape_server.http.declarations import EVERY
from teletape_server.http.frames import TYPES
from teletape_server.http.openapi import document as openapi
from teletape_server.http.schemas import Info, Limits
from teletape_server.identity.identity import Identity
from teletape_server.ipc.leases import Reason
from teletape_server.long_requests import LongRequests
from teletape_server.middleware.checks import ChecksMiddleware
from teletape_server.middleware.compression import CompressionMiddleware
from teletape_server.middleware.head_requests import HeadMiddleware
from teletape_server.middleware.metrics import Metrics
from teletape_server.middleware.observation import ObservationMiddleware
from teletape_server.middleware.origins import OriginsMiddleware
from teletape_server.middleware.queries import check_query
from teletape_server.middleware.templates import PathTemplates
from teletape_server.middleware.validators import ValidatorsMiddleware
from teletape_server.pages import api_page, console, files, guide, playground, problem_pages
from teletape_server.pages import published as published_page
from teletape_server.problems import PROBLEMS, Problem, error_response, problem_response
from teletape_server.published.pool import Pool
from teletape_server.published.publishing import Publisher
from teletape_server.published.store import Catalogue, store_of
from teletape_server.retries import Retries
from teletape_server.routes import endpoints
from teletape_server.routes.published import functions as published
from teletape_server.routes.published import questions as published_questions
from teletape_server.routes.server import budgets, catalogue, expressions, info, keys, metrics, usage
from teletape_server.routes.session import batch, price, requests, run, sessions
from teletape_server.routes.session.session_events import SessionFeed
from teletape_server.sessions.ended_sessions import Boot
from teletape_server.sessions.hosting.server_processes import ServerProcesses
from teletape_server.sessions.hosting.starts import Starts
from teletape_server.sessions.quotas import Quota
from teletape_server.sessions.registry import Registry, SessionEntry
from teletape_server.sessions.store import DiskStore, MemoryStore, Store
from teletape_server.settings import Settings
from teletape_server.waiting.pricer import Pricer
from teletape_server.waiting.waits import Waits

if TYPE_CHECKING:  # it needs packages that not every server has
    from teletape_server.middleware.tracing import Tracing

ROUTERS: Final = (
    *(module.router for module in (info, catalogue, expressions, run, price, sessions, requests, keys, usage, budgets)),
    *(published.router, published.aliases, published_questions.router),
)
PAGES: Final = (playground, published_page, api_page, guide, problem_pages, console)
FACES: Final = (kserve, tesseract, um_bridge)
FEATURES: Final = (
    *("rest", "run", "batch", "frames", "json", "idempotency-key", "cancel", "extend", "events", "loops"),
    *("repeated-batches", "strands", "waits", "price"),
)


def create_app(
    settings: Settings,
    *,
    clock: Callable[[], float] = time.time,
    hosts: Callable[[], Hosts] | None = None,
    store: Store | None = None,
    identity: Identity | None = None,
    shares: Shares | None = None,
    tracing: Tracing | None = None,
) -> FastAPI:
    """Returns the server's application.

    Args:
        settings: The server's settings.
        clock: Returns Unix seconds.
        hosts: Returns what starts the hosts of sessions; None: worker processes.
        store: Has the records of sessions; None: they end with the server.
        identity: The keys and the audit; None: as the settings say.
        shares: How keys share the CPU; None: as their processes do.
        tracing: Makes spans of requests; None: nothing does.
    """
    identity = identity or identity_of(settings, clock)
    boot = Boot.at(clock())
    published_store = store_of(settings.data_dir)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        if hosts is not None:
            session_hosts = hosts()
        else:
            limits = {"grace": settings.grace, "stuck_after": settings.stuck_after}
            session_hosts = WorkerPool(settings.worker_user, shares, **limits)
        app.state.hosts = session_hosts
        app.state.starts = Starts(
            session_hosts,
            max_body=settings.max_body,
            max_iterations=settings.max_iterations,
            time_limit=settings.time_limit,
            idempotency_window=settings.idempotency_window,
            slow_after=settings.slow_log,
        )
        app.state.registry = registry = Registry(
            app.state.starts,
            Quota(
                settings.sessions,
                settings.memory_limit,
                settings.bodies_per_key,
                settings.bodies,
                keys=lambda: identity.keys.owners,
                lasting_per_key=settings.lasting_per_key,
                runs=settings.runs,
                disk_limit=settings.disk_limit,
            ),
            boot=boot,
            idle=settings.idle_limit,
            max_age=settings.max_age,
            run_wait=settings.patience,
            clock=clock,
            store=store or session_store(settings, clock()),
            budgets=identity.budgets,
        )
        registry.live.on_end = partial(_note_end, identity)
        app.state.catalogue = Catalogue(published_store)
        processes = ServerProcesses(app.state.starts, registry.parking)
        app.state.pool = pool = Pool(
            processes,
            app.state.catalogue,
            device=settings.device,
            memory_limit=settings.memory_limit,
            most=settings.published_processes,
        )
        pool.lent.budgets = identity.budgets
        app.state.publisher = Publisher(app.state.catalogue, pool, is_durable=settings.data_dir is not None)
        app.state.device_looks = metrics.DeviceLooks()
        app.state.pricer = pricer = Pricer(processes, settings.memory_limit)
        app.state.waits = Waits(registry, shares or Shares())
        app.state.retries = Retries(settings.idempotency_window, clock)
        app.state.long_requests = LongRequests(settings.idempotency_window, clock)
        app.state.session_feed = SessionFeed(registry)
        app.state.parse_queue = ParseQueue()
        session_hosts.prepare()
        app.state.document = openapi.text(app)
        app.state.templates = PathTemplates(app.openapi()["paths"])
        pool.warm()
        sweeps = [
            asyncio.create_task(sweep)
            for sweep in (registry.sweep(), registry.backlog.work_off(), pool.sweep(), identity.watch())
        ]
        async with create_task_group():  # Starlette's streams use one; anyio's modules are loaded with the first
            pass
        try:
            yield
        finally:
            for sweep in sweeps:
                sweep.cancel()
                with suppress(asyncio.CancelledError):
                    await sweep
            await asyncio.gather(registry.close(), pool.close(), pricer.close())
            await session_hosts.close()
            await identity.close()
            if tracing is not None:
                await asyncio.to_thread(tracing.close)

    app = FastAPI(
        title="Teletape",
        version=version(),
        summary="Gradients as a service: tapes, tensors and variables live on the server.",
        docs_url=None,
        redoc_url=None,
        openapi_url=None,  # pages.api_page has it
        strict_content_type=False,  # a body without a type is JSON, as in the routes that a session's process reads
        redirect_slashes=False,  # a redirect would lead to any host that the request names
        generate_unique_id_function=openapi.operation_id,
        lifespan=lifespan,
        responses=EVERY,
    )
    app.state.settings = settings
    app.state.identity, app.state.keys = identity, identity.keys
    app.state.info = _info(settings, boot)
    app.state.yaml = None
    app.state.metrics, app.state.tracing = Metrics(), tracing
    app.state.guard = Guard(
        requires_key=lambda: bool(identity.keys),
        origins=settings.allow_origins,
        boot_id=boot.id,
        is_stopping=lambda: app.state.registry.live.stopping,
    )
    app.add_middleware(CompressionMiddleware)  # the last one that is added gets a request first
    app.add_middleware(ValidatorsMiddleware)
    app.add_middleware(HeadMiddleware)
    app.add_middleware(ChecksMiddleware, guard=app.state.guard, server=app.state)
    app.add_middleware(OriginsMiddleware, origins=settings.allow_origins)
    app.add_middleware(ObservationMiddleware, server=app.state, is_logged=settings.logs_requests)
    app.router.routes.append(endpoints.QUICK)
    for router in ROUTERS:
        app.include_router(router, prefix="/v1", dependencies=[Depends(check_query)])
    app.router.routes.extend(endpoints.ROUTES)
    app.include_router(batch.router, prefix="/v1", dependencies=[Depends(check_query)])
    for page in PAGES:
        app.include_router(page.router)
    app.mount("/static/client", files.client)
    app.include_router(metrics.router)
    app.mount("/static", files.static)
    for face in FACES:
        mounted = face.create(app.state)
        app.mount(face.PATH, mounted)
        app.add_route(face.PATH, mounted, include_in_schema=False)
    app.openapi = partial(openapi.document, app)  # type: ignore[method-assign]  # FastAPI documents this override
    for error in (Problem, TeletapeError):
        app.add_exception_handler(error, _on_error)
    app.add_exception_handler(RequestValidationError, _on_invalid_request)
    app.add_exception_handler(HTTPException, _on_http_error)
    return app


def identity_of(settings: Settings, clock: Callable[[], float] = time.time) -> Identity:
    """Returns the keys and the audit of a server; `clock`: returns Unix seconds.

    Raises:
        StoreError: They cannot be read.
    """
    return Identity.open(
        environment=settings.api_keys,
        admins=settings.admins,
        data_dir=settings.data_dir,
        database=settings.key_database,
        clock=clock,
        defaults=settings.default_limits,
        audit_age=settings.audit_age,
        oidc=settings.oidc,
    )


def _note_end(identity: Identity, entry: SessionEntry, reason: Reason, text: str) -> None:
    """Notes the end of a session in the audit, unless a request has ended it: that is noted with its sender."""
    if reason is not Reason.DELETED:
        identity.note("session.ended", f"{entry.owner}:{entry.id}", detail=text)


def session_store(settings: Settings, now: float) -> Store:
    """Returns where the sessions of a server are kept; `now`: Unix seconds."""
    return MemoryStore() if settings.data_dir is None else DiskStore(settings.data_dir, now)


def _info(settings: Settings, boot: Boot) -> Info:
    return Info(
        name="teletape",
        version=version(),
        boot_id=boot.id,
        started=boot.started,
        frame_versions=[wire.VERSION],
        content_types=list(TYPES),
        features=list(FEATURES),
        catalogue=describe.digest(),
        limits=Limits(**{name: getattr(settings, name) for name in Limits.model_fields}),
    )


# ------------------------------------------------------------------------------------------------------------ problems
def _request_id(request: Request) -> str:
    return str(getattr(request.state, "request_id", "unknown"))


async def _on_error(request: Request, error: Exception) -> Response:
    return error_response(error, _request_id(request))


async def _on_invalid_request(request: Request, error: Any) -> Response:
    return error_response(invalid_request(request, error), _request_id(request))


def _methods(request: Request) -> list[str]:
    """Returns the methods of all routes with the request's path; the error itself names only the first route's."""

    def is_routed(method: str) -> bool:
        scope = {**request.scope, "method": method}
        return any(route.matches(scope)[0] is Match.FULL for route in request.app.routes)

    methods = {method for method in ("DELETE", "GET", "PATCH", "POST", "PUT") if is_routed(method)} or {"GET"}
    return sorted(methods | {"OPTIONS"} | ({"HEAD"} if "GET" in methods else set()))


async def _on_http_error(request: Request, error: Any) -> Response:
    headers = error.headers
    if error.status_code == 404:
        near = request.app.state.templates.near(request.url.path)
        hint = f"did you mean {' or '.join(near)}?" if near else "/openapi.json lists all paths"
        code, detail = "not_found", f"there is nothing at {request.url.path}: {hint}"
    elif error.status_code == 405:
        allowed = ", ".join(_methods(request))
        headers = {"Allow": allowed}
        if request.method == "OPTIONS":
            return Response(None, 204, headers)
        code, detail = "method_not_allowed", f"{request.url.path} has no {request.method}: it has {allowed}"
    else:
        code = next((code for code, kind in PROBLEMS.items() if kind.status == error.status_code), "internal")
        detail = str(error.detail)
    return problem_response(code, detail, request_id=_request_id(request), headers=headers)
