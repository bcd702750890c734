"""Programs that rearrange: stencils on padded grids, circular shifts, blocks, grids, rows read backwards."""

from conformance.probes import derivatives, gradients, raises
from conformance.program import program


def waves(np, *shape, phase=0.2):
    return np.sin(np.arange(np.prod(shape)) * 0.7 + phase).astype(np.float32).reshape(shape)


@program()
def a_laplacian_on_padded_grids(tf, np):
    field = waves(np, 3, 4)

    def energy(u, mode):
        padded = tf.pad(u, [[1, 1], [1, 1]], mode)
        laplacian = padded[:-2, 1:-1] + padded[2:, 1:-1] + padded[1:-1, :-2] + padded[1:-1, 2:] - 4.0 * u
        return laplacian**2

    return {
        mode: derivatives(tf, lambda u, m=mode: energy(u, m), field) for mode in ("CONSTANT", "REFLECT", "symmetric")
    }


@program()
def pads_of_other_forms(tf, np):
    x = waves(np, 2, 3)
    return {
        "by the filler": gradients(tf, lambda x, c: tf.pad(x, [[0, 1], [2, 0]], constant_values=c) ** 2, x, 1.5),
        "dtypes": [
            tf.pad(tf.constant([True]), [[1, 1]], constant_values=True),
            tf.pad(tf.constant(["a"]), [[1, 0]], constant_values="z"),
            tf.pad(tf.constant([1 + 2j]), [[0, 2]]),
            tf.pad(tf.constant([7, 8], tf.uint8), tf.constant([[2, 1]], tf.int64), "SYMMETRIC"),
        ],
        "of a scalar": tf.pad(3.0, tf.zeros([0, 2], tf.int32)),
        "too wide": [
            raises(lambda m=m, n=n: tf.pad(x, [[n, 0], [0, 0]], m)) for m, n in (("REFLECT", 2), ("SYMMETRIC", 3))
        ],
        "a fraction": raises(lambda: tf.pad([1, 2], [[1, 1]], constant_values=1.5)),
        "negative": raises(lambda: tf.pad(x, [[-1, 0], [0, 0]])),
        "mode": raises(lambda: tf.pad(x, [[1, 0], [0, 0]], "EDGE"), containing="CONSTANT"),
    }


@program()
def advection_by_rolls(tf, np):
    u = waves(np, 2, 5)

    def steps(u, speed):
        for _ in range(3):
            u = u - speed * (u - tf.roll(u, 1, axis=-1)) + 0.1 * tf.roll(u, shift=[1, -2], axis=[0, 1])
        return u**2

    return {
        "derivatives": derivatives(tf, steps, u, 0.3),
        "twice the same axis": tf.roll(u, [1, 1], [1, 1]),
        "none": raises(lambda: tf.roll(tf.constant(u), [1, 2], [0])),
    }


@program()
def repeats_of_durations(tf, np):
    phonemes = waves(np, 4, 2)

    def spectrum(x):
        frames = tf.repeat(x, [2, 0, 3, 1], axis=0)
        return frames * tf.range(1.0, 7.0)[:, None] ** 0.5 + tf.repeat(tf.reduce_sum(x, 1), 2)[:6, None]

    return {
        "derivatives": derivatives(tf, lambda x: spectrum(x) ** 2, phonemes),
        "flat": [tf.repeat([[1, 2], [3, 4]], 2), tf.repeat(3, 4), tf.repeat([], 3), tf.repeat([[1, 2]], [2, 0])],
        "bad": [
            raises(lambda: tf.repeat(phonemes, [1, 2], axis=0)),
            raises(lambda: tf.repeat(phonemes, 2, axis=2), containing="axis=2 out of bounds"),
            raises(lambda: tf.repeat(phonemes, [[1, 2, 3, 4]], axis=0), containing="must have rank at most 1"),
            raises(lambda: tf.repeat(phonemes, -1, axis=0)),
        ],
    }


@program()
def a_recurrence_in_both_directions(tf, np):
    x, lengths = waves(np, 2, 4, 2), tf.constant([3, 2])

    def run(x, w):
        h, states = tf.zeros([2, 2]), []
        for t in range(4):
            h = tf.tanh(x[:, t] @ w + h)
            states.append(h)
        return tf.stack(states, axis=1)

    def both(x, w):
        backward = run(tf.reverse_sequence(x, lengths, seq_axis=1), w)
        mask = tf.sequence_mask(lengths, 4, dtype=x.dtype)[..., None]
        return mask * tf.concat([run(x, w), tf.reverse_sequence(backward, lengths, 1, 0)], axis=-1)

    return derivatives(tf, both, x, waves(np, 2, 2, phase=1.0))


