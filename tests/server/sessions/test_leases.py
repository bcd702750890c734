"""Leases: when a session ends, decided from times alone."""

import pytest

from teletape_server.ipc.leases import Lease, Reason, Terms

START = 1000.0


def lease(idle: float = 60.0, age: float = 600.0) -> Lease:
    return Lease(Terms(idle, START + age), START)


def test_it_ends_after_the_idle_time() -> None:
    session = lease()
    assert session.expires_at(START + 10) == START + 60
    assert session.expired(START + 59.9) is None
    assert session.expired(START + 60) is Reason.IDLE


def test_work_begins_the_idle_time_anew_and_looking_does_not() -> None:
    session = lease()
    session.begin(START + 50)
    session.end(START + 55)
    assert session.expires_at(START + 56) == START + 115
    assert session.expires_at(START + 100) == START + 115


def test_no_idle_time_passes_while_it_works() -> None:
    session = lease()
    session.begin(START)
    session.begin(START)
    session.end(START + 70)
    assert session.expired(START + 130) is None
    assert session.expires_at(START + 130) == START + 190
    session.end(START + 140)
    assert session.expired(START + 199) is None
    assert session.expired(START + 200) is Reason.IDLE


def test_nothing_outlives_the_greatest_age() -> None:
    session = lease()
    session.begin(START + 590)
    assert session.expires_at(START + 590) == START + 600
    assert session.expired(START + 600) is Reason.MAX_AGE
    session.extend(START + 595, 3600)
    assert session.expired(START + 600) is Reason.MAX_AGE


def test_extending_keeps_it_idle_or_not_and_never_shortens() -> None:
    session = lease()
    session.extend(START + 10, 200)
    assert session.expires_at(START + 10) == START + 210
    assert session.expired(START + 209) is None
    session.extend(START + 20, 5)
    assert session.expires_at(START + 20) == START + 210
    assert session.expired(START + 210) is Reason.IDLE


@pytest.mark.parametrize(("worked", "ends"), [(START, START + 60), (START + 570, START + 600)])
def test_terms_give_the_end_from_the_last_work(worked: float, ends: float) -> None:
    assert Terms(60.0, START + 600).expires_at(worked) == ends
