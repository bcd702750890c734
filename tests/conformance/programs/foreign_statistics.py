"""Optimisation and statistics as people write them for TensorFlow: likelihoods, samplers, second-order methods."""

from conformance.program import program


@program(rtol=1e-3, atol=1e-6)
def logistic_regression_by_newton(tf, np):
    random = np.random.default_rng(0)
    x = tf.constant(np.c_[random.normal(size=(40, 2)), np.ones(40)])
    y = tf.constant((random.uniform(size=40) < 0.5).astype("float64"))
    w = tf.Variable(tf.zeros([3], tf.float64))
    norms = []
    for _ in range(4):
        with tf.GradientTape() as outer:
            with tf.GradientTape() as inner:
                logits = tf.linalg.matvec(x, w)
                loss = tf.reduce_sum(tf.nn.sigmoid_cross_entropy_with_logits(y, logits)) + 0.05 * tf.reduce_sum(w**2)
            gradient = inner.gradient(loss, w)
        hessian = outer.jacobian(gradient, w)
        w.assign_sub(tf.squeeze(tf.linalg.solve(hessian, gradient[:, tf.newaxis])))
        norms.append(tf.norm(gradient))
    covariance = tf.linalg.inv(hessian)
    return [norms[:3], w, tf.sqrt(tf.linalg.diag_part(covariance))]


@program(rtol=1e-3, atol=1e-6)
def quasi_newton_in_numpy(tf, np):
    @tf.function
    def value_and_gradient(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            value = tf.reduce_sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)
        return value, tape.gradient(value, x)

    x, inverse = np.array([-1.2, 1.0, 0.8]), np.eye(3)
    value, gradient = (part.numpy() for part in value_and_gradient(tf.constant(x)))
    values = [float(value)]
    for _ in range(8):
        direction = -inverse @ gradient
        step = 1.0
        while True:
            new_value, new_gradient = (part.numpy() for part in value_and_gradient(tf.constant(x + step * direction)))
            if new_value <= value + 1e-4 * step * gradient @ direction or step < 1e-8:
                break
            step *= 0.5
        s, y = step * direction, new_gradient - gradient
        rho = 1.0 / max(float(y @ s), 1e-12)
        left = np.eye(3) - rho * np.outer(s, y)
        inverse = left @ inverse @ left.T + rho * np.outer(s, s)
        x, value, gradient = x + s, new_value, new_gradient
        values.append(float(value))
    return [values, x]


@program(rtol=1e-3, atol=1e-6)
def curvature_by_forward_over_reverse(tf, np):
    layer = tf.keras.layers.Dense(2, activation="tanh")
    layer.build((None, 3))
    layer.set_weights([np.cos(np.arange(6.0)).reshape(3, 2), np.array([0.1, -0.2])])
    x = tf.constant(np.sin(np.arange(12.0)).reshape(4, 3), tf.float32)
    variables = [variable.value for variable in layer.trainable_variables]  # the accumulator takes tf.Variables alone

    def hvp(vectors):
        with tf.autodiff.ForwardAccumulator(variables, vectors) as acc:
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean(layer(x) ** 2)
            gradients = tape.gradient(loss, variables)
        return acc.jvp(gradients)

    vectors = [tf.ones_like(v) for v in variables]
    eigenvalues = []
    for _ in range(4):
        norm = tf.linalg.global_norm(vectors)
        vectors = [v / norm for v in vectors]
        products = hvp(vectors)
        eigenvalues.append(tf.add_n([tf.reduce_sum(p * v) for p, v in zip(products, vectors)]))
        vectors = products
    return eigenvalues


@program(rtol=1e-3, atol=1e-6)
def gaussian_process_regression(tf, np):
    x = np.linspace(0, 3, 10)[:, None]
    y = np.sin(2 * x[:, 0]) + 0.1 * np.cos(17 * x[:, 0])
    amplitude, length, noise = (tf.Variable(v, dtype=tf.float64) for v in (0.0, 0.0, -1.0))
    variables = [amplitude, length, noise]

    def kernel(a, b):
        distance = tf.reduce_sum((a[:, None] - b[None]) ** 2, -1)
        return tf.exp(2 * amplitude) * tf.exp(-0.5 * distance / tf.exp(2 * length))

    @tf.function
    def negative_log_likelihood():
        k = kernel(tf.constant(x), tf.constant(x)) + tf.exp(2 * noise) * tf.eye(10, dtype=tf.float64)
        chol = tf.linalg.cholesky(k)
        alpha = tf.linalg.cholesky_solve(chol, tf.constant(y)[:, None])
        return 0.5 * tf.reduce_sum(tf.constant(y) * alpha[:, 0]) + tf.reduce_sum(tf.math.log(tf.linalg.diag_part(chol)))

    optimizer = tf.keras.optimizers.Adam(0.1)
    values = []
    for _ in range(5):
        with tf.GradientTape() as tape:
            value = negative_log_likelihood()
        optimizer.apply_gradients(zip(tape.gradient(value, variables), variables))
        values.append(value)
    return [values, variables]


