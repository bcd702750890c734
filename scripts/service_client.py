"""Writes the models, types and methods of the service client from openapi/openapi.json.

Run by `make reference`, after `make openapi`. The methods for threads and for event loops come from one template, and
so do those of `with_raw_response`. An operation without a method is in `WITHOUT`, with the reason. Long because it has
the models, the types and the methods.
"""

from __future__ import annotations

import json
import keyword
import re
import sys
import textwrap
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))  # `python -P` leaves it out
from functions import formatted

from teletape_client.tensors.bodies import NAMES

ROOT = Path(__file__).resolve().parents[1]
DOCUMENT = ROOT / "openapi" / "openapi.json"
FOLDER = ROOT / "client" / "teletape_client"
FILE, JSON = "application/vnd.safetensors", "application/json"

#: Operations that have no method, and why.
WITHOUT = {
    "server-index": "links for people",
    "requests-get": "each call waits for its answer itself",
    "requests-delete": "a call that is left cancels its request itself",
    "sessions-attach": "of clients that send frames",
    "batches-batch": "of clients that send frames",
    "published-export": "a file, which a program would not read into memory",
}
#: Parameters that are no arguments, and why.
NOT_ARGUMENTS = {
    "full": "always all elements",
    "Idempotency-Key": "each call has its own",
    "Prefer": "each call sets it",
    "Teletape-Time-Limit": "what is left of the timeout",
    "request": "safetensors have it in their metadata",
    "Tensor-Dtype": "of raw bytes; arrays travel as safetensors",
    "Tensor-Shape": "of raw bytes; arrays travel as safetensors",
    "If-None-Match": "an answer without a value has nothing to read",
    "format": "the answer is JSON",
}


@dataclass(frozen=True)
class Class:
    """A class of resources.

    Attributes:
        name: Its name; that for event loops begins with Async.
        path: The path that its objects stand for.
        documentation: One sentence.
        base: What it is: Resource, Session, Sessions, Item, Collection of something.
        members: Properties: the name of each, its class, and a sentence.
        item: The class of what `[id]` returns, for a collection.
    """

    name: str
    path: str
    documentation: str
    base: str = "Resource"
    members: tuple[tuple[str, str, str], ...] = ()
    item: str | None = None


SESSION = "/v1/sessions/{session}"
CLASSES = (
    Class("Variable", f"{SESSION}/variables/{{variable}}", "A variable of a session.", "Item"),
    Class("Variables", f"{SESSION}/variables", "The variables of a session.", item="Variable"),
    Class("Tensor", f"{SESSION}/tensors/{{tensor}}", "A tensor of a session.", "Item"),
    Class("Tensors", f"{SESSION}/tensors", "The tensors of a session, also results that were kept.", item="Tensor"),
    Class("Tape", f"{SESSION}/tapes/{{tape}}", "A tape of a session.", "Item"),
    Class("Tapes", f"{SESSION}/tapes", "The tapes of a session.", item="Tape"),
    Class("Accumulator", f"{SESSION}/accumulators/{{accumulator}}", "Sums of gradients of a session.", "Item"),
    Class("Accumulators", f"{SESSION}/accumulators", "The accumulators of a session.", item="Accumulator"),
    Class("Function", f"{SESSION}/functions/{{function}}", "A function of a session.", "Item"),
    Class("Functions", f"{SESSION}/functions", "The functions of a session.", item="Function"),
    Class(
        "Session",
        SESSION,
        "A session: what it holds stays on the server until it ends. As a context it ends after the block.",
        "Context",
        (
            ("variables", "Variables", "The variables."),
            ("tensors", "Tensors", "The tensors."),
            ("tapes", "Tapes", "The tapes."),
            ("functions", "Functions", "The functions."),
            ("accumulators", "Accumulators", "The accumulators."),
        ),
    ),
    Class("Sessions", "/v1/sessions", "Your sessions.", "Watched", item="Session"),
    Class("PublishedFunction", "/v1/published/{name}", "A published function: it is called without a session.", "Item"),
    Class("Published", "/v1/published", "The published functions.", item="PublishedFunction"),
    Class("Expressions", "/v1/expressions", "Formulas as text."),
    Class("Ops", "/v1/ops", "The catalogue of ops."),
    Class(
        "Server",
        "/v1",
        "A server.",
        members=(
            ("sessions", "Sessions", "Your sessions."),
            ("published", "Published", "The published functions."),
            ("expressions", "Expressions", "Formulas as text."),
            ("ops", "Ops", "The catalogue of ops."),
        ),
    ),
)
#: Names of methods that are not those of their operations.
METHODS = {"parse_expression": "parse", "run_in_session": "run"}
OF_OPERATIONS = {"ops-run": "run_ops", "tapes-record": "run_ops"}
#: Operations that are watched while they run.
WATCHED = {"functions-train"}
#: Creations that return what they make, and its class.
MAKES = {
    "sessions-create": ("Session", "id"),
    "variables-create": ("Variable", "id"),
    "tensors-create": ("Tensor", "id"),
    "tapes-create": ("Tape", "id"),
    "functions-create": ("Function", "id"),
}
RENAMED = {"sources": "wrt"}
#: Schemas that have a type of their own in Python.
OWN_TYPES = {
    "Input": "Input",
    "TensorInput": "TensorInput",
    "TensorData": "TensorInput",
    "NestedList": "Nested",
    "Id": "Id",
    "IntegerId": "Id",
}
READERS = {"TensorValue": "tensor", "TensorData": "array"}


