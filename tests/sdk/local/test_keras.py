"""tf.keras: Dense, Layer, Variable, initializers and activations; names and texts as in Keras 3.15."""

import copy
import math
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import teletape as tf

keras = tf.keras
layers, initializers, activations = keras.layers, keras.initializers, keras.activations


def refused(error: type[Exception], ask: Callable[[], Any]) -> str:
    with pytest.raises(error) as raised:
        ask()
    return str(raised.value)


def dense(*args: Any, inputs: int = 3, **kwargs: Any) -> Any:
    layer = layers.Dense(*args, **kwargs)
    layer.build((None, inputs))
    return layer


def paths(variables: list[Any]) -> list[str]:
    assert type(variables) is list
    return [variable.path for variable in variables]


# -- Dense -------------------------------------------------------------------------------------------------------------


def test_dense_is_built_by_its_first_input() -> None:
    layer = layers.Dense(2, name="first")
    assert repr(layer) == "<Dense name=first, built=False>"
    assert (layer.built, layer.variables, layer.weights) == (False, [], [])
    assert refused(AttributeError, lambda: layer.kernel) == "You must build the layer before accessing `kernel`."
    y = layer(tf.ones([4, 3]))
    assert y.shape == [4, 2]
    assert y.dtype == tf.float32
    assert layer.built
    assert (layer.kernel.shape, layer.bias.shape) == ((3, 2), (2,))
    assert np.all(layer.bias.numpy() == 0)
    assert paths(layer.variables) == paths(layer.weights) == ["first/kernel", "first/bias"]
    kernel = layer.kernel
    layer(tf.ones([1, 3]))
    assert layer.kernel is kernel


def test_dense_computes() -> None:
    layer = dense(2, activation="relu")
    layer.kernel.assign([[0.4, -0.2], [0.3, 0.1], [-0.5, 0.6]])
    layer.bias.assign([0.2, -0.1])
    x = np.array([[1.0, 2.0, 3.0], [-1.0, 0.5, 2.0]])
    expected = np.maximum(x @ [[0.4, -0.2], [0.3, 0.1], [-0.5, 0.6]] + [0.2, -0.1], 0)
    np.testing.assert_allclose(layer(tf.constant(x, tf.float32)).numpy(), expected, rtol=1e-6)
    np.testing.assert_allclose(layer(x).numpy(), expected, rtol=1e-6)
    np.testing.assert_allclose(layer(tf.constant(x)).numpy(), expected, rtol=1e-6)
    np.testing.assert_allclose(layer.call(tf.constant(x, tf.float32)).numpy(), expected, rtol=1e-6)
    np.testing.assert_allclose(layer(inputs=tf.constant(x), training=True).numpy(), expected, rtol=1e-6)


def test_dense_over_more_axes() -> None:
    layer = dense(2, inputs=4, use_bias=False, kernel_initializer="ones")
    y = layer(tf.ones([2, 3, 4]))
    assert y.shape == [2, 3, 2]
    assert np.all(y.numpy() == 4)
    assert layer.bias is None
    assert len(layer.variables) == 1


def test_dense_casts_its_inputs() -> None:
    assert dense(2)(tf.ones([1, 3], tf.float64)).dtype == tf.float32
    assert dense(2)(tf.ones([1, 3], tf.int32)).dtype == tf.float32
    assert dense(2)(np.ones([1, 3])).dtype == tf.float32
    assert dense(2, dtype="float64")(tf.ones([1, 3])).dtype == tf.float64
    assert dense(2, dtype=tf.float64).kernel.dtype == "float64"
    assert (dense(2).dtype, dense(2).compute_dtype, dense(2).variable_dtype) == ("float32",) * 3


def test_dense_gradient() -> None:
    layer = dense(1, inputs=2)
    layer.kernel.assign([[2.0], [-1.0]])
    layer.bias.assign([0.5])
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(layer(tf.constant([[3.0, 1.0], [0.0, 4.0]])) ** 2)
    assert len(tape.watched_variables()) == 2
    kernel, bias = tape.gradient(loss, layer.trainable_variables)
    assert kernel.numpy().tolist() == [[33.0], [-17.0]]
    assert bias.numpy().tolist() == [4.0]
    layer.kernel.assign_sub(0.1 * kernel)
    np.testing.assert_allclose(layer.kernel.numpy(), [[-1.3], [0.7]], rtol=1e-5)


