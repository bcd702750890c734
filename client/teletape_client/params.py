"""The types of what requests hold: commands, steps, settings, for type checkers and editors.

Written by `make reference` from openapi/openapi.json. Long because it has every command of a batch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, Required, TypeAlias, TypedDict

if TYPE_CHECKING:
    from teletape_client.tensors.values import Id, Input, TensorInput


class Accumulate(TypedDict, total=False):
    """The accumulator that gradients are added to, and which batch they are of."""

    into: Required[str]
    batch: Required[int]
    weight: float
    gradients: bool


class AccumulatorCloseCommand(TypedDict, total=False):
    """The accumulator stops following ops; its tangents stay."""

    do: Required[Literal["accumulator.close"]]
    accumulator: Required[Id]


class AccumulatorOpenCommand(TypedDict, total=False):
    """Opens a forward accumulator, active in the current context, with a tangent for each primal."""

    do: Required[Literal["accumulator.open"]]
    id: Required[Id]
    primals: Required[Sequence[Id]]
    tangents: Required[Sequence[Input]]


class AccumulatorResumeCommand(TypedDict, total=False):
    """The accumulator follows ops again, in the current context, and has these primals in addition."""

    do: Required[Literal["accumulator.resume"]]
    accumulator: Required[Id]
    primals: Sequence[Id]
    tangents: Sequence[Input]


class AssignCommand(TypedDict, total=False):
    """Gives a variable its next version; shape and dtype stay.

    `mode` is set, add or sub. With `indices` only a part changes, and only that part travels: scatter_update, _add,
    _sub, _mul, _div, _min, _max (rows), scatter_nd_update, _add, _sub, _min, _max (positions), slice. See
    `teletape_engine.ops.assign`.
    """

    do: Required[Literal["assign"]]
    variable: Required[Id]
    value: Required[Input]
    mode: str
    indices: Input | None


class BackwardBeginCommand(TypedDict, total=False):
    """Begins a gradient as a pass that stops at every call whose gradient is the caller's function.

    It answers, as backward.resume does, the stop: the call's tag and function (or the op's type), and the kind of the
    cotangent of each result; or that the pass has ended. Fields as in gradient.
    """

    do: Required[Literal["backward.begin"]]
    id: Required[Id]
    tape: Required[Id]
    targets: Required[Sequence[Id]]
    sources: Required[Sequence[Id]]
    output_gradients: Sequence[Input | None] | None
    unconnected: str
    retain_tape: bool


class BackwardCotangentsCommand(TypedDict, total=False):
    """Names the cotangents of the results of the call at which the pass has stopped; zeros if nothing came.

    `tag`: the call at which the caller expects the pass; another is a StructureMismatchError. `op_values`: ids for the
    inputs and the result of an op whose type was declared `registered`; null: not kept.
    """

    do: Required[Literal["backward.cotangents"]]
    id: Required[Id]
    outputs: Required[Sequence[Id | None]]
    tag: Id | None
    op_values: Sequence[Id | None]


class BackwardEndCommand(TypedDict, total=False):
    """Names the gradients of a pass that has ended, one for each source; `predicted` as in gradient."""

    do: Required[Literal["backward.end"]]
    id: Required[Id]
    outputs: Required[Sequence[Id | None]]
    predicted: Sequence[str] | None


class BackwardResumeCommand(TypedDict, total=False):
    """Gives the pass the cotangents of the call's inputs, null for none; it goes on to its next stop, or to its end."""

    do: Required[Literal["backward.resume"]]
    id: Required[Id]
    cotangents: Required[Sequence[Input | None]]


class BatchJacobianCommand(TypedDict, total=False):
    """Computes each example's Jacobian: [b, *y, *x] for one target [b, *y] and one source [b, *x].

    If they are not connected, the result is zeros of the target's dtype (`unconnected` none) or the source's (zero).
    Other fields as in jacobian.
    """

    do: Required[Literal["batch_jacobian"]]
    tape: Required[Id]
    targets: Required[Sequence[Id]]
    sources: Required[Sequence[Id]]
    outputs: Required[Sequence[Id | None]]
    unconnected: str
    max_bytes: int | None
    chunk_size: int | None
    retain_tape: bool
    custom_gradients: Sequence[Id]


