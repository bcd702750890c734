"""The Op record: one entry of the catalogue, with every rule that follows from it; and the catalogue itself.

A rule is an ordinary function whose first parameter is the cotangent (vjp) or the tangent (jvp). The names of the
other parameters say what it needs, so that what a tape must keep is read off the formula and cannot be forgotten:

    a, x, …         the input of that name, kept as residual
    y               the result, kept as residual; of an op with several results each has its own name
    a_spec, y_spec  its shape and dtype only: nothing is kept
    axis, …         an attribute
    xs, xs_specs    all inputs of a variadic op, or their specs;  i: the input that the rule is for
"""

from __future__ import annotations

import difflib
import enum
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from teletape_engine import arrays
from teletape_engine.catalogue.attributes import Attrs, Schema
from teletape_engine.catalogue.namespace import ops
from teletape_engine.catalogue.operand import Operand
from teletape_engine.catalogue.rule import NOT_REGISTERED, NoGradient, Rule
from teletape_engine.catalogue.signature import NUMPY_NAMES, PublicFunction, synonyms
from teletape_engine.errors import InvalidArgumentError, UnknownOpError
from teletape_engine.spec import DType, Spec, Weak, weak_dtype

_NUMPY: Final = ("np.", "numpy.")  # what its names are written after


class Trait(enum.Enum):
    """A fact about an op that the rest of the engine and the SDK need in addition to its rules.

    No other module tests an op's name or type: it tests for a trait. tests/engine/catalogue/test_traits.py has a law
    for each.
    """

    ALIASES = "aliases"  #: The result is the input itself: a cotangent, sparse or not, is that of the input.
    ASSERTS = "asserts"  #: Run for the error that it may raise, even if nothing uses its result.
    COMPARES = "compares"  #: Selects by comparing its two inputs; on a tie the gradient goes to the first.
    CONVERTS = "converts"  #: Changes the dtype; an integer input gives numbers, and no index or condition.
    CONVERTS_APART = "converts_apart"  #: An argument that does not fit the other's dtype is converted on its own.
    EDGES = "edges"  #: Returns its first input; the others have no effect but their place in the graph.
    FIRST_ORDER = "first_order"  #: A gradient of it uses an op without a gradient: it has no second derivative.
    IMPLICIT = "implicit"  #: Its derivative is that of a relation that its numbers satisfy, not of its steps.
    JOINS = "joins"  #: Puts its inputs side by side in the result.
    MULTIPLIES = "multiplies"  #: The gradient of one input is a product with the others.
    PHASES = "phases"  #: A complex result's columns below its first row have phases that the forward chooses freely.
    RANDOM = "random"  #: Draws numbers from a state, which is its first input.
    SATURATES = "saturates"  #: Its derivative is zero, or rounds to zero, on a part of its domain.
    SELECTS = "selects"  #: The result holds some elements of an input and not the others.
    SHAPE_ONLY = "shape_only"  #: The result depends on the shape of its input, not on the elements.
    TRUTHS = "truths"  #: Takes truth values alone: an array of numbers that a program passes is converted to them.
    STOPS_GRADIENT = "stops_gradient"  #: Tapes take the result for a constant.


class Reach(enum.Enum):
    """On which elements of its inputs an element of an op's result may depend, whatever the elements are.

    `derivatives/sparsity/` reads the structure of derivatives from it. tests/engine/derivatives/test_sparsity.py holds
    every op to it: what an op does not reach has no derivative.
    """

    ALL = "all"  #: On all of them.
    ELEMENTS = "elements"  #: On the elements at its own place, after broadcasting.
    MOVES = "moves"  #: On one element of one input, or on none: the forward only moves elements.
    SUMS = "sums"  #: Each element of the input goes into at most one of the result: the vjp only moves elements.
    LINES = "lines"  #: On the line of elements, at its own place, along `axis` (several; None: all; absent: the last).
    SEGMENTS = "segments"  #: On the rows of the first input that have its row's number in the second.
    MATRICES = "matrices"  #: On the matrices, in the last two axes, at its own place.
    IMAGES = "images"  #: On the images, in the last three axes, at its own place.
    WINDOWS = "windows"  #: On the window of the first input's images that the second, of filters, has at its own place.
    PRODUCTS = "products"  #: As the product of two matrices: on a row of the first input and a column of the second.


class WorkKind(enum.Enum):
    """What a forward spends its time with; a host that has a clock knows how fast each is."""

    PRODUCTS = "products"  #: Multiply-adds of floating-point matrices, by BLAS and LAPACK.
    LOOPS = "loops"  #: Multiply-adds of integers, which BLAS does not know.
    ELEMENTS = "elements"  #: Elements of a result, each computed once.


