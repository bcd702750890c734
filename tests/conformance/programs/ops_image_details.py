"""tf.image: options, ranks and dtypes at their edges: values, second gradients, refusals."""

from conformance.probes import derivatives, gradients, raises
from conformance.program import program


def waves(np, *shape, phase=0.2):
    return (np.sin(np.arange(np.prod(shape)) * 0.7 + phase) * 0.4 + 0.5).astype(np.float32).reshape(shape)


METHODS = ("bilinear", "nearest", "bicubic", "area", "lanczos3", "lanczos5", "gaussian", "mitchellcubic")


@program()
def gradients_of_every_method(tf, np):
    x = waves(np, 1, 4, 5, 1)
    return {
        method: [
            gradients(tf, lambda x, m=method, a=a: tf.image.resize(x, [3, 7], m, antialias=a), x) for a in (False, True)
        ]
        for method in METHODS
        if method != "area"
    }


@program()
def the_ratio_of_sides(tf, np):
    x = waves(np, 2, 5, 8, 1)

    def resized(size, **options):
        return tf.image.resize(x, size, preserve_aspect_ratio=True, **options)

    return {
        "wide": resized([9, 9]),
        "high": resized([20, 4], method="nearest"),
        "gradient": gradients(tf, lambda x: tf.image.resize(x, [4, 4], preserve_aspect_ratio=True, antialias=True), x),
        "same": resized([5, 8]),
        "one": resized([1, 20]),
    }


@program()
def padding_with_the_ratio_of_sides(tf, np):
    x, images = waves(np, 3, 5, 2), waves(np, 2, 6, 3, 1)
    pad = tf.image.resize_with_pad
    return {
        "gradients": [
            gradients(tf, lambda x: pad(x, 4, 9), x),
            gradients(tf, lambda x: pad(x, 5, 4, "bicubic"), images),
        ],
        "odd": pad(x, 7, 8, method="gaussian", antialias=True),
        "whole": pad(tf.cast(images * 9, tf.uint8), 4, 4, method="nearest"),
        "floats": pad(tf.cast(images * 9, tf.uint8), 4, 4),
        "bad": raises(lambda: pad(x, 0, 3), containing="target_height must be > 0"),
        "worse": raises(lambda: pad(x, 3, -1), containing="target_width must be > 0"),
    }


@program()
def cutting_or_padding(tf, np):
    x, images = waves(np, 5, 4, 2), waves(np, 2, 3, 6, 1)
    both = tf.image.resize_with_crop_or_pad
    return {
        "gradients": [gradients(tf, lambda x: both(x, 4, 7), x), gradients(tf, lambda x: both(x, 6, 3), images)],
        "odd": [both(x, 2, 1), both(x, 8, 9), both(images, tf.constant(4), tf.constant(5))],
        "crop": gradients(tf, lambda x: tf.image.crop_to_bounding_box(x, 1, 0, 2, 5), images),
        "pad": gradients(tf, lambda x: tf.image.pad_to_bounding_box(x, 1, 0, 5, 8), images),
        "centre": [gradients(tf, lambda x: tf.image.central_crop(x, 0.5), x), tf.image.central_crop(images, 0.3)],
        "bad": raises(lambda: both(x, 0, 3), containing="target_height must be > 0"),
        "rank": raises(lambda: both(x[0], 2, 3)),
        "offset": raises(lambda: tf.image.pad_to_bounding_box(x, -1, 0, 8, 8), containing="offset_height must be >= 0"),
        "width": raises(
            lambda: tf.image.pad_to_bounding_box(x, 0, 3, 8, 5), containing="width must be <= target - off"
        ),
        "left": raises(lambda: tf.image.crop_to_bounding_box(x, 0, -1, 2, 2), containing="offset_width must be >= 0"),
        "nothing": raises(lambda: tf.image.crop_to_bounding_box(x, 0, 0, 0, 2), containing="target_height must be > 0"),
        "fraction": raises(lambda: tf.image.central_crop(x, 1.5), containing="central_fraction must be within"),
    }


@program()
def turning_many(tf, np):
    images = waves(np, 2, 2, 3, 1)
    return {
        "quarters": [tf.image.rot90(images, k) for k in (0, 1, 2, 3, 5, -2)],
        "gradients": [gradients(tf, lambda x, k=k: tf.image.rot90(x, k), images) for k in (1, 2, 3)],
        "whole": [turn(tf.cast(images * 50, tf.uint8)) for turn in (tf.image.flip_up_down, tf.image.transpose)],
        "flips": [gradients(tf, flip, images) for flip in (tf.image.flip_left_right, tf.image.flip_up_down)],
        "rank": [raises(lambda: turn(images[0, 0])) for turn in (tf.image.rot90, tf.image.transpose)],
        "more": raises(lambda: tf.image.flip_up_down(images[None])),
    }


