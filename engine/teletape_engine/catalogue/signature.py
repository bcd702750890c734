"""TensorFlow's public functions of an op, as data: names, arguments, defaults, and what becomes of each argument.

The SDK's functions (teletape._generated), its stubs and the names that commands accept are written from these records.
A `Conversion` is one of a closed set: teletape.core.calls.arguments has the function that carries each one out.
"""

from __future__ import annotations

import enum
import inspect
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from teletape_engine.catalogue.attributes import Schema

REQUIRED: Final = inspect.Parameter.empty
#: Names in NumPy and SciPy of what ops compute that are called otherwise here.
NUMPY_NAMES: Final = {
    "absolute": "abs",
    "all": "reduce_all",
    "amax": "reduce_max",
    "amin": "reduce_min",
    "any": "reduce_any",
    "arccos": "acos",
    "arccosh": "acosh",
    "arcsin": "asin",
    "arcsinh": "asinh",
    "arctan": "atan",
    "arctan2": "atan2",
    "arctanh": "atanh",
    "around": "round",
    "bitwise_invert": "invert",
    "bitwise_left_shift": "left_shift",
    "bitwise_not": "invert",
    "bitwise_right_shift": "right_shift",
    "clip": "clip_by_value",
    "concatenate": "concat",
    "conjugate": "conj",
    "cumulative_prod": "cumprod",
    "cumulative_sum": "cumsum",
    "diagonal": "diag_part",
    "expit": "sigmoid",
    "fabs": "abs",
    "flip": "reverse",
    "floor_divide": "floordiv",
    "fmod": "truncatemod",
    "gammaln": "lgamma",
    "i0": "bessel_i0",
    "inverse": "inv",
    "logsumexp": "reduce_logsumexp",
    "max": "reduce_max",
    "mean": "reduce_mean",
    "min": "reduce_min",
    "norm": "reduce_euclidean_norm",
    "permute_dims": "transpose",
    "power": "pow",
    "prod": "reduce_prod",
    "remainder": "floormod",
    "std": "reduce_std",
    "sum": "reduce_sum",
    "take": "gather",
    "true_divide": "div",
    "var": "reduce_variance",
}


class Conversion(enum.StrEnum):
    """How an argument of a TensorFlow function becomes an input or an attribute of the op."""

    def __call__(self, name: str, default: Any = REQUIRED, *, to: str = "", of: str = "") -> Argument:
        """The argument of that name with this conversion: Conversion.AXES("axis", None)."""
        return Argument(name, self, default, to, of)

    # Inputs.
    OPERAND = "operand"  #: as it is; a value that is no tensor takes the dtype of the inputs that are
    TENSOR = "tensor"  #: a tensor first, by itself; a variable is read
    SLICES = "slices_or_tensor"  #: as TENSOR, but composites, such as IndexedSlices, stay as they are
    VALUE = "value"  #: as TENSOR, but a variable stays a variable
    HINTED = "hinted"  #: as VALUE; a value that is no tensor takes the dtype of argument `of` if it fits
    LIKE = "like"  #: as VALUE; a value that is no tensor takes the dtype of argument `of`
    CAST = "cast"  #: as LIKE, and a tensor of another dtype is cast to that of argument `of`
    BOOL = "bool_tensor"  #: a bool tensor; another dtype is an error
    INT32 = "int32_tensor"  #: a tensor; lists and arrays become int32
    FLOAT = "float_tensor"  #: a tensor; integers become float32
    SINGLE = "single_tensor"  #: as VALUE; numbers, lists and arrays as float32 (core.calls.arguments.by_default)
    COMPLEX = "complex_tensor"  #: as VALUE; numbers, lists and arrays as complex64 (the same)
    TENSORS = "tensors"  #: a list of tensors, variables and IndexedSlices, at least one
    EACH = "each"  #: any number of arguments, or one list of them; as OPERAND
    # Attributes.
    FLAG = "flag"
    INT = "whole"  #: one number, also a tensor of one
    INTS = "ints"  #: numbers, from a list, an array, a TensorShape or a tensor
    LENGTHS = "lengths"  #: INTS, none negative
    ONE_INT = "one_int"  #: INT, also a list of one
    AXES = "axes"  #: one axis, several, or None
    AXIS = "axis"  #: one axis; None: argument `of`, or the last axis
    PAIRS = "pairs"  #: pairs [before, after]
    CHANNELS_FIRST = "channels_first"  #: whether a data format begins with NC
    NUMBER = "number"
    REAL = "real_number"
    DTYPE = "dtype"
    AS_IS = "as_is"
    # Neither.
    IGNORED = "ignored"  #: accepted, without effect
    PRODUCT_DTYPE = "product_dtype"  #: None, the dtype of arguments a and b, or int32 for those of 8 bits
    CHECKED = "checked"  #: read by the function's check alone
    NOT_OFFERED = "not_offered"  #: None
    CONJUGATE = "conjugate"  #: whether a complex result is conjugated


