"""Calls and answers in the safetensors format whose header came before: it says the same again.

The callers of a function mostly run one program, and its bodies differ in their elements alone. What such a header
means is kept with the version; the answers of a stack are written with one header, too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

import numpy as np

import teletape_wire as wire
from teletape_engine.catalogue.attributes import keep
from teletape_engine.spec import BOOL, DType, dtype_of
from teletape_server.handlers.methods import Request, Result
from teletape_server.models.published.contract import Published
from teletape_server.tensor_files.answers import answer_file
from teletape_server.tensor_files.metadata import REQUEST
from teletape_wire.safetensors.layout import LENGTH_WIDTH, SAFETENSORS_TYPE
from teletape_wire.safetensors.reader import header_length, read_header
from teletape_wire.tensors import Buffer, raw

Array: TypeAlias = np.ndarray[Any, Any]
_MOST: Final = 64  #: Headers of a version that are known.
_LARGEST: Final = 4 << 10  #: Bytes of a header that is kept.
_ALIGNMENT: Final = 64  # of the first tensor in an answer
_FIELD: Final = "inputs/"
#: In the place of the microseconds that a call has waited.
WAITED: Final = 1_000_000_000_000_007


@dataclass
class KnownFile:
    """What a header means.

    Attributes:
        fields: The call's body; its inputs are those of the call that came first.
        length: Bytes of the body.
        stack: How such calls are computed together, once that is known.
    """

    fields: Any
    length: int
    stack: Any = None
    _places: Sequence[tuple[int, DType, int, Sequence[int]]] = ()

    def inputs(self, body: memoryview) -> list[Array]:
        """Returns the inputs of a call with this header."""
        arrays = [
            np.frombuffer(body, dtype, count, begin).reshape(shape) for begin, dtype, count, shape in self._places
        ]
        return [array if array.flags.aligned else array.copy() for array in arrays]


@dataclass
class KnownFiles:
    """The headers of calls that are known."""

    _files: dict[Any, KnownFile | None] = field(default_factory=dict)
    _answers: dict[Any, bytes] = field(default_factory=dict)

    def find(self, question: str, request: Request) -> KnownFile | None:
        """Returns what the header of a call means, if it came before."""
        if request.content_type != SAFETENSORS_TYPE or not self._files or len(request.body) < LENGTH_WIDTH:
            return None
        known = self._files.get(_key(question, request))
        return known if known is not None and known.length == len(request.body) else None

    def answer_header(self, key: Any, answer: Callable[[], Mapping[str, Any]]) -> bytes:
        """Returns the header of an answer; see `header_of`.

        Args:
            key: Equal for answers that differ in their elements alone.
            answer: Returns the answer, if none with that key came before.
        """
        header = self._answers.get(key)
        if header is None:
            header = header_of(answer())
            keep(self._answers, key, header, _MOST)
        return header

    def note(self, question: str, request: Request, fields: Any, published: Published) -> None:
        """Notes the header of a call that was read; one is kept if all its tensors are inputs."""
        if request.content_type != SAFETENSORS_TYPE or header_length(request.body) > _LARGEST:
            return
        header = read_header(request.body)
        text = header.metadata.get(REQUEST) or request.params.get(REQUEST)
        names_inputs = text is not None and "inputs" in wire.parse_json(text.encode())
        entries = {entry.name.removeprefix(_FIELD): entry for entry in header.entries}
        dtypes = {name: dtype_of(item.dtype) for name, item in published.inputs.items()}
        fits = entries.keys() == dtypes.keys() and all(entry.dtype == dtypes[name] for name, entry in entries.items())
        if names_inputs or not fits or BOOL in dtypes.values():
            return
        positions = [
            (header.end + entries[name].begin, dtypes[name], int(np.prod(entries[name].shape)), entries[name].shape)
            for name in dtypes
        ]
        keep(self._files, _key(question, request), KnownFile(fields, len(request.body), None, positions), _MOST)


def _key(question: str, request: Request) -> Any:
    end = LENGTH_WIDTH + int.from_bytes(request.body[:LENGTH_WIDTH], "little")
    return question, bytes(request.body[: min(end, _LARGEST)]), request.params.get(REQUEST)


def header_of(answer: Mapping[str, Any]) -> bytes:
    """Returns the header of an answer, without its length: an answer with `WAITED` in the place of its time."""
    return bytes(answer_file(answer)[0])[LENGTH_WIDTH:].rstrip(b" ")


class RowFiles:
    """Writes the answers of a stack: they differ in their elements, and in how long each call has waited.

    Args:
        text: What `header_of` returns for one of them.
        arrays: The tensors of all answers, stacked, in the order in which an answer has them.
    """

    def __init__(self, text: bytes, arrays: Sequence[Array]) -> None:
        self._text = text
        by_size = sorted(arrays, key=lambda item: -item.dtype.itemsize)
        self._rows = [(raw(array), array.nbytes // len(array)) for array in by_size if array.size]

    def result(self, number: int, waited: int) -> Result:
        """Returns the answer to a call."""
        text = self._text.replace(b"%d" % WAITED, b"%d" % waited)
        text += b" " * (-(LENGTH_WIDTH + len(text)) % _ALIGNMENT)
        head = len(text).to_bytes(LENGTH_WIDTH, "little") + text
        buffers: list[Buffer] = [head, *[rows[number * size : (number + 1) * size] for rows, size in self._rows]]
        return Result(SAFETENSORS_TYPE, buffers, sum(map(len, buffers)))
