"""`python -m teletape ping`: measures the time of a round trip to a server, and the bytes a second."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Final

import numpy as np

from teletape.core.network.options import ConnectOptions
from teletape.core.sessions.remote import RemoteSession

_ROUND_TRIPS: Final = 200
_TENSOR: Final = 16 << 20  #: Bytes that are sent and fetched to measure the throughput.
_FAR: Final = 0.01  #: Seconds of a round trip above which a program should read seldom.


def measure(url: str, api_key: str | None = None) -> str:
    """Returns the lines about a server: a session is made there, used, and ended.

    Raises:
        TeletapeError: There is no server, or it refuses.
    """
    began = time.perf_counter()
    with RemoteSession(ConnectOptions.of(url, api_key=api_key, lazy=True)) as session:
        opened = time.perf_counter() - began
        channel = session.channel
        channel.round_trip()
        times = [_seconds(channel.round_trip) for _ in range(_ROUND_TRIPS)]
        array = np.zeros(_TENSOR, np.uint8)
        values: list[object] = []

        def send() -> None:
            values[:] = [session.constant(array)]
            channel.sync()

        up = min(_seconds(send) for _ in range(3))
        down = []
        for _ in range(3):
            send()
            down.append(_seconds(lambda: session.fetch(values[0])))
        return "\n".join(_report(session, opened, times, up, min(down)))


def _report(session: RemoteSession, opened: float, times: Sequence[float], up: float, down: float) -> list[str]:
    median, slow, slowest, worst = (float(np.quantile(times, share)) for share in (0.5, 0.9, 0.99, 1.0))
    size = _TENSOR / 2**20
    lines = [
        f"{session.url}: teletape {session.channel.server['version']}, {session.channel.device}",
        f"connect, and make a session: {opened * 1e3:,.0f} ms",
        f"round trip of a batch: median {_ms(median)}, 90 % {_ms(slow)}, 99 % {_ms(slowest)}, longest {_ms(worst)} "
        f"({len(times)} batches)",
        f"tensors of {size:.0f} MiB: {size / up:,.0f} MiB/s to the server, {size / down:,.0f} MiB/s back",
    ]
    if median > _FAR:
        lines.append(
            f"A read costs at least {_ms(median)}: read seldom, several values at once, and let tf.function hold loops "
            "(docs/laziness.md)"
        )
    return lines


def _seconds(function: Callable[[], object]) -> float:
    began = time.perf_counter()
    function()
    return time.perf_counter() - began


def _ms(seconds: float) -> str:
    return f"{seconds * 1e3:.2f} ms"
