"""Numeric diagnosis: at which op a gradient's numbers became zero, or stopped being finite, and why.

The op to blame is the first on the way from the target whose cotangent was sound and whose contribution is not.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any, NamedTuple

import numpy as np

from teletape_engine.catalogue.binding import CallPlan
from teletape_engine.catalogue.op import Trait
from teletape_engine.catalogue.slices import SparseGradient
from teletape_engine.derivatives.query import Declarations
from teletape_engine.explain.cuts import zero_derivative_text, zero_everywhere
from teletape_engine.explain.observed_pass import (
    ALGEBRA,
    Contribution,
    ObservedPass,
    is_empty,
    is_finite,
    is_inexact,
    is_zero,
    on_host,
)
from teletape_engine.explain.reasons import Reason
from teletape_engine.recording.tape import NodeTuple, Tape
from teletape_engine.recording.values import Literal, Uid
from teletape_engine.spec import COMPLEX, DIFFERENTIABLE, DTYPES


class Fault(NamedTuple):
    """What is to blame for a gradient's numbers. The fields are those of an `Explanation`.

    Attributes:
        code: The reason.
        message: The reason in one sentence.
        node: Position of the node on the tape; None: no node is to blame.
        op: The op's name.
        certain: Whether it is proven.
    """

    code: Reason
    message: str
    node: int | None
    op: str | None
    certain: bool = True


class CallersGradient(Exception):
    """A gradient function of the caller's lies on the path; it is not called for an explanation."""


