"""Restoring: the saved graph laid over the program's objects, by the names on the way from the root."""

from __future__ import annotations

from collections import deque
from typing import Any

from teletape import errors
from teletape.checkpoints.files import SavedGraph, read_index, read_values
from teletape.checkpoints.object_graph import VALUE, dotted, states, walk
from teletape.tensors import dtypes
from teletape.tensors.tensor_shape import TensorShape
from teletape.variables.trackable import WAITING, AutoTrackable, children, is_state


class Restoration:
    """One checkpoint that is being restored: which object has which saved values, and what waits."""

    def __init__(self, prefix: str, root: Any) -> None:
        self.prefix = prefix
        self.graph: SavedGraph = read_index(prefix)
        self.values = read_values(prefix, self.graph)
        self.root = root
        self.objects: dict[int, Any] = {}  # by the number of the saved node; keeps them alive, so that ids stay theirs
        self.numbers: dict[int, int] = {}  # of the saved node, by the object's id
        self.match(root, 0)

    def match(self, value: Any, number: int) -> None:
        """Gives an object, and what is below it, the values of a saved node and of those below."""
        queue = deque([(value, number)])
        while queue:
            value, number = queue.popleft()
            if id(value) in self.numbers or number in self.objects:
                continue  # reached before, by a shorter way
            self.objects[number], self.numbers[id(value)] = value, number
            node = self.graph.nodes[number]
            if is_state(value):
                if VALUE in node.keys:
                    self._assign(value, node.keys[VALUE])
                continue
            below = children(value)
            queue.extend((below[name], edge) for name, edge in node.edges.items() if name in below)
            if isinstance(value, AutoTrackable) and not below.keys() >= node.edges.keys():
                object.__setattr__(value, WAITING, _Attributes(self, number))

    def match_instead(self, value: Any, number: int) -> None:
        """Matches an object with a saved node that an earlier value of the same attribute may have taken."""
        replaced = self.objects.get(number)
        if replaced is not None and replaced is not value:
            del self.objects[number], self.numbers[id(replaced)]
        self.match(value, number)

    def match_again(self) -> None:
        """Restores into what has come below the matched objects since."""
        for number, value in list(self.objects.items()):
            below = children(value)
            for name, edge in self.graph.nodes[number].edges.items():
                if name in below:
                    self.match(below[name], edge)

    def _assign(self, variable: Any, key: str) -> None:
        saved, shape = dtypes.as_dtype(self.graph.dtypes[key]), self.graph.shapes[key]
        if dtypes.as_dtype(variable.dtype) != saved:
            raise errors.InvalidArgumentError(
                f"tensor_name = {key}; expected dtype {dtypes.as_dtype(variable.dtype).name} does not equal original "
                f"dtype {saved.name} [Op:RestoreV2]"
            )
        if list(variable.shape) != shape:
            raise ValueError(
                f"Received incompatible tensor with shape {TensorShape(shape)} when attempting to restore variable "
                f"with shape {TensorShape(variable.shape)} and name {variable.name}."
            )
        variable._restore_from_tensors({VALUE: self.values[key]})

    # ------------------------------------------------------------------------------------------- what is not restored
    def unmatched_values(self) -> list[str]:
        """The saved variables that no object has taken, as `(root).net.kernel`."""
        paths: dict[int, tuple[str, ...]] = {0: ()}
        for number, node in enumerate(self.graph.nodes):  # nearer nodes come first
            for name, edge in node.edges.items():
                paths.setdefault(edge, (*paths[number], name))
        return [
            dotted(paths[number])
            for number, node in enumerate(self.graph.nodes)
            if node.keys and number not in self.objects
        ]

    def unmatched_objects(self) -> list[Any]:
        """The variables below the root that the checkpoint has no value for."""
        return [node.object for node in states(walk(self.root)) if id(node.object) not in self.numbers]


class _Attributes:
    """Restores into the attributes that a matched object gets later."""

    def __init__(self, restoration: Restoration, number: int) -> None:
        self.restoration, self.number = restoration, number

    def attribute_set(self, name: str, value: Any) -> None:
        edge = self.restoration.graph.nodes[self.number].edges.get(name)
        if edge is not None and name in children(self.restoration.objects[self.number]):
            self.restoration.match_instead(value, edge)

    def __deepcopy__(self, memo: Any) -> _Attributes:
        return self
