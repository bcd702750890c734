"""Replacements for functions of Keras, by name; a version of Keras without such a name fails at import.

Each replaces a function in a module's `__dict__` after Keras has executed the module.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any, Final

import numpy as np

from teletape._generated.shapes.nd import tensor_scatter_nd_update
from teletape._generated.shapes.shape import transpose
from teletape.core.calls.dispatch import convert_to_tensor
from teletape.core.errors import OutOfRangeError
from teletape.core.program.call_site import PACKAGES
from teletape.core.program.tracebacks import report, reports
from teletape.core.sessions.current import current
from teletape.core.sessions.draws import Draws, seeds_of
from teletape.core.tensors.indexed_slices import IndexedSlices
from teletape.keras_mount import optimizers, output_specs, reading, recurrent, surface
from teletape.tf.data.dataset import Dataset
from teletape.tf.data.elements.leaves import Array, Rows, Source
from teletape.tf.ops.nn.attention import scaled_dot_product_attention
from teletape_engine.arrays import philox
from teletape_engine.ops.random.philox import unsigned


def replace(module: ModuleType) -> None:
    """Replaces functions of a module of Keras that has been executed.

    Raises:
        ImportError: The module has no function of that name: an unknown version.
    """
    functions = _REPLACEMENTS.get(module.__name__)
    if functions is None:
        return
    for name, value in functions(module).items():
        class_name, _, attribute = name.rpartition(".")
        owner = getattr(module, class_name, None) if class_name else module
        if attribute not in vars(owner or object):
            raise ImportError(f"tf.keras does not know this version of Keras: {module.__name__} has no {name!r}")
        setattr(owner, attribute, reports(value) if isinstance(value, FunctionType) else value)


def _core(module: ModuleType) -> Mapping[str, Any]:
    def slice_update(inputs: Any, start_indices: Any, updates: Any) -> Any:
        ranges = [np.arange(int(start), int(start) + n) for start, n in zip(start_indices, updates.shape, strict=True)]
        places = np.stack(np.meshgrid(*ranges, indexing="ij"), -1).astype(np.int32)
        return tensor_scatter_nd_update(inputs, places, updates)

    return {
        "SUPPORTS_RAGGED_TENSORS": False,
        "SUPPORTS_SPARSE_TENSORS": False,
        "compute_output_spec": output_specs.compute_output_spec(module, module.__dict__["tree"]),
        "slice_update": slice_update,
    }


def _nn(module: ModuleType) -> Mapping[str, Any]:
    def attention(query: Any, key: Any, value: Any, bias: Any, mask: Any, is_causal: bool, scale: Any) -> Any:
        """[B, T, N, V] for queries [B, T, N, D], keys [B, S, N, D] and values; the weights are not kept if many."""
        q, k, v = (transpose(x, (0, 2, 1, 3)) for x in (query, key, value))
        return transpose(scaled_dot_product_attention(q, k, v, mask, bias, scale, is_causal), (0, 2, 1, 3))

    return {"_dot_product_attention_xla": attention}


def _trainer(module: ModuleType) -> Mapping[str, Any]:
    class EpochIterator(module.EpochIterator):  # type: ignore[misc, name-defined]  # Keras has no types
        """Iterates over batches; those of arrays become tensors in the step that uses them."""

        def __init__(self, distribute_strategy: Any = None, *args: Any, **kwargs: Any) -> None:
            super().__init__(*args, **kwargs)
            self._columns: Any = None

        def _get_iterator(self) -> Any:
            """Returns the batches of an epoch, in Keras's order: tensors of a dataset, or of arrays on the server."""
            adapter = self.data_adapter
            dataset = getattr(adapter, "_dataset", None)
            if isinstance(dataset, Dataset):
                return _Batches(dataset, self.steps_per_execution)
            if self._columns is None and not current().home.local:
                self._columns = _array_columns(adapter)
            batches = adapter._get_iterator(_rows, self._columns) if self._columns else adapter.get_numpy_iterator()
            return _Batches(batches, self.steps_per_execution)

        def __next__(self) -> Any:
            return next(self._epoch_iterator)

        @contextlib.contextmanager
        def catch_stop_iteration(self) -> Iterator[None]:
            with super().catch_stop_iteration():
                try:
                    yield
                except OutOfRangeError:
                    raise StopIteration from None

    return {"TFEpochIterator": EpochIterator}


