"""Elementwise ops: one formula for each input gives the vjp, the jvp, the batch rule and the spec.

    @elementwise     from a forward function
    unary, binary    from the name of a NumPy function of one or two arrays: one entry for each op

Gradients follow TensorFlow's convention for complex numbers: the vjp multiplies by the conjugate of the derivative.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from teletape_engine.catalogue.binding import Bound
from teletape_engine.catalogue.define import (
    Forward,
    Samples,
    array_parameters,
    camel_case,
    check_dtypes,
    op,
    sample,
)
from teletape_engine.catalogue.namespace import ops
from teletape_engine.catalogue.op import Op, Reach, Sample, Trait
from teletape_engine.catalogue.rule import BoundRule, NoGradient, Rule, always
from teletape_engine.catalogue.signature import Functions
from teletape_engine.spec import COMPLEX, DIFFERENTIABLE, HALF, INTEGER, NUMERIC, DType, Shape, Spec, broadcast, wide


@dataclass(frozen=True, eq=False, slots=True)
class LinearMap:
    """The whole map of a cotangent, and of a tangent alike, in place of a factor. See `linear_map`."""

    function: Callable[..., Any]


@dataclass(frozen=True, eq=False, slots=True)
class ByDType:
    """A formula, and another one for some dtypes of the input."""

    formula: Callable[..., Any]
    others: Mapping[DType, LinearMap]


#: The derivative by one input: a factor as a function of what it needs; the name of an input, which is the factor; the
#: factor 1, -1 or 0; a whole map (`linear_map`); one of these for each dtype (`ByDType`); or NoGradient.
Formula: TypeAlias = Callable[..., Any] | str | int | LinearMap | ByDType | NoGradient
_Differentiable: TypeAlias = Callable[..., Any] | str | int | LinearMap | ByDType


def linear_map(function: Callable[..., Any]) -> LinearMap:
    """A formula for the whole map: `function(ct, …)` is linear in its first parameter, a cotangent or a tangent.

    The parameters after the first are named as those of a factor.
    """
    return LinearMap(function)


# -------------------------------------------------------------------------------------------------------------- rules
def sum_to(ct: Any, shape: Shape) -> Any:
    """The transpose of broadcasting `shape` to the shape of `ct`: sums over the axes that were stretched."""
    if ct.shape == shape:
        return ct
    extra = len(ct.shape) - len(shape)
    stretched = [extra + i for i, (n, m) in enumerate(zip(shape, ct.shape[extra:], strict=True)) if n != m]
    ct = ops.reduce_sum(ct, axis=(*range(extra), *stretched))
    return ct if ct.shape == shape else ops.reshape(ct, shape=shape)


def _conj(factor: Any) -> Any:
    return ops.conj(factor) if hasattr(factor, "shape") else complex(factor).conjugate()


def _rule(formula: Formula, inputs: tuple[str, ...], *, backward: bool) -> Rule | NoGradient:
    """The vjp (`backward`) or jvp of one input of an elementwise op."""
    return formula if isinstance(formula, NoGradient) else _rule_of(formula, inputs, backward=backward)


def _rule_of(formula: _Differentiable, inputs: tuple[str, ...], *, backward: bool) -> Rule:
    others = {}
    if isinstance(formula, ByDType):
        others = {dtype: _rule_of(other, inputs, backward=backward) for dtype, other in formula.others.items()}
        formula = formula.formula

    def bind(bound: Bound, i: int, slots: Mapping[int, int]) -> BoundRule:
        # Whether to conjugate and to sum or broadcast is decided here, not when the rule runs.
        run = _unbroadcast(formula, bound, i, slots, conjugate=backward and bound.spec.dtype in COMPLEX)
        shape, out = bound.specs[i].shape, bound.spec.shape
        if shape == out:
            return run
        if backward:
            return lambda ct, residuals: sum_to(run(ct, residuals), shape)
        return lambda t, residuals: ops.broadcast_to(run(t, residuals), shape=out)

    if not isinstance(formula, int | str):
        others |= dict.fromkeys(HALF, _in_32_bits(formula, inputs, backward=backward))
    return Rule(_needs(formula), bind, zero=always if formula == 0 else None, of=others)


def _in_32_bits(formula: Formula, inputs: tuple[str, ...], *, backward: bool) -> Rule:
    """The rule for 16-bit floats: computed in float32 and rounded once.

    A factor gets the result as float32 computes it from the inputs: what is left of 1 - y would be an error of y alone.
    """
    needs = _needs(formula)
    again = "y" in needs and not isinstance(formula, LinearMap)
    if again:
        needs = (*inputs, *[name for name in needs if name not in (*inputs, "y")])

    def bind(bound: Bound, i: int, slots: Mapping[int, int]) -> BoundRule:
        n, dtype, out = len(inputs), bound.specs[i].dtype, bound.spec.shape
        run = _unbroadcast(formula, bound, i, {position: position for position in range(n + 1)}, conjugate=False)
        read = [(position, slots[position]) for position, name in enumerate((*inputs, "y")) if name in needs]

        def rule(ct: Any, residuals: Sequence[Any]) -> Any:
            values: list[Any] = [None] * (n + 1)
            for position, slot in read:
                values[position] = _widened(residuals[slot])
            if again:
                values[n] = bound.op(*values[:n], **bound.attrs)
            ct = run(_widened(ct), values)
            return ops.cast(sum_to(ct, bound.specs[i].shape) if backward else ct, dtype=dtype)

        return rule if backward else lambda t, residuals: _broadcast_to(rule(t, residuals), out)

    return Rule(needs, bind)


def _widened(x: Any) -> Any:
    return ops.cast(x, dtype=wide(x.dtype)) if hasattr(x, "dtype") and x.dtype in HALF else x


def _broadcast_to(t: Any, shape: Shape) -> Any:
    return t if t.shape == shape else ops.broadcast_to(t, shape=shape)


def _needs(formula: Formula) -> tuple[str, ...]:
    if isinstance(formula, str):
        return (formula,)
    if isinstance(formula, LinearMap):
        return tuple(inspect.signature(formula.function).parameters)[1:]
    return tuple(inspect.signature(formula).parameters) if callable(formula) else ()


def _unbroadcast(formula: Formula, bound: Bound, i: int, slots: Mapping[int, int], *, conjugate: bool) -> BoundRule:
    """The rule of input `i`, for cotangents and tangents of the result's shape."""
    if isinstance(formula, int):
        if formula == 0:
            return lambda ct, residuals: ops.zeros_like(ct)
        return (lambda ct, residuals: ct) if formula == 1 else (lambda ct, residuals: -ct)
    positions = {name: position for position, name in enumerate((*bound.op.inputs, "y"))}
    if isinstance(formula, str):
        slot = slots[positions[formula]]
        if conjugate:
            return lambda ct, residuals: ct * _conj(residuals[slot])
        return lambda ct, residuals: ct * residuals[slot]
    names = _needs(formula)
    arrays = [name for name in names if name in positions]
    read = [slots[positions[name]] for name in arrays]
    static = {name: bound.static(name, i) for name in names if name not in positions}
    if isinstance(formula, LinearMap):
        function = formula.function
        if conjugate:
            specs = (*bound.specs, bound.spec)
            complexes = {slots[positions[name]] for name in arrays if specs[positions[name]].dtype in COMPLEX}
            return lambda ct, residuals: function(
                ct, *[_conj(residuals[s]) if s in complexes else residuals[s] for s in read], **static
            )
        return lambda ct, residuals: function(ct, *[residuals[s] for s in read], **static)
    assert callable(formula)
    factor = formula
    if conjugate:
        return lambda ct, residuals: ct * _conj(factor(*[residuals[s] for s in read], **static))
    if len(read) == 1 and not static:
        slot = read[0]
        return lambda ct, residuals: ct * factor(residuals[slot])
    return lambda ct, residuals: ct * factor(*[residuals[s] for s in read], **static)


