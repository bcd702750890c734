"""A substitute for CuPy on NumPy's memory: strict where a GPU is.

Arrays never become NumPy's by themselves, and never meet NumPy's. Indices out of range wrap around without a word, and
linear algebra gives nan where NumPy raises an error: a device reports neither. While a stream captures, nothing runs:
kernels, ufuncs with a place for the result and copies are noted, and everything that allocates, waits or reads on the
host is refused. A generated kernel is looked up by its source, and computed from its structure with the parameters that
it is called with. Long because it is all of CuPy that the engine's tests use.
"""

import contextlib
import ctypes
import functools
import os
import sys
import types
from typing import ClassVar

import cupy_offer
import numpy as np
from numpy.lib.array_utils import byte_bounds
from numpy.lib.mixins import NDArrayOperatorsMixin

from teletape_engine.plans.gpu import source
from teletape_engine.plans.gpu.source import MAP, ROWS, THREADS
from teletape_engine.plans.lower.tracer import Tracer

#: Ufuncs that NumPy and CuPy name otherwise.
NAMES = {np.divide: "true_divide"}
#: What the host waits for, to learn the size of the result.
WAITS = {f"cupy.{name}" for name in ("argwhere", "bincount", "flatnonzero", "nonzero", "unique")}
#: Methods that copy to the host.
READS = {"tolist", "tobytes", "dump", "dumps", "tofile"}
#: Functions of an array, indices and an axis.
INDEXED = (np.take, np.take_along_axis)
BLOCK = 512  #: Bytes that a memory pool's memory comes in.
SOLVE = "cupyx.scipy.linalg.solve_triangular"
INTEGERS = {"int": np.int32, "long long": np.int64}


class CaptureError(RuntimeError):
    """What cannot be done while a stream captures."""


class State:
    """What the device does."""

    def __init__(self):
        self.captured = None  # the calls of the capture that is under way
        self.launches = 0  # of kernels, outside graphs
        self.graphs = 0  # launches of graphs
        self.transfers = []  # (up, down or wait, by what)
        self.synchronisations = []  # of the host with the device without a transfer: by what
        self.raises = False  # whether linear algebra raises errors
        self.sources = set()
        self.calls = []  # of kernels: structure, arguments

    def transfer(self, direction, what):
        """Notes a copy up or down, or that the host waits to learn a size."""
        self.refuse(what)
        self.transfers.append((direction, what))

    def synchronise(self, what):
        """Notes that the host waits for work of the device."""
        self.refuse(what)
        self.synchronisations.append(what)

    def refuse(self, what):
        if self.captured is not None:
            raise CaptureError(f"{what} while a stream captures")


STATE = State()


