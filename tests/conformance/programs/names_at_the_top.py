"""Names of `tf` itself that few programs use: other names of ops, and forms of them with more arguments."""

from conformance.probes import derivatives, message, raises
from conformance.program import program


@program()
def eigenvalues(tf, np):
    matrix = tf.constant([[2.0, 0.0], [0.0, 3.0]])
    values, vectors = tf.eig(matrix)
    return [tf.math.real(values), tf.abs(vectors), tf.math.real(tf.eigvals(matrix))]


@program()
def general_convolutions(tf, np):
    planes = np.arange(18, dtype=np.float32).reshape(1, 3, 3, 2) / 10
    volumes = np.arange(27, dtype=np.float32).reshape(1, 3, 3, 3, 1) / 10
    flat = np.linspace(-1, 1, 16, dtype=np.float32).reshape(2, 2, 2, 2)
    cube = np.linspace(-1, 1, 8, dtype=np.float32).reshape(2, 2, 2, 1, 1)
    ones = [1, 1, 1, 1]
    return [
        tf.conv(planes, flat, ones, "VALID"),
        tf.conv(planes, flat, [1, 2, 1, 1], "SAME"),
        tf.conv(planes, flat, ones, "VALID", dilations=[1, 2, 2, 1]),
        tf.conv(planes, flat, ones, "EXPLICIT", [0, 0, 1, 0, 0, 2, 0, 0]),
        tf.conv(volumes, cube, [1, 1, 2, 1, 1], "SAME"),
        tf.conv(planes.reshape(1, 1, 3, 3, 2), flat, ones, "VALID", batch_dims=2),
    ]


@program()
def general_convolutions_of_shapes_that_do_not_fit_are_refused(tf, np):
    image, filters = np.ones((1, 3, 3, 1), np.float32), np.ones((2, 2, 2, 1), np.float32)
    return [
        raises(lambda: tf.conv(image, filters, [1, 1, 1, 1], "VALID").numpy()),
        raises(lambda: tf.conv(image[0], filters[:, :, :1], [1, 1, 1, 1], "VALID").numpy()),
        raises(lambda: tf.conv(image, filters[:, :, :1], [1, 1, 1, 1], "VALID", data_format="NHWC").numpy()),
    ]


@program()
def other_names_of_identity_and_stack(tf, np):
    joined = tf.function(lambda: tf.parallel_stack([[1, 2], [3, 4]]))()
    return [tf.guarantee_const([1.0, 2.0]), joined, message(lambda: tf.parallel_stack([[1, 2], [3, 4]]))]


@program()
def fill_takes_a_name_before_the_layout(tf, np):
    return [
        tf.fill([2], 1, "filled"),
        tf.fill(dims=[1, 2], value="a", name="filled", layout=None),
        derivatives(tf, lambda x: tf.fill([2, 3], x), 2.0),
    ]


@program()
def ones_of_strings_are_refused(tf, np):
    return [message(lambda: tf.ones([1], tf.string)), tf.zeros([1], tf.string)]


@program()
def the_specs_of_values(tf, np):
    values = [tf.constant([1.0, 2.0]), 1, 1.5, "a", np.zeros((2, 3)), [1, 2], [[1.0]]]
    specs = [tf.type_spec_from_value(value) for value in values]
    dataset = tf.type_spec_from_value(tf.data.Dataset.from_tensors([1, 2]))
    return [
        [repr(spec) for spec in specs],
        isinstance(dataset, tf.data.DatasetSpec),
        raises(lambda: tf.type_spec_from_value(object()), "of unsupported type"),
    ]
