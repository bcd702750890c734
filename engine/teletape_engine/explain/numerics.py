"""Where a gradient's numbers became zero or stopped being finite: a backward pass that leaves the tape as it is.

It runs the tape's own rules on what the tape keeps, one node after the other, and remembers of each share whether it
was zero and whether it was finite. The node to blame is the first one that had a sound cotangent and gave none.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from teletape_engine.catalogue.op import Plan, Slices
from teletape_engine.derivatives.backward import reaching
from teletape_engine.explain.provenance_graph import flat, zero_text
from teletape_engine.explain.reasons import Reason
from teletape_engine.recording.cotangents import Arrays
from teletape_engine.recording.custom import Custom, Output
from teletape_engine.recording.tape import Node, Tape
from teletape_engine.recording.values import Literal, Uid
from teletape_engine.spec import COMPLEX, DTYPES

_ALGEBRA: Final = Arrays()
#: Ops that are flat somewhere, by TensorFlow's type.
_FLAT: Final = frozenset(
    {"Relu", "Relu6", "ClipByValue", "LeakyRelu", "Elu", "Selu", "Gelu", "Softplus", "Sigmoid", "Tanh", "Erf", "Erfc"}
    | {"Softmax", "LogSoftmax", "Relu6Grad", "ReluGrad"}
)
#: Ops that take some elements and leave others.
_CHOOSING: Final = frozenset(
    {"SelectV2", "Maximum", "Minimum", "Max", "Min", "GatherV2", "GatherNd", "StridedSlice", "Slice", "Pad", "PadV2"}
    | {"MaxPool", "TopKV2", "SegmentMax", "SegmentMin", "UnsortedSegmentMax", "UnsortedSegmentMin", "MatrixBandPart"}
)
_JOINING: Final = frozenset({"ConcatV2", "Pack"})
_PRODUCTS: Final = frozenset(
    {"Mul", "RealDiv", "MatMul", "BatchMatMulV2", "Einsum", "Conv2D", "Prod", "DivNoNan", "MulNoNan"}
)


class Found(NamedTuple):
    """What is to blame for a gradient's numbers.

    Attributes:
        code: The reason.
        message: In a sentence.
        node: Position of the node on the tape; None: no node of it.
        op: The op's name.
        certain: Whether it is proven.
    """

    code: Reason
    message: str
    node: int | None
    op: str | None
    certain: bool = True


class _Share(NamedTuple):
    """What one node gave to one of its inputs."""

    node: int
    place: int
    ct_zero: bool
    ct_finite: bool
    zero: bool
    finite: bool


class Untraceable(Exception):
    """The gradient is the caller's own function somewhere: it is not called for an explanation."""


