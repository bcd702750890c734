"""The marginal likelihood of a Gaussian process and its gradient by three parameters, float64.

Rasmussen and Williams 2006, equations 5.8 and 5.9.
"""

import numpy as np

SMALL = {"points": 6}
THETA = (0.5, 0.7, -1.0)


def inputs(points):
    random = np.random.default_rng(0)
    x = np.sort(random.uniform(-3, 3, points))
    return {"x": x, "y": np.sin(2 * x) + 0.1 * random.normal(size=points)}


def tensorflow(tf, data):
    theta = [tf.Variable(item, dtype=tf.float64) for item in THETA]

    def step(x, y):
        with tf.GradientTape() as tape:
            distances = tf.math.squared_difference(x[:, tf.newaxis], x[tf.newaxis, :])
            k = tf.exp(theta[0] - 0.5 * distances * tf.exp(-2.0 * theta[1]))
            k = tf.linalg.set_diag(k, tf.linalg.diag_part(k) + tf.exp(theta[2]))
            chol = tf.linalg.cholesky(k)
            alpha = tf.linalg.cholesky_solve(chol, y[:, tf.newaxis])[:, 0]
            log_determinant = 2.0 * tf.reduce_sum(tf.math.log(tf.linalg.diag_part(chol)))
            value = -0.5 * (tf.reduce_sum(y * alpha) + log_determinant)
        return [value, *tape.gradient(value, theta)]

    return step, [data["x"], data["y"]]


def by_hand(data):
    from scipy.linalg.lapack import dpotrf, dpotri, dpotrs

    theta = np.array(THETA)

    def step(x, y):
        distances = (x[:, None] - x) ** 2
        distances *= np.exp(-2 * theta[1])
        kernel = np.exp(theta[0] - 0.5 * distances)
        noise = np.exp(theta[2])
        chol, _ = dpotrf(kernel + noise * np.eye(len(x)), lower=1)
        alpha, _ = dpotrs(chol, y, lower=1)
        value = -0.5 * (y @ alpha + 2 * np.log(np.diag(chol)).sum())
        inverse, _ = dpotri(chol, lower=1)
        inverse = np.tril(inverse) + np.tril(inverse, -1).T
        ct = np.outer(alpha, alpha)
        ct -= inverse
        trace = np.trace(ct)
        ct *= kernel
        return [value, 0.5 * ct.sum(), 0.5 * np.vdot(ct, distances), 0.5 * noise * trace]

    return step, [data["x"], data["y"]]


def pytorch(torch, data):
    theta = [torch.tensor(item, dtype=torch.float64, requires_grad=True) for item in THETA]

    def step(x, y):
        distances = torch.square(x[:, None] - x[None, :])
        k = torch.exp(theta[0] - 0.5 * distances * torch.exp(-2.0 * theta[1]))
        k = k + torch.exp(theta[2]) * torch.eye(len(x), dtype=torch.float64)
        chol = torch.linalg.cholesky(k)
        alpha = torch.cholesky_solve(y[:, None], chol)[:, 0]
        value = -0.5 * (torch.sum(y * alpha) + 2.0 * torch.log(torch.diagonal(chol)).sum())
        return [value, *torch.autograd.grad(value, theta)]

    return step, [data["x"], data["y"]]


def jax(jax, data):
    jnp, theta = jax.numpy, [jax.numpy.float64(item) for item in THETA]

    def likelihood(theta, x, y):
        distances = jnp.square(x[:, None] - x[None, :])
        k = jnp.exp(theta[0] - 0.5 * distances * jnp.exp(-2.0 * theta[1]))
        chol = jnp.linalg.cholesky(k + jnp.exp(theta[2]) * jnp.eye(len(x)))
        alpha = jax.scipy.linalg.cho_solve((chol, True), y)
        return -0.5 * (jnp.sum(y * alpha) + 2.0 * jnp.log(jnp.diagonal(chol)).sum())

    def step(x, y):
        value, gradients = jax.value_and_grad(likelihood)(theta, x, y)
        return [value, *gradients]

    return step, [data["x"], data["y"]]
