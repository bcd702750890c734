"""A version as one file, which another server takes: safetensors with its weights, and its contract in the metadata."""

from __future__ import annotations

import json
import os
from typing import Final, NamedTuple

from teletape_server.models.published.contract import RECORD, Published
from teletape_server.published.store import Catalogue
from teletape_wire.safetensors.layout import LENGTH_WIDTH, METADATA

_ALIGNMENT: Final = 64  # of the first tensor in the file


class Export(NamedTuple):
    """The file of a version.

    Attributes:
        head: Its beginning.
        file: A descriptor of the file that has the rest, to be closed; None: there is no rest.
        offset, length: Where the rest is in that file.
    """

    head: bytes
    file: int | None
    offset: int
    length: int


def export(catalogue: Catalogue, published: Published) -> Export:
    """Returns the file of a version.

    Raises:
        OSError: The weights are not there.
    """
    header, file, offset = {}, None, 0
    if published.weights_hash:
        file = catalogue.open_weights(published.weights_hash)
        width = int.from_bytes(os.pread(file, LENGTH_WIDTH, 0), "little")
        header = json.loads(os.pread(file, width, LENGTH_WIDTH))
        offset = LENGTH_WIDTH + width
    record = json.dumps(published.to_json(), ensure_ascii=False, separators=(",", ":"))
    text = json.dumps({METADATA: {RECORD: record}, **header}, ensure_ascii=False, separators=(",", ":")).encode()
    text += b" " * (-(LENGTH_WIDTH + len(text)) % _ALIGNMENT)
    head = len(text).to_bytes(LENGTH_WIDTH, "little") + text
    return Export(head, file, offset, published.weights_bytes - offset)