class BatchJacobianQuestionItem(TypedDict, total=False):
    """A batch Jacobian question among others."""

    targets: Required[Sequence[Id]]
    sources: Required[Sequence[Id]]
    max_bytes: int | None
    outputs: Sequence[str | None] | None
    replace: bool
    do: Required[Literal["batch_jacobian"]]


class CallCommand(TypedDict, total=False):
    """Runs a function on tensors and variables; active tapes record its ops like those of op commands."""

    do: Required[Literal["call"]]
    function: Required[Id]
    inputs: Required[Sequence[Input]]
    outputs: Required[Sequence[Id]]
    report_decisions: bool


class CheckGradientsCommand(TypedDict, total=False):
    """Answers how a function's derivatives at `inputs` compare with its finite differences.

    `settings`: entries, seed, step, rtol, atol.
    """

    do: Required[Literal["check_gradients"]]
    function: Required[Id]
    inputs: Required[Sequence[Input]]
    settings: Mapping[str, Any]


class CheckSettings(TypedDict, total=False):
    """How to compare derivatives with finite differences."""

    entries: int | None
    seed: int | None
    step: float | None
    rtol: float | None
    atol: float | None


class ClientAttachCommand(TypedDict, total=False):
    """Adds a client to the session, and answers its number, its first sequence number and its first free id.

    Without `client` the session chooses the number, which is odd. A caller that cannot wait for the answer names an
    even one, greater than those that were named before: a server does so for each client that joins.
    """

    do: Required[Literal["client.attach"]]
    client: int


class ClientDetachCommand(TypedDict, total=False):
    """Ends a client: the answer that is kept for it goes, its number is not used again.

    What it made stays.
    """

    do: Required[Literal["client.detach"]]
    client: Required[int]


class CondCommand(TypedDict, total=False):
    """Runs one of the `branches` on all `inputs` but the first, which chooses the branch.

    A scalar bool: true is the first branch, false the second. An integer: the branch of that number, the last if there
    is no such branch. The results of all branches have the same shapes and dtypes. `report_decisions` as in while.
    """

    do: Required[Literal["cond"]]
    branches: Required[Sequence[Id]]
    inputs: Required[Sequence[Input]]
    outputs: Required[Sequence[Id]]
    report_decisions: bool


class ConstantCommand(TypedDict, total=False):
    """Creates a tensor from the caller's numbers."""

    do: Required[Literal["constant"]]
    id: Required[Id]
    value: Required[TensorInput]


class ContextEndCommand(TypedDict, total=False):
    """Ends a context whose thread or task has ended: tapes and accumulators in it stop, its provenance log goes.

    The commands that follow belong to context 0 if it was the current one. Context 0 cannot end. A context that does
    not exist has ended already: sessions also end contexts that nothing uses, if there are very many.
    """

    do: Required[Literal["context.end"]]
    context: Required[Id]


class ContextSwitchCommand(TypedDict, total=False):
    """The commands that follow belong to this context: a thread, an asynchronous task, a request.

    They also belong to a strand: commands of which one relies on those before it, so that a failure skips the rest. In
    a batch whose `on_failure` is `strand` the others go on. Without `strand` it is that of the context.
    """

    do: Required[Literal["context.switch"]]
    context: Required[Id]
    strand: Id | None


class CustomCallCommand(TypedDict, total=False):
    """A custom call whose cotangents a function computes, so that no backward pass stops at it.

    `inputs`: what tapes follow the call by, then the call's results (`results` of them) as they were computed, then
    what else the function takes. `outputs`: the results under new ids. The function takes a cotangent of each result,
    then the results' rest; it returns a cotangent for each input of the call that `has_gradient` marks.
    """

    do: Required[Literal["custom.call"]]
    function: Required[Id]
    inputs: Required[Sequence[Input]]
    outputs: Required[Sequence[Id]]
    has_gradient: Required[Sequence[bool]]
    results: int
    label: str


