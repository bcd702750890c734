"""Optimizers: how a gradient changes a variable, as steps of a function. Formulas and defaults are those of Keras 3.

An optimizer is data: its settings with their defaults, the slots that it keeps for each variable, and the update as
steps. `training.training_step` puts them into a function.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final, TypeAlias

import numpy as np

from teletape_engine.errors import InvalidArgumentError
from teletape_engine.functions.step_writer import StepWriter, Term
from teletape_engine.spec import dtype_of

Settings: TypeAlias = Mapping[str, Any]


@dataclass(frozen=True)
class Update:
    """What an update works on.

    Attributes:
        writer: Gets the steps.
        variable: The variable.
        gradient: Its gradient, clipped.
        slots: What the optimizer keeps for the variable, by name.
        dtype: The variable's.
        step: The number of the step, from 1, as float64.
        rate: The learning rate.
        settings: The optimizer's other settings.
    """

    writer: StepWriter
    variable: Term
    gradient: Term
    slots: Mapping[str, Term]
    dtype: str
    step: Term
    rate: float
    settings: Settings


@dataclass(frozen=True)
class Optimizer:
    """A kind of optimizer.

    Attributes:
        name: Its name.
        settings: Its settings with their defaults; all have `COMMON` in addition.
        slots: From its settings to the initial number of each slot.
        update: Writes the update of one variable.
    """

    name: str
    settings: Settings
    slots: Callable[[Settings], Mapping[str, float]]
    update: Callable[[Update], None]

    def complete(self, settings: Settings) -> dict[str, Any]:
        """Returns the settings with defaults for those that are left out.

        Raises:
            InvalidArgumentError: A setting is unknown.
        """
        known = {**COMMON, **self.settings}
        unknown = [name for name in settings if name not in known]
        if unknown:
            raise InvalidArgumentError(
                f"the optimizer {self.name!r} has no setting {', '.join(map(repr, unknown))}; it has {', '.join(known)}"
            )
        return {**known, **settings}


#: Settings of every optimizer: they change the gradients or the variables before the update.
COMMON: Final[Settings] = MappingProxyType(
    {"learning_rate": 0.001, "weight_decay": None, "clipnorm": None, "clipvalue": None, "global_clipnorm": None}
)


def _moving_average(update: Update, slot: str, value: Term, keep: float) -> Term:
    """Writes slot ← slot + (value - slot)·(1 - keep), and returns the slot."""
    average = update.slots[slot]
    update.writer.assign(average, (value - average) * (1 - keep), "add")
    return average


def _decayed(update: Update, slot: str, value: Term, keep: float) -> Term:
    """Writes slot ← keep·slot + (1 - keep)·value, and returns the slot."""
    average = update.slots[slot]
    update.writer.assign(average, keep * average + (1 - keep) * value)
    return average


def _power(update: Update, base: float) -> Term:
    """Writes the base, as the variable's dtype has it, to the power of the step.

    As exp(step · log(base)) in float64, since a plan in C has no op pow.
    """
    number = float(np.asarray(base, dtype_of(update.dtype)))
    power = update.writer.op("exp", update.step * math.log(number)) if number else update.step * 0.0
    return update.writer.op("cast", power, dtype=update.dtype)


def _square(x: Term) -> Term:
    return x.writer.op("square", x)


def _sqrt(x: Term) -> Term:
    return x.writer.op("sqrt", x)


# ----------------------------------------------------------------------------------------------------------- optimizers
def _sgd(u: Update) -> None:
    momentum = u.settings["momentum"]
    change = u.gradient * u.rate
    if not momentum:
        u.writer.assign(u.variable, change, "sub")
        return
    m = u.slots["momentum"]
    u.writer.assign(m, m * momentum - change)
    u.writer.assign(u.variable, m * momentum - change if u.settings["nesterov"] else m, "add")


def _adam(u: Update) -> None:
    beta_1, beta_2 = u.settings["beta_1"], u.settings["beta_2"]
    alpha = u.rate * _sqrt(1 - _power(u, beta_2)) / (1 - _power(u, beta_1))
    m = _moving_average(u, "m", u.gradient, beta_1)
    v = _moving_average(u, "v", _square(u.gradient), beta_2)
    if u.settings["amsgrad"]:
        largest = u.slots["v_hat"]
        u.writer.assign(largest, u.writer.op("maximum", largest, v))
        v = largest
    u.writer.assign(u.variable, m * alpha / (_sqrt(v) + u.settings["epsilon"]), "sub")


def _adamax(u: Update) -> None:
    beta_1, beta_2 = u.settings["beta_1"], u.settings["beta_2"]
    m = _moving_average(u, "m", u.gradient, beta_1)
    largest = u.slots["u"]
    u.writer.assign(largest, u.writer.op("maximum", beta_2 * largest, u.writer.op("abs", u.gradient)))
    u.writer.assign(u.variable, u.rate * m / ((1 - _power(u, beta_1)) * (largest + u.settings["epsilon"])), "sub")


def _rmsprop(u: Update) -> None:
    rho, momentum = u.settings["rho"], u.settings["momentum"]
    denominator = _decayed(u, "v", _square(u.gradient), rho)
    if u.settings["centered"]:
        denominator = denominator - _square(_decayed(u, "mean", u.gradient, rho))
    increment = u.rate * u.gradient / _sqrt(denominator + u.settings["epsilon"])
    if momentum:
        m = u.slots["momentum"]
        u.writer.assign(m, momentum * m + increment)
        increment = m
    u.writer.assign(u.variable, increment, "sub")


def _adagrad(u: Update) -> None:
    total = u.slots["total"]
    u.writer.assign(total, _square(u.gradient), "add")
    u.writer.assign(u.variable, u.rate * u.gradient / _sqrt(total + u.settings["epsilon"]), "sub")


def _adadelta(u: Update) -> None:
    rho, epsilon = u.settings["rho"], u.settings["epsilon"]
    gradients = _decayed(u, "gradients", _square(u.gradient), rho)
    change = -(_sqrt(u.slots["changes"] + epsilon) * u.gradient / _sqrt(gradients + epsilon))
    _decayed(u, "changes", _square(change), rho)
    u.writer.assign(u.variable, u.rate * change, "add")


def _lion(u: Update) -> None:
    beta_1, beta_2 = u.settings["beta_1"], u.settings["beta_2"]
    m = u.slots["m"]
    sign = u.writer.op("sign", m * beta_1 + u.gradient * (1 - beta_1))
    u.writer.assign(u.variable, u.rate * sign, "sub")
    u.writer.assign(m, m * beta_2 + u.gradient * (1 - beta_2))


def _zeros(*names: str) -> dict[str, float]:
    return dict.fromkeys(names, 0.0)


_ADAM: Final = {"beta_1": 0.9, "beta_2": 0.999, "epsilon": 1e-7}


def _adam_slots(settings: Settings) -> Mapping[str, float]:
    return _zeros("m", "v", *(["v_hat"] if settings["amsgrad"] else []))


def _rmsprop_slots(settings: Settings) -> Mapping[str, float]:
    momentum, mean = settings["momentum"], settings["centered"]
    return _zeros("v", *(["mean"] if mean else []), *(["momentum"] if momentum else []))


#: The optimizers by name.
OPTIMIZERS: Final[Mapping[str, Optimizer]] = {
    optimizer.name: optimizer
    for optimizer in (
        Optimizer(
            "sgd",
            {"learning_rate": 0.01, "momentum": 0.0, "nesterov": False},
            lambda settings: _zeros("momentum") if settings["momentum"] else {},
            _sgd,
        ),
        Optimizer("adam", {**_ADAM, "amsgrad": False}, _adam_slots, _adam),
        Optimizer("adamw", {**_ADAM, "amsgrad": False, "weight_decay": 0.004}, _adam_slots, _adam),
        Optimizer("adamax", _ADAM, lambda settings: _zeros("m", "u"), _adamax),
        Optimizer(
            "rmsprop", {"rho": 0.9, "momentum": 0.0, "epsilon": 1e-7, "centered": False}, _rmsprop_slots, _rmsprop
        ),
        Optimizer(
            "adagrad",
            {"initial_accumulator_value": 0.1, "epsilon": 1e-7},
            lambda settings: {"total": settings["initial_accumulator_value"]},
            _adagrad,
        ),
        Optimizer(
            "adadelta", {"rho": 0.95, "epsilon": 1e-7}, lambda settings: _zeros("gradients", "changes"), _adadelta
        ),
        Optimizer("lion", {"beta_1": 0.9, "beta_2": 0.99}, lambda settings: _zeros("m"), _lion),
    )
}
