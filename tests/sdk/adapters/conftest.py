"""The ways in which a function runs."""

from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from ways import WAYS, Way


@pytest.fixture(params=WAYS)
def way(request: pytest.FixtureRequest) -> Iterator[Way]:
    """Each way in which a function runs."""
    with ExitStack() as stack:
        yield Way(request.param, request.getfixturevalue("server_url"), stack)
