"""tf.nest; results and texts were recorded with TensorFlow 2.21."""

import collections
import dataclasses
import logging
import types
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import pytest

from teletape.core.tensors import nest
from teletape.core.tensors.dtypes import float32
from teletape.core.tensors.tensor_shape import TensorShape


class P(NamedTuple):
    x: Any
    y: Any


class Q(NamedTuple):
    x: Any
    y: Any


class Pair(P):
    """A named tuple by inheritance."""


@dataclasses.dataclass
class Record:
    a: int


class MyList(list[Any]):
    pass


class MyTuple(tuple[Any, ...]):
    pass


class MyDict(dict[Any, Any]):
    pass


class Row(Sequence[Any]):
    """A sequence that is no list and no tuple."""

    def __init__(self, items: Any = ()) -> None:
        self.items = list(items)

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, i: Any) -> Any:
        return self.items[i]


ARRAY = np.array([1, 2])


@pytest.mark.parametrize(
    ("structure", "leaves"),
    [
        (1, [1]),
        (None, [None]),
        ("abc", ["abc"]),
        (b"ab", [b"ab"]),
        (ARRAY, [ARRAY]),
        (float32, [float32]),
        (TensorShape([1, 2]), [TensorShape([1, 2])]),
        (Record(1), [Record(1)]),
        ({1, 2}, [{1, 2}]),
        ([], []),
        ([[], {}, ()], []),
        ([None, 1, (2, [3])], [None, 1, 2, 3]),
        ({"b": 1, "a": [2, 3]}, [2, 3, 1]),
        (OrderedDict([("b", 1), ("a", 2)]), [2, 1]),
        (defaultdict(int, {"b": 1, "a": 2}), [2, 1]),
        (types.MappingProxyType({"b": 1, "a": 2}), [2, 1]),
        (collections.UserDict({"b": 1, "a": 2}), [2, 1]),
        ({"b": 1, "a": 2}.values(), [1, 2]),
        ({"b": 1, "a": 2}.keys(), ["b", "a"]),
        ({"b": 1, "a": 2}.items(), ["b", 1, "a", 2]),
        (P(1, [2]), [1, 2]),
        (deque([1, 2]), [1, 2]),
        (range(3), [0, 1, 2]),
        (bytearray(b"ab"), [97, 98]),
        (MyList([1, 2]), [1, 2]),
        (Row([1, [2]]), [1, 2]),
    ],
)
def test_flatten(structure: Any, leaves: list[Any]) -> None:
    flat = nest.flatten(structure)
    assert type(flat) is list
    assert len(flat) == len(leaves)
    assert all(a is b or a == b for a, b in zip(flat, leaves, strict=True))
    assert nest.flatten(structure, expand_composites=True) == flat
    assert nest.is_nested(structure) is not (len(flat) == 1 and flat[0] is structure)


def test_flatten_gives_a_list_of_its_own() -> None:
    results = [1, 2]
    nest.flatten(results).append(3)
    assert results == [1, 2]


def test_flatten_of_keys_without_order() -> None:
    with pytest.raises(TypeError, match="'<' not supported between instances of 'int' and 'str'"):
        nest.flatten({"b": 1, 1: 2})
    with pytest.raises(TypeError, match=r"^nest only supports dicts with sortable keys\.$"):
        nest.pack_sequence_as({"b": 1, 1: 2}, [1, 2])


@pytest.mark.parametrize(
    ("structure", "flat", "packed"),
    [
        (1, [5], 5),
        (None, [5], 5),
        ("ab", [5], 5),
        ([], [], []),
        ([[], 1], [5], [[], 5]),
        ([1, [2, (3,)]], [5, 6, 7], [5, [6, (7,)]]),
        ([1, [2, (3,)]], (5, 6, 7), [5, [6, (7,)]]),
        ([1, 2], [[5], 6], [[5], 6]),
        ({"b": 1, "a": [2, 3]}, [5, 6, 7], {"b": 7, "a": [5, 6]}),
        (OrderedDict([("b", 1), ("a", 2)]), [5, 6], OrderedDict([("b", 6), ("a", 5)])),
        (defaultdict(list, {"b": 1, "a": 2}), [5, 6], defaultdict(list, {"b": 6, "a": 5})),
        (collections.UserDict({"b": 1, "a": 2}), [5, 6], collections.UserDict({"b": 6, "a": 5})),
        (MyDict(b=1, a=2), [5, 6], MyDict(b=6, a=5)),
        (P(1, 2), [5, 6], P(5, 6)),
        (Pair(1, 2), [5, 6], Pair(5, 6)),
        (MyList([1, 2]), [5, 6], MyList([5, 6])),
        (MyTuple([1, 2]), [5, 6], MyTuple([5, 6])),
        (deque([1, 2]), [5, 6], deque([5, 6])),
        (range(2), [5, 6], [5, 6]),
        ({"b": 1, "a": 2}.values(), [5, 6], [5, 6]),
    ],
)
def test_pack(structure: Any, flat: Any, packed: Any) -> None:
    result = nest.pack_sequence_as(structure, flat)
    assert type(result) is type(packed)
    assert result == packed
    if isinstance(packed, dict):
        assert list(result) == list(packed) == list(structure)
    if isinstance(packed, defaultdict):
        assert result.default_factory is packed.default_factory


