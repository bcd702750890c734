"""The list of checks, and the server that they ask."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final, NamedTuple, Self

import httpx
import numpy as np

#: Seconds for an answer.
_PATIENCE: Final = 60.0
#: A check raises `Deviation` or any other exception if the server deviates.
Check = Callable[["Server"], None]

CHECKS: Final[dict[str, Check]] = {}


class Deviation(AssertionError):
    """The server does something else than the documentation says."""


class NotOffered(Exception):  # no error: a server need not have everything
    """The server does not have what the check is about."""


class Outcome(NamedTuple):
    """The outcome of a check.

    Attributes:
        name: Its name.
        fault: The deviation; empty: none.
        is_offered: Whether the server has what it is about.
    """

    name: str
    fault: str
    is_offered: bool = True


def check(name: str) -> Callable[[Check], Check]:
    """Registers a check under its name, which says what must be true."""

    def register(function: Check) -> Check:
        assert name not in CHECKS, name
        CHECKS[name] = function
        return function

    return register


def expect(value: Any, expected: Any, subject: str) -> None:
    """Raises Deviation unless two values are equal."""
    if value != expected:
        raise Deviation(f"{subject}: expected {expected!r}, got {value!r:.200}")


def expect_close(tensor: Any, expected: Any, subject: str, rtol: float = 1e-4) -> None:
    """Raises Deviation unless a tensor in JSON has these elements, also NaN and infinities."""
    if not isinstance(tensor, dict) or "data" not in tensor:
        raise Deviation(f"{subject}: expected a tensor with `data`, got {tensor!r:.200}")
    elements = np.array(tensor["data"], dtype=np.float64)  # "NaN" and "Infinity" are strings in JSON
    expected = np.asarray(expected, np.float64)
    expect(list(elements.shape), list(expected.shape), f"the shape of {subject}")
    if not np.allclose(elements, expected, rtol=rtol, atol=1e-6, equal_nan=True):
        raise Deviation(f"{subject}: expected {expected.tolist()}, got {elements.tolist()}")


class Server:
    """A server under test.

    Args:
        url: Its address.
        api_key: The key to send; None: none.
    """

    def __init__(self, url: str, api_key: str | None = None) -> None:
        headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
        self.http = httpx.Client(base_url=url, headers=headers, timeout=_PATIENCE, trust_env=False)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.http.close()

    def ask(
        self, method: str, path: str, body: Any = None, status: int | None = None, **options: Any
    ) -> httpx.Response:
        """Sends JSON; raises Deviation if the answer has another status (None: any below 400)."""
        answer = self.http.request(method, f"/v1{path}", json=body, **options)
        if answer.status_code != status and (status is not None or answer.status_code >= 400):
            raise Deviation(
                f"{method} /v1{path}: expected {status or 'success'}, got {answer.status_code} {answer.text:.300}"
            )
        return answer

    def json(self, method: str, path: str, body: Any = None, **options: Any) -> Any:
        """Sends JSON and returns the JSON of the answer."""
        return self.ask(method, path, body, **options).json()

    @contextmanager
    def session(self, **facts: Any) -> Iterator[str]:
        """Makes a session for a block; yields its path."""
        path = f"/sessions/conformity-{uuid.uuid4().hex[:12]}"
        self.ask("POST", "/sessions", {"id": path.rpartition("/")[2], **facts})
        try:
            yield path
        finally:
            self.http.delete(f"/v1{path}")


def run_all(server: Server, only: str = "") -> list[Outcome]:
    """Runs the checks whose names have a text; returns an outcome for each."""
    outcomes = []
    for name, function in CHECKS.items():
        if only in name:
            fault, is_offered = "", True
            try:
                function(server)
            except NotOffered:
                is_offered = False
            except Exception as error:  # whatever a broken server causes is its deviation
                fault = f"{error}" if isinstance(error, Deviation) else f"{type(error).__name__}: {error}"
            outcomes.append(Outcome(name, fault, is_offered))
    return outcomes
