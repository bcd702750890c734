"""What the engine calls of CuPy exists and takes these arguments: by the record, and by CuPy where it is installed."""

import ast
import importlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import cupy_offer
import numpy as np
import pytest

from programs import ROOT, load_script

ENGINE = ROOT / "engine" / "teletape_engine"
#: Names that are not functions of CuPy: its modules, NumPy's constants, and what a tracer of plans has in addition.
OTHERS = {"cupy.__name__", "cupy.cuda", "cupy.fft", "cupy.inf", "cupy.lib", "cupy.linalg", "cupy.nan", "cupy.noted"}
OTHERS |= {"cupy.lib.stride_tricks", "cupyx.scipy", "cupyx.scipy.special", "cupyx.scipy.linalg", "cupy.cuda.memory"}
OTHERS |= {"cupy.cuda.runtime", "cupy.cuda.runtime.getDeviceCount", "cupy.cuda.memory.OutOfMemoryError"}
OTHERS |= {"cupy.cuda.runtime.streamCaptureModeThreadLocal"}


class Use(NamedTuple):
    """A place in the engine's source that names something of CuPy."""

    path: str
    keywords: tuple[str, ...]
    where: str


def uses() -> Iterator[Use]:
    """Every name after `xp.`, `cupy.` or `cupyx.` in the engine, with the arguments that a call passes by name."""
    for file in sorted(ENGINE.rglob("*.py")):
        tree = ast.parse(file.read_text(encoding="utf-8"))
        called = {node.func: node for node in ast.walk(tree) if isinstance(node, ast.Call)}
        for node in ast.walk(tree):
            path = dotted(node)
            if path is not None:
                call = called.get(node)
                keywords = () if call is None else tuple(keyword.arg for keyword in call.keywords if keyword.arg)
                yield Use(path, keywords, f"{file.relative_to(ENGINE)}:{node.lineno}")


def dotted(node: ast.AST) -> str | None:
    """`cupy.linalg.svd` for `xp.linalg.svd`; None if a node is nothing of CuPy's."""
    names: list[str] = []
    while isinstance(node, ast.Attribute):
        names.insert(0, node.attr)
        node = node.value
    if not names or not isinstance(node, ast.Name) or node.id not in ("xp", "cupy", "cupyx"):
        return None
    return ".".join([{"xp": "cupy"}.get(node.id, node.id), *names])


def test_the_record_has_every_name_and_argument_that_the_engine_uses() -> None:
    missing = []
    for use in uses():
        if use.path in OTHERS or use.path.startswith("cupy.ndarray"):
            continue
        try:
            cupy_offer.check_keywords(use.path, use.keywords)
        except cupy_offer.NotInCupy as error:
            missing.append(f"{use.where}: {error}")
    assert not missing


def test_calls_that_cupy_does_not_take_are_seen() -> None:
    x = np.zeros((2, 2), np.float32)
    cupy_offer.check("cupy.sum", (x,), {"axis": 0})
    for path, args, kwargs, text in (
        ("cupy.nansum_of", (x,), {}, "CuPy has no cupy.nansum_of"),
        ("cupy.sum", (x,), {"where": x}, "cupy.sum takes no argument where; it takes a axis dtype out keepdims"),
        ("cupy.sum", (x, 0, None, None, False, 0), {}, "cupy.sum takes 5 arguments, found 6"),
        ("cupy.left_shift", (x, 1), {}, "cupy.left_shift does not compute float32, 1"),
        ("cupyx.scatter_max", (x.astype(np.int8), x, x), {}, "cupyx.scatter_max does not take int8"),
    ):
        with pytest.raises(cupy_offer.NotInCupy, match=text):
            cupy_offer.check(path, args, kwargs)
    with pytest.raises(cupy_offer.NotInCupy, match="CuPy's arrays have no method partitioned"):
        cupy_offer.check_method("partitioned", (), {})


@pytest.mark.cupy
def test_the_record_is_that_of_cupy() -> None:
    """Of the names that the engine uses: another version may have more of the others."""
    pytest.importorskip("cupy", reason="CuPy is not installed (make kernels)")
    script = load_script("cupy_names")
    names: dict[str, Any] = script.names()
    for use in uses():
        for part in ("functions", "ufuncs"):
            assert names[part].get(use.path) == cupy_offer.RECORD[part].get(use.path), use
    assert names["methods"] == cupy_offer.RECORD["methods"]
    for path in OTHERS - {"cupy.noted"}:
        module, _, name = path.rpartition(".")
        assert hasattr(importlib.import_module(module), name), path


def test_the_engine_names_cupy_in_its_own_folders_alone() -> None:
    folders = {Path(use.where).parts[0] for use in uses() if use.path.startswith("cupyx")}
    assert folders <= {"arrays", "plans"}
