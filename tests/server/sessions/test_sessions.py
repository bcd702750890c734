"""/sessions: foreign, ended and replaced ones."""

import json

import httpx

from serving import Server, ok, problem


def test_sessions_of_others_and_those_that_are_gone(server: Server) -> None:
    with server.client("ann") as ann, server.client("bob") as bob, server.client(None) as nobody:
        ok(ann.post("/v1/sessions", json={"id": "hers"}))
        ok(ann.post("/v1/sessions/hers/tensors", json={"id": "x", "value": 1.5}))
        path = "/v1/sessions/hers/tensors/x"
        problem(bob.get(path), 404, "unknown_session")
        problem(nobody.get(path), 401, "unauthenticated")
        problem(ann.get("/v1/sessions/other/tensors"), 404, "unknown_session")
        ok(ann.delete("/v1/sessions/hers"))
        problem(ann.get(path), 410, "session_ended")
        large = json.dumps({"value": [0] * server.settings.max_body})
        ok(ann.post("/v1/sessions", json={"id": "hers"}))
        problem(
            ann.post("/v1/sessions/hers/tensors", content=large, headers={"Content-Type": "application/json"}),
            413,
            "body_too_large",
        )


def test_replace_ends_the_session_that_has_the_id(http: httpx.Client) -> None:
    for _ in range(2):
        response = http.post("/v1/sessions", json={"id": "again", "replace": True})
        assert response.status_code == 201
        ok(http.post("/v1/sessions/again/tensors", json={"id": "x", "value": 1.5}))
    assert http.post("/v1/sessions", json={"id": "again"}).status_code == 200
    ok(http.delete("/v1/sessions/again"))


def test_a_restarted_server_is_recognised(server: Server) -> None:
    with server.client() as client:
        facts = ok(client.get("/v1/info")).json()
        created = ok(client.post("/v1/sessions", json={"id": "lost"}))
        assert created.headers["teletape-boot-id"] == facts["boot_id"]
        assert ok(client.get("/v1/sessions/lost/tensors")).headers["teletape-boot-id"] == facts["boot_id"]
        assert "teletape-boot-id" not in client.get("/v1/health").headers
    with Server(server.settings).running() as second, second.client() as client:
        missing = client.get("/v1/sessions/lost/tensors")
        details = problem(missing, 404, "unknown_session")["details"]
        assert details["boot_id"] == missing.headers["teletape-boot-id"] != facts["boot_id"]
        assert details["started"] >= facts["started"]
        assert details["started"] == ok(client.get("/v1/info")).json()["started"]
