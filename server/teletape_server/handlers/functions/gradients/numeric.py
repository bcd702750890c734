"""Gradients by central differences: from the function's values alone, also where its ops have no gradient.

All evaluations are the entries of one map: they run at once by the ops' batch rules, in as many chunks as fit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np

from teletape_engine.commands import CallFunction, Command, Constant, Fetch, Id
from teletape_engine.commands.results import Answer, Fetched, Kinds
from teletape_engine.derivatives.finite_differences import precision
from teletape_engine.recording.values import Literal, typed_array
from teletape_engine.session.session import Session
from teletape_engine.spec import COMPLEX, DIFFERENTIABLE, dtype_of
from teletape_server.handlers.answers import derivative_entry, fetched_values
from teletape_server.handlers.bodies import InvalidRequestError, new_id, path_id
from teletape_server.handlers.execution import described
from teletape_server.handlers.functions.asking import question_result
from teletape_server.handlers.functions.bound_calls import chosen_sources, in_order, spec_of
from teletape_server.handlers.functions.mapped_calls import MappedCall, mapped_call
from teletape_server.handlers.functions.question_commands import (
    check_length,
    chosen_targets,
    question_batch,
    run_question,
)
from teletape_server.handlers.methods import Request, Result
from teletape_server.handlers.tapes.questions import kept_outputs

Array: TypeAlias = np.ndarray[Any, Any]
MOST_ELEMENTS: Final = 4096  #: Of all sources together; each is evaluated twice.
#: Bytes that the moved sources of a chunk may take together, if one evaluation does not take more.
_CHUNK_BYTES: Final = 32 << 20


@dataclass(frozen=True)
class _Source:
    """A source.

    Attributes:
        name: As the caller names it.
        numbers: Of the inputs that it is.
        value: Its elements.
        steps: By how much each is moved to each side.
    """

    name: str
    numbers: Sequence[int]
    value: Array
    steps: Array


def ask_numeric(
    session: Session, request: Request, body: Any, *, fetches_all: bool, answers_derivatives: bool = True
) -> Result:
    """Answers a question for gradients by central differences.

    Args:
        session: The session.
        request: The request.
        body: The question, with `numeric`.
        fetches_all: Whether all outputs are returned if none is chosen.
        answers_derivatives: Whether the answer has their elements; else they stay under the ids in `outputs` alone.
    """
    for field in ("map", "per_example"):
        if getattr(body, field) is not None:
            raise InvalidRequestError(f"{field}: differences are of a function at one point: leave {field} out")
    function = path_id(request.params["id"])
    facts = described(session, function, "functions")
    if facts["assigns"]:
        raise InvalidRequestError(
            f"numeric: function {function!r} assigns to {', '.join(facts['assigns'])}, and its evaluations go at once: "
            "let it return what it assigns"
        )
    inputs = in_order(function, facts, body.inputs)
    targets = chosen_targets(function, facts["outputs"], body.targets)
    fetched = [*chosen_targets(function, facts["outputs"], body.fetch)] if body.fetch else []
    if body.fetch is None and fetches_all:
        fetched = facts["outputs"]
    check_length("output_gradients", body, "target", targets)
    sources = _sources(session, request, body, function, facts, inputs)
    names = kept_outputs(body.outputs, "source", len(sources))
    # A number stays one: steps may take it in several dtypes.
    typed = session.typed_inputs(function, inputs)
    inputs = [item if np.ndim(item) else value for value, item in zip(inputs, typed, strict=True)]
    differences = _Differences(session, request, function, inputs, sources)
    gradients, runs = differences.gradients(targets, body.output_gradients)
    ids = [name or new_id() for name in names]
    outputs = {name: new_id() for name in facts["outputs"]}
    commands: list[Command] = [Constant(id, gradient) for id, gradient in zip(ids, gradients, strict=True)]
    if fetched:
        commands.append(CallFunction(function, tuple(inputs), tuple(outputs.values())))
    read_names = [*[outputs[name] for name in fetched], *(ids if answers_derivatives else ())]
    batch = question_batch(request, commands, names, read_names, replace=body.replace)
    values = fetched_values(request, run_question(session, request, batch))
    kinds = Kinds(0, ("dense",) * len(ids))
    derivatives = [
        derivative_entry(kinds, at, source.name, values.get(id), id=name)
        for at, (source, name, id) in enumerate(zip(sources, names, ids, strict=True))
    ]
    return question_result(session, outputs, fetched, values, derivatives=derivatives, numeric=runs)


def _sources(
    session: Session, request: Request, body: Any, function: Id, facts: Mapping[str, Any], inputs: Sequence[Any]
) -> list[_Source]:
    """Returns the sources of a question.

    Raises:
        InvalidRequestError: One is not of real floats, or they have too many elements.
    """
    typed: list[Any] = session.typed_inputs(function, inputs)
    pairs = chosen_sources(session, function, facts, typed, body.sources)
    specs = [spec_of(session, typed[number]) for _, number in pairs]
    count = sum([spec.size for spec in specs])
    if count > MOST_ELEMENTS:
        raise InvalidRequestError(
            f"numeric: the sources have {count:,} elements, of which each takes two evaluations, and the limit is "
            f"{MOST_ELEMENTS:,}: name fewer sources, or leave numeric out"
        )
    step = None if body.numeric is True else body.numeric.step
    values = _values(session, request, [typed[number] for _, number in pairs])
    sources = []
    for (name, number), spec, value in zip(pairs, specs, values, strict=True):
        if spec.dtype not in DIFFERENTIABLE or spec.dtype in COMPLEX:
            raise InvalidRequestError(f"numeric: differences are by real floats, and {name} is of {spec.dtype.name}")
        numbers = [number]
        if name not in facts["inputs"]:  # an id: all inputs that it is bound to move
            numbers = [at for at, other in enumerate(typed) if isinstance(other, int | str) and other == typed[number]]
        magnitudes = np.maximum(1.0, np.abs(value.astype(np.float64)))
        steps = np.full(value.shape, step) if step is not None else magnitudes * np.cbrt(precision(spec.dtype))
        sources.append(_Source(name, numbers, value, steps))
    moved = [number for source in sources for number in source.numbers]
    if len({*moved}) < len(moved):
        raise InvalidRequestError("sources: an id is among them, and an input that is bound to it: ask for each alone")
    return sources


def _values(session: Session, request: Request, operands: Sequence[Any]) -> list[Array]:
    """Returns the elements of arrays and of what ids name."""
    ids = [operand for operand in operands if not isinstance(operand, np.ndarray)]
    arrays = _arrays(run_question(session, request, question_batch(request, [Fetch(id) for id in ids], (), ())))
    return [operand if isinstance(operand, np.ndarray) else arrays[operand] for operand in operands]


def _arrays(answer: Answer) -> dict[Id, Array]:
    return {
        result.id: result.array
        for result in answer.results
        if isinstance(result, Fetched) and isinstance(result.array, np.ndarray)
    }


class _Differences:
    """The evaluations of a function: two for each element of a source, which is moved to one side and the other.

    Args:
        session: The session.
        request: The request.
        function: The function's id.
        inputs: Its inputs.
        sources: Of them the sources.
    """

    def __init__(
        self, session: Session, request: Request, function: Id, inputs: Sequence[Any], sources: Sequence[_Source]
    ) -> None:
        self._session, self._request, self._function = session, request, function
        self._inputs, self._sources = inputs, sources
        self._steps = np.concatenate([source.steps.reshape(-1) for source in sources] or [np.zeros(0)])

    def gradients(self, targets: Sequence[str], weights: Sequence[Any] | None) -> tuple[list[Array], dict[str, Any]]:
        """Returns the gradient of the targets' weighted sum by each source, and what the answer says of the runs."""
        runs = 2 * len(self._steps)
        facts: dict[str, Any] = {"evaluations": runs, "chunks": 0, "vectorized": True}
        sums, slopes = np.zeros(runs), np.zeros(0)
        if runs:
            whole = self._mapped([np.broadcast_to(item.value, (runs, *item.value.shape)) for item in self._sources])
            chunks = whole.chunks(self._at_once(whole, targets))
            factors = self._factors(targets, weights)
            for first, last in chunks:
                sums[first:last] = self._sums(first, last, targets, factors)
            facts |= {name: fact for name, fact in whole.answer(len(chunks)).items() if name != "size"}
            slopes = (sums[0::2] - sums[1::2]) / self._widths()
        gradients, before = [], 0
        for source in self._sources:
            part = slopes[before : before + source.value.size]
            gradients.append(part.reshape(source.value.shape).astype(source.value.dtype))
            before += source.value.size
        return gradients, facts

    def _mapped(self, stacks: Sequence[Array]) -> MappedCall:
        """Returns the function with a stack for each source."""
        inputs, names = list(self._inputs), described(self._session, self._function, "functions")["inputs"]
        axes = {}
        for source, stack in zip(self._sources, stacks, strict=True):
            for number in source.numbers:
                inputs[number] = stack
                axes[names[number]] = 0
        return mapped_call(self._session, self._function, inputs, axes)

    def _at_once(self, whole: MappedCall, targets: Sequence[str]) -> int:
        """Returns how many runs go at once."""
        results = [whole.result_specs[name].nbytes for name in targets if name in whole.result_specs]
        nbytes = sum([source.value.nbytes for source in self._sources]) + sum(results)
        return max(1, min(whole.rows_at_once("call", (), targets), _CHUNK_BYTES // max(1, nbytes)))

    def _moved(self, first: int, last: int) -> list[Array]:
        """Returns the stack of each source for the runs from `first` to `last`, which is not one of them."""
        stacks, before = [], 0
        for source in self._sources:
            size = source.value.size
            stack = np.repeat(source.value.reshape(1, size), last - first, axis=0)
            for run in range(max(first, 2 * before), min(last, 2 * (before + size))):
                at = run // 2 - before
                stack[run - first, at] = self._side(source, at, 1 if run % 2 == 0 else -1)
            stacks.append(stack.reshape(last - first, *source.value.shape))
            before += size
        return stacks

    def _side(self, source: _Source, at: Any, sign: int) -> Any:
        """Returns elements of a source, moved to one side."""
        moved = source.value.reshape(-1)[at].astype(np.float64) + sign * source.steps.reshape(-1)[at]
        return moved.astype(source.value.dtype)

    def _widths(self) -> Array:
        """Returns how far the two sides of each element are from each other, as its dtype has them.

        Raises:
            InvalidRequestError: A step is nothing beside an element.
        """
        everything = slice(None)
        widths = []
        for source in self._sources:
            sides = [self._side(source, everything, sign).astype(np.float64) for sign in (1, -1)]
            widths.append(sides[0] - sides[1])
            if not np.all(widths[-1]):
                element = source.value.reshape(-1)[np.argmin(widths[-1])]
                raise InvalidRequestError(
                    f"numeric.step: {source.name} has the element {element}, which such a step does not change in "
                    f"{source.value.dtype.name}: choose a larger one"
                )
        return np.concatenate(widths)

    def _factors(self, targets: Sequence[str], weights: Sequence[Any] | None) -> list[Array | None]:
        """Returns the weights of the targets as arrays; None: ones."""
        factors: list[Array | None] = []
        for weight in weights if weights is not None else [None] * len(targets):
            if isinstance(weight, Literal):
                weight = typed_array(weight, dtype_of("float64"))
            elif weight is not None:
                [weight] = _values(self._session, self._request, [weight])
            factors.append(weight)
        return factors

    def _sums(self, first: int, last: int, targets: Sequence[str], factors: Sequence[Array | None]) -> Array:
        """Returns the targets' weighted sums of some runs."""
        mapped = self._mapped(self._moved(first, last))
        outputs = {name: new_id() for name in mapped.facts["outputs"]}
        commands = mapped.commands(list(outputs.values()), [(0, last - first)])
        fetches = [Fetch(outputs[name]) for name in targets]
        answer = run_question(
            self._session, self._request, question_batch(self._request, [*commands, *fetches], (), ())
        )
        arrays = _arrays(answer)
        sums = np.zeros(last - first)
        for name, factor in zip(targets, factors, strict=True):
            rows = arrays[outputs[name]]
            if rows.dtype in COMPLEX:
                raise InvalidRequestError(f"numeric: differences are of real outputs, and {name} is {rows.dtype.name}")
            if factor is not None and factor.shape != rows.shape[1:]:
                raise InvalidRequestError(
                    f"output_gradients: the output {name} is of the shape {list(rows.shape[1:])}; found "
                    f"{list(factor.shape)}"
                )
            rows = rows.astype(np.float64).reshape(last - first, -1)
            sums += rows.sum(axis=1) if factor is None else rows @ factor.astype(np.float64).reshape(-1)
        return sums
