"""A read brings along what the program is likely to read next, and leaves what it has brought in vain."""

import numpy as np
import pytest

import teletape as tf
from teletape.core.sessions import read_ahead
from teletape.core.sessions.sending import continuations
from teletape_engine.commands import Call, Fetch


@pytest.fixture
def parts_of(remote):
    """The number of requests that reading all of some tensors takes, and their values."""

    def read(tensors):
        before = remote.requests
        values = [tensor.numpy().tolist() for tensor in tensors]
        return remote.requests - before, values

    return read


def test_the_parts_of_a_split_come_in_one_request(parts_of):
    x = tf.constant(np.arange(5000.0)) * 2.0
    tf.sync()
    requests, values = parts_of(tf.split(x, 500))
    assert requests == 1
    assert np.concatenate(values).tolist() == (2.0 * np.arange(5000.0)).tolist()


def test_unstacked_rows_too(parts_of):
    x = tf.constant(np.arange(60.0).reshape(20, 3)) + 1.0
    requests, values = parts_of(tf.unstack(x))
    assert requests == 1
    assert values == (np.arange(60.0).reshape(20, 3) + 1.0).tolist()


def test_an_iteration_takes_a_few(remote):
    x = tf.constant(np.arange(100.0)) * 3.0
    tf.sync()
    before = remote.requests
    assert [float(row) for row in x] == (3.0 * np.arange(100.0)).tolist()
    assert remote.requests - before <= 9  # of 1, 1, 2, 4, … rows
    assert float(next(iter(x))) == 0.0


def test_from_the_middle_on(parts_of):
    pieces = tf.split(tf.constant(np.arange(40.0)) * 2.0, 40)
    assert parts_of(pieces[20:21])[0] == 1
    assert parts_of(pieces)[0] == 0


def test_a_large_one_comes_if_the_line_has_read_the_one_after_its_last(parts_of):
    pieces = tf.split(tf.ones([4, 1 << 17], tf.float64), 4)  # of 1 MiB
    assert parts_of(pieces)[0] == 3  # the first, the second with the third, the fourth


def test_what_is_gone_is_left_out(parts_of):
    pieces = tf.split(tf.constant(np.arange(40.0)) * 2.0, 40)
    first, last = pieces[0], pieces[-1]
    del pieces
    assert parts_of([first, last]) == (1, [[0.0], [78.0]])


def test_a_failure_before_them_is_reported_once(remote):
    x = tf.constant(np.arange(40.0)) * 2.0
    tf.gather(x, tf.cast(tf.ones(20) * 99.0, tf.int32))
    pieces = tf.split(x, 40)
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"\[Op:GatherV2\]"):
        pieces[0].numpy()
    assert float((x * 2.0)[3]) == 12.0


@pytest.fixture
def cost(remote):
    """The number of requests that a function takes."""

    def count(function):
        before = remote.requests
        function()
        return remote.requests - before

    return count


@pytest.fixture
def step(remote):
    """A training step of two layers that returns loss, norm, mean error and gradients; and its variables."""
    shapes = ((3, 16), (16,), (16, 1), (1,))
    weights = [tf.Variable(tf.random.stateless_normal(shape, (1, i))) for i, shape in enumerate(shapes)]
    x = tf.random.stateless_normal((8, 3), (2, 0))

    def run():
        with tf.GradientTape() as tape:
            error = tf.tanh(x @ weights[0] + weights[1]) @ weights[2] + weights[3] - 1.0
            loss = tf.reduce_mean(error**2)
        gradients = tape.gradient(loss, weights)
        for weight, gradient in zip(weights, gradients, strict=True):
            weight.assign_sub(0.1 * gradient)
        return loss, tf.linalg.global_norm(gradients), tf.reduce_mean(tf.abs(error)), gradients

    return run, weights


def numbers(values):
    return [float(value) for value in values]


def test_gradients_read_one_by_one_are_one_request(cost, step):
    gradients = step[0]()[3]
    assert cost(lambda: [gradient.numpy() for gradient in gradients]) == 1


def test_a_loss_and_its_gradients_are_one_request(cost, step):
    loss, _, _, gradients = step[0]()
    assert cost(lambda: (np.concatenate([gradient.numpy().ravel() for gradient in gradients]), float(loss))) == 1


