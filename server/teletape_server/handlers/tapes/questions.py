"""Derivatives of a tape: one question or many in a request, each with the elements of its answer."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

from teletape_engine.commands import Command, ContextSwitch, Id
from teletape_engine.commands.results import Answer, Facts, Kinds
from teletape_engine.commands.schema import MAX_ITEMS
from teletape_engine.errors import IdInUseError, TeletapeError
from teletape_engine.session.session import Session
from teletape_engine.suggestions import with_nearest
from teletape_server.handlers.answers import derivative_entry, fetched_values, fetches
from teletape_server.handlers.bodies import InvalidRequestError, new_id, path_id, validated
from teletape_server.handlers.endpoints import STATE, WORK, endpoint
from teletape_server.handlers.execution import command, execute
from teletape_server.handlers.methods import Request, Result, json_result
from teletape_server.handlers.recording import CONTEXT, active, check_paused, live_ancestors, owned, tape_facts
from teletape_server.models.base import Body
from teletape_server.models.parameters import Elements
from teletape_server.models.tapes.questions import (
    ASK,
    BatchJacobianQuestion,
    DerivativeEstimate,
    Derivatives,
    EstimateQuestion,
    GradientQuestion,
    GradientsNumbers,
    GradientStatisticsQuestion,
    HessianBlocks,
    HessianQuestion,
    HvpQuestion,
    JacobianQuestion,
    QuestionResults,
    Questions,
    SparseAnswer,
    SparseHessianQuestion,
    SparseJacobianQuestion,
    VjpsQuestion,
)

Derivative: TypeAlias = dict[str, Any]

#: Problems of a question.
_PROBLEMS: Final = ("id_in_use", *STATE, "no_gradient_registered", *WORK)
#: What the endpoints share that answer with tensors.
_ASKS: Final[dict[str, Any]] = {"problems": _PROBLEMS, "query": Elements}

_NOT_FIELDS: Final = ("do", "outputs", "replace")  # of a command


class _Question(NamedTuple):
    """A question that is ready to run.

    Attributes:
        command: The command that answers it.
        sources: Its sources.
        is_hessian: Whether it has a derivative for each pair of sources, and not for each source.
        names: For each derivative the caller's id, or None.
        ids: For each derivative the id that it has during the request.
        replace: Whether the caller's ids may be in use or released.
    """

    command: Command
    sources: Sequence[Id]
    is_hessian: bool
    names: Sequence[str | None]
    ids: Sequence[str]
    replace: bool


def _question(verb: str, body: Any, tape: Id) -> _Question:
    """Returns the question in a body, checked.

    Raises:
        InvalidRequestError: The number of `outputs` does not fit, or a Hessian has too many blocks.
    """
    is_hessian = verb == "hessian"
    names = (
        hessian_outputs(body.outputs, body.sources)
        if is_hessian
        else kept_outputs(body.outputs, "source", len(body.sources))
    )
    ids = [name or new_id() for name in names]
    fields = {field: getattr(body, field) for field in type(body).model_fields if field not in _NOT_FIELDS}
    question = command(verb, tape=tape, outputs=ids, **fields)
    return _Question(question, body.sources, is_hessian, names, ids, body.replace)


def kept_outputs(outputs: Sequence[str | None] | None, each: str, count: int) -> Sequence[str | None]:
    """Returns the ids in a question's `outputs`, which has one for each source or target; None for those not kept.

    Raises:
        InvalidRequestError: Their number does not fit.
    """
    if outputs is None:
        return [None] * count
    if len(outputs) != count:
        raise InvalidRequestError(f"outputs: one id for each of the {count} {each}s, or null; found {len(outputs)}")
    return outputs


def hessian_outputs(outputs: Sequence[Sequence[str | None]] | None, sources: Sequence[Id]) -> list[str | None]:
    """Returns the ids in a Hessian's `outputs`, row by row; None for those not kept.

    Raises:
        InvalidRequestError: Their number does not fit, or there are too many blocks.
    """
    count = len(sources)
    if count * count > MAX_ITEMS:
        raise InvalidRequestError(
            f"sources: a Hessian has a block for each pair of sources, and {count:,} make {count * count:,}; the "
            f"limit is {MAX_ITEMS:,}: ask for fewer sources, or for hvp"
        )
    if outputs is None:
        return [None] * (count * count)
    lengths = [len(row) for row in outputs]
    if lengths != [count] * count:
        raise InvalidRequestError(
            f"outputs: for each of the {count} sources a list with an id or null for each source; found lists of "
            f"{lengths}"
        )
    return [id for row in outputs for id in row]


# -------------------------------------------------------------------------------------------------------------- methods
@endpoint("POST", "/tapes/{tape}/gradient", Derivatives, "Compute gradients", **_ASKS)
def gradient(session: Session, request: Request, body: GradientQuestion) -> Result:
    """Computes the gradient of the targets' sum with respect to each source.

    The tape's parents record the computation, so that they can differentiate it again.
    """
    return _ask(session, request, "gradient", body)


@endpoint("POST", "/tapes/{tape}/estimate", DerivativeEstimate, "Estimate a derivative", problems=_PROBLEMS, safe=True)
def estimate(session: Session, request: Request, body: EstimateQuestion) -> Result:
    """Returns what a derivative would take: bytes, ops, multiply-adds, about how many seconds.

    The backward pass is followed by shapes alone. The tape stays, also one that is not persistent.
    """
    return json_result(_facts(session, request, "estimate", body))


@endpoint(
    "POST",
    "/tapes/{tape}/gradient_statistics",
    GradientsNumbers,
    "Compute statistics of gradients",
    problems=_PROBLEMS,
    safe=True,
)
def gradient_statistics(session: Session, request: Request, body: GradientStatisticsQuestion) -> Result:
    """Computes norm, largest magnitude, mean and the shares of non-finite and zero elements of each gradient.

    The elements stay here. The tape stays too, also one that is not persistent.
    """
    facts = _facts(session, request, "gradient_statistics", body)
    numbers = zip(body.sources, facts["statistics"], strict=True)
    return json_result({"statistics": [{"source": source} | facts for source, facts in numbers]})


@endpoint("POST", "/tapes/{tape}/jacobian", Derivatives, "Compute Jacobians", **_ASKS)
def jacobian(session: Session, request: Request, body: JacobianQuestion) -> Result:
    """Computes the Jacobian of one target with respect to each source, in one batched backward pass."""
    return _ask(session, request, "jacobian", body)


@endpoint("POST", "/tapes/{tape}/batch_jacobian", Derivatives, "Compute the Jacobian of each example", **_ASKS)
def batch_jacobian(session: Session, request: Request, body: BatchJacobianQuestion) -> Result:
    """Computes d target[i] / d source[i] for each example i, for a target[i] that depends on source[i] alone."""
    return _ask(session, request, "batch_jacobian", body)


@endpoint("POST", "/tapes/{tape}/vjps", Derivatives, "Compute gradients for many output gradients", **_ASKS)
def vjps(session: Session, request: Request, body: VjpsQuestion) -> Result:
    """Computes one gradient for each of k output gradients, in one batched backward pass."""
    return _ask(session, request, "vjps", body)


@endpoint("POST", "/tapes/{tape}/hessian", HessianBlocks, "Compute a Hessian", **_ASKS)
def hessian(session: Session, request: Request, body: HessianQuestion) -> Result:
    """Computes the second derivatives of the targets' sum, a block for each pair of sources. Needs no parent tape."""
    return _ask(session, request, "hessian", body)


