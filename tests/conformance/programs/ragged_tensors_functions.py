"""Functions of tensors given ragged ones: elementwise, reductions, joining, gathering, strings, structures."""

from conformance.probes import raises
from conformance.program import program

ROWS = [[1.0, -2.0], [], [3.0]]
NESTED = [[[1.0, 2.0], [3.0]], [], [[4.0]]]


def both(tf):
    return tf.ragged.constant(ROWS), tf.ragged.constant(NESTED)


@program()
def operators(tf, np):
    x, y = both(tf)
    i = tf.ragged.constant([[5, 2], [], [-3]])
    b = tf.ragged.constant([[True, False], [], [True]])
    return [
        [x + 1.0, 1.0 + x, x - x, 2.0 - x, x * x, x / 2.0, 1.0 / x, x // 2.0, x % 2.0, x**2.0, 2.0**x],
        [-x, abs(x), y + y, y * 2.0, -y, i // 2, i % 3, i / 2, 7 // i],
        [x < 0.0, x <= x, x > 0.0, x >= 1.0, x == 1.0, x != 1.0, x == x],
        [~b, b & True, b | b, b ^ b],
        [tf.constant(2.0) * x, tf.constant(2.0) - x, x + np.float32(1.0), tf.Variable(2.0) * x],
    ]


@program()
def broadcasting(tf, np):
    x, y = both(tf)
    inner = tf.ragged.constant([[[1.0, 2.0]], [[3.0, 4.0], [5.0, 6.0]]], ragged_rank=1)
    column, row, columns = [[10.0], [20.0], [30.0]], [10.0, 20.0], [[[10.0]], [[20.0]]]
    uniform = tf.RaggedTensor.from_uniform_row_length(tf.ragged.constant([[1.0], [2.0, 3.0], [4.0]]), 1)
    return [
        x + column,
        column + x,
        x + tf.constant([[10.0]]),
        x + tf.constant([10.0]),
        y + tf.constant([[[10.0]], [[20.0]], [[30.0]]]),
        y + tf.constant([[10.0]]),
        y + tf.ragged.constant([[[10.0], [20.0]], [], [[30.0]]], ragged_rank=1),
        inner + row,
        inner + columns,
        inner * tf.ragged.constant([[[1.0]], [[2.0], [3.0]]], ragged_rank=1),
        uniform + tf.ragged.constant([[[1.0]], [[2.0, 3.0]], [[4.0]]]),
        tf.ragged.constant([[1.0], [2.0], [3.0]]) + column,
    ]


@program()
def rows_that_do_not_broadcast(tf, np):
    x, _ = both(tf)
    return [
        raises(lambda: x + tf.ragged.constant([[1.0], [], [3.0]])),
        raises(lambda: x + tf.constant([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])),
        raises(lambda: x + tf.constant([[1.0], [2.0]])),
        raises(lambda: x + tf.ragged.constant([[1.0, 2.0], [3.0]])),
    ]


@program()
def functions_of_each_element(tf, np):
    x, y = both(tf)
    z = tf.ragged.constant([[0.5, 0.25], [], [0.125]])
    unary = [
        tf.sqrt,
        tf.exp,
        tf.math.log,
        tf.sin,
        tf.tanh,
        tf.sigmoid,
        tf.square,
        tf.negative,
        tf.math.erf,
        tf.math.lgamma,
    ]
    activations = [tf.nn.relu, tf.nn.elu, tf.nn.selu, tf.nn.silu, tf.nn.gelu, tf.nn.softplus, tf.nn.leaky_relu]
    tests = [tf.math.is_nan, tf.math.is_finite, tf.sign, tf.round, tf.floor, tf.math.ceil, tf.abs]
    return [
        [f(z) for f in unary],
        [f(x) for f in activations],
        [f(x) for f in tests],
        [tf.exp(y), tf.math.log_sigmoid(x), tf.math.reciprocal_no_nan(x), tf.clip_by_value(x, -1.0, 1.0)],
        [tf.cast(x, tf.int32), tf.cast(x, tf.float32), tf.dtypes.saturate_cast(x, tf.int8), tf.identity(x)],
        [tf.zeros_like(x), tf.ones_like(y), tf.ones_like(x, dtype=tf.int32), tf.stop_gradient(x)],
    ]


@program()
def functions_of_two(tf, np):
    x, _ = both(tf)
    z = tf.ragged.constant([[0.5, 0.25], [], [0.125]])
    i = tf.ragged.constant([[5, 2], [], [-3]])
    two = [tf.add, tf.subtract, tf.multiply, tf.divide, tf.maximum, tf.minimum, tf.math.squared_difference, tf.atan2]
    return [
        [f(x, z) for f in two],
        [f(x, 2.0) for f in two],
        [
            tf.math.divide_no_nan(x, tf.zeros_like(x)),
            tf.math.xlogy(z, z),
            tf.pow(z, 2.0),
            tf.math.multiply_no_nan(x, z),
        ],
        [tf.equal(x, z), tf.not_equal(x, 1.0), tf.less(x, z), tf.greater_equal(x, 1.0)],
        [tf.math.floormod(i, 3), tf.math.floordiv(i, 2), tf.truediv(i, 2), tf.bitwise.bitwise_and(i, 1)],
        [tf.logical_and(x > 0.0, z > 0.2), tf.logical_not(x > 0.0), tf.logical_or(x > 0.0, True)],
        [tf.add_n([x, z, x]), tf.nn.sigmoid_cross_entropy_with_logits(labels=z, logits=x)],
        [tf.math.scalar_mul(2.0, x), tf.complex(x, z), tf.math.real(tf.complex(x, z))],
    ]


@program()
def sums_and_extremes(tf, np):
    x, y = both(tf)
    functions = [tf.reduce_sum, tf.reduce_mean, tf.reduce_max, tf.reduce_min, tf.reduce_prod]
    return [
        [f(x) for f in functions],
        [f(x, axis=1) for f in functions],
        [f(x, axis=0) for f in functions],
        [f(x, axis=-1, keepdims=True) for f in functions],
        [f(x, axis=0, keepdims=True) for f in functions],
        [f(x, keepdims=True) for f in functions],
        [f(y, axis=2) for f in functions],
        [f(y, axis=1) for f in functions],
        [f(y, axis=0) for f in functions],
        [f(y, axis=[1, 2]) for f in functions],
        [f(y, axis=[0, -1]) for f in functions],
        [f(y, axis=2, keepdims=True) for f in functions],
        tf.reduce_mean(tf.ragged.constant([[1, 2], [4]]), axis=1),
        raises(lambda: tf.reduce_sum(x, axis=2)),
    ]


@program()
def truths_and_deviations(tf, np):
    x, y = both(tf)
    b = tf.ragged.constant([[True, False], [], [True]])
    return [
        [tf.reduce_any(b, axis=1), tf.reduce_all(b, axis=1), tf.reduce_any(b), tf.reduce_all(b, axis=0)],
        [tf.math.reduce_variance(x, axis=1), tf.math.reduce_std(x, axis=1), tf.math.reduce_variance(x)],
        [tf.math.reduce_variance(y, axis=2), tf.math.reduce_std(y, axis=-1, keepdims=True)],
        tf.reduce_all(tf.ragged.constant([[[True], [False]], [[True]]]), axis=2),
    ]


@program()
def inner_axes_reduced(tf, np):
    inner = tf.ragged.constant([[[1.0, 2.0]], [[3.0, 4.0], [5.0, 6.0]], []], ragged_rank=1, inner_shape=(2,))
    functions = [tf.reduce_sum, tf.reduce_mean, tf.reduce_max]
    return [[f(inner, axis=axis) for axis in (0, 1, 2, -1)] for f in functions]


@program()
def softmax_over_rows(tf, np):
    x, y = both(tf)
    return [tf.nn.softmax(x), tf.nn.softmax(x, axis=1), tf.nn.softmax(y)]


@program()
def running_sums(tf, np):
    x, y = both(tf)
    inner = tf.ragged.constant([[[1.0, 2.0]], [[3.0, 4.0], [5.0, 6.0]]], ragged_rank=1)
    sums = tf.cumsum
    return [
        [sums(x, axis=1), sums(x, axis=1, exclusive=True), sums(x, axis=1, reverse=True), sums(x)],
        [sums(y, axis=2), sums(inner, axis=2), sums(inner, axis=1)],
        sums(x, axis=-1, exclusive=True, reverse=True),
    ]


@program()
def rows_joined(tf, np):
    x, y = both(tf)
    dense = tf.constant([[7.0], [8.0], [9.0]])
    return [
        [tf.concat([x, x], axis=0), tf.concat([x, x], axis=1), tf.concat([x, x], axis=-1), tf.concat([x], axis=0)],
        [tf.concat([x, dense], axis=1), tf.concat([dense, x], axis=0), tf.concat([x, dense, x], axis=1)],
        [tf.concat([y, y], axis=0), tf.concat([y, y], axis=1), tf.concat([y, y], axis=2)],
        raises(lambda: tf.concat([x, y], axis=0)),
        raises(lambda: tf.concat([x, x], axis=2)),
        raises(lambda: tf.concat([x, x[:2]], axis=1)),
    ]


@program()
def rows_stacked(tf, np):
    x, y = both(tf)
    return [
        [tf.stack([x, x]), tf.stack([x, x], axis=1), tf.stack([x, x], axis=2), tf.stack([x, x], axis=-1)],
        [tf.stack([y, y]), tf.stack([y, y], axis=1)],
        tf.stack([x, tf.constant([[7.0], [8.0], [9.0]])]),
    ]


@program()
def axes_added_and_removed(tf, np):
    x, y = both(tf)
    single = tf.ragged.constant([[[1.0], [2.0]], [[3.0]]])
    expanded = [tf.expand_dims(x, axis) for axis in (0, 1, 2, -1)]
    return [
        expanded,
        [each.shape for each in expanded],
        [tf.expand_dims(y, 3), tf.expand_dims(y, 2)],
        [
            tf.squeeze(single, axis=2),
            tf.squeeze(tf.expand_dims(x, 0), axis=0),
            tf.squeeze(tf.expand_dims(x, 1), axis=[1]),
        ],
        raises(lambda: tf.squeeze(x, axis=1), "is not squeezable"),
        raises(lambda: tf.squeeze(x), "Ragged.squeeze must have an axis argument."),
        raises(lambda: tf.expand_dims(x, 4)),
    ]


@program()
def repeated_and_turned(tf, np):
    x, y = both(tf)
    return [
        [tf.tile(x, [2, 1]), tf.tile(x, [1, 2]), tf.tile(x, [2, 3]), tf.tile(x, [0, 1])],
        [tf.tile(y, [1, 1, 2]), tf.tile(y, [1, 2, 1]), tf.tile(y, [2, 2, 2])],
        [tf.reverse(x, [0]), tf.reverse(x, [1]), tf.reverse(x, [0, 1]), tf.reverse(y, [2]), tf.reverse(y, [0, 1])],
        raises(lambda: tf.reverse(x, [2])),
    ]


@program()
def pieces(tf, np):
    x = tf.ragged.constant([[1.0, 2.0], [], [3.0], [4.0, 5.0, 6.0]])
    return [
        tf.split(x, 2),
        tf.split(x, [1, 3]),
        raises(lambda: tf.split(x, 3)),
    ]


@program()
def rows_gathered(tf, np):
    x, y = both(tf)
    table = tf.constant([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    index = tf.ragged.constant([[0, 2], [], [1]])
    return [
        [tf.gather(x, [2, 0]), tf.gather(x, [[2, 0], [1, 1]]), tf.gather(x, 0), tf.gather(y, [0, 0, 2])],
        [tf.gather(table, index), tf.gather(x, index), tf.gather(tf.constant([7, 8, 9]), index)],
        [tf.nn.embedding_lookup(table, index), tf.gather(x, tf.ragged.constant([[0], [2, 2]]))],
        raises(lambda: tf.gather(x, [3])),
    ]


@program()
def elements_gathered(tf, np):
    x, y = both(tf)
    index = tf.ragged.constant([[1, 0, 0], [], [0]])
    dense = tf.constant([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    return [
        [tf.gather(x, index, batch_dims=1), tf.gather(dense, index, batch_dims=1)],
        [tf.gather_nd(x, [[0, 1], [2, 0]]), tf.gather_nd(x, [[0], [2]]), tf.gather_nd(y, [[0, 0, 1], [2, 0, 0]])],
        tf.gather_nd(y, [[0, 1]]),
    ]


@program()
def chosen_where(tf, np):
    x, _ = both(tf)
    condition = x > 0.0
    return [
        [tf.where(condition, x, 0.0), tf.where(condition, x, -x), tf.where(condition, 1.0, tf.zeros_like(x))],
        [tf.where(condition), tf.where(tf.ragged.constant([[[True], []], [[False, True]]]))],
        tf.where(tf.constant([[True], [False], [True]]), x, -x),
    ]


@program()
def sizes_and_ranks(tf, np):
    x, y = both(tf)
    return [tf.size(x), tf.size(y, out_type=tf.int64), tf.rank(x), tf.rank(y), tf.rank(tf.expand_dims(x, 2))]


@program()
def classes_as_numbers(tf, np):
    index = tf.ragged.constant([[0, 2], [], [1]])
    return [
        tf.one_hot(index, 3),
        tf.one_hot(index, depth=2, on_value=5, off_value=-1),
        tf.one_hot(index, 3, dtype=tf.int32),
        raises(lambda: tf.one_hot(index, 3, axis=1)),
    ]


@program()
def dropped_elements(tf, np):
    x = tf.ragged.constant([[1.0, 2.0], [], [3.0, 4.0, 5.0]])
    tf.random.set_seed(3)
    return [
        tf.nn.dropout(x, rate=0.0),
        tf.nn.dropout(x, rate=0.5, seed=7),
        tf.nn.experimental.stateless_dropout(x, rate=0.5, seed=[1, 2]),
        raises(lambda: tf.nn.dropout(x, rate=0.5, noise_shape=[3, 1]), "noise_shape is not supported yet"),
    ]


@program()
def segments_of_rows(tf, np):
    x = tf.ragged.constant([[1.0, 2.0], [], [3.0]])
    ids = tf.ragged.constant([[0, 2], [], [0]])
    return [
        tf.math.unsorted_segment_sum(x, ids, 3),
        tf.math.unsorted_segment_max(x, ids, 3),
        tf.math.unsorted_segment_mean(x, ids, 3),
        tf.dynamic_partition(tf.constant([1, 2, 3]), tf.constant([1, 0, 1]), 2),
    ]


@program()
def products_of_matrices(tf, np):
    a = tf.ragged.constant([[[1.0, 2.0]], [[3.0, 4.0], [5.0, 6.0]]], ragged_rank=1)
    b = tf.constant([[[1.0], [2.0]], [[3.0], [4.0]]])
    return [
        tf.matmul(a, b),
        tf.matmul(a, tf.constant([[[1.0, 2.0]], [[3.0, 4.0]]]), transpose_b=True),
        raises(lambda: tf.matmul(tf.ragged.constant([[1.0], [2.0, 3.0]]), b[0])),
    ]


@program()
def products_of_matrices_of_several_lengths(tf, np):
    ragged = tf.RaggedTensor
    a = ragged.from_row_lengths(tf.constant([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]), [2, 1])
    even = ragged.from_row_lengths(tf.constant([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0], [7.0, 8.0]]), [2, 2])
    narrow = a.with_row_splits_dtype(tf.int32)
    return [
        [tf.matmul(a, a, transpose_a=True), tf.matmul(even, tf.ones([2, 2, 3]), transpose_a=True)],
        [tf.matmul(tf.ones([2, 3, 2]), even), tf.matmul(tf.ones([2, 2, 3]), even, transpose_a=True)],
        [tf.matmul(narrow, tf.ones([2, 2, 3])), tf.matmul(narrow, even)],
        tf.matmul(tf.ones([2, 3, 2]), even.with_row_splits_dtype(tf.int32)),
    ]


@program()
def matrices_that_do_not_fit(tf, np):
    ragged = tf.RaggedTensor
    a = ragged.from_row_lengths(tf.ones([3, 2]), [2, 1])
    even = ragged.from_row_lengths(tf.ones([4, 2]), [2, 2])
    return [
        raises(lambda: tf.matmul(tf.ones([2, 3, 2]), a), "Matrix size-incompatible"),
        raises(lambda: tf.matmul(a, even, transpose_a=True), "Matrix size-incompatible"),
        raises(lambda: tf.matmul(a, tf.ones([2, 2, 3]), transpose_a=True), "Matrix size-incompatible"),
        raises(lambda: tf.matmul(a, tf.ones([2, 3, 3])), "Matrix size-incompatible"),
        raises(lambda: tf.matmul(tf.ones([3, 3, 2]), even), "Dimensions 3 and 2 are not compatible"),
        raises(lambda: tf.matmul(tf.ones([1, 3, 2]), even), "Dimensions 1 and 2 are not compatible"),
    ]


@program()
def exclusive_truths(tf, np):
    flags, numbers = tf.ragged.constant([[True, False], [True]]), tf.ragged.constant([[1, 2], [3]])
    xor, text = tf.math.logical_xor, "was expected to be a bool tensor but is a int32 tensor"
    return [
        [flags ^ flags, flags ^ True, True ^ flags, flags ^ [[True], [False]]],
        [xor(flags, flags), xor(flags, [[True], [False]]), xor(False, flags)],
        raises(lambda: numbers ^ numbers, text),
        raises(lambda: 1 ^ numbers, text),
        raises(lambda: xor(numbers, numbers), text),
    ]


@program()
def structures(tf, np):
    x, y = both(tf)
    nest = tf.nest
    doubled = nest.map_structure(lambda a: a * 2.0, {"x": x, "y": [y]})
    return [
        [nest.flatten([x, 1]), nest.flatten([x, 1], expand_composites=True), nest.flatten(x, expand_composites=True)],
        doubled,
        nest.pack_sequence_as([x, 1], nest.flatten([x, 1], expand_composites=True), expand_composites=True),
        nest.map_structure(tf.identity, [x, y], expand_composites=True),
        nest.is_nested(x),
    ]


@program()
def functions_take_and_return_rows(tf, np):
    x, y = both(tf)

    @tf.function
    def doubled(rows):
        return rows * 2.0

    @tf.function
    def several(rows, scale):
        return {"rows": rows + scale, "means": tf.reduce_mean(rows, axis=1), "sum": tf.reduce_sum(rows)}

    @tf.function
    def dense(rows):
        return rows.to_tensor()

    @tf.function
    def captured():
        return x + 1.0, tf.concat([x, x], axis=1)

    return [doubled(x), doubled(y), several(x, 1.0), dense(x), dense(y), captured(), doubled(x[1:])]


@program()
def branches_of_rows(tf, np):
    x, _ = both(tf)

    @tf.function
    def chosen(flag):
        return tf.cond(flag, lambda: x * 2.0, lambda: x + 1.0)

    return [
        tf.cond(tf.constant(True), lambda: x * 2.0, lambda: x + 1.0),
        chosen(tf.constant(False)),
    ]


@program()
def rows_mapped(tf, np):
    x, _ = both(tf)
    row, numbers = (tf.RaggedTensorSpec([None], dtype, ragged_rank=0) for dtype in (tf.float32, tf.int32))
    scale = tf.constant([1.0, 2.0, 3.0])
    return [
        tf.map_fn(tf.reduce_sum, x, fn_output_signature=tf.float32),
        tf.map_fn(lambda r: r * 2.0, x, fn_output_signature=row),
        tf.map_fn(lambda r: r * 2.0, x),
        tf.map_fn(tf.range, tf.constant([1, 3, 0]), fn_output_signature=numbers),
        tf.map_fn(lambda pair: tf.reduce_sum(pair[0]) + pair[1], (x, scale), fn_output_signature=tf.float32),
    ]


@program()
def nothing_mapped_to_rows(tf, np):
    def mapped(ragged_rank):
        spec = tf.RaggedTensorSpec(None, tf.float32, ragged_rank=ragged_rank)
        return tf.map_fn(lambda row: row, tf.zeros([0, 2]), fn_output_signature=spec)

    return [[mapped(rank).shape.as_list(), mapped(rank)] for rank in (0, 1, 2)]


@program()
def embeddings_of_bounded_norm(tf, np):
    table = tf.constant([[3.0, 4.0], [1.0, 0.0]])
    ids = tf.ragged.constant([[0, 1], [], [1]])
    pairs = tf.RaggedTensor.from_row_lengths([[0, 1], [1, 0]], [1, 1])
    deep = tf.ragged.constant([[[0], [1, 1]], [[1]]])
    look_up = tf.nn.embedding_lookup
    with tf.GradientTape() as tape:
        tape.watch(table)
        rows = look_up(table, ids, max_norm=2.0)
    return [
        [rows, look_up(table, pairs, max_norm=1.0), look_up(tf.ones([2, 2, 2]), deep, max_norm=1.0)],
        tf.convert_to_tensor(tape.gradient(rows, table)),
    ]


@program()
def assertions(tf, np):
    x, _ = both(tf)
    check = tf.debugging
    check.assert_equal(x, x)
    check.assert_less(x, x + 1.0)
    check.assert_near(x, x)
    return [
        raises(lambda: check.assert_equal(x, x + 1.0)),
        raises(lambda: check.assert_greater(x, 0.0)),
        check.check_numerics(x, "message"),
    ]


@program()
def strings(tf, np):
    words = tf.ragged.constant([["A b", "c"], [], ["De"]])
    s = tf.strings
    return [
        [s.lower(words), s.upper(words), s.length(words), s.strip(words), s.substr(words, 0, 1)],
        [s.join([words, "-"]), s.join([words, words], separator="+"), s.regex_replace(words, "[a-z]", ".")],
        [s.reduce_join(words, axis=1), s.reduce_join(words, axis=-1, separator=" "), s.to_hash_bucket_fast(words, 10)],
        [s.as_string(tf.ragged.constant([[1, 2], [3]])), s.to_number(tf.ragged.constant([["1"], ["2.5", "3"]]))],
        [s.regex_full_match(words, "[a-z]"), words == "c"],
    ]


@program()
def strings_divided(tf, np):
    s = tf.strings
    return [
        s.split(["a b c", "", "d"]),
        s.split(["a,b", "c"], sep=","),
        s.split("a b"),
        s.split([["a b", "c"], ["d", "e f"]]),
        s.split(tf.ragged.constant([["a b"], ["c", "d e"]])),
        s.split(["a b c"], maxsplit=1),
        s.bytes_split(["ab", "c"]),
        s.bytes_split(tf.ragged.constant([["ab"], ["c", ""]])),
        s.ngrams(tf.ragged.constant([["a", "b", "c"], ["d"]]), 2),
        s.ngrams(tf.ragged.constant([["a", "b", "c"], ["d"]]), 2, pad_values=("<", ">")),
    ]


@program()
def vocabulary_of_rows(tf, np):
    words = tf.strings.split(["the cat sat", "the dog"])
    table = tf.lookup.StaticHashTable(
        tf.lookup.KeyValueTensorInitializer(["the", "cat", "dog"], tf.constant([1, 2, 3], tf.int64)), 0
    )
    ids = table.lookup(words)
    return [words, ids, ids.to_tensor(), tf.sequence_mask(ids.row_lengths())]


@program()
def shapes_of_rows(tf, np):
    x, y = both(tf)
    inner = tf.ragged.constant([[[1, 2]], [[3, 4], [5, 6]]], ragged_rank=1)
    shape = tf.shape(x)
    return [
        [repr(shape), repr(tf.shape(y)), repr(tf.shape(inner)), shape.rank, shape.num_row_partitions],
        [shape[0], tf.shape(inner)[2], tf.shape(x, out_type=tf.int64)[0], list(shape.static_lengths())],
        raises(lambda: shape[1], "Index 1 is not uniform"),
    ]


@program()
def numbers_counted(tf, np):
    x = tf.ragged.constant([[1, 2, 1], [], [0]])
    count = tf.math.bincount
    return [
        [count(x), count(x, axis=0), count(x, axis=-1, minlength=5), count(x, axis=-1, maxlength=2)],
        count(x, axis=-1, binary_output=True, dtype=tf.float32),
        count(x, weights=tf.ragged.constant([[1.0, 2.0, 3.0], [], [4.0]]), axis=-1),
        count(tf.ragged.constant([[], []], dtype=tf.int32), axis=-1, minlength=2),
    ]


@program()
def written_into_texts(tf, np):
    x, y = both(tf)
    long = tf.ragged.constant([list(range(8)), [1], [2], [3], [4], [5], [6]])
    words = tf.ragged.constant([["a'b"], ["c", "d"]])
    texts = [tf.strings.format("{}", each) for each in (x, y, long, words, tf.ragged.constant([[True], []]))]
    return [*texts, tf.strings.format("{} of {}", (long, x), summarize=1)]


@program()
def loops_over_rows(tf, np):
    x, _ = both(tf)

    @tf.function
    def doubled(rows):
        for _ in tf.range(3):
            rows = rows * 2.0
        return rows

    @tf.function
    def chosen(rows, flag):
        if flag:
            rows = rows + 1.0
        return rows

    @tf.function
    def repeated(rows):
        return tf.while_loop(lambda i, r: i < 3, lambda i, r: (i + 1, r * 2.0), (0, rows))[1]

    eager = tf.while_loop(lambda i, r: i < 2, lambda i, r: (i + 1, r + 1.0), (0, x))
    return [doubled(x), chosen(x, tf.constant(True)), chosen(x, tf.constant(False)), repeated(x), eager[1]]


@program()
def functions_of_specs(tf, np):
    @tf.function(input_signature=[tf.RaggedTensorSpec([None, None], tf.float32)])
    def sums(rows):
        return tf.reduce_sum(rows, axis=1)

    x, y = both(tf)
    return [
        [sums(x), sums(x[1:]), sums(tf.ragged.constant([[5.0]]))],
        raises(lambda: sums(y)),
        raises(lambda: sums(tf.ragged.constant([[1]]))),
    ]


@program()
def concrete_functions_of_specs(tf, np):
    @tf.function
    def more(rows):
        return rows + 1

    @tf.function
    def sums(rows, scale):
        return tf.reduce_sum(rows, axis=1) * scale

    x = tf.ragged.constant([[1, 2], [3]])
    two = more.get_concrete_function(tf.RaggedTensorSpec([2, None], tf.int32))
    vectors = more.get_concrete_function(tf.RaggedTensorSpec([2, None, 3], tf.int32, ragged_rank=1))
    general = sums.get_concrete_function(tf.RaggedTensorSpec([None, None], tf.int32), tf.TensorSpec([], tf.int32))
    scale = tf.constant(2)
    return [
        [two(x), vectors(x.with_values(tf.ones([3, 3], tf.int32))), more.get_concrete_function(x)(x)],
        [general(x, scale), general(x[:1], scale), general(x.flat_values, x.row_splits, scale)],
        general(rows=x, scale=scale),
        [repr(each.structured_input_signature) for each in (two, general, more.get_concrete_function(x))],
        [two.pretty_printed_signature(), general.pretty_printed_signature()],
        [[(each.shape.as_list(), each.dtype.name) for each in f.inputs] for f in (two, vectors, general)],
        [more.experimental_get_tracing_count(), sums.experimental_get_tracing_count()],
        raises(lambda: general(tf.ragged.constant([[[1]]]), scale)),
    ]


TEXTS = ["aé€".encode(), b"", b"a\xffb\xe2\x82", b"\x01x"]


@program()
def characters_of_strings(tf, np):
    s = tf.strings
    return [
        s.unicode_decode(TEXTS, "UTF-8"),
        s.unicode_decode(TEXTS, "UTF-8", errors="ignore"),
        s.unicode_decode(TEXTS, "UTF-8", replacement_char=63, replace_control_characters=True),
        list(s.unicode_decode_with_offsets(TEXTS, "UTF-8")),
        s.unicode_decode([["a"], ["b"]], "UTF-8"),
        s.unicode_decode(tf.ragged.constant([["ab"], ["c", "d"]]), "UTF-8"),
        s.unicode_decode("aé", "UTF-8"),
        raises(lambda: s.unicode_decode(TEXTS, "UTF-8", errors="strict"), "Invalid formatting on input string"),
        raises(lambda: s.unicode_decode("a", "nope"), "Could not create converter for input encoding: nope"),
        raises(lambda: s.unicode_decode("a", "UTF-8", errors="what")),
    ]


@program()
def strings_split_into_characters(tf, np):
    s = tf.strings
    return [
        s.unicode_split(TEXTS[:2], "UTF-8"),
        s.unicode_split("héy", "UTF-8"),
        s.unicode_split_with_offsets(TEXTS[0], "UTF-8")[1],
        s.unicode_split_with_offsets(TEXTS[:2], "UTF-8")[1],
    ]


@program()
def strings_of_characters(tf, np):
    s = tf.strings
    rows = tf.ragged.constant([[97, 233], [0x20AC]])
    return [
        [s.unicode_encode([97, 233, 0x20AC], "UTF-8"), s.unicode_encode([[97, 98], [99, 100]], "UTF-8")],
        [s.unicode_encode(rows, "UTF-8"), s.unicode_encode(tf.ragged.constant([[[97], [98, 99]], []]), "UTF-8")],
        s.unicode_encode([97, 0x110000, 0xD800], "UTF-8"),
        s.unicode_encode([97, 0x110000], "UTF-8", errors="ignore"),
        s.length(s.unicode_encode([97], "UTF-32-BE")),
        raises(lambda: s.unicode_encode([0x110000], "UTF-8", errors="strict"), "out of range for Unicode"),
        raises(lambda: s.unicode_encode([97], "latin1")),
        raises(lambda: s.unicode_encode(97, "UTF-8"), "input_tensor's rank must be at least 1."),
        s.unicode_transcode(["a\xe9".encode("latin1")], "ISO-8859-1", "UTF-8"),
        s.unicode_transcode(TEXTS, "UTF-8", "UTF-8", errors="ignore", replace_control_characters=True),
        s.unicode_decode(s.unicode_transcode(TEXTS[:1], "UTF-8", "UTF-16-BE"), "UTF-16-BE"),
    ]
