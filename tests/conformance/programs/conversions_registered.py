"""A program's own types as inputs of ops: functions registered for them, in the order of their priority."""

from conformance.probes import message, raises
from conformance.program import program


def _registered(tf, priorities=(100,)):
    """A type with a value, and a function for each priority that makes a tensor of it."""

    class Length:
        def __init__(self, metres):
            self.metres = metres

    calls = []
    for priority in priorities:

        def conversion(value, dtype=None, name=None, as_ref=False, priority=priority):
            calls.append((priority, None if dtype is None else dtype.name, as_ref))
            return tf.convert_to_tensor(value.metres, dtype=dtype, name=name)

        tf.register_tensor_conversion_function(Length, conversion, priority)
    return Length, calls


@program()
def ops_take_objects_of_a_registered_type(tf, np):
    length, _ = _registered(tf)
    x = length(2.5)
    single = tf.constant(1.0)
    return [
        tf.convert_to_tensor(x),
        tf.convert_to_tensor(x, tf.float64),
        tf.convert_to_tensor(x, dtype_hint=tf.float64),
        tf.add(x, 1.0),
        single + x,
        tf.maximum(x, 3.0),
        tf.sin(x),
        tf.cast(x, tf.int32),
        tf.reduce_sum(x),
        tf.reshape(x, [1]),
        tf.Variable(x),
        tf.function(lambda: tf.square(x))(),
        tf.is_tensor(x),
    ]


@program()
def derived_types_are_converted_too(tf, np):
    length, _ = _registered(tf)

    class Depth(length):
        pass

    x = tf.Variable(3.0)
    with tf.GradientTape() as tape:
        y = x * Depth(4.0)
    return [y, tape.gradient(y, x)]


@program()
def the_smallest_priority_is_called_first(tf, np):
    length, calls = _registered(tf, (100, 50, 100))
    value = tf.convert_to_tensor(length(1.0), tf.float32)
    return [value, [list(entry) for entry in calls]]


@program()
def a_function_may_leave_the_object_to_the_next(tf, np):
    length, calls = _registered(tf)
    tf.register_tensor_conversion_function(length, lambda *_, **__: NotImplemented, 10)
    return [tf.convert_to_tensor(length(1.0)), len(calls)]


@program()
def a_function_after_the_one_built_in_is_not_called(tf, np):
    length, calls = _registered(tf, (300,))
    return [raises(lambda: tf.convert_to_tensor(length(1.0))), len(calls)]


@program()
def what_is_no_type_or_function_is_refused(tf, np):
    return [
        message(lambda: tf.register_tensor_conversion_function(1, lambda *_, **__: 0)),
        message(lambda: tf.register_tensor_conversion_function(int, lambda *_, **__: 0)),
        message(lambda: tf.register_tensor_conversion_function((str, float), lambda *_, **__: 0)),
        message(lambda: tf.register_tensor_conversion_function(np.ndarray, lambda *_, **__: 0)),
        message(lambda: tf.register_tensor_conversion_function(dict, "no function")),
    ]


@program()
def a_tensor_of_another_dtype_is_refused(tf, np):
    class Count:
        pass

    class Nothing:
        pass

    tf.register_tensor_conversion_function(Count, lambda *_, **__: tf.constant(7))
    tf.register_tensor_conversion_function(Nothing, lambda *_, **__: 7)
    return [
        raises(lambda: tf.convert_to_tensor(Count(), tf.float32), "requested = float32, actual = int32"),
        raises(lambda: tf.convert_to_tensor(Nothing())),
        tf.convert_to_tensor(Count()),
    ]
