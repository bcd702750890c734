"""The message of Keras's optimizers for a gradient that is None, extended by the reason."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any, Final

from teletape.core.errors import TeletapeError
from teletape.core.variables import none_gradients

_MOST: Final = 3  #: The largest number of explanations in a message; each costs a request on a server.


def filter_empty_gradients(module: ModuleType) -> Callable[..., Any]:
    """Returns `BaseOptimizer._filter_empty_gradients`, whose warning and error end with the reasons."""
    original = module.__dict__["BaseOptimizer"]._filter_empty_gradients

    @functools.wraps(original)
    def filtered(self: Any, grads: Any, vars: Any) -> Any:
        gradients, variables = list(grads), list(vars)
        if not any(gradient is None for gradient in gradients):
            return gradients, variables
        try:
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                result = original(self, gradients, variables)
        except ValueError as error:
            raise ValueError(f"{error}{_reasons(gradients, variables)}") from None
        for warning in caught:
            warnings.warn(f"{warning.message}{_reasons(gradients, variables)}", warning.category, stacklevel=2)
        return result

    return filtered


def _reasons(gradients: Sequence[Any], variables: Sequence[Any]) -> str:
    """Returns a line for each of the first variables without a gradient; empty if the tapes are gone."""
    lines = []
    absent = [variable for gradient, variable in zip(gradients, variables, strict=True) if gradient is None]
    for variable in absent[:_MOST]:
        try:
            explanation = none_gradients.explanation(variable)
        except (TeletapeError, RuntimeError, TypeError, ValueError):
            explanation = None
        if explanation is not None:
            name = getattr(variable, "path", None) or variable.name
            lines.append(f"\n{name}: {explanation.message} [{explanation.code}]; {explanation.advice}")
    return "".join(lines)
