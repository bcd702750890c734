"""`teletape.adapters.torch`: a function whose derivatives Teletape computes, as a function of PyTorch's tensors.

Autograd differentiates it twice, backwards and forwards, and `torch.func` maps it over rows: they are one request.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from teletape.adapters.questions import Question
from teletape.adapters.rules import Query, Rules
from teletape.adapters.wrapping import N_MAX, Bounded, wrapped
from teletape.adapters.wrapping import Function as AnyFunction

try:
    import torch
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        "teletape.adapters.torch needs PyTorch: pip install 'teletape[torch]'", name=error.name
    ) from None

__all__ = ["Function"]


class Function:
    """A function of tensors: `f(x, w)` or `f(x, w=w)`, differentiable in PyTorch.

    Value and gradient of a function that returns one number are one request, which is sent by the call; the backward
    pass sends none. For other functions the backward pass is one request. Tensors travel through the host's memory;
    results are on the device of the first tensor.

    Args:
        function: A published function or a session's function of `teletape.service`, a `tf.function`, or a Python
            function of Teletape's tensors.
        targets: Outputs of a service's function, by name; None: all. Several are a tuple.
        n_max: Most rows in one request.
        **fixed: The function's other inputs, by name.
    """

    def __init__(
        self, function: AnyFunction, *, targets: Sequence[str] | None = None, n_max: int = N_MAX, **fixed: Any
    ) -> None:
        self._function = wrapped(function, fixed, n_max, targets)
        self._is_number: dict[Any, bool] = {}  # by the shapes of the inputs

    def __call__(self, *inputs: Any, **named: Any) -> Any:
        """Returns the result, a tensor, or a tuple of tensors if there are several.

        Args:
            *inputs: Tensors, in order. Those of floats are differentiable.
            **named: Tensors by the names of inputs.

        Raises:
            TypeError: An input is missing, or is none of the function's.
        """
        tensors = [torch.as_tensor(value) for value in self._function.in_order(inputs, named)]
        shapes = tuple([(tensor.shape, tensor.dtype) for tensor in tensors])
        is_number = self._is_number.get(shapes, True)
        asks_both = is_number and torch.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors)
        question: Question = "value_and_gradient" if asks_both else "call"
        answer = _ask(self._function, False, Query(question, tensors))
        if asks_both:
            results = len(answer) - sum(tensor.is_floating_point() for tensor in tensors)
            self._is_number[shapes] = results == 1 and not answer[0].ndim
            if not self._is_number[shapes]:
                answer = _ask(self._function, False, Query("call", tensors))
        results = answer[:1] if asks_both and self._is_number[shapes] else answer
        return results[0] if len(results) == 1 else tuple(results)


def _ask(function: Bounded, rows: bool, query: Query[Any]) -> Sequence[Any]:
    """Asks by an operation of PyTorch's."""
    arrays = (*query.inputs, *query.first, *query.second)
    answer: Sequence[Any] = _Question.apply(
        function, rows, query.question, len(query.inputs), len(query.first), *arrays
    )
    return answer


def _rules(function: Bounded, rows: bool) -> Rules[Any]:
    def along(value: Any) -> tuple[int, ...]:
        return tuple(range(rows, value.ndim))

    def scaled(number: Any, array: Any) -> Any:
        return number.reshape(*number.shape, *[1] * (array.ndim - number.ndim)) * array

    def inner(arrays: Sequence[Any], others: Sequence[Any]) -> Any:
        products = [a * b for a, b in zip(arrays, others, strict=True)]
        return sum(product.sum(along(product)) if along(product) else product for product in products)

    return Rules(partial(_ask, function, rows), torch.ones_like, scaled, inner, torch.add)


