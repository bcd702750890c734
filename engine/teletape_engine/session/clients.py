"""The clients of a session. Each sends a sequence of batches; its last answer is kept, so that it can safely retry.

An answer is kept until the client's next batch, its end, or as long as `forget_old_answers` and `KEPT_BYTES` say.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from teletape_engine.commands import Batch, Repetition
from teletape_engine.commands.results import Answer, Fetched, Result, SlicesArrays
from teletape_engine.errors import (
    AnswerDroppedError,
    InvalidArgumentError,
    OutOfTurnError,
    SequenceConflictError,
    UnknownIdError,
)

KEPT_BYTES: Final = 64 << 20  #: Bytes of arrays in kept answers; beyond that the oldest go, but never the latest.
CLIENT_BITS: Final = 40  #: The ids that a client makes are client << 40 | counter.
FIRST_CLIENT_ID: Final = 1 << CLIENT_BITS  #: Ids from here on belong to clients; those below may come in any order.


@dataclass(slots=True)
class _Client:
    """The place of one client in its sequence.

    Attributes:
        seq: The sequence number of its next batch.
        nonce: Of its last batch.
        answer: To its last batch; None: there was none, or it is not kept any more.
        nbytes: Of the answer's arrays.
        old: Whether `forget_old_answers` has met this answer before.
    """

    seq: int = 1
    nonce: bytes = b""
    answer: Answer | None = None
    nbytes: int = 0
    old: bool = False

    def forget(self) -> None:
        """Keeps the answer no more."""
        self.answer, self.nbytes = None, 0


def place(client: int) -> dict[str, int]:
    """Returns a new client's number, its first sequence number and its first free id, by field name."""
    return {"client": client, "seq": 1, "first_id": client << CLIENT_BITS}


class Clients:
    """The clients by number; a number is never used twice. The session chooses odd numbers, callers even ones."""

    def __init__(self) -> None:
        self._clients: dict[int, _Client] = {}  # the one that was answered last is last
        self._last = [0, -1]  # the highest even number and the highest odd one

    def attach(self, number: int = 0) -> dict[str, int]:
        """Adds a client; returns its `place`.

        Args:
            number: The number that it gets; 0: the next odd one.

        Raises:
            InvalidArgumentError: The number is odd, or not greater than those that were named before.
        """
        if number and (number % 2 or number <= self._last[0]):
            raise InvalidArgumentError(
                f"client.attach: client={number} is not free: name an even number greater than {self._last[0]}, or none"
            )
        client = number or self._last[1] + 2
        self._last[client % 2] = client
        self._clients[client] = _Client()
        return place(client)

    def note_named(self, last: int) -> None:
        """Notes that even numbers up to this one may have been given to clients that are not known here."""
        self._last[0] = max(self._last[0], last)

    def detach(self, client: int) -> None:
        """Ends a client, which may have ended before; what it made stays.

        Raises:
            UnknownIdError: There was never such a client.
        """
        if self._clients.pop(client, None) is None and not self._was_attached(client):
            raise UnknownIdError(f"client.detach: there is no client {client} in this session")

    def _was_attached(self, client: int) -> bool:
        return 0 < client <= self._last[client % 2]

    def last_answer(self, client: int, seq: int, nonce: bytes) -> Answer | None:
        """The answer to a client's last batch if it had this number and nonce, else None."""
        entry = self._clients.get(client)
        return entry.answer if entry is not None and (seq, nonce) == (entry.seq - 1, entry.nonce) else None

    def answer_to_retry(self, batch: Batch | Repetition) -> Answer | None:
        """The kept answer if the batch repeats its client's last one; None: it is the client's next batch.

        Raises:
            UnknownIdError: The client is not attached.
            SequenceConflictError: The last batch had this number, and was another batch.
            AnswerDroppedError: It repeats the last one, whose answer is not kept any more.
            OutOfTurnError: The number is not the client's next.
        """
        entry = self._clients.get(batch.client)
        if entry is None:
            state = "was detached from" if self._was_attached(batch.client) else "is not attached to"
            raise UnknownIdError(f"client {batch.client} {state} this session: attach first")
        if batch.seq == entry.seq:
            return None
        if 0 < batch.seq == entry.seq - 1:
            if batch.nonce == entry.nonce and entry.answer is not None:
                return entry.answer
            if batch.nonce == entry.nonce:
                raise AnswerDroppedError(
                    f"client {batch.client}: seq {batch.seq} was executed, and its answer is no longer stored: nothing "
                    "was executed again; read its results by their ids",
                    expected=entry.seq,
                )
            raise SequenceConflictError(
                f"client {batch.client} has sent another batch as seq {batch.seq}: two programs use one client number; "
                "attach again to get another",
                expected=entry.seq,
            )
        raise OutOfTurnError(f"client {batch.client}: expected seq {entry.seq}, found {batch.seq}", expected=entry.seq)

    def keep_answer(self, batch: Batch | Repetition, answer: Answer) -> None:
        """Keeps the answer for a retry, and moves the client on to its next batch."""
        entry = self._clients.pop(batch.client, None)
        if entry is None:  # its own batch has detached it
            return
        self._clients[batch.client] = entry
        entry.answer, entry.nonce, entry.seq, entry.old = answer, batch.nonce, batch.seq + 1, False
        entry.nbytes = sum([array.nbytes for array in _arrays(answer)]) if answer.results else 0
        if entry.nbytes:
            self._forget_beyond(KEPT_BYTES, entry)

    def _forget_beyond(self, most: int, latest: _Client) -> None:
        total = sum([entry.nbytes for entry in self._clients.values()])
        for entry in self._clients.values():
            if total <= most or entry is latest:
                return
            total -= entry.nbytes
            entry.forget()

    def forget_old_answers(self) -> None:
        """Ends the keeping of answers that were kept at the call before this one already."""
        for entry in self._clients.values():
            if entry.old:
                entry.forget()
            entry.old = True

    def written(self) -> dict[str, Any]:
        """The places of all clients, as JSON-able data for `read`."""
        clients = [[number, entry.seq, entry.nonce.hex(), entry.old] for number, entry in self._clients.items()]
        return {"last": [*self._last], "clients": clients}

    def read(self, written: Mapping[str, Any], answers: Mapping[int, Answer]) -> None:
        """Takes the places of `written`, and the answers of `kept_answers`, as far as they are kept."""
        self._last = [*written["last"]]
        for number, seq, nonce, old in written["clients"]:
            answer = answers.get(number)
            nbytes = 0 if answer is None else sum([array.nbytes for array in _arrays(answer)])
            self._clients[number] = _Client(seq, bytes.fromhex(nonce), answer, nbytes, old)

    def kept_answers(self) -> dict[int, Answer]:
        """The last answers that are kept, by client."""
        return {number: entry.answer for number, entry in self._clients.items() if entry.answer is not None}

    @property
    def last_named(self) -> int:
        """The highest number that a caller has chosen."""
        return self._last[0]

    def kept_results(self) -> list[tuple[Result, ...]]:
        """The results that are kept, for each client."""
        answers = [entry.answer for entry in self._clients.values()]
        return [() if answer is None else answer.results for answer in answers]

    def kept_arrays(self) -> Iterator[np.ndarray[Any, Any]]:
        """The arrays on the host that kept answers hold."""
        for entry in self._clients.values():
            if entry.answer is not None:
                yield from _arrays(entry.answer)


def _arrays(answer: Answer) -> Iterator[np.ndarray[Any, Any]]:
    for result in answer.results:
        if isinstance(result, Fetched):
            yield from result.array[:2] if isinstance(result.array, SlicesArrays) else (result.array,)
