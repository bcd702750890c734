"""Datasets: their elements, structures, specs, cardinalities and errors. Shuffled orders are our own."""

from collections import OrderedDict, namedtuple

from conformance.probes import elements, message, raises
from conformance.program import program

Pair = namedtuple("Pair", ["x", "y"])


def facts(dataset):
    """The elements, the spec, the cardinality and TensorFlow's text."""
    return [elements(dataset), str(dataset.element_spec), dataset.cardinality(), repr(dataset)]


@program()
def sources(tf, np):
    data = tf.data.Dataset
    return [
        facts(data.from_tensor_slices([1, 2])),
        facts(data.from_tensor_slices(([1, 2], {"b": [[3.0], [4.0]], "a": np.arange(2)}))),
        facts(data.from_tensor_slices(Pair([1, 2], ["x", "y"]))),
        facts(data.from_tensor_slices(OrderedDict(b=[1], a=[2]))),
        facts(data.from_tensors((1, None, [2.0, 3.0]))),
        facts(data.range(3)),
        facts(data.range(1, 9, 3)),
        facts(data.range(5, 1, -2)),
        facts(data.range(3, output_type=tf.float32)),
        facts(data.range(5, 1)),
        raises(lambda: data.range(1, 2, 0)),
        message(lambda: data.range()),
        message(lambda: data.from_tensor_slices(3)),
    ]


@program()
def iteration(tf, np):
    data = tf.data.Dataset.from_tensor_slices(Pair([1, 2], [[3.0], [4.0]]))
    iterator = iter(data)
    first = next(iterator)
    second = iterator.get_next()
    end = raises(lambda: iterator.get_next(), "End of sequence")
    optional = iterator.get_next_as_optional()
    return [
        [type(first).__name__, first.x, first.y],
        second.y,
        end,
        [next(iterator, "the end"), next(iterator, "the end")],
        [bool(optional.has_value()), raises(lambda: optional.get_value())],
        iter(data).get_next_as_optional().get_value().x,
        isinstance(iterator, tf.data.Iterator),
        str(iterator.element_spec),
        [bool(data), len(data), len(data.repeat(3))],
        data.take(1).get_single_element().x,
        raises(lambda: data.get_single_element(), "Dataset had more than one element."),
        raises(lambda: data.take(0).get_single_element(), "Dataset was empty."),
        message(lambda: len(data.repeat())),
        message(lambda: len(data.filter(lambda p: True))),
    ]


@program()
def generators(tf, np):
    data = tf.data.Dataset

    def pairs():
        for i in range(3):
            yield i, [float(i)] * i

    signature = (tf.TensorSpec([], tf.int32), tf.TensorSpec([None], tf.float32))
    return [
        facts(data.from_generator(pairs, output_signature=signature)),
        facts(data.from_generator(pairs, (tf.int64, tf.float32), ([], [None]))),
        facts(data.from_generator(lambda: iter(["a", b"b"]), output_types=tf.string)),
        facts(data.from_generator(lambda n: iter([n, n + 1]), output_types=tf.int32, args=(3,))),
        facts(data.from_generator(lambda: iter([{"a": 1}]), output_types={"a": tf.int32})),
        elements(data.from_generator(lambda: iter(range(5)), output_types=tf.int32).prefetch(2)),
        elements(data.from_generator(pairs, output_signature=signature).map(lambda i, row: i + 1)),
        elements(data.from_generator(pairs, output_signature=signature).map(lambda i, row: tf.reduce_sum(row))),
    ]


@program()
def errors_of_generators(tf, np):
    data = tf.data.Dataset

    def failing(error):
        def generator():
            yield 1
            raise error

        return lambda: elements(data.from_generator(generator, output_types=tf.int32))

    def signed(values, signature):
        return lambda: elements(data.from_generator(lambda: iter(values), output_signature=signature))

    scalar = tf.TensorSpec([], tf.int32)
    return [
        message(lambda: data.from_generator([1], output_types=tf.int32)),
        message(lambda: data.from_generator(lambda: iter([1]))),
        message(lambda: data.from_generator(lambda: iter([1]), output_types=tf.int32, output_signature=scalar)),
        *(raises(failing(error)) for error in (ValueError("v"), TypeError("t"), KeyError("k"), RuntimeError("r"))),
        raises(
            signed([[1, 2]], tf.TensorSpec([3], tf.int32)), "an element of shape (2,) where an element of shape (3,)"
        ),
        raises(signed([(1, 2)], scalar), "of shape (2,) where an element of shape ()"),
        raises(signed([1], (scalar, scalar)), "did not match the expected structure"),
        raises(signed([[1, 2]], (scalar, scalar)), "did not match the expected structure"),
        raises(signed([1.7], scalar), "did not match the expected structure"),
        raises(signed(["a"], scalar), "could not be converted to the expected type"),
    ]


