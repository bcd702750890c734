"""Accumulators: sums of gradients over many requests and callers, to which each batch is added once.

An accumulator is variables of the session: the sum for each source, and the batches that were added. Each batch makes
them anew, all or none: what fails, or is cancelled, has added nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias

import numpy as np

from teletape_engine.commands import Batch, Call, Command, Constant, Fetch, Id, MakeVariable
from teletape_engine.commands.results import Fetched
from teletape_engine.errors import UnknownIdError
from teletape_engine.session.session import Session
from teletape_engine.spec import Spec, dtype_of
from teletape_server.handlers.answers import fetched_values
from teletape_server.handlers.bodies import InvalidRequestError, new_id, path_id
from teletape_server.handlers.endpoints import endpoint
from teletape_server.handlers.execution import described, execute
from teletape_server.handlers.functions.bound_calls import chosen_sources, has_variable, in_order
from teletape_server.handlers.functions.question_commands import question_batch, run_question
from teletape_server.handlers.methods import Request, Result, json_result, value_of, written
from teletape_server.models.functions.gradient_fields import Accumulator, AccumulatorList, AccumulatorQuery

Array: TypeAlias = np.ndarray[Any, Any]
#: The label of the variable with an accumulator's batches.
_LABEL: Final = "accumulator"
_SUM_LABEL: Final = "sum of {}"


@dataclass(frozen=True)
class _State:
    """An accumulator.

    Attributes:
        id: Its id, that of the variable with its batches.
        ranges: Its batches as float64 [ranges, 3], in ascending order: the first number, the last, and the weight of
            all from one to the other.
        sources: What its sums are gradients by.
    """

    id: str
    ranges: Array
    sources: Sequence[str]

    def sum(self, source: str) -> str:
        """Returns the id of the sum of gradients by a source."""
        return f"{self.id}.{source}"

    @property
    def weight(self) -> float:
        """The weight of all batches."""
        return math.fsum(self.ranges[:, 2])

    @property
    def batches(self) -> list[list[int]]:
        """The first and the last number of each range."""
        numbers: list[list[int]] = self.ranges[:, :2].astype(np.int64).tolist()
        return numbers

    def facts(self) -> dict[str, Any]:
        """Returns what answers say of it."""
        first, last, _ = self.ranges.T
        return {"id": self.id, "count": int(np.sum(last - first + 1)), "weight": self.weight}

    def has(self, batch: int) -> bool:
        """Returns whether a batch was added."""
        at = self._following(batch)
        return at > 0 and batch <= self.ranges[at - 1, 1]

    def with_batch(self, batch: int, weight: float) -> _State:
        """Returns it with a batch that it has not; ranges that meet become one."""
        start = end = self._following(batch)
        if start > 0 and self.ranges[start - 1, 1] == batch - 1:
            start -= 1
        if end < len(self.ranges) and self.ranges[end, 0] == batch + 1:
            end += 1
        joined = np.vstack([self.ranges[start:end], [batch, batch, weight]])
        row = [joined[:, 0].min(), joined[:, 1].max(), math.fsum(joined[:, 2])]
        return replace(self, ranges=np.vstack([self.ranges[:start], row, self.ranges[end:]]))

    def _following(self, batch: int) -> int:
        """Returns the number of the first range that begins after a batch."""
        return int(np.searchsorted(self.ranges[:, 0], batch, side="right"))


def ask_accumulated(
    session: Session, request: Request, body: Any, ask: Callable[..., Result], *, fetches_all: bool
) -> Result:
    """Answers a question for gradients, and adds them to an accumulator, unless it has their batch.

    Args:
        session: The session.
        request: The request.
        body: The question, with `accumulate`.
        ask: Answers the question without that.
        fetches_all: Whether all outputs are returned if none is chosen.
    """
    chosen, sources = body.accumulate, _sources(session, request, body)
    before = _known(session, request, chosen.into) or _State(chosen.into, np.zeros((0, 3)), sources)
    if {*before.sources} != {*sources}:
        raise InvalidRequestError(
            f"accumulate.into: {chosen.into!r} has gradients by {', '.join(before.sources)}, and these are by "
            f"{', '.join(sources)}: name the same sources, or another accumulator"
        )
    is_new = not before.has(chosen.batch)
    after = before.with_batch(chosen.batch, chosen.weight) if is_new else before
    members: dict[str, Any] = {"values": {}, "derivatives": []}
    ids = [new_id() for _ in sources]
    try:
        has_values = fetches_all if body.fetch is None else bool(body.fetch)
        if is_new or chosen.gradients or has_values or body.per_example is not None:
            changes = {"accumulate": None, "sources": sources, "outputs": ids, "unconnected": "zero"}
            result = ask(
                session,
                request,
                body.model_copy(update=changes),
                fetches_all=fetches_all,
                answers_derivatives=chosen.gradients,
            )
            members |= value_of(result)
            own = members["derivatives"] if chosen.gradients else ()
            members["derivatives"] = [derivative | {"id": None} for derivative in own]
        bytes_in_use = session.estimated_bytes()
        members |= {"accumulator": after.facts() | {"added": is_new}, "bytes_in_use": bytes_in_use}
        # Written before the batch is added, since it may fail too.
        answer = written(json_result(members, bytes_in_use=bytes_in_use), request.params["accept"])
        if is_new:
            _add(session, request, before, after, dict(zip(sources, ids, strict=True)), chosen.weight)
        return answer
    finally:
        session.execute(Batch((), tuple([id for id in ids if session.names(id)])))


def _sources(session: Session, request: Request, body: Any) -> list[str]:
    """Returns the names of the sources of a question with `accumulate`.

    Raises:
        InvalidRequestError: Its gradients cannot be accumulated.
    """
    for field in ("outputs", "part"):
        if getattr(body, field) is not None:
            raise InvalidRequestError(f"{field}: an accumulator has whole gradients, and keeps them: leave {field} out")
    if body.map is not None and body.per_example is None:
        raise InvalidRequestError("map: an accumulator has a gradient for each source: add `per_example`, which sums")
    if body.per_example is not None and body.per_example.returns != "sum":
        raise InvalidRequestError(f"per_example.return: only a sum is accumulated; found {body.per_example.returns}")
    function = path_id(request.params["id"])
    facts = described(session, function, "functions")
    if facts["assigns"]:
        raise InvalidRequestError(
            f"accumulate: function {function!r} assigns to {', '.join(facts['assigns'])}, and a batch that comes again "
            "would assign again: let it return what it assigns"
        )
    if body.sources is not None:
        return list(dict.fromkeys(body.sources))
    if body.per_example is not None:
        raise InvalidRequestError("sources: name the inputs that the gradients are by")
    typed = session.typed_inputs(function, in_order(function, facts, body.inputs))
    return [name for name, _ in chosen_sources(session, function, facts, typed, None)]


def _add(
    session: Session, request: Request, before: _State, after: _State, gradients: Mapping[str, Id], weight: float
) -> None:
    """Adds gradients, by source, to the sums of an accumulator, and notes their batch."""
    commands: list[Command] = []

    def add(op: str, *inputs: Id, **attrs: Any) -> Id:
        id: Id = new_id()
        commands.append(Call(op, inputs, (id,), attrs))
        return id

    lasting: list[Id] = [after.id]
    for source, gradient in gradients.items():
        facts = session.describe(gradient)
        dtype, shape = dtype_of(facts["dtype"]), tuple(facts["shape"])
        if dtype.itemsize == 2:  # a sum of many would lose most of each
            dtype, gradient = np.dtype(np.float32), add("cast", gradient, dtype=np.dtype(np.float32))
        factor = new_id()
        commands.append(Constant(factor, np.asarray(weight, dtype)))
        total, sum = add("mul", gradient, factor), after.sum(source)
        is_there = has_variable(session, sum, Spec.of(shape, dtype), "accumulate.into", "a sum of such gradients")
        if is_there != bool(len(before.ranges)):
            raise InvalidRequestError(
                f"accumulate.into: {sum!r} is a variable of something else: choose another id"
                if is_there
                else f"accumulate.into: {sum!r} was deleted, and with it the sum of {after.id!r}: delete that too"
            )
        if is_there:
            total = add("add", sum, total)
        commands.append(MakeVariable(sum, total, trainable=False, name=_SUM_LABEL.format(after.id)))
        lasting.append(sum)
    commands.append(MakeVariable(after.id, after.ranges, trainable=False, name=_LABEL))
    run_question(session, request, question_batch(request, commands, lasting, (), replace=True))


# ----------------------------------------------------------------------------------------------------- the accumulators
@endpoint("GET", "/accumulators", AccumulatorList, "List the accumulators")
def list_(session: Session, request: Request) -> Result:
    """Lists their ids, counts and weights."""
    ids = [facts["id"] for facts in session.listing("variable") if _is_accumulator(facts)]
    return json_result({"accumulators": [_read(session, request, id).facts() for id in ids]})


@endpoint("GET", "/accumulators/{accumulator}", Accumulator, "Read an accumulator", query=AccumulatorQuery)
def get(session: Session, request: Request) -> Result:
    """Returns the sum of the gradients that were added with their weights, or their mean, and the numbers of batches.

    A question for gradients with `accumulate` creates it.
    """
    state = _existing(session, request)
    commands: list[Command] = []
    ids: dict[str, Id] = {source: state.sum(source) for source in state.sources}
    if request.params["as_"] == "mean":
        for source, sum in ids.items():
            weight, mean = new_id(), new_id()
            commands.append(Constant(weight, np.asarray(state.weight, dtype_of(session.describe(sum)["dtype"]))))
            commands.append(Call("div", (sum, weight), (mean,)))
            ids[source] = mean
    batch = question_batch(request, commands, (), ids.values())
    values = fetched_values(request, run_question(session, request, batch))
    tensors = {source: values[id] for source, id in ids.items()}
    return json_result(state.facts() | {"batches": state.batches, "values": tensors})


@endpoint("DELETE", "/accumulators/{accumulator}", None, "Reset an accumulator")
def delete(session: Session, request: Request) -> Result:
    """Forgets its sums and its batches: the next question that names it begins anew."""
    state = _existing(session, request)
    execute(session, request, (), releases=(state.id, *[state.sum(source) for source in state.sources]))
    return Result("", [], 0, {"bytes_in_use": session.estimated_bytes()})


def _existing(session: Session, request: Request) -> _State:
    """Returns the accumulator in the path.

    Raises:
        UnknownIdError: There is none.
    """
    id = path_id(request.params["id"])
    facts = session.describe(id)
    if _is_accumulator(facts):
        return _read(session, request, str(id))
    raise UnknownIdError(f"the id {id!r} is no accumulator: it is a {facts['kind']}", id=id)


def _known(session: Session, request: Request, id: str) -> _State | None:
    """Returns the accumulator with an id; None: it names nothing.

    Raises:
        InvalidRequestError: It names something else.
    """
    try:
        facts = session.describe(id)
    except UnknownIdError:
        return None
    if _is_accumulator(facts):
        return _read(session, request, id)
    raise InvalidRequestError(f"accumulate.into: {id!r} is a {facts['kind']} and no accumulator: choose another id")


def _is_accumulator(facts: Mapping[str, Any]) -> bool:
    return bool(facts["kind"] == "variable" and facts["name"] == _LABEL)


def _read(session: Session, request: Request, id: str) -> _State:
    [fetched] = execute(session, request, [Fetch(id)]).results
    assert isinstance(fetched, Fetched)
    assert isinstance(fetched.array, np.ndarray)
    prefix = f"{id}."
    sums = [facts for facts in session.listing("variable") if facts["name"] == _SUM_LABEL.format(id)]
    return _State(id, fetched.array, [str(facts["id"]).removeprefix(prefix) for facts in sums])