class _Batches:
    """The batches of an epoch. A step without a batch raises OutOfRangeError: Keras does not always know their number.

    Args:
        batches: An iterable of batches.
        count: The number of batches of a step; the last step may have fewer.
    """

    def __init__(self, batches: Iterable[Any], count: int) -> None:
        self._batches, self._count = iter(batches), count
        self._taken = 0  # taken by this step

    def __iter__(self) -> _Batches:
        return self

    def __next__(self) -> Any:
        taken = self._taken % self._count
        self._taken = 0
        try:
            batch = next(self._batches)
        except StopIteration:
            if taken:
                raise
            raise OutOfRangeError("End of sequence") from None
        except BaseException as error:
            report(error)
            raise
        self._taken = taken + 1
        return batch


def _array_adapter(module: ModuleType) -> Mapping[str, Any]:
    tree = module.__dict__["tree"]

    def batches(self: Any, slice_and_convert_fn: Callable[..., Any], inputs: Any) -> Iterator[Any]:
        """Yields the batches of an epoch in the order of Keras on TensorFlow.

        On TensorFlow a function of a dataset draws the order, by an op with the program's seed and the seed 0, which
        restarts in each epoch. Keras's own function draws it from NumPy's global generator.
        """
        draws = Draws(seeds_of(current().random_seed(), lambda: 0, None))

        def order(count: int) -> Any:
            return philox.permutation(unsigned(draws.state((count + 2) // 4)), count)

        of_all = order(self._num_samples) if self._shuffle and self._shuffle != "batch" else None
        for start in range(0, self._num_samples, self._batch_size):
            stop = min(start + self._batch_size, self._num_samples)
            indices: Any = slice(start, stop) if of_all is None else of_all[start:stop]
            if self._shuffle == "batch":
                indices = start + order(stop - start)
            yield tree.map_structure(
                functools.partial(slice_and_convert_fn, indices=indices), inputs, none_is_leaf=False
            )

    return {"ArrayDataAdapter._get_iterator": batches}


def _array_columns(adapter: Any) -> Any:
    """Returns the arrays of an adapter, of which batches are rows; None: it has other values."""
    from keras.src import tree
    from keras.src.trainers.data_adapters.array_data_adapter import ArrayDataAdapter
    from keras.src.trainers.data_adapters.array_slicing import NumpySliceable, convert_to_sliceable

    if not isinstance(adapter, ArrayDataAdapter):
        return None
    sliceables = convert_to_sliceable(adapter._inputs, target_backend="numpy")
    if not all(type(leaf) is NumpySliceable and leaf.array.dtype != object for leaf in tree.flatten(sliceables)):
        return None
    source = Source()
    return tree.map_structure(lambda leaf: Array(leaf.array, source), sliceables, none_is_leaf=False)


def _rows(column: Array, indices: Any) -> Any:
    """Returns rows of a column as a tensor."""
    rows = np.arange(indices.start, indices.stop) if isinstance(indices, slice) else np.asarray(indices)
    return Rows(column, rows).tensor()


def _module_utils(module: ModuleType) -> Mapping[str, Any]:
    modules = {name: module.__dict__[name] for name in ("tensorflow", "gfile")}
    for lazy in modules.values():
        lazy.module, lazy._available = surface.module(lazy.name), True
    return modules


def _data_adapters(module: ModuleType) -> Mapping[str, Any]:
    return {"is_tf_dataset": lambda x: isinstance(x, Dataset)}


def _dataset_utils(module: ModuleType) -> Mapping[str, Any]:
    return _data_adapters(module) if "is_tf_dataset" in vars(module) else {}  # before 3.15 it tests the class


def _sparse(module: ModuleType) -> Mapping[str, Any]:
    decorated = module.__dict__["elementwise_division"]

    def elementwise_division(function: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
        """Divides rows of a gradient by a dense tensor; in a trace as a dense gradient.

        Keras looks for zeros in the divisor, and a function whose shapes depend on values is not traced.
        """
        original = decorated(function)

        @functools.wraps(function)
        def divide(x1: Any, x2: Any) -> Any:
            if isinstance(x1, IndexedSlices) and current().tracing and len(getattr(x2, "shape", ())):
                x1 = convert_to_tensor(x1)
            return original(x1, x2)

        return divide

    return {"elementwise_division": elementwise_division}


def _file_utils(module: ModuleType) -> Mapping[str, Any]:
    original = module.__dict__["get_file"]
    parameters = inspect.signature(original)

    @functools.wraps(original)
    def get_file(*args: Any, **kwargs: Any) -> Any:
        try:
            return original(*args, **kwargs)
        except Exception as error:  # Keras's exception has no class of its own
            if not str(error).startswith("URL fetch failure"):
                raise
            call = parameters.bind(*args, **kwargs)
            call.apply_defaults()
            origin, name, folder = (call.arguments[key] for key in ("origin", "fname", "cache_dir"))
            folder = Path(folder or module.__dict__["config"].keras_home()) / call.arguments["cache_subdir"]
            raise ConnectionError(
                f"{error}. Without internet put the file at {folder / (name or Path(origin).name)}: it is then not "
                "downloaded. The variable KERAS_HOME, or cache_dir, names another folder"
            ) from error

    return {"get_file": get_file}


_BATCH_ENDS: Final = ("on_batch_end", "on_train_batch_end", "on_test_batch_end", "on_predict_batch_end")


def _callback_list(module: ModuleType) -> Mapping[str, Any]:
    return {f"CallbackList._{name}": reading.batch_end(module, name) for name in _BATCH_ENDS}


#: The replacements of each module of Keras, by their names there.
_REPLACEMENTS: Final[Mapping[str, Callable[[ModuleType], Mapping[str, Any]]]] = {
    "keras.src.backend.tensorflow.core": _core,
    "keras.src.backend.tensorflow.nn": _nn,
    "keras.src.backend.tensorflow.rnn": lambda module: {
        "cudnn_ok": lambda *args, **kwargs: False,  # cells are traced
        "rnn": recurrent.rnn(module),
    },
    "keras.src.backend.tensorflow.sparse": _sparse,
    "keras.src.backend.tensorflow.trainer": _trainer,
    "keras.src.callbacks.callback_list": _callback_list,
    "keras.src.layers.layer": lambda module: {"Layer.get_weights": reading.get_weights},
    "keras.src.optimizers.base_optimizer": lambda module: {
        "BaseOptimizer._filter_empty_gradients": optimizers.filter_empty_gradients(module)
    },
    "keras.src.saving.saving_lib": lambda module: {"_save_state": reading.save_state(module)},
    "keras.src.trainers.data_adapters": _data_adapters,
    "keras.src.trainers.data_adapters.array_data_adapter": _array_adapter,
    "keras.src.utils.dataset_utils": _dataset_utils,
    "keras.src.utils.file_utils": _file_utils,
    "keras.src.utils.module_utils": _module_utils,
    "keras.src.utils.traceback_utils": lambda module: {
        "_EXCLUDED_PATHS": (*module.__dict__["_EXCLUDED_PATHS"], *(folder.rstrip(os.sep) for folder in PACKAGES))
    },
    "keras.src.utils.python_utils": lambda module: {"pythonify_logs": reading.pythonify_logs(module)},
}
