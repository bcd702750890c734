"""`tf.debugging`: checks that raise where they are called. Each reads its values: over HTTP a round trip.

Long because TensorFlow has this many of them.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from typing import Any, Final

import numpy as np

from teletape.core.calls import arguments as to
from teletape.core.calls.dispatch import call, convert_to_tensor, tensor_or_ragged
from teletape.core.sessions.current import current
from teletape.core.tensors import dtypes
from teletape.core.tensors.composite import Composite
from teletape.core.tensors.tensor import Tensor, TensorLike
from teletape.core.tensors.tensor_shape import as_shape
from teletape_engine.arrays import HostArray
from teletape_engine.catalogue.namespace import ops
from teletape_engine.catalogue.op import CATALOGUE
from teletape_engine.errors import InvalidArgumentError
from teletape_engine.spec import FLOATING, KERNEL_NAMES


# --------------------------------------------------------------------------------------------------------- finiteness
def check_numerics(tensor: to.TensorInput, message: str, name: str | None = None) -> Tensor:
    """Returns `tensor` if none of its numbers is NaN or infinite; the gradient passes through.

    Raises:
        InvalidArgumentError: A number is NaN or infinite, with `message` before the text; or the dtype is not floating.
    """
    checked = to.tensor(tensor)
    if checked.dtype.np not in FLOATING:
        takes = ", ".join(name for dtype, name in KERNEL_NAMES.items() if dtype in FLOATING)
        raise InvalidArgumentError(
            f"Value for attr 'T' of {checked.dtype.name} is not in the list of allowed values: {takes}"
        )
    if current().tracing:
        return call(ops.check_numerics, (checked,), message=message)
    if not bool(_all(call(ops.isfinite, (checked,)))):
        kinds = (("isinf", "Inf"), ("isnan", "NaN"))
        present = [kind for op, kind in kinds if not bool(_none(call(CATALOGUE[op], (checked,))))]
        raise InvalidArgumentError(f"{message} : Tensor had {' and '.join(present)} values [Op:CheckNumerics]")
    return call(ops.identity, (checked,))


def assert_all_finite(x: to.TensorInput, message: str, name: str | None = None) -> Tensor:
    """The same as `check_numerics`."""
    return check_numerics(x, message)


# ---------------------------------------------------------------------------------------------------------- conditions
def Assert(condition: to.TensorInput, data: Any, summarize: int | None = None, name: str | None = None) -> None:
    """Raises InvalidArgumentError with `data`, a list of tensors or values, unless `condition` is true."""
    if not _holds(convert_to_tensor(condition), f"assertion failed: {list(data)}"):
        count = 3 if summarize is None else summarize
        shown = "\n".join(_summary(convert_to_tensor(value), count) for value in data)
        raise InvalidArgumentError(f"Expected '{condition!s}' to be true. Summarized data: {shown}")


def _holds(condition: Tensor, text: str) -> bool:
    """Whether the condition is true. While a function is traced an op checks it at each run, with the error `text`."""
    if current().tracing:
        call(ops.ensure, (condition,), message=text)
        return True
    return bool(condition)


def _graph_text(message: str | None, condition: str, begin: str = "Condition ") -> str:
    """TensorFlow's text for an assertion in a graph, which has no values."""
    return "assertion failed: " + " ".join(f"[{part}]" for part in (message, begin + condition) if part)


def _all(tensor: Tensor) -> Tensor:
    return call(ops.reduce_all, (tensor,))


def _none(tensor: Tensor) -> Tensor:
    return call(ops.logical_not, (call(ops.reduce_any, (tensor,)),))


def _summary(tensor: Tensor, count: int) -> str:
    """Returns the first elements (all for a negative count), with dots if more follow."""
    if not tensor.shape.rank:
        return str(tensor.numpy()) if count else ""
    flat = tensor.numpy().reshape(-1)
    first = [str(element) for element in (flat if count < 0 else flat[:count])]
    return ", ".join(first if len(first) == flat.size else [*first, "..."])


# --------------------------------------------------------------------------------------------------------- comparisons
def _comparison(called: str, compare: Callable[[Any, Any], Any], sign: str) -> Callable[..., None]:
    """Returns an assertion about pairs of elements, with this name."""

    def function(
        x: to.TensorInput,
        y: to.TensorInput,
        message: str | None = None,
        summarize: int | None = None,
        name: str | None = None,
    ) -> None:
        _check_pairs(compare, sign, x, y, message, summarize)

    return _named(function, called, f"x {sign} y in every element", "elements of each")


