"""A client for services: gradients from a Teletape server over its REST interface, with NumPy arrays in and out.

from teletape_client import Client

with Client("https://gpu-box:8470", api_key="…") as client, client.sessions.create() as session:
    loss = session.functions.create(text="loss = mean((x @ w - y) ** 2)")
    answer = loss.value_and_gradient(x=x, y=y, w=w, wrt=["w"])
    answer.values["loss"], answer["w"]

It needs httpx and NumPy alone; neither the engine nor the SDK is loaded.
"""

from teletape_client import models
from teletape_client.base import RawResponse
from teletape_client.client import VERSION as __version__
from teletape_client.client import AsyncClient, Client
from teletape_client.errors import (
    AnswerDroppedError,
    AuthenticationError,
    BusyError,
    ConflictError,
    DeadlineExceededError,
    InvalidRequestError,
    NoAnswerError,
    NotFoundError,
    RequestCancelledError,
    ResourceExhaustedError,
    ServerError,
    ServiceError,
    SessionEndedError,
)
from teletape_client.running import AsyncRunning, Running, SessionEvent
from teletape_client.tensors.values import SparseGradient

__all__ = [
    "AnswerDroppedError",
    "AsyncClient",
    "AsyncRunning",
    "AuthenticationError",
    "BusyError",
    "Client",
    "ConflictError",
    "DeadlineExceededError",
    "InvalidRequestError",
    "NoAnswerError",
    "NotFoundError",
    "RawResponse",
    "RequestCancelledError",
    "ResourceExhaustedError",
    "Running",
    "ServerError",
    "ServiceError",
    "SessionEndedError",
    "SessionEvent",
    "SparseGradient",
    "__version__",
    "models",
]
