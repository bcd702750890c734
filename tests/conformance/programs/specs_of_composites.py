"""Specs of sparse tensors, slices and TensorArrays: alone, compared, as signatures, and of what functions return."""

from conformance.probes import raises
from conformance.program import program


def sparse_of(tf, rows):
    return tf.sparse.from_dense(tf.constant(rows))


def slices_of(tf, dense_shape=None):
    return tf.IndexedSlices(tf.ones([2, 3]), tf.constant([0, 1]), dense_shape)


@program()
def specs_and_what_they_say(tf, np):
    sparse = tf.SparseTensorSpec([2, None])
    slices = tf.IndexedSlicesSpec([4, 3], indices_dtype=tf.int32, indices_shape=[2])
    arrays = tf.TensorArraySpec([2], tf.int64, dynamic_size=True)
    return [
        [repr(spec) for spec in (sparse, slices, arrays, tf.SparseTensorSpec(), tf.IndexedSlicesSpec())],
        [sparse.shape, sparse.dtype, sparse == tf.SparseTensorSpec([2, None], tf.float32), sparse == slices],
        [spec.value_type.__name__ for spec in (sparse, slices, tf.TensorSpec([2]), tf.RaggedTensorSpec([2, None]))],
        len({sparse, tf.SparseTensorSpec([2, None]), tf.SparseTensorSpec([2, 3])}),
        tf.SparseTensorSpec() == tf.SparseTensorSpec(None),
        raises(lambda: tf.IndexedSlicesSpec(indices_shape=[2, 2])),
        raises(lambda: slices.shape, "has no attribute 'shape'"),
    ]


@program()
def specs_of_values(tf, np):
    arrays = tf.TensorArray(tf.float32, 2, dynamic_size=True, element_shape=[2])
    values = [sparse_of(tf, [[0.0, 2.0]]), slices_of(tf), slices_of(tf, tf.constant([4, 3])), arrays]
    specs = [tf.type_spec_from_value(value) for value in values]
    return [
        [repr(spec) for spec in specs],
        [spec.is_compatible_with(value) for spec in specs[:3] for value in values[:3]],
        [spec.is_compatible_with(tf.constant(1.0)) for spec in specs],
        tf.SparseTensorSpec([None, 2]).is_compatible_with(values[0]),
        tf.SparseTensorSpec([None, 2], tf.int32).is_compatible_with(values[0]),
        repr(tf.nest.map_structure(tf.type_spec_from_value, {"a": values[0], "b": [1.0]})),
        raises(lambda: tf.SparseTensorSpec.from_value(1.0)),
    ]


@program()
def specs_compared(tf, np):
    general, one, other = (tf.SparseTensorSpec(shape) for shape in ([None, 2], [3, 2], [4, 2]))
    dense = tf.TensorSpec([2, 3], name="a")
    ragged = tf.RaggedTensorSpec([2, None])
    return [
        [first.is_subtype_of(second) for first in (general, one) for second in (general, one, dense)],
        repr(one.most_specific_common_supertype([other])),
        repr(one.most_specific_compatible_type(other)),
        one.most_specific_common_supertype([tf.SparseTensorSpec([3, 2], tf.int32)]),
        raises(lambda: one.most_specific_compatible_type(dense)),
        repr(dense.most_specific_common_supertype([tf.TensorSpec([2, 4], name="a")])),
        dense.most_specific_common_supertype([tf.TensorSpec([2, 3], name="b")]),
        repr(ragged.most_specific_common_supertype([tf.RaggedTensorSpec([3, None])])),
        ragged.is_subtype_of(tf.RaggedTensorSpec([None, None])),
    ]


@program()
def a_signature_of_sparse_tensors(tf, np):
    @tf.function(input_signature=[tf.SparseTensorSpec([None, None])])
    def doubled(x):
        return tf.sparse.to_dense(x) * 2.0

    return [
        doubled(sparse_of(tf, [[0.0, 2.0], [3.0, 0.0]])),
        doubled(sparse_of(tf, [[0.0, 2.0, 1.0]])),
        doubled.experimental_get_tracing_count(),
        raises(lambda: doubled(tf.ones([2, 2]))),
        raises(lambda: doubled(sparse_of(tf, [[1, 0]]))),
        raises(lambda: doubled(sparse_of(tf, [1.0, 0.0]))),
    ]


@program()
def concrete_functions_of_specs(tf, np):
    sum_of = tf.function(lambda x: tf.sparse.reduce_sum(x)).get_concrete_function(tf.SparseTensorSpec([2, 2]))
    dense = tf.function(lambda x: tf.sparse.to_dense(x)).get_concrete_function(tf.SparseTensorSpec([None, None]))
    rows = tf.function(lambda x: tf.convert_to_tensor(x)).get_concrete_function(
        tf.IndexedSlicesSpec([4, 3], indices_dtype=tf.int32, dense_shape_dtype=tf.int32)
    )
    sparse = sparse_of(tf, [[0.0, 2.0], [3.0, 0.0]])
    return [
        sum_of(sparse),
        repr(sum_of.structured_input_signature[0][0]),
        [dense(sparse), dense.output_shapes],
        rows(slices_of(tf, tf.constant([4, 3]))),
    ]