def _named(function: Callable[..., None], name: str, condition: str, shown: str) -> Callable[..., None]:
    function.__name__ = function.__qualname__ = name
    function.__doc__ = (
        f"Raises InvalidArgumentError unless {condition}.\n\n"
        f"`message` begins the error's text; `summarize` is how many {shown} it shows."
    )
    return function


assert_equal = _comparison("assert_equal", operator.eq, "==")
assert_less = _comparison("assert_less", operator.lt, "<")
assert_less_equal = _comparison("assert_less_equal", operator.le, "<=")
assert_greater = _comparison("assert_greater", operator.gt, ">")
assert_greater_equal = _comparison("assert_greater_equal", operator.ge, ">=")


def assert_none_equal(
    x: to.TensorInput,
    y: to.TensorInput,
    summarize: int | None = None,
    message: str | None = None,
    name: str | None = None,
) -> None:
    """Raises InvalidArgumentError unless x != y in every element.

    `message` begins the error's text; `summarize` is how many elements of each it shows.
    """
    _check_pairs(operator.ne, "!=", x, y, message, summarize)


def _check_pairs(
    compare: Callable[[Any, Any], Any], sign: str, x: Any, y: Any, message: str | None, summarize: int | None
) -> None:
    first, second = _both(x, y)
    holds = compare(first, second)
    if not _holds(_all(holds), _graph_text(message, f"x {sign} y did not hold element-wise:")):
        first, second, holds = (_elements(each) for each in (first, second, holds))
        raise InvalidArgumentError(_pairs_text(first, second, holds.numpy(), sign, message, summarize or 3))


def _elements(x: Any) -> Any:
    return x.elements if isinstance(x, Composite) else x


def _both(x: Any, y: Any) -> tuple[Any, Any]:
    first = tensor_or_ragged(x, y.dtype if isinstance(y, TensorLike | Composite) else None)
    return first, tensor_or_ragged(y, first.dtype)


def _pairs_text(x: Tensor, y: Tensor, holds: HostArray, sign: str, message: str | None, count: int) -> str:
    lines = [message] if message else []
    lines.append(f"Condition x {sign} y did not hold.")
    a, b = np.asarray(x.numpy()), np.asarray(y.numpy())
    if np.ndim(holds) and a.shape == b.shape:
        indices = np.argwhere(~holds)
        n = min(count, len(indices))
        shown = tuple(indices[:n].T)
        lines += [f"Indices of first {n} different values:", str(indices[:n])]
        lines += ["Corresponding x values:", str(a[shown]), "Corresponding y values:", str(b[shown])]
    for label, array in (("x", a), ("y", b)):
        n = min(count, array.size)
        lines += [f"First {n} elements of {label}:", str(array.reshape(-1)[:n])]
    return "\n".join(lines)


# --------------------------------------------------------------------------------------------------------------- signs
def _sign_check(called: str, compare: Callable[[Any, Any], Any], sign: str, condition: str) -> Callable[..., None]:
    """Returns an assertion about the sign of elements, with this name."""

    def function(
        x: to.TensorInput, message: str | None = None, summarize: int | None = None, name: str | None = None
    ) -> None:
        _check_sign(compare, sign, x, message, summarize)

    return _named(function, called, condition, "elements")


assert_positive = _sign_check("assert_positive", operator.gt, ">", "every element is above zero")
assert_negative = _sign_check("assert_negative", operator.lt, "<", "every element is below zero")
assert_non_negative = _sign_check("assert_non_negative", operator.ge, ">=", "no element is below zero")
assert_non_positive = _sign_check("assert_non_positive", operator.le, "<=", "no element is above zero")


def _check_sign(
    compare: Callable[[Any, Any], Any], sign: str, x: Any, message: str | None, summarize: int | None
) -> None:
    tensor: Any = to.tensor(x)
    if not _holds(_all(compare(tensor, 0)), _graph_text(message, f"x {sign} 0 did not hold element-wise:")):
        tensor = _elements(tensor)
        shown = tensor.numpy()
        if tensor.ndim:
            shown = [str(element) for element in shown.reshape(-1)[: summarize or 3]]
        raise InvalidArgumentError(
            f"{_prefix(message)}\nCondition x {sign} 0 did not hold element-wise:\n"
            f"x (shape={tensor.shape} dtype={tensor.dtype.name}) = \n{shown}"
        )


