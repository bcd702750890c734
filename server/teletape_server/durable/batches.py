"""What a session has executed, as rows of a record: frames as they came, and what came of them by accident.

A batch that ran through, or failed for a reason that lies in itself, runs so again. One that was cancelled, or met a
limit of time or memory, would not: its failures are written down, with the variables that it had moved.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

import teletape_wire as wire
from teletape_engine.arrays import HostArray
from teletape_engine.commands import Batch, ContextSwitch, Fetch, Id, Repetition, Structure, structure_of
from teletape_engine.commands.results import Answer, Failure
from teletape_engine.errors import TeletapeError
from teletape_engine.session.session import Session
from teletape_engine.session.snapshot.moved import ACCIDENTS, Moved
from teletape_engine.spec import dtype_of
from teletape_server.durable.blobs import LEAST, BlobError, Blobs, Place, frame_of, parts_of
from teletape_server.durable.records import DamagedError, Kind, Log, Record, packed, unpacked
from teletape_wire.tensors import NAMES, Buffer, raw


class Executed(NamedTuple):
    """A batch that a session has executed.

    Attributes:
        batch: The batch.
        explain: Whether its answer was to say why derivatives are none.
        failures: Those of its answer, if one of them is an accident; else none.
        moved: What it had moved then.
    """

    batch: Batch | Repetition
    explain: bool
    failures: tuple[Failure, ...] = ()
    moved: tuple[Moved, ...] = ()

    @classmethod
    def of(cls, session: Session, batch: Batch | Repetition, answer: Answer, *, explain: bool) -> Executed:
        """Returns what is written of a batch that has just run.

        Args:
            session: The session.
            batch: The batch.
            answer: Its answer.
            explain: See above.
        """
        failures = answer.failures
        if not any(failure.code in ACCIDENTS for failure in failures):
            return cls(batch, explain)
        return cls(batch, explain, failures, tuple(session.moved(batch, failures)))

    def run_again(self, session: Session) -> Answer:
        """Runs the batch on a session that is as the first one was; returns its answer."""
        answer = session.execute(self.batch, explain=self.explain, recorded=self.failures)
        session.patch(self.moved)
        return answer


def only_reads(frame: memoryview, structures: wire.Structures) -> bool:
    """Returns whether a frame reads values, and does nothing else but release ids."""
    try:
        sent = wire.decode_request(frame, structures)
    except (wire.WireError, TeletapeError):  # what is wrong is said when it runs
        return True
    commands = sent.structure.commands if isinstance(sent, Repetition) else sent.commands
    return all(isinstance(command, (Fetch, ContextSwitch)) for command in commands)


class BatchWriter:
    """Writes batches. A structure is written once, before the first batch that has it.

    Args:
        write: Writes the payload of a structure.
        blobs: Where large tensors are put; None: they stay in the rows.
    """

    def __init__(self, write: Callable[[bytes], None], blobs: Blobs | None = None) -> None:
        self._write, self._blobs = write, blobs
        #: By identity, with their numbers; kept, so that no other one gets an identity.
        self._structures: dict[int, tuple[int, Structure]] = {}

    def row(self, executed: Executed, sent: Buffer | None = None) -> list[Any]:
        """Returns the row of a batch; if it is what came that is written, its structure is written before.

        Args:
            executed: The batch.
            sent: The frame that it came in; None: it came otherwise.

        Raises:
            OSError: The structure or a large tensor could not be written.
        """
        batch, explain, failures, moved = executed
        number = None
        if sent is None:
            sent = _frame(batch.batch() if isinstance(batch, Repetition) else batch)
        elif isinstance(batch, Repetition):
            known = self._structures.get(id(batch.structure))
            number = self._number(batch) if known is None else known[0]
        row = [sent if len(sent) < LEAST else self._parts(sent), number, explain]
        if failures:
            rows = [[getattr(failure, field.name) for field in _FAILURE] for failure in failures]
            row += [rows, [_moved_row(*each) for each in moved]]
        return row

    def _number(self, batch: Repetition) -> int:
        """The number of a structure that is written."""
        number = len(self._structures)
        self._structures[id(batch.structure)] = number, batch.structure
        frame = _frame(batch.batch())
        self._write(packed([number, frame if len(frame) < LEAST else self._parts(frame)]))
        return number

    def _parts(self, frame: Buffer) -> Any:
        if self._blobs is None or not (tensors := wire.large_tensors(frame, LEAST)):
            return bytes(frame)
        return parts_of(frame, tensors, self._blobs)


_FAILURE = dataclasses.fields(Failure)


def _frame(batch: Batch) -> bytes:
    return b"".join(wire.encode_batch(batch).buffers)


def _moved_row(id: Id, version: int, value: HostArray | None) -> list[Any]:
    return [id, version] if value is None else [id, version, NAMES[value.dtype], [*value.shape], bytes(raw(value))]


class BatchReader:
    """Reads what a `BatchWriter` has written.

    Args:
        blobs: Where it has put large tensors; None: nowhere.
    """

    def __init__(self, blobs: Blobs | None = None) -> None:
        self._blobs = blobs
        self._structures: dict[int, Structure] = {}

    def add_structure(self, payload: Buffer) -> None:
        """Takes the payload of a structure.

        Raises:
            DamagedError: It is none.
            BlobError: A large tensor of it is not as it was written.
        """
        number, parts = unpacked(payload)
        both = structure_of(wire.decode_batch(self._frame(parts)))
        if both is None:
            raise DamagedError(f"structure {number} of the log is none")
        self._structures[number] = both[0]

    def read(self, row: Sequence[Any]) -> Executed:
        """Returns the batch of a row.

        Raises:
            DamagedError: The log has no structure for it.
            BlobError: A large tensor of it is not as it was written.
            WireError, BadCommandError: It is none.
        """
        parts, number, explain, *accident = row
        frame = self._frame(parts)
        batch: Batch | Repetition
        if number is None:
            batch = wire.decode_batch(frame)
        else:
            batch = wire.decode_request(frame, _Structure(self._structures.get(number)))
        if not accident:
            return Executed(batch, explain)
        failures, moved = accident
        return Executed(
            batch,
            explain,
            tuple([Failure(*failure) for failure in failures]),
            tuple([_moved(*each) for each in moved]),
        )

    def _frame(self, parts: Any) -> bytes:
        if parts.__class__ is bytes:
            return parts
        if self._blobs is None:
            raise DamagedError("the log refers to large tensors, and there is no file of them")
        return frame_of(parts, self._blobs)


def with_blobs(log: Log, blobs: Blobs) -> tuple[Log, list[Place]]:
    """Returns a log as far as the blobs of its records were on the disk with them, and where these are.

    Raises:
        BlobError: One is not as it was written, and not because of a power cut.
        DamagedError: A record cannot be read.
    """
    places: dict[Place, None] = {}
    for position, record in enumerate(log.records):
        try:
            for place in _places_of(record):
                if place not in places:
                    blobs.get(place)
                    places[place] = None
        except BlobError:
            if any(later.synced >= record.number for later in log.records[position:]):
                raise
            cut = log.end - record.begin + log.cut
            return log._replace(records=log.records[:position], end=record.begin, cut=cut), [*places]
    return log, [*places]


def _places_of(record: Record) -> Iterator[Place]:
    frames: list[Any] = []
    if record.kind is Kind.STRUCTURE:
        frames = [unpacked(record.payload)[1]]
    elif record.kind is Kind.REQUEST:
        frames = [row[0] for row in unpacked(record.payload)[0]]
    for parts in frames:
        if parts.__class__ is list:
            yield from [Place(*part) for part in parts if part.__class__ is list]


def _moved(id: Id, version: int, *value: Any) -> Moved:
    if not value:
        return id, version, None
    dtype, shape, data = value
    return id, version, np.frombuffer(data, np.uint8).view(dtype_of(dtype)).reshape(tuple(shape)).copy()


class _Structure(wire.Structures):
    """Has one structure, under every number."""

    def __init__(self, structure: Structure | None) -> None:
        super().__init__()
        self._structure = structure

    def find(self, client: int, number: int) -> Structure:
        if self._structure is None:
            raise DamagedError(f"the log has no structure {number} of client {client}")
        return self._structure
