"""The public names of the SDK, TensorFlow's and Teletape's own, each with what it names and where that is.

`make reference` writes `teletape.names.table` from them, by which a name is imported when it is first used, and the
stubs. A function is written by hand only if its record in the catalogue says why, or if it is no op at all: control
flow, assertions, devices and the calling of Python.

Long because it is one list.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any, Final

sys.path.insert(0, str(Path(__file__).resolve().parent))  # `python -P` leaves it out
from functions import derived, formatted
from listed_names import PLACES, listed

from teletape.core import errors
from teletape.core.calls import arguments as to
from teletape.core.calls import dispatch
from teletape.core.derivatives import arguments, check_gradients, custom_gradient, registered_gradient
from teletape.core.derivatives.forward import ForwardAccumulator
from teletape.core.derivatives.tape import GradientTape, gradients
from teletape.core.functions import function as functions
from teletape.core.functions.tensor_spec import TensorSpec
from teletape.core.profiling.annotations import Trace
from teletape.core.program import logs, registered_conversions, tracebacks
from teletape.core.sessions import current as sessions
from teletape.core.sessions.session import Session
from teletape.core.tensors import dlpack, dtypes, indexing, nest, tensor_shape
from teletape.core.tensors.composite import TypeSpec
from teletape.core.tensors.indexed_slices import IndexedSlices, IndexedSlicesSpec
from teletape.core.tensors.tensor import Tensor
from teletape.core.variables.module import Module
from teletape.core.variables.name_scope import get_current_name_scope, name_scope, name_scope_v1
from teletape.core.variables.variable import Variable
from teletape.extras import audio, numpy_api, record_features, record_messages
from teletape.extras import raw_ops as raw
from teletape.extras.exporting import onnx_graphs, stablehlo
from teletape.extras.linear_operators import blocks, circulant, composition, dense, low_rank, operator, sparse
from teletape.extras.linear_operators.conjugate_gradient import conjugate_gradient
from teletape.extras.lookup_tables import entries as lookup_entries
from teletape.extras.lookup_tables import mutable, static, vocabulary
from teletape.extras.numpy_api import random_numbers
from teletape.extras.numpy_api import types as numpy_types
from teletape.extras.onnx import network as onnx_network
from teletape.extras.ragged_tensors import functions as ragged
from teletape.extras.ragged_tensors.forms import of_functions
from teletape.extras.sparse_tensors import arithmetic, conversions, ctc, distances, lookups, parts, reductions, sets
from teletape.extras.sparse_tensors.tensor import SparseTensor, SparseTensorSpec, SparseTensorValue
from teletape.extras.text import buckets, ngrams, ragged_strings, strings
from teletape.tf import (
    debugging,
    gradient_accumulator,
    gradient_parts,
    numeric_gradient,
    per_example_gradients,
    print_op,
    python_calls,
)
from teletape.tf.checkpoints import saved_model
from teletape.tf.configuration import devices, execution
from teletape.tf.control_flow import compat_v1, eager, folds, maps, ordering, tensor_array
from teletape.tf.data import type_specs
from teletape.tf.data.elements.optional import Optional
from teletape.tf.files import contents, gfile, jpeg_quality, record_files, tensor_messages, tensor_proto
from teletape.tf.files import images as image_files
from teletape.tf.ops import moving_average
from teletape.tf.ops.arrays import counting, create, paddings, partitions, places, rearrange, segments, sorting, sums
from teletape.tf.ops.images import boxes, colors, measures, random_boxes, random_changes, resize_v1, sizes
from teletape.tf.ops.linalg import bands, clip, decompositions, diagonals, norms
from teletape.tf.ops.nn import (
    attention,
    candidates,
    convolutions,
    dropout,
    embeddings,
    isotonic,
    losses,
    morphology,
    normalization,
    pools,
)
from teletape.tf.ops.random import generator, stateful, stateless, truncated
from teletape.tf.ops.signal import short_time, spectral, windows
from teletape.tf.sessions import functions as session_functions
from teletape.tf.sessions import pool, publishing, reading, session_list
from teletape.tf.summary import events


# ------------------------------------------------------------------------------------------- TensorFlow's functions
def by_hand() -> dict[str, Callable[..., Any]]:
    """Returns the functions that are written by hand, by TensorFlow's names without the leading `tf.`."""
    entries: dict[str, Callable[..., Any]] = {}
    for path, module in (
        *(
            ("", module)
            for module in (create, rearrange, paddings, partitions, places, clip, eager, folds, maps, ordering)
        ),
        *(("linalg.", module) for module in (norms, decompositions, bands, diagonals)),
        *(
            ("nn.", module)
            for module in (attention, convolutions, embeddings, isotonic, losses, morphology, normalization, pools)
        ),
        *(("image.", module) for module in (sizes, colors, measures, boxes, random_boxes, random_changes)),
        *(("math.", module) for module in (segments, counting, sums)),
        *(("signal.", module) for module in (short_time, spectral, windows)),
        *(("sparse.", module) for module in (arithmetic, conversions, parts, reductions)),
        ("ragged.", ragged),
        ("sets.", sets),
        ("nn.", ctc),
        ("nn.", lookups),
        ("", distances),
        ("compat.v1.", compat_v1),
    ):
        entries |= {path + name: getattr(module, name) for name in _public(module)}
    return entries | {
        "Assert": debugging.Assert,
        "SparseTensor": SparseTensor,
        "SparseTensorSpec": SparseTensorSpec,
        "sparse.SparseTensor": SparseTensor,
        "TensorArray": tensor_array.TensorArray,
        "TensorArraySpec": tensor_array.TensorArraySpec,
        "TensorSpec": TensorSpec,
        "assert_equal": debugging.assert_equal,
        "assert_greater": debugging.assert_greater,
        "assert_less": debugging.assert_less,
        "assert_rank": debugging.assert_rank,
        "eigvals": decompositions.eigvals,
        **{name: getattr(spectral, name) for name in ("fftnd", "ifftnd", "rfftnd", "irfftnd")},
        "autodiff.ForwardAccumulator": ForwardAccumulator,
        "autodiff.GradientTape": GradientTape,
        "config.functions_run_eagerly": functions.functions_run_eagerly,
        "config.list_logical_devices": devices.list_logical_devices,
        "config.list_physical_devices": devices.list_physical_devices,
        "config.run_functions_eagerly": functions.run_functions_eagerly,
        "as_string": strings.as_string,
        "compat.as_bytes": strings.as_bytes,
        "compat.as_str": strings.as_text,
        "compat.as_str_any": strings.as_str_any,
        "compat.as_text": strings.as_text,
        "compat.dimension_at_index": tensor_shape.dimension_at_index,
        "compat.dimension_value": tensor_shape.dimension_value,
        "compat.v1.Dimension": tensor_shape.Dimension,
        "compat.v1.SparseTensorValue": SparseTensorValue,
        "compat.v1.SummaryMetadata": events.SummaryMetadata,
        "compat.v1.convert_to_tensor_or_sparse_tensor": conversions.convert_to_tensor_or_sparse_tensor,
        "compat.v1.dimension_at_index": tensor_shape.dimension_at_index,
        "compat.v1.dimension_value": tensor_shape.dimension_value,
        "compat.v1.image.ResizeMethod": resize_v1.ResizeMethod,
        "compat.v1.image.resize": resize_v1.resize,
        "compat.v1.image.resize_images": resize_v1.resize,
        "compat.v1.name_scope": name_scope_v1,
        "compat.v1.placeholder_with_default": create.placeholder_with_default,
        "conv": convolutions.conv,
        "device": devices.device,
        "is_symbolic_tensor": dispatch.is_symbolic_tensor,
        "is_tensor": dispatch.is_tensor,
        "linalg.global_norm": clip.global_norm,
        "math.approx_max_k": sorting.approx_max_k,
        "math.approx_min_k": sorting.approx_min_k,
        "nn.dropout": dropout.dropout,
        "nn.all_candidate_sampler": candidates.all_candidate_sampler,
        "nn.fixed_unigram_candidate_sampler": candidates.fixed_unigram_candidate_sampler,
        "nn.compute_accidental_hits": candidates.compute_accidental_hits,
        "nn.experimental.general_dropout": dropout.general_dropout,
        "nn.experimental.stateless_dropout": dropout.stateless_dropout,
        "nn.nce_loss": candidates.nce_loss,
        "nn.sampled_softmax_loss": candidates.sampled_softmax_loss,
        "nn.approx_max_k": sorting.approx_max_k,
        "nn.approx_min_k": sorting.approx_min_k,
        "norm": norms.norm,
        "numpy_function": python_calls.numpy_function,
        "print": print_op.tf_print,
        "py_function": python_calls.py_function,
        "repeat": sorting.repeat,
        "scalar_mul": sums.scalar_mul,
        "sequence_mask": counting.sequence_mask,
        "tensordot": norms.tensordot,
        "timestamp": python_calls.timestamp,
        "unique": sorting.unique,
        "unique_with_counts": sorting.unique_with_counts,
    }