TOO_SHORT = (
    "Could not pack sequence. Structure had 4 atoms, but flat_sequence had 2 items.  "
    "Structure: [1, {'b': 2, 'a': [3, 4]}], flat_sequence: [1, 2]."
)
TOO_LONG = (
    "Could not pack sequence. Structure had 1 atoms, but flat_sequence had 2 items.  "
    "Structure: [1], flat_sequence: [5, 6]."
)
NOT_ONE = (
    "The target structure is of type `<class 'int'>`\n  1\nHowever the input is a sequence (<class 'list'>) of length "
    "2.\n  [5, 6]\nnest cannot guarantee that it is safe to map one to the other."
)
NO_SEQUENCE = "Attempted to pack value:\n  {}\ninto a structure, but found incompatible type `{}` instead."


@pytest.mark.parametrize(
    ("structure", "flat", "error", "text"),
    [
        ([1, {"b": 2, "a": [3, 4]}], [1, 2], ValueError, TOO_SHORT),
        ([1], [5, 6], ValueError, TOO_LONG),
        (1, [5, 6], ValueError, NOT_ONE),
        ([1, 2], 5, TypeError, NO_SEQUENCE.format("5", "<class 'int'>")),
        ([1, 2], "ab", TypeError, NO_SEQUENCE.format("ab", "<class 'str'>")),
        ([1, 2], "b" * 300, TypeError, NO_SEQUENCE.format("b" * 100 + "...", "<class 'str'>")),
        ([1, 2], ARRAY, TypeError, NO_SEQUENCE.format("[1 2]", "<class 'numpy.ndarray'>")),
        ([1, 2], {"a": 1, "b": 2}, TypeError, NO_SEQUENCE.format("{'a': 1, 'b': 2}", "<class 'dict'>")),
    ],
)
def test_pack_refuses(structure: Any, flat: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error) as raised:
        nest.pack_sequence_as(structure, flat)
    assert type(raised.value) is error
    assert str(raised.value) == text


def test_pack_of_a_mapping_that_cannot_be_made(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, logger="teletape"), pytest.raises(TypeError) as raised:
        nest.pack_sequence_as(types.MappingProxyType({"b": 1, "a": 2}), [5, 6])
    assert str(raised.value) == (
        "Error creating an object of type <class 'mappingproxy'> like {'b': 1, 'a': 2}. Note that it must accept a "
        "single positional argument representing an iterable of key-value pairs, in addition to self. Cause: "
        "mappingproxy() argument must be a mapping, not generator"
    )
    assert caplog.messages == [
        "Mapping types may not work well with tf.nest. Prefer using MutableMapping for <class 'mappingproxy'>"
    ]


def add(a: Any, b: Any) -> Any:
    return a + b


def test_map() -> None:
    assert nest.map_structure(lambda x: x + 1, 1) == 2
    assert nest.map_structure(lambda x: x, None) is None
    assert nest.map_structure(lambda x: x + 1, [1, {"b": 2, "a": (3,)}]) == [2, {"b": 3, "a": (4,)}]
    assert nest.map_structure(lambda x: [x, x], [1], expand_composites=True) == [[1, 1]]
    assert nest.map_structure(add, [1, 2], [3, 4]) == [4, 6]
    assert nest.map_structure(add, [1, 2], (3, 4), check_types=False) == [4, 6]
    mapped = nest.map_structure(add, {"b": 1, "a": 2}, OrderedDict(a=5, b=6))
    assert type(mapped) is dict
    assert list(mapped.items()) == [("b", 7), ("a", 7)]


def test_map_refuses() -> None:
    results: list[tuple[type[Exception], str, Callable[[], Any]]] = [
        (TypeError, "func must be callable, got: 3", lambda: nest.map_structure(3, [1])),  # type: ignore[arg-type]
        (ValueError, "Must provide at least one structure", lambda: nest.map_structure(add)),
        (
            *(ValueError, "Only valid keyword arguments are `check_types` and `expand_composites`, not: `foo`, `bar`"),
            lambda: nest.map_structure(add, 1, foo=True, bar=True),
        ),
    ]
    for error, text, ask in results:
        with pytest.raises(error) as raised:
            ask()
        assert str(raised.value) == text
    with pytest.raises(TypeError, match="The two structures don't have the same nested structure"):
        nest.map_structure(add, [1, 2], (3, 4))


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (1, 2),
        (None, "abc"),
        ("abc", ARRAY),
        ([1], [2]),
        ([1], MyList([1])),
        ({"a": 1}, OrderedDict(a=1)),
        (collections.UserDict(a=1), {"a": 1}),
        (P(1, 2), collections.namedtuple("P", "x y")(1, 2)),  # the same name and fields again
        ({"a": 1}.values(), {"b": 2}.values()),
    ],
)
def test_same_structure(a: Any, b: Any) -> None:
    nest.assert_same_structure(a, b)
    nest.assert_same_structure(b, a)


