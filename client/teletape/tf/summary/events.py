"""The package that encodes events for TensorBoard and writes their files: tensorboardX, imported when first used."""

from __future__ import annotations

import importlib
from typing import Any


def module(name: str = "") -> Any:
    """A module of tensorboardX.

    Raises:
        ModuleNotFoundError: It is not installed; the message says how to install it.
    """
    try:
        return importlib.import_module(f"tensorboardX.{name}".rstrip("."))
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            "tf.summary writes its files with tensorboardX: pip install 'teletape[summary]'", name=error.name
        ) from None


def SummaryMetadata(**fields: Any) -> Any:
    """The protocol buffer that names the plugin of a summary: `tf.compat.v1.SummaryMetadata`."""
    return module("proto.summary_pb2").SummaryMetadata(**fields)
