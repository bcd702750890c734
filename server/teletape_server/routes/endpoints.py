"""The routes of the endpoints (`handlers.endpoints`), made of their records.

FastAPI describes them in the OpenAPI document, and takes no part in their requests: what it would do for each of them
anew is here decided once.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from typing import Annotated, Any, Final, get_args, get_origin

from fastapi import Path, Query, Request
from fastapi.routing import APIRoute
from pydantic import ValidationError
from starlette.responses import Response
from starlette.routing import BaseRoute, Match
from starlette.types import Receive, Scope, Send

from teletape_server import handlers  # noqa: F401  # it registers the endpoints
from teletape_server.handlers.bodies import RAW_TYPE
from teletape_server.handlers.endpoints import ENDPOINTS, NAMED, PREFIX, Endpoint
from teletape_server.http.access import SessionId, authenticated, known_session, live_session
from teletape_server.http.declarations import BODY, EVERY, SESSION, STILL_RUNNING, answers, refusals, takes, with_etag
from teletape_server.http.dispatch import dispatch, fields_outside
from teletape_server.http.negotiation import answer_types, body_types
from teletape_server.http.parameters import (
    Dtype,
    IdempotencyKey,
    IfMatch,
    IfNoneMatch,
    Prefer,
    Shape,
    TimeLimit,
    path_id_of,
)
from teletape_server.middleware.queries import check_names
from teletape_server.middleware.templates import PathTemplates
from teletape_server.models.faults import described_faults, text_of
from teletape_server.models.parameters import Parameters, Selection
from teletape_server.problems import Problem
from teletape_server.tensor_files.metadata import REQUEST
from teletape_wire.safetensors.layout import SAFETENSORS_TYPE

_PATH: Final = {
    "variable": Annotated[str, path_id_of("variable", "w")],
    "tensor": Annotated[str, path_id_of("tensor", "x")],
    "tape": Annotated[str, path_id_of("tape", "tape")],
    "function": Annotated[str, path_id_of("function", "squared_error")],
    "accumulator": Annotated[str, path_id_of("accumulator", "gradients")],
    "node": Annotated[str, Path(description="The id of a node in the tape's graph", examples=["n0"])],
}
_DEFAULTS: Final = dict.fromkeys(("dtype", "shape", "key", "prefer", "time_limit", "if_match", "if_none_match"))
#: The headers that may be conditions, with the names of the method's parameters.
_CONDITIONS: Final = {"If-Match": ("if_match", IfMatch), "If-None-Match": ("if_none_match", IfNoneMatch)}


class EndpointRoute(APIRoute):
    """The route of an endpoint.

    Args:
        endpoint: The record.
        path: Below the session's.
        is_documented: Whether the document has it.
    """

    def __init__(self, endpoint: Endpoint, path: str, *, is_documented: bool = True) -> None:
        body = {} if endpoint.body is None else _body(endpoint)
        responses = _responses(endpoint)
        super().__init__(
            PREFIX + path,
            _documented(endpoint),
            methods=[endpoint.verb],
            name=endpoint.operation,
            operation_id=endpoint.operation,
            tags=[endpoint.section],
            summary=endpoint.summary,
            description=endpoint.description,
            status_code=endpoint.status,
            response_class=Response,
            openapi_extra=body,
            responses=EVERY | STILL_RUNNING | responses,
            include_in_schema=is_documented,
        )
        self._endpoint = endpoint
        self._takes = body_types(body) if body else ()
        self._offers = answer_types(responses, endpoint.status)
        fields = endpoint.query.model_fields
        self._lists = {field.alias or name: _is_list(field.annotation) for name, field in fields.items()}
        self._known = [*self._lists, *([REQUEST] if SAFETENSORS_TYPE in self._takes else [])]
        self.app = self._respond

    async def _respond(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive, send)
        response = await self._response(request)
        await response(scope, receive, send)

    async def _response(self, request: Request) -> Response:
        principal = await authenticated(request)
        has_query = bool(request.scope["query_string"])
        if has_query:
            check_names(request, self._known)
        session = await known_session(request, request.path_params["session"], principal)
        params = (
            self._endpoint.defaults | (self._query(request) if has_query else {}) | fields_outside(request, self._takes)
        )
        for name, param in self._endpoint.ids.items():
            params[param] = request.path_params[name]
        for header in self._endpoint.conditions:
            params[_CONDITIONS[header][0]] = request.headers.get(header)
        return await dispatch(
            request,
            await live_session(request, session),
            self._endpoint.operation,
            params,
            takes=self._takes,
            offers=self._offers,
            status=self._endpoint.status,
        )

    def _query(self, request: Request) -> dict[str, Any]:
        """Returns what the method gets of the query.

        Raises:
            Problem: invalid_request.
        """
        sent = request.query_params
        values = {
            name: sent.getlist(name) if many else sent[name] for name, many in self._lists.items() if name in sent
        }
        try:
            return self._endpoint.query.model_validate(values).for_method()
        except ValidationError as error:
            faults = described_faults(error.errors(), ("query",))
            raise Problem("invalid_request", text_of(faults), fields=faults) from None


class EndpointRoutes(BaseRoute):
    """All of them as one route, which finds that of a request by the segments of its path, not by trying each pattern.

    It stands before them: a request that is for none of them, or has another method, goes on to the other routes.

    Args:
        routes: The routes of endpoints.
    """

    def __init__(self, routes: Sequence[EndpointRoute]) -> None:
        self._templates = PathTemplates([route.path for route in routes])
        self._routes = {(method, route.path): route for route in routes for method in route.methods or ()}

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """Returns whether the request is for an endpoint, and which."""
        if scope["type"] != "http":
            return Match.NONE, {}
        template = self._templates.of(scope["path"])
        route = None if template is None else self._routes.get((scope["method"], template))
        if template is None or route is None:
            return Match.NONE, {}
        pairs = zip(template.split("/"), scope["path"].split("/"), strict=True)
        values = {name[1:-1]: value for name, value in pairs if name.startswith("{")}
        return Match.FULL, {"route": route, "path_params": values}

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handles the request."""
        await scope["route"].app(scope, receive, send)