# ------------------------------------------------------------------------------------------------------------- schemas
class Document:
    """The OpenAPI document."""

    def __init__(self) -> None:
        self.content: dict[str, Any] = json.loads(DOCUMENT.read_text(encoding="utf-8"))
        self.schemas: dict[str, Any] = self.content["components"]["schemas"]

    def operations(self) -> Iterator[tuple[str, str, dict[str, Any]]]:
        """Yields the path, the verb and the operation of each."""
        for path, operations in self.content["paths"].items():
            for verb, operation in operations.items():
                yield path, verb.upper(), operation

    def reached(self, roots: Iterable[Any], stop: Iterable[str]) -> set[str]:
        """Returns the names of the schemas that are referred to, directly or not."""
        pending, names = list(roots), set[str]()
        while pending:
            part = pending.pop()
            if isinstance(part, list):
                pending += part
            elif isinstance(part, dict):
                name = named(part)
                if name is None:
                    pending += part.get("properties", {}).values()  # a field may be called examples
                    pending += [part[key] for key in part if key not in ("example", "examples", "properties")]
                elif name not in names and name not in stop:
                    names.add(name)
                    pending.append(self.schemas[name])
        return names


def named(schema: dict[str, Any]) -> str | None:
    """Returns the name of the schema that this one refers to."""
    reference = schema.get("$ref")
    return reference.rpartition("/")[2] if isinstance(reference, str) else None


def has_members(schema: dict[str, Any]) -> bool:
    """Whether a schema is a record."""
    return "properties" in schema


class Types:
    """The types of schemas in Python, of requests or of answers.

    Args:
        document: The document.
        prefix: Before the names of records.
        is_answer: Whether arrays and models are in the places of JSON.
        tensor: The type of a tensor of an answer.
    """

    def __init__(self, document: Document, prefix: str = "", *, is_answer: bool = False, tensor: str = "Array") -> None:
        self.document, self.prefix, self.is_answer, self.tensor = document, prefix, is_answer, tensor

    def of(self, schema: dict[str, Any]) -> str:
        """Returns the type of a schema."""
        name = named(schema)
        if name is not None:
            return self._of_name(name)
        options = schema.get("anyOf") or schema.get("oneOf")
        if options:
            types = [self.of(option) for option in options]
            if self.is_answer and set(types) >= {"float", "Literal['NaN', 'Infinity', '-Infinity']"}:
                types = ["float", *(text for text in types if text == "None")]
            return " | ".join(sorted(dict.fromkeys(types), key=lambda text: text == "None"))
        if "enum" in schema:
            return f"Literal[{', '.join(map(repr, schema['enum']))}]"
        if "const" in schema:
            return f"Literal[{schema['const']!r}]"
        kind = schema.get("type")
        if kind == "array":
            return f"{'list' if self.is_answer else 'Sequence'}[{self.of(schema.get('items', {}))}]"
        if kind == "object":
            return f"{'dict' if self.is_answer else 'Mapping'}[str, {self.of(_values(schema))}]"
        return {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "null": "None"}.get(
            str(kind), "Any"
        )

    def _of_name(self, name: str) -> str:
        if self.is_answer and name in READERS:
            return self.tensor
        if self.is_answer and name in OWN_TYPES:
            return "Any"
        if name in OWN_TYPES:
            return OWN_TYPES[name]
        schema = self.document.schemas[name]
        if self.is_answer and not has_members(schema) and "enum" not in schema:
            return "Any"
        return f"{self.prefix}{name}"