# --------------------------------------------------------------------------------------------------- specs and batches
def elementwise_spec(op_type: str, *specs: Spec, dtypes: frozenset[DType] = NUMERIC) -> Spec:
    """Broadcast shapes, one dtype, which must be among `dtypes`; the result has it too."""
    check_dtypes(op_type, specs, dtypes)
    shape = specs[0].shape
    for other in specs[1:]:
        shape = broadcast(shape, other.shape)
    return specs[0].with_shape(shape)


def align(args: Sequence[Any], batched: Sequence[bool]) -> list[Any]:
    """Makes axis 0 of the batched inputs the leading axis of the broadcast: pads the ranks after it to be equal."""

    def rank(arg: Any, has_batch: bool) -> int:
        return len(arg.shape) - has_batch if hasattr(arg, "shape") else 0

    most = max(rank(arg, b) for arg, b in zip(args, batched, strict=True))
    out = []
    for arg, b in zip(args, batched, strict=True):
        pad = most - rank(arg, b)
        if b and pad:
            arg = ops.reshape(arg, shape=(arg.shape[0], *(1,) * pad, *arg.shape[1:]))
        out.append(arg)
    return out


def batch_elementwise(record: Op, args: Sequence[Any], batched: Sequence[bool], attrs: Mapping[str, Any]) -> Any:
    """Elementwise ops broadcast over the batch axis by themselves, once the ranks agree."""
    return record(*align(args, batched), **attrs)


