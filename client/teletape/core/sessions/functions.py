"""Functions on a server: each is defined there once; the specs of a call's results are inferred here.

If values decide about the steps that run, and a tape records them, the server reports its decisions, and this side
records the same steps.
"""

from __future__ import annotations

import dataclasses
import weakref
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from teletape.core.program.call_site import call_site_text
from teletape.core.sessions.recorder import Handle, RemoteRecorder, id_of
from teletape.core.sessions.sending.batch_buffer import Name
from teletape.core.sessions.sending.channel import Channel
from teletape.core.sessions.sending.strands import strand_of
from teletape.core.sessions.session import with_functions
from teletape_engine import commands
from teletape_engine.commands import Command, schema
from teletape_engine.commands.results import Facts
from teletape_engine.functions.function import RUNNERS, Function
from teletape_engine.locks import ReentrantLock
from teletape_engine.recording.values import Literal, Variable
from teletape_engine.spec import Spec, weak_dtype

if TYPE_CHECKING:  # it is imported when it is used
    from teletape.core.profiling.profile import Profile

_DECIDING: Final = (commands.While, commands.Cond)
_MOST: Final = 1024  #: The largest number of functions that stay defined on the server: one for each signature.


class RemoteFunctions:
    """The functions that a session has defined on its server.

    A function without a reference here is released there. So is the least recently used one if there are too many; it
    is defined again at its next use.
    """

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._names: weakref.WeakKeyDictionary[Function, Name] = weakref.WeakKeyDictionary()  # see `_note_use`
        self._defining = ReentrantLock()

    def id(self, recorder: RemoteRecorder, function: Function) -> int:
        """Returns the id of a function, which is defined at the first call, or again if that failed."""
        name = self._names.get(function)
        if name is None or self._channel.failed(name.id):
            with self._defining:  # a thread that finds the name records its call after the definition
                name = self._names.get(function)
                if name is None or self._channel.failed(name.id):
                    name = self._defined(recorder, function)
        profile = self._channel.buffer.profile
        if profile is not None:
            self._note_in(profile, function)
            profile.note_caller(function, call_site_text(recorder.provenance.here()))
        if len(self._names) > _MOST // 2:
            self._note_use(function, name)
        return name.id

    def _defined(self, recorder: RemoteRecorder, function: Function) -> Name:
        name = self._channel.new_name()
        steps = tuple([self._step(recorder, step) for step in function.commands])
        recorder.emit(commands.DefineFunction(name.id, function.inputs, steps, function.outputs), function.nbytes)
        self._channel.buffer.functions[name.id] = function
        self._names[function] = name
        return name

    def _note_in(self, profile: Profile, function: Function) -> None:
        """Adds a function, and the functions within it, to a profile, because answers name them by their ids."""
        name = self._names.get(function)
        if name is None or name.id in profile.functions:
            return
        profile.functions[name.id] = function
        for step in function.steps:
            for inner in step.functions:
                self._note_in(profile, inner)

    def _note_use(self, function: Function, name: Name) -> None:
        """Makes the function the most recently used one, and releases the least recently used ones above the limit."""
        self._names.pop(function, None)
        self._names[function] = name
        if len(self._names) > _MOST:
            self._names.pop(next(iter(self._names)), None)

    def _step(self, recorder: RemoteRecorder, step: Command) -> Command:
        """Returns a step as it is sent: without its call site, and with ids in place of functions."""
        taken = list(commands.functions_of(step))
        if isinstance(step, commands.Call):
            return dataclasses.replace(step, where=None)
        if not taken:
            return step
        fields = {name: getattr(step, name) for name in schema.fields(step.verb)}
        return with_functions(type(step), [self.id(recorder, function) for function in taken], **fields)

    def run(
        self,
        recorder: RemoteRecorder,
        command: type[Command],
        functions: Sequence[Function],
        inputs: Sequence[Any],
        fields: dict[str, Any],
    ) -> list[Handle]:
        """See `Session.run_command`."""
        recorder.read_ahead.continuations.forget()  # it may assign to variables
        ids = [self.id(recorder, function) for function in functions]
        fields["inputs"] = tuple([value if isinstance(value, Literal) else id_of(value) for value in inputs])
        decides = command in _DECIDING or any(function.decides for function in functions)
        if decides and recorder.follows(inputs):
            carried = len(inputs) - fields.get("captured", 0)
            count = carried if command is commands.While else len(functions[0].outputs)
            names = [self._channel.new_name() for _ in range(count)]
            fields |= {"outputs": tuple([name.id for name in names]), "report_decisions": True}
            answer = recorder.ask(with_functions(command, ids, **fields))
            assert isinstance(answer, Facts)
            inferred = _inferred(recorder, command, functions, inputs, fields, answer.facts["decisions"])
            results = [_named(value, name) for value, name in zip(inferred, names, strict=True)]
            recorder.note_together(results)
            return results
        inferred = _inferred(recorder, command, functions, inputs, fields, None)
        results = [_named(value, self._channel.new_name()) for value in inferred]
        fields["outputs"] = tuple([id_of(result) for result in results])
        place = recorder.place
        self._channel.emit(place, with_functions(command, ids, **fields))
        recorder.read_ahead.note_together(results, strand_of(place))
        if any(function.checks for function in functions):
            self._channel.sync()  # a failed assertion is raised on the function's own line
        return results

    def publish(
        self,
        recorder: RemoteRecorder,
        name: str,
        function: Function,
        inputs: Sequence[str],
        weights: Mapping[str, Any],
        outputs: Mapping[str, int],
        facts: Mapping[str, Any],
    ) -> dict[str, Any]:
        """See `Session.publish`. The server gets a function with these names, which calls the other one."""
        results = [f"result_{position}" for position in range(len(function.outputs))]
        for label, position in outputs.items():
            results[position] = label
        names, named = (*inputs, *weights), f"published_{self._channel.new_name().id}"
        call = commands.CallFunction(self.id(recorder, function), names, tuple(results))
        recorder.emit(commands.DefineFunction(named, names, (call,), tuple(outputs)))
        self._channel.sync()
        ids = {label: {"id": id_of(value)} for label, value in weights.items()}
        http, path = self._channel.http, f"/v1/sessions/{self._channel.session}/functions/{named}"
        try:
            published = f"/v1/published/{quote(name, safe='')}?session={quote(self._channel.session)}"
            answer: dict[str, Any] = http.json("PUT", published, {"function": named, "weights": ids, **facts})
        finally:
            http.json("DELETE", path)
        return answer


