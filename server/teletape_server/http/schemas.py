"""Bodies of requests and answers that are JSON by themselves, with an example each."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from teletape_server.hosts import Running

Device = Annotated[str, Field(pattern=r"^(cpu|gpu|gpu:[0-9]{1,3})$", description="cpu, gpu or gpu:N")]


class _Body(BaseModel):
    """Takes the fields that it names, and no others."""

    model_config = ConfigDict(extra="forbid", strict=True)


class NewSession(_Body):
    """A session to be made."""

    model_config = ConfigDict(
        extra="forbid", json_schema_extra={"examples": [{"id": "demo", "device": "cpu", "replace": True}]}
    )

    id: Annotated[
        str | None,
        Field(
            pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$",
            description="Your name for it; left out: a generated one, beginning with _",
        ),
    ] = None
    device: Device | None = None
    memory_limit: Annotated[int | None, Field(gt=0, description="Bytes that its arrays may take")] = None
    replace: Annotated[bool, Field(description="End the session of that id first, if there is one")] = False


class Extension(_Body):
    """How long a session is to be kept."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [{"seconds": 3600}]})

    seconds: Annotated[float, Field(gt=0, le=366 * 86400, description="From now on, idle or not")]


class Work(BaseModel):
    """What runs in a session."""

    requests: Annotated[int, Field(description="Taken and not yet answered")]
    done: Annotated[int, Field(description="Commands done by the batch that runs")]
    total: Annotated[int, Field(description="Commands of that batch; 0: not known yet")]
    iteration: Annotated[int, Field(description="Iterations that the loop in the next command has taken")] = 0
    iterations: Annotated[int, Field(description="Iterations that it will take; 0: not known")] = 0


class SessionFacts(BaseModel):
    """A live session."""

    id: str
    device: str
    memory_limit: Annotated[int, Field(description="Bytes that its arrays may take")]
    bytes_in_use: Annotated[int, Field(description="As of the last answer")]
    created_at: Annotated[str, Field(description="RFC 3339")]
    expires_at: Annotated[str, Field(description="RFC 3339: when it ends unless something is asked of it")]
    ends_at: Annotated[str, Field(description="RFC 3339: when it ends whatever happens")]
    running: Work


class SessionList(BaseModel):
    """Your live sessions, oldest first."""

    sessions: list[SessionFacts]


class Client(BaseModel):
    """A client's place in a session."""

    client: Annotated[int, Field(description="Its number")]
    seq: Annotated[int, Field(description="The seq of its first batch")]
    first_id: Annotated[int, Field(description="The first of the integer ids that are its own")]


class Still(BaseModel):
    """A request that runs still: how far it is. Answered 202, send the same request again to wait on."""

    status: str = "running"
    done: Annotated[int, Field(description="Commands done")]
    total: Annotated[int, Field(description="Commands in all; 0: not known yet")]
    iteration: Annotated[int, Field(description="Iterations that the loop in the next command has taken")] = 0
    iterations: Annotated[int, Field(description="Iterations that it will take; 0: not known")] = 0

    @classmethod
    def of(cls, running: Running) -> Still:
        """How far that request is."""
        return cls(done=running.done, total=running.total, iteration=running.iteration, iterations=running.iterations)


class Health(BaseModel):
    """The server answers."""

    status: str = "ok"


class Info(BaseModel):
    """What this server speaks and allows."""

    name: str = "teletape"
    version: str
    frame_versions: list[int]
    content_types: list[str]
    features: list[str]
    catalogue: Annotated[str, Field(description="Digest of the ops: equal digests, equal ops")]
    limits: dict[str, float]


class Devices(BaseModel):
    """Where sessions can compute."""

    devices: list[str]
    default: str


class ProblemBody(BaseModel):
    """A refusal (RFC 9457)."""

    type: str
    title: str
    status: int
    detail: Annotated[str, Field(description="What was asked, what was found, and what to do")]
    code: Annotated[str, Field(description="For programs; docs/protocol.md lists them")]
    details: dict[str, Any]
    instance: Annotated[str, Field(description="Which request it was")]


class OpFacts(BaseModel):
    """An op of the catalogue."""

    name: str
    op_type: Annotated[str, Field(description="TensorFlow's op type")]
    tensorflow: Annotated[list[str], Field(description="Its names there")]
    inputs: list[str]
    variadic: Annotated[bool, Field(description="Takes any number of arrays")]
    attributes: Annotated[dict[str, Any], Field(description="JSON Schema")]
    gradients: Annotated[
        dict[str, dict[str, Any]],
        Field(description="By input: `kind` (dense, slices, none, not_registered), and what a tape `keeps` for it"),
    ]
    composite: Annotated[bool, Field(description="Made of other ops, which are recorded in its place")]
    dynamic: Annotated[bool, Field(description="The result's shape depends on values")]
    backends: list[str]
    documentation: str


class OpList(BaseModel):
    """Ops of the catalogue, by name."""

    ops: list[OpFacts]
