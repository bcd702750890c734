"""Suggestions: the nearest known names, and what messages say of a word that is not allowed."""

import pytest

from teletape_engine.suggestions import did_you_mean, nearest, with_nearest


@pytest.mark.parametrize(
    ("name", "near"),
    [("SAM", ["SAME"]), ("same", ["SAME"]), ("vald", ["valid"]), ("nothing like it", [])],
)
def test_the_nearest_names_are_spelled_alike_or_differ_in_capitals(name: str, near: list[str]) -> None:
    assert nearest(name, ["SAME", "valid", "EXPLICIT"]) == near
    assert bool(did_you_mean(name, ["SAME", "valid", "EXPLICIT"])) == bool(near)


def test_a_message_ends_with_the_question_if_there_is_one() -> None:
    assert with_nearest("No 'flot32'.", "flot32", ["float32"]) == "No 'flot32': did you mean 'float32'?"
    assert with_nearest("No 'x'.", "x", ["float32"]) == "No 'x'."
    assert with_nearest("No 7.", 7, ["float32"]) == "No 7."
