"""Contracts as data: versions by content, named axes, aliases, who may see a name."""

from dataclasses import replace
from typing import Any

import pytest
from published_versions import version

from teletape_server.models.published.contract import Declared, Name, Published, ShapeFault, bind, split_reference


def test_a_record_is_read_as_it_was_written() -> None:
    published = version(weights={"w": Declared("float64", (2, 3))}, weights_hash="ab", weights_bytes=48, created=1.5)
    assert Published.from_json(published.to_json()) == published


def test_a_version_is_named_by_what_it_computes() -> None:
    assert version(created=1.0).version == version(created=2.0, rows="no").version
    assert version().version != version(weights_hash="ab").version


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"version": "0123"}, "it was changed"),
        ({"weights_hash": "cd"}, "it was changed"),
        ({"inputs": None}, "no record"),
        ({"commands": [{}, 1]}, "it was changed"),
        ({"strange": 1}, "no record"),
    ],
)
def test_a_record_that_was_changed_is_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Published.from_json(version().to_json() | change)


def test_a_named_axis_has_one_length() -> None:
    axes: dict[str, int] = {}
    bind(axes, "x", Declared("float32", ("n", 2)), (3, 2))
    assert axes == {"n": 3}
    bind(axes, "y", Declared("float32", ("n", None)), (3, 7))
    for shape in ((4, 1), (3,)):
        with pytest.raises(ShapeFault, match="y is float32"):
            bind(axes, "y", Declared("float32", ("n", None)), shape)
    with pytest.raises(ShapeFault, match=r"x is float32\[n, 2\]; found the shape \[3, 1\]"):
        bind(axes, "x", Declared("float32", ("n", 2)), (3, 1))


def test_aliases_follow_their_versions() -> None:
    first, second = version(), version(weights_hash="ab")
    name = Name("line", "ann").with_version(first).with_version(second)
    assert name.version("latest") is second
    assert name.version(first.version) is first
    assert name.version("stable") is None
    name = replace(name, aliases={**name.aliases, "stable": second.version})
    rest = name.without_version(second.version)
    assert (rest.version("latest"), rest.version("stable")) == (first, None)
    again = name.with_version(first)
    assert (again.version("latest"), len(again.versions)) == (first, 2)


def test_who_may_see_a_name() -> None:
    name = Name("line", "ann", group=("bob",))
    seen = {
        visibility: [owner for owner in ("ann", "bob", "eve") if replace(name, visibility=visibility).is_visible(owner)]
        for visibility in ("me", "group", "everybody")
    }
    assert seen == {"me": ["ann"], "group": ["ann", "bob"], "everybody": ["ann", "bob", "eve"]}


def test_a_reference_has_a_name_and_perhaps_a_version() -> None:
    assert split_reference("line") == ("line", "latest")
    assert split_reference("line@stable") == ("line", "stable")
    assert split_reference("line@a@b") == ("line@a@b", "latest")
