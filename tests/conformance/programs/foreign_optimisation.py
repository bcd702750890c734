"""Optimisation as people write it for TensorFlow: Newton and its kin, control, per-example gradients."""

from conformance.program import program


@program(rtol=2e-3, atol=1e-4)
def newton_lbfgs_and_natural_gradient(tf, np):

    def rosenbrock(x):
        return tf.reduce_sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)

    def value_and_grad(f, x):
        with tf.GradientTape() as t:
            t.watch(x)
            y = f(x)
        return y, t.gradient(y, x)

    def hvp_fwd_over_rev(f, x, v):
        with tf.autodiff.ForwardAccumulator(primals=x, tangents=v) as acc:
            with tf.GradientTape() as tape:
                tape.watch(x)
                y = f(x)
            g = tape.gradient(y, x)
        return acc.jvp(g)

    def hvp_rev_rev(f, x, v):
        with tf.GradientTape() as outer:
            outer.watch(x)
            with tf.GradientTape() as inner:
                inner.watch(x)
                y = f(x)
            g = inner.gradient(y, x)
        return outer.gradient(g, x, output_gradients=v)

    def cg(Ax, b, tol=1e-10, maxit=20):
        x = tf.zeros_like(b)
        r, p = b, b
        rs = tf.tensordot(r, r, 1)
        for _ in range(maxit):
            Ap = Ax(p)
            alpha = rs / tf.tensordot(p, Ap, axes=1)
            x += alpha * p
            r -= alpha * Ap
            rs_new = tf.tensordot(r, r, 1)
            if tf.sqrt(rs_new) < tol:
                break
            p = r + (rs_new / rs) * p
            rs = rs_new
        return x

    x = tf.constant([-1.2, 1.0, 0.5, 0.8], dtype=tf.float64)
    newton = []
    for _ in range(8):
        y, g = value_and_grad(rosenbrock, x)
        step = cg(lambda v: hvp_fwd_over_rev(rosenbrock, x, v), g)
        t = 1.0
        while rosenbrock(x - t * step) > y and t > 1e-4:
            t *= 0.5
        x = x - t * step
        newton.append(y.numpy())
    v = tf.constant([1.0, 0.0, -1.0, 2.0], tf.float64)
    pair = [hvp_fwd_over_rev(rosenbrock, x, v), hvp_rev_rev(rosenbrock, x, v)]

    def lbfgs(f, x, m=5, iters=15):
        s_list, y_list, fs = [], [], []
        fx, g = value_and_grad(f, x)
        for k in range(iters):
            q = tf.identity(g)
            alphas = []
            for s, yv in zip(reversed(s_list), reversed(y_list)):
                rho = 1.0 / tf.reduce_sum(s * yv)
                a = rho * tf.reduce_sum(s * q)
                q = q - a * yv
                alphas.append((a, rho))
            if s_list:
                q *= tf.reduce_sum(s_list[-1] * y_list[-1]) / tf.reduce_sum(y_list[-1] ** 2)
            for (s, yv), (a, rho) in zip(zip(s_list, y_list), reversed(alphas)):
                b = rho * tf.reduce_sum(yv * q)
                q = q + s * (a - b)
            d, t = -q, 1.0
            gd = float(tf.reduce_sum(g * d))
            while True:
                fn, gn = value_and_grad(f, x + t * d)
                if float(fn) <= float(fx) + 1e-4 * t * gd or t < 1e-10:
                    break
                t *= 0.5
            s_list.append(t * d)
            y_list.append(gn - g)
            s_list, y_list = s_list[-m:], y_list[-m:]
            x, fx, g = x + t * d, fn, gn
            fs.append(float(fx))
        return x, fs

    xl, fs = lbfgs(rosenbrock, tf.constant([-1.2, 1.0], tf.float64))

    # Gauss-Newton / LM curve fitting
    tt = tf.constant(np.linspace(0, 2, 12))
    obs = 2.0 * tf.exp(-1.3 * tt) + 0.01 * np.random.RandomState(0).randn(12)
    p = tf.Variable([1.0, -0.5], dtype=tf.float64)
    lam = 1e-2
    for _ in range(6):
        with tf.GradientTape() as tape:
            r = p[0] * tf.exp(p[1] * tt) - obs
        J = tape.jacobian(r, p)
        A = tf.matmul(J, J, transpose_a=True) + lam * tf.linalg.diag(tf.linalg.diag_part(tf.transpose(J) @ J))
        p.assign_sub(tf.linalg.matvec(tf.linalg.inv(A), tf.linalg.matvec(J, r, transpose_a=True)))
    # natural gradient for softmax regression
    W = tf.Variable(tf.zeros([3, 3], tf.float64))
    X = tf.constant(np.random.RandomState(1).randn(20, 3))
    lab = tf.constant(np.random.RandomState(2).randint(0, 3, 20))
    for _ in range(3):
        with tf.GradientTape(persistent=True) as tape:
            lp = tf.nn.log_softmax(X @ W)
            ll = tf.gather(lp, lab, batch_dims=1, axis=1)
            loss = -tf.reduce_mean(ll)
        G = tf.reshape(tape.jacobian(ll, W), [20, -1])
        F = tf.transpose(G) @ G / 20 + 1e-3 * tf.eye(9, dtype=tf.float64)
        g = tf.reshape(tape.gradient(loss, W), [-1, 1])
        W.assign_sub(tf.reshape(tf.linalg.solve(F, g), [3, 3]))
    return {"newton": newton, "x": x, "pair": pair, "xl": xl, "fs": fs[-1], "p": p, "W": W}