class Look:
    """One backward pass, looked at.

    Args:
        tape: One that still has what it kept.
        seeds: (uid, array) of each target.
        sources: Uids of values and variables that the targets' cotangents reach.
        registered: Op types whose gradient the caller has.
    """

    def __init__(
        self,
        tape: Tape,
        seeds: Sequence[tuple[Uid, Any]],
        sources: Collection[Uid],
        *,
        registered: Collection[str] = (),
    ) -> None:
        self.tape, self.seeds, self.registered = tape, seeds, registered
        self.nodes: list[Node] = tape.nodes
        self.shares: dict[Uid, list[_Share]] = {}
        self.opaque: dict[Uid, tuple[tuple[Uid | None, ...], Any]] = {}  # what comes to the caller's own functions
        self.found: dict[Uid, Any] = dict.fromkeys(sources)
        self.needed = reaching(tape, set(sources), registered)
        with np.errstate(all="ignore"):
            self._pass({}, None)

    def why(self, source: Uid) -> Found | None:
        """Why the gradient for `source` is all zero or not finite; None: it is neither.

        Raises:
            Untraceable: The caller's own gradient function would have to be called.
        """
        with np.errstate(all="ignore"):
            ct = self.found[source]
            if self.opaque:
                needed = reaching(self.tape, {source}, self.registered)
                leading = {
                    uid: given
                    for uid, (inputs, given) in self.opaque.items()
                    if needed is None or not needed.isdisjoint(inputs)
                }
                if leading:
                    return self._before_the_callers_own(leading, ct)
            if ct is None or not _size(ct):
                return None
            if not _finite(ct):
                return self._not_finite(source)
            return self._all_zero(source) if _zero(ct) else None

    def _pass(self, cts: dict[Any, Any], stop: int | None) -> Any:
        """Goes through the nodes, and notes shares and the sources' cotangents; or to the cotangent of node `stop`."""
        for uid, seed in self.seeds:
            cts[uid] = _ALGEBRA.add(cts[uid], seed) if uid in cts else seed
        found = self.found if stop is None else {}
        for uid in found:
            found[uid] = cts.get(uid)
        for k in range(len(self.nodes) - 1, -1, -1):
            plan, inputs, output, kept, _ = self.nodes[k]
            ct = cts.pop(output, None)
            if ct is None:
                continue
            if k == stop:
                return ct
            if output in found:
                found[output] = ct
            bound = plan.bound
            if isinstance(bound, Custom | Output) or (plan.unregistered and bound.op.op_type in self.registered):
                if self.needed is None or not self.needed.isdisjoint(inputs):
                    self.opaque[output] = inputs, ct
                continue
            if ct.__class__ is Slices and not bound.op.passes:
                ct = _ALGEBRA.dense(ct)
            opened = _ALGEBRA.open(kept) if kept else kept
            looked = None
            for i, rule in plan.rules:
                into = inputs[i]
                if self.needed is not None and into not in self.needed:
                    continue
                share = rule(ct, opened)
                if stop is None and into is not None:
                    looked = looked or (_zero(ct), _finite(ct))
                    self.shares.setdefault(into, []).append(_Share(k, i, *looked, _zero(share), _finite(share)))
                cts[into] = _ALGEBRA.add(cts[into], share) if into in cts else share
                if into in found:
                    found[into] = cts[into]
        return None

    def _before_the_callers_own(self, leading: dict[Uid, Any], ct: Any) -> Found:
        """What is wrong already where the caller's own gradient functions begin: behind them nothing is known."""
        broken = next((uid for uid, given in leading.items() if not _finite(given)), None)
        if broken is not None:
            return self._not_finite(broken)
        if all(map(_zero, leading.values())) and (ct is None or _zero(ct)):
            # A function may make of zeros what it likes.
            return self._all_zero(next(iter(leading)))._replace(certain=False)
        raise Untraceable

    def _chain(self, source: Uid) -> list[_Share]:
        """Every share that the source's gradient was made of, the nearest to the target first."""
        found: dict[tuple[int, int], _Share] = {}
        todo, seen = [source], {source}
        while todo:
            for share in self.shares.get(todo.pop(), ()):
                found.setdefault((share.node, share.place), share)
                output = self.nodes[share.node][2]
                if output not in seen:
                    seen.add(output)
                    todo.append(output)
        return sorted(found.values(), key=lambda share: (-share.node, share.place))

    # ------------------------------------------------------------------------------------------------------------ zero
    def _all_zero(self, source: Uid) -> Found:
        own = self.shares.get(source, [])
        blamed: list[_Share] = []
        todo, seen = [source], {source}
        while todo:
            given = self.shares.get(todo.pop(), [])
            if any(not share.zero for share in given):
                names = ", ".join(dict.fromkeys(repr(self._name(share.node)) for share in given))
                return Found(
                    Reason.CANCELLED,
                    f"{len(given)} shares that are not zero, through {names}, add up to exactly zero",
                    given[-1].node,
                    self._name(given[-1].node),
                )
            for share in given:
                output = self.nodes[share.node][2]
                if not share.ct_zero:
                    blamed.append(share)
                elif output not in seen:
                    seen.add(output)
                    todo.append(output)
        if not blamed:
            return Found(Reason.ZERO_FACTOR, "the cotangent that the target started from is zero", None, None)
        share = max(blamed, key=lambda one: (one.node, -one.place))
        found = self._why_zero(share)
        if len(blamed) > 1 and own:
            more = len({one.node for one in blamed}) - 1
            if more:
                found = found._replace(message=f"{found.message}; so it is at {more} more op{'s' if more > 1 else ''}")
        return found

    def _why_zero(self, share: _Share) -> Found:
        plan, _, _, kept, _ = self.nodes[share.node]
        bound, name, i = plan.bound, self._name(share.node), share.place
        op_type = bound.op.op_type
        what = bound.op.input_name(i)

        def found(code: Reason, message: str) -> Found:
            return Found(code, message, share.node, name)

        if not bound.specs[i].size or not bound.spec.size:
            return found(Reason.MASKED, f"op {name!r} has no element to pass a gradient through")
        if flat(bound, i):
            return found(Reason.ZERO_DERIVATIVE, zero_text(name))
        ct = self._ct_at(share.node)
        if not _zero(self._widely(plan, ct, kept, i)):
            return found(
                Reason.UNDERFLOW, f"op {name!r} gives less than {bound.specs[i].dtype.name} can hold: it becomes zero"
            )
        values = self._values(plan, kept)
        if (
            op_type in ("Maximum", "Minimum")
            and i == 1
            and (len(values) >= 2 and bool(np.all((_host(values[0]) == _host(values[1])) | (_host(ct) == 0))))
        ):
            return found(
                Reason.TIE, f"the inputs of op {name!r} are equal, and all of the gradient goes to the first of them"
            )
        other = 1 - i
        if op_type in ("Maximum", "Minimum") and bound.specs[other].size < bound.specs[i].size:
            return found(Reason.SATURATED, f"op {name!r} clips every element: all of them lie beyond the bound")
        if op_type in _JOINING:
            return found(Reason.MASKED, f"nothing uses the elements that op {name!r} takes from input {what!r}")
        if op_type in _CHOOSING:
            return found(Reason.MASKED, f"op {name!r} chooses other elements: none of input {what!r} is among them")
        if op_type in _FLAT:
            return found(Reason.SATURATED, f"op {name!r} is flat at every element of its input{_range_of(plan, kept)}")
        if op_type in _PRODUCTS:
            return found(Reason.ZERO_FACTOR, f"op {name!r} multiplies the gradient of input {what!r} by zeros")
        return found(
            Reason.ZERO_DERIVATIVE, f"the derivative of op {name!r} is zero at these inputs{_range_of(plan, kept)}"
        )

    # ------------------------------------------------------------------------------------------------------ not finite
    def _not_finite(self, source: Uid) -> Found:
        chain = self._chain(source)
        share = next((one for one in chain if one.ct_finite and not one.finite), None)
        if share is None:  # finite shares that add up to what is not
            nearest = chain[0].node if chain else None
            return Found(
                Reason.OVERFLOW, "finite shares add up to more than the dtype holds", nearest, self._name(nearest)
            )
        plan, _, _, kept, _ = self.nodes[share.node]
        bound, name, i = plan.bound, self._name(share.node), share.place
        ct = self._ct_at(share.node)
        opened = _ALGEBRA.open(kept) if kept else kept
        given = _host(dict(plan.rules)[i](ct, opened))
        at = tuple(int(k) for k in np.argwhere(~np.isfinite(given))[0]) if given.ndim else ()
        told = f" at [{', '.join(map(str, at))}]" if at else ""
        where = f"input {bound.op.input_name(i)!r}{told}{self._value_at(plan, kept, i, at, given.shape)}"

        def found(code: Reason, message: str) -> Found:
            return Found(code, message, share.node, name)

        bad = given[at] if at else given[()]
        host = _host(ct)
        own = host[at] if host.shape == given.shape else None
        masked = np.isnan(bad) and own is not None and own == 0
        value = None if masked and not self._keeps_nan(kept) else self._first_bad_value(share.node)
        if value is not None:
            return value
        if np.all(np.isfinite(_host(self._widely(plan, ct, kept, i)))):
            return found(
                Reason.OVERFLOW,
                f"the gradient of op {name!r} for {where} is more than {bound.specs[i].dtype.name} can hold",
            )
        if masked:
            return found(
                Reason.ZERO_TIMES_INFINITY,
                f"op {name!r} has a cotangent of zero for {where}, and an infinite derivative: their product is NaN",
            )
        if np.isnan(bad):
            return found(Reason.UNDEFINED_DERIVATIVE, f"the derivative of op {name!r} is undefined for {where}")
        return found(Reason.INFINITE_DERIVATIVE, f"the derivative of op {name!r} is infinite for {where}")

    def _first_bad_value(self, last: int) -> Found | None:
        """The earliest value of the forward pass, among those kept up to `last`, that is not finite."""
        due = {uid for uid, _ in self.seeds}
        for _, inputs, output, _, _ in reversed(self.nodes):
            if output in due:
                due.update(inputs)
        for k, (plan, inputs, output, kept, _) in enumerate(self.nodes[: last + 1]):
            if output not in due:
                continue
            for place, value in zip(plan.picks, kept, strict=False):
                array = getattr(value, "array", None)
                if array is None or not hasattr(array, "dtype") or _finite(array):
                    continue
                uid = output if place == len(inputs) else inputs[place]
                maker = next((j for j in range(k, -1, -1) if self.nodes[j][2] == uid), None)
                kind = "NaN" if bool(np.isnan(_host(array)).any()) else "infinite"
                if maker is None:
                    text = f"a value that came into the tape is {kind}: input {place} of op {self._name(k)!r}"
                    return Found(Reason.VALUE_NOT_FINITE, text, k, self._name(k))
                name = self._name(maker)
                return Found(Reason.VALUE_NOT_FINITE, f"the result of op {name!r} is {kind} already", maker, name)
        return None

    # --------------------------------------------------------------------------------------------------------- details
    def _name(self, node: int | None) -> str | None:
        return None if node is None else self.nodes[node][0].bound.op.name

    def _ct_at(self, node: int) -> Any:
        ct = self._pass({}, node)
        bound = self.nodes[node][0].bound
        return _ALGEBRA.dense(ct) if ct.__class__ is Slices and not bound.op.passes else ct

    def _widely(self, plan: Any, ct: Any, kept: Any, i: int) -> Any:
        """The same share in twice the precision; where the rule cannot, zeros."""
        opened = [_wide(one) for one in (_ALGEBRA.open(kept) if kept else ())]
        rule = dict(plan.rules)[i]
        try:
            return rule(_wide(ct), tuple(opened))
        except Exception:  # a rule that insists on its own dtypes: nothing is known then
            return np.zeros(()) if _zero(rule(ct, _ALGEBRA.open(kept) if kept else kept)) else np.full((), np.nan)

    @staticmethod
    def _keeps_nan(kept: Any) -> bool:
        arrays = [value.array for value in kept if hasattr(value.array, "dtype")]
        return any(_inexact(one) and bool(np.isnan(_host(one)).any()) for one in arrays)

    @staticmethod
    def _values(plan: Any, kept: Any) -> list[Any]:
        return [value.array for value in kept if not isinstance(value, Literal)]

    @staticmethod
    def _value_at(plan: Any, kept: Any, i: int, at: tuple[int, ...], shape: tuple[int, ...]) -> str:
        for place, value in zip(plan.picks, kept, strict=False):
            if place == i and hasattr(value.array, "shape") and value.array.shape == shape:
                array = _host(value.array)
                return f", which is {array[at] if at else array[()]:g}" if array.dtype.kind == "f" else ""
        return ""


