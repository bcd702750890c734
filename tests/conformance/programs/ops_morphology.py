"""tf.nn: morphology, pooling with places, fractional pooling; patches of volumes: values, gradients, refusals."""

from conformance.probes import derivatives, gradients, raises
from conformance.program import program


def waves(np, *shape, phase=0.2):
    return (np.sin(np.arange(np.prod(shape)) * 0.73 + phase) * 0.4 + 0.5).astype(np.float32).reshape(shape)


ONES = [1, 1, 1, 1]


@program()
def dilation(tf, np):
    x, filters = waves(np, 2, 5, 6, 2), waves(np, 3, 2, 2, phase=0.9)
    return {
        "valid": tf.nn.dilation2d(x, filters, ONES, "VALID", "NHWC", ONES),
        "same": tf.nn.dilation2d(x, filters, [1, 2, 3, 1], "SAME", "NHWC", ONES),
        "apart": tf.nn.dilation2d(x, filters, ONES, "SAME", "NHWC", [1, 2, 1, 1]),
        "only border": tf.nn.dilation2d(x[:, :3, :3], filters, ONES, "SAME", "NHWC", [1, 1, 5, 1]),
        "flat": tf.nn.dilation2d(x, tf.zeros([2, 2, 2]), ONES, "VALID", "NHWC", ONES),
    }


@program()
def dilation_of_other_dtypes(tf, np):
    x, filters = waves(np, 1, 4, 4, 1) * 100, waves(np, 2, 2, 1, phase=0.9) * 50

    def dilated(dtype):
        return tf.nn.dilation2d(tf.cast(x, dtype), tf.cast(filters, dtype), ONES, "SAME", "NHWC", ONES)

    return [dilated(dtype) for dtype in (tf.float64, tf.float16, tf.int32, tf.uint8, tf.int64)]


@program()
def gradients_of_dilation(tf, np):
    x, filters = waves(np, 1, 5, 6, 2), waves(np, 3, 2, 2, phase=0.9)

    def dilated(strides, padding, rates):
        return gradients(tf, lambda x, f: tf.nn.dilation2d(x, f, strides, padding, "NHWC", rates), x, filters)

    return {
        "valid": dilated(ONES, "VALID", ONES),
        "same": dilated([1, 2, 1, 1], "SAME", ONES),
        "apart": dilated(ONES, "SAME", [1, 1, 2, 1]),
    }


@program()
def gradients_of_equal_sums(tf, np):
    x = np.zeros((1, 3, 4, 1), np.float32)
    return gradients(tf, lambda x, f: tf.nn.dilation2d(x, f, ONES, "SAME", "NHWC", ONES), x, np.zeros((2, 2, 1), "f"))


@program()
def erosion(tf, np):
    x, filters = waves(np, 1, 5, 6, 2), waves(np, 2, 3, 2, phase=0.9)

    def eroded(x, f):
        return tf.nn.erosion2d(x, f, [1, 1, 2, 1], "SAME", "NHWC", ONES)

    opened = tf.nn.dilation2d(
        tf.nn.erosion2d(x, filters, ONES, "VALID", "NHWC", ONES), filters, ONES, "VALID", "NHWC", ONES
    )
    return [gradients(tf, eroded, x, filters), opened]


@program()
def a_filter_that_is_learned(tf, np):
    """A structuring element from images and what it makes of them."""
    x, target = waves(np, 2, 6, 6, 1), waves(np, 3, 3, 1, phase=0.4) * 0.5
    goal = tf.nn.dilation2d(x, target, ONES, "SAME", "NHWC", ONES)
    filters = tf.Variable(tf.zeros([3, 3, 1]))
    losses = []
    for _ in range(12):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((tf.nn.dilation2d(x, filters, ONES, "SAME", "NHWC", ONES) - goal) ** 2)
        filters.assign_sub(0.5 * tape.gradient(loss, filters))
        losses.append(loss)
    return [losses[0], losses[-1], filters.value()]


@program()
def morphology_that_does_not_fit(tf, np):
    x, filters = waves(np, 1, 4, 4, 2), waves(np, 2, 2, 2)
    dilate = tf.nn.dilation2d
    return [
        raises(lambda: dilate(x, filters, ONES, "SAME", "NCHW", ONES), containing="values other  than 'NHWC'"),
        raises(lambda: dilate(x, filters, ONES, "EXPLICIT", "NHWC", ONES), containing="is not in the list of allowed"),
        raises(lambda: dilate(x, filters[..., :1], ONES, "SAME", "NHWC", ONES), containing="the same depth: 2 vs 1"),
        raises(lambda: dilate(x, filters[..., None], ONES, "SAME", "NHWC", ONES), containing="must be 3-dimensional"),
        raises(lambda: dilate(x, filters, [1, 2], "SAME", "NHWC", ONES), containing="must be at least minimum 4"),
        raises(lambda: dilate(x, filters, 1, "SAME", "NHWC", ONES), containing="Expected list for 'strides'"),
        raises(lambda: dilate(x, filters, [1, 1, 1, 2], "SAME", "NHWC", ONES)),
        raises(lambda: dilate(x, filters, ONES, "VALID", "NHWC", [1, 5, 5, 1]), containing="would be negative: -1"),
    ]


