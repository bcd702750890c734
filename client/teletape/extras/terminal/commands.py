"""The command `python -m teletape`: doctor, ping, publish, sessions. `teletape serve` is the server's command."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import Final

from teletape.core import environment
from teletape.core.errors import TeletapeError
from teletape.extras.terminal import doctor, ping
from teletape.tf.sessions.session_list import sessions

_SERVE: Final = "a server is started with `teletape serve`"


def main(arguments: Sequence[str]) -> int:
    """Runs the command line; returns the exit status (1: it failed, 2: wrong arguments)."""
    parser = argparse.ArgumentParser("python -m teletape", description="Teletape in the terminal.", epilog=_SERVE)
    parser.add_argument("-V", "--version", action="version", version=f"teletape {doctor.version()}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, text in (
        ("doctor", "check this environment, and a server if there is an address of one"),
        ("ping", "measure the time of a round trip to a server, and the bytes that pass in a second"),
        ("publish", "publish a function under a name, so that others call it without a session"),
        ("sessions", "list your sessions on a server, cancel the work of some, park or end some"),
    ):
        command = commands.add_parser(name, help=text, description=text)
        if name == "publish":
            command.add_argument("name", help="the name under which others call it")
        command.add_argument("url", nargs="?", default=environment.url(), help="the server; without it TELETAPE_URL")
        command.add_argument("--api-key", default=environment.api_key(), help="your key; without it TELETAPE_API_KEY")
        if name == "publish":
            source = command.add_mutually_exclusive_group(required=True)
            source.add_argument("--function", metavar="MODULE:NAME", help="a function, a tf.function or a Keras model")
            source.add_argument("--text", metavar="FORMULA", help="such as 'y = tanh(x @ w)'")
            command.add_argument(
                "--input", action="append", default=[], metavar="NAME=DTYPE[LENGTHS]", help="x=float32[batch,784]"
            )
            command.add_argument("--visibility", choices=("me", "group", "everybody"), default="me")
            command.add_argument("--description", default="", help="for people")
        if name == "sessions":
            command.add_argument(
                "--cancel", nargs="+", metavar="ID", default=(), help="stop what these compute; their values stay"
            )
            command.add_argument(
                "--park",
                nargs="+",
                metavar="ID",
                default=(),
                help="end their processes; the next request starts another",
            )
            command.add_argument("--end", nargs="+", metavar="ID", help="end the sessions with these ids")
            command.add_argument("--end-all", action="store_true", help="end all of them")
    if [*arguments][:1] == ["serve"]:
        parser.error(_SERVE)
    options = parser.parse_args(arguments)
    if options.url is None and options.command != "doctor":
        parser.error(f"{options.command} needs the address of a server: pass it, or set TELETAPE_URL")
    try:
        if options.command == "doctor":
            return doctor.run(options.url, options.api_key)
        if options.command == "ping":
            print(ping.measure(options.url, options.api_key))
            return 0
        if options.command == "publish":
            from teletape.extras.terminal import publication  # HTTP takes 0.1 s to import

            of = publication.of_text if options.text else publication.of_module
            facts = {"visibility": options.visibility, "description": options.description}
            print(
                of(options.url, options.api_key, options.text or options.function, options.name, options.input, **facts)
            )
            return 0
        listing = sessions(options.url, options.api_key)
        if options.cancel:
            listing.cancel(*options.cancel)
            print(f"cancelled: {', '.join(options.cancel)}")
        if options.park:
            listing.park(*options.park)
            listing = sessions(options.url, options.api_key)
            parked = [id for id in options.park if listing[id].state == "parked"]
            print(f"parked: {', '.join(parked) or 'none'}")
        if options.end or options.end_all:
            before = [session.id for session in listing]
            listing.end(*(options.end or before))
            print(f"ended: {', '.join(id for id in before if id not in [session.id for session in listing]) or 'none'}")
        print(listing)
    except TeletapeError as error:
        print(f"teletape: {error}", file=sys.stderr)
        return 1
    return 0
