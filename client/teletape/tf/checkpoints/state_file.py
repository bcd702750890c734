"""The file `checkpoint` of a folder, which names its checkpoints: the text that TensorFlow writes."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from typing import Final, NamedTuple

from teletape.tf.checkpoints import files

NAME: Final = "checkpoint"
_LINE: Final = re.compile(r'^(\w+): (?:"((?:[^"\\]|\\.)*)"|(\S+))$')


class CheckpointState(NamedTuple):
    """The content of a folder's file `checkpoint`: paths as in TensorFlow, absolute if the folder's path is."""

    model_checkpoint_path: str
    all_model_checkpoint_paths: list[str]
    all_model_checkpoint_timestamps: list[float]
    last_preserved_timestamp: float


def write(
    folder: str,
    latest_path: str,
    paths: Sequence[str],
    timestamps: Sequence[float] = (),
    last_preserved: float = 0.0,
    name: str | None = None,
) -> None:
    """Writes the paths of the latest checkpoint and of all that are kept; paths in the folder become relative to it."""

    def quoted(path: str) -> str:
        relative = os.path.relpath(path, folder or ".") if os.path.dirname(path) == folder else path
        return '"' + relative.replace("\\", "\\\\").replace('"', '\\"') + '"'

    lines = [f"model_checkpoint_path: {quoted(latest_path)}"]
    lines += [f"all_model_checkpoint_paths: {quoted(path)}" for path in paths]
    lines += [f"all_model_checkpoint_timestamps: {timestamp!r}" for timestamp in timestamps]
    if last_preserved:
        lines.append(f"last_preserved_timestamp: {last_preserved!r}")
    files.write_text(os.path.join(folder, name or NAME), "\n".join(lines) + "\n")


def read(checkpoint_dir: str, latest_filename: str | None = None) -> CheckpointState | None:
    """`tf.train.get_checkpoint_state`: returns the content of the folder's file; None if there is none."""
    try:
        with open(os.path.join(checkpoint_dir, latest_filename or NAME), encoding="utf-8") as file:
            lines = file.read().splitlines()
    except (FileNotFoundError, NotADirectoryError):
        return None
    values: dict[str, list[str]] = {}
    for line in lines:
        if match := _LINE.match(line.strip()):
            field, text, number = match.groups()
            values.setdefault(field, []).append(number or re.sub(r"\\(.)", r"\1", text))
    latest_path = values.get("model_checkpoint_path")
    if not latest_path:
        return None

    def absolute(path: str) -> str:
        return path if os.path.isabs(path) else os.path.join(checkpoint_dir, path)

    return CheckpointState(
        absolute(latest_path[-1]),
        [absolute(path) for path in values.get("all_model_checkpoint_paths", [])],
        [float(text) for text in values.get("all_model_checkpoint_timestamps", [])],
        float(values.get("last_preserved_timestamp", ["0"])[-1]),
    )


def latest(checkpoint_dir: str, latest_filename: str | None = None) -> str | None:
    """`tf.train.latest_checkpoint`: returns the path of the folder's latest checkpoint; None if there is none."""
    state = read(checkpoint_dir, latest_filename)
    return state.model_checkpoint_path if state and files.exists(state.model_checkpoint_path) else None
