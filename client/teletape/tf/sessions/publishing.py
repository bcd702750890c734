"""`tf.publish`: a function or a Keras model becomes a function of the server that others call without a session."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, NamedTuple

import numpy as np

from teletape.core.errors import FailedPreconditionError, InvalidArgumentError
from teletape.core.functions.function import Function, function
from teletape.core.functions.tensor_spec import TensorSpec
from teletape.core.functions.trace import Traced
from teletape.core.sessions.current import current
from teletape.core.tensors import nest
from teletape.core.tensors.tensor import TensorLike
from teletape_engine.commands import Call, schema
from teletape_engine.functions.compile import compile_function
from teletape_engine.functions.function import Function as EngineFunction

__all__ = ["Published", "publish"]

_TENSORS: Final = ("inputs", "outputs")
_NOT_IN_NAMES: Final = re.compile(r"[^A-Za-z0-9._-]")
_SIZES: Final = (2, 3)  #: A function whose steps are the same for both is taken to be the same for every size.


class Published(NamedTuple):
    """A version of a published function.

    Attributes:
        name: Its name: `POST /v1/published/{name}/value_and_gradient` calls the latest version.
        version: The hash of its content, which names this version for ever.
        inputs: For each input that a caller gives its name, dtype and shape; an axis of any size has a name.
        outputs: The same for each output.
        weights: The names of the variables and tensors that it took along.
        batched: Whether calls of several callers can be computed together.
        why_not_batched: Empty if they can.
    """

    name: str
    version: str
    inputs: tuple[tuple[str, str, tuple[int | str, ...]], ...]
    outputs: tuple[tuple[str, str, tuple[int | str, ...]], ...]
    weights: tuple[str, ...]
    batched: bool
    why_not_batched: str


def publish(
    fn: Callable[..., Any],
    name: str,
    input_signature: Sequence[Any] | None = None,
    *,
    visibility: str = "me",
    group: Sequence[str] = (),
    description: str = "",
    examples: Sequence[Mapping[str, Any]] = (),
) -> Published:
    """Publishes a function on the server of the program's session; whoever may see it calls it without a session.

    Variables and tensors that the function uses are its weights, with the values that they have now. What is published
    never changes: a later call publishes another version under the name.

    Args:
        fn: A function of tensors, a tf.function, a network of tf.onnx.load, or a Keras model, which is called with
            `training=False`. It assigns to nothing and draws no random numbers.
        name: Letters, digits, `-`, `_`, `.`.
        input_signature: For each argument its tf.TensorSpec, or a structure of them; None: that of the
            tf.function, network or model. A size None is any size; the first axis is named `batch` then.
        visibility: `me` (your key), `group` (also the keys in `group`), or `everybody` with a key.
        group: Names of keys.
        description: For people.
        examples: Inputs by name, for each call that is to be tried; the gradients at the first are compared with finite
            differences.

    Returns:
        The version.

    Raises:
        FailedPreconditionError: There is no server: connect first.
        InvalidArgumentError: The function needs values while it is traced, depends on a size that its signature leaves
            open, draws random numbers, or returns something else than dense tensors.
    """
    owner = current()
    if owner.local:
        raise FailedPreconditionError(f"tf.publish({name!r}): there is no server. Connect first: tf.connect(url)")
    traced, declared, names, outputs = described(fn, input_signature, f"tf.publish({name!r})")
    weights = dict(zip(names, traced.bound(), strict=True))
    facts = {
        "inputs": {label: {"dtype": dtype, "shape": list(shape)} for label, (_, dtype, shape) in declared.items()},
        "visibility": visibility,
        "group": list(group),
        "description": description,
        "examples": [{"inputs": {key: _as_json(value) for key, value in example.items()}} for example in examples],
    }
    version = owner.publish(name, traced.function, tuple(declared), weights, outputs, facts)["version"]
    return Published(
        name,
        version["version"],
        *(tuple([(row["name"], row["dtype"], tuple(row["shape"])) for row in version[key]]) for key in _TENSORS),
        tuple([row["name"] for row in version["weights"]]),
        version["batched"],
        version["why_not_batched"],
    )


class Described(NamedTuple):
    """A function for those who do not have the program.

    Attributes:
        traced: Its trace with 2 in place of open sizes, which is that for every size.
        declared: Spec, dtype and shape of each input, by name; sizes that are open have names.
        weights: A name for each capture.
        outputs: The names of the outputs, and their positions among the engine function's results.
    """

    traced: Traced
    declared: dict[str, tuple[Any, str, tuple[Any, ...]]]
    weights: list[str]
    outputs: dict[str, int]


def described(fn: Callable[..., Any], input_signature: Sequence[Any] | None, who: str) -> Described:
    """Returns a function with names for its inputs, weights and outputs.

    Args:
        fn: See `publish`.
        input_signature: See `publish`.
        who: The function that asks, for messages.

    Raises:
        InvalidArgumentError: See `publish`.
    """
    traceable, signature = _signature(fn, input_signature, who)
    concrete = traceable.get_concrete_function(*signature)
    traced = concrete.traced_with(_SIZES[0])
    declared = _declared(traceable, signature, who)
    if any(isinstance(length, str) for _, _, shape in declared.values() for length in shape):
        other = concrete.traced_with(_SIZES[1])
        traced, other = _for_any_size(traced, other), _for_any_size(other, traced)
        _check_sizes(traced, other, who)
    return Described(traced, declared, _weight_names(traced, declared, who), _outputs(traced, who))


def _signature(
    fn: Callable[..., Any], input_signature: Sequence[Any] | None, who: str
) -> tuple[Function[..., Any], list[Any]]:
    """Returns what is traced, and the specs of its arguments."""
    inputs = getattr(fn, "inputs", None)
    if input_signature is None and inputs and hasattr(fn, "call"):  # a Keras model
        specs = [TensorSpec(value.shape, value.dtype, value.name) for value in inputs]
        parameters = [inspect.Parameter(spec.name or "x", inspect.Parameter.POSITIONAL_ONLY) for spec in specs]

        def model(*tensors: Any) -> Any:
            return fn(tensors[0] if len(tensors) == 1 else list(tensors), training=False)

        model.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        return function(model), specs
    traceable = fn if isinstance(fn, Function) else function(fn)
    specs = input_signature
    if specs is None:
        specs = traceable.input_signature or getattr(fn, "input_signature", None)  # that of an ONNX network
    if specs is None:
        raise InvalidArgumentError(
            f"{who}: callers have to know what to send: give input_signature, a tf.TensorSpec for each argument"
        )
    return traceable, list(specs)


def _declared(
    traceable: Function[..., Any], signature: Sequence[Any], who: str
) -> dict[str, tuple[Any, str, tuple[Any, ...]]]:
    """Returns spec, dtype and shape of each input, by name; sizes that are any have names."""
    declared = {}
    parameters = list(traceable.parameter_names)
    if len(signature) > len(parameters):  # the last one takes any number
        parameters[-1:] = [f"{parameters[-1]}.{number}" for number in range(len(signature) - len(parameters) + 1)]
    for parameter, argument in zip(parameters, signature, strict=False):
        for label, spec in _labelled(argument, parameter):
            if not isinstance(spec, TensorSpec) or spec.shape.rank is None:
                raise InvalidArgumentError(
                    f"{who}: input {label}: expected a tf.TensorSpec of a known rank, got {spec!r}"
                )
            lengths = [
                ("batch" if axis == 0 else f"{label}_{axis}") if length is None else length
                for axis, length in enumerate(spec.shape.as_list())
            ]
            declared[label] = (spec, spec.dtype.name, tuple(lengths))
    return declared


def _labelled(structure: Any, label: str) -> Iterator[tuple[str, Any]]:
    """Yields the leaves of a structure with their paths: keys and positions, joined by dots."""
    if not nest.is_nested(structure):
        yield _NOT_IN_NAMES.sub("_", label), structure
        return
    children = structure.items() if isinstance(structure, Mapping) else enumerate(structure)
    for key, child in children:
        yield from _labelled(child, f"{label}.{key}" if label else str(key))


def _for_any_size(traced: Traced, other: Traced) -> Traced:
    """Returns a trace with -1 where a reshape has an open size: the only length that the other trace has otherwise."""
    function, commands = traced.function, list(traced.function.commands)
    for place, (ours, theirs) in enumerate(zip(commands, other.function.commands, strict=False)):
        if isinstance(ours, Call) and isinstance(theirs, Call) and ours.op == theirs.op == "reshape":
            shape, others = list(ours.attrs["shape"]), list(theirs.attrs["shape"])
            differ = [axis for axis, pair in enumerate(zip(shape, others, strict=False)) if pair[0] != pair[1]]
            if len(shape) == len(others) and len(differ) == 1 and -1 not in (*shape, *others):
                shape[differ[0]] = -1
                commands[place] = replace(ours, attrs={**ours.attrs, "shape": tuple(shape)})
    if all(ours is before for ours, before in zip(commands, function.commands, strict=True)):
        return traced
    general = compile_function(function.inputs, commands, function.outputs, call_sites=function.call_sites)
    return replace(traced, function=general)


def _check_sizes(traced: Traced, other: Traced, who: str) -> None:
    """Raises InvalidArgumentError if two traces for different sizes are not the same program."""
    for ours, theirs in zip(_steps(traced.function), _steps(other.function), strict=False):
        if ours != theirs:
            raise InvalidArgumentError(
                f"{who}: input_signature leaves a size open, and the function uses it: for the sizes 2 "
                f"and 3 it has the steps {_words(ours, theirs)} and {_words(theirs, ours)}. Use -1 in place of a size "
                "(tf.reshape), or give the size in input_signature"
            )
    if len(list(_steps(traced.function))) != len(list(_steps(other.function))):
        raise InvalidArgumentError(
            f"{who}: input_signature leaves a size open, and the number of the function's steps depends "
            "on it. Give the size in input_signature"
        )


def _steps(function: EngineFunction) -> Iterator[Any]:
    """Yields verb and fields of the steps of a function, and of those within it, without their lines in the program."""
    for step in function.steps:
        verb = step.command.verb
        names = [name for name in schema.FIELDS[verb] if name not in ("where", *schema.FUNCTION_FIELDS[verb])]
        yield verb, {name: _comparable(getattr(step.command, name)) for name in names}
        for inner in step.functions:
            yield from _steps(inner)


def _comparable(value: Any) -> Any:
    """Returns a field with arrays replaced by dtype, shape and bytes."""
    if isinstance(value, tuple):
        return tuple(map(_comparable, value))
    return (value.dtype, value.shape, value.tobytes()) if isinstance(value, np.ndarray) else value


def _words(step: tuple[str, Mapping[str, Any]], other: tuple[str, Mapping[str, Any]]) -> str:
    """Returns a step's name and the fields in which it differs from another one."""
    verb, fields = step
    differ = {name: value for name, value in fields.items() if value != other[1].get(name)}
    return f"{fields.get('op', verb)} {differ.get('attrs', differ)}"


