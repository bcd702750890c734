"""`tf.print`: a program's own messages with tensors in them, formatted as TensorFlow's C++ formats them.

Source: tensorflow/core/framework/tensor.cc (SummarizeValue), python/ops/logging_ops.py (print_v2).
"""

from __future__ import annotations

import logging
import os
import pprint
import random
import sys
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from typing import Any, Final

import numpy as np

from teletape.core.calls import dispatch
from teletape.core.functions.tracing_session import TracingSession
from teletape.core.program.logs import get_logger
from teletape.core.sessions.current import current
from teletape.core.tensors import nest
from teletape.core.tensors.composite import RaggedValue
from teletape.core.tensors.indexed_slices import IndexedSlices
from teletape.core.tensors.tensor import TensorLike
from teletape_engine.arrays import HostArray

_LEVELS: Final = {
    logging.info: logging.INFO,
    logging.warning: logging.WARNING,
    logging.error: logging.ERROR,
    logging.INFO: logging.INFO,
    logging.WARNING: logging.WARNING,
    logging.ERROR: logging.ERROR,
}
_FILE: Final = "file://"
_ESCAPES: Final = {"\n": "\\n", "\r": "\\r", "\t": "\\t", '"': '\\"', "'": "\\'", "\\": "\\\\"}


def tf_print(*inputs: Any, **kwargs: Any) -> None:
    """Prints, by default to the standard error stream; tensors also inside nested structures.

    Args:
        inputs: Strings, tensors, structures of them, anything else.
        kwargs: `output_stream` (sys.stderr; also sys.stdout, logging.info, .warning or .error, or "file://path", which
            is appended to), `summarize` (3: the number of elements shown at each end of a dimension, -1 for all),
            `sep` (" "), `end` (a line end), `name` (without effect).

    Raises:
        ValueError: Another keyword or stream.
    """
    owner, options = current(), dict(kwargs)
    stream = kwargs.pop("output_stream", sys.stderr)
    kwargs.pop("name", None)
    summarize = kwargs.pop("summarize", 3)
    sep, end = kwargs.pop("sep", " "), kwargs.pop("end", os.linesep)
    if kwargs:
        raise ValueError(f"Unrecognized keyword arguments for tf.print: {kwargs}")
    write = _writer(stream)
    if isinstance(owner, TracingSession):
        read = dispatch.as_tensor
        arguments = nest.map_structure(lambda leaf: read(leaf) if isinstance(leaf, TensorLike) else leaf, inputs)
        owner.defer(lambda values: tf_print(*values, **options), list(arguments))
        return
    write(_text(inputs, sep, 3 if summarize is None else summarize) + (os.linesep if end is None else end))


def _writer(stream: Any) -> Any:
    if isinstance(stream, str) and stream.startswith(_FILE):
        return lambda text: _append(stream[len(_FILE) :], text)
    if stream is sys.stdout or stream is sys.stderr:
        return stream.write
    level = _LEVELS.get(stream) if callable(stream) or isinstance(stream, int) else None
    if level is None:
        raise ValueError(
            f"Unsupported output stream, logging level, or file.{stream}. Supported streams are sys.stdout, "
            "sys.stderr, tf.logging.info, tf.logging.warning, tf.logging.error. File needs to be in the form of "
            "'file://<filepath>'."
        )
    return lambda text: get_logger().log(level, "%s", text.removesuffix(os.linesep))


def _append(path: str, text: str) -> None:
    with open(path, "a", encoding="utf-8", newline="") as file:
        file.write(text)


def _text(inputs: Sequence[Any], sep: str, summarize: Any) -> str:
    ordered = [OrderedDict(sorted(item.items())) if isinstance(item, OrderedDict) else item for item in inputs]
    without = nest.map_structure(lambda leaf: "" if _is_tensor(leaf) else leaf, ordered)
    placeholder = _absent_from(" ".join(map(pprint.pformat, without)))
    tensors: list[Any] = []
    templates = []
    for item in inputs:
        leaves = nest.flatten(item)
        tensors += [leaf for leaf in leaves if _is_tensor(leaf)]
        if isinstance(item, str):
            templates.append(item)
        else:
            marked = [placeholder if _is_tensor(leaf) else leaf for leaf in leaves]
            templates.append(pprint.pformat(nest.pack_sequence_as(item, marked)))
    template = sep.join(templates).replace(f"'{placeholder}'", placeholder)
    arrays = values([tensor for tensor in tensors if not isinstance(tensor, RaggedValue)])
    if (
        len(inputs) == 1
        and len(tensors) == len(arrays) == 1
        and template == placeholder
        and _is_string_scalar(arrays[0])
    ):
        return _decoded(arrays[0].item())  # a single input is the message itself
    if not isinstance(summarize, int | float):
        raise TypeError(f"Expected int for argument 'summarize' not {summarize!r}.")
    parts = template.split(placeholder)
    rest = iter(arrays)
    shown = [
        rows_text(tensor.to_list(), int(summarize))
        if isinstance(tensor, RaggedValue)
        else summarized(next(rest), int(summarize))
        for tensor in tensors
    ]
    return parts[0] + "".join(text + part for text, part in zip(shown, parts[1:], strict=True))


