"""The kernels in C against NumPy, for each kind of CPU; which arrays they take; and as instructions of plans."""

import os
import subprocess
import sys

import numpy as np
import pytest
from driving import executor

from teletape_engine.arrays import kernels
from teletape_engine.c_library import SharedRecords, is_of_sources
from teletape_engine.catalogue.op import CATALOGUE
from teletape_engine.commands import Call
from teletape_engine.functions.compile import compile_function
from teletape_engine.ops.convolution import direct
from teletape_engine.ops.convolution.windows import windows
from teletape_engine.plans.ir.instructions import KernelCall
from teletape_engine.plans.policy import POLICY, Policy
from teletape_engine.plans.run.c import loaded

pytestmark = pytest.mark.skipif(kernels.LIBRARY_LOADED is None, reason="libkernels.so.1 is not built: no C compiler")


@pytest.mark.parametrize(
    ("features", "level"),
    [
        ({"X86_V3": True, "X86_V4": True}, 4),
        ({"X86_V3": True, "X86_V4": False, "AVX512_SKX": True}, 3),
        ({"X86_V3": False, "AVX2": True, "X86_V4": True}, 2),
        ({"AVX2": True, "AVX512_SKX": True}, 4),  # as NumPy before 2.4 names them
        ({"AVX2": True, "AVX512_SKX": False}, 3),
        ({"NEON": True}, 2),
    ],
)
def test_kernels_use_no_more_of_a_processor_than_numpy(monkeypatch, features, level):
    monkeypatch.setattr(kernels, "__cpu_features__", features)
    assert kernels._most_level() == level


def test_what_a_user_forbids_numpy_is_forbidden_to_kernels():
    if not kernels.__cpu_features__.get("X86_V4"):
        pytest.skip("NumPy does not know AVX-512 by that name, or the processor has none")
    code = "from teletape_engine.arrays import kernels; print(kernels._most_level())"
    environment = os.environ | {"NPY_DISABLE_CPU_FEATURES": "X86_V4"}
    command = [sys.executable, "-P", "-c", code]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "3"


#: Images, windows [rows, columns], outputs, and how they slide: blocks that are whole, and that are not.
CASES = [
    ((3, 9, 8, 1), (3, 3), 16, {"padding": "SAME"}),
    ((2, 7, 7, 16), (3, 3), 32, {"padding": "SAME"}),
    ((2, 6, 11, 3), (2, 4), 35, {"strides": (2, 1)}),
    ((1, 13, 9, 5), (3, 2), 7, {"dilations": (2, 3), "padding": "SAME"}),
    ((2, 8, 8, 4), (1, 5), 50, {"padding": "EXPLICIT", "paddings": ((2, 0), (1, 3))}),
    ((1, 1, 900, 2), (1, 3), 9, {}),
    ((1, 60, 30, 1), (5, 5), 3, {"strides": (3, 2), "padding": "SAME"}),
]
POOLS = [
    ((2, 8, 8, 16), {"ksize": (2, 2), "strides": (2, 2)}),
    ((2, 9, 7, 35), {"ksize": (2, 2), "strides": (2, 2)}),
    ((1, 9, 8, 21), {"ksize": (3, 3), "strides": (2, 1), "padding": "SAME"}),
    ((2, 5, 5, 3), {"ksize": (1, 4), "strides": (3, 2), "padding": "SAME"}),
]


@pytest.fixture(params=[4, 3, 1])
def level(request):
    """The kind of CPU whose loops run."""
    kernels.LIBRARY_LOADED.teletape_limit_level(request.param)
    if kernels.LIBRARY_LOADED.teletape_level() != request.param:
        kernels.LIBRARY_LOADED.teletape_limit_level(4)
        pytest.skip("this CPU lacks the instructions")
    yield request.param
    kernels.LIBRARY_LOADED.teletape_limit_level(4)


def both(call):
    """What a call gives in C, and in NumPy."""
    by_kernel = call()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kernels, "LIBRARY_LOADED", None)
        return by_kernel, call()


