"""What fails on the server or on the way: raised once, with the op and the line, and both sides still agree."""

import signal
import sys
import threading

import numpy as np
import pytest
from loopback import Loopback, session_on
from teletape.errors import ConnectionFailed, RequestError, SessionEndedError

import teletape as tf
from teletape.core.network import http
from teletape.core.sessions.current import use
from teletape.core.sessions.local import LocalSession
from teletape.core.sessions.sending import channel as module
from teletape.core.sessions.sending import sender
from teletape.core.sessions.sending.sealed_batch import Reply
from teletape_engine.commands import Assign, Call, MakeVariable, TapePause
from teletape_engine.errors import AnswerDroppedError


def out_of_range(x):
    """An op that only the server can refuse: it does not know the rows here."""
    return tf.gather(x, tf.cast(x * 100.0, "int32"))


# ---------------------------------------------------------------------------------------------------- failures of an op
def test_a_failure_surfaces_once_at_the_next_read_with_the_op_and_the_line(remote):
    x = tf.constant([1.0, 2.0]) * 1.0
    wrong = out_of_range(x)
    later = x + 1.0  # dropped: what comes after a failure never happens
    with pytest.raises(tf.errors.InvalidArgumentError) as caught:
        (x * 2.0).numpy()
    with open(__file__) as source:
        line = next(number for number, text in enumerate(source, 1) if text.startswith("    return tf.gather(x, "))
    message, answer = str(caught.value).splitlines()
    assert message == "indices[0] = 100 is not in [0, 2) [Op:GatherV2]"
    assert answer.startswith("  op 'gather', recorded at ")
    assert answer.endswith(f"test_failures.py:{line}, in out_of_range")
    assert caught.value.details["op"] == "gather"
    assert x.numpy().tolist() == [1.0, 2.0]  # made before it
    for dropped in (wrong, later, later * 2.0):
        with pytest.raises(tf.errors.InvalidArgumentError, match="gather"):
            dropped.numpy()
    assert (x * 5.0).numpy().tolist() == [5.0, 10.0]  # the program goes on


def test_a_failure_has_the_id_of_the_request_that_had_the_command(remote, loopback):
    x = tf.constant([1.0, 2.0]) * 1.0
    for _ in range(3):  # the heads of answers are parsed, and then compared
        tf.sync()
        wrong = out_of_range(x)
        with pytest.raises(tf.errors.InvalidArgumentError) as caught:
            wrong.numpy()
        assert caught.value.request_id == f"r{loopback.answers}"
        with pytest.raises(tf.errors.InvalidArgumentError) as again:
            wrong.numpy()
        assert again.value.request_id == caught.value.request_id


def test_where_can_be_left_out(monkeypatch):
    monkeypatch.setenv("TELETAPE_WHERE", "0")
    session = use(session_on(Loopback()))
    out_of_range(tf.constant([1.0]) * 1.0)
    with pytest.raises(tf.errors.InvalidArgumentError) as caught:
        tf.sync()
    assert str(caught.value).splitlines()[1:] == ["  op 'gather'"]
    use(LocalSession())
    session.close()


def test_what_was_recorded_before_the_failure_was_known_is_dropped_too(remote, loopback, monkeypatch):
    v = tf.Variable(1.0)
    tf.sync()
    loopback.gate.clear()
    monkeypatch.setattr(module, "_MOST_COMMANDS", 5)
    out_of_range(tf.constant([1.0]) * 1.0)  # leaves by itself
    monkeypatch.undo()
    results = [v + 1.0 for _ in range(3)]
    v.assign(9.0)
    assert len(loopback.batches) <= 2
    loopback.gate.set()
    with pytest.raises(tf.errors.InvalidArgumentError, match="gather"):
        results[0].numpy()
    for item in results:
        with pytest.raises(tf.errors.InvalidArgumentError, match="gather"):
            item.numpy()
    assert v.numpy() == 1.0
    assert loopback.commands(Assign) == []


