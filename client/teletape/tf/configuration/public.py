"""The names of `tf.config`, `tf.version` and `tf.debugging` that this package has."""

from __future__ import annotations

from typing import Any, Final

from teletape.tf.configuration import clusters, devices, execution, version, visibility

#: By TensorFlow's names without the leading `tf.`.
NAMES: Final[dict[str, Any]] = {
    "config.LogicalDevice": devices.LogicalDevice,
    "config.LogicalDeviceConfiguration": visibility.LogicalDeviceConfiguration,
    "config.PhysicalDevice": devices.PhysicalDevice,
    "config.experimental.VirtualDeviceConfiguration": visibility.LogicalDeviceConfiguration,
    "config.experimental.disable_mlir_bridge": execution.disable_mlir_bridge,
    "config.experimental.enable_mlir_bridge": execution.enable_mlir_bridge,
    "config.experimental.enable_op_determinism": execution.enable_op_determinism,
    "config.experimental.enable_tensor_float_32_execution": execution.enable_tensor_float_32_execution,
    "config.experimental.get_device_details": visibility.get_device_details,
    "config.experimental.get_device_policy": execution.get_device_policy,
    "config.experimental.get_memory_growth": visibility.get_memory_growth,
    "config.experimental.get_memory_info": visibility.get_memory_info,
    "config.experimental.get_memory_usage": visibility.get_memory_usage,
    "config.experimental.get_synchronous_execution": execution.get_synchronous_execution,
    "config.experimental.get_virtual_device_configuration": visibility.get_logical_device_configuration,
    "config.experimental.get_visible_devices": visibility.get_visible_devices,
    "config.experimental.is_op_determinism_enabled": execution.is_op_determinism_enabled,
    "config.experimental.list_logical_devices": devices.list_logical_devices,
    "config.experimental.list_physical_devices": devices.list_physical_devices,
    "config.experimental.reset_memory_stats": visibility.reset_memory_stats,
    "config.experimental.set_device_policy": execution.set_device_policy,
    "config.experimental.set_memory_growth": visibility.set_memory_growth,
    "config.experimental.set_synchronous_execution": execution.set_synchronous_execution,
    "config.experimental.set_virtual_device_configuration": visibility.set_logical_device_configuration,
    "config.experimental.set_visible_devices": visibility.set_visible_devices,
    "config.experimental.tensor_float_32_execution_enabled": execution.tensor_float_32_execution_enabled,
    "config.experimental_connect_to_cluster": clusters.experimental_connect_to_cluster,
    "config.experimental_connect_to_host": clusters.experimental_connect_to_host,
    "config.get_logical_device_configuration": visibility.get_logical_device_configuration,
    "config.get_soft_device_placement": execution.get_soft_device_placement,
    "config.get_visible_devices": visibility.get_visible_devices,
    "config.optimizer.get_experimental_options": execution.get_experimental_options,
    "config.optimizer.get_jit": execution.get_jit,
    "config.optimizer.set_experimental_options": execution.set_experimental_options,
    "config.optimizer.set_jit": execution.set_jit,
    "config.set_logical_device_configuration": visibility.set_logical_device_configuration,
    "config.set_soft_device_placement": execution.set_soft_device_placement,
    "config.set_visible_devices": visibility.set_visible_devices,
    "config.threading.get_inter_op_parallelism_threads": execution.get_inter_op_parallelism_threads,
    "config.threading.get_intra_op_parallelism_threads": execution.get_intra_op_parallelism_threads,
    "config.threading.set_inter_op_parallelism_threads": execution.set_inter_op_parallelism_threads,
    "config.threading.set_intra_op_parallelism_threads": execution.set_intra_op_parallelism_threads,
    **{f"version.{name}": getattr(version, name) for name in version.__all__},
}
