"""Calls that are computed together: their inputs are stacked, and the function runs over the rows of the stack.

Row i of every output depends on row i of the inputs alone, so the gradient of the outputs' sum by the stack has in its
row i the gradient of call i by its own inputs. The same holds for products with vectors.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np

import teletape_wire as wire
from teletape_engine.commands import (
    Batch,
    Command,
    Constant,
    ContextSwitch,
    Fetch,
    Id,
    OnFailure,
    Scan,
    TapeOpen,
    TapePause,
    TapeWatch,
)
from teletape_engine.commands import outputs as created_ids
from teletape_engine.commands.results import Fetched, Kinds
from teletape_engine.errors import UnimplementedError
from teletape_engine.recording.values import Literal, typed_array
from teletape_engine.spec import dtype_of
from teletape_server.handlers.answers import derivative_entry
from teletape_server.handlers.execution import command
from teletape_server.handlers.functions.question_commands import forward_mode, kinds_of, run_question
from teletape_server.handlers.functions.question_parts import MEMBERS
from teletape_server.handlers.methods import Request
from teletape_server.handlers.published.planned import Form
from teletape_server.handlers.published.versions import FUNCTION, WEIGHT, Version
from teletape_server.handlers.recording import CONTEXT
from teletape_server.models.published.contract import Declared
from teletape_wire.safetensors.layout import SAFETENSORS_TYPE

Array: TypeAlias = np.ndarray[Any, Any]
#: The questions that calls can be computed together for, with the fields of tensors that each call has for itself.
STACKS: Final[Mapping[str, Sequence[str]]] = {
    "call": (),
    "value_and_gradient": ("output_gradients",),
    "gradient": ("output_gradients",),
    "vjp": ("output_gradients",),
    "jvp": ("tangents", "vectors"),
    "hvp": ("vectors", "output_gradients"),
}
_PLANNED: Final = ("call", "value_and_gradient", "gradient", "vjp")  # questions that a function answers
_FETCHES_ALL: Final = ("call", "value_and_gradient")  # questions whose answer has all outputs if none is chosen
_TAPE: Final = "rows tape"


@dataclass(frozen=True)
class Stack:
    """What calls that are computed together have in common.

    Attributes:
        question: What they ask.
        sources, targets, fetch: Names of inputs, and of outputs.
        members: By field of `STACKS`, for each target or source whether a call has a tensor of its own for it; empty:
            none has.
        key: Equal for calls that can be computed together.
    """

    question: str
    sources: Sequence[str]
    targets: Sequence[str]
    fetch: Sequence[str]
    unconnected: str
    members: Mapping[str, Sequence[bool]]
    key: Hashable

    @classmethod
    def of(
        cls, version: Version, question: str, fields: Any, inputs: Sequence[Array], sources: Sequence[str]
    ) -> Stack | None:
        """Returns how a call is computed together with others; None: it cannot be.

        Args:
            version: What is asked.
            question: One of `STACKS`.
            fields: The call's body, whose names are known.
            inputs: Its inputs.
            sources: The inputs that it is differentiated by.
        """
        outputs = version.published.outputs
        targets = getattr(fields, "targets", None) or list(outputs)
        fetch = fields.fetch
        if fetch is None:
            fetch = list(outputs) if question in _FETCHES_ALL else []
        sources, targets, fetch = ([*dict.fromkeys(names)] for names in (sources, targets, fetch))
        own = _own_tensors(version, question, fields, sources, targets)
        if own is None or not inputs:
            return None
        members = {field: [tensor is not None for tensor in tensors] for field, tensors in own.items()}
        unconnected = getattr(fields, "unconnected", "none")
        tensors = [*inputs, *[tensor for of_field in own.values() for tensor in of_field if tensor is not None]]
        specs = [(tensor.shape, tensor.dtype) for tensor in tensors]
        key = (question, *map(tuple, (sources, targets, fetch, *members.values(), specs)), unconnected)
        return cls(question, sources, targets, fetch, unconnected, members, key)

    def answers(
        self, version: Version, requests: Sequence[Request], bodies: Sequence[Any], inputs: Sequence[Sequence[Array]]
    ) -> Answers:
        """Returns the answers of calls, in their order.

        Args:
            version: What is asked.
            requests: The calls.
            bodies: Their bodies.
            inputs: The inputs of each.

        Raises:
            TeletapeError: They cannot be computed together, or one of them not at all.
        """
        planned = self.planned_answers(version, requests, bodies, inputs, is_rows=True)
        if planned is not None:
            return planned
        published = version.published
        ids = {name: f"rows of {name}" for name in published.inputs}
        results = {name: f"results {name}" for name in published.outputs}
        derivatives = [f"derivative {number}" for number in range(len(self._derived))]
        constants = [
            Constant(ids[name], np.stack(rows)) for name, rows in zip(ids, zip(*inputs, strict=True), strict=True)
        ]
        own = [_own_tensors(version, self.question, body, self.sources, self.targets) or {} for body in bodies]
        stacks = {
            field: tuple(
                [np.stack([of[field][number] for of in own]) if has else None for number, has in enumerate(members)]  # type: ignore[misc]  # none is None
            )
            for field, members in self.members.items()
            if members
        }
        weights = [WEIGHT + name for name in published.weights]
        call = Scan(FUNCTION, (*ids.values(), *weights), tuple(results.values()), captured=len(weights), vectorize=True)
        sources = tuple([ids[name] for name in self.sources])
        targets = tuple([results[name] for name in self.targets])
        commands = [*constants, ContextSwitch(CONTEXT), *self._question(call, sources, targets, derivatives, stacks)]
        fetched: list[Id] = [*[results[name] for name in self.fetch], *derivatives]
        created = tuple([id for item in commands for id in created_ids(item)])
        batch = Batch(
            (*commands, *[Fetch(id, None, True) for id in fetched]), temporaries=created, on_failure=OnFailure.ROLLBACK
        )
        answer = run_question(version.session, requests[0], batch)
        arrays: dict[Id, Any] = {result.id: result.array for result in answer.results if isinstance(result, Fetched)}
        kinds = None if self.question == "call" else kinds_of(answer)
        if kinds is not None and any(
            kind == "slices" or (kind == "none" and self.question == "jvp") for kind in kinds.kinds
        ):
            raise UnimplementedError("a sparse derivative has no form over rows")
        self.note(version, () if kinds is None else kinds.kinds, is_rows=True)
        bytes_in_use = version.session.estimated_bytes(nothing_stays=True)
        return Answers(
            {name: arrays[results[name]] for name in self.fetch},
            [*zip(self._derived, [arrays.get(id) for id in derivatives], strict=True)],
            kinds,
            bytes_in_use,
            is_forward=self.question == "jvp",
        )

    # -------------------------------------------------------------------------------------------------------- as a plan
    def planned_answers(
        self,
        version: Version,
        requests: Sequence[Request],
        bodies: Sequence[Any],
        inputs: Sequence[Sequence[Array]],
        *,
        is_rows: bool,
    ) -> Answers | None:
        """Returns the answers of calls as a plan gives them; None: such calls have not come before.

        Args:
            version: What is asked.
            requests: The calls.
            bodies: Their bodies.
            inputs: The inputs of each.
            is_rows: Whether the calls are rows of a stack; else there is one.

        Raises:
            TeletapeError: They cannot be computed.
        """
        planned = version.planned.find((is_rows, self.key))
        if planned is None:
            return None
        calls, latest = [], None
        weights: list[Array] = []
        for body, arrays in zip(bodies, inputs, strict=True):
            if body is not latest:  # it is that of the call before, if their headers are the same
                own = _own_tensors(version, self.question, body, self.sources, self.targets) or {}
                latest, weights = body, [array for of in own.values() for array in of if array is not None]
            calls.append([*arrays, *weights])
        arrays_of = planned.answer(version.session, requests[0], calls, self.fetch)
        kinds = None if self.question == "call" else Kinds(0, ("dense",) * len(self.sources))
        return Answers(
            {name: arrays_of[f"out {name}"] for name in self.fetch},
            [(name, arrays_of[f"by {name}"]) for name in self._derived],
            kinds,
            version.session.estimated_bytes(nothing_stays=True),
            is_forward=False,
        )

    def note(self, version: Version, kinds: Sequence[str], *, is_rows: bool) -> None:
        """Notes that calls were answered, with derivatives of these kinds; the next ones may be answered as a plan."""
        if self.question not in _PLANNED or any(kind != "dense" for kind in kinds):
            return
        published = version.published
        [has_weight] = self.members.values() or [()]
        form = Form(
            FUNCTION,
            tuple(published.inputs),
            tuple(published.outputs),
            tuple([WEIGHT + name for name in published.weights]),
            tuple(self._derived),
            () if self.question == "call" else tuple(self.targets),
            tuple([name for name, has in zip(self.targets, has_weight, strict=False) if has]),
            is_rows,
        )
        version.planned.note((is_rows, self.key), version.session, form)

    # ------------------------------------------------------------------------------------------------------- on a tape
    @property
    def _derived(self) -> Sequence[str]:
        """What there is a derivative for: sources, or the targets of a product in forward mode."""
        if self.question == "call":
            return ()
        return self.targets if self.question == "jvp" else self.sources

    def _question(
        self,
        call: Command,
        sources: tuple[Id, ...],
        targets: tuple[Id, ...],
        derivatives: Sequence[str],
        stacks: Mapping[str, tuple[Any, ...]],
    ) -> list[Command]:
        """Returns the commands that run the function over the rows, and answer the question."""
        if self.question == "call":
            return [call]
        outputs: tuple[Id, ...] = tuple(derivatives)
        if self.question == "jvp":
            return forward_mode(call, [*stacks.values()], sources, targets, outputs, self.unconnected)
        fields: dict[str, Any] = {"tape": _TAPE, "targets": targets, "sources": sources, "outputs": outputs}
        verb = "hvp" if self.question == "hvp" else "gradient"
        question = command(verb, unconnected=self.unconnected, **fields, **stacks)
        return [TapeOpen(_TAPE), TapeWatch(_TAPE, sources), call, TapePause(_TAPE), question]


@dataclass(frozen=True)
class Answers:
    """The answers of a stack.

    Attributes:
        values: Outputs, stacked, by name.
        derivatives: For each source, or for each target in forward mode, its name and its derivative, stacked.
        kinds: Of the derivatives; None: the question is for outputs alone.
        bytes_in_use: Of the version's session.
        is_forward: Whether the derivatives are those of targets.
    """

    values: Mapping[str, Array]
    derivatives: Sequence[tuple[str, Array | None]]
    kinds: Kinds | None
    bytes_in_use: int
    is_forward: bool

    @property
    def arrays(self) -> list[Array]:
        """All tensors, stacked, in the order in which an answer has them."""
        return [*self.values.values(), *[array for _, array in self.derivatives if array is not None]]

    def of(self, number: int, request: Request) -> dict[str, Any]:
        """Returns the answer to a call, as JSON-able data or with arrays in the places of tensors."""

        def value(stack: Array | None) -> Any:
            if stack is None or request.params["accept"] == SAFETENSORS_TYPE:
                return None if stack is None else stack[number, ...]
            elements = None if request.params["full"] else wire.PREVIEW
            return wire.tensor_to_json(stack[number, ...], elements=elements, unwritten=True)

        values = {name: value(stack) for name, stack in self.values.items()}
        if self.kinds is None:
            return {"outputs": [], "values": values, "bytes_in_use": self.bytes_in_use}
        entries = []
        for position, (name, stack) in enumerate(self.derivatives):
            if self.is_forward:
                kind = self.kinds.kinds[position]
                entries.append({"name": name, "kind": kind, "id": None, "value": value(stack)})
            else:
                entries.append(derivative_entry(self.kinds, position, name, value(stack)))
        return {"values": values, "derivatives": entries, "bytes_in_use": self.bytes_in_use}


def _own_tensors(
    version: Version, question: str, fields: Any, sources: Sequence[str], targets: Sequence[str]
) -> dict[str, Sequence[Array | None]] | None:
    """Returns the tensors that a call has for its targets or sources, by field; None: some do not fit."""
    published = version.published
    own: dict[str, Sequence[Array | None]] = {}
    for field in STACKS[question]:
        tensors: Sequence[Any] = getattr(fields, field, None) or ()
        of_targets = MEMBERS[field] == "target"
        declared: list[Declared] = [
            published.outputs[name] if of_targets else published.inputs[name]
            for name in (targets if of_targets else sources)
        ]
        if tensors and len(tensors) != len(declared):
            return None
        arrays: list[Array | None] = []
        for tensor, item in zip(tensors, declared, strict=False):  # no tensors: ones for each
            array = typed_array(tensor, dtype_of(item.dtype)) if isinstance(tensor, Literal) else tensor
            if array is not None and array.ndim != len(item.shape):  # it would have another meaning as a row
                return None
            arrays.append(array)
        own[field] = arrays
    return own
