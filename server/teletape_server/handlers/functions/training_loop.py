"""What a request for training asks for, checked: the step as a function, what it takes, and in which order."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from teletape_engine.commands import Call, Command, Constant, Id, Input, MakeVariable
from teletape_engine.errors import InvalidArgumentError, ResourceExhaustedError
from teletape_engine.functions.optimizers import OPTIMIZERS, Optimizer
from teletape_engine.functions.training import COUNT, TrainedVariable, training_step
from teletape_engine.recording.values import Literal, typed_array
from teletape_engine.session.session import Session
from teletape_engine.spec import Spec
from teletape_server.handlers.bodies import InvalidRequestError, new_id
from teletape_server.handlers.execution import described, located_in
from teletape_server.handlers.functions.batch_order import BatchOrder
from teletape_server.handlers.functions.bound_calls import check_names, has_variable, spec_of
from teletape_server.models.functions.training import MAX_TRAINING_STEPS, OptimizerSettings, Training


@dataclass(frozen=True)
class TrainingLoop:
    """What repeats a training step.

    Attributes:
        step: The id of the step's function.
        setup: The commands that create what the steps take.
        lasting: The ids among those that are new, and stay after the request.
        captured: Ids of the step's inputs that are the same in every step; the first is the counter of steps.
        batched: Ids of the tensors that have the batches, or their rows, along axis 0.
        order: Which of them each step takes; None: there are no batches.
        steps: Number of steps.
        bytes_of_step: Bytes of the batch of one step.
    """

    step: Id
    setup: Sequence[Command]
    lasting: Sequence[Id]
    captured: Sequence[Id]
    batched: Sequence[Id]
    order: BatchOrder | None
    steps: int
    bytes_of_step: int


@dataclass(frozen=True)
class _Batches:
    """The inputs that differ from step to step.

    Attributes:
        specs: By name of the input: of one batch.
        setup: The commands that create the tensors.
        ids: By name: of the tensor with all batches, or their rows, along axis 0.
        order: Which of them each step takes; None: there are no batches.
    """

    specs: Mapping[str, Spec]
    setup: Sequence[Command]
    ids: Mapping[str, Id]
    order: BatchOrder | None


def training_loop(session: Session, function: Id, body: Training) -> TrainingLoop:
    """Returns the loop that a body asks for.

    Raises:
        InvalidRequestError: The body does not fit the function, or its fields do not fit each other.
        InvalidArgumentError: The loss is no number, or does not depend on a variable.
        UnknownIdError, ReleasedIdError: An id names nothing.
    """
    facts = described(session, function, "functions")
    first = body.data or (body.batches or [{}])[0]
    _check_inputs(function, facts["inputs"], body, first)
    loss = _loss(function, facts["outputs"], body.loss)
    optimizer, settings = _optimizer(body.optimizer)
    values = {name: (body.inputs | first)[name] for name in facts["inputs"]}
    typed = dict(zip(values, session.typed_inputs(function, list(values.values())), strict=True))
    batches = _batches(session, body, {name: typed[name] for name in first})
    steps = _number_of_steps(session, body, batches.order)
    setup = [*batches.setup]
    bound: dict[str, Any] = {name: name for name in facts["inputs"]}  # by input: the step's input, or a number
    ids: dict[str, Id] = {}  # by the step's inputs
    for name, value in body.inputs.items():
        if isinstance(value, Literal) and not value.spec.shape:
            bound[name] = value
        elif isinstance(value, int | str):
            bound[name] = next((other for other, id in ids.items() if id == value), name)
            ids[bound[name]] = value
        else:
            ids[name] = new_id()
            setup.append(Constant(ids[name], typed[name]))
    variables = _variables(session, body, bound, ids)
    specs = {name: batches.specs.get(name, typed[name]) for name in facts["inputs"]}
    _check_loss(session, function, facts, loss, specs, variables)
    step = training_step(new_id(), function, facts["outputs"], loss, bound, list(first), variables, optimizer, settings)
    setup.append(step)
    lasting: list[Id] = []
    for name, suffix, initial in _optimizer_variables(session, variables, ids, optimizer, settings):
        ids[name] = new_id() if body.optimizer.state is None else f"{body.optimizer.state}.{suffix}"
        of = "from a training of these variables with this optimizer"
        spec = Spec.of(initial.shape, initial.dtype)
        if body.optimizer.state is None or not has_variable(session, ids[name], spec, "optimizer.state", of):
            setup.append(MakeVariable(ids[name], initial, trainable=False))
            lasting += [] if body.optimizer.state is None else [ids[name]]
    captured = [ids[name] for name in step.inputs[len(first) :]]
    nbytes = sum([spec.nbytes for spec in batches.specs.values()])
    return TrainingLoop(step.id, setup, lasting, captured, list(batches.ids.values()), batches.order, steps, nbytes)


# -------------------------------------------------------------------------------------------------------------- checks
def _check_inputs(function: Id, names: Sequence[str], body: Training, batch: Mapping[str, Input]) -> None:
    """Checks that each input of the function has one value, and which fields go with batches."""
    if body.data is not None and body.batches is not None:
        raise InvalidRequestError("batches: give either batches, or data from which they are taken")
    if body.steps is not None and body.epochs is not None:
        raise InvalidRequestError("steps: give either steps or epochs")
    if not batch and body.steps is None:
        raise InvalidRequestError("steps: is missing, and is needed without batches and data")
    for field in ("batch_size", "drop_remainder", "shuffle", "epochs"):
        needed = ("data",) if field in ("batch_size", "drop_remainder") else ("batches", "data")
        if getattr(body, field) not in (None, False) and all(getattr(body, name) is None for name in needed):
            raise InvalidRequestError(f"{field}: is for {' and '.join(needed)} alone")
    check_names(function, names, list(body.inputs), "inputs")
    field = "batches" if body.data is None else "data"
    check_names(function, names, list(batch), field)
    for name in names:
        if (name in body.inputs) == (name in batch):
            where = f"inputs and {field}: {name!r} is in both" if name in batch else f"inputs: {name!r} is missing"
            raise InvalidRequestError(f"{where}; function {function!r} takes {', '.join(names)}")
    for number, members in enumerate(body.batches or ()):
        if members.keys() != batch.keys():
            raise InvalidRequestError(
                f"batches.{number}: has {', '.join(members) or 'nothing'}, and the first batch {', '.join(batch)}: all "
                "have the same inputs"
            )


def _loss(function: Id, outputs: Sequence[str], chosen: str | None) -> str:
    """Returns the name of the output to minimize."""
    if chosen is None:
        if len(outputs) != 1:
            raise InvalidRequestError(
                f"loss: function {function!r} has the outputs {', '.join(outputs)}: name the one to minimize"
            )
        return outputs[0]
    check_names(function, outputs, [chosen], "loss", outputs=True)
    return chosen


def _optimizer(chosen: OptimizerSettings) -> tuple[Optimizer, dict[str, Any]]:
    """Returns the optimizer with all its settings."""
    optimizer = OPTIMIZERS[chosen.name]
    settings = chosen.model_dump(exclude_none=True, exclude={"name", "state"})
    try:
        return optimizer, optimizer.complete(settings)
    except InvalidArgumentError as error:
        raise InvalidRequestError(f"optimizer: {error.message}") from None


def _check_loss(
    session: Session,
    function: Id,
    facts: Mapping[str, Any],
    loss: str,
    specs: Mapping[str, Any],
    variables: Sequence[TrainedVariable],
) -> None:
    """Checks before the first step that the loss is a number, and depends on each variable.

    Args:
        session: The session.
        function: The function.
        facts: About it.
        loss: The name of its output.
        specs: For each of its inputs an id, a number, an array or a spec.
        variables: What is trained.
    """
    inputs = list(specs.values())
    with located_in(function):
        spec = session.result_specs(function, inputs)[facts["outputs"].index(loss)]
    if spec.shape or not spec.dtype.name.startswith(("float", "bfloat")):
        raise InvalidArgumentError(
            f"loss: output {loss!r} is {spec!r}; a loss is one number of floats: let the function reduce it, with "
            "reduce_mean for example"
        )
    sources = {name: list(specs).index(name) for variable in variables for name in variable.inputs}
    reasons = session.explain_call(function, inputs, [loss], list(sources.values()))
    for name, why in zip(sources, reasons, strict=True):
        if why is not None:
            raise InvalidArgumentError(
                f"variables: the gradient of {loss!r} with respect to {name!r} is null, so it cannot be trained: "
                f"{why['message']}; {why['advice']}",
                why=why,
            )


# ------------------------------------------------------------------------------------------------------------- batches
def _batches(session: Session, body: Training, first: Mapping[str, Any]) -> _Batches:
    """Returns the batches; `first` has the inputs of the first batch, or the whole tensors, with their dtypes."""
    if not first:
        return _Batches({}, (), {}, None)
    setup: list[Command] = []
    if body.batches is not None:
        specs = {name: spec_of(session, value) for name, value in first.items()}
        ids = {name: _stacked(session, body.batches, name, spec, setup) for name, spec in specs.items()}
        return _Batches(specs, setup, ids, BatchOrder(len(body.batches), None, body.shuffle))
    wholes = {name: spec_of(session, value) for name, value in first.items()}
    lengths = {name: spec.shape[0] if spec.shape else 0 for name, spec in wholes.items()}
    rows = max(lengths.values())
    if not rows or len(set(lengths.values())) != 1:
        shapes = ", ".join([f"{name} {spec!r}" for name, spec in wholes.items()])
        raise InvalidRequestError(
            f"data: all tensors have the same number of rows along axis 0, 1 or more; found {shapes}"
        )
    size = min(body.batch_size or rows, rows)
    if body.drop_remainder and (body.batch_size or 0) > rows:
        raise InvalidRequestError(
            f"batch_size: {body.batch_size} is more than the {rows} rows: there is no whole batch"
        )
    ids = {}
    for name, value in first.items():
        ids[name] = value
        if isinstance(value, np.ndarray):
            ids[name] = new_id()
            setup.append(Constant(ids[name], value))
    specs = {name: spec.with_shape((size, *spec.shape[1:])) for name, spec in wholes.items()}
    return _Batches(specs, setup, ids, BatchOrder(rows, size, body.shuffle, drop_remainder=body.drop_remainder))


def _stacked(
    session: Session, batches: Sequence[Mapping[str, Input]], name: str, spec: Spec, setup: list[Command]
) -> Id:
    """Adds the commands that stack an input's values in all batches; returns the id of the result."""
    values: list[Any] = []
    for number, batch in enumerate(batches):
        value: Any = batch[name]
        if isinstance(value, Literal) and not (value.spec.kind is float and spec.dtype.kind in "iub"):
            value = typed_array(value, spec.dtype)
        actual = repr(value) if isinstance(value, Literal) else spec_of(session, value)
        if actual is not spec:
            raise InvalidRequestError(
                f"batches.{number}.{name}: found {actual!r}, and the first batch has {spec!r}: all have the same "
                "shapes and dtypes"
            )
        values.append(value)
    stacked = new_id()
    if all(isinstance(value, np.ndarray) for value in values):
        setup.append(Constant(stacked, np.stack(values)))
        return stacked
    for number, value in enumerate(values):
        if isinstance(value, np.ndarray):
            values[number] = new_id()
            setup.append(Constant(values[number], value))
    setup.append(Call("stack", tuple(values), (stacked,)))
    return stacked


