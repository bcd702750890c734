"""Mutated frames: decoded and executed in this process, in a session that has something of every kind.

A frame may be refused or fail with a documented code. The session must go on after it, and its answers be readable.
"""

import json
import random
import struct
import zlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import msgpack

import teletape_wire as wire
from fuzz.sessions import PROGRAM, check_alive, documented, encoded, execute, new_session, run_program
from fuzz.target import Finding
from teletape_engine.catalogue.op import CATALOGUE
from teletape_engine.commands import OnFailure, outputs
from teletape_engine.commands.structure import Contents, Repetition, structure_of
from teletape_engine.errors import TeletapeError

FRAMES: Final = 20  #: Frames of a case: they share a session.
_VECTORS: Final = Path(__file__).parents[1] / "wire" / "vectors"
_PREFIX: Final = struct.Struct("<8sHHIQQ16sQQ")
_WORDS: Final = (
    *("x", "w", "t", "outer", "y", "loss", "square", "step", "ids", "table", "m", "acc", "pass", "tag", "drows", "new"),
    *("", "mul", "reduce_sum", "matmul", "set", "zero", "none", "values", "scatter_sub", "a", "b", "é" * 300),
)
_LEAVES: Final[tuple[Any, ...]] = (
    *(0, 1, -1, 3, 7, 2**31, 2**40, 2**40 + 1, 2**63, 2**64 - 1, -(2**63), 0.5, float("nan"), float("inf"), 1e308),
    *(True, False, None, b"", b"bytes", [], {}, [[]], [None], {"axis": 0}, {"": None}, [0.5], [1, 2], [1 << 40] * 3),
    msgpack.ExtType(1, struct.pack("<I", 0)),
    msgpack.ExtType(1, struct.pack("<I", 1)),
    msgpack.ExtType(1, struct.pack("<I", 999)),
    msgpack.ExtType(2, struct.pack("<dd", 1.0, float("nan"))),
    msgpack.ExtType(3, (1 << 400).to_bytes(60, "little", signed=True)),
    msgpack.ExtType(3, b"\xff" * 130),
    msgpack.ExtType(9, b"?"),
)


class Frames:
    """The target: a case is {program, frames}: the program's batches that run before, and frames in hexadecimal."""

    name = "frames"

    def __init__(self) -> None:
        vectors = [json.loads(path.read_text()) for path in sorted(_VECTORS.glob("*.json"))]
        self._program = [encoded(batch) for batch in PROGRAM]
        self._repeated = [
            _joined(wire.encode_repeated(number, contents, client=1, seq=1, nonce=bytes(range(16))))
            for number, contents in _numbered().items()
        ]
        self._vectors = [bytes.fromhex(vector["frame"]) for vector in vectors if "batch" in vector]

    def close(self) -> None:
        """Nothing has been started."""

    def draw(self, rng: random.Random) -> Any:
        """Frames of the program and of the wire's test vectors, mutated."""
        program = rng.randint(1, len(PROGRAM) - 1)
        frames = []
        for _ in range(FRAMES):
            seeds = self._program[program:] if rng.random() < 0.8 else self._program + self._vectors
            if rng.random() < 0.2:
                seeds = self._repeated
            frames.append(mutated(rng, rng.choice(seeds)).hex())
        return {"program": program, "frames": frames}

    def check(self, case: Any) -> list[str]:
        """Decodes and executes the frames in order."""
        session, structures = new_session(), wire.Structures()
        for number in _numbered():
            structures.keep(replace(PROGRAM[number], client=1), number, 0)
        run_program(session, case["program"])
        outcomes = []
        for index, text in enumerate(case["frames"]):
            try:
                sent = wire.decode_request(bytes.fromhex(text), structures)
            except TeletapeError as error:
                outcomes.append(documented("decoding", error.code, error.message))
                continue
            except Exception as error:
                raise Finding(f"decoding raises {type(error).__name__}", str(error)) from error
            batch = sent
            if isinstance(sent, Repetition):
                batch = replace(sent.batch(), client=0)
            if index % 2:  # leaves no names, so that the next one finds them free
                created = tuple(name for command in batch.commands for name in outputs(command))
                batch = replace(batch, temporaries=(*batch.temporaries, *created), on_failure=OnFailure.ROLLBACK)
            answer = execute(session, batch)
            outcomes.append(answer if isinstance(answer, str) else "executed" if answer.failure is None else "failed")
        check_alive(session)
        return outcomes

    def smaller(self, case: Any) -> Iterator[Any]:
        """With one frame alone; with fewer."""
        frames = case["frames"]
        if len(frames) > 1:
            for frame in frames:
                yield case | {"frames": [frame]}
            for index in range(len(frames)):
                yield case | {"frames": frames[:index] + frames[index + 1 :]}


