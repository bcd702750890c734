"""`tf.config`: settings of the execution of ops. A program can read them back; none changes a result.

An op gives the same numbers on one host whenever it runs, and float32 is computed as float32.
"""

from __future__ import annotations

from typing import Any, Final

from teletape.core.program.logs import log_first_n
from teletape_engine.locks import ReentrantLock

_POLICIES: Final = ("explicit", "silent", "silent_for_int32", "warn")

_lock: Final = ReentrantLock()
_settings: Final[dict[str, Any]] = {
    "inter_op_parallelism_threads": 0,
    "intra_op_parallelism_threads": 0,
    "soft_device_placement": True,
    "log_device_placement": False,
    "synchronous_execution": True,
    "tensor_float_32": True,
    "determinism": False,
    "device_policy": "silent",
    "jit": "",
    "options": {},
}


def _set(name: str, value: Any) -> None:
    with _lock:
        _settings[name] = value


def get_inter_op_parallelism_threads() -> int:
    """Returns the number of ops that may run at once, as the program has set it; 0: not set."""
    return _settings["inter_op_parallelism_threads"]  # type: ignore[no-any-return]  # a number


def set_inter_op_parallelism_threads(num_threads: int) -> None:
    """Stores the setting, without effect: ops of a session run one after the other."""
    _set("inter_op_parallelism_threads", num_threads)


def get_intra_op_parallelism_threads() -> int:
    """Returns the number of threads of an op, as the program has set it; 0: not set."""
    return _settings["intra_op_parallelism_threads"]  # type: ignore[no-any-return]  # a number


def set_intra_op_parallelism_threads(num_threads: int) -> None:
    """Stores the setting, without effect: the host's libraries choose their threads."""
    _set("intra_op_parallelism_threads", num_threads)


def get_soft_device_placement() -> bool:
    """Whether an op may run on another device than the one that `tf.device` names."""
    return bool(_settings["soft_device_placement"])


def set_soft_device_placement(enabled: bool) -> None:
    """Stores the setting, without effect: every op runs where its session computes."""
    _set("soft_device_placement", bool(enabled))


def get_log_device_placement() -> bool:
    """Whether the program has called `set_log_device_placement(True)`."""
    return bool(_settings["log_device_placement"])


def set_log_device_placement(enabled: bool) -> None:
    """Stores the setting. The log names the device once, because all ops run there."""
    _set("log_device_placement", bool(enabled))
    if enabled:
        text = "All ops of a session run on its device: print tf.session()"
        log_first_n(20, text, 1, "log_device_placement")


def get_synchronous_execution() -> bool:
    """Whether the program has left ops synchronous."""
    return bool(_settings["synchronous_execution"])


def set_synchronous_execution(enable: bool) -> None:
    """Stores the setting, without effect: over HTTP ops are sent in batches, and reading a value waits for it."""
    _set("synchronous_execution", bool(enable))


def get_device_policy() -> str:
    """Returns the program's policy for inputs on another device."""
    return str(_settings["device_policy"])


def set_device_policy(device_policy: str | None) -> None:
    """Stores the setting, without effect: a session has one device.

    Raises:
        ValueError: Neither "explicit", "silent", "silent_for_int32", "warn" nor None.
    """
    if device_policy not in (*_POLICIES, None):
        raise ValueError(f"Invalid argument `device_policy`: {device_policy!r}. It is one of {', '.join(_POLICIES)}.")
    _set("device_policy", device_policy or "silent")


def tensor_float_32_execution_enabled() -> bool:
    """Whether the program has left TensorFloat-32 enabled."""
    return bool(_settings["tensor_float_32"])


def enable_tensor_float_32_execution(enabled: bool) -> None:
    """Stores the setting, without effect: the host of a session decides about TensorFloat-32."""
    _set("tensor_float_32", bool(enabled))


def enable_op_determinism() -> None:
    """Has no effect on results: an op gives the same numbers each time it runs on one host."""
    _set("determinism", True)


def is_op_determinism_enabled() -> bool:
    """Whether the program has called `enable_op_determinism`."""
    return bool(_settings["determinism"])


def get_jit() -> str:
    """Returns "autoclustering" if the program has enabled XLA, else ""."""
    return str(_settings["jit"])


def set_jit(enabled: bool | str) -> None:
    """Stores the setting, without effect: the engine plans a traced function, without XLA."""
    _set("jit", "autoclustering" if enabled in (True, "autoclustering") else "")


def get_experimental_options() -> dict[str, Any]:
    """Returns the options of the graph optimizer that the program has set."""
    return {"disable_model_pruning": False, "disable_meta_optimizer": False, **_settings["options"]}


def set_experimental_options(options: dict[str, Any]) -> None:
    """Stores the setting, without effect: there is no graph optimizer."""
    _set("options", {**_settings["options"], **options})


def enable_mlir_bridge() -> None:
    """Has no effect; there is no compiler between a program and its session."""


def disable_mlir_bridge() -> None:
    """Has no effect; see `enable_mlir_bridge`."""
