"""Bodies of requests and answers of the Open Inference Protocol."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field


class TensorParameters(BaseModel):
    """What is said of a tensor in a request."""

    model_config = ConfigDict(extra="forbid")

    binary_data: bool | None = Field(
        default=None, description="Of an output: whether its elements follow the JSON as bytes"
    )
    binary_data_size: int | None = Field(
        default=None, ge=0, description="Of an input whose elements follow the JSON: bytes"
    )


class InputTensor(BaseModel):
    """An input, or a weight for an output: `gradient:NAME`."""

    name: str
    shape: list[Annotated[int, Field(ge=0)]]
    datatype: str
    parameters: TensorParameters = TensorParameters()
    data: Any = Field(default=None, description="The elements row by row, flat or in nested lists")


class RequestedOutput(BaseModel):
    """An output, or the gradient by an input or a weight: `gradient:NAME`."""

    name: str
    parameters: TensorParameters = TensorParameters()


class InferParameters(BaseModel):
    """What is said of a request."""

    model_config = ConfigDict(extra="forbid")

    binary_data_output: bool = Field(
        default=False, description="Whether outputs follow the JSON as bytes if they do not say"
    )
    exact: bool = Field(default=False, description="Compute this request by itself, never together with others")


class Infer(BaseModel):
    """Asks for outputs and gradients."""

    id: str = ""
    parameters: InferParameters = InferParameters()
    inputs: list[InputTensor]
    outputs: list[RequestedOutput] | None = Field(default=None, description="Default: the outputs, without gradients")


class OutputTensor(BaseModel):
    """A tensor of an answer."""

    name: str
    shape: list[int]
    datatype: str
    parameters: dict[str, int] = {}
    data: list[Any] | None = None


class Inferred(BaseModel):
    """The outputs; `parameters` say how many requests were computed together, and why not more."""

    model_name: str
    model_version: str
    id: str
    parameters: dict[str, Any]
    outputs: list[OutputTensor]


class TensorMetadata(BaseModel):
    """What an input or an output is; the length -1 is any."""

    name: str
    datatype: str
    shape: list[int]


class ModelMetadata(BaseModel):
    """What a model takes and returns."""

    name: str
    versions: list[str]
    platform: str
    inputs: list[TensorMetadata]
    outputs: list[TensorMetadata]


class ServerMetadata(BaseModel):
    """What the server is."""

    name: str
    version: str
    extensions: list[str]


class Ready(BaseModel):
    """A model can be called, and a process has it loaded."""

    name: str
    ready: bool


class Health(BaseModel):
    """The server answers."""

    live: bool | None = None
    ready: bool | None = None