def _values(schema: dict[str, Any]) -> dict[str, Any]:
    """Returns the schema of an object's members of any name."""
    values = schema.get("additionalProperties")
    if isinstance(values, dict):
        return values
    return next(iter(schema.get("patternProperties", {}).values()), {})


def reader(document: Document, schema: dict[str, Any], prefix: str = "") -> str | None:
    """Returns the reader of a part of an answer as an expression; None: its JSON is its value."""
    name = named(schema)
    if name is not None:
        if name in READERS:
            return READERS[name]
        target = document.schemas[name]
        if has_members(target):
            return f"{prefix}{name}.read"
        return None if "enum" in target or name in OWN_TYPES else "anything"
    options = [option for option in schema.get("anyOf") or schema.get("oneOf") or [] if option.get("type") != "null"]
    if options:
        if {option.get("type") for option in options} == {"number", "string"}:
            return "number" if any("enum" in option for option in options) else None
        if len(options) == 1:
            return reader(document, options[0], prefix)
        readers = [reader(document, option, prefix) for option in options]
        if not any(readers):
            return None
        rows = [text for text in readers if text is not None and text.startswith("list_of(list_of(")]
        flat = [text for text in readers if text is not None and text not in rows]
        return f"rows_or({flat[0].removeprefix('list_of(')[:-1]}, {rows[0].removeprefix('list_of(list_of(')[:-2]})"
    if schema.get("type") == "array":
        inner = reader(document, schema.get("items", {}), prefix)
        return None if inner is None else f"list_of({inner})"
    if schema.get("type") == "object":
        values = schema.get("additionalProperties")
        if values is True:
            return "anything"
        inner = reader(document, _values(schema), prefix)
        return None if inner is None else f"map_of({inner})"
    return None


# -------------------------------------------------------------------------------------------------------------- models
MODELS = '''\
"""The models of answers: each member of the JSON is an attribute, and a tensor is a NumPy array.

Written by `make reference` from openapi/openapi.json. Long because it has every answer of the server.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias

from collections.abc import Mapping
from teletape_client.tensors.answers import (
    ByName, ByPair, BySource, Model, Reader, anything, array, list_of, map_of, number, rows_or, tensor
)

if TYPE_CHECKING:
    from teletape_client.tensors.values import Array, Value
'''


def models(document: Document) -> str:
    """Returns the text of models.py."""
    roots = [
        operation["responses"] for _, _, operation in document.operations() if operation["operationId"] not in WITHOUT
    ]
    names = document.reached(roots, stop={*OWN_TYPES, *READERS}) - set(READERS)
    types = Types(document, is_answer=True)
    with_sparse = Types(document, is_answer=True, tensor="Value")
    enums, classes = [], []
    for name in sorted(names):
        schema = document.schemas[name]
        if "enum" in schema:
            enums.append(f"#: {schema['description']}\n{name}: TypeAlias = {types.of(schema)}\n")
        elif has_members(schema) and not _is_step(document, name):
            kinds = schema["properties"].get("kind", {}).get("enum", ())
            may_be_sparse = "slices" in kinds or (_base(schema) == "ByName" and "why" in schema["properties"])
            classes.append((name, _model(document, with_sparse if may_be_sparse else types, name, schema)))
    return MODELS + "\n" + "\n".join(enums) + "\n" + "\n\n".join(_ordered(dict(classes)))


