"""Which rows each training step takes: epoch after epoch, in order or shuffled, as arrays of row numbers."""

from __future__ import annotations

from collections import deque

import numpy as np

Rows = np.ndarray[tuple[int, ...], np.dtype[np.int64]]


class BatchOrder:
    """The rows of the next training steps.

    Args:
        rows: Rows in all.
        size: Rows in a batch; None: each row is a batch, without an axis of its own.
        shuffle: A seed; None: the rows are taken in their order.
        drop_remainder: Whether an epoch leaves out the rows that do not fill a batch.
    """

    def __init__(self, rows: int, size: int | None, shuffle: int | None, *, drop_remainder: bool = False) -> None:
        self._rows, self._size, self._drops = rows, size, drop_remainder
        self._random = None if shuffle is None else np.random.default_rng(shuffle)
        self._pending: deque[Rows] = deque()

    @property
    def steps(self) -> int:
        """The steps of an epoch."""
        if self._size is None:
            return self._rows
        return self._rows // self._size if self._drops else -(-self._rows // self._size)

    def take(self, steps: int) -> list[Rows]:
        """Returns the rows of the next steps, one entry of the first axis a step; steps of one size are together."""
        groups: list[list[Rows]] = []
        while steps:
            if not self._pending:
                self._pending.extend(self._epoch())
            piece = self._pending.popleft()
            if len(piece) > steps:
                self._pending.appendleft(piece[steps:])
                piece = piece[:steps]
            steps -= len(piece)
            if groups and groups[-1][0].shape[1:] == piece.shape[1:]:
                groups[-1].append(piece)
            else:
                groups.append([piece])
        return [np.concatenate(group) for group in groups]

    def _epoch(self) -> list[Rows]:
        order = np.arange(self._rows) if self._random is None else self._random.permutation(self._rows)
        if self._size is None:
            return [order]
        whole = self._rows // self._size * self._size
        pieces = [order[:whole].reshape(-1, self._size)]
        if whole < self._rows and not self._drops:
            pieces.append(order[whole:].reshape(1, -1))
        return [piece for piece in pieces if len(piece)]
