"""What the programs of this folder watch: a server's processes, its memory, and how quickly it answers /v1/health.

`python reliability/observing.py PORT SECONDS [outages]` prints the health's latencies in milliseconds, as JSON:
a process of its own, so that what it measures is the server and not the program that loads it.
"""

import contextlib
import http.client
import json
import os
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

HERE = Path(__file__).resolve().parent
TELETAPE = Path(sys.executable).with_name("teletape")
sys.path.insert(0, str(HERE.parent / "scripts"))

SPARE = 1  # process that a server keeps for the next session
_INTERVAL = 0.02  # seconds between two looks at the health


@contextlib.contextmanager
def server(folder: Path, *, port: int = 0, **settings: object) -> Iterator[tuple[int, int]]:
    """Starts a server with these settings, and yields its port and its process id; `port` 0: any free one."""
    from with_server import clean_environment
    from with_server import server as start

    own = {f"TELETAPE_{name.upper()}": str(value) for name, value in settings.items()}
    before = set(children(os.getpid()))
    with start([TELETAPE], folder, clean_environment() | own, port=port) as url:
        [pid] = set(children(os.getpid())) - before
        yield int(url.rpartition(":")[2]), pid


class KillableServer:
    """A server that can be killed, and then starts again at the same port.

    Args:
        folder: For its data, and its logs of each start.
        **settings: Its others.

    Attributes:
        port, pid: Of the server that runs.
    """

    def __init__(self, folder: Path, **settings: object) -> None:
        self._folder, self._settings, self._starts, self.port = folder, settings, 0, 0
        self._running = contextlib.ExitStack()
        self.start()

    def start(self) -> None:
        """Starts it."""
        self._starts += 1
        logs = self._folder / f"start-{self._starts}"
        logs.mkdir(parents=True)
        running = server(logs, port=self.port, data_dir=self._folder / "data", **self._settings)
        self.port, self.pid = self._running.enter_context(running)

    def kill(self) -> None:
        """Kills it, and starts it again."""
        os.kill(self.pid, signal.SIGKILL)
        self.stop()
        self.start()

    def stop(self) -> None:
        """Stops it, if it runs."""
        self._running.close()


def children(pid: int) -> list[int]:
    """The processes that a process has started and that live."""
    living = []
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        with contextlib.suppress(OSError):
            living += map(int, task.read_text().split())
    return living


def workers(server_pid: int) -> list[int]:
    """The processes of sessions: a server's forkserver has started them."""
    return [worker for child in children(server_pid) for worker in children(child)]


def memory(pid: int) -> float:
    """The memory of a process in MB."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1000
    raise ValueError(f"process {pid} has no memory")


def parts_of_memory(pid: int) -> dict[str, float]:
    """The parts of a process's memory in MB, by the names that the kernel has for them."""
    lines = [line.split() for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:]]
    return {name.rstrip(":"): int(kib) * 1024 / 1e6 for name, kib, *_ in lines}


def cpu_seconds(pid: int) -> float:
    """The CPU time of a process; 0: it has ended."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def health(port: int, seconds: float, *, outages: bool = False) -> list[float]:
    """Asks for the health again and again over one connection; returns each latency in milliseconds.

    With `outages` the time in which no server listens, because it starts again, is left out.
    """
    latencies = []
    end = time.monotonic() + seconds
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    while (now := time.monotonic()) < end:
        try:
            connection.request("GET", "/v1/health")
            answer = connection.getresponse()
            answer.read()
        except (OSError, http.client.HTTPException):
            if not outages:
                raise
            connection.close()
            time.sleep(_INTERVAL)
            continue
        if answer.status != 200:
            raise ValueError(f"the server is not healthy: status {answer.status}")
        latencies.append(1000 * (time.monotonic() - now))
        time.sleep(_INTERVAL)
    connection.close()
    return latencies


@contextlib.contextmanager
def watched_health(port: int, seconds: float, *, outages: bool = False) -> Iterator[dict[str, float]]:
    """Watches the health while the block runs, for at least `seconds`; fills in the numbers after the block."""
    numbers: dict[str, float] = {}
    command = [sys.executable, __file__, str(port), str(seconds), *(["outages"] if outages else [])]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        yield numbers
        output, _ = process.communicate()
    numbers |= json.loads(output)


def summary(latencies: list[float]) -> dict[str, float]:
    """The number of latencies, their median, 99th percentile and maximum, in milliseconds."""
    ordered = sorted(latencies)
    return {
        "count": len(ordered),
        "p50": round(statistics.median(ordered), 1),
        "p99": round(ordered[int(0.99 * (len(ordered) - 1))], 1),
        "max": round(ordered[-1], 1),
    }


if __name__ == "__main__":
    print(json.dumps(summary(health(int(sys.argv[1]), float(sys.argv[2]), outages="outages" in sys.argv))))
