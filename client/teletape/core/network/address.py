"""Addresses of servers: TCP or a Unix socket, with or without encryption, through a proxy or not."""

from __future__ import annotations

import ipaddress
import re
import socket
import ssl
import sys
import urllib.request
from pathlib import Path
from typing import Final, NamedTuple

import httpx

from teletape.core.network.options import ConnectOptions
from teletape_engine.errors import InvalidArgumentError

UNIX: Final = "unix://"  #: The prefix of the address of a Unix socket.
PORT: Final = 8470  #: The default port of `teletape serve`.
_ADDRESS: Final = re.compile(
    r"(?:(?P<scheme>https?)://)?"
    r"(?P<place>(?:\[[0-9a-f:.%]+\]|[^\s/@?#:\[\]-][^\s/@?#:\[\]]*)(?::(?P<port>[0-9]{1,5}))?)"
    r"(?P<path>(?:/[^\s?#]*)?)",
    re.IGNORECASE,
)
_PAGES: Final = ("/v1/info", "/v1", "/docs", "/console")  #: Suffixes of URLs that people copy from a browser.
#: (option, seconds or count): the connection ends 25 s after the peer has vanished.
_KEEP_ALIVE: Final = (("TCP_KEEPIDLE", 10), ("TCP_KEEPALIVE", 10), ("TCP_KEEPINTVL", 5), ("TCP_KEEPCNT", 3))


class Endpoint(NamedTuple):
    """The end of a plain socket's connection.

    Attributes:
        host: A name, or an address without brackets; empty: `path` is used.
        port: The port.
        path: The file of a Unix socket.
    """

    host: str = ""
    port: int = 0
    path: str = ""

    def connect(self, seconds: float) -> socket.socket:
        """Returns an open connection with keep-alive; if a name has several addresses, to the first that answers.

        Raises:
            OSError: Nothing answers in that time.
        """
        if self.path:
            connection = socket.socket(socket.AF_UNIX)
            try:
                connection.settimeout(seconds)
                connection.connect(self.path)
            except BaseException:
                connection.close()
                raise
            return connection
        connection = socket.create_connection((self.host, self.port), timeout=seconds)
        try:
            for option in [(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1), *keep_alive()]:
                connection.setsockopt(*option)
        except BaseException:
            connection.close()
            raise
        return connection


def keep_alive() -> list[tuple[int, int, int]]:
    """Returns the options of a socket that detect a vanished peer."""
    options = [(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)]
    return options + [
        (socket.IPPROTO_TCP, getattr(socket, name), value) for name, value in _KEEP_ALIVE if hasattr(socket, name)
    ]


def normalized(url: str | int) -> str:
    """Returns the address that `tf.connect` was passed as a URL, without a path of the API and without a slash.

    A number is a port of this machine, `gpu-box:8470` and `gpu-box` are http. `https://gpu-box/v1/` and addresses of
    the API page become the server's address.

    Raises:
        InvalidArgumentError: It is no address.
    """
    text = "" if isinstance(url, bool | float) else str(url).strip().rstrip("/")
    if text.startswith(UNIX):
        return text
    if text.isdecimal():
        text = f"127.0.0.1:{text}"
    if "@" in text:
        raise InvalidArgumentError(
            f"{_without_secrets(text)!r} is no address of a server: a name or a password before an @ would be shown in "
            "messages and logs. Leave it out, and pass your key: tf.connect(url, api_key=…), or TELETAPE_API_KEY"
        )
    parts = _ADDRESS.fullmatch(text)
    if parts is None or not 0 < int(parts["port"] or 1) < 1 << 16:
        raise InvalidArgumentError(
            f"{url!r} is no address of a server: expected http:// or https:// with a host, as https://gpu-box:8470; or "
            "host:port; or a port of this machine, as 8470; or unix:///path of a Unix socket"
        )
    scheme, place, path = parts["scheme"], parts["place"], parts["path"]
    if scheme is None and parts["port"] is None:
        place += f":{PORT}"
    for page in _PAGES:
        path = path.removesuffix(page)
    return f"{(scheme or 'http').lower()}://{place}{path.rstrip('/')}"


