"""Restoring: matches the saved graph with the program's objects, by the names that lead from the root to each."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from functools import partial
from typing import Any

from teletape.core import errors
from teletape.core.tensors import dtypes
from teletape.core.tensors.tensor_shape import TensorShape
from teletape.core.variables.trackable import WAITING, AutoTrackable, children, is_state
from teletape.tf.checkpoints.files import SavedGraph, read_index, read_values
from teletape.tf.checkpoints.object_graph import VALUE, dotted, states, walk
from teletape.tf.checkpoints.waiting_containers import WAITING_CLASSES


class Restoration:
    """A checkpoint that is being restored: the saved node of each object, and the values that wait for objects."""

    def __init__(self, prefix: str, root: Any) -> None:
        self.prefix = prefix
        self.graph: SavedGraph = read_index(prefix)
        self.values = read_values(prefix, self.graph)
        self.root = root
        self.objects: dict[int, Any] = {}  # by the saved node's index; keeps the objects alive, and so their ids valid
        self.numbers: dict[int, int] = {}  # the index of the saved node, by the object's id
        self.match(root, 0)

    def match(self, value: Any, number: int) -> None:
        """Restores the values of a saved node, and of the nodes below it, into an object and the objects below it."""
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
            if isinstance(value, AutoTrackable):
                self._replace_containers(value, node.edges)
            below = children(value)
            queue.extend((below[name], edge) for name, edge in node.edges.items() if name in below)
            if isinstance(value, AutoTrackable) and not below.keys() >= node.edges.keys():
                object.__setattr__(value, WAITING, _Attributes(self, number))

    def _replace_containers(self, value: AutoTrackable, edges: Mapping[str, int]) -> None:
        """Puts waiting containers in place of the lists and dicts among the attributes that lack saved items."""
        trackers = hasattr(value, "_tracker")  # of a Keras object, which has its lists elsewhere too: they stay
        for name, edge in edges.items():
            if name in value.__dict__ and not trackers:
                object.__setattr__(value, name, self._waiting(value.__dict__[name], edge))

    def _waiting(self, value: Any, number: int) -> Any:
        """Returns a container that restores into later items, or the value itself if all items exist."""
        kind = WAITING_CLASSES.get(type(value))
        if kind is None or children(value).keys() >= self.graph.nodes[number].edges.keys():
            return value
        waiting = kind(value)
        waiting.filled = partial(self._match_items, waiting, number)
        self._replace_items(waiting, number)
        return waiting

    def _replace_items(self, container: Any, number: int) -> None:
        edges = self.graph.nodes[number].edges
        set_item: Any = (dict if isinstance(container, dict) else list).__setitem__  # without restoring
        for key, item in list(container.items() if isinstance(container, dict) else enumerate(container)):
            if str(key) in edges:
                set_item(container, key, self._waiting(item, edges[str(key)]))

    def _match_items(self, container: Any, number: int) -> None:
        """Restores into the items that a container got since."""
        self._replace_items(container, number)
        below = children(container)
        for name, edge in self.graph.nodes[number].edges.items():
            if name in below and self.objects.get(edge) is not below[name]:
                self.match_instead(below[name], edge)

    def match_instead(self, value: Any, number: int) -> None:
        """Matches an object with a saved node, even if an earlier value of the same attribute was matched with it."""
        replaced = self.objects.get(number)
        if replaced is not None and replaced is not value:
            del self.objects[number], self.numbers[id(replaced)]
        self.match(value, number)

    def match_again(self) -> None:
        """Restores into the objects that the matched objects got since."""
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
        if not TensorShape(variable.shape).is_compatible_with(shape):
            raise ValueError(
                f"Received incompatible tensor with shape {TensorShape(shape)} when attempting to restore variable "
                f"with shape {TensorShape(variable.shape)} and name {variable.name}."
            )
        variable._restore_from_tensors({VALUE: self.values[key]})

    # ------------------------------------------------------------------------------------------- what is not restored
    def unmatched_values(self) -> list[str]:
        """The saved variables without a matching object, as `(root).net.kernel`."""
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
        """The variables below the root for which the checkpoint has no value."""
        return [node.object for node in states(walk(self.root)) if id(node.object) not in self.numbers]


class _Attributes:
    """Restores into the attributes that a matched object gets later."""

    def __init__(self, restoration: Restoration, number: int) -> None:
        self.restoration, self.number = restoration, number

    def attribute_set(self, name: str, value: Any) -> None:
        edge = self.restoration.graph.nodes[self.number].edges.get(name)
        owner = self.restoration.objects[self.number]
        if edge is None or name not in owner.__dict__:
            return
        self.restoration._replace_containers(owner, {name: edge})
        if name in children(owner):
            self.restoration.match_instead(owner.__dict__[name], edge)

    def __deepcopy__(self, memo: Any) -> _Attributes:
        return self
