"""Sessions that share the process of a GPU: turns, limits, cancels, errors of the device, processes of their own."""

import asyncio
import contextlib
import os
import select
import signal
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from multiprocessing.process import BaseProcess
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import numpy as np
import pytest
from gpu_servers import SQUARES, serving_on_gpus, serving_with
from rest_client import op
from run_commands import ENDLESS
from server_processes import children

from serving import ok, open_files, problem, until
from teletape_server.hosts.processes.forkserver import start_process
from teletape_server.hosts.processes.gpu_processes import GpuProcesses
from teletape_server.hosts.processes.gpu_seats import Seat
from teletape_server.ipc.control import Sockets
from teletape_server.ipc.processes import ProcessKind
from teletape_server.ipc.rights import Right
from teletape_server.worker import turns as turns_module
from teletape_server.worker.gpu_process import SessionOver
from teletape_server.worker.turns import Turns
from teletape_wire.safetensors.layout import SAFETENSORS_TYPE

BREAKING_GPU = Path(__file__).parents[1] / "breaking_gpu"


@pytest.fixture
def breaking(tmp_path: Path) -> Path:
    """While this file exists, the GPU is broken."""
    return tmp_path / "broken"


@pytest.fixture(params=["substitute", pytest.param("GPU", marks=pytest.mark.gpu)])
def gpu(request: pytest.FixtureRequest, breaking: Path) -> Iterator[httpx.Client]:
    """A server with one GPU, which is the substitute, or the machine's first."""
    if request.param == "substitute":
        with serving_on_gpus(1, CUPY_SUBSTITUTE_BROKEN=str(breaking)) as http:
            yield http
        return
    paths = [str(BREAKING_GPU), *filter(None, [os.environ.get("PYTHONPATH")])]
    variables = {"CUDA_VISIBLE_DEVICES": "0", "PYTHONPATH": os.pathsep.join(paths)}
    with serving_with(os.environ | variables, partial(subprocess.Popen, text=True)) as http:  # it has a sitecustomize
        yield http


def broken(http: httpx.Client, breaking: Path) -> None:
    """Breaks the server's GPU: the substitute by its file; a real one in each process that has it open."""
    breaking.touch()
    for pid in children(int(http.headers["x-pid"])):
        with contextlib.suppress(FileNotFoundError):  # a file that was closed meanwhile
            files = [os.readlink(file) for file in Path(f"/proc/{pid}/fd").iterdir()]
            if any(file.startswith("/dev/nvidia") for file in files):
                os.kill(pid, signal.SIGUSR2)


def created(http: httpx.Client, id: str, **wishes: Any) -> str:
    session = ok(http.post("/v1/sessions", json={"id": id, "device": "gpu", **wishes})).json()
    assert session["device"] == "gpu:0"
    return f"/v1/sessions/{id}"


def squares(http: httpx.Client, session: str) -> None:
    assert ok(http.post(f"{session}/run", json=SQUARES)).json()["values"]["dx"]["data"] == [3.0, -4.0]


def processes_of(http: httpx.Client) -> int:
    """The number of processes below the server's."""
    return len(children(int(http.headers["x-pid"])))


def in_background(call: Callable[[], Any]) -> Callable[[], Any]:
    """Starts a call in a thread; the result waits for it and returns what it returned."""
    results: list[Any] = []
    thread = threading.Thread(target=lambda: results.append(call()))
    thread.start()

    def result() -> Any:
        thread.join(30)
        return results[0]

    return result


def test_sessions_share_one_process_unless_they_ask_for_their_own(gpu: httpx.Client) -> None:
    first = created(gpu, "first")
    time.sleep(0.5)  # a spare process starts, and the one that looked at the devices ends
    before = processes_of(gpu)
    others = [created(gpu, f"other-{n}") for n in range(3)]
    own = created(gpu, "own", dedicated=True)
    until(lambda: processes_of(gpu) == before + 1)
    for session in (first, *others, own):
        squares(gpu, session)
        ok(gpu.delete(session))


def test_a_long_request_lets_others_compute_and_a_cancel_ends_it(gpu: httpx.Client) -> None:
    busy, other = created(gpu, "busy"), created(gpu, "other")
    running = in_background(lambda: gpu.post(f"{busy}/batch", json=ENDLESS))
    until(lambda: ok(gpu.get(busy)).json()["running"]["iteration"] > 0)
    squares(gpu, other)
    iteration = ok(gpu.get(busy)).json()["running"]["iteration"]
    until(lambda: ok(gpu.get(busy)).json()["running"]["iteration"] > iteration)
    ok(gpu.post(f"{busy}/cancel"))
    assert ok(running()).json()["failure"]["code"] == "cancelled"
    squares(gpu, busy)


