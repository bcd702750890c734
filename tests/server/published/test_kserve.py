"""The Open Inference Protocol: published functions for Triton's client as it is on PyPI, and for requests by hand."""

import json
import threading
from collections.abc import Iterator
from typing import Any

import httpx
import numpy as np
import pytest
from faces import run_client

from serving import KEYS, Server, ok

FUNCTION: dict[str, Any] = {
    "function": {"text": "product = x * y * scale; total = sum(x * x * y)"},
    "inputs": {"x": {"shape": [2, "n"]}, "y": {"shape": ["n"]}},
    "weights": {"scale": 0.5},
    "visibility": "everybody",
}
X = np.array([[0.5, 1.5, 2.5], [1.0, 0.25, -0.5]], np.float32)
Y = np.array([0.5, -1.0, 2.0], np.float32)
WEIGHT = np.array([[1.0, 0.5, -1.0], [0.0, 2.0, 1.0]], np.float32)
HEADER = "Inference-Header-Content-Length"


@pytest.fixture(scope="module")
def model(http: httpx.Client) -> Iterator[str]:
    """The path of a model."""
    ok(http.put("/v1/published/rotor", json=FUNCTION))
    yield "/v2/models/rotor"
    http.delete("/v1/published/rotor")


def tensor(name: str, array: Any, datatype: str = "FP32") -> dict[str, Any]:
    """An input with its elements in the JSON."""
    array = np.asarray(array)
    return {"name": name, "datatype": datatype, "shape": list(array.shape), "data": array.ravel().tolist()}


INPUTS = [tensor("x", X), tensor("y", Y)]


def infer(http: httpx.Client, model: str, *outputs: str, inputs: Any = INPUTS, **fields: Any) -> dict[str, Any]:
    """The chosen outputs, by name."""
    if outputs:
        fields["outputs"] = [{"name": name} for name in outputs]
    answer = ok(http.post(f"{model}/infer", json={"inputs": inputs, **fields})).json()
    return {item["name"]: np.reshape(item["data"], item["shape"]) for item in answer["outputs"]}


def refusal(http: httpx.Client, model: str, body: Any) -> tuple[int, str]:
    """Status and text of a refusal."""
    response = http.post(f"{model}/infer", json=body)
    return response.status_code, response.json()["error"]


def test_the_server_and_its_models_describe_themselves(http: httpx.Client, model: str) -> None:
    for path in ("/v2", "/v2/"):
        assert ok(http.get(path)).json()["extensions"] == ["binary_tensor_data"]
    metadata = ok(http.get(model)).json()
    version = ok(http.get("/v1/published/rotor")).json()["version"]["version"]
    assert (metadata["name"], metadata["versions"]) == ("rotor", [version, "latest"])
    assert metadata["inputs"] == [
        {"name": "x", "datatype": "FP32", "shape": [2, -1]},
        {"name": "y", "datatype": "FP32", "shape": [-1]},
    ]
    assert [item["name"] for item in metadata["outputs"]] == ["product", "total", "gradient:x", "gradient:y"]
    for path in (model, f"{model}/versions/{version}", f"{model}/versions/latest"):
        assert ok(http.get(f"{path}/ready")).json() == {"name": "rotor", "ready": True}


def test_outputs_are_those_of_the_function(http: httpx.Client, model: str) -> None:
    answer = infer(http, model)
    assert list(answer) == ["product", "total"]
    np.testing.assert_allclose(answer["product"], X * Y * 0.5, rtol=1e-6)
    np.testing.assert_allclose(answer["total"], (X * X * Y).sum(), rtol=1e-6)


def test_gradients_are_named_outputs(http: httpx.Client, model: str) -> None:
    answer = infer(http, model, "gradient:y", "total", "gradient:scale")
    assert list(answer) == ["gradient:y", "total", "gradient:scale"]
    np.testing.assert_allclose(answer["gradient:y"], (X * 0.5 + X * X).sum(0), rtol=1e-5)
    np.testing.assert_allclose(answer["gradient:scale"], (X * Y).sum(), rtol=1e-5)


