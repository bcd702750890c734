"""Arguments of the functions of a distributed dataset, and classes for values of several replicas."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Final


@dataclass(frozen=True, eq=False)
class InputContext:
    """The argument of a function that makes a dataset for replicas.

    Args:
        num_input_pipelines: The number of datasets.
        input_pipeline_id: The index of this dataset.
        num_replicas_in_sync: The number of replicas that share a step.
    """

    num_input_pipelines: int = 1
    input_pipeline_id: int = 0
    num_replicas_in_sync: int = 1

    def get_per_replica_batch_size(self, global_batch_size: int) -> int:
        """Returns the part of a batch that one replica gets.

        Raises:
            ValueError: The batch cannot be divided evenly.
        """
        if global_batch_size % self.num_replicas_in_sync:
            raise ValueError(
                f"The `global_batch_size` {global_batch_size!r} is not divisible by `num_replicas_in_sync` "
                f"{self.num_replicas_in_sync!r} "
            )
        return global_batch_size // self.num_replicas_in_sync


@dataclass(frozen=True, eq=False)
class ValueContext:
    """The argument of a function that makes the value of a replica.

    Args:
        replica_id_in_sync_group: The index of the replica.
        num_replicas_in_sync: The number of replicas in total.
    """

    replica_id_in_sync_group: int = 0
    num_replicas_in_sync: int = 1


class _OfSeveralReplicas:
    """A class without instances: a strategy of one replica returns the dataset or the value itself."""

    instead: ClassVar[str] = "a strategy has one replica here and returns the value itself"

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise NotImplementedError(f"tf.distribute.{type(self).__name__} has no instances: {self.instead}")


class DistributedValues(_OfSeveralReplicas):
    """The values of several replicas; nothing is an instance of it."""


_DATASETS: Final = "a strategy has one replica here and returns the dataset itself"


class DistributedDataset(_OfSeveralReplicas):
    """A dataset divided over several replicas; nothing is an instance of it."""

    instead = _DATASETS


class DistributedIterator(_OfSeveralReplicas):
    """An iterator over a DistributedDataset; nothing is an instance of it."""

    instead = _DATASETS
