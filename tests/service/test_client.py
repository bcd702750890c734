"""The client for services against a server: NumPy arrays in and out, for threads and for event loops."""

import asyncio
import math
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import numpy as np
import pytest

from serving import until
from teletape_client import (
    AsyncClient,
    Client,
    ConflictError,
    DeadlineExceededError,
    InvalidRequestError,
    NotFoundError,
    RequestCancelledError,
    SessionEndedError,
    SparseGradient,
    models,
    params,
)
from teletape_client.resources import Function, Session
from teletape_client.tensors.bodies import BINARY_ABOVE
from teletape_client.tensors.safetensors import SAFETENSORS

RNG = np.random.default_rng(0)
#: More bytes than are sent as JSON.
LARGE = RNG.normal(size=BINARY_ABOVE // 4 + 1).astype(np.float32)
#: Iterations that take seconds, in a loop of these steps.
LONG = 9_000_000
LOOP = [{"op": "pow", "inputs": ["x", 0.99999], "outputs": ["y"]}]


@pytest.fixture(scope="module")
def client(server_url: str) -> Iterator[Client]:
    with Client(server_url) as client:
        yield client


@pytest.fixture
def session(client: Client) -> Iterator[Session]:
    with client.sessions.create() as session:
        yield session


@pytest.fixture
def error(session: Session) -> Function:
    """A quadratic function of w."""
    return session.functions.create(text="loss = sum((x @ w - y) ** 2)")


def test_a_function_gives_its_value_and_its_gradient(error: Function) -> None:
    x, w, y = RNG.normal(size=(8, 3)), RNG.normal(size=3), RNG.normal(size=8)
    answer = error.value_and_gradient(x=x, w=w, y=y, wrt=["w"])
    assert answer.values["loss"] == pytest.approx(np.sum((x @ w - y) ** 2))
    np.testing.assert_allclose(answer["w"], 2 * x.T @ (x @ w - y))
    assert [part.source for part in answer.derivatives] == ["w"]
    with pytest.raises(KeyError, match="the answer has no derivative by 'x'; it has 'w'"):
        answer["x"]


X, W, Y = np.array([[3.0, 4.0], [0.0, 0.5]]), np.array([1.0, 1.0]), np.array([6.5, 0.0])
EXAMPLES = {"x": X, "w": W, "y": Y, "wrt": ["w"]}


def test_gradients_of_examples_are_clipped_and_summed(error: Function) -> None:
    def norms_of(**per_example: Any) -> models.FunctionDerivatives:
        return error.gradient(**EXAMPLES, per_example={"axis": 0, **per_example})

    answer = norms_of(clip=1.0)
    np.testing.assert_allclose(answer["w"], [0.6, 1.3])
    assert (answer.per_example.size, answer.per_example.clipped) == (2, 1)
    assert norms_of(**{"return": "norms"}).per_example.norms == [5.0, 0.5]
    facts = norms_of(**{"return": "statistics"}).per_example
    assert (facts.mean, facts.median, facts.smallest, facts.largest) == (2.75, 2.75, 0.5, 5.0)
    with pytest.raises(InvalidRequestError, match="no input but the sources has an axis 3"):
        error.gradient(**EXAMPLES, per_example={"axis": 3})


def test_parts_of_a_gradient_and_what_is_left(session: Session) -> None:
    function = session.functions.create(text="y = sum(w * x)")
    x = np.array([[2.0, -5.0], [3.0, 1.0]])
    inputs = {"w": np.zeros((2, 2)), "x": x, "wrt": ["w"]}
    top = function.gradient(**inputs, part={"top": 1}, remainder="rest")
    assert (top.derivatives[0].part.indices.tolist(), top["w"].tolist()) == ([1], [[0.0, -5.0], [0.0, 0.0]])
    rows = function.gradient(**inputs, part={"rows": [1]}, remainder="rest")
    assert rows["w"].tolist() == [[0.0, 0.0], [6.0, 2.0]]
    narrow = function.gradient(**inputs, part={"dtype": "float16"}, remainder="rest")["w"]
    assert (narrow.dtype, narrow.tolist()) == (np.float16, [[6.0, -10.0], [3.0, 1.0]])
    assert not np.any(session.variables["rest.w"].get().value)


def test_gradients_add_up_over_requests_and_come_from_values(error: Function, session: Session) -> None:
    for batch in (0, 1, 1):
        answer = error.gradient(**EXAMPLES, accumulate={"into": "total", "batch": batch, "weight": 2})
    assert (answer.accumulator.count, answer.accumulator.added) == (2, False)
    total = session.accumulators["total"].get(as_="mean")
    np.testing.assert_allclose(total.values["w"], [3.0, 4.5])
    numeric = error.gradient(**EXAMPLES, numeric=True)
    np.testing.assert_allclose(numeric["w"], [3.0, 4.5], rtol=1e-8)
    assert numeric.numeric.evaluations == 4


def test_a_single_name_is_a_list_of_it(session: Session) -> None:
    function = session.functions.create(text="loss = sum(x * w)\nlarge = w * 100")
    answer = function.value_and_gradient(x=3.0, w=2.0, wrt="w", targets="loss", fetch="large")
    assert (answer["w"], list(answer.values), [part.source for part in answer.derivatives]) == (3.0, ["large"], ["w"])
    tape = session.tapes.create()
    variable = session.variables.create(2.0, id="v")
    tape.run_ops([{"op": "square", "inputs": ["v"], "outputs": ["y"]}])
    assert tape.gradient("y", variable)["v"] == 4.0


def test_names_of_sources_are_no_input(session: Session) -> None:
    function = session.functions.create(text="loss = sum(x * w)")
    with pytest.raises(TypeError, match=r"sources: an input is .*; found \['w'\]: `wrt` names sources"):
        function.gradient(x=3.0, w=2.0, sources=["w"])  # type: ignore[arg-type]  # as a program writes it


def test_results_are_looked_up_by_name(session: Session) -> None:
    function = session.functions.create(text="y = x * 2")
    answer = function.call(x=np.arange(3.0), scratch=True)
    assert answer["y"].tolist() == [0.0, 2.0, 4.0]
    with pytest.raises(KeyError, match="the answer has no value of 'z'; it has 'y'"):
        answer["z"]


def test_a_derivative_that_does_not_exist_says_why_and_what_to_do(session: Session) -> None:
    function = session.functions.create(text="y = round(x)")
    with pytest.raises(ValueError, match=r"no derivative by 'x': op 'round' .*; keep it off"):
        function.gradient(x=1.5)["x"]


def test_second_derivatives_and_products(error: Function) -> None:
    x, w, y, v = RNG.normal(size=(8, 3)), RNG.normal(size=3), RNG.normal(size=8), RNG.normal(size=3)
    inputs = {"x": x, "w": w, "y": y}
    np.testing.assert_allclose(error.hessian(inputs, wrt=["w"])["w", "w"], 2 * x.T @ x)
    np.testing.assert_allclose(error.hvp(inputs, wrt=["w"], vectors=[v])["w"], 2 * x.T @ x @ v)
    np.testing.assert_allclose(error.jvp(inputs, wrt=["w"], tangents=[v])["loss"], 2 * (x @ w - y) @ x @ v)
    np.testing.assert_allclose(error.jacobian(inputs, wrt=["y"])["y"], -2 * (x @ w - y))
    np.testing.assert_allclose(error.vjp(inputs, wrt=["y"], output_gradients=[np.float64(3)])["y"], -6 * (x @ w - y))


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "complex64", "complex128"])
@pytest.mark.parametrize("size", [3, BINARY_ABOVE])
def test_arrays_keep_their_dtype_and_their_bits(session: Session, dtype: str, size: int) -> None:
    array = RNG.normal(size=size).astype(dtype)
    array[1] = np.nan
    variable = session.variables.create(array, id="v")
    value = variable.get().value
    assert value.dtype == array.dtype
    np.testing.assert_array_equal(value, array)
    value[0] = 0  # it is the caller's own
    binary = session.run([], tensors={"x": array}, fetch=["x"]).values["x"]
    np.testing.assert_array_equal(binary, array)


