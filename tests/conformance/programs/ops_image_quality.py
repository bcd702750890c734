"""tf.image: how alike images are at several scales and in any number of batches, and images as JPEG leaves them."""

from conformance.probes import derivatives, gradients, raises
from conformance.program import program


def waves(np, *shape, phase=0.2):
    return (np.sin(np.arange(np.prod(shape)) * 0.37 + phase) * 0.4 + 0.5).astype(np.float32).reshape(shape)


@program()
def similarity_at_several_scales(tf, np):
    a, b = waves(np, 2, 24, 26, 2), waves(np, 2, 24, 26, 2, phase=0.9)
    scales = tf.image.ssim_multiscale
    return {
        "two": scales(a, b, 1.0, power_factors=(0.4, 0.6), filter_size=5),
        "odd": scales(a[:, :21, :23], b[:, :21, :23], 1.0, power_factors=(0.3, 0.3, 0.4), filter_size=4),
        "itself": scales(a, a, 1.0, power_factors=(0.5, 0.5)),
        "one image": scales(a[0], b[0], 1.0, (0.4, 0.6), 3, 0.8, 0.02, 0.05),
        "bytes": scales(tf.cast(a * 255, tf.uint8), tf.cast(b * 255, tf.uint8), 255, (0.4, 0.6), filter_size=5),
        "five": scales(waves(np, 1, 48, 48, 1), waves(np, 1, 48, 48, 1, phase=0.3), 1.0, filter_size=3),
    }


@program()
def gradients_of_similarity_at_several_scales(tf, np):
    a, b = waves(np, 1, 12, 12, 1), waves(np, 1, 12, 12, 1, phase=0.35)
    return gradients(tf, lambda a, b: tf.image.ssim_multiscale(a, b, 1.0, (0.5, 0.5), filter_size=3), a, b)


@program()
def similarity_of_batches(tf, np):
    a, b = waves(np, 2, 3, 12, 13, 1), waves(np, 2, 3, 12, 13, 1, phase=0.9)
    return {
        "batches": tf.image.ssim(a, b, 1.0),
        "one with many": tf.image.ssim(a, b[:, :1], 1.0, filter_size=4),
        "one image": tf.image.ssim(a[0, 0], b[0, 0], 1.0, filter_size=5, filter_sigma=0.7, k1=0.02, k2=0.05),
        "map": tf.image.ssim(a[0], b[0], 1.0, filter_size=10, return_index_map=True),
        "map of one": tf.image.ssim(a[0, 0], b[0, 0], 1.0, filter_size=10, return_index_map=True),
        "small": raises(lambda: tf.image.ssim(a[..., :8, :8, :], b[..., :8, :8, :], 1.0)),
        "different": raises(lambda: tf.image.ssim(a, b[..., :12, :], 1.0)),
    }


@program()
def gradients_of_similarity(tf, np):
    a, b = waves(np, 1, 5, 6, 1), waves(np, 1, 5, 6, 1, phase=0.9)
    return {
        "similarity": derivatives(tf, lambda a, b: tf.image.ssim(a, b, 1.0, filter_size=3), a, b),
        "noise": derivatives(tf, lambda a, b: tf.image.psnr(a, b, 1.0), a, b),
    }


@program(rtol=0.0, atol=0.05)
def images_after_jpeg(tf, np):
    """Within 5 % of the levels: libraries differ in how they round the transform and mix colors."""
    rows, columns = np.meshgrid(np.linspace(0, 1, 16), np.linspace(0, 1, 24), indexing="ij")
    colors = np.stack([rows, columns, 0.5 + 0 * rows], -1).astype(np.float32)
    return [
        tf.image.adjust_jpeg_quality(colors, 90),
        tf.image.adjust_jpeg_quality(colors[..., :1], tf.constant(75)),
    ]


@program()
def qualities_of_jpeg(tf, np):
    x = tf.constant(waves(np, 8, 8, 3))
    tf.random.set_seed(3)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.reduce_sum(tf.image.adjust_jpeg_quality(x, 80))
    return [
        tf.image.random_jpeg_quality(x, 60, 61).shape.as_list(),
        tf.image.random_jpeg_quality(tf.cast(x * 255, tf.uint8), 50, 90, seed=4).dtype.name,
        tf.image.stateless_random_jpeg_quality(x, 75, 95, seed=(1, 2)).dtype.name,
        tape.gradient(y, x),
        raises(lambda: tf.image.random_jpeg_quality(x, 50, 120), containing="jpeg encoding range"),
        raises(lambda: tf.image.random_jpeg_quality(x, 60, 50), containing="must be less than"),
        raises(lambda: tf.image.adjust_jpeg_quality(x, 120), containing="quality must be in"),
    ]
