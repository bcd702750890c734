"""Every op on any input with any attribute: alone, under tapes and accumulators, over rows, in a function.

A call may be refused with a documented code, and by specs alone whenever only specs and attributes decide. Everything
else is a finding: another exception, a warning, a result of another spec than the inferred one, more memory than the
price, no end.
"""

import itertools
import math
import random
import tracemalloc
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import numpy as np

import teletape_engine.ops  # noqa: F401  # fills the catalogue
from fuzz.target import Finding
from fuzz.values import (
    array_of,
    draw_attribute,
    draw_input,
    draw_shape,
    enlarged,
    mutated_shape,
    number_of,
    words_of,
)
from teletape_engine.arrays import backend
from teletape_engine.catalogue.attributes import plain
from teletape_engine.catalogue.binding import bind, trace_spec
from teletape_engine.catalogue.op import CATALOGUE, Op, Trait
from teletape_engine.catalogue.slices import SlicesValue
from teletape_engine.commands import Call
from teletape_engine.derivatives.gradient import gradient
from teletape_engine.derivatives.jacobian import batch_jacobian, jacobian, vjps
from teletape_engine.derivatives.query import GradientQuery
from teletape_engine.derivatives.second_order import hessian
from teletape_engine.errors import InternalError, ResourceExhaustedError, TeletapeError
from teletape_engine.functions.compile import compile_function
from teletape_engine.recording.accumulators import Accumulator
from teletape_engine.recording.executor import Executor
from teletape_engine.recording.memory import Memory
from teletape_engine.recording.recorder import Recorder
from teletape_engine.recording.spec_recorder import SpecRecorder
from teletape_engine.recording.tape import Tape
from teletape_engine.recording.values import Literal
from teletape_engine.spec import DTYPES, MAX_RANK, Spec

LIMIT: Final = 32 << 20  #: Bytes that the arrays of a case may take.
_SLACK: Final = 400_000  #: Bytes beyond the price that a call may take: what is smaller is not priced.
_FLOATS: Final = ("float32", "float32", "float64", "float16", "bfloat16", "complex64", "complex128")

#: What an op may do besides computing: each is run with arrays, and by specs alone.
Way = Callable[[Recorder, Op, Sequence[Any], Any], list[str]]


# --------------------------------------------------------------------------------------------------------------- ways
def alone(recorder: Recorder, op: Op, inputs: Sequence[Any], attrs: Any) -> list[str]:
    """The call, and nothing else."""
    return [_spec(each) for each in results_of(recorder.apply(op, inputs, attrs))]


def in_function(recorder: Recorder, op: Op, inputs: Sequence[Any], attrs: Any) -> list[str]:
    """The call as the one step of a function."""
    names = [f"x{number}" for number in range(len(inputs))]
    operands = tuple(value if isinstance(value, Literal) else name for name, value in zip(names, inputs, strict=True))
    outputs = [f"y{name}" for name in op.results]
    function = compile_function(names, [Call(op.name, operands, tuple(outputs), attrs)], outputs)
    return [_spec(result) for result in function.run(recorder, inputs)]


def differentiated(recorder: Recorder, op: Op, inputs: Sequence[Any], attrs: Any) -> list[str]:
    """The gradient."""
    tape, sources, result = _taped(recorder, op, inputs, attrs)
    return [_spec(each) for each in gradient(recorder, GradientQuery(tape, [result], sources))]


def twice(recorder: Recorder, op: Op, inputs: Sequence[Any], attrs: Any) -> list[str]:
    """The gradient of the gradient."""
    outer = Tape()
    recorder.context.open(outer)
    recorder.context.watch(outer, [value for value in inputs if value.uid is not None])
    tape, sources, result = _taped(recorder, op, inputs, attrs)
    first = gradient(recorder, GradientQuery(tape, [result], sources))
    targets = [each.values if isinstance(each, SlicesValue) else each for each in first if each is not None]
    second = gradient(recorder, GradientQuery(outer, targets, sources))
    return [_spec(each) for each in (*first, *second)]