# ----------------------------------------------------------------------------------------------------------- tolerance
_HALF_EPS = {"float16": 2.0**-10, "bfloat16": 2.0**-7}


def assert_near(
    x: to.TensorInput,
    y: to.TensorInput,
    rtol: Any = None,
    atol: Any = None,
    message: str | None = None,
    summarize: int | None = None,
    name: str | None = None,
) -> None:
    """Raises InvalidArgumentError unless |x - y| <= atol + rtol * |y| in every element.

    Args:
        x: Floating or complex.
        y: The same.
        rtol: By default ten times the dtype's epsilon.
        atol: The same.
        message: Begins the error's text.
        summarize: How many elements the error shows.
        name: Accepted, without effect.
    """
    first, second = _both(x, y)
    real = first.dtype.real_dtype
    eps = 10 * (_HALF_EPS[real.name] if real.name in _HALF_EPS else float(np.finfo(real.np).eps))
    relative, absolute = (eps if tolerance is None else tolerance for tolerance in (rtol, atol))
    near = _all(abs(first - second) <= absolute + relative * abs(second))
    if not _holds(
        near, _graph_text(message, f"x and y not equal to tolerance rtol = {relative}, atol = {absolute}", "")
    ):
        begin = f"{message}\n" if message else ""
        first, second = _elements(first), _elements(second)
        raise InvalidArgumentError(
            f"{begin}x and y not equal to tolerance rtol = {relative}, atol = {absolute}\n"
            f"x (shape={first.shape} dtype={first.dtype.name}) = \n{first.numpy()}\n"
            f"y (shape={second.shape} dtype={second.dtype.name}) = \n{second.numpy()}"
        )


# --------------------------------------------------------------------------------------------------------------- ranks
def assert_rank(x: to.TensorInput, rank: to.IntInput, message: str | None = None, name: str | None = None) -> None:
    """Raises ValueError unless `x` has `rank` axes, an int32 number.

    `message` begins the error's text.
    """
    expected = _rank(rank)
    _check_rank(x, lambda own: own == expected, str(expected), message)


def assert_rank_at_least(
    x: to.TensorInput, rank: to.IntInput, message: str | None = None, name: str | None = None
) -> None:
    """Raises ValueError unless `x` has `rank` axes or more.

    `message` begins the error's text.
    """
    expected = _rank(rank)
    _check_rank(x, lambda own: own >= expected, f"at least {expected}", message)


def assert_rank_in(
    x: to.TensorInput, ranks: Iterable[to.IntInput], message: str | None = None, name: str | None = None
) -> None:
    """Raises ValueError unless the number of axes of `x` is one of `ranks`, which are int32 numbers.

    `message` begins the error's text.
    """
    expected = tuple(_rank(rank) for rank in ranks)
    _check_rank(x, lambda own: own in expected, f"in {expected}", message)


def assert_scalar(tensor: to.TensorInput, message: str | None = None, name: str | None = None) -> None:
    """Raises ValueError unless `tensor` has no axes.

    `message` begins the error's text.
    """
    shape = convert_to_tensor(tensor).shape
    if shape.rank != 0:
        raise ValueError(f"{_prefix(message)}Expected scalar shape, saw shape: {shape}.")


def _rank(rank: Any) -> int:
    tensor = convert_to_tensor(rank)
    assert_type(tensor, dtypes.int32)
    if tensor.shape.rank != 0:
        raise ValueError("Rank must be a scalar.")
    return int(tensor)


def _check_rank(x: Any, holds: Callable[[int], bool], wanted: str, message: str | None) -> None:
    shape = as_shape(to.tensor(x).shape)
    if not holds(shape.rank or 0):
        raise ValueError(
            f"{_prefix(message)}Tensor  must have rank {wanted}.  Received rank {shape.rank}, shape {shape}"
        )


def _prefix(message: str | None) -> str:
    return f"{message}.  " if message else ""


# ---------------------------------------------------------------------------------------------------- dtypes and kinds
def assert_type(
    tensor: to.TensorInput, tf_type: to.DTypeInput, message: str | None = None, name: str | None = None
) -> None:
    """Raises TypeError unless the dtype is `tf_type`.

    `message` begins the error's text.
    """
    expected, own = dtypes.as_dtype(tf_type), to.tensor(tensor).dtype
    if own is not expected:
        raise TypeError(f"{_prefix(message)}tensor must be of type {expected!r}; got {own!r}")


