"""Public names of modules that also have others, or that are public under several names or paths."""

from __future__ import annotations

import importlib
from typing import Any, Final

#: In each line a public path ("-": `tf`), a module below `teletape`, and names there: `public=own` where they differ.
_LISTED: Final = """
    - extras.distribution.reductions VariableAggregation VariableSynchronization
    - extras.ragged_tensors.spec RaggedTensorSpec
    - extras.ragged_tensors.tensor RaggedTensor
    autograph tf.autograph.api set_verbosity to_code to_graph trace
    autograph.experimental tf.autograph.api Feature do_not_convert
    autograph.experimental tf.autograph.directives set_loop_options
    config tf.configuration.clusters experimental_connect_to_cluster experimental_connect_to_host
    config tf.configuration.devices LogicalDevice PhysicalDevice
    config tf.configuration.execution get_soft_device_placement set_soft_device_placement
    config tf.configuration.visibility LogicalDeviceConfiguration get_logical_device_configuration get_visible_devices
    config tf.configuration.visibility set_logical_device_configuration set_visible_devices
    config.experimental tf.configuration.devices list_logical_devices list_physical_devices
    config.experimental tf.configuration.execution disable_mlir_bridge enable_mlir_bridge enable_op_determinism
    config.experimental tf.configuration.execution enable_tensor_float_32_execution get_device_policy
    config.experimental tf.configuration.execution get_synchronous_execution is_op_determinism_enabled
    config.experimental tf.configuration.execution set_device_policy set_synchronous_execution
    config.experimental tf.configuration.execution tensor_float_32_execution_enabled
    config.experimental tf.configuration.visibility VirtualDeviceConfiguration=LogicalDeviceConfiguration
    config.experimental tf.configuration.visibility get_device_details get_memory_growth get_memory_info
    config.experimental tf.configuration.visibility get_memory_usage
    config.experimental tf.configuration.visibility get_virtual_device_configuration=get_logical_device_configuration
    config.experimental tf.configuration.visibility get_visible_devices reset_memory_stats set_memory_growth
    config.experimental tf.configuration.visibility set_virtual_device_configuration=set_logical_device_configuration
    config.experimental tf.configuration.visibility set_visible_devices
    config.optimizer tf.configuration.execution get_experimental_options get_jit set_experimental_options set_jit
    config.threading tf.configuration.execution get_inter_op_parallelism_threads get_intra_op_parallelism_threads
    config.threading tf.configuration.execution set_inter_op_parallelism_threads set_intra_op_parallelism_threads
    data tf.data.dataset AUTOTUNE INFINITE_CARDINALITY UNKNOWN_CARDINALITY
    data tf.data.dataset Dataset DatasetSpec
    data tf.data.files FixedLengthRecordDataset TFRecordDataset TextLineDataset
    data tf.data.iterator Iterator NumpyIterator
    data tf.data.options Options ThreadingOptions
    data.experimental tf.data.dataset AUTOTUNE INFINITE_CARDINALITY UNKNOWN_CARDINALITY
    data.experimental tf.data.csv_files make_csv_dataset
    data.experimental tf.data.elements.optional Optional
    data.experimental tf.data.experimental Counter RandomDataset assert_cardinality bucket_by_sequence_length
    data.experimental tf.data.experimental cardinality choose_from_datasets copy_to_device enumerate_dataset from_list
    data.experimental tf.data.experimental get_next_as_optional get_single_element get_structure group_by_window
    data.experimental tf.data.experimental ignore_errors map_and_batch parallel_interleave prefetch_to_device
    data.experimental tf.data.experimental rejection_resample sample_from_datasets scan shuffle_and_repeat take_while
    data.experimental tf.data.experimental unbatch unique
    data.experimental tf.data.options AutoShardPolicy AutotuneAlgorithm AutotuneOptions DistributeOptions
    data.experimental tf.data.options ExternalStatePolicy OptimizationOptions ThreadingOptions
    distribute extras.distribution.contexts get_strategy has_strategy in_cross_replica_context
    distribute extras.distribution.reductions CrossDeviceOps HierarchicalCopyAllReduce InputOptions
    distribute extras.distribution.reductions InputReplicationMode NcclAllReduce ReduceOp ReductionToOneDevice
    distribute extras.distribution.reductions RunOptions
    distribute extras.distribution.strategies MirroredStrategy MultiWorkerMirroredStrategy OneDeviceStrategy
    distribute extras.distribution.strategies ParameterServerStrategy TPUStrategy
    distribute extras.distribution.strategy ReplicaContext Strategy StrategyExtended experimental_set_strategy
    distribute extras.distribution.strategy get_replica_context
    distribute extras.distribution.values DistributedDataset DistributedIterator DistributedValues InputContext
    distribute.cluster_resolver extras.distribution.cluster_resolvers ClusterResolver TFConfigClusterResolver
    distribute.cluster_resolver extras.distribution.cluster_resolvers TPUClusterResolver
    distribute.experimental extras.distribution.reductions CollectiveCommunication=CommunicationImplementation
    distribute.experimental extras.distribution.reductions CollectiveHints CommunicationImplementation
    distribute.experimental extras.distribution.reductions CommunicationOptions
    distribute.experimental extras.distribution.strategies CentralStorageStrategy ParameterServerStrategy
    distribute.experimental extras.distribution.strategies TPUStrategy=EarlierTPUStrategy
    distribute.experimental extras.distribution.strategies \
        MultiWorkerMirroredStrategy=EarlierMultiWorkerMirroredStrategy
    distribute.experimental extras.distribution.values ValueContext
    linalg extras.linear_operators.diagonals LinearOperatorDiag LinearOperatorIdentity LinearOperatorScaledIdentity
    linalg extras.linear_operators.diagonals LinearOperatorZeros
    summary tf.summary.conditions record_if
    summary tf.summary.data audio histogram image scalar text write
    summary tf.summary.traces graph trace_export trace_off trace_on
    summary tf.summary.writer SummaryWriter create_file_writer create_noop_writer flush should_record_summaries
    summary.experimental tf.summary.conditions get_step set_step summary_scope
    train tf.checkpoints.checkpoint Checkpoint CheckpointOptions
    train tf.checkpoints.manager CheckpointManager
    train tf.checkpoints.reading checkpoints_iterator list_variables load_checkpoint load_variable
    train tf.checkpoints.state_file get_checkpoint_state=read latest_checkpoint=latest
    version tf.configuration.version COMPILER_VERSION GIT_VERSION GRAPH_DEF_VERSION GRAPH_DEF_VERSION_MIN_CONSUMER
    version tf.configuration.version GRAPH_DEF_VERSION_MIN_PRODUCER TELETAPE_VERSION VERSION
    strings extras.text.strings as_string format join length lower reduce_join regex_full_match regex_replace strip
    strings extras.text.strings substr to_number upper
    test extras.test TestCase compute_gradient disable_with_predicate gpu_device_name is_built_with_cuda
    test extras.test is_built_with_gpu_support is_built_with_rocm is_built_with_xla is_cpu_target_available
    test extras.test is_gpu_available main with_eager_op_as_function
    random tf.ops.random.stateless fold_in split stateless_binomial stateless_categorical stateless_gamma
    random tf.ops.random.stateless stateless_normal stateless_poisson stateless_truncated_normal stateless_uniform
    - tf.ops.initializers constant_initializer ones_initializer random_normal_initializer random_uniform_initializer
    - tf.ops.initializers zeros_initializer
    """


PLACES: Final = {
    f"{path}.{public}".removeprefix("-."): f"{home}:{own or public}"
    for path, home, *names in map(str.split, _LISTED.strip().splitlines())
    for public, _, own in (name.partition("=") for name in names)
}  #: `module:name` of each, by the dotted name without the leading `tf.`.


def listed() -> dict[str, Any]:
    """Returns the objects by their dotted names without the leading `tf.`."""
    homes = {dotted: place.split(":") for dotted, place in PLACES.items()}
    return {dotted: getattr(importlib.import_module(f"teletape.{home}"), own) for dotted, (home, own) in homes.items()}
