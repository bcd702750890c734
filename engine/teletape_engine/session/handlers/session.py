"""Commands about the session as a whole: clients, contexts, declarations about op types."""

from __future__ import annotations

from sys import getsizeof

from teletape_engine import commands, object_bytes
from teletape_engine.commands.results import Facts
from teletape_engine.errors import InvalidArgumentError, UnimplementedError
from teletape_engine.session.handlers.registry import handles
from teletape_engine.session.state import State, Timing


@handles(commands.ClientAttach)
def attach(state: State, command: commands.ClientAttach) -> None:
    """Adds a client; answers its number, its first sequence number and its first free id."""
    state.memory.note(object_bytes.CLIENT, "a client")
    state.results.append(Facts(state.index, state.clients.attach(command.client)))


@handles(commands.ClientDetach)
def detach(state: State, command: commands.ClientDetach) -> None:
    """Ends a client."""
    state.clients.detach(command.client)


@handles(commands.ContextSwitch)
def switch(state: State, command: commands.ContextSwitch) -> None:
    """The commands that follow belong to that context."""
    state.switch(command.context)


@handles(commands.ContextEnd)
def end(state: State, command: commands.ContextEnd) -> None:
    """Ends a context."""
    state.end_context(command.context)


@handles(commands.Declare)
def declare(state: State, command: commands.Declare) -> None:
    """Declares an op type for every gradient from now on."""
    state.memory.note(getsizeof(command.no_gradient) + getsizeof(command.registered), "a declaration")
    if (command.no_gradient is None) == (command.registered is None):
        raise InvalidArgumentError("declare: give one op type, as no_gradient or as registered")
    if command.no_gradient is not None:
        state.declarations.declare_no_gradient(command.no_gradient)
    elif command.registered is not None:
        state.declarations.register(command.registered)


@handles(commands.Profile)
def profile(state: State, command: commands.Profile) -> None:
    """Begins to time the commands, and steps of functions; the answer gets their times as they are done."""
    if state.clock is None:
        raise UnimplementedError("profile: the host of this session has no clock")
    state.timing = Timing(state.clock, state.id_of)
    state.monitor.step_times = state.timing.steps
    state.results.append(Facts(state.index, state.timing.facts))
