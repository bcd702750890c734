"""The models of answers: each member of the JSON is an attribute, and a tensor is a NumPy array.

Written by `make reference` from openapi/openapi.json. Long because it has every answer of the server.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias

from teletape_client.tensors.answers import (
    ByName,
    ByPair,
    BySource,
    Model,
    Reader,
    anything,
    array,
    list_of,
    map_of,
    number,
    rows_or,
    tensor,
)

if TYPE_CHECKING:
    from teletape_client.tensors.values import Array, Value

#: What the tape computes for the source.
Outcome: TypeAlias = Literal["gradient", "none", "zero", "not_finite", "error"]

#: Why a gradient is what it is.
Reason: TypeAlias = Literal[
    "connected",
    "partly_cut",
    "numbers_gone",
    "non_differentiable_op",
    "integer_or_bool",
    "stop_gradient",
    "no_gradient_registered",
    "no_gradient_declared",
    "custom_none",
    "assigned",
    "left_and_returned",
    "not_watched",
    "watched_after_use",
    "not_trainable",
    "variable_replaced",
    "computed_before_tape",
    "computed_after_tape",
    "computed_while_stopped",
    "computed_before_reset",
    "other_context",
    "no_outer_tape",
    "untaken_branch",
    "no_iteration",
    "source_dtype",
    "target_dtype",
    "unconnected",
    "zero_derivative",
    "saturated",
    "masked",
    "tie",
    "zero_factor",
    "cancelled",
    "underflow",
    "value_not_finite",
    "infinite_derivative",
    "undefined_derivative",
    "zero_times_infinity",
    "overflow",
]


class LimitState(Model):
    """How much of a limit is used.

    Attributes:
        account: Whose limit it is: OWNER, OWNER:KEY, or a group's, @NAME.
        name: Of the limit.
        used: Null: that is not counted up, as with requests a second.
        frees_at: RFC 3339: when less than the limit will be used; null: it is less, or unknown.
    """

    account: str
    name: str
    limit: float
    used: float | None = None
    frees_at: str | None = None


class AccountState(Model):
    """Limits of an account, and what it uses.

    Attributes:
        account: OWNER; OWNER:KEY, of a key with limits of its own; or a group's, @NAME.
        group: The account of its group; empty: it is in none.
        sessions: That have a place.
        memory_bytes: Of their arrays.
        disk_bytes: Of their files.
        used: Of each window of days, by the name that its limit has.
        limits: Those that hold for it, its group's too.
        own_limits: Those that were set for it; the others are defaults.
    """

    account: str
    group: str
    sessions: int
    memory_bytes: int
    disk_bytes: int
    used: dict[str, float]
    limits: list[LimitState]
    own_limits: dict[str, float]

    _readers: ClassVar[Mapping[str, Reader]] = {"limits": list_of(LimitState.read)}


class AccountTime(Model):
    """An account's computing, step by step.

    Attributes:
        account: OWNER, or OWNER:KEY; empty: all others together, whom an admin alone sees by name.
        seconds: Of computing in each step, the present one last.
    """

    account: str
    seconds: list[float]


class Accounts(Model):
    """All accounts."""

    accounts: list[AccountState]

    _readers: ClassVar[Mapping[str, Reader]] = {"accounts": list_of(AccountState.read)}


class Accumulated(Model):
    """An accumulator after a question.

    Attributes:
        count: Batches that were added.
        weight: Of all of them together.
        added: Whether this question has added its batch; false: it was there.
    """

    id: str
    count: int
    weight: float
    added: bool


class Accumulator(ByName):
    """An accumulator.

    Attributes:
        count: Batches that were added.
        weight: Of all of them together.
        batches: The numbers of the batches that were added, as ranges: the first and the last of each.
        values: The sum or the mean, by source.
    """

    id: str
    count: int
    weight: float
    batches: list[list[int]]
    values: dict[str, Array]

    _readers: ClassVar[Mapping[str, Reader]] = {"values": map_of(tensor)}


class AccumulatorState(Model):
    """An accumulator without its sums.

    Attributes:
        count: Batches that were added.
        weight: Of all of them together.
    """

    id: str
    count: int
    weight: float


class AccumulatorList(Model):
    """The session's accumulators."""

    accumulators: list[AccumulatorState]

    _readers: ClassVar[Mapping[str, Reader]] = {"accumulators": list_of(AccumulatorState.read)}


class AheadOf(Model):
    """A request that is ahead of another one.

    Attributes:
        owner: The name of the key whose request it is.
        session: Its session's id; null: it has none.
        running_seconds: That it has run; null: it waits too.
        seconds_left: That it will still run, estimated; null: not known.
    """

    owner: str
    session: str | None
    running_seconds: float | None
    seconds_left: float | None


class SessionProblem(Model):
    """A problem that a session's process has answered.

    Attributes:
        at: RFC 3339.
    """

    code: str
    message: str
    at: str


class EndedRequest(Model):
    """A request that has ended, whoever still waited for it.

    Attributes:
        at: RFC 3339: when it ended.
        seconds: That it took, with its wait; null: less than a tenth.
        code: Of the problem that was its answer; null: it has succeeded.
    """

    at: str
    seconds: float | None
    code: str | None


class Answered(Model):
    """The requests that a session has answered since it was created.

    Attributes:
        frames: Those that came as binary frames.
        problems: Those answered with a problem.
        last_request: Null: none has ended since the server started.
        compute_seconds: That they have run.
        cpu_seconds: CPU time of the thread that runs them.
        p50_seconds: Half of them took at most this, with what they waited in the session's process.
        p99_seconds: The same of 99 %; both are estimates from a histogram.
    """

    requests: int
    frames: int
    problems: int
    last_problem: SessionProblem | None
    last_request: EndedRequest | None
    compute_seconds: float
    cpu_seconds: float
    p50_seconds: float | None
    p99_seconds: float | None

    _readers: ClassVar[Mapping[str, Reader]] = {"last_problem": SessionProblem.read, "last_request": EndedRequest.read}


class ApiKey(Model):
    """An API key, without its secret.

    Attributes:
        id: The part of it that is no secret.
        name: For people: where the key is used.
        owner: Whose sessions and published functions it sees; several keys may have the same.
        group: A name for several owners; empty: none.
        scopes: What it is for. sessions: sessions and runs; call: published functions; publish: to publish and
            withdraw them; keys: to see, create, rotate and revoke keys.
        account: Which it counts for: OWNER, or OWNER:KEY with limits of its own.
        source: Environment: only the server's start reads it, so it cannot be rotated or revoked here.
        created_at: RFC 3339; null: it is of the environment.
        expires_at: RFC 3339; null: never.
        revoked_at: RFC 3339; null: it was not.
        used_at: RFC 3339, to half a minute: when it was last used; null: never, or not known.
    """

    id: str
    name: str
    owner: str
    role: Literal["user", "admin"]
    group: str
    scopes: list[Literal["sessions", "call", "publish", "keys"]]
    account: str
    source: Literal["store", "environment"]
    state: Literal["valid", "expired", "revoked"]
    created_at: str | None = None
    expires_at: str | None = None
    revoked_at: str | None = None
    used_at: str | None = None


class ApiKeyList(Model):
    """API keys: yours, or those of all owners for an admin."""

    keys: list[ApiKey]

    _readers: ClassVar[Mapping[str, Reader]] = {"keys": list_of(ApiKey.read)}


