"""tf.image: sizes, places, colours and measures: values and gradients, dtypes, refusals."""

from conformance.probes import derivatives, raises
from conformance.program import program


def waves(np, *shape):
    return (np.sin(np.arange(np.prod(shape)) * 0.7 + 0.2) * 0.4 + 0.5).astype(np.float32).reshape(shape)


def gradient(tf, function, x):
    variable = tf.Variable(x)
    with tf.GradientTape() as tape:
        y = function(variable)
        z = tf.reduce_sum(y**2)
    return [y, tape.gradient(z, variable)]


@program()
def resizing(tf, np):
    many = waves(np, 2, 4, 5, 3)
    images = {"smaller": many}
    sizes = {"larger": [7, 9], "smaller": [3, 2], "mixed": [6, 4], "one": [1, 1], "double": [8, 10]}
    methods = ("bilinear", "nearest", "bicubic", "area", "lanczos3", "lanczos5", "gaussian", "mitchellcubic")

    def resized(name, method):
        x = images.get(name, many[1:, ..., 2:])
        return [tf.image.resize(x, sizes[name], method), tf.image.resize(x, sizes[name], method=method, antialias=True)]

    return {method: {name: resized(name, method) for name in sizes} for method in methods}


@program()
def gradients_of_resizing(tf, np):
    x = waves(np, 1, 4, 5, 2)
    return {
        "bilinear": gradient(tf, lambda x: tf.image.resize(x, [7, 3]), x),
        "nearest": gradient(tf, lambda x: tf.image.resize(x, [6, 10], "nearest"), x),
        "bicubic": gradient(tf, lambda x: tf.image.resize(x, [7, 3], tf.image.ResizeMethod.BICUBIC), x),
        "antialias": gradient(tf, lambda x: tf.image.resize(x, [2, 3], antialias=True), x),
        "lanczos": gradient(tf, lambda x: tf.image.resize(x, [3, 8], "lanczos3"), x),
    }


@program()
def resizing_of_other_dtypes_and_ranks(tf, np):
    whole = tf.reshape(tf.range(48, dtype=tf.int32), [4, 4, 3])
    return [
        tf.image.resize(tf.cast(whole, tf.uint8), [2, 3]),
        tf.image.resize(tf.cast(whole, tf.uint8), [2, 3], method="nearest"),
        tf.image.resize(tf.cast(whole, tf.float64), [5, 5]),
        tf.image.resize(tf.cast(whole, tf.float16), (3, 2)),
        tf.image.resize(whole, [4, 4]),
        tf.image.resize(tf.cast(whole, tf.float64), [4, 4]),
        tf.image.resize(waves(np, 1, 4, 8, 1), [6, 6], preserve_aspect_ratio=True),
        tf.image.resize(waves(np, 3, 7, 1), tf.constant([9, 10]), preserve_aspect_ratio=True),
        raises(lambda: tf.image.resize(waves(np, 3, 3), [2, 2]), containing="must have either 3 or 4 dimensions"),
        raises(lambda: tf.image.resize(waves(np, 3, 3, 1), [2, 2, 2])),
        raises(lambda: tf.image.resize(waves(np, 3, 3, 1), [2, 2], method="best"), containing="is not implemented"),
    ]


@program()
def padding_and_cutting(tf, np):
    x, images = waves(np, 4, 5, 2), waves(np, 2, 4, 6, 1)
    image = tf.image
    return [
        gradient(tf, lambda x: image.crop_to_bounding_box(x, 1, 2, 2, 3), x),
        image.crop_to_bounding_box(images, 0, 1, 4, 2),
        gradient(tf, lambda x: image.pad_to_bounding_box(x, 1, 2, 6, 9), x),
        image.central_crop(x, 0.5),
        image.central_crop(images, 0.6),
        image.central_crop(images, 1.0),
        image.resize_with_crop_or_pad(x, 2, 8),
        image.resize_with_crop_or_pad(images, 7, 3),
        image.resize_with_pad(x, 6, 6),
        image.resize_with_pad(images, 3, 8, method="nearest"),
        image.resize_with_pad(images, 5, 5, antialias=True),
        raises(lambda: image.crop_to_bounding_box(x, 1, 2, 4, 3), containing="height must be >= target + offset"),
        raises(lambda: image.pad_to_bounding_box(x, 1, 2, 3, 9), containing="height must be <= target - offset"),
        raises(lambda: image.central_crop(x, 0.0)),
        raises(lambda: image.flip_left_right(waves(np, 3, 3))),
    ]


