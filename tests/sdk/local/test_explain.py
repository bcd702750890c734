"""Why a gradient is None, zero or NaN: every reason from the program a user would write, in-process and over HTTP."""

import gc
import inspect
import re
import threading
from pathlib import Path

import numpy as np
import pytest

import teletape as tf
from teletape.core.sessions.current import use
from teletape.core.sessions.local import LocalSession
from teletape_engine.explain.reasons import MEANINGS, Outcome, Reason

PAGE = (Path(__file__).parents[3] / "docs/explain.md").read_text(encoding="utf-8")
NUMERIC = (Outcome.ZERO, Outcome.NOT_FINITE)

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")  # NumPy's, of the zeros and infinities that we make


@pytest.fixture
def session(connected):
    """A session of the test's own."""
    return connected


# ------------------------------------------------------------------------------------------------------------ the page
def test_every_code_has_a_meaning_and_a_program_on_the_page():
    assert set(MEANINGS) == set(Reason)
    assert re.findall(r"^### (.+)$", PAGE, re.M) == [item.value for item in sorted(Reason, key=_place)]


def _place(reason):
    return PAGE.index(f"\n### {reason.value}\n")


# ------------------------------------------------------------------------------------------------------- more programs
def line_of(function, marker):
    """The line of the function's source that ends with the marker."""
    source, first = inspect.getsourcelines(function)
    return first + next(i for i, line in enumerate(source) if line.rstrip().endswith(f"# {marker}"))


PROGRAMS = []


def expects(code, *, op=None, certain=True):
    """A program that gives (tape, target, source); the line to blame is marked with `# here`."""

    def register(function):
        PROGRAMS.append(pytest.param(function, code, op, certain, id=function.__name__))
        return function

    return register


@expects("integer_or_bool", op="cast")
def a_value_cast_to_int_and_back():
    x = tf.Variable(2.5)
    with tf.GradientTape() as tape:
        whole = tf.cast(x * 2.0, tf.int32)  # here
        y = tf.cast(whole, tf.float32) + 1.0
    return tape, y, x


@expects("integer_or_bool", op="greater")
def a_comparison_that_is_cast():
    x = tf.Variable([0.5, 1.5])
    with tf.GradientTape() as tape:
        mask = tf.cast(x > 1.0, tf.float32)  # here
        y = tf.reduce_sum(mask)
    return tape, y, x


@expects("integer_or_bool", op="argmax")
def rows_chosen_by_an_index_that_was_computed():
    x, table = tf.Variable([1.0, 3.0]), tf.constant([[1.0, 2.0], [3.0, 4.0]])
    with tf.GradientTape() as tape:
        row = tf.argmax(x)  # here
        y = tf.reduce_sum(tf.gather(table, row))
    return tape, y, x


@expects("non_differentiable_op", op="floor")
def the_cut_nearest_to_the_target_is_named():
    x = tf.Variable(2.5)
    with tf.GradientTape() as tape:
        y = tf.floor(tf.math.ceil(x) * 1.5)  # here
    return tape, y, x


@expects("non_differentiable_op", op="zeros_like")
def a_tensor_made_in_the_shape_of_another():
    x = tf.Variable([1.0, 2.0])
    with tf.GradientTape() as tape:
        y = tf.reduce_sum(tf.zeros_like(x) + 1.0)  # here
    return tape, y, x


@expects("assigned", op="assign")
def a_variable_that_is_set():
    x, v = tf.Variable(2.0), tf.Variable(0.0)
    with tf.GradientTape() as tape:
        v.assign(x * 3.0)  # here
        y = v * v
    return tape, y, x


@expects("assigned", op="assign")
def a_variable_that_is_added_to_twice():
    x, z, v = tf.Variable(2.0), tf.Variable(3.0), tf.Variable(0.0)
    with tf.GradientTape() as tape:
        v.assign_add(x)  # here
        v.assign_add(z)
        y = v * v
    return tape, y, x


@expects("assigned", op="assign")
def a_variable_made_of_a_tensor():
    x = tf.Variable(2.0)
    with tf.GradientTape() as tape:
        v = tf.Variable(x * 3.0)  # here
        y = v * v
    return tape, y, x


