"""Tesseract: published functions for its clients as they are on PyPI, and for requests by hand."""

import base64
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
COTANGENT = np.array([[1.0, 0.5, -1.0], [0.0, 2.0, 1.0]], np.float32)


@pytest.fixture(scope="module")
def path(http: httpx.Client) -> Iterator[str]:
    """The path of a Tesseract."""
    ok(http.put("/v1/published/wing", json=FUNCTION))
    yield "/tesseract/wing"
    http.delete("/v1/published/wing")


def encoded(array: Any) -> dict[str, Any]:
    """An array as the client sends it."""
    array = np.asarray(array)
    data = {"buffer": base64.b64encode(array.tobytes()).decode(), "encoding": "base64"}
    return {"shape": list(array.shape), "dtype": array.dtype.name, "data": data}


def decoded(value: Any) -> Any:
    """An answer with arrays."""
    if "object_type" not in value:
        return {name: decoded(member) for name, member in value.items()}
    data = value["data"]
    if data["encoding"] == "json":
        return np.array(data["buffer"], value["dtype"]).reshape(value["shape"])
    return np.frombuffer(base64.b64decode(data["buffer"]), value["dtype"]).reshape(value["shape"])


def ask(http: httpx.Client, path: str, operation: str, x: Any = X, y: Any = Y, **fields: Any) -> Any:
    """The answer to a question."""
    body = {"inputs": {"x": encoded(x), "y": encoded(y)}, **fields}
    return decoded(ok(http.post(f"{path}/{operation}", json=body)).json())


def refusal(http: httpx.Client, path: str, operation: str, body: Any) -> tuple[int, str, str]:
    """Status, type and text of a refusal of a request that is wrong."""
    response = http.post(f"{path}/{operation}", json=body)
    [error] = response.json()["detail"]
    return response.status_code, error["type"], error["msg"]


def test_it_is_applied(http: httpx.Client, path: str) -> None:
    answer = ask(http, path, "apply")
    assert {name: array.dtype.name for name, array in answer.items()} == {"product": "float32", "total": "float32"}
    np.testing.assert_allclose(answer["product"], X * Y * 0.5, rtol=1e-6)
    np.testing.assert_allclose(answer["total"], (X * X * Y).sum(), rtol=1e-6)


def test_arrays_are_read_and_written_as_numbers_too(http: httpx.Client, path: str) -> None:
    x = {"shape": [2, 3], "dtype": "float64", "data": {"buffer": X.tolist(), "encoding": "json"}}
    body = {"inputs": {"x": x, "y": Y.tolist()}}
    response = ok(http.post(f"{path}/apply", json=body, headers={"Accept": "application/json"}))
    assert response.json()["product"]["data"]["encoding"] == "json"
    np.testing.assert_allclose(decoded(response.json())["product"], X * Y * 0.5, rtol=1e-6)
    response = http.post(f"{path}/apply", json=body, headers={"Accept": "application/json+binref"})
    assert (response.status_code, response.json()["code"]) == (406, "not_acceptable")


def test_derivatives_are_those_of_the_named_inputs_and_outputs(http: httpx.Client, path: str) -> None:
    fields = {"vjp_inputs": ["y"], "vjp_outputs": ["product"], "cotangent_vector": {"product": encoded(COTANGENT)}}
    answer = ask(http, path, "vector_jacobian_product", **fields)
    np.testing.assert_allclose(answer["y"], (COTANGENT * X * 0.5).sum(0), rtol=1e-6)
    fields = {
        "jvp_inputs": ["x", "y"],
        "jvp_outputs": ["total"],
        "tangent_vector": {"x": encoded(COTANGENT), "y": encoded(Y)},
    }
    answer = ask(http, path, "jacobian_vector_product", **fields)
    np.testing.assert_allclose(answer["total"], (2 * X * Y * COTANGENT).sum() + (X * X * Y).sum(), rtol=1e-5)
    answer = ask(http, path, "jacobian", jac_inputs=["x", "y"], jac_outputs=["total", "product"])
    assert {name: [*of.keys()] for name, of in answer.items()} == {"total": ["x", "y"], "product": ["x", "y"]}
    np.testing.assert_allclose(answer["total"]["x"], 2 * X * Y, rtol=1e-6)
    assert answer["product"]["y"].shape == (2, 3, 3)


def test_shapes_of_outputs_follow_from_those_of_inputs(http: httpx.Client, path: str) -> None:
    inputs = {"x": {"shape": [2, 7], "dtype": "float32"}, "y": {"shape": [7], "dtype": "float32"}}
    answer = ok(http.post(f"{path}/abstract_eval", json={"inputs": inputs})).json()
    assert answer == {"product": {"shape": [2, 7], "dtype": "float32"}, "total": {"shape": [], "dtype": "float32"}}
    inputs["x"]["shape"] = [5, 2, 7]
    answer = ok(http.post(f"{path}/abstract_eval", json={"inputs": inputs})).json()
    assert (answer["product"]["shape"], answer["total"]["shape"]) == ([5, 2, 7], [5])


