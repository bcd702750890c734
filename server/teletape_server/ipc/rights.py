"""What keys and groups have a right to when all want it: parts of a CPU or a GPU.

Keys share by weight. A group may have a part of its own: it gets that whatever other keys do, and its keys share it by
their weights; all other keys share the rest. What a key or a group does not use the others do.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from teletape_server.budgets.limits import GROUP

REST: Final = ""  #: The group of the keys that are in none with a part of its own.


class Right(NamedTuple):
    """What a key has a right to.

    Attributes:
        owner: The key's name.
        weight: Its part of what its group gets, relative to those of other keys.
        group: The group, as @NAME, or `REST`.
        part: Of the whole that the group gets, from 0 to 1.
    """

    owner: str = ""
    weight: float = 1.0
    group: str = REST
    part: float = 1.0


NO_RIGHT: Final = Right()  #: Of a key where all have the same.


def _no_group(owner: str) -> str:
    return REST


class Rights:
    """The rights of all keys.

    Args:
        weights: Of keys, by name; those that are not named have 1. Of groups with a part of their own, by @NAME: the
            part, from 0 to 1; all together are below 1.
        group: Returns the group of a key, as @NAME; empty: it is in none.
    """

    def __init__(self, weights: Mapping[str, float] | None = None, group: Callable[[str], str] = _no_group) -> None:
        self._weights, self._group = weights or {}, group
        self._parts = {name: part for name, part in self._weights.items() if name.startswith(GROUP)}
        self._parts[REST] = 1.0 - sum(self._parts.values())

    def of(self, owner: str) -> Right:
        """Returns what a key has a right to now: its group can change."""
        group = self._group(owner)
        group = group if group in self._parts else REST
        return Right(owner, self._weights.get(owner, 1.0), group, self._parts[group])

    def shared(self, wanted: Mapping[str, float], amount: float) -> dict[str, float]:
        """Returns how much of something each key gets by right: what one does not want the others get.

        Args:
            wanted: How much each of them wants, by name.
            amount: How much there is.
        """
        rights = {owner: self.of(owner) for owner in wanted}
        by_group: dict[str, dict[str, float]] = {}
        for owner, right in rights.items():
            by_group.setdefault(right.group, {})[owner] = wanted[owner]
        totals = {group: sum(members.values()) for group, members in by_group.items()}
        amounts = _filled(totals, self._parts, amount)
        shares: dict[str, float] = {}
        for group, members in by_group.items():
            shares |= _filled(members, {owner: rights[owner].weight for owner in members}, amounts[group])
        return shares


def _filled(wanted: Mapping[str, float], weights: Mapping[str, float], amount: float) -> dict[str, float]:
    """Returns how much of an amount each gets: by weight, and no more than it wants."""
    shares = dict.fromkeys(wanted, 0.0)
    open_ones = {name for name in wanted if wanted[name] > 0}
    while open_ones:
        each = amount / sum(weights[name] for name in open_ones)
        content = {name for name in open_ones if wanted[name] <= each * weights[name]}
        for name in content or open_ones:
            shares[name] = wanted[name] if content else each * weights[name]
        if not content:
            break
        amount -= sum(wanted[name] for name in content)
        open_ones -= content
    return shares
