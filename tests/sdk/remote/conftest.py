"""A program's session on a loopback."""

from collections.abc import Iterator

import pytest
from loopback import Loopback, session_on

from teletape.sessions.current import use
from teletape.sessions.local import LocalSession
from teletape.sessions.remote import RemoteSession


@pytest.fixture
def loopback() -> Loopback:
    return Loopback()


@pytest.fixture
def remote(loopback: Loopback) -> Iterator[RemoteSession]:
    """The current session, on `loopback`; afterwards the program is in this process again."""
    session = session_on(loopback)
    use(session)
    yield session
    loopback.gate.set()
    use(LocalSession())
    session.close()
