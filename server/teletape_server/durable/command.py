"""`teletape sessions`: looks at the sessions in a server's folder for data, saves their values, and removes them."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterator, Sequence
from typing import Any

from teletape_server.durable.folders import FOLDER, Folder, is_in_use
from teletape_server.durable.records import DamagedError
from teletape_server.durable.rescue import rescue


def main(arguments: Sequence[str], data_dir: str | None) -> int:
    """Runs the command; returns the exit status (1: it could not be done; 2: wrong arguments).

    Args:
        arguments: Those after `teletape sessions`.
        data_dir: The folder, if the arguments name none.
    """
    parser = argparse.ArgumentParser("teletape sessions", description=__doc__)
    parser.add_argument("verb", choices=["list", "show", "rescue", "end"])
    parser.add_argument("session", nargs="?", help="ID, OWNER:ID, or the name of its folder")
    parser.add_argument("--data-dir", default=data_dir, metavar="PATH", help="the server's folder (TELETAPE_DATA_DIR)")
    parser.add_argument("--out", metavar="PATH", help="of rescue: a folder for values.safetensors and facts.json")
    options = parser.parse_args(arguments)
    if options.data_dir is None:
        parser.error("name the server's folder: --data-dir")
    path = os.path.join(options.data_dir, FOLDER)
    sessions = [*_sessions(path)]
    if options.verb == "list":
        for folder, manifest in sessions:
            _say(f"{manifest['owner']}:{manifest['id']}  {manifest['durability']}  {folder.nbytes():,} bytes")
        return 0
    chosen = [(folder, manifest) for folder, manifest in sessions if options.session in _names(folder, manifest)]
    if len(chosen) != 1:
        names = ", ".join(f"{manifest['owner']}:{manifest['id']}" for _, manifest in chosen or sessions)
        return _failed(f"name one session of {path}: {names or '(there is none)'}")
    [(folder, manifest)] = chosen
    if options.verb == "show":
        _say(json.dumps({**manifest, "folder": folder.path, "disk_bytes": folder.nbytes()}, indent=1))
    elif options.verb == "rescue":
        if options.out is None:
            parser.error("name a folder for the values: --out")
        try:
            rescued = rescue(folder, options.out)
        except (DamagedError, OSError) as error:
            return _failed(str(error))
        _say(f"{rescued.values} values as of record {rescued.record} are in {options.out}")
        if rescued.why:
            _say(f"what is not there or doubtful: {rescued.why}")
    elif is_in_use(path):
        return _failed(f"a server has {options.data_dir}: DELETE /v1/sessions/{manifest['id']} ends the session there")
    else:
        folder.remove()
    return 0


def _sessions(path: str) -> Iterator[tuple[Folder, dict[str, Any]]]:
    for name in sorted(os.listdir(path)) if os.path.isdir(path) else []:
        folder = Folder(os.path.join(path, name))
        manifest = folder.manifest()
        if manifest is not None:
            yield folder, manifest


def _names(folder: Folder, manifest: dict[str, Any]) -> tuple[str, str, str]:
    return manifest["id"], f"{manifest['owner']}:{manifest['id']}", os.path.basename(folder.path)


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")


def _failed(why: str) -> int:
    sys.stderr.write(f"teletape: {why}\n")
    return 1
