"""The Op record: one entry of the catalogue, with every rule that follows from it; and the catalogue itself.

A rule is an ordinary function whose *parameter names* say what it needs, so that what a tape must keep is read off the
formula and cannot be forgotten:

    ct              the cotangent of the result (vjp)          t           the tangent of the input (jvp)
    a, x, …         the input of that name, kept as residual   y           the result, kept as residual
    a_spec, y_spec  its shape and dtype only: nothing is kept
    axis, …         an attribute
    xs, xs_specs    a variadic op's inputs;  i: which of them the rule is for

Binding an op to the specs and attributes of a call decides everything static once: the result's spec, the price, and
for each set of tracked inputs a plan of what to keep and which rules to run.
"""

from __future__ import annotations

import enum
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from operator import itemgetter
from typing import Any, Final, NamedTuple, TypeAlias

from teletape_engine import arrays
from teletape_engine.catalogue.attributes import NO_ATTRS, Attrs, Schema
from teletape_engine.errors import InvalidArgumentError, TeletapeError, UnknownOpError
from teletape_engine.spec import DTYPES, WEAK, DType, Spec, Weak, weak_dtype

Array: TypeAlias = Any  # an array of the backend, a Python number, or an Operand
Rule: TypeAlias = Callable[..., Any]

_KEPT: Final = 4096  # bound calls an op; past that the table starts anew


class Gradient(enum.Enum):
    """What an op says where a vjp rule would stand, when it has none."""

    NOT_REGISTERED = "not_registered"  #: asking for it is a LookupError
    NONE = "none"  #: declared non-differentiable: the gradient is None


NOT_REGISTERED: Final = Gradient.NOT_REGISTERED
NON_DIFFERENTIABLE: Final = Gradient.NONE


class Slices(NamedTuple):
    """A sparse cotangent: row `values[k]` belongs at row `indices[k]` of an array of spec `dense`; duplicates add up.

    Shapes: values [n, *dense.shape[1:]], indices [n] int32 or int64. TensorFlow's IndexedSlices.
    """

    values: Any
    indices: Any
    dense: Spec


class Kind(enum.StrEnum):
    """The structure of one gradient."""

    NONE = "none"
    DENSE = "dense"
    SLICES = "slices"


class Sample(NamedTuple):
    """Inputs to test an op on: arrays as float64 or integer arrays, Python numbers as they are."""

    inputs: tuple[Any, ...]
    attrs: Mapping[str, Any]


