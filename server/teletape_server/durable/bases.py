"""The base of a log: all that a session has, as one safetensors file, from which the log goes on.

Its tensors are the session's buffers by number, small ones joined, the commands that define its functions, clients'
answers, and a tensor of bytes with everything that is no array, and with the places of large buffers (`blobs`).
"""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np

import teletape_wire as wire
from teletape_engine.commands import Batch, DefineFunction
from teletape_engine.commands.results import Answer, Kinds
from teletape_engine.session.snapshot.plain import Snapshot
from teletape_engine.spec import dtype_of
from teletape_server.durable.blobs import LEAST, Blobs
from teletape_server.durable.records import DamagedError, packed, unpacked
from teletape_wire.checksum import crc32
from teletape_wire.safetensors.errors import MalformedSafetensorsError
from teletape_wire.safetensors.layout import NAME_OF
from teletape_wire.safetensors.reader import read_file
from teletape_wire.safetensors.writer import write_file
from teletape_wire.tensors import NAMES, Buffer, raw

_FORMAT: Final = 2
_SMALL: Final = 4096  # bytes of a buffer below which it has no tensor of its own: each takes 50 µs
_MOST: Final = sys.maxsize  # tensors of a file of our own


def written(snapshot: Snapshot, more: Mapping[str, Any], blobs: Blobs | None = None) -> list[Buffer]:
    """Returns the file of a session.

    Args:
        snapshot: What it has.
        more: JSON-able data, in which bytes may be, that is kept with it.
        blobs: Where large buffers are put; None: they stay in the file.

    Raises:
        OSError: A large buffer could not be written.
    """
    tensors: dict[str, Any] = {}
    kinds: list[list[Any]] = []
    small: list[Buffer] = []
    end = 0
    for number, buffer in enumerate(snapshot.buffers):
        kinds.append([NAMES[buffer.dtype], list(buffer.shape)])
        if blobs is not None and buffer.nbytes >= LEAST:
            kinds[-1].append([*blobs.put(raw(buffer))])
        elif buffer.nbytes < _SMALL:
            kinds[-1].append(end)
            small.append(raw(buffer))
            end += buffer.nbytes
        else:
            tensors[f"buffer/{number}"] = buffer if buffer.dtype in NAME_OF else np.frombuffer(raw(buffer), np.uint8)
    for client, answer in snapshot.answers.items():
        tensors[f"answer/{client}"] = _bytes(b"".join(wire.encode_answer(answer).buffers))
    functions = b"".join(wire.encode_batch(Batch(snapshot.functions)).buffers)
    facts = {
        "format": _FORMAT,
        "facts": snapshot.facts,
        "kinds": kinds,
        "why": {client: _reasons(answer) for client, answer in snapshot.answers.items()},
        "more": dict(more),
    }
    tensors["small"] = _bytes(b"".join(small))
    tensors["functions"], tensors["facts"] = _bytes(functions), _bytes(packed(facts))
    return write_file(tensors, {"format": "teletape session"})


def read(data: Buffer, blob: Callable[[Any, memoryview], None] | None = None) -> tuple[Snapshot, dict[str, Any]]:
    """Returns what the file of a session has, and what was kept with it. Arrays are the caller's own.

    Args:
        data: The file.
        blob: Reads the large buffer at a place, as `Blobs.read_into`; None: there are none.

    Raises:
        DamagedError: It is no such file, or a large buffer is not as it was written.
    """
    try:
        tensors = read_file(memoryview(data), copy_below=0, most=_MOST).tensors
        facts = unpacked(bytes(tensors["facts"]))
        functions = wire.decode_batch(bytes(tensors["functions"])).commands
    except (MalformedSafetensorsError, KeyError, wire.WireError) as error:
        raise DamagedError(f"the base of the log cannot be read ({error})") from None
    if facts["format"] != _FORMAT:
        raise DamagedError(f"the base of the log is of format {facts['format']}, this version reads {_FORMAT}")
    buffers = []
    for number, (dtype, shape, *where) in enumerate(facts["kinds"]):
        buffer = np.empty(shape, dtype_of(dtype))
        elements = buffer.reshape(-1).view(np.uint8)
        if not where:
            elements[:] = tensors[f"buffer/{number}"].reshape(-1).view(np.uint8)
        elif where[0].__class__ is int:
            elements[:] = tensors["small"][where[0] : where[0] + buffer.nbytes]
        elif blob is None:
            raise DamagedError("the base refers to large tensors, and there is no file of them")
        else:
            blob(where[0], elements.data)
        buffers.append(buffer)
    answers = {
        client: _with_reasons(wire.decode_answer(bytes(tensors[f"answer/{client}"]))[0], why)
        for client, why in facts["why"].items()
    }
    defined = tuple([command for command in functions if isinstance(command, DefineFunction)])
    return Snapshot(tuple(buffers), defined, answers, facts["facts"]), facts["more"]


def checksum(buffers: Sequence[Buffer]) -> int:
    """Returns the CRC32 of a file's parts."""
    value = 0
    for buffer in buffers:
        value = crc32(buffer, value)
    return value


def _bytes(data: bytes) -> np.ndarray[Any, Any]:
    return np.frombuffer(data, np.uint8)


def _reasons(answer: Answer) -> list[list[Any]]:
    """What of an answer a frame has not: why derivatives are none."""
    return [
        [at, list(result.why)] for at, result in enumerate(answer.results) if isinstance(result, Kinds) and result.why
    ]


def _with_reasons(answer: Answer, reasons: list[list[Any]]) -> Answer:
    results = list(answer.results)
    for at, why in reasons:
        results[at] = dataclasses.replace(results[at], why=tuple(why))
    return dataclasses.replace(answer, results=tuple(results))
