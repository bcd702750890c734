"""Writes client/teletape/ops/derived: one Python function for each record of a TensorFlow function in the catalogue.

Run by `make reference`, after a change of an op or of its record. The text is plain Python: a call costs no more than
that of a function written by hand, and debuggers, mypy and editors see ordinary functions.
"""

from __future__ import annotations

import subprocess
import sys
import textwrap
from collections.abc import Collection
from pathlib import Path
from typing import Any

import numpy as np

from teletape_engine.catalogue.op import CATALOGUE, Op
from teletape_engine.catalogue.signature import INPUTS, REQUIRED, Argument, Conversion, Function, filled
from teletape_engine.ops import FAMILIES

FOLDER = Path(__file__).resolve().parent.parent / "client" / "teletape" / "ops" / "derived"
HEAD = '''\
"""TensorFlow's functions of {module}.

Written by `make reference` from the catalogue: change the ops' records there, not this file.
"""

from __future__ import annotations
'''
TYPES = {
    **dict.fromkeys(INPUTS, "to.TensorInput"),
    Conversion.TENSORS: "Iterable[to.TensorInput]",
    Conversion.SHARDS: "to.TensorInput | Sequence[to.TensorInput]",
    Conversion.FLAG: "bool",
    Conversion.CONJUGATE: "bool",
    Conversion.INT: "to.IntInput",
    Conversion.ONE_INT: "to.IntsInput",
    Conversion.AXIS: "to.IntInput",
    Conversion.INTS: "to.IntsInput",
    Conversion.LENGTHS: "to.IntsInput",
    Conversion.AXES: "to.IntsInput",
    Conversion.DIAGONAL: "to.IntsInput",
    Conversion.WINDOW: "to.IntsInput",
    Conversion.PADDING: "to.PaddingInput",
    Conversion.PADDING_WORD: "str",
    Conversion.NUMBER: "to.NumberInput",
    Conversion.REAL: "float | TensorLike",
    Conversion.DTYPE: "to.DTypeInput",
    Conversion.AS_IS: "str",
    Conversion.CHANNELS_LAST: "str",
    Conversion.SAME_DTYPE: "to.DTypeInput",
}


def files() -> dict[Path, str]:
    """The text of every file of the folder."""
    modules: dict[str, list[tuple[Op, Function]]] = {}
    for family in FAMILIES:
        for op in CATALOGUE.values():
            if (op.expand or op.forward).__module__ == family.__name__:
                last = family.__name__.rpartition(".")[2]
                modules.setdefault(last, []).extend((op, entry) for entry in op.functions if not entry.by_hand)
    texts = {f"{name}.py": _module(name, entries) for name, entries in modules.items() if entries}
    texts["__init__.py"] = _index({name: entries for name, entries in modules.items() if entries})
    return {FOLDER / name: _formatted(text) for name, text in texts.items()}


def _index(modules: dict[str, list[tuple[Op, Function]]]) -> str:
    names = {
        name: f"{module}.{_python_name(entry)}"
        for module, entries in modules.items()
        for _, entry in entries
        for name in entry.names
    }
    lines = [
        '"""TensorFlow\'s functions that are one call of an op, written by `make reference` from the ops\' records."""',
        "from __future__ import annotations",
        "from collections.abc import Callable",
        "from typing import Any, Final",
        f"from teletape.ops.derived import {', '.join(sorted(modules))}",
        "#: The functions by TensorFlow's names without the leading `tf.`.",
        "DERIVED: Final[dict[str, Callable[..., Any]]] = {",
        *(f"    {name!r}: {where}," for name, where in sorted(names.items())),
        "}",
    ]
    return "\n".join(lines)


def _module(family: str, entries: list[tuple[Op, Function]]) -> str:
    body = "\n\n".join(_definition(op, entry) for op, entry in entries)
    ops = {op.name: f"{_constant(op)} = ops.{op.name}" for op, _ in entries}
    return "\n".join(
        [
            HEAD.format(
                module=entries[0][0].forward.__module__
                if entries[0][0].expand is None
                else entries[0][0].expand.__module__
            ),
            IMPORTS,
            *ops.values(),
            "",
            body,
        ]
    )


#: ruff removes the imports that a module does not use.
IMPORTS = """\
from collections.abc import Iterable, Sequence
from typing import Any

from teletape.ops import arguments as to
from teletape.ops import checks
from teletape.ops.dispatch import call
from teletape.tensors import dtypes
from teletape.tensors.tensor import Tensor, TensorLike
from teletape_engine.catalogue.namespace import ops
"""


def _constant(op: Op) -> str:
    return f"_{op.name}".upper()


def _python_name(entry: Function) -> str:
    return entry.names[0].rpartition(".")[2]


def _definition(op: Op, entry: Function) -> str:
    """The whole function as text."""
    lines = [f"def {_python_name(entry)}({', '.join(_parameters(entry))}) -> Tensor:"]
    lines += textwrap.indent(
        f'"""{entry.doc or op.doc}"""' if "\n" not in (entry.doc or op.doc) else _long(op, entry), "    "
    ).split("\n")
    lines += [f"    {line}" for line in _body(op, entry)]
    return "\n".join(lines)


def _long(op: Op, entry: Function) -> str:
    return f'"""{entry.doc or op.doc}\n"""'


