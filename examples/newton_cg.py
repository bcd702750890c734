"""Newton's method without a Hessian: conjugate gradients on Hessian-vector products (Nocedal, Wright 2006, alg. 7.1).

    python examples/newton_cg.py               # inside this process; TELETAPE_URL=http://… for a server

A Hessian-vector product is a gradient of a gradient (reverse over reverse, one tape inside another) or the tangent of a
gradient (forward over reverse, a tape inside an accumulator). Minimises Rosenbrock's function of 20 variables with the
first and a softmax regression with the second; prints gradient norms, iterations, and how far the two products differ.
"""

from collections.abc import Callable

import numpy as np

import teletape as tf

Loss = Callable[[tf.Variable], tf.Tensor]
Product = Callable[[Loss, tf.Variable, np.ndarray], np.ndarray]


def rosenbrock(x: tf.Variable) -> tf.Tensor:
    """Σ 100 (x[i+1] - x[i]²)² + (1 - x[i])², least at ones."""
    return tf.reduce_sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2)


def value_and_gradient(f: Loss, x: tf.Variable) -> tuple[float, np.ndarray]:
    """f and its gradient at x."""
    with tf.GradientTape() as tape:
        y = f(x)
    gradient = tape.gradient(y, x)
    return float(y), gradient.numpy()


def reverse_over_reverse(f: Loss, x: tf.Variable, vector: np.ndarray) -> np.ndarray:
    """H v, as the gradient of ⟨∇f, v⟩."""
    with tf.GradientTape() as outer:
        with tf.GradientTape() as inner:
            y = f(x)
        gradient = inner.gradient(y, x)
    product: np.ndarray = outer.gradient(gradient, x, output_gradients=tf.constant(vector)).numpy()
    return product


def forward_over_reverse(f: Loss, x: tf.Variable, vector: np.ndarray) -> np.ndarray:
    """H v, as the derivative of ∇f along v."""
    with tf.autodiff.ForwardAccumulator(x, tf.constant(vector)) as accumulator:
        with tf.GradientTape() as tape:
            y = f(x)
        gradient = tape.gradient(y, x)
    product: np.ndarray = accumulator.jvp(gradient).numpy()
    return product


def direction(f: Loss, x: tf.Variable, gradient: np.ndarray, hessian_vector: Product) -> np.ndarray:
    """Solves H p = -gradient to the accuracy that pays, and stops where the curvature is negative."""
    p: np.ndarray = np.zeros_like(gradient)
    r: np.ndarray = gradient.copy()
    d: np.ndarray = -r
    size = float(np.vdot(r, r))
    enough = min(0.5, size**0.25) * size**0.5
    for i in range(gradient.size):
        hd = hessian_vector(f, x, d)
        curvature = float(np.vdot(d, hd))
        if curvature <= 0:
            return d if i == 0 else p
        step = size / curvature
        p, r = p + step * d, r + step * hd
        smaller = float(np.vdot(r, r))
        if smaller**0.5 < enough:
            break
        d, size = -r + smaller / size * d, smaller
    return p


def minimise(
    f: Loss, x: tf.Variable, product: Product, *, tolerance: float = 1e-8, most: int = 100
) -> tuple[float, float, int]:
    """Newton-CG with backtracking, in place: f, the gradient's norm, and the iterations."""
    value = norm = np.inf
    for iteration in range(most):
        value, gradient = value_and_gradient(f, x)
        norm = float(np.linalg.norm(gradient))
        if norm < tolerance:
            return value, norm, iteration
        p = direction(f, x, gradient, product)
        slope, step, here = np.vdot(gradient, p), 1.0, x.numpy()
        x.assign(here + p)
        while step > 1e-10 and float(f(x)) > value + 1e-4 * step * slope:
            step /= 2
            x.assign(here + step * p)
    return value, norm, most


def regression(random: np.random.Generator) -> Loss:
    """Softmax regression with weight decay, on three clouds of points."""
    labels = random.integers(3, size=120, dtype=np.int32)
    points = tf.constant(np.array([[0, 2], [2, -1], [-2, -1]])[labels] + random.normal(size=(120, 2)))
    classes = tf.constant(labels)

    def loss(w: tf.Variable) -> tf.Tensor:
        logits = points @ w
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=classes, logits=logits)
        return tf.reduce_mean(losses) + 0.01 * tf.nn.l2_loss(w)

    return loss


def main() -> dict[str, float]:
    """Minimises both."""
    random = np.random.default_rng(0)
    x = tf.Variable(np.zeros(20))
    value, norm, iterations = minimise(rosenbrock, x, reverse_over_reverse)
    w = tf.Variable(np.zeros((2, 3)))
    softmax = regression(random)
    loss, slope, few = minimise(softmax, w, forward_over_reverse)
    along = random.normal(size=(2, 3))
    apart = reverse_over_reverse(softmax, w, along) - forward_over_reverse(softmax, w, along)
    return {
        "rosenbrock": value,
        "rosenbrock gradient": norm,
        "rosenbrock distance": float(np.abs(x.numpy() - 1).max()),
        "rosenbrock iterations": iterations,
        "regression loss": loss,
        "regression gradient": slope,
        "regression iterations": few,
        "difference of the two products": float(np.abs(apart).max()),
    }


if __name__ == "__main__":
    for name, value in main().items():
        print(f"{name}: {value:.6g}")