#: What an argument of a function becomes whose op has an attribute of that kind (a key of attributes.KINDS).
BY_KIND: Final = {
    "bool": Conversion.FLAG,
    "int": Conversion.INT,
    "Axis": Conversion.INT,
    "float": Conversion.REAL,
    "Number": Conversion.NUMBER,
    "str": Conversion.AS_IS,
    "DType": Conversion.DTYPE,
    "Ints": Conversion.INTS,
    "Shape": Conversion.INTS,
    "Axes": Conversion.AXES,
}

MANY: Final = frozenset((Conversion.TENSORS, Conversion.EACH))
INPUTS: Final = frozenset(list(Conversion)[: list(Conversion).index(Conversion.FLAG)])
WITHOUT_TARGET: Final = frozenset(
    {
        Conversion.IGNORED,
        Conversion.PRODUCT_DTYPE,
        Conversion.CHECKED,
        Conversion.NOT_OFFERED,
        Conversion.CONJUGATE,
    }
)


@dataclass(frozen=True)
class Argument:
    """One argument of a public function.

    Attributes:
        name: TensorFlow's name.
        conversion: What becomes of it.
        default: Its default; REQUIRED: none.
        to: The op's input or attribute that it fills; empty: for an input the next one in order, for an attribute the
            one of the same name.
        of: The other argument that the conversion reads.
    """

    name: str
    conversion: Conversion = Conversion.OPERAND
    default: Any = REQUIRED
    to: str = ""
    of: str = ""


@dataclass(frozen=True)
class PublicFunction:
    """A public TensorFlow function that is one call of the op.

    Attributes:
        names: Its dotted names without the leading `tf.`.
        arguments: In TensorFlow's order; every input and required attribute of the op is filled by one of them.
        check: A check of the converted inputs before the call, by its name in teletape.core.calls.checks; empty: none.
        shortcut: A case in which the result needs no call of the op, by its name in teletape.core.calls.checks; empty:
            none.
        synonym: Whether the names mean the op itself, so that a command may use them. False where the function computes
            a special case of the op.
        doc: What it does; empty: the op's.
        named: The name of the tuple that several results are, with the results' names; empty: they are a plain tuple.
        by_hand: Why the SDK has this function written by hand; empty: it is derived from the record.
    """

    names: tuple[str, ...]
    arguments: tuple[Argument, ...] = ()
    check: str = ""
    shortcut: str = ""
    synonym: bool = True
    doc: str = ""
    named: str = ""
    by_hand: str = ""


#: What the definition of an op says: names separated by spaces, of a function with the op's own arguments, or records.
Functions: TypeAlias = str | Sequence[str | PublicFunction]

_NAME: Final = Argument("name", Conversion.IGNORED, None)


def function(
    names: str,
    *arguments: Argument | str,
    check: str = "",
    shortcut: str = "",
    synonym: bool = True,
    doc: str = "",
    named: str = "",
) -> PublicFunction:
    """A public function from names separated by spaces; a string among the arguments is an OPERAND of that name.

    TensorFlow's `name` is added as the last argument, unless it is among them.
    """
    records = tuple(Argument(entry) if isinstance(entry, str) else entry for entry in arguments)
    if not any(entry.name == "name" for entry in records):
        records = (*records, _NAME)
    return PublicFunction(tuple(names.split()), records, check, shortcut, synonym, doc, named)


