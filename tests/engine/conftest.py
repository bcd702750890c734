"""A session of the test's own."""

import pytest

from teletape_engine.session.session import Session


@pytest.fixture
def session() -> Session:
    return Session()
