"""What `tf.config` holds. Written by `make reference` from scripts/public_surface.py."""

from teletape.config import experimental as experimental
from teletape.config import optimizer as optimizer
from teletape.config import threading as threading

from teletape.core.functions.function import functions_run_eagerly as experimental_functions_run_eagerly
from teletape.core.functions.function import functions_run_eagerly as functions_run_eagerly
from teletape.core.functions.function import run_functions_eagerly as experimental_run_functions_eagerly
from teletape.core.functions.function import run_functions_eagerly as run_functions_eagerly
from teletape.tf.configuration.clusters import experimental_connect_to_cluster as experimental_connect_to_cluster
from teletape.tf.configuration.clusters import experimental_connect_to_host as experimental_connect_to_host
from teletape.tf.configuration.devices import LogicalDevice as LogicalDevice
from teletape.tf.configuration.devices import PhysicalDevice as PhysicalDevice
from teletape.tf.configuration.devices import list_logical_devices as list_logical_devices
from teletape.tf.configuration.devices import list_physical_devices as list_physical_devices
from teletape.tf.configuration.execution import get_soft_device_placement as get_soft_device_placement
from teletape.tf.configuration.execution import set_soft_device_placement as set_soft_device_placement
from teletape.tf.configuration.visibility import LogicalDeviceConfiguration as LogicalDeviceConfiguration
from teletape.tf.configuration.visibility import get_logical_device_configuration as get_logical_device_configuration
from teletape.tf.configuration.visibility import get_visible_devices as get_visible_devices
from teletape.tf.configuration.visibility import set_logical_device_configuration as set_logical_device_configuration
from teletape.tf.configuration.visibility import set_visible_devices as set_visible_devices

__all__ = [
    "LogicalDevice",
    "LogicalDeviceConfiguration",
    "PhysicalDevice",
    "experimental",
    "experimental_connect_to_cluster",
    "experimental_connect_to_host",
    "experimental_functions_run_eagerly",
    "experimental_run_functions_eagerly",
    "functions_run_eagerly",
    "get_logical_device_configuration",
    "get_soft_device_placement",
    "get_visible_devices",
    "list_logical_devices",
    "list_physical_devices",
    "optimizer",
    "run_functions_eagerly",
    "set_logical_device_configuration",
    "set_soft_device_placement",
    "set_visible_devices",
    "threading",
]
