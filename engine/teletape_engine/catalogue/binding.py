"""Binding: what is decided once for an op on inputs of certain specs and with certain attributes.

`bind` gives a `Bound`: the result's spec, the price, and for each set of tracked inputs a `CallPlan` that says what a
tape keeps and which rules run. `trace_spec` follows a function of operands by specs alone. Long because calls, their
plans and their rules refer to each other.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from operator import itemgetter
from typing import Any, Final, NamedTuple

import numpy as np

from teletape_engine.arrays import checks
from teletape_engine.catalogue.attributes import NO_ATTRS, Attrs, keep
from teletape_engine.catalogue.namespace import ops
from teletape_engine.catalogue.op import CATALOGUE, Cut, Op, Reach, Trait, Work, WorkKind
from teletape_engine.catalogue.operand import Operand, Runtime
from teletape_engine.catalogue.rule import BoundRule, NoGradient, Rule
from teletape_engine.catalogue.slices import GradientKind, SparseGradient, densify
from teletape_engine.errors import InvalidArgumentError, TeletapeError, UnimplementedError
from teletape_engine.spec import COMPLEX, DTYPES, FLOATING, STRING, WEAK, DType, Spec, Weak

#: Counts of a millisecond or more: only such work is estimated before it begins.
_HEAVY: Final = {WorkKind.PRODUCTS: 1 << 25, WorkKind.LOOPS: 1 << 20, WorkKind.ELEMENTS: 1 << 22}
_MAX_BOUND: Final = 1024  # bound calls of one op; past that a part of its table is emptied
_MAX_PLANS: Final = 64  # plans of one bound call, likewise
_MAX_RULES: Final = 1 << 17  # in the plans of all bound calls, of 800 bytes each; past that half of the calls go
_rules = 0  # at least that many


#: Counts of up to a second: longer work is computed in blocks of about this size, if the op can be cut. That costs 5 %.
_BLOCK: Final = {WorkKind.PRODUCTS: 1 << 35, WorkKind.LOOPS: 1 << 28, WorkKind.ELEMENTS: 1 << 31}
_FEWEST: Final = 1024  # entries of the axis that a block has: BLAS is slow with fewer rows


class TapeCall:
    """A call on a tape: a bound op, or a call that is in no catalogue.

    Attributes:
        name: For messages.
        op_type: TensorFlow's op type.
        specs: Of the inputs; Python numbers as scalars of the dtype that they take.
        spec: Of the result; of several, of the first.
        outputs: Of the results.
        attrs: The canonical attributes.
        traits: Of the op.
        work: About what computing it takes; None: so little that it is not estimated.
    """

    __slots__ = ("attrs", "name", "op_type", "outputs", "spec", "specs", "traits", "work")

    def __init__(
        self,
        name: str,
        op_type: str,
        specs: tuple[Spec, ...],
        outputs: tuple[Spec, ...],
        attrs: Attrs = NO_ATTRS,
        traits: frozenset[Trait] = frozenset(),
    ) -> None:
        self.name, self.op_type, self.attrs, self.traits = name, op_type, attrs, traits
        self.specs, self.outputs, self.spec = specs, outputs, outputs[0]
        self.work: Work | None = None

    def input_name(self, i: int) -> str:
        """The name of input `i` in messages."""
        return f"xs[{i}]"

    def kept_name(self, position: int) -> str:
        """The name of what a tape keeps, by its position among (*inputs, *results)."""
        return self.input_name(position)


class Select(TapeCall):
    """One result of a call of several, on a tape: its input is the call, which has no value of its own.

    Attributes:
        call: The call.
        index: The number of the result.
    """

    __slots__ = ("call", "index")

    def __init__(self, call: TapeCall, index: int) -> None:
        name = f"{call.name}.{call.op.results[index]}" if isinstance(call, Bound) else "custom_output"
        super().__init__(name, "Identity", (call.spec,), (call.outputs[index],))
        self.call, self.index = call, index


class CallPlan(NamedTuple):
    """What a tape keeps of one call when the inputs in a mask are tracked, and how a gradient passes back through it.

    Attributes:
        bound: The call.
        mask: The tracked inputs (bit i: input i); below zero: every input is kept.
        picks: Which of (*inputs, *results) are kept, as positions.
        keep: From (*inputs, *results) to what is kept.
        unregistered: Whether the op has no gradient registered.
        sparse: Whether a rule may give a sparse gradient.
        passes: Whether the rules take sparse gradients as they are, and pass them on.
        rules: (input, `rule(ct, kept) -> ct of the input`) for each tracked differentiable input.
        structural: The same without arrays: from GradientKind.DENSE or a SparseGradient of specs to one of those.
    """

    bound: TapeCall
    mask: int
    picks: tuple[int, ...]
    keep: Callable[[tuple[Any, ...]], tuple[Any, ...]]
    unregistered: bool
    sparse: bool
    passes: bool
    rules: tuple[tuple[int, BoundRule], ...]
    structural: tuple[tuple[int, BoundRule], ...]

    @classmethod
    def without_rules(cls, call: TapeCall) -> CallPlan:
        """The plan of a call whose gradient does not come from rules: it keeps nothing of itself."""
        return cls(call, 0, (), _keeper(()), unregistered=False, sparse=False, passes=False, rules=(), structural=())


def _keeper(picks: tuple[int, ...]) -> Callable[[tuple[Any, ...]], tuple[Any, ...]]:
    if not picks:
        return lambda values: ()
    if len(picks) == 1:
        (only,) = picks
        return lambda values: (values[only],)
    return itemgetter(*picks)


class Bound(TapeCall):
    """An op bound to the specs and attributes of a call.

    In addition to the fields of `TapeCall`:

    Attributes:
        op: The op.
        price: Bytes that running it may allocate: the results and the workspace.
        forward: `forward(xp, *arrays)`, the attributes bound.
        trackable: Whether tapes may track a result. The result of stop_gradient is tracked no more than a constant.
        plain: The array that the forward returns is the new value: one result, no expansion, no view, a shape known
            beforehand, no work that is estimated.
        selects: For each of several results the call that selects it.
        plans: Plans by mask, computed on demand.
        lowered: The call as instructions, by layouts of the inputs; see `plans.lower`.
        blocks: How a long forward is cut, and how many entries of the axis a block has; None: it runs as a whole.
    """

    __slots__ = ("_jvp_rules", "blocks", "forward", "lowered", "op", "plain", "plans", "price", "selects", "trackable")

    def __init__(self, op: Op, specs: tuple[Spec, ...], attrs: Attrs) -> None:
        try:
            inferred = op.infer(*specs, **attrs)
            outputs = inferred if isinstance(inferred, tuple) else (inferred,)
            super().__init__(op.name, op.op_type, specs, outputs, attrs, op.traits)
            self.price = sum([spec.nbytes for spec in outputs]) + (op.workspace(*specs, **attrs) if op.workspace else 0)
            self.work = None if op.expand else _heavy_work(op, specs, self.spec, attrs)
        except TeletapeError as error:
            error.details.setdefault("op", op.name)
            raise
        self.op = op
        self.forward: Callable[..., Any] = partial(op.forward, **attrs) if attrs else op.forward
        several = len(outputs) > 1
        if not (
            any(spec.size for spec in outputs) or op.refuses or op.dynamic or op.expand or Trait.ASSERTS in op.traits
        ):
            self.forward = partial(_nothing, outputs)
        elif self.spec.dtype.name == "bfloat16":
            rounded = self.forward if several else _rounded(self.forward)  # several have dtypes of their own
            self.forward = _on_cpu_alone(rounded, op, checks.refusal_of("bfloat16"))
        elif STRING in (self.spec.dtype, *(spec.dtype for spec in specs)):
            self.forward = _on_host(self.forward, self.spec.dtype)
        elif self.spec.dtype.kind in "iu" and _moves(op):
            self.forward = _with_bounds(self.forward)
        elif op.on_gpu.missing:
            text = f"op {op.name!r} is not offered on a GPU: {op.on_gpu.missing}. Instead: {op.on_gpu.instead}"
            self.forward = _on_cpu_alone(self.forward, op, text)
        self.trackable = any(spec.differentiable for spec in outputs) and Trait.STOPS_GRADIENT not in op.traits
        self.blocks = _blocks(op, self) if self.work is not None and op.cut is not None else None
        self.plain = not (several or op.views or op.dynamic or op.expand or self.work)
        self.selects = tuple([CallPlan.without_rules(Select(self, i)) for i in range(len(outputs))]) if several else ()
        self.plans: dict[int, CallPlan] = {}
        self.lowered: dict[Any, Any] | None = None
        self._jvp_rules: dict[int, tuple[tuple[int, BoundRule], ...]] = {}

    def input_name(self, i: int) -> str:
        """The name of input `i` in messages."""
        return self.op.input_name(i)

    def kept_name(self, position: int) -> str:
        """The name of what a tape keeps, by its position among (*inputs, *results)."""
        n = len(self.specs)
        return self.op.input_name(position) if position < n else self.op.results[position - n]

    def jvp_rules(self, mask: int) -> tuple[tuple[int, BoundRule], ...]:
        """(input, `rule(t, (*inputs, *results)) -> its term of the result's tangent`) for the inputs in `mask`.

        Inputs without a term are left out: those declared to have none, and those whose rule `vanishes`.
        """
        rules = self._jvp_rules.get(mask)
        if rules is None:
            everything = dict(enumerate(range(len(self.specs) + len(self.outputs))))
            rules = self._jvp_rules[mask] = tuple(
                (i, _rounded(run) if self.spec.dtype.name == "bfloat16" else run)
                for i, rule in self._rules(self.op.jvp, mask)
                if rule.vanishes is None or not rule.vanishes(self.specs[i])
                for run in (rule.bind(self, i, everything),)
            )
        return rules

    def plan(self, mask: int) -> CallPlan:
        """The plan for the tracked inputs in `mask` (bit i: input i); below zero: one that keeps every input."""
        plan = self.plans.get(mask)
        if plan is None:
            plan = self._plan(mask)
            keep(self.plans, mask, plan, _MAX_PLANS)
            _count_rules(1 + len(plan.rules))
        return plan

    def _plan(self, mask: int) -> CallPlan:
        op, n = self.op, len(self.specs)
        chosen = list(self._rules(op.vjp, abs(mask)))
        picks = {position for _, rule in chosen for position in self._residuals(rule)}
        if not op.registered:  # a gradient that the caller registers may use any of it
            picks.update(range(n + len(self.outputs)))
        if mask < 0:
            picks.update(range(n))
        positions = tuple(sorted(picks))
        slots = {position: slot for slot, position in enumerate(positions)}
        return CallPlan(
            self,
            mask,
            positions,
            _keeper(positions),
            unregistered=not op.registered,
            sparse=any(i in op.sparse for i, _ in chosen),
            passes=Trait.ALIASES in op.traits,
            rules=tuple((i, self._vjp(rule, i, slots)) for i, rule in chosen),
            structural=tuple((i, self._structural(rule, i)) for i, rule in chosen),
        )

    def _rules(self, rules: tuple[Rule | NoGradient, ...], mask: int) -> list[tuple[int, Rule]]:
        """The inputs in `mask` that are differentiable and have a rule, with it."""
        chosen = []
        for i, spec in enumerate(self.specs):
            rule = self.op.rule(rules, i)
            if mask >> i & 1 and spec.differentiable and not isinstance(rule, NoGradient):
                chosen.append((i, rule.of.get(spec.dtype, rule)))
        return chosen

    def _vjp(self, rule: Rule, i: int, slots: Mapping[int, int]) -> BoundRule:
        run = rule.bind(self, i, slots)
        run = _of_dense(run) if self.selects else run
        return _rounded(run) if self.specs[i].dtype.name == "bfloat16" and Trait.ALIASES not in self.op.traits else run

    def _structural(self, rule: Rule, i: int) -> BoundRule:
        if Trait.ALIASES in self.op.traits:
            return lambda ct, residuals: ct
        if i not in self.op.sparse:
            return lambda ct, residuals: GradientKind.DENSE
        runtime = _SpecRuntime()
        operands = [Operand(runtime, _SpecOnly(spec)) for spec in (*self.specs, self.spec)]
        gradient = rule.bind(self, i, dict(enumerate(range(len(operands)))))(operands[-1], operands)
        if not isinstance(gradient, SparseGradient):  # sparse only with other attributes
            return lambda ct, residuals: GradientKind.DENSE
        structure = SparseGradient(gradient.values.value.spec, gradient.indices.value.spec, gradient.dense)
        return lambda ct, residuals: structure

    def _residuals(self, rule: Rule) -> list[int]:
        n = len(self.specs)
        positions = [n + k for k, name in enumerate(self.op.results) if name in rule.needs]
        if self.op.variadic:
            return positions + (list(range(n)) if self.op.inputs[0] in rule.needs else [])
        return positions + [i for i, name in enumerate(self.op.inputs) if name in rule.needs]

    def zero_derivative(self, i: int) -> bool:
        """Whether the derivative by input `i` is zero everywhere, whatever the elements are."""
        rule = self.op.rule(self.op.vjp, i)
        return isinstance(rule, Rule) and rule.zero is not None and rule.zero(self.specs[i])

    def static(self, name: str, i: int) -> Any:
        """What a rule of input `i` gets under `name` when it is no array: a spec, an attribute, the input's number.

        Raises:
            TypeError: The op has nothing of that name.
        """
        op = self.op
        if name == "i":
            return i
        if name.endswith("_spec") and name[:-5] in op.results:
            return self.outputs[op.results.index(name[:-5])]
        if op.variadic and name == f"{op.inputs[0]}_specs":
            return self.specs
        if not op.variadic and name.endswith("_spec") and name[:-5] in op.inputs:
            return self.specs[op.inputs.index(name[:-5])]
        if name in self.attrs:
            return self.attrs[name]
        raise TypeError(f"{op.name}: a rule needs {name!r}, which is no input, spec or attribute of the op")


def work_of(op: Op, specs: tuple[Spec, ...], result: Spec, attrs: Attrs) -> Work:
    """About what a call computes."""
    if op.work is None:
        return Work(WorkKind.ELEMENTS, 0 if op.views else result.size)
    floating = any(spec.dtype in FLOATING | COMPLEX for spec in specs[:1])
    return Work(WorkKind.PRODUCTS if floating else WorkKind.LOOPS, op.work(*specs, **attrs))


def _heavy_work(op: Op, specs: tuple[Spec, ...], result: Spec, attrs: Attrs) -> Work | None:
    """About what a call computes; None if that is little."""
    work = work_of(op, specs, result, attrs)
    return work if work.amount >= _HEAVY[work.kernel] else None


def _blocks(op: Op, bound: Bound) -> tuple[Cut, int] | None:
    assert op.cut is not None
    assert bound.work is not None
    cut = op.cut(*bound.specs, **bound.attrs)
    if cut is None:
        return None
    length = bound.spec.shape[cut.axis]
    entries = max(length * _BLOCK[bound.work.kernel] // bound.work.amount, 1)
    if bound.work.kernel is WorkKind.PRODUCTS and cut.axis == -2:
        entries = max(entries, _FEWEST)
    return (cut, entries) if entries < length else None


def _count_rules(count: int) -> None:
    """Notes that a bound call or a plan of that size was made; if there are very many, half of all are forgotten."""
    global _rules
    _rules += count
    if _rules > _MAX_RULES:
        for op in CATALOGUE.values():
            for key in list(op.bound)[::2]:
                op.bound.pop(key, None)
        bounds = [bound for op in CATALOGUE.values() for bound in list(op.bound.values())]
        _rules = sum([2 + len(bound.specs) + len(bound.plans) * (1 + len(bound.specs)) for bound in bounds])


def bind(op: Op, specs: tuple[Spec | Weak, ...], attrs: Attrs = NO_ATTRS) -> Bound:
    """The op bound to inputs of these specs; from its table if they were bound before.

    Raises:
        InvalidArgumentError: The op does not take such inputs; the message names the op.
    """
    key = (*specs, attrs)
    bound: Bound | None = op.bound.get(key)
    if bound is None:
        bound = Bound(op, op.strong_specs(specs), attrs)
        if op.takes_numbers(specs) and not attrs.nbytes:
            keep(op.bound, key, bound, _MAX_BOUND)
            _count_rules(2 + len(specs))
    return bound


def check_results(op: Op, count: int) -> None:
    """Raises InvalidArgumentError unless the op has `count` results."""
    if count != (number := len(op.results)):
        has = f"{number} outputs ({', '.join(op.results)})" if number > 1 else "1 output"
        raise InvalidArgumentError(f"op {op.name!r} has {has}, found {count} ids", op=op.name)


def by_name(
    function: Callable[..., Any],
    *,
    zero: Callable[[Spec], bool] | None = None,
    vanishes: Callable[[Spec], bool] | None = None,
) -> Rule:
    """The rule that calls `function` with the cotangent or the tangent first, and the rest by parameter name.

    Args:
        function: The formula. A parameter `**attrs` takes all attributes that no other parameter names.
        zero: See `Rule`.
        vanishes: See `Rule`.

    Raises:
        TypeError: The first parameter is not called `ct` or `t`, so that it was probably forgotten.
    """
    first, *parameters = inspect.signature(function).parameters.values()
    if first.name not in ("ct", "t"):
        raise TypeError(f"a rule takes the cotangent `ct` or the tangent `t` first, found {first.name!r}")
    names = tuple(p.name for p in parameters if p.kind is not p.VAR_KEYWORD)
    takes_attrs = len(names) < len(parameters)

    def bound_rule(bound: Bound, i: int, slots: Mapping[int, int]) -> BoundRule:
        op, n = bound.op, len(bound.specs)
        static: dict[str, Any] = {}
        arrays: list[tuple[str, int]] = []
        variadic = ""
        for name in names:
            if name in op.results:
                arrays.append((name, slots[n + op.results.index(name)]))
            elif op.variadic and name == op.inputs[0]:
                variadic = name
            elif not op.variadic and name in op.inputs:
                arrays.append((name, slots[op.inputs.index(name)]))
            else:
                static[name] = bound.static(name, i)
        if takes_attrs:
            static |= {name: value for name, value in bound.attrs.items() if name not in static}
        run = partial(function, **static) if static else function
        if variadic:
            inputs = [slots[j] for j in range(n)]
            return lambda ct, residuals: run(
                ct, **{variadic: [residuals[s] for s in inputs]}, **{k: residuals[s] for k, s in arrays}
            )
        if not arrays:
            return lambda ct, residuals: run(ct)
        if len(arrays) == 1 and names[0] == arrays[0][0]:
            slot = arrays[0][1]
            return lambda ct, residuals: run(ct, residuals[slot])
        return lambda ct, residuals: run(ct, **{name: residuals[s] for name, s in arrays})

    return Rule(names, bound_rule, vanishes=vanishes, zero=zero)


def _nothing(outputs: Sequence[Spec], xp: Any, *arrays: Any) -> Any:
    """Results without elements: forwards compute other arrays on the way, which may be large."""
    empty = tuple([(np if spec.dtype == STRING else xp).empty(spec.shape, spec.dtype) for spec in outputs])
    return empty if len(empty) > 1 else empty[0]


def _on_host(forward: Callable[..., Any], dtype: DType) -> Callable[..., Any]:
    """The forward of an op on strings: strings are on the host whatever the device, and NumPy gives one as itself.

    Other inputs are copied to the host, and a result that is no string is copied back.
    """

    def run(xp: Any, *arrays: Any, **attrs: Any) -> Any:
        device = hasattr(xp, "asnumpy")
        result = np.asarray(forward(np, *(map(xp.asnumpy, arrays) if device else arrays), **attrs), dtype=dtype)
        return xp.asarray(result) if device and dtype != STRING else result

    return run


def _moves(op: Op) -> bool:
    """Whether each element of the result is one of an input, or that in another dtype."""
    moves = op.views and op.reach is Reach.MOVES
    return moves or not op.traits.isdisjoint((Trait.ALIASES, Trait.CONVERTS, Trait.JOINS))


def _on_cpu_alone(forward: Callable[..., Any], op: Op, refusal: str) -> Callable[..., Any]:
    """The forward of an op that a GPU does not have, or not for these dtypes: refused there with that text."""

    def run(xp: Any, *arrays: Any) -> Any:
        if hasattr(xp, "asnumpy"):
            raise UnimplementedError(refusal, op=op.name)
        return forward(xp, *arrays)

    return run


def _with_bounds(forward: Callable[..., Any]) -> Callable[..., Any]:
    """The forward of an op that moves integers: on a GPU the result has the bounds of the inputs."""

    def run(xp: Any, *arrays: Any, **attrs: Any) -> Any:
        result = forward(xp, *arrays, **attrs)
        if hasattr(xp, "asnumpy"):
            checks.move_bounds(result, arrays)
        return result

    return run


def _rounded(run: Callable[..., Any]) -> Callable[..., Any]:
    """`run`, its result as bfloat16: NumPy gives float32 for a bfloat16 array and a Python float."""
    dtype = DTYPES["bfloat16"]

    def cast(array: Any) -> Any:
        return array if array is None or array.dtype == dtype else ops.cast(array, dtype=dtype)

    def rounded(*args: Any) -> Any:
        result = run(*args)
        if isinstance(result, SparseGradient):
            return result._replace(values=ops.cast(result.values, dtype=dtype))
        return tuple(map(cast, result)) if isinstance(result, tuple) else cast(result)

    return rounded


def _of_dense(rule: BoundRule) -> BoundRule:
    """The vjp rule of several results, from a list of their cotangents: slices are summed, None stays."""
    return lambda cts, residuals: rule(tuple([None if ct is None else densify(ct) for ct in cts]), residuals)


# ------------------------------------------------------------------------------------------------- abstract evaluation
class _SpecOnly(NamedTuple):
    """A recorded value of which only the spec is known."""

    spec: Spec


class _SpecRuntime(Runtime):
    """Follows ops by their specs, and records nothing."""

    def call(self, op: Op, args: Sequence[Any], attrs: Mapping[str, Any]) -> Any:
        specs = tuple(arg.value.spec if isinstance(arg, Operand) else WEAK[type(arg)] for arg in args)
        results = tuple([Operand(self, _SpecOnly(spec)) for spec in bind(op, specs, op.attrs(attrs)).outputs])
        return results if len(results) > 1 else results[0]


def trace_spec(function: Callable[..., Any], specs: Sequence[Spec], attrs: Mapping[str, Any]) -> Any:
    """The spec of the result of a function of operands, for inputs of these specs; a tuple of several."""
    runtime = _SpecRuntime()
    result = function(*[Operand(runtime, _SpecOnly(spec)) for spec in specs], **attrs)
    return tuple([each.value.spec for each in result]) if isinstance(result, tuple) else result.value.spec
