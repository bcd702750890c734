"""Backups: a copy of the folder for data with the same layout, and a list of its files with their checksums.

A backup of a running server has each session as of one record of its log: a base does not change once its log has a
head, and a log only grows. The list is written last; what has none is no whole backup.

    backup.json      the list
    sessions/…       as in the folder for data: the newest base and log of each session, and what they name
    published/…      published functions
    identity.sqlite  keys, limits, use and audit, as of one moment
"""

from __future__ import annotations

import contextlib
import json
import mmap
import os
import shutil
import time
from collections.abc import Collection, Iterator
from typing import Any, Final, NamedTuple

from teletape_server import version
from teletape_server.administration.running_server import CommandError, address_of_server
from teletape_server.administration.stored_sessions import StoredSession, stored_sessions
from teletape_server.durable import bases, records
from teletape_server.durable.batches import with_blobs
from teletape_server.durable.disk import replace
from teletape_server.durable.folders import FOLDER, Folder
from teletape_server.durable.records import DamagedError
from teletape_server.identity import copies
from teletape_server.identity.keys import StoreError
from teletape_server.models.published.contract import hash_of
from teletape_server.published.store import FileStore
from teletape_wire import timestamp
from teletape_wire.checksum import crc32

LIST: Final = "backup.json"
_FORMAT: Final = 1
_PUBLISHED: Final = "published"
_IDENTITY: Final = "identity.sqlite"
_NAME: Final = "keys, limits, use and audit"  # what it is, where it is damaged
_TRIES: Final = 20  # to copy a session whose files are being replaced
_PAUSE: Final = 0.05  # seconds between them


class Done(NamedTuple):
    """What was backed up or restored.

    Attributes:
        sessions, functions: The names.
        keys: How many API keys; None: it has no file of keys.
        nbytes: That all files take on the disk: in a backup the space that logs have reserved takes none.
        damaged: What is damaged, or was not restored, by name, and why.
    """

    sessions: list[str]
    functions: list[str]
    keys: int | None
    nbytes: int
    damaged: dict[str, str]


def back_up(data_dir: str, out: str) -> Done:
    """Copies the sessions, published functions and keys of a folder for data, which a server may have.

    Args:
        data_dir: The folder for data.
        out: The backup, which must not be there.

    Raises:
        CommandError: There is something.
        OSError: A file cannot be read or written.
    """
    if not os.path.isdir(data_dir):
        raise CommandError(f"there is no folder {data_dir}")
    if os.path.exists(out):
        raise CommandError(f"{out} is there already: name a new folder for the backup")
    os.makedirs(os.path.join(out, FOLDER), mode=0o700)
    damaged, sessions, is_live = {}, [], address_of_server(data_dir) is not None
    for session in stored_sessions(data_dir):
        with contextlib.suppress(FileNotFoundError):  # it has ended meanwhile
            why = copy_session(session.folder, os.path.join(out, FOLDER, session.uid), is_live=is_live)
            why = why or session.unreadable
            sessions.append(session.name)
            if why:
                damaged[session.name] = why
    functions = _copy_published(data_dir, out, damaged)
    keys = _copy_identity(data_dir, out, damaged)
    files = {name: _checksum(os.path.join(out, name)) for name in sorted(_files(out))}
    facts = {"format": _FORMAT, "teletape": version(), "time": timestamp(time.time()), "damaged": damaged}
    replace(os.path.join(out, LIST), json.dumps({**facts, "files": files}, indent=1).encode())
    nbytes = sum(os.stat(os.path.join(out, name)).st_blocks * 512 for name in files)
    return Done(sessions, functions, keys, nbytes, damaged)


def copy_session(folder: Folder, target: str, *, is_live: bool) -> str:
    """Copies a session as of one record; returns why it is damaged, or nothing.

    Args:
        folder: The session's.
        target: The copy.
        is_live: Whether a process may write meanwhile: then what looks damaged is read again.

    Raises:
        FileNotFoundError: It has ended.
        OSError: A file cannot be read or written.
    """
    for tries in range(_TRIES):
        is_last = tries == _TRIES - 1
        shutil.rmtree(target, ignore_errors=True)
        try:
            number = folder.newest()
            if not folder.has_log(number) and (is_last or not is_live):
                shutil.copytree(folder.path, target)
                return records.LOG_LOST
            with contextlib.ExitStack() as opened:
                # The log first: what it names is there then, until another log replaces it.
                log_name = f"log-{number}.ttj"
                log = opened.enter_context(open(folder.at(log_name), "rb"))
                data = log.read()
                rest = [opened.enter_context(open(folder.at(name), "rb")) for name in folder.files()]
                if folder.newest() != number:
                    continue
                os.makedirs(target, mode=0o700)
                for file in rest:
                    _copy(file, os.path.join(target, os.path.basename(file.name)))
                with open(os.path.join(target, log_name), "wb") as copy:
                    copy.write(data)
                _finish(log, os.path.join(target, log_name))
            if folder.newest() != number:  # what the log refers to may have been written over
                continue
            why = _cut(Folder(target), number, data)
        except FileNotFoundError:
            if is_last or not os.path.exists(folder.path):
                raise
        else:
            if not why or is_last or not is_live:
                return why
        time.sleep(_PAUSE)
    raise AssertionError("the last try returns")


