"""`teletape keys`: creates, lists, rotates, revokes and limits API keys.

On a running server, which the command finds by the folder for data, or by its address; without one, on the store alone:
so the first key of a server comes before its first start.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import getpass
import sys
import time
from collections.abc import Mapping
from typing import Any, Final

from teletape_server import setting_values as values
from teletape_server.administration.running_server import CommandError, RunningServer, address_of_server
from teletape_server.budgets.limits import NO_LIMITS, Limits
from teletape_server.identity.identity import Identity
from teletape_server.identity.keys import Key, StoreError
from teletape_server.identity.principals import SCOPES, Principal
from teletape_server.models.faults import described_faults, text_of
from teletape_server.models.keys import NewKey, described, described_new
from teletape_server.problems import Problem

_MISSING: Final = {
    "create": "name an owner",
    "revoke-tokens": "name an owner",
    "limit": "name an account: OWNER, OWNER:ID of a key, or @GROUP",
}
VERBS: Final = ("create", "list", "rotate", "revoke", "limit", "revoke-tokens")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the command's own arguments; it has `data_dir`, `api_key` and `url` too."""
    parser.add_argument("verb", choices=VERBS)
    parser.add_argument(
        "key",
        nargs="?",
        metavar="OWNER|ID",
        help="create, revoke-tokens: whose it is; rotate, revoke: the key's id; "
        "limit: an account: OWNER, OWNER:ID of a key with limits of its own, or @GROUP",
    )
    parser.add_argument("--name", default="", help="of create: where it is used, for people")
    parser.add_argument(
        "--role", choices=("user", "admin"), default="user", help="of create: an admin sees all owners'"
    )
    parser.add_argument("--group", help="of create: a name for several owners, '' for none; without it the owner's")
    parser.add_argument("--scopes", default=",".join(SCOPES), help="of create: what it is for (default %(default)s)")
    parser.add_argument(
        "--expires", type=_seconds, metavar="TIME", help="of create: when it ends by itself, such as 90d"
    )
    parser.add_argument(
        "--limits",
        type=_limits,
        default=NO_LIMITS,
        metavar="LIMITS",
        help="of create, limit: what it may use, such as sessions=4,compute_seconds_7d=10h; limit without it: no own",
    )
    parser.add_argument(
        "--overlap", type=_seconds, default=0.0, metavar="TIME", help="of rotate: both are valid so long"
    )


def _seconds(text: str) -> float:
    try:
        return values.seconds(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _limits(text: str) -> Limits:
    try:
        return values.limits(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def run(options: argparse.Namespace, database: str | None) -> int:
    """Runs the command; returns the exit status.

    Args:
        options: The arguments.
        database: The URL of the database that has the keys, if it is not the folder for data.

    Raises:
        CommandError: It cannot be done.
        OSError: The folder cannot be read.
    """
    if options.verb != "list" and options.key is None:
        raise CommandError(_MISSING.get(options.verb, "name the id of a key: `list` shows them"))
    address = options.url or (None if options.data_dir is None else address_of_server(options.data_dir))
    if address is None:
        return asyncio.run(_on_store(options, database))
    if not address:
        raise CommandError(f"a server has {options.data_dir}, and is starting or stopping: try again")
    with contextlib.closing(RunningServer(address, options.api_key)) as server:
        return _on_server(options, server)


def _body(options: argparse.Namespace) -> dict[str, Any]:
    """Returns the body of a request that creates the key."""
    scopes = [scope.strip() for scope in options.scopes.split(",") if scope.strip()]
    body = {"owner": options.key, "name": options.name, "role": options.role, "group": options.group}
    return body | {"scopes": scopes, "expires_in": options.expires, "limits": options.limits.named or None}


def _on_server(options: argparse.Namespace, server: RunningServer) -> int:
    if options.verb == "list":
        _list(server.keys())
    elif options.verb == "create":
        _show(server.create_key(_body(options)))
    elif options.verb == "rotate":
        _show(server.rotate_key(options.key, options.overlap))
    elif options.verb == "limit":
        server.set_limits(options.key, options.limits.named)
    elif options.verb == "revoke-tokens":
        server.revoke_tokens(options.key)
    else:
        server.revoke_key(options.key)
    return 0


async def _on_store(options: argparse.Namespace, database: str | None) -> int:
    if options.data_dir is None and database is None:
        raise CommandError("name the server's folder for data (--data-dir), or its address (--url)")
    by = Principal(f"{getpass.getuser()} of the machine", "", "admin")
    try:
        identity = Identity.open(environment={}, admins=(), data_dir=options.data_dir, database=database)
        try:
            await _changed(identity, by, options)
        finally:
            await identity.close()
    except (StoreError, Problem) as error:
        raise CommandError(str(error.__cause__ or error)) from None
    return 0


async def _changed(identity: Identity, by: Principal, options: argparse.Namespace) -> None:
    if options.verb == "list":
        now = time.time()
        _list([described(key, now).model_dump() for key in identity.keys.all])
    elif options.verb == "create":
        try:
            body = NewKey.model_validate(_body(options))
        except ValueError as error:
            faults = described_faults(error.errors())  # type: ignore[attr-defined]  # pydantic's
            raise CommandError(text_of(faults)) from None
        expires = None if body.expires_in is None else time.time() + body.expires_in
        scopes = frozenset(body.scopes)
        owner, group, limits = body.owner or "", body.group, options.limits
        created = await identity.create(
            by, name=body.name, owner=owner, role=body.role, group=group, scopes=scopes, expires=expires, limits=limits
        )
        _show(described_new(*created).model_dump())
    elif options.verb == "rotate":
        former = _chosen(identity, options.key)
        if not former.is_valid(time.time()):
            raise CommandError(f"the key {former.id} has ended already: create a new one")
        _show(described_new(*await identity.rotate(by, former, overlap=options.overlap)).model_dump())
    elif options.verb == "limit":
        await identity.set_limits(by, options.key, options.limits)
    elif options.verb == "revoke-tokens":
        await identity.revoke_tokens(by, options.key)
    else:
        await identity.revoke(by, _chosen(identity, options.key))


def _chosen(identity: Identity, id: str) -> Key:
    keys = {key.id: key for key in identity.keys.all}
    if id not in keys:
        raise CommandError(f"there is no key with the id {id}: there are {', '.join(keys) or 'none'}")
    return keys[id]


def _show(facts: Mapping[str, Any]) -> None:
    """Prints a new key; what is no part of it goes to the other stream, so that a script can take it as it is."""
    sys.stderr.write(f"the key {facts['id']} of {facts['owner']}; nothing shows it again:\n")
    sys.stdout.write(f"{facts['key']}\n")


def _list(keys: list[dict[str, Any]]) -> None:
    for facts in keys:
        ends = f", ends {facts['expires_at']}" if facts["expires_at"] and facts["state"] == "valid" else ""
        used = facts["used_at"] or "never"
        about = f"{facts['role']}  {','.join(facts['scopes'])}  {facts['state']}{ends}  used {used}  {facts['name']}"
        group = f"@{facts['group']}" if facts["group"] else "-"
        sys.stdout.write(f"{facts['id']}  {facts['owner']}  {group}  {about}".rstrip() + "\n")