def _is_list(annotation: Any) -> bool:
    """Returns whether a parameter may be repeated."""
    return any(get_origin(part) is list for part in (annotation, *get_args(annotation)))


# -------------------------------------------------------------------------------------------------------- the document
def _body(endpoint: Endpoint) -> dict[str, Any]:
    assert endpoint.body is not None
    return takes(endpoint.body, others=endpoint.body_types, example=endpoint.example, required=endpoint.needs_body)


def _responses(endpoint: Endpoint) -> dict[int | str, dict[str, Any]]:
    lists = issubclass(endpoint.query, Selection)
    problems = (
        *SESSION,
        *(BODY if endpoint.body is not None else ()),
        *(("invalid_request",) if lists else ()),
        *(NAMED if lists or endpoint.path_parameters else ()),
        *endpoint.problems,
        *(("not_acceptable",) if endpoint.answer_types else ()),
    )
    if endpoint.answer is None:
        return refusals(*problems)
    responses = answers(endpoint.answer, *problems, status=endpoint.status, others=endpoint.answer_types)
    if endpoint.has_tag:
        responses = with_etag(responses)
    if endpoint.verb == "GET" and endpoint.conditions:
        responses[304] = {"description": "The version is the one of If-None-Match"}
    return responses


def _documented(endpoint: Endpoint) -> Callable[..., None]:
    """Returns a function with the endpoint's parameters, for FastAPI to describe; nothing calls it."""
    annotations: dict[str, Any] = {name: _PATH[name] for name in endpoint.path_parameters} | {"session": SessionId}
    if endpoint.query is not Parameters:
        annotations["query"] = Annotated[endpoint.query, Query()]
    if RAW_TYPE in endpoint.body_types:
        annotations |= {"dtype": Dtype, "shape": Shape}
    if endpoint.verb in ("POST", "PUT"):
        annotations["key"] = IdempotencyKey
    annotations |= {"prefer": Prefer, "time_limit": TimeLimit}
    annotations |= dict(map(_CONDITIONS.__getitem__, endpoint.conditions))

    def documented(**parameters: Any) -> None:
        """Is never called."""

    documented.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [
            inspect.Parameter(
                name,
                inspect.Parameter.KEYWORD_ONLY,
                annotation=annotation,
                default=_DEFAULTS.get(name, inspect.Parameter.empty),
            )
            for name, annotation in annotations.items()
        ]
    )
    return documented


def _routes() -> Iterator[EndpointRoute]:
    for endpoint in ENDPOINTS.values():
        yield EndpointRoute(endpoint, endpoint.path)
        if endpoint.other_path is not None:
            yield EndpointRoute(endpoint, endpoint.other_path, is_documented=False)


#: A route for each path of each endpoint; before them the one that is quicker than to try each.
ROUTES: Final = tuple(_routes())
QUICK: Final = EndpointRoutes(ROUTES)
