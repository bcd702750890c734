"""Objects whose attributes are saved with them: the base class of tf.Module, Checkpoint, and Keras's layers.

A checkpoint walks from object to object by the names of attributes. If an object is restored before an attribute is
set, the attribute gets its value when it is set.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Protocol

#: The attribute that holds values for attributes that are not set yet.
WAITING: Final = "_self_waiting_restoration"


class Waiting(Protocol):
    """Restores values into attributes that are set later."""

    def attribute_set(self, name: str, value: Any) -> None:
        """Restores the value of the attribute `name`, if the checkpoint has one."""


class Trackable:
    """The base class of objects that TensorFlow's checkpoints save; Keras's variables have it."""

    def _track_trackable(self, *args: Any, **kwargs: Any) -> None:
        """Does nothing: a checkpoint reads attributes when it is saved or restored. Keras calls it."""


class AutoTrackable(Trackable):
    """An object whose attributes a checkpoint saves: variables, other such objects, lists, tuples and dicts of them."""

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, value)
        waiting: Waiting | None = self.__dict__.get(WAITING)
        if waiting is not None:
            waiting.attribute_set(name, value)

    def _trackable_children(self, save_type: str = "checkpoint", **kwargs: Any) -> dict[str, Any]:
        """The attributes that hold state, by name. TensorFlow's protocol, which Keras extends."""
        return {name: value for name, value in self.__dict__.items() if name != WAITING and holds_state(value)}


def is_state(value: Any) -> bool:
    """Whether a checkpoint saves the value of this object itself: a variable."""
    return hasattr(type(value), "_serialize_to_tensors")


def is_trackable(value: Any) -> bool:
    """Whether a checkpoint can walk to this object: a variable, an object with tracked attributes, a container."""
    return is_state(value) or hasattr(type(value), "_trackable_children") or isinstance(value, list | tuple | Mapping)


def holds_state(value: Any) -> bool:
    """Whether the object is trackable; a container must have something trackable in it."""
    if isinstance(value, Mapping):
        return any(holds_state(item) for item in value.values())
    if isinstance(value, list | tuple):
        return any(holds_state(item) for item in value)
    return is_trackable(value)


def children(value: Any) -> dict[str, Any]:
    """The trackable objects directly below an object, by the name of the attribute, the key or the position."""
    if is_state(value):
        return {}
    if isinstance(value, Mapping):
        return {str(key): item for key, item in value.items() if holds_state(item)}
    if isinstance(value, list | tuple):
        return {str(position): item for position, item in enumerate(value) if holds_state(item)}
    below: dict[str, Any] = value._trackable_children()
    return below
