"""The systems that are measured, a registry: each is a Python with its packages, a way to write programs, a server.

A new system is one entry here, and, if it needs another way to write programs, one class in bindings.py.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class System:
    """A system that rows measure.

    Attributes:
        label: Its name in tables.
        binding: The class of bindings.py that runs programs with it; with dots, one of another module.
        packages: The distributions that it needs, whose versions are reported.
        peer: Whether it runs with the Python of the peers' environment instead of the checkout's.
        server: The server of servers.py that its programs call; None: it computes in its own process.
        on_gpu: Whether it sees the machine's GPUs.
        settings: Environment variables of its process.
    """

    label: str
    binding: str
    packages: tuple[str, ...]
    peer: bool = False
    server: str | None = None
    on_gpu: bool = False
    settings: Mapping[str, str] = field(default_factory=dict)


SYSTEMS = {
    "eager": System("Teletape", "TeletapeEager", ("teletape", "numpy")),
    "function": System("Teletape function", "TeletapeFunction", ("teletape", "numpy")),
    "numpy": System("NumPy by hand", "NumPy", ("numpy", "scipy")),
    "torch": System("PyTorch", "Torch", ("torch",), peer=True),
    "tf": System("TensorFlow eager", "TensorFlowEager", ("tensorflow-cpu",), peer=True),
    "tf-function": System("tf.function", "TensorFlowFunction", ("tensorflow-cpu",), peer=True),
    "jax": System("jax.jit", "Jax", ("jax", "jaxlib"), peer=True),
    "remote": System("Teletape", "RemoteEager", ("teletape", "numpy"), server="teletape"),
    "remote-function": System("Teletape function", "RemoteFunction", ("teletape", "numpy"), server="teletape"),
    "remote-keys": System("Teletape, keys on", "RemoteEager", ("teletape", "numpy"), server="teletape-keys"),
    "remote-tls": System("Teletape, keys, TLS", "RemoteEager", ("teletape", "numpy"), server="teletape-tls"),
    "remote-nginx": System("Teletape, keys, nginx, TLS", "RemoteEager", ("teletape", "numpy"), server="teletape-nginx"),
    "remote-unix": System("Teletape, Unix socket", "RemoteEager", ("teletape", "numpy"), server="teletape-unix"),
    "fastapi": System(
        "FastAPI + PyTorch", "FastApi", ("fastapi", "uvicorn", "httpx", "torch"), peer=True, server="fastapi"
    ),
    "tf-remote": System(
        "TensorFlow, remote eager", "TensorFlowRemote", ("tensorflow-cpu",), peer=True, server="tensorflow"
    ),
    "tf-remote-function": System(
        "TensorFlow, remote function",
        "TensorFlowRemoteFunction",
        ("tensorflow-cpu",),
        peer=True,
        server="tensorflow",
    ),
    "floor": System("floor: raw bodies, no engine", "Floor", ("uvicorn", "numpy"), server="floor"),
    "health": System("raw health request", "Health", ("teletape",), server="teletape"),
    "rest": System("Teletape, a named function", "RestFunction", ("teletape", "numpy"), server="teletape-keys"),
    "rest-open": System("the same without keys", "RestFunction", ("teletape", "numpy"), server="teletape"),
    "rest-run": System("Teletape, POST /v1/run", "RestRun", ("teletape", "numpy"), server="teletape-keys"),
    "published": System("Teletape, a published function", "Published", ("teletape", "numpy"), server="teletape"),
    "published-exact": System(
        "Teletape, each call by itself", "PublishedExact", ("teletape", "numpy"), server="teletape"
    ),
    "fastapi-bare": System(
        "FastAPI + PyTorch, called over a bare socket",
        "Floor",
        ("fastapi", "uvicorn", "torch"),
        peer=True,
        server="fastapi",
    ),
    "fastapi-numpy": System(
        "FastAPI + NumPy by hand", "FastApiNumPy", ("fastapi", "uvicorn", "numpy"), server="fastapi-numpy"
    ),
    "service": System("teletape_client", "ServiceClient", ("teletape", "httpx", "numpy"), server="teletape"),
    "httpx": System("httpx by hand", "HttpxByHand", ("httpx", "numpy"), server="teletape"),
    "async-service": System(
        "teletape_client, tasks", "AsyncServiceClient", ("teletape", "httpx", "numpy"), server="teletape"
    ),
    "async-httpx": System("httpx by hand, tasks", "AsyncHttpxByHand", ("httpx", "numpy"), server="teletape"),
    "tcp": System("loopback TCP", "Tcp", ("numpy",), server="tcp"),
}
