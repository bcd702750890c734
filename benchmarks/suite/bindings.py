"""What runs a program with each system: a class for each entry of systems.py, used in the process that is measured.

`load` takes a program's module and its inputs and returns a call; a call returns what the program computed, complete:
arrays are computed, and read if they come from a server. Libraries are imported here alone, when a class is made.
"""

import asyncio
import http.client
import json
import os
import socket
import threading
from collections.abc import Callable, Sequence
from typing import Any
from urllib.parse import urlsplit

import numpy as np

from suite.programs.least_squares import CALLS_OF_A_TASK
from suite.servers import KEY

Call = Callable[[], Sequence[Any]]


class Binding:
    """A system in this process.

    Args:
        threads: BLAS threads and cores.
    """

    def __init__(self, threads: int) -> None:
        self.threads = threads

    def load(self, program: Any, data: dict[str, Any]) -> Call:
        """A call of the program."""
        raise NotImplementedError

    def arrays(self, results: Sequence[Any]) -> list[np.ndarray]:
        """What a call returned, as NumPy arrays."""
        return [np.asarray(result) for result in results]

    @property
    def sent(self) -> bytes:
        """The request that the last call has sent over a bare socket."""
        raise NotImplementedError


class NumPy(Binding):
    """NumPy by hand."""

    def load(self, program: Any, data: dict[str, Any]) -> Call:
        step, arguments = program.by_hand(data)
        return lambda: step(*arguments)


class _TensorFlowLike(Binding):
    """Teletape or TensorFlow: the same programs. A traced function if `function`."""

    function = False

    def __init__(self, threads: int) -> None:
        super().__init__(threads)
        self.tf = self.library()

    def library(self) -> Any:
        raise NotImplementedError

    def step(self, program: Any, data: dict[str, Any]) -> tuple[Callable[..., Any], list[np.ndarray]]:
        step, arguments = program.tensorflow(self.tf, data)
        return (self.tf.function(step) if self.function else step), arguments

    def load(self, program: Any, data: dict[str, Any]) -> Call:
        step, arguments = self.step(program, data)
        tensors = [self.tf.constant(argument) for argument in arguments]
        return lambda: step(*tensors)

    def arrays(self, results: Sequence[Any]) -> list[np.ndarray]:
        return [result.numpy() for result in results]


class TeletapeEager(_TensorFlowLike):
    """Teletape in this process, op by op."""

    def library(self) -> Any:
        import teletape as tf

        tf.connect(device="cpu", local=True)
        return tf


class TeletapeFunction(TeletapeEager):
    """Teletape in this process, a traced function."""

    function = True


class TensorFlowEager(_TensorFlowLike):
    """TensorFlow, op by op."""

    def library(self) -> Any:
        import tensorflow as tf

        tf.config.threading.set_intra_op_parallelism_threads(self.threads)
        tf.config.threading.set_inter_op_parallelism_threads(self.threads)
        return tf


class TensorFlowFunction(TensorFlowEager):
    """TensorFlow, a traced function."""

    function = True


class Torch(Binding):
    """PyTorch."""

    def __init__(self, threads: int) -> None:
        super().__init__(threads)
        import torch

        torch.set_num_threads(threads)
        self.torch = torch

    def load(self, program: Any, data: dict[str, Any]) -> Call:
        step, arguments = program.pytorch(self.torch, data)
        tensors = [self.torch.from_numpy(argument) for argument in arguments]
        return lambda: step(*tensors)

    def arrays(self, results: Sequence[Any]) -> list[np.ndarray]:
        return [result.detach().numpy() for result in results]


class Jax(Binding):
    """JAX, compiled."""

    def __init__(self, threads: int) -> None:
        super().__init__(threads)
        import jax

        jax.config.update("jax_enable_x64", True)  # some programs are of float64
        self.jax = jax

    def load(self, program: Any, data: dict[str, Any]) -> Call:
        step, arguments = program.jax(self.jax, data)
        compiled, wait = self.jax.jit(step), self.jax.block_until_ready
        arrays = [self.jax.numpy.asarray(argument) for argument in arguments]
        return lambda: wait(compiled(*arrays))


