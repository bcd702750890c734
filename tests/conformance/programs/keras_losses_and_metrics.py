"""Losses and metrics of Keras, with weights, reductions and state."""

from conformance.program import program


def data(np):
    labels = np.array([0, 2, 1, 1])
    logits = np.random.default_rng(7).normal(size=(4, 3)).astype("float32")
    probabilities = np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)
    return labels, np.eye(3, dtype="float32")[labels], logits, probabilities


@program()
def each_loss(tf, np):
    losses = tf.keras.losses
    _, one_hot, _, probabilities = data(np)
    names = (
        "MeanSquaredError MeanAbsoluteError Huber LogCosh KLDivergence Poisson Hinge SquaredHinge CategoricalHinge "
        "CosineSimilarity MeanSquaredLogarithmicError MeanAbsolutePercentageError CategoricalFocalCrossentropy "
        "BinaryFocalCrossentropy Dice Tversky BinaryCrossentropy CategoricalCrossentropy"
    )
    found = {}
    for name in names.split():
        variable = tf.Variable(probabilities)
        with tf.GradientTape() as tape:
            loss = getattr(losses, name)()(one_hot, variable)
        found[name] = [loss, tape.gradient(loss, variable)]
    return found


@program()
def crossentropies(tf, np):
    losses = tf.keras.losses
    labels, one_hot, logits, probabilities = data(np)
    return [
        losses.SparseCategoricalCrossentropy(from_logits=True)(labels, logits),
        losses.SparseCategoricalCrossentropy()(labels, probabilities),
        losses.SparseCategoricalCrossentropy(ignore_class=1)(labels, probabilities),
        losses.CategoricalCrossentropy(label_smoothing=0.1)(one_hot, probabilities),
        losses.CategoricalCrossentropy(from_logits=True)(one_hot, logits),
        losses.BinaryCrossentropy(from_logits=True)(one_hot, logits),
        losses.BinaryCrossentropy(label_smoothing=0.2)(one_hot, probabilities),
        losses.sparse_categorical_crossentropy(labels, tf.keras.layers.Softmax()(logits)),
        losses.CategoricalGeneralizedCrossEntropy(q=0.3)(labels, probabilities),
        losses.Circle()(labels, tf.math.l2_normalize(logits, axis=-1)),
        losses.get("huber")(one_hot, probabilities),
    ]


@program()
def reductions_and_weights(tf, np):
    losses = tf.keras.losses
    _, one_hot, _, probabilities = data(np)
    weights = np.array([1.0, 0.0, 2.0, 1.0])
    return [
        *(losses.MeanSquaredError(reduction=each)(one_hot, probabilities) for each in ("none", "sum", "mean", None)),
        losses.MeanSquaredError()(one_hot, probabilities, sample_weight=weights),
        losses.MeanSquaredError("sum_over_batch_size")(one_hot, probabilities, sample_weight=weights[:, None]),
        losses.MeanSquaredError("mean_with_sample_weight")(one_hot, probabilities, sample_weight=weights),
    ]


@program()
def metrics_of_means(tf, np):
    metrics = tf.keras.metrics
    _, one_hot, _, probabilities = data(np)
    mean = metrics.Mean()
    mean.update_state([1, 2, 3.0])
    mean.update_state(5.0, sample_weight=2.0)
    total = metrics.Sum()
    total.update_state([[1.0, 2.0]])
    names = (
        "MeanSquaredError RootMeanSquaredError MeanAbsoluteError CosineSimilarity R2Score F1Score FBetaScore "
        "KLDivergence LogCoshError CategoricalCrossentropy BinaryCrossentropy BinaryAccuracy Precision Recall "
        "TruePositives FalseNegatives"
    )
    found = {"mean": [mean.result(), [v.numpy() for v in mean.variables]], "sum": total.result()}
    for name in names.split():
        metric = getattr(metrics, name)()
        metric.update_state(one_hot, probabilities)
        first = metric.result()
        metric.update_state(one_hot[:2], probabilities[2:])
        second = metric.result()
        metric.reset_state()
        found[name] = [first, second, [v.numpy() for v in metric.variables]]
    return found


@program()
def a_metric_in_a_function(tf, np):
    metric = tf.keras.metrics.Mean()

    @tf.function
    def update(x):
        metric.update_state(x)
        return metric.result()

    return [update(tf.constant([1.0, 2.0])), update(tf.constant([6.0, 7.0])), metric.result()]


@program()
def a_metric_of_ones_own(tf, np):
    class Largest(tf.keras.metrics.Metric):
        def __init__(self):
            super().__init__(name="largest")
            self.value = self.add_weight(name="value", initializer="zeros")

        def update_state(self, y_true, y_pred, sample_weight=None):
            self.value.assign(tf.maximum(self.value, tf.reduce_max(tf.abs(y_true - y_pred))))

        def result(self):
            return self.value

    metric = Largest()
    metric.update_state(tf.constant([1.0]), tf.constant([3.0]))
    metric.update_state(tf.constant([1.0]), tf.constant([1.5]))
    return [float(metric.result()), float(tf.keras.metrics.MeanMetricWrapper(tf.keras.losses.mse)([1.0], [3.0]))]
