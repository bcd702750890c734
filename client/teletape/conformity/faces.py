"""The protocols of other projects, as their clients speak them: UM-Bridge, Tesseract, Open Inference.

A server that does not offer one answers its first request with 404, and its checks are left out.
"""

from __future__ import annotations

import base64
import json
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import numpy as np

from teletape.conformity.checks import Check, Deviation, NotOffered, Server, check, expect

_FUNCTION = {
    "function": {"text": "product = x * y * scale; total = sum(x * x * y)"},
    "inputs": {"x": {"shape": [2]}, "y": {"shape": [2]}},
    "weights": {"scale": 0.5},
}
_X, _Y = np.array([0.5, 1.5], np.float32), np.array([2.0, -1.0], np.float32)
_LENGTH = "Inference-Header-Content-Length"


@contextmanager
def _published(server: Server, offered: str) -> Iterator[str]:
    """Publishes the function for a block; yields its name.

    Raises:
        NotOffered: The server does not have the path `offered`, in which {} is the name, or no published functions.
    """
    name = f"conformity-{uuid.uuid4().hex[:12]}"
    if server.http.put(f"/v1/published/{name}", json=_FUNCTION).status_code == 404:
        raise NotOffered("/v1/published")
    try:
        if server.http.get(offered.format(name)).status_code == 404:
            raise NotOffered(offered)
        yield name
    finally:
        server.http.delete(f"/v1/published/{name}")


def _of(protocol: str, offered: str, text: str) -> Callable[[Callable[[Server, str], None]], Check]:
    """Registers a check of a protocol, which gets the name of a published function."""

    def register(function: Callable[[Server, str], None]) -> Check:
        def run(server: Server) -> None:
            with _published(server, offered) as name:
                function(server, name)

        return check(f"{protocol}: {text}")(run)

    return register


def _answer(answer: httpx.Response, status: int = 200) -> Any:
    if answer.status_code != status:
        request = answer.request
        text = f"expected {status}, got {answer.status_code} {answer.text:.300}"
        raise Deviation(f"{request.method} {request.url.path}: {text}")
    return answer.json()


def _expect_array(array: Any, expected: Any, subject: str) -> None:
    array, expected = np.asarray(array), np.asarray(expected)
    expect(list(array.shape), list(expected.shape), f"the shape of {subject}")
    if not np.allclose(array, expected, rtol=1e-5, atol=1e-6):
        raise Deviation(f"{subject}: expected {expected.tolist()}, got {array.tolist()}")


# ----------------------------------------------------------------------------------------------------------- UM-Bridge
_UM_BRIDGE = "UM-Bridge", "/umbridge/Info"


def _model(server: Server, operation: str, name: str, status: int = 200, **fields: Any) -> Any:
    """Asks a model, as umbridge.HTTPModel does."""
    answer = _answer(server.http.post(f"/umbridge/{operation}", json={"name": name, **fields}), status)
    return answer.get("output", answer)


def _point() -> dict[str, Any]:
    return {"input": [_X.tolist(), _Y.tolist()], "config": {}}


@_of(*_UM_BRIDGE, "a published function is a model, with its sizes and what it supports")
def _um_bridge_models(server: Server, name: str) -> None:
    info = _answer(server.http.get("/umbridge/Info"))
    expect(info["protocolVersion"], 1.0, "the protocol's version")
    expect(name in info["models"], True, "the function is a model")
    expect(_model(server, "InputSizes", name, config={})["inputSizes"], [2, 2], "the sizes of inputs")
    expect(_model(server, "OutputSizes", name, config={})["outputSizes"], [2, 1], "the sizes of outputs")
    support = _model(server, "ModelInfo", name)["support"]
    expect({*support.values()}, {True}, f"what it supports, {support}")


@_of(*_UM_BRIDGE, "a model is evaluated")
def _um_bridge_evaluate(server: Server, name: str) -> None:
    product, total = _model(server, "Evaluate", name, **_point())
    _expect_array(product, _X * _Y * 0.5, "the first output")
    _expect_array(total, [np.sum(_X * _X * _Y)], "the second output")


