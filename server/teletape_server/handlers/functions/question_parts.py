"""A question about a function as commands: bound to its inputs, in one part or, for a map, in a part for each chunk.

Each part is one batch. What several parts answer is joined along axis 0, the axis of the map's entries.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from teletape_engine.commands import Batch, Call, Command, Id, Input
from teletape_engine.commands.results import Answer, Kinds
from teletape_engine.session.session import Session
from teletape_engine.spec import Spec
from teletape_server.handlers.bodies import new_id
from teletape_server.handlers.execution import command
from teletape_server.handlers.functions.bound_calls import BoundCall, bound_call
from teletape_server.handlers.functions.mapped_calls import MappedCall, mapped_call
from teletape_server.handlers.functions.question_commands import (
    check_length,
    chosen_outputs,
    chosen_targets,
    in_forward_mode,
    kinds_of,
    question_batch,
    recorded,
    run_question,
)
from teletape_server.handlers.methods import Request
from teletape_server.handlers.tapes.questions import hessian_outputs, kept_outputs

#: Fields of a question that are no fields of its command.
NOT_FIELDS: Final = (
    *("inputs", "map", "targets", "sources", "outputs", "replace", "fetch"),
    *("per_example", "part", "remainder", "accumulate", "numeric"),
)
#: Fields of a question that have a member for each of its sources or targets.
MEMBERS: Final[Mapping[str, str]] = {"tangents": "source", "vectors": "source", "output_gradients": "target"}


@dataclass(frozen=True)
class Question:
    """What a question asks for.

    Attributes:
        sources, fetched: The names of the sources (of `jvp`: of the targets), and of the outputs to return.
        outputs: By name: the id of each output during the request.
        names: For each derivative the id that keeps it, or None.
        ids: For each derivative the id that it has during the request.
        map: What the answer says of the map, if it is one.
        why: Of `jvp`: for a target without a tangent the member of its entry that says why.
    """

    sources: Sequence[str]
    fetched: Sequence[str]
    outputs: Mapping[str, Id]
    names: Sequence[str | None]
    ids: Sequence[Id]
    map: Mapping[str, Any] | None = None
    why: dict[str, Mapping[str, Any]] = dataclasses.field(default_factory=dict)


@dataclass(frozen=True)
class Part:
    """A part of a question, ready to run.

    Attributes:
        call: The call that it is about.
        question: What it asks for.
        commands: Its commands.
        members: The weights, tangents and vectors with their dtypes, in the order of `MEMBERS`.
    """

    call: BoundCall
    question: Question
    commands: Sequence[Command]
    members: Sequence[Input | None]


class Parts:
    """A question's parts.

    Args:
        session: The session.
        function: The function's id.
        verb: The command that answers the question.
        body: The question.
        fetches_all: Whether all outputs are returned if none is chosen.

    Attributes:
        chunks: Of a map for each part its first entry, and the first that is not in it; else one part.
    """

    def __init__(
        self,
        session: Session,
        function: Id,
        verb: str,
        body: Any,
        fetches_all: bool,
    ) -> None:
        self._session, self._function, self._verb, self._body = session, function, verb, body
        self._fetches_all = fetches_all
        self._mapped: MappedCall | None = None
        self.chunks = [(0, 0)]
        if body.map is not None:
            self._mapped = mapped = mapped_call(session, function, body.inputs, body.map)
            self._sources = mapped.sources(body.sources)
            self._targets = chosen_targets(
                function, mapped.facts["outputs"], body.targets, is_single=verb == "jacobian"
            )
            steps = verb if getattr(body, "vectors", None) is None else "hvp"
            self.chunks = mapped.chunks(mapped.rows_at_once(steps, self._sources, self._targets))

    def part(self, number: int) -> Part:
        """Returns one of the parts."""
        mapped, members = self._mapped, members_of(self._body)
        if mapped is None:
            call = bound_call(self._session, self._function, self._body.inputs, self._body.sources)
            return self._about(call, members, flat(members))
        first, last = self.chunks[number]
        call = mapped.bound(self._sources, first, last)
        self._check_members([source.name for source in call.sources], self._targets)
        specs: dict[str, Sequence[Spec | None]] = {
            "source": [mapped.spec(source.number) for source in call.sources],
            "target": [mapped.result_specs.get(name) for name in self._targets],
        }
        stacks: dict[str, Sequence[Any] | None] = {}
        typed: list[Input | None] = []
        for field, values in members.items():
            stacks[field], with_dtypes, commands = mapped.members(values, specs[MEMBERS[field]], first, last)
            typed += with_dtypes
            call = replace(call, constants=[*call.constants, *commands])
        return self._about(call, stacks, typed, mapped.answer(len(self.chunks)))

    def run_all(self, request: Request) -> tuple[Part, Answer, Kinds]:
        """Runs all parts, and joins what they answer; returns the first with the question as a whole.

        Raises:
            TeletapeError: One of them failed; nothing stays.
        """
        columns: dict[str, list[Id]] = {}
        parts: list[Part] = []
        kinds = Kinds(0, ())
        try:
            for number in range(len(self.chunks)):
                part = self.part(number)
                own = {**part.question.outputs, **{f"#{at}": id for at, id in enumerate(part.question.ids)}}
                read_names = [*part.question.fetched, *[name for name in own if name[0] == "#"]]
                batch = question_batch(request, part.commands, [own[name] for name in read_names], ())
                answer = run_question(self._session, request, batch)
                kinds = kinds_of(answer) if not parts else kinds
                parts.append(part)
                for name in read_names:
                    columns.setdefault(name, []).append(own[name])
            question, answer, kinds = self._joined(request, parts[0].question, columns, kinds)
            return replace(parts[0], question=question), answer, kinds
        finally:
            left = [id for column in columns.values() for id in column if self._session.names(id)]
            self._session.execute(Batch((), tuple(left)))

    # ------------------------------------------------------------------------------------------------------- building
    def _about(
        self,
        call: BoundCall,
        members: Mapping[str, Sequence[Any] | None],
        typed: Sequence[Input | None],
        facts: Mapping[str, Any] | None = None,
    ) -> Part:
        """Returns the part about a call."""
        verb, body = self._verb, self._body
        targets = chosen_targets(call.function, list(call.outputs), body.targets, is_single=verb == "jacobian")
        fetched = chosen_outputs(call, body.fetch, all_of_them=self._fetches_all)
        sources = [source.name for source in call.sources]
        self._check_members(sources, targets)
        of = targets if verb == "jvp" else sources
        names = self._names(of)
        if len(self.chunks) > 1:  # the names are of the whole
            names = [None] * len(names)
        ids = [name or new_id() for name in names]
        question = Question(of, fetched, call.outputs, names, ids, facts)
        fields = {name: getattr(body, name) for name in type(body).model_fields if name not in NOT_FIELDS}
        if facts is not None and verb in ("jacobian", "hessian"):
            fields["examples"] = True
        results = [call.outputs[name] for name in targets]
        if verb == "jvp":
            directions = [values for values in members.values() if values is not None]
            commands = in_forward_mode(call, directions, results, ids, body.unconnected)
        else:
            tape, fields = new_id(), {**fields, **members}
            derivative = command(verb, tape=tape, targets=results, sources=list(call.source_ids), outputs=ids, **fields)
            commands = recorded(call, tape, derivative)
        return Part(call, question, commands, typed)

    def _names(self, of: Sequence[str]) -> Sequence[str | None]:
        """Returns for each derivative the caller's id, or None; `of` are the sources, or the targets of `jvp`."""
        if self._verb == "hessian":
            return hessian_outputs(self._body.outputs, of)
        return kept_outputs(self._body.outputs, "target" if self._verb == "jvp" else "source", len(of))

    def _check_members(self, sources: Sequence[str], targets: Sequence[str]) -> None:
        names = {"source": sources, "target": targets}
        for field in members_of(self._body):
            check_length(field, self._body, MEMBERS[field], names[MEMBERS[field]])

    # -------------------------------------------------------------------------------------------------------- joining
    def _joined(
        self, request: Request, question: Question, columns: Mapping[str, Sequence[Id]], kinds: Kinds
    ) -> tuple[Question, Answer, Kinds]:
        """Returns the whole question, its answer, and the kinds of its derivatives, from those of the parts."""
        names = self._names(question.sources)
        ids = [name or new_id() for name in names]
        outputs = {name: new_id() for name in question.outputs}
        own = {**outputs, **{f"#{at}": id for at, id in enumerate(ids)}}
        commands = [
            Call("concat", tuple(column), (own[name],), {"axis": 0})
            for name, column in columns.items()
            if self._session.names(column[0])
        ]
        fetched = [*[outputs[name] for name in question.fetched], *ids]
        batch = question_batch(request, commands, names, fetched, replace=self._body.replace)
        answer = run_question(self._session, request, batch)
        dense = tuple(["dense" if kind == "slices" else kind for kind in kinds.kinds])
        whole = replace(question, outputs=outputs, names=names, ids=ids)
        return whole, answer, replace(kinds, kinds=dense)


def members_of(body: Any) -> dict[str, Sequence[Any] | None]:
    """Returns what a question has for each of its sources or targets, by field; None: the field was left out."""
    return {field: getattr(body, field) for field in MEMBERS if field in type(body).model_fields}


def flat(members: Mapping[str, Sequence[Any] | None]) -> list[Any]:
    """Returns the members of all fields, one after the other."""
    return [member for values in members.values() for member in values or ()]
