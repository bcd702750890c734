"""Loops that write an unknown number of elements to a TensorArray: one command, one trace, as many elements."""

import numpy as np
import pytest
from teletape.errors import InvalidArgumentError

import teletape as tf
from teletape.core.functions.function import MOST_VALUES

W = np.random.default_rng(0).normal(size=(20, 20)).astype(np.float32)


def decoder(finish, table):
    """A function that decodes until a token, and how often its body has run."""
    runs = []

    @tf.function
    def decode(start, end):
        runs.append(1)
        out = tf.TensorArray(tf.int64, size=0, dynamic_size=True)
        out, last = out.write(0, start), start
        for i in tf.range(40):
            last = tf.argmax(tf.gather(table, last) + tf.sin(tf.cast(i, tf.float32)) * table[i % 20])
            out = out.write(i + 1, last)
            if last == end:
                break
        return finish(out)

    return decode, runs


def tokens(start, end):
    """What it decodes, by NumPy."""
    out = [start]
    for i in range(40):
        out.append(int(np.argmax(W[out[-1]] + np.sin(np.float32(i)) * W[i % 20])))
        if out[-1] == end:
            break
    return out


def test_decoding_is_one_request_and_one_trace(remote):
    table = tf.Variable(W)
    decode, runs = decoder(lambda out: out.stack(), table)
    expected = {end: tokens(3, end) for end in (-1, 13, 7)}
    assert len({len(decoded) for decoded in expected.values()}) == 3
    for end, decoded in expected.items():
        start, last = tf.constant(3, tf.int64), tf.constant(end, tf.int64)
        before = remote.requests
        assert decode(start, last).numpy().tolist() == decoded
        assert remote.requests == before + 1
    assert len(runs) == decode.experimental_get_tracing_count() == 1


FINISHES = {
    "stack": (lambda out: out.stack(), lambda decoded: decoded),
    "transpose": (lambda out: tf.transpose(out.stack()), lambda decoded: decoded),
    "batch": (lambda out: tf.expand_dims(out.stack(), 0), lambda decoded: [decoded]),
    "sum": (lambda out: tf.reduce_sum(tf.cast(out.stack(), tf.float32) * 2.0), lambda decoded: 2.0 * sum(decoded)),
    "reshape": (lambda out: tf.reshape(out.stack(), [-1, 1]), lambda decoded: [[token] for token in decoded]),
    "gather": (lambda out: tf.gather(tf.constant(W), out.stack()), lambda decoded: W[decoded].tolist()),
    "last": (lambda out: out.stack()[-1], lambda decoded: decoded[-1]),
    "size": (lambda out: out.size(), len),
    "concat": (lambda out: tf.concat([out.read(1)[None], [-1]], 0), lambda decoded: [decoded[1], -1]),
    "one more": (lambda out: out.write(out.size(), -5).stack(), lambda decoded: [*decoded, -5]),
}


@pytest.mark.parametrize("finish", FINISHES)
def test_what_is_done_with_it_afterwards(remote, finish, caplog):
    in_function, by_hand = FINISHES[finish]
    decode, runs = decoder(in_function, tf.constant(W))
    for end in (13, 7):
        result = decode(tf.constant(3, tf.int64), tf.constant(end, tf.int64))
        assert result.numpy().tolist() == by_hand(tokens(3, end))
    assert len(runs) == 1
    assert not [record for record in caplog.records if "op by op" in record.getMessage()]


@pytest.mark.parametrize("first", [0, 2])
def test_elements_that_are_appended(remote, first):
    @tf.function
    def halves(x, least):
        out = tf.TensorArray(tf.float32, size=0, dynamic_size=True)
        for i in range(first):
            out = out.write(i, -1.0)
        for _ in tf.range(30):
            if x < least:
                break
            x = x / 2.0
            out = out.write(out.size(), x)
        return out.stack(), out.size()

    for least in (3.0, 0.1, 100.0):
        expected, x = [-1.0] * first, 20.0
        while x >= least:
            x /= 2.0
            expected.append(x)
        elements, count = halves(tf.constant(20.0), tf.constant(least))
        assert (elements.numpy().tolist(), count.numpy()) == (expected, len(expected))
    assert halves.experimental_get_tracing_count() == 1


