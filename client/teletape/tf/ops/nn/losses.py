"""`tf.nn`: losses over several replicas. By hand: they divide by the batch size that the caller names."""

from __future__ import annotations

from typing import Any

from teletape._generated.shapes.cast import cast
from teletape.core.calls import arguments as to
from teletape.core.calls.dispatch import call, convert_to_tensor
from teletape.core.tensors.tensor import Tensor
from teletape_engine.catalogue.namespace import ops


def compute_average_loss(
    per_example_loss: to.TensorInput, sample_weight: Any = None, global_batch_size: Any = None
) -> Tensor:
    """The weighted sum of the losses of examples, divided by the size of the batch. By hand: several ops.

    Example:
        tf.nn.compute_average_loss([1.0, 3.0])
    """
    losses = convert_to_tensor(per_example_loss)
    if sample_weight is not None:
        losses = losses * cast(convert_to_tensor(sample_weight), losses.dtype)
    if global_batch_size is None:
        if not losses.ndim:
            raise ValueError("a loss without a batch axis needs `global_batch_size`")
        global_batch_size = losses.shape.as_list()[0]
    result: Tensor = call(ops.reduce_sum, (losses,)) / cast(convert_to_tensor(global_batch_size), losses.dtype)
    return result


def scale_regularization_loss(regularization_loss: to.TensorInput) -> Tensor:
    """The sum of the regularization losses, divided by the number of replicas, 1. By hand: it is a sum.

    Example:
        tf.nn.scale_regularization_loss(3.0)
    """
    return call(ops.reduce_sum, (convert_to_tensor(regularization_loss),))