@dataclass(frozen=True, eq=False)
class Op:
    """One op: what it computes and every rule about it.

    Attributes:
        name: The op's name on the wire and in the catalogue.
        op_type: TensorFlow's op type, as its registry and its messages name it.
        tf: Public TensorFlow names of it, without the leading `tf.`.
        arguments: TensorFlow's argument names there, for the inputs and then the attributes; empty: they are the same.
        inputs: Names of the array inputs; one name for a variadic op.
        variadic: Takes any number of arrays.
        forward: `forward(xp, *arrays, **attrs)`; `xp` is the array namespace. Pure; never writes into its inputs.
        infer: `infer(*specs, **attrs) -> Spec`; raises InvalidArgumentError.
        workspace: `workspace(*specs, **attrs)`: bytes the forward needs beside its result at its peak; None: none.
        vjp: A rule per input, or Gradient.NOT_REGISTERED / NONE for the input or for all. A variadic op has one for
            all its inputs, or one for the first and one for the others.
        jvp: A rule per input giving its share of the result's tangent.
        batch: `batch(op, args, batched, attrs)`: the op over a leading batch axis of the `batched` inputs, or None when
            the op has no array inputs.
        sparse: Inputs whose cotangent may be `Slices` when their rule is asked (with some attributes).
        passes: The cotangent reaches input 0 untouched, sparse or not (identity, a variable's read).
        weak: Takes Python numbers as they are; others get them as arrays.
        like: For each input the input whose dtype a Python number there takes; itself: none.
        views: The result may share memory with an input.
        dynamic: The result's shape depends on values: `infer` gives an upper bound, the result itself the spec.
        refuses: Integer inputs whose values the forward may refuse (an index out of range, a divisor of zero). A
            recorder without arrays that knows those values anyway can refuse them at once.
        expand: Set for a composite: `expand(*arrays, **attrs)` calls other ops, which are recorded in its place.
        backends: Where it runs.
        samples: Inputs for the laws, made by `samples()`.
        doc: What it computes; the reference page shows it.
        schema: Its attributes.
        symmetric: Inputs read as Hermitian matrices: the lower triangle alone is looked at, and the gradient is that of
            such matrices, half on either side of the diagonal, as in TensorFlow.
        bound: Calls seen so far, by specs and attributes.
    """

    name: str
    op_type: str
    tf: tuple[str, ...]
    arguments: tuple[str, ...]
    inputs: tuple[str, ...]
    variadic: bool
    forward: Callable[..., Any]
    infer: Callable[..., Spec]
    workspace: Callable[..., int] | None
    vjp: tuple[Rule | Gradient, ...]
    jvp: tuple[Rule | Gradient, ...]
    batch: Callable[..., Any] | None
    sparse: frozenset[int]
    passes: bool
    weak: bool
    like: tuple[int, ...]
    views: bool
    dynamic: bool
    refuses: tuple[int, ...]
    expand: Callable[..., Any] | None
    backends: frozenset[str]
    samples: Callable[[], Sequence[Sample]]
    doc: str
    schema: Schema
    symmetric: frozenset[int] = frozenset()
    bound: dict[Any, Bound] = field(default_factory=dict, repr=False)

    def __call__(self, *args: Array, **attrs: Any) -> Any:
        """Runs the op inside a rule: at once on bare arrays, through the recorder on operands."""
        for arg in args:
            if isinstance(arg, Operand):
                return arg.runtime.call(self, args, attrs)
        return self.forward(arrays.namespace(args), *args, **attrs)

    def __repr__(self) -> str:
        return f"<op {self.name}>"

    def signature(self) -> tuple[str, ...]:
        """The argument names of the TensorFlow function: inputs, then attributes."""
        return self.arguments or (*self.inputs, *(attr.name for attr in self.schema.attrs))

    def attrs(self, given: Mapping[str, Any]) -> Attrs:
        """The canonical attributes; BadAttributeError for a wrong one."""
        return self.schema.canonical(given)

    def input_name(self, i: int) -> str:
        """How messages call input `i`."""
        return f"{self.inputs[0]}[{i}]" if self.variadic else self.inputs[i]

    def rule(self, rules: tuple[Rule | Gradient, ...], i: int) -> Rule | Gradient:
        """The rule for input `i` among `rules`."""
        return rules[min(i, len(rules) - 1)] if self.variadic else rules[i]

    @property
    def registered(self) -> bool:
        """Whether TensorFlow's registry has an entry for it (a rule, or the declaration that there is none)."""
        return NOT_REGISTERED not in self.vjp

    def saves(self, i: int) -> tuple[str, ...]:
        """Names of what the gradient of input `i` keeps: inputs, and `y` for the result."""
        rule = self.rule(self.vjp, i)
        return () if isinstance(rule, Gradient) else tuple(n for n in needs(rule) if n in (*self.inputs, "y"))

    def call(self, specs: tuple[Spec | Weak, ...], attrs: Attrs = NO_ATTRS) -> Bound:
        """The op bound to these input specs; from the table when they were seen before.

        Raises:
            InvalidArgumentError: The op does not take such inputs; the message names the op.
        """
        key = (*specs, attrs)
        found = self.bound.get(key)
        if found is None:
            found = Bound(self, self._strong(specs), attrs)
            if self.takes_numbers(specs):
                if len(self.bound) >= _KEPT:
                    self.bound.clear()
                self.bound[key] = found
        return found

    def takes_numbers(self, specs: Sequence[Spec | Weak]) -> bool:
        """Whether the forward runs on inputs of these specs as they are, Python numbers unconverted."""
        numbers = [i for i, spec in enumerate(specs) if isinstance(spec, Weak)]
        if not numbers or not self.weak:
            return not numbers
        if self.variadic:
            return len(numbers) < len(specs)
        arrays = {self.like[i] for i, spec in enumerate(specs) if isinstance(spec, Spec)}
        return all(self.like[i] in arrays for i in numbers)

    def check_count(self, found: int) -> None:
        """InvalidArgumentError unless the op takes this many inputs."""
        if self.variadic and found == 0:
            raise InvalidArgumentError(f"op {self.name!r} takes one or more inputs, found none", op=self.name)
        if not self.variadic and found != len(self.inputs):
            takes = f"{len(self.inputs)} inputs ({', '.join(self.inputs) or 'none'})"
            raise InvalidArgumentError(f"op {self.name!r} takes {takes}, found {found}", op=self.name)

    def _strong(self, specs: tuple[Spec | Weak, ...]) -> tuple[Spec, ...]:
        self.check_count(len(specs))
        return tuple(
            Spec.of((), self.number_dtype(i, specs)) if isinstance(spec, Weak) else spec for i, spec in enumerate(specs)
        )

    def number_dtype(self, i: int, specs: Sequence[Spec | Weak]) -> DType:
        """The dtype that the Python number in place `i` takes among inputs of these specs."""
        weak = specs[i]
        assert isinstance(weak, Weak)
        group = [j for j in range(len(specs)) if self.variadic or self.like[j] == self.like[i]]
        beside = next((other.dtype for j in group if isinstance(other := specs[j], Spec)), None)
        if beside is None:  # numbers alone: the widest of them decides for all
            order = (bool, int, float, complex)
            widest = max((w.kind for j in group if isinstance(w := specs[j], Weak)), key=order.index)
            return weak_dtype(Weak(widest), None)
        try:
            return weak_dtype(weak, beside)
        except InvalidArgumentError as error:
            raise InvalidArgumentError(f"op {self.name!r}, input {self.input_name(i)}: {error}", op=self.name) from None


