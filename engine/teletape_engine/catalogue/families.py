"""Families of ops: decorators that build an Op record and give its rules together.

    @elementwise   one formula an input gives vjp, jvp, batch and spec; the formula's arguments say what is kept
    @comparison    elementwise to bool, declared non-differentiable
    @reduction     over axes, with keepdims
    @linear        a linear map of its one array: the jvp is the op itself
    @composite     written on other ops: recorded as those, so that it needs no rule

Gradients follow TensorFlow's convention for complex numbers: the vjp multiplies by the conjugate of the derivative.
Rules reach ops through the catalogue, since the ops' modules import this one.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from teletape_engine.catalogue.attributes import Schema
from teletape_engine.catalogue.define import (
    Forward,
    Samples,
    array_parameters,
    check_dtypes,
    listed,
    op,
    sample,
)
from teletape_engine.catalogue.op import (
    CATALOGUE,
    NON_DIFFERENTIABLE,
    Bound,
    Gradient,
    Op,
    Rule,
    Sample,
    needs,
    trace_spec,
)
from teletape_engine.spec import BOOL, COMPLEX, NUMERIC, DType, Shape, Spec, axes_in, axis_in, broadcast

Formula: TypeAlias = Callable[..., Any] | str | int | Gradient


# -------------------------------------------------------------------------------------------------------- elementwise
def sum_to(ct: Any, shape: Shape) -> Any:
    """The transpose of broadcasting `shape` to the shape of `ct`: sums over the axes that were stretched."""
    if ct.shape == shape:
        return ct
    extra = len(ct.shape) - len(shape)
    stretched = [extra + i for i, (n, m) in enumerate(zip(shape, ct.shape[extra:], strict=True)) if n != m]
    ct = CATALOGUE["reduce_sum"](ct, axis=(*range(extra), *stretched))
    return ct if ct.shape == shape else CATALOGUE["reshape"](ct, shape=shape)


def _conj(factor: Any) -> Any:
    return CATALOGUE["conj"](factor) if hasattr(factor, "shape") else complex(factor).conjugate()


@dataclass(frozen=True)
class Factor:
    """The rule of one input of an elementwise op, from its partial derivative.

    Attributes:
        formula: The derivative as a function of names that a rule may ask for; or the name of an input (the derivative
            is that input); or 1, -1, 0. A function whose first parameter is `ct` is the whole map of the ct instead,
            and of the tangent alike: it must be linear in it.
        backward: vjp, else jvp.
    """

    formula: Callable[..., Any] | str | int
    backward: bool

    @property
    def needs(self) -> tuple[str, ...]:
        """What the formula asks for."""
        first = "ct" if self.backward else "t"
        if isinstance(self.formula, int):
            return (first,)
        if isinstance(self.formula, str):
            return (first, self.formula)
        return (first, *(name for name in needs(self.formula) if name != "ct"))

    def bind(self, bound: Bound, i: int, where: Mapping[int, int]) -> Callable[[Any, Any], Any]:
        """The rule for these specs: whether to conjugate and to sum or stretch is decided here, not at run time."""
        run = self._scaled(bound, i, where)
        shape, out = bound.specs[i].shape, bound.spec.shape
        if shape == out:
            return run
        if self.backward:
            return lambda ct, kept: sum_to(run(ct, kept), shape)
        broadcast_to = CATALOGUE["broadcast_to"]
        return lambda t, kept: broadcast_to(run(t, kept), shape=out)

    def _scaled(self, bound: Bound, i: int, where: Mapping[int, int]) -> Callable[[Any, Any], Any]:
        formula = self.formula
        if isinstance(formula, int):
            if formula == 0:
                return lambda ct, kept: CATALOGUE["zeros_like"](ct)
            return (lambda ct, kept: ct) if formula == 1 else (lambda ct, kept: -ct)
        conjugate = self.backward and bound.spec.dtype in COMPLEX
        arrays = {name: at for at, name in enumerate((*bound.op.inputs, "y"))}
        if isinstance(formula, str):
            place = where[arrays[formula]]
            if conjugate:
                return lambda ct, kept: ct * _conj(kept[place])
            return lambda ct, kept: ct * kept[place]
        whole = needs(formula)[0] == "ct" if needs(formula) else False
        asked = needs(formula)[1:] if whole else needs(formula)
        places = [where[arrays[name]] for name in asked if name in arrays]
        static = {name: bound.static(name, i) for name in asked if name not in arrays}
        if whole and conjugate:
            complexes = {
                place
                for place, at in ((where[arrays[n]], arrays[n]) for n in asked if n in arrays)
                if (*bound.specs, bound.spec)[at].dtype in COMPLEX
            }
            return lambda ct, kept: formula(
                ct, *[_conj(kept[p]) if p in complexes else kept[p] for p in places], **static
            )
        if whole:
            return lambda ct, kept: formula(ct, *[kept[p] for p in places], **static)
        if conjugate:
            return lambda ct, kept: ct * _conj(formula(*[kept[p] for p in places], **static))
        if len(places) == 1 and not static:
            place = places[0]
            return lambda ct, kept: ct * formula(kept[place])
        return lambda ct, kept: ct * formula(*[kept[p] for p in places], **static)


def elementwise_spec(op_type: str, *specs: Spec, dtypes: frozenset[DType] = NUMERIC) -> Spec:
    """Broadcast shapes, one dtype, which must be among `dtypes`; the result has it too."""
    check_dtypes(op_type, specs, dtypes)
    shape = specs[0].shape
    for other in specs[1:]:
        shape = broadcast(shape, other.shape)
    return specs[0].with_shape(shape)


def align(args: Sequence[Any], batched: Sequence[bool]) -> list[Any]:
    """Makes axis 0 of the batched inputs the leading axis of the broadcast: pads each behind it to one rank."""

    def rank(arg: Any, has_batch: bool) -> int:
        return len(arg.shape) - has_batch if hasattr(arg, "shape") else 0

    most = max(rank(arg, b) for arg, b in zip(args, batched, strict=True))
    out = []
    for arg, b in zip(args, batched, strict=True):
        pad = most - rank(arg, b)
        if b and pad:
            arg = CATALOGUE["reshape"](arg, shape=(arg.shape[0], *(1,) * pad, *arg.shape[1:]))
        out.append(arg)
    return out


def batch_elementwise(record: Op, args: Sequence[Any], batched: Sequence[bool], attrs: Mapping[str, Any]) -> Any:
    """Elementwise ops broadcast over the batch axis by themselves, once the ranks agree."""
    return record(*align(args, batched), **attrs)


def batch_loop(record: Op, args: Sequence[Any], batched: Sequence[bool], attrs: Mapping[str, Any]) -> Any:
    """The op row by row, for what has no batched form. At least one row."""
    rows, row = CATALOGUE["stack"], CATALOGUE["strided_slice"]
    n = next(arg.shape[0] for arg, b in zip(args, batched, strict=True) if b)
    return rows(
        *[
            record(*[row(arg, index=(k,)) if b else arg for arg, b in zip(args, batched, strict=True)], **attrs)
            for k in range(n)
        ]
    )


def batch_all(args: Sequence[Any], batched: Sequence[bool]) -> list[Any]:
    """Every argument with the leading batch axis: those without it are repeated."""
    n = next(arg.shape[0] for arg, b in zip(args, batched, strict=True) if b)
    repeat = CATALOGUE["broadcast_to"]
    return [arg if b else repeat(arg, shape=(n, *arg.shape)) for arg, b in zip(args, batched, strict=True)]


def elementwise(
    *formulas: Formula,
    jvp: Sequence[Formula] | None = None,
    op_type: str,
    tf: Sequence[str] = (),
    dtypes: frozenset[DType] = NUMERIC,
    infer: Callable[..., Spec] | None = None,
    domain: tuple[float, float] = (-1.5, 1.5),
    samples: Samples | None = None,
    temporaries: int = 0,
    like: Sequence[int] | None = None,
    name: str | None = None,
    args: str = "",
    refuses: Sequence[str] = (),
) -> Callable[[Forward], Op]:
    """An op that treats each element by itself; arrays broadcast.

    Args:
        formulas: For each input its partial derivative: a function of what it needs, the name of an input, 1, -1, 0
            (zero, which is not None), NON_DIFFERENTIABLE (None); see `Factor`.
        jvp: Those of forward mode, where they are written differently.
        op_type: TensorFlow's op type.
        tf: TensorFlow's public names.
        dtypes: What it takes.
        infer: Spec rule, where the default (one dtype in, the same out) does not hold.
        domain: Where random samples are drawn from.
        samples: Instead of random ones.
        temporaries: How many arrays of the result's size the forward needs beside it at its peak.
        like: See `Op.like`; by default Python numbers take the dtype of any array input.
        name: Where the function's name is not the op's.
        args: TensorFlow's argument names; `x y` for two inputs.
        refuses: See `Op.refuses`.
    """

    def decorate(forward: Forward) -> Op:
        inputs, _ = array_parameters(forward)
        n = len(inputs)

        def default_infer(*specs: Spec, **_: Any) -> Spec:
            return elementwise_spec(op_type, *specs, dtypes=dtypes)

        def workspace(*specs: Spec, **attrs: Any) -> int:
            return temporaries * (infer or default_infer)(*specs, **attrs).nbytes

        def drawn() -> list[Sample]:
            low, high = domain
            made = [sample(*[(2, 3)] * n, low=low, high=high), sample(*[()] * n, seed=1, low=low, high=high)]
            if n > 1:
                made.append(sample((2, 1, 3), *[(4, 1)] * (n - 1), seed=2, low=low, high=high))
                made.append(sample((3,), *[float(low + 0.7 * (high - low))] * (n - 1), seed=3, low=low, high=high))
            return made

        rules = [formulas[0]] * n if len(formulas) == 1 and isinstance(formulas[0], Gradient) else formulas
        return op(
            infer=infer or default_infer,
            vjp=[f if isinstance(f, Gradient) else Factor(f, backward=True) for f in rules],  # type: ignore[misc]
            jvp=[f if isinstance(f, Gradient) else Factor(f, backward=False) for f in jvp or rules],  # type: ignore[misc]
            batch=batch_elementwise,
            samples=drawn if samples is None else samples,
            op_type=op_type,
            tf=tf,
            weak=n > 1,
            like=like if like is not None else (0,) * n,
            workspace=workspace if temporaries else None,
            name=name,
            args=args or ("x y" if n == 2 else ""),
            refuses=refuses,
        )(forward)

    return decorate


def comparison(
    *, op_type: str, tf: Sequence[str] = (), dtypes: frozenset[DType] = NUMERIC, samples: Samples | None = None
) -> Callable[[Forward], Op]:
    """Elementwise to bool; non-differentiable."""

    def infer(*specs: Spec) -> Spec:
        return elementwise_spec(op_type, *specs, dtypes=dtypes).with_dtype(BOOL)

    return elementwise(NON_DIFFERENTIABLE, op_type=op_type, tf=tf, dtypes=dtypes, infer=infer, samples=samples)


# --------------------------------------------------------------------------------------------------------- reductions
def reduced(shape: Shape, axis: int | tuple[int, ...] | None, keepdims: bool) -> Shape:
    """The shape after reducing `shape` over `axis`."""
    axes = axes_in(axis, len(shape))
    if keepdims:
        return tuple(1 if i in axes else n for i, n in enumerate(shape))
    return tuple(n for i, n in enumerate(shape) if i not in axes)


def restore(ct: Any, x_spec: Spec, axis: int | tuple[int, ...] | None) -> Any:
    """A reduction's result, or its ct, with the reduced axes back as length 1, whatever keepdims was."""
    shape = reduced(x_spec.shape, axis, keepdims=True)
    return ct if ct.shape == shape else CATALOGUE["reshape"](ct, shape=shape)


