"""A function in all the forms that an adapter takes, and the number of requests that it costs."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import httpx

import teletape as tf
from teletape.adapters.programs import Program
from teletape.adapters.questions import Array, Question
from teletape.service import Client

NUMBERS = itertools.count()
#: Where a function runs.
WAYS = ("in this process", "over HTTP", "in a session", "published")


@dataclass(frozen=True)
class Formula:
    """A function, written for the SDK and as a text.

    Attributes:
        program: Of tensors.
        text: The same.
        inputs: The shapes of its inputs, by name, in order.
    """

    program: Callable[..., Any]
    text: str
    inputs: dict[str, list[Any]]


#: Functions of x and w: to one number, and to two.
NUMBER = Formula(
    lambda x, w: tf.reduce_sum(tf.tanh(tf.linalg.matvec(w, x)) ** 2 * x[0]),
    "y = sum(tanh(x @ w.T)**2 * x[0])",
    {"x": [3], "w": [2, 3]},
)
VECTOR = Formula(lambda x, w: tf.tanh(tf.linalg.matvec(w, x)), "y = tanh(x @ w.T)", {"x": [3], "w": [2, 3]})


class Requests:
    """The number of requests of a block."""

    count = 0


class Way:
    """One of `WAYS`."""

    def __init__(self, name: str, url: str, stack: ExitStack) -> None:
        self.name, self._stack, self._sent = name, stack, Requests()
        self.is_remote, self.is_service = name != "in this process", name in ("in a session", "published")
        if self.is_service:
            http = stack.enter_context(httpx.Client(event_hooks={"request": [self._note]}, trust_env=False))
            self._client = stack.enter_context(Client(url, http_client=http))
            self._session = stack.enter_context(self._client.sessions.create())
        elif name == "over HTTP":
            stack.enter_context(tf.connect(url))

    def _note(self, request: httpx.Request) -> None:
        self._sent.count += request.method == "POST"  # once the client looks up whether the function changes anything

    def function(self, formula: Formula) -> Any:
        """Returns the function as it is there."""
        if self.name == "in a session":
            return self._session.functions.create(text=formula.text, dtype="float64")
        if self.name != "published":
            return formula.program
        function = self._client.published[f"adapted{next(NUMBERS)}"]
        declared: Any = {name: {"shape": shape, "dtype": "float64"} for name, shape in formula.inputs.items()}
        function.publish({"text": formula.text, "dtype": "float64"}, declared)
        self._stack.callback(function.delete)
        return function

    @contextmanager
    def requests(self) -> Iterator[Requests]:
        """Counts the requests of a block; in this process there are none."""
        if self.name != "over HTTP":
            self._sent.count = 0
            yield self._sent
            return
        requests = Requests()
        with tf.session().profile() as profile:
            yield requests
        requests.count = profile.requests


class Counted:
    """A function of tensors that notes the questions to it, and whether they are about rows."""

    def __init__(self, program: Callable[..., Any]) -> None:
        self._program = Program(program, {})
        self.inputs = self._program.inputs
        self.questions: list[tuple[str, int | None]] = []

    def ask(
        self,
        question: Question,
        inputs: Sequence[Array],
        first: Sequence[Array] = (),
        second: Sequence[Array] = (),
        *,
        rows: bool = False,
    ) -> list[Array]:
        """Answers, and notes the question with the number of rows."""
        self.questions.append((question, len(inputs[0]) if rows else None))
        return self._program.ask(question, inputs, first, second, rows=rows)
