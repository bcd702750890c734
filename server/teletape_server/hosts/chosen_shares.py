"""Chooses how keys share the CPU."""

from __future__ import annotations

import logging

from teletape_server.hosts.control_groups import ControlGroups, is_delegated, own_tree, swept
from teletape_server.hosts.shares import Shares, SharesError
from teletape_server.hosts.time_slices import TimeSlices
from teletape_server.ipc.confinement import User
from teletape_server.ipc.rights import Rights

log = logging.getLogger("teletape")


def chosen_shares(choice: str, rights: Rights, user: User | None = None) -> Shares:
    """Returns how keys share the CPU of a server that begins; warns if none of the ways by right is possible.

    Args:
        choice: groups: with control groups; slices: with time slices; off: as their processes do; auto: with control
            groups where systemd has given the server a part of the tree, else with time slices.
        rights: Of the keys.
        user: That the processes of sessions run as; None: as this one does.

    Raises:
        SharesError: It is not possible.
    """
    try:
        if choice == "groups":
            return ControlGroups(swept(own_tree()), rights)
        if choice == "auto":
            try:
                tree = own_tree()
                if tree.is_second and is_delegated(tree.folder):
                    return ControlGroups(tree, rights)
            except SharesError as error:
                log.info("keys have no control groups: %s", error)
        return Shares(rights) if choice == "off" else TimeSlices(rights, user)
    except SharesError as error:
        if choice != "auto":
            raise
        log.warning(
            "a key with many sessions gets more of the CPU than one with few, whatever --weights says: %s", error
        )
        return Shares(rights)
