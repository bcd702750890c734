"""ETags of variables, and the conditions of requests about them: If-Match and If-None-Match (RFC 9110, section 13).

A session's process runs one request after the other, so nothing comes between the comparison and the assignment. A tag
says which variable of which session it is, by its number among all that the session has made, and its version; each
form of the value (JSON, all of it, bytes) has a suffix of its own, and gzip adds another. A condition is about the
version: any tag of the version fulfils it.
"""

from __future__ import annotations

import dataclasses
import re
import secrets
from typing import Final
from weakref import WeakKeyDictionary

from teletape_engine.commands import Id
from teletape_engine.errors import TeletapeError
from teletape_engine.session.session import Session
from teletape_server.handlers.bodies import RAW_TYPE, InvalidRequestError
from teletape_server.handlers.methods import Request, Result
from teletape_wire.safetensors.layout import SAFETENSORS_TYPE

_TAGS: Final = re.compile(r'\s*(W/)?"([\x21\x23-\x7e\x80-\xff]*)"\s*')


class PreconditionFailedError(TeletapeError):
    """Raised for a request whose If-Match or If-None-Match is not fulfilled: nothing has changed."""

    code = "precondition_failed"


#: What no tag of another session has.
_WORDS: Final[WeakKeyDictionary[Session, str]] = WeakKeyDictionary()


def name_session(session: Session, word: str) -> None:
    """Sets the word that the tags of a session have, which goes on in another process."""
    _WORDS[session] = word


def _word(session: Session) -> str:
    word = _WORDS.get(session)
    if word is None:
        word = _WORDS[session] = secrets.token_hex(4)
    return word


def version_tag(session: Session, id: Id) -> str:
    """Returns what the ETags of a variable's present version begin with.

    Raises:
        UnknownIdError, ReleasedIdError: The id names nothing.
    """
    number, version = session.version_of(id)
    return f"{version}.{number}.{_word(session)}"


def tagged(result: Result, version: str, request: Request) -> Result:
    """Returns the result with its ETag."""
    accept = request.params["accept"]
    forms = {RAW_TYPE: "bytes", SAFETENSORS_TYPE: "named"}
    form = forms.get(accept, "all" if request.params["full"] else "")
    tag = f'"{version}-{form}"' if form else f'"{version}"'
    headers = {**result.facts.get("headers", {}), "ETag": tag, "Vary": "Accept"}
    return dataclasses.replace(result, facts={**result.facts, "headers": headers})


def check(request: Request, id: Id, version: str) -> None:
    """Checks the conditions of a request that changes a variable.

    Raises:
        PreconditionFailedError: One is not fulfilled.
        InvalidRequestError: It is none.
    """
    wanted, unwanted = request.params.get("if_match"), request.params.get("if_none_match")
    if wanted is not None and not _matches(wanted, version, name="If-Match", weakly=False):
        raise PreconditionFailedError(
            f"the variable {id!r} has changed: its version is now {version.partition('.')[0]}, and If-Match has "
            f"{wanted[:100]}. Nothing was changed: GET the variable, and send the request again with its new ETag",
            etag=f'"{version}"',
        )
    if unwanted is not None and _matches(unwanted, version, name="If-None-Match", weakly=True):
        raise PreconditionFailedError(
            f"the variable {id!r} is as If-None-Match says: {unwanted[:100]}. Nothing was changed", etag=f'"{version}"'
        )


def is_known(request: Request, version: str) -> bool:
    """Returns whether the caller of a GET has this version already.

    Raises:
        InvalidRequestError: If-None-Match is not a list of tags.
    """
    known = request.params.get("if_none_match")
    return known is not None and _matches(known, version, name="If-None-Match", weakly=True)


def _matches(header: str, version: str, *, name: str, weakly: bool) -> bool:
    """Returns whether a header names the version; a weak tag does for a GET alone."""
    if header.strip() == "*":
        return True
    is_named = False
    for part in header.split(","):
        tag = _TAGS.fullmatch(part)
        if tag is None:
            raise InvalidRequestError(
                f'{name} is * or ETags in quotes, separated by commas, such as "{version}"; found {header[:100]!r}'
            )
        is_named |= tag[2].partition("-")[0] == version and (weakly or not tag[1])
    return is_named