def test_dense_options() -> None:
    x = tf.ones([1, 2])
    assert layers.Dense(2, kernel_initializer="zeros", bias_initializer="ones")(x).numpy().tolist() == [[1.0, 1.0]]
    assert layers.Dense(2, kernel_initializer=initializers.Ones())(x).numpy().tolist() == [[2.0, 2.0]]
    assert layers.Dense(2, kernel_initializer=initializers.Ones)(x).numpy().tolist() == [[2.0, 2.0]]
    twos = layers.Dense(2, kernel_initializer=lambda shape, dtype: tf.ones(shape, dtype) * 2)
    assert twos(x).numpy().tolist() == [[4.0, 4.0]]
    wide = layers.Dense(2, kernel_initializer=lambda shape, dtype=None: np.ones(shape))  # float64
    assert wide(x).dtype == tf.float32
    assert layers.Dense(2, activation=lambda y: y * 0 + 7.0)(x).numpy().tolist() == [[7.0, 7.0]]
    assert layers.Dense(2).activation is activations.linear
    assert layers.Dense(2, "relu", False).use_bias is False
    assert layers.Dense(units=2, name="z").name == "z"


@pytest.mark.parametrize("units", [0, -1, 2.0, "a", None, np.int64(3)])
def test_dense_units(units: Any) -> None:
    assert refused(ValueError, lambda: layers.Dense(units)) == (
        f"Received an invalid value for `units`, expected a positive integer. Received: units={units}"
    )


def test_dense_refuses_arguments() -> None:
    assert refused(ValueError, lambda: layers.Dense(2, foo=1)) == (
        "Unrecognized keyword arguments passed to Dense: {'foo': 1}"
    )
    assert refused(ValueError, lambda: layers.Dense(2, name="a/c")) == (
        "Argument `name` must be a string and cannot contain character `/`. Received: name=a/c (of type <class 'str'>)"
    )
    assert refused(ValueError, lambda: layers.Dense(2, activation="nope")).startswith(
        "Could not interpret activation function identifier: nope"
    )
    assert refused(ValueError, lambda: layers.Dense(2, kernel_initializer="nope")).startswith(
        "Could not interpret initializer identifier: nope"
    )


def test_dense_refuses_inputs() -> None:
    layer = dense(2, inputs=4, name="picky")
    wrong = "Input 0 with name 'None' of layer 'picky' is incompatible with the layer: "
    assert refused(ValueError, lambda: layer(tf.ones([1, 3]))) == (
        wrong + "expected axis -1 of input shape to have value 4, but received input with shape (1, 3)"
    )
    assert refused(ValueError, lambda: layer(tf.ones([4]))) == (
        wrong + "expected min_ndim=2, found ndim=1. Full shape received: (4,)"
    )
    assert refused(ValueError, lambda: layers.Dense(2, name="picky")(tf.ones([]))) == (
        wrong + "expected min_ndim=2, found ndim=0. Full shape received: ()"
    )
    assert refused(ValueError, lambda: layer(1.0)) == (
        "Only input tensors may be passed as positional arguments. The following argument value should be passed as a "
        "keyword argument: 1.0 (of type <class 'float'>)"
    )
    assert refused(ValueError, lambda: layer(None)) == (
        "Inputs to a layer should be tensors. Got 'None' (of type <class 'NoneType'>) as input for layer 'picky'."
    )
    assert refused(TypeError, lambda: layer()) == "missing a required argument: 'inputs'"


def test_dense_is_built_once_and_with_known_sizes() -> None:
    layer = dense(2)
    assert refused(ValueError, lambda: layer.build((None, 3))) == (
        "You cannot add new elements of state (variables or sub-layers) to a layer that is already built. All state "
        "must be created in the `__init__()` method or in the `build()` method."
    )
    layer = layers.Dense(2, name="open")
    assert refused(ValueError, lambda: layer.build((None, None))) == (
        "Shapes used to initialize variables must be fully-defined (no `None` dimensions). "
        "Received: shape=(None, 2) for variable path='open/kernel'"
    )
    for shape in ((3,), [2, 3], tf.TensorShape([None, 3])):
        layer = layers.Dense(2)
        layer.build(shape)
        assert layer.kernel.shape == [3, 2]


