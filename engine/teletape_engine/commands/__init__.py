"""The commands of a batch: one record for each. docs/protocol.md shows them all.

Records hold canonical Python values: ids are `int` or `str`, numbers among inputs are `Literal`, tensors are NumPy
arrays. `teletape_wire` writes them as bytes and as JSON.
"""

from teletape_engine.commands.base import Command, FieldKind, FunctionId, Id, Input, NewId, Step, Tensor
from teletape_engine.commands.batch import Batch, OnFailure
from teletape_engine.commands.custom import (
    BackwardBegin,
    BackwardCotangents,
    BackwardEnd,
    BackwardResume,
    Custom,
    CustomFunction,
)
from teletape_engine.commands.functions import (
    CallFunction,
    CheckGradients,
    Cond,
    CustomCall,
    DefineFunction,
    Scan,
    While,
)
from teletape_engine.commands.questions import BatchJacobian, Explain, Gradient, Hessian, Hvp, Jacobian, Jvp, Vjps
from teletape_engine.commands.schema import COMMANDS, FUNCTION_FIELDS, functions_of, mentions, outputs
from teletape_engine.commands.session import ClientAttach, ClientDetach, ContextEnd, ContextSwitch, Declare
from teletape_engine.commands.tapes import (
    AccumulatorClose,
    AccumulatorOpen,
    AccumulatorResume,
    TapeCheckGradients,
    TapeDescribe,
    TapeGraph,
    TapeOpen,
    TapePause,
    TapeReset,
    TapeResume,
    TapeWatch,
)
from teletape_engine.commands.values import Assign, Call, Constant, Fetch, MakeSlices, MakeVariable, SlicesComponent

__all__ = [
    "COMMANDS",
    "FUNCTION_FIELDS",
    "AccumulatorClose",
    "AccumulatorOpen",
    "AccumulatorResume",
    "Assign",
    "BackwardBegin",
    "BackwardCotangents",
    "BackwardEnd",
    "BackwardResume",
    "Batch",
    "BatchJacobian",
    "Call",
    "CallFunction",
    "CheckGradients",
    "ClientAttach",
    "ClientDetach",
    "Command",
    "Cond",
    "Constant",
    "ContextEnd",
    "ContextSwitch",
    "Custom",
    "CustomCall",
    "CustomFunction",
    "Declare",
    "DefineFunction",
    "Explain",
    "Fetch",
    "FieldKind",
    "FunctionId",
    "Gradient",
    "Hessian",
    "Hvp",
    "Id",
    "Input",
    "Jacobian",
    "Jvp",
    "MakeSlices",
    "MakeVariable",
    "NewId",
    "OnFailure",
    "Scan",
    "SlicesComponent",
    "Step",
    "TapeCheckGradients",
    "TapeDescribe",
    "TapeGraph",
    "TapeOpen",
    "TapePause",
    "TapeReset",
    "TapeResume",
    "TapeWatch",
    "Tensor",
    "Vjps",
    "While",
    "functions_of",
    "mentions",
    "outputs",
]
