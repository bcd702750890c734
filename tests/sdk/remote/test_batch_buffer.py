"""The buffer of a remote session: contexts, sealing, and what a failure or a refusal leaves."""

import pytest

from teletape.errors import InvalidArgumentError
from teletape.sessions.batch_buffer import BatchBuffer, ContextName, Name
from teletape_engine.commands import Call, ContextEnd, ContextSwitch, Fetch, TapeOpen, TapePause

CAUSE = InvalidArgumentError("no such index")


@pytest.fixture
def buffer() -> BatchBuffer:
    return BatchBuffer(client=3, seq=1)


def call(*inputs: int, output: int) -> Call:
    return Call("tanh", inputs, (output,))


def test_a_command_of_another_context_follows_a_switch(buffer: BatchBuffer) -> None:
    for context, output in ((7, 10), (7, 11), (8, 12)):
        buffer.add(context, call(1, output=output), None)
    assert [type(command) for command in buffer.commands] == [ContextSwitch, Call, Call, ContextSwitch, Call]
    assert len(buffer.call_sites) == len(buffer.commands)


def test_a_context_whose_recorder_is_gone_ends_after_its_last_command(buffer: BatchBuffer) -> None:
    name = ContextName(7, buffer.ended)
    buffer.add(7, call(1, output=10), None)
    buffer.add(8, call(1, output=11), None)
    del name
    buffer.add(8, call(1, output=12), None)
    first = buffer.seal()
    buffer.add(8, call(1, output=13), None)
    second = buffer.seal()
    assert ContextEnd not in [type(command) for command in first.batch.commands]
    assert second.batch.commands[:2] == (ContextEnd(7), ContextSwitch(8))
    assert len(second.call_sites) == len(second.batch.commands) == 3


def test_sealing_empties_the_buffer_and_counts(buffer: BatchBuffer) -> None:
    buffer.add(7, call(1, output=10), None)
    Name(5, buffer.released)  # dropped at once
    first, second = buffer.seal(), buffer.seal()
    assert (first.batch.client, first.batch.seq, first.batch.releases) == (3, 1, (5,))
    assert len(first.batch.commands) == len(first.call_sites) == 2
    assert (second.batch.seq, second.batch.commands, second.batch.releases) == (2, (), ())
    assert first.batch.nonce != second.batch.nonce


def test_a_context_is_named_again_in_each_batch(buffer: BatchBuffer) -> None:
    buffer.add(7, call(1, output=10), None)
    buffer.seal()
    buffer.add(7, call(1, output=11), None)
    assert isinstance(buffer.commands[0], ContextSwitch)


def test_a_failure_poisons_what_was_not_made_and_keeps_what_opens_and_closes(buffer: BatchBuffer) -> None:
    for command in (call(1, output=10), call(10, output=11)):
        buffer.add(7, command, None)
    sealed = buffer.seal()
    for command in (TapePause(4), call(11, output=12)):
        buffer.add(7, command, None)
    buffer.fail(sealed, 2, CAUSE)  # after the switch and the first call
    assert buffer.poisoned == {11: CAUSE, 12: CAUSE}
    assert [type(command) for command in buffer.commands] == [ContextSwitch, TapePause]
    assert buffer.cause_in(Fetch(12)) is CAUSE
    assert buffer.cause_in(Fetch(10)) is None
    assert buffer.cause_in(TapePause(12)) is None  # structural commands are always sent


def test_a_refused_batch_gives_back_its_number_releases_and_structural_commands(buffer: BatchBuffer) -> None:
    Name(5, buffer.released)
    for command in (TapeOpen(4), call(1, output=10)):
        buffer.add(7, command, None)
    sealed = buffer.seal()
    buffer.add(7, call(1, output=11), None)
    buffer.refuse(sealed)
    again = buffer.seal()
    assert (again.batch.seq, again.batch.releases) == (1, (5,))
    assert [type(command) for command in again.batch.commands] == [ContextSwitch, TapeOpen, ContextSwitch, Call]


def test_a_released_id_is_no_longer_poisoned(buffer: BatchBuffer) -> None:
    buffer.poison(call(1, output=10), CAUSE)
    Name(10, buffer.released)
    buffer.seal()
    assert buffer.poisoned == {}
