"""A Gaussian process whose hyperparameters are learnt by its marginal likelihood (Rasmussen, Williams 2006, ch. 5).

    python examples/gaussian_process.py        # inside this process; TELETAPE_URL=http://… for a server

The likelihood goes through a Cholesky factorisation; its gradient is compared with the closed form of equation 5.9,
½ tr((α αᵀ - K⁻¹) ∂K/∂θ). Prints that difference, the likelihood before and after, and the error of predictions.
"""

import numpy as np

import teletape as tf

POINTS, STEPS, RATE = 40, 80, 0.08


def kernel(a: tf.Tensor, b: tf.Tensor, theta: list[tf.Variable]) -> tf.Tensor:
    """Squared exponentials [n, m] of the distances between points [n] and [m]: exp(θ₀) exp(-½ d² / exp(2 θ₁))."""
    distances = tf.math.squared_difference(a[:, tf.newaxis], b[tf.newaxis, :])
    return tf.exp(theta[0] - 0.5 * distances * tf.exp(-2.0 * theta[1]))


def covariance(x: tf.Tensor, theta: list[tf.Variable]) -> tf.Tensor:
    """The kernel at the points x [n], with noise of variance exp(θ₂)."""
    k = kernel(x, x, theta)
    return tf.linalg.set_diag(k, tf.linalg.diag_part(k) + tf.exp(theta[2]))


def log_likelihood(x: tf.Tensor, y: tf.Tensor, theta: list[tf.Variable]) -> tf.Tensor:
    """log p(y | x, θ), equation 5.8."""
    chol = tf.linalg.cholesky(covariance(x, theta))
    alpha = tf.linalg.cholesky_solve(chol, y[:, tf.newaxis])[:, 0]
    log_determinant = 2.0 * tf.reduce_sum(tf.math.log(tf.linalg.diag_part(chol)))
    return -0.5 * (tf.reduce_sum(y * alpha) + log_determinant + len(x) * float(np.log(2 * np.pi)))


def closed_form(x: np.ndarray, y: np.ndarray, theta: np.ndarray) -> np.ndarray:
    """The gradient by equation 5.9, in NumPy."""
    d2 = (x[:, None] - x) ** 2
    k = np.exp(theta[0] - 0.5 * d2 * np.exp(-2 * theta[1]))
    slopes = [k, k * d2 * np.exp(-2 * theta[1]), np.exp(theta[2]) * np.eye(len(x))]
    inverse = np.linalg.inv(k + slopes[2])
    alpha = inverse @ y
    return np.array([0.5 * np.trace((np.outer(alpha, alpha) - inverse) @ slope) for slope in slopes])


def predicted(x: tf.Tensor, y: tf.Tensor, at: tf.Tensor, theta: list[tf.Variable]) -> tf.Tensor:
    """The mean of the process at other points, equation 2.25."""
    chol = tf.linalg.cholesky(covariance(x, theta))
    return tf.linalg.matvec(kernel(at, x, theta), tf.linalg.cholesky_solve(chol, y[:, tf.newaxis])[:, 0])


def main() -> dict[str, float]:
    """Learns the hyperparameters by Adam; what they reached."""
    random = np.random.default_rng(0)
    points = np.sort(random.uniform(-3, 3, POINTS))
    values = np.sin(2 * points) + 0.1 * random.normal(size=POINTS)
    x, y = tf.constant(points), tf.constant(values)
    theta = [tf.Variable(item, dtype=tf.float64) for item in (0.5, 0.7, -1.0)]
    moments = [(tf.Variable(tf.zeros_like(item)), tf.Variable(tf.zeros_like(item))) for item in theta]
    likelihoods, gradients = [], []
    for step in range(1, STEPS + 1):
        with tf.GradientTape() as tape:
            value = log_likelihood(x, y, theta)
        gradients.append(tape.gradient(value, theta))
        likelihoods.append(value)
        rate = RATE * float(np.sqrt(1 - 0.999**step) / (1 - 0.9**step))
        for item, g, (m, v) in zip(theta, gradients[-1], moments, strict=True):
            m.assign(0.9 * m + 0.1 * g)
            v.assign(0.999 * v + 0.001 * g * g)
            item.assign_add(rate * m / (tf.sqrt(v) + 1e-8))
    array = tf.stack(gradients[0]).numpy()
    exact = closed_form(points, values, np.array([0.5, 0.7, -1.0]))
    grid = np.linspace(-2.8, 2.8, 50)
    mean = predicted(x, y, tf.constant(grid), theta).numpy()
    return {
        "distance of the gradient from the closed form": float(np.abs(array - exact).max() / np.abs(exact).max()),
        "likelihood before": float(likelihoods[0]),
        "likelihood after": float(likelihoods[-1]),
        "learnt noise": float(np.exp(theta[2].numpy() / 2)),
        "largest error of the mean": float(np.abs(mean - np.sin(2 * grid)).max()),
        "steps": STEPS,
    }


if __name__ == "__main__":
    for name, value in main().items():
        print(f"{name}: {value:.6g}")
