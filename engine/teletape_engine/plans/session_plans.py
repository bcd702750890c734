"""The plans of a session: the least used are forgotten once all of them take too many bytes."""

from __future__ import annotations

import weakref
from typing import Any, Final, Protocol

from teletape_engine import object_bytes
from teletape_engine.locks import ReentrantLock
from teletape_engine.recording.memory import Memory

MOST_BYTES: Final = 1 << 28  #: Of the plans of a session, with the arenas that wait for the next calls.


class RememberedPlan(Protocol):
    """A plan of a function or of a loop.

    Attributes:
        instructions: In order.
        used: A uid of its last run: the higher, the later.
    """

    instructions: list[Any]
    used: int

    @property
    def nbytes(self) -> int:
        """Bytes of the arenas that wait for the next runs."""

    def release(self) -> None:
        """Ends them."""


class Holder(Protocol):
    """The plans of one function."""

    def forget_plan(self, plan: Any) -> None:
        """Ends one of them."""


class SessionPlans:
    """The plans of the functions of one session."""

    def __init__(self) -> None:
        self._holders: weakref.WeakKeyDictionary[Any, weakref.ref[Holder]] = weakref.WeakKeyDictionary()
        self._lock = ReentrantLock()
        self._bound = 0  # bytes of all at most: to count them exactly visits every plan

    @classmethod
    def of(cls, memory: Memory) -> SessionPlans:
        """Those of the session whose arrays the memory counts."""
        plans: SessionPlans | None = memory.plans
        if plans is None:
            plans = memory.plans = cls()
        return plans

    @property
    def nbytes(self) -> int:
        """Bytes of all: their instructions and arenas."""
        return sum([nbytes_of(plan) for plan in tuple(self._holders)])

    def add(self, plan: RememberedPlan, holder: Holder) -> None:
        """Notes a new plan of a function, and forgets others if they take too much."""
        with self._lock:
            self._holders[plan] = weakref.ref(holder)
            self._bound += nbytes_of(plan)
        self.trim(plan)

    def trim(self, plan: RememberedPlan, more: int = 0) -> None:
        """Forgets plans, the least used first, until they take no more than `MOST_BYTES`.

        Args:
            plan: The one that is used now, and stays.
            more: Bytes of an arena that it is about to have.
        """
        with self._lock:
            self._bound += more
            if self._bound <= MOST_BYTES:
                return
            excess = self.nbytes + more - MOST_BYTES
            for other in sorted(self._holders, key=lambda other: other.used):
                if other is not plan and excess > 0:
                    excess -= nbytes_of(other)
                    holder = self._holders.pop(other)()
                    if holder is not None:
                        holder.forget_plan(other)
                    other.release()
            self._bound = MOST_BYTES + excess


def nbytes_of(plan: RememberedPlan) -> int:
    """Bytes of a plan, with its arenas."""
    return plan.nbytes + object_bytes.INSTRUCTION * len(plan.instructions)
