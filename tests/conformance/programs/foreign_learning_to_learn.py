"""Meta-learning, distillation and explanations of models, as people write them for TensorFlow."""

from conformance.program import program
from conformance.weights import set_weights


def sine_tasks(np, count=3, points=6):
    random = np.random.default_rng(0)
    for _ in range(count):
        amplitude, phase = random.uniform(0.5, 2.0), random.uniform(0, np.pi)
        x = random.uniform(-3, 3, (2, points, 1)).astype("float32")
        y = (amplitude * np.sin(x + phase)).astype("float32")
        yield x[0], y[0], x[1], y[1]


def regressor(tf, np):
    dense = tf.keras.layers.Dense
    return set_weights(np, tf.keras.Sequential([tf.keras.Input((1,)), dense(8, activation="relu"), dense(1)]))


@program(rtol=1e-3, atol=1e-5)
def model_agnostic_meta_learning(tf, np):
    model = regressor(tf, np)
    optimizer = tf.keras.optimizers.Adam(0.01)
    losses = []

    def forward(x, weights):
        w1, b1, w2, b2 = weights
        return tf.nn.relu(x @ w1 + b1) @ w2 + b2

    for _ in range(2):
        with tf.GradientTape() as outer:
            total = 0.0
            for xs, ys, xq, yq in sine_tasks(np):
                weights = [tf.identity(v) for v in model.trainable_variables]
                with tf.GradientTape() as inner:
                    inner.watch(weights)
                    support = tf.reduce_mean((forward(xs, weights) - ys) ** 2)
                gradients = inner.gradient(support, weights)
                adapted = [w - 0.05 * g for w, g in zip(weights, gradients)]
                total += tf.reduce_mean((forward(xq, adapted) - yq) ** 2)
        optimizer.apply_gradients(zip(outer.gradient(total, model.trainable_variables), model.trainable_variables))
        losses.append(total)
    return [losses, model.get_weights()]


@program(rtol=1e-3, atol=1e-5)
def reptile(tf, np):
    model = regressor(tf, np)
    inner_optimizer = tf.keras.optimizers.SGD(learning_rate=0.02)
    losses = []
    for iteration, (x, y, _, _) in enumerate(sine_tasks(np)):
        step = (1 - iteration / 3) * 0.5
        old_vars = model.get_weights()
        for _ in range(3):
            with tf.GradientTape() as tape:
                loss = tf.keras.losses.MeanSquaredError()(y, model(x))
            grads = tape.gradient(loss, model.trainable_weights)
            inner_optimizer.apply_gradients(zip(grads, model.trainable_weights))
        new_vars = model.get_weights()
        model.set_weights([old + (new - old) * step for old, new in zip(old_vars, new_vars)])
        losses.append(float(loss))
    return [losses, model.get_weights()]


@program(rtol=1e-3, atol=1e-5)
def prototypical_network(tf, np):
    dense = tf.keras.layers.Dense
    encoder = set_weights(np, tf.keras.Sequential([tf.keras.Input((6,)), dense(8, activation="relu"), dense(3)]))
    random = np.random.default_rng(2)
    support = random.normal(size=(3, 4, 6)).astype("float32") + np.arange(3, dtype="float32")[:, None, None]
    query = random.normal(size=(3, 2, 6)).astype("float32") + np.arange(3, dtype="float32")[:, None, None]

    @tf.function
    def loss_func(x_support, x_query):
        n_class, n_support = tf.shape(x_support)[0], tf.shape(x_support)[1]
        cat = tf.concat([tf.reshape(x_support, [-1, 6]), tf.reshape(x_query, [-1, 6])], axis=0)
        z = encoder(cat)
        z_prototypes = tf.reshape(z[: n_class * n_support], [n_class, n_support, 3])
        z_prototypes = tf.math.reduce_mean(z_prototypes, axis=1)
        z_query = z[n_class * n_support :]
        dists = tf.reduce_sum((z_query[:, None, :] - z_prototypes[None]) ** 2, axis=2)
        log_p_y = tf.reshape(tf.nn.log_softmax(-dists, axis=-1), [n_class, 2, -1])
        targets = tf.one_hot(tf.tile(tf.range(n_class)[:, None], [1, 2]), n_class)
        loss = -tf.reduce_mean(tf.reduce_sum(targets * log_p_y, axis=-1))
        right = tf.equal(tf.argmax(log_p_y, axis=-1), tf.argmax(targets, axis=-1))
        return loss, tf.reduce_mean(tf.cast(right, tf.float32))

    optimizer = tf.keras.optimizers.Adam(0.01)
    results = []
    for _ in range(3):
        with tf.GradientTape() as tape:
            loss, accuracy = loss_func(support, query)
        optimizer.apply_gradients(zip(tape.gradient(loss, encoder.trainable_variables), encoder.trainable_variables))
        results.append([loss, accuracy])
    return results