@endpoint("POST", "/tapes/{tape}/hvp", Derivatives, "Compute Hessian-vector products", **_ASKS)
def hvp(session: Session, request: Request, body: HvpQuestion) -> Result:
    """Computes the Hessian times a vector at the cost of two gradients. Needs no parent tape."""
    return _ask(session, request, "hvp", body)


@endpoint("POST", "/tapes/{tape}/sparse_jacobian", SparseAnswer, "Compute a sparse Jacobian", **_ASKS)
def sparse_jacobian(session: Session, request: Request, body: SparseJacobianQuestion) -> Result:
    """Computes the elements of a Jacobian that may differ from zero, as COO or CSR, in few products with vectors.

    Where they are is read off the recorded ops. The tape's parents cannot record it.
    """
    return _ask_sparse(session, request, "sparse_jacobian", body)


@endpoint("POST", "/tapes/{tape}/sparse_hessian", SparseAnswer, "Compute a sparse Hessian", **_ASKS)
def sparse_hessian(session: Session, request: Request, body: SparseHessianQuestion) -> Result:
    """Computes the second derivatives that may differ from zero, as COO or CSR, in few Hessian-vector products."""
    return _ask_sparse(session, request, "sparse_hessian", body)


@endpoint("POST", "/tapes/{tape}/questions", QuestionResults, "Compute many derivatives in one request", **_ASKS)
def questions(session: Session, request: Request, body: Questions) -> Result:
    """Answers several questions, also from a tape that is not persistent. If a question fails, nothing is kept."""
    tape = path_id(request.params["id"])
    questions = [_read_question(position, fields, tape) for position, fields in enumerate(body.questions)]
    answers = _answer(session, request, questions, name_question=True)
    return _result(session, {"results": [{"derivatives": derivatives} for derivatives in answers]})


