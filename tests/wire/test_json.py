"""The JSON twin: says what a frame says, reads what people write, and names what it cannot read."""

import contextlib
import json
import math
import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from batches import answers, batches, same, tensors
from hypothesis import given, settings
from hypothesis import strategies as st

import teletape_wire as wire
from counting import calls
from teletape_engine.commands import Batch, Call, Constant, Fetch, Gradient, MakeVariable
from teletape_engine.commands.results import Answer, Failure, Fetched, Kinds, SlicesArrays, Specs
from teletape_engine.errors import InvalidArgumentError
from teletape_engine.recording.values import Literal, untyped
from teletape_engine.spec import DTYPES, Spec, Weak
from teletape_wire import tensor_json
from teletape_wire.errors import NotInJsonError


def through(data: Any) -> Any:
    """Over the wire and back: only what JSON itself can carry survives."""
    return wire.parse_json(json.dumps(data, allow_nan=False).encode())


@given(batches)
def test_what_a_frame_can_say_json_can_say(batch: Batch) -> None:
    assert same(wire.batch_from_json(through(wire.batch_to_json(batch))), batch)


@given(tensors(), st.sampled_from([None, "base64"]))
def test_a_tensor_comes_back_as_it_was(array: Any, encoding: Any) -> None:
    result = wire.tensor_from_json(through(wire.tensor_to_json(array, encoding=encoding)))
    assert same(result, array)
    assert not result.flags.writeable


@given(answers, st.booleans())
def test_an_answer_is_json(answer: Any, full: bool) -> None:
    data = through(wire.answer_to_json(answer, wire.Served(1.0, 2.0, 3.0), full=full))
    assert [result["command"] for result in data["results"]] == [result.index for result in answer.results]
    assert (data["expires_at"], data["queue_seconds"], data["compute_seconds"]) == (
        "1970-01-01T00:00:01.000Z",
        2.0,
        3.0,
    )
    assert (data["failure"] is None) == (answer.failure is None)


def test_a_batch_as_a_person_writes_it() -> None:
    batch = wire.batch_from_json(
        {
            "commands": [
                {"do": "variable", "id": "w", "value": [[1.0, 2.0], [3, 4]], "name": "weights"},
                {"do": "constant", "id": {"id": 7}, "value": {"dtype": "float64", "data": [1, "NaN", "-Infinity"]}},
                {"do": "op", "op": "mul", "inputs": ["w", 2.0], "outputs": ["y"], "attrs": {"axis": [0, 1]}},
                {
                    "do": "op",
                    "op": "f",
                    "inputs": [{"id": 7}, {"number": "NaN"}, {"number": [1, 2]}],
                    "outputs": [{"id": 8}],
                },
                {
                    "do": "gradient",
                    "tape": "t",
                    "targets": ["y"],
                    "sources": ["w"],
                    "outputs": [None],
                    "output_gradients": [None],
                },
                {"do": "fetch", "id": "y"},
            ],
            "release": ["y", {"id": 7}],
        }
    )
    variable, put, mul, other, gradient, fetch = batch.commands
    assert variable == MakeVariable("w", untyped(np.array([[1.0, 2.0], [3.0, 4.0]])), name="weights")
    assert same(put, Constant(7, np.array([1, math.nan, -math.inf])))
    assert mul == Call("mul", ("w", untyped(np.array(2.0))), ("y",), {"axis": (0, 1)})
    assert same(other, Call("f", (7, Literal(math.nan), Literal(1 + 2j)), (8,)))
    assert gradient == Gradient("t", ("y",), ("w",), (None,), (None,))
    assert fetch == Fetch("y")
    assert batch.releases == ("y", 7)


