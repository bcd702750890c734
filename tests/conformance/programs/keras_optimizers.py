"""Optimizers of Keras: steps on known gradients, schedules, clipping, averages, sparse gradients, accumulation."""

from conformance.keras_models import known, numbers
from conformance.probes import message, raises
from conformance.program import program


def steps(tf, np, optimizer, count=3, power=3):
    variable = tf.keras.Variable(numbers(np, 3, 4), name="v")
    for _ in range(count):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(variable**power)
        optimizer.apply_gradients(zip(tape.gradient(loss, [variable]), [variable]))
    return variable.numpy()


@program()
def each_optimizer(tf, np):
    names = "SGD RMSprop Adam AdamW Adadelta Adagrad Adamax Adafactor Nadam Ftrl Lion Lamb Muon"
    return {name: steps(tf, np, getattr(tf.keras.optimizers, name)(learning_rate=0.1)) for name in names.split()}


@program()
def options_of_optimizers(tf, np):
    o = tf.keras.optimizers
    made = [
        o.SGD(0.1, momentum=0.9),
        o.SGD(0.1, momentum=0.9, nesterov=True, clipnorm=1.0, weight_decay=0.01, use_ema=True),
        o.SGD(0.1, clipvalue=0.5),
        o.Adam(0.1, amsgrad=True, global_clipnorm=1.0),
        o.RMSprop(0.1, centered=True, momentum=0.5),
        o.Adam(0.1, use_ema=True, ema_momentum=0.5, ema_overwrite_frequency=2),
        o.SGD(0.1, gradient_accumulation_steps=2),
    ]
    return [steps(tf, np, optimizer, 4, 2) for optimizer in made]


@program()
def schedules(tf, np):
    s = tf.keras.optimizers.schedules
    made = [
        s.ExponentialDecay(0.1, 2, 0.5),
        s.ExponentialDecay(0.1, 2, 0.5, staircase=True),
        s.PiecewiseConstantDecay([2, 4], [0.1, 0.05, 0.01]),
        s.PolynomialDecay(0.1, 5, 0.01, power=2.0),
        s.InverseTimeDecay(0.1, 2, 0.5),
        s.CosineDecay(0.1, 5, alpha=0.1, warmup_target=0.2, warmup_steps=2),
        s.CosineDecayRestarts(0.1, 3),
    ]
    rates = [[float(schedule(step)) for step in range(6)] for schedule in made]
    return [rates, *(steps(tf, np, tf.keras.optimizers.SGD(schedule), 4, 2) for schedule in made)]


@program()
def a_loss_scale(tf, np):
    optimizer = tf.keras.optimizers.LossScaleOptimizer(tf.keras.optimizers.SGD(0.1), initial_scale=8.0)
    variable = tf.keras.Variable(numbers(np, 3, 4))
    for _ in range(2):
        with tf.GradientTape() as tape:
            loss = optimizer.scale_loss(tf.reduce_sum(variable * variable))
        optimizer.apply_gradients(zip(tape.gradient(loss, [variable]), [variable]))
    return variable.numpy()


@program()
def sparse_gradients(tf, np):
    made = {}
    for name in ("SGD", "Adam", "Adagrad", "RMSprop"):
        embedding = tf.keras.layers.Embedding(6, 2)
        embedding.build((None,))
        known(np, embedding)
        optimizer = getattr(tf.keras.optimizers, name)(0.1)
        for _ in range(2):
            with tf.GradientTape() as tape:
                loss = tf.reduce_sum(tf.square(embedding(np.array([1, 1, 4]))))
            found = tape.gradient(loss, embedding.trainable_variables)
            optimizer.apply_gradients(zip(found, embedding.trainable_variables))
        made[name] = [type(found[0]).__name__, embedding.get_weights()]
    return made


@program()
def plain_variables_and_functions(tf, np):
    variables = [tf.Variable(numbers(np, 3, 4)), tf.Variable(1.5)]
    optimizer = tf.keras.optimizers.Adam(0.1)

    @tf.function
    def step(x):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tf.square(variables[0] * x + variables[1]))
        optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))
        return loss

    optimizer.build(variables)
    losses = [step(tf.constant(float(number))) for number in range(3)]
    return [losses, variables, int(optimizer.iterations), [v.numpy() for v in optimizer.variables[2:]]]


@program()
def constraints_and_a_changed_rate(tf, np):
    dense = tf.keras.layers.Dense(2, kernel_constraint="non_neg", bias_constraint=tf.keras.constraints.MaxNorm(0.1))
    dense.build((None, 3))
    known(np, dense)
    optimizer = tf.keras.optimizers.SGD(0.5)
    for rate in (0.5, 0.1):
        optimizer.learning_rate = rate
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tf.square(dense(numbers(np, 4, 3))))
        optimizer.apply(tape.gradient(loss, dense.trainable_variables), dense.trainable_variables)
    return [dense.get_weights(), float(optimizer.learning_rate)]


@program()
def the_state_of_an_optimizer(tf, np):
    optimizer = tf.keras.optimizers.Adam(0.1)
    steps(tf, np, optimizer)
    other = tf.keras.optimizers.Adam.from_config(optimizer.get_config())
    variable = tf.keras.Variable(numbers(np, 3, 4), name="v")
    other.build([variable])
    state = {}
    optimizer.save_own_variables(state)
    other.load_own_variables(state)
    return [sorted(state), [np.array(state[key]) for key in sorted(state)], int(other.iterations)]


@program()
def no_gradient_at_all_is_refused(tf, np):
    variable = tf.keras.Variable(1.0)
    optimizer = tf.keras.optimizers.SGD(0.1)
    return [
        raises(lambda: optimizer.apply_gradients([(None, variable)]), "No gradients provided for any variable"),
        message(lambda: tf.keras.optimizers.get("nothing"))["error"],
    ]
