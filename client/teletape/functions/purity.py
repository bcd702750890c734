"""Whether a Python function only computes, so that running it once shows what every run does.

Read off its bytecode, without running it. A function is pure if it consists of instructions that are known to change
nothing outside it, and uses only Teletape's ops, methods of tensors, some builtins, plain values, and pure functions.
Everything else is impure: an unknown instruction, and every function under a Python version that is not in `_ALLOWED`.
"""

from __future__ import annotations

import builtins
import dis
import sys
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType
from typing import Any, Final

import numpy as np

from teletape.tensors.dtypes import DType
from teletape.tensors.tensor import EagerTensor, TensorLike
from teletape.tensors.tensor_shape import TensorShape

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
_INTRINSICS: Final = frozenset((5, 6))  #: Of CALL_INTRINSIC_1: +x, and a list as a tuple.
#: Instructions between a load and the load of its attribute that do not change what was loaded.
_TRANSPARENT: Final = frozenset(("CACHE", "PRECALL", "PUSH_NULL", "NOP", "RESUME", "COPY_FREE_VARS", "EXTENDED_ARG"))

_BUILTINS: Final = frozenset(
    (abs, bool, dict, enumerate, float, int, len, list, max, min, pow, range, reversed, round, slice, sum, tuple, zip)
)
#: Packages whose functions only compute, except for modules with a true `HAS_EFFECTS`.
_COMPUTING: Final = ("teletape.ops.", "teletape.control_flow.", "teletape.namespace")
_METHODS: Final = frozenset(name for name in dir(EagerTensor) if not name.startswith("_") and name != "numpy")
_VALUES: Final = (TensorLike, TensorShape, DType, bool, int, float, complex, str, np.generic, ModuleType)
_DEPTH: Final = 8  #: Functions that call functions, at most.
_UNKNOWN: Final = object()


def pure(function: Any, depth: int = _DEPTH) -> bool:
    """Whether it is certain that calling `function` has no effect but its result."""
    allowed = _ALLOWED.get(sys.version_info[:2])
    if allowed is None or not isinstance(function, FunctionType) or depth == 0:
        return False
    defaults = (*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values())
    return all(_is_plain(value, depth) for value in defaults) and _code_is_pure(
        function.__code__, function, depth, allowed
    )


def _code_is_pure(code: CodeType, function: FunctionType, depth: int, allowed: frozenset[str]) -> bool:
    """Whether a function's code, or code inside it, is pure."""
    containers = not _updates_in_place(code)
    cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=False))
    loaded: Any = None  # the value of the last loads: a module or a function; None: it does not matter
    for instruction in dis.get_instructions(code):
        opcode, argument = instruction.opname, instruction.argval
        own_cell = opcode == "STORE_DEREF" and argument in code.co_cellvars
        intrinsic = opcode == "CALL_INTRINSIC_1" and instruction.arg in _INTRINSICS
        if not (opcode in allowed or own_cell or intrinsic):
            return False
        if opcode in ("LOAD_GLOBAL", "LOAD_DEREF"):
            loaded = _value_of(str(argument), opcode, function, cells)
            if not _is_plain(loaded, depth, containers=containers):
                return False
        elif opcode in ("LOAD_ATTR", "LOAD_METHOD"):
            if isinstance(loaded, ModuleType):
                loaded = getattr(loaded, str(argument), _UNKNOWN)
                if not _is_plain(loaded, depth):
                    return False
            elif argument in _METHODS:
                loaded = None
            else:
                return False
        elif opcode == "LOAD_CONST" and isinstance(argument, CodeType):
            if not _code_is_pure(argument, function, depth, allowed):  # it may only use what this function may
                return False
        elif opcode not in _TRANSPARENT:
            loaded = None
    return True


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


def _is_plain(value: Any, depth: int, *, containers: bool = False) -> bool:
    """Whether using a value only computes: it is immutable, a tensor, or a pure function.

    `containers`: lists and dicts of plain values count too.
    """
    if isinstance(value, tuple) or (containers and isinstance(value, list)):
        return all(_is_plain(element, depth, containers=containers) for element in value)
    if containers and isinstance(value, dict):
        return all(_is_plain(element, depth, containers=True) for element in value.values())
    if value is None or isinstance(value, _VALUES):
        return True
    if isinstance(value, type | BuiltinFunctionType):
        return value in _BUILTINS
    module = str(getattr(value, "__module__", ""))
    if module.partition(".")[0] == "teletape":
        if module.startswith(_COMPUTING) and isinstance(value, FunctionType):
            return not getattr(sys.modules[module], "HAS_EFFECTS", False)
        python_function = getattr(value, "python_function", None)  # of a tf.function: its calls are what counts
        return isinstance(python_function, FunctionType) and pure(python_function, depth - 1)
    return isinstance(value, FunctionType) and pure(value, depth - 1)
