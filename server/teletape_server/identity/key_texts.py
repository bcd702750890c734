"""The texts of API keys: tt_ID_SECRET. A server keeps their digests alone."""

from __future__ import annotations

import hashlib
import secrets
import string
from typing import Final

PREFIX: Final = "tt_"
_ID_LENGTH: Final = 8  # letters and digits: enough that two keys of a server never have the same
_SECRET_BYTES: Final = 32  # with them, a digest without salt or rounds cannot be reversed by trying
_LETTERS: Final = string.ascii_lowercase + string.digits


def new_text() -> tuple[str, str]:
    """Returns the id of a new key, and the key."""
    id = "".join(secrets.choice(_LETTERS) for _ in range(_ID_LENGTH))
    return id, f"{PREFIX}{id}_{secrets.token_urlsafe(_SECRET_BYTES)}"


def digest(key: str) -> bytes:
    """Returns what is kept of a key."""
    return hashlib.sha256(key.encode("utf-8", "surrogateescape")).digest()


def presented_key(authorization: str | None, x_api_key: str | None) -> str | None:
    """Returns the key in the headers `Authorization: Bearer …` or `X-API-Key`, or None.

    Another scheme of Authorization is a proxy's own, and does not hide the second header.
    """
    scheme, _, key = (authorization or "").partition(" ")
    bearer = key.strip() if scheme.lower() == "bearer" else ""
    return bearer or x_api_key or None
