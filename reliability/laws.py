"""Checks every op by every law on more inputs than the tests do: `make laws`.

The tests check an op on its own samples. Here each sample is varied: its numbers are drawn anew among themselves and
scaled, and ops that broadcast get arrays of many shapes: without axes, with axes of length 0 and 1, of rank 4. The
variations come from a seed, so that a failure can be repeated.

    make laws ARGS='--variations 20 --only qr --law second_order --seed 7'

They are checked on the CPU, on a GPU (`--device gpu`), or on the tests' substitute for CuPy (`--device substitute`).
"""

from __future__ import annotations

import argparse
import functools
import importlib
import multiprocessing
import os
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import teletape_engine.ops  # noqa: F401  # fills the catalogue
from teletape_engine.catalogue.elementwise import batch_elementwise
from teletape_engine.catalogue.op import CATALOGUE, Op, Sample
from teletape_engine.errors import InvalidArgumentError

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))
from op_laws.harness import Case, LawError, computing_on
from op_laws.laws import LAWS, check_op

#: Shapes that broadcast with each other, for ops of one to three inputs.
SHAPES = [
    ((), (), ()),
    ((), (3,), (1,)),
    ((5,), (1,), ()),
    ((2, 1, 3), (4, 1), (3,)),
    ((4, 1), (2, 1, 3), (1, 1)),
    ((0, 3), (1, 3), (3,)),
    ((1,), (0,), ()),
    ((2, 1, 2, 1), (1, 3, 1, 2), (2, 1, 1, 1)),
]

#: Ops whose inputs fit each other: their numbers stay as they are.
FIXED = {
    "crop_and_resize": "of nearest pixels has TensorFlow's gradient by the boxes, that of bilinear crops",
    "dilation2d": "has no derivative where two sums are equal, as they may be in 16 bits",
    "floordiv": "jumps where a quotient is whole, as one may be in 16 bits",
    "floormod": "jumps where a quotient is whole, as one may be in 16 bits",
    "adjust_hue": "has no derivative where two channels are equal",
    "adjust_saturation": "has no derivative where two channels are equal",
    "truncatediv": "jumps where a quotient is whole, as one may be in 16 bits",
    "total_variation": "has no derivative where neighbours are equal",
    "softmax_cross_entropy": "labels add up to 1",
    "reduce_std": "loses its digits where numbers are nearly equal",
    "rgb_to_hsv": "has no derivative where two channels are equal",
}


def variations(op: Op, count: int, seed: int) -> Iterator[Sample]:
    """The op's samples with other numbers, and with other shapes if the op broadcasts."""
    random = np.random.default_rng(seed)
    for sample in op.samples():
        for _ in range(count if op.name not in FIXED else 0):
            yield Sample(tuple(_redrawn(op, index, x, random) for index, x in enumerate(sample.inputs)), sample.attrs)
    if op.batch is batch_elementwise and not op.variadic:
        sample = op.samples()[0]
        for shapes in SHAPES:
            inputs = [
                np.asarray(np.resize(random.permutation(np.ravel(x)), shape)) if isinstance(x, np.ndarray) else x
                for x, shape in zip(sample.inputs, shapes, strict=False)
            ]
            yield Sample(tuple(inputs), sample.attrs)


def _redrawn(op: Op, index: int, x: Any, random: np.random.Generator) -> Any:
    """An input with its numbers in another order and scaled; those of linear algebra are only scaled.

    Another order may make a matrix singular, or a factor no longer triangular.
    """
    if not isinstance(x, np.ndarray) or x.dtype.kind != "f":
        return x
    matrices = (op.expand or op.forward).__module__.startswith("teletape_engine.ops.linalg")
    numbers = x if matrices or index in op.symmetric else random.permutation(np.ravel(x)).reshape(x.shape)
    return np.asarray(numbers * random.uniform(0.9, 1.0))


@functools.cache
def device_of(name: str) -> str:
    """The device of that name; for the substitute CuPy is replaced in this process."""
    if name != "substitute":
        return name
    import pytest

    sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "engine"))
    importlib.import_module("substitute").installed(pytest.MonkeyPatch())
    return "gpu"


def check(name: str, law: str | None, count: int, seed: int, device: str) -> tuple[str, Counter[str], list[str]]:
    """Checks one op: how many checks of each law passed, how many inputs it refused, and what failed."""
    with computing_on(device_of(device)):
        return check_here(CATALOGUE[name], law, count, seed)


def check_here(op: Op, law: str | None, count: int, seed: int) -> tuple[str, Counter[str], list[str]]:
    """As `check`, on the device that the laws are checked on."""
    passed, failures = Counter[str](), []
    for sample in variations(op, count, seed):
        try:
            case = Case(op, sample)
            case.bound()
            case.run()
        except InvalidArgumentError:
            passed["refused"] += 1
            continue
        for each in LAWS if law is None else [law]:
            try:
                check_op(op, sample, law=each)
                passed[each] += 1
            except LawError as error:
                failures.append(str(error))
    return op.name, passed, failures


def main() -> int:
    """Checks what the arguments name; returns 1 if an op broke a law."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--variations", type=int, default=10, help="of the numbers of each sample")
    parser.add_argument("--only", action="append", choices=sorted(CATALOGUE), metavar="OP", help="an op; repeatable")
    parser.add_argument("--law", choices=sorted(LAWS), help="one law; by default all of them")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", default="cpu", help="cpu, gpu, gpu:N, or substitute: the tests' one for CuPy")
    options = parser.parse_args()
    there = [name for name, op in CATALOGUE.items() if options.device == "cpu" or not op.on_gpu.missing]
    names, began = options.only or sorted(there), time.monotonic()
    total, failures = Counter[str](), []
    job = functools.partial(check, law=options.law, count=options.variations, seed=options.seed, device=options.device)
    with multiprocessing.get_context("spawn").Pool(os.cpu_count()) as pool:
        for name, passed, failed in pool.imap_unordered(job, names):
            total.update(passed)
            failures += failed
            for failure in failed[:3]:
                print(f"{name}: {failure}", flush=True)
    refused = total.pop("refused", 0)
    seconds = f"{time.monotonic() - began:.0f} s"
    print(f"{len(names)} ops on {options.device}, seed {options.seed}, {seconds}, {refused} inputs refused by an op")
    for law, number in total.most_common():
        print(f"  {law:13} {number:7} checks hold")
    print(f"{len(failures)} checks fail")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