# ------------------------------------------------------------------------------------------------------------- servers
class _Remote(_TensorFlowLike):
    """A server: the arguments travel with each call, and what is computed is read."""

    def load(self, program: Any, data: dict[str, Any]) -> Call:
        step, arguments = self.step(program, data)
        constant, read = self.tf.constant, self.read
        return lambda: read(step(*[constant(argument) for argument in arguments]))

    def read(self, tensors: Sequence[Any]) -> list[Any]:
        raise NotImplementedError

    def arrays(self, results: Sequence[Any]) -> list[np.ndarray]:
        return [np.asarray(result) for result in results]


class RemoteEager(_Remote):
    """Teletape through a server."""

    def library(self) -> Any:
        import teletape as tf

        tf.connect(os.environ["BENCHMARK_ADDRESS"], api_key=KEY)
        return tf

    def step(self, program: Any, data: dict[str, Any]) -> tuple[Callable[..., Any], list[np.ndarray]]:
        if hasattr(program, "teletape"):
            step: tuple[Callable[..., Any], list[np.ndarray]] = program.teletape(self.tf, data)
            return step
        return super().step(program, data)

    def read(self, tensors: Sequence[Any]) -> list[Any]:
        if not tensors:
            self.tf.sync()
        return [tensor.numpy() for tensor in tensors]  # one by one, as programs do: the first brings the others


class RemoteFunction(RemoteEager):
    """Teletape through a server, a traced function."""

    function = True


class TensorFlowRemote(_Remote):
    """A TensorFlow server over gRPC."""

    def library(self) -> Any:
        import tensorflow as tf

        tf.config.experimental_connect_to_host(urlsplit(os.environ["BENCHMARK_ADDRESS"]).netloc)
        return tf

    def load(self, program: Any, data: dict[str, Any]) -> Call:
        device = "/job:worker/replica:0/task:0/device:CPU:0"
        with self.tf.device(device):
            call = super().load(program, data)

        def on_server() -> Sequence[Any]:
            with self.tf.device(device):
                return call()

        return on_server

    def read(self, tensors: Sequence[Any]) -> list[Any]:
        return [tensor.numpy() for tensor in tensors]


class TensorFlowRemoteFunction(TensorFlowRemote):
    """A TensorFlow server over gRPC, a traced function."""

    function = True


class _Bodies(Binding):
    """A server that takes the arguments' bytes and answers with those of the results; shapes are known."""

    def load(self, program: Any, data: dict[str, Any]) -> Call:
        step, arguments = program.by_hand(data)
        specs = [(np.asarray(result).shape, np.asarray(result).dtype) for result in step(*arguments)]
        self.post(f"/load/{program.__name__.rpartition('.')[2]}", json.dumps(data["size"]).encode())
        post = self.post

        def call() -> list[np.ndarray]:
            answer = memoryview(post("/step", b"".join([argument.tobytes() for argument in arguments])))
            results, start = [], 0
            for shape, dtype in specs:
                array = np.frombuffer(answer, dtype, int(np.prod(shape)), start).reshape(shape)
                results.append(array)
                start += array.nbytes
            return results

        return call

    def post(self, path: str, body: bytes) -> bytes | bytearray:
        raise NotImplementedError


class FastApi(_Bodies):
    """A server as one writes it in an afternoon, called with httpx."""

    def __init__(self, threads: int) -> None:
        super().__init__(threads)
        import httpx

        self._client = httpx.Client(base_url=os.environ["BENCHMARK_ADDRESS"], timeout=None, trust_env=False)

    def post(self, path: str, body: bytes) -> bytes:
        response = self._client.post(path, content=body)
        response.raise_for_status()
        return response.content


class Floor(_Bodies):
    """The least: the same bodies over a bare socket, and NumPy by hand on the other side."""

    def __init__(self, threads: int) -> None:
        super().__init__(threads)
        self._socket = _Socket()

    @property
    def sent(self) -> bytes:
        return self._socket.last

    def post(self, path: str, body: bytes) -> bytearray:
        return self._socket.exchange(
            f"POST {path} HTTP/1.1\r\nHost: floor\r\nContent-Length: {len(body)}\r\n\r\n", body
        )


