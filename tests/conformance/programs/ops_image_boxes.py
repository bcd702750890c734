"""tf.image: crops of boxes, suppression of boxes that overlap, frames and glimpses: values, gradients, refusals."""

from conformance.probes import gradients, raises
from conformance.program import program


def waves(np, *shape):
    return (np.sin(np.arange(np.prod(shape)) * 0.7 + 0.2) * 0.4 + 0.5).astype(np.float32).reshape(shape)


def scattered(np, n, seed=0):
    """Boxes that overlap here and there, with corners in any order, and their scores."""
    random = np.random.default_rng(seed)
    corner, size = random.uniform(0, 1, (n, 2)), random.uniform(0.1, 0.5, (n, 2))
    boxes = np.concatenate([corner, corner + size], 1).astype(np.float32)
    boxes[::3] = boxes[::3][:, [2, 1, 0, 3]]
    return boxes, random.permutation(n).astype(np.float32) / n


BOXES = [[0.1, 0.2, 0.8, 0.9], [0.95, 0.05, 0.3, 0.6], [-0.3, 0.4, 0.55, 1.25]]


@program()
def crops(tf, np):
    x = waves(np, 2, 5, 6, 2)
    crop = tf.image.crop_and_resize
    return {
        "bilinear": crop(x, BOXES, [1, 0, 1], [3, 4]),
        "nearest": crop(x, BOXES, [1, 0, 1], [3, 4], method="nearest"),
        "outside": crop(x, BOXES, tf.constant([0, 1, 1]), tf.constant([2, 3]), extrapolation_value=-1.0),
        "one pixel": crop(x, BOXES, [1, 0, 1], (1, 1)),
        "whole": crop(x, [[0.0, 0.0, 1.0, 1.0]], [1], [5, 6]),
        "none": crop(x, tf.zeros([0, 4]), tf.zeros([0], tf.int32), [2, 2]),
    }


@program()
def crops_of_other_dtypes(tf, np):
    x = waves(np, 1, 4, 4, 1) * 200
    dtypes = (tf.uint8, tf.int32, tf.float16, tf.float64)
    return [tf.image.crop_and_resize(tf.cast(x, dtype), BOXES[:2], [0, 0], [2, 3]) for dtype in dtypes]


@program()
def gradients_of_crops(tf, np):
    x, boxes = waves(np, 2, 5, 6, 2), np.array(BOXES, np.float32)

    def crop(size, **options):
        return gradients(tf, lambda x, b: tf.image.crop_and_resize(x, b, [1, 0, 1], size, **options), x, boxes)

    return {
        "bilinear": crop([3, 4]),
        "nearest": crop([3, 4], method="nearest"),
        "one row": crop([1, 3], extrapolation_value=2.0),
        "one column": crop([2, 1]),
    }


@program(rtol=1e-6)
def gradients_of_crops_of_other_dtypes(tf, np):
    x = waves(np, 1, 4, 4, 1)

    def by_image(dtype):
        source = tf.cast(x, dtype)
        with tf.GradientTape() as tape:
            tape.watch(source)
            y = tf.reduce_sum(tf.image.crop_and_resize(source, BOXES[:2], [0, 0], [2, 3]) ** 2)
        return tape.gradient(y, source)

    return [by_image(dtype) for dtype in (tf.float64, tf.float16, tf.float32)]


@program()
def a_box_that_is_learned(tf, np):
    """A spatial transformer: the place of a box is found by descent."""
    height, width = np.meshgrid(np.linspace(-1, 1, 12), np.linspace(-1, 1, 12), indexing="ij")
    image = np.exp(-3 * ((height - 0.2) ** 2 + (width + 0.1) ** 2)).astype(np.float32)[None, ..., None]
    target = tf.image.crop_and_resize(image, [[0.3, 0.15, 0.9, 0.75]], [0], [6, 6])
    box = tf.Variable([[0.2, 0.25, 0.8, 0.85]])
    losses = []
    for _ in range(15):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((tf.image.crop_and_resize(image, box, [0], [6, 6]) - target) ** 2)
        box.assign_sub(0.4 * tape.gradient(loss, box))
        losses.append(loss)
    return [losses[0], losses[-1], box.value()]


@program()
def crops_that_do_not_fit(tf, np):
    x, crop = waves(np, 1, 4, 4, 1), tf.image.crop_and_resize
    return [
        raises(lambda: crop(x, BOXES, [0, 0], [2, 2]), containing="box_index has incompatible shape"),
        raises(lambda: crop(x, BOXES[:1], [0], [0, 2]), containing="crop dimensions must be positive"),
        raises(lambda: crop(x, BOXES[:1], [0], [2, 2], method="area"), containing="is not in the list of allowed"),
        raises(lambda: crop(x[0], BOXES[:1], [0], [2, 2])),
        raises(lambda: crop(x, [[0.0, 1.0, 1.0]], [0], [2, 2])),
    ]


