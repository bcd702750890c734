"""`python -m teletape publish`: publishes a function of a module, a Keras model, or a formula."""

from __future__ import annotations

import contextlib
import importlib
import re
import sys
from collections.abc import Sequence
from typing import Any, Final
from urllib.parse import quote

from teletape.core.errors import InvalidArgumentError
from teletape.core.functions.tensor_spec import TensorSpec
from teletape.core.network.http import Connection
from teletape.core.network.options import ConnectOptions

#: An input in the terminal, as `x=float32[batch,784]`.
_INPUT: Final = re.compile(r"(?P<name>[A-Za-z][\w.-]*)=(?P<dtype>\w+)\[(?P<shape>[\w, ]*)\]")


def of_module(url: str, api_key: str | None, place: str, name: str, inputs: Sequence[str], **facts: Any) -> str:
    """Publishes `MODULE:NAME`, a function or a Keras model; returns NAME@VERSION.

    Raises:
        InvalidArgumentError: There is no such module or function, or an input cannot be read.
    """
    module, _, attribute = place.partition(":")
    tf = importlib.import_module("teletape")  # as the module sees it
    sys.path.insert(0, "")
    try:
        fn = getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise InvalidArgumentError(
            f"--function {place}: expected MODULE:NAME of a function or a Keras model; {error}"
        ) from None
    specs = [TensorSpec([None if isinstance(n, str) else n for n in shape], dtype) for _, dtype, shape in _read(inputs)]
    with tf.connect(url, api_key=api_key):
        return f"{name}@{tf.publish(fn, name, specs or None, **facts).version}"


def of_text(url: str, api_key: str | None, text: str, name: str, inputs: Sequence[str], **facts: Any) -> str:
    """Publishes a formula; returns NAME@VERSION."""
    declared = {label: {"dtype": dtype, "shape": shape} for label, dtype, shape in _read(inputs)}
    body = {"function": {"text": text}, "inputs": declared, **facts}
    with contextlib.closing(Connection(ConnectOptions.of(url, api_key=api_key))) as connection:
        answer = connection.json("PUT", f"/v1/published/{quote(name, safe='')}", body)
    return f"{name}@{answer['version']['version']}"


def _read(inputs: Sequence[str]) -> list[tuple[str, str, list[int | str]]]:
    """Returns name, dtype and shape of each input.

    Raises:
        InvalidArgumentError: One has another form.
    """
    declared: list[tuple[str, str, list[int | str]]] = []
    for text in inputs:
        match = _INPUT.fullmatch(text)
        if match is None:
            raise InvalidArgumentError(f"--input {text}: expected NAME=DTYPE[LENGTHS], such as x=float32[batch,784]")
        lengths = [length.strip() for length in match["shape"].split(",") if length.strip()]
        declared.append((match["name"], match["dtype"], [int(n) if n.isdigit() else n for n in lengths]))
    return declared
