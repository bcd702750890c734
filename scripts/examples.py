"""Examples for the reference: calls that are run when the page is written, with their results and gradients.

An op's example is the first of its samples that is short to print. A function's example is the call under "Example:"
in its docstring. What the page says of their results and gradients is what the run gave.
"""

import ast
import inspect
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

import teletape as tf
from teletape.core.calls.dispatch import call
from teletape_engine.catalogue.op import CATALOGUE, Op, Sample

SHOWN = 12  #: Elements of an array that is printed; of a longer one the dtype and the shape are.
DIGITS = 3


class Run(NamedTuple):
    """What a call gave.

    Attributes:
        result: As text.
        gradients: For each input that can be differentiated by: "dense", "IndexedSlices", "None" or "LookupError".
        ops: The ops that a tape recorded, each once, in the order of their first calls.
    """

    result: str
    gradients: dict[str, str]
    ops: tuple[str, ...]


# ----------------------------------------------------------------------------------------------------------------- ops
def of_op(op: Op) -> tuple[str, Run]:
    """A call of an op, as text, and what it gives."""
    sample = min(op.samples(), key=_length)
    inputs = [_rounded(value) for value in sample.inputs]
    run = _of_sample(op, inputs, sample)
    shown = [text(value) for value in inputs] + [f"{name}={_attribute(v)}" for name, v in sample.attrs.items()]
    return f"{op.name}({', '.join(shown)})", run


def _of_sample(op: Op, inputs: Sequence[Any], sample: Sample) -> Run:
    names = [f"{op.inputs[0]}[{i}]" for i in range(len(inputs))] if op.variadic else list(op.inputs)
    tensors = [tf.constant(value) if isinstance(value, np.ndarray | np.generic) else value for value in inputs]
    return _run(lambda: call(op, tensors, **sample.attrs), dict(zip(names, tensors, strict=True)))


def _length(sample: Sample) -> tuple[bool, int]:
    """How far a sample is from an example's: a few elements, and no axis of length 0."""
    sizes = [np.size(value) for value in sample.inputs]
    return 0 in sizes, abs(sum(sizes) - 6)


def _rounded(value: Any) -> Any:
    """An array with as many digits as are shown, so that the example is true as it is printed."""
    if isinstance(value, np.ndarray | np.generic) and value.dtype.kind in "fc" and np.size(value) <= SHOWN:
        return np.round(value, 2)
    return value


def _attribute(value: Any) -> str:
    return np.dtype(value).name.join('""') if isinstance(value, np.dtype) else repr(value).replace("'", '"')


# ----------------------------------------------------------------------------------------------------------- functions
def expression(function: Callable[..., Any]) -> str | None:
    """The call under "Example:" in a function's docstring, on one line; None: there is none."""
    lines = (inspect.getdoc(function) or "").split("\n")
    if "Example:" not in lines:
        return None
    rest = lines[lines.index("Example:") + 1 :]
    indented = rest[: next((i for i, line in enumerate(rest) if not line.startswith(" ")), len(rest))]
    line = " ".join(text.strip() for text in indented).strip()
    return re.sub(r",? +(?=[)\]}])", "", re.sub(r"(?<=[(\[{]) +", "", line))


def of_function(source: str) -> Run:
    """What a call gives that is written as `tf.name(…)`.

    Raises:
        ValueError: The text is no call.
    """
    tree = ast.parse(source, mode="eval").body
    if not isinstance(tree, ast.Call):
        raise ValueError(f"an example is a call; this is none: {source}")
    function, *positional = (_value(node) for node in (tree.func, *tree.args))
    keywords = {keyword.arg: _value(keyword.value) for keyword in tree.keywords if keyword.arg}
    bound = inspect.signature(function).bind(*positional, **keywords)
    for name, value in bound.arguments.items():
        annotation = str(inspect.signature(function).parameters[name].annotation)
        if annotation.startswith(("Sequence", "Iterable", "list")) and isinstance(value, list | tuple):
            bound.arguments[name] = [_tensor(item) if "Tensor" in annotation else item for item in value]
        elif "Tensor" in annotation:
            bound.arguments[name] = _tensor(value)
    return _run(lambda: function(*bound.args, **bound.kwargs), dict(_tensors(bound.arguments)))