# ---------------------------------------------------------------------------------------------------------- suppression
@program()
def suppression(tf, np):
    boxes, scores = scattered(np, 30)
    chosen = tf.image.non_max_suppression(boxes, scores, 10, iou_threshold=0.3)
    return {
        "plain": tf.image.non_max_suppression(boxes, scores, 30),
        "few": chosen,
        "of a tensor": tf.image.non_max_suppression(boxes, scores, tf.constant(5), tf.constant(0.1), tf.constant(0.4)),
        "none": tf.image.non_max_suppression(boxes, scores, 30, score_threshold=2.0),
        "strict": tf.image.non_max_suppression(boxes, scores, 30, iou_threshold=0.0),
        "boxes": tf.gather(boxes, chosen),
        "ties": tf.image.non_max_suppression(boxes, np.ones(30, np.float32), 6),
        "half": tf.image.non_max_suppression(tf.cast(boxes, tf.float16), tf.cast(scores, tf.float16), 8),
        "no boxes": tf.image.non_max_suppression(tf.zeros([0, 4]), tf.zeros([0]), 3),
    }


@program()
def soft_suppression(tf, np):
    boxes, scores = scattered(np, 25, 1)
    soft = tf.image.non_max_suppression_with_scores
    return {
        "hard": soft(boxes, scores, 25, iou_threshold=0.2),
        "soft": soft(boxes, scores, 25, soft_nms_sigma=0.5),
        "sharp": soft(boxes, scores, 8, iou_threshold=1.0, score_threshold=0.3, soft_nms_sigma=0.1),
        "tensors": soft(boxes, scores, tf.constant(4), tf.constant(0.5), tf.constant(0.1), tf.constant(0.2)),
    }


@program()
def suppression_by_overlaps(tf, np):
    boxes, scores = scattered(np, 12, 2)
    overlaps = np.exp(-4 * np.abs(boxes[:, None] - boxes[None]).sum(-1)).astype(np.float32)
    return [
        tf.image.non_max_suppression_overlaps(overlaps, scores, 12, 0.3),
        tf.image.non_max_suppression_overlaps(overlaps, scores, 3, overlap_threshold=0.9, score_threshold=0.2),
    ]


@program()
def padded_suppression(tf, np):
    boxes, scores = scattered(np, 20, 3)
    other, of_other = scattered(np, 20, 4)
    both, of_both = tf.stack([boxes, other]), tf.stack([scores, of_other])
    padded = tf.image.non_max_suppression_padded
    ordered = np.argsort(-scores)
    straight = np.concatenate([np.minimum(boxes[:, :2], boxes[:, 2:]), np.maximum(boxes[:, :2], boxes[:, 2:])], 1)
    return {
        "one": padded(tf.constant(straight), tf.constant(scores), 20, 0.3),
        "zeros": padded(tf.constant(straight), tf.constant(scores), 20, 0.3, pad_to_max_output_size=True),
        "two": padded(both, of_both, 6, 0.4, pad_to_max_output_size=True),
        "first": padded(both, of_both, 5, pad_to_max_output_size=True, score_threshold=0.5),
        "in order": padded(
            tf.constant(straight[ordered]),
            tf.constant(scores[ordered]),
            7,
            0.2,
            pad_to_max_output_size=True,
            sorted_input=True,
            canonicalized_coordinates=True,
            tile_size=8,
        ),
        "several": raises(lambda: padded(both, of_both, 6), containing="must be True for batched input"),
    }


@program()
def suppression_of_classes(tf, np):
    boxes, _ = scattered(np, 16, 5)
    other, _ = scattered(np, 16, 6)
    boxes, other = boxes * 1.3 - 0.1, other * 1.3 - 0.1
    scores = (np.random.default_rng(7).permutation(96).reshape(2, 16, 3) / 96).astype(np.float32)
    combined = tf.image.combined_non_max_suppression
    shared = tf.constant(np.stack([boxes, other])[:, :, None])
    own = tf.constant(np.stack([np.stack([boxes, other, boxes[::-1]], 1)] * 2))
    return {
        "shared": combined(shared, scores, 4, 9, 0.3, 0.2),
        "own": combined(own, scores, max_output_size_per_class=3, max_total_size=5, clip_boxes=False)._asdict(),
        "short": combined(shared, scores, 2, 50, pad_per_class=True),
        "long": combined(shared, scores, 2, 8, score_threshold=0.9).valid_detections,
    }