def _is_step(document: Document, name: str) -> bool:
    """Whether a record is a step of a function, which answers show as JSON."""
    return name.endswith(("Command", "Step")) and name != "ExplanationStep"


def _model(document: Document, types: Types, name: str, schema: dict[str, Any]) -> str:
    required = set(schema.get("required", ()))
    lines, documentation, readers, renamed = [], [], [], []
    for name_in_json, part in schema["properties"].items():
        member = f"{name_in_json}_" if keyword.iskeyword(name_in_json) else name_in_json
        if member != name_in_json:
            renamed.append(f"{member!r}: {name_in_json!r}")
        kind = types.of(part)
        if name_in_json not in required:
            kind += "" if "None" in kind.split(" | ") else " | None"
        lines.append(f"    {member}: {kind}{'' if name_in_json in required else ' = None'}")
        if description := part.get("description"):
            documentation.append(_entry(member, description))
        text = reader(document, part)
        if text is not None:
            readers.append(f"{name_in_json!r}: {text}")
    listed = "Attributes:\n" + "\n".join(documentation) if documentation else ""
    text = f"class {name}({_base(schema)}):\n    {_docstring(schema.get('description', name), listed)}\n\n"
    text += "\n".join(lines) + "\n"
    if readers:
        text += f"\n    _readers: ClassVar[Mapping[str, Reader]] = {{{', '.join(readers)}}}\n"
    if renamed:
        text += f"\n    _renamed: ClassVar[Mapping[str, str]] = {{{', '.join(renamed)}}}\n"
    return text


def _base(schema: dict[str, Any]) -> str:
    """Returns the base of a model: how its derivatives are looked up, if it has some."""
    items = schema["properties"].get("derivatives", {}).get("items", {})
    has_values = schema["properties"].get("values", {}).get("type") == "object"
    if has_values and not {"derivatives", "kind"} & schema["properties"].keys():
        return "ByName"
    if named(items) in ("Derivative", "FunctionDerivative", "Tangent"):
        return "BySource"
    return "ByPair" if named(items.get("items", {})) == "HessianBlock" else "Model"


def _ordered(classes: dict[str, str]) -> list[str]:
    """Returns the texts so that each class comes after those whose readers it needs."""
    order: list[str] = []

    def add(name: str) -> None:
        if classes[name] in order:
            return
        for other in re.findall(r"(\w+)\.read", classes[name]):
            if other != name:
                add(other)
        order.append(classes[name])

    for name in classes:
        add(name)
    return order


# --------------------------------------------------------------------------------------------------------------- types
PARAMS = '''\
"""The types of what requests hold: commands, steps, settings, for type checkers and editors.

Written by `make reference` from openapi/openapi.json. Long because it has every command of a batch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, Required, TypeAlias, TypedDict

if TYPE_CHECKING:
    from teletape_client.tensors.values import Id, Input, Nested, TensorInput
'''


def params(document: Document) -> str:
    """Returns the text of params.py."""
    roots, bodies = [], set()
    for _, _, operation in document.operations():
        if operation["operationId"] not in WITHOUT and (body := _body(document, operation)) is not None:
            bodies.add(body[0])
            roots.append(body[1])
    names = document.reached(roots, stop=OWN_TYPES)
    types = Types(document)
    records, unions = [], []
    for name in sorted(names):
        schema = document.schemas[name]
        if has_members(schema):
            records.append(_record(types, name, schema))
        else:
            unions.append(f"#: {_sentence(schema['description'])}\n{name}: TypeAlias = {types.of(schema)}\n")
    return PARAMS + "\n" + "\n\n".join(records) + "\n\n" + "\n".join(unions)