class Health(Binding):
    """A health request to Teletape's server over a bare socket: what no call can be faster than."""

    def load(self, program: Any, data: dict[str, Any]) -> Call:
        exchange = _Socket().exchange
        head = "GET /v1/health HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"

        def call() -> list[np.ndarray]:
            exchange(head)
            return []

        return call


class _Rest(Binding):
    """JSON over a bare socket, as any language sends it; the answer is read, and parsed where it is looked at."""

    path = "/"

    def __init__(self, threads: int) -> None:
        super().__init__(threads)
        self._socket = _Socket()

    @property
    def sent(self) -> bytes:
        return self._socket.last

    def load(self, program: Any, data: dict[str, Any]) -> Call:
        lists = {name: array.tolist() for name, array in data.items() if isinstance(array, np.ndarray)}
        head, body = self.request(self.path, self.body(program, lists))
        exchange = self._socket.exchange
        return lambda: [exchange(head, body)]

    def body(self, program: Any, lists: dict[str, Any]) -> Any:
        """What a call sends."""
        raise NotImplementedError

    def post(self, path: str, fields: Any) -> Any:
        """Sends a request, and returns its answer."""
        return json.loads(self._socket.exchange(*self.request(path, fields)))

    def request(self, path: str, fields: Any) -> tuple[str, bytes]:
        """The head and the body of a request."""
        body = json.dumps(fields).encode()
        lines = ["Host: 127.0.0.1", "Content-Type: application/json", f"X-API-Key: {KEY}"]
        return "\r\n".join([f"POST {path} HTTP/1.1", *lines, f"Content-Length: {len(body)}", "", ""]), body


class RestFunction(_Rest):
    """A function that a session of Teletape's keeps, by its name."""

    path = "/v1/sessions/service/functions/loss/value_and_gradient"

    def body(self, program: Any, lists: dict[str, Any]) -> Any:
        self.post("/v1/sessions", {"id": "service", "dtype": "float64", "replace": True})
        self.post("/v1/sessions/service/functions", {"id": "loss", "text": program.TEXT})
        return {"inputs": lists, "sources": ["w"]}

    def arrays(self, results: Sequence[Any]) -> list[np.ndarray]:
        answer = json.loads(results[0])
        return [np.asarray(t["data"]) for t in (answer["values"]["result"], answer["derivatives"][0]["value"])]


class RestRun(_Rest):
    """A request that keeps nothing: a tensor, a variable, a tape, four ops, and the gradient."""

    path = "/v1/run"

    def body(self, program: Any, lists: dict[str, Any]) -> Any:
        x, w, y = ({"dtype": "float64", "data": lists[name]} for name in ("x", "w", "y"))
        ops = [
            ("matvec", ["x", "w"], "p"),
            ("sub", ["p", "y"], "e"),
            ("square", ["e"], "q"),
            ("reduce_sum", ["q"], "l"),
        ]
        return {
            "commands": [
                *({"do": "constant", "id": name, "value": value} for name, value in (("x", x), ("y", y))),
                {"do": "variable", "id": "w", "value": w},
                {"do": "tape.open", "id": "t"},
                *({"do": "op", "op": op, "inputs": inputs, "outputs": [output]} for op, inputs, output in ops),
                {"do": "gradient", "tape": "t", "targets": ["l"], "sources": ["w"], "outputs": ["g"]},
            ],
            "fetch": ["l", "g"],
        }

    def arrays(self, results: Sequence[Any]) -> list[np.ndarray]:
        values = json.loads(results[0])["values"]
        return [np.asarray(values[name]["data"]) for name in ("l", "g")]