class Work(NamedTuple):
    """About what a call computes; never more than it does."""

    kernel: WorkKind
    amount: int


class Cut(NamedTuple):
    """How a forward can be computed part by part.

    Attributes:
        axis: Of the result.
        inputs: The axis of each input that is cut alike; the other inputs are whole in each part.
    """

    axis: int
    inputs: Mapping[int, int]


class Sample:
    """Inputs to test an op on: float64 or integer arrays, Python numbers; or a function that makes them when needed."""

    __slots__ = ("_inputs", "attrs")

    def __init__(self, inputs: tuple[Any, ...] | Callable[[], tuple[Any, ...]], attrs: Mapping[str, Any]) -> None:
        self.attrs = attrs
        self._inputs = inputs

    @property
    def inputs(self) -> tuple[Any, ...]:
        """The inputs, the same objects each time."""
        if callable(self._inputs):
            self._inputs = self._inputs()
        return self._inputs


@dataclass(frozen=True)
class OnGpu:
    """What a forward needs of the host, by its nature; all empty: nothing. tests/engine/arrays/test_gpu.py compares it.

    Attributes:
        waits: For what the host waits: a size, or whether values are allowed.
        down: What is copied to the host.
        up: What the host computes and copies to the GPU.
        missing: Why a GPU does not have the op; its forward is never called there.
        instead: What to do on a GPU if it is missing.
    """

    waits: str = ""
    down: str = ""
    up: str = ""
    missing: str = ""
    instead: str = "compute it in a session on the CPU"

    def text(self) -> str:
        """For the reference; empty if there is nothing to say."""
        if self.missing:
            return f"not on a GPU: {self.missing}; {self.instead}"
        parts = {"waits for": self.waits, "copies down": self.down, "copies up": self.up}
        needs = ", ".join(f"{verb} {what}" for verb, what in parts.items() if what)
        return f"on a GPU {needs}" if needs else ""


NOTHING: Final = OnGpu()