def _public(module: ModuleType) -> list[str]:
    """Returns the public names of a module: its `__all__`, or what it defines itself.

    Named tuples, which some functions return, are not public.
    """
    own = [name for name, value in vars(module).items() if getattr(value, "__module__", "") == module.__name__]
    hidden = {name for name in own if name.startswith("_") or hasattr(vars(module)[name], "_fields")}
    return getattr(module, "__all__", None) or [name for name in own if name not in hidden]


@functools.cache
def surface() -> dict[str, Callable[..., Any]]:
    """Returns all functions of TensorFlow's that exist here, by their names without the leading `tf.`."""
    return dict(sorted(derived().items())) | by_hand()


# --------------------------------------------------------------------------------------------------- all public names
#: Keras's modules, with the module to import when they are first used.
LAZY: Final = {
    "initializers": "teletape.keras.initializers",
    "keras": "teletape.keras",
    "losses": "teletape.keras.losses",
    "metrics": "teletape.keras.metrics",
    "optimizers": "teletape.keras.optimizers",
}


@functools.cache
def names() -> dict[str, Any]:
    """Returns all public objects, by their dotted names without the leading `tf.`."""
    entries: dict[str, Any] = dict(surface())
    for path, module in (
        ("debugging.", debugging),
        ("errors.", errors),
        ("nest.", nest),
        ("random.", stateful),
        ("random.", truncated),
        ("random.", generator),
        ("random.experimental.", generator),
        ("dtypes.", dtypes),
        ("experimental.dlpack.", dlpack),
        *(("experimental.numpy.", module) for module in numpy_api.MODULES),
        ("experimental.numpy.random.", random_numbers),
        ("saved_model.", saved_model),
        ("train.", moving_average),
        *(("linalg.", module) for module in (blocks, circulant, composition, dense, low_rank, sparse)),
        ("linalg.", operator),
        ("audio.", audio),
        ("image.", image_files),
        ("image.", jpeg_quality),
        ("io.", contents),
        ("io.", tensor_messages),
        *(("strings.", module) for module in (ragged_strings, buckets, ngrams)),
        *(("lookup.", module) for module in (lookup_entries, static, vocabulary)),
        ("lookup.experimental.", mutable),
        ("io.", image_files),
        ("io.gfile.", gfile),
        ("io.", record_files),
        ("io.", record_features),
        ("onnx.", onnx_network),
        ("onnx.", onnx_graphs),
        ("stablehlo.", stablehlo),
    ):
        values = {path + name: getattr(module, name) for name in _public(module)}
        entries |= {dotted: value for dotted, value in values.items() if not isinstance(value, ModuleType)}
    own = gradient_accumulator, gradient_parts, numeric_gradient, per_example_gradients
    own += session_functions, pool, publishing, reading, session_list
    for module in (dtypes, registered_conversions, *own):
        entries |= {name: getattr(module, name) for name in _public(module)}
    entries |= listed()
    return entries | {
        **{f"experimental.numpy.{name}": value for name, value in numpy_types.NAMES.items()},
        **{f"raw_ops.{name}": raw.function(name, (surface() | entries).__getitem__) for name in raw.NAMES},
        "make_ndarray": tensor_proto.make_ndarray,
        "make_tensor_proto": tensor_proto.make_tensor_proto,
        **{f"train.{name}": message for name, message in record_messages.MESSAGES.items()},
        "GradientTape": GradientTape,
        "gradients": gradients,
        "IndexedSlices": IndexedSlices,
        "IndexedSlicesSpec": IndexedSlicesSpec,
        "Module": Module,
        "RegisterGradient": registered_gradient.RegisterGradient,
        "Tensor": Tensor,
        "TensorShape": tensor_shape.TensorShape,
        "TypeSpec": TypeSpec,
        "AggregationMethod": arguments.AggregationMethod,
        "UnconnectedGradients": arguments.UnconnectedGradients,
        "Variable": Variable,
        **{f"errors.{name}": number for name, number in errors.NUMBERS.items()},
        "compat.v1.set_random_seed": stateful.set_seed,
        "config.experimental_functions_run_eagerly": functions.functions_run_eagerly,
        "config.experimental_run_functions_eagerly": functions.run_functions_eagerly,
        "connect": sessions.connect,
        "constant": dispatch.constant,
        "convert_to_tensor": dispatch.convert_to_tensor,
        "custom_gradient": custom_gradient.custom_gradient,
        "debugging.check_gradients": check_gradients.check_gradients,
        "debugging.disable_traceback_filtering": tracebacks.disable_traceback_filtering,
        "debugging.enable_traceback_filtering": tracebacks.enable_traceback_filtering,
        "debugging.get_log_device_placement": execution.get_log_device_placement,
        "debugging.is_traceback_filtering_enabled": tracebacks.is_traceback_filtering_enabled,
        "debugging.set_log_device_placement": execution.set_log_device_placement,
        "experimental.Optional": Optional,
        "fingerprint": buckets.fingerprint,
        "function": functions.function,
        "get_current_name_scope": get_current_name_scope,
        "get_logger": logs.get_logger,
        "grad_pass_through": custom_gradient.grad_pass_through,
        "init_scope": functions.init_scope,
        "linalg.experimental.conjugate_gradient": conjugate_gradient,
        "name_scope": name_scope,
        "newaxis": indexing.newaxis,
        "type_spec_from_value": type_specs.type_spec_from_value,
        "random.all_candidate_sampler": candidates.all_candidate_sampler,
        "random.fixed_unigram_candidate_sampler": candidates.fixed_unigram_candidate_sampler,
        "random.log_uniform_candidate_sampler": candidates.log_uniform_candidate_sampler,
        "random.uniform_candidate_sampler": candidates.uniform_candidate_sampler,
        "random.experimental.stateless_fold_in": stateless.fold_in,
        "random.experimental.index_shuffle": stateless.index_shuffle,
        "random_index_shuffle": stateless.random_index_shuffle,
        "random.experimental.stateless_shuffle": stateless.stateless_shuffle,
        "random.experimental.stateless_split": stateless.split,
        "profiler.experimental.Trace": Trace,
        "recompute_grad": custom_gradient.recompute_grad,
        "types.experimental.TensorLike": to.ConvertibleToTensor,
    }


