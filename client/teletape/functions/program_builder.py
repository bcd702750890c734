"""From the steps that a trace has noted to a program: what leads nowhere is left out, and values get names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from teletape_engine import commands
from teletape_engine.catalogue.op import CATALOGUE, Trait
from teletape_engine.commands import Command
from teletape_engine.programs.program import Program


class TracedStep(NamedTuple):
    """A step while its values are numbers. `command`: an op, an assignment or a flow; None: a variable's reading."""

    command: Command | None
    inputs: tuple[Any, ...]  # places, Literals, arrays
    outputs: tuple[int, ...]
    writes: tuple[int, ...] = ()  # places of variables that it assigns to


def ordered(steps: Sequence[TracedStep], results: Sequence[int | None]) -> list[TracedStep]:
    """The steps that a result or an assignment needs. A reading stands for the variable itself where it can.

    It cannot where its value is used after the next assignment, or by a call that makes one: then it is kept, as an
    identity.
    """
    needed: set[Any] = {one for one in results if one is not None}
    kept = []
    for step in reversed(steps):
        if step.writes or _checks(step.command) or not needed.isdisjoint(step.outputs):
            kept.append(step)
            needed.update([one for one in step.inputs if one.__class__ is int])
    kept.reverse()
    last = {one: len(kept) for one in results}
    for k, step in enumerate(kept):
        for one in step.inputs:
            if one.__class__ is int:
                last[one] = max(last.get(one, -1), k)
    writes: dict[int, list[int]] = {}
    for k, step in enumerate(kept):
        for place in step.writes:
            writes.setdefault(place, []).append(k)
    calls = [one for one in kept if one.writes and not isinstance(one.command, commands.Assign)]
    taken = {value for one in calls for value in one.inputs if value.__class__ is int}
    same: dict[int, int] = {}
    found = []
    for k, step in enumerate(kept):
        if step.command is None:
            (variable,), (value,) = step.inputs, step.outputs
            after = next((at for at in writes.get(variable, ()) if at > k), None)
            if value not in taken and (after is None or last[value] <= after):
                same[value] = variable
                continue
        found.append(step._replace(inputs=tuple([_renamed(same, one) for one in step.inputs])))
    for one in results:
        if one is not None and one in same:
            found.append(TracedStep(None, (same.pop(one),), (one,)))
    return found


def _checks(command: Command | None) -> bool:
    """Whether it is an assertion, which runs even if nothing uses its result."""
    return isinstance(command, commands.Call) and Trait.ASSERTS in CATALOGUE[command.op].traits


def _renamed(same: dict[int, int], one: Any) -> Any:
    return same.get(one, one) if one.__class__ is int else one


def written_down(steps: Sequence[TracedStep], inputs: Sequence[Any], results: Sequence[Any]) -> Program:
    """The program of these steps; `inputs` and `results` are symbols of the trace."""
    names: dict[Any, str] = {one.at: f"a{i}" for i, one in enumerate(inputs)}
    calls: list[Command] = []

    def named(one: Any) -> Any:
        if one.__class__ is int and one not in names:
            names[one] = f"v{one}"
        return names[one] if one.__class__ is int else one

    for step in steps:
        taken, made = tuple([named(one) for one in step.inputs]), tuple([named(one) for one in step.outputs])
        command = step.command
        if command is None:
            calls.append(commands.Call("identity", taken, made))
        elif isinstance(command, commands.Call):
            calls.append(commands.Call(command.op, taken, made, command.attrs, command.where))
        elif isinstance(command, commands.Assign):
            calls.append(commands.Assign(taken[0], taken[1], command.mode, *taken[2:]))
        else:
            fields = {name: getattr(command, name) for name in command.__dataclass_fields__}  # type: ignore[attr-defined]
            calls.append(type(command)(**fields | {"inputs": taken, "outputs": made}))
    outputs = []
    for i, one in enumerate(results):
        if one.at is None:  # a constant, which has no name yet
            calls.append(commands.Call("identity", (one.host,), (f"r{i}",)))
            outputs.append(f"r{i}")
        else:
            outputs.append(names[one.at])
    return Program([names[one.at] for one in inputs], calls, outputs)
