"""Converts the source of a Python function: its control flow becomes calls of the operators of this package.

The converted code keeps the file and the lines of its source, so that a traceback, a debugger and the call sites of ops
show the program's own lines. Nothing is written to a file.
"""

from __future__ import annotations

import ast
import re
import types
import weakref
from functools import cache
from typing import Any, Final, NamedTuple

from teletape.tf.autograph import directives
from teletape_engine.locks import ReentrantLock

#: Functions that the conversion makes of blocks; in tracebacks they have the name of the function around them.
_BLOCK: Final = re.compile(r"(if_body|else_body|loop_body|loop_test|extra_test|get_state|set_state)(_\d+)?")
_NO_COLUMN: Final = -1
_BRANCHES: Final = (ast.If, ast.For, ast.While)
_lock: Final = ReentrantLock()


class NotConvertible(Exception):
    """A function cannot be converted: its source is not available, or it is a generator, or code of `exec`."""


class Conversion(NamedTuple):
    """The converted code of a function.

    Attributes:
        factory: A function that returns the converted function; its closure is that of the source function.
        free: The names of the source function's closure, in order.
    """

    factory: types.FunctionType
    free: tuple[str, ...]

    def instance(self, function: types.FunctionType, operators: Any) -> types.FunctionType:
        """Returns the converted function with the globals, closure and defaults of `function`."""
        cells = dict(zip(self.free, function.__closure__ or (), strict=True))
        code = self.factory.__code__
        closure = tuple([cells[name] for name in code.co_freevars])
        converted = types.FunctionType(code, function.__globals__, "factory", (), closure)(operators)
        converted.__defaults__ = function.__defaults__
        converted.__kwdefaults__ = function.__kwdefaults__
        return converted  # type: ignore[no-any-return]  # made of generated code


#: By code, then by its file and the options.
_conversions: Final[weakref.WeakKeyDictionary[types.CodeType, dict[Any, Conversion | NotConvertible]]] = (
    weakref.WeakKeyDictionary()
)


def converted(function: types.FunctionType, options: Any, operators: Any) -> types.FunctionType:
    """Returns the function, converted; conversions are remembered by code object.

    Args:
        function: A function written in Python.
        options: malt's ConversionOptions.
        operators: The object that the converted code calls `ag__`.

    Raises:
        NotConvertible: Its source is not to be had, or has what cannot be converted.
    """
    return conversion_of(function, options).instance(function, operators)


def conversion_of(function: types.FunctionType, options: Any) -> Conversion:
    """Returns the conversion of a function; raises as `converted`."""
    with _lock:
        conversions = _conversions.setdefault(function.__code__, {})
        key = (function.__code__.co_filename, options)
        result = conversions.get(key)
        if result is None:
            try:
                result = _convert(function, options)
            except NotConvertible as error:
                result = error
            conversions[key] = result
    if isinstance(result, NotConvertible):
        raise result
    return result


def source_of(function: types.FunctionType, options: Any) -> str:
    """Returns the converted code of a function as text; raises as `converted`."""
    from malt.pyct import parser

    node, _ = _transformed(function, options)
    return parser.unparse(node, include_encoding_marker=False)  # type: ignore[no-any-return]  # malt has no types


def _convert(function: types.FunctionType, options: Any) -> Conversion:
    node, name = _transformed(function, options)
    free = function.__code__.co_freevars
    return Conversion(_factory(node, name, function.__code__, free), free)


def _transformed(function: types.FunctionType, options: Any) -> tuple[Any, str]:
    """Returns the tree of the converted definition, and its name."""
    from malt.core import converter
    from malt.pyct import errors

    try:
        return _transpiler().transform_function(function, converter.ProgramContext(options=options))  # type: ignore[no-any-return]  # malt has no types
    except (errors.PyCTError, OSError, SyntaxError) as error:
        raise NotConvertible(str(error).partition("\n")[0]) from None
    except (ValueError, TypeError, AttributeError, KeyError, NotImplementedError, AssertionError) as error:
        raise NotConvertible(f"{type(error).__name__}: {error}") from None


