"""`tf.keras`: the real Keras 3 on Teletape. This module replaces itself with Keras's own when it is first imported.

Its submodules, such as `teletape.keras.layers`, are Keras's too: the same objects under both names.
"""

import sys
from typing import Any, NoReturn

from teletape.keras_mount import mount

if mount.installed():
    sys.modules[__name__] = mount.mounted()


def __getattr__(name: str) -> NoReturn:
    """Raises: a name of Keras needs Keras.

    Raises:
        ModuleNotFoundError: Always, except for names that only Python looks up.
    """
    if name.startswith("__"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    raise mount.missing(f"tf.keras.{name}")


def __dir__() -> list[Any]:
    return []
