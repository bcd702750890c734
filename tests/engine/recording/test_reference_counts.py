"""Reference counts of the Python that runs: every kind of holder is counted, or none is relied on."""

import gc
import sys
import sysconfig
import threading
import types
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from teletape_engine.arrays.cpu import CPU
from teletape_engine.catalogue.op import CATALOGUE
from teletape_engine.recording import executor, memory
from teletape_engine.recording.executor import Executor
from teletape_engine.recording.memory import Memory, footprint
from teletape_engine.recording.tape import Tape
from teletape_engine.recording.values import Value, Variable, new_uid


def in_generator(target: Any) -> Any:
    def wait(target: Any) -> Any:
        yield
        yield target

    waiting = wait(target)
    next(waiting)
    return waiting


HOLDERS: dict[str, Callable[[Any], Any]] = {
    "a name": lambda target: target,
    "a list": lambda target: [target],
    "a dictionary": lambda target: {"target": target},
    "a closure": lambda target: lambda: target,
    "an attribute": lambda target: types.SimpleNamespace(target=target),
    "an attribute in a slot": lambda target: Value(target, None, 0),  # type: ignore[arg-type]  # any object will do
    "a default": lambda target: eval("lambda x=target: x", {"target": target}),  # noqa: S307
    "a generator": in_generator,
    "a weak reference": weakref.ref,
}
COUNTED = [name for name in HOLDERS if name != "a weak reference"]


def a_variable() -> tuple[Executor, Variable]:
    recorder = Executor(CPU, Memory(None, lambda: 0))
    variable = Variable(recorder.constant(np.zeros((3, 2))), trainable=True)
    add_row(recorder, variable)  # from now on the array is the variable's own
    return recorder, variable


def add_row(recorder: Executor, variable: Variable) -> None:
    rows, ids = recorder.constant(np.ones((1, 2))), recorder.constant(np.array([0]))
    recorder.assign(variable, rows, "scatter_add", ids)


def address(variable: Variable) -> int:
    return int(variable.value.array.__array_interface__["data"][0])


def test_builds_without_the_gil_do_not_rely_on_counts() -> None:
    assert not (sysconfig.get_config_var("Py_GIL_DISABLED") and memory.EXACT_COUNTS)


def first_count() -> Callable[[Any], int]:
    counts: dict[int, int] = {}
    return lambda target: counts.setdefault(id(target), sys.getrefcount(target))