def forward(recorder: Recorder, op: Op, inputs: Sequence[Any], attrs: Any) -> list[str]:
    """The tangent."""
    accumulator = Accumulator()
    for value in inputs:
        if value.uid is not None and value.spec.differentiable:
            accumulator.watch(value, recorder.full(value.spec, 1))
    recorder.context.open_accumulator(accumulator)
    results = results_of(recorder.apply(op, inputs, attrs))
    return [_spec(each) for result in results for each in (result, accumulator.tangent(result))]


def over_rows(recorder: Recorder, op: Op, inputs: Sequence[Any], attrs: Any) -> list[str]:
    """The gradients for two cotangents at once, by the batch rules of what the gradient consists of."""
    tape, sources, result = _taped(recorder, op, inputs, attrs)
    if not result.spec.differentiable:
        return []
    stack = recorder.full(result.spec.with_shape((2, *result.spec.shape)), 1)
    return [_spec(each) for each in vjps(recorder, GradientQuery(tape, [result], sources, output_gradients=[stack]))]


def all_derivatives(recorder: Recorder, op: Op, inputs: Sequence[Any], attrs: Any) -> list[str]:
    """The Jacobian; of an input by itself as well."""
    tape, sources, result = _taped(recorder, op, inputs, attrs)
    if result.spec.size > 64:
        return []
    derivatives = jacobian(recorder, GradientQuery(tape, [result], sources))
    if sources and sources[0].spec.size <= 64:
        derivatives += jacobian(recorder, GradientQuery(tape, [sources[0]], sources))
    return [_spec(each) for each in derivatives]


def curvature(recorder: Recorder, op: Op, inputs: Sequence[Any], attrs: Any) -> list[str]:
    """The second derivatives by the first two inputs, if those are small."""
    tape, sources, result = _taped(recorder, op, inputs, attrs)
    chosen = [source for source in sources if source.spec.size <= 16][:2]
    blocks = hessian(recorder, GradientQuery(tape, [result], chosen))
    return [_spec(each) for row in blocks for each in row]


def by_example(recorder: Recorder, op: Op, inputs: Sequence[Any], attrs: Any) -> list[str]:
    """The Jacobian of each example, by the first input."""
    tape, sources, result = _taped(recorder, op, inputs, attrs)
    if not sources or result.spec.size > 64 or not result.spec.differentiable:
        return []
    return [_spec(batch_jacobian(recorder, GradientQuery(tape, [result], sources[:1])))]


WAYS: Final[dict[str, Way]] = {
    "alone": alone,
    "in a function": in_function,
    "gradient": differentiated,
    "second gradient": twice,
    "tangent": forward,
    "rows": over_rows,
    "jacobian": all_derivatives,
    "hessian": curvature,
    "batch jacobian": by_example,
}

#: What every case is run in, also where the others are run in turn.
_ALWAYS: Final = ("alone", "gradient")


def _taped(recorder: Recorder, op: Op, inputs: Sequence[Any], attrs: Any) -> tuple[Tape, list[Any], Any]:
    """A tape that watches the arrays, those that may have a gradient, and the first result of the call."""
    tape = Tape(persistent=True)
    recorder.context.open(tape)
    arrays = [value for value in inputs if value.uid is not None]
    recorder.context.watch(tape, arrays)
    result = results_of(recorder.apply(op, inputs, attrs))[0]
    recorder.context.pause(tape)
    return tape, [value for value in arrays if value.spec.differentiable], result


def results_of(result: Any) -> tuple[Any, ...]:
    """The results of a call, one or several."""
    return result if isinstance(result, tuple) else (result,)


def _spec(value: Any) -> str:
    if isinstance(value, SlicesValue):
        return f"slices {value.values.spec!r} {value.indices.spec!r} {value.dense!r}"
    if value is None:
        return "none"
    array = getattr(value, "array", None)
    if isinstance(array, np.ndarray | np.generic) and (array.shape, array.dtype) != (
        value.spec.shape,
        value.spec.dtype,
    ):
        raise Finding("spec of a value", f"a value of spec {value.spec!r} holds {array.dtype}{list(array.shape)}")
    return repr(value.spec)


