"""The notebook that a program runs in, if it does: IPython's shell, and a line in the output of a cell."""

from __future__ import annotations

import html
import importlib
import sys
from contextlib import suppress
from typing import Any


def shell() -> Any:
    """Returns IPython's shell; None: the program does not run in one."""
    return getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()


def is_notebook() -> bool:
    """Whether the program runs in a Jupyter kernel, whose outputs are displayed and not written to a terminal."""
    return getattr(shell(), "kernel", None) is not None


class OutputLine:
    """A line in the output of the running cell. It is rewritten in place, and at last empty."""

    def __init__(self) -> None:
        self._handle: Any = None

    def show(self, text: str) -> None:
        """Shows a text now."""
        self._display({"text/plain": text, "text/html": f"<code>{html.escape(text)}</code>"})

    def draw(self, text: str, share: float | None) -> None:
        """Shows the progress now.

        Args:
            text: A bar in brackets, for a notebook that shows no HTML, and words.
            share: The share that is done, from 0 to 1; None: not known.
        """
        value = "" if share is None else f' value="{share:.4f}" max="1"'
        words = html.escape(text.partition("] ")[2])
        self._display({"text/plain": text, "text/html": f"<progress{value}></progress> <code>{words}</code>"})

    def end(self) -> None:
        """Makes the line empty, if there is one."""
        if self._handle is not None:
            self._display({"text/plain": "", "text/html": ""})

    def _display(self, data: dict[str, str]) -> None:
        with suppress(Exception):  # a notebook that cannot show it stops no computation
            if self._handle is None:
                self._handle = importlib.import_module("IPython.display").display(data, raw=True, display_id=True)
            else:
                self._handle.update(data, raw=True)
