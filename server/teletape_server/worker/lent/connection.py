"""A connection that is lent, as the process that serves it knows it."""

from __future__ import annotations

import socket
import time

from teletape_server.ipc.heads import AnswerHeads, Approval, HeadBytes
from teletape_server.ipc.leases import Times
from teletape_server.ipc.page import Slot
from teletape_server.ipc.token import Token


class LentConnection:
    """A connection that is lent.

    Args:
        id: Its number.
        slot: Its place in the page.
        approval: What the server has approved.
        times: What answers say of the session's end, when it was lent.
        sock, token: The connection, and the right to use it.

    Attributes:
        id, slot, approval, times, sock, token: The same.
        lent: When it was lent.
        head, answers: The heads of its requests, and of their answers.
        until: When the rest of a request has to be there; None: none has begun to come.
        is_polled: Whether it is known at once that something comes.
        is_waiting: Whether it has a request that waits for its turn.
        is_withheld: Whether its answer waits.
        is_gone: Whether the server has let go of it while one of them was so.
    """

    __slots__ = (
        "answers",
        "approval",
        "head",
        "id",
        "is_gone",
        "is_polled",
        "is_waiting",
        "is_withheld",
        "lent",
        "slot",
        "sock",
        "times",
        "token",
        "until",
    )

    def __init__(
        self, id: int, slot: Slot, approval: Approval, times: Times, sock: socket.socket, token: Token
    ) -> None:
        self.id, self.slot, self.approval, self.times, self.sock, self.token = id, slot, approval, times, sock, token
        self.lent = time.monotonic()
        self.head = HeadBytes(approval.before, approval.after)
        self.answers = AnswerHeads(approval.pattern, approval.request_id)
        self.until: float | None = None
        self.is_polled = True
        self.is_waiting = self.is_withheld = self.is_gone = False
