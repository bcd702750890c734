"""The laws about inputs: layouts, empty, dtypes and halves. `laws` says what each of them demands."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

import numpy as np

from op_laws.harness import Case, cases, offered_dtypes, random_like, some, spec_of
from teletape_engine.catalogue.op import Op, Reach, Sample, Trait
from teletape_engine.errors import InvalidArgumentError, UnimplementedError
from teletape_engine.spec import DIFFERENTIABLE, DTYPES, DType, Spec, finfo

_EXACT: Final = {"rtol": 1e-12, "atol": 1e-13}


def layouts(op: Op, sample: Sample) -> None:
    """An array gives the same whatever its strides are: reversed, every second element, axes in another order."""
    case = Case(op, sample)
    if not any(isinstance(value, np.ndarray) and value.ndim for value in case.inputs):
        return
    expected = np.asarray(case.run())
    ct = random_like(expected, seed=8) if _has_gradient(case, expected) else None
    gradients = None if ct is None else case.vjp(ct)
    for name, arrange in some(LAYOUTS.items()):

        def arranged(value: Any, arrange: Callable[[Any], Any] = arrange) -> Any:
            with case.backend.quiet():  # on the stream on which the session reads it
                return arrange(case.put(value))

        inputs = tuple(arranged(value) if isinstance(value, np.ndarray) else value for value in case.inputs)
        case.check_close("layouts", f"the result of {name} arrays", case.run(inputs), expected, **_EXACT)
        if gradients is None:
            continue
        for index, gradient in enumerate(case.vjp(arranged(ct), inputs)):
            if gradient is not None:
                what = f"the gradient of {op.input_name(index)} with {name} arrays"
                case.check_close("layouts", what, gradient, gradients[index], **_EXACT)


def empty(op: Op, sample: Sample) -> None:
    """An axis of length 0 gives a result, and gradients, of the inferred shape; or the op refuses it in words."""
    for shortened in _with_an_empty_axis(sample):
        case = Case(op, shortened)
        try:
            inferred = case.spec()
            result = np.asarray(case.run())
        except InvalidArgumentError:
            continue
        real = Spec.of(result.shape, result.dtype)
        if real is not inferred and not op.dynamic:
            case.fail("empty", f"inferred {inferred!r}, real {real!r}")
        if _has_gradient(case, result):
            try:
                gradients = case.vjp(random_like(result, seed=9))
            except UnimplementedError:
                continue
            for index, gradient in enumerate(gradients):
                if gradient is not None and spec_of(gradient) is not spec_of(case.inputs[index]):
                    case.fail("empty", f"the gradient of {op.input_name(index)} is {spec_of(gradient)!r}")


def dtypes(op: Op, sample: Sample) -> None:
    """Every floating dtype gives what 64 bits give, but for its own rounding."""
    if op.dynamic or Trait.RANDOM in op.traits:
        return  # a rounding error may change the result's shape, or the next number
    for case in some(cases(op, sample, WIDER)):
        dtype = case.dtype.name
        exact = Case(op, sample, DTYPES[WIDER[dtype]])
        if all(spec_of(value).dtype is not case.dtype for value in case.inputs):
            return
        inputs = tuple(_as(value, case.dtype, exact.dtype) for value in case.inputs)
        try:
            result = np.asarray(case.run())
            expected = np.asarray(exact.run(inputs))
        except InvalidArgumentError:
            continue
        if result.dtype not in DIFFERENTIABLE or result.shape != expected.shape:
            continue  # comparisons: a tie after rounding is none before; bits: the shape depends on the dtype
        shifted = tuple(_shifted(value, exact.dtype, ROUNDING[dtype]) for value in inputs)
        bound = _rounding(expected, exact.run(shifted), ROUNDING[dtype])
        case.check_close("dtypes", f"the result in {dtype}", result, expected, rtol=0.0, atol=bound)
        if not _has_gradient(case, result):
            continue
        ct = random_like(result, seed=10)
        wide_ct = ct.astype(expected.dtype)
        gradients = zip(case.vjp(ct), exact.vjp(wide_ct, inputs), exact.vjp(wide_ct, shifted), strict=True)
        for index, (gradient, wider, moved) in enumerate(gradients):
            if gradient is not None and wider is not None:
                what = f"the gradient of {op.input_name(index)} in {dtype}"
                bound = _rounding(wider, moved, ROUNDING[dtype])
                case.check_close("dtypes", what, gradient, wider, rtol=0.0, atol=bound)


def halves(op: Op, sample: Sample) -> None:
    """Numbers of 16 bits give what they give in more bits, rounded: nothing overflows or cancels in between.

    Every number of an op of one array, and pairs over the whole range; gradients as in 32 bits, results of one array as
    in 64 bits.
    """
    arrays = len(sample.inputs)
    if op.reach is not Reach.ELEMENTS or Trait.RANDOM in op.traits or arrays not in (1, 2):
        return
    if not all(isinstance(value, np.ndarray) and value.dtype == np.float64 for value in sample.inputs):
        return
    for narrow in offered_dtypes(("float16", "bfloat16")):
        inputs = _all_numbers(narrow) if arrays == 1 else _pairs(narrow)
        case = Case(op, Sample(inputs, sample.attrs))
        wide, exact = [
            Case(op, Sample(tuple([value.astype(dtype) for value in inputs]), sample.attrs))
            for dtype in (np.float32, np.float64)
        ]
        try:
            result = np.asarray(case.run())
        except InvalidArgumentError:
            continue
        if result.dtype is not narrow or result.shape != inputs[0].shape:
            continue
        if arrays == 1:
            _check_rounded(case, "the result", result, exact.run())
        if not _has_gradient(case, result):
            continue
        gradients = zip(case.vjp(np.ones_like(result)), wide.vjp(np.ones(result.shape, np.float32)), strict=True)
        for index, (gradient, expected) in enumerate(gradients):
            if gradient is not None:
                _check_rounded(case, f"the gradient of {op.input_name(index)}", gradient, expected)


# ------------------------------------------------------------------------------------------------------------- details
def _all_numbers(narrow: DType) -> tuple[Any]:
    """Every number of a 16-bit dtype but the largest ones, infinities and NaN."""
    numbers = np.arange(1 << 16, dtype=np.uint16).view(narrow)
    with np.errstate(all="ignore"):
        small = np.abs(numbers.astype(np.float64)) < float(finfo(narrow).max) / 2
    return (numbers[small],)


def _pairs(narrow: DType) -> tuple[Any, Any]:
    """Pairs of numbers of every size, signs and zeros among them."""
    (numbers,) = _all_numbers(narrow)
    left, right = np.meshgrid(numbers[::797], numbers[::811], indexing="ij")
    return left.ravel(), right.ravel()


def _check_rounded(case: Case, what: str, actual: Any, expected: Any) -> None:
    what = f"{what} in {actual.dtype.name}"
    with np.errstate(all="ignore"):
        expected = np.asarray(expected).astype(actual.dtype)
    largest = float(finfo(actual.dtype).max)  # what is nearly as large may round to infinity
    actual, expected = [np.clip(np.asarray(x).astype(np.float64), -largest, largest) for x in (actual, expected)]
    case.check_close("halves", what, actual, expected, rtol=1 / 32, atol=2.0**-19)


def _reversed(x: Any) -> Any:
    return np.flip(np.flip(x).copy())


def _spread(x: Any) -> Any:
    """Every second element of an array that is twice as long in each axis."""
    wide = x
    for axis in range(x.ndim):
        wide = np.repeat(wide, 2, axis)
    return wide[tuple(slice(None, None, 2) for _ in x.shape)]


def _transposed(x: Any) -> Any:
    return x.T.copy().T


LAYOUTS: Final = {"reversed": _reversed, "spread": _spread, "transposed": _transposed}
WIDER: Final = {"float16": "float64", "bfloat16": "float64", "float32": "float64", "complex64": "complex128"}
#: The relative distance of neighbouring numbers.
ROUNDING: Final = {"float16": 2**-10, "bfloat16": 2**-7, "float32": 2**-23, "complex64": 2**-23}
#: How many rounding errors may add up in an op and its gradient on arrays as small as samples are.
ROUNDINGS: Final = 16


def _with_an_empty_axis(sample: Sample) -> Iterator[Sample]:
    """The sample with all axes of one length empty, for each length."""
    arrays = [value for value in sample.inputs if isinstance(value, np.ndarray)]
    for length in sorted({length for array in arrays for length in array.shape}):
        yield Sample(
            tuple(
                value[tuple(slice(0 if n == length else n) for n in value.shape)]
                if isinstance(value, np.ndarray)
                else value
                for value in sample.inputs
            ),
            sample.attrs,
        )


def _has_gradient(case: Case, result: Any) -> bool:
    op = case.op
    return bool(case.differentiable()) and op.registered and not op.dynamic and result.dtype in DIFFERENTIABLE


def _as(value: Any, narrow: DType, wide: DType) -> Any:
    return value.astype(wide) if isinstance(value, np.ndarray | np.generic) and value.dtype == narrow else value


def _shifted(value: Any, wide: DType, rounding: float) -> Any:
    """An input with its elements moved up and down in turn by a rounding error."""
    if not isinstance(value, np.ndarray) or value.dtype != wide:
        return value
    signs = 1 - 2 * (np.arange(value.size) % 2).reshape(value.shape)
    return np.asarray(value * (1 + rounding * signs))


def _rounding(exact: Any, shifted: Any, rounding: float) -> float:
    """What rounding may change: some errors of the largest element, and of the inputs as far as they are passed on."""
    exact, shifted = np.asarray(exact), np.asarray(shifted)
    with np.errstate(all="ignore"):
        passed_on = np.abs(shifted - exact)
        scale = np.abs(exact)
    finite = np.isfinite(passed_on) & np.isfinite(scale)
    largest, error = float(scale[finite].max(initial=1)), float(passed_on[finite].max(initial=0))
    return ROUNDINGS * (rounding * largest + error)
