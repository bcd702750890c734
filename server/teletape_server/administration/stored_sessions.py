"""Sessions in a folder for data that no server has."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any, Final

from teletape_server.durable.folders import FOLDER, GONE, Folder
from teletape_server.sessions.lifecycle import LOST, Phase
from teletape_server.sessions.record import record_of

#: What is not known of a session whose manifest cannot be read.
_UNKNOWN: Final = {"owner": "unknown", "durability": "unknown", "state": ["", None, ""]}


class StoredSession:
    """A session in a folder for data.

    Args:
        folder: Its own folder.
        manifest: What is known of it; see `SessionRecord`. None: nothing.

    Attributes:
        name: OWNER:ID; unknown:UID: that is not known.
        unreadable: Why no server has the session; empty: its manifest is there, and can be read.
    """

    def __init__(self, folder: Folder, manifest: dict[str, Any] | None) -> None:
        self.folder, self.unreadable = folder, ""
        is_own = manifest is not None and manifest.get("uid", self.uid) == self.uid
        self.manifest = {**_UNKNOWN, "id": self.uid, **(manifest if manifest and is_own else {})}
        try:
            record_of(manifest, self.uid)
        except ValueError as error:
            self.unreadable = str(error)
            self.manifest["state"] = [Phase.DAMAGED.value, None, self.unreadable]
        self.name = f"{self.manifest['owner']}:{self.manifest['id']}"

    @property
    def uid(self) -> str:
        """The name of its folder."""
        return os.path.basename(self.folder.path)

    def facts(self) -> dict[str, Any]:
        """Returns its manifest, with members as GET /v1/sessions has them."""
        phase, _, why = self.manifest["state"]
        state = phase if phase in LOST else "parked"  # whatever it was: now it has no process
        more = {"log_to_run": phase not in LOST and self.folder.has_log_to_run(), "folder": self.folder.path}
        sizes = {"disk_bytes": self.folder.nbytes(), "bytes_in_use": 0}
        return {**self.manifest, "state": state, "why": why or None, **more, **sizes}


def stored_sessions(data_dir: str) -> Iterator[StoredSession]:
    """Yields the sessions in a folder for data, also while a server has it."""
    path = os.path.join(data_dir, FOLDER)
    for uid in sorted(os.listdir(path)) if os.path.isdir(path) else []:
        folder = Folder(os.path.join(path, uid))
        manifest = folder.manifest()
        if not uid.endswith(GONE) and (manifest is not None or folder.has_values()):
            yield StoredSession(folder, manifest)