@program()
def which_elements(tf, np):
    data = tf.data.Dataset.range(5)
    return [
        *(facts(data.take(n)) for n in (2, 9, -1, 0)),
        *(facts(data.skip(n)) for n in (2, 9, -1)),
        *(facts(data.shard(3, i)) for i in range(3)),
        facts(data.take(2).repeat(2)),
        facts(data.repeat().take(7)),
        [data.repeat(n).cardinality() for n in (0, 1, 2, -1)],
        [data.repeat().skip(2).cardinality(), data.repeat().batch(2).cardinality()],
        facts(data.concatenate(tf.data.Dataset.range(8, 10))),
        str(tf.data.Dataset.from_tensors([1]).concatenate(tf.data.Dataset.from_tensors([1, 2])).element_spec),
        facts(data.filter(lambda x: x % 2 == 0)),
        facts(data.take_while(lambda x: x < 3)),
        elements(tf.data.Dataset.zip((data, data)).filter(lambda a, b: a > 2)),
        facts(tf.data.Dataset.from_tensor_slices([1, 37, 2, 37, 2, 1]).unique()),
        elements(data.filter(lambda x: True)),
        message(lambda: data.filter(lambda x: x)),
        raises(lambda: data.shard(2, 2)),
        raises(lambda: data.shard(0, 0)),
        raises(lambda: data.shuffle(0)),
        raises(lambda: data.concatenate(tf.data.Dataset.from_tensors(1.0))),
        raises(lambda: data.concatenate(tf.data.Dataset.zip((data, data)))),
        sorted(elements(data.shuffle(3))),
        str(data.shuffle(3)),
        facts(data.cache().prefetch(1)),
    ]


@program()
def batches(tf, np):
    data = tf.data.Dataset.range(5)
    pairs = tf.data.Dataset.from_tensor_slices({"a": np.arange(6).reshape(3, 2), "b": ["x", "y", "z"]})
    return [
        *(facts(data.batch(*args)) for args in ((2,), (2, True), (9,), (9, True))),
        facts(pairs.batch(2)),
        facts(pairs.batch(2).unbatch()),
        facts(data.batch(2).batch(2)),
        facts(data.batch(2, num_parallel_calls=2)),
        facts(data.batch(3).rebatch(2).take(9)),
        facts(tf.data.Dataset.from_tensor_slices(([[1, 2], [3, 4]], [[5, 6], [7, 8]])).unbatch()),
        raises(lambda: data.batch(0)),
        message(lambda: data.unbatch()),
        raises(
            lambda: elements(
                tf.data.Dataset.from_generator(
                    lambda: iter([[1], [1, 2]]), output_signature=tf.TensorSpec([None], tf.int32)
                ).batch(2)
            ),
            "Cannot batch tensors with different shapes in component 0. First element had shape [1] and element 1 had "
            "shape [2].",
        ),
    ]


@program()
def padded_batches(tf, np):
    rows = tf.data.Dataset.range(5).map(lambda x: tf.fill([x], x))
    lists = tf.data.Dataset.from_generator(
        lambda: iter([([1], "a"), ([2, 3], "b"), ([4, 5, 6], "c")]),
        output_signature=(tf.TensorSpec([None], tf.int32), tf.TensorSpec([], tf.string)),
    )
    return [
        elements(rows.padded_batch(2)),
        elements(rows.padded_batch(2, padded_shapes=[5], padding_values=tf.constant(-1, tf.int64))),
        facts(lists.padded_batch(2)),
        facts(lists.padded_batch(2, padded_shapes=([4], []), padding_values=(7, ""), drop_remainder=True)),
        facts(tf.data.Dataset.from_tensor_slices(["a", "bb"]).padded_batch(2)),
        message(lambda: rows.padded_batch(2, padding_values=-1)),
        raises(lambda: elements(lists.padded_batch(2, padded_shapes=([1], []))), "to pad to a smaller size"),
    ]


