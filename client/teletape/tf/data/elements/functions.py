"""The functions of datasets: traced once, as in TensorFlow, and run when their results are needed.

A result that is not needed yet is a `Mapped` element. A batch of those is computed at once: the function over all rows
of the batched arguments, by the ops' batch rules.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import Any, Final

from teletape.core.calls.dispatch import as_tensor, call, convert_to_tensor
from teletape.core.functions import methods
from teletape.core.functions.tensor_spec import TensorSpec
from teletape.core.functions.trace import NotTraceable, Traced, running_through, trace
from teletape.core.program.user_code import add_user_code
from teletape.core.sessions.current import current, inside
from teletape.core.sessions.local import LocalSession
from teletape.core.sessions.session import Session
from teletape.core.tensors import dtypes
from teletape.core.tensors.indexed_slices import IndexedSlices
from teletape.core.tensors.tensor import TensorLike
from teletape.tf.control_flow import loop_commands
from teletape.tf.data.elements import structure
from teletape.tf.data.elements.leaves import host_of, on_host, tensor_of
from teletape.tf.data.elements.mapped import Element, Mapped, is_dataset, leaves_of, spec_of_leaf
from teletape.tf.data.elements.specs import NoneTensorSpec
from teletape_engine.catalogue.namespace import ops
from teletape_engine.locks import ReentrantLock
from teletape_engine.spec import Spec

_TRACE_ERRORS: Final = (NotTraceable, ValueError, TypeError, LookupError, AttributeError, ArithmeticError)
MOST_TRACES: Final = 256  #: A function is traced for this many combinations of shapes.
_SIZES: Final = (5, 7)  #: Substitutes for unknown sizes, to find out on which of them a result's sizes depend.


class ElementFunction:
    """A Python function of elements.

    Args:
        function: Takes an element; a tuple as several arguments.
        spec: The spec of its elements.
        single: Whether a list that it returns counts as a tuple.

    Attributes:
        result: The structure of the specs of its results; None: not known before the first result.
        pure: Whether its results depend on its arguments alone.

    Raises:
        ValueError: It is not callable.
    """

    def __init__(self, function: Callable[..., Any], spec: Any, *, single: bool = True) -> None:
        if not callable(function):
            raise ValueError(f"Argument `func` must be a callable. Received func={function} (of type {type(function)})")
        self._function, self._spec, self._single = function, spec, single
        specs = structure.flatten(spec)
        self._traceable = all(isinstance(leaf, TensorSpec) and leaf.dtype is not dtypes.string for leaf in specs)
        self._traces: weakref.WeakKeyDictionary[Session, dict[Any, Any]] = weakref.WeakKeyDictionary()
        self._here, self._by_rows = True, True
        self._lock = ReentrantLock()
        self.pure = False
        self.result: Any = None
        self._specs: list[Any] = []  # the specs of the latest results, with the sizes that the program has stated
        if self._traceable and not current().tracing:
            self._predict(specs)

    @property
    def lazy(self) -> bool:
        """Whether it can be called when its results are needed: it was traced, so its result is its only effect."""
        return self._traceable and self.result is not None

    # ----------------------------------------------------------------------------------------------------- prediction
    def _predict(self, specs: Sequence[TensorSpec]) -> None:
        """Finds the specs of its results by tracing it. Its errors are raised if all sizes are known."""
        if all(spec.shape.is_fully_defined() for spec in specs):
            self.result = self._prediction(
                tuple([Spec.of(tuple(spec.shape.as_list()), spec.dtype.np) for spec in specs])
            )
            return
        if any(spec.shape.rank is None for spec in specs):
            return
        predictions = []
        for size in _SIZES:
            filled = [Spec.of(tuple([dim or size for dim in spec.shape.as_list()]), spec.dtype.np) for spec in specs]
            try:
                predictions.append(self._prediction(tuple(filled)))
            except Exception:  # the error may come from the substituted sizes
                return
            if predictions[-1] is None:
                return
        if structure.same(*predictions):
            first, second = map(structure.flatten, predictions)
            self.result = structure.pack(predictions[0], [_common(*pair) for pair in zip(first, second, strict=True)])

    def _observed(self, specs: Sequence[Spec]) -> Any:
        """Returns the spec of the results from the first element, which has these leaves.

        A size of the results is known if it does not change when an unknown size of the leaves grows by one, or if the
        function refuses the larger size.
        """
        result = self._prediction(tuple(specs))
        for i, (spec, leaf) in enumerate(zip(specs, structure.flatten(self._spec), strict=True)):
            dims = [None] * len(spec.shape) if leaf.shape.rank is None else leaf.shape.as_list()
            for axis in [axis for axis, dim in enumerate(dims) if dim is None]:
                sizes = [size + (at == axis) for at, size in enumerate(spec.shape)]
                try:
                    other = self._prediction((*specs[:i], Spec.of(tuple(sizes), spec.dtype), *specs[i + 1 :]))
                except Exception:  # it takes elements of this size only
                    continue
                if other is not None and structure.same(result, other):
                    leaves = zip(structure.flatten(result), structure.flatten(other), strict=True)
                    result = structure.pack(result, [_common(*pair) for pair in leaves])
        return result

    def _prediction(self, specs: tuple[Spec, ...]) -> Any:
        """Returns the spec of the results for leaves of these specs; None: the function cannot be traced."""
        entry = self._traced(specs)
        return entry and structure.map_leaves(lambda leaf: _predicted(leaf, entry[0].specs), entry[1])

    def _traced(self, specs: tuple[Spec, ...]) -> tuple[Traced, Any] | None:
        """Returns the function traced for these specs, and the pattern of its results; None: it cannot be traced."""
        traces = self._traces.setdefault(current().home, {})
        if specs not in traces:
            if len(traces) >= MOST_TRACES:
                return None
            with self._lock:
                traces[specs] = entry = self._trace(specs)
                self.pure = entry is not None and all(capture.kind == "tensor" for capture in entry[0].captures)
        return traces[specs]  # type: ignore[no-any-return]  # the table is untyped

    def _trace(self, specs: tuple[Spec, ...]) -> tuple[Traced, Any] | None:
        patterns: list[Any] = []

        def flat(*leaves: Any) -> list[Any]:
            results, pattern = self._results(leaves)
            if any(map(is_dataset, results)):
                raise NotTraceable("returns a dataset", "flat_map")
            patterns.append(pattern)
            return [result for result in results if result is not None]

        try:
            traced = trace(flat, specs, defers=True)
            if traced.variables_made:
                traced = trace(flat, specs, defers=True)
        except NotTraceable:
            return None
        except Exception as error:
            if not current().tracing:
                add_user_code(error)
            raise
        if any(_leaf_of_strings(leaf) for leaf in traced.structure):
            return None
        return traced, patterns[-1]

    # --------------------------------------------------------------------------------------------------------- calling
    def __call__(self, leaves: Sequence[Any]) -> list[Any]:
        """Returns the leaves of the result: tensors without a connection to any tape."""
        owner = current()
        if self._traceable and not owner.tracing:
            tensors = [tensor_of(leaf) for leaf in leaves]
            entry = self._traced(tuple([tensor.recorded.spec for tensor in tensors]))
            if entry is not None:
                traced, pattern = entry
                if self.result is None:
                    self.result = self._observed([tensor.recorded.spec for tensor in tensors])
                tensors = traced.call([tensor.operand() for tensor in tensors])
                return _cut_off(_with_nones(pattern, tensors))
        here = None if owner.home.local or owner.tracing or not self._here else self._in_this_process(leaves)
        results, pattern = here or self._plain(leaves)
        self._note_result(pattern)
        return _cut_off(results)

    def _note_result(self, pattern: Any) -> None:
        """Notes the structure and the specs of the results, if tracing has not predicted them."""
        if self.result is None:
            self.result = structure.pack(pattern, self._specs)

    def _plain(self, leaves: Sequence[Any]) -> tuple[list[Any], Any]:
        """Runs the function untraced, op by op."""
        with running_through():
            return self._results([tensor_of(leaf) for leaf in leaves])

    def _in_this_process(self, leaves: Sequence[Any]) -> tuple[list[Any], Any] | None:
        """Runs the function in this process if all values are here: otherwise each value that it reads takes a request.

        Returns:
            The leaves of the result, on the host, and its pattern; None: it uses values of the server.
        """
        if not all(leaf is None or on_host(leaf) for leaf in leaves):
            return None
        try:
            results, pattern = inside(_local(), lambda: self._plain([host_of(leaf) for leaf in leaves]))
        except Exception:  # an error of the function itself: it is raised again on the session
            self._here = False
            return None
        return [host_of(leaf) for leaf in results], pattern

    def over_rows(self, leaves: Sequence[Any]) -> list[Any] | None:
        """Returns the leaves of the results for all rows of the arguments' leaves; None: it cannot run over rows."""
        if not (self._traceable and self._by_rows) or current().tracing:
            return None
        tensors = [tensor_of(leaf) for leaf in leaves]
        specs = tuple([tensor.recorded.spec for tensor in tensors])
        traces = self._traces.setdefault(current().home, {})
        key = ("rows", specs)
        if key not in traces:
            try:
                traces[key] = self._trace_rows(specs)
            except _TRACE_ERRORS:
                self._by_rows = False
                return None
        traced, pattern = traces[key]
        return _cut_off(_with_nones(pattern, traced.call([tensor.operand() for tensor in tensors])))

    def _trace_rows(self, specs: tuple[Spec, ...]) -> tuple[Traced, Any]:
        patterns: list[Any] = []

        def step(carry: Sequence[Any], row: Sequence[Any]) -> tuple[list[Any], list[Any]]:
            results, pattern = self._results(row)
            patterns.append(pattern)
            return [], [result for result in results if result is not None]

        traced = trace(lambda *columns: loop_commands.scanned(step, [], columns, vectorize=True)[1], specs)
        return traced, patterns[-1]

    def host(self, element: Element) -> list[Any]:
        """Returns the leaves of the result on the host.

        It is computed in this process if that is possible, because each value that a server computes takes a request.
        """
        owner = current()
        if self._here and not owner.home.local and not owner.tracing:
            try:
                arguments = _host_leaves(element)
                if arguments is not None:
                    return [host_of(leaf) for leaf in inside(_local(), lambda: self(arguments))]
            except Exception:  # it uses values of the server; otherwise the next line raises the same
                self._here = False
        return [host_of(leaf) for leaf in self(leaves_of(element))]

    def _results(self, leaves: Sequence[Any]) -> tuple[list[Any], Any]:
        """Calls the function, and returns the leaves of its result, and the structure with an index for each leaf."""
        arguments = structure.pack(self._spec, leaves)
        function = traceable(self._function)
        result = function(*arguments) if type(arguments) is tuple else function(arguments)
        if type(result) is list and self._single:
            result = tuple(result)
        results = [_as_leaf(leaf) for leaf in structure.flatten(result)]
        self._specs = [spec_of_leaf(leaf, sizes=False) for leaf in results]
        numbers = iter(range(len(results)))
        marks = [None if leaf is None else next(numbers) for leaf in results]
        return results, structure.pack(result, marks)


