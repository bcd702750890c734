"""The files of a checkpoint: `PREFIX.index`, JSON with the graph of objects, and `PREFIX.safetensors` with the values.

Any program that reads safetensors can read the values, by TensorFlow's names. The index maps objects to these names,
and has the dtypes that safetensors has no name for: complex128 is stored as pairs of float64.
"""

from __future__ import annotations

import json
import mmap
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np

from teletape.core import errors
from teletape_engine.arrays import HostArray
from teletape_wire.safetensors.errors import MalformedSafetensorsError, NotInSafetensorsError
from teletape_wire.safetensors.reader import read_file
from teletape_wire.safetensors.writer import write_file

FORMAT: Final = "teletape-checkpoint"
VERSION: Final = 1
INDEX: Final = ".index"
VALUES: Final = ".safetensors"
_PAIRS: Final = {"complex128": "float64"}


class SavedNode(NamedTuple):
    """An object as saved.

    Attributes:
        edges: The index of the child node, by the attribute's name.
        keys: The names of its values, by component; a variable has one, VARIABLE_VALUE.
    """

    edges: dict[str, int]
    keys: dict[str, str]


class SavedGraph(NamedTuple):
    """The content of an index: the nodes, the root first, and the shape and dtype of each value."""

    nodes: list[SavedNode]
    dtypes: dict[str, str]
    shapes: dict[str, list[int]]


def write(prefix: str, nodes: list[SavedNode], values: Mapping[str, HostArray]) -> None:
    """Writes both files; a reader sees either the old checkpoint of that name or the whole new one.

    Raises:
        NotInSafetensorsError: A value of strings.
    """
    stored = {}
    for key, array in values.items():
        if array.dtype.kind in "SUOT":
            raise NotInSafetensorsError(f"{key} holds strings: a checkpoint saves numbers and booleans")
        pairs = _PAIRS.get(array.dtype.name)
        stored[key] = np.array(array, order="C")[..., None].view(pairs) if pairs else array
    index = {
        "format": FORMAT,
        "version": VERSION,
        "nodes": [{"edges": node.edges, "keys": node.keys} for node in nodes],
        "values": {key: {"dtype": array.dtype.name, "shape": list(array.shape)} for key, array in values.items()},
    }
    Path(prefix).parent.mkdir(parents=True, exist_ok=True)
    _replace(prefix + VALUES, write_file(stored, {"format": FORMAT}))
    _replace(prefix + INDEX, [json.dumps(index).encode()])


def write_text(path: str, text: str) -> None:
    """Writes a whole file; if that fails, the old one stays."""
    _replace(path, [text.encode()])


def _replace(path: str, parts: list[Any]) -> None:
    folder, name = os.path.split(path)
    descriptor, temporary = tempfile.mkstemp(prefix=f".{name}.", dir=folder or ".")
    try:
        with os.fdopen(descriptor, "wb") as file:
            for part in parts:
                file.write(part)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, 0o666 & ~_umask())
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def exists(prefix: str) -> bool:
    """Whether there is a checkpoint of that name."""
    return os.path.exists(prefix + INDEX)


def delete(prefix: str) -> None:
    """Removes those of a checkpoint's files that exist."""
    for suffix in (INDEX, VALUES):
        Path(prefix + suffix).unlink(missing_ok=True)


def read_index(prefix: str) -> SavedGraph:
    """Reads the index.

    Raises:
        NotFoundError: There is no such checkpoint.
        DataLossError: The file is no index of a checkpoint.
    """
    path = prefix + INDEX
    try:
        content = Path(path).read_bytes()
    except FileNotFoundError:
        raise errors.NotFoundError(
            f"Error when restoring from checkpoint at {prefix}: there is no file {path}. Please double-check that the "
            "path is correct. You may be missing the checkpoint suffix (e.g. the '-1' in 'path/to/ckpt-1')."
        ) from None
    try:
        index = json.loads(content)
        if index["format"] != FORMAT or index["version"] != VERSION:
            raise ValueError(f"it is a {index['format']} of version {index['version']}")
        nodes = [SavedNode(node["edges"], node["keys"]) for node in index["nodes"]]
        values = index["values"]
    except (ValueError, KeyError, TypeError) as error:
        bundle = os.path.exists(prefix + ".data-00000-of-00001")
        advice = (
            "it is one of TensorFlow's own: save the weights there with model.save_weights('x.weights.h5') or numpy, "
            "and load these"
            if bundle
            else f"this program writes {FORMAT} of version {VERSION} ({type(error).__name__}: {error})"
        )
        raise errors.DataLossError(f"{path} is not the index of a checkpoint: {advice}") from None
    dtypes = {key: facts["dtype"] for key, facts in values.items()}
    return SavedGraph(nodes, dtypes, {key: facts["shape"] for key, facts in values.items()})


def read_values(prefix: str, graph: SavedGraph) -> dict[str, HostArray]:
    """Maps the values into memory, by name; read only.

    Raises:
        DataLossError: The file is missing, or no safetensors, or lacks a value.
    """
    path = prefix + VALUES
    try:
        with open(path, "rb") as file:
            body = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
        tensors = read_file(body, copy_below=4096).tensors
        return {
            key: tensors[key].view(dtype)[..., 0] if dtype in _PAIRS else tensors[key]
            for key, dtype in graph.dtypes.items()
        }
    except FileNotFoundError:
        raise errors.DataLossError(f"{prefix}{INDEX} is there, and {path}, which holds its values, is not") from None
    except (MalformedSafetensorsError, KeyError, ValueError) as error:
        raise errors.DataLossError(f"{path} does not hold the values of {prefix}{INDEX}: {error}") from None
