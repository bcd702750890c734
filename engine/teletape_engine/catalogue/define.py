"""Defining an op: the `@op` decorator, the samples that its laws are checked on, and the dtype checks of spec rules.

The decorators of `families` end in `@op`; an op that fits no family uses it directly.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from dataclasses import fields
from typing import Any, TypeAlias, TypeVar

import numpy as np

from teletape_engine.catalogue.attributes import Schema
from teletape_engine.catalogue.binding import by_name
from teletape_engine.catalogue.op import CATALOGUE, NOTHING, Cut, OnGpu, Op, Reach, Sample, Trait
from teletape_engine.catalogue.operand import Operand
from teletape_engine.catalogue.rule import NoGradient, Rule
from teletape_engine.catalogue.signature import Functions, functions_of
from teletape_engine.errors import InvalidArgumentError
from teletape_engine.spec import KERNEL_NAMES, DType, Spec
from teletape_engine.suggestions import with_nearest

F = TypeVar("F", bound=Callable[..., Any])

Forward: TypeAlias = Callable[..., Any]
Formula: TypeAlias = Callable[..., Any] | Rule | NoGradient  #: What an op is given for one input.
Samples: TypeAlias = Callable[[], Sequence[Sample]] | Sequence[Sample]


# ------------------------------------------------------------------------------------------------- what the ops take
def check_word(attr: str, word: object, allowed: Sequence[str]) -> None:
    """Raises InvalidArgumentError with TensorFlow's text, and the nearest words, if an attribute's is not allowed."""
    if word not in allowed:
        words = ", ".join(f'"{other}"' for other in allowed)
        refusal = f"Value for attr '{attr}' of \"{word}\" is not in the list of allowed values: {words}"
        raise InvalidArgumentError(with_nearest(refusal, word, allowed))


def check_dtypes(op_type: str, specs: Sequence[Spec | Operand], dtypes: frozenset[DType]) -> None:
    """Checks that all inputs have one dtype, and that the op takes it.

    Raises:
        InvalidArgumentError: They do not; the message is TensorFlow's.
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


def check_dtype(op_type: str, i: int, spec: Spec | Operand, dtype: DType) -> None:
    """Raises InvalidArgumentError unless input `i` has that dtype."""
    if spec.dtype is not dtype:
        raise InvalidArgumentError(
            f"cannot compute {op_type} as input #{i}(zero-based) was expected to be a {KERNEL_NAMES[dtype]} tensor but "
            f"is a {KERNEL_NAMES[spec.dtype]} tensor"
        )


# ------------------------------------------------------------------------------------------------------------ samples
def sample(*inputs: Any, seed: int = 0, low: float = -1.5, high: float = 1.5, **attrs: Any) -> Sample:
    """Inputs for the laws: a tuple is a shape, filled from [low, high) as float64; arrays and numbers stay."""

    def draw() -> tuple[Any, ...]:
        random = np.random.default_rng(seed)
        return tuple(random.uniform(low, high, value) if isinstance(value, tuple) else value for value in inputs)

    return Sample(draw, attrs)


def listed(samples: Samples) -> Callable[[], Sequence[Sample]]:
    """Samples as a function that returns them."""
    return samples if callable(samples) else lambda: samples


# ----------------------------------------------------------------------------------------------------------------- op
def on_gpu(**needs: str) -> Callable[[F], F]:
    """Says what a forward needs on a GPU: a decorator below that of the op; the arguments are the fields of OnGpu."""
    record = OnGpu(**needs)
    if record == NOTHING:
        raise TypeError(f"say one of {', '.join(field.name for field in fields(OnGpu))}")

    def decorate(forward: F) -> F:
        forward.__dict__["on_gpu"] = record
        return forward

    return decorate


