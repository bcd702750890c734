"""The names of `tf.distribute` that this package has, and those of variables that replicas share."""

from __future__ import annotations

from typing import Any, Final

from teletape.extras.distribution import cluster_resolvers, contexts, reductions, strategies, strategy, values

#: By TensorFlow's names without the leading `tf.`.
NAMES: Final[dict[str, Any]] = {
    "VariableAggregation": reductions.VariableAggregation,
    "VariableSynchronization": reductions.VariableSynchronization,
    "distribute.CrossDeviceOps": reductions.CrossDeviceOps,
    "distribute.DistributedDataset": values.DistributedDataset,
    "distribute.DistributedIterator": values.DistributedIterator,
    "distribute.DistributedValues": values.DistributedValues,
    "distribute.HierarchicalCopyAllReduce": reductions.HierarchicalCopyAllReduce,
    "distribute.InputContext": values.InputContext,
    "distribute.InputOptions": reductions.InputOptions,
    "distribute.InputReplicationMode": reductions.InputReplicationMode,
    "distribute.MirroredStrategy": strategies.MirroredStrategy,
    "distribute.MultiWorkerMirroredStrategy": strategies.MultiWorkerMirroredStrategy,
    "distribute.NcclAllReduce": reductions.NcclAllReduce,
    "distribute.OneDeviceStrategy": strategies.OneDeviceStrategy,
    "distribute.ParameterServerStrategy": strategies.ParameterServerStrategy,
    "distribute.ReduceOp": reductions.ReduceOp,
    "distribute.ReductionToOneDevice": reductions.ReductionToOneDevice,
    "distribute.ReplicaContext": strategy.ReplicaContext,
    "distribute.RunOptions": reductions.RunOptions,
    "distribute.Strategy": strategy.Strategy,
    "distribute.StrategyExtended": strategy.StrategyExtended,
    "distribute.TPUStrategy": strategies.TPUStrategy,
    "distribute.cluster_resolver.ClusterResolver": cluster_resolvers.ClusterResolver,
    "distribute.cluster_resolver.TFConfigClusterResolver": cluster_resolvers.TFConfigClusterResolver,
    "distribute.cluster_resolver.TPUClusterResolver": cluster_resolvers.TPUClusterResolver,
    "distribute.experimental.CentralStorageStrategy": strategies.CentralStorageStrategy,
    "distribute.experimental.CollectiveCommunication": reductions.CommunicationImplementation,
    "distribute.experimental.CollectiveHints": reductions.CollectiveHints,
    "distribute.experimental.CommunicationImplementation": reductions.CommunicationImplementation,
    "distribute.experimental.CommunicationOptions": reductions.CommunicationOptions,
    "distribute.experimental.MultiWorkerMirroredStrategy": strategies.EarlierMultiWorkerMirroredStrategy,
    "distribute.experimental.ParameterServerStrategy": strategies.ParameterServerStrategy,
    "distribute.experimental.TPUStrategy": strategies.EarlierTPUStrategy,
    "distribute.experimental.ValueContext": values.ValueContext,
    "distribute.experimental_set_strategy": strategy.experimental_set_strategy,
    "distribute.get_replica_context": strategy.get_replica_context,
    "distribute.get_strategy": contexts.get_strategy,
    "distribute.has_strategy": contexts.has_strategy,
    "distribute.in_cross_replica_context": contexts.in_cross_replica_context,
}