def numbers(*shape, dtype, seed):
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("images", "size", "out", "how"), CASES)
def test_convolution_and_its_transposes(level, images, size, out, how, dtype):
    x, filters = numbers(*images, dtype=dtype, seed=0), numbers(*size, images[-1], out, dtype=dtype, seed=1)
    near = {"rtol": 0, "atol": 1e-4 if dtype == "float32" else 1e-11}
    y, expected = both(lambda: CATALOGUE["conv2d"](x, filters, **how))
    np.testing.assert_allclose(y, expected, **near)
    ct = numbers(*y.shape, dtype=dtype, seed=2)
    a, b = both(lambda: CATALOGUE["conv2d_backprop_input"](ct, filters, shape=x.shape, **how))
    np.testing.assert_allclose(a, b, **near)
    a, b = both(lambda: CATALOGUE["conv2d_backprop_filter"](x, ct, shape=filters.shape, **how))
    np.testing.assert_allclose(a, b, **near)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("images", "how"), POOLS)
def test_pooling(level, images, how, dtype):
    x = np.round(numbers(*images, dtype=dtype, seed=0))  # with ties
    x.flat[::7] = np.nan
    x.flat[1::11] = np.finfo(dtype).min
    y, expected = both(lambda: CATALOGUE["max_pool"](x, **how))
    np.testing.assert_array_equal(y, expected)
    ct, t = numbers(*y.shape, dtype=dtype, seed=1), numbers(*images, dtype=dtype, seed=2)
    a, b = both(lambda: CATALOGUE["max_pool_backprop"](ct, x, **how))
    np.testing.assert_allclose(a, b, atol=1e-6)
    np.testing.assert_array_equal(*both(lambda: CATALOGUE["max_pool_pick"](t, x, **how)))


@pytest.mark.parametrize("channels", [1, 3, 16, 35])
@pytest.mark.parametrize("paddings", [((1, 0), (0, 0)), ((0, 0), (1, 0)), ((1, 0), (1, 0)), ((1, 1), (1, 1))])
def test_what_shifted_windows_do_not_see_has_no_gradient(level, paddings, channels, monkeypatch):
    how = {"ksize": (2, 2), "strides": (2, 2), "padding": "EXPLICIT", "paddings": paddings}
    x = numbers(2, 4, 4, channels, dtype="float32", seed=0)
    ct = np.ones_like(CATALOGUE["max_pool"](x, **how))
    monkeypatch.setattr(np, "empty", lambda shape, dtype=float, order="C": np.full(shape, 777, dtype, order))
    np.testing.assert_array_equal(*both(lambda: CATALOGUE["max_pool_backprop"](ct, x, **how)))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_rectifiers(level, dtype):
    x, grad = numbers(70, 301, dtype=dtype, seed=0), numbers(70, 301, dtype=dtype, seed=1)
    for array, step in ((x, 7), (grad, 5)):
        array.flat[::step] = np.resize([np.nan, np.inf, -np.inf, 0.0, -0.0], len(array.flat[::step]))
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(*both(lambda: CATALOGUE["relu"](x)))
        np.testing.assert_array_equal(*both(lambda: CATALOGUE["relu_grad"](grad, x)))
    by_kernel = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kernels.LibraryKernel, "on_any", lambda self, *arrays: by_kernel.append(self.__name__))
        CATALOGUE["relu"](x)
        CATALOGUE["relu_grad"](grad, x)
        CATALOGUE["relu_grad"](np.zeros_like(grad), x[:1])
        CATALOGUE["relu"](x[:2])
    assert by_kernel == ["relu", "relu_grad"]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_tanh_grad(level, dtype):
    x, grad = 3 * numbers(70, 301, dtype=dtype, seed=0), numbers(70, 301, dtype=dtype, seed=1)
    x.flat[::7] = np.resize([np.nan, np.inf, -np.inf, 0.0, 30.0, -300.0], len(x.flat[::7]))
    y = np.tanh(x)
    near = {"rtol": 1e-3 if dtype == "float32" else 1e-12, "atol": np.finfo(dtype).smallest_subnormal}
    np.testing.assert_allclose(*both(lambda: CATALOGUE["tanh_grad"](grad, x, y)), **near)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape", [(3, 7, 5), (40,), (1, 6), (2, 1, 9)])
