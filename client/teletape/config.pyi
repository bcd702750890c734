"""What `tf.config` holds. Written by `make reference` from teletape.namespace."""

from teletape.devices import list_logical_devices as list_logical_devices
from teletape.devices import list_physical_devices as list_physical_devices
from teletape.functions.function import functions_run_eagerly as functions_run_eagerly
from teletape.functions.function import run_functions_eagerly as run_functions_eagerly

__all__ = ["functions_run_eagerly", "list_logical_devices", "list_physical_devices", "run_functions_eagerly"]
