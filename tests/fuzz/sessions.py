"""What the targets that drive a session share: a program that uses every command, and the laws of an answer."""

import time
from collections.abc import Callable
from typing import Any, Final

import numpy as np

import teletape_wire as wire
from fuzz.target import Finding
from teletape_engine import commands
from teletape_engine.commands import Batch, Call
from teletape_engine.commands.results import Answer
from teletape_engine.errors import DeadlineExceededError, TeletapeError, tree
from teletape_engine.recording.values import Literal
from teletape_engine.session.session import Session
from teletape_wire.errors import WireError

#: Codes that a batch may fail with.
DOCUMENTED: Final = frozenset({*tree(), *tree(WireError), WireError.code}) - {"internal"}
_SECONDS: Final = 1.0  #: After which a batch is stopped, as a server stops one.

X = np.array([0.5, -1.0, 2.0], np.float32)
M = np.array([[1.0, 0.5], [0.25, 2.0]])

#: Batches of one program, in order: after them there is something of every kind.
PROGRAM: Final = (
    Batch(
        (
            commands.Constant("x", X),
            commands.Constant("ids", np.array([2, 0, 2], np.int32)),
            commands.Constant("n", Literal(3)),
            commands.MakeVariable("w", X, name="weights"),
            commands.MakeVariable("table", np.ones((4, 2), np.float32)),
            commands.MakeVariable("m", M),
            commands.DefineFunction("square", ("a",), (Call("mul", ("a", "a"), ("b",)),), ("b",)),
            commands.DefineFunction("small", ("i", "a"), (Call("less", ("i", Literal(3)), ("c",)),), ("c",)),
            commands.DefineFunction(
                "step",
                ("i", "a"),
                (Call("add", ("i", Literal(1)), ("j",)), Call("mul", ("a", Literal(0.5)), ("b",))),
                ("j", "b"),
            ),
        )
    ),
    Batch(
        (
            commands.TapeOpen("outer", persistent=True),
            commands.TapeOpen("t", persistent=True, replayable=True, parents=("outer",)),
            commands.TapeWatch("t", ("x",)),
            Call("mul", ("w", "x"), ("y",), where="train.py:7"),
            Call("reduce_sum", ("y",), ("loss",), {"axis": None, "keepdims": False}),
            Call("gather", ("table", "ids"), ("rows",)),
            Call("matmul", ("m", "m"), ("mm",)),
            Call("softmax", ("y",), ("p",)),
            commands.CallFunction("square", ("x",), ("xx",)),
            Call("identity", ("xx",), ("own",)),
            commands.Custom(("xx",), ("own",), "tag", "mine", "train.py:9"),
            commands.TapePause("t"),
            commands.Gradient("t", ("loss",), ("w", "x"), ("dw", None), (None,), "zero", ("dense", "dense")),
            commands.Gradient("t", ("rows",), ("table",), ("drows",)),
            commands.SlicesComponent("drows", "values", "dvalues"),
            commands.TapePause("outer"),
        )
    ),
    Batch(
        (
            commands.Jacobian("t", ("y",), ("w",), ("J",), "none", 1 << 20, 2),
            commands.BatchJacobian("t", ("mm",), ("m",), ("BJ",)),
            commands.Vjps("t", ("y",), ("x",), ("V",), (np.ones((2, 3), np.float32),)),
            commands.Hessian("t", ("loss",), ("w",), ("H",), "zero"),
            commands.Hvp("t", ("loss",), ("w",), (X,), ("hv",), "zero"),
            commands.SparseJacobian("t", ("y",), ("w",), (None, "at", "entries")),
            commands.SparseHessian("t", ("loss",), ("x",), ("starts", None, None), "csr", "zero"),
            commands.GradientStatistics("t", ("loss",), ("w", "x")),
            commands.Estimate("t", ("y",), ("w", "x"), "jacobian", 1 << 20, 2),
            commands.Explain("t", ("loss",), ("w", "ids")),
            commands.TapeDescribe("t", np.array([7, 8], np.int64)),
            commands.TapeGraph("t", ("loss",), ("w",), 50),
            commands.TapeOpen("again", True, True, True),
            Call("square", ("w",), ("ww",)),
            commands.TapeCheckGradients("again", ("ww",), ("w",), {"entries": 2}),
            commands.CheckGradients("square", (Literal(0.5),), {"step": 0.001}),
        )
    ),
    Batch(
        (
            commands.While("small", "step", (Literal(0), "x"), ("i", "r", "count"), 0, 5, True),
            commands.Cond(("square", "square"), (Literal(True), "x"), ("chosen",)),
            commands.ValueAndGradient("step", ("n", "x"), ("b",), ("a",), ("after", "twice", "slope"), "zero"),
            commands.Scan("step", ("n", "x"), ("last", "halves"), 1, 0, True),
            commands.Map("square", ("x",), (True,), ("squares of entries",)),
            commands.Assign("table", np.ones((1, 2), np.float32), "scatter_sub", np.array([3])),
            commands.Assign("w", X, "add"),
            commands.AccumulatorOpen("acc", ("x",), (X,)),
            Call("tanh", ("x",), ("th",)),
            commands.AccumulatorClose("acc"),
            commands.Jvp("acc", ("th",), ("dth",)),
            commands.AccumulatorResume("acc"),
            commands.ContextSwitch("thread"),
            commands.Declare(registered="AdjustContrastv2"),
            commands.Declare(no_gradient="Mine"),
        )
    ),
    Batch(
        (
            commands.CustomFunction("gradient", "tag", "square", (), (True,)),
            commands.BackwardBegin("pass", "t", ("own",), ("x",), (None,), "zero", True),
            commands.BackwardCotangents("pass", ("down",), "tag"),
            commands.BackwardResume("pass", ("down",)),
            commands.BackwardEnd("pass", ("dx",), ("dense",)),
            commands.CustomCall("square", ("x", "own"), ("z",), (True,), 1, "f"),
            commands.MakeSlices("slices", "dvalues", "ids", 4),
            commands.TapeResume("t"),
            commands.TapeOwn("t", ("z",)),
            commands.TapeReset("t"),
            commands.ClientAttach(),
            commands.Fetch("dw", 2),
            commands.Fetch("drows"),
            commands.Fetch("nothing", None, True),
            commands.ContextEnd("thread"),
            commands.Profile(),
            commands.ClientDetach(1),
        ),
        ("x", "t"),
    ),
)