class AuditEntry(Model):
    """An entry of the audit: what was done, and by whom.

    Attributes:
        number: Its place, from 1 on.
        at: RFC 3339.
        action: Session.seen: an admin has looked into another owner's session or request.
        owner: Who did it; empty: the server itself.
        key: The id of the key; empty: there was none.
        address: From where; empty: over a Unix socket, or by the server itself.
        subject: OWNER:ID of a session, the id of a key, or an account.
        detail: How, or why.
    """

    number: int
    at: str
    action: Literal[
        "session.created",
        "session.ended",
        "session.seen",
        "key.created",
        "key.rotated",
        "key.revoked",
        "tokens.revoked",
        "limits.changed",
        "function.published",
        "function.aliased",
        "function.deleted",
    ]
    owner: str
    key: str
    address: str
    subject: str
    detail: str


class Audit(Model):
    """The audit: what was done on this server, the newest first.

    Attributes:
        next: `after` of the next page; null: this is the last. The header Link has its URL.
    """

    next: str | None = None
    entries: list[AuditEntry]

    _readers: ClassVar[Mapping[str, Reader]] = {"entries": list_of(AuditEntry.read)}


class BatchFacts(Model):
    """How a call was computed.

    Attributes:
        size: Calls that were computed together with it, itself among them.
        waited_us: Microseconds between its arrival and the start of its computation.
        why: Alone: no other call waited; exact: as it was asked; together: in one computation; different: those
            that waited have other shapes or fields; unbatchable: the function or the question has no such form.
    """

    size: int
    waited_us: int
    why: Literal["alone", "exact", "together", "different", "unbatchable"]


class KeyShare(Model):
    """A key's use of the server now.

    Attributes:
        owner: The name of the key.
        sessions: Its sessions that have a process.
        bytes_in_use: By its sessions, as of their last answers.
        bytes_reserved: Of the machine's memory, for its sessions: those in use, and those that may be soon.
        computing: Processes that compute for it now.
        waiting: Its requests that wait.
        share: The part of the processors that is its own while these compute, from 0 to 1; more is free.
    """

    owner: str
    sessions: int
    bytes_in_use: int
    bytes_reserved: int
    computing: int
    waiting: int
    share: float


class LongestIdle(Model):
    """The session that is idle for longest: the first one that would make room.

    Attributes:
        owner: The name of the key whose session it is.
        session: Its id.
        idle_seconds: Since its last work.
        bytes_in_use: By it, as of its last answer.
    """

    owner: str
    session: str
    idle_seconds: float
    bytes_in_use: int


class Place(Model):
    """A request's place, and why it waits.

    Attributes:
        position: Requests ahead of it; 0: it runs, or waits for no other request.
        ahead: The first ten of these.
        starts_in_seconds: Estimated; 0: it runs; null: not known.
        reason: One sentence, for people.
    """

    position: int
    ahead: list[AheadOf]
    starts_in_seconds: float | None
    reason: str

    _readers: ClassVar[Mapping[str, Reader]] = {"ahead": list_of(AheadOf.read)}


class Unanswered(Model):
    """A request of yours that is not answered yet.

    Attributes:
        session: Its session's id; null: it has none.
        seconds: Since it came; null: not known.
        wait: Why it waits.
    """

    session: str | None
    seconds: float | None
    wait: Place

    _readers: ClassVar[Mapping[str, Reader]] = {"wait": Place.read}


class Timeline(Model):
    """The computing of accounts over time.

    Attributes:
        began_at: RFC 3339: when the first step began.
        step_seconds: The length of a step.
        accounts: Those that have computed, the most first.
    """

    began_at: str
    step_seconds: float
    accounts: list[AccountTime]

    _readers: ClassVar[Mapping[str, Reader]] = {"accounts": list_of(AccountTime.read)}


class BoxUse(Model):
    """The use of the server by all keys now, and why your requests wait.

    Attributes:
        owner: The name of your key; local without keys.
        keys: All keys that have something, those with most first.
        longest_idle: Null: no session is idle.
        runs: Requests without a session that run.
        waiting_runs: Those that wait for a place.
        places: Requests without a session that may run at a time.
        requests: The 100 oldest of yours that are not answered.
        memory_free: Bytes of the machine's memory that processes can still take.
        memory_promised: Bytes of these that sessions have reserved and do not use yet.
        processors: On which the server and all sessions run.
        timeline: Who computed when; null: it was not asked for.
    """

    owner: str
    keys: list[KeyShare]
    longest_idle: LongestIdle | None
    runs: int
    waiting_runs: int
    places: int
    requests: list[Unanswered]
    memory_free: int
    memory_promised: int
    processors: int
    timeline: Timeline | None = None

    _readers: ClassVar[Mapping[str, Reader]] = {
        "keys": list_of(KeyShare.read),
        "longest_idle": LongestIdle.read,
        "requests": list_of(Unanswered.read),
        "timeline": Timeline.read,
    }


class CheckedEntry(Model):
    """One element of a gradient, computed both ways.

    NaN and infinities are strings, complex numbers pairs.

    Attributes:
        output: Number of the result or target, from 0.
        input: Number of the argument or source, from 0.
        automatic: The automatic derivative; null: there is none.
        numerical: The finite difference.
        sides: One-sided differences, if there is a kink or a jump.
    """

    output: int
    input: int
    index: list[int]
    automatic: Any
    numerical: Any
    error: Any
    tolerance: Any
    sides: list[Any] | None


class CheckReport(Model):
    """How automatic derivatives compare with finite differences.

    Attributes:
        dtype: Of the computation: float64 if possible.
        checked: Elements compared.
        entries: Elements in all.
        worst: The element with the largest error.
    """

    agrees: bool
    dtype: str
    checked: int
    entries: int
    seed: int
    message: str
    worst: CheckedEntry | None

    _readers: ClassVar[Mapping[str, Reader]] = {"worst": CheckedEntry.read}


class CheckedExample(Model):
    """Inputs, and the outputs that they gave when the function was published."""

    inputs: dict[str, Array]
    outputs: dict[str, Array]

    _readers: ClassVar[Mapping[str, Reader]] = {"inputs": map_of(array), "outputs": map_of(array)}


class Cost(Model):
    """Bytes, work and seconds that the commands would take.

    Attributes:
        peak_bytes: The most bytes of arrays at a time, in addition to what the session has: results, what tapes
            keep, what ops need while they run. An upper bound.
        bytes_in_use: By the session before the commands.
        bytes_after: By the session after them.
        memory_limit: Bytes that may be in use; null: there is no limit.
        ops: Ops that run, those of gradients and loops too.
        multiply_adds: Of products of matrices, convolutions, decompositions.
        elements: That the other ops compute.
        seconds: About how long they compute on this machine's CPU; null: on a GPU, not known.
        bytes_up: Of the tensors that the commands have, as bytes.
        bytes_down: Of the values that are fetched, as bytes.
    """

    peak_bytes: int
    bytes_in_use: int
    bytes_after: int
    memory_limit: int | None
    ops: int
    multiply_adds: int
    elements: int
    seconds: float | None
    bytes_up: int
    bytes_down: int


class DeclaredTensor(Model):
    """The declaration of an input, an output or a weight.

    Attributes:
        shape: Lengths; a name is an axis of any length; null: it is known with the values.
    """

    name: str
    dtype: str
    shape: list[int | str | None]


class Deleted(Model):
    """The ids that were deleted, and the bytes in use afterwards.

    Attributes:
        deleted: Ids, oldest first.
    """

    deleted: list[str | int]
    bytes_in_use: int


class DeletedSessions(Model):
    """Which sessions were ended.

    Attributes:
        deleted: Ids, oldest first.
    """

    deleted: list[str]


class Dependence(Model):
    """Something that depends on values that were not given.

    Attributes:
        command: The command's position, from 0; null: one of `tensors`.
        on: The id of the value: give its numbers to learn more.
        what: What depends on it, and how it was counted.
    """

    command: int | None
    on: str
    what: str


