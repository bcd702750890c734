"""Errors of a failed first request to an address: nothing there, another protocol, no Teletape, no session left.

Each message has the attempt, the finding, and the remedy.
"""

from __future__ import annotations

import socket
import ssl
from typing import Any, Final

import httpx

from teletape.core.errors import AuthenticationError, ConnectionFailed, RequestError, TeletapeError
from teletape.core.network.address import PORT, UNIX, base_url
from teletape_engine.errors import InvalidArgumentError

_PROBE: Final = 2.0  #: Seconds to wait for a server's TLS handshake.


def check_key(api_key: str | None) -> None:
    """Checks that a key has only characters that a header can have; no server has another key.

    Raises:
        InvalidArgumentError: It has other characters.
    """
    wrong = next((character for character in api_key or "" if not "!" <= character <= "~"), None)
    if wrong is not None:
        raise InvalidArgumentError(
            f"an API key has characters of ASCII without spaces, and the one that was passed has {wrong!a}: pass the "
            "key alone, as it stands behind the name and the colon in TELETAPE_API_KEYS"
        )


def is_final(error: httpx.RequestError) -> bool:
    """Whether a first request that fails with this error is not sent again: a retry would fail too."""
    if isinstance(error, httpx.RemoteProtocolError):
        return "disconnected" not in str(error)  # the answer was no HTTP
    return isinstance(error, httpx.ConnectError | httpx.ConnectTimeout)


def failure(url: str, error: httpx.RequestError, seconds: float) -> ConnectionFailed:
    """Returns the exception of a first request that found no HTTP server at an address within some seconds."""
    text, port = str(error), _port_advice(url)
    if "WRONG_VERSION_NUMBER" in text or "record layer failure" in text:
        plain = url.replace("https://", "http://", 1)
        return ConnectionFailed(f"{url}: the server there speaks plain HTTP, not HTTPS: the address is {plain}")
    if "CERTIFICATE_VERIFY_FAILED" in text:
        return ConnectionFailed(
            f"{url}: the certificate there is not trusted ({text}). Use the name that the certificate is for; for a "
            "certificate of your own, pass the file of its authority, tf.connect(url, verify=…), or set SSL_CERT_FILE"
        )
    if isinstance(error, httpx.RemoteProtocolError):
        return ConnectionFailed(f"{url}: what answers there does not speak HTTP ({text}): check the port{port}")
    if isinstance(error, httpx.ConnectTimeout):
        return ConnectionFailed(
            f"{url}: no connection within {seconds:g} s: check the address, and that no firewall is in the way{port}"
        )
    if "Name or service not known" in text or "name resolution" in text or "nodename nor servname" in text:
        return ConnectionFailed(f"{url}: there is no machine of that name ({text}): check the address")
    return ConnectionFailed(
        f"{url}: nothing answers there ({text}); start a server with `teletape serve`, or leave out the address to "
        f"compute inside this process{port}"
    )


def _port_advice(url: str) -> str:
    """Returns the advice about the port of an address without one, which is that of its scheme; "" if it has a port."""
    address = httpx.URL(base_url(url))
    if url.startswith(UNIX) or address.port is not None:
        return ""
    port = 443 if address.scheme == "https" else 80
    likely = address.copy_with(port=PORT)
    return f". This was port {port}, for the address names none; a server listens at {PORT} by default: {likely}"


def elsewhere(url: str, path: str, status: int, location: str | None) -> ConnectionFailed:
    """Returns the exception of a request that something before the server has answered, for example by a redirect.

    Args:
        url: The server's address.
        path: The request's path.
        status: The response's status.
        location: The target of a redirect; None: not known.
    """
    text = f"{url}{path}: HTTP {status} is no answer of a Teletape server"
    if location is None:
        return ConnectionFailed(f"{text}: something on the way answers in its place; check the address")
    try:
        target = httpx.URL(base_url(url)).join(location).copy_with(query=None, fragment=None, userinfo=b"")
    except httpx.InvalidURL:
        return ConnectionFailed(f"{text}, but sends it to {location[:200]!r}, which is no address")
    if str(target).endswith(path):
        return ConnectionFailed(f"{text}, but sends it to another address: use {str(target).removesuffix(path)}")
    return ConnectionFailed(
        f"{text}, but sends it to {target}: a login or a proxy answers in its place. Log in there, or use an address "
        "at which programs reach the server with an API key alone"
    )


def encrypted_there(url: str) -> ConnectionFailed | None:
    """Returns the exception if an address begins with http:// and the server there speaks HTTPS; None: it does not."""
    address = httpx.URL(url)
    if address.scheme != "http":
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # only a probe: nothing is sent over this connection
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    try:
        with (
            socket.create_connection((address.host, address.port or 80), timeout=_PROBE) as connection,
            context.wrap_socket(connection, server_hostname=address.host),
        ):
            return ConnectionFailed(
                f"{url}: the server there speaks HTTPS: the address is {url.replace('http', 'https', 1)}"
            )
    except OSError:  # ssl.SSLError is one
        return None


def no_teletape(url: str, answered: object) -> ConnectionFailed:
    """Returns the exception of an HTTP server that is no Teletape server.

    Args:
        url: Its address.
        answered: Its answer to `GET /v1/info`.
    """
    answer = answered.message if isinstance(answered, TeletapeError) else str(answered)[:200]
    return ConnectionFailed(
        f"{url}: what answers there is not a Teletape server: GET {url}/v1/info answered {answer}. Check the address "
        f"and the port; `teletape serve` prints those of a server{_port_advice(url)}"
    )


def is_page(error: RequestError) -> bool:
    """Whether a refusal did not come from a Teletape server, whose refusals have a code."""
    return "code" not in error.details


def explained(error: TeletapeError, url: str, *, has_key: bool) -> TeletapeError:
    """Returns a refusal in terms of Python: the argument of `tf.connect` to pass, the function to call.

    Args:
        error: The refusal.
        url: The server's address.
        has_key: Whether the request had an API key.
    """
    details: dict[str, Any] = error.details
    if isinstance(error, AuthenticationError):
        reason = "the key that was passed is not one of its keys" if has_key else "none was passed"
        return AuthenticationError(
            f"the server at {url} requires an API key, and {reason}: pass tf.connect(url, api_key=…), or set the "
            f"environment variable TELETAPE_API_KEY ({error.message})",
            **details,
        )
    if isinstance(error, RequestError) and error.code == "too_many_sessions":
        return RequestError(
            f"{error.message}. tf.sessions({url!r}) lists them; its end() ends those that you name, and those of "
            f"programs that were killed: in a terminal, python -m teletape sessions {url} --end ID",
            **details,
        )
    return error