@expects("left_and_returned", op="left and returned")
def an_array_of_another_shape_and_dtype():
    x = tf.Variable([[1.25, 2.5], [3.75, 5.0]])
    with tf.GradientTape() as tape:
        array = (x * 2.0).numpy()
        again = tf.constant(array.astype(np.float64).reshape(-1))  # here
        y = tf.cast(tf.reduce_sum(again), tf.float32)
    return tape, y, x


@expects("left_and_returned", op="left and returned")
def a_large_array():
    x = tf.Variable(tf.range(4000, dtype=tf.float32))
    with tf.GradientTape() as tape:
        y = tf.reduce_sum(tf.constant((x + 0.5).numpy()))  # here
    return tape, y, x


@expects("left_and_returned", op="left and returned")
def a_python_number():
    x = tf.Variable(1.234)
    with tf.GradientTape() as tape:
        number = float(x * x)
        y = tf.constant(2.0) * number  # here
    return tape, y, x


@expects("left_and_returned", op="left and returned", certain=False)
def a_short_number_may_be_an_accident():
    x = tf.Variable(3.0)
    with tf.GradientTape() as tape:
        number = float(x * x)
        y = tf.constant(2.0) + number  # here
    return tape, y, x


@expects("left_and_returned", op="left and returned")
def the_source_itself_read_before_the_tape():
    x = tf.Variable([1.5, 2.5])
    array = x.numpy()
    with tf.GradientTape() as tape:
        y = tf.reduce_sum(tf.constant(array) * 2.0)  # here
    return tape, y, x


@expects("left_and_returned", op="constant", certain=False)
def numpy_in_the_middle():
    x = tf.Variable([1.0, 2.0])
    with tf.GradientTape() as tape:
        y = tf.reduce_sum(tf.constant(np.sin((x * x).numpy())))  # here
    return tape, y, x


@expects("left_and_returned", op="constant", certain=False)
def a_number_that_python_changed():
    x, ones = tf.Variable(1.234), tf.ones([2])
    with tf.GradientTape() as tape:
        number = float(x * x) + 1
        y = ones * number  # here
    return tape, y, x


@expects("not_watched", op="mul")
def a_tape_that_watches_nothing_by_itself():
    x = tf.Variable(3.0)
    with tf.GradientTape(watch_accessed_variables=False) as tape:
        y = x * x  # here
    return tape, y, x


@expects("not_watched", op="mul")
def a_constant_next_to_a_variable():
    x, w = tf.constant(3.0), tf.Variable(2.0)
    with tf.GradientTape() as tape:
        y = w * x  # here
    return tape, y, x


@expects("computed_before_tape", op="mul")
def a_chain_of_which_the_end_is_recorded():
    x = tf.Variable(3.0)
    y = x * 2.0
    y = y * y  # here
    with tf.GradientTape() as tape:
        y = y + 1.0
    return tape, y, x


@expects("computed_after_tape", op="add")
def an_op_after_gradient_within_the_context():
    x = tf.Variable(3.0)
    with tf.GradientTape() as tape:
        y = x * x
        tape.gradient(y, x)
        z = y + 1.0  # here
    return tape, z, x


@expects("no_outer_tape", op="gradient")
def an_inner_gradient_asked_outside_the_outer_tape():
    x = tf.Variable(3.0)
    with tf.GradientTape() as outer, tf.GradientTape() as inner:
        y = x * x * x
    slope = inner.gradient(y, x)  # here
    return outer, slope, x


@expects("no_outer_tape", op="gradient")
def an_update_that_is_asked_for_a_derivative():
    x = tf.Variable(3.0)
    with tf.GradientTape() as inner:
        y = x * x * x
    slope = inner.gradient(y, x)  # here
    with tf.GradientTape() as tape:
        z = slope * 2.0
    return tape, z, x


@expects("untaken_branch", op="branch not taken")
def a_case_that_is_not_chosen():
    x, z = tf.Variable(2.0), tf.Variable(3.0)
    with tf.GradientTape() as tape:
        y = tf.cond(tf.constant(False), lambda: x * x, lambda: z * z)  # here
    return tape, y, x


@expects("unconnected")
def a_source_used_for_something_else():
    x, z = tf.Variable(2.0), tf.Variable(3.0)
    with tf.GradientTape() as tape:
        _ = x * 3.0
        y = z * 3.0
    return tape, y, x


