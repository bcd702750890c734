"""UM-Bridge: published functions are models, for its client as it is on PyPI and for requests by hand."""

import math
from collections.abc import Iterator
from typing import Any

import httpx
import numpy as np
import pytest
from faces import run_client

from serving import KEYS, Server, ok

#: A function of two inputs and two outputs, of which one is a matrix.
PAIR: dict[str, Any] = {
    "function": {"text": "product = x * y; total = sum(x * x * y) * scale"},
    "inputs": {"x": {"shape": [2, "n"], "dtype": "float64"}, "y": {"shape": ["n"], "dtype": "float64"}},
    "weights": {"scale": {"dtype": "float64", "shape": [], "data": 0.5}},
    "visibility": "everybody",
}
X, Y = np.array([[0.5, 1.5, 2.5], [1.0, 0.25, -0.5]]), np.array([0.5, -1.0, 2.0])
INPUT = [X.ravel().tolist(), Y.tolist()]
VECTOR = np.array([[1.0, 0.5, -1.0], [0.0, 2.0, 1.0]])


@pytest.fixture(scope="module")
def pair(http: httpx.Client) -> Iterator[str]:
    """The name of a published function."""
    ok(http.put("/v1/published/pair", json=PAIR))
    yield "pair"
    http.delete("/v1/published/pair")


def ask(http: httpx.Client, operation: str, **fields: Any) -> Any:
    """The answer's only member."""
    [value] = ok(http.post(f"/umbridge/{operation}", json=fields)).json().values()
    return value


def refused(http: httpx.Client, operation: str, **fields: Any) -> tuple[int, str, str]:
    """Status, type and message of a refusal."""
    response = http.post(f"/umbridge/{operation}", json=fields)
    error = response.json()["error"]
    return response.status_code, error["type"], error["message"]


def test_a_function_is_a_model_under_its_name_and_those_of_its_versions(http: httpx.Client, pair: str) -> None:
    version = ok(http.get(f"/v1/published/{pair}")).json()["version"]["version"]
    ok(http.put(f"/v1/published/{pair}/aliases/stable", json={"version": "latest"}))
    info = ok(http.get("/umbridge/Info")).json()
    assert info["protocolVersion"] == 1.0
    assert {pair, f"{pair}@stable", f"{pair}@{version}"} <= set(info["models"])
    assert ask(http, "ModelInfo", name=f"{pair}@stable") == dict.fromkeys(
        ("Evaluate", "Gradient", "ApplyJacobian", "ApplyHessian"), True
    )


def test_a_function_with_integers_is_no_model(http: httpx.Client) -> None:
    rows = {"function": {"text": "y = x * 2"}, "inputs": {"x": {"shape": [2], "dtype": "int32"}}}
    ok(http.put("/v1/published/integers", json=rows))
    assert "integers" not in ok(http.get("/umbridge/Info")).json()["models"]
    assert refused(http, "Evaluate", name="integers", input=[[1, 2]])[:2] == (400, "ModelNotFound")
    http.delete("/v1/published/integers")


def test_a_model_without_a_derivative_is_evaluated_alone(http: httpx.Client) -> None:
    function = {"inputs": ["x"], "steps": [{"op": "adjust_contrast", "inputs": ["x", 2.0], "outputs": ["y"]}]}
    picture = {"x": [[[0.5], [1.5]]]}
    body = {"function": {**function, "outputs": ["y"]}, "inputs": {"x": {"shape": [1, 2, 1]}}}
    ok(http.put("/v1/published/contrast", json={**body, "examples": [{"inputs": picture}]}))
    support = ask(http, "ModelInfo", name="contrast")
    assert (support["Evaluate"], support["Gradient"], support["ApplyJacobian"]) == (True, False, False)
    assert ask(http, "Evaluate", name="contrast", input=[[0.5, 1.5]]) == [[0.0, 2.0]]
    assert refused(http, "Gradient", name="contrast", input=[[0.5, 1.5]], outWrt=0, inWrt=0, sens=[1, 1])[:2] == (
        400,
        "UnsupportedFeature",
    )
    http.delete("/v1/published/contrast")


def test_an_infinity_is_written_as_python_reads_it(http: httpx.Client) -> None:
    ok(http.put("/v1/published/log", json={"function": {"text": "y = log(x)"}, "inputs": {"x": {"shape": [2]}}}))
    assert ask(http, "Evaluate", name="log", input=[[0.0, 1.0]]) == [[-math.inf, 0.0]]
    http.delete("/v1/published/log")


