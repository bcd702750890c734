"""Plain sentences about what is wrong with a request: what is needed, and what was sent.

The engine's messages about inputs of ops are TensorFlow's, which programs for the SDK may read; `plain` says the same
in the words of this API.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, TypeAlias, get_args

import numpy as np
from pydantic import BaseModel

from teletape_engine.catalogue.op import CATALOGUE
from teletape_engine.suggestions import did_you_mean, with_nearest

Facts: TypeAlias = Mapping[str, Any]

#: What pydantic calls a fault, and our sentence about it; `facts` are the limits and patterns that it names.
_SENTENCES: Final[dict[str, Callable[[Facts], str]]] = {
    "missing": lambda facts: "is missing, and is needed",
    "extra_forbidden": lambda facts: (
        "is no field of this request: "
        + (did_you_mean(facts["name"], facts["known"]) or f"it has {', '.join(facts['known']) or 'none'}")
    ),
    "string_type": lambda facts: "must be a string",
    "string_pattern_mismatch": lambda facts: f"must match {facts['pattern']}",
    "string_too_short": lambda facts: f"must have at least {facts['min_length']:,} characters",
    "string_too_long": lambda facts: f"must have at most {facts['max_length']:,} characters",
    "int_type": lambda facts: "must be an integer",
    "int_parsing": lambda facts: "must be an integer",
    "int_from_float": lambda facts: "must be an integer",
    "int_parsing_size": lambda facts: "must be an integer with fewer digits",
    "float_type": lambda facts: "must be a number",
    "float_parsing": lambda facts: "must be a number",
    "finite_number": lambda facts: "must be a finite number",
    "bool_type": lambda facts: "must be true or false",
    "bool_parsing": lambda facts: "must be true or false",
    "list_type": lambda facts: "must be a list",
    "dict_type": lambda facts: "must be an object",
    "model_type": lambda facts: "must be an object",
    "model_attributes_type": lambda facts: "must be an object",
    "too_long": lambda facts: f"must have at most {facts['max_length']:,} members",
    "too_short": lambda facts: f"must have at least {facts['min_length']:,} members",
    "greater_than": lambda facts: f"must be greater than {facts['gt']}",
    "greater_than_equal": lambda facts: f"must be at least {facts['ge']}",
    "less_than": lambda facts: f"must be less than {facts['lt']}",
    "less_than_equal": lambda facts: f"must be at most {facts['le']}",
    "literal_error": lambda facts: f"must be {facts['expected']}",
    "enum": lambda facts: f"must be {facts['expected']}",
}
#: Tags of fields that take a list or an object, which are no part of a field's path.
BY_POSITION: Final = "[]"
BY_NAME: Final = "{}"
_NOTHING_SENT: Final = ("missing", "extra_forbidden")
_COUNTED: Final = ("too_long", "too_short")
_CHOICES: Final = ("literal_error", "enum")
_QUOTED: Final = re.compile(r"'([^']*)'")


def described_faults(
    errors: Iterable[Facts], path: Sequence[str | int] = (), *, model: type[BaseModel] | None = None
) -> list[dict[str, str]]:
    """Returns for each of pydantic's errors the field, a sentence, and pydantic's name for it.

    Args:
        errors: Of one request.
        path: Leads to what was read.
        model: What it should be; its fields are suggested for unknown ones.
    """
    return [
        {
            "field": path_text(*path, *error["loc"]) or "body",
            "message": _sentence(error, _fields_at(model, error["loc"])),
            "kind": error["type"],
        }
        for error in errors
    ]


def path_text(*path: str | int) -> str:
    """Returns the path to a field as text."""
    return ".".join([str(part) for part in path if part not in (BY_POSITION, BY_NAME)])


def text_of(faults: Iterable[Mapping[str, str]]) -> str:
    """Returns the faults as one text."""
    return "; ".join(f"{fault['field']}: {fault['message']}" for fault in faults)


def _fields_at(model: type[BaseModel] | None, path: Sequence[str | int]) -> Iterable[str]:
    """Returns the names of the fields that the object has in which the path ends."""
    for part in path[:-1]:
        field = model.model_fields.get(str(part)) if model is not None else None
        if field is not None:
            model = _model_in(field.annotation)
    return model.model_fields if model is not None else ()


def _model_in(annotation: Any) -> type[BaseModel] | None:
    """Returns the first model in an annotation such as `list[Model] | None`."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next(filter(None, map(_model_in, get_args(annotation))), None)


