"""When the SDK sends requests: as seldom as it can, in one batch, and after it has checked the program's mistakes."""

import gc
import threading

import numpy as np
import pytest
from loopback import Loopback, session_on

import teletape as tf
from serving import until
from teletape.core.program.read_counts import ReadCounts
from teletape.core.sessions.current import use
from teletape.core.sessions.local import LocalSession
from teletape.core.sessions.sending import channel as module
from teletape_engine.commands import Call, Constant, Fetch, Gradient, TapeOpen


def step(x, w):
    """One step of training; nothing is read."""
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(tf.matmul(x, w) - 1.0))
    w.assign_sub(0.1 * tape.gradient(loss, w))
    return loss


@pytest.fixture
def pair(remote):
    """An input and a variable, on the server already."""
    arguments = tf.ones((4, 2)), tf.Variable(tf.zeros((2, 1)))
    tf.sync()
    return arguments


def test_a_step_that_reads_nothing_makes_no_request_until_a_flush(remote, loopback, pair):
    requests, batches = remote.requests, remote.batches
    for _ in range(3):
        step(*pair)
    assert (remote.requests, remote.batches, len(loopback.batches)) == (requests, batches, batches)
    tf.sync()
    assert (remote.requests, remote.batches, len(loopback.batches)) == (requests + 1, batches + 1, batches + 1)
    assert len([command for command in loopback.batches[-1].commands if isinstance(command, Gradient)]) == 3


def test_a_step_that_reads_the_loss_makes_one(remote, loopback, pair):
    requests, batches = remote.requests, remote.batches
    losses = [float(step(*pair)) for _ in range(4)]
    assert (remote.requests - requests, remote.batches - batches) == (4, 4)
    assert losses == sorted(losses, reverse=True)
    assert losses[0] == 1.0


def test_reading_twice_asks_once(remote, pair):
    loss = step(*pair)
    before = remote.requests
    assert loss.numpy() == loss.numpy() == float(loss)
    assert remote.requests == before + 1


def test_nothing_to_send_asks_nobody(remote, pair):
    before = remote.requests
    tf.sync()
    tf.sync()
    assert remote.requests == before
    remote.channel.round_trip()
    assert remote.requests == before + 1


@pytest.mark.parametrize("value", [3.0, [1, 2, 3], [[True, False]], np.arange(128.0)])
def test_a_constant_known_here_costs_nothing_to_read(remote, value):
    before = remote.requests
    constant = tf.constant(value)
    np.testing.assert_array_equal(constant.numpy(), value)
    assert remote.requests == before


def test_a_large_constant_is_not_kept_here(remote):
    before = remote.requests
    large = tf.constant(np.arange(1000.0))
    assert large.numpy()[-1] == 999
    assert remote.requests == before + 1


def test_a_variable_is_known_until_it_is_assigned(remote):
    v = tf.Variable([1.0, 2.0])
    before = remote.requests
    assert v.numpy().tolist() == [1.0, 2.0]
    assert remote.requests == before
    v.assign([3.0, 4.0])
    assert v.numpy().tolist() == [3.0, 4.0]
    assert v.numpy().tolist() == [3.0, 4.0]
    assert remote.requests == before + 1


def test_what_is_read_belongs_to_the_reader(remote):
    x = tf.constant([1.0, 2.0]) * 2.0
    array = x.numpy()
    array[0] = 9
    assert x.numpy().tolist() == [2.0, 4.0]


def test_a_constant_is_a_snapshot(remote):
    array = np.ones(500)
    x = tf.constant(array)
    array[:] = 7
    assert x.numpy().max() == 1.0


def test_shapes_dtypes_and_structure_are_known_without_asking(remote, loopback):
    requests = remote.requests
    x = tf.Variable(tf.random.normal((3, 4)))
    with tf.GradientTape(persistent=True) as tape:
        y = tf.nn.softmax(x)
        rows = tf.gather(x, [0, 2])
        cut = tf.round(x)
    assert (y.shape, y.dtype, len(y), y.ndim) == ((3, 4), tf.float32, 3, 2)
    assert tape.gradient(y, x).shape == (3, 4)
    assert isinstance(tape.gradient(rows, x), tf.IndexedSlices)
    assert tape.gradient(cut, x) is None
    assert remote.requests == requests