class Why(Model):
    """Why a derivative is null: an explanation in short.

    Attributes:
        message: The reason.
        op: The op that causes it, if an op does.
        advice: What to do.
        where: Your source line of that op, if you sent one.
    """

    code: Reason
    message: str
    op: str | None
    advice: str
    where: str | None = None


class Derivative(Model):
    """The derivative with respect to one source.

    Attributes:
        kind: None: the target does not depend on the source; slices: a sparse gradient.
        id: The id that keeps it, if one was given.
        why: Of a null: the reason; other derivatives have no such member.
    """

    source: str | int
    kind: Literal["none", "dense", "slices"]
    id: str | None
    value: Value | None
    why: Why | None = None

    _readers: ClassVar[Mapping[str, Reader]] = {"value": tensor, "why": Why.read}


class DerivativeEstimate(Model):
    """The cost of a derivative, estimated without computing it.

    Attributes:
        rows: Cotangents that go through the tape: 1 for a gradient, with which a Hessian begins.
        passes: Backward passes: one takes as many rows as fit into its memory.
        ops: Ops that all passes run.
        multiply_adds: Of products of matrices, convolutions and decompositions.
        elements: That the other ops compute.
        answer_bytes: Of the derivatives; 0: no target depends on any source.
        peak_bytes: The most at a time in addition to the tape, answer included.
        functions: Gradient functions of the program on the way: they are not counted.
        seconds: About how long it takes on the CPU; null: on a GPU.
    """

    question: Literal["gradient", "jacobian", "batch_jacobian", "hessian", "hvp"]
    rows: int
    passes: int
    ops: int
    multiply_adds: int
    elements: int
    answer_bytes: int
    peak_bytes: int
    functions: int
    seconds: float | None


class Derivatives(BySource):
    """The derivatives, in the order of the sources."""

    derivatives: list[Derivative]
    bytes_in_use: int

    _readers: ClassVar[Mapping[str, Reader]] = {"derivatives": list_of(Derivative.read)}


class DeviceState(Model):
    """A device of the server, and what is in use of it.

    Attributes:
        device: Cpu or gpu:N, as a session names it; gpu if the server has no GPU.
        usable: Whether sessions can compute on it.
        reason: Why not, and what to do; empty if it is usable.
        interpreted: Why functions run step by step there, several times slower; empty: they are compiled.
        name: Its model.
        memory_bytes: Its memory; null: not known.
        free_bytes: Of it that no program uses, at most two seconds ago.
        driver: The version of NVIDIA's driver; null: no GPU, or not known.
        cuda: The newest version of CUDA that its driver serves; null: no GPU.
        compute_capability: Of a GPU, such as 9.0.
        sessions: Sessions that compute on it.
    """

    device: str
    usable: bool
    reason: str
    interpreted: str
    name: str
    memory_bytes: int | None
    free_bytes: int | None
    driver: str | None
    cuda: str | None
    compute_capability: str | None
    sessions: int


class Devices(Model):
    """The devices of the server.

    Attributes:
        default: The device of a session that names none.
    """

    devices: list[DeviceState]
    default: str

    _readers: ClassVar[Mapping[str, Reader]] = {"devices": list_of(DeviceState.read)}


class ExampleNorms(Model):
    """The norms of the gradients of examples, before they were clipped.

    Attributes:
        size: Examples.
        clipped: Examples whose norm was above the bound.
        vectorized: Whether examples run at once by the ops' batch rules.
        norms: With `return` norms: of each example.
        mean: With `return` statistics.
    """

    size: int
    clipped: int
    vectorized: bool
    norms: list[float] | None = None
    mean: float | None = None
    median: float | None = None
    smallest: float | None = None
    largest: float | None = None


class ExplanationStep(Model):
    """One step on the path from the target back to the source.

    Attributes:
        op: The op, or what happened in its place.
        where: Your source line of it.
        cut: Whether the gradient stops here.
    """

    op: str
    where: str | None
    cut: bool


class Explanation(Model):
    """Why one gradient is what it is.

    Attributes:
        outcome: What the tape returns; error: the question is refused.
        message: The reason.
        advice: What to do; empty if there is nothing to do.
        op: The op that causes it, if an op does.
        where: Your source line of that op.
        node: That op's position on the tape.
        path: From the target back to the source; only both ends of a long path.
        length: Steps of the whole path.
        certain: False: the most likely reason, not a proven one.
    """

    source: str | int
    code: Reason
    outcome: Outcome
    message: str
    advice: str
    op: str | None
    where: str | None
    node: int | None
    path: list[ExplanationStep]
    length: int
    certain: bool
    notes: list[str]

    _readers: ClassVar[Mapping[str, Reader]] = {"path": list_of(ExplanationStep.read)}


class Explanations(Model):
    """An explanation for each source, in their order."""

    explanations: list[Explanation]

    _readers: ClassVar[Mapping[str, Reader]] = {"explanations": list_of(Explanation.read)}


class Expression(ByName):
    """A function as data: what POST /functions takes, and the values that the text gives to inputs.

    Attributes:
        inputs: Names of the inputs, in the order of their first use.
        values: Values of inputs, from lines such as `x = 2`.
        steps: In order. `where` is the place in the text; errors and explanations repeat it.
        outputs: Names of the results that no other line uses.
    """

    inputs: list[str]
    values: dict[str, Array]
    steps: list[Any]
    outputs: list[str]

    _readers: ClassVar[Mapping[str, Reader]] = {"values": map_of(array), "steps": list_of(anything)}


class Function(Model):
    """A function.

    Attributes:
        assigns: Inputs that have to be variables, since a step assigns to them.
        dtype: Of numbers without a dtype that meet no tensor; null: the session's.
        bytes: Of its constants.
        size: Steps, with those of the functions that it calls.
    """

    id: str | int
    kind: Literal["function"]
    inputs: list[str]
    outputs: list[str]
    assigns: list[str]
    dtype: Literal["float16", "bfloat16", "float32", "float64"] | None
    bytes: int
    size: int
    steps: list[dict[str, Any]]

    _readers: ClassVar[Mapping[str, Reader]] = {"steps": list_of(anything)}


class PartOfGradient(Model):
    """Some elements or rows of a gradient.

    Attributes:
        indices: Of elements in row-major order, or numbers of rows.
        values: The elements, or the rows.
        shape: Of the whole gradient.
    """

    indices: Array
    values: Array
    shape: list[int]

    _readers: ClassVar[Mapping[str, Reader]] = {"indices": tensor, "values": tensor}


class FunctionDerivative(Model):
    """The derivative with respect to one source, or a part of it.

    Attributes:
        kind: None: the target does not depend on the source; slices: a sparse gradient.
        id: The id that keeps it, if one was given.
        why: Of a null: the reason; other derivatives have no such member.
        part: Of a question for a part by `top` or `rows`: `value` is then null.
    """

    source: str | int
    kind: Literal["none", "dense", "slices"]
    id: str | None
    value: Value | None
    why: Why | None = None
    part: PartOfGradient | None = None

    _readers: ClassVar[Mapping[str, Reader]] = {"value": tensor, "why": Why.read, "part": PartOfGradient.read}


class NumericFacts(Model):
    """How derivatives were computed by differences.

    Attributes:
        evaluations: Runs of the function: two for each element of a source.
        chunks: The runs of a chunk go at once: as many as memory has room for.
        vectorized: Whether the runs of a chunk go by the ops' batch rules; false: one by one.
        why: Why they run one by one.
    """

    evaluations: int
    chunks: int
    vectorized: bool
    why: str | None = None


