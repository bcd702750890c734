"""Descriptions of protobuf messages in Python, so that no compiler of protocol buffers is needed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from teletape.tf.files.extra import needed

_PACKAGE: Final = "tensorflow"
_UNPACKED: Final = frozenset(("TYPE_BYTES", "TYPE_MESSAGE", "TYPE_STRING"))


class Description:
    """A file of messages in TensorFlow's package, in the syntax proto3, and the classes made of it.

    Args:
        name: The name of the file.
        purpose: The function that needs the messages, for the error.

    Raises:
        ModuleNotFoundError: protobuf is not installed.
    """

    def __init__(self, name: str, purpose: str) -> None:
        needed("google.protobuf", purpose)
        from google.protobuf import descriptor_pb2

        self._kinds: Any = descriptor_pb2.FieldDescriptorProto
        self._file = descriptor_pb2.FileDescriptorProto(
            name=f"teletape/{name}.proto", package=_PACKAGE, syntax="proto3"
        )

    def message(self, name: str) -> Any:
        """Adds a message."""
        return self._file.message_type.add(name=name)

    def enum(self, name: str, numbers: dict[str, int]) -> None:
        """Adds an enumeration; the first number is zero."""
        added = self._file.enum_type.add(name=name)
        for label, number in numbers.items():
            added.value.add(name=label, number=number)

    def field(self, parent: Any, name: str, number: int, kind: str, *, of: str = "", repeated: bool = False) -> Any:
        """Adds a field to a message; `of` is the message or enumeration of its values."""
        label = self._kinds.LABEL_REPEATED if repeated else self._kinds.LABEL_OPTIONAL
        added = parent.field.add(name=name, number=number, type=getattr(self._kinds, kind), label=label)
        if of:
            added.type_name = f".{_PACKAGE}.{of}"
        if repeated and kind not in _UNPACKED:
            added.options.packed = True
        return added

    def classes(self, names: Iterable[str]) -> dict[str, Any]:
        """Returns the classes of messages by their names."""
        from google.protobuf import descriptor_pool, message_factory

        pool = descriptor_pool.DescriptorPool()
        pool.Add(self._file)
        return {
            name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{_PACKAGE}.{name}")) for name in names
        }
