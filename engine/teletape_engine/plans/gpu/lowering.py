"""Lowering on a GPU: ops run on CuPy's arrays, and are traced over layouts as on the CPU."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np
from numpy.lib.stride_tricks import as_strided

from teletape_engine.catalogue.binding import Bound
from teletape_engine.plans.ir.buffers import Buffer, View
from teletape_engine.plans.lower.lowering import Lowering
from teletape_engine.plans.lower.numpy_functions import Namespace
from teletape_engine.plans.lower.templates import template_of
from teletape_engine.plans.lower.tracer import Tracer, Untraceable
from teletape_engine.recording.executor import Executor
from teletape_engine.recording.provenance import Records
from teletape_engine.recording.values import Literal, Value


class DeviceNamespace(Namespace):
    """NumPy for one trace, without kernels in C."""

    def noted(self, *args: Any) -> NoReturn:
        """Raises Untraceable: the kernels are for the CPU."""
        raise Untraceable("a kernel in C")


def layout_on_host(array: Any) -> Any:
    """The layout of an array on a GPU: one of NumPy's with the same shape, dtype and strides, without its elements."""
    if not array.size:
        return np.empty(array.shape, array.dtype)
    return as_strided(np.empty(1, array.dtype), array.shape, array.strides)


class DeviceLowering(Lowering):
    """Runs ops on a GPU, and notes them as instructions.

    Args:
        recorder: Of the call.
        arguments: Of the call.
        into: As of `Lowering`.
    """

    layout_of = staticmethod(layout_on_host)
    namespace = DeviceNamespace

    def __init__(self, recorder: Executor, arguments: Sequence[Any], into: Records | None = None) -> None:
        super().__init__(recorder, arguments, into)
        self.on_gpu = False

    def tracer(self, value: Value) -> Tracer:
        """The tracer of a value; without one it is a constant on the device."""
        tracer = self.tracers.get(value.uid)
        if tracer is None:
            layout = layout_on_host(value.array)
            tracer = Tracer(self.instructions, View(Buffer(layout, constant=value.array), layout))
            self.tracers[value.uid] = tracer
        return tracer

    def _lowered(self, bound: Bound, inputs: Sequence[Any], array: Any) -> Tracer:
        """As on the CPU; a result may lie in memory in another order than CuPy's."""
        arguments: list[Any] = [value.array if value.__class__ is Literal else self.tracer(value) for value in inputs]
        template = template_of(bound, arguments, self.namespace)
        if template is not None and _same_spec(template.result.layout, array):
            tracers = [argument for argument in arguments if argument.__class__ is Tracer]
            return self._tracer(self._placed(template, tracers), array)
        return self._tracer(self._python(bound, arguments, np.empty(array.shape, array.dtype)), array)


def _same_spec(layout: Any, array: Any) -> bool:
    return bool(layout.shape == array.shape and layout.dtype == array.dtype)