@program()
def windows(tf, np):
    data = tf.data.Dataset.range(10)
    return [
        *(
            [elements(window) for window in data.window(*args)]
            for args in ((3,), (3, 1, 1, True), (3, 1, 2), (2, 3), (3, 3, 2, True), (4, 5, 1))
        ),
        [data.window(*args).cardinality() for args in ((3,), (3, 1, 1, True), (2, 3), (3, 3, 2, True))],
        elements(data.window(4, drop_remainder=True).flat_map(lambda window: window.batch(4))),
        elements(tf.data.Dataset.zip((data, data)).window(4).flat_map(lambda a, b: tf.data.Dataset.zip((a, b)))),
        [elements(window["a"]) for window in tf.data.Dataset.from_tensor_slices({"a": [1, 2, 3]}).window(2)],
        raises(lambda: elements(data.window(2))),
        [str(data.window(2).element_spec), str(tf.data.Dataset.zip((data, data)).window(2).element_spec)],
        raises(lambda: data.window(0)),
    ]


@program()
def combined(tf, np):
    data, other = tf.data.Dataset.range(3), tf.data.Dataset.range(10, 14)
    choices = tf.data.Dataset.from_tensor_slices(np.array([0, 1, 1, 0, 1, 1, 1, 1, 0], np.int64))
    return [
        facts(tf.data.Dataset.zip(data, other)),
        facts(tf.data.Dataset.zip((data, {"b": other, "a": data}))),
        facts(tf.data.Dataset.zip(data)),
        facts(tf.data.Dataset.zip((data, other.repeat()))),
        facts(data.enumerate(start=5)),
        facts(tf.data.Dataset.choose_from_datasets([data, other], choices)),
        elements(tf.data.Dataset.choose_from_datasets([data, other], choices, stop_on_empty_dataset=False)),
        elements(tf.data.Dataset.sample_from_datasets([data, other], [1.0, 0.0], stop_on_empty_dataset=True)),
        sorted(elements(tf.data.Dataset.sample_from_datasets([data, other], seed=1))),
        message(lambda: tf.data.Dataset.zip()),
        message(lambda: tf.data.Dataset.zip([data, data])),
        message(lambda: tf.data.Dataset.zip((data, 3))),
        message(lambda: tf.data.Dataset.choose_from_datasets([data], tf.data.Dataset.from_tensor_slices([0]))),
    ]


@program()
def mapped(tf, np):
    data = tf.data.Dataset.range(4)
    pairs = tf.data.Dataset.from_tensor_slices(([1.0, 2.0, 3.0], [4, 5, 6]))
    weight = tf.Variable(3.0)
    return [
        facts(data.map(lambda x: x * 2)),
        facts(data.map(lambda x: (x, {"k": tf.cast(x, tf.float32)}), num_parallel_calls=tf.data.AUTOTUNE)),
        facts(data.map(lambda x: [x, x + 1])),
        facts(data.map(lambda x: (x, [x, x + 1]))),
        facts(data.map(lambda x: 3)),
        facts(data.map(lambda x: "a")),
        facts(data.map(lambda x: Pair(x, None))),
        facts(pairs.map(lambda a, b: a * tf.cast(b, tf.float32))),
        facts(pairs.map(lambda a, b: a * weight).batch(2)),
        facts(pairs.batch(2).map(lambda a, b: tf.reduce_sum(a))),
        facts(pairs.batch(2).map(lambda a, b: tf.reshape(a, [-1, 1]))),
        facts(data.map(lambda x: tf.one_hot(x, 4)).batch(3).map(lambda rows: rows + 1.0)),
        facts(data.map(lambda x: x + 1).map(lambda x: x * x).batch(3, drop_remainder=True)),
        facts(tf.data.Dataset.zip((data.map(lambda x: (x, -x)), data)).batch(3)),
        facts(data.map(lambda x: x + 1).enumerate().batch(3)),
        facts(tf.data.Dataset.from_tensor_slices(["a", "b"]).map(lambda text: text)),
        elements(data.map(lambda x: tf.py_function(lambda v: int(v) * 2, [x], tf.int64))),
        elements(data.map(lambda x: tf.numpy_function(lambda v: v * 2, [x], tf.int64)).batch(3)),
        elements(data.map(lambda x: x + 1).filter(lambda x: x % 2 == 0).batch(2)),
        elements(data.map(lambda x: x + 1).cache().batch(3).repeat(2)),
        raises(lambda: data.map(lambda x: x + 1.5)),
        raises(lambda: data.map(lambda x: tf.reshape(x, [3]))),
    ]