class CustomCommand(TypedDict, total=False):
    """Notes on the active tapes that `outputs`, each just made by an identity, come from `inputs` by a custom call.

    Tapes that follow an input go through the call from now on. `tag` is the caller's id for the call, which backward
    passes report, `label` a name for people. The function and its gradient function stay with the caller.
    """

    do: Required[Literal["custom"]]
    inputs: Required[Sequence[Id]]
    outputs: Required[Sequence[Id]]
    tag: Required[Id]
    label: str
    where: str | None


class CustomFunctionCommand(TypedDict, total=False):
    """Creates a gradient for the custom call `tag`, for questions that do not stop.

    They name it in `custom_gradients`. The function is as in custom.call; `inputs`: what it takes after the cotangents.
    """

    do: Required[Literal["custom.function"]]
    id: Required[Id]
    tag: Required[Id]
    function: Required[Id]
    inputs: Required[Sequence[Input]]
    has_gradient: Required[Sequence[bool]]


class DeclareCommand(TypedDict, total=False):
    """Declares for the session that an op type of TensorFlow has no gradient, or a gradient function of the caller's.

    . Exactly one of the two fields is set. Gradients through ops of a `registered` type need `backward.begin`.
    """

    do: Required[Literal["declare"]]
    no_gradient: str | None
    registered: str | None


class EstimateCommand(TypedDict, total=False):
    """Answers what a derivative would take: bytes, ops, multiply-adds, about how many seconds.

    Nothing is computed. `question` is gradient, jacobian, batch_jacobian, hessian or hvp; the other fields are as in
    it. An hvp is estimated without its vectors.
    """

    do: Required[Literal["estimate"]]
    tape: Required[Id]
    targets: Required[Sequence[Id]]
    sources: Required[Sequence[Id]]
    question: str
    max_bytes: int | None
    chunk_size: int | None


class ExplainCommand(TypedDict, total=False):
    """Answers for each source why the gradient of the targets' sum is what it is; the tape is unchanged."""

    do: Required[Literal["explain"]]
    tape: Required[Id]
    targets: Required[Sequence[Id]]
    sources: Required[Sequence[Id]]


class FetchCommand(TypedDict, total=False):
    """Answers a tensor's numbers: all of them, or at most `elements` as a preview.

    `optional`: an id that names nothing is no failure, and has no result. For gradients that may be none.
    """

    do: Required[Literal["fetch"]]
    id: Required[Id]
    elements: int | None
    optional: bool


class FunctionCommand(TypedDict, total=False):
    """Creates a function: named inputs, steps on them in order, named outputs.

    A step is a command (op, assign, call, …) whose values are named inside the function; functions that it takes are
    the session's. An input may be a variable: a step that names it reads it, in order, and `assign` writes it. `dtype`
    is that of numbers without one, in the steps and in calls, that meet no tensor.
    """

    do: Required[Literal["function"]]
    id: Required[Id]
    inputs: Required[Sequence[str]]
    steps: Required[Sequence[Step]]
    outputs: Required[Sequence[str]]
    dtype: str | None


class GradientCommand(TypedDict, total=False):
    """Computes the gradients of the targets' sum; an id in `outputs` for each source (null: the result is not kept).

    `output_gradients`: a weight for each target, null for ones. `unconnected`: none or zero. `predicted`: the kinds
    (none, dense, slices) that the caller expects; a difference is a StructureMismatchError. `retain_tape`: another
    question to the tape follows, so that a tape that is not persistent is not consumed yet.
    """

    do: Required[Literal["gradient"]]
    tape: Required[Id]
    targets: Required[Sequence[Id]]
    sources: Required[Sequence[Id]]
    outputs: Required[Sequence[Id | None]]
    output_gradients: Sequence[Input | None] | None
    unconnected: str
    predicted: Sequence[str] | None
    retain_tape: bool


