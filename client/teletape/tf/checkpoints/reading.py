"""Reading a checkpoint without the objects that it was saved from."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from teletape.core import errors
from teletape.core.tensors import dtypes
from teletape.core.tensors.dtypes import DType
from teletape.tf.checkpoints import files, state_file


class CheckpointReader:
    """The values of a checkpoint by name, such as `net/w/.ATTRIBUTES/VARIABLE_VALUE`."""

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix
        self._graph = files.read_index(prefix)
        self._values = files.read_values(prefix, self._graph)

    def has_tensor(self, name: str) -> bool:
        """Whether there is a value of this name."""
        return name in self._values

    def get_tensor(self, name: str) -> Any:
        """The value: a new NumPy array, a NumPy scalar for rank 0.

        Raises:
            NotFoundError: There is no value of this name.
        """
        if name not in self._values:
            raise errors.NotFoundError(f"Key {name} not found in checkpoint {self._prefix}")
        return np.array(self._values[name])[()]

    def get_variable_to_shape_map(self) -> dict[str, list[int]]:
        """The shapes by name."""
        return dict(self._graph.shapes)

    def get_variable_to_dtype_map(self) -> dict[str, DType]:
        """The dtypes by name."""
        return {name: dtypes.as_dtype(dtype) for name, dtype in self._graph.dtypes.items()}


def load_checkpoint(ckpt_dir_or_file: Any) -> CheckpointReader:
    """Returns a reader of a checkpoint, or of a folder's latest one.

    Raises:
        ValueError: The folder has no checkpoint.
        NotFoundError: There is no such checkpoint.
    """
    path = os.fspath(ckpt_dir_or_file)
    if os.path.isdir(path):
        latest = state_file.latest(path)
        if latest is None:
            raise ValueError(f"Couldn't find 'checkpoint' file or checkpoints in given directory {path}")
        path = latest
    return CheckpointReader(path)


def load_variable(ckpt_dir_or_file: Any, name: str) -> Any:
    """Returns a value of a checkpoint; see `CheckpointReader.get_tensor`."""
    return load_checkpoint(ckpt_dir_or_file).get_tensor(name.removesuffix(":0"))


def list_variables(ckpt_dir_or_file: Any) -> list[tuple[str, list[int]]]:
    """Returns the names and shapes of a checkpoint's values, by name."""
    return sorted(load_checkpoint(ckpt_dir_or_file).get_variable_to_shape_map().items())


def checkpoints_iterator(
    checkpoint_dir: Any,
    min_interval_secs: float = 0,
    timeout: float | None = None,
    timeout_fn: Callable[[], bool] | None = None,
) -> Iterator[str]:
    """Yields each new latest checkpoint of a folder, and waits for the next.

    Args:
        checkpoint_dir: The folder.
        min_interval_secs: The smallest time between two checkpoints, in seconds.
        timeout: Seconds to wait for a checkpoint; None: without end.
        timeout_fn: Called after that time; if it returns True, the iterator ends. Without it, it ends too.
    """
    path: str | None = None
    while True:
        new = _wait_for_new(os.fspath(checkpoint_dir), path, timeout)
        if new is None:
            if timeout_fn is None or timeout_fn():
                return
            continue
        started, path = time.monotonic(), new
        yield new
        time.sleep(max(0.0, started + min_interval_secs - time.monotonic()))


def _wait_for_new(folder: str, path: str | None, timeout: float | None) -> str | None:
    end = None if timeout is None else time.monotonic() + timeout
    while (latest := state_file.latest(folder)) is None or latest == path:
        if end is not None and time.monotonic() >= end:
            return None
        time.sleep(min(1.0, max(0.01, (timeout or 10.0) / 10)))
    return latest