def test_a_while_loop_with_a_bound(remote):
    @tf.function
    def squares(n):
        out = tf.TensorArray(tf.int32, size=0, dynamic_size=True)
        _, out = tf.while_loop(
            lambda i, out: i < n, lambda i, out: (i + 1, out.write(i, i * i)), (0, out), maximum_iterations=12
        )
        return out.stack()

    for n in (4, 0, 40):
        assert squares(tf.constant(n)).numpy().tolist() == [i * i for i in range(min(n, 12))]
    assert squares.experimental_get_tracing_count() == 1


def test_its_gradient(remote):
    @tf.function
    def powers(x, most):
        out, y = tf.TensorArray(tf.float32, size=0, dynamic_size=True), x
        for i in tf.range(10):
            out = out.write(i, y)
            if y > most:
                break
            y = y * x
        return out.stack()

    x = tf.Variable(2.0)
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(powers(x, tf.constant(5.0)))
    assert float(loss) == 2.0 + 4.0 + 8.0
    assert float(tape.gradient(loss, x)) == 1.0 + 2.0 * 2.0 + 3.0 * 4.0


@pytest.mark.parametrize("index", ["of the data", "of no bound"])
def test_without_a_bound_one_warning_says_what_to_use(remote, caplog, index):
    @tf.function
    def written(x, at):
        out = tf.TensorArray(tf.float32, size=0, dynamic_size=True)
        i = 0
        while tf.cast(i, tf.float32) < x and (index == "of the data" or i < 50):
            out = out.write(tf.cast(at, tf.int32) if index == "of the data" else i, 1.0)
            i += 1
        return out.stack()

    assert written(tf.constant(3.0), tf.constant(2.0)).numpy().tolist()[-1] == 1.0
    assert written(tf.constant(4.0), tf.constant(2.0)).numpy().tolist()[-1] == 1.0
    (record,) = caplog.records
    assert record.getMessage().endswith("a TensorArray of dynamic size, or one whose size is a Python number.")


def test_outside_of_the_room_is_refused(remote):
    @tf.function
    def read(n, at):
        out = tf.TensorArray(tf.float32, size=0, dynamic_size=True)
        for i in tf.range(5):
            if i == n:
                break
            out = out.write(i, 1.0)
        return out.read(at)

    assert float(read(tf.constant(3), tf.constant(2))) == 1.0
    with pytest.raises(InvalidArgumentError, match="Trying to access element 9"):
        float(read(tf.constant(3), tf.constant(9)))


def growing(x, n):
    """By a number of iterations that is a tensor: an array of that size."""
    out = tf.TensorArray(tf.float32, size=n)
    for i in tf.range(n):
        out = out.write(i, x * tf.cast(i, tf.float32))
    return out.stack()


def of_dynamic_size(x, n):
    """By an array that grows, in a loop that may end before."""
    out = tf.TensorArray(tf.float32, size=0, dynamic_size=True)
    for i in tf.range(n):
        out = out.write(i, x * tf.cast(i, tf.float32))
        if x < -1.0:
            break
    return out.stack()


def filled(x, n):
    """By replacing elements of a tensor of that size."""
    out = tf.zeros([n + 0])
    for i in tf.range(1, n):
        out = tf.tensor_scatter_nd_update(out, [[i]], [x * tf.cast(i, tf.float32)])
    return out


def concatenated(x, n):
    """By concatenation."""
    out, i = tf.zeros([0]), 0
    while i < n:
        tf.autograph.experimental.set_loop_options(shape_invariants=[(out, tf.TensorShape([None]))])
        out = tf.concat([out, [x * tf.cast(i, tf.float32)]], 0)
        i += 1
    return out


