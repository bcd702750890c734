"""Generated kernels: what they compute as C++ on this machine, and that NVRTC compiles them."""

import re
import shutil

import kernels_on_host
import numpy as np
import pytest
import substitute

from teletape_engine.plans.gpu.chains import Chain, nodes_of
from teletape_engine.plans.gpu.codes import _CODES, PRELUDE, code_of
from teletape_engine.plans.gpu.launches import launches_of
from teletape_engine.plans.gpu.machine import DeviceMachine, Layout
from teletape_engine.plans.gpu.source import NAME, Kernels, source_of
from teletape_engine.plans.ir.buffers import Buffer, View
from teletape_engine.plans.ir.instructions import Choice, Copy, Reduction, UfuncCall

needs_compiler = pytest.mark.skipif(shutil.which("g++") is None, reason="no C++ compiler (g++)")
ARCHITECTURES = ("80", "90")


class Program:
    """Instructions on arrays that are constants on the device."""

    def __init__(self, *arrays):
        self.views = []
        for array in arrays:
            layout = np.lib.stride_tricks.as_strided(np.empty(1, array.dtype), array.shape, array.strides)
            self.views.append(View(Buffer(layout, constant=substitute.device(array)), layout))
        self.instructions = []

    def note(self, kind, function, inputs, shape, dtype, extra=None, order="C"):
        layout = np.empty(shape, dtype, order)
        self.views.append(View(Buffer(layout), layout))
        views = tuple([self.views[at] if isinstance(at, int) else at for at in inputs])
        self.instructions.append(kind(views, self.views[-1], function, extra))
        return len(self.views) - 1

    def ufunc(self, function, *inputs):
        views = [self.views[at] if isinstance(at, int) else at for at in inputs]
        layouts = [view.layout for view in views]
        dtype = function.resolve_dtypes((*[layout.dtype for layout in layouts], None))[-1]
        return self.note(UfuncCall, function, inputs, np.broadcast_shapes(*[x.shape for x in layouts]), dtype)

    def reduction(self, function, at, axes, dtype=None):
        layout = self.views[at].layout
        shape = [n for axis, n in enumerate(layout.shape) if axis not in axes]
        dtype = np.dtype(dtype or layout.dtype)
        return self.note(Reduction, function, (at,), shape, dtype, (axes, dtype))

    def launches(self, *results):
        """The kernels; if no results are named, all that is computed is one."""
        results = {self.views[at].buffer for at in results or range(len(self.views))}
        nodes = nodes_of(self.instructions, results)
        assert all(isinstance(node, Chain) for node in nodes)
        return [launch for node in nodes for launch in launches_of(node)]


def number(x):
    array = np.asarray(x)
    return View(Buffer(array, constant=array), array)


def arithmetic(dtype, rows=5):
    """Several functions, a number, a broadcast row, an input in another order of axes."""
    random = np.random.default_rng(0)
    a, row, turned = (random.standard_normal(shape).astype(dtype) for shape in ((rows, 70), (70,), (70, rows)))
    program = Program(a, row, turned.T)
    y = program.ufunc(np.multiply, 0, 1)
    y = program.ufunc(np.add, y, number(np.array(1.5, dtype)))
    y = program.ufunc(np.subtract, y, 2)
    y = program.ufunc(np.maximum, y, 0)
    program.ufunc(np.minimum if dtype == "int32" else np.true_divide, y, number(np.array(3, dtype)))
    positive = program.ufunc(np.greater, 0, number(np.array(0, dtype)))
    program.note(Choice, None, (positive, y, 0), (rows, 70), dtype, order="F")
    program.note(Copy, None, (positive,), (rows, 70), dtype)
    return program


def reductions(dtype, shape, axes):
    """A chain that two reductions end, and one that reads what they give."""
    x = (np.random.default_rng(1).standard_normal(shape) * 4).astype(dtype)
    program = Program(x)
    y = program.ufunc(np.multiply, 0, 0)
    total = program.reduction(np.add, y, axes)
    program.reduction(np.maximum, 0, axes)
    program.ufunc(np.multiply, total, number(np.array(2, dtype)))
    program.reduction(np.logical_or, program.ufunc(np.greater, 0, number(np.array(11, dtype))), axes)
    return program


def functions(dtype):
    """Every function with code for a dtype, on numbers of which some are special."""
    x = np.array([-np.inf, -2.5, -1, -0.0, 0, 0.3, 1, 2.5, 7, np.nan, np.inf])
    if np.dtype(dtype).kind in "iub":
        x = np.array([0, 1, 2, 3, 5, 100]) - (np.dtype(dtype).kind == "i")
    program = Program(x.astype(dtype), x[::-1].astype(dtype))
    for name in _CODES:
        if name == "select" or (name == "reciprocal" and x.dtype.kind in "iu"):  # 1 / 0 is 0 in CuPy alone
            continue
        ufunc = getattr(np, name)
        try:
            loop = ufunc.resolve_dtypes((np.dtype(dtype),) * ufunc.nin + (None,))
        except TypeError:
            continue
        if code_of(name, tuple([entry.char for entry in loop])) and loop[0] == dtype:
            program.ufunc(ufunc, *range(ufunc.nin))
    return program


