"""What a large tensor in JSON costs through a server: seconds of its processes, and of the caller's clock.

    .venv/bin/python benchmarks/json_tensors.py [millions of elements]

Random float32 numbers are sent as raw bytes, asked for as JSON, and this JSON is sent; the bytes are compared.
"""

import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import httpx
import numpy as np

sys.path.append(str(Path(__file__).resolve().parents[1] / "scripts"))
import with_server

RAW = "application/octet-stream"
TICKS = os.sysconf("SC_CLK_TCK")


def server_seconds() -> float:
    """CPU time of this process's descendants, which are the server's processes."""
    parents, ticks = {}, {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:  # it has ended
            continue
        parents[folder.name], ticks[folder.name] = fields[1], int(fields[11]) + int(fields[12])
    mine = {str(os.getpid())}
    while more := {pid for pid, parent in parents.items() if parent in mine} - mine:
        mine |= more
    return sum(ticks[pid] for pid in mine - {str(os.getpid())}) / TICKS


def measured(name: str, request: Callable[[], httpx.Response]) -> httpx.Response:
    """Makes a request, and prints its row."""
    before, start = server_seconds(), time.monotonic()
    response = request()
    wall, cpu = time.monotonic() - start, server_seconds() - before
    size = max(len(response.content), len(response.request.content)) / 1e6
    print(f"{name:24} {size:8.1f} MB {cpu:7.2f} s of CPU {wall:7.2f} s")
    if response.is_error:
        raise SystemExit(response.text[:500])
    return response


def main() -> None:
    """Starts a server, and measures both ways."""
    count = int(float(sys.argv[1] if sys.argv[1:] else "4") * 1e6)
    array = np.random.default_rng(0).normal(size=count).astype(np.float32)
    headers = {"Content-Type": RAW, "Tensor-Dtype": "float32", "Tensor-Shape": str(count)}
    teletape = Path(sys.executable).with_name("teletape")
    with (
        tempfile.TemporaryDirectory() as folder,
        with_server.server([teletape], Path(folder)) as url,
        httpx.Client(base_url=f"{url}/v1", timeout=600, trust_env=False) as http,
    ):
        http.post("/sessions", json={"id": "s"}).raise_for_status()
        measured("bytes up", lambda: http.post("/sessions/s/tensors?id=x", content=array.tobytes(), headers=headers))
        text = measured("JSON down", lambda: http.get("/sessions/s/tensors/x?full=true")).text
        body = '{"id":"y","value":' + text[text.index('"value":') + 8 :]
        measured(
            "JSON up",
            lambda: http.post("/sessions/s/tensors", content=body, headers={"Content-Type": "application/json"}),
        )
        back = measured("bytes down", lambda: http.get("/sessions/s/tensors/y", headers={"Accept": RAW}))
        if back.content != array.tobytes():
            raise SystemExit("the numbers have changed")


if __name__ == "__main__":
    main()