@pytest.mark.parametrize("dtype", ["int8", "int64", "uint16", "bool"])
def test_integers_and_flags_keep_their_dtype(session: Session, dtype: str) -> None:
    array = np.array([[0, 1, 1], [1, 0, 1]], dtype)
    value = session.tensors.create(array).get().value
    assert value.dtype == array.dtype
    np.testing.assert_array_equal(value, array)


def test_python_numbers_take_the_dtype_of_what_they_meet(client: Client) -> None:
    commands = [
        {"do": "op", "op": "mul", "inputs": ["x", 2], "outputs": ["y"]},
        {"do": "op", "op": "add", "inputs": ["y", math.inf], "outputs": ["z"]},
        {"do": "constant", "id": "n", "value": [1.0, math.nan, -math.inf]},
        {"do": "op", "op": "mul", "inputs": ["x", np.float64(0.5)], "outputs": ["h"]},
    ]
    answer = client.run(commands, tensors={"x": np.float64(1.5)}, fetch=["y", "z", "n", "h"])
    assert (answer.values["y"], answer.values["z"], answer.values["h"]) == (3.0, math.inf, 0.75)
    assert answer.values["y"].dtype == np.float64
    np.testing.assert_array_equal(answer.values["n"], np.float32([1, np.nan, -np.inf]))