def concatenated_over_a_range(x, n):
    """By concatenation in a loop over tf.range."""
    out = tf.zeros([0])
    for i in tf.range(n):
        tf.autograph.experimental.set_loop_options(shape_invariants=[(out, tf.TensorShape([None]))])
        out = tf.concat([out, [x * tf.cast(i, tf.float32)]], 0)
    return out


def by_while_loop(x, n):
    """By concatenation in tf.while_loop, whose number of iterations is a tensor; the body returns a tuple."""
    shapes = [tf.TensorShape([]), tf.TensorShape([None])]
    return tf.while_loop(
        lambda i, out: True,
        lambda i, out: (i + 1, tf.concat([out, [x * tf.cast(i, tf.float32)]], 0)),
        [0, tf.zeros([0])],
        shape_invariants=shapes,
        maximum_iterations=n,
    )[1]


def by_while_loop_and_array(x, n):
    """By an array that grows in tf.while_loop."""
    out = tf.TensorArray(tf.float32, size=0, dynamic_size=True)
    return tf.while_loop(
        lambda i, out: x > -1.0,
        lambda i, out: (i + 1, out.write(i, x * tf.cast(i, tf.float32))),
        [0, out],
        maximum_iterations=n,
    )[1].stack()


array_of_size = tf.function(growing)


def in_another_function(x, n):
    """By a function that is called with a number that follows from the argument."""
    return array_of_size(x, (n + 1) - 1)


def with_a_bound(x, n):
    """By a number of iterations at most and a condition."""
    out = tf.TensorArray(tf.float32, size=0, dynamic_size=True)
    for i in tf.range(10):
        if i >= n:
            break
        out = out.write(i, x * tf.cast(i, tf.float32))
    return out.stack()


SIZED = [
    growing,
    of_dynamic_size,
    filled,
    concatenated,
    concatenated_over_a_range,
    by_while_loop,
    by_while_loop_and_array,
    in_another_function,
]


@pytest.mark.parametrize("function", [*SIZED, with_a_bound])
def test_a_number_of_iterations_of_the_data_is_one_request(remote, caplog, function):
    x, decode = tf.Variable(2.0), tf.function(function)
    for n in (4, 2, 4):
        before = remote.requests
        assert decode(x, tf.constant(n)).numpy().tolist() == [0.0, 2.0, 4.0, 6.0][:n]
        assert remote.requests == before + 1
    assert not caplog.records
    assert decode.experimental_get_tracing_count() == 1


@pytest.mark.parametrize("function", SIZED)
def test_the_gradient_of_what_a_number_of_the_data_sizes(remote, function):
    decode = tf.function(function)
    x = tf.Variable(2.0)
    for n in (4, 3):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(decode(x, tf.constant(n)) ** 2)
        assert float(tape.gradient(loss, x)) == 2.0 * 2.0 * sum(i * i for i in range(n))


def test_the_body_runs_once_for_each_value_that_it_needs(remote):
    runs = []

    @tf.function
    def numbers(x, n, m):
        runs.append(1)
        return x + tf.reduce_sum(tf.ones([n])) + tf.cast(m, tf.float32)

    x = tf.constant(0.5)
    results = [float(numbers(x, tf.constant(n), tf.constant(m))) for n, m in ((3, 0), (3, 1), (5, 1), (3, 2), (5, 0))]
    assert results == [3.5, 4.5, 6.5, 5.5, 5.5]
    assert len(runs) == 3  # once in vain, then for 3 and for 5; never for a value of m
    assert numbers.experimental_get_tracing_count() == 1


def test_a_number_that_is_computed_is_read_in_each_call(remote):
    decode = tf.function(growing)
    x, elements = tf.Variable(2.0), tf.constant([1, 0, 1, 1])
    for _ in range(2):
        before = remote.requests
        assert decode(x, tf.math.count_nonzero(elements, dtype=tf.int32)).numpy().tolist() == [0.0, 2.0, 4.0]
        assert remote.requests == before + 2


