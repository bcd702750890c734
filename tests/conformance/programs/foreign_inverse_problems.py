"""Inverse problems as people write them for TensorFlow: registration, tomography, coefficients of equations."""

from conformance.program import program


@program(rtol=2e-3, atol=1e-4)
def image_registration(tf, np):

    def meshgrid(h, w):
        x, y = tf.meshgrid(tf.linspace(-1.0, 1.0, w), tf.linspace(-1.0, 1.0, h))
        return tf.stack([tf.reshape(x, [-1]), tf.reshape(y, [-1]), tf.ones([h * w])], 0)

    def get_pixel_value(img, x, y):
        shape = tf.shape(x)
        batch_size, height, width = shape[0], shape[1], shape[2]
        batch_idx = tf.range(0, batch_size)
        batch_idx = tf.reshape(batch_idx, (batch_size, 1, 1))
        b = tf.tile(batch_idx, (1, height, width))
        indices = tf.stack([b, y, x], 3)
        return tf.gather_nd(img, indices)

    def bilinear_sampler(img, x, y):
        H, W = tf.shape(img)[1], tf.shape(img)[2]
        max_y, max_x = tf.cast(H - 1, "int32"), tf.cast(W - 1, "int32")
        zero = tf.zeros([], dtype="int32")
        x, y = tf.cast(x, "float32"), tf.cast(y, "float32")
        x = 0.5 * ((x + 1.0) * tf.cast(max_x - 1, "float32"))
        y = 0.5 * ((y + 1.0) * tf.cast(max_y - 1, "float32"))
        x0 = tf.cast(tf.floor(x), "int32")
        x1 = x0 + 1
        y0 = tf.cast(tf.floor(y), "int32")
        y1 = y0 + 1
        x0, x1 = tf.clip_by_value(x0, zero, max_x), tf.clip_by_value(x1, zero, max_x)
        y0, y1 = tf.clip_by_value(y0, zero, max_y), tf.clip_by_value(y1, zero, max_y)
        Ia, Ib, Ic, Id = (
            get_pixel_value(img, x0, y0),
            get_pixel_value(img, x0, y1),
            get_pixel_value(img, x1, y0),
            get_pixel_value(img, x1, y1),
        )
        x0, x1, y0, y1 = [tf.cast(v, "float32") for v in (x0, x1, y0, y1)]
        wa, wb, wc, wd = (x1 - x) * (y1 - y), (x1 - x) * (y - y0), (x - x0) * (y1 - y), (x - x0) * (y - y0)
        wa, wb, wc, wd = [tf.expand_dims(w, axis=3) for w in (wa, wb, wc, wd)]
        return tf.add_n([wa * Ia, wb * Ib, wc * Ic, wd * Id])

    def spatial_transformer(img, theta):
        B = tf.shape(img)[0]
        H, W = img.shape[1], img.shape[2]
        grid = tf.tile(tf.expand_dims(meshgrid(H, W), 0), tf.stack([B, 1, 1]))
        th = tf.cast(tf.reshape(theta, [-1, 2, 3]), "float32")
        g = tf.reshape(tf.matmul(th, grid), [B, 2, H, W])
        return bilinear_sampler(img, g[:, 0, :, :], g[:, 1, :, :])

    yy, xx = np.mgrid[0:20, 0:20].astype("float32")
    fixed = np.exp(-((xx - 10) ** 2 + (yy - 9) ** 2) / 20)[None, :, :, None].astype("float32")
    moving = np.exp(-((xx - 8) ** 2 + (yy - 11) ** 2) / 20)[None, :, :, None].astype("float32")
    theta = tf.Variable([[1.0, 0.0, 0.0, 0.0, 1.0, 0.0]])
    opt = tf.keras.optimizers.Adam(0.02)

    def ncc(a, b):
        a, b = a - tf.reduce_mean(a), b - tf.reduce_mean(b)
        return tf.reduce_sum(a * b) / tf.sqrt(tf.reduce_sum(a**2) * tf.reduce_sum(b**2) + 1e-9)

    @tf.function
    def step(m, f):
        with tf.GradientTape() as t:
            warped = spatial_transformer(m, theta)
            loss = tf.reduce_mean(tf.square(warped - f)) - 0.01 * ncc(warped, f)
        opt.apply_gradients([(t.gradient(loss, theta), theta)])
        return loss

    hist = [step(tf.constant(moving), tf.constant(fixed)) for _ in range(10)]
    # dense flow with smoothness and warp
    flow = tf.Variable(tf.zeros([1, 20, 20, 2]))
    fh = []
    for _ in range(5):
        with tf.GradientTape() as t:
            gx, gy = tf.meshgrid(tf.range(20.0), tf.range(20.0))
            wx, wy = (gx + flow[..., 0]) / 9.5 - 1, (gy + flow[..., 1]) / 9.5 - 1
            w = bilinear_sampler(tf.constant(moving), wx, wy)
            dy, dx = tf.image.image_gradients(flow)
            loss = tf.reduce_mean((w - fixed) ** 2) + 0.01 * tf.reduce_mean(dx**2 + dy**2)
        flow.assign_sub(20.0 * t.gradient(loss, flow))
        fh.append(loss)
    ssim = tf.image.ssim(tf.constant(fixed), tf.constant(moving), max_val=1.0)
    psnr = tf.image.psnr(fixed, moving, max_val=1.0)
    return {"hist": hist, "th": theta, "fh": fh, "ssim": ssim, "psnr": psnr}


