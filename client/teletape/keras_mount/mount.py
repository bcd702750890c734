"""Imports Keras with Teletape in place of TensorFlow; raises an error that explains why it cannot work."""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Sequence
from importlib import metadata
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Final

from teletape.core import environment
from teletape.keras_mount import imports
from teletape.names.missing import answer_for_keras
from teletape_engine.locks import ReentrantLock

#: The first version of Keras that is supported, and the first that is not.
SUPPORTED: Final = ((3, 14), (3, 17))
REQUIREMENT: Final = "keras>=3.14,<3.17"
#: Keras as TensorFlow publishes it.
PUBLIC: Final = "keras._tf_keras.keras"

_lock: Final = ReentrantLock()


def installed() -> bool:
    """Whether Keras is installed; Keras is not imported."""
    return "keras" in sys.modules or PathFinder.find_spec("keras") is not None


def missing(name: str) -> ModuleNotFoundError:
    """Returns the error for a name that needs Keras."""
    return ModuleNotFoundError(f"{name} needs Keras: pip install 'teletape[keras]'", name="keras")


def mounted(submodule: str = "") -> ModuleType:
    """Returns `tf.keras`, or a submodule of it such as "layers"; imports Keras at the first call.

    Raises:
        ModuleNotFoundError: Keras is not installed, or has no such submodule.
        ImportError: Another version of Keras, or Keras was imported before with another backend.
    """
    with _lock:
        if "keras" in sys.modules:
            _check_backend()
        elif not installed():
            raise missing(f"tf.keras.{submodule}".rstrip("."))
        else:
            _import_keras()
    module = importlib.import_module(PUBLIC)
    answer_for_keras(module)
    path = PUBLIC
    for part in submodule.split(".") if submodule else ():
        inner, path = getattr(module, part, None), f"{path}.{part}"
        module = inner if isinstance(inner, ModuleType) else importlib.import_module(path)
    return module


def spec_of_keras(path: Sequence[str] | None) -> ModuleSpec | None:
    """Returns the spec of Keras for `import keras`; None if this version of Keras is not supported."""
    if not installed() or not _supported(metadata.version("keras")):
        return None
    return imports.install().find_spec("keras", path)


def _supported(version: str) -> bool:
    numbers = tuple(int(number) for number in re.findall(r"\d+", version)[:2])
    return SUPPORTED[0] <= numbers < SUPPORTED[1]


def _check_backend() -> None:
    """Raises ImportError if Keras was imported without Teletape."""
    if imports.is_private(sys.modules["keras"]):
        return
    config = sys.modules.get("keras.src.backend.config")
    backend = "another backend" if config is None else f"the {config.backend()} backend"
    if "tensorflow" in sys.modules:
        backend += " of the tensorflow package"
    raise ImportError(
        f"tf.keras is Keras on Teletape, but this program has imported Keras with {backend} before, and a process can "
        "have one Keras only: use tf.keras (or `import teletape.keras`) before `import keras` and before `import "
        "tensorflow`",
        name="keras",
    )


def _import_keras() -> None:
    version = metadata.version("keras")
    if not _supported(version):
        raise ImportError(
            f"tf.keras works with {REQUIREMENT}, and keras {version} is installed: pip install 'teletape[keras]'",
            name="keras",
        )
    imports.install()
    try:
        with environment.keras_backend_set("tensorflow"):  # read once, while Keras is imported
            importlib.import_module(PUBLIC)
    except BaseException:
        for name in [name for name in sys.modules if name == "keras" or name.startswith("keras.")]:
            del sys.modules[name]  # so that the next attempt starts again
        raise
