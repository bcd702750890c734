"""Sessions and what is in them, published functions, and what HTTP promises."""

from __future__ import annotations

import uuid

from teletape.conformity.checks import Server, check, expect, expect_close

_LINE = {"function": {"text": "y = w * x"}, "inputs": {"x": {"shape": ["n"]}}, "weights": {"w": 3.0}}


@check("health and readiness are told apart")
def _health(server: Server) -> None:
    expect(server.json("GET", "/health")["status"], "ok", "health")
    expect(server.ask("GET", "/ready").status_code, 200, "ready")


@check("the catalogue of ops has a page for each op, and finds NumPy's names")
def _ops(server: Server) -> None:
    names = [op["name"] for op in server.json("GET", "/ops?limit=1000")["ops"]]
    expect({"add", "matmul", "reduce_sum"} <= {*names}, True, "add, matmul and reduce_sum are ops")
    expect(server.json("GET", "/ops/matmul")["name"], "matmul", "the op")


@check("a session has the id of its creator, and the same id again is the same session")
def _create(server: Server) -> None:
    with server.session() as path:
        name = path.rpartition("/")[2]
        expect(server.json("POST", "/sessions", {"id": name})["id"], name, "the id")
        expect(server.json("GET", path)["id"], name, "the session")


@check("a session that was ended is gone, and says so")
def _ended(server: Server) -> None:
    with server.session() as path:
        server.ask("DELETE", path)
        answer = server.http.get(f"/v1{path}")
        expect(answer.status_code in (404, 410), True, f"the status is {answer.status_code}")


@check("a variable is created, read, assigned and deleted")
def _variables(server: Server) -> None:
    with server.session() as path:
        server.ask("POST", f"{path}/variables", {"id": "w", "value": [1.0, 2.0]})
        server.ask("PUT", f"{path}/variables/w", {"value": [0.5, 0.5], "mode": "add"})
        expect_close(server.json("GET", f"{path}/variables/w")["value"], [1.5, 2.5], "the variable")
        server.ask("DELETE", f"{path}/variables/w")
        expect(server.http.get(f"/v1{path}/variables/w").status_code in (404, 410), True, "the variable is gone")


@check("an assignment of another shape is refused, and the variable keeps its value")
def _assignment(server: Server) -> None:
    with server.session() as path:
        server.ask("POST", f"{path}/variables", {"id": "w", "value": [1.0, 2.0]})
        server.ask("PUT", f"{path}/variables/w", {"value": [1.0, 2.0, 3.0]}, status=422)
        expect_close(server.json("GET", f"{path}/variables/w")["value"], [1.0, 2.0], "the variable")


@check("a tape answers the gradient of what it recorded")
def _tape(server: Server) -> None:
    with server.session() as path:
        server.ask("POST", f"{path}/variables", {"id": "w", "value": [1.0, 2.0, 3.0]})
        server.ask("POST", f"{path}/tapes", {"id": "t", "persistent": True})
        server.ask("POST", f"{path}/tapes/t/ops", {"ops": [{"op": "square", "inputs": ["w"], "outputs": ["y"]}]})
        for _ in range(2):
            answer = server.json("POST", f"{path}/tapes/t/gradient", {"targets": ["y"], "sources": ["w"]})
            expect_close(answer["derivatives"][0]["value"], [2.0, 4.0, 6.0], "the gradient")


@check("a tape that is not persistent answers once")
def _once(server: Server) -> None:
    with server.session() as path:
        server.ask("POST", f"{path}/variables", {"id": "w", "value": 1.0})
        server.ask("POST", f"{path}/tapes", {"id": "t"})
        server.ask("POST", f"{path}/tapes/t/ops", {"ops": [{"op": "square", "inputs": ["w"], "outputs": ["y"]}]})
        question = {"targets": ["y"], "sources": ["w"]}
        server.ask("POST", f"{path}/tapes/t/gradient", question)
        expect(
            server.http.post(f"/v1{path}/tapes/t/gradient", json=question).json()["code"], "tape_consumed", "the code"
        )


@check("a listing has pages")
def _pages(server: Server) -> None:
    with server.session() as path:
        for number in range(5):
            server.ask("POST", f"{path}/tensors", {"id": f"t{number}", "value": float(number)})
        first = server.json("GET", f"{path}/tensors?limit=3")
        rest = server.json("GET", f"{path}/tensors?limit=3&after={first['next']}")
        names = [tensor["id"] for page in (first, rest) for tensor in page["tensors"]]
        expect(names, [f"t{number}" for number in range(5)], "the ids")
        expect(rest["next"], None, "next of the last page")


