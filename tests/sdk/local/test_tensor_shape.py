"""tf.TensorShape; what is expected was recorded with TensorFlow 2.21."""

import copy
import operator
import pickle
from collections.abc import Callable

import numpy as np
import pytest

from teletape.core.tensors.tensor_shape import TensorShape, as_shape, shape_of

known = TensorShape([1, 2])
partly = TensorShape([None, 2])
unknown = TensorShape(None)

NO_SIZE = "Dimension value must be integer or None or have an __index__ method"
NO_SHAPE = (
    "Failed to convert ''a'' to a shape: ''a''could not be converted to a dimension. A shape should either be single "
    "dimension (e.g. 10), or an iterable of dimensions (e.g. [1, 10, None])."
)


@pytest.mark.parametrize(
    ("dims", "sizes"),
    [
        ([], []),
        ((1, 2), [1, 2]),
        ([None, 2], [None, 2]),
        (3, [3]),
        (range(3), [0, 1, 2]),
        (np.array([1, 2]), [1, 2]),
        (np.int64(4), [4]),
        ([np.int64(4)], [4]),
        (iter([1, 2]), [1, 2]),
        (known, [1, 2]),
    ],
)
def test_made_from(dims: object, sizes: list[int | None]) -> None:
    shape = TensorShape(dims)
    assert shape.as_list() == sizes
    assert all(size is None or type(size) is int for size in shape)
    assert repr(shape) == f"TensorShape({sizes})"
    assert shape.rank == shape.ndims == len(shape) == len(sizes)


@pytest.mark.parametrize(
    ("dims", "error", "text"),
    [
        ([-3], ValueError, "Dimension -3 must be >= 0"),
        (-1, ValueError, "Dimension -1 must be >= 0"),
        ([1.5], TypeError, f"{NO_SIZE}, got value '1.5' with type '<class 'float'>'"),
        (1.5, TypeError, f"{NO_SIZE}, got value '1.5' with type '<class 'float'>'"),
        (["a"], TypeError, f"{NO_SIZE}, got value ''a'' with type '<class 'str'>'"),
        ([[1]], TypeError, f"{NO_SIZE}, got value '[1]' with type '<class 'list'>'"),
        ("a", TypeError, NO_SHAPE),
    ],
)
def test_not_made_from(dims: object, error: type[Exception], text: str) -> None:
    with pytest.raises(error) as raised:
        TensorShape(dims)
    assert type(raised.value) is error
    assert str(raised.value) == text


def test_text() -> None:
    assert [str(TensorShape(dims)) for dims in ([], [3], [1, 2], [None, 2], None)] == [
        *("()", "(3,)", "(1, 2)", "(None, 2)", "<unknown>"),
    ]
    assert repr(unknown) == "TensorShape(None)"
    assert f"{known}" == "(1, 2)"


def test_reads_like_a_tuple() -> None:
    assert (known[0], known[-1], known[np.int64(1)]) == (1, 2, 2)
    assert isinstance(known[:1], TensorShape)
    assert known[::-1] == [2, 1]
    assert known[0:0] == []
    assert list(reversed(known)) == [2, 1]
    assert tuple(known) == (1, 2)
    assert 2 in known
    assert not isinstance(known, tuple)
    assert np.zeros(known).shape == (1, 2)  # type: ignore[call-overload]
    with pytest.raises(IndexError, match="tuple index out of range"):
        known[2]
    with pytest.raises(TypeError, match="tuple indices must be integers or slices, not str"):
        known["a"]  # type: ignore[call-overload]


def test_true_unless_unknown() -> None:
    assert TensorShape([])
    assert known
    assert not unknown


def test_unknown_rank() -> None:
    assert unknown.rank is None
    assert unknown.dims is None
    assert unknown[0] is None
    assert unknown[1:3] == [None, None]
    assert unknown[:2] == [None, None]
    for key in (slice(1, None), slice(-1, None), slice(None, -1)):
        assert unknown[key].rank is None
    mapping: dict[str, Callable[[], object]] = {
        "Steps are not yet handled": lambda: unknown[::2],
        "Cannot take the length of shape with unknown rank.": lambda: len(unknown),
        "Cannot iterate over a shape with unknown rank.": lambda: list(unknown),
        "as_list() is not defined on an unknown TensorShape.": unknown.as_list,
    }
    for text, ask in mapping.items():
        with pytest.raises(ValueError) as error:  # noqa: PT011  # the text is compared below
            ask()
        assert str(error.value) == text