class Plan(NamedTuple):
    """What a tape keeps of one call when the inputs in a mask are tracked, and how to go back through it.

    Attributes:
        bound: The call.
        picks: Which of (*inputs, result) are kept, as positions.
        keep: From (*inputs, result) to what is kept.
        unregistered: Whether the op has no gradient registered.
        sparse: Whether a rule may give slices.
        rules: (input, `rule(ct, kept) -> ct of the input`) for each tracked differentiable input.
        shadow: The same without arrays: from Kind.DENSE or Slices of specs to one of those.
    """

    bound: Bound
    picks: tuple[int, ...]
    keep: Callable[[tuple[Any, ...]], tuple[Any, ...]]
    unregistered: bool
    sparse: bool
    rules: tuple[tuple[int, Rule], ...]
    shadow: tuple[tuple[int, Rule], ...]


def _keeper(picks: tuple[int, ...]) -> Callable[[tuple[Any, ...]], tuple[Any, ...]]:
    if not picks:
        return lambda values: ()
    if len(picks) == 1:
        (only,) = picks
        return lambda values: (values[only],)
    return itemgetter(*picks)


class Bound:
    """An op bound to the specs and attributes of a call: all that is static, decided once.

    Attributes:
        op, specs, attrs: What was bound; `specs` of the inputs, Python numbers as the dtype they take.
        spec: The result's.
        price: Bytes that running it may allocate: the result and the workspace.
        forward: `forward(xp, *arrays)`, the attributes bound.
        followed: Whether tapes follow the result. What stop_gradient gives is followed no more than a constant.
        plain: Nothing stands between the forward and a new value: no expansion, no view, a shape known beforehand.
        plans: Plans by mask, made as they are asked for.
    """

    __slots__ = ("_pushes", "attrs", "followed", "forward", "op", "plain", "plans", "price", "spec", "specs")

    def __init__(self, op: Op, specs: tuple[Spec, ...], attrs: Attrs) -> None:
        self.op, self.specs, self.attrs = op, specs, attrs
        try:
            self.spec = op.infer(*specs, **attrs)
            self.price = self.spec.nbytes + (op.workspace(*specs, **attrs) if op.workspace else 0)
        except TeletapeError as error:
            error.details.setdefault("op", op.name)
            raise
        self.forward = partial(op.forward, **attrs) if attrs else op.forward
        if self.spec.dtype.name == "bfloat16":
            self.forward = _rounded(self.forward)
        self.followed = self.spec.differentiable and op.op_type != "StopGradient"
        self.plain = not (op.views or op.dynamic or op.expand)
        self.plans: dict[int, Plan] = {}
        self._pushes: dict[int, tuple[tuple[int, Rule], ...]] = {}

    def pushes(self, mask: int) -> tuple[tuple[int, Rule], ...]:
        """(input, `rule(t, (*inputs, result)) -> its share of the result's tangent`) for the inputs in `mask`.

        Those that have no share are left out: the declared ones, and those that vanish (`vanishes`).
        """
        found = self._pushes.get(mask)
        if found is None:
            whole = dict(enumerate(range(len(self.specs) + 1)))
            found = self._pushes[mask] = tuple(
                (i, _rounded(run) if self.spec.dtype.name == "bfloat16" else run)
                for i, spec in enumerate(self.specs)
                if mask >> i & 1 and spec.differentiable
                for rule in (self.op.rule(self.op.jvp, i),)
                if not isinstance(rule, Gradient) and not vanishes(rule, spec)
                for run in (self.reader(rule, i, whole, "t"),)
            )
        return found

    def plan(self, mask: int) -> Plan:
        """The plan for the tracked inputs in `mask` (bit i: input i); below zero: one that keeps every input."""
        plan = self.plans.get(mask)
        if plan is None:
            plan = self.plans[mask] = self._make(mask)
        return plan

    def _make(self, mask: int) -> Plan:
        op = self.op
        chosen = []
        replayable, mask = mask < 0, abs(mask)
        for i, spec in enumerate(self.specs):
            rule = op.rule(op.vjp, i)
            if mask >> i & 1 and spec.differentiable and not isinstance(rule, Gradient):
                chosen.append((i, rule))
        unregistered = NOT_REGISTERED in op.vjp
        kept = sorted({place for _, rule in chosen for place in self._kept(rule)})
        if unregistered:  # a gradient that the caller registers may use any of it
            kept = list(range(len(self.specs) + 1))
        if replayable:
            kept = sorted({*kept, *range(len(self.specs))})
        where = {place: at for at, place in enumerate(kept)}
        rules = tuple((i, self._rule(rule, i, where)) for i, rule in chosen)
        shadow = tuple((i, self._shadow(i, rule)) for i, rule in chosen)
        keep = _keeper(tuple(kept))
        sparse = any(i in op.sparse for i, _ in chosen)
        return Plan(self, tuple(kept), keep, unregistered, sparse, rules, shadow)

    def _rule(self, rule: Rule, i: int, where: Mapping[int, int]) -> Rule:
        run = self.reader(rule, i, where, "ct")
        return _rounded(run) if self.specs[i].dtype.name == "bfloat16" and not self.op.passes else run

    def _shadow(self, i: int, rule: Rule) -> Rule:
        if self.op.passes:
            return lambda ct, kept: ct
        if i not in self.op.sparse:
            return lambda ct, kept: Kind.DENSE
        runtime = _Specs()
        arrays = [Operand(runtime, _SpecOnly(spec)) for spec in (*self.specs, self.spec)]
        slices = self.reader(rule, i, dict(enumerate(range(len(arrays)))), "ct")(arrays[-1], arrays)
        if not isinstance(slices, Slices):  # sparse only with other attributes
            return lambda ct, kept: Kind.DENSE
        shadow = Slices(slices.values.value.spec, slices.indices.value.spec, slices.dense)
        return lambda ct, kept: shadow

    def _kept(self, rule: Rule) -> list[int]:
        names = needs(rule)
        n = len(self.specs)
        kept = [n] if "y" in names else []
        if self.op.variadic:
            return kept + (list(range(n)) if self.op.inputs[0] in names else [])
        return kept + [i for i, name in enumerate(self.op.inputs) if name in names]

    def reader(self, rule: Rule, i: int, where: Mapping[int, int], first: str) -> Rule:
        """`rule` as a function of (`first`, kept): every static argument bound, the kept ones read by position.

        Args:
            rule: A vjp (`first` = "ct") or jvp (`first` = "t") rule of input `i`.
            i: The input.
            where: Position among (*inputs, result) to position in `kept`.
            first: Name of the leading argument.
        """
        bind = getattr(rule, "bind", None)  # a family's rule that specialises itself
        if bind is not None:
            return bind(self, i, where)  # type: ignore[no-any-return]
        static: dict[str, Any] = {}
        read: list[tuple[str, int]] = []
        op, n = self.op, len(self.specs)
        whole = ""
        for name in needs(rule):
            if name == first:
                continue
            if name == "y":
                read.append((name, where[n]))
            elif op.variadic and name == op.inputs[0]:
                whole = name
            elif not op.variadic and name in op.inputs:
                read.append((name, where[op.inputs.index(name)]))
            else:
                static[name] = self.static(name, i)
        run = partial(rule, **static) if static else rule
        if whole:
            places = [where[j] for j in range(n)]
            return lambda ct, kept: run(ct, **{whole: [kept[p] for p in places]}, **{k: kept[p] for k, p in read})
        if not read:
            return lambda ct, kept: run(ct)
        if len(read) == 1 and needs(rule)[:2] == (first, read[0][0]):
            place = read[0][1]
            return lambda ct, kept: run(ct, kept[place])
        return lambda ct, kept: run(ct, **{name: kept[p] for name, p in read})

    def static(self, name: str, i: int) -> Any:
        """What a rule of input `i` gets under `name` when it is no array: a spec, an attribute, the input's number."""
        op = self.op
        if name == "i":
            return i
        if name == "y_spec":
            return self.spec
        if op.variadic and name == f"{op.inputs[0]}_specs":
            return self.specs
        if not op.variadic and name.endswith("_spec") and name[:-5] in op.inputs:
            return self.specs[op.inputs.index(name[:-5])]
        if name in self.attrs:
            return self.attrs[name]
        raise TypeError(f"{op.name}: a rule asks for {name!r}, which is no input, spec or attribute of the op")