def test_after_a_failure_an_assignment_did_not_happen_and_reading_says_so(remote, loopback):
    v = tf.Variable([1.0, 2.0])
    v.assign([5.0, 6.0])
    out_of_range(v * 1.0)
    v.assign([7.0, 8.0])
    with pytest.raises(tf.errors.InvalidArgumentError):
        tf.sync()
    assert v.numpy().tolist() == [5.0, 6.0]
    assert (v * 2.0).numpy().tolist() == [10.0, 12.0]


def test_a_variable_made_after_a_failure_does_not_exist(remote, loopback):
    out_of_range(tf.constant([1.0]) * 1.0)
    v = tf.Variable(tf.ones(300))
    with pytest.raises(tf.errors.InvalidArgumentError):
        tf.sync()
    v.assign_add(tf.ones(300))
    with pytest.raises(tf.errors.InvalidArgumentError, match="gather"):
        (v + 1.0).numpy()
    assert len(loopback.commands(MakeVariable)) == 1
    assert loopback.commands(Assign) == []  # what uses a value that was never made is not sent


def test_tapes_stay_in_step_after_a_failure(remote, loopback):
    v = tf.Variable([2.0, 3.0])
    with tf.GradientTape(persistent=True) as tape:
        y = tf.reduce_sum(v * v)
        with pytest.raises(tf.errors.InvalidArgumentError):
            out_of_range(v).numpy()
        with tf.GradientTape() as inner:
            z = v * y
        with tape.stop_recording():
            out_of_range(v)
    with pytest.raises(tf.errors.InvalidArgumentError):
        tf.sync()
    assert tape.gradient(y, v).numpy().tolist() == [4.0, 6.0]
    assert inner.gradient(z, v) is not None
    tf.sync()
    assert not any(entry["recording"] for entry in loopback.session.listing("tape"))
    with tf.GradientTape() as healthy:
        y = v * 3.0
    assert healthy.gradient(y, v).numpy().tolist() == [3.0, 3.0]


def test_the_gradient_of_a_value_never_made_is_the_same_failure(remote):
    v = tf.Variable([2.0, 3.0])
    with tf.GradientTape() as tape:
        y = out_of_range(v)
    with pytest.raises(tf.errors.InvalidArgumentError):
        tf.sync()
    with pytest.raises(tf.errors.InvalidArgumentError, match="gather"):
        tf.convert_to_tensor(tape.gradient(y, v)).numpy()


def test_an_op_that_asks_at_once_reports_a_failure_of_its_input(remote):
    wrong = out_of_range(tf.constant([1.0]) * 1.0)
    with pytest.raises(tf.errors.InvalidArgumentError, match="gather"):
        tf.where(wrong > 0)
    with pytest.raises(tf.errors.InvalidArgumentError, match="gather"):
        tf.where(wrong > 0)


def test_what_is_known_of_failures_is_forgotten_with_the_values(remote):
    wrong = [out_of_range(tf.constant([1.0]) * 1.0) for _ in range(3)]
    with pytest.raises(tf.errors.InvalidArgumentError):
        tf.sync()
    assert remote.channel.buffer.poisoned
    del wrong
    tf.sync()
    assert remote.channel.buffer.poisoned == {}


def test_the_memory_limit_is_reported_with_the_numbers():
    session = use(session_on(Loopback(memory_limit=100_000)))
    tf.fill([10**12], 1.0)
    with pytest.raises(tf.errors.ResourceExhaustedError, match="4,000,000,000,000 bytes") as caught:
        tf.sync()
    assert caught.value.details["limit"] == 100_000
    use(LocalSession())
    session.close()


# ----------------------------------------------------------------------------------------------------------- on the way
@pytest.mark.parametrize(
    ("mishaps", "sent"), [(["lost"], 2), (["unreached"], 2), (["busy"], 2), (["running"] * 3, 4), (["lost", "lost"], 3)]
)
def test_a_batch_that_got_lost_is_sent_again_and_executed_once(remote, loopback, mishaps, sent):
    v = tf.Variable(1.0)
    v.assign_add(1.0)
    loopback.mishaps.extend(mishaps)
    assert v.numpy() == 2.0
    assert v.numpy() == 2.0
    assert len(loopback.batches) == sent
    assert len({(batch.seq, batch.nonce) for batch in loopback.batches}) == 1
    assert loopback.session.describe(loopback.commands(MakeVariable)[0].id)["version"] == 1


