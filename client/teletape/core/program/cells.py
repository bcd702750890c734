"""Cells of a notebook: how IPython names the code that a program has in them."""

from __future__ import annotations

import re
from typing import Final

from teletape.core.program.notebook import shell

_NUMBERED: Final = re.compile(r"<ipython-input-(\d+)-")  #: The file of a cell in IPython 7.


def cell_of(file: str) -> str | None:
    """Returns the name of the cell that is compiled as a file, for example "Cell In[2]"; None: it is no cell."""
    notebook = shell()
    if notebook is None:
        return None
    format_name = getattr(notebook.compile, "format_code_name", None)
    if format_name is None:
        number = _NUMBERED.match(file)
        return None if number is None else f"Cell In[{number[1]}]"
    name = format_name(file)
    return None if name is None else " ".join(name)