def base_url(url: str) -> str:
    """Returns the address in HTTP requests; for a Unix socket that of this machine."""
    return "http://localhost" if url.startswith(UNIX) else url


def plain_endpoint(url: str, proxy: str | None = None) -> Endpoint | None:
    """Returns the endpoint of a plain socket; None: this address needs encryption or a proxy, or one is set."""
    if proxy is not None:
        return None
    if url.startswith(UNIX):
        return Endpoint(path=_socket_path(url))
    address = httpx.URL(url)
    if address.scheme != "http" or not address.host or _proxy(address) is not None:
        return None
    return Endpoint(address.host, address.port or 80)


def transport(url: str, options: ConnectOptions) -> httpx.HTTPTransport:
    """Returns the transport to a server, as httpx makes it, and with keep-alive: a client cannot pass these options.

    Raises:
        InvalidArgumentError: `verify`, `cert` or `proxy` is invalid.
    """
    if url.startswith(UNIX):
        return httpx.HTTPTransport(verify=False, uds=_socket_path(url))
    address = httpx.URL(url)
    # Making a context of certificates takes longer than a session.
    verify = False if address.scheme == "http" else _encryption(options)
    proxy = options.proxy or _proxy(address)
    try:
        return httpx.HTTPTransport(verify=verify, proxy=proxy, socket_options=keep_alive())
    except (ValueError, ImportError) as error:  # httpx needs another package for SOCKS
        raise InvalidArgumentError(f"proxy={proxy!r}: {error}") from None


def _encryption(options: ConnectOptions) -> ssl.SSLContext | bool:
    """Returns the settings to check a server's certificate, with the program's own certificate; True: the defaults."""
    verify, cert = options.verify, options.cert
    if cert is None and isinstance(verify, bool):
        return verify
    try:
        if isinstance(verify, str):
            is_folder = Path(verify).is_dir()
            context = ssl.create_default_context(
                cafile=None if is_folder else verify, capath=verify if is_folder else None
            )
        else:
            context = verify if isinstance(verify, ssl.SSLContext) else httpx.create_ssl_context(verify=verify)
        if cert is not None:
            context.load_cert_chain(*((cert,) if isinstance(cert, str) else cert))
    except OSError as error:  # ssl.SSLError is one
        raise InvalidArgumentError(
            f"verify={verify!r}, cert={cert!r}: no certificate can be read there: {error}"
        ) from None
    return context


def check_encrypted(url: str) -> None:
    """Raises InvalidArgumentError if requests to this address are not encrypted."""
    address = httpx.URL(base_url(url))
    if address.scheme == "http" and not _is_loopback(address.host):
        raise InvalidArgumentError(
            f"{url}: an API key would be sent there unencrypted, for anyone on the way to read. Use https://, or a "
            "tunnel to localhost; in a network that you trust, tf.connect(url, allow_insecure=True) or "
            "TELETAPE_ALLOW_INSECURE=1 allows it"
        )


def _without_secrets(text: str) -> str:
    """Returns an address without the name and password before its last @."""
    scheme, separator, _ = text.rpartition("@")[0].partition("://")
    return f"{scheme + separator if separator else ''}…@{text.rpartition('@')[2]}"


def _proxy(address: httpx.URL) -> str | None:
    """Returns the proxy to a host from the environment; None: there is none, or the host is this machine."""
    if _is_loopback(address.host):  # a proxy would get the key unencrypted, and be the host itself
        return None
    proxies = {} if urllib.request.proxy_bypass(address.host) else urllib.request.getproxies()
    return proxies.get(address.scheme) or proxies.get("all")


def _socket_path(url: str) -> str:
    if not hasattr(socket, "AF_UNIX"):
        raise InvalidArgumentError(f"{url}: Python has no Unix sockets on {sys.platform}; use the server's http:// URL")
    path = url.removeprefix(UNIX)
    if not path.startswith("/"):
        raise InvalidArgumentError(f"{url}: expected unix:// and an absolute path, as unix:///run/teletape.sock")
    return path


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host.lower() == "localhost" or host.lower().endswith(".localhost")
