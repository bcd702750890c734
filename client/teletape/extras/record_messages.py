"""`tf.train.Example` and its parts: protobuf messages, whose classes are made when they are first used.

Source of the fields: tensorflow/core/example/feature.proto and example.proto.
"""

from __future__ import annotations

import functools
from typing import Any, Final

from teletape.tf.files.descriptions import Description

_LISTS: Final = (("BytesList", "bytes_list", "TYPE_BYTES"), ("FloatList", "float_list", "TYPE_FLOAT"))
_INTEGERS: Final = ("Int64List", "int64_list", "TYPE_INT64")


@functools.cache
def classes() -> dict[str, Any]:
    """Returns the classes of the messages, by their names.

    Raises:
        ModuleNotFoundError: protobuf is not installed.
    """
    file = Description("example", "tf.train.Example and TFRecord examples")
    field = file.field
    for name, _, kind in (*_LISTS, _INTEGERS):
        field(file.message(name), "value", 1, kind, repeated=True)
    feature = file.message("Feature")
    feature.oneof_decl.add(name="kind")
    for number, (name, name_of_field, _) in enumerate((*_LISTS, _INTEGERS), 1):
        field(feature, name_of_field, number, "TYPE_MESSAGE", of=name).oneof_index = 0
    for outer, inner, entries in (
        ("Features", "Feature", "feature"),
        ("FeatureLists", "FeatureList", "feature_list"),
    ):
        parent = file.message(outer)
        entry_name = "".join(part.title() for part in entries.split("_")) + "Entry"
        entry = parent.nested_type.add(name=entry_name)
        entry.options.map_entry = True
        field(entry, "key", 1, "TYPE_STRING")
        field(entry, "value", 2, "TYPE_MESSAGE", of=inner)
        field(parent, entries, 1, "TYPE_MESSAGE", of=f"{outer}.{entry_name}", repeated=True)
    field(file.message("FeatureList"), "feature", 1, "TYPE_MESSAGE", of="Feature", repeated=True)
    field(file.message("Example"), "features", 1, "TYPE_MESSAGE", of="Features")
    sequence = file.message("SequenceExample")
    field(sequence, "context", 1, "TYPE_MESSAGE", of="Features")
    field(sequence, "feature_lists", 2, "TYPE_MESSAGE", of="FeatureLists")
    return file.classes(MESSAGES)


class Message:
    """A class of messages, made when it is first used.

    Args:
        name: Its name.
    """

    def __init__(self, name: str) -> None:
        self.__name__ = name

    def __call__(self, **fields: Any) -> Any:
        return classes()[self.__name__](**fields)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(classes()[self.__name__], name)

    def __instancecheck__(self, instance: Any) -> bool:
        return isinstance(instance, classes()[self.__name__])

    def __repr__(self) -> str:
        return f"<class tf.train.{self.__name__}>"


BytesList = Message("BytesList")
Example = Message("Example")
Feature = Message("Feature")
FeatureList = Message("FeatureList")
FeatureLists = Message("FeatureLists")
Features = Message("Features")
FloatList = Message("FloatList")
Int64List = Message("Int64List")
SequenceExample = Message("SequenceExample")

#: The messages of `tf.train`.
MESSAGES: Final = {
    message.__name__: message
    for message in (
        BytesList,
        Example,
        Feature,
        FeatureList,
        FeatureLists,
        Features,
        FloatList,
        Int64List,
        SequenceExample,
    )
}
