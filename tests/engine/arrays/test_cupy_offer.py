"""What the engine calls of CuPy exists and takes these arguments: by the record, and by CuPy where it is installed."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import cupy_offer
import numpy as np
import pytest
from cupy_uses import OF_DEVICES, of_source, uses

from programs import ROOT

#: What the record does not have: a module's own name, an attribute of streams that their class has not, and what a
#: tracer of plans has in addition.
OTHERS = {"cupy.__name__", "cupy.cuda.Stream.ptr", "cupy.noted"}
#: Where a name is computed: which of them there are is seen when the catalogue runs on the substitute.
COMPUTED = {"arrays/decompositions.py", "catalogue/elementwise.py", "plans/ir/instructions.py"}


def test_the_record_has_every_name_and_argument_that_the_engine_uses() -> None:
    missing, computed = [], set()
    for use in uses():
        if use.path in OTHERS:
            continue
        if use.path.endswith(".?"):
            computed.add(use.where.partition(":")[0])
            continue
        try:
            cupy_offer.check_keywords(use.path, use.keywords)
        except cupy_offer.NotInCupy as error:
            missing.append(f"{use.where}: {error}")
    assert not missing
    assert computed == COMPUTED


def test_pinned_memory_stays_in_the_pool_that_the_next_session_takes_it_from() -> None:
    """To pin memory anew is what makes waking slow: it is taken from CuPy's pool, and nothing empties that."""
    assert {use.path for use in uses() if "pinned_memory" in use.path} == {"cupy.cuda.alloc_pinned_memory"}


def test_uses_are_found_under_whatever_name_cupy_is_held() -> None:
    source = """
from cupyx.scipy.linalg import lu_factor
import cupyx.scipy.special as special

class Gpu:
    def __init__(self, xp):
        cuda, limit = xp.cuda, 5
        self._lent = cuda.MemoryPool()
        self.places = [cuda.Event(disable_timing=True) for _ in range(2)]

    def work(self, context, a):
        self._lent.set_limit(size=3)
        self.places[0].synchronize()
        for place in self.places:
            place.record(stream=None)
        pool = context.backend.xp
        if pool.any(a, axis=0):
            return self.xp.full((), 0), partial(pool.take, a, axis=1), lu_factor(a, overwrite_a=True)
        return special.erf(a), getattr(pool, a)
"""
    seen = {(path, keywords) for path, keywords, _ in of_source(source)}
    objects = {(path, ()) for path in ("cupy", "cupy.cuda", "cupy.cuda.Event", "cupyx.scipy.special")}
    assert seen - objects == {
        ("cupyx.scipy.linalg.lu_factor", ()),
        ("cupyx.scipy.linalg.lu_factor", ("overwrite_a",)),
        ("cupyx.scipy.special.erf", ()),
        ("cupy.cuda.MemoryPool", ()),
        ("cupy.cuda.MemoryPool.set_limit", ("size",)),
        ("cupy.cuda.Event", ("disable_timing",)),
        ("cupy.cuda.Event.synchronize", ()),
        ("cupy.cuda.Event.record", ("stream",)),
        ("cupy.any", ("axis",)),
        ("cupy.full", ()),
        ("cupy.take", ("axis",)),
        ("cupy.?", ()),
    }


def test_uses_of_a_device_are_found() -> None:
    """Its objects come as parameters: without their names in PARAMETERS these would be missed."""
    paths = {use.path for use in uses() if use.where.startswith(OF_DEVICES)}
    for name in ("MemoryPool.malloc", "Stream.wait_event", "Event.record", "runtime.memcpyAsync", "Device.__enter__"):
        assert f"cupy.cuda.{name}" in paths


def test_calls_that_cupy_does_not_take_are_seen() -> None:
    x = np.zeros((2, 2), np.float32)
    cupy_offer.check("cupy.sum", (x,), {"axis": 0})
    for path, args, kwargs, text in (
        ("cupy.nansum_of", (x,), {}, "CuPy has no cupy.nansum_of"),
        ("cupy.sum", (x,), {"where": x}, "cupy.sum takes no argument where; it takes a axis dtype out keepdims"),
        ("cupy.sum", (x, 0, None, None, False, 0), {}, "cupy.sum takes 5 arguments, found 6"),
        ("cupy.add", (x, x), {"where": x > 0}, "cupy.add takes no argument where"),
        ("cupy.left_shift", (x, 1), {}, "cupy.left_shift does not compute float32, 1"),
        ("cupy.maximum.at", (x.astype(np.int8), x, x), {}, "cupy.maximum.at does not take int8"),
    ):
        with pytest.raises(cupy_offer.NotInCupy, match=text):
            cupy_offer.check(path, args, kwargs)
    with pytest.raises(cupy_offer.NotInCupy, match="CuPy's arrays have no method partitioned"):
        cupy_offer.check_method("partitioned", (), {})


@pytest.mark.cupy
def test_the_record_is_that_of_cupy(tmp_path: Path) -> None:
    """Of the names that the engine uses: another version may have more of the others."""
    file = tmp_path / "names.json"
    script = ROOT / "scripts" / "cupy_names.py"  # in a process of its own: it puts empty modules in CuPy's place
    subprocess.run([sys.executable, "-P", script, "--output", file], check=True)
    names: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    for use in uses():
        if use.path in cupy_offer.SCATTERED:
            continue
        for part in ("functions", "ufuncs"):
            assert names[part].get(use.path) == cupy_offer.RECORD[part].get(use.path), use
        assert (use.path in (*names["modules"], *names["values"])) == (use.path in cupy_offer.VALUES), use
    assert names["methods"] == cupy_offer.RECORD["methods"]


@pytest.mark.cupy
def test_ufuncs_scatter() -> None:
    cupy = pytest.importorskip("cupy", reason="CuPy is not installed (make kernels)")
    for path in cupy_offer.SCATTERED:
        _, name, _ = path.split(".")
        assert callable(getattr(cupy, name).at)


@pytest.mark.cupy
def test_ufuncs_take_the_arguments_that_the_record_gives_them() -> None:
    """Without a device, arguments that are refused are TypeErrors; those that are taken fail at the driver."""
    cupy = pytest.importorskip("cupy", reason="CuPy is not installed (make kernels)")
    for name in (*cupy_offer.KEYWORDS, "where", "order", "axis", "axes", "keepdims", "signature", "subok"):
        try:
            cupy.add(1, 2, **{name: None})
            refused = False
        except Exception as error:
            refused = "Wrong arguments" in str(error)
        assert refused == (name not in cupy_offer.KEYWORDS), name


def test_the_engine_names_cupy_in_its_own_folders_alone() -> None:
    folders = {use.where.partition("/")[0] for use in uses() if use.path.startswith("cupyx")}
    assert folders <= {"arrays", "plans"}