def _rounded(run: Rule) -> Rule:
    """`run`, its result as bfloat16: NumPy gives float32 where a bfloat16 array meets a Python float."""
    dtype = DTYPES["bfloat16"]

    def rounded(*args: Any) -> Any:
        found = run(*args)
        if isinstance(found, Slices):
            return found._replace(values=CATALOGUE["cast"](found.values, dtype=dtype))
        return found if found.dtype == dtype else CATALOGUE["cast"](found, dtype=dtype)

    return rounded


def vanishes(rule: Rule, spec: Spec) -> bool:
    """Whether a jvp rule says of itself that inputs of that spec have no tangent, as TensorFlow has none for sign."""
    says: Callable[[Spec], bool] | None = getattr(rule, "vanishes", None)
    return says is not None and says(spec)


_needs: dict[Rule, tuple[str, ...]] = {}


def needs(rule: Rule) -> tuple[str, ...]:
    """The parameter names of a rule. A family sets `rule.needs` where it builds the function."""
    found = getattr(rule, "needs", None) or _needs.get(rule)
    if found is None:
        found = _needs[rule] = tuple(inspect.signature(rule).parameters)
    return found


class Runtime:
    """Where operands live: a recorder that runs ops (with arrays) or only follows their specs (without)."""

    def call(self, op: Op, args: Sequence[Any], attrs: Mapping[str, Any]) -> Operand:
        """Runs `op` on operands and Python numbers, and records it."""
        raise NotImplementedError  # pragma: no cover - the two recorders define it


