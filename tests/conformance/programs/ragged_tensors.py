"""Ragged tensors: factories, parts, conversions, indexing, `tf.ragged`, and their mistakes."""

from conformance.probes import raises
from conformance.program import program

ROWS = [[1.0, 2.0], [], [3.0]]
NESTED = [[[1.0, 2.0], [3.0]], [], [[4.0]]]


def both(tf):
    return tf.ragged.constant(ROWS), tf.ragged.constant(NESTED)


@program()
def rows_from_splits_lengths_and_ids(tf, np):
    ragged = tf.RaggedTensor
    values = [1, 2, 3, 4]
    return [
        ragged.from_row_splits(values, [0, 2, 2, 4]),
        ragged.from_row_splits(values, np.array([0, 4], np.int32)),
        ragged.from_row_lengths(values, [1, 0, 3]),
        ragged.from_row_lengths(values, tf.constant([1, 0, 3])),
        ragged.from_value_rowids(values, [0, 0, 2, 2]),
        ragged.from_value_rowids(values, [0, 0, 2, 2], nrows=5),
        ragged.from_value_rowids(tf.zeros([0]), [], nrows=2),
        ragged.from_row_starts(values, [0, 1, 1]),
        ragged.from_row_limits(values, [2, 2, 4]),
        ragged.from_row_splits([], [0]),
        ragged.from_row_splits([], [0, 0]),
    ]


@program()
def rows_of_one_length(tf, np):
    ragged = tf.RaggedTensor
    x = ragged.from_uniform_row_length([1, 2, 3, 4, 5, 6], 2)
    y = ragged.from_uniform_row_length(tf.ragged.constant([[1], [2, 3], [], [4]]), 2)
    empty = ragged.from_uniform_row_length([], 0, nrows=3)
    return [x, x.uniform_row_length, y, y.shape, y.values.uniform_row_length, empty, y[1], y[:, 1], x[:, 0], x[:, -1:]]


@program()
def several_divisions(tf, np):
    ragged = tf.RaggedTensor
    values = [1, 2, 3]
    x = ragged.from_nested_row_splits(values, [[0, 1, 2], [0, 1, 3]])
    return [
        x,
        x.ragged_rank,
        ragged.from_nested_row_lengths(values, [[2, 0], [1, 2]]),
        ragged.from_nested_value_rowids(values, [[0, 0, 1], [0, 1, 2]]),
        ragged.from_nested_value_rowids(values, [[0, 0, 1], [0, 1, 2]], [4, 3]),
        ragged.from_row_splits(tf.constant([[1, 2], [3, 4], [5, 6]]), [0, 1, 3]),
        ragged.from_row_splits(tf.constant([[1, 2], [3, 4], [5, 6]]), [0, 1, 3]).ragged_rank,
    ]


@program()
def parts_of_a_ragged_tensor(tf, np):
    x, y = both(tf)
    return [
        [x.values, x.row_splits, x.nrows(), x.row_lengths(), x.row_starts(), x.row_limits(), x.value_rowids()],
        [y.values, y.flat_values, list(y.nested_row_splits), y.row_lengths(), y.row_lengths(axis=2)],
        [list(y.nested_row_lengths()), list(y.nested_value_rowids()), y.bounding_shape()],
        [y.bounding_shape(axis=1), y.bounding_shape(axis=[0, 2]), y.bounding_shape(out_type=tf.int32)],
        [x.shape, y.shape, x.dtype, x.ragged_rank, y.ragged_rank, x.nrows(out_type=tf.int32), x.get_shape()],
        [x.to_list(), y.to_list(), tf.is_tensor(x), isinstance(x, tf.RaggedTensor), x.consumers()],
    ]


@program()
def copies_with_other_values(tf, np):
    x, y = both(tf)
    return [
        x.with_values([4, 5, 6]),
        x.with_values(tf.constant([[1, 2], [3, 4], [5, 6]])),
        y.with_flat_values(["a", "b", "c", "d"]),
        x.with_values(tf.ragged.constant([[1], [2, 3], []])),
        x.with_row_splits_dtype(tf.int32),
        y.with_row_splits_dtype("int32").row_splits,
        raises(lambda: x.with_values([1, 2]), "are incompatible"),
        raises(lambda: y.with_flat_values([1, 2]), "are incompatible"),
    ]


