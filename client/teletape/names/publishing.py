"""The objects of public names: imported when first used, and wrapped so that errors show the program's lines.

The error for a missing name has the nearest ones.
"""

from __future__ import annotations

import functools
import importlib
import sys
from types import FunctionType
from typing import Any, Final

from teletape.core.program.missing_names import PAGE, answer, answer_for_objects
from teletape.core.program.remedies import remedy
from teletape.core.program.tracebacks import report, reports, reports_construction, reports_methods, retries
from teletape.names.missing import nearest_names
from teletape.names.modules import by_module
from teletape.names.table import CLASSES, FORMS, LAZY, NAMES

_PACKAGE: Final = "teletape"
_RAGGED: Final = f"{_PACKAGE}.extras.ragged_tensors.tensor"
#: Classes whose objects have attributes of the program, too.
_OPEN: Final = "Module"


def value_of(path: str, name: str) -> Any:
    """Returns the object of a name of a public module, and sets it in the module.

    Raises:
        AttributeError: No such name; the message has the nearest names, and the remedy if there is one.
        ModuleNotFoundError: Keras is not installed.
    """
    dotted = f"{path}.{name}".lstrip(".")
    module = sys.modules[f"{_PACKAGE}.{path}".rstrip(".")]
    if dotted in NAMES:
        value = _reporting(module.__name__, name, dotted, original(dotted))
        if _RAGGED in sys.modules:
            _give_ragged_methods()
    elif dotted in LAZY:
        value = importlib.import_module(LAZY[dotted])
    else:
        raise AttributeError(_missing(path, name, dotted), name=name)
    setattr(module, name, value)
    return value


def original(dotted: str) -> Any:
    """Returns the unwrapped object of a public name."""
    home, _, place = NAMES[dotted].partition(":")
    module = importlib.import_module(f"{_PACKAGE}.{home}")
    for begin in "[(":
        name, is_there, key = place.partition(begin)
        if is_there:
            value = getattr(module, name)
            return value[key[:-1]] if begin == "[" else value(key[:-1], original)
    return getattr(module, place)


def prepare(name: str) -> None:
    """Wraps the public functions and classes of a module that was just loaded, so that they report their errors."""
    module = sys.modules[name]
    for entry in CLASSES[name.removeprefix(f"{_PACKAGE}.")]:
        value = getattr(module, entry)
        reports_construction(value)
        for base in value.__mro__:
            if base.__module__.startswith(f"{_PACKAGE}."):
                reports_methods(base)
        if entry != _OPEN and not issubclass(value, BaseException):
            answer_for_objects(value)


@functools.cache
def _give_ragged_methods() -> None:
    """Gives ragged tensors their methods, which are functions of modules that import ragged tensors."""
    importlib.import_module(f"{_PACKAGE}.extras.ragged_tensors.methods").give_methods()
    prepare(_RAGGED)


def _reporting(path: str, name: str, dotted: str, value: Any) -> Any:
    """Wraps a function of this package so that it reports its errors as `path.name`; any other value is unchanged.

    It takes ragged tensors if it has a form for them. Within the package functions are called unwrapped.
    """
    if not isinstance(value, FunctionType) or not value.__module__.startswith(f"{_PACKAGE}."):
        return value
    if report.__name__ in value.__code__.co_names:
        return value
    if dotted in FORMS:
        refusal = importlib.import_module(f"{_PACKAGE}.core.tensors.composite").NotDense
        function = retries(value, refusal, functools.partial(_form, value))
    else:
        function = reports(value)
    function.__module__, function.__qualname__ = path, name  # so that pickle finds it
    function.__name__ = name
    return function


def _form(function: Any, *args: Any, **kwargs: Any) -> Any:
    """Calls the form of a function for ragged tensors."""
    of_functions = importlib.import_module(f"{_PACKAGE}.extras.ragged_tensors.forms.of_functions")
    ragged_strings = importlib.import_module(f"{_PACKAGE}.extras.text.ragged_strings")
    form = of_functions.FORMS.get(function) or ragged_strings.FORMS[function]
    return form(*args, **kwargs)


# ------------------------------------------------------------------------------------------------------ missing names
def _missing(path: str, name: str, dotted: str) -> str:
    """Returns the error text for a name that does not exist."""
    if name.startswith("_"):
        return f"module tf{path and '.'}{path} has no attribute {name!r}"
    near, instead = nearest_names(path, name, _all_names(path)), remedy(dotted)
    shown = near if near and (instead is None or near[0].rpartition(".")[2] == name) else []
    text = answer(f"tf.{dotted} is not in Teletape", [f"tf.{known}" for known in shown])
    if instead is not None:
        text += f". Instead: {instead}"
    return f"{text}. {PAGE}"


def _all_names(path: str) -> list[str]:
    """The dotted public names that may be suggested for a name of a module; raw ops only for raw ops."""
    own = (dotted for dotted in NAMES if path == "raw_ops" or not dotted.startswith("raw_ops."))
    return [*own, *filter(None, by_module())]
