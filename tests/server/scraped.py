"""The metrics of a server as a program reads them."""

import httpx
from prometheus_client.parser import text_string_to_metric_families

from serving import ok


def read(http: httpx.Client) -> dict[tuple[str, ...], float]:
    """Every sample by its name and labels."""
    answer = ok(http.get("/metrics"))
    assert answer.headers["content-type"].startswith("text/plain")
    assert answer.headers["cache-control"] == "no-store"
    return {
        (sample.name, *(value for _, value in sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(answer.text)
        for sample in family.samples
    }