def _record(types: Types, name: str, schema: dict[str, Any]) -> str:
    required = set(schema.get("required", ()))
    members = {}
    for member, part in schema["properties"].items():
        kind = types.of(part)
        members[member] = f"Required[{kind}]" if member in required else kind
    documentation = _docstring(schema.get("description", name))
    if any(keyword.iskeyword(member) for member in members):
        fields = ", ".join(f"{member!r}: {json.dumps(kind)}" for member, kind in members.items())
        return f"{name} = TypedDict({name!r}, {{{fields}}}, total=False)\n{documentation}\n"
    lines = "\n".join(f"    {member}: {kind}" for member, kind in members.items())
    return f"class {name}(TypedDict, total=False):\n    {documentation}\n\n{lines}\n"


# ----------------------------------------------------------------------------------------------------------- resources
RESOURCES = '''\
"""The resources of a server {where}: a method for each operation.

Written by `make reference` from openapi/openapi.json, with {other}.py. Long because it has every operation.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from teletape_client import models
from teletape_client.base import {prefix}Resource, {raw}, inputs_of
from teletape_client.items import {bases}
from teletape_client.network.actions import RUN, Call, quoted
from teletape_client.running import {prefix}Running

if TYPE_CHECKING:
    from teletape_client import params
    from teletape_client.tensors.values import Id, Input, Nested, TensorInput
'''


@dataclass
class Argument:
    """An argument of a method.

    Attributes:
        name: As callers write it.
        kind: Its type.
        documentation: A sentence.
        is_required: Whether it has no default.
        default: Of one that is not required.
    """

    name: str
    kind: str
    documentation: str
    is_required: bool = False
    default: str = "None"


@dataclass
class Method:
    """A method of a resource; in texts ASYNC, AWAIT and PREFIX stand for what differs."""

    operation: str
    name: str
    documentation: str
    description: str
    positional: list[Argument] = field(default_factory=list)
    named: list[Argument] = field(default_factory=list)
    takes_inputs: bool = False
    returns: str = "None"
    call: str = ""
    is_watched: bool = False
    makes: str | None = None


def _body(document: Document, operation: dict[str, Any]) -> tuple[str, dict[str, Any]] | None:
    """Returns the name and the schema of an operation's JSON body."""
    content = operation.get("requestBody", {}).get("content", {}).get(JSON)
    if content is None:
        return None
    name = named(content["schema"])
    assert name is not None, operation["operationId"]
    return name, document.schemas[name]


def owner(path: str) -> tuple[Class, str]:
    """Returns the class whose method an operation is, and the rest of its path."""
    for cls in sorted(CLASSES, key=lambda cls: -len(cls.path)):
        if path == cls.path or path.startswith(f"{cls.path}/"):
            return cls, path[len(cls.path) :]
    raise LookupError(path)


