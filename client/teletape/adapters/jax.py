"""`teletape.adapters.jax`: a function whose derivatives Teletape computes, as a function of JAX's arrays.

JAX differentiates it twice, forwards and backwards, and `jax.vmap` maps it over rows: they are one request. Under
`jax.jit` the requests are callbacks to the host.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, Final

import numpy as np

from teletape.adapters.questions import Question
from teletape.adapters.rules import Query, Rules
from teletape.adapters.wrapping import N_MAX, Bounded, wrapped
from teletape.adapters.wrapping import Function as AnyFunction

try:
    import jax
    import jax.numpy as jnp
    from jax.extend.core import Primitive
    from jax.interpreters import ad, batching, mlir
except ModuleNotFoundError as error:
    raise ModuleNotFoundError("teletape.adapters.jax needs JAX: pip install 'teletape[jax]'", name=error.name) from None

__all__ = ["Function"]

#: Shapes and dtypes of arrays.
Specs = tuple[tuple[tuple[int, ...], np.dtype[Any]], ...]


class Function:
    """A function of arrays: `f(x, w)` or `f(x, w=w)`, that JAX's transformations take.

    The gradient of a function that returns one number comes with its value, by one request. The shapes of its results
    are found by a call at ones, or zeros for whole numbers, for each new kind of inputs, unless `results` tells them.

    Args:
        function: A published function or a session's function of `teletape.service`, a `tf.function`, or a Python
            function of tensors.
        targets: Outputs of a service's function, by name; None: all. Several are a tuple.
        n_max: Most rows in one request.
        results: An array, a `jax.ShapeDtypeStruct` or the like for each result, if they do not depend on the inputs.
        **fixed: The function's other inputs, by name.
    """

    def __init__(
        self,
        function: AnyFunction,
        *,
        targets: Sequence[str] | None = None,
        n_max: int = N_MAX,
        results: Sequence[Any] | None = None,
        **fixed: Any,
    ) -> None:
        self._function = wrapped(function, fixed, n_max, targets)
        self._results = None if results is None else tuple([_spec(result) for result in results])
        self._known: dict[Specs, Specs] = {}

    def __call__(self, *inputs: Any, **named: Any) -> Any:
        """Returns the result, an array, or a tuple of arrays if there are several.

        Args:
            *inputs: Arrays, in order. Those of floats are differentiable.
            **named: Arrays by the names of inputs.

        Raises:
            TypeError: An input is missing, or is none of the function's.
        """
        arrays = [jnp.asarray(value) for value in self._function.in_order(inputs, named)]
        answer = _ask(self._function, self._specs(arrays), False, Query("call", arrays))
        return answer[0] if len(answer) == 1 else tuple(answer)

    def _specs(self, arrays: Sequence[Any]) -> Specs:
        if self._results is not None:
            return self._results
        kinds = tuple([_spec(array) for array in arrays])
        if kinds not in self._known:
            examples = [
                np.ones(shape, dtype) if dtype.kind == "f" else np.zeros(shape, dtype) for shape, dtype in kinds
            ]
            self._known[kinds] = tuple([_spec(array) for array in self._function.ask("call", examples)])
        return self._known[kinds]


def _spec(array: Any) -> tuple[tuple[int, ...], np.dtype[Any]]:
    return tuple(array.shape), np.dtype(jax.dtypes.canonicalize_dtype(array.dtype))


def _ask(function: Bounded, specs: Specs, rows: bool, query: Query[Any]) -> Sequence[Any]:
    """Asks by an operation of JAX's; `specs` are those of the function's results for one row."""
    question, inputs, first, second = query
    counts = len(inputs), len(first)
    answer: Sequence[Any] = _QUESTION.bind(
        *inputs, *first, *second, function=function, specs=specs, rows=rows, question=question, counts=counts
    )
    return answer


def _rules(function: Bounded, specs: Specs, rows: bool) -> Rules[Any]:
    def scaled(number: Any, array: Any) -> Any:
        return number.reshape(*number.shape, *[1] * (array.ndim - number.ndim)) * array

    def inner(arrays: Sequence[Any], others: Sequence[Any]) -> Any:
        products = [a * b for a, b in zip(arrays, others, strict=True)]
        return sum(product.sum(axis=tuple(range(rows, product.ndim))) for product in products)

    return Rules(partial(_ask, function, specs, rows), jnp.ones_like, scaled, inner, jnp.add)


def _query(question: Question, counts: tuple[int, int], arrays: Sequence[Any]) -> Query[Any]:
    """Returns a question, from all its arrays in one list."""
    inputs, first = counts
    return Query(question, arrays[:inputs], arrays[inputs : inputs + first], arrays[inputs + first :])


def _is_source(array: Any) -> bool:
    return bool(np.dtype(array.dtype).kind == "f")


def _results(arrays: Sequence[Any], question: Question, counts: tuple[int, int], rows: bool, specs: Specs) -> Specs:
    """Returns the specs of an answer."""
    inputs = arrays[: counts[0]]
    lead = tuple(inputs[0].shape[:1]) if rows else ()
    sources = tuple([_spec(array) for array in inputs if _is_source(array)])
    outputs = tuple([((*lead, *shape), dtype) for shape, dtype in specs])
    if question == "value_and_gradient":
        return outputs + sources
    return sources if question in ("vjp", "hvp") else outputs


def _on_host(
    arrays: Sequence[Any], function: Bounded, specs: Specs, rows: bool, question: Question, counts: tuple[int, int]
) -> list[Any]:
    own = [np.asarray(array) for array in arrays]
    answer = function.ask(*_query(question, counts, own), rows=rows)
    expected = _results(own, question, counts, rows, specs)
    return [np.asarray(part, dtype).reshape(shape) for part, (shape, dtype) in zip(answer, expected, strict=True)]


def _called(*arrays: Any, **parameters: Any) -> Any:
    expected = _results(arrays, *[parameters[name] for name in ("question", "counts", "rows", "specs")])
    structs = [jax.ShapeDtypeStruct(shape, dtype) for shape, dtype in expected]
    return jax.pure_callback(lambda *own: _on_host(own, **parameters), structs, *arrays)


def _abstract(*arrays: Any, **parameters: Any) -> Any:
    expected = _results(arrays, *[parameters[name] for name in ("question", "counts", "rows", "specs")])
    return [jax.core.ShapedArray(shape, dtype) for shape, dtype in expected]


def _jvp(
    arrays: Sequence[Any], tangents: Sequence[Any], *, function: Bounded, specs: Specs, rows: bool, **about: Any
) -> tuple[Sequence[Any], Sequence[Any]]:
    question, counts = about["question"], about["counts"]
    query, moved = _query(question, counts, arrays), _query(question, counts, tangents)
    sources = [number for number, array in enumerate(query.inputs) if _is_source(array)]
    by_sources = _moved([query.inputs[number] for number in sources], [moved.inputs[number] for number in sources])
    by_first, by_second = _moved(query.first, moved.first), _moved(query.second, moved.second)
    rules = _rules(function, specs, rows)
    is_number = len(specs) == 1 and specs[0][0] == ()
    if question == "call" and is_number and by_sources is not None:  # value and gradient by one request
        [value, *gradients] = rules.ask(Query("value_and_gradient", query.inputs))
        return [value], [rules.inner(gradients, by_sources)]
    answer = rules.ask(query)
    return answer, rules.tangents(query, answer, (by_sources, by_first, by_second))


def _moved(arrays: Sequence[Any], tangents: Sequence[Any]) -> list[Any] | None:
    """Returns a tangent for each array; None: none of them moves."""
    if all(type(tangent) is ad.Zero for tangent in tangents):
        return None
    pairs = zip(arrays, tangents, strict=True)
    return [jnp.zeros_like(array) if type(tangent) is ad.Zero else tangent for array, tangent in pairs]


def _transpose(
    cotangents: Sequence[Any], *arrays: Any, function: Bounded, specs: Specs, rows: bool, **about: Any
) -> Sequence[Any]:
    question, counts = about["question"], about["counts"]
    query = _query(question, counts, arrays)
    needed = [any(ad.is_undefined_primal(array) for array in part) for part in query[1:]]
    dense = [
        jnp.zeros(cotangent.aval.shape, cotangent.aval.dtype) if type(cotangent) is ad.Zero else cotangent
        for cotangent in cotangents
    ]
    rules = _rules(function, specs, rows)
    _, *parts = rules.cotangents(query, (), dense, (needed[0], needed[1], needed[2]))
    of_lists = [part or [None] * len(own) for part, own in zip([None, *parts], query[1:], strict=True)]
    whole = [cotangent for part in of_lists for cotangent in part]
    return [
        cotangent if ad.is_undefined_primal(array) else None for array, cotangent in zip(arrays, whole, strict=True)
    ]


def _batch(arrays: Sequence[Any], dims: Sequence[Any], *, rows: bool, **about: Any) -> tuple[Any, Any]:
    size = next(array.shape[dim] for array, dim in zip(arrays, dims, strict=True) if dim is not None)
    stacks = [
        jnp.broadcast_to(array, (size, *array.shape)) if dim is None else jnp.moveaxis(array, dim, 0)
        for array, dim in zip(arrays, dims, strict=True)
    ]
    inner = stacks[0].shape[1] if rows else 1
    if rows:  # rows of rows are more rows
        stacks = [stack.reshape(size * inner, *stack.shape[2:]) for stack in stacks]
    answer = _QUESTION.bind(*stacks, rows=True, **about)
    if rows:
        answer = [part.reshape(size, inner, *part.shape[1:]) for part in answer]
    return answer, [0] * len(answer)


_QUESTION: Final = Primitive("teletape_question")
_QUESTION.multiple_results = True
_QUESTION.def_impl(lambda *arrays, **parameters: [jnp.asarray(part) for part in _on_host(arrays, **parameters)])
_QUESTION.def_abstract_eval(_abstract)
mlir.register_lowering(_QUESTION, mlir.lower_fun(_called, multiple_results=True))
ad.primitive_jvps[_QUESTION] = _jvp
ad.primitive_transposes[_QUESTION] = _transpose
batching.primitive_batchers[_QUESTION] = _batch
