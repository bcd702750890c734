"""check_gradients: of functions and of replayable tapes, the same inside this process and through a server."""

import json

import numpy as np
import pytest
from teletape.errors import GradientMismatch

import teletape as tf
from teletape.core.sessions.current import use
from teletape.core.sessions.local import LocalSession
from teletape_engine.derivatives.finite_differences import Settings, check, weights
from teletape_engine.derivatives.reports.check_report import Report

check_gradients = tf.debugging.check_gradients


# ---------------------------------------------------------------------------------------------------------- functions
def test_a_right_gradient_agrees_and_the_report_says_how_it_was_checked(connected):
    report = check_gradients(lambda x, y: tf.tanh(x) @ y, [np.full((3, 4), 0.3, np.float32), tf.ones((4, 2))])
    assert report.agrees
    assert (report.dtype, report.checked, report.entries, report.seed) == ("float64", 20, 20, 0)
    assert str(report).startswith(
        "20 of 20 entries compared in float64 (seed 0): all agree; the largest difference is at input "
    )
    assert report.worst.error < 1e-8


def test_over_http_many_calls_go_in_few_requests(server_url):
    with tf.connect(server_url) as session:
        before = session.requests
        check_gradients(lambda x: tf.reduce_sum(tf.sin(x) * x), tf.linspace(0.0, 1.0, 50))
        assert session.requests - before < 10
    use(LocalSession())


def test_a_wrong_gradient_is_an_assertion_that_names_the_worst_entry(connected):
    @tf.custom_gradient
    def triple(x):
        return x * x, lambda dy: dy * x * tf.constant([[2.0, 2.0], [2.0, 3.0]], x.dtype)

    with pytest.raises(
        GradientMismatch, match=r"the gradient is wrong; input 0\[1\]\[1\], output 0: automatic "
    ) as caught:
        check_gradients(triple, tf.constant([[1.0, 2.0], [3.0, 4.0]]))
    assert isinstance(caught.value, AssertionError)
    worst = caught.value.report.worst
    assert (worst.input, worst.index, worst.output) == (0, (1, 1), 0)
    assert worst.automatic == pytest.approx(1.5 * worst.numerical, rel=1e-6)


def test_a_gradient_that_is_none_where_the_function_changes_is_wrong(connected):
    with pytest.raises(GradientMismatch, match="automatic none, numerical "):
        check_gradients(lambda x: tf.constant(np.asarray(x) ** 2), tf.constant([1.0, 2.0]))
    check_gradients(lambda x, y: y * y, [tf.constant(1.0), tf.constant(2.0)])  # x has none, and needs none


def test_several_results_of_any_structure_are_checked_one_by_one(connected):
    wrong = tf.custom_gradient(lambda x: (tf.exp(x), lambda dy: dy))
    with pytest.raises(GradientMismatch) as caught:
        check_gradients(
            lambda p: {"a": p[0] * p[1], "b": [wrong(p[1]), tf.argmax([1, 2])]}, [[tf.constant(1.0), tf.constant(2.0)]]
        )
    assert (caught.value.report.worst.output, caught.value.report.worst.input) == (1, 1)


def test_a_kink_is_reported_as_one(connected):
    with pytest.raises(
        GradientMismatch, match=r"the slopes to its two sides are .*: a kink or a jump, check at a point next to it"
    ):
        check_gradients(tf.nn.relu, tf.constant([0.0, 1.0]))
    check_gradients(tf.nn.relu, tf.constant([-0.1, 0.1]))


def test_a_function_that_mixes_in_its_own_dtype_is_checked_in_that(connected):
    w = tf.constant([1.0, 2.0])
    assert check_gradients(lambda x: x * w, tf.constant([3.0, 4.0])).dtype == "float32"
    assert check_gradients(lambda x: tf.cast(x, tf.float16) ** 2, tf.constant([0.3, 0.7])).dtype == "float16"
    assert check_gradients(lambda x: tf.sin(x), tf.constant([0.5], tf.bfloat16)).dtype == "float64"


def test_a_variable_is_moved_by_assignment_and_has_its_own_back(connected):
    w = tf.Variable(np.linspace(-1, 1, 200).astype(np.float32))
    report = check_gradients(lambda unused: tf.reduce_sum(tf.sin(w) * 2.0), w)
    assert (report.checked, report.entries) == (64, 200)
    assert np.array_equal(w.numpy(), np.linspace(-1, 1, 200).astype(np.float32))

    def fails(v):
        if float(v[0]) != -1.0:
            raise ZeroDivisionError
        return v * 1.0

    with pytest.raises(ZeroDivisionError):
        check_gradients(fails, w)
    assert float(w[0]) == -1.0


def test_complex_functions_follow_tensorflows_convention(connected):
    z = tf.constant([1 + 2j, 3 - 1j], tf.complex64)
    assert check_gradients(lambda z: z * z * tf.math.conj(z), z).dtype == "complex128"
    assert check_gradients(lambda z: tf.abs(z), z).agrees