@functools.cache
def by_module() -> dict[str, dict[str, Any]]:
    """Returns the names and objects of each public module, by its path ("": `tf`); modules are None."""
    modules: dict[str, dict[str, Any]] = {"": {}}
    for dotted, value in names().items():
        path, _, name = dotted.rpartition(".")
        modules.setdefault(path, {})[name] = value
        while path:
            outer, _, last = path.rpartition(".")
            modules.setdefault(outer, {})[last] = None
            path = outer
    return modules


# ---------------------------------------------------------------------------------------------------- where names are
FILE: Final = Path(__file__).resolve().parent.parent / "client" / "teletape" / "names" / "table.py"
_HEAD: Final = '''\
"""Where each public name is. Written by `make reference` from the lists in scripts/public_surface.py.

Long because it has every name.
"""

from __future__ import annotations

from typing import Final

'''
#: Tables of names that no statement defines, and what their keys lack of the public name.
_TABLES: Final = (
    (errors, "NUMBERS", "errors."),
    (numpy_types, "NAMES", "experimental.numpy."),
    (record_messages, "MESSAGES", "train."),
)


def files() -> dict[Path, str]:
    """The text of the generated table."""
    homes = {dotted: place(dotted, value) for dotted, value in names().items()}
    forms = {dotted for dotted, value in names().items() if _has_form(value)}
    texts = [
        _HEAD,
        "#: Public names: the module and the name there; in brackets the key of a table, or an argument.",
        f"NAMES: Final = {dict(sorted(homes.items()))!r}",
        "#: Keras's modules, which are imported when first used.",
        f"LAZY: Final = {LAZY!r}",
        "#: Public classes, by module.",
        f"CLASSES: Final = {_classes()!r}",
        "#: Functions that have a form for ragged tensors.",
        f"FORMS: Final = frozenset({sorted(forms)!r})",
    ]
    return {FILE: formatted("\n".join(texts), FILE, "I")}


