"""On which device a new session computes: pure functions of what is known of the devices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from teletape_engine.arrays.cpu import DeviceFacts
from teletape_server.problems import Problem


def is_of(device: str, wanted: str) -> bool:
    """Returns whether a device is what a request names: gpu is any GPU, auto any device."""
    return device == wanted or wanted == "auto" or (wanted == "gpu" and device.startswith("gpu"))


def placed(wanted: str, all_facts: Sequence[DeviceFacts], sessions: Mapping[str, int]) -> str:
    """Returns the device that a new session gets: of several GPUs the one with the fewest sessions.

    Args:
        wanted: cpu, gpu:N, gpu (any), or auto: a GPU if there is one, else the CPU.
        all_facts: What is known of the machine's devices.
        sessions: How many sessions each device has.

    Raises:
        Problem: unknown_device: it is not there, or cannot be used.
    """
    usable = [facts.device for facts in all_facts if not facts.unusable]
    candidates = [device for device in usable if device != "cpu" and is_of(device, wanted)]
    if candidates:
        return min(candidates, key=lambda device: sessions.get(device, 0))
    if wanted in ("auto", "cpu"):
        return "cpu"
    why = next((f". GPUs: {facts.unusable}" for facts in all_facts if facts.unusable), "")
    text = f"this server has no device {wanted!r}: it has {', '.join(usable)}{why}"
    raise Problem("unknown_device", text, devices=usable)