@program()
def sequences_along_other_axes(tf, np):
    x = waves(np, 2, 3, 4)
    return {
        "far axes": gradients(tf, lambda x: tf.reverse_sequence(x, [2, 0, 1, 3], seq_axis=1, batch_axis=2), x),
        "whole": tf.reverse_sequence(tf.constant([[1, 2], [3, 4]]), tf.constant([2, 0], tf.int64), 1),
        "reversed": derivatives(tf, lambda x: tf.reverse(x, [0, -1]) ** 2, x),
        "no axes": tf.reverse(x[0], []),
        "the first axis": tf.reverse_sequence(x, [2, 1], seq_axis=1, batch_axis=None),
        "bad": [
            raises(lambda: tf.reverse_sequence(x, [5, 1], seq_axis=2)),
            raises(lambda: tf.reverse_sequence(x, [-1, 1], seq_axis=2)),
            raises(lambda: tf.reverse_sequence(x, [1, 1], seq_axis=0, batch_axis=0)),
            raises(lambda: tf.reverse(x, [0, 0])),
            raises(lambda: tf.reverse(x, [3])),
        ],
    }


@program()
def sub_pixel_convolution(tf, np):
    image, kernel = waves(np, 1, 3, 4, 1), waves(np, 2, 2, 1, 4, phase=0.9)

    def upscale(x, k):
        return tf.nn.depth_to_space(tf.nn.conv2d(x, k, 1, "SAME"), 2) ** 2

    return {
        "derivatives": derivatives(tf, upscale, image, kernel),
        "back": gradients(tf, lambda x: tf.nn.space_to_depth(x, block_size=2), waves(np, 1, 4, 6, 1)),
        "bad": [
            raises(lambda: tf.nn.space_to_depth(waves(np, 1, 3, 4, 1), 2)),
            raises(lambda: tf.nn.depth_to_space(waves(np, 1, 2, 2, 3), 2)),
            raises(lambda: tf.nn.depth_to_space(waves(np, 1, 2, 2, 4), 1)),
        ],
    }


@program()
def dilated_convolution_by_batches(tf, np):
    signal, kernel = waves(np, 1, 6, 2), waves(np, 2, 2, 1, phase=0.5)
    paddings, crops = tf.required_space_to_batch_paddings([6], [4])

    def dilated(x, k):
        inside = tf.nn.conv1d(tf.space_to_batch(x, [4], paddings), k, 1, "SAME")
        return tf.batch_to_space(inside, [4], crops) ** 2

    x = tf.reshape(tf.range(24.0), [4, 3, 2, 1])
    return {
        "paddings": [paddings, crops, tf.required_space_to_batch_paddings([5, 3], [2, 2], [[1, 0], [0, 2]])],
        "derivatives": derivatives(tf, dilated, signal, kernel),
        "one block": tf.batch_to_space(x, 2, [[0, 1], [1, 0]]),
        "bad": [
            raises(lambda: tf.batch_to_space(x, [2, 2], [[0, 7], [0, 0]])),
            raises(lambda: tf.batch_to_space(x, [3, 2], [[0, 0], [0, 0]])),
            raises(lambda: tf.space_to_batch(x, [2, 2], [[0, 0], [0, 0]])),
        ],
    }


@program()
def a_potential_on_a_grid(tf, np):
    def potential(x, y, centre):
        a, b = tf.meshgrid(x, y)
        return tf.exp(-((a - centre[0]) ** 2 + 2.0 * (b - centre[1]) ** 2))

    return {
        "derivatives": derivatives(tf, potential, [0.0, 0.5, 1.0], [0.2, -0.3], [0.4, 0.1]),
        "three": tf.meshgrid([1, 2], [3], [4, 5], indexing="ij"),
        "none": tf.meshgrid(),
        "bad": raises(lambda: tf.meshgrid([1], [2], indexing="q")),
    }


@program()
def spaces_between_numbers(tf, np):
    return {
        "derivatives": derivatives(tf, lambda a, b: tf.linspace(a, b, 4) ** 2, 1.0, 3.0),
        "rows": derivatives(tf, lambda a, b: tf.linspace(a, b, 3, axis=-1) ** 2, waves(np, 2), waves(np, 2, 2)),
        "small integers": tf.linspace(tf.constant(1, tf.int8), tf.constant(4, tf.int8), 3),
        "integers": tf.linspace(0, 10, 4),
        "complex": tf.linspace(tf.constant(0j), 2 + 2j, 3),
        "few": [tf.linspace(0.0, 1.0, 1), tf.linspace(0.0, 1.0, 2), raises(lambda: tf.linspace(0.0, 1.0, 0))],
    }


@program()
def broadcasts_and_outer_sums(tf, np):
    x, y = waves(np, 3), waves(np, 2, 1, 1)

    def distances(x, y):
        shape = tf.broadcast_dynamic_shape(tf.shape(x[:, None]), tf.shape(y))
        return tf.reduce_sum((tf.broadcast_to(x[:, None], shape) - tf.tile(y, [1, 3, 1])) ** 2, 0) ** 0.5

    return {
        "derivatives": derivatives(tf, distances, x, y),
        "shapes": [tf.broadcast_static_shape(tf.TensorShape([None, 1]), tf.TensorShape([3]))],
        "copies": tf.identity_n([tf.constant([1, 2]), 3.0]),
        "filled": gradients(tf, lambda v: tf.fill([2, 2], v, layout=None) ** 2, 1.5),
        "quotients": gradients(tf, tf.realdiv, x + 2.0, x - 3.0),
        "roots": tf.matrix_square_root([[4.0, 1.0], [0.0, 9.0]]),
        "bad": [raises(lambda: tf.broadcast_to(x, [2, 2])), raises(lambda: tf.tile(x, [2, 2]))],
    }
