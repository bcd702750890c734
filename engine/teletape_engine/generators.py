"""Generators that stop at questions: they are run to their end with a function that answers."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import TypeVar

Question = TypeVar("Question")
Reply = TypeVar("Reply")
R = TypeVar("R")


def driven(walk: Generator[Question, Reply, R], answer: Callable[[Question], Reply]) -> R:
    """What a generator returns once each of its questions has been answered.

    Args:
        walk: The generator, which has not begun.
        answer: From a question to what the generator is sent for it. What it raises ends the walk.
    """
    try:
        question = next(walk)
        while True:
            reply = answer(question)
            del question  # what it names may be freed while the generator goes on
            question = walk.send(reply)
    except StopIteration as done:
        return done.value  # type: ignore[no-any-return]  # StopIteration is untyped
