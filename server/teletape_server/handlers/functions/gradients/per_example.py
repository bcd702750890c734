"""The gradients of examples one by one, clipped and summed without all of them being there at a time.

Two passes: the first computes the gradients of few examples at a time, and of each only its norm. The second is one
backward pass over all examples, each with the factor that its norm has led to.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from teletape_engine.commands import Assign, Batch, Call, Command, Constant, Fetch, Gradient, Id, MakeVariable
from teletape_engine.commands.results import Answer, Fetched, Kinds
from teletape_engine.derivatives.examples import examples_at_once
from teletape_engine.session.session import Session
from teletape_engine.spec import COMPLEX, Spec
from teletape_server.handlers.answers import derivative_entry, fetched_values
from teletape_server.handlers.bodies import InvalidRequestError, new_id, path_id
from teletape_server.handlers.execution import described
from teletape_server.handlers.functions.bound_calls import BoundCall, in_order, spec_of
from teletape_server.handlers.functions.mapped_calls import mapped_call
from teletape_server.handlers.functions.question_commands import (
    chosen_targets,
    kinds_of,
    question_batch,
    recorded,
    run_question,
)
from teletape_server.handlers.methods import Request, Result, json_result
from teletape_server.handlers.tapes.questions import kept_outputs


def ask_per_example(
    session: Session, request: Request, body: Any, *, fetches_all: bool, answers_derivatives: bool = True
) -> Result:
    """Answers the sum of clipped gradients, or what is known of their norms.

    Args:
        session: The session.
        request: The request.
        body: A question for gradients, with `per_example`.
        fetches_all: Whether all outputs are returned if none is chosen.
        answers_derivatives: Whether the answer has their elements; else they stay under the ids in `outputs` alone.
    """
    question = _PerExample(session, request, body, fetches_all=fetches_all)
    norms = question.norms()
    chosen = body.per_example
    factors = np.ones_like(norms)
    if chosen.clip is not None:
        factors = chosen.clip / np.maximum(norms, chosen.clip)  # 1 up to the bound
    facts: dict[str, Any] = {
        "size": len(norms),
        "clipped": int(np.count_nonzero(norms > chosen.clip)) if chosen.clip is not None else 0,
        "vectorized": not question.mapped.why,
    }
    derivatives: list[dict[str, Any]] = []
    values: Mapping[str, Any] = {}
    if chosen.returns == "norms":
        facts["norms"] = norms.tolist()
    elif chosen.returns == "statistics":
        facts |= {
            "mean": float(norms.mean()),
            "smallest": float(norms.min()),
            "largest": float(norms.max()),
            "median": float(np.median(norms)),
        }
    else:
        values, derivatives = question.sums(factors, answers_derivatives=answers_derivatives)
    bytes_in_use = session.estimated_bytes()
    answer = {"values": values, "derivatives": derivatives, "per_example": facts, "bytes_in_use": bytes_in_use}
    return json_result(answer, bytes_in_use=bytes_in_use)


class _PerExample:
    """A question for gradients of examples."""

    def __init__(self, session: Session, request: Request, body: Any, *, fetches_all: bool) -> None:
        self._session, self._request, self._body = session, request, body
        function = path_id(request.params["id"])
        facts = described(session, function, "functions")
        inputs = in_order(function, facts, body.inputs)
        axes, axis = body.map, body.per_example.axis
        if axes is None:
            axes = _example_axes(session, facts["inputs"], inputs, axis or 0, body.sources)
        elif axis is not None:
            raise InvalidRequestError("per_example.axis: `map` says already where the examples are: leave one out")
        self.mapped = mapped_call(session, function, inputs, axes, keeps_axis=body.map is None)
        chosen = self.mapped.sources(body.sources)
        self._sources = [(name, number) for name, number in chosen if self.mapped.axes[number] is None]
        if not self._sources or (body.sources is not None and len(self._sources) < len(chosen)):
            raise InvalidRequestError(
                f"sources: the gradients of examples are by inputs that all examples share; {', '.join(axes)} differ "
                "from example to example"
            )
        outputs = facts["outputs"]
        self._targets = chosen_targets(function, outputs, body.targets)
        fetch = body.fetch if body.fetch is not None else outputs if fetches_all else []
        self._fetched = [*chosen_targets(function, outputs, fetch)] if fetch else []
        self._names = kept_outputs(body.outputs, "source", len(self._sources))
        if body.output_gradients is not None:
            raise InvalidRequestError("output_gradients: leave it out: its norm gives each example its weight")

    # ------------------------------------------------------------------------------------------------- the first pass
    def norms(self) -> np.ndarray[Any, Any]:
        """Returns the norm of the gradient of each example, over all sources together."""
        nbytes = sum([self.mapped.spec(number).nbytes for _, number in self._sources])
        at_once = self.mapped.rows_at_once("gradient", self._sources, self._targets)
        squares: list[np.ndarray[Any, Any]] = []
        for first, last in self.mapped.chunks(min(at_once, examples_at_once(nbytes))):
            call = self.mapped.bound(self._sources, first, last)
            ids, fetched = [new_id() for _ in self._sources], []
            commands = self._gradient(call, ids, None)
            for (_, number), id in zip(self._sources, ids, strict=True):
                fetched.append(_squares(id, last - first, self.mapped.spec(number), commands))
            arrays = _arrays(self._run(commands, ()))
            squares.append(
                sum([arrays[id].real.astype(np.float64).reshape(-1) for id in fetched], np.zeros(last - first))
            )
        norms: np.ndarray[Any, Any] = np.sqrt(np.concatenate(squares))
        return norms

    # ------------------------------------------------------------------------------------------------ the second pass
    def sums(
        self, factors: np.ndarray[Any, Any], *, answers_derivatives: bool
    ) -> tuple[Mapping[str, Any], list[dict[str, Any]]]:
        """Returns the outputs of all examples, and the sum of the gradients with these factors."""
        session = self._session
        chunks = self.mapped.chunks(self.mapped.rows_at_once("gradient", (), ()))
        total = [new_id() for _ in self._sources]
        columns: dict[str, list[Id]] = {name: [] for name in self._fetched}
        kinds = Kinds(0, ())
        try:
            for number, (first, last) in enumerate(chunks):
                call = self.mapped.bound(self._sources, first, last, summed=True)
                ids = total if len(chunks) == 1 else [new_id() for _ in total]
                commands = self._gradient(call, ids, factors[first:last])
                if len(chunks) > 1:
                    if not number:
                        commands += [MakeVariable(sum, id) for sum, id in zip(total, ids, strict=True)]
                    else:
                        commands += [Assign(sum, id, "add") for sum, id in zip(total, ids, strict=True)]
                for name in self._fetched:
                    columns[name].append(call.outputs[name])
                answer = self._run(commands, (*total, *[call.outputs[name] for name in self._fetched]))
                kinds = kinds_of(answer) if not number else kinds
            return self._joined(total, columns, kinds, answers_derivatives=answers_derivatives)
        finally:
            left = [id for id in (*total, *[id for column in columns.values() for id in column]) if session.names(id)]
            session.execute(Batch((), tuple(left)))

    def _joined(
        self, total: Sequence[Id], columns: Mapping[str, Sequence[Id]], kinds: Kinds, *, answers_derivatives: bool
    ) -> tuple[Mapping[str, Any], list[dict[str, Any]]]:
        """Returns outputs and derivatives as answers have them, from those of the chunks."""
        ids = [name or new_id() for name in self._names]
        outputs = {name: new_id() for name in columns}
        commands = [Call("identity", (sum,), (id,)) for sum, id in zip(total, ids, strict=True)]
        commands += [Call("concat", tuple(column), (outputs[name],), {"axis": 0}) for name, column in columns.items()]
        fetched = (*outputs.values(), *(ids if answers_derivatives else ()))
        batch = question_batch(self._request, commands, self._names, fetched, replace=self._body.replace)
        values = fetched_values(self._request, run_question(self._session, self._request, batch))
        kinds = Kinds(0, tuple(["dense"] * len(ids)), kinds.why)
        pairs = zip(self._sources, self._names, ids, strict=True)
        derivatives = [
            derivative_entry(kinds, position, source, values.get(id), id=name)
            for position, ((source, _), name, id) in enumerate(pairs)
        ]
        return {name: values[id] for name, id in outputs.items()}, derivatives

    def _gradient(self, call: BoundCall, ids: Sequence[Id], factors: np.ndarray[Any, Any] | None) -> list[Command]:
        """Returns the commands of a gradient, of which each example has a factor."""
        tape, weights = new_id(), []
        results = [call.outputs[name] for name in self._targets]
        before: list[Command] = []
        if factors is not None:
            for name in self._targets:
                spec, small, weight = self.mapped.result_specs[name], new_id(), new_id()
                shaped = factors.astype(spec.dtype).reshape(-1, *[1] * spec.ndim)
                before.append(Constant(small, shaped))
                before.append(Call("broadcast_to", (small,), (weight,), {"shape": (len(factors), *spec.shape)}))
                weights.append(weight)
        question = Gradient(
            tape, tuple(results), call.source_ids, tuple(ids), tuple(weights) if weights else None, unconnected="zero"
        )
        return [*before, *recorded(call, tape, question)]

    def _run(self, commands: Sequence[Command], lasting: Sequence[Id]) -> Answer:
        return run_question(self._session, self._request, question_batch(self._request, commands, lasting, ()))


def _example_axes(
    session: Session, names: Sequence[str], inputs: Sequence[Any], axis: int, sources: Sequence[str] | None
) -> dict[str, int]:
    """Returns the axis of the examples in each input that is no source: of tensors that have such an axis.

    Raises:
        InvalidRequestError: It is not said what the sources are, or no other input has the axis.
    """
    if sources is None:
        raise InvalidRequestError("sources: name the inputs that the gradients are by; the others have the examples")
    axes = {}
    for name, value in zip(names, inputs, strict=True):
        shape = value.spec.shape if hasattr(value, "spec") else spec_of(session, value).shape
        if name not in sources and str(value) not in sources and -len(shape) <= axis < len(shape):
            axes[name] = axis
    if not axes:
        raise InvalidRequestError(f"per_example.axis: no input but the sources has an axis {axis}")
    return axes


def _squares(gradient: Id, count: int, spec: Spec, commands: list[Command]) -> Id:
    """Adds the commands that compute the square of the norm of each row of a stack of gradients; returns their id.

    Args:
        gradient: The stack.
        count: Its rows.
        spec: Of a row.
        commands: Where they are added.
    """

    def add(op: str, *inputs: Id, **attrs: Any) -> Id:
        id: Id = new_id()
        commands.append(Call(op, inputs, (id,), attrs))
        return id

    columns = add("reshape", gradient, shape=(count, spec.size, 1))
    if spec.dtype.itemsize == 2:  # the squares of such numbers soon are infinite
        columns = add("cast", columns, dtype=np.dtype(np.float32))
    rows = add("reshape", columns, shape=(count, 1, spec.size))
    if spec.dtype in COMPLEX:
        rows = add("conj", rows)
    square = add("matmul", rows, columns)
    commands.append(Fetch(square))
    return square


def _arrays(answer: Answer) -> dict[Id, Any]:
    return {result.id: result.array for result in answer.results if isinstance(result, Fetched)}
