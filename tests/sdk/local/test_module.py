"""tf.Module: which variables it finds, in which order, and its names; as TensorFlow 2.21 does."""

import collections
from typing import Any

import pytest

import teletape as tf


class Owner(tf.Module):
    pass


def named(**attributes: Any) -> Owner:
    owner = Owner()
    for name, value in attributes.items():
        setattr(owner, name, value)
    return owner


def values(variables: Any) -> list[float]:
    assert type(variables) is tuple
    return [float(variable) for variable in variables]


@pytest.mark.parametrize(
    ("class_name", "name"),
    [
        ("Affine", "affine"),
        ("MyHTTPServer2Layer", "my_http_server2_layer"),
        ("ABCd", "ab_cd"),
        ("_P", "_p"),
        ("a1B", "a1_b"),
    ],
)
def test_name_from_the_class(class_name: str, name: str) -> None:
    assert type(class_name, (tf.Module,), {})().name == name


def test_name_given() -> None:
    assert Owner("q").name == Owner(name="q").name == "q"
    assert tf.Module().name == "module"
    for bad in ("x y", "", "x/y", "1x"):
        with pytest.raises(ValueError) as error:  # noqa: PT011  # the text is compared below
            Owner(name=bad)
        assert str(error.value) == (
            f"{bad!r} is not a valid module name. Module names must be valid Python identifiers "
            "(e.g. a valid class name)."
        )


def test_variables_by_attribute_name_through_containers() -> None:
    owner = named(
        w=tf.Variable(1.0),
        b=tf.Variable(2.0),
        c=[tf.Variable(3.0), (tf.Variable(4.0), {"z": tf.Variable(5.0), "y": tf.Variable(6.0)})],
        t=tf.Variable(7.0, trainable=False),
        k=collections.OrderedDict([("b", tf.Variable(8.0)), ("a", tf.Variable(9.0))]),
        q=collections.deque([tf.Variable(10.0)]),
        no=[1, "text", None, tf.constant(1.0), {1, 2}, object()],
    )
    assert values(owner.variables) == [2.0, 3.0, 4.0, 6.0, 5.0, 9.0, 8.0, 10.0, 7.0, 1.0]
    assert values(owner.trainable_variables) == [2.0, 3.0, 4.0, 6.0, 5.0, 9.0, 8.0, 10.0, 1.0]
    assert values(owner.non_trainable_variables) == [7.0]


def test_each_variable_once() -> None:
    v = tf.Variable(1.0)
    owner = named(a=v, b=[v, v], c=named(v=v))
    assert len(owner.variables) == 1
    assert owner.variables[0] is v


def test_variables_of_submodules_come_after_the_own() -> None:
    inner = named(z=tf.Variable(3.0), deep=named(a=tf.Variable(4.0)))
    owner = named(a=inner, b=tf.Variable(1.0), list=[named(x=tf.Variable(5.0)), named(x=tf.Variable(6.0))])
    inner.parent = owner
    owner.itself = owner
    assert values(owner.variables) == [1.0, 3.0, 4.0, 5.0, 6.0]
    assert [id(each) for each in owner.submodules] == [
        *map(id, [inner, owner.list[0], owner.list[1], inner.deep]),
    ]
    assert values(inner.variables) == [3.0, 4.0, 1.0, 5.0, 6.0]


def test_a_list_that_grows() -> None:
    owner = named(layers=[])
    owner.layers.append(tf.Variable(1.0))
    assert values(owner.variables) == [1.0]
    del owner.layers
    assert owner.variables == ()


def test_class_attributes_and_properties_do_not_count() -> None:
    class Holder(tf.Module):
        shared = tf.Variable(1.0)

        @property
        def weight(self) -> Any:
            return tf.Variable(2.0)

    assert Holder().variables == ()


def test_without_init() -> None:
    class Lazy(tf.Module):
        def __init__(self) -> None:
            self.v = tf.Variable(1.0)

    assert values(Lazy().variables) == [1.0]


def test_a_property_that_cannot_be_walked() -> None:
    owner = named(bad={"b": 1, 2: 1})
    with pytest.raises(ValueError, match="Error processing property 'bad' of ") as error:
        _ = owner.variables
    assert isinstance(error.value.__cause__, TypeError)


def test_name_scopes() -> None:
    class Inner(tf.Module):
        def __init__(self) -> None:
            super().__init__()
            with self.name_scope:
                self.v = tf.Variable(1.0, name="v")

        @tf.Module.with_name_scope
        def __call__(self, x: float) -> Any:
            """Doc."""
            self.u = tf.Variable(x, name="u")
            return self.u

    class Outer(tf.Module):
        def __init__(self) -> None:
            super().__init__()
            with self.name_scope:
                self.inner = Inner()

    inner = Inner()
    assert inner.v.name == "inner/v:0"
    assert inner(2.0).name == "inner/u:0"
    assert float(inner.u) == 2.0
    assert inner.name_scope.name == "inner/"
    assert Inner.__call__.__doc__ == "Doc."
    outer = Outer()
    assert outer.inner.v.name == "outer/inner/v:0"
    assert outer.inner(1.0).name == "outer/inner/u:0"
    assert tf.Variable(1.0, name="u").name == "u:0"


def test_layers_are_not_looked_into() -> None:
    dense = tf.keras.layers.Dense(2)
    dense.build((None, 3))
    assert named(dense=dense).variables == ()


def test_gradient_of_all_variables() -> None:
    owner = named(scale=tf.Variable([1.0, 2.0]), shift=tf.Variable(0.5), fixed=tf.Variable(3.0, trainable=False))
    with tf.GradientTape() as tape:
        y = tf.reduce_sum(owner.scale * 2.0 + owner.shift + owner.fixed)
    gradients = tape.gradient(y, owner.trainable_variables)
    assert type(gradients) is tuple
    assert [g.numpy().tolist() for g in gradients] == [[2.0, 2.0], 2.0]