def _inferred(
    recorder: RemoteRecorder,
    command: type[Command],
    functions: Sequence[Function],
    inputs: Sequence[Any],
    fields: dict[str, Any],
    decisions: Any,
) -> list[Any]:
    """Returns the command's results, with their specs; active tapes record the steps that the server runs."""
    (function, *_) = functions
    follows = decisions is not None or recorder.recorded or (function.refuses and function.dynamic)
    if command is commands.CallFunction and not follows:
        inferred = function.infer([value.spec for value in inputs])
        if not inferred.refuses:  # else it runs on specs and on the values that are known here
            for i in function.assigns:
                _changed(inputs[i])
                recorder.read_ahead.note(inputs[i], strand_of(recorder.place))
            return [Handle(spec) for spec in inferred.specs]
    replaying = recorder.replaying(decisions)
    return RUNNERS[command](replaying, with_functions(command, functions, **fields), functions, inputs)


def _changed(variable: Variable) -> None:
    """Notes that a function has assigned to a variable, so its elements are not known here."""
    variable.assign(Handle(variable.spec, variable.value.name))


def _named(value: Any, name: Name) -> Handle:
    """Returns a result as a value with a name of its own."""
    if isinstance(value, Literal):
        return Handle(Spec.of((), weak_dtype(value.spec, None)), name)
    # An argument or a constant of the function has another name on the server: that object stays as it is.
    result: Handle = value if value.name is None and value.host is None else value.alias(value.uid)
    result.name = name
    return result
