"""The walk in C: the library loads, or is left alone, and a plan mixes rows with calls from Python."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from driving import executor

from teletape_engine.arrays import kernels
from teletape_engine.c_library import SharedRecords
from teletape_engine.commands import Call
from teletape_engine.functions.compile import compile_function
from teletape_engine.plans.policy import POLICY
from teletape_engine.plans.run.c import loaded, native, records
from teletape_engine.plans.run.machine import _checked
from teletape_engine.plans.run.plan import Plan
from teletape_engine.plans.run.tiles import threads
from teletape_engine.recording.values import Literal

ROOT = Path(__file__).parents[3]
needs_library = pytest.mark.skipif(loaded.LIBRARY_LOADED is None, reason="librows.so.1 is not built: no C compiler")


@pytest.fixture
def policy(monkeypatch):
    """Plans from the second call on, in C."""
    monkeypatch.setattr(POLICY, "enabled", True)
    monkeypatch.setattr(POLICY, "first", 2)
    monkeypatch.setattr(POLICY, "compared", False)
    monkeypatch.setattr(POLICY, "compiled", True)
    return POLICY


def blocks_of(function):
    """The calls of a function's only plan."""
    (plan,) = [plan for plan in function.plans._plans.values() if isinstance(plan, Plan)]
    (machine,) = plan._idle
    return machine.blocks


@needs_library
def test_instructions_between_calls_from_python_become_one_call(policy):
    steps = (
        *(Call("mul", ("x", Literal(2.0)), ("a",)), Call("tanh", ("a",), ("b",)), Call("reduce_sum", ("b",), ("s",))),
        Call("cumsum", ("b",), ("c",), {"axis": 0}),
        *(Call("exp", ("c",), ("d",)), Call("add", ("d", "b"), ("e",))),
    )
    function, context = compile_function(("x",), steps, ("s", "e")), executor()
    x = np.linspace(-1, 1, 6, dtype=np.float32)
    answers = [[value.array.tobytes() for value in function.run(context, [context.constant(x)])] for _ in range(4)]
    assert all(answer == answers[0] for answer in answers)
    ((first, python, last),) = blocks_of(function)
    assert first[0] is last[0] is _checked
    assert python[0] is not _checked
    assert (first[1][2], last[1][2]) == (4, 2)  # a sum has a row for its start


@needs_library
def test_long_plans_look_for_a_cancel_between_blocks(policy, monkeypatch):
    monkeypatch.setattr(threads, "count", lambda: 1)
    steps = [Call("mul", ("x", "x"), ("a0",))]
    steps += [Call("add", (f"a{i}", "x"), (f"a{i + 1}",)) for i in range(20)]
    function, context = compile_function(("x",), steps, ("a20",)), executor()
    for _ in range(3):
        function.run(context, [context.constant(np.ones(200_000, np.float32))])
    assert len(blocks_of(function)) > 3


@needs_library
def test_arrays_that_are_not_aligned_are_left_to_the_interpreter(policy):
    function, context = compile_function(("x",), (Call("exp", ("x",), ("e",)),), ("e",)), executor()
    memory = np.zeros(80_001, np.uint8)
    aligned, shifted = memory[:-1].view(np.float64), memory[1:].view(np.float64)
    for array in (aligned, aligned, aligned, shifted):
        (result,) = function.run(context, [context.constant(array)])
        assert result.array.tolist() == [1.0] * 10_000


@needs_library
def test_inputs_that_run_backwards_are_called_from_python(policy):
    steps = (Call("strided_slice", ("x",), ("r",), {"index": ("...", (None, None, -1))}), Call("exp", ("r",), ("e",)))
    function, context = compile_function(("x",), steps, ("e",)), executor()
    x = context.constant(np.random.default_rng(1).standard_normal((100, 12)))
    answers = [function.run(context, [x])[0].array.tobytes() for _ in range(4)]
    assert answers == answers[:1] * 4


@needs_library
def test_without_the_library_the_same_bytes(policy, monkeypatch):
    function, context = compile_function(("x",), (Call("tanh", ("x",), ("t",)),), ("t",)), executor()
    x = context.constant(np.linspace(-1, 1, 6, dtype=np.float32))
    compiled = [function.run(context, [x])[0].array.tobytes() for _ in range(3)]
    monkeypatch.setattr(POLICY, "compiled", False)
    function.plans._plans.clear()
    assert [function.run(context, [x])[0].array.tobytes() for _ in range(3)] == compiled
    (((call, _),),) = blocks_of(function)
    assert call is np.tanh


def test_a_version_of_numpy_that_was_not_tested_is_left_alone(monkeypatch):
    monkeypatch.setattr(loaded, "TESTED", frozenset(("1.0", "1.1")))
    assert loaded._load() == (
        None,
        f"NumPy is {np.__version__}, and compiled plans need 1.0 to 1.1: install one of these",
    )


def test_a_program_is_warned_once_that_its_functions_are_slow():
    program = """
import numpy, warnings
numpy.__version__ = "2.99.0"
with warnings.catch_warnings(record=True) as warned:
    warnings.simplefilter("always")
    import teletape as tf
    f = tf.function(lambda x: x * 2.0)
    print([float(f(tf.constant(number))) for number in (1.0, 2.0, 3.0)])
print([str(each.message)[:90] for each in warned])
"""
    result = subprocess.run([sys.executable, "-P", "-c", program], capture_output=True, text=True, check=True)
    numbers, warned = result.stdout.splitlines()
    assert numbers == "[2.0, 4.0, 6.0]"
    assert warned == "['functions run step by step, several times slower than they could: NumPy is 2.99.0, and com']"


@needs_library
def test_a_library_that_fails_its_check_is_left_alone(monkeypatch):
    monkeypatch.setattr(loaded, "_works", lambda library: False)
    library, why = loaded._load()
    assert library is None
    assert "gives other numbers than NumPy" in why


