"""Writes the test vectors: frames in hexadecimal with the JSON of the same content. Run it when the version rises."""

import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np

import teletape_wire as wire
from teletape_engine import commands
from teletape_engine.commands import Batch, Call
from teletape_engine.commands.results import Answer, Facts, Failure, Fetched, Kinds, SlicesArrays, Specs
from teletape_engine.commands.structure import Contents
from teletape_engine.recording.values import Literal
from teletape_engine.spec import DTYPES, Spec

HERE = Path(__file__).parent
NONCE = bytes(range(16))
CLIENT = 1 << 40

BATCHES = {
    "empty": ("No commands: the shortest frame.", Batch(())),
    "put_and_fetch": (
        "A tensor of three float32, and its numbers back.",
        Batch((commands.Constant("x", np.array([1, 2, 3], np.float32)), commands.Fetch("x"))),
    ),
    "gradient": (
        "d(x*x)/dx, as a client with its own ids and sequence sends it.",
        Batch(
            (
                commands.MakeVariable(CLIENT, np.array(3, np.float32), name="x"),
                commands.TapeOpen(CLIENT + 1),
                Call("mul", (CLIENT, CLIENT), (CLIENT + 2,), where="train.py:7"),
                commands.TapePause(CLIENT + 1),
                commands.Gradient(CLIENT + 1, (CLIENT + 2,), (CLIENT,), (CLIENT + 3,), predicted=("dense",)),
                commands.Fetch(CLIENT + 3),
            ),
            (CLIENT + 1, CLIENT + 2),
            client=1,
            seq=1,
            nonce=NONCE,
        ),
    ),
    "maps": (
        "A function mapped over entries, and derivatives of each example by itself.",
        Batch(
            (
                commands.Map("f", ("xs", Literal(2)), (True, False), ("ys",)),
                commands.Jacobian("t", ("ys",), ("xs",), ("J",), examples=True),
                commands.Hessian("t", ("ys",), ("xs",), (None,), unconnected="zero", examples=True),
            )
        ),
    ),
    "numbers": (
        "Every kind of number among inputs and attributes.",
        Batch(
            (
                Call(
                    "f",
                    (
                        "x",
                        5,
                        Literal(2.5),
                        Literal(2),
                        Literal(True),
                        Literal(1 + 2j),
                        Literal(1 << 70),
                        Literal(float("inf")),
                    ),
                    ("y",),
                    {"axis": (0, 1), "keepdims": False, "rate": 0.5, "dtype": "float32", "value": 1j, "none": None},
                ),
            )
        ),
    ),
    "dtypes": (
        "A tensor of each dtype, [0, 1], each at a multiple of 64; then one without elements and one without axes.",
        Batch(
            (
                *(commands.Constant(name, np.array([0, 1]).astype(dtype)) for name, dtype in sorted(DTYPES.items())),
                commands.Constant("none", np.zeros((2, 0), np.float32)),
                commands.Constant("scalar", np.array(7, np.int32)),
            )
        ),
    ),
    "questions": (
        "Questions to a tape other than the gradient, with every field given; stacks as tensors in the frame.",
        Batch(
            (
                commands.Jacobian(
                    "t", ("y",), ("x", "w"), ("J", None), "zero", 1 << 20, 8, ("dense", "dense"), True, ("c",)
                ),
                commands.BatchJacobian("t", ("y",), ("x",), ("B",), "zero", 1 << 20, 8, True, ("c",)),
                commands.Vjps(
                    "t",
                    ("y", "z"),
                    ("x",),
                    ("V",),
                    (np.ones((2, 3), np.float32), None),
                    "zero",
                    1 << 20,
                    8,
                    ("dense",),
                    True,
                    ("c",),
                ),
                commands.Hessian("t", ("z",), ("x",), ("H",), "zero", 1 << 20, 8, ("dense",), True, ("c",)),
                commands.Hvp("t", ("z",), ("x",), (np.ones(3, np.float32),), ("p",), "zero", ("dense",), True, ("c",)),
                commands.Gradient("t", ("z",), ("x",), ("g",), retain_tape=False),
            )
        ),
    ),
    "sparse_derivatives": (
        "The entries of a Jacobian and of a Hessian; every field given.",
        Batch(
            (
                commands.SparseJacobian(
                    "t", ("y",), ("x",), ("i", "j", "J"), "coo", "none", 1 << 20, 8, True, custom_gradients=("c",)
                ),
                commands.SparseHessian("t", ("z",), ("x",), (None, "k", CLIENT), "csr", "zero", None, 2, False, ("c",)),
            )
        ),
    ),
    "custom": (
        "A gradient of the caller's own: a pass that stops, a program in its place, a declared op; every field given.",
        Batch(
            (
                commands.Custom(("x", "w"), ("y", CLIENT), "f1", "f", "train.py:7"),
                commands.BackwardBegin("b", "t", ("y",), ("x",), (None,), "zero", True),
                commands.BackwardCotangents("b", ("dy", None), "f1", ("k", None)),
                commands.MakeSlices("s", "v", "i", 3),
                commands.BackwardResume("b", ("s", None, Literal(0.5), np.ones(2, np.float32))),
                commands.BackwardEnd("b", ("dx", None), ("dense", "none")),
                commands.CustomFunction("c", "f1", "df", ("w",), (True, False)),
                commands.CustomCall("df", ("x", "r", "w"), ("z",), (True,), 1, "f"),
                commands.Declare(registered="AdjustContrastv2"),
            ),
        ),
    ),
    "forward_mode": (
        "A tangent as the ops run, and the accumulator's life.",
        Batch(
            (
                commands.Constant("x", np.array([1, 2], np.float32)),
                commands.AccumulatorOpen("a", ("x",), (np.array([1, 0], np.float32),)),
                Call("mul", ("x", "x"), ("y",)),
                commands.AccumulatorClose("a"),
                commands.AccumulatorResume("a"),
                commands.Jvp("a", ("y", "x"), ("dy", None), "zero", ("dense", "dense")),
                commands.Fetch("dy"),
            ),
            ("a",),
        ),
    ),
    "scatter": (
        "Rows of a variable changed: only they travel.",
        Batch(
            (
                commands.Assign("table", np.ones((1, 2), np.float32), "scatter_sub", np.array([3])),
                commands.Assign("table", Literal(0.5), "scatter_mul", "rows"),
                commands.Assign("table", "part", "slice", np.array([[0, 1, 2], [1, 1, 1]])),
            )
        ),
    ),
    "control_flow": (
        "Loops and choices over saved functions, with every field given.",
        Batch(
            (
                commands.While("more", "step", ("a", Literal(2), 7), ("r", "iterations"), 2, 5, True),
                commands.Cond(("f", "g"), (Literal(True), "x"), ("c",), True),
                commands.Scan("step", ("a", "xs", "w"), ("last", "all"), 1, 1, True, 4, True, True),
                commands.ValueAndGradient("f", ("x", Literal(2)), ("loss",), ("w",), ("y", "dw"), "zero"),
            )
        ),
    ),
    "replace": (
        "A batch with options, whose new ids may be in use.",
        Batch((Call("mul", ("z", "z"), ("z",)),), temporaries=("s",), replace=True),
    ),
    "everything_else": (
        "The commands that the other vectors do not show, with every field given.",
        Batch(
            (
                commands.ContextSwitch("worker"),
                commands.TapeOpen("t", persistent=True, watch_accessed=False),
                commands.TapeWatch("t", ("x", 7)),
                commands.TapeReset("t", True),
                commands.TapeOwn("t", ("y", 7)),
                commands.TapeDescribe("t", np.array([7, 8], np.int64)),
                commands.TapeGraph("t", ("y",), ("x",), 50),
                commands.TapeCheckGradients("t", ("y",), ("x",), {"entries": 10}),
                commands.CheckGradients("square", (Literal(0.5),), {"step": 0.001}),
                commands.TapeResume("t"),
                commands.Assign("w", Literal(0.5), "sub"),
                commands.Gradient("t", ("y",), ("x", "w"), ("dx", None), (None,), "zero", ("dense", "none")),
                commands.Declare("AdjustContrastv2"),
                commands.DefineFunction("square", ("a",), (Call("mul", ("a", "a"), ("b",)),), ("b",)),
                commands.CallFunction("square", ("x",), ("xx",)),
                commands.SlicesComponent("dx", "values", "v"),
                commands.Explain("t", ("y",), ("x", "w")),
                commands.ClientAttach(),
                commands.ClientDetach(3),
                commands.ContextEnd("worker"),
                commands.Profile(),
                commands.Fetch("v", 10),
            ),
            ("t",),
        ),
    ),
}

