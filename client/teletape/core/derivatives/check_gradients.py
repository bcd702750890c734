"""`tf.debugging.check_gradients`: automatic derivatives of a function against finite differences of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from teletape.core.calls.dispatch import call, constant, convert_to_tensor
from teletape.core.derivatives.tape import GradientTape
from teletape.core.errors import GradientMismatch
from teletape.core.sessions.current import current
from teletape.core.tensors import dtypes, nest
from teletape.core.tensors.variable_wrapper import unwrapped
from teletape.core.variables.variable import Variable
from teletape_engine.arrays import HostArray
from teletape_engine.catalogue.namespace import ops
from teletape_engine.derivatives.finite_differences import ENTRIES, Settings, check, weights, widened
from teletape_engine.derivatives.reports.check_report import Report
from teletape_engine.errors import TeletapeError
from teletape_engine.spec import COMPLEX, DIFFERENTIABLE


def check_gradients(
    f: Callable[..., Any],
    inputs: Any,
    *,
    entries: int = ENTRIES,
    seed: int = 0,
    step: float | None = None,
    rtol: float | None = None,
    atol: float | None = None,
) -> Report:
    """Compares the gradients of `f` with central differences of `f`.

    It runs in float64 (complex128) if `f` takes that, else in the inputs' own dtypes. Each result is weighted by a
    random cotangent, so that a wrong element of the Jacobian shows. Each entry that is compared takes two calls of `f`,
    a complex entry four. Over HTTP hundreds of calls go in one request, unless `f` reads values.

    Args:
        f: Takes the inputs as arguments, and returns a tensor or a nested structure of tensors: the same each time.
        inputs: A tensor, variable, array or number, or a (nested) list of them. A variable gets its values by
            assignment, and its own value back at the end: `f` may use it without taking it as an argument.
        entries: Elements of each input that are compared, chosen at random from a larger one.
        seed: Seed of that choice, and of the cotangents.
        step: Step of the differences; None: by the dtype.
        rtol: Relative tolerance; None: by the dtype.
        atol: Absolute tolerance; None: by the dtype.

    Returns:
        The report: which entries were compared, and the one with the largest difference.

    Raises:
        teletape.errors.GradientMismatch: The derivatives differ; the text names the worst entry, and the error has
            the `report`.
        teletape.errors.InvalidArgumentError: `f` returns a different result at each call; a setting out of range.
        TypeError: No input has a gradient, or no result.
    """
    settings = Settings(entries, seed, step, rtol, atol)
    settings.check()
    structure = list(inputs) if isinstance(inputs, list | tuple) else [inputs]
    subject = _subject(f, structure)
    report = check(subject, settings, subject.weighted_by(seed))
    if not report.agrees:
        raise GradientMismatch(report)
    return report


def _subject(f: Callable[..., Any], structure: list[Any]) -> _Function:
    """Returns the function in float64, or in the inputs' dtypes if it does not take float64."""
    flat = map(unwrapped, nest.flatten(structure))
    leaves = [leaf if isinstance(leaf, Variable) else convert_to_tensor(leaf) for leaf in flat]
    if not any(leaf.dtype.np in DIFFERENTIABLE for leaf in leaves):
        raise TypeError(
            f"check_gradients: no input has a gradient; their dtypes are {[leaf.dtype.name for leaf in leaves]}"
        )
    if any(widened(leaf.dtype.np) != leaf.dtype.np for leaf in leaves if not isinstance(leaf, Variable)):
        try:
            return _Function(f, structure, leaves, wide=True)
        except (TeletapeError, TypeError, ValueError):
            pass  # it mixes the inputs with tensors that are not of float64
    return _Function(f, structure, leaves, wide=False)