@check("a request with an Idempotency-Key is executed once")
def _idempotency(server: Server) -> None:
    with server.session() as path:
        server.ask("POST", f"{path}/variables", {"id": "w", "value": 1.0})
        headers = {"Idempotency-Key": uuid.uuid4().hex}
        body = {"commands": [{"do": "assign", "variable": "w", "value": 1.0, "mode": "add"}]}
        answers = [server.ask("POST", f"{path}/run", body, headers=headers).text for _ in range(2)]
        expect(answers[0], answers[1], "the second answer")
        expect_close(server.json("GET", f"{path}/variables/w")["value"], 2.0, "the variable")


@check("a request that prefers not to wait is answered at its address")
def _respond_async(server: Server) -> None:
    with server.session() as path:
        body = {"commands": [{"do": "op", "op": "sin", "inputs": [0.0], "outputs": ["y"]}], "fetch": ["y"]}
        answer = server.http.post(f"/v1{path}/run", json=body, headers={"Prefer": "respond-async"})
        expect(answer.status_code, 202, "the status")
        for _ in range(50):
            later = server.http.get(answer.headers["location"])
            if later.status_code != 202:
                break
        expect_close(later.json()["values"]["y"], 0.0, "the value")


@check("what a failed batch created is gone if it asks for that")
def _rollback(server: Server) -> None:
    with server.session() as path:
        commands = [
            {"do": "variable", "id": "w", "value": 5.0},
            {"do": "op", "op": "sin", "inputs": ["missing"], "outputs": ["y"]},
        ]
        answer = server.json("POST", f"{path}/batch", {"commands": commands, "on_failure": "rollback"})
        expect(answer["failure"]["command"], 1, "the command that failed")
        server.ask("GET", f"{path}/variables/w", status=404)


@check("a function is trained on the server")
def _train(server: Server) -> None:
    with server.session() as path:
        server.ask("POST", f"{path}/variables", {"id": "w", "value": 0.0})
        server.ask("POST", f"{path}/functions", {"id": "loss", "text": "loss = (w - 3)**2"})
        body = {"inputs": {"w": "w"}, "optimizer": {"name": "sgd", "learning_rate": 0.1}, "steps": 60}
        expect(server.json("POST", f"{path}/functions/loss/train", body)["steps"], 60, "the steps")
        expect_close(server.json("GET", f"{path}/variables/w")["value"], 3.0, "the variable", rtol=1e-3)


@check("values and gradients can be NaN and infinite")
def _specials(server: Server) -> None:
    commands = [{"do": "op", "op": "log", "inputs": [[0.0, -1.0]], "outputs": ["y"]}]
    answer = server.json("POST", "/run", {"commands": commands, "fetch": ["y"]})
    expect_close(answer["values"]["y"], [float("-inf"), float("nan")], "log of 0 and -1")


@check("a published function gives value and gradient without a session")
def _published(server: Server) -> None:
    name = f"conformity-{uuid.uuid4().hex[:12]}"
    facts = server.json("PUT", f"/published/{name}", _LINE)
    try:
        answer = server.json(
            "POST", f"/published/{name}/value_and_gradient", {"inputs": {"x": [1.0, 2.0]}, "fetch": ["y"]}
        )
        expect_close(answer["values"]["y"], [3.0, 6.0], "the value")
        expect_close(answer["derivatives"][0]["value"], [3.0, 3.0], "the gradient")
        again = server.json("PUT", f"/published/{name}", _LINE)
        expect(again["version"]["version"], facts["version"]["version"], "the version of the same content")
        document = server.json("GET", f"/published/{name}/openapi.json")
        expect(document["openapi"].split(".")[0], "3", "the OpenAPI document's version")
        server.ask("POST", f"/published/{name}/call", {"inputs": {"x": [[1.0]]}}, status=422)
    finally:
        server.http.delete(f"/v1/published/{name}")


@check("HEAD answers the headers of GET")
def _head(server: Server) -> None:
    head, got = server.http.head("/v1/info"), server.http.get("/v1/info")
    expect(head.status_code, 200, "the status")
    expect(head.headers["content-type"], got.headers["content-type"], "the type")
    expect(head.content, b"", "the body")


@check("the OpenAPI document names every path that the index links to")
def _document(server: Server) -> None:
    document = server.http.get("/openapi.json").json()
    for path in ("/v1/run", "/v1/sessions", "/v1/published/{name}", "/v1/ops"):
        expect(path in document["paths"], True, f"{path} is in the document")


@check("a request id that a client sends comes back")
def _request_id(server: Server) -> None:
    own = uuid.uuid4().hex
    answer = server.http.get("/v1/health", headers={"X-Request-Id": own})
    expect(answer.headers.get("x-request-id"), own, "X-Request-Id")


@check("tensors travel as safetensors, too")
def _safetensors(server: Server) -> None:
    with server.session() as path:
        server.ask("POST", f"{path}/tensors", {"id": "x", "value": [1.0, 2.0]})
        answer = server.ask("GET", f"{path}/tensors", headers={"Accept": "application/vnd.safetensors"})
        length = int.from_bytes(answer.content[:8], "little")
        expect(answer.content[8 + length :], b"\0\0\x80?\0\0\0@", "the elements")