@program()
def functions_are_traced_once(tf, np):
    calls = []

    def double(x):
        calls.append(1)
        return x * 2

    data = tf.data.Dataset.range(4).map(double)
    return [elements(data), elements(data.batch(2, drop_remainder=True)), elements(data.skip(1)), len(calls) in (1, 2)]


@program()
def folds(tf, np):
    data = tf.data.Dataset.range(5)
    pairs = tf.data.Dataset.zip((data, data))
    return [
        data.reduce(np.int64(0), lambda state, x: state + x),
        data.reduce((np.int64(0), 0.0), lambda state, x: (state[0] + x, state[1] + 1.0)),
        pairs.reduce(np.int64(0), lambda state, pair: state + pair[0] * pair[1]),
        data.batch(2).reduce(np.int64(1), lambda state, rows: state * tf.reduce_sum(rows)),
        data.reduce({"a": np.int64(1)}, lambda state, x: {"a": state["a"] + x}),
        facts(data.scan(np.int64(0), lambda state, x: (state + x, (state, x)))),
        facts(data.scan((np.int64(1), 0.5), lambda state, x: ((state[0] * 2, state[1]), state[0] + x))),
        raises(lambda: data.reduce(0, lambda state, x: state + x)),
        raises(lambda: data.reduce(np.int64(0), lambda state, x: 1.5)),
        raises(lambda: data.scan(np.int64(0), lambda state, x: state)),
    ]


@program()
def nested(tf, np):
    data, numbers = tf.data.Dataset, tf.data.Dataset.range(1, 6)
    return [
        facts(numbers.flat_map(lambda x: data.range(x))),
        facts(numbers.interleave(lambda x: data.from_tensors(x).repeat(6), cycle_length=2, block_length=4)),
        elements(numbers.interleave(lambda x: data.range(x), cycle_length=3)),
        elements(numbers.interleave(lambda x: data.range(x * 10, x * 10 + x), cycle_length=3, num_parallel_calls=3)),
        elements(numbers.interleave(lambda x: data.range(x * 10, x * 10 + x), cycle_length=9, block_length=2)),
        elements(data.from_tensor_slices([[1, 2], [3, 4]]).flat_map(data.from_tensor_slices)),
        raises(lambda: elements(numbers.interleave(lambda x: data.range(x), cycle_length=0))),
    ]


@program()
def groups(tf, np):
    data = tf.data.Dataset.range(10)
    rows = tf.data.Dataset.from_generator(
        lambda: iter([[0], [1, 2, 3, 4], [5, 6, 7], [7, 8, 9, 10, 11], [13, 14, 15, 16, 19, 20], [21, 22]]),
        output_signature=tf.TensorSpec([None], tf.int64),
    )

    def length(row):
        return tf.shape(row)[0]

    return [
        facts(data.group_by_window(lambda x: x % 2, lambda key, window: window.batch(3), 3)),
        elements(
            data.group_by_window(
                lambda x: x % 3,
                lambda key, window: window.batch(9).map(lambda rows: tf.reduce_sum(rows)),
                window_size_func=lambda key: key + 1,
            )
        ),
        facts(rows.bucket_by_sequence_length(length, [3, 5], [2, 2, 2])),
        elements(
            rows.take(3).bucket_by_sequence_length(
                length, [3, 6], [2, 2, 2], pad_to_bucket_boundary=True, padding_values=tf.constant(-1, tf.int64)
            )
        ),
        message(lambda: rows.bucket_by_sequence_length(length, [3, 5], [2, 2])),
        message(lambda: data.group_by_window(lambda x: x % 2, lambda key, window: window)),
    ]


