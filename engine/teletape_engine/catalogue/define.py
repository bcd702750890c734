"""Defining an op: the `@op` decorator, the samples that its laws are checked on, and the dtype checks of spec rules.

The families of `rules` end in `@op`; it stands apart so that an op which fits no family needs nothing else.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from teletape_engine.arrays import BACKENDS
from teletape_engine.catalogue.attributes import Schema
from teletape_engine.catalogue.op import CATALOGUE, Gradient, Op, Rule, Sample
from teletape_engine.errors import InvalidArgumentError
from teletape_engine.spec import KERNEL_NAMES, DType, Spec

Forward: TypeAlias = Callable[..., Any]
Samples: TypeAlias = Callable[[], Sequence[Sample]] | Sequence[Sample]


# ------------------------------------------------------------------------------------------------- what the ops take
def check_dtypes(op_type: str, specs: Sequence[Spec], dtypes: frozenset[DType]) -> None:
    """One dtype for all inputs, and one that the op takes.

    Raises:
        InvalidArgumentError: In TensorFlow's words.
    """
    first = specs[0].dtype
    if first not in dtypes:
        if len(dtypes) == 1:
            check_dtype(op_type, 0, specs[0], *dtypes)
        takes = ", ".join(name for dtype, name in KERNEL_NAMES.items() if dtype in dtypes)
        raise InvalidArgumentError(
            f"Value for attr 'T' of {KERNEL_NAMES[first]} is not in the list of allowed values: {takes}"
        )
    for i, spec in enumerate(specs):
        check_dtype(op_type, i, spec, first)


def check_dtype(op_type: str, i: int, spec: Spec, dtype: DType) -> None:
    """InvalidArgumentError unless input `i` has that dtype."""
    if spec.dtype is not dtype:
        raise InvalidArgumentError(
            f"cannot compute {op_type} as input #{i}(zero-based) was expected to be a {KERNEL_NAMES[dtype]} tensor but "
            f"is a {KERNEL_NAMES[spec.dtype]} tensor"
        )


# ------------------------------------------------------------------------------------------------------------ samples
def sample(*inputs: Any, seed: int = 0, low: float = -1.5, high: float = 1.5, **attrs: Any) -> Sample:
    """Inputs for the laws: a tuple is a shape, filled from [low, high) as float64; arrays and numbers stay."""
    random = np.random.default_rng(seed)
    made = tuple(random.uniform(low, high, one) if isinstance(one, tuple) else one for one in inputs)
    return Sample(made, attrs)


def listed(samples: Samples) -> Callable[[], Sequence[Sample]]:
    """Samples as a function that makes them."""
    return samples if callable(samples) else lambda: samples


# ----------------------------------------------------------------------------------------------------------------- op
def op(
    *,
    infer: Callable[..., Spec],
    vjp: Sequence[Rule | Gradient] | Rule | Gradient,
    jvp: Sequence[Rule | Gradient] | Rule | Gradient | None = None,
    batch: Callable[..., Any] | None,
    samples: Samples,
    op_type: str,
    tf: Sequence[str] = (),
    sparse: Sequence[int] = (),
    passes: bool = False,
    weak: bool = False,
    like: Sequence[int] | None = None,
    views: bool = False,
    dynamic: bool = False,
    refuses: Sequence[str] = (),
    symmetric: Sequence[int] = (),
    expand: Callable[..., Any] | None = None,
    workspace: Callable[..., int] | None = None,
    backends: frozenset[str] = BACKENDS,
    name: str | None = None,
    args: str = "",
) -> Callable[[Forward], Op]:
    """Registers the decorated forward as an op; see `Op` for each field.

    `vjp` and `jvp`: one rule an input, or one Gradient for all. A jvp that is not given is NOT_REGISTERED where the vjp
    is, and NON_DIFFERENTIABLE where the vjp says so. `args`: TensorFlow's argument names, where they are not ours.
    """

    def decorate(forward: Forward) -> Op:
        inputs, variadic = array_parameters(forward)
        vjps = _spread(vjp, inputs)
        if jvp is None and not all(isinstance(rule, Gradient) for rule in vjps):
            raise TypeError(f"op {forward.__name__}: a vjp without a jvp")
        jvps = vjps if jvp is None else _spread(jvp, inputs)
        fits = (1, 2) if variadic else (len(inputs),)
        if len(vjps) not in fits or len(jvps) != len(vjps):
            raise TypeError(f"op {forward.__name__}: {len(inputs)} inputs, {len(vjps)} vjp and {len(jvps)} jvp rules")
        called = name or forward.__name__.rstrip("_")
        record = Op(
            name=called,
            op_type=op_type,
            tf=tuple(tf),
            arguments=tuple(args.split()),
            inputs=inputs,
            variadic=variadic,
            forward=forward,
            infer=infer,
            workspace=workspace,
            vjp=vjps,
            jvp=jvps,
            batch=batch,
            sparse=frozenset(sparse),
            passes=passes,
            weak=weak,
            like=tuple(like) if like is not None else tuple(range(len(inputs))),
            views=views,
            dynamic=dynamic,
            refuses=tuple(inputs.index(name) for name in refuses),
            expand=expand,
            backends=backends,
            samples=listed(samples),
            doc=inspect.getdoc(forward) or "",
            schema=Schema.of(called, forward),
            symmetric=frozenset(symmetric),
        )
        if not record.doc:
            raise TypeError(f"op {called}: no docstring")
        return CATALOGUE.add(record)

    return decorate


def array_parameters(forward: Forward) -> tuple[tuple[str, ...], bool]:
    """Names of the arrays that a forward takes after `xp`, and whether it takes any number of them."""
    parameters = list(inspect.signature(forward).parameters.values())[1:]
    variadic = [p.name for p in parameters if p.kind is p.VAR_POSITIONAL]
    if variadic:
        return (variadic[0],), True
    return tuple(p.name for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD), False


def _spread(rules: Sequence[Rule | Gradient] | Rule | Gradient, inputs: tuple[str, ...]) -> tuple[Rule | Gradient, ...]:
    if isinstance(rules, Gradient):
        return (rules,) * len(inputs)
    return tuple(rules) if isinstance(rules, Sequence) else (rules,)