class MapFacts(Model):
    """How a function was run for each entry of a map.

    Attributes:
        size: Entries.
        chunks: The entries of a chunk run at once: as many as memory has room for.
        vectorized: Whether all entries of a chunk run by the ops' batch rules; false: one by one.
        why: Why they run one by one.
    """

    size: int
    chunks: int
    vectorized: bool
    why: str | None = None


class FunctionDerivatives(BySource):
    """A function's derivatives, in the order of the sources.

    Attributes:
        values: The outputs in `fetch`, by name.
        per_example: Of a question with `per_example`.
        accumulator: Of a question with `accumulate`.
        numeric: Of a question with `numeric`.
        map: Of a map; other answers have no such member.
    """

    values: dict[str, Array]
    bytes_in_use: int
    derivatives: list[FunctionDerivative]
    per_example: ExampleNorms | None = None
    accumulator: Accumulated | None = None
    numeric: NumericFacts | None = None
    map: MapFacts | None = None

    _readers: ClassVar[Mapping[str, Reader]] = {
        "values": map_of(tensor),
        "derivatives": list_of(FunctionDerivative.read),
        "per_example": ExampleNorms.read,
        "accumulator": Accumulated.read,
        "numeric": NumericFacts.read,
        "map": MapFacts.read,
    }


class HessianBlock(Model):
    """The second derivatives with respect to a pair of sources.

    Attributes:
        kind: None: the target does not depend on the source; slices: a sparse gradient.
        id: The id that keeps it, if one was given.
        why: Of a null: the reason; other derivatives have no such member.
    """

    source: str | int
    kind: Literal["none", "dense", "slices"]
    id: str | None
    value: Value | None
    why: Why | None = None
    second_source: str | int

    _readers: ClassVar[Mapping[str, Reader]] = {"value": tensor, "why": Why.read}


class FunctionHessian(ByPair):
    """A function's Hessian: for each source a list with a block for each source.

    Attributes:
        values: The outputs in `fetch`, by name.
        map: Of a map; other answers have no such member.
    """

    values: dict[str, Array]
    bytes_in_use: int
    derivatives: list[list[HessianBlock]]
    map: MapFacts | None = None

    _readers: ClassVar[Mapping[str, Reader]] = {
        "values": map_of(tensor),
        "derivatives": list_of(list_of(HessianBlock.read)),
        "map": MapFacts.read,
    }


class FunctionList(Model):
    """The session's functions, oldest first.

    Attributes:
        next: `after` of the next page; null: this is the last. The header Link has its URL.
    """

    next: str | None = None
    functions: list[Function]

    _readers: ClassVar[Mapping[str, Reader]] = {"functions": list_of(Function.read)}


class SparsePart(Model):
    """One of the arrays of a sparse matrix.

    Attributes:
        id: The id that keeps it, if one was given.
    """

    id: str | None
    value: Array

    _readers: ClassVar[Mapping[str, Reader]] = {"value": tensor}


class SparseDerivative(Model):
    """A Jacobian or Hessian as a sparse matrix: row by row, no place twice.

    Attributes:
        kind: None: there is no derivative, and no further member.
        shape: Rows and columns: elements in row-major order.
        entries: Those that may differ from zero.
        index_dtype: Of the rows, row starts and columns.
        vector_products: Products with vectors that the values took.
        rows: Coo: the row of each entry.
        cols: Coo: the column of each entry.
        indptr: Csr: where each row begins, and the end.
        indices: Csr: the column of each entry.
        values: The value of each entry.
        why: Of a null: the reason.
    """

    source: str | int
    kind: Literal["none", "sparse"]
    format: Literal["coo", "csr"] | None = None
    shape: list[int] | None = None
    entries: int | None = None
    index_dtype: str | None = None
    vector_products: int | None = None
    rows: SparsePart | None = None
    cols: SparsePart | None = None
    indptr: SparsePart | None = None
    indices: SparsePart | None = None
    values: SparsePart | None = None
    why: Why | None = None

    _readers: ClassVar[Mapping[str, Reader]] = {
        "rows": SparsePart.read,
        "cols": SparsePart.read,
        "indptr": SparsePart.read,
        "indices": SparsePart.read,
        "values": SparsePart.read,
        "why": Why.read,
    }


class FunctionSparseDerivative(ByName):
    """A function's sparse derivative.

    Attributes:
        values: The outputs in `fetch`, by name.
    """

    values: dict[str, Array]
    bytes_in_use: int
    derivative: SparseDerivative

    _readers: ClassVar[Mapping[str, Reader]] = {"values": map_of(tensor), "derivative": SparseDerivative.read}


class Tangent(Model):
    """The derivative of one output along the tangents.

    Attributes:
        name: Of the output.
        kind: None: the target does not depend on a source; slices: a sparse tangent.
        id: The id that keeps it, if one was given.
        why: Of a null: the reason; other derivatives have no such member.
    """

    name: str
    kind: Literal["none", "dense", "slices"]
    id: str | None
    value: Value | None
    why: Why | None = None

    _readers: ClassVar[Mapping[str, Reader]] = {"value": tensor, "why": Why.read}


class FunctionTangents(BySource):
    """A function's derivatives along the tangents, in the order of the targets.

    Attributes:
        values: The outputs in `fetch`, by name.
        map: Of a map; other answers have no such member.
    """

    values: dict[str, Array]
    bytes_in_use: int
    derivatives: list[Tangent]
    map: MapFacts | None = None

    _readers: ClassVar[Mapping[str, Reader]] = {
        "values": map_of(tensor),
        "derivatives": list_of(Tangent.read),
        "map": MapFacts.read,
    }


class GradientNumbers(Model):
    """A gradient in a few numbers.

    NaN and infinities are strings, a complex mean is a pair.

    Attributes:
        kind: None: the target does not depend on the source, and there are no numbers.
        norm: The square root of the sum of the squared magnitudes.
        max_abs: The largest magnitude.
        mean: Of the elements.
        non_finite: The share of elements that are NaN or infinite, from 0 to 1.
        zeros: The share of elements that are exactly 0.
        why: Of a gradient that is null: the reason.
    """

    source: str | int
    kind: Literal["none", "dense", "slices"]
    dtype: str | None = None
    shape: list[int] | None = None
    norm: Any | None = None
    max_abs: Any | None = None
    mean: Any | None = None
    non_finite: float | None = None
    zeros: float | None = None
    why: Why | None = None

    _readers: ClassVar[Mapping[str, Reader]] = {"why": Why.read}


class GradientsNumbers(Model):
    """The numbers about each gradient, in the order of the sources."""

    statistics: list[GradientNumbers]

    _readers: ClassVar[Mapping[str, Reader]] = {"statistics": list_of(GradientNumbers.read)}


class GraphNode(Model):
    """One op, one input of the graph, or several of either drawn as one node.

    Attributes:
        id: The id of a node of this graph.
        kind: Group: several ops; watched: several watched tensors; outside: a target or source that is not on
            the tape, or an op before the part that is drawn; cut: what stops a gradient and is not on the tape.
        ops: Ops in this node.
        first: Position of its first op on the tape, from 0.
        label: The op, or the ops and their number.
        name: The id of the tensor, or the variable's name.
        bytes: Bytes kept by this node and by no earlier one.
        keeps: What is kept of the op: inputs by name, y for the result.
        where: Your source line of it.
        why: Of a cut: why the gradient stops.
    """

    id: str
    kind: Literal["variable", "tensor", "op", "read", "group", "watched", "outside", "cut"]
    ops: int
    first: int | None
    label: str
    name: str | None
    dtype: str | None
    shape: list[int] | None
    bytes: int | None
    keeps: list[str]
    where: str | None
    marks: list[Literal["source", "target", "path", "cut"]]
    why: str | None


