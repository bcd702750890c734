"""`tf.autodiff.ForwardAccumulator`: TensorFlow's interface to forward mode, with its rules and its texts."""

from __future__ import annotations

import logging
from types import TracebackType
from typing import Any

from teletape import logs
from teletape.derivatives.arguments import UnconnectedGradients
from teletape.ops import dispatch
from teletape.sessions import session
from teletape.tensors import nest
from teletape.tensors.indexed_slices import IndexedSlices
from teletape.tensors.tensor import EagerTensor
from teletape.variables.variable import Variable
from teletape_engine.catalogue.op import CATALOGUE
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
        self._session = session.current()
        self._accumulator = Accumulator(self._session.no_gradient, surfaces=True)
        self._pairs: dict[int, tuple[Any, Any]] = {}  # what it is opened with; by uid
        self._opened = False
        self._recording = False
        nest.map_structure(self._give, primals, tangents)

    def _give(self, primal: Any, tangent: Any) -> None:
        if not primal.dtype.is_floating:
            logs.log_first_n(
                logging.WARNING,
                f"The dtype of the watched primal must be floating (e.g. tf.float32), got {primal.dtype!r}",
                5,
                "primal",
            )
        if not isinstance(primal, EagerTensor | Variable):
            raise TypeError(f"a primal must be a Tensor or a Variable, found {type(primal).__name__}")
        given = dispatch.convert_to_tensor(tangent, primal.dtype).operand()
        followed = _followed(primal)
        if given.spec.shape != followed.spec.shape:
            raise ValueError(
                f"a tangent of shape {shape_text(given.spec.shape)} for a primal of shape "
                f"{shape_text(followed.spec.shape)}: a tangent has the shape and dtype of its primal"
            )
        if followed.uid in self._pairs:  # the same variable by two objects
            before = EagerTensor(self._pairs[followed.uid][1], self._session)
            given = (before + EagerTensor(given, self._session)).operand()
        self._pairs[followed.uid] = (followed, given)
        self._accumulator.watch(followed, given)

    def __enter__(self) -> ForwardAccumulator:
        if self._recording:
            raise ValueError("Accumulator is already recording.")
        if self._opened:
            self._session.resume_accumulator(self._accumulator)
        else:
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

    def jvp(self, primals: Any, unconnected_gradients: Any = UnconnectedGradients.NONE) -> Any:
        """The tangents of what was computed inside; they are looked up, not computed.

        Args:
            primals: A tensor or variable, or a nested structure of them. Of IndexedSlices the values' tangent is given,
                as IndexedSlices.
            unconnected_gradients: What stands for a tangent that there is none of: NONE or ZERO.

        Returns:
            The same structure: for each a tensor of its shape and dtype, or None.

        Raises:
            ValueError: A bad `unconnected_gradients`.
            AttributeError: What is no tensor among `primals` (TensorFlow's own text).
        """
        zeros = UnconnectedGradients(unconnected_gradients) is UnconnectedGradients.ZERO
        flat = nest.flatten(primals)
        for one in flat:
            if not isinstance(one, EagerTensor | Variable | IndexedSlices):
                raise AttributeError(f"{type(one).__name__!r} object has no attribute '_id'")
        targets = [_followed(one.values if isinstance(one, IndexedSlices) else one) for one in flat]
        found = self._session.jvp(self._accumulator, targets)
        wrapped = [self._wrapped(one, tangent, zeros) for one, tangent in zip(flat, found, strict=True)]
        return nest.pack_sequence_as(primals, wrapped)

    def _wrapped(self, one: Any, tangent: Any, zeros: bool) -> Any:
        sparse = isinstance(one, IndexedSlices)
        if tangent is not None:
            made = EagerTensor(tangent, self._session)
        elif zeros:
            made = dispatch.call(CATALOGUE["zeros_like"], (one.values if sparse else one,))
        else:
            return None
        return IndexedSlices(made, one.indices, one.dense_shape) if sparse else made


def _followed(one: EagerTensor | Variable) -> Any:
    """What an accumulator knows a tensor or variable by."""
    if isinstance(one, Variable):
        one._check_session()
        return one.recorded
    return one.operand()
