"""Every program of tests/conformance gives what it gave under TensorFlow, inside the process and over HTTP.

Inside the process it computes with other kernels than this processor gets, and the server with those that it gets.
"""

from __future__ import annotations

import ast
import copy
import json
import math
import re
import sys
from collections.abc import Iterator
from typing import Any, ClassVar

import ml_dtypes
import numpy as np
import pytest

from conformance import choose, compare
from conformance.on_other_inputs import neighbours
from conformance.program import Program, load
from conformance.record import RESULTS, SPREADS, VERSION, read
from conformance.worker import TESTS, ProgramFailed, Worker
from programs import load_script
from teletape_engine.commands import Batch, Call, Command, Constant, DefineFunction, Fetch

PROGRAMS = load()
#: Programs whose every kind of command others send too.
REPEATS = choose.repeats("commands")
RECORDED = {f"{file}.{name}": result for file, programs in read().items() for name, result in programs.items()}
MOVES: dict[str, dict[str, float]] = json.loads(SPREADS.read_text(encoding="utf-8"))


def difference(program: Program, result: Any) -> str:
    """Where a result differs from the recorded one by more than its program's tolerance; empty where it does not."""
    tolerance = compare.Tolerance(program.rtol, program.atol, MOVES.get(program.id, {}))
    return compare.difference(RECORDED[program.id], result, tolerance)


#: Programs whose results have Python's own words, which later versions than the recorder's changed.
WORDS_OF_PYTHON = {
    "datasets.sources": "an OrderedDict is printed as a dictionary",
    "datasets_files.csv_files": "an OrderedDict is printed as a dictionary",
    "leaving.print_structures": "an OrderedDict is printed as a dictionary",
    "maps.wrong_vectorized_maps": "max() of nothing has another message",
}


def skip_if_python_differs(program: Program) -> None:
    """Skips a program of WORDS_OF_PYTHON on Python 3.12 and later."""
    if sys.version_info >= (3, 12) and program.id in WORDS_OF_PYTHON:
        pytest.skip(f"recorded under Python 3.11: {WORDS_OF_PYTHON[program.id]}")


class Workers:
    """A process for all programs but the fresh ones, and one that they are forked from.

    Each is started when first used, and again where a program killed it. It computes with other kernels than the
    server does: these are the processor's.
    """

    kernels: ClassVar[dict[str, str]] = load_script("other_kernels").environment()

    def __init__(self, url: str) -> None:
        self.url = url
        self.started: dict[bool, Worker] = {}

    def run(self, program: Program, *, remote: bool) -> Any:
        worker = self.started.get(program.fresh)
        if worker is None or not worker.alive:
            if worker:
                worker.close()
            worker = self.started[program.fresh] = Worker("teletape", self.url, self.kernels, forks=program.fresh)
        return worker.run(program.id, remote=remote)

    def close(self) -> None:
        for worker in self.started.values():
            worker.close()


@pytest.fixture(scope="module")
def workers(server_url: str) -> Iterator[Workers]:
    workers = Workers(server_url)
    yield workers
    workers.close()


def cases() -> Iterator[Any]:
    """Every program, in both ways in turn: what autograph has made of its functions is used in the second."""
    for name, program in PROGRAMS.items():
        yield pytest.param(program, False, id=f"{name}-in the process")
        yield pytest.param(program, True, id=f"{name}-over HTTP", marks=[pytest.mark.more] if name in REPEATS else [])


@pytest.mark.parametrize(("program", "remote"), [*cases()])
def test_a_program_gives_what_it_gave(program: Program, remote: bool, workers: Workers) -> None:
    skip_if_python_differs(program)
    text = difference(program, workers.run(program, remote=remote))
    assert not text, f"{program.id}: {text}"


# ------------------------------------------------------------------------------------------------- the recorded results


def test_results_cover_exactly_the_programs() -> None:
    assert sorted(RECORDED) == sorted(PROGRAMS), "run tests/conformance/record.py under TensorFlow again"


@pytest.mark.parametrize("of", ["commands", "ops"])
def test_programs_that_repeat_others_are_programs_and_some_run_everywhere(of: str) -> None:
    repeats = choose.repeats(of)
    assert repeats <= set(PROGRAMS), "run tests/conformance/choose.py again"
    assert not any(PROGRAMS[name].fresh for name in repeats)
    assert len(PROGRAMS) - len(repeats) > 150


def test_a_choice_has_every_kind_and_prefers_few_quick_programs() -> None:
    kinds: dict[str, set[Any]] = {"all": {1, 2, 3}, "slow": {1, 2}, "quick": {1, 2}, "alone": {4}, "none": set()}
    assert choose.chosen(kinds, dict.fromkeys(kinds, 0.1)) == {"all", "alone"}
    seconds = dict.fromkeys(kinds, 0.1) | {"all": 9.0, "slow": 1.0}
    assert choose.chosen(kinds, seconds) == {"all", "quick", "alone"}