def test_scalars_of_a_step_are_one_request(cost, step):
    assert cost(lambda: numbers(step[0]()[:3])) == 1


def test_results_of_a_function_are_one_request(cost, step):
    function = tf.function(lambda: step[0]()[:3])
    function()
    assert cost(lambda: "{:.3f} {:.3f} {:.3f}".format(*function())) == 1
    assert cost(lambda: np.array(function())) == 1
    assert cost(lambda: str(list(function()))) == 1
    assert cost(lambda: tf.nest.map_structure(lambda tensor: tensor.numpy(), function())) == 1


@pytest.mark.parametrize(
    "results_of", [tf.linalg.eigh, lambda matrix: tf.math.top_k(matrix, k=2), tf.linalg.svd, tf.linalg.qr]
)
def test_the_results_of_one_call_are_one_request(cost, results_of):
    matrix = tf.Variable(tf.eye(4) + 0.5)
    assert cost(lambda: [result.numpy() for result in results_of(matrix * 2.0)]) == 1


def test_variables_that_were_assigned_are_one_request(cost, step):
    run, weights = step
    run()
    assert cost(lambda: [weight.numpy() for weight in weights]) == 1


def test_a_variable_is_read_as_it_is_now(remote):
    first, second = tf.Variable(1.0), tf.Variable(2.0)
    first.assign_add(0.5)
    second.assign_add(0.5)
    assert first.numpy() == 1.5  # brings the second one
    second.assign_add(1.0)
    first.assign_add(1.0)
    assert (second.numpy(), first.numpy()) == (3.5, 2.5)


def test_variables_that_a_function_assigns_to_are_read_as_they_are_now(remote):
    counts = [tf.Variable(0.0), tf.Variable(0.0)]

    @tf.function
    def count():
        for i, variable in enumerate(counts):
            variable.assign_add(i + 1.0)

    for turn in (1.0, 2.0, 3.0):
        count()
        assert [variable.numpy() for variable in counts] == [turn, 2.0 * turn]


def test_a_condition_on_a_value_that_came_along_is_computed_here(cost, step):
    def check():
        loss, norm, _, _ = step[0]()
        return not tf.math.is_nan(loss) and norm < 1e9 and float(loss) < 1e9

    assert [cost(check) for _ in range(6)] == [1] * 6


def test_losses_that_are_read_after_an_epoch(cost, step):
    losses = [step[0]()[0] for _ in range(40)]
    tf.sync()
    assert cost(lambda: numbers(losses)) <= 2


def test_what_one_line_brings_in_vain_stays(loopback, cost, step):
    """Gradients live in each step, and only the loss is read."""
    fetched = []
    for _ in range(20):
        loss, _, _, gradients = step[0]()
        before = len(loopback.commands(Fetch))
        float(loss)
        fetched.append(len(loopback.commands(Fetch)) - before)
    assert fetched[0] > len(gradients)
    assert fetched.count(1) > 10  # not at once: CPython moves a call site when it specializes the code
    assert cost(lambda: [gradient.numpy() for gradient in gradients]) == 1


def test_what_a_program_reads_late_comes_the_next_time(cost, step):
    def read(late):
        loss, norm, _, _ = step[0]()
        float(loss)
        return float(norm) if late else None

    assert [cost(lambda: read(late=False)) for _ in range(4)] == [1] * 4  # brings the norm in vain
    assert [cost(lambda: read(late=True)) for _ in range(4)] == [2, 1, 1, 1]


def test_large_gradients_come_together_once_a_program_has_read_them(loopback, cost):
    weights = [tf.Variable(tf.ones([1024, 600])) for _ in range(3)]  # 2.4 MB each

    def step(wanted):
        with tf.GradientTape() as tape:
            loss = tf.add_n([tf.reduce_sum(weight * weight) for weight in weights])
        values = loss, *tape.gradient(loss, weights)
        return [value.numpy() for value in values[:wanted]]

    costs = [cost(lambda: step(4)) for _ in range(6)]
    assert costs[0] > 2
    assert costs[-2:] == [1, 1]
    before = len(loopback.commands(Fetch))
    assert cost(lambda: step(1)) == 1
    assert len(loopback.commands(Fetch)) - before == 4  # in vain, which happens once
    before = len(loopback.commands(Fetch))
    step(1)
    assert len(loopback.commands(Fetch)) - before == 1


