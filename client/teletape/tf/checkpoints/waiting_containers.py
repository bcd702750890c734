"""Lists and dicts that a restore meets before they are filled: later items are restored."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Filled = Callable[[], None]


def _filling(name: str, base: type) -> Any:
    """Wraps a method of a list or dict that adds items: the items are then restored."""
    method = getattr(base, name)

    def fill(self: Any, *args: Any, **kwargs: Any) -> Any:
        result = method(self, *args, **kwargs)
        self.filled()
        return result

    fill.__name__, fill.__doc__ = name, method.__doc__
    return fill


class WaitingList(list[Any]):
    """A list with a function that restores into later items. A copy is a plain list."""

    filled: Filled

    append, extend, insert = _filling("append", list), _filling("extend", list), _filling("insert", list)
    __setitem__, __iadd__ = _filling("__setitem__", list), _filling("__iadd__", list)

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        return list, (list(self),)


class WaitingDict(dict[Any, Any]):
    """A dict with such a function. A copy is a plain dict."""

    filled: Filled

    update, setdefault = _filling("update", dict), _filling("setdefault", dict)
    __setitem__, __ior__ = _filling("__setitem__", dict), _filling("__ior__", dict)

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        return dict, (dict(self),)


#: The waiting class for each class of containers.
WAITING_CLASSES: dict[type, Any] = {list: WaitingList, dict: WaitingDict}