def test_beyond_many_values_it_runs_op_by_op_and_says_so_once(remote, caplog):
    runs = []

    @tf.function
    def decode(x, n):
        runs.append(1)
        return growing(x, n)

    x = tf.Variable(1.0)
    for n in range(MOST_VALUES + 3):
        assert decode(x, tf.constant(n)).numpy().tolist() == list(range(n))
    (record,) = caplog.records
    assert f"a TensorArray whose size is a tensor, for more than {MOST_VALUES} values" in record.getMessage()
    assert "`for i in tf.range(N)` with a Python number N of iterations at most" in record.getMessage()
    traced, before = len(runs), remote.requests
    assert decode(x, tf.constant(5)).numpy().tolist() == list(range(5))  # what was traced stays
    assert (len(runs), remote.requests) == (traced, before + 1)
    nested = tf.function(lambda x, n: decode(x, n) + 1.0)
    assert nested(x, tf.constant(40)).numpy().tolist() == list(range(1, 41))


def test_a_number_that_follows_from_something_else_is_not_part_of_the_signature(remote, caplog):
    v = tf.Variable(3)

    @tf.function
    def decode(x, n):
        return growing(x, n + v)

    for value in (3, 4):
        v.assign(value)
        assert decode(tf.constant(1.0), tf.constant(1)).numpy().tolist() == list(range(value + 1))
    (record,) = caplog.records
    assert "op by op" in record.getMessage()


def test_what_needs_values_has_no_concrete_function(remote):
    decode, x = tf.function(growing), tf.constant(2.0)
    for n in (tf.constant(4), tf.TensorSpec([], tf.int32)):
        for _ in range(2):
            with pytest.raises(TypeError, match="needs values while it is traced"):
                decode.get_concrete_function(x, n)
    assert decode(x, tf.constant(2)).numpy().tolist() == [0.0, 2.0]
    with pytest.raises(TypeError, match="needs values while it is traced"):
        decode.get_concrete_function(x, tf.TensorSpec([], tf.int32))


def test_a_largest_number_of_iterations_that_is_a_tensor_is_one_request(remote, caplog):
    @tf.function
    def powers(x, n):
        def body(i, y):
            return i + 1, y * x

        return tf.while_loop(lambda i, y: y < 100.0, body, [0, x], maximum_iterations=n)

    x = tf.Variable(3.0)
    for n, expected in ((0, [0, 3.0]), (2, [2, 27.0]), (9, [4, 243.0])):
        before = remote.requests
        assert [float(part) for part in powers(x, tf.constant(n))] == expected
        assert remote.requests == before + 1
    with tf.GradientTape() as tape:
        y = powers(x, tf.constant(2))[1]
    assert float(tape.gradient(y, x)) == 27.0
    assert powers.experimental_get_tracing_count() == 1
    assert not caplog.records


def attending(first, end, array):
    """Reads all tokens so far before it writes the next, as a transformer does."""
    array = array.write(0, first)
    for i in tf.range(6):
        token = tf.reduce_sum(array.stack())
        array = array.write(i + 1, token)
        if token == end:
            break
    return array.stack()


def test_the_warning_about_a_loop_that_reads_all_elements_names_what_is_traced(remote, caplog):
    first, end = tf.constant(1.0), tf.constant(8.0)

    @tf.function
    def growing_array(first, end):
        return attending(first, end, tf.TensorArray(tf.float32, 0, dynamic_size=True, clear_after_read=False))

    assert growing_array(first, end).numpy().tolist() == [1.0, 1.0, 2.0, 4.0, 8.0]
    (record,) = caplog.records
    assert record.getMessage().endswith(
        "Use a TensorArray whose size is a Python number, and a mask: `stack` has zeros for the elements that are not "
        "written."
    )

    @tf.function
    def fixed_array(first, end):
        return attending(first, end, tf.TensorArray(tf.float32, 7, clear_after_read=False))

    before = remote.requests
    assert fixed_array(first, end).numpy().tolist() == [1.0, 1.0, 2.0, 4.0, 8.0, 0.0, 0.0]
    assert remote.requests == before + 1
    assert len(caplog.records) == 1