@program(rtol=1e-3, atol=1e-5)
def knowledge_distillation(tf, np):
    dense = tf.keras.layers.Dense
    teacher = set_weights(
        np, tf.keras.Sequential([tf.keras.Input((4,)), dense(16, activation="relu"), dense(3)]), 1, 1.0
    )
    student = set_weights(np, tf.keras.Sequential([tf.keras.Input((4,)), dense(3)]))
    x = np.random.default_rng(6).normal(size=(12, 4)).astype("float32")
    y = np.arange(12) % 3
    kl, hard = tf.keras.losses.KLDivergence(), tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    optimizer, tracker = tf.keras.optimizers.Adam(0.02), tf.keras.metrics.Mean()
    accuracy = tf.keras.metrics.SparseTopKCategoricalAccuracy(k=2)
    losses = []
    for _ in range(4):
        soft = tf.nn.softmax(teacher(x, training=False) / 3.0, axis=1)
        with tf.GradientTape() as tape:
            logits = student(x, training=True)
            distill = kl(soft, tf.nn.softmax(logits / 3.0, axis=1)) * 3.0**2
            loss = 0.3 * hard(y, logits) + 0.7 * distill
        grads = tape.gradient(loss, student.trainable_variables)
        optimizer.apply_gradients(zip(grads, student.trainable_variables))
        tracker.update_state(distill)
        accuracy.update_state(y, logits)
        losses.append(loss)
    return [losses, tracker.result(), accuracy.result()]


@program(rtol=1e-3, atol=1e-5)
def integrated_gradients(tf, np):
    model = tf.keras.Sequential(
        [
            tf.keras.Input((8, 8, 3)),
            tf.keras.layers.Conv2D(3, 3, activation="relu"),
            tf.keras.layers.Flatten(),
            tf.keras.layers.Dense(4),
        ]
    )
    set_weights(np, model)
    image = tf.constant(np.random.default_rng(1).uniform(size=(8, 8, 3)), tf.float32)
    baseline = tf.zeros(shape=(8, 8, 3))
    alphas = tf.linspace(start=0.0, stop=1.0, num=9)

    def interpolate_images(baseline, image, alphas):
        alphas_x = alphas[:, tf.newaxis, tf.newaxis, tf.newaxis]
        delta = tf.expand_dims(image, axis=0) - tf.expand_dims(baseline, axis=0)
        return tf.expand_dims(baseline, axis=0) + alphas_x * delta

    def compute_gradients(images, target_class_idx):
        with tf.GradientTape() as tape:
            tape.watch(images)
            probs = tf.nn.softmax(model(images), axis=-1)[:, target_class_idx]
        return tape.gradient(probs, images)

    def integral_approximation(gradients):
        grads = (gradients[:-1] + gradients[1:]) / tf.constant(2.0)
        return tf.math.reduce_mean(grads, axis=0)

    path = compute_gradients(interpolate_images(baseline, image, alphas), 2)
    attributions = (image - baseline) * integral_approximation(path)
    return [tf.reduce_sum(attributions), tf.reduce_sum(tf.abs(attributions), axis=-1)]


@program(rtol=1e-3, atol=1e-5)
def class_activation_maps(tf, np):
    inputs = tf.keras.Input((8, 8, 1))
    x = tf.keras.layers.Conv2D(4, 3, activation="relu", name="last_conv")(inputs)
    x = tf.keras.layers.GlobalMaxPooling2D()(x)
    model = set_weights(np, tf.keras.Model(inputs, tf.keras.layers.Dense(3, activation="softmax")(x)))
    grad_model = tf.keras.models.Model(model.inputs, [model.get_layer("last_conv").output, model.output])
    images = np.random.default_rng(4).uniform(size=(2, 8, 8, 1)).astype("float32")
    with tf.GradientTape() as tape:
        last_conv, preds = grad_model([images])
        channel = tf.reduce_max(preds, axis=1)
    grads = tape.gradient(channel, last_conv)
    pooled = tf.reduce_mean(grads, axis=(0, 1, 2))
    heatmap = tf.squeeze(last_conv[0] @ pooled[..., tf.newaxis])
    heatmap = tf.maximum(heatmap, 0) / (tf.math.reduce_max(heatmap) + 1e-7)
    return [heatmap, tf.image.resize(heatmap[..., tf.newaxis], (8, 8))[..., 0]]


@program(rtol=1e-3, atol=1e-5)
def adversarial_examples(tf, np):
    model = tf.keras.Sequential(
        [tf.keras.layers.Dense(8, activation="relu"), tf.keras.layers.Dense(3, activation="softmax")]
    )
    model.build((None, 5))
    set_weights(np, model)
    loss_object = tf.keras.losses.CategoricalCrossentropy()
    x = tf.constant(np.random.default_rng(0).uniform(size=(4, 5)), tf.float32)
    labels = tf.one_hot([0, 1, 2, 0], 3)

    def create_adversarial_pattern(image, label):
        with tf.GradientTape() as tape:
            tape.watch(image)
            loss = loss_object(label, model(image))
        return tf.sign(tape.gradient(loss, image))

    once = tf.clip_by_value(x + 0.1 * create_adversarial_pattern(x, labels), 0, 1)
    attacked = x
    for _ in range(3):
        attacked = attacked + 0.05 * create_adversarial_pattern(attacked, labels)
        attacked = tf.clip_by_value(attacked, x - 0.1, x + 0.1)
    return [create_adversarial_pattern(x, labels), model(once), model(attacked)]