@program(rtol=2e-3, atol=1e-4)
def trajectory_optimisation(tf, np):

    class Pendulum(tf.Module):
        g, length, m, dt = 9.8, 1.0, 1.0, 0.05

        def step(self, state, u):
            th, om = tf.unstack(state, axis=-1)
            acc = (u - self.m * self.g * self.length * tf.sin(th)) / (self.m * self.length**2)
            om = om + self.dt * acc
            th = th + self.dt * om
            return tf.stack([th, om], axis=-1)

    env = Pendulum()
    T = 30
    u = tf.Variable(tf.zeros([T]), constraint=lambda v: tf.clip_by_value(v, -5.0, 5.0))

    @tf.function(reduce_retracing=True)
    def rollout(u):
        s = tf.constant([0.0, 0.0])
        cost = 0.0
        for t in range(T):
            s = env.step(s, u[t])
            cost += 0.001 * u[t] ** 2
        cost += 10 * (s[0] - np.pi) ** 2 + s[1] ** 2
        return cost, s

    opt = tf.keras.optimizers.SGD(learning_rate=0.05, momentum=0.5)
    hist = []
    for i in range(10):
        with tf.GradientTape() as tape:
            c, _ = rollout(u)
        g = tape.gradient(c, u)
        g = tf.clip_by_norm(g, 5.0)
        opt.apply_gradients([(g, u)])
        u.assign(u.constraint(u) if getattr(u, "constraint", None) else u)
        hist.append(c)

    # iLQR pieces
    def dyn(s, a):
        return env.step(s, a)

    S, A = (
        tf.constant(np.random.RandomState(0).randn(5, 2), tf.float32),
        tf.constant(np.random.RandomState(1).randn(5), tf.float32),
    )
    with tf.GradientTape(persistent=True) as t:
        t.watch([S, A])
        nxt = dyn(S, A)
    fs = t.batch_jacobian(nxt, S)
    with tf.GradientTape() as t2:
        t2.watch(S)
        with tf.GradientTape() as t1:
            t1.watch(S)
            V = tf.reduce_sum(tf.cos(dyn(S, A)[:, 0]) * dyn(S, A)[:, 1])
        gs = t1.gradient(V, S)
    Vxx = t2.batch_jacobian(gs, S)
    # cross-entropy method
    mean, std = tf.zeros([8]), tf.ones([8])
    rs = np.random.RandomState(2)
    for it in range(4):
        samples = mean + std * tf.constant(rs.randn(30, 8), tf.float32)
        scores = -tf.reduce_sum((samples - tf.range(8, dtype=tf.float32)) ** 2, axis=1)
        elite = tf.gather(samples, tf.argsort(scores, direction="DESCENDING")[:5])
        mean, var = tf.nn.moments(elite, axes=0)
        std = tf.sqrt(var) + 0.1
    return {"hist": hist, "u": u, "fs": fs, "Vxx": Vxx, "mean": mean}


