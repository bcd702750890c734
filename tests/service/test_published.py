"""Published functions from the client for services, for threads and for event loops."""

import asyncio

import numpy as np
import pytest

from teletape_client import AsyncClient, Client, NotFoundError

TEXT = "y = sum(tanh(x @ w) ** 2)"
W = np.array([[0.5, -0.5], [1.5, 0.25]], np.float32)
X = np.array([[0.5, 1.5]], np.float32)


def expected(x: np.ndarray) -> tuple[float, np.ndarray]:
    """The value, and the gradient by x."""
    h = np.tanh(x @ W)
    return float(np.sum(h**2)), (2 * h * (1 - h**2)) @ W.T


def test_a_function_is_published_called_named_and_deleted(server_url: str) -> None:
    with Client(server_url) as client:
        network = client.published["client-network"]
        facts = network.publish({"text": TEXT}, {"x": {"shape": ["n", 2]}}, weights={"w": W}, description="a network")
        assert facts.version is not None
        assert [(item.name, item.shape) for item in facts.version.inputs] == [("x", ["n", 2])]
        value, gradient = expected(X)
        answer = network.value_and_gradient(x=X)
        assert answer.values["y"] == pytest.approx(value)
        np.testing.assert_allclose(answer["x"], gradient, rtol=1e-5)
        assert (answer.batch.size, answer.batch.why) == (1, "alone")
        assert network.call(x=X, exact=True).batch.why == "exact"
        np.testing.assert_allclose(network.gradient(x=X, wrt=["w"])["w"].shape, W.shape)
        clipped = network.gradient(x=np.vstack([X, X]), wrt="w", per_example={"axis": 0, "clip": 1e-3})
        assert (clipped.per_example.size, clipped.per_example.clipped) == (2, 2)
        np.testing.assert_allclose(np.linalg.norm(clipped["w"]), 2e-3, rtol=1e-5)
        assert np.count_nonzero(network.gradient(x=X, wrt="w", part={"top": 1})["w"]) == 1
        np.testing.assert_allclose(network.gradient(x=X, numeric=True)["x"], gradient, rtol=1e-2)
        assert network.ready().version == facts.version.version
        network.alias("stable", "latest")
        assert client.published["client-network@stable"].call(x=X).values["y"] == pytest.approx(value)
        assert "client-network" in [item.name for item in client.published.list().published]
        network.delete()
        with pytest.raises(NotFoundError, match="no function is published"):
            network.call(x=X)


def test_tasks_call_one_function(server_url: str) -> None:
    async def run() -> list[float]:
        async with AsyncClient(server_url) as client:
            network = client.published["client-tasks"]
            await network.publish({"text": TEXT}, {"x": {"shape": [1, 2]}}, weights={"w": W})
            answers = await asyncio.gather(*(network.value_and_gradient(x=X * number) for number in range(8)))
            for number, answer in enumerate(answers):
                np.testing.assert_allclose(answer["x"], expected(X * number)[1], rtol=1e-4, atol=1e-6)
            await network.delete()
            return [float(answer.values["y"]) for answer in answers]

    assert asyncio.run(run()) == pytest.approx([expected(X * number)[0] for number in range(8)])
