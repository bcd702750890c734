"""Bodies of /functions/{function}/train."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from pydantic import Field

from teletape_engine.commands.schema import MAX_ITEMS
from teletape_server.models.base import Answer, Body, Id, Input, Name, TensorValue, examples

MAX_TRAINING_STEPS: Final = 1_000_000

_Rate = Annotated[float | None, Field(ge=0, lt=1)]
_Limit = Annotated[float | None, Field(gt=0, allow_inf_nan=False)]
_Positive = Annotated[float | None, Field(ge=0, allow_inf_nan=False)]


class OptimizerSettings(Body):
    """How gradients change variables: formulas and defaults are those of Keras 3. A setting is refused elsewhere."""

    name: Annotated[
        Literal["sgd", "adam", "adamw", "adamax", "rmsprop", "adagrad", "adadelta", "lion"],
        Field(description="The optimizer"),
    ]
    learning_rate: Annotated[_Positive, Field(description="Default: 0.01 of sgd, 0.001 of the others")] = None
    momentum: Annotated[_Rate, Field(description="Of sgd and rmsprop")] = None
    nesterov: Annotated[bool | None, Field(description="Of sgd with momentum")] = None
    beta_1: Annotated[_Rate, Field(description="Of adam, adamw, adamax, lion")] = None
    beta_2: Annotated[_Rate, Field(description="Of adam, adamw, adamax, lion")] = None
    rho: Annotated[_Rate, Field(description="Of rmsprop, adadelta")] = None
    epsilon: Annotated[_Positive, Field(description="Of all but sgd and lion")] = None
    amsgrad: Annotated[bool | None, Field(description="Of adam, adamw")] = None
    centered: Annotated[bool | None, Field(description="Of rmsprop")] = None
    initial_accumulator_value: Annotated[_Positive, Field(description="Of adagrad")] = None
    weight_decay: Annotated[
        _Positive, Field(description="Of all: the part of a variable that a step of rate 1 removes")
    ] = None
    clipnorm: Annotated[_Limit, Field(description="Of all: the largest norm of each variable's gradient")] = None
    clipvalue: Annotated[_Limit, Field(description="Of all: the largest element of a gradient")] = None
    global_clipnorm: Annotated[_Limit, Field(description="Of all: the largest norm of all gradients together")] = None
    state: Annotated[
        Name | None,
        Field(
            description="Keeps what the optimizer knows in variables whose ids begin with this name; a request with "
            "the same name goes on from them. Without it, it ends with the request"
        ),
    ] = None


class Training(Body):
    """Asks for training steps: each computes the loss and its gradients, and changes the variables."""

    model_config = examples(
        whole={
            "inputs": {"a": "w", "b": [1.5, 2.5, 3.5]},
            "optimizer": {"name": "adam", "learning_rate": 0.1},
            "steps": 20,
            "fetch": ["w"],
        },
        batches={
            "inputs": {"a": "w"},
            "data": {"b": [[1.5, 2.5, 3.5], [2.5, 3.5, 4.5], [3.5, 4.5, 5.5], [0.5, 1.5, 2.5]]},
            "batch_size": 2,
            "epochs": 5,
            "shuffle": 7,
            "optimizer": {"name": "sgd", "momentum": 0.9, "nesterov": True},
        },
    )

    inputs: Annotated[
        dict[str, Input],
        Field(max_length=MAX_ITEMS, description="By name: what the function's inputs are bound to in every step"),
    ]
    variables: Annotated[
        list[str] | None,
        Field(
            min_length=1,
            max_length=MAX_ITEMS,
            description="Names of inputs, or ids of variables, to train. Default: the trainable variables among "
            "`inputs`",
        ),
    ] = None
    loss: Annotated[str | None, Field(description="The name of the output to minimize; default: the only one")] = None
    optimizer: OptimizerSettings
    batches: Annotated[
        list[dict[str, Input]] | None,
        Field(
            min_length=1,
            max_length=MAX_ITEMS,
            description="For each step the inputs that differ, by name: tensors of the same shapes and dtypes",
        ),
    ] = None
    data: Annotated[
        dict[str, Input] | None,
        Field(min_length=1, description="By name: whole tensors, of which each step takes rows along axis 0"),
    ] = None
    batch_size: Annotated[int | None, Field(ge=1, description="Rows of `data` in a step; default: all")] = None
    drop_remainder: Annotated[
        bool, Field(description="Whether to leave out the rows of an epoch that do not fill a batch")
    ] = False
    shuffle: Annotated[
        int | None, Field(ge=0, description="A seed: each epoch takes the rows or batches in another order")
    ] = None
    epochs: Annotated[int | None, Field(ge=1, description="How often to take all batches; default: once")] = None
    steps: Annotated[
        int | None, Field(ge=1, le=MAX_TRAINING_STEPS, description="Number of steps, in place of `epochs`")
    ] = None
    fetch: list[Id] = Field(
        default=[], max_length=MAX_ITEMS, description="Ids to return in `values`, as they are at the end"
    )


class TrainingAnswer(Answer):
    """The losses of a training, and the values that `fetch` names."""

    steps: int
    loss: Annotated[TensorValue, Field(description="Of the last step, before its update")]
    losses: Annotated[TensorValue, Field(description="Of all steps")]
    first_not_finite: Annotated[
        int | None, Field(description="The first step, from 0, whose loss is NaN or infinite; null: there is none")
    ]
    values: Annotated[dict[str, TensorValue], Field(description="The ids in `fetch`")]
    bytes_in_use: int
