"""Generative models as people write them for TensorFlow: encoders, adversaries, flows, diffusion, style."""

from conformance.program import program
from conformance.weights import set_weights


def digits(np, count=6):
    return np.random.default_rng(3).uniform(size=(count, 8, 8, 1)).astype("float32")


@program(rtol=5e-4, atol=1e-5)
def convolutional_variational_autoencoder(tf, np):
    class CVAE(tf.keras.Model):
        def __init__(self, latent_dim):
            super().__init__()
            self.latent_dim = latent_dim
            self.encoder = tf.keras.Sequential(
                [
                    tf.keras.layers.InputLayer(shape=(8, 8, 1)),
                    tf.keras.layers.Conv2D(filters=4, kernel_size=3, strides=(2, 2), activation="relu"),
                    tf.keras.layers.Flatten(),
                    tf.keras.layers.Dense(latent_dim + latent_dim),
                ]
            )
            self.decoder = tf.keras.Sequential(
                [
                    tf.keras.layers.InputLayer(shape=(latent_dim,)),
                    tf.keras.layers.Dense(units=2 * 2 * 4, activation=tf.nn.relu),
                    tf.keras.layers.Reshape(target_shape=(2, 2, 4)),
                    tf.keras.layers.Conv2DTranspose(4, 3, strides=2, padding="same", activation="relu"),
                    tf.keras.layers.Conv2DTranspose(4, 3, strides=2, padding="same", activation="relu"),
                    tf.keras.layers.Conv2DTranspose(filters=1, kernel_size=3, strides=1, padding="same"),
                ]
            )

        def encode(self, x):
            mean, logvar = tf.split(self.encoder(x), num_or_size_splits=2, axis=1)
            return mean, logvar

        def reparameterize(self, mean, logvar, eps):
            return eps * tf.exp(logvar * 0.5) + mean

        def decode(self, z, apply_sigmoid=False):
            logits = self.decoder(z)
            return tf.sigmoid(logits) if apply_sigmoid else logits

    def log_normal_pdf(sample, mean, logvar, raxis=1):
        log2pi = tf.math.log(2.0 * np.pi)
        return tf.reduce_sum(-0.5 * ((sample - mean) ** 2.0 * tf.exp(-logvar) + logvar + log2pi), axis=raxis)

    def compute_loss(model, x, eps):
        mean, logvar = model.encode(x)
        z = model.reparameterize(mean, logvar, eps)
        x_logit = model.decode(z)
        cross_ent = tf.nn.sigmoid_cross_entropy_with_logits(logits=x_logit, labels=x)
        logpx_z = -tf.reduce_sum(cross_ent, axis=[1, 2, 3])
        return -tf.reduce_mean(logpx_z + log_normal_pdf(z, 0.0, 0.0) - log_normal_pdf(z, mean, logvar))

    model = CVAE(2)
    set_weights(np, model.encoder)
    set_weights(np, model.decoder, seed=1)
    optimizer = tf.keras.optimizers.Adam(1e-2)
    random = np.random.default_rng(5)

    @tf.function
    def train_step(model, x, eps, optimizer):
        with tf.GradientTape() as tape:
            loss = compute_loss(model, x, eps)
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables))
        return loss

    x = digits(np)
    losses = [train_step(model, x, random.normal(size=(6, 2)).astype("float32"), optimizer) for _ in range(4)]
    return [losses, model.decode(tf.constant([[0.5, -0.5]]), apply_sigmoid=True)[0, :, :, 0]]


