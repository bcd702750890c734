"""`tf.train.Checkpoint`: saves and restores the variables below named objects."""

from __future__ import annotations

import os
from typing import Any, NamedTuple

import numpy as np

from teletape.core.tensors import dtypes
from teletape.core.variables.trackable import AutoTrackable, children, is_trackable
from teletape.core.variables.variable import Variable
from teletape.tf.checkpoints import files, state_file
from teletape.tf.checkpoints.object_graph import VALUE, Node, key_of, states, walk
from teletape.tf.checkpoints.restoring import Restoration
from teletape.tf.checkpoints.status import CheckpointLoadStatus, InitializationOnlyStatus
from teletape_engine.arrays import HostArray

Status = CheckpointLoadStatus | InitializationOnlyStatus


class CheckpointOptions(NamedTuple):
    """Options of saving and restoring. They steer TensorFlow's file systems, and are accepted without effect."""

    experimental_io_device: Any = None
    experimental_enable_async_checkpoint: bool = False
    experimental_write_callbacks: Any = None
    enable_async: bool = False
    experimental_skip_slot_variables: bool = False
    experimental_sharding_callback: Any = None


class Checkpoint(AutoTrackable):
    """A named group of objects: `tf.train.Checkpoint(model=model, optimizer=optimizer, step=step)`.

    Objects are variables, modules, Keras models and optimizers, other checkpoints, iterators of datasets, and lists,
    tuples and dicts of them.
    A restore finds a value by the names of the attributes that lead to it, so another program may restore it. All
    values are read in one request, and restored with the next one.

    Args:
        root: An object whose attributes are saved as if they were arguments.
        **kwargs: The objects by name.

    Raises:
        ValueError: An argument cannot be saved.
    """

    def __init__(self, root: Any = None, **kwargs: Any) -> None:
        self._root = None
        self._save_counter: Variable | None = None
        for name, value in (({} if root is None else {"root": root}) | kwargs).items():
            if not is_trackable(value):
                raise ValueError(
                    f"`Checkpoint` was expecting {name} to be a trackable object (a tf.Variable, a tf.Module, a Keras "
                    f"model, layer or optimizer, a Checkpoint, an iterator of a dataset, or a list or dict "
                    f"of them), got {value!r}."
                )
        self._root = root
        for name, value in kwargs.items():
            setattr(self, name, value)

    def _trackable_children(self, save_type: str = "checkpoint", **kwargs: Any) -> dict[str, Any]:
        below = super()._trackable_children(save_type, **kwargs)
        root, counter = below.pop("_root", None), below.pop("_save_counter", None)
        attached = {} if root is None else children(root)
        return attached | below | ({} if counter is None else {"save_counter": counter})

    @property
    def save_counter(self) -> Variable:
        """The number of calls of `save`: an int64 variable that is saved too."""
        if self._save_counter is None:
            self._save_counter = Variable(0, dtype=dtypes.int64, name="save_counter", trainable=False)
        return self._save_counter

    def save(self, file_prefix: Any, options: CheckpointOptions | None = None) -> str:
        """Writes PREFIX-N, counting N up from 1, and makes it the folder's latest checkpoint.

        Returns:
            The checkpoint's path, PREFIX-N, for `restore`.
        """
        self.save_counter.assign_add(1)
        path = self.write(f"{os.fspath(file_prefix)}-{int(self.save_counter)}", options)
        state_file.write(os.path.dirname(path), path, [path])
        return path

    def write(self, file_prefix: Any, options: CheckpointOptions | None = None) -> str:
        """Writes a checkpoint with exactly this path, without a number; see `save`."""
        prefix: str = os.fspath(file_prefix)
        nodes = walk(self)
        values = _values(states(nodes))
        saved = [
            files.SavedNode(node.edges, {VALUE: key_of(node.path)} if key_of(node.path) in values else {})
            for node in nodes
        ]
        files.write(prefix, saved, values)
        return prefix

    def restore(self, save_path: Any, options: CheckpointOptions | None = None) -> Status:
        """Restores the values of a checkpoint that `save` wrote.

        Objects that do not exist yet, such as the weights of a layer that is not built, get their values when they are
        set as attributes.

        Args:
            save_path: The result of `save` or `tf.train.latest_checkpoint`; None restores nothing.
            options: Accepted, without effect.

        Returns:
            A status, whose assertions check that checkpoint and program fit.

        Raises:
            NotFoundError: There is no such checkpoint.
            InvalidArgumentError: A value has another dtype than its variable.
            ValueError: A value has another shape than its variable.
        """
        if save_path is None:
            return InitializationOnlyStatus()
        self.save_counter  # noqa: B018  # makes it, so that it can be restored
        return self.read(save_path, options)

    def read(self, save_path: Any, options: CheckpointOptions | None = None) -> Status:
        """Restores the values of a checkpoint that `write` wrote; see `restore`."""
        prefix = os.fspath(save_path)
        if not files.exists(prefix) and files.exists(latest := state_file.latest(prefix) or ""):
            prefix = latest
        return CheckpointLoadStatus(Restoration(prefix, self))


def _values(nodes: list[Node]) -> dict[str, HostArray]:
    """The arrays of all variables and positions, by key: one request for each session."""
    by_session: dict[Any, list[tuple[str, Variable]]] = {}
    arrays: dict[str, HostArray] = {}
    for node in nodes:
        value = node.object._serialize_to_tensors()[VALUE]
        if isinstance(value, np.ndarray):
            arrays[key_of(node.path)] = value
        else:
            by_session.setdefault(value.session, []).append((key_of(node.path), value))
    for session, pairs in by_session.items():
        fetched = session.fetch_all([variable.recorded.value for _, variable in pairs])
        arrays |= dict(zip([key for key, _ in pairs], fetched, strict=True))
    return arrays
