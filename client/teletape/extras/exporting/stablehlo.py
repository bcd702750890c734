"""`tf.stablehlo.save`: a function as a StableHLO program for XLA, IREE and others, with its variables as constants."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, Final

import numpy as np

from teletape.core.errors import InvalidArgumentError, UnimplementedError
from teletape.extras.exporting.stablehlo_text import ELEMENTS, Value, Writer, numbers, pairs, type_of
from teletape.extras.exporting.steps import Written, axes_of, operators, written
from teletape_engine.spec import Spec

__all__ = ["save"]

_BOOL: Final = np.dtype(bool)
_WHO: Final = "tf.stablehlo.save"
#: Writes a step: the writer, its inputs, its attributes, the spec of its result -> the result.
Form = Callable[[Writer, list[Value], Mapping[str, Any], Spec], Value]


def save(fn: Callable[..., Any], path: str | PathLike[str], input_signature: Sequence[Any] | None = None) -> None:
    """Writes a function as a StableHLO program, in MLIR's text, that XLA, IREE and others compile.

    The function `main` takes the inputs and returns the outputs, in the order that the first lines of the file say.

    Args:
        fn: A function of tensors, a tf.function, or a Keras model, which is called with `training=False`.
        path: The file: `fn.mlir`.
        input_signature: For each argument its tf.TensorSpec; None: that of the tf.function or model. Every size is
            given, as XLA compiles a program for one size.

    Raises:
        InvalidArgumentError: A size is open, the function needs values while it is traced, draws random numbers, or
            returns something else than dense tensors.
        UnimplementedError: It has ops without a form in StableHLO here, or complex numbers; the message names them.

    Example:
        tf.stablehlo.save(lambda x: tf.tanh(x) * 2.0, "wave.mlir", [tf.TensorSpec([8, 3])])
    """
    function = written(fn, input_signature, FORMS, _WHO, "StableHLO")
    open_sizes = [
        f"{label}: {list(shape)}"
        for label, (_, _, shape) in function.described.declared.items()
        if any(isinstance(size, str) for size in shape)
    ]
    if open_sizes:
        raise InvalidArgumentError(
            f"{_WHO}: {', '.join(open_sizes)}: a program is for one size: give each in input_signature"
        )
    unknown = sorted({np.dtype(spec.dtype).name for spec in function.specs.values()} - ELEMENTS.keys())
    if unknown:
        raise UnimplementedError(f"{_WHO}: the function has values of {', '.join(unknown)}, which have no form here")
    Path(path).write_text(_program(function), encoding="utf-8")


def _program(function: Written) -> str:
    """Returns the text of a function whose ops all have a form."""
    traced, declared, _, outputs = function.described
    writer = Writer()
    engine = traced.function
    values = {name: Value(f"%arg{number}", function.specs[name]) for number, name in enumerate(engine.inputs)}
    arguments = [values[name] for name in engine.inputs[: len(declared)]]
    for name, weight in zip(engine.inputs[len(declared) :], function.weights(), strict=True):
        values[name] = writer.constant(weight)
    for step in function.steps():
        inputs = [values[item] if isinstance(item, str) else writer.constant(item) for item in step.inputs]
        value = values[step.output] = FORMS[step.op](writer, inputs, step.attrs, step.spec)
        if (value.spec.shape, value.spec.dtype) != (step.spec.shape, step.spec.dtype):
            kinds = ", ".join([np.dtype(spec.dtype).name for spec in step.specs])
            raise UnimplementedError(f"{_WHO}: {step.op} has no form here for inputs of {kinds}")
    results = [values[engine.outputs[position]] for position in outputs.values()]
    types = ", ".join([type_of(value.spec) for value in results])
    names = ", ".join([value.name for value in results])
    parameters = ", ".join([f"{item.name}: {type_of(item.spec)}" for item in arguments])
    return "\n".join(
        [
            f"// Inputs: {', '.join(declared)}",
            f"// Outputs: {', '.join(outputs)}",
            f"module @{re.sub(r'[^A-Za-z0-9_]', '_', function.name)} {{",
            f"  func.func public @main({parameters}) -> ({types}) {{",
            *[f"    {line}" for line in writer.lines],
            f"    func.return {names} : {types}",
            "  }",
            "}",
            "",
        ]
    )


# -------------------------------------------------------------------------------------------------------------- forms
def _same(name: str) -> Form:
    return lambda writer, inputs, attrs, spec: writer.elementwise(name, *inputs)


def _compared(direction: str) -> Form:
    kind = f"comparison_direction = #stablehlo<comparison_direction {direction}>"
    return lambda writer, inputs, attrs, spec: writer.elementwise("compare", *inputs, dtype=_BOOL, attributes=kind)


def _with_shape(writer: Writer, inputs: list[Value], attrs: Mapping[str, Any], spec: Spec) -> Value:
    return inputs[0] if inputs[0].spec.shape == spec.shape else writer.op("reshape", inputs[:1], spec)


def _unchanged(writer: Writer, inputs: list[Value], attrs: Mapping[str, Any], spec: Spec) -> Value:
    return inputs[0]


def _reduced(writer: Writer, name: str, value: Value, axes: Sequence[int], *, keep: bool) -> Value:
    """Reduces by an op over axes; `keep` leaves them, with size 1."""
    shape = value.spec.shape
    first, region = writer.folding(name, value)
    rest = Spec.of(tuple([size for axis, size in enumerate(shape) if axis not in axes]), value.spec.dtype)
    result = writer.op("reduce", [value, first], rest, f"dimensions = {numbers(axes)}", region)
    sizes = Spec.of(tuple([1 if axis in axes else size for axis, size in enumerate(shape)]), value.spec.dtype)
    return _with_shape(writer, [result], {}, sizes) if keep else result


def _all_axes(value: Value, axis: Any) -> list[int]:
    """Returns the axes that an attribute names; None names all."""
    rank = len(value.spec.shape)
    return sorted({item % rank for item in (range(rank) if axis is None else axes_of(axis))})


def _reduction(name: str) -> Form:
    return lambda writer, inputs, attrs, spec: _reduced(
        writer, name, inputs[0], _all_axes(inputs[0], attrs["axis"]), keep=attrs["keepdims"]
    )


def _mean(writer: Writer, inputs: list[Value], attrs: Mapping[str, Any], spec: Spec) -> Value:
    axes = _all_axes(inputs[0], attrs["axis"])
    count = int(np.prod([inputs[0].spec.shape[axis] for axis in axes], dtype=int))
    total = _reduced(writer, "add", inputs[0], axes, keep=attrs["keepdims"])
    return writer.elementwise("divide", total, writer.filled(count, total))


def _shifted(writer: Writer, value: Value, axes: Sequence[int]) -> tuple[Value, Value]:
    """Returns the largest elements along axes, which stay, or 0 for infinities, and the value without them."""
    largest = _reduced(writer, "maximum", value, axes, keep=True)
    finite = writer.elementwise("is_finite", largest, dtype=_BOOL)
    largest = writer.op("select", [finite, largest, writer.filled(0, largest)], largest.spec)
    return largest, writer.elementwise("subtract", value, largest)


def _log_sum(writer: Writer, shifted: Value, axes: Sequence[int]) -> Value:
    total = _reduced(writer, "add", writer.elementwise("exponential", shifted), axes, keep=True)
    return writer.elementwise("log", total)


def _logsumexp(writer: Writer, inputs: list[Value], attrs: Mapping[str, Any], spec: Spec) -> Value:
    axes = _all_axes(inputs[0], attrs["axis"])
    largest, shifted = _shifted(writer, inputs[0], axes)
    return _with_shape(writer, [writer.elementwise("add", _log_sum(writer, shifted, axes), largest)], {}, spec)


def _log_softmax(writer: Writer, inputs: list[Value], attrs: Mapping[str, Any], spec: Spec) -> Value:
    axes = _all_axes(inputs[0], attrs["axis"])
    _, shifted = _shifted(writer, inputs[0], axes)
    return writer.elementwise("subtract", shifted, _log_sum(writer, shifted, axes))


def _softmax(writer: Writer, inputs: list[Value], attrs: Mapping[str, Any], spec: Spec) -> Value:
    axes = _all_axes(inputs[0], attrs["axis"])
    powers = writer.elementwise("exponential", _shifted(writer, inputs[0], axes)[1])
    return writer.elementwise("divide", powers, _reduced(writer, "add", powers, axes, keep=True))


def _matmul(writer: Writer, inputs: list[Value], attrs: Mapping[str, Any], spec: Spec) -> Value:
    batch = spec.shape[:-2]
    sides = [writer.broadcast(value, (*batch, *value.spec.shape[-2:])) for value in inputs]
    rank = len(spec.shape)
    transposed = [attrs[f"transpose_{side}"] or attrs[f"adjoint_{side}"] for side in "ab"]
    contracted = (rank - 2 if transposed[0] else rank - 1, rank - 1 if transposed[1] else rank - 2)
    batches = list(range(rank - 2))
    dimensions = [
        f"{side}_{kind}_dimensions = {axes}"
        for kind, both in (("batching", (batches, batches)), ("contracting", [[axis] for axis in contracted]))
        for side, axes in zip(("lhs", "rhs"), both, strict=True)
    ]
    return writer.op("dot_general", sides, spec, f"dot_dimension_numbers = #stablehlo.dot<{', '.join(dimensions)}>")


def _transpose(writer: Writer, inputs: list[Value], attrs: Mapping[str, Any], spec: Spec) -> Value:
    order = range(len(spec.shape))[::-1] if attrs["perm"] is None else attrs["perm"]
    return writer.op("transpose", inputs, spec, f"permutation = {numbers(order)}")


def _concat(writer: Writer, inputs: list[Value], attrs: Mapping[str, Any], spec: Spec) -> Value:
    return writer.op("concatenate", inputs, spec, f"dimension = {attrs['axis'] % len(spec.shape)} : i64")


def _cast(writer: Writer, inputs: list[Value], attrs: Mapping[str, Any], spec: Spec) -> Value:
    return writer.op("convert", inputs, spec)


def _where(writer: Writer, inputs: list[Value], attrs: Mapping[str, Any], spec: Spec) -> Value:
    return writer.op("select", [writer.broadcast(value, spec.shape) for value in inputs], spec)


def _relu(writer: Writer, inputs: list[Value], attrs: Mapping[str, Any], spec: Spec) -> Value:
    return writer.elementwise("maximum", inputs[0], writer.filled(0, inputs[0]))


def _softplus(writer: Writer, inputs: list[Value], attrs: Mapping[str, Any], spec: Spec) -> Value:
    power = writer.elementwise("exponential", writer.elementwise("negate", writer.elementwise("abs", inputs[0])))
    return writer.elementwise("add", writer.elementwise("log_plus_one", power), _relu(writer, inputs, attrs, spec))


def _softsign(writer: Writer, inputs: list[Value], attrs: Mapping[str, Any], spec: Spec) -> Value:
    size = writer.elementwise("add", writer.elementwise("abs", inputs[0]), writer.filled(1, inputs[0]))
    return writer.elementwise("divide", inputs[0], size)


def _linear_or_exponential(scale: float, alpha: float) -> Form:
    """`scale * x` above 0, and `scale * alpha * (exp(x) - 1)` below."""

    def write(writer: Writer, inputs: list[Value], attrs: Mapping[str, Any], spec: Spec) -> Value:
        value, below = inputs[0], writer.elementwise("exponential_minus_one", inputs[0])
        if (scale, alpha) != (1.0, 1.0):
            below = writer.elementwise("multiply", below, writer.filled(scale * alpha, value))
            value = writer.elementwise("multiply", value, writer.filled(scale, value))
        above = _compared("GT")(writer, [inputs[0], writer.filled(0, inputs[0])], attrs, spec)
        return writer.op("select", [above, value, below], spec)

    return write


def _gelu(writer: Writer, inputs: list[Value], attrs: Mapping[str, Any], spec: Spec) -> Value:
    value = inputs[0]
    if attrs["approximate"]:
        cube = writer.elementwise("multiply", writer.elementwise("multiply", value, value), value)
        inner = writer.elementwise("add", value, writer.elementwise("multiply", cube, writer.filled(0.044715, value)))
        share = writer.elementwise(
            "tanh", writer.elementwise("multiply", inner, writer.filled((2 / np.pi) ** 0.5, value))
        )
    else:
        share = writer.elementwise("chlo.erf", writer.elementwise("multiply", value, writer.filled(0.5**0.5, value)))
    share = writer.elementwise("add", share, writer.filled(1, value))
    return writer.elementwise("multiply", writer.elementwise("multiply", value, writer.filled(0.5, value)), share)


def _square(writer: Writer, inputs: list[Value], attrs: Mapping[str, Any], spec: Spec) -> Value:
    return writer.elementwise("multiply", inputs[0], inputs[0])


def _reciprocal(writer: Writer, inputs: list[Value], attrs: Mapping[str, Any], spec: Spec) -> Value:
    return writer.elementwise("divide", writer.filled(1, inputs[0]), inputs[0])


def _silu(writer: Writer, inputs: list[Value], attrs: Mapping[str, Any], spec: Spec) -> Value:
    return writer.elementwise("multiply", inputs[0], writer.elementwise("logistic", inputs[0]))


def _padded(attrs: Mapping[str, Any], sizes: Sequence[int], window: Sequence[int]) -> list[tuple[int, int]]:
    """Returns what is added before and after each axis of an image, for windows that reach over some sizes."""
    if attrs["paddings"] is not None:
        return [(before, after) for before, after in attrs["paddings"]]
    if attrs["padding"] == "VALID":
        return [(0, 0)] * len(sizes)
    totals = [
        max((-(-size // stride) - 1) * stride + reach - size, 0)
        for size, stride, reach in zip(sizes, attrs["strides"], window, strict=True)
    ]
    return [(total // 2, total - total // 2) for total in totals]


def _conv2d(writer: Writer, inputs: list[Value], attrs: Mapping[str, Any], spec: Spec) -> Value:
    image, filters = (value.spec.shape for value in inputs)
    dilations = attrs["dilations"]
    reach = [(size - 1) * dilation + 1 for size, dilation in zip(filters[:2], dilations, strict=True)]
    attributes = {
        "batch_group_count": "1 : i64",
        "dimension_numbers": "#stablehlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>",
        "feature_group_count": f"{image[3] // filters[2]} : i64",
        "padding": pairs(_padded(attrs, image[1:3], reach)),
        "rhs_dilation": numbers(dilations),
        "window_strides": numbers(attrs["strides"]),
    }
    return writer.op("convolution", inputs, spec, ", ".join(f"{name} = {value}" for name, value in attributes.items()))


def _windows(writer: Writer, name: str, value: Value, attrs: Mapping[str, Any], spec: Spec) -> Value:
    """Reduces each window of images by an op."""
    first, region = writer.folding(name, value)
    added = _padded(attrs, value.spec.shape[1:3], attrs["ksize"])
    attributes = (
        f"padding = {pairs([(0, 0), *added, (0, 0)])}, window_dimensions = {numbers([1, *attrs['ksize'], 1])}, "
        f"window_strides = {numbers([1, *attrs['strides'], 1])}"
    )
    return writer.op("reduce_window", [value, first], spec, attributes, region)


def _max_pool(writer: Writer, inputs: list[Value], attrs: Mapping[str, Any], spec: Spec) -> Value:
    return _windows(writer, "maximum", inputs[0], attrs, spec)


def _avg_pool(writer: Writer, inputs: list[Value], attrs: Mapping[str, Any], spec: Spec) -> Value:
    counts = _windows(writer, "add", writer.filled(1, inputs[0]), attrs, spec)
    return writer.elementwise("divide", _windows(writer, "add", inputs[0], attrs, spec), counts)


#: The form of each op.
FORMS: Final[dict[str, Form]] = {
    **{
        op: _same(operator)
        for op, operator in operators(
            "add:add sub:subtract mul:multiply div:divide maximum:maximum minimum:minimum pow:power neg:negate "
            "exp:exponential log:log sqrt:sqrt rsqrt:rsqrt abs:abs tanh:tanh sigmoid:logistic erf:chlo.erf "
            "sin:sine cos:cosine tan:tan floor:floor ceil:ceil round:round_nearest_even sign:sign logical_and:and "
            "logical_or:or logical_not:not bias_add:add"
        ).items()
    },
    **{
        op: _compared(direction)
        for op, direction in operators("equal:EQ greater:GT greater_equal:GE less:LT less_equal:LE").items()
    },
    "avg_pool": _avg_pool,
    "cast": _cast,
    "concat": _concat,
    "conv2d": _conv2d,
    "elu": _linear_or_exponential(1.0, 1.0),
    "expand_dims": _with_shape,
    "gelu": _gelu,
    "identity": _unchanged,
    "log_softmax": _log_softmax,
    "matmul": _matmul,
    "max_pool": _max_pool,
    "reciprocal": _reciprocal,
    "reduce_logsumexp": _logsumexp,
    "reduce_max": _reduction("maximum"),
    "reduce_mean": _mean,
    "reduce_min": _reduction("minimum"),
    "reduce_prod": _reduction("multiply"),
    "reduce_sum": _reduction("add"),
    "relu": _relu,
    "reshape": _with_shape,
    "selu": _linear_or_exponential(1.0507009873554805, 1.6732632423543772),
    "silu": _silu,
    "softmax": _softmax,
    "softplus": _softplus,
    "softsign": _softsign,
    "square": _square,
    "squeeze": _with_shape,
    "stop_gradient": _unchanged,
    "transpose": _transpose,
    "where": _where,
}
