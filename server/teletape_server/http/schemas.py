"""The bodies that the front itself reads and writes: sessions, the catalogue of ops, facts about the server."""

from __future__ import annotations

import json
import re
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, WithJsonSchema

from teletape_server.models.base import Body, FloatDtype, component
from teletape_server.models.waiting import Place
from teletape_server.setting_values import DEVICE_PATTERN, DEVICES


def _is_device(text: str) -> str:
    """The text, if it may name a device; a pattern would be repeated in the message."""
    if not re.fullmatch(DEVICE_PATTERN, text):
        raise ValueError(f"must be {DEVICES}; found {json.dumps(text)[:60]}")
    return text


Device = Annotated[
    str,
    AfterValidator(_is_device),
    Field(
        description="cpu, gpu:N, gpu (any), or auto: a GPU if there is one, else the CPU",
        json_schema_extra={"pattern": DEVICE_PATTERN},
    ),
]


class NewSession(Body):
    """A session to create."""

    model_config = ConfigDict(
        extra="forbid", json_schema_extra={"x-examples": {"example": {"id": "demo", "device": "cpu", "replace": True}}}
    )

    id: Annotated[
        str | None,
        Field(
            pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$",
            description="Your name for the session; without it the server generates one that begins with _",
        ),
    ] = None
    device: Device | None = None
    memory_limit: Annotated[int | None, Field(gt=0, description="Bytes that its arrays and other objects may take")] = (
        None
    )
    dtype: Annotated[FloatDtype, Field(description="Of numbers that are sent without a dtype and meet no tensor")] = (
        "float32"
    )
    replace: Annotated[bool, Field(description="End an existing session with this id first")] = False
    dedicated: Annotated[
        bool, Field(description="On a GPU: a process of its own, which no other session can end or delay")
    ] = False
    durability: Annotated[
        Literal["none", "journal", "journal-sync"] | None,
        Field(
            description="What outlives its process: nothing; all that was answered, after a power cut up to 50 ms "
            "less; all that was answered. Without it the server's default"
        ),
    ] = None


class Extension(Body):
    """How long to keep a session."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"x-examples": {"example": {"seconds": 3600}}})

    seconds: Annotated[float, Field(gt=0, le=366 * 86400, description="From now on, idle or not")]


class Work(BaseModel):
    """The requests that a session has not answered yet, and the progress of the one that runs."""

    requests: Annotated[int, Field(description="Requests received and not answered yet")]
    done: Annotated[int, Field(description="Commands done by the running request")]
    total: Annotated[int, Field(description="Commands of the running request; 0: not known yet")]
    iteration: Annotated[int, Field(description="Iterations done by the loop that runs now")]
    iterations: Annotated[int, Field(description="Iterations of that loop in all; 0: not known")]
    wait: Annotated[Place | None, Field(description="Of one session: why its newest request waits")] = None


class SessionProblem(BaseModel):
    """A problem that a session's process has answered."""

    code: str
    message: str
    at: Annotated[str, Field(description="RFC 3339")]


class EndedRequest(BaseModel):
    """A request that has ended, whoever still waited for it."""

    at: Annotated[str, Field(description="RFC 3339: when it ended")]
    seconds: Annotated[float | None, Field(description="That it took, with its wait; null: less than a tenth")]
    code: Annotated[str | None, Field(description="Of the problem that was its answer; null: it has succeeded")]


class Answered(BaseModel):
    """The requests that a session has answered since it was created."""

    requests: int
    frames: Annotated[int, Field(description="Those that came as binary frames")]
    problems: Annotated[int, Field(description="Those answered with a problem")]
    last_problem: SessionProblem | None
    last_request: Annotated[EndedRequest | None, Field(description="null: none has ended since the server started")]
    compute_seconds: Annotated[float, Field(description="That they have run")]
    cpu_seconds: Annotated[float, Field(description="CPU time of the thread that runs them")]
    p50_seconds: Annotated[
        float | None,
        Field(description="Half of them took at most this, with what they waited in the session's process"),
    ]
    p99_seconds: Annotated[float | None, Field(description="The same of 99 %; both are estimates from a histogram")]


class Recovered(BaseModel):
    """The part of a session that its process has brought back from files."""

    record: Annotated[int, Field(description="The number of the last record of the log")]
    cut_bytes: Annotated[int, Field(description="Bytes after it of a write that was never finished, nor answered")]
    seconds: Annotated[float, Field(description="That it took")]