# ------------------------------------------------------------------------------------------------------------- target
class Follower(SpecRecorder):
    """Follows specs, and notes which ops run."""

    def __init__(self) -> None:
        super().__init__()
        self.ops: set[Op] = set()

    def run(self, bound: Any, inputs: Sequence[Any]) -> Any:
        """As every recorder of specs."""
        self.ops.add(bound.op)
        return super().run(bound, inputs)


class Ops:
    """The target: a case is {op, inputs, attrs}.

    Args:
        names: Of the ops; None: all.
        in_turn: Whether each case is run alone, under a tape, and in one more way, which is another for the next case.
    """

    name = "ops"

    def __init__(self, names: Sequence[str] | None = None, *, in_turn: bool = False) -> None:
        self._names = sorted(CATALOGUE) if names is None else list(names)
        self._others = itertools.cycle([way for way in WAYS if way not in _ALWAYS]) if in_turn else None
        self._words: dict[str, dict[str, list[Any]]] = {}
        self._samples: dict[str, list[Any]] = {}

    def close(self) -> None:
        """Nothing has been started."""

    def draw(self, rng: random.Random) -> Any:
        """An op, its own sample with something changed, or anything at all."""
        op = CATALOGUE[rng.choice(self._names)]
        seen = self._words.setdefault(op.name, words_of(op))
        if rng.random() < 0.6:
            inputs, attrs = self._near_sample(rng, op)
        else:
            inputs, attrs = _anything(rng, op)
        if rng.random() < 0.15:  # nothing to compute, or little, and a huge length
            for written in inputs:
                if isinstance(written, dict) and written["shape"] and rng.random() < 0.7:
                    written["shape"][rng.randrange(len(written["shape"]))] = 0
            for attr in op.schema.attrs:
                if attr.name in attrs:
                    attrs[attr.name] = enlarged(rng, attrs[attr.name])
        for attr in op.schema.attrs:
            if rng.random() < (0.2 if attr.name in attrs else 0.5):
                attrs[attr.name] = draw_attribute(rng, attr, seen[attr.name])
        if rng.random() < 0.01:
            attrs["no_such_attribute"] = 1
        return {"op": op.name, "inputs": inputs, "attrs": attrs}

    def _near_sample(self, rng: random.Random, op: Op) -> tuple[list[Any], dict[str, Any]]:
        samples = self._samples.setdefault(op.name, list(op.samples()))
        example = rng.choice(samples)
        attrs = {name: plain(value) for name, value in op.attrs(example.attrs).items()}
        kind = rng.choice(_FLOATS)
        inputs: list[Any] = []
        for value in example.inputs:
            if not isinstance(value, np.ndarray | np.generic):
                inputs.append([value.real, value.imag] if isinstance(value, complex) else [value])
                continue
            dtype = kind if value.dtype == np.float64 else value.dtype.name
            contents = rng.choice(["small", "small", "ones", "special", "extreme"] if dtype == kind else ["indices"])
            inputs.append({"dtype": dtype, "shape": list(value.shape), "contents": contents})
        arrays = [each for each in inputs if isinstance(each, dict)]
        for _ in range(rng.choice([0, 1, 1, 2])):
            if not arrays:
                break
            changed = rng.choice(arrays)
            what = rng.randrange(4)
            if what == 0:
                changed["dtype"] = rng.choice(sorted(DTYPES))
            elif what == 1:
                changed["contents"] = rng.choice(["indices", "negative", "zeros", "special", "extreme"])
            else:
                for each in arrays if rng.random() < 0.3 else [changed]:
                    each["shape"] = mutated_shape(rng, each["shape"])
        return inputs, attrs

    def smaller(self, case: Any) -> Iterator[Any]:
        """Without an attribute; with a plainer one; with fewer axes, shorter ones, plainer contents."""
        for name in case["attrs"]:
            yield case | {"attrs": {key: value for key, value in case["attrs"].items() if key != name}}
        for index, written in enumerate(case["inputs"]):
            for simpler in _simpler_input(written):
                if isinstance(simpler, dict) and math.prod(simpler["shape"]) > 4096:
                    continue
                yield case | {"inputs": [*case["inputs"][:index], simpler, *case["inputs"][index + 1 :]]}
        if CATALOGUE[case["op"]].variadic:
            for index in range(len(case["inputs"])):
                yield case | {"inputs": case["inputs"][:index] + case["inputs"][index + 1 :]}

    def check(self, case: Any) -> list[str]:
        """Runs the call in every way, with arrays and by specs, and compares."""
        op = CATALOGUE[case["op"]]
        try:
            attrs = op.attrs(_tuples(case["attrs"]))
        except TeletapeError as error:
            return [_documented(op, "attributes", error)]
        except Exception as error:
            raise Finding(f"{op.name}, attributes: {type(error).__name__}", str(error)) from error
        arrays = [number_of(each) if isinstance(each, list) else array_of(each) for each in case["inputs"]]
        outcome = ""
        chosen = WAYS if self._others is None else {*_ALWAYS, next(self._others)}
        for way, run in WAYS.items():
            if way not in chosen:
                continue
            real, predicted, follower = _both(op, way, run, arrays, attrs)
            _compare(op, way, real, predicted, follower, arrays)
            outcome = outcome or (real.code if isinstance(real, TeletapeError) else "computed")
            if isinstance(real, TeletapeError) and way == "alone":
                break
        if outcome == "computed":
            _check_batch(op, arrays, attrs)
        return [outcome]


