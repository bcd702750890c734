"""The transformations of datasets, each as an iterator over an iterator of elements."""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from teletape.core.errors import OpError
from teletape.core.program import logs
from teletape.tf.data.elements.functions import ElementFunction
from teletape.tf.data.elements.leaves import host_of, padded, shape_of, stacked, unstacked
from teletape.tf.data.elements.mapped import Element, joined, leaves_of

Start = Callable[[], Iterator[Element]]


def batched(elements: Iterator[Element], size: int, drop_remainder: bool) -> Iterator[Element]:
    """`size` elements at a time."""
    while taken := list(itertools.islice(elements, size)):
        if len(taken) == size or not drop_remainder:
            yield joined(taken)


def padded_batches(
    elements: Iterator[Element],
    size: int,
    shapes: Sequence[Sequence[int | None] | None],
    values: Sequence[Any],
    drop_remainder: bool,
) -> Iterator[Element]:
    """Like `batched`, with each leaf padded; along axes without a size to the largest in the batch."""
    while taken := [leaves_of(element) for element in itertools.islice(elements, size)]:
        if len(taken) < size and drop_remainder:
            return
        batch = []
        for i, (column, shape, value) in enumerate(zip(zip(*taken, strict=True), shapes, values, strict=True)):
            sizes = [shape_of(leaf) for leaf in column]
            largest = [max(axis) for axis in zip(*sizes, strict=False)]
            wanted = (
                largest
                if shape is None
                else [most if dim is None else dim for dim, most in itertools.zip_longest(shape, largest)]
            )
            batch.append(stacked([padded(leaf, wanted, value) for leaf in column], i))
        yield batch


def unbatched(elements: Iterator[Element]) -> Iterator[Element]:
    """The slices of each element along the first axis."""
    for element in elements:
        leaves = leaves_of(element)
        columns = [None if leaf is None else unstacked(leaf) for leaf in leaves]
        count = next(len(column) for column in columns if column is not None)
        yield from ([None if column is None else column[i] for column in columns] for i in range(count))


def shuffled(elements: Iterator[Element], size: int | None, words: Iterator[int]) -> Iterator[Element]:
    """Elements drawn from a buffer, which the following elements refill, in TensorFlow's order.

    Args:
        elements: The elements.
        size: Of the buffer; None: it takes all elements.
        words: Random integers of 32 bits, one for each element.
    """
    buffer: list[Element | None] = list(itertools.islice(elements, size))
    size = filled = len(buffer)
    begin = 0  # among the rest; the buffer is a ring
    ended = object()
    while filled:
        at = (begin + next(words) % filled) % size
        drawn, buffer[at] = buffer[at], buffer[begin]
        assert drawn is not None
        yield drawn
        element: Any = next(elements, ended)
        buffer[begin] = None if element is ended else element
        filled -= element is ended
        begin = (begin + 1) % size


def repeated(start: Start, count: int) -> Iterator[Element]:
    """The elements `count` times; without end if it is negative."""
    for _ in itertools.count() if count < 0 else range(count):
        empty = True
        for element in start():
            empty = False
            yield element
        if empty:  # and so would be every later round
            return


def windows(
    elements: Iterator[Element], size: int, shift: int, stride: int, drop_remainder: bool
) -> Iterator[list[Element]]:
    """Lists of `size` elements, `stride` apart; each list begins `shift` elements after the one before."""
    span = (size - 1) * stride + 1
    buffer: deque[Element] = deque()
    ended = False
    while True:
        while not ended and len(buffer) < span:
            try:
                buffer.append(next(elements))
            except StopIteration:
                ended = True
        if not buffer:
            return
        window = [buffer[i] for i in range(0, min(span, len(buffer)), stride)]
        if len(window) == size or not drop_remainder:
            yield window
        for _ in range(shift):
            if buffer:
                buffer.popleft()
            elif not ended:
                ended = next(elements, None) is None


