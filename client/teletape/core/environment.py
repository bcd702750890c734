"""The environment variables that the SDK reads, each in a function; no other module of it reads TELETAPE_* ones.

They are read at each call, so that a program may set them until the value is first needed: TELETAPE_PLANS until its
first op or connection.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

DATASET_BYTES: Final = 256 << 20  #: Arrays of a dataset up to this size stay on the server.
_FALSE: Final = frozenset(("0", "false", "no"))


def url() -> str | None:
    """Returns the server's address (TELETAPE_URL), or None: tensors live in this process."""
    return os.environ.get("TELETAPE_URL") or None


def api_key() -> str | None:
    """Returns the key for the server (TELETAPE_API_KEY), or None."""
    return os.environ.get("TELETAPE_API_KEY")


def allow_insecure() -> bool:
    """Whether the key may be sent over plain HTTP to another machine (TELETAPE_ALLOW_INSECURE); False by default."""
    return os.environ.get("TELETAPE_ALLOW_INSECURE", "0") not in _FALSE


def device() -> str | None:
    """Returns the device of a session in this process (TELETAPE_DEVICE: cpu, gpu, gpu:N or auto), or None: the CPU."""
    return os.environ.get("TELETAPE_DEVICE")


def lazy() -> bool:
    """Whether commands wait until a value is read (TELETAPE_LAZY); True by default."""
    return os.environ.get("TELETAPE_LAZY", "1") not in _FALSE


def offload_loops() -> bool | None:
    """Whether long loops run as one command on a server (TELETAPE_OFFLOAD_LOOPS); None: if they only compute."""
    value = os.environ.get("TELETAPE_OFFLOAD_LOOPS", "")
    return value not in _FALSE if value else None


def call_sites() -> bool:
    """Whether the program's lines are recorded with its ops (TELETAPE_WHERE); True by default."""
    return os.environ.get("TELETAPE_WHERE", "1") not in _FALSE


def progress() -> bool | None:
    """Whether to show the progress of a batch (TELETAPE_PROGRESS); None: on a terminal or in a notebook."""
    value = os.environ.get("TELETAPE_PROGRESS", "")
    return value not in _FALSE if value else None


def keras_backend() -> str:
    """Returns the backend that Keras would choose: KERAS_BACKEND, or that of its configuration file."""
    named = os.environ.get("KERAS_BACKEND")
    if named:
        return named
    folder = os.environ.get("KERAS_HOME")
    file = (Path(folder) if folder else Path.home() / ".keras") / "keras.json"
    try:
        return str(json.loads(file.read_text()).get("backend", "tensorflow"))
    except (OSError, ValueError, AttributeError):
        return "tensorflow"


@contextmanager
def keras_backend_set(name: str) -> Iterator[None]:
    """Sets KERAS_BACKEND for the duration of the block."""
    before = os.environ.get("KERAS_BACKEND")
    os.environ["KERAS_BACKEND"] = name
    try:
        yield
    finally:
        if before is None:
            del os.environ["KERAS_BACKEND"]
        else:
            os.environ["KERAS_BACKEND"] = before


def plans() -> str | None:
    """Returns how functions run in this process (TELETAPE_PLANS: on, off, python or force), or None: on."""
    return os.environ.get("TELETAPE_PLANS")


def blas_threads() -> int | None:
    """Returns the threads that NumPy's matrix products may use (OMP_NUM_THREADS and the like); None: all cores."""
    texts = (os.environ.get(name, "") for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"))
    return next((int(text) for text in texts if text.isdecimal() and int(text)), None)


def everything() -> dict[str, str]:
    """Returns all TELETAPE_* variables that are set, for a report; also the server's and the engine's."""
    return {name: os.environ[name] for name in sorted(os.environ) if name.startswith("TELETAPE_")}


def dataset_bytes() -> int:
    """Returns the bytes up to which the arrays of a dataset stay on the server (TELETAPE_DATASET_BYTES)."""
    return int(os.environ.get("TELETAPE_DATASET_BYTES") or DATASET_BYTES)
