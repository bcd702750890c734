"""Calls in converted code: a function of the program is converted too, a library's is called as it is."""

from __future__ import annotations

import functools
import inspect
import sys
import types
from collections.abc import Callable
from typing import Any, Final

from teletape._generated.elementwise.arithmetic import maximum
from teletape.core.calls.dispatch import as_tensor, call, convert_to_tensor
from teletape.core.program.tracebacks import unwrapped
from teletape.core.sessions.current import current
from teletape.tf.autograph import conditionals, conversion, loops, ranges, state
from teletape.tf.autograph.conditionals import staged
from teletape.tf.ops.arrays import create
from teletape_engine.catalogue.namespace import ops

#: Packages whose code is called as it is, in addition to the standard library.
_LIBRARIES: Final = frozenset(
    """
    absl google h5py keras malt matplotlib ml_dtypes numpy pandas PIL scipy sklearn tensorboard tensorboardX tensorflow
    teletape teletape_engine teletape_server teletape_wire torch jax
    """.split()
)
_CONTROL_FLOW: Final = "teletape.tf.control_flow."


def is_artifact(function: Any) -> bool:
    """Whether a function must not be converted: it is the result of a conversion, or marked by `do_not_convert`."""
    return hasattr(function, "autograph_info__")


def artifact(function: Any) -> Any:
    """Marks a function as one that must not be converted, and returns it."""
    target: Any = function.__func__ if inspect.ismethod(function) else function
    target.autograph_info__ = {}
    return function


def converted_call(
    function: Any, args: tuple[Any, ...], kwargs: dict[str, Any] | None, scope: Any = None, options: Any = None
) -> Any:
    """Calls a function, converted if it is one of the program's.

    Args:
        function: The function, or any other callable.
        args: Its positional arguments.
        kwargs: Its keyword arguments, or None.
        scope: The scope of the converted function that calls.
        options: malt's ConversionOptions; None: those of the scope.
    """
    kwargs = kwargs or {}
    if options is None:
        options = scope.callopts
    if isinstance(function, functools.partial):
        return converted_call(function.func, function.args + args, function.keywords | kwargs, scope, options)
    if isinstance(function, types.BuiltinFunctionType | type) and function.__module__ == "builtins":
        return _call_builtin(function, args, kwargs, scope)
    if unwrapped(function) is create.range:
        return ranges.ranged(function, args, kwargs)
    target, effective = _target(function, args)
    if target is None or is_artifact(function) or disabled() or not options.internal_convert_user_code:
        return function(*args, **kwargs)
    if _is_library(target):
        if target.__module__.startswith(_CONTROL_FLOW):  # its functions run as part of the code that calls it
            args = tuple([_converted_argument(each, options) for each in args])
            kwargs = {name: _converted_argument(each, options) for name, each in kwargs.items()}
            return function(*args, **kwargs)
        return function(*args, **kwargs)
    try:
        converted = conversion.converted(target, options, operators())
    except conversion.NotConvertible:
        return function(*args, **kwargs)
    return converted(*effective, **kwargs)


def disabled() -> bool:
    """Whether code that `do_not_convert` marks is running."""
    from malt.core import ag_ctx

    return bool(ag_ctx.control_status_ctx().status is ag_ctx.Status.DISABLED)


def _target(function: Any, args: tuple[Any, ...]) -> tuple[Any, tuple[Any, ...]]:
    """Returns the Python function that a call runs, and its arguments; None: there is none to convert."""
    if inspect.isfunction(function):
        return function, args
    if inspect.ismethod(function):
        return (function.__func__, (function.__self__, *args)) if inspect.isfunction(function.__func__) else (None, ())
    if inspect.isclass(function):
        return None, ()
    call_method = type(function).__call__ if hasattr(type(function), "__call__") else None  # noqa: B004  # the function itself
    return (call_method, (function, *args)) if inspect.isfunction(call_method) else (None, ())


def _is_library(target: types.FunctionType) -> bool:
    """Whether a function is code of a library: by the module that its code is in, which `functools.wraps` hides."""
    root = str(target.__globals__.get("__name__", "")).partition(".")[0]
    return root in _LIBRARIES or (root in sys.stdlib_module_names and root != "__main__")