@cache
def _transpiler() -> Any:
    """Returns malt's transformation without its lists and slices, which TensorFlow leaves off too."""
    from malt.converters import (
        asserts,
        break_statements,
        call_trees,
        conditional_expressions,
        continue_statements,
        control_flow,
        functions,
        logical_expressions,
        return_statements,
        variables,
    )
    from malt.core import converter, unsupported_features_checker
    from malt.impl import api
    from malt.pyct import inspect_utils, naming, origin_info, parser, qual_names, transformer
    from malt.pyct.static_analysis import activity

    class Transpiler(api.PyToPy):  # type: ignore[misc]  # malt has no types
        def transform_function(self, function: Any, context: Any) -> tuple[ast.AST, str]:
            features = inspect_utils.getfutureimports(function)
            node, source = parser.parse_entity(function, future_features=features)
            line = function.__code__.co_firstlineno
            origin_info.resolve(node, source, function.__code__.co_filename, line, 0)
            namespace = inspect_utils.getnamespace(function)
            namer = naming.Namer(namespace)
            name = namer.new_symbol("tf__" + getattr(node, "name", "lam"), ())
            info = transformer.EntityInfo(name, source, function.__code__.co_filename, features, namespace)
            result = self.transform_ast(self._erase_arg_defaults(node), transformer.Context(info, namer, context))
            if isinstance(result, ast.Lambda):
                result = ast.Assign([ast.Name(name, ctx=ast.Store())], result)
            else:
                result.name = name
            return result, name

        def transform_ast(self, node: Any, context: Any) -> Any:
            """Runs only the steps that have something to convert: the analysis before a step takes most of its time."""
            unsupported_features_checker.verify(node)
            kinds = {type(each) for each in ast.walk(node)}
            branches = not kinds.isdisjoint(_BRANCHES)
            if branches:
                node = self.initial_analysis(node, context)
            else:
                node = activity.resolve(qual_names.resolve(node), context, None)
            asserting = ast.Assert in kinds and context.user.options.uses(converter.Feature.ASSERT_STATEMENTS)
            steps = {
                functions: True,
                directives.transformer(): branches,
                break_statements: ast.Break in kinds,
                asserts: asserting,
                continue_statements: not kinds.isdisjoint((ast.Break, ast.Continue)),  # a break becomes one
                return_statements: branches and _returns_early(node),
                call_trees: True,
                control_flow: branches,
                conditional_expressions: ast.IfExp in kinds,
                logical_expressions: not kinds.isdisjoint((ast.BoolOp, ast.Compare, ast.UnaryOp)),
                variables: branches,
            }
            for step, needed in steps.items():
                if needed:
                    node = step.transform(node, context)
            return node

    return Transpiler()


def _returns_early(node: ast.AST) -> bool:
    """Whether a branch or a loop has a return in it."""
    branches = [each for each in ast.walk(node) if isinstance(each, _BRANCHES)]
    return any(isinstance(each, ast.Return) for branch in branches for each in ast.walk(branch))


# --------------------------------------------------------------------------------------------------------------- code
def _factory(node: Any, name: str, code: types.CodeType, free: tuple[str, ...]) -> types.FunctionType:
    """Compiles a converted definition, with the file and lines of its source."""
    cells = "".join(f"    {variable} = None\n" for variable in free)
    tree = ast.parse(
        f"def outer():\n{cells}    def factory(ag__):\n        pass\n        return {name}\n    return factory"
    )
    outer: Any = tree.body[0]
    outer.body[-2].body[0] = node
    arguments = [each for each in ast.walk(node) if isinstance(each, ast.arg)]
    for argument in arguments:
        argument.annotation = None
    for each in ast.walk(node):
        if isinstance(each, ast.FunctionDef):
            each.returns = None
    _place(tree, code.co_firstlineno)
    module = compile(tree, code.co_filename, "exec", dont_inherit=True)
    definition = next(value for value in module.co_consts if isinstance(value, types.CodeType))
    outer_function = types.FunctionType(_renamed(definition, "<module>", name, code.co_name), {})
    return outer_function()  # type: ignore[no-any-return]  # made of generated code


def _place(node: ast.AST, line: int) -> None:
    """Sets the source line of every node: its own, or that of the node around it."""
    from malt.pyct import anno

    origin = anno.getanno(node, anno.Basic.ORIGIN, default=None)
    if origin is not None:
        line = origin.loc.lineno
    if "lineno" in node._attributes:
        node.lineno = node.end_lineno = line  # type: ignore[attr-defined]  # it has these attributes
        node.col_offset = node.end_col_offset = _NO_COLUMN  # type: ignore[attr-defined]
    for field, value in ast.iter_fields(node):
        if isinstance(value, tuple):
            setattr(node, field, list(value))  # malt leaves tuples, which `compile` does not take
    for child in ast.iter_child_nodes(node):
        _place(child, line)


def _renamed(code: types.CodeType, around: str, converted_name: str, name: str) -> types.CodeType:
    """Returns the code with the names that a traceback should show: those of the source."""
    if code.co_name == converted_name or (code.co_name == "<lambda>" and around == converted_name):
        around = name
    elif not _BLOCK.fullmatch(code.co_name):
        around = code.co_name
    constants = tuple(
        [
            _renamed(value, around, converted_name, name) if isinstance(value, types.CodeType) else value
            for value in code.co_consts
        ]
    )
    return code.replace(co_name=around, co_qualname=around, co_consts=constants)
