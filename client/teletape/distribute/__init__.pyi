"""What `tf.distribute` holds. Written by `make reference` from scripts/public_surface.py."""

from teletape.distribute import cluster_resolver as cluster_resolver
from teletape.distribute import experimental as experimental
from teletape.distribution.contexts import get_strategy as get_strategy
from teletape.distribution.contexts import has_strategy as has_strategy
from teletape.distribution.contexts import in_cross_replica_context as in_cross_replica_context
from teletape.distribution.reductions import CrossDeviceOps as CrossDeviceOps
from teletape.distribution.reductions import HierarchicalCopyAllReduce as HierarchicalCopyAllReduce
from teletape.distribution.reductions import InputOptions as InputOptions
from teletape.distribution.reductions import InputReplicationMode as InputReplicationMode
from teletape.distribution.reductions import NcclAllReduce as NcclAllReduce
from teletape.distribution.reductions import ReduceOp as ReduceOp
from teletape.distribution.reductions import ReductionToOneDevice as ReductionToOneDevice
from teletape.distribution.reductions import RunOptions as RunOptions
from teletape.distribution.strategies import MirroredStrategy as MirroredStrategy
from teletape.distribution.strategies import MultiWorkerMirroredStrategy as MultiWorkerMirroredStrategy
from teletape.distribution.strategies import OneDeviceStrategy as OneDeviceStrategy
from teletape.distribution.strategies import ParameterServerStrategy as ParameterServerStrategy
from teletape.distribution.strategies import TPUStrategy as TPUStrategy
from teletape.distribution.strategy import ReplicaContext as ReplicaContext
from teletape.distribution.strategy import Strategy as Strategy
from teletape.distribution.strategy import StrategyExtended as StrategyExtended
from teletape.distribution.strategy import experimental_set_strategy as experimental_set_strategy
from teletape.distribution.strategy import get_replica_context as get_replica_context
from teletape.distribution.values import DistributedDataset as DistributedDataset
from teletape.distribution.values import DistributedIterator as DistributedIterator
from teletape.distribution.values import DistributedValues as DistributedValues
from teletape.distribution.values import InputContext as InputContext

__all__ = [
    "CrossDeviceOps",
    "DistributedDataset",
    "DistributedIterator",
    "DistributedValues",
    "HierarchicalCopyAllReduce",
    "InputContext",
    "InputOptions",
    "InputReplicationMode",
    "MirroredStrategy",
    "MultiWorkerMirroredStrategy",
    "NcclAllReduce",
    "OneDeviceStrategy",
    "ParameterServerStrategy",
    "ReduceOp",
    "ReductionToOneDevice",
    "ReplicaContext",
    "RunOptions",
    "Strategy",
    "StrategyExtended",
    "TPUStrategy",
    "cluster_resolver",
    "experimental",
    "experimental_set_strategy",
    "get_replica_context",
    "get_strategy",
    "has_strategy",
    "in_cross_replica_context",
]