@program()
def turning(tf, np):
    x, images = waves(np, 3, 4, 2), waves(np, 2, 2, 3, 1)
    return [
        [gradient(tf, flip, x), flip(images)]
        for flip in (
            tf.image.flip_left_right,
            tf.image.flip_up_down,
            tf.image.transpose,
            tf.image.rot90,
            lambda x: tf.image.rot90(x, 2),
            lambda x: tf.image.rot90(x, k=3),
        )
    ] + [tf.image.rot90(x, 4), tf.image.rot90(images, -1)]


@program()
def conversions(tf, np):
    floats = np.array([[[0.0], [0.2]], [[0.5], [1.0]]], np.float32)
    whole = np.array([[[0], [10]], [[128], [255]]], np.uint8)
    convert = tf.image.convert_image_dtype
    return [
        [convert(floats, dtype) for dtype in (tf.uint8, tf.float64, tf.int32, tf.uint16)],
        [convert(whole, dtype) for dtype in (tf.float32, tf.float16, tf.uint16, tf.int32, tf.int8)],
        convert(floats * 1.5 - 0.2, tf.uint8, saturate=True),
        convert(tf.constant([[[300]], [[70000]]], tf.int32), tf.uint8, saturate=True),
        gradient(tf, lambda x: convert(x, tf.float64), floats),
        raises(lambda: convert(floats, tf.bool)),
    ]


@program()
def colours(tf, np):
    x = waves(np, 2, 3, 3)
    whole = (x * 255).astype(np.uint8)
    image = tf.image
    changes = {
        "brightness": lambda x: image.adjust_brightness(x, 0.2),
        "contrast": lambda x: image.adjust_contrast(x, 1.7),
        "saturation": lambda x: image.adjust_saturation(x, 0.6),
        "hue": lambda x: image.adjust_hue(x, 0.3),
        "hue, back": lambda x: image.adjust_hue(x, -0.4),
        "gamma": lambda x: image.adjust_gamma(x, 2.0, 0.9),
        "gray": image.rgb_to_grayscale,
    }
    wide = {name: changes[name](x.astype(np.float64)) for name in ("brightness", "gray")}
    return [wide, {name: [change(x), change(whole)] for name, change in changes.items()}]


@program()
def colours_that_have_gradients(tf, np):
    x = waves(np, 2, 3, 3)
    return [
        gradient(tf, lambda x: tf.image.adjust_brightness(x, 0.2), x),
        gradient(tf, lambda x: tf.image.adjust_gamma(x, 2.0), x),
        gradient(tf, tf.image.rgb_to_grayscale, x),
        gradient(tf, tf.image.rgb_to_hsv, x),
        tf.image.hsv_to_rgb(x),
        tf.image.hsv_to_rgb(tf.image.rgb_to_hsv(x)),
        tf.image.rgb_to_hsv(tf.constant([[[0.0, 0.0, 0.0], [1.0, 1.0, 1.0], [0.3, 0.3, 0.1], [0.2, 0.1, 0.9]]])),
        gradient(tf, tf.image.grayscale_to_rgb, waves(np, 2, 2, 1)),
        gradient(tf, tf.image.per_image_standardization, x),
        tf.image.per_image_standardization(tf.fill([2, 2, 2, 1], 3)),
        raises(lambda: tf.image.adjust_hue(x, 2.0)),
        raises(lambda: tf.image.adjust_gamma(x, -1.0), containing="non-negative real number"),
    ]