_STEP = BATCHES["gradient"][1]
_LATER = tuple(range(CLIENT + 4, CLIENT + 7))
#: Batches whose structure is kept under a number, and the contents of the next one with that structure.
REPEATED = {
    "repeated": (
        "d(x*x)/dx again: the first batch marks its structure with 5, the second is that number, the ids and no more.",
        dataclasses.replace(_STEP, commands=_STEP.commands[1:]),
        Contents((CLIENT,), _LATER, (), ()),
    ),
    "repeated_contents": (
        "Other tensors, numbers and names; ids that are not consecutive.",
        Batch(
            (
                commands.Constant("x", np.array([1, 2], np.float32)),
                Call("mul", ("x", Literal(2.5), Literal(2), Literal(True), Literal(1 + 2j), "w"), (7,)),
            ),
            ("x", 8),
            client=1,
            seq=1,
            nonce=NONCE,
        ),
        Contents(
            ("v", 3),
            ("z", 1 << 62),
            (np.array([3, 4], np.float32),),
            (Literal(float("inf")), Literal(1 << 70), Literal(False), Literal(2j)),
        ),
    ),
}

ANSWERS = {
    "answer": (
        "Every kind of result.",
        Answer(
            (
                Fetched(0, "x", np.array([1.5, float("nan")], np.float32), Spec.of((2,), DTYPES["float32"]), True),
                Fetched(1, CLIENT, np.array([1, 2], np.int32), Spec.of((9,), DTYPES["int32"]), False),
                Fetched(
                    2,
                    "rows",
                    SlicesArrays(
                        np.ones((1, 2), np.float32), np.array([3], np.int64), Spec.of((4, 2), DTYPES["float32"])
                    ),
                    Spec.of((4, 2), DTYPES["float32"]),
                    True,
                ),
                Kinds(3, ("dense", "none", "slices")),
                Specs(4, (Spec.of((2,), DTYPES["bool"]),)),
                Facts(5, {"reason": "unwatched", "ops": [1, 2]}),
            ),
            None,
            4096,
        ),
    ),
    "failure": (
        "A batch that stopped at its third command.",
        Answer(
            (),
            Failure(2, "unknown_op", "unknown op 'mull'", "mull", "train.py:7", {"near": ["mul"]}),
            0,
        ),
    ),
}
SERVED = wire.Served(1_700_000_000.5, 0.25, 0.5)

