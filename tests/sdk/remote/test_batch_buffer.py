"""The buffer of a remote session: contexts, sealing, replies, and what a failure or a refusal leaves."""

import pytest
from teletape.errors import InvalidArgumentError

from teletape.core.sessions.sending.batch_buffer import BatchBuffer, ContextName, Name
from teletape.core.sessions.sending.sealed_batch import Reply, SealedBatch
from teletape.core.sessions.sending.strands import Place
from teletape_engine.commands import Call, Command, ContextEnd, ContextSwitch, Fetch, TapeOpen, TapePause
from teletape_engine.commands.results import Answer, Facts, Failure

CAUSE = InvalidArgumentError("no such index")


@pytest.fixture
def buffer() -> BatchBuffer:
    return BatchBuffer(client=3, seq=1)


def call(*inputs: int, output: int) -> Call:
    return Call("tanh", inputs, (output,))


def record(buffer: BatchBuffer, *commands: Command, context: Place = 7) -> None:
    buffer.recordings.extend((context, command, None) for command in commands)


def ask(buffer: BatchBuffer, *questions: Command, place: Place = 7, **options: bool) -> Reply:
    reply = Reply(len(questions), strand=place if isinstance(place, int) else place[1], **options)
    buffer.request([(place, question, None) for question in questions], reply)
    return reply


def sealed_by(buffer: BatchBuffer, **options: bool) -> SealedBatch:
    ask(buffer, **options)
    sealed = buffer.seal()
    assert sealed is not None
    return sealed


def kinds(commands: object) -> list[type]:
    assert isinstance(commands, list | tuple)
    return [type(command) for command in commands]


def test_a_command_of_another_context_follows_a_switch(buffer: BatchBuffer) -> None:
    for context, output in ((7, 10), (7, 11), (8, 12)):
        record(buffer, call(1, output=output), context=context)
    sealed = sealed_by(buffer)
    assert kinds(sealed.batch.commands) == [ContextSwitch, Call, Call, ContextSwitch, Call]
    assert len(sealed.call_sites) == len(sealed.batch.commands)


def test_a_context_whose_recorder_is_gone_ends_after_its_last_command(buffer: BatchBuffer) -> None:
    name = ContextName(7, buffer.recordings)
    record(buffer, call(1, output=10))
    record(buffer, call(1, output=11), context=8)
    first = sealed_by(buffer)
    del name
    record(buffer, call(1, output=12), context=8)
    second = sealed_by(buffer)
    assert ContextEnd not in kinds(first.batch.commands)
    assert second.batch.commands[:2] == (ContextEnd(7), ContextSwitch(8))
    assert len(second.call_sites) == len(second.batch.commands) == 3


def test_sealing_takes_what_is_before_the_last_reply_and_counts(buffer: BatchBuffer) -> None:
    record(buffer, call(1, output=10))
    Name(5, buffer.released)  # dropped at once
    ask(buffer)
    record(buffer, call(1, output=11))
    Name(6, buffer.released)  # after the reply, as what uses it may be
    first = buffer.seal()
    assert first is not None
    assert (first.batch.client, first.batch.seq, first.batch.releases) == (3, 1, (5,))
    assert len(first.batch.commands) == len(first.call_sites) == 2
    assert kinds(buffer.commands) == [Call]
    second = sealed_by(buffer)
    assert (second.batch.seq, second.batch.releases) == (2, (6,))
    assert first.batch.nonce != second.batch.nonce
    assert buffer.seal() is None


def test_a_reply_alone_needs_no_batch_but_an_empty_one_can_be_wanted(buffer: BatchBuffer) -> None:
    reply = ask(buffer)
    assert buffer.seal() is None
    assert reply.wait(0)
    assert sealed_by(buffer, empty=True).batch.seq == 1


def test_a_context_is_named_again_in_each_batch(buffer: BatchBuffer) -> None:
    for output in (10, 11):
        record(buffer, call(1, output=output))
        assert kinds(sealed_by(buffer).batch.commands) == [ContextSwitch, Call]