@pytest.mark.parametrize("how", [{}, {"reverse": True}, {"own": False}, {"reverse": True, "own": False}])
def test_recurrences(level, shape, dtype, how):
    x, factors = [np.abs(numbers(*shape, dtype=dtype, seed=seed)) for seed in (0, 1)]  # nothing cancels
    for axis in range(len(shape)):
        y, expected = both(lambda axis=axis: CATALOGUE["recurrence"](x, factors, axis=axis, **how))
        np.testing.assert_allclose(y, expected, rtol=2 * shape[axis] * np.finfo(dtype).eps)


def test_running_products_and_sums_are_one_call_a_line(monkeypatch):
    by_kernel = []
    monkeypatch.setattr(kernels.LibraryKernel, "on_any", lambda self, *arrays: by_kernel.append(self.__name__))
    x = np.ones(1000, "f4")
    CATALOGUE["recurrence"](x, x)
    CATALOGUE["decayed_cumsum"](x, x)
    CATALOGUE["recurrence"](x[:0], x[:0])
    assert by_kernel == ["recurrence", "recurrence"]


@pytest.mark.parametrize("layout", ["misaligned", "strided", "column-major", "read-only"])
def test_arrays_of_any_layout(layout):
    x, filters = numbers(2, 6, 6, 4, dtype="f4", seed=0), numbers(3, 3, 4, 8, dtype="f4", seed=1)
    expected = CATALOGUE["conv2d"](x, filters)
    if layout == "misaligned":
        moved = np.zeros(x.nbytes + 1, np.uint8)[1:].view(np.float32).reshape(x.shape)
    elif layout == "strided":
        moved = np.zeros((2, 6, 6, 8), np.float32)[..., ::2]
    else:
        moved = np.asfortranarray(x) if layout == "column-major" else x.copy()
    moved[...] = x
    moved.flags.writeable = False
    np.testing.assert_array_equal(CATALOGUE["conv2d"](moved, filters), expected)


def test_a_long_sum_keeps_its_digits():
    x, ct = np.full((1, 2000, 500, 1), 0.1, np.float32), np.ones((1, 2000, 499, 1), np.float32)
    result = CATALOGUE["conv2d_backprop_filter"](x, ct, shape=(1, 2, 1, 1))
    np.testing.assert_allclose(result.ravel(), 2000 * 499 * np.float64(np.float32(0.1)), rtol=1e-4)  # 1e-2 in one sum


def test_what_is_left_to_numpy():
    at = windows((6, 6), (3, 3), (1, 1), "VALID", None, (1, 1))
    x, filters, shape = np.zeros((1, 6, 6, 4), "f4"), np.zeros((3, 3, 4, 8), "f4"), (1, 4, 4, 8)
    assert direct.convolved(np, x, filters, at, shape) is not None
    assert direct.convolved(np, x, filters, at, shape, groups=2) is None
    assert direct.convolved(np, x.astype("i4"), filters.astype("i4"), at, shape) is None
    assert direct.convolved(np, x.astype(">f4"), filters.astype(">f4"), at, shape) is None
    assert direct.convolved(None, x, filters, at, shape) is None  # the arrays of another device
    assert (
        direct.convolved(np, np.zeros((1, 6, 6, 64), "f4"), np.zeros((3, 3, 64, 64), "f4"), at, (1, 4, 4, 64)) is None
    )
    assert direct.convolved(np, x[:0], filters, at, (0, 4, 4, 8)) is None
    outside = at._replace(counts=(5, 4))
    assert direct.convolved(np, x, filters, outside, (1, 5, 4, 8)) is None


