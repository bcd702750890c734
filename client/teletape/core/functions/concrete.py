"""`ConcreteFunction`: a function traced for one signature, and its signature as text."""

from __future__ import annotations

import contextlib
import functools
import inspect
import itertools
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

from teletape.core.calls.dispatch import convert_to_tensor
from teletape.core.functions.signature import as_spec, in_parts, key_of
from teletape.core.functions.tensor_spec import TensorSpec
from teletape.core.functions.trace import Traced, values_of
from teletape.core.program.tracebacks import reports
from teletape.core.tensors import dtypes, nest
from teletape.core.tensors.composite import Composite, TypeSpec
from teletape.core.tensors.tensor import TensorLike
from teletape.core.tensors.tensor_shape import TensorShape
from teletape.core.variables.variable import Variable
from teletape_engine.errors import InvalidArgumentError
from teletape_engine.spec import KERNEL_NAMES

_TRIALS = (2, 3)  #: Sizes that are tried for unknown ones: sizes of the result that depend on them are unknown too.
#: The size that is tried if those do not fit: products of unknown sizes, as in a reshape, fit each other.
_LAST_TRIAL = 1


class ConcreteFunction:
    """A function traced for one signature. If sizes are unknown, it is traced at the first call with each shape.

    Attributes:
        structured_input_signature: (args, kwargs) with a spec in place of each tensor.
        name: Its name.
    """

    def __init__(self, function: Any, traced: Traced | None, arguments: Any) -> None:
        self._function, self._only, self._arguments = function, traced, arguments
        names = iter(function._names)
        args = tuple(
            [nest.map_structure(functools.partial(as_spec, name=next(names, None)), arg) for arg in arguments[0]]
        )
        self.structured_input_signature = (args, nest.map_structure(as_spec, dict(arguments[1])))
        self.name = f"__inference_{getattr(function.python_function, '__name__', 'function')}"
        leaves: list[Any] = []
        key_of(nest.map_structure(in_parts, arguments), leaves, {}, general=True)
        self._input_specs = [spec for leaf in leaves for spec in _tensor_specs(leaf)]

    def __repr__(self) -> str:
        return f"<ConcreteFunction {self.pretty_printed_signature(verbose=False)}>"

    def pretty_printed_signature(self, verbose: bool = True) -> str:
        """Returns the signature as text."""
        signature, results = self._function._signature, self.structured_outputs
        return printed_signature(signature, _with_specs(self._arguments), results, verbose=verbose)

    # -------------------------------------------------------------------------------------------------------- results
    @functools.cached_property
    def structured_outputs(self) -> Any:
        """The result with a TensorSpec in place of each tensor.

        If the sizes that are tried for unknown ones do not fit each other, only the ranks are known.
        """
        if self._only is not None:
            return self._only.packed_specs()
        try:
            results = [self.traced_with(size).packed_specs() for size in _TRIALS]
        except Exception:
            return nest.map_structure(_without_sizes, self._traced.packed_specs())
        return nest.map_structure(_common_spec, *results)

    @property
    def output_shapes(self) -> Any:
        """The result with a TensorShape in place of each tensor."""
        return nest.map_structure(lambda spec: None if spec is None else spec.shape, self.structured_outputs)

    @property
    def output_dtypes(self) -> Any:
        """The result with a dtype in place of each tensor."""
        return nest.map_structure(lambda spec: None if spec is None else spec.dtype, self.structured_outputs)

    @property
    def inputs(self) -> list[TensorSpec]:
        """The specs of the tensors among its arguments, and of its captures."""
        captured = [TensorSpec(each.shape, each.dtype) for each in self.captured_inputs]
        return [*self._input_specs, *captured]

    @property
    def outputs(self) -> list[TensorSpec]:
        """The specs of its results, one after the other."""
        return [spec for spec in nest.flatten(self.structured_outputs) if spec is not None]

    @property
    def graph(self) -> SimpleNamespace:
        """The attributes of TensorFlow's graph of the function: name, inputs, outputs, captures, variables."""
        return SimpleNamespace(
            name=getattr(self._function.python_function, "__name__", "function"),
            inputs=self.inputs,
            outputs=self.outputs,
            captures=[(each, TensorSpec(each.shape, each.dtype)) for each in self.captured_inputs],
            variables=self.variables,
            trainable_variables=self.trainable_variables,
            structured_input_signature=self.structured_input_signature,
            structured_outputs=self.structured_outputs,
        )

    # ------------------------------------------------------------------------------------------------------- captures
    @property
    def captured_inputs(self) -> list[Any]:
        """The tensors and variables that the function captures."""
        return [
            Variable.of(capture.value) if capture.kind == "variable" else capture.value
            for capture in self._traced.captures
            if capture.kind != "state"
        ]

    @property
    def variables(self) -> tuple[Variable, ...]:
        """The variables among the captured inputs."""
        captures = self._traced.captures
        return tuple(Variable.of(capture.value) for capture in captures if capture.kind == "variable")

    @property
    def trainable_variables(self) -> tuple[Variable, ...]:
        """The trainable variables among the captured inputs."""
        return tuple(variable for variable in self.variables if variable.trainable)

    @property
    def _traced(self) -> Traced:
        if self._only is not None:
            return self._only
        try:
            return self.traced_with(_TRIALS[0])
        except Exception as error:
            with contextlib.suppress(Exception):
                return self.traced_with(_LAST_TRIAL)
            raise error

    def traced_with(self, size: int) -> Traced:
        """Returns the function traced with this size for unknown ones."""
        return self._function.traced_for(nest.map_structure(functools.partial(_sized, size=size), self._arguments))  # type: ignore[no-any-return]  # of a Function

    # ----------------------------------------------------------------------------------------------------------- calls
    @reports
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Runs the function on its tensors only, in order, or on all arguments of the Python function."""
        if kwargs or len(args) != len(self._input_specs):
            arguments = self._function._bind(args, kwargs, self._function.input_signature)
        else:
            tensors = [arg if isinstance(arg, TensorLike | Composite) else convert_to_tensor(arg) for arg in args]
            arguments = self._filled(tensors)
        leaves: list[Any] = []
        key_of(arguments, leaves, {})
        values = values_of(leaves)
        if len(values) != len(self._input_specs):
            raise TypeError(f"{self.name} takes {len(self._input_specs)} tensors, found {len(values)}")
        for i, (value, spec) in enumerate(zip(values, self._input_specs, strict=True)):
            if value.spec.dtype is not spec.dtype.np:
                raise InvalidArgumentError(
                    f"cannot compute {self.name} as input #{i}(zero-based) was expected to be a "
                    f"{KERNEL_NAMES[spec.dtype.np]} tensor but is a {KERNEL_NAMES[value.spec.dtype]} tensor "
                    f"[Op:{self.name}]"
                )
        traced = self._function.traced_for(arguments) if self._only is None else self._only
        return traced.call(values)

    def _filled(self, tensors: list[Any]) -> Any:
        """Returns the arguments with these tensors in place of the specs."""
        if self._only is not None:
            return tensors
        rest = iter(tensors)

        def filled(leaf: Any) -> Any:
            if not isinstance(leaf, TypeSpec | TensorLike | Composite):
                return leaf
            first, whole = next(rest), in_parts(leaf)
            if isinstance(first, Composite) or not isinstance(whole, Composite):
                return first
            return whole.structure().of([first, *itertools.islice(rest, len(whole.parts()) - 1)])

        return nest.map_structure(filled, self._arguments)


def _tensor_specs(leaf: Any) -> list[TensorSpec]:
    """Returns the specs of a tensor, a variable, a TensorSpec, or of the parts of a composite."""
    if isinstance(leaf, Composite):
        return [TensorSpec(part.shape, part.dtype) for part in leaf.parts() if part.dtype is not dtypes.string]
    return [TensorSpec(leaf.shape, leaf.dtype)]


def _sized(leaf: Any, size: int) -> Any:
    """Returns a spec with this size for unknown ones; other leaves unchanged."""
    leaf = in_parts(leaf.filled(size) if isinstance(leaf, TypeSpec) else leaf)
    return leaf.structure().of([_sized(part, size) for part in leaf.parts()]) if isinstance(leaf, Composite) else leaf


def _common_spec(first: Any, second: Any) -> Any:
    """Returns a result's spec; sizes that differ between two trials are not known."""
    return first.most_specific_common_supertype([second]) if isinstance(first, TypeSpec) else first


