"""A session on a server gives what the one in this process gives: values, structure, tapes, threads, names."""

import gc
import os
import threading
import warnings

import numpy as np
import pytest
from loopback import Loopback, session_on
from teletape.errors import SessionEndedError

import teletape as tf
from teletape.core.sessions.current import use
from teletape.core.sessions.local import LocalSession
from teletape_engine.commands import (
    Assign,
    Call,
    Constant,
    ContextSwitch,
    Gradient,
    SlicesComponent,
    TapeOpen,
    TapeWatch,
)


# -------------------------------------------------------------------------------------------------- the same as at home
def second_order():
    x = tf.Variable([1.0, 2.0])
    with tf.GradientTape() as outer, tf.GradientTape() as inner:
        y = tf.reduce_sum(x * x * x)
        inner_gradient = inner.gradient(y, x)
        z = tf.reduce_sum(inner_gradient * inner_gradient)
    return inner_gradient, outer.gradient(z, x)


def third_order_of_one_persistent_tape():
    x = tf.Variable(2.0, dtype=tf.float64)
    with tf.GradientTape(persistent=True) as tape:
        y = x**4.0
        first = tape.gradient(y, x)
        second = tape.gradient(first, x)
    return first, second, tape.gradient(second, x)


def second_order_through_a_lookup():
    table = tf.Variable(np.arange(6.0).reshape(3, 2))
    with tf.GradientTape() as outer:
        with tf.GradientTape() as inner:
            y = tf.reduce_sum(tf.gather(table, [0, 2, 2]) ** 3.0)
        first = inner.gradient(y, table)
        total = tf.reduce_sum(tf.convert_to_tensor(first) * 0.5)
    return first.values, first.indices, tf.convert_to_tensor(first), tf.convert_to_tensor(outer.gradient(total, table))


def slices_of_two_lookups():
    table = tf.Variable(np.ones((4, 2), np.float32))
    with tf.GradientTape() as tape:
        y = tf.reduce_sum(tf.gather(table, [1, 1])) + tf.reduce_sum(tf.gather(table, [3]) * 2.0)
    gradients = tape.gradient(y, table)
    return gradients.values, gradients.indices, gradients.dense_shape


def seeds_zeros_and_structures():
    x, y, unused = tf.Variable([1.0, 2.0]), tf.constant(3.0), tf.Variable([[1.0]])
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(y)
        a, b = x * y, tf.nn.softmax(x)
    gradients = tape.gradient({"a": a, "b": b}, [x, (y, unused)], {"a": tf.constant([1.0, 10.0]), "b": x})
    zeros = tape.gradient(a, [x, unused], unconnected_gradients="zero")
    return gradients[0], gradients[1][0], *zeros


def variables_between_assignments():
    v = tf.Variable(1.0)
    with tf.GradientTape() as tape:
        y = v * v
        v.assign(5.0)
        z = 3.0 * v
        w = v * v
    gradients = tape.gradient([y, z, w], v)
    v.assign_add(gradients)
    return gradients, v.read_value()


def recording_in_parts():
    x = tf.Variable([2.0, 3.0])
    with tf.GradientTape(persistent=True) as tape:
        a = x * x
        with tape.stop_recording():
            b = a * x
        c = a * b
        before = tape.gradient(c, x)
        tape.reset()
        d = x * 4.0
    with tape:
        e = d * x
    return before, tape.gradient(e, x)


def a_composite_and_numbers():
    x = tf.Variable([[1.0, -2.0], [0.5, 3.0]])
    with tf.GradientTape() as tape:
        y = tf.reduce_sum(tf.nn.relu(1.0 - x / 2.0) + tf.math.sigmoid(x) ** 2.0 - 3)
    return y, tape.gradient(y, x)


PROGRAMS = [
    second_order,
    third_order_of_one_persistent_tape,
    second_order_through_a_lookup,
    slices_of_two_lookups,
    seeds_zeros_and_structures,
    variables_between_assignments,
    recording_in_parts,
    a_composite_and_numbers,
]


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_program_gives_what_it_gives_at_home(remote, loopback, program):
    results = [item.numpy() for item in program()]
    use(LocalSession())
    expected = [item.numpy() for item in program()]
    for item, other in zip(results, expected, strict=True):
        assert (item.dtype, item.shape) == (other.dtype, other.shape)
        np.testing.assert_array_equal(item, other)
    assert len(loopback.commands(Gradient)) >= 1


def test_the_predictions_travel_and_hold(remote, loopback):
    table, unused = tf.Variable(np.ones((3, 2), np.float32)), tf.Variable(1.0)
    with tf.GradientTape() as tape:
        y = tf.gather(table, [0])
    tape.gradient(y, [table, unused])
    tf.sync()
    assert loopback.commands(Gradient)[0].predicted == ("slices", "none")