class GradientPart(TypedDict, total=False):
    """The part of each gradient that is answered: exactly one of the fields."""

    top: int | None
    rows: Sequence[int] | None
    dtype: Literal["bfloat16", "float16"] | None


class GradientQuestionItem(TypedDict, total=False):
    """A gradient question among others."""

    targets: Required[Sequence[Id]]
    sources: Required[Sequence[Id]]
    output_gradients: Sequence[Input | None] | None
    unconnected: Literal["none", "zero"]
    outputs: Sequence[str | None] | None
    replace: bool
    do: Literal["gradient"]


class GradientStatisticsCommand(TypedDict, total=False):
    """Answers a few numbers about each gradient of the targets' sum in place of its elements; the tape is not consumed.

    . Other fields as in gradient.
    """

    do: Required[Literal["gradient_statistics"]]
    tape: Required[Id]
    targets: Required[Sequence[Id]]
    sources: Required[Sequence[Id]]
    output_gradients: Sequence[Input | None] | None


class HessianCommand(TypedDict, total=False):
    """Computes the second derivatives of the targets' sum: a block [*source i, *source j] for each pair of sources.

    `outputs` and `predicted` list the pairs row by row: j changes fastest. With `examples` a block is [n, *x i, *x j].
    Other fields as in jacobian.
    """

    do: Required[Literal["hessian"]]
    tape: Required[Id]
    targets: Required[Sequence[Id]]
    sources: Required[Sequence[Id]]
    outputs: Required[Sequence[Id | None]]
    unconnected: str
    max_bytes: int | None
    chunk_size: int | None
    predicted: Sequence[str] | None
    retain_tape: bool
    custom_gradients: Sequence[Id]
    examples: bool


class HessianQuestionItem(TypedDict, total=False):
    """A Hessian question among others."""

    targets: Required[Sequence[Id]]
    sources: Required[Sequence[Id]]
    unconnected: Literal["none", "zero"]
    max_bytes: int | None
    outputs: Sequence[Sequence[str | None]] | None
    replace: bool
    do: Required[Literal["hessian"]]


class HvpCommand(TypedDict, total=False):
    """Computes the Hessian of the targets' sum times a vector: [*source] for each source, dense.

    `vectors`: the vector's part for each source. With `output_gradients` the sum is that of the targets times these
    weights. Other fields as in gradient and jacobian.
    """

    do: Required[Literal["hvp"]]
    tape: Required[Id]
    targets: Required[Sequence[Id]]
    sources: Required[Sequence[Id]]
    vectors: Required[Sequence[Input]]
    outputs: Required[Sequence[Id | None]]
    unconnected: str
    predicted: Sequence[str] | None
    retain_tape: bool
    custom_gradients: Sequence[Id]
    output_gradients: Sequence[Input | None] | None


class HvpQuestionItem(TypedDict, total=False):
    """A Hessian-vector question among others."""

    targets: Required[Sequence[Id]]
    sources: Required[Sequence[Id]]
    vectors: Required[Sequence[Input]]
    output_gradients: Sequence[Input | None] | None
    unconnected: Literal["none", "zero"]
    outputs: Sequence[str | None] | None
    replace: bool
    do: Required[Literal["hvp"]]


class InlineFunction(TypedDict, total=False):
    """A function for one request, without an id."""

    inputs: Required[Sequence[str]]
    steps: Required[Sequence[Step]]
    outputs: Required[Sequence[str]]


class InputDeclaration(TypedDict, total=False):
    """An input that a published function takes."""

    dtype: str
    shape: Required[Sequence[int | str]]