def _sentence(error: Facts, known: Iterable[str]) -> str:
    kind, facts = error["type"], error.get("ctx", {})
    if kind == "extra_forbidden":
        facts = {"name": str(error["loc"][-1]), "known": known}
    sentence = _SENTENCES.get(kind)
    if sentence is None:
        return str(error["msg"]).removeprefix("Value error, ")
    if kind in _NOTHING_SENT:
        return sentence(facts)
    if kind == "list_type" and error["loc"][-1] == BY_POSITION:
        return f"must be a list, or an object with members by name; found {_shown(error.get('input'))}"
    actual = len(error["input"]) if kind in _COUNTED else _shown(error.get("input"))
    choices = _QUOTED.findall(facts["expected"]) if kind in _CHOICES else ()
    return with_nearest(f"{sentence(facts)}; found {actual}", error.get("input"), choices)


def _shown(value: Any) -> str:
    """Returns a value as text, or the kind of a longer one."""
    if isinstance(value, list | dict):
        return "a list" if isinstance(value, list) else "an object"
    if isinstance(value, np.ndarray):
        return "a tensor"
    return json.dumps(value, default=lambda other: type(other).__name__)[:60]


#: TensorFlow's names of dtypes that differ from this API's.
_DTYPES: Final = {"half": "float16", "float": "float32", "double": "float64"}
_NUMBERS: Final = {
    "float": "a floating-point number",
    "int": "an integer",
    "bool": "true or false",
    "complex": "a complex number",
}
#: Where a number without a dtype may have become the float32 of two dtypes that do not fit.
_FLOAT32_ALONE: Final = (
    "numbers without a dtype that meet no tensor are float32, "
    'unless the function, run or session has "dtype": "float64"'
)
#: How a text writes an op that has another name in the catalogue.
_WRITTEN: Final = {"numpy_matmul": "@"}
_PLACES: Final = ("the first input", "the second input", "the third input")


def _wrong_dtype(match: re.Match[str], op: str | None, inputs: Sequence[Any]) -> str:
    """Returns which input of an op has the wrong dtype: by its name, and by the caller's for what it holds."""
    expected, actual = (_DTYPES.get(name, name) for name in match.group(3, 4))
    position, record = int(match[2]), CATALOGUE.get(op or "")

    def named(i: int) -> str:
        if record is None or record.op_type != match[1]:  # an op that this one is written on
            return _PLACES[i] if i < len(_PLACES) else f"input number {i + 1}"
        caller = inputs[i] if i < len(inputs) else None
        return f"input {record.input_name(i)}" + (f" ({caller!r})" if isinstance(caller, int | str) else "")

    if position == 0:
        return f"{named(0)} has the dtype {actual}, and must have {expected}: cast it"
    remedy = f"; {_FLOAT32_ALONE}" if {actual, expected} == {"float32", "float64"} else ""
    return f"{named(position)} has the dtype {actual}, but {named(0)} has {expected}: cast one of them{remedy}"


def _dtype_not_taken(match: re.Match[str]) -> str:
    taken = ", ".join(_DTYPES.get(name, name) for name in match[3].split(", ") if name != "string")
    subject = match[1].removeprefix("T") if match[1].startswith("T") and len(match[1]) > 1 else "an input"
    return f"{subject} of dtype {_DTYPES.get(match[2], match[2])}: it must be one of {taken}; cast it"


