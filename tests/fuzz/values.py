"""Arrays, numbers and attributes for fuzzed ops: as JSON-able data, and made from it."""

import math
import random
import zlib
from typing import Any

import numpy as np

from teletape_engine.catalogue.attributes import Attr, plain
from teletape_engine.catalogue.op import Op
from teletape_engine.recording.values import Literal
from teletape_engine.spec import DTYPES

FLOATS = ("float32", "float64", "float16", "bfloat16")
HUGE = (
    10**6,
    10**8,
    3 * 10**9,
    2**31 - 1,
    2**31,
    -(2**31),
    2**32,
    2**62,
    2**63 - 1,
    2**63,
    -(2**63),
    2**64,
    10**30,
    -(10**30),
    10**400,
)
LENGTHS = (0, 1, 1, 2, 2, 3, 3, 4, 5, 7)
CONTENTS = ("small", "small", "small", "zeros", "ones", "indices", "special", "extreme", "negative")
WRONG = (None, True, "x", 1.5, [], [[1]], {"a": 1}, "", -1, [None], ["..."], "NaN")


# ------------------------------------------------------------------------------------------------------------- inputs
def draw_shape(rng: random.Random, most: int = 4096) -> list[int]:
    """A shape of rank 0 to 8, of few elements; sometimes without elements and with one huge length."""
    if rng.random() < 0.02:
        return [0] * 8 + [1] * rng.choice([1, 24, 56])
    shape = [rng.choice(LENGTHS) for _ in range(rng.choice([0, 0, 1, 1, 2, 2, 2, 3, 3, 4, 4, 5, 6, 7, 8]))]
    if rng.random() < 0.02 and shape:
        shape[rng.randrange(len(shape))] = rng.choice([2**31, 2**31 - 1, 2**40])
        shape[rng.randrange(len(shape))] = 0
    return _small(rng, shape, most)


def _small(rng: random.Random, shape: list[int], most: int) -> list[int]:
    while math.prod(shape) > most:
        shape[rng.randrange(len(shape))] = 1
    return shape


def mutated_shape(rng: random.Random, shape: list[int]) -> list[int]:
    """The shape with one axis changed, removed or added."""
    shape = list(shape)
    kind = rng.randrange(3) if len(shape) < 64 else 1
    at = rng.randrange(len(shape) + 1)
    if kind == 0 or not shape:
        shape.insert(at, rng.choice(LENGTHS))
    elif kind == 1:
        del shape[at % len(shape)]
    else:
        shape[at % len(shape)] = rng.choice(LENGTHS)
    return _small(rng, shape, 4096)


def draw_input(rng: random.Random, dtype: str, shape: list[int]) -> Any:
    """An array as {dtype, shape, contents}; sometimes a Python number instead, as [number] or [re, im]."""
    if rng.random() < 0.08:
        return rng.choice(
            [
                [0],
                [1],
                [-1],
                [2.5],
                [True],
                [1e300],
                [2**40],
                [2**70],
                [10**400],
                [0.0],
                [255],
                [0.0, 1.0],
                ["NaN"],
                ["Infinity"],
            ]
        )
    return {"dtype": dtype, "shape": shape, "contents": rng.choice(CONTENTS)}


def array_of(written: dict[str, Any]) -> np.ndarray[Any, Any]:
    """The array: what it contains depends on its description alone."""
    dtype, shape, contents = DTYPES[written["dtype"]], tuple(written["shape"]), written["contents"]
    seed = zlib.crc32(repr((written["dtype"], shape, contents)).encode())
    random = np.random.default_rng(seed)
    size = math.prod(shape)
    if contents == "zeros":
        numbers = np.zeros(size)
    elif contents == "ones":
        numbers = np.ones(size)
    elif contents == "indices":
        numbers = random.integers(0, 3, size).astype(np.float64)
    elif contents == "negative":
        numbers = -random.integers(1, 4, size).astype(np.float64)
    elif contents == "special":
        numbers = random.choice([0.0, -0.0, 1.0, np.nan, np.inf, -np.inf, 1e-310, 2.0], size)
    elif contents == "extreme":
        numbers = random.choice([3e38, -3e38, 6e4, 1e-38, 2.0**62, -(2.0**63), 255.0], size)
    else:
        numbers = random.uniform(-2, 2, size)
    with np.errstate(all="ignore"):
        if dtype.kind == "c":
            return (numbers + 1j * numbers[::-1]).astype(dtype).reshape(shape)
        if dtype.kind in "iu":
            numbers = np.clip(np.nan_to_num(numbers), float(np.iinfo(dtype).min), float(np.iinfo(dtype).max) * 0.99)
        return numbers.astype(dtype).reshape(shape)