def batch_axes(record: Op, args: Sequence[Any], batched: Sequence[bool], attrs: Mapping[str, Any]) -> Any:
    """Ops of one array with an `axis`: every axis moves one back."""
    (x,) = args
    axis, ndim = attrs["axis"], len(x.shape) - 1
    moved = axis_in(axis, ndim) + 1 if isinstance(axis, int) else tuple(a + 1 for a in axes_in(axis, ndim))
    return record(x, **{**attrs, "axis": moved})


def reduction(
    *,
    vjp: Rule | Gradient,
    jvp: Rule | Gradient | None = None,
    op_type: str,
    tf: Sequence[str] = (),
    dtypes: frozenset[DType] = NUMERIC,
    result: Callable[[DType], DType] = lambda dtype: dtype,
    domain: tuple[float, float] = (-1.5, 1.5),
    extra: Samples = (),
    workspace: Callable[..., int] | None = None,
) -> Callable[[Forward], Op]:
    """An op `(xp, x, *, axis: Axes = None, keepdims: bool = False)` over some or all axes."""

    def infer(x: Spec, *, axis: int | tuple[int, ...] | None, keepdims: bool) -> Spec:
        check_dtypes(op_type, (x,), dtypes)
        return Spec.of(reduced(x.shape, axis, keepdims), result(x.dtype))

    def samples() -> list[Sample]:
        low, high = domain
        drawn = [
            sample((2, 3, 4), axis=axis, keepdims=keep, seed=i, low=low, high=high)
            for i, (axis, keep) in enumerate([(None, False), (1, False), ((0, 2), True), (-1, True), ((), False)])
        ]
        drawn.append(sample((), seed=9, low=low, high=high))
        if dtypes == frozenset((BOOL,)):
            return [Sample((one.inputs[0] > 0,), one.attrs) for one in drawn]
        return [*drawn, *listed(extra)()]

    return op(
        infer=infer,
        vjp=vjp,
        jvp=jvp,
        batch=batch_axes,
        samples=samples,
        op_type=op_type,
        tf=tf,
        workspace=workspace,
        args="input_tensor axis keepdims",
    )


