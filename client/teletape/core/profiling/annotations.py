"""`tf.profiler.experimental.Trace`: a name for a part of a program, accepted without effect."""

from __future__ import annotations

from types import TracebackType
from typing import Any


class Trace:
    """A context manager that has no effect: `tf.session().profile()` shows ops by their lines, which need no names.

    Args:
        name: The name of the part.
        **kwargs: Facts about it, such as its step_num.
    """

    def __init__(self, name: str, **kwargs: Any) -> None: ...

    def __enter__(self) -> Trace:
        return self

    def set_metadata(self, **kwargs: Any) -> None:
        """Accepts further facts about the part."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...