@program()
def measures(tf, np):
    a, b = waves(np, 2, 12, 12, 1), waves(np, 2, 12, 12, 1)[:, ::-1]
    whole = (a * 255).astype(np.uint8)
    return [
        derivatives(tf, tf.image.total_variation, waves(np, 1, 3, 4, 2)),
        tf.image.total_variation(tf.constant(a[0])),
        gradient(tf, tf.image.sobel_edges, waves(np, 1, 3, 4, 2)),
        tf.image.image_gradients(tf.constant(waves(np, 1, 3, 4, 2))),
        gradient(tf, lambda x: tf.image.psnr(x, b, max_val=1.0), a),
        tf.image.psnr(whole, whole[:, ::-1], max_val=255),
        gradient(tf, lambda x: tf.image.ssim(x, b, max_val=1.0), a),
        tf.image.ssim(whole, whole[:, ::-1], 255),
        tf.image.ssim(a[0], b[0], 1.0, filter_size=5, filter_sigma=1.0, k1=0.02),
        tf.image.ssim(a, b, 1.0, return_index_map=True),
    ]


@program()
def random_changes(tf, np):
    x, images, seed = waves(np, 4, 4, 3), waves(np, 6, 3, 3, 3), (3, 9)
    image = tf.image

    def either(result, source, flip):
        flipped, numbers = flip(source).numpy(), result.numpy()
        if source.ndim == 3:
            return bool(np.array_equal(numbers, source) or np.array_equal(numbers, flipped))
        return all(np.array_equal(n, s) or np.array_equal(n, f) for n, s, f in zip(numbers, source, flipped))

    crop = image.random_crop(x, [2, 3, 3])
    same = image.stateless_random_crop(x, [2, 3, 3], seed=seed).numpy()
    inside = any(np.array_equal(crop, x[i : i + 2, j : j + 3]) for i in range(3) for j in range(2))
    return [
        [either(image.random_flip_left_right(y), y, image.flip_left_right) for y in (x, images)],
        [either(image.stateless_random_flip_up_down(y, seed), y, image.flip_up_down) for y in (x, images)],
        inside,
        bool(np.array_equal(same, image.stateless_random_crop(x, [2, 3, 3], seed=seed))),
        [
            change.shape
            for change in (
                image.random_brightness(x, 0.2),
                image.random_contrast(x, 0.5, 1.5),
                image.random_saturation(x, 0.5, 1.5),
                image.random_hue(x, 0.2),
                image.stateless_random_brightness(x, 0.2, seed),
                image.stateless_random_contrast(x, 0.5, 1.5, seed),
                image.stateless_random_saturation(x, 0.5, 1.5, seed),
                image.stateless_random_hue(x, 0.2, seed),
            )
        ],
        raises(lambda: image.random_contrast(x, 1.5, 0.5), containing="upper must be > lower."),
        raises(lambda: image.random_brightness(x, -0.5), containing="max_delta must be non-negative."),
        raises(lambda: image.random_crop(x, [5, 2, 3]).numpy()),
    ]


@program()
def projective_transforms(tf, np):
    x = waves(np, 2, 4, 5, 2)
    turn = [[0.8, 0.5, -0.7, -0.4, 0.9, 1.3, 0.0, 0.0], [1.2, 0.1, -8.3, 0.2, 0.7, 9.4, 0.02, -0.01]]

    def transformed(x, transforms, shape, fill, method, mode):
        return tf.raw_ops.ImageProjectiveTransformV3(
            images=x,
            transforms=tf.constant(transforms, tf.float32),
            output_shape=tf.constant(shape),
            fill_value=fill,
            interpolation=method,
            fill_mode=mode,
        )

    return {
        f"{method} {mode}": [
            transformed(x, turn, [4, 5], 0.25, method, mode),
            transformed(x, turn[1:], [3, 6], 0.0, method, mode),
            transformed((x * 255).astype(np.uint8), turn, [4, 5], 7.0, method, mode),
        ]
        for method in ("NEAREST", "BILINEAR")
        for mode in ("CONSTANT", "REFLECT", "WRAP", "NEAREST")
    }


@program()
def luma_and_colour_differences(tf, np):
    x = tf.constant(waves(np, 2, 3, 3) * 0.5 + 0.5)
    results = {}
    for name in ("rgb_to_yuv", "yuv_to_rgb", "rgb_to_yiq", "yiq_to_rgb"):
        function = getattr(tf.image, name)
        results[name] = [function(tf.cast(x[0], tf.float64)), gradient(tf, function, x)]
    return results