@program()
def options(tf, np):
    data, fresh = tf.data.Dataset.range(3), tf.data.Options()
    chosen = tf.data.Options()
    chosen.deterministic = False
    chosen.threading.private_threadpool_size = 2
    chosen.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.DATA
    chosen.experimental_optimization.apply_default_optimizations = False
    result = data.with_options(chosen)
    return [
        [fresh.deterministic, fresh.autotune.enabled, fresh.threading.private_threadpool_size],
        [result.options().deterministic, result.options().threading.private_threadpool_size],
        str(result.options().experimental_distribute.auto_shard_policy),
        [data.options() == fresh, result.options() == fresh, result.map(lambda x: x).options().deterministic],
        message(lambda: setattr(tf.data.Options(), "speed", 3)),
        facts(result),
    ]


@program()
def experimental(tf, np):
    data, older = tf.data.Dataset.range(4), tf.data.experimental
    return [
        [older.AUTOTUNE, tf.data.AUTOTUNE, older.INFINITE_CARDINALITY, older.UNKNOWN_CARDINALITY],
        [older.cardinality(data), older.cardinality(data.repeat()), older.cardinality(data.filter(lambda x: True))],
        elements(data.batch(2).apply(older.unbatch())),
        elements(data.apply(older.take_while(lambda x: x < 2))),
        elements(data.apply(older.scan(np.int64(0), lambda state, x: (state + x, state)))),
        elements(data.apply(older.enumerate_dataset(start=2))),
        elements(data.apply(older.map_and_batch(lambda x: x + 1, 2))),
        elements(older.Counter(3, 2).take(3)),
        elements(older.from_list([(1, "a"), (2, "b")])),
        str(older.get_structure(data)),
        data.filter(lambda x: True).apply(older.assert_cardinality(4)).cardinality(),
        raises(lambda: elements(data.apply(older.assert_cardinality(3)))),
        raises(lambda: elements(data.apply(older.assert_cardinality(5)))),
        message(lambda: data.apply(lambda dataset: 3)),
        str(data.apply(older.shuffle_and_repeat(2, 3)).cardinality()),
    ]


@program()
def reshuffling(tf, np):
    data = tf.data.Dataset.range(20)
    fixed = data.shuffle(20, seed=1, reshuffle_each_iteration=False)
    fresh = data.shuffle(20, seed=1)
    twice = elements(fresh.repeat(2))
    return [
        elements(fixed) == elements(fixed),
        elements(fresh) == elements(fresh),
        elements(data.shuffle(20, seed=4)) == elements(data.shuffle(20, seed=4)),
        twice[:20] == twice[20:],
        sorted(twice[:20]) == sorted(twice[20:]),
    ]


@program()
def orders_of_a_shuffle(tf, np):
    orders = []
    for seed in (None, 2):
        for again in (True, False):
            for size in (3, 100):
                tf.random.set_seed(7)
                tf.random.uniform([])
                data = tf.data.Dataset.range(20).shuffle(size, seed, reshuffle_each_iteration=again)
                orders += [elements(data), elements(data), elements(data.batch(3).repeat(2))]
    return orders


@program()
def gradients_do_not_pass(tf, np):
    x = tf.Variable([[1.0, 2.0], [3.0, 4.0]])
    with tf.GradientTape() as tape:
        total = tf.zeros([2])
        for row in tf.data.Dataset.from_tensor_slices(x**2).map(lambda row: row * x[0]):
            total += row
    return [total, tape.gradient(total, x)]


@program()
def training_on_batches(tf, np):
    inputs = np.linspace(-1, 1, 24).reshape(12, 2).astype(np.float32)
    targets = (inputs @ np.array([[2.0], [-1.0]], np.float32) + 0.5).astype(np.float32)
    weight, bias = tf.Variable(tf.zeros([2, 1])), tf.Variable(tf.zeros([1]))
    data = tf.data.Dataset.from_tensor_slices((inputs, targets)).map(lambda x, y: (x * 2.0, y)).batch(5).repeat(3)
    losses = []
    for x, y in data.prefetch(tf.data.AUTOTUNE):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((x @ weight + bias - y) ** 2)
        for variable, gradient in zip([weight, bias], tape.gradient(loss, [weight, bias]), strict=True):
            variable.assign_sub(0.1 * gradient)
        losses.append(loss)
    return [losses, weight, bias]