def _without_sizes(spec: Any) -> Any:
    """Returns a result's spec of which only the rank is known."""
    if not isinstance(spec, TypeSpec):
        return spec
    return type(spec)(*[_unsized(field) if isinstance(field, TensorShape) else field for field in spec.fields])


def _unsized(shape: TensorShape) -> TensorShape:
    return TensorShape(None if shape.rank is None else [None] * shape.rank)


# ---------------------------------------------------------------------------------------------------------------- text
def printed_signature(signature: inspect.Signature, arguments: Any, results: Any, *, verbose: bool) -> str:
    """Returns a signature as TensorFlow prints it.

    Args:
        signature: The Python function's signature.
        arguments: (args, kwargs) with TensorSpecs.
        results: The result with TensorSpecs.
        verbose: Whether each parameter has a line.
    """
    bound = signature.bind(*arguments[0], **arguments[1])
    parameters = [(signature.parameters[name], value) for name, value in bound.arguments.items()]
    if verbose:
        lines = [f"  {each.name} ({each.kind.name}): {_printed(value)}" for each, value in parameters]
        inputs = "\n".join(["Input Parameters:", *(lines or ["  None"])])
        return f"{inputs}\nOutput Type:\n  {_printed(results)}\nCaptures:\n  None"
    texts = []
    for i, (each, value) in enumerate(parameters):
        first_keyword = each.kind is each.KEYWORD_ONLY and all(
            earlier.kind is not each.KEYWORD_ONLY for earlier, _ in parameters[:i]
        )
        texts += [*(["*"] if first_keyword else []), f"{each.name}: {_printed(value)}"]
    return f"({', '.join(texts)}) -> {_printed(results)}"


def _with_specs(arguments: Any) -> Any:
    return nest.map_structure(as_spec, arguments)


def _printed(value: Any) -> str:
    if isinstance(value, TensorSpec):
        return repr(TensorSpec(value.shape, value.dtype))
    if isinstance(value, TypeSpec):
        return repr(value)
    if isinstance(value, Mapping):
        return f"Dict[{', '.join(f'[{name!r}, {_printed(part)}]' for name, part in value.items())}]"
    if isinstance(value, list | tuple):
        return f"{type(value).__name__.capitalize()}[{', '.join(map(_printed, value))}]"
    return f"Literal[{value!r}]"
