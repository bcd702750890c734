"""Physics as people write it for TensorFlow: residuals of equations, energies, trajectories."""

from conformance.program import program
from conformance.weights import set_weights


@program(rtol=1e-3, atol=1e-5)
def burgers_equation(tf, np):
    class PINN(tf.keras.Model):
        def __init__(self, units):
            super().__init__()
            self.hidden = [tf.keras.layers.Dense(n, activation="tanh") for n in units]
            self.out = tf.keras.layers.Dense(1)

        def call(self, x):
            for layer in self.hidden:
                x = layer(x)
            return self.out(x)

    model = PINN([6, 6])
    model(tf.zeros((1, 2)))
    set_weights(np, model)
    nu = 0.01 / np.pi
    random = np.random.default_rng(0)
    x = tf.constant(random.uniform(-1, 1, (12, 1)), tf.float32)
    t = tf.constant(random.uniform(0, 1, (12, 1)), tf.float32)
    x0 = tf.constant(np.linspace(-1, 1, 7)[:, None], tf.float32)
    u0 = -tf.sin(np.pi * x0)

    @tf.function
    def residual(x, t):
        with tf.GradientTape(persistent=True) as outer:
            outer.watch([x, t])
            with tf.GradientTape(persistent=True) as inner:
                inner.watch([x, t])
                u = model(tf.concat([x, t], 1))
            u_x, u_t = inner.gradient(u, x), inner.gradient(u, t)
        u_xx = outer.gradient(u_x, x)
        return u_t + u * u_x - nu * u_xx

    optimizer = tf.keras.optimizers.Adam(5e-3)
    losses = []
    for _ in range(3):
        with tf.GradientTape() as tape:
            start = model(tf.concat([x0, tf.zeros_like(x0)], 1))
            loss = tf.reduce_mean(tf.square(residual(x, t))) + tf.reduce_mean(tf.square(start - u0))
        grads = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(grads, model.trainable_variables))
        losses.append(loss)
    return [losses, residual(x, t)[:3]]


@program(rtol=1e-3, atol=1e-5)
def hamiltonian_network(tf, np):
    class HNN(tf.keras.Model):
        def __init__(self, baseline):
            super().__init__()
            self.baseline = baseline
            self.J = tf.constant([[0.0, 1.0], [-1.0, 0.0]])

        def call(self, x):
            with tf.GradientTape() as tape:
                tape.watch(x)
                energy = self.baseline(x)
            return tf.matmul(tape.gradient(energy, x), self.J, transpose_b=True)

    baseline = set_weights(
        np,
        tf.keras.Sequential(
            [tf.keras.Input((2,)), tf.keras.layers.Dense(8, "tanh"), tf.keras.layers.Dense(1, use_bias=False)]
        ),
    )
    model = HNN(baseline)
    x = tf.constant(np.random.default_rng(3).normal(size=(8, 2)), tf.float32)
    target = tf.stack([x[:, 1], -x[:, 0]], axis=1)
    optimizer = tf.keras.optimizers.Adam(1e-2)

    @tf.function
    def step():
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.keras.losses.mse(target, model(x)))
        grads = tape.gradient(loss, baseline.trainable_variables)
        optimizer.apply_gradients(zip(grads, baseline.trainable_variables))
        return loss

    losses = [step() for _ in range(4)]
    state, path = tf.constant([[1.0, 0.0]]), []
    for _ in range(3):
        k1 = model(state)
        k2 = model(state + 0.05 * k1)
        state = state + 0.1 * k2
        path.append(state)
    return [losses, tf.concat(path, 0)]


@program(rtol=1e-3, atol=1e-5)
def lagrangian_of_a_double_pendulum(tf, np):
    m1, m2, l1, l2, g = 1.0, 1.0, 1.0, 0.8, 9.8

    def lagrangian(q, v):
        t1, t2 = q[0], q[1]
        w1, w2 = v[0], v[1]
        kinetic = 0.5 * m1 * (l1 * w1) ** 2
        kinetic += 0.5 * m2 * ((l1 * w1) ** 2 + (l2 * w2) ** 2 + 2 * l1 * l2 * w1 * w2 * tf.cos(t1 - t2))
        y1 = -l1 * tf.cos(t1)
        potential = m1 * g * y1 + m2 * g * (y1 - l2 * tf.cos(t2))
        return kinetic - potential

    @tf.function
    def acceleration(q, v):
        with tf.GradientTape(persistent=True) as outer:
            outer.watch([q, v])
            with tf.GradientTape(persistent=True) as inner:
                inner.watch([q, v])
                value = lagrangian(q, v)
            dq, dv = inner.gradient(value, q), inner.gradient(value, v)
        mass = outer.jacobian(dv, v)
        mixed = outer.jacobian(dv, q)
        rest = dq - tf.linalg.matvec(mixed, v)
        return tf.squeeze(tf.linalg.solve(mass, rest[:, None]), 1)

    q, v = tf.constant([1.2, -0.3], tf.float64), tf.constant([0.0, 0.4], tf.float64)
    energies = []
    for _ in range(5):
        a = acceleration(tf.cast(q, tf.float32), tf.cast(v, tf.float32))
        v = v + 0.01 * tf.cast(a, tf.float64)
        q = q + 0.01 * v
        energies.append(a)
    return [q, v, tf.stack(energies)]


