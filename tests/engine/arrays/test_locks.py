"""The lock that signal handlers and forked children may take, and which locks are plain ones."""

import os
import re
import signal
import threading
from pathlib import Path

import pytest

import teletape
import teletape_engine
from teletape_engine.locks import ReentrantLock

#: Locks that no signal handler, finalizer or child can wait for in vain, and why.
PLAIN = {
    "locks.py": "they are in a ReentrantLock",
    "sealed_batch.py": "a latch, which another thread releases",
    "sender.py": "a latch of the sender's thread, which waits for a short time",
    "pool.py": "a latch of a block that waits for a session, which the block before it releases",
    "uploader.py": "a dataset's thread has it, and a child has no session",
    "cache.py": "who does not get it goes on without a plan",
    "gpu.py": "no handler copies to a GPU, and a child cannot use one",
}


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="this system has no timers that interrupt")
def test_a_signal_handler_takes_the_lock_of_its_own_thread() -> None:
    lock, taken = ReentrantLock(), threading.Event()

    def handler(number: int, frame: object) -> None:
        with lock:
            taken.set()

    before = signal.signal(signal.SIGALRM, handler)
    try:
        with lock:
            signal.setitimer(signal.ITIMER_REAL, 0.001)
            assert taken.wait(30)
    finally:
        signal.signal(signal.SIGALRM, before)


def test_another_thread_waits_for_it() -> None:
    lock, order, begun = ReentrantLock(), list[str](), threading.Event()

    def other() -> None:
        begun.set()
        with lock:
            order.append("other")

    thread = threading.Thread(target=other)
    with lock:
        thread.start()
        assert begun.wait(30)
        order.append("first")
    thread.join(30)
    assert order == ["first", "other"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no forks")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")  # of Python 3.12: there are threads
@pytest.mark.parametrize("owner", ["another thread", "the thread that forks"])
def test_a_forked_child_takes_it(owner: str) -> None:
    lock, holds, done = ReentrantLock(), threading.Event(), threading.Event()

    def hold() -> None:
        with lock:
            holds.set()
            done.wait(60)

    def fork() -> int:
        child = os.fork()
        if child == 0:
            signal.alarm(20)  # ends a child that waits in vain
            with lock:
                os._exit(7)
        return child

    thread = threading.Thread(target=hold, daemon=True)
    if owner == "another thread":
        thread.start()
        assert holds.wait(30)
        child = fork()
    else:
        with lock:
            child = fork()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    done.set()


def test_other_locks_are_plain_for_a_reason() -> None:
    files = [path for package in (teletape, teletape_engine) for path in Path(package.__path__[0]).rglob("*.py")]
    assert {path.name for path in files if re.search(r"\bR?Lock\(\)", path.read_text())} == PLAIN.keys()
