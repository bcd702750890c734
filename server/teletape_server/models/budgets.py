"""Bodies about what accounts may use and have used, and about who sends a request."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping
from typing import Annotated, Final

from pydantic import Field

from teletape_server.budgets import timeline as steps
from teletape_server.budgets.budgets import Budgets, Standing
from teletape_server.budgets.history import HOUR, hour_of
from teletape_server.budgets.limits import GROUP, WINDOWS, Present, Use
from teletape_server.budgets.timeline import Step
from teletape_server.identity.principals import SCOPES, Principal, Role
from teletape_server.models.base import Answer
from teletape_server.models.keys import Group, Owner, Scopes
from teletape_server.models.waiting import AccountTime, Timeline
from teletape_wire import timestamp

_HOURS: Final = 48  # of a history by hours
_DAY: Final = 24 * HOUR


class LimitState(Answer):
    """How much of a limit is used."""

    account: Annotated[str, Field(description="Whose limit it is: OWNER, OWNER:KEY, or a group's, @NAME")]
    name: Annotated[str, Field(description="Of the limit")]
    limit: float
    used: Annotated[float | None, Field(description="null: that is not counted up, as with requests a second")] = None
    frees_at: Annotated[
        str | None, Field(description="RFC 3339: when less than the limit will be used; null: it is less, or unknown")
    ] = None


class UseOfTime(Answer):
    """Use in an hour or a day."""

    at: Annotated[str, Field(description="RFC 3339: when it began")]
    compute_seconds: Annotated[float, Field(description="CPU seconds; on a GPU, seconds for which requests ran")]
    gib_hours: Annotated[float, Field(description="GiB of memory times hours")]
    requests: Annotated[int, Field(description="That have run")]


class AccountState(Answer):
    """Limits of an account, and what it uses."""

    account: Annotated[str, Field(description="OWNER; OWNER:KEY, of a key with limits of its own; or a group's, @NAME")]
    group: Annotated[str, Field(description="The account of its group; empty: it is in none")]
    sessions: Annotated[int, Field(description="That have a place")]
    memory_bytes: Annotated[int, Field(description="Of their arrays")]
    disk_bytes: Annotated[int, Field(description="Of their files")]
    used: Annotated[dict[str, float], Field(description="Of each window of days, by the name that its limit has")]
    limits: Annotated[list[LimitState], Field(description="Those that hold for it, its group's too")]
    own_limits: Annotated[dict[str, float], Field(description="Those that were set for it; the others are defaults")]


class Accounts(Answer):
    """All accounts."""

    accounts: list[AccountState]


class Me(Answer):
    """Identity of the caller, with the limits of its key and what was used."""

    key: Annotated[str, Field(description="The id of the key; empty: the server requires none")]
    name: Annotated[str, Field(description="Of the key, for people")]
    owner: Owner
    role: Role
    group: Group
    scopes: Scopes
    expires_at: Annotated[str | None, Field(description="RFC 3339; null: never")]
    use: AccountState
    warning: Annotated[str, Field(description="About a limit of which 80 % or more is used; empty: there is none")]
    hours: Annotated[list[UseOfTime], Field(description="The last two days by hours, without those of no use")]
    days: Annotated[list[UseOfTime], Field(description="The last 30 days, likewise")]


def account_states(budgets: Budgets, accounts: Collection[str]) -> list[AccountState]:
    """Returns what each account may use, and uses; the sessions are looked at once for all."""
    chains = {name for account in accounts for name in budgets.chain(account)}
    present, now = budgets.present_of(chains), time.time()
    return [_account_state(budgets, account, present, now) for account in accounts]


def _account_state(budgets: Budgets, account: str, present: Mapping[str, Present], now: float) -> AccountState:
    now_used, history = budgets.now_used(account, present), budgets.history(account)
    states = [_limit_state(standing) for standing in budgets.standings(account, present)]
    for name, limit in budgets.chain_limits(account, "requests_per_second"):
        states.append(LimitState(account=name, name="requests_per_second", limit=limit))
    return AccountState(
        account=account,
        group=budgets.group(account),
        **now_used._asdict(),
        used={name: round(history.used(name, now), 6) for name in WINDOWS},
        limits=states,
        own_limits=budgets.own_limits(account).named,
    )


def me(budgets: Budgets, principal: Principal, name: str, expires: float | None, now: float) -> Me:
    """Returns what a caller learns of itself.

    Args:
        budgets: Of all accounts.
        principal: The caller.
        name: Of its key; empty: it has none.
        expires: When its key or token ends, in Unix seconds; None: never.
        now: Unix seconds.
    """
    history, first = budgets.history(principal.account), hour_of(now) - _HOURS
    hours = {hour * HOUR: use for hour, use in history.hours.items() if hour > first}
    return Me(
        key=principal.key,
        name=name,
        owner=principal.owner,
        role=principal.role,
        group=budgets.group(principal.account).removeprefix(GROUP),
        scopes=[scope for scope in SCOPES if scope in principal.scopes],
        expires_at=None if expires is None else timestamp(expires),
        use=account_states(budgets, [principal.account])[0],
        warning=budgets.warnings.get(principal.account, ""),
        hours=[_use_of(at, use) for at, use in hours.items()],
        days=[_use_of(day * _DAY, use) for day, use in history.days(now).items()],
    )


def timeline(budgets: Budgets, principal: Principal, step: Step, now: float) -> Timeline:
    """Returns who computed when; whoever is no admin learns of others only what they computed together.

    Args:
        budgets: Of all accounts.
        principal: The caller.
        step: Of the timeline.
        now: Unix seconds.
    """
    used: dict[str, Mapping[int, float]] = {}
    for account in budgets.accounts:
        if account.startswith(GROUP):  # its members are there
            continue
        hours = budgets.history(account).hours
        used[account] = budgets.minutes.of(account) if step == "minutes" else _seconds(hours)
    line = steps.Timeline.of(step, used, now)
    by_account, others = dict[str, list[float]](), [0.0] * steps.STEPS[step][1]
    for account, seconds in line.seconds.items():
        if principal.is_admin or account.partition(":")[0] == principal.owner:
            by_account[account] = seconds
        else:
            others = [sum(pair) for pair in zip(others, seconds, strict=True)]
    named = sorted(by_account.items(), key=lambda item: -sum(item[1]))
    return Timeline(
        began_at=timestamp(line.began),
        step_seconds=line.step,
        accounts=[
            AccountTime(account=account, seconds=[round(item, 3) for item in seconds])
            for account, seconds in (*named, ("", others))
            if any(seconds)
        ],
    )


def _seconds(hours: Mapping[int, Use]) -> dict[int, float]:
    return {hour: use.compute_seconds for hour, use in hours.items()}


def _limit_state(standing: Standing) -> LimitState:
    used = round(standing.used, 6) if standing.name in WINDOWS else standing.used
    frees = None if standing.frees is None else timestamp(standing.frees)
    return LimitState(account=standing.account, name=standing.name, limit=standing.limit, used=used, frees_at=frees)


def _use_of(at: float, use: Use) -> UseOfTime:
    seconds, gib_hours = round(use.compute_seconds, 3), round(use.gib_hours, 6)
    return UseOfTime(at=timestamp(at), compute_seconds=seconds, gib_hours=gib_hours, requests=use.requests)
