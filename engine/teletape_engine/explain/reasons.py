"""The closed vocabulary of explanations: why a gradient is None, zero or not finite, and what to do about each reason.

docs/explain.md shows a program for every code, and a test compares the two. The texts serve Python and REST: they name
ops and fields, and Python's functions only in addition. What has another name in REST is replaced in JSON-able facts.
"""

from __future__ import annotations

import enum
from typing import Final, NamedTuple

ZEROS: Final = "unconnected_gradients='zero'"  #: As the SDK spells it.
ZEROS_IN_JSON: Final = '"unconnected": "zero"'


class Outcome(enum.StrEnum):
    """What the tape computes for the source."""

    GRADIENT = "gradient"  #: numbers: as far as is known all finite, and not all zero
    NONE = "none"
    ZERO = "zero"  #: every element is exactly zero
    NOT_FINITE = "not_finite"  #: an element is NaN or infinite
    ERROR = "error"  #: `gradient` raises


class Reason(enum.StrEnum):
    """Why a gradient is what it is."""

    CONNECTED = "connected"
    PARTLY_CUT = "partly_cut"
    NUMBERS_GONE = "numbers_gone"

    NON_DIFFERENTIABLE_OP = "non_differentiable_op"
    INTEGER_OR_BOOL = "integer_or_bool"
    STOP_GRADIENT = "stop_gradient"
    NO_GRADIENT_REGISTERED = "no_gradient_registered"
    NO_GRADIENT_DECLARED = "no_gradient_declared"
    CUSTOM_NONE = "custom_none"
    ASSIGNED = "assigned"
    LEFT_AND_RETURNED = "left_and_returned"
    NOT_WATCHED = "not_watched"
    WATCHED_AFTER_USE = "watched_after_use"
    NOT_TRAINABLE = "not_trainable"
    VARIABLE_REPLACED = "variable_replaced"
    COMPUTED_BEFORE_TAPE = "computed_before_tape"
    COMPUTED_AFTER_TAPE = "computed_after_tape"
    COMPUTED_WHILE_STOPPED = "computed_while_stopped"
    COMPUTED_BEFORE_RESET = "computed_before_reset"
    OTHER_CONTEXT = "other_context"
    NO_OUTER_TAPE = "no_outer_tape"
    UNTAKEN_BRANCH = "untaken_branch"
    NO_ITERATION = "no_iteration"
    SOURCE_DTYPE = "source_dtype"
    TARGET_DTYPE = "target_dtype"
    UNCONNECTED = "unconnected"

    ZERO_DERIVATIVE = "zero_derivative"
    SATURATED = "saturated"
    MASKED = "masked"
    TIE = "tie"
    ZERO_FACTOR = "zero_factor"
    CANCELLED = "cancelled"
    UNDERFLOW = "underflow"

    VALUE_NOT_FINITE = "value_not_finite"
    INFINITE_DERIVATIVE = "infinite_derivative"
    UNDEFINED_DERIVATIVE = "undefined_derivative"
    ZERO_TIMES_INFINITY = "zero_times_infinity"
    OVERFLOW = "overflow"


class Meaning(NamedTuple):
    """The texts of one reason.

    Attributes:
        outcome: What the tape computes.
        says: What the reason means, as a clause.
        advice: What to do; empty if there is nothing to do.
    """

    outcome: Outcome
    says: str
    advice: str


def _gradient(says: str, advice: str) -> Meaning:
    return Meaning(Outcome.GRADIENT, says, advice)


def _none(says: str, advice: str) -> Meaning:
    return Meaning(Outcome.NONE, says, advice)


def _zero(says: str, advice: str) -> Meaning:
    return Meaning(Outcome.ZERO, says, advice)


def _not_finite(says: str, advice: str) -> Meaning:
    return Meaning(Outcome.NOT_FINITE, says, advice)