def test_a_derivative_that_does_not_exist_says_why(client: Client, session: Session) -> None:
    cut = session.functions.create(text="y = round(x)")
    answer = cut.gradient(x=2.5, wrt=["x"])
    assert answer.derivatives[0].value is None
    assert answer.derivatives[0].why.code == "non_differentiable_op"
    with pytest.raises(ValueError, match=r"there is no derivative by 'x': .*round"):
        answer["x"]


def test_a_sparse_gradient_has_rows_and_becomes_dense(session: Session) -> None:
    table = np.arange(12.0).reshape(4, 3)
    gathered = session.functions.create(
        inputs=["table"],
        steps=[
            {"op": "gather", "inputs": ["table", {"dtype": "int32", "data": [2, 0, 2]}], "outputs": ["rows"]},
            {"op": "reduce_sum", "inputs": ["rows"], "outputs": ["sum"]},
        ],
        outputs=["sum"],
    )
    variable = session.variables.create(table, id="table")
    answer = gathered.gradient(table=variable)
    sparse = answer.derivatives[0].value
    assert isinstance(sparse, SparseGradient)
    assert sparse.indices.tolist() == [2, 0, 2]
    np.testing.assert_array_equal(answer["table"], [[1, 1, 1], [0, 0, 0], [2, 2, 2], [0, 0, 0]])


def test_tapes_and_variables(session: Session) -> None:
    w = session.variables.create([1.0, 2.0, 3.0], id="w")
    tape = session.tapes.create(persistent=True)
    tape.run_ops(
        [
            {"op": "square", "inputs": [w], "outputs": ["squares"]},
            {"op": "reduce_sum", "inputs": ["squares"], "outputs": ["sum"]},
        ]
    )
    assert tape.gradient(["sum"], [w])["w"].tolist() == [2, 4, 6]
    assert tape.hessian(["sum"], ["w"])["w", "w"].tolist() == (2 * np.eye(3)).tolist()
    assert tape.explain(["sum"], ["w"]).explanations[0].code == "connected"
    graph = tape.graph()
    assert {edge.from_ for edge in graph.edges} <= {node.id for node in graph.nodes}
    session.variables["w"].assign(np.float32([1, 1, 1]), mode="add")
    listed = session.variables.list(values=True).variables
    assert [variable.value.tolist() for variable in listed] == [[2, 3, 4]]
    assert session.variables.list().variables[0].value is None
    tape.delete()
    with pytest.raises(NotFoundError):
        tape.get()