def _weight_names(traced: Traced, declared: Mapping[str, Any], who: str) -> list[str]:
    """Returns a name for each capture: that of the variable, as far as the server allows it.

    Raises:
        InvalidArgumentError: The function draws random numbers, or captures strings.
    """
    names: list[str] = []
    for number, capture in enumerate(traced.captures):
        if capture.kind == "state":
            raise InvalidArgumentError(f"{who}: the function draws random numbers: make them an input")
        if capture.symbol.spec.dtype == object:
            raise InvalidArgumentError(f"{who}: the function uses a tensor of strings, which no server has")
        label = (capture.value.name or "") if capture.kind == "variable" else ""
        label = _NOT_IN_NAMES.sub("_", label.partition(":")[0].replace("/", ".")).lstrip("._-0123456789")
        label = label or f"constant_{number}"
        while label in names or label in declared:
            label += f"_{number}"
        names.append(label)
    return names


def _outputs(traced: Traced, who: str) -> dict[str, int]:
    """Returns the names of the outputs, and their positions among the engine function's results.

    Raises:
        InvalidArgumentError: A result is no dense tensor of numbers, or there is none.
    """
    outputs = {}
    is_named = isinstance(traced.structure, Mapping)
    for label, leaf in _labelled(traced.structure, "" if is_named else "output"):
        if leaf.index is None:
            raise InvalidArgumentError(f"{who}: {label} is no dense tensor of numbers: return such tensors alone")
        outputs[label] = leaf.index
    if not outputs:
        raise InvalidArgumentError(f"{who}: the function returns no tensor")
    return outputs


def _as_json(value: Any) -> dict[str, Any]:
    array = np.asarray(value.numpy() if isinstance(value, TensorLike) else value)
    if array.dtype == np.float64 and not isinstance(value, np.ndarray | np.generic | TensorLike):
        array = array.astype(np.float32)  # Python's numbers
    return {"dtype": array.dtype.name, "shape": list(array.shape), "data": array.tolist()}