def _cut(folder: Folder, number: int, data: bytes) -> str:
    """Ends a copied log after its last whole record; returns why the session is damaged, or nothing."""
    why = damage(folder)
    log = None if why else records.read(data)
    if log is not None:
        path = folder.at(f"log-{number}.ttj")
        written = os.stat(path)
        os.truncate(path, log.end)  # and then as long as a log is
        os.truncate(path, records.with_reserve(log.end))
        os.utime(path, ns=(written.st_atime_ns, written.st_mtime_ns))
    return why


def damage(folder: Folder) -> str:
    """Returns what is wrong with the files of a session, as their checksums say; nothing: they are as written."""
    try:
        number = folder.newest()
        log = records.read(folder.bytes_of_log(number))
        if log is None:
            return records.LOG_LOST
        with folder.blobs() as blobs:
            if log.head["base"] is not None:
                base = folder.bytes_of_base(number)
                if [len(base), crc32(base)] != [*log.head["base"]]:
                    return f"base {number} has {len(base)} bytes, which are not those that were written"
                bases.read(base, blobs.read_into)
            with_blobs(log, blobs)
    except DamagedError as error:
        return error.why
    except OSError as error:
        return str(error) if folder.has_log(folder.newest()) else records.LOG_LOST
    return ""


def _copy_published(data_dir: str, out: str, damaged: dict[str, str]) -> list[str]:
    if not os.path.isdir(os.path.join(data_dir, _PUBLISHED)):
        return []
    source, target, names = FileStore(data_dir), FileStore(out), []
    for name in source.all():
        try:
            for published in name.versions.values():
                if published.weights_hash:
                    with _mapped(source.open_weights(published.weights_hash)) as content:
                        if hash_of(content) != published.weights_hash:
                            raise ValueError(f"the weights of version {published.version} were changed")
                        target.put_weights(published.weights_hash, content)
        except FileNotFoundError:  # it was removed meanwhile, or a version of it was
            continue
        except ValueError as error:
            damaged[name.name] = str(error)
            continue
        if name.damage:
            damaged[name.name] = name.damage
            continue
        target.put(name)
        names.append(name.name)
    return names


def _copy_identity(data_dir: str, out: str, damaged: dict[str, str]) -> int | None:
    source, target = (os.path.join(folder, _IDENTITY) for folder in (data_dir, out))
    if not os.path.exists(source):
        return None
    try:
        copies.copy(source, target)
        return copies.keys_in(target)
    except StoreError as error:
        damaged[_NAME] = str(error)
        return None


@contextlib.contextmanager
def _mapped(file: int) -> Iterator[memoryview]:
    try:
        with mmap.mmap(file, 0, prot=mmap.PROT_READ) as content, memoryview(content) as view:
            yield view
    finally:
        os.close(file)