class Memory:
    def __init__(self, low, size, owner):
        self.ptr, self.size, self.owner = low, -(-size // BLOCK) * BLOCK, owner
        self.bytes = np.ctypeslib.as_array((ctypes.c_uint8 * max(size, 1)).from_address(low))


class MemoryPointer:
    def __init__(self, mem, offset=0):
        self.mem, self.offset = mem, offset
        self.ptr = mem.ptr + offset

    def __add__(self, offset):
        return MemoryPointer(self.mem, self.offset + offset)


def alloc(size):
    """Memory full of no numbers."""
    STATE.refuse("an allocation")
    owner = np.full(size + 64, 0xFF, np.uint8)
    low = -(-owner.ctypes.data // 64) * 64
    return MemoryPointer(Memory(low, size, owner))


def host(x):
    if isinstance(x, Array):
        return x.inner
    if isinstance(x, list | tuple):
        return type(x)(host(each) for each in x)
    return x


def device(x):
    if isinstance(x, np.ndarray | np.generic):
        return Array._of(np.asarray(x))
    if isinstance(x, list | tuple):
        return type(x)([device(each) for each in x]) if type(x) in (list, tuple) else type(x)(*map(device, x))
    return x


def calling(function, path=None):
    """A function of NumPy as one of the device's: of CuPy's function of that path, by default of its own name."""
    path = path or f"cupy.{function.__name__}"

    def call(*args, **kwargs):
        refuse_host_arrays(path, (*args, *kwargs.values()))
        cupy_offer.check(path, args, kwargs)
        if path in WAITS:
            STATE.transfer("wait", path)
        captured = STATE.captured
        if captured is not None:
            if not (isinstance(function, np.ufunc) and kwargs.get("out") is not None) and function is not np.copyto:
                raise CaptureError(f"{function.__name__} while a stream captures")
            captured.append(lambda: run(function, args, kwargs))
            return kwargs.get("out")
        return run(function, args, kwargs)

    call.__name__ = getattr(function, "__name__", str(function))
    return call


def refuse_host_arrays(what, values):
    """Raises as CuPy does if an array of the host is among the values of a call, or in a list of them."""
    for x in values:
        if isinstance(x, np.ndarray | Tracer):
            raise TypeError(f"{what}: Unsupported type {type(x)}")
        if isinstance(x, list | tuple):
            refuse_host_arrays(what, x)


def run(function, args, kwargs):
    if function in INDEXED:
        args = wrapped_along(args, kwargs.get("axis", args[2] if len(args) > 2 else None))
    with np.errstate(all="ignore"):
        return device(function(*host(args), **{name: host(x) for name, x in kwargs.items()}))


def wrapped_along(args, axis):
    """The arguments of a function in INDEXED, indices out of range wrapped around as CuPy does."""
    x, indices, *others = host(args)
    length = x.size if axis is None else x.shape[axis]
    return x, np.asarray(indices) % length if length else indices, *others


def wrapped(at, shape):
    """An index of an array of that shape, its arrays of integers wrapped around as CuPy does."""
    parts = list(at) if isinstance(at, tuple) else [at]
    lengths = [0 if x is None or x is Ellipsis else np.ndim(x) if _is_mask(x) else 1 for x in parts]
    axis = 0
    for number, x in enumerate(parts):
        if isinstance(x, np.ndarray) and x.dtype.kind in "iu" and axis < len(shape) and shape[axis]:
            parts[number] = x % shape[axis]
        axis += len(shape) - sum(lengths) if x is Ellipsis else lengths[number]
    return tuple(parts) if isinstance(at, tuple) else parts[0]


def _is_mask(x):
    return isinstance(x, np.ndarray) and x.dtype == bool


def indexed(what, at):
    """Notes what an index costs: from the host it is copied up, and of truths the host learns how many are true."""
    for x in at if isinstance(at, tuple) else (at,):
        if isinstance(x, np.ndarray | list):
            STATE.transfer("up", what)
        elif isinstance(x, Array) and x.dtype == bool:
            STATE.transfer("wait", what)


def computable(dtype):
    """The dtype; raises if CuPy has no arrays of it."""
    if dtype.kind not in "biufc" and dtype.name != "bfloat16":
        raise ValueError(f"Unsupported dtype {dtype}")
    return dtype


class Array(NDArrayOperatorsMixin):
    """An array on the device."""

    __array_priority__ = 100
    __hash__ = None

    def __init__(self, shape, dtype=float, memptr=None, strides=None, order="C"):
        shape = (shape,) if isinstance(shape, int) else tuple(shape)
        dtype = computable(np.dtype(dtype))
        if strides is not None and memptr is None:
            raise ValueError("memptr is required if strides is given.")
        if memptr is None:
            self.inner = np.full(shape, 0, dtype, order)
            self.memory = None
            STATE.refuse("an allocation")
        else:
            self.inner = np.ndarray(shape, dtype, memptr.mem.bytes, memptr.offset, strides)
            self.memory = memptr

    @classmethod
    def _of(cls, inner):
        STATE.refuse("an allocation")
        computable(inner.dtype)
        array = cls.__new__(cls)
        array.inner, array.memory = inner, None
        return array

    @property
    def data(self):
        if self.memory is None:
            owner = self.inner
            while isinstance(owner.base, np.ndarray):
                owner = owner.base
            low, high = byte_bounds(owner)
            start = self.inner.__array_interface__["data"][0]
            self.memory = MemoryPointer(Memory(low, high - low, owner), start - low)
        return self.memory

    shape = property(lambda self: self.inner.shape)
    dtype = property(lambda self: self.inner.dtype)
    ndim = property(lambda self: self.inner.ndim)
    size = property(lambda self: self.inner.size)
    nbytes = property(lambda self: self.inner.nbytes)
    itemsize = property(lambda self: self.inner.itemsize)
    strides = property(lambda self: self.inner.strides)
    flags = property(lambda self: self.inner.flags)
    base = property(lambda self: None if self.inner.base is None else device(self.inner.base))
    T = property(lambda self: device(self.inner.T))
    real = property(lambda self: device(self.inner.real), lambda self, x: setattr(self.inner, "real", host(x)))
    imag = property(lambda self: device(self.inner.imag), lambda self, x: setattr(self.inner, "imag", host(x)))

    def __array__(self, *args, **kwargs):
        raise TypeError("Implicit conversion to a NumPy array is not allowed")

    def get(self):
        STATE.transfer("down", "get")
        return self.inner.copy()

    def item(self, *args):
        STATE.transfer("down", "item")
        return self.inner.item(*args)

    def __int__(self):
        return int(self.item())

    def __float__(self):
        return float(self.item())

    def __bool__(self):
        return bool(self.item())

    def __index__(self):
        return self.item().__index__()

    def __len__(self):
        return len(self.inner)

    def __iter__(self):
        return (self[i] for i in range(len(self)))

    def __getitem__(self, at):
        STATE.refuse("an index")
        indexed("an index", at)
        return device(np.asarray(self.inner[wrapped(host(at), self.shape)]))

    def __setitem__(self, at, value):
        STATE.refuse("an assignment")
        indexed("an assignment", at)
        if isinstance(value, np.ndarray | list | tuple):
            parts = at if isinstance(at, tuple) else (at,)
            if np.shape(value) and not any(isinstance(x, np.ndarray | list | Array) for x in parts):
                raise ValueError("non-scalar numpy.ndarray cannot be used for fill")
            STATE.transfer("up", "an assignment")
        self.inner[wrapped(host(at), self.shape)] = host(value)

    def fill(self, number):
        STATE.refuse("fill")
        self.inner.fill(number)

    def copy(self, order="C"):
        STATE.refuse("an allocation")
        return device(self.inner.copy(order))

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        method = getattr(self.inner, name)

        def call(*args, **kwargs):
            STATE.refuse(name)
            refuse_host_arrays(name, (*args, *kwargs.values()))
            cupy_offer.check_method(name, args, kwargs)
            if name == "view" and args and not self.flags.c_contiguous and np.dtype(args[0]).itemsize != self.itemsize:
                raise ValueError("To change to a dtype of a different size, the array must be C-contiguous")
            if f"cupy.{name}" in WAITS:
                STATE.transfer("wait", name)
            if name in READS:
                STATE.transfer("down", name)
            return run(method, args, kwargs)

        return call

    def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
        if method != "__call__":
            return NotImplemented
        out = kwargs.pop("out", None)
        if out is not None:
            kwargs["out"] = out[0]
        return calling(ufunc, f"cupy.{NAMES.get(ufunc, ufunc.__name__)}")(*inputs, **kwargs)

    def __array_function__(self, function, types_, args, kwargs):
        return calling(function)(*args, **kwargs)


class RawKernel:
    """A generated kernel."""

    def __init__(self, code, name, options=(), backend="nvrtc"):
        assert name in code
        self.structure = next(each for each, text in source._sources.items() if text == code)
        STATE.sources.add(code)

    def __call__(self, grid, block, args):
        assert block == (THREADS,)
        assert 0 < grid[0] < 1 << 31
        if STATE.captured is not None:
            STATE.captured.append(lambda: self.compute(grid, args))
        else:
            STATE.launches += 1
            self.compute(grid, args)

    def compute(self, grid, args):
        STATE.calls.append((self.structure, grid, args))
        with np.errstate(all="ignore"):
            compute(self.structure, grid[0], args)


def compute(structure, blocks, args):
    """What a kernel computes, with the parameters it is called with."""
    integer = INTEGERS[structure.integer]
    arguments = iter(args)

    def number():
        n = next(arguments)
        assert type(n) is integer, n
        return int(n)

    operands = []
    for operand in structure.operands:
        value = next(arguments)
        if operand.steps is None:
            operands.append(np.asarray(value).view(np.float16) if operand.char == "e" else np.asarray(value))
            assert operands[-1].dtype.char == operand.char
        else:
            assert value.dtype.char == operand.char
            operands.append((value, [number() if step is None else step for step in operand.steps]))
    count = number()
    length = number() if structure.mode != MAP else 1
    part, parts = (number(), number()) if structure.mode == ROWS else (length, 1)
    lengths = [number() for _ in range(structure.remaining + structure.reduced)]
    assert next(arguments, None) is None
    assert count == np.prod(lengths[: structure.remaining], dtype=int)
    assert length == np.prod(lengths[structure.remaining :], dtype=int)
    assert blocks == count * parts if structure.mode == ROWS else blocks <= -(-count // THREADS)

    def view(operand, extra=()):
        value, steps = operands[operand]
        size = value.dtype.itemsize
        shape = (*lengths[: len(steps)], *extra)
        strides = [step * size for step in steps] + [size] * len(extra)
        return np.ndarray(shape, value.dtype, value.data.mem.bytes, value.data.offset, strides)

    loaded, registers = [], []
    for line in structure.lines:
        inputs = [registers[at] for at in line.inputs] if line.name != "load" else line.inputs
        if line.name == "load":
            value = operands[inputs[0]]
            if isinstance(value, np.ndarray):
                registers.append(np.broadcast_to(value, lengths))
                continue
            loaded.append(view(inputs[0]))
            registers.append(loaded[-1].copy())
        elif line.name == "copy":
            registers.append(inputs[0].astype(line.char))
        elif line.name == "select":
            registers.append(np.where(*inputs))
        else:
            registers.append(getattr(np, line.name)(*inputs))
        assert registers[-1].dtype == np.dtype(line.char), line
    stored = [(view(operand), registers[register]) for register, operand in structure.stores]
    for target, _ in stored:
        for other in loaded:
            if np.may_share_memory(target, other):  # a thread reads what another one writes
                assert target.strides == other.strides
                assert target.__array_interface__["data"] == other.__array_interface__["data"]
    for target, register in stored:
        target[...] = register
    for total in structure.totals:
        value, steps = operands[total.operand]
        assert not any(steps[structure.remaining :])
        operands[total.operand] = value, steps[: structure.remaining]
        x = registers[total.register].astype(total.char)
        x = x.reshape((*lengths[: structure.remaining], length))
        reduce = getattr(np, total.name).reduce
        target = view(total.operand, (parts,))
        for at in range(parts):
            piece = x[..., at * part : (at + 1) * part]
            target[..., at] = reduce(piece, -1, total.char) if total.name[0] != "l" else reduce(piece, -1)


class Graph:
    def __init__(self, calls):
        self.calls = calls

    def launch(self, stream=None):
        STATE.refuse("a graph")
        STATE.graphs += 1
        for call in self.calls:
            call()


class Stream:
    """Copies on it are done when an event after them is waited for; everything else is done at once."""

    by_pointer: ClassVar = {}

    def __init__(self, null=False, non_blocking=False, ptds=False, priority=None):
        self.null, self.current = null or not non_blocking, False
        self.waiting = []  # copies that are not done
        self.waited = []  # events that its later work waits for
        self.ptr = len(Stream.by_pointer) + 1
        Stream.by_pointer[self.ptr] = self

    def wait_event(self, event):
        self.waited.append(event)
        event.finish()

    def synchronize(self):
        STATE.synchronise("a stream")
        self.finish(len(self.waiting))

    def record(self, event=None):
        event = event or Event()
        event.record(self)
        return event

    def finish(self, count):
        """Does the first copies that wait."""
        for copy in self.waiting[:count]:
            copy()
        del self.waiting[:count]

    def __enter__(self):
        self.current = True
        return self

    def __exit__(self, *exc):
        self.current = False

    def begin_capture(self, mode=None):
        assert self.current
        assert not self.null
        STATE.refuse("a capture")
        STATE.captured = []

    def is_capturing(self):
        return STATE.captured is not None

    def end_capture(self):
        calls, STATE.captured = STATE.captured, None
        return Graph(calls)


class Event:
    """A place in a stream."""

    def __init__(self, block=False, disable_timing=False, interprocess=False):
        self.stream, self.last = None, None

    def record(self, stream=None):
        self.stream, self.last = stream, stream.waiting[-1] if stream.waiting else None

    def synchronize(self):
        if self.stream is not None:
            STATE.synchronise("an event")
        self.finish()

    def finish(self):
        """Does the copies before it."""
        if self.stream is not None and self.last in self.stream.waiting:
            self.stream.finish(self.stream.waiting.index(self.last) + 1)


def copy_later(to, source, size, kind, pointer):
    """memcpyAsync: nothing is copied before an event after it is waited for, and then what is there by then."""
    STATE.transfer({1: "up", 2: "down"}[kind], "memcpyAsync")
    Stream.by_pointer[pointer].waiting.append(lambda: ctypes.memmove(to, source, size))


class Pinned(bytearray):
    """Pinned memory of the host."""

    @property
    def ptr(self):
        return ctypes.addressof((ctypes.c_uint8 * len(self)).from_buffer(self))


def unowned(pointer, size, owner, device_id=-1):
    return Memory(pointer, size, owner)


class MemoryPool:
    """Memory of one session; the limit is of what is in use, as arrays that are made in other ways are not counted."""

    malloc = staticmethod(alloc)

    def __init__(self):
        self.limit = None

    def set_limit(self, size=None, fraction=None):
        self.limit = size


class Namespace:
    """CuPy, or a module of it: NumPy's functions on arrays of the device."""

    def __init__(self, module, path, **own):
        self._module, self._path = module, path
        self.__dict__.update(own)

    def __getattr__(self, name):
        item, path = getattr(self._module, name), f"{self._path}.{name}"
        if isinstance(item, types.ModuleType):
            return Namespace(item, path)
        if not callable(item):
            return item
        if not cupy_offer.knows(path):
            raise AttributeError(f"module {self._path!r} has no attribute {name!r}")
        if path.startswith(("cupy.linalg", "cupyx.scipy.linalg")):
            item = unless_asked(item)
        if isinstance(item, type):
            return item
        call = calling(item, path)
        if f"{path}.at" in cupy_offer.SCATTERED:
            call.at = scatter(item, f"{path}.at")
        return call


def unless_asked(function):
    """A function of linear algebra that gives nan for singular matrices, unless `errstate` asks for an error."""

    @functools.wraps(function)
    def call(*args, **kwargs):
        try:
            return function(*args, **kwargs)
        except np.linalg.LinAlgError:
            if STATE.raises:
                raise
            return np.full_like(args[-1], np.nan)

    return call


def solve_triangular(a, b, trans=0, lower=False):
    """As cuBLAS: zeros on the diagonal divide."""
    import scipy.linalg.blas

    (solve,) = scipy.linalg.blas.get_blas_funcs(("trsm",), (a, b))
    return solve(1.0, a, b, lower=lower, trans_a={"N": 0, "T": 1, "C": 2}.get(trans, trans))


@contextlib.contextmanager
def errstate(*, linalg):
    before, STATE.raises = STATE.raises, linalg == "raise"
    try:
        yield
    finally:
        STATE.raises = before


def asarray(x, dtype=None):
    if isinstance(x, Array):
        return x if dtype is None else x.astype(dtype, copy=False)
    if not isinstance(x, list | tuple) or not any(isinstance(item, Array) for item in x):
        STATE.transfer("up", "asarray")
    return device(np.array(host(x), dtype))


def scatter(ufunc, path):
    return calling(lambda array, ids, rows: ufunc.at(array, wrapped(ids, array.shape), rows), path)


def where(condition, *args):
    """Of a condition that is an array: CuPy asks it for its methods."""
    if isinstance(condition, bool):
        raise AttributeError("'bool' object has no attribute 'astype'")
    return calling(np.where, "cupy.where")(condition, *args)


@contextlib.contextmanager
def nothing(*args, **kwargs):
    yield


def modules():
    """the substitutes by the names under which they are imported."""
    import scipy.linalg
    import scipy.special

    runtime = types.SimpleNamespace(
        getDeviceCount=lambda: int(os.environ.get("CUPY_SUBSTITUTE_GPUS", "1")),
        getDeviceProperties=lambda index: {"name": b"Substitute", "major": 9, "minor": 0},
        memGetInfo=lambda: (3 << 30, 4 << 30),
        driverGetVersion=lambda: 13010,
        deviceSynchronize=lambda: STATE.synchronise("the device"),
        memcpyAsync=copy_later,
        memcpyHostToDevice=1,
        memcpyDeviceToHost=2,
        streamCaptureModeThreadLocal=1,
    )
    cuda = types.SimpleNamespace(
        alloc=alloc,
        Stream=Stream,
        Event=Event,
        UnownedMemory=unowned,
        MemoryPointer=MemoryPointer,
        alloc_pinned_memory=Pinned,
        MemoryPool=MemoryPool,
        Device=nothing,
        using_allocator=nothing,
        runtime=runtime,
        memory=types.SimpleNamespace(OutOfMemoryError=MemoryError),
    )
    cupy = Namespace(
        np,
        "cupy",
        ndarray=Array,
        RawKernel=RawKernel,
        cuda=cuda,
        asarray=asarray,
        array=asarray,
        broadcast=lambda *arrays: np.broadcast(*host(arrays)),
        asnumpy=lambda array: array.get() if isinstance(array, Array) else np.asarray(array),
        where=where,
    )
    special = Namespace(scipy.special, "cupyx.scipy.special")
    linalg = Namespace(scipy.linalg, "cupyx.scipy.linalg", solve_triangular=calling(solve_triangular, SOLVE))
    cupyx = types.SimpleNamespace(
        errstate=errstate,
        scipy=types.SimpleNamespace(special=special, linalg=linalg),
    )
    return {
        "cupy": cupy,
        "cupyx": cupyx,
        "cupyx.scipy": cupyx.scipy,
        "cupyx.scipy.special": special,
        "cupyx.scipy.linalg": linalg,
    }


def installed(monkeypatch):
    """Puts the substitute in the place of CuPy; returns what it does."""
    global STATE
    STATE = State()
    for name, module in modules().items():
        monkeypatch.setitem(sys.modules, name, module)
    return STATE