@expects("unconnected")
def a_read_for_the_log_is_not_blamed():
    x, w = tf.Variable(1.2345), tf.Variable(3.0)
    with tf.GradientTape() as tape:
        float(x * x)
        y = w * tf.constant([1.0, 0.5]) + 2.0
    return tape, y, x


@expects("unconnected")
def a_constant_as_the_target():
    x = tf.Variable(2.0)
    with tf.GradientTape() as tape:
        _ = x * 3.0
    return tape, tf.constant(5.5), x


@expects("unconnected")
def a_variable_as_the_target():
    x, v = tf.Variable(2.0), tf.Variable(3.0)
    with tf.GradientTape() as tape:
        _ = x * v
    return tape, v, x


@expects("source_dtype")
def an_integer_source():
    x, w = tf.constant([1, 2]), tf.Variable(2.0)
    with tf.GradientTape() as tape:
        y = tf.reduce_sum(tf.cast(x, tf.float32) * w)
    return tape, y, x


@expects("source_dtype")
def a_string_as_the_source():
    x, w = tf.constant("a"), tf.Variable(2.0)
    with tf.GradientTape() as tape:
        y = w * w
    return tape, y, x


@expects("target_dtype", op="cast")
def an_integer_target():
    x = tf.Variable(2.0)
    with tf.GradientTape() as tape:
        y = tf.cast(x * 3.0, tf.int32)  # here
    return tape, y, x


@expects("saturated", op="maximum")
def clipped_values():
    x = tf.Variable([5.0, 7.0])
    with tf.GradientTape(persistent=True) as tape:
        y = tf.reduce_sum(tf.clip_by_value(x, 0.0, 1.0) + tf.maximum(x, 9.0))  # here
    return tape, y, x


@expects("saturated", op="sigmoid")
def a_sigmoid_far_out():
    x = tf.Variable([200.0, 300.0])
    with tf.GradientTape(persistent=True) as tape:
        y = tf.reduce_sum(tf.sigmoid(x))  # here
    return tape, y, x


@expects("masked", op="concat")
def elements_that_nobody_takes():
    x, z = tf.Variable([1.0, 2.0, 3.0]), tf.Variable([4.0])
    with tf.GradientTape(persistent=True) as tape:
        joined = tf.concat([z, x], axis=0)  # here
        y = tf.reduce_sum(joined[:1])
    return tape, y, x


@expects("masked", op="reduce_sum")
def no_elements_at_all():
    x = tf.Variable([1.0, 2.0, 3.0])
    with tf.GradientTape(persistent=True) as tape:
        part = x[3:]
        y = tf.reduce_sum(part)  # here
    return tape, y, x


@expects("zero_factor", op="matmul")
def weights_of_zero():
    x, w = tf.Variable(tf.ones([1, 3])), tf.zeros([3, 2])
    with tf.GradientTape(persistent=True) as tape:
        y = tf.reduce_sum(tf.matmul(x, w))  # here
    return tape, y, x


@expects("zero_derivative", op="abs")
def a_kink():
    x = tf.Variable(0.0)
    with tf.GradientTape(persistent=True) as tape:
        y = tf.abs(x) * 3.0  # here
    return tape, y, x


@expects("zero_derivative", op="sign")
def a_step_is_known_without_numbers():
    x = tf.Variable([1.0, -2.0])
    with tf.GradientTape() as tape:
        y = tf.reduce_sum(tf.sign(x))  # here
    tape.gradient(y, x)
    return tape, y, x


@expects("overflow", op="div")
def one_through_nearly_zero():
    x = tf.Variable([1.0, 1e-30])
    with tf.GradientTape(persistent=True) as tape:
        y = tf.reduce_sum(1.0 / x)  # here
    return tape, y, x


@expects("value_not_finite", op="log")
def a_value_that_is_nan_already():
    x = tf.Variable([1.0, -1.0])
    with tf.GradientTape(persistent=True) as tape:
        logs = tf.math.log(x)  # here
        y = tf.reduce_sum(logs * logs)
    return tape, y, x


@expects("zero_times_infinity", op="log")
def the_where_trap():
    x = tf.Variable([0.0, 4.0])
    with tf.GradientTape(persistent=True) as tape:
        log = tf.math.log(x)  # here
        y = tf.reduce_sum(tf.where(x > 0.0, log, 0.0))
    return tape, y, x