def method(document: Document, path: str, verb: str, operation: dict[str, Any]) -> Method:
    """Returns the method of an operation."""
    identity = operation["operationId"]
    suffix = identity.partition("-")[2]
    name = OF_OPERATIONS.get(identity) or METHODS.get(suffix, suffix)
    name = f"{name}_" if keyword.iskeyword(name) else name
    entry = Method(identity, name, operation["summary"], operation.get("description", ""))
    cls, rest = owner(path)
    types = Types(document, "params.")
    parameters = {parameter["name"]: parameter for parameter in operation.get("parameters", ())}
    for part in re.findall(r"\{(\w+)\}", rest):
        entry.positional.append(Argument(part, "str", parameters[part]["description"], is_required=True))
        rest = rest.replace(f"{{{part}}}", f"{{quoted({part})}}")
    body = _body(document, operation)
    pairs = []
    if body is not None:
        schema = body[1]
        required = schema.get("required", [])
        for member, part in sorted(schema["properties"].items(), key=lambda item: item[0] not in required):
            if member == "inputs" and _are_inputs(cls, part):
                entry.takes_inputs = True
                pairs.append('"inputs": inputs_of(inputs, named)')
                continue
            argument = _argument(types, member, part, member in required)
            place = entry.positional if argument.is_required and not _has_inputs(cls, schema) else entry.named
            place.append(argument)
            pairs.append(f'"{member}": {argument.name}')
    query = _query_pairs(entry, types, parameters, set() if body is None else set(body[1]["properties"]))
    headers = []
    if "If-Match" in parameters:
        entry.named.append(Argument("if_match", "str | None", parameters["If-Match"]["description"]))
        headers.append('"If-Match": if_match')
    _answer(document, entry, operation, verb)
    success = next(
        answer for status, answer in operation["responses"].items() if status in ("200", "201", "202", "204")
    )
    offers = FILE in success.get("content", {})
    listing = offers and verb == "GET" and suffix == "list"
    if listing:
        entry.named.append(Argument("values", "bool", "Whether each comes with its value", default="False"))
    takes = FILE in operation.get("requestBody", {}).get("content", {})
    facts = {
        "fields": f"{{{', '.join(pairs)}}}" if body is not None else None,
        "query": f"{{{', '.join(query)}}}" if query else None,
        "headers": f"{{{', '.join(headers)}}}" if headers else None,
        "takes_file": "True" if takes else None,
        "offers_file": "values" if listing else "True" if offers else None,
        "has_full": "True" if "full" in parameters else None,
        "is_work": None if "Prefer" in parameters else "False",
        "function": _function(cls, verb, body),
    }
    if identity == "run-run":
        facts["function"] = "RUN"
    place = f'f"{{self._path}}{rest}"' if rest else "self._path"
    more = "".join(f", {key}={text}" for key, text in facts.items() if text is not None)
    entry.call = f'Call("{verb}", {place}, READ{more})'
    return entry


def _function(cls: Class, verb: str, body: tuple[str, dict[str, Any]] | None) -> str | None:
    """Returns the path of the function that a question is about; None: the operation keeps its results."""
    is_question = cls.name == "Function" and verb == "POST" and body is not None and body[0] != "Training"
    return "self._path" if is_question and body is not None and "scratch" not in body[1]["properties"] else None


def _kinds(schema: dict[str, Any]) -> set[str]:
    return {option.get("type", "") for option in [schema, *schema.get("oneOf", ()), *schema.get("anyOf", ())]}


def _has_inputs(cls: Class, schema: dict[str, Any]) -> bool:
    """Whether a method takes the inputs of a function by name, so that all else needs a name."""
    return _are_inputs(cls, schema["properties"].get("inputs", {}))


def _are_inputs(cls: Class, part: dict[str, Any]) -> bool:
    """Whether a field has the inputs of a function, by name or also in order."""
    kinds = _kinds(part)
    return "object" in kinds and (cls.name == "Function" or (cls.name == "PublishedFunction" and "array" in kinds))


def _argument(types: Types, member: str, part: dict[str, Any], is_required: bool) -> Argument:
    kind = types.of(part)
    if member in NAMES:
        kind = re.sub(r"Sequence\[(\w+)\]", r"\1 | Sequence[\1]", kind)
    if not is_required and "None" not in kind.split(" | "):
        kind += " | None"
    name = RENAMED.get(member, member)
    description = part.get("description") or _described(types.document, part)
    return Argument(f"{name}_" if keyword.iskeyword(name) else name, kind, description, is_required)


def _described(document: Document, part: dict[str, Any]) -> str:
    name = named(part) or next(filter(None, (named(option) for option in part.get("anyOf", ()))), None)
    if name is None and "items" in part:
        name = named(part["items"])
    if name is not None:
        return str(document.schemas[name].get("description", name))
    options = part.get("anyOf", ())
    return str(next((option["description"] for option in options if "description" in option), "See the guide"))


def _query_pairs(entry: Method, types: Types, parameters: dict[str, Any], fields: set[str]) -> list[str]:
    pairs = []
    for name, parameter in parameters.items():
        if parameter["in"] != "query" or name in NOT_ARGUMENTS or name in fields:
            continue
        schema = {key: value for key, value in parameter["schema"].items() if key != "default"}
        argument = _argument(types, name, {**schema, "description": parameter["description"]}, False)
        entry.named.append(argument)
        pairs.append(f'"{name}": {argument.name}')
    return pairs