def _value(node: ast.expr) -> Any:
    return eval(compile(ast.Expression(node), "example", "eval"), {"tf": tf, "np": np})  # noqa: S307  # our docstrings


def _tensor(value: Any) -> Any:
    """A list or number of real or complex numbers as a tensor, so that it can be watched; other values as they are."""
    if isinstance(value, np.ndarray) or (isinstance(value, list | float | complex) and _kind(value) in "fc"):
        return tf.constant(value)
    return value


def _kind(value: Any) -> str:
    try:
        return np.asarray(value).dtype.kind
    except ValueError:  # a list of tensors of several shapes
        return "O"


def _tensors(arguments: Any) -> Iterator[tuple[str, Any]]:
    for name, value in arguments.items():
        values = value if isinstance(value, list | tuple) else [value]
        for i, tensor in enumerate(values):
            if isinstance(tensor, tf.Tensor | tf.Variable | tf.sparse.SparseTensor):
                yield (name if tensor is value else f"{name}[{i}]"), getattr(tensor, "values", tensor)


# ----------------------------------------------------------------------------------------------------------- both kinds
def _run(function: Callable[[], Any], arguments: dict[str, Any]) -> Run:
    """Runs a call on a tape that watches the arguments which can be differentiated by."""
    watched = {
        name: value
        for name, value in arguments.items()
        if isinstance(value, tf.Tensor | tf.Variable) and (value.dtype.is_floating or value.dtype.is_complex)
    }
    tf.random.set_seed(0)  # what a call draws does not depend on the calls before it
    with tf.GradientTape(persistent=True) as tape:
        for tensor in watched.values():
            tape.watch(tensor)
        result = function()
    ops = [node["label"] for node in tape.graph().json["nodes"] if node["label"] in CATALOGUE]
    targets = [leaf for leaf in _leaves(result) if leaf.dtype.is_floating or leaf.dtype.is_complex]
    gradients = {name: _gradient(tape, targets, tensor) for name, tensor in watched.items()}
    return Run(text(result), gradients, tuple(dict.fromkeys(ops)))


def _gradient(tape: Any, targets: list[Any], source: Any) -> str:
    if not targets:
        return "None"
    try:
        gradient = tape.gradient(targets, source)
    except LookupError:  # as TensorFlow's, of an op that has no gradient and is not declared to have none
        return "LookupError"
    if gradient is None:
        return "None"
    return "IndexedSlices" if isinstance(gradient, tf.IndexedSlices) else "dense"


def _leaves(result: Any) -> Iterator[Any]:
    for leaf in tf.nest.flatten(result):
        if isinstance(leaf, tf.sparse.SparseTensor):
            yield leaf.values
        elif isinstance(leaf, tf.Tensor | tf.Variable):
            yield leaf


def text(value: Any) -> str:
    """A value as it is written in Python: short arrays as lists with few digits, long ones as dtype[shape]."""
    if isinstance(value, tf.sparse.SparseTensor):
        parts = ", ".join(f"{name}={text(getattr(value, name))}" for name in ("indices", "values", "dense_shape"))
        return f"SparseTensor({parts})"
    if isinstance(value, tf.IndexedSlices):
        return f"IndexedSlices(values={text(value.values)}, indices={text(value.indices)})"
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        parts = ", ".join(f"{name}={text(part)}" for name, part in zip(value._fields, value, strict=True))
        return f"{type(value).__name__}({parts})"
    if isinstance(value, list | tuple):
        return f"({', '.join(text(part) for part in value)})"
    if isinstance(value, tf.Tensor | tf.Variable):
        value = value.numpy()
    if isinstance(value, bytes):
        return repr(value) if len(value) <= 5 * SHOWN else "bytes"
    if not isinstance(value, np.ndarray | np.generic):
        return re.sub(r"<([\w.]+) object at \w+>", r"\1", repr(value))
    if np.size(value) > SHOWN or np.size(value) == 0:
        return f"{value.dtype.name}{list(np.shape(value))}"
    return _list(value.tolist())


def _list(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(_list(item) for item in value)}]"
    if isinstance(value, float):
        return f"{value:.{DIGITS}g}".replace("-0.0", "0.0") if value else "0"
    if isinstance(value, complex):
        return f"{_list(value.real)}{'+' if value.imag >= 0 else '-'}{_list(abs(value.imag))}j"
    return repr(value)
