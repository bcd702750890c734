"""The stub of the namespace of ops: names and signatures for type checkers and editors, from the catalogue."""

from pathlib import Path

from teletape_engine import spec
from teletape_engine.catalogue import namespace
from teletape_engine.catalogue.attributes import REQUIRED, Attr
from teletape_engine.catalogue.define import camel_case
from teletape_engine.catalogue.op import CATALOGUE, Op

STUB = Path(namespace.__file__).with_suffix(".pyi")
WIDTH = 120
HEAD = '''\
"""Written by `make reference` from the catalogue; a test holds it current. See `namespace.py`."""

from typing import Final

from teletape_engine.catalogue.attributes import {kinds}
from teletape_engine.catalogue.op import Op
from teletape_engine.catalogue.operand import Operand, Term
from teletape_engine.spec import {specs}

'''


def stub() -> str:
    """The whole file."""
    kinds = {attr.kind for op in CATALOGUE.values() for attr in op.schema.attrs} - {"bool", "int", "float", "str"}
    of_specs = {kind for kind in kinds if hasattr(spec, kind)}
    parts = [HEAD.format(kinds=", ".join(sorted(kinds - of_specs)), specs=", ".join(sorted(of_specs)))]
    parts += [f"class {class_name(op)}(Op):\n{call(op)}\n\n" for op in ordered()]
    parts.append("class Ops:\n")
    parts += [f"    {op.name}: Final[{class_name(op)}]\n" for op in ordered()]
    return "".join(parts) + "\nops: Final[Ops]\n"


def ordered() -> list[Op]:
    """The ops by name."""
    return [CATALOGUE[name] for name in sorted(CATALOGUE)]


def class_name(op: Op) -> str:
    """The stub's class for one op."""
    return f"_{camel_case(op.name)}"


def call(op: Op) -> str:
    """The method that a call inside a rule is: arrays by position, attributes by keyword; laid out as ruff does."""
    arrays = [f"*{op.inputs[0]}: Term"] if op.variadic else [*(f"{name}: Term" for name in op.inputs), "/"]
    attrs = [attribute(attr) for attr in op.schema.attrs]
    parameters = ["self", *(arrays if op.inputs else ()), *(["*"] if attrs and not op.variadic else []), *attrs]
    result = "Operand" if len(op.results) == 1 else f"tuple[{', '.join(['Operand'] * len(op.results))}]"
    ignored = "" if len(op.results) == 1 else "  # type: ignore[override]"
    line = f"    def __call__({', '.join(parameters)}) -> {result}: ...{ignored}"
    if len(line) <= WIDTH:
        return line
    inside = f"        {', '.join(parameters)}"
    if len(inside) > WIDTH:
        inside = "\n".join(f"        {parameter}," for parameter in parameters)
    return f"    def __call__({ignored}\n{inside}\n    ) -> {result}: ..."


def attribute(attr: Attr) -> str:
    """One attribute with its type. A dtype may be given by name."""
    kind = f"{attr.kind} | str" if attr.kind == "DType" else attr.kind
    kind += " | None" if attr.optional and attr.kind != "Axes" else ""
    return f"{attr.name}: {kind}" + ("" if attr.default is REQUIRED else " = ...")