class Session(BaseModel):
    """A live session."""

    id: str
    owner: Annotated[str, Field(description="The name of the API key that created it; local without keys")]
    device: str
    memory_limit: Annotated[int, Field(description="Bytes that its arrays and other objects may take")]
    dtype: Annotated[str, Field(description="Of numbers that are sent without a dtype and meet no tensor")]
    bytes_in_use: Annotated[
        int,
        Field(description="As of the last answer: bytes of arrays, and of other objects beyond the first MiB of them"),
    ]
    created_at: Annotated[str, Field(description="RFC 3339")]
    expires_at: Annotated[
        str,
        Field(
            description="RFC 3339: when it ends if no further request comes, or, if it outlives its process, is parked"
        ),
    ]
    ends_at: Annotated[
        str,
        Field(description="RFC 3339: when it ends in any case; in the year 9999: never, since it outlives its process"),
    ]
    state: Annotated[
        Literal["starting", "live", "parking", "parked", "waking", "recovering", "damaged", "diverged", "ended"],
        Field(description="parked: it has no process, and the next request starts one"),
    ]
    why: Annotated[str | None, Field(description="Why it recovers, is damaged, has diverged, or takes no changes")]
    durability: Annotated[Literal["none", "journal", "journal-sync"], Field(description="What outlives its process")]
    log_to_run: Annotated[
        bool,
        Field(
            description="Whether it has no process, and a log: this version of the server alone can run that, and does "
            "so with the next request, when it is parked, or after the start in the background"
        ),
    ]
    disk_bytes: Annotated[int, Field(description="Bytes of its files; in events as of the last second")]
    disk_limit: Annotated[
        int, Field(description="Bytes that they may take; with those of the key's other sessions, disk_per_key")
    ]
    recovered: Annotated[
        Recovered | None, Field(description="What its process has brought back; null: it is the first one")
    ]
    running: Work
    answered: Answered


class SessionList(BaseModel):
    """Your live sessions, oldest first; for an admin those of all keys."""

    sessions: list[Session]
    owner: Annotated[str, Field(description="The name of your API key; local without keys")]
    next: Annotated[str | None, Field(description="`after` of the next page; null: this is the last")] = None


class Sessions(BaseModel):
    """The first event of a stream of sessions: all that you see now."""

    sessions: list[Session]
    owner: Annotated[str, Field(description="The name of your API key")]
    admin: Annotated[bool, Field(description="Whether you see and end the sessions of all keys")]


class EndedSession(BaseModel):
    """An event: a session has ended."""

    id: str
    owner: str
    reason: Annotated[str | None, Field(description="For programs; null: not known any more")]
    text: Annotated[str, Field(description="For people")]
    ended_at: Annotated[str | None, Field(description="RFC 3339")]


class Client(BaseModel):
    """A client that joined a session."""

    client: Annotated[int, Field(description="Its number")]
    seq: Annotated[int, Field(description="The sequence number of its first batch")]
    first_id: Annotated[int, Field(description="The first of the integer ids that belong to it")]


class Index(BaseModel):
    """Where everything is on this server."""

    name: Literal["teletape"]
    api_version: Annotated[Literal["v1"], Field(description="The first part of every path of the API")]
    links: Annotated[dict[str, str], Field(description="Paths by relation")]


class Health(BaseModel):
    """The server answers."""

    status: Literal["ok"]


class Ready(BaseModel):
    """The server takes new requests."""

    status: Literal["ready"]


class Limits(BaseModel):
    """The server's settings that limit requests and sessions: numbers, bytes and seconds."""

    connections: int
    stall_limit: float
    min_rate: int
    memory_limit: int
    disk_limit: int
    disk_per_key: int
    max_body: int
    bodies_per_key: int
    bodies: int
    max_header: int
    sessions_per_key: int
    sessions: int
    lasting_per_key: int
    runs: int
    published_processes: int
    idle_limit: float
    max_age: float
    patience: float
    time_limit: float
    grace: float
    stuck_after: float
    slow_log: float
    shutdown_grace: float
    idempotency_window: float
    max_iterations: int


class Info(BaseModel):
    """The server's versions, limits and features."""

    name: Literal["teletape"]
    version: str
    boot_id: Annotated[str, Field(description="Differs after each restart, which ends all sessions")]
    started: Annotated[str, Field(description="RFC 3339: when the server started")]
    frame_versions: Annotated[list[int], Field(description="Versions of the binary frame that it reads")]
    content_types: Annotated[list[str], Field(description="Of batches")]
    features: list[str]
    catalogue: Annotated[str, Field(description="Digest of the ops: equal digests mean equal ops")]
    limits: Limits