@pytest.mark.parametrize("ys", [Y, Y[None], np.stack([Y, 2 * Y, 3 * Y, -Y])])
def test_one_axis_more_in_front_is_mapped_over(http: httpx.Client, path: str, ys: Any) -> None:
    xs = np.stack([X, X + 1, 2 * X, -X])
    all_ys = np.broadcast_to(ys, (4, 3))
    answer = ask(http, path, "apply", xs, ys)
    np.testing.assert_allclose(answer["total"], (xs * xs * all_ys[:, None]).sum((1, 2)), rtol=1e-5)
    fields = {"vjp_inputs": ["y"], "vjp_outputs": ["total"]}
    for weights in (np.float32(2.0), np.full(1, 2.0, np.float32), np.full(4, 2.0, np.float32)):
        answer = ask(
            http, path, "vector_jacobian_product", xs, ys, **fields, cotangent_vector={"total": encoded(weights)}
        )
        np.testing.assert_allclose(answer["y"], 2 * (xs * xs).sum(1), rtol=1e-5)


@pytest.mark.parametrize(
    ("operation", "body", "text"),
    [
        ("apply", {"inputs": {"x": encoded(X)}}, "inputs: y is missing"),
        ("apply", {"inputs": {"x": encoded(X), "y": encoded(Y), "z": encoded(Y)}}, "there is no 'z'"),
        ("apply", {"inputs": {"x": encoded(X), "y": encoded(Y[:2])}}, "n is 3 in another input"),
        ("apply", {"inputs": {"x": encoded(X), "y": encoded(Y.astype(complex))}}, "found complex128"),
        ("apply", {"inputs": {"x": encoded(X), "y": {**encoded(Y), "shape": [4]}}}, "no such array"),
        ("apply", {"inputs": {"x": encoded(X), "y": {**encoded(Y), "data": {"encoding": "binref"}}}}, "send base64"),
        ("jacobian", {"inputs": {}, "jac_inputs": ["x"], "jac_outputs": []}, "jac_outputs"),
        (
            "jacobian",
            {"inputs": {"x": encoded(X), "y": encoded(Y)}, "jac_inputs": ["w"], "jac_outputs": ["total"]},
            "'w' is not differentiable; x, y is",
        ),
    ],
)
def test_a_wrong_request_is_refused_as_its_client_reads_it(
    http: httpx.Client, path: str, operation: str, body: Any, text: str
) -> None:
    status, kind, message = refusal(http, path, operation, body)
    assert (status, kind) == (422, "invalid_request")
    assert text in message


def test_each_has_a_document_of_its_own(http: httpx.Client, path: str) -> None:
    document = ok(http.get(f"{path}/openapi.json")).json()
    assert document["servers"] == [{"url": path}]
    assert list(document["components"]["schemas"]["Apply_InputSchema"]["properties"]) == ["x", "y"]
    assert document["components"]["schemas"]["ApplyInputSchema"]["differentiable_arrays"] == {
        "x": {"dtype": "float32", "shape": [2, None]},
        "y": {"dtype": "float32", "shape": [None]},
    }
    assert {f"/{name}" for name in ("apply", "abstract_eval", "health", "jacobian")} <= set(document["paths"])
    assert ok(http.get(f"{path}/health")).json() == {"status": "ok"}
    ok(http.put("/v1/published/wing/aliases/stable", json={"version": "latest"}))
    assert ok(http.get(f"{path}@stable/openapi.json")).json()["info"] == document["info"]


def test_unknown_functions_and_keys_are_refused(server: Server) -> None:
    with server.client("ann") as ann, server.client("bob") as bob:
        ok(ann.put("/v1/published/wing", json={**FUNCTION, "visibility": "me"}))
        assert bob.get("/tesseract/wing/health").status_code == 404
        response = bob.get("/tesseract/wing/openapi.json")
        assert (response.status_code, response.json()["code"]) == (404, "unknown_id")
    with server.client(None) as stranger:
        assert stranger.get("/tesseract/wing/health").status_code == 401


def test_a_function_with_a_dtype_that_the_protocol_has_not_is_none(http: httpx.Client) -> None:
    half = {"function": {"text": "y = x * x"}, "inputs": {"x": {"shape": [2], "dtype": "bfloat16"}}}
    ok(http.put("/v1/published/half", json=half))
    assert http.get("/tesseract/half/health").status_code == 404
    http.delete("/v1/published/half")