@program()
def functions_over_datasets(tf, np):
    data = tf.data.Dataset.from_tensor_slices(np.arange(6, dtype=np.float32)).batch(2)
    weight = tf.Variable(2.0)

    @tf.function
    def total(dataset):
        result = tf.constant(0.0)
        for rows in dataset:
            result += tf.reduce_sum(rows) * weight
        return result

    @tf.function
    def next_sum(iterator):
        return tf.reduce_sum(next(iterator))

    iterator = iter(data)
    return [
        total(data),
        [next_sum(iterator) for _ in range(3)],
        tf.function(lambda: data.reduce(0.0, lambda state, rows: state + tf.reduce_sum(rows)))(),
    ]


@program()
def control_flow_in_functions(tf, np):
    data = tf.data.Dataset.range(6)

    def stepped(x):
        if x % 2 == 0:
            y = x * 10
        else:
            y = -x
        return y

    def first_power(x):
        power = tf.constant(1, tf.int64)
        while power < x:
            power *= 2
        return power

    def both(x):
        return x > 1 and x < 4

    def larger(state, x):
        if x > state:
            state = x
        return state

    return [
        facts(data.map(stepped)),
        elements(data.map(stepped).batch(4)),
        elements(data.map(first_power).batch(4)),
        elements(data.filter(both)),
        tf.data.Dataset.from_tensor_slices([3, 9, 4]).reduce(0, larger),
    ]


@program()
def elements_that_fail(tf, np):
    numbers = tf.data.Dataset.from_tensor_slices([1.0, 2.0, 0.0, 4.0])
    checked = numbers.map(lambda x: tf.debugging.check_numerics(1.0 / x, "no number"))

    def python(x):
        if x == 2.0:
            raise ValueError("not this one")
        return x * 10.0

    called = numbers.map(lambda x: tf.py_function(python, [x], tf.float32))
    positions = tf.data.Dataset.from_tensor_slices([[0], [7], [2]])
    gathered = positions.map(lambda i: tf.gather(tf.constant([1.0, 2.0, 3.0]), i))
    return [
        elements(checked.ignore_errors()),
        elements(checked.ignore_errors(log_warning=False).batch(2)),
        elements(called.apply(tf.data.experimental.ignore_errors())),
        elements(gathered.ignore_errors()),
        int(checked.ignore_errors().cardinality()),
    ]


@program()
def sizes_that_are_stated(tf, np):
    numbers = tf.data.Dataset.range(6)

    def image(i):
        x = tf.numpy_function(lambda n: np.full((2, 3), n, np.float32), [i], tf.float32)
        x.set_shape([2, 3])
        return x, i

    def called(i):
        return tf.py_function(lambda n: tf.ones([n + 1, 2]), [i], tf.float32)

    def partly(x):
        x.set_shape([None, 2])
        return x

    images = numbers.map(image)
    rows = numbers.map(called).map(partly)
    return [
        facts(images.batch(4)),
        facts(images.map(lambda x, i: x[:, :2] * 2.0).batch(2, drop_remainder=True)),
        facts(rows),
        elements(rows.padded_batch(3)),
    ]


@program()
def shapes_that_a_function_demands(tf, np):
    series = np.arange(24, dtype=np.float32).reshape(12, 2)

    def split_window(window):
        inputs, labels = window[:, :3, :], window[:, 3:, :]
        labels = tf.stack([labels[:, :, column] for column in [0]], axis=-1)
        inputs.set_shape([None, 3, None])
        labels.set_shape([None, 1, None])
        return inputs, labels

    windows = tf.data.Dataset.range(5).map(lambda i: tf.gather(series, tf.range(i, i + 4))).batch(2)
    windows = windows.map(split_window)
    inputs, labels = next(iter(windows))
    return [elements(windows), inputs, labels, str(windows.element_spec[1])]
