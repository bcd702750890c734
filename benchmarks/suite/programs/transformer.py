"""A transformer block (Vaswani et al. 2017, pre-norm) on 8 sequences of 128 vectors: the loss and every gradient."""

import numpy as np

SMALL = {"batch": 2, "length": 3, "width": 4, "heads": 2}


def inputs(batch, length, width, heads):
    random = np.random.default_rng(0)

    def weight(*shape):
        return (random.standard_normal(shape) / shape[0] ** 0.5).astype("f4")

    return {
        "x": random.standard_normal((batch, length, width)).astype("f4"),
        "weights": [weight(width, width) for _ in range(4)] + [weight(width, 4 * width), weight(4 * width, width)],
        "gains": [np.ones(width, "f4"), np.ones(width, "f4")],
        "shifts": [np.zeros(width, "f4"), np.zeros(width, "f4")],
        "heads": heads,
    }


def tensorflow(tf, data):
    weights = [tf.Variable(w) for w in data["weights"]]
    gains, shifts = [tf.Variable(g) for g in data["gains"]], [tf.Variable(s) for s in data["shifts"]]
    query, key, value, mix, wide, narrow = weights
    heads, (batch, length, width) = data["heads"], data["x"].shape

    def norm(x, i):
        mean = tf.reduce_mean(x, axis=-1, keepdims=True)
        variance = tf.reduce_mean(tf.math.squared_difference(x, mean), axis=-1, keepdims=True)
        return (x - mean) * tf.math.rsqrt(variance + 1e-5) * gains[i] + shifts[i]

    def split(x):
        return tf.transpose(tf.reshape(x, [batch, length, heads, width // heads]), [0, 2, 1, 3])

    def step(x):
        with tf.GradientTape() as tape:
            h = norm(x, 0)
            q, k, v = split(tf.matmul(h, query)), split(tf.matmul(h, key)), split(tf.matmul(h, value))
            scores = tf.nn.softmax(tf.matmul(q, k, transpose_b=True) * (width // heads) ** -0.5)
            h = tf.reshape(tf.transpose(tf.matmul(scores, v), [0, 2, 1, 3]), [batch, length, width])
            x = x + tf.matmul(h, mix)
            x = x + tf.matmul(tf.nn.gelu(tf.matmul(norm(x, 1), wide), approximate=True), narrow)
            loss = tf.reduce_mean(tf.square(x))
        return [loss, *tape.gradient(loss, [*weights, *gains, *shifts])]

    return step, [data["x"]]


def by_hand(data):
    query, key, value, mix, wide, narrow = data["weights"]
    gains, shifts = data["gains"], data["shifts"]
    heads, (batch, length, width) = data["heads"], data["x"].shape
    scale, slope = np.float32((width // heads) ** -0.5), np.float32((2 / np.pi) ** 0.5)
    cubic = np.float32(0.044715)

    def norm(x, i):
        x = x - x.mean(-1, keepdims=True)
        factor = 1 / np.sqrt(np.square(x).mean(-1, keepdims=True) + np.float32(1e-5))
        x *= factor
        return x * gains[i] + shifts[i], x, factor

    def norm_vjp(ct, normal, factor, i):
        direct = ct * gains[i]
        x_ct = direct - direct.mean(-1, keepdims=True) - normal * (direct * normal).mean(-1, keepdims=True)
        return x_ct * factor, (ct * normal).sum(0), ct.sum(0)

    def split(x):
        return x.reshape(batch, length, heads, width // heads).transpose(0, 2, 1, 3)

    def merge(x):
        return x.transpose(0, 2, 1, 3).reshape(-1, width)

    def step(x):
        x = x.reshape(-1, width)
        h, normal0, factor0 = norm(x, 0)
        q, k, v = split(h @ query), split(h @ key), split(h @ value)
        scores = q @ k.swapaxes(-1, -2)
        scores *= scale
        scores -= scores.max(-1, keepdims=True)
        np.exp(scores, scores)
        scores /= scores.sum(-1, keepdims=True)
        mixed = merge(scores @ v)
        middle = x + mixed @ mix
        h1, normal1, factor1 = norm(middle, 1)
        z = h1 @ wide
        squares = z * z
        t = np.tanh(slope * z * (1 + cubic * squares))
        g = 0.5 * z * (1 + t)
        y = middle + g @ narrow
        loss = np.square(y).mean()

        ct = y * np.float32(2 / y.size)
        z_ct = (ct @ narrow.T) * (0.5 * (1 + t) + 0.5 * z * (1 - t * t) * slope * (1 + 3 * cubic * squares))
        middle_ct, gain1, shift1 = norm_vjp(z_ct @ wide.T, normal1, factor1, 1)
        middle_ct += ct
        mixed_ct = split(middle_ct @ mix.T)
        scores_ct = mixed_ct @ v.swapaxes(-1, -2)
        scores_ct -= (scores_ct * scores).sum(-1, keepdims=True)
        scores_ct *= scores
        scores_ct *= scale
        cts = [merge(scores_ct @ k), merge(scores_ct.swapaxes(-1, -2) @ q), merge(scores.swapaxes(-1, -2) @ mixed_ct)]
        h_ct = sum(ct @ weight.T for ct, weight in zip(cts, (query, key, value), strict=True))
        _, gain0, shift0 = norm_vjp(h_ct, normal0, factor0, 0)
        gradients = [*[h.T @ ct for ct in cts], mixed.T @ middle_ct, h1.T @ z_ct, g.T @ ct]
        return [loss, *gradients, gain0, gain1, shift0, shift1]

    return step, [data["x"]]


def pytorch(torch, data):
    functional = torch.nn.functional
    weights, gains, shifts = (
        [torch.tensor(a, requires_grad=True) for a in data[name]] for name in ("weights", "gains", "shifts")
    )
    query, key, value, mix, wide, narrow = weights
    heads, (batch, length, width) = data["heads"], data["x"].shape

    def split(x):
        return x.reshape(batch, length, heads, width // heads).transpose(1, 2)

    def step(x):
        h = functional.layer_norm(x, (width,), gains[0], shifts[0], 1e-5)
        h = functional.scaled_dot_product_attention(split(h @ query), split(h @ key), split(h @ value))
        x = x + h.transpose(1, 2).reshape(batch, length, width) @ mix
        h = functional.layer_norm(x, (width,), gains[1], shifts[1], 1e-5)
        x = x + functional.gelu(h @ wide, approximate="tanh") @ narrow
        loss = torch.square(x).mean()
        return [loss, *torch.autograd.grad(loss, [*weights, *gains, *shifts])]

    return step, [data["x"]]


def jax(jax, data):
    jnp = jax.numpy
    variables = [jnp.asarray(a) for a in data["weights"] + data["gains"] + data["shifts"]]
    heads, (batch, length, width) = data["heads"], data["x"].shape

    def norm(x, gain, shift):
        mean = x.mean(-1, keepdims=True)
        return (x - mean) * jax.lax.rsqrt(jnp.square(x - mean).mean(-1, keepdims=True) + 1e-5) * gain + shift

    def split(x):
        return x.reshape(batch, length, heads, width // heads).transpose(0, 2, 1, 3)

    def loss(variables, x):
        query, key, value, mix, wide, narrow, gain0, gain1, shift0, shift1 = variables
        h = norm(x, gain0, shift0)
        q, k, v = split(h @ query), split(h @ key), split(h @ value)
        scores = jax.nn.softmax(q @ k.swapaxes(-1, -2) * (width // heads) ** -0.5)
        x = x + (scores @ v).transpose(0, 2, 1, 3).reshape(batch, length, width) @ mix
        x = x + jax.nn.gelu(norm(x, gain1, shift1) @ wide, approximate=True) @ narrow
        return jnp.square(x).mean()

    def step(x):
        value, gradients = jax.value_and_grad(loss)(variables, x)
        return [value, *gradients]

    return step, [data["x"]]