PROGRAMS = {
    **{f"arithmetic {dtype}": (arithmetic, dtype) for dtype in ("float32", "float64", "float16", "int32")},
    **{f"several elements {dtype}": (arithmetic, dtype, 37) for dtype in ("float32", "float16", "int32")},
    **{f"functions {char}": (functions, char) for char in "?bBhHiIlLefd"},
    "rows": (reductions, "float32", (6, 1000), (1,)),
    "rows of 16 bits": (reductions, "float16", (6, 1000), (1,)),
    "columns": (reductions, "float64", (7, 1200), (0,)),
    "all in parts": (reductions, "float32", (40, 1000), (0, 1)),
    "middle axis": (reductions, "int32", (3, 17, 5), (1,)),
    "outer axes": (reductions, "float64", (4, 3, 6), (0, 2)),
}


@pytest.fixture(autouse=True)
def _few_are_large(monkeypatch):
    """The largest programs here have kernels for arrays that keep the memory busy."""
    monkeypatch.setattr("teletape_engine.plans.gpu.launches._LARGE", 37 * 70)


def sources():
    """The structures of all programs."""
    structures = {}
    for name, (make, *args) in PROGRAMS.items():
        for launch in make(*args).launches():
            structures.setdefault(source_of(launch.structure), (name, launch.structure))
    return structures


def layout_of(launches):
    """A machine's layout: every buffer apart from the others."""
    offsets, nbytes = {}, 0
    views = [view for launch in launches for view in launch.views]
    for view in views:
        if view.buffer.constant is None and view.buffer not in offsets:
            offsets[view.buffer] = nbytes
            nbytes += view.buffer.layout.nbytes + 64 & ~63
    return Layout(list(launches), offsets, nbytes, [], [], set())


@needs_compiler
def test_kernels_compute_as_cplusplus_what_numpy_computes(monkeypatch, tmp_path):
    state = substitute.installed(monkeypatch)
    for make, *args in PROGRAMS.values():
        if "float16" not in args and "e" not in args:
            launches = make(*args).launches()
            machine = DeviceMachine(
                substitute.modules()["cupy"], Kernels(substitute.modules()["cupy"]), layout_of(launches)
            )
            machine.run([], lambda: None)
    texts = list(dict.fromkeys([source_of(structure) for structure, _, _ in state.calls]))
    library = kernels_on_host.compiled(texts, tmp_path)
    assert len(texts) > 25
    for structure, (blocks,), args in state.calls:
        arrays = [x for x in args if isinstance(x, substitute.Array)]
        expected = [array.inner.copy() for array in arrays]
        written = {operand for _, operand in structure.stores} | {total.operand for total in structure.totals}
        pointers = iter(arrays)
        of_operand = {at: next(pointers) for at, op in enumerate(structure.operands) if op.steps is not None}
        for at in written:
            of_operand[at].inner[...] = 1
        kernels_on_host.launch(library, texts.index(source_of(structure)), blocks, args)
        for array, wanted in zip(arrays, expected, strict=True):
            if wanted.dtype.kind == "f":
                np.testing.assert_allclose(array.inner, wanted, rtol=1e-5 if wanted.itemsize == 4 else 1e-12, atol=1e-6)
            else:
                np.testing.assert_array_equal(array.inner, wanted)


@pytest.fixture(scope="module")
def nvrtc():
    """NVIDIA's compiler, which needs no device."""
    module = pytest.importorskip("cupy_backends.cuda.libs.nvrtc", reason="CuPy is not installed (make kernels)")
    try:
        module.getVersion()
    except RuntimeError as error:
        pytest.skip(f"NVRTC is not installed (make kernels): {error}")
    return module


def ptx_of(nvrtc, text, architecture):
    """A source compiled with the options that CuPy's RawKernel has by default, but for paths of headers."""
    program = nvrtc.createProgram(text, "kernel.cu", (), ())
    try:
        nvrtc.compileProgram(program, (f"-arch=compute_{architecture}", "--std=c++17"))
        return nvrtc.getPTX(program)
    except Exception:
        pytest.fail(f"{nvrtc.getProgramLog(program)}\n{text}")
    finally:
        nvrtc.destroyProgram(program)


@pytest.mark.cupy
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_every_kernel_compiles(nvrtc, architecture):
    bodies = [text.removeprefix(PRELUDE).replace(NAME, f"{NAME}_{number}") for number, text in enumerate(sources())]
    assert len(bodies) > 30
    ptx = text_of(ptx_of(nvrtc, "".join([PRELUDE, *bodies]), architecture))
    assert ptx.count(f".entry {NAME}_") == len(bodies)


@pytest.mark.cupy
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_no_product_and_sum_are_one_fused_instruction(nvrtc, dtype):
    program = Program(np.ones(9, dtype), np.ones(9, dtype), np.ones(9, dtype))
    (launch,) = program.launches(program.ufunc(np.add, program.ufunc(np.multiply, 0, 1), 2))
    assert [line.name for line in launch.structure.lines] == ["load", "load", "multiply", "load", "add"]
    ours = source_of(launch.structure)
    fused = re.sub(r"__[fd]add_rn\(([^,]+), ([^)]+)\)", r"\1 + \2", ours)
    fused = re.sub(r"__[fd]mul_rn\(([^,]+), ([^)]+)\)", r"\1 * \2", fused)
    kind = f"fma.rn.f{np.dtype(dtype).itemsize * 8}"
    assert kind not in text_of(ptx_of(nvrtc, ours, "90"))
    assert kind in text_of(ptx_of(nvrtc, fused, "90"))  # as it would be with operators


def text_of(ptx):
    return ptx.decode() if isinstance(ptx, bytes) else ptx
