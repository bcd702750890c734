"""What CuPy offers, as cupy_names.json records it: names, arguments, and the dtypes that each ufunc computes."""

import json
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from teletape_engine.spec import DTYPES

RECORD: dict[str, Any] = json.loads(Path(__file__).with_name("cupy_names.json").read_text(encoding="utf-8"))
#: The dtypes that CuPy's own tests scatter: those of CUDA's atomic functions.
SCATTERED = {"cupy.add.at": "ilILQefd", "cupy.maximum.at": "iILQfd", "cupy.minimum.at": "iILQfd"}
#: Modules, constants, exceptions and attributes of classes, and the methods of ufuncs.
VALUES = frozenset((*RECORD["modules"], *RECORD["values"], *SCATTERED))
#: The kinds of dtype that a Python number becomes without asking for a wider one.
KINDS = {bool: "biufc", int: "iufc", float: "fc", complex: "c"}
#: The arguments that a ufunc takes by name: fewer than NumPy's, `where` and `order` not among them.
KEYWORDS = {"out", "dtype", "casting"}


class NotInCupy(AssertionError):
    """The engine asks CuPy for what it does not offer."""


class Loop(NamedTuple):
    """One combination of dtypes that a ufunc computes, as characters."""

    inputs: str
    outputs: str


def knows(path: str) -> bool:
    """Whether CuPy has a function or ufunc of this name, as in `cupy.linalg.svd`."""
    return path in RECORD["functions"] or path in RECORD["ufuncs"]


def check(path: str, args: Any, kwargs: dict[str, Any]) -> None:
    """Checks a call of a function.

    Raises:
        NotInCupy: There is no such function, or it does not take such arguments or dtypes.
    """
    if path in SCATTERED:
        if args[0].dtype.char not in SCATTERED[path]:
            raise NotInCupy(f"{path} does not take {args[0].dtype}")
        return
    check_keywords(path, kwargs)
    if path in RECORD["ufuncs"]:
        _check_loop(path, args, kwargs)
    else:
        _check_arguments(path, RECORD["functions"][path], args, kwargs)


def check_keywords(path: str, keywords: Iterable[str]) -> None:
    """Checks the arguments that a call passes by name, and the name itself; raises as `check`."""
    if path in RECORD["ufuncs"]:
        if unknown := set(keywords) - KEYWORDS:
            raise NotInCupy(f"{path} takes no argument {', '.join(unknown)}")
    elif path in RECORD["functions"]:
        _check_arguments(path, RECORD["functions"][path], (), dict.fromkeys(keywords))
    elif path not in VALUES:
        raise NotInCupy(f"CuPy has no {path}")


def check_method(name: str, args: Any, kwargs: dict[str, Any]) -> None:
    """Checks a call of a method of an array; raises as `check`."""
    if name not in RECORD["methods"]:
        raise NotInCupy(f"CuPy's arrays have no method {name}")
    _check_arguments(f"ndarray.{name}", RECORD["methods"][name], args, kwargs)


def _check_arguments(path: str, listed: str | None, args: Any, kwargs: dict[str, Any]) -> None:
    names = _arguments(listed)
    stars = listed is None or any(name.startswith("*") for name in names)
    unknown = [name for name in kwargs if name not in names and "**kwargs" not in names]
    if listed is not None and unknown:
        raise NotInCupy(f"{path} takes no argument {', '.join(unknown)}; it takes {listed}")
    if len(args) > len(names) and not stars:
        raise NotInCupy(f"{path} takes {len(names)} arguments, found {len(args)}")


@cache
def _arguments(listed: str | None) -> tuple[str, ...]:
    """The names of the arguments, as the record lists them."""
    return () if listed is None else tuple(listed.split())


def _check_loop(path: str, args: Any, kwargs: dict[str, Any]) -> None:
    count = len(_loops(path)[0].inputs)
    inputs = [np.dtype(kwargs["dtype"])] * count if kwargs.get("dtype") is not None else args[:count]
    if not _computes(path, *[type(x) if type(x) in KINDS else getattr(x, "dtype", x) for x in inputs]):
        dtypes = ", ".join(str(getattr(x, "dtype", x)) for x in inputs)
        raise NotInCupy(f"{path} does not compute {dtypes}; it computes {RECORD['ufuncs'][path]}")


@cache
def _loops(path: str) -> list[Loop]:
    return [Loop(*loop.split("->")) for loop in RECORD["ufuncs"][path].split()]


@cache
def _computes(path: str, *inputs: Any) -> bool:
    """Whether a ufunc has a loop for such inputs, each a dtype or the type of a Python number."""
    return any(all(map(_fits, inputs, loop.inputs)) for loop in _loops(path) if len(loop.inputs) == len(inputs))


def _fits(x: Any, char: str) -> bool:
    """Whether a loop takes an input as `char`: an array or a NumPy scalar by its dtype, a Python number by its kind."""
    if x in KINDS:
        return _dtype(char).kind in KINDS[x] or char == "?"
    return np.can_cast(x, _dtype(char))


def _dtype(char: str) -> np.dtype[Any]:
    return DTYPES["bfloat16"] if char == "E" else np.dtype(char)