GOOD = b"".join(wire.encode_batch(BATCHES["put_and_fetch"][1]).buffers)
REFUSED = {
    "short_prefix": ("Less than a prefix.", GOOD[:63], "malformed_frame"),
    "wrong_magic": ("Not a frame.", b"GIF89a.." + GOOD[8:], "malformed_frame"),
    "wrong_version": ("A version of the future.", GOOD[:8] + b"\xff\x00" + GOOD[10:], "unsupported_version"),
    "huge_header": (
        "A header of 2**62 bytes.",
        GOOD[:48] + (1 << 62).to_bytes(8, "little") + GOOD[56:],
        "frame_too_large",
    ),
    "cut": ("The last byte is missing.", GOOD[:-1], "malformed_frame"),
    "bad_header_checksum": (
        "One bit of the header changed.",
        GOOD[:70] + bytes([GOOD[70] ^ 1]) + GOOD[71:],
        "corrupt_frame",
    ),
    "bad_tensor_checksum": ("One bit of a tensor changed.", GOOD[:-1] + bytes([GOOD[-1] ^ 1]), "corrupt_frame"),
}


def vectors() -> dict[str, dict[str, Any]]:
    """Every vector by its name."""
    out: dict[str, dict[str, Any]] = {}
    for name, (about, batch) in BATCHES.items():
        frame = b"".join(wire.encode_batch(batch).buffers)
        out[name] = {"about": about, "batch": wire.batch_to_json(batch), "frame": frame.hex()}
    for name, (about, first, contents) in REPEATED.items():
        frame = b"".join(wire.encode_batch(first, keep=5).buffers)
        structures = wire.Structures()
        structures.keep(first, 5, 0)
        later = structures.find(1, 5).batch(contents, client=1, seq=2, nonce=NONCE[::-1])
        second = b"".join(wire.encode_repeated(5, contents, client=1, seq=2, nonce=NONCE[::-1]).buffers)
        out[name] = {
            "about": about,
            "first": wire.batch_to_json(first),
            "first_frame": frame.hex(),
            "repeated": wire.batch_to_json(later),
            "frame": second.hex(),
        }
    for name, (about, answer) in ANSWERS.items():
        frame = b"".join(wire.encode_answer(answer, SERVED, client=1, seq=1, nonce=NONCE).buffers)
        out[name] = {"about": about, "answer": wire.answer_to_json(answer, SERVED, full=True), "frame": frame.hex()}
    for name, (about, data, code) in REFUSED.items():
        out[name] = {"about": about, "refused": code, "frame": data.hex()}
    return out


if __name__ == "__main__":
    for name, vector in vectors().items():
        (HERE / f"{name}.json").write_text(json.dumps(vector, indent=2) + "\n")