class GraphEdge(Model):
    """From the node that makes a value to a node that uses it.

    Attributes:
        from_: The id of a node.
        to: The id of a node.
        uses: Inputs that use it.
        carries: Whether a gradient passes.
        path: Whether the gradient of the targets passes on its way to the sources.
    """

    from_: str
    to: str
    uses: int
    carries: bool
    path: bool

    _renamed: ClassVar[Mapping[str, str]] = {"from_": "from"}


class GraphExplanation(Model):
    """Why a source's gradient is what it is.

    Attributes:
        source: The id of a node of this graph.
        outcome: What the tape returns; error: the question is refused.
        message: The reason.
        advice: What to do; empty if there is nothing to do.
        op: The op that causes it, if an op does.
        where: Your source line of that op.
        node: That op's position on the tape.
        path: From the target back to the source; only both ends of a long path.
        length: Steps of the whole path.
        certain: False: the most likely reason, not a proven one.
        drawn: The node that causes it.
    """

    source: str
    code: Reason
    outcome: Outcome
    message: str
    advice: str
    op: str | None
    where: str | None
    node: int | None
    path: list[ExplanationStep]
    length: int
    certain: bool
    notes: list[str]
    drawn: str | None

    _readers: ClassVar[Mapping[str, Reader]] = {"path": list_of(ExplanationStep.read)}


class Graph(Model):
    """A tape as a graph: what it watches, the ops it recorded, and what each keeps.

    Attributes:
        ops: Ops on the tape.
        bytes: Bytes that it keeps.
        consumed: Whether it has answered and keeps nothing any more.
        folded: How ops were put into groups; null: each has a node.
    """

    ops: int
    bytes: int | None
    consumed: bool
    folded: str | None
    nodes: list[GraphNode]
    edges: list[GraphEdge]
    explanations: list[GraphExplanation]

    _readers: ClassVar[Mapping[str, Reader]] = {
        "nodes": list_of(GraphNode.read),
        "edges": list_of(GraphEdge.read),
        "explanations": list_of(GraphExplanation.read),
    }


class Health(Model):
    """The server answers."""

    status: Literal["ok"]


class HessianBlocks(ByPair):
    """The Hessian: for each source a list with a block for each source."""

    derivatives: list[list[HessianBlock]]
    bytes_in_use: int

    _readers: ClassVar[Mapping[str, Reader]] = {"derivatives": list_of(list_of(HessianBlock.read))}


class Histogram(Model):
    """Statistics of a tensor's elements; of a sparse gradient, those of its rows.

    Attributes:
        elements: Elements in all.
        finite: Elements that are finite numbers.
        of: What the other members are about: complex numbers count by their magnitude.
        minimum: Of the finite elements; null: there are none.
        mean: Null also if it exceeds float64.
        std: Standard deviation of the finite elements.
        edges: Of the bins, ascending, one more than `counts`. Integers of a narrow range have a bin each.
        counts: Finite elements in each bin.
    """

    elements: int
    finite: int
    zeros: int
    nan: int
    positive_infinity: int
    negative_infinity: int
    of: Literal["value", "magnitude"]
    minimum: float | None
    maximum: float | None
    mean: float | None
    std: float | None
    edges: list[float]
    counts: list[int]


class Limits(Model):
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


class Info(Model):
    """The server's versions, limits and features.

    Attributes:
        boot_id: Differs after each restart, which ends all sessions.
        started: RFC 3339: when the server started.
        frame_versions: Versions of the binary frame that it reads.
        content_types: Of batches.
        catalogue: Digest of the ops: equal digests mean equal ops.
    """

    name: Literal["teletape"]
    version: str
    boot_id: str
    started: str
    frame_versions: list[int]
    content_types: list[str]
    features: list[str]
    catalogue: str
    limits: Limits

    _readers: ClassVar[Mapping[str, Reader]] = {"limits": Limits.read}


class UseOfTime(Model):
    """Use in an hour or a day.

    Attributes:
        at: RFC 3339: when it began.
        compute_seconds: CPU seconds; on a GPU, seconds for which requests ran.
        gib_hours: GiB of memory times hours.
        requests: That have run.
    """

    at: str
    compute_seconds: float
    gib_hours: float
    requests: int


class Me(Model):
    """Identity of the caller, with the limits of its key and what was used.

    Attributes:
        key: The id of the key; empty: the server requires none.
        name: Of the key, for people.
        owner: Whose sessions and published functions it sees; several keys may have the same.
        group: A name for several owners; empty: none.
        scopes: What it is for. sessions: sessions and runs; call: published functions; publish: to publish and
            withdraw them; keys: to see, create, rotate and revoke keys.
        expires_at: RFC 3339; null: never.
        warning: About a limit of which 80 % or more is used; empty: there is none.
        hours: The last two days by hours, without those of no use.
        days: The last 30 days, likewise.
    """

    key: str
    name: str
    owner: str
    role: Literal["user", "admin"]
    group: str
    scopes: list[Literal["sessions", "call", "publish", "keys"]]
    expires_at: str | None
    use: AccountState
    warning: str
    hours: list[UseOfTime]
    days: list[UseOfTime]

    _readers: ClassVar[Mapping[str, Reader]] = {
        "use": AccountState.read,
        "hours": list_of(UseOfTime.read),
        "days": list_of(UseOfTime.read),
    }


class NewApiKey(Model):
    """A new API key.

    This is the only time that its secret is shown.

    Attributes:
        id: The part of it that is no secret.
        name: For people: where the key is used.
        owner: Whose sessions and published functions it sees; several keys may have the same.
        group: A name for several owners; empty: none.
        scopes: What it is for. sessions: sessions and runs; call: published functions; publish: to publish and
            withdraw them; keys: to see, create, rotate and revoke keys.
        account: Which it counts for: OWNER, or OWNER:KEY with limits of its own.
        source: Environment: only the server's start reads it, so it cannot be rotated or revoked here.
        created_at: RFC 3339; null: it is of the environment.
        expires_at: RFC 3339; null: never.
        revoked_at: RFC 3339; null: it was not.
        used_at: RFC 3339, to half a minute: when it was last used; null: never, or not known.
        key: For Authorization: Bearer KEY, or X-API-Key: KEY.
    """

    id: str
    name: str
    owner: str
    role: Literal["user", "admin"]
    group: str
    scopes: list[Literal["sessions", "call", "publish", "keys"]]
    account: str
    source: Literal["store", "environment"]
    state: Literal["valid", "expired", "revoked"]
    created_at: str | None = None
    expires_at: str | None = None
    revoked_at: str | None = None
    used_at: str | None = None
    key: str


class NewFunctionAnswer(Model):
    """A function that was created.

    Attributes:
        assigns: Inputs that have to be variables, since a step assigns to them.
        dtype: Of numbers without a dtype that meet no tensor; null: the session's.
        bytes: Of its constants.
        size: Steps, with those of the functions that it calls.
        values: Of a text: values of inputs, from lines such as `x = 2`; the function does not keep them.
    """

    id: str | int
    kind: Literal["function"]
    inputs: list[str]
    outputs: list[str]
    assigns: list[str]
    dtype: Literal["float16", "bfloat16", "float32", "float64"] | None
    bytes: int
    size: int
    steps: list[dict[str, Any]]
    values: dict[str, Array] | None = None

    _readers: ClassVar[Mapping[str, Reader]] = {"steps": list_of(anything), "values": map_of(array)}


class NodeInput(Model):
    """An input of an op on a tape.

    Attributes:
        name: The op's name for it.
        node: The node that made it; null: a number, or nothing on the tape.
        dtype: Null: a number without a dtype of its own.
    """

    name: str
    node: str | None
    dtype: str | None
    shape: list[int]


