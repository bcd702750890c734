"""The text of an answer that is written again with other numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

import teletape_wire as wire
from teletape_engine.commands.results import Answer, Fetched, Kinds
from teletape_server.handlers.methods import Result, value_of

_BYTES: Final = "bytes_in_use"
_PLACE: Final = np.empty(0)  # stands for the number of bytes in use
_UNKNOWN: Final = -1


class WrittenAnswer:
    """An answer in JSON, as text with places for arrays and for the number of bytes in use.

    Args:
        parts: The text before, between and after the places.
        places: For each the number of the result whose array it is; None: the bytes in use.
        results: Of the batch that was answered so.

    Attributes:
        has_bytes: Whether the number of bytes in use is in it.
    """

    def __init__(self, parts: Sequence[bytes], places: Sequence[int | None], results: Sequence[Any]) -> None:
        self._first, self._rest = parts[0], [*zip(places, parts[1:], strict=True)]
        self._expected = [each if isinstance(each, Kinds) else (each.spec, each.complete) for each in results]
        self.has_bytes = None in places

    @classmethod
    def of(cls, result: Result, answer: Answer) -> WrittenAnswer | None:
        """Returns the text of a result that is not written yet; None: not only the arrays differ from others'.

        Args:
            result: The result.
            answer: Of its batch.
        """
        if result.facts.keys() - {_BYTES} or not all(isinstance(each, Fetched | Kinds) for each in answer.results):
            return None
        numbers = {id(each.array): number for number, each in enumerate(answer.results) if isinstance(each, Fetched)}
        value = value_of(result)
        parts, arrays = wire.json_around_arrays({**value, _BYTES: _PLACE} if _BYTES in value else value)
        places = [None if array is _PLACE else numbers.get(id(array), _UNKNOWN) for array in arrays]
        return None if _UNKNOWN in places else cls(parts, places, answer.results)

    def fits(self, answer: Answer) -> bool:
        """Returns whether the results of a batch are those of this answer, but for the elements."""
        results, expected = answer.results, self._expected
        if len(results) != len(expected):
            return False
        for result, wanted in zip(results, expected, strict=True):
            if isinstance(result, Fetched):
                if (result.spec, result.complete) != wanted:
                    return False
            elif result is not wanted and result != wanted:
                return False
        return True

    def result(self, answer: Answer, bytes_in_use: int | None) -> Result:
        """Returns the result with the arrays of a batch that fits."""
        results: Sequence[Any] = answer.results
        texts, in_use = [self._first], str(bytes_in_use).encode()
        for place, after in self._rest:
            texts += (in_use if place is None else wire.array_as_json(results[place].array), after)
        body = b"".join(texts)
        return Result(wire.JSON_TYPE, [body], len(body), {} if bytes_in_use is None else {_BYTES: bytes_in_use})
