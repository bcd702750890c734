"""Writes client/teletape/_generated: one Python function for each record of a TensorFlow function in the catalogue.

Run by `make reference`, after a change of an op or of its record, and before the rest of it, which imports the SDK and
may need a new function. With --check nothing is written. The text is plain Python: a call costs no more than that of a
function written by hand, and debuggers, mypy and editors see ordinary functions.
"""

from __future__ import annotations

import importlib
import subprocess
import sys
import textwrap
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from teletape_engine import ops as engine_ops
from teletape_engine.catalogue.op import CATALOGUE, Op
from teletape_engine.catalogue.signature import INPUTS, REQUIRED, Argument, Conversion, PublicFunction, filled
from teletape_engine.ops import FAMILIES

FOLDER = Path(__file__).resolve().parent.parent / "client" / "teletape" / "_generated"
HEAD = '''\
"""TensorFlow's functions of {module}.

Written by `make reference` from the catalogue: change the ops' records there, not this file.
"""

from __future__ import annotations
'''
FOLDER_OF_ALL = (
    '"""TensorFlow\'s functions that are one call of an op, written by `make reference` from their records."""\n'
)
FOLDER_HEAD = '"""TensorFlow\'s functions of teletape_engine.ops.{folder}, written by `make reference`."""\n'
TYPES = {
    **dict.fromkeys(INPUTS, "to.TensorInput"),
    Conversion.TENSORS: "Iterable[to.TensorInput]",
    Conversion.FLAG: "bool",
    Conversion.CONJUGATE: "bool",
    Conversion.INT: "to.IntInput",
    Conversion.ONE_INT: "to.IntsInput",
    Conversion.AXIS: "to.IntInput",
    Conversion.INTS: "to.IntsInput",
    Conversion.LENGTHS: "to.IntsInput",
    Conversion.AXES: "to.IntsInput",
    Conversion.PAIRS: "to.PaddingInput",
    Conversion.CHANNELS_FIRST: "str",
    Conversion.NUMBER: "to.NumberInput",
    Conversion.REAL: "float | TensorLike",
    Conversion.DTYPE: "to.DTypeInput",
    Conversion.AS_IS: "str",
    Conversion.PRODUCT_DTYPE: "to.DTypeInput",
}


#: ruff removes the imports that a module does not use.
IMPORTS = """\
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from teletape.core.calls import arguments as to
from teletape.core.calls import checks
from teletape.core.calls.dispatch import call
from teletape.core.tensors import dtypes
from teletape.core.tensors.tensor import Tensor, TensorLike
from teletape.core.program.tracebacks import report
from teletape_engine.catalogue.namespace import ops
"""


# --------------------------------------------------------------------------------------------------------------- files
def files() -> dict[Path, str]:
    """The text of every file of the folder: one for each family of ops that has such functions."""
    modules = _modules()
    texts = {
        FOLDER.joinpath(*_place(module)).with_suffix(".py"): _module(module, rows) for module, rows in modules.items()
    }
    texts |= {path.parent / "__init__.py": FOLDER_HEAD.format(folder=path.parent.name) for path in texts}
    texts[FOLDER / "__init__.py"] = FOLDER_OF_ALL
    return {path: formatted(text, path, "F401,I") for path, text in texts.items()}


def _modules() -> dict[str, list[tuple[Op, PublicFunction]]]:
    """The records of functions that are generated, by the module of their ops."""
    modules: dict[str, list[tuple[Op, PublicFunction]]] = {}
    for family in FAMILIES:
        records = [
            (op, record)
            for op in CATALOGUE.values()
            if (op.expand or op.forward).__module__ == family.__name__
            for record in op.functions
            if not record.by_hand
        ]
        if records:
            modules[family.__name__] = records
    return modules


def derived() -> dict[str, Callable[..., Any]]:
    """Returns every generated function, by its public names without the leading `tf.`."""
    return {
        name: getattr(
            importlib.import_module(".".join(["teletape._generated", *_place(module)])), _last(record.names[0])
        )
        for module, records in _modules().items()
        for _, record in records
        for name in record.names
    }


