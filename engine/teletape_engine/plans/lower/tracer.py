"""A tracing array: forward functions run on it, and what they do is noted as instructions.

NumPy itself says what comes out: a tracer has a layout, an array of the right shape, dtype and strides whose elements
are never read. What needs elements, and what is no instruction here, raises `Untraceable`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from teletape_engine.catalogue.operand import Operand, Runtime
from teletape_engine.plans.ir.buffers import CHARS, Buffer, View, address, unbacked
from teletape_engine.plans.ir.instructions import Copy, Instruction, MatrixProduct, Reduction, TruthCheck, UfuncCall
from teletape_engine.plans.lower.layouts import allocated, of_reduction

ARRAYS: Final = (np.ndarray, np.generic)
_resolved: dict[Any, tuple[Any, ...]] = {}
#: NumPy's functions as they run on tracers; `numpy_functions` fills it.
FUNCTIONS: Final[dict[Any, Callable[..., Any]]] = {}


class Untraceable(Exception):
    """What a forward function does needs elements, or is no instruction."""


def _of_layout(name: str) -> Any:
    return property(lambda self: getattr(self.layout, name), doc=f"`{name}` of the layout.")


class Tracing(Runtime):
    """Runs the ops that a rule calls on tracers: their forwards are traced.

    Attributes:
        namespace: NumPy for a trace; `numpy_functions` sets it.
    """

    namespace: Callable[[list[Instruction]], Any]

    def __init__(self, trace: list[Instruction]) -> None:
        self._trace = trace

    def call(self, op: Any, args: Sequence[Any], attrs: Mapping[str, Any]) -> Any:
        """The forward, on tracers."""
        return op.forward(type(self).namespace(self._trace), *args, **attrs)


class Tracer(NDArrayOperatorsMixin, Operand):
    """An array of which only the layout is known. To ops that rules call it is an operand.

    Attributes:
        trace: Where instructions are noted.
        view: Which part of which buffer it is.
        scalar: Whether it is a NumPy scalar: its operators are not quite those of arrays.
    """

    __slots__ = ("layout", "scalar", "trace", "view")
    __hash__ = None

    def __init__(self, trace: list[Instruction], view: View, scalar: bool = False) -> None:
        self.trace, self.view, self.scalar = trace, view, scalar
        self.layout = view.layout

    # --------------------------------------------------------------------------------------------------------- layout
    shape = _of_layout("shape")
    dtype = _of_layout("dtype")
    ndim = _of_layout("ndim")
    size = _of_layout("size")
    nbytes = _of_layout("nbytes")
    itemsize = _of_layout("itemsize")
    strides = _of_layout("strides")
    flags = _of_layout("flags")

    @property
    def runtime(self) -> Runtime:  # type: ignore[override]  # operands have a slot
        """What runs ops on it."""
        return Tracing(self.trace)

    @property
    def T(self) -> Tracer:
        """The axes in reverse order."""
        return self._like(self.layout.T)

    @property
    def real(self) -> Tracer:
        """The real part."""
        return self._like(self.layout.real)

    @property
    def imag(self) -> Tracer:
        """The imaginary part, of complex numbers."""
        if self.layout.dtype.kind != "c":
            raise Untraceable("the imaginary part of real numbers")
        return self._like(self.layout.imag)

    def _like(self, layout: Any) -> Tracer:
        """As `part`; without axes it is a scalar if this is one."""
        part = self.part(layout)
        part.scalar = self.scalar and not part.ndim
        return part

    def part(self, layout: Any) -> Tracer:
        """The part that a view of the layout is."""
        offset = self.view.offset + address(layout) - address(self.layout)
        return Tracer(self.trace, View(self.view.buffer, layout, offset))

    def _unknown(self, *args: Any, **kwargs: Any) -> Any:
        """Raises Untraceable: it needs elements."""
        raise Untraceable("its elements are not known")

    __bool__ = __int__ = __float__ = __index__ = __complex__ = __array__ = tolist = item = any = all = _unknown

    def __len__(self) -> int:
        return len(self.layout)

    def __iter__(self) -> Any:
        return (self[i] for i in range(len(self.layout)))

    def __getitem__(self, at: Any) -> Tracer:
        parts = at if isinstance(at, tuple) else (at,)
        if not all(part is None or part is Ellipsis or isinstance(part, slice | int) for part in parts):
            raise Untraceable("an index that is an array")
        if any(isinstance(part, bool) for part in parts):
            raise Untraceable("an index that is a mask")
        part = self.part(self.layout[parts if Ellipsis in parts else (*parts, ...)])
        part.scalar = Ellipsis not in parts and not part.ndim
        return part

    def __setitem__(self, at: Any, value: Any) -> None:
        if self.view.buffer.fixed:
            raise Untraceable("writes into what is not its own")
        into = self[at]
        operand = cast(self.trace, operand_of(self.trace, value), self.dtype)
        part = View(operand.view.buffer, np.broadcast_to(operand.layout, into.shape), operand.view.offset)
        self.trace.append(Copy((part,), into.view))

    # -------------------------------------------------------------------------------------------------------- methods
    def __pow__(self, exponent: Any) -> Any:
        if self.scalar or isinstance(exponent, bool):
            raise Untraceable("a power of a scalar")
        if isinstance(exponent, int | float) and self.dtype.kind in "fc":  # as the operator of arrays does
            direct = {2: np.square, 0.5: np.sqrt, -1: np.reciprocal, 1: np.positive}.get(exponent)
            if direct is not None:
                return direct(self)
        return np.power(self, exponent)

    def __rpow__(self, base: Any) -> Any:
        if self.scalar:
            raise Untraceable("a power of a scalar")
        return np.power(base, self)

    def astype(
        self, dtype: Any, order: str = "K", casting: str = "unsafe", subok: bool = True, copy: bool = True
    ) -> Tracer:
        """The elements converted; the tracer itself if nothing changes and `copy` is false."""
        dtype = np.dtype(dtype)
        if dtype != self.dtype:
            return cast(self.trace, self if order == "K" or self.flags.c_contiguous else self.copy(), dtype)
        return self.copy(order) if copy else self

    def copy(self, order: str = "C") -> Tracer:
        """The elements in memory of their own."""
        like: Any = np.empty_like
        result = new(self.trace, like(self.layout, order=order), computed=self.scalar)
        self.trace.append(Copy((self.view,), result.view))
        return result

    def reshape(self, *shape: Any, **kwargs: Any) -> Tracer:
        """Another shape of the same memory where NumPy could give that, else of a copy."""
        if kwargs:
            raise Untraceable("reshape in another order")
        lengths = shape[0] if len(shape) == 1 and not isinstance(shape[0], int) else shape
        try:
            return self._like(np.reshape(self.layout, lengths, copy=False))
        except ValueError:
            return self.copy().reshape(lengths)

    def ravel(self) -> Tracer:
        """All elements along one axis."""
        return self.reshape(-1)

    def transpose(self, *axes: Any) -> Tracer:
        """The axes in another order; without arguments reversed."""
        return self._like(self.layout.transpose(*axes))

    def swapaxes(self, a: int, b: int) -> Tracer:
        """Two axes exchanged."""
        return self.part(self.layout.swapaxes(a, b))

    def squeeze(self, axis: Any = None) -> Tracer:
        """The axes of length 1 left out: all, or those named."""
        return self._like(self.layout.squeeze(axis))

    def conj(self) -> Any:
        """The conjugates."""
        return np.conjugate(self)

    def sum(self, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Tracer:
        """The sum over axes, as `numpy.sum` adds; see `reduced`."""
        return reduced(np.add, self, axis, keepdims, dtype)

    def max(self, axis: Any = None, keepdims: bool = False) -> Tracer:
        """The largest elements over axes."""
        return reduced(np.maximum, self, axis, keepdims)

    def min(self, axis: Any = None, keepdims: bool = False) -> Tracer:
        """The smallest elements over axes."""
        return reduced(np.minimum, self, axis, keepdims)

    def noted_check(self) -> None:
        """Notes that all elements are true, or the run fails; see `arrays.checks`."""
        if self.dtype.kind != "b":
            raise Untraceable("a check of what is no condition")
        flag = np.empty((), bool)
        self.trace.append(TruthCheck((self.view,), View(Buffer(flag), flag)))

    # ------------------------------------------------------------------------------------------------------ protocols
    def __array_ufunc__(  # type: ignore[override]  # which operands do not have
        self, ufunc: Any, method: str, *inputs: Any, out: Any = None, dtype: Any = None, **k: Any
    ) -> Any:
        if isinstance(out, tuple):
            out = out[0] if len(out) == 1 else k
        if method != "__call__" or k or ufunc.nout != 1 or not (out is None or isinstance(out, Tracer)):
            raise Untraceable(f"{ufunc.__name__}.{method} with {sorted(k)}")
        if out is not None and out.view.buffer.fixed:
            raise Untraceable("writes into what is not its own")
        loop = _loop(ufunc, inputs, dtype)
        operands = tuple(
            [
                cast(self.trace, operand_of(self.trace, x, wanted), wanted)
                for x, wanted in zip(inputs, loop, strict=False)
            ]
        )
        views = tuple([operand.view for operand in operands])
        if ufunc is np.matmul:
            return self._matmul(operands, views, loop[-1], out)
        if ufunc.signature:
            raise Untraceable(ufunc.__name__)
        layout = allocated([operand.layout for operand in operands], loop[-1])
        if out is None:
            out = new(self.trace, layout, computed=True)
        elif out.dtype != loop[-1] or out.shape != layout.shape:
            raise Untraceable("a result of another spec")
        self.trace.append(UfuncCall(views, out.view, ufunc))
        return out

    def _matmul(self, operands: Sequence[Tracer], views: tuple[View, ...], dtype: Any, out: Any) -> Tracer:
        a, b = operands
        if out is not None or a.ndim < 2 or b.ndim < 2 or dtype.kind not in "fc":
            raise Untraceable("a product of vectors or integers")
        lead = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
        result = new(self.trace, np.empty((*lead, a.shape[-2], b.shape[-1]), dtype))
        self.trace.append(MatrixProduct(views, result.view))
        return result

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        traced = FUNCTIONS.get(function)
        if traced is None:
            raise Untraceable(f"np.{function.__name__}")
        return traced(*args, **kwargs)


# ------------------------------------------------------------------------------------------------------------ operands
def new(trace: list[Instruction], layout: Any, *, computed: bool = False) -> Tracer:
    """A tracer of memory of its own.

    Args:
        trace: Where instructions are noted.
        layout: Of the memory.
        computed: Whether it is what a ufunc returns: NumPy makes a scalar of it if it has no axes.
    """
    layout = unbacked(layout)
    return Tracer(trace, View(Buffer(layout), layout), scalar=computed and not layout.ndim)


def constant(trace: list[Instruction], array: Any) -> Tracer:
    """A tracer of an array whose elements are known and never change."""
    array = np.asarray(array)
    return Tracer(trace, View(Buffer(array, constant=array), array))


def operand_of(trace: list[Instruction], x: Any, dtype: Any = None) -> Tracer:
    """An input as a tracer; a Python number takes `dtype`."""
    if isinstance(x, Tracer):
        return x
    return constant(trace, np.asarray(x, None if isinstance(x, ARRAYS) else dtype))


def cast(trace: list[Instruction], x: Tracer, dtype: Any) -> Tracer:
    """The elements in another dtype."""
    if x.dtype == dtype:
        return x
    if x.dtype.char not in CHARS or dtype.char not in CHARS:
        raise Untraceable(f"a conversion from {x.dtype} to {dtype}")
    if x.view.buffer.constant is not None and x.size == 1:
        with np.errstate(all="ignore"):
            converted = constant(trace, x.layout.astype(dtype))
            converted.scalar = x.scalar
            return converted
    result = new(trace, np.empty_like(x.layout, dtype=dtype), computed=x.scalar)
    trace.append(Copy((x.view,), result.view))
    return result


def _loop(ufunc: Any, inputs: Sequence[Any], dtype: Any) -> tuple[Any, ...]:
    """The dtypes of the loop that NumPy chooses."""
    kinds = tuple([x.dtype if isinstance(x, (Tracer, *ARRAYS)) else type(x) for x in inputs])
    key = (ufunc, kinds, dtype)
    loop = _resolved.get(key)
    if loop is None:
        signature = {} if dtype is None else {"signature": (None,) * ufunc.nin + (np.dtype(dtype),)}
        loop = ufunc.resolve_dtypes((*kinds, None), **signature)
        if not all(entry.char in CHARS for entry in loop):
            raise Untraceable(f"{ufunc.__name__} of {kinds}")
        if ufunc is np.power and loop[0].kind in "iu":
            raise Untraceable("a power of integers may be refused")
        _resolved[key] = loop
    return loop


def reduced(ufunc: Any, x: Any, axis: Any = None, keepdims: bool = False, dtype: Any = None) -> Tracer:
    """A reduction by a ufunc, as NumPy's functions call it."""
    if not isinstance(x, Tracer):
        raise Untraceable("a reduction of constants")
    axes = (
        tuple(range(x.ndim))
        if axis is None
        else tuple([a % x.ndim for a in ((axis,) if isinstance(axis, int) else axis)])
    )
    if x.size == 0:
        raise Untraceable("a reduction of nothing")
    result_dtype: np.dtype[Any]
    if ufunc in (np.logical_or, np.logical_and):
        result_dtype = np.dtype(bool)
    elif dtype is not None:
        result_dtype = np.dtype(dtype)
    elif ufunc in (np.add, np.multiply) and x.dtype.kind in "biu":
        result_dtype = np.dtype(np.uint64 if x.dtype.kind == "u" else np.int64)
    else:
        result_dtype = x.dtype
    if result_dtype.char not in CHARS or x.dtype.char not in CHARS:
        raise Untraceable(f"a reduction of {x.dtype}")
    layout = of_reduction(x.layout, axes, result_dtype)
    result = new(x.trace, layout, computed=True)
    layout = result.layout
    explicit = result_dtype if ufunc not in (np.logical_or, np.logical_and) else None
    x.trace.append(Reduction((x.view,), result.view, ufunc, (axes, explicit)))
    return result.part(np.expand_dims(layout, axes)) if keepdims and axes else result
