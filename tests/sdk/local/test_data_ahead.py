"""Elements prepared ahead, by a thread: order, errors, and the end of the thread."""

import os
import threading
from collections.abc import Iterator
from typing import Any

import pytest

import teletape as tf
from teletape.tf.data.ahead import Ahead

Dataset = tf.data.Dataset
SCALAR = tf.TensorSpec([], tf.int32)


def read(dataset: Any) -> list[Any]:
    return [element.numpy().tolist() for element in dataset]


def test_a_generator_runs_in_another_thread_and_ahead() -> None:
    threads, reached = set(), threading.Event()

    def generator() -> Iterator[int]:
        threads.add(threading.current_thread())
        yield 0
        yield 1
        reached.set()
        yield 2

    elements = iter(Dataset.from_generator(generator, output_signature=SCALAR).prefetch(3))
    assert int(next(elements)) == 0
    assert reached.wait(30)
    assert [int(element) for element in elements] == [1, 2]
    assert threading.main_thread() not in threads


def test_order_and_errors_are_those_without_it() -> None:
    def generator() -> Iterator[int]:
        yield from range(3)
        raise ValueError("the file is damaged")

    dataset = Dataset.from_generator(generator, output_signature=SCALAR).prefetch(tf.data.AUTOTUNE)
    elements = iter(dataset)
    assert [int(next(elements)) for _ in range(3)] == [0, 1, 2]
    with pytest.raises(tf.errors.InvalidArgumentError, match="ValueError: the file is damaged"):
        next(elements)
    assert list(elements) == []


def test_the_thread_ends_with_its_iterator() -> None:
    closed = threading.Event()

    def numbers() -> Iterator[int]:
        try:
            while True:
                yield 0
        finally:
            closed.set()

    ahead = Ahead(numbers, 2)
    assert next(ahead) == 0
    del ahead
    assert closed.wait(30)


def test_an_iterator_ends_once_for_all() -> None:
    ahead = Ahead(lambda: iter([1]), 1)
    assert list(ahead) == [1]
    assert list(ahead) == []


def test_arrays_need_no_thread() -> None:
    before = threading.active_count()
    elements = iter(Dataset.range(100).batch(2).prefetch(4))
    next(elements)
    assert threading.active_count() == before


def test_functions_that_are_traced_run_in_the_thread_of_the_program() -> None:
    def generator() -> Iterator[int]:
        yield from range(4)

    threads: list[Any] = []

    def noted(x: Any) -> Any:
        threads.append(threading.current_thread())
        return x + 1

    dataset = Dataset.from_generator(generator, output_signature=SCALAR).map(noted).batch(2).prefetch(2)
    assert read(dataset) == [[1, 2], [3, 4]]
    assert set(threads) == {threading.main_thread()}


def test_functions_that_run_as_python_are_prepared_too() -> None:
    threads: list[Any] = []

    def length(text: Any) -> Any:
        threads.append(threading.current_thread())
        return len(text.numpy())

    lines = Dataset.from_generator(lambda: iter(["a", "bcd"]), output_signature=tf.TensorSpec([], tf.string))
    dataset = lines.map(length)
    assert dataset.element_spec.dtype == tf.int32  # found out by a call
    del threads[:]
    assert read(dataset.batch(2).prefetch(1)) == [[1, 3]]
    assert threading.main_thread() not in threads


@pytest.mark.parametrize("last", ["the end", "an error"])
def test_threads_that_wait_come_to_the_end_together(last: str) -> None:
    def numbers() -> Iterator[int]:
        started.acquire()
        yield 1
        if last == "an error":
            raise ValueError("the file is damaged")

    def take() -> None:
        waiting.release()
        try:
            ends.append([*ahead])
        except ValueError as error:
            ends.append(error)

    started, waiting = threading.Semaphore(0), threading.Semaphore(0)
    ends: list[Any] = []
    ahead = Ahead(numbers, 1)
    threads = [threading.Thread(target=take, daemon=True) for _ in range(5)]
    for thread in threads:
        thread.start()
        waiting.acquire()
    started.release()
    for thread in threads:
        thread.join(30)
    assert len(ends) == 5
    assert sum(isinstance(end, ValueError) for end in ends) == (last == "an error")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no forks")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")  # of Python 3.12: there are threads
def test_a_forked_child_must_make_an_iterator_of_its_own() -> None:
    ahead = Ahead(lambda: iter(range(100)), 2)
    assert next(ahead) == 0
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            next(ahead)
        except tf.errors.FailedPreconditionError as error:
            os.write(writing, str(error).encode())
        finally:
            os._exit(0)
    os.close(writing)
    with open(reading, encoding="utf-8") as words:
        assert "belongs to the parent process" in words.read()
    os.waitpid(child, 0)
    assert next(ahead) == 1
