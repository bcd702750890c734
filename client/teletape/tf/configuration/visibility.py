"""`tf.config`: the visible devices and the division of their memory. A program sees one device, its session's.

Programs call these functions for the GPUs that `list_physical_devices` returns, which is the CPU alone.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, NamedTuple

from teletape.tf.configuration.devices import PhysicalDevice, list_logical_devices, list_physical_devices
from teletape_engine.locks import ReentrantLock


class LogicalDeviceConfiguration(NamedTuple):
    """The share of a physical device's memory that a logical device would get, in MiB."""

    memory_limit: int | None = None
    experimental_priority: int | None = None
    experimental_device_ordinal: int | None = None


class _Choices:
    """The program's settings for its devices."""

    def __init__(self) -> None:
        self.visible = set(list_physical_devices())
        self.logical: dict[PhysicalDevice, list[LogicalDeviceConfiguration]] = {}


_lock: Final = ReentrantLock()
_choices: Final = _Choices()


def _checked(device: Any) -> PhysicalDevice:
    if device not in list_physical_devices():
        raise ValueError(f"Unrecognized device: {device!r}")
    return PhysicalDevice(*device)


def get_visible_devices(device_type: str | None = None) -> list[PhysicalDevice]:
    """Returns the devices that the program has not hidden with `set_visible_devices`."""
    return [device for device in list_physical_devices(device_type) if device in _choices.visible]


def set_visible_devices(devices: Any, device_type: str | None = None) -> None:
    """Hides all devices of a type except these from `get_visible_devices`; the session's device does not change.

    Args:
        devices: A physical device or a list of them.
        device_type: "CPU", "GPU" …; None: of all types.

    Raises:
        ValueError: A device that does not exist, or one of another type.
    """
    listed: Iterable[Any] = [devices] if isinstance(devices, PhysicalDevice | str) else devices
    chosen = {_checked(device) for device in listed}
    for device in chosen:
        if device_type is not None and device.device_type != device_type:
            raise ValueError(f"Unrecognized device: {device!r}")
    with _lock:
        others = {device for device in _choices.visible if device_type not in (None, device.device_type)}
        _choices.visible = others | chosen


def get_logical_device_configuration(device: Any) -> list[LogicalDeviceConfiguration] | None:
    """Returns the configurations that were set for a device; None: one logical device with all of its memory."""
    return _choices.logical.get(_checked(device))


def set_logical_device_configuration(device: Any, logical_devices: list[LogicalDeviceConfiguration]) -> None:
    """Accepts the division of a device into one logical device.

    Args:
        device: A physical device.
        logical_devices: At most one configuration: a program has one device.

    Raises:
        ValueError: A device that does not exist, a limit of memory for the CPU, or several logical devices.
    """
    checked = _checked(device)
    if any(configuration.memory_limit is not None for configuration in logical_devices):
        raise ValueError("Setting memory limit on CPU virtual devices is currently not supported")
    if len(logical_devices) > 1:
        raise ValueError(
            f"{len(logical_devices)} logical devices were requested, and a Teletape program has one device, its "
            "session's: pass one tf.config.LogicalDeviceConfiguration()"
        )
    with _lock:
        _choices.logical[checked] = list(logical_devices)


def set_memory_growth(device: Any, enable: bool) -> None:
    """Has no effect: the host of a session decides about its memory, and the devices listed here are no GPUs.

    Raises:
        ValueError: A device that does not exist, or the CPU, as in TensorFlow.
    """
    _checked(device)
    raise ValueError("Cannot set memory growth on non-GPU and non-Pluggable devices")


def get_memory_growth(device: Any) -> bool:
    """Whether the memory of a GPU grows as needed.

    Raises:
        KeyError: The CPU, as in TensorFlow.
        ValueError: A device that does not exist.
    """
    raise KeyError(_checked(device))


def get_device_details(device: Any) -> dict[str, Any]:
    """Returns the details of a physical device; the CPU has none."""
    _checked(device)
    return {}


def _check_name(device: str) -> None:
    names = {logical.name.removeprefix("/device:") for logical in list_logical_devices()}
    if str(device).rpartition("/")[2].removeprefix("device:").upper() not in {*names, "CPU"}:
        raise ValueError(f"No matching devices found for {device!r}")


def get_memory_info(device: str) -> dict[str, int]:
    """Returns the bytes in use and their peak, 0 for the CPU; `tf.session().summary()` has the session's bytes.

    Raises:
        ValueError: A device that does not exist.
    """
    _check_name(device)
    return {"current": 0, "peak": 0}


def get_memory_usage(device: str) -> int:
    """Returns the bytes in use; see `get_memory_info`."""
    return get_memory_info(device)["current"]


def reset_memory_stats(device: str) -> None:
    """Has no effect on the CPU, whose peak is not measured.

    Raises:
        ValueError: A device that does not exist.
    """
    _check_name(device)