class Published(_Rest):
    """A published function of Teletape's, in safetensors: calls that wait are computed together."""

    exact = False

    def load(self, program: Any, data: dict[str, Any]) -> Call:
        from teletape_wire.safetensors.layout import SAFETENSORS_TYPE
        from teletape_wire.safetensors.writer import write_file

        def sent(line: str, tensors: dict[str, Any], fields: dict[str, Any]) -> tuple[str, bytes]:
            body = b"".join(write_file(tensors, {"request": json.dumps(fields)}))
            lines = ["Host: 127.0.0.1", f"Content-Type: {SAFETENSORS_TYPE}", f"Accept: {SAFETENSORS_TYPE}, */*;q=0.5"]
            return "\r\n".join([f"{line} HTTP/1.1", *lines, f"Content-Length: {len(body)}", "", ""]), body

        shape = ["batch", data["x"].shape[1]]
        fields = {"function": {"text": program.TEXT}, "inputs": {"x": {"shape": shape}}}
        weights = {f"weights/{name}": array for name, array in program.named(data).items()}
        exchange = self._socket.exchange
        exchange(*sent("PUT /v1/published/network", weights, fields))
        line = "POST /v1/published/network/value_and_gradient"
        head, body = sent(line, {"x": data["x"]}, {"exact": self.exact})
        return lambda: [exchange(head, body)]

    def arrays(self, results: Sequence[Any]) -> list[np.ndarray]:
        from teletape_wire.safetensors.reader import read_file

        tensors = read_file(memoryview(results[0]), copy_below=1 << 30).tensors
        return [tensors["values/result"], tensors["derivatives/x"]]


class PublishedExact(Published):
    """The same, each call by itself."""

    exact = True


class FastApiNumPy(_Rest):
    """A service for one loss, written by hand."""

    path = "/value_and_gradient"

    def body(self, program: Any, lists: dict[str, Any]) -> Any:
        return lists

    def arrays(self, results: Sequence[Any]) -> list[np.ndarray]:
        answer = json.loads(results[0])
        return [np.asarray(answer["value"]), np.asarray(answer["gradient"])]


class _Service(Binding):
    """A function that a session of Teletape's keeps, called from Python with arrays."""

    def load(self, program: Any, data: dict[str, Any]) -> Call:
        from teletape_client import Client

        name = type(self).__name__
        address = os.environ["BENCHMARK_ADDRESS"]
        with Client(address) as client:
            session = client.sessions.create(id=name, dtype="float64", replace=True)
            session.functions.create(id="loss", text=program.TEXT)
        arrays = {key: array for key, array in data.items() if isinstance(array, np.ndarray)}
        if "tasks" not in data:
            return self.call(address, name, arrays)
        loop, tasks = asyncio.new_event_loop(), data["tasks"]
        question = self.call(address, name, arrays)

        async def task() -> Any:
            for _ in range(CALLS_OF_A_TASK - 1):
                await question()
            return await question()

        async def all_tasks() -> Any:
            return (await asyncio.gather(*(task() for _ in range(tasks))))[0]

        return lambda: loop.run_until_complete(all_tasks())

    def call(self, address: str, session: str, arrays: dict[str, np.ndarray]) -> Callable[[], Any]:
        """A call; one that is awaited if it is of tasks."""
        raise NotImplementedError


class ServiceClient(_Service):
    """The client for services, one for all threads."""

    def call(self, address: str, session: str, arrays: dict[str, np.ndarray]) -> Callable[[], Any]:
        from teletape_client import Client

        loss = Client(address).sessions[session].functions["loss"]

        def call() -> list[Any]:
            answer = loss.value_and_gradient(arrays, wrt=["w"])
            return [answer.values["result"], answer["w"]]

        return call


class AsyncServiceClient(_Service):
    """The client for services, in an event loop."""

    def call(self, address: str, session: str, arrays: dict[str, np.ndarray]) -> Callable[[], Any]:
        from teletape_client import AsyncClient

        loss = AsyncClient(address).sessions[session].functions["loss"]

        async def call() -> list[Any]:
            answer = await loss.value_and_gradient(arrays, wrt=["w"])
            return [answer.values["result"], answer["w"]]

        return call