MEANINGS: Final[dict[Reason, Meaning]] = {
    Reason.CONNECTED: _gradient("the target depends on the source through ops that all pass gradients", ""),
    Reason.PARTLY_CUT: _gradient(
        "there is a gradient, but another path from the target to the source is cut and contributes nothing",
        "if that path should contribute, replace the op that cuts it; if it should not, make that explicit with "
        "stop_gradient",
    ),
    Reason.NUMBERS_GONE: _gradient(
        "the target is connected to the source, but the tape is not persistent and has freed its numbers with its "
        "answer",
        "to learn of an exact zero or a NaN, open the tape with persistent=True, or call explain before gradient",
    ),
    Reason.NON_DIFFERENTIABLE_OP: _none(
        "an op that is declared non-differentiable lies on every path to the source",
        "keep it off the differentiated path, or let the gradient pass it: x + stop_gradient(f(x) - x)",
    ),
    Reason.INTEGER_OR_BOOL: _none(
        "an op gives integers or booleans, which have no gradient; casting them back does not restore it",
        "stay in a floating dtype; use a smooth replacement (softmax for argmax, sigmoid for a comparison), or select "
        "between differentiable values with where",
    ),
    Reason.STOP_GRADIENT: _none(
        "stop_gradient cuts every path to the source", "remove it where the gradient should pass"
    ),
    Reason.NO_GRADIENT_REGISTERED: Meaning(
        Outcome.ERROR,
        "an op between the target and something that the tape watches has no gradient registered: gradient raises an "
        "error, even if the op is not on the path to this source",
        "run the op while the tape is paused or apply stop_gradient to its result, replace it, register a gradient for "
        "it, or declare that it has none",
    ),
    Reason.NO_GRADIENT_DECLARED: _none(
        "the op was declared to have no gradient",
        "keep the op off the differentiated path, or remove the declaration",
    ),
    Reason.CUSTOM_NONE: _none(
        "a custom gradient function returned None for the input that leads to the source",
        "return a cotangent for that input from the gradient function",
    ),
    Reason.ASSIGNED: _none(
        "the value was assigned to a variable; a variable has a state, not a history",
        "use the tensor itself in the computation (state = state + x), and assign it afterwards to keep it",
    ),
    Reason.LEFT_AND_RETURNED: _none(
        "the value left the program as plain numbers (numpy(), float(), a NumPy function) and came back as a constant",
        "stay in tensors: use this library's function instead of NumPy's, and pass the tensor itself on",
    ),
    Reason.NOT_WATCHED: _none(
        "the tape does not watch the source: by itself it watches only trainable variables",
        "watch the source before it is used (Python: tape.watch(source)), or make it a variable",
    ),
    Reason.WATCHED_AFTER_USE: _none(
        "the tape watched the source only after it had been used", "watch it before its first use"
    ),
    Reason.NOT_TRAINABLE: _none(
        "the source is a variable with trainable=False, which tapes do not watch by themselves",
        "create it with trainable=True, or watch it before it is used (Python: tape.watch(variable))",
    ),
    Reason.VARIABLE_REPLACED: _none(
        "the source is not a variable any more: an expression such as x = x + 1 has replaced it by a tensor",
        "update variables in place with x.assign_add(1) or x.assign(...); watch a tensor that is meant as the source "
        "before it is used (Python: tape.watch(x))",
    ),
    Reason.COMPUTED_BEFORE_TAPE: _none(
        "a step from the source to the target ran before the tape was open",
        "compute it after the tape is opened (Python: inside its with block)",
    ),
    Reason.COMPUTED_AFTER_TAPE: _none(
        "a step from the source to the target ran after the tape had stopped recording",
        "compute it while the tape records (Python: inside its with block), and ask for the gradient afterwards",
    ),
    Reason.COMPUTED_WHILE_STOPPED: _none(
        "a step from the source to the target ran while the tape was stopped",
        "compute it while the tape records (Python: outside of tape.stop_recording())",
    ),
    Reason.COMPUTED_BEFORE_RESET: _none(
        "a step from the source to the target ran before the tape was reset, which forgets steps and watched values",
        "reset the tape before the computation, and watch again after the reset",
    ),
    Reason.OTHER_CONTEXT: _none(
        "a step from the source to the target ran in another thread or task, where the tape does not record",
        "compute it in the thread that opened the tape, or open a tape in that thread",
    ),
    Reason.NO_OUTER_TAPE: _none(
        "the value is itself a gradient, and this tape did not record how it was computed",
        "for a second derivative compute the inner gradient while an outer tape records (Python: inside the outer "
        "tape's with block), and ask the outer tape",
    ),
    Reason.UNTAKEN_BRANCH: _none(
        "only the branch that was not taken uses the source", "nothing, if the condition is as intended"
    ),
    Reason.NO_ITERATION: _none(
        "only the body of a loop that ran no iteration uses the source", "check the loop's condition"
    ),
    Reason.SOURCE_DTYPE: _none(
        "the source's dtype has no gradient", "use a floating or complex dtype, such as float32"
    ),
    Reason.TARGET_DTYPE: _none(
        "the target's dtype has no gradient", "differentiate a floating or complex value, before it is cast or compared"
    ),
    Reason.UNCONNECTED: _none(
        "the target was computed without the source",
        f"check that the source is the variable that the computation uses; {ZEROS} gives zeros",
    ),
    Reason.ZERO_DERIVATIVE: _zero(
        "the op's derivative is zero at these inputs",
        "keep the op off the differentiated path, or replace it by a smooth one",
    ),
    Reason.SATURATED: _zero(
        "the op is flat at these inputs: all of them are clipped or saturated",
        "scale or shift the inputs, widen the bounds, or use an op with a slope everywhere (leaky_relu, softplus)",
    ),
    Reason.MASKED: _zero(
        "the op selects other elements, and none of the source's", "check the mask, the indices or the condition"
    ),
    Reason.TIE: _zero(
        "the op's inputs are equal, and the whole gradient of a tie goes to the first",
        "put the input that should have the gradient first, or average the two",
    ),
    Reason.ZERO_FACTOR: _zero(
        "the gradient is multiplied by zeros",
        "check the factor: a weight, a mask, a learning rate or an element of the same product that is zero",
    ),
    Reason.CANCELLED: _zero(
        "contributions of several paths add up to exactly zero",
        "nothing, if the target indeed does not change with the source",
    ),
    Reason.UNDERFLOW: _zero("the product is too small for the dtype", "compute in a wider dtype, or scale the loss"),
    Reason.VALUE_NOT_FINITE: _not_finite(
        "a value of the forward pass is NaN or infinite already",
        "correct the forward pass first: check_numerics after the named op stops there",
    ),
    Reason.INFINITE_DERIVATIVE: _not_finite(
        "the op's derivative is infinite at this input",
        "keep the input away from there: maximum(x, eps), or x + eps, before the op",
    ),
    Reason.UNDEFINED_DERIVATIVE: _not_finite(
        "the op's derivative is undefined at this input",
        "keep the input away from there: maximum(x, eps), or eps under the root",
    ),
    Reason.ZERO_TIMES_INFINITY: _not_finite(
        "zero times an infinite derivative is NaN: a mask such as where after the op does not prevent it",
        "make the op's input safe first: safe = where(ok, x, 1.0), then where(ok, f(safe), 0.0)",
    ),
    Reason.OVERFLOW: _not_finite(
        "the product is too large for the dtype",
        "compute in a wider dtype, scale the loss, or clip the gradient (clip_by_norm)",
    ),
}
