"""What a server keeps for a remote tape: no name of the client's holds an array longer than the program does."""

import threading
import tracemalloc

import numpy as np

import teletape as tf

MIB = 1 << 20
LAYERS = 12


def test_residuals_die_as_the_pass_goes_although_their_names_came_in_an_earlier_batch(remote, loopback):
    tracemalloc.start()
    try:
        weights = [tf.Variable(np.full(MIB // 8, 0.01 * i)) for i in range(LAYERS)]
        h = tf.zeros(MIB // 8, tf.float64)
        with tf.GradientTape() as tape:
            for w in weights:
                h = tf.tanh(h + w)
        tf.sync()
        loopback.batches.clear()
        forward, _ = tracemalloc.get_traced_memory()
        tracemalloc.reset_peak()
        grads = tape.gradient(h, weights)
        tf.sync()
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert forward > 2 * LAYERS * MIB  # weights and residuals
    assert peak < forward + LAYERS // 2 * MIB, "each gradient takes the place of a residual"
    assert len(grads) == LAYERS
    assert loopback.session.bytes_in_use() == (2 * LAYERS + 1) * MIB  # weights, their gradients, h


def test_a_tape_that_the_program_has_let_go_is_gone_with_its_names(remote, loopback):
    x = tf.Variable(np.ones(1000))
    with tf.GradientTape(persistent=True) as tape:
        y = tf.sin(tf.sin(x))
    tf.sync()
    assert loopback.session.bytes_in_use() == 3 * 8000
    del tape
    tf.sync()
    assert loopback.session.bytes_in_use() == 2 * 8000
    assert y.shape == (1000,)


def test_counting_a_tape_names_what_goes_along_with_it(remote, loopback):
    x = tf.Variable(np.ones(1000))
    with tf.GradientTape(persistent=True) as tape:
        y = x
        for _ in range(20):
            y = tf.sin(y)
    assert tape.memory() == (21, 20 * 8000, 19 * 8000)  # the program holds x
    from teletape_engine.commands import TapeDescribe

    (command,) = loopback.commands(TapeDescribe)
    assert len(command.also_released) == 19


def test_a_threads_context_ends_with_the_thread(remote, loopback):
    x = tf.Variable([1.0, 2.0])

    def record():
        with tf.GradientTape() as tape:
            y = x * x
        assert tape.gradient(y, x).numpy().tolist() == [2.0, 4.0]

    for _ in range(20):
        thread = threading.Thread(target=record)
        thread.start()
        thread.join()
    tf.sync()
    (x + 1.0).numpy()
    assert len(loopback.session._state._contexts) <= 2  # context 0 and this thread's
