"""What every command is, and the types of its fields: markers say which fields hold ids, functions, inputs, ….

And a batch: the commands that a session executes as one unit, and what happens to ids before, after and on failure.
"""

from __future__ import annotations

import enum
from typing import Annotated, Any, ClassVar, Final, TypeAlias

import numpy as np

from teletape_engine.recording.values import Literal
from teletape_engine.records import record


class FieldKind(enum.Enum):
    """What a field holds, or each member of a list. The value is the text for messages."""

    ID = "an id: a name, or an integer from 0 up"
    FUNCTION_ID = "the id of a function: a name, or an integer from 0 up"
    INPUT = "an id, a number or a tensor"
    TENSOR = "a number or a tensor {dtype, shape, data}"
    STEP = "a step of a function"
    ATTRIBUTES = "an object of attributes"
    NAME = "a name"
    FLAG = "true or false"
    COUNT = "a count, from 0 up"


CREATED: Final = "created"  #: Marks the ids that a command creates.

Tensor: TypeAlias = np.ndarray[Any, Any]
Id: TypeAlias = Annotated[int | str, FieldKind.ID]
NewId: TypeAlias = Annotated[int | str, FieldKind.ID, CREATED]
FunctionId: TypeAlias = Annotated[int | str, FieldKind.FUNCTION_ID]  #: Of the session, also inside another function.
Input: TypeAlias = Annotated[int | str | Literal | Tensor, FieldKind.INPUT]
TensorOrNumber: TypeAlias = Annotated[Tensor | Literal, FieldKind.TENSOR]


class Command:
    """Base of all commands.

    Attributes:
        verb: The name on the wire.
        structural: Whether the command happens even after a failure in its batch, so that both sides agree on what is
            open. All other commands after the failure are skipped.
        step: Whether the command may be a step of a function, where ids of values are names inside the function.
        creates: The kind of what its new ids name: only a thing of the same kind is replaced by it.
    """

    __slots__ = ()
    verb: ClassVar[str]
    structural: ClassVar[bool] = False
    step: ClassVar[bool] = False
    creates: ClassVar[str] = "tensor"


Step: TypeAlias = Annotated[Command, FieldKind.STEP]  #: A command whose class sets `step`.


class OnFailure(enum.StrEnum):
    """What the ids name that a failed batch should have created. Commands before the failure stay done in any case."""

    POISON = "poison"  #: The failure: whoever uses such an id gets its message. For callers who send ahead of answers.
    FREE = "free"  #: Nothing: they can be used for something else.
    STRAND = "strand"  #: As `poison`, and only later commands of the failed one's strand are skipped: others go on.
    ROLLBACK = "rollback"  #: Nothing, and the ids that earlier commands of the batch created are free again as well.


@record(frozen=True, slots=True)
class Batch:
    """An ordered list of commands.

    Attributes:
        commands: The commands.
        releases: Ids that are released after the last command that mentions them.
        client: The number of the client that sends it; 0: none, and the batch has no place in a sequence.
        seq: Its place in the client's sequence of batches, from 1 up.
        nonce: 16 bytes that no other batch has: a retry has the same.
        temporaries: Ids that end with the batch, whether or not it fails, and are free again.
        on_failure: What the ids name that a failed batch should have created.
        replace: Whether its commands may create ids that exist, or did: the new thing takes the place of the old one,
            if both are of one kind.
    """

    commands: tuple[Command, ...]
    releases: tuple[Id, ...] = ()
    client: int = 0
    seq: int = 0
    nonce: bytes = b""
    temporaries: tuple[Id, ...] = ()
    on_failure: OnFailure = OnFailure.POISON
    replace: bool = False