class Node(Model):
    """One op or watched value of a tape, with the histogram of its value.

    Attributes:
        node: The id of a node of this graph.
        names: The ids of its value in the session.
        bytes: Of its value.
        where: Your source line of it.
        value: Of its value; null: no id names the value any more, and no gradient needs it.
    """

    node: str
    kind: Literal["op", "variable", "tensor"]
    op: str | None
    names: list[str | int]
    dtype: str
    shape: list[int]
    bytes: int
    where: str | None
    inputs: list[NodeInput]
    value: Histogram | None

    _readers: ClassVar[Mapping[str, Reader]] = {"inputs": list_of(NodeInput.read), "value": Histogram.read}


class NodeDerivative(Model):
    """The gradient of a node by one source, as a histogram.

    Attributes:
        source: The id of a node of this graph.
        name: The source's id in the session.
        value: Null: there is no gradient.
        why: Why there is none.
    """

    source: str
    name: str | None
    kind: Literal["none", "dense", "slices"]
    dtype: str
    shape: list[int]
    value: Histogram | None
    why: Why | None

    _readers: ClassVar[Mapping[str, Reader]] = {"value": Histogram.read, "why": Why.read}


class NodeExplanation(Model):
    """Why the gradient of a node is what it is for one source.

    Attributes:
        source: The id of a node of this graph.
        outcome: What the tape returns; error: the question is refused.
        message: The reason.
        advice: What to do; empty if there is nothing to do.
        op: The op that causes it, if an op does.
        where: Your source line of that op.
        node: That op's position on the tape.
        path: From the target back to the source; only both ends of a long path.
        length: Steps of the whole path.
        certain: False: the most likely reason, not a proven one.
        name: The source's id in the session.
    """

    source: str
    code: Reason
    outcome: Outcome
    message: str
    advice: str
    op: str | None
    where: str | None
    node: int | None
    path: list[ExplanationStep]
    length: int
    certain: bool
    notes: list[str]
    name: str | None

    _readers: ClassVar[Mapping[str, Reader]] = {"path": list_of(ExplanationStep.read)}


class NodeExplanations(Model):
    """Why the gradient of a node is what it is, by source.

    Attributes:
        node: The id of a node of this graph.
    """

    node: str
    explanations: list[NodeExplanation]

    _readers: ClassVar[Mapping[str, Reader]] = {"explanations": list_of(NodeExplanation.read)}


class NodeGradient(Model):
    """The gradient of the sum of a node's elements, by source; the tape stays as it is.

    Attributes:
        node: The id of a node of this graph.
    """

    node: str
    derivatives: list[NodeDerivative]

    _readers: ClassVar[Mapping[str, Reader]] = {"derivatives": list_of(NodeDerivative.read)}


class Op(Model):
    """An op of the catalogue.

    Attributes:
        op_type: TensorFlow's op type.
        tensorflow: TensorFlow's names for it.
        results: Names of its results, in the order of a call's `outputs`.
        variadic: Whether it takes any number of tensors.
        attributes: JSON Schema.
        gradients: By input: `kind` (dense, slices, none, not_registered), and what a tape `keeps` for it.
        composite: Whether a tape records other ops in its place.
        dynamic: Whether the result's shape depends on values.
        backends: Where it runs: cpu, gpu.
        on_gpu: What the host does for it on a GPU, or why a GPU does not have it; empty: nothing.
    """

    name: str
    op_type: str
    tensorflow: list[str]
    inputs: list[str]
    results: list[str]
    variadic: bool
    attributes: dict[str, Any]
    gradients: dict[str, dict[str, Any]]
    composite: bool
    dynamic: bool
    backends: list[str]
    on_gpu: str
    documentation: str

    _readers: ClassVar[Mapping[str, Reader]] = {"attributes": anything, "gradients": map_of(anything)}


class OpList(Model):
    """Ops of the catalogue, by name.

    Attributes:
        next: `after` of the next page; null: this is the last.
    """

    ops: list[Op]
    next: str | None = None

    _readers: ClassVar[Mapping[str, Reader]] = {"ops": list_of(Op.read)}


class Output(Model):
    """The id, dtype and shape of a result."""

    id: str | int
    dtype: str
    shape: list[int]


class OpResults(ByName):
    """The results of ops or of a function.

    Attributes:
        outputs: The results that stay.
        values: The tensors of `fetch`, by id.
    """

    outputs: list[Output]
    values: dict[str, Array]
    bytes_in_use: int

    _readers: ClassVar[Mapping[str, Reader]] = {"outputs": list_of(Output.read), "values": map_of(tensor)}


class PriceProblem(Model):
    """The problem that the commands would be refused with."""

    status: int
    title: str
    code: str
    detail: str
    details: dict[str, Any]

    _readers: ClassVar[Mapping[str, Reader]] = {"details": anything}


class Wait(Model):
    """Why a request waits, and who holds what it waits for.

    Attributes:
        position: Requests ahead of it; 0: it runs, or waits for no other request.
        ahead: The first ten of these.
        starts_in_seconds: Estimated; 0: it runs; null: not known.
        reason: One sentence, for people.
        keys: The ten keys that have most of the server now.
        longest_idle: Null: no session is idle.
    """

    position: int
    ahead: list[AheadOf]
    starts_in_seconds: float | None
    reason: str
    keys: list[KeyShare]
    longest_idle: LongestIdle | None

    _readers: ClassVar[Mapping[str, Reader]] = {
        "ahead": list_of(AheadOf.read),
        "keys": list_of(KeyShare.read),
        "longest_idle": LongestIdle.read,
    }


class PricedResult(Model):
    """A result that a command would have.

    Attributes:
        command: The command's position, from 0; null: one of `tensors`.
        kind: Slices: a sparse gradient.
        rows: Of a sparse gradient, else null.
        exact: False: the shape depends on values, and this is the largest.
    """

    command: int | None
    id: str | int
    kind: Literal["tensor", "variable", "slices"]
    dtype: str
    shape: list[int]
    rows: int | None
    exact: bool


class PriceAnswer(Model):
    """The verdict on commands, and their cost.

    Nothing has run.

    Attributes:
        verdict: Fits: they would run now; waits: `wait` says for whom and how long; refused: `problem` says
            why; unknown: that depends on values, see `depends`.
        reason: One sentence, for people.
        problem: If they would be refused, or perhaps.
        wait: Of waits: who is ahead, and what the keys have.
        cost: Null: the session computes, and is looked at after that.
        results: In the order of the commands.
        depends: What depends on values that are not known.
    """

    verdict: Literal["fits", "waits", "refused", "unknown"]
    reason: str
    problem: PriceProblem | None = None
    wait: Wait | None = None
    cost: Cost | None = None
    results: list[PricedResult] | None = None
    depends: list[Dependence] | None = None

    _readers: ClassVar[Mapping[str, Reader]] = {
        "problem": PriceProblem.read,
        "wait": Wait.read,
        "cost": Cost.read,
        "results": list_of(PricedResult.read),
        "depends": list_of(Dependence.read),
    }


class Problem(Model):
    """A refusal or failure (RFC 9457).

    Attributes:
        detail: What was wrong, and what to do.
        code: For programs; docs/protocol.md lists the codes.
        instance: The id of the request.
    """

    type: str
    title: str
    status: int
    detail: str
    code: str
    details: dict[str, Any]
    instance: str

    _readers: ClassVar[Mapping[str, Reader]] = {"details": anything}