@program()
def texts(tf, np):
    x, y = both(tf)
    shown = [
        x,
        y,
        tf.ragged.constant([["a"], ["b", "c"]]),
        tf.ragged.constant([[1, 2], [3, 4]]),
        tf.ragged.constant([[True], []]),
        tf.ragged.constant([]),
        tf.ragged.constant([[[1.5, 2.0]], [[3.0, 4.0], [5.0, 6.0]]], ragged_rank=1),
        tf.RaggedTensor.from_row_splits(np.arange(30), np.arange(31)),
        tf.RaggedTensor.from_row_splits(np.arange(2000), [0, 1500, 1510, 2000])[:2],
    ]
    return [[repr(value), str(value)] for value in shown]


@program()
def arrays_of_rows(tf, np):
    x, y = both(tf)
    rows = x.numpy()
    return [
        [type(rows).__name__, str(rows.dtype), list(rows.shape), list(rows)],
        tf.ragged.constant([[1, 2], [3, 4]]).numpy(),
        tf.ragged.constant([[], []], dtype=tf.int32).numpy(),
        [list(y.numpy().shape), y.numpy()[2]],
    ]


@program()
def constants_of_nested_lists(tf, np):
    constant = tf.ragged.constant
    return [
        constant([[1, 2], [3.5]]),
        constant([]),
        constant([1, 2]),
        constant(5),
        constant([[], []]),
        constant([[], [[]]]),
        constant([[], [[]]], ragged_rank=1),
        constant([[[1, 2]], [[3, 4], [5, 6]]], ragged_rank=1),
        constant([[[1, 2]], [[3, 4], [5, 6]]], inner_shape=(2,)),
        constant([["a"], []]),
        constant([[1], [2, 3]], dtype=tf.float64),
        constant([[1], [2, 3]], row_splits_dtype=tf.int32),
        constant([np.array([1.0, 2.0]), np.array([3.0])]),
        constant([(1, 2), (3,)]),
        constant([[1, 2], [3, 4]], ragged_rank=0),
        constant([[True], [False, True]]),
    ]


@program()
def constants_of_their_own_arrays(tf, np):
    constant = tf.ragged.constant
    lists = [[1, 2], [3]], [[[1], [2, 3]], []], [["a", "b"], ["c"]], [[1, 2], [3, 4]]
    return [constant(constant(each).numpy()) for each in lists]


@program()
def constants_that_are_refused(tf, np):
    constant = tf.ragged.constant
    return [
        raises(lambda: constant([[1], 2]), "all scalar values must have the same nesting depth"),
        raises(lambda: constant([[1]], ragged_rank=2), "requires scalar value depth greater than 2"),
        raises(lambda: constant([[1]], dtype=tf.string)),
    ]


@program()
def to_dense(tf, np):
    x, y = both(tf)
    inner = tf.ragged.constant([[[1, 2]], [[3, 4], [5, 6]]], ragged_rank=1)
    return [
        x.to_tensor(),
        x.to_tensor(default_value=-1.0),
        x.to_tensor(shape=[None, 1]),
        x.to_tensor(shape=[5, None]),
        x.to_tensor(9.0, shape=[2, 4]),
        y.to_tensor(),
        y.to_tensor(shape=[2, 1, 3]),
        inner.to_tensor(),
        inner.to_tensor(default_value=[7, 8]),
        tf.ragged.constant([["a"], ["b", "c"]]).to_tensor(),
        tf.ragged.constant([["a"], ["b", "c"]]).to_tensor(default_value="-"),
        tf.ragged.constant([[True], []]).to_tensor(),
        tf.ragged.constant([[], []]).to_tensor(),
        tf.RaggedTensor.from_row_splits(tf.zeros([0, 2]), [0]).to_tensor(),
    ]


