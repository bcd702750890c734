"""A client of the shared server, a session of the test's own in it, and a browser."""

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

import httpx
import pytest
from rest_client import Rest

from programs import chromium_path
from serving import ok

if TYPE_CHECKING:
    from playwright.sync_api import Browser

FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run"]


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


@pytest.fixture(scope="module")
def browser() -> "Iterator[Browser]":
    """Debian's Chromium, for a module: Playwright's loop, in which no other can start, ends with it.

    The one that cannot open windows, where it is installed: with a window each page takes two CPU seconds more.
    """
    from playwright.sync_api import sync_playwright

    environment: dict[str, str | float | bool] = {
        name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")
    }
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=chromium_path(), args=FLAGS, env=environment)
        yield chromium
        chromium.close()