def test_kinds_of_commands_are_without_ids_and_numbers() -> None:
    def forms(*commands: Command) -> set[Any]:
        return set(choose.kinds_of_commands(Batch(commands)))

    def total(tensor: str, total: str, axis: int, *, keepdims: bool = False) -> Call:
        return Call("reduce_sum", (tensor,), (total,), {"axis": [axis], "keepdims": keepdims}, f"line {axis}")

    assert forms(total("x", "y", 0)) == forms(total("a", "b", 1))
    assert forms(total("x", "y", 0)) != forms(total("x", "y", 0, keepdims=True))
    assert forms(Constant("x", np.ones(2))) == forms(Constant("y", np.zeros(3)))
    assert forms(Constant("x", np.ones(2))) != forms(Constant("x", np.ones(2, np.float32)))
    assert forms(total("x", "y", 0), Fetch("y")) != forms(Fetch("x"), total("x", "y", 0))
    steps = [DefineFunction("f", ("x",), (Call(op, ("x",), ("y",)),), ("y",)) for op in ("exp", "tanh")]
    assert forms(steps[0]) != forms(steps[1])


def test_results_say_which_tensorflow_gave_them() -> None:
    about = json.loads((RESULTS / "about.json").read_text(encoding="utf-8"))
    assert about["tensorflow"].startswith(f"{VERSION}.")
    assert set(about) == {"keras", "ml_dtypes", "numpy", "python", "tensorflow"}


def test_spreads_are_of_programs_and_of_arrays_that_move_by_roundings() -> None:
    assert set(MOVES) <= set(PROGRAMS), "run tests/conformance/record.py --spreads under TensorFlow again"
    assert all(0 < spread < math.inf for places in MOVES.values() for spread in places.values())
    assert "result[6]" in MOVES["keras_layers.attention"], "a gradient that is zero but for roundings"


def test_results_are_small_and_say_nothing_of_the_machine() -> None:
    for path in RESULTS.glob("*.json"):
        text = path.read_text(encoding="utf-8")
        assert len(text) < 100_000, f"{path.name}: make its programs smaller"
        assert not re.search("site-packages| at 0x", text), f"{path.name} holds a path or an address"


#: Modules of Python's own that programs need for files and for structures.
STANDARD = {"collections", "copy", "gzip", "operator", "os", "pathlib", "pickle", "tempfile"}


@pytest.mark.parametrize("path", sorted((TESTS / "conformance" / "programs").glob("*.py")), ids=lambda path: path.stem)
def test_programs_import_nothing_but_their_probes(path: Any) -> None:
    modules: set[str | None] = set()
    functions = []
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Import):
            modules.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            modules.add(node.module)
        elif isinstance(node, ast.FunctionDef) and node.decorator_list:
            functions.append(node.name)
    own = {
        "conformance.keras_models",
        "conformance.operator_probes",
        "conformance.probes",
        "conformance.program",
        "conformance.weights",
    }
    assert modules <= own | STANDARD
    assert len(functions) == len(set(functions)), "a later program hides an earlier one of the same name"


# ---------------------------------------------------------------------------------------- the comparison and the worker


class Fake:
    """Replaces a module under test: enough of a namespace for `compare.encode` of plain data."""

    class IndexedSlices: ...

    class RaggedTensor: ...

    class Variable: ...

    class Tensor: ...


def tensor(dtype: str, shape: list[int], data: list[Any]) -> dict[str, Any]:
    return {"tensor": f"{dtype}{shape}", "data": data}


ONE = tensor("float32", [2], [1.0, -2.0])
SLICES = {
    "slices": {
        "values": tensor("float32", [1, 2], [1.0, 2.0]),
        "indices": tensor("int32", [1], [0]),
        "dense_shape": tensor("int32", [2], [3, 2]),
    }
}


