"""Whatever a client sends, and in whatever form `Repeats` gives it: the batch that arrives is the batch."""

import dataclasses
import random
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest
from batches import batches, every, same
from hypothesis import given, settings
from hypothesis import strategies as st

import teletape_wire as wire
from teletape_engine import commands
from teletape_engine.catalogue.attributes import Attrs
from teletape_engine.commands import COMMANDS, Batch, Call, Command, DefineFunction, OnFailure
from teletape_engine.commands.structure import Repetition, structure_of
from teletape_engine.errors import UnknownStructureError
from teletape_engine.recording.values import Literal
from teletape_wire import repeats

NONCE = bytes(range(16))
X = np.arange(3, dtype=np.float32)
AXIS_0, AXIS_1 = Attrs({"axis": 0}), Attrs({"axis": 1})


@pytest.fixture(autouse=True, scope="module")
def small_batches_too() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(repeats, "_FEWEST", 1)
        yield


def columns(batch: Batch) -> repeats.Columns:
    result = repeats.columns_of(batch)
    assert result is not None
    return result


class Receiver:
    """What a server makes of frames.

    Attributes:
        forms: For each batch how it came: `whole`, `marked` or `repeated`; `unknown` before one that comes again.
    """

    def __init__(self) -> None:
        self.repeats, self.structures = wire.Repeats(), wire.Structures()
        self.forms: list[str] = []

    def send(self, batch: Batch, columns: Sequence[tuple[Any, ...]] | None = None) -> Batch:
        """Sends a batch as a client does, and returns what arrives."""
        compared = columns or repeats.columns_of(batch) or ()
        try:
            return self.receive(self.repeats.frame(batch, compared, lambda: batch))
        except UnknownStructureError:
            self.forms[-1] = "unknown"
            return self.receive(self.repeats.whole(batch, compared))

    def check(self, batch: Batch, columns: Sequence[tuple[Any, ...]] | None = None) -> None:
        """Sends a batch; what arrives must be what arrives of it in full."""
        assert same(self.send(batch, columns), wire.decode_batch(b"".join(wire.encode_batch(batch).buffers)))

    def receive(self, frame: wire.Frame) -> Batch:
        self.forms.append("repeated")
        before = set(self.structures._kept)
        sent = wire.decode_request(b"".join(frame.buffers), self.structures)
        if isinstance(sent, Repetition):
            return sent.batch()
        self.forms[-1] = "marked" if set(self.structures._kept) != before else "whole"
        return sent

    def forget(self) -> None:
        self.structures = wire.Structures()


def step(first: int, *, x: Any = X, rate: Any = 0.5, attrs: Attrs = AXIS_0, **changes: Any) -> Batch:
    """A step whose new ids begin at `first`; the variable is 7."""
    tape, a, b, loss, grad = range(first, first + 5)
    fields: dict[str, Any] = {
        "releases": (tape, a, b, first - 9),
        "weights": (None,),
        "mode": "sub",
        "amount": Literal(rate),
        "operand": a,
        "persistent": False,
    } | changes
    return Batch(
        (
            commands.ContextSwitch(5),
            commands.TapeOpen(tape, fields["persistent"]),
            commands.Constant(a, x),
            Call("mul", (fields["operand"], 7), (b,), AXIS_1),
            Call("reduce_sum", (b,), (loss,), attrs),
            commands.Gradient(tape, (loss,), (7,), (grad,), fields["weights"], predicted=("dense",)),
            commands.Assign(7, fields["amount"], fields["mode"]),
            commands.Fetch(loss),
        ),
        fields["releases"],
        1,
        first,
        NONCE,
    )


def test_a_step_travels_as_its_number_from_the_third_time_on() -> None:
    receiver = Receiver()
    for first in range(100, 150, 10):
        batch = step(first, x=X + first, rate=1.0 / first)
        receiver.check(batch)
    assert receiver.forms == ["whole", "marked", "repeated", "repeated", "repeated"]


def test_two_steps_in_turn_are_both_known() -> None:
    receiver = Receiver()
    for first in range(100, 300, 10):
        batch = step(first, attrs=AXIS_0 if first % 20 else AXIS_1)
        receiver.check(batch)
    assert receiver.forms[-10:] == ["repeated"] * 10
    assert receiver.forms.count("marked") == 2


DIFFERENT = {
    "an attribute": {"attrs": AXIS_1},
    "attributes that are equal": {"attrs": Attrs({"axis": False})},
    "a dtype": {"x": X.astype(np.float64)},
    "a shape": {"x": X[:2]},
    "a number in place of a tensor": {"x": Literal(2.0)},
    "the type of a number": {"rate": 1},
    "a boolean": {"rate": True},
    "a tensor in place of a number": {"amount": X},
    "an id in place of a number": {"amount": 3},
    "a name in place of an id": {"operand": "x"},
    "which id": {"operand": 7},
    "a number in place of an id": {"operand": Literal(1.5)},
    "a tensor in place of an id": {"operand": X},
    "no weights": {"weights": None},
    "two weights": {"weights": (None, None)},
    "a weight": {"weights": (7,)},
    "a text": {"mode": "add"},
    "a flag": {"persistent": True},
    "a flag that is a number": {"persistent": 0},
    "fewer releases": {"releases": (100, 101)},
    "releases in another order": {"releases": (101, 100, 102, 91)},
    "a release that is mentioned": {"releases": (100, 101, 102, 7)},
}