class Operand:
    """A recorded value inside a rule: behaves as an array does, and everything done with it is recorded too.

    `value` is the recorder's own record of it; shape and dtype are known, the numbers perhaps not.
    """

    __slots__ = ("runtime", "value")
    __array_ufunc__ = None  # NumPy must not take it apart: `array * operand` comes to __rmul__

    def __init__(self, runtime: Runtime, value: Any) -> None:
        self.runtime, self.value = runtime, value

    @property
    def shape(self) -> tuple[int, ...]:
        """Length of each axis."""
        return self.value.spec.shape  # type: ignore[no-any-return]  # the recorder's record

    @property
    def dtype(self) -> DType:
        """The NumPy dtype."""
        return self.value.spec.dtype  # type: ignore[no-any-return]  # the recorder's record

    def _with(self, name: str, *args: Any) -> Operand:
        return self.runtime.call(CATALOGUE[name], args, {})

    def __add__(self, other: Any) -> Operand:
        return self._with("add", self, other)

    def __radd__(self, other: Any) -> Operand:
        return self._with("add", other, self)

    def __sub__(self, other: Any) -> Operand:
        return self._with("sub", self, other)

    def __rsub__(self, other: Any) -> Operand:
        return self._with("sub", other, self)

    def __mul__(self, other: Any) -> Operand:
        return self._with("mul", self, other)

    def __rmul__(self, other: Any) -> Operand:
        return self._with("mul", other, self)

    def __truediv__(self, other: Any) -> Operand:
        return self._with("div", self, other)

    def __rtruediv__(self, other: Any) -> Operand:
        return self._with("div", other, self)

    def __pow__(self, other: Any) -> Operand:
        return self._with("pow", self, other)

    def __neg__(self) -> Operand:
        return self._with("neg", self)

    def __lt__(self, other: Any) -> Operand:
        return self._with("less", self, other)

    def __le__(self, other: Any) -> Operand:
        return self._with("less_equal", self, other)

    def __gt__(self, other: Any) -> Operand:
        return self._with("greater", self, other)

    def __ge__(self, other: Any) -> Operand:
        return self._with("greater_equal", self, other)

    def __eq__(self, other: object) -> Any:
        return self._with("equal", self, other)

    def __ne__(self, other: object) -> Any:
        return self._with("not_equal", self, other)

    __hash__ = None  # type: ignore[assignment]  # == is elementwise


