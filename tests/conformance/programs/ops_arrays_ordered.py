"""Programs on order and counts: quantiles, nearest neighbours, ranks, interpolation, vocabularies, histograms."""

from conformance.probes import derivatives, raises
from conformance.program import program


def waves(np, *shape, phase=0.2):
    return np.sin(np.arange(np.prod(shape)) * 0.7 + phase).astype(np.float32).reshape(shape)


@program()
def trimmed_means_and_quantiles(tf, np):
    x = waves(np, 2, 6)

    def robust(x):
        ordered = tf.sort(x, axis=-1)
        place = 0.3 * 5.0
        low = int(place)
        quantile = ordered[:, low] * (1.0 - (place - low)) + ordered[:, low + 1] * (place - low)
        return tf.reduce_mean(ordered[:, 1:-1] ** 2, -1) + quantile**2

    return {
        "derivatives": derivatives(tf, robust, x),
        "descending": derivatives(tf, lambda x: tf.sort(x, axis=0, direction="DESCENDING") ** 2, x),
        "places": [tf.argsort(x, direction="DESCENDING"), tf.argsort([2, 1, 2, 1], stable=True)],
        "edges": [tf.sort(tf.constant([-(2**31), 5, 2**31 - 1])), tf.sort(tf.constant([2**64 - 1, 5], tf.uint64))],
        "bad": [
            raises(lambda: tf.sort(x, axis=2)),
            raises(lambda: tf.sort(x, direction="UP")),
            raises(lambda: tf.sort(3.0)),
        ],
    }


@program()
def nearest_neighbours(tf, np):
    points, queries = waves(np, 5, 2), waves(np, 3, 2, phase=1.3)

    def predicted(points, queries):
        square = tf.reduce_sum((queries[:, None] - points) ** 2, -1)
        nearest = tf.math.top_k(-square, k=2)
        weights = tf.nn.softmax(nearest.values * 3.0)
        return tf.reduce_sum(weights[..., None] * tf.gather(points, nearest.indices), 1)

    return derivatives(tf, predicted, points, queries)


@program()
def the_hardest_examples(tf, np):
    logits = waves(np, 4, 3)
    labels = tf.constant([0, 2, 1, 1])

    def loss(x):
        each = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, x)
        wrong = tf.cast(~tf.math.in_top_k(labels, x, 1), x.dtype)
        return tf.math.top_k(each * (1.0 + wrong), 2).values ** 2

    return {
        "derivatives": derivatives(tf, loss, logits),
        "places": tf.math.top_k(logits, 2, index_type=tf.int16).indices,
        "bad": [
            raises(lambda: tf.math.top_k(logits, 4)),
            raises(lambda: tf.math.top_k(3.0)),
            raises(lambda: tf.math.in_top_k([2], logits, k=2)),
        ],
        "outside": tf.math.in_top_k([2, 5, -1, 0], logits, 3),
    }


@program()
def a_piecewise_linear_curve(tf, np):
    knots, at = [0.0, 0.5, 1.5, 2.0], [-0.5, 0.2, 0.5, 1.7, 3.0]

    def curve(knots, values, at):
        right = tf.clip_by_value(tf.searchsorted(knots, at, side="right"), 1, 3)
        x0, x1 = tf.gather(knots, right - 1), tf.gather(knots, right)
        y0, y1 = tf.gather(values, right - 1), tf.gather(values, right)
        return (y0 + (y1 - y0) * (at - x0) / (x1 - x0)) ** 2

    return {
        "derivatives": derivatives(tf, curve, np.array(knots, np.float32), [1.0, -1.0, 2.0, 0.5], at),
        "rows": tf.searchsorted([[1, 3, 5], [2, 4, 6]], [[0, 3], [6, 7]], out_type=tf.int64),
        "shapes": tf.searchsorted(tf.reshape(tf.range(12), [2, 2, 3]), tf.fill([2, 2, 1], 7)),
        "bad": [
            raises(lambda: tf.searchsorted([[1, 3], [2, 4]], [0, 3])),
            raises(lambda: tf.searchsorted([1], [2], side="up")),
        ],
    }


@program()
def embeddings_of_different_words(tf, np):
    table, words = waves(np, 6, 2), tf.constant([4, 1, 4, 4, 0, 1])

    def bag(table):
        different = tf.unique_with_counts(words)
        rows = tf.gather(table, different.y) * tf.cast(different.count, table.dtype)[:, None]
        return tf.gather(rows**2, different.idx) + tf.reduce_sum(rows, 0)

    return {
        "derivatives": derivatives(tf, lambda t: bag(t * 1.0), table),
        "nans": list(tf.unique([float("nan"), float("nan"), 1.0, 1.0])),
        "strings": list(tf.unique(["b", "a", "b"], out_idx=tf.int64)),
        "bad": raises(lambda: tf.unique([[1, 2]])),
    }


@program()
def masked_losses_of_sequences(tf, np):
    predictions, lengths = waves(np, 2, 4), tf.constant([3, 1])

    def loss(p):
        mask = tf.sequence_mask(lengths, dtype=p.dtype)
        p = p[:, : tf.shape(mask)[1]]
        return tf.reduce_sum((p - 0.3) ** 2 * mask, 1) / tf.cast(lengths, p.dtype)

    return {
        "derivatives": derivatives(tf, loss, predictions),
        "fractions": tf.sequence_mask([1.5, 2.0, 0.0], 3),
        "matrix": tf.sequence_mask([[1, 0], [3, 2]], maxlen=tf.constant(2), dtype=tf.int64),
        "none": tf.sequence_mask(tf.zeros([0], tf.int32)),
        "bad": raises(lambda: tf.sequence_mask([1, 2], maxlen=[3]), containing="must be scalar"),
    }


@program()
def equalised_images(tf, np):
    image = waves(np, 4, 5) * 0.5 + 0.5

    def equalised(x):
        counts = tf.histogram_fixed_width(x, [0.0, 1.0], nbins=4)
        share = tf.cast(tf.cumsum(counts), x.dtype) / 20.0
        return tf.gather(share, tf.histogram_fixed_width_bins(x, [0.0, 1.0], 4)) * x**2

    return {
        "derivatives": derivatives(tf, equalised, image),
        "whole": tf.histogram_fixed_width([1, 9, -3], [0, 5], 5, dtype=tf.int64),
        "infinite": tf.histogram_fixed_width([float("inf"), 1.0], [0.0, 2.0], 2),
        "nan": raises(lambda: tf.histogram_fixed_width([float("nan")], [0.0, 2.0]).numpy(), "must not contain NaN"),
    }


@program()
def losses_weighted_by_classes(tf, np):
    labels = tf.constant([0, 2, 2, 1, 2])

    def loss(x):
        share = tf.math.bincount(labels, minlength=4, dtype=x.dtype)
        weights = tf.math.divide_no_nan(1.0, share)
        return tf.gather(weights, labels) * tf.nn.sparse_softmax_cross_entropy_with_logits(labels, x)

    rows = tf.constant([[1, 1, 3], [0, 2, 2]])
    return {
        "derivatives": derivatives(tf, loss, waves(np, 5, 4)),
        "rows": [tf.math.bincount(rows, axis=-1), tf.math.bincount(rows, axis=-1, binary_output=True)],
        "weights": tf.math.bincount(rows, weights=waves(np, 2, 3), axis=-1, maxlength=3),
        "bad": [raises(lambda: tf.math.bincount([-1, 1])), raises(lambda: tf.math.bincount([1, 2], weights=[1.0]))],
    }