def traceable(function: Callable[..., Any]) -> Callable[..., Any]:
    """Returns a program's function, which converts its control flow if it is called while traced."""
    return methods.converted(function) if current().tracing else function


def _as_leaf(leaf: Any) -> Any:
    if leaf is None or is_dataset(leaf):
        return leaf
    return as_tensor(leaf) if isinstance(leaf, TensorLike | IndexedSlices) else convert_to_tensor(leaf)


def _with_nones(pattern: Any, tensors: Sequence[Any]) -> list[Any]:
    """Returns the leaves of a result, from the tensors among them."""
    return [None if number is None else tensors[number] for number in structure.flatten(pattern)]


def _predicted(number: int | None, specs: Sequence[Spec]) -> Any:
    return NoneTensorSpec() if number is None else TensorSpec(specs[number].shape, specs[number].dtype)


def _common(first: Any, second: Any) -> Any:
    """Returns the spec that both have in common, without the sizes in which they differ."""
    if isinstance(first, TensorSpec):
        return TensorSpec(first.shape.most_specific_compatible_shape(second.shape), first.dtype)
    return first


def _leaf_of_strings(leaf: Any) -> bool:
    return getattr(leaf, "host", None) is not None


def _cut_off(leaves: list[Any]) -> list[Any]:
    """Returns the leaves without a connection to any tape that is recording."""
    if not current().recorder().recorded:
        return leaves
    return [call(ops.stop_gradient, (leaf,)) if isinstance(leaf, TensorLike) else leaf for leaf in leaves]


_sessions: Final[list[LocalSession]] = []


def _local() -> LocalSession:
    """Returns the session in this process for values that a dataset needs here."""
    if not _sessions:
        _sessions.append(LocalSession("cpu"))
    return _sessions[0]


def _host_leaves(element: Element) -> list[Any] | None:
    """Returns the leaves of an element on the host, without a request; None: that is not possible."""
    if isinstance(element, Mapped):
        function = element.function
        arguments = None if element.computed or not function.pure else _host_leaves(element.arguments)
        if arguments is None:
            return None
        return [host_of(leaf) for leaf in inside(_local(), lambda: function(arguments))]
    return [host_of(leaf) for leaf in element] if all(leaf is None or on_host(leaf) for leaf in element) else None
