"""A client of the shared server, and a session of the test's own in it."""

from collections.abc import Iterator

import httpx
import pytest
from rest_client import Rest

from serving import ok


@pytest.fixture(scope="module")
def http(server_url: str) -> Iterator[httpx.Client]:
    """A client of the shared server."""
    with httpx.Client(base_url=server_url, timeout=60, trust_env=False, verify=False) as client:
        yield client


@pytest.fixture
def rest(http: httpx.Client) -> Iterator[Rest]:
    """A new session; it is deleted after the test."""
    session = Rest(http, ok(http.post("/v1/sessions", json={})).json()["id"])
    yield session
    http.delete(session.path)