@pytest.mark.parametrize(
    ("a", "b"), [([1], (1,)), ({"a": 1}, {"b": 1}), ({"a": 1}, [1]), (P(1, 2), [1, 2]), ([1, 2], range(2))]
)
def test_same_structure_of_other_types(a: Any, b: Any) -> None:
    nest.assert_same_structure(a, b, check_types=False)
    with pytest.raises((TypeError, ValueError)):
        nest.assert_same_structure(a, b)


DIFFERENT = [
    (
        *(1, [2], ValueError, "type=int str=1", "type=list str=[2]"),
        'Substructure "type=list str=[2]" is a sequence, while substructure "type=int str=1" is not',
        *(".", "[.]"),
    ),
    (
        *([1, [2]], [2, 3], ValueError, "type=list str=[1, [2]]", "type=list str=[2, 3]"),
        'Substructure "type=list str=[2]" is a sequence, while substructure "type=int str=3" is not',
        *("[., [.]]", "[., .]"),
    ),
    (
        *([1, 2], [2], ValueError, "type=list str=[1, 2]", "type=list str=[2]"),
        "The two structures don't have the same number of elements. "
        "First structure: type=list str=[1, 2]. Second structure: type=list str=[2]",
        *("[., .]", "[.]"),
    ),
    (
        *([[], 1], [1], ValueError, "type=list str=[[], 1]", "type=list str=[1]"),
        'Substructure "type=list str=[]" is a sequence, while substructure "type=int str=1" is not',
        *("[[], .]", "[.]"),
    ),
    (
        *([1], (1,), TypeError, "type=list str=[1]", "type=tuple str=(1,)"),
        "The two namedtuples don't have the same sequence type. First structure type=list str=[1] has type list, "
        "while second structure type=tuple str=(1,) has type tuple",
        *("[.]", "(.,)"),
    ),
    (
        *((1,), MyTuple([1]), TypeError, "type=tuple str=(1,)", "type=MyTuple str=(1,)"),
        "The two namedtuples don't have the same sequence type. First structure type=tuple str=(1,) has type tuple, "
        "while second structure type=MyTuple str=(1,) has type MyTuple",
        *("(.,)", "(.,)"),
    ),
    (
        *(P(1, 2), Q(1, 2), TypeError, "type=P str=P(x=1, y=2)", "type=Q str=Q(x=1, y=2)"),
        "The two namedtuples don't have the same sequence type. First structure type=P str=P(x=1, y=2) has type P, "
        "while second structure type=Q str=Q(x=1, y=2) has type Q",
        *("P(x=., y=.)", "Q(x=., y=.)"),
    ),
    (
        *({"b": 1, "a": 2}, {"b": 1}, ValueError, "type=dict str={'b': 1, 'a': 2}", "type=dict str={'b': 1}"),
        "The two dictionaries don't have the same set of keys. First structure has keys type=list str=['b', 'a'], "
        "while second structure has keys type=list str=['b']",
        *("{'b': ., 'a': .}", "{'b': .}"),
    ),
    (
        *({"a": [1, 2]}, {"a": [1]}, ValueError, "type=dict str={'a': [1, 2]}", "type=dict str={'a': [1]}"),
        "The two structures don't have the same number of elements. "
        "First structure: type=list str=[1, 2]. Second structure: type=list str=[1]",
        *("{'a': [., .]}", "{'a': [.]}"),
    ),
]


@pytest.mark.parametrize(("a", "b", "error", "first", "second", "why", "outline", "other"), DIFFERENT)
def test_different_structure(
    a: Any, b: Any, error: type[Exception], first: str, second: str, why: str, outline: str, other: str
) -> None:
    with pytest.raises(error) as raised:
        nest.assert_same_structure(a, b)
    assert type(raised.value) is error
    assert str(raised.value) == (
        "The two structures don't have the same nested structure.\n\n"
        f"First structure: {first}\n\nSecond structure: {second}\n\nMore specifically: {why}\n"
        f"Entire first structure:\n{outline}\nEntire second structure:\n{other}"
    )


def test_classes_by_the_thousand_are_not_kept() -> None:
    for i in range(2 * nest._NESTED_BOUND):
        nest.is_nested(type(f"C{i}", (), {})())
    assert len(nest._nested_types) <= nest._NESTED_BOUND
    assert nest.is_nested([])
    assert not nest.is_nested("")