def test_a_large_value_of_another_call_does_not_come_along(cost):
    x = tf.Variable(tf.ones([5000]))
    large, small = x * 2.0, tf.reduce_sum(x)
    assert cost(lambda: float(small)) == 1
    assert cost(large.numpy) == 1


def test_a_value_whose_command_failed_does_not_come_along(remote):
    x = tf.Variable([1.0, 2.0])
    tf.gather(x, tf.cast(x * 9.0, tf.int32))
    lost = x * 2.0
    with pytest.raises(tf.errors.InvalidArgumentError):
        lost.numpy()
    assert float(tf.reduce_sum(x)) == 3.0
    with pytest.raises(tf.errors.InvalidArgumentError):
        lost.numpy()


def test_references_to_values_are_bounded(remote):
    x, live = tf.Variable(1.0), []
    for _ in range(read_ahead.REMEMBERED + 10):
        live.append(x + 1.0)
    assert max(map(len, remote._read_ahead._recent.values())) <= read_ahead.REMEMBERED
    assert live[0].numpy() == live[-1].numpy() == 2.0


# ---------------------------------------------------------------------------------------- values that are not there yet
def steps_of(cost, function, count=6):
    """The number of requests of each step, and what the steps return."""
    results = []
    return [cost(lambda: results.append(function())) for _ in range(count)], results


def test_norms_that_are_read_one_by_one_are_one_request_from_the_third_step_on(cost, step):
    def norms():
        gradients = step[0]()[3]
        computed = [float(tf.norm(gradient)) for gradient in gradients]
        return computed, [float(np.linalg.norm(gradient.numpy())) for gradient in gradients]

    requests, results = steps_of(cost, norms)
    assert requests[0] == 4
    assert requests[2:] == [1] * 4
    for computed, expected in results:
        assert computed == pytest.approx(expected, rel=1e-5)


@pytest.fixture
def metrics():
    """Three means as Keras keeps them, and a function that adds to them and returns what they have to be."""
    totals, counts = [tf.Variable(0.0) for _ in range(3)], [tf.Variable(0.0) for _ in range(3)]
    sums = [0.0] * 3

    def add(step):
        for i, (total, count) in enumerate(zip(totals, counts, strict=True)):
            total.assign_add(float(step * (i + 1)))
            count.assign_add(1.0)
            sums[i] += step * (i + 1)
        return [each / (step + 1) for each in sums]

    return totals, counts, add


def test_results_of_metrics_are_one_request_from_the_third_step_on(cost, metrics):
    totals, counts, add = metrics
    steps = iter(range(100))

    def run():
        expected = add(next(steps))
        return [float(total / count) for total, count in zip(totals, counts, strict=True)], expected

    requests, results = steps_of(cost, run)
    assert (requests[0], requests[2:]) == (3, [1] * 4)
    for computed, expected in results:
        assert computed == pytest.approx(expected)


def test_a_variable_that_changes_between_two_reads_is_computed_as_it_is_then(cost, metrics):
    totals, counts, add = metrics
    steps = iter(range(100))
    changes = [tf.function(lambda: totals[2].assign_add(100.0)), lambda: totals[2].assign_add(100.0)]

    def run(change):
        add(next(steps))
        values = []
        for i in range(3):
            if i == 2 and change is not None:
                change()
            values.append(float(totals[i] / counts[i]))
        return values[2] == pytest.approx(float(totals[2]) / float(counts[2]))

    assert all(run(None) for _ in range(5))
    for change in changes:
        assert all(run(each) for each in (change, change, None, None, change))


def test_no_more_is_computed_than_was_read_the_last_time(loopback, cost, step):
    def run(count):
        gradients = step[0]()[3]
        return [float(tf.norm(gradient)) for gradient in gradients[:count]]

    for count in (4, 4, 4, 2):
        run(count)
    before = len(loopback.commands(Call))
    assert cost(lambda: run(2)) == 1
    short = len(loopback.commands(Call)) - before
    assert cost(lambda: run(4)) == 3  # two together, and two that were not read the last time
    assert [cost(lambda: run(4)) for _ in range(3)][1:] == [1, 1]
    before = len(loopback.commands(Call))
    assert cost(lambda: run(4)) == 1
    assert len(loopback.commands(Call)) - before == short + 2 * 4  # a norm is four ops