def op(
    *,
    infer: Callable[..., Spec | tuple[Spec, ...]],
    vjp: Sequence[Formula] | Formula,
    jvp: Sequence[Formula] | Formula | None = None,
    batch: Callable[..., Any] | None,
    samples: Samples,
    op_type: str = "",
    tf: Functions = "",
    results: str = "y",
    sparse: Sequence[int] = (),
    weak: bool = False,
    like: Sequence[int] | None = None,
    views: bool = False,
    dynamic: bool = False,
    refuses: Sequence[str] = (),
    symmetric: Sequence[int] = (),
    integers: Sequence[str] = (),
    traits: Iterable[Trait] = (),
    reach: Reach = Reach.ALL,
    expand: Callable[..., Any] | None = None,
    workspace: Callable[..., int] | None = None,
    work: Callable[..., int] | None = None,
    cut: Callable[..., Cut | None] | None = None,
    name: str = "",
    args: str = "",
) -> Callable[[Forward], Op]:
    """Registers the decorated forward as an op.

    The arguments are the fields of `Op`, except that `vjp` and `jvp` are one rule for each input (a function or a
    `Rule`), or one NoGradient for all; without `jvp` it is what `vjp` is, which must then be NoGradient. `op_type` is
    by default the name in CamelCase. `tf` holds names, separated by spaces, of the TensorFlow function that takes the
    op's inputs and attributes in order, under the names in `args` if they are not ours; or `Function`s, which say more.
    `results` holds names of several results, separated by spaces.
    `refuses` and `integers` hold names of inputs. What a GPU needs is said with `on_gpu`, below this decorator.
    """

    def decorate(forward: Forward) -> Op:
        inputs, variadic = array_parameters(forward)
        vjps = _rules(vjp, inputs)
        if jvp is None and not all(isinstance(rule, NoGradient) for rule in vjps):
            raise TypeError(f"op {forward.__name__}: a vjp without a jvp")
        jvps = vjps if jvp is None else _rules(jvp, inputs)
        fits = (1, 2) if variadic else (len(inputs),)
        if len(vjps) not in fits or len(jvps) != len(vjps):
            raise TypeError(f"op {forward.__name__}: {len(inputs)} inputs, {len(vjps)} vjp and {len(jvps)} jvp rules")
        called = name or forward.__name__.rstrip("_")
        schema = Schema.of(called, forward)
        record = Op(
            name=called,
            op_type=op_type or camel_case(called),
            functions=functions_of(tf, args.split(), inputs, variadic, schema),
            inputs=inputs,
            results=tuple(results.split()),
            variadic=variadic,
            forward=forward,
            infer=infer,
            workspace=workspace,
            work=work,
            cut=cut,
            vjp=vjps,
            jvp=jvps,
            batch=batch,
            sparse=frozenset(sparse),
            weak=weak,
            like=tuple(like) if like is not None else tuple(range(len(inputs))),
            views=views,
            dynamic=dynamic,
            refuses=tuple(inputs.index(name) for name in refuses),
            expand=expand,
            on_gpu=forward.__dict__.get("on_gpu", NOTHING),
            samples=listed(samples),
            doc=inspect.getdoc(forward) or "",
            schema=schema,
            symmetric=frozenset(symmetric),
            integers=frozenset(map(inputs.index, integers)),
            traits=frozenset(traits),
            reach=reach,
        )
        if not record.doc:
            raise TypeError(f"op {called}: no docstring")
        return CATALOGUE.add(record)

    return decorate


def camel_case(name: str) -> str:
    """`reduce_sum` as `ReduceSum`: TensorFlow's op type of most ops."""
    return "".join(word.capitalize() for word in name.split("_"))


def array_parameters(forward: Forward) -> tuple[tuple[str, ...], bool]:
    """Names of the arrays that a forward takes after `xp`, and whether it takes any number of them."""
    parameters = list(inspect.signature(forward).parameters.values())[1:]
    variadic = [p.name for p in parameters if p.kind is p.VAR_POSITIONAL]
    if variadic:
        return (variadic[0],), True
    return tuple(p.name for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD), False


def _rules(formulas: Sequence[Formula] | Formula, inputs: tuple[str, ...]) -> tuple[Rule | NoGradient, ...]:
    if isinstance(formulas, NoGradient):
        return (formulas,) * len(inputs)
    listed = formulas if isinstance(formulas, Sequence) else (formulas,)
    return tuple(formula if isinstance(formula, Rule | NoGradient) else by_name(formula) for formula in listed)