def test_trainable() -> None:
    layer = dense(2, name="t")
    layer.kernel.trainable = False
    assert paths(layer.trainable_variables) == ["t/bias"]
    assert paths(layer.non_trainable_variables) == ["t/kernel"]
    assert paths(layer.variables) == ["t/kernel", "t/bias"]
    layer.trainable = False
    assert (layer.bias.trainable, layer.trainable_weights, len(layer.non_trainable_weights)) == (False, [], 2)
    layer.trainable = True
    assert layer.kernel.trainable
    assert len(layer.trainable_variables) == 2
    frozen = dense(2, trainable=False)
    assert (frozen.kernel.trainable, frozen.trainable_weights, len(frozen.weights)) == (False, [], 2)


def test_a_tape_watches_frozen_weights() -> None:
    layer = dense(2, trainable=False)
    with tf.GradientTape() as tape:
        y = tf.reduce_sum(layer(tf.ones([1, 3])))
    assert tape.gradient(y, layer.bias).numpy().tolist() == [1.0, 1.0]


def test_weights_as_arrays() -> None:
    layer = dense(2, name="w")
    assert layer.count_params() == 8
    assert refused(ValueError, layers.Dense(2, name="u").count_params) == (
        "You tried to call `count_params` on layer 'u', but the layer isn't built. You can build it manually via: "
        "`layer.build(input_shape)`."
    )
    layer.set_weights([np.ones((3, 2)), np.array([1.0, 2.0])])
    assert [w.tolist() for w in layer.get_weights()] == [[[1.0, 1.0]] * 3, [1.0, 2.0]]
    assert refused(ValueError, lambda: layer.set_weights([np.ones((3, 2))])) == (
        "You called `set_weights(weights)` on layer 'w' with a weight list of length 1, but the layer was expecting 2 "
        "weights."
    )
    assert refused(ValueError, lambda: layer.set_weights([np.ones((2, 2)), np.ones(2)])) == (
        "Layer w weight shape (3, 2) is not compatible with provided weight shape (2, 2)."
    )


# -- Layer -------------------------------------------------------------------------------------------------------------


def test_names_are_made_unique() -> None:
    class HTTPHead(layers.Layer):
        pass

    assert [HTTPHead().name for _ in range(3)] == ["http_head", "http_head_1", "http_head_2"]
    assert HTTPHead(name="http_head_1").name == "http_head_1"


def test_a_layer_of_layers() -> None:
    class Stack(layers.Layer):
        def __init__(self) -> None:
            super().__init__(name="stack")
            self.a = layers.Dense(2, name="a")
            self.more = [layers.Dense(3, name="b"), layers.Dense(4, use_bias=False, name="c")]
            self.head = {"k": layers.Dense(1, name="d")}

        def call(self, x: Any) -> Any:
            x = self.a(x)
            for layer in self.more:
                x = layer(x)
            return self.head["k"](x)

    stack = Stack()
    assert stack(tf.ones([5, 2])).shape == [5, 1]
    assert paths(stack.weights) == [
        *("stack/a/kernel", "stack/a/bias", "stack/b/kernel", "stack/b/bias"),
        *("stack/c/kernel", "stack/d/kernel", "stack/d/bias"),
    ]
    assert stack.count_params() == 6 + 9 + 12 + 5
    stack.trainable = False
    assert not stack.a.trainable
    assert not stack.more[1].kernel.trainable
    assert stack.trainable_weights == []


def test_a_layer_with_weights_of_its_own() -> None:
    seen: list[Any] = []

    class Mine(layers.Layer):
        def __init__(self, units: int, **kwargs: Any) -> None:
            super().__init__(**kwargs)
            self.units = units
            self.scale = self.add_weight(shape=(), initializer="zeros", trainable=False, name="scale")

        def build(self, input_shape: Any) -> None:
            seen.append(input_shape)
            self.w = self.add_weight(shape=(input_shape[-1], self.units), initializer="ones", name="w")
            self.inner = layers.Dense(1, name="inner")

        def call(self, x: Any) -> Any:
            return self.inner(tf.matmul(x, self.w)) + self.scale

    layer = Mine(3, name="mine")
    assert not layer.built
    assert layer(tf.ones([2, 2])).shape == [2, 1]
    layer(tf.ones([7, 2]))
    assert seen == [(2, 2)]
    assert type(seen[0]) is tuple
    assert paths(layer.variables) == ["mine/w", "mine/scale", "mine/inner/kernel", "mine/inner/bias"]
    assert paths(layer.trainable_variables) == ["mine/w", "mine/inner/kernel", "mine/inner/bias"]
    assert paths(layer.non_trainable_variables) == ["mine/scale"]