@program(rtol=2e-3, atol=1e-4)
def kernels_clipping_and_traces(tf, np):
    rs = np.random.RandomState(0)
    W = [tf.Variable(rs.randn(a, b) * 0.5, dtype=tf.float64) for a, b in ((3, 6), (6, 4), (4, 2))]

    def mlp(x):
        for w in W[:-1]:
            x = tf.nn.tanh(tf.linalg.matmul(x, w))
        return tf.matmul(x, W[-1])

    x = tf.constant(rs.randn(5, 3))
    # NTK
    with tf.GradientTape() as t:
        y = mlp(x)
    J = t.jacobian(y, W, experimental_use_pfor=True)
    ntk = sum(tf.einsum("niab,mjab->nmij", j, j) for j in J)

    # per example grads with vectorized_map
    def per_ex(args):
        xi, yi = args
        with tf.GradientTape() as t:
            value = tf.reduce_sum((mlp(xi[None]) - yi) ** 2)
        return t.gradient(value, W)

    tgt = tf.constant(rs.randn(5, 2))
    pg = tf.vectorized_map(per_ex, (x, tgt))
    norms = tf.sqrt(tf.add_n([tf.reduce_sum(g**2, axis=[1, 2]) for g in pg]))
    clip = [tf.reduce_mean(g * tf.reshape(tf.minimum(1.0, 1.0 / norms), [-1, 1, 1]), 0) for g in pg]
    # map_fn with gradient
    with tf.GradientTape() as t:
        t.watch(x)
        m = tf.map_fn(lambda r: tf.reduce_sum(tf.math.softplus(r) * r), x)
        tot = tf.reduce_sum(m)
    gm = t.gradient(tot, x)

    # hessian trace by Hutchinson + full hessian
    def loss_flat(theta):
        a = tf.reshape(theta[:18], [3, 6])
        b = tf.reshape(theta[18:42], [6, 4])
        return tf.reduce_mean(tf.matmul(tf.nn.sigmoid(x @ a), b) ** 2)

    theta = tf.constant(rs.randn(42))
    with tf.GradientTape(persistent=True) as t2:
        t2.watch(theta)
        with tf.GradientTape() as t1:
            t1.watch(theta)
            value = loss_flat(theta)
        g = t1.gradient(value, theta)
    H = t2.jacobian(g, theta, experimental_use_pfor=False)
    tr = tf.linalg.trace(H)
    zs = tf.constant(rs.choice([-1.0, 1.0], (8, 42)))

    def hv(z):
        with tf.autodiff.ForwardAccumulator(theta, z) as acc:
            with tf.GradientTape() as t:
                t.watch(theta)
                value = loss_flat(theta)
            g = t.gradient(value, theta)
        return tf.tensordot(acc.jvp(g), z, 1)

    hutch = tf.reduce_mean(tf.stack([hv(z) for z in zs]))
    # power iteration
    v = tf.ones([42], tf.float64) / np.sqrt(42.0)
    for _ in range(10):
        Hv = tf.linalg.matvec(H, v)
        lam = tf.tensordot(v, Hv, 1)
        v = Hv / tf.norm(Hv)

    # divergence and laplacian
    def field(p):
        return tf.stack([tf.sin(p[:, 0]) * p[:, 1], p[:, 1] ** 2 * p[:, 2], tf.exp(-p[:, 0])], axis=1)

    with tf.GradientTape() as t:
        t.watch(x)
        fv = field(x)
    bj = t.batch_jacobian(fv, x)
    div = tf.linalg.trace(bj)
    curl = tf.stack([bj[:, 2, 1] - bj[:, 1, 2], bj[:, 0, 2] - bj[:, 2, 0], bj[:, 1, 0] - bj[:, 0, 1]], -1)

    def nth(f, x, n):
        if n == 0:
            return f(x)
        with tf.GradientTape() as t:
            t.watch(x)
            y = nth(f, x, n - 1)
        return t.gradient(y, x)

    ders = [nth(lambda q: tf.exp(tf.sin(q)), tf.constant(0.5), k) for k in range(5)]
    return {
        "ntk": ntk,
        "norms": norms,
        "clip": clip,
        "gm": gm,
        "H": H[:3, :3],
        "tr": tr,
        "hutch": hutch,
        "lam": lam,
        "div": div,
        "curl": curl,
        "ders": ders,
    }