def test_outputs_are_weighted_by_inputs(http: httpx.Client, model: str) -> None:
    answer = infer(http, model, "gradient:y", inputs=[*INPUTS, tensor("gradient:product", WEIGHT)])
    np.testing.assert_allclose(answer["gradient:y"], (WEIGHT * X * 0.5).sum(0), rtol=1e-5)
    weights = [tensor("gradient:product", WEIGHT), tensor("gradient:total", 2.0)]
    answer = infer(http, model, "gradient:y", inputs=[*INPUTS, *weights])
    np.testing.assert_allclose(answer["gradient:y"], (WEIGHT * X * 0.5 + 2 * X * X).sum(0), rtol=1e-5)


def test_tensors_are_bytes_after_the_json(http: httpx.Client, model: str) -> None:
    inputs = [
        {"name": "x", "datatype": "FP32", "shape": [2, 3], "parameters": {"binary_data_size": X.nbytes}},
        tensor("y", Y),
        {"name": "gradient:total", "datatype": "FP32", "shape": [], "parameters": {"binary_data_size": 4}},
    ]
    outputs = [{"name": "total"}, {"name": "gradient:x", "parameters": {"binary_data": True}}]
    head = json.dumps({"id": "7", "inputs": inputs, "outputs": outputs}).encode()
    body = head + X.tobytes() + np.float32(3.0).tobytes()
    response = ok(http.post(f"{model}/infer", content=body, headers={HEADER: str(len(head))}))
    length = int(response.headers[HEADER])
    answer = json.loads(response.content[:length])
    assert (answer["id"], answer["model_name"]) == ("7", "rotor")
    total, gradient = answer["outputs"]
    assert gradient["parameters"] == {"binary_data_size": X.nbytes}
    np.testing.assert_allclose(total["data"], [(X * X * Y).sum()], rtol=1e-6)
    elements = np.frombuffer(response.content[length:], np.float32).reshape(gradient["shape"])
    np.testing.assert_allclose(elements, 3 * 2 * X * Y, rtol=1e-6)


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ({"inputs": INPUTS[:1]}, "the input y is missing"),
        ({"inputs": [*INPUTS, tensor("z", Y)]}, "there is no input 'z'"),
        ({"inputs": INPUTS, "outputs": [{"name": "gradient:z"}]}, "there is no output 'gradient:z'"),
        ({"inputs": [INPUTS[0], tensor("y", Y, "FP64")]}, "y is FP32: float32[n]; found FP64"),
        ({"inputs": [INPUTS[0], tensor("y", Y[:2])]}, "n is 3 in another input"),
        ({"inputs": [INPUTS[0], {**tensor("y", Y), "shape": [4]}]}, "y has the shape [4], and its elements do not"),
        ({"inputs": [INPUTS[0], {**tensor("y", Y), "parameters": {"shared_memory_region": "r"}}]}, "shared_memory"),
        (
            {"inputs": [INPUTS[0], {**tensor("y", Y), "parameters": {"binary_data_size": 12}}]},
            "y has the shape [3], and its elements do not",
        ),
        (
            {"inputs": [*INPUTS, tensor("gradient:total", [1.0, 2.0])], "outputs": [{"name": "gradient:x"}]},
            "of its target",
        ),
    ],
)
def test_a_wrong_request_is_refused(http: httpx.Client, model: str, body: Any, text: str) -> None:
    status, error = refusal(http, model, body)
    assert status == 422
    assert text in error


@pytest.mark.parametrize("header", ["-1", "x", "1000000"])
def test_a_wrong_length_of_the_json_is_refused(http: httpx.Client, model: str, header: str) -> None:
    response = http.post(f"{model}/infer", json={"inputs": INPUTS}, headers={HEADER: header})
    assert (response.status_code, response.json()["code"]) == (422, "invalid_request")


