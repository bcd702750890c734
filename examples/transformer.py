"""A transformer block, attention and all, that learns to sort short lists (Vaswani et al. 2017, pre-norm).

    python examples/transformer.py             # inside this process; TELETAPE_URL=http://… for a server

Every token of a list sees every other and says which digit stands in its own place after sorting. Prints the share of
digits that are right on lists that training never saw.
"""

import numpy as np

import teletape as tf

DIGITS, LENGTH, WIDTH, HEADS, BATCH, STEPS, RATE = 8, 6, 32, 4, 64, 150, 5e-3


class Block(tf.Module):
    """Embedding, one block of self-attention and a perceptron, and scores [n, length, DIGITS]."""

    def __init__(self, random: np.random.Generator, width: int = WIDTH, dtype: type[np.floating] = np.float32) -> None:
        super().__init__()

        def weight(*shape: int) -> tf.Variable:
            return tf.Variable((random.normal(size=shape) / np.sqrt(shape[0])).astype(dtype))

        self.embedding = tf.Variable(random.normal(size=(DIGITS, width)).astype(dtype))
        self.position = tf.Variable(random.normal(size=(LENGTH, width)).astype(dtype))
        self.query, self.key, self.value, self.mix = (weight(width, width) for _ in range(4))
        self.wide, self.narrow, self.scores = weight(width, 4 * width), weight(4 * width, width), weight(width, DIGITS)
        self.gains = [tf.Variable(np.ones(width, dtype)) for _ in range(3)]
        self.shifts = [tf.Variable(np.zeros(width, dtype)) for _ in range(3)]

    def norm(self, x: tf.Tensor, i: int) -> tf.Tensor:
        """Layer normalisation over the last axis."""
        mean = tf.reduce_mean(x, axis=-1, keepdims=True)
        variance = tf.reduce_mean(tf.math.squared_difference(x, mean), axis=-1, keepdims=True)
        return (x - mean) * tf.math.rsqrt(variance + 1e-5) * self.gains[i] + self.shifts[i]

    def heads(self, x: tf.Tensor, weight: tf.Variable) -> tf.Tensor:
        """[n, length, width] as [n, HEADS, length, width / HEADS]."""
        n, length, width = x.shape
        return tf.transpose(tf.reshape(x @ weight, [n, length, HEADS, width // HEADS]), [0, 2, 1, 3])

    def attention(self, x: tf.Tensor) -> tf.Tensor:
        """Each token a mixture of all tokens' values, by softmax(query · key / √width)."""
        q, k, v = self.heads(x, self.query), self.heads(x, self.key), self.heads(x, self.value)
        weights = tf.nn.softmax(tf.matmul(q, k, transpose_b=True) / float(np.sqrt(q.shape[-1])))
        return tf.reshape(tf.transpose(weights @ v, [0, 2, 1, 3]), x.shape) @ self.mix

    def __call__(self, tokens: tf.Tensor) -> tf.Tensor:
        x = tf.nn.embedding_lookup(self.embedding, tokens) + self.position
        x += self.attention(self.norm(x, 0))
        x += tf.nn.gelu(self.norm(x, 1) @ self.wide) @ self.narrow
        return self.norm(x, 2) @ self.scores


def loss(model: Block, tokens: tf.Tensor, answers: tf.Tensor) -> tf.Tensor:
    """Mean cross-entropy of the answers [n, length]."""
    return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=answers, logits=model(tokens)))


def lists(random: np.random.Generator, count: int) -> tuple[tf.Tensor, tf.Tensor]:
    """Lists of digits, and the same sorted."""
    tokens = random.integers(DIGITS, size=(count, LENGTH), dtype=np.int32)
    return tf.constant(tokens), tf.constant(np.sort(tokens, axis=1))


def main() -> dict[str, float]:
    """Trains with Adam and tests; the losses, the share of right digits, the steps taken."""
    random = np.random.default_rng(0)
    model = Block(random)
    variables = model.trainable_variables
    moments = [(tf.Variable(tf.zeros_like(v)), tf.Variable(tf.zeros_like(v))) for v in variables]
    losses = []
    for step in range(1, STEPS + 1):
        tokens, answers = lists(random, BATCH)
        with tf.GradientTape() as tape:
            value = loss(model, tokens, answers)
        rate = RATE * float(np.sqrt(1 - 0.99**step) / (1 - 0.9**step))
        for variable, g, (m, v) in zip(variables, tape.gradient(value, variables), moments, strict=True):
            g = tf.convert_to_tensor(g)  # the embedding's gradient is IndexedSlices
            m.assign(0.9 * m + 0.1 * g)
            v.assign(0.99 * v + 0.01 * g * g)
            variable.assign_sub(rate * m / (tf.sqrt(v) + 1e-8))
        losses.append(float(value))  # one read a step: one request
    tokens, answers = lists(random, 300)
    right = tf.equal(tf.argmax(model(tokens), axis=-1, output_type=tf.int32), answers)
    return {
        "first loss": losses[0],
        "last loss": losses[-1],
        "right digits": float(tf.reduce_mean(tf.cast(right, tf.float32))),
        "steps": STEPS,
    }


if __name__ == "__main__":
    for name, value in main().items():
        print(f"{name}: {value:.6g}")