@program()
def from_dense(tf, np):
    ragged = tf.RaggedTensor
    t = [[1, 2, 0], [3, 0, 0], [0, 0, 0]]
    cube = [[[1, 0], [2, 2]], [[0, 0], [3, 0]]]
    return [
        ragged.from_tensor(t),
        ragged.from_tensor(t, padding=0),
        ragged.from_tensor(t, lengths=[1, 2, 0]),
        ragged.from_tensor(t, lengths=[1, 4, 0]),
        ragged.from_tensor(t, lengths=tf.constant([2, 0, 1])),
        ragged.from_tensor(cube, ragged_rank=2),
        ragged.from_tensor(cube, ragged_rank=2, padding=0),
        ragged.from_tensor(cube, lengths=([2, 1], [1, 2, 2])),
        ragged.from_tensor(cube, lengths=[1, 2]),
        ragged.from_tensor([["a", ""], ["b", "c"]], padding=""),
        ragged.from_tensor(t, row_splits_dtype=tf.int32),
    ]


@program()
def sparse_and_ragged(tf, np):
    x, y = both(tf)

    def parts(sparse):
        return [sparse.indices, sparse.values, sparse.dense_shape]

    inner = tf.ragged.constant([[[1, 2]], [[3, 4], [5, 6]]], ragged_rank=1)
    from_sparse = tf.RaggedTensor.from_sparse
    return [
        parts(x.to_sparse()),
        parts(y.to_sparse()),
        parts(inner.to_sparse()),
        from_sparse(tf.sparse.from_dense([[1, 0], [0, 0], [2, 3]])),
        raises(lambda: from_sparse(tf.sparse.from_dense([[0, 1], [2, 3]]))),
        raises(lambda: from_sparse(tf.constant([[0, 1]]))),
    ]


@program()
def divisions_merged(tf, np):
    _, y = both(tf)
    deep = tf.ragged.constant([[[[1], [2, 3]]], [[], [[4]]]])
    inner = tf.ragged.constant([[[1, 2], [3, 4]], [[5, 6]]], ragged_rank=1)
    return [
        [y.merge_dims(0, 1), y.merge_dims(1, 2), y.merge_dims(0, 2), y.merge_dims(-2, -1), y.merge_dims(1, 1)],
        [deep.merge_dims(1, 2), deep.merge_dims(1, 3), deep.merge_dims(2, 3), deep.merge_dims(0, 2)],
        [inner.merge_dims(1, 2), inner.merge_dims(0, 1), inner.merge_dims(0, 2)],
        raises(lambda: y.merge_dims(2, 1), "Expected outer_axis (2) to be less than or equal to inner_axis (1)"),
        raises(lambda: y.merge_dims(0, 5), "inner_axis=5 out of bounds"),
    ]


@program()
def rows_by_index(tf, np):
    x, y = both(tf)
    return [
        [x[0], x[1], x[-1], x[tf.constant(2)], x[0, 1], x[2, 0], x[0, -1]],
        [y[0], y[0, 1], y[0, 0, 1], y[2], y[-1, -1]],
        [list(x), list(y)],
        raises(lambda: x[5], "Row key 5 out of bounds"),
        raises(lambda: x[0, 7]),
        raises(lambda: x[:, 0], "Cannot index into an inner ragged dimension."),
        raises(lambda: x[tf.constant([True, False, True])]),
        raises(lambda: x["a"]),
    ]


@program()
def slices_of_rows(tf, np):
    x, y = both(tf)
    return [
        [x[1:], x[:2], x[::2], x[::-1], x[-2:], x[5:], x[2:1], x[:]],
        [x[:, :1], x[:, 1:], x[:, -1:], x[:, ::-1], x[:, :-1], x[:, ::2]],
        [x[..., :1], x[1:, :1], x[:, 0:5]],
        [y[:, 1:], y[:, :, :1], y[..., :1], y[1:, :1], y[0, :, :1], y[0:1, ..., 0:1]],
    ]


@program()
def new_axes(tf, np):
    x, _ = both(tf)
    a, b, c = x[tf.newaxis], x[:, tf.newaxis], x[:, :, tf.newaxis]
    return [a, a.shape, b, b.shape, c, c.shape, x[:, tf.newaxis, :1]]


@program()
def ranges_of_rows(tf, np):
    ranges = tf.ragged.range
    return [
        ranges([1, 2, 3]),
        ranges([0, 5], [3, 8]),
        ranges(0, [5, 6], 2),
        ranges([0.0, 1.0], 3.0),
        ranges(3, [0, 1], -1),
        ranges(3),
        ranges([1, 2], dtype=tf.float32),
        ranges([1, 2], row_splits_dtype=tf.int32),
        raises(lambda: ranges([1, 2], deltas=0), "Requires delta != 0"),
        raises(lambda: ranges([1, 2], [1, 2, 3])),
    ]


