"""Estimation and finance as people write it for TensorFlow: filters, samplers, processes, options."""

from conformance.program import program


@program(rtol=2e-3, atol=1e-4)
def kalman_filter_likelihood(tf, np):
    rs = np.random.RandomState(0)
    T, dt = 20, 0.1
    F = tf.constant([[1.0, dt], [0.0, 1.0]], tf.float64)
    H = tf.constant([[1.0, 0.0]], tf.float64)
    z = tf.constant(np.cumsum(rs.randn(T) * 0.1 + 0.05)[:, None], tf.float64)
    log_q, log_r = tf.Variable(-2.0, dtype=tf.float64), tf.Variable(-1.0, dtype=tf.float64)

    @tf.function
    def kalman_nll(z):
        Q = tf.exp(log_q) * tf.linalg.diag(tf.constant([dt**3 / 3, dt], tf.float64))
        R = tf.exp(log_r) * tf.eye(1, dtype=tf.float64)
        x = tf.zeros((2, 1), tf.float64)
        P = tf.eye(2, dtype=tf.float64)
        nll = tf.constant(0.0, tf.float64)
        xs = tf.TensorArray(tf.float64, size=T, clear_after_read=False, element_shape=(2, 1))
        for t in tf.range(T):
            x = F @ x
            P = F @ P @ tf.transpose(F) + Q
            y = tf.reshape(z[t], (1, 1)) - H @ x
            S = H @ P @ tf.transpose(H) + R
            K = P @ tf.transpose(H) @ tf.linalg.inv(S)
            x = x + K @ y
            P = (tf.eye(2, dtype=tf.float64) - K @ H) @ P
            nll += 0.5 * (tf.linalg.logdet(S) + tf.squeeze(tf.transpose(y) @ tf.linalg.solve(S, y)))
            xs = xs.write(t, x)
        return nll, tf.squeeze(xs.stack(), -1)

    hist = []
    opt = tf.keras.optimizers.Adam(0.1)
    for _ in range(6):
        with tf.GradientTape() as tape:
            nll, xs = kalman_nll(z)
        g = tape.gradient(nll, [log_q, log_r])
        opt.apply_gradients(zip(g, [log_q, log_r]))
        hist.append([nll, *g])

    # EKF with jacobian, scan smoother
    def f(s):
        return tf.stack([s[0] + dt * s[1], s[1] - dt * tf.sin(s[0])])

    s, P = tf.constant([1.0, 0.0], tf.float64), 0.1 * tf.eye(2, dtype=tf.float64)
    for k in range(4):
        with tf.GradientTape() as t:
            t.watch(s)
            sp = f(s)
        J = t.jacobian(sp, s)
        P = tf.linalg.matmul(tf.linalg.matmul(J, P), J, transpose_b=True)
        s = sp
    ema = tf.scan(lambda a, x: 0.9 * a + 0.1 * x, z[:, 0], initializer=tf.constant(0.0, tf.float64))
    return {"hist": hist, "xs": xs, "P": P, "ema": ema}


