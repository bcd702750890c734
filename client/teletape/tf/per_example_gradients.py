"""`tf.PerExampleGradients`: gradients of examples one by one, clipped and summed without one for each at a time.

Two passes, as over REST: the first computes the gradients of few examples at a time, and of each only its norm. The
second is one backward pass over all examples, each with the factor that its norm has led to.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from teletape._generated.elementwise.arithmetic import maximum
from teletape._generated.elementwise.complex import conj
from teletape._generated.elementwise.math import sqrt
from teletape._generated.linalg.products import matmul
from teletape._generated.reduce import reduce_max, reduce_mean, reduce_min, reduce_sum
from teletape._generated.shapes.cast import cast
from teletape._generated.shapes.shape import broadcast_to, expand_dims, reshape
from teletape._generated.sorting import sort
from teletape.core.calls.dispatch import as_tensor, constant, convert_to_tensor
from teletape.core.derivatives.arguments import UnconnectedGradients, as_source
from teletape.core.derivatives.tape import GradientTape
from teletape.core.errors import InvalidArgumentError
from teletape.core.functions.step_log import bind_captures
from teletape.core.functions.trace import Traced, trace
from teletape.core.sessions.current import current
from teletape.core.tensors import dtypes, nest
from teletape.core.tensors.tensor import EagerTensor, Tensor
from teletape.core.variables.variable import Variable
from teletape.tf.control_flow.loop_commands import scanned
from teletape.tf.ops.arrays.rearrange import concat
from teletape_engine import commands
from teletape_engine.derivatives.examples import examples_at_once
from teletape_engine.spec import Spec

__all__ = ["NormStatistics", "PerExampleGradients"]

#: Squares of such numbers soon are infinite: they are added in float32.
_NARROW: Final = (dtypes.float16, dtypes.bfloat16)


class NormStatistics(NamedTuple):
    """Statistics of the norms of examples' gradients, each a scalar of float64.

    Attributes:
        mean: Their mean.
        median: Their median; of an even number of examples the mean of the two in the middle.
        smallest: The smallest norm.
        largest: The largest norm.
    """

    mean: Tensor
    median: Tensor
    smallest: Tensor
    largest: Tensor


class PerExampleGradients:
    """The gradients of examples: their norms, and their sum with each clipped, without one for each in memory.

    That is what private training and the search for outliers need. It computes what a loop over the examples would,
    with at most the memory of two gradients in addition to the function's own steps, or 1 MiB if that is more.

    Args:
        f: From one example (an element of each of `examples`, in their structure) to a tensor or a nested structure of
            tensors, whose sum is differentiated. It is traced once; it draws no random numbers and assigns to nothing.
        examples: A tensor [n, ...], or a nested structure of such with one n, 1 or more.
        sources: Variables or tensors that all examples share and `f` uses, or a nested structure of them.
        batches_of_one: Whether `f` takes batches: it gets each example as a batch [1, ...], as Keras models need it.

    Attributes:
        norms: The norm of each example's gradient, over all sources together, before it is clipped: float64 [n].

    Raises:
        ValueError: There are no examples, or `f` is traced and reads a value.
        TypeError: `f` cannot be called; a source is no tensor or variable, or has no gradients, since it is not of
            floats.
        teletape.errors.InvalidArgumentError: Examples of different lengths, or a scalar among them; `f` draws random
            numbers or assigns to a variable.

    Example:
        w = tf.Variable([1.0, 1.0])
        examples = tf.PerExampleGradients(lambda x: tf.tensordot(x, w, 1), tf.constant([[3.0, 4.0], [0.0, 0.5]]), w)
        examples.norms, examples.sum(clip=1.0)  # [5., 0.5], [0.6, 1.3]
    """

    def __init__(self, f: Callable[[Any], Any], examples: Any, sources: Any, *, batches_of_one: bool = False) -> None:
        if not callable(f):
            raise TypeError(f"f is a function of one example; found {f!r}")
        self._structure, self._sources = sources, [_source(leaf) for leaf in nest.flatten(sources)]
        columns = nest.map_structure(convert_to_tensor, examples)
        self._examples = [expand_dims(each, 1) if batches_of_one else each for each in _checked(nest.flatten(columns))]
        self._function = _traced(f, columns, self._examples)
        self.norms = self._norms()

    def sum(self, clip: Any = None) -> Any:
        """Returns the sum of the gradients, each clipped; it is not divided by anything, and no noise is added.

        Args:
            clip: The largest norm of an example's gradient over all sources together, above 0: longer ones are made
                shorter. None: none is.

        Returns:
            For each source a tensor of its shape and dtype, in the structure of the sources: zeros where the function
            does not depend on it.

        Raises:
            teletape.errors.InvalidArgumentError: `clip` is a number that is not above 0.
        """
        factors = None
        if clip is not None:
            bound = _bound(clip)
            factors = bound / maximum(self.norms, bound)  # 1 up to the bound
        with GradientTape(watch_accessed_variables=False) as tape:
            tape.watch(self._sources)
            results = self._mapped(self._examples)
        weights = None if factors is None else [_weights(factors, result) for result in results]
        gradients = tape.gradient(results, self._sources, weights, UnconnectedGradients.ZERO)
        return nest.pack_sequence_as(self._structure, [as_tensor(each) for each in gradients])

    def clipped(self, clip: Any) -> Tensor:
        """Returns how many gradients are longer than `clip`: a scalar of int64."""
        longer = self.norms > _bound(clip)
        return reduce_sum(cast(longer, dtypes.int64))

    def statistics(self) -> NormStatistics:
        """Returns mean, median, smallest and largest norm, as `NormStatistics`."""
        ordered, size = sort(self.norms), self.norms.shape.as_list()[0]
        middle = (ordered[(size - 1) // 2] + ordered[size // 2]) / 2
        return NormStatistics(reduce_mean(self.norms), middle, reduce_min(self.norms), reduce_max(self.norms))

    # ------------------------------------------------------------------------------------------------------- the passes
    def _norms(self) -> Tensor:
        """Returns the norm of the gradient of each example, over all sources together."""
        size = self._examples[0].shape.as_list()[0]
        nbytes = sum([source.shape.num_elements() * source.dtype.size for source in self._sources])
        at_once = min(size, examples_at_once(nbytes))
        whole = size - size % at_once
        squares = []
        if whole == at_once:
            squares.append(self._squares([each[:at_once] if whole < size else each for each in self._examples]))
        else:
            chunks = [
                reshape(each[:whole], [whole // at_once, at_once, *each.shape.as_list()[1:]]) for each in self._examples
            ]
            _, [of_chunks] = scanned(lambda carry, rows: ([], [self._squares(rows)]), [], chunks)
            squares.append(reshape(of_chunks, [whole]))
        if whole < size:
            squares.append(self._squares([each[whole:] for each in self._examples]))
        return sqrt(squares[0] if len(squares) == 1 else concat(squares, 0))

    def _squares(self, rows: Sequence[Tensor]) -> Tensor:
        """Returns for each of some examples the square of the norm of its gradient: float64 [rows]."""
        count = rows[0].shape.as_list()[0]
        stacks = [broadcast_to(source, [count, *source.shape.as_list()]) for source in self._sources]
        with GradientTape(watch_accessed_variables=False) as tape:
            tape.watch(stacks)
            results = self._mapped(rows, stacks)
        total = constant(np.zeros(count))
        for gradient in tape.gradient(results, stacks, None, UnconnectedGradients.ZERO):
            columns = reshape(as_tensor(gradient), [count, -1, 1])
            if columns.dtype in _NARROW:
                columns = cast(columns, dtypes.float32)
            square = matmul(conj(reshape(columns, [count, 1, -1])), columns)
            total = total + reshape(cast(square, dtypes.float64), [count])
        return total

    def _mapped(self, rows: Sequence[Tensor], stacks: Sequence[Tensor] | None = None) -> list[Tensor]:
        """Returns the function's results of some examples, stacked.

        Args:
            rows: The examples.
            stacks: For each source a stack of which the function takes an entry in its place; None: all share it.
        """
        owner, captures = current(), self._function.captures
        entries = {} if stacks is None else dict(zip(map(_uid, self._sources), stacks, strict=True))
        inputs, mapped = [row.operand() for row in rows], [True] * len(rows)
        for capture, bound in zip(captures, bind_captures(captures), strict=True):
            stack = entries.get(_uid(capture.value))
            inputs.append(bound if stack is None else stack.operand())
            mapped.append(stack is not None)
        results = owner.run_command(commands.Map, [self._function.function], inputs, mapped=tuple(mapped))
        return [EagerTensor(result, owner) for result in results]


def _uid(value: Any) -> int:
    """Returns what identifies a tensor or a variable, or the variable of a capture, to tapes."""
    uid: int = getattr(value, "recorded", value).uid
    return uid


def _source(leaf: Any) -> Any:
    """Returns a source: a tensor or a variable of floats.

    Raises:
        TypeError: It is none.
    """
    source = as_source(leaf)
    if not isinstance(source, EagerTensor | Variable):
        raise TypeError(f"the gradients of examples are by tensors and variables; found {source!r}")
    if not (source.dtype.is_floating or source.dtype.is_complex):
        raise TypeError(f"gradients are by floats, and a source is of {source.dtype.name}: {source!r}")
    return source


def _checked(columns: Sequence[Tensor]) -> Sequence[Tensor]:
    """Returns the examples.

    Raises:
        ValueError: There are none.
        InvalidArgumentError: They have no axis 0, or not one length along it.
    """
    shapes = [column.shape.as_list() for column in columns]
    if not all(shapes) or len({shape[0] for shape in shapes}) > 1:
        raise InvalidArgumentError(
            f"examples have one length along axis 0, that of their number; found the shapes {shapes}"
        )
    if not shapes or not shapes[0][0]:
        raise ValueError(f"there is no example: give tensors [n, ...] with n of 1 or more; found the shapes {shapes}")
    return columns


def _traced(f: Callable[[Any], Any], structure: Any, examples: Sequence[Tensor]) -> Traced:
    """Returns the function of one example.

    Raises:
        InvalidArgumentError: It returns no tensor, draws random numbers or assigns to a variable.
    """

    def of_one(*leaves: Tensor) -> list[Tensor]:
        result = f(nest.pack_sequence_as(structure, list(leaves)))
        return [convert_to_tensor(leaf) for leaf in nest.flatten(result) if leaf is not None]

    specs = [Spec.of(tuple(each.shape.as_list()[1:]), each.dtype.np) for each in examples]
    traced = trace(of_one, specs)
    why = ""
    if any(capture.kind == "state" for capture in traced.captures):
        why = "draws random numbers, which would be others in the second pass: draw them before, as examples"
    elif traced.function.assigns:
        why = "assigns to a variable, and its examples run at once: let it return what it assigns"
    elif not traced.specs:
        why = "returns no tensor: return the loss of one example"
    if why:
        raise InvalidArgumentError(f"the function of an example {why}")
    return traced


def _bound(clip: Any) -> Tensor:
    """Returns the largest norm as a tensor of float64.

    Raises:
        InvalidArgumentError: It is a number that is not above 0.
    """
    if isinstance(clip, int | float) and not clip > 0:
        raise InvalidArgumentError(f"clip is the largest norm of an example's gradient, above 0; found {clip}")
    return cast(convert_to_tensor(clip, dtype_hint=dtypes.float64), dtypes.float64)


def _weights(factors: Tensor, result: Tensor) -> Tensor:
    """Returns the factor of each example for all elements of its part of a stack of results."""
    shape = result.shape.as_list()
    return broadcast_to(reshape(cast(factors, result.dtype), [-1, *[1] * (len(shape) - 1)]), shape)
