"""The server that has a folder for data: its address, and requests to it."""

from __future__ import annotations

import os
import ssl
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import quote

import httpx

from teletape_server.durable.folders import FOLDER, LOCK, is_in_use

_SECONDS: Final = 60.0  # that a request may take, such as one that parks a large session
_UNIX: Final = "unix://"
_KEYS: Final = "/v1/admin/keys"


class CommandError(Exception):
    """Raised when a command cannot be done; the message is for the operator."""


def note_address(data_dir: str, address: str) -> None:
    """Writes down the address of the server that has a folder, where commands look for it."""
    with open(os.path.join(data_dir, FOLDER, LOCK), "w", encoding="utf-8") as file:
        file.write(address)


def address_of_server(data_dir: str) -> str | None:
    """Returns the address of the server that has a folder, empty if it has not said so yet; None: there is none.

    Raises:
        OSError: The folder cannot be read.
    """
    path = os.path.join(data_dir, FOLDER)
    if not is_in_use(path):
        return None
    with open(os.path.join(path, LOCK), encoding="utf-8") as file:
        return file.read()


class RunningServer:
    """A server over HTTP.

    Args:
        address: As `teletape serve` prints it, or unix:///PATH.
        key: An API key; None: the server needs none. That of an admin sees the sessions of all keys.
    """

    def __init__(self, address: str, key: str | None) -> None:
        self._address = address
        headers = {} if key is None else {"Authorization": f"Bearer {key}"}
        is_unix = address.startswith(_UNIX)
        self._http = httpx.Client(
            transport=httpx.HTTPTransport(
                uds=address.removeprefix(_UNIX) if is_unix else None, verify=ssl.create_default_context()
            ),
            base_url="http://localhost" if is_unix else address,
            headers=headers,
            timeout=_SECONDS,
        )

    def sessions(self) -> list[dict[str, Any]]:
        """Returns the facts of the sessions that the key sees.

        Raises:
            CommandError: The server refuses, or does not answer.
        """
        sessions: list[dict[str, Any]] = []
        path: str | None = "/v1/sessions"
        while path is not None:
            listed = self._request("GET", path)
            sessions += listed["sessions"]
            path = listed["next"] and f"/v1/sessions?after={quote(listed['next'])}"
        return sessions

    def session(self, session: str) -> dict[str, Any]:
        """Returns the facts of OWNER:ID; the audit has that an admin has looked.

        Raises:
            CommandError: As in `sessions`.
        """
        facts: dict[str, Any] = self._request("GET", f"/v1/sessions/{quote(session)}")
        return facts

    def park(self, session: str) -> dict[str, Any]:
        """Ends the process of OWNER:ID; returns its facts.

        Raises:
            CommandError: As in `sessions`.
        """
        facts: dict[str, Any] = self._request("POST", f"/v1/sessions/{quote(session)}/park")
        return facts

    def end(self, session: str) -> None:
        """Ends OWNER:ID, and removes its files.

        Raises:
            CommandError: As in `sessions`.
        """
        self._request("DELETE", f"/v1/sessions/{quote(session)}")

    def keys(self) -> list[dict[str, Any]]:
        """Returns the facts of the API keys that the key sees.

        Raises:
            CommandError: As in `sessions`.
        """
        keys: list[dict[str, Any]] = self._request("GET", _KEYS)["keys"]
        return keys

    def create_key(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """Creates an API key; returns its facts, with the key itself.

        Raises:
            CommandError: As in `sessions`.
        """
        facts: dict[str, Any] = self._request("POST", _KEYS, body)
        return facts

    def rotate_key(self, id: str, overlap: float) -> dict[str, Any]:
        """Replaces an API key, which stays valid for some seconds; returns the facts of the new one as `create_key`.

        Raises:
            CommandError: As in `sessions`.
        """
        facts: dict[str, Any] = self._request("POST", f"{_KEYS}/{quote(id)}/rotate", {"overlap": overlap})
        return facts

    def revoke_tokens(self, owner: str) -> None:
        """Ends the tokens that an issuer has given an owner.

        Raises:
            CommandError: As in `sessions`.
        """
        self._request("DELETE", f"/v1/admin/tokens/{quote(owner)}")

    def revoke_key(self, id: str) -> None:
        """Ends an API key.

        Raises:
            CommandError: As in `sessions`.
        """
        self._request("DELETE", f"{_KEYS}/{quote(id)}")

    def set_limits(self, account: str, limits: Mapping[str, float]) -> None:
        """Replaces the limits that an account has of its own.

        Raises:
            CommandError: As in `sessions`.
        """
        self._request("PUT", f"/v1/admin/limits/{quote(account)}", limits)

    def close(self) -> None:
        """Closes the connection."""
        self._http.close()

    def _request(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Any:
        try:
            response = self._http.request(method, path, json=body)
        except httpx.HTTPError as error:
            why = f"the server at {self._address} does not answer ({error}): name its address with --url"
            raise CommandError(why) from None
        if response.is_success:
            return response.json() if response.content else None
        try:
            why = response.json()["detail"]
        except (ValueError, KeyError, TypeError):
            why = f"status {response.status_code}"
        hint = " (--api-key, or TELETAPE_API_KEY)" if response.status_code == httpx.codes.UNAUTHORIZED else ""
        raise CommandError(f"the server at {self._address} refuses: {why}{hint}")
