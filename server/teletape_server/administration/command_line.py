"""The command line of the operator's commands: sessions, keys, backup, restore, upgrade, doctor."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from teletape_server.administration import keys, sessions
from teletape_server.administration.running_server import CommandError

if TYPE_CHECKING:
    from teletape_server.administration.backups import Done

_ABOUT: Final = {
    "sessions": "Lists, shows, parks and ends sessions, and saves their values; on a running server or files.",
    "keys": "Creates, lists, rotates and revokes API keys; on a running server, or where they are kept.",
    "backup": "Copies sessions, published functions and keys, also of a server that runs; a session as of one request.",
    "restore": "Puts what a backup has into a folder that no server has.",
    "upgrade": "Looks at whether the sessions of a folder or a backup would go on with this installation.",
}


def main(arguments: Sequence[str], environment: Mapping[str, str]) -> int:
    """Runs a command; returns the exit status (1: it could not be done, or something is wrong; 2: wrong arguments).

    Args:
        arguments: Those after `teletape`.
        environment: Has TELETAPE_DATA_DIR, TELETAPE_API_KEY and TELETAPE_KEY_DATABASE, for what no argument names.
    """
    command = arguments[0]
    if command == "doctor":
        from teletape_server.administration import doctor  # it looks at GPUs

        return doctor.main(arguments[1:], environment)
    parser = argparse.ArgumentParser(f"teletape {command}", description=_ABOUT[command])
    data_dir = environment.get("TELETAPE_DATA_DIR") or None
    if command == "upgrade":
        parser.add_argument("--check", metavar="DIR", required=True, help="the folder, which stays as it is")
    parser.add_argument("--data-dir", default=data_dir, metavar="PATH", help="the server's folder (TELETAPE_DATA_DIR)")
    if command in ("backup", "restore"):
        parser.add_argument("backup", metavar="DIR", help="the backup")
    if command == "restore":
        parser.add_argument("sessions", nargs="*", metavar="SESSION", help="ID or OWNER:ID; without any, everything")
    if command in ("sessions", "keys"):
        (sessions if command == "sessions" else keys).add_arguments(parser)
        parser.add_argument("--url", metavar="URL", help="the server, if it is not the one that has the folder")
        key = environment.get("TELETAPE_API_KEY") or None
        parser.add_argument("--api-key", default=key, metavar="KEY", help="for the server (TELETAPE_API_KEY)")
    options = parser.parse_args(arguments[1:])
    try:
        if command == "sessions":
            return sessions.run(options)
        if command == "keys":
            return keys.run(options, environment.get("TELETAPE_KEY_DATABASE") or None)
        if command == "upgrade":
            from teletape_server.administration import upgrades  # as those of backups

            return upgrades.check(options.check)
        if options.data_dir is None:
            raise CommandError("name the server's folder for data: --data-dir, or TELETAPE_DATA_DIR")
        from teletape_server.administration import backups  # it imports the contracts of functions

        if command == "backup":
            done = backups.back_up(options.data_dir, options.backup)
            return _report(done, options.backup)
        done = backups.restore(options.backup, options.data_dir, options.sessions)
        return _report(done, options.data_dir)
    except (CommandError, OSError) as error:
        sys.stderr.write(f"teletape: {error}\n")
        return 1


def _report(done: Done, where: str) -> int:
    counts = [_count(len(done.sessions), "session"), _count(len(done.functions), "published function")]
    if done.keys is not None:
        counts.append(_count(done.keys, "key"))
    text = f"{', '.join(counts[:-1])} and {counts[-1]}"
    sys.stdout.write(f"{text}, {done.nbytes:,} bytes, are in {where}\n")
    for name, why in done.damaged.items():
        sys.stderr.write(f"teletape: {name} is damaged: {why}\n")
    return 1 if done.damaged else 0


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"
