"""`tf.autograph`: the conversion as functions of the program, and as a step of tracing."""

from __future__ import annotations

import enum
import functools
import inspect
import sys
import textwrap
from collections.abc import Callable
from typing import Any

from teletape.core.functions import methods
from teletape.tf.autograph import calls, conversion


class ConversionError(ValueError):
    """A function's source is not available, or cannot be converted."""


class Feature(enum.Enum):
    """Optional parts of the conversion, for `experimental_autograph_options`. ASSERT_STATEMENTS has an effect."""

    ALL = "ALL"
    AUTO_CONTROL_DEPS = "AUTO_CONTROL_DEPS"
    ASSERT_STATEMENTS = "ASSERT_STATEMENTS"
    BUILTIN_FUNCTIONS = "BUILTIN_FUNCTIONS"
    EQUALITY_OPERATORS = "EQUALITY_OPERATORS"
    LISTS = "LISTS"
    NAME_SCOPES = "NAME_SCOPES"

    @classmethod
    def all(cls) -> tuple[Feature, ...]:
        """Returns every feature."""
        return tuple(cls)

    @classmethod
    def all_but(cls, exclude: Any) -> tuple[Feature, ...]:
        """Returns every feature but these."""
        left_out = exclude if isinstance(exclude, list | tuple | set) else (exclude,)
        return tuple(feature for feature in cls if feature not in left_out and feature is not cls.ALL)


def _options(*, recursive: bool, features: Any) -> Any:
    """Returns malt's options for a conversion that the program asks for."""
    from malt.core import converter

    wanted = () if features is None else (features,) if isinstance(features, Feature) else tuple(features)
    asserts = Feature.ASSERT_STATEMENTS in wanted or Feature.ALL in wanted
    return converter.ConversionOptions(
        recursive=recursive,
        user_requested=True,
        optional_features=(converter.Feature.ASSERT_STATEMENTS,) if asserts else None,
    )


@functools.lru_cache(256)
def _requested(features: Any) -> Any:
    return _options(recursive=True, features=features)


def convert(function: Callable[..., Any], features: Any = None) -> Callable[..., Any]:
    """Returns a function that calls `function` converted, as `tf.function` traces it."""
    unbound = getattr(function, "unbound", None)  # a method's function, without its object

    @functools.wraps(function)
    def converted(*args: Any, **kwargs: Any) -> Any:
        options = _requested(tuple(features) if isinstance(features, list | set) else features)
        if unbound is None:
            return calls.converted_call(function, args, kwargs, options=options)
        python_function, reference = unbound
        return calls.converted_call(python_function, (reference(), *args), kwargs, options=options)

    return converted


methods.register(convert)


def do_not_convert(func: Callable[..., Any] | None = None) -> Any:
    """Decorates a function that is not converted, nor are the functions that it calls."""
    if func is None:
        return do_not_convert

    @functools.wraps(func)
    def unconverted(*args: Any, **kwargs: Any) -> Any:
        if "malt.core.ag_ctx" not in sys.modules:  # nothing has been converted yet
            return func(*args, **kwargs)
        from malt.core import ag_ctx

        with ag_ctx.ControlStatusCtx(status=ag_ctx.Status.DISABLED):
            return func(*args, **kwargs)

    return calls.artifact(unconverted)


def to_graph(entity: Any, recursive: bool = True, experimental_optional_features: Any = None) -> Any:
    """Returns a function or method converted: control flow on tensors becomes `tf.cond` and `tf.while_loop`.

    Args:
        entity: A Python function, or a method, which becomes a function of its object.
        recursive: Whether functions that it calls are converted too.
        experimental_optional_features: A `tf.autograph.experimental.Feature`, or several.

    Raises:
        ConversionError: Its source is not to be had, or cannot be converted.
    """
    function = _python_function(entity)
    options = _options(recursive=recursive, features=experimental_optional_features)
    try:
        converted = conversion.converted(function, options, calls.operators())
    except conversion.NotConvertible as error:
        raise ConversionError(f"converting {entity}: {error}") from None
    return calls.artifact(converted)


def to_code(entity: Any, recursive: bool = True, experimental_optional_features: Any = None) -> str:
    """Returns the converted code of a function as text; arguments and errors are those of `to_graph`."""
    function = _python_function(entity)
    options = _options(recursive=recursive, features=experimental_optional_features)
    try:
        return textwrap.dedent(conversion.source_of(function, options)) + "\n"
    except conversion.NotConvertible as error:
        raise ConversionError(f"converting {entity}: {error}") from None


def _python_function(entity: Any) -> Any:
    function = entity.__func__ if inspect.ismethod(entity) else entity
    if not inspect.isfunction(function):
        raise ConversionError(
            "Cannot apply autograph to a function that doesn't expose a __code__ object. If this is a @tf.function, "
            "try passing f.python_function instead."
        )
    return function


def set_verbosity(level: int, alsologtostdout: bool = False) -> None:
    """Accepted, without effect: the conversion logs nothing but its warnings."""


def trace(*args: Any) -> None:
    """Prints its arguments while a function is traced."""
    sys.stdout.write(" ".join(map(str, args)) + "\n")
