"""The catalogue as data, for `GET /v1/ops`, the reference page, and the digest that the SDK and the server compare."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from functools import cache
from typing import Any

from teletape_engine.catalogue.op import CATALOGUE, Op
from teletape_engine.catalogue.rule import NoGradient
from teletape_engine.spec import dtype_of


def describe(op: Op) -> dict[str, Any]:
    """Everything public about an op, JSON-able.

    `gradients` has for each input its `kind` (dense, slices, none: declared non-differentiable, not_registered: a
    LookupError) and `keeps`, the arrays that a tape keeps for it.
    """
    return {
        "name": op.name,
        "op_type": op.op_type,
        "tensorflow": [f"tf.{name}" for name in op.tf],
        "inputs": list(op.inputs),
        "results": list(op.results),
        "variadic": op.variadic,
        "attributes": _plain(op.schema.json()),
        "gradients": {name: _gradient(op, i) for i, name in enumerate(op.inputs)},
        "composite": op.expand is not None,
        "dynamic": op.dynamic,
        "backends": ["cpu"] if op.on_gpu.missing else ["cpu", "gpu"],
        "on_gpu": op.on_gpu.text(),
        "documentation": op.doc,
    }


def _gradient(op: Op, i: int) -> dict[str, Any]:
    if op.expand is not None:
        return {"kind": "dense", "keeps": [], "note": "that of the ops it is made of"}
    rule = op.rule(op.vjp, i)
    if isinstance(rule, NoGradient):
        return {"kind": rule.value, "keeps": []}
    return {"kind": "slices" if i in op.sparse else "dense", "keeps": list(op.saves(i))}


def _plain(value: Any) -> Any:
    """A value with dtypes as names."""
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return dtype_of(value).name if hasattr(value, "itemsize") else value


def catalogue(names: Iterable[str] | None = None) -> list[dict[str, Any]]:
    """The descriptions of these ops, by default of all, by name."""
    return [describe(CATALOGUE.named(name)) for name in sorted(CATALOGUE if names is None else names)]


@cache
def digest() -> str:
    """A hash over all descriptions without their prose: equal if both sides have the same ops.

    The catalogue is complete and frozen once its ops are imported.
    """
    prose = {"documentation", "on_gpu"}
    facts = [{k: v for k, v in description.items() if k not in prose} for description in catalogue()]
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:16]
