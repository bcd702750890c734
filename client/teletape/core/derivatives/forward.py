"""`tf.autodiff.ForwardAccumulator`: TensorFlow's interface to forward mode, with its rules and its texts."""

from __future__ import annotations

import logging
from types import TracebackType
from typing import Any

from teletape.core.calls import dispatch
from teletape.core.derivatives.arguments import UnconnectedGradients, in_rows
from teletape.core.program import logs
from teletape.core.program.tracebacks import reports
from teletape.core.sessions.current import current
from teletape.core.tensors import nest
from teletape.core.tensors.composite import RaggedValue
from teletape.core.tensors.indexed_slices import IndexedSlices
from teletape.core.tensors.tensor import EagerTensor, Tensor
from teletape.core.tensors.variable_wrapper import unwrapped
from teletape.core.variables.variable import Variable
from teletape_engine.catalogue.namespace import ops
from teletape_engine.recording.accumulators import Accumulator
from teletape_engine.spec import shape_text


class ForwardAccumulator:
    """Computes Jacobian-vector products as ops run, inside `with`.

    A tape or accumulator outside of it (entered before) sees how they are computed, so it can differentiate them; one
    inside does not.

    Args:
        primals: A tensor or variable, or a nested structure of them.
        tangents: The vector: for each primal a tensor, array or number of its shape and dtype, in the same structure.

    Raises:
        ValueError: A primal twice; another structure, shape or dtype of the tangents.
        AttributeError: A primal that is no tensor (TensorFlow's own text).
    """

    def __init__(self, primals: Any, tangents: Any) -> None:
        seen: set[int] = set()
        for primal in nest.flatten(primals):
            if id(primal) in seen:
                raise ValueError(
                    "Tensor {} was specified as a primal multiple times. This may indicate an error. If it was "
                    "intended, please sum the corresponding tangents."
                )
            seen.add(id(primal))
        self._session = current()
        self._accumulator = Accumulator(self._session.declarations.no_gradient, surfaces=True)
        self._pairs: dict[int, tuple[Any, Any]] = {}  # the (primal, tangent) pairs at the beginning, by uid
        self._opened = False
        self._recording = False
        nest.map_structure(self._set_tangent, primals, tangents)

    def _set_tangent(self, primal: Any, tangent: Any) -> None:
        primal = unwrapped(primal)
        if not primal.dtype.is_floating:
            logs.log_first_n(
                logging.WARNING,
                f"The dtype of the watched primal must be floating (e.g. tf.float32), got {primal.dtype!r}",
                5,
                "primal",
            )
        if not isinstance(primal, EagerTensor | Variable):
            raise TypeError(f"a primal must be a Tensor or a Variable, found {type(primal).__name__}")
        operand = dispatch.convert_to_tensor(tangent, primal.dtype).operand()
        recorded = _recorded(primal)
        if operand.spec.shape != recorded.spec.shape:
            raise ValueError(
                f"a tangent of shape {shape_text(operand.spec.shape)} for a primal of shape "
                f"{shape_text(recorded.spec.shape)}: a tangent has the shape and dtype of its primal"
            )
        if recorded.uid in self._pairs:  # two objects of the same variable
            before = EagerTensor(self._pairs[recorded.uid][1], self._session)
            operand = (before + EagerTensor(operand, self._session)).operand()
        self._pairs[recorded.uid] = (recorded, operand)
        self._accumulator.watch(recorded, operand)

    def __repr__(self) -> str:
        state = "recording" if self._recording else "paused" if self._opened else "not entered"
        return f"<ForwardAccumulator {state}, {len(self._accumulator.tangents())} tangents>"

    def __enter__(self) -> ForwardAccumulator:
        if self._recording:
            raise ValueError("Accumulator is already recording.")
        self._session.open_accumulator(self._accumulator, list(self._pairs.values()))
        self._opened = True
        self._pairs.clear()
        self._recording = True
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._recording:
            self._recording = False
            self._session.close_accumulator(self._accumulator)

    @reports
    def jvp(self, primals: Any, unconnected_gradients: Any = UnconnectedGradients.NONE) -> Any:
        """Returns the tangents of results that were computed inside; they are looked up, not computed.

        Args:
            primals: A tensor or variable, or a nested structure of them. For IndexedSlices the result is the tangent of
                the values, as IndexedSlices; for a ragged tensor one with its rows.
            unconnected_gradients: The result if there is no tangent: NONE or ZERO.

        Returns:
            The same structure: for each a tensor of its shape and dtype, or None.

        Raises:
            ValueError: A bad `unconnected_gradients`.
            AttributeError: Something that is no tensor among `primals` (TensorFlow's own text).
        """
        zeros = UnconnectedGradients(unconnected_gradients) is UnconnectedGradients.ZERO
        leaves = nest.flatten(primals)
        flat = [leaf.flat_values if isinstance(leaf, RaggedValue) else leaf for leaf in leaves]
        for primal in flat:
            if not isinstance(primal, EagerTensor | Variable | IndexedSlices):
                raise AttributeError(f"{type(primal).__name__!r} object has no attribute '_id'")
        recorded = [_recorded(primal.values if isinstance(primal, IndexedSlices) else primal) for primal in flat]
        tangents = self._session.jvp(self._accumulator, recorded)
        results = [self._wrapped(primal, tangent, zeros) for primal, tangent in zip(flat, tangents, strict=True)]
        return nest.pack_sequence_as(primals, [in_rows(*pair) for pair in zip(leaves, results, strict=True)])

    def _wrapped(self, primal: Any, tangent: Any, zeros: bool) -> Any:
        """Returns a tangent in the form of its primal, or None."""
        sparse = isinstance(primal, IndexedSlices)
        if tangent is not None:
            tensor: Tensor = EagerTensor(tangent, self._session)
        elif zeros:
            tensor = dispatch.call(ops.zeros_like, (primal.values if sparse else primal,))
        else:
            return None
        return IndexedSlices(tensor, primal.indices, primal.dense_shape) if sparse else tensor


def _recorded(primal: Tensor | Variable) -> Any:
    """Returns a primal's recorded value or engine variable."""
    if isinstance(primal, Variable):
        primal.check_session()
        return primal.recorded
    return primal.operand()
