"""`tf.Module`: an object that finds the variables and modules among its attributes."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator
from typing import Any, Final, TypeVar

from teletape.core.tensors import nest
from teletape.core.variables import name_scope
from teletape.core.variables.trackable import AutoTrackable
from teletape.core.variables.variable import Variable

R = TypeVar("R")

_IDENTIFIER: Final = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*\Z")
_NEW_WORD: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<!^)(?=[A-Z][a-z])")


class Module(AutoTrackable):
    """A named owner of variables: those in its attributes, in lists, tuples and dicts there, and in modules there.

    Attributes are walked by sorted name, each object counts once, and a module's own variables come before those of
    its submodules. Layers of Keras are no modules and are not looked into.

    Args:
        name: A Python identifier; the class name in snake case if None.

    Raises:
        ValueError: The name is no identifier.
    """

    def __init__(self, name: str | None = None) -> None:
        if name is None:
            name = _NEW_WORD.sub("_", type(self).__name__).lower()
        elif not _IDENTIFIER.match(name):
            raise ValueError(
                f"{name!r} is not a valid module name. Module names must be valid Python identifiers "
                "(e.g. a valid class name)."
            )
        self._name = name
        with name_scope.name_scope(name) as prefix:
            self._name_scope = name_scope.name_scope(prefix)

    @property
    def name(self) -> str:
        """The name, given or made from the class name; without the names of owners."""
        return self._name

    @property
    def name_scope(self) -> name_scope.name_scope:
        """The scope whose prefix is that of the scopes where the module was made, then this module's name."""
        return self._name_scope

    @property
    def variables(self) -> tuple[Any, ...]:
        """Every variable of this module and its submodules."""
        return tuple(leaf for leaf in _walk(self) if isinstance(leaf, Variable))

    @property
    def trainable_variables(self) -> tuple[Any, ...]:
        """The trainable ones of `variables`."""
        return tuple(variable for variable in self.variables if variable.trainable)

    @property
    def non_trainable_variables(self) -> tuple[Any, ...]:
        """The ones of `variables` that are not trainable."""
        return tuple(variable for variable in self.variables if not variable.trainable)

    @property
    def submodules(self) -> tuple[Module, ...]:
        """Every module below this one."""
        return tuple(leaf for leaf in _walk(self) if isinstance(leaf, Module))

    @classmethod
    def with_name_scope(cls, method: Callable[..., R]) -> Callable[..., R]:
        """Decorates a method so that it runs inside its module's `name_scope`."""

        @functools.wraps(method)
        def inside(self: Module, *args: Any, **kwargs: Any) -> R:
            with self.name_scope:
                return method(self, *args, **kwargs)

        return inside


def _walk(module: Module, seen: set[int] | None = None) -> Iterator[Any]:
    """The leaves of the attributes, then of each module among them; each object once, without the first module."""
    seen = {id(module)} if seen is None else seen
    submodules = []
    for key, value in sorted(vars(module).items()):
        try:
            leaves = nest.flatten(value)
        except Exception as error:
            raise ValueError(f"Error processing property {key!r} of {value!r}") from error
        for leaf in leaves:
            if id(leaf) not in seen:
                seen.add(id(leaf))
                yield leaf
                if isinstance(leaf, Module):
                    submodules.append(leaf)
    for submodule in submodules:
        yield from _walk(submodule, seen)
