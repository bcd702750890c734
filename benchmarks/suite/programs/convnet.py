"""A step of a small convolutional network on images of 28 x 28: the loss and every gradient."""

import numpy as np

CHANNELS = (16, 32)
SMALL = {"batch": 2, "channels": (2, 3), "side": 8}


def inputs(batch, channels=CHANNELS, side=28):
    random = np.random.default_rng(0)

    def weight(*shape):
        return (random.standard_normal(shape) * (2 / np.prod(shape[:-1])) ** 0.5).astype("f4")

    first, second = channels
    return {
        "x": random.random((batch, side, side, 1), "f4"),
        "y": random.integers(0, 10, batch).astype("i4"),
        "kernels": [weight(3, 3, 1, first), weight(3, 3, first, second)],
        "biases": [(random.standard_normal(n) * 0.1).astype("f4") for n in channels],
        "dense": weight((side // 4) ** 2 * second, 10),
    }


def tensorflow(tf, data):
    kernels, biases = [tf.Variable(k) for k in data["kernels"]], [tf.Variable(b) for b in data["biases"]]
    dense, batch = tf.Variable(data["dense"]), len(data["x"])

    def step(x, y):
        with tf.GradientTape() as tape:
            h = x
            for kernel, bias in zip(kernels, biases, strict=True):
                h = tf.nn.relu(tf.nn.bias_add(tf.nn.conv2d(h, kernel, strides=1, padding="SAME"), bias))
                h = tf.nn.max_pool2d(h, ksize=2, strides=2, padding="VALID")
            logits = tf.matmul(tf.reshape(h, [batch, -1]), dense)
            loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits))
        return [loss, *tape.gradient(loss, [*kernels, *biases, dense])]

    return step, [data["x"], data["y"]]


def by_hand(data):
    """Each convolution is nine matrix products, one for each place in the kernel."""
    kernels, biases, dense = data["kernels"], data["biases"], data["dense"]
    rows = np.arange(len(data["x"]))

    def windows(padded, side):
        return [(i, j, padded[:, i : i + side, j : j + side]) for i in range(3) for j in range(3)]

    def pad(x):
        return np.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0)))

    def step(x, y):
        h, layers = x, []
        for kernel, bias in zip(kernels, biases, strict=True):
            side, padded = h.shape[1], pad(h)
            z = sum(window @ kernel[i, j] for i, j, window in windows(padded, side))
            z += bias
            np.maximum(z, 0, out=z)
            n, c = len(z), z.shape[-1]
            quads = z.reshape(n, side // 2, 2, side // 2, 2, c).transpose(0, 1, 3, 5, 2, 4).reshape(-1, 4)
            place = quads.argmax(axis=1)
            h = quads[np.arange(len(place)), place].reshape(n, side // 2, side // 2, c)
            layers.append((padded, z, place))
        flat = h.reshape(len(h), -1)
        ct = flat @ dense
        ct -= ct.max(axis=1, keepdims=True)
        picked = ct[rows, y]
        np.exp(ct, ct)
        sums = ct.sum(axis=1, keepdims=True)
        loss = (np.log(sums[:, 0]) - picked).mean()
        ct /= sums
        ct[rows, y] -= 1
        ct /= np.float32(len(x))
        dense_gradient = flat.T @ ct
        ct = (ct @ dense.T).reshape(h.shape)
        kernel_gradients, bias_gradients = [None, None], [None, None]
        for layer in (1, 0):
            padded, z, place = layers[layer]
            n, side, _, c = z.shape
            quads = np.zeros((place.size, 4), "f4")
            quads[np.arange(place.size), place] = ct.reshape(-1)
            ct = quads.reshape(n, side // 2, side // 2, c, 2, 2).transpose(0, 1, 4, 2, 5, 3).reshape(z.shape)
            ct = ct * (z > 0)
            bias_gradients[layer] = ct.sum(axis=(0, 1, 2))
            flat_ct = ct.reshape(-1, c)
            kernel_gradients[layer] = np.empty_like(kernels[layer])
            padded_ct = np.zeros_like(padded)
            for i, j, window in windows(padded, side):
                kernel_gradients[layer][i, j] = window.reshape(-1, window.shape[-1]).T @ flat_ct
                if layer:
                    padded_ct[:, i : i + side, j : j + side] += ct @ kernels[layer][i, j].T
            ct = padded_ct[:, 1:-1, 1:-1]
        return [loss, *kernel_gradients, *bias_gradients, dense_gradient]

    return step, [data["x"], data["y"]]


def pytorch(torch, data):
    """In PyTorch's own layout: channels before rows and columns."""
    functional = torch.nn.functional
    kernels = [torch.tensor(k.transpose(3, 2, 0, 1).copy(), requires_grad=True) for k in data["kernels"]]
    biases = [torch.tensor(b, requires_grad=True) for b in data["biases"]]
    dense = torch.tensor(data["dense"], requires_grad=True)

    def step(x, y):
        h = x
        for kernel, bias in zip(kernels, biases, strict=True):
            h = functional.max_pool2d(torch.relu(functional.conv2d(h, kernel, bias, padding=1)), 2)
        logits = h.permute(0, 2, 3, 1).reshape(len(x), -1) @ dense
        loss = functional.cross_entropy(logits, y.long())
        gradients = torch.autograd.grad(loss, [*kernels, *biases, dense])
        return [loss, *[g.permute(2, 3, 1, 0) if g.ndim == 4 else g for g in gradients]]

    return step, [data["x"].transpose(0, 3, 1, 2).copy(), data["y"]]


def jax(jax, data):
    jnp, lax = jax.numpy, jax.lax
    variables = [jnp.asarray(a) for a in [*data["kernels"], *data["biases"], data["dense"]]]

    def loss(variables, x, y):
        kernels, biases, dense = variables[:2], variables[2:4], variables[4]
        h = x
        for kernel, bias in zip(kernels, biases, strict=True):
            h = lax.conv_general_dilated(h, kernel, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
            h = lax.reduce_window(jax.nn.relu(h + bias), -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
        logits = jax.nn.log_softmax(h.reshape(len(x), -1) @ dense)
        return -jnp.take_along_axis(logits, y[:, None], 1).mean()

    def step(x, y):
        value, gradients = jax.value_and_grad(loss)(variables, x, y)
        return [value, *gradients]

    return step, [data["x"], data["y"]]