def test_no_library(monkeypatch, tmp_path):
    for module in (loaded, native):
        monkeypatch.setattr(module, "LIBRARY", tmp_path / "librows.so.1")
    library, why = loaded._load()
    assert library is None
    assert "no C compiler" in why
    (tmp_path / "librows.so.1").write_bytes(b"no library")
    library, why = loaded._load()
    assert library is None
    assert "cannot be used" in why


@pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler here")
@pytest.mark.parametrize("source", ["plans/run/c/rows.c", "arrays/kernels.c"])
def test_the_source_compiles_without_warnings(source, tmp_path):
    flags = ["-std=c11", "-Wall", "-Wextra", "-Werror", "-O1", "-shared", "-fPIC", "-pthread"]
    path = ROOT / "engine" / "teletape_engine" / source
    subprocess.run(["cc", *flags, "-o", tmp_path / "x.so", path], check=True, timeout=300)


@pytest.mark.parametrize("module", [records, kernels])
def test_the_header_is_written_from_the_records(module):
    header = Path(module.__file__).with_name("records.h").read_text()
    assert header == module.RECORDS.header, "run .venv/bin/python -m teletape_engine.plans.run.c.records"


def test_the_layout_of_a_record_is_that_of_its_fields():
    fields = "loop f; const char *const *a, *b[3]; word n, m[2][3];"
    dtype = SharedRecords("test", {"each": fields}).dtypes["each"]
    assert dtype == np.dtype([("f", "u8"), ("a", "u8"), ("b", "u8", 3), ("n", "i8"), ("m", "i8", (2, 3))])
    assert (
        SharedRecords("test", {"each": fields}).number
        != SharedRecords("test", {"each": fields.replace("n,", "k,")}).number
    )


@needs_library
def test_a_library_of_other_records_is_left_alone(monkeypatch):
    monkeypatch.setattr(native, "RECORDS", SharedRecords("records.py", {"row": "loop function;"}))
    library, why = loaded._load()
    assert library is None
    assert "librows.so.1 is of another version: run hatch_build.py" in why


@needs_library
@pytest.mark.skipif(shutil.which("nm") is None, reason="nm is not installed (binutils)")
def test_the_libraries_export_names_with_their_prefix_alone():
    for library in (loaded.LIBRARY, kernels.LIBRARY):
        listed = subprocess.run(["nm", "-D", "--defined-only", library], capture_output=True, text=True, check=True)
        names = [line.split()[-1] for line in listed.stdout.splitlines()]
        assert "teletape_sources" in names
        assert [name for name in names if not name.startswith("teletape_") and name not in ("_init", "_fini")] == []


@pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler here")
def test_the_build_leaves_the_libraries_in_the_package(tmp_path):
    package = tmp_path / "engine" / "teletape_engine"
    for source in [*(ROOT / "engine" / "teletape_engine").rglob("*.[ch]"), ROOT / "hatch_build.py"]:
        target = tmp_path / source.relative_to(ROOT)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, target)
    compiler = tmp_path / "quick-cc"  # nothing runs these libraries: -O0, the last level, counts
    compiler.write_text('#!/bin/sh\nexec cc "$@" -O0\n')
    compiler.chmod(0o755)
    build = [sys.executable, "-P", tmp_path / "hatch_build.py"]
    subprocess.run(build, check=True, timeout=300, env=os.environ | {"CC": str(compiler)})
    libraries = [package / "plans" / "run" / "c" / "librows.so.1", package / "arrays" / "libkernels.so.1"]
    built = [library.stat() for library in libraries]
    assert min(status.st_size for status in built) > 1000

    without_compiler = {name: value for name, value in os.environ.items() if name != "CC"} | {"PATH": str(tmp_path)}
    (tmp_path / "cc").symlink_to("/bin/false")
    subprocess.run(build, check=True, timeout=300, env=without_compiler)
    assert [library.stat().st_mtime_ns for library in libraries] == [status.st_mtime_ns for status in built]
    with (package / "plans" / "run" / "c" / "rows.c").open("a") as source:
        source.write("/* changed */\n")
    assert subprocess.run(build, timeout=300, env=without_compiler, capture_output=True, check=False).returncode == 1


@needs_library
def test_copies_of_a_row_have_operands_of_their_own(policy):
    """A call on one value twice, and calls on two values: the layouts are those of one template."""
    steps = (
        Call("mul", ("x", "x"), ("a",)),
        Call("mul", ("x", "y"), ("b",)),
        Call("mul", ("y", "x"), ("c",)),
        Call("sub", ("b", "a"), ("d",)),
        Call("sub", ("a", "b"), ("e",)),
        Call("sub", ("a", "a"), ("f",)),
        Call("matmul", ("x", "y"), ("m",)),
        Call("matmul", ("y", "y"), ("n",)),
        Call("reduce_max", ("m",), ("p",), {"axis": 0}),
        Call("reduce_max", ("n",), ("q",), {"axis": 0}),
        Call("reduce_sum", ("d",), ("r",), {"axis": 0}),
        Call("reduce_sum", ("e",), ("s",), {"axis": 0}),
    )
    random = np.random.default_rng(5)
    context = executor()
    x, y = (context.constant(random.standard_normal((5, 5))) for _ in range(2))
    for order in (steps, (*steps[1:3], steps[0], *steps[3:])):
        function = compile_function(("x", "y"), order, tuple("abcdefmnpqrs"))
        answers = [[value.array.tobytes() for value in function.run(context, [x, y])] for _ in range(4)]
        policy.enabled = False
        expected = [value.array.tobytes() for value in function.run(context, [x, y])]
        policy.enabled = True
        assert answers == [expected] * 4
