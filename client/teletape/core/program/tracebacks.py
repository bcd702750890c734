"""Exceptions as a program sees them: with TensorFlow's name for the op, and without frames of Teletape.

A public function reports what it raises in its own `except` clause (the generated ones, and what runs often), or is
wrapped by `reports`. Where a program waits, the clause is for interrupts too. Without an exception it costs nothing.
`publishing` wraps the functions that are written by hand, and the methods of public classes.
"""

from __future__ import annotations

import functools
import importlib.util
import inspect
import os
import re
import threading
import traceback
from collections.abc import Callable, Mapping
from types import FunctionType, TracebackType
from typing import Any, Final, ParamSpec, TypeGuard, TypeVar

import numpy as np

from teletape.core.program.call_site import PACKAGES
from teletape_engine.catalogue.op import CATALOGUE, Trait
from teletape_engine.errors import InvalidArgumentError, ResourceExhaustedError
from teletape_engine.suggestions import did_you_mean

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")

_OP: Final = " [Op:"
#: Until Python 3.13, which suggests names itself.
_UNEXPECTED: Final = re.compile(r"(\S+)\(\) got an unexpected keyword argument '(\w+)'")
_WIRE: Final = importlib.util.find_spec("teletape_wire")  #: Not imported: a program without a server does not need it.
#: Code that is not the program's: Teletape, NumPy, and the standard library.
_OTHERS: Final = (
    *PACKAGES,
    *[os.path.dirname(os.path.abspath(str(file))) + os.sep for file in (_WIRE and _WIRE.origin, np.__file__)],
)
#: Methods that Python calls for `float(x)`, `list[x]`, f-strings, `copy.copy(x)` and the like.
_CONVERSIONS: Final = frozenset(
    """
    __array__ __await__ __complex__ __deepcopy__ __dlpack__ __float__ __format__ __getattr__ __index__ __int__ __iter__
    __len__ __hash__ __reduce__ __repr__ __str__ __bool__ numpy
    """.split()
)
#: Methods that Python calls for `f(x)`, `x[i]`, `with` and `for`.
_PROTOCOLS: Final = frozenset(("__call__", "__enter__", "__exit__", "__getitem__", "__next__"))
#: The functions that AutoGraph calls in a lambda, with its body as another lambda on the same lines.
_SCOPE_OF_LAMBDA: Final = "with_function_scope"
_AT_EACH_OP: Final = frozenset(("operand", "of", "standing_for", "check_session", "parts", "is_compatible_with"))
_LIBRARY: Final = os.path.dirname(os.__file__) + os.sep
_INSTALLED: Final = ("site-packages", "dist-packages")  #: Folders of the standard library's that are the program's.


class _Filter(threading.local):
    """Whether tracebacks are filtered in a thread, as in TensorFlow."""

    enabled = True


_filter: Final = _Filter()


def enable_traceback_filtering() -> None:
    """Leaves frames of Teletape out of the tracebacks of this thread's exceptions, as is done by default."""
    _filter.enabled = True


def disable_traceback_filtering() -> None:
    """Shows frames of Teletape in the tracebacks of this thread's exceptions."""
    _filter.enabled = False


def is_traceback_filtering_enabled() -> bool:
    """Whether frames of Teletape are left out of the tracebacks of this thread's exceptions."""
    return _filter.enabled


def reports(function: Callable[P, R]) -> Callable[P, R]:
    """Wraps a function so that it reports its exceptions. A call takes 0.5 µs more, a fifth of a local op."""

    @functools.wraps(function)
    def reporting(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return function(*args, **kwargs)
        except BaseException as error:
            if error.__class__ is TypeError:
                _suggest_keyword(error, function)
            report(error)
            raise

    return reporting


def _suggest_keyword(error: BaseException, function: Callable[..., Any]) -> None:
    """Adds the nearest argument to Python's message about an unknown keyword argument."""
    unexpected = _UNEXPECTED.fullmatch(str(error))
    if unexpected is None or unexpected[1] != function.__qualname__:  # the message is about another function
        return
    keywords = [
        name
        for name, parameter in inspect.signature(function).parameters.items()
        if parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY) and name != "self"
    ]
    question = did_you_mean(unexpected[2], keywords) or f"it takes {', '.join(keywords) or 'none'}"
    error.args = (f"{error}: {question}",)


def retries(function: Callable[..., Any], refusal: type[Exception], form: Callable[..., Any]) -> Callable[..., Any]:
    """Wraps a function as `reports` does, and calls another form of it if it refuses its arguments.

    Args:
        function: The function.
        refusal: The exception that it raises for arguments that it does not take.
        form: Called instead, with the same arguments.
    """

    @functools.wraps(function)
    def retrying(*args: Any, **kwargs: Any) -> Any:
        try:
            try:
                return function(*args, **kwargs)
            except refusal:
                return form(*args, **kwargs)
        except BaseException as error:
            report(error)
            raise

    return retrying


