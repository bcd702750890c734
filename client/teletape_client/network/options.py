"""The options of a client: the time limit of a call, its retries, and its progress."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from teletape_client.models import Progress

TIMEOUT: Final = 600.0  #: Seconds that a call may take, unless it is set.
RETRIES: Final = 3  #: How often a request is sent again, unless it is set.


class Options(NamedTuple):
    """The options of calls.

    Attributes:
        timeout: Seconds that a call may take in all, with its retries; None: as long as the server computes.
        max_retries: How often a request is sent again that was not answered, or that a busy server has refused.
        headers: Sent with each request, in addition to those of the client.
        on_progress: Called with the progress of a request that computes; the answer is then JSON.
        binary: Whether tensors may travel as safetensors; False: all as JSON, which complex128 needs.
        raw: Whether calls return the response in place of the answer.
    """

    timeout: float | None = TIMEOUT
    max_retries: int = RETRIES
    headers: Mapping[str, str] = MappingProxyType({})
    on_progress: Callable[[Progress], object] | None = None
    binary: bool = True
    raw: bool = False

    def with_changes(self, changes: Mapping[str, Any]) -> Options:
        """Returns the options with some of them changed; headers are added to those that are there.

        Raises:
            TypeError: There is no such option.
            ValueError: A value is out of range.
        """
        if "headers" in changes:
            changes = {**changes, "headers": {**self.headers, **changes["headers"]}}
        options = self._replace(**changes)
        if options.timeout is not None and not options.timeout > 0:
            raise ValueError(f"timeout is a number of seconds above 0, or None; found {options.timeout!r}")
        if options.max_retries < 0:
            raise ValueError(f"max_retries is a number from 0 up; found {options.max_retries!r}")
        return options
