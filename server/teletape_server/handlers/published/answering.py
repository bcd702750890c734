"""Answers calls of a published function: several at once if they ask the same of tensors of the same shapes.

A request has calls of any number of callers to one version, all with one question. What they compute together is one
stack: the function runs over its rows by the batch rules of its ops, on one tape, and one backward pass gives each call
the gradient by its own row. Gradients by weights, Jacobians, Hessians and checks are computed call by call: a sum over
the rows would mix the callers.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, TypeAlias

import numpy as np

from teletape_engine.errors import InternalError, ResourceExhaustedError, TeletapeError
from teletape_engine.session.session import Session
from teletape_server.handlers.bodies import InvalidRequestError, read
from teletape_server.handlers.functions import function_questions, functions
from teletape_server.handlers.methods import Request, Result, json_result, method, value_of, with_member, written
from teletape_server.handlers.published.known_files import WAITED, KnownFile, RowFiles
from teletape_server.handlers.published.stacked import STACKS, Answers, Stack
from teletape_server.handlers.published.versions import FUNCTION, WEIGHT, Version, versions_of
from teletape_server.models.published.questions import QUESTIONS
from teletape_wire.safetensors.layout import SAFETENSORS_TYPE

Array: TypeAlias = np.ndarray[Any, Any]
#: What answers the same question to a session's function.
_HANDLERS: Final[Mapping[str, Any]] = {
    "call": functions.call,
    "value_and_gradient": function_questions.value_and_gradient,
    "gradient": function_questions.gradient,
    "vjp": function_questions.vjp,
    "jvp": function_questions.jvp,
    "jacobian": function_questions.jacobian,
    "hessian": function_questions.hessian,
    "hvp": function_questions.hvp,
    "check": function_questions.check_gradients,
}


@dataclass(slots=True)
class _Call:
    """One call.

    Attributes:
        request: It alone.
        waited: Microseconds until its work began.
        fields: Its body.
        inputs: The declared inputs.
        known: What the header of its body means, if that came before.
        result: Its answer, or why there is none.
    """

    request: Request
    waited: int
    fields: Any = None
    inputs: Sequence[Array] = ()
    known: KnownFile | None = None
    result: Result | TeletapeError | None = None


@method("published-ask")
def ask(session: Session, request: Request) -> Result:
    """Answers calls; the body is their bodies, one after the other, and so is the answer's.

    Of each, `facts` have the length of its answer, its type, its headers, and the problem's code, text and details.
    """
    params = request.params
    version = versions_of(session).get(params["version"])
    question = params["question"]
    began = time.monotonic()
    calls = [*_calls(request, began)]
    for call in calls:
        _attempt(call, partial(_read, version, question, call))
    pending = [call for call in calls if call.result is None]
    for group in _groups(version, question, pending):
        _answer(version, question, group)
    parts, buffers = [], []
    for call in calls:
        length, content_type = 0, ""
        problem: tuple[str, str, Any] | None = None
        if isinstance(call.result, Result):
            length, content_type = call.result.length, call.result.content_type
            buffers += call.result.buffers
        else:
            error = call.result or InternalError("the call was not answered")
            problem = error.code, error.message, error.details
        parts.append((length, content_type, problem))
    facts = {"parts": parts, "seconds": time.monotonic() - began}
    return Result("application/octet-stream", buffers, sum(part[0] for part in parts), facts)


def _calls(request: Request, began: float) -> Sequence[_Call]:
    """Returns the calls in a request; each has its own parameters and its part of the body."""
    position, calls, latest, own = 0, [], None, {}
    # As `dataclasses.replace`, which takes longer than the rest of what a call needs here.
    rest = request.copy_below, request.cancelled, request.progress, request.received, request.budget
    rest_of = *rest, request.started, request.structures
    for length, content_type, params, waited in request.params["calls"]:
        if params != latest:
            latest, own = params, {"full": False, "query": {}, **params, "id": FUNCTION}
        calls.append(_Call(Request(own, content_type, request.body[position : position + length], *rest_of), waited))
        position += length
    return calls


def _attempt(call: _Call, work: Any) -> None:
    """Does some work for a call; what is raised is the call's answer."""
    try:
        work()
    except TeletapeError as error:
        call.result = error
    except MemoryError:
        call.result = ResourceExhaustedError("the process has reached its memory limit")


def _read(version: Version, question: str, call: _Call) -> None:
    call.known = version.files.find(question, call.request)
    if call.known is not None:
        call.fields, call.inputs = call.known.fields, call.known.inputs(call.request.body)
        return
    call.fields = read(call.request, QUESTIONS[question].body)
    call.inputs = version.call_inputs(call.fields.inputs, getattr(call.fields, "map", None))
    version.files.note(question, call.request, call.fields, version.published)


# -------------------------------------------------------------------------------------------------- which go together
@dataclass
class _Group:
    """Calls that are computed together.

    Attributes:
        calls: The calls; a single one is computed as a session computes it.
        why: Why there are not more.
        stack: What they have in common; None: a call that is like no other.
    """

    calls: list[_Call]
    why: str
    stack: Stack | None = None


