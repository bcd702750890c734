"""Metrics for Prometheus: what was counted, and what is read from the server's state at each scrape.

Counting is a few additions to numbers; what Prometheus makes of them is done when /metrics is read. What a session's
process answers itself is counted there (`ipc.page`), and is read with the state.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from itertools import accumulate
from typing import Any

from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

from teletape_server.ipc.durations import BOUNDS, Durations
from teletape_server.ipc.heads import FRAME, Label


class Metrics:
    """What one server has counted.

    Attributes:
        requests: Requests that are no frames, by method, route and status.
        durations: From a request's head to the end of its answer, by route.
        requests_of: The same requests by the key that they came with.
        frames: Frames that this process has answered, by key and status.
        frame_durations: From a frame's head to the beginning of its answer.
        refused: Connections that were refused or ended before a request was complete, by code.
    """

    def __init__(self) -> None:
        self.requests: Counter[Label] = Counter()
        self.durations: defaultdict[str, Durations] = defaultdict(Durations)
        self.requests_of: Counter[str] = Counter()
        self.frames: Counter[tuple[str, int]] = Counter()
        self.frame_durations = Durations()
        self.refused: Counter[str] = Counter()
        self._process = ProcessCollector(registry=None)

    def observe(self, method: str, route: str, status: int, seconds: float, owner: str | None) -> None:
        """Notes a request that was answered; None: it came without a key."""
        self.requests[method, route, status] += 1
        self.durations[route].note(seconds)
        if owner is not None:
            self.requests_of[owner] += 1

    def observe_frame(self, status: int, seconds: float, owner: str) -> None:
        """Notes a frame that was answered."""
        self.frames[owner, status] += 1
        self.frame_durations.note(seconds)

    def requests_with(self, answered: Mapping[Label, Durations]) -> tuple[Counter[Label], Mapping[str, Durations]]:
        """Returns the requests by label, and their durations by route.

        Args:
            answered: Those that sessions' processes have answered themselves.
        """
        requests, durations = self.requests.copy(), self.durations.copy()
        for label, of_label in answered.items():
            if label != FRAME:
                requests[label] += of_label.total
                durations[label[1]] += of_label
        return requests, durations

    def frames_by(self, position: int) -> Counter[Any]:
        """Returns how many frames there were by key (0) or by status (1)."""
        counts: Counter[Any] = Counter()
        for labels, count in self.frames.items():
            counts[labels[position]] += count
        return counts

    def text(self, accept: str, families: Iterable[Metric]) -> tuple[bytes, str]:
        """Returns metrics with those of the process, and their content type, in the format of an Accept header."""
        all_families = [*families, *self._process.collect()]

        class _All(Collector):
            def collect(self) -> Iterable[Metric]:
                return all_families

        registry = CollectorRegistry()
        registry.register(_All())
        encode, content_type = choose_encoder(accept)
        return encode(registry), content_type


def counter(
    name: str, about: str, label: str | tuple[str, ...] = (), counts: Iterable[tuple[object, float]] = ()
) -> CounterMetricFamily:
    """Returns a counter with labels.

    Args:
        name: Of the metric.
        about: The text that scrapes show.
        label: The label; several; or none.
        counts: Values of the label or labels, and the count.
    """
    labels = (label,) if isinstance(label, str) else label
    family = CounterMetricFamily(name, about, labels=labels)
    for values, count in counts:
        family.add_metric([str(value) for value in (values if isinstance(values, tuple) else (values,))], count)
    return family


def gauge(name: str, about: str, value: float) -> GaugeMetricFamily:
    """Returns a gauge without labels."""
    return GaugeMetricFamily(name, about, value=value)


def histogram(name: str, about: str, label: str, durations: Iterable[tuple[str, Durations]]) -> HistogramMetricFamily:
    """Returns a histogram with a label; empty: without one."""
    family = HistogramMetricFamily(name, about, labels=[label] if label else [])
    ends = [*map(str, BOUNDS), "+Inf"]
    for value, item in durations:
        buckets = [*zip(ends, accumulate(map(float, item.counts)), strict=True)]
        family.add_metric([value] if label else [], buckets, item.seconds)
    return family
