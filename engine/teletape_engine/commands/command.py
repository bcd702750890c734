"""What every command is, and what its fields hold."""

from __future__ import annotations

from typing import Any, ClassVar, TypeAlias

import numpy as np

from teletape_engine.recording.values import Literal

Id: TypeAlias = int | str
FunctionId: TypeAlias = Id  #: A program of the session, also among the steps of another program.
Tensor: TypeAlias = np.ndarray[Any, Any]
Input: TypeAlias = Id | Literal | Tensor


class Command:
    """Base of all commands.

    `verb` is the name on the wire. `structural` commands happen even after a failure, so that both sides agree on what
    is open; all others are skipped from the failing one on. `step`: it may stand in a program, where ids of values are
    names inside the program.
    """

    __slots__ = ()
    verb: ClassVar[str]
    structural: ClassVar[bool] = False
    step: ClassVar[bool] = False


Step: TypeAlias = Command  #: One whose class says `step`.
