"""Specs are interned; dtypes, broadcasting and axes follow NumPy's rules and speak TensorFlow's words."""

import pickle
import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis.extra import numpy as hnp

from teletape_engine.errors import InvalidArgumentError, ResourceExhaustedError
from teletape_engine.spec import (
    BFLOAT16,
    DTYPES,
    KERNEL_NAMES,
    MAX_RANK,
    WEAK,
    Spec,
    axes_in,
    axis_in,
    broadcast,
    dtype_of,
    half_bytes,
    weak_dtype,
    wide,
    wide_bytes,
)

F32 = DTYPES["float32"]


def test_one_shape_and_dtype_is_one_object():
    assert Spec.of((2, 3), F32) is Spec.of((2, 3), np.dtype("float32"))
    assert Spec.of((2, 3), F32) is not Spec.of((3, 2), F32)
    assert pickle.loads(pickle.dumps(Spec.of((2,), F32))) is Spec.of((2,), F32)  # noqa: S301  # our own bytes


def test_an_array_from_another_process_has_our_dtype():
    copied = pickle.loads(pickle.dumps(np.dtype("bool")))  # noqa: S301  # our own bytes
    assert Spec.of((3, 1, 4, 1, 5), copied).dtype is DTYPES["bool"]


def test_specs_from_many_threads_are_one_object():
    result, start = [], threading.Barrier(8)

    def make():
        start.wait()
        result.append([Spec.of((n, 77), F32) for n in range(200)])

    threads = [threading.Thread(target=make) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(a is b for other in result for a, b in zip(result[0], other, strict=True))


def test_what_a_spec_knows():
    spec = Spec.of((2, 3), F32)
    assert (spec.ndim, spec.size, spec.nbytes, spec.differentiable) == (2, 6, 24, True)
    assert repr(spec) == "float32[2, 3]"
    assert not spec.with_dtype(DTYPES["int64"]).differentiable
    assert spec.with_shape(()).size == 1
    assert Spec.of((10**9, 2 * 10**9), F32).nbytes == 8 * 10**18  # no wrap-around


def test_a_spec_is_of_an_array_that_could_exist():
    assert Spec.of((1,) * MAX_RANK, F32).ndim == 32
    with pytest.raises(InvalidArgumentError, match="at most 32 axes, found 33"):
        Spec.of((1,) * (MAX_RANK + 1), F32)
    with pytest.raises(ResourceExhaustedError, match="multiply to 4,000,000,000,000,000,000,000,000 bytes") as caught:
        Spec.of((10**12, 10**12), F32)
    assert caught.value.details == {"needed": 4 * 10**24}
    assert Spec.of((2**31, 0), F32).nbytes == 0
    with pytest.raises(ResourceExhaustedError):  # without elements, but NumPy multiplies the lengths that are not 0
        Spec.of((2**31, 0, 2**31, 0), F32)


def test_dtypes_by_name_and_by_numpy():
    assert dtype_of("float32") is F32
    assert dtype_of(np.float32) is F32
    assert dtype_of(np.dtype(">f4").newbyteorder("=")) is F32
    assert dtype_of("bfloat16") is BFLOAT16
    for bad in ("float31", "object", np.dtype("U3"), None, 3):
        with pytest.raises(InvalidArgumentError, match="unknown dtype"):
            dtype_of(bad)


def test_every_dtype_has_a_kernel_name():
    assert set(DTYPES.values()) <= set(KERNEL_NAMES)  # and strings, which an SDK has
    assert KERNEL_NAMES[DTYPES["float16"]] == "half"


@given(hnp.mutually_broadcastable_shapes(num_shapes=2, max_dims=4, max_side=4))
def test_broadcast_is_numpys(shapes):
    a, b = shapes.input_shapes
    assert broadcast(a, b) == shapes.result_shape


@given(hnp.array_shapes(min_dims=0, max_dims=3, max_side=3), hnp.array_shapes(min_dims=0, max_dims=3, max_side=3))
def test_broadcast_refuses_what_numpy_refuses(a, b):
    try:
        expected = np.broadcast_shapes(a, b)
    except ValueError:
        with pytest.raises(InvalidArgumentError, match=r"Incompatible shapes: \[.*\] vs\. \[.*\]"):
            broadcast(a, b)
    else:
        assert broadcast(a, b) == expected


@pytest.mark.parametrize(
    ("kind", "dtype", "expected"),
    [
        (int, "float16", "float16"),
        (int, "complex64", "complex64"),
        (float, "bfloat16", "bfloat16"),
        (complex, "complex64", "complex64"),
        (bool, "bool", "bool"),
        (int, None, "int32"),
        (float, None, "float32"),
        (complex, None, "complex128"),
        (bool, None, "bool"),
    ],
)
def test_a_python_number_takes_the_dtype_next_to_it(kind, dtype, expected):
    assert weak_dtype(WEAK[kind], dtype and DTYPES[dtype]) is DTYPES[expected]


@pytest.mark.parametrize(("kind", "dtype"), [(float, "int32"), (complex, "float32"), (int, "bool"), (bool, "float32")])
def test_a_python_number_that_does_not_fit(kind, dtype):
    with pytest.raises(InvalidArgumentError, match=f"a Python {kind.__name__} cannot take the dtype {dtype}"):
        weak_dtype(WEAK[kind], DTYPES[dtype])


def test_axes():
    assert axis_in(-1, 3) == 2
    assert axes_in(None, 3) == (0, 1, 2)
    assert axes_in((-1, 0), 3) == (0, 2)
    assert axes_in((), 3) == ()
    with pytest.raises(InvalidArgumentError, match=r"axis 3 is out of range for 3 axes: it must be in \[-3, 3\)"):
        axis_in(3, 3)
    with pytest.raises(InvalidArgumentError, match="duplicate dimension: 2"):
        axes_in((2, -1), 3)
    with pytest.raises(InvalidArgumentError, match=r"Invalid reduction dimension \(-1 for input with 0 dimension"):
        axes_in(-1, 0)


def test_sixteen_bit_floats_are_summed_in_float32():
    half = Spec.of((10,), DTYPES["float16"])
    assert wide(half.dtype) is F32
    assert wide(DTYPES["float64"]) is DTYPES["float64"]
    assert (wide_bytes(half), half_bytes(half, 2)) == (40, 80)
    assert (wide_bytes(Spec.of((10,), F32), 2), half_bytes(Spec.of((10,), F32))) == (80, 0)


def test_a_spec_is_complete_before_other_threads_can_see_it(monkeypatch):
    class Table(dict):
        def __setitem__(self, key, spec):
            assert all(hasattr(spec, name) for name in Spec.__slots__ if not name.startswith("_"))
            super().__setitem__(key, spec)

    monkeypatch.setattr(Spec, "_interned", Table())
    assert Spec.of((2, 3), DTYPES["float32"]).nbytes == 24


@pytest.mark.parametrize("name", [{"do": "x"}, {}, [1], 3.5])
def test_a_dtype_that_is_no_name_is_an_invalid_argument(name):
    with pytest.raises(InvalidArgumentError, match="unknown dtype"):
        dtype_of(name)
