"""The CUDA code of each elementwise function, written as CuPy's own kernels have it: the same numbers come out.

Sums and products are written as intrinsics that the compiler never joins to a fused multiply-add: each is rounded by
itself, as in a kernel of its own. A `float16` is a float that is rounded after each function.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

#: The C type of an element in memory, and in a register.
STORED: Final = {
    "?": "bool",
    "b": "signed char",
    "B": "unsigned char",
    "h": "short",
    "H": "unsigned short",
    "i": "int",
    "I": "unsigned int",
    "l": "long long",
    "q": "long long",
    "L": "unsigned long long",
    "Q": "unsigned long long",
    "e": "unsigned short",
    "f": "float",
    "d": "double",
    "F": "float2",
    "D": "double2",
}
IN_REGISTER: Final = STORED | {"e": "float"}

#: Of the prelude of each source: 16-bit floats in memory, no number, and the infinities.
PRELUDE: Final = """\
__device__ inline float widened(unsigned short stored) {
  float x;
  asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(stored));
  return x;
}
__device__ inline unsigned short narrowed(float x) {
  unsigned short stored;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(stored) : "f"(x));
  return stored;
}
__device__ inline float nan_number() { return __int_as_float(0x7fffffff); }
__device__ inline float infinite() { return __int_as_float(0x7f800000); }
"""

_FLOATS: Final = "efd"
_INTEGERS: Final = "bBhHiIlLqQ"
_SIGNED: Final = "bhilq"


def _math(name: str) -> dict[str, str]:
    """A function of CUDA's library, by dtype."""
    return {"e": f"{name}f({{}})", "f": f"{name}f({{}})", "d": f"{name}({{}})"}


def _math_of_two(name: str) -> dict[str, str]:
    return {char: code.replace("{}", "{}, {}") for char, code in _math(name).items()}


def _rounded(name: str, operator: str) -> dict[str, str]:
    """Arithmetic that is rounded by itself, and that of integers."""
    single, double = f"__f{name}_rn({{}}, {{}})", f"__d{name}_rn({{}}, {{}})"
    return {"e": single, "f": single, "d": double} | dict.fromkeys(_INTEGERS, f"{{}} {operator} {{}}")


def _of_all(code: str, chars: str = "?" + _INTEGERS + _FLOATS) -> dict[str, str]:
    return dict.fromkeys(chars, code)


def _extreme(name: str, operator: str) -> dict[str, str]:
    """The larger or the smaller one; no number if one of two is none."""
    code = "(isnan({0}) || isnan({1})) ? nan_number() : " + name + "({0}, {1})"
    single, double = code.replace(name, f"{name}f"), code.replace("nan_number()", "(double)nan_number()")
    chosen = f"{{0}} {operator} {{1}} ? {{0}} : {{1}}"
    return {"e": single, "f": single, "d": double} | _of_all(chosen, "?" + _INTEGERS)


def _whole(name: str) -> dict[str, str]:
    """A rounding to whole numbers."""
    return _math(name) | _of_all("{}", "?" + _INTEGERS)


def _sign(suffix: str, subtract: str) -> str:
    return f"({{0}} < 0 || {{0}} > 0) ? copysign{suffix}(1.0, {{0}}) : {subtract}({{0}}, {{0}})"


