"""Lists with NumPy's numbers and arrays in them, other sequences, arrays of odd kinds as tensors: dtype and values."""

from collections import UserList, deque

from conformance.probes import raises
from conformance.program import program


def _each(tf, values, convert):
    def answer(value):
        try:
            return convert(value)
        except (TypeError, ValueError) as error:
            return type(error).__name__

    return [answer(value) for value in values]


def _numbers(np):
    return [
        [np.int64(1), np.int64(2)],
        [np.int64(1), 2.5],
        [2.5, np.int64(1)],
        [2, np.float64(1.5)],
        [np.float64(1.5), 2],
        [np.float32(1.5), np.float64(2)],
        [np.float16(1), np.float16(2)],
        [np.int8(1), np.int8(2)],
        [np.uint64(1), 2],
        [np.int64(2**40), 1],
        [np.complex64(1j), 1],
        [np.bool_(True), False],
        [True, np.bool_(False)],
        [np.bool_(True), 1],
        [True, 1],
        [1, True],
        [True, 1.5],
        [1.0, 1j],
        [1j, 1.0],
        [2**40, 1.5],
        [np.str_("a"), b"b"],
        [1, "a"],
    ]


def _arrays(np):
    return [
        [np.array([1, 2]), np.array([3, 4])],
        [np.array([1.0, 2.0]), np.array([3.0, 4.0])],
        [np.array([1.0, 2.0], np.float32), [3, 4]],
        [[2], np.array([1.5])],
        [np.array([1, 2], np.int8), np.array([3, 4], np.int8)],
        [np.array([True, False]), [True, True]],
        [np.array(1), 2],
        [np.array(["a"]), ["b"]],
        [range(2), range(2)],
        np.array([1, 2], object),
        np.array([1, "a"], object),
        np.array(["a", b"b"], object),
        np.array([1.5], np.longdouble),
        np.array(["2020"], "datetime64[Y]"),
        np.array(["a", "bc"]),
    ]


@program()
def the_first_element_decides_the_dtype(tf, np):
    return _each(tf, _numbers(np) + _arrays(np), tf.constant)


@program()
def a_dtype_that_is_asked_for(tf, np):
    names = ("float32", "float16", "int32", "int64", "uint8", "complex64", "bool", "string")
    return {
        name: _each(tf, _numbers(np) + _arrays(np), lambda value, name=name: tf.constant(value, name)) for name in names
    }


@program()
def a_dtype_that_is_preferred(tf, np):
    values = _numbers(np) + _arrays(np)
    return _each(tf, values, lambda value: tf.convert_to_tensor(value, dtype_hint=tf.float32))


@program()
def functions_take_such_lists(tf, np):
    pair = [np.array([1, 2]), np.array([3, 4])]
    return [
        tf.reduce_sum(pair),
        tf.cast([np.int64(1), 2.5], tf.int32),
        tf.Variable([np.int64(1), 2.5]),
        tf.add([np.float64(1.0), 2.0], tf.constant([1.0, 2.0], tf.float64)),
        tf.function(lambda: tf.identity([np.int64(1), 2.5]))(),
    ]


@program()
def other_sequences(tf, np):
    sequences = [deque([1, 2]), UserList([1.5, 2]), bytearray(b"ab"), memoryview(b"ab"), {1: 2}, {1, 2}, {1: 2}.keys()]
    return [_each(tf, sequences, tf.constant), _each(tf, sequences, lambda value: tf.constant(value, tf.float32))]


@program()
def other_sequences_beside_a_tensor(tf, np):
    return [
        tf.constant([1.0, 2.0]) + deque([1, 2]),
        tf.constant([1.0, 2.0]) * UserList([3, 4]),
        tf.constant([1, 2]) + tf.TensorShape([2, 3]),
        tf.constant([1.0, 2.0]) - memoryview(b"ab"),
    ]


@program()
def an_object_that_answers_for_itself(tf, np):
    class Answers:
        def __radd__(self, other):
            return "added"

    class Declines:
        def __radd__(self, other):
            return NotImplemented

    return [
        tf.constant(1.0) + Answers(),
        raises(lambda: tf.constant(1.0) + Declines()),
        raises(lambda: tf.constant(1.0) * Answers()),
    ]


@program()
def numbers_beyond_the_range(tf, np):
    values = [1e40, [1.0, 1e40], [float("inf"), 1.0], np.float64(1e40), 2**63, -(2**31) - 1]
    return [_each(tf, values, tf.constant), _each(tf, values[:4], lambda value: tf.constant(value, tf.float32))]


@program()
def truths_are_numbers_of_some_dtypes(tf, np):
    floating = "float16 bfloat16 float32 float64 complex64 complex128".split()
    names = [*floating, *"int8 int16 int32 int64 uint8 uint16 uint32 uint64".split()]
    return {name: _each(tf, [True, [True, False]], lambda value, name=name: tf.constant(value, name)) for name in names}