class _Question(torch.autograd.Function):
    """A question as an operation: its rules are questions again."""

    @staticmethod
    def forward(
        function: Bounded, rows: bool, question: Question, inputs: int, first: int, *tensors: Any
    ) -> tuple[Any, ...]:
        arrays = [tensor.detach().cpu().numpy() for tensor in tensors]
        query = _query(question, inputs, first, arrays)
        answer = function.ask(*query, rows=rows)
        own = [tensor for tensor in tensors[:inputs] if tensor.is_floating_point()]
        if question in ("vjp", "hvp"):
            dtypes = [tensor.dtype for tensor in own]
        elif question == "value_and_gradient":
            dtypes = [None] * (len(answer) - len(own)) + [tensor.dtype for tensor in own]
        else:
            dtypes = [None] * len(answer)
        device = tensors[0].device
        return tuple(
            [
                torch.as_tensor(np.array(array), dtype=dtype, device=device)
                for array, dtype in zip(answer, dtypes, strict=True)
            ]
        )

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Any, ...]) -> None:
        function, rows, question, count, first, *tensors = inputs
        ctx.set_materialize_grads(False)
        ctx.query = function, rows, question, count, first
        ctx.saved = len(tensors)
        answer = output if question == "value_and_gradient" else ()
        ctx.save_for_backward(*tensors, *answer)
        ctx.save_for_forward(*tensors, *answer)
        ctx.specs = [(value.shape, value.dtype, value.device) for value in output]

    @staticmethod
    def backward(ctx: Any, *cotangents: Any) -> tuple[Any, ...]:
        function, rows, question, count, first = ctx.query
        tensors, answer = ctx.saved_tensors[: ctx.saved], ctx.saved_tensors[ctx.saved :]
        query = _query(question, count, first, tensors)
        needed = _query(question, count, first, ctx.needs_input_grad[5:])
        is_number = question == "value_and_gradient"
        if all(cotangent is None for cotangent in cotangents):
            return (None,) * (5 + len(tensors))
        if is_number and all(cotangent is None for cotangent in cotangents[1:]):
            cotangents, specs = cotangents[:1], ctx.specs[:1]
        else:
            specs = ctx.specs
        dense = [
            torch.zeros(shape, dtype=dtype, device=device) if cotangent is None else cotangent
            for cotangent, (shape, dtype, device) in zip(cotangents, specs, strict=True)
        ]
        is_needed = (any(needed.inputs), any(needed.first), any(needed.second))
        of_sources, of_first, of_second = _rules(function, rows).cotangents(query, answer, dense, is_needed)
        sources = iter(of_sources or ())
        of_inputs = [next(sources, None) if tensor.is_floating_point() else None for tensor in query.inputs]
        return (
            *(None,) * 5,
            *of_inputs,
            *(of_first or (None,) * len(query.first)),
            *(of_second or (None,) * len(query.second)),
        )

    @staticmethod
    def jvp(ctx: Any, *moved: Any) -> tuple[Any, ...]:
        function, rows, question, count, first = ctx.query
        tensors, answer = ctx.saved_tensors[: ctx.saved], ctx.saved_tensors[ctx.saved :]
        query, tangents = _query(question, count, first, tensors), _query(question, count, first, moved[5:])
        sources = [number for number, tensor in enumerate(query.inputs) if tensor.is_floating_point()]
        by_sources = _moved([query.inputs[number] for number in sources], [tangents.inputs[n] for n in sources])
        by_first, by_second = _moved(query.first, tangents.first), _moved(query.second, tangents.second)
        return tuple(_rules(function, rows).tangents(query, answer, (by_sources, by_first, by_second)))

    @staticmethod
    def vmap(info: Any, in_dims: tuple[Any, ...], *arguments: Any) -> tuple[Any, Any]:
        function, rows, question, count, first, *tensors = arguments
        size = info.batch_size
        stacks = [
            tensor.expand(size, *tensor.shape) if dim is None else tensor.movedim(dim, 0)
            for tensor, dim in zip(tensors, in_dims[5:], strict=True)
        ]
        inner = stacks[0].shape[1] if rows else 1
        if rows:  # rows of rows are more rows
            stacks = [stack.reshape(size * inner, *stack.shape[2:]) for stack in stacks]
        answer = _ask(function, True, _query(question, count, first, stacks))
        if rows:
            answer = [part.reshape(size, inner, *part.shape[1:]) for part in answer]
        return tuple(answer), (0,) * len(answer)


def _query(question: Question, inputs: int, first: int, arrays: Sequence[Any]) -> Query[Any]:
    """Returns a question, from all its arrays in one list."""
    return Query(question, arrays[:inputs], arrays[inputs : inputs + first], arrays[inputs + first :])


def _moved(tensors: Sequence[Any], tangents: Sequence[Any]) -> list[Any] | None:
    """Returns a tangent for each tensor; None: none of them moves."""
    if all(tangent is None for tangent in tangents):
        return None
    pairs = zip(tensors, tangents, strict=True)
    return [torch.zeros_like(tensor) if tangent is None else tangent for tensor, tangent in pairs]