def test_the_end_of_a_session_that_computes_leaves_the_others(gpu: httpx.Client) -> None:
    busy, other = created(gpu, "busy"), created(gpu, "other")
    running = in_background(lambda: gpu.post(f"{busy}/batch", json=ENDLESS))
    until(lambda: ok(gpu.get(busy)).json()["running"]["iteration"] > 0)
    ok(gpu.delete(busy))
    problem(running(), 410, "session_ended")
    squares(gpu, other)


def test_too_little_memory_ends_the_command_and_not_the_session(gpu: httpx.Client) -> None:
    small, large = created(gpu, "small", memory_limit=1 << 20), created(gpu, "large", memory_limit=64 << 20)
    wide = {"commands": [{"do": "op", **op("fill", 0.0, to="y", shape=[1 << 20])}], "fetch": []}
    problem(gpu.post(f"{small}/run", json=wide), 507, "resource_exhausted")
    ok(gpu.post(f"{large}/run", json=wide))
    squares(gpu, small)


def test_large_tensors_come_down_as_they_are(gpu: httpx.Client) -> None:
    """One alone is sent from the memory to which it was copied; of two in one answer the first is not."""
    session = created(gpu, "s")
    rows = np.arange(3 << 18, dtype=np.float32).reshape(-1, 256)
    raw = {"content-type": "application/octet-stream", "tensor-dtype": "float32"}
    for id, array in (("a", rows), ("b", -rows)):
        shape = {"tensor-shape": ",".join(map(str, array.shape))}
        ok(gpu.post(f"{session}/tensors?id={id}", content=array.tobytes(), headers=raw | shape))
    for _ in range(3):
        answer = ok(gpu.get(f"{session}/tensors/a", headers={"accept": "application/octet-stream"}))
        assert answer.content == rows.tobytes()
    answer = ok(gpu.get(f"{session}/tensors", headers={"accept": SAFETENSORS_TYPE}))
    assert rows.tobytes() in answer.content
    assert (-rows).tobytes() in answer.content


def test_an_error_that_lasts_ends_all_sessions_with_the_reason_and_new_ones_start_again(
    gpu: httpx.Client, breaking: Path
) -> None:
    first, second = created(gpu, "first"), created(gpu, "second")
    squares(gpu, first)
    broken(gpu, breaking)
    reason = "gpu:0 failed: cudaErrorIllegalAddress: an illegal memory access was encountered"
    assert reason in problem(gpu.post(f"{second}/run", json=SQUARES), 410, "session_ended")["detail"]
    until(lambda: gpu.get(first).status_code == 410)
    assert reason in problem(gpu.get(first), 410, "session_ended")["detail"]
    breaking.unlink()
    squares(gpu, created(gpu, "third"))


def test_turns_come_in_the_order_of_asking_and_a_cancelled_request_is_the_next() -> None:
    """It never runs at the time of another one: what is left of it may touch the device."""
    turns, order, inside = Turns(), list[str](), threading.Event()
    cancelled, looked, running = threading.Event(), threading.Semaphore(0), threading.Lock()

    def is_cancelled(name: str) -> bool:
        if cancelled.is_set() and name == "cancelled":
            looked.release()
            return True
        return False

    def ask(name: str, hold: threading.Event | None = None) -> None:
        with turns.turn(Right(), lambda: is_cancelled(name)), contextlib.ExitStack() as stack:
            order.append(name if running.acquire(blocking=False) else f"{name} with another")
            stack.callback(running.release)
            if hold is not None:
                inside.set()
                hold.wait(10)

    release = threading.Event()
    threads = [threading.Thread(target=ask, args=("holder", release))]
    threads[0].start()
    inside.wait(10)
    for name in ("first", "cancelled", "second"):
        threads.append(threading.Thread(target=ask, args=(name,)))
        threads[-1].start()
        until(lambda: len(turns) == len(threads))
    cancelled.set()
    for _ in range(3):
        assert looked.acquire(timeout=10)
    release.set()
    for thread in threads:
        thread.join(10)
    assert order == ["holder", "cancelled", "first", "second"]
    assert len(turns) == 0


