"""Arrays as the message TensorProto: its fields, its bytes, and the array that is made of it again."""

from conformance.probes import message, raises
from conformance.program import program


def _proto(tf, values, **arguments):
    proto = tf.make_tensor_proto(values, **arguments)
    return [str(proto), proto.SerializeToString().hex(), tf.make_ndarray(proto)]


@program()
def python_values_have_the_dtypes_of_tensors(tf, np):
    values = [1, 1.5, True, "a", 1j, 2**40, [1, 2], [[1.0, 2.0]], ["a", "b"], [True, False], [1j, 2], []]
    return [_proto(tf, value) for value in values]


@program()
def every_dtype_has_its_field(tf, np):
    names = (
        "float16 bfloat16 float32 float64 complex64 complex128 int8 int16 int32 int64 uint8 uint16 uint32 uint64"
    ).split()
    return {name: [_proto(tf, 3, dtype=name), _proto(tf, [3, 4], dtype=name)] for name in names}


@program()
def arrays_keep_their_dtype(tf, np):
    arrays = [np.array([1, -2], "int8"), np.float64(2.0), np.zeros((0, 2)), np.array(["a", "b"]), np.array([-1, 300])]
    return [_proto(tf, array) for array in [*arrays, tf.constant([[1.0, 2.0]])]]


@program()
def the_last_element_fills_a_larger_shape(tf, np):
    return [
        _proto(tf, 5, shape=[2, 2]),
        _proto(tf, [1, 2], shape=[3]),
        _proto(tf, [1, 2, 3, 4], shape=[2, 2]),
        _proto(tf, 1.5, shape=[2], allow_broadcast=True),
        _proto(tf, [1, 2], shape=[2], verify_shape=True),
    ]


@program()
def another_shape_or_dtype_is_refused(tf, np):
    make = tf.make_tensor_proto
    return [
        message(lambda: make([1, 2], shape=[1])),
        message(lambda: make([1, 2], shape=[1, 2], verify_shape=True)),
        message(lambda: make([1, 2], shape=[3], allow_broadcast=True)),
        message(lambda: make([1, 2], shape=[3], allow_broadcast=True, verify_shape=True)),
        message(lambda: make(None)),
        raises(lambda: make([1.5, 2], dtype=tf.int32)),
        raises(lambda: make("a", dtype=tf.int32)),
        raises(lambda: make([[1], [1, 2]])),
        raises(lambda: tf.make_ndarray(1)),
    ]


@program()
def the_bytes_are_a_serialized_tensor(tf, np):
    cases = [(3, tf.int32), (-1.5, tf.float16), ([1, -2], tf.int64), (["a", "b"], tf.string), (1j, tf.complex64)]
    return [tf.io.parse_tensor(tf.make_tensor_proto(value, dtype).SerializeToString(), dtype) for value, dtype in cases]
