"""tf.DType and tf.as_dtype; what is expected was recorded with TensorFlow 2.21."""

import copy
import operator
import pickle

import ml_dtypes
import numpy as np
import pytest

from teletape.core.tensors import dtypes
from teletape.core.tensors.dtypes import DType, as_dtype
from teletape_engine.spec import DTYPES

FLOATS = ["float16", "bfloat16", "float32", "float64"]
COMPLEXES = ["complex64", "complex128"]
INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
ALL = [*FLOATS, *COMPLEXES, *INTEGERS, "bool", "string"]


def of(name: str) -> DType:
    result = getattr(dtypes, name)
    assert isinstance(result, DType)
    return result


@pytest.mark.parametrize("name", ALL)
def test_names(name: str) -> None:
    dtype = of(name)
    assert dtype.name == name
    assert str(dtype) == f"{dtype}" == f"<dtype: '{name}'>"
    assert repr(dtype) == f"tf.{name}"
    assert as_dtype(name) is dtype
    assert as_dtype(dtype) is dtype
    assert as_dtype(dtype.as_numpy_dtype) is dtype
    assert as_dtype(dtype.np) is dtype
    assert as_dtype(dtype.as_datatype_enum) is dtype
    assert as_dtype(np.zeros(2, dtype.np)) is dtype


@pytest.mark.parametrize("name", ALL)
def test_kinds(name: str) -> None:
    dtype = of(name)
    assert dtype.is_floating is (name in FLOATS)
    assert dtype.is_complex is (name in COMPLEXES)
    assert dtype.is_integer is (name in INTEGERS)
    assert dtype.is_unsigned is name.startswith("u")
    assert dtype.is_bool is (name == "bool")
    assert dtype.is_numeric is (name not in ("bool", "string"))
    assert dtype.is_numpy_compatible
    assert not dtype.is_quantized
    assert dtype.base_dtype is dtype


def test_the_engine_has_the_same_dtypes() -> None:
    assert set(ALL) - {"string"} == set(DTYPES)
    for name, engine in DTYPES.items():
        assert of(name).np is engine


def test_sizes_and_scalar_types() -> None:
    sizes = {name: of(name).size for name in ALL}
    assert sizes == dict(zip(ALL, [2, 2, 4, 8, 8, 16, 1, 2, 4, 8, 1, 2, 4, 8, 1, 0], strict=True))
    assert dtypes.float32.as_numpy_dtype is np.float32
    assert dtypes.bfloat16.as_numpy_dtype is ml_dtypes.bfloat16
    assert dtypes.bool.as_numpy_dtype is np.bool_
    assert dtypes.string.as_numpy_dtype is object
    assert dtypes.string.np == np.dtype(object)
    assert dtypes.half is dtypes.float16
    assert dtypes.double is dtypes.float64


def test_real_dtype() -> None:
    assert dtypes.complex64.real_dtype is dtypes.float32
    assert dtypes.complex128.real_dtype is dtypes.float64
    assert dtypes.int8.real_dtype is dtypes.int8


@pytest.mark.parametrize(
    ("inputs", "name"),
    [
        ("half", "float16"),
        ("float", "float32"),
        ("double", "float64"),
        (float, "float32"),
        (bool, "bool"),
        (object, "string"),
        (np.dtype(">f4"), "float32"),
        (np.dtype("S3"), "string"),
        (np.dtype("U3"), "string"),
        (np.array(["a"], dtype=object), "string"),
        (np.str_, "string"),
        (np.intc, "int32"),
        (np.longlong, "int64"),
        (np.ulonglong, "uint64"),
        (np.array(1.0), "float64"),
        (np.float64(3.0), "float64"),
        (2, "float64"),
    ],
)
def test_as_dtype_takes(inputs: object, name: str) -> None:
    assert as_dtype(inputs) is of(name)