@pytest.mark.parametrize("mishap", ["lost", "unreached", "garbled"])
def test_a_server_that_stays_silent_is_asked_again_by_the_next_call(remote, loopback, monkeypatch, mishap):
    monkeypatch.setattr(http, "_PATIENCE", 0.0)
    v = tf.Variable(1.0)
    v.assign_add(1.0)
    loopback.mishaps.append(mishap)
    with pytest.raises(ConnectionFailed):
        tf.sync()
    v.assign_add(1.0)
    loopback.mishaps.append(mishap)
    with pytest.raises(ConnectionFailed):
        v.numpy()
    assert v.numpy() == 3.0
    assert [batch.seq for batch in loopback.batches] == [1, 1, 1, 2]


@pytest.mark.parametrize(
    ("mishap", "error", "code"), [("refused", RequestError, "foreign_origin"), ("page", RequestError, "internal")]
)
def test_a_refused_batch_gives_its_number_back(remote, loopback, mishap, error, code):
    x = tf.Variable([1.0, 2.0])
    tf.sync()
    loopback.mishaps.append(mishap)
    with tf.GradientTape(persistent=True) as tape:
        y = x * 2.0
        with pytest.raises(error) as caught:
            y.numpy()
        assert caught.value.code == code
        z = x * 3.0
    assert tape.gradient(z, x).numpy().tolist() == [3.0, 3.0]  # the tape was opened with the batch that came through
    with pytest.raises(error):
        y.numpy()
    assert [batch.seq for batch in loopback.batches] == [1, 2, 2]
    assert len(loopback.commands(TapePause)) == 1


def test_a_batch_that_is_too_large_is_sent_in_parts(remote, loopback):
    v = tf.Variable(tf.zeros(300))
    tf.sync()
    batches, loopback.most_bytes = len(loopback.batches), 5_000
    for number in range(12):
        v.assign_add(tf.constant(np.full(300, number, np.float32)))
    dropped = tf.constant(np.full(300, 0.5, np.float32))
    total = tf.reduce_sum(v + dropped)
    del dropped  # released with the last part: the others do not have its last use
    assert float(total) == 300 * (66.0 + 0.5)
    assert len(loopback.batches) - batches >= 4
    tf.sync()
    count = len(loopback.batches)
    assert float(total * 2.0) == 600 * 66.5
    assert len(loopback.batches) == count + 1
    tf.sync()
    assert len(loopback.session.listing("tensor")) == 1


def test_what_is_released_while_a_batch_is_split_is_released_once(remote, loopback):
    x = tf.ones(300)
    tf.sync()
    loopback.most_bytes = 4_000
    parts = [x + tf.constant(np.full(300, number, np.float32)) for number in range(6)]
    del x
    total = tf.add_n(parts)
    del parts
    assert total.numpy()[0] == 6.0 + 15.0
    del total
    tf.sync()
    tf.sync()
    assert loopback.session.listing("tensor") == []
    released = [name for batch in loopback.batches for name in batch.releases]
    assert len(released) == len(set(released))


def test_a_tensor_that_is_too_large_is_named_with_its_line(remote, loopback):
    v = tf.Variable(1.0)
    tf.sync()
    loopback.most_bytes = 2_000
    v.assign_add(1.0)
    large = tf.constant(np.zeros(1000))
    small = v + 1.0
    with pytest.raises(RequestError, match=r"at most 2000 bytes\n  'constant', recorded at .*: .*test_failures\.py"):
        small.numpy()
    with pytest.raises(RequestError, match="at most 2000 bytes"):
        large.numpy()
    assert float(v) == 2.0


def test_questions_of_a_read_stay_together_though_the_batch_is_split(remote, loopback):
    tf.sync()
    loopback.most_bytes = 3_000
    parts = [tf.constant(np.full(100, number, np.float64)) + 0.5 for number in range(9)]
    assert [part[0] for part in tf.fetch(*parts)] == [number + 0.5 for number in range(9)]


