"""Fixtures of the SDK's tests that run in this process, and over HTTP where both must agree."""

from collections.abc import Iterator
from typing import Any

import pytest

import teletape as tf
from teletape.core.sessions.current import use
from teletape.core.sessions.local import LocalSession


@pytest.fixture(params=["in-process", "http"])
def connected(request: pytest.FixtureRequest) -> Iterator[Any]:
    """A session of the test's own: in this process, then on a server."""
    url = request.getfixturevalue("server_url") if request.param == "http" else None
    with tf.connect(url, local=url is None) as session:
        yield session
    use(LocalSession())