def _wide(array: Any) -> Any:
    if isinstance(array, Slices) or not hasattr(array, "dtype"):
        return array
    return array.astype(DTYPES["complex128" if array.dtype in COMPLEX else "float64"]) if _inexact(array) else array


def _inexact(array: Any) -> bool:
    return array.dtype.kind in "fcV"  # V: bfloat16, which NumPy does not know


def _numbers(ct: Any) -> Any:
    return ct.values if isinstance(ct, Slices) else ct


def _size(ct: Any) -> int:
    return int(np.prod(_numbers(ct).shape, dtype=np.int64))


def _zero(ct: Any) -> bool:
    return not bool(_numbers(ct).any())


def _finite(ct: Any) -> bool:
    array = _numbers(ct)
    if not _inexact(array):
        return True
    total = float(abs(array).sum())  # NaN or infinite as soon as one element is, without an array of booleans
    return math.isfinite(total) or bool(np.isfinite(_host(array)).all())


def _host(array: Any) -> Any:
    array = array.get() if hasattr(array, "get") else np.asarray(array)
    return array.astype(np.float32) if array.dtype.kind == "V" else array


def _range_of(plan: Plan, kept: Sequence[Any]) -> str:
    """What is known of the numbers there: the range of the first array that was kept."""
    for place, value in zip(plan.picks, kept, strict=False):
        array = _host(value.array) if hasattr(value.array, "dtype") else None
        if array is not None and array.size and array.dtype.kind == "f":
            op = plan.bound.op
            what = "its result" if place == len(plan.bound.specs) else f"input {op.input_name(place)!r}"
            low, high = array.min(), array.max()
            return f" ({what} is {low:g})" if low == high else f" ({what} goes from {low:g} to {high:g})"
    return ""
