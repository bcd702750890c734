"""The laws that every op obeys, checked on the op's own samples: `check_op(op)`, a plain function.

spec            inferred spec = real spec, for every dtype that the op takes
vjp, jvp        = central differences, in float64, and in complex128 where the op takes it
transpose       ⟨ct, J t⟩ = ⟨Jᵀ ct, t⟩
second_order    the gradient of the gradient = central differences of the gradient
structure       predicted structure = real structure, to third order
batch           the batch rule = the op row by row, for every choice of batched inputs
rows            the gradients for a stack of cotangents = those for one after the other; under an outer tape too
numbers         a Python number among the inputs = the same number as an array
views           inputs stay as they are, and results share their memory only where the op says so
record          attributes survive JSON, rules ask for what exists, the documentation says something
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, Final

import numpy as np

from teletape_engine.catalogue.attributes import plain
from teletape_engine.catalogue.binding import trace_spec
from teletape_engine.catalogue.op import Op, Sample
from teletape_engine.catalogue.rule import NoGradient
from teletape_engine.catalogue.slices import GradientKind, SlicesValue
from teletape_engine.checking.harness import Case, CpuExecutor, LawError, as_operand, dense, drawn, replaced, spec_of
from teletape_engine.derivatives.finite_differences import slope
from teletape_engine.derivatives.gradient import gradient
from teletape_engine.derivatives.query import GradientQuery
from teletape_engine.errors import InvalidArgumentError, NoGradientRegisteredError
from teletape_engine.recording.spec_recorder import SpecRecorder
from teletape_engine.recording.tape import Tape
from teletape_engine.spec import COMPLEX, DIFFERENTIABLE, DTYPES, Number, Spec

_STEP: Final = 1e-5  # of central differences: truncation and rounding errors are about 1e-10 each
_CLOSE: Final = {"rtol": 1e-6, "atol": 1e-7}
_EXACT: Final = {"rtol": 1e-12, "atol": 1e-13}


# -------------------------------------------------------------------------------------------------------------- laws
def _law_spec(op: Op, sample: Sample) -> None:
    for dtype in DTYPES.values():
        case = Case(op, sample, dtype)
        try:
            bound = case.bound()
        except InvalidArgumentError:
            if dtype is DTYPES["float64"]:
                raise
            continue  # an op says which dtypes it takes
        result = np.asarray(case.run())
        real = Spec.of(result.shape, result.dtype)
        fits = real.dtype is bound.spec.dtype and all(
            n <= most for n, most in zip(real.shape, bound.spec.shape, strict=True)
        )
        if real is not bound.spec and not (op.dynamic and fits):
            case.fail("spec", f"inferred {bound.spec!r}, real {real!r}")
        if op.expand is None and bound.price < bound.spec.nbytes:
            case.fail("spec", f"the price {bound.price} is below the result's {bound.spec.nbytes} bytes")


def _law_vjp(op: Op, sample: Sample) -> None:
    for case in _smooth(op, sample):
        ct = drawn(case.run(), seed=1)
        found = case.vjp(ct)
        for i in case.free():
            rule = op.rule(op.vjp, i) if op.expand is None else None
            if isinstance(rule, NoGradient):
                if found[i] is not None:
                    case.fail("vjp", f"input {op.input_name(i)} is declared {rule.value} and has a gradient")
                continue
            expected = _felt(case, i, slope(_paired(ct, case.run, case.inputs, i), case.inputs[i], step=_STEP))
            if found[i] is None:
                case.fail("vjp", f"input {op.input_name(i)} has no gradient")
            if found[i].dtype != case.inputs[i].dtype:
                case.fail("vjp", f"the gradient of {op.input_name(i)} is {found[i].dtype}")
            case.same("vjp", f"the gradient of {op.input_name(i)}", found[i], expected, **_CLOSE)


def _law_jvp(op: Op, sample: Sample) -> None:
    for case in _smooth(op, sample):
        for i, t, found in _tangents(case):
            up = case.run(replaced(case.inputs, i, case.inputs[i] + _STEP * t))
            down = case.run(replaced(case.inputs, i, case.inputs[i] - _STEP * t))
            case.same("jvp", f"the tangent from {op.input_name(i)}", found, (up - down) / (2 * _STEP), **_CLOSE)


def _law_transpose(op: Op, sample: Sample) -> None:
    for case in _smooth(op, sample):
        ct = drawn(case.run(), seed=3)
        back = case.vjp(ct)
        for i, t, found in _tangents(case):
            if (forward := _inner(ct, found)) != 0 or _inner(back[i], t) != 0:
                case.same("transpose", f"⟨Jᵀ ct, t⟩ of {op.input_name(i)}", _inner(back[i], t), forward, **_CLOSE)


def _law_second_order(op: Op, sample: Sample) -> None:
    for case in _smooth(op, sample):
        ct = drawn(case.run(), seed=4)
        sources = [*case.inputs, ct]
        free = [*case.free(), len(case.inputs)]
        for i in case.free():
            if _first_order(case, i, sources) is None:
                continue
            u = drawn(case.inputs[i], seed=5)
            found = _gradient_of_gradient(case, sources, i, u)
            for j in free:
                first = _paired(u, partial(_first_order, case, i), sources, j)
                expected = _felt(case, j, slope(first, sources[j], step=_STEP))
                name = "ct" if j == len(case.inputs) else op.input_name(j)
                got = np.zeros_like(expected) if found[j] is None else found[j]  # None: nothing hangs on it
                case.same("second_order", f"d(gradient of {op.input_name(i)})/d({name})", got, expected, **_CLOSE)


def _law_structure(op: Op, sample: Sample) -> None:
    case = Case(op, sample)
    if op.dynamic:
        return  # never predicted: the values decide
    for order in (1, 2, 3):
        real, predicted = _structure(CpuExecutor(), case, order), _structure(SpecRecorder(), case, order)
        if real != predicted:
            case.fail("structure", f"order {order}: predicted {predicted}, real {real}")


def _law_batch(op: Op, sample: Sample) -> None:
    if op.expand is not None or op.dynamic or not op.inputs:
        return
    case = Case(op, sample)
    rule = op.batch
    if rule is None:
        case.fail("batch", "no batch rule")
    arrays = [i for i, one in enumerate(case.inputs) if isinstance(one, np.ndarray)]
    for chosen in itertools.chain.from_iterable(itertools.combinations(arrays, n + 1) for n in range(len(arrays))):
        rows = [
            [
                np.asarray(_turned(case, i, k) * _shrunk(one, k)) if i in chosen else one
                for i, one in enumerate(case.inputs)
            ]
            for k in range(3)
        ]
        args = [np.stack([row[i] for row in rows]) if i in chosen else one for i, one in enumerate(case.inputs)]
        batched = [i in chosen for i in range(len(args))]
        with case.cpu.quiet():
            found = np.asarray(rule(op, args, batched, case.attrs))
        expected = np.stack([np.asarray(case.run(row)) for row in rows])
        what = f"with {', '.join(op.input_name(i) for i in chosen)} batched, the result"
        if found.dtype != expected.dtype:
            case.fail("batch", f"{what} is {found.dtype}, expected {expected.dtype}")
        case.same("batch", what, found, expected, **_EXACT)
        if all(isinstance(one, np.ndarray) for one in args):
            spec = trace_spec(
                lambda *given, batched=batched: rule(op, given, batched, case.attrs),
                [spec_of(one) for one in args],
                {},
            )
            if spec is not Spec.of(found.shape, found.dtype):
                case.fail("batch", f"{what} by specs is {spec!r}, real {Spec.of(found.shape, found.dtype)!r}")


def _law_rows(op: Op, sample: Sample) -> None:
    for dtype in DIFFERENTIABLE:
        case = Case(op, sample, dtype)
        try:
            result = case.bound().spec
        except InvalidArgumentError:
            continue
        if not case.free() or not op.registered or op.dynamic or not result.differentiable:
            continue
        cts = [drawn(case.run(), seed=7 + k) for k in range(3)]
        singly = [case.vjp(ct) for ct in cts]
        real = case.vjps(np.stack(cts))
        close = _CLOSE if dtype.itemsize >= 8 and dtype.kind == "f" else {"rtol": 3e-2, "atol": 3e-2}
        for k, kind in enumerate(("at once", "recorded", "by specs")):
            found = (
                real if k == 0 else case.vjps(np.stack(cts), recorded=True, context=SpecRecorder() if k == 2 else None)
            )
            for i in case.free():
                what = f"the gradients of {op.input_name(i)} {kind}"
                if (found[i] is None) != (singly[0][i] is None):
                    case.fail("rows", f"{what} are {'' if found[i] is None else 'not '}None, unlike one alone")
                if found[i] is None:
                    continue
                if found[i].spec is not real[i].spec or found[i].spec.dtype is not case.inputs[i].dtype:
                    case.fail("rows", f"{what} are {found[i].spec!r}")
                if k < 2:
                    case.same("rows", what, found[i].array, np.stack([one[i] for one in singly]), **close)


def _law_numbers(op: Op, sample: Sample) -> None:
    if not op.weak:
        return
    for dtype in (DTYPES[name] for name in ("float64", "float32", "float16", "bfloat16", "int32") if name in DTYPES):
        base = Case(op, sample, dtype)
        for i, one in enumerate(base.inputs):
            if isinstance(one, np.ndarray) and (one.dtype is not dtype or one.size == 0):
                continue
            number = one.reshape(-1)[0].item() if isinstance(one, np.ndarray) else one
            as_number, as_array = (
                Case(op, Sample(replaced(base.inputs, i, it), sample.attrs), dtype)
                for it in (number, np.asarray(number, dtype))
            )
            if len(as_number.inputs) > 1 and not as_number.free() and dtype in DIFFERENTIABLE:
                continue  # numbers alone: nothing says which dtype they take
            try:
                expected = np.asarray(as_array.run())
            except InvalidArgumentError:
                continue
            if _alone(op, as_number.inputs, i):
                continue
            found = np.asarray(as_number.run())
            if found.dtype != expected.dtype:
                as_number.fail("numbers", f"input {op.input_name(i)}: {found.dtype}, as an array {expected.dtype}")
            close = {"rtol": 1e-12 if dtype.itemsize == 8 else 1e-2, "atol": 1e-12 if dtype.itemsize == 8 else 1e-2}
            as_number.same("numbers", f"the result with {op.input_name(i)} a number", found, expected, **close)
            if expected.dtype in DIFFERENTIABLE:
                ct = drawn(expected, seed=6)
                pairs = zip(as_number.vjp(ct), as_array.vjp(ct), strict=True)
                for j, (a, b) in enumerate(pairs):
                    if j != i and (a is None) != (b is None):
                        as_number.fail("numbers", f"the gradient of {op.input_name(j)} is None only in one of two")
                    if j != i and a is not None:
                        if a.dtype != b.dtype:
                            as_number.fail("numbers", f"the gradient of {op.input_name(j)} is {a.dtype}, not {b.dtype}")
                        as_number.same("numbers", f"the gradient of {op.input_name(j)}", a, b, **close)


def _law_views(op: Op, sample: Sample) -> None:
    case = Case(op, sample)
    before = [np.array(one) for one in case.inputs]
    result = case.run()  # frozen inputs: a write would raise
    for one, kept in zip(case.inputs, before, strict=True):
        if not np.array_equal(one, kept, equal_nan=np.asarray(one).dtype.kind in "fc"):
            case.fail("views", "the forward writes into an input")
    shared = any(isinstance(one, np.ndarray) and np.shares_memory(one, np.asarray(result)) for one in case.inputs)
    if shared and not op.views and op.expand is None:
        case.fail("views", "the result shares memory with an input, and the op does not say views=True")


def _law_record(op: Op, sample: Sample) -> None:
    case = Case(op, sample)
    written = json.dumps({name: plain(value) for name, value in case.attrs.items()}, allow_nan=False)
    if op.attrs(json.loads(written)) is not case.attrs:
        case.fail("record", f"attributes change on their way through JSON: {written}")
    if not op.doc[:1].strip() or "." not in op.doc:
        case.fail("record", "the documentation says nothing")
    bound = case.bound()
    everything = {place: place for place in range(len(bound.specs) + 1)}
    for rules in (op.vjp, op.jvp):
        for i in range(len(bound.specs)):
            rule = op.rule(rules, i)
            if not isinstance(rule, NoGradient):
                rule.bind(bound, i, everything)  # TypeError: it needs what does not exist


LAWS: Final[dict[str, Callable[[Op, Sample], None]]] = {
    "spec": _law_spec,
    "vjp": _law_vjp,
    "jvp": _law_jvp,
    "transpose": _law_transpose,
    "second_order": _law_second_order,
    "structure": _law_structure,
    "batch": _law_batch,
    "rows": _law_rows,
    "numbers": _law_numbers,
    "views": _law_views,
    "record": _law_record,
}


def check_op(op: Op, sample: Sample | None = None, *, law: str | None = None) -> None:
    """Checks one law, or all, on one sample, or all of the op's.

    Raises:
        LawError: One is broken; the message names op, law, sample, input and the worst entry.
    """
    for one in op.samples() if sample is None else [sample]:
        for check in LAWS.values() if law is None else [LAWS[law]]:
            try:
                check(op, one)
            except LawError:
                raise
            except Exception as error:
                name = check.__name__.removeprefix("_law_")
                text = f"op {op.name!r} fails under the law {name!r} with {dict(one.attrs)}: {error!r}"
                raise LawError(text) from error


# -------------------------------------------------------------------------------------------------------- mathematics
def _smooth(op: Op, sample: Sample) -> Iterator[Case]:
    """The cases on which derivatives exist: float64, and complex128 where the op takes it."""
    for dtype in (DTYPES["float64"], DTYPES["complex128"]):
        case = Case(op, sample, dtype)
        if not case.free() or (dtype in COMPLEX and all(case.inputs[i].dtype is not dtype for i in case.free())):
            continue
        try:
            result = case.bound().spec
        except InvalidArgumentError:
            continue
        if not op.registered:
            _check_unregistered(case, result)
        elif result.dtype.itemsize >= 8 and result.differentiable and not op.dynamic:
            yield case


def _check_unregistered(case: Case, result: Spec) -> None:
    if not result.differentiable:
        return
    try:
        case.vjp(drawn(case.run(), seed=0))
    except NoGradientRegisteredError:
        return
    case.fail("vjp", "no gradient is registered, and asking for one raises nothing")


def _paired(ct: Any, run: Callable[[Sequence[Any]], Any], inputs: Sequence[Any], i: int) -> Callable[[Any], float]:
    """⟨ct, run(inputs)⟩ as a function of input i."""
    return lambda x: _inner(ct, run(replaced(inputs, i, x)))


def _first_order(case: Case, i: int, sources: Sequence[Any]) -> Any:
    """The gradient of input i, from (*inputs, ct)."""
    return case.vjp(sources[-1], sources[:-1])[i]


def _inner(a: Any, b: Any) -> float:
    """The real inner product."""
    return float(np.sum(np.conj(a) * b).real)


def _tangents(case: Case) -> Iterator[tuple[int, Any, Any]]:
    """(input, tangent, the result's tangent by the jvp rule) for each input that has one."""
    if case.op.expand is not None:
        return  # its parts have jvp rules
    bound = case.bound()
    with case.cpu.quiet():
        kept = [*case.inputs, np.asarray(case.run())]
        for i in case.free():
            rule = case.op.rule(case.op.jvp, i)
            if not isinstance(rule, NoGradient):
                t = _felt(case, i, drawn(case.inputs[i], seed=2))
                yield i, t, rule.bind(bound, i, {k: k for k in range(len(kept))})(t, kept)


def _gradient_of_gradient(case: Case, sources: Sequence[Any], i: int, u: Any) -> list[Any]:
    context, outer, inner = CpuExecutor(), Tape(), Tape()
    with case.cpu.quiet():
        given = [as_operand(context, one) for one in sources]
        arrays = [one for one in given if one.uid is not None]
        context.open(outer)
        context.watch(outer, arrays)
        context.open(inner)
        context.watch(inner, arrays)
        result = context.apply(case.op, given[:-1], case.attrs)
        (first,) = gradient(context, GradientQuery(inner, [result], [given[i]], output_gradients=[given[-1]]))
        seed = as_operand(context, u)
        if isinstance(first, SlicesValue):  # ⟨u, dense⟩ = ⟨u at the indices, values⟩
            first, seed = first.values, as_operand(context, u[first.indices.array])
        found = iter(gradient(context, GradientQuery(outer, [first], arrays, output_gradients=[seed])))
    return [dense(next(found)) if one.uid is not None else None for one in given]


def _structure(context: Any, case: Case, order: int) -> list[list[str]]:
    """Kinds and specs of the gradients of the result, of the sum of those, and so on."""
    with case.cpu.quiet():
        given = [as_operand(context, one) for one in case.inputs]
        arrays = [one for one in given if one.uid is not None]
        tapes = [Tape() for _ in range(order)]
        for tape in tapes:
            context.open(tape)
            context.watch(tape, arrays)
        targets = [context.apply(case.op, given, case.attrs)]
        found: list[list[str]] = []
        for tape in reversed(tapes):
            try:
                cts = gradient(context, GradientQuery(tape, targets, arrays))
            except NoGradientRegisteredError:
                return [*found, ["unregistered"]]
            found.append([_described(ct) for ct in cts])
            targets = [ct.values if isinstance(ct, SlicesValue) else ct for ct in cts if ct is not None]
    return found


def _described(ct: Any) -> str:
    if ct is None:
        return GradientKind.NONE
    if isinstance(ct, SlicesValue):
        return f"{GradientKind.SLICES.value} {ct.values.spec!r} {ct.indices.spec!r} {ct.dense!r}"
    return f"{GradientKind.DENSE.value} {ct.spec!r}"


def _felt(case: Case, i: int, x: Any) -> Any:
    """A slope or a tangent of input i as the op feels it: Hermitian where it reads a Hermitian matrix."""
    return (x + np.conj(np.swapaxes(x, -1, -2))) / 2 if i in case.op.symmetric else x


def _turned(case: Case, i: int, k: int) -> Any:
    """Another row of a batch: the elements of input i moved on by k, but for matrices that must stay definite."""
    return case.inputs[i] if i in case.op.symmetric else np.roll(case.inputs[i], k)


def _shrunk(one: Any, k: int) -> Any:
    """A factor near 1, so that the rows of a batch of scalars differ too; 1 for integers and bools."""
    return one.dtype.type(1 - 0.03 * k) if one.dtype in DIFFERENTIABLE else one.dtype.type(1)


def _alone(op: Op, inputs: Sequence[Number | Any], i: int) -> bool:
    """Whether no array stands beside the number in place i to say which dtype it takes."""
    return not any(
        isinstance(one, np.ndarray) and (op.variadic or op.like[j] == op.like[i]) for j, one in enumerate(inputs)
    )
