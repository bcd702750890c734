"""`tf.connect`: opens the session that the program's tensors live in, from arguments or from the environment."""

from __future__ import annotations

from teletape import environment
from teletape.sessions.local import LocalSession
from teletape.sessions.session import Session, open_default_with, use


def connect(
    url: str | None = None,
    api_key: str | None = None,
    device: str | None = None,
    lazy: bool | None = None,
    local: bool = False,
) -> Session:
    """Chooses where the program's tensors live from now on. Existing tensors stay with their session.

    Args:
        url: A server's address, as `https://gpu-box:8470`. None: TELETAPE_URL, and without it this process.
        api_key: Your key for the server. None: TELETAPE_API_KEY.
        device: cpu, gpu or gpu:N; None: the server's default. In this process: cpu or gpu.
        lazy: Whether commands wait until a value is read. None: yes, unless TELETAPE_LAZY is 0. In this process every
            op runs at once.
        local: Whether to stay in this process even if TELETAPE_URL is set.

    Returns:
        The session; a `with` statement closes it.

    Raises:
        teletape.errors.ConnectionFailed: No server answers at that address.
        teletape.errors.AuthenticationError: The key is missing or wrong.
    """
    address = None if local else url or environment.url()
    if address is None:
        return use(LocalSession(device))
    return use(_remote(address, api_key, device, environment.lazy() if lazy is None else lazy))


def _open_default() -> Session:
    address = environment.url()
    if address is None:
        return LocalSession(environment.device())
    return _remote(address, None, None, environment.lazy())


def _remote(address: str, api_key: str | None, device: str | None, lazy: bool) -> Session:
    from teletape.sessions.remote import RemoteSession  # HTTP takes 0.1 s to import: programs without a server save it

    return RemoteSession(address, api_key or environment.api_key(), device=device, lazy=lazy)


open_default_with(_open_default)
