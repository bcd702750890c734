"""Who calls a face, the questions to published functions that a call becomes, and their answers as arrays."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias, TypeVar

import numpy as np
from fastapi import Request

from teletape_server.identity.principals import Principal
from teletape_server.models.published.contract import Name, Published
from teletape_server.published.calls import Call
from teletape_server.routes.published.access import find, visible
from teletape_server.routes.published.questions import answer_to
from teletape_server.tensor_files.metadata import ANSWER, REQUEST
from teletape_wire.safetensors.layout import SAFETENSORS_TYPE
from teletape_wire.safetensors.reader import TensorFile, read_file
from teletape_wire.safetensors.writer import write_file

Array: TypeAlias = np.ndarray[Any, Any]
T = TypeVar("T")

_INLINE: Final = 64 << 10  # bytes that are read or written on the event loop: a millisecond


class ClientGone(Exception):
    """Raised if the client has gone before its answer."""


@dataclass(frozen=True)
class Caller:
    """Who sent a request to a face.

    Attributes:
        request: The request.
        principal: Who that is.
    """

    request: Request
    principal: Principal

    def names(self) -> list[Name]:
        """Returns the published functions that the caller may see, by name."""
        return visible(self.request, self.principal)

    def find(self, reference: str) -> tuple[Name, Published]:
        """Returns what `name`, `name@version` or `name@alias` names.

        Raises:
            Problem: unknown_id.
        """
        return find(self.request, self.principal, reference)

    async def ask(
        self, function: tuple[Name, Published], question: str, inputs: Mapping[str, Array], **fields: Any
    ) -> Answer:
        """Asks a question to a published function.

        Args:
            function: The name and the version.
            question: One of `models.published.questions.QUESTIONS`.
            inputs: Arrays of the declared dtypes.
            **fields: Of the question's body; arrays may be in lists.

        Raises:
            Problem: It is refused.
            ClientGone: The client has gone.
        """
        name, published = function
        size = sum(array.nbytes for array in inputs.values())
        content = await off_loop(size, _body, {"inputs": dict(inputs), **fields})
        reply = asyncio.get_running_loop().create_future()
        params = {"full": True, "accept": SAFETENSORS_TYPE}
        call = Call(
            self.principal.owner, name.name, published, question, params, SAFETENSORS_TYPE, content, None, reply
        )
        call.account = self.principal.account
        part = await answer_to(self.request, call)
        if part is None:
            raise ClientGone
        return Answer(read_file(memoryview(part.body), copy_below=0))


@dataclass(frozen=True)
class Answer:
    """The answer to a question.

    Attributes:
        file: It.
    """

    file: TensorFile

    @property
    def size(self) -> int:
        """The bytes of its arrays."""
        return sum(array.nbytes for array in self.file.tensors.values())

    @property
    def values(self) -> dict[str, Array]:
        """The outputs that were fetched."""
        return {name: self._array(value) for name, value in self._json["values"].items()}

    @property
    def derivatives(self) -> list[Array]:
        """The derivatives, in the order of the sources, or of the targets in forward mode; dense."""
        return [self._array(entry["value"]) for entry in self._json["derivatives"]]

    @property
    def batch(self) -> Mapping[str, Any]:
        """How it was computed: `size`, `why`, `waited_us`."""
        return dict(self._json["batch"])

    @property
    def _json(self) -> dict[str, Any]:
        return dict(json.loads(self.file.metadata[ANSWER]))

    def _array(self, value: Mapping[str, Any]) -> Array:
        if "tensor" in value:
            return self.file.tensors[value["tensor"]]
        values, indices = self._array(value["values"]), self._array(value["indices"])
        dense = np.zeros(value["shape"], values.dtype)
        np.add.at(dense, indices, values)
        return dense


def _body(fields: Mapping[str, Any]) -> bytes:
    """Returns a question's body as a safetensors file."""
    tensors: dict[str, Array] = {}

    def referring(value: Any) -> Any:
        if isinstance(value, np.ndarray):
            name = str(len(tensors))
            tensors[name] = np.ascontiguousarray(value).reshape(value.shape)
            return {"tensor": name}
        if isinstance(value, Mapping):
            return {name: referring(member) for name, member in value.items()}
        if isinstance(value, list | tuple):
            return [referring(member) for member in value]
        return value

    request = json.dumps(referring(fields))
    return b"".join(write_file(tensors, {REQUEST: request}))


async def off_loop(size: int, work: Callable[..., T], *args: Any) -> T:
    """Returns what some work returns; in a thread if it reads or writes many bytes."""
    return await asyncio.to_thread(work, *args) if size > _INLINE else work(*args)
