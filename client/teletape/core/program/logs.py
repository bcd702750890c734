"""The logger of `tf.get_logger()`, and messages that are logged only the first few times."""

from __future__ import annotations

import logging
import sys
from typing import Final

from teletape_engine.locks import ReentrantLock

_lock: Final = ReentrantLock()
_counts: Final[dict[str, int]] = {}
_configured = False


def get_logger() -> logging.Logger:
    """Returns the logger named "teletape", to which the SDK writes all warnings.

    The first call adds a handler, so that warnings are seen: stderr, `LEVEL:name:text`; unless the root logger has
    handlers already, which would repeat every line. In an interactive interpreter it writes to stdout, from level
    INFO.
    """
    global _configured
    logger = logging.getLogger("teletape")
    if not _configured:
        with _lock:
            if not _configured:
                if not logging.getLogger().handlers:
                    _show(logger)
                _configured = True
    return logger


def log_first_n(level: int, message: str, n: int, key: str) -> None:
    """Log `message` unless `n` messages of the same `key` have been logged by this process before.

    Args:
        level: The level, as in `logging`.
        message: The complete text.
        n: The largest number of times.
        key: The messages with the same key are counted together.
    """
    with _lock:
        times = _counts.get(key, 0)
        if times >= n:
            return
        _counts[key] = times + 1
    get_logger().log(level, "%s", message)


def _show(logger: logging.Logger) -> None:
    interactive = hasattr(sys, "ps1") or bool(sys.flags.interactive)
    if interactive:
        logger.setLevel(logging.INFO)
    handler = logging.StreamHandler(sys.stdout if interactive else sys.stderr)
    handler.setFormatter(logging.Formatter(logging.BASIC_FORMAT))
    logger.addHandler(handler)