class JacobianCommand(TypedDict, total=False):
    """Computes the derivatives of each element of the one target: [*target, *source] for each source, dense.

    `max_bytes` bounds the memory of the cotangents in use, and `chunk_size` how many are computed at once.
    `custom_gradients`: what custom.function created for the custom calls on the path. `examples`: axis 0 of the target
    [n, *y] and of each source [n, *x] numbers examples, which do not depend on each other: [n, *y, *x]. Other fields as
    in gradient.
    """

    do: Required[Literal["jacobian"]]
    tape: Required[Id]
    targets: Required[Sequence[Id]]
    sources: Required[Sequence[Id]]
    outputs: Required[Sequence[Id | None]]
    unconnected: str
    max_bytes: int | None
    chunk_size: int | None
    predicted: Sequence[str] | None
    retain_tape: bool
    custom_gradients: Sequence[Id]
    examples: bool


class JacobianQuestionItem(TypedDict, total=False):
    """A Jacobian question among others."""

    targets: Required[Sequence[Id]]
    sources: Required[Sequence[Id]]
    unconnected: Literal["none", "zero"]
    max_bytes: int | None
    outputs: Sequence[str | None] | None
    replace: bool
    do: Required[Literal["jacobian"]]


class JvpCommand(TypedDict, total=False):
    """Names the tangents of `targets`: an id in `outputs` for each (null: the tangent is not kept).

    `unconnected` and `predicted` as in gradient.
    """

    do: Required[Literal["jvp"]]
    accumulator: Required[Id]
    targets: Required[Sequence[Id]]
    outputs: Required[Sequence[Id | None]]
    unconnected: str
    predicted: Sequence[str] | None


class LimitsBody(TypedDict, total=False):
    """The limits that an account has of its own."""

    sessions: int | None
    memory_bytes: int | None
    disk_bytes: int | None
    requests_per_second: float | None
    compute_seconds_1d: float | None
    compute_seconds_7d: float | None
    compute_seconds_30d: float | None
    gib_hours_1d: float | None
    gib_hours_7d: float | None
    gib_hours_30d: float | None


class MapCommand(TypedDict, total=False):
    """Calls a function for each entry along axis 0 of the inputs that `mapped` marks; the others go with every entry.

    . All entries run at once by the ops' batch rules, if every step has such a rule, else one by one. `outputs`: each
    result stacked along a new axis 0. To tapes it is one call. The function assigns to no input.
    """

    do: Required[Literal["map"]]
    function: Required[Id]
    inputs: Required[Sequence[Input]]
    mapped: Required[Sequence[bool]]
    outputs: Required[Sequence[Id]]


class NewFunction(TypedDict, total=False):
    """A function to create: steps on named inputs, or a text of formulas."""

    dtype: Literal["float16", "bfloat16", "float32", "float64"] | None
    id: str | None
    replace: bool
    text: str | None
    inputs: Sequence[str] | None
    steps: Sequence[Step] | None
    outputs: Sequence[str] | None


class NumericSettings(TypedDict, total=False):
    """How derivatives are computed by differences."""

    step: float | None


class OpCall(TypedDict, total=False):
    """One call of an op."""

    op: Required[str]
    inputs: Sequence[Input]
    outputs: Sequence[str] | None
    attrs: Mapping[str, Any]
    where: str | None


class OpCommand(TypedDict, total=False):
    """Runs one op.

    A variable among the inputs is read. `where` is the caller's call site, any text.
    """

    do: Required[Literal["op"]]
    op: Required[str]
    inputs: Required[Sequence[Input]]
    outputs: Required[Sequence[Id]]
    attrs: Mapping[str, Any]
    where: str | None


class OpStep(TypedDict, total=False):
    """An op as a step of a function; `do` is op by default."""

    do: Literal["op"]
    op: Required[str]
    inputs: Sequence[Input]
    outputs: Sequence[Id]
    attrs: Mapping[str, Any]
    where: str | None


