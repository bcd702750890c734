"""`tf.saved_model`: refuses to write and to read TensorFlow's graphs, and names the alternative."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Final, NoReturn

from teletape.core.errors import UnimplementedError
from teletape.core.program.remedies import remedy

_FILES: Final = ("saved_model.pb", "saved_model.pbtxt")  #: TensorFlow's folders have one of these files.


def contains_saved_model(export_dir: str | os.PathLike[str]) -> bool:
    """Whether TensorFlow has saved a model in a folder.

    Example:
        tf.saved_model.contains_saved_model("/tmp/exported")
    """
    return any((Path(export_dir) / name).exists() for name in _FILES)


def save(obj: Any, export_dir: str | os.PathLike[str], signatures: Any = None, options: Any = None) -> NoReturn:
    """Refuses: functions here are no graphs that TensorFlow could load.

    Raises:
        UnimplementedError: Always; it says what to use instead.
    """
    if any(base.__module__.startswith("keras.") for base in type(obj).__mro__):
        instead = f"model.save({f'{os.fspath(export_dir)}.keras'!r}), and tf.keras.models.load_model of that file"
    else:
        instead = str(remedy("saved_model"))
    raise UnimplementedError(_text("save", f"a {type(obj).__name__} into {os.fspath(export_dir)!r}", instead))


def load(export_dir: str | os.PathLike[str], tags: Any = None, options: Any = None) -> NoReturn:
    """Refuses: TensorFlow saves graphs of its own ops.

    Raises:
        UnimplementedError: Always; it says what to use instead.
    """
    instead = (
        "make the model in Python and restore its weights with tf.train.Checkpoint, or tf.keras.models.load_model of a "
        ".keras file, which a program with TensorFlow writes"
    )
    raise UnimplementedError(_text("load", f"{os.fspath(export_dir)!r}", instead))


def _text(name: str, subject: str, instead: str) -> str:
    return f"tf.saved_model.{name} of {subject} is not in Teletape: there are no graphs. Instead: {instead}"