@program(rtol=1e-3, atol=1e-6)
def stochastic_variational_inference(tf, np):
    random = np.random.default_rng(11)
    x = random.normal(size=(20, 2)).astype("float32")
    y = (x @ np.array([1.0, -0.5]) + 0.1 * random.normal(size=20)).astype("float32")

    class Posterior(tf.Module):
        def __init__(self):
            super().__init__(name="posterior")
            self.mean = tf.Variable(tf.zeros([2]), name="mean")
            self.rho = tf.Variable(tf.fill([2], -1.0), name="rho")

        @property
        def scale(self):
            return tf.math.softplus(self.rho)

        def elbo(self, eps):
            w = self.mean + self.scale * eps
            fit = -0.5 * tf.reduce_sum((tf.linalg.matvec(x, w) - y) ** 2) / 0.01
            kl = tf.reduce_sum(0.5 * (self.scale**2 + self.mean**2 - 1) - tf.math.log(self.scale))
            return fit / 100.0 - kl / 100.0

    q = Posterior()
    optimizer = tf.keras.optimizers.Adam(learning_rate=0.1)
    values = []
    for _ in range(6):
        eps = tf.constant(random.normal(size=2), tf.float32)
        with tf.GradientTape() as tape:
            loss = -q.elbo(eps)
        optimizer.apply_gradients(zip(tape.gradient(loss, q.trainable_variables), q.trainable_variables))
        values.append(loss)
    return [values, q.mean, q.scale, [v.name for v in q.trainable_variables]]


@program(rtol=1e-3, atol=1e-6)
def hamiltonian_monte_carlo(tf, np):
    precision = tf.constant([[2.0, 0.6], [0.6, 1.0]], tf.float64)

    def log_prob(q):
        return -0.5 * tf.reduce_sum(q * tf.linalg.matvec(precision, q))

    @tf.function
    def leapfrog(q, p, step_size, steps):
        def gradient(q):
            with tf.GradientTape() as tape:
                tape.watch(q)
                value = log_prob(q)
            return tape.gradient(value, q)

        p = p + 0.5 * step_size * gradient(q)
        for i in tf.range(steps):
            q = q + step_size * p
            if i < steps - 1:
                p = p + step_size * gradient(q)
        p = p + 0.5 * step_size * gradient(q)
        return q, -p

    random = np.random.default_rng(0)
    q, samples, accepted = tf.zeros([2], tf.float64), [], 0
    for _ in range(6):
        p = tf.constant(random.normal(size=2))
        new_q, new_p = leapfrog(q, p, tf.constant(0.3, tf.float64), tf.constant(4))
        energy = log_prob(new_q) - 0.5 * tf.reduce_sum(new_p**2) - log_prob(q) + 0.5 * tf.reduce_sum(p**2)
        if np.log(random.uniform()) < energy:
            q, accepted = new_q, accepted + 1
        samples.append(q)
    return [tf.stack(samples), accepted]


@program(rtol=1e-3, atol=1e-6)
def mixture_of_gaussians_by_gradient(tf, np):
    random = np.random.default_rng(3)
    data = np.concatenate([random.normal(-2, 0.5, (15, 1)), random.normal(1, 1.0, (15, 1))]).astype("float32")
    logits, means, scales = tf.Variable(tf.zeros(2)), tf.Variable([-1.0, 1.0]), tf.Variable(tf.zeros(2))

    def log_likelihood(x):
        sigma = tf.exp(scales)
        components = -0.5 * ((x - means) / sigma) ** 2 - tf.math.log(sigma) - 0.5 * np.float32(np.log(2 * np.pi))
        return tf.reduce_mean(tf.reduce_logsumexp(tf.nn.log_softmax(logits) + components, axis=1))

    variables, values = [logits, means, scales], []
    optimizer = tf.keras.optimizers.Adam(0.1)
    for _ in range(6):
        with tf.GradientTape() as tape:
            loss = -log_likelihood(data)
        optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))
        values.append(loss)
    return [values, variables]


@program(rtol=1e-3, atol=1e-6)
def kalman_filter_by_scan(tf, np):
    observations = tf.constant(np.cumsum(np.random.default_rng(1).normal(size=12)), tf.float32)
    log_q, log_r = tf.Variable(0.0), tf.Variable(0.0)

    def filtered():
        q, r = tf.exp(log_q), tf.exp(log_r)

        def step(state, y):
            mean, variance, _ = state
            predicted = variance + q
            s = predicted + r
            gain = predicted / s
            innovation = y - mean
            log_prob = -0.5 * (tf.math.log(2 * np.pi * s) + innovation**2 / s)
            return mean + gain * innovation, (1 - gain) * predicted, log_prob

        return tf.scan(step, observations, initializer=(tf.constant(0.0), tf.constant(10.0), tf.constant(0.0)))

    optimizer = tf.keras.optimizers.SGD(0.05)
    values = []
    for _ in range(4):
        with tf.GradientTape() as tape:
            loss = -tf.reduce_sum(filtered()[2])
        optimizer.apply_gradients(zip(tape.gradient(loss, [log_q, log_r]), [log_q, log_r]))
        values.append(loss)
    return [values, log_q, log_r, filtered()[0]]


