"""Ops with no gradient registered (an error that names the op) and ops declared to have none (None)."""

from conformance.probes import message, raises
from conformance.program import program

IMAGE = [[[0.1, 0.9, 0.4]], [[0.8, 0.2, 0.6]]]


@program()
def no_gradient_is_registered(tf, np):
    image = tf.Variable(IMAGE)
    with tf.GradientTape() as tape:
        y = tf.image.adjust_contrast(image, 1.5)
    return [y, message(lambda: tape.gradient(y, image))]


@program()
def with_respect_to_the_factor(tf, np):
    factor = tf.Variable(1.5)
    with tf.GradientTape() as tape:
        y = tf.image.adjust_contrast(tf.constant(IMAGE), factor)
    return message(lambda: tape.gradient(y, factor))


@program()
def in_the_middle_of_a_path(tf, np):
    image = tf.Variable(IMAGE)
    with tf.GradientTape() as tape:
        y = tf.reduce_sum(tf.image.adjust_contrast(image * 2.0, 1.5) ** 2)
    return message(lambda: tape.gradient(y, image))


@program()
def off_the_path_to_the_source(tf, np):
    image, w = tf.Variable(IMAGE), tf.Variable(3.0)
    with tf.GradientTape() as tape:
        y = tf.reduce_sum(tf.image.adjust_contrast(image, 1.5)) * w
    return message(lambda: tape.gradient(y, w))


@program()
def not_needed_by_the_target(tf, np):
    image, w = tf.Variable(IMAGE), tf.Variable(3.0)
    with tf.GradientTape() as tape:
        seen = tf.image.adjust_contrast(image, 1.5)
        y = w * w
    return [seen.shape, tape.gradient(y, w)]


@program()
def of_something_unwatched(tf, np):
    w = tf.Variable(3.0)
    with tf.GradientTape() as tape:
        y = tf.reduce_sum(tf.image.adjust_contrast(tf.constant(IMAGE), 1.5)) * w
    return tape.gradient(y, w)


@program()
def behind_stop_gradient(tf, np):
    image, w = tf.Variable(IMAGE), tf.Variable(3.0)
    with tf.GradientTape() as tape:
        y = tf.reduce_sum(tf.stop_gradient(tf.image.adjust_contrast(image, 1.5))) * w
    return tape.gradient(y, [w, image])


@program()
def the_next_tape_is_not_harmed(tf, np):
    image = tf.Variable(IMAGE)
    with tf.GradientTape() as tape:
        y = tf.image.adjust_contrast(image, 1.5)
    first = message(lambda: tape.gradient(y, image))
    with tf.GradientTape() as tape:
        y = image * 2.0
    return [first, tape.gradient(y, image)]


@program(fresh=True)
def declared_before(tf, np):
    tf.no_gradient("AdjustContrastv2")
    image = tf.Variable(IMAGE)
    with tf.GradientTape(persistent=True) as tape:
        y = tf.image.adjust_contrast(image, 1.5)
        z = tf.reduce_sum(y * image)
    return [tape.gradient(y, image), tape.gradient(z, image)]


@program(fresh=True)
def declared_after_the_forward_pass(tf, np):
    image = tf.Variable(IMAGE)
    with tf.GradientTape() as tape:
        y = tf.image.adjust_contrast(image, 1.5)
        z = y * image
    tf.no_gradient("AdjustContrastv2")
    return tape.gradient(z, image)


@program(fresh=True)
def declared_twice(tf, np):
    tf.no_gradient("AnOpOfMine")
    again = "Registering two gradient with name 'AnOpOfMine'!"
    known = "Registering two gradient with name 'Tanh'!"
    return [raises(lambda: tf.no_gradient("AnOpOfMine"), again), raises(lambda: tf.no_gradient("Tanh"), known)]


@program(fresh=True)
def declared_with_something_else(tf, np):
    return [message(lambda: tf.no_gradient(3)), message(lambda: tf.no_gradient(None))]