@expects("partly_cut", op="stop_gradient")
def a_share_that_is_stopped():
    x = tf.Variable(2.0)
    with tf.GradientTape(persistent=True) as tape:
        y = tf.stop_gradient(x) * x  # here
    return tape, y, x


@expects("partly_cut", op="assign")
def a_share_that_went_through_a_variable():
    x, v = tf.Variable(2.0), tf.Variable(0.0)
    with tf.GradientTape(persistent=True) as tape:
        v.assign(x)  # here
        y = v * x
    return tape, y, x


@expects("connected")
def a_mask_that_selects_is_no_loss():
    x = tf.Variable([1.0, -2.0])
    with tf.GradientTape(persistent=True) as tape:
        y = tf.reduce_sum(tf.where(x > 0.0, x, 0.1 * x) * tf.ones_like(x))
    return tape, y, x


@expects("connected")
def an_update_in_the_step_before_is_no_loss():
    x = tf.Variable([1.0, -2.0])
    for _ in range(2):
        with tf.GradientTape(persistent=True) as tape:
            y = tf.reduce_sum(x * x)
        x.assign_sub(0.1 * tape.gradient(y, x))
    return tape, y, x


@expects("connected")
def numbers_that_look_alike_are_no_loss():
    x = tf.Variable(2.0)
    with tf.GradientTape(persistent=True) as tape:
        z = x * x
        float(z)
        y = z * 4.0
    return tape, y, x


@expects("connected")
def a_second_derivative_done_right():
    x = tf.Variable(3.0)
    with tf.GradientTape(persistent=True) as outer:
        with tf.GradientTape() as inner:
            y = x * x * x
        slope = inner.gradient(y, x)
    return outer, slope, x


@expects("connected")
def through_a_function_whose_gradient_needs_its_values():
    @tf.function
    def squared(x):
        return x * 2.0, x * x

    x = tf.Variable(3.0)
    with tf.GradientTape(persistent=True) as tape:
        y = squared(x)[1]
    return tape, y, x


@expects("connected")
def an_intermediate_value_as_the_source():
    x = tf.Variable(3.0)
    with tf.GradientTape(persistent=True) as tape:
        z = x * x
        y = z * z
    return tape, y, z


@expects("connected")
def the_target_itself():
    x = tf.constant(3.0)
    with tf.GradientTape(persistent=True) as tape:
        pass
    return tape, x, x


@pytest.mark.parametrize(("program", "code", "op", "certain"), PROGRAMS)
def test_programs(session, program, code, op, certain):
    tape, target, source = program()
    explanation = tape.explain(target, source)
    assert (explanation.code, explanation.op, explanation.certain) == (code, op, certain), explanation
    if op is not None and "# here" in inspect.getsource(program):
        assert explanation.where.endswith(f"test_explain.py:{line_of(program, 'here')}, in {program.__name__}"), (
            explanation
        )
    if explanation.outcome is not Outcome.ERROR and tape._tape is not None:  # explaining has used up nothing
        gradients = tape.gradient(target, source)
        assert (gradients is None) == (explanation.outcome is Outcome.NONE), explanation
        if gradients is not None and explanation.outcome in NUMERIC:
            array = np.asarray(gradients.numpy())
            assert np.isfinite(array).all() == (explanation.outcome is Outcome.ZERO)
            assert not array.any() or explanation.outcome is Outcome.NOT_FINITE
        again = tape.explain(target, source)
        if explanation.outcome is Outcome.NONE:  # structure stays when a tape has answered
            assert again == explanation


# ----------------------------------------------------------------------------------------------------------- questions
def test_the_answer_has_the_structure_of_the_sources(session):
    a, b, c = tf.Variable(1.0), tf.Variable(2.0), tf.constant(3.0)
    with tf.GradientTape(persistent=True) as tape:
        y, z = a * tf.round(b), c * a
    explanation = tape.explain({"y": y, "z": z}, {"list": [a, b], "one": c})
    assert explanation["list"][0].code == "connected"
    assert [explanation["list"][1].code, explanation["one"].code] == ["non_differentiable_op", "not_watched"]


