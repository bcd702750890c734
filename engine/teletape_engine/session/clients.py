"""The clients of a session. Each sends a sequence of batches; its last answer is kept, so that it can safely retry."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from teletape_engine.commands import Batch
from teletape_engine.commands.results import Answer, Fetched, SlicesArrays
from teletape_engine.errors import OutOfTurnError, SequenceConflictError, UnknownIdError

CLIENT_BITS: Final = 40  #: The ids that a client makes are client << 40 | counter.
FIRST_CLIENT_ID: Final = 1 << CLIENT_BITS  #: Ids from here on belong to clients; those below may come in any order.


@dataclass(slots=True)
class _Client:
    """The place of one client in its sequence.

    Attributes:
        seq: The sequence number of its next batch.
        nonce: Of its last batch.
        answer: To its last batch.
    """

    seq: int = 1
    nonce: bytes = b""
    answer: Answer | None = None


class Clients:
    """The clients by number, from 1 up."""

    def __init__(self) -> None:
        self._clients: dict[int, _Client] = {}

    def attach(self) -> dict[str, int]:
        """Adds a client. Returns its number, its first sequence number and its first free id, by field name."""
        client = len(self._clients) + 1
        self._clients[client] = _Client()
        return {"client": client, "seq": 1, "first_id": client << CLIENT_BITS}

    def last_answer(self, client: int, seq: int, nonce: bytes) -> Answer | None:
        """The answer to a client's last batch if it had this number and nonce, else None."""
        entry = self._clients.get(client)
        return entry.answer if entry is not None and (seq, nonce) == (entry.seq - 1, entry.nonce) else None

    def answer_to_retry(self, batch: Batch) -> Answer | None:
        """The kept answer if the batch repeats its client's last one; None: it is the client's next batch.

        Raises:
            UnknownIdError: The client is not attached.
            SequenceConflictError: The last batch had this number, and was another batch.
            OutOfTurnError: The number is not the client's next.
        """
        entry = self._clients.get(batch.client)
        if entry is None:
            raise UnknownIdError(f"client {batch.client} is not attached to this session: attach first")
        if batch.seq == entry.seq:
            return None
        if batch.seq == entry.seq - 1 and entry.answer is not None:
            if batch.nonce == entry.nonce:
                return entry.answer
            raise SequenceConflictError(
                f"client {batch.client} has sent another batch as seq {batch.seq}: two programs use one client number; "
                "attach again to get another",
                expected=entry.seq,
            )
        raise OutOfTurnError(f"client {batch.client}: expected seq {entry.seq}, found {batch.seq}", expected=entry.seq)

    def keep_answer(self, batch: Batch, answer: Answer) -> None:
        """Keeps the answer for a retry, and moves the client on to its next batch."""
        entry = self._clients[batch.client]
        entry.answer, entry.nonce, entry.seq = answer, batch.nonce, batch.seq + 1

    def kept_arrays(self) -> Iterator[np.ndarray[Any, Any]]:
        """The arrays on the host that kept answers hold."""
        for entry in self._clients.values():
            for result in entry.answer.results if entry.answer is not None else ():
                if isinstance(result, Fetched):
                    yield from result.array[:2] if isinstance(result.array, SlicesArrays) else (result.array,)
