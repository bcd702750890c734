"""Stores of `Dataset.cache`: elements in memory, or the values of elements in a file."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from teletape.tf.data.elements.leaves import host_of
from teletape.tf.data.elements.mapped import Element, Mapped, leaves_of


class MemoryStore:
    """Stores elements in memory; those on a server stay there."""

    def __init__(self) -> None:
        self._elements: list[Element] | None = None

    def elements(self, start: Callable[[], Iterator[Element]]) -> Iterator[Element]:
        """Yields the stored elements, or those of an iteration, which are stored if it is complete."""
        if self._elements is not None:
            yield from self._elements
            return
        elements = []
        for element in start():
            if isinstance(element, Mapped) and not element.function.pure:
                element = element.leaves()  # computed once: it may draw random numbers
            elements.append(element)
            yield element
        self._elements = elements


class FileStore:
    """Stores values in a file of NumPy's, `<path>.npz`.

    Args:
        path: The path.
    """

    def __init__(self, path: str) -> None:
        self._path = Path(f"{path}.npz")

    def elements(self, start: Callable[[], Iterator[Element]]) -> Iterator[Element]:
        """Yields the elements in the file, or those of an iteration, which are written if it is complete."""
        if self._path.exists():
            with np.load(self._path) as file:
                for i in range(int(file["elements"])):
                    yield [_read(file, f"{i}.{j}") for j in range(int(file["leaves"]))]
            return
        rows = []
        for element in start():
            leaves = leaves_of(element)
            rows.append([np.asarray(host_of(leaf)) for leaf in leaves])
            yield leaves
        columns: dict[str, Any] = {"elements": len(rows), "leaves": len(rows[0]) if rows else 0}
        for i, row in enumerate(rows):
            for j, array in enumerate(row):
                columns |= _written(f"{i}.{j}", array)
        partial = self._path.with_suffix(f".{os.getpid()}.npz")
        np.savez(partial, **columns)
        os.replace(partial, self._path)


def _written(name: str, array: Any) -> dict[str, Any]:
    """Returns the entries of an array; strings are bytes and their lengths."""
    if array.dtype != object:
        return {name: array}
    texts = array.reshape(-1).tolist()
    lengths = np.array([len(text) for text in texts], np.int64).reshape(array.shape)
    return {f"{name}.lengths": lengths, name: np.frombuffer(b"".join(texts), np.uint8)}


def _read(file: Any, name: str) -> Any:
    if f"{name}.lengths" not in file:
        return file[name]
    lengths, text = file[f"{name}.lengths"], file[name].tobytes()
    array = np.empty(lengths.shape, object)
    ends = np.cumsum(lengths.reshape(-1))
    array.reshape(-1)[:] = [text[end - size : end] for end, size in zip(ends, lengths.reshape(-1), strict=True)]
    return array