_WRONG_DTYPE: Final = re.compile(
    r"cannot compute (\w+) as input #(\d+)\(zero-based\) was expected to be an? (\w+) tensor but is an? (\w+) tensor"
)
#: What TensorFlow says, and how this API says it.
_REWORDED: Final[tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], str]], ...]] = tuple(
    (re.compile(pattern), reword)
    for pattern, reword in (
        (r"Value for attr '(T\w*|dtype)' of (\w+) is not in the list of allowed values: ([\w, ]+)", _dtype_not_taken),
        (
            r"Value for attr 'padding' of \"(.*?)\" is not in the list of allowed values: (.*?)(?:\n.*|$)",
            lambda match: with_nearest(
                f"padding must be one of {match[2].rstrip('; ')}; found {json.dumps(match[1])}",
                match[1],
                re.findall(r"\w+", match[2]),
            ),
        ),
        (r"a Python (float|int|bool|complex) cannot", lambda match: f"{_NUMBERS[match[1]]} cannot"),
        (r"\bIn\[([012])\]", lambda match: _PLACES[int(match[1])]),
        (r"\bhas different ndims", lambda match: "have different numbers of axes"),
        (
            r"^A non-persistent GradientTape can only be used to compute one set of gradients \(or jacobians\)",
            lambda match: (
                'the tape has answered already, and is non-persistent: create it with "persistent": true, or ask '
                "several questions in one request"
            ),
        ),
        (
            r"^Tape is still recording.*",
            lambda match: "the tape records already: pause it first, or leave out the command that resumes it",
        ),
        (
            r"^Registering two gradient with name '(\w+)'!",
            lambda match: f"there is a gradient for the op type {match[1]!r} already: use another name",
        ),
        (r"\breplayable=True\b", lambda match: '"replayable": true'),
        (r"^Matrix size-incompatible: ", lambda match: "these matrices cannot be multiplied: "),
        (r"^[A-Z]\w+(?:V\d)?: ", lambda match: ""),
        (r"\btf\.(b?float\d+|complex\d+|u?int\d+)", lambda match: match[1]),
        (r"\bincorrect types: (.*?)\. They", lambda match: f"wrong dtypes: {match[1]}. They"),
    )
)


def plain(message: str, op: str | None, inputs: Sequence[Any] = ()) -> str:
    """Returns an engine's message in the words of this API.

    Args:
        message: About a command that failed.
        op: The op that failed, if there is one.
        inputs: The names of its inputs, as the caller knows them; others for numbers and arrays.
    """
    message = _WRONG_DTYPE.sub(lambda match: _wrong_dtype(match, op, inputs), message)
    for pattern, reword in _REWORDED:
        message = pattern.sub(reword, message)
    return message


def located(message: str, details: Facts, verb: str | None = None) -> str:
    """Returns a failure's message in the words of this API, after the place of what failed.

    Args:
        message: The engine's.
        details: Of the error: `op`, `inputs`; inside a function `step`, `where` and `function`; of one command among
            several `command`.
        verb: Of the command that failed.
    """
    op, inputs = details.get("op"), details.get("inputs", ())
    text = plain(message, op, inputs)
    called = f"op {op!r}" if op is not None else verb
    if "step" in details:
        function = details.get("function")
        holder = f"function {function!r}, " if function is not None and not str(function).startswith("_") else ""
        names = ", ".join([repr(name) for name in inputs if isinstance(name, int | str)])
        if details.get("where") and op in _WRITTEN:  # the step comes from a text
            called = repr(_WRITTEN[op])
        facts = [f"{called} of {names}" if op is not None and names else called, details.get("where")]
        place = f"{holder}step {details['step']} ({'; '.join([fact for fact in facts if fact])})"
        return f"command {details['command']}: {place}: {text}" if "command" in details else f"{place}: {text}"
    if "command" in details:
        return f"command {details['command']} ({called}): {text}" if called else f"command {details['command']}: {text}"
    return text if op is None or f"op {op!r}" in text else f"op {op!r}: {text}"