@pytest.mark.parametrize(
    ("expected", "got", "says"),
    [
        (
            ONE,
            tensor("float32", [2], [1.0, -2.001]),
            "1 of 2 elements differ, the first at 1: expected -2.0, got -2.001",
        ),
        (ONE, tensor("float32", [2], [1.0, "nan"]), "expected -2.0, got nan"),
        (ONE, tensor("float32", [2], [1.0, "-inf"]), "expected -2.0, got -inf"),
        (ONE, tensor("float64", [2], [1.0, -2.0]), "expected tensor float32[2], got tensor float64[2]"),
        (ONE, tensor("float32", [2, 1], [1.0, -2.0]), "expected tensor float32[2], got tensor float32[2, 1]"),
        (ONE, {"array": "float32[2]", "data": [1.0, -2.0]}, "'array'"),
        (ONE, {"variable": "float32[2]", "data": [1.0, -2.0]}, "'variable'"),
        (None, tensor("float32", [2], [0.0, 0.0]), "result: expected None"),
        (tensor("float32", [2], [0.0, 0.0]), None, "got None"),
        (SLICES, tensor("float32", [3, 2], [1.0, 2.0, 0.0, 0.0, 0.0, 0.0]), "expected {'slices'"),
        (SLICES, {"slices": SLICES["slices"] | {"dense_shape": None}}, "result['dense_shape']"),
        ([ONE, None], [ONE], "expected 2 items, got 1"),
        ([ONE], {"tuple": [ONE]}, "expected [{'tensor'"),
        ({"tuple": [1, ONE]}, {"tuple": [1, None]}, "result[1]: expected"),
        ({"dict": {"a": 1}}, {"dict": {"b": 1}}, "expected keys ['a'], got ['b']"),
        ({"dict": {"a": [1, [2]]}}, {"dict": {"a": [1, [3]]}}, "result['a'][1][0]: expected 2, got 3"),
        (1, True, "expected 1, got True"),
        (1, 1.0, "expected 1, got 1.0"),
        (True, False, "expected True, got False"),
        ("ValueError", "TypeError", "expected 'ValueError', got 'TypeError'"),
        ({"dict": {"error": "E", "text": "a"}}, {"dict": {"error": "E", "text": "b"}}, "result['text']: expected 'a'"),
        ({"shape": [1, 2]}, {"shape": [2, 1]}, "result[0]: expected 1, got 2"),
        ({"dtype": "int32"}, {"dtype": "int64"}, "expected 'int32', got 'int64'"),
        ({"float": "nan"}, 1.0, "got 1.0"),
        (1.0, 1.0001, "expected 1.0, got 1.0001"),
        (tensor("int32", [1], [10**6]), tensor("int32", [1], [10**6 + 1]), "expected 1000000, got 1000001"),
        (tensor("bool", [], [True]), tensor("bool", [], [False]), "expected True, got False"),
        (tensor("string", [1], ["a"]), tensor("string", [1], ["b"]), "expected a, got b"),
        (tensor("float64", [1], [1.0]), tensor("float64", [1], [1.0 + 1e-7]), "1 of 1 elements differ"),
        (tensor("float16", [1], [1.0]), tensor("float16", [1], [1.02]), "1 of 1 elements differ"),
        (
            tensor("complex64", [2], [[1.0, 0.0], [0.0, 1.0]]),
            tensor("complex64", [2], [[1.0, 0.0], [0.0, -1.0]]),
            "at 1",
        ),
        (tensor("float32", [1], ["inf"]), tensor("float32", [1], ["-inf"]), "expected inf, got -inf"),
        (tensor("float32", [1], ["inf"]), tensor("float32", [1], [3e38]), "expected inf, got 3e+38"),
    ],
)
def test_a_difference_is_found_and_named(expected: Any, got: Any, says: str) -> None:
    result = compare.difference(expected, got)
    assert result
    assert says in result


@pytest.mark.parametrize(
    ("expected", "got"),
    [
        (ONE, tensor("float32", [2], [1.000001, -2.000001])),
        (tensor("float32", [2], [1000.0, 0.0]), tensor("float32", [2], [1000.0, 0.0005])),
        (tensor("float32", [3], ["nan", "inf", "-inf"]), tensor("float32", [3], ["nan", "inf", "-inf"])),
        (tensor("float32", [1], [0.0]), tensor("float32", [1], [-0.0])),
        (tensor("float64", [1], [1.0]), tensor("float64", [1], [1.0 + 1e-10])),
        (tensor("bfloat16", [1], [1.0]), tensor("bfloat16", [1], [1.0078125])),
        (tensor("float32", [0, 2], []), tensor("float32", [0, 2], [])),
        (tensor("complex64", [1], [[1.0, "nan"]]), tensor("complex64", [1], [[1.0000001, "nan"]])),
        ({"float": "nan"}, {"float": "nan"}),
        (2.5, 2.5000001),
        (SLICES, copy.deepcopy(SLICES)),
    ],
)
def test_what_agrees_within_tolerance_passes(expected: Any, got: Any) -> None:
    assert compare.difference(expected, got) == ""


def test_tolerances_can_be_given() -> None:
    loose = tensor("float32", [1], [1.1])
    exact = tensor("float32", [1], [1.0])
    assert compare.difference(exact, loose, compare.Tolerance(rtol=0.2)) == ""
    assert compare.difference(exact, loose, compare.Tolerance(atol=0.2)) == ""
    assert compare.difference(exact, tensor("float32", [1], [1.000001]), compare.Tolerance(rtol=0.0, atol=0.0))