@program()
def suppression_inside_a_function(tf, np):
    boxes, scores = scattered(np, 20, 8)
    weights = tf.Variable(np.linspace(0.5, 1.5, 20), dtype=tf.float32)

    @tf.function
    def loss():
        with tf.GradientTape() as tape:
            weighted = weights * scores
            chosen = tf.image.non_max_suppression(boxes, weighted, 6, 0.2)
            total = tf.reduce_sum(tf.gather(weighted, chosen) ** 2)
        return total, tf.convert_to_tensor(tape.gradient(total, weights))

    return loss()


@program()
def gradients_that_there_are_not(tf, np):
    boxes, scores = scattered(np, 5, 9)

    def outcome(function):
        sources = [tf.constant(boxes), tf.constant(scores)]
        with tf.GradientTape() as tape:
            tape.watch(sources)
            y = tf.cast(function(*sources), tf.float32)
        return tape.gradient(y, sources)

    def refusal(function):
        return raises(lambda: outcome(function), containing="gradient registry has no entry")

    colors = tf.ones([1, 3])
    return {
        "places": outcome(lambda b, s: tf.image.non_max_suppression(b, s, 3)),
        "scores": refusal(lambda b, s: tf.image.non_max_suppression_with_scores(b, s, 3)[1]),
        "combined": refusal(
            lambda b, s: tf.image.combined_non_max_suppression(b[None, :, None], s[None, :, None], 3, 3)[1]
        ),
        "frames": refusal(lambda b, s: tf.image.draw_bounding_boxes(tf.ones([1, 4, 4, 3]) * s[0], b[None], colors)),
        "plain frames": outcome(lambda b, s: tf.image.draw_bounding_boxes(tf.ones([1, 4, 4, 3]) * s[0], b[None], None)),
        "glimpse": refusal(lambda b, s: tf.image.extract_glimpse(tf.ones([1, 4, 4, 3]) * s[0], [2, 2], [[0.0, 0.0]])),
    }


@program()
def suppression_that_does_not_fit(tf, np):
    boxes, scores = scattered(np, 4)
    one = tf.constant(boxes)[None, :, None]
    of_one = tf.constant(scores)[None, :, None]
    suppression = tf.image.non_max_suppression
    return [
        raises(lambda: suppression(boxes, scores, -1), containing="output size must be non-negative"),
        raises(lambda: suppression(boxes, scores, 2, iou_threshold=1.5), containing="iou_threshold must be in [0, 1]"),
        raises(lambda: suppression(boxes, scores[:2], 2), containing="scores has incompatible shape"),
        raises(lambda: suppression(boxes[:, :3], scores, 2), containing="must"),
        raises(lambda: tf.image.combined_non_max_suppression(one, of_one, 2, 0), containing="max_total_size must be"),
    ]


# ---------------------------------------------------------------------------------------------------- frames, glimpses
@program()
def frames(tf, np):
    x = waves(np, 2, 7, 6, 3)
    boxes = np.array([[BOXES[0], BOXES[2]], [[0.2, -0.5, 0.6, 0.4], [0.0, 0.0, 1.0, 1.0]]], np.float32)
    colors = [[1.0, 0.0, 0.5], [0.2, 0.9, 0.1]]
    return {
        "colors": tf.image.draw_bounding_boxes(x, boxes, colors),
        "turned": tf.image.draw_bounding_boxes(x, boxes[..., [2, 1, 0, 3]], colors),
        "plain": tf.image.draw_bounding_boxes(x[:1], boxes[:1], None),
        "gray": tf.image.draw_bounding_boxes(x[..., :1], boxes, None),
        "half": tf.image.draw_bounding_boxes(tf.cast(x[:1], tf.float16), boxes[:1], colors[:1]),
        "far": tf.image.draw_bounding_boxes(x[:1, ..., :1], [[[1.5, 1.5, 2.0, 2.0]]], [[1.0]]),
    }


@program()
def glimpses(tf, np):
    x = waves(np, 2, 5, 6, 2)

    def glimpse(*offsets, **options):
        return tf.image.extract_glimpse(x, [3, 2], offsets, noise="zero", **options)

    return {
        "middle": glimpse([0.0, 0.0], [0.4, -0.3]),
        "outside": glimpse([1.0, -1.0], [2.5, 0.1]),
        "corner": glimpse([0.1, 0.5], [-0.3, 0.2], centered=False),
        "pixels": glimpse([1.0, 2.6], [-1.0, 4.0], centered=False, normalized=False),
        "pixels from the middle": glimpse([0.0, -2.0], [1.0, 5.0], normalized=False),
        "inside a noise": tf.image.extract_glimpse(x, [2, 2], [[0.0, 0.0], [0.1, 0.1]], noise="gaussian"),
        "another": raises(lambda: tf.image.extract_glimpse(x, [2, 2], [[0.0, 0.0]] * 2, noise="pink"), "noise"),
    }
