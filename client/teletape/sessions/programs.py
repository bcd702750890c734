"""Commands that take programs, on a server: each program is defined there once, and what a command gives is foreseen.

Where values decide what runs, and a tape follows it, the server is asked what it decided: then this side records the
same steps.
"""

from __future__ import annotations

import dataclasses
import weakref
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from teletape.sessions.recorder import Follower, Handle, Name, id_of
from teletape.sessions.session import taking
from teletape_engine import commands
from teletape_engine.commands import Command, schema
from teletape_engine.commands.results import Told
from teletape_engine.programs.program import FLOWS, Program
from teletape_engine.recording.values import Literal, Variable
from teletape_engine.spec import Spec, weak_dtype

if TYPE_CHECKING:
    from teletape.sessions.remote import RemoteSession

_DECIDED: Final = (commands.While, commands.Cond)


class Programs:
    """The programs of a session on a server, by what they are here; released there when nothing here has them."""

    def __init__(self) -> None:
        self._names: weakref.WeakKeyDictionary[Program, Name] = weakref.WeakKeyDictionary()

    def id(self, session: RemoteSession, program: Program) -> int:
        """The id of a program, defined when it is first asked for, or again if that failed."""
        name = self._names.get(program)
        if name is None or session.failed(name.id):
            name = self._names[program] = session.new_name()
            steps = [self._step(session, step) for step in program.calls]
            made = commands.DefineFunction(name.id, program.inputs, tuple(steps), program.outputs)
            session.emit(session.recorder(), made, program.nbytes)
        return name.id

    def _step(self, session: RemoteSession, step: Command) -> Command:
        taken = list(commands.programs_of(step))
        if isinstance(step, commands.Call):
            return dataclasses.replace(step, where=None)  # lines never leave the program
        if not taken:
            return step
        given = {name: getattr(step, name) for name in schema.fields(step.verb)}
        return taking(type(step), [self.id(session, one) for one in taken], **given)

    def run(
        self,
        session: RemoteSession,
        command: type[Command],
        programs: Sequence[Program],
        inputs: Sequence[Any],
        given: dict[str, Any],
    ) -> list[Handle]:
        """See `Session.flow`."""
        recorder = session.recorder()
        ids = [self.id(session, one) for one in programs]
        given["inputs"] = tuple([one if isinstance(one, Literal) else id_of(one) for one in inputs])
        decided = command in _DECIDED or any(one.decides for one in programs)
        if decided and recorder.follows(inputs):
            carried = len(inputs) - given.get("captured", 0)
            names = [
                session.new_name() for _ in range(carried if command is commands.While else len(programs[0].outputs))
            ]
            given |= {"outputs": tuple([one.id for one in names]), "report_decisions": True}
            told = session.ask(recorder, taking(command, ids, **given))
            assert isinstance(told, Told)
            return _foreseen(recorder, command, programs, inputs, given, told.facts["decisions"], names)
        made = _foreseen(recorder, command, programs, inputs, given, None, None, session)
        given["outputs"] = tuple([one.name.id for one in made])  # type: ignore[union-attr]  # just named
        session.emit(recorder, taking(command, ids, **given))
        if any(one.checks for one in programs):
            session.sync()  # what it asserts is raised on the program's own line
        return made


def _foreseen(
    recorder: Follower,
    command: type[Command],
    programs: Sequence[Program],
    inputs: Sequence[Any],
    given: dict[str, Any],
    decisions: Any,
    names: Sequence[Name] | None,
    session: RemoteSession | None = None,
) -> list[Handle]:
    """The results, named; what records here follows the same steps as there."""
    (program, *_) = programs
    if command is commands.CallFunction and decisions is None and not (recorder.recorded or program.refuses):
        found: list[Any] = [Handle(spec) for spec in program.infer([one.spec for one in inputs])]
        for i in program.assigns:
            _changed(inputs[i])
    else:
        with recorder.replaying(decisions):
            found = FLOWS[command](recorder, taking(command, programs, **given), programs, inputs)
    made = []
    for i, one in enumerate(found):
        name = names[i] if names is not None else session.new_name()  # type: ignore[union-attr]  # one of them is given
        made.append(_named(one, name))
    return made


def _changed(variable: Variable) -> None:
    """A program has assigned to it: what it holds is not known here."""
    variable.assign(Handle(variable.spec, variable.value.name))


def _named(one: Any, name: Name) -> Handle:
    """A result as a value with a name of its own."""
    if isinstance(one, Literal):
        return Handle(Spec.of((), weak_dtype(one.spec, None)), name)
    # An argument, or a constant of the program, goes by another name there: it is not touched.
    made: Handle = one if one.name is None and one.host is None else one.alias(one.uid)
    made.name = name
    return made