class Keys:
    """Requests of keys on a clock that only they move, while a first request computes until all of them wait."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 0.0
        self.turns, self.order = Turns(), list[str]()
        monkeypatch.setattr(turns_module, "time", SimpleNamespace(monotonic=lambda: self.now))
        self._threads: list[threading.Thread] = []

    def asks(self, right: Right, seconds: float, requests: int = 1, steps: int = 1) -> None:
        """A session of a key sends requests one after the other, each of some steps, and gives way before each."""

        def compute() -> None:
            for _ in range(requests):
                with self.turns.turn(right, lambda: False):
                    for _ in range(steps):
                        self.turns.give_way()
                        self.order.append(right.owner)
                        self.now += seconds

        self._threads.append(threading.Thread(target=compute))
        self._threads[-1].start()

    def run(self, ask: Callable[[], None]) -> None:
        with self.turns.turn(Right("first"), lambda: False):
            ask()
            until(lambda: len(self.turns) == 1 + len(self._threads))
        for thread in self._threads:
            thread.join(60)


def test_keys_share_a_gpu_by_time_and_weight_however_many_sessions_they_have(monkeypatch: pytest.MonkeyPatch) -> None:
    keys = Keys(monkeypatch)

    def ask() -> None:
        for _ in range(10):
            keys.asks(Right("flood"), 0.5, requests=4)
        keys.asks(Right("large", 2.0), 0.25, requests=40)
        keys.asks(Right("small"), 0.125, requests=40)

    keys.run(ask)
    half = Counter(keys.order[: len(keys.order) // 2])
    assert half["small"] * 0.125 == pytest.approx(half["flood"] * 0.5, abs=0.5)
    assert half["large"] * 0.25 == pytest.approx(2 * half["flood"] * 0.5, abs=1.0)


def test_a_group_gets_its_part_of_a_gpu_and_its_keys_share_that(monkeypatch: pytest.MonkeyPatch) -> None:
    keys = Keys(monkeypatch)

    def ask() -> None:
        keys.asks(Right("ann", 3.0, "@lab", 0.5), 0.25, requests=48)
        keys.asks(Right("bob", 1.0, "@lab", 0.5), 0.25, requests=48)
        for owner in ("cid", "dora", "eve", "fay"):
            keys.asks(Right(owner, 1.0, "", 0.5), 0.25, requests=48)

    keys.run(ask)
    first = Counter(keys.order[:96])
    assert first["ann"] == pytest.approx(36, abs=2)
    assert first["bob"] == pytest.approx(12, abs=2)
    assert [first[owner] for owner in ("cid", "dora", "eve", "fay")] == pytest.approx([12] * 4, abs=2)


def test_a_long_request_gives_way_and_who_comes_back_gets_no_more_than_others(monkeypatch: pytest.MonkeyPatch) -> None:
    keys = Keys(monkeypatch)

    def ask() -> None:
        keys.asks(Right("trains"), 1.0, steps=100)
        keys.asks(Right("asks"), 1.0, requests=10)

    keys.run(ask)
    assert Counter(keys.order[:20]) == {"trains": 10, "asks": 10}
    assert keys.order[20:] == ["trains"] * 90


def test_a_request_whose_session_has_ended_leaves_the_queue_while_another_computes() -> None:
    turns, inside, release, left = Turns(), threading.Event(), threading.Event(), list[bool]()

    def hold() -> None:
        with turns.turn(Right(), lambda: False):
            inside.set()
            release.wait(10)

    def leave() -> bool:
        raise SessionOver

    def wait() -> None:
        try:
            with turns.turn(Right(), leave):
                left.append(False)
        except Exception:  # as the engine does around each command
            left.append(False)
        except SessionOver:
            left.append(True)

    threads = [threading.Thread(target=target) for target in (hold, wait)]
    threads[0].start()
    inside.wait(10)
    threads[1].start()
    threads[1].join(10)
    assert left == [True]
    assert len(turns) == 1
    release.set()
    threads[0].join(10)


def test_a_process_that_has_ended_leaves_no_file_open() -> None:
    async def start() -> tuple[BaseProcess, Sockets]:
        return start_process(ProcessKind.GPU)

    async def taken(processes: GpuProcesses, ends: Callable[[Seat, Sockets], None]) -> None:
        """Takes a seat, ends its session or process, and gives the seat back."""
        seat, sockets = await processes.seat("gpu:0")
        ends(seat, sockets)
        sockets.close()
        await asyncio.to_thread(select.select, [seat.sentinel], [], [])
        seat.join(0)
        seat.close()

    async def test() -> None:
        processes = GpuProcesses(start)
        before = open_files()
        await taken(processes, lambda seat, _: seat.kill())
        await taken(processes, lambda seat, _: seat.kill())  # in a new process
        await taken(processes, lambda _, sockets: None)
        processes.close()
        while processes._ending:  # until it has ended
            processes.end_idle(0.0)
            await asyncio.sleep(0)
        assert open_files() == before

    process, sockets = start_process(ProcessKind.GPU)  # begins the forkserver, whose files stay
    sockets.close()
    process.join(60)
    process.close()
    asyncio.run(test())