class DeviceState(BaseModel):
    """A device of the server, and what is in use of it."""

    device: Annotated[str, Field(description="cpu or gpu:N, as a session names it; gpu if the server has no GPU")]
    usable: Annotated[bool, Field(description="Whether sessions can compute on it")]
    reason: Annotated[str, Field(description="Why not, and what to do; empty if it is usable")]
    interpreted: Annotated[
        str, Field(description="Why functions run step by step there, several times slower; empty: they are compiled")
    ]
    name: Annotated[str, Field(description="Its model")]
    memory_bytes: Annotated[int | None, Field(description="Its memory; null: not known")]
    free_bytes: Annotated[int | None, Field(description="Of it that no program uses, at most two seconds ago")]
    driver: Annotated[str | None, Field(description="The version of NVIDIA's driver; null: no GPU, or not known")]
    cuda: Annotated[str | None, Field(description="The newest version of CUDA that its driver serves; null: no GPU")]
    compute_capability: Annotated[str | None, Field(description="Of a GPU, such as 9.0")]
    sessions: Annotated[int, Field(description="Sessions that compute on it")]


class Devices(BaseModel):
    """The devices of the server."""

    devices: list[DeviceState]
    default: Annotated[str, Field(description="The device of a session that names none")]


class Problem(BaseModel):
    """A refusal or failure (RFC 9457)."""

    type: str
    title: str
    status: int
    detail: Annotated[str, Field(description="What was wrong, and what to do")]
    code: Annotated[str, Field(description="For programs; docs/protocol.md lists the codes")]
    details: dict[str, Any]
    instance: Annotated[str, Field(description="The id of the request")]


class Op(BaseModel):
    """An op of the catalogue."""

    name: str
    op_type: Annotated[str, Field(description="TensorFlow's op type")]
    tensorflow: Annotated[list[str], Field(description="TensorFlow's names for it")]
    inputs: list[str]
    results: Annotated[list[str], Field(description="Names of its results, in the order of a call's `outputs`")]
    variadic: Annotated[bool, Field(description="Whether it takes any number of tensors")]
    attributes: Annotated[dict[str, Any], Field(description="JSON Schema")]
    gradients: Annotated[
        dict[str, dict[str, Any]],
        Field(description="By input: `kind` (dense, slices, none, not_registered), and what a tape `keeps` for it"),
    ]
    composite: Annotated[bool, Field(description="Whether a tape records other ops in its place")]
    dynamic: Annotated[bool, Field(description="Whether the result's shape depends on values")]
    backends: Annotated[list[str], Field(description="Where it runs: cpu, gpu")]
    on_gpu: Annotated[
        str, Field(description="What the host does for it on a GPU, or why a GPU does not have it; empty: nothing")
    ]
    documentation: str


class ExpressionText(Body):
    """A text to parse."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "x-examples": {
                "product": {"text": "y = sin(x) * x"},
                "layers": {"text": "w = [[0.5, -0.5], [1.5, 0.5]]\nloss = mean((tanh(w) - target)**2)"},
            }
        },
    )

    text: Annotated[
        str, Field(description="Lines such as `y = sin(x) * x`; names without a value are the function's inputs")
    ]
    dtype: Annotated[FloatDtype, Field(description="Of `values`, and of constants that meet no input")] = "float32"


class Expression(BaseModel):
    """A function as data: what POST /functions takes, and the values that the text gives to inputs."""

    inputs: Annotated[list[str], Field(description="Names of the inputs, in the order of their first use")]
    values: Annotated[
        dict[str, Annotated[Any, WithJsonSchema(component("TensorData"))]],
        Field(description="Values of inputs, from lines such as `x = 2`"),
    ]
    steps: Annotated[
        list[Annotated[dict[str, Any], WithJsonSchema(component("Step"))]],
        Field(description="In order. `where` is the place in the text; errors and explanations repeat it"),
    ]
    outputs: Annotated[list[str], Field(description="Names of the results that no other line uses")]


class OpList(BaseModel):
    """Ops of the catalogue, by name."""

    ops: list[Op]
    next: Annotated[str | None, Field(description="`after` of the next page; null: this is the last")] = None
