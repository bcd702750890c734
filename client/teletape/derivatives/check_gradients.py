"""`tf.debugging.check_gradients`: automatic derivatives of the caller's own function against numerical ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from teletape.derivatives.tape import GradientTape
from teletape.errors import GradientMismatch
from teletape.ops.cast import cast
from teletape.ops.dispatch import call, constant, convert_to_tensor
from teletape.sessions import session
from teletape.tensors import dtypes, nest
from teletape.variables.variable import Variable
from teletape_engine.arrays import HostArray
from teletape_engine.catalogue.op import CATALOGUE
from teletape_engine.derivatives.finite_differences import ENTRIES, Report, Settings, check, weights, widened
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
    """Compares the gradients of `f` with central differences of it.

    It runs in float64 (complex128) where `f` takes that, else in the inputs' own dtypes. Each result is weighted by a
    random cotangent, so that a wrong element of the Jacobian shows; each entry that is compared takes two calls of `f`,
    four of a complex one. Over HTTP hundreds of calls go in one request, unless `f` reads values.

    Args:
        f: Takes the inputs as arguments, gives a tensor or a nested structure of tensors. The same result each time.
        inputs: A tensor, variable, array or number, or a list of them (nested ones too). A variable is given its values
            by assignment, and has its own back in the end: `f` may use it without taking it as an argument.
        entries: Elements of each input that are compared, chosen at random from a larger one.
        seed: Of that choice, and of the cotangents.
        step: Of the differences; None: by the dtype.
        rtol: Relative tolerance; None: by the dtype.
        atol: Absolute tolerance; None: by the dtype.

    Returns:
        The report: what was compared, and the entry furthest apart.

    Raises:
        teletape.errors.GradientMismatch: The derivatives differ; the text names the worst entry, and the error has
            the `report`.
        teletape.errors.InvalidArgumentError: `f` gives another result each time; a setting that makes no sense.
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
    """The function in float64, or where it does not take that as it is."""
    leaves = [one if isinstance(one, Variable) else convert_to_tensor(one) for one in nest.flatten(structure)]
    if not any(one.dtype.np in DIFFERENTIABLE for one in leaves):
        raise TypeError(
            f"check_gradients: no input has a gradient; their dtypes are {[one.dtype.name for one in leaves]}"
        )
    if any(widened(one.dtype.np) != one.dtype.np for one in leaves if not isinstance(one, Variable)):
        try:
            return _Function(f, structure, leaves, wide=True)
        except (TeletapeError, TypeError, ValueError):
            pass  # what it is mixed with inside is not of float64: as it is, then
    return _Function(f, structure, leaves, wide=False)


class _Function:
    """The caller's function at a point."""

    def __init__(self, f: Callable[..., Any], structure: list[Any], leaves: Sequence[Any], *, wide: bool) -> None:
        self._f, self._structure = f, structure
        self._leaves = [
            one if not wide or isinstance(one, Variable) else cast(one, widened(one.dtype.np)) for one in leaves
        ]
        self._free = [i for i, one in enumerate(self._leaves) if one.dtype.np in DIFFERENTIABLE]
        self._tape = GradientTape(persistent=True)
        with self._tape:
            for i in self._free:
                self._tape.watch(self._leaves[i])
            self._results = self._run(self._leaves)
        if not self._results:
            raise TypeError("check_gradients: the function gives no tensor of a dtype that has gradients")
        read = _numbers([*self._leaves, *self._results])
        self.values, self.outputs = read[: len(self._leaves)], read[len(self._leaves) :]
        self._cts: list[Any] = []

    def _run(self, leaves: Sequence[Any]) -> list[Any]:
        found = nest.flatten(self._f(*nest.pack_sequence_as(self._structure, list(leaves))))
        tensors = [convert_to_tensor(one) for one in found if one is not None]
        return [one for one in tensors if one.dtype.np in DIFFERENTIABLE]

    def weighted_by(self, seed: int) -> list[HostArray]:
        """Draws the cotangents of the results."""
        cts = weights(self, seed)
        self._cts = [constant(one.astype(widened(one.dtype))) for one in cts]
        return cts

    def gradients(self, cts: Sequence[HostArray]) -> list[list[HostArray | None]]:
        """For each result the gradient of each argument, dense."""
        sources = [self._leaves[i] for i in self._free]
        found: list[list[Any]] = []
        for result, ct in zip(self._results, cts, strict=True):
            given = iter(self._tape.gradient(result, sources, output_gradients=[constant(ct)]))
            found.append([next(given) if i in self._free else None for i in range(len(self._leaves))])
        there = [one for row in found for one in row if one is not None]
        numbers = iter(_numbers(there))
        return [[None if one is None else next(numbers) for one in row] for row in found]

    def weighted(self, points: Sequence[tuple[int, HostArray]]) -> HostArray:
        """⟨ct, result⟩ at each point; nothing is read before all are computed, unless the function reads."""
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
        stacked: HostArray = call(CATALOGUE["stack"], rows, axis=0).numpy()
        return stacked.reshape(len(points), len(self._cts))

    def _projected(self, results: Sequence[Any]) -> list[Any]:
        out = []
        for one, ct in zip(results, self._cts, strict=True):
            weighted = cast(one, ct.dtype)
            if ct.dtype.np in COMPLEX:
                weighted = call(CATALOGUE["real"], (call(CATALOGUE["conj"], (ct,)) * weighted,))
            else:
                weighted = ct * weighted
            out.append(call(CATALOGUE["reduce_sum"], (cast(weighted, dtypes.float64),)))
        return out


def _numbers(tensors: Sequence[Any]) -> list[HostArray]:
    """The numbers of tensors, variables and slices, in one round trip."""
    given = [convert_to_tensor(one).operand() for one in tensors]
    return [np.array(one) for one in session.current().fetch_all(given)]
