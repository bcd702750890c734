"""Enumerations and options for the combination of several replicas' values; here there is one replica."""

from __future__ import annotations

import enum
from typing import Any, NamedTuple


class ReduceOp(enum.Enum):
    """Ways to combine values: the sum, or the mean."""

    SUM = "SUM"
    MEAN = "MEAN"

    @classmethod
    def of(cls, name: Any) -> ReduceOp:
        """Returns the op of a name in upper or lower case, or the op itself.

        Raises:
            ValueError: No such op.
        """
        return name if isinstance(name, cls) else cls(str(name).upper())


class VariableAggregation(enum.Enum):
    """Ways to combine the updates of a variable by several replicas."""

    NONE = 0
    SUM = 1
    MEAN = 2
    ONLY_FIRST_REPLICA = 3


class VariableSynchronization(enum.Enum):
    """Times at which the copies of a variable on several replicas are combined."""

    AUTO = 0
    NONE = 1
    ON_WRITE = 2
    ON_READ = 3


class CommunicationImplementation(enum.Enum):
    """Ways in which hosts exchange values."""

    AUTO = "AUTO"
    RING = "RING"
    NCCL = "NCCL"


class InputReplicationMode(enum.Enum):
    """Whether each worker or each replica has a dataset of its own."""

    PER_WORKER = "PER_WORKER"
    PER_REPLICA = "PER_REPLICA"


class CommunicationOptions:
    """Options of the exchange between hosts; without effect.

    Args:
        bytes_per_pack: The bytes that are sent at once; 0: chosen by the library.
        timeout_seconds: The time limit of an exchange, in seconds.
        implementation: The way in which values are exchanged.

    Raises:
        ValueError: A negative size.
    """

    def __init__(
        self,
        bytes_per_pack: int = 0,
        timeout_seconds: float | None = None,
        implementation: CommunicationImplementation = CommunicationImplementation.AUTO,
    ) -> None:
        if bytes_per_pack < 0:
            raise ValueError(f"Argument `bytes_per_pack` must be >=0, Received {bytes_per_pack}.")
        self.bytes_per_pack, self.timeout_seconds, self.implementation = bytes_per_pack, timeout_seconds, implementation


class CollectiveHints(CommunicationOptions):
    """The older name of CommunicationOptions."""

    def __init__(self, bytes_per_pack: int = 0, timeout_seconds: float | None = None) -> None:
        super().__init__(bytes_per_pack, timeout_seconds)


class InputOptions(NamedTuple):
    """Options of a distributed dataset; without effect."""

    experimental_fetch_to_device: bool | None = None
    experimental_replication_mode: InputReplicationMode = InputReplicationMode.PER_WORKER
    experimental_place_dataset_on_device: bool = False
    experimental_per_replica_buffer_size: int = 1


class RunOptions(NamedTuple):
    """Options of `Strategy.run`; without effect."""

    experimental_enable_dynamic_batch_size: bool = True
    experimental_bucketizing_dynamic_shape: Any = None
    experimental_xla_options: Any = None


class CrossDeviceOps:
    """A way to combine values of several devices; without effect, because there is one device."""


class ReductionToOneDevice(CrossDeviceOps):
    """Combines values on one device.

    Args:
        reduce_to_device: The device.
        accumulation_fn: Adds the values.
    """

    def __init__(self, reduce_to_device: str | None = None, accumulation_fn: Any = None) -> None:
        self.reduce_to_device, self.accumulation_fn = reduce_to_device, accumulation_fn


class _Packed(CrossDeviceOps):
    def __init__(self, num_packs: int = 1) -> None:
        if num_packs < 0:
            raise ValueError(f"{type(self).__name__} requires num_packs >= 0, but {num_packs} is specified")
        self.num_packs = num_packs


class HierarchicalCopyAllReduce(_Packed):
    """Combines values in packs along a hierarchy of devices."""


class NcclAllReduce(_Packed):
    """Combines values in packs by NVIDIA's library."""