def test_build_calls_its_super() -> None:
    class More(layers.Dense):
        def build(self, input_shape: Any) -> None:
            super().build(input_shape)
            self.extra = self.add_weight(shape=(1,), initializer="ones", name="extra")

    layer = More(2, name="more")
    layer.build((None, 3))
    assert paths(layer.variables) == ["more/kernel", "more/bias", "more/extra"]


def test_arguments_of_call() -> None:
    class Two(layers.Layer):
        def call(self, a: Any, b: Any = None, training: bool = False) -> Any:
            return a if b is None else a + b

    class One(layers.Layer):
        def call(self, x: Any) -> Any:
            return x

    item = tf.ones([1])
    assert Two()(item, b=item).numpy().tolist() == Two()(item, item).numpy().tolist() == [2.0]
    assert One()(item, training=True).numpy().tolist() == [1.0]
    (listed,) = One()([item])
    assert listed.numpy().tolist() == [1.0]
    dtypes = [One()(x).dtype for x in (np.ones(2), tf.constant([1]), np.array([1]), tf.ones([1], tf.float64))]
    assert dtypes == [tf.float32, tf.int32, tf.int64, tf.float32]


def test_layers_that_lack_something() -> None:
    class NoCall(layers.Layer):
        pass

    class NoSuper(layers.Layer):
        def __init__(self) -> None:
            self.x = 1

        def call(self, x: Any) -> Any:
            return x

    text = refused(NotImplementedError, lambda: NoCall()(tf.ones([1])))
    assert "Layer NoCall does not have a `call` method implemented." in text
    text = refused(RuntimeError, lambda: NoSuper()(tf.ones([1])))
    assert "In layer 'NoSuper', you forgot to call `super().__init__()` as the first statement" in text


# -- Variable ----------------------------------------------------------------------------------------------------------


def test_variable_names() -> None:
    v = keras.Variable([1.0, 2.0], name="q")
    assert (v.name, v.path, v.trainable, v.shape, v.dtype) == ("q", "q", True, (2,), "float32")
    assert repr(v) == str(v) == "<Variable path=q, shape=(2,), dtype=float32, value=[1. 2.]>"
    assert type(v).__name__ == "Variable"
    assert dense(2, name="d").kernel.name == "kernel"
    assert not hasattr(tf.Variable(1.0), "path")
    assert "cannot contain character `/`. Received: name=a/b" in refused(
        ValueError, lambda: keras.Variable(1.0, name="a/b")
    )


def test_variable_values() -> None:
    assert keras.Variable(1).dtype == "int32"
    assert keras.Variable(np.ones(2)).dtype == "float64"
    assert keras.Variable(initializers.Ones(), shape=(2,)).numpy().tolist() == [1.0, 1.0]
    assert keras.Variable("ones", shape=(2,), dtype="float64").dtype == "float64"
    assert "the `shape` argument should be specified" in refused(
        ValueError, lambda: keras.Variable(initializers.Ones())
    )


def test_variable_is_a_tensor_to_ops() -> None:
    v = keras.Variable([1.0, 2.0])
    assert (v * v).numpy().tolist() == [1.0, 4.0]
    assert (1 / v).numpy().tolist() == [1.0, 0.5]
    assert (tf.constant([3.0, 3.0]) - v).numpy().tolist() == [2.0, 1.0]
    assert (v > 1.0).numpy().tolist() == [False, True]
    assert float(v[1]) == 2.0
    assert float(tf.reduce_sum(v)) == 3.0
    assert tf.convert_to_tensor(v).numpy().tolist() == [1.0, 2.0]
    assert np.array(v).tolist() == [1.0, 2.0]
    assert (v.value * 2.0).numpy().tolist() == [2.0, 4.0]
    assert refused(TypeError, lambda: bool(v)) == "A Keras Variable cannot be used as a boolean."
    with pytest.raises(TypeError, match="unhashable"):
        hash(v)


