"""The client's errors: each code of the server has its class, and they survive a process pool."""

import inspect
import pickle
import re

import pytest

import teletape_client
from programs import ROOT
from teletape_client import errors
from teletape_server.problems import PROBLEMS

CLASSES = [
    member
    for member in vars(errors).values()
    if inspect.isclass(member) and issubclass(member, errors.ServiceError) and member is not errors.ServiceError
]


def test_each_code_of_the_server_has_a_class_and_no_other_code_has() -> None:
    assert set(errors.CLASSES) == set(PROBLEMS)
    assert sum(len(error.codes) for error in CLASSES) == len(PROBLEMS), "a code is of one class"


def test_each_class_is_drawn_in_the_tree_and_public() -> None:
    drawn = re.findall(r"[├└]─ (\w+) +(.+)", errors.__doc__ or "")
    assert [name for name, _ in drawn] == [error.__name__ for error in CLASSES]
    assert {error.__name__ for error in CLASSES} < set(teletape_client.__all__)


@pytest.mark.parametrize("status", range(400, 600))
def test_a_code_that_is_newer_than_the_client_has_the_class_of_its_status(status: int) -> None:
    error = errors.error_class("of_the_future", status)
    assert error is not errors.ServiceError
    assert issubclass(error, errors.ServerError) == (status >= 500 and status not in (503, 507))


def test_an_error_can_be_pickled() -> None:
    problem = {"code": "busy", "details": {"limit": 3}}
    error = errors.BusyError("wait", code="busy", status=429, request_id="r", retry_after=2.0, problem=problem)
    copy = pickle.loads(pickle.dumps(error))  # noqa: S301  # its own
    assert (type(copy), str(copy), vars(copy)) == (errors.BusyError, "wait (busy, request r)", vars(error))
    assert copy.details == {"limit": 3}


def test_the_page_lists_each_class_with_its_codes() -> None:
    page = (ROOT / "docs/service-client.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+Error)` \| (.+?) \| (.*)\|$", page, re.M)
    listed = {name: (advice, set(re.findall(r"`(\w+)`", codes))) for name, advice, codes in rows}
    words = {error.__name__: " ".join((error.__doc__ or "").split()).rstrip(".") for error in CLASSES}
    assert listed == {error.__name__: (words[error.__name__], set(error.codes)) for error in CLASSES}
