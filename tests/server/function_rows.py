"""Questions about functions, and their answers as the engine alone gives them."""

import json
import sys
import time
from collections.abc import Mapping
from typing import Any

import numpy as np

import teletape_wire as wire
from teletape_engine.errors import TeletapeError
from teletape_engine.session.session import Session
from teletape_server.handlers.forms.forms import Form, forms_of
from teletape_server.handlers.methods import METHODS, Request


def answer_to(session: Session, method: str, body: Mapping[str, Any], **params: Any) -> Any:
    """The answer to a request, or its error."""
    answer = text_to(session, method, json.dumps(body).encode(), **params)
    if isinstance(answer, tuple):
        return answer
    answer = json.loads(answer or b"{}")
    answer.pop("bytes_in_use", None)
    return answer


def text_to(
    session: Session, method: str, body: bytes, content_type: str = wire.JSON_TYPE, **params: Any
) -> bytes | tuple[str, str]:
    """The body of the answer to a request, or its error."""
    content = memoryview(body)
    params = {"full": False, "accept": wire.JSON_TYPE, "collection": "/x", "query": {}, **params}
    request = Request(
        params, content_type, content, sys.maxsize, lambda: False, lambda *_, **__: None, time.monotonic()
    )
    try:
        with wire.numbers_alone("float32"):
            return b"".join(METHODS[method](session, request).buffers)
    except TeletapeError as error:
        return error.code, error.message


def known_forms(session: Session) -> list[Form]:
    return [form for form in forms_of(session)._forms.values() if form is not None]


def numbers(seed: int, *shape: int) -> Any:
    return np.random.default_rng(seed).uniform(0.5, 1.5, shape).round(3)


def ask(session: Session, verb: str, function: str, body: Mapping[str, Any], **params: Any) -> Any:
    answer = answer_to(session, f"functions-{verb.split()[0]}", body, id=function, full=True, **params)
    assert isinstance(answer, dict), answer
    return answer