def test_sizes_follow_from_the_lengths_of_named_axes(http: httpx.Client, pair: str) -> None:
    assert ask(http, "InputSizes", name=pair, config={"n": 3}) == [6, 3]
    assert ask(http, "OutputSizes", name=pair, config={"n": 3}) == [6, 1]
    status, kind, message = refused(http, "InputSizes", name=pair)
    assert (status, kind) == (400, "InvalidInput")
    assert 'config={"n": 100}' in message


def test_inputs_and_outputs_are_flat_lists(http: httpx.Client, pair: str) -> None:
    product, total = ask(http, "Evaluate", name=pair, input=INPUT)
    np.testing.assert_allclose(product, (X * Y).ravel())
    np.testing.assert_allclose(total, [0.5 * (X * X * Y).sum()])


def test_a_gradient_is_that_of_a_weighted_output(http: httpx.Client, pair: str) -> None:
    gradient = ask(http, "Gradient", name=pair, input=INPUT, outWrt=0, inWrt=1, sens=VECTOR.ravel().tolist())
    np.testing.assert_allclose(gradient, (VECTOR * X).sum(0))
    gradient = ask(http, "Gradient", name=pair, input=INPUT, outWrt=1, inWrt=0, sens=[2.0])
    np.testing.assert_allclose(gradient, (2 * X * Y).ravel())


def test_a_jacobian_is_applied_to_a_vector(http: httpx.Client, pair: str) -> None:
    product = ask(http, "ApplyJacobian", name=pair, input=INPUT, outWrt=0, inWrt=0, vec=VECTOR.ravel().tolist())
    np.testing.assert_allclose(product, (VECTOR * Y).ravel())


@pytest.mark.parametrize("sens", [1.0, -2.0])
def test_a_hessian_is_applied_to_a_vector(http: httpx.Client, pair: str, sens: float) -> None:
    fields = {"name": pair, "input": INPUT, "outWrt": 1, "sens": [sens]}
    same = ask(http, "ApplyHessian", **fields, inWrt1=0, inWrt2=0, vec=VECTOR.ravel().tolist())
    np.testing.assert_allclose(same, sens * (VECTOR * Y).ravel())
    mixed = ask(http, "ApplyHessian", **fields, inWrt1=0, inWrt2=1, vec=[1.0, 2.0, 3.0])
    np.testing.assert_allclose(mixed, sens * (X * [1.0, 2.0, 3.0]).ravel())


def test_the_weights_of_a_hessian_may_differ(http: httpx.Client, pair: str) -> None:
    fields = {"name": pair, "input": INPUT, "outWrt": 0, "sens": VECTOR.ravel().tolist()}
    mixed = ask(http, "ApplyHessian", **fields, inWrt1=0, inWrt2=1, vec=[1.0, 2.0, 3.0])
    np.testing.assert_allclose(mixed, (VECTOR * [1.0, 2.0, 3.0]).ravel())
    assert ask(http, "ApplyHessian", **fields, inWrt1=0, inWrt2=0, vec=[1.0] * 6) == [0.0] * 6


@pytest.mark.parametrize(
    ("operation", "fields", "kind", "text"),
    [
        ("Evaluate", {"input": [[1.0]]}, "InvalidInput", "input has 1 lists"),
        ("Evaluate", {"input": [[1.0], [1.0]]}, "InvalidInput", "input[0] has 1 numbers"),
        ("Evaluate", {"input": INPUT, "config": {"m": 3}}, "InvalidInput", "config.m is no named axis"),
        ("Evaluate", {}, "InvalidInput", "input: is missing"),
        ("Evaluate", {"name": "piar", "input": INPUT}, "ModelNotFound", "did you mean 'pair'?"),
        ("Gradient", {"input": INPUT, "outWrt": 2, "inWrt": 0, "sens": [1.0]}, "InvalidInput", "outWrt is 2"),
        ("Gradient", {"input": INPUT, "outWrt": 1, "inWrt": 0, "sens": [1.0, 2.0]}, "InvalidInput", "sens has 2"),
        (
            "ApplyHessian",
            {"input": INPUT, "outWrt": 0, "inWrt1": 0, "inWrt2": 0, "sens": [1.0], "vec": [1.0] * 6},
            "InvalidInput",
            "sens has 1 numbers",
        ),
    ],
)
def test_a_refusal_has_the_protocols_form(
    http: httpx.Client, pair: str, operation: str, fields: dict[str, Any], kind: str, text: str
) -> None:
    status, answered, message = refused(http, operation, **{"name": pair, **fields})
    assert (status, answered) == (400, kind)
    assert text in message


