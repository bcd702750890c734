"""What `tf.test` holds. Written by `make reference` from scripts/public_surface.py."""

from teletape.extras.test import TestCase as TestCase
from teletape.extras.test import compute_gradient as compute_gradient
from teletape.extras.test import disable_with_predicate as disable_with_predicate
from teletape.extras.test import gpu_device_name as gpu_device_name
from teletape.extras.test import is_built_with_cuda as is_built_with_cuda
from teletape.extras.test import is_built_with_gpu_support as is_built_with_gpu_support
from teletape.extras.test import is_built_with_rocm as is_built_with_rocm
from teletape.extras.test import is_built_with_xla as is_built_with_xla
from teletape.extras.test import is_cpu_target_available as is_cpu_target_available
from teletape.extras.test import is_gpu_available as is_gpu_available
from teletape.extras.test import main as main
from teletape.extras.test import with_eager_op_as_function as with_eager_op_as_function

__all__ = [
    "TestCase",
    "compute_gradient",
    "disable_with_predicate",
    "gpu_device_name",
    "is_built_with_cuda",
    "is_built_with_gpu_support",
    "is_built_with_rocm",
    "is_built_with_xla",
    "is_cpu_target_available",
    "is_gpu_available",
    "main",
    "with_eager_op_as_function",
]