def _both(op: Op, way: str, run: Way, arrays: Sequence[Any], attrs: Any) -> tuple[Any, Any, Follower]:
    """What comes of a call with arrays and by specs: lists of specs, or the error."""
    follower = Follower()
    with backend("cpu").quiet():
        predicted = _outcome(op, f"{way} by specs", run, follower, arrays, attrs)
        if way != "alone" or op.expand is not None:
            return _outcome(op, way, run, _executor(), arrays, attrs), predicted, follower
        for _ in range(2):  # what the first call of all allocates, as for an import, is not the call's price
            executor = _executor()
            tracemalloc.start()
            try:
                real = _outcome(op, way, run, executor, arrays, attrs)
                peak, price = tracemalloc.get_traced_memory()[1], executor.memory.spent
            finally:
                tracemalloc.stop()
            if isinstance(real, TeletapeError) or peak <= price * 1.1 + _SLACK:
                return real, predicted, follower
    raise Finding(f"{op.name}: price", f"priced {price:,} bytes, took {peak:,}")


def _executor() -> Executor:
    return Executor(backend("cpu"), Memory(LIMIT, lambda: 0))


def _outcome(op: Op, way: str, run: Way, recorder: Recorder, arrays: Sequence[Any], attrs: Any) -> Any:
    try:
        inputs = [each if isinstance(each, Literal) else recorder.constant(each) for each in arrays]
        return run(recorder, op, inputs, attrs)
    except TeletapeError as error:
        _documented(op, way, error)
        if type(error.__cause__) is not type(error) and isinstance(error.__cause__, MemoryError):
            raise Finding(f"{op.name}, {way}: price", error.message) from error
        return error
    except Finding as finding:
        raise Finding(f"{op.name}, {way}, {finding.kind}", str(finding)) from None
    except Exception as error:
        raise Finding(f"{op.name}, {way}: {type(error).__name__}", str(error)) from error


def _documented(op: Op, way: str, error: TeletapeError) -> str:
    if isinstance(error, InternalError) or not error.message:
        raise Finding(f"{op.name}, {way}: {error.code}", error.message) from error
    return error.code


