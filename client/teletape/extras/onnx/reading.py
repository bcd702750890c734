"""ONNX's messages become records; all of a graph that has no form here is refused at once, by name."""

from __future__ import annotations

import importlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from os import PathLike
from typing import Any, Final

import numpy as np

from teletape.core.errors import InvalidArgumentError, UnimplementedError
from teletape.extras.onnx.operators import NEWEST, OLDEST, Operator, Place, form_of

_DOMAINS: Final = ("", "ai.onnx")
_DTYPES: Final = ("to", "dtype")  #: Attributes that name a dtype.
#: Operators that the network itself computes: they choose a graph, or are values.
SPECIAL: Final = ("If", "Constant")


@dataclass(frozen=True, eq=False)
class Node:
    """One use of an operator; an input or output that is left out is empty."""

    operator: str
    form: Operator | None
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: Mapping[str, Any]
    place: Place


@dataclass(frozen=True, eq=False)
class Graph:
    """A graph: its nodes in the order in which they run.

    Attributes:
        inputs: For each input its name, dtype and shape; None: a size that is open.
        outputs: Names of values.
        arrays: The initializers.
        nodes: The nodes.
    """

    inputs: tuple[tuple[str, str, tuple[int | None, ...]], ...]
    outputs: tuple[str, ...]
    arrays: Mapping[str, Any]
    nodes: tuple[Node, ...]


@dataclass
class _Reader:
    onnx: Any
    opset: int
    axes: dict[str, frozenset[int] | None] = field(default_factory=dict)
    refused: Counter[str] = field(default_factory=Counter)


def read(source: str | PathLike[str] | bytes) -> tuple[Graph, str]:
    """Returns the graph of a model and its name.

    Args:
        source: A path, or the bytes of a model.

    Raises:
        ModuleNotFoundError: The package onnx is not installed.
        InvalidArgumentError: The bytes are no model.
        UnimplementedError: The graph has operators, opsets, attributes or types without a form here: all of them.
    """
    try:
        onnx = importlib.import_module("onnx")
        importlib.import_module("onnx.shape_inference")
        importlib.import_module("onnx.inliner")
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            "tf.onnx.load needs the package onnx: pip install 'teletape[onnx]'", name=error.name
        ) from None
    label = "bytes" if isinstance(source, bytes) else repr(str(source))
    try:
        model = onnx.load_model_from_string(source) if isinstance(source, bytes) else onnx.load(source)
    except OSError:
        raise
    except Exception as error:  # protobuf's, which may be any of two packages'
        raise InvalidArgumentError(f"tf.onnx.load: {label} is no ONNX model: {error}") from None
    if not model.opset_import or not model.graph.output:
        raise InvalidArgumentError(f"tf.onnx.load: {label} is no ONNX model: it has no opset, or no output")
    if model.functions:
        model = onnx.inliner.inline_local_functions(model)
    opset = next((entry.version for entry in model.opset_import if entry.domain in _DOMAINS), 0)
    reader = _Reader(onnx, opset)
    if not OLDEST <= opset <= NEWEST:
        reader.refused[f"opset {opset} (opsets {OLDEST} to {NEWEST} have a form)"] += 1
    model = onnx.shape_inference.infer_shapes(model, data_prop=True)
    graph = _graph(reader, model.graph, frozenset())
    if reader.refused:
        lines = [f"  {text}" + (f" ({count} times)" if count > 1 else "") for text, count in reader.refused.items()]
        raise UnimplementedError(
            f"tf.onnx.load: {label} has what has no form here:\n"
            + "\n".join(lines)
            + "\nExport it with other options, or replace these nodes; docs/onnx.md lists what has a form"
        )
    return graph, model.graph.name or "network"


def _graph(reader: _Reader, message: Any, outer: frozenset[str]) -> Graph:
    """Returns a graph that may use values of the graphs around it."""
    arrays = {entry.name: reader.onnx.numpy_helper.to_array(entry) for entry in message.initializer}
    reader.refused.update("sparse initializers" for _ in message.sparse_initializer)
    for value in (*message.input, *message.value_info, *message.output):
        if value.type.HasField("tensor_type") and value.type.tensor_type.HasField("shape"):
            dims = value.type.tensor_type.shape.dim
            reader.axes[value.name] = frozenset(axis for axis, dim in enumerate(dims) if not dim.HasField("dim_value"))
    reader.axes |= dict.fromkeys(arrays, frozenset())
    inputs = tuple(_inputs(reader, message, arrays))
    known = {"", *outer, *arrays, *(value.name for value in message.input)}
    nodes = []
    for node in message.node:
        nodes.append(_node(reader, node, known))
        known.update(node.output)
    outputs = tuple([value.name for value in message.output])
    _check_known(outputs, known, "the graph returns")
    return Graph(inputs, outputs, arrays, tuple(nodes))