class Progress(Model):
    """The progress of a running request.

    After status 202, GET at the address in Location goes on waiting.

    Attributes:
        done: Commands done.
        total: Commands in all; 0: not known yet.
        iteration: Iterations done by the loop that runs now; of training: steps.
        iterations: Iterations of that loop in all; 0: not known.
        loss: Of training: that of the last step of which it is known.
        has_ended: Whether the request has run, and its answer waits for what the session runs now. Default:
            false.
        wait: Why it waits, or what it shares while it runs.
    """

    status: Literal["running"]
    done: int
    total: int
    iteration: int
    iterations: int
    loss: float | None = None
    has_ended: bool | None = None
    wait: Wait | None = None

    _readers: ClassVar[Mapping[str, Reader]] = {"loss": number, "wait": Wait.read}


class PublishedCheckReport(Model):
    """How automatic derivatives compare with finite differences.

    Attributes:
        dtype: Of the computation: float64 if possible.
        checked: Elements compared.
        entries: Elements in all.
        worst: The element with the largest error.
        batch: How it was computed.
    """

    agrees: bool
    dtype: str
    checked: int
    entries: int
    seed: int
    message: str
    worst: CheckedEntry | None
    batch: BatchFacts

    _readers: ClassVar[Mapping[str, Reader]] = {"worst": CheckedEntry.read, "batch": BatchFacts.read}


class PublishedVersion(Model):
    """A version of a published function.

    Attributes:
        version: A hash of function, inputs and weights: it names the same for ever.
        created_at: RFC 3339.
        check: How its gradients at the first example compare with finite differences; null: no example.
        batched: Whether calls of several callers may be computed together.
        why_not_batched: Empty if they may.
    """

    version: str
    inputs: list[DeclaredTensor]
    outputs: list[DeclaredTensor]
    weights: list[DeclaredTensor]
    weights_bytes: int
    created_at: str
    aliases: list[str]
    examples: list[CheckedExample]
    check: CheckReport | None
    batched: bool
    why_not_batched: str

    _readers: ClassVar[Mapping[str, Reader]] = {
        "inputs": list_of(DeclaredTensor.read),
        "outputs": list_of(DeclaredTensor.read),
        "weights": list_of(DeclaredTensor.read),
        "examples": list_of(CheckedExample.read),
        "check": CheckReport.read,
    }


class PublishedFunction(Model):
    """A published function.

    Attributes:
        owner: The name of the API key that may change it.
        visibility: Who may see and call it: your key, also those in `group`, or every key.
        group: Names of API keys.
        description: For people.
        aliases: Versions by alias; `latest` is the newest.
        durable: Whether it outlives the server.
        damage: What of it could not be read from the disk; empty: nothing.
        version: The one that the request names; default: latest.
    """

    name: str
    owner: str
    visibility: Literal["me", "group", "everybody"]
    group: list[str]
    description: str
    aliases: dict[str, str]
    durable: bool
    damage: str
    version: PublishedVersion | None

    _readers: ClassVar[Mapping[str, Reader]] = {"version": PublishedVersion.read}


class PublishedFunctionDerivatives(BySource):
    """A function's derivatives, in the order of the sources.

    Attributes:
        values: The outputs in `fetch`, by name.
        per_example: Of a question with `per_example`.
        accumulator: Of a question with `accumulate`.
        numeric: Of a question with `numeric`.
        map: Of a map; other answers have no such member.
        batch: How it was computed.
    """

    values: dict[str, Array]
    bytes_in_use: int
    derivatives: list[FunctionDerivative]
    per_example: ExampleNorms | None = None
    accumulator: Accumulated | None = None
    numeric: NumericFacts | None = None
    map: MapFacts | None = None
    batch: BatchFacts

    _readers: ClassVar[Mapping[str, Reader]] = {
        "values": map_of(tensor),
        "derivatives": list_of(FunctionDerivative.read),
        "per_example": ExampleNorms.read,
        "accumulator": Accumulated.read,
        "numeric": NumericFacts.read,
        "map": MapFacts.read,
        "batch": BatchFacts.read,
    }


class PublishedFunctionHessian(ByPair):
    """A function's Hessian: for each source a list with a block for each source.

    Attributes:
        values: The outputs in `fetch`, by name.
        map: Of a map; other answers have no such member.
        batch: How it was computed.
    """

    values: dict[str, Array]
    bytes_in_use: int
    derivatives: list[list[HessianBlock]]
    map: MapFacts | None = None
    batch: BatchFacts

    _readers: ClassVar[Mapping[str, Reader]] = {
        "values": map_of(tensor),
        "derivatives": list_of(list_of(HessianBlock.read)),
        "map": MapFacts.read,
        "batch": BatchFacts.read,
    }


class PublishedFunctionTangents(BySource):
    """A function's derivatives along the tangents, in the order of the targets.

    Attributes:
        values: The outputs in `fetch`, by name.
        map: Of a map; other answers have no such member.
        batch: How it was computed.
    """

    values: dict[str, Array]
    bytes_in_use: int
    derivatives: list[Tangent]
    map: MapFacts | None = None
    batch: BatchFacts

    _readers: ClassVar[Mapping[str, Reader]] = {
        "values": map_of(tensor),
        "derivatives": list_of(Tangent.read),
        "map": MapFacts.read,
        "batch": BatchFacts.read,
    }


class PublishedList(Model):
    """The published functions that you may call, by name.

    Attributes:
        next: `after` of the next page; null: this is the last. The header Link has its URL.
    """

    next: str | None = None
    published: list[PublishedFunction]

    _readers: ClassVar[Mapping[str, Reader]] = {"published": list_of(PublishedFunction.read)}


class PublishedOpResults(ByName):
    """The results of ops or of a function.

    Attributes:
        outputs: The results that stay.
        values: The tensors of `fetch`, by id.
        batch: How it was computed.
    """

    outputs: list[Output]
    values: dict[str, Array]
    bytes_in_use: int
    batch: BatchFacts

    _readers: ClassVar[Mapping[str, Reader]] = {
        "outputs": list_of(Output.read),
        "values": map_of(tensor),
        "batch": BatchFacts.read,
    }


class PublishedReady(Model):
    """A published function can be called, and a process has it loaded.

    Attributes:
        processes: That compute published functions.
    """

    status: Literal["ready"]
    version: str
    processes: int


class PublishedVersions(Model):
    """The versions of a published function, the oldest first."""

    versions: list[PublishedVersion]

    _readers: ClassVar[Mapping[str, Reader]] = {"versions": list_of(PublishedVersion.read)}


class QuestionResult(Model):
    """The answer to one of several questions; for a Hessian a list of lists."""

    derivatives: list[Derivative] | list[list[HessianBlock]]

    _readers: ClassVar[Mapping[str, Reader]] = {"derivatives": rows_or(Derivative.read, HessianBlock.read)}


class QuestionResults(Model):
    """The results, in the order of the questions."""

    results: list[QuestionResult]
    bytes_in_use: int

    _readers: ClassVar[Mapping[str, Reader]] = {"results": list_of(QuestionResult.read)}


class Ready(Model):
    """The server takes new requests."""

    status: Literal["ready"]


class Recovered(Model):
    """The part of a session that its process has brought back from files.

    Attributes:
        record: The number of the last record of the log.
        cut_bytes: Bytes after it of a write that was never finished, nor answered.
        seconds: That it took.
    """

    record: int
    cut_bytes: int
    seconds: float


class RunAnswer(ByName):
    """The values of the ids in `fetch`, and the answers of questions.

    Attributes:
        values: By id; null: a derivative that does not exist, see `why`.
        why: By id: the reason of each null; without nulls there is no such member.
        results: The answers of commands that ask (explain, tape.graph, tape.describe, check_gradients,
            describe, …), by the command's position from 0; `specs` of outputs whose shape depends on values.
    """

    values: dict[str, Value | None]
    why: dict[str, Why] | None = None
    results: dict[str, dict[str, Any]] | None = None

    _readers: ClassVar[Mapping[str, Reader]] = {
        "values": map_of(tensor),
        "why": map_of(Why.read),
        "results": map_of(anything),
    }


