"""Endpoints: the requests to a session that one of its methods answers, each a record next to that method.

The front makes of a record its route, what that accepts, and its part of the OpenAPI document. What a journal of a
session must have are the requests that are not `safe`.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, TypeVar

from pydantic import BaseModel

from teletape_server.handlers.bodies import read
from teletape_server.handlers.forms.forms import known_by_form
from teletape_server.handlers.forms.skeletons import Places
from teletape_server.handlers.methods import Method, Result, method
from teletape_server.models.parameters import Parameters

#: What the path of every endpoint begins with.
PREFIX: Final = "/v1/sessions/{session}"
#: Problems of a request that names something in the session.
NAMED: Final = ("unknown_id", "released_id", "poisoned")
#: Problems of a request about a tape that has to be able to answer.
STATE: Final = ("tape_consumed", "tape_state")
#: Problems of a request that computes.
WORK: Final = (
    *("unknown_op", "bad_attribute", "bad_command", "invalid_argument", "unimplemented", "resource_exhausted"),
    *("cancelled", "deadline_exceeded"),
)


@dataclass(frozen=True)
class Endpoint:
    """A request to a session, and what answers it.

    Attributes:
        operation: Its name, in the OpenAPI document and as a method of the session's process: section-function.
        section: Of the API page.
        verb: GET, POST, PUT or DELETE.
        path: Below the session's; the first parameter in it is the id that the method gets.
        body: The model of its body; None: it has none.
        answer: The model of its answer; None: the answer has no body.
        summary: In a few words, in the imperative.
        description: The method's docstring.
        problems: Codes of the problems that it may be answered with, in addition to those that follow from the rest.
        query: The parameters of its query.
        status: Of its answer; of one without a body 204.
        safe: Whether it changes nothing in the session.
        body_types: Types that the body may have in addition to JSON and safetensors.
        answer_types: Types that the answer may have in addition to JSON and safetensors.
        needs_body: Whether the document says that a request without a body is refused.
        has_tag: Whether the answer has an ETag.
        conditions: The headers among If-Match and If-None-Match that it heeds.
        example: Shown in place of the body's own examples.
        other_path: A second path of the same; the document does not have it.
    """

    operation: str
    section: str
    verb: str
    path: str
    body: type[BaseModel] | None
    answer: type[BaseModel] | None
    summary: str
    description: str
    problems: tuple[str, ...] = ()
    query: type[Parameters] = Parameters
    status: int = 200
    safe: bool = False
    body_types: tuple[str, ...] = ()
    answer_types: tuple[str, ...] = ()
    needs_body: bool = True
    has_tag: bool = False
    conditions: tuple[str, ...] = ()
    example: Any = None
    other_path: str | None = None

    @cached_property
    def ids(self) -> dict[str, str]:
        """The parameters in its path, each with the name that the method has for it."""
        return dict(zip(self.path_parameters, ("id", "node"), strict=False))

    @cached_property
    def defaults(self) -> dict[str, Any]:
        """The parameters of its method without a query, and without the ids."""
        return {"id": None, "full": False, **self.query().for_method()}

    @property
    def path_parameters(self) -> list[str]:
        """The names of the parameters in its path, without the session's."""
        return re.findall(r"\{(\w+)\}", self.path)


#: All endpoints by their operation, in the order in which an API page can run their examples.
ENDPOINTS: Final[dict[str, Endpoint]] = {}

Handler = TypeVar("Handler", bound=Callable[..., Result])


def endpoint(
    verb: str,
    path: str,
    answer: type[BaseModel] | None,
    summary: str,
    *,
    section: str | None = None,
    places: Places | None = None,
    **facts: Any,
) -> Callable[[Handler], Handler]:
    """Returns a decorator that registers a function as the method that answers an endpoint; see `Endpoint`.

    The function gets the session and the request, and the body if it has a parameter `body`, whose annotation is the
    body's model. Its docstring is the text of the API page; its name, without underscores at the end, is that of the
    operation in its section.

    Args:
        verb: GET, which is safe unless `facts` say otherwise, POST, PUT or DELETE.
        path: Below the session's.
        answer: The model of the answer, or None.
        summary: In a few words.
        section: Of the API page; None: the first part of the path.
        places: Returns the places of inputs in the body, if requests that differ in these alone are known again.
        **facts: Further attributes of the record.
    """

    def register(handler: Handler) -> Handler:
        body = inspect.get_annotations(handler, eval_str=True).get("body")
        tag = section or path.split("/")[1]
        operation = f"{tag}-{handler.__name__.rstrip('_')}"
        description = inspect.getdoc(handler) or ""
        known = {"safe": verb == "GET", "status": 204 if answer is None else 200, **facts}
        answers: Method = handler
        if body is not None:
            answers = known_by_form(operation, body, places, handler) if places is not None else _reading(body, handler)
        method(operation)(answers)
        ENDPOINTS[operation] = Endpoint(operation, tag, verb, path, body, answer, summary, description, **known)
        return handler

    return register


def _reading(body: type[BaseModel], handler: Callable[..., Result]) -> Method:
    return lambda session, request: handler(session, request, read(request, body))
