"""The state of a session while a batch is priced: hollow arrays, and what the true session has besides."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from teletape_engine.pricing.executor import PricingExecutor
from teletape_engine.pricing.hollow import Hollows, Ledger
from teletape_engine.recording.values import SpecArray, Value, spec_array
from teletape_engine.session.state import State


class PricingState(State):
    """As a `State`, with hollow arrays.

    Args:
        memory_limit: Bytes that the arrays may take; None for no limit.
        max_iterations: Iterations that the loops of one command may run; None for no limit.
        clock: Returns seconds, or None.

    Attributes:
        ledger: Counts what the batch would take.
        others: Bytes that the true session has besides what is copied: records of what ran, answers that it keeps.
        dispensable: Those of them that a session gives up before it refuses anything.
        fetched: Bytes of the tensors that are fetched.
    """

    def __init__(
        self, memory_limit: int | None, max_iterations: int | None, clock: Callable[[], float] | None = None
    ) -> None:
        self.ledger = Ledger()
        self.others = self.dispensable = self.fetched = 0
        super().__init__("cpu", memory_limit=memory_limit, max_iterations=max_iterations, clock=clock)

    def backend_of(self, device: str) -> Any:
        """That of hollow arrays."""
        return Hollows()

    def executor(self) -> PricingExecutor:
        """A context that has no id."""
        context = PricingExecutor(self.ledger, self.backend, self.memory, self.monitor)
        context.provenance.value_reads = self.value_reads
        return context

    def host(self, value: Value) -> SpecArray:
        """The value's numbers, none of which are known."""
        return spec_array(value.spec.shape, value.spec.dtype)

    def bytes_in_use(self) -> int:
        """As in the true session."""
        return super().bytes_in_use() + self.others

    def _array_bytes(self) -> int:
        return super()._array_bytes() + self.others

    def _forget(self, nbytes: float) -> bool:
        if super()._forget(nbytes):
            return True
        if self.dispensable < nbytes:
            return False
        self.others, self.dispensable = self.others - self.dispensable, 0
        return True