@program(rtol=2e-3, atol=1e-4)
def tomography(tf, np):
    rs = np.random.RandomState(0)
    n = 8
    img_true = np.zeros((n, n), "float32")
    img_true[2:6, 3:5] = 1
    A = np.concatenate(
        [np.kron(np.eye(n), np.ones((1, n))), np.kron(np.ones((1, n)), np.eye(n)), (rs.rand(20, n * n) > 0.8)]
    ).astype("float32")
    b = A @ img_true.ravel()
    At = tf.constant(A)
    x = tf.Variable(tf.fill([n * n], 0.5), constraint=lambda z: tf.maximum(z, 0.0))

    def tv(x):
        im = tf.reshape(x, [n, n])
        gx, gy = im[1:, :-1] - im[:-1, :-1], im[:-1, 1:] - im[:-1, :-1]
        return tf.reduce_sum(tf.sqrt(gx**2 + gy**2 + 1e-4))

    def objective():
        return 0.5 * tf.reduce_sum((tf.linalg.matvec(At, x) - b) ** 2) + 0.1 * tv(x)

    losses = []
    # FISTA
    y, t = tf.identity(x), 1.0
    L = float(np.linalg.norm(A, 2) ** 2)
    for k in range(15):
        with tf.GradientTape() as tape:
            tape.watch(y)
            f = 0.5 * tf.nn.l2_loss(tf.linalg.matvec(At, y) - b) * 2
        g = tape.gradient(f, y)
        x_new = tf.nn.relu(y - g / L)
        t_new = (1 + (1 + 4 * t * t) ** 0.5) / 2
        y = x_new + (t - 1) / t_new * (x_new - x)
        x.assign(x_new)
        t = t_new
        losses.append(objective().numpy())
    # SIRT-like with backprojection via gradient of linear op
    with tf.GradientTape() as tape:
        z = tf.zeros([n * n])
        tape.watch(z)
        fwd = tf.linalg.matvec(At, z)
    bp = tape.gradient(fwd, z, output_gradients=tf.constant(b))

    # adam with exponential-decay and constraint through keras weight
    class P(tf.keras.layers.Layer):
        def build(self, s):
            self.x = self.add_weight(
                shape=(n * n,),
                initializer=tf.keras.initializers.Constant(0.5),
                constraint=tf.keras.constraints.NonNeg(),
                name="x",
            )

        def call(self, A):
            return tf.linalg.matvec(A, self.x)

    p = P()
    opt = tf.keras.optimizers.Adam(
        tf.keras.optimizers.schedules.ExponentialDecay(0.1, decay_steps=5, decay_rate=0.9, staircase=True)
    )
    hl = []
    for k in range(8):
        with tf.GradientTape() as tape:
            value = tf.reduce_mean((p(At) - b) ** 2) + 0.01 * tv(p.x)
        opt.apply_gradients(zip(tape.gradient(value, p.trainable_weights), p.trainable_weights))
        hl.append(value)

    def radon(img, ang):
        c, s = tf.cos(ang), tf.sin(ang)
        t = tf.reshape(tf.stack([c, -s, 0.0, s, c, 0.0, 0.0, 0.0]), [1, 8])
        rot = tf.raw_ops.ImageProjectiveTransformV3(
            images=img[None, :, :, None],
            transforms=t,
            output_shape=[n, n],
            interpolation="BILINEAR",
            fill_mode="CONSTANT",
            fill_value=0.0,
        )
        return tf.reduce_sum(rot[0, :, :, 0], 0)

    sino = tf.stack([radon(tf.constant(img_true), a) for a in (0.0, 0.3, 0.8)])
    return {"losses": losses, "bp": bp, "hl": hl, "sino": sino}