_SAME: Final = ("arctan", "tan", "sin", "cos", "sinh", "cosh", "tanh", "exp", "expm1", "log", "log1p", "log2", "log10")
#: By the name of the ufunc, then by the dtype of its inputs.
_CODES: Final[dict[str, dict[str, str]]] = {
    "add": _rounded("add", "+") | {"?": "{} | {}"},
    "subtract": _rounded("sub", "-"),
    "multiply": _rounded("mul", "*") | {"?": "{} & {}"},
    "divide": _of_all("{} / {}", _FLOATS),
    "negative": _of_all("-{}", _INTEGERS + _FLOATS),
    "positive": _of_all("+{}", _INTEGERS + _FLOATS),
    "conjugate": _of_all("{}"),
    "absolute": _math("fabs") | _of_all("{}", "?BHILQ") | _of_all("{0} > 0 ? {0} : -{0}", _SIGNED),
    "square": {char: code.replace("{}", "{0}") for char, code in _rounded("mul", "*").items()},
    "reciprocal": _of_all("1 / {}", _FLOATS) | _of_all("{0} == 0 ? 0 : (1 / {0})", _INTEGERS),
    "sign": {
        "e": _sign("f", "__fsub_rn"),
        "f": _sign("f", "__fsub_rn"),
        "d": _sign("", "__dsub_rn"),
        **_of_all("({0} > 0) - ({0} < 0)", _SIGNED),
        **_of_all("{} > 0", "BHILQ"),
    },
    "maximum": _extreme("fmax", ">"),
    "minimum": _extreme("fmin", "<"),
    "greater": _of_all("{} > {}"),
    "greater_equal": _of_all("{} >= {}"),
    "less": _of_all("{} < {}"),
    "less_equal": _of_all("{} <= {}"),
    "equal": _of_all("{} == {}"),
    "not_equal": _of_all("{} != {}"),
    "logical_and": _of_all("{} && {}"),
    "logical_or": _of_all("{} || {}"),
    "logical_xor": _of_all("!{} != !{}"),
    "logical_not": _of_all("!{}"),
    "bitwise_and": _of_all("{} & {}", "?" + _INTEGERS),
    "bitwise_or": _of_all("{} | {}", "?" + _INTEGERS),
    "bitwise_xor": _of_all("{} ^ {}", "?" + _INTEGERS),
    "invert": _of_all("~{}", _INTEGERS) | {"?": "!{}"},
    "isnan": _of_all("isnan({})", _FLOATS),
    "isinf": _of_all("isinf({})", _FLOATS),
    "isfinite": _of_all("isfinite({})", _FLOATS),
    "rint": _math("rint"),
    "floor": _whole("floor"),
    "ceil": _whole("ceil"),
    "trunc": _whole("trunc"),
    "sqrt": _math("sqrt"),
    "cbrt": _math("cbrt"),
    "exp2": {"e": "powf(2, {})", "f": "powf(2, {})", "d": "pow(2, {})"},
    "power": _math_of_two("pow"),
    "copysign": _math_of_two("copysign"),
    "hypot": _math_of_two("hypot"),
    "arctan2": _math_of_two("atan2"),
    "arcsin": _math("asin"),
    "arccos": _math("acos"),
    "arcsinh": _math("asinh"),
    "arccosh": _math("acosh"),
    "arctanh": _math("atanh"),
    **{name: _math(name.replace("arc", "a")) for name in _SAME},
    #: A selection and a copy are no ufuncs; the first input of `select` is the condition.
    "select": _of_all("{} ? {} : {}", "?" + _INTEGERS + _FLOATS + "FD"),
}
_REDUCING: Final = {
    np.add: "add",
    np.multiply: "multiply",
    np.maximum: "maximum",
    np.minimum: "minimum",
    np.logical_or: "logical_or",
    np.logical_and: "logical_and",
}


def code_of(name: str, chars: tuple[str, ...]) -> str | None:
    """The code of a function on registers of these dtypes, with places for them; None: there is none.

    Args:
        name: Of the ufunc; `select`, or `copy`, whose code is that of a conversion.
        chars: Of the inputs, then that of the result.
    """
    if name == "copy":
        source, target = chars
        return "{}" if source == target or (source in STORED and target not in "FD" and source not in "FD") else None
    kinds = chars[1:-1] if name == "select" else chars[:-1]
    code = _CODES.get(name, {}).get(kinds[0])
    return code if code is not None and len(set(kinds)) == 1 else None


def converted(code: str, target: str) -> str:
    """An expression as a register of that dtype."""
    if target == "e":
        return f"widened(narrowed({code}))"
    return f"({IN_REGISTER[target]})({code})" if target not in "FD" else code


def combining(function: Any) -> str | None:
    """The name of a function that reduces, if its code is here."""
    return _REDUCING.get(function)


def accumulated(char: str) -> str:
    """The dtype in which numbers of a dtype are reduced."""
    return "f" if char == "e" else char


def identity(name: str, char: str) -> str:
    """What a reduction begins with."""
    if name in ("add", "multiply"):
        return "0" if name == "add" else "1"
    if name in ("logical_or", "logical_and"):
        return "false" if name == "logical_or" else "true"
    if char in "fd":
        return "-infinite()" if name == "maximum" else "infinite()"
    if char == "?":
        return "false" if name == "maximum" else "true"
    limits = np.iinfo(char)
    number = int(limits.min if name == "maximum" else limits.max)
    if number < 0:
        return f"({IN_REGISTER[char]})({number + 1}LL - 1)"
    return f"({IN_REGISTER[char]}){number}ULL"
