"""`tf.distribute` with one replica: training loops written for several devices."""

from conformance.probes import raises
from conformance.program import program


@program()
def no_strategy(tf, np):
    strategy = tf.distribute.get_strategy()
    replica = tf.distribute.get_replica_context()
    v = tf.Variable(1.0)
    return [
        tf.distribute.has_strategy(),
        tf.distribute.in_cross_replica_context(),
        strategy.num_replicas_in_sync,
        replica.replica_id_in_sync_group,
        replica.num_replicas_in_sync,
        replica.strategy is strategy,
        strategy.run(lambda a, b=1: a + b, args=(1,), kwargs={"b": 3}),
        strategy.reduce("SUM", tf.constant([1.0, 2.0]), axis=None),
        strategy.reduce("SUM", tf.constant([1.0, 2.0]), axis=0),
        strategy.reduce(tf.distribute.ReduceOp.MEAN, tf.constant([1.0, 2.0]), axis=0),
        strategy.experimental_local_results(tf.constant(5)),
        strategy.extended.update(v, lambda var, x: var.assign_add(x), args=(2.0,)).numpy(),
        raises(lambda: strategy.reduce("X", tf.constant([1.0]), axis=0)),
        raises(lambda: strategy.run(5)),
    ]


@program()
def scope_of_a_mirrored_strategy(tf, np):
    strategy = tf.distribute.MirroredStrategy(devices=["/cpu:0"])
    other = tf.distribute.OneDeviceStrategy("/cpu:0")
    places = []

    def note():
        context = tf.distribute.get_replica_context()
        places.append([tf.distribute.in_cross_replica_context(), context is None, tf.distribute.has_strategy()])
        return context

    def merged(strategy, x):
        note()
        return x + 1

    def step(x):
        context = note()
        total = context.all_reduce(tf.distribute.ReduceOp.SUM, x)
        return context.merge_call(merged, args=(total,))

    with strategy.scope():
        note()
        v = tf.Variable(2.0, aggregation=tf.VariableAggregation.MEAN)
        same = tf.distribute.get_strategy() is strategy
        refused = raises(lambda: other.scope().__enter__(), "Mixing different")
    result = strategy.run(step, args=(v.read_value(),))
    note()
    return [
        same,
        refused,
        places,
        strategy.reduce("MEAN", result, axis=None),
        strategy.experimental_local_results(result),
        strategy.gather(tf.constant([1.0]), axis=0),
        strategy.extended.variable_created_in_scope(v),
    ]


@program()
def custom_training_loop(tf, np):
    strategy = tf.distribute.MirroredStrategy(["/cpu:0"], cross_device_ops=tf.distribute.HierarchicalCopyAllReduce())
    batch = 4 * strategy.num_replicas_in_sync
    x = np.arange(12, dtype=np.float32).reshape(12, 1) / 12
    dataset = tf.data.Dataset.from_tensor_slices((x, 3 * x)).batch(batch)
    with strategy.scope():
        w = tf.Variable([[0.0]])

    def step(inputs):
        features, labels = inputs
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tf.square(features @ w - labels)) * (1.0 / batch)
        w.assign_sub(0.1 * tape.gradient(loss, w))
        return loss

    @tf.function
    def distributed(inputs):
        losses = strategy.run(step, args=(inputs,))
        return strategy.reduce(tf.distribute.ReduceOp.SUM, losses, axis=None)

    losses = []
    for _ in range(2):
        for inputs in strategy.experimental_distribute_dataset(dataset):
            losses.append(distributed(inputs))
    return [losses, w]


@program()
def datasets_and_values_from_functions(tf, np):
    strategy = tf.distribute.OneDeviceStrategy("/cpu:0")
    dataset = strategy.distribute_datasets_from_function(
        lambda context: tf.data.Dataset.from_tensor_slices(np.arange(4)).batch(context.get_per_replica_batch_size(2))
    )
    return [
        next(iter(dataset)),
        strategy.experimental_local_results(
            strategy.experimental_distribute_values_from_function(lambda context: context.replica_id_in_sync_group)
        ),
        tf.distribute.InputContext(2, 0, 2).get_per_replica_batch_size(8),
        raises(lambda: tf.distribute.InputContext(2, 0, 2).get_per_replica_batch_size(7)),
    ]


@program()
def enumerations(tf, np):
    return [
        [op.name for op in tf.distribute.ReduceOp],
        [mode.value for mode in tf.VariableAggregation],
        [mode.name for mode in tf.VariableSynchronization],
        tf.distribute.CrossDeviceOps in tf.distribute.NcclAllReduce.__mro__,
    ]


@program()
def a_program_that_looks_for_a_tpu(tf, np):
    try:
        resolver = tf.distribute.cluster_resolver.TPUClusterResolver()
        strategy = tf.distribute.TPUStrategy(resolver)
    except ValueError:
        strategy = tf.distribute.get_strategy()
    return strategy.num_replicas_in_sync


@program()
def a_strategy_for_all_code(tf, np):
    strategy = tf.distribute.OneDeviceStrategy("/cpu:0")
    tf.distribute.experimental_set_strategy(strategy)
    set_before = tf.distribute.get_strategy() is strategy
    tf.distribute.experimental_set_strategy(None)
    return [set_before, tf.distribute.has_strategy()]
