"""Replacements for TensorFlow's names that Teletape does not have: for errors and for the compatibility page."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

_CROSS: Final = "tf.strings.join of the features, then tf.strings.to_hash_bucket_fast"
_RAGGED_SHAPE: Final = "tf.shape of a ragged tensor, its row_lengths() and bounding_shape()"
_RAGGED_BATCH: Final = "padded_batch, then tf.RaggedTensor.from_tensor with the lengths of the rows"
_RAGGED_FEATURE: Final = (
    "tf.io.FixedLenSequenceFeature with allow_missing=True, then tf.RaggedTensor.from_tensor of the padded rows"
)
_NO_GRAPH: Final = "there are no graphs: ops run at once, and tf.function records them as one command"
_SAVED: Final = (
    "save weights with tf.train.Checkpoint, model.save('model.keras') or model.save_weights; a function is traced "
    "again in the program that uses it"
)
_TPU: Final = "tf.connect to a server with a GPU; there are no TPUs"
_NO_QUANTIZED: Final = "float16 and bfloat16 tensors; tf.keras's model.quantize"
_NO_HANDLES: Final = "there are no handles: pass the variable, the TensorArray or the dataset itself"
_TRACED_FOR_SHAPES: Final = "pass the value itself: a function is traced for its shapes"
_MEASURED: Final = "timeit, or tf.session().profile() for time by op and by line"
_CHECKED_NUMBERS: Final = (
    "tf.debugging.check_numerics of the values in question; tape.gradient_statistics counts what is not finite in "
    "gradients"
)
_COUNTED: Final = "tf.random.fixed_unigram_candidate_sampler with unigrams that the program counts"
_CHARACTERS: Final = "decode with tf.strings.unicode_decode, and look the code points up with Python's unicodedata"
_OLD_OPTIMIZER: Final = "an optimizer of tf.keras.optimizers"
_OLD_LOSS: Final = "a loss of tf.keras.losses"
_OLD_LAYER: Final = "a layer of tf.keras.layers"
_KERAS_INPUT: Final = (
    "tf.keras.utils.FeatureSpace or layers of tf.keras.layers such as Normalization and CategoryEncoding"
)

#: By a name or by the module that has it, without the leading `tf.` or `tf.compat.v1.`.
REMEDIES: Final[Mapping[str, str]] = {
    "AUTO_REUSE": "make a tf.Variable once and use it again",
    "ConfigProto": "nothing needs to be configured; tf.config accepts the settings of devices",
    "CriticalSection": "the ops of a session run one after the other",
    "DeviceSpec": "pass the name of a device to tf.device",
    "GPUOptions": "nothing needs to be configured; tf.config accepts the settings of devices",
    "Graph": _NO_GRAPH,
    "GraphDef": _NO_GRAPH,
    "GraphKeys": "tf.Module and Keras's models list their variables",
    "InteractiveSession": "ops run at once: read a value with .numpy()",
    "Operation": _NO_GRAPH,
    "OptionalSpec": _TRACED_FOR_SHAPES,
    "Session": "TensorFlow 2 runs ops at once; decorate a function with tf.function to run it as one command",
    "app": "call main() under `if __name__ == '__main__':`",
    "approx_top_k": "tf.math.approx_max_k and tf.math.approx_min_k",
    "check_pinned": "leave it out: where arrays lie in memory is not for programs to see",
    "contrib": "TensorFlow 2 has none either: what was kept is in tf, tf.nn and tf.keras, mostly under its old name",
    "conv2d_backprop_filter_v2": "the gradient of tf.nn.conv2d by its filters",
    "conv2d_backprop_input_v2": "tf.nn.conv2d_transpose, or the gradient of tf.nn.conv2d by its input",
    "debugging.disable_check_numerics": _CHECKED_NUMBERS,
    "debugging.enable_check_numerics": _CHECKED_NUMBERS,
    "debugging.experimental": "tf.summary, and tf.session().profile() for time by op and by line",
    "data.experimental.dense_to_ragged_batch": _RAGGED_BATCH,
    "disable_eager_execution": _NO_GRAPH,
    "disable_v2_behavior": _NO_GRAPH,
    "dtensor": "there is one device: leave tensors whole",
    "dtypes.QUANTIZED_DTYPES": _NO_QUANTIZED,
    "dtypes.qint16": _NO_QUANTIZED,
    "dtypes.qint32": _NO_QUANTIZED,
    "dtypes.qint8": _NO_QUANTIZED,
    "dtypes.quint16": _NO_QUANTIZED,
    "dtypes.quint8": _NO_QUANTIZED,
    "dtypes.resource": _NO_HANDLES,
    "dtypes.variant": _NO_HANDLES,
    "estimator": "tf.keras.Model with fit, or a loop of your own",
    "experimental.DynamicRaggedShape": _RAGGED_SHAPE,
    "experimental.dtensor": "there is one device: leave tensors whole",
    "experimental.tensorrt": _NO_GRAPH,
    "feature_column": _KERAS_INPUT,
    "flags": "argparse",
    "get_default_graph": _NO_GRAPH,
    "get_variable": "make a tf.Variable",
    "global_variables": "tf.Module and Keras's models list their variables",
    "global_variables_initializer": "a tf.Variable has its value as soon as it is made",
    "graph_util": _NO_GRAPH,
    "hessians": "tf.GradientTape.jacobian of a gradient",
    "image.decode_jxl": "convert the file to PNG or WebP first: Pillow reads no JPEG XL",
    "image.generate_bounding_box_proposals": "decode the boxes with ops, then tf.image.non_max_suppression",
    "import_graph_def": _NO_GRAPH,
    "io.RaggedFeature": _RAGGED_FEATURE,
    "io.decode_json_example": "read the JSON in Python, and make a tf.train.Example of it",
    "io.decode_jxl": "convert the file to PNG or WebP first: Pillow reads no JPEG XL",
    "io.decode_proto": "parse the messages in Python, with the classes of their protocol buffers",
    "io.encode_proto": "make the messages in Python, with the classes of their protocol buffers",
    "io.match_filenames_once": "tf.io.matching_files",
    "io.write_graph": _NO_GRAPH,
    "layers": _OLD_LAYER,
    "lite": "export the weights, and convert them with TensorFlow itself",
    "load_library": "write the op with tf.custom_gradient, or with tf.py_function",
    "load_op_library": "write the op with tf.custom_gradient, or with tf.py_function",
    "local_variables_initializer": "a tf.Variable has its value as soon as it is made",
    "lookup": "tf.lookup.StaticHashTable of a tf.lookup.KeyValueTensorInitializer",
    "losses": _OLD_LOSS,
    "mlir": _NO_GRAPH,
    "nn.learned_unigram_candidate_sampler": _COUNTED,
    "nondifferentiable_batch_function": "call the function on the whole batch",
    "placeholder": "pass the value as an argument of a tf.function",
    "profiler": "tf.session().profile() for time by op and by line; a server answers GET /metrics",
    "py_func": "tf.py_function or tf.numpy_function",
    "qint16": _NO_QUANTIZED,
    "qint32": _NO_QUANTIZED,
    "qint8": _NO_QUANTIZED,
    "quantization": _NO_QUANTIZED,
    "queue": "tf.data.Dataset",
    "quint16": _NO_QUANTIZED,
    "quint8": _NO_QUANTIZED,
    "random.learned_unigram_candidate_sampler": _COUNTED,
    "random_normal": "tf.random.normal",
    "random_uniform": "tf.random.uniform",
    "reset_default_graph": _NO_GRAPH,
    "resource": _NO_HANDLES,
    "saved_model": _SAVED,
    "sparse.cross": _CROSS,
    "sparse.cross_hashed": _CROSS,
    "sparse.sampled_addmm": "tf.gather the rows and columns of the places, and tf.reduce_sum their products",
    "strings.unicode_script": _CHARACTERS,
    "sysconfig": "nothing is compiled against Teletape",
    "test.Benchmark": _MEASURED,
    "test.assert_equal_graph_def": _NO_GRAPH,
    "test.benchmark_config": _MEASURED,
    "test.create_local_cluster": "start a server with `teletape serve`, and tf.connect to it",
    "to_double": "tf.cast(x, tf.float64)",
    "to_float": "tf.cast(x, tf.float32)",
    "to_int32": "tf.cast(x, tf.int32)",
    "to_int64": "tf.cast(x, tf.int64)",
    "tpu": _TPU,
    "train.AdagradOptimizer": _OLD_OPTIMIZER,
    "train.AdamOptimizer": _OLD_OPTIMIZER,
    "train.GradientDescentOptimizer": _OLD_OPTIMIZER,
    "train.MomentumOptimizer": _OLD_OPTIMIZER,
    "train.Optimizer": _OLD_OPTIMIZER,
    "train.RMSPropOptimizer": _OLD_OPTIMIZER,
    "train.Saver": "tf.train.Checkpoint",
    "train.TrackableView": _SAVED,
    "train.get_global_step": "count the steps in a tf.Variable, or read optimizer.iterations",
    "train.get_or_create_global_step": "count the steps in a tf.Variable, or read optimizer.iterations",
    "trainable_variables": "tf.Module and Keras's models list their variables",
    "variable_creator_scope": "pass the arguments where the variables are made",
    "variable_scope": "tf.Module and tf.name_scope",
    "variant": _NO_HANDLES,
    "xla": "a tf.function is planned by the engine; jit_compile=True is accepted",
}


def remedy(dotted: str) -> str | None:
    """Returns the replacement for a name, or for the module that has it; None if there is none."""
    path = dotted.removeprefix("compat.v1.")
    while path:
        if path in REMEDIES:
            return REMEDIES[path]
        path = path.rpartition(".")[0]
    return None