def _number_of_steps(session: Session, body: Training, order: BatchOrder | None) -> int:
    """Returns the number of steps.

    Raises:
        InvalidRequestError, ResourceExhaustedError: There are more than a request may take.
    """
    steps = body.steps
    if steps is None:
        assert order is not None
        steps = order.steps * (body.epochs or 1)
    if steps > MAX_TRAINING_STEPS:
        raise InvalidRequestError(
            f"epochs: {body.epochs:,} epochs are {steps:,} steps, and a request takes at most {MAX_TRAINING_STEPS:,}: "
            "send several, with a state of the optimizer"
        )
    limit = session.max_iterations
    if limit is not None and steps > limit:
        raise ResourceExhaustedError(
            f"the loops of one request may take {limit:,} iterations here; this training would take {steps:,} steps: "
            "send several requests, with a state of the optimizer",
            iterations=steps,
            limit=limit,
        )
    return steps


# ----------------------------------------------------------------------------------------------------------- variables
def _variables(
    session: Session, body: Training, bound: Mapping[str, Any], ids: Mapping[str, Id]
) -> list[TrainedVariable]:
    """Returns what is trained, each variable once."""
    kinds = {name: session.describe(id) for name, id in ids.items() if isinstance(body.inputs[name], int | str)}
    if body.variables is None:
        chosen = [name for name, facts in kinds.items() if facts["kind"] == "variable" and facts["trainable"]]
        if not chosen:
            raise InvalidRequestError(
                "variables: no input is bound to a trainable variable: create variables, and give their ids in inputs"
            )
    else:
        chosen = []
        for each in body.variables:
            name = bound.get(each) if each in body.inputs else _name_of(ids, each)
            if not isinstance(name, str) or name not in kinds or kinds[name]["kind"] != "variable":
                raise InvalidRequestError(
                    f"variables: {each!r} is no input that is bound to a variable, and no id of one; inputs are "
                    f"{', '.join(body.inputs)}"
                )
            chosen.append(name)
    trained = []
    for name in dict.fromkeys(chosen):
        dtype = kinds[name]["dtype"]
        if not dtype.startswith(("float", "bfloat")):
            raise InvalidRequestError(f"variables: {ids[name]!r} has dtype {dtype}; what is trained has floats")
        trained.append(TrainedVariable(name, [each for each, to in bound.items() if to == name], dtype))
    return trained


def _name_of(ids: Mapping[str, Id], id: str) -> str | None:
    """Returns the step's input that is bound to an id."""
    return next((name for name, each in ids.items() if str(each) == id), None)


def _optimizer_variables(
    session: Session,
    variables: Sequence[TrainedVariable],
    ids: Mapping[str, Id],
    optimizer: Optimizer,
    settings: Mapping[str, Any],
) -> Iterator[tuple[str, str, np.ndarray[Any, Any]]]:
    """Yields what the optimizer keeps: the step's input, the last part of a lasting id, and the initial value."""
    yield COUNT, COUNT, np.zeros((), np.int64)
    for variable in variables:
        spec = spec_of(session, ids[variable.name])
        for slot, initial in optimizer.slots(settings).items():
            yield variable.slot(slot), f"{ids[variable.name]}.{slot}", np.full(spec.shape, initial, spec.dtype)
