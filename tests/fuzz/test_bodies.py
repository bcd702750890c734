"""Mutated JSON bodies, paths and queries get answers that documents name."""

from collections.abc import Iterator

import httpx
import pytest

from fuzz.bodies import Bodies, _check_answer
from fuzz.target import Finding, bounded, corpus, in_time, run


@pytest.fixture(scope="module")
def bodies() -> Iterator[Bodies]:
    target = Bodies()
    yield target
    target.close()


@pytest.mark.long
def test_mutated_requests_are_answered(bodies: Bodies) -> None:
    report = run(bodies, 20261122, iter(range(150)))
    assert not report.findings, "\n".join(text for _, _, text in report.findings.values())
    assert report.outcomes["success"] > 10
    assert report.outcomes["invalid_request"] > 20
    assert report.outcomes["malformed_json"] > 5


def test_requests_that_once_got_something_else(bodies: Bodies) -> None:
    cases = corpus(bodies)
    assert cases
    with bounded():
        for case in cases:
            in_time(bodies.check, case)


@pytest.mark.parametrize(
    ("status", "kind", "text"),
    [
        (500, "text/plain", "Internal Server Error"),
        (500, "application/problem+json", '{"code": "internal", "title": "Internal error", "detail": "IndexError"}'),
        (422, "application/problem+json", '{"code": "unknown_id", "title": "Unknown id", "detail": "x"}'),
        (422, "application/problem+json", '{"code": "bad_command", "title": "Bad command"}'),
        (422, "application/json", '{"detail": []}'),
        (200, "application/json", '{"value": NaN'),
    ],
)
def test_the_target_notices(status: int, kind: str, text: str) -> None:
    case = {"method": "post", "path": "/v1/sessions/demo/ops", "query": {}, "content": "{}"}
    with pytest.raises(Finding, match="post /v1/sessions/…/ops: "):
        _check_answer(case, httpx.Response(status, headers={"content-type": kind}, text=text))
