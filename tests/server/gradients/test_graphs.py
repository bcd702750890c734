"""GET …/tapes/{t}/graph: JSON, DOT and SVG, by Accept and by ?format=; caged against the names in it."""

import xml.etree.ElementTree as xml

import httpx
import pytest

NASTY = '<script>alert(1)</script>"];x[label="&lt;b&gt;\\N'


@pytest.fixture
def tape(server_url):
    with httpx.Client(base_url=server_url + "/v1") as client:
        base = f"/sessions/{client.post('/sessions', json={}).json()['id']}"
        client.post(f"{base}/variables", json={"id": "w", "value": [1.0, 2.0, 3.0], "name": NASTY})
        client.post(f"{base}/tapes", json={"id": "t", "persistent": True})
        ops = [
            {"op": "tanh", "inputs": ["w"], "outputs": ["a"], "where": "train.py:1"},
            {"op": "round", "inputs": ["a"], "outputs": ["b"], "where": NASTY},
            {"op": "mul", "inputs": ["b", "b"], "outputs": ["c"]},
        ]
        assert client.post(f"{base}/tapes/t/ops", json={"ops": ops}).status_code == 200
        yield lambda query="", **headers: client.get(f"{base}/tapes/t/graph{query}", headers=headers)
        client.delete(base)


def test_json_reports_nodes_edges_and_the_cut(tape):
    answer = tape("?targets=c&sources=w")
    assert answer.headers["content-type"] == "application/json"
    facts = answer.json()
    assert [node["label"] for node in facts["nodes"]] == ["variable", "read", "tanh", "round", "mul"]
    assert [node["name"] for node in facts["nodes"]] == [NASTY, None, "a", "b", "c"]
    assert facts["nodes"][3]["marks"] == ["cut"]
    assert facts["explanations"][0]["drawn"] == facts["nodes"][3]["id"]


@pytest.mark.parametrize(
    ("query", "accept", "expected"),
    [
        ("", "*/*", "application/json"),
        ("", "text/vnd.graphviz", "text/vnd.graphviz; charset=utf-8"),
        ("", "image/svg+xml", "image/svg+xml; charset=utf-8"),
        ("?format=dot", "image/svg+xml", "text/vnd.graphviz; charset=utf-8"),
        ("?format=svg", "text/html", "image/svg+xml; charset=utf-8"),
    ],
)
def test_the_form_is_what_accept_or_the_query_says(tape, query, accept, expected):
    answer = tape(query, accept=accept)
    assert answer.status_code == 200
    assert answer.headers["content-type"] == expected
    assert answer.headers["content-security-policy"] == "default-src 'none'; style-src 'unsafe-inline'; sandbox"
    assert answer.headers["x-content-type-options"] == "nosniff"


def test_a_name_in_the_picture_is_text_and_nothing_else(tape):
    answer = tape("?format=svg&targets=c&sources=w")
    picture = xml.fromstring(answer.content)
    kinds = {element.tag.rpartition("}")[2] for element in picture.iter()}
    assert kinds <= {"svg", "g", "title", "polygon", "path", "text", "a", "ellipse", "polyline"}
    assert not [
        name for element in picture.iter() for name in element.attrib if name.startswith("on") or "href" in name
    ]
    texts = [element.text for element in picture.iter("{http://www.w3.org/2000/svg}text")]
    assert any(element.startswith('<script>alert(1)</script>"];x[label=') for element in texts if element)


def test_an_unknown_form_type_or_tape_is_refused(tape, server_url):
    assert tape("?format=png").json()["code"] == "invalid_request"
    assert tape("?nodes=3").json()["code"] == "invalid_request"
    assert tape("", accept="image/png").status_code == 406
    assert tape("?targets=nope&sources=w").json()["code"] == "unknown_id"


def test_without_graphviz_the_other_forms_still_come(monkeypatch):
    from teletape_engine.diagram import graphviz
    from teletape_engine.session.session import Session
    from teletape_server.handlers.methods import METHODS, Request
    from teletape_server.handlers.tapes import graphs

    def ask(accept):
        params = {"id": "t", "accept": accept, "targets": [], "sources": [], "nodes": 10, "first": None}
        return METHODS["tapes-graph"](session, request(params, b""))

    def request(params, body):
        buffer, never = memoryview(body), lambda: False
        return Request(params, "application/json", buffer, 0, never, lambda *progress: None, 0.0)

    session = Session()
    METHODS["tapes-create"](session, request({"collection": "/tapes"}, b'{"id": "t"}'))
    monkeypatch.setattr(graphviz, "available", lambda: False)
    with pytest.raises(graphviz.NoLayoutError, match="pip install"):
        ask(graphs.SVG_TYPE)
    assert bytes(ask(graphs.DOT_TYPE).buffers[0]).startswith(b"digraph")
    assert ask("application/json").content_type == "application/json"


def test_a_tape_reports_its_bytes(server_url):
    with httpx.Client(base_url=server_url + "/v1") as client:
        base = f"/sessions/{client.post('/sessions', json={}).json()['id']}"
        client.post(f"{base}/tensors", json={"id": "x", "value": [1.0] * 100})
        client.post(f"{base}/tapes", json={"id": "t"})
        client.post(f"{base}/tapes/t/watch", json={"tensors": ["x"]})
        ops = [{"op": "tanh", "inputs": ["x"], "outputs": ["a"]}, {"op": "exp", "inputs": ["a"], "outputs": ["b"]}]
        client.post(f"{base}/tapes/t/ops", json={"ops": ops})
        facts = client.get(f"{base}/tapes/t").json()
        assert (facts["ops"], facts["bytes"], facts["frees"]) == (2, 800, 0)
        client.delete(f"{base}/tensors/a")
        assert client.get(f"{base}/tapes").json()["tapes"][0]["frees"] == 400
        client.post(f"{base}/tapes/t/gradient", json={"targets": ["b"], "sources": ["x"]})
        facts = client.get(f"{base}/tapes/t").json()
        assert (facts["ops"], facts["bytes"], facts["frees"], facts["consumed"]) == (2, 0, 0, True)
        client.delete(base)