# ----------------------------------------------------------------------------------------------------------- execution
def _ask(session: Session, request: Request, verb: str, body: Body) -> Result:
    """Answers one question."""
    question = _question(verb, body, path_id(request.params["id"]))
    [derivatives] = _answer(session, request, [question], name_question=False)
    return _result(session, {"derivatives": derivatives})


def _ask_sparse(session: Session, request: Request, verb: str, body: Any) -> Result:
    """Answers a question for a sparse derivative."""
    tape = path_id(request.params["id"])
    names = kept_outputs(body.outputs, "part", len(PARTS["coo"]))
    ids = [name or new_id() for name in names]
    fields = {field: getattr(body, field) for field in type(body).model_fields if field not in _NOT_FIELDS}
    question = _Question(command(verb, tape=tape, outputs=ids, **fields), body.sources, False, names, ids, body.replace)
    answer = _run(session, request, [question], name_question=False)
    [source] = body.sources
    return _result(session, {"derivative": sparse_entry(answer, source, names, ids, fetched_values(request, answer))})


#: The parts of a sparse matrix in answers, by its format, in the order of the command's outputs.
PARTS: Final = {"coo": ("rows", "cols", "values"), "csr": ("indptr", "indices", "values")}


def sparse_entry(
    answer: Answer, source: Id, names: Sequence[str | None], ids: Sequence[Id], values: Mapping[Id, Any]
) -> dict[str, Any]:
    """Returns a sparse derivative as answers have it; a null carries `why` there is none.

    Args:
        answer: Of the commands, of which one computed it.
        source: What it is the derivative by.
        names: For each part the caller's id, or None.
        ids: For each part the id that it has during the request.
        values: The elements by id.
    """
    [facts] = [result.facts for result in answer.results if isinstance(result, Facts) and "kind" in result.facts]
    if facts["kind"] == "none":
        return {"source": source} | facts
    parts = {
        part: {"id": name, "value": values[id]}
        for part, name, id in zip(PARTS[facts["format"]], names, ids, strict=True)
    }
    return {"source": source} | facts | parts


def _facts(session: Session, request: Request, verb: str, body: Body) -> Mapping[str, Any]:
    """Returns what a question answers that leaves the tape as it is."""
    tape = path_id(request.params["id"])
    check_paused(tape_facts(session, tape))
    fields = {field: getattr(body, field) for field in type(body).model_fields}
    answer = execute(session, request, [ContextSwitch(CONTEXT), command(verb, tape=tape, **fields)]).results[-1]
    assert isinstance(answer, Facts)
    return answer.facts


