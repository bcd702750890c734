"""Listings in pages and with filters, and the deletion of several things at once."""

from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from rest_client import Rest, op

from serving import ok, problem

NEW: dict[str, dict[str, Any]] = {
    "tensors": {"value": 1.5},
    "variables": {"value": 1.5},
    "tapes": {},
    "functions": {"inputs": ["x"], "steps": [op("neg", "x", to="y")], "outputs": ["y"]},
}


def shown(rest: Rest, collection: str, query: str = "") -> list[Any]:
    return [each["id"] for each in ok(rest.get(f"{collection}?{query}")).json()[collection]]


def walk(http: httpx.Client, url: str, member: str, name: str = "id") -> Iterator[list[Any]]:
    """The names on each page, by the header Link and by `next`."""
    path, _, query = url.partition("?")
    while True:
        answer = ok(http.get(url))
        yield [each[name] for each in answer.json()[member]]
        following = answer.json()["next"]
        if following is None:
            assert "link" not in answer.headers
            return
        url = answer.links["next"]["url"]
        assert (
            ok(http.get(f"{path}?{query}", params={**httpx.QueryParams(query), "after": following})).json()
            == ok(http.get(url)).json()
        )


# --------------------------------------------------------------------------------------------------------------- pages
def test_pages_hold_everything_once_also_while_things_come_and_go(rest: Rest) -> None:
    for collection, body in NEW.items():
        for number in range(5):
            rest.create(collection, body | {"id": f"{collection[:2]}{number}"})
        names = [f"{collection[:2]}{number}" for number in range(5)]
        url = f"{rest.path}/{collection}"
        assert list(walk(rest.http, f"{url}?limit=2", collection)) == [names[:2], names[2:4], names[4:]]
        assert list(walk(rest.http, f"{url}?limit=5", collection)) == [names] == list(walk(rest.http, url, collection))
        rest.create(collection, body | {"id": names[1], "replace": True})  # it keeps its place
        rest.delete(f"{collection}/{names[0]}")
        assert shown(rest, collection, f"after={names[1]}&limit=2") == names[2:4]
        assert shown(rest, collection, f"after={names[4]}") == []
        assert shown(rest, collection, f"prefix={names[3]}&limit=1") == [names[3]]
        problem(rest.get(f"{collection}?after={names[0]}"), 410, "released_id")
        problem(rest.get(f"{collection}?after=nobody"), 404, "unknown_id")
    refusal = problem(rest.get("tensors?after=va1"), 404, "unknown_id")
    assert "variables/va1" in refusal["detail"]


def test_filters_and_pages_go_together(rest: Rest) -> None:
    for number in range(6):
        dtype = "float64" if number % 2 else "float32"
        rest.create("tensors", {"id": f"t{number}", "value": {"dtype": dtype, "data": [1.5]}})
    rest.create("variables", {"id": "v", "value": {"dtype": "float64", "data": [1.5, 2.5]}})
    rest.create("tapes", {"id": "tape"})
    rest.done("tapes/tape/ops", {"ops": [op("gather", "v", {"dtype": "int32", "data": [0]}, to="rows")]})
    rest.done("tapes/tape/gradient", {"targets": ["rows"], "sources": ["v"], "outputs": ["sparse"]})
    assert shown(rest, "tensors", "kind=slices") == ["sparse"]
    assert shown(rest, "tensors", "dtype=float64&prefix=t") == ["t1", "t3", "t5"]
    assert shown(rest, "tensors", "dtype=float64&prefix=t&limit=2&after=t2") == ["t3", "t5"]
    pages = walk(rest.http, f"{rest.path}/tensors?dtype=float64&kind=tensor&limit=2", "tensors")
    assert list(pages) == [["t1", "t3"], ["t5", "rows"]]
    assert shown(rest, "variables", "dtype=float32") == []


def test_sessions_have_pages_and_end_together(http: httpx.Client) -> None:
    for number in range(3):
        ok(http.post("/v1/sessions", json={"id": f"listed-{number}"}))
    assert list(walk(http, "/v1/sessions?prefix=listed-&limit=2", "sessions")) == [
        ["listed-0", "listed-1"],
        ["listed-2"],
    ]
    assert http.delete("/v1/sessions?id=listed-1&id=nobody").json() == {"deleted": ["listed-1"]}
    problem(http.get("/v1/sessions?after=listed-1"), 410, "session_ended")
    problem(http.get("/v1/sessions?after=nobody"), 404, "unknown_session")
    assert http.delete("/v1/sessions?prefix=listed-").json() == {"deleted": ["listed-0", "listed-2"]}
    problem(http.get("/v1/sessions/listed-2"), 410, "session_ended")
    for query in ("", "?id=x&prefix=y", "?all=false"):
        assert "all=true" in problem(http.delete(f"/v1/sessions{query}"), 422, "invalid_request")["detail"]


def test_ops_have_pages(http: httpx.Client) -> None:
    names = [each["name"] for each in ok(http.get("/v1/ops?name=sum")).json()["ops"]]
    pages = list(walk(http, "/v1/ops?name=sum&limit=2", "ops", "name"))
    assert [name for page in pages for name in page] == names
    assert {len(page) for page in pages[:-1]} == {2}
    problem(http.get("/v1/ops?after=nobody"), 404, "not_found")


# ------------------------------------------------------------------------------------------------------------- deletion
def test_several_things_are_deleted_at_once(rest: Rest) -> None:
    for collection, body in NEW.items():
        for name in ("old1", "old2", "old3", "new1", "new2", "last"):
            rest.create(collection, body | {"id": f"{name}-{collection}"})

        def delete(query: str, collection: str = collection) -> Any:
            return ok(rest.delete(f"{collection}?{query}")).json()

        answer = delete(f"id=old2-{collection}&id=nobody&id=old1-{collection}")
        assert answer["deleted"] == [f"old1-{collection}", f"old2-{collection}"]
        assert answer["bytes_in_use"] >= 0
        assert delete("prefix=old")["deleted"] == [f"old3-{collection}"]
        assert delete(f"id=old1-{collection}")["deleted"] == []  # a retry
        assert delete("prefix=new")["deleted"] == [f"new1-{collection}", f"new2-{collection}"]
        assert delete("all=true")["deleted"] == [f"last-{collection}"] == [f"last-{collection}"]
        assert shown(rest, collection) == []
    problem(rest.get("tensors/old1-tensors"), 410, "released_id")


def test_nothing_is_deleted_if_an_id_names_something_else(rest: Rest) -> None:
    rest.create("tensors", {"id": "x", "value": 1.5})
    rest.create("variables", {"id": "w", "value": 1.5})
    assert "variables/w" in problem(rest.delete("tensors?id=x&id=w"), 404, "unknown_id")["detail"]
    assert shown(rest, "tensors") == ["x"]


@pytest.mark.parametrize("method", ["GET", "DELETE"])
def test_queries_that_cannot_be(rest: Rest, method: str) -> None:
    rest.create("tensors", {"id": "x", "value": 1.5})
    wrong = {
        "GET": ["limit=0", "limit=-1", "limit=10001", "limit=many", "after=", "prefix=", "kind=tape", "before=x"],
        "DELETE": ["", "all=false", "id=x&prefix=x", "all=true&prefix=x", "prefix=", "all=x", "kind=tape", "ids=x"],
    }
    for query in wrong[method]:
        detail = problem(rest.http.request(method, f"{rest.path}/tensors?{query}"), 422, "invalid_request")["detail"]
        assert all(part.partition("=")[0] in detail for part in query.split("&")), (query, detail)
    assert shown(rest, "tensors") == ["x"]