def _compare(op: Op, way: str, real: Any, predicted: Any, follower: Follower, arrays: Sequence[Any]) -> None:
    """Specs and arrays agree on what is accepted, and on the result's spec."""
    if isinstance(real, ResourceExhaustedError):
        return
    if isinstance(predicted, TeletapeError):
        if not isinstance(real, TeletapeError):
            raise Finding(f"{op.name}, {way}: refused by specs only", predicted.message)
        if real.code != predicted.code and not isinstance(predicted, ResourceExhaustedError):
            raise Finding(f"{op.name}, {way}: another code", f"{predicted.code} by specs, {real.code}: {real.message}")
        return
    if isinstance(real, TeletapeError):
        raw = real.__cause__ is not None and not isinstance(real.__cause__, TeletapeError | np.linalg.LinAlgError)
        if any(isinstance(each, Literal) for each in arrays):
            return  # which number it is, no spec says
        if raw or not any(map(_refuses_values, follower.ops)):
            raise Finding(f"{op.name}, {way}: accepted by specs", f"predicted {predicted}, but: {real.message}")
        return
    if real != predicted and not any(each.dynamic for each in follower.ops):
        raise Finding(f"{op.name}, {way}: spec", f"predicted {predicted}, real {real}")


def _refuses_values(op: Op) -> bool:
    return bool(op.refuses) or Trait.ASSERTS in op.traits or op.name in _OF_MATRICES | _OF_PARAMETERS


#: Refuse matrices that have no inverse, no root, …
_OF_MATRICES: Final = frozenset(
    name
    for name, op in CATALOGUE.items()
    if op.forward and op.forward.__module__.startswith("teletape_engine.ops.linalg")
)


#: Refuse parameters that no distribution has, such as a negative rate.
_OF_PARAMETERS: Final = frozenset(("philox_binomial", "philox_gamma", "philox_poisson"))


def _check_batch(op: Op, arrays: Sequence[Any], attrs: Any) -> None:
    """The batch rule on two rows of each array: nothing undocumented, and by specs what comes of arrays."""
    rows = [each for each in arrays if not isinstance(each, Literal)]
    if op.expand is not None or op.dynamic or op.batch is None or not rows or len(rows) < len(arrays):
        return
    if sum(each.nbytes for each in rows) > LIMIT // 8:
        return
    if any(each.dtype.name == "bfloat16" or each.ndim >= MAX_RANK for each in rows):
        return  # a bound call rounds bfloat16, the rules alone do not
    bound = bind(op, tuple(_spec_of(each) for each in rows), attrs)
    if bound.price > LIMIT // 8:
        return
    batched = [True] * len(rows)
    stacks = [np.stack([each, each]) for each in rows]
    outcomes: list[Any] = []
    for run in (
        lambda: [_spec_of(np.asarray(each)) for each in results_of(op.batch(op, stacks, batched, attrs))],  # type: ignore[misc]
        lambda: [
            *results_of(
                trace_spec(
                    lambda *operands: op.batch(op, operands, batched, attrs),  # type: ignore[misc]
                    [_spec_of(each) for each in stacks],
                    {},
                )
            )
        ],
    ):
        try:
            with backend("cpu").quiet():
                outcomes.append(run())
        except TeletapeError as error:
            _documented(op, "batch rule", error)
            outcomes.append(error)
        except np.linalg.LinAlgError as error:
            outcomes.append(error)
        except Exception as error:
            raise Finding(f"{op.name}, batch rule: {type(error).__name__}", str(error)) from error
    real, predicted = outcomes
    if isinstance(real, Exception) or isinstance(predicted, Exception):
        if not (isinstance(real, Exception) and (isinstance(predicted, Exception) or _refuses_values(op))):
            raise Finding(f"{op.name}, batch rule: acceptance", f"by specs {predicted!r}, with arrays {real!r}")
    elif not real == predicted == [spec.with_shape((2, *spec.shape)) for spec in bound.outputs]:
        raise Finding(f"{op.name}, batch rule: spec", f"row {bound.outputs!r}, by specs {predicted!r}, real {real!r}")


def _spec_of(array: Any) -> Any:
    return Spec.of(array.shape, array.dtype)