@program(rtol=1e-3, atol=1e-6)
def proportional_hazards(tf, np):
    random = np.random.default_rng(9)
    x = random.normal(size=(14, 3)).astype("float32")
    times = random.exponential(size=14)
    events = (random.uniform(size=14) < 0.7).astype("float32")
    order = np.argsort(-times)
    x, events = tf.constant(x[order]), tf.constant(events[order])
    beta = tf.Variable(tf.zeros([3, 1]))
    losses = []
    for _ in range(5):
        with tf.GradientTape() as tape:
            risk = tf.squeeze(tf.matmul(x, beta), -1)
            log_cumulative = tf.math.log(tf.cumsum(tf.exp(risk)))
            loss = -tf.reduce_sum((risk - log_cumulative) * events) / tf.reduce_sum(events)
        beta.assign_sub(0.3 * tape.gradient(loss, beta))
        losses.append(loss)
    return [losses, beta]


@program(rtol=1e-3, atol=1e-6)
def matrix_factorization_with_sparse_updates(tf, np):
    users = np.array([0, 1, 2, 0, 3, 2])
    items = np.array([1, 0, 2, 2, 1, 0])
    ratings = np.array([5.0, 3.0, 4.0, 1.0, 2.0, 5.0], "float32")
    random = np.random.default_rng(0)
    user_factors = tf.Variable(random.normal(size=(4, 2)).astype("float32"))
    item_factors = tf.Variable(random.normal(size=(3, 2)).astype("float32"))
    bias = tf.Variable(tf.zeros([3]))
    optimizer = tf.keras.optimizers.Adagrad(learning_rate=0.2)
    variables, losses, kinds = [user_factors, item_factors, bias], [], set()
    for _ in range(4):
        with tf.GradientTape() as tape:
            u = tf.nn.embedding_lookup(user_factors, users)
            i = tf.nn.embedding_lookup(item_factors, items)
            predicted = tf.reduce_sum(u * i, axis=1) + tf.gather(bias, items)
            loss = tf.reduce_mean(tf.square(predicted - ratings)) + 0.01 * tf.nn.l2_loss(u)
        gradients = tape.gradient(loss, variables)
        kinds |= {isinstance(gradient, tf.IndexedSlices) for gradient in gradients}
        optimizer.apply_gradients(zip(gradients, variables))
        losses.append(loss)
    return [losses, kinds == {True}, variables]


@program(rtol=1e-3, atol=1e-6)
def hyperparameters_by_the_implicit_function(tf, np):
    random = np.random.default_rng(2)
    x, y = tf.constant(random.normal(size=(10, 3))), tf.constant(random.normal(size=(10, 1)))
    held, target = tf.constant(random.normal(size=(6, 3))), tf.constant(random.normal(size=(6, 1)))
    log_penalty = tf.Variable(0.0, dtype=tf.float64)
    values = []
    for _ in range(4):
        with tf.GradientTape() as tape:
            gram = tf.matmul(x, x, transpose_a=True) + tf.exp(log_penalty) * tf.eye(3, dtype=tf.float64)
            weights = tf.linalg.solve(gram, tf.matmul(x, y, transpose_a=True))
            validation = tf.reduce_mean((held @ weights - target) ** 2)
        gradient = tape.gradient(validation, log_penalty)
        log_penalty.assign_sub(2.0 * gradient)
        values.append([validation, gradient])
    return [values, log_penalty]


@program(rtol=1e-3, atol=1e-6)
def quantile_regression_in_a_converted_loop(tf, np):
    random = np.random.default_rng(12)
    x = tf.constant(np.c_[np.ones(30), random.uniform(size=30)], tf.float32)
    y = tf.constant(random.normal(size=30), tf.float32)

    @tf.function
    def fit(quantile, steps, tolerance):
        w = tf.zeros([2])
        used = tf.constant(0)
        for _ in tf.range(steps):
            with tf.GradientTape() as tape:
                tape.watch(w)
                error = y - tf.linalg.matvec(x, w)
                loss = tf.reduce_mean(tf.maximum(quantile * error, (quantile - 1) * error))
            gradient = tape.gradient(loss, w)
            if tf.norm(gradient) < tolerance:
                break
            w -= 0.3 * gradient
            used += 1
        return w, used

    return [fit(tf.constant(q), tf.constant(20), tf.constant(1e-3)) for q in (0.1, 0.5, 0.9)]
