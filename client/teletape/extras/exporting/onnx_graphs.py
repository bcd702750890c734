"""`tf.onnx.save`: a function as an ONNX model, with its variables as initializers; ops without a form are named."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from typing import Any, Final

import numpy as np

from teletape.extras.exporting.steps import Written, axes_of, operators, written
from teletape_engine.spec import Spec

__all__ = ["save"]

OPSET: Final = 20
_IR: Final = 9  #: The version of the file that has this opset.


class Writer:
    """Collects the nodes of a graph."""

    def __init__(self, onnx: Any) -> None:
        self.onnx = onnx
        self.nodes: list[Any] = []

    def node(self, operator: str, *inputs: str, **attributes: Any) -> str:
        """Adds a node, and returns the name of its result."""
        result = f"teletape/{len(self.nodes)}"  # no name of an input or output has a slash
        self.nodes.append(self.onnx.helper.make_node(operator, inputs, [result], **attributes))
        return result

    def array(self, value: Any) -> str:
        """Adds a constant array, and returns its name."""
        return self.node("Constant", value=self.onnx.numpy_helper.from_array(np.asarray(value)))

    def integers(self, *values: int) -> str:
        """Adds a constant list of integers, and returns its name."""
        return self.array(np.array(values, np.int64))


#: Writes a step: the writer, the names and the specs of its inputs, its attributes -> the name of its result.
Form = Callable[[Writer, list[str], list[Spec], Mapping[str, Any]], str]


def save(fn: Callable[..., Any], path: str | PathLike[str], input_signature: Sequence[Any] | None = None) -> None:
    """Writes a function as an ONNX model, of opset 20, that ONNX Runtime and others run.

    Args:
        fn: A function of tensors, a tf.function, or a Keras model, which is called with `training=False`.
        path: The file.
        input_signature: For each argument its tf.TensorSpec; None: that of the tf.function or model. A size None is any
            size.

    Raises:
        ModuleNotFoundError: The package onnx is not installed: pip install 'teletape[onnx]'.
        InvalidArgumentError: The function needs values while it is traced, depends on a size that its signature leaves
            open, draws random numbers, or returns something else than dense tensors.
        UnimplementedError: It has ops without a form in ONNX here; the message names all of them.

    Example:
        tf.onnx.save(lambda x: tf.tanh(x) * 2.0, "wave.onnx", [tf.TensorSpec([None, 3])])
    """
    try:
        onnx = importlib.import_module("onnx")
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            "tf.onnx.save needs the package onnx: pip install 'teletape[onnx]'", name=error.name
        ) from None
    function = written(fn, input_signature, FORMS, "tf.onnx.save", "ONNX")
    onnx.save(_model(onnx, function), path)


def _model(onnx: Any, function: Written) -> Any:
    """Returns the model of a function whose ops all have a form."""
    traced, declared, weights, outputs = function.described
    helper, writer = onnx.helper, Writer(onnx)
    names = dict(zip(traced.function.inputs, [*declared, *weights], strict=True))
    for step in function.steps():
        inputs = [names[value] if isinstance(value, str) else writer.array(value) for value in step.inputs]
        names[step.output] = FORMS[step.op](writer, inputs, step.specs, step.attrs)
    results = []
    for label, position in outputs.items():
        spec = traced.specs[position]
        result = label if label not in declared and label not in weights else f"{label}.result"
        writer.nodes.append(helper.make_node("Identity", [names[traced.function.outputs[position]]], [result]))
        kind = helper.np_dtype_to_tensor_dtype(np.dtype(spec.dtype))
        results.append(helper.make_tensor_value_info(result, kind, [None] * len(spec.shape)))
    arguments = [
        helper.make_tensor_value_info(label, helper.np_dtype_to_tensor_dtype(np.dtype(dtype)), shape)
        for label, (_, dtype, shape) in declared.items()
    ]
    arrays = [
        onnx.numpy_helper.from_array(value, label) for label, value in zip(weights, function.weights(), strict=True)
    ]
    graph = helper.make_graph(writer.nodes, function.name, arguments, results, arrays)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=_IR)


# -------------------------------------------------------------------------------------------------------------- forms
def _same(operator: str, **attributes: Any) -> Form:
    return lambda writer, inputs, specs, attrs: writer.node(operator, *inputs, **attributes)


def _by_axis(operator: str) -> Form:
    return lambda writer, inputs, specs, attrs: writer.node(operator, *inputs, axis=attrs["axis"])


def _reduction(operator: str) -> Form:
    def write(writer: Writer, inputs: list[str], specs: list[Spec], attrs: Mapping[str, Any]) -> str:
        axes = () if attrs["axis"] is None else (writer.integers(*axes_of(attrs["axis"])),)
        return writer.node(operator, *inputs, *axes, keepdims=int(attrs["keepdims"]))

    return write


def _matmul(writer: Writer, inputs: list[str], specs: list[Spec], attrs: Mapping[str, Any]) -> str:
    sides = []
    for name, spec, side in zip(inputs, specs, "ab", strict=True):
        order = [*range(len(spec.shape) - 2), len(spec.shape) - 1, len(spec.shape) - 2]
        is_turned = attrs[f"transpose_{side}"] or attrs[f"adjoint_{side}"]
        sides.append(writer.node("Transpose", name, perm=order) if is_turned else name)
    return writer.node("MatMul", *sides)


def _transpose(writer: Writer, inputs: list[str], specs: list[Spec], attrs: Mapping[str, Any]) -> str:
    perm = attrs["perm"]
    return writer.node("Transpose", *inputs, **({} if perm is None else {"perm": list(perm)}))


def _reshape(writer: Writer, inputs: list[str], specs: list[Spec], attrs: Mapping[str, Any]) -> str:
    return writer.node("Reshape", *inputs, writer.integers(*attrs["shape"]), allowzero=int(0 in attrs["shape"]))


def _squeeze(writer: Writer, inputs: list[str], specs: list[Spec], attrs: Mapping[str, Any]) -> str:
    axes = () if attrs["axis"] is None else (writer.integers(*axes_of(attrs["axis"])),)
    return writer.node("Squeeze", *inputs, *axes)


def _expand(writer: Writer, inputs: list[str], specs: list[Spec], attrs: Mapping[str, Any]) -> str:
    return writer.node("Unsqueeze", *inputs, writer.integers(*axes_of(attrs["axis"])))


def _cast(writer: Writer, inputs: list[str], specs: list[Spec], attrs: Mapping[str, Any]) -> str:
    return writer.node("Cast", *inputs, to=writer.onnx.helper.np_dtype_to_tensor_dtype(np.dtype(attrs["dtype"])))


def _gelu(writer: Writer, inputs: list[str], specs: list[Spec], attrs: Mapping[str, Any]) -> str:
    return writer.node("Gelu", *inputs, approximate="tanh" if attrs["approximate"] else "none")


def _square(writer: Writer, inputs: list[str], specs: list[Spec], attrs: Mapping[str, Any]) -> str:
    return writer.node("Mul", inputs[0], inputs[0])


def _rsqrt(writer: Writer, inputs: list[str], specs: list[Spec], attrs: Mapping[str, Any]) -> str:
    return writer.node("Reciprocal", writer.node("Sqrt", *inputs))


def _silu(writer: Writer, inputs: list[str], specs: list[Spec], attrs: Mapping[str, Any]) -> str:
    return writer.node("Mul", inputs[0], writer.node("Sigmoid", inputs[0]))


def _images(operator: str) -> Form:
    """A convolution or a pool of images with their channels last: turned, and turned back."""

    def write(writer: Writer, inputs: list[str], specs: list[Spec], attrs: Mapping[str, Any]) -> str:
        image = writer.node("Transpose", inputs[0], perm=[0, 3, 1, 2])
        options: dict[str, Any] = {"strides": list(attrs["strides"])}
        if attrs["paddings"] is not None:
            before, after = zip(*attrs["paddings"], strict=True)
            options["pads"] = [*before, *after]
        else:
            options["auto_pad"] = {"SAME": "SAME_UPPER", "VALID": "VALID"}[attrs["padding"]]
        if operator == "Conv":
            filters = writer.node("Transpose", inputs[1], perm=[3, 2, 0, 1])
            groups = specs[0].shape[3] // specs[1].shape[2]
            result = writer.node("Conv", image, filters, dilations=list(attrs["dilations"]), group=groups, **options)
        else:
            result = writer.node(operator, image, kernel_shape=list(attrs["ksize"]), **options)
        return writer.node("Transpose", result, perm=[0, 2, 3, 1])

    return write


#: The form of each op.
FORMS: Final[dict[str, Form]] = {
    **{
        op: _same(operator)
        for op, operator in operators(
            "add:Add sub:Sub mul:Mul maximum:Max minimum:Min pow:Pow neg:Neg exp:Exp log:Log sqrt:Sqrt abs:Abs "
            "tanh:Tanh sigmoid:Sigmoid relu:Relu softplus:Softplus softsign:Softsign erf:Erf sin:Sin cos:Cos "
            "tan:Tan floor:Floor ceil:Ceil round:Round sign:Sign reciprocal:Reciprocal equal:Equal "
            "greater:Greater greater_equal:GreaterOrEqual less:Less less_equal:LessOrEqual logical_and:And "
            "logical_or:Or logical_not:Not where:Where identity:Identity stop_gradient:Identity div:Div "
            "bias_add:Add"
        ).items()
    },
    "avg_pool": _images("AveragePool"),
    "cast": _cast,
    "concat": _by_axis("Concat"),
    "conv2d": _images("Conv"),
    "elu": _same("Elu"),
    "expand_dims": _expand,
    "gelu": _gelu,
    "log_softmax": _by_axis("LogSoftmax"),
    "matmul": _matmul,
    "max_pool": _images("MaxPool"),
    "reduce_logsumexp": _reduction("ReduceLogSumExp"),
    "reduce_max": _reduction("ReduceMax"),
    "reduce_mean": _reduction("ReduceMean"),
    "reduce_min": _reduction("ReduceMin"),
    "reduce_prod": _reduction("ReduceProd"),
    "reduce_sum": _reduction("ReduceSum"),
    "reshape": _reshape,
    "rsqrt": _rsqrt,
    "selu": _same("Selu"),
    "silu": _silu,
    "softmax": _by_axis("Softmax"),
    "square": _square,
    "squeeze": _squeeze,
    "transpose": _transpose,
}