# ----------------------------------------------------------------------------------------------------------- drawing
def _anything(rng: random.Random, op: Op) -> tuple[list[Any], dict[str, Any]]:
    count = rng.choice([1, 2, 3]) if op.variadic else len(op.inputs)
    if rng.random() < 0.01:
        count += rng.choice([-1, 1]) if count else 1
    dtype, shape = rng.choice(_FLOATS), draw_shape(rng)
    inputs = []
    for _ in range(count):
        chosen = dtype if rng.random() < 0.75 else rng.choice(sorted(DTYPES))
        if rng.random() < 0.5:
            shape = draw_shape(rng) if rng.random() < 0.5 else mutated_shape(rng, shape)
        inputs.append(draw_input(rng, chosen, shape))
    return inputs, {}


def _simpler_input(written: Any) -> Iterator[Any]:
    if isinstance(written, list):
        if written != [1]:
            yield [1]
        return
    shape = written["shape"]
    for axis in range(len(shape)):
        yield written | {"shape": [*shape[:axis], *shape[axis + 1 :]]}
        for length in (0, 1, 2):
            if length < shape[axis]:
                yield written | {"shape": [*shape[:axis], length, *shape[axis + 1 :]]}
    for contents in ("ones", "small"):
        if written["contents"] not in ("ones", contents):
            yield written | {"contents": contents}
    if written["dtype"] not in ("float32", "int32"):
        yield written | {"dtype": "float32"}


def _tuples(attrs: dict[str, Any]) -> dict[str, Any]:
    """Attributes as a frame has them: tuples for lists."""

    def tupled(value: Any) -> Any:
        return tuple(map(tupled, value)) if isinstance(value, list) else value

    return {name: tupled(value) for name, value in attrs.items()}


# ----------------------------------------------------------------------------------------------------------- the edges
_EDGE_SHAPES: Final = (
    [],
    [0],
    [1],
    [1, 2],
    [0, 2],
    [2, 1, 2],
    *([1, 2, 1, 2, 1, 2, 1, 2][:rank] for rank in range(4, 9)),
)
_EDGE_DTYPES: Final = ("bool", "complex64", "complex128", "int32", "uint8", "float16", "bfloat16")
_EDGE_NUMBERS: Final = (-1, -(2**31), 2**31, 2**63 - 1, 2**70, "NaN", "x", None, True)


def edges(op: Op) -> Iterator[Any]:
    """The same cases for every op: scalars, no elements, rank 0 to 8, each kind of dtype, NaN, huge attributes."""
    samples = list(op.samples())
    attrs = {name: plain(value) for name, value in op.attrs(samples[0].attrs).items()}
    inputs = [_written(value) for value in samples[0].inputs]
    for shape in _EDGE_SHAPES:
        shaped = [each | {"shape": shape} if isinstance(each, dict) else each for each in inputs]
        yield {"op": op.name, "inputs": shaped, "attrs": attrs}
    for change in (
        *({"dtype": dtype} for dtype in _EDGE_DTYPES),
        {"contents": "special"},
        {"contents": "extreme"},
        {"contents": "negative"},
    ):
        yield {
            "op": op.name,
            "inputs": [each | change if isinstance(each, dict) else each for each in inputs],
            "attrs": attrs,
        }
    for name, value in attrs.items():
        for number in _EDGE_NUMBERS:
            yield {"op": op.name, "inputs": inputs, "attrs": attrs | {name: number}}
        if isinstance(value, list) and value and isinstance(value[0], int):
            for number in _EDGE_NUMBERS[:4]:
                yield {"op": op.name, "inputs": inputs, "attrs": attrs | {name: [number, *value[1:]]}}


def _written(value: Any) -> Any:
    if not isinstance(value, np.ndarray | np.generic):
        return [value.real, value.imag] if isinstance(value, complex) else [value]
    floating = value.dtype == np.float64
    return {
        "dtype": "float32" if floating else value.dtype.name,
        "shape": list(value.shape),
        "contents": "small" if floating else "indices",
    }