def _converted_argument(value: Any, options: Any) -> Any:
    """Returns an argument; if it is a function, calls of it are converted."""
    if not inspect.isfunction(value) and not inspect.ismethod(value):
        return value
    if is_artifact(value):
        return value

    @functools.wraps(value)
    def converting(*args: Any, **kwargs: Any) -> Any:
        return converted_call(value, args, kwargs, options=options)

    return artifact(converting)


# ----------------------------------------------------------------------------------------------------------- builtins
def _call_builtin(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any], scope: Any) -> Any:
    """Calls a builtin; some mean an op if an argument is a tensor of the trace."""
    if function in _FRAMES and scope is not None:
        from malt.operators import py_builtins

        if function is super:
            return py_builtins.super_in_original_context(function, args, scope)
        if function is eval:
            return py_builtins.eval_in_original_context(function, args, scope)
        return (
            py_builtins.globals_in_original_context if function is globals else py_builtins.locals_in_original_context
        )(scope)
    if current().tracing and args and function in _OF_DATASETS:
        over = _OF_DATASETS[function](*args, **kwargs)
        if over is not None:
            return over
    overload = _OVERLOADS.get(function)
    if overload is not None and any(map(staged, args)):
        return overload(*args, **kwargs)
    return function(*args, **kwargs)


def _range(start: Any, stop: Any = None, step: Any = None) -> Any:
    """Returns `range` with a tensor among its arguments; as in Python it is empty if it steps away from its end."""
    if step is not None:
        return ranges.ranged(create.range, (start, stop, step), {})
    if stop is not None:
        return ranges.ranged(create.range, (start, maximum(start, stop)), {})
    return ranges.ranged(create.range, (maximum(start, 0),), {})


def _len(value: Any) -> int:
    tensor = as_tensor(value)
    if not tensor.ndim:
        raise ValueError(f"len requires a non-scalar tensor, got one of shape {tensor.shape}")
    return int(tensor.shape.as_list()[0])


def _cast(value: Any, dtype: str) -> Any:
    return call(ops.cast, (convert_to_tensor(value),), dtype=dtype)


def _enumerate(iterable: Any, start: int = 0) -> Any:
    return iterable.enumerate(start) if loops.is_dataset(iterable) else None


def _zip(*iterables: Any, strict: bool = False) -> Any:
    return type(iterables[0]).zip(iterables) if all(map(loops.is_dataset, iterables)) else None


def _map(function: Any, *iterables: Any) -> Any:
    datasets = iterables and all(map(loops.is_dataset, iterables))
    return (iterables[0] if len(iterables) == 1 else _zip(*iterables)).map(function) if datasets else None


def _filter(function: Any, iterable: Any) -> Any:
    return iterable.filter(function) if loops.is_dataset(iterable) else None


#: Builtins that call a method of a dataset among their arguments; each returns None without such an argument.
_OF_DATASETS: Final[dict[Any, Callable[..., Any]]] = {enumerate: _enumerate, zip: _zip, map: _map, filter: _filter}
_FRAMES: Final = frozenset((super, eval, globals, locals))
_OVERLOADS: Final[dict[Any, Callable[..., Any]]] = {
    abs: lambda value: abs(value),
    float: lambda value: _cast(value, "float32"),
    int: lambda value: _cast(value, "int32"),
    len: _len,
    range: _range,
}


@functools.cache
def operators() -> Any:
    """Returns the operators, which converted code calls `ag__`."""
    from malt.core import converter
    from malt.operators import function_wrappers

    functions: dict[str, Any] = {
        name: getattr(module, name)
        for module, names in (
            (conditionals, "if_stmt if_exp and_ or_ not_ eq not_eq assert_stmt"),
            (loops, "for_stmt while_stmt"),
            (state, "Undefined UndefinedReturnValue ld ldu"),
            (converter, "ConversionOptions Feature"),
        )
        for name in names.split()
    }

    class FunctionScope(function_wrappers.FunctionScope):  # type: ignore[misc]  # malt has no types
        def ret(self, value: Any, did_return: Any) -> Any:
            return None if isinstance(value, state.UndefinedReturnValue) else value

    def with_function_scope(thunk: Callable[[Any], Any], scope_name: str, options: Any) -> Any:
        with FunctionScope("lambda_", scope_name, options) as scope:
            return thunk(scope)

    return types.SimpleNamespace(
        **functions,
        FunctionScope=FunctionScope,
        with_function_scope=with_function_scope,
        STD=converter.STANDARD_OPTIONS,
        autograph_artifact=artifact,
        converted_call=converted_call,
    )
