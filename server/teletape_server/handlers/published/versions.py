"""The published functions that a process has loaded: each version has a session of its own, with its weights.

A file of weights comes as a descriptor, and is mapped: all processes that have it share its memory.
"""

from __future__ import annotations

import mmap
import os
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final
from weakref import WeakKeyDictionary

import numpy as np

import teletape_wire as wire
from teletape_engine.commands import Batch, Command, Constant
from teletape_engine.errors import InternalError, InvalidArgumentError, ResourceExhaustedError
from teletape_engine.recording.values import Literal, typed_array
from teletape_engine.session.session import Session
from teletape_engine.spec import DIFFERENTIABLE, dtype_of
from teletape_server.handlers.bodies import InvalidRequestError
from teletape_server.handlers.functions.bound_calls import check_names, in_order
from teletape_server.handlers.published.known_files import KnownFiles
from teletape_server.handlers.published.planned import PlannedForms
from teletape_server.models.published.contract import Declared, Published, ShapeFault, bind
from teletape_wire.safetensors.reader import read_file

_MOST: Final = 64  #: Versions that a process has loaded; the one whose last call is oldest is dropped.
#: The id of a version's function. It takes its declared inputs first, and then its weights.
FUNCTION: Final = "published"
#: What comes before the name of a weight in its id.
WEIGHT: Final = "weight/"

#: Mapped files that a method of this process has not taken yet, by name.
_FILES: Final[dict[str, mmap.mmap]] = {}


def keep_file(name: str, files: Sequence[int]) -> None:
    """Maps a file that the server has sent, for the method that takes it by this name; closes its descriptor.

    Without one, since this process has too many open files, or none that can be mapped, that method says so.
    """
    for file in files:
        with suppress(OSError, ValueError):
            _FILES[name] = mmap.mmap(file, 0, prot=mmap.PROT_READ)
        os.close(file)


def taken_file(name: str) -> memoryview:
    """Returns a mapped file; it stays mapped as long as an array refers to it.

    Raises:
        ResourceExhaustedError: It has not come, or could not be mapped.
    """
    mapped = _FILES.pop(name, None)
    if mapped is None:
        raise ResourceExhaustedError("the weights could not be mapped: too many open files, or too little memory")
    return memoryview(mapped)


@dataclass(frozen=True)
class Version:
    """A version that is loaded.

    Attributes:
        published: Its contract.
        session: Which has its function and weights, and nothing else that lasts.
        files: The headers of calls that are known.
        planned: The functions for calls of forms that came before.
    """

    published: Published
    session: Session
    files: KnownFiles = field(default_factory=KnownFiles)
    planned: PlannedForms = field(default_factory=PlannedForms)

    @classmethod
    def loaded(cls, process: Session, published: Published, weights: Mapping[str, np.ndarray[Any, Any]]) -> Version:
        """Returns a version in a new session.

        Raises:
            TeletapeError: Its function or weights are not accepted.
        """
        session = process.like()
        definitions = wire.batch_from_json({"commands": [*published.commands]}).commands
        run(session, [*definitions, *[Constant(WEIGHT + name, array) for name, array in weights.items()]])
        return cls(published, session)

    def call_inputs(
        self, inputs: Sequence[Any] | Mapping[str, Any], axes: Mapping[str, int] | None = None
    ) -> list[np.ndarray[Any, Any]]:
        """Returns the inputs that a caller gives, in their order and as arrays of the declared dtypes and shapes.

        Args:
            inputs: As the caller gives them.
            axes: Of a map by names of inputs: the axis that each has in addition, for its entries.

        Raises:
            InvalidRequestError: One is missing or unknown, or of another dtype or shape.
        """
        declared = self.published.inputs
        values = in_order(FUNCTION, {"inputs": list(declared)}, inputs)
        return declared_arrays(declared, values, axes)

    def source_names(self, sources: Sequence[str] | None) -> Sequence[str]:
        """Returns what a question differentiates by; None: all declared inputs of floats.

        Raises:
            InvalidRequestError: One is neither an input nor a weight.
        """
        published = self.published
        names = [*published.inputs, *published.weights]
        if sources is not None:
            check_names(FUNCTION, names, sources, "sources")
            return sources
        floats = [name for name, item in published.inputs.items() if is_float(item)]
        return floats or list(published.inputs)


def is_float(declared: Declared) -> bool:
    """Returns whether a derivative by a tensor exists."""
    return dtype_of(declared.dtype) in DIFFERENTIABLE


def declared_arrays(
    declared: Mapping[str, Declared], values: Sequence[Any], mapped: Mapping[str, int] | None = None
) -> list[np.ndarray[Any, Any]]:
    """Returns values as arrays of the declared dtypes; see `Version.call_inputs`."""
    axes: dict[str, int] = {}
    arrays = []
    for (name, item), value in zip(declared.items(), values, strict=True):
        dtype = dtype_of(item.dtype)
        array = typed_array(value, dtype) if isinstance(value, Literal) else value
        if array.dtype != dtype:
            raise InvalidRequestError(
                f"inputs.{name}: it is {item}; found {array.dtype.name}: send that dtype, or numbers without one"
            )
        try:
            bind(axes, f"inputs.{name}", item, _entry_shape(array.shape, (mapped or {}).get(name)))
        except ShapeFault as fault:
            raise InvalidRequestError(str(fault)) from None
        arrays.append(array)
    return arrays


def run(session: Session, commands: Sequence[Command]) -> None:
    """Runs commands that are the server's own.

    Raises:
        InvalidArgumentError: One of them fails.
    """
    failure = session.execute(Batch(tuple(commands))).failure
    if failure is not None:
        raise InvalidArgumentError(failure.message, **failure.details)


class Versions:
    """The versions that a process has loaded."""

    def __init__(self) -> None:
        self._versions: OrderedDict[str, Version] = OrderedDict()

    def get(self, name: str) -> Version:
        """Returns a version.

        Raises:
            InternalError: It is not loaded.
        """
        version = self._versions.get(name)
        if version is None:
            raise InternalError(f"the version {name} is not loaded")
        self._versions.move_to_end(name)
        return version

    def __contains__(self, name: str) -> bool:
        return name in self._versions

    def put(self, version: Version) -> list[str]:
        """Notes a version; returns those that are dropped in its place."""
        self._versions[version.published.version] = version
        dropped = []
        while len(self._versions) > _MOST:
            dropped.append(self._versions.popitem(last=False)[0])
        return dropped


_VERSIONS: Final[WeakKeyDictionary[Session, Versions]] = WeakKeyDictionary()


def versions_of(process: Session) -> Versions:
    """Returns the versions that the process of a session has loaded; they end with that session."""
    return _VERSIONS.setdefault(process, Versions())


def read_weights(content: memoryview) -> dict[str, np.ndarray[Any, Any]]:
    """Returns the tensors of a file of weights, as views of it."""
    return read_file(content, copy_below=0).tensors


def _entry_shape(shape: tuple[int, ...], axis: int | None) -> tuple[int, ...]:
    """Returns the shape of an entry along an axis, of the whole if there is no such axis."""
    if axis is None or not -len(shape) <= axis < len(shape):
        return shape
    return tuple([length for at, length in enumerate(shape) if at != axis % len(shape)])
