"""tests/conftest.py: each process of pytest-xdist begins with its share of the long tests."""

from types import SimpleNamespace

import pytest

from programs import ROOT


@pytest.mark.parametrize(("count", "processes"), [(103, 4), (100, 4), (40, 3), (30, 1), (11, 4)])
def test_the_part_of_each_process_begins_with_long_tests(
    count: int, processes: int, request: pytest.FixtureRequest
) -> None:
    conftest = request.config.pluginmanager.get_plugin(str(ROOT / "tests" / "conftest.py"))
    assert conftest is not None
    items = [
        SimpleNamespace(
            number=number, is_long=number % 10 == 9, get_closest_marker=lambda _, long=number % 10 == 9: long
        )
        for number in range(count)
    ]
    ordered = conftest.long_ones_first(items, processes)
    assert sorted(item.number for item in ordered) == [*range(count)]
    longs, start = sum(item.is_long for item in items), 0
    for process in range(processes):
        size = (count - start) // (processes - process)  # what --dist=worksteal gives it
        part = [item.is_long for item in ordered[start : start + size]]
        share = len(range(process, longs, processes))
        assert part[: share + 1] == [True] * share + [False]
        start += size