class NumericDiagnosis:
    """Diagnoses the gradients of some targets by the numbers of one backward pass.

    Args:
        tape: One that still has its residuals; it stays as it is.
        starts: (uid, array) of each target.
        sources: Uids of values and variables that the targets' cotangents reach.
        declarations: Those of the session.
        check_cancelled: Called inside the pass; what it raises ends the diagnosis.
    """

    def __init__(
        self,
        tape: Tape,
        starts: Sequence[tuple[Uid, Any]],
        sources: Collection[Uid],
        declarations: Declarations,
        check_cancelled: Callable[[], None],
    ) -> None:
        self.nodes: list[NodeTuple] = tape.nodes
        with np.errstate(all="ignore"):
            self._pass = ObservedPass(tape, starts, sources, declarations, check_cancelled)

    def fault(self, source: Uid) -> Fault | None:
        """Why the gradient for `source` is all zero or not finite; None: it is neither.

        Raises:
            CallersGradient: A gradient function of the caller's would have to be called.
        """
        with np.errstate(all="ignore"):
            ct = self._pass.cotangents[source]
            before_callers = self._pass.calls_below(source) if self._pass.callers else {}
            if before_callers:
                return self._before_callers(before_callers, ct)
            if ct is None or is_empty(ct):
                return None
            if not is_finite(ct):
                return self._not_finite(source)
            return self._all_zero(source) if is_zero(ct) else None

    def _before_callers(self, cotangents: dict[Uid, Any], ct: Any) -> Fault:
        """What is already wrong where the caller's gradient functions take over; after them nothing is known."""
        broken = next((uid for uid, cotangent in cotangents.items() if not is_finite(cotangent)), None)
        if broken is not None:
            return self._not_finite(broken)
        if all(map(is_zero, cotangents.values())) and (ct is None or is_zero(ct)):
            # The caller's function may still make something else of zeros.
            return self._all_zero(next(iter(cotangents)))._replace(certain=False)
        raise CallersGradient

    # ------------------------------------------------------------------------------------------------------------ zero
    def _all_zero(self, source: Uid) -> Fault:
        blamed: list[Contribution] = []
        pending, seen = [source], {source}
        while pending:
            contributions = self._pass.contributions.get(pending.pop(), [])
            if any(not contribution.zero for contribution in contributions):
                return self._cancelled(contributions)
            for contribution in contributions:
                output = self.nodes[contribution.node][2]
                if not contribution.ct_zero:
                    blamed.append(contribution)
                elif output not in seen:
                    seen.add(output)
                    pending.append(output)
        if not blamed:
            return Fault(Reason.ZERO_FACTOR, "the cotangent that the target started from is zero", None, None)
        fault = self._zero_contribution(
            max(blamed, key=lambda contribution: (contribution.node, -contribution.input_index))
        )
        others = len({contribution.node for contribution in blamed}) - 1
        if others and self._pass.contributions.get(source):
            fault = fault._replace(
                message=f"{fault.message}; the same happens at {others} more op{'s' if others > 1 else ''}"
            )
        return fault

    def _cancelled(self, contributions: Sequence[Contribution]) -> Fault:
        names = dict.fromkeys(repr(self._op_name(contribution.node)) for contribution in contributions)
        node = contributions[-1].node
        text = f"{len(contributions)} contributions that are not zero, from {', '.join(names)}, add up to exactly zero"
        return Fault(Reason.CANCELLED, text, node, self._op_name(node))

    def _zero_contribution(self, contribution: Contribution) -> Fault:
        node, index = contribution.node, contribution.input_index
        return Fault(*self._zero_reason(node, index), node, self._op_name(node))

    def _zero_reason(self, node: int, index: int) -> tuple[Reason, str]:
        """Why a node's contribution to an input is zero although its cotangent is not."""
        plan, _, _, residuals, _ = self.nodes[node]
        bound, name = plan.bound, self._op_name(node)
        spec, input_name = bound.specs[index], bound.input_name(index)
        if not spec.size or not bound.spec.size:
            return Reason.MASKED, f"op {name!r} has no element to pass a gradient through"
        if zero_everywhere(bound, index):
            return Reason.ZERO_DERIVATIVE, zero_derivative_text(bound)
        ct = self._pass.cotangent_at(node)
        flat = Trait.SATURATES in bound.traits and is_zero(
            _in_double_precision(plan, _ones_like(ct), residuals, index).astype(spec.dtype)
        )
        if not flat and not is_zero(_in_double_precision(plan, ct, residuals, index)):
            return Reason.UNDERFLOW, f"op {name!r} gives less than {spec.dtype.name} can hold: it becomes zero"
        if Trait.COMPARES in bound.traits:
            values = [value.array for value in residuals if not isinstance(value, Literal)]
            if index == 1 and len(values) >= 2:
                equal = on_host(values[0]) == on_host(values[1])
                if bool(np.all(equal | (on_host(ct) == 0))):
                    return Reason.TIE, f"the inputs of op {name!r} are equal, and the whole gradient goes to the first"
            if bound.specs[1 - index].size < spec.size:
                return Reason.SATURATED, f"op {name!r} clips every element: all of them lie beyond the bound"
        if Trait.JOINS in bound.traits:
            return Reason.MASKED, f"nothing uses the elements that op {name!r} takes from input {input_name!r}"
        if Trait.SELECTS in bound.traits:
            return Reason.MASKED, f"op {name!r} selects other elements: none of input {input_name!r} is among them"
        if Trait.SATURATES in bound.traits:
            return Reason.SATURATED, f"op {name!r} is flat at every element of its input{_range_text(plan, residuals)}"
        if Trait.MULTIPLIES in bound.traits:
            if sum(each.dtype in DIFFERENTIABLE for each in bound.specs) == 1:
                text = f"op {name!r} multiplies each element of input {input_name!r} by others of it that are zero"
                return Reason.ZERO_FACTOR, text
            return Reason.ZERO_FACTOR, f"op {name!r} multiplies the gradient of input {input_name!r} by zeros"
        text = f"the derivative of op {name!r} is zero at these inputs{_range_text(plan, residuals)}"
        return Reason.ZERO_DERIVATIVE, text

    # ------------------------------------------------------------------------------------------------------ not finite
    def _not_finite(self, source: Uid) -> Fault:
        chain = self._pass.chain(source)
        contribution = next((link for link in chain if link.ct_finite and not link.finite), None)
        if contribution is None:
            node = chain[0].node if chain else None
            text = "finite contributions add up to more than the dtype holds"
            return Fault(Reason.OVERFLOW, text, node, self._op_name(node))
        node, index = contribution.node, contribution.input_index
        plan, _, _, residuals, _ = self.nodes[node]
        bound, name = plan.bound, self._op_name(node)
        ct = self._pass.cotangent_at(node)
        addend = on_host(dict(plan.rules)[index](ct, ALGEBRA.open(residuals) if residuals else residuals))
        position = tuple(int(k) for k in np.argwhere(~np.isfinite(addend))[0]) if addend.ndim else ()
        position_text = f" at [{', '.join(map(str, position))}]" if position else ""
        value_text = _value_text(plan, residuals, index, position, addend.shape)
        element = f"input {bound.input_name(index)!r}{position_text}{value_text}"

        is_nan = bool(np.isnan(addend[position]))
        ct_array = None if ct.__class__ is list else on_host(ct)  # of several results
        masked = is_nan and ct_array is not None and ct_array.shape == addend.shape and ct_array[position] == 0
        if not masked or _keeps_nan(residuals):
            bad_value = self._first_bad_value(node)
            if bad_value is not None:
                return bad_value
        if np.all(np.isfinite(on_host(_in_double_precision(plan, ct, residuals, index)))):
            text = f"the gradient of op {name!r} for {element} is more than {bound.specs[index].dtype.name} can hold"
            return Fault(Reason.OVERFLOW, text, node, name)
        if masked:
            text = (
                f"op {name!r} has a cotangent of zero for {element}, and an infinite derivative: their product is NaN"
            )
            return Fault(Reason.ZERO_TIMES_INFINITY, text, node, name)
        if is_nan:
            text = f"the derivative of op {name!r} is undefined for {element}"
            return Fault(Reason.UNDEFINED_DERIVATIVE, text, node, name)
        return Fault(Reason.INFINITE_DERIVATIVE, f"the derivative of op {name!r} is infinite for {element}", node, name)

    def _first_bad_value(self, last: int) -> Fault | None:
        """The earliest value of the forward pass, among those kept up to node `last`, that is not finite."""
        used = {uid for uid, _ in self._pass.starts}
        for _, inputs, output, _, _ in reversed(self.nodes):
            if output in used:
                used.update(uid for uid in inputs if uid is not None)
        for node, (plan, inputs, output, residuals, _) in enumerate(self.nodes[: last + 1]):
            if output not in used:
                continue
            for place, value in zip(plan.picks, residuals, strict=False):
                array = getattr(value, "array", None)
                if array is None or not hasattr(array, "dtype") or is_finite(array):
                    continue
                uid = output if place >= len(inputs) else inputs[place]
                maker = next((earlier for earlier in range(node, -1, -1) if self.nodes[earlier][2] == uid), None)
                fault = "NaN" if bool(np.isnan(on_host(array)).any()) else "infinite"
                if maker is None:
                    name = self._op_name(node)
                    text = f"a value is {fault} before the tape uses it: input {place} of op {name!r}"
                    return Fault(Reason.VALUE_NOT_FINITE, text, node, name)
                name = self._op_name(maker)
                return Fault(Reason.VALUE_NOT_FINITE, f"the result of op {name!r} is {fault} already", maker, name)
        return None

    def _op_name(self, node: int | None) -> str | None:
        return None if node is None else self.nodes[node][0].bound.name


