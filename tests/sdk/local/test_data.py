"""tf.data.Dataset; elements, types and texts as in TensorFlow 2.21. Orders of shuffled elements are our own."""

from collections import OrderedDict
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

import teletape as tf

Dataset = tf.data.Dataset


class P(NamedTuple):
    x: Any
    y: Any


def read(dataset: Any) -> list[Any]:
    return [tf.nest.map_structure(lambda x: x.numpy().tolist(), element) for element in dataset]


def count(n: int) -> Any:
    return Dataset.from_tensor_slices(list(range(n)))


@pytest.mark.parametrize(
    ("tensors", "elements"),
    [
        ([1, 2, 3], [1, 2, 3]),
        ([[1, 2], [3, 4]], [[1, 2], [3, 4]]),
        (np.arange(3), [0, 1, 2]),
        ([], []),
        (np.zeros((0, 3)), []),
        (([1, 2], [3.0, 4.0]), [(1, 3.0), (2, 4.0)]),
        (([1, 2],), [(1,), (2,)]),
        ({"b": [1, 2], "a": [3, 4]}, [{"b": 1, "a": 3}, {"b": 2, "a": 4}]),
        ((([1, 2], {"a": [3, 4]}), [5, 6]), [((1, {"a": 3}), 5), ((2, {"a": 4}), 6)]),
        (P([1, 2], [3, 4]), [P(1, 3), P(2, 4)]),
        (OrderedDict(a=[1]), [OrderedDict(a=1)]),
    ],
)
def test_slices(tensors: Any, elements: list[Any]) -> None:
    dataset = Dataset.from_tensor_slices(tensors)
    assert read(dataset) == elements
    assert read(dataset) == elements
    assert len(dataset) == len(elements)
    assert [type(element) for element in read(dataset)] == [type(element) for element in elements]


def test_slices_of_tensors_and_variables() -> None:
    assert read(Dataset.from_tensor_slices(tf.constant([[1.0, 2.0], [3.0, 4.0]]))) == [[1.0, 2.0], [3.0, 4.0]]
    assert read(Dataset.from_tensor_slices(tf.Variable([1.0, 2.0]))) == [1.0, 2.0]
    assert read(Dataset.from_tensor_slices([tf.constant([1]), tf.constant([2])])) == [[1], [2]]


def test_dtypes() -> None:
    def dtype(tensors: Any) -> Any:
        return next(iter(Dataset.from_tensor_slices(tensors))).dtype

    assert dtype([1]) == tf.int32
    assert dtype([1.0]) == tf.float32
    assert dtype(np.array([1.0])) == tf.float64
    assert dtype(np.array([[1]])) == tf.int64
    assert dtype([True]) == tf.bool


def test_the_values_are_copied() -> None:
    array = np.zeros(2)
    dataset = Dataset.from_tensor_slices(array)
    array += 1
    assert read(dataset) == [0.0, 0.0]


@pytest.mark.parametrize(
    ("tensors", "text"),
    [
        (3, "Unbatching a tensor is only supported for rank >= 1"),
        ({"a": [1, 2], "b": 3}, "Unbatching a tensor is only supported for rank >= 1"),
        (([1, 2], [3]), "Dimensions 2 and 1 are not compatible"),
        ({}, "Invalid `element`. `element` should not be empty."),
        ((), "Invalid `element`. `element` should not be empty."),
        ([[1], [2, 3]], "Can't convert non-rectangular Python sequence to Tensor."),
    ],
)
def test_nothing_to_slice(tensors: Any, text: str) -> None:
    with pytest.raises(ValueError) as error:  # noqa: PT011  # the text is compared below
        Dataset.from_tensor_slices(tensors)
    assert str(error.value) == text


def test_from_tensors() -> None:
    assert read(Dataset.from_tensors([1, 2])) == [[1, 2]]
    assert read(Dataset.from_tensors((1, 2.0))) == [(1, 2.0)]
    assert read(Dataset.from_tensors({"a": 1})) == [{"a": 1}]
    assert len(Dataset.from_tensors(1)) == 1