def test_a_variable_is_assigned_only_in_the_version_that_was_read(session: Session) -> None:
    variable = session.variables.create(1.0, id="v")
    tag = variable.with_raw_response.get().headers["ETag"]
    variable.assign(2.0, if_match=tag)
    with pytest.raises(ConflictError) as raised:
        variable.assign(3.0, if_match=tag)
    assert raised.value.code == "precondition_failed"
    variable.assign(3.0, if_match=raised.value.details["etag"])


def test_a_question_that_is_asked_again_has_the_same_answer_to_the_bit(error: Function) -> None:
    """The first has a key and comes as safetensors, the later ones are plain JSON."""
    inputs = {"x": RNG.normal(size=(8, 3)).astype(np.float32), "w": np.float32([1, np.nan, np.inf]), "y": np.zeros(8)}
    inputs["y"] = inputs["y"].astype(np.float32)
    raw = [error.with_raw_response.value_and_gradient(inputs, wrt=["x", "w"]) for _ in range(4)]
    assert ["Idempotency-Key" in response.http.request.headers for response in raw] == [True, False, False, False]
    assert [response.headers["Content-Type"] for response in raw[:2]] == [SAFETENSORS, "application/json"]
    for name in ("x", "w"):
        assert len({response.parse()[name].tobytes() for response in raw}) == 1
    large = {**inputs, "x": RNG.normal(size=(300, 3)).astype(np.float32), "y": np.zeros(300, np.float32)}
    sizes = {error.value_and_gradient(large, wrt=["x"])["x"].size for _ in range(3)}
    assert sizes == {900}


def test_gradients_are_accumulated_over_calls(error: Function, session: Session) -> None:
    x, w, y = RNG.normal(size=(8, 3)), RNG.normal(size=3), RNG.normal(size=8)
    for number, rows in enumerate([slice(5), slice(5, 8), slice(5)]):
        batch: params.Accumulate = {"into": "total", "batch": number % 2, "weight": 0.5}
        answer = error.gradient(x=x[rows], w=w, y=y[rows], wrt=["w"], accumulate=batch)
        assert answer.accumulator is not None
        assert answer.accumulator.added is (number < 2)
    total = session.accumulators["total"].get()
    np.testing.assert_allclose(total.values["w"], x.T @ (x @ w - y))
    np.testing.assert_allclose(session.accumulators["total"].get(as_="mean").values["w"], total.values["w"])
    assert (total.count, total.weight, total.batches) == (2, 1.0, [[0, 1]])
    [listed] = session.accumulators.list().accumulators
    assert listed.id == "total"
    session.accumulators["total"].delete()
    assert session.accumulators.list().accumulators == []


def test_a_function_that_assigns_is_never_asked_without_a_key(session: Session) -> None:
    session.variables.create(1.0, id="n")
    count = session.functions.create(
        inputs=["n"],
        steps=[
            {"do": "assign", "variable": "n", "value": 1.0, "mode": "add"},
            {"op": "square", "inputs": ["n"], "outputs": ["y"]},
        ],
        outputs=["y"],
    )
    for _ in range(4):
        response = count.with_raw_response.value_and_gradient(n="n")
        assert "Idempotency-Key" in response.http.request.headers
    assert session.variables["n"].get().value == 5.0


@pytest.mark.parametrize(
    "keeping", [{"part": {"top": 1}, "remainder": "rest"}, {"accumulate": {"into": "total", "batch": 0}}]
)
def test_a_question_that_keeps_something_is_never_asked_without_a_key(session: Session, keeping: Any) -> None:
    function = session.functions.create(text="y = sum(w * w)")
    for _ in range(4):
        response = function.with_raw_response.gradient(w=[1.0, 2.0], wrt=["w"], **keeping)
        assert "Idempotency-Key" in response.http.request.headers