@program(rtol=2e-3, atol=1e-4)
def hamiltonian_and_langevin_samplers(tf, np):
    tfkb = tf.keras.backend
    rng = np.random.default_rng(0)
    cov = tf.constant([[1.0, 0.6], [0.6, 2.0]])
    prec = tf.linalg.inv(cov)

    @tf.function
    def U(q):
        return 0.5 * tf.einsum("ni,ij,nj->n", q, prec, q) + 0.05 * tf.reduce_sum(q**4, -1)

    @tf.function
    def dU(q):
        with tf.GradientTape() as t:
            t.watch(q)
            u = tf.reduce_sum(U(q))
        return t.gradient(u, q)

    @tf.function
    def leapfrog(q, p, eps, n_steps):
        p = p - 0.5 * eps * dU(q)
        i = tf.constant(0)

        def cond(i, q, p):
            return i < n_steps - 1

        def body(i, q, p):
            q = q + eps * p
            p = p - eps * dU(q)
            return [i + 1, q, p]

        _, q, p = tf.while_loop(cond, body, [i, q, p])
        q = q + eps * p
        p = p - 0.5 * eps * dU(q)
        return q, -p

    @tf.function
    def hmc_step(q, p, u, eps):
        q1, p1 = leapfrog(q, p, eps, tf.constant(8))
        h0 = U(q) + 0.5 * tf.reduce_sum(p**2, 1)
        h1 = U(q1) + 0.5 * tf.reduce_sum(p1**2, 1)
        accept = tf.math.log(u) < h0 - h1
        return tf.where(accept[:, tf.newaxis], q1, q), accept

    q = tf.constant(rng.normal(size=(20, 2)), tf.float32)
    samples, acc = [], []
    for _ in range(15):
        momentum = tf.constant(rng.normal(size=(20, 2)), tf.float32)
        q, a = hmc_step(q, momentum, tf.constant(rng.uniform(size=20), tf.float32), tf.constant(0.2))
        samples.append(q)
        acc.append(tf.reduce_mean(tf.cast(a, tf.float32)))
    s = tf.concat(samples[5:], 0)
    # SGLD
    w = tf.Variable([1.5, -1.0])
    traj = []
    for k in range(10):
        with tf.GradientTape() as t:
            lp = -U(w[tf.newaxis])[0]
        g = t.gradient(lp, w)
        lr = 0.05 / (1 + k) ** 0.55
        w.assign_add(0.5 * lr * g + np.sqrt(lr) * rng.normal(size=2).astype("float32"))
        traj.append(w.numpy())
    mean, var = tf.nn.moments(s, axes=[0])
    return {"acc": acc, "mean": mean, "var": var, "traj": traj, "q": q}


@program(rtol=2e-3, atol=1e-4)
def portfolio_and_option_greeks(tf, np):
    rs = np.random.RandomState(0)
    R = tf.constant(rs.randn(60, 5) * 0.02 + 0.001)
    mu = tf.reduce_mean(R, 0)
    C = tf.matmul(R - mu, R - mu, transpose_a=True) / tf.cast(tf.shape(R)[0] - 1, tf.float64)
    logits = tf.Variable(np.zeros(5))
    opt = tf.keras.optimizers.Ftrl(0.5)
    hist = []
    for _ in range(10):
        with tf.GradientTape() as t:
            w = tf.nn.softmax(logits)
            sharpe = tf.tensordot(w, mu, 1) / tf.sqrt(tf.einsum("i,ij,j->", w, C, w))
            loss = -sharpe
        opt.apply_gradients([(t.gradient(loss, logits), logits)])
        hist.append(loss)

    def norm_cdf(x):
        return 0.5 * (1.0 + tf.math.erf(x / np.sqrt(2.0)))

    @tf.function
    def black_scholes(S, K, T, r, sigma):
        d1 = (tf.math.log(S / K) + (r + sigma**2 / 2) * T) / (sigma * tf.sqrt(T))
        d2 = d1 - sigma * tf.sqrt(T)
        return S * norm_cdf(d1) - K * tf.exp(-r * T) * norm_cdf(d2)

    values = {"S": 100.0, "K": 105.0, "T": 1.0, "r": 0.05, "sigma": 0.2}
    S, K, T, r, sigma = [tf.Variable(v, dtype=tf.float64, name=name) for name, v in values.items()]
    with tf.GradientTape(persistent=True) as t2:
        with tf.GradientTape(persistent=True) as t1:
            price = black_scholes(S, K, T, r, sigma)
        delta, vega, theta, rho = t1.gradient(price, [S, sigma, T, r])
    gamma = t2.gradient(delta, S)
    vanna, volga = t2.gradient(delta, sigma), t2.gradient(vega, sigma)
    del t1, t2
    # implied vol by Newton
    iv = tf.Variable(0.5, dtype=tf.float64)
    for _ in range(8):
        with tf.GradientTape() as t:
            diff = black_scholes(S, K, T, r, iv) - 10.0
        iv.assign_sub(diff / t.gradient(diff, iv))
    # Monte Carlo asian option pathwise delta, with antithetic
    Z = tf.constant(rs.randn(200, 12))
    Z = tf.concat([Z, -Z], axis=0)
    with tf.GradientTape() as t:
        dtm = T / 12
        steps = (r - 0.5 * sigma**2) * dtm + sigma * tf.sqrt(dtm) * Z
        paths = S * tf.exp(tf.cumsum(steps, axis=1))
        payoff = tf.nn.relu(tf.reduce_mean(paths, 1) - K)
        mc = tf.exp(-r * T) * tf.reduce_mean(payoff)
    greeks = t.gradient(mc, [S, sigma])
    var95 = tf.sort(tf.linalg.matvec(R, w))[3]
    dd = tf.reduce_max(tf.scan(tf.maximum, tf.cumsum(R[:, 0])) - tf.cumsum(R[:, 0]))
    strikes = tf.constant([90.0, 100.0, 110.0], tf.float64)
    smile = tf.vectorized_map(lambda k: black_scholes(S, k, T, r, sigma), strikes)
    derivatives = [price, delta, vega, theta, rho, gamma, vanna, volga]
    return {"hist": hist, "g": derivatives, "iv": iv, "mc": mc, "greeks": greeks, "v": var95, "dd": dd, "smile": smile}


