"""Why a request that would change a session is refused for want of space; those that only read are answered."""

from __future__ import annotations

from teletape_engine.errors import ResourceExhaustedError


def over_limit(used: int, more: int, limit: int) -> ResourceExhaustedError:
    """Returns the refusal for files that would have more bytes than they may.

    Args:
        used: Bytes of the session's files.
        more: Bytes that the request may add to them.
        limit: Bytes that they may have: by their own limit, or those that the limits of its key and group leave.
    """
    return ResourceExhaustedError(
        f"the files of the session have {used} bytes, and the request may add {more}: they may have {limit}, by "
        "disk_limit or by what the other sessions leave of disk_per_key (GET /v1/info) or of disk_bytes (GET /v1/me). "
        "The request was not executed; requests that only read are answered. End a session that you do not need: "
        "GET /v1/sessions has the bytes of each",
        used=used,
        asked=more,
        limit=limit,
    )


def disk_full(error: OSError) -> ResourceExhaustedError:
    """Returns the refusal for a disk that has too little space."""
    return ResourceExhaustedError(
        f"the session is on a disk that takes nothing more ({error}): the request was not executed; requests that only "
        "read are answered. Free space in the server's data folder",
        disk=str(error),
    )