def test_equality() -> None:
    for same in ([1, 2], (1, 2), TensorShape((1, 2)), np.array([1, 2])):
        assert operator.eq(known, same)
        assert not operator.ne(known, same)
    for other in (3, None, "a", [1], [1.5, 2], partly, unknown):
        assert operator.ne(known, other)
        assert not operator.eq(known, other)
    assert operator.eq((1, 2), known)
    assert TensorShape([3]) == 3
    assert unknown == TensorShape(None)
    assert TensorShape([None]) == TensorShape([None])
    assert hash(known) == hash((1, 2))
    assert {known: 1}[(1, 2)] == 1  # type: ignore[index]
    with pytest.raises(ValueError, match="Dimension -1 must be >= 0"):
        _ = known == [-1, 2]


def test_elements() -> None:
    counts = [TensorShape(dims).num_elements() for dims in ([], [3, 4], [0, 3], [None, 2], None)]
    assert counts == [1, 12, 0, None, None]
    assert known.is_fully_defined()
    assert not partly.is_fully_defined()
    known.assert_is_fully_defined()
    for shape in (partly, unknown):
        with pytest.raises(ValueError, match="is not fully defined"):
            shape.assert_is_fully_defined()


def test_compatible() -> None:
    for other in ([1, 2], [None, 2], None, known):
        assert known.is_compatible_with(other)
        known.assert_is_compatible_with(other)
    assert not known.is_compatible_with([1])
    with pytest.raises(ValueError) as error:  # noqa: PT011  # the text is compared below
        known.assert_is_compatible_with([1, 3])
    assert str(error.value) == "Shapes (1, 2) and [1, 3] are incompatible"


def test_merge() -> None:
    assert known.merge_with([None, 2]) == [1, 2]
    assert partly.merge_with([5, None]) == [5, 2]
    assert known.merge_with(None) == unknown.merge_with(known) == [1, 2]
    for other, text in (([2, 2], "(2, 2)"), ([2], "(2,)")):
        with pytest.raises(ValueError) as error:  # noqa: PT011  # the text is compared below
            known.merge_with(other)
        assert str(error.value) == f"Shapes (1, 2) and {text} are not compatible"


def test_concatenate() -> None:
    assert known.concatenate([3, None]) == known + [3, None] == [1, 2, 3, None]  # noqa: RUF005
    assert [3] + known == (3,) + known == 3 + known == [3, 1, 2]  # noqa: RUF005
    assert (known + None).rank is None
    assert unknown.concatenate([1]).rank is None


def test_rank() -> None:
    assert known.with_rank(2) == known
    assert unknown.with_rank(2) == [None, None]
    assert unknown.with_rank_at_least(3).rank is None
    assert known.with_rank_at_least(2) is known.with_rank_at_most(2) is known
    unknown.assert_has_rank(3)
    unknown.assert_same_rank([1])
    mapping: dict[str, Callable[[], object]] = {
        "Shape (1, 2) must have rank 3": lambda: known.with_rank(3),
        "Shape (1, 2) must have rank 1": lambda: known.assert_has_rank(1),
        "Shape (1, 2) must have rank at least 3": lambda: known.with_rank_at_least(3),
        "Shape (1, 2) must have rank at most 1": lambda: known.with_rank_at_most(1),
        "Shapes (1, 2) and (1,) must have the same rank": lambda: known.assert_same_rank([1]),
    }
    for text, ask in mapping.items():
        with pytest.raises(ValueError) as error:  # noqa: PT011  # the text is compared below
            ask()
        assert str(error.value) == text


def test_most_specific() -> None:
    assert known.most_specific_compatible_shape([1, 3]) == [1, None]
    assert partly.most_specific_compatible_shape([3, 2]) == [None, 2]
    assert known.most_specific_compatible_shape([1]).rank is None
    assert unknown.most_specific_compatible_shape([1]).rank is None
    assert known.most_specific_common_supertype([TensorShape([1, 3]), known]) == [1, None]
    assert known.most_specific_common_supertype([unknown]) == unknown
    assert known.most_specific_common_supertype([3]) is None
    assert known.is_subtype_of(partly)
    assert known.is_subtype_of(unknown)
    assert not partly.is_subtype_of(known)
    assert not unknown.is_subtype_of(known)
    assert not known.is_subtype_of([1, 2])


def test_copies() -> None:
    for shape in (known, partly, unknown):
        assert pickle.loads(pickle.dumps(shape)) == shape  # noqa: S301  # made here
        assert copy.deepcopy(shape) == shape


def test_as_shape_and_shape_of() -> None:
    assert as_shape(known) is known
    assert as_shape([1, 2]) == known == shape_of((1, 2))
    assert shape_of(None) == unknown