@program()
def rows_and_segment_ids(tf, np):
    to_ids, to_splits = tf.ragged.row_splits_to_segment_ids, tf.ragged.segment_ids_to_row_splits
    partitions = tf.ragged.stack_dynamic_partitions
    return [
        [to_ids([0, 2, 2, 3]), to_ids(tf.constant([0, 1, 1])), to_ids([0, 2], out_type=tf.int32)],
        [to_splits([0, 0, 2]), to_splits([0, 0, 2], num_segments=5), to_splits(tf.constant([0, 1]))],
        [partitions([1, 2, 3, 4], [0, 1, 0, 2], 4), partitions([[1, 2], [3, 4]], [[0, 1], [0, 2]], 3)],
        partitions([[1, 2], [3, 4]], [1, 0], 2),
        partitions(tf.ragged.constant([[1], [2, 3]]), [1, 1], 2),
    ]


@program()
def splits_that_are_refused(tf, np):
    ids = tf.ragged.row_splits_to_segment_ids
    return [
        raises(lambda: ids([[0, 1]]), "Shape (1, 2) must have rank 1"),
        raises(lambda: ids(3), "Shape () must have rank 1"),
        raises(lambda: ids([]), "Invalid row_splits: []"),
    ]


@program()
def functions_of_flat_values(tf, np):
    x, y = both(tf)
    deep = tf.ragged.constant([[[1.0, 2.0], [3.0]]])
    map_flat = tf.ragged.map_flat_values
    return [
        map_flat(tf.add, x, 1.0),
        map_flat(tf.stack, [x, x * 10.0], axis=1),
        map_flat(tf.one_hot, tf.ragged.constant([[0, 1], [2]]), 3),
        map_flat(lambda a: tf.reshape(a, [-1, 1]), y),
        map_flat(tf.add, 1, 2),
        raises(lambda: map_flat(lambda a: tf.constant([1.0]), x), "expected outer dimension size: 3"),
        raises(
            lambda: map_flat(tf.add, x, deep),
            "All ragged inputs must have the same ragged_rank.",
        ),
        raises(lambda: map_flat(tf.add, x, tf.ragged.constant([[1.0], [2.0], [3.0]]))),
    ]


@program()
def masks_of_rows(tf, np):
    x, y = both(tf)
    mask = tf.ragged.boolean_mask
    return [
        mask(x, tf.ragged.constant([[True, False], [], [True]])),
        mask(x, [True, False, True]),
        mask([[1, 2], [3, 4]], [[True, False], [True, True]]),
        mask([1, 2, 3], [True, False, True]),
        mask(y, tf.ragged.constant([[True, False], [], [True]])),
        mask(y, tf.ragged.constant([[[True, False], [True]], [], [[False]]])),
        mask([[[1, 2], [3, 4]], [[5, 6], [7, 8]]], [[True, False], [True, True]]),
        raises(lambda: mask(x, True), "mask cannot be scalar."),
        raises(lambda: mask(x, tf.ragged.constant([[True], [], [True]]))),
    ]


@program()
def stacks_of_tensors(tf, np):
    x, _ = both(tf)
    stack = tf.ragged.stack
    return [
        stack([tf.constant([1, 2]), tf.constant([3])]),
        stack([[1, 2], [3]]),
        stack([x, x]),
        stack([x, x], axis=1),
        stack([x, x], axis=2),
        stack([tf.constant(1), tf.constant(2)]),
        stack([[[1]], [[2, 3]]]),
        stack([x]),
        stack([tf.constant([[1, 2]]), tf.constant([[3], [4]])], axis=0),
    ]


