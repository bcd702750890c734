"""Copies of the file with keys, limits, use and audit, each as of one moment, also while a server writes into it."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Final
from urllib.parse import quote

from teletape_server.identity.keys import StoreError

_SECONDS: Final = 30.0  # that a copy waits for a server that writes


def copy(source: str, target: str) -> None:
    """Copies such a file with SQLite's own backup, and reads all of the copy.

    Args:
        source: The file, which a server may have.
        target: The copy, which must not be there; only its user may read it.

    Raises:
        StoreError: What is in the file is damaged.
        OSError: A file cannot be read or written.
    """
    os.close(os.open(target, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600))
    with _opened(source) as original, _opened(target) as duplicate:
        original.backup(duplicate)
        [(verdict,)] = duplicate.execute("PRAGMA integrity_check(1)").fetchall()
        if verdict != "ok":
            raise StoreError(f"{source} is damaged: {verdict}")
    with open(target, "rb+") as written:
        os.fsync(written.fileno())


def keys_in(path: str) -> int:
    """Returns how many API keys such a file has, with those that have ended.

    Raises:
        StoreError: What is in the file is damaged.
    """
    with _opened(path) as connection:
        [(count,)] = connection.execute("SELECT count(*) FROM teletape_keys").fetchall()
    return int(count)


@contextmanager
def _opened(path: str) -> Iterator[sqlite3.Connection]:
    """A connection to a file that is there. It may write: a statement that a kill has cut off is taken back."""
    try:
        with closing(sqlite3.connect(f"file:{quote(path)}?mode=rw", uri=True, timeout=_SECONDS)) as connection:
            yield connection
    except sqlite3.Error as error:
        raise StoreError(f"{path} cannot be read: {error}") from None