@pytest.mark.parametrize(
    ("inputs", "dtype", "shape"),
    [
        (True, "bool", ()),
        ([[True], [False]], "bool", (2, 1)),
        ({"data": [1, 2], "dtype": "float16"}, "float16", (2,)),
        ({"data": [1, 2, 3, 4], "dtype": "int8", "shape": [2, 2]}, "int8", (2, 2)),
        ({"data": [[1, 2], [3, "Infinity"]], "dtype": "complex64"}, "complex64", (2,)),
        ({"data": [[1, 2], [3, 4]], "dtype": "complex64", "shape": [1, 2]}, "complex64", (1, 2)),
        ({"data": [1, 2], "dtype": "complex128"}, "complex128", ()),
        ({"data": [], "dtype": "float32", "shape": [3, 0, 2]}, "float32", (3, 0, 2)),
        ({"data": 1.5, "dtype": "bfloat16", "shape": []}, "bfloat16", ()),
        ({"data": [2**64 - 1], "dtype": "uint64"}, "uint64", (1,)),
    ],
)
def test_tensors_as_a_person_writes_them(inputs: Any, dtype: str, shape: Any) -> None:
    array = wire.tensor_from_json(inputs)
    assert isinstance(array, np.ndarray)
    assert (array.dtype, array.shape) == (DTYPES[dtype], shape)


@pytest.mark.parametrize(
    ("inputs", "kind", "integer", "shape"),
    [
        (2, int, "int32", ()),
        (2.0, float, "int32", ()),
        (1e2, float, "int32", ()),
        ([], int, "int32", (0,)),
        ([[], []], int, "int32", (2, 0)),
        ([1, 2], int, "int32", (2,)),
        ([1, 2.5], float, "int32", (2,)),
        ([1, "NaN"], float, "int32", (2,)),
        ("NaN", float, "int32", ()),
        ([1, 2**31], int, "int64", (2,)),
        ([1, -(2**31) - 1], int, "int64", (2,)),
        ([1, 2**63], int, "uint64", (2,)),
        ([-1, 2**63], float, "int32", (2,)),
        (10**20, float, "int32", ()),
        ({"data": [1, 2]}, int, "int32", (2,)),
        ({"data": [1, 2, 3, 4], "shape": [2, 2]}, int, "int32", (2, 2)),
        ({"data": 3, "dtype": None}, int, "int32", ()),
    ],
)
def test_numbers_without_a_dtype(inputs: Any, kind: type, integer: str, shape: Any) -> None:
    literal = wire.tensor_from_json(inputs)
    assert isinstance(literal, Literal)
    assert literal.spec is Weak.of_untyped(kind, shape, DTYPES[integer], DTYPES["float32"])
    assert not shape or not literal.array.flags.writeable
    written = through(wire.batch_to_json(Batch((Constant("x", literal),))))
    assert wire.batch_from_json(written).commands[0].value == literal or "NaN" in str(inputs)  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("inputs", "text"),
    [
        ([[1], [2, 3]], "same length"),
        ([1, [2]], "numbers; found a list"),
        ([[1], 2], "same length"),
        ([1, True], "true and false"),
        ([1, None], "found null"),
        ([1, "nan"], "found \\['nan'\\]"),
        ([1, "1"], "found \\['1'\\]"),
        ({"data": [1e39], "dtype": "float32"}, "too large for dtype float32"),
        ({"data": [70000], "dtype": "float16"}, "too large for dtype float16"),
        ({"data": [10**400], "dtype": "float64"}, "cannot hold"),
        ({"data": [300], "dtype": "uint8"}, "dtype uint8 cannot hold"),
        ({"data": [-1], "dtype": "uint64"}, "cannot hold"),
        ([10**400], "no dtype can hold"),
        ({"data": [1.5], "dtype": "int32"}, "holds integers"),
        ({"data": ["NaN"], "dtype": "int32"}, "holds integers"),
        ({"data": [1], "dtype": "bool"}, "holds true and false"),
        ({"data": [True], "dtype": "float32"}, "only a bool tensor has"),
        ({"data": [1, 2, 3], "dtype": "float32", "shape": [2, 2]}, "needs 4 elements.*has the shape \\[3\\]"),
        ({"data": [[1, 2]], "dtype": "float32", "shape": [2, 1]}, "has the shape \\[1, 2\\]"),
        ({"data": [1, 2, 3], "dtype": "complex64"}, "pair \\[re, im\\]"),
        ({"data": [1], "dtype": "float31"}, "unknown dtype"),
        ({"data": [1], "dtype": ["float32"]}, "unknown dtype"),
        ({"data": [1], "dtype": {"do": []}}, "unknown dtype"),
        ({"data": [1], "shape": [-1]}, "none negative"),
        ({"data": [1], "shape": [True]}, "none negative"),
        ({"data": [1], "shape": [1] * 40}, "40 axes"),
        ({"data": [], "dtype": "float32", "shape": [0, 2**62, 2**62]}, "no array can have"),
        ({"shape": [1], "dtype": "float32"}, "found shape, dtype"),
        ({"data": [1], "strides": [4]}, "strides"),
        ({"data": "AAA", "dtype": "float32", "shape": [1], "encoding": "base64"}, "no valid base64"),
        ({"data": "AAAA", "dtype": "float32", "shape": [1], "encoding": "base64"}, "takes 4 bytes, the base64 holds 3"),
        ({"data": "Ag==", "dtype": "bool", "shape": [1], "encoding": "base64"}, "bytes 0 and 1"),
        ({"data": "", "dtype": "float32", "shape": [0, 2**63], "encoding": "base64"}, "no array can have"),
        ({"data": "AAAA", "encoding": "base64"}, "needs dtype"),
        ({"data": "AAAA", "encoding": "gzip"}, "one encoding"),
    ],
)
def test_tensors_that_are_none(inputs: Any, text: str) -> None:
    with pytest.raises(InvalidArgumentError, match=text):
        wire.tensor_from_json(inputs)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"", "line 1 column 1"),
        (b'{"commands": [}', "line 1 column 15"),
        (b'{"a": NaN}', 'written as a string, "NaN"'),
        (b"[" * 5_000_000, "nested too deep"),
        (b"[" * 5_000_000 + b"}", "nested too deep"),
        (b'"\xff"', "no valid JSON"),
        (b"1" * 10_000, "no valid JSON"),
        (b"[-Infinity]", 'written as a string, "-Infinity"'),
        (b"[" + b"7" * 5000 + b"]", "an integer of more than 4,300 digits"),
        (b"[1, 1e999]", '1e999 is too large for a float64; infinity is written as a string, "Infinity"'),
        (b"[-1E+0400]", "-1E.0400 is too large"),
        (b"[1" + b"0" * 310 + b".0]", "is too large"),
        (b"[" + b"9" * 215 + b"e99]", "is too large"),
        ('{"a": 1}'.encode("utf-16"), "not UTF-8; byte 0 is 0xff"),
        ('{"a": 1}'.encode("utf-16-le"), "no valid JSON"),
        ('{"a": 1}'.encode("utf-32"), "not UTF-8"),
        ('{"a": 1}'.encode("utf-8-sig"), "begins with a byte order mark"),
        (b'{"a": {"b": 1, "c": 2, "b": 1}}', "the name 'b' occurs twice"),
        (
            json.dumps(dict.fromkeys(map(str, range(300_000)))).encode()[:-1] + b', "7": 1, "9": 1}',
            "the name '7' occurs",
        ),
    ],
    ids=lambda value: str(value[:30]),
)
def test_text_that_is_no_json(text: bytes, message: str) -> None:
    with pytest.raises(wire.MalformedJsonError, match=message):
        wire.parse_json(text)


