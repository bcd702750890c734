"""tf.image: boxes that are drawn around objects, and changes of images that are drawn: numbers and gradients."""

from conformance.probes import gradients, raises
from conformance.program import program


def waves(np, *shape):
    return (np.sin(np.arange(np.prod(shape)) * 0.7 + 0.2) * 0.4 + 0.5).astype(np.float32).reshape(shape)


OBJECTS = [[[0.1, 0.2, 0.6, 0.7], [0.5, 0.5, 1.0, 0.9]]]


@program()
def boxes_around_objects(tf, np):
    tf.random.set_seed(4)
    sample = tf.image.sample_distorted_bounding_box
    return {
        "plain": [sample([60, 80, 3], OBJECTS, seed=2)._asdict() for _ in range(3)],
        "covering": [sample([60, 80, 3], OBJECTS, seed=k, min_object_covered=0.9) for k in range(3, 6)],
        "whole": sample([40, 30, 1], tf.zeros([1, 0, 4]), 7, use_image_if_no_bounding_boxes=True),
        "wide": [
            sample(tf.constant([50, 70, 3], tf.int64), OBJECTS, k, 0.3, [1.5, 2.5], [0.1, 0.4], 20) for k in (8, 9, 10)
        ],
        "never": sample([30, 30, 3], OBJECTS, seed=11, min_object_covered=1.0, area_range=[0.05, 0.06], max_attempts=5),
    }


@program()
def boxes_from_seeds(tf, np):
    sample = tf.image.stateless_sample_distorted_bounding_box
    return [
        [sample([60, 80, 3], OBJECTS, seed=[k, 5], min_object_covered=0.4) for k in range(6)],
        sample([33, 21, 3], OBJECTS, seed=tf.constant([1, 2]), aspect_ratio_range=[0.3, 3.0], area_range=(0.2, 0.9)),
        sample([256, 256, 3], tf.zeros([0, 0, 4]), (7, 8), 0.0, use_image_if_no_bounding_boxes=True).bboxes,
    ]


@program()
def a_box_in_use(tf, np):
    x = waves(np, 12, 14, 3)

    @tf.function
    def cropped(x):
        begin, size, places = tf.image.stateless_sample_distorted_bounding_box(
            tf.shape(x), OBJECTS, seed=[3, 9], min_object_covered=0.5
        )
        crops = tf.image.crop_and_resize(x[None], places[0], [0], [4, 4])
        return crops, begin, size, tf.image.draw_bounding_boxes(x[None], places, [[1.0, 0.0, 0.0]])

    return cropped(x)


@program()
def boxes_that_there_are_not(tf, np):
    sample = tf.image.sample_distorted_bounding_box
    size = [20, 20, 3]
    return [
        raises(lambda: sample(size, tf.zeros([1, 0, 4]), 1), containing="No bounding boxes provided as input"),
        raises(lambda: sample(size, [[[0.0, 0.0, 1.5, 1.0]]], 1), containing="must be in [0.0, 1.0]"),
        raises(lambda: sample([20, 20], OBJECTS, 1), containing="image_size must contain 3 elements"),
        raises(lambda: sample(size, OBJECTS[0], 1), containing="input boxes must be 3-dimensional"),
        raises(lambda: sample(size, OBJECTS, 1, min_object_covered=-1.0), containing="must be non-negative"),
        raises(lambda: sample(size, OBJECTS, 1, aspect_ratio_range=[0.0, 1.0]), containing="Aspect ratio range"),
        raises(lambda: sample(size, OBJECTS, 1, area_range=[0.1, 1.5]), containing="Area range must be"),
        raises(lambda: sample(size, OBJECTS, 1, area_range=[0.1]), containing="must specify 2 dimensions"),
        raises(lambda: sample(size, OBJECTS, 1, max_attempts=0), containing="Max attempts must be"),
    ]


@program()
def gradients_of_changes_that_are_drawn(tf, np):
    x = waves(np, 2, 4, 5, 3)
    image = tf.image
    return {
        "flips": gradients(tf, lambda x: image.stateless_random_flip_left_right(x, [1, 2]), x),
        "up or down": gradients(tf, lambda x: image.stateless_random_flip_up_down(x[0], [4, 1]), x),
        "crop": gradients(tf, lambda x: image.stateless_random_crop(x, [2, 3, 2, 3], [3, 4]), x),
        "brightness": gradients(tf, lambda x: image.stateless_random_brightness(x, 0.4, [5, 6]) ** 2, x),
    }


@program()
def changes_of_a_batch(tf, np):
    """An input pipeline: each image changes on its own."""
    x = waves(np, 3, 6, 6, 3)

    def changed(image, k):
        seed = tf.stack([k, k + 7])
        image = tf.image.stateless_random_flip_left_right(image, seed)
        image = tf.image.stateless_random_crop(image, [4, 4, 3], seed)
        image = tf.image.stateless_random_contrast(image, 0.5, 1.5, seed)
        image = tf.image.stateless_random_saturation(image, 0.6, 1.4, seed)
        return tf.image.stateless_random_hue(image, 0.1, seed)

    return tf.stack([changed(image, k) for k, image in enumerate(tf.unstack(x))])
