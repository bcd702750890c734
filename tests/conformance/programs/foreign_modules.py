"""Models of tf.Module as people write them for TensorFlow: logistic regression, twins that teach each other."""

import copy
import tempfile

from conformance.program import program


@program(rtol=2e-3, atol=1e-4)
def logistic_regression_from_scratch(tf, np):
    tf.random.set_seed(22)
    rs = np.random.RandomState(0)
    x_train = rs.randn(60, 6).astype("float32") * 3 + 1
    w_true = rs.randn(6, 1)
    y_train = ((x_train @ w_true)[:, 0] > 0).astype("float32")
    x_train, y_train = tf.convert_to_tensor(x_train, dtype=tf.float32), tf.convert_to_tensor(y_train, dtype=tf.float32)

    class Normalize(tf.Module):
        def __init__(self, x):
            self.mean = tf.Variable(tf.math.reduce_mean(x, axis=0))
            self.std = tf.Variable(tf.math.reduce_std(x, axis=0))

        def norm(self, x):
            return (x - self.mean) / self.std

        def unnorm(self, x):
            return (x * self.std) + self.mean

    norm_x = Normalize(x_train)
    x_train_norm = norm_x.norm(x_train)

    def log_loss(y_pred, y):
        ce = tf.nn.sigmoid_cross_entropy_with_logits(labels=y, logits=y_pred)
        return tf.reduce_mean(ce)

    class LogisticRegression(tf.Module):
        def __init__(self):
            self.built = False

        def __call__(self, x, train=True):
            if not self.built:
                rand_w = tf.constant(np.random.RandomState(1).uniform(size=(x.shape[-1], 1)), tf.float32)
                rand_b = tf.zeros([])
                self.w = tf.Variable(rand_w)
                self.b = tf.Variable(rand_b)
                self.built = True
            z = tf.add(tf.matmul(x, self.w), self.b)
            z = tf.squeeze(z, axis=1)
            if train:
                return z
            return tf.sigmoid(z)

    log_reg = LogisticRegression()
    y_pred = log_reg(x_train_norm[:5], train=False)

    def predict_class(y_pred, thresh=0.5):
        return tf.cast(y_pred > thresh, tf.float32)

    def accuracy(y_pred, y):
        y_pred = tf.math.sigmoid(y_pred)
        y_pred_class = predict_class(y_pred)
        check_equal = tf.cast(y_pred_class == y, tf.float32)
        acc_val = tf.reduce_mean(check_equal)
        return acc_val

    train_dataset = tf.data.Dataset.from_tensor_slices((x_train_norm, y_train)).batch(16)
    epochs, learning_rate = 10, 0.1
    train_losses, train_accs = [], []
    for epoch in range(epochs):
        batch_losses_train, batch_accs_train = [], []
        for x_batch, y_batch in train_dataset:
            with tf.GradientTape() as tape:
                y_pred_batch = log_reg(x_batch)
                batch_loss = log_loss(y_pred_batch, y_batch)
            batch_acc = accuracy(y_pred_batch, y_batch)
            grads = tape.gradient(batch_loss, log_reg.variables)
            for g, v in zip(grads, log_reg.variables):
                v.assign_sub(learning_rate * g)
            batch_losses_train.append(batch_loss)
            batch_accs_train.append(batch_acc)
        train_loss, train_acc = tf.reduce_mean(batch_losses_train), tf.reduce_mean(batch_accs_train)
        train_losses.append(train_loss)
        train_accs.append(train_acc)

    class ExportModule(tf.Module):
        def __init__(self, model, norm_x, class_pred):
            self.model = model
            self.norm_x = norm_x
            self.class_pred = class_pred

        @tf.function(input_signature=[tf.TensorSpec(shape=[None, None], dtype=tf.float32)])
        def __call__(self, x):
            x = self.norm_x.norm(x)
            y = self.model(x, train=False)
            y = self.class_pred(y)
            return y

    log_reg_export = ExportModule(model=log_reg, norm_x=norm_x, class_pred=predict_class)
    out = log_reg_export(x_train[:7])
    cm = tf.math.confusion_matrix(y_train[:7], out)
    prec = tf.keras.metrics.Precision()
    prec.update_state(y_train[:7], out)
    return {"y_pred": y_pred, "losses": train_losses, "accs": train_accs, "out": out, "cm": cm, "prec": prec.result()}


@program(rtol=2e-3, atol=1e-4)
def self_supervised_twins_with_checkpoints(tf, np):

    class MLP(tf.Module):
        def __init__(self, sizes, name=None):
            super().__init__(name=name)
            rs = np.random.RandomState(len(sizes))
            with self.name_scope:
                self.ws, self.bs = [], []
                for i, b in enumerate(sizes[1:]):
                    a = sizes[i]
                    self.ws.append(tf.Variable((rs.randn(a, b) / np.sqrt(a)).astype("float32"), name=f"w{i}"))
                    self.bs.append(tf.Variable(tf.zeros([b]), name=f"b{i}"))

        @tf.Module.with_name_scope
        def __call__(self, x):
            for w, b in zip(self.ws[:-1], self.bs[:-1]):
                x = tf.nn.relu(tf.nn.bias_add(tf.matmul(x, w), b))
            return tf.nn.bias_add(tf.matmul(x, self.ws[-1]), self.bs[-1])

    online, predictor = MLP([6, 16, 8], name="online"), MLP([8, 16, 8], name="pred")
    target = copy.deepcopy(online)

    def regression_loss(x, y):
        x, y = tf.math.l2_normalize(x, axis=-1), tf.math.l2_normalize(y, axis=-1)
        return 2 - 2 * tf.reduce_sum(x * y, axis=-1)

    opt = tf.optimizers.Adam(1e-2)

    @tf.function
    def step(v1, v2, tau):
        t1, t2 = target(v1), target(v2)
        with tf.GradientTape() as tape:
            first = regression_loss(predictor(online(v1)), tf.stop_gradient(t2))
            loss = tf.reduce_mean(first + regression_loss(predictor(online(v2)), tf.stop_gradient(t1)))
        variables = online.trainable_variables + predictor.trainable_variables
        opt.apply_gradients(zip(tape.gradient(loss, variables), variables))
        for t, o in zip(target.variables, online.variables):
            t.assign(tau * t + (1 - tau) * o)
        return loss

    rs = np.random.RandomState(3)
    x = rs.randn(16, 6).astype("float32")
    hist = []
    for k in range(6):
        tau = tf.constant(1 - 0.04 * (np.cos(np.pi * k / 6) + 1) / 2, tf.float32)
        hist.append(step(x + 0.1 * rs.randn(16, 6).astype("float32"), x, tau))
    ckpt = tf.train.Checkpoint(online=online, target=target, opt=opt, step=tf.Variable(1))
    manager = tf.train.CheckpointManager(ckpt, tempfile.mkdtemp(), max_to_keep=3)
    paths = []
    for s in range(5):
        ckpt.step.assign_add(1)
        if int(ckpt.step) % 2 == 0:
            p = manager.save()
            paths.append(p.split("/")[-1])
    before = target(x[:2])
    for v in target.variables:
        v.assign(tf.zeros_like(v))
    status = ckpt.restore(manager.latest_checkpoint)
    status.assert_consumed()
    names = [v.name for v in online.trainable_variables]
    return {"hist": hist, "paths": paths, "before": before, "after": target(x[:2]), "step": ckpt.step, "names": names}