@dataclass(frozen=True, eq=False)
class Op:
    """One op: what it computes and every rule about it.

    Attributes:
        name: The op's name on the wire and in the catalogue.
        op_type: TensorFlow's op type, as its registry and its messages name it.
        functions: The public TensorFlow functions that are one call of it: names, arguments, defaults, conversions.
        inputs: Names of the array inputs; one name for a variadic op.
        results: Names of the results; of one alone `y`.
        variadic: Takes any number of arrays.
        forward: `forward(xp, *arrays, **attrs)`; `xp` is the array namespace. Pure; never writes into its inputs.
        infer: `infer(*specs, **attrs) -> Spec`; raises InvalidArgumentError. As `forward`, a tuple for several results.
        workspace: `workspace(*specs, **attrs)`: bytes that the forward needs at its peak in addition to its result;
            None: none.
        work: `work(*specs, **attrs)`: multiply-adds of the forward; None: it computes each element of its result once.
        cut: `cut(*specs, **attrs)`: how a long forward can be computed part by part; None, or of None: only as a
            whole.
        vjp: A rule per input, or NOT_REGISTERED / NON_DIFFERENTIABLE. A variadic op has one for all its inputs, or one
            for the first and one for the others. Of several results `ct` is a tuple, None for one that nothing used.
        jvp: A rule per input giving its term of the result's tangent; a tuple of several, None for one of integers.
        batch: `batch(op, args, batched, attrs)`: the op over a leading batch axis of the `batched` inputs, or None if
            the op has no array inputs.
        sparse: Inputs whose cotangent may be a `SparseGradient` (with some attributes).
        weak: Takes Python numbers as they are; other ops get them as arrays.
        like: For each input the input whose dtype a Python number there takes; itself: none.
        integers: Inputs that take integers alone: indices, ids of segments, seeds.
        views: The result may share memory with an input.
        dynamic: The result's shape depends on values: `infer` gives an upper bound, the result itself the spec.
        refuses: Integer inputs whose values the forward may refuse (an index out of range, a divisor of zero). A
            recorder without arrays that knows those values can refuse them at once.
        expand: Set for a composite: `expand(*arrays, **attrs)` calls other ops, which are recorded in its place.
        on_gpu: What it needs of the host on a GPU, or that a GPU does not have it.
        samples: Inputs for the laws, made by `samples()`.
        doc: What it computes; the reference page shows it.
        schema: Its attributes.
        symmetric: Inputs read as Hermitian matrices: only the lower triangle is read, and the gradient is that of such
            matrices, half on either side of the diagonal, as in TensorFlow.
        traits: What the rest of the engine needs to know of it; see `Trait`.
        reach: On which elements of its differentiable inputs an element of the result may depend.
        bound: Calls bound so far, by specs and attributes; `catalogue.binding.bind` fills it.
    """

    name: str
    op_type: str
    functions: tuple[PublicFunction, ...]
    inputs: tuple[str, ...]
    results: tuple[str, ...]
    variadic: bool
    forward: Callable[..., Any]
    infer: Callable[..., Spec | tuple[Spec, ...]]
    workspace: Callable[..., int] | None
    work: Callable[..., int] | None
    cut: Callable[..., Cut | None] | None
    vjp: tuple[Rule | NoGradient, ...]
    jvp: tuple[Rule | NoGradient, ...]
    batch: Callable[..., Any] | None
    sparse: frozenset[int]
    weak: bool
    like: tuple[int, ...]
    views: bool
    dynamic: bool
    refuses: tuple[int, ...]
    expand: Callable[..., Any] | None
    on_gpu: OnGpu
    samples: Callable[[], Sequence[Sample]]
    doc: str
    schema: Schema
    symmetric: frozenset[int] = frozenset()
    integers: frozenset[int] = frozenset()
    traits: frozenset[Trait] = frozenset()
    reach: Reach = Reach.ALL
    bound: dict[Any, Any] = field(default_factory=dict, repr=False)

    def __call__(self, *args: Any, **attrs: Any) -> Operand:
        """Runs the op inside a rule: at once on bare arrays, through the runtime on operands."""
        for arg in args:
            if isinstance(arg, Operand):
                return arg.runtime.call(self, args, attrs)
        return self.forward(arrays.namespace(args), *args, **attrs)  # type: ignore[no-any-return]  # a bare array

    def __repr__(self) -> str:
        return f"<op {self.name}>"

    @property
    def tf(self) -> tuple[str, ...]:
        """The public TensorFlow names of the op itself, without the leading `tf.`."""
        return tuple(name for function in self.functions if function.synonym for name in function.names)

    def attrs(self, values: Mapping[str, Any]) -> Attrs:
        """The canonical attributes.

        Raises:
            BadAttributeError: A name that the op does not have, a wrong value, or a required one missing.
        """
        return self.schema.canonical(values)

    def input_name(self, i: int) -> str:
        """The name of input `i` in messages."""
        return f"{self.inputs[0]}[{i}]" if self.variadic else self.inputs[i]

    def rule(self, rules: tuple[Rule | NoGradient, ...], i: int) -> Rule | NoGradient:
        """The rule of input `i` among `rules`."""
        return rules[min(i, len(rules) - 1)] if self.variadic else rules[i]

    @property
    def registered(self) -> bool:
        """Whether TensorFlow's registry has an entry for it (a rule, or the declaration that there is none)."""
        return NOT_REGISTERED not in self.vjp

    def saves(self, i: int, dtype: DType | None = None) -> tuple[str, ...]:
        """Names of what the gradient of input `i` keeps: inputs and results; of that dtype, or of most."""
        rule = self.rule(self.vjp, i)
        if isinstance(rule, NoGradient):
            return ()
        rule = rule.of.get(dtype, rule) if dtype is not None else rule
        return tuple(name for name in rule.needs if name in (*self.inputs, *self.results))

    def takes_numbers(self, specs: Sequence[Spec | Weak]) -> bool:
        """Whether the forward runs on inputs of these specs as they are, numbers unconverted."""
        numbers = [i for i, spec in enumerate(specs) if isinstance(spec, Weak)]
        if not numbers or not self.weak or any(specs[i].shape for i in numbers):
            return not numbers
        if self.variadic:
            return len(numbers) < len(specs)
        arrays = {self.like[i] for i, spec in enumerate(specs) if isinstance(spec, Spec)}
        return all(self.like[i] in arrays for i in numbers)

    def check_count(self, count: int) -> None:
        """Raises InvalidArgumentError unless the op takes `count` inputs."""
        if self.variadic and count == 0:
            raise InvalidArgumentError(f"op {self.name!r} takes one or more inputs, found none", op=self.name)
        if not self.variadic and count != len(self.inputs):
            takes = f"{len(self.inputs)} inputs ({', '.join(self.inputs) or 'none'})"
            raise InvalidArgumentError(f"op {self.name!r} takes {takes}, found {count}", op=self.name)

    def strong_specs(self, specs: tuple[Spec | Weak, ...]) -> tuple[Spec, ...]:
        """The specs of the inputs, Python numbers as scalars of the dtype that they take.

        Raises:
            InvalidArgumentError: Too many or too few inputs, or a number that does not fit the dtype of the arrays.
        """
        self.check_count(len(specs))
        dtypes = self.number_dtypes(specs)
        return tuple(Spec.of(spec.shape, dtypes[i]) if isinstance(spec, Weak) else spec for i, spec in enumerate(specs))

    def number_dtypes(self, specs: Sequence[Spec | Weak]) -> dict[int, DType]:
        """The dtype that each number or untyped list takes among inputs of these specs, by the number of the input.

        That of the arrays in its group of `like`. Without an array there the widest number of the group decides for
        all; a JSON number, or a list of them, is then an integer where only integers fit, and else has the dtype of
        another differentiable array of the call, or float32.

        Raises:
            InvalidArgumentError: A number does not fit the dtype of the arrays.
        """
        groups: dict[tuple[int, bool], tuple[DType, bool]] = {}
        dtypes = {}
        for i, weak in enumerate(specs):
            if not isinstance(weak, Weak):
                continue
            like, integer = 0 if self.variadic else self.like[i], i in self.integers
            if (like, integer) not in groups:
                group = [spec for j, spec in enumerate(specs) if self.variadic or self.like[j] == like]
                groups[like, integer] = self._group_dtype(group, specs, integer)
            dtype, decided = groups[like, integer]
            try:
                dtypes[i] = dtype if decided else weak_dtype(weak, dtype)
            except InvalidArgumentError as error:
                text = f"op {self.name!r}, input {self.input_name(i)}: {error}"
                raise InvalidArgumentError(text, op=self.name) from None
        return dtypes

    @staticmethod
    def _group_dtype(group: Sequence[Spec | Weak], specs: Sequence[Spec | Weak], integer: bool) -> tuple[DType, bool]:
        """The dtype of numbers that have one, and whether the widest of them has decided it, which all others fit.

        Args:
            group: The inputs that have that dtype.
            specs: All inputs.
            integer: Whether the numbers can only be integers.
        """
        array = next((spec.dtype for spec in group if isinstance(spec, Spec)), None)
        if array is not None:
            return array, False
        numbers = [spec for spec in group if isinstance(spec, Weak)]
        order = (bool, int, float, complex)
        widest = max(numbers, key=lambda number: (order.index(number.kind), number.untyped))
        if not widest.untyped:
            return widest.alone, True
        if integer:
            return max([number.integer for number in numbers], key=lambda dtype: dtype.itemsize), False
        others = (spec.dtype for spec in specs if isinstance(spec, Spec) and spec.differentiable)
        return next(others, widest.alone), False


