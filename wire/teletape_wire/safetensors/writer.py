"""Writes tensors in the safetensors format, as a list of buffers: a tensor's bytes are not joined or copied here."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from teletape_wire.safetensors.errors import NotInSafetensorsError
from teletape_wire.safetensors.layout import LENGTH_WIDTH, METADATA, NAME_OF
from teletape_wire.tensors import Array, Buffer, raw

_ALIGNMENT: Final = 64  # of the first tensor in the body


def write_file(tensors: Mapping[str, Array], metadata: Mapping[str, str]) -> list[Buffer]:
    """Returns the body with these tensors and texts.

    Tensors with large elements come first, so that each lies at a multiple of its element's size.

    Raises:
        NotInSafetensorsError: The format has no name for a tensor's dtype.
    """
    header: dict[str, Any] = {METADATA: dict(metadata)} if metadata else {}
    buffers: list[Buffer] = []
    position = 0
    for name, array in sorted(tensors.items(), key=lambda item: -item[1].dtype.itemsize):
        dtype = NAME_OF.get(array.dtype.newbyteorder("="))
        if dtype is None:
            raise NotInSafetensorsError(f"{name!r:.100} is {array.dtype.name}, which safetensors has no name for")
        view = raw(array)
        end = position + view.nbytes
        header[name] = {"dtype": dtype, "shape": list(array.shape), "data_offsets": [position, end]}
        if view.nbytes:
            buffers.append(view)
        position = end
    text = json.dumps(header, allow_nan=False, ensure_ascii=False, separators=(",", ":")).encode()
    text += b" " * (-(LENGTH_WIDTH + len(text)) % _ALIGNMENT)
    return [len(text).to_bytes(LENGTH_WIDTH, "little") + text, *buffers]
