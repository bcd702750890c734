"""`tf.name_scope`: a prefix for the names of variables and modules made inside it, for each thread or async task."""

from __future__ import annotations

from contextvars import ContextVar, Token
from types import TracebackType
from typing import Any, Final

_scope: Final[ContextVar[str]] = ContextVar("teletape.name_scope", default="")


class name_scope:
    """A context manager that adds `name/` to the prefix of variables' names inside it, after the outer scopes.

    Entering returns the whole prefix. A name that ends in "/" replaces the outer scopes; "" leaves all scopes.
    One object may be entered again, also inside itself.

    Attributes:
        name: As given.

    Raises:
        ValueError: The name is not a string.
    """

    def __init__(self, name: str) -> None:
        if not isinstance(name, str):
            raise ValueError("name for name_scope must be a string.")
        self.name = name
        self._entered: list[Token[str]] = []

    def __enter__(self) -> str:
        absolute = not self.name or self.name.endswith("/")
        prefix = self.name if absolute else scoped(self.name) + "/"
        self._entered.append(_scope.set(prefix))
        return prefix

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        _scope.reset(self._entered.pop())


class name_scope_v1(name_scope):
    """`tf.compat.v1.name_scope`: a name_scope whose name may have a default. Without both names it leaves all scopes.

    Args:
        name: The name; None: the default.
        default_name: The default.
        values: Accepted, without effect: it chose a graph.

    Raises:
        ValueError: The name is not a string.
    """

    def __init__(self, name: Any, default_name: Any = None, values: Any = None) -> None:
        name = default_name if name is None else name
        super().__init__("" if name is None else name)


def scoped(name: str) -> str:
    """`name` after the prefix of the scopes that are open here."""
    return _scope.get() + name


def get_current_name_scope() -> str:
    """Returns the scopes that are open here, without the last "/"; "" outside all.

    Example:
        tf.get_current_name_scope()
    """
    return _scope.get().removesuffix("/")
