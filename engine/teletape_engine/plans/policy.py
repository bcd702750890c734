"""Whether functions of this process run as plans: the mode that TELETAPE_PLANS names, which the engine does not read.

on      from the second call with the same specs (the default)
off     never
python  as `on`, without compiled code
force   from the first call; the results of every new plan are compared with the interpreter's, and memory that nothing
        reads any more is filled with bytes that are no number
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Final

MODES: Final = ("on", "off", "python", "force")


@dataclass(slots=True)
class Policy:
    """When plans are built, and how they run.

    Attributes:
        enabled: Whether there are plans.
        compiled: Whether compiled code may walk them.
        first: The call of a function, counted from 1, at which its plan is built.
        compared: Whether the results of a new plan are compared with the interpreter's, and freed memory is filled.
        threads: The most threads of a plan's tiles if NumPy has another BLAS than OpenBLAS, which says its own number;
            None: one for each core.
    """

    enabled: bool
    compiled: bool = True
    first: int = 2
    compared: bool = False
    threads: int | None = None

    @classmethod
    def of(cls, mode: str) -> Policy:
        """The policy of a mode.

        Raises:
            ValueError: There is no such mode.
        """
        if mode not in MODES:
            raise ValueError(f"TELETAPE_PLANS is {mode!r}: it must be one of {', '.join(MODES)}")
        if mode == "force":
            return cls(True, first=1, compared=True)
        return cls(mode != "off", compiled=mode != "python")

    def use(self, mode: str | None, threads: int | None) -> None:
        """Makes this the policy of a mode, and of a number of threads as in `threads`; None: that of `on`.

        Raises:
            ValueError: There is no such mode.
        """
        for name, setting in asdict(Policy.of(mode or "on")).items():
            setattr(self, name, setting)
        self.threads = threads


POLICY: Final = Policy.of("on")