def others(texts: Collection[Path]) -> list[Path]:
    """Files of the folder that are not among these."""
    return sorted(path for path in FOLDER.rglob("*.py") if path not in texts)


def formatted(text: str, path: Path, rules: str) -> str:
    """Python text as ruff lays it out, after it has mended what it can of these rules."""
    ruff = str(Path(sys.executable).with_name("ruff"))
    for command in (["check", "--fix-only", "--quiet", "--select", rules], ["format"]):
        command = [ruff, *command, "--stdin-filename", str(path), "-"]
        text = subprocess.run(command, input=text, capture_output=True, text=True, check=True).stdout
    return text


def _last(dotted: str) -> str:
    return dotted.rpartition(".")[2]


def _place(module: str) -> list[str]:
    """Where the functions of a family are, below the folder: as the family is below the engine's ops."""
    return module.removeprefix(f"{engine_ops.__name__}.").split(".")


def _module(module: str, records: list[tuple[Op, PublicFunction]]) -> str:
    constants = {op.name: f"{_constant(op)} = ops.{op.name}" for op, _ in records}
    tuples = {record.named: _tuple(op, record) for op, record in records if record.named}
    functions = [_function(op, record) for op, record in records]
    parts = [HEAD.format(module=module), IMPORTS, "\n".join(constants.values()), *tuples.values(), *functions]
    return "\n\n".join(parts)


def _constant(op: Op) -> str:
    return f"_{op.name}".upper()


def _tuple(op: Op, record: PublicFunction) -> str:
    fields = "".join(f"    {name}: Tensor\n" for name in op.results)
    return f'class {record.named}(NamedTuple):\n    """The results of {_last(record.names[0])}."""\n\n{fields}'


# ----------------------------------------------------------------------------------------------------------- functions
def _function(op: Op, record: PublicFunction) -> str:
    """One function: its arguments, documentation, conversions, check, shortcut and call."""
    documentation = record.doc or op.doc
    if "\n" in documentation:
        documentation += "\n"
    body = [
        *_refusals(record),
        *(f"{argument.name} = {_input(argument)}" for argument in _in_order(record) if _input(argument)),
        *_dtype_checks(record),
        *_checks(record),
        *_call(op, record),
    ]
    head = f"def {_last(record.names[0])}({', '.join(map(_parameter, record.arguments))}) -> {_returned(op, record)}:"
    lines = [f'"""{documentation}"""', "try:", textwrap.indent("\n".join(body), "    "), _REPORTS]
    return "\n".join([head, textwrap.indent("\n".join(lines), "    ")])


def _returned(op: Op, record: PublicFunction) -> str:
    """The type of what the function returns."""
    if len(op.results) == 1:
        return "Tensor"
    return record.named or f"tuple[{', '.join(['Tensor'] * len(op.results))}]"


#: What a function does with an exception: see `teletape.core.program.tracebacks`.
_REPORTS = """\
except BaseException as error:
    report(error)
    raise"""


def _parameter(argument: Argument) -> str:
    if argument.conversion is Conversion.EACH:
        return f"*{argument.name}: Any"
    declared = "str | None" if argument.name == "name" else TYPES.get(argument.conversion, "Any")
    if argument.default is REQUIRED:
        return f"{argument.name}: {declared}"
    if argument.default is None and declared not in ("Any", "str | None"):
        declared += " | None"
    default = argument.default
    return (
        f"{argument.name}: {declared} = {f'dtypes.{default.name}' if isinstance(default, np.dtype) else repr(default)}"
    )


def _refusals(record: PublicFunction) -> list[str]:
    """Checks of arguments that reach no op."""
    calls = {
        Conversion.NOT_OFFERED: "to.not_offered({name}, {function!r}, {name!r})",
    }
    return [
        calls[argument.conversion].format(name=argument.name, function=_last(record.names[0]))
        for argument in record.arguments
        if argument.conversion in calls
    ]


