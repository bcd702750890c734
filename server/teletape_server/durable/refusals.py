"""Why a request that would change a session is refused for want of space; those that only read are answered."""

from __future__ import annotations

from teletape_engine.errors import ResourceExhaustedError


def over_limit() -> ResourceExhaustedError:
    """Returns the refusal for files that have as many bytes as they may."""
    return ResourceExhaustedError(
        "the files of the session, or those of all sessions of its key, have as many bytes as they may (disk_limit and "
        "disk_per_key of GET /v1/info): the request was not executed; requests that only read are answered. End a "
        "session that you do not need: GET /v1/sessions has the bytes of each"
    )


def disk_full(error: OSError) -> ResourceExhaustedError:
    """Returns the refusal for a disk that has too little space."""
    return ResourceExhaustedError(
        f"the session is on a disk that takes nothing more ({error}): the request was not executed; requests that only "
        "read are answered. Free space in the server's data folder",
        disk=str(error),
    )
