"""The closed vocabulary of explanations: why a gradient is None, zero or not finite, and what to do about each.

docs/explain.md shows a program for every code; a test holds the two together.
"""

from __future__ import annotations

import enum
from typing import Final, NamedTuple


class Outcome(enum.StrEnum):
    """What the tape gives for the source."""

    GRADIENT = "gradient"  #: numbers, all finite and not all zero, as far as that is known
    NONE = "none"
    ZERO = "zero"  #: every element is exactly zero
    NOT_FINITE = "not_finite"  #: an element is NaN or infinite
    ERROR = "error"  #: asking raises


class Reason(enum.StrEnum):
    """Why."""

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
    NO_TRIP = "no_trip"
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
    """One code of the vocabulary.

    Attributes:
        outcome: What the tape gives.
        says: What it means, as a clause.
        advice: What to do.
    """

    outcome: Outcome
    says: str
    advice: str


_N, _Z, _F = Outcome.NONE, Outcome.ZERO, Outcome.NOT_FINITE

MEANINGS: Final[dict[Reason, Meaning]] = {
    Reason.CONNECTED: Meaning(
        Outcome.GRADIENT, "the target depends on the source through ops that all pass gradients", ""
    ),
    Reason.PARTLY_CUT: Meaning(
        Outcome.GRADIENT,
        "there is a gradient, but another way from the target to the source is cut, and adds nothing to it",
        "if that share should count, replace the op that cuts it; if it should not, say so with tf.stop_gradient",
    ),
    Reason.NUMBERS_GONE: Meaning(
        Outcome.GRADIENT,
        "the target is connected to the source, but a tape that is not persistent has let go of the numbers with its "
        "answer",
        "for an exact zero or a NaN open the tape with persistent=True, or ask explain before gradient",
    ),
    Reason.NON_DIFFERENTIABLE_OP: Meaning(
        _N,
        "an op that is declared non-differentiable lies on every way to the source",
        "leave it out of the differentiated path, or pass the gradient through it: tf.grad_pass_through(f)(x), or "
        "x + tf.stop_gradient(f(x) - x)",
    ),
    Reason.INTEGER_OR_BOOL: Meaning(
        _N,
        "an op gives integers or booleans, which have no gradient; casting them back does not bring it back",
        "stay in a floating dtype; use a smooth stand-in (softmax for argmax, sigmoid for a comparison) or choose "
        "between differentiable values with tf.where",
    ),
    Reason.STOP_GRADIENT: Meaning(
        _N, "tf.stop_gradient cuts every way to the source", "remove it where the gradient should pass"
    ),
    Reason.NO_GRADIENT_REGISTERED: Meaning(
        Outcome.ERROR,
        "an op between the target and something that the tape watches has no gradient registered: gradient() raises "
        "LookupError, even where the op is not on the way to this source",
        "keep the op out of the tape (tape.stop_recording(), tf.stop_gradient), replace it, give it a gradient with "
        "tf.RegisterGradient, or declare with tf.no_gradient that it has none",
    ),
    Reason.NO_GRADIENT_DECLARED: Meaning(
        _N,
        "tf.no_gradient declares that the op has no gradient",
        "keep the op off the differentiated path, or drop the declaration",
    ),
    Reason.CUSTOM_NONE: Meaning(
        _N,
        "a custom gradient function gives None for the input that leads to the source",
        "have the gradient function return a cotangent for it",
    ),
    Reason.ASSIGNED: Meaning(
        _N,
        "the value went into a variable by an assignment; a variable has a state, not a history",
        "use the tensor itself in the computation (state = state + x), and assign it afterwards to keep it",
    ),
    Reason.LEFT_AND_RETURNED: Meaning(
        _N,
        "the value left the program as plain numbers (numpy(), float(), a NumPy function) and came back as a constant",
        "stay in tensors: use the tf function instead of NumPy's, and pass the tensor itself on",
    ),
    Reason.NOT_WATCHED: Meaning(
        _N,
        "the tape does not watch the source: only trainable variables are watched by themselves",
        "call tape.watch(source) before it is used, or make it a tf.Variable",
    ),
    Reason.WATCHED_AFTER_USE: Meaning(
        _N, "the source was watched only after it had been used", "move tape.watch(source) before the first use"
    ),
    Reason.NOT_TRAINABLE: Meaning(
        _N,
        "the source is a variable with trainable=False, which tapes do not watch by themselves",
        "make it with trainable=True, or call tape.watch(variable) before it is used",
    ),
    Reason.VARIABLE_REPLACED: Meaning(
        _N,
        "the source is no variable any more: an expression such as x = x + 1 has put a tensor in its place",
        "update variables in place with x.assign_add(1) or x.assign(...); a tensor that is meant as the source "
        "needs tape.watch(x) before it is used",
    ),
    Reason.COMPUTED_BEFORE_TAPE: Meaning(
        _N, "a step from the source to the target ran before the tape was open", "move it into the tape's with block"
    ),
    Reason.COMPUTED_AFTER_TAPE: Meaning(
        _N,
        "a step from the source to the target ran after the tape had stopped recording",
        "move it into the tape's with block, and ask for the gradient behind it",
    ),
    Reason.COMPUTED_WHILE_STOPPED: Meaning(
        _N,
        "a step from the source to the target ran while the tape was stopped",
        "move it out of tape.stop_recording()",
    ),
    Reason.COMPUTED_BEFORE_RESET: Meaning(
        _N,
        "a step from the source to the target ran before tape.reset(), which forgets steps and watches",
        "reset before the computation, and watch again behind it",
    ),
    Reason.OTHER_CONTEXT: Meaning(
        _N,
        "a step from the source to the target ran in another thread or task, where the tape does not record",
        "compute it in the thread that opened the tape, or open a tape in that thread",
    ),
    Reason.NO_OUTER_TAPE: Meaning(
        _N,
        "the value is itself a gradient, and the tape that is asked did not record how it was computed",
        "for a second derivative call the inner tape.gradient inside the with block of an outer tape, and ask that",
    ),
    Reason.UNTAKEN_BRANCH: Meaning(
        _N, "only the branch that was not taken uses the source", "nothing, if the condition is as meant"
    ),
    Reason.NO_TRIP: Meaning(
        _N, "only the body of a loop that made no trip uses the source", "check the loop's condition"
    ),
    Reason.SOURCE_DTYPE: Meaning(
        _N, "the source's dtype has no gradient", "use a floating or complex dtype, such as tf.float32"
    ),
    Reason.TARGET_DTYPE: Meaning(
        _N,
        "the target's dtype has no gradient",
        "differentiate a floating or complex value, before it is cast or compared",
    ),
    Reason.UNCONNECTED: Meaning(
        _N,
        "the target was computed without the source",
        "check that the variable in the computation is the one asked for; unconnected_gradients='zero' gives zeros",
    ),
    Reason.ZERO_DERIVATIVE: Meaning(
        _Z,
        "the op's derivative is zero there",
        "leave the op out of the differentiated path, or put a smooth one in its place",
    ),
    Reason.SATURATED: Meaning(
        _Z,
        "the op is flat at these inputs: all of them lie where it is clipped or saturated",
        "scale or shift the inputs, widen the bounds, or take an op with a slope everywhere (leaky_relu, softplus)",
    ),
    Reason.MASKED: Meaning(
        _Z,
        "the op selects other elements: the source's are not among them",
        "check the mask, the indices or the condition",
    ),
    Reason.TIE: Meaning(
        _Z,
        "the op's inputs are equal, and the whole gradient of a tie goes to the first",
        "put the input that should have the gradient first, or average the two",
    ),
    Reason.ZERO_FACTOR: Meaning(
        _Z, "the gradient is multiplied by zeros", "check the factor: a weight, mask or learning rate that is zero"
    ),
    Reason.CANCELLED: Meaning(
        _Z,
        "shares of several ways add up to exactly zero",
        "nothing, if the target indeed does not change with the source",
    ),
    Reason.UNDERFLOW: Meaning(
        _Z, "the product is too small for the dtype", "compute in a wider dtype, or scale the loss"
    ),
    Reason.VALUE_NOT_FINITE: Meaning(
        _F,
        "a value of the forward pass is NaN or infinite already",
        "mend the forward pass first: tf.debugging.check_numerics after the op that is named stops there",
    ),
    Reason.INFINITE_DERIVATIVE: Meaning(
        _F,
        "the op's derivative is infinite at this input",
        "keep the input away from there: tf.maximum(x, eps), or x + eps, before the op",
    ),
    Reason.UNDEFINED_DERIVATIVE: Meaning(
        _F,
        "the op's derivative is undefined at this input",
        "keep the input away from there: tf.maximum(x, eps), or eps under the root",
    ),
    Reason.ZERO_TIMES_INFINITY: Meaning(
        _F,
        "zero times an infinite derivative is NaN: a mask such as tf.where behind the op does not keep it out",
        "make the op's input safe first: safe = tf.where(ok, x, 1.0), then tf.where(ok, f(safe), 0.0)",
    ),
    Reason.OVERFLOW: Meaning(
        _F,
        "the product is too large for the dtype",
        "compute in a wider dtype, scale the loss, or clip the gradient on its way (tf.clip_by_norm)",
    ),
}
