"""Bodies of requests and answers: what travels as JSON, what as safetensors, and what cannot be sent."""

import base64
import json

import numpy as np
import pytest
import safetensors.numpy

from teletape_client.tensors import safetensors as own
from teletape_client.tensors.answers import anything, tensor
from teletape_client.tensors.bodies import BINARY_ABOVE, body_of

SMALL = np.float32([[1, 2], [3, 4]])
LARGE = np.arange(BINARY_ABOVE // 8 + 1, dtype=np.float64)


def plain(**fields: object) -> dict[str, object]:
    return json.loads(body_of(fields, takes_file=True).content)


def test_a_small_array_is_its_bytes_in_base64() -> None:
    data = base64.b64encode(SMALL.tobytes()).decode()
    assert plain(value=SMALL) == {
        "value": {"dtype": "float32", "shape": [2, 2], "encoding": "base64", "data": data},
    }


@pytest.mark.parametrize("array", [SMALL.T, SMALL[:, ::-1], SMALL.astype(">f4"), np.asfortranarray(SMALL)])
def test_arrays_of_any_layout_have_their_elements_in_order(array: np.ndarray) -> None:
    value = plain(value=array)["value"]
    assert base64.b64decode(value["data"]) == array.astype("<f4").tobytes()


def test_larger_arrays_travel_as_safetensors_as_the_package_reads_them() -> None:
    body = body_of({"inputs": {"x": LARGE, "n": 3}, "wrt": ["x"], "fetch": None}, takes_file=True)
    assert body.content_type == own.SAFETENSORS
    (array,) = safetensors.numpy.load(body.content).values()
    np.testing.assert_array_equal(array, LARGE)
    _, texts = own.read(body.content)
    assert json.loads(texts["request"]) == {"inputs": {"x": {"tensor": "t0"}, "n": 3}, "wrt": ["x"]}


def test_safetensors_of_the_package_are_read() -> None:
    tensors = {"a": SMALL, "b": np.array(True), "c": np.zeros((0, 3), np.int64)}
    arrays, texts = own.read(safetensors.numpy.save(tensors, {"k": "v"}))
    assert texts == {"k": "v"}
    for name, array in tensors.items():
        assert arrays[name].dtype == array.dtype
        np.testing.assert_array_equal(arrays[name], array)
        assert arrays[name].flags.writeable


@pytest.mark.parametrize("body", [b"", b"{}", b"\x02\0\0\0\0\0\0\0[]", b"\xff" * 20])
def test_what_is_no_safetensors_is_a_value_error(body: bytes) -> None:
    with pytest.raises(ValueError):  # noqa: PT011  # its message is that of JSON, or our own
        own.read(body)


def test_large_arrays_stay_json_where_the_server_takes_no_other_or_the_format_has_no_name() -> None:
    assert body_of({"x": LARGE}, takes_file=False).content_type == "application/json"
    body = body_of({"x": LARGE.astype(complex)}, takes_file=True)
    assert (body.content_type, body.has_file_dtypes) == ("application/json", False)


def test_numbers_without_a_dtype_stay_numbers() -> None:
    assert plain(inputs=[1, 2.5, True, 1 + 2j, float("nan")], value=[[1.0, float("-inf")]]) == {
        "inputs": [1, 2.5, True, {"number": [1.0, 2.0]}, {"number": "NaN"}],
        "value": [[1.0, "-Infinity"]],
    }


def test_a_scalar_of_numpy_keeps_its_dtype_also_in_a_list() -> None:
    assert plain(inputs=[np.float64(2)])["inputs"][0]["dtype"] == "float64"
    assert plain(value=[np.float64(2), np.float64(3)])["value"]["shape"] == [2]


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (object(), "x: object is neither a number, a NumPy array nor an id"),
        (np.array(["a"]), "x: an array of dtype <U1 is no tensor"),
        (np.array([object()]), "x: an array of dtype object is no tensor"),
        ([1j], "x: pass complex numbers as a NumPy array"),
    ],
)
def test_what_cannot_be_sent_is_refused_by_name(value: object, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        body_of({"x": value}, takes_file=True)


@pytest.mark.parametrize(
    ("facts", "array"),
    [
        ({"dtype": "float32", "shape": [2], "data": [1.5, "NaN"]}, np.float32([1.5, np.nan])),
        ({"dtype": "int64", "shape": [], "data": 2**62 + 1}, np.int64(2**62 + 1)),
        ({"dtype": "bool", "shape": [1, 2], "data": [[True, False]]}, np.array([[True, False]])),
        ({"dtype": "complex64", "shape": [1], "data": [[1.0, "Infinity"]]}, np.complex64([complex(1, np.inf)])),
        ({"dtype": "float64", "shape": [0, 2], "data": []}, np.zeros((0, 2))),
    ],
)
def test_a_tensor_of_json_is_an_array(facts: dict[str, object], array: np.ndarray) -> None:
    value = tensor(facts, {})
    assert value.dtype == array.dtype
    np.testing.assert_array_equal(value, array)
    assert value.flags.writeable
    np.testing.assert_array_equal(anything({"a": [facts]}, {})["a"][0], array)


def test_a_part_of_a_tensor_is_not_taken_for_the_whole() -> None:
    with pytest.raises(ValueError, match="first 2 elements only"):
        tensor({"dtype": "float32", "shape": [3], "data": [1, 2], "complete": False}, {})


def test_a_bfloat16_has_the_dtype_of_ml_dtypes_or_is_a_float32(monkeypatch: pytest.MonkeyPatch) -> None:
    facts = {"dtype": "bfloat16", "shape": [2], "data": [1.5, -2.0]}
    assert tensor(facts, {}).dtype.name == "bfloat16"
    buffer = memoryview(np.array([0x3FC0, 0xC000], np.uint16).tobytes())
    assert own.array_of(buffer, "bfloat16", [2]).dtype.name == "bfloat16"
    monkeypatch.setitem(__import__("sys").modules, "ml_dtypes", None)
    for array in (tensor(facts, {}), own.array_of(buffer, "bfloat16", [2])):
        assert array.dtype == np.float32
        assert array.tolist() == [1.5, -2.0]
