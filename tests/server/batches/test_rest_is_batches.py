"""What REST requests do to a session is a batch: a record of the batches alone gives the same session again."""

from collections.abc import Iterator
from typing import Any

import pytest
import walk
from in_this_process import HostsHere, application
from session_contents import contents

from programs import load_script
from teletape_engine.commands import Batch
from teletape_engine.session.session import Session

openapi_document = load_script("openapi_document")


class RecordedSession(Session):
    """A session, and a second one that is only given the batches of the first."""

    def __init__(self) -> None:
        super().__init__()
        self.replayed = Session()

    def execute(self, batch: Batch, **how: Any) -> Any:
        self.replayed.execute(batch)
        return super().execute(batch, **how)


@pytest.fixture
def hosts() -> HostsHere:
    return HostsHere(RecordedSession)


@pytest.fixture
def http(hosts: HostsHere) -> Iterator[Any]:
    with application(hosts) as client:
        yield client


def test_the_batches_of_rest_requests_give_the_same_session_again(http: Any, hosts: HostsHere) -> None:
    """Each example of the API page, one after the other."""
    compared = 0
    for step in walk.steps(openapi_document.document()):
        walk.send(http, step)
        for host in hosts.hosts:
            before, after = contents(host.session), contents(host.session.replayed)
            assert repr(before) == repr(after), step.operation
            compared += any(before.values())
    assert compared > 30


def test_requests_that_fail_leave_the_same_session_too(http: Any, hosts: HostsHere) -> None:
    assert http.post("/v1/sessions", json={"id": "demo"}).status_code == 201
    for path, body in (
        ("variables", {"id": "v", "value": [1.0, 2.0]}),
        ("variables", {"id": "v", "value": [1.0, 2.0]}),  # in use
        ("tapes", {"id": "t", "persistent": True}),
        ("tapes", {"id": "inner", "parents": ["t"]}),
        ("tapes", {"id": "lost", "parents": ["nobody"]}),
        ("tapes/t/ops", {"ops": [{"op": "square", "inputs": ["v"], "outputs": ["y"]}]}),
        (
            "tapes/t/ops",  # the first stays, the second fails
            {
                "ops": [
                    {"op": "square", "inputs": ["v"], "outputs": ["z"]},
                    {"op": "add", "inputs": ["z", [1.0, 2.0, 3.0]], "outputs": ["w"]},
                ]
            },
        ),
        ("tapes/t/gradient", {"targets": ["y"], "sources": ["nobody"]}),
        ("tapes/t/gradient", {"targets": ["y"], "sources": ["v"]}),
        ("attach", None),
    ):
        http.post(f"/v1/sessions/demo/{path}", json=body)
        [host] = hosts.hosts
        assert repr(contents(host.session)) == repr(contents(host.session.replayed)), path
    assert {entry["id"] for entry in host.session.listing("tape")} == {"t", "inner"}
    assert {entry["id"] for entry in host.session.listing("tensor")} == {"y", "z"}
