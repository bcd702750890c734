"""Metrics for Prometheus: what was counted, and what is read from the server's state at each scrape.

A frame that a connection answers is counted in a dictionary and nothing else; all that is slower is done for the
framework's requests, or when /metrics is read. Frames that a session's process has answered itself are counted there.
"""

from __future__ import annotations

import collections
from collections.abc import Callable, Iterable
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Histogram, ProcessCollector
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

_BUCKETS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)


class Metrics:
    """The metrics of one server.

    Attributes:
        frames: Frames that connections have answered, by status.
        refused: Connections that were refused or ended before a request was complete, by code.
    """

    def __init__(self) -> None:
        self.frames: collections.Counter[int] = collections.Counter()
        self.refused: collections.Counter[str] = collections.Counter()
        self._registry = CollectorRegistry()
        self._requests = Counter(
            "teletape_requests",
            "Requests that are no frames, by method, route and status",
            ["method", "route", "status"],
            registry=self._registry,
        )
        self._seconds = Histogram(
            "teletape_request_seconds",
            "Time from a request's head to the end of its answer, by route",
            ["route"],
            buckets=_BUCKETS,
            registry=self._registry,
        )
        ProcessCollector(registry=self._registry)

    def observe(self, method: str, route: str, status: int, seconds: float) -> None:
        """Notes a request that the framework has answered."""
        self._requests.labels(method, route, status).inc()
        self._seconds.labels(route).observe(seconds)

    def watch(self, facts: Callable[[], Iterable[Metric]]) -> None:
        """Adds metrics that are read at each scrape."""

        class _Facts(Collector):
            def collect(self) -> Iterable[Metric]:
                return facts()

        self._registry.register(_Facts())

    def text(self, accept: str) -> tuple[bytes, str]:
        """Returns all metrics and their content type, in the format that an Accept header asks for."""
        encode, content_type = choose_encoder(accept)
        return encode(self._registry), content_type


def counter(name: str, about: str, label: str, counts: Iterable[tuple[object, float]]) -> CounterMetricFamily:
    """Returns a counter with one label."""
    family = CounterMetricFamily(name, about, labels=[label])
    for value, count in counts:
        family.add_metric([str(value)], count)
    return family


def gauge(name: str, about: str, value: float) -> GaugeMetricFamily:
    """Returns a gauge without labels."""
    return GaugeMetricFamily(name, about, value=value)