@pytest.mark.parametrize(
    "inputs",
    [
        *(None, int, str, bytes, complex, list, "int", "float99", "<f4", "f4", 77, [1], {}),
        *(np.dtype("datetime64[s]"), np.longdouble, np.number),
    ],
)
def test_as_dtype_refuses(inputs: object) -> None:
    with pytest.raises(TypeError) as error:
        as_dtype(inputs)
    assert str(error.value).startswith(f"Cannot convert the argument `type_value`: {inputs!r} to a TensorFlow DType")


@pytest.mark.parametrize(
    ("wrong", "near"), [("flot32", "float32"), ("Float32", "float32"), ("int33", "int32"), ("bytes", "")]
)
def test_a_name_like_a_dtype_is_refused_with_the_nearest(wrong: str, near: str) -> None:
    with pytest.raises(TypeError) as error:
        as_dtype(wrong)
    assert (f"did you mean '{near}'" in str(error.value)) == bool(near)


def test_a_comparison_with_what_is_no_dtype_looks_for_no_names(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keras compares each tensor's dtype with those of float8, op by op."""
    searches: list[object] = []
    monkeypatch.setattr(dtypes, "with_nearest", lambda message, word, allowed: searches.append(word))
    assert dtypes.float32 != "float8_e4m3fn"
    assert dtypes.float32 not in ("flot32", "float8_e5m2", None, 3.5, [1])
    assert not searches
    with pytest.raises(TypeError):
        as_dtype("flot32")
    assert len(searches) == 1


def test_equality() -> None:
    f = dtypes.float32
    for same in ("float32", "float", np.float32, np.dtype("f4"), float, 1):
        assert operator.eq(f, same)
        assert operator.eq(same, f)
        assert not operator.ne(f, same)
    for other in (None, "nope", dtypes.float64, np.float64, object(), [1], {}, np.array([1.0])):
        assert not operator.eq(f, other)
        assert operator.ne(f, other)
    assert hash(f) == hash(as_dtype("float32"))
    assert {f: 1}[as_dtype(np.float32)] == 1
    assert f not in {"float32"}


def test_is_compatible_with() -> None:
    assert dtypes.float32.is_compatible_with("float32")
    assert not dtypes.float32.is_compatible_with(np.float64)
    with pytest.raises(TypeError, match="`type_value`: None"):
        dtypes.float32.is_compatible_with(None)


def test_one_object_each_after_copying() -> None:
    assert pickle.loads(pickle.dumps(dtypes.bfloat16)) is dtypes.bfloat16  # noqa: S301  # made here
    assert copy.deepcopy([dtypes.int8])[0] is dtypes.int8


def test_numpy_does_not_take_a_dtype_for_its_own() -> None:
    with pytest.raises(TypeError, match=r"Cannot interpret 'tf\.float32' as a data type"):
        np.zeros(2, dtype=dtypes.float32)  # type: ignore[call-overload]


def test_range() -> None:
    assert dtypes.float32.max == np.finfo(np.float32).max
    assert dtypes.float16.min == np.float16(-65504)
    assert float(dtypes.bfloat16.max) == 3.3895313892515355e38
    assert (dtypes.int8.min, dtypes.int8.max) == (-128, 127)
    assert dtypes.uint64.max == 2**64 - 1
    for dtype in (dtypes.complex64, dtypes.bool, dtypes.string):
        with pytest.raises(TypeError, match=f"Cannot find minimum value of {dtype} with type {dtype}."):
            _ = dtype.min
        with pytest.raises(TypeError, match=f"Cannot find maximum value of {dtype} with type {dtype}."):
            _ = dtype.max


def test_limits() -> None:
    assert dtypes.uint8.limits == (0, 255)
    assert dtypes.int16.limits == (0, 32767)
    assert dtypes.float32.limits == dtypes.float64.limits == (0, 1)
    assert dtypes.bool.limits == (0, True)
    for dtype in (dtypes.float16, dtypes.bfloat16, dtypes.complex64, dtypes.string):
        with pytest.raises(ValueError, match=f"{dtype} does not have defined limits."):
            _ = dtype.limits