def test_unknown_models_and_keys_are_refused(server: Server) -> None:
    with server.client("ann") as ann, server.client("bob") as bob, server.client(None) as stranger:
        ok(ann.put("/v1/published/rotor", json={**FUNCTION, "visibility": "me"}))
        response = bob.get("/v2/models/rotor")
        assert (response.status_code, response.json()["code"]) == (404, "unknown_id")
        assert ann.get("/v2/models/rotor/versions/stable").status_code == 404
        assert stranger.get("/v2/models/rotor").status_code == 401
        assert [stranger.get(f"/v2/health/{name}").status_code for name in ("live", "ready")] == [200, 200]


def test_requests_of_several_callers_are_computed_together(http: httpx.Client, model: str) -> None:
    """As all calls: those that wait while a process computes make one stack."""
    sizes: list[int] = []
    body = {"inputs": INPUTS, "outputs": [{"name": "total"}, {"name": "gradient:x"}]}

    def call() -> None:
        with httpx.Client(base_url=http.base_url, timeout=60, trust_env=False, verify=False) as client:
            answer = [ok(client.post(f"{model}/infer", json=body)).json() for _ in range(20)]
        sizes.extend(item["parameters"]["batch_size"] for item in answer)
        for item in answer:
            np.testing.assert_allclose(item["outputs"][1]["data"], (X * 0 + 2 * X * Y + Y * 0.5).ravel(), rtol=1e-5)

    threads = [threading.Thread(target=call) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(sizes) == 160
    assert max(sizes) > 1
    exact = ok(http.post(f"{model}/infer", json={**body, "parameters": {"exact": True}})).json()
    assert exact["parameters"]["batch_why"] == "exact"


def test_its_document_has_its_operations_alone(http: httpx.Client) -> None:
    document = ok(http.get("/v2/openapi.json")).json()
    assert document["servers"] == [{"url": "/v2"}]
    assert {"Infer", "InputTensor", "Inferred"} <= set(document["components"]["schemas"])
    assert "/models/{model}/infer" in document["paths"]
    assert all(not path.startswith("/v") for path in document["paths"])


CLIENT = """
import os
import numpy as np
import tritonclient.http as triton
client = triton.InferenceServerClient(os.environ["TELETAPE_URL"].removeprefix("http://"))
key = {"Authorization": "Bearer " + os.environ["TELETAPE_KEY"]}
print(client.is_server_live(), client.is_server_ready(), client.is_model_ready("rotor", headers=dict(key)))
print(client.get_server_metadata(headers=dict(key))["name"])
x = np.array([[0.5, 1.5, 2.5], [1.0, 0.25, -0.5]], np.float32)
y = np.array([0.5, -1.0, 2.0], np.float32)
for is_binary in (True, False):
    inputs = [triton.InferInput("x", [2, 3], "FP32"), triton.InferInput("y", [3], "FP32")]
    for tensor, array in zip(inputs, (x, y)):
        tensor.set_data_from_numpy(array, binary_data=is_binary)
    names = ["total", "gradient:x"]
    outputs = [triton.InferRequestedOutput(name, binary_data=is_binary) for name in names]
    result = client.infer("rotor", inputs, model_version="latest", outputs=outputs, headers=dict(key), request_id="a")
    np.testing.assert_allclose(result.as_numpy("gradient:x"), 2 * x * y + 0.5 * y, rtol=1e-5)
    np.testing.assert_allclose(client.infer("rotor", inputs, headers=dict(key)).as_numpy("product"), x * y * 0.5)
    print(result.get_response()["id"], result.as_numpy("total").shape)
try:
    client.infer("rotor", inputs[:1], headers=dict(key))
except triton.InferenceServerException as error:
    print(error.status(), error.message())
"""


@pytest.mark.clients
def test_its_client_sends_tensors_both_ways(server: Server) -> None:
    with server.client("ann") as ann:
        ok(ann.put("/v1/published/rotor", json=FUNCTION))
    assert run_client(CLIENT, server.url, TELETAPE_KEY=KEYS["bob"]).splitlines() == [
        "True True True",
        "teletape",
        *["a ()"] * 2,
        "422 the input y is missing",
    ]
