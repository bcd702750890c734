"""A batch is its structure and its contents: taken apart, put together again, and recognised."""

from typing import Any

import numpy as np
import pytest
from batches import batches, same
from hypothesis import given
from hypothesis import strategies as st

import teletape_wire as wire
from teletape_engine import commands
from teletape_engine.commands import Batch, DefineFunction, OnFailure
from teletape_engine.commands.structure import (
    Contents,
    Repetition,
    Slot,
    Structure,
    structure_of,
    text_and_contents,
)
from teletape_engine.errors import BadCommandError
from teletape_engine.recording.values import Literal
from teletape_engine.session.session import Session

X = np.arange(3, dtype=np.float32)


def split(batch: Batch) -> tuple[Structure, Contents]:
    result = structure_of(batch)
    assert result is not None
    return result


def step(first: int, x: Any = X, rate: Any = 0.5, **changes: Any) -> Batch:
    """A step whose new ids begin at `first`; the variable is 7."""
    fields: dict[str, Any] = {"where": "train.py:3", "axis": 0, "mode": "sub"} | changes
    tape, a, b, grad = first, first + 1, first + 2, first + 3
    return Batch(
        (
            commands.TapeOpen(tape),
            commands.Constant(a, x),
            commands.Call("mul", (a, 7), (b,), {}, fields["where"]),
            commands.Call("reduce_sum", (b,), (first + 4,), {"axis": fields["axis"]}),
            commands.Gradient(tape, (first + 4,), (7,), (grad, None)[:1]),
            commands.Assign(7, grad, fields["mode"]),
            commands.Call("mul", (Literal(rate), grad), (first + 5,)),
            commands.Fetch(first + 5),
        ),
        (tape, a, b, first - 1),
    )


@given(batches, st.integers(1, 4))
def test_structure_and_contents_are_the_batch(batch: Batch, count: int) -> None:
    if batch.replace or any(isinstance(command, DefineFunction) for command in batch.commands):
        assert structure_of(batch) is None
        return
    structure, contents = split(batch)
    again = structure.batch(contents, client=batch.client, seq=batch.seq, nonce=batch.nonce)
    assert same(again, batch)
    # The same commands on few ids, most of which then come several times.
    few = [tuple([i % count for i, _ in enumerate(ids)]) for ids in contents[:2]]
    batch = structure.batch(Contents(few[0], few[1], contents.tensors, contents.numbers))
    structure, contents = split(batch)
    assert same(structure.batch(contents), batch)
    assert len({*contents.taken, *contents.created}) == len(contents.taken) + len(contents.created)
    assert text_and_contents(batch) is not None
    structure.check(contents)


@given(batches)
def test_what_arrives_has_the_structure_of_what_was_sent(batch: Batch) -> None:
    """A client and a server have the same structures, whatever the wire makes of attributes."""
    frame = wire.encode_batch(batch)
    arrived = wire.decode_batch(b"".join(frame.buffers))
    if (sent := structure_of(batch)) is not None:
        structure, contents = split(arrived)
        assert structure == sent[0]
        assert same(structure.batch(contents, client=batch.client, seq=batch.seq, nonce=batch.nonce), arrived)


def test_a_repeated_step_has_one_structure() -> None:
    structure, contents = split(step(100))
    assert contents.taken == (7, 99)
    assert contents.created == (100, 101, 102, 104, 103, 105)
    assert contents.tensors == (X,)
    assert contents.numbers == (Literal(0.5),)
    assert structure.commands[1] == commands.Constant(Slot(1, 1), Slot(2, 0))  # type: ignore[arg-type]  # slots
    later = step(900, X + 1, rate=0.25)
    other, changed = split(later)
    assert other == structure
    assert hash(other) == hash(structure)
    assert same(structure.batch(changed), later)
    assert text_and_contents(later) == (structure.text, changed)


@pytest.mark.parametrize(
    "other",
    [
        step(100, X.astype(np.float64)),
        step(100, X[:2]),
        step(100, Literal(1.0)),
        step(100, rate=1),
        step(100, rate=True),
        step(100, where="train.py:4"),
        step(100, where=None),
        step(100, axis=True),
        step(100, axis=None),
        step(100, axis=0.0),
        step(100, mode="add"),
        Batch(step(100).commands, step(100).releases[::-1]),
        Batch(step(100).commands, step(100).releases, temporaries=(105,)),
        Batch(step(100).commands, step(100).releases, on_failure=OnFailure.FREE),
        Batch(step(100).commands[:-1], step(100).releases),
    ],
)
def test_what_is_structure(other: Batch) -> None:
    assert split(other)[0] != split(step(100))[0]


def test_an_id_that_is_mentioned_before_it_is_made_is_taken() -> None:
    _, contents = split(Batch((commands.Fetch(3), commands.Constant(3, X), commands.Constant("a", X)), ("a", "b")))
    assert contents == ((3, "b"), ("a",), (X, X), ())


def test_the_text_of_a_structure() -> None:
    assert split(step(100))[0].text == (
        "tape.open b0 ( ) (False, True, False) ; constant b1 float32(3,) ; 'mul' b1 a0 : b2 'train.py:3' ; "
        "'reduce_sum' b2 : b3 {'axis': 0} ; gradient b0 ( b3 ) ( a0 ) ( b4 ) - ('none', None, False) ; "
        "assign a0 b4 - 'sub' ; 'mul' float b4 : b5 ; fetch b5 (None, False) ; | b0 b1 b2 a1 | poison"
    )


def test_a_session_executes_a_repetition() -> None:
    session = Session()
    whole = Batch(
        (commands.Constant(1, X), commands.Call("mul", (1, Literal(2.0)), (2,)), commands.Fetch(2)), (2,), 1, 2, b"n"
    )
    assert session.execute(Batch((commands.ClientAttach(), *whole.commands), whole.releases)).failure is None
    structure, contents = split(whole)
    contents = contents._replace(created=(3, 4), tensors=(X + 1,))
    answer = session.execute(Repetition(structure, contents, 1, 1, b"n"))
    assert answer.results[0].array.tolist() == [2, 4, 6]  # type: ignore[union-attr]  # fetched
    assert session.execute(Repetition(structure, contents, 1, 1, b"n")) is answer
    assert [each["id"] for each in session.listing("tensor")] == [1, 3]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"taken": (7,)}, "2 ids from before, 6 new ids, 1 tensors, 1 numbers; found 1 ids"),
        ({"created": (1, 2, 3, 4, 5, 7)}, "an id occurs twice"),
        ({"tensors": (X[:2],)}, r"tensor 0 of the batch's structure is float32\[3\]; found float32\[2\]"),
        ({"tensors": (X.astype(np.int32),)}, r"found int32\[3\]"),
        ({"numbers": (Literal(1),)}, "number 0 of the batch's structure is of type float; found int"),
    ],
)
def test_contents_that_do_not_fit_are_refused(change: dict[str, Any], message: str) -> None:
    structure, contents = split(step(100))
    structure.check(contents)
    with pytest.raises(BadCommandError, match=message):
        structure.check(contents._replace(**change))
