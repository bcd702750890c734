"""Laws of sessions that are written down: another one goes on, bit for bit, from a file or from a log's rows.

file   after any batch, a session begins from the file that answers all that follows as the first one does, also
       questions to tapes that were alive, and explanations; its arrays and objects take as many bytes
log    a session that runs the rows of a log has the same names and numbers, and answers as the first one did; also if
       batches were stopped in the middle
"""

import gc
from collections.abc import Iterator, Sequence
from typing import Any
from unittest.mock import patch

import numpy as np

from fuzz.sessions import execute, new_session
from fuzz.target import Finding
from teletape_engine import commands, object_bytes
from teletape_engine.commands import Batch
from teletape_engine.commands.results import Answer, Facts
from teletape_engine.errors import TeletapeError
from teletape_engine.session.objects import every_function, every_log
from teletape_engine.session.session import Session
from teletape_server.durable import bases
from teletape_server.durable.batches import BatchReader, BatchWriter, Executed

_KINDS = ("tensor", "slices", "variable", "function", "tape")
#: Of a tape: what its end frees, since the test refers to arrays too; and what a command has recorded that was stopped.
#: Of an estimate: how fast this machine is.
_NOT_COMPARED = ("frees", "bytes", "ops", "watched_variables", "seconds")


def numbers(session: Session) -> dict[Any, Any]:
    """What every name means: its facts and, of what has numbers, their bytes."""
    listed = {
        facts["id"]: {
            name: fact for name, fact in facts.items() if facts["kind"] != "tape" or name not in _NOT_COMPARED
        }
        for facts in session.listing(*_KINDS)
    }
    for name, facts in listed.items():
        if facts["kind"] in ("tensor", "variable"):
            [result] = session.execute(Batch((commands.Fetch(name),))).results
            listed[name] = facts | {"data": np.asarray(result.array).tobytes()}
    return listed


def check_file(batches: Sequence[Batch], position: int) -> None:
    """The law of files, at a position in a sequence.

    Raises:
        Finding: It does not hold.
    """
    first = new_session()
    for batch in batches[:position]:
        execute(first, batch)
    second = new_session()
    snapshot, _ = bases.read(b"".join(bases.written(first.snapshot(), {})))
    second.restore(snapshot)
    if _bytes(first) != _bytes(second):
        gc.collect()  # a failure's traceback keeps values, and so their tangents, for some time
        _check_same("file: other bytes in use", _bytes(first), _bytes(second))
    _check_same("file: other names or numbers", numbers(first), numbers(second))
    for batch in batches[position:]:
        _check_same(
            "file: another answer", _answered(batch, execute(first, batch)), _answered(batch, execute(second, batch))
        )
    _check_same("file: other names or numbers later", numbers(first), numbers(second))


def check_log(batches: Sequence[Batch], stops: Iterator[int]) -> None:
    """The law of logs.

    Args:
        batches: The sequence.
        stops: For each batch after how many looks it is stopped; 0: it is not.

    Raises:
        Finding: It does not hold.
    """
    first, second = new_session(), new_session()
    reader = BatchReader()
    writer = BatchWriter(reader.add_structure)
    for batch in batches:
        try:
            answer = first.execute(batch, cancelled=_stopping(next(stops)))
        except TeletapeError:
            continue  # it changes nothing
        executed = Executed.of(first, batch, answer, explain=False)
        with second.without_limit():
            again = reader.read(writer.row(executed)).run_again(second)
        if answer.failures or not executed.failures:
            _check_same("log: another answer", _answered(batch, answer), _answered(batch, again))
        _check_same("log: other names or numbers", numbers(first), numbers(second))


def _stopping(looks: int) -> Any:
    left = iter(range(looks - 1))
    return lambda: looks > 0 and next(left, None) is None


def _bytes(session: Session) -> int:
    """The bytes in use, those that every session has free among them, without what only makes work faster."""
    state = session._state
    functions = every_function(state.entries)
    logs = every_log(state.tapes(), state.provenance_logs())
    indexed = sum(log.index.count for log in logs if log.index is not None) * object_bytes.INDEXED
    remembered = sum(function.remembered_bytes for function in functions) + state.repetitions.remembered_bytes
    with patch.object(object_bytes, "FREE", 0):
        used = session.bytes_in_use()
    return used - state.memory.cached() - remembered - indexed


def _answered(batch: Batch, answer: Answer | str) -> Any:
    if isinstance(answer, str):
        return answer
    return [_plain(result) for result in answer.results], answer.failures


def _plain(result: Any) -> Any:
    if isinstance(result, Facts):
        return {name: fact for name, fact in result.facts.items() if name not in _NOT_COMPARED}
    array = getattr(result, "array", None)
    if array is None:
        return result
    parts = array[:2] if isinstance(array, tuple) else (array,)
    return result.index, result.id, result.spec, [np.asarray(part).tobytes() for part in parts]


def _check_same(kind: str, first: Any, second: Any) -> None:
    if repr(first) == repr(second):
        return
    if isinstance(first, dict) and [*first] == [*second]:
        name = next(name for name in first if repr(first[name]) != repr(second[name]))
        first, second = {name: first[name]}, {name: second[name]}
    raise Finding(kind, f"first {first!r:.900}\nthen {second!r:.900}")