MISTAKES = {
    "shapes": (lambda x: x + tf.ones(3), tf.errors.InvalidArgumentError, r"Incompatible shapes: \[2\] vs. \[3\]"),
    "matmul": (lambda x: tf.matmul(x, x), tf.errors.InvalidArgumentError, "ndims must be == 2: 1"),
    "dtypes": (lambda x: x + tf.constant(1), tf.errors.InvalidArgumentError, "cannot compute AddV2"),
    "axis": (lambda x: tf.reduce_sum(x, axis=3), tf.errors.InvalidArgumentError, "Invalid reduction dimension"),
    "assignment": (lambda x: tf.Variable(x).assign(tf.ones(3)), ValueError, "Shape mismatch"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_wrong_call_is_reported_on_its_own_line_before_any_request(remote, mistake):
    make, error, words = MISTAKES[mistake]
    x = tf.ones(2)
    before = remote.requests
    with pytest.raises(error, match=words) as caught:
        make(x)
    assert remote.requests == before
    assert any(entry.name == "<lambda>" for entry in caught.traceback)
    assert x.numpy().tolist() == [1.0, 1.0]  # nothing wrong was recorded


def test_a_seed_of_a_wrong_shape_too(remote):
    x = tf.Variable([1.0, 2.0])
    with tf.GradientTape() as tape:
        y = x * x
    before = remote.requests
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"Incompatible shapes: \[3\] vs. \[2\]"):
        tape.gradient(y, x, output_gradients=tf.ones(3))
    assert remote.requests == before


def test_draws_from_a_seed_that_is_a_tensor_ask_nobody(remote):
    state = tf.Variable([3, 5], dtype=tf.int64)
    tf.sync()
    before = remote.requests
    seed = tf.cast(tf.math.floormod(state, 1000), tf.int32)
    state.assign_add([0, 1])
    x = tf.random.stateless_normal([4, 2], seed=seed)
    y = tf.nn.experimental.stateless_dropout(x, rate=0.5, seed=seed, noise_shape=tf.shape(x))
    tf.random.experimental.stateless_shuffle(y, seed=seed)
    assert remote.requests == before
    assert y.numpy().shape == (4, 2)
    assert remote.requests == before + 1


def test_draws_of_a_generator_are_read_in_one_request(remote):
    generator = tf.random.Generator.from_seed(1)
    local = [generator.normal([2]) + generator.uniform([2]) for _ in range(3)]
    split = generator.split(2)
    before = remote.requests
    total = tf.add_n([*local, *(each.normal([2]) for each in split)])
    assert remote.requests == before
    assert total.numpy().shape == (2,)
    assert remote.requests == before + 1


def test_an_op_whose_shape_depends_on_values_asks_at_once(remote):
    x = tf.constant([0.0, 3.0, 0.0, 4.0]) * 2.0
    before = remote.requests
    result = tf.where(x > 0)
    assert remote.requests == before + 1
    assert result.shape == (2, 1)
    assert result.numpy().tolist() == [[1], [3]]


def test_a_large_buffer_leaves_by_itself_and_recording_goes_on_meanwhile(remote, loopback, monkeypatch):
    monkeypatch.setattr(module, "_MOST_COMMANDS", 20)
    loopback.gate.clear()
    x = tf.ones(())
    for _ in range(30):
        x = x + 1.0
    assert loopback.arrived.wait(10)
    assert len(loopback.batches) == 1  # in flight; what was recorded since is still here
    loopback.gate.set()
    assert float(x) == 31.0
    assert len(loopback.batches) == 2


def test_one_batch_is_in_flight_at_a_time(remote, loopback, monkeypatch):
    monkeypatch.setattr(module, "_MOST_COMMANDS", 10)
    loopback.gate.clear()
    done = threading.Event()

    def program():
        use(remote)
        x = tf.ones(())
        for _ in range(25):
            x = x + 1.0
        done.set()

    thread = threading.Thread(target=program)
    thread.start()
    assert loopback.arrived.wait(10)
    assert not done.wait(0.05)  # the bound is reached again: the program waits
    assert len(loopback.batches) == 1
    loopback.gate.set()
    thread.join(10)
    assert done.is_set()
    assert [batch.seq for batch in loopback.batches] == list(range(1, len(loopback.batches) + 1))


def test_many_bytes_leave_by_themselves(remote, loopback, monkeypatch):
    monkeypatch.setattr(module, "_MOST_BYTES", 10_000)
    results = [tf.constant(np.zeros(1000, np.float32)) for _ in range(3)]
    assert loopback.arrived.wait(10)
    assert len(results) == len(loopback.commands(Constant)) == 3


def test_a_well_filled_buffer_leaves_where_a_step_begins(remote, loopback, pair, monkeypatch):
    monkeypatch.setattr(module, "_STEP_COMMANDS", 14)
    until(lambda: remote.channel._sender.idle)  # a reader goes on before the thread that answered it has ended its turn
    loopback.arrived.clear()
    for _ in range(4):
        step(*pair)
    assert loopback.arrived.wait(10)
    tf.sync()
    opened = [
        next(i for i, command in enumerate(batch.commands) if isinstance(command, TapeOpen))
        for batch in loopback.batches[1:]
    ]
    assert all(at == 1 for at in opened)  # after the switch of contexts: a batch begins with its step


def test_without_laziness_every_op_is_a_request():
    loopback = Loopback()
    session = use(session_on(loopback, lazy=False))
    try:
        x = tf.constant([1.0, 2.0])
        before = session.requests
        y = x * 2.0
        assert session.requests == before + 1
        with tf.GradientTape() as tape:
            tape.watch(x)
            z = tf.reduce_sum(x * y)
        assert tape.gradient(z, x).numpy().tolist() == [2.0, 4.0]
        assert tf.where(x > 1.0).numpy().tolist() == [[1]]
        with pytest.raises(tf.errors.InvalidArgumentError, match=r"test_laziness.py:\d+"):
            tf.gather(x * 1.0, tf.cast(x * 2.0, "int32"))  # only the server knows that row 4 does not exist
    finally:
        session.close()
        use(LocalSession())


def test_releases_come_with_the_next_batch_and_cost_no_request(remote, loopback):
    x = tf.constant(np.ones(1000))
    y = x * 2.0
    tf.sync()
    before = remote.requests
    del x
    gc.collect()
    assert remote.requests == before
    assert float(tf.reduce_sum(y)) == 2000.0
    assert remote.requests == before + 1
    put = loopback.commands(Constant)[0].id
    assert put in loopback.batches[-1].releases


def test_what_a_loop_leaves_is_released_with_the_batch_that_made_it(remote, loopback):
    x = tf.constant(np.ones(1000))
    for _ in range(50):
        x = x + 1.0
    assert x.numpy()[0] == 51.0
    result = {output for call in loopback.commands(Call) for output in call.outputs}
    assert len(result - set(loopback.batches[0].releases)) == 1
    assert [entry["bytes"] for entry in loopback.session.listing("tensor")] == [8000]


def test_a_value_still_used_survives_the_release_of_its_name(remote, loopback):
    v = tf.Variable([2.0, 3.0])
    with tf.GradientTape() as tape:
        squared = v * v
        loss = tf.reduce_sum(tf.exp(squared))
        del squared
    tf.sync()
    gradient = tape.gradient(loss, v)
    del tape, loss
    np.testing.assert_allclose(gradient.numpy(), 2 * np.array([2, 3]) * np.exp([4.0, 9.0]), rtol=1e-6)
    tf.sync()
    assert loopback.session.listing("tape") == []


def test_the_summary_counts_reads_by_line(remote):
    x = tf.ones(2)
    for i in range(3):
        (x * float(i)).numpy()  # here
    lines = remote.summary().splitlines()
    assert lines[0].startswith("session s1: ")
    assert "test_laziness.py" in lines[1]
    assert lines[1].strip().startswith("3 reads at ")
    with open(__file__) as source:
        here = next(number for number, line in enumerate(source, 1) if line.endswith("# here\n"))
    assert f"test_laziness.py:{here}, in test_the_summary_counts_reads_by_line" in lines[1]


def test_code_that_is_made_again_and_again_is_counted_and_not_kept():
    counts = ReadCounts()
    for i in range(3000):
        counts.note((compile("f()", f"file {i % 3}", "eval"), 0))
    assert {text[:6]: count for text, count in counts.by_line()} == {"file 0": 1000, "file 1": 1000, "file 2": 1000}
    assert len(counts._by_site) <= 1024


def test_a_fetch_asks_for_no_value_that_the_program_has_dropped(remote, loopback):
    x = tf.constant([1.0, 1.0])
    y = x * 2.0
    tf.sin(x * 3.0)
    y.numpy()
    assert [command.id for command in loopback.commands(Fetch)] == [loopback.commands(Call)[-3].outputs[0]]


@pytest.mark.parametrize("dtype", [tf.int64, tf.float32, tf.float64])
def test_a_range_over_a_cast_size_makes_no_request(remote, pair, dtype):
    x, _ = pair
    requests = remote.requests
    numbers = tf.range(tf.cast(tf.size(x), dtype))
    assert remote.requests == requests
    assert numbers.dtype == dtype
    assert numbers.numpy().tolist() == list(range(8))
