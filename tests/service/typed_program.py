"""A program with the client for services, as type checkers are to see it: every line that ends in "wrong" is."""

import numpy as np

from teletape_client import AsyncClient, Client, NotFoundError


def train() -> float:
    """The loss of a small training, with its gradient before."""
    with Client("http://127.0.0.1:8470", timeout=3.0) as client, client.sessions.create(id="s") as session:
        loss = session.functions.create(text="loss = mean((x @ w - y) ** 2)")
        w = session.variables.create(np.zeros(3), id="w")
        answer = loss.with_options(timeout=2.0).value_and_gradient(w=w, x=np.ones((2, 3)), y=[1.0, 2.0], wrt=["w"])
        norm = float(np.linalg.norm(answer["w"])) + float(answer.values["loss"])
        for progress in loss.train(w=w, optimizer={"name": "adam", "learning_rate": 0.1}, steps=3):
            norm += progress.loss or 0.0
        raw = loss.with_raw_response.gradient({"w": "w"})
        client.run([{"do": "op", "op": "sin", "inputs": ["x"], "outputs": ["y"]}], tensors={"x": np.ones(3)})
        return norm + float(raw.parse()["w"][0])


async def gradient() -> None:
    """The same in an event loop."""
    async with AsyncClient("http://127.0.0.1:8470") as client, await client.sessions.create() as session:
        square = await session.functions.create(text="y = sum(x ** 2)")
        try:
            total = (await square.value_and_gradient(x=np.ones(3)))["x"] + 1
            assert total.shape == (3,)
        except NotFoundError as error:
            raise RuntimeError(error.details) from error
        square.gradient(x=1.0)["x"]  # wrong


def mistakes(client: Client) -> None:
    """Each of these is refused before the program runs."""
    client.sessions.create(idd="s")  # wrong
    client.with_options(retries=3)  # wrong
    client.sessions["s"].functions["f"].gradient(wrt=3)  # wrong
    client.run([{"do": "opp", "op": "sin"}])  # wrong
    client.sessions["s"].functions["f"].train(optimizer={"name": "adams"})  # wrong