@_of(*_UM_BRIDGE, "gradients, and products with Jacobians and Hessians, are weighted")
def _um_bridge_derivatives(server: Server, name: str) -> None:
    sens, vec = [3.0, -2.0], [1.0, 0.5]
    gradient = _model(server, "Gradient", name, outWrt=0, inWrt=1, sens=sens, **_point())
    _expect_array(gradient, np.array(sens) * _X * 0.5, "the gradient")
    product = _model(server, "ApplyJacobian", name, outWrt=1, inWrt=0, vec=vec, **_point())
    _expect_array(product, [np.sum(2 * _X * _Y * vec)], "the Jacobian times a vector")
    product = _model(server, "ApplyHessian", name, outWrt=0, inWrt1=0, inWrt2=1, sens=sens, vec=vec, **_point())
    _expect_array(product, np.array(sens) * vec * 0.5, "the Hessian times a vector")


@_of(*_UM_BRIDGE, "a refusal has the protocol's form")
def _um_bridge_refusals(server: Server, name: str) -> None:
    for fields, kind in (({"name": "no-such-model"}, "ModelNotFound"), ({"input": [[1.0]]}, "InvalidInput")):
        error = _model(server, "Evaluate", **{"name": name, **_point(), **fields}, status=400)["error"]
        expect(error["type"], kind, "the type of the problem")


# ----------------------------------------------------------------------------------------------------------- Tesseract
_TESSERACT = "Tesseract", "/tesseract/{}/openapi.json"


def _encoded(array: Any) -> dict[str, Any]:
    """Returns an array as Tesseract's client sends it."""
    array = np.asarray(array)
    data = {"buffer": base64.b64encode(array.tobytes()).decode(), "encoding": "base64"}
    return {"object_type": "array", "shape": list(array.shape), "dtype": array.dtype.name, "data": data}


def _decoded(value: Any) -> Any:
    data = base64.b64decode(value["data"]["buffer"])
    return np.frombuffer(data, value["dtype"]).reshape(value["shape"])


def _component(server: Server, name: str, operation: str, x: Any = _X, **fields: Any) -> Any:
    body = {"inputs": {"x": _encoded(x), "y": _encoded(_Y)}, **fields}
    return _answer(server.http.post(f"/tesseract/{name}/{operation}", json=body))


@_of(*_TESSERACT, "a published function is applied, and a stack of inputs is mapped over")
def _tesseract_apply(server: Server, name: str) -> None:
    answer = _component(server, name, "apply")
    _expect_array(_decoded(answer["product"]), _X * _Y * 0.5, "the product")
    stacked = _component(server, name, "apply", np.stack([_X, 2 * _X, -_X]))
    _expect_array(_decoded(stacked["total"]), np.array([1, 4, 1]) * np.sum(_X * _X * _Y), "a total for each row")


@_of(*_TESSERACT, "Jacobians, and products with them on both sides")
def _tesseract_derivatives(server: Server, name: str) -> None:
    answer = _component(server, name, "jacobian", jac_inputs=["x"], jac_outputs=["product"])
    _expect_array(_decoded(answer["product"]["x"]), np.diag(_Y * 0.5), "the Jacobian")
    fields = {"vjp_inputs": ["y"], "vjp_outputs": ["product"], "cotangent_vector": {"product": _encoded(_X)}}
    answer = _component(server, name, "vector_jacobian_product", **fields)
    _expect_array(_decoded(answer["y"]), _X * _X * 0.5, "a cotangent times the Jacobian")
    fields = {"jvp_inputs": ["x"], "jvp_outputs": ["total"], "tangent_vector": {"x": _encoded(_Y)}}
    answer = _component(server, name, "jacobian_vector_product", **fields)
    _expect_array(_decoded(answer["total"]), np.sum(2 * _X * _Y * _Y), "the Jacobian times a tangent")


