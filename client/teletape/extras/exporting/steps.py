"""The steps of a function that is to be written in another form: what all forms share."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from teletape.core.errors import UnimplementedError
from teletape.core.sessions.current import current
from teletape.tf.sessions.publishing import Described, described
from teletape_engine.commands import Call
from teletape_engine.functions.compile import compile_function
from teletape_engine.recording.values import Literal
from teletape_engine.spec import Spec


class Step(NamedTuple):
    """A call of an op.

    Attributes:
        op: Its name.
        inputs: Names of values, and arrays that are constants.
        specs: Of the inputs.
        attrs: The op's attributes.
        output: The name of the result.
        spec: Of the result.
    """

    op: str
    inputs: list[str | np.ndarray[Any, Any]]
    specs: list[Spec]
    attrs: Mapping[str, Any]
    output: str
    spec: Spec


class Written(NamedTuple):
    """A function whose ops all have a form.

    Attributes:
        name: The function's name, for people.
        described: The function.
        specs: The spec of each value, with 2 in place of open sizes.
    """

    name: str
    described: Described
    specs: dict[str, Spec]

    def steps(self) -> Iterator[Step]:
        """Yields the steps in order."""
        for step in self.described.traced.function.steps:
            command = step.command
            assert isinstance(command, Call)
            inputs: list[str | np.ndarray[Any, Any]] = []
            for value in command.inputs:
                inputs.append(value if isinstance(value, str) else _constant(value, command, self.specs))
            specs = [self.specs[item] if isinstance(item, str) else Spec.of(item.shape, item.dtype) for item in inputs]
            output = command.outputs[0]
            yield Step(command.op, inputs, specs, command.attrs, output, self.specs[output])

    def weights(self) -> list[np.ndarray[Any, Any]]:
        """Returns the values that the captures have now, in order."""
        traced = self.described.traced
        bound = zip(traced.captures, traced.bound(), strict=True)
        values = current().fetch_all([value.value if capture.kind == "variable" else value for capture, value in bound])
        return [np.asarray(value) for value in values]


def written(
    fn: Callable[..., Any], signature: Sequence[Any] | None, forms: Collection[str], who: str, format_name: str
) -> Written:
    """Returns a function with the specs of its values.

    Args:
        fn: A function of tensors, a tf.function, or a Keras model.
        signature: See `tf.publish`.
        forms: The ops that have a form.
        who: The function that asks, for messages.
        format_name: Of the file, for messages.

    Raises:
        InvalidArgumentError: See `tf.publish`.
        UnimplementedError: An op has no form.
    """
    function = described(fn, signature, who)
    refused = sorted({_label(step.command) for step in function.traced.function.steps} - set(forms))
    if refused:
        raise UnimplementedError(
            f"{who}: the function has ops without a form in {format_name} here: {', '.join(refused)}. docs/onnx.md "
            "lists those that have one"
        )
    name = getattr(fn, "__name__", None) or getattr(fn, "name", None) or "function"
    return Written(str(name), function, _specs(function))


def axes_of(axis: Any) -> tuple[int, ...]:
    """Returns the axes that an attribute names, one or several."""
    return tuple(axis) if isinstance(axis, tuple | list) else (axis,)


def operators(text: str) -> dict[str, str]:
    """Returns the operator of each op from a text such as `add:Add sub:Sub`."""
    return dict(pair.split(":") for pair in text.split())


def _specs(described: Described) -> dict[str, Spec]:
    """Returns the spec of each value of a function, with 2 in place of open sizes, as it was traced."""
    function = described.traced.function
    own = []
    for spec, _, shape in described.declared.values():
        sizes = tuple([2 if isinstance(size, str) else size for size in shape])
        own.append(Spec.of(sizes, np.dtype(spec.dtype.as_numpy_dtype)))
    own += [capture.symbol.spec for capture in described.traced.captures]
    computed = [name for step in function.steps for name in step.command.outputs]  # type: ignore[union-attr]  # Calls
    inferred = compile_function(function.inputs, function.commands, computed).infer(own)
    return dict(zip([*function.inputs, *computed], [*own, *inferred.specs], strict=True))


def _constant(value: Any, command: Call, specs: Mapping[str, Spec]) -> np.ndarray[Any, Any]:
    """Returns an input of a step that is no name; a Python number has the dtype of the tensors that it meets."""
    if not isinstance(value, Literal | int | float):
        return np.asarray(value)
    result = specs[command.outputs[0]].dtype
    others = [specs[name].dtype for name in command.inputs if isinstance(name, str)]
    is_mixed = command.op == "where" or not others  # the condition has a dtype of its own
    return np.asarray(value.array if isinstance(value, Literal) else value, result if is_mixed else others[0])


def _label(command: Any) -> str:
    return command.op if isinstance(command, Call) else type(command).__name__