def _answer(document: Document, entry: Method, operation: dict[str, Any], verb: str) -> None:
    """Sets what a method returns."""
    responses = operation["responses"]
    success = next(responses[status] for status in ("201", "200", "204", "202") if status in responses)
    schema = success.get("content", {}).get(JSON, {}).get("schema", {})
    name = named(schema)
    entry.returns = "None" if name is None else f"models.{name}"
    if entry.operation in MAKES:
        entry.makes = MAKES[entry.operation][0]
    entry.is_watched = entry.operation in WATCHED


def _sentence(text: str) -> str:
    text = " ".join(text.split())
    return text if text.endswith(".") else f"{text}."


def _docstring(text: str, more: str = "", indent: str = "    ") -> str:
    """Returns a docstring: its first sentence, then the others, then what is listed."""
    first, _, rest = _sentence(text).partition(". ")
    parts = [first.rstrip(".") + "."]
    if len(parts[0]) > 110:
        first, _, clause = first.partition(": ")
        parts, rest = [f"{first}."], f"{clause[:1].upper()}{clause[1:].rstrip('.')}. {rest}".strip()
    if rest:
        parts.append(textwrap.fill(_sentence(rest), 120, initial_indent=indent, subsequent_indent=indent).strip())
    if more:
        parts.append(more)
    text = f"\n\n{indent}".join(parts)
    return f'"""{text}{f"{chr(10)}{indent}" if len(parts) > 1 else ""}"""'


def _entry(name: str, text: str, indent: str = " " * 8) -> str:
    """Returns an entry of a docstring's list."""
    sentence = _sentence(text[:1].upper() + text[1:])
    width = 104 + len(indent)  # that of a method is indented later
    return "\n".join(
        textwrap.wrap(f"{name}: {sentence}", width, initial_indent=indent, subsequent_indent=indent + "    ")
    )


def _documentation(entry: Method) -> str:
    arguments = [*entry.positional, *entry.named]
    parts = [_sentence(entry.documentation)]
    description = " ".join(entry.description.split())
    if description and description.rstrip(".") != entry.documentation.rstrip("."):
        parts.append("\n".join(textwrap.wrap(_sentence(description), 110)))
    lines = []
    if entry.takes_inputs:
        lines.append(_entry("inputs", "In the order of the function's inputs, or by their names", "    "))
    lines += [_entry(argument.name, argument.documentation, "    ") for argument in arguments]
    if entry.takes_inputs:
        lines.append(_entry("**named", "Inputs by their names", "    "))
    if lines:
        parts.append("Args:\n" + "\n".join(lines))
    if entry.is_watched:
        parts.append("Returns:\n    An iterator of the progress; its `result()` is the answer.")
    text = "\n\n".join(parts)
    if "\n" in text:
        text += "\n"
    return textwrap.indent(f'"""{text}"""', " " * 8)


def _signature(entry: Method) -> str:
    parts = ["self", *(f"{argument.name}: {argument.kind}" for argument in entry.positional)]
    if entry.takes_inputs:
        parts += ["inputs: Sequence[Input] | Mapping[str, Input] | None = None", "/"]
    if entry.named:
        parts.append("*")
    parts += [
        f"{argument.name}: {argument.kind}" + ("" if argument.is_required else f" = {argument.default}")
        for argument in entry.named
    ]
    if entry.takes_inputs:
        parts.append("**named: Input")
    return ", ".join(parts)


def resources(document: Document, *, is_async: bool) -> str:
    """Returns the text of resources.py, or of async_resources.py."""
    prefix = "Async" if is_async else ""
    bases = sorted({f"{prefix}{cls.base}" for cls in CLASSES} - {f"{prefix}Resource"} | {f"{prefix}Collection"})
    texts = [
        RESOURCES.format(
            where="for event loops" if is_async else "for threads",
            other="resources" if is_async else "async_resources",
            bases=", ".join(bases),
            prefix=prefix,
            raw="async_raw as raw" if is_async else "raw",
        )
    ]
    methods: dict[str, list[Method]] = {cls.name: [] for cls in CLASSES}
    for path, verb, operation in document.operations():
        if operation["operationId"] not in WITHOUT:
            methods[owner(path)[0].name].append(method(document, path, verb, operation))
    for cls in CLASSES:
        texts.append(_class(cls, methods[cls.name], prefix))
        texts.append(_raw_class(cls, methods[cls.name], prefix))
    return "\n\n".join(texts)


