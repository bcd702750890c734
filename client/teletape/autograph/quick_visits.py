"""Visits of syntax trees as malt's, but quicker: a conversion visits its tree about twenty times.

Half of the nodes of a tree are contexts and operators (`ast.Load`, `ast.Add`), which no visitor of malt handles; malt
visits them all the same. Here they are left out, and annotations and methods are looked up once. The converted code is
the same: a test compares it.
"""

from __future__ import annotations

import ast
from functools import cache
from typing import Any, Final

_ANNOTATIONS: Final = "___pyct_anno"
#: Fields that hold strings, numbers, or nodes without fields of their own.
_LEAVES: Final = frozenset(
    "ctx op ops id attr arg kind type_comment asname module level is_async simple conversion names".split()
)


@cache
def _fields(kind: Any) -> tuple[str, ...]:
    """Returns the fields of a class of nodes that can hold nodes a visitor handles."""
    if kind in (ast.Constant, ast.Global, ast.Nonlocal):
        return ()
    strings = {"name"} if kind in (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.ExceptHandler) else set()
    leaves = _LEAVES - {"names"} if kind in (ast.Import, ast.ImportFrom) else _LEAVES
    return tuple([field for field in kind._fields if field not in leaves and field not in strings])


def generic_visit(self: Any, node: Any) -> Any:
    """Visits the fields of a node, as `ast.NodeTransformer`."""
    visit = self.visit
    kind: Any = type(node)
    for field in _fields(kind):
        value = getattr(node, field, None)
        if isinstance(value, list):
            nodes = []
            for each in value:
                result = visit(each) if isinstance(each, ast.AST) else each
                if isinstance(result, ast.AST):
                    nodes.append(result)
                elif result is None and isinstance(each, ast.AST):
                    continue
                elif isinstance(each, ast.AST):
                    nodes.extend(result)
                else:
                    nodes.append(result)
            value[:] = nodes
        elif isinstance(value, ast.AST):
            result = visit(value)
            if result is None:
                delattr(node, field)
            elif result is not value:
                setattr(node, field, result)
    return node


@cache
def _method(visitor: Any, kind: Any) -> Any:
    """Returns the function of a class of visitors that handles a class of nodes."""
    return getattr(visitor, "visit_" + kind.__name__, None) or visitor.generic_visit


def _method_for(visitor: Any, node: Any) -> Any:
    kinds: tuple[Any, Any] = (type(visitor), type(node))
    return _method(*kinds)


def _dispatch(self: Any, node: Any) -> Any:
    """Calls the visitor's method for the node, as `ast.NodeVisitor.visit`."""
    return _method_for(self, node)(self, node)


def _visit(self: Any, node: Any) -> Any:
    """Visits a node and hands its origin to what replaces it, as malt's `transformer.Base.visit`."""
    from malt.pyct import anno

    if not isinstance(node, ast.AST):
        raise ValueError(f'invalid value for "node": expected "ast.AST", got "{type(node)}"')
    annotations: Any = getattr(node, _ANNOTATIONS, ())
    if annotations and anno.Basic.SKIP_PROCESSING in annotations:
        return node
    context = self.ctx
    around = context.current_origin
    origin = annotations.get(anno.Basic.ORIGIN) if annotations else None
    if origin is not None:
        context.current_origin = origin
    before = node.value if isinstance(node, ast.Expr) else None
    try:
        result = _method_for(self, node)(self, node)
        if before is not None and isinstance(result, ast.Expr) and result.value is not before:
            statements = result.value
            if isinstance(statements, list | tuple | ast.Assign | ast.AugAssign):
                result = statements
        if result is not node and result is not None:
            inherited = anno.getanno(node, anno.Basic.ORIGIN, default=around)
            if inherited is not None:
                for each in result if isinstance(result, list | tuple) else (result,):
                    if not anno.hasanno(each, anno.Basic.ORIGIN):
                        anno.setanno(each, anno.Basic.ORIGIN, inherited)
    finally:
        context.current_origin = around
    return result


def _copy(self: Any, node: Any) -> Any:
    """Copies a tree, as malt's `CleanCopier.copy`."""
    if isinstance(node, list):
        return [self.copy(each) for each in node]
    if isinstance(node, tuple):
        return tuple([self.copy(each) for each in node])
    if not isinstance(node, ast.AST):
        return node
    kind: Any = type(node)
    new: Any = kind()
    for field in kind._fields:
        value = getattr(node, field, _ANNOTATIONS)
        if value is not _ANNOTATIONS:
            setattr(new, field, self.copy(value) if isinstance(value, ast.AST | list | tuple) else value)
    annotations = getattr(node, _ANNOTATIONS, None)
    if annotations and self.preserve_annos:
        preserved = {key: value for key, value in annotations.items() if key in self.preserve_annos}
        if preserved:
            setattr(new, _ANNOTATIONS, preserved)
            new._fields = (*kind._fields, _ANNOTATIONS)
    return new


def _has(node: Any, key: Any, field_name: str = _ANNOTATIONS) -> bool:
    """Returns whether a node has an annotation, as malt's `anno.hasanno`."""
    return key in getattr(node, field_name, ())


def install() -> None:
    """Gives malt's visitors these methods. Other users of malt get the same results from them, sooner."""
    from malt.pyct import anno, ast_util, qual_names, templates, transformer

    for keys in (anno.Basic, anno.Static):
        keys.__hash__ = object.__hash__  # members are single: an Enum hashes its name in Python
    anno.hasanno = _has
    ast_util.CleanCopier.copy = _copy
    transformer.Base.visit = _visit
    for visitor in (transformer.Base, qual_names.QnResolver, templates.ReplaceTransformer, templates.ContextAdjuster):
        visitor.generic_visit = generic_visit
    for visitor in (qual_names.QnResolver, templates.ReplaceTransformer):
        visitor.visit = _dispatch