def test_many_sources_in_one_question_keep_their_own_reasons(session):
    a, b, c, d = (tf.Variable([1.0, 4.0]) for _ in range(4))
    with tf.GradientTape(persistent=True) as tape:
        y = tf.reduce_sum(a * 0.0) + tf.reduce_sum(tf.nn.relu(b - 9.0)) + tf.reduce_sum(tf.sqrt(c - 1.0))
        y = y + tf.reduce_sum(d - d * 0.5) + tf.reduce_sum(d * 0.5) + tf.reduce_sum(d * -2.0)
    codes = [item.code for item in tape.explain(y, [a, b, c, d, a])]
    assert codes == ["zero_factor", "saturated", "infinite_derivative", "connected", "zero_factor"]
    assert codes == [tape.explain(y, item).code for item in (a, b, c, d, a)]


@pytest.mark.parametrize("product", [tf.reduce_prod, lambda x: tf.math.cumprod(x)[-1]])
def test_a_product_with_two_zeros_among_its_elements(session, product):
    x = tf.Variable([2.0, 0.0, 0.0, 3.0])
    with tf.GradientTape(persistent=True) as tape:
        y = product(x)
    explanation = tape.explain(y, x)
    assert explanation.code == "zero_factor"
    assert "multiplies each element of input 'x' by others of it that are zero" in explanation.message


def test_a_sparse_source_and_a_sparse_target(session):
    table = tf.Variable(tf.ones([4, 2]))
    with tf.GradientTape(persistent=True) as tape:
        y = tf.reduce_sum(tf.gather(table, [1, 1]) * 0.0)
    slices = tape.gradient(y, table)
    assert isinstance(slices, tf.IndexedSlices)
    assert tape.explain(y, table).code == "zero_factor"
    assert tape.explain(slices, table).code == "no_outer_tape"


def test_a_none_survives_the_release_of_everything_between(session):
    x = tf.Variable(2.0)
    with tf.GradientTape() as tape:
        y = x * 2.0
        for _ in range(5):
            y = tf.round(y) * 3.0
    assert tape.gradient(y, x) is None
    gc.collect()
    tf.sync()
    explanation = tape.explain(y, x)
    assert (explanation.code, explanation.op, explanation.length) == ("non_differentiable_op", "round", 12)
    assert [step.op for step in explanation.path[:3]] == ["mul", "round", "mul"]
    assert [step.cut for step in explanation.path[:3]] == [False, True, False]


def test_a_custom_gradient_is_not_called_for_an_explanation(session):
    calls = []

    @tf.custom_gradient
    def f(a, b):
        def grad(dy):
            calls.append(dy)
            return dy * 0.0, None

        return a * b, grad

    x, w = tf.Variable(2.0), tf.Variable(3.0)
    with tf.GradientTape() as tape:
        y = f(x, w)
    first = tape.explain(y, [x, w])
    assert [item.code for item in first] == ["connected", "connected"]
    assert "gradient function" in first[0].notes[0]
    assert not calls
    tape.gradient(y, [x, w])
    assert len(calls) == 1
    assert [item.code for item in tape.explain(y, [x, w])] == ["numbers_gone", "custom_none"]


def test_what_is_wrong_before_a_custom_gradient_is_found_without_calling_it(session):
    @tf.custom_gradient
    def f(a):
        return a * 2.0, lambda dy: dy * 3.0

    x = tf.Variable([0.0, 4.0])
    with tf.GradientTape(persistent=True) as tape:
        y = tf.reduce_sum(tf.sqrt(f(x)))
        z = tf.reduce_sum(tf.nn.relu(f(x) - 100.0))
        w = tf.reduce_sum(tf.sqrt(x)) + tf.stop_gradient(tf.reduce_sum(f(x)))
    assert tape.explain(y, x).code == "infinite_derivative"
    explanation = tape.explain(z, x)
    assert (explanation.code, explanation.op, explanation.certain) == ("saturated", "relu", False)
    assert tape.explain(w, x).code == "infinite_derivative"  # no custom gradient on this way


def test_a_tape_can_be_asked_while_it_records_and_after_a_lookup_error(session):
    x = tf.Variable([[[1.0, 2.0, 3.0]]])
    with tf.GradientTape() as tape:
        y = tf.reduce_sum(tf.image.adjust_contrast(x, 2.0))
        during = tape.explain(y, x)
        z = tf.reduce_sum(x * 2.0)
    assert during.code == "no_gradient_registered"
    with pytest.raises(LookupError):
        tape.gradient(y, x)
    assert tape.explain(y, x) == during
    assert tape.explain(z, x).code == "numbers_gone"


