"""What all faces of published functions have in common: whatever is sent, a caller gets an answer or a refusal."""

import base64
import copy
import json
from collections.abc import Iterator
from typing import Any

import httpx
import numpy as np
import pytest

from serving import KEYS, Server, ok, unread_post, until
from teletape_server.app import FACES

FUNCTION: dict[str, Any] = {
    "function": {"text": "product = x * y; total = sum(x * x * y)"},
    "inputs": {"x": {"shape": [2, "n"]}, "y": {"shape": ["n"]}},
    "visibility": "everybody",
}
X, Y = [[0.5, 1.5, 2.5], [1.0, 0.25, -0.5]], [0.5, -1.0, 2.0]


def array(value: Any) -> dict[str, Any]:
    """An array as Tesseracts have it."""
    elements = np.asarray(value, np.float32)
    data = {"buffer": base64.b64encode(elements.tobytes()).decode(), "encoding": "base64"}
    return {"shape": list(elements.shape), "dtype": "float32", "data": data}


def tensor(name: str, value: Any) -> dict[str, Any]:
    """A tensor as the Open Inference Protocol has it."""
    elements = np.asarray(value, np.float32)
    data = elements.ravel().tolist()
    return {"name": name, "datatype": "FP32", "shape": list(elements.shape), "data": data, "parameters": {}}


_MODEL = {"name": "blade", "config": {}, "input": [[*X[0], *X[1]], Y], "outWrt": 1, "sens": [1.0], "vec": [1.0] * 6}
_INPUTS = {"inputs": {"x": array(X), "y": array(Y)}}
_OUTPUTS = [{"name": "total"}, {"name": "gradient:x", "parameters": {"binary_data": True}}]
#: A right body for each operation that takes one.
BODIES: dict[str, Any] = {
    **{f"/umbridge/{name}": _MODEL for name in ("ModelInfo", "Evaluate")},
    **{f"/umbridge/{name}": {**_MODEL, "config": {"n": 3}} for name in ("InputSizes", "OutputSizes")},
    **{f"/umbridge/{name}": {**_MODEL, "inWrt": 0} for name in ("Gradient", "ApplyJacobian")},
    "/umbridge/ApplyHessian": {**_MODEL, "inWrt1": 1, "inWrt2": 0},
    "/tesseract/blade/apply": _INPUTS,
    "/tesseract/blade/abstract_eval": {
        "inputs": {"x": {"shape": [2, 3], "dtype": "float32"}, "y": {"shape": [3], "dtype": "float32"}}
    },
    "/tesseract/blade/jacobian": {**_INPUTS, "jac_inputs": ["x"], "jac_outputs": ["total"]},
    "/tesseract/blade/jacobian_vector_product": {
        **_INPUTS,
        "jvp_inputs": ["y"],
        "jvp_outputs": ["total"],
        "tangent_vector": {"y": array(Y)},
    },
    "/tesseract/blade/vector_jacobian_product": {
        **_INPUTS,
        "vjp_inputs": ["x"],
        "vjp_outputs": ["total"],
        "cotangent_vector": {"total": array(1.0)},
    },
    "/v2/models/blade/infer": {
        "inputs": [tensor("x", X), tensor("y", Y), tensor("gradient:total", 2.0)],
        "outputs": _OUTPUTS,
        "parameters": {"exact": False},
    },
}
ODD: list[Any] = [
    None,
    -1,
    2**70,
    1e308,
    "",
    "x",
    [],
    [[]],
    {},
    {"tensor": "x"},
    True,
    [None],
    [2**62, 2**62],
    [0.0] * 5,
]


@pytest.fixture(scope="module", autouse=True)
def function(http: httpx.Client) -> Iterator[None]:
    ok(http.put("/v1/published/blade", json=FUNCTION))
    yield
    http.delete("/v1/published/blade")


def places(value: Any, place: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The place of each member of a body, of long lists the first members."""
    yield place
    members = value.items() if isinstance(value, dict) else enumerate(value[:2]) if isinstance(value, list) else ()
    for name, member in members:
        yield from places(member, (*place, name))


def with_member(body: Any, place: tuple[Any, ...], value: Any) -> Any:
    """A body with another member in a place."""
    if not place:
        return value
    body = copy.deepcopy(body)
    parent = body
    for name in place[:-1]:
        parent = parent[name]
    parent[place[-1]] = value
    return body


def test_each_operation_of_each_document_has_a_body_here(http: httpx.Client) -> None:
    paths = []
    for path in (face.PATH.format(name="blade") for face in FACES):
        document = ok(http.get(f"{path}/openapi.json")).json()
        paths += [path + name for name, methods in document["paths"].items() if "post" in methods]
    paths = [path.format(model="blade") for path in paths if "{version}" not in path]
    assert sorted(paths) == sorted(BODIES)


@pytest.mark.parametrize("path", BODIES)
def test_a_right_body_is_answered_and_an_odd_one_is_no_defect(http: httpx.Client, path: str) -> None:
    body = BODIES[path]
    ok(http.post(path, json=body))
    statuses = set()
    for place in places(body):
        for value in ODD:
            response = http.post(path, json=with_member(body, place, value))
            statuses.add(response.status_code)
            assert response.status_code < 500, (place, value, response.text)
    assert statuses & {400, 422}


@pytest.mark.parametrize("path", BODIES)
@pytest.mark.parametrize("content", [b"", b"{", b"[" * 100_000, b"\xff", b"null"])
def test_what_is_no_json_is_refused(http: httpx.Client, path: str, content: bytes) -> None:
    response = http.post(path, content=content)
    assert response.status_code in (400, 422), response.text
    assert json.loads(response.content)


@pytest.mark.parametrize("path", BODIES)
def test_large_and_compressed_bodies_and_strangers_are_refused(server: Server, path: str) -> None:
    with server.client("ann") as ann, server.client(None) as stranger:
        ok(ann.put("/v1/published/blade", json=FUNCTION))
        assert ann.post(path, content=b"0" * (server.settings.max_body + 1)).status_code == 413
        assert ann.post(path, json=BODIES[path], headers={"Content-Encoding": "gzip"}).status_code == 415
        assert stranger.post(path, json=BODIES[path]).status_code == 401
        assert stranger.post(path, json=BODIES[path], auth=("any", KEYS["bob"])).status_code == 200
        assert stranger.post(path, json=BODIES[path], headers={"Authorization": "Basic !"}).status_code == 401
        ok(ann.post(path, json=BODIES[path]))


def test_a_client_that_leaves_ends_its_call(server: Server) -> None:
    """No body stays counted, and the server goes on."""
    path = "/umbridge/Evaluate"
    with server.client("ann") as ann:
        ok(ann.put("/v1/published/blade", json=FUNCTION))
        for _ in range(5):
            with unread_post(ann, path, json.dumps(BODIES[path]).encode()):
                pass
        until(lambda: not server.answering())
        ok(ann.post(path, json=BODIES[path]))
        until(lambda: not server.app.state.registry.bodies.counts["ann"])