#: How another Python may count: what `sys.getrefcount` would return, and whether that can be relied on.
COUNTS: dict[str, tuple[Callable[[Any], int], bool]] = {
    "of 3.11": (sys.getrefcount, memory.EXACT_COUNTS),
    "one less: names are borrowed": (lambda target: sys.getrefcount(target) - 1, memory.EXACT_COUNTS),
    "immortal": (lambda target: (1 << 32) - 1, False),
    "not counted": (lambda target: 1, False),
    "counted late": (first_count(), False),
    "saturated": (lambda target: min(sys.getrefcount(target), 4), False),
    "split": (lambda target: sys.getrefcount(target) // 2, False),
    "doubled": (lambda target: 2 * sys.getrefcount(target), False),
}


@pytest.mark.parametrize("name", COUNTS)
def test_a_python_that_counts_otherwise_is_found_out(name: str) -> None:
    """Then every assignment copies, and a footprint promises nothing: the two tests below."""
    count, is_exact = COUNTS[name]
    assert memory.counts_every_reference(count) is is_exact


@pytest.mark.parametrize("kind", ["a list", "a dictionary", "a closure", "an attribute in a slot", "a generator"])
def test_a_python_that_does_not_count_one_kind_of_holder_is_found_out(kind: str) -> None:
    types_of_holders = {
        "a list": list,
        "a dictionary": dict,
        "a closure": types.CellType,
        "a generator": types.GeneratorType,
    }

    def count(target: Any) -> int:
        holders = gc.get_referrers(target)
        if kind == "an attribute in a slot":
            deferred = sum(type(holder).__name__ == "Target" for holder in holders)
        else:
            deferred = sum(isinstance(holder, types_of_holders[kind]) for holder in holders)
        return sys.getrefcount(target) - deferred

    assert not memory.counts_every_reference(count)


@pytest.mark.skipif(not memory.EXACT_COUNTS, reason="this build of Python does not count references exactly")
def test_an_array_that_nothing_holds_is_changed_in_place() -> None:
    recorder, variable = a_variable()
    before = address(variable)
    for _ in range(3):
        add_row(recorder, variable)
    assert address(variable) == before
    assert variable.value.array.tolist() == [[4, 4], [0, 0], [0, 0]]


def test_a_thread_that_reads_during_a_change_waits_for_its_end() -> None:
    _, variable = a_variable()
    half, seen = threading.Event(), list[Any]()
    reader = threading.Thread(target=lambda: (half.wait(30), seen.append(variable.value)))

    def compute() -> Value:
        value = variable.changing
        value.array[0] = 7
        half.set()
        reader.join(0.05)
        assert not seen
        value.array[1:] = 7
        return Value(value.array, value.spec, new_uid())

    reader.start()
    changed = variable.change(compute)
    reader.join(30)
    assert seen == [changed]
    assert changed.array.tolist() == [[7, 7], [7, 7], [7, 7]]


def test_a_read_within_a_change_gets_a_copy_of_what_is_there() -> None:
    _, variable = a_variable()
    reads = list[Value]()

    def compute() -> Value:
        reads.append(variable.value)
        variable.changing.array[:] = 5
        return variable.changing

    before = variable.value.array.tolist()
    variable.change(compute)
    assert reads[0].array.tolist() == before


def test_a_change_that_fails_leaves_the_value() -> None:
    _, variable = a_variable()
    before = variable.value
    with pytest.raises(ZeroDivisionError):
        variable.change(lambda: 1 // 0)
    assert variable.value is before
    with pytest.raises(AttributeError, match="no attribute 'values'"):
        variable.values  # noqa: B018


@pytest.mark.parametrize("name", COUNTED)
@pytest.mark.parametrize("what", ["value", "array", "view", "view of a view", "buffer"])
def test_an_array_that_something_holds_is_never_written_into(name: str, what: str) -> None:
    recorder, variable = a_variable()
    target = {
        "value": lambda: variable.value,
        "array": lambda: variable.value.array,
        "view": lambda: variable.value.array[:2],
        "view of a view": lambda: variable.value.array.T[:1],
        "buffer": lambda: memoryview(variable.value.array),
    }[what]()
    holder = HOLDERS[name](target)
    array = np.asarray(target.array if what == "value" else target)
    before = array.copy()
    add_row(recorder, variable)
    np.testing.assert_array_equal(array, before)
    del holder


def test_without_exact_counts_every_assignment_copies(monkeypatch: pytest.MonkeyPatch) -> None:
    recorder, variable = a_variable()
    monkeypatch.setattr(executor, "EXACT_COUNTS", False)
    target = variable.value.array.__array_interface__  # no reference
    before = address(variable)
    add_row(recorder, variable)
    assert (address(variable) != before, target["shape"]) == (True, (3, 2))
    assert variable.value.array.tolist() == [[2, 2], [0, 0], [0, 0]]


def a_tape_with_a_residual() -> tuple[Tape, Value]:
    recorder, tape = Executor(CPU, Memory(None, lambda: 0)), Tape()
    x = recorder.constant(np.ones(4))
    recorder.context.open(tape)
    recorder.context.watch(tape, [x])
    return tape, recorder.apply(CATALOGUE["exp"], [x])  # whose gradient needs the result


@pytest.mark.parametrize("name", HOLDERS)
def test_a_footprint_counts_every_holder_of_this_python(name: str) -> None:
    tape, result = a_tape_with_a_residual()
    assert footprint(tape, CPU.base) == (32, 0)
    holder = HOLDERS[name](result)
    del result
    freed = 32 if name == "a weak reference" and memory.EXACT_COUNTS else 0
    assert footprint(tape, CPU.base) == (32, freed)
    del holder
    assert footprint(tape, CPU.base) == (32, 32 if memory.EXACT_COUNTS else 0)


def test_without_exact_counts_a_footprint_promises_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "EXACT_COUNTS", False)
    tape, result = a_tape_with_a_residual()
    del result
    assert footprint(tape, CPU.base) == (32, 0)