def test_no_gradient_passes() -> None:
    x = tf.Variable([[1.0, 2.0], [3.0, 4.0]])
    with tf.GradientTape() as tape:
        total = tf.zeros([2])
        for row in Dataset.from_tensor_slices(x**2):
            total += row
    assert total.numpy().tolist() == [10.0, 20.0]
    assert tape.gradient(total, x) is None


def test_no_gradient_leaves_a_map() -> None:
    v = tf.Variable(3.0)
    with tf.GradientTape() as tape:
        total = tf.constant(0.0)
        for element in Dataset.from_tensor_slices([1.0, 2.0]).map(lambda x: x * v):
            total += element
    assert float(total) == 9.0
    assert tape.gradient(total, v) is None


def test_batch() -> None:
    assert read(count(10).batch(4)) == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]
    assert read(count(10).batch(4, drop_remainder=True)) == [[0, 1, 2, 3], [4, 5, 6, 7]]
    assert [len(count(10).batch(*args)) for args in ((4,), (4, True), (20,), (20, True), (5,), (5, True))] == [
        *(3, 2, 1, 0, 2, 2),
    ]
    assert read(Dataset.from_tensor_slices({"a": [1, 2, 3]}).batch(2)) == [{"a": [1, 2]}, {"a": [3]}]
    assert read(Dataset.from_tensor_slices(([1, 2, 3], [4, 5, 6])).batch(2)) == [([1, 2], [4, 5]), ([3], [6])]
    assert read(count(4).batch(2).batch(2)) == [[[0, 1], [2, 3]]]
    assert next(iter(Dataset.from_tensor_slices(np.zeros((3, 5), np.float32)).batch(2))).shape == [2, 5]


def test_batch_of_computed_elements() -> None:
    assert read(count(3).map(lambda x: {"twice": x * 2}).batch(2)) == [{"twice": [0, 2]}, {"twice": [4]}]


def test_repeat() -> None:
    assert read(count(2).repeat(2)) == [0, 1, 0, 1]
    assert len(count(2).repeat(3)) == 6
    assert read(count(2).repeat(0)) == []
    for endless in (count(2).repeat(), count(2).repeat(None), count(2).repeat(-5), count(2).repeat().repeat(2)):
        assert endless.cardinality().numpy() == tf.data.INFINITE_CARDINALITY == -1
        assert read(endless.take(5)) == [0, 1, 0, 1, 0]
        with pytest.raises(TypeError, match=r"The dataset is infinite\."):
            len(endless)
        assert endless
    assert read(count(0).repeat()) == []
    assert read(count(2).repeat().batch(3).take(2)) == [[0, 1, 0], [1, 0, 1]]


def test_take() -> None:
    assert read(count(10).take(3)) == [0, 1, 2]
    assert [len(count(10).take(n)) for n in (3, 30, -1, 0)] == [3, 10, 10, 0]
    assert read(count(3).take(-1)) == [0, 1, 2]
    assert len(count(2).repeat().take(5)) == 5


def test_cardinality() -> None:
    cardinality = count(3).cardinality()
    assert cardinality.dtype == tf.int64
    assert cardinality.shape == []
    assert int(cardinality) == 3
    assert tf.data.UNKNOWN_CARDINALITY == -2


def test_map() -> None:
    assert read(count(3).map(lambda x: x * 2)) == [0, 2, 4]
    assert read(Dataset.from_tensor_slices(([1, 2], [3, 4])).map(lambda a, b: a + b)) == [4, 6]
    assert read(Dataset.from_tensor_slices({"a": [1, 2]}).map(lambda element: element["a"])) == [1, 2]
    assert read(Dataset.from_tensor_slices(P([1, 2], [3, 4])).map(lambda p: p.x - p.y)) == [-2, -2]
    assert read(count(2).map(lambda a: (a, a + 1))) == [(0, 1), (1, 2)]
    assert read(count(2).map(lambda a: [a, a + 1])) == [(0, 1), (1, 2)]
    assert read(count(2).map(lambda a: {"k": a})) == [{"k": 0}, {"k": 1}]
    assert read(count(2).map(lambda a: 3)) == [3, 3]
    assert len(count(3).map(lambda x: x, num_parallel_calls=tf.data.AUTOTUNE)) == 3
    assert read(count(6).batch(3).map(lambda b: tf.reduce_sum(b))) == [3, 12]
    with pytest.raises(ValueError, match=r"must be a callable\. Received func=3 \(of type <class 'int'>\)"):
        count(3).map(3)