def test_the_raw_response_has_headers_and_the_answer(error: Function) -> None:
    response = error.with_raw_response.gradient(x=[[1.0]], w=[2.0], y=[0.0], wrt=["w"])
    assert (response.status_code, response.request_id) == (200, response.headers["X-Request-Id"])
    assert isinstance(response.parse(), models.FunctionDerivatives)
    assert response.parse()["w"].tolist() == [4.0]


def test_what_was_created_is_there_by_its_id_too(session: Session) -> None:
    raw = session.functions.with_raw_response.create(id="double", text="y = 2 * x")
    assert raw.parse().facts.inputs == ["x"]
    assert raw.parse().call(x=3.0, scratch=True).values["y"] == 6.0
    assert session.functions["double"].get().outputs == ["y"]
    assert session.functions["double"].facts is None
    assert [function.id for function in session.functions.list().functions] == ["double"]


def test_an_expression_becomes_steps(client: Client) -> None:
    expression = client.expressions.parse("y = sin(x) * x")
    assert (expression.inputs, expression.outputs) == (["x"], ["y"])
    assert [step["op"] for step in expression.steps] == ["sin", "mul"]


def test_training_yields_its_progress_and_then_its_answer(error: Function, session: Session) -> None:
    x, y = RNG.normal(size=(64, 3)), RNG.normal(size=64)
    w = session.variables.create(np.zeros(3), id="w")
    training = error.train(w=w, x=x, y=y, steps=20_000, optimizer={"name": "sgd", "learning_rate": 0.001})
    progress = [step for step in training if step.iteration]
    assert {step.iterations for step in progress} == {20_000}
    answer = training.result()
    assert answer.steps == 20_000
    assert len(answer.losses) == 20_000
    np.testing.assert_allclose(w.get().value, np.linalg.lstsq(x, y, rcond=None)[0], rtol=1e-6)


def test_a_training_that_is_left_is_cancelled(error: Function, session: Session) -> None:
    w = session.variables.create(np.zeros(1), id="w")
    steps = {"steps": 1_000_000, "optimizer": {"name": "sgd"}}
    with error.train({"w": w, "x": [[1.0]], "y": [1.0]}, **steps) as training:
        next(training)
    until(lambda: session.get().running.requests == 0)
    assert 0 < w.get().version < 1_000_000


def test_progress_is_reported_of_any_call(session: Session) -> None:
    iterations = []
    loop = session.functions.create(inputs=["x"], outputs=["y"], steps=LOOP)
    watched = loop.with_options(on_progress=lambda progress: iterations.append(progress.iteration))
    answer = watched.scan([np.float64(2)], carried=1, length=50_000, outputs=["last"])
    assert answer.values["last"] == pytest.approx(2 ** (0.99999**50_000))
    assert iterations
    assert max(iterations) <= 50_000


def test_a_call_that_takes_too_long_ends_here_and_on_the_server(session: Session) -> None:
    loop = session.functions.create(inputs=["x"], outputs=["y"], steps=LOOP)
    with pytest.raises(DeadlineExceededError, match=r"within 0\.2 s") as raised:
        loop.with_options(timeout=0.2).scan([np.float64(2)], carried=1, length=LONG)
    assert isinstance(raised.value, TimeoutError)
    until(lambda: session.get().running.requests == 0)


def test_a_call_that_another_program_cancels_says_so(session: Session) -> None:
    loop = session.functions.create(inputs=["x"], outputs=["y"], steps=LOOP)
    with ThreadPoolExecutor(1) as pool:
        call = pool.submit(loop.scan, [np.float64(2)], carried=1, length=LONG)
        until(lambda: session.get().running.requests > 0)
        session.cancel()
        with pytest.raises(RequestCancelledError):
            call.result()


def test_a_session_ends_after_its_block(client: Client) -> None:
    with client.sessions.create() as session:
        pass
    with pytest.raises(SessionEndedError):
        session.get()
    with client.sessions.create() as session:
        session.delete()
    with pytest.raises(ZeroDivisionError), client.sessions.create() as session:
        1 / 0  # noqa: B018
    with pytest.raises(SessionEndedError):
        session.variables.list()


