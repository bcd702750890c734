"""Whether a Python function only computes, so that one run of it shows every run.

The answer follows from the bytecode, without running it. A function is pure if it consists of instructions that are
known to change nothing outside it, and uses only Teletape's ops, methods of tensors, some builtins, plain values, and
pure functions. Everything else is impure: an unknown instruction, and every function under a Python version that is not
in `_ALLOWED`.
"""

from __future__ import annotations

import builtins
import dis
import sys
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType
from typing import Any, Final

import numpy as np

from teletape.core.program.tracebacks import unwrapped
from teletape.core.tensors.dtypes import DType
from teletape.core.tensors.tensor import TensorLike
from teletape.core.tensors.tensor_shape import TensorShape

_EVERYWHERE: Final = frozenset(
    """
    BINARY_OP BINARY_SUBSCR BUILD_CONST_KEY_MAP BUILD_LIST BUILD_MAP BUILD_SET BUILD_SLICE BUILD_STRING BUILD_TUPLE
    CACHE CALL CALL_FUNCTION_EX COMPARE_OP CONTAINS_OP COPY COPY_FREE_VARS DELETE_FAST DICT_MERGE DICT_UPDATE
    EXTENDED_ARG FOR_ITER GET_ITER GET_LEN IS_OP JUMP_BACKWARD JUMP_BACKWARD_NO_INTERRUPT JUMP_FORWARD LIST_APPEND
    LIST_EXTEND LOAD_ATTR LOAD_CLOSURE LOAD_CONST LOAD_DEREF LOAD_FAST LOAD_GLOBAL LOAD_METHOD MAKE_CELL MAKE_FUNCTION
    MAP_ADD NOP POP_TOP PUSH_NULL RERAISE RESUME RETURN_VALUE SET_ADD SET_UPDATE STORE_FAST SWAP UNARY_INVERT
    UNARY_NEGATIVE UNARY_NOT UNPACK_EX UNPACK_SEQUENCE
    """.split()
)
_SINCE_3_12: Final = frozenset(
    """
    BINARY_SLICE END_FOR LOAD_FAST_AND_CLEAR LOAD_FAST_CHECK POP_JUMP_IF_FALSE POP_JUMP_IF_NONE POP_JUMP_IF_NOT_NONE
    POP_JUMP_IF_TRUE RETURN_CONST
    """.split()
)
#: The instructions of each Python version that change nothing outside the function.
_ALLOWED: Final = {
    (3, 11): _EVERYWHERE
    | frozenset(
        """
        FORMAT_VALUE JUMP_IF_FALSE_OR_POP JUMP_IF_TRUE_OR_POP KW_NAMES LIST_TO_TUPLE POP_JUMP_BACKWARD_IF_FALSE
        POP_JUMP_BACKWARD_IF_NONE POP_JUMP_BACKWARD_IF_NOT_NONE POP_JUMP_BACKWARD_IF_TRUE POP_JUMP_FORWARD_IF_FALSE
        POP_JUMP_FORWARD_IF_NONE POP_JUMP_FORWARD_IF_NOT_NONE POP_JUMP_FORWARD_IF_TRUE PRECALL UNARY_POSITIVE
        """.split()
    ),
    (3, 12): _EVERYWHERE | _SINCE_3_12 | {"FORMAT_VALUE", "KW_NAMES"},
    (3, 13): _EVERYWHERE
    | _SINCE_3_12
    | frozenset(
        """
        CALL_KW CONVERT_VALUE FORMAT_SIMPLE FORMAT_WITH_SPEC LOAD_FAST_LOAD_FAST SET_FUNCTION_ATTRIBUTE
        STORE_FAST_LOAD_FAST STORE_FAST_STORE_FAST TO_BOOL
        """.split()
    ),
}
_INTRINSICS: Final = frozenset((5, 6))  #: Allowed operands of CALL_INTRINSIC_1: +x, and a list as a tuple.
#: Instructions between a load and the load of its attribute that do not change what was loaded.
_TRANSPARENT: Final = frozenset(("CACHE", "PRECALL", "PUSH_NULL", "NOP", "RESUME", "COPY_FREE_VARS", "EXTENDED_ARG"))

_BUILTINS: Final = frozenset(
    (abs, bool, dict, enumerate, float, int, len, list, max, min, pow, range, reversed, round, slice, sum, tuple, zip)
)
#: Modules whose functions only compute; of the generated package `teletape._generated` all do.
_MODULES: Final = frozenset(
    """
    teletape.core.calls.dispatch teletape.core.calls.operators teletape.tf.control_flow.compat_v1
    teletape.tf.control_flow.eager teletape.tf.control_flow.folds teletape.tf.control_flow.maps
    teletape.tf.ops.arrays.create teletape.tf.ops.arrays.rearrange teletape.tf.ops.arrays.segments
    teletape.tf.ops.linalg.clip teletape.tf.ops.linalg.norms
    """.split()
)
#: Functions that only compute, of modules that have others as well.
_FUNCTIONS: Final = frozenset(
    ("teletape.tf.ops.nn.normalization.batch_normalization", "teletape.tf.ops.nn.normalization.moments")
)
#: Attributes of tensors, shapes and dtypes that only compute.
_ATTRIBUTES: Final = frozenset("as_list device dtype get_shape is_floating is_integer ndim rank shape".split())
_VALUES: Final = (TensorLike, TensorShape, DType, bool, int, float, complex, str, np.generic, ModuleType)
_DEPTH: Final = 8  #: The deepest nesting of calls that is followed.
_UNKNOWN: Final = object()