def _class(cls: Class, methods: list[Method], prefix: str) -> str:
    base = f"{prefix}{cls.base}" if cls.item is None or cls.base != "Resource" else ""
    bases = [base] if base else []
    facts = ""
    if cls.item is not None:
        bases.append(f"{prefix}Collection[{prefix}{cls.item!s}]")
    if cls.base in ("Item", "Context"):
        bases = [f"{prefix}{cls.base}[models.{_facts(methods, cls)}]"]
    text = f'class {prefix}{cls.name}({", ".join(bases)}):\n    """{cls.documentation}"""\n{facts}'
    if cls.item is not None:
        text += f"\n    _item = {prefix}{cls.item}\n"
    for member, kind, sentence in cls.members:
        path = f'f"{{self._path}}/{member}"'
        text += f'\n    @property\n    def {member}(self) -> {prefix}{kind}:\n        """{sentence}"""\n'
        text += f"        return {prefix}{kind}(self._connection, self._options, {path})\n"
    text += f"\n    @property\n    def with_raw_response(self) -> {prefix}{cls.name}WithRawResponse:\n"
    text += '        """The same methods, which return the response as it came; its `parse()` is the answer."""\n'
    text += f"        return {prefix}{cls.name}WithRawResponse(self._with(self._options._replace(raw=True)))\n"
    is_async = bool(prefix)
    for entry in methods:
        text += "\n" + _method(entry, is_async, prefix)
    return text


def _facts(methods: list[Method], cls: Class) -> str:
    """Returns the model of what a handle's creation answers."""
    return {"Function": "NewFunctionAnswer"}.get(cls.name, cls.name)


def _method(entry: Method, is_async: bool, prefix: str) -> str:
    returns = entry.returns
    if entry.is_watched:
        returns = f"{prefix}Running[{returns}]"
    read = f"{entry.returns}.read" if entry.returns != "None" else "None"
    if entry.makes is not None:
        returns, read = f"{prefix}{entry.makes}", f"self._created({entry.returns}.read)"
    keep = "async def" if is_async else "def"
    text = f"    {keep} {entry.name}({_signature(entry)}) -> {returns}:\n{_documentation(entry)}\n"
    call = entry.call.replace("READ", read)
    wait = "await " if is_async else ""
    sent = "_begin" if entry.is_watched else "_send"
    if returns == "None":
        return f"{text}        {wait}self.{sent}({call})\n"
    return f"{text}        answer: {returns} = {wait}self.{sent}({call})\n        return answer\n"


def _raw_class(cls: Class, methods: list[Method], prefix: str) -> str:
    name = f"{prefix}{cls.name}WithRawResponse"
    text = f'class {name}:\n    """The methods of `{prefix}{cls.name}`, which return the response as it came."""\n\n'
    text += f"    def __init__(self, resource: {prefix}{cls.name}) -> None:\n"
    lines = [f"        self.{entry.name} = raw(resource.{entry.name})\n" for entry in methods if not entry.is_watched]
    return text + "".join(lines)


# --------------------------------------------------------------------------------------------------------------- files
def files() -> dict[Path, str]:
    """The text of every file that is written here."""
    document = Document()
    texts = {
        FOLDER / "models.py": models(document),
        FOLDER / "params.py": params(document),
        FOLDER / "resources.py": resources(document, is_async=False),
        FOLDER / "async_resources.py": resources(document, is_async=True),
    }
    return {path: formatted(text, path, "F401,I,UP") for path, text in texts.items()}


if __name__ == "__main__":
    for path, text in files().items():
        path.write_text(text, encoding="utf-8")