JAX = """
import os
import jax, jax.numpy as jnp, numpy as np
from jax.test_util import check_grads
from tesseract_core import Tesseract
from tesseract_jax import apply_tesseract
wing = Tesseract.from_url(os.environ["TELETAPE_URL"])
print(wing.health())
x, y = jnp.array([[0.5, 1.5, 2.5], [1.0, 0.25, -0.5]]), jnp.array([0.5, -1.0, 2.0])

def loss(x, y, method="broadcast_all"):
    answer = apply_tesseract(wing, {"x": x, "y": y}, vmap_method=method)
    return jnp.sum(answer["product"] ** 2) + answer["total"]

def own(x, y):
    return jnp.sum((x * y * 0.5) ** 2) + jnp.sum(x * x * y)

check_grads(loss, (x, y), order=1, modes=["fwd", "rev"], atol=1e-2, rtol=1e-2)
for derivative in (jax.grad, jax.jacfwd, jax.jacrev):
    for number in (0, 1):
        np.testing.assert_allclose(derivative(loss, number)(x, y), derivative(own, number)(x, y), rtol=1e-5)
np.testing.assert_allclose(jax.jit(jax.grad(loss))(x, y), jax.grad(own)(x, y), rtol=1e-5)
xs = jnp.stack([x, 2 * x, 3 * x])
for method in ("sequential", "expand_dims", "broadcast_all"):
    mapped = jax.vmap(jax.value_and_grad(lambda x, y: loss(x, y, method), (0, 1)), (0, None))
    expected = jax.vmap(jax.value_and_grad(own, (0, 1)), (0, None))
    for one, other in zip(jax.tree.leaves(mapped(xs, y)), jax.tree.leaves(expected(xs, y))):
        np.testing.assert_allclose(one, other, rtol=1e-4)
try:
    wing.apply({"x": np.zeros((2, 3), "float32"), "y": np.zeros(4, "float32")})
except Exception as error:
    print(type(error).__name__, "n is 3 in another input" in str(error))
"""


@pytest.mark.long
@pytest.mark.clients
def test_jax_differentiates_and_maps_it(server: Server) -> None:
    with server.client("ann") as ann:
        ok(ann.put("/v1/published/wing", json=FUNCTION))
    url = server.url.replace("://", f"://any:{KEYS['bob']}@") + "/tesseract/wing"
    assert run_client(JAX, url).splitlines() == ["{'status': 'ok'}", "ValidationError True"]


ONE_REQUEST = """
import os
import jax, jax.numpy as jnp
from tesseract_core import Tesseract
from tesseract_jax import apply_tesseract
wing = Tesseract.from_url(os.environ["TELETAPE_URL"])
total = lambda x: apply_tesseract(wing, {"x": x, "y": jnp.ones(3)}, vmap_method="broadcast_all")["total"]
print(jax.vmap(total)(jnp.ones((50, 2, 3)))[:2])
"""


@pytest.mark.clients
def test_a_map_of_jax_is_one_call(server: Server) -> None:
    with server.client("ann") as ann:
        ok(ann.put("/v1/published/wing", json=FUNCTION))
        url = server.url.replace("://", f"://any:{KEYS['ann']}@") + "/tesseract/wing"
        assert run_client(ONE_REQUEST, url).splitlines() == ["[6. 6.]"]
        assert server.app.state.pool.counts["wing"].calls == {"call": 1}


@pytest.mark.filterwarnings("ignore:`torch.jit:DeprecationWarning")  # PyTorch's own
def test_pytorch_differentiates_it(server: Server) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed (make adapters)")
    tesseracts = pytest.importorskip("tesseract_torch", reason="tesseract-torch is not installed (make adapters)")
    core = pytest.importorskip("tesseract_core", reason="tesseract-core is not installed (make adapters)")
    doubles = {name: {**declared, "dtype": "float64"} for name, declared in FUNCTION["inputs"].items()}
    with server.client("ann") as ann:
        ok(
            ann.put(
                "/v1/published/wing",
                json={"function": {"text": "product = x * y; total = sum(x * x * y)"}, "inputs": doubles},
            )
        )
    wing = core.Tesseract.from_url(server.url.replace("://", f"://any:{KEYS['ann']}@") + "/tesseract/wing")
    x, y = (torch.tensor(array, dtype=torch.float64, requires_grad=True) for array in (X, Y))

    def answer(x: Any, y: Any) -> Any:
        return tuple(tesseracts.apply_tesseract(wing, {"x": x, "y": y}).values())

    product, total = answer(x, y)
    (product.sum() + total).backward()
    np.testing.assert_allclose(x.grad, Y + 2 * X * Y, rtol=1e-6)
    np.testing.assert_allclose(y.grad, (X + X * X).sum(0), rtol=1e-6)
    assert torch.autograd.gradcheck(answer, (x, y), check_forward_ad=True)