@pytest.mark.parametrize("number", ["1e308", "1.7976931348623157e+308", "1e-999", "123456789" * 30, "9" * 309 + "e-9"])
def test_a_number_that_is_finite_is_read_however_it_is_written(number: str) -> None:
    assert wire.parse_json(f"[{number}]".encode()) == json.loads(f"[{number}]")


@pytest.mark.parametrize(
    ("inputs", "text"),
    [
        ([], "a list under"),
        ({"commands": {}}, "a list under"),
        ({"commands": [], "realease": []}, "found also realease"),
        ({"commands": ["fetch"]}, 'command 0: a command is an object with its name under "do"'),
        ({"commands": [{"do": "fetsch", "id": "x"}]}, "command 0: unknown command 'fetsch'"),
        ({"commands": [{"do": "tensr"}]}, "command 0: unknown command 'tensr': did you mean 'tensor'"),
        ({"commands": [{"do": "fetch"}]}, "command 0: command 'fetch' needs the field 'id'"),
        ({"commands": [{"do": "fetch", "id": "x", "as": 1}]}, "has no field 'as'"),
        ({"commands": [{"do": "fetch", "id": {"id": "x"}}]}, "field 'id' must be an id"),
        ({"commands": [{"do": "fetch", "id": {"id": -1}}]}, "field 'id' must be an id"),
        ({"commands": [{"do": "fetch", "id": 5}]}, r'command 0: an id is a name, or {"id": 5} .* found the number 5'),
        ({"commands": [], "release": [0]}, r'"release" is a list of ids: .*{"id": 0}'),
        ({"commands": [], "temporaries": [{"id": 1}, 2]}, r'"temporaries" is a list of ids: .*{"id": 2}'),
        ({"commands": [{"do": "op", "op": "f", "inputs": [None], "outputs": []}]}, "an id, a number or a tensor"),
        ({"commands": [{"do": "op", "op": "f", "inputs": [{"no": 1}], "outputs": []}]}, "a tensor is"),
        ({"commands": [{"do": "op", "op": "f", "inputs": [{"number": "x"}], "outputs": []}]}, "number"),
        ({"commands": [{"do": "op", "op": "f", "inputs": "x", "outputs": []}]}, "field 'inputs' must be a list"),
        ({"commands": [{"do": "op", "op": "f", "inputs": [], "outputs": [], "attrs": 3}]}, "field 'attrs'"),
        (
            {"commands": [{"do": "function", "id": "p", "inputs": [], "steps": [3], "outputs": []}]},
            "a command is an object",
        ),
        ({"commands": [], "release": [1.5]}, "list of ids"),
        ({"commands": [], "replace": 1}, '"replace" is true or false; found 1'),
        ({"commands": [], "release": "x"}, "list of ids"),
        ({"commands": [], "client": "one"}, "integers from 0 up"),
        ({"commands": [], "seq": -1}, "integers from 0 up"),
        ({"commands": [], "nonce": "abc"}, "32 hexadecimal digits"),
        ({"commands": [], "nonce": 7}, "32 hexadecimal digits"),
    ],
)
def test_batches_that_are_none(inputs: Any, text: str) -> None:
    with pytest.raises(InvalidArgumentError, match=text):
        wire.batch_from_json(inputs)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.sampled_from(["x", "NaN", "op", "mul", "base64"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "do",
                    "id",
                    "op",
                    "inputs",
                    "outputs",
                    "attrs",
                    "number",
                    "data",
                    "dtype",
                    "shape",
                    "encoding",
                    "value",
                ]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(json_values)
@settings(max_examples=300)
def test_any_json_gives_a_clear_error_or_a_batch(value: Any) -> None:
    for item in (value, {"commands": [value]}, {"commands": [{"do": "constant", "id": "x", "value": value}]}):
        with contextlib.suppress(InvalidArgumentError):
            wire.batch_from_json(item)


def test_floats_are_written_in_their_own_shortest_digits() -> None:
    for name in ("float32", "float16", "float64"):
        assert json.dumps(wire.tensor_to_json(np.array([0.1]).astype(DTYPES[name]))["data"]) == "[0.1]"
    pair = wire.tensor_to_json(np.array([0.1 + 0.2j], np.complex64))
    assert json.dumps(pair["data"]) == "[[0.1, 0.2]]"


def test_nan_and_infinities_are_words() -> None:
    data = wire.tensor_to_json(np.array([[math.nan, math.inf], [-math.inf, 1]], np.float32))
    assert data == {"dtype": "float32", "shape": [2, 2], "data": [["NaN", "Infinity"], ["-Infinity", 1.0]]}


def large(dtype: np.dtype[Any]) -> Any:
    """1,200 elements of every kind that the dtype has: random bits, and what JSON has no number for."""
    random = np.random.default_rng(5)
    if dtype == np.bool_:
        return random.integers(0, 2, (30, 40)).astype(bool)
    array = np.frombuffer(random.bytes(1200 * dtype.itemsize), dtype).copy()
    if dtype.kind not in "iu":
        array[:7] = np.array([np.nan, np.inf, -np.inf, -0.0, 0.1, 1e-7, 3.0]).astype(dtype)
    return array.reshape(30, 40)


@pytest.mark.parametrize("name", sorted(DTYPES))
@pytest.mark.parametrize("layout", ["in order", "transposed"])
def test_the_text_of_a_large_tensor_has_the_numbers_of_its_lists(name: str, layout: str) -> None:
    array = large(DTYPES[name]) if layout == "in order" else large(DTYPES[name]).T
    data = {"first": wire.tensor_to_json(array, unwritten=True), "then": wire.tensor_to_json(array[:2], unwritten=True)}
    assert data["first"]["data"] is array
    read = json.loads(b"".join(wire.write_json(data | {"text": "ä"})))
    lists = wire.tensor_to_json(array)
    assert json.dumps(read["first"]) == json.dumps(lists), "as texts, since -0.0 is 0.0 and 1 is true"
    assert json.dumps(read["then"]) == json.dumps(wire.tensor_to_json(array[:2]))
    assert read["text"] == "ä"
    with np.errstate(invalid="ignore"):
        assert same(wire.tensor_from_json(read["first"]), np.ascontiguousarray(array))


def test_the_text_of_floats_has_their_shortest_digits() -> None:
    for name in ("float16", "float32", "float64"):
        [head, text, *_] = wire.write_json({"data": np.full(3, 0.1, DTYPES[name])})
        assert (head, text) == (b'{"data":', b"[0.1,0.1,0.1]")


def test_numbers_outside_tensors_have_to_be_finite() -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        wire.write_json({"x": math.nan})
    with pytest.raises(TypeError, match="object is no JSON-able data"):
        wire.write_json({"x": object()})


@pytest.mark.parametrize(
    ("shapes", "dtype", "options", "words"),
    [
        (
            [6_000_001],
            np.float32,
            {},
            r"the tensor has 6,000,001 numbers, .* most 6,000,000 .*: ask for safetensors .*, of a batch for a frame",
        ),
        ([2_000_000, 4_000_001], np.int8, {}, r"2 tensors together have 6,000,001 numbers"),
        ([3_000_001], np.complex64, {}, r"the tensor has 6,000,002 numbers"),
        ([1000] * 6001, np.float32, {"elements": 1000}, r"6,001 tensors together have 6,001,000 numbers"),
        ([24_000_004], np.float64, {"encoding": "base64"}, r"the tensor has 6,000,001 numbers"),
        ([1] * 30_001, np.int32, {}, r"30,001 tensors together have 6,000,200 numbers, .* a small tensor as 200"),
    ],
    ids=["one", "several", "complex", "the first elements of many", "base64", "many small ones"],
)
def test_tensors_that_are_together_too_large_for_json_are_refused_with_the_remedy(
    shapes: list[int], dtype: type, options: dict[str, Any], words: str
) -> None:
    arrays = [np.broadcast_to(dtype(0), (length,)) for length in shapes]
    with pytest.raises(NotInJsonError, match=words):
        wire.write_json([wire.tensor_to_json(array, unwritten=True, **options) for array in arrays])


@pytest.mark.parametrize("name", sorted(DTYPES))
def test_no_tensor_is_written_as_a_list_of_python_s(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A list takes ten times as long, which many small ones of an answer add up."""
    monkeypatch.setattr(tensor_json, "_nested", None)
    for array in (np.zeros((), DTYPES[name]), np.zeros(3, DTYPES[name]), np.zeros((40, 50), DTYPES[name])):
        assert wire.write_json(wire.tensor_to_json(array, unwritten=True))


@pytest.mark.parametrize("name", sorted(DTYPES))
def test_small_tensors_and_scalars_are_written_as_their_lists(name: str) -> None:
    for array in (*large(DTYPES[name])[:2, :3].reshape(-1), large(DTYPES[name])[0, :9], np.zeros((2, 0), DTYPES[name])):
        array = np.asarray(array, DTYPES[name])
        text = b"".join(wire.write_json(wire.tensor_to_json(array, unwritten=True)))
        assert json.dumps(json.loads(text)) == json.dumps(wire.tensor_to_json(array)), "as texts: -0.0 is not 0.0"


def test_a_complex_scalar_is_a_pair() -> None:
    assert wire.tensor_to_json(np.array(1 + 2j)) == {"dtype": "complex128", "shape": [], "data": [1.0, 2.0]}
    assert through(wire.tensor_to_json(np.array([1 + 2j])))["data"] == [[1.0, 2.0]]


def test_words_in_a_tensor_are_written_all_at_once() -> None:
    def written(count: int) -> bytes:
        words = np.full(count, -math.inf)
        words[::2] = math.nan
        return b"".join(wire.write_json(wire.tensor_to_json(words, unwritten=True)))

    assert written(5000).count(b'"NaN","-Infinity"') == 2500
    assert calls(lambda: written(5000)) == calls(lambda: written(50))


def test_large_tensors_are_written_and_read_as_python_numbers_are() -> None:
    array = np.random.default_rng(5).normal(size=200_000).astype(np.float32)
    lists = wire.tensor_to_json(array)
    text = b"".join(wire.write_json(wire.tensor_to_json(array, unwritten=True)))
    assert wire.parse_json(text) == lists == json.loads(text)


@pytest.mark.parametrize(
    "last",
    [
        *("NaN", "1e999", "01", "+1", "1.", ".5", "-", "[1,]", "1 2", "nul", '"a\nb"', "[1,2]]", "[[1,2]"),
        *('"\\ud800"', '{"a":1,"a":2}', '{"[1,2]":1,"[1,3]":2}', '{"seed":123456789012345678901}', '"[1.5,2.5]"', ""),
    ],
)
def test_a_text_with_many_numbers_is_read_as_strictly_as_a_small_one(last: str) -> None:
    for part in ("1.5,", "[1.5,-2e-3],", f"[{'1.5,' * 1000}2],"):
        ends = [outcome(f'{{"data":[{part * count}{last}]}}'.encode()) for count in (2, 30_000 // len(part) * 4)]
        shortened = [re.sub(r"line 1 column \d+ \(char \d+\)", "", str(end)) for end in ends]
        assert shortened[0] == shortened[1]


def outcome(text: bytes) -> Any:
    """The last number of the data, or the error."""
    try:
        return repr(wire.parse_json(text)["data"][-1])
    except wire.MalformedJsonError as error:
        return error


ANSWER = Answer(
    (
        Fetched(0, "big", np.arange(5000, dtype=np.int32), Spec.of((5000,), DTYPES["int32"]), True),
        Fetched(1, "head", np.arange(2, dtype=np.int32), Spec.of((9,), DTYPES["int32"]), False),
        Fetched(
            2,
            "rows",
            SlicesArrays(np.ones((1, 2), np.float32), np.array([3]), Spec.of((4, 2), DTYPES["float32"])),
            Spec.of((4, 2), DTYPES["float32"]),
            True,
        ),
        Kinds(3, ("dense", "none")),
        Specs(4, (Spec.of((2,), DTYPES["bool"]),)),
    ),
    Failure(5, "poisoned", "no", None, "a.py:3", {"id": "x"}),
    640,
)


def test_an_answer_previews_big_tensors_unless_all_is_asked_for() -> None:
    big, head, rows, kinds, result = wire.answer_to_json(ANSWER, full=False)["results"]
    assert big["value"]["shape"] == [5000]
    assert (big["value"]["complete"], len(big["value"]["data"])) == (False, wire.PREVIEW)
    assert head["value"] == {"dtype": "int32", "shape": [9], "complete": False, "data": [0, 1]}
    assert rows["value"]["values"]["data"] == [[1.0, 1.0]]
    assert (rows["value"]["shape"], rows["value"]["indices"]["data"]) == ([4, 2], [3])
    assert kinds == {"command": 3, "kinds": ["dense", "none"]}
    assert result == {"command": 4, "specs": [{"dtype": "bool", "shape": [2]}]}
    whole = wire.answer_to_json(ANSWER, full=True)["results"][0]["value"]
    assert len(whole["data"]) == 5000
    assert "complete" not in whole


def test_a_failure_names_its_command() -> None:
    assert wire.answer_to_json(ANSWER, full=False)["failure"] == {
        "command": 5,
        "code": "poisoned",
        "message": "no",
        "op": None,
        "where": "a.py:3",
        "details": {"id": "x"},
    }
    assert "further_failures" not in wire.answer_to_json(ANSWER, full=False)


def test_failures_of_other_strands_follow_the_first_in_both_forms() -> None:
    further = Failure(7, "cancelled", "stop", "add", None, {})
    answer = replace(ANSWER, results=(), further_failures=(further,))
    decoded, _ = wire.decode_answer(b"".join(wire.encode_answer(answer).buffers))
    assert decoded == answer
    [written] = wire.answer_to_json(answer, full=False)["further_failures"]
    assert (written["command"], written["code"], written["op"]) == (7, "cancelled", "add")