def filtered(elements: Iterator[Element], predicate: ElementFunction) -> Iterator[Element]:
    """The elements for which a predicate is true."""
    return (element for element in elements if _true(predicate, element))


def taken_while(elements: Iterator[Element], predicate: ElementFunction) -> Iterator[Element]:
    """The elements before the first for which a predicate is false."""
    return itertools.takewhile(lambda element: _true(predicate, element), elements)


def _true(predicate: ElementFunction, element: Element) -> bool:
    return bool(predicate.host(element)[0])


def scanned(elements: Iterator[Element], state: Sequence[Any], function: ElementFunction) -> Iterator[Element]:
    """The results of a function of the state and each element; the function also returns the next state."""
    count = len(state)
    for element in elements:
        results = function([*state, *leaves_of(element)])
        state = results[:count]
        yield results[count:]


def interleaved(
    elements: Iterator[Element],
    inner: Callable[[Element], Iterator[Element]],
    cycle_length: int,
    block_length: int,
) -> Iterator[Element]:
    """The elements of `cycle_length` inner datasets in turn, `block_length` of each."""
    slots: list[Iterator[Element] | None] = [None] * cycle_length
    at = block = 0
    ended = False
    while not ended or any(slot is not None for slot in slots):
        slot = slots[at]
        if slot is None:
            element = None if ended else next(elements, None)
            if element is not None:
                slots[at] = inner(element)
                continue
            ended = True
            at, block = (at + 1) % cycle_length, 0
            continue
        try:
            result = next(slot)
        except StopIteration:
            slots[at] = None
            at, block = (at + 1) % cycle_length, 0
            continue
        block += 1
        if block == block_length:
            at, block = (at + 1) % cycle_length, 0
        yield result


def chosen(starts: Sequence[Start], choices: Iterator[int | None], stop_on_empty: bool) -> Iterator[Element]:
    """The next element of the dataset whose number comes next; None: of any that is left."""
    iterators: list[Iterator[Element] | None] = [start() for start in starts]
    for choice in choices:
        if choice is None:
            return
        iterator = iterators[choice]
        element = None if iterator is None else next(iterator, None)
        if element is not None:
            yield element
            continue
        if stop_on_empty:
            return
        iterators[choice] = None
        if not any(iterators):
            return


def without_failures(elements: Iterator[Element], *, log: bool) -> Iterator[Element]:
    """The elements whose values can be computed."""
    while True:
        try:
            element = next(elements, None)
            if element is None:
                return
            leaves = leaves_of(element)
            for leaf in leaves:
                host_of(leaf)
        except OpError as error:
            if log:
                logs.get_logger().warning("an element of a dataset is left out: %s", error)
            continue
        yield leaves


def unique(elements: Iterator[Element]) -> Iterator[Element]:
    """Each element once."""
    seen = set()
    for element in elements:
        key = tuple([(str(array.dtype), array.shape, _bytes(array)) for array in map(host_of, leaves_of(element))])
        if key not in seen:
            seen.add(key)
            yield element


def _bytes(array: Any) -> Any:
    return tuple(np.ravel(array).tolist()) if array.dtype == object else np.ascontiguousarray(array).tobytes()


def grouped(
    elements: Iterator[Element],
    key_of: ElementFunction,
    window_size_of: Callable[[Any], int],
    reduce: Callable[[Any, list[Element]], Iterator[Element]],
) -> Iterator[Element]:
    """The elements of the datasets that a function of a key and a window returns; a window has elements of one key."""
    groups: dict[int, list[Element]] = {}
    sizes: dict[int, int] = {}
    for element in elements:
        array = key_of.host(element)[0]
        key = int(array)
        group = groups.setdefault(key, [])
        group.append(element)
        if key not in sizes:
            sizes[key] = window_size_of(array)
        if len(group) == sizes[key]:
            del groups[key]
            yield from reduce(array, group)
    for key, group in groups.items():
        yield from reduce(np.int64(key), group)
