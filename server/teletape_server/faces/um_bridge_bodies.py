"""Bodies of requests and answers of UM-Bridge, with its names."""

from __future__ import annotations

from typing import Annotated, TypeAlias

from pydantic import BaseModel, Field

Vector: TypeAlias = list[float]
Length = Annotated[int, Field(ge=0)]


class Model(BaseModel):
    """Names a model."""

    name: str = Field(description="A name of GET /Info")
    config: dict[str, Length] = Field(default={}, description="The lengths of named axes, such as {n: 100}")


class Evaluate(Model):
    """Asks for the outputs."""

    input: list[Vector] = Field(description="The inputs, each as a flat list")


class Gradient(Evaluate):
    """Asks for sens times the Jacobian of an output by an input."""

    outWrt: int = Field(ge=0, description="The number of the output")  # the protocol's name
    inWrt: int = Field(ge=0, description="The number of the input")
    sens: Vector = Field(description="A weight for each element of the output")


class ApplyJacobian(Evaluate):
    """Asks for the Jacobian of an output by an input times a vector."""

    outWrt: int = Field(ge=0, description="The number of the output")
    inWrt: int = Field(ge=0, description="The number of the input")
    vec: Vector = Field(description="A number for each element of the input")


class ApplyHessian(Evaluate):
    """Asks for the derivative by input inWrt1 of (sens times the Jacobian by input inWrt2, times vec)."""

    outWrt: int = Field(ge=0, description="The number of the output")
    inWrt1: int = Field(ge=0, description="The number of the input that the result has the size of")
    inWrt2: int = Field(ge=0, description="The number of the input that vec has the size of")
    sens: Vector = Field(description="A weight for each element of the output")
    vec: Vector = Field(description="A number for each element of the input inWrt2")


class Info(BaseModel):
    """The models of the server."""

    protocolVersion: float
    models: list[str]


class ModelInfo(BaseModel):
    """What a model answers."""

    support: dict[str, bool]


class InputSizes(BaseModel):
    """The sizes of the inputs."""

    inputSizes: list[int]


class OutputSizes(BaseModel):
    """The sizes of the outputs."""

    outputSizes: list[int]


class Outputs(BaseModel):
    """The outputs, each as a flat list."""

    output: list[Vector]


class Derivative(BaseModel):
    """A derivative as a flat list."""

    output: Vector