def test_parts_of_slices_are_named_when_they_are_asked_for(remote, loopback):
    table = tf.Variable(np.ones((3, 2), np.float32))
    with tf.GradientTape() as tape:
        y = tf.gather(table, [2, 0])
    gradients = tape.gradient(y, table)
    tf.sync()
    assert loopback.commands(SlicesComponent) == []
    assert gradients.indices.numpy().tolist() == [2, 0]
    assert gradients.indices is gradients.indices
    assert gradients.values.shape == (2, 2)
    table.scatter_sub(gradients)
    assert table.numpy().tolist() == [[0, 0], [1, 1], [0, 0]]
    assert [command.component for command in loopback.commands(SlicesComponent)] == ["indices", "values"]


def test_strings_never_leave_the_program(remote, loopback):
    words = tf.constant(["a", "b"])
    x = tf.Variable(2.0)
    with tf.GradientTape() as tape:
        tape.watch(words)
        y = x * x
    gradients = tape.gradient([y, words], [x, words])
    assert words.numpy().tolist() == [b"a", b"b"]
    assert (float(gradients[0]), gradients[1]) == (4.0, None)
    assert all(put.value.dtype != object for put in loopback.commands(Constant))
    assert [len(command.tensors) for command in loopback.commands(TapeWatch)] == [0]
    assert loopback.commands(Gradient)[0].targets == loopback.commands(Call)[0].outputs


def test_declarations_travel(remote, loopback):
    image = tf.Variable(np.ones((2, 2, 3), np.float32))

    def ask():
        with tf.GradientTape() as tape:
            y = tf.image.adjust_contrast(image, 2.0)
        return tape.gradient(y, image)

    with pytest.raises(LookupError, match="gradient registry has no entry for: AdjustContrastv2"):
        ask()
    tf.no_gradient("AdjustContrastv2")
    assert ask() is None
    tf.sync()
    assert loopback.session._state.declarations.no_gradient == {"AdjustContrastv2"}


# ----------------------------------------------------------------------------------------------------------- catalogues
def test_another_catalogue_is_reported_and_a_wrong_prediction_refused(caplog, monkeypatch):
    loopback = Loopback(catalogue="0123456789abcdef")
    session = session_on(loopback)
    assert "the server (version 0) has other records of 0 of this SDK's" in caplog.text
    use(session)
    try:
        x = tf.Variable(2.0)
        with tf.GradientTape() as tape:
            y = x * x
        tf.sync()
        (tape_on_server,) = [entry["id"] for entry in loopback.session.listing("tape")]
        loopback.entries[tape_on_server].tape.clear()  # as a server whose `mul` has no gradient
        gradients = tape.gradient(y, x)
        with pytest.raises(tf.errors.OpError, match=r"are \['none'\], predicted was \['dense'\]") as caught:
            gradients.numpy()
        assert caught.value.code == "structure_mismatch"
    finally:
        use(LocalSession())
        session.close()


# ---------------------------------------------------------------------------------------------------------------- names
def test_every_id_is_this_clients_own(remote, loopback):
    second_order()
    tf.sync()
    results = [output for call in loopback.commands(Call) for output in call.outputs]
    assert len(set(results)) == len(results)
    assert {item >> 40 for item in results} == {1}


def test_two_programs_share_a_session_without_meeting(remote, loopback):
    x = tf.ones(2)
    with use(session_on(loopback)):
        y = tf.ones(2) * 2.0
        assert y.numpy().tolist() == [2.0, 2.0]
    use(remote)
    assert (x * 3.0).numpy().tolist() == [3.0, 3.0]
    assert {batch.client for batch in loopback.batches} == {1, 3}


def test_a_watched_variable_lives_as_long_as_its_tape(remote, loopback):
    with tf.GradientTape(persistent=True) as tape:
        v = tf.Variable([2.0, 3.0], name="mine")
        y = v * v
    del v
    gc.collect()
    tf.sync()
    (result,) = tape.watched_variables()
    assert result.name == "mine:0"
    assert tape.gradient(y, result).numpy().tolist() == [4.0, 6.0]
    assert (result + 1.0).numpy().tolist() == [3.0, 4.0]
    del tape, y, result
    gc.collect()
    tf.sync()
    assert loopback.session.listing("variable") == []
    assert loopback.session.listing("tape") == []


def test_a_temporary_dies_after_the_command_that_uses_it(remote, loopback):
    """Whatever thread seals between the making of a temporary and its use."""
    v = tf.Variable([1.0, 2.0])
    emit = remote.channel.emit

    def sealing(context, command, *rest):
        if isinstance(command, Assign | Call):
            tf.sync()  # as another thread's read would
        emit(context, command, *rest)

    remote.channel.emit = sealing
    try:
        v.assign([3.0, 4.0])
        x = tf.tanh([1.0, 2.0]) + np.ones(2, np.float32)
    finally:
        del remote.channel.emit
    assert v.numpy().tolist() == [3.0, 4.0]
    np.testing.assert_allclose(x.numpy(), np.tanh([1.0, 2.0]) + 1, rtol=1e-6)