def number_of(written: list[Any]) -> Literal:
    """The Python number of an input that is one."""
    words = {"NaN": math.nan, "Infinity": math.inf}
    parts = [words.get(part, part) if isinstance(part, str) else part for part in written]
    return Literal(complex(*parts) if len(parts) == 2 else parts[0])


# --------------------------------------------------------------------------------------------------------- attributes
def words_of(op: Op) -> dict[str, list[Any]]:
    """For each attribute what the op's own samples have there, and its default."""
    seen: dict[str, list[Any]] = {attr.name: [] for attr in op.schema.attrs}
    for example in op.samples():
        for name, value in op.attrs(example.attrs).items():
            if plain(value) not in seen[name]:
                seen[name].append(plain(value))
    return seen


def draw_attribute(rng: random.Random, attr: Attr, seen: list[Any]) -> Any:
    """A value for an attribute: usual, at the edge, huge, or of the wrong kind."""
    choice = rng.random()
    if choice < 0.35 and seen:
        return rng.choice(seen)
    if choice < 0.40:
        return rng.choice(WRONG)
    if attr.optional and choice < 0.5:
        return None
    return _BY_KIND[attr.kind](rng)


def enlarged(rng: random.Random, value: Any) -> Any:
    """The attribute with one of its integers made large."""
    if isinstance(value, list) and value:
        at = rng.randrange(len(value))
        return [enlarged(rng, each) if index == at else each for index, each in enumerate(value)]
    if isinstance(value, int) and not isinstance(value, bool):
        return rng.choice([1000, 30_000, 10**6, 10**7, 10**9, 2**40, *HUGE])
    return value


def _int(rng: random.Random) -> int:
    return rng.choice(HUGE) if rng.random() < 0.25 else rng.randint(-9, 9) if rng.random() < 0.5 else rng.randint(0, 3)


def _float(rng: random.Random) -> Any:
    usual = (0.0, 1.0, -1.0, 0.5, 2, -2.5, 1e-9)
    return rng.choice((*usual, 1e308, -1e308, 5e-324, 1e39, 10**400, "NaN", "Infinity", "-Infinity"))


def _number(rng: random.Random) -> Any:
    return rng.choice([_float(rng), _int(rng), True, [1.0, 2.0], ["Infinity", "NaN"], [1e308, 0]])


def _ints(rng: random.Random) -> list[int]:
    return [_int(rng) for _ in range(rng.choice([0, 1, 1, 2, 2, 3, 4, 4, 5, 8, 40, 70]))]


def _shape(rng: random.Random) -> list[int]:
    return draw_shape(rng) if rng.random() < 0.6 else [abs(n) for n in _ints(rng)]


def _axes(rng: random.Random) -> Any:
    return rng.choice([None, _int(rng), rng.randint(-3, 3), [rng.randint(-3, 3) for _ in range(rng.randint(0, 3))]])


def _pairs(rng: random.Random) -> Any:
    return [[_int(rng), _int(rng)] for _ in range(rng.choice([0, 1, 2, 2, 3, 4]))]


def _slices(rng: random.Random) -> Any:
    def part() -> Any:
        bound = [None if rng.random() < 0.4 else _int(rng) for _ in range(3)]
        return rng.choice([None, "...", _int(rng), rng.randint(-2, 2), bound, bound, bound])

    return [part() for _ in range(rng.choice([0, 1, 1, 2, 2, 3, 5, 9]))]


_BY_KIND = {
    "bool": lambda rng: rng.random() < 0.5,
    "int": _int,
    "Axis": _int,
    "float": _float,
    "Number": _number,
    "str": lambda rng: rng.choice(
        ["SAME", "VALID", "EXPLICIT", "REFLECT", "CONSTANT", "set", "", "ij,jk->ik", "é", "a" * 999]
    ),
    "DType": lambda rng: rng.choice([*DTYPES, "string", "object", "V8", ""]),
    "Ints": _ints,
    "Shape": _shape,
    "Axes": _axes,
    "Pairs": _pairs,
    "Slices": _slices,
}