def assert_integer(x: to.TensorInput, message: str | None = None, name: str | None = None) -> None:
    """Raises TypeError unless the dtype is an integer one.

    `message` begins the error's text.
    """
    dtype = convert_to_tensor(x).dtype
    if not dtype.is_integer:
        raise TypeError(f'{_prefix(message)}Expected "x" to be integer type.  Found: tensor of dtype {dtype}')


def assert_same_float_dtype(tensors: Any = None, dtype: to.DTypeInput | None = None) -> dtypes.DType:
    """Returns the dtype that all `tensors` have, which must be floating, and be `dtype` if that is passed.

    Entries that are None do not count; without any tensor and dtype it is float32.

    Raises:
        ValueError: Two dtypes, or one that is not floating.
    """
    common = None if dtype is None else dtypes.as_dtype(dtype)
    for tensor in tensors or ():
        if tensor is None:
            continue
        common = common or tensor.dtype
        if tensor.dtype is not common:
            raise ValueError(f"{tensor}, type={tensor.dtype}, must be of the same type ({common}).")
    common = common or dtypes.float32
    if not common.is_floating:
        raise ValueError(f"Expected floating point type, got {common}.")
    return common


def assert_proper_iterable(values: Any) -> None:
    """Raises TypeError unless `values` can be iterated over and is no tensor, array or string."""
    if isinstance(values, Tensor | Composite | np.ndarray | str | bytes):
        raise TypeError(f'Expected argument "values" to be a "proper" iterable.  Found: {type(values)}')
    if not hasattr(values, "__iter__"):
        raise TypeError(f'Expected argument "values" to be iterable.  Found: {type(values)}')


def is_numeric_tensor(tensor: Any) -> bool:
    """Whether `tensor` is a tensor, not a variable or an array, of numbers: not of bools or strings."""
    return isinstance(tensor, Tensor) and tensor.dtype.is_numeric


# -------------------------------------------------------------------------------------------------------------- shapes
_ANY_AXES: Final = ("*", Ellipsis)  #: As the first or last size: any number of axes.
_ANY_SIZE: Final = (None, ".")


def assert_shapes(
    shapes: Any,
    data: Any = None,
    summarize: int | None = None,
    message: str | None = None,
    name: str | None = None,
) -> None:
    """Raises ValueError unless every tensor has its shape, and sizes of one symbol are the same in all of them.

    Args:
        shapes: A dict, or pairs, of tensors and their shapes: a size is a number, a symbol, or None for any; `...` or
            "*" at the first or last place means any number of axes. A string has one symbol for each axis.
        data: Without effect.
        summarize: Without effect.
        message: Begins the error's text.
        name: Without effect.
    """
    begin = _prefix(message)
    sizes: dict[Any, tuple[int, str]] = {}
    for value, pattern in shapes.items() if isinstance(shapes, dict) else shapes:
        tensor = convert_to_tensor(value)
        shown = f"shape={tensor.shape} dtype={tensor.dtype.name}"
        if not hasattr(pattern, "__iter__"):
            raise ValueError(
                f"{begin}Tensor {shown}.  Specified shape must be an iterable.  An iterable has the attribute "
                f"`__iter__` or `__getitem__`.  Received specified shape: {pattern}"
            )
        symbols = list(pattern)
        leading = bool(symbols) and symbols[0] in _ANY_AXES
        trailing = bool(symbols) and symbols[-1] in _ANY_AXES
        symbols = [symbol for symbol in symbols if symbol not in _ANY_AXES]
        actual = [int(size) for size in as_shape(tensor.shape).as_list()]
        count = len(symbols)
        ranks = {0, 1} if count < 2 else {count}
        if len(actual) < count if leading or trailing else len(actual) not in ranks:
            expected = "in (0, 1)" if count < 2 else f"{'at least ' if leading or trailing else ''}{count}"
            raise ValueError(
                f"{begin}Tensor  must have rank {expected}.  Received rank {len(actual)}, shape {tensor.shape}"
            )
        for axis, (size, symbol) in enumerate(zip(actual[-count:] if leading else actual, symbols, strict=False)):
            at = len(actual) - count + axis if leading else axis
            wanted, by = (symbol, "explicitly") if isinstance(symbol, int) else sizes.get(symbol, (size, ""))
            if symbol not in _ANY_SIZE and wanted != size:
                raise ValueError(
                    f"{begin}Specified {by}.  Tensor {shown} dimension {at} must have size {wanted}.  Received size "
                    f"{size}, shape {tensor.shape}"
                )
            sizes.setdefault(symbol, (size, f"by tensor {shown} dimension {at}"))
