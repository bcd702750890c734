"""Dataclasses that say what their leaves are, by `__tf_flatten__` and `__tf_unflatten__`."""

from conformance.probes import message
from conformance.program import program


def _classes():
    import dataclasses

    @dataclasses.dataclass
    class Masked:
        mask: bool
        value: object

        def __tf_flatten__(self):
            return (self.mask,), (self.value,)

        @classmethod
        def __tf_unflatten__(cls, metadata, components):
            return cls(metadata[0], components[0])

    @dataclasses.dataclass
    class Plain:
        value: object

    return Masked, Plain


@program()
def structures(tf, np):
    Masked, Plain = _classes()
    masked = Masked(True, tf.constant([1.0, 2.0]))
    doubled = tf.nest.map_structure(lambda x: x * 2.0, masked)
    packed = tf.nest.pack_sequence_as({"a": masked, "b": 0}, [tf.constant(5.0), 6])
    return [
        tf.nest.flatten([masked, {"k": masked}]),
        [doubled.mask, doubled.value],
        [packed["a"].mask, packed["a"].value, packed["b"]],
        [tf.nest.is_nested(masked), tf.nest.is_nested(Plain(1)), len(tf.nest.flatten(Plain(1)))],
        tf.nest.assert_same_structure(masked, Masked(False, 1)),
        message(lambda: tf.nest.assert_same_structure(masked, [1]))["error"],
    ]


@program()
def arguments(tf, np):
    Masked, _ = _classes()
    x = tf.Variable([1.0, 2.0])
    with tf.GradientTape() as tape:
        y = Masked(True, x * x)
    return tape.gradient(y, x)
