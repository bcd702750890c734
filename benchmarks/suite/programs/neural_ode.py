"""A neural ODE: Runge-Kutta steps in a while loop, and the loss's gradient by the weights of the right-hand side.

With `adaptive`, an embedded pair chooses its steps, so values decide how many iterations there are.
"""

import numpy as np

SMALL = {"batch": 2, "width": 4, "steps": 3}


def inputs(batch, width=32, steps=20, adaptive=False):
    random = np.random.default_rng(0)
    shapes = {"first": (2, width), "first_bias": (width,), "second": (width, 2), "second_bias": (2,)}
    weights = {name: (0.3 * random.standard_normal(shape)).astype("f4") for name, shape in shapes.items()}
    points = {name: random.standard_normal((batch, 2)).astype("f4") for name in ("start", "target")}
    return {**points, "weights": weights, "steps": steps, "adaptive": adaptive}


def tensorflow(tf, data):
    weights = {name: tf.Variable(w) for name, w in data["weights"].items()}
    target, steps = tf.constant(data["target"]), data["steps"]
    h = 1.0 / steps

    def slope(y):
        hidden = tf.tanh(tf.matmul(y, weights["first"]) + weights["first_bias"])
        return tf.matmul(hidden, weights["second"]) + weights["second_bias"]

    def runge_kutta(i, y):
        k1 = slope(y)
        k2 = slope(y + h / 2 * k1)
        k3 = slope(y + h / 2 * k2)
        k4 = slope(y + h * k3)
        return i + 1, y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)

    def bogacki_shampine(t, size, y):
        k1 = slope(y)
        k2 = slope(y + size / 2 * k1)
        k3 = slope(y + size * 0.75 * k2)
        after = y + size * (2 / 9 * k1 + 1 / 3 * k2 + 4 / 9 * k3)
        k4 = slope(after)
        error = tf.reduce_max(tf.abs(size * (-5 / 72 * k1 + 1 / 12 * k2 + 1 / 9 * k3 - 1 / 8 * k4)))
        accepted = error < 1e-4
        grown = size * tf.clip_by_value(0.9 * (1e-4 / (error + 1e-12)) ** (1 / 3), 0.2, 5.0)
        then = tf.where(accepted, t + size, t)
        return then, tf.maximum(tf.minimum(grown, 1.0 - then), 1e-3), tf.where(accepted, after, y)

    def solved(start):
        if data["adaptive"]:
            loop = [tf.constant(0.0), tf.constant(0.1), start]
            return tf.while_loop(lambda t, size, y: t < 0.999, bogacki_shampine, loop)[2]
        return tf.while_loop(lambda i, y: i < steps, runge_kutta, [tf.constant(0), start])[1]

    def step(start):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(solved(start) - target))
        return [loss, *tape.gradient(loss, list(weights.values()))]

    return step, [data["start"]]


def by_hand(data):
    """Of the fixed steps alone: the stages of all steps are passed, and passed again backwards."""
    weights, target, steps = data["weights"], data["target"], data["steps"]
    first, first_bias, second, second_bias = weights.values()
    h = np.float32(1.0 / steps)
    stages = ((h / 6, h / 2), (h / 3, h / 2), (h / 3, h), (h / 6, None))  # weight in the sum, way to the next stage

    def step(start):
        y, passed = start, []
        for _ in range(steps):
            total, at = y, y
            for weight, way in stages:
                hidden = np.tanh(at @ first + first_bias)
                slope = hidden @ second + second_bias
                passed.append((at, hidden))
                total = total + weight * slope
                at = None if way is None else y + way * slope
            y = total
        difference = y - target
        ct = difference * np.float32(2 / difference.size)
        gradients = [np.zeros_like(w) for w in weights.values()]
        for _ in range(steps):
            whole, at_ct = ct, None
            for weight, way in reversed(stages):
                at, hidden = passed.pop()
                slope_ct = weight * ct if at_ct is None else weight * ct + way * at_ct
                hidden_ct = slope_ct @ second.T * (1 - hidden * hidden)
                at_ct = hidden_ct @ first.T
                whole = whole + at_ct
                shares = at.T @ hidden_ct, hidden_ct.sum(0), hidden.T @ slope_ct, slope_ct.sum(0)
                for gradient, share in zip(gradients, shares, strict=True):
                    gradient += share
            ct = whole
        return [np.square(difference).mean(), *gradients]

    return step, [data["start"]]
