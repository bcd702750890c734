"""One vocabulary of codes: what the engine and the wire raise, what the server answers, what the SDK raises for it."""

import json
import re
from pathlib import Path

import pytest
from teletape.errors import RequestError

from teletape.core import errors
from teletape_engine.errors import TeletapeError, tree
from teletape_server.problems import PROBLEMS

DOCS = Path(__file__).resolve().parents[2] / "docs"
#: The SDK's alone: there is no server that could say it.
CLIENT_ONLY = {
    *("connection_failed", "out_of_range", "unknown"),
    *("aborted", "already_exists", "data_loss", "failed_precondition", "no_such_entry", "permission_denied"),
    "unavailable",
}

#: Problems that no short request to any server causes: they need a fault, a limit, a setting, a device or a second try.
WITHOUT_EXAMPLE = {
    *("malformed_http", "incomplete_body", "corrupt_frame", "unsupported_version", "frame_too_large"),
    *("length_required", "unimplemented", "deadline_exceeded", "layout_failed", "layout_unavailable"),
    *("sequence_conflict", "unknown_structure", "cancelled", "answer_dropped", "too_many_sessions"),
    *("unauthenticated", "forbidden", "busy", "overloaded", "shutting_down", "request_timeout", "internal"),
    *("recovering", "session_damaged", "over_budget"),
}


def test_the_server_has_a_status_for_every_code_that_can_be_raised() -> None:
    raised = {code for code, cls in tree().items() if cls is not RequestError} - CLIENT_ONLY
    assert raised <= set(PROBLEMS), raised - set(PROBLEMS)


@pytest.mark.parametrize("code", sorted(PROBLEMS))
def test_the_sdk_has_an_exception_for_every_problem(code: str) -> None:
    kind = PROBLEMS[code]
    body = {
        "code": code,
        "title": kind.title,
        "status": kind.status,
        "detail": "what to do",
        "instance": "urn:request:7",
    }
    error = errors.error_of(kind.status, json.dumps(body).encode())
    assert isinstance(error, TeletapeError)
    assert error.code == code
    assert "what to do" in str(error)
    assert "urn:request:7" in str(error), "the request's id helps whoever is asked about it"


def test_an_answer_that_is_no_problem_still_says_what_came() -> None:
    error = errors.error_of(502, b"<html>bad gateway</html>")
    assert isinstance(error, RequestError)
    assert "502" in str(error)
    assert "bad gateway" in str(error)


def test_the_protocol_page_lists_every_code_with_its_status() -> None:
    page = (DOCS / "protocol.md").read_text(encoding="utf-8")
    listed = {code: int(status) for code, status in re.findall(r"^\| `([a-z_]+)` \| (\d{3}) \|", page, re.M)}
    assert listed == {code: kind.status for code, kind in PROBLEMS.items()}


def test_the_problems_page_says_for_every_code_what_to_do_and_shows_it_if_a_request_can() -> None:
    page = (DOCS / "problems.md").read_text(encoding="utf-8")
    sections = re.findall(r"^### `([a-z_]+)` \((\d{3})\)\n(.*?)(?=^##|\Z)", page, re.M | re.S)
    assert sorted((code, int(status)) for code, status, _ in sections) == sorted(
        (code, kind.status) for code, kind in PROBLEMS.items()
    )
    assert [code for code, _, text in sections if "**What to do:**" not in text] == []
    assert {code for code, _, text in sections if "```sh" not in text} == WITHOUT_EXAMPLE
    assert [code for code, _, text in sections if "```sh" in text and f'# "code": "{code}"' not in text] == []