def new_session() -> Session:
    """A session with small limits."""
    return Session(memory_limit=16 << 20, max_iterations=1000, clock=float)


def execute(session: Session, batch: Batch) -> Answer | str:
    """The answer, or the code that the whole batch was refused with.

    Raises:
        Finding: An answer that no document describes.
    """
    until = time.monotonic() + _SECONDS
    try:
        answer = session.execute(batch, cancelled=_stops(until))
    except TeletapeError as error:
        return documented("refused batch", error.code, error.message)
    except Exception as error:
        raise Finding(f"a batch raises {type(error).__name__}", str(error)) from error
    if answer.failure is not None:
        failure = answer.failure
        documented(_verb(batch, failure.index), failure.code, failure.message)
    check_written(answer)
    return answer


def _stops(until: float) -> Callable[[], bool]:
    def cancelled() -> bool:
        if time.monotonic() > until:
            raise DeadlineExceededError("the batch took too long")
        return False

    return cancelled


def documented(what: str, code: str, message: str) -> str:
    """The code; documents must name it, and it must come with a message."""
    if code not in DOCUMENTED or not message:
        raise Finding(f"{what}: {code}", message)
    return code


def check_written(answer: Answer) -> None:
    """An answer can be sent in both forms, and be read again."""
    served = wire.Served(0.0, 0.0, 0.0)
    try:
        frame = wire.encode_answer(answer, served)
        wire.decode_answer(b"".join(frame.buffers))
        wire.answer_to_json(answer, served, full=True)
    except Exception as error:
        raise Finding(f"an answer cannot be sent: {type(error).__name__}", str(error)) from error


def check_alive(session: Session) -> None:
    """The session goes on: it can be counted, listed and used."""
    try:
        if session.bytes_in_use() < 0:
            raise Finding("bytes_in_use", "below zero")
        for kind in ("tensor", "slices", "variable", "function", "tape"):
            session.listing(kind)
    except TeletapeError as error:
        raise Finding(f"a listing fails: {error.code}", error.message) from error
    except Exception as error:
        raise Finding(f"a listing raises {type(error).__name__}", str(error)) from error
    answer = session.execute(
        Batch((commands.ContextSwitch(0), Call("add", (Literal(1), Literal(2)), ("fresh",))), ("fresh",))
    )
    if answer.failure is not None and answer.failure.code not in ("id_in_use", "resource_exhausted"):
        raise Finding(f"the session is broken: {answer.failure.code}", answer.failure.message)


def _verb(batch: Batch, index: int) -> str:
    return batch.commands[index].verb if index < len(batch.commands) else "batch"


def encoded(batch: Batch) -> bytes:
    """The batch as a frame."""
    return b"".join(bytes(buffer) for buffer in wire.encode_batch(batch).buffers)


def run_program(session: Session, upto: int = len(PROGRAM)) -> list[Any]:
    """Executes the program's first batches."""
    return [execute(session, batch) for batch in PROGRAM[:upto]]