class Work(Model):
    """The requests that a session has not answered yet, and the progress of the one that runs.

    Attributes:
        requests: Requests received and not answered yet.
        done: Commands done by the running request.
        total: Commands of the running request; 0: not known yet.
        iteration: Iterations done by the loop that runs now.
        iterations: Iterations of that loop in all; 0: not known.
        wait: Of one session: why its newest request waits.
    """

    requests: int
    done: int
    total: int
    iteration: int
    iterations: int
    wait: Place | None = None

    _readers: ClassVar[Mapping[str, Reader]] = {"wait": Place.read}


class Session(Model):
    """A live session.

    Attributes:
        owner: The name of the API key that created it; local without keys.
        memory_limit: Bytes that its arrays and other objects may take.
        dtype: Of numbers that are sent without a dtype and meet no tensor.
        bytes_in_use: As of the last answer: bytes of arrays, and of other objects beyond the first MiB of them.
        created_at: RFC 3339.
        expires_at: RFC 3339: when it ends if no further request comes, or, if it outlives its process, is
            parked.
        ends_at: RFC 3339: when it ends in any case; in the year 9999: never, since it outlives its process.
        state: Parked: it has no process, and the next request starts one.
        why: Why it recovers, is damaged, has diverged, or takes no changes.
        durability: What outlives its process.
        log_to_run: Whether it has no process, and a log: this version of the server alone can run that, and
            does so with the next request, when it is parked, or after the start in the background.
        disk_bytes: Bytes of its files; in events as of the last second.
        disk_limit: Bytes that they may take; with those of the key's other sessions, disk_per_key.
        recovered: What its process has brought back; null: it is the first one.
    """

    id: str
    owner: str
    device: str
    memory_limit: int
    dtype: str
    bytes_in_use: int
    created_at: str
    expires_at: str
    ends_at: str
    state: Literal["starting", "live", "parking", "parked", "waking", "recovering", "damaged", "diverged", "ended"]
    why: str | None
    durability: Literal["none", "journal", "journal-sync"]
    log_to_run: bool
    disk_bytes: int
    disk_limit: int
    recovered: Recovered | None
    running: Work
    answered: Answered

    _readers: ClassVar[Mapping[str, Reader]] = {
        "recovered": Recovered.read,
        "running": Work.read,
        "answered": Answered.read,
    }


class SessionList(Model):
    """Your live sessions, oldest first; for an admin those of all keys.

    Attributes:
        owner: The name of your API key; local without keys.
        next: `after` of the next page; null: this is the last.
    """

    sessions: list[Session]
    owner: str
    next: str | None = None

    _readers: ClassVar[Mapping[str, Reader]] = {"sessions": list_of(Session.read)}


class SessionRunAnswer(ByName):
    """The values of the ids in `fetch`, and the answers of questions.

    Attributes:
        values: By id; null: a derivative that does not exist, see `why`.
        why: By id: the reason of each null; without nulls there is no such member.
        results: The answers of commands that ask (explain, tape.graph, tape.describe, check_gradients,
            describe, …), by the command's position from 0; `specs` of outputs whose shape depends on values.
    """

    values: dict[str, Value | None]
    why: dict[str, Why] | None = None
    results: dict[str, dict[str, Any]] | None = None
    bytes_in_use: int

    _readers: ClassVar[Mapping[str, Reader]] = {
        "values": map_of(tensor),
        "why": map_of(Why.read),
        "results": map_of(anything),
    }


class SparseAnswer(Model):
    """The sparse derivative."""

    derivative: SparseDerivative
    bytes_in_use: int

    _readers: ClassVar[Mapping[str, Reader]] = {"derivative": SparseDerivative.read}


class Tape(Model):
    """A tape.

    Attributes:
        recording: Whether a client records on it now; between REST requests a tape is paused.
        consumed: Whether it is not persistent and has answered.
        ops: Ops that it has recorded.
        bytes: Bytes that it keeps for gradients.
        frees: Bytes of those that its deletion would free.
    """

    id: str | int
    kind: Literal["tape"]
    persistent: bool
    watch_accessed: bool
    parents: list[str | int]
    recording: bool
    consumed: bool
    ops: int
    watched_variables: list[str]
    bytes: int | None = None
    frees: int | None = None


class TapeList(Model):
    """The session's tapes, oldest first.

    Attributes:
        next: `after` of the next page; null: this is the last. The header Link has its URL.
    """

    next: str | None = None
    tapes: list[Tape]

    _readers: ClassVar[Mapping[str, Reader]] = {"tapes": list_of(Tape.read)}


class Tensor(Model):
    """A tensor; with its value if the request was for one tensor.

    Attributes:
        kind: Slices: a sparse gradient.
        rows: Of a sparse gradient: the rows that it holds.
    """

    id: str | int
    kind: Literal["tensor", "slices"]
    dtype: str
    shape: list[int]
    bytes: int
    rows: int | None = None
    value: Value | None = None

    _readers: ClassVar[Mapping[str, Reader]] = {"value": tensor}


class TensorHistogram(Model):
    """Statistics of a tensor's elements; of a sparse gradient, those of its rows.

    Attributes:
        elements: Elements in all.
        finite: Elements that are finite numbers.
        of: What the other members are about: complex numbers count by their magnitude.
        minimum: Of the finite elements; null: there are none.
        mean: Null also if it exceeds float64.
        std: Standard deviation of the finite elements.
        edges: Of the bins, ascending, one more than `counts`. Integers of a narrow range have a bin each.
        counts: Finite elements in each bin.
    """

    elements: int
    finite: int
    zeros: int
    nan: int
    positive_infinity: int
    negative_infinity: int
    of: Literal["value", "magnitude"]
    minimum: float | None
    maximum: float | None
    mean: float | None
    std: float | None
    edges: list[float]
    counts: list[int]
    id: str | int
    dtype: str
    shape: list[int]


class TensorList(Model):
    """The session's tensors, oldest first: those you created, results of ops, gradients.

    Attributes:
        next: `after` of the next page; null: this is the last. The header Link has its URL.
    """

    next: str | None = None
    tensors: list[Tensor]

    _readers: ClassVar[Mapping[str, Reader]] = {"tensors": list_of(Tensor.read)}


class TrainingAnswer(ByName):
    """The losses of a training, and the values that `fetch` names.

    Attributes:
        loss: Of the last step, before its update.
        losses: Of all steps.
        first_not_finite: The first step, from 0, whose loss is NaN or infinite; null: there is none.
        values: The ids in `fetch`.
    """

    steps: int
    loss: Array
    losses: Array
    first_not_finite: int | None
    values: dict[str, Array]
    bytes_in_use: int

    _readers: ClassVar[Mapping[str, Reader]] = {"loss": tensor, "losses": tensor, "values": map_of(tensor)}


class Variable(Model):
    """A variable; with its value if the request was for one variable.

    Attributes:
        version: Number of assignments.
    """

    id: str | int
    kind: Literal["variable"]
    dtype: str
    shape: list[int]
    bytes: int
    trainable: bool
    version: int
    name: str
    value: Array | None = None

    _readers: ClassVar[Mapping[str, Reader]] = {"value": tensor}


class VariableList(Model):
    """The session's variables, oldest first.

    Attributes:
        next: `after` of the next page; null: this is the last. The header Link has its URL.
    """

    next: str | None = None
    variables: list[Variable]

    _readers: ClassVar[Mapping[str, Reader]] = {"variables": list_of(Variable.read)}