def place(dotted: str, value: Any) -> str:
    """Where a public name is: `module:name`, `module:table[key]`, or `module:function(key)`."""
    last = dotted.rpartition(".")[2]
    if dotted in PLACES:
        return PLACES[dotted]
    if getattr(value, "__module__", "") == raw.__name__:
        return f"{raw.__name__.removeprefix('teletape.')}:function({last})"
    homes = [(getattr(value, "__module__", None), getattr(value, "__name__", None))]
    homes += [(module.__name__, last) for module in _own_modules() if last in vars(module)]
    for home, name in homes:
        module = sys.modules.get(home) if isinstance(home, str) else None
        if module in _own_modules() and isinstance(name, str) and vars(module).get(name, names) is value:
            return f"{home.removeprefix('teletape.')}:{name}"
    for module, table, prefix in _TABLES:
        key = dotted.removeprefix(prefix)
        if getattr(module, table).get(key, names) is value:
            return f"{module.__name__.removeprefix('teletape.')}:{table}[{key}]"
    for module in _own_modules():
        for name, other in vars(module).items():
            if other is value and value is not None:
                return f"{module.__name__.removeprefix('teletape.')}:{name}"
    raise TypeError(f"tf.{dotted}: no module has {value!r}")


@functools.cache
def _own_modules() -> list[ModuleType]:
    """The modules of the SDK that are files, those with a list of public names first."""
    modules = [
        module
        for name, module in sorted(sys.modules.items())
        if name.startswith("teletape.") and getattr(module, "__file__", None)
    ]
    return sorted(modules, key=lambda module: not hasattr(module, "__all__"))


def _has_form(value: Any) -> bool:
    return isinstance(value, FunctionType) and (value in of_functions.FORMS or value in ragged_strings.FORMS)


def _classes() -> dict[str, list[str]]:
    """The public classes of the SDK: their names by their module."""
    homes: dict[str, set[str]] = {}
    for value in [*names().values(), functions.Function, Session]:
        if isinstance(value, type) and value.__module__.startswith("teletape."):
            home = errors.__name__ if value.__module__ == errors.PUBLIC else value.__module__
            homes.setdefault(home.removeprefix("teletape."), set()).add(value.__qualname__)
    return {home: sorted(own) for home, own in sorted(homes.items())}
