"""Programs on segments, partitions and running totals: graphs, experts, returns, risk sets, whole numbers."""

from conformance.probes import derivatives, gradients, raises
from conformance.program import program


def waves(np, *shape, phase=0.2):
    return np.sin(np.arange(np.prod(shape)) * 0.7 + phase).astype(np.float32).reshape(shape)


@program()
def messages_on_a_graph(tf, np):
    senders, receivers = tf.constant([0, 1, 2, 2, 3]), tf.constant([1, 2, 0, 1, 1])

    def layer(nodes, weights):
        messages = tf.tanh(tf.gather(nodes, senders, axis=0) @ weights)
        mean = tf.math.unsorted_segment_mean(messages, receivers, 4)
        peak = tf.math.unsorted_segment_max(messages, receivers, 4)
        reached = tf.math.unsorted_segment_sum(tf.ones_like(messages), receivers, 4) > 0
        return mean + tf.where(reached, peak, 0.0) + tf.math.unsorted_segment_sqrt_n(messages, receivers, 4)

    return derivatives(tf, layer, waves(np, 4, 2), waves(np, 2, 3, phase=0.7))


@program()
def a_softmax_over_segments(tf, np):
    ids = tf.constant([0, 0, 0, 2, 2])

    def softmax(x):
        shifted = x - tf.gather(tf.stop_gradient(tf.math.segment_max(x, ids)), ids)
        powers = tf.exp(shifted)
        return powers / tf.gather(tf.math.segment_sum(powers, ids), ids)

    return derivatives(tf, lambda x: softmax(x) ** 2, waves(np, 5))


@program()
def segments_of_every_kind(tf, np):
    x = waves(np, 5, 2) + 1.5
    return {
        how: [
            derivatives(tf, lambda x, f=getattr(tf.math, f"segment_{how}"): f(x, [0, 0, 1, 3, 3]) ** 2, x),
            gradients(tf, lambda x, f=getattr(tf.math, f"unsorted_segment_{how}"): f(x, [2, 0, -1, 2, 0], 3) ** 2, x),
        ]
        for how in ("sum", "mean", "prod", "max", "min")
    }


@program()
def segments_of_whole_and_complex_numbers(tf, np):
    whole = tf.constant([-5, -2, 7, 9], tf.int64)
    z = np.array([1 + 2j, -0.5 + 1j, 0.3 - 2j], np.complex64)
    return {
        "means": [
            tf.math.segment_mean(whole, [0, 0, 2, 2]),
            tf.math.segment_mean(tf.constant([[5, 250], [2, 3]], tf.uint8), [0, 0]),
            tf.math.segment_mean(z, [0, 0, 2]),
        ],
        "products": [
            tf.math.segment_prod(z, [0, 0, 0]),
            tf.math.unsorted_segment_prod(z, [1, 0, 1], 2),
        ],
        "sums": gradients(tf, lambda z: tf.abs(tf.math.unsorted_segment_sum(z, [1, -1, 1], 2)), z[:3]),
        "extremes": [tf.math.segment_max(whole, [0, 0, 2, 2]), tf.math.segment_min(whole, [1, 1, 1, 1])],
        "refused": [
            raises(lambda: tf.math.segment_sum(whole, [0, 1, 0, 2])),
            raises(lambda: tf.math.segment_mean(whole, [0, 1])),
            raises(lambda: tf.math.unsorted_segment_sum(whole, [0, 1, 5, 0], 3)),
            raises(lambda: tf.math.unsorted_segment_prod(whole, [0, 1, 0, 0], -1)),
        ],
    }


@program()
def a_mixture_of_experts(tf, np):
    x = waves(np, 5, 3)

    def routed(x, w):
        expert = tf.argmax(x, 1, output_type=tf.int32)
        parts = tf.dynamic_partition(x, expert, 3)
        places = tf.dynamic_partition(tf.range(5), expert, 3)
        results = [tf.tanh(part @ w[i]) for i, part in enumerate(parts)]
        return tf.dynamic_stitch(places, results) * tf.reduce_max(tf.nn.softmax(x), 1, keepdims=True)

    return derivatives(tf, routed, x, waves(np, 3, 3, 2, phase=0.4))


@program()
def parts_put_together(tf, np):
    x, y = waves(np, 2, 3), waves(np, 1, 3)
    return {
        "holes": gradients(tf, lambda a, b: tf.dynamic_stitch([[4, 0], [2]], [a, b]) ** 2, x, y),
        "strings": tf.dynamic_stitch([[2], [0]], [["b"], ["a"]]),
        "matrix": derivatives(tf, lambda x: tf.dynamic_partition(x, [[1, 0, 1], [0, 0, 1]], 2)[1] ** 2, x),
        "empty": tf.dynamic_partition(x, [1, 1], 3),
        "refused": [
            raises(lambda: tf.dynamic_partition(x, [0, 1], 0)),
            raises(lambda: tf.dynamic_stitch([[0], [1]], [[1.0], [[2.0]]])),
        ],
    }


@program()
def discounted_returns(tf, np):
    rewards = waves(np, 2, 5)

    def advantages(rewards, values, discount):
        powers = tf.math.cumprod(tf.fill([5], discount), exclusive=True)
        returns = tf.cumsum(rewards * powers, axis=1, reverse=True) / powers
        return (returns - values) ** 2

    return derivatives(tf, advantages, rewards, waves(np, 2, 5, phase=1.0), 0.9)


@program()
def a_partial_likelihood(tf, np):
    events = [1.0, 0.0, 1.0, 1.0, 0.0]

    def likelihood(risk):
        return (risk - tf.math.cumulative_logsumexp(risk, reverse=True)) * events

    return {
        "derivatives": derivatives(tf, likelihood, waves(np, 5) * 3.0),
        "exclusive": gradients(tf, lambda x: tf.math.cumulative_logsumexp(x, exclusive=True)[1:], waves(np, 4)),
        "large": tf.math.cumulative_logsumexp([800.0, 801.0, -900.0]),
    }


@program()
def running_products(tf, np):
    x = np.array([[2.0, 0.25, 3.0], [0.5, -1.0, 1.5]], np.float32)
    modes = [(exclusive, reverse) for exclusive in (False, True) for reverse in (False, True)]
    return {
        "products": [
            gradients(tf, lambda x, e=e, r=r: tf.math.cumprod(x, 1, exclusive=e, reverse=r), x) for e, r in modes
        ],
        "sums": [derivatives(tf, lambda x, e=e, r=r: tf.cumsum(x, -1, e, r) ** 2, x[1]) for e, r in modes],
        "wrapped": tf.cumsum(tf.constant([200, 100], tf.uint8)),
        "bad": [raises(lambda: tf.cumsum(x, 2)), raises(lambda: tf.math.cumprod(3.0))],
    }
