"""The graph of objects below a checkpoint's root, and the variables in it."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Any, Final, NamedTuple

from teletape.core.variables.trackable import children, is_state

SUFFIX: Final = ".ATTRIBUTES"
VALUE: Final = "VARIABLE_VALUE"


class Node(NamedTuple):
    """An object in the graph.

    Attributes:
        object: The object.
        path: The names from the root to it, by the shortest way.
        edges: The index of the child node, by the attribute's name.
    """

    object: Any
    path: tuple[str, ...]
    edges: dict[str, int]


def walk(root: Any) -> list[Node]:
    """Returns each object below `root` once, nearer ones first; the root has the number 0."""
    nodes = [Node(root, (), {})]
    numbers = {id(root): 0}
    queue = deque(nodes)
    while queue:
        node = queue.popleft()
        for name, child in children(node.object).items():
            if id(child) not in numbers:
                numbers[id(child)] = len(nodes)
                nodes.append(Node(child, (*node.path, name), {}))
                queue.append(nodes[-1])
            node.edges[name] = numbers[id(child)]
    return nodes


def states(nodes: Iterable[Node]) -> list[Node]:
    """Returns the nodes whose own value is saved."""
    return [node for node in nodes if is_state(node.object)]


def key_of(path: tuple[str, ...], component: str = VALUE) -> str:
    """The name of a value in a checkpoint, as TensorFlow writes it: `net/a/kernel/.ATTRIBUTES/VARIABLE_VALUE`."""
    return "/".join([*(_escaped(name) for name in path), SUFFIX, component])


def dotted(path: tuple[str, ...]) -> str:
    """The path as messages show it: `(root).net.kernel`."""
    return ".".join(["(root)", *path])


def _escaped(name: str) -> str:
    return name.replace(".", "..").replace("/", ".S")