# -------------------------------------------------------------------------------------------------------------- pooling
@program()
def pooling_with_places(tf, np):
    x = waves(np, 2, 5, 4, 2)
    pool = tf.nn.max_pool_with_argmax
    return {
        "same": pool(x, 2, 2, "SAME")._asdict(),
        "valid": pool(x, [1, 3, 2, 1], [1, 1], "VALID", output_dtype=tf.int32),
        "all images": pool(x, (3, 3), 1, "SAME", include_batch_in_index=True).argmax,
        "equal": pool(tf.zeros([1, 3, 3, 2]), 2, 2, "SAME").argmax,
        "lowest": pool(tf.fill([1, 3, 3, 1], tf.int32.min), 3, 2, "SAME").argmax,
        "whole": pool(tf.cast(x * 20, tf.int32), 2, 2, "VALID"),
        "dtype": raises(lambda: pool(x, 2, 2, "SAME", output_dtype=tf.int16), containing="not in the list of allowed"),
        "format": raises(lambda: pool(x, 2, 2, "SAME", "NCHW"), containing="values other  than 'NHWC'"),
        "rank": raises(lambda: pool(x[0], 2, 2, "SAME")),
    }


@program()
def gradients_of_pooling_with_places(tf, np):
    x = waves(np, 2, 5, 4, 2)

    def unpooled(x):
        """What a decoder does: the largest elements back at their places."""
        largest, places = tf.nn.max_pool_with_argmax(x, 2, 2, "SAME", include_batch_in_index=True)
        flat = tf.scatter_nd(tf.reshape(places, [-1, 1]), tf.reshape(largest, [-1]), [80])
        return tf.reshape(flat, [2, 5, 4, 2])

    return [
        gradients(tf, lambda x: tf.nn.max_pool_with_argmax(x, 3, 1, "SAME")[0], x),
        gradients(tf, unpooled, x),
    ]


@program()
def fractional_pooling(tf, np):
    x = waves(np, 1, 11, 13, 2)
    largest, mean = tf.nn.fractional_max_pool, tf.nn.fractional_avg_pool
    ratio = [1.0, 1.44, 1.73, 1.0]
    tf.random.set_seed(5)  # with a seed of its own a call gives the same windows each time
    repeated = [largest(x, ratio, seed=3)[1], largest(x, ratio, seed=3)[1], mean(x, ratio, seed=9)[2]]
    return {
        "largest": largest(x, ratio, seed=3)._asdict(),
        "even": largest(x, ratio, True, seed=4),
        "overlapping": largest(x, 1.4, overlapping=True, seed=5),
        "mean": mean(x, ratio, seed=6)._asdict(),
        "even mean": mean(x, ratio, pseudo_random=True, overlapping=True, seed=7),
        "whole": mean(tf.cast(x * 50, tf.int32), ratio, seed=8).output,
        "exact": largest(x[:, :10, :12], [1.0, 2.0, 3.0, 1.0], seed=2),
        "repeated": repeated,
        "any": largest(x, ratio).output.shape.as_list(),
    }


@program()
def gradients_of_fractional_pooling(tf, np):
    x, ratio = waves(np, 1, 7, 9, 2), [1.0, 1.44, 1.73, 1.0]
    tf.random.set_seed(11)

    def pooled(pool, **options):
        return gradients(tf, lambda x: pool(x, ratio, seed=3, **options)[0], x)

    return {
        "largest": pooled(tf.nn.fractional_max_pool),
        "overlapping": pooled(tf.nn.fractional_max_pool, overlapping=True, pseudo_random=True),
        "mean": pooled(tf.nn.fractional_avg_pool),
        "overlapping mean": pooled(tf.nn.fractional_avg_pool, overlapping=True),
        "equal": gradients(
            tf, lambda x: tf.nn.fractional_max_pool(x, ratio, seed=3, overlapping=True)[0], np.ones_like(x)
        ),
    }


@program()
def fractional_pooling_that_does_not_fit(tf, np):
    x = waves(np, 1, 7, 9, 1)
    return [
        raises(lambda: tf.nn.fractional_max_pool(x, [2.0, 2.0, 1.5, 1.0]), containing="first and last elements"),
        raises(lambda: tf.nn.fractional_max_pool(x, [1.3, 1.5]), containing="first and last elements"),
        raises(lambda: tf.nn.fractional_max_pool(x, [1.0, 0.5, 0.5, 1.0]), containing="should be >= 1.0"),
        raises(lambda: tf.nn.fractional_avg_pool(x, 1.4), containing="Expected list for 'pooling_ratio'"),
        raises(lambda: tf.nn.fractional_avg_pool(x, [1.0, 0.5, 0.5, 1.0]), containing="cannot be smaller than 1"),
        raises(lambda: tf.nn.fractional_avg_pool(x, [2.0, 1.5, 1.5, 1.0]), containing="not yet supported"),
    ]


@program()
def patches_of_volumes(tf, np):
    x = waves(np, 1, 3, 4, 3, 2)

    def patches(sizes, strides, padding):
        return lambda x: tf.extract_volume_patches(x, sizes, strides, padding)

    return {
        "valid": derivatives(tf, patches([1, 2, 2, 1, 1], [1, 1, 2, 1, 1], "VALID"), x),
        "same": patches([1, 2, 3, 2, 1], [1, 2, 1, 2, 1], "SAME")(x),
        "by its type": tf.raw_ops.ExtractVolumePatches(
            input=x, ksizes=[1, 1, 2, 3, 1], strides=[1, 1, 1, 1, 1], padding="SAME"
        ),
        "rank": raises(lambda: patches([1, 1, 1, 1, 1], [1, 1, 1, 1, 1], "SAME")(x[0])),
    }