def _read_question(position: int, fields: dict[str, Any], tape: Id) -> _Question:
    verb = fields.get("do", "gradient")
    if not isinstance(verb, str) or verb not in ASK:
        raise InvalidRequestError(
            with_nearest(f"questions.{position}.do: must be one of {', '.join(ASK)}; found {verb!r}", verb, ASK)
        )
    body = validated(ASK[verb], fields, "questions", position)
    try:
        return _question(verb, body, tape)
    except TeletapeError as error:
        raise type(error)(f"question {position}: {error.message}", **error.details) from None


def _answer(
    session: Session, request: Request, questions: Sequence[_Question], *, name_question: bool
) -> list[list[Any]]:
    """Runs the questions, and returns the derivatives of each."""
    answer = _run(session, request, questions, name_question=name_question)
    kinds = [result for result in answer.results if isinstance(result, Kinds)]
    return _derivatives(questions, kinds, fetched_values(request, answer))


def _run(session: Session, request: Request, questions: Sequence[_Question], *, name_question: bool) -> Answer:
    """Runs the questions, and fetches what they computed.

    Raises:
        TeletapeError: A question failed; then nothing of the others stays, and their ids are free.
    """
    tape = path_id(request.params["id"])
    check_paused(tape_facts(session, tape))
    before, after = active(live_ancestors(session, tape))
    commands = [
        dataclasses.replace(question.command, retain_tape=question is not questions[-1])  # type: ignore[type-var]
        for question in questions
    ]
    _check_free(session, questions, name_question=name_question)
    ids = [id for question in questions for id in question.ids]
    temporaries = [
        id for question in questions for id, name in zip(question.ids, question.names, strict=True) if not name
    ]
    try:
        return execute(
            session,
            request,
            commands,
            before=before,
            after=[*after, *owned(tape, set(ids).difference(temporaries)), *fetches(request, ids, optional=True)],
            temporaries=temporaries,
            rollback=True,
            replace=any(question.replace for question in questions),
            name_command=name_question,
        )
    except TeletapeError as error:
        position = error.details.pop("command", None)
        if position is None:
            raise
        text = error.message.partition(": ")[2]  # after which command it is
        raise type(error)(f"question {position}: {text}", question=position, **error.details) from None


def _check_free(session: Session, questions: Sequence[_Question], *, name_question: bool) -> None:
    """Checks that each question can have its ids: others than the other questions, and new ones unless it replaces.

    Raises:
        IdInUseError: One cannot.
    """
    names: set[str] = set()
    for position, question in enumerate(questions):
        number = {"question": position} if name_question else {}
        for name in question.names:
            if name is None:
                continue
            if name in names:
                message = f"outputs: the id {name!r} is given to two derivatives of this request"
                raise IdInUseError(message, id=name, **number)
            if not question.replace and session.knows(name):
                raise IdInUseError(
                    f"outputs: the id {name!r} is in use, or was released: choose another, or send `replace`: true",
                    id=name,
                    **number,
                )
            names.add(name)


def _derivatives(questions: Sequence[_Question], kinds: Sequence[Kinds], values: Mapping[Id, Any]) -> list[list[Any]]:
    """Returns the JSON of each question's derivatives, given their kinds (none, dense, slices) and elements by id."""
    answers: list[list[Any]] = []
    for question, question_kinds in zip(questions, kinds, strict=True):
        sources = question.sources
        rows = [source for source in sources for _ in sources] if question.is_hessian else sources
        derivatives = [
            derivative_entry(question_kinds, position, source, values.get(id), id=name if id in values else None)
            for position, (source, name, id) in enumerate(zip(rows, question.names, question.ids, strict=True))
        ]
        answers.append(blocks(derivatives, sources) if question.is_hessian else derivatives)
    return answers


def blocks(derivatives: Sequence[Derivative], sources: Sequence[Id]) -> list[list[Derivative]]:
    """Returns a Hessian's blocks, which are in the order of pairs of sources, as a list of rows."""
    count = len(sources)
    return [
        [derivatives[row * count + column] | {"second_source": source} for column, source in enumerate(sources)]
        for row in range(count)
    ]


def _result(session: Session, body: dict[str, Any]) -> Result:
    bytes_in_use = session.estimated_bytes()
    return json_result(body | {"bytes_in_use": bytes_in_use}, bytes_in_use=bytes_in_use)