def test_everything_is_released_in_the_end(remote, loopback):
    for program in PROGRAMS:
        program()
    gc.collect()
    tf.sync()
    assert loopback.entries == {}


def test_a_tensor_of_another_session_is_recognised(remote):
    x, v = tf.ones(2), tf.Variable(1.0)
    use(LocalSession())
    for call in (lambda: x + 1.0, lambda: v + 1.0, lambda: v.assign(2.0)):
        with pytest.raises(tf.errors.InvalidArgumentError, match="another session"):
            call()
    assert (x.numpy().tolist(), v.numpy()) == ([1.0, 1.0], 1.0)


# -------------------------------------------------------------------------------------------------------------- threads
def in_a_thread(work):
    """What `work` gives or raises, in a thread of its own."""
    results = []

    def run():
        try:
            results.append(work())
        except Exception as error:
            results.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join(30)
    (result,) = results
    return result


def test_an_op_in_another_thread_is_not_recorded(remote, loopback):
    x = tf.Variable(3.0)
    with tf.GradientTape(persistent=True) as tape:
        y = in_a_thread(lambda: x * x)
        z = x * 2.0
    assert tape.gradient(y, x) is None
    assert float(tape.gradient(z, x)) == 2.0
    assert len({command.context for command in loopback.commands(ContextSwitch)}) == 2


def test_a_thread_has_tapes_of_its_own(remote, loopback):
    x = tf.Variable(3.0)

    def other():
        with tf.GradientTape() as tape:
            y = x * x * x
        return tape.gradient(y, x)

    with tf.GradientTape() as tape:
        y = x * x
        result = in_a_thread(other)
        z = y + result  # a constant to this thread's tape
    assert float(tape.gradient(z, x)) == 6.0
    assert float(result) == 27.0


def test_threads_that_train_at_once_do_not_disturb_each_other(remote, loopback):
    def train(scale):
        w = tf.Variable([1.0, 1.0])
        losses = []
        for i in range(30):
            with tf.GradientTape() as tape:
                loss = tf.reduce_sum(tf.square(w * scale - [2.0, 3.0]))
            w.assign_sub(0.05 * tape.gradient(loss, w))
            if i % 3 == 0:
                losses.append(float(loss))
        return losses, w.numpy()

    results = {}

    def work(scale):
        try:
            results[scale] = train(scale)
        except Exception as error:
            results[scale] = error

    threads = [threading.Thread(target=work, args=(1.0 + k / 4,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    use(LocalSession())
    for scale, result in results.items():
        losses, w = train(scale)
        assert not isinstance(result, Exception), result
        assert result[0] == losses
        np.testing.assert_array_equal(result[1], w)
    assert len(results) == 4


def test_a_forked_child_uses_nothing_and_releases_nothing(remote, loopback):
    x = tf.ones(300) * 2.0
    tf.sync()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # forking a process that has threads is what is tested
        child = os.fork()
    if not child:
        status = 1
        try:
            for use_it in (x.numpy, lambda: x + 1.0, tf.sync):
                with pytest.raises(SessionEndedError, match="the parent process: connect again in the child"):
                    use_it()
            del x
            remote.close()
            status = 0
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert x.numpy().sum() == 600.0
    assert "DELETE /v1/sessions/s1" not in loopback.paths


# -------------------------------------------------------------------------------------------------------------- closing
def test_closing_delivers_what_is_left_and_ends_the_session(loopback):
    with use(session_on(loopback)) as session:
        v = tf.Variable(1.0)
        v.assign_add(2.0)
    use(LocalSession())
    assert loopback.commands(Assign)
    assert loopback.paths[-1] == "DELETE /v1/sessions/s1"
    session.close()
    assert loopback.paths.count("DELETE /v1/sessions/s1") == 1
    use(session)
    for call in (lambda: v + 1.0, v.numpy, tf.sync):
        with pytest.raises(SessionEndedError, match=r"it was closed by the program; tf\.connect makes a new one"):
            call()
    use(LocalSession())


def test_tapes_open_and_close_in_the_order_of_the_program(remote, loopback):
    recording_in_parts()
    tf.sync()
    seen = [command.verb for command in loopback.commands() if command.verb.startswith("tape.")]
    assert seen == ["tape.open", "tape.pause", "tape.resume", "tape.reset", "tape.pause", "tape.resume", "tape.pause"]
    assert loopback.commands(TapeOpen)[0].persistent
