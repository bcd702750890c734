"""Memory that is used again: only after the last view of it is gone, and within a bound."""

import ctypes
import gc
import threading
from typing import Any

import numpy as np
import pytest

from teletape.core.program import host_memory
from teletape.core.program.host_memory import block_size, copy, empty

SIZE = 3 << 20


@pytest.fixture(autouse=True)
def idle(monkeypatch: pytest.MonkeyPatch) -> dict[int, list[Any]]:
    """No blocks are kept at first."""
    blocks: dict[int, list[Any]] = {}
    monkeypatch.setattr(host_memory, "_idle", blocks)
    return blocks


def address(array: Any) -> int:
    return int(array.__array_interface__["data"][0])


def test_memory_is_used_again_after_its_array_is_gone() -> None:
    array = empty(SIZE)
    before = address(array)
    other = empty(SIZE)
    assert address(other) != before
    del array
    assert address(empty(SIZE - 1000)) == before


VIEWS: dict[str, Any] = {
    "a slice": lambda array: array[5:6],
    "another dtype and shape": lambda array: array.view(np.float32).reshape(-1, 64)[3],
    "a view of a view": lambda array: array[::2][::2].view(np.uint8)[1:],
    "transposed": lambda array: array.reshape(64, -1).T,
    "a memoryview": lambda array: array.data[7:9],
    "an array on a memoryview": lambda array: np.frombuffer(memoryview(array).toreadonly()[64:128], np.float64),
    "broadcast": lambda array: np.broadcast_to(array[:1], (3, 3)),
    "a ctypes pointer": lambda array: array.ctypes.data_as(ctypes.c_void_p),
    "an iterator": lambda array: array.flat,
    "a real part": lambda array: array.view(np.complex64).real,
}


@pytest.mark.parametrize("name", VIEWS)
def test_no_memory_is_used_again_while_a_view_of_it_lives(name: str, idle: dict[int, list[Any]]) -> None:
    array = empty(SIZE)
    before = address(array)
    view = VIEWS[name](array)
    del array
    gc.collect()
    assert not any(idle.values())
    others = [empty(SIZE) for _ in range(3)]
    assert before not in [address(other) for other in others]
    del view
    assert address(empty(SIZE)) == before


ROOTS: dict[str, Any] = {
    "the end of the chain of bases": lambda array: array.base,
    "a view of it": lambda array: array.base[64:128],
    "an array on it": lambda array: np.asarray(array.base),
}


@pytest.mark.parametrize("name", ROOTS)
def test_no_memory_is_used_again_while_something_below_its_array_lives(name: str) -> None:
    array = empty(SIZE)
    before = address(array)
    root = ROOTS[name](array)
    del array
    others = [empty(SIZE) for _ in range(3)]
    assert before not in [address(other) for other in others]
    del root


def test_what_is_kept_is_bounded(monkeypatch: pytest.MonkeyPatch, idle: dict[int, list[Any]]) -> None:
    monkeypatch.setattr(host_memory, "_MOST_IDLE", 10 << 20)
    arrays = [empty(size << 20) for size in (1, 2, 3, 4, 5, 6, 20)]
    while arrays:
        arrays.pop()
        assert sum(size * len(blocks) for size, blocks in idle.items()) <= 10 << 20
    assert sum(map(len, idle.values())) >= 3


@pytest.mark.parametrize("nbytes", [1 << 20, (1 << 20) + 1, 40_000_000, (1 << 30) - 1])
def test_a_block_is_little_larger_than_its_array(nbytes: int) -> None:
    assert nbytes <= block_size(nbytes) <= nbytes * 9 / 8 + 4096


@pytest.mark.parametrize("dtype", [np.float32, np.complex128, bool])
def test_a_copy_is_an_array_of_its_own(dtype: type) -> None:
    array: Any = np.arange(SIZE // 2).reshape(3, -1).astype(dtype)[:, ::-1]
    copied = copy(array)
    assert copied.flags.writeable
    assert copied.flags.c_contiguous
    assert copied.dtype == array.dtype
    np.testing.assert_array_equal(copied, array)
    copied[0, 0] = not copied[0, 0]
    assert copied[0, 0] != array[0, 0]


def test_small_arrays_are_ordinary_ones(idle: dict[int, list[Any]]) -> None:
    assert copy(np.arange(10.0)).flags.owndata
    assert empty(10).flags.owndata
    assert empty(0).size == 0


def test_threads_never_get_the_same_memory() -> None:
    wrong: list[int] = []

    def program(number: int) -> None:
        for _ in range(100):
            array = empty(1 << 20)
            array[:64] = number
            array[-64:] = number
            if not (array[:64] == number).all() or not (array[-64:] == number).all():
                wrong.append(number)

    threads = [threading.Thread(target=program, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
