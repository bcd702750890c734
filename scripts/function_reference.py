"""Writes docs/reference-functions.md: the SDK's functions on tensors, by their names in TensorFlow.

A function that is one call of an op is described where the op is. The others say in their docstrings what they do, and
show a call under "Example:", which is run when the page is written.
"""

import inspect
import re
import textwrap
from collections.abc import Callable
from pathlib import Path
from types import FunctionType
from typing import Any, NamedTuple

import examples
import public_surface
from op_reference import anchor

from teletape.extras import raw_ops as raw
from teletape_engine.catalogue.op import CATALOGUE, Op

PAGE = Path(__file__).resolve().parent.parent / "docs" / "reference-functions.md"
#: The modules on the page, in its order, with a title.
MODULES = {
    "": "tf",
    "math": "tf.math",
    "linalg": "tf.linalg",
    "linalg.experimental": "tf.linalg.experimental",
    "nn": "tf.nn",
    "nn.experimental": "tf.nn.experimental",
    "signal": "tf.signal",
    "image": "tf.image",
    "audio": "tf.audio",
    "random": "tf.random",
    "random.experimental": "tf.random.experimental",
    "strings": "tf.strings",
    "ragged": "tf.ragged",
    "sparse": "tf.sparse",
    "sets": "tf.sets",
    "bitwise": "tf.bitwise",
    "raw_ops": "tf.raw_ops",
}
HEAD = """\
# The functions

Written by `make reference` from the SDK; a test holds it current. TensorFlow's functions on tensors that the SDK has,
by module. [The ops](reference.md) are what they are made of, and what a caller of REST or of the protocol names;
[compatibility.md](compatibility.md) has every name of TensorFlow with what is missing.

A function in a list is one call of the op that it links to, whose entry says what it does. The other functions have
entries of their own here. Their examples ran when this page was written: the result, the ops that the tape recorded and
which inputs have a gradient are what the run gave ("None": no path, and `tape.explain` says why). An array of more than
{shown} elements is shown as its dtype and shape.

"""

#: The op of each of TensorFlow's names that is one call of it.
_OPS = {name: op for op in CATALOGUE.values() for function in op.functions for name in function.names}
#: Where the SDK defines what is on the page; the rest of `tf` is about sessions, functions, devices and types.
HOMES = tuple(
    f"teletape.{name}."
    for name in (
        "_generated",
        "core.calls",
        "core.derivatives",
        "extras.audio",
        "extras.linear_operators",
        "extras.ragged_tensors.forms",
        "extras.ragged_tensors.functions",
        "extras.sparse_tensors",
        "extras.text",
        "tf.control_flow",
        "tf.files",
        "tf.ops",
        "tf.sessions.reading",
    )
)


class Subject(NamedTuple):
    """What one entry is about: a function or class, the module that it is listed under, and its names."""

    value: Callable[..., Any]
    path: str
    names: tuple[str, ...]


def page() -> str:
    """The whole page."""
    parts = [HEAD.format(shown=examples.SHOWN)]
    all_subjects = subjects()
    for path, title in MODULES.items():
        own = [subject for subject in all_subjects if subject.path == path]
        calls = "".join(_line(subject) for subject in own if _op(subject))
        parts.append(f"## {title}\n\n{calls}\n" if calls else f"## {title}\n\n")
        parts += [_entry(subject) for subject in own if not _op(subject)]
    parts.append("These take their arguments by name alone.\n\n")
    parts += [_raw_line(function) for _, function in sorted(public_surface.by_module()["raw_ops"].items())]
    return "".join(parts).rstrip() + "\n"


def without_example() -> list[str]:
    """The functions that an entry is about and whose docstrings show no call."""
    return [
        subject.names[0]
        for subject in subjects()
        if isinstance(subject.value, FunctionType) and not _op(subject) and not examples.expression(subject.value)
    ]


def subjects() -> list[Subject]:
    """What is on the page, each once, by its first name; a name in a module goes before one in `tf` itself."""
    names: dict[Callable[..., Any], list[str]] = {}
    modules = public_surface.by_module()
    for path in (*list(MODULES)[1:], ""):
        for name, value in modules.get(path, {}).items():
            at_home = isinstance(value, FunctionType | type) and f"{value.__module__}.".startswith(HOMES)
            if at_home and not _raw(value) and not inspect.iscoroutinefunction(value):  # its example takes a loop
                names.setdefault(value, []).append(f"{path}.{name}".lstrip("."))
    listed = [Subject(value, own[0].rpartition(".")[0], tuple(own)) for value, own in names.items()]
    return sorted(listed, key=lambda subject: subject.names[0].lower())


def _op(subject: Subject) -> Op | None:
    """The op that a function is one call of."""
    return _OPS.get(subject.names[0]) if "._generated." in subject.value.__module__ else None


def _line(subject: Subject) -> str:
    op = _op(subject)
    assert op is not None
    names = ", ".join(f"`tf.{name}`" for name in subject.names)
    return f"* {names}: [{op.name}](reference.md#{anchor(op)})\n"


def _raw(value: Any) -> bool:
    """Whether a value is a function of the table of `tf.raw_ops`."""
    return bool(value.__module__ == raw.__name__)


def _raw_line(function: Callable[..., Any]) -> str:
    parameters = inspect.signature(function).parameters.values()
    arguments = ", ".join(str(parameter).removeprefix("*, ") for parameter in parameters)
    return f"* `tf.raw_ops.{function.__name__}({arguments.removesuffix(', name=None')})`: {function.__doc__}\n"


def _entry(subject: Subject) -> str:
    value = subject.value
    title = f"### tf.{subject.names[0]}{_signature(value)}\n\n"
    others = "Also " + ", ".join(f"`tf.{name}`" for name in subject.names[1:]) + ". " if subject.names[1:] else ""
    paragraph = (inspect.getdoc(value) or "").split("\n\n")[0].partition("By hand:")[0]
    summary = " ".join(paragraph.split())
    text = title + "\n".join(textwrap.wrap(others + summary, 120, break_on_hyphens=False)) + "\n"
    if isinstance(value, type):
        members = [
            name for name, member in inspect.getmembers(value) if name[0] != "_" and not isinstance(member, type)
        ]
        return f"{text}\n*members: {', '.join(f'`{name}`' for name in members)}*\n\n" if members else f"{text}\n"
    source = examples.expression(value)
    if source is None:
        return f"{text}\n"
    run = examples.of_function(source)
    facts = ([f"ops: {', '.join(run.ops)}"] if run.ops else []) + [
        f"gradient of {name}: {gradient}" for name, gradient in run.gradients.items()
    ]
    example = f"\n    {source}\n    → {run.result}\n"
    return text + example + (f"\n*{' · '.join(facts)}*\n\n" if facts else "\n")


def _signature(value: Callable[..., Any]) -> str:
    """The arguments without their types."""
    try:
        signature = inspect.signature(value)
    except (TypeError, ValueError):
        return "(…)"
    parameters = [parameter.replace(annotation=parameter.empty) for parameter in signature.parameters.values()]
    text = str(signature.replace(parameters=parameters, return_annotation=signature.empty))
    return re.sub(r"<function (\w+) at \w+>", r"\1", text)
