"""Inert replacements: names that Keras imports from TensorFlow's private modules, or that only have to exist.

To Keras, sparse tensors are a class without instances: its layers take dense ones here.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from types import ModuleType, SimpleNamespace
from typing import Any, ClassVar, Final, NoReturn

import numpy as np

from teletape._generated.elementwise import logic
from teletape.core.tensors.tensor import EagerTensor
from teletape.core.variables.trackable import AutoTrackable, Trackable
from teletape.keras_mount.variable import KerasVariableBase
from teletape.tf.configuration import execution
from teletape.tf.control_flow import eager


# ------------------------------------------------------------------------------------------------------ sparse tensors
class _Absent:
    """A class of TensorFlow that does not exist here: nothing is an instance of it."""

    reason: ClassVar[str]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise NotImplementedError(self.reason)


def _absent(name: str, instead: str) -> type[_Absent]:
    return type(name, (_Absent,), {"reason": f"Keras has no tf.{name} on Teletape: {instead}"})


def _refused(name: str, instead: str) -> Callable[..., NoReturn]:
    def refuse(*args: Any, **kwargs: Any) -> NoReturn:
        raise NotImplementedError(f"Keras has no tf.{name} on Teletape: {instead}")

    return refuse


class _RefusingModule(ModuleType):
    """A module of TensorFlow that does not exist here: its functions can be named, and raise when they are called."""

    def __init__(self, name: str, instead: str) -> None:
        super().__init__(f"tensorflow.{name}")
        self._instead = instead

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return _refused(f"{self.__name__.removeprefix('tensorflow.')}.{name}", self._instead)


_DENSE: Final = "its layers take dense tensors; make one by tf.sparse.to_dense(x)"


# ----------------------------------------------------------------------------------------------------------- internals
class KerasTrackable(AutoTrackable):
    """The base class of Keras's layers, models and optimizers.

    A model's layers are saved in the order of `model.layers`, which is the same before and after it is built; its
    private lists of layers are not.
    """

    def _trackable_children(self, save_type: str = "checkpoint", **kwargs: Any) -> dict[str, Any]:
        below = super()._trackable_children(save_type, **kwargs)
        layers = getattr(self, "layers", None)
        if isinstance(layers, list):
            below = {name: value for name, value in below.items() if name not in _LAYERS_OF_MODELS}
            below["layers"] = layers
        return below


#: The private attributes in which models keep their layers.
_LAYERS_OF_MODELS: Final = ("_functional", "_layers", "_operations", "_operations_by_depth")


def smart_cond(pred: Any, true_fn: Any = None, false_fn: Any = None, name: Any = None) -> Any:
    """Calls one of two functions; in a trace, both if the condition is no known value."""
    if isinstance(pred, bool | int | np.bool_):
        return true_fn() if pred else false_fn()
    return eager.cond(pred, true_fn, false_fn)


def _same(function: Any = None, **options: Any) -> Any:
    return function if function is not None else (lambda decorated: decorated)


#: By their names without the leading "tensorflow.".
INERT: Final[dict[str, Any]] = {
    "SparseTensor": _absent("SparseTensor", _DENSE),
    "SparseTensorSpec": _absent("SparseTensorSpec", _DENSE),
    "__internal__.CompositeTensor": _absent("__internal__.CompositeTensor", _DENSE),
    "__internal__.EagerTensor": EagerTensor,
    "__internal__.FuncGraph": _absent("__internal__.FuncGraph", "tf.function traces without graphs"),
    "__internal__.decorator.unwrap": lambda function: ((), function),
    "__internal__.distribute.interim.maybe_merge_call": lambda fn, strategy, *args, **kwargs: fn(
        strategy, *args, **kwargs
    ),
    "__internal__.distribute.strategy_supports_no_merge_call": lambda: True,
    "__internal__.eager_context.eager_mode": contextlib.nullcontext,
    "__internal__.smart_cond.smart_cond": smart_cond,
    "__internal__.tracking.AutoTrackable": KerasTrackable,
    "__internal__.tracking.Trackable": Trackable,
    "__internal__.tracking.no_automatic_dependency_tracking": _same,
    "__internal__.types.Tensor": KerasVariableBase,
    "compat.v1.reset_default_graph": lambda: None,
    "compiler.tf2xla.python.xla.dynamic_update_slice": _refused(
        "compiler.tf2xla.python.xla.dynamic_update_slice", "Keras's slice_update does it"
    ),
    "data.Iterator": _absent("data.Iterator", "iterate over the dataset"),
    "experimental.dtensor": SimpleNamespace(),
    "python.eager.context.async_wait": lambda: None,
    "python.eager.context.context": lambda: SimpleNamespace(clear_kernel_cache=lambda: None),
    "python.framework.config.is_op_determinism_enabled": execution.is_op_determinism_enabled,
    "python.ops.math_ops.is_nan": logic.is_nan,
    "python.ops.linalg.sparse.sparse_csr_matrix_ops": None,
    "sets": _RefusingModule("sets", _DENSE),
    "sparse": _RefusingModule("sparse", _DENSE),
    "python.trackable.data_structures.ListWrapper": type("ListWrapper", (list,), {}),
    "python.trackable.data_structures._DictWrapper": type("_DictWrapper", (dict,), {}),
}
