"""Prepares a function for publication: its contract is worked out and checked before it is kept."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

import teletape_wire as wire
from teletape_engine.commands import Batch, Command, DefineFunction, Fetch
from teletape_engine.commands.results import Fetched
from teletape_engine.errors import (
    InvalidArgumentError,
)
from teletape_engine.recording.values import Literal, typed_array
from teletape_engine.session.session import Session
from teletape_engine.spec import dtype_of
from teletape_server.expressions.compiled import Compiled, with_outputs
from teletape_server.handlers.bodies import InvalidRequestError, read
from teletape_server.handlers.execution import described
from teletape_server.handlers.functions.functions import parsed_text
from teletape_server.handlers.methods import Request, Result, method
from teletape_server.handlers.published.findings import (
    check_of_gradients,
    checked_example,
    example_inputs,
    outputs,
    results,
)
from teletape_server.handlers.published.versions import (
    FUNCTION,
    Version,
    read_weights,
    run,
    taken_file,
    versions_of,
)
from teletape_server.models.functions.functions import NewFunction
from teletape_server.models.published.contract import RECORD, Declared, Published, hash_of
from teletape_server.models.published.publications import Publication, PublishedExample
from teletape_wire.safetensors.layout import SAFETENSORS_TYPE
from teletape_wire.safetensors.reader import TensorFile, read_file
from teletape_wire.safetensors.writer import write_file


@method("published-prepare")
def prepare(session: Session, request: Request) -> Result:
    """Returns the contract of a publication, and the file of its weights after it."""
    if request.content_type == SAFETENSORS_TYPE:
        file = read_file(request.body, copy_below=request.copy_below)
        if RECORD in file.metadata:
            return _imported(session, request, file)
    body = read(request, Publication)
    functions, weights = _function(session, body, request)
    declared = {name: Declared(item.dtype, tuple(item.shape)) for name, item in body.inputs.items()}
    main = functions[-1]
    _check_inputs(main, declared, weights)
    whole = replace(main, id=FUNCTION, inputs=(*declared, *weights))
    published = Published("", _as_json([*functions[:-1], whole]), declared, {}, created=time.time())
    name = {"visibility": body.visibility, "group": body.group, "description": body.description}
    return _prepared(session, request, published, weights, body.examples, name)


def _imported(session: Session, request: Request, file: TensorFile) -> Result:
    """Returns the contract and the weights of a file that a server has exported, after the same checks.

    Its examples have to give the outputs that they gave there.

    Raises:
        InvalidRequestError: It was changed.
    """
    try:
        earlier = Published.from_json(wire.parse_json(file.metadata[RECORD].encode()))
    except ValueError as error:
        raise InvalidRequestError(f"the file's metadata: {error}") from None
    examples = [
        PublishedExample.model_validate({"inputs": item["inputs"], "outputs": item["outputs"]})
        for item in earlier.examples
    ]
    published = replace(earlier, version="", outputs={}, examples=(), check=None)
    result = _prepared(session, request, published, file.tensors, examples, {})
    if result.facts["version"] != earlier.version:
        raise InvalidRequestError(f"the file's weights are not those of version {earlier.version}: they were changed")
    return result


@method("published-load")
def load(session: Session, request: Request) -> Result:
    """Loads a version into this process; the body is its contract, and its file of weights has come before."""
    published = Published.from_json(wire.parse_json(request.body))
    weights: dict[str, np.ndarray[Any, Any]] = {}
    if published.weights_hash:
        content = taken_file(published.version)
        if request.params["check"] and hash_of(content) != published.weights_hash:
            raise InvalidArgumentError(f"the weights of version {published.version} were changed on the disk")
        weights = read_weights(content)
    dropped = versions_of(session).put(Version.loaded(session, published, weights))
    return Result("", [], 0, {"dropped": dropped})


@method("published-loaded")
def loaded(session: Session, request: Request) -> Result:
    """Answers that a version is loaded, after what came before.

    Raises:
        InternalError: It is not.
    """
    versions_of(session).get(request.params["version"])
    return Result("", [], 0)


# --------------------------------------------------------------------------------------------------- what it is made of
def _function(
    session: Session, body: Publication, request: Request
) -> tuple[Sequence[DefineFunction], dict[str, np.ndarray[Any, Any]]]:
    """Returns the commands that define the function, and its weights.

    Raises:
        InvalidRequestError: The function is none of the session's.
        TeletapeError: It is not accepted.
    """
    if isinstance(body.function, str):
        if not request.params["in_session"]:
            raise InvalidRequestError(
                f"function: {body.function!r} names a function in a session: name the session in the query, ?session=; "
                'a formula is {"text": "y = x ** 3"}'
            )
        described(session, body.function, "functions")
        functions: Sequence[DefineFunction] = session.definitions(body.function)
        values: dict[str, Any] = {}
    else:
        functions, values = _new_function(session, body.function)
    weights = {name: value for name, value in values.items() if name not in body.inputs} | body.weights
    arrays = {}
    for name in functions[-1].inputs:
        if name in weights:
            arrays[name] = _weight(session, request, name, weights[name])
            weights.pop(name)
    if weights:
        raise InvalidRequestError(
            f"weights: {', '.join(weights)}: the function has the inputs {', '.join(functions[-1].inputs)}"
        )
    return functions, arrays


def _new_function(session: Session, body: NewFunction) -> tuple[Sequence[DefineFunction], dict[str, Any]]:
    """Returns the commands of a function in the body, and the values that its text gives to inputs."""
    values: dict[str, Any] = {}
    inputs, steps, outputs = body.inputs, body.steps, body.outputs
    if body.text is not None:
        dtype = body.dtype or "float32"
        formulas: Compiled = parsed_text(body.text, dtype)
        if outputs is not None:
            formulas = with_outputs(formulas, outputs)
        values = {name: wire.input_from_json(value) for name, value in formulas.values.items()}
        with wire.numbers_alone(dtype):
            steps = [wire.step_from_json(step) for step in formulas.steps]
        inputs, outputs = formulas.inputs, formulas.outputs
    assert inputs is not None
    assert steps is not None
    assert outputs is not None
    blank = session.like()
    run(blank, [DefineFunction("f", tuple(inputs), tuple(steps), tuple(outputs), body.dtype)])
    return blank.definitions("f"), values


def _weight(session: Session, request: Request, name: str, value: Any) -> np.ndarray[Any, Any]:
    """Returns a weight's elements."""
    if isinstance(value, Literal):
        return typed_array(value, value.spec.alone if value.spec.untyped else dtype_of("float32"))
    if isinstance(value, np.ndarray):
        return value
    if not request.params["in_session"]:
        raise InvalidRequestError(
            f"weights.{name}: {value!r} names a tensor in a session: send its elements, or name the session in the "
            "query, ?session="
        )
    [fetched] = results(session, request, [Fetch(value)], f"weights.{name}")
    assert isinstance(fetched, Fetched)
    if not isinstance(fetched.array, np.ndarray):
        raise InvalidRequestError(f"weights.{name}: {value!r} is a sparse gradient, and a weight is dense")
    return fetched.array