def test_releases_of_a_refused_batch_are_not_forgotten(remote, loopback):
    x = tf.ones(300)
    tf.sync()
    (name,) = [entry["id"] for entry in loopback.session.listing("tensor")]
    del x
    loopback.mishaps.append("refused")
    with pytest.raises(RequestError):
        tf.sync()
    tf.sync()
    assert loopback.session.listing("tensor") == []
    assert name in loopback.batches[-1].releases


def test_a_session_that_has_ended_says_why(remote, loopback):
    x = tf.ones(300)
    loopback.mishaps.append("ended")
    with pytest.raises(SessionEndedError, match="idle for an hour"):
        x.numpy()
    for call in (x.numpy, lambda: x + 1.0, tf.sync):
        with pytest.raises(SessionEndedError, match=r"idle for an hour; tf\.connect makes a new one"):
            call()
    remote.close()
    assert "DELETE /v1/sessions/s1" not in loopback.paths


def test_an_interrupt_while_waiting_keeps_the_batch_in_flight(remote, loopback):
    v = tf.Variable(1.0)
    v.assign_add(1.0)
    loopback.gate.clear()

    main, seen = threading.main_thread().ident, threading.Event()

    def interrupt():
        """Once it waits; again if Python missed the signal, which came between its last look and the wait."""
        loopback.arrived.wait()
        while not seen.wait(0.1):
            if sys._current_frames()[main].f_code is Reply.wait.__code__:
                signal.pthread_kill(main, signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        v.numpy()
    seen.set()
    thread.join()
    v.assign_add(1.0)
    loopback.gate.set()
    assert v.numpy() == 3.0
    assert len({batch.nonce for batch in loopback.batches}) == 2
    assert len(loopback.commands(Assign)) == 2


def test_a_defect_while_sending_is_reported_and_not_taken_for_an_answer(remote, loopback, monkeypatch):
    x = tf.ones(300)
    with monkeypatch.context() as broken:
        broken.setattr(remote.channel.http, "frame", lambda *args: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            x.numpy()
    assert x.numpy().sum() == 300
    assert [batch.seq for batch in loopback.batches] == [1, 2]


# -------------------------------------------------------------------------------------------------------------- closing
def test_closing_reports_a_failure_and_ends_the_session_all_the_same(loopback):
    session = use(session_on(loopback))
    out_of_range(tf.constant([1.0]) * 1.0)
    with pytest.raises(tf.errors.InvalidArgumentError):
        session.close()
    use(LocalSession())
    assert loopback.paths[-1] == "DELETE /v1/sessions/s1"
    session.close()


def test_closing_without_a_server_does_not_ask_for_more(loopback, monkeypatch):
    monkeypatch.setattr(http, "_PATIENCE", 0.0)
    session = use(session_on(loopback))
    tf.ones(3)
    loopback.mishaps.append("unreached")
    with pytest.raises(ConnectionFailed):
        session.close()
    use(LocalSession())
    assert "DELETE /v1/sessions/s1" not in loopback.paths
    assert session.closed


def test_the_end_of_the_program_reports_what_was_not_delivered(loopback, caplog):
    session = use(session_on(loopback))
    out_of_range(tf.constant([1.0]) * 1.0)
    use(LocalSession())
    sender.end_all()
    assert "the last commands were not delivered: " in caplog.text
    assert "gather" in caplog.text
    assert session.closed
    assert len(loopback.commands(Call)) == 4
    sender.end_all()


def test_numbers_survive_the_way_there_and_back(remote):
    values = np.array([np.nan, np.inf, -np.inf, -0.0, 1e-45], np.float32)
    assert tf.identity(tf.constant(values)).numpy().tobytes() == values.tobytes()


# ------------------------------------------------------------------------------------------------- a forgotten answer
def test_a_retry_whose_answer_is_no_longer_stored_says_so_and_nothing_happens_twice(remote, loopback):
    v = tf.Variable(1.0)
    tf.sync()
    loopback.mishaps.append("forgotten")
    v.assign_add(1.0)
    with pytest.raises(AnswerDroppedError, match="was executed, and its answer is no longer stored"):
        v.numpy()
    assert v.numpy() == 2.0
    v.assign_add(1.0)
    assert v.numpy() == 3.0
    assert [batch.seq for batch in loopback.batches[1:]] == [2, 2, 3, 4]