@program(rtol=5e-4, atol=1e-5)
def dcgan(tf, np):
    from_logits = tf.keras.losses.BinaryCrossentropy(from_logits=True)

    def make_generator_model():
        model = tf.keras.Sequential()
        model.add(tf.keras.Input((5,)))
        model.add(tf.keras.layers.Dense(2 * 2 * 6, use_bias=False))
        model.add(tf.keras.layers.BatchNormalization())
        model.add(tf.keras.layers.LeakyReLU())
        model.add(tf.keras.layers.Reshape((2, 2, 6)))
        model.add(tf.keras.layers.Conv2DTranspose(4, (5, 5), strides=(2, 2), padding="same", use_bias=False))
        model.add(tf.keras.layers.LeakyReLU())
        model.add(tf.keras.layers.Conv2DTranspose(1, (5, 5), strides=(2, 2), padding="same", activation="tanh"))
        return model

    def make_discriminator_model():
        model = tf.keras.Sequential()
        model.add(tf.keras.Input((8, 8, 1)))
        model.add(tf.keras.layers.Conv2D(4, (5, 5), strides=(2, 2), padding="same"))
        model.add(tf.keras.layers.LeakyReLU())
        model.add(tf.keras.layers.Flatten())
        model.add(tf.keras.layers.Dense(1))
        return model

    generator = set_weights(np, make_generator_model())
    discriminator = set_weights(np, make_discriminator_model(), seed=1)
    generator_optimizer = tf.keras.optimizers.Adam(1e-3, beta_1=0.5)
    discriminator_optimizer = tf.keras.optimizers.Adam(1e-3, beta_1=0.5)

    @tf.function
    def train_step(images, noise):
        with tf.GradientTape() as gen_tape, tf.GradientTape() as disc_tape:
            generated_images = generator(noise, training=True)
            real_output = discriminator(images, training=True)
            fake_output = discriminator(generated_images, training=True)
            gen_loss = from_logits(tf.ones_like(fake_output), fake_output)
            real_loss = from_logits(tf.ones_like(real_output), real_output)
            disc_loss = real_loss + from_logits(tf.zeros_like(fake_output), fake_output)
        gen_grads = gen_tape.gradient(gen_loss, generator.trainable_variables)
        disc_grads = disc_tape.gradient(disc_loss, discriminator.trainable_variables)
        generator_optimizer.apply_gradients(zip(gen_grads, generator.trainable_variables))
        discriminator_optimizer.apply_gradients(zip(disc_grads, discriminator.trainable_variables))
        return gen_loss, disc_loss

    random = np.random.default_rng(8)
    losses = [train_step(digits(np), random.normal(size=(6, 5)).astype("float32")) for _ in range(3)]
    return [losses, generator(tf.ones([1, 5]), training=False)[0, :, :, 0]]


@program(rtol=5e-4, atol=1e-5)
def wasserstein_gan_with_gradient_penalty(tf, np):
    class WGAN(tf.keras.Model):
        def __init__(self, discriminator, generator, latent_dim, gp_weight=10.0):
            super().__init__()
            self.discriminator = discriminator
            self.generator = generator
            self.latent_dim = latent_dim
            self.gp_weight = gp_weight

        def compile(self, d_optimizer, g_optimizer):
            super().compile()
            self.d_optimizer = d_optimizer
            self.g_optimizer = g_optimizer

        def gradient_penalty(self, real, fake, alpha):
            interpolated = real + alpha * (fake - real)
            with tf.GradientTape() as gp_tape:
                gp_tape.watch(interpolated)
                pred = self.discriminator(interpolated, training=True)
            grads = gp_tape.gradient(pred, [interpolated])[0]
            norm = tf.sqrt(tf.reduce_sum(tf.square(grads), axis=[1]))
            return tf.reduce_mean((norm - 1.0) ** 2)

        def train_step(self, data):
            real, noise, alpha = data
            with tf.GradientTape() as tape:
                fake = self.generator(noise, training=True)
                cost = tf.reduce_mean(self.discriminator(fake)) - tf.reduce_mean(self.discriminator(real))
                d_loss = cost + self.gradient_penalty(real, fake, alpha) * self.gp_weight
            d_gradient = tape.gradient(d_loss, self.discriminator.trainable_variables)
            self.d_optimizer.apply_gradients(zip(d_gradient, self.discriminator.trainable_variables))
            with tf.GradientTape() as tape:
                g_loss = -tf.reduce_mean(self.discriminator(self.generator(noise, training=True), training=True))
            gen_gradient = tape.gradient(g_loss, self.generator.trainable_variables)
            self.g_optimizer.apply_gradients(zip(gen_gradient, self.generator.trainable_variables))
            return {"d_loss": d_loss, "g_loss": g_loss}

    dense = tf.keras.layers.Dense
    generator = set_weights(np, tf.keras.Sequential([tf.keras.Input((3,)), dense(8, activation="relu"), dense(2)]))
    critic = set_weights(np, tf.keras.Sequential([tf.keras.Input((2,)), dense(8, activation="tanh"), dense(1)]), seed=2)
    wgan = WGAN(critic, generator, 3)
    wgan.compile(tf.keras.optimizers.Adam(0.01, 0.5, 0.9), tf.keras.optimizers.Adam(0.01, 0.5, 0.9))
    random = np.random.default_rng(1)
    parts = [random.normal(size=(16, 2)), random.normal(size=(16, 3)), random.uniform(size=(16, 1))]
    dataset = tf.data.Dataset.from_tensor_slices(tuple(part.astype("float32") for part in parts)).batch(8)
    history = wgan.fit(dataset, epochs=2, shuffle=False, verbose=0).history
    return [{k: [float(v) for v in values] for k, values in history.items()}, generator.get_weights()]