def test_each_reply_gets_the_results_of_its_questions(buffer: BatchBuffer) -> None:
    replies = [ask(buffer, Fetch(1)), ask(buffer, Fetch(2), Fetch(3)), ask(buffer)]
    sealed = buffer.seal()
    assert sealed is not None
    sealed.answered(Answer(tuple(Facts(index, {}) for index in (1, 2, 3)), None, 0), {}, buffer.ended)
    assert [[result.index for result in reply.results] for reply in replies] == [[1], [2, 3], []]
    assert all(reply.wait(0) and reply.error is None for reply in replies)


def test_replies_after_a_failure_get_its_cause(buffer: BatchBuffer) -> None:
    before = ask(buffer, Fetch(1))
    record(buffer, call(1, output=10))
    after = ask(buffer, Fetch(10))
    sealed = buffer.seal()
    assert sealed is not None
    failure = Failure(2, "invalid_argument", "no", None, None, {})
    sealed.answered(Answer((Facts(1, {}),), failure, 0), {7: (2, CAUSE)}, buffer.ended)
    assert before.error is None
    assert after.error is CAUSE


def test_a_failure_poisons_what_was_not_made_and_keeps_what_opens_and_closes(buffer: BatchBuffer) -> None:
    record(buffer, call(1, output=10), call(10, output=11))
    sealed = sealed_by(buffer)
    record(buffer, TapePause(4), call(11, output=12))
    waiting = ask(buffer, Fetch(10))
    buffer.fail(sealed, [(2, CAUSE)])  # after the switch and the first call
    assert buffer.poisoned == {11: CAUSE, 12: CAUSE}
    assert kinds(buffer.commands) == [TapePause]
    assert waiting.error is CAUSE
    buffer.raised(CAUSE, waiting)
    refused, answered = ask(buffer, Fetch(12)), ask(buffer, Fetch(10))
    record(buffer, TapePause(12))  # structural commands are always sent
    ask(buffer)
    again = buffer.seal()
    assert again is not None
    assert kinds(again.batch.commands) == [ContextSwitch, TapePause, Fetch, TapePause]
    assert refused.error is CAUSE
    assert not answered.wait(0)


def test_questions_about_what_was_never_made_send_nothing(buffer: BatchBuffer) -> None:
    buffer.poison(call(1, output=10), CAUSE)
    record(buffer, call(1, output=20), call(10, output=21))
    reply = ask(buffer, Fetch(20), Fetch(21))
    assert buffer.seal() is None
    assert reply.error is CAUSE
    assert kinds(buffer.commands) == [Call]  # the healthy one still waits
    assert buffer.poisoned.keys() == {10, 21}


def test_a_refused_batch_gives_back_its_number_releases_and_structural_commands(buffer: BatchBuffer) -> None:
    Name(5, buffer.released)
    record(buffer, TapeOpen(4), call(1, output=10))
    sealed = sealed_by(buffer)
    record(buffer, call(1, output=11), context=8)
    buffer.take_back(sealed)
    again = sealed_by(buffer)
    assert (again.batch.seq, again.batch.releases) == (1, (5,))
    assert kinds(again.batch.commands) == [ContextSwitch, TapeOpen, ContextSwitch, Call]


def test_a_released_id_is_no_longer_poisoned(buffer: BatchBuffer) -> None:
    buffer.poison(call(1, output=10), CAUSE)
    Name(10, buffer.released)
    sealed_by(buffer)
    assert buffer.poisoned == {}


def test_unanswered_questions_are_dropped_and_the_rest_waits_on(buffer: BatchBuffer) -> None:
    record(buffer, call(1, output=10))
    reply, room = ask(buffer, Fetch(10)), ask(buffer, early=True)
    buffer.refuse_questions(CAUSE, early=False)
    assert reply.error is CAUSE
    assert not room.wait(0)
    assert kinds(sealed_by(buffer).batch.commands) == [ContextSwitch, Call]
