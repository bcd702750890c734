"""Where published functions are kept: in files, or, without a folder for them, until the server ends.

    FOLDER/published/names/NAME/name.json         whose it is, who sees it, its aliases, the order of its versions
    FOLDER/published/names/NAME/VERSION.json      the contract of a version
    FOLDER/published/weights/HASH.safetensors     weights; versions with the same ones share the file

A file is written under another name, and renamed when all of it is on the disk. What cannot be read is reported, and
never deleted. Processes that compute get a file of weights as a descriptor, and map it: all share the same memory.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final, Protocol

from teletape_engine.suggestions import with_nearest
from teletape_server.models.published.contract import LATEST, Name, Published, split_reference
from teletape_server.problems import Problem

_PIECE: Final = 16 << 20  # bytes that are written at once
_DELETED: Final = "."  # the beginning of the name of a folder that is being deleted
_TEMPORARY: Final = ".part"  # the end of the name of a file that is being written


class Store(Protocol):
    """Keeps names, versions and weights. Its methods may wait for a disk."""

    def all(self) -> list[Name]:
        """Returns everything that is kept."""

    def put(self, name: Name) -> None:
        """Keeps a name with its versions, in place of what was kept of it."""

    def remove(self, name: Name) -> None:
        """Deletes a name and its versions."""

    def put_weights(self, weights_hash: str, content: memoryview) -> None:
        """Keeps a file of weights under its hash."""

    def open_weights(self, weights_hash: str) -> int:
        """Returns a descriptor of a file of weights, to be closed by the caller.

        Raises:
            OSError: There is none.
        """

    def keep_weights(self, hashes: Iterable[str]) -> None:
        """Deletes the files of weights that have none of these hashes."""


class MemoryStore:
    """Implements `Store` in memory: all of it ends with the server."""

    def __init__(self) -> None:
        self._weights: dict[str, int] = {}

    def all(self) -> list[Name]:
        """As `Store.all`: nothing was there before."""
        return []

    def put(self, name: Name) -> None:
        """As `Store.put`: the server itself has it."""

    def remove(self, name: Name) -> None:
        """As `Store.remove`."""

    def put_weights(self, weights_hash: str, content: memoryview) -> None:
        """As `Store.put_weights`."""
        if weights_hash not in self._weights:
            file = os.memfd_create("teletape-weights", os.MFD_CLOEXEC)
            _write(file, content)
            self._weights[weights_hash] = file

    def open_weights(self, weights_hash: str) -> int:
        """As `Store.open_weights`."""
        file = self._weights.get(weights_hash)
        if file is None:
            raise FileNotFoundError(f"there are no weights {weights_hash}")
        return os.dup(file)

    def keep_weights(self, hashes: Iterable[str]) -> None:
        """As `Store.keep_weights`."""
        needed = set(hashes)
        for weights_hash in [*self._weights]:
            if weights_hash not in needed:
                os.close(self._weights.pop(weights_hash))


class FileStore:
    """Implements `Store` with files.

    Args:
        folder: The server's folder for data; it is made if there is none.

    Raises:
        OSError: It cannot be made.
    """

    def __init__(self, folder: str) -> None:
        self._names, self._weights = (Path(folder, "published", part) for part in ("names", "weights"))
        for path in (self._names, self._weights):
            path.mkdir(parents=True, exist_ok=True)

    def all(self) -> list[Name]:
        """As `Store.all`."""
        folders = [path for path in sorted(self._names.iterdir()) if path.is_dir()]
        return [self._read(path) for path in folders if not path.name.startswith(_DELETED)]

    def _read(self, folder: Path) -> Name:
        """Returns what a folder says, with what could not be read of it."""
        try:
            facts = json.loads((folder / "name.json").read_bytes())
            order = facts.pop("versions")
            name = Name(**{**facts, "group": tuple(facts["group"])})
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            return Name(folder.name, "", damage=f"{folder / 'name.json'} cannot be read: {error}")
        versions, damages = {}, []
        for version in order:
            try:
                versions[version] = self._version(folder / f"{version}.json")
            except (OSError, ValueError) as error:
                damages.append(f"version {version}: {error}")
        return Name(**{**vars(name), "versions": versions, "damage": "; ".join(damages)})

    def _version(self, path: Path) -> Published:
        """Returns a version.

        Raises:
            OSError, ValueError: It or its weights are not there, or were changed.
        """
        published = Published.from_json(json.loads(path.read_bytes()))
        if published.weights_hash:
            size = self._weights_path(published.weights_hash).stat().st_size
            if size != published.weights_bytes:
                raise ValueError(f"its weights have {size} bytes, and had {published.weights_bytes}: they were changed")
        return published

    def put(self, name: Name) -> None:
        """As `Store.put`."""
        folder = self._names / name.name
        folder.mkdir(exist_ok=True)
        for version, published in name.versions.items():
            path = folder / f"{version}.json"
            if not path.exists():
                _replace(path, _text(published.to_json()))
        _replace(folder / "name.json", _text(name.facts()))
        for path in folder.glob("*.json"):  # after the list of versions, which must have no file that is not there
            if path.stem not in name.versions and path.name != "name.json" and not name.damage:
                path.unlink()
        _sync(self._names)

    def remove(self, name: Name) -> None:
        """As `Store.remove`."""
        deleted = self._names / (_DELETED + name.name)
        if deleted.exists():  # the server has ended in the middle of an earlier deletion
            shutil.rmtree(deleted)
        (self._names / name.name).rename(deleted)
        _sync(self._names)
        shutil.rmtree(deleted)

    def put_weights(self, weights_hash: str, content: memoryview) -> None:
        """As `Store.put_weights`."""
        path = self._weights_path(weights_hash)
        if not path.exists():
            _replace(path, content)

    def open_weights(self, weights_hash: str) -> int:
        """As `Store.open_weights`."""
        return os.open(self._weights_path(weights_hash), os.O_RDONLY | os.O_CLOEXEC)

    def keep_weights(self, hashes: Iterable[str]) -> None:
        """As `Store.keep_weights`."""
        needed = set(hashes)
        for path in self._weights.glob("*.safetensors"):
            if path.stem not in needed:
                path.unlink()

    def _weights_path(self, weights_hash: str) -> Path:
        return self._weights / f"{weights_hash}.safetensors"


def store_of(folder: str | None) -> Store:
    """Returns the store of a server with that folder for data; None: it has none.

    Raises:
        OSError: The folder cannot be made.
    """
    return MemoryStore() if folder is None else FileStore(folder)


class Catalogue:
    """The published functions of a server.

    Args:
        store: Keeps them.

    Attributes:
        names: By name; each change makes another table, since changes come from threads.
        checked: Versions whose weights were compared with their hash since the server has started.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self.checked: set[str] = set()
        self.names = {name.name: name for name in store.all()}

    def visible(self, owner: str) -> list[Name]:
        """Returns those that the owner of a key may see, by name."""
        return [self.names[name] for name in sorted(self.names) if self.names[name].is_visible(owner)]

    def find(self, owner: str, reference: str, *, sees_all: bool = False) -> tuple[Name, Published]:
        """Returns the published function and the version that a reference names.

        Args:
            owner: Who asks for it.
            reference: Its name, or name@version, or name@alias.
            sees_all: Whether it need not be visible to the owner.

        Raises:
            Problem: unknown_id: there is none that the owner may see. internal: it cannot be read.
        """
        text, version = split_reference(reference)
        name = self.names.get(text)
        if name is None or not (sees_all or name.is_visible(owner)):
            message = f"no function is published as {text!r:.140}, or it is not for your key (GET /v1/published)"
            raise Problem(
                "unknown_id", with_nearest(message, text, [item.name for item in self.visible(owner)]), id=text[:140]
            )
        published = name.version(version)
        if published is None:
            if version == LATEST and name.damage:
                raise Problem("internal", f"the published function {text} cannot be read: {name.damage}")
            known = [*name.aliases, *name.versions]
            message = f"the published function {text} has no version or alias {version!r:.140}"
            raise Problem("unknown_id", with_nearest(message, version, known), id=reference[:280], known=known[:20])
        return name, published

    def put(self, name: Name) -> None:
        """Keeps a name; it may wait for a disk."""
        self._store.put(name)
        self.names = {**self.names, name.name: name}
        self._drop_weights()

    def put_weights(self, weights_hash: str, content: memoryview) -> None:
        """Keeps weights, before the version that has them; it may wait for a disk."""
        self._store.put_weights(weights_hash, content)

    def remove(self, name: Name) -> None:
        """Deletes a name and its versions; it may wait for a disk."""
        self.names = {other: item for other, item in self.names.items() if other != name.name}
        self._store.remove(name)
        self._drop_weights()

    def open_weights(self, weights_hash: str) -> int:
        """Returns a descriptor of weights; see `Store.open_weights`."""
        return self._store.open_weights(weights_hash)

    def newest(self, count: int) -> list[Published]:
        """Returns the latest versions of the names that were published last."""
        latest = [name.version(LATEST) for name in self.names.values()]
        published = [item for item in latest if item is not None]
        return sorted(published, key=lambda item: item.created, reverse=True)[:count]

    def _drop_weights(self) -> None:
        """Deletes weights that no version has; of what is damaged it is not known which it had."""
        if not any(name.damage for name in self.names.values()):
            versions = [item for name in self.names.values() for item in name.versions.values()]
            self._store.keep_weights({item.weights_hash for item in versions})


def _text(value: Any) -> memoryview:
    return memoryview(json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode())


def _write(file: int, content: memoryview) -> None:
    position = 0
    while position < len(content):
        position += os.write(file, content[position : position + _PIECE])


def _replace(path: Path, content: memoryview) -> None:
    """Writes a file so that after a crash either all of it is there or what was there before."""
    temporary = path.with_name(path.name + _TEMPORARY)
    file = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        _write(file, content)
        os.fsync(file)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise
    finally:
        os.close(file)
    temporary.rename(path)
    _sync(path.parent)


def _sync(folder: Path) -> None:
    """Has the names in a folder written to the disk."""
    file = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(file)
    finally:
        os.close(file)
