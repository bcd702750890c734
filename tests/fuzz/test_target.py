"""A run finds what a target reports, makes it small, says how to repeat it, and ends what does not end."""

import resource
import sys

import numpy as np
import pytest

from fuzz import __main__ as command_line
from fuzz.target import Finding, bounded, in_time, random_of, run


class Numbers:
    """A target whose cases are lists; one with a number above 90 is a finding."""

    name = "numbers"

    def close(self):
        """Nothing has been started."""

    def draw(self, rng):
        return [rng.randrange(100) for _ in range(5)]

    def check(self, case):
        if any(number > 90 for number in case):
            raise Finding("large", f"{max(case)}")
        return ["fine"]

    def smaller(self, case):
        for index in range(len(case)):
            yield case[:index] + case[index + 1 :]


def test_a_case_depends_on_seed_and_number_alone():
    target = Numbers()
    assert target.draw(random_of(target, 1, 7)) == target.draw(random_of(target, 1, 7))
    assert target.draw(random_of(target, 1, 7)) != target.draw(random_of(target, 1, 8))
    assert target.draw(random_of(target, 1, 7)) != target.draw(random_of(target, 2, 7))


def test_a_kind_of_finding_is_shown_once_as_its_smallest_case_with_what_repeats_it():
    shown = []
    report = run(Numbers(), 3, iter(range(50)), show=shown.append)
    ((count, first, text),) = report.findings.values()
    assert report.cases == 50
    assert count + report.outcomes["fine"] == 50
    assert count > 1
    assert len(shown) == 1
    first_line, again, smallest = shown[0].splitlines()
    assert first_line == text
    assert again.strip() == f"again:    make fuzz ARGS='--only numbers --seed 3 --case {first}'"
    (number,) = eval(smallest.split(":")[1], {})  # noqa: S307  # this test's own text
    assert number > 90
    repeated = run(Numbers(), 3, iter([first]))
    assert repeated.findings == {"large": (1, first, text)}


def test_the_command_line_repeats_a_case_and_fails_if_it_finds_something(monkeypatch, capsys):
    monkeypatch.setattr(command_line, "Sequences", Numbers)
    numbers = [number for number in range(20) if max(Numbers().draw(random_of(Numbers(), 3, number))) > 90]
    for arguments, status in (("--count 20", 1), (f"--case {numbers[0]}", 1), ("--seconds 0", 0)):
        monkeypatch.setattr(sys, "argv", ["fuzz", "--only", "numbers", "--seed", "3", *arguments.split()])
        assert command_line.main() == status
    printed = capsys.readouterr().out
    assert f"--only numbers --seed 3 --case {numbers[0]}" in printed
    assert f"numbers: 20 cases in 0 s, seed 3: 1 kinds of finding\n  outcomes: fine {20 - len(numbers)}\n" in printed
    assert f"  {len(numbers)} × large (case {numbers[0]})" in printed


def _endless(case):
    while True:
        pass


def _greedy(case):
    return [str(np.ones(10**9).sum())]


@pytest.mark.parametrize(("check", "kind"), [(_endless, "hang"), (_greedy, "memory")])
def test_what_does_not_end_or_takes_too_much_is_a_finding(check, kind):
    before = resource.getrlimit(resource.RLIMIT_AS)
    with bounded(address_space=1 << 30), pytest.raises(Finding) as caught:
        in_time(check, None, seconds=0.2)
    assert caught.value.kind == kind
    assert resource.getrlimit(resource.RLIMIT_AS) == before