@program()
def factories_that_are_refused(tf, np):
    ragged = tf.RaggedTensor
    invalid = "Arguments to {} do not form a valid {}"
    of_values = invalid.format("_from_row_partition", "RaggedTensor")
    return [
        raises(lambda: ragged.from_row_splits([1, 2, 3], [0, 1]), of_values),
        raises(lambda: ragged.from_row_splits([1, 2, 3], [1, 3]), invalid.format("from_row_splits", "RaggedTensor")),
        raises(lambda: ragged.from_row_splits([1, 2], [0, 2, 1, 2]), invalid.format("from_row_splits", "RaggedTensor")),
        raises(lambda: ragged.from_row_splits([1], []), "row_splits tensor may not be empty."),
        raises(lambda: ragged.from_row_splits([1], [0.0, 1.0]), "row_splits must have dtype int32 or int64"),
        raises(lambda: ragged.from_row_splits([1], [[0, 1]]), "must have rank 1"),
        raises(lambda: ragged.from_row_lengths([1, 2], [1]), of_values),
        raises(lambda: ragged.from_row_lengths([1], [2, -1]), invalid.format("from_row_lengths", "RowPartition")),
        raises(lambda: ragged.from_value_rowids([1, 2], [1, 0]), invalid.format("from_value_rowids", "RowPartition")),
        raises(lambda: ragged.from_value_rowids([1, 2], [0, 2], nrows=2), "Expected nrows >= value_rowids[-1] + 1"),
        raises(lambda: ragged.from_value_rowids([1, 2], [0]), "are incompatible"),
        raises(lambda: ragged.from_row_starts([1, 2], [1]), invalid.format("from_row_starts", "RaggedTensor")),
        raises(lambda: ragged.from_uniform_row_length([1, 2, 3], 2), "must equal nvals=3"),
        raises(lambda: ragged([1], [0, 1]), "RaggedTensor constructor is private"),
        raises(lambda: ragged.from_nested_row_splits([1], [0, 1]), "must have rank 1"),
        raises(lambda: ragged.from_tensor([1, 2]), "must be greater than 1"),
        raises(lambda: ragged.from_tensor([[1]], lengths=[1], padding=0), "`lengths` or `padding`, but not both."),
        raises(lambda: ragged.from_tensor([[1]], ragged_rank=2), "must have rank at least 3"),
        ragged.from_row_splits([1, 2, 3], [0, 1, 3], validate=False),
    ]


@program()
def divisions_of_one_dtype(tf, np):
    ragged = tf.RaggedTensor
    wide = ragged.from_row_splits([1, 2, 3], [0, 2, 3])
    narrow = wide.with_row_splits_dtype(tf.int32)
    makers = [
        (ragged.from_row_splits, [0, 1, 2]),
        (ragged.from_row_lengths, [1, 1]),
        (ragged.from_value_rowids, [0, 1]),
        (ragged.from_row_starts, [0, 1]),
        (ragged.from_row_limits, [1, 2]),
    ]
    return [[raises(lambda: make(wide, np.array(rows, np.int32))), make(narrow, rows)] for make, rows in makers]


@program()
def what_a_ragged_tensor_is_not(tf, np):
    x, _ = both(tf)
    return [
        raises(lambda: bool(x), "RaggedTensor may not be used as a boolean."),
        raises(lambda: len(x)),
        raises(lambda: {x: 1}, "RaggedTensor is unhashable."),
        raises(lambda: x.to_tensor(shape=[1])),
        raises(lambda: tf.ragged.constant([[1], [2]]) + tf.ragged.constant([[1], [2]], row_splits_dtype=tf.int32)),
        x == None,  # noqa: E711  # the operator is what is tested
        x != None,  # noqa: E711
    ]


@program()
def specs(tf, np):
    spec = tf.RaggedTensorSpec
    x, _ = both(tf)
    first = spec([None, None], tf.int32)
    return [
        repr(first),
        repr(spec([2, None], tf.float32, ragged_rank=1, row_splits_dtype=tf.int32)),
        repr(spec.from_value(x)),
        [first.shape, first.dtype, first.ragged_rank, first.row_splits_dtype],
        spec([3, None], tf.float32) == spec.from_value(x),
        spec([None, None], tf.float32).is_compatible_with(x),
        spec([None, None], tf.int32).is_compatible_with(x),
        isinstance(first, tf.TypeSpec),
        raises(lambda: spec(None, tf.int32), "Must specify ragged_rank or a shape with a known rank."),
        raises(lambda: spec([2], tf.int32, ragged_rank=2)),
    ]


@program()
def the_spec_of_a_value(tf, np):
    spec = tf.type_spec_from_value(tf.ragged.constant([[1.0, 2.0], [], [3.0]]))
    return [spec.shape, spec.dtype, spec.ragged_rank, spec.row_splits_dtype, isinstance(spec, tf.RaggedTensorSpec)]
