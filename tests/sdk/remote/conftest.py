"""A program's session on a loopback."""

from collections.abc import Iterator

import pytest
from loopback import Listener, Loopback, session_on

from teletape.core.sessions.current import use
from teletape.core.sessions.local import LocalSession
from teletape.core.sessions.remote import RemoteSession


@pytest.fixture
def loopback() -> Loopback:
    return Loopback()


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Runs each test of `remote` twice, but for those that ask for the fixture while they run."""
    if "way" in metafunc.fixturenames and "remote" in metafunc.fixturenames:
        metafunc.parametrize("way", ["httpx", "socket"], indirect=True)


@pytest.fixture
def way(request: pytest.FixtureRequest) -> str:
    """How `remote` reaches its server: through httpx's transport seam, or over TCP."""
    return getattr(request, "param", "socket")


@pytest.fixture
def remote(way: str, loopback: Loopback) -> Iterator[RemoteSession]:
    """The current session, on `loopback`; afterwards the program is in this process again.

    Through httpx the sender's thread sends each batch, over a socket the threads that read do.
    """
    listener = Listener() if way == "socket" else None
    session = session_on(loopback, url=None if listener is None else listener.url(loopback))
    use(session)
    yield session
    loopback.gate.set()
    use(LocalSession())
    session.close()
    if listener is not None:
        listener.close()