@_of(*_TESSERACT, "shapes follow without values, and the document names the operations")
def _tesseract_shapes(server: Server, name: str) -> None:
    inputs = {of: {"shape": [2], "dtype": "float32"} for of in ("x", "y")}
    answer = _answer(server.http.post(f"/tesseract/{name}/abstract_eval", json={"inputs": inputs}))
    expect(answer["total"], {"shape": [], "dtype": "float32"}, "the output's shape and dtype")
    document = _answer(server.http.get(f"/tesseract/{name}/openapi.json"))
    for path in ("/apply", "/jacobian", "/vector_jacobian_product"):
        expect(path in document["paths"], True, f"{path} is in the document")
    expect(server.http.get(f"/tesseract/{name}/health").status_code, 200, "health")


# ------------------------------------------------------------------------------------------------------ Open Inference
_OPEN_INFERENCE = "Open Inference", "/v2"


def _tensor(name: str, array: Any) -> dict[str, Any]:
    array = np.asarray(array)
    return {"name": name, "datatype": "FP32", "shape": list(array.shape), "data": array.ravel().tolist()}


@_of(*_OPEN_INFERENCE, "a published function is a model that says when it is ready")
def _open_inference_models(server: Server, name: str) -> None:
    expect(server.http.get("/v2/health/live").status_code, 200, "live")
    expect(_answer(server.http.get(f"/v2/models/{name}/ready"))["ready"], True, "ready")
    metadata = _answer(server.http.get(f"/v2/models/{name}"))
    expect([item["name"] for item in metadata["inputs"]], ["x", "y"], "the inputs")
    outputs = {item["name"] for item in metadata["outputs"]}
    expect({"product", "total", "gradient:x"} <= outputs, True, f"outputs and gradients are in {sorted(outputs)}")


@_of(*_OPEN_INFERENCE, "a request has values, and gradients as named outputs")
def _open_inference_numbers(server: Server, name: str) -> None:
    body = {"inputs": [_tensor("x", _X), _tensor("y", _Y)], "outputs": [{"name": "total"}, {"name": "gradient:y"}]}
    answer = _answer(server.http.post(f"/v2/models/{name}/infer", json=body))
    total, gradient = [np.reshape(item["data"], item["shape"]) for item in answer["outputs"]]
    _expect_array(total, np.sum(_X * _X * _Y), "the total")
    _expect_array(gradient, _X * 0.5 + _X * _X, "the gradient of all outputs")


@_of(*_OPEN_INFERENCE, "tensors are bytes after the JSON")
def _open_inference_bytes(server: Server, name: str) -> None:
    inputs = [
        {"name": of, "datatype": "FP32", "shape": [2], "parameters": {"binary_data_size": array.nbytes}}
        for of, array in (("x", _X), ("y", _Y))
    ]
    outputs = [{"name": "gradient:x", "parameters": {"binary_data": True}}]
    head = json.dumps({"inputs": inputs, "outputs": outputs}).encode()
    content = head + _X.tobytes() + _Y.tobytes()
    answer = server.http.post(f"/v2/models/{name}/infer", content=content, headers={_LENGTH: str(len(head))})
    if answer.status_code != 200 or _LENGTH not in answer.headers:
        raise Deviation(f"infer: expected 200 and {_LENGTH}, got {answer.status_code} {answer.text:.300}")
    elements = np.frombuffer(answer.content[int(answer.headers[_LENGTH]) :], np.float32)
    _expect_array(elements, _Y * 0.5 + 2 * _X * _Y, "the gradient")


@_of(*_OPEN_INFERENCE, "a refusal says what is wrong")
def _open_inference_refusals(server: Server, name: str) -> None:
    answer = _answer(server.http.post(f"/v2/models/{name}/infer", json={"inputs": [_tensor("x", _X)]}), 422)
    expect("y" in answer["error"], True, f"the missing input is named in {answer['error']!r}")
