"""What each field of a command means, in one sentence: the tables of docs/protocol.md and the OpenAPI document use it.

A key is a field's name, or `command.field` if the field means something else in this command.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

MEANINGS: Final[Mapping[str, str]] = {
    # ids
    "id": "The id that the command creates",
    "tape": "The tape's id",
    "accumulator": "The accumulator's id",
    "function": "The function's id",
    "targets": "Tensors to differentiate; several count as their sum",
    "sources": "Tensors and variables to differentiate by",
    "outputs": "An id for each result, in order; null: the result is not kept",
    "where": "The caller's source line, returned in errors and explanations; any text",
    "label": "A name for people, shown in graphs and explanations",
    "tag": "The custom call's id for backward passes, chosen by the caller",
    # values and variables
    "constant.value": "The tensor",
    "variable.value": "The initial value",
    "variable.trainable": "Whether tapes watch the variable when it is read",
    "variable.name": "A name for people",
    "assign.variable": "The variable's id",
    "assign.value": "The new value, or what is added, subtracted, …",
    "assign.mode": (
        "`set`, `add` or `sub`; with `indices` also `slice`, `scatter_update`, `scatter_add`, …, `scatter_nd_update`, …"
    ),
    "assign.indices": "Which part changes; null: all of it",
    "op.op": "The op's name in the catalogue (`GET /v1/ops`)",
    "op.inputs": "Ids, numbers or tensors, in the op's order; a variable is read",
    "op.outputs": "An id for each result, in order",
    "op.attrs": "The op's attributes by name",
    "fetch.id": "The tensor or variable to read",
    "fetch.elements": "At most this number of elements, flat; null: all, in shape",
    "fetch.optional": "Whether an id that names nothing has no result; else it is a failure",
    "slices.values": "The rows [n, *shape[1:]]",
    "slices.indices": "The index of each row [n]",
    "slices.rows": "The number of rows of the dense tensor",
    "slices.component.id": "The sparse gradient's id",
    "slices.component.component": "`values` or `indices`",
    "slices.component.output": "The id that it gets",
    # tapes
    "tape.open.persistent": "Whether the tape can be differentiated more than once",
    "tape.open.watch_accessed": "Whether trainable variables are watched when they are read",
    "tape.open.replayable": "Whether the tape keeps all inputs of its ops, for `tape.check_gradients`",
    "tape.open.parents": "Tapes that are to record what this tape answers; the session remembers them",
    "tape.watch.tensors": "Tensors and variables to watch from now on",
    "tape.describe.also_released": "A tensor of integer ids that would be released together with the tape",
    "tape.graph.targets": "Mark the path from these targets; empty: no path",
    "tape.graph.sources": "… to these sources",
    "tape.graph.nodes": "Fold the graph to at most this number of nodes; null: 2000",
    "settings": "`entries`, `seed`, `step`, `rtol`, `atol`",
    "context.switch.context": "The context of the commands that follow: any id of the caller's",
    "context.end.context": "The context's id",
    "client": "The client's number, as client.attach answered it",
    "no_gradient": "A TensorFlow op type whose ops have no gradient from now on",
    "registered": "A TensorFlow op type whose gradient the caller computes, in a pass that stops",
    "primals": "Tensors and variables",
    "tangents": "A tangent for each primal, with its shape and dtype",
    # derivatives
    "output_gradients": "A weight for each target, with its shape; null: ones",
    "vjps.output_gradients": "For each target a stack of weights [k, *target]; null: ones",
    "vectors": "The vector's part for each source, with its shape",
    "unconnected": "What an unconnected source gets: `none` (no gradient) or `zero` (zeros)",
    "predicted": "The kinds that the caller expects; a difference is a `structure_mismatch`. null: no prediction",
    "retain_tape": "Keep a tape that is not persistent usable for another question",
    "max_bytes": "A bound on the memory of the cotangents in use; null: 64 MiB",
    "chunk_size": "At most this number of rows at once; null: as many as fit",
    "custom_gradients": "Ids of `custom.function`s, for the custom calls on the way",
    "jacobian.targets": "One tensor",
    "batch_jacobian.targets": "One tensor [b, *y]",
    "batch_jacobian.sources": "One tensor or variable [b, *x]",
    "batch_jacobian.unconnected": "Dtype of the zeros if not connected: the target's (`none`) or the source's (`zero`)",
    "hessian.outputs": "An id for each pair of sources, row by row; null: the block is not kept",
    # functions and control flow
    "function.id": "The function's id, which the command creates",
    "function.inputs": "Names of the inputs, inside the function",
    "function.steps": "Commands that may be steps; their ids are names inside the function",
    "function.outputs": "Names of the results, inside the function",
    "inputs": "Ids, numbers or tensors, one for each input of the function",
    "call.outputs": "An id for each result, in order",
    "cond.outputs": "An id for each result, in order",
    "report_decisions": "Answer which way loops and conditions went",
    "while.cond": "A function of all inputs that returns a scalar bool or integer",
    "while.body": "A function of all inputs that returns the next values",
    "while.inputs": "The loop's values, then the captured inputs",
    "while.outputs": "An id for each value; one more: the number of iterations",
    "captured": "The number of inputs, at the end, that go with every iteration",
    "maximum_iterations": "A bound on the iterations; null: none",
    "cond.branches": "Functions of all inputs but the first",
    "cond.inputs": "The choice (a bool: true is the first branch; or an integer), then the inputs of the branches",
    "scan.body": "A function of the carried values, one element of each array, and the captured inputs",
    "scan.inputs": "The carried values, then arrays [n, …], then the captured inputs",
    "scan.outputs": "An id for each carried value, then for each stacked result",
    "carried": "The number of carried values",
    "reverse": "From the last element to the first",
    "length": "The number of iterations, if there are no arrays",
    "vectorize": "All elements at once, by the ops' batch rules; nothing can be carried",
    # custom gradients
    "custom.inputs": "What the custom call takes: the floating arguments, then the variables used",
    "custom.outputs": "Its results, each just made by an `identity`",
    "custom.call.function": "The function that computes the cotangents",
    "custom.call.inputs": "The call's inputs, then its results, then what else the function takes",
    "custom.call.outputs": "An id for each result",
    "custom.call.results": "The number of results",
    "custom.function.function": "As of `custom.call`",
    "custom.function.inputs": "What else the function takes",
    "has_gradient": "For each input of the call whether the function returns a cotangent for it",
    "backward.cotangents.id": "The pass",
    "backward.cotangents.outputs": "An id for the cotangent of each result; null: not kept",
    "backward.cotangents.tag": "Where the caller expects the pass to be; another call is a `structure_mismatch`",
    "backward.cotangents.op_values": "At an op with a registered gradient: an id for each input and for the result",
    "backward.resume.id": "The pass",
    "backward.resume.cotangents": "A cotangent for each input of the call; null: none",
    "backward.end.id": "The pass",
    "backward.end.outputs": "An id for each source's gradient; null: not kept",
}


def meaning(command: str, field: str) -> str:
    """What a field of a command means."""
    return MEANINGS.get(f"{command}.{field}") or MEANINGS[field]
