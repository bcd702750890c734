"""Common mistakes: the error's class is TensorFlow's, its first line a sentence, and its line the program's."""

from __future__ import annotations

import json
import re
import traceback
from collections.abc import Iterator

import mistakes
import pytest
from loopback import Loopback, session_on

import teletape as tf
from teletape.core.sessions.local import LocalSession
from teletape.core.sessions.session import Session

RECORDED = json.loads(mistakes.RECORDED.read_text())
#: What differs from TensorFlow, and why.
DIFFERENT = {
    "a_gradient_of_a_number": "TypeError",  # says what the target is, and what to do
    "a_value_in_a_function": None,  # runs op by op, with a warning (docs/functions.md)
    "a_variable_in_a_function_that_is_made_again": None,  # so does this
    "a_loop_whose_variable_changes_its_shape": None,  # and this
}
#: Mistakes that no op meets: the first line names what was passed instead.
WORDS = {
    "a_string": "'two'|'1.5'",
    "none_": "None",
    "a_float_for": "0.5",
    "a_ragged": "non-rectangular",
    "labels_that": "rank 2",
    "another_signature": r"shape=\(3,\)",
}


@pytest.fixture(scope="module", params=["in this process", "over HTTP"])
def session(request: pytest.FixtureRequest) -> Iterator[Session]:
    with session_on(Loopback()) if request.param == "over HTTP" else LocalSession() as session:
        yield session


def test_the_mistakes_are_those_that_were_recorded() -> None:
    assert list(mistakes.MISTAKES) == list(RECORDED)
    assert len(RECORDED) >= 50


@pytest.mark.parametrize("name", mistakes.MISTAKES)
def test_a_mistake(session: Session, name: str) -> None:
    mistake = mistakes.MISTAKES[name]
    expected = DIFFERENT.get(name, RECORDED[name])
    assert mistakes.class_of(mistake, tf) == expected
    if expected is None:
        return
    with pytest.raises(Exception) as caught:  # noqa: PT011  # of each its own
        mistake(tf)
    first = str(caught.value).partition("\n")[0]
    assert 12 < len(first) < 400
    entries = traceback.extract_tb(caught.value.__traceback__)
    own = [entry for entry in entries if entry.filename == mistakes.__file__]
    assert own[0].name == name
    assert len(entries) <= len(own) + 1 + 2
    if isinstance(caught.value, tf.errors.InvalidArgumentError) and "output gradient" not in first:
        assert re.search(r" \[Op:[A-Z]\w+\]$", first), first
    for part, words in WORDS.items():
        if name.startswith(part):
            assert re.search(words, first)


def test_an_error_in_a_traced_function_lists_its_lines(session: Session) -> None:
    @tf.function
    def outer(x: tf.Tensor) -> tf.Tensor:
        y = x * 2.0
        return inner(y)

    @tf.function
    def inner(y: tf.Tensor) -> tf.Tensor:
        return y @ tf.ones([3, 4])

    with pytest.raises(ValueError, match=r"In\[1\]: \[3,4\] \[Op:MatMul\]\n\nin user code:\n\n") as caught:
        outer(tf.ones([2, 2]))
    lines = str(caught.value).splitlines()[4:]
    assert [line.strip() for line in lines[1::2]] == ["return inner(y)", "return y @ tf.ones([3, 4])"]
    assert re.fullmatch(r' +File ".*test_mistakes\.py", line \d+, in outer  \*', lines[0])
    assert re.fullmatch(r' +File ".*test_mistakes\.py", line \d+, in inner  \*', lines[2])