def by_hand(names: str, why: str) -> PublicFunction:
    """A public function that the SDK has written by hand, because its behaviour is more than one call of the op."""
    return PublicFunction(tuple(names.split()), by_hand=why)


def functions_of(
    tf: Functions, argument_names: Sequence[str], inputs: tuple[str, ...], variadic: bool, schema: Schema
) -> tuple[PublicFunction, ...]:
    """The records for what the definition of an op says under `tf`.

    Raises:
        TypeError: A record does not fit the op: a defect of its definition.
    """
    own_names = argument_names or [*inputs, *(attr.name for attr in schema.attrs)]
    functions = tuple(
        entry if isinstance(entry, PublicFunction) else plain_function(entry.split(), own_names, len(inputs), schema)
        for entry in ([tf] if isinstance(tf, str) else tf)
        if entry
    )
    checked(functions, inputs, variadic, schema)
    return functions


def plain_function(names: Sequence[str], argument_names: Sequence[str], inputs: int, schema: Schema) -> PublicFunction:
    """The public function whose arguments are the op's inputs and then its attributes, under these names."""
    arguments = [Argument(name) for name in argument_names[:inputs]]
    for name, attr in zip(argument_names[inputs:], schema.attrs, strict=True):
        if attr.kind not in BY_KIND:
            raise TypeError(f"{names[0]}: no conversion for attribute {attr.name!r} of kind {attr.kind}")
        arguments.append(Argument(name, BY_KIND[attr.kind], attr.default, to=attr.name))
    arguments.sort(key=lambda argument: argument.default is not REQUIRED)
    return PublicFunction(tuple(names), (*arguments, _NAME))


def checked(functions: Sequence[PublicFunction], inputs: tuple[str, ...], variadic: bool, schema: Schema) -> None:
    """TypeError unless each function fills every input once, in some order, and names only attributes of the op."""
    attrs = {attr.name: attr for attr in schema.attrs}
    for entry in functions:
        if entry.by_hand:
            continue
        targets = filled(entry, inputs)
        extra = [name for name in targets.values() if name not in inputs and name not in attrs]
        missing = [name for name in inputs if name not in targets.values()]
        missing += [name for name, attr in attrs.items() if attr.default is REQUIRED and name not in targets.values()]
        if extra or missing or variadic is not any(argument.conversion in MANY for argument in entry.arguments):
            raise TypeError(f"tf.{entry.names[0]}: fills {extra or 'nothing'} in vain and does not fill {missing}")


def filled(entry: PublicFunction, inputs: tuple[str, ...]) -> dict[str, str]:
    """The op's input or attribute that each argument of a function fills, by the argument's name."""
    rest = iter(inputs)
    return {
        argument.name: argument.to or (next(rest) if argument.conversion in INPUTS else argument.name)
        for argument in entry.arguments
        if argument.conversion not in WITHOUT_TARGET
    }


def synonyms(ops: Iterable[tuple[str, str, Sequence[str]]]) -> dict[str, str]:
    """TensorFlow's and NumPy's names for ops, each with the one op that it means.

    A function `math.add` may be written "math.add", "tf.math.add" or "add"; an op type "AddV2" or "raw_ops.AddV2";
    NumPy's `sum` as `NUMPY_NAMES` has it. A name that means several ops is left out, and so is one that is an op's own
    name.

    Args:
        ops: (name, op type, dotted names of functions) of each op.
    """
    entries = [(name, op_type, tuple(functions)) for name, op_type, functions in ops]
    meanings: dict[str, set[str]] = {}
    for name, op_type, functions in entries:
        written = {op_type, f"raw_ops.{op_type}", f"tf.raw_ops.{op_type}"}
        for dotted in functions:
            written |= {dotted, f"tf.{dotted}", dotted.rpartition(".")[2]}
        for synonym in written:
            meanings.setdefault(synonym, set()).add(name)
    names = {name for name, _, _ in entries}
    for synonym, name in NUMPY_NAMES.items():
        if name in names:
            meanings.setdefault(synonym, {name})
    return {
        synonym: min(ops_meant)
        for synonym, ops_meant in meanings.items()
        if len(ops_meant) == 1 and synonym not in names
    }
