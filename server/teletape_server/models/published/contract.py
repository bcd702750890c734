"""The contract of a published function: its inputs, outputs and weights, and what was checked when it was published.

A record of it is data: what a store keeps, what travels to another server, and what a face in another protocol needs.
A name has versions; a version is named by a hash of what it computes, so it never changes.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal, TypeAlias

#: The length of an axis: a number, the name of an axis whose length the caller chooses, or None: known with the values.
Axis: TypeAlias = int | str | None
Visibility: TypeAlias = Literal["me", "group", "everybody"]

AXIS_PATTERN: Final = r"^[A-Za-z_][A-Za-z0-9_]{0,63}$"
#: The alias that each new version gets, and that a name without a version means.
LATEST: Final = "latest"
#: The member of the metadata of a version's file with its contract.
RECORD: Final = "published"
_PIECE: Final = 16 << 20  # bytes that are hashed at once
#: What may follow the @ of a name: an alias, or a version.
_REFERENCE: Final = re.compile(r"([^@]+)(?:@([^@]+))?")
_DIGITS: Final = 16  # of a version


def hash_of(content: memoryview) -> str:
    """Returns the hash of a file of weights."""
    hasher = hashlib.blake2b(digest_size=16)
    for position in range(0, len(content), _PIECE):
        hasher.update(content[position : position + _PIECE])
    return hasher.hexdigest()


@dataclass(frozen=True)
class Declared:
    """The declaration of an input, an output or a weight.

    Attributes:
        dtype: Its name.
        shape: The length of each axis.
    """

    dtype: str
    shape: tuple[Axis, ...]

    def lengths(self, axes: Mapping[str, int]) -> list[int | None]:
        """Returns the length of each axis, as far as those of named axes are known."""
        return [axes.get(axis) if isinstance(axis, str) else axis for axis in self.shape]

    def to_json(self) -> dict[str, Any]:
        """Returns it as JSON-able data."""
        return {"dtype": self.dtype, "shape": list(self.shape)}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Declared:
        """Reads what `to_json` has written."""
        return cls(value["dtype"], tuple(value["shape"]))

    def __str__(self) -> str:
        return f"{self.dtype}[{', '.join('?' if axis is None else str(axis) for axis in self.shape)}]"


class ShapeFault(ValueError):
    """Raised for a shape that is not the declared one; the message says what was declared and found."""


def bind(axes: dict[str, int], name: str, declared: Declared, shape: tuple[int, ...]) -> None:
    """Checks the shape of an input, and notes the lengths of its named axes.

    Args:
        axes: The lengths of the named axes that other inputs have given; those of this one are added.
        name: Of the input.
        declared: What it declares.
        shape: The caller's.

    Raises:
        ShapeFault: It is another one, or an axis has another length in another input.
    """
    if len(shape) != len(declared.shape):
        raise ShapeFault(f"{name} is {declared}; found the shape {list(shape)}")
    for axis, length in zip(declared.shape, shape, strict=True):
        if isinstance(axis, str):
            if axes.setdefault(axis, length) != length:
                raise ShapeFault(
                    f"{name} is {declared}; found the shape {list(shape)}, and {axis} is {axes[axis]} in another input"
                )
        elif axis is not None and axis != length:
            raise ShapeFault(f"{name} is {declared}; found the shape {list(shape)}")


@dataclass(frozen=True)
class Published:
    """One version of a published function.

    Attributes:
        version: A hash of the rest of what it computes: function, inputs, weights.
        commands: The commands that define it and the functions that it calls, in JSON; the last one is it itself.
        inputs: What a caller gives, in the function's order.
        outputs: What it returns, in the function's order.
        weights: Further inputs of the function, which a caller need not give.
        weights_hash: Of the file with the weights; empty: it has none.
        weights_bytes: Of that file.
        created: When it was published, in Unix seconds.
        examples: Inputs and their outputs, as JSON; they were checked when it was published.
        check: The report of a check of its gradients at the first example; None: it has none.
        rows: Why calls of it are not computed together; empty: they are.
    """

    version: str
    commands: tuple[Mapping[str, Any], ...]
    inputs: Mapping[str, Declared]
    outputs: Mapping[str, Declared]
    weights: Mapping[str, Declared] = field(default_factory=dict)
    weights_hash: str = ""
    weights_bytes: int = 0
    created: float = 0.0
    examples: tuple[Mapping[str, Any], ...] = ()
    check: Mapping[str, Any] | None = None
    rows: str = ""

    @property
    def function(self) -> str:
        """The id that its last command gives it."""
        return str(self.commands[-1]["id"])

    @property
    def identity(self) -> str:
        """The version that follows from what it computes."""
        content = [list(self.commands), _to_json(self.inputs), self.weights_hash]
        text = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        return hashlib.blake2b(text.encode(), digest_size=_DIGITS // 2).hexdigest()

    def to_json(self) -> dict[str, Any]:
        """Returns it as JSON-able data."""
        return {
            "version": self.version,
            "commands": list(self.commands),
            "inputs": _to_json(self.inputs),
            "outputs": _to_json(self.outputs),
            "weights": _to_json(self.weights),
            "weights_hash": self.weights_hash,
            "weights_bytes": self.weights_bytes,
            "created": self.created,
            "examples": list(self.examples),
            "check": self.check,
            "rows": self.rows,
        }

    @classmethod
    def from_json(cls, value: Any) -> Published:
        """Reads what `to_json` has written.

        Raises:
            ValueError: It is no such record, or its content is not that of its version.
        """
        try:
            members = {
                **value,
                "commands": tuple(value["commands"]),
                "examples": tuple(value["examples"]),
                **{name: _from_json(value[name]) for name in ("inputs", "outputs", "weights")},
            }
            record = cls(**members)
            identity = record.identity
        except (KeyError, TypeError, AttributeError, IndexError) as error:
            raise ValueError(f"it is no record of a published function ({type(error).__name__}: {error})") from None
        if record.version != identity:
            raise ValueError(f"its content is of the version {identity}, and it says {record.version}: it was changed")
        return record


def _to_json(declared: Mapping[str, Declared]) -> list[dict[str, Any]]:
    """The order counts, and the members of a JSON object have none."""
    return [{"name": name, **item.to_json()} for name, item in declared.items()]


def _from_json(value: Iterable[Mapping[str, Any]]) -> dict[str, Declared]:
    return {item["name"]: Declared.from_json(item) for item in value}


@dataclass(frozen=True)
class Name:
    """A name, whose it is, and its versions.

    Attributes:
        name: The name.
        owner: The name of the API key that has published it first; only that key changes it.
        visibility: Who may see and call it: its owner, also the keys in `group`, or everybody with a key.
        group: Names of API keys.
        description: For people.
        versions: By version, the oldest first.
        aliases: Names of versions.
        damage: What could not be read of it; empty: nothing.
    """

    name: str
    owner: str
    visibility: Visibility = "me"
    group: tuple[str, ...] = ()
    description: str = ""
    versions: Mapping[str, Published] = field(default_factory=dict)
    aliases: Mapping[str, str] = field(default_factory=dict)
    damage: str = ""

    def is_visible(self, owner: str) -> bool:
        """Returns whether the owner of a key may see and call it."""
        is_in_group = self.visibility == "group" and owner in self.group
        return owner == self.owner or self.visibility == "everybody" or is_in_group

    def version(self, reference: str) -> Published | None:
        """Returns the version that an alias or a version names; None: there is none."""
        return self.versions.get(self.aliases.get(reference, reference))

    def with_version(self, published: Published) -> Name:
        """Returns it with a further version, which is the latest one."""
        versions = {name: item for name, item in self.versions.items() if name != published.version}
        return replace(
            self,
            versions={**versions, published.version: self.versions.get(published.version, published)},
            aliases={**self.aliases, LATEST: published.version},
        )

    def without_version(self, version: str) -> Name:
        """Returns it without a version and its aliases; the latest is the newest of the others."""
        versions = {name: item for name, item in self.versions.items() if name != version}
        aliases = {alias: name for alias, name in self.aliases.items() if name != version}
        if versions:
            aliases.setdefault(LATEST, list(versions)[-1])
        return replace(self, versions=versions, aliases=aliases)

    def facts(self) -> dict[str, Any]:
        """Returns what a store keeps of it in addition to its versions, as JSON-able data."""
        return {
            "name": self.name,
            "owner": self.owner,
            "visibility": self.visibility,
            "group": list(self.group),
            "description": self.description,
            "versions": list(self.versions),
            "aliases": dict(self.aliases),
        }


def split_reference(text: str) -> tuple[str, str]:
    """Returns the name and the version or alias of a text `name` or `name@version`."""
    match = _REFERENCE.fullmatch(text)
    return (text, LATEST) if match is None else (match[1], match[2] or LATEST)
