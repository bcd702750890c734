"""What the engine's source names of CuPy, found in its syntax trees under whatever name a module or an object is held.

CuPy is what a parameter, a variable or an attribute holds whose name is in ROOTS. What is assigned or imported from it
is followed inside a function, and in a file for attributes of `self`.
"""

import ast
from collections.abc import Iterator, Mapping
from functools import cache
from typing import NamedTuple

from programs import ROOT

ENGINE = ROOT / "engine" / "teletape_engine"
ROOTS = {"xp": "cupy", "_xp": "cupy", "cupy": "cupy", "_cupy": "cupy", "cupyx": "cupyx"}
#: Classes of CuPy whose objects are followed too; an object of one has the path of its class.
CLASSES = {f"cupy.cuda.{name}" for name in ("Device", "Event", "Graph", "MemoryPointer", "MemoryPool", "Stream")}
CLASSES |= {"cupy.cuda.PinnedMemoryPointer", "cupy.cuda.UnownedMemory"}
#: The classes of what functions and methods return.
RETURNED = {
    "cupy.cuda.alloc": "cupy.cuda.MemoryPointer",
    "cupy.cuda.alloc_pinned_memory": "cupy.cuda.PinnedMemoryPointer",
    "cupy.cuda.MemoryPool.malloc": "cupy.cuda.MemoryPointer",
    "cupy.cuda.Stream.end_capture": "cupy.cuda.Graph",
    "cupy.cuda.Stream.record": "cupy.cuda.Event",
}
#: Parameters that hold such objects, in OF_DEVICES.
PARAMETERS = {
    "block": "cupy.cuda.MemoryPointer",
    "event": "cupy.cuda.Event",
    "pool": "cupy.cuda.MemoryPool",
    "stream": "cupy.cuda.Stream",
}
OF_DEVICES = "arrays/gpu.py"


class Use(NamedTuple):
    """A place in the engine's source that names something of CuPy.

    Attributes:
        path: As in `cupy.linalg.svd`; `cupy.?` is a name that is computed.
        keywords: The arguments that a call passes by name.
        where: File and line.
    """

    path: str
    keywords: tuple[str, ...]
    where: str


@cache
def uses() -> tuple[Use, ...]:
    """Everything that the engine's files name of CuPy."""
    result = []
    for file in sorted(ENGINE.rglob("*.py")):
        name = file.relative_to(ENGINE).as_posix()
        for path, keywords, line in of_source(file.read_text(encoding="utf-8"), of_device=name == OF_DEVICES):
            result.append(Use(path, keywords, f"{name}:{line}"))
    return tuple(result)


def of_source(source: str, *, of_device: bool = False) -> Iterator[tuple[str, tuple[str, ...], int]]:
    """Path, keywords and line of each use in a source; `of_device`: its PARAMETERS are objects of CuPy."""
    tree = ast.parse(source)
    known = Known(PARAMETERS if of_device else {})
    known.note(tree, inside_functions=False)
    for node in ast.walk(tree):  # attributes of `self`, from assignments in any method
        if isinstance(node, ast.FunctionDef):
            known.of_function(node)
    seen: dict[ast.AST, tuple[str, tuple[str, ...], int]] = {}
    outer = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    for scope in (tree, *outer):
        names = known.of_function(scope) if isinstance(scope, ast.FunctionDef) else known
        for use in names.uses(scope):
            seen[use[0]] = use[1:]  # an inner function's names are known best in its own scope, which comes last
    yield from seen.values()


class Known:
    """The paths of what names hold in one scope.

    Args:
        names: Of variables and parameters.
        attributes: Of `self`, in the whole file.
    """

    def __init__(self, names: Mapping[str, str], attributes: dict[str, str] | None = None) -> None:
        self.names = {**ROOTS, **names}
        self.attributes = {} if attributes is None else attributes

    def of_function(self, function: ast.FunctionDef) -> "Known":
        """With what is assigned in a function."""
        inner = Known(self.names, self.attributes)
        inner.note(function, inside_functions=True)
        return inner

    def note(self, scope: ast.AST, *, inside_functions: bool) -> None:
        """Follows imports, assignments and loops."""
        for node in ast.walk(scope) if inside_functions else ast.iter_child_nodes(scope):
            if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in ROOTS:
                for alias in node.names:
                    self.names[alias.asname or alias.name] = f"{node.module}.{alias.name}"
            elif isinstance(node, ast.Import):
                for alias in node.names:
                    if alias.asname and alias.name.split(".")[0] in ROOTS:
                        self.names[alias.asname] = alias.name
            elif isinstance(node, ast.Assign):
                for target in node.targets:
                    self._assign(target, node.value)
            elif isinstance(node, ast.AnnAssign) and node.value is not None:
                self._assign(node.target, node.value)
            elif isinstance(node, ast.For):
                self._assign(node.target, node.iter)

    def _assign(self, target: ast.AST, value: ast.AST) -> None:
        if isinstance(target, ast.Tuple):
            if isinstance(value, ast.Tuple) and len(value.elts) == len(target.elts):
                for part, item in zip(target.elts, value.elts, strict=True):
                    self._assign(part, item)
            return
        path = self.path(value)
        if path is None:
            return
        if isinstance(target, ast.Name):
            self.names[target.id] = path
        elif isinstance(target, ast.Attribute):
            self.attributes[target.attr] = path

    def path(self, node: ast.AST) -> str | None:
        """The path of what an expression is; None: it is nothing of CuPy's, or an array."""
        if isinstance(node, ast.Name):
            return self.names.get(node.id)
        if isinstance(node, ast.Attribute):
            below = self.path(node.value)
            if below is not None:
                return f"{below}.{node.attr}"
            return ROOTS.get(node.attr) or self.attributes.get(node.attr)
        if isinstance(node, ast.Call):
            called = self.path(node.func)
            return called if called in CLASSES else RETURNED.get(called or "")
        if isinstance(node, ast.ListComp):
            return self.path(node.elt)
        if isinstance(node, ast.Subscript):
            below = self.path(node.value)
            return below if below in CLASSES else None
        return None

    def uses(self, scope: ast.AST) -> Iterator[tuple[ast.AST, str, tuple[str, ...], int]]:
        """Node, path, keywords and line of each use."""
        calls: dict[ast.AST, ast.Call] = {}
        for node in ast.walk(scope):
            if isinstance(node, ast.Call):
                partial = isinstance(node.func, ast.Name) and node.func.id == "partial"
                calls[node.args[0] if partial else node.func] = node
        for node in ast.walk(scope):
            if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in ROOTS:
                for alias in node.names:
                    yield alias, f"{node.module}.{alias.name}", (), node.lineno
            elif isinstance(node, ast.Attribute | ast.Name):
                path = self.path(node)
                call = calls.get(node)
                if path is None or (isinstance(node, ast.Name) and (call is None or path in ("cupy", "cupyx"))):
                    continue
                keywords = () if call is None else tuple(keyword.arg for keyword in call.keywords if keyword.arg)
                yield node, path, keywords, node.lineno
            elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "getattr":
                path = self.path(node.args[0])
                if path is not None:
                    yield node, f"{path}.?", (), node.lineno
