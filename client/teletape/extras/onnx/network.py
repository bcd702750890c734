"""`tf.onnx.load`: the graph of an ONNX model as a function of tensors, with its weights as variables."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Mapping
from os import PathLike
from typing import Any, Final

import numpy as np

from teletape._generated.shapes.cast import cast
from teletape._generated.shapes.shape import reshape
from teletape.core.calls.dispatch import as_tensor, convert_to_tensor
from teletape.core.errors import InvalidArgumentError
from teletape.core.functions.tensor_spec import TensorSpec
from teletape.core.tensors.tensor import TensorLike
from teletape.core.variables.module import Module
from teletape.core.variables.variable import Variable
from teletape.extras.onnx import convolutions, elementwise, normalization, recurrent, reductions, resize, shapes
from teletape.extras.onnx.reading import Graph, Node, read
from teletape.extras.onnx.sizes import folded, host, tensor_of
from teletape.tf.control_flow.eager import cond

__all__ = ["Network", "load"]

#: The families of operators: to import them fills the table.
FAMILIES: Final = (elementwise, shapes, resize, reductions, convolutions, normalization, recurrent)
_NOT_IN_NAMES: Final = re.compile(r"\W")


def load(source: str | PathLike[str] | bytes) -> Network:
    """Reads an ONNX model, of opsets 13 to 21, and returns it as a function of tensors.

    Tapes, tf.function and tf.publish take it as any other function. An axis without a number in the model may have
    any size.

    Args:
        source: The path of a model, or its bytes.

    Raises:
        ModuleNotFoundError: The package onnx is not installed: pip install 'teletape[onnx]'.
        InvalidArgumentError: It is no ONNX model.
        UnimplementedError: The graph has operators, opsets, attributes or types without a form here; the message names
            all of them.

    Example:
        net = tf.onnx.load("net.onnx")
        tf.publish(net, "net")
    """
    return Network(*read(source))


class Network(Module):
    """The function of an ONNX graph: `network(*inputs)`, or with the inputs by name.

    It returns a tensor if the graph has one output, else a dict of tensors by the names of the outputs.

    Attributes:
        input_signature: A tf.TensorSpec for each input, with its name; a size None is any size.
        output_names: The names of the outputs.
        weights: The graph's arrays of floating numbers, by their names: variables. Those of rank 0, and the moving
            means and variances of batch normalizations, are not trainable.
    """

    def __init__(self, graph: Graph, name: str) -> None:
        super().__init__(_identifier(name))
        self.input_signature = tuple([TensorSpec(shape, dtype, label) for label, dtype, shape in graph.inputs])
        self.output_names = graph.outputs
        self.weights: dict[str, Variable] = {}
        trained, state = set(_used(graph, trained=True)), set(_used(graph, trained=False))
        self._arrays: dict[str, Any] = {}
        for label, array in _arrays(graph):
            if label in trained | state and (array.dtype.kind == "f" or array.dtype.name == "bfloat16"):
                trainable = label not in state and array.ndim > 0
                self.weights[label] = Variable(array, trainable=trainable, name=label)
            else:
                self._arrays[label] = array
        self._graph = _Program(graph)
        names = [_identifier(spec.name or "x") for spec in self.input_signature]
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        self.__signature__ = inspect.Signature([inspect.Parameter(label, kind) for label in names])

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Runs the graph."""
        arguments = self.__signature__.bind(*args, **kwargs).args
        values: dict[str, Any] = {**self._arrays, **self.weights}
        for spec, argument in zip(self.input_signature, arguments, strict=True):
            tensor = convert_to_tensor(argument, dtype=None if isinstance(argument, TensorLike) else spec.dtype)
            if tensor.dtype != spec.dtype or not spec.shape.is_compatible_with(tensor.shape):
                raise InvalidArgumentError(
                    f"{self.name}: input {spec.name!r} is {spec.dtype.name}{spec.shape}, got "
                    f"{tensor.dtype.name}{tensor.shape}"
                )
            values[spec.name or ""] = tensor
        results = [as_tensor(tensor_of(value)) for value in _run(self._graph.graph, values)]
        return results[0] if len(results) == 1 else dict(zip(self.output_names, results, strict=True))


class _Program:
    """Keeps a graph out of the attributes that a module looks into for variables."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph


def _identifier(name: str) -> str:
    text = _NOT_IN_NAMES.sub("_", name)
    return text if text.isidentifier() else f"_{text}"


def _graphs(graph: Graph) -> Iterator[Graph]:
    yield graph
    for node in graph.nodes:
        for value in node.attributes.values():
            if isinstance(value, Graph):
                yield from _graphs(value)


def _arrays(graph: Graph) -> Iterator[tuple[str, Any]]:
    for inner in _graphs(graph):
        yield from inner.arrays.items()


def _used(graph: Graph, *, trained: bool) -> Iterator[str]:
    """Yields the names of values that are used as weights: those that training changes, or those that it does not."""
    for inner in _graphs(graph):
        for node in inner.nodes:
            for position, name in enumerate(node.inputs):
                if node.form is None or position not in node.form.hosts:
                    is_state = node.form is not None and position in node.form.state
                    if is_state is not trained:
                        yield name
        if trained:
            yield from inner.outputs


def _run(graph: Graph, values: dict[str, Any]) -> list[Any]:
    """Runs the nodes of a graph on values by name, and returns its outputs."""
    for node in graph.nodes:
        inputs = [values[name] if name else None for name in node.inputs]
        try:
            results = _results(node, inputs, values)
        except InvalidArgumentError as error:
            error.add_note(f"in the ONNX node {node.operator} that computes {', '.join(node.outputs)}")
            raise
        for name, result in zip(node.outputs, results, strict=False):
            values[name] = result
    return [values[name] for name in graph.outputs]


def _results(node: Node, inputs: list[Any], values: Mapping[str, Any]) -> Any:
    if node.operator == "Constant":
        return [_constant(node)]
    if node.operator == "If":
        return _chosen(node, inputs[0], values)
    known = folded(node.operator, inputs, dict(node.attributes))
    if known is not None:
        return [known]
    form = node.form
    assert form is not None
    arguments = [
        _on_host(value, node, position) if position in form.hosts else tensor_of(value)
        for position, value in enumerate(inputs)
    ]
    options = {"place": node.place} if form.takes_place else {}
    results = form.compute(*arguments, **node.attributes, **options)
    return results if isinstance(results, list | tuple) else [results]


def _on_host(value: Any, node: Node, position: int) -> Any:
    if isinstance(value, Variable):
        return value.numpy()
    if isinstance(value, TensorLike):
        raise InvalidArgumentError(
            f"{node.operator}: input {position}, {node.inputs[position]!r}, shapes the result and is computed from "
            "values: only what follows from constants and from sizes can do that"
        )
    return value


def _constant(node: Node) -> Any:
    ((kind, value),) = node.attributes.items()
    dtype = {"value_int": np.int64, "value_ints": np.int64, "value_float": np.float32, "value_floats": np.float32}
    return host(value) if kind == "value" else np.asarray(value, dtype.get(kind))


def _chosen(node: Node, condition: Any, values: Mapping[str, Any]) -> Any:
    then, other = node.attributes["then_branch"], node.attributes["else_branch"]
    if not isinstance(condition, TensorLike):
        return _run(then if bool(condition) else other, dict(values))

    def branch(graph: Graph) -> Any:
        return lambda: [as_tensor(tensor_of(value)) for value in _run(graph, dict(values))]

    return cond(reshape(cast(condition, "bool"), ()), branch(then), branch(other))
