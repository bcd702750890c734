"""What `tf.distribute` holds. Written by `make reference` from scripts/public_surface.py."""

from teletape.distribute import cluster_resolver as cluster_resolver
from teletape.distribute import experimental as experimental

from teletape.extras.distribution.contexts import get_strategy as get_strategy
from teletape.extras.distribution.contexts import has_strategy as has_strategy
from teletape.extras.distribution.contexts import in_cross_replica_context as in_cross_replica_context
from teletape.extras.distribution.reductions import CrossDeviceOps as CrossDeviceOps
from teletape.extras.distribution.reductions import HierarchicalCopyAllReduce as HierarchicalCopyAllReduce
from teletape.extras.distribution.reductions import InputOptions as InputOptions
from teletape.extras.distribution.reductions import InputReplicationMode as InputReplicationMode
from teletape.extras.distribution.reductions import NcclAllReduce as NcclAllReduce
from teletape.extras.distribution.reductions import ReduceOp as ReduceOp
from teletape.extras.distribution.reductions import ReductionToOneDevice as ReductionToOneDevice
from teletape.extras.distribution.reductions import RunOptions as RunOptions
from teletape.extras.distribution.strategies import MirroredStrategy as MirroredStrategy
from teletape.extras.distribution.strategies import MultiWorkerMirroredStrategy as MultiWorkerMirroredStrategy
from teletape.extras.distribution.strategies import OneDeviceStrategy as OneDeviceStrategy
from teletape.extras.distribution.strategies import ParameterServerStrategy as ParameterServerStrategy
from teletape.extras.distribution.strategies import TPUStrategy as TPUStrategy
from teletape.extras.distribution.strategy import ReplicaContext as ReplicaContext
from teletape.extras.distribution.strategy import Strategy as Strategy
from teletape.extras.distribution.strategy import StrategyExtended as StrategyExtended
from teletape.extras.distribution.strategy import experimental_set_strategy as experimental_set_strategy
from teletape.extras.distribution.strategy import get_replica_context as get_replica_context
from teletape.extras.distribution.values import DistributedDataset as DistributedDataset
from teletape.extras.distribution.values import DistributedIterator as DistributedIterator
from teletape.extras.distribution.values import DistributedValues as DistributedValues
from teletape.extras.distribution.values import InputContext as InputContext

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
