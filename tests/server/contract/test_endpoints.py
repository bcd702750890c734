"""The records of endpoints: what is safe changes nothing, the table of docs/rest.md has all, and routes follow them."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import walk
from in_this_process import HostsHere, application
from session_contents import contents
from starlette.routing import Match

from programs import load_script
from teletape_engine.commands import Batch
from teletape_engine.session.session import Session
from teletape_server.handlers.endpoints import ENDPOINTS, endpoint
from teletape_server.handlers.methods import METHODS
from teletape_server.routes.endpoints import QUICK, ROUTES

openapi_document = load_script("openapi_document")

PAGE = Path(__file__).parents[3] / "docs" / "rest.md"
SAFE = [name for name, record in ENDPOINTS.items() if record.safe]


class JournaledSession(Session):
    """A session, and a second one that gets the batches of those requests alone that are not safe."""

    is_safe = False

    def __init__(self) -> None:
        super().__init__()
        self.replayed = Session()

    def execute(self, batch: Batch, **how: Any) -> Any:
        if not self.is_safe:
            self.replayed.execute(batch)
        return super().execute(batch, **how)


@pytest.fixture
def hosts(monkeypatch: pytest.MonkeyPatch) -> HostsHere:
    def unrecorded(name: str) -> Any:
        method = METHODS[name]

        def call(session: Any, request: Any) -> Any:
            session.is_safe = True
            try:
                return method(session, request)
            finally:
                session.is_safe = False

        return call

    for name in SAFE:
        monkeypatch.setitem(METHODS, name, unrecorded(name))
    return HostsHere(JournaledSession)


@pytest.fixture
def http(hosts: HostsHere) -> Iterator[Any]:
    with application(hosts) as client:
        yield client


def test_a_journal_without_the_safe_requests_gives_the_same_session(http: Any, hosts: HostsHere) -> None:
    """Each example of the API page, one after the other."""
    sent = set()
    for step in walk.steps(openapi_document.document()):
        before = [contents(host.session) for host in hosts.hosts]
        walk.send(http, step)
        sent.add(step.operation)
        if step.operation in SAFE:
            assert repr([contents(host.session) for host in hosts.hosts]) == repr(before), step.operation
        for host in hosts.hosts:
            assert repr(contents(host.session)) == repr(contents(host.session.replayed)), step.operation
    assert sent.issuperset(SAFE)


def test_a_question_that_keeps_or_assigns_is_not_safe(http: Any, hosts: HostsHere) -> None:
    """The examples do neither: a function whose steps assign to a variable, and a tape that answers once."""
    assert http.post("/v1/sessions", json={"id": "demo"}).status_code == 201
    demo = "/v1/sessions/demo"
    steps = [
        {"op": "square", "inputs": ["a"], "outputs": ["b"]},
        {"do": "assign", "variable": "v", "value": 1.0, "mode": "add"},
    ]
    for path, body in (
        ("variables", {"id": "counter", "value": 0.0}),
        ("functions", {"id": "f", "inputs": ["a", "v"], "outputs": ["b"], "steps": steps}),
        ("tapes", {"id": "tape"}),
        ("tapes/tape/ops", {"ops": [{"op": "square", "inputs": ["counter"], "outputs": ["y"]}]}),
    ):
        assert http.post(f"{demo}/{path}", json=body).is_success
    [host] = hosts.hosts
    for name, path, body in (
        ("tapes-estimate", "tapes/tape/estimate", {"targets": ["y"], "sources": ["counter"]}),
        ("tapes-gradient_statistics", "tapes/tape/gradient_statistics", {"targets": ["y"], "sources": ["counter"]}),
        ("tapes-explain", "tapes/tape/explain", {"targets": ["y"], "sources": ["counter"]}),
        ("functions-explain", "functions/f/explain", {"inputs": [3.0, "counter"], "sources": ["a"]}),
        (
            "functions-value_and_gradient",
            "functions/f/value_and_gradient",
            {"inputs": [3.0, "counter"], "sources": ["a"]},
        ),
        ("tapes-gradient", "tapes/tape/gradient", {"targets": ["y"], "sources": ["counter"]}),
    ):
        before = repr(contents(host.session))
        answer = http.post(f"{demo}/{path}", json=body)
        assert answer.is_success, answer.text
        assert (repr(contents(host.session)) == before) is ENDPOINTS[name].safe, name
        assert repr(contents(host.session)) == repr(contents(host.session.replayed)), name


def test_what_reads_is_safe_and_what_deletes_or_replaces_is_not() -> None:
    for name, record in ENDPOINTS.items():
        assert record.safe or record.verb != "GET", name
        assert not record.safe or record.verb in ("GET", "POST"), name


def table() -> set[tuple[str, str]]:
    """Verb and path of each request in the table of the page; parameters in paths have no names."""
    requests = set()
    for places, requested in re.findall(r"^\| (`/.*?) \| (.*?) \|$", PAGE.read_text(encoding="utf-8"), re.M):
        paths = re.findall(r"`(/[^`]*)`", places)
        has_items = len(paths) == 2 and paths[1].startswith("/{")
        bases = [paths[0], paths[0] + paths[1]] if has_items else paths
        verb = ""
        for position, part in enumerate(re.sub(r"\(\[?[^()]*(\([^()]*\))?[^()]*\)", "", requested).split(";")):
            of = [bases[min(position, 1)]] if has_items else bases
            pieces = re.findall(r"\b(GET|POST|PUT|DELETE)\b|`(/[^`]*)`", part)
            for piece, (sent, below) in enumerate(pieces):
                verb = sent or verb
                following = pieces[piece + 1][1] if piece + 1 < len(pieces) else ""
                if below or not following:
                    requests |= {(verb, re.sub(r"\{\w+\}", "{}", base + below)) for base in of}
    return requests


def test_the_table_of_the_page_has_every_request() -> None:
    document = openapi_document.document()["paths"]
    expected = {
        (verb.upper(), re.sub(r"\{\w+\}", "{}", path if path == "/v1" else path.removeprefix("/v1")))
        for path, operations in document.items()
        for verb in operations
    }
    assert table() == expected


@pytest.mark.parametrize("name", ["w", "5", "a.b-c_d", "gradient", "{tape}", "two words", "é", "", "a/b"])
def test_the_quick_way_to_a_route_leads_where_the_patterns_do(name: str) -> None:
    for route in ROUTES:
        path = re.sub(r"\{\w+\}", lambda _: name, route.path)
        for verb in ("GET", "POST", "PUT", "DELETE", "PATCH"):
            scope = {"type": "http", "method": verb, "path": path, "headers": []}
            match, quick = QUICK.matches(scope)
            first = next((other for other in ROUTES if other.matches(scope)[0] is Match.FULL), None)
            assert (match is Match.FULL) is (first is not None), (verb, path)
            if first is not None:
                slow = first.matches(scope)[1]
                assert quick == {key: slow[key] for key in ("route", "path_params")}, (verb, path)


def test_two_endpoints_cannot_have_one_name() -> None:
    with pytest.raises(TypeError, match="'tapes-hvp' is registered twice"):

        @endpoint("POST", "/tapes/{tape}/hvp", None, "Compute something else")
        def hvp(session: Any, request: Any) -> Any:
            """Is never called."""
