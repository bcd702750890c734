"""The quick readers of rows, and the checks that they leave out: both come to the same command, or the same error."""

import zlib
from typing import Any

import msgpack
import numpy as np
import pytest
from batches import batches, same
from hypothesis import given

import teletape_wire as wire
from teletape_engine.commands import COMMANDS, Batch, schema
from teletape_engine.errors import BadCommandError
from teletape_wire import rows
from teletape_wire.frame import CODES, MAGIC, MAX_ITEMS, PREFIX, PREFIX_LENGTH
from teletape_wire.rows import commands_of, ids_of

TENSOR = np.ones(2)
#: Values that fit some fields and not others, as msgpack reads them.
VALUES: list[Any] = [
    *(None, True, False, 0, 1, -1, 1 << 40, 1 << 70, 0.5, -0.0, 1j, "", "x", b"", b"x", TENSOR, {}, {"a": 1}, {1: 2}),
    *((), (1,), (True,), ("x", 2), ("",), (-1,), (None,), (0.5,), (1.5, 2.5), ((1,),), (TENSOR,), (1, None), (1, 2, 3)),
    (1,) * (MAX_ITEMS + 1),
]


def outcome(read: Any, row: tuple[Any, ...]) -> Any:
    """The command, or what its error says."""
    try:
        return read(row)
    except BadCommandError as error:
        return error.message


@pytest.mark.parametrize("verb", [verb for verb in COMMANDS if CODES[verb] in rows._DECODERS])
def test_a_quick_reader_comes_to_what_the_checks_come_to(verb: str) -> None:
    code, fields = CODES[verb], schema.FIELDS[verb].values()
    usual = [_usual(field) for field in fields]
    fitting = 0
    for count in range(len(usual) + 2):
        for position in range(max(count, 1)):
            for value in VALUES[:-1] if verb == "op" else VALUES:  # msgpack itself bounds an op's lists
                values = [*usual, value][:count]
                if position < count:
                    values[position] = value
                row = (code, *values)
                quick, checked = outcome(rows._DECODERS[code], row), outcome(rows._checked, row)
                assert type(quick) is type(checked), row
                if not isinstance(quick, str):
                    assert same(quick, checked), row
                elif verb != "op":  # whose inputs have words of their own
                    assert quick == checked, row
                fitting += not isinstance(quick, str)
    assert fitting > 0


def _usual(field: Any) -> Any:
    """A value that fits a field."""
    values = [value for value in VALUES if value.__class__ is not tuple or len(value) == 1]
    for value in [("x", 2), ("x",), "x", {"a": 1}, True, 1, TENSOR, *values]:
        try:
            schema._checked(field, value)
        except TypeError:
            continue
        return value
    raise AssertionError(field)


@given(batches)
def test_long_and_short_headers_are_read_alike(batch: Batch) -> None:
    frame = b"".join(wire.encode_batch(batch).buffers)
    short = wire.decode_batch(frame)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("teletape_wire.decode._SHORT", -1)
        assert same(wire.decode_batch(frame), short)


def test_the_error_of_a_row_has_its_position_in_long_and_short_lists() -> None:
    for count in (3, MAX_ITEMS + 3):
        good = (CODES["fetch"], 1)
        with pytest.raises(BadCommandError, match=f"command {count}: must be an array"):
            commands_of([good] * count + [()])


def test_ids_are_names_and_counts() -> None:
    assert ids_of([0, 1 << 63, "x"], "a release") == (0, 1 << 63, "x")
    for wrong in (True, -1, "", None, 1.0, (1,)):
        with pytest.raises(BadCommandError, match="a release must be an id"):
            ids_of([1, wrong], "a release")


def test_a_part_that_is_no_list_is_no_valid_header() -> None:
    for parts in ([[], {}, []], [[], [], 1], [{}, [], []]):
        header = msgpack.packb(parts)
        length = len(header)
        prefix = PREFIX.pack(MAGIC, 1, 1, zlib.crc32(header), 0, 0, bytes(16), length, PREFIX_LENGTH + length)
        with pytest.raises(wire.WireError, match="no valid msgpack"):
            wire.decode_batch(prefix + header)