def _groups(version: Version, question: str, calls: Sequence[_Call]) -> list[_Group]:
    """Returns calls in groups of the same question, to tensors of the same shapes; the oldest call comes first."""
    cannot = question not in STACKS or bool(version.published.rows)
    groups: dict[Any, _Group] = {}
    for number, call in enumerate(calls):
        stack = None if cannot else _stack(version, question, call)
        if stack is None or call.fields.exact:
            why = "exact" if call.fields.exact else "unbatchable" if len(calls) > 1 else "alone"
            groups[number] = _Group([call], why, stack)
        elif (group := groups.get(stack.key)) is not None:
            group.calls.append(call)
        else:
            groups[stack.key] = _Group([call], "different" if len(calls) > 1 else "alone", stack)
    return [*groups.values()]


def _stack(version: Version, question: str, call: _Call) -> Stack | None:
    """Returns how a call is computed with others; None: it cannot be."""
    if call.known is not None and call.known.stack is not None:
        known: Stack = call.known.stack
        return known
    if any(getattr(call.fields, field, None) for field in ("map", "per_example", "part", "numeric")):
        return None
    try:
        sources = version.source_names(getattr(call.fields, "sources", None))
    except InvalidRequestError:  # it is refused where it is computed by itself
        return None
    if any(name not in version.published.inputs for name in sources):
        return None
    outputs = list(version.published.outputs)
    if any(name not in outputs for name in (*(_names(call, "targets") or ()), *(_names(call, "fetch") or ()))):
        return None
    stack = Stack.of(version, question, call.fields, call.inputs, sources)
    if call.known is not None:
        call.known.stack = stack
    return stack


def _names(call: _Call, field: str) -> Sequence[str] | None:
    names: Sequence[str] | None = getattr(call.fields, field, None)
    return names


# ----------------------------------------------------------------------------------------------------------- computing
def _answer(version: Version, question: str, group: _Group) -> None:
    """Computes the answers of a group; if it cannot be done together, one by one."""
    if len(group.calls) > 1 and group.stack is not None:
        requests = [call.request for call in group.calls]
        bodies = [call.fields for call in group.calls]
        try:
            answers = group.stack.answers(version, requests, bodies, [call.inputs for call in group.calls])
        except (TeletapeError, MemoryError):  # the problem is that of one of them, and each gets its own answer
            group.why = "unbatchable"
        else:
            _write(version, group.stack, group.calls, answers, "together")
            return
    for call in group.calls:
        _attempt(call, partial(_answer_alone, version, question, call, group))


def _write(version: Version, stack: Stack, calls: Sequence[_Call], answers: Answers, why: str) -> None:
    """Writes the answers of calls that were computed at once."""
    facts = {"size": len(calls), "waited_us": WAITED, "why": why}
    files: RowFiles | None = None
    for number, call in enumerate(calls):
        if call.request.params["accept"] == SAFETENSORS_TYPE:
            if files is None:
                shapes = tuple([(array.shape[1:], array.dtype) for array in answers.arrays])
                kinds = () if answers.kinds is None else answers.kinds.kinds
                key = stack.key, shapes, kinds, answers.bytes_in_use, why, len(calls)
                text = version.files.answer_header(key, partial(_first, answers, number, call, facts))
                files = RowFiles(text, answers.arrays)
            call.result = files.result(number, call.waited)
        else:
            result = json_result(answers.of(number, call.request))
            _attempt(call, partial(_finish, call, result, facts | {"waited_us": call.waited}))


def _first(answers: Answers, number: int, call: _Call, facts: Mapping[str, Any]) -> dict[str, Any]:
    return answers.of(number, call.request) | {"batch": facts}


def _answer_alone(version: Version, question: str, call: _Call, group: _Group) -> None:
    """Computes the answer of one call as a session computes that to its function, or by the plan of such calls."""
    fields, stack = call.fields, group.stack
    if stack is not None:
        answers = stack.planned_answers(version, [call.request], [fields], [call.inputs], is_rows=False)
        if answers is not None:
            _write(version, stack, [call], answers, group.why)
            return
    members = {name: getattr(fields, name) for name in type(fields).model_fields if name != "exact"}
    members["inputs"] = [*call.inputs, *[WEIGHT + name for name in version.published.weights]]
    if "sources" in members:
        members["sources"] = list(version.source_names(fields.sources))
    if question == "call":
        members["scratch"] = True
    body = QUESTIONS[question].original.model_construct(**members)
    result = _HANDLERS[question](version.session, call.request, body)
    if stack is not None:
        derivatives = value_of(result).get("derivatives", ())
        stack.note(version, [derivative["kind"] for derivative in derivatives], is_rows=False)
    _finish(call, result, {"size": 1, "waited_us": call.waited, "why": group.why})


def _finish(call: _Call, result: Result, facts: Mapping[str, Any]) -> None:
    """Notes the answer of a call, with how it was computed."""
    call.result = written(with_member(result, "batch", facts), call.request.params["accept"])