@program()
def measures_of_pairs(tf, np):
    a, b = waves(np, 2, 3, 4, 2), waves(np, 2, 3, 4, 2, phase=1.1)
    return {
        "psnr": derivatives(tf, lambda a, b: tf.image.psnr(a, b, 1.0), a, b),
        "psnr of bytes": tf.image.psnr(tf.cast(a * 255, tf.uint8), tf.cast(b * 255, tf.uint8), 255),
        "psnr of the same": tf.image.psnr(a, a, 1.0),
        "psnr of one with many": tf.image.psnr(a, b[:1], 2.0),
        "psnr of halves": tf.image.psnr(tf.cast(a, tf.float16), tf.cast(b, tf.float16), 1.0),
        "variation": derivatives(tf, lambda x: tf.image.total_variation(x) ** 2, a),
        "variation of one": gradients(tf, tf.image.total_variation, a[0]),
        "variation of whole": tf.image.total_variation(tf.cast(a * 20, tf.int32)),
        "gradients": gradients(tf, lambda x: tf.stack(tf.image.image_gradients(x)), a),
        "edges": derivatives(tf, lambda x: tf.image.sobel_edges(x) ** 2, a[:1]),
        "edges of doubles": tf.image.sobel_edges(tf.cast(a[:1], tf.float64)),
        "rank of gradients": raises(lambda: tf.image.image_gradients(tf.constant(a[0]))),
        "rank of variation": raises(lambda: tf.image.total_variation(tf.constant(a[0, 0]))),
    }


@program()
def standard_images(tf, np):
    x = waves(np, 2, 3, 4, 2)
    standard = tf.image.per_image_standardization
    return {
        "gradients": [derivatives(tf, standard, x[0]), gradients(tf, standard, x)],
        "flat": derivatives(tf, standard, np.full((2, 2, 1), 0.3, np.float32)),
        "dtypes": [standard(tf.cast(x[0] * 99, dtype)) for dtype in (tf.uint8, tf.int32, tf.float16, tf.float64)],
        "rank": raises(lambda: standard(tf.constant(x[0, 0]))),
    }


@program()
def colours_of_other_dtypes(tf, np):
    x = waves(np, 2, 2, 3)
    image = tf.image
    spaces = {name: getattr(image, name) for name in ("rgb_to_hsv", "hsv_to_rgb", "rgb_to_yuv", "yiq_to_rgb")}
    return {
        "spaces": {
            name: [function(tf.cast(x, dtype)) for dtype in (tf.float16, tf.float64)]
            for name, function in spaces.items()
        },
        "second": {
            name: derivatives(tf, lambda x, f=spaces[name]: f(x) ** 2, x) for name in ("rgb_to_yuv", "yiq_to_rgb")
        },
        "contrast": [
            image.adjust_contrast(tf.cast(x * k, dtype), 0.4) for dtype, k in ((tf.uint8, 200), (tf.int16, 99))
        ],
        "brightness": [image.adjust_brightness(tf.cast(x * 99, dtype), 0.2) for dtype in (tf.uint8, tf.int16)],
        "gray": [image.rgb_to_grayscale(tf.cast(x * 99, dtype)) for dtype in (tf.uint8, tf.float16, tf.int32)],
        "colors": image.grayscale_to_rgb(tf.cast(x[..., :1] * 99, tf.uint8)),
        "gamma": [
            image.adjust_gamma(tf.cast(x * 99, tf.uint8), 0.5),
            image.adjust_gamma(x, 2, 0.5),
        ],
        "channels": [raises(lambda: spaces[name](x[..., :2])) for name in ("rgb_to_hsv", "hsv_to_rgb")],
        "not gray": raises(lambda: image.grayscale_to_rgb(tf.constant(x))),
    }


@program(rtol=1e-5, atol=1e-6)
def hues_of_other_dtypes(tf, np):
    x, image = waves(np, 2, 2, 3), tf.image
    return {
        "hue": [image.adjust_hue(tf.cast(x * k, dtype), -0.3) for dtype, k in ((tf.uint8, 200), (tf.float64, 1))],
        "saturation": [
            image.adjust_saturation(tf.cast(x * k, dtype), 2.5) for dtype, k in ((tf.uint8, 200), (tf.float64, 1))
        ],
    }


@program()
def patches_at_their_edges(tf, np):
    x = waves(np, 1, 5, 6, 2)
    patches = tf.image.extract_patches
    return {
        "rates": derivatives(tf, lambda x: patches(x, [1, 2, 2, 1], [1, 2, 1, 1], [1, 2, 3, 1], "SAME") ** 2, x),
        "whole": patches(tf.cast(x * 50, tf.int32), [1, 3, 2, 1], [1, 1, 2, 1], [1, 1, 1, 1], "VALID"),
        "large": patches(x, [1, 7, 7, 1], [1, 1, 1, 1], [1, 1, 1, 1], "SAME"),
        "rank": raises(lambda: patches(x[0], [1, 2, 2, 1], [1, 1, 1, 1], [1, 1, 1, 1], "SAME")),
    }


@program()
def sizes_that_are_kept(tf, np):
    image = tf.constant(waves(np, 5, 4, 2), tf.float32)
    methods = ("bilinear", "nearest", "bicubic", "area", "lanczos3", "lanczos5", "gaussian", "mitchellcubic")
    return {method: tf.image.resize(image, [5, 4], method=method) for method in methods}


@program()
def hues_where_channels_are_equal_or_zero(tf, np):
    colours = [[1.0, 1.0, 0.5], [0.5, 0.5, 0.5], [0.0, 0.0, 0.0], [0.2, 0.7, 0.7], [0.9, 0.1, 0.9], [1.0, 0.0, 0.0]]
    return gradients(tf, tf.image.rgb_to_hsv, colours)


@program()
def gray_levels_of_a_png(tf, np):
    colours = (np.arange(120) * 37 % 256).astype(np.uint8)
    return [tf.io.decode_png(tf.io.encode_png(colours.reshape(shape)), channels=1) for shape in ([5, 8, 3], [5, 6, 4])]