class _SpecOnly(NamedTuple):
    """A recorded value of which only the spec is known."""

    spec: Spec


class _Specs(Runtime):
    """Follows ops by their specs, and records nothing."""

    def call(self, op: Op, args: Sequence[Any], attrs: Mapping[str, Any]) -> Operand:
        specs = tuple(arg.value.spec if isinstance(arg, Operand) else WEAK[type(arg)] for arg in args)
        return Operand(self, _SpecOnly(op.call(specs, op.attrs(attrs)).spec))


def trace_spec(written: Callable[..., Any], specs: Sequence[Spec], attrs: Mapping[str, Any]) -> Spec:
    """The spec that a function of operands gives for inputs of these specs."""
    runtime = _Specs()
    result: Operand = written(*[Operand(runtime, _SpecOnly(spec)) for spec in specs], **attrs)
    return result.value.spec  # type: ignore[no-any-return]  # a _SpecOnly


class Catalogue(dict[str, Op]):
    """All ops by name; frozen once `teletape_engine.ops` is imported."""

    frozen = False

    def add(self, op: Op) -> Op:
        """Registers `op`; a name twice, or after freezing, is a defect of the engine (TypeError)."""
        if self.frozen or op.name in self:
            raise TypeError(f"op {op.name!r}: {'the catalogue is frozen' if self.frozen else 'the name is taken'}")
        self[op.name] = op
        return op

    def named(self, name: str) -> Op:
        """The op of that name.

        Raises:
            UnknownOpError: There is none; the message tells the nearest names.
        """
        op = self.get(name)
        if op is None:
            import difflib

            near = difflib.get_close_matches(str(name), self, n=3) or difflib.get_close_matches(
                str(name).rsplit(".", 1)[-1], self, n=3, cutoff=0.5
            )
            hint = f"did you mean {', '.join(map(repr, near))}?" if near else "GET /v1/ops lists the ops there are"
            raise UnknownOpError(f"unknown op {name!r}: {hint}", op=str(name))
        return op


CATALOGUE: Final = Catalogue()
