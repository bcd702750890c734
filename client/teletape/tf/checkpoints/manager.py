"""`tf.train.CheckpointManager`: keeps the last checkpoints of a folder and deletes the others."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any

from teletape.core.variables.variable import Variable
from teletape.tf.checkpoints import files, state_file
from teletape.tf.checkpoints.checkpoint import Checkpoint, CheckpointOptions


class CheckpointManager:
    """Saves one checkpoint after another into a folder.

    Args:
        checkpoint: The checkpoint to save.
        directory: The folder; it is made with the first checkpoint.
        max_to_keep: The number of checkpoints to keep; None: all.
        keep_checkpoint_every_n_hours: Keeps one of the checkpoints to delete every so many hours.
        checkpoint_name: The beginning of the files' names.
        step_counter: A variable that counts steps, for `checkpoint_interval`.
        checkpoint_interval: The least number of steps between two checkpoints.
        init_fn: Called by `restore_or_initialize` if there is no checkpoint.
        last_checkpoint_step: The step of the last checkpoint, for `checkpoint_interval`.

    Raises:
        ValueError: `max_to_keep` is less than 1, or `checkpoint_interval` has no `step_counter`.
    """

    def __init__(
        self,
        checkpoint: Checkpoint,
        directory: Any,
        max_to_keep: int | None,
        keep_checkpoint_every_n_hours: float | None = None,
        checkpoint_name: str = "ckpt",
        step_counter: Variable | None = None,
        checkpoint_interval: int | None = None,
        init_fn: Callable[[], Any] | None = None,
        last_checkpoint_step: int | None = None,
    ) -> None:
        if max_to_keep is not None and max_to_keep <= 0:
            raise ValueError(
                f"Expected a positive integer or `None` for `max_to_keep`, got {max_to_keep}: None keeps all"
            )
        if checkpoint_interval is not None and step_counter is None:
            raise ValueError("`step_counter` should be passed if `checkpoint_interval` is not None.")
        self._checkpoint, self._max_to_keep = checkpoint, max_to_keep
        self._directory: str = os.fspath(directory)
        self._prefix = os.path.join(self._directory, checkpoint_name)
        self._seconds_to_preserve = (
            None if keep_checkpoint_every_n_hours is None else keep_checkpoint_every_n_hours * 3600
        )
        self._step_counter, self._interval, self._init_fn = step_counter, checkpoint_interval, init_fn
        self._last_step = last_checkpoint_step
        state = state_file.read(self._directory)
        now = time.time()
        self._times: dict[str, float] = {}
        self._last_preserved = now
        if state is not None:
            timestamps = state.all_model_checkpoint_timestamps or [now] * len(state.all_model_checkpoint_paths)
            self._times = dict(zip(state.all_model_checkpoint_paths, timestamps, strict=False))
            self._last_preserved = state.last_preserved_timestamp or now

    @property
    def directory(self) -> str:
        """The folder."""
        return self._directory

    @property
    def checkpoint(self) -> Checkpoint:
        """The checkpoint that is saved."""
        return self._checkpoint

    @property
    def checkpoint_interval(self) -> int | None:
        """The least number of steps between two checkpoints."""
        return self._interval

    @property
    def checkpoints(self) -> list[str]:
        """The paths of the checkpoints that are kept and may be deleted, the oldest first."""
        return list(self._times)

    @property
    def latest_checkpoint(self) -> str | None:
        """The path of the latest checkpoint; None if there is none."""
        return next(reversed(self._times), None)

    def save(
        self,
        checkpoint_number: int | Variable | None = None,
        check_interval: bool = True,
        options: CheckpointOptions | None = None,
    ) -> str | None:
        """Saves a checkpoint and deletes those over `max_to_keep`.

        Args:
            checkpoint_number: The number in the path; None: the checkpoint's `save_counter`.
            check_interval: Whether to save only if `checkpoint_interval` steps have passed.
            options: Accepted, without effect.

        Returns:
            The path; None if nothing was saved.
        """
        step = None if self._step_counter is None else int(self._step_counter)
        if (check_interval and self._interval and step is not None and self._last_step is not None) and (
            step - self._last_step < self._interval
        ):
            return None
        self._last_step = step
        self._checkpoint.save_counter.assign_add(1)
        number = int(self._checkpoint.save_counter if checkpoint_number is None else checkpoint_number)
        path = self._checkpoint.write(f"{self._prefix}-{number}", options)
        self._times.pop(path, None)
        self._times[path] = time.time()
        self._sweep()
        state_file.write(self._directory, path, self.checkpoints, list(self._times.values()), self._last_preserved)
        return path

    def _sweep(self) -> None:
        """Deletes the oldest checkpoints, except those to preserve."""
        while self._max_to_keep is not None and len(self._times) > self._max_to_keep:
            path, timestamp = next(iter(self._times.items()))
            del self._times[path]
            if self._seconds_to_preserve is not None and timestamp - self._seconds_to_preserve > self._last_preserved:
                self._last_preserved = timestamp
            else:
                files.delete(path)

    def restore_or_initialize(self) -> str | None:
        """Restores the latest checkpoint; without one calls `init_fn`. Returns the path that was restored, or None."""
        latest = self.latest_checkpoint
        if latest is not None:
            self._checkpoint.restore(latest)
            if self._step_counter is not None:
                self._last_step = int(self._step_counter)
            return latest
        if self._init_fn is not None:
            self._init_fn()
        return None