# ------------------------------------------------------------------------------------------------------------- linear
def linear(
    *,
    infer: Callable[..., Spec],
    vjp: Rule,
    batch: Callable[..., Any],
    samples: Samples,
    op_type: str,
    tf: Sequence[str] = (),
    views: bool = False,
    passes: bool = False,
    workspace: Callable[..., int] | None = None,
    args: str = "",
) -> Callable[[Forward], Op]:
    """A linear map of its one array: its jvp is the op itself, applied to the tangent."""

    def decorate(forward: Forward) -> Op:
        attrs = Schema.of(forward.__name__, forward).attrs
        made: list[Op] = []

        def jvp(t: Any, **bound: Any) -> Any:
            return made[0](t, **bound)

        jvp.needs = ("t", *(attr.name for attr in attrs))  # type: ignore[attr-defined]  # read by op.needs
        record = op(
            infer=infer,
            vjp=vjp,
            jvp=jvp,
            batch=batch,
            samples=samples,
            op_type=op_type,
            tf=tf,
            views=views,
            passes=passes,
            workspace=workspace,
            args=args,
        )(forward)
        made.append(record)
        return record

    return decorate


# ---------------------------------------------------------------------------------------------------------- composite
def composite(
    *, op_type: str, tf: Sequence[str] = (), samples: Samples, args: str = "", like: Sequence[int] | None = None
) -> Callable[[Forward], Op]:
    """An op written on other ops: `(x, …, *, attributes)`, without `xp`. It needs no rule of its own.

    Python numbers come to it as arrays: two of them meeting inside would lose the dtype that they are meant to take.
    `like` is `Op.like`; by default all inputs take one dtype.
    """

    def decorate(written: Forward) -> Op:
        def forward(xp: Any, *args: Any, **attrs: Any) -> Any:
            return written(*args, **attrs)

        def infer(*specs: Spec, **attrs: Any) -> Spec:
            return trace_spec(written, specs, attrs)

        signature = inspect.signature(written)
        xp = inspect.Parameter("xp", inspect.Parameter.POSITIONAL_OR_KEYWORD)
        forward.__signature__ = signature.replace(parameters=[xp, *signature.parameters.values()])  # type: ignore[attr-defined]
        forward.__name__, forward.__doc__ = written.__name__, written.__doc__
        return op(
            infer=infer,
            vjp=NON_DIFFERENTIABLE,  # never asked: the expansion is what is recorded
            batch=None,
            samples=samples,
            op_type=op_type,
            tf=tf,
            expand=written,
            like=(0,) * len(array_parameters(forward)[0]) if like is None else like,
            args=args,
        )(forward)

    return decorate