class OptimizerSettings(TypedDict, total=False):
    """How gradients change variables: formulas and defaults are those of Keras 3.

    A setting is refused elsewhere.
    """

    name: Required[Literal["sgd", "adam", "adamw", "adamax", "rmsprop", "adagrad", "adadelta", "lion"]]
    learning_rate: float | None
    momentum: float | None
    nesterov: bool | None
    beta_1: float | None
    beta_2: float | None
    rho: float | None
    epsilon: float | None
    amsgrad: bool | None
    centered: bool | None
    initial_accumulator_value: float | None
    weight_decay: float | None
    clipnorm: float | None
    clipvalue: float | None
    global_clipnorm: float | None
    state: str | None


PerExample = TypedDict(
    "PerExample",
    {"axis": "int | None", "clip": "float | None", "return": "Literal['sum', 'norms', 'statistics']"},
    total=False,
)
"""How the gradients of examples are clipped and summed."""


class ProfileCommand(TypedDict, total=False):
    """Answers how many seconds each later command of the batch has taken, and each step of the functions that they run.

    . `seconds` are those of the commands, `in_steps` how many of these were spent in steps of functions. Each of
    `steps` has the id of its `function` (null: it has none), its number in it (`step`), its `op` or command, its
    `calls`, and the `seconds` that were its own and not those of a function that it calls. Such a batch runs step by
    step, never as a plan.
    """

    do: Required[Literal["profile"]]


class PublishedExample(TypedDict, total=False):
    """Inputs, and the outputs that they have to give."""

    inputs: Required[Mapping[str, TensorInput]]
    outputs: Mapping[str, TensorInput] | None
    rtol: float


class ScanCommand(TypedDict, total=False):
    """Runs `body` once for each element along axis 0, from the first to the last, or in `reverse`.

    `inputs`: the `carried` values, arrays of elements, then `captured` others. The body takes the carried values, an
    element of each array, and the others; it returns the next carried values, and any number of results. `outputs`: the
    carried values after the loop, and each result stacked along a new axis 0. `length`: the number of iterations if
    there are no arrays. `vectorize`: computes all elements at once by the ops' batch rules, if nothing is carried and
    every step has such a rule. `report_decisions` as in while.
    """

    do: Required[Literal["scan"]]
    body: Required[Id]
    inputs: Required[Sequence[Input]]
    outputs: Required[Sequence[Id]]
    carried: int
    captured: int
    reverse: bool
    length: int | None
    report_decisions: bool
    vectorize: bool


class SlicesCommand(TypedDict, total=False):
    """Creates a sparse gradient: row `values[k]` belongs to row `indices[k]` of a tensor of `rows` rows."""

    do: Required[Literal["slices"]]
    id: Required[Id]
    values: Required[Id]
    indices: Required[Id]
    rows: Required[int]


class SlicesComponentCommand(TypedDict, total=False):
    """Creates a tensor from one array of a sparse gradient: `component` is values or indices."""

    do: Required[Literal["slices.component"]]
    id: Required[Id]
    component: Required[str]
    output: Required[Id]


class SparseHessianCommand(TypedDict, total=False):
    """Computes the second derivatives of the targets' sum by the one source where they may differ from zero.

    A sparse matrix of source-size rows and columns; answer and fields as in sparse_jacobian.
    """

    do: Required[Literal["sparse_hessian"]]
    tape: Required[Id]
    targets: Required[Sequence[Id]]
    sources: Required[Sequence[Id]]
    outputs: Required[Sequence[Id | None]]
    format: str
    unconnected: str
    max_bytes: int | None
    chunk_size: int | None
    retain_tape: bool
    custom_gradients: Sequence[Id]


class SparseJacobianCommand(TypedDict, total=False):
    """Computes the Jacobian of the one target by the one source where it may differ from zero, as a sparse matrix.

    It has target-size rows and source-size columns. `outputs` has three ids (null: not kept): with `format` coo for the
    rows [n], the columns [n] and the values [n] of the entries, row by row; with csr for where each row begins [rows +
    1], the columns and the values. The answer has `kind` (none or sparse), `format`, `shape`, `entries` (n),
    `index_dtype`, and `vector_products`: how many products with vectors it took. No tape records how. Other fields as
    in jacobian.
    """

    do: Required[Literal["sparse_jacobian"]]
    tape: Required[Id]
    targets: Required[Sequence[Id]]
    sources: Required[Sequence[Id]]
    outputs: Required[Sequence[Id | None]]
    format: str
    unconnected: str
    max_bytes: int | None
    chunk_size: int | None
    retain_tape: bool
    custom_gradients: Sequence[Id]


