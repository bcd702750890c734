"""Calls of a form that came before: a function of the version's session answers them, which runs as a plan.

It computes outputs and gradients in one call that no tape records, so that the engine repeats it as a plan: for one
call, and for the rows of several, whose number is rounded up so that there are few plans.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np

from teletape_engine.catalogue.attributes import keep
from teletape_engine.commands import (
    Batch,
    Call,
    CallFunction,
    Command,
    Constant,
    DefineFunction,
    Fetch,
    Id,
    Map,
    OnFailure,
    ValueAndGradient,
)
from teletape_engine.commands import outputs as created_ids
from teletape_engine.commands.results import Fetched
from teletape_engine.session.session import Session
from teletape_server.handlers.functions.question_commands import run_question
from teletape_server.handlers.methods import Request

Array: TypeAlias = np.ndarray[Any, Any]
_MOST_FUNCTIONS: Final = 64  #: Of a version; others are answered without a plan.
_MOST_FORMS: Final = 256  #: Of a version that are known; the oldest are forgotten.


class Form(NamedTuple):
    """What the function for some calls depends on.

    Attributes:
        function: The version's function, which takes its inputs and then the weights.
        inputs, outputs: Names, as the version declares them.
        weights: Ids of the version's weights.
        sources, targets: Names; no sources: the outputs alone are asked for.
        weighted: Those targets that each call has a weight for.
        is_rows: Whether it is for the rows of several calls.
    """

    function: Id
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    weights: tuple[Id, ...]
    sources: tuple[str, ...]
    targets: tuple[str, ...]
    weighted: tuple[str, ...]
    is_rows: bool

    def definitions(self, id: Id) -> list[Command]:
        """Returns what makes the function: from inputs, targets' weights and weights, to outputs and gradients.

        Args:
            id: Its id.
        """
        arguments, own = [f"in {name}" for name in self.inputs], [f"of {name}" for name in self.weighted]
        shared = [f"weight {number}" for number in range(len(self.weights))]
        called, every = (*arguments, *shared), (*arguments, *own, *shared)
        values = tuple([f"out {name}" for name in self.outputs])
        mapped = (*[True] * len(arguments), *[False] * len(shared))
        call: Command = CallFunction(self.function, called, values)
        if self.is_rows:
            call = Map(self.function, called, mapped, values)
        if not self.sources:
            return [DefineFunction(id, every, (call,), values)]
        products = [Call("mul", (f"out {name}", f"of {name}"), (f"product {name}",)) for name in self.weighted]
        results = (*values, *[f"product {name}" for name in self.weighted])
        gradients = tuple([f"by {name}" for name in self.sources])
        targets = tuple([f"product {name}" if name in self.weighted else f"out {name}" for name in self.targets])
        sources = tuple([f"in {name}" for name in self.sources])
        summed = f"{id} summed"
        step = ValueAndGradient(summed, every, targets, sources, (*results, *gradients), "zero")
        return [
            DefineFunction(summed, every, (call, *products), results),
            DefineFunction(id, every, (step,), (*values, *gradients)),
        ]


@dataclass(frozen=True)
class Planned:
    """The function for calls of a form."""

    id: Id
    form: Form

    def answer(
        self, session: Session, request: Request, calls: Sequence[Sequence[Array]], fetch: Sequence[str]
    ) -> dict[str, Array]:
        """Returns outputs and gradients, stacked, by the names that the function has for them.

        Args:
            session: The version's.
            request: One of the calls.
            calls: For each its inputs, and then its weights of targets.
            fetch: Names of outputs.

        Raises:
            TeletapeError: They cannot be computed.
        """
        commands: list[Command] = []
        for number, arrays in enumerate(zip(*calls, strict=True)):
            value = arrays[0]
            if self.form.is_rows:
                value = np.stack([*arrays, *[arrays[-1]] * (_room(len(arrays)) - len(arrays))])
            commands.append(Constant(f"argument {number}", value))
        names = [*[f"out {name}" for name in self.form.outputs], *[f"by {name}" for name in self.form.sources]]
        inputs = (*[id for item in commands for id in created_ids(item)], *self.form.weights)
        commands.append(CallFunction(self.id, inputs, tuple(names)))
        created = tuple([id for item in commands for id in created_ids(item)])
        fetched = [*[f"out {name}" for name in fetch], *names[len(self.form.outputs) :]]
        batch = Batch(
            (*commands, *[Fetch(name) for name in fetched]), temporaries=created, on_failure=OnFailure.ROLLBACK
        )
        results = run_question(session, request, batch).results
        arrays_of: dict[Any, Any] = {result.id: result.array for result in results if isinstance(result, Fetched)}
        return {name: array if self.form.is_rows else array[None] for name, array in arrays_of.items()}


@dataclass
class PlannedForms:
    """The functions of a version for calls of forms that came before."""

    _forms: dict[Hashable, Planned] = field(default_factory=dict)
    _functions: dict[Form, Planned] = field(default_factory=dict)

    def find(self, key: Hashable) -> Planned | None:
        """Returns the function for calls with a key; None: there is none."""
        return self._forms.get(key)

    def note(self, key: Hashable, session: Session, form: Form) -> None:
        """Notes the form of calls with a key, whose gradients are dense.

        Args:
            key: Equal for calls with equal shapes and fields.
            session: The version's.
            form: Their form.
        """
        planned = self._functions.get(form)
        if planned is None:
            if len(self._functions) >= _MOST_FUNCTIONS:
                return
            planned = self._functions[form] = Planned(f"planned {len(self._functions)}", form)
            session.execute(Batch(tuple(form.definitions(planned.id))))
        keep(self._forms, key, planned, _MOST_FORMS)


def _room(calls: int) -> int:
    """Returns how many rows the stack of some calls has: there is a plan for each number of rows."""
    step = 1 if calls <= 16 else 4 if calls <= 64 else 16
    return -(-calls // step) * step
