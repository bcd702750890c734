"""`teletape sessions`: lists sessions, shows and parks them, saves their values, and ends them.

On a running server, which the command finds by the folder for data, or by its address; without one, on the files alone.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import sys
from collections.abc import Mapping
from typing import Any, Final

from teletape_server.administration.running_server import CommandError, RunningServer, address_of_server
from teletape_server.administration.stored_sessions import StoredSession, stored_sessions
from teletape_server.durable.records import DamagedError
from teletape_server.sessions.lifecycle import LOST

VERBS: Final = ("list", "show", "park", "rescue", "end")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the command's own arguments; it has `data_dir`, `api_key` and `url` too."""
    parser.add_argument("verb", choices=VERBS)
    parser.add_argument("session", nargs="?", help="ID, OWNER:ID, or the name of its folder")
    parser.add_argument("--out", metavar="PATH", help="of rescue: a folder for values.safetensors and facts.json")


def run(options: argparse.Namespace) -> int:
    """Runs the command; returns the exit status.

    Raises:
        CommandError: It cannot be done.
        OSError: The folder cannot be read.
    """
    if options.verb == "rescue":
        return _rescue(options)
    address = options.url or (None if options.data_dir is None else address_of_server(options.data_dir))
    if address is None:
        return _on_files(options)
    if not address:
        raise CommandError(f"a server has {options.data_dir}, and is starting or stopping: try again")
    with contextlib.closing(RunningServer(address, options.api_key)) as server:
        return _on_server(options, server)


def _on_server(options: argparse.Namespace, server: RunningServer) -> int:
    sessions = {f"{facts['owner']}:{facts['id']}": facts for facts in server.sessions()}
    if options.verb == "list":
        return _list([*sessions.values()])
    name = _chosen(options.session, {name: (facts["id"], name) for name, facts in sessions.items()})
    if options.verb == "show":
        _say(json.dumps(server.session(name), indent=1))
    elif options.verb == "park":
        facts = server.park(name)
        if facts["state"] != "parked":
            raise CommandError(f"{name} is {facts['state']}, of durability {facts['durability']}, and stays so")
        if facts["log_to_run"]:
            raise CommandError(f"{name} is parked, and keeps its log: the server's log says why")
    else:
        server.end(name)
    return 0


def _on_files(options: argparse.Namespace) -> int:
    stored = {session.name: session for session in stored_sessions(_data_dir(options))}
    if options.verb == "list":
        return _list([session.facts() for session in stored.values()])
    session = _stored(options, stored)
    if options.verb == "show":
        _say(json.dumps(session.facts(), indent=1))
    elif options.verb == "end":
        session.folder.remove()
    elif (facts := session.facts())["state"] in LOST:
        raise CommandError(f"{session.name} is {facts['state']}, and stays so: {facts['why']}")
    elif facts["log_to_run"]:
        raise CommandError(f"{session.name} has a log to run, which a server does: start one on {options.data_dir}")
    return 0  # a session without a server is parked


def _rescue(options: argparse.Namespace) -> int:
    from teletape_server.durable.rescue import rescue  # it imports all ops, which takes a second

    session = _stored(options, {session.name: session for session in stored_sessions(_data_dir(options))})
    if options.out is None:
        raise CommandError("name a folder for the values: --out")
    if os.path.isdir(options.out) and os.listdir(options.out):
        raise CommandError(f"{options.out} is not empty: name a new folder for the values")
    try:
        rescued = rescue(session.folder, options.out)
    except DamagedError as error:
        raise CommandError(str(error)) from error
    as_of = f"record {rescued.record}" if rescued.record else "the base"
    _say(f"{rescued.values} values as of {as_of} are in {options.out}")
    if rescued.notes:
        _say(rescued.notes)
    if rescued.why:
        sys.stderr.write(f"teletape: not all is there, or it is doubtful: {rescued.why}\n")
    return 1 if rescued.why else 0


def _data_dir(options: argparse.Namespace) -> str:
    if options.data_dir is None:
        raise CommandError("name the server's folder for data (--data-dir), or its address (--url)")
    return str(options.data_dir)


def _stored(options: argparse.Namespace, stored: dict[str, StoredSession]) -> StoredSession:
    names = {name: (session.manifest["id"], name, session.uid) for name, session in stored.items()}
    return stored[_chosen(options.session, names)]


def _chosen(wanted: str | None, names: Mapping[str, tuple[str, ...]]) -> str:
    """The one session that a text names; `names`: what each may be called."""
    chosen = [name for name, others in names.items() if wanted in others]
    if len(chosen) != 1:
        raise CommandError(f"name one session: {', '.join(chosen or names) or '(there is none)'}")
    return chosen[0]


def _list(sessions: list[dict[str, Any]]) -> int:
    for facts in sessions:
        sizes = f"{facts['bytes_in_use']:,} bytes in memory, {facts['disk_bytes']:,} on disk"
        why = f": {facts['why']}" if facts["why"] else ""
        state = facts["state"] + (", log to run" if facts["log_to_run"] else "")
        _say(f"{facts['owner']}:{facts['id']}  {state}  {facts['durability']}  {sizes}{why}")
    return 0


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
