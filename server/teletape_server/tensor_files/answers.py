"""An answer as a safetensors body: its arrays become named tensors, the rest of its JSON the metadata's `answer`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from teletape_server.tensor_files.metadata import ANSWER
from teletape_wire.safetensors.errors import NotInSafetensorsError
from teletape_wire.safetensors.writer import write_file
from teletape_wire.tensors import NAMES, Array, Buffer


class NamedTensor(NamedTuple):
    """An array in an answer whose name in the file is not its place in the JSON.

    Attributes:
        name: Its name.
        array: Its elements.
    """

    name: str
    array: Array


def answer_file(value: Any) -> list[Buffer]:
    """Returns an answer as a safetensors body.

    A tensor's name is its place in the JSON, with `/` between the parts: `values/loss`, `derivatives/w`. The member
    `value` is left out, and a derivative in a list is named by its source or output. In the JSON {dtype, shape, tensor}
    refers to it.

    Args:
        value: JSON-able data, with arrays in the places of tensors.

    Raises:
        NotInSafetensorsError: The format has no name for a tensor's dtype.
    """
    tensors: dict[str, Array] = {}
    body = _referring(value, (), tensors)
    answer = json.dumps(body, allow_nan=False, ensure_ascii=False, separators=(",", ":"))
    try:
        return write_file(tensors, {ANSWER: answer})
    except NotInSafetensorsError as error:
        raise NotInSafetensorsError(
            f"{error.message}: ask for JSON (Accept: application/json), or cast it; what the request changed stays"
        ) from None


def _referring(value: Any, path: tuple[str, ...], tensors: dict[str, Array]) -> Any:
    """Returns the value with references to its arrays, which are added to `tensors`."""
    if isinstance(value, np.ndarray):
        return _reference(value, "/".join(path), tensors)
    if isinstance(value, NamedTensor):
        return _reference(value.array, value.name, tensors)
    if isinstance(value, Mapping):
        return {
            key: _referring(member, path if key == "value" else (*path, str(key)), tensors)
            for key, member in value.items()
        }
    if isinstance(value, list | tuple):
        return [_referring(member, (*path, *_label(member, number)), tensors) for number, member in enumerate(value)]
    return value


def _label(member: Any, number: int) -> tuple[str, ...]:
    """Returns what a member of a list is called in the names of its tensors."""
    if isinstance(member, list):  # a row of a Hessian: its blocks have both sources
        return ()
    if isinstance(member, Mapping):
        if "source" in member:
            return tuple([str(member[key]) for key in ("source", "second_source") if key in member])
        if "name" in member:
            return (str(member["name"]),)
    return (str(number),)


def _reference(array: Array, name: str, tensors: dict[str, Array]) -> dict[str, Any]:
    unique, number = name, 1
    while unique in tensors:  # a source that occurs twice
        number += 1
        unique = f"{name}#{number}"
    tensors[unique] = array
    return {"dtype": NAMES[array.dtype], "shape": list(array.shape), "tensor": unique}