def reports_methods(cls: type) -> None:
    """Wraps the public methods that a class defines, static and class methods too, by `reports`, once.

    Those that report by themselves stay as they are, and so do those that run at each op.
    """
    for name, method in list(vars(cls).items()):
        if (name.startswith("_") and name not in _PROTOCOLS) or name in _AT_EACH_OP:
            continue
        if isinstance(method, staticmethod | classmethod):
            if _is_silent(method.__func__):
                setattr(cls, name, type(method)(reports(method.__func__)))
        elif _is_silent(method):
            setattr(cls, name, reports(method))


def _is_silent(method: object) -> TypeGuard[FunctionType]:
    """Whether a method does not report its exceptions."""
    return (
        isinstance(method, FunctionType)
        and method.__code__ not in _WRAPPERS
        and report.__name__ not in method.__code__.co_names
    )


def reports_conversions(cls: type[T]) -> type[T]:
    """Wraps the methods that a class defines for Python's conversions and texts by `reports`: they read values.

    Those that report by themselves stay as they are.
    """
    for name in _CONVERSIONS & vars(cls).keys():
        if _is_silent(vars(cls)[name]):
            setattr(cls, name, reports(vars(cls)[name]))
    return cls


def reports_construction(cls: type) -> None:
    """Wraps the `__init__` that a class defines by `reports`, once."""
    method = vars(cls).get("__init__")
    if _is_silent(method):
        setattr(cls, "__init__", reports(method))  # noqa: B010  # an assignment is an error to mypy


def unwrapped(function: Any) -> Any:
    """Returns the function that `reports` or `retries` has wrapped; anything else unchanged."""
    return function.__wrapped__ if getattr(function, "__code__", None) in _WRAPPERS else function


def report(error: BaseException) -> None:
    """Prepares an exception that leaves Teletape for the program; a bare `raise` must follow.

    Its message names the op, and its traceback loses Teletape's frames; those of functions of the program that Teletape
    called stay. An exception that Teletape caught on the way is not shown as its context.
    """
    if isinstance(error, InvalidArgumentError | ResourceExhaustedError):
        error.message = with_step(with_op(error.message, error.details.get("op")), error.details)
    if _filter.enabled:
        context = error.__context__
        if context is not None and _is_own(context):
            error.__suppress_context__ = True
        cause = error.__cause__
        if cause is not None and _is_own(cause) and isinstance(error, InvalidArgumentError | ResourceExhaustedError):
            error.__cause__ = None  # an exception of NumPy, which the message has translated
        error.__traceback__ = _frames_of_program(error.__traceback__)


def text_in_program(error: BaseException) -> str:
    """Returns an exception of the program's and its traceback, for the message of the error that it becomes.

    The traceback loses Teletape's frames for good: the program sees the exception as the cause of that error.
    """
    if _filter.enabled:
        error.__traceback__ = _frames_of_program(error.__traceback__)
    text = f"{type(error).__name__}: {error}"
    return text if error.__traceback__ is None else f"{text}\n{''.join(traceback.format_exception(error))}"


_WRAPPERS: Final = (reports(report).__code__, retries(report, Exception, report).__code__)


def with_op(message: str, op: str | None) -> str:
    """Returns a message with TensorFlow's type of an op of the catalogue at the end of its first line."""
    if op is None or op not in CATALOGUE or _OP in message:
        return message
    first, newline, rest = message.partition("\n")
    return f"{first}{_OP}{CATALOGUE[op].op_type}]{newline}{rest}"


def with_step(message: str, details: Mapping[str, Any]) -> str:
    """Returns a message with the line that wrote the step of a function that failed, as its last line."""
    where = details.get("where")
    if "step" not in details or where is None or where in message:
        return message
    return f"{message}\n  {op_words(details.get('op'))}, written at {where}"


def op_words(op: str | None) -> str:
    """Returns the words of a message for an op of the catalogue."""
    checks = op is not None and op in CATALOGUE and Trait.ASSERTS in CATALOGUE[op].traits
    return "an assertion" if checks else f"op {op!r}"


def _frames_of_program(trace: TracebackType | None) -> TracebackType | None:
    entries = []
    while trace is not None:
        code = trace.tb_frame.f_code
        if not _is_hidden(code.co_filename):
            entries.append(trace)
        elif code.co_name == _SCOPE_OF_LAMBDA and entries:
            entries.pop()
        trace = trace.tb_next
    for entry in reversed(entries):
        trace = TracebackType(trace, entry.tb_frame, entry.tb_lasti, entry.tb_lineno)
    return trace


def _is_own(error: BaseException) -> bool:
    """Whether an exception was raised and caught in Teletape, without a line of the program between."""
    return _frames_of_program(error.__traceback__) is None


@functools.cache
def _is_hidden(file: str) -> bool:
    if file.startswith(_LIBRARY):
        return not file.startswith(tuple(_LIBRARY + folder + os.sep for folder in _INSTALLED))
    return file.startswith(_OTHERS)
