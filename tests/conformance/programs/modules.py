"""``tf.Module``: how it finds its variables, in which order, and how it is named."""

from conformance.probes import raises
from conformance.program import program


@program()
def variables_by_attribute_name(tf, np):
    class Line(tf.Module):
        def __init__(self):
            super().__init__()
            self.slope = tf.Variable([2.0], name="s")
            self.intercept = tf.Variable([1.0], name="i")
            self.count = tf.Variable(0, trainable=False, name="c")
            self.rate = 0.1

        def __call__(self, x):
            return self.slope * x + self.intercept

    line = Line()
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(line(tf.constant([1.0, 2.0, 3.0])) ** 2)
    return {
        "all": [v.name for v in line.variables],
        "trainable": [v.name for v in line.trainable_variables],
        "rest": [v.name for v in line.non_trainable_variables],
        "kind": type(line.variables).__name__,
        "g": tape.gradient(loss, line.trainable_variables),
    }


@program()
def variables_in_containers(tf, np):
    module = tf.Module()
    module.stack = [tf.Variable(1.0, name="s0"), tf.Variable(2.0, name="s1")]
    module.pair = (tf.Variable(3.0, name="p0"), 7.0)
    module.table = {"z": tf.Variable(4.0, name="z"), "a": tf.Variable(5.0, name="a")}
    module.Upper = tf.Variable(6.0, name="U")
    module._private = tf.Variable(7.0, name="_p")
    return [v.name for v in module.variables]


@program()
def modules_in_modules(tf, np):
    class Block(tf.Module):
        def __init__(self, tag):
            super().__init__()
            self.w = tf.Variable(1.0, name=f"{tag}.w")

    parent = Block("parent")
    parent.children = [Block("c0"), Block("c1")]
    parent.children[0].inner = Block("inner")
    parent.alone = Block("alone")
    names = [v.name for v in parent.variables]
    return [names, [type(m).__name__ for m in parent.submodules], [m.w.name for m in parent.submodules]]


@program()
def a_shared_variable_counts_once(tf, np):
    v = tf.Variable(1.0, name="shared")
    a, b = tf.Module(), tf.Module()
    a.first, a.second, a.other, b.mine = v, v, b, v
    return [[w.name for w in a.variables], len(a.submodules)]


@program()
def a_variable_added_later(tf, np):
    module = tf.Module()
    counts = [len(module.variables)]
    module.w = tf.Variable(1.0)
    counts.append(len(module.variables))
    del module.w
    return [*counts, len(module.variables)]


@program()
def names(tf, np):
    class MyBigThing(tf.Module):
        pass

    bad = [raises(lambda text=text: tf.Module(name=text)) for text in ("1st", "a b")]
    return [tf.Module().name, MyBigThing().name, MyBigThing(name="mine").name, bad]


@program()
def a_name_scope_prefixes_variables(tf, np):
    class Scoped(tf.Module):
        def __init__(self):
            super().__init__(name="scoped")
            with self.name_scope:
                self.w = tf.Variable(1.0, name="w")

    with tf.name_scope("outer"):
        plain = tf.Variable(1.0, name="v")
        with tf.name_scope("inner"):
            deep = tf.Variable(1.0)
    return [Scoped().w.name, plain.name, deep.name]


@program()
def without_calling_the_base_class(tf, np):
    class Bare(tf.Module):
        def __init__(self):
            self.w = tf.Variable(2.0, name="w")

    return [v.name for v in Bare().variables]


@program()
def a_plain_module_is_not_callable(tf, np):
    return raises(lambda: tf.Module()(1.0))


@program()
def a_network_trained_through_its_module(tf, np):
    class Layer(tf.Module):
        def __init__(self, w, b):
            super().__init__()
            self.w, self.b = tf.Variable(w), tf.Variable(b)

        def __call__(self, x):
            return tf.tanh(x @ self.w + self.b)

    class Network(tf.Module):
        def __init__(self):
            super().__init__()
            self.layers = [Layer([[0.5, -0.3]], [0.1, 0.2]), Layer([[0.7], [0.4]], [0.0])]

        def __call__(self, x):
            for layer in self.layers:
                x = layer(x)
            return x

    network = Network()
    x, y = tf.constant([[-1.0], [0.0], [1.0]]), tf.constant([[1.0], [0.0], [-1.0]])
    losses = []
    for _ in range(6):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.math.squared_difference(network(x), y))
        for v, g in zip(network.trainable_variables, tape.gradient(loss, network.trainable_variables), strict=True):
            v.assign_sub(0.4 * g)
        losses.append(loss)
    return [losses, list(network.trainable_variables)]
