"""AutoGraph: what a tf.function is refused for, and in which words."""

from conformance.probes import raises
from conformance.program import program


@program()
def a_variable_in_one_branch_only(tf, np):
    @tf.function
    def f(x):
        if x > 0.0:
            y = x
        return y

    @tf.function
    def g(x):
        if x > 0.0:
            pass
        else:
            y = x
        return y

    x = tf.constant(1.0)
    return [
        raises(lambda: f(x), containing="'y' must also be initialized in the else branch"),
        raises(lambda: g(x), containing="'y' must also be initialized in the main branch"),
    ]


@program()
def a_return_in_one_branch_only(tf, np):
    @tf.function
    def f(x):
        if x > 0.0:
            return x

    return raises(lambda: f(tf.constant(1.0)), containing="must also have a return statement")


@program()
def branches_of_other_dtypes(tf, np):
    @tf.function
    def f(x):
        if x > 0.0:
            y = 1
        else:
            y = 1.0
        return y

    return raises(lambda: f(tf.constant(1.0)), containing="'y' has dtype int32 in the main branch")


@program()
def branches_of_other_structures(tf, np):
    @tf.function
    def f(x):
        if x > 0.0:
            y = (x, x)
        else:
            y = x
        return y

    return raises(lambda: f(tf.constant(1.0)), containing="'y' must have the same nested structure")


@program()
def none_in_a_branch(tf, np):
    @tf.function
    def f(x):
        y = None
        if x > 0.0:
            y = x
        return y

    return raises(lambda: f(tf.constant(1.0)))


@program()
def a_condition_that_is_no_bool(tf, np):
    @tf.function
    def f(x):
        if x:
            return x
        return -x

    @tf.function
    def g(x):
        while x:
            x = x - 1
        return x

    return [
        raises(lambda: f(tf.constant(1.0)), containing="expected to be `tf.bool` scalar"),
        raises(lambda: g(tf.constant(1)), containing="expected to be `tf.bool` scalar"),
    ]


@program()
def a_condition_of_several_elements(tf, np):
    @tf.function
    def f(x):
        if x > 0.0:
            return x
        return -x

    return raises(lambda: f(tf.constant([1.0, 2.0])), containing="expected to be `tf.bool` scalar")


@program()
def a_loop_variable_that_changes_its_dtype(tf, np):
    @tf.function
    def g(n):
        s = 0
        while n > 0:
            s = tf.constant(1.5)
            n -= 1
        return s

    return raises(lambda: g(tf.constant(2)), containing="'s' has dtype int32 before the loop, but dtype float32")


@program()
def a_loop_variable_that_changes_its_shape(tf, np):
    @tf.function
    def f(x):
        for _ in tf.range(3):
            x = tf.concat([x, x], 0)
        return x

    return raises(lambda: f(tf.constant([1.0])), containing="'x' has shape (1,) before the loop, but shape (2,)")


@program()
def a_loop_variable_that_is_none(tf, np):
    @tf.function
    def f(x):
        y = None
        for _ in tf.range(3):
            if y is not None:
                x = x + 1.0
        return x

    @tf.function
    def g(x):
        y = x
        for _ in tf.range(3):
            y = None
        return y

    return [f(tf.constant(1.0)), raises(lambda: g(tf.constant(1.0)))]


@program()
def a_loop_variable_that_changes_its_structure(tf, np):
    @tf.function
    def f(x):
        y = x
        for _ in tf.range(3):
            y = (x, x)
        return y

    return raises(lambda: f(tf.constant(1.0)), containing="'y' does not have the same nested structure")


@program()
def a_variable_used_before_it_has_a_value(tf, np):
    @tf.function
    def f(x):
        for _ in tf.range(3):
            y = y + x  # noqa: F821
        return y

    return raises(lambda: f(tf.constant(1.0)), containing="'y' must be defined before the loop")


@program()
def a_loop_that_must_run_once(tf, np):
    @tf.function
    def f(n):
        for i in tf.range(n):
            y = i * 2
        return y

    return [
        f(tf.constant(2)),
        raises(lambda: f(tf.constant(0)).numpy(), containing="loop must iterate at least once to initialize y"),
    ]


@program()
def tensor_conditions_that_leave_python_loops(tf, np):
    @tf.function
    def f(x):
        for i in range(5):
            if x > 3.0:
                break
            x = x + 1.0
        return x

    @tf.function
    def g(x):
        while True:
            if x > 3.0:
                break
            x = x + 1.0
        return x

    return [raises(lambda: f(tf.constant(1.0))), raises(lambda: g(tf.constant(1.0)))]


@program()
def a_failing_assertion_in_a_branch(tf, np):
    @tf.function
    def f(x):
        if x > 0.0:
            tf.debugging.assert_less(x, 10.0)
            x = x * 2.0
        return x

    return [
        f(tf.constant(3.0)),
        f(tf.constant(-30.0)),
        raises(lambda: f(tf.constant(30.0)).numpy()),
    ]