@program(rtol=2e-3, atol=1e-4)
def pde_constrained_optimisation(tf, np):
    N, nt = 32, 20
    dx, dt = 1.0 / (N - 1), 1e-4
    xs = np.linspace(0, 1, N)
    kappa_true = 1 + 0.5 * np.sin(2 * np.pi * xs)
    log_kappa = tf.Variable(tf.zeros([N], tf.float64))
    u0 = tf.constant(np.exp(-100 * (xs - 0.5) ** 2))

    def laplace(u, k):
        kp = 0.5 * (k[1:] + k[:-1])
        flux = kp * (u[1:] - u[:-1]) / dx
        return tf.pad((flux[1:] - flux[:-1]) / dx, [[1, 1]])

    @tf.function(autograph=False)
    def solve(k):
        return tf.foldl(lambda u, _: u + dt * laplace(u, k), tf.range(nt), initializer=u0)

    @tf.function
    def solve_loop(k):
        u = u0
        for i in tf.range(nt):
            u = u + dt * laplace(u, k)
            if i % 5 == 0:
                tf.debugging.assert_all_finite(u, "blow up")
        return u

    data = solve(tf.constant(kappa_true))
    hist = []
    for _ in range(10):
        with tf.GradientTape() as t:
            J = tf.reduce_sum((solve(tf.exp(log_kappa)) - data) ** 2) + 1e-6 * tf.reduce_sum(
                (log_kappa[1:] - log_kappa[:-1]) ** 2
            )
        g = t.gradient(J, log_kappa)
        log_kappa.assign_sub(0.2 * g / (tf.norm(g) + 1e-12))
        hist.append(J)
    with tf.GradientTape() as t:
        t.watch(u0)
        k = tf.exp(log_kappa)
        uu = solve_loop(k)
    gk = t.gradient(uu, k)

    # Poisson solve with implicit diff via custom_gradient
    @tf.custom_gradient
    def implicit_solve(a, f):
        A = tf.linalg.diag(2 * a) + tf.linalg.diag(-a[1:], k=-1) + tf.linalg.diag(-a[:-1], k=1)
        u = tf.linalg.solve(A, f[:, None])[:, 0]

        def grad(du):
            lam = tf.linalg.solve(A, du[:, None], adjoint=True)[:, 0]
            up, dn = tf.concat([u[1:], [0.0]], 0), tf.concat([[0.0], u[:-1]], 0)
            return -lam * (2 * u) + lam * tf.cast(up, u.dtype) + lam * tf.cast(dn, u.dtype), lam

        return u, grad

    a = tf.Variable(np.ones(6) + 0.1 * np.arange(6))
    f = tf.constant(np.ones(6))
    with tf.GradientTape() as t:
        value = tf.reduce_sum(implicit_solve(a, f) ** 2)
    ga = t.gradient(value, a)
    conv = tf.nn.conv1d(
        tf.cast(u0, tf.float32)[None, :, None], tf.constant([[[1.0]], [[-2.0]], [[1.0]]]), stride=1, padding="SAME"
    )[0, :, 0]
    with tf.GradientTape() as t:
        w = tf.Variable(1.5)
        grid = tf.Variable(np.random.RandomState(0).rand(1, 8, 8, 1).astype("float32"))
        lap = tf.nn.conv2d(
            grid, tf.reshape(tf.constant([[0.0, 1, 0], [1, -4, 1], [0, 1, 0]]), [3, 3, 1, 1]), 1, "VALID"
        )
        e = tf.reduce_mean(lap**2) * w
    ge = t.gradient(e, {"grid": grid, "w": w})
    return {"hist": hist, "gk": gk, "ga": ga, "conv": conv, "ge": ge}
