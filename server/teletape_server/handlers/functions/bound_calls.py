"""A function with its inputs bound: what every question about a function begins with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from teletape_engine.commands import Call, CallFunction, Command, Constant, Id, Input, Map
from teletape_engine.errors import UnknownIdError
from teletape_engine.session.session import Session
from teletape_engine.spec import DIFFERENTIABLE, Spec, dtype_of
from teletape_engine.suggestions import with_nearest
from teletape_server.handlers.bodies import InvalidRequestError, new_id
from teletape_server.handlers.execution import described

#: What to do about a name that is no output of a function.
FOR_A_VALUE_INSIDE: Final = "For a value inside it, create a function with that name in its `outputs`"


@dataclass(frozen=True)
class Source:
    """What a function is differentiated by.

    Attributes:
        name: As the caller names it: an input, or an id that inputs are bound to.
        number: Of the input, or of the first of them.
        id: Of the tensor or variable, during the request.
    """

    name: str
    number: int
    id: Id


@dataclass(frozen=True)
class BoundCall:
    """A function, its inputs and what it is differentiated by.

    Attributes:
        function: Its id.
        input_names: The names of its inputs.
        inputs: For each of its inputs an id, a number or an array; of a source an id or an array.
        outputs: By name: the id of the result during the request.
        sources: What it is differentiated by.
        constants: The commands that give sources without an id one.
        copies: The commands that give an id of its own to each source whose id is bound to several inputs.
        arguments: The inputs with these ids.
        map: Of a mapped call the command that runs the function for all entries; None: the function runs once.
        entry: Of a mapped call what one run takes.
    """

    function: Id
    input_names: Sequence[str]
    inputs: Sequence[Input]
    outputs: Mapping[str, str]
    sources: Sequence[Source]
    constants: Sequence[Command]
    copies: Sequence[Call]
    arguments: Sequence[Input]
    map: Map | None = None
    entry: Sequence[Input | Spec] | None = None

    @property
    def command(self) -> Command:
        """The command that calls the function."""
        if self.map is not None:
            return self.map
        return CallFunction(self.function, tuple(self.arguments), tuple(self.outputs.values()))

    @property
    def source_ids(self) -> tuple[Id, ...]:
        """The ids of the sources."""
        return tuple([source.id for source in self.sources])


def in_order(
    function: Id, facts: Mapping[str, Any], inputs: Sequence[Input] | Mapping[str, Input], field: str = "inputs"
) -> list[Input]:
    """Returns a function's inputs in its order; the caller may have named them.

    Raises:
        InvalidRequestError: One is missing or unknown, or their number is wrong.
    """
    names = facts["inputs"]
    if isinstance(inputs, Mapping):
        check_names(function, names, list(inputs), field)
        missing = [name for name in names if name not in inputs]
        if missing:
            verb = "is" if len(missing) == 1 else "are"
            raise InvalidRequestError(
                f"{field}: function {function!r} takes {', '.join(names)}; {', '.join(missing)} {verb} missing"
            )
        return [inputs[name] for name in names]
    if len(inputs) != len(names):
        raise InvalidRequestError(
            f"{field}: function {function!r} takes {len(names)} ({', '.join(names)}), found {len(inputs)}"
        )
    return list(inputs)


def check_names(
    function: Id, names: Sequence[str], chosen: Sequence[str], field: str, *, outputs: bool = False
) -> None:
    """Checks that a function's inputs, or its outputs, have these names.

    Raises:
        InvalidRequestError: A name is unknown.
    """
    unknown = [name for name in chosen if name not in names]
    if unknown:
        advice = f". {FOR_A_VALUE_INSIDE}" if outputs else ""
        message = (
            f"{field}: function {function!r} has {', '.join(names) or 'none'}; found {', '.join(map(repr, unknown))}"
        )
        raise InvalidRequestError(with_nearest(message, unknown[0], names) + advice)


def bound_call(
    session: Session,
    function: Id,
    inputs: Sequence[Input] | Mapping[str, Input],
    sources: Sequence[str] | None,
    *,
    floats: bool = True,
) -> BoundCall:
    """Returns a function with its inputs bound, ready to be differentiated.

    Args:
        session: The session.
        function: The function's id.
        inputs: In the order of its inputs, or by their names.
        sources: Names of inputs, or ids among the inputs; None: all inputs.
        floats: Whether all inputs are those of floats only, if there are any: a null then says why.

    Raises:
        InvalidRequestError: An input is missing, or a source is unknown.
        UnknownIdError, ReleasedIdError: An id names nothing.
    """
    facts = described(session, function, "functions")
    names = facts["inputs"]
    values = in_order(function, facts, inputs)
    typed = session.typed_inputs(function, values)
    chosen = chosen_sources(session, function, facts, typed, sources, floats=floats)
    sourced = {number for _, number in chosen}
    for number, value in enumerate(typed):  # a number that is no source stays one: steps may take it in several dtypes
        if number in sourced or np.ndim(value):
            values[number] = value
    arguments = list(values)
    constants: list[Command] = []
    copies: list[Call] = []
    resolved: list[Source] = []
    for name, number in chosen:
        value = typed[number]
        id: Id = new_id()
        if isinstance(value, np.ndarray):
            constants.append(Constant(id, value))
        elif name in names and _count(values, value) > 1 and not _is_assigned(facts, values, value):
            copies.append(Call("identity", (value,), (id,)))
        else:
            id = value
        arguments[number] = id
        resolved.append(Source(name, number, id))
    outputs = {name: new_id() for name in facts["outputs"]}
    return BoundCall(function, names, values, outputs, resolved, constants, copies, arguments)


def chosen_sources(
    session: Session,
    function: Id,
    facts: Mapping[str, Any],
    inputs: Sequence[Any],
    sources: Sequence[str] | None,
    *,
    floats: bool = True,
) -> list[tuple[str, int]]:
    """Returns what a call is differentiated by: names, and numbers of inputs; see `bound_call`."""
    names = facts["inputs"]
    if sources is not None:
        return [(name, _number(function, names, inputs, name)) for name in dict.fromkeys(sources)]
    every = [(name, at) for at, name in enumerate(names)]
    return [(name, at) for name, at in every if floats and _is_float(session, inputs[at])] or every


def spec_of(session: Session, value: Any) -> Spec:
    """Returns the shape and dtype of an array, or of what an id names.

    Raises:
        UnknownIdError, ReleasedIdError: It names no tensor and no variable.
    """
    if isinstance(value, np.ndarray):
        return Spec.of(value.shape, value.dtype)
    facts = session.describe(value)
    if facts["kind"] not in ("tensor", "variable"):
        raise UnknownIdError(f"{value!r} is no tensor: it is a {facts['kind']}", id=value)
    return Spec.of(tuple(facts["shape"]), dtype_of(facts["dtype"]))


def has_variable(session: Session, id: Id, spec: Spec, field: str, expected: str) -> bool:
    """Returns whether there is a variable of that spec from an earlier request.

    Raises:
        InvalidRequestError: The id names something else; `field` of the request, and what was expected, say so.
    """
    try:
        facts = session.describe(id)
    except UnknownIdError:
        return False
    actual = (facts["kind"], facts.get("dtype"), facts.get("shape"))
    if actual != ("variable", spec.dtype.name, list(spec.shape)):
        raise InvalidRequestError(
            f"{field}: {id!r} is not {expected}: found a {actual[0]} of {actual[1]}{actual[2]}, needed a variable of "
            f"{spec.dtype.name}{list(spec.shape)}"
        )
    return True


def _count(values: Sequence[Input], id: Id) -> int:
    """Returns how many inputs are bound to an id."""
    return sum([isinstance(value, int | str) and value == id for value in values])


def _number(function: Id, names: Sequence[str], inputs: Sequence[Input], source: str) -> int:
    """Returns the number of the input that a source names."""
    if source in names:
        return list(names).index(source)
    for number, value in enumerate(inputs):
        if isinstance(value, int | str) and str(value) == source:
            return number
    raise InvalidRequestError(
        f"sources: function {function!r} has the inputs {', '.join(names)}, and none of them is bound to the id "
        f"{source!r}"
    )


def _is_assigned(facts: Mapping[str, Any], inputs: Sequence[Input], id: Id) -> bool:
    """Returns whether the function assigns to a variable: then it needs the variable itself."""
    named = zip(facts["inputs"], inputs, strict=True)
    return any(name in facts["assigns"] and _count([value], id) for name, value in named)


def _is_float(session: Session, value: Any) -> bool:
    if isinstance(value, np.ndarray):
        return value.dtype in DIFFERENTIABLE
    dtype = session.describe(value).get("dtype")
    return dtype is not None and dtype_of(dtype) in DIFFERENTIABLE