def test_variable_is_a_source() -> None:
    v = keras.Variable([1.0, 2.0])
    with tf.GradientTape() as tape:
        y = tf.reduce_sum(v * v)
    assert tape.gradient(y, {"v": v})["v"].numpy().tolist() == [2.0, 4.0]


def test_a_layer_is_copied_with_its_variables() -> None:
    layer = dense(2, name="original", kernel_initializer="ones")
    copied = copy.deepcopy(layer)
    copied.kernel.assign(tf.zeros([3, 2]))
    assert paths(copied.variables) == ["original/kernel", "original/bias"]
    assert layer(tf.ones([1, 3])).numpy().tolist() == [[3.0, 3.0]]
    assert copied(tf.ones([1, 3])).numpy().tolist() == [[0.0, 0.0]]


def test_variable_assignment() -> None:
    v = keras.Variable([1.0, 2.0], name="a")
    assert v.assign([3, 4]).numpy().tolist() == [3.0, 4.0]
    assert v.assign(tf.constant([5, 6])).dtype == tf.float32
    assert v.assign_add(1.0).numpy().tolist() == [6.0, 7.0]
    assert v.assign_sub(tf.constant([1.0, 2.0])).numpy().tolist() == v.numpy().tolist() == [5.0, 5.0]
    assert refused(ValueError, lambda: v.assign([1.0])) == (
        "The shape of the target variable and the shape of the target value in `variable.assign(value)` must match. "
        "variable.shape=(2,), Received: value.shape=(1,). Target variable: "
        "<Variable path=a, shape=(2,), dtype=float32, value=[5. 5.]>"
    )


# -- initializers ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "class_name"),
    [
        ("zeros", "Zeros"),
        ("ones", "Ones"),
        ("one", "Ones"),
        ("normal", "RandomNormal"),
        ("uniform", "RandomUniform"),
        ("RandomNormal", "RandomNormal"),
        ("random_uniform", "RandomUniform"),
        ("glorot_uniform", "GlorotUniform"),
        ("GlorotUniform", "GlorotUniform"),
        ("he_normal", "HeNormal"),
    ],
)
def test_initializers_by_name(name: str, class_name: str) -> None:
    assert type(initializers.get(name)).__name__ == class_name


def test_initializers_as_they_are() -> None:
    def mine(shape: Any, dtype: Any = None) -> Any:
        return tf.ones(shape)

    zeros = initializers.Zeros()
    assert initializers.get(None) is None
    assert initializers.get(zeros) is zeros
    assert initializers.get(mine) is mine
    assert isinstance(initializers.get(initializers.Zeros), initializers.Zeros)
    assert initializers.get(np.ones(3, np.float32))((3,)).numpy().tolist() == [1.0, 1.0, 1.0]
    assert initializers.zeros is initializers.Zeros
    assert initializers.glorot_uniform is initializers.GlorotUniform
    assert refused(ValueError, lambda: initializers.get(3)) == "Could not interpret initializer identifier: 3"


def test_constant_initializers() -> None:
    assert initializers.Zeros()((2, 2)).numpy().tolist() == [[0.0, 0.0], [0.0, 0.0]]
    assert initializers.Zeros()((2,), dtype="int32").dtype == tf.int32
    assert initializers.Ones()([2], dtype=np.float64).dtype == tf.float64
    assert float(initializers.Ones()(())) == 1.0
    assert initializers.Ones()(2).numpy().tolist() == [1.0, 1.0]
    assert initializers.Constant(3.0)((2,)).numpy().tolist() == [3.0, 3.0]
    assert initializers.Constant([1, 2])((2,), dtype="float64").numpy().tolist() == [1.0, 2.0]
    assert refused(NotImplementedError, lambda: initializers.Initializer()((2,))) == (
        "Initializer subclasses must implement the `__call__()` method."
    )


