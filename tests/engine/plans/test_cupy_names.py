"""What plans on a GPU use of CuPy is there, takes those arguments, and has the code that generated kernels repeat."""

import inspect
import re

import numpy as np
import pytest
import substitute

from teletape_engine.plans.gpu.codes import _CODES, code_of
from teletape_engine.plans.ir import instructions

pytestmark = pytest.mark.cupy


@pytest.fixture(scope="module")
def cupy():
    return pytest.importorskip("cupy", reason="CuPy is not installed (make kernels)")


def signature_of(function):
    """A signature; of what is written in Cython, from the first line of its documentation that has one."""
    try:
        names = [*inspect.signature(function).parameters]
        if "args" not in names or "kwargs" not in names:
            return names
    except (TypeError, ValueError):
        pass
    first = re.search(r"\(([^()]*(?:\([^()]*\))?[^()]*)\)", function.__doc__)[1]
    names = [part.split("=")[0].split()[-1] for part in first.split(",") if part.strip()]
    return [name for name in names if name not in ("*", "/")]


#: Each name, and the arguments that are given by position or by name.
USED = {
    "RawKernel": ("code", "name"),
    "RawKernel.__call__": ("grid", "block", "args"),
    "copyto": ("dst", "src", "casting"),
    "where": ("condition", "x", "y"),
    "matmul": ("out",),
    "take": ("a", "indices", "axis"),
    "take_along_axis": ("a", "indices", "axis"),
    "asarray": ("a",),
    "ndarray": ("shape", "dtype", "memptr", "strides"),
    "sum": ("axis", "dtype"),
    "prod": ("axis", "dtype"),
    **dict.fromkeys(("max", "min", "any", "all"), ("axis",)),
    "cuda.alloc": ("size",),
    "cuda.Stream": ("non_blocking",),
    "cuda.Stream.begin_capture": ("mode",),
    "cuda.Stream.end_capture": (),
    "cuda.Graph.launch": ("stream",),
    "cuda.MemoryPool.malloc": ("size",),
    "cuda.using_allocator": ("allocator",),
}


@pytest.mark.parametrize("name", USED)
def test_a_name_takes_the_arguments_that_it_is_given(cupy, name):
    function = cupy
    for part in name.split("."):
        function = getattr(function, part)
    parameters = signature_of(function)
    assert set(USED[name]) <= set(parameters), parameters


def test_arrays_and_pointers_have_what_machines_use(cupy):
    for name in ("data", "strides", "copy", "fill", "flags", "base"):
        assert hasattr(cupy.ndarray, name)
    assert hasattr(cupy.cuda.MemoryPointer, "__add__")
    assert isinstance(cupy.cuda.runtime.streamCaptureModeThreadLocal, int)
    assert issubclass(cupy.cuda.memory.OutOfMemoryError, MemoryError)
    assert all(hasattr(cupy, name) for name in instructions._REDUCING.values())


def test_the_substitute_has_the_parameters_of_cupy(cupy):
    pairs = [
        (substitute.RawKernel.__call__, cupy.RawKernel.__call__),
        (substitute.Stream, cupy.cuda.Stream),
        (substitute.Stream.begin_capture, cupy.cuda.Stream.begin_capture),
        (substitute.Graph.launch, cupy.cuda.Graph.launch),
        (substitute.Array, cupy.ndarray),
    ]
    for ours, theirs in pairs:
        parameters = [name for name in signature_of(ours) if name != "self"]
        assert set(parameters) <= set(signature_of(theirs)), (ours, signature_of(theirs))


def plain(code):
    """A text without what differs by how numbers are held: intrinsics, suffixes of floats, names of operands."""
    code = re.sub(r"__[fd](add|sub|mul)_rn\(([^,]+), ([^)]+)\)", lambda m: f"{m[2]} {OPERATORS[m[1]]} {m[3]}", code)
    code = code.replace("(double)nan_number()", "NAN").replace("nan_number()", "NAN")
    code = re.sub(r"static_cast<out0_type>\(([^()]*)\)", r"\1", code)
    code = re.sub(r"out0_type\((NAN|(?:max|min)\([^)]*\))\)", r"\1", code)
    code = re.sub(r"static_cast<in0_type>\(1\)|in0_type\(1\)|\b1\.0\b", "1", code).replace("in0_type(2)", "2")
    code = re.sub(r"\bf?(max|min)f?\(", r"\1(", code)
    code = re.sub(r"\b(\w+?)f\(", lambda m: f"{m[1]}(" if m[1] not in ("is",) else m[0], code)
    code = re.sub(r"if \((.*)\) \{ out0 = (.*?); \} else \{ out0 = (.*?); \}", r"(\1) ? \2 : \3", code)
    code = code.replace("in0 > in1 ? in0 : in1", "max(in0, in1)").replace("in0 < in1 ? in0 : in1", "min(in0, in1)")
    return re.sub(r"[\s;|]+", "", code.replace("out0 = ", ""))


OPERATORS = {"add": "+", "sub": "-", "mul": "*"}


def routines(cupy, name):
    """CuPy's code of a ufunc, by dtypes."""
    return {
        "".join(np.dtype(x).char for x in (*op.in_types, *op.out_types)): op.routine
        for op in getattr(cupy, name)._ops.ops
    }


@pytest.mark.parametrize("char", "?bhiqfde")
def test_generated_code_is_that_of_cupys_own_kernels(cupy, char):
    differing, compared = [], 0
    for name in _CODES:
        if name == "select":
            continue
        ufunc, theirs = getattr(np, name), routines(cupy, name)
        try:
            loop = [entry.char for entry in ufunc.resolve_dtypes((np.dtype(char),) * ufunc.nin + (None,))]
        except TypeError:
            continue
        code, key = code_of(name, tuple(loop)), "".join(loop)
        if code is None or loop[0] != char:
            continue
        routine = theirs.get(key) or theirs.get("q" * ufunc.nin + key[-1])  # CuPy compares short integers as long ones
        ours = code.format(*[f"in{number}" for number in range(ufunc.nin)])
        compared += 1
        if routine is None or plain(" ".join(routine.split())) != plain(ours):
            differing.append((name, key, ours, routine))
    assert not differing
    assert compared > 10