def _check_known(names: Iterable[str], known: set[str], who: str) -> None:
    for name in names:
        if name not in known:
            raise InvalidArgumentError(f"tf.onnx.load: {who} {name!r}, which no node before it computes")


def _inputs(reader: _Reader, message: Any, arrays: Mapping[str, Any]) -> Iterator[Any]:
    for value in message.input:
        if value.name in arrays:
            continue
        kind = value.type.tensor_type
        if not value.type.HasField("tensor_type") or not kind.HasField("shape"):
            reader.refused[f"input {value.name!r}, which is no tensor of a known rank"] += 1
            continue
        dtype = _dtype(reader, kind.elem_type, f"input {value.name!r}")
        shape = [dim.dim_value if dim.HasField("dim_value") else None for dim in kind.shape.dim]
        yield value.name, dtype, tuple(shape)


def _dtype(reader: _Reader, number: int, label: str) -> str:
    dtype = np.dtype(reader.onnx.helper.tensor_dtype_to_np_dtype(number))
    if dtype.kind not in "biufc" and dtype.name != "bfloat16":
        reader.refused[f"dtype {reader.onnx.TensorProto.DataType.Name(number)} of {label}"] += 1
    return dtype.name


def _node(reader: _Reader, message: Any, known: set[str]) -> Node:
    name = message.op_type
    _check_known(message.input, known, f"a node {name} reads")
    attributes = {entry.name: _attribute(reader, name, entry, known) for entry in message.attribute}
    inputs, outputs = list(message.input), list(message.output)
    while inputs and not inputs[-1]:
        inputs.pop()
    while outputs and not outputs[-1]:
        outputs.pop()
    form = form_of(name, reader.opset) if message.domain in _DOMAINS else None
    if message.domain not in _DOMAINS:
        reader.refused[f"operator {message.domain}.{name}"] += 1
    elif form is not None:
        reader.refused.update(_refusals(name, form, attributes, inputs, outputs))
    elif name not in SPECIAL:
        newer = form_of(name, NEWEST)
        reader.refused[f"operator {name}" + (f" of opset {reader.opset}" if newer else "")] += 1
    first = inputs[0] if inputs else ""
    place = Place(len(outputs), reader.axes.get(first))
    return Node(name, form, tuple(inputs), tuple(outputs), attributes, place)


def _refusals(
    name: str, form: Operator, attributes: Mapping[str, Any], inputs: list[str], outputs: list[str]
) -> Iterator[str]:
    for key, value in attributes.items():
        allowed = form.values.get(key)
        elements = value if isinstance(value, tuple) else (value,)
        if key not in form.attributes:
            yield f"attribute {key} of {name}"
        elif allowed is not None and any(element not in allowed for element in elements):
            yield f"{key}={value!r} of {name}"
    yield from (f"{name} without its attribute {key}" for key in sorted(form.required - attributes.keys()))
    yield from (f"input {label} of {name}" for at, label in form.absent.items() if at < len(inputs) and inputs[at])
    if form.most is not None and len(inputs) > form.most:
        yield f"{name} with {len(inputs)} inputs"
    if form.results is not None and len(outputs) > form.results:
        yield f"{name} with {len(outputs)} outputs"


def _attribute(reader: _Reader, name: str, entry: Any, known: set[str]) -> Any:
    value = reader.onnx.helper.get_attribute_value(entry)
    if entry.name in _DTYPES and isinstance(value, int):
        return _dtype(reader, value, name)
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, reader.onnx.TensorProto):
        return reader.onnx.numpy_helper.to_array(value)
    if isinstance(value, reader.onnx.GraphProto):
        return _graph(reader, value, frozenset(known))
    if isinstance(value, int | float):
        return value
    if all(isinstance(element, int | float | bytes) for element in value):
        return tuple([element.decode() if isinstance(element, bytes) else element for element in value])
    reader.refused[f"attribute {entry.name} of {name}"] += 1
    return None