def test_ops_that_may_fail_are_not_foreseen(cost, step):
    def run():
        gradients = step[0]()[3]
        return [float(tf.debugging.check_numerics(tf.norm(gradient), "norm")) for gradient in gradients]

    requests, _ = steps_of(cost, run)
    assert min(requests) >= 4


def test_a_tape_records_what_was_foreseen_elsewhere(cost, step):
    run, weights = step

    def norms():
        return [float(tf.norm(weight)) for weight in weights]

    for _ in range(3):
        run()
        norms()
    run()
    first = float(tf.norm(weights[0]))
    with tf.GradientTape() as tape:
        norm = tf.norm(weights[1])
    assert first > 0.0
    assert tape.gradient(norm, weights[1]).numpy() == pytest.approx(weights[1].numpy() / float(norm), rel=1e-5)


def test_zeros_of_both_signs_are_not_the_same(remote):
    v = tf.Variable(1.0)

    def run(*zeros):
        v.assign_add(1.0)
        return [float(1.0 / (v * zero)) for zero in zeros]

    for _ in range(3):
        run(1.0, 0.0)
    assert run(1.0, -0.0)[1] == float("-inf")


def test_the_same_read_once_more_is_not_foreseen(remote):
    v = tf.Variable(1.0)
    assert [float(v * 2.0) for _ in range(5)] == [2.0] * 5
    assert not remote._read_ahead.continuations._next


def test_more_reads_in_a_row_than_are_stored_are_foreseen_up_to_there(remote, cost, monkeypatch):
    monkeypatch.setattr(continuations, "_MOST_CONTINUATIONS", 8)
    v = tf.Variable(1.0)

    def run():
        v.assign_add(1.0)
        return [float(v * float(i)) for i in range(12)]

    assert [cost(run) for _ in range(4)] == [12, 5, 5, 5]
    assert len(remote._read_ahead.continuations._next) < 8


def test_what_is_known_of_values_that_are_gone_is_dropped(remote, monkeypatch):
    monkeypatch.setattr(remote._read_ahead.continuations, "_most_known", 20)
    monkeypatch.setattr(continuations, "_MOST_CONTINUATIONS", 20)
    x = tf.constant([1.0, 2.0])
    for _ in range(100):
        tf.unstack(x * 2.0)
    assert len(remote._read_ahead.continuations._known) <= 22


def test_rows_come_together_from_the_second_time_on(cost):
    v = tf.Variable(2.0)

    def rows(count):
        return [float(row) for _, row in zip(range(count), tf.range(20.0) * v, strict=False)]

    assert [cost(lambda: rows(20)) for _ in range(3)] == [6, 1, 1]
    assert cost(lambda: rows(3)) == 1
    assert cost(lambda: rows(20)) > 1  # as many as the last time, and then the others


def test_several_values_in_one_request(cost, step):
    loss, norm, _, gradients = step[0]()
    large = tf.ones([2, 1 << 17], tf.float64) * 2.0  # of 2 MiB
    ragged = tf.RaggedTensor.from_row_lengths(tf.range(3) + tf.cast(norm * 0.0, tf.int32), [1, 2])
    results = []
    assert cost(lambda: results.append(tf.fetch({"loss": loss, "all": (large, gradients)}, None, 3, ragged))) == 1
    ((first, nothing, number, third),) = results
    assert (nothing, number) == (None, 3)
    assert cost(third.to_list) == 0
    assert first["loss"] == loss.numpy()
    assert first["all"][0].shape == (2, 1 << 17)
    assert [array.tolist() for array in first["all"][1]] == [gradient.numpy().tolist() for gradient in gradients]
    assert tf.fetch(loss) == loss.numpy()


def test_fetch_in_this_process():
    with tf.connect(local=True).as_default():
        v = tf.Variable([1.0, 2.0])
        assert [array.tolist() for array in tf.fetch([v, v * 2.0])] == [[1.0, 2.0], [2.0, 4.0]]