class Catalogue(dict[str, Op]):
    """All ops by name; frozen once `teletape_engine.ops` is imported.

    Attributes:
        frozen: Whether ops can no longer be added.
        synonyms: TensorFlow's and NumPy's names for ops, each with ours: "math.add", "tf.add" and "AddV2" mean `add`.
    """

    def __init__(self) -> None:
        super().__init__()
        self.frozen = False
        self.synonyms: dict[str, str] = {}

    def add(self, op: Op) -> Op:
        """Registers `op`, here and as an attribute of `ops`.

        Raises:
            TypeError: The name is taken, or the catalogue is frozen: a defect of the engine.
        """
        if self.frozen or op.name in self:
            raise TypeError(f"op {op.name!r}: {'the catalogue is frozen' if self.frozen else 'the name is taken'}")
        self[op.name] = op
        setattr(ops, op.name, op)
        return op

    def freeze(self) -> None:
        """Ends the registration of ops, and makes the table of synonyms."""
        self.frozen = True
        self.synonyms = synonyms((op.name, op.op_type, op.tf) for op in self.values())

    def named(self, name: str) -> Op:
        """The op of that name, ours, TensorFlow's or NumPy's.

        Raises:
            UnknownOpError: There is none; the message lists the nearest names.
        """
        op = self.get(name) or self.get(self.synonyms.get(name, ""))
        if op is None and name.startswith(_NUMPY):
            bare = name.partition(".")[2]
            op = self.get(bare) or self.get(self.synonyms.get(bare, ""))
        if op is None:
            names = [*self, *(synonym for synonym in NUMPY_NAMES if synonym in self.synonyms)]
            near = difflib.get_close_matches(str(name), names, n=3) or difflib.get_close_matches(
                str(name).rsplit(".", 1)[-1], names, n=3, cutoff=0.5
            )
            hint = f"did you mean {', '.join(map(repr, near))}?" if near else "GET /v1/ops lists the ops there are"
            raise UnknownOpError(f"unknown op {name!r}: {hint}", op=str(name))
        return op


CATALOGUE: Final = Catalogue()
