"""The states of a session: which sequences there are, over all sequences up to a length."""

import itertools

import pytest

from teletape_server.ipc.leases import Reason
from teletape_server.sessions.lifecycle import BEGINNING, FOLLOWING, LOST, Phase, State

LENGTH = 5
WITH_HOST = (Phase.LIVE, Phase.PARKING)


def life(phases: tuple[Phase, ...]) -> list[State] | None:
    """The states of a session that goes through these phases; None: it cannot."""
    states = [BEGINNING]
    for phase in phases:
        try:
            states.append(states[-1].end(Reason.DELETED) if phase is Phase.ENDED else states[-1].then(phase))
        except ValueError:
            return None
    return states


LIVES = [
    states
    for length in range(LENGTH + 1)
    for phases in itertools.product(Phase, repeat=length)
    if (states := life(phases)) is not None
]


def test_every_state_is_reached() -> None:
    assert {state.phase for states in LIVES for state in states} == set(Phase)


def test_an_ended_session_stays_ended() -> None:
    for states in LIVES:
        assert Phase.ENDED not in [state.phase for state in states[:-1]]
        for state in states:
            assert (state.reason is not None) == (state.phase is Phase.ENDED)


def test_every_session_that_has_not_ended_can_end() -> None:
    for states in LIVES:
        if states[-1].phase is not Phase.ENDED:
            assert states[-1].end(Reason.IDLE) == State(Phase.ENDED, Reason.IDLE)


def test_a_session_without_a_host_gets_one_only_by_a_start() -> None:
    """And one with a host lays it down only by parking, by the host's death, or by its end."""
    for states in LIVES:
        for before, after in itertools.pairwise(states):
            if after.phase in WITH_HOST and before.phase not in WITH_HOST:
                assert before.phase in (Phase.STARTING, Phase.WAKING, Phase.RECOVERING)
            if before.phase in WITH_HOST and after.phase not in WITH_HOST:
                assert after.phase in (Phase.PARKED, Phase.RECOVERING, Phase.ENDED)


def test_a_session_starts_once() -> None:
    for states in LIVES:
        assert [state.phase for state in states].count(Phase.STARTING) == 1


def test_every_session_that_has_not_ended_can_live_again() -> None:
    def reached(phase: Phase) -> set[Phase]:
        phases: set[Phase] = set()
        following = {phase}
        while following - phases:
            phases |= following
            following = set().union(*(FOLLOWING[item] for item in phases))
        return phases

    for phase in set(Phase) - {Phase.ENDED}:
        assert Phase.LIVE in reached(phase)
    for phase in LOST:
        assert FOLLOWING[phase] == {Phase.WAKING, Phase.PARKED}, "another server tries again"
    assert reached(Phase.ENDED) == {Phase.ENDED}


def test_a_refusal_says_what_may_follow() -> None:
    with pytest.raises(ValueError, match="from parked to live: damaged, diverged, waking may follow"):
        State(Phase.PARKED).then(Phase.LIVE)
    with pytest.raises(ValueError, match=r"ended \(idle\) cannot end again"):
        State(Phase.ENDED, Reason.IDLE).end(Reason.DELETED)