# ----------------------------------------------------------------------------------------------------------- families
def elementwise(
    *formulas: Formula,
    jvp: Sequence[Formula] | None = None,
    op_type: str = "",
    tf: Functions = "",
    dtypes: frozenset[DType] = NUMERIC,
    result: DType | None = None,
    infer: Callable[..., Spec] | None = None,
    domain: tuple[float, float] = (-1.5, 1.5),
    samples: Samples | None = None,
    temporaries: int = 0,
    like: Sequence[int] | None = None,
    name: str = "",
    args: str = "",
    refuses: Sequence[str] = (),
    traits: Iterable[Trait] = (),
    weak: bool = True,
) -> Callable[[Forward], Op]:
    """An op that treats each element by itself; arrays broadcast.

    Args:
        formulas: For each input its derivative, see `Formula`; one NoGradient may stand for all.
        jvp: Those of forward mode, if they are written differently.
        op_type: TensorFlow's op type; by default the name in CamelCase.
        tf: TensorFlow's public names, separated by spaces.
        dtypes: What it takes.
        result: The dtype of the result, if it is not that of the inputs.
        infer: Spec rule, if it is not the default: shapes broadcast, all inputs have one dtype.
        domain: Range of the random samples.
        samples: Instead of random ones.
        temporaries: Number of arrays of the result's size that the forward needs at its peak, the result not counted.
        like: See `Op.like`; by default Python numbers take the dtype of any array input.
        name: By default the function's name.
        args: TensorFlow's argument names; `x y` for two inputs.
        refuses: See `Op.refuses`.
        traits: See `Trait`.
        weak: Whether an op of several inputs takes Python numbers as they are; see `Op.weak`.
    """

    def decorate(forward: Forward) -> Op:
        inputs, _ = array_parameters(forward)
        n = len(inputs)
        type_name = op_type or camel_case(name or forward.__name__.rstrip("_"))

        def default_infer(*specs: Spec, **_: Any) -> Spec:
            spec = elementwise_spec(type_name, *specs, dtypes=dtypes)
            return spec if result is None else spec.with_dtype(result)

        def workspace(*specs: Spec, **attrs: Any) -> int:
            return temporaries * (infer or default_infer)(*specs, **attrs).nbytes

        def random_samples() -> list[Sample]:
            low, high = domain
            out = [sample(*[(2, 3)] * n, low=low, high=high), sample(*[()] * n, seed=1, low=low, high=high)]
            if n > 1:
                out.append(sample((2, 1, 3), *[(4, 1)] * (n - 1), seed=2, low=low, high=high))
            if n > 1 and weak:
                out.append(sample((3,), *[float(low + 0.7 * (high - low))] * (n - 1), seed=3, low=low, high=high))
            return out

        backward = formulas * n if len(formulas) == 1 and isinstance(formulas[0], NoGradient) else formulas
        return op(
            infer=infer or default_infer,
            vjp=[_rule(formula, inputs, backward=True) for formula in backward],
            jvp=[_rule(formula, inputs, backward=False) for formula in jvp or backward],
            batch=batch_elementwise,
            samples=random_samples if samples is None else samples,
            op_type=type_name,
            tf=tf,
            weak=weak and n > 1,
            like=like if like is not None else (0,) * n,
            workspace=workspace if temporaries else None,
            name=name,
            args=args or ("x y" if n == 2 else ""),
            refuses=refuses,
            integers=inputs if dtypes <= INTEGER else (),
            traits=traits,
            reach=Reach.ELEMENTS,
        )(forward)

    return decorate


def unary(
    name: str,
    formula: Formula,
    doc: str,
    *,
    numpy: str = "",
    dtypes: frozenset[DType] = DIFFERENTIABLE,
    **options: Any,
) -> Op:
    """An elementwise op of one array that is a function of NumPy.

    Args:
        name: The op's.
        formula: Its derivative.
        doc: Its docstring.
        numpy: The name of NumPy's function; by default the op's.
        dtypes: What it takes.
        **options: As of `elementwise`.
    """
    function = numpy or name

    def forward(xp: Any, x: Any) -> Any:
        return getattr(xp, function)(x)

    forward.__name__, forward.__doc__ = name, doc
    forward.__module__ = sys._getframe(1).f_globals["__name__"]  # the family's file, as namedtuple finds it
    return elementwise(formula, dtypes=dtypes, **options)(forward)


def binary(name: str, formulas: Sequence[Formula] | NoGradient, doc: str, *, numpy: str = "", **options: Any) -> Op:
    """An elementwise op of two arrays that is a function of NumPy: as `unary`, with a formula for each input."""
    function = numpy or name

    def forward(xp: Any, a: Any, b: Any) -> Any:
        return getattr(xp, function)(a, b)

    forward.__name__, forward.__doc__ = name, doc
    forward.__module__ = sys._getframe(1).f_globals["__name__"]
    return elementwise(*((formulas,) if isinstance(formulas, NoGradient) else formulas), **options)(forward)