@program(rtol=5e-4, atol=1e-5)
def real_nvp_flow(tf, np):
    def coupling(reg=0.01):
        inputs = tf.keras.layers.Input(shape=(2,))
        l2 = tf.keras.regularizers.l2(reg)
        t = tf.keras.layers.Dense(6, activation="relu", kernel_regularizer=l2)(inputs)
        t = tf.keras.layers.Dense(2, activation="linear", kernel_regularizer=l2)(t)
        s = tf.keras.layers.Dense(6, activation="relu", kernel_regularizer=l2)(inputs)
        s = tf.keras.layers.Dense(2, activation="tanh", kernel_regularizer=l2)(s)
        return tf.keras.Model(inputs=inputs, outputs=[s, t])

    class RealNVP(tf.keras.Model):
        def __init__(self, layers):
            super().__init__()
            self.masks = np.array([[0, 1], [1, 0]] * (layers // 2), dtype="float32")
            self.couplings = [set_weights(np, coupling(), seed=i) for i in range(layers)]

        def call(self, x, training=True):
            log_det = 0.0
            for mask, layer in reversed(list(zip(self.masks, self.couplings))):
                x_masked = x * mask
                s, t = layer(x_masked)
                s, t = s * (1 - mask), t * (1 - mask)
                x = (1 - mask) * (x * tf.exp(-s) - t * tf.exp(-s)) + x_masked
                log_det -= tf.reduce_sum(s, [1])
            return x, log_det

        def log_loss(self, x):
            y, logdet = self(x)
            prior = -0.5 * tf.reduce_sum(y**2, axis=1) - np.log(2 * np.pi).astype("float32")
            return -tf.reduce_mean(prior + logdet)

    model = RealNVP(4)
    data = np.random.default_rng(4).normal(size=(12, 2)).astype("float32") * [[0.5, 2.0]]
    data = data.astype("float32")
    optimizer = tf.keras.optimizers.Adam(0.01)
    losses = []
    for _ in range(4):
        with tf.GradientTape() as tape:
            loss = model.log_loss(data) + tf.add_n(model.losses)
        g = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(g, model.trainable_variables))
        losses.append(loss)
    return [losses, len(model.trainable_variables), len(model.losses), model(data[:3])[0]]


@program(rtol=5e-4, atol=1e-5)
def denoising_diffusion(tf, np):
    steps = 20
    beta = np.linspace(1e-4, 0.02, steps)
    alpha_bar = np.cumprod(1 - beta)
    sqrt_bar, sqrt_rest = (tf.constant(v, dtype=tf.float32) for v in (np.sqrt(alpha_bar), np.sqrt(1 - alpha_bar)))

    class TimeEmbedding(tf.keras.layers.Layer):
        def __init__(self, dim):
            super().__init__()
            self.dim = dim
            self.emb = tf.exp(tf.range(dim // 2, dtype=tf.float32) * -(np.log(10000.0) / (dim // 2 - 1)))

        def call(self, t):
            t = tf.cast(t, tf.float32)
            emb = t[:, None] * self.emb[None, :]
            return tf.concat([tf.sin(emb), tf.cos(emb)], axis=-1)

    image = tf.keras.Input((8, 8, 1))
    time = tf.keras.Input((), dtype="int32")
    temb = tf.keras.layers.Dense(4, activation="swish")(TimeEmbedding(8)(time))
    x = tf.keras.layers.Conv2D(4, 3, padding="same")(image)
    x = tf.keras.layers.GroupNormalization(groups=2)(x)
    x = tf.keras.layers.Add()([x, tf.keras.layers.Reshape((1, 1, 4))(temb)])
    skip = tf.keras.layers.Activation("swish")(x)
    down = tf.keras.layers.AveragePooling2D(2)(skip)
    up = tf.keras.layers.UpSampling2D(interpolation="nearest")(down)
    out = tf.keras.layers.Conv2D(1, 3, padding="same")(tf.keras.layers.Concatenate()([skip, up]))
    model = set_weights(np, tf.keras.Model([image, time], out))
    optimizer = tf.keras.optimizers.Adam(1e-2)
    random = np.random.default_rng(0)

    @tf.function
    def step(images, t, noise):
        with tf.GradientTape() as tape:
            noisy = tf.gather(sqrt_bar, t)[:, None, None, None] * images
            noisy += tf.gather(sqrt_rest, t)[:, None, None, None] * noise
            loss = tf.reduce_mean(tf.keras.losses.MSE(noise, model([noisy, t], training=True)))
        grads = tape.gradient(loss, model.trainable_weights)
        optimizer.apply_gradients(zip(grads, model.trainable_weights))
        return loss

    images = digits(np)
    losses = []
    for _ in range(3):
        t = random.integers(0, steps, 6).astype("int32")
        losses.append(step(images, tf.constant(t), tf.constant(random.normal(size=images.shape), tf.float32)))
    return [losses, model([tf.constant(images[:1]), tf.constant([3])])[0, :, :, 0]]


@program(rtol=5e-4, atol=1e-5)
def neural_style_transfer(tf, np):
    inputs = tf.keras.Input((8, 8, 3))
    x = tf.keras.layers.Conv2D(4, 3, padding="same", activation="relu", name="block1_conv1")(inputs)
    y = tf.keras.layers.AveragePooling2D(2)(x)
    y = tf.keras.layers.Conv2D(5, 3, padding="same", activation="relu", name="block2_conv1")(y)
    network = set_weights(np, tf.keras.Model(inputs, y))
    network.trainable = False
    layers = ["block1_conv1", "block2_conv1"]
    extractor = tf.keras.Model([network.input], [network.get_layer(name).output for name in layers])

    def gram_matrix(tensor):
        result = tf.linalg.einsum("bijc,bijd->bcd", tensor, tensor)
        shape = tf.shape(tensor)
        return result / tf.cast(shape[1] * shape[2], tf.float32)

    random = np.random.default_rng(9)
    style, content = (tf.constant(random.uniform(size=(1, 8, 8, 3)), tf.float32) for _ in range(2))
    style_targets = [gram_matrix(output) for output in extractor(style)]
    content_target = extractor(content)[1]
    image = tf.Variable(content)
    opt = tf.keras.optimizers.Adam(learning_rate=0.02, beta_1=0.99, epsilon=1e-1)

    @tf.function()
    def train_step(image):
        with tf.GradientTape() as tape:
            outputs = extractor(image)
            grams = [gram_matrix(output) for output in outputs]
            loss = tf.add_n([tf.reduce_mean((g - s) ** 2) for g, s in zip(grams, style_targets)])
            loss += 0.1 * tf.reduce_mean((outputs[1] - content_target) ** 2)
            loss += 0.01 * tf.image.total_variation(image)[0]
        grad = tape.gradient(loss, image)
        opt.apply_gradients([(grad, image)])
        image.assign(tf.clip_by_value(image, clip_value_min=0.0, clip_value_max=1.0))
        return loss

    return [[train_step(image) for _ in range(4)], tf.reduce_mean(image, [1, 2])]


@program(rtol=5e-4, atol=1e-5)
def image_translation_with_a_small_unet(tf, np):
    def downsample(filters, size, apply_batchnorm=True):
        result = tf.keras.Sequential()
        result.add(tf.keras.layers.Conv2D(filters, size, strides=2, padding="same", use_bias=False))
        if apply_batchnorm:
            result.add(tf.keras.layers.BatchNormalization())
        result.add(tf.keras.layers.LeakyReLU())
        return result

    def upsample(filters, size):
        result = tf.keras.Sequential()
        result.add(tf.keras.layers.Conv2DTranspose(filters, size, strides=2, padding="same", use_bias=False))
        result.add(tf.keras.layers.BatchNormalization())
        result.add(tf.keras.layers.ReLU())
        return result

    inputs = tf.keras.layers.Input(shape=[8, 8, 1])
    skips, x = [], inputs
    for down in [downsample(3, 4, apply_batchnorm=False), downsample(4, 4)]:
        x = down(x)
        skips.append(x)
    x = tf.keras.layers.Concatenate()([upsample(3, 4)(x), skips[0]])
    last = tf.keras.layers.Conv2DTranspose(1, 4, strides=2, padding="same", activation="tanh")
    generator = set_weights(np, tf.keras.Model(inputs=inputs, outputs=last(x)))
    optimizer = tf.keras.optimizers.Adam(2e-3, beta_1=0.5)
    source, target = digits(np), 1 - digits(np)
    losses = []
    for _ in range(3):
        with tf.GradientTape() as tape:
            output = generator(source, training=True)
            loss = tf.reduce_mean(tf.abs(target - output))
        gradients = tape.gradient(loss, generator.trainable_variables)
        optimizer.apply_gradients(zip(gradients, generator.trainable_variables))
        losses.append(loss)
    return [losses, len(generator.trainable_variables), generator(source, training=False)[0, :, :, 0]]