@pytest.mark.parametrize("case", DIFFERENT)
def test_what_differs_in_its_structure_is_sent_in_full(case: str) -> None:
    receiver = Receiver()
    for _ in range(3):
        receiver.send(step(100))
    batch = step(100, **DIFFERENT[case])  # type: ignore[arg-type]  # of each kind
    known = next(iter(receiver.repeats._shapes.values())).variants[0]
    assert known.contents(columns(step(200)), step(200).releases) is not None
    assert known.contents(columns(batch), batch.releases) is None
    if case != "a flag that is a number":  # which the wire refuses
        receiver.check(batch)
        assert receiver.forms == ["whole", "marked", "repeated", "whole"]


def test_growing_shapes_are_rarely_marked() -> None:
    receiver = Receiver()
    for length in range(64):
        batch = step(100, x=np.zeros(length))
        receiver.check(batch)
    assert receiver.forms.count("marked") == 6
    assert set(receiver.forms) == {"whole", "marked"}


def test_a_structure_that_was_forgotten_is_sent_again() -> None:
    receiver = Receiver()
    for first in range(100, 200, 10):
        if first == 150:
            receiver.forget()
        batch = step(first)
        receiver.check(batch)
    assert receiver.forms[4:8] == ["repeated", "unknown", "marked", "repeated"]


def test_a_structure_that_is_always_forgotten_is_given_up() -> None:
    receiver = Receiver()
    for first in range(100, 1100, 10):
        receiver.forget()
        batch = step(first)
        receiver.check(batch)
    assert receiver.forms.count("unknown") <= 6 * repeats._MOST_REFUSALS


def test_a_large_structure_is_not_marked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(repeats, "_MOST_HEADER", 100)
    receiver = Receiver()
    for first in range(100, 150, 10):
        receiver.send(step(first))
    assert set(receiver.forms) == {"whole"}


def test_many_kinds_of_batches_are_bounded() -> None:
    receiver = Receiver()
    for count in range(300):
        batch = Batch((commands.Fetch(1),) * count, (), 1, count, NONCE)
        for _ in range(3):
            receiver.check(batch)
    assert len(receiver.repeats._shapes) <= repeats._MOST_SHAPES


@pytest.mark.parametrize("fields", [{"temporaries": (101,)}, {"on_failure": OnFailure.FREE}, {"replace": True}])
def test_batches_that_no_program_sends_are_sent_in_full(fields: dict[str, Any]) -> None:
    receiver = Receiver()
    for _ in range(4):
        batch = dataclasses.replace(step(100), **fields)
        receiver.check(batch)
    assert set(receiver.forms) == {"whole"}


def varied(batch: Batch, chance: random.Random) -> Batch:
    """The batch with other ids, numbers or tensors, or with something else changed."""
    both = structure_of(batch)
    if both is None or chance.random() < 0.1:
        return batch
    structure, contents = both
    names: list[Any] = chance.sample(range(1 << 20), len(contents.taken) + len(contents.created))
    if chance.random() < 0.2 and len(names) > 1:
        names[0] = chance.choice([names[1], "name", 1 << 80])
    numbers = [chance.choice([number, Literal(2.5), Literal(3)]) for number in contents.numbers]
    contents = contents._replace(
        taken=tuple(names[: len(contents.taken)]),
        created=tuple(names[len(contents.taken) :]),
        numbers=tuple(numbers if chance.random() < 0.3 else contents.numbers),
        tensors=tuple(
            np.array(tensor[::-1]) if tensor.ndim and chance.random() < 0.5 else tensor for tensor in contents.tensors
        ),
    )
    batch = structure.batch(contents, client=batch.client, seq=batch.seq, nonce=batch.nonce)
    if chance.random() < 0.2:
        batch = dataclasses.replace(batch, releases=batch.releases[1:])
    return batch


def with_interned(command: Command) -> Command:
    """The command as the SDK records it: attributes of an op are one object for equal ones."""
    if isinstance(command, Call):
        return dataclasses.replace(command, attrs=_INTERNED.setdefault(repr(command.attrs), Attrs(command.attrs)))
    return command


_INTERNED: dict[str, Attrs] = {}


@pytest.mark.parametrize("verb", COMMANDS)
@settings(max_examples=5)
@given(data=st.data())
def test_each_command_arrives_however_often_and_in_whichever_column(verb: str, data: st.DataObject) -> None:
    command = with_interned(data.draw(every(COMMANDS[verb])))
    batch = Batch((commands.ContextSwitch(5), command), (), 1, 7, NONCE)
    by_itself = tuple(zip(*[(each, None, None, (), None) for each in batch.commands], strict=True))
    for compared in (None, by_itself):
        receiver = Receiver()
        for _ in range(4):
            receiver.check(batch, compared)
        if isinstance(command, Call) and compared is not None:
            assert set(receiver.forms) == {"whole"}


@settings(max_examples=50)
@given(st.lists(batches, min_size=1, max_size=3), st.randoms(use_true_random=False))
def test_any_sequence_of_batches_arrives(programs: list[Batch], chance: random.Random) -> None:
    receiver = Receiver()
    for _ in range(8):
        batch = varied(chance.choice(programs), chance)
        batch = dataclasses.replace(
            batch,
            commands=tuple(map(with_interned, batch.commands)),
            client=1,
            temporaries=(),
            on_failure=OnFailure.POISON,
        )
        if chance.random() < 0.1:
            receiver.forget()
        receiver.check(batch)
        if any(isinstance(command, DefineFunction) for command in batch.commands):
            assert receiver.forms[-1] == "whole"
