"""`tf.debugging`: checks that raise on their own line. Each reads what it checks, which over HTTP is a round trip."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from teletape.derivatives.check_gradients import check_gradients
from teletape.ops.arrays import identity
from teletape.ops.dispatch import call, convert_to_tensor
from teletape.sessions.current import current
from teletape.tensors import dtypes
from teletape.tensors.tensor import EagerTensor, Tensor, TensorLike
from teletape.tensors.tensor_shape import as_shape
from teletape_engine.arrays import HostArray
from teletape_engine.catalogue.op import CATALOGUE
from teletape_engine.errors import InvalidArgumentError
from teletape_engine.spec import FLOATING, KERNEL_NAMES

__all__ = [
    "Assert",
    "assert_all_finite",
    "assert_equal",
    "assert_greater",
    "assert_greater_equal",
    "assert_less",
    "assert_less_equal",
    "assert_near",
    "assert_negative",
    "assert_non_negative",
    "assert_non_positive",
    "assert_none_equal",
    "assert_positive",
    "assert_rank",
    "assert_rank_at_least",
    "assert_type",
    "check_gradients",
    "check_numerics",
]


def check_numerics(tensor: Any, message: str, name: str | None = None) -> EagerTensor:
    """`tensor`, if none of its numbers is NaN or infinite; the gradient passes through.

    Raises:
        InvalidArgumentError: One is: the text begins with `message`. Or the dtype is not floating.
    """
    given = convert_to_tensor(tensor)
    if given.dtype.np not in FLOATING:
        takes = ", ".join(told for dtype, told in KERNEL_NAMES.items() if dtype in FLOATING)
        raise InvalidArgumentError(
            f"Value for attr 'T' of {given.dtype.name} is not in the list of allowed values: {takes}"
        )
    if current().tracing:
        return call(CATALOGUE["check_numerics"], (given,), message=message)
    if not bool(_all(call(CATALOGUE["isfinite"], (given,)))):
        found = [
            told for op, told in (("isinf", "Inf"), ("isnan", "NaN")) if not bool(_none(call(CATALOGUE[op], (given,))))
        ]
        raise InvalidArgumentError(f"{message} : Tensor had {' and '.join(found)} values")
    checked: EagerTensor = identity(given)
    return checked


def assert_all_finite(x: Any, message: str, name: str | None = None) -> EagerTensor:
    """The same as `check_numerics`."""
    return check_numerics(x, message)


def _holds(condition: EagerTensor, failed: str) -> bool:
    """Whether it is true. While a function is traced that is checked when it runs, and then the error is `failed`."""
    if current().tracing:
        call(CATALOGUE["ensure"], (condition,), message=failed)
        return True
    return bool(condition)


def _failed(message: str | None, condition: str, begin: str = "Condition ") -> str:
    """TensorFlow's text for an assertion in a graph, without the values."""
    return "assertion failed: " + " ".join(f"[{one}]" for one in (message, begin + condition) if one)


def _all(tensor: EagerTensor) -> EagerTensor:
    return call(CATALOGUE["reduce_all"], (tensor,))


def _none(tensor: EagerTensor) -> EagerTensor:
    return call(CATALOGUE["logical_not"], (call(CATALOGUE["reduce_any"], (tensor,)),))


def Assert(condition: Any, data: Any, summarize: int | None = None, name: str | None = None) -> None:
    """Raises InvalidArgumentError with `data`, a list of tensors or values, unless `condition` is true."""
    if not _holds(convert_to_tensor(condition), f"assertion failed: {list(data)}"):
        shown = "\n".join(_summary(convert_to_tensor(one), 3 if summarize is None else summarize) for one in data)
        raise InvalidArgumentError(f"Expected '{condition!s}' to be true. Summarized data: {shown}")


def _summary(tensor: Tensor, count: int) -> str:
    """The first elements (all of them for a negative count) with commas between, and dots where more follow."""
    if not tensor.shape.rank:
        return str(tensor.numpy()) if count else ""
    flat = tensor.numpy().reshape(-1)
    first = [str(one) for one in (flat if count < 0 else flat[:count])]
    return ", ".join(first if len(first) == flat.size else [*first, "..."])


def _both(x: Any, y: Any) -> tuple[Any, Any]:
    first = convert_to_tensor(x, dtype_hint=y.dtype if isinstance(y, TensorLike) else None)
    return first, convert_to_tensor(y, dtype_hint=first.dtype)


def _comparison(python: Callable[[Any, Any], Any], sign: str, doc: str) -> Callable[..., None]:
    def check(
        x: Any, y: Any, message: str | None = None, summarize: int | None = None, name: str | None = None
    ) -> None:
        first, second = _both(x, y)
        holds = python(first, second)
        if not _holds(_all(holds), _failed(message, f"x {sign} y did not hold element-wise:")):
            raise InvalidArgumentError(_told(first, second, holds.numpy(), sign, message, summarize or 3))

    check.__doc__ = (
        f"{doc}\n\n    `message` begins the error's text; `summarize` is how many elements of each it shows.\n    "
    )
    return check


