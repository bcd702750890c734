"""The rules by which libraries differentiate a question: the answers are questions again, up to the second order.

Generic over the arrays of a library: each rule asks by an operation of that library, so it can be differentiated.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, NamedTuple, TypeAlias, TypeVar

from teletape.adapters.questions import Question
from teletape.core.errors import UnimplementedError

T = TypeVar("T")
#: The arrays of a question: its sources, `first` and `second`; None: of this list nothing.
Lists: TypeAlias = "tuple[Sequence[T] | None, Sequence[T] | None, Sequence[T] | None]"


class Query(NamedTuple, Generic[T]):
    """A question with its arrays: one of call, value_and_gradient (of a number), vjp, jvp, hvp, second_jvp."""

    question: Question
    inputs: Sequence[T]
    first: Sequence[T] = ()
    second: Sequence[T] = ()


@dataclass(frozen=True)
class Rules(Generic[T]):
    """The rules, in terms of a library's operations.

    Attributes:
        ask: Answers a question.
        ones: Ones in the shape of an array.
        scaled: A number, or one for each row, times an array.
        inner: The inner product of two lists of arrays, for each row if there are rows.
        add: The sum of two arrays.
    """

    ask: Callable[[Query[T]], Sequence[T]]
    ones: Callable[[T], T]
    scaled: Callable[[T, T], T]
    inner: Callable[[Sequence[T], Sequence[T]], T]
    add: Callable[[T, T], T]

    def tangents(self, query: Query[T], answer: Sequence[T], moved: Lists[T]) -> Sequence[T]:
        """Returns the tangents of an answer, from those of the question's arrays.

        Raises:
            UnimplementedError: It is a third derivative.
        """
        question, inputs, first, second = query
        by_sources, by_first, by_second = moved
        parts: list[Sequence[T]] = []
        if by_sources is not None:
            match question:
                case "call":
                    parts.append(self.ask(Query("jvp", inputs, by_sources)))
                case "value_and_gradient":
                    value, *gradients = answer
                    products = self.ask(Query("hvp", inputs, [self.ones(value)], by_sources))
                    parts.append([self.inner(gradients, by_sources), *products])
                case "vjp":
                    parts.append(self.ask(Query("hvp", inputs, first, by_sources)))
                case "jvp":
                    parts.append(self.ask(Query("second_jvp", inputs, first, by_sources)))
                case _:
                    raise _third()
        if by_first is not None:
            parts.append(self.ask(Query(question, inputs, by_first, second)))
        if by_second is not None:
            parts.append(self.ask(Query(question, inputs, first, by_second)))
        return self._sum(parts)

    def cotangents(
        self, query: Query[T], answer: Sequence[T], cotangents: Sequence[T], needed: tuple[bool, bool, bool]
    ) -> Lists[T]:
        """Returns the cotangents of a question's arrays, from those of its answer.

        Args:
            query: The question.
            answer: The answer.
            cotangents: Of the answer.
            needed: Which lists of arrays need theirs.

        Raises:
            UnimplementedError: It is a third derivative.
        """
        question, inputs, first, second = query
        of_sources = of_first = of_second = None
        match question:
            case "call":
                of_sources = self.ask(Query("vjp", inputs, cotangents)) if needed[0] else None
            case "value_and_gradient":
                value, *gradients = answer
                scaled = [self.scaled(cotangents[0], gradient) for gradient in gradients]
                parts: list[Sequence[T]] = [scaled]
                if cotangents[1:]:  # none if the gradient is not used
                    parts.append(self.ask(Query("hvp", inputs, [self.ones(value)], cotangents[1:])))
                of_sources = self._sum(parts)
            case "vjp":
                of_sources = self.ask(Query("hvp", inputs, first, cotangents)) if needed[0] else None
                of_first = self.ask(Query("jvp", inputs, cotangents)) if needed[1] else None
            case "jvp":
                of_sources = self.ask(Query("hvp", inputs, cotangents, first)) if needed[0] else None
                of_first = self.ask(Query("vjp", inputs, cotangents)) if needed[1] else None
            case "hvp":
                of_first = self.ask(Query("second_jvp", inputs, second, cotangents)) if needed[1] else None
                of_second = self.ask(Query("hvp", inputs, first, cotangents)) if needed[2] else None
            case "second_jvp":
                of_first = self.ask(Query("hvp", inputs, cotangents, second)) if needed[1] else None
                of_second = self.ask(Query("hvp", inputs, cotangents, first)) if needed[2] else None
        if needed[0] and of_sources is None:
            raise _third()
        return of_sources, of_first, of_second

    def _sum(self, parts: Sequence[Sequence[T]]) -> Sequence[T]:
        total, *others = parts
        for part in others:
            total = [self.add(*pair) for pair in zip(total, part, strict=True)]
        return total


def _third() -> UnimplementedError:
    return UnimplementedError(
        "an adapter differentiates a function twice, and this is a third derivative: compute one inside the function"
    )