def test_other_problems_keep_their_status_and_code(http: httpx.Client, server: Server) -> None:
    assert http.get("/umbridge/Evaluate").status_code == 405
    response = http.post("/umbridge/Evaluat", json={})
    assert (response.status_code, response.json()["error"]["type"]) == (404, "not_found")
    assert "/Evaluate" in response.json()["error"]["message"]
    with server.client(None) as stranger:
        response = stranger.get("/umbridge/Info")
    assert (response.status_code, response.json()["error"]["type"]) == (401, "unauthenticated")
    assert "WWW-Authenticate" in response.headers


def test_its_document_has_its_operations_alone(http: httpx.Client) -> None:
    document = ok(http.get("/umbridge/openapi.json")).json()
    assert document["servers"] == [{"url": "/umbridge"}]
    assert "/Evaluate" in document["paths"]
    assert all(not path.startswith("/v1") for path in document["paths"])
    assert "umbridge" not in str(ok(http.get("/openapi.json")).json()["paths"].keys())


def test_a_key_sees_what_is_for_it(server: Server) -> None:
    with server.client("ann") as ann, server.client("bob") as bob:
        ok(ann.put("/v1/published/mine", json={**PAIR, "visibility": "me"}))
        assert ok(bob.get("/umbridge/Info")).json()["models"] == []
        assert refused(bob, "Evaluate", name="mine", input=INPUT)[1] == "ModelNotFound"
    # A URL's own way to carry a key, for clients that send no headers: the password of Basic authentication.
    for key, status in ((KEYS["ann"], 200), ("wrong", 401)):
        response = httpx.get(f"{server.url}/umbridge/Info", auth=("any", key), trust_env=False)
        assert response.status_code == status


CLIENT = """
import os
import umbridge
url = os.environ["TELETAPE_URL"]
model = umbridge.HTTPModel(url, "pair")
config = {"n": 3}
print(model.get_input_sizes(config), model.get_output_sizes(config))
print(model.supports_gradient(), model.supports_apply_hessian())
x, y = [0.5, 1.5, 2.5, 1.0, 0.25, -0.5], [0.5, -1.0, 2.0]
print(model([x, y])[1])
print(model.gradient(1, 0, [x, y], [1.0]))
try:
    model([x])
except Exception as error:
    print(error)
"""


@pytest.mark.clients
def test_its_client_sends_a_key_in_the_url(server: Server) -> None:
    with server.client("ann") as ann:
        ok(ann.put("/v1/published/pair", json=PAIR))
    url = server.url.replace("://", f"://any:{KEYS['bob']}@") + "/umbridge"
    lines = run_client(CLIENT, url).splitlines()
    assert lines[:2] == ["[6, 3] [6, 1]", "True True"]
    assert math.isclose(float(lines[2].strip("[]")), 0.5 * (X * X * Y).sum())
    np.testing.assert_allclose([float(number) for number in lines[3].strip("[]").split(",")], (X * Y).ravel())
    assert lines[4].startswith("Model returned error of type InvalidInput: input has 1 lists")


SAMPLER = """
import os
import emcee
import numpy as np
from umbridge.emcee import UmbridgeLogProb
density = UmbridgeLogProb(os.environ["TELETAPE_URL"] + "/umbridge", "normal")
own = lambda x: np.asarray([-0.5 * np.sum(((x - [1.0, -2.0]) / [0.5, 2.0]) ** 2)])
chains = []
for function in (density, own):
    sampler = emcee.EnsembleSampler(8, density.ndim, function)
    start = np.random.default_rng(0).normal(size=(8, density.ndim))
    sampler.run_mcmc(start, 40, rstate0=np.random.RandomState(0).get_state())
    chains.append(sampler.get_chain())
np.testing.assert_allclose(*chains, rtol=1e-9)
print(chains[0].shape, len(np.unique(chains[0][:, :, 0])) > 100)
"""


@pytest.mark.long
@pytest.mark.clients
def test_a_sampler_draws_the_chain_of_a_density_in_its_own_process(http: httpx.Client, server_url: str) -> None:
    weights = {"center": [1.0, -2.0], "width": [0.5, 2.0]}
    body = {
        "function": {"text": "density = -0.5 * sum(((x - center) / width)**2)"},
        "inputs": {"x": {"shape": [2], "dtype": "float64"}},
        "weights": {name: {"dtype": "float64", "shape": [2], "data": data} for name, data in weights.items()},
    }
    ok(http.put("/v1/published/normal", json=body))
    assert run_client(SAMPLER, server_url).splitlines() == ["(40, 8, 2) True"]
    http.delete("/v1/published/normal")