class TapeCheckGradientsCommand(TypedDict, total=False):
    """Answers how a replayable tape's gradients compare with finite differences of its calls; the tape is unchanged.

    `settings`: entries, seed, step, rtol, atol.
    """

    do: Required[Literal["tape.check_gradients"]]
    tape: Required[Id]
    targets: Required[Sequence[Id]]
    sources: Required[Sequence[Id]]
    settings: Mapping[str, Any]


class TapeDescribeCommand(TypedDict, total=False):
    """Answers facts about the tape, the bytes that it keeps, and the bytes that its release would free.

    `also_released`: integer ids, as a tensor, that would be released with the tape.
    """

    do: Required[Literal["tape.describe"]]
    tape: Required[Id]
    also_released: TensorInput | None


class TapeGraphCommand(TypedDict, total=False):
    """Answers the tape as a diagram of at most `nodes` nodes (null.

    2000): what it watched, its calls, what they keep. With `targets` and `sources` it marks the path of the gradient,
    and the cut that makes the gradient none.
    """

    do: Required[Literal["tape.graph"]]
    tape: Required[Id]
    targets: Sequence[Id]
    sources: Sequence[Id]
    nodes: int | None


class TapeOpenCommand(TypedDict, total=False):
    """Opens a tape, which records in the current context.

    A `replayable` tape keeps every input of what it records, so that tape.check_gradients can run it again. `parents`
    are the tapes that are to record what this tape answers; the session only remembers them.
    """

    do: Required[Literal["tape.open"]]
    id: Required[Id]
    persistent: bool
    watch_accessed: bool
    replayable: bool
    parents: Sequence[Id]


class TapeOwnCommand(TypedDict, total=False):
    """Notes tensors as outputs of the tape, which a reset can release; ids that name no tensor are skipped."""

    do: Required[Literal["tape.own"]]
    tape: Required[Id]
    tensors: Required[Sequence[Id]]


class TapePauseCommand(TypedDict, total=False):
    """The tape stops recording; what it has recorded stays."""

    do: Required[Literal["tape.pause"]]
    tape: Required[Id]


class TapeResetCommand(TypedDict, total=False):
    """The active tape forgets everything and goes on recording.

    With `release_outputs` the tensors that are outputs of the tape (`tape.own`) end too, and their ids are free again.
    """

    do: Required[Literal["tape.reset"]]
    tape: Required[Id]
    release_outputs: bool


class TapeResumeCommand(TypedDict, total=False):
    """The tape records again, in the current context."""

    do: Required[Literal["tape.resume"]]
    tape: Required[Id]


class TapeWatchCommand(TypedDict, total=False):
    """The tape watches these tensors and variables from now on."""

    do: Required[Literal["tape.watch"]]
    tape: Required[Id]
    tensors: Required[Sequence[Id]]


class TensorSpec(TypedDict, total=False):
    """The dtype and shape of a tensor, without its elements."""

    dtype: Required[str]
    shape: Required[Sequence[int]]


class ValueAndGradientCommand(TypedDict, total=False):
    """Runs a function, and computes the gradients of its targets' sum with respect to its sources.

    `targets` are names of the function's outputs, by default all; `sources` names of its inputs, by default those of
    floats, or all if there are none (a step names them). `outputs`: the function's results, then a dense gradient for
    each source. `unconnected`: zero, or none, which refuses a source without a gradient.
    """

    do: Required[Literal["value_and_gradient"]]
    function: Required[Id]
    inputs: Required[Sequence[Input]]
    targets: Sequence[str] | None
    sources: Sequence[str] | None
    outputs: Sequence[Id]
    unconnected: str