def test_a_library_of_another_version_is_left_alone(monkeypatch, tmp_path):
    assert kernels._load() is not None
    with monkeypatch.context() as patch:
        patch.setattr(kernels, "RECORDS", SharedRecords("kernels.py", {"geometry": "word images, height;"}))
        assert kernels._load() is None
    with monkeypatch.context() as patch:
        patch.setattr(kernels, "_works", lambda library: False)
        assert kernels._load() is None
    with monkeypatch.context() as patch:
        patch.setattr(kernels, "LIBRARY", loaded.LIBRARY)
        assert kernels._load() is None
    monkeypatch.setattr(kernels, "LIBRARY", tmp_path / "libkernels.so.1")
    assert kernels._load() is None


def test_a_library_that_gives_other_numbers_is_left_alone(monkeypatch):
    call = kernels.LibraryKernel.__call__
    for name in ("convolve", "max_pool", "relu", "recurrence"):

        def wrong(kernel, *arrays, name=name):
            call(kernel, *arrays)
            arrays[-1][-1:] += kernel.__name__ == name

        with monkeypatch.context() as patch:
            patch.setattr(kernels.LibraryKernel, "__call__", wrong)
            assert kernels._load() is None, name
    assert kernels._load() is not None


@pytest.mark.parametrize("mode", ["on", "python"])
def test_a_plan_calls_the_kernels(mode, monkeypatch):
    policy = Policy.of(mode)
    for name in ("enabled", "compiled", "first", "compared"):
        monkeypatch.setattr(POLICY, name, getattr(policy, name))
    at = {"strides": (1, 1), "padding": "SAME"}
    pool = {"ksize": (2, 2), "strides": (2, 2), "padding": "VALID"}
    steps = (Call("conv2d", ("x", "f"), ("y",), at), Call("max_pool", ("y",), ("z",), pool))
    function, recorder = compile_function(("x", "f"), steps, ("z",)), executor()
    arguments = [numbers(2, 8, 8, 3, dtype="f4", seed=0), numbers(3, 3, 3, 20, dtype="f4", seed=1)]
    results = [function.run(recorder, [recorder.constant(a) for a in arguments])[0].array for _ in range(4)]
    assert all(result.tobytes() == results[0].tobytes() for result in results)
    (plan,) = function.plans._plans.values()
    assert [type(instruction) for instruction in plan.instructions] == [KernelCall, KernelCall]
    if mode == "on" and loaded.LIBRARY_LOADED is not None:
        assert plan._idle[0].bare  # no call from Python


def test_no_memory_is_an_error():
    geometry = kernels.Geometry(*(1,) * 13, 0, 0, 1, 1, 0, 1)

    def fails(*_):
        return -1

    call = kernels.ctypes.CFUNCTYPE(kernels.ctypes.c_int, *(kernels.ctypes.c_void_p,) * 5)(fails)
    with pytest.raises(MemoryError, match="kernel"):
        kernels.LibraryKernel("convolve", call, geometry)(np.ones(1), np.ones(1), np.ones(1))


def test_a_border_that_an_image_does_not_fit_into_is_for_numpy():
    geometry = kernels.Geometry(1, 4, 4, 1, 1, 2, 2, 3, 3, 1, 1, 1, 1, 0, 0, 4, 4, 0, 1)
    assert geometry.fits
    for change in ({"top": 1}, {"left": 1}, {"top": -1}, {"left": -1}, {"whole_width": 3}, {"whole_height": 3}):
        assert not geometry._replace(**change).fits


def test_a_library_of_other_sources_is_not_loaded(tmp_path):
    library = kernels.LIBRARY_LOADED
    assert is_of_sources(library, kernels.LIBRARY.parent)
    assert is_of_sources(library, tmp_path)  # a wheel may have no sources
    (tmp_path / "kernels.c").write_text("word sources(void) { return 0; }")
    assert not is_of_sources(library, tmp_path)