@pytest.mark.parametrize(
    ("shape", "limit"),
    [((200, 300), math.sqrt(6 / 500)), ((3000,), math.sqrt(3 / 3000)), ((3, 3, 16, 32), math.sqrt(6 / (9 * 48)))],
)
def test_glorot_uniform(shape: tuple[int, ...], limit: float) -> None:
    values = initializers.GlorotUniform(seed=1)(shape).numpy()
    assert values.shape == shape
    assert values.dtype == np.float32
    assert 0.99 * limit < np.max(np.abs(values)) <= limit * 1.000001
    assert abs(np.mean(values)) < 0.05 * limit
    assert abs(np.std(values) / (limit / math.sqrt(3)) - 1) < 0.03


def test_he_normal() -> None:
    values = initializers.HeNormal(seed=1)((200, 300)).numpy()
    stddev = math.sqrt(2 / 200)
    assert abs(np.std(values) / stddev - 1) < 0.03
    assert abs(np.mean(values)) < 0.05 * stddev
    assert np.max(np.abs(values)) <= 2 * stddev / 0.87962566103423978 * 1.000001


def test_random_normal_and_uniform() -> None:
    values = initializers.RandomNormal(1.0, 2.0, seed=3)((200, 300)).numpy()
    assert abs(np.mean(values) - 1) < 0.05
    assert abs(np.std(values) - 2) < 0.05
    values = initializers.RandomUniform(1, 3, seed=3)((200, 300), dtype="float64").numpy()
    assert values.dtype == np.float64
    assert 1 <= np.min(values) < 1.01
    assert 2.99 < np.max(values) < 3


def test_seeds() -> None:
    def values(initializer: Any) -> Any:
        return initializer((2, 2)).numpy().tolist()

    assert values(initializers.GlorotUniform(seed=1)) == values(initializers.GlorotUniform(seed=1))
    assert values(initializers.GlorotUniform(seed=1)) != values(initializers.GlorotUniform(seed=2))
    assert values(initializers.GlorotUniform()) != values(initializers.GlorotUniform())
    unseeded = initializers.RandomNormal()
    assert values(unseeded) == values(unseeded)
    random.seed(5)
    first = values(initializers.HeNormal())
    random.seed(5)
    assert values(initializers.HeNormal()) == first
    assert refused(ValueError, lambda: initializers.GlorotUniform(seed=1.5)) == (
        "`seed` argument should be an instance of `keras.random.SeedGenerator()` or an integer. Received: seed=1.5"
    )


# -- activations -------------------------------------------------------------------------------------------------------


def test_activations() -> None:
    x = tf.constant([-1.0, 0.5, 8.0])
    assert activations.linear(x) is x
    np.testing.assert_allclose(activations.sigmoid(x).numpy(), 1 / (1 + np.exp(-x.numpy())), rtol=1e-6)
    np.testing.assert_allclose(activations.tanh(x).numpy(), np.tanh(x.numpy()), rtol=1e-6)
    np.testing.assert_allclose(activations.softplus(x).numpy(), np.log1p(np.exp(x.numpy())), rtol=1e-6)
    rows = np.exp([[1.0, 2.0], [3.0, 5.0]])
    values = tf.constant([[1.0, 2.0], [3.0, 5.0]])
    np.testing.assert_allclose(activations.softmax(values).numpy(), rows / rows.sum(1, keepdims=True), rtol=1e-6)
    np.testing.assert_allclose(activations.softmax(values, axis=0).numpy(), rows / rows.sum(0), rtol=1e-6)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, [0.0, 0.5, 8.0]),
        ({"negative_slope": 0.1}, [-0.1, 0.5, 8.0]),
        ({"max_value": 6}, [0.0, 0.5, 6.0]),
        ({"threshold": 1.0}, [0.0, 0.0, 8.0]),
        ({"negative_slope": 0.1, "max_value": 6, "threshold": 1.0}, [-0.2, -0.05, 6.0]),
    ],
)
def test_relu(options: dict[str, float], expected: list[float]) -> None:
    np.testing.assert_allclose(activations.relu([-1.0, 0.5, 8.0], **options).numpy(), expected, rtol=1e-6)


def test_activations_by_name() -> None:
    for name in ("linear", "relu", "sigmoid", "softmax", "softplus", "tanh"):
        assert activations.get(name) is getattr(activations, name)
    assert activations.get(None) is activations.linear
    assert activations.get(tf.nn.relu) is tf.nn.relu
    assert refused(ValueError, lambda: activations.get(3)) == "Could not interpret activation function identifier: 3"