# ------------------------------------------------------------------------------------------------------------ restoring
def restore(backup: str, data_dir: str, names: Collection[str]) -> Done:
    """Copies sessions of a backup into a folder for data that no server has; without names everything, the keys too.

    Args:
        backup: The backup.
        data_dir: The folder for data: without names an empty one, or none yet.
        names: Sessions: ID, OWNER:ID, or the name of a folder.

    Raises:
        CommandError: It is no backup, a name is none of its sessions, or the folder has what would be restored.
        OSError: A file cannot be read or written.
    """
    files = _list_of(backup)
    if os.path.isdir(data_dir) and address_of_server(data_dir) is not None:
        raise CommandError(f"a server has {data_dir}: stop it first")
    present = {session.name for session in stored_sessions(data_dir)}
    if not names and (present or any(os.path.exists(os.path.join(data_dir, name)) for name in (_PUBLISHED, _IDENTITY))):
        raise CommandError(f"{data_dir} is not empty: name the sessions to restore, or another folder")
    sessions = _named(backup, names)
    if both := sorted(present & {session.name for session in sessions}):
        raise CommandError(f"{data_dir} has {', '.join(both)} already: end that first (teletape sessions end)")
    os.makedirs(data_dir, mode=0o700, exist_ok=True)
    damaged: dict[str, str] = {}
    restored, nbytes = [], 0
    for session in sessions:
        begin = f"{FOLDER}/{session.uid}/"
        why = _wrong(backup, begin, files) or session.unreadable or damage(session.folder)
        if why:
            damaged[session.name] = why
            continue
        nbytes += _put(backup, begin, files, data_dir)
        restored.append(session.name)
    functions: list[str] = []
    if not names and any(name.startswith(f"{_PUBLISHED}/") for name in files):
        if why := _wrong(backup, f"{_PUBLISHED}/", files):
            damaged["published functions"] = why
        else:
            nbytes += _put(backup, f"{_PUBLISHED}/", files, data_dir)
            functions = [name.name for name in FileStore(data_dir).all()]
    keys = None
    if not names and _IDENTITY in files:
        if why := _wrong(backup, _IDENTITY, files):
            damaged[_NAME] = why
        else:
            nbytes += _put(backup, _IDENTITY, files, data_dir)
            keys = copies.keys_in(os.path.join(data_dir, _IDENTITY))
    _give_to_owner(data_dir)
    return Done(restored, functions, keys, nbytes, damaged)


def _list_of(backup: str) -> dict[str, list[int]]:
    try:
        with open(os.path.join(backup, LIST), "rb") as file:
            facts: dict[str, Any] = json.load(file)
    except (OSError, ValueError) as error:
        raise CommandError(f"{backup} is no whole backup: its {LIST} cannot be read ({error})") from None
    if facts["format"] != _FORMAT:
        raise CommandError(f"{backup} is a backup of format {facts['format']}, this version reads {_FORMAT}")
    files: dict[str, list[int]] = facts["files"]
    return files


def _named(backup: str, names: Collection[str]) -> list[StoredSession]:
    sessions = [*stored_sessions(backup)]
    if not names:
        return sessions
    chosen = []
    for name in names:
        of_name = [item for item in sessions if name in (item.manifest["id"], item.name, item.uid)]
        if len(of_name) != 1:
            known = ", ".join(item.name for item in of_name or sessions)
            raise CommandError(f"{name} names {len(of_name)} sessions of {backup}: {known or '(it has none)'}")
        chosen += of_name
    return chosen


def _wrong(backup: str, begin: str, files: dict[str, list[int]]) -> str:
    """What is not as it was written of the files whose names begin so."""
    for name, facts in files.items():
        if name.startswith(begin):
            path = os.path.join(backup, name)
            if not os.path.exists(path):
                return f"{name} is not there"
            if [*_checksum(path)] != facts:
                return f"{name} has changed since the backup"
    return ""


def _put(backup: str, begin: str, files: dict[str, list[int]], data_dir: str) -> int:
    nbytes = 0
    for name in [name for name in files if name.startswith(begin)]:
        target = os.path.join(data_dir, name)
        os.makedirs(os.path.dirname(target), mode=0o700, exist_ok=True)
        with open(os.path.join(backup, name), "rb") as file:
            _copy(file, target)
        nbytes += files[name][0]
    return nbytes


def _give_to_owner(data_dir: str) -> None:
    """Lets the files belong to the folder's user: root restores for the server's."""
    if os.geteuid() != 0:
        return
    own = os.stat(data_dir)
    for folder, folders, files in os.walk(data_dir):
        for name in (*folders, *files):
            os.chown(os.path.join(folder, name), own.st_uid, own.st_gid)


# ---------------------------------------------------------------------------------------------------------------- files
def _files(path: str) -> Iterator[str]:
    for folder, _, names in os.walk(path):
        for name in names:
            yield os.path.relpath(os.path.join(folder, name), path)


def _checksum(path: str) -> tuple[int, int]:
    """The length and the CRC32 of a file."""
    length = os.path.getsize(path)
    if not length:
        return 0, 0
    with _mapped(os.open(path, os.O_RDONLY | os.O_CLOEXEC)) as content:
        return length, crc32(content)


def _copy(file: Any, target: str) -> None:
    with open(target, "wb") as copy:
        shutil.copyfileobj(file, copy, 16 << 20)
    _finish(file, target)


def _finish(file: Any, target: str) -> None:
    """Brings a copy to the disk, with the original's time: the server takes that for the session's last work."""
    with open(target, "rb+") as copy:
        os.fchmod(copy.fileno(), 0o600)
        os.fsync(copy.fileno())
    written = os.fstat(file.fileno())
    os.utime(target, ns=(written.st_atime_ns, written.st_mtime_ns))
