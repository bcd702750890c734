"""`tf.train.ExponentialMovingAverage`: averages of variables, as programs keep them for evaluation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from teletape._generated.elementwise.arithmetic import minimum
from teletape._generated.shapes.cast import cast
from teletape.core.calls.dispatch import as_tensor, convert_to_tensor
from teletape.core.sessions.current import outside_traces
from teletape.core.tensors import dtypes
from teletape.core.tensors.tensor import TensorLike
from teletape.core.variables.variable import Variable

_FLOATS = (dtypes.float16, dtypes.bfloat16, dtypes.float32, dtypes.float64)


class ExponentialMovingAverage:
    """Averages of variables that forget earlier values exponentially: `average -= (1 - decay) * (average - variable)`.

    Args:
        decay: The share of the average that stays at an update.
        num_updates: A count of updates. With it the decay is at most (1 + num_updates) / (10 + num_updates).
        zero_debias: Without effect on averages of variables, which begin at the variables' values.
        name: The end of the averages' names.
    """

    def __init__(
        self,
        decay: Any,
        num_updates: Any = None,
        zero_debias: bool = False,
        name: str = "ExponentialMovingAverage",
    ) -> None:
        self._decay, self._num_updates, self._name = decay, num_updates, name
        self._averages: dict[Any, Variable] = {}

    @property
    def name(self) -> str:
        """The end of the averages' names."""
        return self._name

    def apply(self, var_list: Sequence[Any] | None = None) -> None:
        """Updates the averages of variables; a new average begins at the variable's value.

        Args:
            var_list: The variables, of float16, bfloat16, float32 or float64.

        Raises:
            TypeError: Something else is among them.
        """
        variables = list(var_list or ())
        for variable in variables:
            if not isinstance(variable, Variable):
                raise TypeError(
                    "tf.train.ExponentialMovingAverage does not support non-Variable tensors when eager execution is "
                    "enabled."
                )
            if variable.dtype not in _FLOATS:
                raise TypeError(f"The variables must be half, float, or double: {variable.name}")
            if variable.ref() not in self._averages:
                with outside_traces():
                    self._averages[variable.ref()] = Variable(
                        variable.read_value(), trainable=False, name=self.average_name(variable)
                    )
        for variable in variables:
            average = self._averages[variable.ref()]
            forgotten = convert_to_tensor(self._share_forgotten(), average.dtype)
            average.assign_sub((as_tensor(average) - as_tensor(variable)) * forgotten)

    def _share_forgotten(self) -> Any:
        """Returns 1 - decay."""
        if self._num_updates is None:
            return 1.0 - (as_tensor(self._decay) if isinstance(self._decay, TensorLike) else self._decay)
        updates: Any = cast(self._num_updates, dtypes.float32)
        return 1.0 - minimum(self._decay, (1.0 + updates) / (10.0 + updates))

    def average(self, var: Any) -> Variable | None:
        """Returns the variable with the average of `var`; None before `apply` was called with it."""
        return self._averages.get(var.ref())

    def average_name(self, var: Any) -> str:
        """Returns the name of the variable with the average of `var`."""
        return f"{var.name.removesuffix(':0')}/{self._name}"