class VariableCommand(TypedDict, total=False):
    """Creates a variable with an initial value.

    `name` is a label for people.
    """

    do: Required[Literal["variable"]]
    id: Required[Id]
    value: Required[Input]
    trainable: bool
    name: str | None


class VjpsCommand(TypedDict, total=False):
    """Computes the gradients for k weights of the targets at once: [k, *source] for each source, dense.

    `output_gradients`: for each target a stack [k, *target], null for ones. Other fields as in jacobian.
    """

    do: Required[Literal["vjps"]]
    tape: Required[Id]
    targets: Required[Sequence[Id]]
    sources: Required[Sequence[Id]]
    outputs: Required[Sequence[Id | None]]
    output_gradients: Required[Sequence[Input | None]]
    unconnected: str
    max_bytes: int | None
    chunk_size: int | None
    predicted: Sequence[str] | None
    retain_tape: bool
    custom_gradients: Sequence[Id]


class VjpsQuestionItem(TypedDict, total=False):
    """A question for gradients with many output gradients, among others."""

    targets: Required[Sequence[Id]]
    sources: Required[Sequence[Id]]
    output_gradients: Required[Sequence[Input | None]]
    unconnected: Literal["none", "zero"]
    max_bytes: int | None
    outputs: Sequence[str | None] | None
    replace: bool
    do: Required[Literal["vjps"]]


class WhileCommand(TypedDict, total=False):
    """Runs `body` on the loop's values as long as `cond` of them is true, at most `maximum_iterations` times.

    `inputs`: the values, then `captured` others that every iteration takes. Both functions take all of them; `cond`
    returns a scalar bool or integer, `body` the next values, of the same shapes and dtypes. `outputs`: the values after
    the loop; one more id, if there is one, for the number of iterations. `report_decisions`: answer the number of
    iterations of this and of inner loops, and the branches taken.
    """

    do: Required[Literal["while"]]
    cond: Required[Id]
    body: Required[Id]
    inputs: Required[Sequence[Input]]
    outputs: Required[Sequence[Id]]
    captured: int
    maximum_iterations: int | None
    report_decisions: bool


#: One command; `do` names it.
Command: TypeAlias = (
    ConstantCommand
    | VariableCommand
    | AssignCommand
    | OpCommand
    | SlicesComponentCommand
    | SlicesCommand
    | FetchCommand
    | TapeOpenCommand
    | TapeWatchCommand
    | TapePauseCommand
    | TapeResumeCommand
    | TapeResetCommand
    | TapeOwnCommand
    | TapeDescribeCommand
    | TapeGraphCommand
    | TapeCheckGradientsCommand
    | AccumulatorOpenCommand
    | AccumulatorCloseCommand
    | AccumulatorResumeCommand
    | ClientAttachCommand
    | ClientDetachCommand
    | ContextSwitchCommand
    | ContextEndCommand
    | DeclareCommand
    | ProfileCommand
    | GradientCommand
    | JacobianCommand
    | BatchJacobianCommand
    | VjpsCommand
    | HessianCommand
    | HvpCommand
    | SparseJacobianCommand
    | SparseHessianCommand
    | JvpCommand
    | ExplainCommand
    | GradientStatisticsCommand
    | EstimateCommand
    | FunctionCommand
    | CallCommand
    | ValueAndGradientCommand
    | CustomCallCommand
    | WhileCommand
    | CondCommand
    | ScanCommand
    | MapCommand
    | CheckGradientsCommand
    | CustomCommand
    | CustomFunctionCommand
    | BackwardBeginCommand
    | BackwardCotangentsCommand
    | BackwardResumeCommand
    | BackwardEndCommand
)

#: A step of a function: a command whose ids are names inside the function.
Step: TypeAlias = (
    OpStep
    | AssignCommand
    | CallCommand
    | ValueAndGradientCommand
    | CustomCallCommand
    | WhileCommand
    | CondCommand
    | ScanCommand
    | MapCommand
)
