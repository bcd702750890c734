"""`tf.device`, accepted and checked as in TensorFlow, and the list of devices.

The device of a session is chosen when the session is made (tf.connect).
"""

from __future__ import annotations

import re
from types import TracebackType
from typing import Final, NamedTuple

_KEYS: Final = ("job", "replica", "task", "device")
_TYPES: Final = ("CPU", "GPU", "TPU", "XLA_CPU", "XLA_GPU")


class device:
    """A context manager that names a device for tensors; without effect.

    Args:
        device_name: "/GPU:0", "CPU", "/job:localhost/replica:0/task:0/device:CPU:0" …; None or "": any.

    Raises:
        RuntimeError: A function.
        ValueError: At entering: it is no device name.
    """

    def __init__(self, device_name: str | None) -> None:
        if callable(device_name):
            raise RuntimeError("tf.device does not support functions.")
        self._name = device_name

    def __enter__(self) -> None:
        if self._name:
            _check(self._name)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Does nothing."""


def _check(name: str) -> None:
    if not isinstance(name, str):
        raise ValueError(f"Expecting a string device name. Got {type(name)}({name})")
    for part in filter(None, name.split("/")):
        key, *values = part.split(":")
        index: str | None
        if key == "job" and len(values) == 2 and values[1].isdecimal():  # a server's address
            index = None
        elif key in _KEYS and len(values) == (2 if key == "device" else 1):
            index = values[-1] if key != "job" else None
        elif key.upper() in _TYPES and len(values) <= 1:
            index = values[0] if values else None
        else:
            raise ValueError(f"Unknown attribute '{key}' is encountered while parsing the device spec: '{name}'.")
        if index is not None and index != "*" and not re.fullmatch(r"\d+", index):
            raise ValueError(f"invalid literal for int() with base 10: '{index}'")


class PhysicalDevice(NamedTuple):
    """A device of this program's, by TensorFlow's name for it."""

    name: str
    device_type: str


class LogicalDevice(NamedTuple):
    """A device that ops are placed on, by TensorFlow's name for it."""

    name: str
    device_type: str


def list_physical_devices(device_type: str | None = None) -> list[PhysicalDevice]:
    """Returns the CPU: a program sees one device, wherever its session computes."""
    return [] if device_type not in (None, "CPU") else [PhysicalDevice("/physical_device:CPU:0", "CPU")]


def list_logical_devices(device_type: str | None = None) -> list[LogicalDevice]:
    """Returns the CPU: a program sees one device, wherever its session computes."""
    return [] if device_type not in (None, "CPU") else [LogicalDevice("/device:CPU:0", "CPU")]