def test_what_another_thread_did_is_reported_with_its_line(session):
    x, result = tf.Variable(2.0), []

    def work():
        result.append(x * x)  # here

    with tf.GradientTape() as tape:
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        y = result[0] + 1.0
    explanation = tape.explain(y, x)
    assert explanation.code == "other_context"
    assert f"test_explain.py:{line_of(work, 'here')}, in work" in explanation.where


def test_a_long_way_shows_its_two_ends(session):
    x = tf.Variable(2.0)
    with tf.GradientTape() as tape:
        y = tf.round(x)
        for _ in range(300):
            y = y * 1.01
    explanation = tape.explain(y, x)
    assert (explanation.code, explanation.op, explanation.length, len(explanation.path)) == (
        "non_differentiable_op",
        "round",
        302,
        40,
    )
    assert "… 262 more …" in str(explanation)


def test_a_backward_pass_that_fails_is_reported(session):
    x = tf.Variable([[1.0, 2.0], [2.0, 4.0]])
    with tf.GradientTape(persistent=True) as tape:
        y = tf.linalg.det(x)
    explanation = tape.explain(y, x)
    assert explanation.code == "connected"
    assert "the backward pass fails" in explanation.notes[0]


def test_how_it_looks(session):
    x = tf.Variable(2.0, name="<x>")
    with tf.GradientTape() as tape:
        y = tf.round(x)
    explanation = tape.explain(y, x)
    assert str(explanation).splitlines()[0].endswith("[non_differentiable_op]")
    assert repr(explanation).startswith("<Explanation non_differentiable_op: op 'round'")
    assert "read &lt;x&gt;:0" in explanation._repr_html_()


def test_no_line_is_reported_where_none_may_be(session, monkeypatch):
    monkeypatch.setenv("TELETAPE_WHERE", "0")
    x = tf.Variable(2.0)
    with tf.GradientTape() as tape:
        y = tf.constant(tf.round(x * 1.234).numpy())
    explanation = tape.explain(y, x)
    assert explanation.where is None
    assert {step.where for step in explanation.path} == {None}
    assert ".py" not in str(explanation)


def test_a_tape_that_was_never_entered_and_what_is_no_tensor(session):
    x = tf.Variable(2.0)
    with pytest.raises(RuntimeError, match="never entered"):
        tf.GradientTape().explain(x, x)
    with tf.GradientTape() as tape:
        y = x * x
    with pytest.raises(TypeError, match="None to a TensorFlow DType"):
        tape.explain(y, [x, None])
    with pytest.raises(TypeError, match="it has left the program"):
        tape.explain(y.numpy(), x)


def test_a_tensor_of_another_session_is_refused(session):
    x = tf.Variable(2.0)
    with tf.GradientTape() as tape:
        y = tf.round(x)
    use(LocalSession())
    other = tf.Variable(2.0)
    with pytest.raises(tf.errors.InvalidArgumentError, match="another session"):
        tape.explain(y, other)
    use(session)
    assert tape.explain(y, x).code == "non_differentiable_op"


def test_round_trips(server_url):
    with tf.connect(server_url) as session:
        x, z = tf.Variable([1.0, 2.0]), tf.Variable(3.0)
        with tf.GradientTape(persistent=True) as tape:
            y = tf.reduce_sum(tf.nn.relu(-x)) + tf.round(z)
        tf.sync()
        before = session.requests
        assert tape.explain(y, z).code == "non_differentiable_op"
        assert session.requests == before
        assert [item.code for item in tape.explain(y, [x, z])] == ["saturated", "non_differentiable_op"]
        assert session.requests == before + 1
        with tf.GradientTape() as tape:
            y = tf.reduce_sum(x)
        tape.gradient(y, x)
        tf.sync()
        before = session.requests
        assert tape.explain(y, x).code == "numbers_gone"
        assert session.requests == before
    use(LocalSession())


def test_a_failed_op_is_raised_and_not_explained(server_url):
    with tf.connect(server_url):
        x = tf.Variable([1.0, 2.0])
        with tf.GradientTape(persistent=True) as tape:
            y = tf.gather(x, tf.cast(x * 100.0, tf.int32))
        with pytest.raises(tf.errors.InvalidArgumentError):
            tape.explain(y, x)
    use(LocalSession())
