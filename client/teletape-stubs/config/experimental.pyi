"""What `tf.config.experimental` holds. Written by `make reference` from scripts/public_surface.py."""

from teletape.tf.configuration.devices import list_logical_devices as list_logical_devices
from teletape.tf.configuration.devices import list_physical_devices as list_physical_devices
from teletape.tf.configuration.execution import disable_mlir_bridge as disable_mlir_bridge
from teletape.tf.configuration.execution import enable_mlir_bridge as enable_mlir_bridge
from teletape.tf.configuration.execution import enable_op_determinism as enable_op_determinism
from teletape.tf.configuration.execution import enable_tensor_float_32_execution as enable_tensor_float_32_execution
from teletape.tf.configuration.execution import get_device_policy as get_device_policy
from teletape.tf.configuration.execution import get_synchronous_execution as get_synchronous_execution
from teletape.tf.configuration.execution import is_op_determinism_enabled as is_op_determinism_enabled
from teletape.tf.configuration.execution import set_device_policy as set_device_policy
from teletape.tf.configuration.execution import set_synchronous_execution as set_synchronous_execution
from teletape.tf.configuration.execution import tensor_float_32_execution_enabled as tensor_float_32_execution_enabled
from teletape.tf.configuration.visibility import LogicalDeviceConfiguration as VirtualDeviceConfiguration
from teletape.tf.configuration.visibility import get_device_details as get_device_details
from teletape.tf.configuration.visibility import get_logical_device_configuration as get_virtual_device_configuration
from teletape.tf.configuration.visibility import get_memory_growth as get_memory_growth
from teletape.tf.configuration.visibility import get_memory_info as get_memory_info
from teletape.tf.configuration.visibility import get_memory_usage as get_memory_usage
from teletape.tf.configuration.visibility import get_visible_devices as get_visible_devices
from teletape.tf.configuration.visibility import reset_memory_stats as reset_memory_stats
from teletape.tf.configuration.visibility import set_logical_device_configuration as set_virtual_device_configuration
from teletape.tf.configuration.visibility import set_memory_growth as set_memory_growth
from teletape.tf.configuration.visibility import set_visible_devices as set_visible_devices

__all__ = [
    "VirtualDeviceConfiguration",
    "disable_mlir_bridge",
    "enable_mlir_bridge",
    "enable_op_determinism",
    "enable_tensor_float_32_execution",
    "get_device_details",
    "get_device_policy",
    "get_memory_growth",
    "get_memory_info",
    "get_memory_usage",
    "get_synchronous_execution",
    "get_virtual_device_configuration",
    "get_visible_devices",
    "is_op_determinism_enabled",
    "list_logical_devices",
    "list_physical_devices",
    "reset_memory_stats",
    "set_device_policy",
    "set_memory_growth",
    "set_synchronous_execution",
    "set_virtual_device_configuration",
    "set_visible_devices",
    "tensor_float_32_execution_enabled",
]