# ------------------------------------------------------------------------------------------------------------- details
def _in_double_precision(plan: CallPlan, ct: Any, residuals: Any, index: int) -> Any:
    """The contribution in twice the precision; if the rule insists on its dtypes, zeros or NaN as it was."""
    residuals = ALGEBRA.open(residuals) if residuals else ()
    rule = dict(plan.rules)[index]
    try:
        return rule(_widened(ct), tuple([_widened(residual) for residual in residuals]))
    except Exception:  # a rule for its own dtypes alone: nothing more can be known
        return np.zeros(()) if is_zero(rule(ct, residuals)) else np.full((), np.nan)


def _ones_like(ct: Any) -> Any:
    if ct.__class__ is list:
        return [None if part is None else _ones_like(part) for part in ct]
    return ct * 0 + 1


def _widened(array: Any) -> Any:
    if array.__class__ is list:
        return [_widened(part) for part in array]
    if isinstance(array, SparseGradient) or not hasattr(array, "dtype") or not is_inexact(array):
        return array
    return array.astype(DTYPES["complex128" if array.dtype in COMPLEX else "float64"])


def _keeps_nan(residuals: Any) -> bool:
    arrays = [value.array for value in residuals if hasattr(value.array, "dtype")]
    return any(is_inexact(array) and bool(np.isnan(on_host(array)).any()) for array in arrays)


def _value_text(plan: CallPlan, residuals: Any, index: int, position: tuple[int, ...], shape: tuple[int, ...]) -> str:
    """The input's number at a position, if the tape kept the input."""
    for place, value in zip(plan.picks, residuals, strict=False):
        if place == index and hasattr(value.array, "shape") and value.array.shape == shape:
            array = on_host(value.array)
            return f", which is {array[position]:g}" if array.dtype.kind == "f" else ""
    return ""


def _range_text(plan: CallPlan, residuals: Sequence[Any]) -> str:
    """The range of the first array that the tape kept for the node."""
    for place, value in zip(plan.picks, residuals, strict=False):
        array = on_host(value.array) if hasattr(value.array, "dtype") else None
        if array is not None and array.size and array.dtype.kind == "f":
            inputs = len(plan.bound.specs)
            what = "its result" if place >= inputs else f"input {plan.bound.input_name(place)!r}"
            low, high = array.min(), array.max()
            return f" ({what} is {low:g})" if low == high else f" ({what} goes from {low:g} to {high:g})"
    return ""