def test_sessions_are_watched(server: object) -> None:
    url, key = server.url, server.settings.api_keys["ann"]  # type: ignore[attr-defined]
    with Client(url, api_key=key) as client:
        events = client.sessions.watch()
        assert next(events).name == "sessions"
        with client.sessions.create(id="seen"):
            event = next(events)
            assert (event.name, event.sessions[0].id) == ("session", "seen")
        event = next(event for event in events if event.name == "ended")
        assert event.ended["id"] == "seen"
        events.close()


def test_threads_share_a_client(error: Function) -> None:
    def loss(number: int) -> float:
        answer = error.value_and_gradient(x=[[1.0]], w=[float(number)], y=[0.0], wrt=["w"])
        return float(answer.values["loss"])

    with ThreadPoolExecutor(16) as pool:
        assert list(pool.map(loss, range(100))) == [float(number**2) for number in range(100)]


def test_an_event_loop_does_the_same(server_url: str) -> None:
    async def main() -> None:
        async with AsyncClient(server_url) as client:
            async with await client.sessions.create() as session:
                square = await session.functions.create(text="y = sum(x ** 2)")
                answers = await asyncio.gather(*(square.value_and_gradient(x=[float(n), 1.0]) for n in range(100)))
                assert [answer["x"][0] for answer in answers] == [2.0 * n for n in range(100)]
                part = await square.gradient(x=[3.0, -4.0], part={"top": 1})
                assert part["x"].tolist() == [0.0, -8.0]
                product = await session.functions.create(text="y = sum(w * x)")
                summed = await product.gradient(x=X, w=W, wrt="w", per_example={"axis": 0, "clip": 1.0})
                np.testing.assert_allclose(summed["w"], [0.6, 1.3])
                large = await square.with_raw_response.gradient(x=LARGE)
                np.testing.assert_array_equal(large.parse()["x"], 2 * LARGE)
                w = await session.variables.create([1.0, 1.0], id="w")
                training = await square.train(x=w, steps=30_000, optimizer={"name": "adam"})
                async for progress in training:
                    assert progress.iteration <= 30_000
                assert (await training.result()).steps == 30_000
            with pytest.raises(SessionEndedError):
                await session.get()

    asyncio.run(main())


def test_a_cancelled_task_cancels_on_the_server(server_url: str) -> None:
    async def main() -> None:
        async with AsyncClient(server_url) as client, await client.sessions.create() as session:
            loop = await session.functions.create(inputs=["x"], outputs=["y"], steps=LOOP)
            task = asyncio.create_task(loop.scan([np.float64(2)], carried=1, length=LONG))
            while (await session.get()).running.requests == 0:
                pass
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            while (await session.get()).running.requests > 0:
                pass

    asyncio.run(main())


def test_sessions_are_watched_in_an_event_loop(server_url: str) -> None:
    async def main() -> None:
        async with AsyncClient(server_url) as client:
            events = client.sessions.watch()
            assert (await anext(events)).name == "sessions"
            await events.aclose()

    asyncio.run(main())


def test_an_http_client_of_the_callers_own_sends_the_requests(server_url: str) -> None:
    paths = []
    with httpx.Client(event_hooks={"request": [lambda request: paths.append(request.url.path)]}) as http:
        with Client(server_url, http_client=http) as client:
            assert client.info().name == "teletape"
        assert not http.is_closed
    assert paths == ["/v1/info"]


def test_headers_that_the_caller_changes_on_its_http_client_are_sent_with_the_next_request(server_url: str) -> None:
    sent = []
    with (
        httpx.Client(event_hooks={"request": [lambda request: sent.append(request.headers["X-Turn"])]}) as http,
        Client(server_url, http_client=http) as client,
    ):
        for turn in ("1", "2", "3", "4"):  # the last ones are plain
            http.headers["X-Turn"] = turn
            client.run([], tensors={"x": 1.5}, fetch=["x"])
    assert sent == ["1", "2", "3", "4"]