def _joined(frame: wire.Frame) -> bytes:
    return b"".join(frame.buffers)


def _numbered() -> dict[int, Contents]:
    """The contents of the program's batches that have a structure, by their number."""
    split = [structure_of(batch) for batch in PROGRAM]
    return {number: both[1] for number, both in enumerate(split) if both is not None}


def mutated(rng: random.Random, frame: bytes) -> bytes:
    """A frame with something changed: most often in its header's content, its checksum made right again."""
    kind = rng.random()
    if kind < 0.75:
        return _with_content(rng, frame)
    if kind < 0.9:
        header = bytearray(_header(frame))
        for _ in range(rng.choice([1, 1, 2, 5])):
            header[rng.randrange(len(header))] = rng.choice([rng.randrange(256), 0, 0x80, 0x90, 0xC0, 0xDD, 0xDF, 0xFF])
        return _framed(frame, bytes(header))
    whole = bytearray(frame)
    if kind < 0.95:
        whole[rng.randrange(len(whole))] ^= 1 << rng.randrange(8)
    elif kind < 0.97:
        whole = whole[: rng.randrange(len(whole))]
    elif kind < 0.98:
        whole += bytes(rng.randrange(1, 100))
    else:
        at = rng.choice([8, 10, 12, 16, 24, 48, 56])
        whole[at : at + 8] = struct.pack("<Q", rng.choice([0, 1, 2**16, 2**32, 2**63, 2**64 - 1]))
    return bytes(whole)


def _header(frame: bytes) -> bytes:
    length = _PREFIX.unpack_from(frame)[7]
    return frame[_PREFIX.size : _PREFIX.size + length]


def _framed(frame: bytes, header: bytes) -> bytes:
    """The frame with another header: lengths and checksum are right, the tensors follow at the next multiple of 64."""
    magic, version, kind, _, client, seq, nonce, length, _ = _PREFIX.unpack_from(frame)
    old = _PREFIX.size + length
    tensors = frame[old + -old % 64 :]
    gap = bytes(-(_PREFIX.size + len(header)) % 64) if tensors else b""
    total = _PREFIX.size + len(header) + len(gap) + len(tensors)
    prefix = _PREFIX.pack(magic, version, kind, zlib.crc32(header), client, seq, nonce, len(header), total)
    return prefix + header + gap + tensors


def _with_content(rng: random.Random, frame: bytes) -> bytes:
    unpacker = msgpack.Unpacker(strict_map_key=False)
    unpacker.feed(_header(frame))
    content = unpacker.unpack()
    for _ in range(rng.choice([1, 1, 1, 2, 3, 6])):
        _change(rng, content, commands_only=rng.random() < 0.9)
    try:
        return _framed(frame, msgpack.packb(content))
    except (OverflowError, ValueError):
        return frame


def _leaf(rng: random.Random, like: Any) -> Any:
    """Most often something of the same kind as what is there."""
    if rng.random() < 0.25:
        return rng.choice(_WORDS) if rng.random() < 0.5 else rng.choice(_LEAVES)
    if isinstance(like, str):
        return rng.choice(_WORDS[:-3]) if rng.random() < 0.8 else rng.choice(sorted(CATALOGUE))
    fitting = [leaf for leaf in _LEAVES if type(leaf) is type(like)]
    return rng.choice(fitting) if fitting else like


def _change(rng: random.Random, content: Any, *, commands_only: bool) -> None:
    """Changes one place of nested lists and maps."""
    node = content[1] if commands_only and len(content) > 1 and isinstance(content[1], list) else content
    while True:
        if not isinstance(node, list | dict) or not node:
            return
        key = rng.randrange(len(node)) if isinstance(node, list) else rng.choice(list(node))
        if isinstance(node[key], list | dict) and node[key] and rng.random() < 0.75:
            node = node[key]
            continue
        break
    if key == 0 and isinstance(node, list) and len(node) > 1 and type(node[0]) is int and rng.random() < 0.9:
        key = rng.randrange(1, len(node))  # not the command's code
    what = rng.random()
    if what < 0.75 or isinstance(node, dict):
        leaf = _leaf(rng, node[key])
        node[key] = json.loads(json.dumps(leaf)) if isinstance(leaf, list | dict) else leaf
    elif what < 0.8:
        del node[key]
    elif what < 0.87:
        node.insert(key, node[key])
    elif what < 0.95:
        other = rng.randrange(len(node))
        node[key], node[other] = node[other], node[key]
    else:
        node[key] = [node[key]]
