"""A training step of a small denoising diffusion model: noised images, a U-Net that takes the time, Adam by hand."""

import numpy as np

SMALL = {"batch": 2, "channels": 4, "side": 8}
LEVELS = 100  #: Levels of noise.
RATE, BETA1, BETA2, EPSILON = 1e-4, 0.9, 0.999, 1e-8


def inputs(batch, channels=8, side=16):
    random = np.random.default_rng(0)

    def weight(*shape):
        return (random.standard_normal(shape) * (1 / np.prod(shape[:-1])) ** 0.5).astype("f4")

    c, d = channels, 2 * channels
    weights = {
        "time_1": weight(32, 32),
        "time_2": weight(32, 32),
        "time_low": weight(32, c),
        "time_middle": weight(32, d),
        "enter": weight(3, 3, 1, c),
        "low": weight(3, 3, c, c),
        "down": weight(3, 3, c, d),
        "middle": weight(3, 3, d, d),
        "up": weight(3, 3, d, c),
        "join": weight(3, 3, 2 * c, c),
        "leave": weight(3, 3, c, 1),
    }
    for name in tuple(weights):
        if not name.startswith("time_low") and not name.startswith("time_middle"):
            weights[f"{name}_bias"] = np.zeros(weights[name].shape[-1], "f4")
    return {
        "images": random.standard_normal((batch, side, side, 1)).astype("f4"),
        "noise": random.standard_normal((batch, side, side, 1)).astype("f4"),
        "times": random.integers(0, LEVELS, batch).astype("i4"),
        "weights": weights,
    }


def tensorflow(tf, data):
    w = {name: tf.Variable(array) for name, array in data["weights"].items()}
    variables = list(w.values())
    first = [tf.Variable(np.zeros_like(array)) for array in data["weights"].values()]
    second = [tf.Variable(np.zeros_like(array)) for array in data["weights"].values()]
    count = tf.Variable(0.0)
    signal = tf.constant(np.cumprod(1 - np.linspace(1e-4, 0.02, LEVELS)).astype("f4"))
    frequencies = tf.constant(np.exp(-np.log(10_000) * np.arange(16) / 16).astype("f4"))

    def conv(x, name):
        return tf.nn.bias_add(tf.nn.conv2d(x, w[name], strides=1, padding="SAME"), w[f"{name}_bias"])

    def normalized(x):
        mean, variance = tf.nn.moments(x, [1, 2, 3], keepdims=True)
        return (x - mean) * tf.math.rsqrt(variance + 1e-5)

    def denoised(x, times):
        angles = tf.cast(times, tf.float32)[:, None] * frequencies
        t = tf.concat([tf.sin(angles), tf.cos(angles)], 1)
        t = tf.nn.silu(tf.matmul(t, w["time_1"]) + w["time_1_bias"])
        t = tf.nn.silu(tf.matmul(t, w["time_2"]) + w["time_2_bias"])
        x = conv(x, "enter")
        h = conv(tf.nn.silu(normalized(x)), "low") + tf.matmul(t, w["time_low"])[:, None, None]
        skip = x + h
        x = conv(tf.nn.avg_pool2d(skip, 2, 2, "VALID"), "down")
        h = conv(tf.nn.silu(normalized(x)), "middle") + tf.matmul(t, w["time_middle"])[:, None, None]
        x = x + h
        x = tf.image.resize(conv(tf.nn.silu(x), "up"), skip.shape[1:3], method="nearest")
        x = conv(tf.nn.silu(normalized(tf.concat([x, skip], 3))), "join")
        return conv(tf.nn.silu(x), "leave")

    def step(images, noise, times):
        share = tf.gather(signal, times)[:, None, None, None]
        noisy = tf.sqrt(share) * images + tf.sqrt(1.0 - share) * noise
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(denoised(noisy, times) - noise))
        gradients = tape.gradient(loss, variables)
        count.assign_add(1.0)
        rate = RATE * tf.sqrt(1.0 - BETA2**count) / (1.0 - BETA1**count)
        for v, m, s, g in zip(variables, first, second, gradients, strict=True):
            m.assign(BETA1 * m + (1 - BETA1) * g)
            s.assign(BETA2 * s + (1 - BETA2) * tf.square(g))
            v.assign_sub(rate * m / (tf.sqrt(s) + EPSILON))
        return [loss]

    return step, [data["images"], data["noise"], data["times"]]


def by_hand(data):
    """The loss alone, before the first update."""
    w = data["weights"]

    def dense(x, name):
        return x @ w[name] + w.get(f"{name}_bias", 0)

    def silu(x):
        return x / (1 + np.exp(-x))

    def conv(x, name):
        padded = np.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0)))
        windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(1, 2))
        return np.einsum("nhwcij,ijco->nhwo", windows, w[name]) + w[f"{name}_bias"]

    def normalized(x):
        axes = (1, 2, 3)
        return (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + 1e-5)

    def halved(x):
        n, h, width, c = x.shape
        return x.reshape(n, h // 2, 2, width // 2, 2, c).mean((2, 4))

    def denoised(x, times):
        angles = times[:, None] * np.exp(-np.log(10_000) * np.arange(16) / 16)
        t = silu(dense(silu(dense(np.concatenate([np.sin(angles), np.cos(angles)], 1), "time_1")), "time_2"))
        x = conv(x, "enter")
        skip = x + conv(silu(normalized(x)), "low") + dense(t, "time_low")[:, None, None]
        x = conv(halved(skip), "down")
        x = x + conv(silu(normalized(x)), "middle") + dense(t, "time_middle")[:, None, None]
        x = conv(silu(x), "up").repeat(2, axis=1).repeat(2, axis=2)
        return conv(silu(conv(silu(normalized(np.concatenate([x, skip], 3))), "join")), "leave")

    def step(images, noise, times):
        share = np.cumprod(1 - np.linspace(1e-4, 0.02, LEVELS))[times][:, None, None, None]
        noisy = np.sqrt(share) * images + np.sqrt(1 - share) * noise
        return [np.mean(np.square(denoised(noisy, times) - noise))]

    return step, [data["images"], data["noise"], data["times"]]