def values(tensors: Iterable[Any]) -> list[HostArray]:
    """The values of tensors, variables and slices, in one round trip."""
    dense = [dispatch.as_tensor(tensor) if isinstance(tensor, IndexedSlices) else tensor for tensor in tensors]
    return current().fetch_all([tensor.operand() for tensor in dense])


def _is_tensor(leaf: Any) -> bool:
    return isinstance(leaf, TensorLike | IndexedSlices | RaggedValue)


def _absent_from(text: str) -> str:
    """TensorFlow's placeholder, whose length decides about line breaks in a long structure."""
    placeholder, digits = "{}", random.Random(5)
    while placeholder in text:
        placeholder += str(digits.randint(0, 9))
    return placeholder


def _is_string_scalar(array: HostArray) -> bool:
    return array.dtype == object and array.ndim == 0


def summarized(array: HostArray, ends: int) -> str:
    """The elements, at most `ends` at each end of a dimension; -1: all of them."""
    ends = array.size if ends < 0 else min(ends, array.size)
    if array.ndim == 0:
        return _element(array[()]) if ends else "..."
    return _rows(array, 0, array.ndim, ends)


def rows_text(rows: Any, ends: int) -> str:
    """The elements of a ragged tensor's rows, nested lists; at most `ends` at each end of a list, -1: all of them."""
    if not isinstance(rows, list):
        return _python_text(rows)
    if ends >= 0 and len(rows) > 2 * ends:
        shown = [*(rows_text(row, ends) for row in rows[:ends]), "..."]
        shown += [rows_text(row, ends) for row in rows[len(rows) - ends :]]
    else:
        shown = [rows_text(row, ends) for row in rows]
    return f"[{', '.join(shown)}]"


def _python_text(value: Any) -> str:
    if isinstance(value, bytes):
        return f"'{_escaped(_decoded(value))}'"
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:f}" if isinstance(value, float) else str(value)


def _rows(part: Any, dim: int, rank: int, ends: int) -> str:
    if dim == rank:
        return _element(part)
    n, gap = len(part), _gap(dim, rank)
    shown = [_rows(part[i], dim + 1, rank, ends) for i in range(min(ends, n))]
    if n > 2 * ends:
        shown.append("..." if shown else gap + "...")  # the gap stays if there are no elements before the dots
    shown += [_rows(part[i], dim + 1, rank, ends) for i in range(max(ends, n - ends), n)]
    return "[" + gap.join(shown) + "]"


def _gap(dim: int, rank: int) -> str:
    return " " if dim == rank - 1 else "\n" * (rank - 1 - dim) + " " * (dim + 1)


def _element(value: Any) -> str:
    if isinstance(value, bytes | str):
        return f'"{_escaped(_decoded(value))}"'
    dtype = np.asarray(value).dtype
    if dtype.kind == "c":
        return "?"  # TensorFlow has no text for them
    if dtype.kind == "b":
        return "1" if value else "0"
    return _float(value, dtype) if dtype.kind not in "iu" else str(int(value))


def _float(element: Any, dtype: Any) -> str:
    """The text in the shorter of two precisions that reads back as the same number."""
    kind: Any = np.float64 if dtype == np.float64 else np.float32
    value, short, full = (kind(element), ".15g", ".17g") if kind is np.float64 else (kind(element), ".6g", ".9g")
    if not np.isfinite(value):
        return "nan" if np.isnan(value) else "inf" if value > 0 else "-inf"
    text = format(float(value), short)
    return text if kind(text) == value else format(float(value), full)


def _decoded(text: Any) -> str:
    return text.decode() if isinstance(text, bytes) else str(text)


def _escaped(text: str) -> str:
    return "".join(_ESCAPES.get(char) or (char if " " <= char != "\x7f" else f"\\{ord(char):03o}") for char in text)
