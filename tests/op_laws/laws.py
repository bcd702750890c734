"""The laws that every op obeys, checked on the op's own samples by `check_op`.

spec            the inferred spec is the real spec, for every dtype that the op takes
vjp, jvp        are equal to central differences, in float64, and in complex128 if the op takes it
transpose       ⟨ct, J t⟩ = ⟨Jᵀ ct, t⟩
second_order    the gradient of the gradient is equal to central differences of the gradient
structure       the predicted structure is the real structure, to third order
batch           the batch rule gives the same as the op row by row, for every choice of batched inputs
rows            the gradients for a stack of cotangents are those for each cotangent; under an outer tape too
numbers         a Python number among the inputs gives the same as that number as an array
layouts         strides do not matter: reversed, spread and transposed arrays give the same results and gradients
empty           an axis of length 0 gives a result and gradients of the inferred shapes, or is refused in words
dtypes          16 and 32 bits give what 64 bits give, but for their rounding: results and gradients
halves          an elementwise op gives for numbers of 16 bits what more bits give, rounded: results and gradients
views           inputs do not change, and results share their memory only if the op declares views
record          attributes survive JSON, rules need only what exists, there is documentation
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import numpy as np

from op_laws import derivative_laws, harness, input_laws
from op_laws.harness import (
    Case,
    LawError,
    as_operand,
    offered_dtypes,
    random_like,
    some,
    spec_of,
    with_input,
)
from teletape_engine.catalogue.attributes import plain
from teletape_engine.catalogue.binding import trace_spec
from teletape_engine.catalogue.op import Op, Sample
from teletape_engine.catalogue.rule import NoGradient
from teletape_engine.catalogue.slices import GradientKind, SlicesValue
from teletape_engine.derivatives.gradient import gradient
from teletape_engine.derivatives.query import GradientQuery
from teletape_engine.errors import InvalidArgumentError, NoGradientRegisteredError
from teletape_engine.recording.spec_recorder import SpecRecorder
from teletape_engine.recording.tape import Tape
from teletape_engine.spec import DIFFERENTIABLE, DTYPES, Number, Spec

_FEW: Final = 5  #: Inputs of an op that are batched in every choice: 31 of them.
_EXACT: Final = {"rtol": 1e-12, "atol": 1e-13}


def check_op(op: Op, sample: Sample | None = None, *, law: str | None = None, in_turn: bool = False) -> None:
    """Checks an op by one law, or by all of them, on one sample, or on all of its samples.

    Args:
        op: The op.
        sample: The one sample; None: all of the op's.
        law: The one law; None: all of LAWS.
        in_turn: Whether the laws of IN_TURN look at all of their choices for the first sample alone, and for each
            further one at one of them, which is another for each sample.

    Raises:
        LawError: The op breaks a law; the message names op, law, sample, input and the worst entry.
    """
    samples = op.samples() if sample is None else [sample]
    for name, check in LAWS.items() if law is None else [(law, LAWS[law])]:
        for turn, example in enumerate(_apart(op, samples) if name in _OF_ATTRIBUTES else samples):
            try:
                with harness.in_turn(turn if in_turn else 0):
                    for result in _results(op, name, example):
                        with harness.of_result(result):
                            check(op, example)
            except LawError:
                raise
            except Exception as error:
                text = f"op {op.name!r} fails under the law {name!r} with {dict(example.attrs)}: {error!r}"
                raise LawError(text) from error


# ---------------------------------------------------------------------------------------------------------------- laws
def spec(op: Op, sample: Sample) -> None:
    """The inferred spec is the real one, and the price covers the result."""
    first, *others = offered_dtypes(sorted(DTYPES, key=lambda name: name != "float64"))
    for dtype in (first, *some(others)):
        case = Case(op, sample, dtype)
        try:
            bound = case.bound()
        except InvalidArgumentError:
            if dtype is DTYPES["float64"]:
                raise
            continue  # the op does not take this dtype
        for result, inferred in zip(map(np.asarray, case.results()), bound.outputs, strict=True):
            real = Spec.of(result.shape, result.dtype)
            fits = real.dtype is inferred.dtype and all(
                length <= bound_length for length, bound_length in zip(real.shape, inferred.shape, strict=True)
            )
            if real is not inferred and not (op.dynamic and fits):
                case.fail("spec", f"inferred {inferred!r}, real {real!r}")
        nbytes = sum([inferred.nbytes for inferred in bound.outputs])
        if op.expand is None and bound.price < nbytes:
            case.fail("spec", f"the price {bound.price} is below the {nbytes} bytes of the results")


def structure(op: Op, sample: Sample) -> None:
    """A recorder of specs predicts kinds and specs of the first three orders of gradients."""
    if op.dynamic:
        return  # never predicted: the values decide
    case = Case(op, sample)
    for order in (1, 2, 3):
        real, predicted = _structure(case.executor(), case, order), _structure(SpecRecorder(), case, order)
        if real != predicted:
            case.fail("structure", f"order {order}: predicted {predicted}, real {real}")


def batch(op: Op, sample: Sample) -> None:
    """The batch rule gives what the op gives row by row."""
    if op.expand is not None or op.dynamic or not op.inputs:
        return
    case = Case(op, sample)
    rule = op.batch
    if rule is None:
        case.fail("batch", "no batch rule")
    arrays = [index for index, value in enumerate(case.inputs) if isinstance(value, np.ndarray)]
    for chosen in some(_choices(arrays)):
        rows = [
            [_row(case, index, row) if index in chosen else value for index, value in enumerate(case.inputs)]
            for row in range(3)
        ]
        args = [
            np.stack([row[index] for row in rows]) if index in chosen else value
            for index, value in enumerate(case.inputs)
        ]
        batched = [index in chosen for index in range(len(args))]
        with case.backend.quiet():
            computed = rule(op, [case.put(arg) for arg in args], batched, case.attrs)
            actuals = [case.backend.get(each) for each in (computed if isinstance(computed, tuple) else (computed,))]
        what = f"with {', '.join(op.input_name(index) for index in chosen)} batched, the result"
        for actual, *by_row in zip(actuals, *[case.results(row) for row in rows], strict=True):
            expected = np.stack([np.asarray(each) for each in by_row])
            if actual.dtype != expected.dtype:
                case.fail("batch", f"{what} is {actual.dtype}, expected {expected.dtype}")
            case.check_close("batch", what, actual, expected, **_EXACT)
        if all(isinstance(arg, np.ndarray) for arg in args):
            traced = trace_spec(
                lambda *operands, batched=batched: rule(op, operands, batched, case.attrs),
                [spec_of(arg) for arg in args],
                {},
            )
            real = tuple([Spec.of(actual.shape, actual.dtype) for actual in actuals])
            if (traced if isinstance(traced, tuple) else (traced,)) != real:
                case.fail("batch", f"{what} by specs is {traced!r}, real {real!r}")


def _choices(arrays: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """Which inputs are batched together: every choice of few inputs; of many one, two, all, and all but one."""
    most = len(arrays)
    counts = range(1, most + 1) if most <= _FEW else (1, 2, most - 1, most)
    return itertools.chain.from_iterable(itertools.combinations(arrays, count) for count in counts)


def numbers(op: Op, sample: Sample) -> None:
    """A Python number among the inputs gives the same as that number as an array."""
    if not op.weak:
        return
    for dtype in offered_dtypes(("float64", "float32", "float16", "bfloat16", "int32")):
        base = Case(op, sample, dtype)
        for index, value in enumerate(base.inputs):
            if isinstance(value, np.ndarray) and (value.dtype is not dtype or value.size == 0):
                continue
            number = value.reshape(-1)[0].item() if isinstance(value, np.ndarray) else value
            _check_number(op, sample, base, index, number)


def _check_number(op: Op, sample: Sample, base: Case, index: int, number: Any) -> None:
    """Compares an op with `number` as input `index` to the op with an array there: result and gradients."""
    dtype = base.dtype
    as_number = Case(op, Sample(with_input(base.inputs, index, number), sample.attrs), dtype)
    as_array = Case(op, Sample(with_input(base.inputs, index, np.asarray(number, dtype)), sample.attrs), dtype)
    if len(as_number.inputs) > 1 and not as_number.differentiable() and dtype in DIFFERENTIABLE:
        return  # only numbers: no array has the dtype that they take
    try:
        expected = np.asarray(as_array.run())
    except InvalidArgumentError:
        return
    if _without_array(op, as_number.inputs, index):
        return
    actual = np.asarray(as_number.run())
    if actual.dtype != expected.dtype:
        as_number.fail("numbers", f"input {op.input_name(index)}: {actual.dtype}, as an array {expected.dtype}")
    tolerance = 1e-12 if dtype.itemsize == 8 else 3e-2 if dtype is DTYPES.get("bfloat16") else 1e-2
    close = {"rtol": tolerance, "atol": tolerance}
    what = f"the result with {op.input_name(index)} a number"
    as_number.check_close("numbers", what, actual, expected, **close)
    if expected.dtype not in DIFFERENTIABLE or not op.registered:
        return
    ct = random_like(expected, seed=6)
    for other, (a, b) in enumerate(zip(as_number.vjp(ct), as_array.vjp(ct), strict=True)):
        name = op.input_name(other)
        if other == index:
            continue
        if (a is None) != (b is None):
            as_number.fail("numbers", f"the gradient of {name} is None only with a number, or only with an array")
        if a is not None:
            if a.dtype != b.dtype:
                as_number.fail("numbers", f"the gradient of {name} is {a.dtype}, not {b.dtype}")
            as_number.check_close("numbers", f"the gradient of {name}", a, b, **close)


def views(op: Op, sample: Sample) -> None:
    """The forward leaves its inputs as they are, and shares their memory only if the op declares views."""
    case = Case(op, sample)
    arrays = [case.put(value) for value in case.inputs if isinstance(value, np.ndarray)]
    copies = [np.array(value) for value in case.inputs if isinstance(value, np.ndarray)]
    inputs = iter(arrays)
    recorder = case.executor()
    with case.backend.quiet():
        operands = [
            as_operand(recorder, next(inputs) if isinstance(value, np.ndarray) else value) for value in case.inputs
        ]
        result = recorder.apply(op, operands, case.attrs)
        results = [each.array for each in (result if isinstance(result, tuple) else (result,))]
    for array, copy in zip(arrays, copies, strict=True):
        if not np.array_equal(case.backend.get(array), copy, equal_nan=copy.dtype.kind in "fc"):
            case.fail("views", "the forward writes into an input")
    shared = any(
        np.shares_memory(array, np.asarray(result))
        for array in arrays
        if isinstance(array, np.ndarray)
        for result in results
    )
    if shared and not op.views and op.expand is None:
        case.fail("views", "the result shares memory with an input, and the op does not say views=True")


def record(op: Op, sample: Sample) -> None:
    """Attributes survive JSON, every rule can be bound, and there is documentation."""
    case = Case(op, sample)
    written = json.dumps({name: plain(value) for name, value in case.attrs.items()}, allow_nan=False)
    if op.attrs(json.loads(written)) is not case.attrs:
        case.fail("record", f"attributes change when they are written as JSON and read: {written}")
    if not op.doc[:1].strip() or "." not in op.doc:
        case.fail("record", "the documentation says nothing")
    bound = case.bound()
    everything = {position: position for position in range(len(bound.specs) + len(bound.outputs))}
    for rules in (op.vjp, op.jvp):
        for index in range(len(bound.specs)):
            rule = op.rule(rules, index)
            if not isinstance(rule, NoGradient):
                rule.bind(bound, index, everything)  # TypeError: it needs what does not exist


LAWS: Final[dict[str, Callable[[Op, Sample], None]]] = {
    "spec": spec,
    "vjp": derivative_laws.vjp,
    "jvp": derivative_laws.jvp,
    "transpose": derivative_laws.transpose,
    "second_order": derivative_laws.second_order,
    "structure": structure,
    "batch": batch,
    "rows": derivative_laws.rows,
    "numbers": numbers,
    "layouts": input_laws.layouts,
    "empty": input_laws.empty,
    "dtypes": input_laws.dtypes,
    "halves": input_laws.halves,
    "views": views,
    "record": record,
}


#: Laws that look at each sample in several ways, of which `check_op` may choose: dtypes, layouts, batched inputs.
IN_TURN: Final = ("spec", "batch", "rows", "layouts", "dtypes")

#: Laws about derivatives, which an op of several results obeys also if nothing uses some of them.
_OF_DERIVATIVES: Final = frozenset({"vjp", "jvp", "transpose", "second_order", "structure", "rows"})

#: Laws that choose numbers of their own: of a sample they use the attributes, and which inputs are arrays of float64.
_OF_ATTRIBUTES: Final = frozenset({"halves"})


# ------------------------------------------------------------------------------------------------------------- details
def _results(op: Op, law: str, sample: Sample) -> list[int | None]:
    """What a law looks at: all results together (None), and if it is about derivatives, each of several alone."""
    if len(op.results) == 1 or law not in _OF_DERIVATIVES:
        return [None]
    outputs = Case(op, sample).bound().outputs
    return [None, *[number for number, spec in enumerate(outputs) if spec.differentiable]]


def _apart(op: Op, samples: Sequence[Sample]) -> list[Sample]:
    """The samples without those that differ from an earlier one in their numbers alone."""
    first: dict[str, Sample] = {}
    for sample in samples:
        attrs = {name: plain(value) for name, value in op.attrs(sample.attrs).items()}
        kinds = [value.dtype.name if isinstance(value, np.ndarray) else "number" for value in sample.inputs]
        first.setdefault(json.dumps([attrs, kinds], sort_keys=True, default=repr), sample)
    return [*first.values()]


def _structure(recorder: Any, case: Case, order: int) -> list[list[str]]:
    """Kinds and specs of the gradients of the result, of the sum of those gradients, and so on."""
    with case.backend.quiet():
        operands = [as_operand(recorder, value) for value in case.inputs]
        arrays = [operand for operand in operands if operand.uid is not None]
        tapes = [Tape() for _ in range(order)]
        for tape in tapes:
            recorder.context.open(tape)
            recorder.context.watch(tape, arrays)
        targets = [case.applied(recorder, operands)]
        orders: list[list[str]] = []
        for tape in reversed(tapes):
            try:
                gradients = gradient(recorder, GradientQuery(tape, targets, arrays))
            except NoGradientRegisteredError:
                return [*orders, ["unregistered"]]
            orders.append([_described(each) for each in gradients])
            targets = [each.values if isinstance(each, SlicesValue) else each for each in gradients if each is not None]
    return orders


def _described(derivative: Any) -> str:
    if derivative is None:
        return GradientKind.NONE
    if isinstance(derivative, SlicesValue):
        specs = f"{derivative.values.spec!r} {derivative.indices.spec!r} {derivative.dense!r}"
        return f"{GradientKind.SLICES.value} {specs}"
    return f"{GradientKind.DENSE.value} {derivative.spec!r}"


def _row(case: Case, index: int, row: int) -> Any:
    """An input as another row of a batch: its elements rotated, except in matrices that must stay definite."""
    value = case.inputs[index]
    rotated = value if index in case.op.symmetric else np.roll(value, row)
    # A factor near 1 makes the rows of a batch of scalars differ too.
    factor = value.dtype.type(1 - 0.03 * row) if value.dtype in DIFFERENTIABLE else value.dtype.type(1)
    return np.asarray(rotated * factor)


def _without_array(op: Op, inputs: Sequence[Number | Any], index: int) -> bool:
    """Whether no other input is an array whose dtype the number at `index` takes."""
    return not any(
        isinstance(value, np.ndarray) and (op.variadic or op.like[other] == op.like[index])
        for other, value in enumerate(inputs)
    )
