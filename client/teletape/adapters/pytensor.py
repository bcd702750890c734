"""`teletape.adapters.pytensor`: a function whose derivatives Teletape computes, as an Op of PyTensor's, for PyMC."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final
from uuid import uuid4

import numpy as np

from teletape.adapters.questions import Question
from teletape.adapters.rules import Query, Rules
from teletape.adapters.wrapping import N_MAX, Bounded, wrapped
from teletape.adapters.wrapping import Function as AnyFunction

try:
    import pytensor.tensor as pt
    from pytensor.gradient import DisconnectedType, disconnected_type
    from pytensor.graph.basic import Apply
    from pytensor.graph.op import Op
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        "teletape.adapters.pytensor needs PyTensor: pip install 'teletape[pytensor]'", name=error.name
    ) from None

__all__ = ["Function"]


#: The functions of Ops, by the keys that Ops have in their place: PyTensor pickles Ops to compare them.
_FUNCTIONS: Final[dict[str, Bounded]] = {}


class Function:
    """A function of PyTensor's variables: `f(x, w)` or `f(x, w=w)`, a log density for PyMC.

    Of a function that returns one number, value and gradient are always computed, and are one request.

    Args:
        function: A published function or a session's function of `teletape.service`, a `tf.function`, or a Python
            function of tensors.
        results: The type of each result, a `pytensor.tensor.TensorType`; None: one number, float64.
        targets: Outputs of a service's function, by name; None: all. Several are a tuple.
        **fixed: The function's other inputs, by name.
    """

    def __init__(
        self,
        function: AnyFunction,
        *,
        results: Sequence[Any] | None = None,
        targets: Sequence[str] | None = None,
        **fixed: Any,
    ) -> None:
        self._function = wrapped(function, fixed, N_MAX, targets)
        self._key = uuid4().hex
        _FUNCTIONS[self._key] = self._function
        self._results = (pt.TensorType("float64", ()),) if results is None else tuple(results)

    def __call__(self, *inputs: Any, **named: Any) -> Any:
        """Returns the result, a variable, or a tuple of variables if there are several.

        Args:
            *inputs: Variables or arrays, in order. Those of floats are differentiable.
            **named: The same by the names of inputs.

        Raises:
            TypeError: An input is missing, or is none of the function's.
        """
        variables = [pt.as_tensor_variable(value) for value in self._function.in_order(inputs, named)]
        is_number = len(self._results) == 1 and self._results[0].ndim == 0
        question: Question = "value_and_gradient" if is_number else "call"
        answer = _ask(self._key, self._results, Query(question, variables))
        return answer[0] if len(self._results) == 1 else tuple(answer)


def _ask(key: str, results: tuple[Any, ...], query: Query[Any]) -> Sequence[Any]:
    """Asks by an Op."""
    question, inputs, first, second = query
    op = _Question(key, results, question, (len(inputs), len(first)))
    answer: Sequence[Any] = op(*inputs, *first, *second, return_list=True)
    return answer


class _Question(Op):
    """A question as an Op: its rules are questions again."""

    __props__ = ("key", "results", "question", "counts")

    def __init__(self, key: str, results: tuple[Any, ...], question: Question, counts: tuple[int, int]) -> None:
        self.key, self.results, self.question, self.counts = key, results, question, counts

    def make_node(self, *arrays: Any) -> Any:
        variables = [pt.as_tensor_variable(array) for array in arrays]
        sources = [variable.type for variable in variables[: self.counts[0]] if _is_source(variable)]
        types = [*self.results]
        if self.question == "value_and_gradient":
            types += sources
        elif self.question in ("vjp", "hvp"):
            types = sources
        return Apply(self, variables, [kind() for kind in types])

    def perform(self, node: Any, inputs: Sequence[Any], output_storage: Any) -> None:
        answer = _FUNCTIONS[self.key].ask(*self._query(inputs))
        for storage, variable, part in zip(output_storage, node.outputs, answer, strict=True):
            storage[0] = np.asarray(part, variable.type.dtype)

    def pullback(self, inputs: Sequence[Any], outputs: Sequence[Any], cotangents: Sequence[Any]) -> list[Any]:
        query = self._query(inputs)
        dense = [
            pt.zeros_like(output) if isinstance(cotangent.type, DisconnectedType) else cotangent
            for output, cotangent in zip(outputs, cotangents, strict=True)
        ]
        if self.question == "value_and_gradient" and all(
            isinstance(cotangent.type, DisconnectedType) for cotangent in cotangents[1:]
        ):
            dense = dense[:1]
        # PyTensor asks for all: a third derivative, which there is not, is refused if it is used.
        needed = (self.question not in ("hvp", "second_jvp"), True, True)
        of_sources, *of_others = self._rules().cotangents(query, outputs, dense, needed)
        sources = iter(of_sources or [_third(number, self, array) for number, array in enumerate(query.inputs)])
        of_inputs = [next(sources) if _is_source(array) else disconnected_type() for array in query.inputs]
        return [*of_inputs, *[cotangent for part in of_others for cotangent in part or ()]]

    def pushforward(self, inputs: Sequence[Any], outputs: Sequence[Any], tangents: Sequence[Any]) -> list[Any]:
        query, moved = self._query(inputs), self._query(tangents)
        sources = [number for number, array in enumerate(query.inputs) if _is_source(array)]
        lists = (
            _moved([query.inputs[number] for number in sources], [moved.inputs[number] for number in sources]),
            _moved(query.first, moved.first),
            _moved(query.second, moved.second),
        )
        if lists == (None, None, None):
            return [disconnected_type() for _ in outputs]
        return list(self._rules().tangents(query, outputs, lists))

    if not hasattr(Op, "pullback"):  # PyTensor 2, which PyMC 5 needs, has other names for the same two rules
        L_op = pullback

        def R_op(self, inputs: Sequence[Any], eval_points: Sequence[Any]) -> list[Any]:
            tangents = [disconnected_type() if tangent is None else tangent for tangent in eval_points]
            moved = self.pushforward(inputs, self.make_node(*inputs).outputs, tangents)
            return [None if isinstance(tangent.type, DisconnectedType) else tangent for tangent in moved]

    def connection_pattern(self, node: Any) -> list[list[bool]]:
        return [[_is_source(variable)] * len(node.outputs) for variable in node.inputs]

    def _query(self, arrays: Sequence[Any]) -> Query[Any]:
        inputs, first = self.counts
        return Query(self.question, arrays[:inputs], arrays[inputs : inputs + first], arrays[inputs + first :])

    def _rules(self) -> Rules[Any]:
        def inner(arrays: Sequence[Any], others: Sequence[Any]) -> Any:
            return sum((a * b).sum() for a, b in zip(arrays, others, strict=True))

        return Rules(
            lambda query: _ask(self.key, self.results, query),
            pt.ones_like,
            lambda number, array: number * array,
            inner,
            lambda a, b: a + b,
        )


def _is_source(variable: Any) -> bool:
    return str(variable.type.dtype).startswith("float")


def _third(number: int, op: Any, variable: Any) -> Any:
    from pytensor.gradient import grad_not_implemented

    return grad_not_implemented(op, number, variable, "an adapter differentiates a function twice")


def _moved(variables: Sequence[Any], tangents: Sequence[Any]) -> list[Any] | None:
    """Returns a tangent for each variable; None: none of them moves."""
    still = [isinstance(tangent.type, DisconnectedType) for tangent in tangents]
    if all(still):
        return None
    triples = zip(variables, tangents, still, strict=True)
    return [pt.zeros_like(variable) if is_still else tangent for variable, tangent, is_still in triples]
