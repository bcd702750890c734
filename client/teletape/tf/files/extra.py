"""The libraries that only some programs need: imported when they are first used."""

from __future__ import annotations

import importlib
from types import ModuleType


def needed(module: str, purpose: str) -> ModuleType:
    """Returns a module of the extra `records`.

    Args:
        module: Its name.
        purpose: The function that needs it, for the error.

    Raises:
        ModuleNotFoundError: It is not installed; the message has the command that installs it.
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            f"{purpose} need {module}: pip install 'teletape[records]'", name=error.name
        ) from None