def _parameters(entry: Function) -> list[str]:
    written = []
    for argument in entry.arguments:
        if argument.conversion is Conversion.EACH:
            written.append(f"*{argument.name}: Any")
            continue
        declared = "str | None" if argument.name == "name" else TYPES.get(argument.conversion, "Any")
        if argument.default is None and declared not in ("Any", "str | None"):
            declared += " | None"
        default = "" if argument.default is REQUIRED else f" = {_default(argument.default)}"
        written.append(f"{argument.name}: {declared}{default}")
    return written


def _default(value: Any) -> str:
    return f"dtypes.{value.name}" if isinstance(value, np.dtype) else repr(value)


def _body(op: Op, entry: Function) -> list[str]:
    function, targets = _python_name(entry), filled(entry, op.inputs)
    by_target = {target: name for name, target in targets.items()}
    lines = []
    for argument in entry.arguments:
        if argument.conversion is Conversion.CHANNELS_LAST:
            lines.append(f"to.channels_last({argument.name})")
        elif argument.conversion is Conversion.NOT_OFFERED:
            lines.append(f"to.not_offered({argument.name}, {function!r}, {argument.name!r})")
    names = {argument.name for argument in entry.arguments if argument.conversion in INPUTS}
    lines += [f"{argument.name} = {_input(argument)}" for argument in _ordered(entry) if _input(argument)]
    for argument in entry.arguments:
        if argument.conversion is Conversion.SAME_DTYPE:
            lines.append(f"if {argument.name} is not None:")
            lines.append(f"    to.same_dtype({argument.name}, {argument.of}, {function!r}, {argument.name!r})")
    read = names | {
        argument.name
        for argument in entry.arguments
        if argument.conversion in (Conversion.CHECKED, Conversion.AS_IS, Conversion.DTYPE)
    }
    passed = ", ".join(argument.name for argument in entry.arguments if argument.name in read)
    if entry.check:
        lines.append(f"checks.{entry.check}({passed})")
    if entry.shortcut:
        lines += [f"result = checks.{entry.shortcut}({passed})", "if result is not None:", "    return result"]
    return lines + _call(op, entry, by_target)


def _ordered(entry: Function) -> list[Argument]:
    """The arguments, those that a conversion of another reads before it."""
    readers = {argument.name: argument.of for argument in entry.arguments}
    return sorted(entry.arguments, key=lambda argument: bool(argument.of) and not readers.get(argument.of))


def _input(argument: Argument) -> str:
    """What becomes of an input; empty: it is passed as it is."""
    if argument.conversion not in INPUTS or argument.conversion is Conversion.OPERAND:
        return ""
    return f"to.{argument.conversion.value}({', '.join([argument.name, *([argument.of] if argument.of else [])])})"


def _call(op: Op, entry: Function, by_target: dict[str, str]) -> list[str]:
    """The call of the op: attributes that are usually left out are added only if they differ from their default."""
    inputs = [by_target[name] for name in op.inputs]
    many = op.variadic
    args = inputs[0] if many else f"({inputs[0]},)" if len(inputs) == 1 else f"({', '.join(inputs)})"
    always, sometimes = [], []
    defaults = {attr.name: attr.default for attr in op.schema.attrs}
    targets = filled(entry, op.inputs)
    for argument in entry.arguments:
        target = targets.get(argument.name)
        if target is None or argument.conversion in INPUTS:
            continue
        text = _attribute(op, argument)
        usual = argument.default is None or (
            argument.default is defaults[target] and isinstance(argument.default, bool)
        )
        if argument.conversion is Conversion.PADDING:
            always.append(("", text))
        elif usual and argument.conversion is not Conversion.AXIS:
            sometimes.append((argument, target, text))
        else:
            always.append((target, text))
    written = ", ".join(f"{target}={text}" if target else f"**{text}" for target, text in always)
    lines = []
    if sometimes:
        known = ", ".join(f"{target!r}: {text}" if target else f"**{text}" for target, text in always)
        lines.append(f"attrs: dict[str, Any] = {{{known}}}")
        for argument, target, text in sometimes:
            lines += [f"if {argument.name} is not {argument.default!r}:", f"    attrs[{target!r}] = {text}"]
        written = "**attrs"
    call = f"call({', '.join([_constant(op), args, *([written] if written else [])])})"
    conjugate = [argument.name for argument in entry.arguments if argument.conversion is Conversion.CONJUGATE]
    if not conjugate:
        return [*lines, f"return {call}"]
    return [*lines, f"result = {call}", f"return to.conjugate(result) if {conjugate[0]} else result"]


def _attribute(op: Op, argument: Argument) -> str:
    name, conversion = argument.name, argument.conversion
    if conversion is Conversion.AS_IS:
        return name
    extra = {
        Conversion.INTS: [repr(name)],
        Conversion.LENGTHS: [repr(argument.of or op.op_type)],
        Conversion.ONE_INT: [repr(name), repr(op.op_type)],
        Conversion.AXIS: [argument.of],
        Conversion.WINDOW: [repr(name)],
    }.get(conversion, [])
    return f"to.{conversion.value}({', '.join([name, *extra])})"


def _formatted(text: str) -> str:
    """The text without unused imports, laid out as ruff does."""
    ruff = str(Path(sys.executable).with_name("ruff"))
    for command in (["check", "--fix-only", "--quiet", "--select", "F401,I"], ["format"]):
        text = subprocess.run(
            [ruff, *command, "--stdin-filename", str(FOLDER / "written.py"), "-"],
            input=text,
            capture_output=True,
            text=True,
            check=True,
        ).stdout
    return text


def others(texts: Collection[Path]) -> list[Path]:
    """Files of the folder that are not among these."""
    return sorted(path for path in FOLDER.glob("*.py") if path not in texts)