@program(rtol=1e-3, atol=1e-5)
def neural_ode_by_runge_kutta(tf, np):
    net = set_weights(
        np,
        tf.keras.Sequential(
            [tf.keras.Input((2,)), tf.keras.layers.Dense(8, activation="tanh"), tf.keras.layers.Dense(2)]
        ),
    )

    def rk4(y, h):
        k1 = net(y)
        k2 = net(y + h / 2 * k1)
        k3 = net(y + h / 2 * k2)
        k4 = net(y + h * k3)
        return y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)

    @tf.function
    def integrate(y0, steps):
        path = tf.TensorArray(tf.float32, size=steps)
        y = y0
        for i in tf.range(steps):
            y = rk4(y, 0.1)
            path = path.write(i, y)
        return path.stack()

    times = np.arange(1, 6) * 0.1
    true = tf.constant(np.stack([np.cos(times), -np.sin(times)], 1)[:, None], tf.float32)
    y0 = tf.constant([[1.0, 0.0]])
    optimizer = tf.keras.optimizers.Adamax(0.02)
    losses = []
    for _ in range(3):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((integrate(y0, tf.constant(5)) - true) ** 2)
        optimizer.apply_gradients(zip(tape.gradient(loss, net.trainable_variables), net.trainable_variables))
        losses.append(loss)
    return [losses, integrate(y0, tf.constant(5))[:, 0]]


@program(rtol=1e-3, atol=1e-5)
def ground_state_by_the_rayleigh_quotient(tf, np):
    n, h = 24, 0.4
    grid = (np.arange(n) - (n - 1) / 2) * h
    laplace = (np.eye(n, k=1) + np.eye(n, k=-1) - 2 * np.eye(n)) / h**2
    hamiltonian = tf.constant(-0.5 * laplace + np.diag(0.5 * grid**2), tf.float64)
    psi = tf.Variable(np.exp(-0.3 * grid**2) + 0.05 * np.cos(grid), dtype=tf.float64)
    energies = []
    optimizer = tf.keras.optimizers.SGD(learning_rate=0.02, momentum=0.5)
    for _ in range(8):
        with tf.GradientTape() as tape:
            numerator = tf.tensordot(psi, tf.linalg.matvec(hamiltonian, psi), 1)
            energy = numerator / tf.reduce_sum(psi * psi)
        optimizer.apply_gradients([(tape.gradient(energy, psi), psi)])
        psi.assign(psi / tf.norm(psi))
        energies.append(float(energy))
    return [energies, tf.abs(psi)]


@program(rtol=1e-3, atol=1e-5)
def springs_find_rest(tf, np):
    places = tf.Variable(np.random.default_rng(5).normal(size=(5, 2)).astype("float32"))
    pairs = tf.constant([[0, 1], [1, 2], [2, 3], [3, 4], [4, 0], [0, 2]])
    rest = tf.constant([1.0, 1.0, 1.2, 0.8, 1.0, 1.5])

    @tf.function
    def energy():
        ends = tf.gather(places, pairs)
        lengths = tf.norm(ends[:, 0] - ends[:, 1], axis=-1)
        return 0.5 * tf.reduce_sum((lengths - rest) ** 2) + 0.1 * tf.reduce_sum(places[:, 1])

    optimizer = tf.keras.optimizers.Adagrad(0.3)
    energies = []
    for _ in range(5):
        with tf.GradientTape() as tape:
            value = energy()
        gradient = tape.gradient(value, places)
        optimizer.apply_gradients([(gradient, places)])
        energies.append(value)
    with tf.GradientTape() as outer:
        with tf.GradientTape() as inner:
            value = energy()
        forces = inner.gradient(value, places)
    stiffness = outer.jacobian(forces, places)
    return [energies, places, tf.linalg.trace(tf.reshape(stiffness, (10, 10)))]
