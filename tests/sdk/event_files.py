"""Reads the event files that a test wrote."""

import struct
from pathlib import Path

from tensorboardX.proto import event_pb2


def summaries(folder):
    """The step and the summary value of each event of the folder's files, in the order of writing."""
    values = []
    for path in sorted(Path(folder).glob("*tfevents*")):
        content, position = path.read_bytes(), 0
        while position < len(content):
            (length,) = struct.unpack_from("<Q", content, position)
            event = event_pb2.Event.FromString(content[position + 12 : position + 12 + length])
            values += [(event.step, value) for value in event.summary.value]
            position += 16 + length
    return values


def scalars(folder):
    """The tag, step and number of each scalar."""
    return [(value.tag, step, value.simple_value) for step, value in summaries(folder)]
