"""The options of a connection and its time limits: one record, from `tf.connect` down to the connection.

Nothing here imports HTTP, which a program without a server does not load.
"""

from __future__ import annotations

import contextvars
import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, Literal, Self

from teletape.core import environment
from teletape_engine.errors import InvalidArgumentError

if TYPE_CHECKING:
    import ssl

    import httpx

CONNECT_TIMEOUT: Final = 10.0  #: The default time limit of the first request, in seconds.

#: The settings of blocks, the innermost first: a record, and the timeout of its session's reads.
timeouts: Final[contextvars.ContextVar[tuple[tuple[ConnectOptions, float | None], ...]]] = contextvars.ContextVar(
    "timeouts", default=()
)


@dataclass(frozen=True, kw_only=True)
class ConnectOptions:
    """The arguments of `tf.connect` about a server; `tf.connect` documents them.

    Raises:
        InvalidArgumentError: A number is none that can be meant, or `http_client` comes with what only its maker sets.
    """

    url: str | int
    api_key: str | None = field(default=None, repr=False)
    device: str | None = None
    lazy: bool = True
    allow_insecure: bool = False
    session: str | None = None
    dedicated: bool = False
    durability: Literal["none", "journal", "journal-sync"] | None = None
    timeout: float | None = None
    connect_timeout: float | None = None
    max_retries: int | None = None
    verify: bool | str | ssl.SSLContext = True
    cert: str | tuple[str, str] | tuple[str, str, str] | None = None
    proxy: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    http_client: httpx.Client | None = None

    def __post_init__(self) -> None:
        check_timeout("timeout", self.timeout)
        check_timeout("connect_timeout", self.connect_timeout)
        retries: object = self.max_retries
        if retries is not None and not (isinstance(retries, int) and not isinstance(retries, bool) and retries >= 0):
            raise InvalidArgumentError(f"max_retries is a number of attempts from 0 up, or None; found {retries!r:.60}")
        if self.http_client is not None and not (self.verify is True and self.cert is None and self.proxy is None):
            raise InvalidArgumentError(
                "verify, cert and proxy belong to the http_client that is passed: set them where it is made, "
                "httpx.Client(verify=…, cert=…, proxy=…)"
            )

    @classmethod
    def of(
        cls,
        url: str | int,
        *,
        api_key: str | None = None,
        lazy: bool | None = None,
        allow_insecure: bool = False,
        headers: Mapping[str, str] | None = None,
        **others: Any,
    ) -> Self:
        """Returns the record of a program's arguments; defaults come from the environment."""
        return cls(
            url=url,
            api_key=api_key or environment.api_key(),
            lazy=environment.lazy() if lazy is None else lazy,
            allow_insecure=allow_insecure or environment.allow_insecure(),
            headers={**(headers or {})},
            **others,
        )

    def but(self, **changes: Any) -> Self:
        """Returns the record with changes."""
        return replace(self, **changes)

    @property
    def first_patience(self) -> float:
        """Seconds in which the server has to answer the first request, and a connection has to open."""
        return CONNECT_TIMEOUT if self.connect_timeout is None else self.connect_timeout

    @property
    def current_timeout(self) -> float | None:
        """The timeout of a read here, in seconds: that of the innermost block of `with_timeout`, or `timeout`."""
        for options, timeout in timeouts.get():
            if options is self:
                return timeout
        return self.timeout

    @contextmanager
    def with_timeout(self, timeout: float | None) -> Iterator[None]:
        """A block of this thread or task with another timeout; None: reads may take any time."""
        check_timeout("timeout", timeout)
        before = timeouts.get()
        timeouts.set(((self, timeout), *before))
        try:
            yield
        finally:
            timeouts.set(before)


def check_timeout(name: str, seconds: float | None) -> None:
    """Checks a number of seconds.

    Raises:
        InvalidArgumentError: It is no number above 0, nor None.
    """
    is_number = isinstance(seconds, int | float) and not isinstance(seconds, bool)
    if seconds is not None and not (is_number and 0 < seconds < math.inf):
        raise InvalidArgumentError(f"{name} is a number of seconds above 0, or None; found {seconds!r:.60}")
