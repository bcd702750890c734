"""A training step as a function: loss and gradients of another function, clipping, weight decay, the update."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, Final

from teletape_engine import commands
from teletape_engine.commands import DefineFunction, Id
from teletape_engine.functions.optimizers import Optimizer, Settings, Update
from teletape_engine.functions.step_writer import StepWriter, Term
from teletape_engine.recording.values import Literal

COUNT: Final = "count"  #: The step's input that counts steps: a variable of int64.


@dataclass(frozen=True)
class TrainedVariable:
    """A variable that a step changes.

    Attributes:
        name: The step's input that it is bound to.
        inputs: The function's inputs that it is bound to.
        dtype: Its dtype.
    """

    name: str
    inputs: Sequence[str]
    dtype: str

    def slot(self, slot: str) -> str:
        """Returns the step's input for what the optimizer keeps for the variable."""
        return f"{slot} of {self.name}"


def training_step(
    id: Id,
    function: Id,
    outputs: Sequence[str],
    loss: str,
    inputs: Mapping[str, str | Literal],
    batched: Sequence[str],
    variables: Sequence[TrainedVariable],
    optimizer: Optimizer,
    settings: Settings,
) -> DefineFunction:
    """Returns the function that does one step, and has the loss before the step as its result.

    Its inputs are `batched`, `COUNT`, the slots, and then the other names in `inputs`: as a scan gives them to its body
    whose elements are batches.

    Args:
        id: Of the step.
        function: The function to train.
        outputs: Names of its outputs.
        loss: The one that gets smaller.
        inputs: For each of its inputs the step's input that it is bound to, or a number.
        batched: Inputs of the step that differ from step to step.
        variables: What the step changes.
        optimizer: How.
        settings: All settings of the optimizer.
    """
    writer = StepWriter()
    results = [f"output {name}" for name in outputs]
    sources = [name for variable in variables for name in variable.inputs]
    gradients = {source: f"gradient by {source}" for source in sources}
    writer.steps.append(
        commands.ValueAndGradient(
            function, tuple(inputs.values()), (loss,), tuple(sources), (*results, *gradients.values())
        )
    )
    result = writer.op("identity", writer.term(results[list(outputs).index(loss)]))
    count = writer.term(COUNT)
    writer.assign(count, writer.op("ones_like", count), "add")
    total = {
        variable.name: reduce(Term.__add__, [writer.term(gradients[source]) for source in variable.inputs])
        for variable in variables
    }
    clipped = _clipped(writer, total, settings)
    step = writer.op("cast", count, dtype="float64")
    for variable in variables:
        term = writer.term(variable.name)
        if settings["weight_decay"] is not None:
            writer.assign(term, term - term * settings["weight_decay"] * settings["learning_rate"])
        slots = {slot: writer.term(variable.slot(slot)) for slot in optimizer.slots(settings)}
        update = Update(
            writer, term, clipped[variable.name], slots, variable.dtype, step, settings["learning_rate"], settings
        )
        optimizer.update(update)
    names = [*batched, COUNT]
    names += [variable.slot(slot) for variable in variables for slot in optimizer.slots(settings)]
    names += [name for name in dict.fromkeys(inputs.values()) if isinstance(name, str) and name not in batched]
    return DefineFunction(id, tuple(names), tuple(writer.steps), (result.name,))


def _clipped(writer: StepWriter, gradients: Mapping[str, Term], settings: Settings) -> dict[str, Term]:
    """Returns the gradients, clipped as the settings say: one of the three ways, in Keras' order."""
    op = writer.op
    if settings["clipnorm"]:
        limit: Any = settings["clipnorm"]
        return {
            name: gradient * limit / op("maximum", op("sqrt", op("reduce_sum", op("square", gradient))), limit)
            for name, gradient in gradients.items()
        }
    if settings["global_clipnorm"]:
        limit = settings["global_clipnorm"]
        squares = [op("reduce_sum", op("square", gradient)) for gradient in gradients.values()]
        norm = op("sqrt", reduce(Term.__add__, squares))
        scale = limit / op("maximum", norm, limit)
        return {name: gradient * scale for name, gradient in gradients.items()}
    if settings["clipvalue"]:
        limit = settings["clipvalue"]
        return {name: op("clip_by_value", gradient, -limit, limit) for name, gradient in gradients.items()}
    return dict(gradients)