def test_a_large_input_is_sampled_by_the_seed(connected):
    x = tf.random.normal([1000])
    wrong = tf.custom_gradient(lambda x: (x * 1.0, lambda dy: dy * tf.cast(tf.range(1000) != 17, dy.dtype)))
    assert check_gradients(wrong, x, entries=5, seed=1).checked == 5
    with pytest.raises(GradientMismatch, match=r"1,000 of 1,000 entries .*input 0\[17\]"):
        check_gradients(wrong, x, entries=1000)


def test_a_random_function_is_refused(connected):
    with pytest.raises(tf.errors.InvalidArgumentError, match="returns a different result at each call"):
        check_gradients(lambda x: x + tf.random.normal([2]), tf.constant([0.3, 0.7]))


def test_what_is_not_finite_is_reported(connected):
    with pytest.raises(GradientMismatch, match=r"input 0\[0\], output 0: automatic -?inf, numerical nan"):
        check_gradients(tf.sqrt, tf.constant([0.0, 1.0]))


@pytest.mark.parametrize(
    ("inputs", "text"),
    [
        ({"entries": 0}, "entries must be a number above 0, found 0"),
        ({"step": 0.0}, "step must be a number above 0, found 0.0"),
        ({"rtol": float("nan")}, "rtol must be a number from 0, found nan"),
    ],
)
def test_a_setting_that_makes_no_sense_is_refused(inputs, text):
    with pytest.raises(tf.errors.InvalidArgumentError, match=text):
        check_gradients(tf.sin, tf.constant(1.0), **inputs)


def test_inputs_or_results_without_gradients_are_refused():
    with pytest.raises(TypeError, match=r"no input has a gradient; their dtypes are \['int32'\]"):
        check_gradients(lambda x: x, tf.constant([1, 2]))
    with pytest.raises(TypeError, match="gives no tensor of a dtype that has gradients"):
        check_gradients(lambda x: tf.argmax(x), tf.constant([1.0, 2.0]))


def test_a_report_travels_as_json():
    class Subject:
        def __init__(self):
            self.values = [np.array([1.0, np.inf]), np.array(2 + 1j)]
            self.outputs = [np.array(3.0)]

        def gradients(self, cts):
            return [[np.array([1.0, np.nan]), None]]

        def weighted(self, points):
            return np.array([[float(np.sum(value).real)] for _, value in points])

    settings = Settings()
    report = check(Subject(), settings, weights(Subject(), 0))
    facts = json.loads(json.dumps(report.facts(), allow_nan=False))
    again = Report.from_facts(facts)
    assert again.facts() == report.facts()
    assert not again.agrees
    assert facts["message"] == str(report)


# -------------------------------------------------------------------------------------------------------------- tapes
def test_a_replayable_tape_checks_what_it_recorded(connected):
    w = tf.Variable(np.linspace(-1, 1, 12).reshape(3, 4).astype(np.float32))
    x = tf.constant([[1.0, 2.0, 3.0]])
    with tf.GradientTape(replayable=True) as tape:
        tape.watch(x)
        h = tf.tanh(x @ w)
        w.assign(w * 2.0)
        y = tf.reduce_sum(h * tf.nn.relu(x @ w + 1.0)) + tf.reduce_max(tf.gather(w, [0, 2]))
    report = tape.check_gradients(y, [w, x])
    assert (report.checked, report.entries) == (15, 15)
    assert tape.check_gradients([y, h], h).agrees, "of a value in between too"
    dw, dx = tape.gradient(y, [w, x])
    assert dw is not None
    assert dx is not None
    with pytest.raises(ValueError, match="this tape has answered, and has freed its inputs"):
        tape.check_gradients(y, w)


def test_a_tape_that_keeps_no_inputs_says_how_to_open_one(connected):
    w = tf.Variable([1.0, 2.0])
    with tf.GradientTape() as tape:
        y = w * w
    with pytest.raises(ValueError, match="create it with replayable=True"):
        tape.check_gradients(y, w)
    assert np.array_equal(tape.gradient(y, w).numpy(), [2.0, 4.0]), "and is as it was"


def test_a_call_of_the_callers_own_gradient_cannot_be_run_again(connected):
    @tf.custom_gradient
    def mine(x):
        return x * x, lambda dy: dy

    w = tf.Variable([1.0, 2.0])
    with tf.GradientTape(replayable=True) as tape:
        y = mine(w)
    with pytest.raises(
        tf.errors.InvalidArgumentError, match=r"the caller's own function .*: check the function itself"
    ):
        tape.check_gradients(y, w)


def test_a_replayable_tape_keeps_every_input_and_answers_as_others(connected):
    x, c = tf.Variable(np.ones(100, np.float32)), tf.constant(np.full(100, 2.0, np.float32))
    retained, grads = [], []
    for replayable in (False, True):
        with tf.GradientTape(persistent=True, replayable=replayable) as tape:
            y = x + c
        retained.append(tape.memory().bytes)
        grads.append(tape.gradient(y, x).numpy())
    assert retained == [0, 800]
    assert np.array_equal(*grads)