def test_enumerate() -> None:
    assert read(count(2).enumerate(start=5)) == [(5, 0), (6, 1)]
    assert read(Dataset.from_tensor_slices(([1, 2], [3, 4])).enumerate()) == [(0, (1, 3)), (1, (2, 4))]
    first = next(iter(count(2).enumerate()))
    assert (first[0].dtype, first[1].dtype) == (tf.int64, tf.int32)
    assert read(count(3).enumerate().batch(2)) == [([0, 1], [0, 1]), ([2], [2])]


def test_prefetch() -> None:
    assert read(count(3).prefetch(tf.data.AUTOTUNE)) == [0, 1, 2]


def test_shuffle_keeps_every_element() -> None:
    for buffer in (1, 3, 10, 100):
        dataset = count(10).shuffle(buffer)
        assert len(dataset) == 10
        for _ in range(3):
            assert sorted(read(dataset)) == list(range(10))
    assert read(count(10).shuffle(1)) == list(range(10))
    assert sorted(read(Dataset.from_tensor_slices(([1, 2], [3, 4])).shuffle(2))) == [(1, 3), (2, 4)]


def test_shuffle_draws_from_a_buffer() -> None:
    orders = [read(count(10).shuffle(3, seed=seed)) for seed in range(20)]
    assert all(value - place <= 2 for order in orders for place, value in enumerate(order))
    assert len({tuple(order) for order in orders}) > 10


def test_shuffle_is_even() -> None:
    places = np.zeros((4, 4))
    for seed in range(400):
        for place, value in enumerate(read(count(4).shuffle(4, seed=seed))):
            places[place, value] += 1
    assert np.all(np.abs(places - 100) < 40)  # standard deviation 8.7


def test_shuffle_seeds() -> None:
    assert read(count(50).shuffle(50, seed=1)) == read(count(50).shuffle(50, seed=1))
    assert read(count(50).shuffle(50, seed=1)) != read(count(50).shuffle(50, seed=2))
    assert read(count(50).shuffle(50)) != read(count(50).shuffle(50))
    fresh, fixed = count(50).shuffle(50, seed=1), count(50).shuffle(50, seed=1, reshuffle_each_iteration=False)
    assert read(fresh) != read(fresh)
    assert read(fixed) == read(fixed)
    tf.random.set_seed(3)
    first = read(count(50).shuffle(50))
    tf.random.set_seed(3)
    assert read(count(50).shuffle(50)) == first
    twice = read(count(50).shuffle(50, seed=1).repeat(2))
    assert twice[:50] != twice[50:]
    assert sorted(twice[:50]) == sorted(twice[50:])


@pytest.mark.parametrize(
    ("ask", "text"),
    [
        (lambda: count(3).batch(0), "Batch size must be greater than zero."),
        (lambda: count(3).batch(-1), "Batch size must be greater than zero."),
        (lambda: count(3).shuffle(0), "buffer_size must be greater than zero"),
    ],
)
def test_sizes_must_be_positive(ask: Callable[[], Any], text: str) -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match=text):
        ask()


@pytest.mark.parametrize("ask", ["batch", "shuffle", "take", "repeat"])
def test_sizes_must_be_whole(ask: str) -> None:
    with pytest.raises(TypeError, match=r"Cannot convert 2\.5 to EagerTensor of dtype int64"):
        getattr(count(3), ask)(2.5)


@pytest.mark.parametrize("spec", [tf.SparseTensorSpec([2, 2]), tf.RaggedTensorSpec([2, None])])
def test_a_generator_of_elements_that_are_not_dense_is_refused(spec):
    with pytest.raises(TypeError, match=r"the elements of datasets are dense tensors here. Yield tf\.sparse\.to_dense"):
        tf.data.Dataset.from_generator(lambda: iter(()), output_signature=spec)