def _told(x: Tensor, y: Tensor, holds: HostArray, sign: str, message: str | None, count: int) -> str:
    lines = [message] if message else []
    lines.append(f"Condition x {sign} y did not hold.")
    a, b = np.asarray(x.numpy()), np.asarray(y.numpy())
    if np.ndim(holds) and a.shape == b.shape:
        places = np.argwhere(~holds)
        n = min(count, len(places))
        shown = tuple(places[:n].T)
        lines += [f"Indices of first {n} different values:", str(places[:n])]
        lines += ["Corresponding x values:", str(a[shown]), "Corresponding y values:", str(b[shown])]
    for told, array in (("x", a), ("y", b)):
        n = min(count, array.size)
        lines += [f"First {n} elements of {told}:", str(array.reshape(-1)[:n])]
    return "\n".join(lines)


assert_equal = _comparison(operator.eq, "==", "Raises InvalidArgumentError unless x == y in every element.")
assert_none_equal = _comparison(operator.ne, "!=", "Raises InvalidArgumentError unless x != y in every element.")
assert_less = _comparison(operator.lt, "<", "Raises InvalidArgumentError unless x < y in every element.")
assert_less_equal = _comparison(operator.le, "<=", "Raises InvalidArgumentError unless x <= y in every element.")
assert_greater = _comparison(operator.gt, ">", "Raises InvalidArgumentError unless x > y in every element.")
assert_greater_equal = _comparison(operator.ge, ">=", "Raises InvalidArgumentError unless x >= y in every element.")


def _sign(python: Callable[[Any, Any], Any], sign: str, doc: str) -> Callable[..., None]:
    def check(x: Any, message: str | None = None, summarize: int | None = None, name: str | None = None) -> None:
        given = convert_to_tensor(x)
        if not _holds(_all(python(given, 0)), _failed(message, f"x {sign} 0 did not hold element-wise:")):
            shown = (
                given.numpy() if not given.ndim else [str(one) for one in given.numpy().reshape(-1)[: summarize or 3]]
            )
            raise InvalidArgumentError(
                f"{message or ''}\nCondition x {sign} 0 did not hold element-wise:\n"
                f"x (shape={given.shape} dtype={given.dtype.name}) = \n{shown}"
            )

    check.__doc__ = f"{doc}\n\n    `message` begins the error's text; `summarize` is how many elements it shows.\n    "
    return check


assert_positive = _sign(operator.gt, ">", "Raises InvalidArgumentError unless every element is above zero.")
assert_negative = _sign(operator.lt, "<", "Raises InvalidArgumentError unless every element is below zero.")
assert_non_negative = _sign(operator.ge, ">=", "Raises InvalidArgumentError unless no element is below zero.")
assert_non_positive = _sign(operator.le, "<=", "Raises InvalidArgumentError unless no element is above zero.")


def assert_near(
    x: Any,
    y: Any,
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
    eps = (
        10 * float(np.finfo(real.np).eps)
        if real not in (dtypes.float16, dtypes.bfloat16)
        else 10 * _HALF_EPS[real.name]
    )
    relative, absolute = (eps if one is None else one for one in (rtol, atol))
    near = _all(abs(first - second) <= absolute + relative * abs(second))
    if not _holds(near, _failed(message, f"x and y not equal to tolerance rtol = {relative}, atol = {absolute}", "")):
        begin = f"{message}\n" if message else ""
        raise InvalidArgumentError(
            f"{begin}x and y not equal to tolerance rtol = {relative}, atol = {absolute}\n"
            f"x (shape={first.shape} dtype={first.dtype.name}) = \n{first.numpy()}\n"
            f"y (shape={second.shape} dtype={second.dtype.name}) = \n{second.numpy()}"
        )


_HALF_EPS = {"float16": 2.0**-10, "bfloat16": 2.0**-7}


def assert_rank(x: Any, rank: Any, message: str | None = None, name: str | None = None) -> None:
    """Raises ValueError unless `x` has `rank` axes."""
    shape, wanted = convert_to_tensor(x).shape, int(rank)
    if shape.rank != wanted:
        raise ValueError(f"{message or ''}Tensor  must have rank {wanted}.  Received rank {shape.rank}, shape {shape}")


def assert_rank_at_least(x: Any, rank: Any, message: str | None = None, name: str | None = None) -> None:
    """Raises ValueError unless `x` has `rank` axes or more."""
    shape, wanted = as_shape(convert_to_tensor(x).shape), int(rank)
    if (shape.rank or 0) < wanted:
        raise ValueError(
            f"{message or ''}Tensor  must have rank at least {wanted}.  Received rank {shape.rank}, shape {shape}"
        )


def assert_type(tensor: Any, tf_type: Any, message: str | None = None, name: str | None = None) -> None:
    """Raises TypeError unless the dtype is `tf_type`."""
    wanted, found = dtypes.as_dtype(tf_type), convert_to_tensor(tensor).dtype
    if found is not wanted:
        raise TypeError(f"{message or ''}tensor must be of type {wanted!r}; got {found!r}")
