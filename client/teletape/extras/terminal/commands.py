"""The command `python -m teletape`: doctor, ping, sessions, --version. `teletape serve` is the server's command."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from teletape.core import environment
from teletape.core.errors import TeletapeError
from teletape.extras.terminal import doctor, ping
from teletape.tf.sessions.session_list import sessions


def main(arguments: Sequence[str]) -> int:
    """Runs the command line; returns the exit status (1: it failed, 2: wrong arguments)."""
    parser = argparse.ArgumentParser("python -m teletape", description="Teletape in the terminal.")
    parser.add_argument("-V", "--version", action="version", version=f"teletape {doctor.version()}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, text in (
        ("doctor", "check this environment, and a server if there is an address of one"),
        ("ping", "measure the time of a round trip to a server, and the bytes that pass in a second"),
        ("sessions", "list your sessions on a server, cancel the work of some, or end some"),
    ):
        command = commands.add_parser(name, help=text, description=text)
        command.add_argument("url", nargs="?", default=environment.url(), help="the server; without it TELETAPE_URL")
        command.add_argument("--api-key", default=environment.api_key(), help="your key; without it TELETAPE_API_KEY")
        if name == "sessions":
            command.add_argument(
                "--cancel", nargs="+", metavar="ID", default=(), help="stop what these compute; their values stay"
            )
            command.add_argument("--end", nargs="+", metavar="ID", help="end the sessions with these ids")
            command.add_argument("--end-all", action="store_true", help="end all of them")
    options = parser.parse_args(arguments)
    if options.url is None and options.command != "doctor":
        parser.error(f"{options.command} needs the address of a server: pass it, or set TELETAPE_URL")
    try:
        if options.command == "doctor":
            return doctor.run(options.url, options.api_key)
        if options.command == "ping":
            print(ping.measure(options.url, options.api_key))
            return 0
        listing = sessions(options.url, options.api_key)
        if options.cancel:
            listing.cancel(*options.cancel)
            print(f"cancelled: {', '.join(options.cancel)}")
        if options.end or options.end_all:
            before = [session.id for session in listing]
            listing.end(*(options.end or before))
            print(f"ended: {', '.join(id for id in before if id not in [session.id for session in listing]) or 'none'}")
        print(listing)
    except TeletapeError as error:
        print(f"teletape: {error}", file=sys.stderr)
        return 1
    return 0