def _in_order(record: PublicFunction) -> list[Argument]:
    """The arguments, with those that another's conversion reads before it."""
    read_by = {argument.name: argument.of for argument in record.arguments}
    return sorted(record.arguments, key=lambda argument: bool(argument.of) and not read_by.get(argument.of))


def _input(argument: Argument) -> str:
    """The conversion of an input; empty: it is passed as it is."""
    if argument.conversion not in INPUTS or argument.conversion is Conversion.OPERAND:
        return ""
    return f"to.{argument.conversion.value}({', '.join(filter(None, (argument.name, argument.of)))})"


def _dtype_checks(record: PublicFunction) -> list[str]:
    function = _last(record.names[0])
    return [
        f"if {argument.name} is not None:\n"
        f"    a, b = to.factors_of({argument.name}, a, b, {function!r}, {argument.name!r})"
        for argument in record.arguments
        if argument.conversion is Conversion.PRODUCT_DTYPE
    ]


def _checks(record: PublicFunction) -> list[str]:
    """The check and the shortcut, which read the inputs and some other arguments, in the function's order."""
    conversions = {*INPUTS, Conversion.CHECKED, Conversion.AS_IS, Conversion.REAL, Conversion.DTYPE}
    read = ", ".join(argument.name for argument in record.arguments if argument.conversion in conversions)
    lines = [f"checks.{record.check}({read})"] if record.check else []
    if record.shortcut:
        lines += [f"result = checks.{record.shortcut}({read})", "if result is not None:\n    return result"]
    return lines


# ---------------------------------------------------------------------------------------------------------------- call
def _call(op: Op, record: PublicFunction) -> list[str]:
    """The call of the op. Attributes that most calls leave out are added only if they are not at their default."""
    targets = filled(record, op.inputs)
    usual = {attr.name: attr.default for attr in op.schema.attrs}
    keywords, entries, optional = [], [], []
    for argument in record.arguments:
        target = targets.get(argument.name)
        if target is None or argument.conversion in INPUTS:
            continue
        value = _attribute(op, argument)
        flag = isinstance(argument.default, bool) and argument.default is usual[target]
        if (flag or argument.default is None) and argument.conversion is not Conversion.AXIS:
            optional.append(f"if {argument.name} is not {argument.default!r}:\n    attrs[{target!r}] = {value}")
        else:
            keywords.append(f"{target}={value}")
            entries.append(f"{target!r}: {value}")
    lines = [f"attrs: dict[str, Any] = {{{', '.join(entries)}}}", *optional] if optional else []
    call = f"call({', '.join([_constant(op), _inputs(op, targets), *(['**attrs'] if optional else keywords)])})"
    conjugated = [argument.name for argument in record.arguments if argument.conversion is Conversion.CONJUGATE]
    if record.named:
        return [*lines, f"return {record.named}(*{call})"]
    if len(op.results) > 1:
        results = ", ".join(op.results)
        return [*lines, f"{results} = {call}", f"return {results}"]
    if not conjugated:
        return [*lines, f"return {call}"]
    return [*lines, f"result = {call}", f"return to.conjugate(result) if {conjugated[0]} else result"]


def _inputs(op: Op, targets: Mapping[str, str]) -> str:
    by_target = {target: name for name, target in targets.items()}
    names = [by_target[name] for name in op.inputs]
    if op.variadic:
        return names[0]
    return f"({names[0]},)" if len(names) == 1 else f"({', '.join(names)})"


def _attribute(op: Op, argument: Argument) -> str:
    """The conversion of an attribute."""
    name, conversion = argument.name, argument.conversion
    if conversion is Conversion.AS_IS:
        return name
    also_read = {
        Conversion.INTS: [repr(name)],
        Conversion.LENGTHS: [repr(argument.of or op.op_type)],
        Conversion.ONE_INT: [repr(name), repr(op.op_type)],
        Conversion.AXIS: [argument.of],
    }
    return f"to.{conversion.value}({', '.join([name, *also_read.get(conversion, [])])})"


if __name__ == "__main__" and "--check" not in sys.argv:
    for file, written in files().items():
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(written, encoding="utf-8")