def _check_inputs(main: DefineFunction, declared: Mapping[str, Declared], weights: Mapping[str, Any]) -> None:
    """Checks that each input of the function is declared or a weight.

    Raises:
        InvalidRequestError: One is not, or what is declared is no input.
    """
    unknown = [name for name in declared if name not in main.inputs]
    missing = [name for name in main.inputs if name not in declared and name not in weights]
    for names, why in ((unknown, "is no input of the function"), (missing, "is neither declared nor a weight")):
        if names:
            raise InvalidRequestError(
                f"inputs: {', '.join(names)} {why}; the function takes {', '.join(main.inputs) or 'none'}"
            )


def _as_json(functions: Sequence[Command]) -> tuple[Mapping[str, Any], ...]:
    text: Any = json.loads(b"".join(wire.write_json(wire.batch_to_json(Batch(tuple(functions))))))
    return tuple(text["commands"])


# --------------------------------------------------------------------------------------------------------- the contract
def _prepared(
    process: Session,
    request: Request,
    published: Published,
    weights: Mapping[str, np.ndarray[Any, Any]],
    examples: Sequence[PublishedExample],
    name: Mapping[str, Any],
) -> Result:
    """Checks a publication, and returns its contract and weights.

    Raises:
        InvalidRequestError: It assigns to variables, or an example does not give its outputs.
        TeletapeError: It does not run.
    """
    content: list[Any] = []
    if weights:
        content = write_file({name: weights[name] for name in sorted(weights)}, {})
    whole = memoryview(b"".join(content))
    shapes = {name: Declared(array.dtype.name, array.shape) for name, array in weights.items()}
    published = replace(
        published,
        weights=shapes,
        weights_hash=hash_of(whole) if weights else "",
        weights_bytes=len(whole),
    )
    version = Version.loaded(process, published, weights)
    assigns = version.session.describe(FUNCTION)["assigns"]
    if assigns:
        raise InvalidRequestError(
            f"function: it assigns to {', '.join(assigns)}, and a published function changes nothing: return the new "
            "value as an output"
        )
    inputs = [example_inputs(version, example, number) for number, example in enumerate(examples)]
    declared_outputs = outputs(version, inputs[0] if inputs else None)
    checked = [
        checked_example(version, request, declared_outputs, example, values, number)
        for number, (example, values) in enumerate(zip(examples, inputs, strict=True))
    ]
    published = replace(
        published,
        outputs=declared_outputs,
        examples=tuple(checked),
        check=check_of_gradients(version, request, inputs[0]) if inputs else None,
        rows=version.session.vectorizes(FUNCTION),
    )
    published = replace(published, version=published.identity)
    record = json.dumps(published.to_json(), ensure_ascii=False, separators=(",", ":")).encode()
    facts = {"record_bytes": len(record), "version": published.version, "name": name}
    return Result("application/octet-stream", [record, whole], len(record) + len(whole), facts)