class HttpxByHand(_Service):
    """The same request as one writes it with httpx, one client for all threads."""

    def call(self, address: str, session: str, arrays: dict[str, np.ndarray]) -> Callable[[], Any]:
        import httpx

        client = httpx.Client(base_url=address, limits=httpx.Limits(max_connections=None), trust_env=False)
        path = f"/v1/sessions/{session}/functions/loss/value_and_gradient"
        return lambda: _answer_by_hand(client.post(path, json=_request_by_hand(arrays)))


class AsyncHttpxByHand(_Service):
    """The same request as one writes it with httpx, in an event loop."""

    def call(self, address: str, session: str, arrays: dict[str, np.ndarray]) -> Callable[[], Any]:
        import httpx

        client = httpx.AsyncClient(base_url=address, limits=httpx.Limits(max_connections=None), trust_env=False)
        path = f"/v1/sessions/{session}/functions/loss/value_and_gradient"

        async def call() -> list[Any]:
            return _answer_by_hand(await client.post(path, json=_request_by_hand(arrays)))

        return call


def _request_by_hand(arrays: dict[str, np.ndarray]) -> dict[str, Any]:
    return {"inputs": {name: array.tolist() for name, array in arrays.items()}, "sources": ["w"]}


def _answer_by_hand(response: Any) -> list[Any]:
    answer = response.raise_for_status().json()
    tensors = (answer["values"]["result"], answer["derivatives"][0]["value"])
    return [np.array(tensor["data"], tensor["dtype"]) for tensor in tensors]


class Tcp(Binding):
    """Bytes over loopback TCP into memory that is there."""

    def load(self, program: Any, data: dict[str, Any]) -> Call:
        connection, array = connected(), data["x"]
        received, view = np.empty_like(array), memoryview(array).cast("B")
        room = memoryview(received).cast("B")

        def up() -> list[np.ndarray]:
            connection.sendall(b"u" + len(view).to_bytes(8, "little"))
            connection.sendall(view)
            _receive(connection, room[:1])
            return []

        def down() -> list[np.ndarray]:
            connection.sendall(b"d" + len(view).to_bytes(8, "little"))
            _receive(connection, room)
            return [received]

        return {"up": up, "down": down}[data["call"]]

    def arrays(self, results: Sequence[Any]) -> list[np.ndarray]:
        return []  # the server sends zeros


def connected() -> socket.socket:
    address = urlsplit(os.environ["BENCHMARK_ADDRESS"])
    connection = socket.create_connection((address.hostname, address.port))
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


def _receive(connection: socket.socket, room: memoryview) -> None:
    while room:
        count = connection.recv_into(room)
        if not count:
            raise ConnectionError("the server closed the connection")
        room = room[count:]


class _Socket:
    """HTTP over a bare socket, one for each thread, connected again if the server has closed it."""

    def __init__(self) -> None:
        self._thread, self.last = threading.local(), b""

    def exchange(self, head: str, body: bytes = b"") -> bytearray:
        """Sends a request and returns the answer's body, which has a Content-Length."""
        self.last = head.encode() + body
        if not hasattr(self._thread, "connection"):
            self._thread.connection = connected()
        try:
            return _exchange(self._thread.connection, head.encode(), body)
        except ConnectionError:  # idle for too long
            self._thread.connection = connected()
            return _exchange(self._thread.connection, head.encode(), body)


def _exchange(connection: socket.socket, head: bytes, body: bytes) -> bytearray:
    sent = connection.sendmsg([head, body])
    if sent < len(head) + len(body):
        connection.sendall(memoryview(body)[sent - len(head) :])
    received = b""
    while (end := received.find(b"\r\n\r\n")) < 0:
        part = connection.recv(1 << 16)
        if not part:
            raise ConnectionError("the server closed the connection")
        received += part
    status, _, fields = received[:end].partition(b"\r\n")
    if not status.split(b" ")[1].startswith(b"2"):
        raise http.client.HTTPException(status.decode())
    names = (field.partition(b":") for field in fields.split(b"\r\n"))
    length = next(int(value) for name, _, value in names if name.lower() == b"content-length")
    answer, start = bytearray(length), received[end + 4 :]
    answer[: len(start)] = start
    _receive(connection, memoryview(answer)[len(start) :])
    return answer