@program(rtol=2e-3, atol=1e-4)
def gaussian_process_hyperparameters(tf, np):
    tf.random.set_seed(0)
    rs = np.random.RandomState(0)
    X = tf.constant(np.sort(rs.uniform(-3, 3, (15, 1)), 0), dtype=tf.float64)
    Y = tf.sin(X) + 0.1 * rs.randn(15, 1)

    class GP(tf.Module):
        def __init__(self, lengthscale=1.0, variance=1.0, noise=0.1):
            self.log_l = tf.Variable(tf.math.log(tf.constant(lengthscale, tf.float64)), name="l")
            self.log_v = tf.Variable(np.log(variance), dtype=tf.float64)
            self.log_n = tf.Variable(np.log(noise), dtype=tf.float64)

        def kernel(self, A, B):
            d2 = tf.reduce_sum(tf.math.squared_difference(A[:, None, :], B[None, :, :]), -1)
            return tf.exp(self.log_v) * tf.exp(-0.5 * d2 / tf.exp(2 * self.log_l))

        def neg_log_marginal_likelihood(self, X, Y):
            n = X.shape[0]
            K = self.kernel(X, X) + tf.linalg.eye(n, dtype=tf.float64) * tf.exp(self.log_n)
            L = tf.linalg.cholesky(K)
            alpha = tf.linalg.cholesky_solve(L, Y)
            fit = tf.squeeze(0.5 * tf.matmul(Y, alpha, transpose_a=True))
            return fit + tf.reduce_sum(tf.math.log(tf.linalg.diag_part(L))) + 0.5 * n * np.log(2 * np.pi)

        def predict(self, Xs):
            K = self.kernel(X, X) + tf.linalg.eye(15, dtype=tf.float64) * tf.exp(self.log_n)
            L = tf.linalg.cholesky(K)
            Ks = self.kernel(X, Xs)
            A = tf.linalg.triangular_solve(L, Ks, lower=True)
            mu = tf.matmul(Ks, tf.linalg.cholesky_solve(L, Y), transpose_a=True)
            var = tf.linalg.diag_part(self.kernel(Xs, Xs)) - tf.reduce_sum(A**2, 0)
            return mu, var

    gp = GP()
    opt = tf.optimizers.Adam(learning_rate=0.05)
    hist = []
    for i in range(20):
        with tf.GradientTape() as tape:
            loss = gp.neg_log_marginal_likelihood(X, Y)
        grads = tape.gradient(loss, gp.trainable_variables)
        opt.apply_gradients(zip(grads, gp.trainable_variables))
        hist.append(loss.numpy())
    # Newton on hyperparameters via Hessian
    theta = tf.Variable([0.0, 0.0, -2.0], dtype=tf.float64)

    def nll(th):
        d2 = (X - tf.transpose(X)) ** 2
        K = tf.exp(th[1]) * tf.exp(-0.5 * d2 / tf.exp(2 * th[0])) + tf.exp(th[2]) * tf.eye(15, dtype=tf.float64)
        _s, ld = tf.linalg.slogdet(K)
        return tf.squeeze(0.5 * tf.transpose(Y) @ tf.linalg.solve(K, Y)) + 0.5 * ld

    with tf.GradientTape() as t2:
        with tf.GradientTape() as t1:
            value = nll(theta)
        g = t1.gradient(value, theta)
    H = t2.jacobian(g, theta)
    mu, var = gp.predict(tf.cast(tf.linspace(-4, 4, 9), tf.float64)[:, None])
    return {
        "hist": hist,
        "mu": mu,
        "var": var,
        "g": g,
        "H": H,
        "names": [v.name for v in gp.trainable_variables],
    }