class _Function:
    """The caller's function at a point."""

    def __init__(self, f: Callable[..., Any], structure: list[Any], leaves: Sequence[Any], *, wide: bool) -> None:
        self._f, self._structure = f, structure
        self._leaves: list[Any] = [
            leaf if not wide or isinstance(leaf, Variable) else _cast(leaf, widened(leaf.dtype.np)) for leaf in leaves
        ]
        self._free = [i for i, leaf in enumerate(self._leaves) if leaf.dtype.np in DIFFERENTIABLE]
        self._tape = GradientTape(persistent=True)
        with self._tape:
            for i in self._free:
                self._tape.watch(self._leaves[i])
            self._results = self._run(self._leaves)
        if not self._results:
            raise TypeError("check_gradients: the function gives no tensor of a dtype that has gradients")
        arrays = _fetch([*self._leaves, *self._results])
        self.values, self.outputs = arrays[: len(self._leaves)], arrays[len(self._leaves) :]
        self._cts: list[Any] = []

    def _run(self, leaves: Sequence[Any]) -> list[Any]:
        """Returns the results that have gradients."""
        results = nest.flatten(self._f(*nest.pack_sequence_as(self._structure, list(leaves))))
        tensors = [convert_to_tensor(result) for result in results if result is not None]
        return [tensor for tensor in tensors if tensor.dtype.np in DIFFERENTIABLE]

    def weighted_by(self, seed: int) -> list[HostArray]:
        """Draws the cotangents of the results."""
        cts = weights(self, seed)
        self._cts = [constant(ct.astype(widened(ct.dtype))) for ct in cts]
        return cts

    def gradients(self, cts: Sequence[HostArray]) -> list[list[HostArray | None]]:
        """Returns for each result the gradient with respect to each argument, dense."""
        sources = [self._leaves[i] for i in self._free]
        rows: list[list[Any]] = []
        for result, ct in zip(self._results, cts, strict=True):
            gradients = iter(self._tape.gradient(result, sources, output_gradients=[constant(ct)]))
            rows.append([next(gradients) if i in self._free else None for i in range(len(self._leaves))])
        arrays = iter(_fetch([gradient for row in rows for gradient in row if gradient is not None]))
        return [[None if gradient is None else next(arrays) for gradient in row] for row in rows]

    def weighted(self, points: Sequence[tuple[int, HostArray]]) -> HostArray:
        """Returns ⟨ct, result⟩ at each point; nothing is read before all are computed, unless the function reads."""
        rows = []
        try:
            for i, value in points:
                leaf = self._leaves[i]
                if isinstance(leaf, Variable):
                    leaf.assign(value)
                    rows += self._projected(self._run(self._leaves))
                    leaf.assign(self.values[i])
                else:
                    rows += self._projected(self._run([*self._leaves[:i], constant(value), *self._leaves[i + 1 :]]))
        finally:
            for i in {i for i, _ in points if isinstance(self._leaves[i], Variable)}:
                self._leaves[i].assign(self.values[i])
        stacked: HostArray = call(ops.stack, rows, axis=0).numpy()
        return stacked.reshape(len(points), len(self._cts))

    def _projected(self, results: Sequence[Any]) -> list[Any]:
        """Returns the real part of ⟨ct, result⟩ for each result."""
        projections = []
        for result, ct in zip(results, self._cts, strict=True):
            weighted = _cast(result, ct.dtype)
            if ct.dtype.np in COMPLEX:
                weighted = call(ops.real, (call(ops.conj, (ct,)) * weighted,))
            else:
                weighted = ct * weighted
            projections.append(call(ops.reduce_sum, (_cast(weighted, dtypes.float64),)))
        return projections


def _fetch(tensors: Sequence[Any]) -> list[HostArray]:
    """Returns the values of tensors, variables and slices, in one round trip."""
    operands = [convert_to_tensor(tensor).operand() for tensor in tensors]
    return [np.array(array) for array in current().fetch_all(operands)]


def _cast(value: Any, dtype: Any) -> Any:
    dtype = dtypes.as_dtype(dtype)
    return value if value.dtype is dtype else call(ops.cast, (value,), dtype=dtype.np)