def pure(function: Any) -> bool:
    """Whether it is certain that calling `function` has no effect but its result."""
    return impurity(function) is None


def impurity(function: Any, depth: int = _DEPTH) -> str | None:
    """Returns why calling `function` may have an effect besides its result; None: it certainly has none."""
    if not isinstance(function, FunctionType):
        return "it is no function written in Python"
    allowed = _ALLOWED.get(sys.version_info[:2])
    if allowed is None:
        return f"the bytecode of Python {sys.version_info[0]}.{sys.version_info[1]} is not known"
    if depth == 0:
        return f"functions call each other more than {_DEPTH} levels deep"
    defaults = (*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values())
    reason = _impurity_of_value("an argument's default", defaults, depth)
    if reason is not None:
        return reason
    return _impurity_of_code(function.__code__, function, depth, allowed)


def _impurity_of_code(code: CodeType, function: FunctionType, depth: int, allowed: frozenset[str]) -> str | None:
    """Returns the `impurity` of a function's code, or of code inside it."""
    containers = not _updates_in_place(code)
    cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=False))
    loaded: Any = None  # the values of the last loads: modules and functions; None: the value does not matter
    for instruction in dis.get_instructions(code):
        opcode, argument = instruction.opname, instruction.argval
        reason: str | None = None
        own_cell = opcode == "STORE_DEREF" and argument in code.co_cellvars
        intrinsic = opcode == "CALL_INTRINSIC_1" and instruction.arg in _INTRINSICS
        if not (opcode in allowed or own_cell or intrinsic):
            reason = _text_of(opcode, argument)
        elif opcode in ("LOAD_GLOBAL", "LOAD_DEREF"):
            loaded = _value_of(str(argument), opcode, function, cells)
            reason = _impurity_of_value(str(argument), loaded, depth, containers=containers)
        elif opcode in ("LOAD_ATTR", "LOAD_METHOD"):
            if isinstance(loaded, ModuleType):
                name = f"{loaded.__name__}.{argument}"
                loaded = getattr(loaded, str(argument), _UNKNOWN)
                reason = _impurity_of_value(name, loaded, depth)
            elif argument in _ATTRIBUTES:
                loaded = None
            else:
                reason = f"it uses the attribute {argument!r}"
        elif opcode == "LOAD_CONST" and isinstance(argument, CodeType):
            reason = _impurity_of_code(argument, function, depth, allowed)  # it may only use what this function may
        elif opcode not in _TRANSPARENT:
            loaded = None
        if reason is not None:
            return reason
    return None


def _text_of(opcode: str, argument: Any) -> str:
    """Returns the words for an instruction that is not allowed."""
    if opcode.startswith(("STORE_", "DELETE_")):
        return f"it changes {argument!r}" if isinstance(argument, str) else "it changes an element of something"
    return f"it has the instruction {opcode}"


def _value_of(name: str, opcode: str, function: FunctionType, cells: dict[str, Any]) -> Any:
    """Returns the value of a global name or of a closure's variable."""
    if opcode == "LOAD_DEREF":
        cell = cells.get(name)
        if cell is None:
            return None  # a variable of its own that a function inside uses
        try:
            return cell.cell_contents
        except ValueError:
            return _UNKNOWN
    if name in function.__globals__:
        return function.__globals__[name]
    return getattr(builtins, name, _UNKNOWN)


def _updates_in_place(code: CodeType) -> bool:
    """Whether there is a `+=` or the like, which changes a list."""
    return any(each.opname == "BINARY_OP" and each.argrepr.endswith("=") for each in dis.get_instructions(code))


def _impurity_of_value(name: str, value: Any, depth: int, *, containers: bool = False) -> str | None:
    """Returns why using a value may have an effect; None: it is immutable, a tensor, or a function that only computes.

    `containers`: lists and dicts of such values count too.
    """
    if value is _UNKNOWN:
        return f"it uses {name!r}, which has no value"
    if isinstance(value, tuple) or (containers and isinstance(value, list | dict)):
        elements = value.values() if isinstance(value, dict) else value
        reasons = (_impurity_of_value(name, element, depth, containers=containers) for element in elements)
        return next((reason for reason in reasons if reason is not None), None)
    if value is None or isinstance(value, _VALUES) or _only_computes(value):
        return None
    python_function = getattr(value, "python_function", value)  # of a tf.function: its calls are what counts
    if not isinstance(python_function, FunctionType) or python_function.__module__.partition(".")[0] == "teletape":
        return f"it uses {name!r}, which may have an effect or change"
    reason = impurity(python_function, depth - 1)
    return None if reason is None else f"it calls {name!r}, where {reason}"


def _only_computes(value: Any) -> bool:
    """Whether a function, or a class that is called, is in one of the lists above."""
    if isinstance(value, type | BuiltinFunctionType):
        return value in _BUILTINS
    if not isinstance(value, FunctionType):
        return False
    value = unwrapped(value)
    module = value.__module__
    computing = module in _MODULES or module.startswith("teletape._generated.")
    return computing or f"{module}.{value.__qualname__}" in _FUNCTIONS
