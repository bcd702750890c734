"""Bodies of requests: JSON with small arrays in it as base64, or safetensors if the arrays are larger."""

from __future__ import annotations

import base64
import json
import math
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

from teletape_client.tensors import safetensors

if TYPE_CHECKING:
    from teletape_client.tensors.values import Array

JSON: Final = "application/json"
#: Bytes of all arrays of a request above which they are sent as safetensors; of this size both take the same time.
BINARY_ABOVE: Final = 16 << 10
_AS_THEY_ARE: Final = frozenset((str, int, bool, type(None)))
#: Fields whose members are tensors; the numbers in other lists are a tensor's elements.
_LISTS: Final = frozenset("inputs output_gradients vectors tangents primals cotangents".split())
#: Fields with lists of names, for which a caller may pass a single name.
NAMES: Final = frozenset(("sources", "targets", "fetch"))


class Body(NamedTuple):
    """The body of a request.

    Attributes:
        content: The bytes.
        content_type: Of them.
        has_file_dtypes: Whether safetensors has a name for the dtypes of all arrays.
    """

    content: bytes
    content_type: str
    has_file_dtypes: bool


def body_of(fields: Mapping[str, Any], *, takes_file: bool) -> Body:
    """Returns the body with these fields; those that are None are left out.

    Args:
        fields: JSON-able data, with arrays in place of tensors, and items in place of ids.
        takes_file: Whether the server takes safetensors here.

    Raises:
        TypeError: Something in the fields cannot be sent.
    """
    arrays: list[Array] = []
    plain = {name: _plain(value, name, arrays) for name, value in fields.items() if value is not None}
    plain |= {name: [plain[name]] for name in NAMES & plain.keys() if isinstance(plain[name], str)}
    has_file_dtypes = all(array.dtype.name in safetensors.NAMES for array in arrays)
    if takes_file and has_file_dtypes and sum(array.nbytes for array in arrays) > BINARY_ABOVE:
        tensors = {f"t{number}": array for number, array in enumerate(arrays)}
        content = safetensors.write(tensors, {"request": _text(plain)})
        return Body(content, safetensors.SAFETENSORS, True)
    if arrays:
        plain = _with_arrays(plain, arrays)
    return Body(_text(plain).encode(), JSON, has_file_dtypes)


def _text(plain: Any) -> str:
    return json.dumps(plain, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


class _Place(dict[str, str]):
    """A reference to an array in safetensors, as long as the body may be safetensors."""

    __slots__ = ("number",)

    def __init__(self, number: int) -> None:
        super().__init__(tensor=f"t{number}")
        self.number = number


def _plain(value: Any, name: str, arrays: list[Array]) -> Any:
    """Returns JSON-able data, with places for arrays, which are added to `arrays`."""
    if type(value) in _AS_THEY_ARE:
        return value
    np = sys.modules.get("numpy")  # an array cannot be there before NumPy is
    if np is not None and isinstance(value, np.ndarray | np.generic):
        array = np.asarray(value)
        if array.dtype.kind in "OSUmM":
            raise TypeError(f"{name}: an array of dtype {array.dtype} is no tensor: pass numbers")
        arrays.append(array)
        return _Place(len(arrays) - 1)
    if isinstance(value, float):
        return value if math.isfinite(value) else {"number": _word(value)}
    if isinstance(value, Mapping):
        members = cast("Mapping[str, Any]", value)
        return {key: _plain(member, key, arrays) for key, member in members.items()}
    if isinstance(value, list | tuple):
        return _plain_list(cast("Sequence[Any]", value), name, arrays)
    if isinstance(value, complex):
        return {"number": [value.real, value.imag]}
    if isinstance(value, str | int):
        return value
    id = getattr(value, "id", None)
    if isinstance(id, str):
        return id
    raise TypeError(f"{name}: {type(value).__name__} is neither a number, a NumPy array nor an id: {value!r:.80}")


def _plain_list(values: Sequence[Any], name: str, arrays: list[Array]) -> Any:
    if name in _LISTS:
        return [_plain(value, "", arrays) for value in values]
    np = sys.modules.get("numpy")
    if np is not None and any(isinstance(value, np.ndarray | np.generic) for value in values):
        return _plain(np.asarray(values), name, arrays)
    if any(isinstance(value, complex) for value in values):
        raise TypeError(f"{name}: pass complex numbers as a NumPy array, which has their dtype")
    return [
        _word(value) if isinstance(value, float) and not math.isfinite(value) else _plain(value, name, arrays)
        for value in values
    ]


def _word(number: float) -> str:
    return "NaN" if math.isnan(number) else "Infinity" if number > 0 else "-Infinity"


def _with_arrays(value: Any, arrays: list[Array]) -> Any:
    if isinstance(value, _Place):
        array = arrays[value.number]
        data = base64.b64encode(safetensors.raw(array)).decode()
        return {"dtype": array.dtype.name, "shape": array.shape, "encoding": "base64", "data": data}
    if isinstance(value, dict):
        members = cast("dict[str, Any]", value)
        return {key: _with_arrays(member, arrays) for key, member in members.items()}
    if isinstance(value, list):
        return [_with_arrays(member, arrays) for member in cast("Sequence[Any]", value)]
    return value