def test_an_array_may_differ_by_some_of_its_spread() -> None:
    expected, got = [tensor("float32", [1], [1.0]), 2.0], [tensor("float32", [1], [1.01]), 2.0]
    assert compare.difference(expected, got, compare.Tolerance(spreads={"result[0]": 0.002})) == ""
    assert compare.difference(expected, got, compare.Tolerance(spreads={"result[0]": 0.001}))
    assert compare.difference(expected, got, compare.Tolerance(spreads={"result[1]": 0.002}))


def test_a_spread_is_that_of_roundings() -> None:
    expected = {"dict": {"a": tensor("float32", [2], [1.0, -4.0]), "b": [1.0, 7], "c": tensor("int32", [1], [1])}}
    moved = {"dict": {"a": tensor("float32", [2], [1.0, -4.01]), "b": [1.0, 8], "c": tensor("int32", [1], [2])}}
    assert compare.spreads(expected, [expected, moved, expected]) == {"result['a']": 0.01}
    other = {"dict": {"a": tensor("float32", [2], [1.5, -4.0]), "b": [1.0000001, 7], "c": tensor("int32", [1], [1])}}
    assert compare.spreads(expected, [moved, other]) == {}, "another choice; within the tolerance of the dtype"
    assert compare.spreads(expected, [{"dict": {"a": tensor("float32", [1], [1.0])}}, "another structure"]) == {}
    infinite = tensor("float32", [2], ["inf", 1.0])
    assert compare.spreads(infinite, [tensor("float32", [2], ["inf", 1.001])]) == {"result": 0.001}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_inputs_that_are_rounded_otherwise_are_neighbours(dtype: Any) -> None:
    values = np.random.default_rng(5).normal(size=(20, 20)).astype(dtype)
    moved = [neighbours(values, seed) for seed in (1, 2, 3)]
    for array in moved:
        assert array.shape == values.shape
        assert np.all(np.abs(array - values) <= np.abs(np.spacing(values)))
        assert 100 < np.count_nonzero(array > values) < 300
    assert not np.array_equal(moved[0], moved[1])
    assert len(set(neighbours(np.full(9, 0.1, dtype), 1))) == 1, "equal numbers stay equal"
    few = np.array([0.0, -0.0, 1.0, -2.5, 0.125, 1000.0, np.inf, np.nan], dtype)
    assert np.array_equal(neighbours(few, 1), few, equal_nan=True)
    assert np.array_equal(neighbours(np.arange(3), 1), np.arange(3))


def test_every_kind_of_value_keeps_its_kind() -> None:
    values = [
        None,
        True,
        2,
        0.1,
        float("inf"),
        "text",
        [1],
        (1,),
        {"b": 1, "a": None},
        np.float32(0.1),
        np.arange(2),
        np.bool_(True),
    ]
    assert compare.encode(values, Fake) == [
        None,
        True,
        2,
        0.1,
        {"float": "inf"},
        "text",
        [1],
        {"tuple": [1]},
        {"dict": {"a": None, "b": 1}},
        {"scalar": "float32[]", "data": [0.1]},
        {"array": "int64[2]", "data": [0, 1]},
        {"scalar": "bool[]", "data": [True]},
    ]
    with pytest.raises(TypeError, match="a program returned a object"):
        compare.encode([object()], Fake)


def test_floats_are_written_exactly() -> None:
    for dtype in (np.float16, np.float32, np.float64, ml_dtypes.bfloat16):
        values = np.random.default_rng(5).normal(size=400).astype(dtype) * dtype(np.pi)
        read = json.loads(json.dumps(compare.encode(values, Fake)))
        assert np.array_equal(np.array(read["data"]).astype(dtype), values)


def test_a_worker_distinguishes_a_failure_from_a_death() -> None:
    with Worker("conformance.probes") as worker:  # a module that has nothing of TensorFlow's
        with pytest.raises(ProgramFailed, match=r"basics\.cube_of_a_scalar:\nTraceback"):
            worker.run("basics.cube_of_a_scalar")
        with pytest.raises(ProgramFailed, match="KeyError"):
            worker.run("no.such_program")
        assert worker.alive
    with Worker("conformance.probes", forks=True) as worker:
        for _ in range(2):
            with pytest.raises(ProgramFailed, match="KeyError"):
                worker.run("no.such_program")
        assert worker.alive
    with Worker("no_such_module") as worker, pytest.raises(ProgramFailed, match="the process ended, exit status 1"):
        worker.run("basics.cube_of_a_scalar")
    assert not worker.alive
