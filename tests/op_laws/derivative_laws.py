"""The laws about derivatives: vjp, jvp, transpose, second_order and rows. `laws` says what each of them demands."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final

import numpy as np

from op_laws.harness import Case, as_operand, cases, random_like, some, with_input
from teletape_engine.catalogue.op import Op, Sample, Trait
from teletape_engine.catalogue.rule import NoGradient
from teletape_engine.catalogue.slices import SlicesValue
from teletape_engine.derivatives.finite_differences import slope, slopes
from teletape_engine.derivatives.gradient import gradient
from teletape_engine.derivatives.query import GradientQuery
from teletape_engine.errors import InvalidArgumentError, NoGradientRegisteredError
from teletape_engine.recording.spec_recorder import SpecRecorder
from teletape_engine.recording.tape import Tape
from teletape_engine.spec import COMPLEX, DIFFERENTIABLE, DTYPES, Spec

_STEP: Final = 1e-5  # of central differences: truncation and rounding errors are about 1e-10 each
_CLOSE: Final = {"rtol": 1e-6, "atol": 1e-7}
_DIRECTIONS: Final = (11, 12)  # the seeds


# ---------------------------------------------------------------------------------------------------------------- laws
def vjp(op: Op, sample: Sample) -> None:
    """Gradients are equal to central differences, and exist exactly for the inputs that the rules name."""
    for case in _smooth_cases(op, sample):
        ct = random_like(case.run(), seed=1)
        gradients = case.vjp(ct)
        product = partial(_product_with_result, case, ct)
        for index in case.differentiable():
            name, result = op.input_name(index), gradients[index]
            rule = op.rule(op.vjp, index) if op.expand is None else None
            if isinstance(rule, NoGradient):
                if result is not None:
                    case.fail("vjp", f"input {name} is declared {rule.value} and has a gradient")
                continue
            if result is None:
                case.fail("vjp", f"input {name} has no gradient")
            if result.dtype != case.inputs[index].dtype:
                case.fail("vjp", f"the gradient of {name} is {result.dtype}")
            function = _of_one(product, case.inputs, index)
            if _agree(function, case, index, case.inputs[index], [result]):
                continue
            expected = _symmetrized(case, index, slope(function, case.inputs[index], step=_STEP))
            case.check_close("vjp", f"the gradient of {name}", result, expected, **_CLOSE)


def jvp(op: Op, sample: Sample) -> None:
    """Tangents are equal to central differences."""
    for case in _smooth_cases(op, sample):
        for index, t, tangent in _tangents(case):
            up = case.run(with_input(case.inputs, index, case.inputs[index] + _STEP * t))
            down = case.run(with_input(case.inputs, index, case.inputs[index] - _STEP * t))
            expected = (up - down) / (2 * _STEP)
            case.check_close("jvp", f"the tangent from {op.input_name(index)}", tangent, expected, **_CLOSE)


def transpose(op: Op, sample: Sample) -> None:
    """The vjp is the transpose of the jvp."""
    for case in _smooth_cases(op, sample, phases=True):
        ct = random_like(case.run(), seed=3)
        gradients = case.vjp(ct)
        for index, t, tangent in _tangents(case):
            forward, backward = _inner_product(ct, tangent), _inner_product(gradients[index], t)
            if forward != 0 or backward != 0:
                case.check_close("transpose", f"⟨Jᵀ ct, t⟩ of {op.input_name(index)}", backward, forward, **_CLOSE)


def second_order(op: Op, sample: Sample) -> None:
    """Gradients of gradients are equal to central differences of gradients."""
    for case in _smooth_cases(op, sample):
        ct = random_like(case.run(), seed=4)
        values = [*case.inputs, ct]
        existing = case.vjp(ct)
        weights, gradients = {}, {}
        for first in case.differentiable():
            if existing[first] is None:
                continue
            weights[first] = random_like(case.inputs[first], seed=5)
            try:
                gradients[first] = _gradient_of_gradient(case, values, first, weights[first])
            except NoGradientRegisteredError:
                if Trait.FIRST_ORDER not in op.traits:
                    raise
        for second in (*case.differentiable(), len(case.inputs)):
            if second < len(case.inputs) and op.expand is None and isinstance(op.rule(op.vjp, second), NoGradient):
                continue  # declared to have no derivative, although the result depends on it
            products = partial(_products_with_gradients, case, {first: weights[first] for first in gradients})
            function = _of_one(products, values, second)
            # None: nothing depends on it.
            actuals = [
                np.zeros_like(values[second]) if each[second] is None else each[second] for each in gradients.values()
            ]
            if _agree(function, case, second, values[second], actuals):
                continue
            differences = slopes(function, values[second], len(gradients), step=_STEP)
            for first, actual, difference in zip(gradients, actuals, differences, strict=True):
                expected = _symmetrized(case, second, difference)
                name = "ct" if second == len(case.inputs) else op.input_name(second)
                what = f"d(gradient of {op.input_name(first)})/d({name})"
                case.check_close("second_order", what, actual, expected, **_CLOSE)


def rows(op: Op, sample: Sample) -> None:
    """The gradients for a stack of cotangents are those for each cotangent, also recorded and by specs alone."""
    for case in some(cases(op, sample, [name for name in DTYPES if DTYPES[name] in DIFFERENTIABLE])):
        dtype, result = case.dtype, case.spec()
        if not case.differentiable() or not op.registered or op.dynamic or not result.differentiable:
            continue
        cts = [random_like(case.run(), seed=7 + row) for row in range(3)]
        singly = [case.vjp(ct) for ct in cts]
        computed = case.vjps(np.stack(cts))
        rough = 1e-1 if dtype is DTYPES.get("bfloat16") else 3e-2
        tolerance = _CLOSE if dtype.itemsize >= 8 and dtype.kind == "f" else {"rtol": rough, "atol": rough}
        ways = {
            "at once": computed,
            "recorded": case.vjps(np.stack(cts), recorded=True),
            "by specs": case.vjps(np.stack(cts), recorded=True, context=SpecRecorder()),
        }
        for way, stacks in ways.items():
            for index in case.differentiable():
                what, stack = f"the gradients of {op.input_name(index)} {way}", stacks[index]
                if (stack is None) != (singly[0][index] is None):
                    case.fail("rows", f"{what} are {'' if stack is None else 'not '}None, unlike a single one")
                if stack is None:
                    continue
                if stack.spec is not computed[index].spec or stack.spec.dtype is not case.inputs[index].dtype:
                    case.fail("rows", f"{what} are {stack.spec!r}")
                if way != "by specs":
                    expected = np.stack([gradients[index] for gradients in singly])
                    case.check_close("rows", what, case.backend.get(stack.array), expected, **tolerance)


# --------------------------------------------------------------------------------------------------------- mathematics
def _smooth_cases(op: Op, sample: Sample, *, phases: bool = False) -> Iterator[Case]:
    """The cases in which derivatives exist: float64, and complex128 if the op takes it.

    Vectors with free phases (Trait.PHASES) have differences that depend on how the forward chooses the phases: without
    `phases` complex results of those ops are left out. tests/engine/catalogue/test_traits.py compares what no phase
    changes.
    """
    for dtype in (DTYPES["float64"], DTYPES["complex128"]):
        case = Case(op, sample, dtype)
        inputs = case.differentiable()
        if Trait.IMPLICIT in op.traits:  # differences of what its steps give are not its derivative
            continue
        if not inputs or (dtype in COMPLEX and all(case.inputs[index].dtype is not dtype for index in inputs)):
            continue
        try:
            result = case.spec()
        except InvalidArgumentError:
            continue
        if Trait.PHASES in op.traits and result.dtype in COMPLEX and not phases:
            continue
        if not op.registered:
            _check_unregistered(case, result)
        elif result.dtype.itemsize >= 8 and result.differentiable and not op.dynamic:
            yield case


def _check_unregistered(case: Case, result: Spec) -> None:
    if not result.differentiable:
        return
    try:
        case.vjp(random_like(case.run(), seed=0))
    except NoGradientRegisteredError:
        return
    case.fail("vjp", "no gradient is registered, and computing one raises nothing")


def _of_one(f: Callable[[Sequence[Any]], Any], values: Sequence[Any], index: int) -> Callable[[Any], Any]:
    """A function of values as a function of one of them."""
    return lambda x: f(with_input(values, index, x))


def _agree(
    f: Callable[[Any], float | Sequence[float]], case: Case, index: int, x: Any, gradients: Sequence[Any]
) -> bool:
    """Whether the gradients of real functions at x agree with differences along random directions.

    Two directions take four calls of f, a difference for each entry two or four times as many as there are entries. A
    wrong entry changes the slope along a random direction; if one differs, the caller looks at each entry.

    Args:
        f: The functions; of one its number alone.
        case: Its op may read the Hermitian part of the input alone.
        index: The number of the input that x is; it may be the cotangent's.
        x: The point.
        gradients: Of each function.
    """
    if x.size <= len(_DIRECTIONS) or any(each.shape != x.shape for each in gradients):
        return False
    for seed in _DIRECTIONS:
        direction = random_like(x, seed=seed)
        step = _STEP * _symmetrized(case, index, direction)
        changes = np.atleast_1d(np.asarray(f(x + step)) - np.asarray(f(x - step))) / (2 * _STEP)
        for derivative, change in zip(gradients, changes, strict=True):
            bound = _CLOSE["rtol"] * float(np.sum(np.abs(derivative * direction))) + _CLOSE["atol"]
            if not abs(_inner_product(derivative, direction) - change) <= bound:  # also if it is no number
                return False
    return True


def _product_with_result(case: Case, ct: Any, inputs: Sequence[Any]) -> float:
    """⟨ct, result⟩."""
    return _inner_product(ct, case.run(inputs))


def _products_with_gradients(case: Case, weights: Mapping[int, Any], values: Sequence[Any]) -> list[float]:
    """⟨weights, gradient⟩ for each input that has weights, from (*inputs, ct)."""
    gradients = case.vjp(values[-1], values[:-1])
    return [_inner_product(each, gradients[index]) for index, each in weights.items()]


def _inner_product(a: Any, b: Any) -> float:
    """The real inner product."""
    return float(np.sum(np.conj(a) * b).real)


def _tangents(case: Case) -> Iterator[tuple[int, Any, Any]]:
    """(input, its tangent, the result's tangent by the jvp rule) for each input that has a jvp rule."""
    if case.op.expand is not None:
        return  # its parts have jvp rules
    bound = case.bound()
    with case.backend.quiet():
        values = [case.put(value) for value in (*case.inputs, *map(np.asarray, case.results()))]
        everything = {position: position for position in range(len(values))}
        for index in case.differentiable():
            rule = case.op.rule(case.op.jvp, index)
            if not isinstance(rule, NoGradient):
                t = _symmetrized(case, index, random_like(case.inputs[index], seed=2))
                tangent = rule.bind(bound, index, everything)(case.put(t), values)
                if isinstance(tangent, tuple):
                    if [each is not None for each in tangent] != [spec.differentiable for spec in bound.outputs]:
                        case.fail("jvp", f"the tangents from {case.op.input_name(index)} are not those of the results")
                    recorder = case.executor()
                    parts = [None if each is None else as_operand(recorder, each) for each in tangent]
                    tangent = case.joined(recorder, parts).array
                yield index, t, case.backend.get(tangent)


def _gradient_of_gradient(case: Case, values: Sequence[Any], index: int, weights: Any) -> list[Any]:
    """The gradients of ⟨weights, gradient of an input⟩ by all of (*inputs, ct)."""
    recorder, outer, inner = case.executor(), Tape(), Tape()
    with case.backend.quiet():
        operands = [as_operand(recorder, value) for value in values]
        arrays = [operand for operand in operands if operand.uid is not None]
        for tape in (outer, inner):
            recorder.context.open(tape)
            recorder.context.watch(tape, arrays)
        result = case.applied(recorder, operands[:-1])
        query = GradientQuery(inner, [result], [operands[index]], output_gradients=[operands[-1]])
        (first,) = gradient(recorder, query)
        output_gradient = as_operand(recorder, weights)
        if isinstance(first, SlicesValue):  # ⟨weights, dense⟩ = ⟨weights at the indices, values⟩
            first, output_gradient = first.values, as_operand(recorder, weights[case.backend.get(first.indices.array)])
        query = GradientQuery(outer, [first], arrays, output_gradients=[output_gradient])
        gradients = iter([case.dense(each) for each in gradient(recorder, query)])
    return [next(gradients) if operand.uid is not None else None for operand in operands]


def _symmetrized(case: Case, index: int, x: Any) -> Any:
    """A difference or tangent of an input; its Hermitian part if the op reads a Hermitian matrix."""
    return (x + np.conj(np.swapaxes(x, -1, -2))) / 2 if index in case.op.symmetric else x
